/* SPDX-License-Identifier: Apache-2.0 */
/* Why a member is held, found by asking the pass itself "what if these were complete?".
 *
 * First what keeps the walk from reaching the member's partition: from each partition that must
 * become ready as many members as it has too many that are not. Then the limits, each counted with
 * those ahead in the queue. Each of these is a demand: any so many of some members must be
 * complete. Where meeting all demands is not enough (members that sit in several partitions), those
 * who must be are found by leaving out, one after the other, everybody who need not be. */
#include "engine/partition_internal.h"

#include <assert.h>

typedef struct inquiry inquiry;
typedef bool (*member_test)(const inquiry *in, const paced *member, uint32_t index);

#define DEMANDS_OF_LIMITS 4u /* one of each kind */
/* Any so many of the members that the test lets through must be complete. */
typedef struct demand {
    walk_end end; /* what a walk came to without it; UNREACHED: a partition must become ready */
    member_test test;
    uint32_t index; /* of the partition; PARTITION_NONE: of the whole */
    int64_t need, size;
    bool implied; /* by others */
} demand;

struct inquiry {
    const partitions *p;
    const partition_question *q;
    arena *arena;
    reasons *out;
    paced *me;
    uint32_t home; /* the first partition I sit in */
    candidate_kind kind;
    uint32_t supposed;
    int64_t supposed_count;
    tally *base; /* counts with what is supposed */
    tally *work;
    bool *open;      /* partitions that are approved, or supposed to be */
    bool overlap;    /* somebody sits in several partitions: there are several ways to start */
    bool *required;  /* partitions that must become ready, or ready for long enough */
    int64_t *soaked; /* and when they have been for long enough */
    bool *soaks;     /* others that would have to, if they became ready */
    int64_t unavailable;
    demand *demands; /* one for each partition and each kind of limit at most */
    size_t demand_count;
    bool met;     /* meeting them is enough */
    bool stirred; /* more is supposed by now than takes the walk to my partition */
    bool no_memory;
};

static bool is_supposed(const inquiry *in, const paced *member)
{
    return member->supposed == in->supposed;
}

/* Supposes a member complete (sign 1), or no longer (-1). */
static void suppose(inquiry *in, paced *member, int64_t sign)
{
    const partitions *p = in->p;
    assert(is_supposed(in, member) == (sign < 0));
    member->supposed = sign > 0 ? in->supposed : 0;
    in->supposed_count += sign;
    bool unavailable = paced_unavailable(member->flags);
    in->unavailable -= unavailable && !member->own ? sign : 0;
    for (uint32_t s = member->seats; s; s = p->seats.at[s].next) {
        tally *t = &in->base[p->seats.at[s].partition];
        t->unavailable -= unavailable ? sign : 0;
        t->bad -= paced_bad(member->flags) ? sign : 0;
        t->candidates -= paced_pending(member->flags) ? sign : 0;
    }
}

static walk_end ask(inquiry *in)
{
    memcpy(in->work, in->base, in->p->parts.len * sizeof *in->work);
    walk w = {.p = in->p,
              .now_ms = in->q->now_ms,
              .mark = walk_mark(in->p),
              .supposed = in->supposed,
              .at = in->work,
              .unavailable = in->unavailable,
              .open = in->open,
              .soaks = in->soaks,
              .watched = in->me,
              .watched_as = in->kind};
    do {
        w.figures = (pass_figures){0};
        walk_partitions(&w);
    } while (in->q->repeats && w.end != WALK_RELEASED &&
             w.figures.created + w.figures.updated + w.figures.fixed > 0);
    return w.end;
}

/* ---- who ---- */

static bool test_bad(const inquiry *in, const paced *member, uint32_t index)
{
    return member != in->me && paced_bad(member->flags) && sits(in->p, member, index);
}

static bool test_unavailable(const inquiry *in, const paced *member, uint32_t index)
{
    return member != in->me && paced_unavailable(member->flags) && sits(in->p, member, index);
}

/* Candidates of a partition that are released before me and become unavailable by it. */
static bool test_ahead(const inquiry *in, const paced *member, uint32_t index)
{
    candidate_kind kind = paced_candidate(member->flags);
    return (kind == CANDIDATE_NEW || kind == CANDIDATE_HEALTHY) &&
           paced_order(member, in->me) < 0 && member != in->me && sits(in->p, member, index);
}

/* Who takes a place of my partition, or will before me. */
static bool test_place(const inquiry *in, const paced *member, uint32_t index)
{
    return test_unavailable(in, member, index) || test_ahead(in, member, index);
}

/* Whom a pass that gets to me comes to before. */
static bool comes_before(const inquiry *in, const paced *member)
{
    uint32_t its = member->seats ? in->p->seats.at[member->seats].partition : PARTITION_NONE;
    return member != in->me && paced_candidate(member->flags) != CANDIDATE_NONE &&
           (its < in->home || (its == in->home && paced_order(member, in->me) < 0));
}

static bool test_pass(const inquiry *in, const paced *member, uint32_t index)
{
    (void)index;
    return comes_before(in, member);
}

static bool test_whole(const inquiry *in, const paced *member, uint32_t index)
{
    (void)index;
    return member != in->me && member->seats && !member->own && paced_unavailable(member->flags);
}

/* Who takes a place of the whole, or will before me. */
static bool test_whole_place(const inquiry *in, const paced *member, uint32_t index)
{
    return test_whole(in, member, index) || (!member->own && comes_before(in, member));
}

static const str *names_where(inquiry *in, member_test test, uint32_t index, size_t *ret_count)
{
    roll members = roll_of(in->p, index);
    str *names = ARENA_ARRAY(in->arena, members.len + 1, str);
    *ret_count = 0;
    in->no_memory |= !names;
    for (size_t i = 0; names && i < members.len; i++) {
        const paced *member = &in->p->members.at[members.at[i]];
        if (test(in, member, index))
            names[(*ret_count)++] = member->label;
    }
    return names;
}

static const str *one_name(inquiry *in, str name)
{
    str *names = ARENA_ARRAY(in->arena, 1, str);
    in->no_memory |= !names;
    if (names)
        names[0] = name;
    return names;
}

static str partition_scope(inquiry *in, uint32_t index)
{
    str scope = arena_printf(in->arena, "partition %.*s", STR_ARG(in->p->parts.at[index].name));
    in->no_memory |= !scope.ptr;
    return scope;
}

static void add(inquiry *in, reason r)
{
    in->no_memory |= !reasons_add(in->out, in->arena, r);
}

/* ---- reaching the partition ---- */

static void add_soak(inquiry *in, uint32_t index)
{
    add(in, (reason){.rule = REASON_SOAK,
                     .scope = partition_scope(in, index),
                     .act = RELEASE_TIME,
                     .next_ms = in->soaked[index]});
}

static int64_t count_where(const inquiry *in, member_test test, uint32_t index)
{
    roll members = roll_of(in->p, index);
    int64_t count = 0;
    for (size_t i = 0; i < members.len; i++)
        count += test(in, &in->p->members.at[members.at[i]], index);
    return count;
}

/* Supposes the first "need" members that the test lets through; returns how many there were. */
static int64_t suppose_first(inquiry *in, member_test test, uint32_t index, int64_t need)
{
    roll members = roll_of(in->p, index);
    int64_t count = 0;
    for (size_t i = 0; count < need && i < members.len; i++) {
        paced *member = &in->p->members.at[members.at[i]];
        if (is_supposed(in, member) || !test(in, member, index))
            continue;
        suppose(in, member, 1);
        count++;
    }
    return count;
}

static bool holds_up(const inquiry *in, uint32_t index)
{
    const part *at = &in->p->parts.at[index];
    const tally *t = &in->base[index];
    return !part_is_ready(at, t) || part_soaks(in->p, at, t, in->q->now_ms);
}

/* Whether a partition must be ready for a while before the walk goes on behind it: an empty one
 * need not, but who asks is in it when it is let in. */
static bool soaks_then(const inquiry *in, uint32_t index)
{
    part at = in->p->parts.at[index];
    at.counted += (in->me->flags & PACED_OUT) && sits(in->p, in->me, index);
    return in->p->soak_ms > 0 && !in->required[index] && at.counted > 0 &&
           (!part_is_ready(&at, &in->base[index]) ||
            part_soaks(in->p, &at, &in->base[index], in->q->now_ms));
}

/* Chooses the partitions that must become ready, and whose members must be complete for that. A
 * partition's time begins when the walk first gets to it: one after the other, but for as many as
 * may be not ready at once. */
static void reach(inquiry *in)
{
    const partitions *p = in->p;
    int64_t holding = 0, rank = 0;
    uint32_t freed = 0; /* the last one that must be soaked for the present one to be visited */
    for (uint32_t i = 0; i < in->home; i++)
        holding += holds_up(in, i);
    for (uint32_t i = 0; i < in->home && holding > p->budget; i++) {
        const part *at = &p->parts.at[i];
        in->required[i] = holds_up(in, i);
        if (!in->required[i])
            continue;
        holding--;
        int64_t from_ms = in->q->now_ms;
        if (rank > p->budget) {
            while (!in->required[freed])
                freed++;
            from_ms = in->soaked[freed++];
        }
        if (at->ready_since_ms != REASON_NEVER) /* the walk has been there, and is no more */
            from_ms = at->ready_since_ms;
        in->soaked[i] = from_ms + p->soak_ms;
        rank++;
        int64_t need = in->base[i].bad - at->cap;
        if (need > 0)
            in->demands[in->demand_count++] = (demand){.end = WALK_UNREACHED,
                                                       .test = test_bad,
                                                       .index = i,
                                                       .need = need,
                                                       .size = in->base[i].bad};
        suppose_first(in, test_bad, i, need);
    }
    /* Also behind home: who sits in a later one, too, gets there no sooner. */
    for (uint32_t i = 0; i < p->parts.len; i++)
        in->soaks[i] = soaks_then(in, i);
}

/* ---- demands ---- */

static int64_t demand_limit(const inquiry *in, walk_end end)
{
    switch (end) {
    case WALK_WHOLE_FULL: return at_least_one(in->p->cap);
    case WALK_MAX_NEW: return in->p->max_new;
    case WALK_NO_CREATE:
    case WALK_PARTITION_FULL:
    case WALK_UNREACHED:
    case WALK_RELEASED: break;
    }
    return at_least_one(in->p->parts.at[in->home].cap);
}

/* So many must be complete that one place is left under the limit at which a walk ended. */
static demand demand_of(const inquiry *in, walk_end end)
{
    demand d = {.end = end, .test = test_place, .index = in->home};
    switch (end) {
    case WALK_NO_CREATE: d.test = test_unavailable; break;
    case WALK_PARTITION_FULL: break;
    case WALK_WHOLE_FULL:
        d.test = test_whole_place;
        d.index = PARTITION_NONE;
        break;
    case WALK_MAX_NEW:
        d.test = test_pass;
        d.index = PARTITION_NONE;
        break;
    case WALK_UNREACHED:
    case WALK_RELEASED: return d;
    }
    d.size = count_where(in, d.test, d.index);
    d.need = d.size + 1 - demand_limit(in, end);
    return d;
}

static const demand *demand_find(const inquiry *in, walk_end end, uint32_t index)
{
    for (size_t i = 0; in->met && i < in->demand_count; i++)
        if (in->demands[i].end == end && in->demands[i].index == index && !in->demands[i].implied)
            return &in->demands[i];
    return NULL;
}

/* How many of a demand's members are yet to be complete. */
static int64_t demand_lacks(const inquiry *in, const demand *d)
{
    roll members = roll_of(in->p, d->index);
    int64_t lacks = d->need;
    for (size_t i = 0; i < members.len && lacks > 0; i++) {
        const paced *member = &in->p->members.at[members.at[i]];
        lacks -= is_supposed(in, member) && d->test(in, member, d->index);
    }
    return lacks;
}

/* First releases go out maxNew at a time, and whoever went out counts when the next are asked for:
 * then those ahead take places, too, if not more than one of them goes out at once. */
static bool demand_widen(inquiry *in, walk_end end)
{
    demand *d = &in->demands[in->demand_count - 1];
    if (end != WALK_NO_CREATE || d->end != end || d->test == test_place || in->p->max_new != 1)
        return false;
    d->test = test_place;
    d->size = count_where(in, d->test, d->index);
    d->need = d->size + 1 - demand_limit(in, end);
    return true;
}

/* Finds one limit after the other that is to be met. False: that is not enough, or it matters who
 * is complete: whom a pass releases before me (maxNew), and who takes places of the whole in
 * partitions that may be not ready. */
static bool demands_find(inquiry *in)
{
    size_t before = in->demand_count;
    for (walk_end end = ask(in); end != WALK_RELEASED; end = ask(in)) {
        bool known = false;
        for (size_t i = before; i < in->demand_count; i++)
            known |= in->demands[i].end == end;
        bool differs = end == WALK_WHOLE_FULL && in->p->budget > 0 && in->home > 0;
        if (differs || end == WALK_MAX_NEW)
            return false;
        demand d = demand_of(in, end);
        if (d.need < 1 || (known && !demand_widen(in, end)))
            return false;
        if (!known)
            in->demands[in->demand_count++] = d;
        const demand *last = &in->demands[in->demand_count - 1];
        in->stirred = true;
        suppose_first(in, last->test, last->index, demand_lacks(in, last));
    }
    return true;
}

static void suppose_nobody(inquiry *in)
{
    for (size_t i = 0; i < in->p->order.len; i++) {
        paced *member = &in->p->members.at[in->p->order.at[i]];
        if (is_supposed(in, member))
            suppose(in, member, -1);
    }
}

/* Whether it is enough that the demands are met by those members who do it last, candidates before
 * others or after them. */
static bool demands_suffice(inquiry *in, bool candidates)
{
    in->stirred = true;
    suppose_nobody(in);
    for (size_t k = 0; k < in->demand_count; k++) {
        const demand *d = &in->demands[k];
        roll members = roll_of(in->p, d->index);
        int64_t lacks = demand_lacks(in, d);
        for (size_t n = 2 * members.len; n > 0 && lacks > 0; n--) {
            paced *member = &in->p->members.at[members.at[(n - 1) % members.len]];
            bool candidate = paced_candidate(member->flags) != CANDIDATE_NONE;
            if ((candidate == candidates) != (n > members.len) || is_supposed(in, member) ||
                !d->test(in, member, d->index))
                continue;
            suppose(in, member, 1);
            lacks--;
        }
    }
    return ask(in) == WALK_RELEASED;
}

/* How many of those of one demand are complete when the other is met, whoever meets it. */
static int64_t demand_gives(const inquiry *in, const demand *by, const demand *d)
{
    uint32_t index = by->index != PARTITION_NONE ? by->index : d->index;
    roll members = roll_of(in->p, index);
    int64_t both = 0;
    if (by->index != d->index && by->index != PARTITION_NONE && d->index != PARTITION_NONE)
        return 0; /* of different partitions */
    for (size_t i = 0; i < members.len; i++) {
        const paced *member = &in->p->members.at[members.at[i]];
        both += by->test(in, member, by->index) && d->test(in, member, d->index);
    }
    int64_t given = by->need - (by->size - both);
    return given > 0 ? given : 0;
}

/* Finds demands that the others imply. Those of partitions are about different members each, and
 * add up. */
static void demands_reduce(inquiry *in)
{
    for (size_t n = in->demand_count; n > 0; n--) {
        demand *d = &in->demands[n - 1];
        int64_t given = 0, most = 0;
        for (size_t i = 0; i < in->demand_count; i++) {
            const demand *by = &in->demands[i];
            if (by == d || by->implied || (by->end == WALK_UNREACHED && d->end == WALK_UNREACHED))
                continue;
            int64_t gives = demand_gives(in, by, d);
            given += by->index != PARTITION_NONE ? gives : 0;
            most = gives > most ? gives : most;
        }
        d->implied = given >= d->need || most >= d->need;
    }
}

static void name_demand(inquiry *in, const demand *d, reason *r)
{
    r->of = names_where(in, d->test, d->index, &r->of_count);
    r->any = d->need < d->size ? (size_t)d->need : 0;
}

/* ---- what is said of it ---- */

/* Whether a member that is supposed complete is named by that partition's reason: by the first
 * one's that is not ready. One that only soaks names nobody. */
static bool test_named(const inquiry *in, const paced *member, uint32_t index)
{
    if (!is_supposed(in, member))
        return false;
    for (uint32_t s = member->seats; s; s = in->p->seats.at[s].next) {
        uint32_t its = in->p->seats.at[s].partition;
        if (in->required[its] && !part_is_ready(&in->p->parts.at[its], &in->p->parts.at[its].now))
            return its == index;
    }
    return index == PARTITION_NONE;
}

static void add_required(inquiry *in, uint32_t index)
{
    const part *at = &in->p->parts.at[index];
    if (part_is_ready(at, &at->now)) {
        add_soak(in, index);
        return;
    }
    reason r = {.rule = REASON_PARTITION,
                .scope = partition_scope(in, index),
                .act = RELEASE_COMPLETE,
                .next_ms = REASON_NEVER,
                .have = at->now.bad,
                .limit = at->cap,
                .detail = at->name};
    r.holders = names_where(in, test_bad, index, &r.holder_count);
    const demand *d = demand_find(in, WALK_UNREACHED, index);
    if (d)
        name_demand(in, d, &r);
    else if (!in->met)
        r.of = names_where(in, test_named, index, &r.of_count);
    if (r.of_count > 0) /* else another reason implies it, but for its soak */
        add(in, r);
    if (in->p->soak_ms > 0 && at->counted > 0)
        add_soak(in, index);
}

static void open_partitions(inquiry *in)
{
    for (uint32_t i = 0; i < in->p->parts.len; i++) {
        const part *at = &in->p->parts.at[i];
        bool needed = in->overlap ? in->open[i]
                                  : i == in->home || (i < in->home && in->base[i].candidates > 0);
        if (!at->approval || at->approved || !needed)
            continue;
        add(in, (reason){.rule = REASON_APPROVAL,
                         .scope = partition_scope(in, i),
                         .act = RELEASE_APPROVE,
                         .of = one_name(in, at->name),
                         .of_count = 1,
                         .next_ms = REASON_NEVER,
                         .limit = 1,
                         .detail = at->name});
    }
}

/* ---- the limits ---- */

/* The partition's own limit: holders first, then those ahead. */
static void partition_limit(inquiry *in, walk_end end)
{
    demand d = demand_of(in, end);
    int64_t lacks = demand_lacks(in, &d);
    lacks -= suppose_first(in, test_unavailable, in->home, lacks);
    suppose_first(in, d.test, in->home, lacks);
}

typedef VEC(member_id) blamed;

/* Leaves out everybody who need not be complete, those first who are least to blame, until
 * everybody who stays is needed: a holder who stays may free a place for another one who then
 * must be complete too. */
static void leave_out(inquiry *in, const blamed *list)
{
    bool changed = true;
    while (changed) {
        changed = false;
        for (size_t n = 2 * list->len; n > 0; n--) { /* first the candidates, then the holders */
            paced *member = &in->p->members.at[list->at[(n - 1) % list->len]];
            if (!is_supposed(in, member) || paced_unavailable(member->flags) != (n <= list->len))
                continue;
            suppose(in, member, -1);
            if (ask(in) == WALK_RELEASED)
                changed = true;
            else
                suppose(in, member, 1);
        }
        for (uint32_t i = 0; in->overlap && i < in->p->parts.len; i++) {
            if (!in->open[i] || !in->p->parts.at[i].approval || in->p->parts.at[i].approved)
                continue;
            in->open[i] = false;
            in->open[i] = ask(in) != WALK_RELEASED;
            changed |= !in->open[i];
        }
    }
}

/* Supposes all complete who could matter; false if even that does not help. */
static bool suppose_all(inquiry *in, blamed *list)
{
    const partitions *p = in->p;
    for (size_t i = 0; i < p->order.len; i++) {
        paced *member = &p->members.at[p->order.at[i]];
        if (member == in->me || !member->seats || is_supposed(in, member) ||
            !paced_bad(member->flags))
            continue;
        if (p->seats.at[member->seats].partition > in->home && !paced_unavailable(member->flags))
            continue;
        suppose(in, member, 1);
        if (!vec_push(list, p->order.at[i]))
            in->no_memory = true;
    }
    return ask(in) == WALK_RELEASED;
}

/* The limit that stood in the way once the partition was reached. */
static reason limit_reason(inquiry *in, walk_end end)
{
    reason r = {.rule = REASON_UNAVAILABLE,
                .act = RELEASE_COMPLETE,
                .next_ms = REASON_NEVER,
                .limit = demand_limit(in, end)};
    switch (end) {
    case WALK_MAX_NEW:
        r.rule = REASON_MAX_NEW;
        r.scope = in->q->scope;
        break;
    case WALK_WHOLE_FULL:
        r.scope = in->q->scope;
        r.holders = names_where(in, test_whole, PARTITION_NONE, &r.holder_count);
        break;
    case WALK_NO_CREATE:
    case WALK_PARTITION_FULL:
    case WALK_UNREACHED:
    case WALK_RELEASED:
        r.scope = partition_scope(in, in->home);
        r.holders = names_where(in, test_unavailable, in->home, &r.holder_count);
        break;
    }
    r.have = (int64_t)r.holder_count;
    return r;
}

static void add_limits(inquiry *in)
{
    for (size_t i = 0; i < in->demand_count; i++) {
        const demand *d = &in->demands[i];
        if (d->implied || d->end == WALK_UNREACHED)
            continue;
        reason r = limit_reason(in, d->end);
        name_demand(in, d, &r);
        add(in, r);
    }
}

/* One reason for all that was found by leaving out. */
static void add_limit(inquiry *in, walk_end end, bool helps)
{
    reason r = limit_reason(in, end);
    r.of = names_where(in, test_named, PARTITION_NONE, &r.of_count);
    if (!helps) { /* nobody's becoming complete would */
        r.act = RELEASE_EDIT;
        r.of = one_name(in, in->q->editable);
        r.of_count = 1;
    }
    if (r.of_count > 0)
        add(in, r);
}

static void collect_supposed(inquiry *in, blamed *list)
{
    const partitions *p = in->p;
    list->len = 0;
    for (size_t i = 0; i < p->order.len; i++)
        if (is_supposed(in, &p->members.at[p->order.at[i]]))
            in->no_memory |= !vec_push(list, p->order.at[i]);
}

/* What was found piece by piece is looked at as a whole where the pieces may overlap. */
static bool may_overlap(const partitions *p)
{
    size_t seats = p->seats.len - 1;
    for (uint32_t s = p->free_seat; s; s = p->seats.at[s].next)
        seats--;
    return (int64_t)seats > p->assigned;
}

/* Supposes as few members complete as must be for the limits to let me through; says which limit
 * it was and whether that helps. */
static walk_end limits(inquiry *in, bool *ret_helps)
{
    walk_end first = ask(in);
    bool whole = in->overlap;
    blamed list = {0};
    *ret_helps = true;
    if (first == WALK_NO_CREATE || first == WALK_PARTITION_FULL)
        partition_limit(in, first);
    if (first != WALK_RELEASED && ask(in) != WALK_RELEASED) {
        *ret_helps = suppose_all(in, &list);
        while (!*ret_helps && list.len > 0)
            suppose(in, &in->p->members.at[list.at[--list.len]], -1);
        whole = true;
    }
    if (whole && *ret_helps && in->supposed_count <= PARTITION_BLAMED_MAX) {
        collect_supposed(in, &list);
        leave_out(in, &list);
    }
    vec_done(&list);
    return first;
}

/* Whether meeting the demands is enough, whoever meets them. Whether an earlier partition is to be
 * approved depends on who of it still waits then: there it is said who is to meet them. */
static bool demands_hold(inquiry *in)
{
    bool choice = false, approval = false;
    if (in->overlap || !demands_find(in))
        return false;
    for (size_t i = 0; i < in->demand_count; i++)
        choice |= in->demands[i].need < in->demands[i].size;
    for (uint32_t i = 0; i < in->home; i++) {
        const part *at = &in->p->parts.at[i];
        approval |= at->approval && !at->approved && at->now.candidates > 0;
    }
    if (choice && approval)
        return false;
    return !choice || (demands_suffice(in, true) && demands_suffice(in, false));
}

/* Finds whom it takes, and says so. */
static void inquire(inquiry *in)
{
    walk_end end = WALK_RELEASED;
    bool helps = true;
    reach(in);
    in->met = demands_hold(in);
    if (in->met) {
        demands_reduce(in);
    } else {
        if (in->stirred) {
            suppose_nobody(in);
            in->demand_count = 0;
            reach(in);
        }
        end = limits(in, &helps);
    }
    for (uint32_t i = 0; i < in->home; i++)
        if (in->required[i])
            add_required(in, i);
    open_partitions(in);
    if (in->met)
        add_limits(in);
    else if (end != WALK_RELEASED)
        add_limit(in, end, helps);
}

bool partitions_reasons(const partitions *p, const partition_question *q, arena *a, reasons *out)
{
    paced *me = &p->members.at[q->member];
    unsigned flags = me->flags & ~(unsigned)(PACED_OUT | PACED_HELD);
    flags |= q->again ? PACED_AGAIN : 0;
    inquiry in = {.p = p, .q = q, .arena = a, .out = out, .me = me, .kind = paced_candidate(flags)};
    if (!p->cut || !me->seats || in.kind == CANDIDATE_NONE)
        return true;
    in.home = p->seats.at[me->seats].partition;
    in.supposed = walk_mark(p);
    in.unavailable = p->unavailable;
    in.base = ARENA_ARRAY(a, p->parts.len, tally);
    in.work = ARENA_ARRAY(a, p->parts.len, tally);
    in.required = ARENA_ARRAY(a, p->parts.len, bool);
    in.open = ARENA_ARRAY(a, p->parts.len, bool);
    in.soaked = ARENA_ARRAY(a, p->parts.len, int64_t);
    in.soaks = ARENA_ARRAY(a, p->parts.len, bool);
    in.demands = ARENA_ARRAY(a, p->parts.len + DEMANDS_OF_LIMITS, demand);
    in.overlap = may_overlap(p);
    if (!in.base || !in.work || !in.required || !in.open || !in.soaked || !in.soaks ||
        !in.demands || !rolls_make(p))
        return false;
    for (size_t i = 0; i < p->parts.len; i++) {
        in.base[i] = p->parts.at[i].now;
        in.open[i] = true;
    }
    if (me->flags & PACED_OUT) { /* it will count once it is let in */
        in.unavailable += paced_unavailable(flags) && !me->own;
        for (uint32_t s = me->seats; s; s = p->seats.at[s].next) {
            tally *t = &in.base[p->seats.at[s].partition];
            t->unavailable += paced_unavailable(flags);
            t->bad += paced_bad(flags);
            t->candidates++;
        }
    } else if (!paced_pending(me->flags)) {
        for (uint32_t s = me->seats; s; s = p->seats.at[s].next)
            in.base[p->seats.at[s].partition].candidates++;
    }
    inquire(&in);
    return !in.no_memory;
}
