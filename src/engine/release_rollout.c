/* SPDX-License-Identifier: Apache-2.0 */
/* How far the rollout of a deployment is, and whether it is over.
 *
 * It is made of the deployment's release targets and of the version groups these are members of,
 * with the hooks and the rollbacks in them: a rollout whose targets are all changed is not over
 * while a post member still restores a resource. */
#include "base/mem.h"
#include "engine/chain.h"

/* What is known of a target's hope. */
#define HOPE_UNKNOWN 0
#define HOPE_ASKED 1 /* just now: who waits for itself in the end has none */
#define HOPE_NO 2
#define HOPE_YES 3

/* Whose reasons are asked in one question, and how far who waits for whom is followed. Each waits
 * for all ahead of it, so that asking all would grow with the square of the queue; when that many
 * have no hope, the others are taken to have none. */
#define HOPE_LOOKS_MAX 200u
#define HOPE_DEPTH_MAX 32u

typedef struct survey {
    releases *r;
    uint32_t version; /* NO: whatever is wanted */
    rollout_view *view;
    size_t everybody; /* targets of the deployment */
    bool runs;        /* a job of it */
    bool failed;      /* one of the version groups has */
    uint32_t bad;     /* the first target that has; NO: none */
    index_list waits; /* those whose hope decides: own ones, then members of their groups */
    byte_list hope;   /* by target */
    uint32_t looks;   /* how many were asked */
    uint32_t depth;
    arena *a;
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

static void count_target(survey *s, uint32_t t)
{
    releases *r = s->r;
    placement_state state = target_state(r, t);
    rel_refusal why = REFUSAL_SKIPPED;
    if (s->version != NO && !unsettled(s, t)) {
        if (target_refused(r, t, s->version, &why)) {
            count_left_out(s, why == REFUSAL_ROLLED_BACK);
            return;
        }
        if (r->targets.at[t].current == s->version)
            state = PLACEMENT_DONE;
        else if (state == PLACEMENT_DONE && to_come(s, t))
            state = PLACEMENT_WAITING;
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
    for (size_t i = 0; i < group->members.len; i++)
        if (group->members.at[i].target != t && !member_over(&group->members.at[i]))
            index_add(s->r, members, group->members.at[i].target);
}

/* ---- hope ---- */

/* Whether two targets take the slots of one rule. */
static bool share_slots(const releases *r, uint32_t a, uint32_t b)
{
    if (r->targets.at[a].lane == NO || r->targets.at[b].lane == NO)
        return false;
    const rel_lane *one = &r->lanes.at[r->targets.at[a].lane];
    const rel_lane *other = &r->lanes.at[r->targets.at[b].lane];
    for (size_t i = 0; i < one->rules.len; i++)
        if (one->kinds.at[i] == RULE_RESOURCE_CONCURRENCY &&
            index_has(&other->rules, one->rules.at[i]))
            return true;
    return false;
}

/* Which targets of a resource a reason of another one waits for the end of. Deployments are named
 * by a bracket and a dependency; else it is who is under the same limit. */
static bool names_target(const survey *s, const reason *why, str name, uint32_t t, uint32_t other)
{
    const rel_target *target = &s->r->targets.at[other];
    if (why->rule == REASON_BRACKET || why->rule == REASON_DEPENDENCY || why->rule == REASON_BUSY ||
        why->rule == REASON_FAILED)
        return str_eq(name, rel_text(s->r, s->r->deployments.at[target->deployment].name));
    if (why->rule == REASON_CONCURRENCY)
        return share_slots(s->r, t, other);
    return target->deployment == s->r->targets.at[t].deployment || target->site != NO;
}

static uint32_t resource_named(const survey *s, const reason *why, str name, uint32_t t)
{
    bool other = why->rule == REASON_CONCURRENCY || why->rule == REASON_BATCH ||
                 why->rule == REASON_BUDGET || why->rule == REASON_ROLLOUT ||
                 why->rule == REASON_PARTITION || why->rule == REASON_MAX_NEW ||
                 why->rule == REASON_UNAVAILABLE;
    return other ? keymap_get(&s->r->resource_of, names_find(s->r->core->names, name))
                 : s->r->targets.at[t].resource;
}

/* Not by a person who would have to take back what failures have stopped. */
static bool by_itself(const reason *why)
{
    if (why->rule == REASON_STOPPED || (why->rule == REASON_HALTED && why->limit > 0))
        return false;
    return why->next_ms != NEVER || (why->act != RELEASE_COMPLETE && why->act != RELEASE_RETRY);
}

static bool hopeful(survey *s, uint32_t t);

/* Somebody who is waited for gets on: a job runs there, or it has hope itself. */
static bool gets_on(survey *s, uint32_t t)
{
    placement_state state = target_state(s->r, t);
    return state == PLACEMENT_IN_FLIGHT || (state == PLACEMENT_WAITING && hopeful(s, t));
}

/* A progression waits for the deployment's targets in another environment. */
static bool environment_gets_on(survey *s, uint32_t t, str name)
{
    const releases *r = s->r;
    const index_list *cells = &r->deployments.at[r->targets.at[t].deployment].cells;
    for (size_t i = 0; i < cells->len; i++) {
        const rel_cell *cell = &r->cells.at[cells->at[i]];
        if (!str_eq(rel_text(r, r->environments.at[cell->environment].name), name))
            continue;
        for (size_t k = 0; k < cell->targets.len && s->looks < HOPE_LOOKS_MAX; k++)
            if (r->targets.at[cell->targets.at[k]].id != 0 && gets_on(s, cell->targets.at[k]))
                return true;
    }
    return false;
}

static bool somebody_gets_on(survey *s, uint32_t t, const reason *why)
{
    const releases *r = s->r;
    if (why->rule == REASON_PROGRESSION)
        return why->of_count > 0 && environment_gets_on(s, t, why->of[0]);
    for (size_t i = 0; i < why->of_count && s->looks < HOPE_LOOKS_MAX; i++) {
        uint32_t res = resource_named(s, why, why->of[i], t);
        for (size_t k = 0; res != NO && k < r->resources.at[res].targets.len; k++) {
            uint32_t other = r->resources.at[res].targets.at[k];
            if (other != t && names_target(s, why, why->of[i], t, other) && gets_on(s, other))
                return true;
        }
    }
    return false;
}

/* Every reason that holds it ends by time, by a person who was not asked yet, or with somebody who
 * gets on. Only what failed holds it otherwise. */
static bool hopeful(survey *s, uint32_t t)
{
    if (s->hope.at[t] != HOPE_UNKNOWN)
        return s->hope.at[t] == HOPE_YES;
    if (s->depth == HOPE_DEPTH_MAX)
        return true;
    if (s->looks == HOPE_LOOKS_MAX)
        return false;
    s->looks++;
    s->depth++;
    s->hope.at[t] = HOPE_ASKED;
    arena_place before = arena_mark(s->a);
    reasons list = {0};
    bool good = target_reasons(s->r, t, s->a, &list), hope = good;
    for (size_t i = 0; i < list.len && hope; i++)
        hope = by_itself(&list.at[i]) || somebody_gets_on(s, t, &list.at[i]);
    arena_rewind(s->a, before);
    s->hope.at[t] = hope ? HOPE_YES : HOPE_NO;
    s->depth--;
    if (!good)
        rel_no_memory(s->r);
    return hope;
}

static bool any_hope(survey *s)
{
    s->a = arena_new(0);
    bool good = s->a != NULL;
    while (good && s->hope.len < s->r->targets.len)
        good = vec_push(&s->hope, (uint8_t)HOPE_UNKNOWN);
    bool hope = false;
    for (size_t i = 0; good && !hope && s->looks < HOPE_LOOKS_MAX && i < s->waits.len; i++)
        hope = hopeful(s, s->waits.at[i]);
    if (!good)
        rel_no_memory(s->r);
    arena_free(s->a);
    vec_done(&s->hope);
    return hope;
}

/* ---- the answer ---- */

static rollout_state judge(survey *s)
{
    const rollout_view *view = s->view;
    const version *doc = s->version == NO ? NULL : s->r->versions.at[s->version].doc;
    bool failed = s->failed || view->failed + view->rolled_back > 0;
    if (s->runs)
        return ROLLOUT_RUNNING;
    if (view->targets == 0 && doc && doc->spec.status != VERSION_READY)
        return doc->spec.status == VERSION_BUILDING || doc->spec.status == VERSION_PAUSED
                   ? ROLLOUT_RUNNING
                   : ROLLOUT_FAILED;
    if (view->targets + view->excluded + view->groups == 0 && doc && s->everybody > 0)
        return ROLLOUT_FAILED; /* nobody takes it: a newer one, or the rules, went past it */
    if (view->waiting + view->groups == 0)
        return failed ? ROLLOUT_FAILED : ROLLOUT_DONE;
    if (any_hope(s))
        return ROLLOUT_RUNNING;
    return failed ? ROLLOUT_FAILED : ROLLOUT_HELD;
}

static void survey_targets(survey *s, uint32_t d)
{
    releases *r = s->r;
    index_list own = {0}, members = {0};
    const index_list *cells = &r->deployments.at[d].cells;
    for (size_t i = 0; i < cells->len; i++) {
        const index_list *targets = &r->cells.at[cells->at[i]].targets;
        for (size_t k = 0; k < targets->len; k++) {
            bool lives = r->targets.at[targets->at[k]].id != 0;
            s->everybody += lives;
            if (lives && concerns(s, targets->at[k]))
                index_add(r, &own, targets->at[k]);
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
