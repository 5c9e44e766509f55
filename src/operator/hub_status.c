/* SPDX-License-Identifier: Apache-2.0 */
/* The statuses of Bundles and Clusters: counts are kept as things change, lists are made when a
 * status is written. */
#include <stdlib.h>

#include "base/log.h"
#include "base/mem.h"
#include "engine/fleet_names.h"
#include "operator/bundle_patch.h"
#include "operator/hub_internal.h"

/* ---- pieces ---- */

void hub_tally_summary(const hub_tally *t, bundle_summary *out)
{
    *out = (bundle_summary){.not_ready = t->count[BUNDLE_NOT_READY],
                            .wait_applied = t->count[BUNDLE_WAIT_APPLIED],
                            .err_applied = t->count[BUNDLE_ERR_APPLIED],
                            .out_of_sync = t->count[BUNDLE_OUT_OF_SYNC],
                            .modified = t->count[BUNDLE_MODIFIED],
                            .ready = t->count[BUNDLE_READY],
                            .pending = t->count[BUNDLE_PENDING]};
    for (size_t i = 1; i < BUNDLE_STATE_COUNT; i++)
        out->desired_ready += t->count[i];
}

moment hub_now(const cluster_shell *s)
{
    return (moment){.seconds = s->now_ms / 1000};
}

static opt_moment moment_in(yyjson_val *said, const char *key)
{
    opt_moment at = {0};
    str text = read_text(said, key);
    at.set = text.len > 0 && moment_parse(text, &at.at, NULL);
    return at;
}

condition_list hub_conditions(arena *a, yyjson_val *status)
{
    static const char *const states[] = {
#define X(state, text) text,
        CONDITION_STATES(X)
#undef X
    };
    yyjson_val *list = yyjson_obj_get(status, "conditions"), *one;
    condition_list all = {ARENA_ARRAY(a, yyjson_arr_size(list) + 1, condition), 0};
    size_t i, max;
    yyjson_arr_foreach(list, i, max, one)
    {
        if (!all.at)
            break;
        condition *c = &all.at[all.len++];
        *c = (condition){.type = read_text(one, "type"),
                         .reason = read_text(one, "reason"),
                         .message = read_text(one, "message"),
                         .last_transition_time = moment_in(one, "lastTransitionTime"),
                         .last_update_time = moment_in(one, "lastUpdateTime")};
        for (size_t k = 0; k < sizeof states / sizeof states[0]; k++)
            if (yyjson_equals_str(yyjson_obj_get(one, "status"), states[k]))
                c->status = (condition_state)k;
    }
    return all;
}

/* What others have written into it may leave no room: nothing else is held up by that. */
static bool hold_status(cluster_shell *s, const hub_status_write *w, const err *error)
{
    log_line(LOG_WARN, "status of %s %.*s/%.*s: %s", hub_kind_path(w->kind), STR_ARG(w->space),
             STR_ARG(w->name), error->text);
    w->object->status_until_ms = s->now_ms + HUB_REFUSED_MS;
    return false;
}

bool hub_status_send(cluster_shell *s, const hub_status_write *w)
{
    err error;
    buf body = BUF(HUB_TEXT_BYTES);
    yyjson_val *after = json_parse(s->scratch, w->after, &error);
    if (!after && !err_is_memory(&error))
        return hold_status(s, w, &error);
    if (!after) {
        hub_memory(s);
        return true;
    }
    buf_addz(&body, "{\"status\":");
    bool differs = merge_patch_put(&body, w->before, after);
    buf_addc(&body, '}');
    kube_write write = {.verb = WRITE_MERGE,
                        .collection = hub_collection(s, w->kind, w->space),
                        .name = w->name,
                        .subresource = STR("status"),
                        .uid = hub_text(w->object->uid),
                        .row = true, /* a Bundle may be large */
                        .body = buf_str(&body)};
    if (differs)
        w->object->sending = !body.failed && hub_send(s, &write, w->ticket);
    buf_done(&body);
    return true;
}

/* ---- Bundles ---- */

static int by_cluster(const void *x, const void *y)
{
    const hub_place *a = *(hub_place *const *)x, *b = *(hub_place *const *)y;
    int by_name = str_cmp(a->cluster->name, b->cluster->name);
    return by_name ? by_name : str_cmp(a->cluster->space, b->cluster->space);
}

void hub_sort_places(hub_bundle *b)
{
    if (b->sorted)
        return;
    if (b->places.len > 1)
        qsort(b->places.at, b->places.len, sizeof *b->places.at, by_cluster);
    for (size_t i = 0; i < b->places.len; i++)
        b->places.at[i]->at = (uint32_t)i;
    b->sorted = true;
}

static int64_t non_ready(const bundle_summary *s)
{
    return s->desired_ready - s->ready;
}

typedef struct lister {
    summary_maker *all; /* counts are there already; the lists are filled */
    summary_maker *parts;
    size_t part_count;
    int64_t left; /* entries that are still to be listed */
    size_t bytes; /* of all lists so far */
} lister;

static int64_t to_list(summary_maker *m, const hub_tally *t)
{
    hub_tally_summary(t, &m->summary);
    m->summary.non_ready_resources.at = m->listed;
    int64_t count = non_ready(&m->summary);
    return count < SUMMARY_LISTED_MAX ? count : SUMMARY_LISTED_MAX;
}

static bool has_room(const summary_maker *m)
{
    return m && m->summary.non_ready_resources.len < SUMMARY_LISTED_MAX;
}

static void list_one(lister *l, summary_maker *m, const non_ready_resource *one, size_t bytes)
{
    if (!has_room(m))
        return;
    m->listed[m->summary.non_ready_resources.len++] = *one;
    l->left--;
    l->bytes += bytes;
}

/* The first of each list, in one walk that ends when all lists are full, or as long as they may be
 * together. Those that come when enough is quoted are listed by name and state. */
static void list_places(cluster_shell *s, hub_bundle *b, lister *l)
{
    hub_sort_places(b);
    for (size_t i = 0; i < b->places.len && l->left > 0 && l->bytes < HUB_LISTED_BYTES; i++) {
        const hub_place *p = b->places.at[i];
        if (!p->counted || p->state == BUNDLE_READY)
            continue;
        summary_maker *part = p->partition < l->part_count ? &l->parts[p->partition] : NULL;
        if (!has_room(l->all) && !has_room(part))
            continue;
        str name = str_of(p->cluster->key);
        non_ready_resource one = {.name = name, .bundle_state = (bundle_state)p->state};
        size_t bytes = name.len + HUB_LISTED_ONE_BYTES;
        if (l->bytes < HUB_QUOTED_BYTES) {
            hub_place_entry(s, p, name, &one);
            bytes += one.message.len + hub_text(p->entry).len;
        }
        list_one(l, l->all, &one, bytes);
        list_one(l, part, &one, bytes);
    }
}

static void bundle_answered(cluster_shell *s, const hub_ticket *t, const write_outcome *how,
                            yyjson_val *json)
{
    hub_bundle *b = hub_find(&s->bundles, str_of(t->bundle));
    if (!b)
        return;
    if (!hub_told(s, &b->object, t, how)) {
        if (how->kind != WRITE_GONE && how->kind != WRITE_CONFLICT)
            log_line(LOG_WARN, "status of Bundle %s: %s", b->key, how->message);
        hub_touch(s, &b->clock, s->settings.status_every_ms);
    }
    hub_await(&b->object, json);
}

static status_partition *partitions_of_bundle(cluster_shell *s, hub_bundle *b, lister *l)
{
    status_partition *at = ARENA_ARRAY(s->scratch, l->part_count + 1, status_partition);
    for (size_t i = 0; at && i < l->part_count; i++) {
        group_view g = {0};
        engine_bundle_partition(s->engine, str_of(b->key), i, &g);
        at[i] = (status_partition){g.name, g.matched, g.limit, g.unavailable, &l->parts[i].summary};
    }
    return at;
}

static void send_bundle_status(cluster_shell *s, hub_bundle *b, const bundle_view *v)
{
    lister l = {.all = ARENA_NEW(s->scratch, summary_maker),
                .parts = ARENA_ARRAY(s->scratch, b->parts.len + 1, summary_maker),
                .part_count = b->parts.len < HUB_PARTITIONS_TOLD_MAX ? b->parts.len
                                                                     : HUB_PARTITIONS_TOLD_MAX};
    if (!l.all || !l.parts) {
        hub_memory(s);
        return;
    }
    l.left = to_list(l.all, &b->all);
    for (size_t i = 0; i < l.part_count; i++)
        l.left += to_list(&l.parts[i], &b->parts.at[i]);
    list_places(s, b, &l);
    yyjson_val *before = b->status ? json_parse(s->scratch, str_of(b->status), NULL) : NULL;
    bundle_status_facts f = {.summary = &l.all->summary,
                             .partitions = partitions_of_bundle(s, b, &l),
                             .partition_count = l.part_count,
                             .newly_created = v->created,
                             .unavailable = v->unavailable,
                             .unavailable_partitions = v->not_ready,
                             .max_unavailable = v->max_unavailable,
                             .max_unavailable_partitions = v->max_not_ready,
                             .generation = b->generation,
                             .resources_sha256_sum = hub_text(b->sha256),
                             .oci_reference = b->access && b->access->reference
                                                  ? str_of(b->access->reference)
                                                  : read_text(before, "ociReference"),
                             .error = hub_text(b->error),
                             .pruned = hub_text(s->pruned),
                             .shortened = hub_text(b->shortened),
                             .before = hub_conditions(s->scratch, before),
                             .now = hub_now(s)};
    buf text = BUF(HUB_TEXT_BYTES), message = BUF(HUB_TEXT_BYTES);
    bundle_status_put(&text, &f);
    summary_message(&message, f.summary, "Cluster");
    hub_set(s, &b->ready_message, b->error ? str_of(b->error) : buf_str(&message));
    buf_done(&message);
    hub_status_write w = {
        .kind = HUB_BUNDLE,
        .space = b->space,
        .name = b->name,
        .object = &b->object,
        .before = before,
        .after = buf_str(&text),
        .ticket = {.done = bundle_answered, .bundle = b->key, .revision = b->object.revision}};
    if (text.failed)
        log_line(LOG_ERROR, "status of Bundle %s: it cannot be made", b->key);
    else if (!hub_status_send(s, &w))
        hub_touch(s, &b->clock, HUB_REFUSED_MS);
    if (b->object.sending)
        b->clock.rests_until_ms = hub_due_ms(s, HUB_STATUS_REST_MS);
    s->counts.bundle_statuses += b->object.sending;
    buf_done(&text);
}

void hub_bundle_status(cluster_shell *s, hub_bundle *b)
{
    bundle_view v = {0};
    if (!b->present || b->deleting) {
        b->clock.dirty = false;
        return;
    }
    if (!hub_may_tell(s, &b->object))
        return; /* it stays due */
    if (b->known)
        engine_bundle(s->engine, str_of(b->key), &v);
    b->clock.dirty = false;
    send_bundle_status(s, b, &v);
    hub_repo_tell(s, b);
}

/* ---- Clusters ---- */

/* There are few of them: they are told of everything. */
static void touch_groups(cluster_shell *s, const hub_cluster *c)
{
    for (size_t i = 0; i < c->groups.len; i++)
        hub_touch(s, &c->groups.at[i]->clock, s->settings.cluster_status_every_ms);
}

void hub_cluster_touch(cluster_shell *s, hub_cluster *c)
{
    hub_touch(s, &c->clock, s->settings.cluster_status_every_ms);
    c->patient_ms = 0;
    touch_groups(s, c);
    if (c->queued)
        return;
    c->queued = vec_push(&s->late, c);
    if (!c->queued)
        hub_memory(s);
}

void hub_cluster_touch_later(cluster_shell *s, hub_cluster *c)
{
    touch_groups(s, c);
    if (c->patient_ms || c->queued)
        return;
    c->patient_ms = hub_due_ms(s, HUB_CLUSTER_WAITS_MS);
    if (!vec_push(&s->patient, ((hub_patience){c, c->patient_ms})))
        hub_memory(s);
}

/* All that its status says depends on who is ready while everybody is. */
static bool is_told(const hub_cluster *c)
{
    bool ready = true;
    for (size_t i = 0; i < BUNDLE_STATE_COUNT; i++)
        ready &= c->all.count[i] == c->told.count[i] && (i == BUNDLE_READY || c->all.count[i] == 0);
    return ready && c->patient_ms && !c->queued;
}

void hub_cluster_touch_ready(cluster_shell *s, hub_cluster *c)
{
    if (!is_told(c)) {
        hub_cluster_touch(s, c);
        return;
    }
    touch_groups(s, c);
    c->patient_ms = 0;
}

/* Every repository or chart of the cluster's deployments, and whether all of them are ready. */
static status_sources count_sources(cluster_shell *s, const hub_cluster *c, str label_key)
{
    status_sources all = {0};
    strmap ready = {0};
    for (size_t i = 0; i < c->places.len; i++) {
        const hub_place *p = c->places.at[i];
        if (!p->counted || !p->bundle->document)
            continue;
        str name = label_get(p->bundle->document->object.metadata->labels, label_key);
        if (name.len == 0)
            continue;
        const uint64_t *known = strmap_get(&ready, name);
        bool good = p->state == BUNDLE_READY && (!known || *known);
        if (!strmap_put(&ready, name, good))
            hub_memory(s);
    }
    for (size_t i = 0; i < ready.len; i++)
        all.ready += ready.entries[i].value != 0;
    all.desired = (int64_t)ready.len;
    strmap_done(&ready);
    return all;
}

static void cluster_answered(cluster_shell *s, const hub_ticket *t, const write_outcome *how,
                             yyjson_val *json)
{
    hub_cluster *c = hub_find(&s->clusters, str_of(t->cluster));
    if (!c)
        return;
    if (!hub_told(s, &c->object, t, how)) {
        if (how->kind != WRITE_GONE && how->kind != WRITE_CONFLICT)
            log_line(LOG_WARN, "status of Cluster %s: %s", c->key, how->message);
        hub_cluster_touch(s, c);
    }
    hub_await(&c->object, json);
}

static void list_bundles(cluster_shell *s, const hub_cluster *c, summary_maker *m)
{
    to_list(m, &c->all);
    for (size_t i = 0; i < c->places.len; i++) {
        const hub_place *p = c->places.at[i];
        if (!p->counted || p->state == BUNDLE_READY ||
            m->summary.non_ready_resources.len >= SUMMARY_LISTED_MAX)
            continue;
        hub_place_entry(s, p, p->bundle->name, &m->listed[m->summary.non_ready_resources.len++]);
    }
}

void hub_cluster_summary(cluster_shell *s, const hub_cluster *c, summary_maker *m,
                         int64_t resources[RESOURCE_COUNT_KINDS])
{
    list_bundles(s, c, m);
    for (size_t i = 0; i < c->places.len; i++)
        for (size_t k = 0; c->places.at[i]->resources && k < RESOURCE_COUNT_KINDS; k++)
            resources[k] += c->places.at[i]->resources[k];
}

static void send_cluster_status(cluster_shell *s, hub_cluster *c)
{
    summary_maker *m = ARENA_NEW(s->scratch, summary_maker);
    int64_t resources[RESOURCE_COUNT_KINDS] = {0};
    if (!m) {
        hub_memory(s);
        return;
    }
    hub_cluster_summary(s, c, m, resources);
    c->told = c->all;
    str home = hub_text(c->home ? c->home : c->denied);
    if (home.len == 0 && c->namespace_made)
        home = cluster_namespace_name(s->scratch, c->space, c->name);
    yyjson_val *before = c->status ? json_parse(s->scratch, str_of(c->status), NULL) : NULL;
    cluster_status_facts f = {.namespace_ = home,
                              .summary = &m->summary,
                              .repos = count_sources(s, c, STR(LABEL_REPO_NAME)),
                              .charts = count_sources(s, c, STR(LABEL_HELM_OP_NAME)),
                              .resources = resources,
                              .checked_in = c->checked_in,
                              .error = hub_home_trouble(s, c, s->scratch),
                              .before = hub_conditions(s->scratch, before),
                              .now = hub_now(s)};
    buf text = BUF(HUB_TEXT_BYTES);
    cluster_status_put(&text, &f);
    hub_status_write w = {
        .kind = HUB_CLUSTER,
        .space = c->space,
        .name = c->name,
        .object = &c->object,
        .before = before,
        .after = buf_str(&text),
        .ticket = {.done = cluster_answered, .cluster = c->key, .revision = c->object.revision}};
    if (!text.failed && !hub_status_send(s, &w))
        hub_cluster_touch(s, c);
    s->counts.cluster_statuses += c->object.sending;
    buf_done(&text);
}

void hub_cluster_status(cluster_shell *s, hub_cluster *c)
{
    bool may = hub_may_tell(s, &c->object);
    bool wanted = c->present && !c->deleting && c->clock.dirty;
    c->clock.dirty = false;
    if (wanted && may)
        send_cluster_status(s, c);
    else if (wanted || (c->deleting && c->finalizers))
        hub_cluster_touch(s, c); /* later */
}
