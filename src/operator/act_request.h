/* SPDX-License-Identifier: Apache-2.0 */
/* act_request.h - what a person asks of the operator, on the Skyhook or Bundle it is about.
 *
 * Pure. An annotation holds a list of JSON: commands append to it by compare-and-swap, the operator
 * takes all of it, and removes it once that is durable. Taking one twice is taking it once: they
 * all say how something shall be.
 *
 *     [{"act":"reset"},{"act":"reset","target":"node-1"},{"act":"resetBatches"}]
 *     [{"act":"approve","partition":"canary"},{"act":"resume"}] */
#ifndef DROVER_OPERATOR_ACT_REQUEST_H
#define DROVER_OPERATOR_ACT_REQUEST_H

#include "base/arena.h"
#include "base/err.h"
#include "engine/fact.h"

#define KEY_ACTS "skyhook.nvidia.com/acts"
#define KEY_BUNDLE_ACTS "drover.dev/acts"
#define ACT_REQUESTS_MAX 10000 /* a person resets many nodes one by one */

typedef struct act_list {
    fact_act *at;
    size_t len;
} act_list;

/* Whose annotation it is; each has acts of its own. */
#define ACT_OWNERS(X) X(SKYHOOK, KEY_ACTS) X(BUNDLE, KEY_BUNDLE_ACTS)
typedef enum act_owner {
#define X(owner, key) ACT_OF_##owner,
    ACT_OWNERS(X)
#undef X
} act_owner;
typedef struct act_subject {
    act_owner owner;
    str change; /* as the engine calls it */
} act_subject;

/* Reads the annotation's text; change is set in each. Texts are in a or are views of it and of the
 * name. Nothing is taken if one of the acts is no business of the owner's. */
bool act_requests_read(arena *a, str text, act_subject of, act_list *ret, err *error);
/* The annotation's text with more: text may be empty. Opened, any number put, closed. */
bool act_requests_open(buf *out, str text, act_owner owner, err *error);
void act_requests_put(buf *out, const fact_act *act);
bool act_requests_close(buf *out, err *error);
/* With one more. */
bool act_request_add(buf *out, str text, act_owner owner, const fact_act *act, err *error);

#endif
