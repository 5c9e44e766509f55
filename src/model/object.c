/* SPDX-License-Identifier: Apache-2.0 */
#include "model/object.h"

#include <assert.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/vec.h"
#include "model/json.h"
#include "model/shape.h"

static const struct kind_row {
    str api;
    str kind;
    const shape *shape;
} kinds[] = {
#define X(name, api, kind, type)                                                                   \
    [KIND_##name] = {{api, sizeof(api) - 1}, {kind, sizeof(kind) - 1}, &type##_shape},
    OBJECT_KINDS(X)
#undef X
};

#define KIND_COUNT (sizeof kinds / sizeof kinds[0])

static const metadata no_metadata;

/* ---- kinds ---- */

const char *object_kind_text(object_kind kind)
{
    return kinds[kind].kind.ptr;
}

const char *object_kind_api(object_kind kind)
{
    return kinds[kind].api.ptr;
}

const shape *object_kind_shape(object_kind kind)
{
    return kinds[kind].shape;
}

bool object_kind_find(str api_version, str kind, object_kind *ret)
{
    for (size_t i = 0; i < KIND_COUNT; i++) {
        if (str_eq(kinds[i].kind, kind) && str_eq(kinds[i].api, api_version)) {
            *ret = (object_kind)i;
            return true;
        }
    }
    return false;
}

/* ---- lists ---- */

object_list *objects_new(void)
{
    object_list *list = mem_zalloc(sizeof *list);
    if (!list)
        return NULL;
    list->arena = arena_new(0);
    if (!list->arena)
        return mem_free(list);
    list->expressions.arena = list->arena;
    return list;
}

object_list *objects_free(object_list *list)
{
    if (!list)
        return NULL;
    expression_list_done(&list->expressions);
    arena_free(list->arena);
    vec_done(list);
    return mem_free(list);
}

void objects_cleanup(object_list **list)
{
    *list = objects_free(*list);
}

bool objects_add(object_list *list, object o)
{
    return vec_push(list, o);
}

object object_of(object_kind kind, void *typed)
{
    /* Every struct but fleet.yaml's begins with its metadata: the tables say so, and a test. */
    const metadata *meta = kind == KIND_FLEET_YAML ? &no_metadata : typed;
    return (object){.kind = kind, .metadata = meta, .any = typed};
}

/* ---- reading ---- */

static bool read_as(object_list *list, const document *d, object_kind kind, problems *found,
                    object *ret)
{
    const shape *s = kinds[kind].shape;
    void *typed = arena_alloc(list->arena, s->size);
    if (!typed)
        return problems_memory(found);
    reader r = {
        .arena = list->arena,
        .expressions = &list->expressions,
        .found = found,
        .closed = str_eq(kinds[kind].api, STR(API_DROVER)),
    };
    place at = place_root(d);
    if (!shape_read(&r, s, &at, typed))
        return false;
    *ret = object_of(kind, typed);
    ret->document = d;
    return true;
}

static bool is_fleet_yaml(const document *d)
{
    size_t slash = 0;
    for (size_t i = 0; i < d->file.len; i++)
        if (d->file.ptr[i] == '/')
            slash = i + 1;
    str name = str_part(d->file, slash, SIZE_MAX);
    bool named = str_eq(name, STR("fleet.yaml")) || str_eq(name, STR("fleet.yml"));
    return named && d->kind.len == 0 && d->api_version.len == 0;
}

bool object_read_fleet_yaml(object_list *list, const document *d, problems *found, object *ret)
{
    return read_as(list, d, KIND_FLEET_YAML, found, ret);
}

/* The kind under another apiVersion, for a better message. */
static const struct kind_row *same_kind(str kind)
{
    for (size_t i = 0; i < KIND_COUNT; i++)
        if (kinds[i].api.len > 0 && str_eq(kinds[i].kind, kind))
            return &kinds[i];
    return NULL;
}

static bool refuse_header(const document *d, problems *found)
{
    place root = place_root(d);
    place api = place_key(&root, STR("apiVersion"));
    place kind = place_key(&root, STR("kind"));
    if (d->api_version.len == 0)
        place_error(&api, found, "found nothing, but it is required");
    if (d->kind.len == 0)
        place_error(&kind, found, "found nothing, but it is required");
    if (d->api_version.len == 0 || d->kind.len == 0)
        return false;
    const struct kind_row *row = same_kind(d->kind);
    if (row)
        place_warning(&api, found, "found \"%s\", Drover reads this kind as %s; it is left out",
                      str_shown(d->api_version).text, row->api.ptr);
    else
        place_warning(&kind, found, "kind %s is not one Drover reads; it is left out",
                      str_shown(d->kind).text);
    return false;
}

bool object_read(object_list *list, const document *d, problems *found, object *ret)
{
    object_kind kind;
    if (is_fleet_yaml(d))
        return object_read_fleet_yaml(list, d, found, ret);
    if (!object_kind_find(d->api_version, d->kind, &kind) || kind == KIND_FLEET_YAML)
        return refuse_header(d, found);
    return read_as(list, d, kind, found, ret);
}

bool objects_read(object_list *list, const document_set *set, problems *found)
{
    uint64_t before = problems_errors(found);
    size_t count = documents_count(set);
    if (!vec_reserve(list, list->len + count))
        return problems_memory(found);
    for (size_t i = 0; i < count && !problems_out_of_memory(found); i++) {
        object o;
        if (object_read(list, documents_at(set, i), found, &o))
            list->at[list->len++] = o;
    }
    return problems_errors(found) == before;
}

/* ---- writing ---- */

void object_write(const object *o, buf *out)
{
    const struct kind_row *row = &kinds[o->kind];
    if (row->api.len == 0) {
        shape_write(row->shape, o->any, out, 0);
        return;
    }
    buf_addf(out, "{\"apiVersion\":\"%s\",\"kind\":\"%s\",", row->api.ptr, row->kind.ptr);
    size_t start = out->len;
    shape_write(row->shape, o->any, out, 0);
    /* Without the brace of its own; metadata is always there, so there is something to separate. */
    if (!out->failed) {
        memmove(out->ptr + start, out->ptr + start + 1, out->len - start - 1);
        out->len--;
    }
}

bool object_equal(const object *a, const object *b)
{
    return a->kind == b->kind && shape_equal(kinds[a->kind].shape, a->any, b->any);
}
