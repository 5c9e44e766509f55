/* SPDX-License-Identifier: Apache-2.0 */
/* Several rolloutStrategy rules over the same resources: whom one of them may release, for all that
 * the others say.
 *
 * Rules are asked in the order of their names. Each releases whom those before it have released and
 * those behind it have reached. A release that waits for its partition to be reached elsewhere
 * would hold a place that whoever is reached there may be waiting for: neither would ever start. */
#include "engine/rule_partitions_internal.h"

bool group_under(const releases *r, uint32_t g, uint32_t rule_)
{
    for (size_t i = 0; g != NO && i < r->groups.at[g].members.len; i++) {
        uint32_t lane = r->targets.at[r->groups.at[g].members.at[i].target].lane;
        if (lane != NO && lane_paced(&r->lanes.at[lane], rule_))
            return true;
    }
    return false;
}

/* Whether passes get to the member's partition. What is known is what the last pass came to that
 * released nothing: on the way there maxNew may end each of them early. */
static bool has_reached(const rel_partitions *x, uint32_t res)
{
    return member_at(x, res) && partitions_reached(x->roll.pacing, res, x->reached);
}

/* Whether all other partitions that the target is in let these release it; members of a group may
 * be under different ones. */
static bool others_agree(const releases *r, uint32_t p, uint32_t t)
{
    str scope = r->rules.at[r->paces.at[p].rule].scope;
    for (uint32_t other = pace_next(r, t, RULE_ROLLOUT_STRATEGY, NO); other != NO;
         other = pace_next(r, t, RULE_ROLLOUT_STRATEGY, other)) {
        int order = str_cmp(r->rules.at[r->paces.at[other].rule].scope, scope);
        if (other == p || order == 0)
            continue;
        if (order < 0 ? !partition_pace_permits(r, other, t)
                      : !has_reached(r->paces.at[other].partition, r->targets.at[t].resource))
            return false;
    }
    return true;
}

bool gates_of(const releases *r, uint32_t p, uint32_t t, bool gates)
{
    const rel_pace *pace = &r->paces.at[p];
    const index_list *sites = &r->resources.at[r->targets.at[t].resource].sites;
    if (pace->cell != NO)
        return gates && others_agree(r, p, t);
    bool open = false;
    for (size_t i = 0; i < sites->len; i++) {
        const rel_site *site = &r->sites.at[sites->at[i]];
        if (site->environment != pace->environment || !site->gates ||
            !group_under(r, site->ready, pace->rule))
            continue;
        const rel_group *g = &r->groups.at[site->ready];
        bool passes = true;
        for (size_t k = 0; k < g->members.len; k++)
            passes = passes && others_agree(r, p, g->members.at[k].target);
        open = open || passes;
    }
    return open;
}

/* Whether a lane is under these partitions and under others, too. */
static bool is_shared(const releases *r, const rel_pace *p)
{
    for (size_t l = 0; l < r->lanes.len; l++) {
        const rel_lane *lane = &r->lanes.at[l];
        size_t rules = 0;
        if (lane->users == 0 || !lane_paced(lane, p->rule))
            continue;
        for (size_t i = 0; i < lane->paces.len; i++)
            rules += lane->paces.at[i].kind == RULE_ROLLOUT_STRATEGY;
        if (rules > 1)
            return true;
    }
    return false;
}

void partition_pace_reaches(releases *r, uint32_t p)
{
    const rel_pace *pace = &r->paces.at[p];
    rel_partitions *x = pace->partition;
    uint64_t reach = partitions_reach(x->roll.pacing, x->roll.last.visited);
    if (reach == x->reach)
        return;
    x->reach = reach;
    x->reached = x->roll.last.visited;
    bool shared = is_shared(r, pace);
    for (uint32_t res = 0; shared && res < x->members.len; res++)
        if (x->members.at[res].present)
            mark_member(r, pace, res);
}
