/* SPDX-License-Identifier: Apache-2.0 */
/* The examples of the two documents on Skyhooks that this project started from, each test named
 * after the document (000: Deployment Policy, 004: Runtime Required) and the place in it. What they
 * say in general is held by test_node_batches.c and test_node_gates.c. */
#include "support/node_fleet.h"

#define API "apiVersion: skyhook.nvidia.com/v1alpha1\n"
#define PACED "  deploymentPolicy: my-policy\n"
#define RUNTIME "  runtimeRequired: true\n"

static void add_skyhook(fleet *f, const char *name, const char *more, const char *number)
{
    fleet_document(f,
                   API "kind: Skyhook\nmetadata: {name: %s}\nspec:\n%s"
                       "  packages:\n    tool: {version: '%s', image: repo/tool}\n",
                   name, more, number);
}

static void add_policy(fleet *f, const char *spec)
{
    fleet_document(f, API "kind: DeploymentPolicy\nmetadata: {name: my-policy}\nspec:\n%s", spec);
}

static fleet *without_retries(void)
{
    return fleet_with((engine_settings){.stage_retries = -1});
}

static void seed_000_budget_rounding_examples(void **state)
{
    (void)state;
    static const struct {
        int nodes, percent;
        int64_t ceiling;
    } rows[] = {{10, 25, 2}, {10, 30, 3}, {5, 10, 1}, {100, 1, 1}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        fleet *f = fleet_new();
        char spec[128];
        snprintf(spec, sizeof spec, "  default: {budget: {percent: %d}, strategy: {fixed: {}}}\n",
                 rows[i].percent);
        add_policy(f, spec);
        add_skyhook(f, "sk", PACED, "1.0.0");
        fleet_nodes_add(f, rows[i].nodes);
        fleet_step(f);
        assert_int_equal(fleet_group(f, "sk", "__default__").limit, rows[i].ceiling);
        fleet_free(f);
    }
}

/* "Constant batch size", "1 -> 2 -> 3 -> 4 -> 5", "1 -> 2 -> 4 -> 8 -> 16". */
static void seed_000_progressions(void **state)
{
    (void)state;
    static const struct {
        int nodes;
        const char *strategy, *batches;
    } rows[] = {
        {20, "fixed: {initialBatch: 5, batchThreshold: 100, failureThreshold: 3, safetyLimit: 50}",
         "5,5,5,5"},
        {15, "linear: {initialBatch: 1, delta: 1, batchThreshold: 100, failureThreshold: 3}",
         "1,2,3,4,5"},
        {31, "exponential: {initialBatch: 1, growthFactor: 2, batchThreshold: 100}", "1,2,4,8,16"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        fleet *f = fleet_new();
        char spec[256];
        snprintf(spec, sizeof spec, "  default: {budget: {percent: 100}, strategy: {%s}}\n",
                 rows[i].strategy);
        add_policy(f, spec);
        add_skyhook(f, "sk", PACED, "1.0.0");
        fleet_nodes_add(f, rows[i].nodes);
        fleet_run(f, -1);
        check_text(buf_str(&f->batches), rows[i].batches);
        fleet_free(f);
    }
}

/* "Stop after 3 consecutive failures"; without a failureThreshold it never stops. */
static void seed_000_failure_threshold(void **state)
{
    (void)state;
    static const struct {
        const char *threshold, *batches;
        bool stopped;
    } rows[] = {{", failureThreshold: 3", "5(5),5(5),5(5)", true},
                {"", "5(5),5(5),5(5),5(5)", false}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        fleet *f = without_retries();
        char spec[256];
        snprintf(spec, sizeof spec,
                 "  default: {budget: {percent: 100}, strategy: {fixed: {initialBatch: 5%s}}}\n",
                 rows[i].threshold);
        add_policy(f, spec);
        add_skyhook(f, "sk", PACED, "1.0.0");
        fleet_nodes_add(f, 20);
        for (int n = 0; n < 20; n++)
            f->nodes[n].fails = true;
        fleet_run(f, -1);
        check_text(buf_str(&f->batches), rows[i].batches);
        assert_int_equal(fleet_group(f, "sk", "__default__").stopped, rows[i].stopped);
        fleet_free(f);
    }
}

/* "Rollout continues despite failures", "batch sizes don't slow down", after the safety limit. */
static void seed_000_after_the_safety_limit(void **state)
{
    (void)state;
    fleet *f = without_retries();
    add_policy(f, "  default: {budget: {percent: 100}, strategy: {linear: {initialBatch: 2, "
                  "failureThreshold: 1, safetyLimit: 50}}}\n");
    add_skyhook(f, "sk", PACED, "1.0.0");
    fleet_nodes_add(f, 10);
    f->nodes[5].fails = true;
    fleet_run(f, -1);
    check_text(buf_str(&f->batches), "2,3,4(1),1");
    assert_false(fleet_group(f, "sk", "__default__").stopped);
    fleet_free(f);
}

static void seed_000_overlapping_compartments(void **state)
{
    (void)state;
    fleet *f = fleet_new();
    add_policy(f, "  default: {budget: {percent: 100}, strategy: {fixed: {}}}\n"
                  "  compartments:\n"
                  "  - {name: us-west, selector: {matchLabels: {region: us-west}},"
                  " budget: {count: 20}, strategy: {exponential: {}}}\n"
                  "  - {name: production, selector: {matchLabels: {env: production}},"
                  " budget: {count: 10}, strategy: {linear: {}}}\n"
                  "  - {name: critical, selector: {matchLabels: {priority: critical}},"
                  " budget: {count: 3}, strategy: {fixed: {}}}\n");
    add_skyhook(f, "sk", PACED, "1.0.0");
    fleet_node *all = fleet_node_add(f, "all"), *two = fleet_node_add(f, "two");
    fleet_label(all, "region", "us-west");
    fleet_label(all, "env", "production");
    fleet_label(all, "priority", "critical");
    fleet_label(two, "region", "us-west");
    fleet_label(two, "env", "production");
    fleet_show(f, all);
    fleet_show(f, two);
    fleet_step(f);
    check_text(fleet_placement(f, "sk", "all").group, "critical");
    check_text(fleet_placement(f, "sk", "two").group, "production");
    fleet_free(f);
}

/* "Precedence order": the Skyhook's option, the policy's field, true. */
static void seed_000_batch_state_reset(void **state)
{
    (void)state;
    static const struct {
        const char *policy, *skyhook, *batches;
    } rows[] = {
        {"", "", "1,2,1,2"},
        {"  resetBatchStateOnCompletion: true\n",
         "  deploymentPolicyOptions: {resetBatchStateOnCompletion: false}\n", "1,2,3"},
        {"  resetBatchStateOnCompletion: false\n", "", "1,2,3"},
        {"  resetBatchStateOnCompletion: false\n",
         "  deploymentPolicyOptions: {resetBatchStateOnCompletion: true}\n", "1,2,1,2"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        fleet *f = fleet_new();
        char spec[256], more[256];
        snprintf(spec, sizeof spec,
                 "%s  default: {budget: {percent: 100}, strategy: {linear: {}}}\n", rows[i].policy);
        snprintf(more, sizeof more, PACED "%s", rows[i].skyhook);
        add_policy(f, spec);
        add_skyhook(f, "sk", more, "1.0.0");
        fleet_nodes_add(f, 3);
        fleet_run(f, -1);
        add_skyhook(f, "sk", more, "1.1.0");
        fleet_run(f, -1);
        check_text(buf_str(&f->batches), rows[i].batches);
        fleet_free(f);
    }
}

/* The document calls them equivalent; its policy is slower on purpose (semantics.md A7). */
static void seed_000_legacy_equivalent(void **state)
{
    (void)state;
    fleet *f = fleet_new();
    add_skyhook(f, "sk", "  interruptionBudget: {percent: 25}\n", "1.0.0");
    fleet_nodes_add(f, 8);
    fleet_run(f, -1);
    check_text(buf_str(&f->batches), "2,2,2,2");
    fleet_free(f);
    f = fleet_new();
    add_policy(f, "  default: {budget: {percent: 25}, strategy: {fixed: {initialBatch: 1, "
                  "batchThreshold: 100, safetyLimit: 50}}}\n");
    add_skyhook(f, "sk", PACED, "1.0.0");
    fleet_nodes_add(f, 4);
    fleet_run(f, -1);
    check_text(buf_str(&f->batches), "1,1,1,1");
    fleet_free(f);
}

/* "A complete sample showing": four compartments side by side. */
static void seed_000_complete_sample(void **state)
{
    (void)state;
    static const struct {
        const char *env;
        int64_t ceiling;
    } rows[] = {{"critical", 1}, {"production", 3}, {"staging", 3}, {"test", 5}};
    fleet *f = fleet_new();
    add_policy(f, "  default: {budget: {percent: 100}, strategy: {fixed: {}}}\n"
                  "  compartments:\n"
                  "  - {name: critical, selector: {matchLabels: {env: critical}},"
                  " budget: {count: 1}, strategy: {fixed: {}}}\n"
                  "  - {name: production, selector: {matchLabels: {env: production}},"
                  " budget: {count: 3}, strategy: {linear: {}}}\n"
                  "  - {name: staging, selector: {matchLabels: {env: staging}},"
                  " budget: {percent: 33}, strategy: {exponential: {}}}\n"
                  "  - {name: test, selector: {matchLabels: {env: test}},"
                  " budget: {percent: 50}, strategy: {exponential: {initialBatch: 2, "
                  "growthFactor: 4}}}\n");
    add_skyhook(f, "sk", PACED, "1.0.0");
    for (int i = 0; i < 40; i++) {
        char name[32];
        snprintf(name, sizeof name, "n%02d", i);
        fleet_node *n = fleet_node_add(f, name);
        fleet_label(n, "env", rows[i / 10].env);
        fleet_show(f, n);
    }
    fleet_run(f, -1);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        group_view g = fleet_group(f, "sk", rows[i].env);
        assert_int_equal(g.matched, 10);
        assert_int_equal(g.limit, rows[i].ceiling);
        assert_int_equal(g.peak, rows[i].ceiling);
    }
    fleet_free(f);
}

static void put_taint(fleet *f, fleet_node *n)
{
    n->taints[n->taint_count++] =
        (fact_taint){STR("skyhook.nvidia.com"), STR("runtime-required"), STR("NoSchedule")};
    fleet_show(f, n);
}

/* "Taint removal is per-node, not per-skyhook": node A does not wait for node B. */
static void seed_004_taint_removal_is_per_node(void **state)
{
    (void)state;
    fleet *f = without_retries();
    add_skyhook(f, "one", RUNTIME, "1.0.0");
    add_skyhook(f, "two", RUNTIME, "1.0.0");
    fleet_nodes_add(f, 2);
    put_taint(f, &f->nodes[0]);
    put_taint(f, &f->nodes[1]);
    f->nodes[1].fails = true;
    fleet_run(f, -1);
    assert_int_equal(fleet_count(f, " untaint node-001"), 1);
    assert_int_equal(fleet_count(f, " untaint node-002"), 0);
    assert_int_equal(fleet_count(f, " taint "), 0); /* without autoTaintNewNodes none is added */
    fleet_free(f);
}

/* "A node is considered new if it has no Skyhook annotations." */
static void seed_004_auto_taint_new_nodes(void **state)
{
    (void)state;
    fleet *f = fleet_new();
    add_skyhook(f, "sk", RUNTIME "  autoTaintNewNodes: true\n", "1.0.0");
    fleet_nodes_add(f, 1);
    fleet_node *seen = fleet_node_add(f, "seen");
    seen->annotations[seen->annotation_count++] =
        (label){STR("skyhook.nvidia.com/status_other"), STR("complete")};
    fleet_show(f, seen);
    fleet_run(f, -1);
    assert_int_equal(fleet_count(f, " taint node-001"), 1);
    assert_int_equal(fleet_count(f, " taint seen"), 0);
    assert_int_equal(fleet_count(f, " untaint node-001"), 1);
    fleet_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(seed_000_budget_rounding_examples),
        cmocka_unit_test(seed_000_progressions),
        cmocka_unit_test(seed_000_failure_threshold),
        cmocka_unit_test(seed_000_after_the_safety_limit),
        cmocka_unit_test(seed_000_overlapping_compartments),
        cmocka_unit_test(seed_000_batch_state_reset),
        cmocka_unit_test(seed_000_legacy_equivalent),
        cmocka_unit_test(seed_000_complete_sample),
        cmocka_unit_test(seed_004_taint_removal_is_per_node),
        cmocka_unit_test(seed_004_auto_taint_new_nodes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
