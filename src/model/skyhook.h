/* SPDX-License-Identifier: Apache-2.0 */
/* skyhook.h - the kinds of skyhook.nvidia.com/v1alpha1: Skyhook and DeploymentPolicy.
 *
 * Defaults are filled in when a document is read, whether or not an admission webhook saw it. Maps
 * are arrays sorted by key. Fields marked "ours" are Drover's additions and optional. */
#ifndef DROVER_MODEL_SKYHOOK_H
#define DROVER_MODEL_SKYHOOK_H

#include "model/node.h"
#include "model/values.h"

#define COMPARTMENT_DEFAULT "__default__"
#define PACKAGE_NAME_MOST 43u /* the longest name of a container is 20 longer */
#define SKYHOOK_NAME_MOST 53u /* "nodeState_" and it are at most 63 */

/* ---- packages ---- */

#define INTERRUPT_TYPES(X)                                                                         \
    X(NONE, "")                                                                                    \
    X(SERVICE, "service")                                                                          \
    X(REBOOT, "reboot")                                                                            \
    X(NOOP, "noop")                                                                                \
    X(RESTART_ALL_SERVICES, "restartAllServices")

typedef enum interrupt_type {
#define X(type, text) INTERRUPT_##type,
    INTERRUPT_TYPES(X)
#undef X
} interrupt_type;

typedef struct interrupt {
    str key; /* in configInterrupts: the configMap key or glob; else empty */
    interrupt_type type;
    str_list services;
    kept_fields kept;
} interrupt;

typedef struct package_resources {
    quantity cpu_request;
    quantity cpu_limit;
    quantity memory_request;
    quantity memory_limit;
    kept_fields kept;
} package_resources;

typedef struct package_uninstall {
    bool enabled;
    bool apply;
    kept_fields kept;
} package_uninstall;

typedef struct package {
    str key;  /* in spec.packages */
    str name; /* equals key */
    str version;
    str image; /* repository without tag */
    str container_sha;
    str agent_image_override;
    interrupt *interrupt;
    label_set depends_on; /* package name -> version */
    LIST(interrupt) config_interrupts;
    label_set config_map;
    raw_json env;
    package_resources *resources;
    opt_duration graceful_shutdown;
    package_uninstall *uninstall;
    opt_duration stage_timeout; /* ours */
    kept_fields kept;
} package;

/* ---- budgets, strategies, policies ---- */

typedef struct budget {
    opt_int percent;
    opt_int count;
    kept_fields kept;
} budget;

#define STRATEGY_KINDS(X)                                                                          \
    X(NONE, "none") X(FIXED, "fixed") X(LINEAR, "linear") X(EXPONENTIAL, "exponential")

typedef enum strategy_kind {
#define X(kind, text) STRATEGY_##kind,
    STRATEGY_KINDS(X)
#undef X
} strategy_kind;

typedef struct strategy_parameters {
    int64_t initial_batch;     /* 1 */
    int64_t batch_threshold;   /* 100 percent */
    opt_int failure_threshold; /* not set: never stops */
    int64_t safety_limit;      /* 50 percent */
    int64_t delta;             /* linear: 1 */
    int64_t growth_factor;     /* exponential: 2 */
    kept_fields kept;
} strategy_parameters;

typedef struct strategy {
    strategy_parameters *fixed; /* exactly one of the three */
    strategy_parameters *linear;
    strategy_parameters *exponential;
    strategy_kind kind;              /* which one; NONE for a zeroed strategy */
    const strategy_parameters *with; /* its parameters */
    kept_fields kept;
} strategy;

typedef struct compartment {
    str name;
    label_query selector; /* not used in the default */
    budget budget;
    strategy *strategy; /* NULL: none, its batch is the ceiling */
    kept_fields kept;
} compartment;

typedef struct deployment_policy_spec {
    compartment default_; /* its name is COMPARTMENT_DEFAULT */
    LIST(compartment) compartments;
    bool reset_batch_state_on_completion; /* true */
    bool failed_nodes_hold_budget;        /* ours; false */
    kept_fields kept;
} deployment_policy_spec;

typedef struct deployment_policy {
    metadata metadata;
    deployment_policy_spec spec;
    kept_fields kept;
} deployment_policy;

/* ---- status ---- */

#define SKYHOOK_STATES(X)                                                                          \
    X(NONE, "")                                                                                    \
    X(UNKNOWN, "unknown")                                                                          \
    X(COMPLETE, "complete")                                                                        \
    X(BLOCKED, "blocked")                                                                          \
    X(WAITING, "waiting")                                                                          \
    X(DISABLED, "disabled")                                                                        \
    X(PAUSED, "paused")                                                                            \
    X(IN_PROGRESS, "in_progress")                                                                  \
    X(ERRORING, "erroring")

typedef enum skyhook_state {
#define X(state, text) SKYHOOK_##state,
    SKYHOOK_STATES(X)
#undef X
} skyhook_state;

#define PACKAGE_STAGES(X)                                                                          \
    X(NONE, "")                                                                                    \
    X(APPLY, "apply")                                                                              \
    X(INTERRUPT, "interrupt")                                                                      \
    X(POST_INTERRUPT, "post-interrupt")                                                            \
    X(CONFIG, "config")                                                                            \
    X(UNINSTALL, "uninstall")                                                                      \
    X(UNINSTALL_INTERRUPT, "uninstall-interrupt")                                                  \
    X(UPGRADE, "upgrade")

typedef enum package_stage {
#define X(stage, text) STAGE_##stage,
    PACKAGE_STAGES(X)
#undef X
} package_stage;

#define PACKAGE_STATES(X)                                                                          \
    X(NONE, "")                                                                                    \
    X(COMPLETE, "complete")                                                                        \
    X(IN_PROGRESS, "in_progress")                                                                  \
    X(SKIPPED, "skipped")                                                                          \
    X(ERRORING, "erroring")                                                                        \
    X(UNKNOWN, "unknown")

typedef enum package_state {
#define X(state, text) PACKAGE_##state,
    PACKAGE_STATES(X)
#undef X
} package_state;

typedef struct package_status {
    str key; /* "PKG|VER" */
    str name;
    str version;
    str image; /* may be empty, is always written */
    str container_sha;
    package_stage stage;
    package_state state;
    int64_t restarts;
    kept_fields kept;
} package_status;

/* What a node's annotation nodeState_SK holds, or one entry of status.nodeState; sorted by key. */
typedef struct node_state {
    str node; /* empty when read from the annotation */
    LIST(package_status) packages;
} node_state;

/* The annotation's exact text: keys sorted, compact, Go's HTML escapes. Everything
 * that is read is in a. */
bool node_state_parse(arena *a, str text, node_state *ret, err *error);
void node_state_write(const node_state *s, buf *out);

typedef struct batch_state {
    int64_t current_batch;
    int64_t consecutive_failures;
    int64_t completed_nodes;
    int64_t failed_nodes;
    bool should_stop;
    int64_t last_batch_size;
    bool last_batch_failed;
    str_list members;  /* ours: the claims of the batch that is open */
    str_list retrying; /* ours: claims of nodes that are tried again */
    kept_fields kept;
} batch_state;

typedef struct compartment_status {
    str name;
    int64_t matched;
    int64_t ceiling;
    int64_t in_progress;
    int64_t completed;
    int64_t progress_percent;
    batch_state *batch_state;
    kept_fields kept;
} compartment_status;

typedef struct node_status_entry {
    str node;
    skyhook_state state;
} node_status_entry;

typedef struct node_priority {
    str node;
    opt_moment since;
} node_priority;

typedef struct config_update {
    str package;
    str_list keys;
} config_update;

/* A package that can be uninstalled, by PACKAGE|VERSION, and on how many nodes it is. */
typedef struct installed_package {
    str package;
    int64_t nodes;
} installed_package;

typedef struct skyhook_status {
    skyhook_state status;
    int64_t observed_generation;
    LIST(node_state) node_state;
    LIST(node_status_entry) node_status;
    condition_list conditions;
    label_set node_boot_ids;
    LIST(node_priority) node_priority;
    int64_t node_order_offset;
    LIST(config_update) config_updates;
    LIST(compartment_status) compartment_statuses;
    int64_t nodes_in_progress;
    str complete_nodes;
    str package_list;
    LIST(installed_package) installed; /* ours */
    str drover; /* ours: what else must survive a restart, as JSON text */
    kept_fields kept;
} skyhook_status;

/* ---- Skyhook ---- */

#define SEQUENCINGS(X) X(NODE, "node") X(ALL, "all")

typedef enum sequencing {
#define X(sequencing, text) SEQUENCING_##sequencing,
    SEQUENCINGS(X)
#undef X
} sequencing;

typedef struct deployment_policy_options {
    bool reset_batch_state_on_completion; /* true when the object is there */
    kept_fields kept;
} deployment_policy_options;

typedef struct skyhook_spec {
    bool serial;
    label_query pod_non_interrupt_labels;
    label_query node_selectors; /* absent reads as empty: every node */
    str deployment_policy;      /* empty: none */
    deployment_policy_options *deployment_policy_options;
    budget *interruption_budget; /* NULL, or neither field set: no limit */
    LIST(package) packages;
    toleration_list additional_tolerations;
    bool runtime_required;
    bool auto_taint_new_nodes;
    int64_t priority; /* 200 */
    sequencing sequencing;
    bool pause;                 /* of the older API: read, and reported as without effect */
    opt_duration drain_timeout; /* ours */
    kept_fields kept;
} skyhook_spec;

typedef struct skyhook {
    metadata metadata;
    skyhook_spec spec;
    skyhook_status status;
    kept_fields kept;
} skyhook;

/* The package of that name, or NULL. */
const package *skyhook_package(const skyhook *s, str name);
/* The annotations skyhook.nvidia.com/pause and /disable are "true". */
bool skyhook_paused(const skyhook *s);
bool skyhook_disabled(const skyhook *s);

#endif
