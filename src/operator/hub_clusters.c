/* SPDX-License-Identifier: Apache-2.0 */
/* Clusters: facts about them, the namespace of their deployments, and their end. */
#include <stdio.h>

#include "base/log.h"
#include "base/mem.h"
#include "engine/fleet_names.h"
#include "operator/cluster_objects.h"
#include "operator/hub_internal.h"

/* What of a Cluster's status is written here. */
static const char *const own_members[] = {
    "conditions",     "namespace",           "summary",
    "resourceCounts", "readyGitRepos",       "desiredReadyGitRepos",
    "readyHelmOps",   "desiredReadyHelmOps", "display"};

static hub_cluster *cluster_of(cluster_shell *s, str key)
{
    hub_cluster *c = hub_find(&s->clusters, key);
    if (c)
        return c;
    char *own;
    c = hub_record_new(s, &s->clusters, key, sizeof *c, &own);
    if (!c)
        return NULL;
    c->key = own;
    hub_key_parts(c->key, &c->space, &c->name);
    return c;
}

static void forget(hub_cluster **at, size_t from, size_t len, const hub_cluster *c)
{
    for (size_t i = from; i < len; i++)
        if (at[i] == c)
            at[i] = NULL;
}

void hub_cluster_free(cluster_shell *s, hub_cluster *c)
{
    while (c->places.len > 0)
        hub_place_free(s, c->places.at[c->places.len - 1]);
    strmap_remove(&s->clusters, str_of(c->key));
    hub_home_free(s, c);
    hub_strays_again(s);
    forget(s->late.at, s->late_from, s->late.len, c);
    for (size_t i = s->patient_from; i < s->patient.len; i++)
        if (s->patient.at[i].cluster == c)
            s->patient.at[i].cluster = NULL;
    forget(s->changed.at, 0, s->changed.len, c);
    for (size_t i = 0; i < c->groups.len; i++)
        hub_touch(s, &c->groups.at[i]->clock, s->settings.status_every_ms);
    vec_done(&c->places);
    vec_done(&c->groups);
    mem_free(c->object.uid);
    mem_free(c->denied);
    mem_free(c->json);
    mem_free(c->status);
    mem_free(c->finalizers);
    mem_free(c->key);
    mem_free(c);
}

void hub_cluster_drop(cluster_shell *s, hub_cluster *c)
{
    if (!c->present && c->places.len == 0)
        hub_cluster_free(s, c);
}

/* ---- what is seen ---- */

static uint64_t digest_of(yyjson_val *json)
{
    yyjson_val *meta = yyjson_obj_get(json, "metadata"), *status = yyjson_obj_get(json, "status");
    yyjson_val *parts[] = {yyjson_obj_get(meta, "uid"),
                           yyjson_obj_get(meta, "generation"),
                           yyjson_obj_get(meta, "labels"),
                           yyjson_obj_get(meta, "annotations"),
                           yyjson_obj_get(meta, "deletionTimestamp"),
                           yyjson_obj_get(status, "namespace"),
                           yyjson_obj_get(yyjson_obj_get(status, "agent"), "lastSeen")};
    uint64_t sum = 0;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        sum = sum * 31 + hub_digest(parts[i]);
    return sum;
}

static void take_status(cluster_shell *s, hub_cluster *c, yyjson_val *status)
{
    buf text = BUF(HUB_TEXT_BYTES);
    buf_addc(&text, '{');
    for (size_t i = 0; i < sizeof own_members / sizeof own_members[0]; i++) {
        yyjson_val *value = yyjson_obj_get(status, own_members[i]);
        if (!value)
            continue;
        buf_addf(&text, "%s\"%s\":", text.len > 1 ? "," : "", own_members[i]);
        json_write(&text, value);
    }
    buf_addc(&text, '}');
    if (text.failed)
        hub_memory(s);
    else
        hub_set(s, &c->status, buf_str(&text));
    buf_done(&text);
}

static void look_again(cluster_shell *s, hub_cluster *c)
{
    if (c->relook)
        return;
    c->relook = vec_push(&s->changed, c);
    if (!c->relook)
        hub_memory(s);
}

static void tell_gone(cluster_shell *s, hub_cluster *c)
{
    fact f = {.kind = FACT_TARGET_GONE,
              .target = {.kind = TARGET_CLUSTER, .name = c->name, .namespace_ = c->space}};
    hub_take(s, &f);
    look_again(s, c);
}

static void tell(cluster_shell *s, hub_cluster *c, yyjson_val *json)
{
    yyjson_val *meta = yyjson_obj_get(json, "metadata"), *spec = yyjson_obj_get(json, "spec");
    yyjson_val *status = yyjson_obj_get(json, "status");
    str seen = read_text(yyjson_obj_get(status, "agent"), "lastSeen");
    bool paused = yyjson_get_bool(yyjson_obj_get(spec, "paused"));
    fact f = {
        .kind = FACT_TARGET,
        .target = {
            .kind = TARGET_CLUSTER,
            .name = c->name,
            .namespace_ = c->space,
            .uid = read_text(meta, "uid"),
            .created_ms = read_time_ms(read_text(meta, "creationTimestamp")),
            .labels = read_labels(s->scratch, yyjson_obj_get(meta, "labels"), STR_EMPTY),
            .annotations = read_labels(s->scratch, yyjson_obj_get(meta, "annotations"), STR_EMPTY),
            .deploy_namespace = hub_text(c->home),
            .paused = paused,
            .last_seen_ms = read_time_ms(seen),
            .template_values = yyjson_obj_get(spec, "templateValues"),
        }};
    hub_take(s, &f);
    for (size_t i = 0; i < c->places.len && paused != c->paused; i++) {
        hub_queue(s, c->places.at[i]);
        hub_touch(s, &c->places.at[i]->bundle->clock, s->settings.status_every_ms);
    }
    c->paused = paused;
    c->checked_in = seen.len > 0;
    look_again(s, c);
}

void hub_cluster_retell(cluster_shell *s, hub_cluster *c)
{
    yyjson_val *json = c->json ? json_parse(s->scratch, str_of(c->json), NULL) : NULL;
    if (json && c->present && !c->deleting)
        tell(s, c, json);
    hub_cluster_touch(s, c);
}

void hub_clusters_seen(cluster_shell *s, yyjson_val *json)
{
    yyjson_val *meta = yyjson_obj_get(json, "metadata"), *status = yyjson_obj_get(json, "status");
    char revision_text[SHELL_VERSION_BYTES];
    hub_cluster *c =
        cluster_of(s, hub_key(s, read_text(meta, "namespace"), read_text(meta, "name")));
    if (!c)
        return;
    bool same = str_eq(hub_text(c->object.uid), read_text(meta, "uid"));
    if (c->present && same && read_revision(json, revision_text) <= c->object.revision)
        return; /* an answer was quicker than the watch */
    hub_object_seen(s, &c->object, json);
    c->present = true;
    yyjson_val *finalizers = yyjson_obj_get(meta, "finalizers");
    bool ours = hub_has_text(finalizers, fleet_finalizer_text(FINALIZER_CLUSTER));
    hub_set_json(s, &c->finalizers, ours ? finalizers : NULL);
    take_status(s, c, status);
    uint64_t digest = digest_of(json);
    if (digest == c->digest)
        return;
    c->digest = digest;
    hub_home_take(s, c, json, same);
    c->namespace_made &= same;
    c->deleting = yyjson_obj_get(meta, "deletionTimestamp") != NULL;
    c->managed = read_text(yyjson_obj_get(meta, "labels"), LABEL_CLUSTER_MANAGEMENT).len > 0;
    if (c->deleting)
        tell_gone(s, c);
    else
        tell(s, c, json);
    hub_cluster_touch(s, c);
}

void hub_clusters_gone(cluster_shell *s, str key)
{
    hub_cluster *c = hub_find(&s->clusters, key);
    if (!c)
        return;
    c->present = c->deleting = false;
    c->digest = 0;
    c->json = mem_free(c->json);
    tell_gone(s, c);
}

/* ---- namespaces and ends ---- */

static void namespace_made(cluster_shell *s, const hub_ticket *t, const write_outcome *how,
                           yyjson_val *json)
{
    (void)json;
    hub_cluster *c = hub_find(&s->clusters, str_of(t->cluster));
    if (!c)
        return;
    c->object.sending = false;
    if (how->kind == WRITE_DONE || how->kind == WRITE_EXISTS)
        c->namespace_made = true;
    else {
        log_line(LOG_WARN, "namespace of Cluster %s: %s", c->key, how->message);
        c->object.held_until_ms = s->now_ms + HUB_REFUSED_MS;
    }
    c->clock.dirty = false;
    hub_cluster_touch(s, c);
}

static void make_namespace(cluster_shell *s, hub_cluster *c)
{
    err error;
    buf body = BUF(HUB_TEXT_BYTES);
    cluster_identity who = {c->space, c->name};
    str name = cluster_namespace_name(s->scratch, c->space, c->name);
    if (!name.ptr || !cluster_namespace_put(&body, &who, &error)) {
        hub_memory(s);
    } else {
        kube_write w = {.verb = WRITE_CREATE,
                        .collection = STR("/api/v1/namespaces"),
                        .name = name,
                        .body = buf_str(&body)};
        c->object.sending =
            hub_send(s, &w, (hub_ticket){.done = namespace_made, .cluster = c->key});
        s->counts.namespaces += c->object.sending;
    }
    buf_done(&body);
}

static void finalizer_gone(cluster_shell *s, const hub_ticket *t, const write_outcome *how,
                           yyjson_val *json)
{
    (void)json;
    hub_cluster *c = hub_find(&s->clusters, str_of(t->cluster));
    if (c && !hub_answered(s, &c->object, t, how))
        hub_cluster_touch(s, c);
}

static void remove_finalizer(cluster_shell *s, hub_cluster *c)
{
    char revision_text[SHELL_VERSION_BYTES];
    buf body = BUF(HUB_TEXT_BYTES);
    buf_addz(&body, "{\"metadata\":{");
    hub_put_finalizers(s, c->finalizers, fleet_finalizer_text(FINALIZER_CLUSTER), false, &body);
    buf_addz(&body, "}}");
    snprintf(revision_text, sizeof revision_text, "%llu", (unsigned long long)c->object.revision);
    kube_write w = {.verb = WRITE_MERGE,
                    .collection = hub_collection(s, HUB_CLUSTER, c->space),
                    .name = c->name,
                    .version = str_of(revision_text),
                    .body = buf_str(&body)};
    c->object.sending = hub_send(
        s, &w,
        (hub_ticket){.done = finalizer_gone, .cluster = c->key, .revision = c->object.revision});
    s->counts.records += c->object.sending;
    buf_done(&body);
}

void hub_cluster_step(cluster_shell *s, hub_cluster *c)
{
    if (!c->present || !hub_may_send(s, &c->object))
        return;
    if (c->deleting && c->finalizers && c->deployments == 0)
        remove_finalizer(s, c);
    else if (!c->deleting && !c->says_home && !c->namespace_made && !c->managed)
        make_namespace(s, c);
}
