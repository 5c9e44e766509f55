/* SPDX-License-Identifier: Apache-2.0 */
/* fleet.h - the kinds of fleet.cattle.io/v1alpha1 that take part in a rollout, and fleet.yaml.
 *
 * Deployment options are carried, not understood: they matter only through their hash. Fields
 * marked "ours" are Drover's additions and optional. */
#ifndef DROVER_MODEL_FLEET_H
#define DROVER_MODEL_FLEET_H

#include "model/values.h"

/* ---- names ---- */

/* Whether Helm takes it for the name of a release: parts of lower case letters, digits and "-",
 * joined by ".", at most LIMIT_RELEASE_NAME_BYTES in all. */
#define RELEASE_NAME_ALLOWED                                                                       \
    "parts of lower case letters, digits and \"-\", joined by \".\", at most 53 bytes in all"
bool is_release_name(str text);

/* ---- who is meant ---- */

/* Members that are given must all hold; none given matches nothing. */
typedef struct cluster_match {
    str cluster_name;
    label_query cluster_selector;
    str cluster_group;
    label_query cluster_group_selector;
} cluster_match;

/* In the order in which Fleet hashes them; diff and correctDrift are not hashed. */
#define BUNDLE_OPTIONS(X)                                                                          \
    X(yaml, "yaml")                                                                                \
    X(kustomize, "kustomize")                                                                      \
    X(default_namespace, "defaultNamespace")                                                       \
    X(namespace_, "namespace")                                                                     \
    X(helm, "helm")                                                                                \
    X(service_account, "serviceAccount")                                                           \
    X(create_namespace, "createNamespace")                                                         \
    X(force_sync_generation, "forceSyncGeneration")                                                \
    X(keep_resources, "keepResources")                                                             \
    X(delete_namespace, "deleteNamespace")                                                         \
    X(ignore, "ignore")                                                                            \
    X(namespace_labels, "namespaceLabels")                                                         \
    X(namespace_annotations, "namespaceAnnotations")                                               \
    X(delete_crd_resources, "deleteCRDResources")                                                  \
    X(downstream_resources, "downstreamResources")                                                 \
    X(overwrites, "overwrites")                                                                    \
    X(allowed_target_namespace_selector, "allowedTargetNamespaceSelector")                         \
    X(diff, "diff")                                                                                \
    X(correct_drift, "correctDrift")

typedef struct bundle_options {
#define X(member, json) raw_json member;
    BUNDLE_OPTIONS(X)
#undef X
} bundle_options;

typedef struct bundle_target {
    str name; /* "target000" and so on when the document gives none */
    cluster_match match;
    bool do_not_deploy;
    bundle_options options;
    kept_fields kept;
} bundle_target;

typedef struct bundle_target_list {
    bundle_target *at;
    size_t len;
} bundle_target_list;

typedef struct bundle_restriction {
    str name;
    cluster_match match;
    kept_fields kept;
} bundle_restriction;

typedef struct bundle_restriction_list {
    bundle_restriction *at;
    size_t len;
} bundle_restriction_list;

/* ---- rolloutStrategy ---- */

typedef struct partition {
    str name;
    int_or_percent max_unavailable; /* NONE: the bundle's */
    cluster_match match;
    bool approval; /* ours: a person opens it */
    kept_fields kept;
} partition;

typedef struct rollout_strategy {
    int_or_percent max_unavailable;            /* "100%" */
    int_or_percent max_unavailable_partitions; /* 0 */
    int_or_percent auto_partition_size;        /* "25%" */
    int64_t auto_partition_threshold;          /* 200; <= 0: no automatic partitions */
    int64_t max_new;                           /* 50 */
    LIST(partition) partitions;
    opt_int soak_seconds;          /* ours */
    opt_int failure_threshold;     /* ours */
    opt_int offline_after_seconds; /* ours */
    kept_fields kept;
} rollout_strategy;

/* Reads the same object from the annotation of a Bundle, which goes before its spec: a hub whose
 * definitions are Fleet's drops what Drover adds to it. A Bundle whose annotation cannot be read is
 * refused as it is read, as one with a bad spec. All of it is in a. */
#define ANNOTATION_ROLLOUT_STRATEGY "drover.dev/rollout-strategy"
bool rollout_strategy_parse(arena *a, str text, rollout_strategy *ret, err *error);

/* ---- Bundle ---- */

#define BUNDLE_STATES(X)                                                                           \
    X(NONE, "")                                                                                    \
    X(READY, "Ready")                                                                              \
    X(NOT_READY, "NotReady")                                                                       \
    X(PENDING, "Pending")                                                                          \
    X(OUT_OF_SYNC, "OutOfSync")                                                                    \
    X(MODIFIED, "Modified")                                                                        \
    X(WAIT_APPLIED, "WaitApplied")                                                                 \
    X(ERR_APPLIED, "ErrApplied")

/* In the order of their ranks, low to high. */
typedef enum bundle_state {
#define X(state, text) BUNDLE_##state,
    BUNDLE_STATES(X)
#undef X
} bundle_state;

typedef struct non_ready_resource {
    str name;
    bundle_state bundle_state;
    str message;
    raw_json modified_status;
    raw_json non_ready_status;
} non_ready_resource;

typedef struct bundle_summary {
    int64_t not_ready;
    int64_t wait_applied;
    int64_t err_applied;
    int64_t out_of_sync;
    int64_t modified;
    int64_t ready;
    int64_t pending;
    int64_t desired_ready;
    LIST(non_ready_resource) non_ready_resources;
} bundle_summary;

typedef struct partition_status {
    str name;
    int64_t count;
    int64_t max_unavailable;
    int64_t unavailable;
    bundle_summary summary;
} partition_status;

typedef struct bundle_status {
    condition_list conditions;
    bundle_summary summary;
    int64_t newly_created;
    int64_t unavailable;
    int64_t unavailable_partitions;
    int64_t max_unavailable;
    int64_t max_unavailable_partitions;
    LIST(partition_status) partitions;
    struct bundle_display {
        str ready_clusters;
        str state;
    } display;
    int64_t observed_generation;
    str resources_sha256_sum;
    str oci_reference;
    kept_fields kept;
} bundle_status;

#define CUSTOMIZATION_MODES(X) X(FIRST_MATCH, "FirstMatch") X(ALL_MATCHES, "AllMatches")

typedef enum customization_mode {
#define X(mode, text) CUSTOMIZATION_##mode,
    CUSTOMIZATION_MODES(X)
#undef X
} customization_mode;

typedef struct bundle_spec {
    bool paused;
    bundle_options options;
    bundle_target_list targets;
    bundle_restriction_list target_restrictions;
    customization_mode target_customization_mode;
    rollout_strategy rollout_strategy; /* all defaults when the document has none */
    raw_json depends_on;
    raw_json resources;
    str contents_id;
    raw_json helm_op_options;
    str values_hash;
    kept_fields kept;
} bundle_spec;

typedef struct bundle {
    metadata metadata;
    bundle_spec spec;
    bundle_status status;
    kept_fields kept;
} bundle;

/* ---- fleet.yaml ---- */

typedef struct fleet_yaml {
    str name;
    label_set labels;
    bool paused;
    bundle_options options;
    bundle_target_list targets;
    bundle_target_list target_customizations;
    bundle_target_list override_targets; /* at is NULL when absent; an empty list means something */
    bundle_restriction_list target_restrictions;
    customization_mode target_customization_mode;
    rollout_strategy rollout_strategy;
    raw_json depends_on;
    raw_json image_scans;
    kept_fields kept;
} fleet_yaml;

/* The Bundle that fleet.yaml stands for when no GitRepo adds to it. name is used
 * when the file has none. NULL without memory. */
bundle *fleet_yaml_bundle(arena *a, const fleet_yaml *f, str name);
/* What a bundle is called that is made of a folder: the last part of its path as a name. Empty if
 * nothing of it fits; pointer NULL without memory. */
str fleet_folder_name(arena *a, str path);
/* The same of the folder a fleet.yaml lies in; "fleet" if its path has none. */
str fleet_yaml_name(arena *a, str file);
/* The same with the targets of a GitRepo (NULL: there is none), which overrideTargets replace. One
 * without targets means the cluster group "default". */
bundle *fleet_yaml_bundle_for(arena *a, const fleet_yaml *f, str name,
                              const bundle_target_list *repo);

/* ---- BundleDeployment ---- */

typedef struct bundle_deployment {
    metadata metadata;
    struct bundle_deployment_spec {
        bool paused;
        raw_json staged_options;
        str staged_deployment_id;
        raw_json options;
        str deployment_id;
        raw_json depends_on;
        raw_json correct_drift;
        bool oci_contents;
        raw_json helm_chart_options;
        str values_hash;
        raw_json downstream_resources_generation;
        bool off_schedule;
        raw_json waiting_for_values;
        kept_fields kept;
    } spec;
    struct bundle_deployment_status {
        condition_list conditions;
        str applied_deployment_id;
        str release;
        bool ready;
        bool non_modified;
        raw_json non_ready_status;
        raw_json modified_status;
        bool incomplete_state;
        struct bundle_deployment_display {
            str deployed;
            str monitored;
            str state;
        } display;
        raw_json sync_generation;
        raw_json resources;
        raw_json resource_counts;
        raw_json downstream_resources_generation;
        kept_fields kept;
    } status;
    kept_fields kept;
} bundle_deployment;

/* ---- Cluster, ClusterGroup, BundleNamespaceMapping ---- */

typedef struct cluster {
    metadata metadata;
    struct cluster_spec {
        bool paused;
        raw_json template_values;
        str client_id;
        str kube_config_secret;
        kept_fields kept;
    } spec;
    struct cluster_status {
        str namespace_; /* empty: the cluster has none yet */
        condition_list conditions;
        struct cluster_agent {
            opt_moment last_seen;
            str namespace_;
        } agent;
        bundle_summary summary;
    } status;
    kept_fields kept;
} cluster;

typedef struct cluster_group {
    metadata metadata;
    struct cluster_group_spec {
        label_query selector; /* not given: matches nothing */
        kept_fields kept;
    } spec;
    raw_json status;
    kept_fields kept;
} cluster_group;

typedef struct bundle_namespace_mapping {
    metadata metadata;
    label_query bundle_selector;    /* not given: matches nothing */
    label_query namespace_selector; /* not given: matches nothing */
    kept_fields kept;
} bundle_namespace_mapping;

#endif
