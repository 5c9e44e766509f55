/* SPDX-License-Identifier: Apache-2.0 */
#include "support/check.h"

#include "model/recurrence.h"
#include "model/semver.h"
#include "support/documents.h"

/* The problems of a text, one a line. */
static void check_problems(const char *text, const char *want)
{
    loaded l = load_text("f", str_of(text));
    buf got = problems_as_text(l.found);
    if (!str_eq(buf_str(&got), str_of(want)))
        print_error("of:\n%s\n", text);
    check_text(buf_str(&got), want);
    buf_done(&got);
    loaded_free(&l);
}

#define SKYHOOK                                                                                    \
    "apiVersion: skyhook.nvidia.com/v1alpha1\nkind: Skyhook\nmetadata: {name: s}\nspec:\n"
#define POLICY                                                                                     \
    "apiVersion: skyhook.nvidia.com/v1alpha1\nkind: DeploymentPolicy\nmetadata: {name: "           \
    "p}\nspec:\n"
#define BUNDLE "apiVersion: fleet.cattle.io/v1alpha1\nkind: Bundle\nmetadata: {name: b}\nspec:\n"
#define RULES                                                                                      \
    "apiVersion: drover.dev/v1alpha1\nkind: RolloutPolicy\nmetadata: {name: r}\nspec:\n  rules:\n"
#define DEPLOYMENT                                                                                 \
    "apiVersion: drover.dev/v1alpha1\nkind: Deployment\nmetadata: {name: d}\nspec:\n  "            \
    "resourceSelector: 'true'\n"

static void test_headers(void **state)
{
    (void)state;
    check_problems("kind: Node\n", "f:1: Node: apiVersion: found nothing, but it is required\n");
    check_problems("apiVersion: v1\n", "f:1: kind: found nothing, but it is required\n");
    check_problems("apiVersion: v1\nkind: Node\n",
                   "f:1: Node: metadata: found nothing, but it is required\n");
    check_problems("apiVersion: v1\nkind: Node\nmetadata: {}\n",
                   "f:3: Node: metadata.name: found nothing, but it is required\n");
    check_problems(
        "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\n",
        "warning: f:2: Secret/s: kind: found \"Secret\", which Drover does not read; it is left "
        "out\n");
    check_problems(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: s}\n",
        "warning: f:1: Deployment/s: apiVersion: found \"apps/v1\", Drover reads this kind as "
        "drover.dev/v1alpha1; it is left out\n");
    check_problems(
        "apiVersion: v1\nkind: Node\nmetadata: {name: A_b}\n",
        "f:3: Node/A_b: metadata.name: found text \"A_b\", allowed a name: lower case letters, "
        "digits, \"-\" and \".\", at most 253: byte 1 is not allowed there\n");
}

/* Limits that definitions of kinds have, too. */
static void test_limits_of_schemas(void **state)
{
    (void)state;
    buf text = BUF(64 * 1024);
    buf_addz(&text, SKYHOOK "  packages:\n    all:\n      version: '1'\n      image: x\n"
                            "      dependsOn: {");
    for (unsigned i = 0; i < LIMIT_DEPENDENCIES + 1; i++)
        buf_addf(&text, "%sp%uq: '1'", i == 0 ? "" : ", ", i);
    buf_addz(&text, "}\n");
    check_problems(text.ptr, "f:9: Skyhook/s: spec.packages.all.dependsOn: found 101 entries, "
                             "allowed 100\n");
    buf_clear(&text);
    buf_addz(&text, SKYHOOK "  packages:\n    all:\n      version: '1'\n      image: x\n"
                            "      configMap: {a: b}\n      configInterrupts: {");
    for (unsigned i = 0; i < LIMIT_CONFIG_INTERRUPTS + 1; i++)
        buf_addf(&text, "%sa%.*s: {type: noop}", i == 0 ? "" : ", ", (int)i + 1,
                 "*****************************************************************************"
                 "*****************************************************************************");
    buf_addz(&text, "}\n");
    check_problems(text.ptr, "f:10: Skyhook/s: spec.packages.all.configInterrupts: found 101 "
                             "entries, allowed 100\n");
    buf_done(&text);
}

static void test_unknown_fields(void **state)
{
    (void)state;
    check_problems(
        SKYHOOK "  prioritty: 5\n",
        "warning: f:5: Skyhook/s: spec.prioritty: found a field that Drover does not know; it is "
        "kept; did you mean \"priority\"?\n");
    check_problems(
        RULES "    - retry: {maxRetrys: 3, maxRetries: 1}\n",
        "f:6: RolloutPolicy/r: spec.rules[0].retry.maxRetrys: found an unknown field; did you "
        "mean \"maxRetries\"?\n");
    check_problems(
        RULES "    - anyApproval: {minApprovals: 1, colour: red}\n",
        "f:6: RolloutPolicy/r: spec.rules[0].anyApproval.colour: found an unknown field, allowed "
        "minApprovals\n");
    check_problems(
        RULES "    - rolloutStrategy: {maxUnavailable: 1, colour: red}\n",
        "f:6: RolloutPolicy/r: spec.rules[0].rolloutStrategy.colour: found an unknown field, "
        "allowed maxUnavailable, maxUnavailablePartitions, autoPartitionSize, "
        "autoPartitionThreshold, maxNew, partitions, soakSeconds, failureThreshold, "
        "offlineAfterSeconds\n");
    check_problems(
        "apiVersion: drover.dev/v1alpha1\nkind: Resource\nmetadata: {name: r}\nspecs: {}\n",
        "f:4: Resource/r: specs: found an unknown field; did you mean \"spec\"?\n");
    check_problems("apiVersion: v1\nkind: Node\nmetadata: {name: a, odd: 1}\nodd: {}\n", "");
}

static void test_types(void **state)
{
    (void)state;
    check_problems(
        SKYHOOK "  priority: high\n  serial: 1\n  sequencing: some\n  deploymentPolicy: 5\n",
        "f:5: Skyhook/s: spec.priority: found text \"high\", allowed a whole number of at least 1\n"
        "f:6: Skyhook/s: spec.serial: found number 1, allowed true or false\n"
        "f:7: Skyhook/s: spec.sequencing: found text \"some\", allowed node, all\n"
        "f:8: Skyhook/s: spec.deploymentPolicy: found number 5, allowed text (put it in quotes)\n");
    check_problems(
        SKYHOOK "  priority: 0\n  packages: []\n  drainTimeout: 5 minutes\n",
        "f:5: Skyhook/s: spec.priority: found number 0, allowed a whole number of at least 1\n"
        "f:6: Skyhook/s: spec.packages: found a list, allowed an object whose values are objects\n"
        "f:7: Skyhook/s: spec.drainTimeout: found \"5 minutes\", allowed a duration such as 90s, "
        "5m or 1h30m or 7d\n");
    check_problems(
        SKYHOOK
        "  nodeSelectors: {matchLabels: {a: 1}, matchExpressions: [{key: a, operator: Is}]}\n",
        "f:5: Skyhook/s: spec.nodeSelectors.matchLabels.a: found number 1, allowed text (put it in "
        "quotes)\n");
    check_problems(SKYHOOK "  nodeSelectors: {matchExpressions: [{key: a, operator: Is}]}\n",
                   "f:5: Skyhook/s: spec.nodeSelectors.matchExpressions[0].operator: found text "
                   "\"Is\", allowed "
                   "In, NotIn, Exists, DoesNotExist\n");
}

static void test_skyhook(void **state)
{
    (void)state;
    check_problems(SKYHOOK "  interruptionBudget: {percent: 5, count: 5}\n",
                   "f:5: Skyhook/s: spec.interruptionBudget: found percent and count, allowed one "
                   "of the two\n");
    check_problems(
        SKYHOOK "  interruptionBudget: {percent: 5}\n  deploymentPolicy: p\n",
        "f:5: Skyhook/s: spec.interruptionBudget: found a budget beside deploymentPolicy, allowed "
        "one of the two\n");
    check_problems(SKYHOOK "  interruptionBudget: {}\n  deploymentPolicy: p\n", "");
    check_problems(SKYHOOK "  packages:\n    a1: {version: 1.2.3, image: x}\n",
                   "f:6: Skyhook/s: spec.packages.a1: found the package name \"a1\", allowed 2 to "
                   "43 lower case "
                   "letters, digits and \"-\" that begin and end with a letter\n");
    check_problems(SKYHOOK "  packages:\n    ab: {name: cd, version: 01.2.3, image: x}\n",
                   "f:6: Skyhook/s: spec.packages.ab.version: found text \"01.2.3\", allowed a "
                   "semantic version: "
                   "it is not MAJOR.MINOR.PATCH without leading zeros\n");
    check_problems(
        SKYHOOK "  packages:\n    ab: {name: cd, version: 1.2.3, image: x}\n",
        "f:6: Skyhook/s: spec.packages.ab.name: found \"cd\", allowed the package's key \"ab\" or "
        "nothing\n");
    check_problems(
        SKYHOOK "  packages:\n    ab: {version: 1.2.3, image: 'h:5000/x:2'}\n",
        "f:6: Skyhook/s: spec.packages.ab.image: found the tag \"2\", allowed none: the version "
        "\"1.2.3\" is the image's tag\n");
    check_problems(
        SKYHOOK
        "  packages:\n    ab: {version: 1.2.3, image: x, configMap: {k: v},\n"
        "      configInterrupts: {j: {type: noop}, 'z*': {type: noop}, 'k*': {type: noop}}}\n",
        "f:7: Skyhook/s: spec.packages.ab.configInterrupts.j: found no such key in configMap, "
        "allowed "
        "keys of configMap and patterns with * that match one\n"
        "f:7: Skyhook/s: spec.packages.ab.configInterrupts.z*: found a pattern that matches no key "
        "of "
        "configMap, allowed keys of configMap and patterns with * that match one\n");
    check_problems(
        SKYHOOK "  packages:\n    ab: {version: 1.2.3, image: x, uninstall: {apply: true}}\n",
        "f:6: Skyhook/s: spec.packages.ab.uninstall.apply: found true, allowed only together with "
        "enabled: true\n");
    check_problems(
        SKYHOOK "  packages:\n    ab: {version: 1.2.3, image: x, resources: {cpuLimit: 1}}\n",
        "f:6: Skyhook/s: spec.packages.ab.resources: found 1 of the four, allowed all or none of "
        "cpuRequest, cpuLimit, memoryRequest, memoryLimit\n");
    check_problems(
        SKYHOOK
        "  packages:\n    ab: {version: 1.2.3, image: x, resources: {cpuLimit: 1, cpuRequest: "
        "1100m, memoryLimit: 1Gi, memoryRequest: 1000M}}\n",
        "f:6: Skyhook/s: spec.packages.ab.resources.cpuLimit: found 1, allowed at least "
        "cpuRequest, "
        "which is 1100m\n");
}

static void test_package_graph(void **state)
{
    (void)state;
    check_problems(
        SKYHOOK "  packages:\n"
                "    aa: {version: 1.2.3, image: x, dependsOn: {bb: 1.0.0, cc: 1.0.0}}\n"
                "    bb: {version: 2.0.0, image: x}\n",
        "f:6: Skyhook/s: spec.packages.aa.dependsOn.bb: found version \"1.0.0\", allowed "
        "\"2.0.0\", "
        "which this Skyhook has\n"
        "f:6: Skyhook/s: spec.packages.aa.dependsOn.cc: found a package that is not there, allowed "
        "those of this Skyhook\n");
    check_problems(
        SKYHOOK "  packages:\n"
                "    aa: {version: 1.0.0, image: x, dependsOn: {bb: 1.0.0}}\n"
                "    bb: {version: 1.0.0, image: x, dependsOn: {cc: 1.0.0}}\n"
                "    cc: {version: 1.0.0, image: x, dependsOn: {bb: 1.0.0}}\n",
        "f:7: Skyhook/s: spec.packages.bb.dependsOn: found packages that wait for each other "
        "(bb -> cc -> bb), allowed no cycle\n");
    check_problems(
        SKYHOOK "  packages: {aa: {version: 1.0.0, image: x, dependsOn: {aa: 1.0.0}}}\n",
        "f:5: Skyhook/s: spec.packages.aa.dependsOn: found packages that wait for each other "
        "(aa -> aa), allowed no cycle\n");
}

static void test_policy(void **state)
{
    (void)state;
    check_problems(POLICY "  default: {budget: {}, strategy: {}}\n",
                   "f:5: DeploymentPolicy/p: spec.default.budget: found neither, allowed exactly "
                   "one of percent "
                   "and count\n"
                   "f:5: DeploymentPolicy/p: spec.default.strategy: found 0 strategies, allowed "
                   "exactly one of "
                   "fixed, linear, exponential\n");
    check_problems(
        POLICY "  default: {budget: {percent: 101}}\n",
        "f:5: DeploymentPolicy/p: spec.default.budget.percent: found number 101, allowed a whole "
        "number from 1 to 100\n"
        "f:5: DeploymentPolicy/p: spec.default.strategy: found nothing, but it is required\n");
    check_problems(
        POLICY
        "  default: {budget: {count: 1}, strategy: {fixed: {}}}\n  compartments:\n"
        "    - {name: __default__, selector: {}, budget: {count: 1}}\n"
        "    - {name: a, selector: {matchLabels: {x: a}}, budget: {count: 1}}\n"
        "    - {name: a, selector: {matchExpressions: [{key: x, operator: In, values: [a]}]},\n"
        "       budget: {count: 1}}\n",
        "f:7: DeploymentPolicy/p: spec.compartments[0].name: found the reserved name __default__, "
        "allowed any other\n"
        "f:9: DeploymentPolicy/p: spec.compartments[2].name: found the name \"a\" twice, allowed "
        "once\n"
        "f:9: DeploymentPolicy/p: spec.compartments[2].selector: found the same selector as that "
        "of "
        "compartment \"a\", allowed another\n");
}

static void test_policy_defaults(void **state)
{
    (void)state;
    loaded l = load_text(
        "f", STR(POLICY "  default: {budget: {percent: 10}, strategy: {linear: {}}}\n"
                        "  compartments: [{name: a, selector: {}, budget: {count: 2}}]\n"));
    assert_true(l.good);
    const deployment_policy_spec *p = &l.objects->at[0].deployment_policy->spec;
    assert_true(p->reset_batch_state_on_completion);
    assert_false(p->failed_nodes_hold_budget);
    check_text(p->default_.name, "__default__");
    assert_int_equal(p->default_.strategy->kind, STRATEGY_LINEAR);
    const strategy_parameters *with = p->default_.strategy->with;
    assert_int_equal(with->initial_batch, 1);
    assert_int_equal(with->batch_threshold, 100);
    assert_int_equal(with->safety_limit, 50);
    assert_int_equal(with->delta, 1);
    assert_false(with->failure_threshold.set);
    assert_null(p->compartments.at[0].strategy);
    assert_true(selector_match(p->compartments.at[0].selector.compiled, (label_set){0}));
    loaded_free(&l);
    l = load_text("f",
                  STR(SKYHOOK "  packages: {ab: {version: 1.2.3, image: 'h:5000/x/y:1.2.3'}}\n"));
    assert_true(l.good);
    const skyhook_spec *s = &l.objects->at[0].skyhook->spec;
    assert_int_equal(s->priority, 200);
    assert_int_equal(s->sequencing, SEQUENCING_NODE);
    assert_true(selector_match(s->node_selectors.compiled, (label_set){0}));
    assert_null(s->pod_non_interrupt_labels.compiled);
    check_text(s->packages.at[0].name, "ab");
    check_text(s->packages.at[0].image, "h:5000/x/y");
    loaded_free(&l);
}

static void test_fleet(void **state)
{
    (void)state;
    check_problems(
        BUNDLE
        "  rolloutStrategy:\n    maxUnavailable: 25 %\n    autoPartitionSize: '0'\n"
        "    maxUnavailablePartitions: -3\n    partitions: [{name: x, maxUnavailable: foo}]\n",
        "f:6: Bundle/b: spec.rolloutStrategy.maxUnavailable: found text \"25 %\", allowed a whole "
        "number or a percentage such as \"25%\": before the percent sign must stand a number of at "
        "most nine decimals\n"
        "f:7: Bundle/b: spec.rolloutStrategy.autoPartitionSize: found text \"0\", allowed a whole "
        "number or a percentage such as \"25%\": a number in quotes must be whole, above 0 and "
        "below 2^63\n"
        "warning: f:8: Bundle/b: spec.rolloutStrategy.maxUnavailablePartitions: found number -3, "
        "which "
        "counts as 0\n"
        "f:9: Bundle/b: spec.rolloutStrategy.partitions[0].maxUnavailable: found text \"foo\", "
        "allowed "
        "a whole number or a percentage such as \"25%\": a number in quotes must be whole, "
        "above 0 and below 2^63\n");
    loaded l = load_text("f", STR(BUNDLE "  targets: [{clusterGroup: a}, {name: x}]\n"));
    const bundle_spec *b = &l.objects->at[0].bundle->spec;
    assert_int_equal(b->rollout_strategy.max_new, 50);
    assert_int_equal(b->rollout_strategy.auto_partition_threshold, 200);
    assert_int_equal(int_or_percent_limit(b->rollout_strategy.auto_partition_size, 230), 57);
    assert_int_equal(b->rollout_strategy.max_unavailable_partitions.kind, AMOUNT_COUNT);
    check_text(b->targets.at[0].name, "target000");
    check_text(b->targets.at[1].name, "x");
    loaded_free(&l);
}

static void test_fleet_yaml(void **state)
{
    (void)state;
    loaded l = load_text(
        "some/app/fleet.yaml",
        STR("name: app\ntargets: [{clusterName: one}]\ntargetCustomizations: [{name: c}]\n"
            "overrideTargets: [{clusterGroup: g}]\n"));
    assert_true(l.good);
    bundle *b = fleet_yaml_bundle(l.objects->arena, l.objects->at[0].fleet_yaml, STR("other"));
    check_text(b->metadata.name, "app");
    assert_int_equal(b->spec.targets.len, 3);
    check_text(b->spec.targets.at[2].name, "target002");
    check_text(b->spec.targets.at[2].match.cluster_group, "g");
    assert_int_equal(b->spec.target_restrictions.len, 1);
    loaded_free(&l);
    l = load_text("fleet.yaml", STR("helm: {chart: x}\n"));
    b = fleet_yaml_bundle(l.objects->arena, l.objects->at[0].fleet_yaml, STR("other"));
    check_text(b->metadata.name, "other");
    check_text(b->spec.targets.at[0].name, "default");
    check_text(b->spec.targets.at[0].match.cluster_group, "default");
    assert_int_equal(b->spec.target_restrictions.len, 0);
    loaded_free(&l);
}

static void test_limits(void **state)
{
    (void)state;
    static const struct {
        int64_t count;
        const char *text;
        int64_t want;
    } rows[] = {
        {10, "0%", 1},      {10, "-10%", 1}, {5, "10%", 1},    {11, "100%", 11},   {10, "150%", 10},
        {10, "49%", 4},     {4, "49%", 1},   {230, "25%", 57}, {1000, "49%", 490}, {200, "0.5%", 1},
        {200, "33.3%", 66}, {3, "66.6%", 1}, {3, "66.7%", 2},  {1000, "0.29%", 2}, {10, "7", 7},
        {10, "25", 25},     {10, "+7", 7},   {0, "15", 1},     {-15, "15", 1},
    };
    int_or_percent v;
    err error;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        check_msg(int_or_percent_parse(str_of(rows[i].text), &v, &error), "%s", rows[i].text);
        int64_t got = int_or_percent_limit(v, rows[i].count);
        check_msg(got == rows[i].want, "%s of %lld: %lld", rows[i].text, (long long)rows[i].count,
                  (long long)got);
    }
    static const char *const bad[] = {"0", "-4",  "foo",  "25 %",   "",
                                      "%", "1.5", "1e3%", "1.2.3%", "+"};
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        check_msg(!int_or_percent_parse(str_of(bad[i]), &v, &error), "%s", bad[i]);
    const int_or_percent count = {.kind = AMOUNT_COUNT, .value = 15};
    assert_int_equal(int_or_percent_limit(count, 10), 10);
    assert_int_equal(int_or_percent_limit((int_or_percent){.kind = AMOUNT_COUNT, .value = -3}, 10),
                     0);
    assert_int_equal(int_or_percent_limit((int_or_percent){0}, 50), 50);
}

static void test_rules(void **state)
{
    (void)state;
    check_problems(
        RULES "    - {}\n    - {retry: {maxRetries: 1}, anyApproval: {minApprovals: 1}}\n",
        "f:6: RolloutPolicy/r: spec.rules[0]: found 0 kinds of rule, allowed exactly one\n"
        "f:7: RolloutPolicy/r: spec.rules[1]: found 2 kinds of rule, allowed exactly one\n");
    check_problems(RULES "    - deploymentBracket: {deploymentSelector: 'true'}\n",
                   "f:6: RolloutPolicy/r: spec.rules[0].deploymentBracket.readinessWindowSeconds: "
                   "found nothing, "
                   "required unless readinessMode is immediate\n");
    check_problems(
        RULES "    - deploymentBracket: {deploymentSelector: 'true', readinessMode: immediate,\n"
              "        unchangedMemberStrategy: require_all}\n",
        "f:7: RolloutPolicy/r: spec.rules[0].deploymentBracket.unchangedMemberStrategy: found "
        "require_all, allowed skip_unchanged or redeploy_current when readinessMode is "
        "immediate\n");
    check_problems(RULES "    - gradualRollout: {rolloutType: linear, timeScaleInterval: -1}\n",
                   "f:6: RolloutPolicy/r: spec.rules[0].gradualRollout.timeScaleInterval: found "
                   "number -1, allowed "
                   "a whole number from 0 to 2147483647\n");
    check_problems(RULES "    - resourceConcurrency: {groupSelector: 'true', limitType: "
                         "percentage, limitValue: 101}\n",
                   "f:6: RolloutPolicy/r: spec.rules[0].resourceConcurrency.limitValue: found 101 "
                   "percent, allowed "
                   "0 to 100\n");
    check_problems(
        RULES "    - deploymentWindow: {rrule: FREQ=SOMETIMES, durationMinutes: 5, timezone: "
              "Mars/Base}\n",
        "f:6: RolloutPolicy/r: spec.rules[0].deploymentWindow.rrule: found text "
        "\"FREQ=SOMETIMES\", "
        "allowed a recurrence rule such as FREQ=WEEKLY;BYDAY=SA: RFC 5545 does not allow it\n"
        "f:6: RolloutPolicy/r: spec.rules[0].deploymentWindow.timezone: found text \"Mars/Base\", "
        "allowed "
        "a time zone such as Europe/Berlin: this system does not know it\n");
    check_problems(RULES "    - retry: {maxRetries: 1, retryOnStatuses: [failure, broken]}\n",
                   "f:6: RolloutPolicy/r: spec.rules[0].retry.retryOnStatuses[1]: found text "
                   "\"broken\", allowed "
                   "pending, queued, inProgress, actionRequired, successful, failure, "
                   "cancelled, skipped, "
                   "invalidJobAgent, invalidIntegration, externalRunNotFound\n");
    check_problems(
        RULES "    - {id: a, retry: {maxRetries: 1}}\n    - {id: a, retry: {maxRetries: 1}}\n",
        "f:7: RolloutPolicy/r: spec.rules[1].id: found the id \"a\" twice, allowed once\n");
    loaded l = load_text(
        "f", STR(RULES "    - anyApproval: {minApprovals: 1}\n    - retry: {maxRetries: 1}\n"
                       "    - retry: {maxRetries: 2}\n"));
    check_text(l.objects->at[0].rollout_policy->spec.rules.at[2].id, "r/retry/1");
    loaded_free(&l);
}

static void test_expressions(void **state)
{
    (void)state;
    loaded l = load_text("f", STR(RULES "    - versionSelector: {selector: 'version.tag == '}\n"));
    assert_false(l.good);
    buf got = problems_as_text(l.found);
    check_has_at(buf_str(&got),
                 STR("f:6: RolloutPolicy/r: spec.rules[0].versionSelector.selector: found an "
                     "expression that does not compile, at 1:"),
                 __FILE__, __LINE__);
    buf_done(&got);
    loaded_free(&l);
    l = load_text("f", STR(RULES "    - versionSelector: {selector: '1 + 1'}\n"));
    assert_false(l.good);
    loaded_free(&l);
    l = load_text("f",
                  STR(RULES "    - deploymentDependency: {dependsOn: 'resource.name == \"a\"'}\n"));
    assert_false(l.good);
    loaded_free(&l);
}

static void test_jobs(void **state)
{
    (void)state;
    check_problems(
        DEPLOYMENT "  job: {}\n",
        "f:6: Deployment/d: spec.job: found 0 kinds, allowed exactly one of command, pull, manual, "
        "simulated\n");
    check_problems(DEPLOYMENT "  job: {command: {run: []}}\n",
                   "f:6: Deployment/d: spec.job.command.run: found an empty list, allowed at least "
                   "one entry\n");
    check_problems(DEPLOYMENT
                   "  job: {command: {run: [a, '{{resource.colour}}', '{{version.tag']}}\n",
                   "f:6: Deployment/d: spec.job.command.run[1]: found {{resource.colour}}, allowed "
                   "resource.name, "
                   "resource.config.KEY, resource.metadata.KEY, version.tag, version.config.KEY, "
                   "environment.name, deployment.name\n"
                   "f:6: Deployment/d: spec.job.command.run[2]: found {{ without }}\n");
    check_problems(DEPLOYMENT "  job: {pull: {a: 1}}\n  timeoutSeconds: 0\n",
                   "f:6: Deployment/d: spec.job.pull.a: found an unknown field, allowed none\n"
                   "f:7: Deployment/d: spec.timeoutSeconds: found number 0, allowed a whole number "
                   "of at least 1\n");
}

static void test_semver(void **state)
{
    (void)state;
    static const char *const valid[] = {"1",        "1.2",         "1.2.3",
                                        "v1.2.3",   "1.2.3-test",  "2024.7.7-test",
                                        "1.2.3+b1", "1.2.3-a.1+b", "0.0.0"};
    static const char *const invalid[] = {"",       "latest",     "1.2.3.4", "01.2.3", "2024.07.07",
                                          "1.2-rc", "1.",         "v",       "1.2.3-", "1.2.3-01",
                                          "1.2.3+", "1.2.3-a..b", "1.2.3 "};
    for (size_t i = 0; i < COUNT_OF(valid); i++)
        check_msg(semver_valid(str_of(valid[i])), "%s", valid[i]);
    for (size_t i = 0; i < COUNT_OF(invalid); i++)
        check_msg(!semver_valid(str_of(invalid[i])), "%s", invalid[i]);
    static const char *const rising[] = {"latest",      "1.0.0-1",
                                         "1.0.0-2",     "1.0.0-10",
                                         "1.0.0-alpha", "1.0.0-alpha.1",
                                         "1.0.0-beta",  "1.0.0",
                                         "1.0.1",       "1.2",
                                         "1.10",        "3.2.3-bogus",
                                         "3.2.3",       "100000000000000000000000"};
    for (size_t i = 1; i < COUNT_OF(rising); i++) {
        check_msg(semver_cmp(str_of(rising[i - 1]), str_of(rising[i])) == -1, "%s", rising[i]);
        check_msg(semver_cmp(str_of(rising[i]), str_of(rising[i - 1])) == 1, "%s", rising[i]);
    }
    assert_int_equal(semver_cmp(STR("1.2"), STR("v1.2.0+x")), 0);
}

static void test_quantities(void **state)
{
    (void)state;
    static const char *const rising[] = {"-1",  "0",   "1n",  "1m", "500m", "0.6", "1",  "1k",
                                         "1Ki", "1e6", "1Mi", "1G", "1Gi",  "2E",  "4Ei"};
    quantity a;
    quantity b;
    err error;
    for (size_t i = 1; i < COUNT_OF(rising); i++) {
        check_msg(quantity_parse(str_of(rising[i - 1]), &a, &error) &&
                      quantity_parse(str_of(rising[i]), &b, &error) && quantity_cmp(a, b) < 0,
                  "%s", rising[i]);
    }
    static const char *const bad[] = {"",   "x",    "1x",  "1 Gi",  "Gi",
                                      "1e", "1e99", "9Ei", "1.2.3", "--1"};
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        check_msg(!quantity_parse(str_of(bad[i]), &a, &error), "%s", bad[i]);
}

/* The text of the annotation is compared literally by those who wrote it before us. */
static void test_node_state(void **state)
{
    (void)state;
    static const char text[] = "{\"dax|1.2.3\":{\"name\":\"dax\",\"version\":\"1.2.3\",\"image\":"
                               "\"ghcr.io/nvidia/skyhook/agentless\","
                               "\"stage\":\"post-interrupt\",\"state\":\"complete\"},\"zeb|2.1.4\":"
                               "{\"name\":\"zeb\",\"version\":\"2.1.4\","
                               "\"image\":\"\",\"containerSHA\":\"a\\u003cb\\u0026c\\u003e\","
                               "\"stage\":\"apply\",\"state\":\"erroring\","
                               "\"restarts\":2}}";
    arena *a = arena_new(0);
    node_state s;
    err error;
    assert_true(node_state_parse(a, str_of(text), &s, &error));
    assert_int_equal(s.packages.len, 2);
    check_text(s.packages.at[1].container_sha, "a<b&c>");
    assert_int_equal(s.packages.at[1].state, PACKAGE_ERRORING);
    buf out = BUF(10000);
    node_state_write(&s, &out);
    check_text(buf_str(&out), text);
    buf_done(&out);
    assert_false(node_state_parse(a, STR("{\"a|1\":{\"stage\":\"nowhere\"}}"), &s, &error));
    check_err_has(error, "stage: found text \"nowhere\"");
    assert_false(node_state_parse(a, STR("{\"a|1\":"), &s, &error));
    assert_false(node_state_parse(a, STR("{\"a\":{},\"a\":{}}"), &s, &error));
    assert_true(node_state_parse(a, STR("{}"), &s, &error));
    arena_free(a);
}

static void test_recurrence(void **state)
{
    (void)state;
    recurrence r;
    err error;
    assert_true(recurrence_parse(STR("FREQ=DAILY;BYHOUR=2"), &r, &error));
    check_text(str_of(r.rule), "FREQ=DAILY;BYHOUR=2");
    check_text(str_of(r.start), "");
    assert_true(recurrence_parse(
        STR("DTSTART;TZID=Europe/Berlin:20260101T020000\nRRULE:FREQ=WEEKLY"), &r, &error));
    check_text(str_of(r.rule), "FREQ=WEEKLY");
    check_text(str_of(r.start), "20260101T020000");
    check_text(str_of(r.zone), "Europe/Berlin");
    assert_true(recurrence_parse(STR("DTSTART=20260101T020000Z;FREQ=DAILY"), &r, &error));
    check_text(str_of(r.start), "20260101T020000Z");
    static const char *const bad[] = {"",
                                      "FREQ=",
                                      "DTSTART:20260101T000000Z",
                                      "FREQ=DAILY\nFREQ=DAILY",
                                      "DTSTART:yesterday\nFREQ=DAILY",
                                      "every day",
                                      "FREQ=DAILY;BYHOUR=99",
                                      "DTSTART;TZID=No/Where:20260101T020000\nFREQ=DAILY"};
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        check_msg(!recurrence_parse(str_of(bad[i]), &r, &error), "%s", bad[i]);
    assert_true(timezone_known(STR("UTC")));
    assert_true(timezone_known(STR("America/New_York")));
    assert_false(timezone_known(STR("../../etc/passwd")));
    assert_false(timezone_known(STR("/etc/passwd")));
}

static void test_tolerations(void **state)
{
    (void)state;
    const taint t = {.key = STR("a"), .value = STR("x"), .effect = TAINT_NO_SCHEDULE};
    assert_true(toleration_covers(&(toleration){.op = TOLERATION_EXISTS, .key = STR_EMPTY}, &t));
    assert_true(toleration_covers(&(toleration){.key = STR("a"), .value = STR("x")}, &t));
    assert_false(toleration_covers(&(toleration){.key = STR("a"), .value = STR("z")}, &t));
    assert_false(toleration_covers(&(toleration){.key = STR("b"), .op = TOLERATION_EXISTS}, &t));
    assert_false(toleration_covers(
        &(toleration){.key = STR("a"), .op = TOLERATION_EXISTS, .effect = TAINT_NO_EXECUTE}, &t));
}

static void test_small_questions(void **state)
{
    (void)state;
    loaded l = load_text(
        "f", STR("apiVersion: skyhook.nvidia.com/v1alpha1\nkind: Skyhook\nmetadata:\n  name: a\n"
                 "  annotations: {skyhook.nvidia.com/pause: 'true'}\n"
                 "spec: {packages: {aa: {version: 1.0.0, image: x}}}\n"
                 "---\napiVersion: skyhook.nvidia.com/v1alpha1\nkind: Skyhook\nmetadata:\n"
                 "  name: b\n  annotations: {skyhook.nvidia.com/pause: 'yes',"
                 " skyhook.nvidia.com/disable: 'true'}\nspec: {}\n"
                 "---\napiVersion: v1\nkind: Node\nmetadata: {name: up}\n"
                 "status: {conditions: [{type: DiskPressure, status: 'False'},"
                 " {type: Ready, status: 'True'}]}\n"
                 "---\napiVersion: v1\nkind: Node\nmetadata: {name: down}\n"
                 "status: {conditions: [{type: Ready, status: Unknown}]}\n"
                 "---\napiVersion: v1\nkind: Node\nmetadata: {name: mute}\n"));
    assert_true(l.good);
    const object *at = l.objects->at;
    assert_true(skyhook_paused(at[0].skyhook));
    assert_false(skyhook_disabled(at[0].skyhook));
    check_text(skyhook_package(at[0].skyhook, STR("aa"))->version, "1.0.0");
    assert_null(skyhook_package(at[0].skyhook, STR("a")));
    assert_false(skyhook_paused(at[1].skyhook));
    assert_true(skyhook_disabled(at[1].skyhook));
    assert_true(node_ready(at[2].node));
    assert_false(node_ready(at[3].node));
    assert_false(node_ready(at[4].node));
    loaded_free(&l);
}

static void test_problem_forms(void **state)
{
    (void)state;
    problem p = {.severity = SEVERITY_WARNING,
                 .file = STR("a.yaml"),
                 .line = 3,
                 .document = STR("Node/x\ny"),
                 .path = STR("spec.a"),
                 .message = STR("found \"1\"")};
    buf out = BUF(1000);
    problem_text(&p, &out);
    check_text(buf_str(&out), "a.yaml:3: Node/x?y: spec.a: found \"1\"");
    buf_clear(&out);
    problem_json(&p, &out);
    check_text(
        buf_str(&out),
        "{\"severity\":\"warning\",\"file\":\"a.yaml\",\"line\":3,\"document\":\"Node/x\\ny\","
        "\"path\":\"spec.a\",\"message\":\"found \\\"1\\\"\"}");
    buf_done(&out);
    problems *list = problems_new();
    for (size_t i = 0; i < LIMIT_PROBLEMS + 10; i++)
        problems_add(list, &p);
    assert_int_equal(problems_count(list), LIMIT_PROBLEMS / 2);
    assert_int_equal(problems_warnings(list), LIMIT_PROBLEMS + 10);
    p.severity = SEVERITY_ERROR;
    for (size_t i = 0; i < LIMIT_PROBLEMS; i++)
        problems_add(list, &p);
    assert_int_equal(problems_count(list), LIMIT_PROBLEMS);
    assert_int_equal(problems_errors(list), LIMIT_PROBLEMS);
    problems_free(list);
}

/* One after the other gives what objects_load gives in one go; bad documents are left out of both.
 */
static void test_two_steps(void **state)
{
    (void)state;
    const str text = STR("{apiVersion: v1, kind: Node, metadata: {name: a}}\n---\n"
                         "{apiVersion: v1, kind: Node}\n---\na: [\n---\n"
                         "{apiVersion: v1, kind: Node, metadata: {name: b}}\n");
    loaded l = load_text("f", text);
    assert_false(l.good);
    document_set *set = document_set_new();
    object_list *objects = objects_new();
    problems *found = problems_new();
    assert_false(documents_read(set, STR("f"), text, found));
    assert_false(objects_read(objects, set, found));
    assert_int_equal(problems_errors(found), 2);
    assert_int_equal(problems_errors(l.found), 2);
    assert_int_equal(objects->len, 2);
    assert_int_equal(l.objects->len, 2);
    for (size_t i = 0; i < 2; i++)
        assert_true(object_equal(&objects->at[i], &l.objects->at[i]));
    assert_false(object_equal(&objects->at[0], &objects->at[1]));
    problems_free(found);
    objects_free(objects);
    document_set_free(set);
    loaded_free(&l);
}

static bool parse_texts(void *context)
{
    (void)context;
    arena *a = arena_new(0);
    rollout_strategy pace;
    node_state found;
    err error;
    bool good = a &&
                rollout_strategy_parse(a,
                                       STR("{\"maxUnavailable\":\"5%\",\"soakSeconds\":60,"
                                           "\"partitions\":[{\"clusterName\":\"a\"}]}"),
                                       &pace, &error) &&
                node_state_parse(a, STR("{\"b|1\":{\"name\":\"b\"},\"a|1\":{\"name\":\"a\"}}"),
                                 &found, &error);
    if (good) {
        assert_int_equal(int_or_percent_limit(pace.max_unavailable, 100), 5);
        assert_int_equal(pace.soak_seconds.value, 60);
        assert_int_equal(pace.max_new, 50);
        check_text(found.packages.at[0].key, "a|1");
    }
    arena_free(a);
    return good;
}

static void test_annotations(void **state)
{
    (void)state;
    arena *a = arena_new(0);
    rollout_strategy pace;
    err error;
    assert_false(rollout_strategy_parse(a, STR("{\"maxUnavailable\":\"x\"}"), &pace, &error));
    check_err_has(error, "maxUnavailable: found text \"x\"");
    assert_false(rollout_strategy_parse(a, STR("[]"), &pace, &error));
    assert_false(rollout_strategy_parse(a, STR("{"), &pace, &error));
    assert_false(rollout_strategy_parse(a, STR(""), &pace, &error));
    arena_free(a);
    check_each_allocation_fails(parse_texts, NULL);
}

/* Documents that are wrong in many ways: without memory there is still an error, and nothing is
 * left. */
static void test_allocations_fail_while_reporting(void **state)
{
    (void)state;
    const str text =
        STR(SKYHOOK
            "  priority: x\n  odd: 1\n  packages: {a: {}, bb: {version: 1, dependsOn: {q: 1}}}\n"
            "---\na: [\n---\nb: *x\n---\n{a: 1, a: 2}\n---\n" POLICY
            "  default: {budget: {percent: 0}}\n  compartments: [{selector: {matchLabels: 1}}]\n"
            "---\n" RULES "    - versionSelector: {selector: 'a ++'}\n    - retry: {}\n"
            "    - deploymentWindow: {rrule: x, durationMinutes: 0}\n    - {wrong: 1}\n"
            "---\n{kind: Odd}\n---\n{apiVersion: v1, kind: Odd}\n");
    for (uint64_t nth = 1;; nth++) {
        int64_t live = mem_live();
        mem_fail_at(nth);
        loaded l = load_text("f", text);
        bool failed = mem_failed();
        mem_fail_at(0);
        bool error = !l.found || !l.set || !l.objects || problems_errors(l.found) > 0;
        loaded_free(&l);
        check_msg(error && mem_live() == live, "allocation %llu", (unsigned long long)nth);
        if (!failed)
            return;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_headers),
        cmocka_unit_test(test_limits_of_schemas),
        cmocka_unit_test(test_unknown_fields),
        cmocka_unit_test(test_types),
        cmocka_unit_test(test_skyhook),
        cmocka_unit_test(test_package_graph),
        cmocka_unit_test(test_policy),
        cmocka_unit_test(test_policy_defaults),
        cmocka_unit_test(test_fleet),
        cmocka_unit_test(test_fleet_yaml),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_rules),
        cmocka_unit_test(test_expressions),
        cmocka_unit_test(test_jobs),
        cmocka_unit_test(test_semver),
        cmocka_unit_test(test_quantities),
        cmocka_unit_test(test_node_state),
        cmocka_unit_test(test_recurrence),
        cmocka_unit_test(test_tolerations),
        cmocka_unit_test(test_small_questions),
        cmocka_unit_test(test_problem_forms),
        cmocka_unit_test(test_two_steps),
        cmocka_unit_test(test_annotations),
        cmocka_unit_test(test_allocations_fail_while_reporting),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
