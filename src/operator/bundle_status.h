/* SPDX-License-Identifier: Apache-2.0 */
/* bundle_status.h - the status of Bundle, Cluster, ClusterGroup and GitRepo, as JSON.
 *
 * Pure: what the engine wants and what agents report comes in, the object under "status" comes out,
 * whole and in Fleet's form. The caller writes what differs (bundle_patch.h). States and summaries
 * are the engine's (deployment_state.h). */
#ifndef DROVER_OPERATOR_BUNDLE_STATUS_H
#define DROVER_OPERATOR_BUNDLE_STATUS_H

#include "base/arena.h"
#include "engine/deployment_state.h"

/* ---- conditions ---- */

/* A condition as it is now. An error has a reason, "Error". */
typedef struct status_condition {
    str type;
    bool yes;
    str reason;
    str message;
} status_condition;

typedef struct status_conditions {
    condition_list before; /* those of the object; foreign types stay */
    const status_condition *at;
    size_t len;
    moment now; /* lastUpdateTime of those whose status or message changes */
} status_conditions;

/* Appends "conditions":[...] as a member. */
void conditions_put(buf *out, const status_conditions *c);

/* ---- one deployment ---- */

/* A Bundle on a cluster. */
typedef struct status_member {
    str name;                            /* as the summary lists it */
    str wanted;                          /* the version it should run */
    const bundle_deployment *deployment; /* NULL: there is none */
} status_member;

/* Its entry of a summary; views. */
non_ready_resource status_member_entry(const status_member *m);
/* "display" of a BundleDeployment's status. */
void deployment_display_put(buf *out, const status_member *m);

/* ---- Bundle ---- */

typedef struct status_partition {
    str name;
    int64_t count, max_unavailable, unavailable;
    const bundle_summary *summary;
} status_partition;

typedef struct bundle_status_facts {
    const bundle_summary *summary; /* members are clusters, "namespace/name", in target order */
    const status_partition *partitions;
    size_t partition_count;
    int64_t newly_created, unavailable, unavailable_partitions;
    int64_t max_unavailable, max_unavailable_partitions;
    int64_t generation;
    str resources_sha256_sum, oci_reference;
    str error;     /* why no pass could be made; empty: one was */
    str pruned;    /* fields of a rolloutStrategy that the hub drops; empty: none */
    str shortened; /* what a restart would not know, for want of room; empty: nothing */
    condition_list before;
    moment now;
} bundle_status_facts;
void bundle_status_put(buf *out, const bundle_status_facts *f);

/* ---- sums of many deployments ---- */

/* How many resources are in which state. */
#define RESOURCE_COUNTS(X)                                                                         \
    X(READY, "ready")                                                                              \
    X(DESIRED_READY, "desiredReady")                                                               \
    X(WAIT_APPLIED, "waitApplied")                                                                 \
    X(MODIFIED, "modified")                                                                        \
    X(ORPHANED, "orphaned") X(MISSING, "missing") X(UNKNOWN, "unknown") X(NOT_READY, "notReady")
typedef enum resource_count {
#define X(count, text) RESOURCES_##count,
    RESOURCE_COUNTS(X)
#undef X
} resource_count;
#define RESOURCE_COUNT_KINDS (RESOURCES_NOT_READY + 1)
const char *resource_count_text(resource_count count);

/* How many of some things (clusters, repositories, charts) have every deployment ready. */
typedef struct status_sources {
    int64_t ready, desired;
} status_sources;

/* ---- Cluster ---- */

/* What is the controller's of it; the agent's own part is left alone. */
typedef struct cluster_status_facts {
    str namespace_;                /* of its deployments */
    const bundle_summary *summary; /* members are Bundles, by name */
    status_sources repos, charts;
    const int64_t *resources; /* RESOURCE_COUNT_KINDS numbers; NULL: none */
    bool checked_in;          /* its agent was seen */
    str error;                /* why nothing can be deployed there; empty: it can */
    condition_list before;
    moment now;
} cluster_status_facts;
void cluster_status_put(buf *out, const cluster_status_facts *f);

/* ---- ClusterGroup ---- */

#define NON_READY_CLUSTERS_MAX 10
typedef struct cluster_group_status_facts {
    const bundle_summary *summary; /* of all its clusters together */
    size_t cluster_count, non_ready_count;
    const str *non_ready; /* the first of them, by name: at most NON_READY_CLUSTERS_MAX */
    const int64_t *resources;
    condition_list before;
    moment now;
} cluster_group_status_facts;
void cluster_group_status_put(buf *out, const cluster_group_status_facts *f);

/* ---- GitRepo ---- */

/* The part of a GitRepo's status that follows from its deployments; the rest is the git job's. */
typedef struct git_repo_status_facts {
    const bundle_summary *summary;
    status_sources clusters;
    bundle_state state; /* the highest of all, not only of those listed */
    const int64_t *resources;
    str ready_message;  /* of the first of its Bundles that is not ready; empty: all are */
    str git_job_status; /* "Current" when its job is done */
    condition_list before;
    moment now;
} git_repo_status_facts;
void git_repo_status_put(buf *out, const git_repo_status_facts *f);

#endif
