/* SPDX-License-Identifier: Apache-2.0 */
/* Places in the batches of several deploymentPolicy rules: who needs which before which, and who
 * gives a place back that nothing was begun with. */
#include "base/mem.h"
#include "engine/rule_compartments_internal.h"

bool group_paced(const releases *r, uint32_t g, uint32_t rule_)
{
    for (size_t i = 0; g != NO && i < r->groups.at[g].members.len; i++)
        if (lane_paced(&r->lanes.at[r->targets.at[r->groups.at[g].members.at[i].target].lane],
                       rule_))
            return true;
    return false;
}

/* ---- several limits at once ---- */

bool has_earlier_places(const releases *r, const rel_pace *p, uint32_t t)
{
    for (uint32_t other = pace_next(r, t, RULE_DEPLOYMENT_POLICY, NO); other != NO;
         other = pace_next(r, t, RULE_DEPLOYMENT_POLICY, other)) {
        const rel_pace *x = &r->paces.at[other];
        if (x != p && str_cmp(r->rules.at[x->rule].scope, r->rules.at[p->rule].scope) < 0 &&
            cohort_state(x->cohort, pace_member(r, x, t)) != MEMBER_IN_FLIGHT)
            return false;
    }
    return true;
}

bool released(const releases *r, uint32_t t)
{
    for (uint32_t p = pace_next(r, t, RULE_ROLLOUT_STRATEGY, NO); p != NO;
         p = pace_next(r, t, RULE_ROLLOUT_STRATEGY, p))
        if (!partition_pace_permits(r, p, t))
            return false;
    return true;
}

bool group_released(const releases *r, uint32_t g)
{
    for (size_t i = 0; i < r->groups.at[g].members.len; i++)
        if (!released(r, r->groups.at[g].members.at[i].target))
            return false;
    return true;
}

bool group_has_earlier_places(const releases *r, const rel_pace *p, uint32_t g)
{
    for (size_t i = 0; i < r->groups.at[g].members.len; i++)
        if (!has_earlier_places(r, p, r->groups.at[g].members.at[i].target))
            return false;
    return true;
}

/* ---- places that are given back ---- */

void give_back(releases *r, uint32_t p, uint32_t t)
{
    cohort_leave(r->paces.at[p].cohort, pace_member(r, &r->paces.at[p], t));
    paces_join(r, t);
    mark_target(r, t);
    pace_mark(r, p);
}

void give_back_resource(releases *r, uint32_t p, uint32_t res)
{
    cohort_leave(r->paces.at[p].cohort, res);
    const index_list *on = &r->resources.at[res].targets;
    for (size_t i = 0; i < on->len; i++)
        if (r->targets.at[on->at[i]].site != NO && r->targets.at[on->at[i]].lane != NO)
            paces_join(r, on->at[i]);
    mark_resource_all(r, res);
    pace_mark(r, p);
}

/* Every group that is ready needs a release or a place that comes before this one, and none has
 * begun with it: one that needs nothing else is about to. */
bool resource_lacks(const releases *r, const rel_pace *p, uint32_t res)
{
    const index_list *sites = &r->resources.at[res].sites;
    bool lacks = false;
    for (size_t i = 0; i < sites->len; i++) {
        const rel_site *site = &r->sites.at[sites->at[i]];
        if (site->environment != p->environment)
            continue;
        if (group_paced(r, site->active, p->rule))
            return false;
        if (!group_paced(r, site->ready, p->rule))
            continue;
        if (r->groups.at[site->ready].took_over ||
            (group_released(r, site->ready) && group_has_earlier_places(r, p, site->ready)))
            return false;
        lacks = true;
    }
    return lacks;
}

/* A target in a batch needs a release, or a place that comes before this one, and nothing was begun
 * on it with those it has. */
bool target_lacks(const releases *r, const rel_pace *p, uint32_t t)
{
    const rel_target *target = &r->targets.at[t];
    if (target->job != 0 || target->rollback_to != NO)
        return false;
    return !released(r, t) || (target->attempts == 0 && !has_earlier_places(r, p, t));
}

/* Whether a member has its place and nothing was begun with it. */
static bool is_idle(const releases *r, const rel_pace *p, member_id m)
{
    if (cohort_state(p->cohort, m) != MEMBER_IN_FLIGHT)
        return false;
    if (p->cell != NO)
        return r->targets.at[m].job == 0 && r->targets.at[m].attempts == 0 &&
               r->targets.at[m].rollback_to == NO;
    const index_list *sites = &r->resources.at[m].sites;
    for (size_t i = 0; i < sites->len; i++) {
        const rel_site *site = &r->sites.at[sites->at[i]];
        bool took_over = site->ready != NO && r->groups.at[site->ready].took_over;
        if (site->environment == p->environment && (site->active != NO || took_over))
            return false;
    }
    return true;
}

static uint32_t resource_of_member(const releases *r, const rel_pace *p, member_id m)
{
    return p->cell == NO ? m : r->targets.at[m].resource;
}

typedef struct idle_order {
    const releases *r;
    const rel_pace *p;
} idle_order;

/* Who was picked last comes first. */
static int by_turn_back(const void *a, const void *b, void *context)
{
    const idle_order *o = context;
    uint32_t x = resource_of_member(o->r, o->p, *(const uint32_t *)a),
             y = resource_of_member(o->r, o->p, *(const uint32_t *)b);
    int64_t left = created_ms(o->r, x), right = created_ms(o->r, y);
    if (left != right)
        return left > right ? -1 : 1;
    return str_cmp(rel_text(o->r, o->r->resources.at[y].name),
                   rel_text(o->r, o->r->resources.at[x].name));
}

static bool exceeded(const cohort *c, size_t index)
{
    compartment_view v;
    cohort_view(c, index, &v);
    return v.holders > v.ceiling;
}

void give_back_idle(releases *r, uint32_t p)
{
    index_list idle = {0};
    cohort *c = r->paces.at[p].cohort;
    if (!cohort_settle(c)) /* who has other labels has left by now */
        rel_no_memory(r);
    for (size_t i = 0; i < cohort_compartments(c); i++) {
        size_t count = 0;
        const member_id *batch = exceeded(c, i) ? cohort_batch(c, i, &count) : NULL;
        for (size_t k = 0; k < count; k++)
            if (is_idle(r, &r->paces.at[p], batch[k]))
                index_add(r, &idle, batch[k]);
    }
    if (idle.len > 1)
        qsort_r(idle.at, idle.len, sizeof *idle.at, by_turn_back,
                &(idle_order){r, &r->paces.at[p]});
    for (size_t i = 0; i < idle.len; i++) {
        /* Who gave its place back before is still a member of its compartment. */
        if (!cohort_settle(c) || !exceeded(c, cohort_compartment_of(c, idle.at[i])))
            continue;
        if (r->paces.at[p].cell == NO)
            give_back_resource(r, p, idle.at[i]);
        else
            give_back(r, p, idle.at[i]);
    }
    vec_done(&idle);
}
