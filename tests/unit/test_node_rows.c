/* SPDX-License-Identifier: Apache-2.0 */
/* semantics.md part A through the engine, sentence by sentence where test_node_batches.c has the
 * tables: each test is named after the section it holds. */
#include "support/node_fleet.h"
#include "support/rows.h"

#define API "apiVersion: skyhook.nvidia.com/v1alpha1\n"
#define PACED "  deploymentPolicy: pace\n"
#define KEEP "  resetBatchStateOnCompletion: false\n"

static void add_skyhook(fleet *f, const char *name, const char *more, const char *number)
{
    fleet_document(f,
                   API "kind: Skyhook\nmetadata: {name: %s}\nspec:\n%s"
                       "  packages:\n    tool: {version: '%s', image: repo/tool}\n",
                   name, more, number);
}

static void add_policy(fleet *f, const char *spec)
{
    fleet_document(f, API "kind: DeploymentPolicy\nmetadata: {name: pace}\nspec:\n%s", spec);
}

/* With the policy, the Skyhook sk under it, and so many nodes. */
static fleet *fleet_paced(engine_settings settings, const char *spec, int nodes)
{
    fleet *f = fleet_with(settings);
    add_policy(f, spec);
    add_skyhook(f, "sk", PACED, "1.0.0");
    fleet_nodes_add(f, nodes);
    return f;
}

#define NO_RETRIES ((engine_settings){.stage_retries = -1})
#define DEFAULTS ((engine_settings){0})

static void labelled(fleet *f, const char *prefix, int count, const char *key, const char *value)
{
    for (int i = 1; i <= count; i++) {
        char name[FLEET_TEXT];
        snprintf(name, sizeof name, "%s-%02d", prefix, i);
        fleet_node *n = fleet_node_add(f, name);
        fleet_label(n, key, value);
        fleet_label(n, "any", "yes");
        fleet_show(f, n);
    }
}

/* ---- A: budgets belong to one Skyhook ---- */

static void a_two_skyhooks_with_one_policy_have_own_budgets(void **state)
{
    (void)state;
    fleet *f = fleet_new();
    add_policy(f, "  default: {budget: {count: 2}, strategy: {fixed: {initialBatch: 2}}}\n");
    add_skyhook(f, "one", PACED "  nodeSelectors: {matchLabels: {of: one}}\n", "1.0.0");
    add_skyhook(f, "two", PACED "  nodeSelectors: {matchLabels: {of: two}}\n", "1.0.0");
    labelled(f, "a", 4, "of", "one");
    labelled(f, "b", 4, "of", "two");
    fleet_step(f);
    assert_int_equal(fleet_group(f, "one", "__default__").holders, 2);
    assert_int_equal(fleet_group(f, "two", "__default__").holders, 2);
    check_state(f, "one", "a-02", IN_FLIGHT);
    check_state(f, "one", "a-03", WAITING);
    check_state(f, "two", "b-02", IN_FLIGHT);
    check_state(f, "two", "b-03", WAITING);
    check_text(str_of(fleet_reasons(f, "two", "b-03")), "batch:complete:b-01+b-02");
    fleet_free(f);
}

/* ---- A1 ---- */

#define EQUAL_STRATEGIES                                                                           \
    "  default: {budget: {percent: 100}, strategy: {fixed: {}}}\n"                                 \
    "  compartments:\n"                                                                            \
    "  - {name: all, selector: {matchLabels: {any: 'yes'}}, budget: {percent: 25},"                \
    " strategy: {linear: {}}}\n"                                                                   \
    "  - {name: some, selector: {matchLabels: {team: x}}, budget: {count: 4},"                     \
    " strategy: {linear: {}}}\n"

/* 25 % of the 20 that match "all" are 5; of the 12 that are in it they would be 3. */
static void a1_2_the_smaller_ceiling_over_all_that_match(void **state)
{
    (void)state;
    fleet *f = fleet_paced(DEFAULTS, EQUAL_STRATEGIES, 0);
    labelled(f, "other", 12, "team", "y");
    labelled(f, "ours", 8, "team", "x");
    fleet_step(f);
    check_text(fleet_placement(f, "sk", "ours-08").group, "some");
    check_text(fleet_placement(f, "sk", "other-12").group, "all");
    assert_int_equal(fleet_group(f, "sk", "some").matched, 8);
    fleet_run(f, -1);
    /* 16 match: 4 and 4, so by name. 12 match: 3, and 3 is smaller. */
    for (int i = 0; i < 4; i++)
        fleet_gone(f, &f->nodes[i]);
    fleet_step(f);
    check_text(fleet_placement(f, "sk", "ours-08").group, "all");
    add_policy(f, "  default: {budget: {percent: 100}, strategy: {fixed: {}}}\n"
                  "  compartments:\n"
                  "  - {name: all, selector: {matchLabels: {any: 'yes'}}, budget: {percent: 50},"
                  " strategy: {linear: {}}}\n"
                  "  - {name: some, selector: {matchLabels: {team: x}}, budget: {count: 4},"
                  " strategy: {linear: {}}}\n");
    fleet_step(f);
    check_text(fleet_placement(f, "sk", "ours-08").group, "some");
    fleet_free(f);
}

typedef struct tie {
    const char *name, *first, *second, *winner;
} tie;
static const tie ties[] = {
    {"east-b and east-a", "east-b", "east-a", "east-a"},
    {"zone-9 and zone-10, bytewise", "zone-9", "zone-10", "zone-10"},
    {"a name and a longer one", "rack-1", "rack", "rack"},
};

static void a1_3_tie(void **state)
{
    const tie *t = *state;
    fleet *f = fleet_new();
    fleet_document(f,
                   API "kind: DeploymentPolicy\nmetadata: {name: pace}\nspec:\n"
                       "  default: {budget: {percent: 100}, strategy: {fixed: {}}}\n"
                       "  compartments:\n"
                       "  - {name: %s, selector: {matchLabels: {any: 'yes'}}, budget: {count: 2},"
                       " strategy: {fixed: {}}}\n"
                       "  - {name: %s, selector: {matchLabels: {team: x}}, budget: {count: 2},"
                       " strategy: {fixed: {}}}\n",
                   t->first, t->second);
    add_skyhook(f, "sk", PACED, "1.0.0");
    labelled(f, "n", 3, "team", "x");
    fleet_step(f);
    check_text(fleet_placement(f, "sk", "n-01").group, t->winner);
    check_text(fleet_placement(f, "sk", "n-03").group, t->winner);
    fleet_free(f);
}

#define WITHOUT_OLD "  default: {budget: {count: 1}, strategy: {fixed: {}}}\n" KEEP
#define WITH_OLD                                                                                   \
    WITHOUT_OLD                                                                                    \
    "  compartments:\n"                                                                            \
    "  - {name: old, selector: {matchLabels: {team: x}}, budget: {count: 2},"                      \
    " strategy: {fixed: {initialBatch: 2}}}\n"

/* A compartment that is removed drains with a ceiling of 0; its state is kept by its name. */
static void a1_a_removed_compartment_drains(void **state)
{
    (void)state;
    fleet *f = fleet_paced(DEFAULTS, WITH_OLD, 0);
    labelled(f, "n", 7, "team", "x");
    fleet_run(f, 150 * SECOND); /* batch 2: n-03 and n-04 */
    check_state(f, "sk", "n-04", IN_FLIGHT);
    assert_int_equal(fleet_group(f, "sk", "old").current_batch, 2);
    add_policy(f, WITHOUT_OLD);
    fleet_lines(f, "");
    fleet_step(f);
    assert_int_equal(fleet_group(f, "sk", "old").limit, 0);
    check_text(fleet_placement(f, "sk", "n-04").group, "old");
    check_text(fleet_placement(f, "sk", "n-05").group, "__default__");
    check_lines(f, "start", "start sk n-05 __default__ #4\n");
    fleet_run(f, 2 * MINUTE); /* what was in flight ends, is judged, and nothing follows there */
    check_state(f, "sk", "n-04", DONE);
    check_lines(f, "judge start",
                "judge sk old\njudge sk __default__\nstart sk n-06 __default__ #5\n");
    fleet_run(f, 30 * SECOND);
    add_policy(f, WITH_OLD);
    fleet_step(f);
    group_view g = fleet_group(f, "sk", "old");
    assert_int_equal(g.limit, 2);
    assert_int_equal(g.current_batch, 3);
    assert_int_equal(g.completed, 4);
    fleet_run(f, -1);
    check_state(f, "sk", "n-07", DONE);
    assert_int_equal(fleet_group(f, "sk", "old").current_batch, 4);
    fleet_free(f);
}

static void a1_a_stop_holds_its_own_compartment_only(void **state)
{
    (void)state;
    fleet *f = fleet_paced(NO_RETRIES,
                           "  default: {budget: {percent: 100}, strategy: {fixed: {}}}\n"
                           "  compartments:\n"
                           "  - {name: bad, selector: {matchLabels: {team: x}},"
                           " budget: {count: 1}, strategy: {fixed: {failureThreshold: 1}}}\n"
                           "  - {name: good, selector: {matchLabels: {team: z}},"
                           " budget: {count: 1}, strategy: {fixed: {failureThreshold: 1}}}\n",
                           0);
    labelled(f, "a", 3, "team", "x");
    labelled(f, "b", 3, "team", "z");
    fleet_nodes_add(f, 2);
    fleet_find(f, "a-01")->fails = true;
    fleet_run(f, -1);
    assert_true(fleet_group(f, "sk", "bad").stopped);
    assert_false(fleet_group(f, "sk", "good").stopped);
    check_state(f, "sk", "a-02", WAITING);
    check_state(f, "sk", "b-03", DONE);
    check_state(f, "sk", "node-002", DONE);
    fleet_free(f);
}

/* ---- A3 ---- */

static void a3_the_oldest_starts_first_then_by_name(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int64_t created_ms;
    } nodes[] = {{"d", 3000}, {"b", 2000}, {"a", 2000}, {"c", 1000}};
    fleet *f = fleet_paced(
        DEFAULTS, "  default: {budget: {percent: 100}, strategy: {linear: {initialBatch: 1}}}\n",
        0);
    for (size_t i = 0; i < COUNT_OF(nodes); i++) {
        fleet_node *n = fleet_node_add(f, nodes[i].name);
        n->created_ms = nodes[i].created_ms;
        fleet_show(f, n);
    }
    fleet_run(f, -1);
    check_lines(f, "start",
                "start sk c __default__ #0\nstart sk a __default__ #1\n"
                "start sk b __default__ #2\nstart sk d __default__ #3\n");
    fleet_free(f);
}

/* A batch is sticky: no new one while a member runs on, though places are free; and what came of a
 * member first is final for its batch. */
static void a3_a_batch_is_sticky_and_its_first_outcomes_are_final(void **state)
{
    (void)state;
    fleet *f = fleet_paced(
        DEFAULTS,
        "  default: {budget: {percent: 100}, strategy: {fixed: {initialBatch: 3}}}\n" KEEP, 6);
    f->nodes[0].fails_once = true;
    f->nodes[1].silent = true;
    fleet_run(f, HOUR);
    check_state(f, "sk", "node-001", FAILED); /* not tried again before the batch is judged */
    check_state(f, "sk", "node-003", DONE);
    check_state(f, "sk", "node-004", WAITING);
    check_text(str_of(fleet_reasons(f, "sk", "node-004")), "batch:complete:node-002");
    assert_int_equal(fleet_count(f, " start "), 3);
    fleet_gone(f, &f->nodes[1]);
    fleet_run(f, -1);
    check_text(buf_str(&f->batches), "2(1),3");
    check_state(f, "sk", "node-001", DONE); /* by a retry, in no batch */
    fleet_free(f);
}

/* ---- A4: what lifts a stop ---- */

static void a4_a_reset_lifts_a_stop(void **state)
{
    (void)state;
    static const act_kind acts[] = {ACT_RESET, ACT_RESET_BATCHES};
    for (size_t i = 0; i < COUNT_OF(acts); i++) {
        fleet *f = fleet_paced(
            NO_RETRIES,
            "  default: {budget: {percent: 100}, strategy: {fixed: {failureThreshold: 1}}}\n", 3);
        f->nodes[0].fails = true;
        fleet_run(f, -1);
        assert_true(fleet_group(f, "sk", "__default__").stopped);
        assert_int_equal(fleet_group(f, "sk", "__default__").consecutive_failures, 1);
        f->nodes[0].fails = false;
        fleet_act(f, acts[i], "sk", "");
        fleet_step(f);
        assert_false(fleet_group(f, "sk", "__default__").stopped);
        assert_int_equal(fleet_group(f, "sk", "__default__").consecutive_failures, 0);
        fleet_run(f, -1);
        check_state(f, "sk", "node-003", DONE);
        fleet_free(f);
    }
}

/* ---- A5 ---- */

#define ONE_BY_ONE "  default: {budget: {count: 1}, strategy: {fixed: {}}}\n"

/* 10 s, 20 s, 40 s ... at most 300 s, ten times. */
static fleet *given_up(void)
{
    fleet *f = fleet_paced(DEFAULTS, ONE_BY_ONE, 1);
    f->stage_ms = 0;
    f->nodes[0].fails = true;
    fleet_run(f, 2 * HOUR);
    return f;
}

static void a5_back_off_is_at_most_300_s_ten_times(void **state)
{
    (void)state;
    static const int at[] = {10, 30, 70, 150, 310, 610, 910, 1210, 1510, 1810};
    fleet *f = given_up();
    assert_int_equal(fleet_count(f, " start sk node-001"), 1 + COUNT_OF(at));
    for (size_t i = 0; i < COUNT_OF(at); i++) {
        char line[FLEET_TEXT];
        snprintf(line, sizeof line, "\n%d start sk node-001 __default__ #0 retry", at[i]);
        check_msg(fleet_count(f, line) == 1, "%s:\n%.*s", line, STR_ARG(buf_str(&f->trace)));
    }
    check_text(str_of(fleet_reasons(f, "sk", "node-001")), "retry:retry:node-001");
    fleet_free(f);
}

static void by_retry(fleet *f)
{
    fleet_act(f, ACT_RETRY, "sk", "node-001");
}

static void by_reset(fleet *f)
{
    fleet_act(f, ACT_RESET, "sk", "");
}

static void by_change(fleet *f)
{
    add_skyhook(f, "sk", PACED, f->nodes[0].fails ? "1.0.1" : "1.0.2");
}

static void by_reboot(fleet *f)
{
    snprintf(f->nodes[0].boot, FLEET_TEXT, "%s", f->nodes[0].fails ? "boot-2" : "boot-3");
    fleet_show(f, &f->nodes[0]);
}

typedef struct lift {
    const char *name;
    void (*lift)(fleet *f);
} lift;
static const lift lifts[] = {{"a person retries", by_retry},
                             {"a reset", by_reset},
                             {"a change of the package", by_change},
                             {"a reboot of the node", by_reboot}};

/* It stays failed until then; and then it has all its retries anew. */
static void a5_lifted(void **state)
{
    const lift *l = *state;
    fleet *f = given_up();
    fleet_lines(f, "");
    fleet_run(f, HOUR);
    check_lines(f, "start", "");
    l->lift(f);
    fleet_run(f, 2 * HOUR);
    check_msg(fleet_count(f, " start sk node-001") == 11, "%.*s", STR_ARG(buf_str(&f->trace)));
    f->nodes[0].fails = false;
    l->lift(f);
    fleet_run(f, -1);
    check_state(f, "sk", "node-001", DONE);
    fleet_free(f);
}

static void a5_nothing_is_retried_while_stopped(void **state)
{
    (void)state;
    fleet *f = fleet_paced(DEFAULTS,
                           "  default: {budget: {percent: 100}, strategy: {fixed:"
                           " {initialBatch: 2, failureThreshold: 1}}}\n",
                           4);
    f->nodes[0].fails_once = true;
    fleet_run(f, HOUR);
    assert_true(fleet_group(f, "sk", "__default__").stopped);
    assert_int_equal(fleet_count(f, " start "), 2);
    check_state(f, "sk", "node-001", FAILED);
    fleet_free(f);
}

static void a5_nothing_is_retried_while_paused(void **state)
{
    (void)state;
    fleet *f = fleet_paced(DEFAULTS, ONE_BY_ONE, 1);
    f->nodes[0].fails_once = true;
    fleet_run(f, 65 * SECOND);
    check_state(f, "sk", "node-001", FAILED);
    fleet_act(f, ACT_PAUSE, "sk", "");
    fleet_run(f, HOUR);
    assert_int_equal(fleet_count(f, " start "), 1);
    fleet_act(f, ACT_RESUME, "sk", "");
    fleet_run(f, -1);
    assert_int_equal(fleet_count(f, " start "), 2);
    check_state(f, "sk", "node-001", DONE);
    fleet_free(f);
}

/* ---- A6 ---- */

/* After a reset the nodes in flight are batch 1, and initialBatch applies to the next. */
static void a6_after_a_reset_what_is_in_flight_is_batch_1(void **state)
{
    (void)state;
    fleet *f = fleet_paced(
        DEFAULTS,
        "  default: {budget: {percent: 100}, strategy: {linear: {initialBatch: 2, delta: 2}}}\n",
        20);
    fleet_run(f, 150 * SECOND); /* 2, and 4 of the second batch */
    assert_int_equal(fleet_group(f, "sk", "__default__").current_batch, 2);
    assert_int_equal(fleet_group(f, "sk", "__default__").in_flight, 4);
    fleet_act(f, ACT_RESET_BATCHES, "sk", "");
    fleet_step(f);
    group_view g = fleet_group(f, "sk", "__default__");
    assert_int_equal(g.current_batch, 1);
    assert_int_equal(g.completed, 0);
    assert_int_equal(g.in_flight, 4);
    fleet_run(f, -1);
    /* The batch in flight is judged as batch 1; then 2, and on from there. */
    check_text(buf_str(&f->batches), "2,4,2,4,6,2");
    fleet_free(f);
}

/* Nodes that join after completion begin a rollout: at batch 1. */
static void a6_nodes_that_join_after_completion_begin_a_rollout(void **state)
{
    (void)state;
    static const struct {
        const char *keep, *batches;
    } rows[] = {{"", "1,2,3,1,2"}, {KEEP, "1,2,3,3"}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char spec[256];
        snprintf(spec, sizeof spec,
                 "  default: {budget: {percent: 100}, strategy: {linear: {}}}\n%s", rows[i].keep);
        fleet *f = fleet_paced(DEFAULTS, spec, 6);
        fleet_run(f, -1);
        labelled(f, "late", 3, "team", "x");
        fleet_run(f, -1);
        check_text(buf_str(&f->batches), rows[i].batches);
        check_state(f, "sk", "late-03", DONE);
        fleet_free(f);
    }
}

int main(void)
{
    static row_list all;
    ROWS_TEST(&all, a_two_skyhooks_with_one_policy_have_own_budgets);
    ROWS_TEST(&all, a1_2_the_smaller_ceiling_over_all_that_match);
    ROWS_ADD(&all, a1_3_tie, ties, "A1 (3), the name breaks a tie");
    ROWS_TEST(&all, a1_a_removed_compartment_drains);
    ROWS_TEST(&all, a1_a_stop_holds_its_own_compartment_only);
    ROWS_TEST(&all, a3_the_oldest_starts_first_then_by_name);
    ROWS_TEST(&all, a3_a_batch_is_sticky_and_its_first_outcomes_are_final);
    ROWS_TEST(&all, a4_a_reset_lifts_a_stop);
    ROWS_TEST(&all, a5_back_off_is_at_most_300_s_ten_times);
    ROWS_ADD(&all, a5_lifted, lifts, "A5, failed until");
    ROWS_TEST(&all, a5_nothing_is_retried_while_stopped);
    ROWS_TEST(&all, a5_nothing_is_retried_while_paused);
    ROWS_TEST(&all, a6_after_a_reset_what_is_in_flight_is_batch_1);
    ROWS_TEST(&all, a6_nodes_that_join_after_completion_begin_a_rollout);
    return rows_run(&all);
}
