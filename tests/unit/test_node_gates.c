/* SPDX-License-Identifier: Apache-2.0 */
/* What holds a Skyhook back on a node, before and in flight: labels, taints, readiness, priority,
 * pause, drains, reboots; and the runtime-required taint (semantics.md D, E, F; seeds/004). */
#include "support/node_fleet.h"

#define API "apiVersion: skyhook.nvidia.com/v1alpha1\n"
#define REBOOT ", interrupt: {type: reboot}"
#define NOOP ", interrupt: {type: noop}"

static const object *add(fleet *f, const char *name, const char *notes, const char *spec,
                         const char *package_more)
{
    return fleet_document(f,
                          API "kind: Skyhook\nmetadata: {name: %s, annotations: {%s}}\nspec:\n%s"
                              "  packages: {tool: {version: '1', image: r/tool%s}}\n",
                          name, notes, spec, package_more);
}

static fleet *nodes_with(int count, const char *spec, const char *package_more)
{
    fleet *f = fleet_new();
    add(f, "sk", "", spec, package_more);
    fleet_nodes_add(f, count);
    return f;
}

static void stage_ends(fleet *f, const char *stage, int64_t attempt, outcome end)
{
    fleet_tell(f, (fact){.kind = FACT_STAGE,
                         .stage = {STR("sk"), STR("node-001"), STR("tool"), STR("1"), str_of(stage),
                                   attempt, end, STR_EMPTY, false}});
    fleet_step(f);
}

static void a3_seed_004_ignored_and_tainted(void **state)
{
    (void)state;
    fleet *f = fleet_new();
    add(f, "sk", "", "  additionalTolerations: [{key: ours, operator: Exists}]\n", "");
    static fact_taint taints[] = {
        {STR("foreign"), STR("x"), STR("NoSchedule")},
        {STR("ours"), STR(""), STR("NoExecute")},
        {STR("skyhook.nvidia.com"), STR("runtime-required"), STR("NoSchedule")},
        {STR("node.kubernetes.io/unschedulable"), STR(""), STR("NoSchedule")}};
    for (int i = 0; i < 4; i++) {
        char name[FLEET_TEXT];
        snprintf(name, sizeof name, "t%d", i);
        fleet_node *n = fleet_node_add(f, name);
        n->taints[n->taint_count++] = taints[i];
        fleet_show(f, n);
    }
    fleet_node *ignored = fleet_node_add(f, "ignored");
    fleet_label(ignored, "skyhook.nvidia.com/ignore", "true");
    fleet_show(f, ignored);
    fleet_run(f, -1);
    check_state(f, "sk", "t0", BLOCKED);
    check_text(str_of(fleet_reasons(f, "sk", "t0")), "taint:untaint:foreign=x:NoSchedule");
    check_state(f, "sk", "t1", DONE);
    check_state(f, "sk", "t2", DONE);
    check_state(f, "sk", "t3", DONE);
    check_state(f, "sk", "ignored", BLOCKED);
    check_text(str_of(fleet_reasons(f, "sk", "ignored")), "ignored:label:ignored");
    fleet_label(ignored, "skyhook.nvidia.com/ignore", NULL);
    fleet_find(f, "t0")->taint_count = 0;
    fleet_show(f, ignored);
    fleet_show(f, fleet_find(f, "t0"));
    fleet_run(f, -1);
    check_state(f, "sk", "ignored", DONE);
    check_state(f, "sk", "t0", DONE);
    fleet_free(f);
}

/* A3: who was blocked in a batch and given back before it ended is fresh when it is judged, and
 * stands in its old place: first in the next batch. */
static void a3_given_back_in_the_batch(void **state)
{
    (void)state;
    fleet *f = nodes_with(4, "  interruptionBudget: {count: 2}\n", "");
    f->nodes[0].silent = f->nodes[1].silent = true;
    fleet_step(f);
    fleet_label(&f->nodes[0], "skyhook.nvidia.com/ignore", "true");
    fleet_show(f, &f->nodes[0]);
    stage_ends(f, "apply", 1, OUTCOME_SUCCEEDED);
    check_state(f, "sk", "node-001", BLOCKED);
    fleet_label(&f->nodes[0], "skyhook.nvidia.com/ignore", NULL);
    fleet_show(f, &f->nodes[0]);
    fleet_step(f);
    check_text(str_of(fleet_reasons(f, "sk", "node-001")), "batch:complete:node-002");
    fleet_gone(f, &f->nodes[1]);
    fleet_step(f);
    check_state(f, "sk", "node-001", IN_FLIGHT);
    check_state(f, "sk", "node-003", IN_FLIGHT);
    check_state(f, "sk", "node-004", WAITING);
    fleet_free(f);
}

/* A3: in flight the running stage ends and is recorded, the cordon stays, the claim ends as
 * blocked. */
static void a3_blocked_in_flight(void **state)
{
    (void)state;
    static const fact_taint taints[] = {
        {STR("foreign"), STR(""), STR("NoSchedule")},
        {STR("node.kubernetes.io/not-ready"), STR(""), STR("NoExecute")},
        {STR("node.cloudprovider.kubernetes.io/shutdown"), STR(""), STR("NoSchedule")}};
    for (size_t i = 0; i < COUNT_OF(taints); i++) {
        fleet *f = nodes_with(1, "", NOOP);
        fleet_run(f, 30 * SECOND);
        f->nodes[0].taints[f->nodes[0].taint_count++] = taints[i];
        fleet_show(f, &f->nodes[0]);
        fleet_step(f);
        check_state(f, "sk", "node-001", IN_FLIGHT);
        fleet_lines(f, "");
        fleet_run(f, MINUTE);
        if (i == 0) {
            check_lines(f, "run record release uncordon",
                        "record sk node-001 tool 1 apply complete\n"
                        "release sk node-001 __default__ blocked\n");
            check_state(f, "sk", "node-001", BLOCKED);
        } else {
            check_state(f, "sk", "node-001", IN_FLIGHT);
        }
        f->nodes[0].taint_count = 0;
        fleet_show(f, &f->nodes[0]);
        fleet_run(f, -1);
        check_state(f, "sk", "node-001", DONE);
        assert_false(f->nodes[0].unschedulable);
        fleet_free(f);
    }
}

static void f_priority(void **state)
{
    (void)state;
    fleet *f = fleet_new();
    add(f, "first", "", "  priority: 10\n  nodeSelectors: {matchLabels: {gpu: 'yes'}}\n", "");
    add(f, "second", "", "", "");
    fleet_nodes_add(f, 2);
    fleet_label(&f->nodes[0], "gpu", "yes");
    fleet_show(f, &f->nodes[0]);
    fleet_step(f);
    /* Only where the first one selects. */
    check_state(f, "first", "node-001", IN_FLIGHT);
    check_state(f, "second", "node-001", WAITING);
    check_state(f, "second", "node-002", IN_FLIGHT);
    assert_non_null(strstr(fleet_reasons(f, "second", "node-001"), "priority:complete:first"));
    fleet_act(f, ACT_PAUSE, "first", "");
    fleet_run(f, HOUR);
    check_state(f, "second", "node-001", WAITING); /* paused ones block */
    fleet_act(f, ACT_RESUME, "first", "");
    fleet_run(f, -1);
    check_state(f, "second", "node-001", DONE);
    size_t first = str_find(buf_str(&f->trace), STR("release first node-001"));
    size_t second = str_find(buf_str(&f->trace), STR("start second node-001"));
    assert_true(first < second);
    fleet_free(f);
}

static void f_sequencing_all(void **state)
{
    (void)state;
    fleet *f = fleet_new();
    add(f, "first", "",
        "  priority: 10\n  sequencing: all\n"
        "  nodeSelectors: {matchLabels: {gpu: 'yes'}}\n",
        "");
    add(f, "second", "", "", "");
    fleet_nodes_add(f, 3);
    fleet_label(&f->nodes[0], "gpu", "yes");
    fleet_show(f, &f->nodes[0]);
    f->nodes[0].fails = true;
    fleet_run(f, 5 * SECOND + MINUTE);
    check_state(f, "first", "node-001", FAILED); /* failed ones block, everywhere */
    check_state(f, "second", "node-002", WAITING);
    check_text(str_of(fleet_reasons(f, "second", "node-002")), "priority:complete:first");
    add(f, "first", "skyhook.nvidia.com/disable: 'true'",
        "  priority: 10\n  sequencing: all\n  nodeSelectors: {matchLabels: {gpu: 'yes'}}\n", "");
    fleet_step(f);
    check_state(f, "second", "node-002", IN_FLIGHT); /* disabled ones do not */
    check_state(f, "second", "node-001", IN_FLIGHT);
    fleet_free(f);
}

/* A node in flight for one Skyhook is busy for another, unless its holder is paused and runs
 * nothing. */
static void f_busy(void **state)
{
    (void)state;
    fleet *f = fleet_new();
    add(f, "later", "", "  priority: 300\n", NOOP);
    fleet_nodes_add(f, 1);
    fleet_run(f, 30 * SECOND);
    add(f, "early", "", "  priority: 10\n", "");
    fleet_step(f);
    check_state(f, "early", "node-001", WAITING);
    check_text(str_of(fleet_reasons(f, "early", "node-001")), "busy:complete:later");
    fleet_act(f, ACT_PAUSE, "later", "");
    fleet_step(f);
    check_state(f, "early", "node-001", WAITING); /* its stage still runs */
    fleet_run(f, 30 * SECOND);
    check_state(f, "early", "node-001", IN_FLIGHT);
    check_state(f, "later", "node-001", IN_FLIGHT);
    fleet_act(f, ACT_RESUME, "later", "");
    fleet_run(f, -1);
    check_state(f, "later", "node-001", DONE);
    check_state(f, "early", "node-001", DONE);
    assert_int_equal(fleet_count(f, " uncordon "), 1);
    fleet_free(f);
}

/* Pause and disable stop new stages in every stage; what runs ends and is recorded. */
static void f_pause_and_disable_in_every_stage(void **state)
{
    (void)state;
    for (int stage = 0; stage < 10; stage++) {
        fleet *f = nodes_with(1, "", NOOP);
        bool disable = stage % 2 == 1;
        fleet_run(f, (stage / 2) * MINUTE + (stage > 0 ? 30 * SECOND : 0));
        if (disable)
            add(f, "sk", "skyhook.nvidia.com/disable: 'true'", "", NOOP);
        else
            fleet_act(f, ACT_PAUSE, "sk", "");
        fleet_lines(f, "");
        fleet_run(f, HOUR);
        assert_int_equal(fleet_count(f, " run "), 0);
        if (disable)
            add(f, "sk", "", "", NOOP);
        else
            fleet_act(f, ACT_RESUME, "sk", "");
        fleet_run(f, -1);
        check_state(f, "sk", "node-001", DONE);
        fleet_free(f);
    }
    fleet *f = fleet_new();
    add(f, "sk", "skyhook.nvidia.com/pause: 'true'", "", "");
    fleet_nodes_add(f, 1);
    fleet_run(f, HOUR);
    check_text(str_of(fleet_reasons(f, "sk", "node-001")), "paused:resume:sk");
    add(f, "sk", "", "", "");
    fleet_run(f, -1);
    check_state(f, "sk", "node-001", DONE);
    fleet_free(f);
}

/* ---- drains and cordons ---- */

static void f_drain_blocked(void **state)
{
    (void)state;
    fleet *f = nodes_with(1, "  drainTimeout: 10m\n", NOOP);
    f->nodes[0].drain_blocked = true;
    fleet_step(f);
    fleet_tell(f, (fact){.kind = FACT_DRAIN,
                         .drain = {.target = STR("node-001"),
                                   .blocking_pod = STR("db/pg-0"),
                                   .blocking_budget = STR("db/pg")}});
    fleet_run(f, 9 * MINUTE);
    check_state(f, "sk", "node-001", IN_FLIGHT);
    check_text(str_of(fleet_reasons(f, "sk", "node-001")), "drain:complete:db/pg-0");
    fleet_run(f, MINUTE);
    check_state(f, "sk", "node-001", FAILED);
    assert_int_equal(fleet_count(f, "release sk node-001 __default__ erroring DrainTimeout"), 1);
    assert_int_equal(fleet_count(f, " uncordon "), 0);
    assert_int_equal(fleet_group(f, "sk", "__default__").holders, 1); /* held cordoned */
    f->nodes[0].drain_blocked = false;
    fleet_run(f, -1);
    check_state(f, "sk", "node-001", DONE);
    assert_int_equal(fleet_count(f, " cordon sk"), 1);
    assert_int_equal(fleet_count(f, " uncordon "), 1);
    fleet_free(f);
}

/* Where a shell says when it begins, the time of a drain runs from then on, and once. */
static void f_drain_that_waits_for_its_turn(void **state)
{
    (void)state;
    fleet *f = fleet_with((engine_settings){.drains_are_told = true});
    add(f, "sk", "", "  drainTimeout: 10m\n", NOOP);
    fleet_nodes_add(f, 1);
    f->nodes[0].drain_blocked = true;
    fleet_run(f, HOUR);
    check_state(f, "sk", "node-001", IN_FLIGHT);
    fact begun = {.kind = FACT_DRAIN, .drain = {.target = STR("node-001"), .begun = true}};
    for (int turn = 0; turn < 2; turn++) {
        fleet_tell(f, begun);
        fleet_run(f, 5 * MINUTE - 1);
        check_state(f, "sk", "node-001", IN_FLIGHT);
    }
    fleet_run(f, 2);
    check_state(f, "sk", "node-001", FAILED);
    fleet_free(f);
}

/* A person's uncordon in mid-drain is put back once. Then the node is the person's: nothing is
 * disturbed there, whatever becomes of the pods, until a person cordons it. */
static void f_a_persons_uncordon(void **state)
{
    (void)state;
    fleet *f = nodes_with(1, "", NOOP);
    f->feedback = true;
    f->nodes[0].drain_blocked = true;
    fleet_step(f);
    assert_int_equal(fleet_count(f, " cordon sk node-001"), 1);
    for (int i = 0; i < 2; i++) {
        f->nodes[0].unschedulable = false;
        fleet_show(f, &f->nodes[0]);
        fleet_step(f);
        assert_int_equal(fleet_count(f, " cordon sk node-001 again"), 1);
    }
    f->nodes[0].drain_blocked = false;
    fleet_run(f, -1);
    check_state(f, "sk", "node-001", IN_FLIGHT);
    assert_int_equal(fleet_count(f, " run "), 0);
    assert_string_equal(fleet_reasons(f, "sk", "node-001"), "drain:cordon:node-001");
    f->nodes[0].unschedulable = true;
    fleet_show(f, &f->nodes[0]);
    fleet_run(f, -1);
    check_state(f, "sk", "node-001", DONE);
    assert_int_equal(fleet_count(f, " uncordon "), 0); /* the cordon is the person's, too */
    fleet_free(f);
}

/* A node that was unschedulable before is never uncordoned. */
static void f_cordoned_before(void **state)
{
    (void)state;
    fleet *f = nodes_with(1, "", NOOP);
    f->nodes[0].unschedulable = true;
    fleet_show(f, &f->nodes[0]);
    fleet_run(f, -1);
    check_state(f, "sk", "node-001", DONE);
    assert_int_equal(fleet_count(f, " cordon sk node-001 cordonedBefore"), 1);
    assert_int_equal(fleet_count(f, " uncordon "), 0);
    fleet_free(f);
}

/* ---- nodes that go away ---- */

static fleet *at_reboot_said(outcome end)
{
    fleet *f = nodes_with(1, "", REBOOT);
    f->nodes[0].silent = true;
    fleet_run(f, 0);
    stage_ends(f, "apply", 1, OUTCOME_SUCCEEDED);
    stage_ends(f, "config", 2, OUTCOME_SUCCEEDED);
    fleet_lines(f, "");
    stage_ends(f, "interrupt", 3, end);
    check_lines(f, "run record release", "");
    return f;
}

static fleet *at_reboot(void)
{
    return at_reboot_said(OUTCOME_LOST);
}

static void e_reboot_succeeds(void **state)
{
    (void)state;
    fleet *f = at_reboot();
    check_text(str_of(fleet_reasons(f, "sk", "node-001")), "reboot:online:node-001");
    f->nodes[0].not_ready = true;
    fleet_show(f, &f->nodes[0]);
    fleet_run(f, 30 * MINUTE);
    check_state(f, "sk", "node-001", IN_FLIGHT);
    snprintf(f->nodes[0].boot, FLEET_TEXT, "boot-2");
    fleet_show(f, &f->nodes[0]);
    fleet_step(f);
    check_lines(f, "run", ""); /* not ready yet */
    f->nodes[0].not_ready = f->nodes[0].silent = false;
    fleet_show(f, &f->nodes[0]);
    fleet_run(f, -1);
    check_lines(f, "run start",
                "run sk node-001 tool 1 interrupt {\"type\":\"reboot\"} #4\n"
                "run sk node-001 tool 1 post-interrupt #5\n");
    check_state(f, "sk", "node-001", DONE);
    fleet_free(f);
}

static void e_reboot_does_not_happen(void **state)
{
    (void)state;
    fleet *f = at_reboot();
    fleet_run(f, 119 * SECOND);
    check_state(f, "sk", "node-001", IN_FLIGHT);
    fleet_run(f, SECOND);
    check_state(f, "sk", "node-001", FAILED);
    assert_int_equal(fleet_count(f, "interrupt erroring NotRebooted"), 1);
    fleet_free(f);
}

/* An agent that only asks for the reboot says success before the node is down: it counts when the
 * node is back, and nothing runs before. */
static void e_reboot_said_too_early(void **state)
{
    (void)state;
    fleet *f = at_reboot_said(OUTCOME_SUCCEEDED);
    check_text(str_of(fleet_reasons(f, "sk", "node-001")), "reboot:online:node-001");
    fleet_run(f, MINUTE);
    f->nodes[0].not_ready = true;
    fleet_show(f, &f->nodes[0]);
    fleet_run(f, 30 * MINUTE);
    snprintf(f->nodes[0].boot, FLEET_TEXT, "boot-2");
    fleet_show(f, &f->nodes[0]);
    fleet_step(f);
    check_lines(f, "run record", ""); /* not ready yet */
    f->nodes[0].not_ready = f->nodes[0].silent = false;
    fleet_show(f, &f->nodes[0]);
    fleet_run(f, -1);
    check_lines(f, "run start release",
                "run sk node-001 tool 1 post-interrupt #4\n"
                "release sk node-001 __default__ complete\n");
    fleet_free(f);
}

/* The reboot does not come: the attempt has failed. Whoever says success again after that counts,
 * and so does who says it after a person's reboot; in the same boot or not, nothing is waited for.
 */
static void e_reboot_said_and_not_done(void **state)
{
    (void)state;
    for (int by_hand = 0; by_hand < 2; by_hand++) {
        fleet *f = at_reboot_said(OUTCOME_SUCCEEDED);
        fleet_run(f, 119 * SECOND);
        check_state(f, "sk", "node-001", IN_FLIGHT);
        fleet_run(f, SECOND);
        check_state(f, "sk", "node-001", FAILED);
        check_lines(f, "record run", "record sk node-001 tool 1 interrupt erroring NotRebooted\n");
        if (by_hand) {
            snprintf(f->nodes[0].boot, FLEET_TEXT, "boot-2");
            fleet_show(f, &f->nodes[0]);
        }
        fleet_run(f, 10 * SECOND);
        fleet_lines(f, "");
        stage_ends(f, "interrupt", 4, OUTCOME_SUCCEEDED);
        check_lines(f, "run", "run sk node-001 tool 1 post-interrupt #5\n");
        fleet_free(f);
    }
}

/* What failed as it says it did and was rebooted by hand meanwhile has had its reboot; one that was
 * rebooted for the same work before a reset is not rebooted again by its agent. Another piece of
 * work is. */
static void e_reboot_came_before(void **state)
{
    (void)state;
    static const char text[] =
        API "kind: Skyhook\nmetadata: {name: sk, generation: %d}\nspec:\n"
            "  packages: {tool: {version: '%s', image: r/tool, interrupt: {type: reboot}}}\n";
    fleet *f = at_reboot();
    fleet_run(f, 2 * MINUTE);
    check_state(f, "sk", "node-001", FAILED);
    snprintf(f->nodes[0].boot, FLEET_TEXT, "boot-2");
    fleet_show(f, &f->nodes[0]);
    fleet_step(f);
    stage_ends(f, "interrupt", 4, OUTCOME_SUCCEEDED);
    assert_int_equal(fleet_count(f, "post-interrupt #5"), 1);
    fleet_free(f);
    f = fleet_new();
    fleet_document(f, text, 7, "1");
    fleet_nodes_add(f, 1);
    fleet_run(f, -1);
    char boot[FLEET_TEXT];
    memcpy(boot, f->nodes[0].boot, sizeof boot);
    assert_string_not_equal(boot, "boot-1");
    fleet_act(f, ACT_RESET, "sk", "");
    int64_t began_ms = f->now_ms;
    fleet_run(f, -1);
    check_state(f, "sk", "node-001", DONE);
    assert_int_equal(f->now_ms - began_ms, 4 * MINUTE);
    assert_string_equal(boot, f->nodes[0].boot);
    assert_int_equal(fleet_count(f, "NotRebooted"), 0);
    fleet_document(f, text, 8, "2");
    fleet_run(f, 2 * MINUTE + SECOND);
    f->nodes[0].silent = true;
    fleet_lines(f, "");
    fleet_tell(f, (fact){.kind = FACT_STAGE,
                         .stage = {STR("sk"), STR("node-001"), STR("tool"), STR("2"),
                                   STR("interrupt"), 11, OUTCOME_SUCCEEDED, STR_EMPTY, false}});
    fleet_step(f);
    check_lines(f, "run", "");
    fleet_free(f);
}

/* Two packages of one generation reboot one after the other: the reboot of the first is not that of
 * the second, so that success which is said too early is waited for there, too. */
static void e_reboots_of_two_packages(void **state)
{
    (void)state;
    fleet *f = fleet_new();
    fleet_document(f, API
                   "kind: Skyhook\nmetadata: {name: sk, generation: 3}\nspec:\n"
                   "  packages:\n"
                   "    first: {version: '1', image: r/a, interrupt: {type: reboot}}\n"
                   "    tool: {version: '1', image: r/b, interrupt: {type: reboot},\n"
                   "           dependsOn: {first: '1'}}\n");
    fleet_nodes_add(f, 1);
    fleet_run(f, 6 * MINUTE + SECOND);
    f->nodes[0].silent = true;
    assert_int_equal(fleet_count(f, "run sk node-001 tool 1 interrupt"), 1);
    fleet_lines(f, "");
    stage_ends(f, "interrupt", 7, OUTCOME_SUCCEEDED);
    check_lines(f, "run", "");
    snprintf(f->nodes[0].boot, FLEET_TEXT, "boot-after-tool");
    fleet_show(f, &f->nodes[0]);
    fleet_step(f);
    check_lines(f, "run", "run sk node-001 tool 1 post-interrupt #8\n");
    f->nodes[0].silent = false;
    stage_ends(f, "post-interrupt", 8, OUTCOME_SUCCEEDED);
    fleet_act(f, ACT_RESET, "sk", ""); /* both are remembered */
    fleet_run(f, -1);
    check_state(f, "sk", "node-001", DONE);
    assert_int_equal(fleet_count(f, "erroring"), 0);
    fleet_free(f);
}

/* One reboot serves two packages, but the agent did it for one: for the other one alone, when it is
 * run again, the node is rebooted again. */
static void e_reboot_of_one_that_was_skipped(void **state)
{
    (void)state;
    fleet *f = fleet_new();
    fleet_document(f, API "kind: Skyhook\nmetadata: {name: sk, generation: 3}\nspec:\n"
                          "  packages:\n"
                          "    first: {version: '1', image: r/a, interrupt: {type: reboot}}\n"
                          "    tool: {version: '1', image: r/b, interrupt: {type: reboot}}\n");
    fleet_nodes_add(f, 1);
    fleet_run(f, -1);
    check_state(f, "sk", "node-001", DONE);
    assert_int_equal(fleet_count(f, "run sk node-001 tool 1 interrupt"), 0);
    fleet_tell(f, (fact){.kind = FACT_ACT,
                         .act = {.act = ACT_RESET,
                                 .change = STR("sk"),
                                 .target = STR("node-001"),
                                 .package = STR("tool")}});
    fleet_run(f, 2 * MINUTE + SECOND);
    f->nodes[0].silent = true;
    assert_int_equal(fleet_count(f, "run sk node-001 tool 1 interrupt"), 1);
    fleet_lines(f, "");
    stage_ends(f, "interrupt", 10, OUTCOME_SUCCEEDED);
    check_lines(f, "run", "");
    check_text(str_of(fleet_reasons(f, "sk", "node-001")), "reboot:online:node-001");
    fleet_free(f);
}

static void e_reboot_never_returns(void **state)
{
    (void)state;
    fleet *f = at_reboot();
    f->nodes[0].not_ready = true;
    fleet_show(f, &f->nodes[0]);
    fleet_run(f, 59 * MINUTE);
    check_state(f, "sk", "node-001", IN_FLIGHT);
    fleet_run(f, MINUTE);
    check_state(f, "sk", "node-001", FAILED);
    assert_int_equal(fleet_count(f, "release sk node-001 __default__ erroring NodeLost"), 1);
    fleet_free(f);
}

static void e_node_lost(void **state)
{
    (void)state;
    fleet *f = nodes_with(1, "", "");
    f->nodes[0].silent = true;
    fleet_run(f, 30 * SECOND);
    f->nodes[0].not_ready = true;
    fleet_show(f, &f->nodes[0]);
    fleet_run(f, 59 * MINUTE);
    check_state(f, "sk", "node-001", IN_FLIGHT);
    assert_non_null(strstr(fleet_reasons(f, "sk", "node-001"), "notReady:online:node-001"));
    fleet_run(f, MINUTE);
    assert_int_equal(fleet_count(f, "release sk node-001 __default__ erroring NodeLost"), 1);
    /* Not tried again before it is back. */
    fleet_lines(f, "");
    fleet_run(f, HOUR);
    check_lines(f, "start", "");
    f->nodes[0].not_ready = f->nodes[0].silent = false;
    fleet_show(f, &f->nodes[0]);
    fleet_run(f, -1);
    check_state(f, "sk", "node-001", DONE);
    fleet_free(f);
}

/* Deletion, replacement and a label that takes the node away, in every stage. */
static void leaves_in_every_stage(void **state)
{
    (void)state;
    for (int stage = 0; stage < 15; stage++) {
        fleet *f = nodes_with(2,
                              "  nodeSelectors: {matchExpressions: [{key: out, operator:"
                              " DoesNotExist}]}\n",
                              NOOP);
        fleet_node *n = &f->nodes[0];
        fleet_run(f, (stage / 3) * MINUTE);
        if (stage % 3 == 0) {
            fleet_gone(f, n);
        } else if (stage % 3 == 1) {
            snprintf(n->uid, FLEET_TEXT, "another");
            n->unschedulable = false;
            fleet_show(f, n);
        } else {
            fleet_label(n, "out", "yes");
            fleet_show(f, n);
        }
        fleet_run(f, -1);
        check_state(f, "sk", "node-002", DONE);
        if (stage % 3 == 2) {
            assert_false(n->unschedulable);
            fleet_label(n, "out", NULL);
            fleet_show(f, n);
            fleet_run(f, -1);
        }
        if (stage % 3 != 0)
            check_state(f, "sk", "node-001", DONE);
        fleet_free(f);
    }
}

/* ---- D: runtime required ---- */

#define RUNTIME "  runtimeRequired: true\n"
#define AUTO RUNTIME "  autoTaintNewNodes: true\n"

static void put_taint(fleet *f, fleet_node *n)
{
    n->taints[n->taint_count++] =
        (fact_taint){STR("skyhook.nvidia.com"), STR("runtime-required"), STR("NoSchedule")};
    fleet_show(f, n);
}

static void d_seed_004_taint_goes_per_node(void **state)
{
    (void)state;
    fleet *f = fleet_new();
    add(f, "aa", "", RUNTIME, "");
    add(f, "bb", "", RUNTIME "  nodeSelectors: {matchLabels: {gpu: 'yes'}}\n", "");
    fleet_nodes_add(f, 2);
    fleet_label(&f->nodes[1], "gpu", "yes");
    f->nodes[0].fails = true;
    put_taint(f, &f->nodes[0]);
    put_taint(f, &f->nodes[1]);
    fleet_run(f, 3 * MINUTE);
    assert_int_equal(fleet_count(f, " untaint "), 0); /* bb is not done on it */
    fleet_run(f, 2 * MINUTE);
    assert_int_equal(fleet_count(f, " untaint node-002"), 1); /* it does not wait for node-001 */
    assert_int_equal(fleet_count(f, " untaint node-001"), 0);
    assert_int_equal(fleet_count(f, " taint "), 0);
    fleet_free(f);
}

static void d_seed_004_auto_taint(void **state)
{
    (void)state;
    fleet *f = fleet_new();
    add(f, "sk", "", AUTO, "");
    fleet_nodes_add(f, 1);
    fleet_node *seen = fleet_node_add(f, "seen");
    seen->annotations[seen->annotation_count++] =
        (label){STR("skyhook.nvidia.com/seen"), STR("true")};
    fleet_show(f, seen);
    fleet_node *had = fleet_node_add(f, "had");
    put_taint(f, had);
    fleet_step(f);
    str trace = buf_str(&f->trace);
    /* Before anything else is done to it; not on one that was seen or has it. */
    assert_true(str_find(trace, STR("taint node-001")) < str_find(trace, STR("start sk node-001")));
    assert_int_equal(fleet_count(f, " taint "), 1);
    fleet_run(f, -1);
    assert_int_equal(fleet_count(f, " untaint node-001"), 1);
    assert_int_equal(fleet_count(f, " untaint had"), 1);
    assert_int_equal(fleet_count(f, " untaint seen"), 0);
    /* Once processed, never tainted again: not even after a reset. */
    fleet_lines(f, "");
    fleet_act(f, ACT_RESET, "sk", "");
    fleet_run(f, -1);
    check_lines(f, "taint", "");
    fleet_free(f);
}

/* A Skyhook that is deleted holds the taint no longer, but removes only what it may. */
static void d_taint_of_a_deleted_skyhook(void **state)
{
    (void)state;
    fleet *f = fleet_new();
    const object *o = add(f, "sk", "skyhook.nvidia.com/pause: 'true'", AUTO, "");
    fleet_nodes_add(f, 1);
    fleet_node *foreign = fleet_node_add(f, "foreign");
    put_taint(f, foreign);
    fleet_step(f);
    fleet_tell(f, (fact){.kind = FACT_DOCUMENT_GONE, .document = o});
    fleet_step(f);
    assert_int_equal(fleet_count(f, " untaint node-001"), 1);
    assert_int_equal(fleet_count(f, " untaint foreign"), 0);
    fleet_free(f);
}

/* Deleting a Skyhook ends its claims and gives back its cordons. */
static void deleted_in_flight(void **state)
{
    (void)state;
    fleet *f = fleet_new();
    const object *o = add(f, "sk", "", "", NOOP);
    fleet_nodes_add(f, 1);
    fleet_run(f, 90 * SECOND);
    fleet_lines(f, "");
    fleet_tell(f, (fact){.kind = FACT_DOCUMENT_GONE, .document = o});
    fleet_step(f);
    check_lines(f, "release uncordon",
                "release sk node-001 __default__ gone\nuncordon sk node-001\n");
    fleet_run(f, -1);
    fleet_free(f);
}

/* product.md 4: doing all acts of all reasons at once starts the node in that step; leaving one out
 * does not. */
static fleet *stalled(void)
{
    fleet *f = nodes_with(2, "  interruptionBudget: {count: 1}\n", "");
    f->nodes[0].silent = true;
    fleet_node *n = &f->nodes[1];
    fleet_label(n, "skyhook.nvidia.com/ignore", "true");
    n->taints[n->taint_count++] = (fact_taint){STR("foreign"), STR(""), STR("NoSchedule")};
    n->not_ready = true;
    fleet_show(f, n);
    fleet_step(f);
    stage_ends(f, "apply", 1, OUTCOME_SUCCEEDED);
    fleet_act(f, ACT_PAUSE, "sk", "");
    fleet_step(f);
    check_text(
        str_of(fleet_reasons(f, "sk", "node-002")),
        "ignored:label:node-002, taint:untaint:foreign:NoSchedule, notReady:online:node-002, "
        "paused:resume:sk, batch:complete:node-001");
    return f;
}

static void acts_of_reasons(void **state)
{
    (void)state;
    for (int without = -1; without < 5; without++) {
        fleet *f = stalled();
        fleet_node *n = &f->nodes[1];
        if (without != 0)
            fleet_label(n, "skyhook.nvidia.com/ignore", NULL);
        if (without != 1)
            n->taint_count = 0;
        if (without != 2)
            n->not_ready = false;
        fleet_show(f, n);
        if (without != 3)
            fleet_act(f, ACT_RESUME, "sk", "");
        if (without != 4)
            stage_ends(f, "config", 2, OUTCOME_SUCCEEDED);
        fleet_step(f);
        bool started = fleet_placement(f, "sk", "node-002").state == PLACEMENT_IN_FLIGHT;
        check_msg(started == (without < 0), "without %d", without);
        fleet_free(f);
    }
}

/* node-001 has failed before node-002, and both wait for the same Skyhook to be done everywhere: of
 * them node-001 is tried again first, and needs the place that node-003 has. */
static void f_who_is_freed_together(void **state)
{
    (void)state;
    fleet *f = nodes_with(3, "  interruptionBudget: {count: 1}\n", "");
    f->nodes[0].fails = f->nodes[1].fails = true;
    fleet_step(f);
    while (fleet_placement(f, "sk", "node-003").state != PLACEMENT_IN_FLIGHT)
        fleet_run(f, SECOND);
    f->nodes[0].fails = f->nodes[1].fails = false;
    add(f, "first", "", "  priority: 10\n  sequencing: all\n  interruptionBudget: {count: 1}\n",
        "");
    fleet_step(f);
    check_text(str_of(fleet_reasons(f, "sk", "node-002")),
               "priority:complete:first, budget:complete:node-001+node-003, retry:time:node-002");
    fleet_free(f);
}

/* What holds a whole Skyhook back, as its status shows it. */
static void held(void **state)
{
    (void)state;
    fleet *f = fleet_new();
    add(f, "first", "", "  priority: 10\n  sequencing: all\n", "");
    add(f, "second", "", "  priority: 20\n  deploymentPolicy: missing\n", "");
    add(f, "idle", "skyhook.nvidia.com/disable: 'true'", "  priority: 1\n  sequencing: all\n", "");
    fleet_nodes_add(f, 2);
    fleet_step(f);
    held_view of_second = engine_held(f->engine, STR("second"));
    assert_true(of_second.policy_missing && of_second.predecessor);
    held_view of_first = engine_held(f->engine, STR("first")); /* what is disabled holds nobody */
    assert_true(!of_first.policy_missing && !of_first.predecessor);
    fleet_run(f, -1);
    check_state(f, "first", "node-002", DONE);
    assert_false(engine_held(f->engine, STR("second")).predecessor);
    fleet_document(f, API "kind: DeploymentPolicy\nmetadata: {name: missing}\n"
                          "spec: {default: {budget: {count: 1}, strategy: {fixed: {}}}}\n");
    fleet_step(f);
    assert_false(engine_held(f->engine, STR("second")).policy_missing);
    held_view nobody = engine_held(f->engine, STR("nobody"));
    assert_true(!nobody.policy_missing && !nobody.predecessor);
    fleet_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a3_seed_004_ignored_and_tainted),
        cmocka_unit_test(a3_given_back_in_the_batch),
        cmocka_unit_test(a3_blocked_in_flight),
        cmocka_unit_test(f_priority),
        cmocka_unit_test(f_sequencing_all),
        cmocka_unit_test(f_who_is_freed_together),
        cmocka_unit_test(f_busy),
        cmocka_unit_test(f_pause_and_disable_in_every_stage),
        cmocka_unit_test(f_drain_blocked),
        cmocka_unit_test(f_drain_that_waits_for_its_turn),
        cmocka_unit_test(f_a_persons_uncordon),
        cmocka_unit_test(f_cordoned_before),
        cmocka_unit_test(e_reboot_succeeds),
        cmocka_unit_test(e_reboot_does_not_happen),
        cmocka_unit_test(e_reboot_said_too_early),
        cmocka_unit_test(e_reboot_said_and_not_done),
        cmocka_unit_test(e_reboot_came_before),
        cmocka_unit_test(e_reboots_of_two_packages),
        cmocka_unit_test(e_reboot_of_one_that_was_skipped),
        cmocka_unit_test(e_reboot_never_returns),
        cmocka_unit_test(e_node_lost),
        cmocka_unit_test(leaves_in_every_stage),
        cmocka_unit_test(d_seed_004_taint_goes_per_node),
        cmocka_unit_test(d_seed_004_auto_taint),
        cmocka_unit_test(d_taint_of_a_deleted_skyhook),
        cmocka_unit_test(deleted_in_flight),
        cmocka_unit_test(acts_of_reasons),
        cmocka_unit_test(held),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
