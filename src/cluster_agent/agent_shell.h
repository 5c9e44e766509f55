/* SPDX-License-Identifier: Apache-2.0 */
/* agent_shell.h - the agent of one cluster: what watches of two API servers tell comes in, requests
 * to both go out.
 *
 * Decides nothing: the way of each deployment is deployment_steps.h, this carries its steps out,
 * one at a time for each of them, and answers. It knows neither sockets nor clocks (agent_run.h
 * does), and keeps nothing that the two clusters do not hold.
 *
 *     hub:  BundleDeployments --seen, gone--> steps --send--> Contents, status; sign of life
 *     own:  inventories at the start, objects as long as there are any --> steps --send--> objects
 *
 * Nothing is done in the cluster before the hub is known as the one whose cluster it is: the
 * Cluster there takes the sign of life, keeps its deployments where they are watched, and is the
 * one that the record in the cluster (AGENT_RECORD) names. An agent that was given a wrong
 * namespace, another cluster's account, or a hub that was made anew would else find no deployments,
 * and remove all. So would one whose Cluster is deleted on the hub, and with it all deployments:
 * what a deployment put into the cluster goes when the Cluster was seen after the deployment had
 * gone.
 *
 * Kinds of objects are watched once something of them was deployed, by the label that all of it
 * carries; who changes is looked at again. A kind of which nothing is left is watched no more. */
#ifndef DROVER_CLUSTER_AGENT_AGENT_SHELL_H
#define DROVER_CLUSTER_AGENT_AGENT_SHELL_H

#include "cluster_agent/deployment_steps.h"
#include "kube/write_queue.h"

#define AGENT_SIDES(X) X(HUB, "the hub") X(OWN, "the cluster")
typedef enum agent_side {
#define X(side, text) AGENT_##side,
    AGENT_SIDES(X)
#undef X
} agent_side;
#define AGENT_SIDE_COUNT (AGENT_OWN + 1)

/* How long a kind of which nothing is left is watched in case that more of it comes. */
#define AGENT_KIND_IDLE_MS 60000
/* A sign of life that did not reach the hub is tried again after this time. */
#define AGENT_BEAT_RETRY_MS 15000
/* The same as long as the hub is not known, and nothing is done. */
#define AGENT_MEET_RETRY_MS 2000
/* The ConfigMap that names the hub's Cluster. Who deletes it lets the agent take the next one. No
 * deployment has an inventory of that name: see inventory_name. */
#define AGENT_RECORD "drover.hub"

/* A kind that is watched. */
typedef struct agent_kind agent_kind;

/* What helm answers, later. */
typedef struct chart_handler {
    void *context;
    void (*done)(void *context, const step_answer *answer);
} chart_handler;

typedef struct agent_api {
    void *context;
    /* See writer_send. */
    bool (*send)(void *context, agent_side side, const kube_write *w, write_handler handler,
                 err *error);
    /* Begins, and ends, to tell of all objects of a path in its own cluster: agent_shell_object_*.
     * What cannot be begun is not told, and then looked for from time to time. */
    void (*follow)(void *context, agent_kind *kind, str path);
    void (*unfollow)(void *context, agent_kind *kind);
    /* Installs or removes a chart. False: the handler is not called, error says why. */
    bool (*chart)(void *context, const step *s, chart_handler handler, err *error);
    int64_t (*now_ms)(void *context); /* of a clock that only goes forward, and that nobody sets */
    moment (*time)(void *context);    /* what is told as the time */
} agent_api;

typedef struct agent_shell_settings {
    str home;                       /* namespace of the deployments on the hub */
    str cluster_namespace, cluster; /* the Cluster there */
    str agent_namespace;            /* of what it remembers, in its own cluster */
    int64_t heartbeat_ms;
} agent_shell_settings;

typedef struct agent_shell agent_shell;

/* The settings' texts must live as long. NULL without memory. */
agent_shell *agent_shell_new(const agent_shell_settings *settings, agent_api api, err *error);
/* Nothing may be answered any more. */
agent_shell *agent_shell_free(agent_shell *s);

/* What is to be watched from the start: the hub's deployments and its own cluster's inventories.
 * Inventories are of no interest once they were told in whole. */
#define AGENT_WATCHES(X) X(DEPLOYMENTS) X(INVENTORIES)
typedef enum agent_watch {
#define X(name) AGENT_WATCH_##name,
    AGENT_WATCHES(X)
#undef X
} agent_watch;
#define AGENT_WATCH_COUNT (AGENT_WATCH_INVENTORIES + 1)
void agent_watch_path(const agent_shell *s, agent_watch watch, buf *out);

/* What watches tell; see watch_sink. False without memory, here and below: the shell must then be
 * thrown away and made anew. */
bool agent_shell_seen(agent_shell *s, agent_watch watch, yyjson_val *json);
void agent_shell_gone(agent_shell *s, agent_watch watch, str name);
void agent_shell_synced(agent_shell *s, agent_watch watch);
bool agent_shell_object_seen(agent_shell *s, agent_kind *kind, yyjson_val *json);
void agent_shell_object_gone(agent_shell *s, agent_kind *kind, str space, str name);
void agent_shell_object_synced(agent_shell *s, agent_kind *kind);

/* Sends what is to be sent. To be called after anything came in, answers included, and when
 * agent_shell_next_ms is due. */
bool agent_shell_turn(agent_shell *s);
bool agent_shell_is_due(const agent_shell *s);
int64_t agent_shell_next_ms(const agent_shell *s); /* INT64_MAX: only when something comes in */
/* Both clusters have told what they have, and the hub is the right one. */
bool agent_shell_ready(const agent_shell *s);
/* Unless it is ready: why not. */
const char *agent_shell_trouble(const agent_shell *s);

/* Steps that were carried out so far. */
uint64_t agent_shell_steps(const agent_shell *s);
/* Appends gauges in the text form of Prometheus. */
void agent_shell_metrics(const agent_shell *s, buf *out);

#endif
