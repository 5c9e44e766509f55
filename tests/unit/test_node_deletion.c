/* SPDX-License-Identifier: Apache-2.0 */
/* When the finalizer of a Skyhook that is being deleted may go (skyhook.md 2.16, 3.7; semantics.md
 * D and F). */
#include "support/node_fleet.h"

#define API "apiVersion: skyhook.nvidia.com/v1alpha1\n"
#define AA "    aa: {version: '1', image: r/aa, uninstall: {enabled: true}}\n"
#define AA2 "    aa: {version: '2', image: r/aa, uninstall: {enabled: true}}\n"
#define BB "    bb: {version: '1', image: r/bb}\n"
#define DELETED                                                                                    \
    ", deletionTimestamp: '2026-01-01T00:00:00Z', finalizers: [skyhook.nvidia.com/skyhook]"
#define SELECTS "  nodeSelectors: {matchLabels: {role: gpu}}\n"
#define REQUIRED "  runtimeRequired: true\n"

static const object *write_skyhook(fleet *f, const char *meta, const char *spec,
                                   const char *packages)
{
    return fleet_document(f,
                          API "kind: Skyhook\nmetadata: {name: sk%s}\nspec:\n%s"
                              "  interruptionBudget: {count: 1}\n  packages:\n%s",
                          meta, spec, packages);
}

/* Another engine is told all the first one knows, and takes over. */
static void restart(fleet *f)
{
    err error;
    buf before = BUF(LIMIT_TEXT_BYTES);
    buf after = BUF(LIMIT_TEXT_BYTES);
    VEC(fact) known = {0};
    assert_true(engine_save(f->engine, &before));
    for (size_t i = 0; i < f->current.len; i++)
        assert_true(
            vec_push(&known, ((fact){.kind = FACT_DOCUMENT, .document = f->current.at[i]})));
    for (size_t i = 0; i < f->node_count; i++)
        if (f->shown[i].exists)
            assert_true(vec_push(&known, fleet_fact(&f->shown[i])));
    engine_free(f->engine);
    f->engine = engine_new(&f->settings, &error);
    assert_non_null(f->engine);
    assert_true(engine_take(f->engine, known.at, known.len, f->stepped_ms));
    assert_true(engine_restore(f->engine, buf_str(&before), &error));
    assert_true(engine_save(f->engine, &after));
    check_msg(str_eq(buf_str(&after), buf_str(&before)), "restored otherwise:\n%.*s\n%.*s",
              STR_ARG(buf_str(&before)), STR_ARG(buf_str(&after)));
    buf_done(&before);
    buf_done(&after);
    vec_done(&known);
}

/* Runs to the end, with a restart after each step when wanted. */
static void run(fleet *f, bool restarts)
{
    fleet_step(f);
    for (int64_t next; restarts && (next = fleet_next(f)) != REASON_NEVER;) {
        restart(f);
        f->now_ms = next > f->now_ms ? next : f->now_ms;
        fleet_due(f);
        fleet_step(f);
    }
    fleet_run(f, -1);
}

/* Only when the last node has nothing of it any more; once; and no other time is lost. */
static void finalize_after_the_last_node(void **state)
{
    (void)state;
    for (int restarts = 0; restarts < 2; restarts++) {
        fleet *f = fleet_new();
        write_skyhook(f, "", "", AA BB);
        fleet_nodes_add(f, 3);
        fleet_run(f, -1);
        check_lines(f, "finalize", "");
        write_skyhook(f, DELETED, "", AA BB);
        run(f, restarts == 1);
        check_lines(f, "run finalize",
                    "run sk node-001 aa 1 uninstall #5\n"
                    "run sk node-002 aa 1 uninstall #5\n"
                    "run sk node-003 aa 1 uninstall #5\n"
                    "finalize sk\n");
        restart(f);
        fleet_run(f, HOUR);
        check_lines(f, "finalize", "");
        fleet_free(f);
    }
}

/* Nothing to uninstall: at once, paused or not; not without a finalizer of ours; and again when the
 * document comes again with it, since whoever was to take it away may have died. */
static void finalize_at_once(void **state)
{
    (void)state;
    fleet *f = fleet_new();
    write_skyhook(f, "", "", BB);
    fleet_nodes_add(f, 2);
    fleet_run(f, -1);
    fleet_lines(f, "");
    write_skyhook(f, ", deletionTimestamp: '2026-01-01T00:00:00Z', finalizers: [example.com/x]", "",
                  BB);
    fleet_run(f, HOUR);
    check_lines(f, "finalize run", "");
    write_skyhook(f, DELETED ", annotations: {skyhook.nvidia.com/pause: 'true'}", "", BB);
    fleet_run(f, HOUR);
    check_lines(f, "finalize run", "finalize sk\n");
    const object *o = write_skyhook(f, DELETED, "", BB);
    fleet_run(f, HOUR);
    check_lines(f, "finalize run", "finalize sk\n");
    fleet_tell(f, (fact){.kind = FACT_DOCUMENT_GONE, .document = o});
    fleet_run(f, HOUR);
    check_lines(f, "finalize run", "");
    fleet_free(f);
}

/* A policy that is not there holds uninstalls up, not a Skyhook that has none. */
static void finalize_without_policy(void **state)
{
    (void)state;
    fleet *f = fleet_new();
    fleet_nodes_add(f, 1);
    fleet_document(f, API "kind: Skyhook\nmetadata: {name: sk" DELETED "}\nspec:\n"
                          "  deploymentPolicy: nowhere\n  packages:\n" AA);
    fleet_run(f, HOUR);
    check_lines(f, "finalize run", "finalize sk\n");
    fleet_free(f);
}

/* Paused, disabled, or a state that cannot be read: the finalizer stays, and the reason says why.
 */
static void finalize_waits(void **state)
{
    (void)state;
    fleet *f = fleet_new();
    write_skyhook(f, "", "", AA);
    fleet_nodes_add(f, 1);
    fleet_run(f, -1);
    write_skyhook(f, DELETED ", annotations: {skyhook.nvidia.com/pause: 'true'}", "", AA);
    fleet_run(f, HOUR);
    check_text(str_of(fleet_reasons(f, "sk", "node-001")), "paused:resume:sk");
    write_skyhook(f, DELETED ", annotations: {skyhook.nvidia.com/disable: 'true'}", "", AA);
    fleet_run(f, HOUR);
    check_text(str_of(fleet_reasons(f, "sk", "node-001")), "disabled:edit:sk");
    assert_int_equal(fleet_count(f, " finalize "), 0);
    write_skyhook(f, DELETED, "", AA);
    fleet_run(f, -1);
    assert_int_equal(fleet_count(f, " finalize "), 1);
    fleet_free(f);
}

static void annotate(fleet *f, fleet_node *n, const char *state)
{
    n->annotations[0] = (label){STR("skyhook.nvidia.com/nodeState_sk"), str_of(state)};
    n->annotation_count = 1;
    fleet_show(f, n);
}

static void finalize_waits_for_a_repair(void **state)
{
    (void)state;
    fleet *f = fleet_new();
    write_skyhook(f, DELETED, "", AA);
    fleet_node *n = fleet_node_add(f, "node-001");
    annotate(f, n, "{nonsense");
    fleet_run(f, HOUR);
    check_lines(f, "finalize run", "");
    check_text(str_of(fleet_reasons(f, "sk", "node-001")), "malformed:reset:node-001");
    annotate(f, n,
             "{\"aa|1\":{\"name\":\"aa\",\"version\":\"1\",\"stage\":\"config\","
             "\"state\":\"complete\"}}");
    run(f, true);
    check_lines(f, "finalize run", "run sk node-001 aa 1 uninstall #1\nfinalize sk\n");
    fleet_free(f);
}

/* A node that was selected once and still has the package: it is uninstalled there, too, whether
 * the label changes before or during the deletion. The new ones are left alone. */
static void strays_are_uninstalled(void **state)
{
    (void)state;
    for (int restarts = 0; restarts < 2; restarts++) {
        fleet *f = fleet_new();
        write_skyhook(f, "", SELECTS, AA BB);
        for (int i = 0; i < 3; i++) {
            static const char *const names[] = {"node-001", "node-002", "node-003"};
            fleet_node *n = fleet_node_add(f, names[i]);
            fleet_label(n, "role", "gpu");
            fleet_show(f, n);
        }
        fleet_show(f, fleet_node_add(f, "other"));
        fleet_run(f, -1);
        fleet_label(&f->nodes[1], "role", "cpu");
        fleet_show(f, &f->nodes[1]);
        fleet_run(f, -1);
        fleet_lines(f, "");
        write_skyhook(f, DELETED, SELECTS, AA BB);
        fleet_step(f);
        fleet_label(&f->nodes[0], "role", "cpu"); /* in flight */
        fleet_show(f, &f->nodes[0]);
        run(f, restarts == 1);
        check_lines(f, "start run release finalize",
                    "start sk node-001 __default__ #3\n"
                    "run sk node-001 aa 1 uninstall #5\n"
                    "release sk node-001 __default__ complete\n"
                    "start sk node-002 __default__ #4\n"
                    "run sk node-002 aa 1 uninstall #5\n"
                    "release sk node-002 __default__ complete\n"
                    "start sk node-003 __default__ #5\n"
                    "run sk node-003 aa 1 uninstall #5\n"
                    "release sk node-003 __default__ complete\n"
                    "finalize sk\n");
        fleet_free(f);
    }
}

/* An engine that starts anew knows a stray by its annotation, whenever that is shown. */
static void strays_are_known_by_their_annotation(void **state)
{
    (void)state;
    for (int late = 0; late < 2; late++) {
        fleet *f = fleet_new();
        write_skyhook(f, DELETED, SELECTS, AA);
        fleet_node *n = fleet_node_add(f, "node-001");
        fleet_show(f, n);
        if (late) {
            fleet_step(f);
            check_lines(f, "finalize", "finalize sk\n");
        }
        annotate(f, n,
                 "{\"aa|1\":{\"name\":\"aa\",\"version\":\"1\",\"stage\":\"config\","
                 "\"state\":\"complete\"}}");
        run(f, true);
        check_lines(f, "finalize run", "run sk node-001 aa 1 uninstall #1\nfinalize sk\n");
        fleet_free(f);
    }
}

/* The version that an edit replaced just before is uninstalled as well, and then forgotten. */
static void an_older_version_is_uninstalled(void **state)
{
    (void)state;
    fleet *f = fleet_new();
    write_skyhook(f, "", "", AA);
    fleet_nodes_add(f, 2);
    fleet_run(f, -1);
    fleet_lines(f, "");
    write_skyhook(f, "", "", AA2);
    fleet_step(f); /* node-001 upgrades, node-002 has the old one */
    write_skyhook(f, DELETED, "", AA2);
    run(f, true);
    check_lines(f, "run finalize",
                "run sk node-001 aa 2 upgrade #3\n"
                "run sk node-001 aa 2 uninstall #4\n"
                "run sk node-002 aa 2 uninstall #3\n"
                "finalize sk\n");
    check_text(fleet_placement(f, "sk", "node-001").current, "");
    check_text(fleet_placement(f, "sk", "node-002").current, "");
    fleet_free(f);
}

/* D: a Skyhook that is deleted holds the taint no longer, and takes it away only where it was
 * complete (or where Drover put it): node-002 was not. */
static void deletion_opens_only_complete_nodes(void **state)
{
    (void)state;
    fleet *f = fleet_new();
    f->feedback = true;
    write_skyhook(f, "", REQUIRED, BB);
    fleet_nodes_add(f, 1);
    fleet_run(f, -1);
    fleet_node *n = fleet_node_add(f, "node-002");
    n->silent = true;
    for (int i = 0; i < 2; i++) {
        f->nodes[i].taints[0] =
            (fact_taint){STR("skyhook.nvidia.com"), STR("runtime-required"), STR("NoSchedule")};
        f->nodes[i].taint_count = 1;
        if (i == 1)
            fleet_show(f, &f->nodes[i]);
    }
    fleet_run(f, HOUR);
    fleet_lines(f, "");
    fleet_show(f, &f->nodes[0]);
    write_skyhook(f, DELETED, REQUIRED, BB);
    fleet_run(f, HOUR);
    check_lines(f, "untaint", "untaint node-001 skyhook.nvidia.com=runtime-required:NoSchedule\n");
    fleet_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finalize_after_the_last_node),
        cmocka_unit_test(finalize_at_once),
        cmocka_unit_test(finalize_without_policy),
        cmocka_unit_test(finalize_waits),
        cmocka_unit_test(finalize_waits_for_a_repair),
        cmocka_unit_test(strays_are_uninstalled),
        cmocka_unit_test(strays_are_known_by_their_annotation),
        cmocka_unit_test(an_older_version_is_uninstalled),
        cmocka_unit_test(deletion_opens_only_complete_nodes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
