/* SPDX-License-Identifier: Apache-2.0 */
/* agent_run.h - `drover cluster-agent`: the agent's shell on connections to two API servers, its
 * hub and its own cluster, and an event loop.
 *
 * Decides nothing; carries objects and requests between the servers and the shell, and keeps the
 * time. */
#ifndef DROVER_CLUSTER_AGENT_AGENT_RUN_H
#define DROVER_CLUSTER_AGENT_AGENT_RUN_H

#include "base/err.h"
#include "kube/kubeconfig.h"

/* Where the agent remembers what it deployed, unless it runs in a pod: then in the pod's own. */
#define AGENT_NAMESPACE "drover-system"

typedef struct agent_settings {
    kube_where hub, own;
    str cluster_namespace, cluster; /* the Cluster on the hub */
    str home;                       /* the namespace of its deployments there */
    str agent_namespace;            /* empty: see above */
    int64_t heartbeat_ms;
    str metrics_listen, health_listen; /* "[ADDRESS]:PORT"; empty: not at all */
} agent_settings;

/* Runs until SIGTERM or SIGINT. False with an error: it could not begin, or ran out of memory. */
bool agent_run(const agent_settings *settings, err *error);

#endif
