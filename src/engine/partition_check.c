/* SPDX-License-Identifier: Apache-2.0 */
/* The slow way: everything counted again from the members, and the pass as the text has it. */
#include "engine/partition_internal.h"

#include <inttypes.h>

#include "base/mem.h"

static bool differ(err *error, str what, str name, int64_t kept, int64_t counted)
{
    if (kept == counted)
        return false;
    err_set(error, "%.*s of \"%.*s\": kept %" PRId64 ", counted %" PRId64, STR_ARG(what),
            STR_ARG(name), kept, counted);
    return true;
}

static size_t tree_size(const partitions *p, uint32_t root, candidate_kind kind, bool *sound)
{
    size_t size = 0;
    const paced *last = NULL;
    for (uint32_t s = tree_after(p, root, NULL); s; s = tree_after(p, root, last)) {
        const paced *member = &p->members.at[p->seats.at[s].member];
        *sound &= paced_candidate(member->flags) == kind && p->seats.at[s].tree == kind;
        last = member;
        size++;
    }
    return size;
}

static bool recount_part(const partitions *p, uint32_t index, err *error)
{
    const part *at = &p->parts.at[index];
    part sum = {0};
    int64_t kinds[CANDIDATE_KINDS] = {0};
    for (size_t s = 1; s < p->seats.len; s++) {
        const seat *one = &p->seats.at[s];
        const paced *member = &p->members.at[one->member];
        bool taken = false; /* free seats stand in the same list */
        for (uint32_t n = member->present ? member->seats : 0; n; n = p->seats.at[n].next)
            taken |= n == s;
        if (!taken || one->partition != index)
            continue;
        sum.count++;
        sum.counted += !(member->flags & PACED_OUT);
        sum.now.unavailable += paced_unavailable(member->flags);
        sum.now.bad += paced_bad(member->flags);
        candidate_kind kind = paced_candidate(member->flags);
        if (kind != CANDIDATE_NONE)
            kinds[kind]++;
    }
    if (differ(error, STR("members"), at->name, at->count, sum.count) ||
        differ(error, STR("paced members"), at->name, at->counted, sum.counted) ||
        differ(error, STR("unavailable"), at->name, at->now.unavailable, sum.now.unavailable) ||
        differ(error, STR("not ready"), at->name, at->now.bad, sum.now.bad))
        return false;
    bool sound = true;
    for (unsigned kind = 0; kind < CANDIDATE_KINDS; kind++)
        if (differ(error, STR("candidates"), at->name,
                   (int64_t)tree_size(p, at->root[kind], (candidate_kind)kind, &sound),
                   kinds[kind]))
            return false;
    int_or_percent own =
        at->max_unavailable.kind == AMOUNT_NONE ? p->max_unavailable : at->max_unavailable;
    if (differ(error, STR("cap"), at->name, at->cap, int_or_percent_limit(own, sum.count)))
        return false;
    return sound || err_set(error, "a tree of \"%.*s\" holds a stranger", STR_ARG(at->name));
}

static bool recount_whole(const partitions *p, err *error)
{
    int64_t assigned = 0, unavailable = 0, bad = 0, failures = 0;
    for (size_t m = 0; m < p->members.len; m++) {
        const paced *member = &p->members.at[m];
        failures += member->failed;
        if (!member->seats)
            continue;
        bool own = false;
        for (uint32_t s = member->seats; s; s = p->seats.at[s].next)
            own |= p->parts.at[p->seats.at[s].partition].max_unavailable.kind != AMOUNT_NONE;
        assigned++;
        unavailable += !own && paced_unavailable(member->flags);
        bad += paced_bad(member->flags);
    }
    str whole = STR("all");
    return !differ(error, STR("members"), whole, p->assigned, assigned) &&
           !differ(error, STR("unavailable"), whole, p->unavailable, unavailable) &&
           !differ(error, STR("not ready"), whole, p->bad, bad) &&
           !differ(error, STR("failures"), whole, p->failures, failures) &&
           !differ(error, STR("cap"), whole, p->cap,
                   int_or_percent_limit(p->max_unavailable, assigned));
}

/* ---- the pass, straight from the page ---- */

typedef struct slow {
    const partitions *p;
    VEC(member_id) order;
    unsigned char *flags; /* of each member, as this pass changes them */
    partition_picks picks;
} slow;

static int slow_order(const void *a, const void *b, void *context)
{
    const partitions *p = context;
    return paced_order(&p->members.at[*(const member_id *)a],
                       &p->members.at[*(const member_id *)b]);
}

static bool member_in(const partitions *p, member_id m, uint32_t index)
{
    for (uint32_t s = p->members.at[m].seats; s; s = p->seats.at[s].next)
        if (p->seats.at[s].partition == index)
            return true;
    return false;
}

static int64_t slow_unavailable(const slow *w, uint32_t index)
{
    int64_t count = 0;
    for (size_t i = 0; i < w->order.len; i++)
        count +=
            member_in(w->p, w->order.at[i], index) && paced_unavailable(w->flags[w->order.at[i]]);
    return count;
}

static int64_t slow_whole_unavailable(const slow *w)
{
    int64_t count = 0;
    for (size_t i = 0; i < w->order.len; i++) {
        member_id m = w->order.at[i];
        const paced *member = &w->p->members.at[m];
        count += member->seats && !member->own && paced_unavailable(w->flags[m]);
    }
    return count;
}

static bool slow_room(const slow *w, member_id m, uint32_t index)
{
    const partitions *p = w->p;
    for (uint32_t i = 0; i < p->parts.len; i++)
        if (member_in(p, m, i) && slow_unavailable(w, i) >= at_least_one(p->parts.at[i].cap))
            return false;
    return p->parts.at[index].max_unavailable.kind != AMOUNT_NONE ||
           slow_whole_unavailable(w) < at_least_one(p->cap);
}

static bool slow_visit(slow *w, uint32_t index)
{
    const partitions *p = w->p;
    bool may_create = slow_unavailable(w, index) < at_least_one(p->parts.at[index].cap);
    for (size_t i = 0; i < w->order.len && (int64_t)w->picks.len < p->max_new; i++) {
        member_id m = w->order.at[i];
        candidate_kind kind = paced_candidate(w->flags[m]);
        if (!member_in(p, m, index) || kind == CANDIDATE_NONE)
            continue;
        if (kind == CANDIDATE_NEW && !may_create)
            continue;
        if (kind == CANDIDATE_HEALTHY && !slow_room(w, m, index))
            continue;
        w->flags[m] = PACED_HAS | PACED_CURRENT;
        if (!vec_push(&w->picks,
                      (partition_pick){m, index, kind == CANDIDATE_NEW, kind == CANDIDATE_BROKEN}))
            return false;
    }
    return true;
}

static bool slow_pass(slow *w, int64_t now_ms)
{
    const partitions *p = w->p;
    int64_t not_ready = 0;
    for (uint32_t i = 0; i < p->parts.len; i++) {
        const part *at = &p->parts.at[i];
        int64_t bad = 0, candidates = 0;
        for (size_t k = 0; k < w->order.len; k++) {
            unsigned flags = w->flags[w->order.at[k]];
            bool in = member_in(p, w->order.at[k], i);
            bad += in && paced_bad(flags);
            candidates += in && paced_candidate(flags) != CANDIDATE_NONE;
        }
        if (at->approval && !at->approved && candidates > 0)
            return true;
        if (!slow_visit(w, i))
            return false;
        tally t = {.bad = bad};
        not_ready += bad > at->cap || part_soaks(p, at, &t, now_ms);
        if (not_ready > p->budget)
            return true;
    }
    return true;
}

static bool same_picks(const partitions *p, const partition_picks *slowly, int64_t now_ms,
                       err *error)
{
    partition_picks quickly = {0};
    tally *at = mem_alloc((p->parts.len + 1) * sizeof *at);
    for (size_t i = 0; at && i < p->parts.len; i++)
        at[i] = p->parts.at[i].now;
    walk w = {.p = p,
              .now_ms = now_ms,
              .mark = walk_mark(p),
              .at = at,
              .unavailable = p->unavailable,
              .picks = &quickly};
    if (at)
        walk_partitions(&w);
    bool same = at && !w.no_memory && quickly.len == slowly->len;
    for (size_t i = 0; same && i < quickly.len; i++)
        same = quickly.at[i].member == slowly->at[i].member &&
               quickly.at[i].first == slowly->at[i].first && quickly.at[i].fix == slowly->at[i].fix;
    if (!same)
        err_set(error, "the quick pass releases %zu members, the slow one %zu", quickly.len,
                slowly->len);
    vec_done(&quickly);
    mem_free(at);
    return same;
}

static bool check_pass(const partitions *p, int64_t now_ms, bool settled, err *error)
{
    slow w = {.p = p, .flags = mem_zalloc(p->members.len + 1)};
    bool good = w.flags != NULL;
    for (size_t m = 0; good && m < p->members.len; m++) {
        w.flags[m] = p->members.at[m].flags;
        if (p->members.at[m].present)
            good = vec_push(&w.order, (member_id)m);
    }
    if (good && w.order.len > 1)
        qsort_r(w.order.at, w.order.len, sizeof *w.order.at, slow_order, (void *)(uintptr_t)p);
    if (!good || !slow_pass(&w, now_ms))
        good = err_memory(error);
    else if (!same_picks(p, &w.picks, now_ms, error))
        good = false;
    else if (settled && w.picks.len > 0)
        good = err_set(error, "%zu members could be released and were not", w.picks.len);
    vec_done(&w.picks);
    vec_done(&w.order);
    mem_free(w.flags);
    return good;
}

bool partitions_check(const partitions *p, int64_t now_ms, bool settled, err *error)
{
    for (uint32_t i = 0; i < p->parts.len; i++)
        if (!recount_part(p, i, error))
            return false;
    if (!recount_whole(p, error))
        return false;
    return !p->cut || check_pass(p, now_ms, settled, error);
}
