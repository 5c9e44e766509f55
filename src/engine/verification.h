/* SPDX-License-Identifier: Apache-2.0 */
/* verification.h - what is measured after a job, and what the measurements mean.
 *
 * The rule "verification": which metrics a release target has, and when one has passed or failed.
 * Pure; a shell measures, at the times and as often as this says, and tells the engine with the
 * job's outcome (FACT_JOB) what came of it. */
#ifndef DROVER_ENGINE_VERIFICATION_H
#define DROVER_ENGINE_VERIFICATION_H

#include "engine/engine.h"
#include "model/release.h"

typedef struct release_name {
    str deployment, environment, resource;
} release_name;

typedef bool (*metric_visitor)(void *context, const verification_metric *m);
/* The metrics that are measured when a job of the release target has succeeded: those of all rules
 * over it, in the order of the chain; of several with one name the first counts. */
void engine_metrics(const engine *e, release_name of, metric_visitor visit, void *context);

/* How long a metric is measured that always passes, if its provider answers at once. The first
 * measurement comes at once (sleep: when it has slept), the next ones intervalSeconds later. */
int64_t metric_ms(const verification_metric *m);
/* The longest of those of the release target; 0 without metrics. For plans. */
int64_t engine_measuring_ms(const engine *e, release_name of);

#define METRIC_VERDICTS(X) X(RUNNING, "running") X(PASSED, "passed") X(FAILED, "failed")
typedef enum metric_verdict {
#define X(verdict, text) METRIC_##verdict,
    METRIC_VERDICTS(X)
#undef X
} metric_verdict;

/* A metric so far; all zero at first. */
typedef struct metric_state {
    int64_t measured;
    int64_t failures;
    int64_t passes; /* in a row */
} metric_state;

/* Takes one measurement, the provider's answer as JSON (what conditions see as "result"), and says
 * how the metric stands. A provider that did not answer is no measurement. why gets a sentence when
 * the measurement failed, else an empty one. */
metric_verdict metric_judge(const verification_metric *m, metric_state *s, str result, err *why);

#endif
