/* SPDX-License-Identifier: Apache-2.0 */
/* What questions to a cohort are answered from: who stands in the queues, and everybody else who
 * may hold a place, each sorted once and kept until something changes. A stalled fleet in which
 * everybody asks would else sort everybody for each of them. Decides nothing. */
#include <stdlib.h>

#include "base/mem.h"
#include "engine/cohort_internal.h"

static bool stands_in_queue(const entry *e)
{
    return e->state == MEMBER_STARTABLE && !e->in_batch && !e->stuck &&
           e->compartment != COMPARTMENT_NONE;
}

static bool may_count(const entry *e)
{
    return e->state != MEMBER_ABSENT &&
           (e->in_batch || e->retrying || e->stuck || e->state == MEMBER_IN_FLIGHT ||
            entry_failed(e) || (e->state == MEMBER_STARTABLE && !stands_in_queue(e)));
}

static int by_name(const void *a, const void *b, void *context)
{
    const cohort *c = context;
    return str_cmp(c->members.at[*(const member_id *)a].name,
                   c->members.at[*(const member_id *)b].name);
}

static int by_turn(const void *a, const void *b, void *context)
{
    const cohort *c = context;
    const entry *x = &c->members.at[*(const member_id *)a],
                *y = &c->members.at[*(const member_id *)b];
    return entry_starts_before(x, y) ? -1 : entry_starts_before(y, x);
}

static bool fill_queue(cohort *c, asked_queue *q, uint32_t index)
{
    const member_heap *from = &c->compartments.at[index].queue;
    q->turns.len = q->names.len = 0;
    if (!vec_reserve(&q->turns, from->len + 1) || !vec_reserve(&q->names, from->len + 1))
        return false;
    for (size_t i = 0; i < from->len; i++)
        if (stands_in_queue(&c->members.at[from->at[i]]))
            q->turns.at[q->turns.len++] = from->at[i];
    qsort_r(q->turns.at, q->turns.len, sizeof *q->turns.at, by_turn, c);
    for (size_t i = 0; i < q->turns.len; i++) {
        c->members.at[q->turns.at[i]].turn = (uint32_t)i;
        q->names.at[q->names.len++] = q->turns.at[i];
    }
    qsort_r(q->names.at, q->names.len, sizeof *q->names.at, by_name, c);
    return true;
}

bool cohort_ask(cohort *c)
{
    if (c->asked_at == c->edits)
        return true;
    c->others.len = 0;
    for (member_id m = 0; m < c->members.len; m++) {
        entry *e = &c->members.at[m];
        if (may_count(e) && !vec_push(&c->others, m))
            return false;
        if (may_count(e) && (e->in_batch || e->retrying))
            e->next = cohort_choose(c, e);
    }
    if (c->others.len > 1)
        qsort_r(c->others.at, c->others.len, sizeof *c->others.at, by_name, c);
    while (c->queues.len < c->compartments.len)
        if (!vec_push(&c->queues, (asked_queue){0}))
            return false;
    for (uint32_t i = 0; i < c->compartments.len; i++)
        if (!fill_queue(c, &c->queues.at[i], i))
            return false;
    c->asked_at = c->edits;
    return true;
}

size_t cohort_ahead_in_queue(const cohort *c, uint32_t index, const entry *e)
{
    const asked_queue *q = &c->queues.at[index];
    size_t low = 0, high = q->turns.len;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (entry_starts_before(&c->members.at[q->turns.at[middle]], e))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void cohort_asked_done(cohort *c)
{
    for (size_t i = 0; i < c->queues.len; i++) {
        vec_done(&c->queues.at[i].turns);
        vec_done(&c->queues.at[i].names);
    }
    vec_done(&c->queues);
    vec_done(&c->others);
}
