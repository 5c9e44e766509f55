/* SPDX-License-Identifier: Apache-2.0 */
/* A claim is judged; a job starts; a job has ended. */
#include <assert.h>

#include "base/mem.h"
#include "engine/chain.h"

/* ---- may it start? ---- */

bool target_pending(const releases *r, uint32_t t)
{
    const rel_target *target = &r->targets.at[t];
    return target->wanted != NO && target->wanted != target->current;
}

bool target_failed(releases *r, uint32_t t)
{
    const rel_target *target = &r->targets.at[t];
    return target->job == 0 && target->attempts > 0 && target->failed_version != NO &&
           (target->failed_rollback || (target->failed_version != target->current &&
                                        target->failed_version == target_goal(r, t))) &&
           !retry_ask(r, t).again;
}

static bool target_passes(releases *r, uint32_t t, int64_t *next_ms)
{
    const rel_target *target = &r->targets.at[t];
    chain_context c = {
        .r = r, .target = t, .lane = target->lane, .version = target->wanted, .group = NO};
    *next_ms = NEVER;
    if (target->id == 0 || target->job != 0)
        return false;
    if (target->rollback_to != NO) {
        verdict v = {.kind = VERDICT_ALLOWED};
        c.version = target->rollback_to;
        c.group = NO;
        r->core->looked_at++;
        people_verdict(&c, &v);
        return v.kind == VERDICT_ALLOWED || v.reason.rule == REASON_FREEZE ||
               v.reason.rule == REASON_PAUSED;
    }
    uint32_t g;
    return target->site == NO && target_pending(r, t) && !member_of_target(r, t, &g) &&
           chain_allows(&c, next_ms);
}

/* A group that has begun and lost a slot: whether a member could start but for it. */
static bool group_continues(releases *r, uint32_t g)
{
    const rel_group *group = &r->groups.at[g];
    for (size_t i = 0; i < group->members.len; i++) {
        const rel_member *m = &group->members.at[i];
        int64_t unused;
        chain_context c = {.r = r,
                           .target = m->target,
                           .lane = r->targets.at[m->target].lane,
                           .version = m->version,
                           .group = g};
        if (member_open(group, m) && r->targets.at[m->target].job == 0 && chain_allows(&c, &unused))
            return true;
    }
    return group_goes_back(r, g) != NULL;
}

/* Everybody in the group is asked before the first of them starts: what is begun must be
 * finished. */
static bool group_passes(releases *r, uint32_t g, int64_t *next_ms)
{
    const rel_group *group = &r->groups.at[g];
    bool passes = true, first = false;
    *next_ms = NEVER;
    if (group->used && group->state == GROUP_STATE_EXECUTING)
        return group_continues(r, g);
    if (!group->used || r->resources.at[r->sites.at[group->site].resource].active != NO)
        return false;
    for (size_t i = 0; i < group->members.len && passes; i++) {
        const rel_member *m = &group->members.at[i];
        int64_t next;
        if (member_over(m))
            continue;
        chain_context c = {.r = r,
                           .target = m->target,
                           .lane = r->targets.at[m->target].lane,
                           .version = m->version,
                           .group = g,
                           .starting = true};
        passes = r->targets.at[m->target].job == 0 && chain_allows(&c, &next);
        if (r->targets.at[m->target].job == 0)
            *next_ms = earlier(*next_ms, next);
        c.starting = false;
        int64_t unused;
        first = first || (passes && member_open(group, m) && chain_allows(&c, &unused));
    }
    return passes && first;
}

bool claim_passes(releases *r, uint32_t claim, int64_t *ret_next_ms)
{
    return claim_gates(r, claim, ret_next_ms) && paces_permit(r, claim);
}

bool claim_gates(releases *r, uint32_t claim, int64_t *ret_next_ms)
{
    uint32_t index = CLAIM_INDEX(claim);
    return CLAIM_IS_GROUP(claim) ? group_passes(r, index, ret_next_ms)
                                 : target_passes(r, index, ret_next_ms);
}

void target_evaluate(releases *r, uint32_t t)
{
    rel_target *target = &r->targets.at[t];
    if (target->lane == NO)
        return;
    r->core->looked_at++;
    if (target_want(r, t)) {
        /* Others on the resource may depend on it; it may stand elsewhere in the queue now. */
        claim_withdraw(r, CLAIM_TARGET(t));
        mark_resource_all(r, target->resource);
    }
    mark_site(r, target->site);
    uint32_t g;
    if (member_of_target(r, t, &g))
        mark_site(r, r->groups.at[g].site); /* its own, or the one it has left meanwhile */
    int64_t next_ms = NEVER;
    bool gates = target_passes(r, t, &next_ms);
    if (target->site == NO)
        paces_report(r, CLAIM_TARGET(t), gates);
    if (gates && paces_permit(r, CLAIM_TARGET(t)))
        claim_offer(r, CLAIM_TARGET(t));
    else
        claim_withdraw(r, CLAIM_TARGET(t));
    wake_at(r, WAKE_TARGET, t, next_ms);
    if (r->resources.at[target->resource].holds.len > 0)
        mark_resource(r, target->resource);
}

/* ---- a job starts ---- */

/* Cheap enough for every job: nothing starts after a halt (I6), and only a person lets something
 * start outside its windows (I8). */
static void assert_may_start(const releases *r, const rel_target *target, uint32_t shut)
{
    assert(target->job == 0);
    assert(!r->halted && !r->deployments.at[target->deployment].halted);
    assert(!r->resources.at[target->resource].halted);
    assert(!r->resources.at[target->resource].quarantined);
    assert(shut == NO || r->rules.at[shut].bypassed);
}

void job_start(releases *r, uint32_t t, uint32_t version_, uint32_t group, job_role role)
{
    rel_target *target = &r->targets.at[t];
    /* What was begun is finished: only a first job is asked about windows. */
    uint32_t shut = NO;
    if (role != ROLE_ROLLBACK && (group == NO || r->groups.at[group].starts == 1))
        shut = window_shut(r, t, version_, group);
    assert(version_ != NO);
    assert_may_start(r, target, shut);
    bool again = target->attempts > 0 && target->failed_version == version_;
    bool first = target->current == NO;
    /* What goes back, or is brought out again, was in place for those that depend on it. */
    if (!first && target->current == target_goal(r, t))
        mark_resource_all(r, target->resource);
    target->job = ++r->last_job;
    target->job_epoch = r->epoch;
    target->job_version = version_;
    target->job_group = group;
    target->job_role = role;
    target->rollback_to = NO;
    target->retried = NO;
    claim_withdraw(r, CLAIM_TARGET(t));
    wake_at(r, WAKE_TARGET, t, NEVER);
    slots_progress(r, target->resource);
    /* A rollback beside a group is none of its jobs: the group waits for its end. */
    if (group == NO && target->site != NO)
        mark_site(r, target->site);
    else
        paces_started(r, t);
    const decision_kind kinds[] = {DECISION_START, DECISION_JOB};
    for (size_t i = 0; i < 2; i++) {
        decision *d = decide(r, kinds[i], t);
        if (!d)
            continue;
        d->version = rel_text(r, r->versions.at[version_].tag);
        d->group = group == NO ? STR_EMPTY : rel_text(r, r->groups.at[group].name);
        if (group == NO && kinds[i] == DECISION_START)
            d->group = core_text(r->core, partition_of_target(r, t));
        d->role = role;
        d->retry = again;
        d->first = first;
        d->number = kinds[i] == DECISION_JOB ? target->job : 0;
        if (kinds[i] == DECISION_JOB && shut != NO)
            d->outside = rel_text(r, r->rules.at[shut].id);
    }
}

/* ---- a job has ended ---- */

static void succeeded(releases *r, uint32_t t, uint32_t version_)
{
    rel_target *target = &r->targets.at[t];
    if (target->current != version_) {
        target->previous = target->current;
        target->current = version_;
    }
    target->current_ms = r->core->now_ms;
    target->failed_version = NO;
    target->attempts = 0;
    target->failed_rollback = false;
    target->failure = 0;
    if (keymap_get(&r->succeeded, KEY_PAIR(t, version_)) != NO)
        return;
    if (!keymap_put(&r->succeeded, KEY_PAIR(t, version_), 1))
        rel_no_memory(r);
    tally_add(r, t, version_, r->core->now_ms, true);
}

static job_states states_of(const fact_job *f)
{
    if (f->outcome == OUTCOME_SUCCEEDED)
        return (1u << JOB_STATE_FAILURE) | (1u << JOB_STATE_SUCCESSFUL);
    if (f->outcome == OUTCOME_LOST)
        return (1u << JOB_STATE_FAILURE) | (1u << JOB_STATE_EXTERNAL_RUN_NOT_FOUND);
    return 1u << JOB_STATE_FAILURE;
}

static void failed(releases *r, uint32_t t, const fact_job *f)
{
    rel_target *target = &r->targets.at[t];
    uint32_t version_ = target->job_version;
    target->failed_rollback = target->job_role == ROLE_ROLLBACK;
    target->attempts = target->failed_version == version_ ? target->attempts + 1 : 1;
    target->failed_version = version_;
    target->failed_ms = r->core->now_ms;
    target->failed_as = states_of(f);
    str why = f->reason.len > 0                 ? f->reason
              : f->outcome == OUTCOME_SUCCEEDED ? STR("the verification failed")
              : f->outcome == OUTCOME_LOST      ? STR("lost")
                                                : STR("failed");
    target->failure = rel_name(r, why);
    if (!target->failed_rollback)
        tally_add(r, t, version_, r->core->now_ms, false);
}

/* What failed for good, in no group: a rollback rule sends it back. */
static void roll_back(releases *r, uint32_t t)
{
    rel_target *target = &r->targets.at[t];
    if (target->failed_rollback || target->current == NO || retry_ask(r, t).again ||
        !rollback_wanted(r, t))
        return;
    target_refuse(r, t, target->failed_version, REFUSAL_ROLLED_BACK);
    target->rollback_to = target->current;
}

/* The version that is still wanted failed, and is not tried again by itself. */
static bool fails_for_good(const releases *r, uint32_t t)
{
    const rel_target *target = &r->targets.at[t];
    const rel_member *m = target->job_group == NO ? NULL : member_in(r, target->job_group, t);
    bool wanted = m ? m->later == NO : target->job_version == target->wanted;
    return target->job_role != ROLE_ROLLBACK && wanted && !retry_ask(r, t).again;
}

void job_take(releases *r, const fact_job *f)
{
    uint32_t t = release_find(r, f->deployment, f->environment, f->resource);
    if (t == NO || f->job == 0 || r->targets.at[t].job != f->job)
        return;
    bool success = f->outcome == OUTCOME_SUCCEEDED && !f->verification_failed;
    /* Whether it is tried again, or goes back, is for the rules to say that stand now: a policy may
     * have gone in the same step. */
    if (!success)
        lanes_settle(r);
    rel_target *target = &r->targets.at[t];
    uint32_t group = target->job_group;
    decision *d = decide(r, DECISION_RELEASE, t);
    if (d) {
        d->version = rel_text(r, r->versions.at[target->job_version].tag);
        d->group = group == NO ? STR_EMPTY : rel_text(r, r->groups.at[group].name);
        d->state = success                      ? STR("succeeded")
                   : f->outcome == OUTCOME_LOST ? STR("lost")
                                                : STR("failed");
        d->detail = core_text(r->core, f->reason);
        d->failed = !success;
        d->role = target->job_role;
        d->number = target->job;
    }
    if (success)
        succeeded(r, t, target->job_version);
    else
        failed(r, t, f);
    if (success)
        paces_whole(r, t);
    else if (fails_for_good(r, t))
        paces_failed(r, t);
    target = &r->targets.at[t];
    target->job = 0;
    target->job_version = NO;
    target->job_group = NO;
    if (group != NO)
        group_outcome(r, group, t, success);
    else if (!success)
        roll_back(r, t);
    r->targets.at[t].job_role = ROLE_MEMBER;
    slots_progress(r, r->targets.at[t].resource);
    mark_resource_all(r, r->targets.at[t].resource);
}
