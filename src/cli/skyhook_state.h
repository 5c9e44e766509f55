/* SPDX-License-Identifier: Apache-2.0 */
/* skyhook_state.h - what the annotations of nodes say of Skyhooks, summed up for people. */
#ifndef DROVER_CLI_SKYHOOK_STATE_H
#define DROVER_CLI_SKYHOOK_STATE_H

#include "cli/skyhook.h"
#include "model/skyhook.h"

/* One Skyhook on one node. */
typedef struct sk_state {
    str node, skyhook;
    node_state packages;
    size_t complete;
    int64_t restarts;
    const char *status; /* erroring, complete, in_progress, unknown */
    bool malformed;
} sk_state;

/* The state that annotation text says. */
sk_state sk_state_of(sk *s, const sk_node *n, str of, str text);
/* Calls each for every Skyhook that has state on the node; empty skyhook: all of them. */
typedef void sk_each_state(void *context, const sk_state *state);
void sk_states(sk *s, const sk_node *n, str of, sk_each_state *each, void *context);

const char *sk_stage_text(package_stage stage);
const char *sk_package_state_text(package_state state);
/* As tables show it: what needs looking at in capitals. */
const char *sk_loud(const char *status);

#endif
