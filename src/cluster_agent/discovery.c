/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster_agent/discovery.h"

#include <stdio.h>

#include "base/arena.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/strmap.h"
#include "base/vec.h"
#include "engine/go_json.h"

struct discovery {
    arena *texts;
    VEC(discovery_kind) kinds;
    strmap by_name; /* "apps/v1 Deployment" to its place in kinds */
    strmap stale;   /* groups that were ever stale, to the reading that found them so; 0: none */
    uint64_t reading;
};

discovery *discovery_new(void)
{
    discovery *d = mem_zalloc(sizeof *d);
    if (!d)
        return NULL;
    d->reading = 1;
    d->texts = arena_new(0);
    return d->texts ? d : mem_free(d);
}

discovery *discovery_free(discovery *d)
{
    if (!d)
        return NULL;
    strmap_done(&d->by_name);
    strmap_done(&d->stale);
    vec_done(&d->kinds);
    arena_free(d->texts);
    return mem_free(d);
}

/* ---- the table ---- */

/* Needs no memory: "there is no such kind" must never be the answer for want of it. */
static discovery_kind *find(const discovery *d, str api_version, str kind)
{
    char key[2 * LIMIT_NAME_BYTES];
    int len = snprintf(key, sizeof key, "%.*s %.*s", STR_ARG(api_version), STR_ARG(kind));
    if (len < 0 || (size_t)len >= sizeof key)
        return NULL;
    uint64_t *at = strmap_get(&d->by_name, (str){key, (size_t)len});
    return at ? &d->kinds.at[*at] : NULL;
}

const discovery_kind *discovery_find(const discovery *d, str api_version, str kind)
{
    const discovery_kind *found = find(d, api_version, kind);
    return found && found->told ? found : NULL;
}

const discovery_kind *discovery_find_any(const discovery *d, str group, str kind)
{
    for (size_t i = 0; i < d->kinds.len; i++)
        if (d->kinds.at[i].told && str_eq(d->kinds.at[i].kind, kind) &&
            str_eq(object_group(d->kinds.at[i].api_version), group))
            return &d->kinds.at[i];
    return NULL;
}

bool discovery_stale(const discovery *d, str group)
{
    uint64_t *stale = strmap_get(&d->stale, group);
    return stale && *stale;
}

/* "/apis/apps/v1/namespaces/shop/deployments" is the version "apps/v1" and the plural. */
bool discovery_has(const discovery *d, str collection)
{
    str core = STR(DISCOVERY_CORE_PATH "/"), groups = STR(DISCOVERY_GROUPS_PATH "/"), plural = {0};
    bool grouped = str_starts(collection, groups);
    str rest = str_part(collection, grouped ? groups.len : core.len, SIZE_MAX), version = rest;
    size_t slashes = grouped ? 2 : 1;
    for (version.len = 0; version.len < rest.len; version.len++)
        if (rest.ptr[version.len] == '/' && --slashes == 0)
            break;
    for (rest = collection; rest.ptr;)
        plural = str_cut(&rest, '/');
    for (size_t i = 0; i < d->kinds.len; i++) {
        const discovery_kind *k = &d->kinds.at[i];
        if (k->told && str_eq(k->plural, plural) && str_eq(k->api_version, version))
            return true;
    }
    return false;
}

size_t discovery_count(const discovery *d)
{
    size_t count = 0;
    for (size_t i = 0; i < d->kinds.len; i++)
        count += d->kinds.at[i].told > 0;
    return count;
}

/* ---- readings ---- */

void discovery_begin(discovery *d)
{
    d->reading++;
}

void discovery_end(discovery *d)
{
    for (size_t i = 0; i < d->stale.len; i++)
        if (d->stale.entries[i].value != d->reading)
            d->stale.entries[i].value = 0;
    for (size_t i = 0; i < d->kinds.len; i++) {
        discovery_kind *k = &d->kinds.at[i];
        if (k->told < d->reading && !discovery_stale(d, object_group(k->api_version)))
            k->told = 0;
    }
}

/* Adds one, or puts right the one that is known. What names no kind or no place is left out. */
static bool add(discovery *d, const discovery_kind *one, err *error)
{
    str version = one->api_version, group = object_group(version);
    if (group.len > 0)
        str_cut(&version, '/');
    if (one->kind.len == 0 || !object_path_part(one->plural) || !object_path_part(version) ||
        (group.len > 0 && !object_path_part(group)) ||
        one->kind.len + one->api_version.len + 2 > 2 * LIMIT_NAME_BYTES)
        return true;
    discovery_kind *known = find(d, one->api_version, one->kind);
    bool keeps = known && one->defined && known->told > 0 && !known->defined;
    if (known) {
        known->told = one->told > known->told ? one->told : known->told;
        if (keeps)
            return true;
        known->namespaced = one->namespaced;
        known->defined = one->defined;
        if (!str_eq(known->plural, one->plural)) {
            str plural = arena_str(d->texts, one->plural);
            if (!plural.ptr)
                return err_memory(error);
            known->plural = plural;
        }
        return true;
    }
    if (d->kinds.len >= DISCOVERY_KINDS_MAX)
        return err_set(error, "found more than %u kinds in the cluster", DISCOVERY_KINDS_MAX);
    str key = arena_printf(d->texts, "%.*s %.*s", STR_ARG(one->api_version), STR_ARG(one->kind));
    str plural = arena_str(d->texts, one->plural);
    if (!key.ptr || !plural.ptr || !vec_reserve(&d->kinds, d->kinds.len + 1) ||
        !strmap_put(&d->by_name, key, d->kinds.len))
        return err_memory(error);
    d->kinds.at[d->kinds.len++] = (discovery_kind){
        .api_version = str_part(key, 0, one->api_version.len),
        .kind = str_part(key, one->api_version.len + 1, one->kind.len),
        .plural = plural,
        .namespaced = one->namespaced,
        .defined = one->defined,
        .told = one->told,
    };
    return true;
}

/* ---- the server's answers ---- */

static bool read_version(discovery *d, str group, const yyjson_val *version, err *error)
{
    str name = object_text(version, STR("version"));
    buf api_version = BUF(LIMIT_DOCUMENT_BYTES);
    if (group.len > 0) {
        buf_add(&api_version, group);
        buf_addc(&api_version, '/');
    }
    buf_add(&api_version, name);
    bool good = !api_version.failed || err_memory(error);
    size_t i, max;
    yyjson_val *one;
    yyjson_arr_foreach(go_member(version, STR("resources")), i, max, one)
    {
        discovery_kind kind = {
            .api_version = buf_str(&api_version),
            .kind = object_text(go_member(one, STR("responseKind")), STR("kind")),
            .plural = object_text(one, STR("resource")),
            .namespaced = str_eq(object_text(one, STR("scope")), STR("Namespaced")),
            .told = d->reading,
        };
        good = good && add(d, &kind, error);
    }
    buf_done(&api_version);
    return good;
}

static bool note_freshness(discovery *d, str group, const yyjson_val *versions, err *error)
{
    size_t i, max;
    yyjson_val *one;
    bool stale = false;
    yyjson_arr_foreach((yyjson_val *)(uintptr_t)versions, i, max, one) stale =
        stale || str_eq(object_text(one, STR("freshness")), STR("Stale"));
    uint64_t *known = strmap_get(&d->stale, group);
    if (known)
        *known = stale ? d->reading : 0;
    if (known || !stale)
        return true;
    str name = arena_str(d->texts, group);
    return (name.ptr && strmap_put(&d->stale, name, d->reading)) || err_memory(error);
}

static bool read_aggregated(discovery *d, const yyjson_val *answer, err *error)
{
    size_t i, max, k, count;
    yyjson_val *group, *version;
    yyjson_arr_foreach(go_member(answer, STR("items")), i, max, group)
    {
        str name = object_text(go_member(group, STR("metadata")), STR("name"));
        if (!note_freshness(d, name, go_member(group, STR("versions")), error))
            return false;
        yyjson_arr_foreach(go_member(group, STR("versions")), k, count, version)
        {
            if (!read_version(d, name, version, error))
                return false;
        }
    }
    return true;
}

static bool read_list(discovery *d, const yyjson_val *answer, err *error)
{
    size_t i, max;
    yyjson_val *one;
    yyjson_arr_foreach(go_member(answer, STR("resources")), i, max, one)
    {
        discovery_kind kind = {
            .api_version = object_text(answer, STR("groupVersion")),
            .kind = object_text(one, STR("kind")),
            .plural = object_text(one, STR("name")),
            .namespaced = yyjson_is_true(go_member(one, STR("namespaced"))),
            .told = d->reading,
        };
        if (!add(d, &kind, error))
            return false;
    }
    return true;
}

bool discovery_read(discovery *d, const yyjson_val *answer, err *error)
{
    str kind = object_text(answer, STR("kind"));
    if (str_eq(kind, STR("APIGroupDiscoveryList")))
        return read_aggregated(d, answer, error);
    if (str_eq(kind, STR("APIResourceList")))
        return read_list(d, answer, error);
    return err_set(error, "kind: found \"%s\", allowed APIGroupDiscoveryList, APIResourceList",
                   str_shown(kind).text);
}

static void put_path(buf *out, const char *prefix, str version)
{
    if (version.len == 0)
        return;
    buf_addz(out, prefix);
    buf_add(out, version);
    buf_addc(out, '\n');
}

bool discovery_paths(const yyjson_val *answer, buf *out, err *error)
{
    size_t i, max, k, count;
    yyjson_val *one, *version;
    str kind = object_text(answer, STR("kind"));
    if (str_eq(kind, STR("APIVersions"))) {
        yyjson_arr_foreach(go_member(answer, STR("versions")), i, max, one)
            put_path(out, DISCOVERY_CORE_PATH "/", go_str(one));
    } else if (str_eq(kind, STR("APIGroupList"))) {
        yyjson_arr_foreach(go_member(answer, STR("groups")), i, max, one)
        {
            yyjson_arr_foreach(go_member(one, STR("versions")), k, count, version)
                put_path(out, DISCOVERY_GROUPS_PATH "/", object_text(version, STR("groupVersion")));
        }
    } else {
        return err_set(error, "kind: found \"%s\", allowed APIVersions, APIGroupList",
                       str_shown(kind).text);
    }
    return !out->failed || err_memory(error);
}

bool discovery_define(discovery *d, const yyjson_val *definition, err *error)
{
    const yyjson_val *spec = go_member(definition, STR("spec"));
    const yyjson_val *names = go_member(spec, STR("names"));
    if (!str_eq(object_text(definition, STR("kind")), STR("CustomResourceDefinition")))
        return true;
    size_t i, max;
    yyjson_val *one;
    yyjson_arr_foreach(go_member(spec, STR("versions")), i, max, one)
    {
        buf api_version = BUF(LIMIT_DOCUMENT_BYTES);
        buf_add(&api_version, object_text(spec, STR("group")));
        buf_addc(&api_version, '/');
        buf_add(&api_version, object_text(one, STR("name")));
        discovery_kind kind = {
            .api_version = buf_str(&api_version),
            .kind = object_text(names, STR("kind")),
            .plural = object_text(names, STR("plural")),
            .namespaced = str_eq(object_text(spec, STR("scope")), STR("Namespaced")),
            .defined = true,
            .told = d->reading + 1,
        };
        bool good = api_version.failed
                        ? err_memory(error)
                        : yyjson_is_false(go_member(one, STR("served"))) || add(d, &kind, error);
        buf_done(&api_version);
        if (!good)
            return false;
    }
    return true;
}

void discovery_collection_put(buf *out, const discovery_kind *kind, str namespace_)
{
    bool core = object_group(kind->api_version).len == 0;
    buf_addz(out, core ? DISCOVERY_CORE_PATH "/" : DISCOVERY_GROUPS_PATH "/");
    buf_add(out, kind->api_version);
    if (kind->namespaced && namespace_.len > 0) {
        buf_addz(out, "/namespaces/");
        buf_add(out, namespace_);
    }
    buf_addc(out, '/');
    buf_add(out, kind->plural);
}
