/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>

#include "engine/cohort_internal.h"

/* How much longer than needed a queue may grow before stale entries are swept out. */
#define QUEUE_SLACK 16u

static bool member_before(const cohort *c, member_id a, member_id b)
{
    return entry_before(&c->members.at[a], &c->members.at[b]);
}

static void queue_down(const cohort *c, member_id *at, size_t len, size_t i)
{
    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= len)
            return;
        if (child + 1 < len && member_before(c, at[child + 1], at[child]))
            child++;
        if (!member_before(c, at[child], at[i]))
            return;
        member_id swap = at[i];
        at[i] = at[child];
        at[child] = swap;
        i = child;
    }
}

/* Keeps each member that still qualifies once. */
static void queue_compact(cohort *c, compartment *p, uint32_t index)
{
    size_t kept = 0;
    for (size_t i = 0; i < p->queue.len; i++) {
        entry *e = &c->members.at[p->queue.at[i]];
        if (e->state != MEMBER_STARTABLE || e->compartment != index || e->marked)
            continue;
        e->marked = true;
        p->queue.at[kept++] = p->queue.at[i];
    }
    p->queue.len = kept;
    for (size_t i = 0; i < kept; i++)
        c->members.at[p->queue.at[i]].marked = false;
    for (size_t i = kept / 2; i-- > 0;)
        queue_down(c, p->queue.at, kept, i);
}

static bool queue_push(cohort *c, uint32_t index, member_id m)
{
    compartment *p = &c->compartments.at[index];
    if (p->queue.len > 2 * (size_t)p->startable + QUEUE_SLACK)
        queue_compact(c, p, index);
    if (!vec_push(&p->queue, m))
        return false;
    size_t i = p->queue.len - 1;
    while (i > 0 && member_before(c, m, p->queue.at[(i - 1) / 2])) {
        p->queue.at[i] = p->queue.at[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    p->queue.at[i] = m;
    return true;
}

member_id queue_pop(cohort *c, uint32_t index)
{
    compartment *p = &c->compartments.at[index];
    for (;;) {
        assert(p->queue.len > 0);
        member_id m = p->queue.at[0];
        p->queue.at[0] = p->queue.at[--p->queue.len];
        queue_down(c, p->queue.at, p->queue.len, 0);
        const entry *e = &c->members.at[m];
        if (e->state == MEMBER_STARTABLE && e->compartment == index)
            return m;
    }
}

static bool due_before(const cohort *c, due a, due b)
{
    return a.ms != b.ms ? a.ms < b.ms : member_before(c, a.member, b.member);
}

static void retries_down(const cohort *c, due *at, size_t len, size_t i)
{
    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= len)
            return;
        if (child + 1 < len && due_before(c, at[child + 1], at[child]))
            child++;
        if (!due_before(c, at[child], at[i]))
            return;
        due swap = at[i];
        at[i] = at[child];
        at[child] = swap;
        i = child;
    }
}

static bool retry_valid(const cohort *c, uint32_t index, due d)
{
    const entry *e = &c->members.at[d.member];
    return e->state == MEMBER_FAILED && e->compartment == index && e->retry_ms == d.ms &&
           !e->in_batch;
}

void retries_drop_first(cohort *c, uint32_t index)
{
    compartment *p = &c->compartments.at[index];
    p->retries.at[0] = p->retries.at[--p->retries.len];
    retries_down(c, p->retries.at, p->retries.len, 0);
}

bool retries_first(cohort *c, uint32_t index, due *ret)
{
    compartment *p = &c->compartments.at[index];
    while (p->retries.len > 0 && !retry_valid(c, index, p->retries.at[0]))
        retries_drop_first(c, index);
    if (p->retries.len == 0)
        return false;
    *ret = p->retries.at[0];
    return true;
}

/* Keeps each retry that still stands once. */
static void retries_compact(cohort *c, uint32_t index)
{
    compartment *p = &c->compartments.at[index];
    size_t kept = 0;
    for (size_t i = 0; i < p->retries.len; i++) {
        entry *e = &c->members.at[p->retries.at[i].member];
        if (!retry_valid(c, index, p->retries.at[i]) || e->marked)
            continue;
        e->marked = true;
        p->retries.at[kept++] = p->retries.at[i];
    }
    p->retries.len = kept;
    for (size_t i = 0; i < kept; i++)
        c->members.at[p->retries.at[i].member].marked = false;
    for (size_t i = kept / 2; i-- > 0;)
        retries_down(c, p->retries.at, kept, i);
}

static bool retries_push(cohort *c, uint32_t index, due d)
{
    compartment *p = &c->compartments.at[index];
    if (p->retries.len > 2 * (size_t)p->matched + QUEUE_SLACK)
        retries_compact(c, index);
    if (!vec_push(&p->retries, d))
        return false;
    size_t i = p->retries.len - 1;
    while (i > 0 && due_before(c, d, p->retries.at[(i - 1) / 2])) {
        p->retries.at[i] = p->retries.at[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    p->retries.at[i] = d;
    return true;
}

bool entry_enqueue(cohort *c, member_id m)
{
    const entry *e = &c->members.at[m];
    if (e->compartment == COMPARTMENT_NONE)
        return true;
    if (e->state == MEMBER_STARTABLE)
        return queue_push(c, e->compartment, m);
    if (e->state == MEMBER_FAILED && e->retry_ms != REASON_NEVER && !e->in_batch)
        return retries_push(c, e->compartment, (due){e->retry_ms, m});
    return true;
}
