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

const member_id *cohort_batch(const cohort *c, size_t index, size_t *ret_count)
{
    *ret_count = c->compartments.at[index].batch.len;
    return c->compartments.at[index].batch.at;
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
    size_t len, more; /* beside these, if not all are asked for */
} name_list;

/* One member that asks why. */
typedef struct asker {
    const cohort *c;
    const entry *self; /* as it is */
    const entry *e;    /* as it will be */
    const compartment *p;
    uint32_t index; /* of the compartment */
    arena *a;
    reasons *out;
    bool reset;    /* it is among what is asked for: batches let go who is not in flight */
    bool after;    /* it waits for the end of the open batch */
    bool spared;   /* and that is no stop if those that are tried again are done, too */
    bool crowd;    /* nor if everybody is done who must be after a reset, too */
    bool before;   /* it can go before that batch ends, which would be a stop */
    bool late;     /* whoever could start goes before it, in whatever order */
    uint32_t left; /* the compartment whose batch it is still in, if that is another one */
} asker;

/* Whether a batch is open, after the reset if one is asked for: it makes those that are tried again
 * members of the first. */
static bool batch_then(const asker *by)
{
    return by->p->batch_open || (by->reset && by->p->in_flight > 0);
}

/* The compartment of a member at the time that is asked about. */
static uint32_t place_then(const asker *by, const entry *e)
{
    bool ends = (by->after && e->compartment == by->index) || e->compartment == by->left;
    bool let_go = e->in_batch && e->state != MEMBER_IN_FLIGHT && (by->reset || ends);
    return let_go ? e->next : e->compartment;
}

typedef bool (*chooser)(const asker *by, const entry *candidate);

static bool in_open_batch(const asker *by, const entry *e)
{
    return e->compartment == by->index && (e->in_batch || by->reset || by->spared) &&
           e->state == MEMBER_IN_FLIGHT;
}

static bool holds_place(const asker *by, const entry *e)
{
    return e != by->self && e->compartment == by->index && entry_holds(by->c, e);
}

/* A failed member that keeps its place when its batch is judged or reset. */
static bool keeps_place(const asker *by, const entry *e)
{
    return e->stuck || (entry_failed(e) && (e->held || by->c->failed_hold_budget));
}

/* Who still takes a place when the open batch has ended well. */
static bool holds_on(const asker *by, const entry *e)
{
    if (e == by->self || place_then(by, e) != by->index)
        return false;
    return (e->state == MEMBER_IN_FLIGHT && !e->in_batch && !by->reset && !by->spared) ||
           keeps_place(by, e);
}

/* Who takes a place after the reset, if one is asked for, else now. */
static bool holds_then(const asker *by, const entry *e)
{
    if (e == by->self || place_then(by, e) != by->index)
        return false;
    if (by->reset)
        return e->state == MEMBER_IN_FLIGHT || keeps_place(by, e);
    bool comes = e->in_batch && e->compartment == by->left; /* with an outcome that was judged */
    return comes ? keeps_place(by, e) : entry_holds(by->c, e);
}

static bool in_its_batch(const asker *by, const entry *e)
{
    return e->in_batch && e->compartment == by->index;
}

/* Who takes a place that can be had before the open batch ends. */
static bool holds_outside(const asker *by, const entry *e)
{
    return holds_then(by, e) && !in_its_batch(by, e);
}

/* Who takes a place as long as the open batch has not been judged: outcomes are final until then,
 * whatever is supposed of those who have one. */
static bool holds_until_judged(const asker *by, const entry *e)
{
    if (by->reset || !in_its_batch(by, e) || e->state == MEMBER_IN_FLIGHT)
        return holds_then(by, e);
    return e != by->self && (e->stuck || e->outcome == MEMBER_FAILED);
}

/* Who starts before a fresh member: older ones. Before a failed one: everybody fresh, and failed
 * ones that are due earlier. */
static bool is_ahead(const asker *by, const entry *e)
{
    const entry *of = by->e;
    if (e == by->self || e->state == MEMBER_ABSENT || place_then(by, e) != by->index ||
        (e->in_batch && !by->reset && !by->after && e->compartment != by->left))
        return false;
    if (of->state == MEMBER_STARTABLE)
        return e->state == MEMBER_STARTABLE &&
               ((by->late && e->compartment == by->index) || entry_starts_before(e, of));
    if (e->state == MEMBER_STARTABLE)
        return true;
    return e->state == MEMBER_FAILED && e->retry_ms != REASON_NEVER &&
           (e->retry_ms != of->retry_ms ? e->retry_ms < of->retry_ms : entry_before(e, of));
}

/* How many of the compartment's queue start before the member: they are ahead of it, whatever else
 * is asked about. Before a failed one all of them do. */
static size_t queue_ahead(const asker *by)
{
    const asked_queue *q = &by->c->queues.at[by->index];
    size_t before = cohort_ahead_in_queue(by->c, by->index, by->e);
    if (by->e->state == MEMBER_STARTABLE && !by->late)
        return before;
    /* It may stand in the queue itself: only supposed to have failed. */
    bool itself = before < q->turns.len && &by->c->members.at[q->turns.at[before]] == by->self;
    return q->turns.len - itself;
}

static bool turn_is_before(const asker *by, const entry *e, size_t ahead)
{
    return e != by->self && (by->e->state != MEMBER_STARTABLE || by->late || e->turn < ahead);
}

/* Names of those who are in no queue and are chosen, by either, and if "queue" is set of those
 * ahead in it; sorted. at is NULL without memory. */
static name_list choose(const asker *by, chooser chosen, bool queue)
{
    const cohort *c = by->c;
    const asked_queue *q = &c->queues.at[by->index];
    const size_t turns = queue ? queue_ahead(by) : 0;
    size_t ahead = turns, count = turns, at = 0;
    for (size_t i = 0; i < c->others.len; i++) {
        const entry *e = &c->members.at[c->others.at[i]];
        count += (chosen && chosen(by, e)) || (queue && is_ahead(by, e));
    }
    size_t most = by->out->most > 0 && by->out->most < count ? by->out->most : count;
    name_list list = {ARENA_ARRAY(by->a, most + 1, str), 0, count - most};
    for (size_t i = 0; list.at && list.len < most && (i < c->others.len || ahead > 0);) {
        const entry *e = i < c->others.len ? &c->members.at[c->others.at[i]] : NULL;
        const entry *waits = ahead > 0 ? &c->members.at[q->names.at[at]] : NULL;
        if (waits && (!e || str_cmp(waits->name, e->name) < 0)) {
            at++;
            if (!turn_is_before(by, waits, turns))
                continue;
            list.at[list.len++] = waits->name;
            ahead--;
            continue;
        }
        i++;
        if ((chosen && chosen(by, e)) || (queue && is_ahead(by, e)))
            list.at[list.len++] = e->name;
    }
    return list;
}

static int64_t count_ahead(const asker *by)
{
    size_t count = queue_ahead(by);
    for (size_t i = 0; i < by->c->others.len; i++)
        count += is_ahead(by, &by->c->members.at[by->c->others.at[i]]);
    return (int64_t)count;
}

/* A reason whose "of" is the holders and those ahead of the member in the queue; not the open
 * batch, if the member can go before that one ends. */
static bool add_queue_reason(const asker *by, reason r, chooser holding)
{
    name_list holders = choose(by, holding, false);
    name_list all = choose(by, by->before ? holds_outside : holding, true);
    if (!holders.at || !all.at)
        return false;
    r.holders = holders.at;
    r.holder_count = holders.len;
    r.holder_more = holders.more;
    r.act = RELEASE_COMPLETE;
    r.of = all.at;
    r.of_count = all.len;
    r.of_more = all.more;
    r.next_ms = REASON_NEVER;
    return reasons_add(by->out, by->a, r);
}

/* How many hold a place beyond the open batch, and do not start before the member anyway. */
static int64_t count_beyond(const asker *by)
{
    int64_t count = 0;
    for (size_t i = 0; i < by->c->others.len; i++) {
        const entry *e = &by->c->members.at[by->c->others.at[i]];
        count += holds_on(by, e) && !is_ahead(by, e);
    }
    return count;
}

/* The open batch must end; and who holds a place beyond it must not fill the compartment. */
static bool open_batch_reasons(const asker *by, reason base)
{
    reason batch = base;
    batch.rule = REASON_BATCH;
    if (!add_queue_reason(by, batch, in_open_batch))
        return false;
    if (by->crowd) {
        base.rule = REASON_STOPPED;
        base.detail = STR("unless more are done the batch will end in a stop");
        base.have = by->p->consecutive_failures + 1;
    }
    return (!by->crowd && count_beyond(by) < base.limit) || add_queue_reason(by, base, holds_on);
}

/* Whether a batch will begin before the member comes from another compartment: whoever could start
 * does so when the gates are open, and its own batch must end first. */
static bool begins_before(const asker *by)
{
    const compartment *now = &by->c->compartments.at[by->index];
    return by->left != COMPARTMENT_NONE && !by->reset && !now->batch_open &&
           compartment_next_size(now, false) > 0;
}

static bool late_reasons(const asker *by, reason base)
{
    asker late = *by;
    late.late = true;
    if (by->p->holders >= base.limit)
        return add_queue_reason(&late, base, holds_then);
    base.rule = REASON_BATCH;
    return add_queue_reason(&late, base, in_open_batch);
}

/* A fresh member waits for the open batch, or for those before it if the next batch is too small.
 */
static bool fresh_reasons(const asker *by, reason base)
{
    if (batch_then(by))
        return open_batch_reasons(by, base);
    if (begins_before(by))
        return late_reasons(by, base);
    if (count_ahead(by) < compartment_next_size(by->p, by->reset))
        return true;
    if (by->p->holders >= base.limit)
        return add_queue_reason(by, base, holds_then);
    base.rule = REASON_BATCH;
    return add_queue_reason(by, base, in_open_batch);
}

/* A failed member can go when nobody fresh is left, or all that are go with the next batch, and a
 * place is free behind them and behind those that are tried again before it. */
static bool failed_can_go(const asker *by, int64_t ceiling)
{
    const compartment *p = by->p;
    if (by->e->in_batch && !by->reset) /* its outcome is final until the batch is judged */
        return false;
    bool early = begins_before(by);
    int64_t next = early ? compartment_next_size(&by->c->compartments.at[by->index], false)
                   : batch_then(by) ? 0
                                    : compartment_next_size(p, by->reset);
    int64_t places = 1 + (next > 0 ? next : 0), startable = p->startable;
    for (size_t i = 0; i < by->c->others.len; i++) {
        const entry *e = &by->c->members.at[by->c->others.at[i]];
        places += holds_until_judged(by, e) || (e->state == MEMBER_FAILED && is_ahead(by, e));
        startable -= !by->reset && e->state == MEMBER_STARTABLE && in_its_batch(by, e);
    }
    bool alone = startable == 0 || next == startable || (!early && !batch_then(by) && next < 1);
    return alone && places <= ceiling;
}

/* Whether a failed member can go before the open batch ends, when everybody else is out of its way:
 * those in the batch leave it a place. They are taken as they are until it is judged. */
static bool failed_goes_before(const asker *by, int64_t ceiling)
{
    int64_t places = 1;
    if (by->e->state != MEMBER_FAILED || by->e->in_batch)
        return false;
    for (size_t i = 0; i < by->c->others.len; i++) {
        const entry *e = &by->c->members.at[by->c->others.at[i]];
        places += in_its_batch(by, e) && holds_until_judged(by, e);
    }
    return places <= ceiling;
}

static bool failed_reasons(const asker *by, reason base)
{
    if (failed_can_go(by, base.limit))
        return true;
    if (base.have < base.limit)
        base.detail = by->p->startable > 0 ? STR("but those that were not tried yet come first")
                                           : STR("but others come before it");
    return by->e->in_batch && !by->reset ? open_batch_reasons(by, base)
                                         : add_queue_reason(by, base, holds_then);
}

/* The compartment after the open batch, or after the reset if one is asked for, or when the batch
 * of another one has ended from which the member comes. Who is let go and has other labels by now
 * comes or leaves then, and the ceiling moves along. */
static compartment compartment_then(const asker *by)
{
    compartment then = *by->p;
    /* A fresh member waits for what a reset makes the first batch, too. */
    bool waits = by->reset ? by->e->state == MEMBER_STARTABLE : by->after;
    for (size_t i = 0; i < by->c->others.len; i++) {
        const entry *e = &by->c->members.at[by->c->others.at[i]];
        if (e == by->self)
            continue;
        bool ends =
            waits && e->compartment == by->index && (e->in_batch || (by->reset && e->retrying));
        ends |= !by->reset && e->compartment == by->left && e->in_batch;
        uint32_t place = ends ? e->next : place_then(by, e);
        int moves = (place == by->index) - (e->compartment == by->index);
        then.matched += moves;
        then.startable += e->state == MEMBER_STARTABLE ? moves : 0;
        then.holders += holds_then(by, e) - holds_place(by, e);
    }
    return then;
}

/* Whether those who hold a place beyond the open batch are to be done, too. */
static bool names_beyond(const asker *by)
{
    if (by->crowd)
        return true;
    if (by->e->state == MEMBER_FAILED && !by->e->in_batch)
        return true;
    compartment then = compartment_then(by);
    return count_beyond(by) >= compartment_ceiling(&then, then.matched);
}

/* Whether the open batch must end in a stop: even if everybody in it who is in flight succeeds, and
 * everybody who is ahead of this member or named for its place; and those that are tried again, if
 * they are counted. */
static bool stop_is_certain(const asker *by, bool retried)
{
    const compartment *p = by->p;
    if (!p->batch_open || p->rule.failure_threshold == 0 ||
        p->consecutive_failures + 1 < p->rule.failure_threshold)
        return false;
    int64_t complete = 0;
    int64_t done = p->done;
    for (size_t i = 0; i < p->batch.len; i++) {
        const entry *e = &by->c->members.at[p->batch.at[i]];
        bool ends = e->state == MEMBER_IN_FLIGHT;
        complete += ends || e->outcome == MEMBER_DONE;
        done += ends;
    }
    done += (int64_t)queue_ahead(by);
    bool beyond = names_beyond(by);
    for (size_t i = 0; i < by->c->others.len; i++) {
        const entry *e = &by->c->members.at[by->c->others.at[i]];
        bool again = retried && e->state == MEMBER_IN_FLIGHT && e->compartment == by->index;
        bool named = is_ahead(by, e) || again || (beyond && holds_on(by, e));
        /* an outcome is final until the batch is judged */
        done += named && !e->in_batch && e->state != MEMBER_DONE;
    }
    return complete * 100 / (int64_t)p->batch.len < p->rule.batch_threshold &&
           done * 100 / p->matched < p->rule.safety_limit;
}

/* Whether a reset, if it is asked for, does not help alone: places are to be given back, too. Then
 * all of that may do without the reset. */
static bool reset_is_not_all(const asker *by)
{
    asker with = *by;
    with.reset = true;
    compartment then = compartment_then(&with);
    int64_t ceiling = compartment_ceiling(&then, then.matched);
    with.p = &then;
    return by->e->state == MEMBER_FAILED ? !failed_can_go(&with, ceiling)
                                         : count_beyond(&with) >= ceiling;
}

/* How the stop in which the open batch ends can be averted, or that it cannot: then a reset is
 * asked for. */
static void avert_stop(asker *by, int64_t ceiling)
{
    by->before = failed_goes_before(by, ceiling);
    if (by->before)
        return;
    by->spared = !stop_is_certain(by, true);
    if (by->spared)
        return;
    by->crowd = by->after && reset_is_not_all(by);
    by->spared = by->crowd = by->crowd && !stop_is_certain(by, true);
    by->reset = !by->crowd;
}

static bool member_reasons(const asker *by, reason base)
{
    if (by->e->state == MEMBER_STARTABLE)
        return fresh_reasons(by, base);
    return by->e->state == MEMBER_FAILED ? failed_reasons(by, base) : true;
}

/* What the compartment says to the member, which is in it or would be. */
static bool compartment_reasons(asker *by)
{
    const compartment *p = by->p;
    const entry *e = by->e;
    int64_t ceiling = compartment_ceiling(p, p->matched);
    by->after = p->batch_open && (e->state == MEMBER_STARTABLE || e->in_batch);
    by->reset = p->stopped;
    bool stops = !p->stopped && (e->state != MEMBER_FAILED || !failed_can_go(by, ceiling)) &&
                 stop_is_certain(by, false);
    if (stops)
        avert_stop(by, ceiling);
    reason base = {.rule = REASON_BUDGET,
                   .scope = arena_printf(by->a, "compartment %.*s", STR_ARG(p->rule.name)),
                   .next_ms = REASON_NEVER,
                   .have = p->holders,
                   .limit = ceiling};
    if (!base.scope.ptr)
        return false;
    reason stopped = {.rule = REASON_STOPPED,
                      .scope = base.scope,
                      .act = RELEASE_RESET,
                      .next_ms = REASON_NEVER,
                      .have = p->consecutive_failures + !p->stopped,
                      .detail = p->stopped ? STR("stopped") : STR("the batch will end in a stop")};
    if (!by->reset && !by->after && by->left == COMPARTMENT_NONE)
        return member_reasons(by, base);
    compartment then = compartment_then(by);
    asker later = *by;
    later.p = &then;
    base.limit = compartment_ceiling(&then, then.matched);
    return (!by->reset || reasons_add(by->out, by->a, stopped)) && member_reasons(&later, base);
}

/* A member whose labels send it to another compartment when its batch has ended. */
static bool moving_reasons(asker by, uint32_t next)
{
    const compartment *p = by.p;
    entry moved = *by.e;
    compartment there = by.c->compartments.at[next];
    moved.compartment = next;
    moved.in_batch = false;
    there.matched++;
    there.startable += moved.state == MEMBER_STARTABLE;
    there.holders += entry_holds(by.c, &moved); /* it brings its place along */
    asker then = by;
    then.e = &moved;
    then.p = &there;
    then.index = next;
    then.left = by.index;
    if (!compartment_reasons(&then))
        return false;
    reason batch = {.rule = REASON_BATCH,
                    .scope = arena_printf(by.a, "compartment %.*s", STR_ARG(p->rule.name)),
                    .act = RELEASE_COMPLETE,
                    .next_ms = REASON_NEVER};
    name_list holders = choose(&by, in_open_batch, false);
    if (!batch.scope.ptr || !holders.at)
        return false;
    batch.holders = batch.of = holders.at;
    batch.holder_count = batch.of_count = holders.len;
    batch.holder_more = batch.of_more = holders.more;
    return then.reset || reasons_add(by.out, by.a, batch); /* a reset ends every batch for it */
}

bool cohort_reasons(const cohort *c, member_id m, arena *a, reasons *out)
{
    const entry *e = &c->members.at[m];
    if (e->compartment == COMPARTMENT_NONE)
        return true;
    cohort *asked = (cohort *)(uintptr_t)c;
    if (c->supposed > 0 && !(c->alone && e->supposed)) { /* of others: they are sorted anew */
        asked->alone = false;
        asked->edits++;
    }
    if (!cohort_ask(asked))
        return false;
    asker by = {.c = c,
                .self = e,
                .e = e,
                .p = &c->compartments.at[e->compartment],
                .index = e->compartment,
                .left = COMPARTMENT_NONE,
                .a = a,
                .out = out};
    uint32_t next = e->in_batch ? cohort_choose(c, e) : e->compartment;
    if (next != e->compartment && next != COMPARTMENT_NONE)
        return moving_reasons(by, next);
    return compartment_reasons(&by);
}
