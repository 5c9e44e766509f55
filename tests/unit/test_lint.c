/* SPDX-License-Identifier: Apache-2.0 */
/* What lint says is held by tests/data/bad; here is what a text cannot show. */
#include "support/check.h"

#include "model/lint.h"
#include "support/documents.h"

#define OURS(kind, name)                                                                           \
    "---\napiVersion: drover.dev/v1alpha1\nkind: " kind "\nmetadata: {name: " name "}\n"
#define FLEET(kind, name)                                                                          \
    "---\napiVersion: fleet.cattle.io/v1alpha1\nkind: " kind "\n"                                  \
    "metadata: {name: " name ", namespace: fleet, labels: {env: dev}}\n"
#define SKYHOOK(kind, name)                                                                        \
    "---\napiVersion: skyhook.nvidia.com/v1alpha1\nkind: " kind "\nmetadata: {name: " name "}\n"
#define DEPLOYMENT(name)                                                                           \
    OURS("Deployment", name)                                                                       \
    "spec: {resourceSelector: 'true', job: {pull: {}}}\n"

/* Something for every check to say. */
static const char
    everything
        [] =
            SKYHOOK("Skyhook", "s") "spec: {deploymentPolicy: p}\n" SKYHOOK("Skyhook", "s") "spec: {deploymentPolicy: missing}\n" SKYHOOK("Skyhook", "t") "spec: {interruptionBudget: {percent: 10}}\n" SKYHOOK(
                "DeploymentPolicy", "p") "spec:\n"
                                         "  default: {budget: {percent: 20}, strategy: {fixed: {}}}\n"
                                         "  compartments:\n"
                                         "    - {name: a, selector: {matchLabels: {gpu: big}}, budget: {count: 1}}\n"
                                         "    - {name: b, selector: {matchLabels: {gpu: none}}, budget: {count: 1}}\n"
                                         "---\napiVersion: v1\nkind: NodeList\n"
                                         "items: [{metadata: {name: n1}}, {metadata: {name: n2, labels: {gpu: big}}},\n"
                                         "        {metadata: {name: n3}}]\n" FLEET(
                                             "Bundle",
                                             "b") "spec:\n"
                                                  "  targets: [{clusterGroup: g}]\n"
                                                  "  rolloutStrategy:\n"
                                                  "    offlineAfterSeconds: 5\n"
                                                  "    partitions:\n"
                                                  "      - {name: x, clusterName: one, maxUnavailable: 30%}\n"
                                                  "      - {name: x, clusterSelector: {}}\n" FLEET("ClusterGroup", "g") "spec: {selector: {matchLabels: {env: dev}}}\n" FLEET(
                                                      "Cluster",
                                                      "one") "status: {namespace: c1}\n" FLEET("Cluster",
                                                                                               "two") "status: {namespace: c2}\n" DEPLOYMENT("drain")
                                                      DEPLOYMENT("kubelet") DEPLOYMENT("patch") OURS("Version", "v1") "spec: {deployment: kubelet, tag: '1'}\n" OURS("Version", "v2") "spec: {deployment: kubelet, tag: '1'}\n" OURS("Version", "v3") "spec: {deployment: none, tag: '1'}\n" OURS("Resource", "r1") "spec: {kind: host, config: {a: 1}}\n" OURS(
                                                          "Resource", "r2") "spec: {kind: host}\n" OURS("Environment",
                                                                                                        "prod") "spec: {resourceSelector: 'true'}\n" OURS("RolloutPolicy", "q") "spec:\n"
                                                                                                                                                                                "  rules:\n"
                                                                                                                                                                                "    - deploymentBracket: {deploymentSelector: 'true', readinessWindowSeconds: 5}\n"
                                                                                                                                                                                "    - deploymentDependency:\n"
                                                                                                                                                                                "        dependsOn: deployment.name == \"drain\"\n"
                                                                                                                                                                                "        appliesTo: deployment.name != \"drain\"\n"
                                                                                                                                                                                "    - deploymentDependency: {dependsOn: deployment.name == \"nobody\"}\n"
                                                                                                                                                                                "    - resourceConcurrency: {groupSelector: 'true', limitType: percentage, limitValue: 20}\n"
                                                                                                                                                                                "    - gradualRollout: {rolloutType: linear, timeScaleInterval: 3600}\n"
                                                                                                                                                                                "    - deploymentWindow: {rrule: FREQ=DAILY, durationMinutes: 10}\n"
                                                                                                                                                                                "    - rolloutStrategy: {maxNew: 1}\n" OURS(
                                                                                                                                                                                    "RolloutPolicy",
                                                                                                                                                                                    "w") "spec:\n"
                                                                                                                                                                                         "  rules:\n"
                                                                                                                                                                                         "    - deploymentDependency:\n"
                                                                                                                                                                                         "        dependsOn: deployment.name == \"patch\"\n"
                                                                                                                                                                                         "        appliesTo: deployment.name == \"drain\"\n";

static void test_everything(void **state)
{
    (void)state;
    loaded l = load_text("f", str_of(everything));
    buf wrong = problems_as_text(l.found);
    check_msg(l.good, "%.*s", STR_ARG(buf_str(&wrong)));
    buf_done(&wrong);
    assert_int_equal(problems_warnings(l.found), 0);
    assert_false(lint_all(l.objects, l.found));
    buf text = problems_as_text(l.found);
    check_msg(problems_errors(l.found) == 6, "%.*s", STR_ARG(buf_str(&text)));
    check_msg(problems_warnings(l.found) == 15, "%.*s", STR_ARG(buf_str(&text)));
    buf_done(&text);
    loaded_free(&l);
}

/* Targets that a program made up have no document: what is said of them has no place. */
static void test_objects_without_documents(void **state)
{
    (void)state;
    loaded l = load_text("f", str_of(everything));
    problems *found = problems_new();
    for (size_t i = 0; i < l.objects->len; i++)
        l.objects->at[i].document = NULL;
    assert_false(lint_all(l.objects, found));
    assert_int_equal(problems_errors(found), 6);
    assert_int_equal(problems_warnings(found), 15);
    for (size_t i = 0; i < problems_count(found); i++)
        assert_int_equal(problems_at(found, i)->line, 0);
    problems_free(found);
    loaded_free(&l);
}

/* Either memory is said to have run out, or everything was said: remembering lines may fail
 * quietly, since they can be found again. */
static void test_each_allocation_fails(void **state)
{
    (void)state;
    int64_t live = mem_live();
    bool again = true;
    for (uint64_t n = 1; again; n++) {
        mem_fail_at(n);
        loaded l = load_text("f", str_of(everything));
        if (l.good)
            lint_all(l.objects, l.found);
        again = mem_failed();
        mem_fail_at(0);
        bool said = l.good && problems_errors(l.found) == 6 && problems_warnings(l.found) == 15;
        bool refused = !l.good || problems_out_of_memory(l.found);
        check_msg(said || refused, "allocation %llu", (unsigned long long)n);
        check_msg(again || said, "allocation %llu", (unsigned long long)n);
        loaded_free(&l);
        check_msg(mem_live() == live, "allocation %llu leaks", (unsigned long long)n);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_everything),
        cmocka_unit_test(test_objects_without_documents),
        cmocka_unit_test(test_each_allocation_fails),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
