/* SPDX-License-Identifier: Apache-2.0 */
/* follow.h - waits for the end of a rollout, with a progress line (--wait).
 *
 * It is over when every release target that is looked at is done, failed for good or excluded; or
 * when something has failed and what is left can only wait for it. Decides nothing: the server says
 * what each target waits for. */
#ifndef DROVER_CLI_FOLLOW_H
#define DROVER_CLI_FOLLOW_H

#include "cli/client.h"

typedef struct follow_wish {
    const str *deployments; /* none: all */
    size_t count;
    str tag; /* only targets that want it or run it; empty: all */
} follow_wish;

/* STATUS_NO if something failed. */
exit_status follow(client *c, const follow_wish *wish);

#endif
