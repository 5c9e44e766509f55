/* SPDX-License-Identifier: Apache-2.0 */
/* Questions about Bundles on clusters: placements, groups, reasons. */
#include "engine/clusters_internal.h"

#include "base/mem.h"

static str text_of(const clusters *c, name_id n)
{
    return names_text(c->core->names, n);
}

placement_state placed_state(const bundle_record *b, member_id m)
{
    const placed *at = &b->members.at[m];
    if (placed_done(at))
        return PLACEMENT_DONE;
    if (at->offline ||
        (partitions_are_cut(b->roll.pacing) && partitions_of(b->roll.pacing, m) == PARTITION_NONE))
        return PLACEMENT_EXCLUDED;
    if (at->flight)
        return PLACEMENT_IN_FLIGHT;
    return at->failed && at->live == at->wanted ? PLACEMENT_FAILED : PLACEMENT_WAITING;
}

bundle_record **bundles_in_order(const clusters *c, arena *a, size_t *ret_count)
{
    bundle_record **list = ARENA_ARRAY(a, c->bundles.len + 1, bundle_record *);
    *ret_count = 0;
    for (size_t i = 0; list && i < c->bundles.len; i++)
        if (c->bundles.at[i]->present)
            list[(*ret_count)++] = c->bundles.at[i];
    return list;
}

static int by_cluster(const void *x, const void *y, void *context)
{
    const bundle_record *b = context;
    const clusters *c = b->self;
    const cluster_record *left = &c->clusters.at[b->members.at[*(const member_id *)x].cluster];
    const cluster_record *right = &c->clusters.at[b->members.at[*(const member_id *)y].cluster];
    int by_name = str_cmp(text_of(c, left->name), text_of(c, right->name));
    return by_name ? by_name : str_cmp(text_of(c, left->namespace_), text_of(c, right->namespace_));
}

member_id *members_in_order(const bundle_record *b, arena *a, size_t *ret_count)
{
    member_id *list = ARENA_ARRAY(a, b->members.len + 1, member_id);
    *ret_count = 0;
    for (member_id m = 0; list && m < b->members.len; m++)
        if (b->members.at[m].present)
            list[(*ret_count)++] = m;
    if (list && *ret_count > 1)
        qsort_r(list, *ret_count, sizeof *list, by_cluster, (void *)(uintptr_t)b);
    return list;
}

static str partition_name(const bundle_record *b, member_id m)
{
    uint32_t index = partitions_of(b->roll.pacing, m);
    if (index == PARTITION_NONE)
        return STR_EMPTY;
    partition_view view;
    partitions_view(b->roll.pacing, index, &view);
    return view.name;
}

static placement_view view_of(const bundle_record *b, member_id m)
{
    const clusters *c = b->self;
    const placed *at = &b->members.at[m];
    return (placement_view){
        .id = at->id,
        .kind = TARGET_CLUSTER,
        .state = placed_state(b, m),
        .change = text_of(c, b->change),
        .target = text_of(c, at->label),
        .environment = STR_EMPTY,
        .wanted = text_kept(c, at->wanted),
        .current = text_kept(c, at->claimed ? at->applied : at->live),
        .group = partition_name(b, m),
    };
}

bool clusters_placements(const void *self, placement_visitor visit, void *context)
{
    const clusters *c = self;
    arena *scratch scoped(arena_cleanup) = arena_new(0);
    if (!scratch)
        return false;
    for (size_t i = 0; i < c->bundles.len; i++) {
        const bundle_record *b = c->bundles.at[i];
        size_t count = 0;
        if (!b->present)
            continue;
        member_id *order = members_in_order(b, scratch, &count);
        if (!order)
            return false;
        for (size_t k = 0; k < count; k++) {
            placement_view view = view_of(b, order[k]);
            if (!visit(context, &view))
                return true;
        }
        arena_rewind(scratch, (arena_place){0});
    }
    return true;
}

static const placed_ref *find(const clusters *c, placement_id id)
{
    size_t low = 0, high = c->placements.len;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (c->placements.at[middle].id < id)
            low = middle + 1;
        else
            high = middle;
    }
    const placed_ref *ref = low < c->placements.len ? &c->placements.at[low] : NULL;
    if (!ref || ref->id != id)
        return NULL;
    const placed *at = &ref->bundle->members.at[ref->member];
    return at->present && at->id == id ? ref : NULL;
}

bool clusters_placement(const void *self, placement_id id, placement_view *ret)
{
    const placed_ref *ref = find(self, id);
    if (ref)
        *ret = view_of(ref->bundle, ref->member);
    return ref != NULL;
}

group_view bundle_group(const bundle_record *b, size_t index)
{
    partition_view at;
    partitions_view(b->roll.pacing, index, &at);
    return (group_view){
        .kind = GROUP_PARTITION,
        .change = text_of(b->self, b->change),
        .name = at.name,
        .strategy = STR_EMPTY,
        .matched = at.matched,
        .limit = at.cap,
        .holders = at.unavailable,
        .peak = at.peak,
        .ready = at.ready,
        .visited = at.visited,
        .unavailable = at.unavailable,
        .passed_ms = b->roll.passed_ms,
        .stopped = partitions_halted(b->roll.pacing),
    };
}

bool clusters_paused(const void *self, str change)
{
    const bundle_record *b = bundle_find(self, change);
    return b && bundle_paused(b);
}

void clusters_groups(const void *self, group_visitor visit, void *context)
{
    const clusters *c = self;
    for (size_t i = 0; i < c->bundles.len; i++) {
        const bundle_record *b = c->bundles.at[i];
        for (size_t p = 0; b->present && p < partitions_count(b->roll.pacing); p++) {
            group_view view = bundle_group(b, p);
            if (!visit(context, &view))
                return;
        }
    }
}

/* ---- reasons ---- */

typedef struct teller {
    const bundle_record *b;
    const placed *at;
    member_id member;
    arena *arena;
    reasons *out;
    bool no_memory;
} teller;

static str format_name(teller *t, const char *kind, str name)
{
    str text = arena_printf(t->arena, "%s %.*s", kind, STR_ARG(name));
    t->no_memory |= !text.ptr;
    return text;
}

/* A reason whose act is done to one thing. */
static void tell(teller *t, reason r, str of)
{
    str *one = ARENA_ARRAY(t->arena, 1, str);
    if (one)
        *one = of;
    r.of = one;
    r.of_count = 1;
    r.next_ms = REASON_NEVER;
    t->no_memory |= !one || !reasons_add(t->out, t->arena, r);
}

/* Agents check in every 15 minutes: one that was not seen twice as long does not answer. That
 * decides nothing (offlineAfterSeconds does), it only is the reason. */
#define AGENT_SILENT_MS (INT64_C(30) * 60 * 1000)

static bool silent(const clusters *c, const placed *at)
{
    const cluster_record *r = &c->clusters.at[at->cluster];
    int64_t seen = r->last_seen_ms > r->created_ms ? r->last_seen_ms : r->created_ms;
    return seen > 0 && c->core->now_ms - seen >= AGENT_SILENT_MS;
}

/* It was released and is not done. */
static void tell_released(teller *t)
{
    const clusters *c = t->b->self;
    const placed *at = t->at;
    str name = text_of(c, at->label);
    reason r = {.scope = format_name(t, "cluster", name), .act = RELEASE_COMPLETE};
    if (at->hindered) {
        r.rule = REASON_HINDERED;
        r.act = RELEASE_EDIT;
        r.detail = text_kept(c, at->hindered);
        tell(t, r, name);
    } else if (at->offline) {
        r.rule = REASON_OFFLINE;
        r.act = RELEASE_ONLINE;
        r.detail = STR("its agent was not seen for too long");
        tell(t, r, name);
    } else if (at->failed) {
        r.rule = REASON_FAILED;
        r.act = RELEASE_EDIT;
        r.detail = text_kept(c, at->message);
        tell(t, r, text_of(c, t->b->change));
    } else if (at->flight && silent(c, at)) {
        r.rule = REASON_OFFLINE;
        r.act = RELEASE_ONLINE;
        r.detail = STR("its agent does not answer, and is waited for");
        tell(t, r, name);
    } else if (at->flight) {
        r.rule = REASON_RUNNING;
        r.detail = STR("a deployment that its agent has not confirmed yet");
        tell(t, r, name);
    } else {
        r.rule = REASON_NOT_READY;
        tell(t, r, name);
    }
}

/* What holds the bundle or the cluster itself, whatever the partitions say. edited: what an edit of
 * the bundle does away with is no reason. */
static void tell_own(teller *t, bool edited)
{
    const clusters *c = t->b->self;
    const cluster_record *r = &c->clusters.at[t->at->cluster];
    str change = text_of(c, t->b->change), name = text_of(c, t->at->label);
    str bundle_scope = format_name(t, "bundle", change),
        cluster_scope = format_name(t, "cluster", name);
    if (bundle_paused(t->b)) /* resuming lifts a halt too */
        tell(t,
             (reason){.rule = REASON_PAUSED,
                      .scope = bundle_scope,
                      .act = RELEASE_RESUME,
                      .detail = change},
             change);
    else if (partitions_halted(t->b->roll.pacing) && !edited)
        tell(t,
             (reason){.rule = REASON_HALTED,
                      .scope = bundle_scope,
                      .act = RELEASE_RESUME,
                      .have = partitions_failures(t->b->roll.pacing),
                      .limit = t->b->strategy.failure_threshold.value,
                      .detail = STR("failureThreshold was reached")},
             change);
    if (r->paused)
        tell(t,
             (reason){.rule = REASON_PAUSED,
                      .scope = cluster_scope,
                      .act = RELEASE_RESUME,
                      .detail = name},
             name);
    if (t->at->refused && !edited)
        tell(t,
             (reason){.rule = REASON_EXPRESSION,
                      .scope = bundle_scope,
                      .act = RELEASE_EDIT,
                      .detail = text_kept(c, t->at->refused)},
             change);
    if (!r->has_namespace)
        tell(t,
             (reason){.rule = REASON_NO_NAMESPACE, .scope = cluster_scope, .act = RELEASE_ONLINE},
             name);
    if (t->at->offline)
        tell(t,
             (reason){.rule = REASON_OFFLINE,
                      .scope = cluster_scope,
                      .act = RELEASE_ONLINE,
                      .detail = STR("its agent was not seen for too long")},
             name);
    if (partitions_are_cut(t->b->roll.pacing) &&
        partitions_of(t->b->roll.pacing, t->member) == PARTITION_NONE)
        tell(t, (reason){.rule = REASON_NO_PARTITION, .scope = bundle_scope, .act = RELEASE_LABEL},
             name);
}

bool clusters_reasons(const void *self, placement_id id, arena *a, reasons *out)
{
    const clusters *c = self;
    const placed_ref *ref = find(c, id);
    if (!ref)
        return true;
    const bundle_record *b = ref->bundle;
    const placed *at = &b->members.at[ref->member];
    teller t = {.b = b, .at = at, .member = ref->member, .arena = a, .out = out};
    if (placed_done(at))
        return true;
    if (at->live == at->wanted && !at->again) {
        tell_released(&t);
        if (at->failed && !at->offline) /* another version is asked for: what would hold that? */
            tell_own(&t, true);
        return !t.no_memory;
    }
    tell_own(&t, false);
    str change = text_of(c, b->change);
    partition_question q = {.member = ref->member,
                            .now_ms = c->core->now_ms,
                            .scope = format_name(&t, "bundle", change),
                            .editable = change};
    size_t before = out->len;
    bool good = !t.no_memory && partitions_reasons(b->roll.pacing, &q, a, out);
    if (good && out->len == before && before == 0) /* nothing objects: the next pass takes it */
        tell(&t,
             (reason){.rule = REASON_MAX_NEW,
                      .scope = q.scope,
                      .act = RELEASE_TIME,
                      .limit = b->strategy.max_new},
             change);
    return good && !t.no_memory;
}
