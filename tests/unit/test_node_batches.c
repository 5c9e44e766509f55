/* SPDX-License-Identifier: Apache-2.0 */
/* semantics.md part A through the engine: compartments, ceilings, batches, judging, retries,
 * resets. */
#include "support/batch_rows.h"
#include "support/node_fleet.h"
#include "support/rows.h"

#define API "apiVersion: skyhook.nvidia.com/v1alpha1\n"

static void add_skyhook(fleet *f, const char *name, const char *more, const char *number)
{
    fleet_document(f,
                   API "kind: Skyhook\nmetadata: {name: %s}\nspec:\n%s"
                       "  packages:\n    tool: {version: '%s', image: repo/tool}\n",
                   name, more, number);
}

static void add_policy(fleet *f, const char *limit, const char *pace, const char *more)
{
    fleet_document(f,
                   API "kind: DeploymentPolicy\nmetadata: {name: pace}\nspec:\n%s"
                       "  default:\n    budget: {%s}\n%s",
                   more, limit, pace);
}

#define KEEP "  resetBatchStateOnCompletion: false\n"
#define STRATEGY(kind, parameters) "    strategy: {" kind ": {" parameters "}}\n"

/* What is retried by itself would go on changing the counters the table ends with. */
static fleet *without_retries(void)
{
    return fleet_with((engine_settings){.stage_retries = -1});
}

static void a4_row(void **state)
{
    const batch_row *r = *state;
    fleet *f = without_retries();
    f->failures = r->failures;
    f->failure_count = COUNT_OF(r->failures);
    f->blocked = r->blocked;
    f->blocked_count = COUNT_OF(r->blocked);
    /* The schema wants a strategy in the default: one without is a compartment of its own. */
    char pacing[256], rest[256];
    snprintf(pacing, sizeof pacing, "    strategy: {%s}\n", r->strategy ? r->strategy : "");
    snprintf(rest, sizeof rest, KEEP "  compartments: [{name: rest, selector: {}, budget: {%s}}]\n",
             r->budget);
    if (r->strategy)
        add_policy(f, r->budget, pacing, KEEP);
    else
        add_policy(f, "count: 1", STRATEGY("fixed", ""), rest);
    const char *group = r->strategy ? "__default__" : "rest";
    add_skyhook(f, "sk", "  deploymentPolicy: pace\n", "1.0.0");
    fleet_nodes_add(f, r->nodes);
    fleet_run(f, -1);
    group_view g = fleet_group(f, "sk", group);
    check_text(buf_str(&f->batches), r->batches);
    assert_int_equal(g.limit, r->ceiling);
    assert_true(g.peak <= r->ceiling);
    assert_int_equal(g.current_batch, r->current);
    assert_int_equal(g.completed, r->completed);
    assert_int_equal(g.failed, r->failed);
    assert_int_equal(g.consecutive_failures, r->consecutive);
    assert_int_equal(g.stopped, r->stopped);
    fleet_free(f);
}

static void a4_ceiling(void **state)
{
    const ceiling_row *r = *state;
    fleet *f = fleet_new();
    add_policy(f, r->budget, STRATEGY("fixed", ""), "");
    add_skyhook(f, "sk", "  deploymentPolicy: pace\n", "1.0.0");
    fleet_nodes_add(f, r->nodes);
    fleet_step(f);
    assert_int_equal(fleet_group(f, "sk", "__default__").limit, r->ceiling);
    fleet_free(f);
}

/* A1 and seeds/000, "overlapping selectors". */
static void a1_overlap(void **state)
{
    (void)state;
    fleet *f = fleet_new();
    fleet_document(
        f, API "kind: DeploymentPolicy\nmetadata: {name: pace}\nspec:\n"
               "  default: {budget: {percent: 100}, strategy: {fixed: {}}}\n"
               "  compartments:\n"
               "  - {name: us-west, selector: {matchLabels: {region: us-west}},"
               " budget: {count: 20}, strategy: {exponential: {}}}\n"
               "  - {name: production, selector: {matchLabels: {env: production}},"
               " budget: {count: 10}, strategy: {linear: {}}}\n"
               "  - {name: critical, selector: {matchLabels: {priority: critical}},"
               " budget: {count: 3}, strategy: {fixed: {}}}\n"
               "  - {name: small, selector: {matchExpressions: [{key: env, operator: Exists}]},"
               " budget: {count: 4}, strategy: {exponential: {}}}\n"
               "  - {name: any, selector: {matchExpressions: [{key: region, operator: Exists}]},"
               " budget: {count: 1}}\n");
    add_skyhook(f, "sk", "  deploymentPolicy: pace\n", "1.0.0");
    static const struct {
        const char *name, *region, *env, *priority, *group;
    } rows[] = {{"a", "us-west", "production", "critical", "critical"},
                {"b", "us-west", "production", NULL, "production"},
                {"c", "us-west", NULL, NULL, "us-west"},
                {"d", NULL, NULL, NULL, "__default__"}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        fleet_node *n = fleet_node_add(f, rows[i].name);
        if (rows[i].region)
            fleet_label(n, "region", rows[i].region);
        if (rows[i].env)
            fleet_label(n, "env", rows[i].env);
        if (rows[i].priority)
            fleet_label(n, "priority", rows[i].priority);
        fleet_show(f, n);
    }
    fleet_step(f);
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        check_text(fleet_placement(f, "sk", rows[i].name).group, rows[i].group);
    /* In flight it keeps its compartment until its batch has ended. */
    fleet_node *d = fleet_find(f, "d");
    fleet_label(d, "region", "us-west");
    fleet_show(f, d);
    fleet_step(f);
    check_text(fleet_placement(f, "sk", "d").group, "__default__");
    fleet_run(f, -1);
    check_state(f, "sk", "d", DONE);
    check_text(fleet_placement(f, "sk", "d").group, "us-west");
    fleet_free(f);
}

/* A5: back-off, counters, the limit, and what lifts it. */
static void a5_retries(void **state)
{
    (void)state;
    fleet *f = fleet_with((engine_settings){.stage_retries = 3});
    f->stage_ms = 0;
    add_policy(f, "count: 1", STRATEGY("fixed", ""), KEEP);
    add_skyhook(f, "sk", "  deploymentPolicy: pace\n", "1.0.0");
    fleet_nodes_add(f, 2);
    fleet_find(f, "node-001")->fails = true;
    fleet_run(f, 9 * SECOND);
    check_state(f, "sk", "node-001", FAILED);
    check_state(f, "sk", "node-002", DONE);
    check_text(str_of(fleet_reasons(f, "sk", "node-001")), "retry:time:node-001");
    fleet_lines(f, "");
    fleet_run(f, 10 * MINUTE);
    /* 10 s, 20 s, 40 s and no more. */
    assert_int_equal(fleet_count(f, " start sk node-001"), 3);
    assert_int_equal(fleet_count(f, "10 start sk node-001 __default__ #0 retry"), 1);
    assert_int_equal(fleet_count(f, "30 start sk node-001 __default__ #0 retry"), 1);
    assert_int_equal(fleet_count(f, "70 start sk node-001 __default__ #0 retry"), 1);
    check_text(str_of(fleet_reasons(f, "sk", "node-001")), "retry:retry:node-001");
    group_view g = fleet_group(f, "sk", "__default__");
    assert_int_equal(g.failed, 1);
    assert_int_equal(g.completed, 1);
    /* A person's retry. When it succeeds failed falls and completed rises. */
    fleet_find(f, "node-001")->fails = false;
    fleet_act(f, ACT_RETRY, "sk", "node-001");
    fleet_run(f, -1);
    check_state(f, "sk", "node-001", DONE);
    g = fleet_group(f, "sk", "__default__");
    assert_int_equal(g.failed, 0);
    assert_int_equal(g.completed, 2);
    fleet_free(f);
}

/* A5: never retried, until the node reboots. */
static void a5_never_and_reboot(void **state)
{
    (void)state;
    fleet *f = fleet_new();
    add_skyhook(f, "sk", "", "1.0.0");
    fleet_nodes_add(f, 1);
    fleet_node *n = fleet_find(f, "node-001");
    n->fails = n->never_retry = true;
    fleet_run(f, 2 * HOUR);
    assert_int_equal(fleet_count(f, " start "), 1);
    check_text(str_of(fleet_reasons(f, "sk", "node-001")), "retry:retry:node-001");
    n->fails = false;
    snprintf(n->boot, sizeof n->boot, "boot-2");
    fleet_show(f, n);
    fleet_run(f, -1);
    check_state(f, "sk", "node-001", DONE);
    fleet_free(f);
}

/* A5: no retry before the batch is judged, none while fresh ones are left, none without a place. */
static void a5_fresh_first(void **state)
{
    (void)state;
    fleet *f = fleet_new();
    add_policy(f, "count: 2", STRATEGY("fixed", "initialBatch: 2"), KEEP);
    add_skyhook(f, "sk", "  deploymentPolicy: pace\n", "1.0.0");
    fleet_nodes_add(f, 6);
    fleet_find(f, "node-001")->fails_once = true;
    fleet_run(f, -1);
    str trace = buf_str(&f->trace);
    size_t again = str_find(trace, STR("start sk node-001 __default__ #0 retry"));
    size_t last = str_find(trace, STR("start sk node-006"));
    assert_true(again != SIZE_MAX && last != SIZE_MAX && last < again);
    assert_int_equal(fleet_group(f, "sk", "__default__").completed, 6);
    assert_int_equal(fleet_group(f, "sk", "__default__").failed, 0);
    assert_true(fleet_group(f, "sk", "__default__").peak <= 2);
    fleet_free(f);
}

/* A2: a failed node that is held cordoned keeps its place; it is tried again although fresh ones
 * are left, since none of them could start before it is whole. */
static void a5_held_node_is_retried(void **state)
{
    (void)state;
    fleet *f = fleet_new();
    add_policy(f, "count: 1", STRATEGY("fixed", ""), KEEP);
    fleet_document(f, API "kind: Skyhook\nmetadata: {name: sk}\nspec:\n  deploymentPolicy: pace\n"
                          "  packages: {tool: {version: '1', image: r/tool,"
                          " interrupt: {type: noop}}}\n");
    fleet_nodes_add(f, 3);
    fleet_find(f, "node-001")->fails_once = true;
    fleet_run(f, 65 * SECOND);
    check_state(f, "sk", "node-001", FAILED);
    assert_int_equal(fleet_group(f, "sk", "__default__").holders, 1);
    check_state(f, "sk", "node-002", WAITING);
    assert_non_null(strstr(fleet_reasons(f, "sk", "node-002"), "budget:complete:node-001"));
    fleet_run(f, -1);
    check_state(f, "sk", "node-001", DONE);
    check_state(f, "sk", "node-003", DONE);
    assert_int_equal(fleet_group(f, "sk", "__default__").peak, 1);
    fleet_free(f);
}

/* A6: a rollout that becomes complete, and a version that changes, begin at batch 1 again. */
static void a6_reset(void **state)
{
    (void)state;
    static const struct {
        const char *policy, *option;
        bool resets;
    } rows[] = {{"", "", true},
                {KEEP, "", false},
                {"", "  deploymentPolicyOptions: {resetBatchStateOnCompletion: false}\n", false},
                {KEEP, "  deploymentPolicyOptions: {resetBatchStateOnCompletion: true}\n", true}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        fleet *f = fleet_new();
        char more[256];
        snprintf(more, sizeof more, "  deploymentPolicy: pace\n%s", rows[i].option);
        add_policy(f, "percent: 100", STRATEGY("linear", ""), rows[i].policy);
        add_skyhook(f, "sk", more, "1.0.0");
        fleet_nodes_add(f, 3);
        fleet_run(f, -1);
        check_text(buf_str(&f->batches), "1,2");
        assert_int_equal(fleet_group(f, "sk", "__default__").current_batch, rows[i].resets ? 1 : 3);
        assert_int_equal(fleet_count(f, " reset sk __default__"), rows[i].resets ? 1 : 0);
        add_skyhook(f, "sk", more, "1.1.0");
        fleet_run(f, -1);
        check_text(buf_str(&f->batches), rows[i].resets ? "1,2,1,2" : "1,2,3");
        fleet_free(f);
    }
}

/* A6: an edit in the middle. Failed ones are fresh, claims are kept, the running stage ends first.
 */
static void a6_edit(void **state)
{
    (void)state;
    fleet *f = without_retries();
    add_policy(f, "percent: 100", STRATEGY("fixed", "initialBatch: 2, failureThreshold: 1"), "");
    add_skyhook(f, "sk", "  deploymentPolicy: pace\n", "1.0.0");
    fleet_nodes_add(f, 6);
    fleet_find(f, "node-001")->fails = true;
    fleet_run(f, -1);
    assert_true(fleet_group(f, "sk", "__default__").stopped);
    assert_non_null(strstr(fleet_reasons(f, "sk", "node-003"), "stopped:reset"));
    fleet_find(f, "node-001")->fails = false;
    add_skyhook(f, "sk", "  deploymentPolicy: pace\n", "1.0.1");
    fleet_step(f);
    assert_false(fleet_group(f, "sk", "__default__").stopped);
    check_state(f, "sk", "node-001", IN_FLIGHT);
    check_state(f, "sk", "node-002", IN_FLIGHT);
    /* In flight: the running stage of 1.0.1 ends, then 1.0.2 follows in the same claim. */
    fleet_run(f, 30 * SECOND);
    fleet_lines(f, "");
    add_skyhook(f, "sk", "  deploymentPolicy: pace\n", "1.0.2");
    fleet_step(f);
    check_lines(f, "run start reset", "reset sk __default__\n");
    fleet_run(f, MINUTE);
    check_lines(f, "run start release",
                "run sk node-001 tool 1.0.2 upgrade #3\nrun sk node-002 tool 1.0.2 upgrade #4\n");
    fleet_run(f, -1);
    for (int i = 1; i <= 6; i++) {
        char name[FLEET_TEXT];
        snprintf(name, sizeof name, "node-%03d", i);
        check_state(f, "sk", name, DONE);
    }
    fleet_free(f);
}

/* A4: an edit that gives a node new work lifts a stop, also when none was done or failed before:
 * the only member of the batch was blocked in flight. */
static void a6_edit_lifts_a_stop(void **state)
{
    (void)state;
    static const int blocked[] = {1};
    fleet *f = without_retries();
    f->blocked = blocked;
    f->blocked_count = COUNT_OF(blocked);
    add_policy(f, "percent: 100", STRATEGY("fixed", "initialBatch: 1, failureThreshold: 1"), "");
    add_skyhook(f, "sk", "  deploymentPolicy: pace\n", "1.0.0");
    fleet_nodes_add(f, 3);
    fleet_run(f, -1);
    assert_true(fleet_group(f, "sk", "__default__").stopped);
    f->blocked_count = 0;
    add_skyhook(f, "sk", "  deploymentPolicy: pace\n", "1.0.1");
    fleet_run(f, -1);
    assert_false(fleet_group(f, "sk", "__default__").stopped);
    check_state(f, "sk", "node-002", DONE);
    fleet_free(f);
}

/* A4: so does an edit that selects another node, which has all its work before it; but none that
 * selects fewer, or nobody who is there, and no node that joins by itself. */
static void a6_wider_selectors_lift_a_stop(void **state)
{
    (void)state;
    static const struct {
        const char *before, *after, *label;
        bool lifts;
    } rows[] = {{"[a]", "[a, b]", NULL, true},
                {"[a, c]", "[a]", NULL, false},
                {"[a, d]", "[a, d, e]", NULL, false},
                {"[a]", "[a]", "a", false}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        fleet *f = without_retries();
        char spec[256];
        add_policy(f, "count: 1", STRATEGY("fixed", "failureThreshold: 1"), "");
        snprintf(spec, sizeof spec,
                 "  deploymentPolicy: pace\n  nodeSelectors: {matchExpressions:"
                 " [{key: zone, operator: In, values: %s}]}\n",
                 rows[i].before);
        add_skyhook(f, "sk", spec, "1.0.0");
        static const char *const zones[] = {"a", "a", "b", "c", "d"};
        for (size_t k = 0; k < COUNT_OF(zones); k++) {
            char name[FLEET_TEXT];
            snprintf(name, sizeof name, "n%zu", k);
            fleet_node *n = fleet_node_add(f, name);
            n->fails = k == 0;
            fleet_label(n, "zone", zones[k]);
            fleet_show(f, n);
        }
        fleet_run(f, -1);
        assert_true(fleet_group(f, "sk", "__default__").stopped);
        snprintf(spec, sizeof spec,
                 "  deploymentPolicy: pace\n  nodeSelectors: {matchExpressions:"
                 " [{key: zone, operator: In, values: %s}]}\n",
                 rows[i].after);
        if (rows[i].label) {
            fleet_label(fleet_find(f, "n2"), "zone", rows[i].label);
            fleet_show(f, fleet_find(f, "n2"));
        }
        add_skyhook(f, "sk", spec, "1.0.0");
        fleet_run(f, -1);
        check_msg(fleet_group(f, "sk", "__default__").stopped != rows[i].lifts, "row %zu", i);
        if (rows[i].lifts)
            check_state(f, "sk", "n2", DONE);
        fleet_free(f);
    }
}

/* A6: SKYHOOK_NODE_ORDER is the place in the whole rollout; a reset begins at 0. */
static void a6_node_order(void **state)
{
    (void)state;
    fleet *f = without_retries();
    add_policy(f, "percent: 100", STRATEGY("fixed", "initialBatch: 2"), "");
    add_skyhook(f, "sk", "  deploymentPolicy: pace\n", "1.0.0");
    fleet_nodes_add(f, 5);
    fleet_find(f, "node-002")->fails = true;
    fleet_run(f, -1);
    check_lines(f, "start",
                "start sk node-001 __default__ #0\nstart sk node-002 __default__ #1\n"
                "start sk node-003 __default__ #2\nstart sk node-004 __default__ #3\n"
                "start sk node-005 __default__ #4\n");
    fleet_find(f, "node-002")->fails = false;
    fleet_act(f, ACT_RETRY, "sk", "node-002");
    fleet_run(f, -1);
    check_lines(f, "start", "start sk node-002 __default__ #1 retry\n");
    fleet_act(f, ACT_RESET, "sk", "");
    fleet_run(f, 0);
    check_lines(f, "start reset",
                "reset sk __default__\n"
                "start sk node-001 __default__ #0\n"
                "start sk node-002 __default__ #1\n");
    fleet_free(f);
}

/* reset --skip-batch-reset keeps batches and order. */
static void a6_reset_keeping_batches(void **state)
{
    (void)state;
    fleet *f = fleet_new();
    add_policy(f, "percent: 100", STRATEGY("linear", ""), KEEP);
    add_skyhook(f, "sk", "  deploymentPolicy: pace\n", "1.0.0");
    fleet_nodes_add(f, 3);
    fleet_run(f, -1);
    fleet_lines(f, "");
    fleet_tell(f, (fact){.kind = FACT_ACT,
                         .act = {.act = ACT_RESET, .change = STR("sk"), .keep_batches = true}});
    fleet_run(f, 0);
    check_lines(f, "start reset",
                "start sk node-001 __default__ #3\n"
                "start sk node-002 __default__ #4\n"
                "start sk node-003 __default__ #5\n");
    assert_int_equal(fleet_group(f, "sk", "__default__").current_batch, 3);
    fleet_act(f, ACT_RESET_BATCHES, "sk", "");
    fleet_run(f, 0);
    assert_int_equal(fleet_group(f, "sk", "__default__").current_batch, 1);
    fleet_free(f);
}

static void a7_legacy(void **state)
{
    (void)state;
    static const struct {
        const char *budget, *batches;
    } rows[] = {{"  interruptionBudget: {percent: 40}\n", "2,2,1"},
                {"  interruptionBudget: {count: 3}\n", "3,2"},
                {"  interruptionBudget: {percent: 0}\n", "1,1,1,1,1"},
                {"  interruptionBudget: {count: 0}\n", "1,1,1,1,1"},
                {"  interruptionBudget: {}\n", "5"},
                {"", "5"}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        fleet *f = fleet_new();
        add_skyhook(f, "sk", rows[i].budget, "1.0.0");
        fleet_nodes_add(f, 5);
        fleet_run(f, -1);
        check_msg(str_eq(buf_str(&f->batches), str_of(rows[i].batches)), "%s: %.*s", rows[i].budget,
                  STR_ARG(buf_str(&f->batches)));
        fleet_free(f);
    }
}

/* A1: a policy that does not exist holds everything back; what is in flight goes on. */
static void a1_policy_not_found(void **state)
{
    (void)state;
    fleet *f = fleet_new();
    add_skyhook(f, "sk", "  deploymentPolicy: pace\n", "1.0.0");
    fleet_nodes_add(f, 4);
    fleet_run(f, HOUR);
    check_lines(f, "start", "");
    check_text(str_of(fleet_reasons(f, "sk", "node-001")), "policyNotFound:edit:pace");
    add_policy(f, "count: 1", STRATEGY("fixed", ""), KEEP);
    const object *policy = &f->documents.at[f->documents.len - 1].objects->at[0];
    fleet_run(f, 30 * SECOND);
    check_state(f, "sk", "node-001", IN_FLIGHT);
    fleet_tell(f, (fact){.kind = FACT_DOCUMENT_GONE, .document = policy});
    fleet_run(f, HOUR);
    check_state(f, "sk", "node-001", DONE);
    check_state(f, "sk", "node-002", WAITING);
    add_policy(f, "count: 1", STRATEGY("fixed", ""), KEEP);
    fleet_run(f, -1);
    check_state(f, "sk", "node-004", DONE);
    assert_int_equal(fleet_group(f, "sk", "__default__").current_batch, 5);
    fleet_free(f);
}

/* A member that is deleted leaves the batch; one that is left without members ends unjudged. */
static void a4_deleted_members(void **state)
{
    (void)state;
    fleet *f = fleet_new();
    add_policy(f, "percent: 100", STRATEGY("fixed", "initialBatch: 2"), KEEP);
    add_skyhook(f, "sk", "  deploymentPolicy: pace\n", "1.0.0");
    fleet_nodes_add(f, 5);
    fleet_run(f, 30 * SECOND);
    fleet_gone(f, fleet_find(f, "node-001"));
    fleet_step(f);
    assert_int_equal(fleet_count(f, "release sk node-001 __default__ gone"), 1);
    fleet_run(f, 2 * MINUTE);
    check_text(buf_str(&f->batches), "1");
    check_state(f, "sk", "node-003", IN_FLIGHT);
    fleet_gone(f, fleet_find(f, "node-003"));
    fleet_gone(f, fleet_find(f, "node-004"));
    fleet_run(f, -1);
    check_text(buf_str(&f->batches), "1,1");
    check_state(f, "sk", "node-005", DONE);
    fleet_free(f);
}

/* One fact of one node looks at that node's placements alone. */
static void incremental(void **state)
{
    (void)state;
    fleet *f = fleet_new();
    add_policy(f, "count: 1", STRATEGY("fixed", ""), "");
    add_skyhook(f, "sk", "  deploymentPolicy: pace\n", "1.0.0");
    fleet_nodes_add(f, 200);
    fleet_step(f);
    uint64_t before = engine_looked_at(f->engine);
    fleet_show(f, fleet_find(f, "node-100")); /* a heartbeat */
    fleet_step(f);
    assert_int_equal(engine_looked_at(f->engine) - before, 0);
    fleet_find(f, "node-100")->not_ready = true;
    fleet_show(f, fleet_find(f, "node-100"));
    fleet_step(f);
    assert_true(engine_looked_at(f->engine) - before <= 2);
    before = engine_looked_at(f->engine);
    fleet_run(f, MINUTE);
    assert_true(engine_looked_at(f->engine) - before <= 4);
    fleet_free(f);
}

/* A2: a failed node leaves the ceiling when its batch is judged, unless Drover still holds it
 * cordoned, or the policy says that every failed node counts. */
static void a2_failed_nodes_and_the_ceiling(void **state)
{
    (void)state;
    static const struct {
        const char *package, *more;
        size_t starts;
    } rows[] = {{"", "", 5},
                {", interrupt: {type: noop}", "", 2},
                {"", "  failedNodesHoldBudget: true\n", 2}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        fleet *f = without_retries();
        add_policy(f, "count: 2", STRATEGY("fixed", "initialBatch: 2"), rows[i].more);
        fleet_document(f,
                       API "kind: Skyhook\nmetadata: {name: sk}\nspec:\n"
                           "  deploymentPolicy: pace\n  packages:\n"
                           "    tool: {version: '1.0.0', image: repo/tool%s}\n",
                       rows[i].package);
        fleet_nodes_add(f, 5);
        fleet_find(f, "node-001")->fails = fleet_find(f, "node-002")->fails = true;
        fleet_run(f, HOUR);
        assert_int_equal(fleet_count(f, " start sk "), rows[i].starts);
        check_state(f, "sk", "node-001", FAILED);
        if (rows[i].starts == 5)
            check_state(f, "sk", "node-005", DONE);
        else
            check_text(str_of(fleet_reasons(f, "sk", "node-003")),
                       "budget:complete:node-001+node-002");
        fleet_free(f);
    }
}

static void set_blocked(fleet *f, fleet_node *n, bool ignored, bool blocked)
{
    static const fact_taint foreign = {STR("foreign"), STR(""), STR("NoSchedule")};
    n->taints[0] = foreign;
    n->taint_count = blocked && !ignored;
    fleet_label(n, "skyhook.nvidia.com/ignore", blocked && ignored ? "true" : NULL);
    fleet_show(f, n);
}

/* A2, A3: who failed and may not be touched since keeps its place, so that nobody is taken out of
 * service beside it. Released it is fresh: it has the first turn, and a new one of its own. */
static void a3_blocked_after_a_failure(void **state)
{
    (void)state;
    static const struct {
        const char *package, *more;
        bool ignored;
    } rows[] = {{", interrupt: {type: noop}", "", false},
                {", interrupt: {type: noop}", "", true},
                {"", "  failedNodesHoldBudget: true\n", false},
                {"", "  failedNodesHoldBudget: true\n", true}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        fleet *f = without_retries();
        add_policy(f, "count: 1", STRATEGY("fixed", ""), rows[i].more);
        fleet_document(f,
                       API "kind: Skyhook\nmetadata: {name: sk}\nspec:\n"
                           "  deploymentPolicy: pace\n  packages:\n"
                           "    tool: {version: '1.0.0', image: repo/tool%s}\n",
                       rows[i].package);
        fleet_nodes_add(f, 2);
        fleet_node *n = fleet_find(f, "node-001");
        n->fails = true;
        fleet_run(f, HOUR);
        check_state(f, "sk", "node-001", FAILED);
        set_blocked(f, n, rows[i].ignored, true);
        fleet_run(f, HOUR);
        check_state(f, "sk", "node-001", BLOCKED);
        check_state(f, "sk", "node-002", WAITING);
        check_text(str_of(fleet_reasons(f, "sk", "node-002")), "budget:complete:node-001");
        assert_int_equal(fleet_group(f, "sk", "__default__").holders, 1);
        fleet_lines(f, "");
        n->fails = false;
        set_blocked(f, n, rows[i].ignored, false);
        fleet_run(f, -1);
        check_lines(f, "start",
                    "start sk node-001 __default__ #0\nstart sk node-002 __default__ #1\n");
        check_state(f, "sk", "node-001", DONE);
        check_state(f, "sk", "node-002", DONE);
        assert_int_equal(fleet_group(f, "sk", "__default__").peak, 1);
        assert_false(n->unschedulable);
        fleet_free(f);
    }
}

/* A taint of the node's own life cycle forgives nothing: a package that brings its node down is
 * tried again after its time, and no more often than any other. */
static void a5_not_ready_is_no_forgiveness(void **state)
{
    (void)state;
    fleet *f = fleet_with((engine_settings){.stage_retries = 2});
    add_skyhook(f, "sk", "", "1.0.0");
    fleet_nodes_add(f, 1);
    fleet_node *n = fleet_find(f, "node-001");
    n->fails = true;
    for (int attempt = 1; attempt <= 3; attempt++) {
        fleet_run(f, MINUTE);
        assert_int_equal(fleet_count(f, " run sk node-001"), attempt);
        n->taints[0] = (fact_taint){STR("node.kubernetes.io/not-ready"), STR(""), STR("NoExecute")};
        n->taint_count = 1;
        fleet_show(f, n);
        fleet_run(f, SECOND);
        check_state(f, "sk", "node-001", BLOCKED);
        n->taint_count = 0;
        fleet_show(f, n);
        fleet_run(f, SECOND);
        check_state(f, "sk", "node-001", FAILED);
        fleet_run(f, 8 * SECOND + (attempt - 1) * 10 * SECOND);
    }
    fleet_run(f, -1);
    assert_int_equal(fleet_count(f, " run sk node-001"), 3);
    fleet_free(f);
}

/* A blocked node that a person gives back keeps no place any more: others go on at once. */
static void a3_blocked_and_given_back(void **state)
{
    (void)state;
    fleet *f = without_retries();
    f->feedback = true;
    fleet_document(f, API "kind: Skyhook\nmetadata: {name: sk}\nspec:\n"
                          "  interruptionBudget: {count: 1}\n  packages: {tool: {version: '1',"
                          " image: r/tool, interrupt: {type: noop}}}\n");
    fleet_nodes_add(f, 2);
    fleet_node *n = fleet_find(f, "node-001");
    n->fails = true;
    fleet_run(f, HOUR);
    set_blocked(f, n, false, true);
    fleet_run(f, HOUR);
    check_state(f, "sk", "node-002", WAITING);
    n->unschedulable = false;
    fleet_show(f, n);
    fleet_run(f, -1);
    check_state(f, "sk", "node-001", BLOCKED);
    check_state(f, "sk", "node-002", DONE);
    fleet_free(f);
}

/* A3: what a node did before it was blocked is forgotten when it is released: it has all its
 * attempts again, and waits for none. */
static void a3_released_is_fresh(void **state)
{
    (void)state;
    fleet *f = fleet_with((engine_settings){.stage_retries = 2});
    add_skyhook(f, "sk", "", "1.0.0");
    fleet_nodes_add(f, 1);
    fleet_node *n = fleet_find(f, "node-001");
    n->fails = true;
    fleet_run(f, -1);
    assert_int_equal(fleet_count(f, " run sk node-001"), 3);
    check_text(str_of(fleet_reasons(f, "sk", "node-001")), "retry:retry:node-001");
    set_blocked(f, n, true, true);
    fleet_run(f, -1);
    check_text(str_of(fleet_reasons(f, "sk", "node-001")), "ignored:label:node-001");
    fleet_lines(f, "");
    set_blocked(f, n, true, false);
    fleet_run(f, -1);
    assert_int_equal(fleet_count(f, " run sk node-001"), 3);
    /* The same for one that fails while it is being blocked, and for one that is blocked before
     * its next attempt has an end. */
    fleet_act(f, ACT_RETRY, "sk", "node-001");
    fleet_run(f, 0);
    set_blocked(f, n, false, true);
    n->fails = false;
    fleet_run(f, -1);
    check_state(f, "sk", "node-001", BLOCKED);
    n->fails = true;
    fleet_lines(f, "");
    set_blocked(f, n, false, false);
    fleet_run(f, -1);
    assert_int_equal(fleet_count(f, " run sk node-001"), 3);
    fleet_free(f);
}

/* A2: installs, upgrades, config changes and uninstalls are all paced. */
static void a2_nothing_bypasses_the_policy(void **state)
{
    (void)state;
    static const char *const packages[] = {
        "{version: '1.0.0', image: r/t, configMap: {k: a}, uninstall: {enabled: true}}",
        "{version: '1.1.0', image: r/t, configMap: {k: a}, uninstall: {enabled: true}}",
        "{version: '1.1.0', image: r/t, configMap: {k: b}, uninstall: {enabled: true}}",
        "{version: '1.1.0', image: r/t, configMap: {k: b}, "
        "uninstall: {enabled: true, apply: true}}",
    };
    fleet *f = fleet_new();
    add_policy(f, "count: 2", STRATEGY("fixed", "initialBatch: 2"), "");
    fleet_nodes_add(f, 5);
    for (size_t i = 0; i < COUNT_OF(packages); i++) {
        fleet_document(f,
                       API "kind: Skyhook\nmetadata: {name: sk}\nspec:\n"
                           "  deploymentPolicy: pace\n  packages:\n    tool: %s\n",
                       packages[i]);
        buf_clear(&f->batches);
        fleet_run(f, -1);
        check_text(buf_str(&f->batches), "2,2,1");
    }
    fleet_free(f);
}

int main(void)
{
    static row_list all;
    ROWS_TEST(&all, a2_failed_nodes_and_the_ceiling);
    ROWS_TEST(&all, a3_blocked_after_a_failure);
    ROWS_TEST(&all, a3_blocked_and_given_back);
    ROWS_TEST(&all, a5_not_ready_is_no_forgiveness);
    ROWS_TEST(&all, a3_released_is_fresh);
    ROWS_TEST(&all, a2_nothing_bypasses_the_policy);
    ROWS_ADD(&all, a4_row, batch_rows, "A4");
    ROWS_ADD(&all, a4_ceiling, ceiling_rows, "A4, ceilings");
    ROWS_TEST(&all, a1_overlap);
    ROWS_TEST(&all, a5_retries);
    ROWS_TEST(&all, a5_never_and_reboot);
    ROWS_TEST(&all, a5_fresh_first);
    ROWS_TEST(&all, a5_held_node_is_retried);
    ROWS_TEST(&all, a6_reset);
    ROWS_TEST(&all, a6_edit);
    ROWS_TEST(&all, a6_edit_lifts_a_stop);
    ROWS_TEST(&all, a6_wider_selectors_lift_a_stop);
    ROWS_TEST(&all, a6_node_order);
    ROWS_TEST(&all, a6_reset_keeping_batches);
    ROWS_TEST(&all, a7_legacy);
    ROWS_TEST(&all, a1_policy_not_found);
    ROWS_TEST(&all, a4_deleted_members);
    ROWS_TEST(&all, incremental);
    return rows_run(&all);
}
