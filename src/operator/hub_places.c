/* SPDX-License-Identifier: Apache-2.0 */
/* Bundles on Clusters: what their BundleDeployments say, what the engine wants of them, and how
 * many are in which state. */
#include <inttypes.h>
#include <stdio.h>

#include "base/log.h"
#include "base/mem.h"
#include "engine/fleet_names.h"
#include "operator/hub_internal.h"

/* ---- versions ---- */

static hub_version *version_use(cluster_shell *s, str text)
{
    if (text.len == 0)
        return NULL;
    hub_version *v = hub_find(&s->versions, text);
    if (v) {
        v->uses++;
        return v;
    }
    v = mem_zalloc(sizeof *v + text.len + 1);
    if (!v) {
        hub_memory(s);
        return NULL;
    }
    v->uses = 1;
    v->len = (uint32_t)text.len;
    memcpy(v->text, text.ptr, text.len);
    if (hub_put(s, &s->versions, v->text, v))
        return v;
    return mem_free(v);
}

void hub_version_drop(cluster_shell *s, hub_version *v)
{
    if (!v || --v->uses > 0)
        return;
    strmap_remove(&s->versions, (str){v->text, v->len});
    mem_free(v);
    s->contents_stale = true;
}

static void version_set(cluster_shell *s, hub_version **at, str text)
{
    hub_version *before = *at;
    if (before && str_eq((str){before->text, before->len}, text))
        return;
    *at = version_use(s, text);
    hub_version_drop(s, before);
}

static str version_text(const hub_version *v)
{
    return v ? (str){v->text, v->len} : STR_EMPTY;
}

void hub_want(cluster_shell *s, hub_place *p, str id)
{
    version_set(s, &p->want, id);
}

/* ---- places ---- */

hub_place *hub_place_find(const hub_bundle *b, const hub_cluster *c)
{
    for (size_t i = 0; i < c->places.len; i++)
        if (c->places.at[i]->bundle == b)
            return c->places.at[i];
    return NULL;
}

static hub_place *place_of(cluster_shell *s, hub_bundle *b, hub_cluster *c)
{
    hub_place *p = hub_place_find(b, c);
    if (p)
        return p;
    p = mem_zalloc(sizeof *p);
    if (!p || !vec_reserve(&c->places, c->places.len + 1) || !vec_push(&b->places, p)) {
        mem_free(p);
        hub_memory(s);
        return NULL;
    }
    *p = (hub_place){
        .bundle = b, .cluster = c, .at = (uint32_t)b->places.len - 1, .partition = UINT32_MAX};
    b->sorted = false;
    size_t at = c->places.len++;
    while (at > 0 && strcmp(c->places.at[at - 1]->bundle->key, b->key) > 0) {
        c->places.at[at] = c->places.at[at - 1];
        at--;
    }
    c->places.at[at] = p;
    return p;
}

static void count(hub_place *p, int64_t sign)
{
    p->bundle->all.count[p->state] += sign;
    p->cluster->all.count[p->state] += sign;
    if (p->partition < p->bundle->parts.len)
        p->bundle->parts.at[p->partition].count[p->state] += sign;
    p->counted = sign > 0;
}

void hub_place_uncount(hub_place *p)
{
    if (p->counted)
        count(p, -1);
    p->partition = UINT32_MAX;
}

static void forget_deployment(cluster_shell *s, hub_place *p)
{
    if (p->exists) {
        p->bundle->deployments--;
        p->cluster->deployments--;
    }
    hub_version_drop(s, p->live);
    hub_version_drop(s, p->applied);
    p->live = p->applied = NULL;
    p->gone_at = p->exists ? p->revision : p->gone_at;
    p->uid = mem_free(p->uid);
    hub_entry_forget(s, p);
    p->resources = mem_free(p->resources);
    p->access_name = mem_free(p->access_name);
    p->finalizers = mem_free(p->finalizers);
    p->exists = p->ready = p->failed = p->deployed_failed = p->non_modified = false;
    p->deleting = p->paused = p->access_gone = false;
    p->unsettled = p->settled = false;
    p->revision = p->digest = p->labels = p->sent = p->values = p->values_sent = 0;
    p->access = p->access_sent = 0;
    p->generation = 0;
    p->said = (hub_said){0};
    p->release = (hub_release){0};
    p->trouble = 0;
}

void hub_place_free(cluster_shell *s, hub_place *p)
{
    hub_bundle *b = p->bundle;
    hub_cluster *c = p->cluster;
    if (p->counted)
        count(p, -1);
    forget_deployment(s, p);
    hub_want(s, p, STR_EMPTY);
    b->places.at[p->at] = b->places.at[--b->places.len];
    if (p->at < b->places.len)
        b->places.at[p->at]->at = p->at;
    b->sorted = false;
    size_t at = 0;
    while (c->places.at[at] != p)
        at++;
    memmove(&c->places.at[at], &c->places.at[at + 1], (c->places.len - at - 1) * sizeof p);
    c->places.len--;
    for (size_t i = 0; p->queued && i < s->queue.len; i++)
        if (s->queue.at[i] == p)
            s->queue.at[i--] = s->queue.at[--s->queue.len];
    mem_free(p);
}

void hub_place_drop(cluster_shell *s, hub_place *p)
{
    if (p->target || p->exists || p->sending)
        return;
    if (hub_access_left(p))
        hub_queue(s, p);
    else
        hub_place_free(s, p);
}

void hub_queue(cluster_shell *s, hub_place *p)
{
    s->due = true;
    if (p->queued)
        return;
    p->queued = vec_push(&s->queue, p);
    if (!p->queued)
        hub_memory(s);
}

/* ---- the engine's part ---- */

str hub_label(const hub_place *p)
{
    const hub_cluster *c = p->cluster;
    return str_eq(c->space, p->bundle->space) ? c->name : str_of(c->key);
}

static fact report_of(cluster_shell *s, const hub_place *p)
{
    return (fact){.kind = FACT_REPORT,
                  .report = {.change = str_of(p->bundle->key),
                             .target = hub_label(p),
                             .exists = p->exists && !p->deleting,
                             .live = version_text(p->live),
                             .applied = version_text(p->applied),
                             .ready = p->ready,
                             .failed = p->failed,
                             .message = p->failed ? hub_entry_message(s, p) : STR_EMPTY}};
}

void hub_report(cluster_shell *s, const hub_place *p, bool withdrawn)
{
    fact f = report_of(s, p);
    f.report.withdrawn = withdrawn;
    hub_take(s, &f);
}

/* A placement that is new to the engine may be of a target that had left and is back before it was
 * asked: what was released there meanwhile, and may be written already, holds its limits still. */
static void report_joined(cluster_shell *s, hub_place *p)
{
    fact f = report_of(s, p);
    bool under_way = p->want && p->want != p->live;
    p->trouble = 0; /* it is told anew as well */
    if (under_way) {
        f.report.exists = true;
        f.report.live = version_text(p->want);
        f.report.ready = f.report.failed = false;
    }
    f.report.under_way = under_way;
    f.report.released = !p->bundle->fresh && (under_way || p->release.at_s > 0);
    if (f.report.exists)
        hub_take(s, &f);
}

static bundle_state state_of(const hub_place *p, str wanted)
{
    deployment_seen seen = {.wanted = wanted,
                            .live = version_text(p->live),
                            .applied = version_text(p->applied),
                            .ready = p->ready,
                            .non_modified = p->non_modified,
                            .deployed_failed = p->deployed_failed};
    return deployment_state(&seen);
}

/* The end of a rollout is told at once: somebody may wait for it. */
static bool all_ready(const hub_bundle *b)
{
    return b->all.count[BUNDLE_READY] > 0 && hub_all_ready(b);
}

bool hub_all_ready(const hub_bundle *b)
{
    for (size_t i = 1; i < BUNDLE_STATE_COUNT; i++)
        if (i != BUNDLE_READY && b->all.count[i] > 0)
            return false;
    return true;
}

static void touch_bundle(cluster_shell *s, const hub_place *p)
{
    hub_touch(s, &p->bundle->clock, s->settings.status_every_ms);
    if (all_ready(p->bundle))
        p->bundle->clock.due_ms = s->now_ms;
}

static void touch(cluster_shell *s, const hub_place *p)
{
    touch_bundle(s, p);
    hub_cluster_touch(s, p->cluster);
}

static void touch_later(cluster_shell *s, const hub_place *p)
{
    hub_touch(s, &p->bundle->clock, s->settings.status_every_ms);
    hub_cluster_touch_later(s, p->cluster);
}

/* On its way, and nothing is wrong. */
static bool waits(bundle_state state)
{
    return state == BUNDLE_PENDING || state == BUNDLE_OUT_OF_SYNC || state == BUNDLE_WAIT_APPLIED;
}

static bool is_well(bundle_state state)
{
    return state == BUNDLE_NONE || state == BUNDLE_READY || waits(state);
}

/* Partitions that are cut anew are the Bundle's alone. */
static void tell_state(cluster_shell *s, hub_place *p, bundle_state before)
{
    bundle_state now = (bundle_state)p->state;
    if (before == now)
        hub_touch(s, &p->bundle->clock, s->settings.status_every_ms);
    else if (is_well(before) && waits(now))
        touch_later(s, p);
    else if (now == BUNDLE_READY && waits(before)) {
        touch_bundle(s, p);
        hub_cluster_touch_ready(s, p->cluster);
    } else
        touch(s, p);
}

void hub_place_look(cluster_shell *s, hub_place *p)
{
    deployment_view v = {.partition = UINT32_MAX};
    bool target =
        p->bundle->known && engine_deployment(s->engine, str_of(p->bundle->key), hub_label(p), &v);
    bundle_state state = target ? state_of(p, v.wanted) : BUNDLE_NONE;
    bool changed = target != p->counted || state != (bundle_state)p->state ||
                   (target && v.partition != p->partition);
    bundle_state before = (bundle_state)p->state;
    if (changed && p->counted)
        count(p, -1);
    p->state = (uint8_t)state;
    p->partition = v.partition;
    if (changed && target)
        count(p, 1);
    if (changed)
        tell_state(s, p, before);
    bool joined = target && (!p->target || v.id != p->id);
    p->target = target;
    p->id = v.id;
    if (joined)
        report_joined(s, p);
}

void hub_look(cluster_shell *s, hub_bundle *b, hub_cluster *c)
{
    hub_place *p = hub_place_find(b, c);
    if (!p) {
        deployment_view v;
        str name = str_eq(c->space, b->space) ? c->name : str_of(c->key);
        if (!b->known || !engine_deployment(s->engine, str_of(b->key), name, &v))
            return;
        p = place_of(s, b, c);
        if (!p)
            return;
    }
    arena_place mark = arena_mark(s->scratch);
    hub_place_look(s, p);
    arena_rewind(s->scratch, mark);
    if (p->target && !p->exists)
        hub_stray_take(s, p);
    if (p->exists)
        hub_queue(s, p); /* what it says may not be what it should say any more */
    hub_place_drop(s, p);
}

/* ---- deployments as they are seen ---- */

static bool is_false(yyjson_val *said)
{
    return yyjson_equals_str(yyjson_obj_get(said, "status"), "False");
}

static void take_resources(cluster_shell *s, hub_place *p, yyjson_val *counts)
{
    bool any = false;
    int32_t now[RESOURCE_COUNT_KINDS];
    for (int i = 0; i < RESOURCE_COUNT_KINDS; i++) {
        now[i] = (int32_t)yyjson_get_sint(
            yyjson_obj_get(counts, resource_count_text((resource_count)i)));
        any |= now[i] != 0;
    }
    if (any != (p->resources != NULL) || (any && memcmp(now, p->resources, sizeof now) != 0))
        touch(s, p);
    if (!any) {
        p->resources = mem_free(p->resources);
        return;
    }
    if (!p->resources)
        p->resources = mem_alloc(sizeof now);
    if (!p->resources)
        hub_memory(s);
    else
        memcpy(p->resources, now, sizeof now);
}

/* What was written last needs not be compared with what is wanted: it is just that. Anything else
 * somebody else may have changed. */
static void take_change(cluster_shell *s, hub_place *p)
{
    bool ours = p->digest == p->sent;
    if (ours && p->want == p->live)
        hub_want(s, p, STR_EMPTY);
    if (ours || !p->sending)
        p->sent = 0; /* from here on it is to be written again if it changes */
    if (!ours && p->target)
        hub_queue(s, p);
}

static void take_spec(cluster_shell *s, hub_place *p, yyjson_val *json)
{
    yyjson_val *meta = yyjson_obj_get(json, "metadata"), *spec = yyjson_obj_get(json, "spec");
    yyjson_val *labels = yyjson_obj_get(meta, "labels");
    int64_t generation = yyjson_get_sint(yyjson_obj_get(meta, "generation"));
    uint64_t of_labels = hub_digest_labels(labels);
    str values = read_text(spec, "valuesHash");
    p->release = hub_release_read(read_text(labels, HUB_RELEASED_AT));
    version_set(s, &p->live, read_text(spec, "deploymentID"));
    p->paused = yyjson_get_bool(yyjson_obj_get(spec, "paused"));
    p->values = values.len > 0 ? str_hash(values) : 0;
    bool unsettled = read_text(labels, HUB_VALUES).len > 0;
    p->settled &= unsettled && p->unsettled;
    hub_access_seen(s, p, json);
    if (generation != p->generation || of_labels != p->labels || p->digest == 0 ||
        unsettled != p->unsettled) {
        p->unsettled = unsettled;
        p->digest = hub_deployment_digest(spec, labels, unsettled);
        p->labels = of_labels;
        p->generation = generation;
        take_change(s, p);
    }
}

/* False: it was seen before, or what came after it was. */
static bool take_deployment(cluster_shell *s, hub_place *p, yyjson_val *json)
{
    yyjson_val *meta = yyjson_obj_get(json, "metadata"), *status = yyjson_obj_get(json, "status");
    char revision_text[SHELL_VERSION_BYTES];
    uint64_t revision = read_revision(json, revision_text);
    bool same = p->exists && str_eq(hub_text(p->uid), read_text(meta, "uid"));
    if (same && revision <= p->revision)
        return false; /* an answer was quicker than the watch */
    if (!same) {
        uint64_t sent = p->exists ? 0 : p->sent; /* it was just created */
        forget_deployment(s, p);
        p->sent = sent;
        p->exists = true;
        p->bundle->deployments++;
        p->cluster->deployments++;
        hub_set(s, &p->uid, read_text(meta, "uid"));
    }
    p->revision = revision;
    if (p->waits_for && revision > p->waits_for) {
        p->waits_for = 0;
        hub_queue(s, p);
    }
    p->deleting = yyjson_obj_get(meta, "deletionTimestamp") != NULL;
    yyjson_val *finalizers = yyjson_obj_get(meta, "finalizers");
    bool fleets = hub_has_text(finalizers, fleet_finalizer_text(FINALIZER_BUNDLE_DEPLOYMENT));
    hub_set_json(s, &p->finalizers, fleets ? finalizers : NULL);
    take_spec(s, p, json);
    version_set(s, &p->applied, read_text(status, "appliedDeploymentID"));
    p->ready = yyjson_get_bool(yyjson_obj_get(status, "ready"));
    p->non_modified = yyjson_get_bool(yyjson_obj_get(status, "nonModified"));
    p->said = hub_said_of(status);
    p->deployed_failed = is_false(hub_condition(status, "Deployed"));
    p->failed = hub_has_failed(p, status);
    hub_entry_take(s, p, status);
    take_resources(s, p, yyjson_obj_get(status, "resourceCounts"));
    return true;
}

/* ---- those of unknown Clusters, or of nobody ---- */

void hub_stray_free(hub_stray *stray)
{
    mem_free(stray->space);
    mem_free(stray->name);
    mem_free(stray->text);
}

static void stray_remove(cluster_shell *s, size_t i)
{
    hub_stray_free(&s->strays.at[i]);
    s->strays.at[i] = s->strays.at[--s->strays.len];
}

static hub_stray *stray_find(cluster_shell *s, str space, str name)
{
    for (size_t i = 0; i < s->strays.len; i++)
        if (str_eq(str_of(s->strays.at[i].space), space) &&
            str_eq(str_of(s->strays.at[i].name), name))
            return &s->strays.at[i];
    return NULL;
}

static void stray_forget(cluster_shell *s, str space, str name)
{
    hub_stray *stray = stray_find(s, space, name);
    if (stray)
        stray_remove(s, (size_t)(stray - s->strays.at));
}

static void stray_add(cluster_shell *s, str space, str name, yyjson_val *json)
{
    char revision_text[SHELL_VERSION_BYTES];
    buf text = BUF(HUB_TEXT_BYTES);
    stray_forget(s, space, name);
    json_write(&text, json);
    hub_stray stray = {.space = hub_copy(s, space),
                       .name = hub_copy(s, name),
                       .text = hub_copy(s, buf_str(&text)),
                       .revision = read_revision(json, revision_text)};
    if (s->no_memory || text.failed || !vec_push(&s->strays, stray)) {
        hub_stray_free(&stray);
        hub_memory(s);
    }
    buf_done(&text);
}

/* Whose labels say which Bundle it is of: ours always do. */
static bool is_labelled(yyjson_val *labels, str name)
{
    return read_text(labels, LABEL_BUNDLE_NAMESPACE).len > 0 &&
           str_eq(read_text(labels, LABEL_BUNDLE_NAME), name);
}

/* Whose it can only be, without labels. */
static hub_place *target_called(const hub_cluster *c, str name)
{
    for (size_t i = 0; i < c->places.len; i++)
        if (c->places.at[i]->target && str_eq(c->places.at[i]->bundle->name, name))
            return c->places.at[i];
    return NULL;
}

void hub_stray_take(cluster_shell *s, const hub_place *p)
{
    hub_stray *stray =
        p->cluster->home ? stray_find(s, str_of(p->cluster->home), p->bundle->name) : NULL;
    if (!stray)
        return;
    arena_place mark = arena_mark(s->scratch);
    yyjson_val *json = json_parse(s->scratch, str_of(stray->text), NULL);
    if (json && !is_labelled(read_at(json, "metadata", "labels"), p->bundle->name))
        hub_deployments_seen(s, json);
    arena_rewind(s->scratch, mark);
}

void hub_strays_of(cluster_shell *s, const hub_cluster *c)
{
    for (size_t i = 0; i < s->strays.len; i++) {
        if (!str_eq(str_of(s->strays.at[i].space), str_of(c->home)))
            continue;
        yyjson_val *json = json_parse(s->scratch, str_of(s->strays.at[i].text), NULL);
        str name = str_of(s->strays.at[i].name);
        yyjson_val *labels = read_at(json, "metadata", "labels");
        bool nobodys = !is_labelled(labels, name) && !target_called(c, name);
        if (nobodys || !hub_home_of(c, labels))
            continue;
        hub_stray stray = s->strays.at[i];
        s->strays.at[i--] = s->strays.at[--s->strays.len];
        if (json)
            hub_deployments_seen(s, json);
        hub_stray_free(&stray);
    }
}

static void stray_answered(cluster_shell *s, const hub_ticket *t, const write_outcome *how,
                           yyjson_val *json)
{
    (void)json;
    str space, name;
    hub_key_parts(t->bundle, &space, &name);
    hub_stray *stray = stray_find(s, space, name);
    bool told = how->kind == WRITE_DONE || how->kind == WRITE_GONE || how->kind == WRITE_CONFLICT;
    if (!stray || told || stray->revision != t->revision)
        return; /* the watch tells, or has told */
    log_line(LOG_WARN, "BundleDeployment %s: %s", t->bundle, how->message);
    stray->seen_to = false;
    stray->held_until_ms = s->now_ms + HUB_REFUSED_MS;
}

static void delete_stray(cluster_shell *s, const hub_stray *stray)
{
    char revision_text[SHELL_VERSION_BYTES];
    snprintf(revision_text, sizeof revision_text, "%" PRIu64, stray->revision);
    str key = hub_key(s, str_of(stray->space), str_of(stray->name));
    char *of = hub_copy(s, key);
    kube_write w = {.verb = WRITE_DELETE,
                    .collection = hub_collection(s, HUB_DEPLOYMENT, str_of(stray->space)),
                    .name = str_of(stray->name),
                    .version = str_of(revision_text)};
    hub_ticket ticket = {.done = stray_answered, .bundle = of, .revision = stray->revision};
    s->counts.deployments += !s->no_memory && hub_send(s, &w, ticket);
    mem_free(of);
}

void hub_strays_again(cluster_shell *s)
{
    for (size_t i = 0; i < s->strays.len; i++)
        s->strays.at[i].seen_to = false;
}

/* A deployment that we made for a Cluster that is gone goes, too. */
void hub_strays_step(cluster_shell *s)
{
    for (size_t i = 0; i < s->strays.len; i++) {
        hub_stray *stray = &s->strays.at[i];
        if (stray->seen_to || stray->held_until_ms > s->now_ms)
            continue;
        arena_place mark = arena_mark(s->scratch);
        yyjson_val *json = json_parse(s->scratch, str_of(stray->text), NULL);
        yyjson_val *labels = read_at(json, "metadata", "labels");
        str cluster_key = hub_key(s, read_text(labels, LABEL_CLUSTER_NAMESPACE),
                                  read_text(labels, LABEL_CLUSTER));
        bool ours = str_eq(read_text(labels, LABEL_MANAGED), STR("true")) &&
                    read_text(labels, LABEL_CLUSTER).len > 0 &&
                    is_labelled(labels, str_of(stray->name));
        stray->seen_to = true;
        if (ours && !hub_find(&s->clusters, cluster_key))
            delete_stray(s, stray);
        arena_rewind(s->scratch, mark);
    }
}

int64_t hub_strays_next_ms(const cluster_shell *s)
{
    int64_t next = REASON_NEVER;
    for (size_t i = 0; i < s->strays.len; i++) {
        const hub_stray *stray = &s->strays.at[i];
        if (!stray->seen_to && (next == REASON_NEVER || stray->held_until_ms < next))
            next = stray->held_until_ms;
    }
    return next;
}

/* ---- coming and going ---- */

/* Where it was seen before, whatever its labels say by now: they are put right. NULL: nowhere. */
static hub_place *known_place(const hub_cluster *c, str name, yyjson_val *json)
{
    str uid = read_text(yyjson_obj_get(json, "metadata"), "uid");
    for (size_t i = 0; i < c->places.len; i++) {
        hub_place *p = c->places.at[i];
        if (p->exists && str_eq(p->bundle->name, name) && str_eq(hub_text(p->uid), uid))
            return p;
    }
    return NULL;
}

static hub_place *place_for(cluster_shell *s, hub_cluster *c, str name, yyjson_val *json)
{
    yyjson_val *labels = read_at(json, "metadata", "labels");
    hub_place *p = known_place(c, name, json);
    if (p)
        return p;
    if (!is_labelled(labels, name))
        return target_called(c, name);
    hub_bundle *b = hub_bundle_of(s, hub_key(s, read_text(labels, LABEL_BUNDLE_NAMESPACE), name));
    return b ? place_of(s, b, c) : NULL;
}

void hub_deployments_seen(cluster_shell *s, yyjson_val *json)
{
    yyjson_val *meta = yyjson_obj_get(json, "metadata"), *labels = yyjson_obj_get(meta, "labels");
    str space = read_text(meta, "namespace"), name = read_text(meta, "name");
    hub_cluster *c = hub_find(&s->homes, space);
    bool home = c && (hub_home_of(c, labels) || known_place(c, name, json));
    hub_place *p = home ? place_for(s, c, name, json) : NULL;
    if (!p) {
        stray_add(s, space, name, json);
        return;
    }
    stray_forget(s, space, name);
    bool ready = p->ready, existed = p->exists;
    if (!take_deployment(s, p, json) || s->no_memory)
        return;
    hub_report(s, p, false);
    hub_place_look(s, p);
    if (!p->target || p->deleting || p->want || hub_owes_values(p) || p->unsettled)
        hub_queue(s, p);
    if (ready != p->ready) /* also what is no state, such as counts in partitions */
        touch_bundle(s, p);
    else if (!existed)
        touch_later(s, p);
}

static void forget_and_tell(cluster_shell *s, hub_place *p)
{
    hub_bundle *b = p->bundle;
    forget_deployment(s, p);
    p->waits_for = 0;
    hub_report(s, p, false);
    hub_place_look(s, p);
    touch(s, p);
    if (p->want)
        hub_queue(s, p);
    hub_place_drop(s, p);
    hub_bundle_drop(s, b);
}

static void put_text(buf *out, const char *before, str text)
{
    buf_addz(out, before);
    buf_add_json(out, text);
}

/* As much as its next owner needs to know. */
static void put_left(buf *out, const hub_place *p)
{
    put_text(out, "{\"metadata\":{\"name\":", p->bundle->name);
    put_text(out, ",\"namespace\":", str_of(p->cluster->home));
    put_text(out, ",\"uid\":", hub_text(p->uid));
    buf_addf(out, ",\"resourceVersion\":\"%" PRIu64 "\"", p->revision);
    put_text(out, ",\"labels\":{\"" LABEL_BUNDLE_NAME "\":", p->bundle->name);
    put_text(out, ",\"" LABEL_BUNDLE_NAMESPACE "\":", p->bundle->space);
    put_text(out, ",\"" LABEL_CLUSTER "\":", p->cluster->name);
    put_text(out, ",\"" LABEL_CLUSTER_NAMESPACE "\":", p->cluster->space);
    put_text(out, ",\"" LABEL_MANAGED "\":\"true\"}},\"spec\":{\"deploymentID\":",
             version_text(p->live));
    put_text(out, "},\"status\":{\"appliedDeploymentID\":", version_text(p->applied));
    buf_addf(out, ",\"ready\":%s}}", p->ready ? "true" : "false");
}

void hub_deployment_leave(cluster_shell *s, hub_place *p)
{
    buf text = BUF(HUB_TEXT_BYTES);
    put_left(&text, p);
    yyjson_val *json = text.failed ? NULL : json_parse(s->scratch, buf_str(&text), NULL);
    if (json)
        stray_add(s, str_of(p->cluster->home), p->bundle->name, json);
    else
        hub_memory(s);
    buf_done(&text);
    forget_and_tell(s, p);
}

void hub_deployments_gone(cluster_shell *s, str space, str name)
{
    stray_forget(s, space, name);
    hub_cluster *c = hub_find(&s->homes, space);
    for (size_t i = 0; c && i < c->places.len; i++) {
        hub_place *p = c->places.at[i];
        if (!p->exists || !str_eq(p->bundle->name, name))
            continue;
        forget_and_tell(s, p);
        hub_cluster_drop(s, c);
        return;
    }
}
