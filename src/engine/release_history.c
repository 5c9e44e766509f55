/* SPDX-License-Identifier: Apache-2.0 */
/* What must hold of the jobs that the last step started: after a halt none does (I6), dependencies
 * and roles are kept (I7), nothing that runs is disturbed outside a window (I8). Worked out from
 * documents and state, not by asking the chain or its caches.
 *
 * Jobs that began in an earlier step are not looked at: what was right then may have changed since,
 * and what has begun is finished. */
#include "engine/chain.h"
#include "engine/window.h"

static bool broken(const releases *r, uint32_t t, const char *what, err *error)
{
    const rel_target *target = &r->targets.at[t];
    return err_set(error, "%s: %.*s on %.*s", what,
                   STR_ARG(rel_text(r, r->deployments.at[target->deployment].name)),
                   STR_ARG(rel_text(r, r->resources.at[target->resource].name)));
}

/* Whether the group's first job began in the last step, and so its gates were asked then. */
static bool began_now(const releases *r, const rel_group *g)
{
    for (size_t i = 0; i < g->members.len; i++) {
        const rel_target *first = &r->targets.at[g->members.at[i].target];
        if (g->members.at[i].started != 1)
            continue;
        /* A job of its own that it has by now is none of the group's. */
        return first->job > r->step_job && first->job_group != NO &&
               &r->groups.at[first->job_group] == g;
    }
    return false;
}

/* A later job of a group, or a way back: what was begun is finished. */
static bool goes_on(const releases *r, const rel_target *target)
{
    return target->job_role == ROLE_ROLLBACK ||
           (target->job_group != NO && !began_now(r, &r->groups.at[target->job_group]));
}

static bool bypassed(const releases *r, uint32_t rule_, const rel_target *t)
{
    return bypass_find(r, rule_, t->job_version, t->environment, t->resource) != NULL;
}

/* ---- I6 ---- */

static bool frozen(releases *r, const rel_target *target)
{
    scope_release of = {target->deployment, target->environment, target->resource, NO};
    for (size_t i = 0; i < r->freezes.len; i++) {
        const rel_freeze *f = &r->freezes.at[i];
        bool in = true;
        if (f->expression.source.ptr && !f->failed &&
            !scope_release_matches(r, &f->expression, of, &in, NULL))
            in = true;
        if (in)
            return true;
    }
    return false;
}

static bool verify_halts(releases *r, uint32_t t, err *error)
{
    const rel_target *target = &r->targets.at[t];
    const rel_deployment *d = &r->deployments.at[target->deployment];
    const rel_resource *res = &r->resources.at[target->resource];
    if (r->halted || d->halted || res->halted || res->quarantined)
        return broken(r, t, "I6: a job began after a halt", error);
    if (target->job_group != NO && r->groups.at[target->job_group].state == GROUP_STATE_FAILED)
        return broken(r, t, "I6: a job began in a version group that has failed", error);
    if (goes_on(r, target))
        return true;
    if (d->paused || frozen(r, target))
        return broken(r, t, "I6: a job began while paused or frozen", error);
    return true;
}

/* ---- I7 ---- */

static bool fits(releases *r, const expression *e, uint32_t d, uint32_t v)
{
    bool yes = false;
    return scope_version_matches(r, e, d, v, &yes) && yes;
}

static bool is_upstream(releases *r, const expression *e, uint32_t d)
{
    const index_list *versions = &r->deployments.at[d].versions;
    bool yes = fits(r, e, d, NO);
    for (size_t i = 0; i < versions->len && !yes; i++)
        yes = fits(r, e, d, versions->at[i]);
    return yes;
}

/* Whether an upstream is where it should be: in a group by what the group did. */
static bool in_place(releases *r, const expression *e, const rel_target *of, uint32_t u)
{
    const rel_target *up = &r->targets.at[u];
    const rel_member *m = of->job_group == NO ? NULL : member_in(r, of->job_group, u);
    if (m)
        return m->state == MEMBER_IS_SKIPPED || m->state == MEMBER_IS_ROLLED_BACK ||
               (m->state == MEMBER_IS_DONE && fits(r, e, up->deployment, m->version));
    if (of->job_group != NO && up->site == r->groups.at[of->job_group].site)
        return true; /* it is unchanged in this group */
    return up->job == 0 && up->current != NO && fits(r, e, up->deployment, up->current);
}

static bool verify_dependencies(releases *r, uint32_t t, err *error)
{
    const rel_target *target = &r->targets.at[t];
    const rel_lane *lane = &r->lanes.at[target->lane];
    const index_list *on = &r->resources.at[target->resource].targets;
    for (size_t i = 0; i < lane->rules.len; i++) {
        const rel_rule *rule_ = &r->rules.at[lane->rules.at[i]];
        if (rule_->kind != RULE_DEPLOYMENT_DEPENDENCY || bypassed(r, lane->rules.at[i], target))
            continue;
        const deployment_dependency *doc = rule_->doc->deployment_dependency;
        size_t upstreams = 0, placed = 0;
        for (size_t k = 0; k < on->len; k++) {
            if (on->at[k] == t ||
                !is_upstream(r, &doc->depends_on, r->targets.at[on->at[k]].deployment))
                continue;
            upstreams++;
            placed += in_place(r, &doc->depends_on, target, on->at[k]);
        }
        if (doc->match == DEPENDENCY_ANY ? upstreams > 0 && placed == 0 : placed < upstreams)
            return broken(r, t, "I7: a job began before what it depends on was in place", error);
    }
    return true;
}

/* ---- I8 ---- */

static void note_open(void *context, int64_t from_ms, int64_t to_ms)
{
    *(bool *)context = from_ms < to_ms;
}

static bool disturbs(const releases *r, const rel_target *target)
{
    if (target->job_group == NO)
        return target->current != NO;
    const rel_group *g = &r->groups.at[target->job_group];
    const index_list *all = &r->sites.at[g->site].targets;
    bool any = target->current != NO;
    for (size_t i = 0; i < all->len; i++)
        any = any || r->targets.at[all->at[i]].current != NO;
    for (size_t i = 0; i < g->members.len; i++)
        any = any || g->members.at[i].role == ROLE_PRE ||
              r->targets.at[g->members.at[i].target].current != NO;
    return any;
}

static bool verify_windows(const releases *r, uint32_t t, err *error)
{
    const rel_target *target = &r->targets.at[t];
    const rel_lane *lane = &r->lanes.at[target->lane];
    for (size_t i = 0; i < lane->rules.len && disturbs(r, target); i++) {
        const rel_rule *rule_ = &r->rules.at[lane->rules.at[i]];
        bool open = false;
        if (rule_->kind != RULE_DEPLOYMENT_WINDOW || bypassed(r, lane->rules.at[i], target))
            continue;
        if (!window_open_spans(rule_->doc->deployment_window, r->core->now_ms, r->core->now_ms + 1,
                               note_open, &open))
            return err_memory(error);
        if (!open)
            return broken(r, t, "I8: a job began outside its window", error);
    }
    return true;
}

bool releases_history(const releases *self, err *error)
{
    releases *r = (releases *)(uintptr_t)self; /* expressions are evaluated in its scratch memory */
    for (uint32_t t = 0; t < r->targets.len; t++) {
        const rel_target *target = &r->targets.at[t];
        if (target->id == 0 || target->job <= r->step_job)
            continue;
        if (!verify_halts(r, t, error))
            return false;
        if (target->job_role != ROLE_ROLLBACK && !verify_dependencies(r, t, error))
            return false;
        if (!goes_on(r, target) && !verify_windows(r, t, error))
            return false;
    }
    return true;
}
