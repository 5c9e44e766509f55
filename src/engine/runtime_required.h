/* SPDX-License-Identifier: Apache-2.0 */
/* runtime_required.h - the taint that keeps a new node empty until its Skyhooks are complete there.
 *
 * The one taint Drover removes without having put it, and puts without a claim. No node waits
 * for another. */
#ifndef DROVER_ENGINE_RUNTIME_REQUIRED_H
#define DROVER_ENGINE_RUNTIME_REQUIRED_H

#include "engine/nodes_internal.h"

/* "key=value:effect", the value optional. Views into text. */
void runtime_required_parse(str text, fact_taint *ret);
/* Puts the taint on a new node that a Skyhook with autoTaintNewNodes selects. */
void runtime_required_taint(nodes *self, uint32_t target);
/* Takes it away when every runtimeRequired Skyhook that selects the node is complete on it. */
void runtime_required_untaint(nodes *self, uint32_t target);
/* A Skyhook no longer holds the taint of this placement's node: it is deleted, no longer
 * runtimeRequired, or no longer selects it. Then the taint goes if Drover put it or the Skyhook
 * was_done there, and no other holds it. */
void runtime_required_leave(nodes *self, const node_placement *p, bool was_done);
/* Whether the Skyhook holds taints: one that is being deleted does no longer. */
bool runtime_required_holds(const change *c);

#endif
