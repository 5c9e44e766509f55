/* SPDX-License-Identifier: Apache-2.0 */
#include "support/check.h"

#include "model/lint.h"
#include "support/documents.h"

static void check_lint(const char *text, const char *want)
{
    loaded l = load_text("f", str_of(text));
    check_msg(l.good, "%s", text);
    bool good = lint_all(l.objects, l.found);
    buf got = problems_as_text(l.found);
    if (!str_eq(buf_str(&got), str_of(want)))
        print_error("of:\n%s\n", text);
    check_text(buf_str(&got), want);
    assert_true(good == (problems_errors(l.found) == 0));
    buf_done(&got);
    loaded_free(&l);
}

#define NODE(name, env)                                                                            \
    "---\n{apiVersion: v1, kind: Node, metadata: {name: " name ", labels: {env: " env "}}}\n"
#define DEPLOYMENT(name)                                                                           \
    "---\n{apiVersion: drover.dev/v1alpha1, kind: Deployment, metadata: {name: " name "}, spec: "  \
    "{resourceSelector: 'true', job: {pull: {}}}}\n"
#define POLICY(rules)                                                                              \
    "---\n{apiVersion: drover.dev/v1alpha1, kind: RolloutPolicy, metadata: {name: p}, spec: "      \
    "{rules: [" rules "]}}\n"
#define DEPENDS(on, to)                                                                            \
    "{deploymentDependency: {dependsOn: 'deployment.name == \"" on                                 \
    "\"', appliesTo: 'deployment.name == \"" to "\"'}}"
#define BUNDLE(strategy)                                                                           \
    "---\n{apiVersion: fleet.cattle.io/v1alpha1, kind: Bundle, metadata: {name: b, namespace: "    \
    "x}, spec: "                                                                                   \
    "{rolloutStrategy: " strategy "}}\n"
#define CLUSTER(name, ring)                                                                        \
    "---\n{apiVersion: fleet.cattle.io/v1alpha1, kind: Cluster, metadata: {name: " name            \
    ", namespace: x, labels: {ring: " ring "}}}\n"

static void test_duplicates(void **state)
{
    (void)state;
    check_lint(
        NODE("a", "x") NODE("b", "x") NODE("a", "z"),
        "f:6: Node/a: metadata.name: found the same Node as in f:2, allowed one of that name\n");
}

static void test_skyhook(void **state)
{
    (void)state;
    check_lint(
        "apiVersion: skyhook.nvidia.com/v1alpha1\nkind: Skyhook\nmetadata: {name: s}\nspec:\n"
        "  deploymentPolicy: p\n  nodeSelectors: {matchLabels: {env: moon}}\n" NODE("a", "x"),
        "warning: f:5: Skyhook/s: spec.deploymentPolicy: found \"p\", which is not among the "
        "documents; it "
        "must be in the cluster\n"
        "warning: f:6: Skyhook/s: spec.nodeSelectors: found a selector that no given node "
        "matches\n");
    const char *policy =
        "apiVersion: skyhook.nvidia.com/v1alpha1\nkind: DeploymentPolicy\nmetadata: {name: "
        "p}\nspec:\n"
        "  default: {budget: {percent: 100}, strategy: {fixed: {failureThreshold: 1}}}\n  "
        "compartments:\n"
        "    - {name: prod, selector: {matchLabels: {env: prod}}, budget: {percent: 10},\n"
        "       strategy: {linear: {}}}\n"
        "    - {name: none, selector: {matchLabels: {env: none}}, budget: {count: 1}}\n";
    check_lint(policy, "warning: f:5: DeploymentPolicy/p: spec.default.budget.percent: found 100 "
                       "percent: all members may be "
                       "disturbed at once\n"
                       "warning: f:8: DeploymentPolicy/p: spec.compartments[0].strategy.linear: "
                       "found no failureThreshold: "
                       "failures never stop the rollout\n");
    buf text = BUF(10000);
    buf_addz(&text, policy);
    buf_addz(&text, NODE("a", "prod") NODE("b", "prod") NODE("c", "x") NODE("d", "x"));
    buf_addc(&text, '\0');
    check_lint(text.ptr, "warning: f:5: DeploymentPolicy/p: spec.default.budget.percent: found 100 "
                         "percent, which is all 2 "
                         "members at once\n"
                         "warning: f:7: DeploymentPolicy/p: spec.compartments[0].budget.percent: "
                         "found 10 percent of 2 "
                         "members, which rounds up to one\n"
                         "warning: f:8: DeploymentPolicy/p: spec.compartments[0].strategy.linear: "
                         "found no failureThreshold: "
                         "failures never stop the rollout\n"
                         "warning: f:9: DeploymentPolicy/p: spec.compartments[1].selector: found a "
                         "selector that no given "
                         "target matches\n");
    buf_done(&text);
}

static void test_fleet(void **state)
{
    (void)state;
    check_lint(BUNDLE("{}"), "warning: f:2: Bundle/b: spec.rolloutStrategy.maxUnavailable: found "
                             "100%, which is the default: no "
                             "cluster waits for another\n");
    check_lint(BUNDLE("{maxUnavailable: 1, offlineAfterSeconds: 60}"),
               "warning: f:2: Bundle/b: spec.rolloutStrategy.offlineAfterSeconds: found 60 "
               "seconds, less than twice "
               "the 15 minutes between two check-ins\n");
    check_lint(BUNDLE("{maxUnavailable: 1, partitions: [{name: one, clusterName: c1},\n {name: "
                      "two, clusterSelector: "
                      "{matchLabels: {ring: r}}}, {name: three, clusterGroup: g}]}")
                   CLUSTER("c1", "r") CLUSTER("c2", "r"),
               "warning: f:3: Bundle/b: spec.rolloutStrategy.partitions[1]: found cluster \"c1\" "
               "in this partition and "
               "in \"one\"\n");
}

static void test_release(void **state)
{
    (void)state;
    const char *document_text =
        "apiVersion: drover.dev/v1alpha1\nkind: Version\nmetadata: {name: v}\n"
        "spec: {deployment: a, tag: x, dependsOn: [{deployment: b, versionSelector: 'true'}]}\n";
    check_lint(document_text, "warning: f:4: Version/v: spec.deployment: found the deployment "
                              "\"a\", which is not among the "
                              "documents\n"
                              "warning: f:4: Version/v: spec.dependsOn[0].deployment: found the "
                              "deployment \"b\", which is not among "
                              "the documents\n");
    buf text = BUF(10000);
    buf_addz(&text, document_text);
    buf_addz(&text, DEPLOYMENT("a"));
    buf_addc(&text, '\0');
    check_lint(
        text.ptr,
        "f:4: Version/v: spec.dependsOn[0].deployment: found the deployment \"b\", which is not "
        "there\n");
    buf_done(&text);
}

static void test_dependencies(void **state)
{
    (void)state;
    check_lint(DEPLOYMENT("a") DEPLOYMENT("b") POLICY(DEPENDS("a", "b")), "");
    check_lint(DEPLOYMENT("a") DEPLOYMENT("b") POLICY(DEPENDS("a", "b") ", " DEPENDS("b", "a")),
               "f:6: RolloutPolicy/p: spec.rules: found a cycle of dependencies: \"a\" waits for "
               "itself through "
               "others\n");
    check_lint(DEPLOYMENT("a") POLICY(DEPENDS("zz", "a")),
               "f:4: RolloutPolicy/p: spec.rules[0].deploymentDependency.dependsOn: found an "
               "expression that matches "
               "no deployment, allowed one that does\n");
    check_lint(
        DEPLOYMENT("a") POLICY("{deploymentDependency: {dependsOn: 'version.tag == \"1\"'}}"), "");
    check_lint(POLICY(DEPENDS("zz", "a")), "");
    check_lint(
        DEPLOYMENT("drain") DEPLOYMENT("mid") DEPLOYMENT("undrain") POLICY(
            "{deploymentBracket: {deploymentSelector: 'true', readinessMode: immediate}}, " DEPENDS(
                "drain", "mid") ", " DEPENDS("mid", "undrain")),
        "warning: f:8: RolloutPolicy/p: spec.rules[0].deploymentBracket: found no preSelector, but "
        "all members "
        "wait for \"drain\": unless it has a new version itself it does not run; is it a hook?\n"
        "warning: f:8: RolloutPolicy/p: spec.rules[0].deploymentBracket: found no postSelector, "
        "but \"undrain\" "
        "waits for all members: unless it has a new version itself it does not run; is it a "
        "hook?\n");
}

static void test_windows(void **state)
{
    (void)state;
    check_lint(DEPLOYMENT("a")
                   POLICY("{deploymentWindow: {rrule: FREQ=DAILY, durationMinutes: 30}}"),
               "warning: f:4: RolloutPolicy/p: spec.rules[0].deploymentWindow.durationMinutes: "
               "found 30 minutes, less "
               "than the 3600 seconds that a job of \"a\" may take\n");
    check_lint("{apiVersion: drover.dev/v1alpha1, kind: Resource, metadata: {name: a}}\n---\n"
               "{apiVersion: drover.dev/v1alpha1, kind: Resource, metadata: {name: b}}\n" POLICY(
                   "{deploymentWindow: {rrule: FREQ=DAILY, durationMinutes: 30}}, "
                   "{gradualRollout: {rolloutType: linear, timeScaleInterval: 3600}}"),
               "warning: f:5: RolloutPolicy/p: spec.rules[0].deploymentWindow.durationMinutes: "
               "found 30 minutes, less "
               "than the 3600 seconds over which gradualRollout spreads 2 resources\n");
}

static buf everything;

static void collect(const char *path, str text)
{
    if (str_ends(str_of(path), STR(".yaml")) && str_find(str_of(path), STR("/app/")) == SIZE_MAX &&
        str_find(str_of(path), STR("tricks")) == SIZE_MAX) {
        buf_addz(&everything, "---\n");
        buf_add(&everything, text);
    }
}

static bool lint_everything(void *context)
{
    loaded *l = context;
    problems *found = problems_new();
    bool good = found && lint_all(l->objects, found);
    good = good && !problems_out_of_memory(found);
    problems_free(found);
    return good;
}

/* Samples with their warnings, so that reporting is part of it. */
static void test_each_allocation_fails(void **state)
{
    (void)state;
    everything = BUF(LIMIT_TEXT_BYTES);
    each_sample(collect);
    loaded l = load_text("f", buf_str(&everything));
    assert_true(l.good);
    assert_true(lint_everything(&l));
    check_each_allocation_fails(lint_everything, &l);
    loaded_free(&l);
    buf_done(&everything);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_duplicates),
        cmocka_unit_test(test_skyhook),
        cmocka_unit_test(test_fleet),
        cmocka_unit_test(test_release),
        cmocka_unit_test(test_dependencies),
        cmocka_unit_test(test_windows),
        cmocka_unit_test(test_each_allocation_fails),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
