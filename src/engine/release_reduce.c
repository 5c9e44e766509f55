/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/release_reduce.h"

#include <stdlib.h>

static int compare_names(const void *a, const void *b)
{
    return str_cmp(*(const str *)a, *(const str *)b);
}

static bool named_in(str name, const str *at, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (str_eq(name, at[i]))
            return true;
    return false;
}

bool reason_names_all(const reason *r, const reason *other)
{
    for (size_t i = 0; i < other->of_count; i++)
        if (!named_in(other->of[i], r->of, r->of_count))
            return false;
    return true;
}

/* Whether it names so many of them that the other one is met. */
static bool names_enough(const reason *r, const reason *other)
{
    size_t named = 0;
    for (size_t i = 0; i < other->of_count; i++)
        named += named_in(other->of[i], r->of, r->of_count);
    return named >= (other->any > 0 ? other->any : other->of_count);
}

static bool same_reason(const reason *a, const reason *b)
{
    return a->rule == b->rule && str_eq(a->scope, b->scope) && str_eq(a->detail, b->detail) &&
           a->next_ms == b->next_ms && a->of_more == b->of_more && a->any == b->any &&
           reason_names_all(b, a) && reason_names_all(a, b);
}

/* Whether so many of those that are unavailable are to be complete anyway, for another limit. */
static bool makes_room(const reason *by, const reason *r)
{
    bool limit = by->rule == REASON_BATCH || by->rule == REASON_BUDGET ||
                 by->rule == REASON_CONCURRENCY || by->rule == REASON_PARTITION;
    size_t asked = 0, given = 0;
    if (r->rule != REASON_UNAVAILABLE || !limit || by->act != RELEASE_COMPLETE ||
        r->act != RELEASE_COMPLETE || r->of_count == 0 || r->any > 0 || by->any > 0)
        return false;
    for (size_t i = 0; i < r->of_count; i++) {
        bool holds = named_in(r->of[i], r->holders, r->holder_count);
        asked += holds;
        if (!holds && !named_in(r->of[i], by->of, by->of_count))
            return false; /* it stands ahead */
    }
    for (size_t i = 0; i < r->holder_count; i++)
        given += named_in(r->holders[i], by->of, by->of_count);
    return given >= asked;
}

/* Whether to retry it is asked for already, which waits for no time, or to complete it, for which
 * it has been tried again. */
static bool retried_anyway(const reason *by, const reason *r)
{
    if (by->rule == REASON_QUARANTINED)
        return r->act == RELEASE_RETRY;
    if (by->rule == REASON_SKIPPED || by->rule == REASON_ROLLED_BACK)
        return r->act == RELEASE_RETRY || (r->of_count > 0 && reason_names_all(by, r));
    return (by->rule == REASON_BRACKET || by->rule == REASON_DEPENDENCY) &&
           by->act == RELEASE_COMPLETE && by->any == 0 && r->of_count > 0 &&
           reason_names_all(by, r);
}

/* Who must be complete for a role is no second reason as a dependency, nor are approvals that
 * another rule asks for in a greater number. */
static bool implies(const reason *by, const reason *r, bool earlier_)
{
    if (r->rule == REASON_APPROVAL && by->rule == REASON_APPROVAL && reason_names_all(by, r))
        return by->limit > r->limit || (by->limit == r->limit && earlier_);
    if (r->rule == REASON_RETRY)
        return retried_anyway(by, r);
    if (r->rule == REASON_FAILED && by->rule == REASON_DEPENDENCY && by->act == RELEASE_COMPLETE &&
        reason_names_all(by, r))
        return true; /* to complete it is more than to retry it */
    bool once_more =
        r->rule == REASON_FAILED || r->rule == REASON_SKIPPED || r->rule == REASON_ROLLED_BACK;
    if (once_more && r->act == RELEASE_RETRY && by->rule == REASON_QUARANTINED &&
        by->next_ms == REASON_NEVER)
        return true; /* to retry all of the resource is asked for */
    if (makes_room(by, r))
        return true;
    return r->rule == REASON_DEPENDENCY && by->rule == REASON_BRACKET &&
           by->act == RELEASE_COMPLETE && r->of_count > 0 && names_enough(by, r);
}

/* Limits that name all who hold a place or are ahead. */
static bool is_place(const reason *r)
{
    return r->rule == REASON_BATCH || r->rule == REASON_BUDGET || r->rule == REASON_CONCURRENCY;
}

/* Whether a reason names resources that must become complete. */
static bool of_resources(const reason *r)
{
    return r->act == RELEASE_COMPLETE &&
           (is_place(r) || r->rule == REASON_PARTITION || r->rule == REASON_UNAVAILABLE ||
            r->rule == REASON_MAX_NEW);
}

/* A name, and whether it is complete anyway: where others cannot do without it. */
typedef struct asked_name {
    str name;
    bool given;
} asked_name;

/* Whether enough of those that a partition's reason names are complete when what the others ask for
 * is done: by all whom they cannot do without, or by so many of any as one of them needs. */
static bool met_by_others(const reasons *list, size_t index, asked_name *asked)
{
    const reason *r = &list->at[index];
    size_t need = r->any > 0 ? r->any : r->of_count, given = 0;
    for (size_t i = 0; i < r->of_count; i++)
        asked[i] = (asked_name){r->of[i], false};
    qsort(asked, r->of_count, sizeof *asked, compare_names);
    for (size_t k = 0; k < list->len; k++) {
        const reason *by = &list->at[k];
        size_t both = 0;
        for (size_t i = 0; k != index && of_resources(by) && i < by->of_count; i++) {
            asked_name *found =
                bsearch(&by->of[i], asked, r->of_count, sizeof *asked, compare_names);
            both += found != NULL;
            given += found && by->any == 0 && !found->given;
            if (found)
                found->given = found->given || by->any == 0;
        }
        if (both > 0 && by->any > 0 && by->any >= need + (by->of_count - both))
            return true;
    }
    return given >= need;
}

/* Leaves out of partitions' reasons those that the others imply. False without memory. */
static bool partitions_reduce(reasons *list, arena *a)
{
    for (size_t i = list->len; list->len > 1 && i > 0; i--) {
        const reason *r = &list->at[i - 1];
        if (!of_resources(r) || is_place(r) || r->of_count == 0)
            continue;
        asked_name *asked = ARENA_ARRAY(a, r->of_count, asked_name);
        if (!asked)
            return false;
        if (!met_by_others(list, i - 1, asked))
            continue;
        list->len--;
        for (size_t k = i - 1; k < list->len; k++)
            list->at[k] = list->at[k + 1];
    }
    return true;
}

/* A reason that stands there already, or that another implies, is not listed. */
static void leave_out_implied(reasons *list)
{
    size_t kept = 0;
    for (size_t i = 0; i < list->len; i++) {
        bool drop = false;
        for (size_t k = 0; k < kept && !drop; k++)
            drop = same_reason(&list->at[k], &list->at[i]);
        for (size_t k = 0; k < list->len && !drop; k++)
            drop = k != i && implies(&list->at[k], &list->at[i], k < i);
        if (!drop)
            list->at[kept++] = list->at[i];
    }
    list->len = kept;
}

bool reasons_reduce(reasons *list, arena *a)
{
    leave_out_implied(list);
    return partitions_reduce(list, a);
}
