/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/policy_rules.h"

static const compartment_rule defaults = {
    .pace = COHORT_NONE,
    .initial_batch = 1,
    .batch_threshold = 100,
    .safety_limit = 50,
    .delta = 1,
    .growth_factor = 2,
};

static cohort_pace pace_of(strategy_kind kind)
{
    switch (kind) {
    case STRATEGY_NONE: return COHORT_NONE;
    case STRATEGY_FIXED: return COHORT_FIXED;
    case STRATEGY_LINEAR: return COHORT_LINEAR;
    case STRATEGY_EXPONENTIAL: return COHORT_EXPONENTIAL;
    }
    return COHORT_NONE;
}

static compartment_rule rule_of(const compartment *c, bool is_default)
{
    compartment_rule r = defaults;
    r.name = is_default ? STR(COHORT_DEFAULT) : c->name;
    r.selector = is_default ? NULL : c->selector.compiled;
    r.percent = c->budget.percent.set;
    r.budget = r.percent ? c->budget.percent.value : c->budget.count.value;
    if (!c->strategy || !c->strategy->with)
        return r;
    const strategy_parameters *with = c->strategy->with;
    r.pace = pace_of(c->strategy->kind);
    r.initial_batch = with->initial_batch;
    r.batch_threshold = with->batch_threshold;
    r.failure_threshold = with->failure_threshold.set ? with->failure_threshold.value : 0;
    r.safety_limit = with->safety_limit;
    r.delta = with->delta;
    r.growth_factor = with->growth_factor;
    return r;
}

bool policy_rules(const deployment_policy_spec *s, arena *a, cohort_policy *ret)
{
    compartment_rule *rules = ARENA_ARRAY(a, s->compartments.len + 1, compartment_rule);
    if (!rules)
        return false;
    for (size_t i = 0; i < s->compartments.len; i++)
        rules[i] = rule_of(&s->compartments.at[i], false);
    rules[s->compartments.len] = rule_of(&s->default_, true);
    *ret = (cohort_policy){rules, s->compartments.len + 1, s->failed_nodes_hold_budget};
    return true;
}

bool legacy_rules(const budget *b, arena *a, cohort_policy *ret)
{
    compartment_rule *r = ARENA_NEW(a, compartment_rule);
    if (!r)
        return false;
    *r = defaults;
    r->name = STR(COHORT_DEFAULT);
    r->pace = COHORT_FIXED;
    r->initial_is_ceiling = true;
    bool count = b && b->count.set && !b->percent.set;
    r->percent = !count;
    r->budget = count ? b->count.value : b && b->percent.set ? b->percent.value : 100;
    *ret = (cohort_policy){r, 1, false};
    return true;
}

bool policy_resets(const skyhook *s, const deployment_policy *policy)
{
    if (s->spec.deployment_policy_options)
        return s->spec.deployment_policy_options->reset_batch_state_on_completion;
    return !policy || policy->spec.reset_batch_state_on_completion;
}

/* ---- groups ---- */

static str pace_text(cohort_pace pace)
{
    static const str texts[] = {
#define X(kind, text) [COHORT_##kind] = STR(text),
        COHORT_PACES(X)
#undef X
    };
    return texts[pace];
}

bool policy_groups(const cohort *c, const group_view *of, group_visitor visit, void *context)
{
    for (size_t i = 0; i < cohort_compartments(c); i++) {
        compartment_view v;
        cohort_view(c, i, &v);
        if (v.removed && v.matched == 0)
            continue;
        group_view g = {
            .kind = GROUP_COMPARTMENT,
            .change = of->change,
            .rule = of->rule,
            .environment = of->environment,
            .name = v.rule->name,
            .strategy = pace_text(v.rule->pace),
            .matched = v.matched,
            .limit = v.ceiling,
            .holders = v.holders,
            .done = v.done,
            .in_flight = v.in_flight,
            .peak = v.peak,
            .current_batch = v.current_batch,
            .completed = v.completed,
            .failed = v.failed,
            .consecutive_failures = v.consecutive_failures,
            .last_batch_size = v.last_batch_size,
            .last_batch_failed = v.last_batch_failed,
            .stopped = v.stopped,
        };
        if (!visit(context, &g))
            return false;
    }
    return true;
}
