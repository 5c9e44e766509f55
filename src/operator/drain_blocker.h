/* SPDX-License-Identifier: Apache-2.0 */
/* drain_blocker.h - who is in the way of a node's drain, from what an API server lists.
 *
 * For who only reads: an operator knows it from the answers to its evictions. Pure; copies what it
 * is shown into its arena. First all PodDisruptionBudgets, then the node's pods. */
#ifndef DROVER_OPERATOR_DRAIN_BLOCKER_H
#define DROVER_OPERATOR_DRAIN_BLOCKER_H

#include "base/vec.h"
#include "operator/shell_read.h"

/* A PodDisruptionBudget. */
typedef struct blocker_budget {
    str space, name;
    const selector *selects;
    eviction_view says; /* what stands in its status; nothing of a pod */
} blocker_budget;

typedef struct drain_blocker {
    arena *arena;
    VEC(blocker_budget) budgets;
    VEC(const selector *) spared; /* podNonInterruptLabels of the Skyhooks that drain the node */
    int64_t since_ms;             /* since when they do; 0: it is not known */
    /* the answer */
    bool found;
    drain_wait pod;
    str budget; /* that protects the pod; empty: none does */
    bool no_memory;
} drain_blocker;

/* False without memory. drain_blocker_done is needed in either case. */
bool drain_blocker_begin(drain_blocker *b);
void drain_blocker_done(drain_blocker *b);
/* The selector must outlive b. */
void drain_blocker_spare(drain_blocker *b, const selector *pods);
void drain_blocker_budget(drain_blocker *b, yyjson_val *budget);
void drain_blocker_pod(drain_blocker *b, yyjson_val *pod);

#endif
