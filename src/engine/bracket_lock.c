/* SPDX-License-Identifier: Apache-2.0 */
/* deploymentBracket, first half: a version group opens, collects and locks.
 *
 * What is collecting is not stored: it is computed from the versions, what runs and what is
 * locked. */
#include <assert.h>

#include "base/mem.h"
#include "engine/chain.h"

/* ---- sites ---- */

uint32_t site_at(releases *r, uint32_t rule_, uint32_t environment_, uint32_t resource_)
{
    const index_list *sites = &r->resources.at[resource_].sites;
    for (size_t i = 0; i < sites->len; i++) {
        const rel_site *s = &r->sites.at[sites->at[i]];
        if (s->rule == rule_ && s->environment == environment_)
            return sites->at[i];
    }
    uint32_t s = (uint32_t)r->sites.len;
    rel_site fresh = {.used = true,
                      .rule = rule_,
                      .environment = environment_,
                      .resource = resource_,
                      .opened_ms = NEVER,
                      .ready = NO,
                      .active = NO,
                      .wake_ms = NEVER};
    if (!vec_push(&r->sites, fresh)) {
        rel_no_memory(r);
        return NO;
    }
    index_list *on = &r->resources.at[resource_].sites;
    index_add(r, on, s);
    for (size_t i = on->len; i-- > 1 && site_cmp(r, on->at[i - 1], on->at[i]) > 0;) {
        uint32_t swap = on->at[i];
        on->at[i] = on->at[i - 1];
        on->at[i - 1] = swap;
    }
    return s;
}

static str member_name(const releases *r, uint32_t t)
{
    return rel_text(r, r->deployments.at[r->targets.at[t].deployment].name);
}

void site_enter(releases *r, uint32_t s, uint32_t target)
{
    index_list *list = &r->sites.at[s].targets;
    index_add(r, list, target);
    for (size_t i = list->len; i-- > 1;) {
        if (str_cmp(member_name(r, list->at[i - 1]), member_name(r, list->at[i])) <= 0)
            break;
        uint32_t swap = list->at[i];
        list->at[i] = list->at[i - 1];
        list->at[i - 1] = swap;
    }
}

int site_cmp(const releases *r, uint32_t a, uint32_t b)
{
    const rel_site *x = &r->sites.at[a], *y = &r->sites.at[b];
    int c = str_cmp(rel_text(r, r->resources.at[x->resource].name),
                    rel_text(r, r->resources.at[y->resource].name));
    if (c == 0)
        c = str_cmp(r->rules.at[x->rule].scope, r->rules.at[y->rule].scope);
    if (c == 0)
        c = str_cmp(rel_text(r, r->environments.at[x->environment].name),
                    rel_text(r, r->environments.at[y->environment].name));
    return c;
}

void site_leave(releases *r, uint32_t s, uint32_t target)
{
    index_drop(&r->sites.at[s].targets, target);
    mark_site(r, s);
}

void target_idle(releases *r, uint32_t t, bool idle)
{
    rel_target *target = &r->targets.at[t];
    if (target->idle == idle)
        return;
    target->idle = idle;
    r->cells.at[target->cell].idle += idle ? 1 : -1u;
    mark_followers(r, target->cell);
}

void site_idle(releases *r, uint32_t s)
{
    const index_list *targets = &r->sites.at[s].targets;
    bool alone = true;
    for (size_t i = 0; i < targets->len && alone; i++)
        alone = r->lanes.at[r->targets.at[targets->at[i]].lane].role != ROLE_MEMBER;
    for (size_t i = 0; i < targets->len; i++)
        target_idle(r, targets->at[i], alone);
}

name_id group_name(releases *r, uint32_t s, uint32_t number)
{
    const rel_site *site = &r->sites.at[s];
    arena_place place_ = arena_mark(r->scratch);
    str text = arena_printf(r->scratch, "%.*s/%.*s/%.*s/%u",
                            STR_ARG(rel_text(r, r->rules.at[site->rule].id)),
                            STR_ARG(rel_text(r, r->environments.at[site->environment].name)),
                            STR_ARG(rel_text(r, r->resources.at[site->resource].name)), number);
    name_id n = rel_name(r, text);
    arena_rewind(r->scratch, place_);
    return n;
}

static void tell_collecting(releases *r, uint32_t s, str state, str detail)
{
    const rel_site *site = &r->sites.at[s];
    if (!r->core->out || site->targets.len == 0)
        return;
    decision *d = decide(r, DECISION_GROUP, site->targets.at[0]);
    if (!d)
        return;
    d->change = STR_EMPTY;
    d->group = rel_text(r, group_name(r, s, site->announced));
    d->state = state;
    d->detail = detail;
}

/* ---- what is new ---- */

static bool exhausted(const releases *r, uint32_t t, uint32_t v)
{
    const rel_target *target = &r->targets.at[t];
    return target->failed_version == v && target->attempts > 0 && !retry_ask(r, t).again;
}

/* The version a group has locked for a target and not finished; NO: none. */
static uint32_t locked_in(const releases *r, uint32_t g, uint32_t t)
{
    const rel_member *m = g == NO ? NULL : member_in(r, g, t);
    if (m && m->later != NO)
        return m->later;
    return !m || m->redeploy ? NO : m->version;
}

/* A version that is to be deployed, as against what runs and what is locked. */
static bool is_new(const releases *r, uint32_t t, uint32_t v, uint32_t locked)
{
    const rel_target *target = &r->targets.at[t];
    if (v == NO || v == target->current || exhausted(r, t, v))
        return false;
    return locked == NO || (locked != v && !version_newer(r, locked, v));
}

static bool fresh_for_lock(const releases *r, const rel_site *site, uint32_t t)
{
    /* A group that waits or has failed is superseded by the next: what it locked is still to do. */
    uint32_t running = NO;
    if (site->active != NO && r->groups.at[site->active].state == GROUP_STATE_EXECUTING)
        running = locked_in(r, site->active, t);
    return is_new(r, t, r->targets.at[t].wanted, running);
}

/* When a member's versions open a group: the first that is new. NEVER: none is. */
static int64_t opened_by(releases *r, const rel_site *site, uint32_t t)
{
    const rel_target *target = &r->targets.at[t];
    const index_list *versions = &r->deployments.at[target->deployment].versions;
    uint32_t ready = locked_in(r, site->ready, t), active = locked_in(r, site->active, t);
    bool eligible = r->rules.at[site->rule].trigger == TRIGGER_ELIGIBLE;
    int64_t opened = NEVER;
    /* Older ones than what runs open nothing, unless that one was withdrawn or is refused now. */
    bool back = target->current != NO && target->wanted != NO &&
                version_newer(r, target->current, target->wanted);
    for (size_t i = 0; i < versions->len; i++) {
        uint32_t v = versions->at[i];
        bool older =
            v == target->current || (target->current != NO && version_newer(r, target->current, v));
        if (older && !back)
            break;
        if (older && v != target->wanted)
            continue;
        if (!version_ready(r, v) || !is_new(r, t, v, ready) || !is_new(r, t, v, active) ||
            (target->refusals > 0 && target_refused(r, t, v, NULL)) || !target_selects(r, t, v))
            continue;
        if (!eligible) {
            opened = earlier(opened, r->versions.at[v].published_ms);
            continue;
        }
        rel_candidate c = version_answer(r, t, v);
        if (c.passes)
            opened = earlier(opened, c.eligible_ms);
    }
    return opened;
}

static bool forced(const releases *r, const rel_site *site, uint32_t t)
{
    return r->rules.at[site->rule].bypassed &&
           bypass_find(r, site->rule, r->targets.at[t].wanted, site->environment, site->resource);
}

void site_collect(releases *r, uint32_t s, site_collection *ret)
{
    const rel_site *site = &r->sites.at[s];
    const rel_rule *rule_ = &r->rules.at[site->rule];
    *ret = (site_collection){.opened_ms = NEVER, .locks_ms = NEVER, .missing = NO};
    bool at_once = rule_->readiness == READINESS_IMMEDIATE;
    for (size_t i = 0; i < site->targets.len; i++) {
        uint32_t t = site->targets.at[i];
        const rel_target *target = &r->targets.at[t];
        r->core->looked_at++;
        if (r->lanes.at[target->lane].role != ROLE_MEMBER) {
            if (target->wanted == NO && target->current == NO)
                ret->missing = t;
            continue;
        }
        ret->ordinary++;
        ret->opened_ms = earlier(ret->opened_ms, opened_by(r, site, t));
        if (!fresh_for_lock(r, site, t))
            continue;
        ret->eligible++;
        uint32_t wanted = target->wanted;
        ret->news += is_new(r, t, wanted, locked_in(r, site->ready, t)) &&
                     is_new(r, t, wanted, locked_in(r, site->active, t));
        at_once = at_once || forced(r, site, t);
    }
    if (!rule_->doc || ret->opened_ms == NEVER) {
        ret->opened_ms = NEVER;
        return;
    }
    int64_t closes = ret->opened_ms + rule_->window_ms;
    bool all =
        (rule_->readiness == READINESS_WAIT_FOR_ALL || rule_->unchanged == UNCHANGED_REQUIRE_ALL) &&
        ret->eligible == ret->ordinary;
    bool closed = at_once || all || r->core->now_ms >= closes;
    ret->due = closed && ret->news > 0 && ret->missing == NO;
    ret->locks_ms = closed ? NEVER : closes;
}

/* ---- locking ---- */

static void lock_member(releases *r, uint32_t g, uint32_t t, bool fresh)
{
    const rel_target *target = &r->targets.at[t];
    const rel_site *site = &r->sites.at[r->groups.at[g].site];
    rel_member m = {.target = t, .later = NO, .good = NO, .role = r->lanes.at[target->lane].role};
    if (m.role != ROLE_MEMBER) {
        m.version = target->wanted != NO ? target->wanted : target->current;
        m.redeploy = true;
    } else if (fresh) {
        m.version = target->wanted;
    } else if (r->rules.at[site->rule].unchanged == UNCHANGED_REDEPLOY_CURRENT &&
               target->current != NO) {
        m.version = target->current;
        m.redeploy = true;
    } else {
        return;
    }
    if (!vec_push(&r->groups.at[g].members, m))
        rel_no_memory(r);
}

static void site_lock(releases *r, uint32_t s, int64_t opened_ms)
{
    rel_rule *rule_ = &r->rules.at[r->sites.at[s].rule];
    if (rule_->unfinished == 0)
        bracket_order_start(r, r->sites.at[s].rule);
    uint32_t g = group_new(r, s);
    if (g == NO)
        return;
    rel_site *site = &r->sites.at[s];
    rel_group *group = &r->groups.at[g];
    group->opened_ms = opened_ms;
    group->locked_ms = group->turn_ms = r->core->now_ms;
    for (size_t i = 0; i < site->targets.len; i++)
        lock_member(r, g, site->targets.at[i], fresh_for_lock(r, site, site->targets.at[i]));
    group->counted = true;
    rule_->unfinished++;
    uint32_t older = site->ready;
    if (older != NO) {
        group->turn_ms = r->groups.at[older].turn_ms;
        group->took_over = r->groups.at[older].took_over;
        group_end(r, older, GROUP_STATE_SUPERSEDED, rel_text(r, group->name));
    }
    r->sites.at[s].ready = g;
    bool busy = r->resources.at[site->resource].active != NO;
    group_state_set(r, g, busy ? GROUP_STATE_QUEUED : GROUP_STATE_READY, STR_EMPTY);
}

/* ---- a site that something happened to ---- */

static void announce(releases *r, uint32_t s, int64_t opened_ms)
{
    rel_site *site = &r->sites.at[s];
    site->opened_ms = opened_ms;
    if (opened_ms != NEVER && site->announced == 0) {
        site->announced = ++site->groups;
        tell_collecting(r, s, STR("collecting"), STR_EMPTY);
    } else if (opened_ms == NEVER && site->announced != 0) {
        tell_collecting(r, s, STR("superseded"), STR("nothing is left to collect"));
        site->announced = 0;
    }
}

/* Opens and locks as often as there is something to lock now. Returns when to look again. */
static int64_t collect_and_lock(releases *r, uint32_t s)
{
    for (;;) {
        site_collection c;
        site_collect(r, s, &c);
        announce(r, s, c.opened_ms);
        if (!c.due || r->core->no_memory)
            return c.locks_ms;
        site_lock(r, s, c.opened_ms);
    }
}

/* The group that is ready: whether it may start. Returns when to ask again. */
static int64_t offer_ready(releases *r, uint32_t s)
{
    uint32_t g = r->sites.at[s].ready;
    if (g == NO) {
        paces_report(r, CLAIM_GROUP(s), false);
        return NEVER;
    }
    rel_group *group = &r->groups.at[g];
    bool busy = r->resources.at[r->sites.at[s].resource].active != NO;
    rel_group_state state = busy ? GROUP_STATE_QUEUED : GROUP_STATE_READY;
    if (group->state != state)
        group_state_set(r, g, state, STR_EMPTY);
    int64_t next_ms = NEVER;
    if (!busy && group_prune(r, g)) {
        group_end(r, g, GROUP_STATE_COMPLETED, STR("nothing is left to change"));
        return NEVER;
    }
    bool gates = !busy && claim_gates(r, CLAIM_GROUP(g), &next_ms);
    paces_report(r, CLAIM_GROUP(s), gates);
    if (gates && paces_permit(r, CLAIM_GROUP(g)))
        claim_offer(r, CLAIM_GROUP(g));
    else
        claim_withdraw(r, CLAIM_GROUP(g));
    return next_ms;
}

/* When a member of the executing group is to be tried again. */
static int64_t next_retry(const releases *r, uint32_t g)
{
    int64_t next_ms = NEVER;
    for (size_t i = 0; g != NO && i < r->groups.at[g].members.len; i++) {
        const rel_member *m = &r->groups.at[g].members.at[i];
        if (m->state != MEMBER_IS_PENDING || r->targets.at[m->target].failed_version != m->version)
            continue;
        retry_answer a = retry_ask(r, m->target);
        if (a.again && a.at_ms > r->core->now_ms)
            next_ms = earlier(next_ms, a.at_ms);
    }
    return next_ms;
}

void site_refresh(releases *r, uint32_t s)
{
    rel_site *site = &r->sites.at[s];
    for (size_t i = 0; i < site->targets.len; i++)
        if (r->targets.at[site->targets.at[i]].dirty)
            target_want(r, site->targets.at[i]);
    /* A group that has begun keeps its members; one that waits lets go who left the bracket. */
    for (size_t i = 0; site->ready != NO && i < r->groups.at[site->ready].members.len;) {
        uint32_t t = r->groups.at[site->ready].members.at[i].target;
        if (r->targets.at[t].site == s)
            i++;
        else
            group_forget_target(r, site->ready, t);
    }
    if (site->ready != NO)
        group_relock(r, site->ready);
    if (site->active != NO) {
        group_relock(r, site->active);
        if (site->active != NO)
            group_resume(r, site->active); /* who failed may have left */
    }
    int64_t next_ms = collect_and_lock(r, s);
    if (!r->rules.at[r->sites.at[s].rule].doc && r->sites.at[s].ready != NO)
        group_end(r, r->sites.at[s].ready, GROUP_STATE_SUPERSEDED, STR("the rule is gone"));
    group_supersede(r, s);
    group_merge(r, s);
    if (r->sites.at[s].active != NO)
        group_advance(r, r->sites.at[s].active);
    next_ms = earlier(next_ms, offer_ready(r, s));
    next_ms = earlier(next_ms, next_retry(r, r->sites.at[s].active));
    wake_at(r, WAKE_SITE, s, next_ms);
    mark_resource(r, r->sites.at[s].resource);
}
