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
    str error; /* why no pass could be made; empty: one was */
    condition_list before;
    moment now;
} bundle_status_facts;
void bundle_status_put(buf *out, const bundle_status_facts *f);

/* ---- Cluster ---- */

/* How many of the repositories (or Helm operations) of a cluster have every deployment ready. */
typedef struct status_sources {
    int64_t ready, desired;
} status_sources;

typedef struct cluster_status_facts {
    str namespace_;               /* of its deployments */
    const status_member *members; /* by Bundle name */
    size_t member_count;
    raw_json agent;           /* what the agent reported; NULL: it never did */
    raw_json resource_counts; /* NULL: sum them from the members */
    condition_list before;
    moment now;
} cluster_status_facts;
void cluster_status_put(buf *out, const cluster_status_facts *f);

/* ---- ClusterGroup ---- */

typedef struct status_cluster {
    str name;
    const bundle_summary *summary;
    raw_json resource_counts; /* of its status; may be NULL */
} status_cluster;

typedef struct cluster_group_status_facts {
    const status_cluster *clusters; /* by name */
    size_t cluster_count;
    condition_list before;
    moment now;
} cluster_group_status_facts;
void cluster_group_status_put(buf *out, const cluster_group_status_facts *f);

/* ---- GitRepo ---- */

typedef struct status_bundle {
    str name;
    str ready_message; /* of its condition Ready; empty: it is ready */
} status_bundle;

/* The part of a GitRepo's status that follows from its deployments; the rest is the git job's. */
typedef struct git_repo_status_facts {
    const status_member *members; /* every deployment of its Bundles */
    size_t member_count;
    const status_bundle *bundles; /* in the order in which they are asked */
    size_t bundle_count;
    str git_job_status; /* "Current" when its job is done */
    condition_list before;
    moment now;
} git_repo_status_facts;
void git_repo_status_put(buf *out, const git_repo_status_facts *f);

#endif
