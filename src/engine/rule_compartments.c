/* SPDX-License-Identifier: Apache-2.0 */
/* deploymentPolicy as a rule of a policy: compartments over resource labels pace any fleet in
 * batches. The batches are cohort.c's; here members come in, say that they could start, and are
 * told that they may. Counted per deployment and environment, in a bracket per environment with
 * a resource once.
 *
 * rolloutStrategy paces the same members by partitions, in rule_partitions.c; the doors are here.
 * Where a target is under both, partitions release first and batches are made of what they
 * released: a batch never waits for somebody whose partition is not open yet. */
#include <assert.h>

#include "base/mem.h"
#include "engine/pace_work.h"
#include "engine/policy_rules.h"
#include "engine/rule_compartments_internal.h"

const rule_ops cohort_rule_ops = {.order = 10, .level = LEVEL_ELSEWHERE};

/* ---- policies ---- */

static void set_policy(releases *r, uint32_t index)
{
    rel_pace *p = &r->paces.at[index];
    if (p->partition) {
        partition_pace_rule(r, index);
        return;
    }
    const rule *doc = r->rules.at[p->rule].doc;
    cohort_policy policy;
    arena_place here = arena_mark(r->scratch);
    bool good = !doc || policy_rules(doc->deployment_policy_spec, r->scratch, &policy);
    if (!good || !cohort_set_policy(p->cohort, doc ? &policy : NULL))
        rel_no_memory(r);
    arena_rewind(r->scratch, here);
}

/* ---- finding ---- */

bool rule_paces(rule_kind kind)
{
    return kind == RULE_DEPLOYMENT_POLICY || kind == RULE_ROLLOUT_STRATEGY;
}

void pace_mark(releases *r, uint32_t p)
{
    if (r->paces.at[p].dirty)
        return;
    r->paces.at[p].dirty = true;
    index_add(r, &r->dirty_paces, p);
}

static uint64_t pace_key(const releases *r, uint32_t rule_, uint32_t t)
{
    const rel_target *target = &r->targets.at[t];
    bool bracket = target->site != NO;
    return KEY_PAIR(rule_, bracket ? PACE_BRACKET | target->environment : target->cell);
}

static uint32_t pace_at(releases *r, uint32_t rule_, uint32_t t)
{
    uint64_t key = pace_key(r, rule_, t);
    uint32_t p = keymap_get(&r->pace_of, key);
    if (p != NO)
        return p;
    p = (uint32_t)r->paces.len;
    bool bracket = r->targets.at[t].site != NO;
    bool batches = r->rules.at[rule_].kind == RULE_DEPLOYMENT_POLICY;
    rel_pace fresh = {.rule = rule_,
                      .cell = bracket ? NO : r->targets.at[t].cell,
                      .environment = r->targets.at[t].environment,
                      .cohort = batches ? cohort_new() : NULL,
                      .wake_ms = NEVER};
    if ((batches && !fresh.cohort) || !vec_push(&r->paces, fresh) ||
        !keymap_put(&r->pace_of, key, p) || (!batches && !partition_pace_new(r, p))) {
        rel_no_memory(r);
        return NO;
    }
    set_policy(r, p);
    return p;
}

/* The pace of a lane's rule for one of its targets. All of them have the same, but for who is still
 * to come under another bracket; and one that was made is there for good. */
static uint32_t pace_in_lane(const releases *r, const rel_lane *lane, size_t i, uint32_t t)
{
    lane_pace *at = &lane->paces.at[i];
    if ((r->targets.at[t].site != NO) != (lane->bracket != NO))
        return keymap_get(&r->pace_of, pace_key(r, at->rule, t));
    if (at->pace == NO)
        at->pace = keymap_get(&r->pace_of, pace_key(r, at->rule, t));
    return at->pace;
}

uint32_t pace_next(const releases *r, uint32_t t, rule_kind kind, uint32_t behind)
{
    const rel_lane *lane = &r->lanes.at[r->targets.at[t].lane];
    bool found = behind == NO;
    for (size_t i = 0; i < lane->paces.len; i++) {
        if (lane->paces.at[i].kind != kind)
            continue;
        uint32_t p = pace_in_lane(r, lane, i, t);
        if (found && p != NO)
            return p;
        found = found || p == behind;
    }
    return NO;
}

uint32_t pace_member(const releases *r, const rel_pace *p, uint32_t t)
{
    return p->cell == NO ? r->targets.at[t].resource : t;
}

void paces_rule_changed(releases *r, uint32_t rule_)
{
    for (uint32_t p = 0; p < r->paces.len; p++)
        if (r->paces.at[p].rule == rule_) {
            set_policy(r, p);
            pace_mark(r, p);
        }
}

/* ---- members ---- */

void paces_join(releases *r, uint32_t t)
{
    const rel_target *target = &r->targets.at[t];
    const rel_lane *lane = &r->lanes.at[target->lane];
    const object *o = r->resources.at[target->resource].object;
    for (size_t i = 0; i < lane->rules.len; i++) {
        if (!rule_paces(r->rules.at[lane->rules.at[i]].kind))
            continue;
        uint32_t p = pace_at(r, lane->rules.at[i], t);
        if (p == NO)
            return;
        if (r->paces.at[p].partition) {
            partition_pace_join(r, p, target->resource);
            continue;
        }
        str name = rel_text(r, r->resources.at[target->resource].name);
        if (!cohort_join(r->paces.at[p].cohort, pace_member(r, &r->paces.at[p], t), name,
                         created_ms(r, target->resource), o->metadata->labels))
            rel_no_memory(r);
        pace_mark(r, p);
    }
}

/* A resource leaves a bracket's compartments with the last of its targets there. */
static bool others_stay(const releases *r, const rel_pace *p, uint32_t t)
{
    const index_list *on = &r->resources.at[r->targets.at[t].resource].targets;
    for (size_t i = 0; p->cell == NO && i < on->len; i++) {
        const rel_target *other = &r->targets.at[on->at[i]];
        if (on->at[i] != t && other->site != NO && other->lane != NO &&
            other->environment == p->environment && lane_paced(&r->lanes.at[other->lane], p->rule))
            return true;
    }
    return false;
}

static bool belongs(const releases *r, const rel_pace *p, uint32_t t)
{
    const rel_target *target = &r->targets.at[t];
    return (p->cell == NO) == (target->site != NO) &&
           lane_paced(&r->lanes.at[target->lane], p->rule);
}

void paces_leave(releases *r, uint32_t t, bool for_good)
{
    const rel_target *target = &r->targets.at[t];
    for (uint32_t p = 0; p < r->paces.len; p++) {
        const rel_pace *pace = &r->paces.at[p];
        bool concerns = pace->cell == NO ? pace->environment == target->environment
                                         : pace->cell == target->cell;
        if (!concerns || (!for_good && belongs(r, pace, t)) || others_stay(r, pace, t))
            continue;
        if (pace->partition) {
            partition_pace_leave(r, p, target->resource);
            continue;
        }
        if (cohort_state(pace->cohort, pace_member(r, pace, t)) == MEMBER_ABSENT)
            continue;
        cohort_leave(pace->cohort, pace_member(r, pace, t));
        pace_mark(r, p);
    }
}

/* ---- what is known of a claim ---- */

/* The state a member has, and whether that is the outcome of a claim that was in flight. */
static member_state state_of_target(releases *r, uint32_t t, bool gates, bool *ret_over)
{
    const rel_target *target = &r->targets.at[t];
    bool failed = target_failed(r, t);
    /* A group that it has left meanwhile may still run a job on it: no batch was asked for that. */
    bool busy = (target->job != 0 && target->job_group == NO) || target->rollback_to != NO;
    *ret_over = !busy && (failed || !target_pending(r, t));
    if (failed)
        return MEMBER_FAILED;
    if (!busy && !target_pending(r, t))
        return MEMBER_DONE;
    /* What goes back needs no place, and has none while it does. */
    return gates && !busy ? MEMBER_STARTABLE : MEMBER_WAITING;
}

/* A resource counts once, whatever the number of its sites in the environment. */
static member_state state_of_resource(const releases *r, const rel_pace *p, uint32_t res,
                                      bool *ret_over)
{
    const index_list *sites = &r->resources.at[res].sites;
    bool failed = false, idle = true, gates = false;
    for (size_t i = 0; i < sites->len; i++) {
        const rel_site *site = &r->sites.at[sites->at[i]];
        if (site->environment != p->environment)
            continue;
        bool active = group_paced(r, site->active, p->rule);
        bool ready = group_paced(r, site->ready, p->rule);
        failed = failed || (active && r->groups.at[site->active].state == GROUP_STATE_FAILED);
        idle = idle && !active && !ready;
        gates = gates || (ready && site->gates && group_released(r, site->ready) &&
                          group_has_earlier_places(r, p, site->ready));
    }
    *ret_over = failed || idle;
    if (failed)
        return MEMBER_FAILED;
    return gates ? MEMBER_STARTABLE : idle ? MEMBER_DONE : MEMBER_WAITING;
}

static void mark_paced(releases *r, const rel_pace *p, member_id m)
{
    if (p->cell == NO)
        mark_resource_all(r, m);
    else
        mark_target(r, m);
}

static void tell(releases *r, uint32_t p, member_id m, member_state state, bool over)
{
    const rel_pace *pace = &r->paces.at[p];
    member_state was = cohort_state(pace->cohort, m);
    if (was == MEMBER_ABSENT || (was == MEMBER_IN_FLIGHT && !over) || was == state)
        return;
    bool good = was == MEMBER_IN_FLIGHT ? cohort_outcome(pace->cohort, m, state)
                                        : cohort_set_state(pace->cohort, m, state);
    if (!good)
        rel_no_memory(r);
    if (was == MEMBER_IN_FLIGHT)
        mark_paced(r, pace, m); /* partitions let it keep its release for the batch's sake */
    pace_mark(r, p);
}

bool pace_in_batch(const releases *r, uint32_t t)
{
    for (uint32_t p = pace_next(r, t, RULE_DEPLOYMENT_POLICY, NO); p != NO;
         p = pace_next(r, t, RULE_DEPLOYMENT_POLICY, p))
        if (cohort_state(r->paces.at[p].cohort, pace_member(r, &r->paces.at[p], t)) ==
            MEMBER_IN_FLIGHT)
            return true;
    return false;
}

static void report_partitions(releases *r, uint32_t t, bool gates)
{
    bool kept = pace_in_batch(r, t);
    for (uint32_t p = pace_next(r, t, RULE_ROLLOUT_STRATEGY, NO); p != NO;
         p = pace_next(r, t, RULE_ROLLOUT_STRATEGY, p))
        partition_pace_report(r, p, (partition_news){t, gates, kept});
}

/* Partitions first; compartments are told that it could start when all of them released it. */
static void report_target(releases *r, uint32_t t, bool gates)
{
    report_partitions(r, t, gates);
    gates = gates && released(r, t);
    for (uint32_t p = pace_next(r, t, RULE_DEPLOYMENT_POLICY, NO); p != NO;
         p = pace_next(r, t, RULE_DEPLOYMENT_POLICY, p)) {
        const rel_pace *pace = &r->paces.at[p];
        bool over;
        member_id m = pace_member(r, pace, t);
        pace_work_target(r, p, t);
        member_state state = state_of_target(r, t, gates && has_earlier_places(r, pace, t), &over);
        if (!over && cohort_state(pace->cohort, m) == MEMBER_IN_FLIGHT && target_lacks(r, pace, t))
            give_back(r, p, t);
        tell(r, p, m, state, over);
    }
}

void paces_report(releases *r, uint32_t claim, bool gates)
{
    if (!CLAIM_IS_GROUP(claim)) {
        report_target(r, CLAIM_INDEX(claim), gates);
        return;
    }
    /* CLAIM_GROUP names a site here: it is there also when no group is. */
    rel_site *site = &r->sites.at[CLAIM_INDEX(claim)];
    site->gates = gates;
    if (r->resources.at[site->resource].untold || r->paces.len == 0)
        return;
    r->resources.at[site->resource].untold = true;
    index_add(r, &r->untold, site->resource);
}

void paces_tell(releases *r)
{
    resources_in_order(r, &r->untold);
    for (size_t i = 0; i < r->untold.len; i++) {
        uint32_t res = r->untold.at[i];
        r->resources.at[res].untold = false;
        for (uint32_t p = 0; p < r->paces.len; p++)
            if (r->paces.at[p].partition && r->paces.at[p].cell == NO)
                partition_pace_tell(r, p, res);
        /* Whoever counts the resource is told: its group may have begun under other rules than its
         * members have now. */
        for (uint32_t p = 0; p < r->paces.len; p++) {
            const rel_pace *pace = &r->paces.at[p];
            bool over;
            if (pace->partition || pace->cell != NO ||
                cohort_state(pace->cohort, res) == MEMBER_ABSENT)
                continue;
            pace_work_resource(r, p, res);
            member_state state = state_of_resource(r, pace, res, &over);
            if (!over && cohort_state(pace->cohort, res) == MEMBER_IN_FLIGHT &&
                resource_lacks(r, pace, res))
                give_back_resource(r, p, res);
            tell(r, p, res, state, over);
        }
    }
    r->untold.len = 0;
}

void paces_started(releases *r, uint32_t t)
{
    for (uint32_t p = pace_next(r, t, RULE_ROLLOUT_STRATEGY, NO); p != NO;
         p = pace_next(r, t, RULE_ROLLOUT_STRATEGY, p))
        partition_pace_started(r, p, t);
}

void paces_whole(releases *r, uint32_t t)
{
    if (r->targets.at[t].lane == NO)
        return;
    for (uint32_t p = pace_next(r, t, RULE_ROLLOUT_STRATEGY, NO); p != NO;
         p = pace_next(r, t, RULE_ROLLOUT_STRATEGY, p))
        partition_pace_whole(r, p, r->targets.at[t].resource);
}

void paces_failed(releases *r, uint32_t t)
{
    if (r->targets.at[t].lane == NO)
        return;
    for (uint32_t p = pace_next(r, t, RULE_ROLLOUT_STRATEGY, NO); p != NO;
         p = pace_next(r, t, RULE_ROLLOUT_STRATEGY, p))
        partition_pace_failed(r, p, r->targets.at[t].resource);
}

static bool permits(const releases *r, uint32_t t)
{
    const rel_lane *lane = &r->lanes.at[r->targets.at[t].lane];
    for (size_t i = 0; i < lane->paces.len; i++) {
        uint32_t p = pace_in_lane(r, lane, i, t);
        if (p == NO || !pace_permits(r, p, t))
            return false;
    }
    return true;
}

bool paces_permit(const releases *r, uint32_t claim)
{
    if (!CLAIM_IS_GROUP(claim))
        return r->targets.at[CLAIM_INDEX(claim)].rollback_to != NO ||
               permits(r, CLAIM_INDEX(claim));
    const rel_group *g = &r->groups.at[CLAIM_INDEX(claim)];
    /* What goes on with what was begun needs no place anew: it is out of service already. */
    bool begun = g->state == GROUP_STATE_EXECUTING || g->took_over;
    for (size_t i = 0; !begun && i < g->members.len; i++)
        if (!permits(r, g->members.at[i].target))
            return false;
    return true;
}

/* ---- steps ---- */

str pace_change(const releases *r, const rel_pace *p)
{
    return p->cell == NO ? rel_text(r, r->rules.at[p->rule].id)
                         : rel_text(r, r->deployments.at[r->cells.at[p->cell].deployment].name);
}

static void tell_event(releases *r, const rel_pace *p, const cohort_event *e)
{
    static const decision_kind kinds[] = {[COHORT_EVENT_BATCH] = DECISION_BATCH,
                                          [COHORT_EVENT_JUDGE] = DECISION_JUDGE,
                                          [COHORT_EVENT_HALT] = DECISION_HALT};
    if (!r->core->out)
        return;
    decision *d = core_decide(r->core, kinds[e->kind], 0);
    if (!d)
        return;
    d->change = pace_change(r, p);
    d->rule = rel_text(r, r->rules.at[p->rule].id);
    d->environment = rel_text(r, r->environments.at[p->environment].name);
    d->group = core_text(r->core, e->compartment);
    d->number = e->number;
    d->size = e->size;
    d->failed = e->failed;
    if (e->kind == COHORT_EVENT_BATCH)
        d->members = pace_members(r, p, e);
    if (e->kind != COHORT_EVENT_JUDGE)
        return;
    d->complete = e->complete;
    d->erroring = e->erroring;
    d->blocked = e->blocked;
}

static bool all_done(const rel_pace *p)
{
    for (size_t i = 0; i < cohort_compartments(p->cohort); i++) {
        compartment_view v;
        cohort_view(p->cohort, i, &v);
        if (v.done != v.matched)
            return false;
    }
    return true;
}

/* Says that the compartments are at batch 1 again, in the order of their names. */
static void tell_reset(releases *r, const rel_pace *p)
{
    str told = {NULL, 0};
    for (;;) {
        str next = {NULL, 0};
        compartment_view v;
        for (size_t i = 0; i < cohort_compartments(p->cohort); i++) {
            cohort_view(p->cohort, i, &v);
            if (!v.removed && (!told.ptr || str_cmp(v.rule->name, told) > 0) &&
                (!next.ptr || str_cmp(v.rule->name, next) < 0))
                next = v.rule->name;
        }
        decision *d = next.ptr && r->core->out ? core_decide(r->core, DECISION_RESET, 0) : NULL;
        if (!d)
            return;
        d->change = pace_change(r, p);
        d->rule = rel_text(r, r->rules.at[p->rule].id);
        d->environment = rel_text(r, r->environments.at[p->environment].name);
        d->group = core_text(r->core, next);
        told = next;
    }
}

/* New work after all was done is a new rollout; another version in mid-rollout is an edit. */
static void pace_renew(releases *r, rel_pace *p)
{
    if (!cohort_settle(p->cohort))
        rel_no_memory(r);
    bool edited = pace_work_take(p), renewed = p->complete && !all_done(p);
    if (!edited && !renewed)
        return;
    if (r->rules.at[p->rule].doc &&
        r->rules.at[p->rule].doc->deployment_policy_spec->reset_batch_state_on_completion) {
        cohort_reset(p->cohort);
        if (!renewed)
            tell_reset(r, p);
    }
    cohort_lift_stops(p->cohort);
    p->complete = false;
}

static void pace_step(releases *r, uint32_t p)
{
    cohort_events events = {0};
    give_back_idle(r, p);
    pace_renew(r, &r->paces.at[p]);
    if (!cohort_step(r->paces.at[p].cohort, r->core->now_ms, &events))
        rel_no_memory(r);
    /* Compartments tell in the order of their names, each in its own order. */
    for (size_t i = 1; i < events.len; i++)
        for (size_t k = i;
             k > 0 && str_cmp(events.at[k - 1].compartment, events.at[k].compartment) > 0; k--) {
            cohort_event swap = events.at[k];
            events.at[k] = events.at[k - 1];
            events.at[k - 1] = swap;
        }
    for (size_t i = 0; i < events.len; i++) {
        const cohort_event *e = &events.at[i];
        if (e->kind != COHORT_EVENT_START && e->kind != COHORT_EVENT_RETRY)
            tell_event(r, &r->paces.at[p], e);
        else
            mark_paced(r, &r->paces.at[p], e->member);
    }
    bool empty = pace_empty(&r->paces.at[p]);
    if (empty) {
        cohort_reset(r->paces.at[p].cohort);
        pace_work_forget(&r->paces.at[p]);
    }
    r->paces.at[p].complete = !empty && (r->paces.at[p].complete || all_done(&r->paces.at[p]));
    wake_at(r, WAKE_PACE, p, cohort_next_ms(r->paces.at[p].cohort));
    vec_done(&events);
}

static int compare_paces(const void *a, const void *b, void *context)
{
    const releases *r = context;
    const rel_pace *x = &r->paces.at[*(const uint32_t *)a], *y = &r->paces.at[*(const uint32_t *)b];
    int c = str_cmp(r->rules.at[x->rule].scope, r->rules.at[y->rule].scope);
    if (c == 0)
        c = str_cmp(rel_text(r, r->environments.at[x->environment].name),
                    rel_text(r, r->environments.at[y->environment].name));
    return c != 0 ? c : str_cmp(pace_change(r, x), pace_change(r, y));
}

/* Takes the paces of that kind out of those that are marked, in order. */
static void take_marked(releases *r, bool partitions, index_list *ret)
{
    size_t kept = 0;
    ret->len = 0;
    for (size_t i = 0; i < r->dirty_paces.len; i++) {
        uint32_t p = r->dirty_paces.at[i];
        if ((r->paces.at[p].partition != NULL) == partitions)
            index_add(r, ret, p);
        else
            r->dirty_paces.at[kept++] = p;
    }
    r->dirty_paces.len = kept;
    if (ret->len > 1)
        qsort_r(ret->at, ret->len, sizeof *ret->at, compare_paces, r);
}

static void step_marked(releases *r, bool partitions)
{
    index_list marked = {0};
    for (take_marked(r, partitions, &marked); marked.len > 0 && !r->core->no_memory;
         take_marked(r, partitions, &marked))
        for (size_t i = 0; i < marked.len; i++) {
            r->paces.at[marked.at[i]].dirty = false;
            if (partitions)
                partition_pace_step(r, marked.at[i]);
            else
                pace_step(r, marked.at[i]);
        }
    vec_done(&marked);
}

void paces_partitions(releases *r)
{
    if (r->dirty_paces.len > 0)
        step_marked(r, true);
}

void paces_compartments(releases *r)
{
    if (r->dirty_paces.len > 0)
        step_marked(r, false);
}

void paces_done(releases *r)
{
    for (size_t i = 0; i < r->paces.len; i++) {
        cohort_free(r->paces.at[i].cohort);
        partition_pace_free(r->paces.at[i].partition);
        vec_done(&r->paces.at[i].works);
    }
    vec_done(&r->paces);
    vec_done(&r->dirty_paces);
    vec_done(&r->untold);
    keymap_done(&r->pace_of);
}

/* ---- after a restart ---- */

uint32_t pace_find(releases *r, uint32_t rule_, uint32_t environment_, uint32_t cell)
{
    uint32_t part = cell == NO ? PACE_BRACKET | environment_ : cell;
    return keymap_get(&r->pace_of, KEY_PAIR(rule_, part));
}

void pace_save(const releases *r, const rel_pace *p, buf *out)
{
    if (p->partition) {
        partition_pace_save(r, p, out);
        return;
    }
    pace_work_save(r, p, out);
    buf_addz(out, ",\"batches\":");
    cohort_save(p->cohort, out);
}

bool pace_restore(releases *r, uint32_t p, yyjson_val *saved, err *error)
{
    const rel_pace *pace = &r->paces.at[p];
    for (uint32_t t = 0; t < r->targets.len; t++) {
        const rel_target *target = &r->targets.at[t];
        bool over;
        if (target->id == 0 || target->lane == NO || target->environment != pace->environment ||
            (pace->cell != NO && target->cell != pace->cell) || !belongs(r, pace, t))
            continue;
        target_want(r, t);
        if (pace->partition)
            continue;
        member_state state = pace->cell == NO ? state_of_resource(r, pace, target->resource, &over)
                                              : state_of_target(r, t, false, &over);
        if (!cohort_set_state(pace->cohort, pace_member(r, pace, t), state))
            return err_memory(error);
    }
    if (pace->partition)
        return partition_pace_restore(r, p, saved, error);
    pace_work_restore(r, p, saved);
    buf batches = BUF(LIMIT_TEXT_BYTES);
    json_write(&batches, yyjson_obj_get(saved, "batches"));
    bool good =
        batches.failed ? err_memory(error) : cohort_restore(pace->cohort, buf_str(&batches), error);
    buf_done(&batches);
    return good;
}

/* ---- looking at it ---- */

/* Whether a bracket's compartments count a resource for this deployment. */
static bool paces_deployment(const releases *r, const rel_pace *p, str name)
{
    for (size_t t = 0; p->cell == NO && t < r->targets.len; t++) {
        const rel_target *target = &r->targets.at[t];
        if (target->id != 0 && target->site != NO && target->lane != NO &&
            target->environment == p->environment &&
            lane_paced(&r->lanes.at[target->lane], p->rule) &&
            str_eq(rel_text(r, r->deployments.at[target->deployment].name), name))
            return true;
    }
    return false;
}

void paces_reset(releases *r, str change)
{
    for (uint32_t p = 0; p < r->paces.len; p++) {
        rel_pace *pace = &r->paces.at[p];
        if (!pace->cohort)
            continue; /* of a rolloutStrategy */
        if (change.len > 0 && !str_eq(pace_change(r, pace), change) &&
            !paces_deployment(r, pace, change))
            continue;
        cohort_reset(pace->cohort);
        pace_mark(r, p);
    }
}
