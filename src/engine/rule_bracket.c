/* SPDX-License-Identifier: Apache-2.0 */
/* deploymentBracket as the chain asks it: why a member waits for its version group, or for another
 * group on its resource. Groups lock in bracket_lock.c and run in bracket.c; nothing is changed
 * here. */
#include <inttypes.h>

#include "engine/chain.h"

static str deployment_name(const releases *r, uint32_t t)
{
    return rel_text(r, r->deployments.at[r->targets.at[t].deployment].name);
}

/* Whether the group has had the version that is asked about, or a newer one, and passed it over: as
 * long as it is not over nothing opens another for that. */
static bool passed_over(const chain_context *c, uint32_t g)
{
    const rel_member *m = member_in(c->r, g, c->target);
    uint32_t v = !m || m->redeploy ? NO : m->later != NO ? m->later : m->version;
    return v != NO && (v == c->version || version_newer(c->r, v, c->version));
}

/* Whether others of the site have something new, which is collected for the next group. */
static bool others_collect(const chain_context *c, uint32_t s)
{
    site_collection next;
    site_collect(c->r, s, &next);
    return next.opened_ms != NEVER && next.news > 0;
}

/* The group's members that are not done; of one that failed and is about to be superseded, by the
 * one that is ready or collected or by what is asked about, those that still run. of has room for
 * all. */
static size_t unfinished(const chain_context *c, uint32_t g, str *of)
{
    const releases *r = c->r;
    const rel_group *group = &r->groups.at[g];
    bool here = c->group == NO && r->targets.at[c->target].site == group->site;
    bool asked = here && (!passed_over(c, g) || others_collect(c, group->site));
    bool next = asked || r->sites.at[group->site].ready != NO;
    bool ends = group->state == GROUP_STATE_FAILED && next;
    size_t count = 0;
    for (size_t i = 0; i < group->members.len; i++) {
        const rel_member *m = &group->members.at[i];
        if (ends ? m->state == MEMBER_IS_RUNNING : !member_over(m))
            of[count++] = deployment_name(r, m->target);
    }
    return count;
}

/* Another group comes first on the resource: its members that are not done, or if it only waits for
 * its turn to end, those of the group that executes there, of whichever rule. */
static void another_first(const chain_context *c, uint32_t first, verdict *v)
{
    const releases *r = c->r;
    const rel_group *group = &r->groups.at[first];
    uint32_t active = r->resources.at[r->sites.at[group->site].resource].active;
    size_t room = group->members.len + (active == NO ? 0 : r->groups.at[active].members.len) + 1;
    verdict_no(v, VERDICT_WAITING, REASON_BRACKET, NEVER);
    v->reason.act = RELEASE_COMPLETE;
    str *of = c->a ? ARENA_ARRAY(c->a, room, str) : NULL;
    if (!of)
        return;
    v->reason.of = of;
    v->reason.of_count = unfinished(c, first, of);
    if (v->reason.of_count == 0 && active != NO)
        v->reason.of_count = unfinished(c, active, of);
    v->reason.detail = arena_printf(c->a, "the version group %.*s comes first on this resource",
                                    STR_ARG(rel_text(r, group->name)));
}

/* All wait for this one's version, and the version-level rules hold it: it locks when they let it.
 */
static bool last_lacking(const chain_context *c, uint32_t s, const site_collection *collected)
{
    const releases *r = c->r;
    const rel_rule *the = &r->rules.at[r->sites.at[s].rule];
    bool all = the->readiness == READINESS_WAIT_FOR_ALL || the->unchanged == UNCHANGED_REQUIRE_ALL;
    return all && collected->eligible + 1 == collected->ordinary &&
           r->targets.at[c->target].wanted == r->targets.at[c->target].current;
}

static void still_collecting(const chain_context *c, uint32_t s, verdict *v)
{
    site_collection collected;
    site_collect(c->r, s, &collected);
    verdict_no(v, VERDICT_WAITING, REASON_BRACKET, collected.locks_ms);
    v->reason.act = RELEASE_TIME;
    v->reason.have = collected.eligible;
    v->reason.limit = collected.ordinary;
    v->reason.detail = c->a ? arena_printf(c->a,
                                           "the version group is still collecting: %" PRId64
                                           " of %" PRId64 " members have a new version",
                                           v->reason.have, v->reason.limit)
                            : STR_EMPTY;
    /* With its time over a group waits for a version that is eligible: the version-level rules, a
     * failure or a hook say why there is none. */
    v->implied = collected.locks_ms == NEVER || last_lacking(c, s, &collected);
    /* A version that is taken up again may have been published before what is collected now. */
    const rel_site *site = &c->r->sites.at[s];
    const rel_rule *rule_ = &c->r->rules.at[site->rule];
    if (!c->a || v->implied || c->version == NO ||
        c->r->versions.at[c->version].published_ms >= collected.opened_ms ||
        (site->active != NO && passed_over(c, site->active)) ||
        (site->ready != NO && passed_over(c, site->ready)))
        return;
    v->reason.next_ms = c->r->versions.at[c->version].published_ms + rule_->window_ms;
    v->implied = v->reason.next_ms <= c->r->core->now_ms;
}

/* A hook that never had a version: one is published, or whatever holds it is satisfied. */
static bool hook_explain(const chain_context *c, uint32_t rule_, uint32_t hook, reasons *out)
{
    const rel_target *t = &c->r->targets.at[hook];
    if (t->aim != NO) {
        chain_context of = *c;
        of.target = hook;
        of.lane = t->lane;
        of.version = t->aim;
        return chain_explain_version(&of, out);
    }
    str *of = ARENA_NEW(c->a, str);
    if (!of)
        return false;
    *of = deployment_name(c->r, hook);
    rel_refusal why;
    bool refused = target_refusal(c->r, hook, &why) != NO;
    return reasons_add(
        out, c->a,
        (reason){.rule = REASON_BRACKET,
                 .scope = c->r->rules.at[rule_].scope,
                 .act = refused ? RELEASE_RETRY : RELEASE_PUBLISH,
                 .of = of,
                 .of_count = 1,
                 .next_ms = NEVER,
                 .detail = arena_printf(c->a, "the hook %.*s has no version", STR_ARG(*of))});
}

/* Whether what is asked about waits for the group: it does not if it joins it, nor if the group has
 * failed, or has not begun, and ends by it or by what others of the site have that is still
 * collected. */
static bool comes_behind(const chain_context *c, uint32_t g)
{
    const releases *r = c->r;
    const rel_group *group = &r->groups.at[g];
    const index_list *targets = &r->sites.at[group->site].targets;
    bool prepared = group_takes_in(r, g);
    for (size_t i = 0; prepared && i < targets->len; i++)
        prepared = r->lanes.at[r->targets.at[targets->at[i]].lane].role != ROLE_PRE ||
                   member_in(r, g, targets->at[i]);
    bool ends = (group->state == GROUP_STATE_FAILED && !group_runs(group)) || group->starts == 0;
    return !(ends && others_collect(c, group->site)) && (passed_over(c, g) || (!prepared && !ends));
}

bool collecting_explain(const chain_context *c, reasons *out)
{
    const rel_site *site = &c->r->sites.at[c->r->targets.at[c->target].site];
    bool good = true;
    const uint32_t groups[] = {site->active, site->ready};
    bool told = c->r->core->now_ms != c->r->asked_ms;
    for (size_t i = 0; i < out->len; i++)
        told = told || out->at[i].rule == REASON_BRACKET;
    for (size_t i = 0; i < 2 && !told; i++) {
        /* A group that is not over has had it already, and passed it over: it is the next one's. */
        if (groups[i] == NO || !member_in(c->r, groups[i], c->target) ||
            !comes_behind(c, groups[i]))
            continue;
        verdict v = {.kind = VERDICT_ALLOWED,
                     .reason = {.scope = c->r->rules.at[site->rule].scope}};
        another_first(c, groups[i], &v);
        good = verdict_report(c, &v, out);
        told = v.kind != VERDICT_ALLOWED;
    }
    for (size_t i = 0; good && i < site->targets.len; i++) {
        const rel_target *t = &c->r->targets.at[site->targets.at[i]];
        if (c->r->lanes.at[t->lane].role != ROLE_MEMBER && t->wanted == NO && t->current == NO)
            good = hook_explain(c, site->rule, site->targets.at[i], out);
    }
    return good;
}

static void bracket_verdict(const chain_context *c, uint32_t rule_, verdict *v)
{
    const releases *r = c->r;
    const rel_target *t = &r->targets.at[c->target];
    uint32_t active = r->resources.at[t->resource].active;
    (void)rule_;
    if (c->group == NO && t->site != NO)
        still_collecting(c, t->site, v);
    else if (c->group != NO && active != NO && active != c->group)
        another_first(c, active, v);
}

/* A bypass makes a group lock at once (bracket_lock.c); nobody starts outside of one by it. */
const rule_ops bracket_ops = {
    .order = 4, .level = LEVEL_FIRST, .job_level = true, .verdict = bracket_verdict};
