/* SPDX-License-Identifier: Apache-2.0 */
/* Where each object goes, and the text that is applied there. */
#include "base/mem.h"
#include "cluster_agent/manifest_internal.h"
#include "engine/go_json.h"
#include "model/document.h"
#include "operator/bundle_json.h"

/* ---- bodies ---- */

/* What only a server may say: an apply that has it is refused, or means more than it should. */
static bool servers_own(str key)
{
    static const str keys[] = {STR("managedFields"),     STR("resourceVersion"), STR("uid"),
                               STR("creationTimestamp"), STR("generation"),      STR("selfLink"),
                               STR("deletionTimestamp")};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (str_eq(keys[i], key))
            return true;
    return false;
}

static void put_member(buf *out, str key, const yyjson_val *value)
{
    json_key_of(out, key);
    json_write(out, value);
}

static bool has(const yyjson_val *map, str key)
{
    return map && go_member(map, key);
}

/* A map of texts, with others laid over it and one more; nothing when all of it is empty. */
static void put_map(buf *out, const char *name, const yyjson_val *map, const yyjson_val *over,
                    const label *last)
{
    size_t start = out->len;
    yyjson_val *key;
    json_open(out, name);
    size_t inside = out->len;
    yyjson_obj_iter walk = yyjson_obj_iter_with((yyjson_val *)(uintptr_t)map);
    while ((key = yyjson_obj_iter_next(&walk))) {
        str k = go_str(key);
        if (!has(over, k) && !(last && str_eq(last->key, k)))
            put_member(out, k, yyjson_obj_iter_get_val(key));
    }
    walk = yyjson_obj_iter_with((yyjson_val *)(uintptr_t)over);
    while ((key = yyjson_obj_iter_next(&walk)))
        if (!(last && str_eq(last->key, go_str(key))))
            put_member(out, go_str(key), yyjson_obj_iter_get_val(key));
    if (last) {
        json_key_of(out, last->key);
        go_text(out, last->value);
    }
    json_close(out);
    if (!out->failed && out->len == inside + 1)
        out->len = start;
}

typedef struct body_more {
    const label *owner; /* NULL: nobody owns it */
    const label *keep;
    const yyjson_val *labels, *annotations;
} body_more;

static void put_metadata(buf *out, const wanted_object *o, const yyjson_val *json,
                         const body_more *more)
{
    const yyjson_val *meta = go_member(json, STR("metadata"));
    json_open(out, "metadata");
    json_text(out, "name", o->ref.name);
    json_text_if(out, "namespace", o->ref.namespace_);
    put_map(out, "labels", go_member(meta, STR("labels")), more->labels, more->owner);
    put_map(out, "annotations", go_member(meta, STR("annotations")), more->annotations, more->keep);
    yyjson_obj_iter walk = yyjson_obj_iter_with((yyjson_val *)(uintptr_t)meta);
    for (yyjson_val *key; (key = yyjson_obj_iter_next(&walk));) {
        str k = go_str(key);
        if (servers_own(k) || str_eq(k, STR("name")) || str_eq(k, STR("namespace")) ||
            str_eq(k, STR("labels")) || str_eq(k, STR("annotations")))
            continue;
        put_member(out, k, yyjson_obj_iter_get_val(key));
    }
    json_close(out);
}

static void put_body(buf *out, const wanted_object *o, const yyjson_val *json,
                     const body_more *more)
{
    buf_addc(out, '{');
    json_text(out, "apiVersion", o->ref.api_version);
    json_text(out, "kind", o->ref.kind);
    put_metadata(out, o, json, more);
    yyjson_obj_iter walk = yyjson_obj_iter_with((yyjson_val *)(uintptr_t)json);
    for (yyjson_val *key; (key = yyjson_obj_iter_next(&walk));) {
        str k = go_str(key);
        if (!str_eq(k, STR("apiVersion")) && !str_eq(k, STR("kind")) &&
            !str_eq(k, STR("metadata")) && !str_eq(k, STR("status")))
            put_member(out, k, yyjson_obj_iter_get_val(key));
    }
    json_close(out);
}

static bool is_release_namespace(const manifest *m, const wanted_object *o)
{
    return str_eq(o->ref.kind, STR("Namespace")) && object_group(o->ref.api_version).len == 0 &&
           str_eq(o->ref.name, m->release_namespace);
}

/* What was read, for as long as it is needed: of all objects it would be many times their text. A
 * namespace that nobody wrote down is NULL. False without memory. */
static bool parse_text(arena *a, const wanted_object *o, const yyjson_val **ret, err *error)
{
    *ret = NULL;
    if (o->text.len > 0)
        *ret = json_parse_within(a, o->text, o->text.len, error);
    return *ret || o->text.len == 0;
}

static bool define(discovery *d, const wanted_object *o, err *error)
{
    scoped(arena_cleanup) arena *a = arena_new(0);
    const yyjson_val *json;
    if (!a)
        return err_memory(error);
    return parse_text(a, o, &json, error) && discovery_define(d, json, error);
}

static bool write_body(arena *a, const manifest *m, wanted_object *o, err *error)
{
    scoped(arena_cleanup) arena *reading = arena_new(0);
    const yyjson_val *json;
    if (!reading)
        return err_memory(error);
    if (!parse_text(reading, o, &json, error))
        return false;
    str owner_value = owner_label(a, m->owner);
    label owner = {STR(LABEL_OWNER), owner_value}, keep = {STR(ANNOTATION_KEEP), STR("keep")};
    body_more more = {0};
    if (!owner_value.ptr)
        return err_memory(error);
    if (!o->shared && !m->is_chart) /* what helm made has helm's own marks */
        more.owner = &owner;
    if (o->definition && !m->delete_definitions && !m->is_chart)
        more.keep = &keep;
    if (is_release_namespace(m, o)) {
        more.labels = m->namespace_labels;
        more.annotations = m->namespace_annotations;
    }
    buf text = BUF(LIMIT_TEXT_BYTES);
    put_body(&text, o, json, &more);
    o->body = text.failed ? (str){NULL, 0} : arena_str(a, buf_str(&text));
    buf_done(&text);
    if (!o->body.ptr)
        return err_memory(error);
    return object_ref_keep(a, &o->ref) || err_memory(error);
}

/* ---- namespaces ---- */

static bool has_no_namespace(const wanted_object *o, err *error)
{
    return err_set(error,
                   "%s %s has no namespace, but options.namespace puts everything into one; "
                   "consider defaultNamespace",
                   str_shown(o->ref.kind).text, str_shown(o->ref.name).text);
}

static bool has_no_kind(const wanted_object *o, err *error)
{
    return err_set(error, "the cluster has no kind %s in %s, wanted by \"%s\"",
                   str_shown(o->ref.kind).text, str_shown(o->ref.api_version).text,
                   str_shown(o->ref.name).text);
}

bool manifest_confined(const manifest *m, const discovery *d, bool *ret_unknown, err *error)
{
    *ret_unknown = false;
    for (size_t i = 0; i < m->len; i++) {
        const wanted_object *o = &m->at[i];
        str namespace_ = o->ref.namespace_;
        const discovery_kind *kind = discovery_find(d, o->ref.api_version, o->ref.kind);
        *ret_unknown = !kind || kind->defined;
        if (*ret_unknown)
            return has_no_kind(o, error);
        if (o->listing)
            return err_set(error,
                           "%s %s has items, which helm takes for objects, each of a place of "
                           "its own",
                           str_shown(o->ref.kind).text, str_shown(o->ref.name).text);
        if (is_release_namespace(m, o))
            continue;
        if (!kind->namespaced)
            return has_no_namespace(o, error);
        if (namespace_.len > 0 && !str_eq(namespace_, m->release_namespace))
            return err_set(error, "%s %s: metadata.namespace: found \"%s\", allowed \"%s\"",
                           str_shown(o->ref.kind).text, str_shown(o->ref.name).text,
                           str_shown(namespace_).text, str_shown(m->release_namespace).text);
    }
    return true;
}

/* What helm rendered is where helm put it. */
static bool set_namespace(const manifest *m, const discovery_kind *kind, wanted_object *o,
                          err *error)
{
    bool forced = m->namespace_forced && !m->is_chart;
    if (!kind->namespaced) {
        o->ref.namespace_ = STR_EMPTY;
        return !forced || o->shared || is_release_namespace(m, o) || has_no_namespace(o, error);
    }
    if (forced || o->ref.namespace_.len == 0)
        o->ref.namespace_ = m->release_namespace;
    return object_path_part(o->ref.namespace_) ||
           err_set(error, "%s %s: metadata.namespace: found \"%s\", allowed the name of one",
                   str_shown(o->ref.kind).text, str_shown(o->ref.name).text,
                   str_shown(o->ref.namespace_).text);
}

static manifest_fault place_one(arena *a, const manifest *m, wanted_object *o, const discovery *d,
                                err *error)
{
    const discovery_kind *kind = discovery_find(d, o->ref.api_version, o->ref.kind);
    if (!kind) {
        has_no_kind(o, error);
        return MANIFEST_UNKNOWN_KIND;
    }
    if (!set_namespace(m, kind, o, error))
        return MANIFEST_BAD;
    buf path = BUF(LIMIT_TEXT_BYTES);
    discovery_collection_put(&path, kind, o->ref.namespace_);
    o->collection = path.failed ? (str){NULL, 0} : arena_str(a, buf_str(&path));
    buf_done(&path);
    if (!o->collection.ptr || !write_body(a, m, o, error)) {
        err_memory(error);
        return MANIFEST_MEMORY;
    }
    return MANIFEST_NONE;
}

/* The list with room for one more. */
static manifest_fault copy_list(arena *a, manifest *m, err *error)
{
    wanted_object *list = ARENA_ARRAY(a, m->len + 1, wanted_object);
    str release = m->is_chart ? m->release : arena_str(a, m->release);
    if (!list || !release.ptr) {
        err_memory(error);
        return MANIFEST_MEMORY;
    }
    if (m->len > 0)
        memcpy(list, m->at, m->len * sizeof *m->at);
    m->at = list;
    m->release = release;
    return MANIFEST_NONE;
}

/* The namespace that the release lives in, unless the manifest brings it itself. */
static void add_namespace(manifest *m)
{
    for (size_t i = 0; i < m->len; i++)
        if (is_release_namespace(m, &m->at[i]))
            return;
    m->at[m->len++] = (wanted_object){
        .ref = {STR("v1"), STR("Namespace"), STR_EMPTY, m->release_namespace}, .shared = true};
}

manifest_fault manifest_place(arena *a, manifest *m, discovery *d, err *error)
{
    bool dressed = !m->rendered && (m->namespace_labels || m->namespace_annotations);
    manifest_fault fault = copy_list(a, m, error);
    if (fault == MANIFEST_NONE && (!m->is_chart || dressed))
        add_namespace(m);
    for (size_t i = 0; fault == MANIFEST_NONE && i < m->len; i++)
        if (m->at[i].definition && !define(d, &m->at[i], error))
            fault = manifest_failed(MANIFEST_BAD, error);
    for (size_t i = 0; fault == MANIFEST_NONE && i < m->len; i++)
        fault = place_one(a, m, &m->at[i], d, error);
    if (fault != MANIFEST_NONE)
        return fault;
    for (size_t i = 0; i < m->len; i++)
        m->at[i].text = STR_EMPTY;
    manifest_sort(m);
    for (size_t i = 1; i < m->len; i++) {
        if (!object_ref_same(&m->at[i - 1].ref, &m->at[i].ref))
            continue;
        err_set(error, "found %s %s twice, allowed once", str_shown(m->at[i].ref.kind).text,
                str_shown(m->at[i].ref.name).text);
        return MANIFEST_BAD;
    }
    return MANIFEST_NONE;
}
