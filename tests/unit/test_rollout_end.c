/* SPDX-License-Identifier: Apache-2.0 */
/* When a rollout is over: with its version groups, their hooks and rollbacks; and what it is when
 * nothing moves any more. */
#include "support/check.h"

#include "support/bracket_fleet.h"

/* "running: 1 of 2 done, 1 in flight, 1 group; node-0 kubelet" */
static const char *rollout_at(const world *w, const char *change, const char *version_)
{
    static char text[512];
    static const char *const states[] = {
#define X(state, name) [ROLLOUT_##state] = (name),
        ROLLOUT_STATES(X)
#undef X
    };
    rollout_view v;
    assert_true(engine_rollout(w->engine, str_of(change), str_of(version_), &v));
    if (v.change.len == 0)
        return "none";
    check_text(v.change, change);
    check_text(v.version, version_);
    assert_int_equal(v.targets, v.done + v.in_flight + v.waiting + v.failed + v.rolled_back);
    int n = snprintf(text, sizeof text, "%s: %lld of %lld", states[v.state], (long long)v.done,
                     (long long)v.targets);
    const struct {
        int64_t count;
        const char *name;
    } others[] = {{v.in_flight, "in flight"}, {v.waiting, "waiting"},   {v.failed, "failed"},
                  {v.rolled_back, "back"},    {v.excluded, "excluded"}, {v.groups, "groups"},
                  {v.missed, "missed"}};
    for (size_t i = 0; i < COUNT_OF(others); i++)
        if (others[i].count > 0)
            n += snprintf(text + n, sizeof text - (size_t)n, ", %lld %s",
                          (long long)others[i].count, others[i].name);
    placement_view open;
    if (v.open != 0) {
        assert_true(engine_placement(w->engine, v.open, &open));
        snprintf(text + n, sizeof text - (size_t)n, "; %.*s on %.*s", STR_ARG(open.change),
                 STR_ARG(open.target));
    }
    return text;
}

#define CHECK_ROLLOUT(w, change, version, wanted)                                                  \
    check_text(str_of(rollout_at(w, change, version)), wanted)

static void hooks_belong_to_it(void **state)
{
    (void)state;
    world w;
    open_fleet(&w, 1, IMMEDIATE, "");
    CHECK_ROLLOUT(&w, "kubelet", "", "done: 1 of 1");
    CHECK_ROLLOUT(&w, "kubelet", "2", "none");
    CHECK_ROLLOUT(&w, "nobody", "", "none");
    publish(&w, "kubelet", "2");
    CHECK_ROLLOUT(&w, "kubelet", "2", "running: 0 of 1, 1 waiting, 1 groups; kubelet on node-0");
    CHECK_ROLLOUT(&w, "kubelet", "1", "done: 1 of 1");
    CHECK_ROLLOUT(&w, "containerd", "", "done: 1 of 1");
    world_at(&w, "2026-03-01T08:09:00Z");
    CHECK_ROLLOUT(&w, "kubelet", "2", "running: 0 of 1, 1 in flight, 1 groups; uncordon on node-0");
    world_at(&w, "2026-03-01T08:11:30Z");
    CHECK_ROLLOUT(&w, "kubelet", "2", "running: 1 of 1, 1 groups; uncordon on node-0");
    CHECK_ROLLOUT(&w, "kubelet", "", "running: 1 of 1, 1 groups; uncordon on node-0");
    world_until(&w, INT64_MAX);
    check_time(w.now, "2026-03-01T08:12:00Z");
    CHECK_ROLLOUT(&w, "kubelet", "2", "done: 1 of 1");
    world_close(&w);
}

static void a_hook_that_fails_is_its_failure(void **state)
{
    (void)state;
    world w;
    open_fleet(&w, 2, IMMEDIATE, TWENTY_PERCENT);
    assert_true(vec_push(&w.plans, (world_plan){"uncordon", NULL, MINUTE, -1, false, false}));
    publish(&w, "kubelet", "2");
    world_until(&w, INT64_MAX);
    CHECK_ROLLOUT(&w, "kubelet", "2", "failed: 1 of 2, 1 waiting, 1 groups; kubelet on node-1");
    w.plans.at[w.plans.len - 1].fail = 0;
    world_act(&w, (fact_act){.act = ACT_RETRY, .change = STR("uncordon")});
    CHECK_ROLLOUT(&w, "kubelet", "2", "running: 1 of 2, 1 waiting, 1 groups; kubelet on node-1");
    world_until(&w, INT64_MAX);
    CHECK_ROLLOUT(&w, "kubelet", "2", "done: 2 of 2");
    world_close(&w);
}

static void going_back_belongs_to_it(void **state)
{
    (void)state;
    static const struct {
        const char *strategy, *at[3], *end, *patch;
    } rows[] = {
        {"halt_and_notify",
         {"failed: 0 of 1, 1 failed, 1 groups; uncordon on node-0", NULL, NULL},
         "failed: 0 of 1, 1 failed, 1 groups; uncordon on node-0",
         "failed: 1 of 1, 1 groups; kubelet on node-0"},
        {"individual",
         {"running: 0 of 1, 1 in flight, 1 groups; uncordon on node-0",
          "running: 0 of 1, 1 back, 1 groups; uncordon on node-0", NULL},
         "failed: 0 of 1, 1 back",
         "done: 1 of 1"},
        {"all_members",
         {"running: 0 of 1, 1 in flight, 1 groups; os-patch on node-0",
          "running: 0 of 1, 1 back, 1 groups; os-patch on node-0",
          "running: 0 of 1, 1 back, 1 groups; uncordon on node-0"},
         "failed: 0 of 1, 1 back",
         "failed: 0 of 1, 1 back"},
    };
    static const char *const times[] = {"2026-03-01T08:13:30Z", "2026-03-01T08:15:30Z",
                                        "2026-03-01T08:18:30Z"};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        world w;
        char bracket[256];
        snprintf(bracket, sizeof bracket, IMMEDIATE ", rollbackStrategy: %s", rows[i].strategy);
        open_fleet(&w, 1, bracket, "");
        assert_true(
            vec_push(&w.plans, (world_plan){"kubelet", NULL, 2 * MINUTE, -1, false, false}));
        world_act(&w, (fact_act){.act = ACT_HALT});
        publish(&w, "os-patch", "2");
        publish(&w, "kubelet", "2");
        world_act(&w, (fact_act){.act = ACT_RESUME});
        for (size_t k = 0; k < COUNT_OF(times) && rows[i].at[k]; k++) {
            world_at(&w, times[k]);
            const char *got = rollout_at(&w, "kubelet", "2");
            check_msg(strcmp(got, rows[i].at[k]) == 0, "row %zu, %s: %s", i, times[k], got);
        }
        world_until(&w, INT64_MAX);
        CHECK_ROLLOUT(&w, "kubelet", "2", rows[i].end);
        CHECK_ROLLOUT(&w, "os-patch", "2", rows[i].patch);
        world_close(&w);
    }
}

/* Two hosts, a slot for one, without a bracket. */
static void open_hosts(world *w, const char *rules)
{
    world_open(w, "2026-03-01T08:00:00Z");
    set_durations(w);
    apply_nodes(w, 2);
    apply_deployments(w);
    world_apply(w,
                "apiVersion: drover.dev/v1alpha1\nkind: RolloutPolicy\nmetadata: {name: nodes}\n"
                "spec:\n  rules:\n%s",
                rules);
}
#define ONE_SLOT                                                                                   \
    "  - resourceConcurrency: {groupSelector: 'true', limitType: count, limitValue: 1}\n"

static void a_retry_to_come_is_hope(void **state)
{
    (void)state;
    world w;
    open_hosts(&w, ONE_SLOT "  - retry: {maxRetries: 1, backoffSeconds: 600}\n");
    assert_true(vec_push(&w.plans, (world_plan){"kubelet", "node-0", MINUTE, 2, false, false}));
    publish(&w, "kubelet", "2");
    world_at(&w, "2026-03-01T08:05:00Z");
    CHECK_ROLLOUT(&w, "kubelet", "2", "running: 0 of 2, 2 waiting; kubelet on node-0");
    world_until(&w, INT64_MAX);
    CHECK_ROLLOUT(&w, "kubelet", "2", "failed: 0 of 2, 1 waiting, 1 failed; kubelet on node-1");
    /* A person who has not decided yet is hope; what failed in front of it is not. */
    world_act(&w, (fact_act){.act = ACT_PAUSE, .change = STR("kubelet")});
    CHECK_ROLLOUT(&w, "kubelet", "2", "failed: 0 of 2, 1 waiting, 1 failed; kubelet on node-1");
    world_act(&w, (fact_act){.act = ACT_SKIP, .change = STR("kubelet"), .target = STR("node-0")});
    CHECK_ROLLOUT(&w, "kubelet", "2", "running: 0 of 1, 1 waiting, 1 excluded; kubelet on node-1");
    world_act(&w, (fact_act){.act = ACT_RESUME, .change = STR("kubelet")});
    world_until(&w, INT64_MAX);
    CHECK_ROLLOUT(&w, "kubelet", "2", "done: 1 of 1, 1 excluded");
    world_close(&w);
}

/* What waits for another deployment is as hopeful as that one, and fails only by itself. */
static void others_are_waited_for(void **state)
{
    (void)state;
    world w;
    open_hosts(&w, DEPENDENCIES);
    assert_true(vec_push(&w.plans, (world_plan){"os-patch", "node-0", MINUTE, 1, false, false}));
    assert_true(vec_push(&w.plans, (world_plan){"kubelet", "node-1", MINUTE, -1, false, false}));
    world_act(&w, (fact_act){.act = ACT_PAUSE, .change = STR("os-patch")});
    publish(&w, "os-patch", "2");
    publish(&w, "kubelet", "2");
    CHECK_ROLLOUT(&w, "kubelet", "2", "running: 0 of 2, 2 waiting; kubelet on node-0");
    world_act(&w, (fact_act){.act = ACT_RESUME, .change = STR("os-patch")});
    world_at(&w, "2026-03-01T08:02:00Z");
    CHECK_ROLLOUT(&w, "os-patch", "2",
                  "running: 0 of 2, 1 in flight, 1 failed; os-patch on node-0");
    CHECK_ROLLOUT(&w, "kubelet", "2", "running: 0 of 2, 2 waiting; kubelet on node-0");
    world_until(&w, INT64_MAX);
    CHECK_ROLLOUT(&w, "kubelet", "2", "failed: 0 of 2, 1 waiting, 1 failed; kubelet on node-0");
    publish(&w, "containerd", "2");
    world_until(&w, INT64_MAX);
    CHECK_ROLLOUT(&w, "containerd", "2", "held: 1 of 2, 1 waiting; containerd on node-0");
    world_act(&w, (fact_act){.act = ACT_RETRY, .change = STR("os-patch")});
    CHECK_ROLLOUT(&w, "containerd", "2", "running: 1 of 2, 1 waiting; containerd on node-0");
    world_until(&w, INT64_MAX);
    CHECK_ROLLOUT(&w, "containerd", "2", "done: 2 of 2");
    world_close(&w);
}

/* A version that is published while another one is on its way comes behind it. */
static void what_comes_behind_another_is_not_over(void **state)
{
    (void)state;
    world w;
    open_hosts(&w, "");
    publish(&w, "kubelet", "2");
    world_at(&w, "2026-03-01T08:00:30Z");
    publish(&w, "kubelet", "3");
    CHECK_ROLLOUT(&w, "kubelet", "3", "running: 0 of 2, 2 in flight");
    world_until(&w, INT64_MAX);
    CHECK_ROLLOUT(&w, "kubelet", "3", "done: 2 of 2");
    world_close(&w);

    open_fleet(&w, 1, IMMEDIATE, "");
    publish(&w, "kubelet", "2");
    for (const char *const *at =
             (const char *const[]){"2026-03-01T08:09:00Z", "2026-03-01T08:11:30Z", NULL};
         *at; at++) {
        world_at(&w, *at);
        publish(&w, "kubelet", strstr(*at, "08:09") ? "3" : "4");
        const char *got = rollout_at(&w, "kubelet", strstr(*at, "08:09") ? "3" : "4");
        check_msg(strncmp(got, "running: 0 of 1", 15) == 0, "%s: %s", *at, got);
    }
    world_until(&w, INT64_MAX);
    CHECK_ROLLOUT(&w, "kubelet", "4", "done: 1 of 1");
    world_close(&w);
}

/* Who waits for somebody who waits for a job that runs gets on, too. */
static void hope_is_followed(void **state)
{
    (void)state;
    world w;
    open_hosts(&w, DEPENDENCIES);
    assert_true(vec_push(&w.plans, (world_plan){"containerd", "node-1", MINUTE, -1, false, false}));
    assert_true(
        vec_push(&w.plans, (world_plan){"os-patch", "node-0", 60 * MINUTE, 0, false, false}));
    publish(&w, "os-patch", "2");
    publish(&w, "kubelet", "2");
    publish(&w, "containerd", "2");
    world_at(&w, "2026-03-01T08:30:00Z");
    CHECK_ROLLOUT(&w, "kubelet", "2", "running: 1 of 2, 1 waiting; kubelet on node-0");
    world_until(&w, INT64_MAX);
    world_close(&w);
}

static void a_version_that_is_not_ready_is_waited_for(void **state)
{
    (void)state;
    static const struct {
        const char *status, *wanted;
    } rows[] = {{"building", "running: 0 of 0, 2 missed"},
                {"paused", "running: 0 of 0, 2 missed"},
                {"rejected", "failed: 0 of 0, 2 missed"},
                {"failed", "failed: 0 of 0, 2 missed"}};
    world w;
    open_hosts(&w, "");
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        world_apply(&w,
                    "apiVersion: drover.dev/v1alpha1\nkind: Version\nmetadata: {name: kubelet-9}\n"
                    "spec: {deployment: kubelet, tag: '9', status: %s}\n",
                    rows[i].status);
        world_until(&w, INT64_MAX);
        CHECK_ROLLOUT(&w, "kubelet", "9", rows[i].wanted);
    }
    world_close(&w);
}

/* What failures have stopped is over: nobody but a person takes it back. */
static void a_stop_is_the_end(void **state)
{
    (void)state;
    static const char *const rules[] = {
        "  - deploymentPolicy: {default: {budget: {count: 1}, strategy: {fixed: {initialBatch: 1, "
        "failureThreshold: 1}}}}\n",
        "  - rolloutStrategy: {maxUnavailable: 1, failureThreshold: 1}\n"};
    for (size_t i = 0; i < COUNT_OF(rules); i++) {
        world w;
        open_hosts(&w, rules[i]);
        assert_true(
            vec_push(&w.plans, (world_plan){"kubelet", "node-0", MINUTE, -1, false, false}));
        publish(&w, "kubelet", "2");
        world_until(&w, INT64_MAX);
        const char *got = rollout_at(&w, "kubelet", "2");
        check_msg(strncmp(got, "failed: 0 of 2", 14) == 0, "%s: %s", rules[i], got);
        world_close(&w);
    }
}

/* What else waits on the host that holds the slot is not what is waited for. */
static void others_on_the_host_are_no_hope(void **state)
{
    (void)state;
    world w;
    open_hosts(&w, "");
    world_apply(&w,
                "apiVersion: drover.dev/v1alpha1\nkind: RolloutPolicy\nmetadata: {name: "
                "slots}\nspec:\n  selector: 'deployment.name == \"kubelet\"'\n  rules:\n" ONE_SLOT);
    assert_true(vec_push(&w.plans, (world_plan){"kubelet", "node-0", MINUTE, -1, false, false}));
    world_act(&w, (fact_act){.act = ACT_PAUSE, .change = STR("os-patch")});
    publish(&w, "os-patch", "2");
    publish(&w, "kubelet", "2");
    world_until(&w, INT64_MAX);
    CHECK_ROLLOUT(&w, "kubelet", "2", "failed: 0 of 2, 1 waiting, 1 failed; kubelet on node-1");
    CHECK_ROLLOUT(&w, "os-patch", "2", "running: 0 of 2, 2 waiting; os-patch on node-0");
    world_close(&w);
}

#define API "apiVersion: drover.dev/v1alpha1\n"

/* A progression waits for the deployment in the other environment, not for what else is there. */
static void a_progression_hopes_for_its_environment(void **state)
{
    (void)state;
    world w;
    world_open(&w, "2026-03-01T08:00:00Z");
    for (const char *const *e = (const char *const[]){"staging", "prod", NULL}; *e; e++)
        world_apply(&w,
                    API "kind: Environment\nmetadata: {name: %s}\nspec: {resourceSelector: "
                        "'resource.name == \"%s-host\"'}\n---\n" API
                        "kind: Resource\nmetadata: {name: %s-host}\nspec: {kind: host}\n",
                    *e, *e, *e);
    for (const char *const *d = (const char *const[]){"app", "other", NULL}; *d; d++)
        world_apply(&w,
                    API "kind: Deployment\nmetadata: {name: %s}\nspec: {resourceSelector: 'true', "
                        "job: {simulated: {}}}\n",
                    *d);
    world_apply(&w, API
                "kind: RolloutPolicy\nmetadata: {name: p}\nspec:\n  selector: 'deployment.name == "
                "\"app\" && environment.name == \"prod\"'\n  rules:\n  - environmentProgression: "
                "{dependsOnEnvironmentSelector: 'environment.name == \"staging\"'}\n");
    assert_true(vec_push(&w.plans, (world_plan){"app", NULL, MINUTE, -1, false, false}));
    world_act(&w, (fact_act){.act = ACT_PAUSE, .change = STR("other")});
    publish(&w, "other", "1");
    publish(&w, "app", "1");
    CHECK_ROLLOUT(&w, "app", "1", "running: 0 of 2, 1 in flight, 1 waiting; app on prod-host");
    world_until(&w, INT64_MAX);
    CHECK_ROLLOUT(&w, "app", "1", "failed: 0 of 2, 1 waiting, 1 failed; app on prod-host");
    world_close(&w);
}

static void a_version_that_was_passed_over_has_failed(void **state)
{
    (void)state;
    world w;
    open_hosts(&w, "");
    world_act(&w, (fact_act){.act = ACT_PAUSE, .change = STR("kubelet")});
    publish(&w, "kubelet", "2");
    CHECK_ROLLOUT(&w, "kubelet", "2", "running: 0 of 2, 2 waiting; kubelet on node-0");
    world_at(&w, "2026-03-01T08:01:00Z");
    publish(&w, "kubelet", "3");
    CHECK_ROLLOUT(&w, "kubelet", "2", "failed: 0 of 0, 2 missed");
    world_close(&w);
}

/* Staging before prod, one host each; prod waits for ten minutes. */
static void open_stages(world *w)
{
    world_open(w, "2026-03-01T08:00:00Z");
    for (const char *const *e = (const char *const[]){"staging", "prod", NULL}; *e; e++)
        world_apply(w,
                    API "kind: Environment\nmetadata: {name: %s}\nspec: {resourceSelector: "
                        "'resource.name == \"%s-host\"'}\n---\n" API
                        "kind: Resource\nmetadata: {name: %s-host}\nspec: {kind: host}\n",
                    *e, *e, *e);
    world_apply(w, API "kind: Deployment\nmetadata: {name: app}\nspec: {resourceSelector: 'true', "
                       "job: {simulated: {}}}\n---\n" API
                       "kind: RolloutPolicy\nmetadata: {name: p}\nspec:\n  selector: "
                       "'environment.name == \"prod\"'\n  rules:\n  - environmentProgression: "
                       "{dependsOnEnvironmentSelector: 'environment.name == \"staging\"', "
                       "minimumSoakTimeMinutes: 10}\n");
}

/* What has failed there before is another version: the new one comes when its time has come. */
static void an_older_failure_is_another_version(void **state)
{
    (void)state;
    world w;
    open_stages(&w);
    assert_true(vec_push(&w.plans, (world_plan){"app", NULL, MINUTE, 0, false, false}));
    assert_true(vec_push(&w.plans, (world_plan){"app", "prod-host", MINUTE, 1, false, false}));
    publish(&w, "app", "1");
    world_until(&w, INT64_MAX);
    CHECK_ROLLOUT(&w, "app", "1", "failed: 1 of 2, 1 failed; app on prod-host");
    world_at(&w, "2026-03-01T09:00:00Z");
    publish(&w, "app", "2");
    world_at(&w, "2026-03-01T09:05:00Z");
    CHECK_ROLLOUT(&w, "app", "2", "running: 1 of 2, 1 waiting; app on prod-host");
    world_until(&w, INT64_MAX);
    CHECK_ROLLOUT(&w, "app", "2", "done: 2 of 2");
    world_close(&w);
}

/* The next group takes the place of the one that failed when it locks. */
static void a_failed_group_is_replaced(void **state)
{
    (void)state;
    world w;
    open_fleet(&w, 1, ", readinessMode: collection_window, readinessWindowSeconds: 3600", "");
    assert_true(vec_push(&w.plans, (world_plan){"kubelet", NULL, MINUTE, 1, false, false}));
    publish(&w, "kubelet", "2");
    world_until(&w, INT64_MAX);
    const char *got = rollout_at(&w, "kubelet", "2");
    check_msg(strncmp(got, "failed: 0 of 1, 1 failed", 24) == 0, "%s", got);
    publish(&w, "kubelet", "3");
    CHECK_ROLLOUT(&w, "kubelet", "3", "running: 0 of 1, 1 waiting; kubelet on node-0");
    world_until(&w, INT64_MAX);
    CHECK_ROLLOUT(&w, "kubelet", "3", "done: 1 of 1");
    world_close(&w);
}

/* A version that does not get everywhere it was meant for has not been rolled out. */
static void a_version_that_is_overtaken_has_failed(void **state)
{
    (void)state;
    world w;
    open_hosts(&w, ONE_SLOT);
    publish(&w, "kubelet", "2");
    world_at(&w, "2026-03-01T08:01:00Z");
    publish(&w, "kubelet", "3");
    CHECK_ROLLOUT(&w, "kubelet", "2", "running: 0 of 1, 1 in flight, 1 missed");
    world_at(&w, "2026-03-01T08:04:00Z");
    CHECK_ROLLOUT(&w, "kubelet", "2", "failed: 1 of 1, 1 missed");
    CHECK_ROLLOUT(&w, "kubelet", "3", "running: 0 of 2, 1 in flight, 1 waiting; kubelet on node-1");
    world_close(&w);

    open_hosts(&w, ONE_SLOT);
    publish(&w, "kubelet", "2");
    world_at(&w, "2026-03-01T08:01:00Z");
    world_apply(&w, API "kind: Version\nmetadata: {name: kubelet-2}\n"
                        "spec: {deployment: kubelet, tag: '2', status: paused}\n");
    world_until(&w, INT64_MAX);
    CHECK_ROLLOUT(&w, "kubelet", "2", "running: 1 of 1, 1 missed");
    world_close(&w);

    /* Rules that want it nowhere; or only somewhere, which is all it was meant for. */
    open_hosts(&w, "  - versionSelector: {selector: 'version.tag != \"2\"'}\n");
    publish(&w, "kubelet", "2");
    CHECK_ROLLOUT(&w, "kubelet", "2", "failed: 0 of 0");
    world_close(&w);
    open_hosts(&w, "  - versionSelector: {selector: 'version.tag != \"2\" || resource.name == "
                   "\"node-1\"'}\n");
    publish(&w, "kubelet", "2");
    world_until(&w, INT64_MAX);
    CHECK_ROLLOUT(&w, "kubelet", "2", "done: 1 of 1");
    world_close(&w);

    /* A hook takes it with the next group: nothing is to be waited for. */
    open_fleet(&w, 1, IMMEDIATE, "");
    publish(&w, "drain", "2");
    CHECK_ROLLOUT(&w, "drain", "2", "done: 0 of 0");
    world_close(&w);
}

/* All that a dependency names must come, unless it says that one is enough. */
static void every_upstream_must_get_on(void **state)
{
    (void)state;
    static const struct {
        const char *match, *wanted;
    } rows[] = {{"all", "failed: 0 of 2, 1 waiting, 1 failed; kubelet on node-0"},
                {"any", "running: 0 of 2, 1 waiting, 1 failed; kubelet on node-0"}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        world w;
        char rule_[256];
        snprintf(rule_, sizeof rule_,
                 "  - deploymentDependency: {dependsOn: 'deployment.name in [\"os-patch\", "
                 "\"drain\"]', appliesTo: 'deployment.name == \"kubelet\"', match: %s}\n",
                 rows[i].match);
        open_hosts(&w, rule_);
        assert_true(vec_push(&w.plans, (world_plan){"kubelet", NULL, MINUTE, -1, false, false}));
        assert_true(
            vec_push(&w.plans, (world_plan){"os-patch", "node-0", MINUTE, -1, false, false}));
        world_act(&w, (fact_act){.act = ACT_PAUSE, .change = STR("drain")});
        publish(&w, "os-patch", "2");
        publish(&w, "drain", "2");
        world_until(&w, INT64_MAX);
        publish(&w, "kubelet", "2");
        world_act(&w, (fact_act){.act = ACT_SKIP, .change = STR("drain"), .target = STR("node-1")});
        world_until(&w, INT64_MAX);
        const char *got = rollout_at(&w, "kubelet", "2");
        check_msg(strcmp(got, rows[i].wanted) == 0, "%s: %s", rows[i].match, got);
        world_close(&w);
    }
}

/* A host that reboots gives its slot back by itself. */
static void a_host_that_reboots_is_hope(void **state)
{
    (void)state;
    world w;
    open_hosts(&w, ONE_SLOT);
    world_act(&w, (fact_act){.act = ACT_CLAIM_SLOT, .target = STR("node-1")});
    publish(&w, "kubelet", "2");
    world_until(&w, INT64_MAX);
    CHECK_ROLLOUT(&w, "kubelet", "2", "running: 1 of 2, 1 waiting; kubelet on node-0");
    world_close(&w);
}

/* What is quarantined was so by a failure: only a person takes that back. */
static void what_is_quarantined_has_failed(void **state)
{
    (void)state;
    world w;
    open_hosts(&w, "  - resourceConcurrency: {groupSelector: 'true', limitType: count, limitValue: "
                   "1, slotTimeoutSeconds: 600, onTimeout: quarantine}\n");
    assert_true(vec_push(&w.plans, (world_plan){"kubelet", "node-0", MINUTE, -1, false, false}));
    publish(&w, "kubelet", "2");
    world_at(&w, "2026-03-01T08:05:00Z");
    CHECK_ROLLOUT(&w, "kubelet", "2", "running: 0 of 2, 1 waiting, 1 failed; kubelet on node-1");
    world_until(&w, INT64_MAX);
    CHECK_ROLLOUT(&w, "kubelet", "2", "failed: 1 of 2, 1 failed; kubelet on node-0");
    publish(&w, "kubelet", "3");
    world_until(&w, INT64_MAX);
    CHECK_ROLLOUT(&w, "kubelet", "3", "failed: 1 of 2, 1 waiting; kubelet on node-0");
    world_close(&w);
}

/* ---- many ---- */

/* So many hosts of a rack, in an environment of that name. */
static void apply_rack(world *w, const char *rack, int count)
{
    world_apply(w,
                API "kind: Environment\nmetadata: {name: %s}\nspec: {resourceSelector: "
                    "'resource.metadata[\"rack\"] == \"%s\"'}\n",
                rack, rack);
    for (int i = 0; i < count; i++)
        world_apply(w,
                    API "kind: Resource\nmetadata: {name: %s-%04d, labels: {rack: %s}}\n"
                        "spec: {kind: host}\nstatus: {releases: [{deployment: app, version: '1'}, "
                        "{deployment: base, version: '1'}]}\n",
                    rack, i, rack);
}

/* Two racks with two deployments, both at version 1, under a rule for app in the first. */
static void open_racks(world *w, int first, int second, const char *rules)
{
    world_open(w, "2026-03-01T08:00:00Z");
    for (const char *const *d = (const char *const[]){"app", "base", NULL}; *d; d++)
        world_apply(w,
                    API "kind: Deployment\nmetadata: {name: %s}\nspec: {resourceSelector: 'true', "
                        "job: {simulated: {}}}\n---\n" API
                        "kind: Version\nmetadata: {name: %s-1, creationTimestamp: "
                        "'2026-01-01T00:00:00Z'}\nspec: {deployment: %s, tag: '1'}\n",
                    *d, *d, *d);
    apply_rack(w, "a", first);
    apply_rack(w, "b", second);
    world_apply(w,
                API "kind: RolloutPolicy\nmetadata: {name: first}\nspec:\n  selector: "
                    "'deployment.name == \"app\" && environment.name == \"a\"'\n  rules:\n%s",
                rules);
}

#define TWO_SLOTS                                                                                  \
    "  - resourceConcurrency: {groupSelector: 'true', limitType: count, limitValue: 2}\n"

/* However many have no hope, one that has some is found. */
static void the_last_hope_counts(void **state)
{
    (void)state;
    world w;
    open_racks(&w, 300, 1, TWO_SLOTS);
    world_apply(&w, API "kind: RolloutPolicy\nmetadata: {name: asked}\nspec:\n  selector: "
                        "'environment.name == \"b\"'\n  rules:\n  - anyApproval: "
                        "{minApprovals: 1}\n");
    assert_true(vec_push(&w.plans, (world_plan){"app", NULL, MINUTE, -1, false, false}));
    publish(&w, "app", "2");
    world_until(&w, INT64_MAX);
    CHECK_ROLLOUT(&w, "app", "2", "running: 0 of 301, 299 waiting, 2 failed; app on a-0002");
    world_act(&w, (fact_act){.act = ACT_APPROVE, .version = STR("app-2"), .who = STR("ann")});
    world_until(&w, INT64_MAX);
    CHECK_ROLLOUT(&w, "app", "2", "failed: 0 of 301, 298 waiting, 3 failed; app on a-0002");
    world_close(&w);
}

/* How many are looked at for the answer, when nobody has hope. */
static uint64_t looks_at(int hosts, const char *rules, const char *wanted)
{
    world w;
    open_racks(&w, hosts, hosts, rules);
    assert_true(vec_push(&w.plans, (world_plan){"app", NULL, MINUTE, -1, false, false}));
    assert_true(vec_push(&w.plans, (world_plan){"base", NULL, MINUTE, -1, false, false}));
    publish(&w, "base", "2");
    world_until(&w, INT64_MAX);
    publish(&w, "app", "2");
    world_until(&w, INT64_MAX);
    uint64_t before = engine_looked_at(w.engine);
    const char *got = rollout_at(&w, "app", "2");
    uint64_t after = engine_looked_at(w.engine);
    check_msg(strncmp(got, wanted, strlen(wanted)) == 0, "%s: %s", rules, got);
    check_msg(strstr(got, " waiting") != NULL, "%s: %s", rules, got);
    world_close(&w);
    return after - before;
}

/* Twice as many who wait cost twice as much, whatever they wait for. */
static void many_without_hope_cost_what_they_are(void **state)
{
    (void)state;
    static const char *const rules[] = {
        TWO_SLOTS,
        TWO_SLOTS "  - gradualRollout: {rolloutType: linear, timeScaleInterval: 60}\n",
        "  - deploymentPolicy: {default: {budget: {count: 2}, strategy: {fixed: {initialBatch: 2, "
        "failureThreshold: 1}}}}\n",
        "  - rolloutStrategy: {maxUnavailable: 2}\n",
        "  - rolloutStrategy: {maxUnavailable: 2, failureThreshold: 2}\n",
        "  - environmentProgression: {dependsOnEnvironmentSelector: 'environment.name == \"b\"'}\n"
        "  - gradualRollout: {rolloutType: linear, timeScaleInterval: 60}\n",
        "  - deploymentDependency: {dependsOn: 'deployment.name == \"base\"'}\n"
        "  - gradualRollout: {rolloutType: linear, timeScaleInterval: 60}\n"};
    for (size_t i = 0; i < COUNT_OF(rules); i++) {
        uint64_t few = looks_at(40, rules[i], "failed: 0 of 80");
        uint64_t many = looks_at(160, rules[i], "failed: 0 of 320");
        check_msg(many <= 4 * few + 40 && many <= UINT64_C(160) * 16,
                  "%s: %llu for 40, %llu for 160", rules[i], (unsigned long long)few,
                  (unsigned long long)many);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hooks_belong_to_it),
        cmocka_unit_test(a_hook_that_fails_is_its_failure),
        cmocka_unit_test(going_back_belongs_to_it),
        cmocka_unit_test(a_retry_to_come_is_hope),
        cmocka_unit_test(others_are_waited_for),
        cmocka_unit_test(what_comes_behind_another_is_not_over),
        cmocka_unit_test(hope_is_followed),
        cmocka_unit_test(a_stop_is_the_end),
        cmocka_unit_test(others_on_the_host_are_no_hope),
        cmocka_unit_test(a_progression_hopes_for_its_environment),
        cmocka_unit_test(a_version_that_was_passed_over_has_failed),
        cmocka_unit_test(a_version_that_is_not_ready_is_waited_for),
        cmocka_unit_test(an_older_failure_is_another_version),
        cmocka_unit_test(a_failed_group_is_replaced),
        cmocka_unit_test(a_version_that_is_overtaken_has_failed),
        cmocka_unit_test(every_upstream_must_get_on),
        cmocka_unit_test(a_host_that_reboots_is_hope),
        cmocka_unit_test(what_is_quarantined_has_failed),
        cmocka_unit_test(the_last_hope_counts),
        cmocka_unit_test(many_without_hope_cost_what_they_are),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
