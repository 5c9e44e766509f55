/* SPDX-License-Identifier: Apache-2.0 */
/* planner.h - plans of the live fleet, made beside the work and not in its way.
 *
 * A plan may take a second, so it is made by a copy of this process (fork), which has the fleet as
 * it was in that moment and cannot change it. What it writes comes back through a pipe and is
 * handed to the client as a stream. A copy dies with its parent, and when the client is gone. */
#ifndef DROVER_SERVER_PLANNER_H
#define DROVER_SERVER_PLANNER_H

#include <uv.h>

#include "server/http.h"
#include "sim/sim.h"

#define PLANS_AT_ONCE_MAX 4
#define PLAN_SECONDS_MAX 60

typedef struct planner planner;

planner *planner_open(uv_loop_t *loop);
/* The loop must run once more. Returns NULL. */
planner *planner_close(planner *p);

typedef struct plan_request {
    http *server; /* woken when there is more */
    sim_settings settings;
    /* Called in the copy, before the run: the fleet as it is, what takes how long, what is to
     * happen. Memory of a lives as long as the simulation. False with an error. */
    bool (*arrange)(void *context, sim *s, arena *a, err *error);
    void *context;
} plan_request;

/* Begins one. False with an error, also when there are too many already. */
bool planner_start(planner *p, const plan_request *request, http_source *ret, err *error);

#endif
