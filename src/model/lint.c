/* SPDX-License-Identifier: Apache-2.0 */
#include "model/lint.h"

#include <stdarg.h>

#include "base/mem.h"
#include "base/strmap.h"
#include "model/json.h"
#include "model/lint_parts.h"

/* ---- helpers ---- */

const object *lint_next(const lint *l, object_kind kind, size_t *index)
{
    const lint_kind *k = &l->kinds[kind];
    return *index < k->len ? k->at[(*index)++] : NULL;
}

const object *lint_find(const lint *l, object_kind kind, str name)
{
    const uint64_t *index = strmap_get(&l->kinds[kind].names, name);
    return index ? l->kinds[kind].at[*index] : NULL;
}

size_t lint_count(const lint *l, object_kind kind)
{
    return l->kinds[kind].len;
}

place lint_place(const object *o)
{
    if (o->document)
        return place_root(o->document);
    return (place){.value = &json_empty_object};
}

void lint_error(lint *l, const place *at, const char *format, ...)
{
    char text[LIMIT_ERR_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (at->document)
        place_error(at, l->found, "%s", text);
}

void lint_warning(lint *l, const place *at, const char *format, ...)
{
    char text[LIMIT_ERR_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (at->document)
        place_warning(at, l->found, "%s", text);
}

/* ---- all kinds ---- */

static void check_twice(lint *l, const object *o, const object *before)
{
    place root = lint_place(o);
    place meta = place_key(&root, STR("metadata"));
    place name = place_key(&meta, STR("name"));
    if (before->document)
        lint_error(l, &name, "found the same %s as in %.*s:%u, allowed one of that name",
                   object_kind_text(o->kind), STR_ARG(before->document->file),
                   document_line(before->document, before->document->root));
    else
        lint_error(l, &name, "found the same %s twice, allowed one of that name",
                   object_kind_text(o->kind));
}

static void lint_duplicates(lint *l)
{
    scoped(strmap_done) strmap seen = {0};
    for (size_t i = 0; i < l->objects->len && !l->no_memory; i++) {
        const object *o = &l->objects->at[i];
        if (o->kind == KIND_FLEET_YAML)
            continue;
        str key = arena_printf(l->arena, "%u/%.*s/%.*s", o->kind, STR_ARG(o->metadata->namespace_),
                               STR_ARG(o->metadata->name));
        const uint64_t *before = key.ptr ? strmap_get(&seen, key) : NULL;
        if (before)
            check_twice(l, o, &l->objects->at[*before]);
        else if (!key.ptr || !strmap_put(&seen, key, i))
            l->no_memory = true;
    }
}

/* Sorts the objects by kind and name. False without memory. */
static bool index_kinds(lint *l)
{
    size_t counts[LINT_KINDS] = {0};
    for (size_t i = 0; i < l->objects->len; i++)
        counts[l->objects->at[i].kind]++;
    for (size_t k = 0; k < LINT_KINDS; k++) {
        l->kinds[k].at = ARENA_ARRAY(l->arena, counts[k], const object *);
        if (!l->kinds[k].at)
            return false;
    }
    for (size_t i = 0; i < l->objects->len; i++) {
        const object *o = &l->objects->at[i];
        lint_kind *k = &l->kinds[o->kind];
        if (!strmap_get(&k->names, o->metadata->name) &&
            !strmap_put(&k->names, o->metadata->name, k->len))
            return false;
        k->at[k->len++] = o;
    }
    return true;
}

bool lint_all(const object_list *objects, problems *found)
{
    scoped(arena_cleanup) arena *a = arena_new(0);
    if (!a)
        return problems_memory(found);
    uint64_t before = problems_errors(found);
    lint l = {.objects = objects, .found = found, .arena = a};
    l.no_memory = !index_kinds(&l);
    if (!l.no_memory) {
        lint_duplicates(&l);
        lint_skyhooks(&l);
        lint_fleets(&l);
        lint_releases(&l);
    }
    for (size_t k = 0; k < LINT_KINDS; k++)
        strmap_done(&l.kinds[k].names);
    if (l.no_memory)
        problems_memory(found);
    return problems_errors(found) == before && !problems_out_of_memory(found);
}
