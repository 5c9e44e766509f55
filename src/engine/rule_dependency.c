/* SPDX-License-Identifier: Apache-2.0 */
/* deploymentDependency, and the dependencies a version itself has: what must be in place on the
 * same resource first.
 *
 * An upstream is a release target on the same resource whose deployment matches, whatever is
 * asked of its version; it counts when it is where it should be and the version that runs there
 * matches. So a condition on the version makes others wait for it, also while no such version is
 * published: nothing fails open. */
#include "engine/chain.h"

typedef enum answer { ANSWER_UNKNOWN, ANSWER_FALSE, ANSWER_TRUE, ANSWER_ERROR } answer;

static answer ask(releases *r, uint32_t rule_, uint32_t d, uint32_t v)
{
    bool yes = false;
    const expression *e = &r->rules.at[rule_].doc->deployment_dependency->depends_on;
    if (!scope_version_matches(r, e, d, v, &yes))
        return ANSWER_ERROR;
    return yes ? ANSWER_TRUE : ANSWER_FALSE;
}

static uint8_t *slot(releases *r, byte_list *v, uint32_t index)
{
    while (v->len <= index)
        if (!vec_push(v, (uint8_t)ANSWER_UNKNOWN)) {
            rel_no_memory(r);
            return NULL;
        }
    return &v->at[index];
}

static answer matches(releases *r, uint32_t rule_, uint32_t d, uint32_t v)
{
    uint8_t *known = slot(r, &r->rules.at[rule_].matches, v);
    if (!known)
        return ANSWER_ERROR;
    if (*known != ANSWER_UNKNOWN)
        return (answer)*known;
    answer is = ask(r, rule_, d, v);
    if (!r->core->no_memory) /* else it is no answer */
        *known = (uint8_t)is;
    return is;
}

bool dependency_matches(releases *r, uint32_t rule_, uint32_t d, uint32_t v)
{
    return matches(r, rule_, d, v) == ANSWER_TRUE;
}

static answer upstream(releases *r, uint32_t rule_, uint32_t d)
{
    uint8_t *known = slot(r, &r->rules.at[rule_].upstream, d);
    if (!known)
        return ANSWER_ERROR;
    if (*known != ANSWER_UNKNOWN)
        return (answer)*known;
    bool may = false;
    const expression *e = &r->rules.at[rule_].doc->deployment_dependency->depends_on;
    bool good = scope_version_may_match(r, e, d, &may);
    answer best = !good ? ANSWER_ERROR : may ? ANSWER_TRUE : ANSWER_FALSE;
    const index_list *versions = &r->deployments.at[d].versions;
    for (size_t i = 0; i < versions->len && best != ANSWER_TRUE; i++) {
        answer one = matches(r, rule_, d, versions->at[i]);
        if (one == ANSWER_TRUE || best == ANSWER_FALSE)
            best = one;
    }
    known = slot(r, &r->rules.at[rule_].upstream, d);
    if (known && !r->core->no_memory)
        *known = (uint8_t)best;
    return best;
}

bool dependency_upstream(releases *r, uint32_t rule_, uint32_t d)
{
    return upstream(r, rule_, d) != ANSWER_FALSE;
}

/* Inside a group, what counts is what happened in this group. */
static bool counts_in_group(const chain_context *c, uint32_t rule_, uint32_t u, bool *ret_member)
{
    releases *r = c->r;
    const rel_target *up = &r->targets.at[u];
    *ret_member = false;
    if (c->group == NO)
        return false;
    const rel_member *m = member_in(r, c->group, u);
    *ret_member = m || up->site == r->groups.at[c->group].site;
    if (!*ret_member)
        return false;
    if (!m || m->state == MEMBER_IS_SKIPPED || m->state == MEMBER_IS_ROLLED_BACK)
        return true;
    if (c->starting || m->state == MEMBER_IS_DONE)
        return dependency_matches(r, rule_, up->deployment, m->version);
    return false;
}

static bool counts(const chain_context *c, uint32_t rule_, uint32_t u)
{
    releases *r = c->r;
    const rel_target *up = &r->targets.at[u];
    bool member;
    bool done = counts_in_group(c, rule_, u, &member);
    if (member)
        return done;
    return up->current != NO && up->job == 0 && up->rollback_to == NO &&
           up->current == target_goal(r, u) &&
           dependency_matches(r, rule_, up->deployment, up->current);
}

static bool name_blockers(const chain_context *c, uint32_t rule_, verdict *v)
{
    releases *r = c->r;
    const rel_target *t = &r->targets.at[c->target];
    const index_list *on = &r->resources.at[t->resource].targets;
    str *blockers = ARENA_ARRAY(c->a, on->len, str);
    size_t n = 0;
    str text = STR_EMPTY;
    for (size_t i = 0; blockers && i < on->len; i++) {
        const rel_target *up = &r->targets.at[on->at[i]];
        if (on->at[i] == c->target || !dependency_upstream(r, rule_, up->deployment) ||
            counts(c, rule_, on->at[i]))
            continue;
        blockers[n++] = rel_text(r, r->deployments.at[up->deployment].name);
        text = n == 1 ? blockers[0]
                      : arena_printf(c->a, "%.*s, %.*s", STR_ARG(text), STR_ARG(blockers[n - 1]));
    }
    v->reason.of = blockers;
    v->reason.of_count = n;
    v->reason.detail = text;
    str *holder = ARENA_NEW(c->a, str);
    if (!blockers || !holder)
        return false;
    *holder = rel_text(r, r->resources.at[t->resource].name);
    v->reason.holders = holder;
    v->reason.holder_count = 1;
    return true;
}

static void dependency_verdict(const chain_context *c, uint32_t rule_, verdict *v)
{
    releases *r = c->r;
    bool any = r->rules.at[rule_].doc->deployment_dependency->match == DEPENDENCY_ANY;
    const index_list *on = &r->resources.at[r->targets.at[c->target].resource].targets;
    size_t upstreams = 0, done = 0;
    for (size_t i = 0; i < on->len; i++) {
        uint32_t d = r->targets.at[on->at[i]].deployment;
        if (on->at[i] == c->target)
            continue;
        answer is = upstream(r, rule_, d);
        if (is == ANSWER_FALSE)
            continue;
        upstreams++;
        if (is == ANSWER_ERROR) {
            verdict_no(v, VERDICT_REFUSED, REASON_EXPRESSION, NEVER);
            v->reason.detail = r->rules.at[rule_].doc->deployment_dependency->depends_on.source;
            return;
        }
        done += counts(c, rule_, on->at[i]);
    }
    if (upstreams == 0 || (any ? done > 0 : done == upstreams))
        return;
    verdict_no(v, VERDICT_WAITING, REASON_DEPENDENCY, NEVER);
    v->reason.act = RELEASE_COMPLETE;
    if (c->a)
        name_blockers(c, rule_, v);
}

const rule_ops dependency_ops = {.order = 8, .level = LEVEL_EACH, .verdict = dependency_verdict};

/* ---- what a version says it needs ---- */

static bool version_need_met(const chain_context *c, const version_dependency *need,
                             bool *ret_error)
{
    releases *r = c->r;
    const rel_target *t = &r->targets.at[c->target];
    uint32_t d = keymap_get(&r->deployment_of, names_find(r->core->names, need->deployment));
    const index_list *on = &r->resources.at[t->resource].targets;
    *ret_error = false;
    for (size_t i = 0; d != NO && i < on->len; i++) {
        const rel_target *up = &r->targets.at[on->at[i]];
        if (up->deployment != d || on->at[i] == c->target)
            continue;
        bool yes = false;
        const rel_member *m =
            c->group != NO && c->starting ? member_in(r, c->group, on->at[i]) : NULL;
        uint32_t v = m && !member_over(m) ? m->version : up->current;
        if (v == NO)
            continue;
        if (!scope_version_matches(r, &need->version_selector, d, v, &yes))
            *ret_error = true;
        else if (yes)
            return true;
    }
    return false;
}

void version_dependency_verdict(const chain_context *c, verdict *v)
{
    releases *r = c->r;
    const version *doc = r->versions.at[c->version].doc;
    for (size_t i = 0; doc && i < doc->spec.depends_on.len; i++) {
        const version_dependency *need = &doc->spec.depends_on.at[i];
        bool error;
        if (version_need_met(c, need, &error))
            continue;
        verdict_no(v, error ? VERDICT_REFUSED : VERDICT_WAITING,
                   error ? REASON_EXPRESSION : REASON_DEPENDENCY, NEVER);
        v->reason.act = RELEASE_COMPLETE;
        v->reason.scope = c->a ? arena_printf(c->a, "version %.*s",
                                              STR_ARG(rel_text(r, r->versions.at[c->version].tag)))
                               : STR("version");
        v->reason.detail = error ? need->version_selector.source : need->deployment;
        str *of = c->a ? ARENA_NEW(c->a, str) : NULL;
        if (of) {
            *of = need->deployment;
            v->reason.of = of;
            v->reason.of_count = 1;
        }
        return;
    }
}
