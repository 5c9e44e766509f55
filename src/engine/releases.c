/* SPDX-License-Identifier: Apache-2.0 */
/* The third vocabulary: deployments on resources. This file is its door and its step. */
#include <assert.h>

#include "base/mem.h"
#include "engine/chain.h"

/* A list of so many runs that are in order is merged, one of more is sorted. */
#define RUNS_FEW 8u

/* ---- small things ---- */

bool rel_no_memory(releases *r)
{
    r->core->no_memory = true;
    return false;
}

void index_add(releases *r, index_list *list, uint32_t index)
{
    if (!vec_push(list, index))
        rel_no_memory(r);
}

void index_drop(index_list *list, uint32_t index)
{
    for (size_t i = 0; i < list->len; i++)
        if (list->at[i] == index) {
            memmove(&list->at[i], &list->at[i + 1], (list->len - i - 1) * sizeof *list->at);
            list->len--;
            return;
        }
}

bool index_has(const index_list *list, uint32_t index)
{
    for (size_t i = 0; i < list->len; i++)
        if (list->at[i] == index)
            return true;
    return false;
}

name_id rel_name(releases *r, str text)
{
    if (text.len == 0)
        return 0;
    name_id n = names_add(r->core->names, text);
    if (n == 0)
        rel_no_memory(r);
    return n;
}

/* ---- what is to be looked at ---- */

void mark_target(releases *r, uint32_t t)
{
    rel_target *target = &r->targets.at[t];
    if (target->dirty || target->id == 0)
        return;
    target->dirty = true;
    index_add(r, &r->dirty_targets, t);
}

void mark_lane(releases *r, uint32_t l)
{
    if (r->lanes.at[l].dirty)
        return;
    r->lanes.at[l].dirty = true;
    index_add(r, &r->dirty_lanes, l);
}

void mark_site(releases *r, uint32_t s)
{
    if (s == NO || r->sites.at[s].dirty || !r->sites.at[s].used)
        return;
    r->sites.at[s].dirty = true;
    index_add(r, &r->dirty_sites, s);
}

void mark_resource(releases *r, uint32_t res)
{
    /* Only slots are looked at: who has none has nothing to settle. */
    if (r->resources.at[res].dirty || r->resources.at[res].holds.len == 0)
        return;
    r->resources.at[res].dirty = true;
    index_add(r, &r->dirty_resources, res);
}

void mark_resource_all(releases *r, uint32_t res)
{
    const rel_resource *resource_ = &r->resources.at[res];
    for (size_t i = 0; i < resource_->targets.len; i++)
        mark_target(r, resource_->targets.at[i]);
    for (size_t i = 0; i < resource_->sites.len; i++)
        mark_site(r, resource_->sites.at[i]);
    mark_resource(r, res);
}

void mark_all(releases *r)
{
    for (uint32_t l = 0; l < r->lanes.len; l++)
        mark_lane(r, l);
    for (uint32_t res = 0; res < r->resources.len; res++)
        mark_resource_all(r, res);
}

void mark_anew(releases *r)
{
    r->refill = true;
    for (uint32_t t = 0; t < r->targets.len; t++)
        if (r->targets.at[t].id != 0 && !r->targets.at[t].relane) {
            r->targets.at[t].relane = true;
            index_add(r, &r->relanes, t);
        }
    mark_all(r);
}

/* ---- the heap of times ---- */

static bool wake_before(const rel_wake *a, const rel_wake *b)
{
    return a->at_ms < b->at_ms;
}

static void wake_push(releases *r, rel_wake w)
{
    if (!vec_push(&r->wakes, w)) {
        rel_no_memory(r);
        return;
    }
    rel_wake *heap = r->wakes.at;
    size_t i = r->wakes.len - 1;
    for (; i > 0 && wake_before(&w, &heap[(i - 1) / 2]); i = (i - 1) / 2)
        heap[i] = heap[(i - 1) / 2];
    heap[i] = w;
}

static rel_wake wake_pop(releases *r)
{
    rel_wake *heap = r->wakes.at;
    rel_wake top = heap[0], last = heap[--r->wakes.len];
    size_t i = 0;
    for (size_t child = 1; child < r->wakes.len; child = 2 * i + 1) {
        if (child + 1 < r->wakes.len && wake_before(&heap[child + 1], &heap[child]))
            child++;
        if (!wake_before(&heap[child], &last))
            break;
        heap[i] = heap[child];
        i = child;
    }
    if (r->wakes.len > 0)
        heap[i] = last;
    return top;
}

static int64_t *wake_slot(releases *r, uint32_t kind, uint32_t index)
{
    switch ((wake_kind)kind) {
    case WAKE_TARGET: return &r->targets.at[index].wake_ms;
    case WAKE_LANE: return &r->lanes.at[index].wake_ms;
    case WAKE_SITE: return &r->sites.at[index].wake_ms;
    case WAKE_RESOURCE: return &r->resources.at[index].wake_ms;
    case WAKE_PEOPLE: return &r->people_wake_ms;
    case WAKE_PACE: return &r->paces.at[index].wake_ms;
    }
    return NULL;
}

void wake_at(releases *r, wake_kind kind, uint32_t index, int64_t at_ms)
{
    int64_t *slot = wake_slot(r, kind, index);
    if (*slot == at_ms)
        return;
    *slot = at_ms;
    if (at_ms != NEVER)
        wake_push(r, (rel_wake){at_ms, kind, index});
}

static bool wake_stands(const releases *r, const rel_wake *w)
{
    return *wake_slot((releases *)(uintptr_t)r, w->kind, w->index) == w->at_ms;
}

static void wake_due(releases *r)
{
    while (r->wakes.len > 0 &&
           (r->wakes.at[0].at_ms <= r->core->now_ms || !wake_stands(r, &r->wakes.at[0]))) {
        rel_wake w = wake_pop(r);
        if (!wake_stands(r, &w))
            continue;
        *wake_slot(r, w.kind, w.index) = NEVER;
        switch ((wake_kind)w.kind) {
        case WAKE_TARGET: mark_target(r, w.index); break;
        case WAKE_LANE: mark_lane(r, w.index); break;
        case WAKE_SITE: mark_site(r, w.index); break;
        case WAKE_RESOURCE: mark_resource(r, w.index); break;
        case WAKE_PEOPLE: people_expire(r); break;
        case WAKE_PACE: pace_mark(r, w.index); break;
        }
    }
}

decision *decide(releases *r, decision_kind kind, uint32_t t)
{
    if (!r->core->out)
        return NULL;
    const rel_target *target = &r->targets.at[t];
    decision *d = core_decide(r->core, kind, target->id);
    if (!d)
        return NULL;
    d->change = rel_text(r, r->deployments.at[target->deployment].name);
    d->target = rel_text(r, r->resources.at[target->resource].name);
    d->environment = rel_text(r, r->environments.at[target->environment].name);
    return d;
}

/* ---- the vocabulary ---- */

static void *releases_create(engine_core *core)
{
    releases *r = mem_zalloc(sizeof *r);
    if (!r)
        return NULL;
    r->core = core;
    r->changes = 1;
    r->people_wake_ms = NEVER;
    r->texts = arena_new(0);
    r->scratch = arena_new(0);
    r->expressions.arena = r->texts;
    if (r->texts && r->scratch)
        return r;
    arena_free(r->texts);
    arena_free(r->scratch);
    return mem_free(r);
}

static void cells_done(releases *r)
{
    for (size_t i = 0; i < r->cells.len; i++) {
        rel_cell *c = &r->cells.at[i];
        for (size_t k = 0; k < c->tallies.len; k++) {
            vec_done(&c->tallies.at[k].successes);
            vec_done(&c->tallies.at[k].failures);
        }
        for (size_t k = 0; k < c->orders.len; k++)
            order_done(&c->orders.at[k]);
        vec_done(&c->tallies);
        vec_done(&c->orders);
        vec_done(&c->targets);
        vec_done(&c->lanes);
    }
    vec_done(&r->cells);
    for (size_t i = 0; i < r->lanes.len; i++) {
        vec_done(&r->lanes.at[i].policies);
        vec_done(&r->lanes.at[i].rules);
        vec_done(&r->lanes.at[i].kinds);
        vec_done(&r->lanes.at[i].paces);
        vec_done(&r->lanes.at[i].candidates);
    }
    vec_done(&r->lanes);
    for (size_t i = 0; i < r->groups.len; i++)
        vec_done(&r->groups.at[i].members);
    vec_done(&r->groups);
    for (size_t i = 0; i < r->sites.len; i++)
        vec_done(&r->sites.at[i].targets);
    vec_done(&r->sites);
}

static void entities_done(releases *r)
{
    for (size_t i = 0; i < r->deployments.len; i++) {
        bitset_done(&r->deployments.at[i].resources);
        vec_done(&r->deployments.at[i].versions);
        vec_done(&r->deployments.at[i].cells);
    }
    for (size_t i = 0; i < r->environments.len; i++) {
        bitset_done(&r->environments.at[i].resources);
        vec_done(&r->environments.at[i].cells);
    }
    for (size_t i = 0; i < r->resources.len; i++) {
        vec_done(&r->resources.at[i].targets);
        vec_done(&r->resources.at[i].sites);
        vec_done(&r->resources.at[i].holds);
    }
    for (size_t i = 0; i < r->policies.len; i++) {
        bitset_done(&r->policies.at[i].targets);
        vec_done(&r->policies.at[i].rules);
        vec_done(&r->policies.at[i].broken);
    }
    for (size_t i = 0; i < r->rules.len; i++) {
        rel_rule *rule_ = &r->rules.at[i];
        bitset_done(&rule_->group);
        vec_done(&rule_->waiters);
        vec_done(&rule_->matches);
        vec_done(&rule_->upstream);
        keymap_done(&rule_->selected);
        window_free(rule_->windows);
        slot_queue_free(rule_->queue);
        order_done(&rule_->order);
    }
    for (size_t i = 0; i < r->freezes.len; i++)
        bitset_done(&r->freezes.at[i].targets);
    vec_done(&r->deployments);
    vec_done(&r->environments);
    vec_done(&r->resources);
    vec_done(&r->policies);
    vec_done(&r->rules);
    vec_done(&r->freezes);
}

static void releases_destroy(void *self)
{
    releases *r = self;
    paces_done(r);
    cells_done(r);
    entities_done(r);
    vec_done(&r->versions);
    vec_done(&r->targets);
    vec_done(&r->approvals);
    vec_done(&r->bypasses);
    keymap *maps[] = {&r->deployment_of, &r->environment_of, &r->resource_of, &r->policy_of,
                      &r->version_of,    &r->version_named,  &r->cell_of,     &r->target_of,
                      &r->placement_of,  &r->refused,        &r->succeeded};
    for (size_t i = 0; i < sizeof maps / sizeof maps[0]; i++)
        keymap_done(maps[i]);
    vec_done(&r->dirty_targets);
    vec_done(&r->dirty_lanes);
    vec_done(&r->dirty_sites);
    vec_done(&r->dirty_resources);
    vec_done(&r->relanes);
    vec_done(&r->free_groups);
    vec_done(&r->concurrency);
    vec_done(&r->wakes);
    vec_done(&r->candidates);
    vec_done(&r->needed);
    vec_done(&r->round);
    vec_done(&r->sorting);
    expression_list_done(&r->expressions);
    arena_free(r->texts);
    arena_free(r->scratch);
    mem_free(r);
}

static bool is_ours(object_kind kind)
{
    return kind == KIND_ENVIRONMENT || kind == KIND_DEPLOYMENT || kind == KIND_VERSION ||
           kind == KIND_ROLLOUT_POLICY;
}

static bool releases_take(void *self, const fact *f)
{
    releases *r = self;
    r->changes++;
    switch (f->kind) {
    case FACT_DOCUMENT:
    case FACT_DOCUMENT_GONE:
        if (!is_ours(f->document->kind))
            return false;
        r->epoch++;
        if (f->kind == FACT_DOCUMENT)
            document_take(r, f->document);
        else
            document_gone(r, f->document);
        return true;
    case FACT_TARGET:
    case FACT_TARGET_GONE:
        if (f->target.kind != TARGET_RESOURCE)
            return false;
        r->epoch++;
        if (f->kind == FACT_TARGET)
            resource_take(r, &f->target);
        else
            resource_gone(r, f->target.name);
        return true;
    case FACT_JOB: job_take(r, &f->job); return true;
    case FACT_ACT: act_take(r, &f->act); return false;
    case FACT_STAGE:
    case FACT_DRAIN:
    case FACT_KEPT:
    case FACT_REPORT: return false;
    }
    return false;
}

/* Decisions come in the order of names, whatever order things were marked in. */
static int compare_sites(const void *a, const void *b, void *context)
{
    return site_cmp(context, *(const uint32_t *)a, *(const uint32_t *)b);
}

static int compare_resources(const void *a, const void *b, void *context)
{
    const releases *r = context;
    return str_cmp(rel_text(r, r->resources.at[*(const uint32_t *)a].name),
                   rel_text(r, r->resources.at[*(const uint32_t *)b].name));
}

typedef int (*comparer)(const void *, const void *, void *);

/* The end of the stretch from "at" on that is in order already. */
static size_t run_end(releases *r, const index_list *list, size_t at, comparer compare)
{
    while (++at < list->len && compare(&list->at[at - 1], &list->at[at], r) <= 0)
        continue;
    return at;
}

/* What two runs, [from, middle) and [middle, to), have together. */
static void merge_runs(releases *r, const index_list *list, const size_t at[3], comparer compare)
{
    size_t a = at[0], b = at[1];
    for (size_t to = at[0]; to < at[2]; to++) {
        bool first = b == at[2] || (a < at[1] && compare(&list->at[a], &list->at[b], r) <= 0);
        r->sorting.at[to] = list->at[first ? a++ : b++];
    }
}

/* Most lists are made of a few that are in order already, those of all resources in the order in
 * which they came: these are merged. */
static void in_order(releases *r, index_list *list, comparer compare)
{
    size_t runs = 0, end = 0;
    for (size_t i = 0; i < list->len && runs <= RUNS_FEW; runs++)
        end = i = run_end(r, list, i, compare);
    if (runs > RUNS_FEW || (runs > 1 && !vec_reserve(&r->sorting, list->len))) {
        qsort_r(list->at, list->len, sizeof *list->at, compare, r);
        return;
    }
    for (; runs > 1; runs = (runs + 1) / 2) {
        for (size_t from = 0; from < list->len; from = end) {
            size_t middle = run_end(r, list, from, compare);
            end = middle < list->len ? run_end(r, list, middle, compare) : middle;
            merge_runs(r, list, (size_t[]){from, middle, end}, compare);
        }
        memcpy(list->at, r->sorting.at, list->len * sizeof *list->at);
    }
}

/* What is marked while the list is worked off belongs to the next round. */
static index_list *taken_out(index_list *list, index_list *spare)
{
    index_list swap = *spare;
    *spare = *list;
    *list = swap;
    list->len = 0;
    return spare;
}

/* One round over everything that is marked. What a round starts or ends may mark more. */
static void round_of_step(releases *r)
{
    lanes_settle(r);
    for (size_t i = 0; i < r->dirty_sites.len; i++)
        site_idle(r, r->dirty_sites.at[i]);
    for (size_t i = 0; i < r->dirty_lanes.len; i++)
        lane_refresh(r, r->dirty_lanes.at[i]);
    r->dirty_lanes.len = 0;
    index_list *list = taken_out(&r->dirty_targets, &r->round);
    for (size_t i = 0; i < list->len; i++) {
        uint32_t t = list->at[i];
        r->targets.at[t].dirty = false;
        if (r->targets.at[t].id != 0)
            target_evaluate(r, t);
    }
    list = taken_out(&r->dirty_sites, &r->round);
    in_order(r, list, compare_sites);
    for (size_t i = 0; i < list->len; i++) {
        uint32_t s = list->at[i];
        r->sites.at[s].dirty = false;
        if (r->sites.at[s].used)
            site_refresh(r, s);
    }
    paces_tell(r);
}

/* Slots are looked at when batches and partitions have been asked: what has just got its place
 * there keeps them, and a restart changes nothing in the order. */
static void slots_of_step(releases *r)
{
    index_list *list = taken_out(&r->dirty_resources, &r->round);
    in_order(r, list, compare_resources);
    for (size_t i = 0; i < list->len; i++) {
        uint32_t res = list->at[i];
        r->resources.at[res].dirty = false;
        slots_settle(r, res);
    }
}

static bool anything_marked(const releases *r)
{
    return r->dirty_lanes.len + r->dirty_targets.len + r->dirty_sites.len + r->relanes.len > 0 ||
           r->refill;
}

static void releases_step(void *self)
{
    releases *r = self;
    r->step_job = r->last_job;
    r->step++;
    r->changes++;
    if (r->restored)
        mark_anew(r);
    r->restored = false;
    wake_due(r);
    do {
        while (anything_marked(r) && !r->core->no_memory)
            round_of_step(r);
        paces_partitions(r);
        if (!anything_marked(r))
            paces_compartments(r);
        if (!anything_marked(r))
            slots_of_step(r);
        if (!anything_marked(r) && r->dirty_resources.len == 0)
            claims_serve(r);
    } while ((anything_marked(r) || r->dirty_resources.len > 0 || r->dirty_paces.len > 0) &&
             !r->core->no_memory);
}

static int64_t releases_next_ms(const void *self)
{
    const releases *r = self;
    /* Entries whose owner has another time by now are only waste, but must not wake anybody. */
    int64_t next = NEVER;
    if (r->restored)
        return r->core->now_ms;
    if (r->wakes.len > 0 && wake_stands(r, &r->wakes.at[0]))
        return r->wakes.at[0].at_ms;
    for (size_t i = 0; i < r->wakes.len; i++)
        if (wake_stands(r, &r->wakes.at[i]))
            next = earlier(next, r->wakes.at[i].at_ms);
    return next;
}

static bool view_of(releases *r, uint32_t t, placement_view *ret)
{
    const rel_target *target = &r->targets.at[t];
    uint32_t goal = target_goal(r, t);
    if (goal == target->current && target->aim != NO)
        goal = target->aim;
    *ret = (placement_view){
        .id = target->id,
        .kind = TARGET_RESOURCE,
        .state = target_state(r, t),
        .change = rel_text(r, r->deployments.at[target->deployment].name),
        .target = rel_text(r, r->resources.at[target->resource].name),
        .environment = rel_text(r, r->environments.at[target->environment].name),
        .wanted = goal == NO ? STR_EMPTY : rel_text(r, r->versions.at[goal].tag),
        .current =
            target->current == NO ? STR_EMPTY : rel_text(r, r->versions.at[target->current].tag),
        .group = partition_of_target(r, t),
    };
    bool hook = target->lane != NO && r->lanes.at[target->lane].role != ROLE_MEMBER;
    if (hook && ret->state == PLACEMENT_DONE && target->wanted != NO)
        ret->next = rel_text(r, r->versions.at[target->wanted].tag);
    return true;
}

static int compare_targets(const void *a, const void *b, void *context)
{
    const releases *r = context;
    const rel_target *x = &r->targets.at[*(const uint32_t *)a],
                     *y = &r->targets.at[*(const uint32_t *)b];
    int c = str_cmp(rel_text(r, r->deployments.at[x->deployment].name),
                    rel_text(r, r->deployments.at[y->deployment].name));
    if (c == 0)
        c = str_cmp(rel_text(r, r->environments.at[x->environment].name),
                    rel_text(r, r->environments.at[y->environment].name));
    if (c == 0)
        c = str_cmp(rel_text(r, r->resources.at[x->resource].name),
                    rel_text(r, r->resources.at[y->resource].name));
    return c;
}

void targets_in_order(releases *r, index_list *list)
{
    in_order(r, list, compare_targets);
}

void resources_in_order(releases *r, index_list *list)
{
    in_order(r, list, compare_resources);
}

/* Those of a set, or all (NULL). */
static bool visit_targets(releases *r, const bitset *among, placement_visitor visit, void *context)
{
    index_list order = {0};
    bool good = true;
    for (uint32_t t = 0; good && t < r->targets.len; t++)
        good = r->targets.at[t].id == 0 || (among && !bitset_has(among, t)) || vec_push(&order, t);
    targets_in_order(r, &order);
    placement_view view;
    for (size_t i = 0; good && i < order.len; i++)
        if (view_of(r, order.at[i], &view) && !visit(context, &view))
            break;
    vec_done(&order);
    return good;
}

static bool releases_placements(const void *self, placement_visitor visit, void *context)
{
    return visit_targets((releases *)(uintptr_t)self, NULL, visit, context);
}

static bool releases_policy(const void *self, str policy, placement_visitor visit, void *context)
{
    releases *r = (releases *)(uintptr_t)self;
    for (size_t p = 0; p < r->policies.len; p++)
        if (r->policies.at[p].doc && str_eq(policy, rel_text(r, r->policies.at[p].name)))
            return visit_targets(r, &r->policies.at[p].targets, visit, context);
    return true;
}

static bool releases_placement(const void *self, placement_id id, placement_view *ret)
{
    releases *r = (releases *)(uintptr_t)self;
    uint32_t t = keymap_get(&r->placement_of, id);
    return t != NO && view_of(r, t, ret);
}

static bool releases_reasons(const void *self, placement_id id, arena *a, reasons *out)
{
    releases *r = (releases *)(uintptr_t)self;
    uint32_t t = keymap_get(&r->placement_of, id);
    r->asking = true;
    r->asked_ms = r->core->now_ms;
    bool good = t == NO || target_reasons(r, t, a, out);
    r->asking = false;
    return good;
}

static void releases_groups(const void *self, group_visitor visit, void *context)
{
    const releases *r = self;
    for (size_t i = 0; i < r->concurrency.len; i++) {
        const rel_rule *rule_ = &r->rules.at[r->concurrency.at[i]];
        group_view view = {
            .kind = GROUP_CONCURRENCY,
            .change = rel_text(r, rule_->id),
            .name = rel_text(r, rule_->id),
            .strategy = STR_EMPTY,
            .matched = rule_->matched,
            .limit = rule_limit(rule_),
            .holders = rule_->held,
            .peak = rule_->peak,
        };
        if (!visit(context, &view))
            return;
    }
    paces_groups(r, visit, context);
}

static bool resource_slots(const releases *r, uint32_t res, slot_visitor visit, void *context)
{
    const rel_resource *resource_ = &r->resources.at[res];
    for (size_t i = 0; i < resource_->holds.len; i++) {
        const rel_hold *hold = &resource_->holds.at[i];
        slot_view view = {.rule = rel_text(r, r->rules.at[hold->rule].id),
                          .target = rel_text(r, resource_->name),
                          .host = hold->host,
                          .job = hold->job};
        if (!visit(context, &view))
            return false;
    }
    return true;
}

static void releases_slots(const void *self, str target, slot_visitor visit, void *context)
{
    const releases *r = self;
    if (target.len > 0) {
        uint32_t res = keymap_get(&r->resource_of, names_find(r->core->names, target));
        if (res != NO)
            resource_slots(r, res, visit, context);
        return;
    }
    for (uint32_t res = 0; res < r->resources.len; res++)
        if (!resource_slots(r, res, visit, context))
            return;
}

static void releases_save(const void *self, buf *out)
{
    releases_write(self, out);
}

static bool releases_restore(void *self, str key, str json, err *error)
{
    return releases_read(self, key, json, error);
}

static bool releases_full(void *self, err *error)
{
    return releases_compare(self, error);
}

static bool releases_check(const void *self, err *error)
{
    return releases_verify(self, error);
}

const vocabulary vocabulary_releases = {
    .name = "releases",
    .create = releases_create,
    .destroy = releases_destroy,
    .take = releases_take,
    .step = releases_step,
    .next_ms = releases_next_ms,
    .placements = releases_placements,
    .policy = releases_policy,
    .placement = releases_placement,
    .reasons = releases_reasons,
    .groups = releases_groups,
    .paused = releases_paused,
    .rollout = releases_rollout,
    .freezes = releases_freezes,
    .slots = releases_slots,
    .metrics = releases_metrics,
    .windows = releases_windows,
    .save = releases_save,
    .restore = releases_restore,
    .unnumber = releases_unnumber,
    .number = releases_number,
    .full = releases_full,
    .check = releases_check,
};
