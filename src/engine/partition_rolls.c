/* SPDX-License-Identifier: Apache-2.0 */
/* The members of partitions in the order in which a pass comes to them, for questions. Scratch, not
 * state: made when first asked for. */
#include "engine/partition_internal.h"

static int by_order(const void *a, const void *b, void *context)
{
    const partitions *p = context;
    return paced_order(&p->members.at[*(const member_id *)a],
                       &p->members.at[*(const member_id *)b]);
}

/* Fills the lists of the partitions from the order of all. */
static bool group_make(partitions *p)
{
    size_t seats = 0;
    if (!vec_reserve(&p->group_ends, p->parts.len + 1))
        return false;
    for (size_t i = 0; i < p->parts.len; i++) {
        p->group_ends.at[i] = seats; /* where it begins; each member moves it on to where it ends */
        seats += (size_t)p->parts.at[i].count;
    }
    if (!vec_reserve(&p->grouped, seats + 1))
        return false;
    for (size_t i = 0; i < p->order.len; i++) {
        const paced *member = &p->members.at[p->order.at[i]];
        for (uint32_t s = member->seats; s; s = p->seats.at[s].next)
            p->grouped.at[p->group_ends.at[p->seats.at[s].partition]++] = p->order.at[i];
    }
    return true;
}

bool rolls_make(const partitions *p)
{
    partitions *scratch = (partitions *)(uintptr_t)p;
    if (p->order.len > 0)
        return true;
    for (size_t m = 0; m < p->members.len; m++)
        if (p->members.at[m].present && !vec_push(&scratch->order, (member_id)m))
            return false;
    if (p->order.len > 1)
        qsort_r(scratch->order.at, p->order.len, sizeof *p->order.at, by_order, scratch);
    if (group_make(scratch))
        return true;
    scratch->order.len = 0;
    return false;
}

roll roll_of(const partitions *p, uint32_t index)
{
    if (index == PARTITION_NONE)
        return (roll){p->order.at, p->order.len};
    size_t count = (size_t)p->parts.at[index].count;
    return (roll){&p->grouped.at[p->group_ends.at[index] - count], count};
}

bool sits(const partitions *p, const paced *member, uint32_t index)
{
    for (uint32_t s = member->seats; s; s = p->seats.at[s].next)
        if (p->seats.at[s].partition == index)
            return true;
    return false;
}
