/* SPDX-License-Identifier: Apache-2.0 */
/* Deployments that wait for each other, and brackets whose hooks are none.
 *
 * A deployment can be released once every rule that applies to it is satisfied: each upstream other
 * than itself is released (match all), or one is (match any). Those are taken away again and again;
 * what is left waits for itself. Expressions that ask for what is not known count as "yes" inside
 * one policy, whose rules go together, and as "no" between policies, which may never meet. */
#include <assert.h>

#include "model/lint_internal.h"

/* Beyond this many members a bracket is not looked at for hooks. */
#define BRACKET_MEMBERS_MOST 200
/* Beyond this many pairs of a rule and a deployment dependencies are not looked at, and that is
 * said. */
#define PAIRS_MOST 2000000

/* One deploymentDependency rule. */
typedef struct edge_rule {
    const object *policy;
    size_t index;
    const deployment_dependency *rule;
    size_t *upstream; /* deployments that dependsOn matches or may match */
    size_t upstream_count;
    uint8_t *applies; /* by deployment: lint_answer to appliesTo */
    uint8_t
        *selected; /* by deployment: lint_answer to the policy's selector, environment unknown */
} edge_rule;

typedef VEC(edge_rule) edge_rules;

/* Which rules a search looks at: those of one policy, or of all policies that surely apply. */
typedef struct search {
    lint *l;
    const edge_rule *rules;
    size_t rule_count;
    bool one_policy;
    size_t count;      /* of deployments */
    uint8_t *released; /* by deployment */
    size_t *binding;   /* rules that bind a deployment, those of the first first */
    size_t *first;     /* by deployment: where its rules begin; one more at the end */
} search;

static uint8_t *ask_all(lint *l, const expression *e)
{
    size_t count = lint_count(l, KIND_DEPLOYMENT);
    uint8_t *answers = ARENA_ARRAY(l->arena, count + 1, uint8_t);
    for (size_t d = 0; answers && d < count; d++)
        answers[d] = (uint8_t)lint_ask(l, e, (lint_bindings){.deployment = &l->deployments[d]});
    return answers;
}

static bool ask_upstream(lint *l, edge_rule *r)
{
    size_t count = lint_count(l, KIND_DEPLOYMENT);
    uint8_t *answers = ask_all(l, &r->rule->depends_on);
    r->upstream = ARENA_ARRAY(l->arena, count + 1, size_t);
    if (!answers || !r->upstream)
        return false;
    for (size_t d = 0; d < count; d++)
        if (answers[d] != LINT_NO)
            r->upstream[r->upstream_count++] = d;
    return true;
}

static bool collect(lint *l, edge_rules *rules)
{
    for (size_t p = 0; p < lint_count(l, KIND_ROLLOUT_POLICY); p++) {
        const object *policy = l->of[KIND_ROLLOUT_POLICY].at[p];
        const struct rollout_policy_spec *spec = &policy->rollout_policy->spec;
        uint8_t *selected = NULL;
        for (size_t i = 0; i < spec->rules.len; i++) {
            const deployment_dependency *d = spec->rules.at[i].deployment_dependency;
            if (spec->rules.at[i].kind != RULE_DEPLOYMENT_DEPENDENCY)
                continue;
            selected = selected ? selected : ask_all(l, &spec->selector);
            edge_rule r = {.policy = policy, .index = i, .rule = d, .selected = selected};
            r.applies = ask_all(l, &d->applies_to);
            if (!r.applies || !r.selected || !ask_upstream(l, &r) || !vec_push(rules, r))
                return false;
        }
    }
    return true;
}

static void check_upstreams(lint *l, const edge_rules *rules)
{
    size_t count = lint_count(l, KIND_DEPLOYMENT);
    if (lint_left_out(l, KIND_DEPLOYMENT))
        return;
    for (size_t i = 0; i < rules->len; i++) {
        const edge_rule *r = &rules->at[i];
        if (r->upstream_count > 0)
            continue;
        lint_rule_place p;
        lint_rule_at(&p, r->policy, r->index);
        place at = place_key(&p.kind, STR("dependsOn"));
        place_error(&at, l->found,
                    "found an expression that matches no deployment among the documents (there "
                    "%s %zu), allowed one that matches some",
                    count == 1 ? "is" : "are", count);
    }
}

/* ---- cycles ---- */

static bool binds(const search *s, const edge_rule *r, size_t d)
{
    if (r->applies[d] == LINT_NO || !r->policy->rollout_policy->spec.enabled)
        return false;
    return s->one_policy ? r->selected[d] != LINT_NO : r->selected[d] == LINT_YES;
}

static bool bind_rules(search *s)
{
    s->first = ARENA_ARRAY(s->l->arena, s->count + 1, size_t);
    size_t total = 0;
    for (size_t d = 0; s->first && d < s->count; d++) {
        s->first[d] = total;
        for (size_t r = 0; r < s->rule_count; r++)
            total += binds(s, &s->rules[r], d);
    }
    s->binding = ARENA_ARRAY(s->l->arena, total + 1, size_t);
    if (!s->first || !s->binding)
        return false;
    s->first[s->count] = total;
    for (size_t d = 0, at = 0; d < s->count; d++)
        for (size_t r = 0; r < s->rule_count; r++)
            if (binds(s, &s->rules[r], d))
                s->binding[at++] = r;
    return true;
}

/* The first deployment that d still waits for by this rule, or count. */
static size_t waits_for(const search *s, const edge_rule *r, size_t d)
{
    size_t first = s->count;
    for (size_t i = 0; i < r->upstream_count; i++) {
        size_t u = r->upstream[i];
        if (u == d)
            continue;
        if (s->released[u] && r->rule->match == DEPENDENCY_ANY)
            return s->count;
        if (!s->released[u] && first == s->count)
            first = u;
    }
    return first;
}

/* The rule that holds d back, and for whom; NULL when none does. */
static const edge_rule *held_by(const search *s, size_t d, size_t *ret_upstream)
{
    for (size_t i = s->first[d]; i < s->first[d + 1]; i++) {
        const edge_rule *r = &s->rules[s->binding[i]];
        *ret_upstream = waits_for(s, r, d);
        if (*ret_upstream < s->count)
            return r;
    }
    return NULL;
}

/* Releases all that can be. The first that cannot, or count. */
static size_t release_all(search *s)
{
    size_t stuck, upstream;
    bool moved;
    do {
        moved = false;
        stuck = s->count;
        for (size_t d = s->count; d-- > 0;) {
            if (s->released[d])
                continue;
            if (held_by(s, d, &upstream)) {
                stuck = d;
            } else {
                s->released[d] = 1;
                moved = true;
            }
        }
    } while (moved);
    return stuck;
}

static str name_of(const search *s, size_t d)
{
    return s->l->of[KIND_DEPLOYMENT].at[d]->metadata->name;
}

/* Follows who waits for whom from a deployment that is stuck until one comes again. Says so, unless
 * between policies all of it is one policy's, and lets the members go. */
static void report_cycle(search *s, size_t stuck, size_t *trail)
{
    const edge_rule *by = NULL;
    size_t len = 0, begin = 0, upstream = 0;
    bool several = false;
    for (size_t d = stuck;; d = upstream) {
        for (begin = 0; begin < len && trail[begin] != d; begin++)
            continue;
        if (begin < len)
            break;
        trail[len++] = d;
        const edge_rule *r = held_by(s, d, &upstream);
        assert(r); /* it is stuck, and so is whom it waits for */
        several = several || (by && by->policy != r->policy);
        by = r;
    }
    buf text = BUF(LIMIT_ERR_BYTES);
    for (size_t i = begin; i < len; i++) {
        s->released[trail[i]] = 1;
        if (text.len < LIMIT_ERR_BYTES / 2)
            buf_addf(&text, "%s -> ", str_shown(name_of(s, trail[i])).text);
        else if (i + 1 == len)
            buf_addz(&text, "... -> ");
    }
    buf_addz(&text, str_shown(name_of(s, trail[begin])).text);
    if (text.failed)
        problems_memory(s->l->found);
    if (s->one_policy || several) {
        lint_rule_place p;
        lint_rule_at(&p, by->policy, by->index);
        place_error(&p.kind, s->l->found,
                    "found deployments that wait for each other (%.*s), allowed no cycle",
                    STR_ARG(buf_str(&text)));
    }
    buf_done(&text);
}

/* Looks at count rules; those of one policy stand together. */
static bool find_cycles(lint *l, const edge_rule *rules, size_t count, bool one_policy)
{
    search s = {.l = l, .rules = rules, .rule_count = count, .one_policy = one_policy};
    s.count = lint_count(l, KIND_DEPLOYMENT);
    s.released = ARENA_ARRAY(l->arena, s.count + 1, uint8_t);
    size_t *trail = ARENA_ARRAY(l->arena, s.count + 1, size_t);
    if (!s.released || !trail || !bind_rules(&s))
        return false;
    for (size_t stuck; (stuck = release_all(&s)) < s.count;)
        report_cycle(&s, stuck, trail);
    return true;
}

static bool check_cycles(lint *l, const edge_rules *rules)
{
    size_t policies = 0;
    for (size_t i = 0, end; i < rules->len; i = end, policies++) {
        for (end = i; end < rules->len && rules->at[end].policy == rules->at[i].policy; end++)
            continue;
        if (!find_cycles(l, &rules->at[i], end - i, true))
            return false;
    }
    return policies < 2 || find_cycles(l, rules->at, rules->len, false);
}

/* ---- hooks ---- */

typedef struct bracket_members {
    size_t at[BRACKET_MEMBERS_MOST]; /* deployments */
    size_t len;
} bracket_members;

/* Whether member "from" waits for "to", directly. */
static bool direct(const edge_rules *rules, const object *policy, size_t from, size_t to)
{
    for (size_t i = 0; i < rules->len; i++) {
        const edge_rule *r = &rules->at[i];
        bool ours = r->policy == policy || r->selected[from] == LINT_YES;
        if (!ours || r->applies[from] == LINT_NO)
            continue;
        for (size_t u = 0; u < r->upstream_count; u++)
            if (r->upstream[u] == to)
                return true;
    }
    return false;
}

/* How many other members "from" waits for, directly or through others; or who wait for it. */
static size_t reach(const edge_rules *rules, const object *policy, const bracket_members *m,
                    size_t from, bool forward)
{
    bool seen[BRACKET_MEMBERS_MOST] = {false};
    size_t queue[BRACKET_MEMBERS_MOST], head = 0, tail = 0;
    seen[from] = true;
    queue[tail++] = from;
    while (head < tail) {
        size_t at = queue[head++];
        for (size_t i = 0; i < m->len; i++) {
            bool linked = forward ? direct(rules, policy, m->at[at], m->at[i])
                                  : direct(rules, policy, m->at[i], m->at[at]);
            if (seen[i] || !linked)
                continue;
            seen[i] = true;
            queue[tail++] = i;
        }
    }
    return tail - 1;
}

static void warn_hook(lint *l, const lint_rule_place *p, str name, bool first)
{
    place_warning(&p->kind, l->found,
                  "deployment \"%s\" comes %s all other members, but there is no %s: it runs only "
                  "when it has a new version itself",
                  str_shown(name).text, first ? "before" : "after",
                  first ? "preSelector" : "postSelector");
}

static void check_bracket_hooks(lint *l, const edge_rules *rules, const object *policy,
                                size_t index)
{
    const struct rollout_policy_spec *spec = &policy->rollout_policy->spec;
    const deployment_bracket *b = spec->rules.at[index].deployment_bracket;
    bracket_members m = {.len = 0};
    for (size_t d = 0; d < lint_count(l, KIND_DEPLOYMENT); d++) {
        lint_bindings with = {.deployment = &l->deployments[d]};
        if (lint_ask(l, &b->deployment_selector, with) == LINT_NO ||
            lint_ask(l, &spec->selector, with) == LINT_NO)
            continue;
        if (m.len == BRACKET_MEMBERS_MOST)
            return;
        m.at[m.len++] = d;
    }
    lint_rule_place p;
    lint_rule_at(&p, policy, index);
    for (size_t i = 0; i < m.len && m.len > 1; i++) {
        str name = l->of[KIND_DEPLOYMENT].at[m.at[i]]->metadata->name;
        if (!b->pre_selector.source.ptr && reach(rules, policy, &m, i, false) == m.len - 1)
            warn_hook(l, &p, name, true);
        if (!b->post_selector.source.ptr && reach(rules, policy, &m, i, true) == m.len - 1)
            warn_hook(l, &p, name, false);
    }
}

static void check_hooks(lint *l, const edge_rules *rules)
{
    for (size_t p = 0; p < lint_count(l, KIND_ROLLOUT_POLICY); p++) {
        const object *policy = l->of[KIND_ROLLOUT_POLICY].at[p];
        const struct rollout_policy_spec *spec = &policy->rollout_policy->spec;
        for (size_t i = 0; i < spec->rules.len; i++)
            if (spec->rules.at[i].kind == RULE_DEPLOYMENT_BRACKET)
                check_bracket_hooks(l, rules, policy, i);
    }
}

/* Whether there are too many to ask; says so. */
static bool too_many(lint *l)
{
    size_t rules = 0;
    for (size_t p = 0; p < lint_count(l, KIND_ROLLOUT_POLICY); p++)
        rules += l->of[KIND_ROLLOUT_POLICY].at[p]->rollout_policy->spec.rules.len;
    if (rules == 0 || lint_count(l, KIND_DEPLOYMENT) <= PAIRS_MOST / rules)
        return false;
    problem p = {.severity = SEVERITY_WARNING};
    problems_addf(l->found, &p,
                  "found %zu rules and %zu deployments: too many to look for those that wait for "
                  "each other",
                  rules, lint_count(l, KIND_DEPLOYMENT));
    return true;
}

bool lint_dependencies(lint *l)
{
    edge_rules rules = {0};
    if (too_many(l))
        return true;
    bool good = collect(l, &rules);
    if (good) {
        check_upstreams(l, &rules);
        good = check_cycles(l, &rules);
        check_hooks(l, &rules);
    }
    vec_done(&rules);
    return good;
}
