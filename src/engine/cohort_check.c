/* SPDX-License-Identifier: Apache-2.0 */
/* The slow way: counters, queues and compartments from the members alone, and that nothing is left
 * to be done. */
#include <inttypes.h>

#include "base/mem.h"
#include "engine/cohort_internal.h"

/* Of a compartment, counted from the members. */
typedef struct sums {
    int64_t matched, done, startable, in_flight, unresolved, holders, retries;
    int64_t selected; /* full_member counts it */
} sums;

static void count_member(const cohort *c, const entry *e, sums *all)
{
    if (e->compartment == COMPARTMENT_NONE)
        return;
    sums *s = &all[e->compartment];
    s->matched++;
    s->done += e->state == MEMBER_DONE;
    s->startable += e->state == MEMBER_STARTABLE;
    s->in_flight += e->state == MEMBER_IN_FLIGHT;
    s->unresolved += e->state == MEMBER_IN_FLIGHT && e->in_batch;
    s->holders += entry_holds(c, e);
    s->retries += e->state == MEMBER_FAILED && !e->in_batch && e->retry_ms != REASON_NEVER;
}

/* One for each compartment; the caller frees them. NULL without memory. */
static sums *count_all(const cohort *c)
{
    sums *all = mem_zalloc((c->compartments.len + 1) * sizeof *all);
    for (size_t i = 0; all && i < c->members.len; i++)
        if (c->members.at[i].state != MEMBER_ABSENT)
            count_member(c, &c->members.at[i], all);
    return all;
}

static bool same(int64_t counted, int64_t kept, const char *what, str where, err *error)
{
    if (counted == kept)
        return true;
    return err_set(error, "compartment %.*s: %s is %" PRId64 ", counted %" PRId64, STR_ARG(where),
                   what, kept, counted);
}

/* ---- invariants ---- */

static bool check_compartment(const compartment *p, const sums *s, err *error)
{
    str where = p->rule.name;
    if (!p->batch_open && p->batch.len > 0)
        return err_set(error, "compartment %.*s: a closed batch has members", STR_ARG(where));
    return same(s->matched, p->matched, "matched", where, error) &&
           same(s->done, p->done, "done", where, error) &&
           same(s->startable, p->startable, "startable", where, error) &&
           same(s->in_flight, p->in_flight, "inFlight", where, error) &&
           same(s->unresolved, p->unresolved, "unresolved", where, error) &&
           same(s->holders, p->holders, "holders", where, error);
}

/* I1: nobody was given a place that the ceiling does not have. What shrinks later stops nobody who
 * has one: only claims of the last step are looked at. */
static bool check_limit(const cohort *c, const entry *e, err *error)
{
    const compartment *p = &c->compartments.at[e->compartment];
    int64_t ceiling = compartment_ceiling(p, p->matched);
    if (e->claim <= c->step_claim || p->holders <= ceiling)
        return true;
    return err_set(error,
                   "I1: %.*s was started, and %" PRId64 " hold compartment %.*s, which has %" PRId64
                   " places",
                   STR_ARG(e->name), p->holders, STR_ARG(p->rule.name), ceiling);
}

/* I6: who is in flight was claimed before the compartment was stopped, and before the pause. */
static bool check_halts(const cohort *c, const entry *e, err *error)
{
    const compartment *p = &c->compartments.at[e->compartment];
    if (p->stopped && e->claim > p->stop_claim)
        return err_set(error, "I6: %.*s was claimed after a stop", STR_ARG(e->name));
    if (c->paused && e->claim > c->pause_claim)
        return err_set(error, "I6: %.*s was claimed after a pause", STR_ARG(e->name));
    return true;
}

bool cohort_check(const cohort *c, err *error)
{
    sums *all = count_all(c);
    bool good = all || err_memory(error);
    for (size_t i = 0; good && i < c->compartments.len; i++)
        good = check_compartment(&c->compartments.at[i], &all[i], error);
    mem_free(all);
    for (size_t i = 0; good && i < c->members.len; i++) {
        const entry *e = &c->members.at[i];
        if (e->state == MEMBER_IN_FLIGHT && e->in_batch == e->retrying)
            good = err_set(error, "%.*s holds no claim, or two", STR_ARG(e->name));
        if (good && e->state == MEMBER_IN_FLIGHT)
            good = check_halts(c, e, error) && check_limit(c, e, error);
    }
    return good;
}

/* ---- from scratch ---- */

static bool full_queue(const cohort *c, const member_heap *h, member_state state, str where,
                       err *error)
{
    for (size_t i = 0; i < h->len; i++) {
        const entry *e = &c->members.at[h->at[i]];
        if (e->place != i + 1 || e->state != state)
            return err_set(error,
                           "compartment %.*s: %.*s is in the wrong queue, or not at its place",
                           STR_ARG(where), STR_ARG(e->name));
    }
    return true;
}

/* Which compartments select the member, and that it is in the first of them, or in the default. */
static bool full_member(const cohort *c, const entry *e, sums *all, err *error)
{
    uint32_t first = COMPARTMENT_NONE;
    for (size_t i = c->order.len; i-- > 0;)
        if (compartment_selects(&c->compartments.at[c->order.at[i]], e->labels)) {
            first = c->order.at[i];
            all[first].selected++;
        }
    if (first == COMPARTMENT_NONE)
        first = cohort_default(c);
    return e->in_batch || e->retrying || first == e->compartment ||
           err_set(error, "%.*s belongs into another compartment", STR_ARG(e->name));
}

static bool full_compartment(const cohort *c, uint32_t index, const sums *s, err *error)
{
    const compartment *p = &c->compartments.at[index];
    str where = p->rule.name;
    if (!same(s->selected, p->selected, "selected", where, error) ||
        !same(s->startable, (int64_t)p->queue.len, "the length of the queue", where, error) ||
        !same(s->retries, (int64_t)p->retries.len, "the number of retries", where, error) ||
        !full_queue(c, &p->queue, MEMBER_STARTABLE, where, error) ||
        !full_queue(c, &p->retries, MEMBER_FAILED, where, error))
        return false;
    if (p->batch_open && p->unresolved == 0)
        return err_set(error, "compartment %.*s: a batch has ended and is not judged",
                       STR_ARG(where));
    if (cohort_may_start(c, p) && !p->batch_open && compartment_next_size(p, false) >= 1)
        return err_set(error, "compartment %.*s: a batch could begin and has not", STR_ARG(where));
    return true;
}

bool cohort_full(const cohort *c, err *error)
{
    if (c->unsettled)
        return true; /* something was said of members that no step has looked at */
    sums *all = count_all(c);
    bool good = all || err_memory(error);
    for (size_t i = 1; good && i < c->order.len; i++)
        if (compartment_safer(&c->compartments.at[c->order.at[i]],
                              &c->compartments.at[c->order.at[i - 1]]))
            good = err_set(error, "compartments are not in the order of safety");
    for (size_t i = 0; good && i < c->members.len; i++)
        if (c->members.at[i].state != MEMBER_ABSENT)
            good = full_member(c, &c->members.at[i], all, error);
    for (uint32_t i = 0; good && i < c->compartments.len; i++)
        good = full_compartment(c, i, &all[i], error);
    mem_free(all);
    return good;
}
