/* SPDX-License-Identifier: Apache-2.0 */
/* work.h - runs one claimed job of a worker and reports how it ended.
 *
 * The command runs in a process group of its own, without a shell. Meanwhile its output is sent and
 * the claim is prolonged; when the claim is lost, or cannot be prolonged in time, the command is
 * stopped before the claim ends, so that nobody else's run overlaps with it. That is also so when
 * the worker itself is killed or hangs: a leash, a process of its own, sees to it. */
#ifndef DROVER_CLI_WORK_H
#define DROVER_CLI_WORK_H

#include "cli/client.h"

#define WORK_GRACE_MS 10000 /* from TERM to KILL */
#define WORK_MARGIN_MS 2000 /* stopped so long before the claim ends */
#define WORK_LEASH_MS 200   /* how often the leash looks at the clock */
#define WORK_LOG_PIECE_BYTES 32768
#define WORK_LOG_EVERY_MS 1000

typedef struct work {
    client *client;
    char **argv; /* ends with NULL */
    int64_t lease_seconds;
    const volatile int *stop; /* not 0: the worker was told to stop */
} work;

/* claim: the server's answer; asked_ms: when it was asked for, by the monotonic clock. */
void work_run(const work *w, yyjson_val *claim, int64_t asked_ms);
int64_t work_clock_ms(void);

#endif
