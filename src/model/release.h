/* SPDX-License-Identifier: Apache-2.0 */
/* release.h - the kinds of drover.dev/v1alpha1: Resource, Environment, Deployment, Version and
 * RolloutPolicy with all its rules.
 *
 * These are Drover's own: an unknown field is an error. Every expression is compiled when the
 * document is read. Field names of rules are ctrlplane's; additions are marked "ours". */
#ifndef DROVER_MODEL_RELEASE_H
#define DROVER_MODEL_RELEASE_H

#include "model/expression.h"
#include "model/fleet.h"
#include "model/skyhook.h"
#include "model/values.h"

/* ---- Resource ---- */

/* What runs on the resource already, for plans from files. */
typedef struct resource_release {
    str deployment;
    str environment; /* empty: any */
    str version;     /* the tag */
    opt_moment completed_at;
} resource_release;

typedef struct resource {
    metadata metadata;
    struct resource_spec {
        str kind;
        str version;
        raw_json config;
        str provider_ref;
    } spec;
    struct resource_status {
        LIST(resource_release) releases;
        bool quarantined;
    } status;
} resource;

/* ---- Environment ---- */

typedef struct environment {
    metadata metadata;
    struct environment_spec {
        expression resource_selector;
        str description;
    } spec;
} environment;

/* ---- Deployment ---- */

/* argv items and values of env may hold {{...}}: see template_check. */
typedef struct command {
    str_list run; /* at least one */
    label_set env;
    str workdir;
} command;

#define JOB_KINDS(X)                                                                               \
    X(NONE, "")                                                                                    \
    X(COMMAND, "command")                                                                          \
    X(PULL, "pull")                                                                                \
    X(MANUAL, "manual")                                                                            \
    X(SIMULATED, "simulated")

typedef enum job_kind {
#define X(kind, text) JOB_##kind,
    JOB_KINDS(X)
#undef X
} job_kind;

typedef struct pull_job {
    bool unused; /* pull: {} has no settings yet */
} pull_job;

typedef struct manual_job {
    str instructions;
} manual_job;

typedef struct simulated_job {
    opt_int seconds;
    int64_t fail_percent;
} simulated_job;

typedef struct job_template {
    command *command; /* exactly one of the four */
    pull_job *pull;
    manual_job *manual;
    simulated_job *simulated;
    job_kind kind; /* which one */
} job_template;

typedef struct deployment {
    metadata metadata;
    struct deployment_spec {
        expression resource_selector;
        job_template job;
        int64_t timeout_seconds; /* 3600 */
        command *verify;
    } spec;
} deployment;

/* Checks the {{...}} in text against the names that jobs may use. */
bool template_check(str text, err *error);

/* ---- Version ---- */

#define VERSION_STATES(X)                                                                          \
    X(READY, "ready")                                                                              \
    X(BUILDING, "building")                                                                        \
    X(PAUSED, "paused")                                                                            \
    X(REJECTED, "rejected")                                                                        \
    X(FAILED, "failed")

typedef enum version_state {
#define X(state, text) VERSION_##state,
    VERSION_STATES(X)
#undef X
} version_state;

typedef struct version_dependency {
    str deployment;
    expression version_selector; /* over version: the one that runs there */
} version_dependency;

typedef struct version {
    metadata metadata;
    struct version_spec {
        str deployment;
        str tag;
        version_state status; /* ready */
        raw_json config;
        LIST(version_dependency) depends_on;
    } spec;
} version;

/* ---- rules ---- */

#define JOB_STATES(X)                                                                              \
    X(PENDING, "pending")                                                                          \
    X(QUEUED, "queued")                                                                            \
    X(IN_PROGRESS, "inProgress")                                                                   \
    X(ACTION_REQUIRED, "actionRequired")                                                           \
    X(SUCCESSFUL, "successful")                                                                    \
    X(FAILURE, "failure")                                                                          \
    X(CANCELLED, "cancelled")                                                                      \
    X(SKIPPED, "skipped")                                                                          \
    X(INVALID_JOB_AGENT, "invalidJobAgent")                                                        \
    X(INVALID_INTEGRATION, "invalidIntegration")                                                   \
    X(EXTERNAL_RUN_NOT_FOUND, "externalRunNotFound")

typedef enum job_state {
#define X(state, text) JOB_STATE_##state,
    JOB_STATES(X)
#undef X
} job_state;

/* A set of job states: bit 1 << JOB_STATE_... */
typedef uint32_t job_states;

#define READINESS_MODES(X)                                                                         \
    X(COLLECTION_WINDOW, "collection_window")                                                      \
    X(WAIT_FOR_ALL, "wait_for_all")                                                                \
    X(IMMEDIATE, "immediate")
#define UNCHANGED_STRATEGIES(X)                                                                    \
    X(SKIP_UNCHANGED, "skip_unchanged")                                                            \
    X(REDEPLOY_CURRENT, "redeploy_current")                                                        \
    X(REQUIRE_ALL, "require_all")
#define OVERLAP_STRATEGIES(X) X(QUEUE, "queue") X(MERGE, "merge")
#define WINDOW_TRIGGERS(X) X(PUBLISHED, "published") X(ELIGIBLE, "eligible")
#define ROLLBACK_STRATEGIES(X)                                                                     \
    X(HALT_AND_NOTIFY, "halt_and_notify")                                                          \
    X(INDIVIDUAL, "individual")                                                                    \
    X(ALL_MEMBERS, "all_members")

typedef enum readiness_mode {
#define X(mode, text) READINESS_##mode,
    READINESS_MODES(X)
#undef X
} readiness_mode;

typedef enum unchanged_strategy {
#define X(strategy, text) UNCHANGED_##strategy,
    UNCHANGED_STRATEGIES(X)
#undef X
} unchanged_strategy;

typedef enum overlap_strategy {
#define X(strategy, text) OVERLAP_##strategy,
    OVERLAP_STRATEGIES(X)
#undef X
} overlap_strategy;

typedef enum window_trigger {
#define X(trigger, text) TRIGGER_##trigger,
    WINDOW_TRIGGERS(X)
#undef X
} window_trigger;

typedef enum rollback_strategy {
#define X(strategy, text) ROLLBACK_##strategy,
    ROLLBACK_STRATEGIES(X)
#undef X
} rollback_strategy;

typedef struct deployment_bracket {
    expression deployment_selector;
    readiness_mode readiness_mode;
    opt_int readiness_window_seconds; /* set and > 0 unless immediate */
    unchanged_strategy unchanged_member_strategy;
    overlap_strategy overlap_strategy;
    expression pre_selector;             /* ours */
    expression post_selector;            /* ours */
    window_trigger window_trigger;       /* ours */
    rollback_strategy rollback_strategy; /* ours */
} deployment_bracket;

#define LIMIT_TYPES(X) X(PERCENTAGE, "percentage") X(COUNT, "count")
#define SLOT_TIMEOUTS(X) X(HOLD, "hold") X(RELEASE, "release") X(QUARANTINE, "quarantine")

typedef enum limit_type {
#define X(type, text) LIMIT_TYPE_##type,
    LIMIT_TYPES(X)
#undef X
} limit_type;

typedef enum slot_timeout {
#define X(act, text) SLOT_TIMEOUT_##act,
    SLOT_TIMEOUTS(X)
#undef X
} slot_timeout;

typedef struct resource_concurrency {
    expression group_selector;
    limit_type limit_type;
    int64_t limit_value;
    opt_int slot_timeout_seconds; /* ours */
    slot_timeout on_timeout;      /* ours */
} resource_concurrency;

#define ROLLOUT_TYPES(X) X(LINEAR, "linear") X(LINEAR_NORMALIZED, "linear-normalized")

typedef enum rollout_type {
#define X(type, text) ROLLOUT_##type,
    ROLLOUT_TYPES(X)
#undef X
} rollout_type;

typedef struct gradual_rollout {
    rollout_type rollout_type;
    int64_t time_scale_interval; /* seconds */
} gradual_rollout;

#define DEPENDENCY_MATCHES(X) X(ALL, "all") X(ANY, "any")

typedef enum dependency_match {
#define X(match, text) DEPENDENCY_##match,
    DEPENDENCY_MATCHES(X)
#undef X
} dependency_match;

typedef struct deployment_dependency {
    expression depends_on;
    expression applies_to;  /* not given: all */
    dependency_match match; /* ours */
} deployment_dependency;

typedef struct deployment_window {
    str rrule; /* RFC 5545, checked */
    int64_t duration_minutes;
    str timezone; /* known; "UTC" */
    bool allow_window;
} deployment_window;

typedef struct any_approval {
    int64_t min_approvals;
} any_approval;

typedef struct environment_progression {
    expression depends_on_environment_selector;
    thousandths minimum_success_percentage; /* 100 */
    job_states success_statuses;            /* successful */
    int64_t minimum_soak_time_minutes;
    opt_int maximum_age_hours;
    bool require_verification_passed;
} environment_progression;

typedef struct version_selector {
    expression selector;
    str description;
} version_selector;

typedef struct version_cooldown {
    int64_t interval_seconds;
} version_cooldown;

#define BACKOFF_STRATEGIES(X) X(LINEAR, "linear") X(EXPONENTIAL, "exponential")

typedef enum backoff_strategy {
#define X(strategy, text) BACKOFF_##strategy,
    BACKOFF_STRATEGIES(X)
#undef X
} backoff_strategy;

typedef struct retry {
    int64_t max_retries;
    job_states retry_on_statuses; /* 0: failure, invalidIntegration, invalidJobAgent */
    int64_t backoff_seconds;
    backoff_strategy backoff_strategy;
    opt_int max_backoff_seconds;
} retry;

typedef struct rollback {
    job_states on_job_statuses;
    bool on_verification_failure;
} rollback;

#define VERIFICATION_TRIGGERS(X)                                                                   \
    X(JOB_SUCCESS, "jobSuccess")                                                                   \
    X(JOB_CREATED, "jobCreated")                                                                   \
    X(JOB_STARTED, "jobStarted")                                                                   \
    X(JOB_FAILURE, "jobFailure")

typedef enum verification_trigger {
#define X(trigger, text) VERIFY_ON_##trigger,
    VERIFICATION_TRIGGERS(X)
#undef X
} verification_trigger;

#define METRIC_PROVIDERS(X) X(HTTP, "http") X(SLEEP, "sleep") X(PROMETHEUS, "prometheus")

typedef enum metric_provider_type {
#define X(type, text) PROVIDER_##type,
    METRIC_PROVIDERS(X)
#undef X
} metric_provider_type;

typedef struct metric_provider {
    metric_provider_type type;
    str url; /* http */
    str method;
    label_set headers; /* http, prometheus */
    str body;
    opt_duration timeout;     /* 30s */
    int64_t duration_seconds; /* sleep: 30 */
    str address;              /* prometheus */
    str query;
} metric_provider;

typedef struct verification_metric {
    str name;
    metric_provider provider;
    int64_t interval_seconds;
    int64_t count;
    expression success_condition;
    opt_int success_threshold;
    expression failure_condition;
    int64_t failure_threshold;
} verification_metric;

typedef struct verification {
    verification_trigger trigger_on;
    LIST(verification_metric) metrics;
} verification;

/* X(name, JSON key, member and type). */
#define RULE_KINDS(X)                                                                              \
    X(DEPLOYMENT_BRACKET, "deploymentBracket", deployment_bracket)                                 \
    X(RESOURCE_CONCURRENCY, "resourceConcurrency", resource_concurrency)                           \
    X(GRADUAL_ROLLOUT, "gradualRollout", gradual_rollout)                                          \
    X(DEPLOYMENT_DEPENDENCY, "deploymentDependency", deployment_dependency)                        \
    X(DEPLOYMENT_WINDOW, "deploymentWindow", deployment_window)                                    \
    X(ANY_APPROVAL, "anyApproval", any_approval)                                                   \
    X(ENVIRONMENT_PROGRESSION, "environmentProgression", environment_progression)                  \
    X(VERSION_SELECTOR, "versionSelector", version_selector)                                       \
    X(VERSION_COOLDOWN, "versionCooldown", version_cooldown)                                       \
    X(RETRY, "retry", retry)                                                                       \
    X(ROLLBACK, "rollback", rollback)                                                              \
    X(VERIFICATION, "verification", verification)                                                  \
    X(DEPLOYMENT_POLICY, "deploymentPolicy", deployment_policy_spec)                               \
    X(ROLLOUT_STRATEGY, "rolloutStrategy", rollout_strategy)

typedef enum rule_kind {
#define X(kind, json, type) RULE_##kind,
    RULE_KINDS(X)
#undef X
} rule_kind;

typedef struct rule {
    str id; /* given, or "POLICY/KIND/N" counted from 0 among the rules of that kind */
    rule_kind kind;
#define X(kind, json, type) type *type;
    RULE_KINDS(X)
#undef X
} rule;

/* ---- RolloutPolicy ---- */

typedef struct rollout_policy {
    metadata metadata;
    struct rollout_policy_spec {
        expression selector; /* "true" */
        int64_t priority;
        bool enabled; /* true */
        str description;
        LIST(rule) rules;
    } spec;
} rollout_policy;

const char *rule_kind_text(rule_kind kind);

#endif
