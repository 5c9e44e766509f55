/* SPDX-License-Identifier: Apache-2.0 */
/* plan.h - what a finished simulation came to, and the JSON that programs read.
 *
 * Collects and writes; knows no rule. Keys and words are promises: docs/plan.md. */
#ifndef DROVER_SIM_PLAN_H
#define DROVER_SIM_PLAN_H

#include "sim/sim.h"

typedef struct plan_group {
    group_view view;
    const ledger_group *batches; /* NULL: none were opened */
    /* Compartments at the end, before a completed rollout put them back to batch 1. */
    int64_t current_batch, completed, failed, consecutive_failures;
    bool stopped;
    bool shared; /* a rule's, over several deployments: each of them shows it */
    bool again;  /* and an earlier change has shown it */
} plan_group;

typedef struct plan_change {
    str name;
    const char *kind; /* Skyhook, Bundle, Deployment */
    VEC(plan_group) groups;
} plan_change;

typedef struct plan {
    const sim *sim;
    arena *arena;
    sim_counts counts;
    sim_outcome outcome;
    int64_t seconds, drains, drains_saved;
    str reason;               /* empty when complete */
    VEC(plan_change) changes; /* by name */
} plan;

/* False without memory. plan_done is needed in either case. */
bool plan_collect(plan *p, const sim *s);
void plan_done(plan *p);

/* The name of a change as the engine says it: a Bundle's with its namespace, if it has one. Pointer
 * NULL without memory. */
str plan_change_name(arena *a, const object *o);

void plan_json(const plan *p, buf *out);
/* What a plan of a live fleet takes for granted, in a sentence; empty for one of files. */
str plan_assumption(const plan *p);
/* The reason that says most in one sentence: the first that does not pass by itself with time, else
 * the first. NULL: there is none. */
const reason *plan_main_reason(const reasons *why);

/* A time since 1970 as a JSON text; null for REASON_NEVER. */
void plan_time_json(int64_t ms, buf *out);
/* "1h30m", "45s": without parts that are zero. */
#define PLAN_SPAN_BYTES 48
const char *plan_span(int64_t seconds, char text[PLAN_SPAN_BYTES]);
/* The most targets in flight in each of so many equal parts of the run. */
void plan_curve(const plan *p, size_t parts, int64_t *ret);

#endif
