/* SPDX-License-Identifier: Apache-2.0 */
/* Lanes: targets of one deployment and environment under the same policies. Which version they
 * want is mostly one question for all of them. */
#include <assert.h>

#include "base/mem.h"
#include "engine/chain.h"

/* ---- making lanes ---- */

static bool policy_before(const releases *r, uint32_t a, uint32_t b)
{
    const rel_policy *x = &r->policies.at[a], *y = &r->policies.at[b];
    if (x->doc->spec.priority != y->doc->spec.priority)
        return x->doc->spec.priority > y->doc->spec.priority;
    return str_cmp(rel_text(r, x->name), rel_text(r, y->name)) < 0;
}

static void policies_of(releases *r, uint32_t t, index_list *ret)
{
    ret->len = 0;
    for (uint32_t p = 0; p < r->policies.len; p++) {
        if (!bitset_has(&r->policies.at[p].targets, t) || !r->policies.at[p].doc)
            continue;
        index_add(r, ret, p);
        if (r->core->no_memory)
            return;
        for (size_t i = ret->len - 1; i > 0 && policy_before(r, ret->at[i], ret->at[i - 1]); i--) {
            uint32_t swap = ret->at[i];
            ret->at[i] = ret->at[i - 1];
            ret->at[i - 1] = swap;
        }
    }
}

/* An expression that fails counts as "applies": it may only hold more, never less. */
static bool applies(releases *r, const expression *e, uint32_t d)
{
    bool yes = true;
    if (e->source.ptr && !scope_deployment_matches(r, e, d, &yes, NULL))
        yes = true;
    return yes;
}

static bool rule_applies(releases *r, const rel_rule *rule_, uint32_t d)
{
    if (rule_->kind == RULE_DEPLOYMENT_BRACKET)
        return applies(r, &rule_->doc->deployment_bracket->deployment_selector, d);
    if (rule_->kind == RULE_DEPLOYMENT_DEPENDENCY)
        return applies(r, &rule_->doc->deployment_dependency->applies_to, d);
    return true;
}

static bool version_level_each(const rel_rule *rule_)
{
    return rule_->kind == RULE_VERSION_SELECTOR &&
           expression_sees(&rule_->doc->version_selector->selector, STR("resource"));
}

static bool bypassed_for_resource(const releases *r, const rel_rule *rule_)
{
    for (size_t i = 0; rule_->bypassed && i < r->bypasses.len; i++)
        if (r->bypasses.at[i].rule == rule_->id && r->bypasses.at[i].resource != 0)
            return true;
    return false;
}

static job_role role_in(releases *r, const rel_rule *bracket, uint32_t d)
{
    const deployment_bracket *b = bracket->doc->deployment_bracket;
    if (b->pre_selector.source.ptr && applies(r, &b->pre_selector, d))
        return ROLE_PRE;
    if (b->post_selector.source.ptr && applies(r, &b->post_selector, d))
        return ROLE_POST;
    return ROLE_MEMBER;
}

/* Fills in the rules of a lane, in the order of the chain. A target is a member of one bracket:
 * that of its first policy which has one. */
static void lane_fill_rules(releases *r, uint32_t l)
{
    rel_lane *lane = &r->lanes.at[l];
    uint32_t d = r->cells.at[lane->cell].deployment;
    lane->rules.len = 0;
    lane->bracket = NO;
    lane->role = ROLE_MEMBER;
    lane->each = false;
    for (size_t p = 0; p < lane->policies.len; p++) {
        const rel_policy *policy = &r->policies.at[lane->policies.at[p]];
        for (size_t i = 0; i < policy->rules.len; i++) {
            uint32_t index = policy->rules.at[i];
            const rel_rule *rule_ = &r->rules.at[index];
            if (!rule_applies(r, rule_, d))
                continue;
            if (rule_->kind == RULE_DEPLOYMENT_BRACKET) {
                if (lane->bracket != NO)
                    continue;
                lane->bracket = index;
                lane->role = role_in(r, rule_, d);
            }
            const rule_ops *ops = rule_ops_of(rule_->kind);
            if (version_level_each(rule_) ||
                (ops->level == LEVEL_VERSION && bypassed_for_resource(r, rule_)))
                lane->each = true;
            index_add(r, &lane->rules, index);
            if (r->core->no_memory)
                return;
            uint32_t *at = lane->rules.at;
            for (size_t k = lane->rules.len - 1; k > 0; k--) {
                if (rule_ops_of(r->rules.at[at[k - 1]].kind)->order <=
                    rule_ops_of(r->rules.at[at[k]].kind)->order)
                    break;
                uint32_t swap = at[k];
                at[k] = at[k - 1];
                at[k - 1] = swap;
            }
        }
    }
}

/* The kinds lie beside the rules, and those that pace for themselves. */
static void lane_fill(releases *r, uint32_t l)
{
    lane_fill_rules(r, l);
    rel_lane *lane = &r->lanes.at[l];
    lane->kinds.len = lane->paces.len = 0;
    lane->gates_from = lane->gates_to = 0;
    for (size_t i = 0; i < lane->rules.len; i++) {
        uint8_t kind = (uint8_t)r->rules.at[lane->rules.at[i]].kind;
        lane_pace pace = {lane->rules.at[i], kind, NO};
        rule_level level = rule_ops_of((rule_kind)kind)->level;
        if (level == LEVEL_FIRST || level == LEVEL_EACH) {
            lane->gates_from = lane->gates_to == 0 ? i : lane->gates_from;
            lane->gates_to = i + 1;
        }
        if (!vec_push(&lane->kinds, kind) ||
            (rule_paces((rule_kind)kind) && !vec_push(&lane->paces, pace)))
            rel_no_memory(r);
    }
}

static uint32_t lane_at(releases *r, uint32_t cell, const index_list *policies)
{
    const index_list *lanes = &r->cells.at[cell].lanes;
    for (size_t i = 0; i < lanes->len; i++) {
        const index_list *has = &r->lanes.at[lanes->at[i]].policies;
        if (has->len == policies->len &&
            (has->len == 0 || memcmp(has->at, policies->at, has->len * sizeof *has->at) == 0))
            return lanes->at[i];
    }
    uint32_t l = (uint32_t)r->lanes.len;
    if (!vec_push(&r->lanes, (rel_lane){.cell = cell, .bracket = NO, .wake_ms = NEVER})) {
        rel_no_memory(r);
        return NO;
    }
    for (size_t i = 0; i < policies->len; i++)
        index_add(r, &r->lanes.at[l].policies, policies->at[i]);
    index_add(r, &r->cells.at[cell].lanes, l);
    lane_fill(r, l);
    mark_lane(r, l);
    return l;
}

static void target_join(releases *r, uint32_t t, uint32_t l)
{
    rel_target *target = &r->targets.at[t];
    /* It may need other slots now. */
    claim_withdraw(r, CLAIM_TARGET(t));
    if (target->site != NO && r->sites.at[target->site].ready != NO)
        claim_withdraw(r, CLAIM_GROUP(r->sites.at[target->site].ready));
    if (target->lane != l) {
        if (target->lane != NO)
            r->lanes.at[target->lane].users--;
        target->lane = l;
        if (r->lanes.at[l].users++ == 0)
            mark_lane(r, l); /* while nobody was in it, nobody asked which versions it lets in */
    }
    uint32_t bracket = r->lanes.at[l].bracket, old = target->site;
    uint32_t s = bracket == NO ? NO : site_at(r, bracket, target->environment, target->resource);
    if (s != old) {
        target = &r->targets.at[t];
        target->site = s;
        target_idle(r, t, false);
        if (s != NO)
            site_enter(r, s, t);
        if (old != NO)
            site_leave(r, old, t);
    }
    paces_leave(r, t, false);
    paces_join(r, t);
    mark_target(r, t);
    mark_site(r, s);
    mark_resource(r, r->targets.at[t].resource);
}

void lanes_settle(releases *r)
{
    if (r->relanes.len == 0 && !r->refill)
        return;
    /* Rules may have changed under lanes that stay: fill them in again, once. */
    for (uint32_t l = 0; r->refill && l < r->lanes.len; l++) {
        lane_fill(r, l);
        mark_lane(r, l);
    }
    r->refill = false;
    index_list policies = {0};
    for (size_t i = 0; i < r->relanes.len && !r->core->no_memory; i++) {
        uint32_t t = r->relanes.at[i];
        r->targets.at[t].relane = false;
        if (r->targets.at[t].id == 0)
            continue;
        bool broken = false;
        for (size_t p = 0; p < r->policies.len; p++)
            broken = broken || index_has(&r->policies.at[p].broken, t);
        r->targets.at[t].broken = broken;
        policies_of(r, t, &policies);
        uint32_t l = lane_at(r, r->targets.at[t].cell, &policies);
        if (l != NO)
            target_join(r, t, l);
    }
    orders_extend(r, &r->relanes);
    r->relanes.len = 0;
    vec_done(&policies);
}

/* ---- which version is wanted ---- */

bool version_ready(const releases *r, uint32_t v)
{
    return r->versions.at[v].doc && r->versions.at[v].doc->spec.status == VERSION_READY;
}

/* A version that runs may stay: unless it was withdrawn by its state. */
static bool version_may_stay(const releases *r, uint32_t v)
{
    const version *doc = r->versions.at[v].doc;
    return !doc || doc->spec.status == VERSION_READY || doc->spec.status == VERSION_PAUSED;
}

static rel_candidate ask(releases *r, uint32_t l, uint32_t t, uint32_t v, int64_t *next_ms)
{
    verdict answer;
    bool selected;
    chain_context c = {.r = r, .target = t, .lane = l, .version = v, .group = NO};
    chain_version(&c, &answer, &selected);
    *next_ms = earlier(*next_ms, answer.reason.next_ms);
    return (rel_candidate){.version = v,
                           .passes = answer.kind == VERDICT_ALLOWED,
                           .selected = selected,
                           .eligible_ms =
                               later_of(answer.satisfied_ms, r->versions.at[v].published_ms)};
}

static bool candidates_equal(const rel_candidate *a, size_t count, const rel_lane *lane)
{
    if (count != lane->candidates.len)
        return false;
    for (size_t i = 0; i < count; i++) {
        const rel_candidate *b = &lane->candidates.at[i];
        if (a[i].version != b->version || a[i].passes != b->passes ||
            a[i].selected != b->selected || a[i].eligible_ms != b->eligible_ms)
            return false;
    }
    return true;
}

void lane_refresh(releases *r, uint32_t l)
{
    rel_lane *lane = &r->lanes.at[l];
    lane->dirty = false;
    VEC(rel_candidate) fresh = {0};
    int64_t next_ms = NEVER;
    const rel_cell *cell = &r->cells.at[lane->cell];
    const index_list *versions = &r->deployments.at[cell->deployment].versions;
    for (size_t i = 0; !lane->each && lane->users > 0 && i < versions->len; i++) {
        if (!version_ready(r, versions->at[i]))
            continue;
        rel_candidate c = ask(r, l, NO, versions->at[i], &next_ms);
        if (!vec_push(&fresh, c)) {
            rel_no_memory(r);
            break;
        }
        /* Who refuses it asks about older ones. */
        if (c.passes && r->versions.at[c.version].refused == 0)
            break;
    }
    wake_at(r, WAKE_LANE, l, next_ms);
    bool same = !lane->each && candidates_equal(fresh.at, fresh.len, lane);
    vec_done(&lane->candidates);
    lane->candidates.at = fresh.at;
    lane->candidates.len = fresh.len;
    lane->candidates.cap = fresh.cap;
    if (same)
        return;
    for (size_t i = 0; i < cell->targets.len; i++)
        if (r->targets.at[cell->targets.at[i]].lane == l) {
            mark_target(r, cell->targets.at[i]);
            mark_site(r, r->targets.at[cell->targets.at[i]].site);
        }
}

/* The lane's answer for a version, if it is among those all its targets share. */
static bool shared_answer(const rel_lane *lane, uint32_t v, rel_candidate *ret)
{
    for (size_t i = 0; !lane->each && i < lane->candidates.len; i++)
        if (lane->candidates.at[i].version == v) {
            *ret = lane->candidates.at[i];
            return true;
        }
    return false;
}

/* Whether versionSelector would have the version. */
bool target_selects(releases *r, uint32_t t, uint32_t v)
{
    const rel_lane *lane = &r->lanes.at[r->targets.at[t].lane];
    rel_candidate shared;
    if (shared_answer(lane, v, &shared) && shared.passes)
        return true;
    chain_context c = {
        .r = r, .target = t, .lane = r->targets.at[t].lane, .version = v, .group = NO};
    size_t at = 0;
    for (uint32_t rule_; (rule_ = lane_next(lane, RULE_VERSION_SELECTOR, &at)) != NO;) {
        verdict answer;
        chain_rule(&c, rule_, &answer);
        if (answer.kind != VERDICT_ALLOWED)
            return false;
    }
    return true;
}

rel_candidate version_answer(releases *r, uint32_t t, uint32_t v)
{
    rel_candidate c;
    int64_t unused = NEVER;
    if (!shared_answer(&r->lanes.at[r->targets.at[t].lane], v, &c))
        c = ask(r, r->targets.at[t].lane, t, v, &unused);
    return c;
}

bool target_want(releases *r, uint32_t t)
{
    rel_target *target = &r->targets.at[t];
    const rel_lane *lane = &r->lanes.at[target->lane];
    const index_list *versions = &r->deployments.at[target->deployment].versions;
    uint32_t wanted = target->current, aim = NO;
    int64_t eligible_ms = NEVER, next_ms = NEVER;
    for (size_t i = 0; i < versions->len; i++) {
        uint32_t v = versions->at[i];
        if (v == target->current && version_may_stay(r, v) && target_selects(r, t, v))
            break;
        if (v == target->current || !version_ready(r, v) ||
            (target->refusals > 0 && target_refused(r, t, v, NULL)))
            continue;
        rel_candidate c;
        if (!shared_answer(lane, v, &c))
            c = ask(r, target->lane, t, v, &next_ms);
        if (c.passes) {
            wanted = v;
            eligible_ms = c.eligible_ms;
            break;
        }
        if (c.selected && aim == NO)
            aim = v;
    }
    if (lane->each)
        wake_at(r, WAKE_LANE, target->lane, earlier(lane->wake_ms, next_ms));
    bool changed =
        target->wanted != wanted || target->aim != aim || target->eligible_ms != eligible_ms;
    target->wanted = wanted;
    target->aim = aim;
    target->eligible_ms = eligible_ms;
    return changed;
}

uint32_t target_goal(const releases *r, uint32_t t)
{
    const rel_target *target = &r->targets.at[t];
    uint32_t g;
    if (target->job != 0)
        return target->job_version;
    const rel_member *m = member_of_target(r, t, &g);
    if (m)
        return m->version;
    if (target->site == NO)
        return target->wanted;
    /* A hook has nothing to do on its own. */
    if (r->lanes.at[target->lane].role != ROLE_MEMBER)
        return target->current;
    return target->wanted;
}

/* ---- versions that are refused on a target ---- */

bool target_refused(const releases *r, uint32_t t, uint32_t version_, rel_refusal *ret)
{
    uint32_t why = keymap_get(&r->refused, KEY_PAIR(t, version_));
    if (why == NO)
        return false;
    if (ret)
        *ret = (rel_refusal)why;
    return true;
}

void target_refuse(releases *r, uint32_t t, uint32_t version_, rel_refusal why)
{
    if (version_ == NO)
        return;
    if (!target_refused(r, t, version_, NULL)) {
        r->targets.at[t].refusals++;
        r->versions.at[version_].refused++;
        if (r->targets.at[t].lane != NO)
            mark_lane(r, r->targets.at[t].lane);
    }
    if (!keymap_put(&r->refused, KEY_PAIR(t, version_), (uint32_t)why))
        rel_no_memory(r);
    mark_target(r, t);
}

void target_pardon(releases *r, uint32_t t, uint32_t version_)
{
    const index_list *versions = &r->deployments.at[r->targets.at[t].deployment].versions;
    for (size_t i = 0; i < versions->len; i++) {
        uint32_t v = versions->at[i];
        if ((version_ != NO && version_ != v) || !target_refused(r, t, v, NULL))
            continue;
        keymap_remove(&r->refused, KEY_PAIR(t, v));
        r->targets.at[t].refusals--;
        r->versions.at[v].refused--;
    }
    mark_target(r, t);
}
