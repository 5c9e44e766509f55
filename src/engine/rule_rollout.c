/* SPDX-License-Identifier: Apache-2.0 */
/* gradualRollout: targets take their turn one after the other, in the order of a hash.
 *
 * Positions are computed once, when the rollout of a version (or of a bracket) starts; whoever
 * comes later goes to the end. */
#include <assert.h>

#include "base/mem.h"
#include "engine/chain.h"

#define FNV1A_64_PRIME UINT64_C(1099511628211)
/* Orders kept for one deployment and environment: versions that are rolled out side by side. */
#define ORDERS_MAX 8u

uint64_t fnv1a_64(str text, uint64_t hash)
{
    for (size_t i = 0; i < text.len; i++)
        hash = (hash ^ (unsigned char)text.ptr[i]) * FNV1A_64_PRIME;
    return hash;
}

typedef struct ranked {
    uint64_t hash;
    str name;
    uint32_t index;
} ranked;

static int compare_ranked(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    if (x->hash != y->hash)
        return x->hash < y->hash ? -1 : 1;
    return str_cmp(x->name, y->name);
}

void order_done(rel_order *o)
{
    keymap_done(&o->positions);
}

static void order_fill(releases *r, rel_order *o, ranked *at, size_t count)
{
    if (count > 0)
        qsort(at, count, sizeof *at, compare_ranked);
    keymap_clear(&o->positions);
    for (size_t i = 0; i < count; i++)
        if (!keymap_put(&o->positions, at[i].index, (uint32_t)i))
            rel_no_memory(r);
    o->frozen = o->next = (uint32_t)count;
}

static uint64_t hash_of_target(const releases *r, uint32_t t, uint32_t version_)
{
    const rel_target *target = &r->targets.at[t];
    uint64_t h = fnv1a_64(rel_text(r, r->resources.at[target->resource].id), FNV1A_64_OFFSET);
    h = fnv1a_64(STR("-"), h);
    h = fnv1a_64(rel_text(r, r->environments.at[target->environment].id), h);
    h = fnv1a_64(STR("-"), h);
    h = fnv1a_64(rel_text(r, r->deployments.at[target->deployment].id), h);
    return fnv1a_64(rel_text(r, r->versions.at[version_].id), h);
}

static rel_order *cell_order(releases *r, uint32_t c, uint32_t version_)
{
    rel_cell *cell = &r->cells.at[c];
    for (size_t i = 0; i < cell->orders.len; i++)
        if (cell->orders.at[i].version == version_)
            return &cell->orders.at[i];
    if (cell->orders.len == ORDERS_MAX) {
        size_t oldest = 0;
        for (size_t i = 1; i < cell->orders.len; i++)
            if (version_newer(r, cell->orders.at[oldest].version, cell->orders.at[i].version))
                oldest = i;
        order_done(&cell->orders.at[oldest]);
        cell->orders.at[oldest] = cell->orders.at[--cell->orders.len];
    }
    ranked *at = mem_alloc((cell->targets.len + 1) * sizeof *at);
    if (!at || !vec_push(&cell->orders, (rel_order){.version = version_})) {
        rel_no_memory(r);
        mem_free(at);
        return NULL;
    }
    for (size_t i = 0; i < cell->targets.len; i++) {
        uint32_t t = cell->targets.at[i];
        at[i] = (ranked){hash_of_target(r, t, version_),
                         rel_text(r, r->resources.at[r->targets.at[t].resource].name), t};
    }
    rel_order *o = &cell->orders.at[cell->orders.len - 1];
    order_fill(r, o, at, cell->targets.len);
    mem_free(at);
    return o;
}

/* Ranks all resources of the bracket anew: a rollout begins. */
void bracket_order_start(releases *r, uint32_t rule_)
{
    rel_rule *the = &r->rules.at[rule_];
    ranked *at = mem_alloc((r->sites.len + 1) * sizeof *at);
    size_t count = 0;
    if (!at) {
        rel_no_memory(r);
        return;
    }
    keymap_clear(&the->order.positions);
    for (size_t s = 0; s < r->sites.len; s++) {
        const rel_site *site = &r->sites.at[s];
        if (!site->used || site->rule != rule_ || site->targets.len == 0 ||
            keymap_get(&the->order.positions, site->resource) != NO)
            continue;
        if (!keymap_put(&the->order.positions, site->resource, 0))
            rel_no_memory(r);
        const rel_resource *res = &r->resources.at[site->resource];
        uint64_t h = fnv1a_64(rel_text(r, res->id), FNV1A_64_OFFSET);
        at[count++] =
            (ranked){fnv1a_64(rel_text(r, the->id), h), rel_text(r, res->name), site->resource};
    }
    order_fill(r, &the->order, at, count);
    mem_free(at);
}

static int compare_text(const void *a, const void *b)
{
    return str_cmp(*(const str *)a, *(const str *)b);
}

static bool by_bracket(const releases *r, uint32_t rule_, uint32_t lane)
{
    return r->rules.at[rule_].bracket != NO &&
           r->lanes.at[lane].bracket == r->rules.at[rule_].bracket;
}

static rel_order *order_of(releases *r, uint32_t rule_, uint32_t lane, uint32_t t,
                           uint32_t version_)
{
    if (!by_bracket(r, rule_, lane))
        return cell_order(r, r->targets.at[t].cell, version_);
    rel_rule *bracket = &r->rules.at[r->rules.at[rule_].bracket];
    if (bracket->order.positions.len == 0)
        bracket_order_start(r, r->rules.at[rule_].bracket);
    return &bracket->order;
}

static uint32_t order_add(releases *r, rel_order *o, uint64_t key)
{
    uint32_t at = keymap_get(&o->positions, key);
    if (at != NO)
        return at;
    at = o->next++;
    if (!keymap_put(&o->positions, key, at))
        rel_no_memory(r);
    return at;
}

static int64_t position_take(releases *r, uint32_t rule_, uint32_t lane, uint32_t t,
                             uint32_t version_)
{
    rel_order *o = order_of(r, rule_, lane, t, version_);
    if (!o)
        return 0;
    return order_add(r, o, by_bracket(r, rule_, lane) ? r->targets.at[t].resource : t);
}

/* Whoever comes when an order stands goes to its end: those that come together by their names. */
void orders_extend(releases *r, const index_list *targets)
{
    index_list fresh = {0};
    for (size_t i = 0; i < targets->len; i++) {
        const rel_cell *cell = &r->cells.at[r->targets.at[targets->at[i]].cell];
        bool lacks = false;
        for (size_t k = 0; k < cell->orders.len && !lacks; k++)
            lacks = keymap_get(&cell->orders.at[k].positions, targets->at[i]) == NO;
        if (lacks && r->targets.at[targets->at[i]].id != 0)
            index_add(r, &fresh, targets->at[i]);
    }
    targets_in_order(r, &fresh);
    for (size_t i = 0; i < fresh.len; i++) {
        const rel_cell *cell = &r->cells.at[r->targets.at[fresh.at[i]].cell];
        for (size_t k = 0; k < cell->orders.len; k++)
            order_add(r, &cell->orders.at[k], fresh.at[i]);
    }
    vec_done(&fresh);
}

/* The position it has, or would get, and of how many: asking changes nothing. */
static int64_t position_peek(releases *r, uint32_t rule_, uint32_t lane, uint32_t t,
                             uint32_t version_)
{
    bool bracket = by_bracket(r, rule_, lane);
    rel_cell *cell = &r->cells.at[r->targets.at[t].cell];
    const rel_order *o = NULL;
    if (bracket && r->rules.at[r->rules.at[rule_].bracket].order.positions.len > 0)
        o = &r->rules.at[r->rules.at[rule_].bracket].order;
    for (size_t i = 0; !bracket && i < cell->orders.len; i++)
        if (cell->orders.at[i].version == version_)
            o = &cell->orders.at[i];
    if (o) {
        uint32_t at = keymap_get(&o->positions, bracket ? r->targets.at[t].resource : t);
        return at == NO ? o->next : at;
    }
    int64_t before = 0;
    uint64_t own = hash_of_target(r, t, version_);
    for (size_t i = 0; !bracket && i < cell->targets.len; i++)
        before += hash_of_target(r, cell->targets.at[i], version_) < own;
    return before;
}

int64_t rollout_position(releases *r, uint32_t rule_, uint32_t lane, uint32_t t, uint32_t version_)
{
    return r->asking ? position_peek(r, rule_, lane, t, version_)
                     : position_take(r, rule_, lane, t, version_);
}

static int64_t order_size(releases *r, uint32_t rule_, uint32_t lane, uint32_t t, uint32_t version_)
{
    if (r->asking) {
        const rel_cell *cell = &r->cells.at[r->targets.at[t].cell];
        for (size_t i = 0; !by_bracket(r, rule_, lane) && i < cell->orders.len; i++)
            if (cell->orders.at[i].version == version_)
                return cell->orders.at[i].frozen;
        return by_bracket(r, rule_, lane) ? r->rules.at[r->rules.at[rule_].bracket].order.frozen
                                          : (int64_t)cell->targets.len;
    }
    const rel_order *o = order_of(r, rule_, lane, t, version_);
    return o ? o->frozen : 1;
}

/* From when turns are counted: all that had to be satisfied first, and a window that was open
 * then. */
static int64_t start_of(const chain_context *c)
{
    releases *r = c->r;
    const rel_target *t = &r->targets.at[c->target];
    const rel_lane *lane = &r->lanes.at[c->lane];
    int64_t base = c->group != NO ? r->groups.at[c->group].turn_ms : t->eligible_ms;
    if (c->group == NO && (c->version != t->wanted || base == NEVER))
        base = c->a ? c->would_ms : NEVER;
    if (base == NEVER || !window_concerns(c))
        return base;
    int64_t start = base;
    size_t at = 0;
    for (uint32_t rule_; (rule_ = lane_next(lane, RULE_DEPLOYMENT_WINDOW, &at)) != NO;) {
        const rel_bypass *b = r->rules.at[rule_].bypassed
                                  ? bypass_find(r, rule_, c->version, t->environment, t->resource)
                                  : NULL;
        int64_t opens = b ? b->at_ms : window_opens(r, rule_, base);
        if (opens == NEVER)
            return NEVER;
        start = later_of(start, opens);
    }
    return start;
}

int64_t rollout_turn(const chain_context *c, uint32_t rule_)
{
    releases *r = c->r;
    const gradual_rollout *doc = r->rules.at[rule_].doc->gradual_rollout;
    int64_t start = start_of(c);
    if (start == NEVER)
        return NEVER;
    int64_t position = rollout_position(r, rule_, c->lane, c->target, c->version);
    int64_t interval = doc->time_scale_interval;
    if (doc->rollout_type == ROLLOUT_LINEAR)
        return start + position * interval * SECOND_MS;
    int64_t n = order_size(r, rule_, c->lane, c->target, c->version);
    n = n > 0 ? n : 1;
    return start + position * interval / n * SECOND_MS;
}

/* Who has an earlier turn and has not had it: names of resources, sorted. */
static void name_ahead(const chain_context *c, uint32_t rule_, reason *why)
{
    releases *r = c->r;
    const rel_cell *cell = &r->cells.at[r->targets.at[c->target].cell];
    int64_t own = rollout_position(r, rule_, c->lane, c->target, c->version);
    str *of = own > 0 ? ARENA_ARRAY(c->a, cell->targets.len, str) : NULL;
    bool ordered = by_bracket(r, rule_, c->lane);
    for (size_t i = 0; i < cell->orders.len; i++)
        ordered = ordered || cell->orders.at[i].version == c->version;
    uint64_t own_hash = ordered ? 0 : hash_of_target(r, c->target, c->version);
    for (size_t i = 0; of && i < cell->targets.len; i++) {
        uint32_t t = cell->targets.at[i];
        bool before = ordered ? position_peek(r, rule_, c->lane, t, c->version) < own
                              : hash_of_target(r, t, c->version) < own_hash;
        if (t != c->target && before && r->targets.at[t].current != c->version)
            of[why->of_count++] = rel_text(r, r->resources.at[r->targets.at[t].resource].name);
    }
    if (why->of_count > 1)
        qsort(of, why->of_count, sizeof *of, compare_text);
    why->of = of;
}

static void rollout_verdict(const chain_context *c, uint32_t rule_, verdict *v)
{
    releases *r = c->r;
    if (c->group == NO && r->targets.at[c->target].current == c->version)
        return;
    if (r->gates_only) /* a turn comes by time alone, and to find it asks all the others */
        return;
    int64_t turn = rollout_turn(c, rule_);
    if (turn != NEVER && turn <= r->core->now_ms)
        return;
    verdict_no(v, VERDICT_WAITING, REASON_ROLLOUT, turn);
    /* A start that is not known or has not come yet is another rule's doing. */
    v->implied = turn == NEVER || turn == start_of(c);
    if (c->a && !v->implied)
        name_ahead(c, rule_, &v->reason);
}

const rule_ops rollout_ops = {.order = 7, .level = LEVEL_FIRST, .verdict = rollout_verdict};
