/* SPDX-License-Identifier: Apache-2.0 */
/* resourceConcurrency: slots.
 *
 * A slot belongs to a resource, from the start of its first job until nothing more is to be done
 * there. A claim takes all the slots it needs in the moment its job starts, or none: it then
 * waits in the queue of one rule that is full, in the order of its position in the rollout, and
 * is looked at again only when that rule has room. */
#include <assert.h>

#include "base/mem.h"
#include "base/num.h"
#include "engine/chain.h"

int64_t rule_limit(const rel_rule *rule_)
{
    if (!rule_->doc)
        return 0;
    const resource_concurrency *c = rule_->doc->resource_concurrency;
    if (c->limit_value <= 0)
        return 0;
    return c->limit_type == LIMIT_TYPE_COUNT ? c->limit_value
                                             : num_percent(rule_->matched, c->limit_value);
}

bool slot_applies(const releases *r, uint32_t rule_, uint32_t res)
{
    return r->rules.at[rule_].doc && bitset_has(&r->rules.at[rule_].group, res);
}

rel_hold *hold_find(const releases *r, uint32_t res, uint32_t rule_)
{
    const rel_resource *resource_ = &r->resources.at[res];
    for (size_t i = 0; i < resource_->holds.len; i++)
        if (resource_->holds.at[i].rule == rule_)
            return &resource_->holds.at[i];
    return NULL;
}

static void tell_slot(releases *r, uint32_t res, uint32_t rule_, bool taken, str why)
{
    if (!r->core->out)
        return;
    decision *d = core_decide(r->core, DECISION_SLOT, 0);
    if (!d)
        return;
    d->target = rel_text(r, r->resources.at[res].name);
    d->group = rel_text(r, r->rules.at[rule_].id);
    d->size = r->rules.at[rule_].held;
    d->taken = taken;
    d->detail = why;
}

static void waiters_recall(releases *r, uint32_t res, uint32_t rule_);

static void slot_take(releases *r, uint32_t res, uint32_t rule_, bool host)
{
    rel_hold *hold = hold_find(r, res, rule_);
    if (hold) {
        hold->host = hold->host || host;
        hold->job = hold->job || !host;
        hold->progress_ms = r->core->now_ms;
        hold->late = false;
        mark_resource(r, res); /* its time runs anew */
        return;
    }
    rel_hold fresh = {.rule = rule_,
                      .progress_ms = r->core->now_ms,
                      .host = host,
                      .job = !host,
                      .step = host ? 0 : r->step};
    if (!vec_push(&r->resources.at[res].holds, fresh)) {
        rel_no_memory(r);
        return;
    }
    rel_hold *at = r->resources.at[res].holds.at;
    for (size_t i = r->resources.at[res].holds.len; i-- > 1;) {
        if (str_cmp(r->rules.at[at[i - 1].rule].scope, r->rules.at[at[i].rule].scope) <= 0)
            break;
        rel_hold swap = at[i];
        at[i] = at[i - 1];
        at[i - 1] = swap;
    }
    rel_rule *the = &r->rules.at[rule_];
    the->held++;
    assert(the->held <= rule_limit(the));
    the->peak = the->held > the->peak ? the->held : the->peak;
    tell_slot(r, res, rule_, true, STR_EMPTY);
    waiters_recall(r, res, rule_);
    mark_resource_all(r, res);
}

void slot_release(releases *r, uint32_t res, uint32_t rule_, str why)
{
    rel_resource *resource_ = &r->resources.at[res];
    for (size_t i = 0; i < resource_->holds.len; i++) {
        if (resource_->holds.at[i].rule != rule_)
            continue;
        memmove(&resource_->holds.at[i], &resource_->holds.at[i + 1],
                (resource_->holds.len - i - 1) * sizeof *resource_->holds.at);
        resource_->holds.len--;
        r->rules.at[rule_].held--;
        tell_slot(r, res, rule_, false, why);
        return;
    }
}

void slots_progress(releases *r, uint32_t res)
{
    rel_resource *resource_ = &r->resources.at[res];
    for (size_t i = 0; i < resource_->holds.len; i++) {
        resource_->holds.at[i].progress_ms = r->core->now_ms;
        resource_->holds.at[i].late = false;
    }
    mark_resource(r, res);
}

/* ---- what a claim needs ---- */

uint32_t claim_resource(const releases *r, uint32_t claim)
{
    if (CLAIM_IS_GROUP(claim))
        return r->sites.at[r->groups.at[CLAIM_INDEX(claim)].site].resource;
    return r->targets.at[CLAIM_INDEX(claim)].resource;
}

static void rules_of_target(releases *r, uint32_t t, index_list *ret)
{
    const rel_lane *lane = &r->lanes.at[r->targets.at[t].lane];
    size_t at = 0;
    for (uint32_t rule_; (rule_ = lane_next(lane, RULE_RESOURCE_CONCURRENCY, &at)) != NO;)
        if (slot_applies(r, rule_, r->targets.at[t].resource) && !index_has(ret, rule_))
            index_add(r, ret, rule_);
}

void claim_rules(releases *r, uint32_t claim, index_list *ret)
{
    ret->len = 0;
    if (!CLAIM_IS_GROUP(claim)) {
        rules_of_target(r, CLAIM_INDEX(claim), ret);
        return;
    }
    const rel_group *g = &r->groups.at[CLAIM_INDEX(claim)];
    for (size_t i = 0; i < g->members.len; i++)
        rules_of_target(r, g->members.at[i].target, ret);
}

bool slot_lacks(const releases *r, uint32_t claim, uint32_t rule_)
{
    const rel_rule *the = &r->rules.at[rule_];
    return !hold_find(r, claim_resource(r, claim), rule_) && the->held >= rule_limit(the);
}

/* Whether every slot the claim needs is free or its own; r->needed lists their rules. */
static bool slots_free(releases *r, uint32_t claim, uint32_t *ret_full)
{
    index_list *needed = &r->needed;
    claim_rules(r, claim, needed);
    for (size_t i = 0; i < needed->len; i++) {
        if (slot_lacks(r, claim, needed->at[i])) {
            *ret_full = needed->at[i];
            return false;
        }
    }
    return true;
}

bool slots_take(releases *r, uint32_t claim, uint32_t *ret_full)
{
    if (!slots_free(r, claim, ret_full))
        return false;
    for (size_t i = 0; i < r->needed.len; i++)
        slot_take(r, claim_resource(r, claim), r->needed.at[i], false);
    return true;
}

/* ---- when a slot is given back ---- */

static bool lane_has(const releases *r, uint32_t lane, uint32_t rule_)
{
    return lane != NO && index_has(&r->lanes.at[lane].rules, rule_);
}

/* Its last attempt at what is wanted failed: left alone, tried again, or a person asked for that.
 */
static bool failed_last(const rel_target *t)
{
    return (t->failed_version == t->wanted && t->attempts > 0) || t->retried == t->wanted;
}

static bool target_needs(releases *r, uint32_t t)
{
    const rel_target *target = &r->targets.at[t];
    if (target->job != 0 || target->rollback_to != NO)
        return true;
    if (target->site != NO || !target_pending(r, t))
        return false;
    chain_context c = {
        .r = r, .target = t, .lane = target->lane, .version = target->wanted, .group = NO};
    /* What failed keeps its slot whatever gate holds its next attempt. But no slot is kept for what
     * waits for its batch or partition only: whoever has a place there may need that slot, and
     * both would wait for ever. */
    return chain_allows_but_dependencies(&c) ? paces_permit(r, CLAIM_TARGET(t))
                                             : failed_last(target);
}

static bool group_needs(const releases *r, uint32_t g, uint32_t rule_)
{
    for (size_t i = 0; g != NO && i < r->groups.at[g].members.len; i++)
        if (lane_has(r, r->targets.at[r->groups.at[g].members.at[i].target].lane, rule_))
            return true;
    return false;
}

/* A job of a group that needs the slot counts, whichever of its members it is of. */
static bool job_runs_under(const releases *r, uint32_t res, uint32_t rule_)
{
    const rel_resource *resource_ = &r->resources.at[res];
    if (group_needs(r, resource_->active, rule_) && group_runs(&r->groups.at[resource_->active]))
        return true;
    for (size_t i = 0; i < resource_->targets.len; i++) {
        const rel_target *t = &r->targets.at[resource_->targets.at[i]];
        if (t->job != 0 && lane_has(r, t->lane, rule_))
            return true;
    }
    return false;
}

bool slot_needed(releases *r, uint32_t res, uint32_t rule_)
{
    const rel_resource *resource_ = &r->resources.at[res];
    const rel_hold *hold = hold_find(r, res, rule_);
    if (!slot_applies(r, rule_, res)) /* it left the group: what runs there keeps its slot */
        return hold && r->rules.at[rule_].doc && job_runs_under(r, res, rule_);
    if (hold && hold->host)
        return true;
    if (group_needs(r, resource_->active, rule_))
        return true;
    for (size_t i = 0; i < resource_->sites.len; i++) {
        uint32_t ready = r->sites.at[resource_->sites.at[i]].ready;
        if (ready != NO && r->groups.at[ready].took_over && group_needs(r, ready, rule_))
            return true;
    }
    for (size_t i = 0; i < resource_->targets.len; i++)
        if (lane_has(r, r->targets.at[resource_->targets.at[i]].lane, rule_) &&
            target_needs(r, resource_->targets.at[i]))
            return true;
    return false;
}

int64_t slot_due(const releases *r, uint32_t res, uint32_t rule_)
{
    const rel_hold *hold = hold_find(r, res, rule_);
    const rule *is = r->rules.at[rule_].doc;
    if (!hold || !is || !is->resource_concurrency->slot_timeout_seconds.set || hold->late ||
        job_runs_under(r, res, rule_))
        return NEVER;
    return hold->progress_ms + is->resource_concurrency->slot_timeout_seconds.value * SECOND_MS;
}

/* A slot that nothing has moved under for too long. True if it was taken away. */
static bool slot_overdue(releases *r, uint32_t res, size_t i, int64_t *next_ms)
{
    rel_hold *hold = &r->resources.at[res].holds.at[i];
    const resource_concurrency *doc = r->rules.at[hold->rule].doc->resource_concurrency;
    int64_t due = slot_due(r, res, hold->rule);
    if (due == NEVER)
        return false;
    if (r->core->now_ms < due) {
        *next_ms = earlier(*next_ms, due);
        return false;
    }
    switch (doc->on_timeout) {
    case SLOT_TIMEOUT_HOLD: hold->late = true; return false;
    case SLOT_TIMEOUT_QUARANTINE:
        r->resources.at[res].quarantined = true;
        r->rules.at[hold->rule].quarantined++;
        slot_release(r, res, hold->rule, STR("quarantined"));
        mark_resource_all(r, res); /* its other slots are of no use to it now */
        return true;
    case SLOT_TIMEOUT_RELEASE: slot_release(r, res, hold->rule, STR("timed out")); return true;
    }
    return false;
}

/* When something that failed here is tried again by itself: from then on it must have its place to
 * keep the slot, also if a dependency holds it and nobody asks for the time. */
static int64_t retry_due(const releases *r, uint32_t res)
{
    const index_list *targets = &r->resources.at[res].targets;
    int64_t next_ms = NEVER;
    for (size_t i = 0; i < targets->len; i++) {
        const rel_target *t = &r->targets.at[targets->at[i]];
        if (t->job != 0 || t->attempts == 0 || t->lane == NO)
            continue;
        retry_answer a = retry_ask(r, targets->at[i]);
        if (a.again && a.at_ms > r->core->now_ms)
            next_ms = earlier(next_ms, a.at_ms);
    }
    return next_ms;
}

void slots_settle(releases *r, uint32_t res)
{
    rel_resource *resource_ = &r->resources.at[res];
    int64_t next_ms = resource_->holds.len > 0 ? retry_due(r, res) : NEVER;
    for (size_t i = 0; i < resource_->holds.len;) {
        uint32_t rule_ = resource_->holds.at[i].rule;
        if (!slot_needed(r, res, rule_)) {
            slot_release(r, res, rule_, STR_EMPTY);
            continue;
        }
        if (!slot_overdue(r, res, i, &next_ms))
            i++;
    }
    wake_at(r, WAKE_RESOURCE, res, next_ms);
}

/* ---- the queues ---- */

static uint32_t *stamp_of(const releases *r, uint32_t claim)
{
    return CLAIM_IS_GROUP(claim) ? &r->groups.at[CLAIM_INDEX(claim)].stamp
                                 : &r->targets.at[CLAIM_INDEX(claim)].stamp;
}

static uint32_t *place_of(const releases *r, uint32_t claim)
{
    return CLAIM_IS_GROUP(claim) ? &r->groups.at[CLAIM_INDEX(claim)].waits_in
                                 : &r->targets.at[CLAIM_INDEX(claim)].waits_in;
}

static int64_t *position_of(const releases *r, uint32_t claim)
{
    return CLAIM_IS_GROUP(claim) ? &r->groups.at[CLAIM_INDEX(claim)].waits_at
                                 : &r->targets.at[CLAIM_INDEX(claim)].waits_at;
}

bool waiter_stands(const releases *r, const rel_waiter *w)
{
    return *stamp_of(r, w->claim) == w->stamp;
}

static int compare_names(const releases *r, uint32_t a, uint32_t b)
{
    const rel_target *x = &r->targets.at[a], *y = &r->targets.at[b];
    int c = str_cmp(rel_text(r, r->deployments.at[x->deployment].name),
                    rel_text(r, r->deployments.at[y->deployment].name));
    return c != 0 ? c
                  : str_cmp(rel_text(r, r->environments.at[x->environment].name),
                            rel_text(r, r->environments.at[y->environment].name));
}

rel_waiter waiter_of(releases *r, uint32_t claim)
{
    rel_waiter w = {.position = claim_position(r, claim),
                    .claim = claim,
                    .stamp = *stamp_of(r, claim),
                    .resource = claim_resource(r, claim)};
    if (CLAIM_IS_GROUP(claim)) {
        w.site = r->groups.at[CLAIM_INDEX(claim)].site;
        w.locked_ms = r->groups.at[CLAIM_INDEX(claim)].locked_ms;
    }
    return w;
}

/* Position, resource, groups before targets; then the group that locked first, or names. */
static int waiter_cmp(const releases *r, const rel_waiter *a, const rel_waiter *b)
{
    if (a->position != b->position)
        return a->position < b->position ? -1 : 1;
    if (a->resource != b->resource)
        return str_cmp(rel_text(r, r->resources.at[a->resource].name),
                       rel_text(r, r->resources.at[b->resource].name));
    if (CLAIM_IS_GROUP(a->claim) != CLAIM_IS_GROUP(b->claim))
        return CLAIM_IS_GROUP(a->claim) ? -1 : 1;
    if (!CLAIM_IS_GROUP(a->claim))
        return compare_names(r, CLAIM_INDEX(a->claim), CLAIM_INDEX(b->claim));
    if (a->locked_ms != b->locked_ms)
        return a->locked_ms < b->locked_ms ? -1 : 1;
    return site_cmp(r, a->site, b->site);
}

bool waiter_before(const releases *r, const rel_waiter *a, const rel_waiter *b)
{
    return waiter_cmp(r, a, b) < 0;
}

static void heap_push(releases *r, waiter_heap *h, rel_waiter w)
{
    if (!vec_push(h, w)) {
        rel_no_memory(r);
        return;
    }
    size_t i = h->len - 1;
    for (; i > 0 && waiter_cmp(r, &w, &h->at[(i - 1) / 2]) < 0; i = (i - 1) / 2)
        h->at[i] = h->at[(i - 1) / 2];
    h->at[i] = w;
}

static rel_waiter heap_pop(const releases *r, waiter_heap *h)
{
    rel_waiter top = h->at[0], last = h->at[--h->len];
    size_t i = 0;
    for (size_t child = 1; child < h->len; child = 2 * i + 1) {
        if (child + 1 < h->len && waiter_cmp(r, &h->at[child + 1], &h->at[child]) < 0)
            child++;
        if (waiter_cmp(r, &h->at[child], &last) >= 0)
            break;
        h->at[i] = h->at[child];
        i = child;
    }
    if (h->len > 0)
        h->at[i] = last;
    return top;
}

static int64_t position_in(releases *r, uint32_t t, uint32_t version_)
{
    const rel_lane *lane = &r->lanes.at[r->targets.at[t].lane];
    int64_t smallest = INT64_MAX;
    size_t at = version_ != NO ? 0 : lane->rules.len;
    for (uint32_t rule_; (rule_ = lane_next(lane, RULE_GRADUAL_ROLLOUT, &at)) != NO;) {
        int64_t p = rollout_position(r, rule_, r->targets.at[t].lane, t, version_);
        smallest = p < smallest ? p : smallest;
    }
    return smallest;
}

int64_t claim_position(releases *r, uint32_t claim)
{
    int64_t smallest = INT64_MAX;
    if (CLAIM_IS_GROUP(claim)) {
        const rel_group *g = &r->groups.at[CLAIM_INDEX(claim)];
        for (size_t i = 0; i < g->members.len; i++) {
            int64_t p = position_in(r, g->members.at[i].target, g->members.at[i].version);
            smallest = p < smallest ? p : smallest;
        }
    } else {
        uint32_t t = CLAIM_INDEX(claim);
        smallest = position_in(r, t, target_goal(r, t));
    }
    return smallest == INT64_MAX ? 0 : smallest;
}

void claim_withdraw(releases *r, uint32_t claim)
{
    ++*stamp_of(r, claim);
    *place_of(r, claim) = NO;
}

void claim_offer(releases *r, uint32_t claim)
{
    uint32_t in = *place_of(r, claim);
    /* Who stands in a queue stays there, unless the slot has come by another claim of the
     * resource. */
    if (in != NO && !hold_find(r, claim_resource(r, claim), in) && r->rules.at[in].doc &&
        *position_of(r, claim) == claim_position(r, claim))
        return;
    claim_withdraw(r, claim);
    heap_push(r, &r->candidates, waiter_of(r, claim));
}

void claim_wait(releases *r, uint32_t claim, uint32_t full)
{
    int64_t position = claim_position(r, claim);
    if (*place_of(r, claim) == full && *position_of(r, claim) == position)
        return;
    claim_withdraw(r, claim);
    *place_of(r, claim) = full;
    *position_of(r, claim) = position;
    heap_push(r, &r->rules.at[full].waiters, waiter_of(r, claim));
}

static void waiter_recall(releases *r, uint32_t claim, uint32_t rule_)
{
    if (*place_of(r, claim) != rule_)
        return;
    claim_withdraw(r, claim);
    heap_push(r, &r->candidates, waiter_of(r, claim));
}

/* The resource has the slot now: its other claims that waited for it have their turn by their
 * order, whichever queue they happened to stand in. */
static void waiters_recall(releases *r, uint32_t res, uint32_t rule_)
{
    const rel_resource *resource_ = &r->resources.at[res];
    for (size_t i = 0; i < resource_->targets.len; i++)
        waiter_recall(r, CLAIM_TARGET(resource_->targets.at[i]), rule_);
    for (size_t i = 0; i < resource_->sites.len; i++) {
        const rel_site *site = &r->sites.at[resource_->sites.at[i]];
        if (site->ready != NO)
            waiter_recall(r, CLAIM_GROUP(site->ready), rule_);
        if (site->active != NO)
            waiter_recall(r, CLAIM_GROUP(site->active), rule_);
    }
}

static rel_waiter *heap_top(const releases *r, waiter_heap *h)
{
    while (h->len > 0 && !waiter_stands(r, &h->at[0]))
        heap_pop(r, h);
    return h->len > 0 ? &h->at[0] : NULL;
}

static waiter_heap *next_heap(releases *r)
{
    waiter_heap *best = heap_top(r, &r->candidates) ? &r->candidates : NULL;
    for (size_t i = 0; i < r->concurrency.len; i++) {
        rel_rule *rule_ = &r->rules.at[r->concurrency.at[i]];
        if (rule_->held >= rule_limit(rule_) || !heap_top(r, &rule_->waiters))
            continue;
        if (!best || waiter_cmp(r, &rule_->waiters.at[0], &best->at[0]) < 0)
            best = &rule_->waiters;
    }
    return best;
}

static void claim_start(releases *r, uint32_t claim)
{
    uint32_t t = CLAIM_INDEX(claim);
    if (CLAIM_IS_GROUP(claim)) {
        if (r->groups.at[t].state == GROUP_STATE_EXECUTING)
            mark_site(r, r->groups.at[t].site);
        else
            group_begin(r, t);
        return;
    }
    rel_target *target = &r->targets.at[t];
    if (target->rollback_to != NO)
        job_start(r, t, target->rollback_to, NO, ROLE_ROLLBACK);
    else
        job_start(r, t, target->wanted, NO, ROLE_MEMBER);
}

void claims_serve(releases *r)
{
    for (waiter_heap *h = next_heap(r); h && !r->core->no_memory; h = next_heap(r)) {
        rel_waiter w = heap_pop(r, h);
        int64_t next_ms;
        uint32_t full;
        claim_withdraw(r, w.claim);
        /* Its gates were open when it was last looked at: without a slot that is not asked again.
         */
        if (!slots_free(r, w.claim, &full)) {
            claim_wait(r, w.claim, full);
            continue;
        }
        /* Time may have passed while it stood in the queue. */
        if (!claim_passes(r, w.claim, &next_ms)) {
            if (CLAIM_IS_GROUP(w.claim))
                mark_site(r, r->groups.at[CLAIM_INDEX(w.claim)].site);
            else
                mark_target(r, CLAIM_INDEX(w.claim));
            continue;
        }
        slots_take(r, w.claim, &full);
        claim_start(r, w.claim);
        mark_resource(r, claim_resource(r, w.claim));
    }
}

/* ---- hosts that speak FleetLock ---- */

bool slot_claim_host(releases *r, uint32_t res, str rule_)
{
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < r->concurrency.len; i++) {
            uint32_t at = r->concurrency.at[i];
            const rel_rule *the = &r->rules.at[at];
            if (!slot_applies(r, at, res) ||
                (rule_.len > 0 && !str_eq(rule_, rel_text(r, the->id))))
                continue;
            if (pass == 0 && !hold_find(r, res, at) && the->held >= rule_limit(the))
                return false;
            if (pass == 1)
                slot_take(r, res, at, true);
        }
    return true;
}

void slot_free_host(releases *r, uint32_t res, str rule_)
{
    rel_resource *resource_ = &r->resources.at[res];
    for (size_t i = 0; i < resource_->holds.len; i++)
        if (rule_.len == 0 ||
            str_eq(rule_, rel_text(r, r->rules.at[resource_->holds.at[i].rule].id)))
            resource_->holds.at[i].host = false;
    mark_resource_all(r, res);
}
