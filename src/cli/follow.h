/* SPDX-License-Identifier: Apache-2.0 */
/* follow.h - waits for the end of a rollout, with a progress line (--wait).
 *
 * Decides nothing: the server says how far each rollout is and when it is over, which is when its
 * release targets, and the hooks and rollbacks of their version groups, have come to an end; or
 * when something has failed and what is left can only wait for it. */
#ifndef DROVER_CLI_FOLLOW_H
#define DROVER_CLI_FOLLOW_H

#include "cli/client.h"

typedef struct follow_wish {
    const str *deployments; /* each named once; they must be there */
    size_t count;
    bool all; /* the others, too */
    str past; /* of follow_past: those of the others that had failed before */
    str tag;  /* only targets that want it, run it or went back from it; empty: all */
} follow_wish;

/* Adds which rollouts have failed by now, so that an old failure is not taken for one of what
 * comes. */
exit_status follow_past(client *c, buf *ret);

/* STATUS_NO if something failed or went back, or did not come to whom it was meant for. */
exit_status follow(client *c, const follow_wish *wish);

#endif
