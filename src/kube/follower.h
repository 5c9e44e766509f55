/* SPDX-License-Identifier: Apache-2.0 */
/* follower.h - a list_watch that runs: over a connection, on its loop.
 *
 * Decides nothing; it carries requests and answers between the two and keeps the time. */
#ifndef DROVER_KUBE_FOLLOWER_H
#define DROVER_KUBE_FOLLOWER_H

#include "kube/connection.h"
#include "kube/list_watch.h"

typedef struct follower follower;

/* Starts at once. NULL without memory. Must end before its connection. */
follower *follower_start(uv_loop_t *loop, connection *c, str path, watch_sink sink);
/* See list_watch_doubt. */
void follower_doubt(follower *f);
/* See list_watch_rows; to be said at once. */
void follower_rows(follower *f);
/* Ends without a word; the loop must run once more. */
follower *follower_stop(follower *f);
const list_watch *follower_state(const follower *f);

#endif
