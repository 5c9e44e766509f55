/* SPDX-License-Identifier: Apache-2.0 */
/* plan_load.h - how many were at work at once, over a stretch of time cut into equal parts. */
#ifndef DROVER_CLI_PLAN_LOAD_H
#define DROVER_CLI_PLAN_LOAD_H

#include "base/vec.h"

#define PLAN_LOAD_STEPS 600

typedef struct load_edge {
    int64_t ms;
    int by; /* 1: one begins; -1: one ends */
} load_edge;

/* Begin with {0}. */
typedef struct plan_load {
    VEC(load_edge) edges;
    int64_t at[PLAN_LOAD_STEPS]; /* the most in each part */
    int64_t most, all, failed;
} plan_load;

/* One is at work in [start, end), in milliseconds from the left end of the axis. False without
 * memory. */
bool plan_load_add(plan_load *l, int64_t start_ms, int64_t end_ms);
/* When all were added: fills in at and most, and gives back the memory. */
void plan_load_measure(plan_load *l, int64_t span_ms);

#endif
