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

/* Whether it is enough that the upstream comes to what is wanted there now; else another version
 * must be published. */
static bool completes(const chain_context *c, uint32_t rule_, uint32_t u)
{
    releases *r = c->r;
    const rel_target *up = &r->targets.at[u];
    const rel_member *m = c->group == NO ? NULL : member_in(r, c->group, u);
    uint32_t next[] = {m ? m->version : NO, m ? m->later : target_goal(r, u), up->aim};
    for (size_t i = 0; i < 3; i++)
        if (next[i] != NO && dependency_matches(r, rule_, up->deployment, next[i]))
            return true;
    /* Such a version may be there and not be wanted yet: of a hook that never ran, or by a rule. */
    const index_list *versions = &r->deployments.at[up->deployment].versions;
    for (size_t i = 0; i < versions->len && versions->at[i] != up->current; i++)
        if (version_ready(r, versions->at[i]) &&
            dependency_matches(r, rule_, up->deployment, versions->at[i]))
            return true;
    return false;
}

/* Those that are waited for and can complete, or cannot; any: one of them is enough. False without
 * memory. */
static bool name_blockers(const chain_context *c, uint32_t rule_, bool able, reason *why)
{
    releases *r = c->r;
    const rel_target *t = &r->targets.at[c->target];
    const index_list *on = &r->resources.at[t->resource].targets;
    str *blockers = ARENA_ARRAY(c->a, on->len, str), *holder = ARENA_NEW(c->a, str);
    size_t n = 0;
    str text = STR_EMPTY;
    if (!blockers || !holder)
        return false;
    for (size_t i = 0; i < on->len; i++) {
        const rel_target *up = &r->targets.at[on->at[i]];
        if (on->at[i] == c->target || !dependency_upstream(r, rule_, up->deployment) ||
            counts(c, rule_, on->at[i]) || completes(c, rule_, on->at[i]) != able)
            continue;
        blockers[n++] = rel_text(r, r->deployments.at[up->deployment].name);
        text = n == 1 ? blockers[0]
                      : arena_printf(c->a, "%.*s%s%.*s", STR_ARG(text), why->any ? " or " : ", ",
                                     STR_ARG(blockers[n - 1]));
    }
    *holder = rel_text(r, r->resources.at[t->resource].name);
    why->act = able ? RELEASE_COMPLETE : RELEASE_PUBLISH;
    why->of = blockers;
    why->of_count = n;
    why->any = n > 1 ? why->any : 0;
    why->detail = able ? text : arena_printf(c->a, "another version of %.*s", STR_ARG(text));
    why->holders = holder;
    why->holder_count = 1;
    return true;
}

/* Each that cannot complete is a reason of its own: it must be published. Where one is enough,
 * those that can are. */
static void tell_blockers(const chain_context *c, uint32_t rule_, bool any, verdict *v)
{
    reason able = v->reason;
    able.any = any;
    reason unable = able;
    if (!name_blockers(c, rule_, true, &able) || !name_blockers(c, rule_, false, &unable))
        return;
    v->reason = able.of_count > 0 ? able : unable;
    if (any || able.of_count == 0)
        unable.of_count = 0;
    if (unable.of_count > 0)
        reasons_add(&v->more, c->a, unable);
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
        tell_blockers(c, rule_, any, v);
}

const rule_ops dependency_ops = {.order = 8, .level = LEVEL_EACH, .verdict = dependency_verdict};

/* ---- what a version says it needs ---- */

/* What is known of a need: whether it is met, or will be when what is wanted there now has come. */
typedef struct need_answer {
    bool met, coming, error, there;
} need_answer;

static need_answer need_ask(const chain_context *c, const version_dependency *need)
{
    releases *r = c->r;
    const rel_target *t = &r->targets.at[c->target];
    uint32_t d = keymap_get(&r->deployment_of, names_find(r->core->names, need->deployment));
    const index_list *on = &r->resources.at[t->resource].targets;
    need_answer is = {0};
    for (size_t i = 0; d != NO && i < on->len; i++) {
        const rel_target *up = &r->targets.at[on->at[i]];
        if (up->deployment != d || on->at[i] == c->target)
            continue;
        const rel_member *m =
            c->group != NO && c->starting ? member_in(r, c->group, on->at[i]) : NULL;
        uint32_t at[] = {m && !member_over(m) ? m->version : up->current,
                         c->a ? target_goal(r, on->at[i]) : NO, c->a ? up->aim : NO};
        is.there = true;
        for (size_t k = 0; k < 3; k++) {
            bool yes = false;
            if (at[k] == NO)
                continue;
            bool good = scope_version_matches(r, &need->version_selector, d, at[k], &yes);
            is.error = is.error || (k == 0 && !good);
            is.met = is.met || (k == 0 && good && yes);
            is.coming = is.coming || (good && yes);
        }
    }
    return is;
}

static reason need_reason(const chain_context *c, const version_dependency *need, need_answer is)
{
    const releases *r = c->r;
    reason why = {.rule = is.error ? REASON_EXPRESSION : REASON_DEPENDENCY,
                  .act = is.coming ? RELEASE_COMPLETE : RELEASE_PUBLISH,
                  .next_ms = NEVER,
                  .scope = STR("version"),
                  .detail = is.error ? need->version_selector.source : need->deployment};
    str *of = c->a ? ARENA_NEW(c->a, str) : NULL;
    if (!of)
        return why;
    why.scope =
        arena_printf(c->a, "version %.*s", STR_ARG(rel_text(r, r->versions.at[c->version].tag)));
    if (!is.there)
        why.detail = arena_printf(c->a, "%.*s, which is not deployed to this resource",
                                  STR_ARG(need->deployment));
    else if (!is.coming && !is.error)
        why.detail = arena_printf(c->a, "another version of %.*s (%.*s)", STR_ARG(need->deployment),
                                  STR_ARG(need->version_selector.source));
    if (!is.there)
        why.act = RELEASE_EDIT;
    *of = need->deployment;
    why.of = of;
    why.of_count = 1;
    return why;
}

void version_dependency_verdict(const chain_context *c, verdict *v)
{
    const version *doc = c->r->versions.at[c->version].doc;
    for (size_t i = 0; doc && i < doc->spec.depends_on.len; i++) {
        const version_dependency *need = &doc->spec.depends_on.at[i];
        need_answer is = need_ask(c, need);
        if (is.met)
            continue;
        reason why = need_reason(c, need, is);
        if (v->kind != VERDICT_ALLOWED) {
            reasons_add(&v->more, c->a, why);
            continue;
        }
        verdict_no(v, is.error ? VERDICT_REFUSED : VERDICT_WAITING, why.rule, NEVER);
        v->reason = why;
        if (!c->a)
            return;
    }
}
