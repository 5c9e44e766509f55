/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/cohort.h"

#include <assert.h>

#include "base/mem.h"
#include "base/num.h"
#include "engine/cohort_internal.h"

/* Compartments that are remembered by name before drained ones are forgotten. */
#define COMPARTMENTS_KEPT 1024u

cohort *cohort_new(void)
{
    cohort *c = mem_zalloc(sizeof *c);
    if (!c)
        return NULL;
    c->edits = 1;
    c->names = arena_new(0);
    return c->names ? c : mem_free(c);
}

cohort *cohort_free(cohort *c)
{
    if (!c)
        return NULL;
    for (size_t i = 0; i < c->compartments.len; i++) {
        vec_done(&c->compartments.at[i].batch);
        vec_done(&c->compartments.at[i].queue);
        vec_done(&c->compartments.at[i].retries);
    }
    vec_done(&c->compartments);
    vec_done(&c->members);
    vec_done(&c->order);
    vec_done(&c->by_name);
    vec_done(&c->unassigned);
    cohort_asked_done(c);
    arena_free(c->names);
    return mem_free(c);
}

/* ---- counting ---- */

int64_t compartment_ceiling(const compartment *p, int64_t members)
{
    if (p->removed)
        return 0;
    int64_t ceiling = p->rule.percent ? num_percent(members, p->rule.budget) : p->rule.budget;
    /* The legacy budget reads 0 as one at a time, and 0 percent of many is 1 anyway. */
    return p->rule.initial_is_ceiling && ceiling == 0 && members > 0 ? 1 : ceiling;
}

bool entry_failed(const entry *e)
{
    return e->state == MEMBER_FAILED || (e->state == MEMBER_BLOCKED && e->failed);
}

bool entry_holds(const cohort *c, const entry *e)
{
    if (e->state == MEMBER_IN_FLIGHT || e->stuck)
        return true;
    /* Of its batch it keeps the state of its outcome until that is judged. */
    return (e->state == MEMBER_FAILED && e->in_batch) ||
           (entry_failed(e) && (e->held || c->failed_hold_budget));
}

void entry_count(cohort *c, const entry *e, int64_t sign)
{
    if (e->state == MEMBER_ABSENT || e->compartment == COMPARTMENT_NONE)
        return;
    compartment *p = &c->compartments.at[e->compartment];
    p->matched += sign;
    p->done += e->state == MEMBER_DONE ? sign : 0;
    p->startable += e->state == MEMBER_STARTABLE ? sign : 0;
    p->in_flight += e->state == MEMBER_IN_FLIGHT ? sign : 0;
    p->unresolved += e->state == MEMBER_IN_FLIGHT && e->in_batch ? sign : 0;
    p->holders += entry_holds(c, e) ? sign : 0;
    if (p->holders > p->peak)
        p->peak = p->holders;
}

bool entry_before(const entry *a, const entry *b)
{
    if (a->created_ms != b->created_ms)
        return a->created_ms < b->created_ms;
    return str_cmp(a->name, b->name) < 0;
}

/* ---- policy and membership ---- */

bool compartment_selects(const compartment *p, label_set labels)
{
    return p->rule.selector && !p->removed && selector_match(p->rule.selector, labels);
}

static void select_all(cohort *c, const entry *e, int64_t sign)
{
    for (size_t i = 0; i < c->compartments.len; i++)
        if (compartment_selects(&c->compartments.at[i], e->labels))
            c->compartments.at[i].selected += sign;
}

size_t cohort_find(const cohort *c, str name)
{
    for (size_t i = 0; i < c->compartments.len; i++)
        if (str_eq(c->compartments.at[i].rule.name, name))
            return i;
    return SIZE_MAX;
}

/* One that left the policy and has drained gives its place to a new name, once there are many. */
static size_t recyclable(const cohort *c)
{
    for (size_t i = 0; c->compartments.len >= COMPARTMENTS_KEPT && i < c->compartments.len; i++) {
        const compartment *p = &c->compartments.at[i];
        if (p->removed && p->matched == 0 && !p->batch_open)
            return i;
    }
    return SIZE_MAX;
}

size_t cohort_add(cohort *c, str name)
{
    str own = arena_str(c->names, name);
    c->renamed = true;
    size_t old = recyclable(c);
    if (own.ptr && old != SIZE_MAX) {
        compartment *p = &c->compartments.at[old];
        *p = (compartment){.rule.name = own,
                           .rule.batch_threshold = 100,
                           .removed = true,
                           .current_batch = 1,
                           .batch = p->batch,
                           .queue = p->queue,
                           .retries = p->retries};
        assert(p->queue.len == 0 && p->retries.len == 0);
        return old;
    }
    if (!own.ptr || !vec_push(&c->compartments, (compartment){.rule.name = own,
                                                              .rule.batch_threshold = 100,
                                                              .removed = true,
                                                              .current_batch = 1}))
        return SIZE_MAX;
    return c->compartments.len - 1;
}

/* A compartment without members and state that is not in the policy any more can go; one with
 * either stays as "removed" until it has drained. */
static bool merge_policy(cohort *c, const cohort_policy *policy)
{
    for (size_t i = 0; i < c->compartments.len; i++) {
        c->compartments.at[i].removed = true;
        c->compartments.at[i].rule.selector = NULL;
    }
    for (size_t i = 0; policy && i < policy->rule_count; i++) {
        size_t at = cohort_find(c, policy->rules[i].name);
        if (at == SIZE_MAX && (at = cohort_add(c, policy->rules[i].name)) == SIZE_MAX)
            return false;
        str own = c->compartments.at[at].rule.name;
        c->compartments.at[at].rule = policy->rules[i];
        c->compartments.at[at].rule.name = own;
        c->compartments.at[at].removed = false;
    }
    return true;
}

bool cohort_set_policy(cohort *c, const cohort_policy *policy)
{
    for (member_id m = 0; m < c->members.len; m++)
        entry_count(c, &c->members.at[m], -1);
    if (!merge_policy(c, policy))
        return false;
    c->edits++;
    c->has_policy = policy != NULL;
    c->failed_hold_budget = policy && policy->failed_hold_budget;
    c->unsettled = true;
    for (size_t i = 0; i < c->compartments.len; i++)
        c->compartments.at[i].selected = 0;
    for (member_id m = 0; m < c->members.len; m++) {
        entry *e = &c->members.at[m];
        if (e->state == MEMBER_ABSENT)
            continue;
        select_all(c, e, 1);
        entry_count(c, e, 1);
    }
    c->everybody = true;
    return true;
}

bool cohort_join(cohort *c, member_id m, str name, int64_t created_ms, label_set labels)
{
    if (!vec_reserve(&c->members, (size_t)m + 1) ||
        !vec_reserve(&c->unassigned, c->unassigned.len + 1))
        return false;
    while (c->members.len <= m)
        c->members.at[c->members.len++] = (entry){.compartment = COMPARTMENT_NONE};
    entry *e = &c->members.at[m];
    bool known = e->state != MEMBER_ABSENT;
    if (known) {
        select_all(c, e, -1);
        entry_out(c, m);
    } else {
        *e = (entry){
            .compartment = COMPARTMENT_NONE, .state = MEMBER_WAITING, .retry_ms = REASON_NEVER};
    }
    e->name = name;
    e->created_ms = created_ms;
    e->labels = labels;
    if (known)
        entry_in(c, m);
    select_all(c, e, 1);
    c->unassigned.at[c->unassigned.len++] = m;
    c->unsettled = true;
    return !c->no_memory;
}

static void batch_forget(compartment *p, member_id m)
{
    size_t kept = 0;
    for (size_t i = 0; i < p->batch.len; i++)
        if (p->batch.at[i] != m)
            p->batch.at[kept++] = p->batch.at[i];
    p->batch.len = kept;
}

void cohort_leave(cohort *c, member_id m)
{
    if (m >= c->members.len || c->members.at[m].state == MEMBER_ABSENT)
        return;
    entry *e = &c->members.at[m];
    select_all(c, e, -1);
    entry_out(c, m);
    if (e->in_batch)
        batch_forget(&c->compartments.at[e->compartment], m);
    *e = (entry){.compartment = COMPARTMENT_NONE};
    c->unsettled = true;
}

bool compartment_safer(const compartment *a, const compartment *b)
{
    if (a->rule.pace != b->rule.pace)
        return a->rule.pace < b->rule.pace;
    int64_t ceiling_a = compartment_ceiling(a, a->selected);
    int64_t ceiling_b = compartment_ceiling(b, b->selected);
    if (ceiling_a != ceiling_b)
        return ceiling_a < ceiling_b;
    return str_cmp(a->rule.name, b->rule.name) < 0;
}

/* Puts the compartment at its place in c->order, which is sorted so far; there is room. */
static void insert_in_order(cohort *c, size_t sorted, uint32_t index)
{
    size_t at = sorted;
    while (at > 0 && compartment_safer(&c->compartments.at[index],
                                       &c->compartments.at[c->order.at[at - 1]])) {
        c->order.at[at] = c->order.at[at - 1];
        at--;
        c->everybody = true;
    }
    c->order.at[at] = index;
}

/* Sorts c->order again. If that changes it, everybody is assigned again. */
static bool sort_order(cohort *c)
{
    if (!c->everybody) {
        for (size_t i = 0; i < c->order.len; i++)
            insert_in_order(c, i, c->order.at[i]);
        return true;
    }
    c->order.len = 0;
    if (!vec_reserve(&c->order, c->compartments.len))
        return false;
    for (uint32_t i = 0; i < c->compartments.len; i++)
        if (!c->compartments.at[i].removed && c->compartments.at[i].rule.selector)
            insert_in_order(c, c->order.len++, i);
    return true;
}

uint32_t cohort_default(const cohort *c)
{
    size_t at = cohort_find(c, STR(COHORT_DEFAULT));
    if (at == SIZE_MAX || c->compartments.at[at].removed)
        return COMPARTMENT_NONE;
    return (uint32_t)at;
}

uint32_t cohort_choose(const cohort *c, const entry *e)
{
    for (size_t i = 0; i < c->order.len; i++)
        if (selector_match(c->compartments.at[c->order.at[i]].rule.selector, e->labels))
            return c->order.at[i];
    return cohort_default(c);
}

/* A member in flight keeps its compartment until its batch has ended. */
static bool assign(cohort *c, member_id m)
{
    entry *e = &c->members.at[m];
    if (e->state == MEMBER_ABSENT || e->in_batch || e->retrying)
        return true;
    uint32_t chosen = cohort_choose(c, e);
    if (chosen == e->compartment)
        return true;
    entry_out(c, m);
    e->compartment = chosen;
    entry_in(c, m);
    return !c->no_memory;
}

bool cohort_settle(cohort *c)
{
    if (c->no_memory)
        return false;
    if (!c->unsettled)
        return true;
    if (!sort_order(c))
        return false;
    for (member_id m = 0; c->everybody && m < c->members.len; m++)
        if (!assign(c, m))
            return false;
    for (size_t i = 0; i < c->unassigned.len; i++)
        if (!assign(c, c->unassigned.at[i]))
            return false;
    c->unassigned.len = 0;
    c->everybody = false;
    c->unsettled = false;
    return true;
}

/* ---- what the caller says of members ---- */

bool cohort_set_state(cohort *c, member_id m, member_state state)
{
    entry *e = &c->members.at[m];
    assert(state != MEMBER_IN_FLIGHT && state != MEMBER_ABSENT);
    assert(e->state != MEMBER_IN_FLIGHT && e->state != MEMBER_ABSENT);
    if (e->state == state)
        return true;
    entry_out(c, m);
    /* What fails by itself was not in this rollout's count; what recovers or is new work again is.
     */
    e->state = (uint8_t)state;
    if (state != MEMBER_FAILED)
        e->retry_ms = REASON_NEVER;
    entry_in(c, m);
    return !c->no_memory;
}

bool cohort_suppose(cohort *c, member_id m, member_state state, int64_t retry_ms)
{
    entry *e = &c->members.at[m];
    bool differs = e->state != state, back = e->supposed && differs;
    bool first = differs && !back && c->supposed == 0;
    if (first && !cohort_ask(c))
        return false;
    uint64_t edits = c->edits;
    int64_t peak = e->compartment == COMPARTMENT_NONE ? 0 : c->compartments.at[e->compartment].peak;
    bool good = cohort_set_state(c, m, state) &&
                (state != MEMBER_FAILED || cohort_set_retry(c, m, retry_ms));
    if (e->compartment != COMPARTMENT_NONE)
        c->compartments.at[e->compartment].peak = peak;
    /* What is supposed of the one who asks changes nothing for its answers: they are about others.
     */
    if (first)
        c->alone = true;
    else if (differs && !back)
        c->alone = false;
    if (!differs || c->alone)
        c->edits = edits;
    e->supposed = differs ? !back : e->supposed;
    c->supposed += differs ? (back ? -1 : 1) : 0;
    return good;
}

bool cohort_set_held(cohort *c, member_id m, bool held)
{
    entry *e = &c->members.at[m];
    if (e->held == held)
        return false;
    entry_out(c, m);
    e->held = held;
    entry_in(c, m);
    return true;
}

bool cohort_set_failed(cohort *c, member_id m, bool failed)
{
    entry *e = &c->members.at[m];
    if (e->failed == failed)
        return false;
    entry_out(c, m);
    e->failed = failed;
    entry_in(c, m);
    return true;
}

void cohort_set_stuck(cohort *c, member_id m, bool stuck)
{
    entry *e = &c->members.at[m];
    if (e->stuck == stuck)
        return;
    entry_out(c, m);
    e->stuck = stuck;
    entry_in(c, m);
}

bool cohort_set_retry(cohort *c, member_id m, int64_t retry_ms)
{
    entry *e = &c->members.at[m];
    if (e->retry_ms == retry_ms)
        return true;
    entry_out(c, m);
    e->retry_ms = retry_ms;
    entry_in(c, m);
    return !c->no_memory;
}

bool cohort_outcome(cohort *c, member_id m, member_state outcome)
{
    entry *e = &c->members.at[m];
    assert(e->state == MEMBER_IN_FLIGHT);
    assert(outcome == MEMBER_DONE || outcome == MEMBER_FAILED || outcome == MEMBER_BLOCKED);
    compartment *p = &c->compartments.at[e->compartment];
    entry_out(c, m);
    e->state = e->outcome = (uint8_t)outcome;
    e->failed = outcome == MEMBER_FAILED;
    e->retry_ms = REASON_NEVER;
    if (e->retrying && outcome == MEMBER_DONE) {
        /* It was counted as failed when its batch was judged. */
        p->completed++;
        p->failed -= p->failed > 0;
    }
    bool was_retrying = e->retrying;
    e->retrying = false;
    entry_in(c, m);
    if (!was_retrying)
        return true;
    if (!vec_push(&c->unassigned, m))
        return false;
    c->unsettled = true;
    return true;
}

void cohort_pause(cohort *c, bool paused)
{
    if (paused && !c->paused)
        c->pause_claim = c->claims;
    c->paused = paused;
}

void cohort_lift_stops(cohort *c)
{
    for (size_t i = 0; i < c->compartments.len; i++) {
        c->compartments.at[i].stopped = false;
        c->compartments.at[i].consecutive_failures = 0;
    }
}

/* Leaves in the open batch what is in flight, and takes the retrying members in. */
static void carry_batch(cohort *c, uint32_t index)
{
    compartment *p = &c->compartments.at[index];
    size_t kept = 0;
    for (size_t i = 0; i < p->batch.len; i++) {
        entry *e = &c->members.at[p->batch.at[i]];
        if (e->state == MEMBER_IN_FLIGHT) {
            p->batch.at[kept++] = p->batch.at[i];
            continue;
        }
        entry_out(c, p->batch.at[i]);
        e->in_batch = false;
        entry_in(c, p->batch.at[i]);
        if (!vec_push(&c->unassigned, p->batch.at[i]))
            c->no_memory = true;
    }
    p->batch.len = kept;
    p->batch_open = kept > 0;
    p->carried = kept > 0;
}

void cohort_reset(cohort *c)
{
    for (uint32_t i = 0; i < c->compartments.len; i++) {
        compartment *p = &c->compartments.at[i];
        p->current_batch = 1;
        p->completed = p->failed = p->consecutive_failures = p->last_batch_size = 0;
        p->last_batch_failed = p->stopped = false;
        carry_batch(c, i);
    }
    for (member_id m = 0; m < c->members.len; m++) {
        entry *e = &c->members.at[m];
        if (!e->retrying)
            continue;
        compartment *p = &c->compartments.at[e->compartment];
        if (!vec_push(&p->batch, m))
            continue; /* it stays a retry: its place under the ceiling is kept all the same */
        entry_out(c, m);
        e->retrying = false;
        e->in_batch = true;
        entry_in(c, m);
        p->batch_open = p->carried = true;
    }
    c->unsettled = true;
}

/* Without a policy there is no compartment but those that are remembered: it stays in one that is
 * none of any policy's until it ends. */
static bool claim_without_policy(cohort *c, entry *e)
{
    size_t at = cohort_find(c, STR(COHORT_DEFAULT));
    if (at == SIZE_MAX && (at = cohort_add(c, STR(COHORT_DEFAULT))) == SIZE_MAX)
        return false;
    e->compartment = (uint32_t)at;
    return true;
}

bool cohort_claim(cohort *c, member_id m)
{
    entry *e = &c->members.at[m];
    if (!cohort_settle(c))
        return false;
    entry_out(c, m);
    bool placed = e->compartment != COMPARTMENT_NONE || claim_without_policy(c, e);
    entry_in(c, m);
    if (!placed)
        return false;
    compartment *p = &c->compartments.at[e->compartment];
    if (!e->in_batch && !vec_push(&p->batch, m))
        return false;
    entry_out(c, m);
    e->state = MEMBER_IN_FLIGHT;
    e->in_batch = true;
    entry_in(c, m);
    if (!p->batch_open)
        p->batch_open = p->carried = true;
    return true;
}

/* ---- the step ---- */

static int64_t progress(const compartment *p)
{
    return p->matched > 0 ? p->done * 100 / p->matched : 0;
}

/* Takes the members out of the batch; they may belong to another compartment from now on. */
static bool batch_close(cohort *c, compartment *p)
{
    for (size_t i = 0; i < p->batch.len; i++) {
        entry_out(c, p->batch.at[i]);
        c->members.at[p->batch.at[i]].in_batch = false;
        entry_in(c, p->batch.at[i]);
        if (!vec_push(&c->unassigned, p->batch.at[i]))
            return false;
    }
    p->batch.len = 0;
    p->batch_open = false;
    c->unsettled = true;
    return true;
}

/* Once, when the last member has its outcome: erroring and blocked are both not success. */
static bool batch_judge(cohort *c, compartment *p, cohort_events *out)
{
    cohort_event e = {
        .kind = COHORT_EVENT_JUDGE, .compartment = p->rule.name, .number = p->current_batch};
    for (size_t i = 0; i < p->batch.len; i++) {
        member_state outcome = c->members.at[p->batch.at[i]].outcome;
        e.complete += outcome == MEMBER_DONE;
        e.erroring += outcome == MEMBER_FAILED;
    }
    e.size = (int64_t)p->batch.len;
    e.blocked = e.size - e.complete - e.erroring;
    if (!batch_close(c, p))
        return false;
    if (e.size == 0)
        return true; /* everybody left: there is nothing to judge */
    e.failed = e.complete * 100 / e.size < p->rule.batch_threshold;
    p->completed += e.complete;
    p->failed += e.erroring;
    p->current_batch++;
    p->last_batch_size = p->carried ? 0 : e.size;
    p->last_batch_failed = e.failed;
    p->carried = false;
    p->consecutive_failures = e.failed ? p->consecutive_failures + 1 : 0;
    if (!vec_push(out, e))
        return false;
    bool stop = e.failed && p->rule.failure_threshold > 0 &&
                p->consecutive_failures >= p->rule.failure_threshold &&
                progress(p) < p->rule.safety_limit;
    if (!stop || p->stopped)
        return true;
    p->stopped = true;
    p->stop_claim = c->claims;
    return vec_push(out, (cohort_event){.kind = COHORT_EVENT_HALT,
                                        .compartment = p->rule.name,
                                        .number = p->consecutive_failures});
}

/* What the strategy asks for, before the ceiling. */
static int64_t batch_base(const compartment *p, int64_t ceiling)
{
    const compartment_rule *r = &p->rule;
    int64_t last = p->last_batch_size;
    bool slower = p->last_batch_failed && progress(p) < r->safety_limit;
    int64_t base = 0;
    switch (r->pace) {
    case COHORT_NONE: return ceiling;
    case COHORT_FIXED: return r->initial_is_ceiling ? ceiling : r->initial_batch;
    case COHORT_LINEAR:
        if (last == 0)
            return r->initial_batch;
        base = last - r->delta > 1 ? last - r->delta : 1;
        if (!slower && !num_add(last, r->delta, &base))
            base = INT64_MAX;
        return base;
    case COHORT_EXPONENTIAL:
        if (last == 0)
            return r->initial_batch;
        base = last / r->growth_factor > 1 ? last / r->growth_factor : 1;
        if (!slower && !num_mul(last, r->growth_factor, &base))
            base = INT64_MAX;
        return base;
    }
    return base;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

int64_t compartment_next_size(const compartment *p, bool after_reset)
{
    compartment fresh = *p;
    if (after_reset)
        fresh.last_batch_size = 0;
    int64_t ceiling = compartment_ceiling(p, p->matched);
    return least(least(batch_base(&fresh, ceiling), ceiling - p->holders), p->startable);
}

static bool batch_open(cohort *c, uint32_t index, cohort_events *out)
{
    compartment *p = &c->compartments.at[index];
    int64_t size = compartment_next_size(p, false);
    if (size < 1)
        return true;
    if (!vec_reserve(&p->batch, (size_t)size) || !vec_reserve(out, out->len + (size_t)size + 1))
        return false;
    out->at[out->len++] = (cohort_event){.kind = COHORT_EVENT_BATCH,
                                         .compartment = p->rule.name,
                                         .number = p->current_batch,
                                         .size = size};
    for (int64_t i = 0; i < size; i++) {
        member_id m = queue_first(c, index);
        entry_out(c, m);
        c->members.at[m].state = MEMBER_IN_FLIGHT;
        c->members.at[m].claim = ++c->claims;
        c->members.at[m].in_batch = true;
        entry_in(c, m);
        p->batch.at[p->batch.len++] = m;
        out->at[out->len++] = (cohort_event){
            .kind = COHORT_EVENT_START, .member = m, .compartment = p->rule.name, .number = i};
    }
    p->batch_open = true;
    assert(p->holders <= compartment_ceiling(p, p->matched));
    return true;
}

/* A failed member is tried again when nobody fresh is left and a place is free. */
static bool retries_start(cohort *c, uint32_t index, int64_t now_ms, cohort_events *out)
{
    compartment *p = &c->compartments.at[index];
    member_id m;
    while (compartment_retries(p) && retries_next(c, index, &m) &&
           c->members.at[m].retry_ms <= now_ms) {
        if (!vec_push(out, (cohort_event){.kind = COHORT_EVENT_RETRY,
                                          .member = m,
                                          .compartment = p->rule.name}))
            return false;
        entry_out(c, m);
        c->members.at[m].state = MEMBER_IN_FLIGHT;
        c->members.at[m].claim = ++c->claims;
        c->members.at[m].retrying = true;
        entry_in(c, m);
        assert(p->holders <= compartment_ceiling(p, p->matched));
    }
    return true;
}

bool compartment_retries(const compartment *p)
{
    return p->startable == 0 || (!p->batch_open && compartment_next_size(p, false) < 1);
}

bool cohort_may_start(const cohort *c, const compartment *p)
{
    return c->has_policy && !c->paused && !p->stopped && !p->removed;
}

/* Compartments take their turns by name, whatever policies brought them in which order. */
static bool sort_names(cohort *c)
{
    if (c->by_name.len > 0 && !c->renamed)
        return true;
    if (!vec_reserve(&c->by_name, c->compartments.len + 1))
        return false;
    c->by_name.len = 0;
    for (uint32_t i = 0; i < c->compartments.len; i++) {
        size_t at = c->by_name.len++;
        while (at > 0 && str_cmp(c->compartments.at[i].rule.name,
                                 c->compartments.at[c->by_name.at[at - 1]].rule.name) < 0) {
            c->by_name.at[at] = c->by_name.at[at - 1];
            at--;
        }
        c->by_name.at[at] = i;
    }
    c->renamed = false;
    return true;
}

bool cohort_judge(cohort *c, cohort_events *out)
{
    if (!sort_names(c) || !cohort_settle(c))
        return false;
    for (size_t i = 0; i < c->by_name.len; i++) {
        compartment *p = &c->compartments.at[c->by_name.at[i]];
        if (p->batch_open && p->unresolved == 0 && !batch_judge(c, p, out))
            return false;
    }
    return true;
}

bool cohort_step(cohort *c, int64_t now_ms, cohort_events *out)
{
    c->step_claim = c->claims;
    /* Members of judged batches may move to another compartment. */
    if (!cohort_judge(c, out) || !cohort_settle(c))
        return false;
    for (size_t i = 0; i < c->by_name.len; i++) {
        uint32_t index = c->by_name.at[i];
        compartment *p = &c->compartments.at[index];
        if (!cohort_may_start(c, p))
            continue;
        if (!p->batch_open && !batch_open(c, index, out))
            return false;
        if (!retries_start(c, index, now_ms, out))
            return false;
    }
    return true;
}
