/* SPDX-License-Identifier: Apache-2.0 */
/* leader.h - a lease that runs: over a connection, on its loop.
 *
 * Decides nothing; it carries requests and answers between the two, keeps the time, and tells when
 * this process begins and ceases to lead. Writers of the process take leader_permit: it is asked at
 * the moment each write is sent, by a clock that also runs while the process is frozen. */
#ifndef DROVER_KUBE_LEADER_H
#define DROVER_KUBE_LEADER_H

#include "kube/lease.h"

/* Called on the loop. Who ceased to lead may begin again; it then knows nothing of what happened in
 * between but what its watches tell. */
typedef struct leader_handler {
    void *context;
    void (*began)(void *context);
    void (*ended)(void *context);
    void (*released)(void *context); /* the last word after leader_release */
    /* The server was set back to a backup: versions that are known mean nothing any more, and
     * watches may go on as if nothing had happened. Also told to who does not lead. NULL: that does
     * not matter. */
    void (*set_back)(void *context);
} leader_handler;

typedef struct leader leader;

/* Starts at once. The texts of the options must live as long. NULL without memory. Must end before
 * its connection. */
leader *leader_start(uv_loop_t *loop, connection *c, const lease_options *options,
                     leader_handler handler);
/* Ends without a word; the loop must run once more. Whoever leads is not succeeded before its lease
 * runs out. */
leader *leader_stop(leader *l);

/* Whether it leads at this very moment. */
bool leader_leads(const leader *l);
exchange_permit leader_permit(leader *l);
/* Ceases to lead at once and gives the lease back; for when all writes have ended. */
void leader_release(leader *l);
const lease *leader_state(const leader *l);

#endif
