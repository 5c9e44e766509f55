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
    case HUB_DEPLOYMENT: /* what agents and Drover write of them is no news, and there are many */
    case HUB_CONTENT:
    case HUB_REPO:
    case HUB_NAMESPACE: break; /* the shell gives it to a plan */
    }
    return KEPT_NOTHING;
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

static void put_key(buf *out, str name, bool *first)
{
    buf_addz(out, *first ? "" : ",");
    *first = false;
    buf_add_json(out, name);
    buf_addc(out, ':');
}

/* The members of an object that have one of these names; NULL: all of them. */
static void put_members(buf *out, yyjson_val *json, const char *const *only)
{
    size_t index, count;
    yyjson_val *key, *value;
    bool first = true;
    buf_addc(out, '{');
    yyjson_obj_foreach(json, index, count, key, value)
    {
        str name = {yyjson_get_str(key), yyjson_get_len(key)};
        if (only && !is_one_of(name, only))
            continue;
        put_key(out, name, &first);
        json_write(out, value);
    }
    buf_addc(out, '}');
}

/* Of a node those that are Drover's. What kubectl applied is the whole document once more. */
static bool is_annotation_kept(kept_kind kind, str name)
{
    return kind == KEPT_NODE ? str_starts(name, STR(KEY_PREFIX))
                             : !str_eq(name, STR("kubectl.kubernetes.io/"
                                                 "last-applied-configuration"));
}

static void put_annotations(buf *out, kept_kind kind, yyjson_val *json)
{
    size_t index, count;
    yyjson_val *key, *value;
    bool first = true;
    buf_addc(out, '{');
    yyjson_obj_foreach(json, index, count, key, value)
    {
        str name = {yyjson_get_str(key), yyjson_get_len(key)};
        if (!is_annotation_kept(kind, name))
            continue;
        put_key(out, name, &first);
        json_write(out, value);
    }
    buf_addc(out, '}');
}

/* Where the labels are, and how long they are. */
typedef struct kept_part {
    size_t at, len;
} kept_part;

static kept_part put_metadata(buf *out, kept_kind kind, yyjson_val *json)
{
    static const char *const of_no_use[] = {"managedFields", "resourceVersion", NULL};
    kept_part labels = {0, 0};
    size_t index, count;
    yyjson_val *key, *value;
    bool first = true;
    buf_addc(out, '{');
    yyjson_obj_foreach(json, index, count, key, value)
    {
        str name = {yyjson_get_str(key), yyjson_get_len(key)};
        if (is_one_of(name, of_no_use))
            continue;
        put_key(out, name, &first);
        size_t before = out->len;
        if (str_eq(name, STR("annotations")))
            put_annotations(out, kind, value);
        else
            json_write(out, value);
        if (str_eq(name, STR("labels")))
            labels = (kept_part){before, out->len - before};
    }
    buf_addc(out, '}');
    return labels;
}

/* Heartbeats, addresses, images and sizes of a node are long, and no plan reads them. */
static void put_node_status(buf *out, yyjson_val *status)
{
    static const char *const boot[] = {"bootID", NULL};
    static const char *const of_condition[] = {"type", "status", NULL};
    size_t index, count;
    yyjson_val *one;
    buf_addz(out, "{\"nodeInfo\":");
    put_members(out, yyjson_obj_get(status, "nodeInfo"), boot);
    buf_addz(out, ",\"conditions\":[");
    yyjson_arr_foreach(yyjson_obj_get(status, "conditions"), index, count, one)
    {
        if (str_eq(json_text_of(one, "type"), STR("Ready"))) {
            put_members(out, one, of_condition);
            break;
        }
    }
    buf_addz(out, "]}");
}

/* A mapping has no spec. */
static void put_selectors(buf *out, yyjson_val *json)
{
    static const char *const names[] = {"bundleSelector", "namespaceSelector"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        yyjson_val *value = yyjson_obj_get(json, names[i]);
        if (!value)
            continue;
        buf_addf(out, ",\"%s\":", names[i]);
        json_write(out, value);
    }
}

static kept_part put_document(buf *out, kept_kind kind, yyjson_val *json)
{
    static const char *const of_node[] = {"taints", "unschedulable", NULL};
    static const char *const of_cluster[] = {"namespace", "agent", NULL};
    yyjson_val *status = yyjson_obj_get(json, "status");
    buf_addf(out, "{\"apiVersion\":\"%s\",\"kind\":\"%s\",\"metadata\":", kinds[kind].api,
             kinds[kind].kind);
    kept_part labels = put_metadata(out, kind, yyjson_obj_get(json, "metadata"));
    if (kind == KEPT_MAPPING)
        put_selectors(out, json);
    else
        buf_addz(out, ",\"spec\":");
    if (kind != KEPT_MAPPING)
        put_members(out, yyjson_obj_get(json, "spec"), kind == KEPT_NODE ? of_node : NULL);
    if (kind != KEPT_CLUSTER_GROUP && kind != KEPT_MAPPING)
        buf_addz(out, ",\"status\":");
    if (kind == KEPT_NODE)
        put_node_status(out, status);
    else if (kind != KEPT_CLUSTER_GROUP && kind != KEPT_MAPPING)
        put_members(out, status, kind == KEPT_CLUSTER ? of_cluster : NULL);
    buf_addc(out, '}');
    return labels;
}

/* A heartbeat changes nothing of it. Without memory there is none. */
static void keep_document(kept_object *o, kept_kind kind, yyjson_val *json)
{
    scoped(buf_done) buf text = BUF(LIMIT_TEXT_BYTES);
    kept_part labels = put_document(&text, kind, json);
    if (o->document && !text.failed && str_eq(str_of(o->document), buf_str(&text)))
        return;
    mem_free(o->document);
    o->document = text.failed ? NULL : copy(buf_str(&text));
    o->labels = o->document ? (str){o->document + labels.at, labels.len} : STR_EMPTY;
}

/* ---- what people change ---- */

static bool is_ready(yyjson_val *json)
{
    size_t index, count;
    yyjson_val *c;
    yyjson_val *list = yyjson_obj_get(yyjson_obj_get(json, "status"), "conditions");
    yyjson_arr_foreach(list, index, count, c)
    {
        if (str_eq(json_text_of(c, "type"), STR("Ready")))
            return str_eq(json_text_of(c, "status"), STR("True"));
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
    yyjson_val *generation = yyjson_obj_get(head, "generation"); /* grows with the spec */
    yyjson_val *said = generation ? generation : yyjson_obj_get(json, "spec");
    if (said)
        json_write(&text, said);
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
    mem_free(o->document);
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
    str space = json_text_of(head, "namespace"), name = json_text_of(head, "name");
    if (space.len == 0)
        return name;
    buf_addf(text, "%.*s/%.*s", STR_ARG(space), STR_ARG(name));
    return buf_str(text);
}

static bool is_news(kept_kind kind, kept_object *o, bool is_new, yyjson_val *json)
{
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
    if (kind != KEPT_BUNDLE)
        keep_document(o, kind, json); /* without it, it is missing in plans */
    mem_free(o->acts);
    o->acts = yyjson_obj_get(notes, acts) ? copy(json_text_of(notes, acts)) : NULL;
    o->paused = yyjson_is_true(yyjson_obj_get(yyjson_obj_get(json, "spec"), "paused"));
    snprintf(o->version, sizeof o->version, "%.*s", STR_ARG(json_text_of(head, "resourceVersion")));
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
    return true;
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
