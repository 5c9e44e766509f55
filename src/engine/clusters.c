/* SPDX-License-Identifier: Apache-2.0 */
/* Bundles on clusters: facts in, passes out. */
#include "engine/clusters_internal.h"

#include <assert.h>

#include "base/mem.h"

name_id intern(clusters *c, str text)
{
    if (text.len == 0)
        return 0;
    name_id n = names_add(c->core->names, text);
    if (!n)
        c->core->no_memory = true;
    return n;
}

text_id text_keep(clusters *c, str text)
{
    if (text.len == 0)
        return 0;
    text_id n = text_pool_add(c->texts, text);
    if (!n)
        c->core->no_memory = true;
    return n;
}

bool bundle_paused(const bundle_record *b)
{
    return b->act_paused || (b->document->spec.paused && !b->resumed);
}

/* ---- what a member is to the pacing ---- */

static bool placed_available(const placed *at)
{
    return at->live && !at->claimed && at->applied == at->live && at->ready;
}

bool placed_done(const placed *at)
{
    return at->live == at->wanted && placed_available(at);
}

unsigned placed_flags(const bundle_record *b, const placed *at)
{
    const cluster_record *r = &b->self->clusters.at[at->cluster];
    unsigned flags = 0;
    if (r->paused || !r->has_namespace || at->offline)
        flags |= PACED_OUT;
    if (at->live)
        flags |= PACED_HAS;
    if (at->live && at->live == at->wanted)
        flags |= PACED_CURRENT;
    if (placed_available(at))
        flags |= PACED_AVAILABLE;
    if (at->again)
        flags |= PACED_AGAIN;
    if (at->refused)
        flags |= PACED_HELD;
    return flags;
}

void placed_refresh(bundle_record *b, member_id m)
{
    b->self->core->looked_at++;
    if (partitions_set(b->roll.pacing, m, placed_flags(b, &b->members.at[m])))
        b->roll.dirty = true;
}

void claim_ends(bundle_record *b, placed *at, claim_end end)
{
    if (!at->flight)
        return;
    ended_claim ended = {at->id, b->change, at->label, at->flight, at->message, end};
    at->flight = 0;
    if (!vec_push(&b->self->ended, ended))
        b->self->core->no_memory = true;
}

/* Evidence counts only for the version that is in flight. */
void placed_judge(bundle_record *b, member_id m)
{
    placed *at = &b->members.at[m];
    if (!at->flight || at->claimed)
        return;
    if (!at->live)
        claim_ends(b, at, CLAIM_LOST);
    else if (at->live == at->flight && placed_available(at))
        claim_ends(b, at, CLAIM_SUCCEEDED);
    else if (at->live == at->flight && at->failed)
        claim_ends(b, at, CLAIM_FAILED);
}

/* ---- offline ---- */

int64_t offline_at(const bundle_record *b, const placed *at)
{
    const cluster_record *r = &b->self->clusters.at[at->cluster];
    int64_t seen = r->last_seen_ms > r->created_ms ? r->last_seen_ms : r->created_ms;
    return b->offline_ms > 0 && seen > 0 ? seen + b->offline_ms : REASON_NEVER;
}

static bool clock_before(const bundle_record *b, member_id x, member_id y)
{
    const placed *left = &b->members.at[x], *right = &b->members.at[y];
    int64_t first = offline_at(b, left), second = offline_at(b, right);
    if (first != second)
        return first < second;
    const names *texts = b->self->core->names;
    return str_cmp(names_text(texts, left->label), names_text(texts, right->label)) < 0;
}

static void clock_put(bundle_record *b, size_t index, member_id m)
{
    b->clock.at[index] = m;
    b->members.at[m].clock = (uint32_t)index + 1;
}

/* Moves a member up or down to where its time belongs. */
static void clock_sift(bundle_record *b, size_t index)
{
    member_id m = b->clock.at[index];
    while (index > 0 && clock_before(b, m, b->clock.at[(index - 1) / 2])) {
        clock_put(b, index, b->clock.at[(index - 1) / 2]);
        index = (index - 1) / 2;
    }
    while (2 * index + 1 < b->clock.len) {
        size_t child = 2 * index + 1;
        if (child + 1 < b->clock.len && clock_before(b, b->clock.at[child + 1], b->clock.at[child]))
            child++;
        if (!clock_before(b, b->clock.at[child], m))
            break;
        clock_put(b, index, b->clock.at[child]);
        index = child;
    }
    clock_put(b, index, m);
}

void clock_remove(bundle_record *b, member_id m)
{
    uint32_t where = b->members.at[m].clock;
    if (!where)
        return;
    b->members.at[m].clock = 0;
    member_id last = b->clock.at[--b->clock.len];
    if (last == m)
        return;
    clock_put(b, where - 1, last);
    clock_sift(b, where - 1);
}

void clock_update(bundle_record *b, member_id m)
{
    placed *at = &b->members.at[m];
    if (offline_at(b, at) == REASON_NEVER || at->offline) {
        clock_remove(b, m);
        return;
    }
    if (!at->clock) {
        if (!vec_push(&b->clock, m)) {
            b->self->core->no_memory = true;
            return;
        }
        at->clock = (uint32_t)b->clock.len;
    }
    clock_sift(b, at->clock - 1);
}

static void clock_run(bundle_record *b)
{
    int64_t now = b->self->core->now_ms;
    while (b->clock.len > 0 && offline_at(b, &b->members.at[b->clock.at[0]]) <= now) {
        member_id m = b->clock.at[0];
        placed *at = &b->members.at[m];
        clock_remove(b, m);
        at->offline = true;
        claim_ends(b, at, CLAIM_OFFLINE);
        placed_refresh(b, m);
    }
}

void placed_returns(bundle_record *b, member_id m)
{
    placed *at = &b->members.at[m];
    int64_t due = offline_at(b, at);
    if (at->offline && (due == REASON_NEVER || due > b->self->core->now_ms)) {
        at->offline = false;
        at->again = at->live && at->live == at->wanted && !placed_available(at);
    }
    clock_update(b, m);
    placed_refresh(b, m);
}

/* ---- facts ---- */

/* A report older than our own release still shows another version, or none: it is not looked at. */
static bool report_is_stale(const placed *at, const fact_report *r, text_id live)
{
    return at->claimed && !r->withdrawn && (!r->exists || live != at->live);
}

static void take_report(clusters *c, const fact_report *r)
{
    bundle_record *b = bundle_find(c, r->change);
    const uint64_t *found = b ? strmap_get(&b->by_label, r->target) : NULL;
    if (!found)
        return;
    member_id m = (member_id)*found;
    placed *at = &b->members.at[m];
    text_id live = r->exists ? text_keep(c, r->live) : 0;
    if (report_is_stale(at, r, live))
        return;
    bool failed_before = at->failed && at->live == live;
    at->claimed = live && r->under_way;
    at->hindered = 0; /* what was released is there */
    at->live = live;
    at->applied = live ? text_keep(c, r->applied) : 0;
    at->ready = live && r->ready;
    at->failed = live && r->failed;
    at->message = at->failed ? text_keep(c, r->message) : 0;
    if (r->released && !at->given) { /* as after a restart */
        at->given = live;
        at->flight = live == at->wanted && at->applied != live ? live : 0;
    }
    if (placed_available(at))
        at->again = false;
    bool counts = at->failed && !failed_before && live == at->wanted && live == at->given;
    placed_judge(b, m);
    if (counts && partitions_failed(b->roll.pacing, m))
        b->roll.halted_now = true;
    placed_refresh(b, m);
}

/* It is only shown: a deployment that cannot be written stays claimed, and is tried again. */
static void take_kept(clusters *c, const fact_kept *f)
{
    bundle_record *b = bundle_find(c, f->change);
    const uint64_t *found = b ? strmap_get(&b->by_label, f->target) : NULL;
    if (found)
        b->members.at[*found].hindered = f->durable ? 0 : text_keep(c, f->why);
}

static void act_on(bundle_record *b, const fact_act *act)
{
    switch (act->act) {
    case ACT_PAUSE:
        b->act_paused = true;
        b->resumed = false;
        break;
    case ACT_RESUME:
        b->act_paused = false;
        b->resumed = b->document->spec.paused; /* a later pause counts */
        partitions_resume(b->roll.pacing);
        b->roll.halted_now = false;
        b->roll.dirty = true;
        break;
    case ACT_APPROVE:
        for (size_t i = 0; i < partitions_count(b->roll.pacing); i++) {
            partition_view view;
            partitions_view(b->roll.pacing, i, &view);
            if (act->partition.len == 0 || str_eq(act->partition, view.name))
                b->roll.dirty |= partitions_approve(b->roll.pacing, view.name);
        }
        break;
    case ACT_RETRY: {
        const uint64_t *found = strmap_get(&b->by_label, act->target);
        placed *at = found ? &b->members.at[*found] : NULL;
        if (!at || !at->live || at->live != at->wanted || at->flight || placed_available(at))
            break;
        at->again = true;
        placed_refresh(b, (member_id)*found);
        break;
    }
    case ACT_REJECT:
    case ACT_SKIP:
    case ACT_BYPASS:
    case ACT_ROLLBACK:
    case ACT_RESET:
    case ACT_RESET_BATCHES:
    case ACT_FREEZE:
    case ACT_THAW:
    case ACT_HALT:
    case ACT_CLAIM_SLOT:
    case ACT_FREE_SLOT: break;
    }
}

static bool take_document(clusters *c, const object *o, bool gone)
{
    if (o->kind == KIND_BUNDLE && gone)
        bundle_gone(c, o->bundle);
    else if (o->kind == KIND_BUNDLE)
        bundle_document(c, o->bundle);
    else if (o->kind == KIND_CLUSTER_GROUP)
        group_document(c, o->metadata, gone ? NULL : o->cluster_group);
    else if (o->kind == KIND_BUNDLE_NAMESPACE_MAPPING)
        mapping_document(c, o->metadata, gone ? NULL : o->bundle_namespace_mapping);
    else if (o->kind == KIND_NAMESPACE)
        namespace_document(c, o->metadata, gone ? NULL : o->kube_namespace);
    else
        return false;
    return true;
}

static bool clusters_take(void *self, const fact *f)
{
    clusters *c = self;
    if (c->core->no_memory) /* what is half done is thrown away: look no further */
        return false;
    arena_rewind(c->scratch, (arena_place){0});
    switch (f->kind) {
    case FACT_DOCUMENT: return take_document(c, f->document, false);
    case FACT_DOCUMENT_GONE: return take_document(c, f->document, true);
    case FACT_TARGET: return target_facts(c, &f->target);
    case FACT_TARGET_GONE:
        if (f->target.kind != TARGET_CLUSTER)
            return false;
        cluster_leaves(c, &f->target);
        return true;
    case FACT_REPORT: take_report(c, &f->report); return true;
    case FACT_KEPT: take_kept(c, &f->kept); return false;
    case FACT_ACT:
        for (size_t i = 0; i < c->bundles.len; i++) {
            bundle_record *b = c->bundles.at[i];
            str change = names_text(c->core->names, b->change);
            if (b->present && (f->act.change.len == 0 || str_eq(f->act.change, change)))
                act_on(b, &f->act);
        }
        return false; /* others may know a change of that name too */
    case FACT_STAGE:
    case FACT_DRAIN:
    case FACT_JOB: return false;
    }
    return false;
}

/* ---- the step ---- */

static str claim_end_text(claim_end end)
{
    static const str texts[] = {
#define X(kind, text) [CLAIM_##kind] = STR(text),
        CLAIM_ENDS(X)
#undef X
    };
    return texts[end];
}

static void tell_ended(clusters *c)
{
    engine_core *core = c->core;
    for (size_t i = 0; i < c->ended.len; i++) {
        const ended_claim *ended = &c->ended.at[i];
        decision *d = core_decide(core, DECISION_RELEASE, ended->id);
        if (!d)
            return;
        d->change = names_text(core->names, ended->change);
        d->target = names_text(core->names, ended->label);
        d->version = text_kept(c, ended->version);
        d->state = claim_end_text(ended->end);
        d->failed =
            ended->end == CLAIM_FAILED || ended->end == CLAIM_LOST || ended->end == CLAIM_OFFLINE;
        d->detail = text_kept(c, ended->message);
    }
    c->ended.len = 0;
}

static void tell_start(bundle_record *b, const placed *at, const partition_pick *pick, str group)
{
    engine_core *core = b->self->core;
    for (int i = 0; i < 2; i++) {
        decision *d = core_decide(core, i == 0 ? DECISION_START : DECISION_DEPLOY, at->id);
        if (!d)
            return;
        d->change = names_text(core->names, b->change);
        d->target = names_text(core->names, at->label);
        d->version = text_kept(b->self, at->wanted);
        d->group = group;
        d->first = pick->first;
        d->fix = pick->fix;
        d->retry = at->again;
    }
}

static void release(bundle_record *b, const partition_pick *pick)
{
    clusters *c = b->self;
    placed *at = &b->members.at[pick->member];
    partition_view view;
    partitions_view(b->roll.pacing, pick->partition, &view);
    claim_ends(b, at, CLAIM_SUPERSEDED);
    tell_ended(c);
    tell_start(b, at, pick, core_text(c->core, view.name));
    at->claimed = at->claimed || at->live != at->wanted;
    at->live = at->flight = at->given = at->wanted;
    at->ready = at->failed = at->again = false;
    at->message = at->hindered = 0;
    partitions_set(b->roll.pacing, pick->member, placed_flags(b, at));
}

static void tell_pass(bundle_record *b, const pass_figures *f)
{
    decision *d = core_decide(b->self->core, DECISION_PASS, 0);
    if (!d)
        return;
    d->change = names_text(b->self->core->names, b->change);
    d->number = b->roll.passes;
    d->size = f->created + f->updated + f->fixed;
    d->created = f->created;
    d->updated = f->updated;
    d->fixed = f->fixed;
    d->visited = f->visited;
    d->partitions = f->partitions;
    d->not_ready = f->not_ready;
}

static void tell_halt(bundle_record *b)
{
    decision *d = b->roll.halted_now ? core_decide(b->self->core, DECISION_HALT, 0) : NULL;
    b->roll.halted_now = false;
    if (!d)
        return;
    d->change = names_text(b->self->core->names, b->change);
    d->detail = STR("failureThreshold");
    d->number = partitions_failures(b->roll.pacing);
}

static void begin(bundle_record *b)
{
    bool cut;
    if (!partition_rollout_begin(&b->roll, b->by_label.len, &cut))
        b->self->core->no_memory = true;
    b->self->core->looked_at += cut ? b->by_label.len : 0;
}

static void bundle_step(bundle_record *b)
{
    clusters *c = b->self;
    if (!partition_rollout_due(&b->roll, c->core->now_ms) || bundle_paused(b))
        return;
    pass_figures figures;
    c->picks.len = 0;
    if (!partitions_pass(b->roll.pacing, c->core->now_ms, &c->picks, &figures)) {
        c->core->no_memory = true;
        return;
    }
    c->core->looked_at += (uint64_t)figures.looked_at;
    for (size_t i = 0; i < c->picks.len && !c->core->no_memory; i++)
        release(b, &c->picks.at[i]);
    if (partition_rollout_passed(&b->roll, &figures, c->core->now_ms))
        tell_pass(b, &figures);
}

static void mark_member(text_pool *t, const placed *at)
{
    const text_id all[] = {at->wanted,  at->refused, at->hindered, at->live,
                           at->applied, at->message, at->flight,   at->given};
    for (size_t i = 0; at->present && i < sizeof all / sizeof all[0]; i++)
        text_pool_mark(t, all[i]);
}

static void mark_labels(text_pool *t, const label *labels, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        text_pool_mark_text(t, labels[i].key);
        text_pool_mark_text(t, labels[i].value);
    }
}

/* Forgets what nobody has any more. Decisions of the step before may be views of it, so that this
 * is the first thing of a step. */
static void sweep_texts(clusters *c)
{
    text_pool *t = c->texts;
    if (!text_pool_due(t))
        return;
    for (size_t i = 0; i < c->bundles.len; i++) {
        const bundle_record *b = c->bundles.at[i];
        for (member_id m = 0; m < b->members.len; m++)
            mark_member(t, &b->members.at[m]);
        for (size_t k = 0; k < b->wanted.len; k++)
            if (b->wanted.entries[k].value != WANTED_BY_CLUSTER)
                text_pool_mark(t, (text_id)b->wanted.entries[k].value);
    }
    for (size_t i = 0; i < c->clusters.len; i++) {
        const cluster_record *r = &c->clusters.at[i];
        text_pool_mark(t, r->uid);
        text_pool_mark(t, r->template_values);
        mark_labels(t, r->labels, r->label_count);
        mark_labels(t, r->annotations, r->annotation_count);
    }
    for (size_t i = 0; i < c->ended.len; i++) {
        text_pool_mark(t, c->ended.at[i].version);
        text_pool_mark(t, c->ended.at[i].message);
    }
    text_pool_sweep(t);
}

static void clusters_step(void *self)
{
    clusters *c = self;
    sweep_texts(c);
    for (size_t i = 0; i < c->bundles.len; i++)
        if (c->bundles.at[i]->present)
            clock_run(c->bundles.at[i]);
    tell_ended(c);
    for (size_t i = 0; i < c->bundles.len && !c->core->no_memory; i++) {
        bundle_record *b = c->bundles.at[i];
        if (!b->present)
            continue;
        begin(b);
        tell_halt(b);
        bundle_step(b);
    }
}

static int64_t clusters_next_ms(const void *self)
{
    const clusters *c = self;
    int64_t earliest = REASON_NEVER;
    for (size_t i = 0; i < c->bundles.len; i++) {
        const bundle_record *b = c->bundles.at[i];
        if (!b->present)
            continue;
        bool held = bundle_paused(b) || partitions_halted(b->roll.pacing);
        int64_t soaked = held ? REASON_NEVER : partitions_next_ms(b->roll.pacing);
        int64_t offline =
            b->clock.len > 0 ? offline_at(b, &b->members.at[b->clock.at[0]]) : REASON_NEVER;
        if (soaked != REASON_NEVER && (earliest == REASON_NEVER || soaked < earliest))
            earliest = soaked;
        if (offline != REASON_NEVER && (earliest == REASON_NEVER || offline < earliest))
            earliest = offline;
    }
    return earliest;
}

/* ---- life ---- */

static void clusters_destroy(void *self)
{
    clusters *c = self;
    if (!c)
        return;
    for (size_t i = 0; i < c->bundles.len; i++) {
        bundle_record *b = c->bundles.at[i];
        partitions_free(b->roll.pacing);
        arena_free(b->own);
        strmap_done(&b->wanted);
        strmap_done(&b->by_label);
        vec_done(&b->members);
        vec_done(&b->clock);
        vec_done(&b->free_members);
        mem_free(b);
    }
    for (size_t i = 0; i < c->clusters.len; i++) {
        mem_free(c->clusters.at[i].labels);
        mem_free(c->clusters.at[i].annotations);
        vec_done(&c->clusters.at[i].groups);
        vec_done(&c->clusters.at[i].placed);
    }
    vec_done(&c->bundles);
    strmap_done(&c->bundle_records);
    vec_done(&c->clusters);
    strmap_done(&c->cluster_numbers);
    vec_done(&c->groups);
    vec_done(&c->mappings);
    strmap_done(&c->namespaces);
    vec_done(&c->placements);
    vec_done(&c->ended);
    vec_done(&c->picks);
    arena_free(c->scratch);
    text_pool_free(c->texts);
    mem_free(c);
}

static void *clusters_create(engine_core *core)
{
    clusters *c = mem_zalloc(sizeof *c);
    if (!c)
        return NULL;
    c->core = core;
    c->scratch = arena_new(0);
    c->texts = text_pool_new();
    if (c->scratch && c->texts)
        return c;
    clusters_destroy(c);
    return NULL;
}

const vocabulary vocabulary_clusters = {
    .name = "clusters",
    .create = clusters_create,
    .destroy = clusters_destroy,
    .take = clusters_take,
    .step = clusters_step,
    .next_ms = clusters_next_ms,
    .placements = clusters_placements,
    .placement = clusters_placement,
    .reasons = clusters_reasons,
    .groups = clusters_groups,
    .paused = clusters_paused,
    .save = clusters_save,
    .save_unnumbered = clusters_save_unnumbered,
    .restore = clusters_restore,
    .unnumber = clusters_unnumber,
    .number = clusters_number,
    .keep_change = clusters_keep,
    .keep_less = clusters_keep_less,
    .bundle = clusters_bundle,
    .bundle_partition = clusters_bundle_partition,
    .deployment = clusters_deployment,
    .deployment_options = clusters_deployment_options,
    .in_group = clusters_in_group,
    .full = clusters_full,
    .check = clusters_check,
};
