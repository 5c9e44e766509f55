/* SPDX-License-Identifier: Apache-2.0 */
/* skyhook_status.h - the words in which users of Skyhook see a rollout: of a node, of the whole,
 * and what is wrong.
 *
 * Pure functions over what the engine shows (engine.h) and the document. A shell counts and
 * writes; which word it is, is said here. They decide nothing of what is done. */
#ifndef DROVER_ENGINE_SKYHOOK_STATUS_H
#define DROVER_ENGINE_SKYHOOK_STATUS_H

#include "engine/engine.h"

/* ---- of a node, and of all of them ---- */

/* A node that is complete is so whether or not its Skyhook goes on. */
skyhook_state node_status(const skyhook *of, placement_state state);

typedef struct node_statuses {
    int64_t of[SKYHOOK_ERRORING + 1]; /* by skyhook_state */
    int64_t all;                      /* their sum */
} node_statuses;
/* The roll-up. A Skyhook without nodes is complete. */
skyhook_state skyhook_status_of(const skyhook *of, const node_statuses *nodes, held_view held);
/* Those that are worked on, or were and are tried again. */
int64_t nodes_in_progress(const node_statuses *nodes);
/* Of a compartment, rounded down; 0 of an empty one. */
int64_t progress_percent(int64_t done, int64_t matched);

/* ---- what is wrong ---- */

#define NODE_TROUBLES(X)                                                                           \
    X(MALFORMED, 1)    /* its nodeState cannot be read */                                          \
    X(UNINSTALLS, 2)   /* a package is being uninstalled there, */                                 \
    X(FAILS, 4)        /* and that fails */                                                        \
    X(CARRIES, 8)      /* it has a package that a deletion uninstalls */                           \
    X(UNTOLERATED, 16) /* it has a taint that is not tolerated */
enum {
#define X(name, bit) TROUBLE_##name = (bit),
    NODE_TROUBLES(X)
#undef X
};
uint8_t node_troubles(const skyhook *of, const node_view *v);

/* Why a deletion waits for a person, and what the condition's reason is. */
#define DELETION_BLOCKS(X)                                                                         \
    X(FREE, "")                                                                                    \
    X(MALFORMED, "MalformedNodeState")                                                             \
    X(PAUSED, "PausedWithPendingUninstall")                                                        \
    X(DISABLED, "DisabledWithPendingUninstall")
typedef enum deletion_blocked {
#define X(name, reason) DELETION_##name,
    DELETION_BLOCKS(X)
#undef X
} deletion_blocked;
/* troubles: those of all nodes together. */
deletion_blocked deletion_blocked_by(const skyhook *of, uint8_t troubles);
const char *deletion_blocked_reason(deletion_blocked why);

/* How far a package is on the nodes that were looked at; begins as zeros. */
typedef struct package_spread {
    bool present;    /* somewhere, in whatever version */
    bool incomplete; /* somewhere that is selected */
    int64_t nodes;   /* that have it in its version */
} package_spread;
void package_spread_look(const package *p, const node_view *v, package_spread *spread);
/* Whether the package waits for the end of an uninstall of its dependency, which can be NULL. It
 * does only where it is incomplete: package_spread tells. */
bool package_dependency_leaves(const skyhook *of, const package *p, const package *dependency);

#endif
