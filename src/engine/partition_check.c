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

static size_t tree_size(const partitions *p, const part *at, candidate_kind kind, bool *sound)
{
    size_t size = 0;
    uint32_t root = at->root[kind], listed = at->first[kind], before = 0;
    const paced *last = NULL;
    for (uint32_t s = tree_after(p, root, NULL); s; s = tree_after(p, root, last)) {
        const paced *member = &p->members.at[p->seats.at[s].member];
        *sound &= paced_candidate(member->flags) == kind && p->seats.at[s].tree == kind;
        *sound &= listed == s && p->seats.at[s].before == before;
        before = s;
        listed = p->seats.at[s].after;
        last = member;
        size++;
    }
    *sound &= listed == 0 && at->last[kind] == before;
    return size;
}

typedef struct counted_part {
    part sum;
    int64_t kinds[CANDIDATE_KINDS];
} counted_part;

static void count_member(const partitions *p, const paced *member, counted_part *parts)
{
    candidate_kind kind = paced_candidate(member->flags);
    for (uint32_t s = member->seats; s; s = p->seats.at[s].next) {
        counted_part *at = &parts[p->seats.at[s].partition];
        at->sum.count++;
        at->sum.counted += !(member->flags & PACED_OUT);
        at->sum.now.unavailable += paced_unavailable(member->flags);
        at->sum.now.bad += paced_bad(member->flags);
        if (kind != CANDIDATE_NONE)
            at->kinds[kind]++;
    }
}

static bool compare_part(const partitions *p, const part *at, const counted_part *with, err *error)
{
    const part *sum = &with->sum;
    if (differ(error, STR("members"), at->name, at->count, sum->count) ||
        differ(error, STR("paced members"), at->name, at->counted, sum->counted) ||
        differ(error, STR("unavailable"), at->name, at->now.unavailable, sum->now.unavailable) ||
        differ(error, STR("not ready"), at->name, at->now.bad, sum->now.bad))
        return false;
    bool sound = true;
    for (unsigned kind = 0; kind < CANDIDATE_KINDS; kind++)
        if (differ(error, STR("candidates"), at->name,
                   (int64_t)tree_size(p, at, (candidate_kind)kind, &sound), with->kinds[kind]))
            return false;
    int_or_percent limit =
        at->max_unavailable.kind == AMOUNT_NONE ? p->max_unavailable : at->max_unavailable;
    if (differ(error, STR("cap"), at->name, at->cap, int_or_percent_limit(limit, sum->count)))
        return false;
    return sound || err_set(error, "a tree of \"%.*s\" holds a stranger", STR_ARG(at->name));
}

static bool recount_parts(const partitions *p, err *error)
{
    counted_part *parts = mem_zalloc((p->parts.len + 1) * sizeof *parts);
    if (!parts)
        return err_memory(error);
    for (size_t m = 0; m < p->members.len; m++)
        count_member(p, &p->members.at[m], parts);
    bool good = true;
    for (size_t i = 0; good && i < p->parts.len; i++)
        good = compare_part(p, &p->parts.at[i], &parts[i], error);
    mem_free(parts);
    return good;
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

typedef VEC(member_id) member_list;

typedef struct slow {
    const partitions *p;
    VEC(member_id) order;
    member_list *lists;   /* of each partition, in order */
    int64_t *unavailable; /* of each partition, counted from the members and with this pass */
    int64_t whole;
    unsigned char *flags; /* of each member, as this pass changes them */
    partition_picks picks;
} slow;

static int slow_order(const void *a, const void *b, void *context)
{
    const partitions *p = context;
    return paced_order(&p->members.at[*(const member_id *)a],
                       &p->members.at[*(const member_id *)b]);
}

/* Counts a member that is unavailable where it counts. */
static void slow_count(slow *w, member_id m)
{
    const paced *member = &w->p->members.at[m];
    w->whole += member->seats && !member->own;
    for (uint32_t s = member->seats; s; s = w->p->seats.at[s].next)
        w->unavailable[w->p->seats.at[s].partition]++;
}

static bool slow_room(const slow *w, member_id m, uint32_t index)
{
    const partitions *p = w->p;
    for (uint32_t s = p->members.at[m].seats; s; s = p->seats.at[s].next) {
        uint32_t other = p->seats.at[s].partition;
        if (w->unavailable[other] >= at_least_one(p->parts.at[other].cap))
            return false;
    }
    return p->parts.at[index].max_unavailable.kind != AMOUNT_NONE ||
           w->whole < at_least_one(p->cap);
}

static bool slow_visit(slow *w, uint32_t index)
{
    const partitions *p = w->p;
    bool may_create = w->unavailable[index] < at_least_one(p->parts.at[index].cap);
    for (size_t i = 0; i < w->lists[index].len && (int64_t)w->picks.len < p->max_new; i++) {
        member_id m = w->lists[index].at[i];
        candidate_kind kind = paced_candidate(w->flags[m]);
        if (kind == CANDIDATE_NONE || (kind == CANDIDATE_NEW && !may_create) ||
            (kind == CANDIDATE_HEALTHY && !slow_room(w, m, index)))
            continue;
        if (kind != CANDIDATE_BROKEN)
            slow_count(w, m);
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
        for (size_t k = 0; k < w->lists[i].len; k++) {
            unsigned flags = w->flags[w->lists[i].at[k]];
            bad += paced_bad(flags);
            candidates += paced_pending(flags);
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

/* Takes the members as they are, in order. */
static bool slow_begin(slow *w)
{
    const partitions *p = w->p;
    w->flags = mem_zalloc(p->members.len + 1);
    w->unavailable = mem_zalloc((p->parts.len + 1) * sizeof *w->unavailable);
    w->lists = mem_zalloc((p->parts.len + 1) * sizeof *w->lists);
    bool good = w->flags && w->unavailable && w->lists;
    for (size_t m = 0; good && m < p->members.len; m++) {
        w->flags[m] = p->members.at[m].flags;
        if (paced_unavailable(w->flags[m]))
            slow_count(w, (member_id)m);
        if (p->members.at[m].present)
            good = vec_push(&w->order, (member_id)m);
    }
    if (good && w->order.len > 1)
        qsort_r(w->order.at, w->order.len, sizeof *w->order.at, slow_order, (void *)(uintptr_t)p);
    for (size_t i = 0; good && i < w->order.len; i++)
        for (uint32_t s = p->members.at[w->order.at[i]].seats; good && s; s = p->seats.at[s].next)
            good = vec_push(&w->lists[p->seats.at[s].partition], w->order.at[i]);
    return good;
}

static void slow_end(slow *w)
{
    for (size_t i = 0; w->lists && i < w->p->parts.len; i++)
        vec_done(&w->lists[i]);
    mem_free(w->lists);
    mem_free(w->unavailable);
    mem_free(w->flags);
    vec_done(&w->picks);
    vec_done(&w->order);
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
    slow w = {.p = p};
    bool good = true;
    if (!slow_begin(&w) || !slow_pass(&w, now_ms))
        good = err_memory(error);
    else if (!same_picks(p, &w.picks, now_ms, error))
        good = false;
    else if (settled && w.picks.len > 0)
        good = err_set(error, "%zu members could be released and were not", w.picks.len);
    slow_end(&w);
    return good;
}

bool partitions_check(const partitions *p, int64_t now_ms, bool settled, err *error)
{
    if (!recount_parts(p, error) || !recount_whole(p, error))
        return false;
    return !p->cut || check_pass(p, now_ms, settled, error);
}
