/* SPDX-License-Identifier: Apache-2.0 */
#include "model/scope.h"

#define MEMBERS_MOST 10

typedef struct members {
    cel_entry *at;
    size_t len;
} members;

static const cel_value no_memory = {.kind = CEL_ERROR, .code = CEL_MEMORY};

static void put(members *m, str key, cel_value value)
{
    m->at[m->len++] = (cel_entry){cel_string(key), value};
}

static cel_value label_map(arena *a, label_set labels)
{
    cel_entry *entries = ARENA_ARRAY(a, labels.len + 1, cel_entry);
    if (!entries)
        return no_memory;
    for (size_t i = 0; i < labels.len; i++)
        entries[i] = (cel_entry){cel_string(labels.at[i].key), cel_string(labels.at[i].value)};
    return cel_map_of(a, entries, labels.len);
}

/* What all of them have. False without memory. */
static bool begin(arena *a, const metadata *meta, members *m)
{
    m->at = ARENA_ARRAY(a, MEMBERS_MOST, cel_entry);
    m->len = 0;
    if (!m->at)
        return false;
    put(m, STR("id"), cel_string(meta->uid.len > 0 ? meta->uid : meta->name));
    put(m, STR("name"), cel_string(meta->name));
    put(m, STR("metadata"), label_map(a, meta->labels));
    if (meta->creation_timestamp.set)
        put(m, STR("createdAt"), cel_timestamp(meta->creation_timestamp.at));
    return true;
}

static cel_value plain(arena *a, const object *o)
{
    members m;
    return begin(a, o->metadata, &m) ? cel_map_of(a, m.at, m.len) : no_memory;
}

cel_value scope_environment(arena *a, const object *o)
{
    return plain(a, o);
}

cel_value scope_deployment(arena *a, const object *o)
{
    return plain(a, o);
}

cel_value scope_resource(arena *a, const object *o)
{
    const struct resource_spec *spec = &o->resource->spec;
    members m;
    if (!begin(a, o->metadata, &m))
        return no_memory;
    put(&m, STR("identifier"), cel_string(o->metadata->name));
    put(&m, STR("kind"), cel_string(spec->kind));
    put(&m, STR("version"), cel_string(spec->version));
    if (spec->config)
        put(&m, STR("config"), cel_from_json((yyjson_val *)(uintptr_t)spec->config));
    return cel_map_of(a, m.at, m.len);
}
