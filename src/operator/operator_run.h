/* SPDX-License-Identifier: Apache-2.0 */
/* operator_run.h - `drover operator`: the shells, on a connection and an event loop.
 *
 * Decides nothing; carries objects and writes between the API server and the shells, and keeps the
 * time. */
#ifndef DROVER_OPERATOR_OPERATOR_RUN_H
#define DROVER_OPERATOR_OPERATOR_RUN_H

#include <uv.h>

#include "kube/kubeconfig.h"
#include "operator/hub_run.h"
#include "operator/node_shell.h"

/* The Lease of the operator that our users know: the two never work at the same time. */
#define OPERATOR_LEASE "3c22c1ae.nvidia.com"
/* How long writes that are under way are waited for when it is told to end. */
#define OPERATOR_ENDING_MS 5000

/* Who looks on, such as a dashboard: on the same loop, between two of its turns, so that nothing is
 * ever read while it changes. All of them are set. */
typedef struct operator_watcher {
    void *context;
    /* The loop is there. False: the operator does not begin. access lives until close. */
    bool (*open)(void *context, uv_loop_t *loop, const kube_access *access, err *error);
    /* Work began; both NULL: it ended, and what was seen is forgotten. One of them is NULL where
     * nodes, or clusters, are not served. */
    void (*shells)(void *context, const node_shell *nodes, const cluster_shell *clusters);
    /* What the watches tell, once the shell knows it. */
    void (*seen)(void *context, shell_kind kind, yyjson_val *object);
    void (*gone)(void *context, shell_kind kind, str name);
    void (*decided)(void *context, const decision *d);
    hub_watcher hub; /* the same of clusters */
    /* The loop runs once more. */
    void (*close)(void *context);
} operator_watcher;

typedef struct operator_settings {
    kube_where where;
    shell_settings shell;
    hub_settings hub;
    bool nodes, clusters;              /* which of them are served */
    str metrics_listen, health_listen; /* "[ADDRESS]:PORT"; empty: not at all */
    const operator_watcher *watcher;   /* NULL: nobody */
    bool elect; /* several may run: only one of them, which has the Lease, does anything */
} operator_settings;

/* Runs until SIGTERM or SIGINT. False with an error: it could not begin, or ran out of memory. */
bool operator_run(const operator_settings *settings, err *error);

#endif
