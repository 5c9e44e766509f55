/* SPDX-License-Identifier: Apache-2.0 */
/* What a cohort shows: views, reasons and the check of its counters. */
#include <stdlib.h>

#include "engine/cohort_internal.h"

size_t cohort_compartments(const cohort *c)
{
    return c->compartments.len;
}

void cohort_view(const cohort *c, size_t index, compartment_view *ret)
{
    const compartment *p = &c->compartments.at[index];
    *ret = (compartment_view){
        .rule = &p->rule,
        .removed = p->removed,
        .matched = p->matched,
        .ceiling = compartment_ceiling(p, p->matched),
        .holders = p->holders,
        .peak = p->peak,
        .done = p->done,
        .in_flight = p->in_flight,
        .current_batch = p->current_batch,
        .completed = p->completed,
        .failed = p->failed,
        .consecutive_failures = p->consecutive_failures,
        .last_batch_size = p->last_batch_size,
        .last_batch_failed = p->last_batch_failed,
        .stopped = p->stopped,
        .batch_open = p->batch_open,
    };
}

size_t cohort_compartment_of(const cohort *c, member_id m)
{
    if (m >= c->members.len || c->members.at[m].compartment == COMPARTMENT_NONE)
        return SIZE_MAX;
    return c->members.at[m].compartment;
}

member_state cohort_state(const cohort *c, member_id m)
{
    return m < c->members.len ? c->members.at[m].state : MEMBER_ABSENT;
}

bool cohort_is_retrying(const cohort *c, member_id m)
{
    return m < c->members.len && c->members.at[m].retrying;
}

bool cohort_in_batch(const cohort *c, member_id m)
{
    return m < c->members.len && c->members.at[m].in_batch;
}

int64_t cohort_next_ms(cohort *c)
{
    int64_t earliest = REASON_NEVER;
    for (uint32_t i = 0; i < c->compartments.len; i++) {
        const compartment *p = &c->compartments.at[i];
        member_id m;
        /* A retry without a place waits for somebody, not for a time. */
        if (compartment_retries(p) && cohort_may_start(c, p) && retries_next(c, i, &m) &&
            (earliest == REASON_NEVER || c->members.at[m].retry_ms < earliest))
            earliest = c->members.at[m].retry_ms;
    }
    return earliest;
}

/* ---- reasons ---- */

typedef struct name_list {
    str *at;
    size_t len;
} name_list;

static int by_name(const void *a, const void *b)
{
    return str_cmp(*(const str *)a, *(const str *)b);
}

typedef bool (*chooser)(const cohort *c, const entry *candidate, const entry *of);

/* Names of the members of "of"'s compartment that are chosen, sorted. at is NULL without memory. */
static name_list choose(const cohort *c, const entry *of, chooser chosen, arena *a)
{
    size_t count = 0;
    for (size_t i = 0; i < c->members.len; i++)
        count += chosen(c, &c->members.at[i], of);
    name_list list = {ARENA_ARRAY(a, count + 1, str), 0};
    if (!list.at)
        return list;
    for (size_t i = 0; i < c->members.len; i++)
        if (chosen(c, &c->members.at[i], of))
            list.at[list.len++] = c->members.at[i].name;
    qsort(list.at, list.len, sizeof *list.at, by_name);
    return list;
}

static bool in_open_batch(const cohort *c, const entry *e, const entry *of)
{
    (void)c;
    return e->compartment == of->compartment && e->in_batch && e->state == MEMBER_IN_FLIGHT;
}

static bool holds_place(const cohort *c, const entry *e, const entry *of)
{
    return e != of && e->compartment == of->compartment && entry_holds(c, e);
}

/* Who starts before a fresh member: older ones. Before a failed one: everybody fresh, and failed
 * ones that are due earlier. */
static bool is_ahead(const cohort *c, const entry *e, const entry *of)
{
    if (e == of || e->compartment != of->compartment || e->in_batch)
        return false;
    if (of->state == MEMBER_STARTABLE)
        return e->state == MEMBER_STARTABLE && entry_starts_before(e, of);
    if (e->state == MEMBER_STARTABLE)
        return true;
    (void)c;
    return e->state == MEMBER_FAILED && e->retry_ms != REASON_NEVER &&
           (e->retry_ms != of->retry_ms ? e->retry_ms < of->retry_ms : entry_before(e, of));
}

/* A reason whose "of" is the holders and those ahead of the member in the queue. */
static bool add_queue_reason(const cohort *c, const entry *of, reason r, arena *a, reasons *out)
{
    name_list holders = choose(c, of, r.rule == REASON_BATCH ? in_open_batch : holds_place, a);
    name_list ahead = choose(c, of, is_ahead, a);
    if (!holders.at || !ahead.at)
        return false;
    str *all = ARENA_ARRAY(a, holders.len + ahead.len + 1, str);
    if (!all)
        return false;
    memcpy(all, holders.at, holders.len * sizeof *all);
    memcpy(all + holders.len, ahead.at, ahead.len * sizeof *all);
    qsort(all, holders.len + ahead.len, sizeof *all, by_name);
    r.holders = holders.at;
    r.holder_count = holders.len;
    r.act = RELEASE_COMPLETE;
    r.of = all;
    r.of_count = holders.len + ahead.len;
    r.next_ms = REASON_NEVER;
    return reasons_add(out, a, r);
}

/* A fresh member waits for the open batch, or for those before it if the next batch is too small.
 */
static bool fresh_reasons(const cohort *c, const entry *e, reason base, arena *a, reasons *out)
{
    const compartment *p = &c->compartments.at[e->compartment];
    if (p->batch_open) {
        base.rule = REASON_BATCH;
        return add_queue_reason(c, e, base, a, out);
    }
    name_list ahead = choose(c, e, is_ahead, a);
    if (!ahead.at)
        return false;
    if ((int64_t)ahead.len < compartment_next_size(p, p->stopped))
        return true;
    base.rule = p->holders < base.limit ? REASON_BATCH : REASON_BUDGET;
    return add_queue_reason(c, e, base, a, out);
}

/* A failed member waits until nobody fresh is left and a place is free. */
static bool failed_reasons(const cohort *c, const entry *e, reason base, arena *a, reasons *out)
{
    const compartment *p = &c->compartments.at[e->compartment];
    bool has_place = p->holders + !entry_holds(c, e) <= base.limit;
    if (e->in_batch)
        base.rule = REASON_BATCH; /* its outcome is final until the batch is judged */
    else if (has_place && compartment_retries(p))
        return true;
    return add_queue_reason(c, e, base, a, out);
}

bool cohort_reasons(const cohort *c, member_id m, arena *a, reasons *out)
{
    const entry *e = &c->members.at[m];
    if (e->compartment == COMPARTMENT_NONE)
        return true;
    const compartment *p = &c->compartments.at[e->compartment];
    reason base = {.rule = REASON_BUDGET,
                   .scope = arena_printf(a, "compartment %.*s", STR_ARG(p->rule.name)),
                   .next_ms = REASON_NEVER,
                   .have = p->holders,
                   .limit = compartment_ceiling(p, p->matched)};
    if (!base.scope.ptr)
        return false;
    reason stopped = {.rule = REASON_STOPPED,
                      .scope = base.scope,
                      .act = RELEASE_RESET,
                      .next_ms = REASON_NEVER,
                      .have = p->consecutive_failures};
    if (p->stopped && !reasons_add(out, a, stopped))
        return false;
    if (e->state == MEMBER_STARTABLE)
        return fresh_reasons(c, e, base, a, out);
    return e->state == MEMBER_FAILED ? failed_reasons(c, e, base, a, out) : true;
}
