/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/partition_internal.h"

#include <assert.h>

#include "base/mem.h"

#define MS_PER_SECOND 1000

/* ---- trees: treaps whose priorities come from the seats' numbers, so they are the same
 * everywhere ---- */

int paced_order(const paced *a, const paced *b)
{
    int by_name = str_cmp(a->name, b->name);
    return by_name ? by_name : str_cmp(a->tie, b->tie);
}

static uint32_t priority(uint32_t seat_number)
{
    uint32_t x = seat_number * 2654435769u;
    x ^= x >> 16;
    x *= 0x45d9f3bu;
    return x ^ (x >> 15);
}

static const paced *seat_member(const partitions *p, uint32_t s)
{
    return &p->members.at[p->seats.at[s].member];
}

/* Everything before the key goes left, the key and what is behind it right. */
static void tree_split(partitions *p, uint32_t tree, const paced *key, uint32_t *left,
                       uint32_t *right)
{
    while (tree) {
        seat *s = &p->seats.at[tree];
        if (paced_order(seat_member(p, tree), key) < 0) {
            *left = tree;
            left = &s->right;
            tree = s->right;
        } else {
            *right = tree;
            right = &s->left;
            tree = s->left;
        }
    }
    *left = 0;
    *right = 0;
}

static uint32_t tree_merge(partitions *p, uint32_t left, uint32_t right)
{
    uint32_t root = 0;
    uint32_t *link = &root;
    while (left && right) {
        if (priority(left) > priority(right)) {
            *link = left;
            link = &p->seats.at[left].right;
            left = *link;
        } else {
            *link = right;
            link = &p->seats.at[right].left;
            right = *link;
        }
    }
    *link = left ? left : right;
    return root;
}

static void tree_insert(partitions *p, uint32_t *root, uint32_t added)
{
    const paced *key = seat_member(p, added);
    while (*root && priority(*root) > priority(added))
        root = paced_order(seat_member(p, *root), key) < 0 ? &p->seats.at[*root].right
                                                           : &p->seats.at[*root].left;
    seat *s = &p->seats.at[added];
    tree_split(p, *root, key, &s->left, &s->right);
    *root = added;
}

static void tree_remove(partitions *p, uint32_t *root, uint32_t removed)
{
    const paced *key = seat_member(p, removed);
    while (*root != removed) {
        assert(*root);
        root = paced_order(seat_member(p, *root), key) < 0 ? &p->seats.at[*root].right
                                                           : &p->seats.at[*root].left;
    }
    seat *s = &p->seats.at[removed];
    *root = tree_merge(p, s->left, s->right);
    s->left = s->right = 0;
}

uint32_t tree_after(const partitions *p, uint32_t root, const paced *behind)
{
    uint32_t found = 0;
    while (root) {
        if (!behind || paced_order(seat_member(p, root), behind) > 0) {
            found = root;
            root = p->seats.at[root].left;
        } else {
            root = p->seats.at[root].right;
        }
    }
    return found;
}

/* The members of a tree are also a list, so that a walk goes from one to the next at once. */
static void list_insert(partitions *p, part *at, candidate_kind kind, uint32_t added)
{
    uint32_t after = tree_after(p, at->root[kind], seat_member(p, added));
    uint32_t before = after ? p->seats.at[after].before : at->last[kind];
    p->seats.at[added].before = before;
    p->seats.at[added].after = after;
    *(before ? &p->seats.at[before].after : &at->first[kind]) = added;
    *(after ? &p->seats.at[after].before : &at->last[kind]) = added;
}

static void list_remove(partitions *p, part *at, candidate_kind kind, uint32_t removed)
{
    uint32_t before = p->seats.at[removed].before, after = p->seats.at[removed].after;
    *(before ? &p->seats.at[before].after : &at->first[kind]) = after;
    *(after ? &p->seats.at[after].before : &at->last[kind]) = before;
    p->seats.at[removed].before = p->seats.at[removed].after = 0;
}

/* ---- counting ---- */

candidate_kind paced_candidate(unsigned flags)
{
    if (flags & (PACED_OUT | PACED_HELD))
        return CANDIDATE_NONE;
    if (!(flags & PACED_HAS))
        return CANDIDATE_NEW;
    bool available = (flags & PACED_AVAILABLE) != 0;
    if (flags & PACED_CURRENT)
        return (flags & PACED_AGAIN) && !available ? CANDIDATE_BROKEN : CANDIDATE_NONE;
    return available ? CANDIDATE_HEALTHY : CANDIDATE_BROKEN;
}

bool part_is_ready(const part *at, const tally *t)
{
    return t->bad <= at->cap;
}

/* An empty partition has nothing to prove. */
bool part_soaks(const partitions *p, const part *at, const tally *t, int64_t now_ms)
{
    if (p->soak_ms == 0 || at->counted == 0 || !part_is_ready(at, t))
        return false;
    return at->ready_since_ms == REASON_NEVER || now_ms - at->ready_since_ms < p->soak_ms;
}

void part_update(partitions *p, part *at)
{
    int_or_percent limit =
        at->max_unavailable.kind == AMOUNT_NONE ? p->max_unavailable : at->max_unavailable;
    at->cap = int_or_percent_limit(limit, at->count);
    if (!part_is_ready(at, &at->now))
        at->ready_since_ms = REASON_NEVER;
}

void caps_update(partitions *p)
{
    p->cap = int_or_percent_limit(p->max_unavailable, p->assigned);
    int_or_percent budget = p->max_unavailable_partitions;
    if (budget.kind == AMOUNT_NONE)
        budget = (int_or_percent){AMOUNT_COUNT, 0, STR_EMPTY};
    p->budget = int_or_percent_limit(budget, (int64_t)p->parts.len);
}

/* Adds (sign 1) or takes away (-1) what a seat's member means to its partition. */
static void seat_count(partitions *p, uint32_t number, int64_t sign)
{
    seat *s = &p->seats.at[number];
    part *at = &p->parts.at[s->partition];
    unsigned flags = p->members.at[s->member].flags;
    candidate_kind kind = paced_candidate(flags);
    at->counted += (flags & PACED_OUT) ? 0 : sign;
    at->now.unavailable += paced_unavailable(flags) ? sign : 0;
    at->now.bad += paced_bad(flags) ? sign : 0;
    at->now.candidates += paced_pending(flags) ? sign : 0;
    if (at->now.unavailable > at->peak)
        at->peak = at->now.unavailable;
    if (sign > 0 && kind != CANDIDATE_NONE) {
        list_insert(p, at, kind, number);
        tree_insert(p, &at->root[kind], number);
    }
    if (sign < 0 && s->tree != CANDIDATE_NONE) {
        tree_remove(p, &at->root[s->tree], number);
        list_remove(p, at, (candidate_kind)s->tree, number);
    }
    s->tree = sign > 0 ? (uint8_t)kind : (uint8_t)CANDIDATE_NONE;
}

static void member_count(partitions *p, paced *m, int64_t sign)
{
    if (!m->seats)
        return;
    p->assigned += sign;
    p->unavailable += !m->own && paced_unavailable(m->flags) ? sign : 0;
    p->bad += paced_bad(m->flags) ? sign : 0;
    for (uint32_t s = m->seats; s; s = p->seats.at[s].next)
        seat_count(p, s, sign);
}

static void member_settle(partitions *p, const paced *m)
{
    for (uint32_t s = m->seats; s; s = p->seats.at[s].next)
        part_update(p, &p->parts.at[p->seats.at[s].partition]);
}

/* ---- life ---- */

partitions *partitions_new(partition_matcher matches, void *context)
{
    partitions *p = mem_zalloc(sizeof *p);
    if (!p)
        return NULL;
    p->matches = matches;
    p->context = context;
    p->next_ms = REASON_NEVER;
    p->texts = arena_new(0);
    if (!p->texts || !vec_push(&p->seats, (seat){0}))
        return partitions_free(p);
    return p;
}

partitions *partitions_free(partitions *p)
{
    if (!p)
        return NULL;
    arena_free(p->texts);
    vec_done(&p->definitions);
    vec_done(&p->parts);
    vec_done(&p->members);
    vec_done(&p->seats);
    vec_done(&p->scratch);
    vec_done(&p->order);
    vec_done(&p->grouped);
    vec_done(&p->group_ends);
    return mem_free(p);
}

static int64_t seconds_in_ms(opt_int seconds)
{
    int64_t most = INT64_MAX / 4 / MS_PER_SECOND;
    if (!seconds.set || seconds.value <= 0)
        return 0;
    return (seconds.value < most ? seconds.value : most) * MS_PER_SECOND;
}

bool partitions_set_policy(partitions *p, const rollout_strategy *policy)
{
    if (!vec_reserve(&p->definitions, policy->partitions.len))
        return false;
    p->max_unavailable = policy->max_unavailable;
    p->max_unavailable_partitions = policy->max_unavailable_partitions;
    p->auto_partition_size = policy->auto_partition_size;
    p->auto_partition_threshold = policy->auto_partition_threshold;
    p->max_new = policy->max_new;
    p->soak_ms = seconds_in_ms(policy->soak_seconds);
    p->failure_threshold = policy->failure_threshold.set && policy->failure_threshold.value > 0
                               ? policy->failure_threshold.value
                               : 0;
    p->definitions.len = 0;
    for (size_t i = 0; i < policy->partitions.len; i++)
        p->definitions.at[p->definitions.len++] = policy->partitions.at[i];
    for (size_t i = 0; i < p->parts.len; i++) {
        part *at = &p->parts.at[i];
        bool defined = !p->automatic && i < p->definitions.len;
        bool was_own = at->max_unavailable.kind != AMOUNT_NONE;
        at->max_unavailable = defined ? p->definitions.at[i].max_unavailable : (int_or_percent){0};
        at->approval = defined && p->definitions.at[i].approval;
        part_update(p, at);
        if (was_own == (at->max_unavailable.kind != AMOUNT_NONE))
            continue;
        for (size_t m = 0; m < p->members.len;
             m++) { /* rare: who counts for the whole has changed */
            paced *member = &p->members.at[m];
            member_count(p, member, -1);
            member->own = false;
            for (uint32_t s = member->seats; s; s = p->seats.at[s].next) {
                uint32_t index = p->seats.at[s].partition;
                bool defines = !p->automatic && index < p->definitions.len;
                member->own |=
                    defines && p->definitions.at[index].max_unavailable.kind != AMOUNT_NONE;
            }
            member_count(p, member, 1);
        }
    }
    caps_update(p);
    return true;
}

/* ---- members ---- */

static paced *member_at(const partitions *p, member_id m)
{
    assert(m < p->members.len && p->members.at[m].present);
    return &p->members.at[m];
}

bool partitions_join(partitions *p, member_id m, str called, str name, str tie)
{
    while (p->members.len <= m)
        if (!vec_push(&p->members, (paced){0}))
            return false;
    assert(!p->members.at[m].present);
    p->order.len = 0;
    p->members.at[m] = (paced){.label = called, .name = name, .tie = tie, .present = true};
    return true;
}

void partitions_unassign(partitions *p, member_id m)
{
    paced *member = member_at(p, m);
    p->order.len = 0;
    member_count(p, member, -1);
    uint32_t s = member->seats;
    member->seats = 0;
    while (s) {
        uint32_t next = p->seats.at[s].next;
        part *at = &p->parts.at[p->seats.at[s].partition];
        at->count--;
        part_update(p, at);
        p->seats.at[s] = (seat){.next = p->free_seat};
        p->free_seat = s;
        s = next;
    }
    member->own = false;
    caps_update(p);
}

void partitions_leave(partitions *p, member_id m)
{
    paced *member = member_at(p, m);
    partitions_unassign(p, m);
    if (member->failed)
        p->failures--;
    p->order.len = 0;
    *member = (paced){0};
}

bool partitions_set(partitions *p, member_id m, unsigned flags)
{
    paced *member = member_at(p, m);
    if (member->flags == flags)
        return false;
    member_count(p, member, -1);
    member->flags = (uint8_t)flags;
    member_count(p, member, 1);
    member_settle(p, member);
    return true;
}

unsigned partitions_get(const partitions *p, member_id m)
{
    return member_at(p, m)->flags;
}

/* ---- the cut ---- */

bool part_add(partitions *p, str name, const partition *definition)
{
    str copy = arena_str(p->texts, name);
    part added = {.name = copy, .ready_since_ms = REASON_NEVER};
    if (definition) {
        added.max_unavailable = definition->max_unavailable;
        added.approval = definition->approval;
    }
    return copy.ptr && vec_push(&p->parts, added);
}

bool seat_add(partitions *p, member_id m, uint32_t index)
{
    uint32_t number = p->free_seat;
    if (number) {
        p->free_seat = p->seats.at[number].next;
    } else {
        number = (uint32_t)p->seats.len;
        if (!vec_push(&p->seats, (seat){0}))
            return false;
    }
    paced *member = member_at(p, m);
    part *at = &p->parts.at[index];
    p->order.len = 0;
    member_count(p, member, -1);
    p->seats.at[number] = (seat){.member = m, .partition = index, .tree = CANDIDATE_NONE};
    uint32_t *link = &member->seats;
    while (*link && p->seats.at[*link].partition < index)
        link = &p->seats.at[*link].next;
    assert(!*link || p->seats.at[*link].partition != index);
    p->seats.at[number].next = *link;
    *link = number;
    member->own |= at->max_unavailable.kind != AMOUNT_NONE;
    at->count++;
    member_count(p, member, 1);
    member_settle(p, member);
    return true;
}

bool partitions_assign(partitions *p, member_id m)
{
    bool good = true;
    if (member_at(p, m)->seats || !p->cut)
        return true;
    if (p->automatic)
        good = seat_add(p, m, (uint32_t)p->parts.len - 1);
    for (size_t i = 0; !p->automatic && good && i < p->parts.len; i++)
        if (p->matches(p->context, m, i))
            good = seat_add(p, m, (uint32_t)i);
    caps_update(p);
    return good;
}

static int by_order(const void *a, const void *b, void *context)
{
    const partitions *p = context;
    return paced_order(&p->members.at[*(const member_id *)a],
                       &p->members.at[*(const member_id *)b]);
}

/* The length of an automatic partition; 0: one for all, named so. */
static int64_t automatic_size(const partitions *p, int64_t members)
{
    int_or_percent size = p->auto_partition_size;
    if (size.kind == AMOUNT_NONE)
        size = (int_or_percent){AMOUNT_PERCENT, 25 * AMOUNT_PERCENT_SCALE, STR_EMPTY};
    if (size.kind == AMOUNT_COUNT && size.value <= 0)
        return 0;
    if (p->auto_partition_threshold <= 0 || members < p->auto_partition_threshold)
        return 0;
    return int_or_percent_limit(size, members);
}

static bool cut_automatic(partitions *p, const member_id *order, int64_t members)
{
    int64_t size = automatic_size(p, members);
    if (size <= 0 && !part_add(p, STR("All"), NULL))
        return false;
    for (int64_t from = 0; size > 0 && from < members; from += size) {
        int64_t to = members - from < size ? members : from + size;
        str name = arena_printf(p->texts, "Partition %lld - %lld", (long long)from, (long long)to);
        if (!name.ptr || !part_add(p, name, NULL))
            return false;
    }
    for (int64_t i = 0; i < members; i++)
        if (!seat_add(p, order[i], size > 0 ? (uint32_t)(i / size) : 0))
            return false;
    return true;
}

static bool cut_manual(partitions *p, const member_id *order, size_t members)
{
    for (size_t d = 0; d < p->definitions.len; d++)
        if (!part_add(p, p->definitions.at[d].name, &p->definitions.at[d]))
            return false;
    for (size_t i = 0; i < members; i++)
        for (size_t d = 0; d < p->definitions.len; d++)
            if (p->matches(p->context, order[i], d) && !seat_add(p, order[i], (uint32_t)d))
                return false;
    return true;
}

bool partitions_cut(partitions *p)
{
    VEC(member_id) order = {0};
    bool good = true;
    for (size_t m = 0; m < p->members.len; m++) {
        if (!p->members.at[m].present)
            continue;
        partitions_unassign(p, (member_id)m);
        good = good && vec_push(&order, (member_id)m);
    }
    p->parts.len = 0;
    arena_rewind(p->texts, (arena_place){0});
    if (good && order.len > 1)
        qsort_r(order.at, order.len, sizeof *order.at, by_order, p);
    p->automatic = p->definitions.len == 0;
    if (p->automatic)
        good = good && cut_automatic(p, order.at, (int64_t)order.len);
    else
        good = good && cut_manual(p, order.at, order.len);
    vec_done(&order);
    for (size_t i = 0; i < p->parts.len; i++)
        part_update(p, &p->parts.at[i]);
    caps_update(p);
    p->cut = good;
    p->cuts++;
    return good;
}

bool partitions_are_cut(const partitions *p)
{
    return p->cut;
}

/* ---- what people and outcomes change ---- */

void partitions_resume(partitions *p)
{
    p->halted = false;
    p->failures = 0;
    for (size_t m = 0; m < p->members.len; m++)
        p->members.at[m].failed = false;
}

void partitions_edited(partitions *p)
{
    partitions_resume(p);
    for (size_t i = 0; i < p->parts.len; i++) {
        p->parts.at[i].approved = false;
        p->parts.at[i].ready_since_ms = REASON_NEVER;
    }
}

bool partitions_approve(partitions *p, str name)
{
    bool found = false;
    for (size_t i = 0; i < p->parts.len; i++)
        if (str_eq(p->parts.at[i].name, name))
            found = p->parts.at[i].approved = true;
    return found;
}

bool partitions_failed(partitions *p, member_id m)
{
    paced *member = member_at(p, m);
    if (!member->failed)
        p->failures++;
    member->failed = true;
    if (p->halted || p->failure_threshold == 0 || p->failures < p->failure_threshold)
        return false;
    p->halted = true;
    return true;
}

bool partitions_halted(const partitions *p)
{
    return p->halted;
}

int64_t partitions_failures(const partitions *p)
{
    return p->failures;
}

bool partitions_exceeded(const partitions *p)
{
    bool exceeded = p->unavailable > at_least_one(p->cap);
    for (size_t i = 0; i < p->parts.len; i++)
        exceeded |= p->parts.at[i].now.unavailable > at_least_one(p->parts.at[i].cap);
    return exceeded;
}

bool partitions_complete(const partitions *p)
{
    return p->bad == 0;
}

int64_t partitions_next_ms(const partitions *p)
{
    return p->next_ms;
}

/* ---- views ---- */

partition_figures partitions_figures(const partitions *p)
{
    return (partition_figures){p->unavailable, p->cap, p->budget, p->cuts};
}

size_t partitions_count(const partitions *p)
{
    return p->parts.len;
}

void partitions_view(const partitions *p, size_t index, partition_view *ret)
{
    const part *at = &p->parts.at[index];
    *ret = (partition_view){
        .name = at->name,
        .matched = at->count,
        .cap = at->cap,
        .unavailable = at->now.unavailable,
        .not_ready = at->now.bad,
        .peak = at->peak,
        .own = at->max_unavailable.kind != AMOUNT_NONE,
        .ready = part_is_ready(at, &at->now),
        .visited = at->visited,
        .approved = !at->approval || at->approved,
        .ready_since_ms = at->ready_since_ms,
    };
}

uint32_t partitions_of(const partitions *p, member_id m)
{
    uint32_t s = member_at(p, m)->seats;
    return s ? p->seats.at[s].partition : PARTITION_NONE;
}

static bool is_reached(const partitions *p, uint32_t index, int64_t visited)
{
    const part *at = &p->parts.at[index];
    return index < visited && (!at->approval || at->approved);
}

bool partitions_reached(const partitions *p, member_id m, int64_t visited)
{
    for (uint32_t s = member_at(p, m)->seats; s; s = p->seats.at[s].next)
        if (is_reached(p, p->seats.at[s].partition, visited))
            return true;
    return false;
}

uint64_t partitions_reach(const partitions *p, int64_t visited)
{
    uint64_t hash = p->cuts + 1;
    for (uint32_t i = 0; i < p->parts.len; i++)
        hash = (hash ^ is_reached(p, i, visited)) * UINT64_C(0x100000001b3);
    return hash;
}
