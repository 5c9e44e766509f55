/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <stdarg.h>
#include <stdlib.h>

#include "base/mem.h"
#include "model/json.h"
#include "model/shape.h"
#include "model/shape_value.h"

/* Fields seen are bits of one word. */
#define FIELDS_MOST 64

/* What a field is read into: every type of list has this layout. */
typedef struct any_list {
    void *at;
    size_t len;
} any_list;

static bool read_struct(reader *r, const shape *s, const place *at, void *out, bool keyed);

/* ---- reporting ---- */

void reader_error(reader *r, const place *at, const char *format, ...)
{
    char text[LIMIT_ERR_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    r->errors++;
    place_error(at, r->found, "%s", text);
}

void reader_warning(reader *r, const place *at, const char *format, ...)
{
    char text[LIMIT_ERR_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    place_warning(at, r->found, "%s", text);
}

bool reader_memory(reader *r)
{
    if (!r->no_memory)
        problems_memory(r->found);
    r->no_memory = true;
    r->errors++;
    return false;
}

/* ---- finding fields ---- */

/* A field of a shape or of one inlined in it: where it is in the struct, and its number. */
typedef struct spot {
    const field *field;
    size_t base;
    unsigned number;
} spot;

static bool find_field(const shape *s, str name, spot *at)
{
    for (size_t i = 0; i < s->field_count; i++) {
        const field *f = &s->fields[i];
        if (f->type == FIELD_INLINE) {
            spot inner = {.base = at->base + f->offset, .number = at->number};
            if (find_field(f->shape, name, &inner)) {
                *at = inner;
                return true;
            }
            at->number = inner.number;
            continue;
        }
        if (f->name.len == name.len && name.len > 0 && f->name.ptr[0] == name.ptr[0] &&
            memcmp(f->name.ptr, name.ptr, name.len) == 0) {
            at->field = f;
            return true;
        }
        at->number++;
    }
    return false;
}

static void nearest(const shape *s, str name, str *best, size_t *best_distance)
{
    for (size_t i = 0; i < s->field_count; i++) {
        const field *f = &s->fields[i];
        if (f->type == FIELD_INLINE) {
            nearest(f->shape, name, best, best_distance);
            continue;
        }
        size_t d = str_distance(name, f->name);
        if (d < *best_distance) {
            *best = f->name;
            *best_distance = d;
        }
    }
}

static void list_fields(const shape *s, buf *out)
{
    for (size_t i = 0; i < s->field_count; i++) {
        if (s->fields[i].type == FIELD_INLINE)
            list_fields(s->fields[i].shape, out);
        else
            buf_addf(out, "%s%.*s", out->len ? ", " : "", STR_ARG(s->fields[i].name));
    }
}

static openness effective_openness(const reader *r, const shape *s)
{
    return r->closed ? SHAPE_CLOSED : s->open;
}

static void report_unknown(reader *r, const shape *s, const place *at)
{
    str best = STR_EMPTY;
    size_t best_distance = at->key.len / 3 + 1 < 4 ? at->key.len / 3 + 1 : 4;
    nearest(s, at->key, &best, &best_distance);
    char hint[120] = "";
    if (best.len > 0)
        snprintf(hint, sizeof hint, "; did you mean \"%.*s\"?", STR_ARG(best));
    if (effective_openness(r, s) == SHAPE_KEPT) {
        reader_warning(r, at, "found a field that Drover does not know; it is kept%s", hint);
        return;
    }
    scoped(buf_done) buf fields = BUF(LIMIT_ERR_BYTES);
    if (best.len == 0)
        list_fields(s, &fields);
    if (best.len == 0 && fields.len == 0)
        buf_addz(&fields, "none");
    if (best.len > 0)
        reader_error(r, at, "found an unknown field%s", hint);
    else if (fields.len == 0)
        reader_error(r, at, "found an unknown field, allowed none");
    else
        reader_error(r, at, "found an unknown field, allowed %.*s", STR_ARG(buf_str(&fields)));
}

static void keep_field(reader *r, const shape *s, const place *at, void *out)
{
    kept_fields *kept = (kept_fields *)((char *)out + s->kept_offset);
    if (!kept->at) {
        kept->at = ARENA_ARRAY(r->arena, json_len(at->up->value), kept_field);
        if (!kept->at) {
            reader_memory(r);
            return;
        }
    }
    kept->at[kept->len++] = (kept_field){at->key, at->value};
}

/* ---- objects inside objects ---- */

static void read_object(reader *r, const field *f, const place *at, void **member)
{
    void *object = arena_alloc(r->arena, f->shape->size);
    if (!object) {
        reader_memory(r);
        return;
    }
    *member = object;
    read_struct(r, f->shape, at, object, false);
}

static void read_list(reader *r, const field *f, const place *at, any_list *member)
{
    if (!json_is_array(at->value)) {
        value_refuse(r, f, at);
        return;
    }
    size_t count = json_len(at->value);
    char *items = arena_array(r->arena, count, f->shape->size);
    if (!items) {
        reader_memory(r);
        return;
    }
    const yyjson_val *item = json_first(at->value);
    for (size_t i = 0; i < count && !r->no_memory; i++, item = json_next(item)) {
        place here = {at, {NULL, 0}, i, at->document, item};
        read_struct(r, f->shape, &here, items + i * f->shape->size, false);
    }
    if (count == 0 && (f->flags & FIELD_FILLED))
        reader_error(r, at, "found an empty list, allowed at least one entry");
    *member = (any_list){items, count};
}

static int compare_keys(const void *a, const void *b, void *context)
{
    size_t offset = *(const size_t *)context;
    return str_cmp(*(const str *)(const void *)((const char *)a + offset),
                   *(const str *)(const void *)((const char *)b + offset));
}

static void read_map(reader *r, const field *f, const place *at, any_list *member)
{
    if (!json_is_object(at->value)) {
        value_refuse(r, f, at);
        return;
    }
    size_t count = json_len(at->value);
    size_t size = f->shape->size;
    char *items = arena_array(r->arena, count, size);
    if (!items) {
        reader_memory(r);
        return;
    }
    const yyjson_val *key = json_first(at->value);
    for (size_t i = 0; i < count && !r->no_memory; i++, key = json_next(key + 1)) {
        place here = {at, json_str(key), 0, at->document, key + 1};
        read_struct(r, f->shape, &here, items + i * size, true);
    }
    size_t offset = f->shape->key_offset;
    if (r->no_memory)
        return;
    qsort_r(items, count, size, compare_keys, &offset);
    *member = (any_list){items, count};
}

static void read_member(reader *r, const field *f, const place *at, void *member)
{
    switch (f->type) {
    case FIELD_STRUCT: read_struct(r, f->shape, at, member, false); break;
    case FIELD_OBJECT: read_object(r, f, at, member); break;
    case FIELD_OBJECT_LIST: read_list(r, f, at, member); break;
    case FIELD_OBJECT_MAP: read_map(r, f, at, member); break;
    case FIELD_BOOL:
    case FIELD_OPT_BOOL:
    case FIELD_INT:
    case FIELD_OPT_INT:
    case FIELD_DECIMAL:
    case FIELD_TEXT:
    case FIELD_ENUM:
    case FIELD_ENUM_SET:
    case FIELD_DURATION:
    case FIELD_TIME:
    case FIELD_QUANTITY:
    case FIELD_INT_OR_PERCENT:
    case FIELD_SELECTOR:
    case FIELD_EXPRESSION:
    case FIELD_TEXT_LIST:
    case FIELD_TEXT_MAP:
    case FIELD_LABELS:
    case FIELD_RAW:
    case FIELD_INLINE:
    case FIELD_HEADER: value_read(r, f, at, member); break;
    }
}

/* ---- objects ---- */

static void absent_field(reader *r, const field *f, const place *at, void *member)
{
    place here = {at, f->name, 0, at->document, at->value};
    if (f->flags & FIELD_REQUIRED) {
        reader_error(r, &here, "found nothing, but it is required");
    } else if (f->type == FIELD_STRUCT) {
        here.value = &json_empty_object;
        read_struct(r, f->shape, &here, member, false);
    } else {
        value_default(r, f, &here, member);
    }
}

/* Which fields an object has, by their numbers; "next" is the number of the one to look at. */
typedef struct presence {
    uint64_t seen;
    unsigned next;
} presence;

/* Fields that the object does not have: required, default, or zero. */
static void read_absent(reader *r, const shape *s, const place *at, presence *there, char *out)
{
    for (size_t i = 0; i < s->field_count; i++) {
        const field *f = &s->fields[i];
        if (f->type == FIELD_INLINE) {
            read_absent(r, f->shape, at, there, out + f->offset);
            continue;
        }
        assert(there->next < FIELDS_MOST);
        bool seen = (there->seen >> there->next) & 1;
        there->next++;
        if (!seen && (f->otherwise || f->flags & FIELD_REQUIRED || f->type == FIELD_STRUCT))
            absent_field(r, f, at, out + f->offset);
    }
}

static void read_fields(reader *r, const shape *s, const place *at, char *out)
{
    presence there = {0};
    size_t count = json_len(at->value);
    const yyjson_val *key = json_first(at->value);
    for (size_t i = 0; i < count && !r->no_memory; i++, key = json_next(key + 1)) {
        place here = {at, json_str(key), 0, at->document, key + 1};
        spot to = {0};
        if (!find_field(s, here.key, &to)) {
            if (effective_openness(r, s) == SHAPE_VIEW)
                continue;
            if (effective_openness(r, s) == SHAPE_KEPT)
                keep_field(r, s, &here, out);
            report_unknown(r, s, &here);
            continue;
        }
        /* Kubernetes takes null for absent. */
        if (json_is(here.value, YYJSON_TYPE_NULL))
            continue;
        there.seen |= UINT64_C(1) << to.number;
        read_member(r, to.field, &here, out + to.base + to.field->offset);
    }
    if (!r->no_memory)
        read_absent(r, s, at, &there, out);
}

static bool read_struct(reader *r, const shape *s, const place *at, void *out, bool keyed)
{
    uint64_t before = r->errors;
    memset(out, 0, s->size);
    if (keyed)
        *(str *)(void *)((char *)out + s->key_offset) = at->key;
    place empty = *at;
    if (json_is(at->value, YYJSON_TYPE_NULL)) { /* an element of a list or map */
        empty.value = &json_empty_object;
        at = &empty;
    }
    if (s->whole && at != &empty)
        read_member(r, s->whole, at, (char *)out + s->whole->offset);
    else if (json_is_object(at->value))
        read_fields(r, s, at, out);
    else
        value_refuse(r, &(field){.type = FIELD_OBJECT}, at);
    bool good = r->errors == before && !r->no_memory;
    if (good && s->check)
        s->check(r, at, out);
    return r->errors == before && !r->no_memory;
}

bool shape_read(reader *r, const shape *s, const place *at, void *out)
{
    return read_struct(r, s, at, out, false);
}

bool shape_parse(arena *a, const shape *s, str text, void *ret, err *error)
{
    const yyjson_val *root = json_parse(a, text, error);
    if (!root)
        return false;
    scoped(problems_cleanup) problems *found = problems_new();
    void *value = arena_alloc(a, s->size);
    if (!found || !value)
        return err_memory(error);
    reader r = {.arena = a, .found = found};
    place at = {.value = root};
    if (shape_read(&r, s, &at, value)) {
        memcpy(ret, value, s->size);
        return true;
    }
    if (problems_count(found) == 0 || r.no_memory)
        return err_memory(error);
    const problem *first = problems_at(found, 0);
    return err_set(error, "%.*s: %.*s", STR_ARG(first->path), STR_ARG(first->message));
}
