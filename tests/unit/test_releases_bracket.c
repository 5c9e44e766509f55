/* SPDX-License-Identifier: Apache-2.0 */
/* Version groups: the timelines T1 to T6 of part C, and the readiness table row by row. */
#include "support/check.h"

#include "support/world.h"

/* ---- the five deployments of the timelines ---- */

static void apply_nodes(world *w, int count)
{
    world_apply(w, "apiVersion: drover.dev/v1alpha1\nkind: Environment\nmetadata: {name: prod}\n"
                   "spec: {resourceSelector: 'true'}\n");
    for (int i = 0; i < count; i++)
        world_apply(
            w,
            "apiVersion: drover.dev/v1alpha1\nkind: Resource\nmetadata: {name: node-%d, labels: {"
            "cluster: east}}\n"
            "spec: {kind: host, version: v1}\n"
            "status: {releases: [{deployment: drain, version: '1'}, {deployment: uncordon, "
            "version: '1'}, "
            "{deployment: kubelet, version: '1'}, {deployment: containerd, version: '1'}, "
            "{deployment: os-patch, version: '1'}]}\n",
            i);
}

static void apply_deployments(world *w)
{
    const char *names[] = {"drain", "os-patch", "kubelet", "containerd", "uncordon"};
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        world_apply(
            w,
            "apiVersion: drover.dev/v1alpha1\nkind: Deployment\nmetadata: {name: %s, labels: {"
            "layer: node}}\n"
            "spec: {resourceSelector: 'true', job: {pull: {}}}\n",
            names[i]);
        world_apply(w,
                    "apiVersion: drover.dev/v1alpha1\nkind: Version\n"
                    "metadata: {name: %s-1, creationTimestamp: '2026-01-01T00:00:00Z'}\n"
                    "spec: {deployment: %s, tag: '1'}\n",
                    names[i], names[i]);
    }
}

static void publish(world *w, const char *change, const char *tag)
{
    world_apply(
        w,
        "apiVersion: drover.dev/v1alpha1\nkind: Version\n"
        "metadata: {name: %s-%s, creationTimestamp: '%s'}\nspec: {deployment: %s, tag: '%s'}\n",
        change, tag, time_at(w->now), change, tag);
}

#define DEPENDENCIES                                                                               \
    "  - deploymentDependency: {dependsOn: 'deployment.name == \"os-patch\"', "                    \
    "appliesTo: 'deployment.name in [\"kubelet\", \"containerd\"]'}\n"

static void apply_policy(world *w, const char *bracket, const char *more)
{
    world_apply(
        w,
        "apiVersion: drover.dev/v1alpha1\nkind: RolloutPolicy\nmetadata: {name: nodes}\n"
        "spec:\n  selector: 'deployment.metadata[\"layer\"] == \"node\"'\n  rules:\n"
        "  - deploymentBracket: {deploymentSelector: 'deployment.metadata[\"layer\"] == \"node\"', "
        "preSelector: 'deployment.name == \"drain\"', postSelector: 'deployment.name == "
        "\"uncordon\"'%s}\n" DEPENDENCIES "%s",
        bracket, more);
}

#define TWENTY_PERCENT                                                                             \
    "  - resourceConcurrency: {groupSelector: 'resource.metadata[\"cluster\"] == \"east\"', "      \
    "limitType: percentage, limitValue: 20}\n"
#define LINEAR "  - gradualRollout: {rolloutType: linear, timeScaleInterval: 300}\n"
#define DAY_WINDOW ", readinessMode: collection_window, readinessWindowSeconds: 86400"

static void set_durations(world *w)
{
    const world_plan plans[] = {{"drain", NULL, 8 * MINUTE, 0, false, false},
                                {"os-patch", NULL, 3 * MINUTE, 0, false, false},
                                {"kubelet", NULL, 3 * MINUTE, 0, false, false},
                                {"containerd", NULL, 3 * MINUTE, 0, false, false},
                                {"uncordon", NULL, 1 * MINUTE, 0, false, false}};
    for (size_t i = 0; i < COUNT_OF(plans); i++)
        assert_true(vec_push(&w->plans, plans[i]));
}

static void open_fleet(world *w, int nodes, const char *bracket, const char *more)
{
    world_open(w, "2026-03-01T08:00:00Z");
    set_durations(w);
    apply_nodes(w, nodes);
    apply_deployments(w);
    apply_policy(w, bracket, more);
}

/* The resource whose drain started n-th. */
static const char *nth_node(const world *w, size_t n)
{
    const world_job *j = job_of(w, "drain", NULL, n);
    return j ? j->resource : NULL;
}

static void c7_t1_seed_002_node_upgrade_with_ordered_bracket(void **state)
{
    (void)state;
    world w;
    open_fleet(&w, 10, DAY_WINDOW, TWENTY_PERCENT LINEAR);
    world_at(&w, "2026-03-01T09:00:00Z");
    publish(&w, "kubelet", "2");
    world_at(&w, "2026-03-01T14:00:00Z");
    publish(&w, "containerd", "2");
    world_at(&w, "2026-03-01T22:00:00Z");
    publish(&w, "os-patch", "2");
    assert_int_equal(w.jobs.len, 0);
    world_until(&w, INT64_MAX);
    static const struct {
        int position;
        const char *start, *end;
    } rows[] = {{0, "2026-03-02T09:00:00Z", "2026-03-02T09:15:00Z"},
                {1, "2026-03-02T09:05:00Z", "2026-03-02T09:20:00Z"},
                {2, "2026-03-02T09:15:00Z", "2026-03-02T09:30:00Z"},
                {3, "2026-03-02T09:20:00Z", "2026-03-02T09:35:00Z"},
                {9, "2026-03-02T10:05:00Z", "2026-03-02T10:20:00Z"}};
    assert_int_equal(w.jobs.len, 50);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const char *host = nth_node(&w, (size_t)rows[i].position);
        check_time(job_of(&w, "drain", host, 0)->start, rows[i].start);
        check_time(job_of(&w, "uncordon", host, 0)->end, rows[i].end);
    }
    const char *one = nth_node(&w, 1);
    check_time(job_of(&w, "os-patch", one, 0)->start, "2026-03-02T09:13:00Z");
    check_time(job_of(&w, "kubelet", one, 0)->start, "2026-03-02T09:16:00Z");
    check_time(job_of(&w, "containerd", one, 0)->start, "2026-03-02T09:16:00Z");
    check_time(job_of(&w, "uncordon", one, 0)->start, "2026-03-02T09:19:00Z");
    assert_int_equal(job_of(&w, "drain", one, 0)->role, ROLE_PRE);
    assert_int_equal(job_of(&w, "uncordon", one, 0)->role, ROLE_POST);
    assert_int_equal(job_of(&w, "kubelet", one, 0)->role, ROLE_MEMBER);
    assert_int_equal(view_at(&w, "kubelet", one).state, PLACEMENT_DONE);
    world_close(&w);
}

/* The deployments that ran on a resource, in the order of their starts: "drain kubelet=2 uncordon".
 */
static str story(const world *w, arena *a, const char *host)
{
    str text = STR_EMPTY;
    for (size_t i = 0; i < w->jobs.len; i++) {
        const world_job *j = &w->jobs.at[i];
        if (strcmp(j->resource, host) != 0)
            continue;
        bool hook = j->role == ROLE_PRE || j->role == ROLE_POST;
        text = arena_printf(a, "%.*s%s%s%s%s%s%s", STR_ARG(text), text.len ? " " : "",
                            j->deployment, hook ? "" : "=", hook ? "" : j->version,
                            j->role == ROLE_ROLLBACK ? "!" : "", j->failed ? "(failed)" : "");
    }
    return text;
}

#define IMMEDIATE ", readinessMode: immediate"

static void c7_t2_seed_002_partial_readiness(void **state)
{
    (void)state;
    world w;
    arena *a = arena_new(0);
    open_fleet(&w, 1, DAY_WINDOW, "");
    publish(&w, "kubelet", "2");
    world_until(&w, INT64_MAX);
    check_text(story(&w, a, "node-0"), "drain kubelet=2 uncordon");
    check_time(job_of(&w, "drain", NULL, 0)->start, "2026-03-02T08:00:00Z");
    arena_free(a);
    world_close(&w);
}

static void c7_t3_seed_002_overlapping_version_groups(void **state)
{
    (void)state;
    for (int merge = 0; merge < 2; merge++) {
        world w;
        arena *a = arena_new(0);
        open_fleet(&w, 1,
                   merge ? IMMEDIATE ", overlapStrategy: merge"
                         : IMMEDIATE ", overlapStrategy: queue",
                   "");
        publish(&w, "kubelet", "2");
        world_at(&w, "2026-03-01T08:09:00Z"); /* drained, kubelet runs */
        publish(&w, "containerd", "2");
        world_until(&w, INT64_MAX);
        check_text(story(&w, a, "node-0"),
                   merge ? "drain kubelet=2 containerd=2 uncordon"
                         : "drain kubelet=2 uncordon drain containerd=2 uncordon");
        arena_free(a);
        world_close(&w);
    }
}

/* While a member runs, a newer version of it joins: it ends first and then runs again. */
static void merge_runs_again(void **state)
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
static void merge_only_between_hooks(void **state)
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

static void c7_t4_failure_holds_all(void **state)
{
    (void)state;
    world w;
    arena *a = arena_new(0);
    open_fleet(
        &w, 2, IMMEDIATE,
        "  - resourceConcurrency: {groupSelector: 'true', limitType: count, limitValue: 1}\n");
    assert_true(vec_push(&w.plans, (world_plan){"kubelet", "node-0", 3 * MINUTE, 1, false, false}));
    publish(&w, "kubelet", "2");
    world_until(&w, INT64_MAX);
    check_text(story(&w, a, "node-0"), "drain kubelet=2(failed)");
    check_text(story(&w, a, "node-1"), "");
    assert_int_equal(view_at(&w, "kubelet", "node-0").state, PLACEMENT_FAILED);
    assert_int_equal(view_at(&w, "uncordon", "node-0").state, PLACEMENT_WAITING);
    check_text(reasons_at(&w, a, "kubelet", "node-0"), "retry:retry kubelet");
    check_text(reasons_at(&w, a, "uncordon", "node-0"), "bracket:complete kubelet");
    check_text(reasons_at(&w, a, "drain", "node-1"), "concurrency:complete node-0");
    world_act(&w, (fact_act){.act = ACT_RETRY, .change = STR("kubelet"), .target = STR("node-0")});
    world_until(&w, INT64_MAX);
    check_text(story(&w, a, "node-0"), "drain kubelet=2(failed) kubelet=2 uncordon");
    check_text(story(&w, a, "node-1"), "drain kubelet=2 uncordon");
    arena_free(a);
    world_close(&w);
}

/* ---- examples of the document that brackets come from (002), where no timeline holds them ---- */

/* "Different clusters, different policies": the same deployments, one bracket a cluster. */
static void seed_002_different_clusters_different_policies(void **state)
{
    (void)state;
    world w;
    arena *a = arena_new(0);
    world_open(&w, "2026-03-01T08:00:00Z");
    set_durations(&w);
    apply_nodes(&w, 1);
    world_apply(&w, "apiVersion: drover.dev/v1alpha1\nkind: Resource\nmetadata: {name: west-0, "
                    "labels: {cluster: west}}\nspec: {kind: host, version: v1}\n"
                    "status: {releases: [{deployment: drain, version: '1'}, {deployment: uncordon, "
                    "version: '1'}, {deployment: kubelet, version: '1'}, {deployment: containerd, "
                    "version: '1'}, {deployment: os-patch, version: '1'}]}\n");
    apply_deployments(&w);
    static const char *const clusters[] = {"east", "west"};
    for (size_t i = 0; i < COUNT_OF(clusters); i++)
        world_apply(&w,
                    "apiVersion: drover.dev/v1alpha1\nkind: RolloutPolicy\nmetadata: {name: "
                    "nodes-%s}\nspec:\n  selector: 'resource.metadata[\"cluster\"] == \"%s\"'\n"
                    "  rules:\n  - deploymentBracket: {deploymentSelector: "
                    "'deployment.metadata[\"layer\"] == \"node\"', preSelector: 'deployment.name "
                    "== \"drain\"', postSelector: 'deployment.name == \"uncordon\"'%s}\n",
                    clusters[i], clusters[i], i == 0 ? DAY_WINDOW : IMMEDIATE);
    publish(&w, "kubelet", "2");
    world_at(&w, "2026-03-01T09:00:00Z");
    publish(&w, "containerd", "2");
    world_until(&w, INT64_MAX);
    check_text(story(&w, a, "node-0"), "drain containerd=2 kubelet=2 uncordon");
    check_text(story(&w, a, "west-0"), "drain kubelet=2 uncordon drain containerd=2 uncordon");
    check_time(job_of(&w, "drain", "west-0", 0)->start, "2026-03-01T08:00:00Z");
    check_time(job_of(&w, "drain", "node-0", 0)->start, "2026-03-02T08:00:00Z");
    arena_free(a);
    world_close(&w);
}

/* "Failure mid-bracket: kubelet fails on node-3 while containerd succeeds." */
static void seed_002_failure_mid_bracket(void **state)
{
    (void)state;
    world w;
    arena *a = arena_new(0);
    open_fleet(&w, 4, IMMEDIATE, "");
    assert_true(vec_push(&w.plans, (world_plan){"kubelet", "node-3", 3 * MINUTE, 1, false, false}));
    assert_true(vec_push(&w.plans, (world_plan){"drain", NULL, 8 * MINUTE, 0, false, false}));
    world_act(&w, (fact_act){.act = ACT_FREEZE, .name = STR("ice")});
    publish(&w, "kubelet", "2");
    publish(&w, "containerd", "2");
    world_act(&w, (fact_act){.act = ACT_THAW});
    world_until(&w, INT64_MAX);
    assert_int_equal(view_at(&w, "kubelet", "node-3").state, PLACEMENT_FAILED);
    assert_int_equal(view_at(&w, "containerd", "node-3").state, PLACEMENT_DONE);
    assert_int_equal(jobs_count(&w, "uncordon", "node-3"), 0);
    assert_int_equal(jobs_count(&w, "uncordon", "node-2"), 1);
    world_act(&w, (fact_act){.act = ACT_RETRY, .change = STR("kubelet"), .target = STR("node-3")});
    world_until(&w, INT64_MAX);
    assert_int_equal(jobs_count(&w, "uncordon", "node-3"), 1);
    arena_free(a);
    world_close(&w);
}

static void c7_t5_drains(void **state)
{
    (void)state;
    world w;
    open_fleet(&w, 10, IMMEDIATE, "");
    world_apply(
        &w,
        "apiVersion: drover.dev/v1alpha1\nkind: List\nitems:\n"
        "- {apiVersion: drover.dev/v1alpha1, kind: Version, metadata: {name: kubelet-2}, spec: {"
        "deployment: kubelet, tag: '2'}}\n"
        "- {apiVersion: drover.dev/v1alpha1, kind: Version, metadata: {name: containerd-2}, spec: "
        "{deployment: containerd, tag: '2'}}\n"
        "- {apiVersion: drover.dev/v1alpha1, kind: Version, metadata: {name: os-patch-2}, spec: {"
        "deployment: os-patch, tag: '2'}}\n");
    world_until(&w, INT64_MAX);
    assert_int_equal(jobs_count(&w, "drain", NULL), 10);
    assert_int_equal(jobs_count(&w, "kubelet", NULL), 10);
    assert_int_equal(jobs_count(&w, "uncordon", NULL), 10);
    world_close(&w);
}

static void c7_t6_newer_after_the_lock(void **state)
{
    (void)state;
    world w;
    arena *a = arena_new(0);
    open_fleet(&w, 1, ", readinessMode: collection_window, readinessWindowSeconds: 600", "");
    publish(&w, "kubelet", "2");
    publish(&w, "os-patch", "2");
    world_at(&w, "2026-03-01T08:12:00Z"); /* locked at 08:10, draining */
    publish(&w, "os-patch", "3");
    world_until(&w, INT64_MAX);
    check_text(story(&w, a, "node-0"),
               "drain os-patch=2 kubelet=2 uncordon drain os-patch=3 uncordon");
    check_time(job_of(&w, "kubelet", NULL, 0)->start, "2026-03-01T08:21:00Z");
    arena_free(a);
    world_close(&w);
}

/* ---- the readiness table ---- */

/* kubelet 2 at +0, containerd 2 at +10 min and, if all, os-patch 2 at +20 min; the window is an
 * hour. */
static void c2_readiness_table(void **state)
{
    (void)state;
    static const struct {
        const char *mode, *unchanged;
        bool all;
        int lock; /* minutes after the first publication */
        const char *story;
    } rows[] = {
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
        {"wait_for_all", "require_all", true, 20,
         "drain os-patch=2 containerd=2 kubelet=2 uncordon"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        world w;
        arena *a = arena_new(0);
        char bracket[256];
        snprintf(bracket, sizeof bracket, ", readinessMode: %s, unchangedMemberStrategy: %s%s",
                 rows[i].mode, rows[i].unchanged,
                 strcmp(rows[i].mode, "immediate") ? ", readinessWindowSeconds: 3600" : "");
        open_fleet(&w, 1, bracket, "");
        publish(&w, "kubelet", "2");
        world_at(&w, "2026-03-01T08:10:00Z");
        publish(&w, "containerd", "2");
        world_at(&w, "2026-03-01T08:20:00Z");
        if (rows[i].all)
            publish(&w, "os-patch", "2");
        world_until(&w, INT64_MAX);
        str got = story(&w, a, "node-0");
        check_msg(str_eq(got, str_of(rows[i].story)), "row %zu: %.*s", i, STR_ARG(got));
        int64_t lock = at_time("2026-03-01T08:00:00Z") + rows[i].lock * MINUTE;
        check_msg(job_of(&w, "drain", NULL, 0)->start == lock, "row %zu: %s", i,
                  time_at(job_of(&w, "drain", NULL, 0)->start));
        arena_free(a);
        world_close(&w);
    }
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

static void rollback_rows(void **state)
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
static void rollback_without_good_version(void **state)
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

static void a_person_skips(void **state)
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
static void a_fix_supersedes(void **state)
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
static void withdrawn_versions(void **state)
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
static void back_to_what_is_allowed(void **state)
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
static void one_group_on_a_resource(void **state)
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
static void begun_is_finished(void **state)
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
static void eligible_opens(void **state)
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(c7_t1_seed_002_node_upgrade_with_ordered_bracket),
        cmocka_unit_test(c7_t2_seed_002_partial_readiness),
        cmocka_unit_test(c7_t3_seed_002_overlapping_version_groups),
        cmocka_unit_test(merge_runs_again),
        cmocka_unit_test(merge_only_between_hooks),
        cmocka_unit_test(c7_t4_failure_holds_all),
        cmocka_unit_test(seed_002_different_clusters_different_policies),
        cmocka_unit_test(seed_002_failure_mid_bracket),
        cmocka_unit_test(c7_t5_drains),
        cmocka_unit_test(c7_t6_newer_after_the_lock),
        cmocka_unit_test(c2_readiness_table),
        cmocka_unit_test(c2_readiness_refused),
        cmocka_unit_test(rollback_rows),
        cmocka_unit_test(rollback_without_good_version),
        cmocka_unit_test(a_person_skips),
        cmocka_unit_test(a_fix_supersedes),
        cmocka_unit_test(withdrawn_versions),
        cmocka_unit_test(back_to_what_is_allowed),
        cmocka_unit_test(one_group_on_a_resource),
        cmocka_unit_test(begun_is_finished),
        cmocka_unit_test(eligible_opens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
