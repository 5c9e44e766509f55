/* SPDX-License-Identifier: Apache-2.0 */
/* readiness.h - whether an object that was deployed to a cluster does its work.
 *
 * Pure: one object comes in as the API server has it, a judgement comes out. Kinds whose status is
 * known are judged by it; others by their conditions; those without any are ready when they are
 * there. In Fleet's words an object is ready, transitioning (it may become ready by itself) or in
 * error (somebody must do something). */
#ifndef DROVER_CLUSTER_AGENT_READINESS_H
#define DROVER_CLUSTER_AGENT_READINESS_H

#include <yyjson.h>

#include "base/arena.h"

#define READINESS_STATES(X)                                                                        \
    X(READY, "ready")                                                                              \
    X(TRANSITIONING, "in-progress")                                                                \
    X(ERROR, "error")
typedef enum readiness_state {
#define X(state, text) READINESS_##state,
    READINESS_STATES(X)
#undef X
} readiness_state;

typedef struct readiness {
    readiness_state state;
    str message; /* empty when ready; in the arena, or a view into the object */
} readiness;

/* object is never NULL. Without memory the message is empty. */
readiness readiness_judge(arena *a, const yyjson_val *object);
/* The same without some conditions: ignored is options.ignore.conditions, a list of maps; one whose
 * members a condition all has is not looked at. May be NULL. */
readiness readiness_judge_but(arena *a, const yyjson_val *object, const yyjson_val *ignored);

/* Appends an entry of status.nonReadyStatus for an object that is not ready. */
void non_ready_put(buf *out, const yyjson_val *object, const readiness *judged);

#endif
