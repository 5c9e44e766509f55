/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>

#include "model/lint_parts.h"
#include "select/cel.h"

/* More deployments than this are not searched for cycles: the matrix would not fit. */
#define DEPLOYMENTS_MOST 2000

/* What an expression says of a deployment when nothing else is known. */
typedef enum answer { ANSWER_NO, ANSWER_YES, ANSWER_UNKNOWN } answer;

/* All deployments, and who waits for whom by the rules of one policy. */
typedef struct graph {
    const object **deployments;
    size_t count;
    bool *waits; /* [a * count + b]: a waits for b */
} graph;

/* ---- CEL over deployments ---- */

static cel_value labels_value(arena *a, label_set labels)
{
    cel_entry *entries = ARENA_ARRAY(a, labels.len, cel_entry);
    if (!entries)
        return (cel_value){.kind = CEL_ERROR};
    for (size_t i = 0; i < labels.len; i++)
        entries[i] = (cel_entry){cel_string(labels.at[i].key), cel_string(labels.at[i].value)};
    return cel_map_of(a, entries, labels.len);
}

static cel_value deployment_value(arena *a, const object *o)
{
    cel_entry *entries = ARENA_ARRAY(a, 4, cel_entry);
    if (!entries)
        return (cel_value){.kind = CEL_ERROR};
    const metadata *m = o->metadata;
    str id = m->uid.len > 0 ? m->uid : m->name;
    entries[0] = (cel_entry){cel_string(STR("id")), cel_string(id)};
    entries[1] = (cel_entry){cel_string(STR("name")), cel_string(m->name)};
    entries[2] = (cel_entry){cel_string(STR("slug")), cel_string(m->name)};
    entries[3] = (cel_entry){cel_string(STR("metadata")), labels_value(a, m->labels)};
    return cel_map_of(a, entries, 4);
}

/* Versions are not known here: an expression that needs one has no answer. */
static answer ask(lint *l, const expression *e, const object *o)
{
    if (!e->program)
        return ANSWER_YES;
    arena_place mark = arena_mark(l->arena);
    cel_value bindings[2] = {deployment_value(l->arena, o),
                             {.kind = CEL_ERROR, .code = CEL_NO_SUCH_VARIABLE}};
    cel_value result = cel_eval(e->program, bindings, l->arena, NULL);
    answer found = result.kind == CEL_BOOL ? (result.b ? ANSWER_YES : ANSWER_NO) : ANSWER_UNKNOWN;
    if (result.kind == CEL_ERROR && result.code == CEL_NO_SUCH_KEY)
        found = ANSWER_NO;
    if (result.kind == CEL_ERROR && result.code == CEL_MEMORY)
        l->no_memory = true;
    arena_rewind(l->arena, mark);
    return found;
}

/* ---- dependencies ---- */

static void add_edges(lint *l, graph *g, const deployment_dependency *d, const place *at)
{
    bool *upstream = ARENA_ARRAY(l->arena, g->count, bool);
    if (!upstream) {
        l->no_memory = true;
        return;
    }
    bool any = false;
    for (size_t b = 0; b < g->count; b++) {
        answer matches = ask(l, &d->depends_on, g->deployments[b]);
        upstream[b] = matches == ANSWER_YES;
        any = any || matches != ANSWER_NO;
    }
    place here = place_key(at, STR("dependsOn"));
    if (!any)
        lint_error(l, &here,
                   "found an expression that matches no deployment, allowed one that does");
    for (size_t a = 0; a < g->count; a++) {
        if (ask(l, &d->applies_to, g->deployments[a]) != ANSWER_YES)
            continue;
        for (size_t b = 0; b < g->count; b++)
            if (b != a && upstream[b])
                g->waits[a * g->count + b] = true;
    }
}

/* Takes away what waits for nothing that is left; what stays is in a cycle or behind one. */
static bool has_cycle(lint *l, const graph *g, size_t *ret_at)
{
    bool *gone = ARENA_ARRAY(l->arena, g->count, bool);
    if (!gone) {
        l->no_memory = true;
        return false;
    }
    for (bool moved = true; moved;) {
        moved = false;
        for (size_t a = 0; a < g->count; a++) {
            bool free = !gone[a];
            for (size_t b = 0; free && b < g->count; b++)
                free = !g->waits[a * g->count + b] || gone[b];
            gone[a] = gone[a] || free;
            moved = moved || free;
        }
    }
    for (size_t a = 0; a < g->count; a++) {
        if (!gone[a]) {
            *ret_at = a;
            return true;
        }
    }
    return false;
}

/* Makes "waits" hold for everything upstream, however far. */
static void close_graph(graph *g)
{
    for (size_t k = 0; k < g->count; k++)
        for (size_t a = 0; a < g->count; a++)
            if (g->waits[a * g->count + k])
                for (size_t b = 0; b < g->count; b++)
                    g->waits[a * g->count + b] |= g->waits[k * g->count + b];
}

/* ---- brackets ---- */

/* A member that all others wait for, or that waits for all others: a hook nobody declared. */
static void lint_bracket(lint *l, const graph *g, const deployment_bracket *b, const place *at)
{
    bool *member = ARENA_ARRAY(l->arena, g->count, bool);
    if (!member) {
        l->no_memory = true;
        return;
    }
    size_t members = 0;
    for (size_t i = 0; i < g->count; i++) {
        member[i] = ask(l, &b->deployment_selector, g->deployments[i]) == ANSWER_YES;
        members += member[i];
    }
    for (size_t m = 0; m < g->count && members > 2; m++) {
        bool first = member[m] && !b->pre_selector.source.ptr;
        bool last = member[m] && !b->post_selector.source.ptr;
        for (size_t o = 0; (first || last) && o < g->count; o++) {
            if (!member[o] || o == m)
                continue;
            first = first && g->waits[o * g->count + m];
            last = last && g->waits[m * g->count + o];
        }
        if (first)
            lint_warning(
                l, at,
                "found no preSelector, but all members wait for \"%s\": unless it has a new "
                "version itself it does not run; is it a hook?",
                str_shown(g->deployments[m]->metadata->name).text);
        if (last)
            lint_warning(
                l, at,
                "found no postSelector, but \"%s\" waits for all members: unless it has a new "
                "version itself it does not run; is it a hook?",
                str_shown(g->deployments[m]->metadata->name).text);
    }
}

/* ---- windows ---- */

static void lint_window(lint *l, const object *policy, const deployment_window *w, const place *at)
{
    if (!w->allow_window)
        return;
    place here = place_key(at, STR("durationMinutes"));
    int64_t seconds = w->duration_minutes * 60;
    size_t i = 0;
    for (const object *d = lint_next(l, KIND_DEPLOYMENT, &i); d;
         d = lint_next(l, KIND_DEPLOYMENT, &i)) {
        if (d->deployment->spec.timeout_seconds <= seconds)
            continue;
        lint_warning(l, &here,
                     "found %" PRId64 " minutes, less than the %" PRId64
                     " seconds that a job of \"%s\" may take",
                     w->duration_minutes, d->deployment->spec.timeout_seconds,
                     str_shown(d->metadata->name).text);
        break;
    }
    int64_t resources = (int64_t)lint_count(l, KIND_RESOURCE);
    for (size_t k = 0; k < policy->rollout_policy->spec.rules.len; k++) {
        const gradual_rollout *g = policy->rollout_policy->spec.rules.at[k].gradual_rollout;
        if (!g || resources < 2)
            continue;
        bool normalized = g->rollout_type == ROLLOUT_LINEAR_NORMALIZED;
        int64_t needs =
            normalized ? g->time_scale_interval : g->time_scale_interval * (resources - 1);
        if (needs > seconds)
            lint_warning(l, &here,
                         "found %" PRId64 " minutes, less than the %" PRId64
                         " seconds over which gradualRollout spreads %" PRId64 " resources",
                         w->duration_minutes, needs, resources);
    }
}

/* ---- policies ---- */

static bool new_graph(lint *l, graph *ret)
{
    size_t count = lint_count(l, KIND_DEPLOYMENT);
    if (count > DEPLOYMENTS_MOST)
        count = 0;
    graph g = {.count = count};
    g.deployments = ARENA_ARRAY(l->arena, count, const object *);
    g.waits = ARENA_ARRAY(l->arena, count * count, bool);
    if (!g.deployments || !g.waits) {
        l->no_memory = true;
        return false;
    }
    size_t i = 0;
    for (size_t k = 0; k < count; k++)
        g.deployments[k] = lint_next(l, KIND_DEPLOYMENT, &i);
    *ret = g;
    return true;
}

static void lint_dependencies(lint *l, const object *o, const place *rules, graph *g)
{
    const struct rollout_policy_spec *s = &o->rollout_policy->spec;
    if (g->count == 0)
        return;
    for (size_t i = 0; i < s->rules.len && !l->no_memory; i++) {
        const rule *u = &s->rules.at[i];
        place own = place_at(rules, i);
        place at = place_key(&own, STR("deploymentDependency"));
        if (u->deployment_dependency)
            add_edges(l, g, u->deployment_dependency, &at);
    }
    size_t where;
    if (has_cycle(l, g, &where))
        lint_error(l, rules,
                   "found a cycle of dependencies: \"%s\" waits for itself through others",
                   str_shown(g->deployments[where]->metadata->name).text);
    else
        close_graph(g);
}

static void lint_policy(lint *l, const object *o)
{
    const struct rollout_policy_spec *s = &o->rollout_policy->spec;
    LINT_SPEC(o);
    place rules = place_key(&spec_at, STR("rules"));
    graph g;
    if (!new_graph(l, &g))
        return;
    lint_dependencies(l, o, &rules, &g);
    for (size_t i = 0; i < s->rules.len && !l->no_memory; i++) {
        const rule *u = &s->rules.at[i];
        place own = place_at(&rules, i);
        place at = place_key(&own, str_of(rule_kind_text(u->kind)));
        if (u->deployment_bracket)
            lint_bracket(l, &g, u->deployment_bracket, &at);
        if (u->deployment_window)
            lint_window(l, o, u->deployment_window, &at);
        if (u->deployment_policy_spec)
            lint_policy_spec(l, &at, u->deployment_policy_spec, KIND_RESOURCE);
        if (u->rollout_strategy)
            lint_rollout_strategy(l, &at, u->rollout_strategy);
    }
}

/* ---- versions ---- */

/* Without any deployment among the documents the other side may be on the server. */
static void lint_reference(lint *l, const place *at, str name)
{
    if (lint_find(l, KIND_DEPLOYMENT, name))
        return;
    if (lint_count(l, KIND_DEPLOYMENT) > 0)
        lint_error(l, at, "found the deployment \"%s\", which is not there", str_shown(name).text);
    else
        lint_warning(l, at, "found the deployment \"%s\", which is not among the documents",
                     str_shown(name).text);
}

static void lint_version(lint *l, const object *o)
{
    LINT_SPEC(o);
    const struct version_spec *v = &o->version->spec;
    place own = place_key(&spec_at, STR("deployment"));
    lint_reference(l, &own, v->deployment);
    place list = place_key(&spec_at, STR("dependsOn"));
    for (size_t i = 0; i < v->depends_on.len; i++) {
        place edge = place_at(&list, i);
        place here = place_key(&edge, STR("deployment"));
        lint_reference(l, &here, v->depends_on.at[i].deployment);
    }
}

void lint_releases(lint *l)
{
    size_t i = 0;
    for (const object *o = lint_next(l, KIND_VERSION, &i); o; o = lint_next(l, KIND_VERSION, &i))
        lint_version(l, o);
    i = 0;
    for (const object *o = lint_next(l, KIND_ROLLOUT_POLICY, &i); o && !l->no_memory;
         o = lint_next(l, KIND_ROLLOUT_POLICY, &i)) {
        arena_place mark = arena_mark(l->arena);
        lint_policy(l, o);
        arena_rewind(l->arena, mark);
    }
}
