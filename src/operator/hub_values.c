/* SPDX-License-Identifier: Apache-2.0 */
/* Secrets beside a Bundle that it cannot do without: where Fleet's own programs make Bundles,
 * spec.valuesHash says that there are Helm values in one, and which, and another may open the
 * registry (hub_access.c). Without them nothing is deployed; until they are read, what was known of
 * the Bundle holds. */
#include "base/base64.h"
#include "base/log.h"
#include "base/mem.h"
#include "engine/fleet_names.h"
#include "engine/go_json.h"
#include "operator/hub_internal.h"

#define AGAIN_MS 5000
#define ALL_TARGETS "values.yaml" /* a key of the Secret; all others are names of targets */

void hub_values_forget(hub_bundle *b)
{
    b->unread = mem_free(b->unread);
    hub_access_free(b->access_next);
    b->access_next = NULL;
    b->unread_until_ms = 0;
}

void hub_values_want(cluster_shell *s, hub_bundle *b, yyjson_val *json)
{
    hub_values_forget(b);
    hub_set_json(s, &b->unread, json);
    hub_access_want(s, b, yyjson_obj_get(json, "spec"));
}

/* ---- the Secret ---- */

/* Of its data, keys sorted and values as they are sent. */
static bool has_hash(yyjson_val *data, str wanted)
{
    char hex[SHA256_HEX_BYTES];
    buf text = BUF(LIMIT_TEXT_BYTES);
    go_value(&text, data);
    bool same = !text.failed && sha256_hex(buf_str(&text), hex) && str_eq(str_of(hex), wanted);
    buf_done(&text);
    return same;
}

/* The values under a key, in the document; NULL with "good" as it was: there are none. */
static yyjson_mut_val *values_of(cluster_shell *s, yyjson_mut_doc *doc, yyjson_val *data, str key,
                                 bool *good)
{
    str letters = go_str(go_member(data, key));
    buf text = BUF(LIMIT_TEXT_BYTES);
    yyjson_mut_val *copy = NULL;
    if (letters.ptr && letters.len > 0) {
        yyjson_val *read = base64_decode(letters, &text)
                               ? json_parse(s->scratch, buf_str(&text), NULL)
                               : NULL;
        if (yyjson_is_obj(read))
            copy = yyjson_val_mut_copy(doc, read);
        *good = *good && copy;
    }
    buf_done(&text);
    return copy;
}

/* Puts them where they would stand if the Bundle had them itself. */
static bool put_values(yyjson_mut_doc *doc, yyjson_mut_val *options, yyjson_mut_val *values)
{
    yyjson_mut_val *helm = yyjson_mut_obj_get(options, "helm");
    if (!yyjson_mut_is_obj(helm)) {
        yyjson_mut_obj_remove_key(options, "helm");
        helm = yyjson_mut_obj_add_obj(doc, options, "helm");
    }
    yyjson_mut_obj_remove_key(helm, "values");
    return helm && yyjson_mut_obj_add_val(doc, helm, "values", values);
}

static bool put_all(cluster_shell *s, yyjson_mut_doc *doc, yyjson_val *data)
{
    bool good = true;
    yyjson_mut_val *spec = yyjson_mut_obj_get(yyjson_mut_doc_get_root(doc), "spec"), *target;
    yyjson_mut_val *values = values_of(s, doc, data, STR(ALL_TARGETS), &good);
    if (values)
        good = put_values(doc, spec, values);
    size_t i, max;
    yyjson_mut_arr_foreach(yyjson_mut_obj_get(spec, "targets"), i, max, target)
    {
        const char *name = yyjson_mut_get_str(yyjson_mut_obj_get(target, "name"));
        values = name ? values_of(s, doc, data, str_of(name), &good) : NULL;
        if (values)
            good = put_values(doc, target, values) && good;
    }
    return good;
}

/* The Bundle with its values, in the scratch memory. */
static yyjson_val *with_values(cluster_shell *s, const hub_bundle *b, yyjson_val *secret,
                               err *error)
{
    yyjson_val *json = json_parse(s->scratch, str_of(b->unread), error);
    yyjson_val *data = yyjson_obj_get(secret, "data");
    if (!json)
        return NULL;
    if (!has_hash(data, read_text(yyjson_obj_get(json, "spec"), "valuesHash"))) {
        err_set(error, "the values in Secret %s are not those of valuesHash", b->key);
        return NULL;
    }
    yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    yyjson_mut_val *root = doc ? yyjson_val_mut_copy(doc, json) : NULL;
    yyjson_val *made = NULL;
    if (root)
        yyjson_mut_doc_set_root(doc, root);
    if (root && put_all(s, doc, data)) {
        size_t len = 0;
        char *text = yyjson_mut_write(doc, 0, &len);
        made = text ? json_parse(s->scratch, (str){text, len}, error) : NULL;
        if (!text)
            err_memory(error);
        (free)(text);
    } else if (root) {
        err_set(error, "the values in Secret %s are no JSON objects", b->key);
    } else {
        err_memory(error);
    }
    yyjson_mut_doc_free(doc);
    return made;
}

/* ---- reading ---- */

static void again_later(cluster_shell *s, hub_bundle *b, const err *error)
{
    if (err_is_memory(error))
        hub_memory(s);
    else
        hub_bundle_refuse(s, b, error->text);
    b->unread_until_ms = s->now_ms + AGAIN_MS;
}

static void finish(cluster_shell *s, hub_bundle *b, yyjson_val *json, const err *error)
{
    b->asked = true;
    if (!json) {
        again_later(s, b, error);
        return;
    }
    hub_bundle_take(s, b, json);
    hub_values_forget(b);
}

static bool lacks_access(const hub_bundle *b)
{
    return b->unread && b->access_next && !b->access_next->data;
}

static void is_read(cluster_shell *s, const hub_ticket *t, const write_outcome *how,
                    yyjson_val *secret)
{
    err error;
    hub_bundle *b = hub_find(&s->bundles, hub_text(t->bundle));
    if (!b)
        return;
    b->reading = false;
    if (!b->unread || t->number != b->digest)
        return; /* it changed meanwhile: the next turn reads anew */
    yyjson_val *json = NULL;
    if (how->kind == WRITE_GONE)
        err_set(&error, "Secret %s with the values of valuesHash does not exist", b->key);
    else if (how->kind != WRITE_DONE)
        err_set(&error, "Secret %s with the values of valuesHash: %s", b->key, how->message);
    else
        json = with_values(s, b, secret, &error);
    finish(s, b, json, &error);
}

/* What opens the registry comes first, so that it is as old as the Bundle at most. */
static void access_is_read(cluster_shell *s, const hub_ticket *t, const write_outcome *how,
                           yyjson_val *secret)
{
    err error;
    hub_bundle *b = hub_find(&s->bundles, hub_text(t->bundle));
    if (!b)
        return;
    b->reading = false;
    if (!lacks_access(b) || t->number != b->digest)
        return;
    const char *name = b->access_next->name;
    yyjson_val *json = NULL;
    if (how->kind == WRITE_GONE)
        err_set(&error, "Secret %.*s/%s for its registry does not exist", STR_ARG(b->space), name);
    else if (how->kind != WRITE_DONE)
        err_set(&error, "Secret %.*s/%s for its registry: %s", STR_ARG(b->space), name,
                how->message);
    else if (hub_access_read(s, b->access_next, secret, &error))
        json = json_parse(s->scratch, str_of(b->unread), &error);
    if (json && read_text(yyjson_obj_get(json, "spec"), "valuesHash").len > 0)
        return; /* now its values */
    finish(s, b, json, &error);
}

void hub_values_step(cluster_shell *s, hub_bundle *b)
{
    if (!b->unread || b->reading || b->unread_until_ms > s->now_ms)
        return;
    bool first = lacks_access(b);
    str secrets = arena_printf(s->scratch, "/api/v1/namespaces/%.*s/secrets", STR_ARG(b->space));
    kube_write w = {.verb = WRITE_READ,
                    .collection = secrets,
                    .name = first ? str_of(b->access_next->name) : b->name};
    hub_ticket ticket = {
        .done = first ? access_is_read : is_read, .bundle = b->key, .number = b->digest};
    b->reading = secrets.ptr && hub_send(s, &w, ticket);
    if (!b->reading) {
        b->asked = true;
        b->unread_until_ms = s->now_ms + AGAIN_MS;
    }
}

bool hub_values_asked(const cluster_shell *s)
{
    HUB_EACH(&s->bundles, const hub_bundle, b)
    if (b->unread && !b->asked)
        return false;
    return true;
}
