/* SPDX-License-Identifier: Apache-2.0 */
/* views.h - what an engine knows, as the JSON that clients and the dashboard read.
 *
 * The same whoever runs the engine: the embedded control plane or the operator. Reads only. */
#ifndef DROVER_SERVER_VIEWS_H
#define DROVER_SERVER_VIEWS_H

#include "engine/engine.h"

/* Which placements: those of these engines, or of them those that a RolloutPolicy matches. */
typedef struct fleet_scope {
    const engine *const *engines;
    size_t count;
    str policy; /* empty: all */
} fleet_scope;

/* The whole fleet in few bytes. sequence: of the journal, at this moment. False without memory. */
bool view_fleet(fleet_scope scope, int64_t sequence, buf *out);
/* Where a target is: in an environment; a cluster in its namespace; a node nowhere in particular.
 */
str view_environment(const placement_view *v);
/* One placement with every reason. names: how many of those who hold or must act are named at most.
 * Memory of a is used. False without memory. */
bool view_target(const engine *e, const placement_view *v, size_t names, arena *a, buf *out);
const char *view_state(placement_state state);
/* A group that shares a limit. */
void view_group(const group_view *v, buf *out);

#endif
