/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster_agent/inventory.h"

#include <stdlib.h>

#include "base/mem.h"
#include "cluster_agent/manifest.h"
#include "engine/fleet_names.h"
#include "engine/go_json.h"
#include "model/document.h"
#include "model/fleet.h"
#include "operator/bundle_json.h"

#define NAME_PREFIX "drover"
#define DATA_KEY "inventory"

str inventory_name(arena *a, str deployment)
{
    const str parts[] = {STR(NAME_PREFIX), deployment};
    return safe_concat(a, parts, 2);
}

/* ---- writing ---- */

static void put_former(buf *out, const inventory *i)
{
    if (i->former_len == 0)
        return;
    json_key(out, "former");
    buf_addc(out, '[');
    for (size_t k = 0; k < i->former_len; k++) {
        json_next_item(out);
        buf_addc(out, '{');
        json_text(out, "namespace", i->former[k].namespace_);
        json_text(out, "name", i->former[k].name);
        json_close(out);
    }
    buf_addc(out, ']');
}

static void put_record(buf *out, const inventory *i)
{
    buf_addc(out, '{');
    json_text(out, "deployment", i->deployment);
    json_text_if(out, "wanted", i->wanted);
    json_text_if(out, "applied", i->applied);
    json_text_if(out, "digest", i->digest);
    json_text_if(out, "release", i->release.name);
    json_text_if(out, "releaseNamespace", i->release.namespace_);
    json_number_if(out, "revision", i->revision);
    json_true_if(out, "chart", i->is_chart);
    json_text_if(out, "serviceAccount", i->account);
    json_true_if(out, "keepResources", i->keep_resources);
    json_text_if(out, "deleteNamespace", i->delete_namespace);
    put_former(out, i);
    json_key(out, "objects");
    buf_addc(out, '[');
    for (size_t k = 0; k < i->len; k++) {
        const object_ref *r = &i->objects[k];
        json_next_item(out);
        buf_addc(out, '{');
        json_text(out, "apiVersion", r->api_version);
        json_text(out, "kind", r->kind);
        json_text_if(out, "namespace", r->namespace_);
        json_text(out, "name", r->name);
        json_close(out);
    }
    buf_addc(out, ']');
    json_close(out);
}

bool inventory_put(buf *out, const inventory *i, str agent_namespace, err *error)
{
    arena *a scoped(arena_cleanup) = arena_new(0);
    str name = a ? inventory_name(a, i->deployment) : (str){NULL, 0};
    const label labels[] = {{STR(LABEL_INVENTORY), STR("true")}};
    buf record = BUF(LIMIT_TEXT_BYTES);
    put_record(&record, i);
    bool large = !record.failed && record.len > INVENTORY_BYTES_MAX;
    buf_addc(out, '{');
    json_text(out, "apiVersion", STR("v1"));
    json_text(out, "kind", STR("ConfigMap"));
    json_open(out, "metadata");
    json_text(out, "name", name.ptr ? name : STR_EMPTY);
    json_text(out, "namespace", agent_namespace);
    json_labels(out, "labels", (label_set){labels, 1});
    json_close(out);
    json_open(out, "data");
    json_text(out, DATA_KEY, buf_str(&record));
    json_close(out);
    json_close(out);
    bool failed = record.failed || !name.ptr || out->failed;
    buf_done(&record);
    if (failed)
        return err_memory(error);
    return !large || err_set(error, "found %zu objects, whose names take more than %u bytes",
                             i->len, INVENTORY_BYTES_MAX);
}

/* ---- reading ---- */

static int by_ref(const void *a, const void *b)
{
    return object_ref_cmp(a, b);
}

/* Sorts and leaves out what stands twice. */
static size_t tidy(object_ref *at, size_t len)
{
    size_t kept = 0;
    if (len > 0)
        qsort(at, len, sizeof *at, by_ref);
    for (size_t i = 0; i < len; i++)
        if (kept == 0 || !object_ref_same(&at[kept - 1], &at[i]))
            at[kept++] = at[i];
    return kept;
}

static bool read_objects(arena *a, yyjson_val *list, inventory *ret, err *error)
{
    size_t i, max;
    yyjson_val *one;
    if (list && !yyjson_is_arr(list))
        return err_set(error, "objects: found something that is no list");
    ret->objects = ARENA_ARRAY(a, yyjson_arr_size(list) + 1, object_ref);
    if (!ret->objects)
        return err_memory(error);
    yyjson_arr_foreach(list, i, max, one)
    {
        object_ref ref = {object_text(one, STR("apiVersion")), object_text(one, STR("kind")),
                          object_text(one, STR("namespace")), object_text(one, STR("name"))};
        if (ref.kind.len == 0 || ref.api_version.len == 0 || !object_path_part(ref.name) ||
            (ref.namespace_.len > 0 && !object_path_part(ref.namespace_)))
            return err_set(error, "objects: found an entry that names no object");
        ret->objects[ret->len++] = ref;
    }
    ret->len = tidy(ret->objects, ret->len);
    return true;
}

static bool read_former(arena *a, yyjson_val *list, inventory *ret, err *error)
{
    size_t i, max;
    yyjson_val *one;
    if (list && !yyjson_is_arr(list))
        return err_set(error, "former: found something that is no list");
    ret->former = ARENA_ARRAY(a, yyjson_arr_size(list) + 1, release_name);
    if (!ret->former)
        return err_memory(error);
    yyjson_arr_foreach(list, i, max, one)
    {
        release_name r = {object_text(one, STR("namespace")), object_text(one, STR("name"))};
        if (!object_path_part(r.namespace_) || r.name.len == 0)
            return err_set(error, "former: found an entry that names no release");
        if (is_release_name(r.name)) /* an earlier agent asked helm in vain for the others */
            ret->former[ret->former_len++] = r;
    }
    return true;
}

static bool read_record(arena *a, str text, inventory *ret, err *error)
{
    yyjson_val *root = json_parse_within(a, text, INVENTORY_BYTES_MAX, error);
    if (!root)
        return false;
    yyjson_val *revision = go_member(root, STR("revision"));
    *ret = (inventory){
        .deployment = object_text(root, STR("deployment")),
        .wanted = object_text(root, STR("wanted")),
        .applied = object_text(root, STR("applied")),
        .digest = object_text(root, STR("digest")),
        .release = {object_text(root, STR("releaseNamespace")), object_text(root, STR("release"))},
        .revision = yyjson_is_int(revision) ? yyjson_get_sint(revision) : 0,
        .is_chart = yyjson_is_true(go_member(root, STR("chart"))),
        .account = object_text(root, STR("serviceAccount")),
        .keep_resources = yyjson_is_true(go_member(root, STR("keepResources"))),
        .delete_namespace = object_text(root, STR("deleteNamespace")),
    };
    ret->is_chart = ret->is_chart && is_release_name(ret->release.name);
    if (ret->deployment.len == 0)
        return err_set(error, "found no name of a deployment");
    if (ret->account.len > 0 && !object_path_part(ret->account))
        return err_set(error, "serviceAccount: found \"%s\", allowed the name of one",
                       str_shown(ret->account).text);
    if (ret->delete_namespace.len > 0 && !object_path_part(ret->delete_namespace))
        return err_set(error, "deleteNamespace: found \"%s\", allowed the name of a namespace",
                       str_shown(ret->delete_namespace).text);
    return read_former(a, go_member(root, STR("former")), ret, error) &&
           read_objects(a, go_member(root, STR("objects")), ret, error);
}

bool inventory_read(arena *a, const yyjson_val *config_map, inventory *ret, err *error)
{
    const yyjson_val *meta = go_member(config_map, STR("metadata"));
    str text = object_text(go_member(config_map, STR("data")), STR(DATA_KEY));
    inventory found = {0};
    str version = arena_str(a, object_text(meta, STR("resourceVersion")));
    str uid = arena_str(a, object_text(meta, STR("uid")));
    if (!version.ptr || !uid.ptr)
        return err_memory(error);
    if (!read_record(a, text, &found, error)) {
        if (!err_is_memory(error))
            err_wrap(error, "ConfigMap %s", str_shown(object_text(meta, STR("name"))).text);
        return false;
    }
    found.version = version;
    found.uid = uid;
    *ret = found;
    return true;
}

/* ---- releases ---- */

bool release_same(release_name a, release_name b)
{
    return str_eq(a.namespace_, b.namespace_) && str_eq(a.name, b.name);
}

bool inventory_leave_release(arena *a, const inventory *i, release_name now, bool is_chart,
                             inventory *ret)
{
    release_name *left = ARENA_ARRAY(a, i->former_len + 1, release_name);
    size_t len = 0;
    bool same = release_same(i->release, now);
    if (!left)
        return false;
    for (size_t k = 0; k < i->former_len; k++)
        if (!is_chart || !release_same(i->former[k], now))
            left[len++] = i->former[k];
    if (i->is_chart && (same ? !is_chart : !i->keep_resources))
        left[len++] = i->release;
    ret->former = left;
    ret->former_len = len;
    return true;
}

/* ---- sets ---- */

static bool among(const object_ref *sorted, size_t len, const object_ref *one)
{
    return len > 0 && bsearch(one, sorted, len, sizeof *sorted, by_ref);
}

bool inventory_join(arena *a, const inventory *with, const object_ref *at, size_t len,
                    inventory *ret)
{
    object_ref *all = ARENA_ARRAY(a, with->len + len + 1, object_ref);
    if (!all)
        return false;
    if (len > 0)
        memcpy(all, at, len * sizeof *at);
    size_t now = tidy(all, len), count = now;
    for (size_t i = 0; i < with->len; i++)
        if (!among(all, now, &with->objects[i])) /* the version of now is the one to use */
            all[count++] = with->objects[i];
    inventory joined = *with;
    joined.objects = all;
    joined.len = tidy(all, count);
    *ret = joined;
    return true;
}

static int by_deletion(const void *a, const void *b)
{
    const object_ref *one = a, *other = b;
    int order = kind_order(other->kind) - kind_order(one->kind);
    return order != 0 ? order : object_ref_cmp(one, other);
}

bool inventory_left(arena *a, const inventory *i, const object_ref *at, size_t len, inventory *ret)
{
    inventory left = *i;
    left.len = 0;
    left.objects = ARENA_ARRAY(a, i->len + 1, object_ref);
    if (!left.objects)
        return false;
    for (size_t k = 0; k < i->len; k++)
        if (!among(at, len, &i->objects[k]))
            left.objects[left.len++] = i->objects[k];
    if (left.len > 0)
        qsort(left.objects, left.len, sizeof *left.objects, by_deletion);
    *ret = left;
    return true;
}
