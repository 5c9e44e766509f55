/* SPDX-License-Identifier: Apache-2.0 */
/* verification: what must be measured before a release is good. */
#include "engine/verification.h"

#include "engine/chain.h"
#include "model/json.h"
#include "select/cel.h"

/* ---- which metrics ---- */

/* Whether a rule before this one, or this one before that place, has a metric of the name. */
static bool named_before(const releases *r, const rel_lane *lane, size_t at, str name)
{
    for (size_t i = 0; i < at; i++) {
        const rel_rule *rule_ = &r->rules.at[lane->rules.at[i]];
        if (rule_->kind != RULE_VERIFICATION || !rule_->doc)
            continue;
        const verification *doc = rule_->doc->verification;
        for (size_t k = 0; doc->trigger_on != VERIFY_ON_JOB_FAILURE && k < doc->metrics.len; k++)
            if (str_eq(doc->metrics.at[k].name, name))
                return true;
    }
    return false;
}

void releases_metrics(const void *self, release_name of, metric_visitor visit, void *context)
{
    const releases *r = self;
    uint32_t t = release_find(r, of.deployment, of.environment, of.resource);
    if (t == NO || r->targets.at[t].lane == NO)
        return;
    const rel_lane *lane = &r->lanes.at[r->targets.at[t].lane];
    for (size_t i = 0; i < lane->rules.len; i++) {
        const rel_rule *rule_ = &r->rules.at[lane->rules.at[i]];
        if (rule_->kind != RULE_VERIFICATION || !rule_->doc)
            continue;
        const verification *doc = rule_->doc->verification;
        for (size_t k = 0; doc->trigger_on != VERIFY_ON_JOB_FAILURE && k < doc->metrics.len; k++)
            if (!named_before(r, lane, i, doc->metrics.at[k].name) &&
                !visit(context, &doc->metrics.at[k]))
                return;
    }
}

/* ---- how long it takes ---- */

#define MEASURING_MAX_MS (INT64_C(100) * 365 * 86400 * 1000)

int64_t metric_ms(const verification_metric *m)
{
    int64_t sleep = m->provider.type == PROVIDER_SLEEP ? m->provider.duration_seconds : 0;
    int64_t passes = m->success_threshold.set && m->success_threshold.value < m->count
                         ? m->success_threshold.value
                         : m->count;
    int64_t each_ms = (sleep + m->interval_seconds) * 1000;
    if (passes > MEASURING_MAX_MS / each_ms)
        return MEASURING_MAX_MS;
    return passes * each_ms - m->interval_seconds * 1000;
}

static bool longest(void *context, const verification_metric *m)
{
    int64_t *most_ms = context, ms = metric_ms(m);
    *most_ms = ms > *most_ms ? ms : *most_ms;
    return true;
}

int64_t engine_measuring_ms(const engine *e, release_name of)
{
    int64_t ms = 0;
    engine_metrics(e, of, longest, &ms);
    return ms;
}

/* ---- what a measurement means ---- */

#define MEASUREMENTS(X) X(PASSED, "passed") X(FAILED, "failed") X(INCONCLUSIVE, "inconclusive")
typedef enum measurement {
#define X(kind, text) MEASURED_##kind,
    MEASUREMENTS(X)
#undef X
} measurement;

/* An expression that cannot be evaluated is a failure: nothing fails open. */
static measurement measure_of(const verification_metric *m, str result, arena *a, err *why)
{
    yyjson_val *value = json_parse(a, result, why);
    if (!value)
        return MEASURED_FAILED;
    cel_value bindings[] = {cel_from_json(value)};
    if (m->failure_condition.program) {
        bool failed = false;
        if (!cel_match(m->failure_condition.program, bindings, a, &failed, why))
            return MEASURED_FAILED;
        if (failed) {
            err_set(why, "true: %s", str_shown(m->failure_condition.source).text);
            return MEASURED_FAILED;
        }
    }
    bool passed = false;
    if (!cel_match(m->success_condition.program, bindings, a, &passed, why))
        return MEASURED_FAILED;
    if (passed)
        return MEASURED_PASSED;
    err_set(why, "not true: %s", str_shown(m->success_condition.source).text);
    return m->failure_condition.program ? MEASURED_INCONCLUSIVE : MEASURED_FAILED;
}

metric_verdict metric_judge(const verification_metric *m, metric_state *s, str result, err *why)
{
    arena *a = arena_new(0);
    why->text[0] = 0;
    measurement got = a ? measure_of(m, result, a, why) : MEASURED_FAILED;
    arena_free(a);
    s->measured++;
    s->passes = got == MEASURED_PASSED ? s->passes + 1 : 0;
    s->failures += got == MEASURED_FAILED;
    if (s->failures > m->failure_threshold)
        return METRIC_FAILED;
    if (m->success_threshold.set && s->passes >= m->success_threshold.value)
        return METRIC_PASSED;
    return s->measured >= m->count ? METRIC_PASSED : METRIC_RUNNING;
}
