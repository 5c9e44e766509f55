/* SPDX-License-Identifier: Apache-2.0 */
#include "console/kept.h"

#include "base/limits.h"
#include "base/mem.h"
#include "model/document.h"
#include "operator/act_request.h"
#include "operator/object_names.h"

static const struct {
    const char *kind, *api;
} kinds[] = {
    [SHELL_NODE] = {"Node", "v1"},
    [SHELL_POLICY] = {"DeploymentPolicy", "skyhook.nvidia.com/v1alpha1"},
    [SHELL_SKYHOOK] = {"Skyhook", "skyhook.nvidia.com/v1alpha1"},
};

const char *kept_kind_text(shell_kind kind)
{
    return kinds[kind].kind;
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

static void put_document(buf *out, shell_kind kind, yyjson_val *json)
{
    static const char *const of_no_use[] = {"managedFields", NULL};
    static const char *const of_node[] = {"conditions", "nodeInfo", NULL};
    static const char *const none[] = {NULL};
    bool of_nodes = kind == SHELL_NODE;
    buf_addf(out, "{\"apiVersion\":\"%s\",\"kind\":\"%s\",\"metadata\":", kinds[kind].api,
             kinds[kind].kind);
    put_members(out, yyjson_obj_get(json, "metadata"), of_no_use, false);
    buf_addz(out, ",\"spec\":");
    put_members(out, yyjson_obj_get(json, "spec"), none, false);
    buf_addz(out, ",\"status\":");
    put_members(out, yyjson_obj_get(json, "status"), of_nodes ? of_node : none, of_nodes);
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

static uint64_t digest_of(shell_kind kind, yyjson_val *json)
{
    scoped(buf_done) buf text = BUF(LIMIT_TEXT_BYTES);
    yyjson_val *head = yyjson_obj_get(json, "metadata");
    if (yyjson_obj_get(json, "spec"))
        json_write(&text, yyjson_obj_get(json, "spec"));
    if (yyjson_obj_get(head, "labels"))
        put_own_labels(&text, yyjson_obj_get(head, "labels"));
    if (kind == SHELL_NODE)
        buf_addc(&text, is_ready(json) ? 'r' : 'n');
    if (kind == SHELL_SKYHOOK && yyjson_obj_get(head, "annotations"))
        json_write(&text, yyjson_obj_get(head, "annotations"));
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

static kept_object *object_at(kept *k, shell_kind kind, str name, bool *ret_new)
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

bool kept_seen(kept *k, shell_kind kind, yyjson_val *json)
{
    bool is_new;
    if (kind > SHELL_SKYHOOK)
        return false;
    yyjson_val *head = yyjson_obj_get(json, "metadata");
    yyjson_val *notes = yyjson_obj_get(head, "annotations");
    kept_object *o = object_at(k, kind, text_of(head, "name"), &is_new);
    if (!o)
        return false; /* it is shown without: the engine knows it all the same */
    o->document.max = o->labels.max = LIMIT_TEXT_BYTES;
    buf_clear(&o->document);
    buf_clear(&o->labels);
    put_document(&o->document, kind, json);
    if (yyjson_obj_get(head, "labels"))
        json_write(&o->labels, yyjson_obj_get(head, "labels"));
    mem_free(o->acts);
    o->acts = yyjson_obj_get(notes, KEY_ACTS) ? copy(text_of(notes, KEY_ACTS)) : NULL;
    snprintf(o->version, sizeof o->version, "%.*s", STR_ARG(text_of(head, "resourceVersion")));
    uint64_t digest = digest_of(kind, json);
    bool changed = is_new || digest != o->digest;
    o->digest = digest;
    return changed;
}

bool kept_gone(kept *k, shell_kind kind, str name)
{
    uint64_t *known = kind <= SHELL_SKYHOOK ? strmap_get(&k->of[kind], name) : NULL;
    if (!known)
        return false;
    kept_object *o = (kept_object *)(uintptr_t)*known;
    strmap_remove(&k->of[kind], name);
    object_free(o);
    return true;
}

const kept_object *kept_find(const kept *k, shell_kind kind, str name)
{
    uint64_t *known = strmap_get(&k->of[kind], name);
    return known ? (const kept_object *)(uintptr_t)*known : NULL;
}

void kept_clear(kept *k)
{
    for (size_t kind = 0; kind <= SHELL_SKYHOOK; kind++) {
        for (size_t i = 0; i < k->of[kind].len; i++)
            object_free((kept_object *)(uintptr_t)k->of[kind].entries[i].value);
        strmap_done(&k->of[kind]);
    }
}
