/* SPDX-License-Identifier: Apache-2.0 */
/* What must hold. releases_verify looks at the state; releases_compare works everything out
 * again, from the documents, and compares it with what the steps arrived at. */
#include <assert.h>

#include "base/mem.h"
#include "engine/chain.h"

/* ---- invariants ---- */

static bool verify_slots(const releases *r, err *error)
{
    for (uint32_t i = 0; i < r->rules.len; i++) {
        const rel_rule *rule_ = &r->rules.at[i];
        int64_t held = 0, matched = 0;
        if (rule_->kind != RULE_RESOURCE_CONCURRENCY)
            continue;
        for (uint32_t res = 0; res < r->resources.len; res++) {
            held += hold_find(r, res, i) != NULL;
            matched += bitset_has(&rule_->group, res);
        }
        if (held != rule_->held)
            return err_set(error, "rule %.*s counts %lld slots, %lld are held",
                           STR_ARG(rel_text(r, rule_->id)), (long long)rule_->held,
                           (long long)held);
        if (rule_->doc && matched != rule_->matched)
            return err_set(error, "rule %.*s counts %lld resources, %lld match",
                           STR_ARG(rel_text(r, rule_->id)), (long long)rule_->matched,
                           (long long)matched);
    }
    return true;
}

/* I1: who took a slot for a job in the last step found one free. What shrinks later takes none
 * away. */
static bool verify_limits(const releases *r, err *error)
{
    for (uint32_t res = 0; res < r->resources.len; res++)
        for (size_t i = 0; i < r->resources.at[res].holds.len; i++) {
            const rel_hold *hold = &r->resources.at[res].holds.at[i];
            const rel_rule *rule_ = &r->rules.at[hold->rule];
            if (hold->step == r->step && rule_->held > rule_limit(rule_))
                return err_set(error, "I1: rule %.*s has %lld slots, and %.*s took one of %lld",
                               STR_ARG(rel_text(r, rule_->id)), (long long)rule_limit(rule_),
                               STR_ARG(rel_text(r, r->resources.at[res].name)),
                               (long long)rule_->held);
        }
    return true;
}

/* I2: no job without its slots, unless documents changed under it. */
static bool verify_claims(const releases *r, err *error)
{
    for (uint32_t t = 0; t < r->targets.len; t++) {
        const rel_target *target = &r->targets.at[t];
        if (target->id == 0 || target->job == 0 || target->job_epoch != r->epoch)
            continue;
        const rel_lane *lane = &r->lanes.at[target->lane];
        for (size_t i = 0; i < lane->rules.len; i++)
            if (r->rules.at[lane->rules.at[i]].kind == RULE_RESOURCE_CONCURRENCY &&
                slot_applies(r, lane->rules.at[i], target->resource) &&
                !hold_find(r, target->resource, lane->rules.at[i]))
                return err_set(error, "I2: a job runs on %.*s without a slot",
                               STR_ARG(rel_text(r, r->resources.at[target->resource].name)));
    }
    return true;
}

static bool verify_member(const releases *r, const rel_group *g, const rel_member *m, err *error)
{
    const rel_target *t = &r->targets.at[m->target];
    if ((m->state == MEMBER_IS_RUNNING) != (t->job != 0 && t->job_group != NO))
        return err_set(error, "group %.*s: a member's state and its job disagree",
                       STR_ARG(rel_text(r, g->name)));
    if (m->state != MEMBER_IS_RUNNING)
        return true;
    for (size_t i = 0; i < g->members.len; i++) {
        const rel_member *before = &g->members.at[i];
        bool first = (before->role == ROLE_PRE && m->role != ROLE_PRE) ||
                     (m->role == ROLE_POST && before->role != ROLE_POST);
        if (first && !member_over(before))
            return err_set(error, "I7: group %.*s: a member runs before those that prepare it",
                           STR_ARG(rel_text(r, g->name)));
    }
    return true;
}

/* At most one group executes on a resource, and its members run in order. */
static bool verify_groups(const releases *r, err *error)
{
    for (uint32_t g = 0; g < r->groups.len; g++) {
        const rel_group *group = &r->groups.at[g];
        if (!group->used)
            continue;
        const rel_site *site = &r->sites.at[group->site];
        bool begun = group->state == GROUP_STATE_EXECUTING || group->state == GROUP_STATE_FAILED;
        if (begun != (r->resources.at[site->resource].active == g) || begun != (site->active == g))
            return err_set(error, "group %.*s is %.*s, but the resource says otherwise",
                           STR_ARG(rel_text(r, group->name)),
                           STR_ARG(group_state_text(group->state)));
        for (size_t i = 0; begun && i < group->members.len; i++)
            if (!verify_member(r, group, &group->members.at[i], error))
                return false;
    }
    for (uint32_t i = 0; i < r->rules.len; i++) {
        uint32_t unfinished = 0;
        for (uint32_t g = 0; g < r->groups.len; g++)
            unfinished += r->groups.at[g].used && r->sites.at[r->groups.at[g].site].rule == i;
        if (unfinished != r->rules.at[i].unfinished)
            return err_set(error, "rule %.*s counts its version groups wrongly",
                           STR_ARG(rel_text(r, r->rules.at[i].id)));
    }
    return true;
}

bool releases_verify(const releases *r, err *error)
{
    return verify_slots(r, error) && verify_limits(r, error) && verify_claims(r, error) &&
           verify_groups(r, error) && releases_history(r, error) && paces_check(r, error);
}

/* ---- from scratch ---- */

/* But for the occurrences of windows: they are the calendar's, and no fact changes them. */
static void forget_answers(releases *r)
{
    for (size_t i = 0; i < r->rules.len; i++) {
        rel_rule *rule_ = &r->rules.at[i];
        rule_->matches.len = 0;
        rule_->upstream.len = 0;
        keymap_clear(&rule_->selected);
    }
}

/* A selector over resources, and which ones it matches as it was written down. */
typedef struct selector {
    const expression *expression; /* NULL: its document is gone, and it matches nothing */
    const bitset *have;
    name_id name;
    size_t same; /* the first selector that says the same, maybe this one */
} selector;
typedef VEC(selector) selector_list;

static bool selector_add(selector_list *list, const expression *e, const bitset *have, name_id name)
{
    selector one = {e, have, name, list->len};
    for (size_t i = 0; e && i < list->len; i++)
        if (list->at[i].expression && list->at[i].expression->scope == e->scope &&
            str_eq(list->at[i].expression->source, e->source)) {
            one.same = i;
            break;
        }
    return vec_push(list, one);
}

static bool selectors_of(const releases *r, selector_list *ret)
{
    bool good = true;
    for (uint32_t d = 0; good && d < r->deployments.len; d++) {
        const rel_deployment *dep = &r->deployments.at[d];
        good = selector_add(ret, dep->doc ? &dep->doc->spec.resource_selector : NULL,
                            &dep->resources, dep->name);
    }
    for (uint32_t e = 0; good && e < r->environments.len; e++) {
        const rel_environment *env = &r->environments.at[e];
        good = selector_add(ret, env->doc ? &env->doc->spec.resource_selector : NULL,
                            &env->resources, env->name);
    }
    for (size_t k = 0; good && k < r->concurrency.len; k++) {
        const rel_rule *rule_ = &r->rules.at[r->concurrency.at[k]];
        good = selector_add(ret, &rule_->doc->resource_concurrency->group_selector, &rule_->group,
                            rule_->id);
    }
    return good;
}

/* All selectors for one resource, while it is at hand; who says the same is asked once. */
static bool compare_resource(releases *r, const selector_list *list, bool *matched, uint32_t res,
                             err *error)
{
    for (size_t i = 0; i < list->len; i++) {
        const selector *s = &list->at[i];
        matched[i] = false;
        if (s->same != i)
            matched[i] = matched[s->same];
        else if (!s->expression || !r->resources.at[res].object ||
                 !scope_resource_matches(r, s->expression, res, &matched[i], NULL))
            matched[i] = false;
        if (matched[i] != bitset_has(s->have, res))
            return err_set(error, "%.*s does not count %.*s as its selector says",
                           STR_ARG(rel_text(r, s->name)),
                           STR_ARG(rel_text(r, r->resources.at[res].name)));
    }
    return true;
}

static bool compare_selectors(releases *r, err *error)
{
    selector_list list = {0};
    bool *matched = NULL;
    bool good = selectors_of(r, &list);
    if (good)
        matched = mem_alloc((list.len + 1) * sizeof *matched);
    good = matched || err_memory(error);
    for (uint32_t res = 0; good && res < r->resources.len; res++)
        good = compare_resource(r, &list, matched, res, error);
    mem_free(matched);
    vec_done(&list);
    return good;
}

/* There is a target wherever a deployment and an environment select the same resource. */
static bool compare_cell(releases *r, uint32_t d, uint32_t e, bitset *have, err *error)
{
    const rel_deployment *dep = &r->deployments.at[d];
    const rel_environment *env = &r->environments.at[e];
    uint32_t c = keymap_get(&r->cell_of, KEY_PAIR(d, e));
    const index_list *targets = c == NO ? NULL : &r->cells.at[c].targets;
    bool good = true;
    for (size_t i = 0; targets && i < targets->len; i++) {
        uint32_t res = r->targets.at[targets->at[i]].resource;
        good = good && !bitset_has(have, res) && r->targets.at[targets->at[i]].cell == c;
        if (!bitset_put(have, res, true))
            return err_memory(error);
    }
    for (uint32_t res = 0; good && res < r->resources.len; res++) {
        bool want = bitset_has(&dep->resources, res) && bitset_has(&env->resources, res);
        if (want != bitset_has(have, res))
            return err_set(error, "%.*s on %.*s should %sbe a release target",
                           STR_ARG(rel_text(r, dep->name)),
                           STR_ARG(rel_text(r, r->resources.at[res].name)), want ? "" : "not ");
    }
    return good || err_set(error, "a target of %.*s is in the wrong cell, or in it twice",
                           STR_ARG(rel_text(r, dep->name)));
}

static bool compare_matrix(releases *r, err *error)
{
    size_t targets = 0;
    bool good = true;
    for (uint32_t d = 0; good && d < r->deployments.len; d++)
        for (uint32_t e = 0; good && e < r->environments.len; e++) {
            bitset have = {0};
            good = compare_cell(r, d, e, &have, error);
            bitset_done(&have);
        }
    for (uint32_t t = 0; t < r->targets.len; t++)
        targets += r->targets.at[t].id != 0;
    if (good && (targets != r->target_of.len || targets != r->placement_of.len))
        good = err_set(error, "%zu targets are there, %zu are found by name", targets,
                       r->target_of.len);
    return good;
}

static bool policy_asked(const releases *r, uint32_t p)
{
    return r->policies.at[p].doc && r->policies.at[p].doc->spec.enabled;
}

/* Whether it must be asked for each resource. */
static bool policy_each(const releases *r, uint32_t p)
{
    return policy_asked(r, p) &&
           expression_sees(&r->policies.at[p].doc->spec.selector, STR("resource"));
}

/* A lane's policies are those that select it; res is NO for the policies that do not look at the
 * resource: they are asked once for all targets of the lane. */
static bool compare_policies(releases *r, uint32_t l, uint32_t res, err *error)
{
    const rel_lane *lane = &r->lanes.at[l];
    const rel_cell *cell = &r->cells.at[lane->cell];
    for (uint32_t p = 0; p < r->policies.len; p++) {
        const rollout_policy *doc = r->policies.at[p].doc;
        bool asked = policy_asked(r, p), in = false;
        if (policy_each(r, p) != (res != NO))
            continue;
        if (asked && !scope_release_matches(
                         r, &doc->spec.selector,
                         (scope_release){cell->deployment, cell->environment, res, NO}, &in, NULL))
            in = false;
        if (in != index_has(&lane->policies, p))
            return err_set(error, "policy %.*s: its targets are not those its selector matches",
                           STR_ARG(rel_text(r, r->policies.at[p].name)));
    }
    return true;
}

static bool compare_lanes(releases *r, err *error)
{
    for (uint32_t l = 0; l < r->lanes.len; l++)
        if (r->lanes.at[l].users > 0 && !compare_policies(r, l, NO, error))
            return false;
    return true;
}

static str name_of(const releases *r, uint32_t t)
{
    const rel_target *target = &r->targets.at[t];
    return arena_printf(r->core->step, "%.*s on %.*s",
                        STR_ARG(rel_text(r, r->deployments.at[target->deployment].name)),
                        STR_ARG(rel_text(r, r->resources.at[target->resource].name)));
}

/* A claim that every gate lets through must have started, or stand in the queue of a full rule. */
static bool compare_claim(releases *r, uint32_t claim, uint32_t waits_in, str what, err *error)
{
    int64_t unused;
    bool passes = paces_permit(r, claim) && claim_gates(r, claim, &unused);
    if (!passes)
        return waits_in == NO ||
               err_set(error, "%.*s waits for a slot and could not use it", STR_ARG(what));
    if (waits_in == NO)
        return err_set(error, "%.*s could start and has not", STR_ARG(what));
    const rel_rule *rule_ = &r->rules.at[waits_in];
    if (rule_->held < rule_limit(rule_) || hold_find(r, claim_resource(r, claim), waits_in))
        return err_set(error, "%.*s waits for a slot that is free", STR_ARG(what));
    return true;
}

/* Everybody who waits stands in one queue, once, at the place that is his. */
static bool compare_queues(releases *r, err *error)
{
    size_t waiting = 0, standing = 0;
    for (uint32_t t = 0; t < r->targets.len; t++)
        waiting += r->targets.at[t].id != 0 && r->targets.at[t].waits_in != NO;
    for (uint32_t g = 0; g < r->groups.len; g++)
        waiting += r->groups.at[g].used && r->groups.at[g].waits_in != NO;
    for (size_t k = 0; k < r->concurrency.len; k++) {
        const rel_rule *rule_ = &r->rules.at[r->concurrency.at[k]];
        for (size_t i = 0; i < rule_->waiters.len; i++) {
            const rel_waiter *w = &rule_->waiters.at[i];
            if (!waiter_stands(r, w))
                continue;
            standing++;
            if (w->position != claim_position(r, w->claim))
                return err_set(
                    error, "%.*s stands in the queue at a place it no longer has",
                    STR_ARG(rel_text(r, r->resources.at[claim_resource(r, w->claim)].name)));
        }
    }
    return standing == waiting ||
           err_set(error, "%zu wait for slots, %zu stand in the queues", waiting, standing);
}

/* each: some policy looks at the resource. */
static bool compare_target(releases *r, uint32_t t, bool each, err *error)
{
    rel_target *target = &r->targets.at[t];
    uint32_t wanted = target->wanted, waits_in = target->waits_in;
    if (r->lanes.at[target->lane].cell != target->cell)
        return err_set(error, "%.*s is in a lane of others", STR_ARG(name_of(r, t)));
    if (each && !compare_policies(r, target->lane, target->resource, error))
        return false;
    if (target_want(r, t)) {
        target->wanted = wanted;
        return err_set(error, "%.*s should want another version", STR_ARG(name_of(r, t)));
    }
    return compare_claim(r, CLAIM_TARGET(t), waits_in,
                         rel_text(r, r->resources.at[target->resource].name), error);
}

static bool compare_site(releases *r, uint32_t s, err *error)
{
    const rel_site *site = &r->sites.at[s];
    site_collection c;
    site_collect(r, s, &c);
    if (c.opened_ms != site->opened_ms || c.due)
        return err_set(error, "a version group on %.*s should have %s",
                       STR_ARG(rel_text(r, r->resources.at[site->resource].name)),
                       c.due ? "locked" : "opened at another time");
    if (site->ready != NO) {
        const rel_group *g = &r->groups.at[site->ready];
        return compare_claim(r, CLAIM_GROUP(site->ready), g->waits_in, rel_text(r, g->name), error);
    }
    const rel_group *g = site->active == NO ? NULL : &r->groups.at[site->active];
    if (!g || g->state != GROUP_STATE_EXECUTING)
        return true;
    return compare_claim(r, CLAIM_GROUP(site->active), g->waits_in, rel_text(r, g->name), error);
}

/* Hooks that have nobody to prepare are known as such. */
static bool compare_idle(const releases *r, err *error)
{
    for (uint32_t c = 0; c < r->cells.len; c++) {
        const rel_cell *cell = &r->cells.at[c];
        uint32_t idle = 0;
        for (size_t i = 0; i < cell->targets.len; i++) {
            const rel_target *t = &r->targets.at[cell->targets.at[i]];
            bool alone = t->site != NO;
            for (size_t k = 0; alone && k < r->sites.at[t->site].targets.len; k++)
                alone = r->lanes.at[r->targets.at[r->sites.at[t->site].targets.at[k]].lane].role !=
                        ROLE_MEMBER;
            idle += alone;
        }
        if (idle != cell->idle)
            return err_set(error, "%.*s has %u hooks without work, %u are known",
                           STR_ARG(rel_text(r, r->deployments.at[cell->deployment].name)), idle,
                           cell->idle);
    }
    return true;
}

static bool compare_slots(releases *r, err *error)
{
    for (uint32_t res = 0; res < r->resources.len; res++)
        for (size_t i = 0; i < r->resources.at[res].holds.len; i++)
            if (!slot_needed(r, res, r->resources.at[res].holds.at[i].rule))
                return err_set(
                    error, "%.*s keeps a slot of %.*s it does not need",
                    STR_ARG(rel_text(r, r->resources.at[res].name)),
                    STR_ARG(rel_text(r, r->rules.at[r->resources.at[res].holds.at[i].rule].id)));
    return true;
}

bool releases_compare(releases *r, err *error)
{
    if (r->dirty_lanes.len + r->dirty_targets.len + r->dirty_sites.len + r->dirty_resources.len +
            r->relanes.len >
        0)
        return true; /* facts were taken in that no step has looked at */
    uint64_t looked_at = r->core->looked_at;
    bool each = false;
    for (uint32_t p = 0; p < r->policies.len; p++)
        each = each || policy_each(r, p);
    forget_answers(r);
    r->asking = true;
    bool good = compare_selectors(r, error) && compare_matrix(r, error) && compare_lanes(r, error);
    for (uint32_t t = 0; good && t < r->targets.len; t++)
        if (r->targets.at[t].id != 0)
            good = compare_target(r, t, each, error);
    for (uint32_t s = 0; good && s < r->sites.len; s++)
        if (r->sites.at[s].used)
            good = compare_site(r, s, error);
    good = good && compare_idle(r, error) && compare_slots(r, error) && compare_queues(r, error) &&
           paces_full(r, error);
    r->asking = false;
    r->core->looked_at = looked_at;
    return good;
}
