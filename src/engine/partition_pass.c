/* SPDX-License-Identifier: Apache-2.0 */
/* The pass over the partitions, as partition.h describes it. It is walked on a copy of the counts,
 * so that the same code decides and answers "what if" for reasons; partitions_pass then makes it
 * so. */
#include "engine/partition_internal.h"

#include <assert.h>

uint32_t walk_mark(const partitions *p)
{
    partitions *scratch = (partitions *)(uintptr_t)p; /* marks are scratch, not state */
    scratch->walks++;
    if (scratch->walks == 0) { /* after 2^32 walks old marks would look new */
        for (size_t m = 0; m < p->members.len; m++)
            p->members.at[m].mark = p->members.at[m].supposed = 0;
        scratch->walks = 1;
    }
    return scratch->walks;
}

/* Where a partition's candidates are looked at next, kind by kind. */
typedef struct cursor {
    uint32_t seat[CANDIDATE_KINDS];
    bool closed[CANDIDATE_KINDS];
} cursor;

/* The first seat from there on whose member is neither picked nor supposed complete. */
static uint32_t cursor_from(const walk *w, uint32_t number)
{
    const partitions *p = w->p;
    while (number) {
        const paced *member = &p->members.at[p->seats.at[number].member];
        bool complete = w->supposed && member->supposed == w->supposed;
        if (member->mark != w->mark && !complete)
            break;
        number = p->seats.at[number].after;
    }
    return number;
}

/* The kind whose candidate comes next; CANDIDATE_NONE when none is left. */
static candidate_kind cursor_next(const walk *w, const cursor *c)
{
    const partitions *p = w->p;
    candidate_kind best = CANDIDATE_NONE;
    const paced *first = NULL;
    for (unsigned kind = 0; kind < CANDIDATE_KINDS; kind++) {
        if (!c->seat[kind] || c->closed[kind])
            continue;
        const paced *member = &p->members.at[p->seats.at[c->seat[kind]].member];
        if (!first || paced_order(member, first) < 0) {
            first = member;
            best = (candidate_kind)kind;
        }
    }
    return best;
}

/* Whether a healthy member may become unavailable now: no limit of any of its partitions is
 * exceeded. */
static walk_end update_verdict(const walk *w, uint32_t index, const paced *member)
{
    const partitions *p = w->p;
    for (uint32_t s = member->seats; s; s = p->seats.at[s].next) {
        uint32_t other = p->seats.at[s].partition;
        if (w->at[other].unavailable >= at_least_one(p->parts.at[other].cap))
            return WALK_PARTITION_FULL;
    }
    bool own = p->parts.at[index].max_unavailable.kind != AMOUNT_NONE;
    return own || w->unavailable < at_least_one(p->cap) ? WALK_RELEASED : WALK_WHOLE_FULL;
}

static int64_t released(const walk *w)
{
    return w->figures.created + w->figures.updated + w->figures.fixed;
}

static walk_end verdict(const walk *w, uint32_t index, const paced *member, candidate_kind kind,
                        bool may_create)
{
    if (released(w) >= w->p->max_new)
        return WALK_MAX_NEW;
    switch (kind) {
    case CANDIDATE_NEW: return may_create ? WALK_RELEASED : WALK_NO_CREATE;
    case CANDIDATE_HEALTHY: return update_verdict(w, index, member);
    case CANDIDATE_BROKEN:
    case CANDIDATE_NONE: return WALK_RELEASED;
    }
    return WALK_RELEASED;
}

static void release(walk *w, uint32_t index, candidate_kind kind, paced *member)
{
    const partitions *p = w->p;
    member->mark = w->mark;
    bool adds = kind != CANDIDATE_BROKEN;
    w->figures.created += kind == CANDIDATE_NEW;
    w->figures.updated += kind == CANDIDATE_HEALTHY;
    w->figures.fixed += kind == CANDIDATE_BROKEN;
    w->unavailable += adds && !member->own;
    for (uint32_t s = member->seats; s; s = p->seats.at[s].next) {
        tally *t = &w->at[p->seats.at[s].partition];
        t->unavailable += adds;
        t->candidates--;
    }
    partition_pick pick = {.member = (member_id)(member - p->members.at),
                           .partition = index,
                           .first = kind == CANDIDATE_NEW,
                           .fix = kind == CANDIDATE_BROKEN};
    if (w->picks && !vec_push(w->picks, pick))
        w->no_memory = true;
}

static bool sits_in(const partitions *p, const paced *member, uint32_t index)
{
    for (uint32_t s = member->seats; s; s = p->seats.at[s].next)
        if (p->seats.at[s].partition == index)
            return true;
    return false;
}

static bool has_later_seat(const partitions *p, const paced *member, uint32_t index)
{
    bool later = false;
    for (uint32_t s = member->seats; s; s = p->seats.at[s].next)
        later |= p->seats.at[s].partition > index;
    return later;
}

/* Releases what the partition may release. True when the watched member was decided. */
static bool visit(walk *w, uint32_t index)
{
    const partitions *p = w->p;
    const part *at = &p->parts.at[index];
    const paced *watched = w->watched && sits_in(p, w->watched, index) ? w->watched : NULL;
    bool may_create = w->at[index].unavailable < at_least_one(at->cap);
    cursor c = {.closed = {[CANDIDATE_NEW] = !may_create}};
    for (unsigned kind = 0; kind < CANDIDATE_KINDS; kind++)
        c.seat[kind] = cursor_from(w, at->first[kind]);
    while (true) {
        candidate_kind kind = cursor_next(w, &c);
        paced *member =
            kind == CANDIDATE_NONE ? NULL : &p->members.at[p->seats.at[c.seat[kind]].member];
        if (watched && (!member || paced_order(member, watched) >= 0)) {
            walk_end end = verdict(w, index, watched, w->watched_as, may_create);
            if (w->end == WALK_UNREACHED || end == WALK_RELEASED)
                w->end = end;
            if (end == WALK_RELEASED || !has_later_seat(p, watched, index))
                return true;
            watched = NULL;
        }
        if (!member)
            return false;
        w->figures.looked_at++;
        walk_end end = verdict(w, index, member, kind, may_create);
        if (end == WALK_RELEASED)
            release(w, index, kind, member);
        if (end == WALK_MAX_NEW && !watched)
            return false;
        if (end != WALK_RELEASED && kind == CANDIDATE_HEALTHY)
            /* A limit that is full stays so; only a member that sits in several partitions may
             * be held by one that the next member has nothing to do with. */
            c.closed[kind] = !p->seats.at[member->seats].next;
        if (end == WALK_MAX_NEW)
            c = (cursor){0};
        else
            c.seat[kind] = cursor_from(w, p->seats.at[c.seat[kind]].after);
    }
}

void walk_partitions(walk *w)
{
    const partitions *p = w->p;
    w->end = WALK_UNREACHED;
    w->figures.partitions = (int64_t)p->parts.len;
    int64_t holding = 0; /* partitions that later ones wait for */
    for (uint32_t i = 0; i < p->parts.len; i++) {
        const part *at = &p->parts.at[i];
        bool open = !at->approval || (w->open ? w->open[i] : at->approved);
        if (!open && w->at[i].candidates > 0)
            return;
        w->figures.visited++;
        if (visit(w, i))
            return;
        bool ready = part_is_ready(at, &w->at[i]);
        bool soaks = w->open ? w->soaks[i] : part_soaks(p, at, &w->at[i], w->now_ms);
        w->figures.not_ready += !ready;
        holding += !ready || soaks;
        if (holding > p->budget)
            return;
    }
}

/* Remembers which partitions were reached and since when they are ready. */
static void settle(partitions *p, int64_t now_ms, int64_t visited)
{
    p->next_ms = REASON_NEVER;
    bool stopped = visited < (int64_t)p->parts.len;
    for (size_t i = 0; i < p->parts.len; i++) {
        part *at = &p->parts.at[i];
        at->visited = (int64_t)i < visited;
        if (!part_is_ready(at, &at->now))
            at->ready_since_ms = REASON_NEVER;
        if (!at->visited || !part_is_ready(at, &at->now))
            continue;
        if (at->ready_since_ms == REASON_NEVER)
            at->ready_since_ms = now_ms;
        int64_t due = at->ready_since_ms + p->soak_ms;
        if (stopped && part_soaks(p, at, &at->now, now_ms) &&
            (p->next_ms == REASON_NEVER || due < p->next_ms))
            p->next_ms = due;
    }
}

/* I1: an update never makes more unavailable than any of its limits allows. */
static void assert_limits(const partitions *p, const partition_pick *pick)
{
    if (pick->first || pick->fix)
        return;
    const paced *member = &p->members.at[pick->member];
    for (uint32_t s = member->seats; s; s = p->seats.at[s].next) {
        const part *at = &p->parts.at[p->seats.at[s].partition];
        assert(at->now.unavailable <= at_least_one(at->cap));
    }
    bool own = p->parts.at[pick->partition].max_unavailable.kind != AMOUNT_NONE;
    assert(own || p->unavailable <= at_least_one(p->cap));
}

bool partitions_pass(partitions *p, int64_t now_ms, partition_picks *out, pass_figures *ret)
{
    assert(p->cut && !p->halted);
    size_t before = out->len;
    if (!vec_reserve(&p->scratch, p->parts.len))
        return false;
    for (size_t i = 0; i < p->parts.len; i++)
        p->scratch.at[i] = p->parts.at[i].now;
    walk w = {.p = p,
              .now_ms = now_ms,
              .mark = walk_mark(p),
              .at = p->scratch.at,
              .unavailable = p->unavailable,
              .picks = out};
    walk_partitions(&w);
    if (w.no_memory)
        return false;
    assert((int64_t)(out->len - before) <= (p->max_new > 0 ? p->max_new : 0));
    for (size_t i = before; i < out->len; i++) {
        partitions_set(p, out->at[i].member, PACED_HAS | PACED_CURRENT);
        assert_limits(p, &out->at[i]);
    }
    settle(p, now_ms, w.figures.visited);
    *ret = w.figures;
    return true;
}
