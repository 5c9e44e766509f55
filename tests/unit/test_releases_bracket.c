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
        world_apply(w,
                    "apiVersion: drover.dev/v1alpha1\nkind: Resource\nmetadata: {name: node-%d, labels: {cluster: east}}\n"
                    "spec: {kind: host, version: v1}\n"
                    "status: {releases: [{deployment: drain, version: '1'}, {deployment: uncordon, version: '1'}, "
                    "{deployment: kubelet, version: '1'}, {deployment: containerd, version: '1'}, "
                    "{deployment: os-patch, version: '1'}]}\n",
                    i);
}

static void apply_deployments(world *w)
{
    const char *names[] = {"drain", "os-patch", "kubelet", "containerd", "uncordon"};
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        world_apply(w,
                    "apiVersion: drover.dev/v1alpha1\nkind: Deployment\nmetadata: {name: %s, labels: {layer: node}}\n"
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
    world_apply(w,
                "apiVersion: drover.dev/v1alpha1\nkind: Version\n"
                "metadata: {name: %s-%s, creationTimestamp: '%s'}\nspec: {deployment: %s, tag: '%s'}\n",
                change, tag, time_at(w->now), change, tag);
}

#define DEPENDENCIES                                                                               \
    "  - deploymentDependency: {dependsOn: 'deployment.name == \"os-patch\"', "                     \
    "appliesTo: 'deployment.name in [\"kubelet\", \"containerd\"]'}\n"

static void apply_policy(world *w, const char *bracket, const char *more)
{
    world_apply(w,
                "apiVersion: drover.dev/v1alpha1\nkind: RolloutPolicy\nmetadata: {name: nodes}\n"
                "spec:\n  selector: 'deployment.metadata[\"layer\"] == \"node\"'\n  rules:\n"
                "  - deploymentBracket: {deploymentSelector: 'deployment.metadata[\"layer\"] == \"node\"', "
                "preSelector: 'deployment.name == \"drain\"', postSelector: 'deployment.name == \"uncordon\"'%s}\n"
                DEPENDENCIES "%s",
                bracket, more);
}

#define TWENTY_PERCENT                                                                             \
    "  - resourceConcurrency: {groupSelector: 'resource.metadata[\"cluster\"] == \"east\"', "        \
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

static void t1_ten_nodes_two_at_a_time(void **state)
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(t1_ten_nodes_two_at_a_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
