/* SPDX-License-Identifier: Apache-2.0 */
/* explain_show.h - why a target is not moving, as people and programs read it.
 *
 * One form, whether the answer comes from a virtual fleet or from a server: both hand over the JSON
 * of docs/plan.md, and what else a server knows is left out. */
#ifndef DROVER_CLI_EXPLAIN_SHOW_H
#define DROVER_CLI_EXPLAIN_SHOW_H

#include <yyjson.h>

#include "cli/command.h"
#include "engine/engine.h"

/* Which placement of a target is meant. */
typedef struct explain_search {
    str target;
    str change; /* empty: any */
    /* the answer */
    bool has_target, found;
    placement_view view; /* the first that is not done, or the first one if all are */
} explain_search;
/* False without memory. */
bool explain_find(const engine *e, explain_search *s);

/* What the engine says of a placement, as that JSON. said: what its agent says of a deployment that
 * is not ready, which no engine keeps; may be empty. NULL without memory. */
yyjson_val *explain_value(const engine *e, const placement_view *v, str said, arena *a);

/* Prints it, as text or as JSON. */
exit_status explain_print(const options *given, yyjson_val *target);
void explain_text(buf *out, yyjson_val *target);
void explain_json(buf *out, yyjson_val *target);

#endif
