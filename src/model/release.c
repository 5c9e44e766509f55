/* SPDX-License-Identifier: Apache-2.0 */
#include "model/release.h"

#include "model/release_check.h"
#include "model/shape.h"
#include "model/text_rules.h"

#define REQUIRED_TEXT .flags = FIELD_REQUIRED | FIELD_FILLED

/* ---- Resource ---- */

static const field resource_spec_fields[] = {
    F_TEXT(struct resource_spec, "kind", kind, DOC("what it is, for example host")),
    F_TEXT(struct resource_spec, "version", version, DOC("of the kind")),
    F_RAW(struct resource_spec, "config", config, DOC("anything; CEL sees it as resource.config")),
    F_TEXT(struct resource_spec, "providerRef", provider_ref, DOC("who reports this resource")),
};
static const shape resource_spec_shape = {SHAPE_OF(struct resource_spec, resource_spec_fields)};

static const field resource_release_fields[] = {
    F_TEXT(resource_release, "deployment", deployment, REQUIRED_TEXT),
    F_TEXT(resource_release, "environment", environment),
    F_TEXT(resource_release, "version", version, REQUIRED_TEXT, DOC("the tag that runs")),
    F_TIME(resource_release, "completedAt", completed_at),
};
static const shape resource_release_shape = {SHAPE_OF(resource_release, resource_release_fields)};

static const field resource_status_fields[] = {
    F_LIST(struct resource_status, "releases", releases, &resource_release_shape,
           DOC("what runs there already")),
    F_BOOL(struct resource_status, "quarantined", quarantined),
};
static const shape resource_status_shape = {
    SHAPE_OF(struct resource_status, resource_status_fields)};

static const field resource_fields[] = {
    F_IGNORED("apiVersion"),
    F_IGNORED("kind"),
    F_STRUCT(resource, "metadata", metadata, &metadata_shape, REQUIRED),
    F_STRUCT(resource, "spec", spec, &resource_spec_shape),
    F_STRUCT(resource, "status", status, &resource_status_shape),
};
const shape resource_shape = {SHAPE_OF(resource, resource_fields)};

/* ---- Environment ---- */

static const field environment_spec_fields[] = {
    F_CEL(struct environment_spec, "resourceSelector", resource_selector, RESOURCE, REQUIRED,
          DOC("which resources belong to it")),
    F_TEXT(struct environment_spec, "description", description),
};
static const shape environment_spec_shape = {
    SHAPE_OF(struct environment_spec, environment_spec_fields)};

static const field environment_fields[] = {
    F_IGNORED("apiVersion"),
    F_IGNORED("kind"),
    F_STRUCT(environment, "metadata", metadata, &metadata_shape, REQUIRED),
    F_STRUCT(environment, "spec", spec, &environment_spec_shape, REQUIRED),
    F_IGNORED("status"),
};
const shape environment_shape = {SHAPE_OF(environment, environment_fields)};

/* ---- Deployment ---- */

static const field command_fields[] = {
    F_TEXT_LIST(command, "run", run, REQUIRED_TEXT, DOC("program and arguments; no shell")),
    F_TEXT_MAP(command, "env", env, DOC("added to the environment of the job")),
    F_TEXT(command, "workdir", workdir),
};
static const shape command_shape = {SHAPE_OF(command, command_fields), .check = check_command};

static const shape pull_shape = {.name = "pull_job", .size = sizeof(pull_job)};

static const field manual_fields[] = {F_TEXT(manual_job, "instructions", instructions)};
static const shape manual_shape = {SHAPE_OF(manual_job, manual_fields)};

static const field simulated_fields[] = {
    F_OPT_INT(simulated_job, "seconds", seconds, AT_LEAST(0)),
    F_INT(simulated_job, "failPercent", fail_percent, BETWEEN(0, 100), OTHERWISE("0")),
};
static const shape simulated_shape = {SHAPE_OF(simulated_job, simulated_fields)};

static const field job_fields[] = {
    F_OBJECT(job_template, "command", command, &command_shape, DOC("runs on the server's machine")),
    F_OBJECT(job_template, "pull", pull, &pull_shape, DOC("a worker on the resource claims it")),
    F_OBJECT(job_template, "manual", manual, &manual_shape, DOC("a person does it")),
    F_OBJECT(job_template, "simulated", simulated, &simulated_shape, DOC("nothing is done")),
};
static const shape job_shape = {SHAPE_OF(job_template, job_fields), .check = check_job};

static const field deployment_spec_fields[] = {
    F_CEL(struct deployment_spec, "resourceSelector", resource_selector, RESOURCE, REQUIRED,
          DOC("which resources it goes to")),
    F_STRUCT(struct deployment_spec, "job", job, &job_shape, REQUIRED),
    F_INT(struct deployment_spec, "timeoutSeconds", timeout_seconds, AT_LEAST(1),
          OTHERWISE("3600")),
    F_OBJECT(struct deployment_spec, "verify", verify, &command_shape,
             DOC("judges the job after it ended")),
};
static const shape deployment_spec_shape = {
    SHAPE_OF(struct deployment_spec, deployment_spec_fields)};

static const field deployment_fields[] = {
    F_IGNORED("apiVersion"),
    F_IGNORED("kind"),
    F_STRUCT(deployment, "metadata", metadata, &metadata_shape, REQUIRED),
    F_STRUCT(deployment, "spec", spec, &deployment_spec_shape, REQUIRED),
    F_IGNORED("status"),
};
const shape deployment_shape = {SHAPE_OF(deployment, deployment_fields)};

/* ---- Version ---- */

WORDS(version_state_words, VERSION_STATES);

static const field dependency_edge_fields[] = {
    F_TEXT(version_dependency, "deployment", deployment, REQUIRED_TEXT),
    F_CEL(version_dependency, "versionSelector", version_selector, VERSION, REQUIRED),
};
static const shape dependency_edge_shape = {SHAPE_OF(version_dependency, dependency_edge_fields)};

static const field version_spec_fields[] = {
    F_TEXT(struct version_spec, "deployment", deployment, REQUIRED_TEXT),
    F_TEXT(struct version_spec, "tag", tag, REQUIRED_TEXT),
    F_ENUM(struct version_spec, "status", status, &version_state_words, OTHERWISE("ready")),
    F_RAW(struct version_spec, "config", config),
    F_LIST(struct version_spec, "dependsOn", depends_on, &dependency_edge_shape),
};
static const shape version_spec_shape = {SHAPE_OF(struct version_spec, version_spec_fields),
                                         .check = check_version_spec};

static const field version_fields[] = {
    F_IGNORED("apiVersion"),
    F_IGNORED("kind"),
    F_STRUCT(version, "metadata", metadata, &metadata_shape, REQUIRED),
    F_STRUCT(version, "spec", spec, &version_spec_shape, REQUIRED),
    F_IGNORED("status"),
};
const shape version_shape = {SHAPE_OF(version, version_fields)};

/* ---- rules ---- */

WORDS(job_state_words, JOB_STATES);
WORDS(readiness_words, READINESS_MODES);
WORDS(unchanged_words, UNCHANGED_STRATEGIES);
WORDS(overlap_words, OVERLAP_STRATEGIES);
WORDS(trigger_words, WINDOW_TRIGGERS);
WORDS(rollback_words, ROLLBACK_STRATEGIES);
WORDS(limit_words, LIMIT_TYPES);
WORDS(timeout_words, SLOT_TIMEOUTS);
WORDS(rollout_words, ROLLOUT_TYPES);
WORDS(match_words, DEPENDENCY_MATCHES);
WORDS(backoff_words, BACKOFF_STRATEGIES);
WORDS(verify_words, VERIFICATION_TRIGGERS);
WORDS(provider_words, METRIC_PROVIDERS);

static const field bracket_fields[] = {
    F_CEL(deployment_bracket, "deploymentSelector", deployment_selector, DEPLOYMENT, REQUIRED),
    F_ENUM(deployment_bracket, "readinessMode", readiness_mode, &readiness_words,
           OTHERWISE("collection_window")),
    F_OPT_INT(deployment_bracket, "readinessWindowSeconds", readiness_window_seconds, AT_LEAST(0)),
    F_ENUM(deployment_bracket, "unchangedMemberStrategy", unchanged_member_strategy,
           &unchanged_words, OTHERWISE("skip_unchanged")),
    F_ENUM(deployment_bracket, "overlapStrategy", overlap_strategy, &overlap_words,
           OTHERWISE("queue")),
    F_CEL(deployment_bracket, "preSelector", pre_selector, DEPLOYMENT, OURS),
    F_CEL(deployment_bracket, "postSelector", post_selector, DEPLOYMENT, OURS),
    F_ENUM(deployment_bracket, "windowTrigger", window_trigger, &trigger_words, OURS,
           OTHERWISE("published")),
    F_ENUM(deployment_bracket, "rollbackStrategy", rollback_strategy, &rollback_words, OURS,
           OTHERWISE("halt_and_notify")),
};
static const shape deployment_bracket_shape = {SHAPE_OF(deployment_bracket, bracket_fields),
                                               .check = check_bracket};

static const field concurrency_fields[] = {
    F_CEL(resource_concurrency, "groupSelector", group_selector, RESOURCE, REQUIRED),
    F_ENUM(resource_concurrency, "limitType", limit_type, &limit_words, REQUIRED),
    F_INT(resource_concurrency, "limitValue", limit_value, REQUIRED, AT_LEAST(0)),
    F_OPT_INT(resource_concurrency, "slotTimeoutSeconds", slot_timeout_seconds, OURS, AT_LEAST(1)),
    F_ENUM(resource_concurrency, "onTimeout", on_timeout, &timeout_words, OURS, OTHERWISE("hold")),
};
static const shape resource_concurrency_shape = {SHAPE_OF(resource_concurrency, concurrency_fields),
                                                 .check = check_concurrency};

static const field gradual_fields[] = {
    F_ENUM(gradual_rollout, "rolloutType", rollout_type, &rollout_words, REQUIRED),
    F_INT(gradual_rollout, "timeScaleInterval", time_scale_interval, REQUIRED,
          BETWEEN(0, INT32_MAX)),
};
static const shape gradual_rollout_shape = {SHAPE_OF(gradual_rollout, gradual_fields)};

static const field dependency_fields[] = {
    F_CEL(deployment_dependency, "dependsOn", depends_on, DEPLOYMENT_VERSION, REQUIRED),
    F_CEL(deployment_dependency, "appliesTo", applies_to, DEPLOYMENT),
    F_ENUM(deployment_dependency, "match", match, &match_words, OURS, OTHERWISE("all")),
};
static const shape deployment_dependency_shape = {
    SHAPE_OF(deployment_dependency, dependency_fields)};

static const field window_fields[] = {
    F_TEXT(deployment_window, "rrule", rrule, REQUIRED_TEXT, .rule = &rule_rrule),
    F_INT(deployment_window, "durationMinutes", duration_minutes, REQUIRED, BETWEEN(1, INT32_MAX)),
    F_TEXT(deployment_window, "timezone", timezone, OTHERWISE("UTC"), .rule = &rule_timezone),
    F_BOOL(deployment_window, "allowWindow", allow_window, OTHERWISE("true")),
};
static const shape deployment_window_shape = {SHAPE_OF(deployment_window, window_fields)};

static const field approval_fields[] = {
    F_INT(any_approval, "minApprovals", min_approvals, REQUIRED, BETWEEN(0, INT32_MAX)),
};
static const shape any_approval_shape = {SHAPE_OF(any_approval, approval_fields)};

static const field progression_fields[] = {
    F_CEL(environment_progression, "dependsOnEnvironmentSelector", depends_on_environment_selector,
          ENVIRONMENT, REQUIRED),
    F_DECIMAL(environment_progression, "minimumSuccessPercentage", minimum_success_percentage,
              BETWEEN(0, 100), OTHERWISE("100")),
    F_ENUM_SET(environment_progression, "successStatuses", success_statuses, &job_state_words,
               OTHERWISE("successful")),
    F_INT(environment_progression, "minimumSoakTimeMinutes", minimum_soak_time_minutes,
          BETWEEN(0, INT32_MAX), OTHERWISE("0")),
    F_OPT_INT(environment_progression, "maximumAgeHours", maximum_age_hours, BETWEEN(0, INT32_MAX)),
    F_BOOL(environment_progression, "requireVerificationPassed", require_verification_passed,
           OTHERWISE("false")),
};
static const shape environment_progression_shape = {
    SHAPE_OF(environment_progression, progression_fields)};

static const field selector_fields[] = {
    F_CEL(version_selector, "selector", selector, RELEASE, REQUIRED),
    F_TEXT(version_selector, "description", description),
};
static const shape version_selector_shape = {SHAPE_OF(version_selector, selector_fields)};

static const field cooldown_fields[] = {
    F_INT(version_cooldown, "intervalSeconds", interval_seconds, REQUIRED, BETWEEN(0, INT32_MAX)),
};
static const shape version_cooldown_shape = {SHAPE_OF(version_cooldown, cooldown_fields)};

static const field retry_fields[] = {
    F_INT(retry, "maxRetries", max_retries, REQUIRED, BETWEEN(0, INT32_MAX)),
    F_ENUM_SET(retry, "retryOnStatuses", retry_on_statuses, &job_state_words),
    F_INT(retry, "backoffSeconds", backoff_seconds, BETWEEN(0, INT32_MAX), OTHERWISE("0")),
    F_ENUM(retry, "backoffStrategy", backoff_strategy, &backoff_words, OTHERWISE("linear")),
    F_OPT_INT(retry, "maxBackoffSeconds", max_backoff_seconds, BETWEEN(0, INT32_MAX)),
};
static const shape retry_shape = {SHAPE_OF(retry, retry_fields), .check = check_retry};

static const field rollback_fields[] = {
    F_ENUM_SET(rollback, "onJobStatuses", on_job_statuses, &job_state_words),
    F_BOOL(rollback, "onVerificationFailure", on_verification_failure, OTHERWISE("false")),
};
static const shape rollback_shape = {SHAPE_OF(rollback, rollback_fields), .check = check_rollback};

static const field provider_fields[] = {
    F_ENUM(metric_provider, "type", type, &provider_words, REQUIRED),
    F_TEXT(metric_provider, "url", url),
    F_TEXT(metric_provider, "method", method, OTHERWISE("GET")),
    F_TEXT_MAP(metric_provider, "headers", headers),
    F_TEXT(metric_provider, "body", body),
    F_DURATION(metric_provider, "timeout", timeout, OTHERWISE("30s")),
    F_INT(metric_provider, "durationSeconds", duration_seconds, BETWEEN(1, 3600), OTHERWISE("30")),
    F_TEXT(metric_provider, "address", address),
    F_TEXT(metric_provider, "query", query),
};
static const shape provider_shape = {SHAPE_OF(metric_provider, provider_fields),
                                     .check = check_provider};

static const field metric_fields[] = {
    F_TEXT(verification_metric, "name", name, REQUIRED_TEXT),
    F_STRUCT(verification_metric, "provider", provider, &provider_shape, REQUIRED),
    F_INT(verification_metric, "intervalSeconds", interval_seconds, REQUIRED,
          BETWEEN(1, INT32_MAX)),
    F_INT(verification_metric, "count", count, REQUIRED, BETWEEN(1, INT32_MAX)),
    F_CEL(verification_metric, "successCondition", success_condition, RESULT, REQUIRED),
    F_OPT_INT(verification_metric, "successThreshold", success_threshold, BETWEEN(1, INT32_MAX)),
    F_CEL(verification_metric, "failureCondition", failure_condition, RESULT),
    F_INT(verification_metric, "failureThreshold", failure_threshold, BETWEEN(0, INT32_MAX),
          OTHERWISE("0")),
};
static const shape metric_shape = {SHAPE_OF(verification_metric, metric_fields)};

static const field verification_fields[] = {
    F_ENUM(verification, "triggerOn", trigger_on, &verify_words, OTHERWISE("jobSuccess")),
    F_LIST(verification, "metrics", metrics, &metric_shape, REQUIRED_TEXT),
};
static const shape verification_shape = {SHAPE_OF(verification, verification_fields),
                                         .check = check_verification};

static const field rule_fields[] = {F_TEXT(rule, "id", id, DOC("none: POLICY/KIND/N")),
#define X(kind, json, type) F_OBJECT(rule, json, type, &type##_shape),
                                    RULE_KINDS(X)
#undef X
};
static const shape rule_shape = {SHAPE_OF(rule, rule_fields), .check = check_rule};

/* ---- RolloutPolicy ---- */

static const field policy_spec_fields[] = {
    F_CEL(struct rollout_policy_spec, "selector", selector, POLICY, OTHERWISE("true"),
          DOC("which release targets it gates")),
    F_INT(struct rollout_policy_spec, "priority", priority, BETWEEN(INT32_MIN, INT32_MAX),
          OTHERWISE("0")),
    F_BOOL(struct rollout_policy_spec, "enabled", enabled, OTHERWISE("true")),
    F_TEXT(struct rollout_policy_spec, "description", description),
    F_LIST(struct rollout_policy_spec, "rules", rules, &rule_shape),
};
static const shape policy_spec_shape = {SHAPE_OF(struct rollout_policy_spec, policy_spec_fields)};

static const field policy_fields[] = {
    F_IGNORED("apiVersion"),
    F_IGNORED("kind"),
    F_STRUCT(rollout_policy, "metadata", metadata, &metadata_shape, REQUIRED),
    F_STRUCT(rollout_policy, "spec", spec, &policy_spec_shape, REQUIRED),
    F_IGNORED("status"),
};
const shape rollout_policy_shape = {SHAPE_OF(rollout_policy, policy_fields),
                                    .check = check_rollout_policy};
