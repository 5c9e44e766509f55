/* SPDX-License-Identifier: Apache-2.0 */
/* hub_run.h - a cluster_shell that runs: over a connection and a writer, on their loop.
 *
 * Decides nothing; it carries objects and writes between the API server and the shell. */
#ifndef DROVER_OPERATOR_HUB_RUN_H
#define DROVER_OPERATOR_HUB_RUN_H

#include "kube/follower.h"
#include "kube/writer.h"
#include "operator/cluster_shell.h"

typedef struct hub_run hub_run;

/* Who looks on: told on the loop, once the shell knows it. All of them are set. */
typedef struct hub_watcher {
    void *context;
    void (*seen)(void *context, hub_kind kind, yyjson_val *object);
    void (*gone)(void *context, hub_kind kind, str space, str name);
    void (*decided)(void *context, const decision *d);
} hub_watcher;

typedef struct hub_place_to_run {
    uv_loop_t *loop;
    connection *connection;
    writer *writer;
    int64_t (*clock_ms)(void);  /* of the wall */
    const hub_watcher *watcher; /* NULL: nobody; must live as long */
} hub_place_to_run;

/* Starts at once. NULL with an error. */
hub_run *hub_run_start(hub_place_to_run where, const hub_settings *settings, err *error);
/* Its writer must have ended, its connection not. The loop must run once more. */
hub_run *hub_run_stop(hub_run *h);

/* To be called before the loop waits: does what is due. *ret_next_ms: when it is to be called at
 * the latest; REASON_NEVER. False: it must be thrown away and made anew. */
bool hub_run_turn(hub_run *h, int64_t *ret_next_ms);
const cluster_shell *hub_run_shell(const hub_run *h);
/* How long it may be left alone from now on, whatever comes in. */
int hub_run_rest_ms(const hub_run *h);
/* The server was set back, as to a backup: it must be thrown away and made anew. */
bool hub_run_stale(const hub_run *h);

#endif
