/* SPDX-License-Identifier: Apache-2.0 */
/* Who could start, and who could be tried again: a heap each in every compartment. A member stands
 * in at most one of them and knows its place there, so that it is taken out wherever it stands. */
#include <assert.h>

#include "engine/cohort_internal.h"

bool entry_starts_before(const entry *a, const entry *b)
{
    return a->held != b->held ? a->held : entry_before(a, b);
}

static bool retried_before(const entry *a, const entry *b)
{
    return a->retry_ms != b->retry_ms ? a->retry_ms < b->retry_ms : entry_before(a, b);
}

/* ---- a heap of members ---- */

/* Both heaps are of failed members, or of startable ones: what is in one of them says which. */
static bool member_before(const cohort *c, member_id a, member_id b)
{
    const entry *x = &c->members.at[a], *y = &c->members.at[b];
    return x->state == MEMBER_FAILED ? retried_before(x, y) : entry_starts_before(x, y);
}

static void heap_put(cohort *c, member_heap *h, size_t at, member_id m)
{
    h->at[at] = m;
    c->members.at[m].place = (uint32_t)at + 1;
}

/* Moves a member from a place that is free to the one it belongs to, towards the top... */
static void heap_up(cohort *c, member_heap *h, size_t at, member_id m)
{
    for (; at > 0 && member_before(c, m, h->at[(at - 1) / 2]); at = (at - 1) / 2)
        heap_put(c, h, at, h->at[(at - 1) / 2]);
    heap_put(c, h, at, m);
}

/* ... or away from it. */
static void heap_down(cohort *c, member_heap *h, size_t at, member_id m)
{
    for (size_t child = 2 * at + 1; child < h->len; child = 2 * at + 1) {
        if (child + 1 < h->len && member_before(c, h->at[child + 1], h->at[child]))
            child++;
        if (!member_before(c, h->at[child], m))
            break;
        heap_put(c, h, at, h->at[child]);
        at = child;
    }
    heap_put(c, h, at, m);
}

static void heap_remove(cohort *c, member_heap *h, size_t at)
{
    member_id last = h->at[--h->len];
    if (at == h->len)
        return;
    if (at > 0 && member_before(c, last, h->at[(at - 1) / 2]))
        heap_up(c, h, at, last);
    else
        heap_down(c, h, at, last);
}

/* ---- the two of a compartment ---- */

/* The one a member belongs into as it is now; NULL: into none. */
static member_heap *heap_of(cohort *c, const entry *e)
{
    if (e->state == MEMBER_ABSENT || e->compartment == COMPARTMENT_NONE)
        return NULL;
    compartment *p = &c->compartments.at[e->compartment];
    if (e->state == MEMBER_STARTABLE)
        return &p->queue;
    bool retried = e->state == MEMBER_FAILED && e->retry_ms != REASON_NEVER && !e->in_batch;
    return retried ? &p->retries : NULL;
}

void entry_out(cohort *c, member_id m)
{
    entry *e = &c->members.at[m];
    c->edits++;
    entry_count(c, e, -1);
    if (e->place == 0)
        return;
    member_heap *h = heap_of(c, e);
    assert(h && h->at[e->place - 1] == m);
    heap_remove(c, h, e->place - 1);
    e->place = 0;
}

void entry_in(cohort *c, member_id m)
{
    entry *e = &c->members.at[m];
    assert(e->place == 0);
    c->edits++;
    entry_count(c, e, 1);
    member_heap *h = heap_of(c, e);
    if (!h)
        return;
    if (vec_push(h, m))
        heap_up(c, h, h->len - 1, m);
    else
        c->no_memory = true;
}

member_id queue_first(const cohort *c, uint32_t index)
{
    assert(c->compartments.at[index].queue.len > 0);
    return c->compartments.at[index].queue.at[0];
}

bool retries_next(const cohort *c, uint32_t index, member_id *ret)
{
    const compartment *p = &c->compartments.at[index];
    int64_t room = compartment_ceiling(p, p->matched) - p->holders;
    if (room < 0 || p->retries.len == 0)
        return false;
    *ret = p->retries.at[0];
    if (room > 0 || entry_holds(c, &c->members.at[*ret]))
        return true;
    if (p->holders == p->in_flight)
        return false;
    /* Only a member that keeps its place while it is failed can go before its turn. */
    bool found = false;
    for (size_t i = 0; i < p->retries.len; i++) {
        member_id m = p->retries.at[i];
        if (!entry_holds(c, &c->members.at[m]))
            continue;
        if (!found || member_before(c, m, *ret))
            *ret = m;
        found = true;
    }
    return found;
}
