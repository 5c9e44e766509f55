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

/* The document's first example as it stands there, and the Skyhook of "Reference a policy by name".
 */
static void seed_000_my_policy(void **state)
{
    (void)state;
    fleet *f = fleet_new();
    add_policy(f, "  resetBatchStateOnCompletion: true\n"
                  "  default:\n"
                  "    budget:\n"
                  "      percent: 100\n"
                  "    strategy:\n"
                  "      fixed:\n"
                  "        initialBatch: 1\n"
                  "        batchThreshold: 100\n"
                  "        safetyLimit: 50\n"
                  "  compartments:\n"
                  "    - name: production\n"
                  "      selector:\n"
                  "        matchLabels:\n"
                  "          env: production\n"
                  "      budget:\n"
                  "        percent: 25\n"
                  "      strategy:\n"
                  "        exponential:\n"
                  "          initialBatch: 1\n"
                  "          growthFactor: 2\n"
                  "          batchThreshold: 100\n"
                  "          failureThreshold: 1\n"
                  "          safetyLimit: 50\n");
    add_skyhook(f, "my-skyhook",
                PACED "  deploymentPolicyOptions:\n    resetBatchStateOnCompletion: true\n"
                      "  nodeSelectors:\n    matchLabels:\n      workload: gpu\n",
                "1.0.0");
    for (int i = 0; i < 15; i++) {
        char name[32];
        snprintf(name, sizeof name, "n%02d", i);
        fleet_node *n = fleet_node_add(f, name);
        if (i < 14)
            fleet_label(n, "workload", "gpu");
        if (i < 12)
            fleet_label(n, "env", "production");
        fleet_show(f, n);
    }
    fleet_step(f);
    assert_int_equal(fleet_group(f, "my-skyhook", "production").matched, 12);
    assert_int_equal(fleet_group(f, "my-skyhook", "production").limit, 3);
    assert_int_equal(fleet_group(f, "my-skyhook", "__default__").matched, 2);
    assert_int_equal(fleet_group(f, "my-skyhook", "__default__").limit, 2);
    fleet_run(f, -1);
    /* production 1,2,3,3,3 and, side by side with it, the others one by one */
    assert_int_equal(fleet_group(f, "my-skyhook", "production").peak, 3);
    assert_int_equal(fleet_group(f, "my-skyhook", "__default__").peak, 1);
    assert_int_equal(fleet_count(f, " judge my-skyhook production"), 5);
    assert_int_equal(fleet_count(f, " judge my-skyhook __default__"), 2);
    assert_int_equal(fleet_count(f, " start "), 14);
    fleet_free(f);
}

/* "Before safetyLimit: batch sizes slow down (linear/exponential)", "reaching failureThreshold
 * stops the rollout". */
static void seed_000_before_the_safety_limit(void **state)
{
    (void)state;
    static const struct {
        const char *strategy, *batches;
        bool stopped;
    } rows[] = {
        {"linear: {initialBatch: 3, delta: 1, failureThreshold: 3}", "3,4(1),3(1),2,3,4,1", false},
        {"exponential: {initialBatch: 4, growthFactor: 2, failureThreshold: 3}",
         "4,8(1),4(1),2,4,8", false},
        {"linear: {initialBatch: 3, delta: 1, failureThreshold: 2}", "3,4(1),3(1)", true},
        {"exponential: {initialBatch: 4, growthFactor: 2, failureThreshold: 1}", "4,8(1)", true},
    };
    static const int failures[] = {0, 1, 1};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        fleet *f = without_retries();
        char spec[256];
        snprintf(spec, sizeof spec, "  default: {budget: {percent: 100}, strategy: {%s}}\n",
                 rows[i].strategy);
        f->failures = failures;
        f->failure_count = COUNT_OF(failures);
        add_policy(f, spec);
        add_skyhook(f, "sk", PACED, "1.0.0");
        fleet_nodes_add(f, 20 + (i % 2 == 1 ? 10 : 0));
        fleet_run(f, -1);
        check_msg(str_eq(buf_str(&f->batches), str_of(rows[i].batches)), "%s: %.*s",
                  rows[i].strategy, STR_ARG(buf_str(&f->batches)));
        assert_int_equal(fleet_group(f, "sk", "__default__").stopped, rows[i].stopped);
        fleet_free(f);
    }
}

/* "Nodes selected for a batch remain in that batch ...", "it survives controller restarts": an
 * engine that is told what was persisted starts nobody before the batch has ended. */
static void seed_000_sticky_batch_survives_a_restart(void **state)
{
    (void)state;
    fleet *f = fleet_new();
    add_policy(f, "  default: {budget: {percent: 100}, strategy: {fixed: {initialBatch: 2}}}\n");
    add_skyhook(f, "sk", PACED, "1.0.0");
    fleet_nodes_add(f, 5);
    f->nodes[1].silent = true;
    fleet_run(f, HOUR); /* node-001 is done, node-002 runs on */
    check_state(f, "sk", "node-001", DONE);
    check_state(f, "sk", "node-003", WAITING);
    buf saved = BUF(LIMIT_TEXT_BYTES);
    err error;
    assert_true(engine_save(f->engine, &saved));
    engine_free(f->engine);
    f->engine = engine_new(&f->settings, &error);
    assert_non_null(f->engine);
    for (size_t i = 0; i < f->current.len; i++) {
        fact one = {.kind = FACT_DOCUMENT, .document = f->current.at[i]};
        assert_true(engine_take(f->engine, &one, 1, f->now_ms));
    }
    for (size_t i = 0; i < f->node_count; i++) {
        fact one = fleet_fact(&f->shown[i]);
        assert_true(engine_take(f->engine, &one, 1, f->now_ms));
    }
    check_msg(engine_restore(f->engine, buf_str(&saved), &error), "%s", error.text);
    buf_done(&saved);
    fleet_lines(f, "");
    fleet_run(f, HOUR);
    check_lines(f, "start", "");
    check_text(str_of(fleet_reasons(f, "sk", "node-003")), "batch:complete:node-002");
    fleet_gone(f, &f->nodes[1]);
    fleet_run(f, -1);
    check_state(f, "sk", "node-005", DONE);
    fleet_free(f);
}

/* "Spec version change": in the middle of a rollout, too, the next batch is batch 1. */
static void seed_000_a_version_changes_in_mid_rollout(void **state)
{
    (void)state;
    fleet *f = fleet_new();
    add_policy(f, "  default: {budget: {percent: 100}, strategy: {linear: {}}}\n");
    add_skyhook(f, "sk", PACED, "1.0.0");
    fleet_nodes_add(f, 10);
    fleet_run(f, 5 * MINUTE); /* 1, 2, and 3 in flight */
    assert_int_equal(fleet_group(f, "sk", "__default__").current_batch, 3);
    add_skyhook(f, "sk", PACED, "1.1.0");
    fleet_step(f);
    group_view g = fleet_group(f, "sk", "__default__");
    assert_int_equal(g.current_batch, 1);
    assert_int_equal(g.completed, 0);
    fleet_run(f, -1);
    /* The three in flight go on to 1.1.0 as batch 1; then initialBatch, and up again. */
    check_text(buf_str(&f->batches), "1,2,3,1,2,3,1");
    fleet_free(f);
}

/* "You can also reset batch state manually": both resets also begin the order anew. */
static void seed_000_manual_resets(void **state)
{
    (void)state;
    static const struct {
        act_kind act;
        bool keep_batches;
        const char *starts; /* when there is new work */
    } rows[] = {
        {ACT_RESET_BATCHES, false, "start sk node-001 __default__ #0\n"},
        {ACT_RESET, false, "start sk node-001 __default__ #0\n"},
        {ACT_RESET, true,
         "start sk node-001 __default__ #3\nstart sk node-002 __default__ #4\n"
         "start sk node-003 __default__ #5\n"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        fleet *f = fleet_new();
        add_policy(f, "  resetBatchStateOnCompletion: false\n"
                      "  default: {budget: {percent: 100}, strategy: {linear: {}}}\n");
        add_skyhook(f, "sk", PACED, "1.0.0");
        fleet_nodes_add(f, 3);
        fleet_run(f, -1);
        fleet_tell(f, (fact){.kind = FACT_ACT,
                             .act = {.act = rows[i].act,
                                     .change = STR("sk"),
                                     .keep_batches = rows[i].keep_batches}});
        if (rows[i].act == ACT_RESET_BATCHES) {
            fleet_step(f);
            add_skyhook(f, "sk", PACED, "1.1.0");
        }
        fleet_lines(f, "");
        fleet_step(f);
        check_lines(f, "start", rows[i].starts);
        fleet_free(f);
    }
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

/* "Match the Skyhook's node selector; do not already have the taint; have no annotations." */
static void seed_004_auto_taint_only_what_matches(void **state)
{
    (void)state;
    fleet *f = fleet_new();
    add_skyhook(f, "sk",
                RUNTIME "  autoTaintNewNodes: true\n  nodeSelectors: {matchLabels: {gpu: 'yes'}}\n",
                "1.0.0");
    fleet_nodes_add(f, 2);
    fleet_label(&f->nodes[0], "gpu", "yes");
    fleet_show(f, &f->nodes[0]);
    fleet_node *has = fleet_node_add(f, "has");
    fleet_label(has, "gpu", "yes");
    put_taint(f, has);
    fleet_run(f, -1);
    assert_int_equal(fleet_count(f, " taint node-001"), 1);
    assert_int_equal(fleet_count(f, " taint node-002"), 0); /* it does not match */
    assert_int_equal(fleet_count(f, " taint has"), 0);      /* it has it already */
    assert_int_equal(fleet_count(f, " untaint has"), 1);
    fleet_free(f);
}

/* "Nodes joining an existing cluster (day 2+)": tainted first of all, freed when it is complete;
 * those that were processed "will not be re-tainted". */
static void seed_004_day_2_nodes(void **state)
{
    (void)state;
    fleet *f = fleet_new();
    add_skyhook(f, "sk", RUNTIME "  autoTaintNewNodes: true\n", "1.0.0");
    fleet_nodes_add(f, 1);
    fleet_run(f, -1);
    assert_int_equal(fleet_count(f, " untaint node-001"), 1);
    /* As the node shows it from now on. */
    f->nodes[0].annotations[f->nodes[0].annotation_count++] =
        (label){STR("skyhook.nvidia.com/status_sk"), STR("complete")};
    fleet_show(f, &f->nodes[0]);
    fleet_run(f, HOUR);
    fleet_lines(f, "");
    fleet_show(f, fleet_node_add(f, "late"));
    fleet_run(f, -1);
    str trace = buf_str(&f->trace);
    assert_true(str_find(trace, STR(" taint late")) < str_find(trace, STR(" start sk late")));
    assert_int_equal(fleet_count(f, " taint late"), 1);
    assert_int_equal(fleet_count(f, " untaint late"), 1);
    assert_int_equal(fleet_count(f, " taint node-001"), 0);
    fleet_free(f);
}

/* "That same taint must be set as the chart value runtimeRequiredTaint": another one is put, waited
 * for, tolerated and taken away; the usual one then is a stranger's. */
static void seed_004_another_taint(void **state)
{
    (void)state;
    fleet *f =
        fleet_with((engine_settings){.runtime_required_taint = STR("acme.com/boot=new:NoExecute")});
    add_skyhook(f, "sk", RUNTIME "  autoTaintNewNodes: true\n", "1.0.0");
    fleet_nodes_add(f, 1);
    fleet_node *has = fleet_node_add(f, "has"), *usual = fleet_node_add(f, "usual");
    has->taints[has->taint_count++] =
        (fact_taint){STR("acme.com/boot"), STR("new"), STR("NoExecute")};
    fleet_show(f, has);
    put_taint(f, usual);
    fleet_run(f, -1);
    assert_int_equal(fleet_count(f, " taint node-001 acme.com/boot=new:NoExecute"), 1);
    assert_int_equal(fleet_count(f, " untaint node-001 acme.com/boot=new:NoExecute"), 1);
    assert_int_equal(fleet_count(f, " taint has"), 0);
    check_state(f, "sk", "has", DONE); /* "skyhook auto tolerates this taint" */
    assert_int_equal(fleet_count(f, " untaint has acme.com/boot=new:NoExecute"), 1);
    check_state(f, "sk", "usual", BLOCKED);
    check_text(str_of(fleet_reasons(f, "sk", "usual")),
               "taint:untaint:skyhook.nvidia.com=runtime-required:NoSchedule");
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
        cmocka_unit_test(seed_000_my_policy),
        cmocka_unit_test(seed_000_before_the_safety_limit),
        cmocka_unit_test(seed_000_sticky_batch_survives_a_restart),
        cmocka_unit_test(seed_000_a_version_changes_in_mid_rollout),
        cmocka_unit_test(seed_000_manual_resets),
        cmocka_unit_test(seed_004_taint_removal_is_per_node),
        cmocka_unit_test(seed_004_auto_taint_new_nodes),
        cmocka_unit_test(seed_004_auto_taint_only_what_matches),
        cmocka_unit_test(seed_004_day_2_nodes),
        cmocka_unit_test(seed_004_another_taint),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
