/* SPDX-License-Identifier: Apache-2.0 */
/* act_request.h - what a person asks of the operator, on the Skyhook it is about.
 *
 * Pure. The annotation skyhook.nvidia.com/acts holds a list of JSON: commands append to it by
 * compare-and-swap, the operator takes all of it, and removes it once that is durable. Taking one
 * twice is taking it once: they all say how something shall be.
 *
 *     [{"act":"reset"},{"act":"reset","target":"node-1"},{"act":"resetBatches"}] */
#ifndef DROVER_OPERATOR_ACT_REQUEST_H
#define DROVER_OPERATOR_ACT_REQUEST_H

#include "base/arena.h"
#include "base/err.h"
#include "engine/fact.h"

#define KEY_ACTS "skyhook.nvidia.com/acts"
#define ACT_REQUESTS_MAX 10000 /* a person resets many nodes one by one */

typedef struct act_list {
    fact_act *at;
    size_t len;
} act_list;

/* Reads the annotation's text; change is set in each. Texts are in a or are views of it and of the
 * name. Of the acts that are no business of Skyhooks nothing is taken. */
bool act_requests_read(arena *a, str text, str change, act_list *ret, err *error);
/* The annotation's text with one more: text may be empty. */
bool act_request_add(buf *out, str text, const fact_act *act, err *error);

#endif
