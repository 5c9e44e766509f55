/* SPDX-License-Identifier: Apache-2.0 */
/* cluster_shell.h - the engine's shell for Fleet's kinds on a hub: objects in, writes out.
 *
 * Turns what watches tell of Bundles, Clusters and their deployments into facts, asks the engine,
 * and carries its decisions out by writes. It decides nothing itself, knows neither sockets nor
 * clocks, and keeps nothing that the hub's objects do not hold: after a restart it begins from them
 * alone. Names and formats are Fleet's, so that Fleet's own agents work against it unchanged.
 *
 *     objects --seen, gone--> cache --facts--> engine --decisions--> writes --send--> API server
 *
 * What comes in is taken in at once and decided in the next turn, so that many changes make one
 * pass. The order of writes is the safety of it:
 *
 *     1 the Content and, on the Bundle, the annotation drover.dev/rollout: the partitions and what
 *       else no other object tells
 *     2 the Secret that opens a registry, if there is one
 *     3 the BundleDeployment, staged and live in one write: from then on the agent acts, and the
 *       release is durable
 *     4 the Secret with Helm values, if there are any, owned by the BundleDeployment, which names
 *       its hash: agents wait for it
 *     5 statuses, of which nothing depends, not more often than is of use to a reader
 *
 * A crash between any two of them is repaired by doing the next one again. A conflict means that
 * the object was changed by another: it is looked at again, and the engine is asked again. A write
 * that would change nothing is not sent. */
#ifndef DROVER_OPERATOR_CLUSTER_SHELL_H
#define DROVER_OPERATOR_CLUSTER_SHELL_H

#include "engine/engine.h"
#include "kube/write_queue.h"

/* How writes are sent; see writer_send. */
typedef struct hub_api {
    void *context;
    bool (*send)(void *context, const kube_write *write, write_handler handler, err *error);
    /* Every decision as it is carried out, for who looks on; NULL: nobody does. */
    void (*decided)(void *context, const decision *d);
} hub_api;

/* The kinds that are watched, and their collections. GitRepos may be missing: then they have no
 * status. Deployments are best told after all others (cluster_shell_wants_deployments), Namespaces
 * only while they are wanted (cluster_shell_wants_namespaces). */
#define HUB_API "/apis/fleet.cattle.io/v1alpha1"
#define HUB_KINDS(X)                                                                               \
    X(GROUP, "clustergroups")                                                                      \
    X(MAPPING, "bundlenamespacemappings")                                                          \
    X(CLUSTER, "clusters")                                                                         \
    X(BUNDLE, "bundles")                                                                           \
    X(CONTENT, "contents")                                                                         \
    X(DEPLOYMENT, "bundledeployments")                                                             \
    X(REPO, "gitrepos")                                                                            \
    X(NAMESPACE, "namespaces")
typedef enum hub_kind {
#define X(kind, plural) HUB_##kind,
    HUB_KINDS(X)
#undef X
} hub_kind;
#define HUB_KIND_COUNT (HUB_NAMESPACE + 1)
/* The path of a kind's collection over all namespaces. */
const char *hub_kind_path(hub_kind kind);

typedef struct hub_settings {
    engine_settings engine;
    int64_t status_every_ms;         /* of a Bundle, ClusterGroup or GitRepo; 0: 1 s */
    int64_t cluster_status_every_ms; /* of a Cluster, of which there are many; 0: 5 s */
    size_t record_bytes_max;         /* of the annotation of a Bundle; 0: 240 KiB */
    size_t entry_bytes_max;          /* of what agents say of all deployments; 0: 32 MiB */
} hub_settings;

typedef struct cluster_shell cluster_shell;

/* NULL without memory. */
cluster_shell *cluster_shell_new(const hub_settings *settings, hub_api api, err *error);
cluster_shell *cluster_shell_free(cluster_shell *s);

/* What watches tell; see watch_sink. False without memory, here and below: the shell must then be
 * thrown away and made anew. */
bool cluster_shell_seen(cluster_shell *s, hub_kind kind, yyjson_val *object, int64_t now_ms);
void cluster_shell_gone(cluster_shell *s, hub_kind kind, str space, str name, int64_t now_ms);
/* What the API server says of Fleet's kinds (fleet_schema.h); best told first. */
void cluster_shell_schema(cluster_shell *s, yyjson_val *openapi);
/* Nothing is decided before all kinds but GitRepos, and Namespaces that are not wanted, are synced.
 */
void cluster_shell_synced(cluster_shell *s, hub_kind kind);
/* All others are known: now is the best time to be told of deployments. */
bool cluster_shell_wants_deployments(const cluster_shell *s);
/* There are BundleNamespaceMappings, which select namespaces by their labels. */
bool cluster_shell_wants_namespaces(const cluster_shell *s);
/* Nothing more is told of a kind: what is known of it is forgotten. */
void cluster_shell_unfollowed(cluster_shell *s, hub_kind kind);

/* Asks the engine and sends what is to be sent. To be called after anything came in, answers of
 * writes included, and when cluster_shell_next_ms is due. Milliseconds are of the wall's clock. */
bool cluster_shell_turn(cluster_shell *s, int64_t now_ms);
/* REASON_NEVER: only when something comes in. */
int64_t cluster_shell_next_ms(const cluster_shell *s);
/* Whether a turn is due because something came in. */
bool cluster_shell_is_due(const cluster_shell *s);
/* Everything is synced and restored: it decides. */
bool cluster_shell_ready(const cluster_shell *s);
/* All deployments are as they should be, and nothing is under way: whatever agents say can wait for
 * a moment. */
bool cluster_shell_calm(const cluster_shell *s);
const engine *cluster_shell_engine(const cluster_shell *s);
/* What a plan of the hub needs beside the engine and what is small: every Bundle that the engine
 * knows, namespaces, and every deployment as far as it says what runs where. They hold until the
 * shell is told of anything, deployments as long as the arena. False: a visit said so, or memory
 * ran out. */
typedef bool hub_object_visitor(void *context, const object *o);
bool cluster_shell_objects(const cluster_shell *s, arena *a, hub_object_visitor *visit,
                           void *context);

/* What was sent so far, for metrics and tests. */
typedef struct hub_counts {
    uint64_t deployments; /* BundleDeployments created, changed and deleted */
    uint64_t secrets, contents, namespaces;
    uint64_t records; /* annotations and finalizers of Bundles and Clusters */
    uint64_t bundle_statuses, cluster_statuses, group_statuses, repo_statuses;
} hub_counts;
hub_counts cluster_shell_count(const cluster_shell *s);

/* Appends gauges in the text form of Prometheus. */
void cluster_shell_metrics(const cluster_shell *s, buf *out);

#endif
