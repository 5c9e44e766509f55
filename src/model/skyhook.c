/* SPDX-License-Identifier: Apache-2.0 */
#include "model/skyhook.h"

#include "model/document.h"
#include "model/semver.h"
#include "model/shape.h"
#include "model/skyhook_check.h"
#include "model/text_rules.h"

static bool semver_rule(str text, err *error)
{
    return semver_valid(text) ||
           err_set(error, "it is not MAJOR.MINOR.PATCH without leading zeros");
}

const text_rule rule_semver = {
    .pattern = "^v?(0|[1-9][0-9]*)(\\.(0|[1-9][0-9]*)(\\.(0|[1-9][0-9]*)(-[0-9A-Za-z.-]+)?"
               "(\\+[0-9A-Za-z.-]+)?)?)?$",
    .allowed = "a semantic version",
    .valid = semver_rule,
};

/* ---- packages ---- */

WORDS(interrupt_words, INTERRUPT_TYPES);

static const field interrupt_fields[] = {
    F_ENUM(interrupt, "type", type, &interrupt_words, REQUIRED,
           DOC("what is interrupted after the package was applied")),
    F_TEXT_LIST(interrupt, "services", services, DOC("systemd units to restart")),
};
static const shape interrupt_shape = {SHAPE_OF(interrupt, interrupt_fields), KEPT_IN(interrupt),
                                      .key_offset = offsetof(interrupt, key)};

static const field resources_fields[] = {
    F_QUANTITY(package_resources, "cpuRequest", cpu_request),
    F_QUANTITY(package_resources, "cpuLimit", cpu_limit),
    F_QUANTITY(package_resources, "memoryRequest", memory_request),
    F_QUANTITY(package_resources, "memoryLimit", memory_limit),
};
/* What the webhooks of Skyhook refused, too, is refused in their words, which scripts look for; the
 * server says which package or compartment it is. */
#define AMOUNT(field) "quantity(string(self." field "))"
#define ABOVE_ZERO ".isGreaterThan(quantity('0'))"
#define AT_LEAST_AS(field) ".compareTo(" AMOUNT(field) ") >= 0"
static const shape_rule resources_rules[] = {
    {"[has(self.cpuRequest), has(self.cpuLimit), has(self.memoryRequest), "
     "has(self.memoryLimit)].filter(given, given).size() in [0, 4]",
     "if any resource override is set, all of cpuRequest, cpuLimit, memoryRequest, memoryLimit "
     "must be set"},
    {"!has(self.cpuRequest) || !has(self.cpuLimit) || (" AMOUNT("cpuRequest") ABOVE_ZERO
     " && " AMOUNT("cpuLimit") AT_LEAST_AS("cpuRequest") ")",
     "cpuLimit must be >= cpuRequest, and all resource values must be positive"},
    {"!has(self.memoryRequest) || !has(self.memoryLimit) || (" AMOUNT("memoryRequest") ABOVE_ZERO
     " && " AMOUNT("memoryLimit") AT_LEAST_AS("memoryRequest") ")",
     "memoryLimit must be >= memoryRequest, and all resource values must be positive"},
};
static const shape resources_shape = {SHAPE_OF(package_resources, resources_fields),
                                      KEPT_IN(package_resources), .check = check_package_resources,
                                      RULES(resources_rules)};

static const field uninstall_fields[] = {
    F_BOOL(package_uninstall, "enabled", enabled, OTHERWISE("false"),
           DOC("the package can be uninstalled")),
    F_BOOL(package_uninstall, "apply", apply, OTHERWISE("false"), DOC("uninstall it now")),
};
static const shape_rule uninstall_rules[] = {
    {"!self.apply || self.enabled", "uninstall.apply requires uninstall.enabled to be true"},
};
static const shape uninstall_shape = {SHAPE_OF(package_uninstall, uninstall_fields),
                                      KEPT_IN(package_uninstall), .check = check_package_uninstall,
                                      RULES(uninstall_rules)};

static const field package_fields[] = {
    F_TEXT(package, "name", name, AT_MOST(PACKAGE_NAME_MOST), DOC("equals the key; leave it out")),
    F_TEXT(package, "version", version, .flags = FIELD_REQUIRED | FIELD_FILLED,
           .rule = &rule_semver, AT_MOST(LIMIT_VERSION_BYTES), DOC("image tag and identity")),
    F_TEXT(package, "image", image, .flags = FIELD_REQUIRED | FIELD_FILLED,
           AT_MOST(LIMIT_IMAGE_BYTES), DOC("repository without tag")),
    F_TEXT(package, "containerSHA", container_sha, DOC("digest of the image")),
    F_TEXT(package, "agentImageOverride", agent_image_override,
           DOC("agent image for this package alone")),
    F_OBJECT(package, "interrupt", interrupt, &interrupt_shape),
    F_TEXT_MAP(package, "dependsOn", depends_on, AT_MOST(LIMIT_DEPENDENCIES),
               DOC("packages, with their exact versions")),
    F_MAP(package, "configInterrupts", config_interrupts, &interrupt_shape,
          AT_MOST(LIMIT_CONFIG_INTERRUPTS), DOC("interrupts by configMap key or glob")),
    F_TEXT_MAP(package, "configMap", config_map, DOC("files for the package")),
    F_RAW(package, "env", env, DOC("environment of the package's containers"),
          .schema = "\"type\":\"array\",\"items\":{\"type\":\"object\",\"required\":[\"name\"],"
                    "\"properties\":{\"name\":{\"type\":\"string\",\"minLength\":1},"
                    "\"value\":{\"type\":\"string\"}},"
                    "\"x-kubernetes-preserve-unknown-fields\":true}"),
    F_OBJECT(package, "resources", resources, &resources_shape),
    F_DURATION(package, "gracefulShutdown", graceful_shutdown),
    F_OBJECT(package, "uninstall", uninstall, &uninstall_shape),
    F_DURATION(package, "stageTimeout", stage_timeout, OURS,
               DOC("longest time one stage may take")),
};
static const shape_rule package_rules[] = {
    {"!self.image.contains('@')", "found a digest in the image, allowed there: containerSHA"},
    {"!self.image.substring(self.image.lastIndexOf('/') + 1).contains(':') || "
     "self.image.endsWith(':' + self.version)",
     "Do not explicitly set the image's tag in the package's definition (The package version will "
     "be set as the tag)"},
    {"!has(self.configInterrupts) || self.configInterrupts.all(key, key.contains('*') || "
     "(has(self.configMap) && key in self.configMap))",
     "error config interrupt for key that doesn't exist: allowed are keys of configMap, and "
     "patterns with * that match one"},
    {"!has(self.dependsOn) || self.dependsOn.all(key, self.dependsOn[key] != '')",
     "found an empty version in dependsOn, allowed the exact version of that package"},
};
static const shape package_shape = {SHAPE_OF(package, package_fields), KEPT_IN(package),
                                    .key_offset = offsetof(package, key), .check = check_package,
                                    RULES(package_rules)};

/* ---- policies ---- */

static const field budget_fields[] = {
    F_OPT_INT(budget, "percent", percent, BETWEEN(1, 100), DOC("of the matched nodes")),
    F_OPT_INT(budget, "count", count, AT_LEAST(1), DOC("nodes")),
};
static const shape_rule budget_rules[] = {
    {"has(self.percent) != has(self.count)", "exactly one of percent or count must be set"},
};
static const shape budget_shape = {SHAPE_OF(budget, budget_fields), KEPT_IN(budget),
                                   .check = check_budget, RULES(budget_rules)};

#define COMMON_PARAMETERS                                                                          \
    F_INT(strategy_parameters, "initialBatch", initial_batch, AT_LEAST(1), OTHERWISE("1"),         \
          DOC("nodes in the first batch")),                                                        \
        F_INT(strategy_parameters, "batchThreshold", batch_threshold, BETWEEN(1, 100),             \
              OTHERWISE("100"), DOC("percent that must succeed for a good batch")),                \
        F_OPT_INT(strategy_parameters, "failureThreshold", failure_threshold, AT_LEAST(1),         \
                  DOC("failed batches in a row that stop the rollout")),                           \
        F_INT(strategy_parameters, "safetyLimit", safety_limit, BETWEEN(1, 100), OTHERWISE("50"),  \
              DOC("percent of progress after which failures no longer stop"))

static const field fixed_fields[] = {COMMON_PARAMETERS};
static const field linear_fields[] = {
    COMMON_PARAMETERS,
    F_INT(strategy_parameters, "delta", delta, AT_LEAST(1), OTHERWISE("1"),
          DOC("nodes a batch grows by")),
};
static const field exponential_fields[] = {
    COMMON_PARAMETERS,
    F_INT(strategy_parameters, "growthFactor", growth_factor, AT_LEAST(2), OTHERWISE("2"),
          DOC("factor a batch grows by")),
};
static const shape fixed_shape = {SHAPE_OF(strategy_parameters, fixed_fields),
                                  KEPT_IN(strategy_parameters)};
static const shape linear_shape = {SHAPE_OF(strategy_parameters, linear_fields),
                                   KEPT_IN(strategy_parameters)};
static const shape exponential_shape = {SHAPE_OF(strategy_parameters, exponential_fields),
                                        KEPT_IN(strategy_parameters)};

static const field strategy_fields[] = {
    F_OBJECT(strategy, "fixed", fixed, &fixed_shape),
    F_OBJECT(strategy, "linear", linear, &linear_shape),
    F_OBJECT(strategy, "exponential", exponential, &exponential_shape),
};
static const shape_rule strategy_rules[] = {
    {"[has(self.fixed), has(self.linear), has(self.exponential)].exists_one(given, given)",
     "exactly one of fixed, linear, or exponential must be set"},
};
static const shape strategy_shape = {SHAPE_OF(strategy, strategy_fields), KEPT_IN(strategy),
                                     .check = check_strategy, RULES(strategy_rules)};

static const field default_fields[] = {
    F_STRUCT(compartment, "budget", budget, &budget_shape, REQUIRED),
    F_OBJECT(compartment, "strategy", strategy, &strategy_shape, REQUIRED),
};
static const shape default_shape = {SHAPE_OF(compartment, default_fields), KEPT_IN(compartment)};

static const field compartment_fields[] = {
    F_TEXT(compartment, "name", name, .flags = FIELD_REQUIRED | FIELD_FILLED),
    F_SELECTOR(compartment, "selector", selector, REQUIRED, DOC("which nodes")),
    F_STRUCT(compartment, "budget", budget, &budget_shape, REQUIRED),
    F_OBJECT(compartment, "strategy", strategy, &strategy_shape,
             DOC("none: the batch is the budget")),
};
static const shape_rule compartment_rules[] = {
    {"self.name != '" COMPARTMENT_DEFAULT "'",
     "compartment name \"" COMPARTMENT_DEFAULT "\" is reserved and cannot be used"},
};
static const shape compartment_shape = {SHAPE_OF(compartment, compartment_fields),
                                        KEPT_IN(compartment), RULES(compartment_rules)};

static const field policy_spec_fields[] = {
    F_STRUCT(deployment_policy_spec, "default", default_, &default_shape, REQUIRED,
             DOC("for nodes that no compartment matches")),
    F_LIST(deployment_policy_spec, "compartments", compartments, &compartment_shape,
           AT_MOST(LIMIT_COMPARTMENTS), .list_key = "name"),
    F_BOOL(deployment_policy_spec, "resetBatchStateOnCompletion", reset_batch_state_on_completion,
           OTHERWISE("true"), DOC("begin the next rollout with batch 1")),
    F_BOOL(deployment_policy_spec, "failedNodesHoldBudget", failed_nodes_hold_budget, OURS,
           OTHERWISE("false"), DOC("every failed node counts against its budget")),
};
const shape deployment_policy_spec_shape = {
    SHAPE_OF(deployment_policy_spec, policy_spec_fields),
    KEPT_IN(deployment_policy_spec),
    .check = check_deployment_policy_spec,
};

static const field policy_fields[] = {
    F_IGNORED("apiVersion"),
    F_IGNORED("kind"),
    F_STRUCT(deployment_policy, "metadata", metadata, &metadata_shape, REQUIRED),
    F_STRUCT(deployment_policy, "spec", spec, &deployment_policy_spec_shape, REQUIRED),
};
const shape deployment_policy_shape = {SHAPE_OF(deployment_policy, policy_fields),
                                       KEPT_IN(deployment_policy)};

/* ---- status ---- */

WORDS(skyhook_state_words, SKYHOOK_STATES);
WORDS(stage_words, PACKAGE_STAGES);
WORDS(package_state_words, PACKAGE_STATES);

/* The order of the fields is that of the annotation. */
static const field package_status_fields[] = {
    F_TEXT(package_status, "name", name, .flags = FIELD_ALWAYS),
    F_TEXT(package_status, "version", version, .flags = FIELD_ALWAYS),
    F_TEXT(package_status, "image", image, .flags = FIELD_ALWAYS),
    F_TEXT(package_status, "containerSHA", container_sha),
    F_ENUM(package_status, "stage", stage, &stage_words),
    F_ENUM(package_status, "state", state, &package_state_words),
    F_INT(package_status, "restarts", restarts),
};
static const shape package_status_shape = {SHAPE_OF(package_status, package_status_fields),
                                           KEPT_IN(package_status),
                                           .key_offset = offsetof(package_status, key)};

static const field node_state_whole = F_MAP(node_state, "", packages, &package_status_shape);
static const shape node_state_shape = {.name = "node_state",
                                       .size = sizeof(node_state),
                                       .key_offset = offsetof(node_state, node),
                                       .whole = &node_state_whole};

static const field node_status_whole = F_ENUM(node_status_entry, "", state, &skyhook_state_words);
static const shape node_status_entry_shape = {.name = "node_status_entry",
                                              .size = sizeof(node_status_entry),
                                              .key_offset = offsetof(node_status_entry, node),
                                              .whole = &node_status_whole};

static const field priority_whole = F_TIME(node_priority, "", since);
static const shape priority_shape = {.name = "node_priority",
                                     .size = sizeof(node_priority),
                                     .key_offset = offsetof(node_priority, node),
                                     .whole = &priority_whole};

static const field update_whole = F_TEXT_LIST(config_update, "", keys);
static const shape update_shape = {.name = "config_update",
                                   .size = sizeof(config_update),
                                   .key_offset = offsetof(config_update, package),
                                   .whole = &update_whole};

static const field installed_whole = F_INT(installed_package, "", nodes);
static const shape installed_shape = {.name = "installed_package",
                                      .size = sizeof(installed_package),
                                      .key_offset = offsetof(installed_package, package),
                                      .whole = &installed_whole};

static const field batch_fields[] = {
    F_INT(batch_state, "currentBatch", current_batch),
    F_INT(batch_state, "consecutiveFailures", consecutive_failures),
    F_INT(batch_state, "completedNodes", completed_nodes),
    F_INT(batch_state, "failedNodes", failed_nodes),
    F_BOOL(batch_state, "shouldStop", should_stop),
    F_INT(batch_state, "lastBatchSize", last_batch_size),
    F_BOOL(batch_state, "lastBatchFailed", last_batch_failed),
    F_TEXT_LIST(batch_state, "members", members, OURS, DOC("claims of the open batch")),
    F_TEXT_LIST(batch_state, "retrying", retrying, OURS, DOC("claims of nodes tried again")),
};
static const shape batch_shape = {SHAPE_OF(batch_state, batch_fields), KEPT_IN(batch_state)};

static const field compartment_status_fields[] = {
    F_INT(compartment_status, "matched", matched, .flags = FIELD_ALWAYS),
    F_INT(compartment_status, "ceiling", ceiling, .flags = FIELD_ALWAYS),
    F_INT(compartment_status, "inProgress", in_progress, .flags = FIELD_ALWAYS),
    F_INT(compartment_status, "completed", completed, .flags = FIELD_ALWAYS),
    F_INT(compartment_status, "progressPercent", progress_percent, .flags = FIELD_ALWAYS),
    F_OBJECT(compartment_status, "batchState", batch_state, &batch_shape),
};
static const shape compartment_status_shape = {
    SHAPE_OF(compartment_status, compartment_status_fields), KEPT_IN(compartment_status),
    .key_offset = offsetof(compartment_status, name)};

/* To check hundreds of entries takes a server half of the time of each write, and nobody but the
 * operator writes them. */
#define OF_EACH_NODE .schema = "\"type\":\"object\",\"x-kubernetes-preserve-unknown-fields\":true"

static const field status_fields[] = {
    F_ENUM(skyhook_status, "status", status, &skyhook_state_words),
    F_INT(skyhook_status, "observedGeneration", observed_generation, AT_LEAST(0)),
    F_MAP(skyhook_status, "nodeState", node_state, &node_state_shape, OF_EACH_NODE,
          DOC("by node and PACKAGE|VERSION: name, version, image, stage, state")),
    F_MAP(skyhook_status, "nodeStatus", node_status, &node_status_entry_shape, OF_EACH_NODE,
          DOC("by node: complete, in_progress and so on")),
    F_LIST(skyhook_status, "conditions", conditions, &condition_shape, .list_key = "type"),
    F_TEXT_MAP(skyhook_status, "nodeBootIds", node_boot_ids, OF_EACH_NODE,
               DOC("by node: its bootID")),
    F_MAP(skyhook_status, "nodePriority", node_priority, &priority_shape, OF_EACH_NODE,
          DOC("by node that is worked on or has failed: since when")),
    F_INT(skyhook_status, "nodeOrderOffset", node_order_offset),
    F_MAP(skyhook_status, "configUpdates", config_updates, &update_shape),
    F_MAP(skyhook_status, "compartmentStatuses", compartment_statuses, &compartment_status_shape),
    F_INT(skyhook_status, "nodesInProgress", nodes_in_progress, OTHERWISE("0")),
    F_TEXT(skyhook_status, "completeNodes", complete_nodes, OTHERWISE("0/0")),
    F_TEXT(skyhook_status, "packageList", package_list),
    F_MAP(skyhook_status, "installed", installed, &installed_shape, OURS,
          DOC("by PACKAGE|VERSION with uninstall.enabled: on how many nodes it is")),
    F_TEXT(skyhook_status, "drover", drover, OURS,
           DOC("what else the operator restores of claims and batches after a restart, JSON")),
};
/* A status of hundreds of nodes: to note the owner of each part costs a server more than all else.
 */
static const shape status_shape = {SHAPE_OF(skyhook_status, status_fields), KEPT_IN(skyhook_status),
                                   .atomic = true};

/* ---- Skyhook ---- */

WORDS(sequencing_words, SEQUENCINGS);

static const field options_fields[] = {
    F_BOOL(deployment_policy_options, "resetBatchStateOnCompletion",
           reset_batch_state_on_completion, OTHERWISE("true")),
};
static const shape options_shape = {SHAPE_OF(deployment_policy_options, options_fields),
                                    KEPT_IN(deployment_policy_options)};

static const field legacy_budget_fields[] = {
    F_OPT_INT(budget, "percent", percent, BETWEEN(0, 100)),
    F_OPT_INT(budget, "count", count, AT_LEAST(0)),
};
static const shape_rule legacy_budget_rules[] = {
    {"!has(self.percent) || !has(self.count)",
     "error InterruptionBudget is not valid, both percent and count can not be set at the same "
     "time"},
};
static const shape legacy_budget_shape = {SHAPE_OF(budget, legacy_budget_fields), KEPT_IN(budget),
                                          .check = check_legacy_budget, RULES(legacy_budget_rules)};

static const field spec_fields[] = {
    F_BOOL(skyhook_spec, "serial", serial, OTHERWISE("false"),
           DOC("one package at a time on a node")),
    F_SELECTOR(skyhook_spec, "podNonInterruptLabels", pod_non_interrupt_labels,
               DOC("pods that must finish before a node is interrupted")),
    F_SELECTOR(skyhook_spec, "nodeSelectors", node_selectors, OTHERWISE("{}"),
               DOC("which nodes; none: every node")),
    F_TEXT(skyhook_spec, "deploymentPolicy", deployment_policy, DOC("name of a DeploymentPolicy")),
    F_OBJECT(skyhook_spec, "deploymentPolicyOptions", deployment_policy_options, &options_shape),
    F_OBJECT(skyhook_spec, "interruptionBudget", interruption_budget, &legacy_budget_shape,
             DOC("limit without a policy")),
    F_MAP(skyhook_spec, "packages", packages, &package_shape, AT_MOST(LIMIT_PACKAGES),
          DOC("what is rolled out")),
    F_LIST(skyhook_spec, "additionalTolerations", additional_tolerations, &toleration_shape),
    F_BOOL(skyhook_spec, "runtimeRequired", runtime_required, OTHERWISE("false")),
    F_BOOL(skyhook_spec, "autoTaintNewNodes", auto_taint_new_nodes, OTHERWISE("false")),
    F_INT(skyhook_spec, "priority", priority, AT_LEAST(1), OTHERWISE("200"),
          DOC("lower runs first")),
    F_ENUM(skyhook_spec, "sequencing", sequencing, &sequencing_words, OTHERWISE("node")),
    F_BOOL(skyhook_spec, "pause", pause),
    F_DURATION(skyhook_spec, "drainTimeout", drain_timeout, OURS,
               DOC("longest time a drain may take; none: it waits")),
};
static const shape_rule spec_rules[] = {
    {"!has(self.deploymentPolicy) || self.deploymentPolicy == '' || "
     "!has(self.interruptionBudget) || "
     "!(has(self.interruptionBudget.percent) || has(self.interruptionBudget.count))",
     "deploymentPolicy and interruptionBudget are mutually exclusive"},
    {"!has(self.packages) || self.packages.all(key, key.matches('^[a-z][-a-z0-9]{0,41}[a-z]$'))",
     "a package name is not valid. must match [(?m)^[a-z][-a-z0-9]{0,41}[a-z]$]"},
    {"!has(self.packages) || self.packages.all(key, !has(self.packages[key].name) || "
     "self.packages[key].name in ['', key])",
     "error a package's name was set to another than its key. Do not explicitly set the name in "
     "the package's definition"},
    {"!has(self.packages) || self.packages.all(key, !has(self.packages[key].dependsOn) || "
     "self.packages[key].dependsOn.all(other, other != key && other in self.packages && "
     "self.packages[other].version == self.packages[key].dependsOn[other]))",
     "error graph is not valid, missing: allowed in dependsOn are other packages of this Skyhook, "
     "with the versions they have"},
};
static const shape spec_shape = {SHAPE_OF(skyhook_spec, spec_fields), KEPT_IN(skyhook_spec),
                                 .check = check_skyhook_spec, RULES(spec_rules)};

static const field skyhook_fields[] = {
    F_IGNORED("apiVersion"),
    F_IGNORED("kind"),
    F_STRUCT(skyhook, "metadata", metadata, &metadata_shape, REQUIRED),
    F_STRUCT(skyhook, "spec", spec, &spec_shape),
    F_STRUCT(skyhook, "status", status, &status_shape),
};
/* Packages of before that can be uninstalled and are on nodes; "key" is one's name. */
#define OF_INSTALLED(cel)                                                                          \
    "!has(oldSelf.status) || !has(oldSelf.status.installed) || !has(oldSelf.spec) || "             \
    "!has(oldSelf.spec.packages) || oldSelf.spec.packages.all(key, "                               \
    "!has(oldSelf.spec.packages[key].uninstall) || "                                               \
    "!oldSelf.spec.packages[key].uninstall.enabled || "                                            \
    "!(key + '|' + oldSelf.spec.packages[key].version in oldSelf.status.installed) || " cel ")"
/* Their first three numbers are compared: what stands behind them tells previews apart. */
#define IS_WANTED "(has(self.spec) && has(self.spec.packages) && key in self.spec.packages)"
static const shape_rule skyhook_rules[] = {
    {"self.metadata.name.size() <= 53",
     "allowed as a name: 53 characters, since annotations of nodes have it in their keys"},
    {OF_INSTALLED(IS_WANTED),
     "a package that is on nodes has uninstall.enabled=true; set uninstall.apply=true and wait for "
     "completion before removing from spec"},
    {OF_INSTALLED("!" IS_WANTED
                  " || ![[oldSelf.spec.packages[key].version, self.spec.packages[key].version]"
                  ".map(v, v.findAll('[0-9]+', 3).map(n, int(n)) + [0, 0, 0])].exists(p, "
                  "p[1][0] < p[0][0] || (p[1][0] == p[0][0] && (p[1][1] < p[0][1] || "
                  "(p[1][1] == p[0][1] && p[1][2] < p[0][2]))))"),
     "downgrade not allowed \xE2\x80\x94 set uninstall.apply=true first, wait for uninstall to "
     "complete, then change version; the package is on nodes and has uninstall.enabled=true"},
};
const shape skyhook_shape = {SHAPE_OF(skyhook, skyhook_fields), KEPT_IN(skyhook),
                             .check = check_skyhook, RULES(skyhook_rules)};

/* ---- small questions ---- */

const package *skyhook_package(const skyhook *s, str name)
{
    for (size_t i = 0; i < s->spec.packages.len; i++)
        if (str_eq(s->spec.packages.at[i].name, name))
            return &s->spec.packages.at[i];
    return NULL;
}

bool skyhook_paused(const skyhook *s)
{
    return str_eq(label_get(s->metadata.annotations, STR("skyhook.nvidia.com/pause")), STR("true"));
}

bool skyhook_disabled(const skyhook *s)
{
    str value = label_get(s->metadata.annotations, STR("skyhook.nvidia.com/disable"));
    return str_eq(value, STR("true"));
}

/* ---- the annotation ---- */

bool node_state_parse(arena *a, str text, node_state *ret, err *error)
{
    return shape_parse(a, &node_state_shape, text, ret, error);
}

void node_state_write(const node_state *s, buf *out)
{
    if (s->packages.at)
        shape_write(&node_state_shape, s, out, SHAPE_WRITE_GO_ESCAPES);
    else
        buf_addz(out, "{}");
}
