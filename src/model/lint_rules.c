/* SPDX-License-Identifier: Apache-2.0 */
/* Warnings about what rules come to: slots in percent, windows that are too short, and measurements
 * that are never made. */
#include "model/lint_internal.h"

static void check_concurrency(lint *l, const object *policy, size_t index)
{
    const resource_concurrency *r =
        policy->rollout_policy->spec.rules.at[index].resource_concurrency;
    int64_t count = 0;
    if (r->limit_type != LIMIT_TYPE_PERCENTAGE || r->limit_value == 0)
        return; /* 0 is a pause, and meant */
    for (size_t i = 0; i < lint_count(l, KIND_RESOURCE) && !lint_counted(r->limit_value, count);
         i++)
        count += lint_ask(l, &r->group_selector, (lint_bindings){.resource = &l->resources[i]}) ==
                 LINT_YES;
    lint_rule_place p;
    lint_rule_at(&p, policy, index);
    place at = place_key(&p.kind, STR("limitValue"));
    lint_warn_percent(l, &at, r->limit_value, count, "resource");
}

static int64_t seconds_of(const deployment *d)
{
    const simulated_job *simulated = d->spec.job.simulated;
    return simulated && simulated->seconds.set ? simulated->seconds.value : d->spec.timeout_seconds;
}

/* The deployment of the policy that may take longest, or NULL. */
static const object *longest(lint *l, const object *policy)
{
    const object *found = NULL;
    for (size_t i = 0; i < lint_count(l, KIND_DEPLOYMENT); i++) {
        const object *o = l->of[KIND_DEPLOYMENT].at[i];
        lint_bindings with = {.deployment = &l->deployments[i]};
        if (lint_ask(l, &policy->rollout_policy->spec.selector, with) == LINT_NO)
            continue;
        if (!found || seconds_of(o->deployment) > seconds_of(found->deployment))
            found = o;
    }
    return found;
}

/* Seconds from the first turn of a rollout to its last, by the rules of the same policy. */
static int64_t span(lint *l, const object *policy)
{
    const struct rollout_policy_spec *spec = &policy->rollout_policy->spec;
    int64_t count = 0, most = 0;
    for (size_t i = 0; i < lint_count(l, KIND_RESOURCE); i++)
        count +=
            lint_ask(l, &spec->selector, (lint_bindings){.resource = &l->resources[i]}) != LINT_NO;
    for (size_t i = 0; i < spec->rules.len && count > 1; i++) {
        const gradual_rollout *g = spec->rules.at[i].gradual_rollout;
        if (spec->rules.at[i].kind != RULE_GRADUAL_ROLLOUT)
            continue;
        int64_t last = g->rollout_type == ROLLOUT_LINEAR
                           ? (count - 1) * g->time_scale_interval
                           : (count - 1) * g->time_scale_interval / count;
        most = last > most ? last : most;
    }
    return most;
}

static void check_window(lint *l, const object *policy, size_t index)
{
    const deployment_window *w = policy->rollout_policy->spec.rules.at[index].deployment_window;
    if (!w->allow_window)
        return;
    lint_rule_place p;
    lint_rule_at(&p, policy, index);
    place at = place_key(&p.kind, STR("durationMinutes"));
    const object *slow = longest(l, policy);
    int64_t window = w->duration_minutes * 60, turns = span(l, policy);
    if (slow && seconds_of(slow->deployment) > window)
        place_warning(&at, l->found,
                      "%lld minutes are shorter than deployment \"%s\" may take, which is %lld "
                      "seconds",
                      (long long)w->duration_minutes, str_shown(slow->metadata->name).text,
                      (long long)seconds_of(slow->deployment));
    if (turns > window)
        place_warning(&at, l->found,
                      "%lld minutes are shorter than gradualRollout takes to reach the last "
                      "resource, which is %lld seconds",
                      (long long)w->duration_minutes, (long long)turns);
}

static void check_verification(lint *l, const object *policy, size_t index)
{
    const verification *v = policy->rollout_policy->spec.rules.at[index].verification;
    if (v->trigger_on != VERIFY_ON_JOB_FAILURE)
        return;
    lint_rule_place p;
    lint_rule_at(&p, policy, index);
    place at = place_key(&p.kind, STR("triggerOn"));
    place_warning(&at, l->found,
                  "nothing is measured: a release whose job failed has failed, whatever metrics "
                  "say");
}

bool lint_rules(lint *l)
{
    for (size_t p = 0; p < lint_count(l, KIND_ROLLOUT_POLICY); p++) {
        const object *policy = l->of[KIND_ROLLOUT_POLICY].at[p];
        for (size_t i = 0; i < policy->rollout_policy->spec.rules.len; i++) {
            rule_kind kind = policy->rollout_policy->spec.rules.at[i].kind;
            if (kind == RULE_RESOURCE_CONCURRENCY)
                check_concurrency(l, policy, i);
            if (kind == RULE_DEPLOYMENT_WINDOW)
                check_window(l, policy, i);
            if (kind == RULE_VERIFICATION)
                check_verification(l, policy, i);
        }
    }
    return true;
}
