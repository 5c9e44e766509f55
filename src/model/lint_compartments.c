/* SPDX-License-Identifier: Apache-2.0 */
/* Warnings about compartments, their budgets and strategies, and about Skyhooks: the nodes they go
 * to, their interrupts, the older interruptionBudget.
 *
 * When the documents name nodes (or, for a rule, resources), each is put into its compartment as
 * the engine does it (cohort.h), so that what no one can reach and what percentages come to is
 * known. */
#include "base/num.h"
#include "model/json.h"
#include "model/lint_internal.h"

/* A policy, where it stands, and whom it is about. */
typedef struct subject {
    lint *l;
    const deployment_policy_spec *spec;
    const place *at;
    const char *thing;        /* "node" */
    const label_set *members; /* labels of those it is about */
    size_t member_count;
} subject;

typedef struct tally {
    int64_t matches;  /* members whose labels match */
    int64_t assigned; /* of those, the ones that come here */
    size_t taken_by;  /* the compartment that took the last of the others */
} tally;

static int safety(const compartment *c)
{
    switch (c->strategy ? c->strategy->kind : STRATEGY_NONE) {
    case STRATEGY_FIXED: return 0;
    case STRATEGY_LINEAR: return 1;
    case STRATEGY_EXPONENTIAL: return 2;
    case STRATEGY_NONE: return 3;
    }
    return 3;
}

static int64_t ceiling(budget b, int64_t count)
{
    if (b.count.set)
        return b.count.value;
    return num_percent(count, b.percent.set ? b.percent.value : 100);
}

static bool safer(const subject *s, const tally *tallies, size_t a, size_t b)
{
    const compartment *left = &s->spec->compartments.at[a], *right = &s->spec->compartments.at[b];
    if (safety(left) != safety(right))
        return safety(left) < safety(right);
    int64_t mine = ceiling(left->budget, tallies[a].matches);
    int64_t other = ceiling(right->budget, tallies[b].matches);
    if (mine != other)
        return mine < other;
    return str_cmp(left->name, right->name) < 0;
}

/* Counts who matches and who goes where; what is left over is the default's. */
static int64_t assign(const subject *s, tally *tallies)
{
    size_t count = s->spec->compartments.len;
    int64_t rest = 0;
    for (size_t m = 0; m < s->member_count; m++)
        for (size_t c = 0; c < count; c++)
            tallies[c].matches +=
                selector_match(s->spec->compartments.at[c].selector.compiled, s->members[m]);
    for (size_t m = 0; m < s->member_count; m++) {
        size_t best = count;
        for (size_t c = 0; c < count; c++) {
            if (!selector_match(s->spec->compartments.at[c].selector.compiled, s->members[m]))
                continue;
            if (best < count)
                tallies[safer(s, tallies, c, best) ? best : c].taken_by =
                    safer(s, tallies, c, best) ? c : best;
            if (best == count || safer(s, tallies, c, best))
                best = c;
        }
        if (best == count)
            rest++;
        else
            tallies[best].assigned++;
    }
    return rest;
}

static void check_one(const subject *s, const compartment *c, const place *at, int64_t assigned)
{
    place at_strategy = place_key(at, STR("strategy")), at_budget = place_key(at, STR("budget"));
    place percent = place_key(&at_budget, STR("percent"));
    if (c->strategy && c->strategy->with && !c->strategy->with->failure_threshold.set) {
        static const char *const names[] = {
#define X(kind, text) [STRATEGY_##kind] = (text),
            STRATEGY_KINDS(X)
#undef X
        };
        place kind = place_key(&at_strategy, str_of(names[c->strategy->kind]));
        place_warning(&kind, s->l->found,
                      "there is no failureThreshold: failed batches never stop the rollout");
    }
    if (c->budget.percent.set)
        lint_warn_percent(s->l, &percent, c->budget.percent.value, assigned, s->thing);
}

static void check_reach(const subject *s, const tally *tallies, size_t c, const place *item)
{
    place at_selector = place_key(item, STR("selector"));
    if (tallies[c].matches == 0)
        place_warning(&at_selector, s->l->found, "no %s among the documents matches it", s->thing);
    else if (tallies[c].assigned == 0)
        place_warning(&at_selector, s->l->found,
                      "no %s can reach this compartment: what matches it goes to a safer one, such "
                      "as \"%s\"",
                      s->thing, str_shown(s->spec->compartments.at[tallies[c].taken_by].name).text);
}

static bool check_policy(const subject *s)
{
    size_t count = s->spec->compartments.len;
    tally *tallies = ARENA_ARRAY(s->l->arena, count + 1, tally);
    if (!tallies)
        return false;
    int64_t rest = assign(s, tallies);
    place standard = place_key(s->at, STR("default"));
    place list = place_key(s->at, STR("compartments"));
    check_one(s, &s->spec->default_, &standard, rest);
    for (size_t c = 0; c < count; c++) {
        place item = place_at(&list, c);
        if (s->member_count > 0 && !lint_left_out(s->l, KIND_NODE))
            check_reach(s, tallies, c, &item);
        check_one(s, &s->spec->compartments.at[c], &item, tallies[c].assigned);
    }
    return true;
}

/* ---- whom a policy is about ---- */

/* Nodes of the Skyhooks that use the policy; all nodes when none does. */
static bool nodes_of(lint *l, str policy, subject *s)
{
    lint_objects users = {0};
    label_set *members = ARENA_ARRAY(l->arena, lint_count(l, KIND_NODE) + 1, label_set);
    bool good = members != NULL;
    for (size_t i = 0; good && i < lint_count(l, KIND_SKYHOOK); i++) {
        const object *o = l->of[KIND_SKYHOOK].at[i];
        if (str_eq(o->skyhook->spec.deployment_policy, policy))
            good = vec_push(&users, o);
    }
    for (size_t n = 0; good && n < lint_count(l, KIND_NODE); n++) {
        label_set labels = l->of[KIND_NODE].at[n]->metadata->labels;
        bool meant = users.len == 0;
        for (size_t u = 0; u < users.len && !meant; u++)
            meant = selector_match(users.at[u]->skyhook->spec.node_selectors.compiled, labels);
        if (meant)
            members[s->member_count++] = labels;
    }
    vec_done(&users);
    s->members = members;
    return good;
}

static bool check_policies(lint *l)
{
    for (size_t i = 0; i < lint_count(l, KIND_DEPLOYMENT_POLICY); i++) {
        const object *o = l->of[KIND_DEPLOYMENT_POLICY].at[i];
        place root = lint_root(o), at = place_key(&root, STR("spec"));
        subject s = {.l = l, .spec = &o->deployment_policy->spec, .at = &at, .thing = "node"};
        if (!nodes_of(l, o->metadata->name, &s) || !check_policy(&s))
            return false;
    }
    return true;
}

/* A Skyhook that goes nowhere. */
static void check_selectors(lint *l)
{
    for (size_t i = 0; i < lint_count(l, KIND_SKYHOOK); i++) {
        const object *o = l->of[KIND_SKYHOOK].at[i];
        bool any = lint_count(l, KIND_NODE) == 0 || lint_left_out(l, KIND_NODE);
        for (size_t n = 0; n < lint_count(l, KIND_NODE) && !any; n++)
            any = selector_match(o->skyhook->spec.node_selectors.compiled,
                                 l->of[KIND_NODE].at[n]->metadata->labels);
        place root = lint_root(o), spec = place_key(&root, STR("spec"));
        place at = place_key(&spec, STR("nodeSelectors"));
        if (!any)
            place_warning(&at, l->found, "no node among the documents matches it");
    }
}

static void check_services(lint *l, const interrupt *i, const place *at)
{
    if (i->type == INTERRUPT_SERVICE && i->services.len == 0)
        place_warning(at, l->found, "it names no services: it fails on every node");
}

/* Interrupts that no agent can carry out, which is found out when a node is drained. */
static void check_interrupts(lint *l)
{
    for (size_t i = 0; i < lint_count(l, KIND_SKYHOOK); i++) {
        const object *o = l->of[KIND_SKYHOOK].at[i];
        place root = lint_root(o), spec = place_key(&root, STR("spec"));
        place packages = place_key(&spec, STR("packages"));
        for (size_t k = 0; k < o->skyhook->spec.packages.len; k++) {
            const package *p = &o->skyhook->spec.packages.at[k];
            place at = place_key(&packages, p->key);
            place own = place_key(&at, STR("interrupt"));
            place others = place_key(&at, STR("configInterrupts"));
            if (p->interrupt)
                check_services(l, p->interrupt, &own);
            for (size_t n = 0; n < p->config_interrupts.len; n++) {
                place one = place_key(&others, p->config_interrupts.at[n].key);
                check_services(l, &p->config_interrupts.at[n], &one);
            }
        }
    }
}

static void check_budgets(lint *l)
{
    for (size_t i = 0; i < lint_count(l, KIND_SKYHOOK); i++) {
        const object *o = l->of[KIND_SKYHOOK].at[i];
        const skyhook_spec *spec = &o->skyhook->spec;
        if (!spec->interruption_budget || !spec->interruption_budget->percent.set)
            continue;
        int64_t count = 0, share = spec->interruption_budget->percent.value;
        for (size_t n = 0; n < lint_count(l, KIND_NODE) && !lint_counted(share, count); n++)
            count += selector_match(spec->node_selectors.compiled,
                                    l->of[KIND_NODE].at[n]->metadata->labels);
        place root = lint_root(o), at = place_key(&root, STR("spec"));
        place at_budget = place_key(&at, STR("interruptionBudget"));
        place percent = place_key(&at_budget, STR("percent"));
        lint_warn_percent(l, &percent, share, count, "node");
    }
}

static bool check_rules(lint *l)
{
    size_t count = lint_count(l, KIND_RESOURCE);
    label_set *labels = ARENA_ARRAY(l->arena, count + 1, label_set);
    if (!labels)
        return false;
    for (size_t i = 0; i < count; i++)
        labels[i] = l->of[KIND_RESOURCE].at[i]->metadata->labels;
    for (size_t p = 0; p < lint_count(l, KIND_ROLLOUT_POLICY); p++) {
        const object *policy = l->of[KIND_ROLLOUT_POLICY].at[p];
        for (size_t i = 0; i < policy->rollout_policy->spec.rules.len; i++) {
            const rule *r = &policy->rollout_policy->spec.rules.at[i];
            if (r->kind != RULE_DEPLOYMENT_POLICY)
                continue;
            lint_rule_place at;
            lint_rule_at(&at, policy, i);
            subject s = {l, r->deployment_policy_spec, &at.kind, "resource", labels, count};
            if (!check_policy(&s))
                return false;
        }
    }
    return true;
}

bool lint_compartments(lint *l)
{
    check_selectors(l);
    check_interrupts(l);
    check_budgets(l);
    return check_policies(l) && check_rules(l);
}
