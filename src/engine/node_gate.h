/* SPDX-License-Identifier: Apache-2.0 */
/* node_gate.h - may this Skyhook begin work on this node, leaving the limits aside?
 *
 * Each gate is a rule of its own; all of them are asked, so that explain names every one. */
#ifndef DROVER_ENGINE_NODE_GATE_H
#define DROVER_ENGINE_NODE_GATE_H

#include "engine/nodes_internal.h"

#define NODE_GATES(X)                                                                              \
    X(IGNORED, 0)   /* the node carries the ignore label */                                        \
    X(TAINT, 1)     /* or a taint that is not tolerated */                                         \
    X(NOT_READY, 2) /* it is known not to be ready */                                              \
    X(PRIORITY, 3)  /* a Skyhook that comes before is not done, on it or anywhere */               \
    X(BUSY, 4)      /* another Skyhook is at work on it */                                         \
    X(MALFORMED, 5) /* its recorded state cannot be read */                                        \
    X(STUCK, 6)     /* nothing could run: the packages wait for what is not there */

#define X(gate, bit) GATE_##gate = 1u << (bit),
enum { NODE_GATES(X) };
#undef X

/* The gates that are closed. */
unsigned node_gates(const nodes *self, const node_placement *p);
/* A node that may not be touched at all: ignored, or tainted. */
#define GATES_BLOCKED (GATE_IGNORED | GATE_TAINT)
/* The same for a placement in flight, where taints of the node's own life cycle do not count. */
bool node_blocked_in_flight(const nodes *self, const node_placement *p);

/* The first taint that is not tolerated, or NULL; the second form for a target that need not exist.
 */
const fact_taint *node_untolerated_of(const nodes *self, const change *c, const node_target *t,
                                      bool in_flight);
const fact_taint *node_untolerated(const nodes *self, const node_placement *p, bool in_flight);

/* Whether c comes before o. */
bool change_before(const change *c, const change *o);
/* Whether o must be done, with sequencing "all" everywhere, before p may start. */
bool change_precedes(const nodes *self, const change *o, const node_placement *p);
/* Whether q keeps p from starting by being at work on the same node. */
bool placement_busies(const node_placement *q, const node_placement *p);

#endif
