/* SPDX-License-Identifier: Apache-2.0 */
/* Skyhooks on nodes: the vocabulary's step, its indexes and its timers. */
#include <assert.h>

#include "base/mem.h"
#include "engine/node_gate.h"
#include "engine/nodes_internal.h"
#include "engine/runtime_required.h"

void nodes_memory(nodes *self)
{
    self->core->no_memory = true;
}

char *nodes_copy(nodes *self, str text)
{
    char *copy = mem_alloc(text.len + 1);
    if (!copy) {
        nodes_memory(self);
        return NULL;
    }
    if (text.len > 0)
        memcpy(copy, text.ptr, text.len);
    copy[text.len] = '\0';
    return copy;
}

name_id nodes_name(nodes *self, str text)
{
    name_id id = text.len > 0 ? names_add(self->core->names, text) : 0;
    if (text.len > 0 && id == 0)
        nodes_memory(self);
    return id;
}

/* ---- finding ---- */

uint32_t target_find(const nodes *self, str name)
{
    const uint64_t *at = strmap_get(&self->by_name, name);
    return at ? (uint32_t)*at : NOBODY;
}

str target_name(const nodes *self, uint32_t target)
{
    const node_target *t = &self->targets.at[target];
    return t->name ? (str){t->name, t->name_bytes} : STR_EMPTY;
}

change *change_find(const nodes *self, str name)
{
    name_id id = names_find(self->core->names, name);
    for (size_t i = 0; id != 0 && i < self->changes.len; i++)
        if (self->changes.at[i]->name == id)
            return self->changes.at[i];
    return NULL;
}

node_placement *placement_on(const nodes *self, uint32_t target, const change *c)
{
    uint32_t i = self->targets.at[target].first;
    while (i != NOBODY && self->placements.at[i].change != c)
        i = self->placements.at[i].next;
    return i == NOBODY ? NULL : &self->placements.at[i];
}

node_placement *placement_by_id(const nodes *self, placement_id id)
{
    uint32_t index = keymap_get(&self->by_id, id);
    if (index == KEYMAP_NONE)
        return NULL;
    node_placement *p = &self->placements.at[index];
    return p->change && p->id == id ? p : NULL;
}

decision *node_decide(nodes *self, decision_kind kind, const node_placement *p)
{
    decision *d = self->core->out ? core_decide(self->core, kind, p ? p->id : 0) : NULL;
    if (!d)
        d = &self->unheard;
    if (p) {
        d->change = names_text(self->core->names, p->change->name);
        d->target = target_name(self, p->target);
    }
    return d;
}

/* ---- orders by name: what is decided for many targets is decided in the order of their names ----
 */

typedef struct name_order {
    const nodes *self;
    bool placements;
} name_order;

static int by_target_name(const void *a, const void *b, void *context)
{
    const name_order *o = context;
    uint32_t x = *(const uint32_t *)a;
    uint32_t y = *(const uint32_t *)b;
    if (o->placements) {
        x = o->self->placements.at[x].target;
        y = o->self->placements.at[y].target;
    }
    return str_cmp(target_name(o->self, x), target_name(o->self, y));
}

void targets_sort(const nodes *self, uint32_t *at, size_t count)
{
    name_order order = {self, false};
    if (count > 1)
        qsort_r(at, count, sizeof *at, by_target_name, &order);
}

void change_choose_placements(nodes *self, const change *c)
{
    name_order order = {self, true};
    self->chosen.len = 0;
    for (uint32_t i = 0; i < self->placements.len; i++)
        if (self->placements.at[i].change == c && !vec_push(&self->chosen, i))
            nodes_memory(self);
    if (self->chosen.len > 1)
        qsort_r(self->chosen.at, self->chosen.len, sizeof *self->chosen.at, by_target_name, &order);
}

/* ---- marking ---- */

void target_touch(nodes *self, uint32_t target)
{
    node_target *t = &self->targets.at[target];
    if (t->dirty)
        return;
    if (!vec_push(&self->dirty, target)) {
        nodes_memory(self);
        return;
    }
    t->dirty = true;
}

void change_touch_targets(nodes *self, const change *c)
{
    for (size_t i = 0; i < c->members.len; i++)
        if (c->members.at[i] != NOBODY)
            target_touch(self, self->placements.at[c->members.at[i]].target);
}

/* ---- timers ---- */

static bool timer_before(node_timer a, node_timer b)
{
    return a.ms != b.ms ? a.ms < b.ms : a.placement < b.placement;
}

static void timers_down(node_timer *at, size_t len, size_t i)
{
    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= len)
            return;
        if (child + 1 < len && timer_before(at[child + 1], at[child]))
            child++;
        if (!timer_before(at[child], at[i]))
            return;
        node_timer swap = at[i];
        at[i] = at[child];
        at[child] = swap;
        i = child;
    }
}

static void timers_pop(nodes *self)
{
    self->timers.at[0] = self->timers.at[--self->timers.len];
    timers_down(self->timers.at, self->timers.len, 0);
}

void timer_set(nodes *self, node_placement *p, int64_t ms)
{
    if (p->wake_ms == ms)
        return;
    p->wake_ms = ms;
    if (ms == REASON_NEVER)
        return;
    node_timer timer = {ms, placement_index(self, p)};
    if (!vec_push(&self->timers, timer)) {
        nodes_memory(self);
        return;
    }
    size_t i = self->timers.len - 1;
    while (i > 0 && timer_before(timer, self->timers.at[(i - 1) / 2])) {
        self->timers.at[i] = self->timers.at[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    self->timers.at[i] = timer;
}

/* The earliest timer that still stands. */
static bool timers_first(nodes *self, node_timer *ret)
{
    while (self->timers.len > 0) {
        node_timer first = self->timers.at[0];
        const node_placement *p = &self->placements.at[first.placement];
        if (p->change && p->wake_ms == first.ms) {
            *ret = first;
            return true;
        }
        timers_pop(self);
    }
    return false;
}

void timers_purge(nodes *self)
{
    node_timer first;
    timers_first(self, &first);
}

static void timers_fire(nodes *self)
{
    node_timer first;
    while (timers_first(self, &first) && first.ms <= self->core->now_ms) {
        timers_pop(self);
        node_placement *p = &self->placements.at[first.placement];
        p->wake_ms = REASON_NEVER;
        target_touch(self, p->target);
    }
}

static int64_t nodes_next_ms(const void *context)
{
    const nodes *self = context;
    /* Every step leaves a timer that stands on top. */
    int64_t next = self->timers.len > 0 ? self->timers.at[0].ms : REASON_NEVER;
    for (size_t i = 0; i < self->changes.len; i++) {
        if (self->changes.at[i]->unwritten > 0)
            continue; /* it waits for a fact */
        int64_t due = cohort_next_ms(self->changes.at[i]->cohort);
        if (due != REASON_NEVER && (next == REASON_NEVER || due < next))
            next = due;
    }
    return next;
}

/* ---- evaluating ---- */

void change_touch_later(nodes *self, const change *c)
{
    for (size_t i = 0; c->sequencing == SEQUENCING_ALL && i < self->changes.len; i++)
        if (change_before(c, self->changes.at[i]))
            change_touch_targets(self, self->changes.at[i]);
}

void placement_count(nodes *self, node_placement *p)
{
    change *c = p->change;
    p->complete = !p->malformed && packages_complete(&c->rules, &p->entries);
    bool done = p->selected && p->complete && p->phase == PHASE_IDLE;
    if (done == p->done)
        return;
    p->done = done;
    target_touch(self, p->target);
    bool was_complete = c->not_done == 0;
    if (p->selected)
        c->not_done += done ? -1 : 1;
    c->rolling |= c->not_done > 0;
    c->cohort_dirty = true;
    if (was_complete != (c->not_done == 0))
        change_touch_later(self, c);
}

static member_state state_of(const node_placement *p, unsigned gates)
{
    if (p->complete)
        return MEMBER_DONE;
    if (gates & GATES_BLOCKED)
        return MEMBER_BLOCKED;
    if (p->failed)
        return MEMBER_FAILED;
    return gates ? MEMBER_WAITING : MEMBER_STARTABLE;
}

/* A3: who is blocked counts neither as fresh nor as failed, but keeps what place a failed one has;
 * released it is fresh, and what it did before is forgotten. Not so by taints of the node's own
 * life cycle: a package that brings its node down would be tried again for ever, and at once. */
static void look_at_block(nodes *self, node_placement *p)
{
    bool blocked = node_blocked_in_flight(self, p);
    if (p->forgiven && !blocked) {
        placement_forgive(self, p);
        p->failed = false;
        p->retry_ms = REASON_NEVER;
    }
    p->forgiven = p->failed && blocked;
}

/* The first outcome is final until the batch is judged; what came after it is looked at then. */
void placement_defer(nodes *self, node_placement *p)
{
    cohort *c = p->change->cohort;
    bool good =
        cohort_state(c, p->member) != MEMBER_FAILED || cohort_set_retry(c, p->member, REASON_NEVER);
    if (p->deferred && good)
        return;
    if (!good || !vec_push(&p->change->deferred, placement_index(self, p))) {
        nodes_memory(self);
        return;
    }
    p->deferred = true;
}

void placement_evaluate(nodes *self, node_placement *p)
{
    assert(p->phase == PHASE_IDLE);
    change *c = p->change;
    self->core->looked_at++;
    placement_count(self, p);
    if (!p->selected || p->complete) {
        cordon_lift(self, p);
        priority_leave(p, true);
    }
    if (!p->selected)
        return;
    unsigned gates = p->complete ? 0 : node_gates(self, p);
    look_at_block(self, p);
    member_state state = state_of(p, gates);
    member_state known = cohort_state(c->cohort, p->member);
    bool held = p->cordoned;
    c->cohort_dirty |= cohort_set_held(c->cohort, p->member, held);
    c->cohort_dirty |= cohort_set_failed(c->cohort, p->member, p->failed);
    if (known != state && cohort_in_batch(c->cohort, p->member)) {
        placement_defer(self, p);
        return;
    }
    bool good = known == state || cohort_set_state(c->cohort, p->member, state);
    c->cohort_dirty |= known != state;
    if (state == MEMBER_FAILED) {
        int64_t due = gates ? REASON_NEVER : p->retry_ms;
        good = good && cohort_set_retry(c->cohort, p->member, due);
        c->cohort_dirty = true;
    }
    if (!good)
        nodes_memory(self);
}

static void target_evaluate(nodes *self, uint32_t target)
{
    self->targets.at[target].dirty = false;
    if (!self->targets.at[target].present)
        return;
    runtime_required_taint(self, target);
    uint32_t next;
    for (uint32_t i = self->targets.at[target].first; i != NOBODY; i = next) {
        node_placement *p = &self->placements.at[i];
        next = p->next;
        if (p->reapplies)
            node_decide(self, DECISION_REAPPLY, p);
        p->reapplies = false;
        stages_forget(self, p);
        if (p->phase != PHASE_IDLE) {
            self->core->looked_at++;
            flight_advance(self, p);
        }
        if (p->phase == PHASE_IDLE)
            placement_evaluate(self, p);
        timer_set(self, p, flight_deadline(self, p));
    }
    runtime_required_untaint(self, target);
}

/* Round by round, each in the order of names, until nothing is marked any more. Ends: a target is
 * marked again only when one of its placements became done or undone, started or ended. */
static void settle(nodes *self)
{
    while (self->dirty.len > 0 && !self->core->no_memory) {
        self->round.len = 0;
        if (!vec_reserve(&self->round, self->dirty.len)) {
            nodes_memory(self);
            return;
        }
        memcpy(self->round.at, self->dirty.at, self->dirty.len * sizeof *self->round.at);
        self->round.len = self->dirty.len;
        self->dirty.len = 0;
        targets_sort(self, self->round.at, self->round.len);
        for (size_t i = 0; i < self->round.len && !self->core->no_memory; i++)
            target_evaluate(self, self->round.at[i]);
    }
}

/* ---- the step ---- */

void change_undefer(nodes *self, change *c)
{
    for (size_t i = 0; i < c->deferred.len; i++) {
        node_placement *p = &self->placements.at[c->deferred.at[i]];
        if (p->change != c || !p->deferred)
            continue;
        p->deferred = false;
        target_touch(self, p->target);
    }
    c->deferred.len = 0;
}

static void tell_batch(nodes *self, const change *c, decision_kind kind, const cohort_event *e)
{
    decision *d = node_decide(self, kind, NULL);
    d->change = names_text(self->core->names, c->name);
    d->group = core_text(self->core, e->compartment);
    d->number = e->number;
    d->size = e->size;
    d->failed = e->failed;
    if (kind == DECISION_HALT)
        d->detail = STR("failureThreshold");
    if (kind != DECISION_JUDGE)
        return;
    d->complete = e->complete;
    d->erroring = e->erroring;
    d->blocked = e->blocked;
}

static void handle_events(nodes *self, change *c)
{
    int64_t base = 0; /* SKYHOOK_NODE_ORDER of the batch's first */
    for (size_t i = 0; i < self->events.len && !self->core->no_memory; i++) {
        const cohort_event *e = &self->events.at[i];
        switch (e->kind) {
        case COHORT_EVENT_BATCH:
            base = c->order_offset + c->priority_entries;
            tell_batch(self, c, DECISION_BATCH, e);
            break;
        case COHORT_EVENT_START:
            flight_start(self, &self->placements.at[c->members.at[e->member]], false, e,
                         base + e->number);
            break;
        case COHORT_EVENT_RETRY:
            flight_start(self, &self->placements.at[c->members.at[e->member]], true, e,
                         c->order_offset + c->priority_entries);
            break;
        case COHORT_EVENT_JUDGE:
            tell_batch(self, c, DECISION_JUDGE, e);
            change_undefer(self, c);
            break;
        case COHORT_EVENT_HALT: tell_batch(self, c, DECISION_HALT, e); break;
        }
    }
}

static bool batch_is_open(const change *c)
{
    compartment_view v;
    for (size_t i = 0; i < cohort_compartments(c->cohort); i++) {
        cohort_view(c->cohort, i, &v);
        if (v.batch_open)
            return true;
    }
    return false;
}

/* The policy's compartment that comes next by name. ptr is NULL behind the last. */
static str compartment_after(const change *c, str name)
{
    str next = {NULL, 0};
    compartment_view v;
    for (size_t i = 0; i < cohort_compartments(c->cohort); i++) {
        cohort_view(c->cohort, i, &v);
        if (!v.removed && (!name.ptr || str_cmp(v.rule->name, name) > 0) &&
            (!next.ptr || str_cmp(v.rule->name, next) < 0))
            next = v.rule->name;
    }
    return next;
}

static void tell_reset(nodes *self, change *c)
{
    str told = {NULL, 0};
    for (str next; (next = compartment_after(c, told)).ptr; told = next) {
        decision *d = node_decide(self, DECISION_RESET, NULL);
        d->change = names_text(self->core->names, c->name);
        d->group = core_text(self->core, next);
    }
    c->tell_reset = false;
}

/* A rollout that has become complete leaves fresh batches behind. */
static void end_rollout(nodes *self, change *c)
{
    if (c->tell_reset)
        tell_reset(self, c);
    if (!c->rolling || c->not_done > 0 || c->selected == 0 || batch_is_open(c))
        return;
    c->rolling = false;
    if (!c->reset_on_completion || c->policy_missing)
        return;
    change_reset_batches(self, c);
    tell_reset(self, c);
}

static bool retry_due(nodes *self, const change *c)
{
    int64_t next = cohort_next_ms(c->cohort);
    return next != REASON_NEVER && next <= self->core->now_ms;
}

static void change_step(nodes *self, change *c)
{
    self->events.len = 0;
    c->cohort_dirty = false;
    if (!cohort_judge(c->cohort, &self->events)) {
        nodes_memory(self);
        return;
    }
    handle_events(self, c);
    settle(self); /* whose outcome was final until now may be picked for the next batch */
    self->events.len = 0;
    c->cohort_dirty = false;
    if (!cohort_step(c->cohort, self->core->now_ms, &self->events)) {
        nodes_memory(self);
        return;
    }
    handle_events(self, c);
    settle(self);
    end_rollout(self, c);
}

static void nodes_step(void *context)
{
    nodes *self = context;
    self->step++;
    targets_forget(self);
    timers_fire(self);
    bool again = true;
    while (again && !self->core->no_memory) {
        again = false;
        settle(self);
        for (size_t i = 0; i < self->changes.len && !self->core->no_memory; i++) {
            change *c = self->changes.at[i];
            if (c->tell_reset)
                tell_reset(self, c);
            change_leave_taints(self, c);
            if (c->unwritten > 0 || (!c->cohort_dirty && !retry_due(self, c)))
                continue;
            change_step(self, c);
            again = true;
        }
    }
    deletions_step(self);
    timers_purge(self);
}

/* ---- the vocabulary ---- */

static bool nodes_take(void *context, const fact *f)
{
    nodes *self = context;
    switch (f->kind) {
    case FACT_DOCUMENT:
        if (f->document->kind == KIND_SKYHOOK)
            skyhook_take(self, f->document);
        else if (f->document->kind == KIND_DEPLOYMENT_POLICY)
            policy_take(self, f->document, false);
        else
            return false;
        return true;
    case FACT_DOCUMENT_GONE:
        if (f->document->kind == KIND_SKYHOOK)
            skyhook_gone(self, f->document->metadata->name);
        else if (f->document->kind == KIND_DEPLOYMENT_POLICY)
            policy_take(self, f->document, true);
        else
            return false;
        return true;
    case FACT_TARGET:
        if (f->target.kind != TARGET_NODE)
            return false;
        target_take(self, &f->target);
        return true;
    case FACT_TARGET_GONE:
        if (f->target.kind != TARGET_NODE)
            return false;
        target_gone(self, f->target.name);
        return true;
    case FACT_STAGE: flight_stage(self, &f->stage); return true;
    case FACT_DRAIN: cordon_take(self, &f->drain); return true;
    case FACT_KEPT: ends_take(self, &f->kept); return false; /* it may be of a Bundle */
    case FACT_ACT: node_act(self, &f->act); return false;
    case FACT_REPORT:
    case FACT_JOB: return false;
    }
    return false;
}

static void *nodes_create(engine_core *core)
{
    nodes *self = mem_zalloc(sizeof *self);
    if (!self)
        return NULL;
    self->core = core;
    runtime_required_parse(core->settings.runtime_required_taint, &self->runtime_required);
    return self;
}

static void nodes_destroy(void *context)
{
    nodes *self = context;
    for (size_t i = 0; i < self->placements.len; i++) {
        mem_free(self->placements.at[i].entries.at);
        mem_free(self->placements.at[i].blocker);
        mem_free(self->placements.at[i].hindrance);
    }
    for (size_t i = 0; i < self->changes.len; i++)
        change_free(self->changes.at[i]);
    targets_done(self);
    strmap_done(&self->by_name);
    strmap_done(&self->label_sets);
    strmap_done(&self->policies);
    vec_done(&self->placements);
    vec_done(&self->free_placements);
    keymap_done(&self->by_id);
    vec_done(&self->changes);
    vec_done(&self->dirty);
    vec_done(&self->round);
    vec_done(&self->chosen);
    vec_done(&self->timers);
    vec_done(&self->events);
    vec_done(&self->runnable);
    mem_free(self);
}

const vocabulary vocabulary_nodes = {
    .name = "nodes",
    .create = nodes_create,
    .destroy = nodes_destroy,
    .take = nodes_take,
    .step = nodes_step,
    .next_ms = nodes_next_ms,
    .placements = nodes_placements,
    .placement = nodes_placement,
    .reasons = nodes_reasons,
    .groups = nodes_groups,
    .paused = nodes_paused,
    .save = nodes_save,
    .restore = nodes_restore,
    .unnumber = nodes_unnumber,
    .number = nodes_number,
    .node = nodes_node,
    .config_updates = nodes_config_updates,
    .held = nodes_held,
    .keep_placement = nodes_keep_placement,
    .keep_change = nodes_keep_change,
    .annotation = nodes_annotation,
    .full = nodes_full,
    .check = nodes_check,
};
