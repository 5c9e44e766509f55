/* SPDX-License-Identifier: Apache-2.0 */
/* Version groups (semantics.md C2): the readiness table row by row, overlaps, failure, rollback,
 * people. */
#include "support/check.h"

#include "support/bracket_fleet.h"
#include "support/rows.h"

/* ---- the readiness table ---- */

/* kubelet 2 at +0, containerd 2 at +10 min and, if all, os-patch 2 at +20 min; the window is an
 * hour. */
typedef struct readiness_row {
    const char *mode, *unchanged;
    bool all;
    int lock; /* minutes after the first publication */
    const char *story;
} readiness_row;

static const readiness_row readiness_rows[] = {
    {"immediate", "skip_unchanged", false, 0,
     "drain kubelet=2 uncordon drain containerd=2 uncordon"},
    {"immediate", "redeploy_current", false, 0,
     "drain os-patch=1 containerd=1 kubelet=2 uncordon drain os-patch=1 containerd=2 "
     "kubelet=2 uncordon"},
    {"collection_window", "skip_unchanged", false, 60, "drain containerd=2 kubelet=2 uncordon"},
    {"collection_window", "skip_unchanged", true, 60,
     "drain os-patch=2 containerd=2 kubelet=2 uncordon"},
    {"collection_window", "redeploy_current", false, 60,
     "drain os-patch=1 containerd=2 kubelet=2 uncordon"},
    {"collection_window", "require_all", false, 60, "drain containerd=2 kubelet=2 uncordon"},
    {"collection_window", "require_all", true, 20,
     "drain os-patch=2 containerd=2 kubelet=2 uncordon"},
    {"wait_for_all", "skip_unchanged", false, 60, "drain containerd=2 kubelet=2 uncordon"},
    {"wait_for_all", "skip_unchanged", true, 20,
     "drain os-patch=2 containerd=2 kubelet=2 uncordon"},
    {"wait_for_all", "redeploy_current", false, 60,
     "drain os-patch=1 containerd=2 kubelet=2 uncordon"},
    {"wait_for_all", "redeploy_current", true, 20,
     "drain os-patch=2 containerd=2 kubelet=2 uncordon"},
    {"wait_for_all", "require_all", false, 60, "drain containerd=2 kubelet=2 uncordon"},
    {"wait_for_all", "require_all", true, 20, "drain os-patch=2 containerd=2 kubelet=2 uncordon"},
};

static void c2_readiness_row(void **state)
{
    const readiness_row *r = *state;
    world w;
    arena *a = arena_new(0);
    char bracket[256];
    snprintf(bracket, sizeof bracket, ", readinessMode: %s, unchangedMemberStrategy: %s%s", r->mode,
             r->unchanged, strcmp(r->mode, "immediate") ? ", readinessWindowSeconds: 3600" : "");
    open_fleet(&w, 1, bracket, "");
    publish(&w, "kubelet", "2");
    world_at(&w, "2026-03-01T08:10:00Z");
    publish(&w, "containerd", "2");
    world_at(&w, "2026-03-01T08:20:00Z");
    if (r->all)
        publish(&w, "os-patch", "2");
    world_until(&w, INT64_MAX);
    check_text(story(&w, a, "node-0"), r->story);
    int64_t lock = at_time("2026-03-01T08:00:00Z") + r->lock * MINUTE;
    assert_int_equal(job_of(&w, "drain", NULL, 0)->start, lock);
    arena_free(a);
    world_close(&w);
}

/* immediate with require_all is refused when it is saved. */
static void c2_readiness_refused(void **state)
{
    (void)state;
    loaded l = load_text(
        "policy.yaml",
        STR("apiVersion: drover.dev/v1alpha1\nkind: RolloutPolicy\nmetadata: {name: p}\nspec:\n  "
            "rules:\n"
            "  - deploymentBracket: {deploymentSelector: 'true', readinessMode: immediate, "
            "unchangedMemberStrategy: require_all}\n"));
    assert_false(l.good);
    loaded_free(&l);
}

/* ---- failure, rollback, people ---- */

static void c2_rollback_rows(void **state)
{
    (void)state;
    static const struct {
        const char *strategy, *story;
        placement_state kubelet;
    } rows[] = {
        /* os-patch has run when kubelet fails; containerd runs beside it */
        {"halt_and_notify", "drain os-patch=2 containerd=2 kubelet=2(failed)", PLACEMENT_FAILED},
        {"individual", "drain os-patch=2 containerd=2 kubelet=2(failed) kubelet=1! uncordon",
         PLACEMENT_EXCLUDED},
        {"all_members",
         "drain os-patch=2 containerd=2 kubelet=2(failed) kubelet=1! containerd=1! os-patch=1! "
         "uncordon",
         PLACEMENT_EXCLUDED},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        world w;
        arena *a = arena_new(0);
        char bracket[256];
        snprintf(
            bracket, sizeof bracket,
            ", readinessMode: wait_for_all, readinessWindowSeconds: 3600, rollbackStrategy: %s",
            rows[i].strategy);
        open_fleet(
            &w, 1, bracket,
            "  - resourceConcurrency: {groupSelector: 'true', limitType: count, limitValue: 1}\n");
        assert_true(
            vec_push(&w.plans, (world_plan){"kubelet", NULL, 2 * MINUTE, -1, false, false}));
        publish(&w, "kubelet", "2");
        publish(&w, "containerd", "2");
        publish(&w, "os-patch", "2");
        world_until(&w, INT64_MAX);
        str got = story(&w, a, "node-0");
        check_msg(str_eq(got, str_of(rows[i].story)), "row %zu: %.*s", i, STR_ARG(got));
        check_msg(view_at(&w, "kubelet", "node-0").state == rows[i].kubelet, "row %zu", i);
        if (i > 0)
            check_text(reasons_at(&w, a, "kubelet", "node-0"), "rolledBack:retry kubelet");
        arena_free(a);
        world_close(&w);
    }
}

/* Without a last good version rollback becomes halt; hooks are never rolled back. */
static void c2_rollback_without_good_version(void **state)
{
    (void)state;
    world w;
    arena *a = arena_new(0);
    world_open(&w, "2026-03-01T08:00:00Z");
    set_durations(&w);
    world_apply(
        &w, "apiVersion: drover.dev/v1alpha1\nkind: Environment\nmetadata: {name: prod}\nspec: {"
            "resourceSelector: 'true'}\n");
    world_apply(
        &w,
        "apiVersion: drover.dev/v1alpha1\nkind: Resource\nmetadata: {name: node-0}\nspec: {kind: "
        "host, version: v1}\n");
    apply_policy(&w, IMMEDIATE ", rollbackStrategy: individual", "");
    assert_true(vec_push(&w.plans, (world_plan){"kubelet", NULL, 2 * MINUTE, -1, false, false}));
    apply_deployments(&w);
    world_until(&w, INT64_MAX);
    assert_int_equal(view_at(&w, "kubelet", "node-0").state, PLACEMENT_FAILED);
    assert_int_equal(jobs_count(&w, "uncordon", NULL), 0);
    arena_free(a);
    world_close(&w);
}

/* What fails and cannot be taken back, either, is not tried again by the next group, and the next.
 */
static void c2_a_rollback_that_fails_is_final(void **state)
{
    (void)state;
    world w;
    open_fleet(&w, 1, IMMEDIATE ", rollbackStrategy: all_members", "");
    assert_true(
        vec_push(&w.plans, (world_plan){"os-patch", NULL, 2 * MINUTE, EVEN_BACK, false, false}));
    publish(&w, "os-patch", "2");
    publish(&w, "kubelet", "2");
    world_until(&w, w.now + 10 * DAY);
    assert_int_equal(jobs_count(&w, "os-patch", NULL), 2);
    assert_int_equal(view_at(&w, "os-patch", "node-0").state, PLACEMENT_FAILED);
    world_close(&w);
}

static void c2_a_person_skips(void **state)
{
    (void)state;
    world w;
    arena *a = arena_new(0);
    open_fleet(&w, 1, IMMEDIATE, "");
    assert_true(vec_push(&w.plans, (world_plan){"kubelet", NULL, 2 * MINUTE, -1, false, false}));
    publish(&w, "kubelet", "2");
    world_until(&w, INT64_MAX);
    world_act(&w, (fact_act){.act = ACT_SKIP, .change = STR("kubelet"), .target = STR("node-0")});
    world_until(&w, INT64_MAX);
    check_text(story(&w, a, "node-0"), "drain kubelet=2(failed) uncordon");
    assert_int_equal(view_at(&w, "kubelet", "node-0").state, PLACEMENT_EXCLUDED);
    check_text(reasons_at(&w, a, "kubelet", "node-0"), "skipped:retry kubelet");
    /* until a person retries it */
    w.plans.at[w.plans.len - 1].fail = 0;
    world_act(&w, (fact_act){.act = ACT_RETRY, .change = STR("kubelet"), .target = STR("node-0")});
    world_until(&w, INT64_MAX);
    check_text(story(&w, a, "node-0"), "drain kubelet=2(failed) uncordon drain kubelet=2 uncordon");
    arena_free(a);
    world_close(&w);
}

/* A newer group takes the place of one that failed, and its slot; with merge what was prepared
 * counts. */
static void c2_a_fix_supersedes(void **state)
{
    (void)state;
    for (int merge = 0; merge < 2; merge++) {
        world w;
        arena *a = arena_new(0);
        open_fleet(
            &w, 1, merge ? IMMEDIATE ", overlapStrategy: merge" : IMMEDIATE,
            "  - resourceConcurrency: {groupSelector: 'true', limitType: count, limitValue: 1}\n");
        assert_true(vec_push(&w.plans, (world_plan){"kubelet", NULL, 2 * MINUTE, 1, false, false}));
        publish(&w, "kubelet", "2");
        world_until(&w, INT64_MAX);
        publish(&w, "kubelet", "3");
        world_until(&w, INT64_MAX);
        check_text(story(&w, a, "node-0"),
                   merge ? "drain kubelet=2(failed) kubelet=3 uncordon"
                         : "drain kubelet=2(failed) drain kubelet=3 uncordon");
        size_t taken = 0;
        for (size_t i = 0; i < w.trace.len; i++)
            taken += strstr(w.trace.at[i], "taken") != NULL;
        assert_int_equal(taken, 1);
        arena_free(a);
        world_close(&w);
    }
}

/* A locked version that is withdrawn before its job starts is locked again; nothing left: no hooks.
 */
static void c2_withdrawn_versions(void **state)
{
    (void)state;
    for (int left = 0; left < 2; left++) {
        world w;
        arena *a = arena_new(0);
        open_fleet(
            &w, 1, IMMEDIATE,
            LINEAR
            "  - resourceConcurrency: {groupSelector: 'true', limitType: count, limitValue: 0}\n");
        publish(&w, "kubelet", "2");
        if (left)
            publish(&w, "kubelet", "3");
        world_apply(&w,
                    "apiVersion: drover.dev/v1alpha1\nkind: Version\nmetadata: {name: kubelet-%d, "
                    "creationTimestamp: '2026-03-01T08:00:00Z'}\n"
                    "spec: {deployment: kubelet, tag: '%d', status: rejected}\n",
                    left + 2, left + 2);
        apply_policy(&w, IMMEDIATE, "");
        world_until(&w, INT64_MAX);
        check_text(story(&w, a, "node-0"), left ? "drain kubelet=2 uncordon" : "");
        assert_int_equal(view_at(&w, "kubelet", "node-0").state, PLACEMENT_DONE);
        arena_free(a);
        world_close(&w);
    }
}

/* What runs may be refused later: the newest that is not is older, and a group opens for it. */
static void c2_back_to_what_is_allowed(void **state)
{
    (void)state;
    world w;
    arena *a = arena_new(0);
    open_fleet(&w, 1, IMMEDIATE, "");
    publish(&w, "kubelet", "2");
    world_until(&w, w.now + HOUR);
    publish(&w, "kubelet", "3");
    world_until(&w, w.now + HOUR);
    apply_policy(&w, ", readinessMode: wait_for_all, readinessWindowSeconds: 600",
                 "  - versionSelector: {selector: 'version.tag != \"3\"'}\n");
    world_until(&w, INT64_MAX);
    check_text(story(&w, a, "node-0"), "drain kubelet=2 uncordon drain kubelet=3 uncordon "
                                       "drain kubelet=2 uncordon");
    assert_int_equal(view_at(&w, "kubelet", "node-0").state, PLACEMENT_DONE);
    arena_free(a);
    world_close(&w);
}

/* Two brackets on one resource: one group at a time, whatever its rule. */
static void c2_one_group_on_a_resource(void **state)
{
    (void)state;
    world w;
    arena *a = arena_new(0);
    world_open(&w, "2026-03-01T08:00:00Z");
    apply_nodes(&w, 1);
    apply_deployments(&w);
    world_apply(
        &w, "apiVersion: drover.dev/v1alpha1\nkind: RolloutPolicy\nmetadata: {name: one}\n"
            "spec: {selector: 'deployment.name == \"kubelet\"', rules: [{deploymentBracket: {"
            "deploymentSelector: 'true', readinessMode: immediate}}]}\n"
            "---\napiVersion: drover.dev/v1alpha1\nkind: RolloutPolicy\nmetadata: {name: two}\n"
            "spec: {selector: 'deployment.name == \"containerd\"', rules: [{deploymentBracket: {"
            "deploymentSelector: 'true', readinessMode: immediate}}]}\n");
    publish(&w, "kubelet", "2");
    publish(&w, "containerd", "2");
    check_text(reasons_at(&w, a, "containerd", "node-0"), "bracket:complete kubelet");
    world_until(&w, INT64_MAX);
    check_time(job_of(&w, "kubelet", NULL, 0)->end, "2026-03-01T08:01:00Z");
    check_time(job_of(&w, "containerd", NULL, 0)->start, "2026-03-01T08:01:00Z");
    arena_free(a);
    world_close(&w);
}

/* Once a group has begun, a freeze does not park it half-done; a halt does. */
static void c1_begun_is_finished(void **state)
{
    (void)state;
    for (int halt = 0; halt < 2; halt++) {
        world w;
        arena *a = arena_new(0);
        open_fleet(
            &w, 2, IMMEDIATE,
            "  - resourceConcurrency: {groupSelector: 'true', limitType: count, limitValue: 1}\n");
        publish(&w, "kubelet", "2");
        world_at(&w, "2026-03-01T08:02:00Z");
        world_act(&w, (fact_act){.act = halt ? ACT_HALT : ACT_FREEZE, .reason = STR("audit")});
        world_until(&w, INT64_MAX);
        check_text(story(&w, a, "node-0"), halt ? "drain" : "drain kubelet=2 uncordon");
        check_text(story(&w, a, "node-1"), "");
        check_text(reasons_at(&w, a, "drain", "node-1"),
                   halt ? "halted:resume everything; concurrency:complete node-0"
                        : "freeze:thaw freeze");
        world_act(&w, (fact_act){.act = halt ? ACT_RESUME : ACT_THAW});
        world_until(&w, INT64_MAX);
        check_text(story(&w, a, "node-1"), "drain kubelet=2 uncordon");
        arena_free(a);
        world_close(&w);
    }
}

/* windowTrigger eligible: the window opens when the first version passes the version-level rules.
 */
static void c2_eligible_opens(void **state)
{
    (void)state;
    for (int eligible = 0; eligible < 2; eligible++) {
        world w;
        open_fleet(&w, 1,
                   eligible ? ", readinessWindowSeconds: 3600, windowTrigger: eligible"
                            : ", readinessWindowSeconds: 3600",
                   "  - anyApproval: {minApprovals: 1}\n");
        world_act(&w, (fact_act){.act = ACT_APPROVE, .version = STR("drain-1"), .who = STR("ann")});
        publish(&w, "kubelet", "2");
        world_at(&w, "2026-03-01T08:30:00Z");
        world_act(&w,
                  (fact_act){.act = ACT_APPROVE, .version = STR("kubelet-2"), .who = STR("ann")});
        world_until(&w, INT64_MAX);
        check_time(job_of(&w, "drain", NULL, 0)->start,
                   eligible ? "2026-03-01T09:30:00Z" : "2026-03-01T09:00:00Z");
        world_close(&w);
    }
}

/* While a member runs, a newer version of it joins: it ends first and then runs again. */
static void c2_merge_runs_again(void **state)
{
    (void)state;
    world w;
    arena *a = arena_new(0);
    open_fleet(&w, 1, IMMEDIATE ", overlapStrategy: merge", "");
    publish(&w, "kubelet", "2");
    world_at(&w, "2026-03-01T08:09:00Z");
    publish(&w, "kubelet", "3");
    world_until(&w, INT64_MAX);
    check_text(story(&w, a, "node-0"), "drain kubelet=2 kubelet=3 uncordon");
    arena_free(a);
    world_close(&w);
}

/* Before the pre members are done, and once a post member has started, the next group is queued. */
static void c2_merge_only_between_hooks(void **state)
{
    (void)state;
    world w;
    arena *a = arena_new(0);
    open_fleet(&w, 1, IMMEDIATE ", overlapStrategy: merge", "");
    publish(&w, "kubelet", "2");
    world_at(&w, "2026-03-01T08:04:00Z"); /* draining */
    publish(&w, "containerd", "2");
    world_at(&w, "2026-03-01T08:11:30Z"); /* uncordon runs */
    publish(&w, "os-patch", "2");
    world_until(&w, INT64_MAX);
    check_text(story(&w, a, "node-0"),
               "drain kubelet=2 containerd=2 uncordon drain os-patch=2 uncordon");
    arena_free(a);
    world_close(&w);
}

int main(void)
{
    static row_list all;
    for (size_t i = 0; i < COUNT_OF(readiness_rows); i++)
        rows_add(&all, c2_readiness_row, &readiness_rows[i], "C2, seed 002: %s, %s, %s",
                 readiness_rows[i].mode, readiness_rows[i].unchanged,
                 readiness_rows[i].all ? "all have a new one" : "not all have a new one");
    ROWS_TEST(&all, c2_merge_runs_again);
    ROWS_TEST(&all, c2_merge_only_between_hooks);
    ROWS_TEST(&all, c2_readiness_refused);
    ROWS_TEST(&all, c2_rollback_rows);
    ROWS_TEST(&all, c2_rollback_without_good_version);
    ROWS_TEST(&all, c2_a_rollback_that_fails_is_final);
    ROWS_TEST(&all, c2_a_person_skips);
    ROWS_TEST(&all, c2_a_fix_supersedes);
    ROWS_TEST(&all, c2_withdrawn_versions);
    ROWS_TEST(&all, c2_back_to_what_is_allowed);
    ROWS_TEST(&all, c2_one_group_on_a_resource);
    ROWS_TEST(&all, c1_begun_is_finished);
    ROWS_TEST(&all, c2_eligible_opens);
    return rows_run(&all);
}
