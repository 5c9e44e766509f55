/* SPDX-License-Identifier: Apache-2.0 */
/* BundleDeployments and their Secrets: made, changed and deleted, one write for one change.
 *
 * A release writes the staged and the live version together. A deployment that is held back stays
 * as it is but for "paused": what its version needs of labels and options stays with that version.
 *
 * Its Secret follows it, and is owned by it: so there is none without a deployment, whenever a
 * crash comes, and the values of a version that runs are not those of another, whether or not the
 * release of that took effect. Agents compare them with valuesHash, and ask again until they are
 * the same. A controller that begins cannot know whether it was written where the agent has not
 * applied the version yet: there it is written again. A deployment that goes back to the version
 * that was applied, or to one without values, has a label until its Secret is written, or gone. */
#include <inttypes.h>
#include <stdio.h>

#include "base/log.h"
#include "base/mem.h"
#include "engine/fleet_names.h"
#include "operator/bundle_objects.h"
#include "operator/hub_internal.h"

#define LATER_MS 5000
#define VALUES_UNKNOWN 1 /* of values_sent: what the Secret was given may not have arrived */

/* What a deployment should be. */
typedef struct wish {
    bundle_deployment_order order;
    bundle_deployment_texts texts;
    yyjson_val *labels, *spec;
    uint64_t digest;
    uint64_t values; /* hash of its valuesHash; 0: none */
    bool unsettled;
    hub_release release;
} wish;

static bool paused(const hub_place *p)
{
    return p->bundle->paused || p->cluster->paused;
}

static str version_of(const hub_place *p, char text[SHELL_VERSION_BYTES])
{
    snprintf(text, SHELL_VERSION_BYTES, "%" PRIu64, p->revision);
    return str_of(text);
}

/* ---- answers ---- */

hub_place *hub_place_of(const cluster_shell *s, const hub_ticket *t)
{
    hub_bundle *b = hub_find(&s->bundles, hub_text(t->bundle));
    hub_cluster *c = hub_find(&s->clusters, hub_text(t->cluster));
    return b && c ? hub_place_find(b, c) : NULL;
}

/* why: what is in the way; empty: nothing any more. */
static void tell_kept(cluster_shell *s, hub_place *p, str why)
{
    fact f = {.kind = FACT_KEPT,
              .kept = {.change = str_of(p->bundle->key),
                       .target = hub_label(p),
                       .durable = why.len == 0,
                       .why = why,
                       .passing = true}};
    hub_take(s, &f);
    hub_touch(s, &p->bundle->clock, s->settings.status_every_ms);
    hub_cluster_touch(s, p->cluster);
}

void hub_hold(cluster_shell *s, hub_place *p, const write_outcome *how)
{
    bool later = how->kind == WRITE_LATER || how->kind == WRITE_AMBIGUOUS;
    str why = str_of(how->message[0] != '\0' ? how->message : write_outcome_text(how->kind));
    uint64_t trouble = str_hash(why) | 1;
    if (trouble != p->trouble)
        log_line(LOG_WARN, "Bundle %s on Cluster %s: %.*s", p->bundle->key, p->cluster->key,
                 STR_ARG(why));
    p->held_until_ms = s->now_ms + (later ? LATER_MS : HUB_REFUSED_MS);
    if (!later && how->kind != WRITE_BARRED) /* else it says nothing of this deployment */
        tell_kept(s, p, why);
    p->trouble = trouble;
}

void hub_unhold(cluster_shell *s, hub_place *p)
{
    if (p->trouble)
        tell_kept(s, p, STR_EMPTY);
    p->trouble = 0;
}

static void settle(cluster_shell *s, hub_place *p, const hub_ticket *t, const write_outcome *how)
{
    switch (how->kind) {
    case WRITE_DONE: hub_unhold(s, p); return;
    case WRITE_CONFLICT:
        if (p->revision <= t->revision)
            p->waits_for = t->revision;
        break;
    case WRITE_GONE: break; /* the watch tells, and what is wanted is made anew */
    case WRITE_EXISTS:
    case WRITE_REFUSED:
    case WRITE_BLOCKED:
    case WRITE_LATER:
    case WRITE_AMBIGUOUS:
    case WRITE_BARRED: hub_hold(s, p, how); break;
    }
    p->sent = 0;
    hub_queue(s, p);
}

/* What an answer tells may be gone since, and another one be there. */
static bool is_news(const hub_place *p, yyjson_val *json)
{
    char ignored[SHELL_VERSION_BYTES];
    uint64_t revision = read_revision(json, ignored);
    str uid = read_text(yyjson_obj_get(json, "metadata"), "uid");
    return p->exists ? str_eq(hub_text(p->uid), uid) : revision > p->gone_at;
}

static hub_place *settled_place(cluster_shell *s, const hub_ticket *t, const write_outcome *how)
{
    hub_place *p = hub_place_of(s, t);
    if (!p)
        return NULL;
    p->sending = false;
    if (p->missed)
        hub_queue(s, p);
    settle(s, p, t, how);
    return p;
}

/* The answer is a row: the watch tells what became of it. */
static void changed(cluster_shell *s, const hub_ticket *t, const write_outcome *how,
                    yyjson_val *row)
{
    hub_place *p = settled_place(s, t, how);
    char ignored[SHELL_VERSION_BYTES];
    uint64_t revision = p && row && how->kind == WRITE_DONE ? read_revision(row, ignored) : 0;
    if (!p)
        return;
    if (p->exists && revision > p->revision)
        p->waits_for = revision - 1;
    hub_bundle *b = p->bundle;
    hub_cluster *c = p->cluster;
    hub_place_drop(s, p);
    hub_bundle_drop(s, b);
    hub_cluster_drop(s, c);
}

static void written(cluster_shell *s, const hub_ticket *t, const write_outcome *how,
                    yyjson_val *json)
{
    hub_place *p = settled_place(s, t, how);
    if (!p)
        return;
    hub_bundle *b = p->bundle;
    hub_cluster *c = p->cluster;
    if (json && how->kind == WRITE_DONE && is_news(p, json)) {
        hub_deployments_seen(s, json);
        return;
    }
    hub_place_drop(s, p);
    hub_bundle_drop(s, b);
    hub_cluster_drop(s, c);
}

static void secret_written(cluster_shell *s, const hub_ticket *t, const write_outcome *how,
                           yyjson_val *json)
{
    (void)json;
    hub_place *p = hub_place_of(s, t);
    if (!p)
        return;
    p->sending = false;
    if (how->kind == WRITE_DONE) {
        hub_unhold(s, p);
        p->values_sent = t->number;
        p->settled = p->unsettled && p->values == t->number;
    } else {
        hub_hold(s, p, how);
    }
    hub_queue(s, p);
}

/* Now the label may go, too. */
static void secret_dropped(cluster_shell *s, const hub_ticket *t, const write_outcome *how,
                           yyjson_val *json)
{
    (void)json;
    hub_place *p = hub_place_of(s, t);
    if (!p)
        return;
    p->sending = false;
    if (how->kind == WRITE_DONE || how->kind == WRITE_GONE)
        p->settled = p->unsettled && !p->values;
    else if (how->kind != WRITE_CONFLICT) /* then it is looked at again */
        hub_hold(s, p, how);
    hub_queue(s, p);
}

hub_ticket hub_ticket_of(const hub_place *p,
                         void (*done)(cluster_shell *s, const hub_ticket *t,
                                      const write_outcome *how, yyjson_val *json))
{
    return (hub_ticket){.done = done,
                        .bundle = p->bundle->key,
                        .cluster = p->cluster->key,
                        .revision = p->revision};
}

/* ---- Secrets ---- */

static str secrets(cluster_shell *s, const hub_place *p)
{
    str path = arena_printf(s->scratch, "/api/v1/namespaces/%s/secrets", p->cluster->home);
    if (!path.ptr)
        hub_memory(s);
    return path;
}

static void write_secret(cluster_shell *s, hub_place *p, const wish *w)
{
    buf body = BUF(HUB_TEXT_BYTES);
    options_secret_put(&body, &w->order, &w->texts, hub_text(p->uid));
    kube_write write = {.verb = WRITE_APPLY,
                        .collection = secrets(s, p),
                        .name = p->bundle->name,
                        .manager = STR("drover"),
                        .force = true,
                        .anyhow = true,
                        .body = buf_str(&body)};
    hub_ticket ticket = hub_ticket_of(p, secret_written);
    ticket.number = w->values;
    p->sending = !body.failed && hub_send(s, &write, ticket);
    p->values_sent = VALUES_UNKNOWN;
    s->counts.secrets += p->sending;
    buf_done(&body);
}

/* Whether a Secret that is called like a deployment holds its values: others may have made one. */
static bool is_of_values(const hub_place *p, yyjson_val *secret)
{
    size_t i, max;
    yyjson_val *owners = read_at(secret, "metadata", "ownerReferences"), *one;
    bool owned = yyjson_arr_size(owners) == 0; /* Fleet's controller says so later */
    yyjson_arr_foreach(owners, i, max, one)
    {
        owned |= str_eq(read_text(one, "uid"), hub_text(p->uid));
    }
    return owned && str_eq(read_text(secret, "type"), STR(SECRET_TYPE_OPTIONS));
}

/* It is deleted as it was looked at. One that is not the deployment's is as good as none. */
static void secret_looked_at(cluster_shell *s, const hub_ticket *t, const write_outcome *how,
                             yyjson_val *json)
{
    char revision_text[SHELL_VERSION_BYTES];
    hub_place *p = hub_place_of(s, t);
    if (!p || !p->cluster->home || how->kind != WRITE_DONE || !is_of_values(p, json)) {
        write_outcome gone = {.kind = WRITE_GONE};
        secret_dropped(s, t, how->kind == WRITE_DONE ? &gone : how, NULL);
        return;
    }
    read_revision(json, revision_text);
    kube_write write = {.verb = WRITE_DELETE,
                        .collection = secrets(s, p),
                        .name = p->bundle->name,
                        .version = str_of(revision_text),
                        .uid = read_text(yyjson_obj_get(json, "metadata"), "uid")};
    p->sending = hub_send(s, &write, hub_ticket_of(p, secret_dropped));
    s->counts.secrets += p->sending;
}

/* The live version has no values any more. */
static void drop_secret(cluster_shell *s, hub_place *p)
{
    kube_write read = {.verb = WRITE_READ, .collection = secrets(s, p), .name = p->bundle->name};
    p->sending = hub_send(s, &read, hub_ticket_of(p, secret_looked_at));
    p->values_sent = VALUES_UNKNOWN;
}

bool hub_owes_values(const hub_place *p)
{
    bool may_be_other = p->values_sent || p->applied != p->live || (p->unsettled && !p->settled);
    return p->values && p->values != p->values_sent && may_be_other;
}

/* Of a deployment that is what it should be. True: something was sent. */
static bool settle_secret(cluster_shell *s, hub_place *p, const wish *w)
{
    if (hub_owes_values(p))
        write_secret(s, p, w);
    else if (p->unsettled && !p->settled && !p->values)
        drop_secret(s, p);
    return p->sending;
}

/* ---- deployments ---- */

static void put_labels(buf *out, const wish *w)
{
    json_write(out, w->labels);
    if (out->len > 0 && out->ptr[out->len - 1] == '}')
        out->len--;
    buf_addf(out, "%s\"" HUB_RELEASED_AT "\":\"", yyjson_obj_size(w->labels) > 0 ? "," : "");
    hub_release_put(out, &w->release);
    buf_addf(out, "\"%s}", w->unsettled ? ",\"" HUB_VALUES "\":\"" HUB_UNSETTLED "\"" : "");
}

static void create(cluster_shell *s, hub_place *p, const wish *w)
{
    buf body = BUF(HUB_TEXT_BYTES);
    buf_addz(&body, "{\"apiVersion\":\"" API_FLEET "\",\"kind\":\"BundleDeployment\",\"metadata\":"
                    "{\"name\":");
    buf_add_json(&body, p->bundle->name);
    buf_addz(&body, ",\"namespace\":");
    buf_add_json(&body, str_of(p->cluster->home));
    buf_addz(&body, ",\"labels\":");
    put_labels(&body, w);
    buf_addz(&body, "},\"spec\":");
    json_write(&body, w->spec);
    buf_addc(&body, '}');
    kube_write write = {.verb = WRITE_CREATE,
                        .collection = hub_collection(s, HUB_DEPLOYMENT, str_of(p->cluster->home)),
                        .name = p->bundle->name,
                        .body = buf_str(&body)};
    p->sending = !body.failed && hub_send(s, &write, hub_ticket_of(p, written));
    s->counts.deployments += p->sending;
    buf_done(&body);
}

static void replace(cluster_shell *s, hub_place *p, const wish *w)
{
    char revision_text[SHELL_VERSION_BYTES];
    buf body = BUF(HUB_TEXT_BYTES);
    buf_addz(&body, "[{\"op\":\"add\",\"path\":\"/metadata/labels\",\"value\":");
    put_labels(&body, w);
    buf_addz(&body, "},{\"op\":\"add\",\"path\":\"/spec\",\"value\":");
    json_write(&body, w->spec);
    buf_addz(&body, "}]");
    kube_write write = {.verb = WRITE_JSON_PATCH,
                        .collection = hub_collection(s, HUB_DEPLOYMENT, str_of(p->cluster->home)),
                        .name = p->bundle->name,
                        .version = version_of(p, revision_text),
                        .row = true,
                        .body = buf_str(&body)};
    p->sending = !body.failed && hub_send(s, &write, hub_ticket_of(p, changed));
    s->counts.deployments += p->sending;
    buf_done(&body);
}

static void patch(cluster_shell *s, hub_place *p, str body)
{
    char revision_text[SHELL_VERSION_BYTES];
    kube_write write = {.verb = WRITE_MERGE,
                        .collection = hub_collection(s, HUB_DEPLOYMENT, str_of(p->cluster->home)),
                        .name = p->bundle->name,
                        .version = version_of(p, revision_text),
                        .row = true,
                        .body = body};
    p->sending = hub_send(s, &write, hub_ticket_of(p, changed));
    s->counts.deployments += p->sending;
}

/* The finalizer of whoever made it before us: nothing is left to be waited for. Those of others
 * stay. */
static void release_finalizer(cluster_shell *s, hub_place *p)
{
    buf body = BUF(HUB_TEXT_BYTES);
    if (!p->finalizers)
        return;
    buf_addz(&body, "{\"metadata\":{");
    hub_put_finalizers(s, p->finalizers, fleet_finalizer_text(FINALIZER_BUNDLE_DEPLOYMENT), false,
                       &body);
    buf_addz(&body, "}}");
    if (!body.failed)
        patch(s, p, buf_str(&body));
    buf_done(&body);
}

/* It is no target any more: the deployment goes, with it the Secret that it owns, and before it the
 * one that opens a registry, of which nobody would know afterwards. */
static bool remove_deployment(cluster_shell *s, hub_place *p)
{
    if (!p->exists) {
        hub_access_remove(s, p);
        return true;
    }
    if (p->deleting) {
        release_finalizer(s, p);
        return true;
    }
    char revision_text[SHELL_VERSION_BYTES];
    kube_write write = {.verb = WRITE_DELETE,
                        .collection = hub_collection(s, HUB_DEPLOYMENT, str_of(p->cluster->home)),
                        .name = p->bundle->name,
                        .version = version_of(p, revision_text)};
    if (hub_access_remove(s, p))
        return true;
    p->sending = hub_send(s, &write, hub_ticket_of(p, written));
    s->counts.deployments += p->sending;
    return true;
}

/* ---- what it should be ---- */

uint64_t hub_deployment_digest(yyjson_val *spec, yyjson_val *labels, bool unsettled)
{
    return (hub_digest(spec) ^ (hub_digest_labels(labels) * 3)) + unsettled;
}

/* Whether nothing but a label will tell that the Secret is still to follow. */
static bool unsettles(const hub_place *p, str wanted, uint64_t values)
{
    bool applied = p->applied && str_eq((str){p->applied->text, p->applied->len}, wanted);
    return p->exists && values != p->values && (!values || applied);
}

static bool make_wish(cluster_shell *s, const hub_place *p, str wanted, wish *ret, err *error)
{
    str options = engine_deployment_options(s->engine, str_of(p->bundle->key), hub_label(p),
                                            s->scratch, error);
    if (!options.ptr)
        return false;
    const hub_access *access = p->bundle->access;
    bool news = !p->live || !str_eq((str){p->live->text, p->live->len}, wanted);
    hub_release now = {
        .at_s = s->now_ms / 1000, .known = true, .said = p->exists ? p->said : hub_said_of(NULL)};
    *ret = (wish){.order = {.bundle = p->bundle->document->object.bundle,
                            .cluster_namespace = p->cluster->space,
                            .cluster = p->cluster->name,
                            .namespace_ = str_of(p->cluster->home),
                            .staged = {wanted, options},
                            .live = {wanted, options},
                            .paused = paused(p),
                            .access = access ? str_of(access->state) : STR_EMPTY},
                  .release = news ? now : p->release};
    if (!bundle_deployment_make(s->scratch, &ret->order, &ret->texts, error))
        return false;
    yyjson_val *made = json_parse(s->scratch, ret->texts.object, error);
    if (!made)
        return false;
    ret->labels = read_at(made, "metadata", "labels");
    ret->spec = yyjson_obj_get(made, "spec");
    ret->values = ret->texts.values_hash.len > 0 ? str_hash(ret->texts.values_hash) : 0;
    ret->unsettled = unsettles(p, wanted, ret->values) || (p->unsettled && !p->settled);
    ret->digest = hub_deployment_digest(ret->spec, ret->labels, ret->unsettled);
    return true;
}

/* A release that cannot be carried out, because something else is wanted by now. */
static void withdraw(cluster_shell *s, hub_place *p)
{
    hub_want(s, p, STR_EMPTY);
    hub_report(s, p, true);
    s->due = true;
}

static bool carry_out(cluster_shell *s, hub_place *p, str wanted)
{
    err error;
    wish w;
    bool may = hub_content_ready(s, p->bundle) && !p->bundle->record_stale;
    if (p->want && !may)
        return false;
    if (!make_wish(s, p, wanted, &w, &error)) {
        if (err_is_memory(&error))
            hub_memory(s);
        hub_bundle_refuse(s, p->bundle, error.text);
        p->held_until_ms = s->now_ms + HUB_REFUSED_MS;
        return false;
    }
    bool differs = !p->exists || w.digest != p->digest;
    if (p->want && !differs)
        hub_want(s, p, STR_EMPTY); /* it stands there already */
    if (!differs && settle_secret(s, p, &w))
        return true;
    if ((!differs || w.digest == p->sent) && !p->access_gone)
        return true;
    if (!may)
        return false;
    if (hub_access_give(s, p))
        return true;
    if (!differs)
        return true;
    p->settled &= w.values == p->values;
    if (p->exists)
        replace(s, p, &w);
    else
        create(s, p, &w);
    p->sent = p->sending ? w.digest : 0;
    return p->sending;
}

bool hub_is_kept(const hub_place *p)
{
    const hub_bundle *b = p->bundle;
    return b->present && !b->deleting && !b->known && p->cluster->present && !p->cluster->deleting;
}

bool hub_deploy(cluster_shell *s, hub_place *p)
{
    deployment_view v;
    bool waits = p->waits_for && p->waits_for >= p->revision;
    p->missed = p->sending;
    if (p->sending || waits)
        return true; /* what comes then queues it again */
    if (p->held_until_ms > s->now_ms)
        return false;
    if (!p->target) {
        hub_want(s, p, STR_EMPTY); /* whoever comes back is decided on anew */
        return hub_is_kept(p) || !p->cluster->home || remove_deployment(s, p);
    }
    if (!p->cluster->home)
        return true; /* who gets one is looked at again */
    if (p->deleting)
        release_finalizer(s, p);
    if (p->deleting || !engine_deployment(s->engine, str_of(p->bundle->key), hub_label(p), &v))
        return true;
    bool current = p->live && str_eq((str){p->live->text, p->live->len}, v.wanted);
    if (p->want && !str_eq((str){p->want->text, p->want->len}, v.wanted))
        withdraw(s, p);
    if (p->want || (p->exists && current))
        return carry_out(s, p, v.wanted);
    if (p->exists && p->paused != paused(p))
        patch(s, p,
              paused(p) ? STR("{\"spec\":{\"paused\":true}}")
                        : STR("{\"spec\":{\"paused\":false}}"));
    return true;
}
