/* SPDX-License-Identifier: Apache-2.0 */
/* The timelines T1 to T6 of semantics.md C7, and the examples of the document that brackets come
 * from (seeds/002). */
#include "support/check.h"

#include "engine/chain.h"
#include "support/bracket_fleet.h"
#include "support/rows.h"

/* The node at a position: the rank of FNV-1a 64 of its id and the bracket's (C4). */
static const char *node_at(int position)
{
    static char hosts[10][24];
    uint64_t hash[10];
    for (int i = 0; i < 10; i++) {
        snprintf(hosts[i], sizeof hosts[i], "node-%d", i);
        hash[i] =
            fnv1a_64(STR("nodes/deploymentBracket/0"), fnv1a_64(str_of(hosts[i]), FNV1A_64_OFFSET));
    }
    for (int i = 0; i < 10; i++) {
        int before = 0;
        for (int k = 0; k < 10; k++)
            before += hash[k] < hash[i];
        if (before == position)
            return hosts[i];
    }
    return NULL;
}

static void open_t1(world *w)
{
    open_fleet(w, 10, DAY_WINDOW, TWENTY_PERCENT LINEAR);
    world_at(w, "2026-03-01T09:00:00Z");
    publish(w, "kubelet", "2");
    world_at(w, "2026-03-01T14:00:00Z");
    publish(w, "containerd", "2");
    world_at(w, "2026-03-01T22:00:00Z");
    publish(w, "os-patch", "2");
    assert_int_equal(w->jobs.len, 0);
}

typedef struct t1_row {
    const char *name;
    int position;
    const char *turn, *start, *end; /* D2 */
} t1_row;

static const t1_row t1_rows[] = {
    {"position 0", 0, "2026-03-02T09:00:00Z", "2026-03-02T09:00:00Z", "2026-03-02T09:15:00Z"},
    {"position 1", 1, "2026-03-02T09:05:00Z", "2026-03-02T09:05:00Z", "2026-03-02T09:20:00Z"},
    {"position 2", 2, "2026-03-02T09:10:00Z", "2026-03-02T09:15:00Z", "2026-03-02T09:30:00Z"},
    {"position 3", 3, "2026-03-02T09:15:00Z", "2026-03-02T09:20:00Z", "2026-03-02T09:35:00Z"},
    {"position 9", 9, "2026-03-02T09:45:00Z", "2026-03-02T10:05:00Z", "2026-03-02T10:20:00Z"},
};

/* What says when the turn comes is the reason of who waits for it; from then on it is no reason. */
static int64_t turn_of(const world *w, const char *host)
{
    arena *a = arena_new(0);
    reasons list = {0};
    int64_t turn = 0;
    assert_true(engine_reasons(w->engine, view_at(w, "drain", host).id, a, &list));
    for (size_t i = 0; i < list.len; i++)
        if (list.at[i].rule == REASON_ROLLOUT)
            turn = list.at[i].next_ms / 1000;
    arena_free(a);
    return turn;
}

static void c7_t1_row(void **state)
{
    const t1_row *r = *state;
    const char *host = node_at(r->position);
    world w;
    open_t1(&w);
    world_at(&w, "2026-03-02T09:00:00Z");
    if (r->position == 0)
        check_time(job_of(&w, "drain", host, 0)->start, r->turn);
    else
        check_time(turn_of(&w, host), r->turn);
    world_until(&w, at_time(r->turn) - 1);
    world_step(&w, NULL, 0);
    assert_int_equal(turn_of(&w, host), r->position == 0 ? 0 : at_time(r->turn));
    world_at(&w, r->turn);
    assert_int_equal(turn_of(&w, host), 0);
    world_until(&w, INT64_MAX);
    check_time(job_of(&w, "drain", host, 0)->start, r->start);
    check_time(job_of(&w, "uncordon", host, 0)->end, r->end);
    world_close(&w);
}

static void c7_t1_seed_002_node_upgrade_with_ordered_bracket(void **state)
{
    (void)state;
    world w;
    open_t1(&w);
    world_until(&w, INT64_MAX);
    assert_int_equal(w.jobs.len, 50);
    const char *one = node_at(1);
    check_time(job_of(&w, "drain", one, 0)->start, "2026-03-02T09:05:00Z");
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

/* "For 3 deployments across 10 nodes, this means 30 drain cycles instead of 10": each with a drain
 * of its own. */
static void c7_t5_seed_002_thirty_drains_apart(void **state)
{
    (void)state;
    static const char *const parts[] = {"kubelet", "containerd", "os-patch"};
    world w;
    world_open(&w, "2026-03-01T08:00:00Z");
    set_durations(&w);
    apply_nodes(&w, 10);
    for (size_t i = 0; i < COUNT_OF(parts); i++) {
        for (int hook = 0; hook < 2; hook++)
            world_apply(
                &w,
                "apiVersion: drover.dev/v1alpha1\nkind: Deployment\nmetadata: {name: %s%s}\n"
                "spec: {resourceSelector: 'true', job: {pull: {}}}\n",
                hook ? "drain-" : "", parts[i]);
        world_apply(&w,
                    "apiVersion: drover.dev/v1alpha1\nkind: RolloutPolicy\nmetadata: {name: %s}\n"
                    "spec:\n  selector: 'deployment.name in [\"%s\", \"drain-%s\"]'\n  rules:\n"
                    "  - deploymentBracket: {deploymentSelector: 'deployment.name in [\"%s\", "
                    "\"drain-%s\"]', preSelector: 'deployment.name.startsWith(\"drain-\")'%s}\n",
                    parts[i], parts[i], parts[i], parts[i], parts[i], IMMEDIATE);
        char hook[64];
        snprintf(hook, sizeof hook, "drain-%s", parts[i]);
        publish(&w, hook, "1");
    }
    world_until(&w, INT64_MAX);
    assert_int_equal(w.jobs.len, 0); /* a hook alone changes nothing */
    for (size_t i = 0; i < COUNT_OF(parts); i++)
        publish(&w, parts[i], "2");
    world_until(&w, INT64_MAX);
    size_t drains = 0;
    for (size_t i = 0; i < w.jobs.len; i++)
        drains += w.jobs.at[i].role == ROLE_PRE;
    assert_int_equal(drains, 30);
    assert_int_equal(w.jobs.len, 60);
    world_close(&w);
}

/* "With 20% concurrency on a 10-node cluster, 2 stuck nodes block the entire rollout. Should there
 * be a configurable timeout?" */
static void c3_seed_002_two_stuck_nodes(void **state)
{
    (void)state;
    static const struct {
        const char *more;
        size_t whole; /* nodes that got through */
    } rows[] = {{"", 0}, {", slotTimeoutSeconds: 3600, onTimeout: release", 8}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        world w;
        arena *a = arena_new(0);
        char rules[300];
        snprintf(rules, sizeof rules,
                 "  - resourceConcurrency: {groupSelector: 'true', limitType: percentage, "
                 "limitValue: 20%s}\n",
                 rows[i].more);
        open_fleet(&w, 10, IMMEDIATE, rules);
        const char *stuck[] = {"node-0", "node-1"};
        for (size_t k = 0; k < 2; k++)
            assert_true(vec_push(&w.plans,
                                 (world_plan){"kubelet", stuck[k], 3 * MINUTE, -1, false, false}));
        publish(&w, "kubelet", "2");
        world_until(&w, w.now + 30 * MINUTE);
        check_text(reasons_at(&w, a, "drain", "node-5"),
                   i == 0 ? "concurrency:complete node-0,node-1,node-2,node-3,node-4"
                          : "concurrency:complete node-0,node-1,node-2,node-3,node-4 "
                            "@01T09:11:00Z");
        world_until(&w, INT64_MAX);
        assert_int_equal(jobs_count(&w, "uncordon", NULL), rows[i].whole);
        arena_free(a);
        world_close(&w);
    }
}

static void c7_t5_seed_002_ten_drains_together(void **state)
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

int main(void)
{
    static row_list all;
    ROWS_ADD(&all, c7_t1_row, t1_rows, "C7, T1");
    ROWS_TEST(&all, c7_t1_seed_002_node_upgrade_with_ordered_bracket);
    ROWS_TEST(&all, c7_t2_seed_002_partial_readiness);
    ROWS_TEST(&all, c7_t3_seed_002_overlapping_version_groups);
    ROWS_TEST(&all, c7_t4_failure_holds_all);
    ROWS_TEST(&all, seed_002_different_clusters_different_policies);
    ROWS_TEST(&all, seed_002_failure_mid_bracket);
    ROWS_TEST(&all, c7_t5_seed_002_thirty_drains_apart);
    ROWS_TEST(&all, c7_t5_seed_002_ten_drains_together);
    ROWS_TEST(&all, c7_t6_newer_after_the_lock);
    ROWS_TEST(&all, c3_seed_002_two_stuck_nodes);
    return rows_run(&all);
}
