/* SPDX-License-Identifier: Apache-2.0 */
/* The words in which users of Skyhook see a rollout: skyhook.md 3.4 to 3.7. */
#include "support/check.h"

#include "engine/skyhook_status.h"

#define PAUSE {STR("skyhook.nvidia.com/pause"), STR("true")}
#define DISABLE {STR("skyhook.nvidia.com/disable"), STR("true")}

/* Documents of which only what stands above them matters. */
static const label pause_only[] = {PAUSE}, disable_only[] = {DISABLE}, both[] = {DISABLE, PAUSE};
static const skyhook plain = {0};
static const skyhook paused = {.metadata.annotations = {pause_only, 1}};
static const skyhook disabled = {.metadata.annotations = {disable_only, 1}};
static const skyhook halted_twice = {.metadata.annotations = {both, 2}};

static void a_node(void **state)
{
    (void)state;
    static const struct {
        placement_state found;
        skyhook_state goes_on, paused, disabled;
    } rows[] = {
        {PLACEMENT_DONE, SKYHOOK_COMPLETE, SKYHOOK_COMPLETE, SKYHOOK_COMPLETE},
        {PLACEMENT_WAITING, SKYHOOK_WAITING, SKYHOOK_PAUSED, SKYHOOK_DISABLED},
        {PLACEMENT_IN_FLIGHT, SKYHOOK_IN_PROGRESS, SKYHOOK_PAUSED, SKYHOOK_DISABLED},
        {PLACEMENT_FAILED, SKYHOOK_ERRORING, SKYHOOK_PAUSED, SKYHOOK_DISABLED},
        {PLACEMENT_BLOCKED, SKYHOOK_BLOCKED, SKYHOOK_PAUSED, SKYHOOK_DISABLED},
        {PLACEMENT_EXCLUDED, SKYHOOK_UNKNOWN, SKYHOOK_PAUSED, SKYHOOK_DISABLED},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        check_msg(node_status(&plain, rows[i].found) == rows[i].goes_on, "row %zu", i);
        check_msg(node_status(&paused, rows[i].found) == rows[i].paused, "row %zu", i);
        check_msg(node_status(&disabled, rows[i].found) == rows[i].disabled, "row %zu", i);
        check_msg(node_status(&halted_twice, rows[i].found) == rows[i].paused, "row %zu", i);
    }
}

/* How many nodes are complete, in progress, erroring, blocked, unknown, waiting. */
static node_statuses of_nodes(const int64_t at[6])
{
    static const skyhook_state states[] = {SKYHOOK_COMPLETE, SKYHOOK_IN_PROGRESS, SKYHOOK_ERRORING,
                                           SKYHOOK_BLOCKED,  SKYHOOK_UNKNOWN,     SKYHOOK_WAITING};
    node_statuses nodes = {0};
    for (size_t i = 0; i < COUNT_OF(states); i++) {
        nodes.of[states[i]] = at[i];
        nodes.all += at[i];
    }
    return nodes;
}

static void all_nodes(void **state)
{
    (void)state;
    static const struct {
        int64_t nodes[6];
        skyhook_state want;
    } rows[] = {
        {{0, 0, 0, 0, 0, 0}, SKYHOOK_COMPLETE},    {{3, 0, 0, 0, 0, 0}, SKYHOOK_COMPLETE},
        {{3, 1, 0, 0, 0, 0}, SKYHOOK_IN_PROGRESS}, {{0, 1, 2, 2, 2, 2}, SKYHOOK_IN_PROGRESS},
        {{3, 0, 1, 0, 0, 0}, SKYHOOK_ERRORING},    {{0, 0, 0, 2, 0, 0}, SKYHOOK_BLOCKED},
        {{1, 0, 0, 0, 2, 0}, SKYHOOK_UNKNOWN},     {{1, 0, 0, 0, 0, 2}, SKYHOOK_WAITING},
        {{0, 0, 1, 0, 0, 1}, SKYHOOK_UNKNOWN},     {{0, 0, 0, 1, 0, 1}, SKYHOOK_UNKNOWN},
        {{0, 0, 1, 1, 0, 0}, SKYHOOK_UNKNOWN},
    };
    const held_view nothing = {0}, missing = {.policy_missing = true},
                    later = {.predecessor = true};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        node_statuses n = of_nodes(rows[i].nodes);
        bool complete = rows[i].want == SKYHOOK_COMPLETE;
        check_msg(skyhook_status_of(&plain, &n, nothing) == rows[i].want, "row %zu", i);
        check_msg(skyhook_status_of(&plain, &n, missing) == SKYHOOK_BLOCKED, "row %zu", i);
        check_msg(skyhook_status_of(&plain, &n, later) ==
                      (complete ? SKYHOOK_COMPLETE : SKYHOOK_WAITING),
                  "row %zu", i);
        check_msg(skyhook_status_of(&paused, &n, nothing) ==
                      (complete ? SKYHOOK_COMPLETE : SKYHOOK_PAUSED),
                  "row %zu", i);
        check_msg(skyhook_status_of(&paused, &n, missing) ==
                      (complete ? SKYHOOK_BLOCKED : SKYHOOK_PAUSED),
                  "row %zu", i);
        check_msg(skyhook_status_of(&halted_twice, &n, missing) ==
                      (complete ? SKYHOOK_BLOCKED : SKYHOOK_PAUSED),
                  "row %zu", i);
    }
    node_statuses some = of_nodes((const int64_t[]){5, 2, 3, 1, 1, 1});
    assert_int_equal(nodes_in_progress(&some), 5);
}

static void percents(void **state)
{
    (void)state;
    assert_int_equal(progress_percent(0, 0), 0);
    assert_int_equal(progress_percent(2, 3), 66);
    assert_int_equal(progress_percent(999, 1000), 99);
    assert_int_equal(progress_percent(3, 3), 100);
}

/* ---- what is wrong ---- */

static package_uninstall kept = {.enabled = true}, asked = {.enabled = true, .apply = true},
                         never = {.apply = true};

static void troubles(void **state)
{
    (void)state;
    static const struct {
        package_uninstall *uninstall;
        package_stage stage;
        package_state state;
        uint8_t want;
    } rows[] = {
        {NULL, STAGE_UNINSTALL, PACKAGE_ERRORING, 0},
        {&kept, STAGE_CONFIG, PACKAGE_COMPLETE, TROUBLE_CARRIES},
        {&kept, STAGE_UNINSTALL, PACKAGE_IN_PROGRESS, TROUBLE_CARRIES | TROUBLE_UNINSTALLS},
        {&kept, STAGE_UNINSTALL_INTERRUPT, PACKAGE_ERRORING,
         TROUBLE_CARRIES | TROUBLE_UNINSTALLS | TROUBLE_FAILS},
        {&kept, STAGE_CONFIG, PACKAGE_ERRORING, TROUBLE_CARRIES},
        {&never, STAGE_CONFIG, PACKAGE_COMPLETE, 0},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        package one = {.key = STR("a"), .name = STR("a"), .uninstall = rows[i].uninstall};
        skyhook of = {.spec.packages = {&one, 1}};
        package_view seen[] = {
            {.name = STR("a"), .stage = rows[i].stage, .state = rows[i].state},
            {.name = STR("gone"), .stage = STAGE_UNINSTALL, .state = PACKAGE_ERRORING}};
        node_view v = {.packages = seen, .package_count = 2};
        check_msg(node_troubles(&of, &v) == rows[i].want, "row %zu", i);
        v.malformed = true;
        check_msg(node_troubles(&of, &v) == (rows[i].want | TROUBLE_MALFORMED), "row %zu", i);
    }
}

static void deletions(void **state)
{
    (void)state;
    skyhook of[] = {plain, paused, disabled, halted_twice};
    for (size_t i = 0; i < COUNT_OF(of); i++) {
        assert_int_equal(deletion_blocked_by(&of[i], TROUBLE_MALFORMED | TROUBLE_CARRIES),
                         DELETION_FREE);
        of[i].metadata.deletion_timestamp.set = true;
        assert_int_equal(deletion_blocked_by(&of[i], 0), DELETION_FREE);
        assert_int_equal(deletion_blocked_by(&of[i], TROUBLE_MALFORMED | TROUBLE_CARRIES),
                         DELETION_MALFORMED);
    }
    assert_int_equal(deletion_blocked_by(&of[0], TROUBLE_CARRIES), DELETION_FREE);
    assert_int_equal(deletion_blocked_by(&of[1], TROUBLE_CARRIES), DELETION_PAUSED);
    assert_int_equal(deletion_blocked_by(&of[2], TROUBLE_CARRIES), DELETION_DISABLED);
    assert_int_equal(deletion_blocked_by(&of[3], TROUBLE_CARRIES), DELETION_PAUSED);
    assert_string_equal(deletion_blocked_reason(DELETION_PAUSED), "PausedWithPendingUninstall");
}

static void dependencies(void **state)
{
    (void)state;
    package stays = {.name = STR("a")}, leaves = {.name = STR("b"), .uninstall = &asked},
            would = {.name = STR("c"), .uninstall = &kept};
    skyhook of = plain;
    assert_true(package_dependency_leaves(&of, &stays, &leaves));
    assert_false(package_dependency_leaves(&of, &stays, &would));
    assert_false(package_dependency_leaves(&of, &stays, NULL));
    assert_false(package_dependency_leaves(&of, &leaves, &leaves));
    of.metadata.deletion_timestamp.set = true;
    assert_true(package_dependency_leaves(&of, &stays, &would));
    assert_false(package_dependency_leaves(&of, &would, &leaves));
}

static void spreads(void **state)
{
    (void)state;
    package p = {.name = STR("a"), .version = STR("2")};
    package_view seen = {
        .name = STR("a"), .version = STR("2"), .stage = STAGE_CONFIG, .state = PACKAGE_COMPLETE};
    node_view v = {.packages = &seen, .package_count = 1, .selected = true};
    package_spread s = {0};
    package_spread_look(&p, &v, &s);
    assert_true(s.present && !s.incomplete);
    seen.version = STR("1");
    v.selected = false;
    package_spread_look(&p, &v, &s);
    assert_false(s.incomplete);
    v.selected = true;
    package_spread_look(&p, &v, &s);
    assert_true(s.incomplete);
    s = (package_spread){0};
    v.package_count = 0;
    package_spread_look(&p, &v, &s);
    assert_true(!s.present && s.incomplete);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_node),   cmocka_unit_test(all_nodes), cmocka_unit_test(percents),
        cmocka_unit_test(troubles), cmocka_unit_test(deletions), cmocka_unit_test(dependencies),
        cmocka_unit_test(spreads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
