/* SPDX-License-Identifier: Apache-2.0 */
/* node_shell.h - the engine's shell for nodes in Kubernetes: objects in, writes out.
 *
 * Turns what watches tell into facts, asks the engine, and carries its decisions out by writes. It
 * decides nothing itself, knows neither sockets nor clocks, and keeps nothing that the cluster's
 * objects do not hold: after a restart it begins from them alone.
 *
 *     objects --seen, gone--> cache --facts--> engine --decisions--> writes --send--> API server
 *
 * The order of writes is the safety of it:
 *
 *     1 the end of a claim   a patch of the node, with the outcome
 *     2 a new claim          the Skyhook's status, by its resourceVersion, when all ends that were
 *                            counted for it are durable
 *     3 what a claim does    one patch of the node, with the attempt, the cordon and the taint
 *     4 the work             the Job of the attempt that stands on the node; evictions once the
 *                            cordon does
 *
 * Whatever comes later rests on what is durable, so a crash between any two of them is repaired by
 * doing the next one again. A conflict means that the object was changed by another: it is looked
 * at again, and written again. If what changed is a record of this shell's own, another operator
 * leads: see node_shell_stale. */
#ifndef DROVER_OPERATOR_NODE_SHELL_H
#define DROVER_OPERATOR_NODE_SHELL_H

#include "engine/engine.h"
#include "kube/events.h"
#include "kube/write_queue.h"
#include "operator/job_object.h"

/* How writes are sent; see writer_send. */
typedef struct api {
    void *context;
    bool (*send)(void *context, const kube_write *write, write_handler handler, err *error);
    /* Follow all pods of a node, or no longer: told by node_shell_pod_seen and so on. Never from
     * within those. */
    void (*follow_pods)(void *context, str node, bool wanted);
    /* An Event for people; NULL: nobody reads them. */
    void (*tell)(void *context, const kube_event *event);
    /* Every decision as it is carried out, for who looks on; NULL: nobody does. */
    void (*decided)(void *context, const decision *d);
} api;

/* The kinds that are watched, and the collections they are found in. The namespace takes the place
 * of the %s. Pods that have succeeded are of no interest. */
#define SHELL_KINDS(X)                                                                             \
    X(NODE, "/api/v1/nodes")                                                                       \
    X(POLICY, "/apis/skyhook.nvidia.com/v1alpha1/deploymentpolicies")                              \
    X(SKYHOOK, "/apis/skyhook.nvidia.com/v1alpha1/skyhooks")                                       \
    X(JOB, "/apis/batch/v1/namespaces/%s/jobs?labelSelector=skyhook.nvidia.com%2Fname")            \
    X(POD, "/api/v1/namespaces/%s/pods?labelSelector=skyhook.nvidia.com%2Fname"                    \
           "&fieldSelector=status.phase%21%3DSucceeded")
typedef enum shell_kind {
#define X(kind, path) SHELL_##kind,
    SHELL_KINDS(X)
#undef X
} shell_kind;
#define SHELL_KIND_COUNT (SHELL_POD + 1)

typedef struct shell_settings {
    job_settings job;
    engine_settings engine;
    str version;             /* the operator's, for annotations; must live as long */
    str identity;            /* of this process: no other one has the same; must live as long */
    int64_t status_every_ms; /* between two writes of a status that nothing waits for; 0: 1 s */
    int64_t unpullable_ms;   /* how long an image may not be had; 0: 60 s */
} shell_settings;

typedef struct node_shell node_shell;

/* Settings' texts must live as long. NULL without memory. */
node_shell *node_shell_new(const shell_settings *settings, api api, err *error);
node_shell *node_shell_free(node_shell *s);

/* What watches tell; see watch_sink. Of a Job a row of a table will do, see list_watch_rows. False
 * without memory, here and below: the shell must then be thrown away and made anew. */
bool node_shell_seen(node_shell *s, shell_kind kind, yyjson_val *object, int64_t now_ms);
void node_shell_gone(node_shell *s, shell_kind kind, str space, str name, int64_t now_ms);
/* Nothing is decided before all kinds are synced, and before it is read what an older operator's
 * ConfigMaps hold, if one has worked there. */
void node_shell_synced(node_shell *s, shell_kind kind);

/* The same for pods of a node that was asked for. */
bool node_shell_pod_seen(node_shell *s, str node_name, yyjson_val *object, int64_t now_ms);
void node_shell_pod_gone(node_shell *s, str node_name, str space, str name, int64_t now_ms);
void node_shell_pods_synced(node_shell *s, str node_name);

/* Asks the engine and sends what is to be sent. To be called after anything came in, answers of
 * writes included, and when node_shell_next_ms is due. Milliseconds are of the wall's clock. */
bool node_shell_turn(node_shell *s, int64_t now_ms);
/* REASON_NEVER: only when something comes in. */
int64_t node_shell_next_ms(const node_shell *s);
/* Whether a turn is due because something came in. */
bool node_shell_is_due(const node_shell *s);

/* Whether something waits for news of a kind: it need not be told at once otherwise. */
bool node_shell_waits_for(const node_shell *s, shell_kind kind);

/* Whether the next turn begins what a person asks for anew: whatever they did before to a node
 * counts, so news that rests is to be told first. In mid-rollout a changed node is found by
 * the version that the first write of its claim names. */
bool node_shell_wants_news(const node_shell *s);

/* For how long what comes in may be let gather, to be looked at together: a process that is woken
 * up pays more for that than for what it then reads. When several nodes are worked on at once
 * there is more to gather; the next step of a few is not held up. */
int node_shell_rest_ms(const node_shell *s);

/* Somebody else has written what only this shell should write, such as another operator: it does
 * nothing more, and is to be thrown away and made anew from the objects. */
bool node_shell_stale(const node_shell *s);
/* The server was set back, as to a backup: what is known here is newer than what there is, so it is
 * stale, too. */
void node_shell_set_back(node_shell *s);

/* Nodes, Skyhooks and policies are known and what they remember is restored. Jobs and pods are to
 * be told afterwards: before that nobody knows whose attempt they are, so one that has ended would
 * be forgotten, and later taken for another's that has the name of the next one. */
bool node_shell_restored(const node_shell *s);
/* Everything is synced and restored: it decides. */
bool node_shell_ready(const node_shell *s);
const engine *node_shell_engine(const node_shell *s);

/* What was sent so far, for metrics and tests. */
typedef struct shell_counts {
    uint64_t statuses, nodes, jobs, maps, evictions, others;
} shell_counts;
shell_counts node_shell_count(const node_shell *s);

/* Appends gauges in the text form of Prometheus. */
void node_shell_metrics(const node_shell *s, buf *out);

#endif
