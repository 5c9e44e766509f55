/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes and Skyhooks that go and come back: deletion driven by a finalizer (skyhook.md 2.16, 3.7),
 * and reapplyOnReboot (2.11). */
#include "support/node_fleet.h"

#define API "apiVersion: skyhook.nvidia.com/v1alpha1\n"
#define PACKAGES                                                                                   \
    "    aa: {version: '1', image: r/aa, interrupt: {type: noop}, uninstall: {enabled: true}}\n"   \
    "    bb: {version: '1', image: r/bb}\n"
#define DELETED                                                                                    \
    ", deletionTimestamp: '2026-01-01T00:00:00Z', finalizers: [skyhook.nvidia.com/skyhook]"

static const object *write_skyhook(fleet *f, const char *meta, const char *packages)
{
    return fleet_document(f,
                          API "kind: Skyhook\nmetadata: {name: sk%s}\nspec:\n"
                              "  interruptionBudget: {count: 1}\n  packages:\n%s",
                          meta, packages);
}

/* The finalizer is gone, and the document with it. */
static void forget(fleet *f, const object *o)
{
    fleet_tell(f, (fact){.kind = FACT_DOCUMENT_GONE, .document = o});
    fleet_step(f);
}

/* What can be uninstalled is, node by node as the budget says; what cannot stays. Then the shell
 * sees that every placement is done, and lets the finalizer go. */
static void deletion_uninstalls(void **state)
{
    (void)state;
    fleet *f = fleet_new();
    write_skyhook(f, "", PACKAGES);
    fleet_nodes_add(f, 2);
    fleet_run(f, -1);
    fleet_lines(f, "");
    const object *o = write_skyhook(f, DELETED, PACKAGES);
    fleet_run(f, 30 * SECOND);
    check_state(f, "sk", "node-001", IN_FLIGHT);
    check_state(f, "sk", "node-002", WAITING);
    fleet_show(f, fleet_node_add(f, "node-003")); /* one that joins gets nothing any more */
    fleet_run(f, -1);
    check_lines(f, "start run release cordon uncordon drain",
                "start sk node-001 __default__ #2\n"
                "cordon sk node-001\n"
                "drain sk node-001\n"
                "run sk node-001 aa 1 uninstall #7\n"
                "run sk node-001 aa 1 uninstall-interrupt {\"type\":\"noop\"} #8\n"
                "uncordon sk node-001\n"
                "release sk node-001 __default__ complete\n"
                "start sk node-002 __default__ #3\n"
                "cordon sk node-002\n"
                "drain sk node-002\n"
                "run sk node-002 aa 1 uninstall #7\n"
                "run sk node-002 aa 1 uninstall-interrupt {\"type\":\"noop\"} #8\n"
                "uncordon sk node-002\n"
                "release sk node-002 __default__ complete\n");
    for (size_t i = 0; i < f->node_count; i++)
        check_state(f, "sk", f->nodes[i].name, DONE);
    check_text(fleet_placement(f, "sk", "node-001").current, "bb:1");
    forget(f, o);
    check_lines(f, "start run release cordon uncordon record", "");
    fleet_free(f);
}

/* Paused with uninstall work pending: nothing happens, the reason says so, and it goes on. */
static void deletion_waits_for_a_pause(void **state)
{
    (void)state;
    fleet *f = fleet_new();
    write_skyhook(f, "", PACKAGES);
    fleet_nodes_add(f, 1);
    fleet_run(f, -1);
    fleet_lines(f, "");
    write_skyhook(f, DELETED ", annotations: {skyhook.nvidia.com/pause: 'true'}", PACKAGES);
    fleet_run(f, HOUR);
    check_lines(f, "start run", "");
    check_text(str_of(fleet_reasons(f, "sk", "node-001")), "paused:resume:sk");
    write_skyhook(f, DELETED ", annotations: {skyhook.nvidia.com/disable: 'true'}", PACKAGES);
    fleet_run(f, HOUR);
    check_lines(f, "start run", "");
    check_state(f, "sk", "node-001", WAITING);
    write_skyhook(f, DELETED, PACKAGES);
    fleet_run(f, -1);
    check_state(f, "sk", "node-001", DONE);
    assert_int_equal(fleet_count(f, " run sk node-001 aa 1 uninstall"), 2);
    fleet_free(f);
}

/* In the middle of an install: the stage that runs ends, what is there is uninstalled, and nothing
 * else is begun. */
static void deletion_in_flight(void **state)
{
    (void)state;
    fleet *f = fleet_new();
    write_skyhook(f, "", PACKAGES);
    fleet_nodes_add(f, 2);
    fleet_run(f, 30 * SECOND);
    fleet_lines(f, "");
    write_skyhook(f, DELETED, PACKAGES);
    fleet_run(f, -1);
    check_lines(f, "run uncordon",
                "run sk node-001 aa 1 uninstall #3\n"
                "run sk node-001 aa 1 uninstall-interrupt {\"type\":\"noop\"} #4\n"
                "uncordon sk node-001\n");
    check_state(f, "sk", "node-001", DONE);
    check_state(f, "sk", "node-002", DONE);
    fleet_free(f);
}

/* An uninstall that fails is tried again like any stage: the finalizer waits for it. */
static void deletion_retries(void **state)
{
    (void)state;
    fleet *f = fleet_new();
    write_skyhook(f, "", PACKAGES);
    fleet_nodes_add(f, 1);
    fleet_run(f, -1);
    f->nodes[0].fails_once = true;
    write_skyhook(f, DELETED, PACKAGES);
    fleet_run(f, 65 * SECOND);
    check_state(f, "sk", "node-001", FAILED);
    fleet_run(f, -1);
    check_state(f, "sk", "node-001", DONE);
    fleet_free(f);
}

/* Somebody takes the finalizer away: the cordon goes with the Skyhook. */
static void gone_in_flight(void **state)
{
    (void)state;
    fleet *f = fleet_new();
    write_skyhook(f, "", PACKAGES);
    fleet_nodes_add(f, 1);
    fleet_run(f, -1);
    const object *o = write_skyhook(f, DELETED, PACKAGES);
    fleet_run(f, 30 * SECOND);
    fleet_lines(f, "");
    forget(f, o);
    check_lines(f, "release cordon uncordon",
                "release sk node-001 __default__ gone\nuncordon sk node-001\n");
    fleet_free(f);
}

/* ---- reboots ---- */

static void reboot(fleet *f, const char *boot)
{
    snprintf(f->nodes[0].boot, FLEET_TEXT, "%s", boot);
    fleet_show(f, &f->nodes[0]);
}

static void reapply_on_reboot(void **state)
{
    (void)state;
    for (int set = 0; set < 2; set++) {
        fleet *f = fleet_with((engine_settings){.reapply_on_reboot = set == 1});
        write_skyhook(f, "", PACKAGES);
        fleet_node_add(f, "node-001");
        reboot(f, ""); /* not known yet: what comes first is no reboot */
        fleet_show(f, fleet_node_add(f, "node-002"));
        fleet_run(f, -1);
        fleet_lines(f, "");
        reboot(f, "boot-1");
        fleet_run(f, -1);
        check_lines(f, "run", "");
        reboot(f, "boot-2");
        fleet_run(f, -1);
        assert_int_equal(fleet_count(f, " run sk node-001 aa 1 apply"), (size_t)set);
        assert_int_equal(fleet_count(f, " run sk node-001 bb 1 apply"), (size_t)set);
        assert_int_equal(fleet_count(f, " reapply sk node-001"), (size_t)set);
        assert_int_equal(fleet_count(f, " run sk node-002"), 0);
        check_state(f, "sk", "node-001", DONE);
        fleet_lines(f, "");
        fleet_show(f, &f->nodes[0]); /* the same again */
        fleet_run(f, -1);
        check_lines(f, "run", "");
        fleet_free(f);
    }
}

/* A node that rebooted while nobody looked: the boot that is remembered is another one, whether the
 * node says so at once or late. Without reapplyOnReboot, and when it is the same, nothing is done.
 */
static void reboot_while_nobody_looked(void **state)
{
    (void)state;
    for (int row = 0; row < 6; row++) {
        bool late = row % 2, set = row < 4, same = row >= 2 && row < 4;
        fleet *f = fleet_with((engine_settings){.reapply_on_reboot = set});
        const object *sk = write_skyhook(f, "", PACKAGES);
        fleet_nodes_add(f, 1);
        fleet_run(f, -1);
        fleet_lines(f, "");
        buf saved = BUF(LIMIT_TEXT_BYTES);
        err error;
        assert_true(engine_save(f->engine, &saved));
        engine_free(f->engine);
        f->engine = engine_new(&f->settings, &error);
        snprintf(f->nodes[0].boot, FLEET_TEXT, "%s", late ? "" : same ? "boot-1" : "boot-2");
        fact known[] = {{.kind = FACT_DOCUMENT, .document = sk}, fleet_fact(&f->nodes[0])};
        assert_true(engine_take(f->engine, known, 2, f->now_ms));
        assert_true(engine_restore(f->engine, buf_str(&saved), &error));
        fleet_run(f, HOUR);
        if (late)
            reboot(f, same ? "boot-1" : "boot-2");
        fleet_run(f, -1);
        assert_int_equal(fleet_count(f, " run sk node-001 aa 1 apply"), set && !same);
        assert_int_equal(fleet_count(f, " reapply sk node-001"), set && !same);
        check_state(f, "sk", "node-001", DONE);
        buf_done(&saved);
        fleet_free(f);
    }
}

/* A boot that becomes known is no other boot: an interrupt that has not rebooted is not taken for
 * one that has. */
static void a_late_boot_is_no_reboot(void **state)
{
    (void)state;
    fleet *f = fleet_new();
    write_skyhook(f, "", "    aa: {version: '1', image: r/aa, interrupt: {type: reboot}}\n");
    fleet_node_add(f, "node-001");
    reboot(f, "");
    fleet_run(f, 150 * SECOND);
    assert_int_equal(fleet_count(f, " run sk node-001 aa 1 interrupt"), 1);
    f->nodes[0].fails = true; /* its pod ends badly: it died with the node, or it did not */
    fleet_run(f, 40 * SECOND);
    reboot(f, "boot-1");
    fleet_run(f, 60 * SECOND);
    assert_int_equal(fleet_count(f, " run sk node-001 aa 1 interrupt"), 1);
    f->nodes[0].fails = false;
    reboot(f, "boot-2");
    fleet_run(f, -1);
    check_state(f, "sk", "node-001", DONE);
    fleet_free(f);
}

/* A reboot of somebody else's in the middle: what was done before it is done again, too. */
static void reapply_in_flight(void **state)
{
    (void)state;
    fleet *f = fleet_with((engine_settings){.reapply_on_reboot = true});
    write_skyhook(f, "",
                  "    aa: {version: '1', image: r/aa}\n"
                  "    bb: {version: '1', image: r/bb, dependsOn: {aa: '1'}}\n");
    fleet_nodes_add(f, 1);
    fleet_run(f, 150 * SECOND);
    assert_int_equal(fleet_count(f, " run sk node-001 bb 1 apply"), 1);
    reboot(f, "boot-2");
    fleet_run(f, -1);
    assert_int_equal(fleet_count(f, " run sk node-001 aa 1 apply"), 2);
    check_state(f, "sk", "node-001", DONE);
    fleet_free(f);
}

/* The reboot that a package asked for is part of its work: nothing is done twice for it. */
static void own_reboot_is_no_reason(void **state)
{
    (void)state;
    fleet *f = fleet_with((engine_settings){.reapply_on_reboot = true});
    write_skyhook(f, "", "    aa: {version: '1', image: r/aa, interrupt: {type: reboot}}\n");
    fleet_nodes_add(f, 1);
    fleet_run(f, 150 * SECOND);
    assert_int_equal(fleet_count(f, " run sk node-001 aa 1 interrupt"), 1);
    reboot(f, "boot-2");
    fleet_run(f, -1);
    check_state(f, "sk", "node-001", DONE);
    assert_int_equal(fleet_count(f, " run sk node-001 aa 1 apply"), 1);
    fleet_free(f);
}

static fact stage_ended(const char *name, int64_t attempt, outcome how)
{
    return (fact){.kind = FACT_STAGE,
                  .stage = {.change = STR("sk"),
                            .target = STR("node-001"),
                            .package = str_of(name),
                            .version = STR("1"),
                            .stage = STR("apply"),
                            .attempt = attempt,
                            .outcome = how}};
}

/* One stage failed and the other still ran when the node left: should it come back, it is tried
 * again like any other that failed. */
static void back_after_a_failure(void **state)
{
    (void)state;
    fleet *f = fleet_new();
    fleet_document(f, API "kind: Skyhook\nmetadata: {name: sk}\nspec:\n"
                          "  nodeSelectors: {matchLabels: {pool: a}}\n"
                          "  packages: {aa: {version: '1', image: r/aa}, "
                          "bb: {version: '1', image: r/bb}}\n");
    fleet_node *n = fleet_node_add(f, "node-001");
    n->silent = true;
    fleet_label(n, "pool", "a");
    fleet_show(f, n);
    fleet_step(f);
    fleet_tell(f, stage_ended("aa", 1, OUTCOME_FAILED));
    fleet_step(f);
    fleet_label(n, "pool", "b");
    fleet_show(f, n);
    fleet_step(f);
    fleet_tell(f, stage_ended("bb", 2, OUTCOME_SUCCEEDED));
    fleet_step(f);
    check_lines(f, "release", "release sk node-001 __default__ gone\n");
    n->silent = false;
    fleet_label(n, "pool", "a");
    fleet_show(f, n);
    fleet_run(f, -1);
    check_state(f, "sk", "node-001", DONE);
    fleet_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(deletion_uninstalls),
        cmocka_unit_test(deletion_waits_for_a_pause),
        cmocka_unit_test(deletion_in_flight),
        cmocka_unit_test(deletion_retries),
        cmocka_unit_test(gone_in_flight),
        cmocka_unit_test(reapply_on_reboot),
        cmocka_unit_test(reapply_in_flight),
        cmocka_unit_test(own_reboot_is_no_reason),
        cmocka_unit_test(reboot_while_nobody_looked),
        cmocka_unit_test(a_late_boot_is_no_reboot),
        cmocka_unit_test(back_after_a_failure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
