/* SPDX-License-Identifier: Apache-2.0 */
/* How far the rollout of a deployment is, and whether it is over.
 *
 * It is made of the deployment's release targets and of the version groups these are members of,
 * with the hooks and the rollbacks in them: a rollout whose targets are all changed is not over
 * while a post member still restores a resource. */
#include "base/mem.h"
#include "engine/chain.h"

typedef struct survey {
    releases *r;
    uint32_t version; /* NO: whatever is wanted */
    rollout_view *view;
    bool runs;        /* a job of it */
    bool failed;      /* one of the version groups has, or a resource is quarantined */
    uint32_t bad;     /* the first target that has; NO: none */
    index_list waits; /* those whose hope decides: own ones, then members of their groups */
    size_t others;    /* targets of the deployment that it does not concern, hooks left out */
} survey;

/* ---- whom it is about ---- */

/* The group that changes the target, or has changed it and is not over. */
static uint32_t group_at(const survey *s, uint32_t t)
{
    const releases *r = s->r;
    uint32_t g = r->resources.at[r->targets.at[t].resource].active;
    const rel_member *m = g == NO ? NULL : member_in(r, g, t);
    bool meant = m && (s->version == NO || m->version == s->version || m->later == s->version);
    return meant ? g : NO;
}

/* The version is to come there, maybe behind another one that is on its way. A hook has nothing to
 * do on its own. */
static bool to_come(const survey *s, uint32_t t)
{
    const rel_target *target = &s->r->targets.at[t];
    return target->lane != NO && s->r->lanes.at[target->lane].role == ROLE_MEMBER &&
           target->current != s->version &&
           (target->wanted == s->version || target->aim == s->version);
}

static bool concerns(const survey *s, uint32_t t)
{
    const rel_target *target = &s->r->targets.at[t];
    uint32_t v = s->version;
    return v == NO || target_goal(s->r, t) == v || target->current == v ||
           target->job_version == v || to_come(s, t) || group_at(s, t) != NO ||
           target_refused(s->r, t, v, NULL);
}

/* Whom it does not concern: the version is not selected there, or would come but for its state or
 * for a newer one. */
static void count_other(survey *s, uint32_t t)
{
    uint32_t lane = s->r->targets.at[t].lane;
    if (lane == NO || s->r->lanes.at[lane].role != ROLE_MEMBER)
        return;
    s->others++;
    s->view->missed += target_selects(s->r, t, s->version);
}

/* Whether something is still to be done with the version there. */
static bool unsettled(const survey *s, uint32_t t)
{
    const rel_target *target = &s->r->targets.at[t];
    uint32_t g;
    const rel_member *m = member_of_target(s->r, t, &g);
    return (target->job != 0 &&
            (target->job_version == s->version || target->job_role == ROLE_ROLLBACK)) ||
           (m && (m->version == s->version || m->later == s->version)) ||
           target->rollback_to != NO || target->failed_rollback;
}

/* ---- counting ---- */

static void count_left_out(survey *s, bool rolled_back)
{
    if (rolled_back)
        s->view->rolled_back++;
    else
        s->view->excluded++;
}

/* The last job that ended there, well or not. */
static void note_end(survey *s, uint32_t t)
{
    const rel_target *target = &s->r->targets.at[t];
    int64_t ended_ms = later_of(target->current_ms, target->failed_ms);
    s->view->ended_ms = later_of(s->view->ended_ms, ended_ms);
}

static void count_target(survey *s, uint32_t t)
{
    releases *r = s->r;
    placement_state state = target_state(r, t);
    rel_refusal why = REFUSAL_SKIPPED;
    note_end(s, t);
    if (s->version != NO && !unsettled(s, t)) {
        if (target_refused(r, t, s->version, &why)) {
            count_left_out(s, why == REFUSAL_ROLLED_BACK);
            return;
        }
        bool other = state == PLACEMENT_FAILED && r->targets.at[t].failed_version != s->version;
        if (r->targets.at[t].current == s->version)
            state = PLACEMENT_DONE;
        else if ((state == PLACEMENT_DONE || other) && to_come(s, t))
            state = PLACEMENT_WAITING; /* what failed there is another version */
    }
    switch (state) {
    case PLACEMENT_DONE: s->view->done++; break;
    case PLACEMENT_FAILED:
        s->view->failed++;
        s->bad = s->bad == NO ? t : s->bad;
        break;
    case PLACEMENT_EXCLUDED:
        count_left_out(s, target_refusal(r, t, &why) != NO && why == REFUSAL_ROLLED_BACK);
        break;
    case PLACEMENT_IN_FLIGHT:
        s->view->in_flight++;
        s->runs = true;
        break;
    case PLACEMENT_WAITING:
    case PLACEMENT_BLOCKED:
        s->failed = s->failed || state == PLACEMENT_BLOCKED; /* by a failure: it is quarantined */
        s->view->waiting++;
        index_add(r, &s->waits, t);
        break;
    }
}

static void count_group(survey *s, uint32_t t, index_list *members)
{
    uint32_t g = group_at(s, t);
    if (g == NO)
        return;
    const rel_group *group = &s->r->groups.at[g];
    s->view->groups++;
    s->failed = s->failed || group->state == GROUP_STATE_FAILED;
    s->runs = s->runs || group_runs(group);
    for (size_t i = 0; i < group->members.len; i++) {
        note_end(s, group->members.at[i].target);
        if (group->members.at[i].target != t && !member_over(&group->members.at[i]))
            index_add(s->r, members, group->members.at[i].target);
    }
}

/* ---- the answer ---- */

/* Somebody it was meant for does not get the version, or nobody does. */
static bool is_missed(const survey *s)
{
    const rollout_view *view = s->view;
    bool nobody = view->targets + view->excluded + view->groups == 0;
    return s->version != NO &&
           (view->missed > 0 || (nobody && (s->others > 0 || !version_ready(s->r, s->version))));
}

/* It may still come when it is ready. Else it was withdrawn, or a newer one or the rules went past
 * it. */
static rollout_state missed(const survey *s)
{
    const version *doc = s->r->versions.at[s->version].doc;
    bool later =
        doc && (doc->spec.status == VERSION_BUILDING || doc->spec.status == VERSION_PAUSED);
    return later ? ROLLOUT_RUNNING : ROLLOUT_FAILED;
}

static rollout_state judge(survey *s)
{
    const rollout_view *view = s->view;
    bool open = view->waiting + view->groups > 0;
    if (s->runs || (open && hope_of_any(s->r, &s->waits, s->version)))
        return ROLLOUT_RUNNING;
    if (s->failed || view->failed + view->rolled_back > 0)
        return ROLLOUT_FAILED;
    if (is_missed(s))
        return missed(s);
    return open ? ROLLOUT_HELD : ROLLOUT_DONE;
}

static void survey_targets(survey *s, uint32_t d)
{
    releases *r = s->r;
    index_list own = {0}, members = {0};
    const index_list *cells = &r->deployments.at[d].cells;
    for (size_t i = 0; i < cells->len; i++) {
        const index_list *targets = &r->cells.at[cells->at[i]].targets;
        for (size_t k = 0; k < targets->len; k++) {
            if (r->targets.at[targets->at[k]].id == 0)
                continue;
            if (concerns(s, targets->at[k]))
                index_add(r, &own, targets->at[k]);
            else
                count_other(s, targets->at[k]);
        }
    }
    targets_in_order(r, &own);
    for (size_t i = 0; i < own.len; i++) {
        count_target(s, own.at[i]);
        count_group(s, own.at[i], &members);
    }
    targets_in_order(r, &members);
    for (size_t i = 0; i < members.len; i++)
        index_add(r, &s->waits, members.at[i]);
    vec_done(&own);
    vec_done(&members);
}

void releases_rollout(const void *self, str change, str version_, rollout_view *ret)
{
    releases *r = (releases *)(uintptr_t)self;
    uint32_t d = keymap_get(&r->deployment_of, names_find(r->core->names, change));
    survey s = {.r = r, .version = NO, .view = ret, .bad = NO};
    if (d == NO || !r->deployments.at[d].doc)
        return;
    if (version_.len > 0) {
        s.version = keymap_get(&r->version_of, KEY_PAIR(d, names_find(r->core->names, version_)));
        if (s.version == NO)
            return;
    }
    *ret = (rollout_view){.change = rel_text(r, r->deployments.at[d].name), .version = version_};
    r->asking = true;
    r->asked_ms = r->core->now_ms;
    survey_targets(&s, d);
    ret->targets = ret->done + ret->in_flight + ret->waiting + ret->failed + ret->rolled_back;
    ret->state = judge(&s);
    if (s.version != NO && !r->versions.at[s.version].doc && ret->targets + ret->excluded == 0)
        *ret = (rollout_view){0}; /* deleted, and nobody has it */
    uint32_t open = s.waits.len > 0 ? s.waits.at[0] : s.bad;
    ret->open = open == NO ? 0 : r->targets.at[open].id;
    r->asking = false;
    vec_done(&s.waits);
}
