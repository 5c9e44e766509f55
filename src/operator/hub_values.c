/* SPDX-License-Identifier: Apache-2.0 */
/* Secrets beside a Bundle that it cannot do without: where Fleet's own programs make Bundles,
 * spec.valuesHash says that there are Helm values in one, and which, and another may open the
 * registry (hub_access.c). Without them nothing is deployed; until they are read, what was known of
 * the Bundle holds. */
#include "base/log.h"
#include "base/mem.h"
#include "operator/bundle_values.h"
#include "operator/hub_internal.h"

#define AGAIN_MS 5000

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

/* The Bundle with its values, in the scratch memory. */
static yyjson_val *with_values(cluster_shell *s, const hub_bundle *b, yyjson_val *secret,
                               err *error)
{
    yyjson_val *json = json_parse(s->scratch, str_of(b->unread), error);
    return json ? bundle_with_values(s->scratch, json, secret, error) : NULL;
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
