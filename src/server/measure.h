/* SPDX-License-Identifier: Apache-2.0 */
/* measure.h - measures the metrics of a verification until each is judged.
 *
 * Asks the providers (HTTP, Prometheus, or only waiting), as often and at the times the metrics
 * say; what the answers mean, engine/verification.h says. Waits and blocks: for a process of its
 * own (supervisor.h). */
#ifndef DROVER_SERVER_MEASURE_H
#define DROVER_SERVER_MEASURE_H

#include "base/arena.h"
#include "base/err.h"
#include "model/release.h"

typedef struct measuring {
    const verification *what;
    int64_t deadline_ms; /* by the same clock as now_ms */
    void *context;
    int64_t (*now_ms)(void);
    /* Waits until that time; false when it is to stop. */
    bool (*wait)(void *context, int64_t until_ms);
    /* A line for the log. */
    void (*say)(void *context, str line);
} measuring;

/* Empty: all metrics have passed. Else why not, in a. */
str measure_all(const measuring *m, arena *a);

#endif
