/* SPDX-License-Identifier: Apache-2.0 */
/* Why release targets do not move, as people read it: for each kind of cause the smallest world in
 * which it is one, what is said of it, and that doing what is said helps. */
#include "support/check.h"

#include "support/world.h"

#define API "apiVersion: drover.dev/v1alpha1\n"

/* ---- a small fleet ---- */

static void put_environment(world *w, const char *name)
{
    world_apply(w,
                API "kind: Environment\nmetadata: {name: %s}\nspec: {resourceSelector: "
                    "'resource.metadata[\"env\"] == \"%s\"'}\n",
                name, name);
}

static void put_deployment(world *w, const char *name)
{
    world_apply(w,
                API "kind: Deployment\nmetadata: {name: %s}\nspec: {resourceSelector: 'true', job: "
                    "{pull: {}}}\n",
                name);
}

/* runs: "{deployment: app, version: v1}, ..." */
static void put_host(world *w, const char *name, const char *env, const char *runs)
{
    world_apply(w,
                API "kind: Resource\nmetadata: {name: %s, labels: {env: %s}}\nspec: {kind: host, "
                    "version: v1}\nstatus: {releases: [%s]}\n",
                name, env, runs);
}

static void publish(world *w, const char *change, const char *tag)
{
    world_apply(w,
                API "kind: Version\nmetadata: {name: %s-%s, creationTimestamp: '%s'}\nspec: "
                    "{deployment: %s, tag: %s}\n",
                change, tag, time_at(w->now), change, tag);
}

static void put_rules(world *w, const char *of, const char *rules)
{
    world_apply(
        w, API "kind: RolloutPolicy\nmetadata: {name: p}\nspec:\n  selector: '%s'\n  rules:\n%s",
        of, rules);
}

/* app and base on hosts of prod, at 08:00. */
static void open_world(world *w)
{
    world_open(w, "2026-03-01T08:00:00Z");
    put_environment(w, "prod");
    put_deployment(w, "app");
    put_deployment(w, "base");
}

#define RUNS_V1 "{deployment: app, version: v1}, {deployment: base, version: v1}"

/* What is said, sentence by sentence. */
static str whys_at(const world *w, arena *a, const char *change, const char *target)
{
    reasons list = {0};
    assert_true(engine_reasons(w->engine, view_at(w, change, target).id, a, &list));
    str text = STR_EMPTY;
    for (size_t i = 0; i < list.len; i++)
        text = arena_printf(a, "%.*s%s%.*s", STR_ARG(text), i ? "; " : "",
                            STR_ARG(reason_text(a, &list.at[i])));
    return text;
}

static void plan_jobs(world *w, const char *change, int fail)
{
    world_plan plan = {.deployment = change, .seconds = 60, .fail = fail};
    assert_true(vec_push(&w->plans, plan));
}

/* ---- rollbacks ---- */

#define TOGETHER                                                                                   \
    "  - deploymentBracket: {deploymentSelector: 'true', readinessMode: wait_for_all, "            \
    "readinessWindowSeconds: 60, rollbackStrategy: "
#define BASE_FIRST                                                                                 \
    "  - deploymentDependency: {dependsOn: 'deployment.name == \"base\"', appliesTo: "             \
    "'deployment.name == \"app\"'}\n"

/* base is done, app fails, and fails to go back: app is to be retried, whatever base is doing. */
static void a_rollback_of_all_members_that_failed(void **state)
{
    (void)state;
    world w;
    arena *a = arena_new(0);
    open_world(&w);
    put_rules(&w, "true", TOGETHER "all_members}\n" BASE_FIRST);
    put_host(&w, "h", "prod", RUNS_V1);
    publish(&w, "app", "v1");
    publish(&w, "base", "v1");
    world_until(&w, w.now + HOUR);
    plan_jobs(&w, "app", EVEN_BACK);
    publish(&w, "app", "v2");
    publish(&w, "base", "v2");
    world_until(&w, w.now + HOUR);
    check_text(reasons_at(&w, a, "app", "h"), "failed:retry app");
    check_text(reasons_at(&w, a, "base", "h"), "bracket:complete app");
    check_text(whys_at(&w, a, "base", "h"), "members go back one after the other; app failed");
    /* A halt is a second cause. */
    world_act(&w, (fact_act){.act = ACT_HALT, .target = STR("h")});
    check_text(reasons_at(&w, a, "app", "h"), "failed:retry app; halted:resume h");
    world_act(&w, (fact_act){.act = ACT_RESUME, .target = STR("h")});
    w.plans.len = 0;
    size_t before = jobs_count(&w, "app", "h");
    world_act(&w, (fact_act){.act = ACT_RETRY, .change = STR("app"), .target = STR("h")});
    assert_int_equal(jobs_count(&w, "app", "h"), before + 1);
    assert_int_equal(job_of(&w, "app", "h", before)->role, ROLE_ROLLBACK);
    arena_free(a);
    world_close(&w);
}

/* Each goes back by itself: no order, and who is halted holds nobody else. */
static void rollbacks_of_single_members_hold_nobody_else(void **state)
{
    (void)state;
    world w;
    arena *a = arena_new(0);
    open_world(&w);
    put_rules(&w, "true", TOGETHER "individual}\n");
    put_host(&w, "h", "prod", RUNS_V1);
    publish(&w, "app", "v1");
    publish(&w, "base", "v1");
    world_until(&w, w.now + HOUR);
    plan_jobs(&w, "app", -1);
    plan_jobs(&w, "base", -1);
    publish(&w, "app", "v2");
    publish(&w, "base", "v2");
    world_act(&w, (fact_act){.act = ACT_HALT, .change = STR("base")});
    world_act(&w, (fact_act){.act = ACT_HALT, .change = STR("app")});
    world_until(&w, w.now + 2 * MINUTE); /* both have failed */
    check_text(reasons_at(&w, a, "app", "h"), "halted:resume app");
    check_text(reasons_at(&w, a, "base", "h"), "halted:resume base");
    world_act(&w, (fact_act){.act = ACT_RESUME, .change = STR("app")});
    assert_int_equal(view_at(&w, "app", "h").state, PLACEMENT_IN_FLIGHT);
    world_act(&w, (fact_act){.act = ACT_RESUME, .change = STR("base")});
    assert_int_equal(view_at(&w, "base", "h").state, PLACEMENT_IN_FLIGHT);
    arena_free(a);
    world_close(&w);
}

/* Outside of a bracket, too, a rollback that failed may be held by a person besides. */
static void a_rollback_that_failed_may_be_halted_too(void **state)
{
    (void)state;
    world w;
    arena *a = arena_new(0);
    open_world(&w);
    put_rules(&w, "true",
              "  - rollback: {onJobStatuses: [failure]}\n"
              "  - rolloutStrategy: {maxUnavailable: 1}\n");
    put_host(&w, "h", "prod", RUNS_V1);
    publish(&w, "app", "v1");
    plan_jobs(&w, "app", EVEN_BACK);
    publish(&w, "app", "v2");
    world_until(&w, w.now + HOUR);
    check_text(reasons_at(&w, a, "app", "h"), "failed:retry app");
    world_act(&w, (fact_act){.act = ACT_HALT, .change = STR("app")});
    check_text(reasons_at(&w, a, "app", "h"), "failed:retry app; halted:resume app");
    world_act(&w, (fact_act){.act = ACT_RETRY, .change = STR("app")});
    check_text(reasons_at(&w, a, "app", "h"), "halted:resume app");
    size_t before = jobs_count(&w, "app", "h");
    world_act(&w, (fact_act){.act = ACT_RESUME, .change = STR("app")});
    assert_int_equal(jobs_count(&w, "app", "h"), before + 1);
    arena_free(a);
    world_close(&w);
}

/* ---- slots ---- */

#define ONE_SLOT                                                                                   \
    "  - resourceConcurrency: {groupSelector: 'true', limitType: count, limitValue: 1, "           \
    "slotTimeoutSeconds: 600, onTimeout: "

/* h1 has failed and keeps its slot for ten minutes: h2 waits for it, or for that. */
static void a_slot_that_times_out(void **state)
{
    static const struct {
        const char *rest, *reasons;
    } rows[] = {{"release}\n", "concurrency:complete h1 @01T08:11:00Z"},
                {"quarantine}\n", "concurrency:complete h1 @01T08:11:00Z"},
                {"hold}\n", "concurrency:complete h1"}};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        world w;
        arena *a = arena_new(0);
        char text[512];
        open_world(&w);
        snprintf(text, sizeof text, ONE_SLOT "%s", rows[i].rest);
        put_rules(&w, "true", text);
        put_host(&w, "h1", "prod", RUNS_V1);
        put_host(&w, "h2", "prod", RUNS_V1);
        assert_true(vec_push(
            &w.plans,
            ((world_plan){.deployment = "app", .resource = "h1", .seconds = 60, .fail = -1})));
        publish(&w, "app", "v2");
        world_at(&w, "2026-03-01T08:05:00Z");
        check_text(reasons_at(&w, a, "app", "h2"), rows[i].reasons);
        world_at(&w, "2026-03-01T08:12:00Z");
        assert_int_equal(jobs_count(&w, "app", "h2"), i == 2 ? 0 : 1);
        if (i == 2)
            check_text(whys_at(&w, a, "app", "h2"),
                       "1 of 1 slots are taken (h1), held past its time-out");
        arena_free(a);
        world_close(&w);
    }
}

/* Of a slot's queue the other deployments of the same host are no part: the slot is the host's. And
 * that h1 is unavailable is no second cause: it is to be complete for its slot. */
static void what_a_slot_implies(void **state)
{
    (void)state;
    world w;
    arena *a = arena_new(0);
    open_world(&w);
    put_rules(&w, "true",
              "  - resourceConcurrency: {groupSelector: 'true', limitType: count, limitValue: 1}\n"
              "  - rolloutStrategy: {maxUnavailable: 1}\n");
    put_host(&w, "h1", "prod", RUNS_V1);
    put_host(&w, "h2", "prod", RUNS_V1);
    publish(&w, "app", "v2");
    publish(&w, "base", "v2");
    check_text(reasons_at(&w, a, "app", "h2"), "concurrency:complete h1");
    check_text(reasons_at(&w, a, "base", "h2"), "concurrency:complete h1");
    arena_free(a);
    world_close(&w);
}

/* base waits for its time under a slot that app keeps: before it comes the host is quarantined. */
static void a_quarantine_to_come(void **state)
{
    (void)state;
    world w;
    arena *a = arena_new(0);
    open_world(&w);
    put_rules(&w, "true",
              ONE_SLOT "quarantine}\n  - deploymentWindow: {rrule: 'FREQ=HOURLY', durationMinutes: "
                       "2}\n");
    put_host(&w, "h", "prod", RUNS_V1);
    plan_jobs(&w, "app", -1);
    publish(&w, "app", "v2");
    world_at(&w, "2026-03-01T08:05:00Z");
    publish(&w, "base", "v2");
    check_text(reasons_at(&w, a, "base", "h"),
               "window:time @01T09:00:00Z; quarantined:retry h @01T08:11:00Z");
    check_text(whys_at(&w, a, "base", "h"),
               "the deployment window opens at 2026-03-01T09:00:00Z; it is quarantined at "
               "2026-03-01T08:11:00Z: nothing moves under its slot");
    world_at(&w, "2026-03-01T09:00:00Z");
    check_text(reasons_at(&w, a, "base", "h"), "quarantined:retry h");
    world_act(&w, (fact_act){.act = ACT_RETRY, .target = STR("h")});
    assert_int_equal(jobs_count(&w, "base", "h"), 1);
    arena_free(a);
    world_close(&w);
}

/* ---- brackets ---- */

/* app failed; its next version is being collected and takes the place of what failed in time. */
static void a_failure_that_is_superseded(void **state)
{
    (void)state;
    world w;
    arena *a = arena_new(0);
    open_world(&w);
    put_rules(&w, "true",
              "  - deploymentBracket: {deploymentSelector: 'true', readinessWindowSeconds: 600}\n");
    put_host(&w, "h", "prod", RUNS_V1);
    plan_jobs(&w, "app", 1);
    publish(&w, "app", "v2");
    world_at(&w, "2026-03-01T08:20:00Z");
    check_text(reasons_at(&w, a, "app", "h"), "retry:retry app");
    publish(&w, "app", "v3");
    check_text(reasons_at(&w, a, "app", "h"), "failed:retry app @01T08:30:00Z");
    world_at(&w, "2026-03-01T08:30:00Z");
    check_text(str_of(job_of(&w, "app", "h", 1)->version), "v3");
    arena_free(a);
    world_close(&w);
}

/* app was skipped in the group that is queued, and is wanted again. Nothing else is left to do in
 * that group but to wait for its turn: for tool. */
static void behind_a_group_that_only_waits_for_its_turn(void **state)
{
    (void)state;
    world w;
    arena *a = arena_new(0);
    open_world(&w);
    put_deployment(&w, "tool");
    put_rules(&w, "true",
              "  - deploymentBracket: {deploymentSelector: 'true', readinessMode: immediate, "
              "preSelector: 'deployment.name == \"base\"'}\n");
    put_host(&w, "h", "prod", "");
    plan_jobs(&w, "tool", 0);
    publish(&w, "base", "v1");
    publish(&w, "tool", "v1");
    world_until(&w, w.now + 61); /* the hook has run, and tool has begun */
    assert_int_equal(jobs_count(&w, "tool", "h"), 1);
    publish(&w, "app", "v1");
    world_act(&w, (fact_act){.act = ACT_SKIP, .change = STR("app"), .target = STR("h")});
    world_act(&w, (fact_act){.act = ACT_RETRY, .change = STR("app"), .target = STR("h")});
    check_text(reasons_at(&w, a, "app", "h"), "bracket:complete base");
    world_delete(&w, KIND_DEPLOYMENT, "base");
    check_text(reasons_at(&w, a, "app", "h"), "bracket:complete tool");
    world_until(&w, w.now + HOUR);
    assert_int_equal(jobs_count(&w, "app", "h"), 1);
    arena_free(a);
    world_close(&w);
}

/* ---- dependencies ---- */

/* Who waits for a version that nobody has published is helped by publishing it; then by its end. */
static void dependencies_on_versions(void **state)
{
    (void)state;
    world w;
    arena *a = arena_new(0);
    open_world(&w);
    put_deployment(&w, "tool");
    put_rules(&w, "true",
              "  - deploymentDependency: {dependsOn: 'deployment.name in [\"base\", \"tool\"] && "
              "version.tag == \"v2\"', appliesTo: 'deployment.name == \"app\"'}\n");
    put_host(&w, "h", "prod", RUNS_V1 ", {deployment: tool, version: v1}");
    publish(&w, "base", "v1");
    publish(&w, "tool", "v2"); /* runs for a minute */
    publish(&w, "app", "v2");
    check_text(reasons_at(&w, a, "app", "h"), "dependency:complete tool; dependency:publish base");
    check_text(whys_at(&w, a, "app", "h"), "waits for tool; waits for another version of base");
    world_until(&w, w.now + HOUR);
    check_text(reasons_at(&w, a, "app", "h"), "dependency:publish base");
    publish(&w, "base", "v2");
    check_text(reasons_at(&w, a, "app", "h"), "dependency:complete base");
    world_until(&w, w.now + HOUR);
    assert_int_equal(jobs_count(&w, "app", "h"), 1);
    arena_free(a);
    world_close(&w);
}

/* base is a hook that has nobody to prepare: to publish it once more would not help. */
static void a_dependency_on_a_hook_that_never_ran(void **state)
{
    (void)state;
    world w;
    arena *a = arena_new(0);
    open_world(&w);
    put_rules(&w, "true",
              "  - deploymentBracket: {deploymentSelector: 'deployment.name == \"base\"', "
              "readinessMode: immediate, preSelector: 'deployment.name == \"base\"'}\n" BASE_FIRST);
    put_host(&w, "h", "prod", "{deployment: app, version: v1}");
    publish(&w, "app", "v2");
    check_text(reasons_at(&w, a, "app", "h"), "dependency:publish base");
    publish(&w, "base", "v1");
    check_text(reasons_at(&w, a, "app", "h"), "dependency:complete base");
    arena_free(a);
    world_close(&w);
}

/* All that a version itself needs is said, not only the first of it. */
static void every_need_of_a_version(void **state)
{
    (void)state;
    world w;
    arena *a = arena_new(0);
    open_world(&w);
    put_rules(&w, "true", "  - versionSelector: {selector: 'true'}\n");
    put_host(&w, "h", "prod", RUNS_V1);
    publish(&w, "base", "v2");
    world_apply(
        &w,
        API "kind: Version\nmetadata: {name: app-v2}\nspec: {deployment: app, tag: v2, dependsOn: "
            "[{deployment: base, versionSelector: 'version.tag == \"v2\"'}, {deployment: base, "
            "versionSelector: 'version.tag == \"v3\"'}, {deployment: ghost, versionSelector: "
            "'true'}]}\n");
    check_text(reasons_at(&w, a, "app", "h"),
               "dependency:complete base; dependency:publish base; dependency:edit ghost");
    check_text(
        whys_at(&w, a, "app", "h"),
        "waits for base; waits for another version of base (version.tag == \"v3\"); waits for "
        "ghost, which is not deployed to this resource");
    arena_free(a);
    world_close(&w);
}

/* ---- compartments and limits ---- */

/* Nobody is in a batch, and yet it is not its turn; and a limit of nothing has no holders. */
static void sentences_without_holders(void **state)
{
    (void)state;
    world w;
    arena *a = arena_new(0);
    open_world(&w);
    put_rules(
        &w, "true",
        "  - deploymentPolicy: {default: {budget: {count: 2}, strategy: {fixed: {initialBatch: "
        "1, failureThreshold: 1}}}}\n  - resourceConcurrency: {groupSelector: 'true', "
        "limitType: count, limitValue: 0}\n");
    put_host(&w, "h1", "prod", RUNS_V1);
    put_host(&w, "h2", "prod", RUNS_V1);
    publish(&w, "app", "v2");
    check_text(reasons_at(&w, a, "app", "h2"), "batch:complete h1; concurrency:edit p");
    check_text(whys_at(&w, a, "app", "h1"), "the limit is 0: there is no slot");
    arena_free(a);
    world_close(&w);
}

static void a_stop_after_one_failed_batch(void **state)
{
    (void)state;
    world w;
    arena *a = arena_new(0);
    open_world(&w);
    put_rules(
        &w, "true",
        "  - deploymentPolicy: {default: {budget: {count: 2}, strategy: {fixed: {initialBatch: "
        "1, failureThreshold: 1}}}}\n");
    plan_jobs(&w, "app", -1);
    put_host(&w, "h1", "prod", RUNS_V1);
    put_host(&w, "h2", "prod", RUNS_V1);
    put_host(&w, "h3", "prod", RUNS_V1);
    publish(&w, "app", "v2");
    world_until(&w, w.now + HOUR);
    check_text(reasons_at(&w, a, "app", "h3"), "stopped:reset app; batch:complete h2");
    check_text(
        whys_at(&w, a, "app", "h3"),
        "stopped after 1 failed batch in a row; others are ahead of it, and the next batch is "
        "full");
    arena_free(a);
    world_close(&w);
}

/* v3 waits for approval, and its work lifts the stop that v2 ended in: no reset is asked for. */
static void a_stop_that_the_next_version_lifts(void **state)
{
    (void)state;
    world w;
    arena *a = arena_new(0);
    open_world(&w);
    put_rules(
        &w, "true",
        "  - deploymentPolicy: {default: {budget: {count: 1}, strategy: {fixed: {initialBatch: "
        "1, failureThreshold: 1}}}}\n  - anyApproval: {minApprovals: 1}\n");
    plan_jobs(&w, "app", -1);
    put_host(&w, "h1", "prod", RUNS_V1);
    put_host(&w, "h2", "prod", RUNS_V1);
    publish(&w, "app", "v2");
    world_act(&w, (fact_act){.act = ACT_APPROVE, .version = STR("app-v2"), .who = STR("ann")});
    world_until(&w, w.now + MINUTE);
    check_text(reasons_at(&w, a, "app", "h2"), "stopped:reset app");
    publish(&w, "app", "v3");
    world_act(&w, (fact_act){.act = ACT_SKIP,
                             .change = STR("app"),
                             .target = STR("h2"),
                             .version = STR("app-v2")});
    check_text(reasons_at(&w, a, "app", "h2"), "approval:approve app-v3");
    world_act(&w, (fact_act){.act = ACT_APPROVE, .version = STR("app-v3"), .who = STR("ann")});
    assert_int_equal(view_at(&w, "app", "h1").state, PLACEMENT_IN_FLIGHT);
    arena_free(a);
    world_close(&w);
}

/* Nobody has anything to do any more: what was skipped begins a rollout when it is taken up again,
 * in which nothing is stopped. */
static void a_stop_that_the_next_rollout_lifts(void **state)
{
    (void)state;
    world w;
    arena *a = arena_new(0);
    open_world(&w);
    put_rules(
        &w, "true",
        "  - deploymentPolicy: {default: {budget: {count: 1}, strategy: {fixed: {initialBatch: "
        "1, failureThreshold: 1}}}}\n");
    plan_jobs(&w, "app", 1);
    put_host(&w, "h1", "prod", RUNS_V1);
    publish(&w, "app", "v2");
    world_until(&w, w.now + MINUTE);
    check_text(reasons_at(&w, a, "app", "h1"), "retry:retry app; stopped:reset app");
    world_act(&w, (fact_act){.act = ACT_SKIP, .change = STR("app"), .target = STR("h1")});
    check_text(reasons_at(&w, a, "app", "h1"), "skipped:retry app");
    world_act(&w, (fact_act){.act = ACT_RETRY, .change = STR("app"), .target = STR("h1")});
    assert_int_equal(view_at(&w, "app", "h1").state, PLACEMENT_IN_FLIGHT);
    arena_free(a);
    world_close(&w);
}

/* ---- selectors that fail ---- */

static void a_policy_that_cannot_be_evaluated(void **state)
{
    (void)state;
    world w;
    arena *a = arena_new(0);
    open_world(&w);
    put_rules(&w, "int(resource.name) > 0", "  - versionSelector: {selector: 'true'}\n");
    put_host(&w, "h", "prod", RUNS_V1);
    publish(&w, "app", "v2");
    check_text(reasons_at(&w, a, "app", "h"), "expression:edit p");
    put_rules(&w, "true", "  - versionSelector: {selector: 'true'}\n");
    assert_int_equal(jobs_count(&w, "app", "h"), 1);
    arena_free(a);
    world_close(&w);
}

/* What runs is kept, and that nothing newer comes is said. */
static void a_version_selector_that_fails(void **state)
{
    (void)state;
    world w;
    arena *a = arena_new(0);
    open_world(&w);
    put_rules(&w, "true", "  - versionSelector: {selector: 'int(version.tag) > 0'}\n");
    put_host(&w, "h", "prod", RUNS_V1);
    publish(&w, "app", "v2");
    assert_int_equal(view_at(&w, "app", "h").state, PLACEMENT_WAITING);
    check_text(reasons_at(&w, a, "app", "h"), "expression:edit p");
    put_rules(&w, "true", "  - versionSelector: {selector: 'version.tag == \"v2\"'}\n");
    assert_int_equal(jobs_count(&w, "app", "h"), 1);
    arena_free(a);
    world_close(&w);
}

/* ---- environmentProgression ---- */

static void open_stages(world *w, const char *limits)
{
    open_world(w);
    put_environment(w, "one");
    put_environment(w, "two");
    char text[256];
    snprintf(text, sizeof text,
             "  - environmentProgression: {dependsOnEnvironmentSelector: 'environment.name in "
             "[\"one\", \"two\"]'%s}\n",
             limits);
    put_rules(w, "environment.name == \"prod\"", text);
    put_host(w, "h1", "one", RUNS_V1);
    put_host(w, "h2", "two", RUNS_V1);
    put_host(w, "h3", "prod", RUNS_V1);
}

/* All environments must pass: each that does not is a cause. */
static void every_environment_that_lacks_success(void **state)
{
    (void)state;
    world w;
    arena *a = arena_new(0);
    open_stages(&w, ", minimumSoakTimeMinutes: 30");
    world_act(&w, (fact_act){.act = ACT_HALT, .target = STR("h2")});
    publish(&w, "app", "v2");
    check_text(reasons_at(&w, a, "app", "h3"),
               "progression:complete one; progression:complete two");
    world_until(&w, w.now + 5 * MINUTE);
    check_text(reasons_at(&w, a, "app", "h3"),
               "progression:time one @01T08:31:00Z; progression:complete two");
    check_text(
        whys_at(&w, a, "app", "h3"),
        "it must stay in one until 2026-03-01T08:31:00Z; 0 percent succeeded in two, 100 are "
        "needed");
    world_act(&w, (fact_act){.act = ACT_RESUME, .target = STR("h2")});
    world_until(&w, w.now + 5 * MINUTE);
    check_text(reasons_at(&w, a, "app", "h3"),
               "progression:time one @01T08:31:00Z; progression:time two @01T08:36:00Z");
    world_until(&w, INT64_MAX);
    check_time(job_of(&w, "app", "h3", 0)->start, "2026-03-01T08:36:00Z");
    arena_free(a);
    world_close(&w);
}

/* What succeeded too long ago stays so: the first success is the one that counts. */
static void a_success_that_is_too_old(void **state)
{
    (void)state;
    world w;
    arena *a = arena_new(0);
    open_stages(&w, ", maximumAgeHours: 1");
    world_act(&w, (fact_act){.act = ACT_HALT, .target = STR("h2")});
    publish(&w, "app", "v2");
    world_at(&w, "2026-03-01T10:00:00Z");
    check_text(reasons_at(&w, a, "app", "h3"), "progression:edit p; progression:complete two");
    world_act(&w, (fact_act){.act = ACT_RESUME, .target = STR("h2")});
    world_at(&w, "2026-03-01T10:05:00Z");
    check_text(reasons_at(&w, a, "app", "h3"), "progression:edit p");
    check_text(whys_at(&w, a, "app", "h3"), "the last success in one is more than 1 hour old");
    put_rules(&w, "environment.name == \"prod\"",
              "  - environmentProgression: {dependsOnEnvironmentSelector: 'environment.name in "
              "[\"one\", \"two\"]', maximumAgeHours: 24}\n");
    assert_int_equal(jobs_count(&w, "app", "h3"), 1);
    arena_free(a);
    world_close(&w);
}

/* A soak that is longer than what it may be old ends in a "no": both are said from the start. */
static void a_soak_that_outlasts_the_age(void **state)
{
    (void)state;
    world w;
    arena *a = arena_new(0);
    open_stages(&w, ", minimumSoakTimeMinutes: 90, maximumAgeHours: 1");
    publish(&w, "app", "v2");
    world_at(&w, "2026-03-01T08:10:00Z");
    check_text(reasons_at(&w, a, "app", "h3"),
               "progression:time one @01T09:31:00Z; progression:time two @01T09:31:00Z; "
               "progression:edit p");
    check_text(whys_at(&w, a, "app", "h3"),
               "it must stay in one until 2026-03-01T09:31:00Z; it must stay in two until "
               "2026-03-01T09:31:00Z; the last success in one is more than 1 hour old");
    arena_free(a);
    world_close(&w);
}

static void a_selector_that_matches_no_environment(void **state)
{
    (void)state;
    world w;
    arena *a = arena_new(0);
    open_world(&w);
    put_rules(&w, "true",
              "  - environmentProgression: {dependsOnEnvironmentSelector: 'environment.name == "
              "\"none\"'}\n");
    put_host(&w, "h", "prod", RUNS_V1);
    publish(&w, "app", "v2");
    check_text(reasons_at(&w, a, "app", "h"), "progression:edit p");
    check_text(whys_at(&w, a, "app", "h"), "no environment matches the selector");
    put_rules(&w, "true", "  - versionSelector: {selector: 'true'}\n");
    assert_int_equal(jobs_count(&w, "app", "h"), 1);
    arena_free(a);
    world_close(&w);
}

/* ---- hooks ---- */

/* A hook that gets a version alone starts nothing, and is said to wait for nothing. */
static void a_hook_alone_runs_with_the_next_change(void **state)
{
    (void)state;
    world w;
    arena *a = arena_new(0);
    reasons none = {0};
    open_world(&w);
    put_rules(&w, "true",
              "  - deploymentBracket: {deploymentSelector: 'true', readinessMode: immediate, "
              "preSelector: 'deployment.name == \"base\"'}\n");
    put_host(&w, "h", "prod", RUNS_V1);
    publish(&w, "base", "v2");
    placement_view hook = view_at(&w, "base", "h");
    assert_int_equal(hook.state, PLACEMENT_DONE);
    assert_int_equal(jobs_count(&w, "base", "h"), 0);
    check_text(engine_sentence(a, &hook, &none),
               "h needs nothing of base now: a hook runs when another member of its bracket "
               "changes, next at v2");
    publish(&w, "app", "v2");
    check_text(view_at(&w, "base", "h").wanted, "v2");
    assert_int_equal(jobs_count(&w, "base", "h"), 1);
    arena_free(a);
    world_close(&w);
}

/* ---- deploymentWindow ---- */

/* Windows that never open, or never close, at 2026-03-01T08:00. next: when that changes. */
static const struct window_row {
    const char *rule;
    const char *reasons; /* empty: it starts */
} window_rows[] = {
    {"rrule: 'FREQ=DAILY;BYHOUR=9', durationMinutes: 1440, allowWindow: false", "window:edit p"},
    {"rrule: 'FREQ=DAILY;BYHOUR=9', durationMinutes: 1439, allowWindow: false",
     "window:time @01T08:59:00Z"},
    {"rrule: 'FREQ=DAILY', durationMinutes: 2000, allowWindow: false", "window:edit p"},
    {"rrule: 'FREQ=WEEKLY;BYDAY=MO', durationMinutes: 10080, allowWindow: false", "window:edit p"},
    {"rrule: 'FREQ=MONTHLY', durationMinutes: 44640, allowWindow: false", "window:edit p"},
    {"rrule: 'FREQ=HOURLY', durationMinutes: 60, allowWindow: false", "window:edit p"},
    {"rrule: 'FREQ=HOURLY;BYHOUR=0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23', "
     "durationMinutes: 60, allowWindow: false",
     "window:edit p"},
    {"rrule: 'FREQ=MINUTELY;INTERVAL=5', durationMinutes: 5, allowWindow: false", "window:edit p"},
    {"rrule: 'FREQ=MINUTELY;INTERVAL=5', durationMinutes: 4, allowWindow: false",
     "window:time @01T08:04:00Z"},
    /* In Berlin one day of the year is 25 hours long. */
    {"rrule: 'FREQ=DAILY', durationMinutes: 1440, allowWindow: false, timezone: Europe/Berlin",
     "window:time @25T22:00:00Z"},
    {"rrule: 'FREQ=DAILY;UNTIL=20260401T000000Z', durationMinutes: 1440, allowWindow: false",
     "window:time @02T00:00:00Z"},
    {"rrule: 'FREQ=DAILY;UNTIL=20260101T000000Z', durationMinutes: 60", "window:edit p"},
    {"rrule: 'FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30', durationMinutes: 60", "window:edit p"},
    {"rrule: 'FREQ=DAILY;BYHOUR=9', durationMinutes: 1440", ""},
    {"rrule: 'FREQ=MINUTELY', durationMinutes: 1", ""},
    {"rrule: 'FREQ=YEARLY', durationMinutes: 527040, allowWindow: false", "window:edit p"},
};

/* Windows by the minute and second with other parts, more of them than are counted at once. The
 * day is a Sunday. */
static const struct window_row dense_rows[] = {
    {"rrule: 'FREQ=MINUTELY;BYDAY=MO,TU,WE,TH,FR,SA,SU', durationMinutes: 1, allowWindow: false",
     "window:edit p"},
    {"rrule: 'FREQ=MINUTELY;BYMONTH=3,4', durationMinutes: 1, allowWindow: false",
     "window:time @01T00:00:00Z"},
    {"rrule: 'FREQ=MINUTELY;BYMONTH=1,2,3,4,5,6,7,8,9,10,11', durationMinutes: 1, "
     "allowWindow: false",
     "window:time @01T00:00:00Z"},
    {"rrule: 'FREQ=SECONDLY;BYDAY=SU', durationMinutes: 1, allowWindow: false",
     "window:time @02T00:00:59Z"},
    {"rrule: 'FREQ=SECONDLY;BYDAY=SU', durationMinutes: 1", ""},
    {"rrule: 'FREQ=SECONDLY;BYDAY=MO', durationMinutes: 1", "window:time @02T00:00:00Z"},
    {"rrule: 'FREQ=SECONDLY;BYMINUTE=0,1', durationMinutes: 1, allowWindow: false",
     "window:time @01T08:02:59Z"},
    /* Not before the start, though that is within an hour and a minute. */
    {"rrule: 'DTSTART=20260301T083030;FREQ=SECONDLY;BYDAY=SU', durationMinutes: 1",
     "window:time @01T08:30:30Z"},
    /* Some seconds only, and an end. */
    {"rrule: 'FREQ=SECONDLY;BYDAY=SU;BYSECOND=0,30', durationMinutes: 1, allowWindow: false",
     "window:time @02T00:00:30Z"},
    {"rrule: 'FREQ=MINUTELY;BYMONTH=3;UNTIL=20300101T000000Z', durationMinutes: 1, "
     "allowWindow: false",
     "window:time @01T00:00:00Z"},
    /* In Lord Howe clocks change by half an hour. It is 19:00 there. */
    {"rrule: 'FREQ=MINUTELY;BYDAY=SU', durationMinutes: 1, allowWindow: false, "
     "timezone: Australia/Lord_Howe",
     "window:time @01T13:00:00Z"},
    {"rrule: 'FREQ=SECONDLY;UNTIL=20260401T000000Z', durationMinutes: 4320, allowWindow: false",
     "window:time @04T00:00:00Z"},
    {"rrule: 'FREQ=SECONDLY;UNTIL=20300101T000000Z', durationMinutes: 4320", ""},
    {"rrule: 'FREQ=SECONDLY;INTERVAL=7;BYMONTH=3', durationMinutes: 1, allowWindow: false",
     "window:time @01T00:00:59Z"},
    {"rrule: 'FREQ=SECONDLY;INTERVAL=50;BYHOUR=9', durationMinutes: 1",
     "window:time @01T09:00:00Z"},
};

static void check_windows(const struct window_row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct window_row *row = &rows[i];
        world w;
        arena *a = arena_new(0);
        char text[512];
        open_world(&w);
        snprintf(text, sizeof text, "  - deploymentWindow: {%s}\n", row->rule);
        put_rules(&w, "true", text);
        put_host(&w, "h", "prod", RUNS_V1);
        publish(&w, "app", "v2");
        str found = row->reasons[0] ? reasons_at(&w, a, "app", "h") : STR_EMPTY;
        check_msg(str_eq(found, str_of(row->reasons)), "%s: %.*s", row->rule, STR_ARG(found));
        assert_int_equal(jobs_count(&w, "app", "h"), row->reasons[0] ? 0 : 1);
        if (strcmp(row->reasons, "window:edit p") == 0) {
            check_text(whys_at(&w, a, "app", "h"), "the deployment window never opens again");
            check_msg(engine_next_ms(w.engine) == REASON_NEVER, "%s: something is due", row->rule);
        }
        arena_free(a);
        world_close(&w);
    }
}

static void windows_that_never_open(void **state)
{
    (void)state;
    check_windows(window_rows, COUNT_OF(window_rows));
}

static void windows_by_the_minute_and_second_hold(void **state)
{
    (void)state;
    check_windows(dense_rows, COUNT_OF(dense_rows));
}

/* v2 is let in by staging and skipped on h1, where v1 waits for staging still. That nobody is left
 * there changes nothing for v2, and lets v1 in. */
static void who_skipped_a_version_asks_about_older_ones(void **state)
{
    (void)state;
    world w;
    arena *a = arena_new(0);
    open_world(&w);
    put_environment(&w, "staging");
    put_rules(&w, "environment.name == \"prod\"",
              "  - environmentProgression: {dependsOnEnvironmentSelector: 'environment.name == "
              "\"staging\"'}\n");
    publish(&w, "app", "v1");
    world_at(&w, "2026-03-01T08:10:00Z");
    publish(&w, "app", "v2");
    put_host(&w, "s1", "staging", "{deployment: app, version: v2}");
    world_act(&w, (fact_act){.act = ACT_PAUSE, .change = STR("app")});
    put_host(&w, "h1", "prod", "");
    world_act(&w, (fact_act){.act = ACT_SKIP, .change = STR("app"), .target = STR("h1")});
    world_act(&w, (fact_act){.act = ACT_RESUME, .change = STR("app")});
    check_text(reasons_at(&w, a, "app", "h1"), "progression:complete staging");
    world_delete(&w, KIND_RESOURCE, "s1");
    assert_int_equal(jobs_count(&w, "app", "h1"), 1);
    check_text(str_of(job_of(&w, "app", "h1", 0)->version), "v1");
    arena_free(a);
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_rollback_of_all_members_that_failed),
        cmocka_unit_test(rollbacks_of_single_members_hold_nobody_else),
        cmocka_unit_test(a_rollback_that_failed_may_be_halted_too),
        cmocka_unit_test(a_slot_that_times_out),
        cmocka_unit_test(what_a_slot_implies),
        cmocka_unit_test(a_quarantine_to_come),
        cmocka_unit_test(a_failure_that_is_superseded),
        cmocka_unit_test(behind_a_group_that_only_waits_for_its_turn),
        cmocka_unit_test(dependencies_on_versions),
        cmocka_unit_test(a_dependency_on_a_hook_that_never_ran),
        cmocka_unit_test(every_need_of_a_version),
        cmocka_unit_test(sentences_without_holders),
        cmocka_unit_test(a_stop_after_one_failed_batch),
        cmocka_unit_test(a_stop_that_the_next_version_lifts),
        cmocka_unit_test(a_stop_that_the_next_rollout_lifts),
        cmocka_unit_test(a_policy_that_cannot_be_evaluated),
        cmocka_unit_test(a_version_selector_that_fails),
        cmocka_unit_test(every_environment_that_lacks_success),
        cmocka_unit_test(a_success_that_is_too_old),
        cmocka_unit_test(a_soak_that_outlasts_the_age),
        cmocka_unit_test(a_selector_that_matches_no_environment),
        cmocka_unit_test(a_hook_alone_runs_with_the_next_change),
        cmocka_unit_test(windows_that_never_open),
        cmocka_unit_test(who_skipped_a_version_asks_about_older_ones),
        cmocka_unit_test(windows_by_the_minute_and_second_hold),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
