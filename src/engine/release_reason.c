/* SPDX-License-Identifier: Apache-2.0 */
/* Why a release target is not done: the same chain over the same state, and what its group and its
 * slots add to it. */
#include <assert.h>

#include "engine/chain.h"
#include "engine/release_reduce.h"

/* ---- states ---- */

uint32_t target_refusal(const releases *r, uint32_t t, rel_refusal *ret)
{
    const rel_target *target = &r->targets.at[t];
    const index_list *versions = &r->deployments.at[target->deployment].versions;
    for (size_t i = 0; target->refusals > 0 && i < versions->len; i++) {
        uint32_t v = versions->at[i];
        if (v == target->current)
            return NO;
        if (version_ready(r, v) && target_refused(r, t, v, ret))
            return v;
    }
    return NO;
}

placement_state target_state(releases *r, uint32_t t)
{
    const rel_target *target = &r->targets.at[t];
    uint32_t g;
    rel_refusal why;
    if (target->job != 0)
        return PLACEMENT_IN_FLIGHT;
    if (target->lane == NO)
        return PLACEMENT_WAITING;
    const rel_member *m = member_of_target(r, t, &g);
    if (m && m->state == MEMBER_IS_FAILED)
        return PLACEMENT_FAILED;
    if (target_failed(r, t) || target->failed_rollback)
        return PLACEMENT_FAILED;
    uint32_t goal = target_goal(r, t);
    bool waits = m || goal != target->current || target->aim != NO || target->rollback_to != NO;
    if (r->lanes.at[target->lane].role != ROLE_MEMBER && !m && target->rollback_to == NO)
        waits = false;
    if (waits && target->rollback_to == NO && partition_excludes(r, t))
        return PLACEMENT_EXCLUDED;
    if (waits)
        return r->resources.at[target->resource].quarantined ? PLACEMENT_BLOCKED
                                                             : PLACEMENT_WAITING;
    if (r->lanes.at[target->lane].role == ROLE_MEMBER && target_refusal(r, t, &why) != NO)
        return PLACEMENT_EXCLUDED;
    if (r->lanes.at[target->lane].role == ROLE_MEMBER && target->current == NO)
        return PLACEMENT_EXCLUDED;
    return PLACEMENT_DONE;
}

/* ---- groups ---- */

static str deployment_name(const releases *r, uint32_t t)
{
    return rel_text(r, r->deployments.at[r->targets.at[t].deployment].name);
}

/* Members that come before this one by their role. */
static bool before_by_role(const rel_member *m, const rel_member *than)
{
    return (m->role == ROLE_PRE && than->role != ROLE_PRE) ||
           (than->role == ROLE_POST && m->role != ROLE_POST);
}

static bool role_reason(releases *r, uint32_t g, const rel_member *m, arena *a, reasons *out)
{
    const rel_group *group = &r->groups.at[g];
    str *of = ARENA_ARRAY(a, group->members.len + 1, str);
    size_t n = 0;
    str text = STR_EMPTY;
    if (!of)
        return false;
    for (size_t i = 0; i < group->members.len; i++) {
        const rel_member *other = &group->members.at[i];
        if (!before_by_role(other, m) || member_over(other))
            continue;
        of[n++] = deployment_name(r, other->target);
        str state = other->state == MEMBER_IS_FAILED ? STR(", which failed") : STR_EMPTY;
        text = arena_printf(a, "%.*s%s%.*s%.*s", STR_ARG(text), n > 1 ? ", " : "",
                            STR_ARG(of[n - 1]), STR_ARG(state));
    }
    if (n == 0)
        return true;
    reason why = {.rule = REASON_BRACKET,
                  .scope = arena_printf(a, "version group %.*s", STR_ARG(rel_text(r, group->name))),
                  .act = RELEASE_COMPLETE,
                  .of = of,
                  .of_count = n,
                  .next_ms = NEVER,
                  .detail = arena_printf(a, "waits for %.*s", STR_ARG(text))};
    return reasons_add(out, a, why);
}

/* Whether another member of a group that rolls all of them back goes before this one. */
static bool goes_back_first(const rel_member *other, const rel_member *m)
{
    return other->state == MEMBER_IS_RUNNING ||
           (other->started > m->started && !member_over(other) && other->role == ROLE_MEMBER);
}

/* The group has failed: whoever failed must be retried or skipped first. */
static bool failed_reason(releases *r, uint32_t g, const rel_member *m, arena *a, reasons *out)
{
    const rel_group *group = &r->groups.at[g];
    if (group->state != GROUP_STATE_FAILED)
        return true;
    for (size_t i = 0; i < group->members.len; i++) {
        const rel_member *other = &group->members.at[i];
        /* To complete who comes first is asked for anyway. */
        if (other->state != MEMBER_IS_FAILED || other == m || before_by_role(other, m) ||
            (m->state == MEMBER_IS_TO_ROLL_BACK && group->rolling_back &&
             goes_back_first(other, m)))
            continue;
        str *of = ARENA_NEW(a, str);
        if (!of)
            return false;
        *of = deployment_name(r, other->target);
        reason why = {
            .rule = REASON_FAILED,
            .scope = arena_printf(a, "version group %.*s", STR_ARG(rel_text(r, group->name))),
            .act = RELEASE_RETRY,
            .of = of,
            .of_count = 1,
            .next_ms = NEVER,
            .detail = arena_printf(a, "%.*s: %.*s", STR_ARG(*of),
                                   STR_ARG(rel_text(r, r->targets.at[other->target].failure)))};
        if (!reasons_add(out, a, why))
            return false;
    }
    return true;
}

/* A job from before the group was locked: the group waits for its end. */
static bool busy_reason(releases *r, uint32_t t, arena *a, reasons *out)
{
    str *of = ARENA_NEW(a, str);
    if (!of)
        return false;
    *of = deployment_name(r, t);
    return reasons_add(out, a,
                       (reason){.rule = REASON_BUSY,
                                .scope = STR("resource"),
                                .act = RELEASE_COMPLETE,
                                .of = of,
                                .of_count = 1,
                                .next_ms = NEVER,
                                .detail = *of});
}

/* When a newer version that is being collected takes the place of what has failed; NEVER: none is.
 * Whom the group never came to the next one takes along, and hooks run again in it. */
static int64_t superseded_at(releases *r, uint32_t g, const rel_member *m)
{
    const rel_target *t = &r->targets.at[m->target];
    const rel_group *group = &r->groups.at[g];
    site_collection next;
    bool newer = t->wanted != NO && t->wanted != t->current && t->wanted != m->version;
    bool hook = m->role != ROLE_MEMBER;
    if (group->state != GROUP_STATE_FAILED || group_runs(group) || t->site != group->site ||
        !(newer || hook || m->state == MEMBER_IS_PENDING))
        return NEVER;
    site_collect(r, t->site, &next);
    return hook && !newer && next.news == 0 ? NEVER : next.locks_ms;
}

/* Whether it is about to take the place of one that has failed, and all that this one holds. */
static bool takes_over(const releases *r, uint32_t g)
{
    const rel_site *site = &r->sites.at[r->groups.at[g].site];
    const rel_group *old = site->active == NO ? NULL : &r->groups.at[site->active];
    return site->ready == g && old && old->state == GROUP_STATE_FAILED && old->starts > 0;
}

/* It has failed, and only a person gets it going again, or the next group at next_ms. */
static bool own_failure(releases *r, uint32_t t, int64_t next_ms, arena *a, reasons *out)
{
    str *of = ARENA_NEW(a, str);
    if (!of)
        return false;
    *of = deployment_name(r, t);
    return reasons_add(out, a,
                       (reason){.rule = REASON_FAILED,
                                .scope = r->targets.at[t].failed_rollback ? STR("rollback")
                                                                          : STR("release target"),
                                .act = RELEASE_RETRY,
                                .of = of,
                                .of_count = 1,
                                .next_ms = next_ms,
                                .detail = rel_text(r, r->targets.at[t].failure)});
}

/* Why a member does not go back to what it ran: all of them go in the reverse order of their
 * starts; dependencies do not matter then. */
static bool rollback_reason(releases *r, uint32_t g, const rel_member *m, arena *a, reasons *out)
{
    const rel_group *group = &r->groups.at[g];
    str *of = ARENA_ARRAY(a, group->members.len + 1, str);
    size_t n = 0;
    str text = STR("members go back one after the other");
    if (!of)
        return false;
    for (size_t i = 0; group->rolling_back && i < group->members.len; i++) {
        const rel_member *other = &group->members.at[i];
        if (other == m || !goes_back_first(other, m))
            continue;
        of[n++] = deployment_name(r, other->target);
        if (other->state == MEMBER_IS_FAILED)
            text = arena_printf(a, "%.*s; %.*s failed", STR_ARG(text), STR_ARG(of[n - 1]));
    }
    chain_context c = {.r = r,
                       .target = m->target,
                       .lane = r->targets.at[m->target].lane,
                       .version = m->version,
                       .group = g,
                       .a = a};
    if ((m->state == MEMBER_IS_FAILED &&
         !own_failure(r, m->target, superseded_at(r, g, m), a, out)) ||
        !failed_reason(r, g, m, a, out) || !people_explain(&c, out) ||
        !slot_reasons(r, CLAIM_GROUP(g), a, out))
        return false;
    return n == 0 || reasons_add(out, a,
                                 (reason){.rule = REASON_BRACKET,
                                          .scope = STR("rollback"),
                                          .act = RELEASE_COMPLETE,
                                          .of = of,
                                          .of_count = n,
                                          .next_ms = NEVER,
                                          .detail = text});
}

/* Whether a dependency names it. */
static bool waited_for(const reasons *list, str name)
{
    for (size_t i = 0; i < list->len; i++)
        for (size_t k = 0; list->at[i].rule == REASON_DEPENDENCY &&
                           list->at[i].act == RELEASE_COMPLETE && k < list->at[i].of_count;
             k++)
            if (str_eq(list->at[i].of[k], name))
                return true;
    return false;
}

static bool group_reasons(releases *r, uint32_t g, const rel_member *m, arena *a, reasons *out)
{
    const rel_group *group = &r->groups.at[g];
    bool back = group->rolling_back && m->role == ROLE_MEMBER && m->state == MEMBER_IS_FAILED;
    if (back || m->state == MEMBER_IS_TO_ROLL_BACK)
        return rollback_reason(r, g, m, a, out);
    bool begun = group->state == GROUP_STATE_EXECUTING || group->state == GROUP_STATE_FAILED;
    reasons own = {0};
    chain_context c = {.r = r,
                       .target = m->target,
                       .lane = r->targets.at[m->target].lane,
                       .version = m->version,
                       .group = g,
                       .a = a};
    if (!chain_explain(&c, &own))
        return false;
    for (size_t i = 0; !begun && i < group->members.len; i++) {
        const rel_member *other = &group->members.at[i];
        /* That who comes first is completed is asked for anyway, and so all that it needs. */
        if (member_over(other) || before_by_role(other, m) ||
            (other != m && waited_for(&own, deployment_name(r, other->target))))
            continue;
        if (r->targets.at[other->target].job != 0 && !busy_reason(r, other->target, a, out))
            return false;
        chain_context its = {.r = r,
                             .target = other->target,
                             .lane = r->targets.at[other->target].lane,
                             .version = other->version,
                             .group = g,
                             .starting = true,
                             .a = a};
        if (!chain_explain(&its, out))
            return false;
    }
    /* What has begun holds its places, and so does who takes over what was begun. */
    if ((!begun && !takes_over(r, g) && !paces_reasons(r, CLAIM_GROUP(g), NO, a, out)) ||
        !slot_reasons(r, CLAIM_GROUP(g), a, out))
        return false;
    int64_t next_ms = superseded_at(r, g, m);
    size_t from = out->len;
    if (!failed_reason(r, g, m, a, out) || !role_reason(r, g, m, a, out))
        return false;
    bool told = m->state != MEMBER_IS_FAILED; /* that it must be retried */
    for (size_t i = 0; i < own.len; i++) {
        bool again = own.at[i].rule == REASON_RETRY;
        /* Not even a rule that would let it be tried again gets a failed group going. */
        bool wrong = own.at[i].act != RELEASE_RETRY || next_ms != NEVER;
        if (again && wrong && m->state == MEMBER_IS_FAILED)
            continue;
        told = told || again;
        if (!reasons_add(out, a, own.at[i]))
            return false;
    }
    /* The next group waits for nobody of this one: who failed, or was to come first, is let be. */
    for (size_t i = from; i < out->len; i++) {
        bool member = out->at[i].rule == REASON_FAILED || out->at[i].rule == REASON_BRACKET ||
                      out->at[i].rule == REASON_DEPENDENCY;
        if (member && out->at[i].next_ms == NEVER)
            out->at[i].next_ms = next_ms;
    }
    return told || own_failure(r, m->target, next_ms, a, out);
}

/* ---- all of it ---- */

static bool one_reason(releases *r, uint32_t t, arena *a, reason why, reasons *out)
{
    str *of = ARENA_NEW(a, str);
    if (!of)
        return false;
    *of = why.act == RELEASE_COMPLETE ? rel_text(r, r->resources.at[r->targets.at[t].resource].name)
                                      : deployment_name(r, t);
    why.of = of;
    why.of_count = 1;
    why.next_ms = NEVER;
    return reasons_add(out, a, why);
}

/* The chain, and the limits: those of a version group are asked when it has locked. */
static bool explain_start(const chain_context *c, reasons *out)
{
    uint32_t claim = CLAIM_TARGET(c->target);
    return chain_explain(c, out) && (c->r->targets.at[c->target].site != NO ||
                                     (paces_reasons(c->r, claim, c->version, c->a, out) &&
                                      slot_reasons(c->r, claim, c->a, out)));
}

/* A version that is not wanted here before a person retries it, and what else would hold it. */
static bool refused_reason(const chain_context *c, rel_refusal why, reasons *out)
{
    return one_reason(c->r, c->target, c->a,
                      (reason){.rule = why == REFUSAL_SKIPPED ? REASON_SKIPPED : REASON_ROLLED_BACK,
                               .scope = STR("release target"),
                               .act = RELEASE_RETRY,
                               .detail = rel_text(c->r, c->r->versions.at[c->version].tag)},
                      out) &&
           explain_start(c, out);
}

static bool excluded_reason(releases *r, uint32_t t, arena *a, reasons *out)
{
    rel_refusal why;
    if (partition_excludes(r, t))
        return paces_reasons(r, CLAIM_TARGET(t), NO, a, out);
    chain_context c = {.r = r, .target = t, .lane = r->targets.at[t].lane, .group = NO, .a = a};
    c.version = target_refusal(r, t, &why);
    if (c.version != NO)
        return refused_reason(&c, why, out);
    /* Versions there may be, but none that versionSelector lets be. */
    const index_list *versions = &r->deployments.at[r->targets.at[t].deployment].versions;
    for (size_t i = 0; i < versions->len; i++) {
        verdict v;
        bool selected;
        c.version = versions->at[i];
        if (!version_ready(r, c.version))
            continue;
        chain_version(&c, &v, &selected);
        if (v.kind != VERDICT_ALLOWED)
            return explain_start(&c, out);
    }
    c.version = NO;
    return one_reason(r, t, a,
                      (reason){.rule = REASON_NO_VERSION,
                               .scope = STR("deployment"),
                               .act = RELEASE_PUBLISH},
                      out) &&
           people_explain(&c, out);
}

/* A version that goes back is stopped by no pause and no freeze. */
static bool going_back(reasons *list)
{
    size_t kept = 0;
    for (size_t i = 0; i < list->len; i++)
        if (list->at[i].rule != REASON_PAUSED && list->at[i].rule != REASON_FREEZE)
            list->at[kept++] = list->at[i];
    list->len = kept;
    return true;
}

/* Whether somebody must be retried whose completion is not asked for anyway. */
static bool asks_retry(const reasons *list)
{
    for (size_t i = 0; i < list->len; i++)
        if (list->at[i].rule == REASON_FAILED && !waited_for(list, list->at[i].of[0]))
            return true;
    return false;
}

/* A group that failed ends as soon as nothing of it runs if the next one is ready: whom it never
 * came to waits in that one already, for whoever runs, and needs nobody retried. */
static bool in_group_reasons(releases *r, uint32_t g, const rel_member *m, arena *a, reasons *out)
{
    const rel_group *group = &r->groups.at[g];
    uint32_t next = r->sites.at[group->site].active == g ? r->sites.at[group->site].ready : NO;
    if (next == NO || group->state != GROUP_STATE_FAILED || group->rolling_back ||
        m->role != ROLE_MEMBER || m->state != MEMBER_IS_PENDING)
        return group_reasons(r, g, m, a, out);
    reasons own = {.most = out->most};
    bool good = group_reasons(r, g, m, a, &own);
    if (good && asks_retry(&own)) {
        const rel_member *there = member_in(r, next, m->target);
        return group_reasons(r, next, there ? there : m, a, out);
    }
    for (size_t i = 0; good && i < own.len; i++)
        good = reasons_add(out, a, own.at[i]);
    return good;
}

/* To retry what failed takes up again what was skipped or rolled back there, too: a newer version
 * comes instead then. NO: none does. */
static uint32_t retry_brings(releases *r, uint32_t t, rel_refusal *ret)
{
    uint32_t v = target_failed(r, t) ? target_refusal(r, t, ret) : NO;
    bool newer = v != NO && version_newer(r, v, r->targets.at[t].failed_version);
    return newer && version_answer(r, t, v).passes ? v : NO;
}

static bool waiting_reasons(releases *r, uint32_t t, arena *a, reasons *out)
{
    const rel_target *target = &r->targets.at[t];
    uint32_t g;
    const rel_member *m = member_of_target(r, t, &g);
    if (m)
        return in_group_reasons(r, g, m, a, out);
    chain_context c = {.r = r,
                       .target = t,
                       .lane = target->lane,
                       .group = NO,
                       .a = a,
                       .version = target_pending(r, t) ? target->wanted : target->aim};
    bool failed = target->failed_rollback && target->failed_version != NO;
    if (failed && !own_failure(r, t, NEVER, a, out))
        return false;
    if (failed || target->rollback_to != NO)
        return people_explain(&c, out) && going_back(out) &&
               slot_reasons(r, CLAIM_TARGET(t), a, out);
    rel_refusal why;
    uint32_t newer = retry_brings(r, t, &why);
    if (newer != NO) {
        c.version = newer;
        return refused_reason(&c, why, out);
    }
    return c.version == NO || explain_start(&c, out);
}

/* ---- times ---- */

/* The latest of the times that are waited for; NEVER: none is. */
static int64_t latest_time(const reasons *list)
{
    int64_t latest = NEVER;
    for (size_t i = 0; i < list->len; i++)
        if (list->at[i].act == RELEASE_TIME)
            latest = later_of(latest, list->at[i].next_ms);
    return latest;
}

/* Adds what is in the way at a later moment: what is new, and times that have moved. */
static bool reasons_merge(reasons *list, const reasons *later, arena *a)
{
    for (size_t i = 0; i < later->len; i++) {
        const reason *r = &later->at[i];
        reason *known = NULL;
        for (size_t k = 0; k < list->len && !known; k++)
            if (list->at[k].rule == r->rule && str_eq(list->at[k].scope, r->scope) &&
                reason_names_all(&list->at[k], r)) /* else it is the same of somebody else */
                known = &list->at[k];
        if (!known && !reasons_add(list, a, *r))
            return false;
        /* A soak that has not begun is counted from the moment of asking. */
        if (known && known->act == RELEASE_TIME && r->act == RELEASE_TIME && r->rule != REASON_SOAK)
            known->next_ms = later_of(known->next_ms, r->next_ms);
    }
    return true;
}

/* What holds a slot without moving may be quarantined before its time has come. */
static bool quarantine_reason(const releases *r, uint32_t t, int64_t until_ms, arena *a,
                              reasons *out)
{
    uint32_t res = r->targets.at[t].resource;
    const rel_resource *resource_ = &r->resources.at[res];
    int64_t due = NEVER;
    for (size_t i = 0; i < resource_->holds.len; i++) {
        uint32_t rule_ = resource_->holds.at[i].rule;
        const rule *is = r->rules.at[rule_].doc;
        if (is && is->resource_concurrency->on_timeout == SLOT_TIMEOUT_QUARANTINE)
            due = earlier(due, slot_due(r, res, rule_));
    }
    if (resource_->quarantined || due == NEVER || due > until_ms)
        return true;
    str *of = ARENA_NEW(a, str);
    if (!of)
        return false;
    *of = rel_text(r, resource_->name);
    return reasons_add(out, a,
                       (reason){.rule = REASON_QUARANTINED,
                                .scope = STR("resource"),
                                .act = RELEASE_RETRY,
                                .of = of,
                                .of_count = 1,
                                .next_ms = due,
                                .detail = *of});
}

/* When a cooldown is over, the window may be closed again: the moments that are waited for are
 * asked in turn until one is found at which time stands in the way no longer. */
#define MOMENTS_MOST 16u

typedef bool (*asker)(releases *r, uint32_t t, arena *a, reasons *out);

static bool in_time(releases *r, uint32_t t, asker ask, arena *a, reasons *out)
{
    int64_t now_ms = r->core->now_ms, at_ms;
    bool good = ask(r, t, a, out);
    for (size_t i = 0; good && i < MOMENTS_MOST; i++) {
        at_ms = latest_time(out);
        if (at_ms == NEVER || at_ms <= r->core->now_ms)
            break;
        reasons later = {.most = out->most};
        r->core->now_ms = at_ms;
        good = ask(r, t, a, &later) && reasons_merge(out, &later, a);
    }
    r->core->now_ms = now_ms;
    return good && quarantine_reason(r, t, latest_time(out), a, out);
}

bool target_reasons(releases *r, uint32_t t, arena *a, reasons *out)
{
    const rel_target *target = &r->targets.at[t];
    bool good = true;
    switch (target_state(r, t)) {
    case PLACEMENT_DONE: return true;
    case PLACEMENT_IN_FLIGHT: {
        str what = arena_printf(a, "version %.*s",
                                STR_ARG(rel_text(r, r->versions.at[target->job_version].tag)));
        return what.ptr && one_reason(r, t, a,
                                      (reason){.rule = REASON_RUNNING,
                                               .scope = STR("release target"),
                                               .act = RELEASE_COMPLETE,
                                               .detail = what},
                                      out);
    }
    case PLACEMENT_EXCLUDED: good = in_time(r, t, excluded_reason, a, out); break;
    case PLACEMENT_WAITING:
    case PLACEMENT_BLOCKED:
    case PLACEMENT_FAILED: good = in_time(r, t, waiting_reasons, a, out); break;
    }
    return good && reasons_reduce(out, a);
}
