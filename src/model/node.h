/* SPDX-License-Identifier: Apache-2.0 */
/* node.h - Kubernetes' Node, Pod and Namespace, as far as Drover needs them.
 *
 * Views: what is not named here is not looked at and not warned of. */
#ifndef DROVER_MODEL_NODE_H
#define DROVER_MODEL_NODE_H

#include "model/values.h"

#define TAINT_EFFECTS(X)                                                                           \
    X(NONE, "")                                                                                    \
    X(NO_SCHEDULE, "NoSchedule")                                                                   \
    X(PREFER_NO_SCHEDULE, "PreferNoSchedule")                                                      \
    X(NO_EXECUTE, "NoExecute")

typedef enum taint_effect {
#define X(effect, text) TAINT_##effect,
    TAINT_EFFECTS(X)
#undef X
} taint_effect;

typedef struct taint {
    str key;
    str value;
    taint_effect effect;
    opt_moment time_added;
} taint;

#define TOLERATION_OPERATORS(X) X(EQUAL, "Equal") X(EXISTS, "Exists") X(LT, "Lt") X(GT, "Gt")

typedef enum toleration_operator {
#define X(op, text) TOLERATION_##op,
    TOLERATION_OPERATORS(X)
#undef X
} toleration_operator;

typedef struct toleration {
    str key; /* empty with EXISTS: every taint */
    toleration_operator op;
    str value;
    taint_effect effect; /* NONE: every effect */
    opt_int toleration_seconds;
} toleration;

typedef struct toleration_list {
    toleration *at;
    size_t len;
} toleration_list;

bool toleration_covers(const toleration *t, const taint *of);

typedef struct node {
    metadata metadata;
    struct node_spec {
        bool unschedulable;
        LIST(taint) taints;
    } spec;
    struct node_status {
        condition_list conditions;
        struct node_info {
            str boot_id;
        } node_info;
    } status;
} node;

/* The Ready condition is True. A node without one is not ready. */
bool node_ready(const node *n);

#define POD_PHASES(X)                                                                              \
    X(NONE, "")                                                                                    \
    X(PENDING, "Pending")                                                                          \
    X(RUNNING, "Running")                                                                          \
    X(SUCCEEDED, "Succeeded")                                                                      \
    X(FAILED, "Failed")                                                                            \
    X(UNKNOWN, "Unknown")

typedef enum pod_phase {
#define X(phase, text) POD_##phase,
    POD_PHASES(X)
#undef X
} pod_phase;

typedef struct container_state_detail {
    str reason;
    str message;
    int64_t exit_code;
    opt_moment started_at;
    opt_moment finished_at;
} container_state_detail;

typedef struct container_status {
    str name;
    str image;
    bool ready;
    int64_t restart_count;
    struct container_state {
        container_state_detail *waiting; /* at most one of the three */
        container_state_detail *running;
        container_state_detail *terminated;
    } state;
} container_status;

typedef struct container_status_list {
    container_status *at;
    size_t len;
} container_status_list;

typedef struct pod_volume {
    str name;
    raw_json empty_dir; /* not NULL: data that an eviction loses */
} pod_volume;

typedef struct pod {
    metadata metadata;
    struct pod_spec {
        str node_name;
        toleration_list tolerations;
        str priority_class_name;
        opt_int termination_grace_period_seconds;
        LIST(pod_volume) volumes;
    } spec;
    struct pod_status {
        pod_phase phase;
        str reason;
        str message;
        opt_moment start_time;
        condition_list conditions;
        container_status_list init_container_statuses;
        container_status_list container_statuses;
    } status;
} pod;

typedef struct kube_namespace {
    metadata metadata; /* its labels are what a BundleNamespaceMapping selects by */
} kube_namespace;

#endif
