/* SPDX-License-Identifier: Apache-2.0 */
#include "console/kept.h"

#include "base/limits.h"
#include "base/mem.h"
#include "model/document.h"
#include "operator/act_request.h"
#include "operator/object_names.h"

#define KEPT_RECORD "drover.dev/rollout" /* annotation of a Bundle: the operator's own */

static const struct {
    const char *kind, *api;
} kinds[] = {
#define X(kind, text, api) [KEPT_##kind] = {text, api},
    KEPT_KINDS(X)
#undef X
};

const char *kept_kind_text(kept_kind kind)
{
    return kinds[kind].kind;
}

kept_kind kept_of_nodes(shell_kind kind)
{
    switch (kind) {
    case SHELL_NODE: return KEPT_NODE;
    case SHELL_POLICY: return KEPT_POLICY;
    case SHELL_SKYHOOK: return KEPT_SKYHOOK;
    case SHELL_JOB:
    case SHELL_POD: break;
    }
    return KEPT_NOTHING;
}

kept_kind kept_of_clusters(hub_kind kind)
{
    switch (kind) {
    case HUB_GROUP: return KEPT_CLUSTER_GROUP;
    case HUB_MAPPING: return KEPT_MAPPING;
    case HUB_CLUSTER: return KEPT_CLUSTER;
    case HUB_BUNDLE: return KEPT_BUNDLE;
    case HUB_DEPLOYMENT: return KEPT_DEPLOYMENT;
    case HUB_CONTENT:
    case HUB_REPO: break;
    }
    return KEPT_NOTHING;
}

static str text_of(yyjson_val *json, const char *key)
{
    yyjson_val *v = yyjson_obj_get(json, key);
    return yyjson_is_str(v) ? (str){yyjson_get_str(v), yyjson_get_len(v)} : STR_EMPTY;
}

static char *copy(str text)
{
    char *bytes = mem_alloc(text.len + 1);
    if (!bytes)
        return NULL;
    memcpy(bytes, text.ptr, text.len);
    bytes[text.len] = '\0';
    return bytes;
}

/* ---- what is kept ---- */

static bool is_one_of(str text, const char *const *words)
{
    for (; *words; words++)
        if (str_eq(text, str_of(*words)))
            return true;
    return false;
}

/* The members of an json, but those with, or without, these names. */
static void put_members(buf *out, yyjson_val *json, const char *const *names, bool only)
{
    size_t index, count;
    yyjson_val *key, *value;
    bool first = true;
    buf_addc(out, '{');
    yyjson_obj_foreach(json, index, count, key, value)
    {
        str name = {yyjson_get_str(key), yyjson_get_len(key)};
        if (is_one_of(name, names) != only)
            continue;
        buf_addz(out, first ? "" : ",");
        first = false;
        buf_add_json(out, name);
        buf_addc(out, ':');
        json_write(out, value);
    }
    buf_addc(out, '}');
}

/* What a plan reads of a kind; NULL: all there is. */
static const char *const *needed(kept_kind kind, bool of_status)
{
    static const char *const of_node[] = {"conditions", "nodeInfo", NULL};
    static const char *const deployed[] = {"deploymentID", "paused", NULL};
    static const char *const applied[] = {"appliedDeploymentID", "ready", "nonModified",
                                          "conditions", NULL};
    static const char *const of_cluster[] = {"namespace", "agent", NULL};
    if (kind == KEPT_DEPLOYMENT)
        return of_status ? applied : deployed;
    if (!of_status)
        return NULL;
    return kind == KEPT_NODE ? of_node : kind == KEPT_CLUSTER ? of_cluster : NULL;
}

static void put_part(buf *out, yyjson_val *json, const char *const *only)
{
    static const char *const none[] = {NULL};
    put_members(out, json, only ? only : none, only != NULL);
}

static void put_document(buf *out, kept_kind kind, yyjson_val *json)
{
    static const char *const of_no_use[] = {"managedFields", NULL};
    buf_addf(out, "{\"apiVersion\":\"%s\",\"kind\":\"%s\",\"metadata\":", kinds[kind].api,
             kinds[kind].kind);
    put_members(out, yyjson_obj_get(json, "metadata"), of_no_use, false);
    buf_addz(out, ",\"spec\":");
    put_part(out, yyjson_obj_get(json, "spec"), needed(kind, false));
    if (kind != KEPT_BUNDLE && kind != KEPT_CLUSTER_GROUP && kind != KEPT_MAPPING) {
        buf_addz(out, ",\"status\":");
        put_part(out, yyjson_obj_get(json, "status"), needed(kind, true));
    }
    buf_addc(out, '}');
}

/* ---- what people change ---- */

static bool is_ready(yyjson_val *json)
{
    size_t index, count;
    yyjson_val *c;
    yyjson_val *list = yyjson_obj_get(yyjson_obj_get(json, "status"), "conditions");
    yyjson_arr_foreach(list, index, count, c)
    {
        if (str_eq(text_of(c, "type"), STR("Ready")))
            return str_eq(text_of(c, "status"), STR("True"));
    }
    return false;
}

/* Labels that Drover writes are no news. */
static void put_own_labels(buf *out, yyjson_val *labels)
{
    size_t index, count;
    yyjson_val *key, *value;
    yyjson_obj_foreach(labels, index, count, key, value)
    {
        str name = {yyjson_get_str(key), yyjson_get_len(key)};
        if (str_starts(name, STR(KEY_PREFIX "status_")))
            continue;
        buf_add_json(out, name);
        json_write(out, value);
    }
}

/* What people say of a Bundle by annotations; Drover's own record changes with every release. */
static void put_own_annotations(buf *out, yyjson_val *annotations)
{
    size_t index, count;
    yyjson_val *key, *value;
    yyjson_obj_foreach(annotations, index, count, key, value)
    {
        if (yyjson_equals_str(key, KEPT_RECORD))
            continue;
        json_write(out, key);
        json_write(out, value);
    }
}

static uint64_t digest_of(kept_kind kind, yyjson_val *json)
{
    scoped(buf_done) buf text = BUF(LIMIT_TEXT_BYTES);
    yyjson_val *head = yyjson_obj_get(json, "metadata");
    if (yyjson_obj_get(json, "spec"))
        json_write(&text, yyjson_obj_get(json, "spec"));
    if (yyjson_obj_get(head, "labels"))
        put_own_labels(&text, yyjson_obj_get(head, "labels"));
    if (kind == KEPT_NODE)
        buf_addc(&text, is_ready(json) ? 'r' : 'n');
    if (kind == KEPT_SKYHOOK || kind == KEPT_BUNDLE)
        put_own_annotations(&text, yyjson_obj_get(head, "annotations"));
    return str_hash(buf_str(&text));
}

/* ---- seen and gone ---- */

static void object_free(kept_object *o)
{
    if (!o)
        return;
    mem_free(o->name);
    mem_free(o->acts);
    buf_done(&o->document);
    buf_done(&o->labels);
    mem_free(o);
}

static kept_object *object_at(kept *k, kept_kind kind, str name, bool *ret_new)
{
    uint64_t *known = strmap_get(&k->of[kind], name);
    *ret_new = !known;
    if (known)
        return (kept_object *)(uintptr_t)*known;
    kept_object *o = mem_zalloc(sizeof *o);
    if (o)
        o->name = copy(name);
    if (!o || !o->name || !strmap_put(&k->of[kind], str_of(o->name), (uintptr_t)o)) {
        object_free(o);
        return NULL;
    }
    return o;
}

str kept_key(yyjson_val *json, buf *text)
{
    yyjson_val *head = yyjson_obj_get(json, "metadata");
    str space = text_of(head, "namespace"), name = text_of(head, "name");
    if (space.len == 0)
        return name;
    buf_addf(text, "%.*s/%.*s", STR_ARG(space), STR_ARG(name));
    return buf_str(text);
}

/* What agents and Drover itself write of deployments is no news, and there is much of it. */
static bool is_news(kept_kind kind, kept_object *o, bool is_new, yyjson_val *json)
{
    if (kind == KEPT_DEPLOYMENT)
        return false;
    uint64_t digest = digest_of(kind, json);
    bool changed = is_new || digest != o->digest;
    o->digest = digest;
    return changed;
}

bool kept_seen(kept *k, kept_kind kind, yyjson_val *json)
{
    bool is_new;
    scoped(buf_done) buf key = BUF(LIMIT_PATH_BYTES);
    yyjson_val *head = yyjson_obj_get(json, "metadata");
    yyjson_val *notes = yyjson_obj_get(head, "annotations");
    const char *acts = kind == KEPT_BUNDLE ? KEY_BUNDLE_ACTS : KEY_ACTS;
    kept_object *o =
        kind == KEPT_NOTHING ? NULL : object_at(k, kind, kept_key(json, &key), &is_new);
    if (!o)
        return false; /* it is shown without: the engine knows it all the same */
    o->document.max = o->labels.max = LIMIT_TEXT_BYTES;
    buf_clear(&o->document);
    buf_clear(&o->labels);
    put_document(&o->document, kind, json);
    if (yyjson_obj_get(head, "labels"))
        json_write(&o->labels, yyjson_obj_get(head, "labels"));
    mem_free(o->acts);
    o->acts = yyjson_obj_get(notes, acts) ? copy(text_of(notes, acts)) : NULL;
    o->paused = yyjson_is_true(yyjson_obj_get(yyjson_obj_get(json, "spec"), "paused"));
    snprintf(o->version, sizeof o->version, "%.*s", STR_ARG(text_of(head, "resourceVersion")));
    return is_news(kind, o, is_new, json);
}

bool kept_gone(kept *k, kept_kind kind, str name)
{
    uint64_t *known = kind != KEPT_NOTHING ? strmap_get(&k->of[kind], name) : NULL;
    if (!known)
        return false;
    kept_object *o = (kept_object *)(uintptr_t)*known;
    strmap_remove(&k->of[kind], name);
    object_free(o);
    return kind != KEPT_DEPLOYMENT;
}

const kept_object *kept_find(const kept *k, kept_kind kind, str name)
{
    uint64_t *known = strmap_get(&k->of[kind], name);
    return known ? (const kept_object *)(uintptr_t)*known : NULL;
}

void kept_clear(kept *k)
{
    for (size_t kind = 0; kind < KEPT_NOTHING; kind++) {
        for (size_t i = 0; i < k->of[kind].len; i++)
            object_free((kept_object *)(uintptr_t)k->of[kind].entries[i].value);
        strmap_done(&k->of[kind]);
    }
}
