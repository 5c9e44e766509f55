/* SPDX-License-Identifier: Apache-2.0 */
/* deploymentBracket, second half: a locked version group starts, runs its members in order, and
 * ends.
 *
 * Pre members run first, then the others as their dependencies let them, then post members. What
 * was prepared is finished: once a group has begun, only dependencies, retries and a halt hold
 * its jobs. */
#include <assert.h>

#include "base/mem.h"
#include "engine/chain.h"

str group_state_text(rel_group_state s)
{
    static const str texts[] = {
#define X(state, text) [GROUP_STATE_##state] = STR(text),
        GROUP_STATES(X)
#undef X
    };
    return texts[s];
}

/* ---- groups ---- */

uint32_t group_new(releases *r, uint32_t s)
{
    uint32_t g;
    if (r->free_groups.len > 0) {
        g = r->free_groups.at[--r->free_groups.len];
    } else {
        g = (uint32_t)r->groups.len;
        if (!vec_push(&r->groups, (rel_group){0})) {
            rel_no_memory(r);
            return NO;
        }
    }
    rel_group *group = &r->groups.at[g];
    rel_site *site = &r->sites.at[s];
    uint32_t number = site->announced != 0 ? site->announced : ++site->groups;
    site->announced = 0;
    group->members.len = 0;
    uint32_t stamp = group->stamp + 1;
    *group = (rel_group){.used = true,
                         .site = s,
                         .number = number,
                         .waits_in = NO,
                         .stamp = stamp,
                         .members = group->members,
                         .name = group_name(r, s, number)};
    return g;
}

void group_state_set(releases *r, uint32_t g, rel_group_state state, str detail)
{
    rel_group *group = &r->groups.at[g];
    group->state = state;
    if (!r->core->out)
        return;
    const rel_site *site = &r->sites.at[group->site];
    decision *d = core_decide(r->core, DECISION_GROUP, 0);
    if (!d)
        return;
    if (group->members.len > 0)
        d->placement = r->targets.at[group->members.at[0].target].id;
    d->target = rel_text(r, r->resources.at[site->resource].name);
    d->environment = rel_text(r, r->environments.at[site->environment].name);
    d->group = rel_text(r, group->name);
    d->state = group_state_text(state);
    d->detail = core_text(r->core, detail);
    d->number = group->number;
    d->size = (int64_t)group->members.len;
}

/* Hooks run in every group: that one failed, or was skipped, is over with the group it was in. */
static void hooks_pardon(releases *r, const rel_group *group)
{
    for (size_t i = 0; i < group->members.len; i++) {
        const rel_member *m = &group->members.at[i];
        rel_target *target = &r->targets.at[m->target];
        bool stuck = m->state == MEMBER_IS_FAILED || m->state == MEMBER_IS_SKIPPED;
        if (m->role == ROLE_MEMBER || !stuck || target->job != 0 ||
            target->failed_version != m->version)
            continue;
        target->failed_version = NO;
        target->attempts = 0;
    }
}

void group_end(releases *r, uint32_t g, rel_group_state state, str detail)
{
    rel_group *group = &r->groups.at[g];
    rel_site *site = &r->sites.at[group->site];
    hooks_pardon(r, group);
    claim_withdraw(r, CLAIM_GROUP(g));
    group_state_set(r, g, state, detail);
    if (site->ready == g)
        site->ready = NO;
    if (site->active == g)
        site->active = NO;
    if (r->resources.at[site->resource].active == g)
        r->resources.at[site->resource].active = NO;
    if (group->counted)
        r->rules.at[site->rule].unfinished--;
    group->used = false;
    group->counted = false;
    index_add(r, &r->free_groups, g);
    mark_resource_all(r, site->resource);
}

rel_member *member_in(const releases *r, uint32_t g, uint32_t target)
{
    const rel_group *group = &r->groups.at[g];
    for (size_t i = 0; i < group->members.len; i++)
        if (group->members.at[i].target == target)
            return &group->members.at[i];
    return NULL;
}

rel_member *member_of_target(const releases *r, uint32_t t, uint32_t *ret_group)
{
    const rel_target *target = &r->targets.at[t];
    uint32_t ready = target->site == NO ? NO : r->sites.at[target->site].ready;
    uint32_t groups[] = {r->resources.at[target->resource].active, ready};
    for (size_t i = 0; i < 2; i++) {
        rel_member *m = groups[i] == NO ? NULL : member_in(r, groups[i], t);
        if (m && !member_over(m)) {
            *ret_group = groups[i];
            return m;
        }
    }
    return NULL;
}

bool member_over(const rel_member *m)
{
    return m->state == MEMBER_IS_DONE || m->state == MEMBER_IS_SKIPPED ||
           m->state == MEMBER_IS_ROLLED_BACK;
}

bool group_runs(const rel_group *g)
{
    for (size_t i = 0; i < g->members.len; i++)
        if (g->members.at[i].state == MEMBER_IS_RUNNING)
            return true;
    return false;
}

bool group_has_work(const rel_group *g)
{
    for (size_t i = 0; i < g->members.len; i++)
        if (g->members.at[i].role == ROLE_MEMBER)
            return true;
    return false;
}

static bool all_over(const rel_group *g, bool (*of)(const rel_member *))
{
    for (size_t i = 0; i < g->members.len; i++)
        if (of(&g->members.at[i]) && !member_over(&g->members.at[i]))
            return false;
    return true;
}

static bool is_pre(const rel_member *m)
{
    return m->role == ROLE_PRE;
}

static bool is_not_post(const rel_member *m)
{
    return m->role != ROLE_POST;
}

static bool is_any(const rel_member *m)
{
    (void)m;
    return true;
}

bool member_open(const rel_group *g, const rel_member *m)
{
    if (m->state != MEMBER_IS_PENDING)
        return false;
    if (m->role == ROLE_PRE)
        return true;
    return all_over(g, m->role == ROLE_POST ? is_not_post : is_pre);
}

static void member_remove(rel_group *g, size_t i)
{
    memmove(&g->members.at[i], &g->members.at[i + 1],
            (g->members.len - i - 1) * sizeof *g->members.at);
    g->members.len--;
}

/* ---- before the start ---- */

/* A newer version of a hook that failed is a fix: the group that waits for it goes on with it. */
static bool hook_fixed(const releases *r, const rel_member *m)
{
    const rel_target *t = &r->targets.at[m->target];
    return m->role != ROLE_MEMBER && m->state == MEMBER_IS_FAILED && t->job == 0 &&
           t->wanted != NO && version_newer(r, t->wanted, m->version);
}

void group_relock(releases *r, uint32_t g)
{
    rel_group *group = &r->groups.at[g];
    for (size_t i = 0; i < group->members.len;) {
        rel_member *m = &group->members.at[i];
        const rel_target *t = &r->targets.at[m->target];
        if (hook_fixed(r, m)) {
            m->version = t->wanted;
            m->state = MEMBER_IS_PENDING;
        }
        if (m->state != MEMBER_IS_PENDING || version_ready(r, m->version) ||
            (m->redeploy && m->version == t->current) || t->job != 0) {
            i++;
            continue;
        }
        if (m->role != ROLE_MEMBER) {
            if (t->wanted != NO)
                m->version = t->wanted;
            i++;
        } else if (t->wanted != NO && t->wanted != t->current) {
            m->version = t->wanted;
            i++;
        } else {
            member_remove(group, i);
        }
    }
    if (!group_has_work(group) && group->starts == 0)
        group_end(r, g, GROUP_STATE_COMPLETED, STR("its versions were withdrawn"));
}

bool group_prune(releases *r, uint32_t g)
{
    rel_group *group = &r->groups.at[g];
    for (size_t i = 0; i < group->members.len;) {
        rel_member *m = &group->members.at[i];
        if (!m->redeploy && m->state == MEMBER_IS_PENDING &&
            m->version == r->targets.at[m->target].current)
            member_remove(group, i);
        else
            i++;
    }
    for (size_t i = 0; i < group->members.len; i++)
        if (group->members.at[i].role == ROLE_MEMBER && !member_over(&group->members.at[i]))
            return false;
    return true;
}

/* ---- running ---- */

void group_begin(releases *r, uint32_t g)
{
    rel_group *group = &r->groups.at[g];
    rel_site *site = &r->sites.at[group->site];
    assert(r->resources.at[site->resource].active == NO);
    site->ready = NO;
    site->active = g;
    r->resources.at[site->resource].active = g;
    group->took_over = false;
    for (size_t i = 0; i < group->members.len; i++) {
        rel_member *m = &group->members.at[i];
        m->good = r->targets.at[m->target].current;
        /* "The current one of the others" is the one that runs when the group starts. */
        if (m->redeploy && m->role == ROLE_MEMBER && m->good != NO)
            m->version = m->good;
    }
    group_state_set(r, g, GROUP_STATE_EXECUTING, STR_EMPTY);
    for (size_t i = 0; i < group->members.len; i++)
        paces_started(r, group->members.at[i].target);
    group_start_members(r, g);
    mark_resource_all(r, site->resource);
}

static chain_context context_of(releases *r, uint32_t g, const rel_member *m)
{
    return (chain_context){.r = r,
                           .target = m->target,
                           .lane = r->targets.at[m->target].lane,
                           .version = m->version,
                           .group = g};
}

static void member_start(releases *r, uint32_t g, rel_member *m, uint32_t version_, job_role role)
{
    m->state = MEMBER_IS_RUNNING;
    m->ran = true;
    m->started = ++r->groups.at[g].starts;
    job_start(r, m->target, version_, g, role);
}

static bool may_go_back(releases *r, uint32_t g, const rel_member *m)
{
    chain_context c = context_of(r, g, m);
    verdict v = {.kind = VERDICT_ALLOWED};
    people_verdict(&c, &v);
    return v.kind == VERDICT_ALLOWED && r->targets.at[m->target].job == 0;
}

/* Rolling back: one member at once, whatever the others do; all of them one after the other, in the
 * reverse order of their starts. */
rel_member *group_goes_back(releases *r, uint32_t g)
{
    rel_group *group = &r->groups.at[g];
    rel_member *last = NULL;
    if (group->rolling_back && group_runs(group))
        return NULL;
    for (size_t i = 0; i < group->members.len; i++) {
        rel_member *m = &group->members.at[i];
        if (m->state == MEMBER_IS_TO_ROLL_BACK && (!last || m->started > last->started) &&
            (group->rolling_back || may_go_back(r, g, m)))
            last = m;
    }
    return last && may_go_back(r, g, last) ? last : NULL;
}

static bool start_rollbacks(releases *r, uint32_t g, bool *ret_held)
{
    bool started = false;
    uint32_t full;
    for (rel_member *m = group_goes_back(r, g); m; m = group_goes_back(r, g)) {
        if (!slots_take(r, CLAIM_GROUP(g), &full)) {
            claim_wait(r, CLAIM_GROUP(g), full);
            *ret_held = true;
            return started;
        }
        member_start(r, g, m, m->good, ROLE_ROLLBACK);
        started = true;
    }
    return started;
}

bool group_start_members(releases *r, uint32_t g)
{
    rel_group *group = &r->groups.at[g];
    uint32_t full;
    if (group->state != GROUP_STATE_EXECUTING)
        return false;
    bool held = false, started = start_rollbacks(r, g, &held);
    for (size_t i = 0; i < group->members.len; i++) {
        rel_member *m = &group->members.at[i];
        int64_t unused;
        chain_context c = context_of(r, g, m);
        if (!member_open(group, m) || r->targets.at[m->target].job != 0 ||
            !chain_allows(&c, &unused))
            continue;
        /* A slot that timed out must be taken again. */
        if (!slots_take(r, CLAIM_GROUP(g), &full)) {
            claim_wait(r, CLAIM_GROUP(g), full);
            return started;
        }
        member_start(r, g, m, m->version, m->role);
        started = true;
    }
    /* Nobody was held by a slot. */
    if (r->groups.at[g].waits_in != NO && !held)
        claim_withdraw(r, CLAIM_GROUP(g));
    return started;
}

void group_advance(releases *r, uint32_t g)
{
    rel_group *group = &r->groups.at[g];
    if (group->state != GROUP_STATE_EXECUTING)
        return;
    group_start_members(r, g);
    group = &r->groups.at[g];
    if (all_over(group, is_any))
        group_end(r, g, GROUP_STATE_COMPLETED,
                  group->rolling_back ? STR("rolled back") : STR_EMPTY);
}

/* ---- failure ---- */

static void group_fail(releases *r, uint32_t g, uint32_t t)
{
    rel_group *group = &r->groups.at[g];
    if (group->state == GROUP_STATE_FAILED)
        return;
    group_state_set(r, g, GROUP_STATE_FAILED,
                    rel_text(r, r->deployments.at[r->targets.at[t].deployment].name));
    decision *d = decide(r, DECISION_HALT, t);
    if (!d)
        return;
    d->group = rel_text(r, group->name);
    d->detail = rel_text(r, r->targets.at[t].failure);
}

static bool all_can_go_back(const rel_group *g)
{
    for (size_t i = 0; i < g->members.len; i++) {
        const rel_member *m = &g->members.at[i];
        if (m->role == ROLE_MEMBER && m->ran && m->good == NO)
            return false;
    }
    return true;
}

/* Every member that ran goes back; those that did not are dropped. A newer version that has joined
 * and not run is not rolled back: the next group has it. */
static void roll_all_back(const releases *r, rel_group *g)
{
    g->rolling_back = true;
    for (size_t i = 0; i < g->members.len;) {
        rel_member *m = &g->members.at[i];
        const rel_target *t = &r->targets.at[m->target];
        m->later = NO;
        if (m->role == ROLE_MEMBER && m->state == MEMBER_IS_PENDING && !m->ran) {
            member_remove(g, i);
            continue;
        }
        if (m->role == ROLE_MEMBER && m->ran && m->state != MEMBER_IS_RUNNING &&
            m->state != MEMBER_IS_ROLLED_BACK && m->state != MEMBER_IS_SKIPPED) {
            if (m->state == MEMBER_IS_PENDING && t->failed_version != m->version)
                m->version = t->current;
            m->state = MEMBER_IS_TO_ROLL_BACK;
        }
        i++;
    }
}

static void member_failed(releases *r, uint32_t g, rel_member *m)
{
    rel_group *group = &r->groups.at[g];
    rollback_strategy strategy_ = r->rules.at[r->sites.at[group->site].rule].strategy;
    m->state = MEMBER_IS_FAILED;
    /* Hooks are never rolled back, and what never ran has nothing to go back to. */
    bool possible = m->role == ROLE_MEMBER && group->state == GROUP_STATE_EXECUTING;
    if (possible && strategy_ == ROLLBACK_INDIVIDUAL && m->good != NO)
        m->state = MEMBER_IS_TO_ROLL_BACK;
    else if (possible && strategy_ == ROLLBACK_ALL_MEMBERS && all_can_go_back(group))
        roll_all_back(r, group);
    else
        group_fail(r, g, m->target);
}

void group_outcome(releases *r, uint32_t g, uint32_t t, bool success)
{
    rel_group *group = &r->groups.at[g];
    rel_member *m = group->used ? member_in(r, g, t) : NULL;
    if (!m)
        return;
    bool was_rollback = r->targets.at[t].job_role == ROLE_ROLLBACK;
    mark_site(r, group->site);
    /* Also when it could not be taken back: the next group would only try it again, for ever. */
    if (was_rollback)
        target_refuse(r, t, m->version, REFUSAL_ROLLED_BACK);
    if (m->later != NO) {
        /* Another group has joined with a newer version: that one decides. */
        m->redeploy = m->version == m->later;
        m->version = m->later;
        m->later = NO;
        m->state = MEMBER_IS_PENDING;
        return;
    }
    if (was_rollback) {
        m->state = success ? MEMBER_IS_ROLLED_BACK : MEMBER_IS_FAILED;
        if (!success)
            group_fail(r, g, t);
        return;
    }
    if (group->rolling_back && m->role == ROLE_MEMBER) {
        m->state = m->good != NO ? MEMBER_IS_TO_ROLL_BACK
                   : success     ? MEMBER_IS_DONE
                                 : MEMBER_IS_FAILED;
        if (m->state == MEMBER_IS_FAILED)
            group_fail(r, g, t);
        return;
    }
    if (success)
        m->state = MEMBER_IS_DONE;
    else if (retry_ask(r, t).again)
        m->state = MEMBER_IS_PENDING;
    else
        member_failed(r, g, m);
}

/* ---- a failed group goes on: people decide, or who failed has left ---- */

static bool any_failed(const rel_group *g)
{
    for (size_t i = 0; i < g->members.len; i++)
        if (g->members.at[i].state == MEMBER_IS_FAILED)
            return true;
    return false;
}

void group_resume(releases *r, uint32_t g)
{
    rel_group *group = &r->groups.at[g];
    if (group->state == GROUP_STATE_FAILED && !any_failed(group))
        group_state_set(r, g, GROUP_STATE_EXECUTING, STR_EMPTY);
}

void group_forget_target(releases *r, uint32_t g, uint32_t t)
{
    rel_group *group = &r->groups.at[g];
    for (size_t i = 0; i < group->members.len; i++)
        if (group->members.at[i].target == t) {
            member_remove(group, i);
            mark_site(r, group->site);
            if (!group_has_work(group) && group->starts == 0) {
                group->members.len = 0;
                group_end(r, g, GROUP_STATE_SUPERSEDED, STR("its members are gone"));
            } else if (group->members.len == 0)
                group_end(r, g, GROUP_STATE_COMPLETED, STR("its members are gone"));
            return;
        }
}

void member_skip(releases *r, uint32_t g, rel_member *m)
{
    if (m->state == MEMBER_IS_RUNNING || member_over(m))
        return;
    m->state = MEMBER_IS_SKIPPED;
    if (m->role == ROLE_MEMBER)
        target_refuse(r, m->target, m->version, REFUSAL_SKIPPED);
    mark_resource_all(r, r->sites.at[r->groups.at[g].site].resource);
    group_resume(r, g);
}

void member_retry(releases *r, uint32_t g, rel_member *m)
{
    if (m->state != MEMBER_IS_FAILED)
        return;
    m->state = r->groups.at[g].rolling_back && m->role == ROLE_MEMBER ? MEMBER_IS_TO_ROLL_BACK
                                                                      : MEMBER_IS_PENDING;
    mark_resource_all(r, r->sites.at[r->groups.at[g].site].resource);
    group_resume(r, g);
}

/* ---- two groups on one resource ---- */

static bool post_started(const rel_group *g)
{
    for (size_t i = 0; i < g->members.len; i++)
        if (g->members.at[i].role == ROLE_POST && g->members.at[i].state != MEMBER_IS_PENDING)
            return true;
    return false;
}

void group_supersede(releases *r, uint32_t s)
{
    rel_site *site = &r->sites.at[s];
    if (site->active == NO || site->ready == NO)
        return;
    rel_group *old = &r->groups.at[site->active], *next = &r->groups.at[site->ready];
    if (old->state != GROUP_STATE_FAILED || group_runs(old))
        return;
    bool merge = r->rules.at[site->rule].overlap == OVERLAP_MERGE;
    for (size_t i = 0; i < old->members.len; i++) {
        const rel_member *was = &old->members.at[i];
        rel_member *now = member_in(r, site->ready, was->target);
        if (now && merge && was->role == ROLE_PRE && was->state == MEMBER_IS_DONE)
            now->state = MEMBER_IS_DONE;
        /* What the older group never came to is still to be done. */
        if (!now && was->role == ROLE_MEMBER && was->state == MEMBER_IS_PENDING &&
            !vec_push(&next->members, *was))
            rel_no_memory(r);
    }
    next->took_over = old->starts > 0;
    if (old->starts == 0)
        next->turn_ms = old->turn_ms;
    group_end(r, site->active, GROUP_STATE_SUPERSEDED, rel_text(r, next->name));
}

/* "The current one" of a member that the group changes itself is the one the group brings: it runs
 * once more. Who was skipped or goes back is left alone. */
static void redeploy_join(const releases *r, rel_member *has)
{
    if (has->state == MEMBER_IS_RUNNING && r->targets.at[has->target].job_role != ROLE_ROLLBACK &&
        has->later == NO)
        has->later = has->version;
    if (has->state != MEMBER_IS_DONE)
        return;
    has->redeploy = true;
    has->state = MEMBER_IS_PENDING;
}

static void member_join(releases *r, rel_group *into, uint32_t g, const rel_member *m)
{
    rel_member *has = member_in(r, g, m->target);
    if (!has) {
        rel_member fresh = *m;
        fresh.good = r->targets.at[m->target].current;
        if (!vec_push(&into->members, fresh))
            rel_no_memory(r);
        return;
    }
    if (m->role == ROLE_PRE)
        return;
    if (m->redeploy && m->role == ROLE_MEMBER) {
        redeploy_join(r, has);
        return;
    }
    if (has->state == MEMBER_IS_RUNNING) {
        has->later = m->version;
        return;
    }
    has->version = m->version;
    has->redeploy = m->redeploy;
    has->state = MEMBER_IS_PENDING;
}

bool group_takes_in(const releases *r, uint32_t g)
{
    const rel_group *group = &r->groups.at[g];
    return r->rules.at[r->sites.at[group->site].rule].overlap == OVERLAP_MERGE &&
           group->state == GROUP_STATE_EXECUTING && !group->rolling_back &&
           all_over(group, is_pre) && !post_started(group);
}

/* A hook that the group has not run cannot prepare what is under way already. */
static bool prepared_for(const releases *r, uint32_t a, uint32_t b)
{
    const rel_group *next = &r->groups.at[b];
    for (size_t i = 0; i < next->members.len; i++)
        if (is_pre(&next->members.at[i]) && !member_in(r, a, next->members.at[i].target))
            return false;
    return true;
}

void group_merge(releases *r, uint32_t s)
{
    rel_site *site = &r->sites.at[s];
    if (site->active == NO || site->ready == NO || !group_takes_in(r, site->active))
        return;
    uint32_t a = site->active, b = site->ready;
    rel_group *into = &r->groups.at[a];
    if (!prepared_for(r, a, b))
        return;
    for (size_t i = 0; i < r->groups.at[b].members.len; i++)
        member_join(r, into, a, &r->groups.at[b].members.at[i]);
    group_end(r, b, GROUP_STATE_SUPERSEDED, rel_text(r, into->name));
}
