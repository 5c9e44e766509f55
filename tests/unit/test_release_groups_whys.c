/* SPDX-License-Identifier: Apache-2.0 */
/* Why members of version groups do not move where one group follows another: what the next one
 * takes over from a group that failed, what it joins, and what it has to wait for. */
#include "support/check.h"

#include "support/world.h"

#define API "apiVersion: drover.dev/v1alpha1\n"
#define RUNS_V0                                                                                    \
    "{deployment: app, version: v0}, {deployment: base, version: v0}, "                            \
    "{deployment: tool, version: v0}"

static void put_host(world *w, const char *name, const char *uses)
{
    world_apply(w,
                API "kind: Resource\nmetadata: {name: %s, labels: {%s}}\nspec: {kind: host, "
                    "version: v1}\nstatus: {releases: [" RUNS_V0 "]}\n",
                name, uses);
}

/* On h1 and h2, at 08:00. */
static void open_world(world *w, const char *rules)
{
    static const char *const changes[] = {"app", "base", "tool"};
    world_open(w, "2026-03-01T08:00:00Z");
    world_apply(w, API
                "kind: Environment\nmetadata: {name: prod}\nspec: {resourceSelector: 'true'}\n");
    for (size_t i = 0; i < COUNT_OF(changes); i++)
        world_apply(w,
                    API "kind: Deployment\nmetadata: {name: %s}\nspec: {resourceSelector: "
                        "'resource.metadata[\"%s\"] == \"yes\"', job: {pull: {}}}\n",
                    changes[i], changes[i]);
    world_apply(w, API "kind: RolloutPolicy\nmetadata: {name: p}\nspec:\n  rules:\n%s", rules);
}

static void publish(world *w, const char *change, const char *tag)
{
    world_apply(w,
                API "kind: Version\nmetadata: {name: %s-%s, creationTimestamp: '%s'}\nspec: "
                    "{deployment: %s, tag: %s}\n",
                change, tag, time_at(w->now), change, tag);
}

static void plan(world *w, const char *change, const char *host, int64_t seconds, int fail)
{
    assert_true(vec_push(
        &w->plans,
        (world_plan){.deployment = change, .resource = host, .seconds = seconds, .fail = fail}));
}

static void on_h1(world *w, act_kind act, const char *change)
{
    world_act(w, (fact_act){.act = act, .change = str_of(change), .target = STR("h1")});
}

static str last_job(const world *w, arena *a, const char *change, const char *host)
{
    size_t count = jobs_count(w, change, host);
    const world_job *j = count > 0 ? job_of(w, change, host, count - 1) : NULL;
    return j ? arena_printf(a, "%s at %s", j->version, time_at(j->start) + 11) : STR_EMPTY;
}

#define COLLECTED(overlap)                                                                         \
    "  - deploymentBracket: {deploymentSelector: 'true', readinessWindowSeconds: 300, "            \
    "overlapStrategy: " overlap "}\n"
#define BASE_FIRST                                                                                 \
    "  - deploymentDependency: {dependsOn: 'deployment.name == \"base\"', appliesTo: "             \
    "'deployment.name == \"app\"'}\n"

/* base has failed on h1 while tool runs there, and h2 is in the open batch. The next group of h1
 * has the place of the one that failed: it waits for tool alone. */
static void the_next_group_takes_the_place_over(void **state)
{
    (void)state;
    world w;
    arena *a = arena_new(0);
    open_world(&w, COLLECTED("queue") "  - deploymentPolicy: {default: {budget: {count: 1}, "
                                      "strategy: {fixed: {initialBatch: 1}}}}\n");
    plan(&w, NULL, "h2", DAY, 0);
    plan(&w, "base", "h1", 60, -1);
    plan(&w, "tool", "h1", HOUR, 0);
    put_host(&w, "h1", "app: 'yes', base: 'yes', tool: 'yes'");
    put_host(&w, "h2", "app: 'yes'");
    publish(&w, "app", "v1");
    publish(&w, "base", "v1");
    publish(&w, "tool", "v1");
    world_at(&w, "2026-03-01T08:10:00Z");
    check_text(last_job(&w, a, "app", "h2"), "v1 at 08:06:00Z");
    publish(&w, "app", "v2");
    world_at(&w, "2026-03-01T08:20:00Z");
    check_text(reasons_at(&w, a, "app", "h1"), "bracket:complete tool; busy:complete tool");
    world_at(&w, "2026-03-01T09:10:00Z");
    check_text(last_job(&w, a, "app", "h1"), "v2 at 09:05:00Z");
    assert_false(job_of(&w, "app", "h2", 0)->ended);
    arena_free(a);
    world_close(&w);
}

/* base has failed, and app waits for it. A newer version of app opens the next group, which does
 * not: time alone lets app go on. */
static void the_next_group_waits_for_nobody_who_failed(void **state)
{
    (void)state;
    world w;
    arena *a = arena_new(0);
    open_world(&w, COLLECTED("queue") BASE_FIRST);
    plan(&w, "base", NULL, 60, -1);
    put_host(&w, "h1", "app: 'yes', base: 'yes'");
    publish(&w, "app", "v1");
    publish(&w, "base", "v1");
    world_at(&w, "2026-03-01T08:10:00Z");
    check_text(reasons_at(&w, a, "app", "h1"), "dependency:complete base");
    publish(&w, "app", "v2");
    check_text(reasons_at(&w, a, "app", "h1"), "dependency:complete base @01T08:15:00Z");
    world_at(&w, "2026-03-01T08:20:00Z");
    check_text(last_job(&w, a, "app", "h1"), "v2 at 08:15:00Z");
    arena_free(a);
    world_close(&w);
}

/* What was skipped while a group is under way is of the next one, once it is retried: that one ends
 * a group that failed, or joins one that executes. */
static void check_skipped(const char *overlap, int64_t base_takes, int base_fails)
{
    world w;
    arena *a = arena_new(0);
    open_world(&w, overlap);
    plan(&w, "base", NULL, base_takes, base_fails);
    put_host(&w, "h1", "app: 'yes', base: 'yes'");
    publish(&w, "app", "v1");
    publish(&w, "base", "v1");
    world_at(&w, "2026-03-01T08:10:00Z");
    check_text(last_job(&w, a, "app", "h1"), "v1 at 08:05:00Z");
    publish(&w, "app", "v2");
    on_h1(&w, ACT_SKIP, "app");
    world_at(&w, "2026-03-01T08:20:00Z");
    check_text(reasons_at(&w, a, "app", "h1"), "skipped:retry app");
    on_h1(&w, ACT_RETRY, "app");
    check_text(last_job(&w, a, "app", "h1"), "v2 at 08:20:00Z");
    arena_free(a);
    world_close(&w);
}

static void what_was_skipped_ends_a_group_that_failed(void **state)
{
    (void)state;
    check_skipped(COLLECTED("queue"), 60, -1);
}

static void what_was_skipped_joins_a_group_that_executes(void **state)
{
    (void)state;
    check_skipped(COLLECTED("merge"), DAY, 0);
}

/* But what a group itself has passed over waits for its end. */
static void what_a_group_passed_over_waits_for_it(void **state)
{
    (void)state;
    world w;
    arena *a = arena_new(0);
    open_world(&w, COLLECTED("queue") BASE_FIRST);
    plan(&w, "base", NULL, 600, 1);
    put_host(&w, "h1", "app: 'yes', base: 'yes'");
    publish(&w, "app", "v1");
    publish(&w, "base", "v1");
    world_at(&w, "2026-03-01T08:10:00Z");
    on_h1(&w, ACT_SKIP, "app");
    world_at(&w, "2026-03-01T08:30:00Z");
    check_text(reasons_at(&w, a, "app", "h1"), "skipped:retry app; bracket:complete base");
    on_h1(&w, ACT_RETRY, "app");
    check_text(last_job(&w, a, "app", "h1"), "");
    on_h1(&w, ACT_RETRY, "base");
    world_at(&w, "2026-03-01T08:50:00Z");
    check_text(last_job(&w, a, "app", "h1"), "v1 at 08:40:00Z");
    arena_free(a);
    world_close(&w);
}

/* app and base have failed and tool still runs; app was skipped, and other versions of the two are
 * collected. With app all have one: that group takes the place of this one when tool has ended, and
 * base need not be tried again. */
static void what_is_collected_waits_for_whoever_runs(void **state)
{
    (void)state;
    world w;
    arena *a = arena_new(0);
    open_world(&w, "  - deploymentBracket: {deploymentSelector: 'true', readinessMode: "
                   "wait_for_all, readinessWindowSeconds: 6000}\n");
    put_host(&w, "h1", "app: 'yes', base: 'yes', tool: 'yes'");
    plan(&w, "tool", "h1", 1000, 0);
    plan(&w, "app", "h1", 30, 1);
    plan(&w, "base", "h1", 30, 1);
    publish(&w, "app", "v1");
    publish(&w, "base", "v1");
    publish(&w, "tool", "v1");
    world_at(&w, "2026-03-01T08:02:00Z");
    on_h1(&w, ACT_SKIP, "app");
    publish(&w, "base", "v2");
    publish(&w, "tool", "v2");
    check_text(reasons_at(&w, a, "app", "h1"), "skipped:retry app; bracket:complete tool");
    on_h1(&w, ACT_RETRY, "app");
    world_at(&w, "2026-03-01T08:20:00Z");
    check_text(last_job(&w, a, "app", "h1"), "v1 at 08:16:40Z");
    arena_free(a);
    world_close(&w);
}

/* A group that has not begun, for a freeze, is not waited for: the next one, with app, takes its
 * place as soon as it locks. */
static void what_is_collected_ends_a_group_that_has_not_begun(void **state)
{
    (void)state;
    world w;
    arena *a = arena_new(0);
    open_world(&w, "  - deploymentBracket: {deploymentSelector: 'true', readinessMode: "
                   "wait_for_all, readinessWindowSeconds: 6000}\n");
    put_host(&w, "h1", "app: 'yes', base: 'yes'");
    world_act(&w, (fact_act){.act = ACT_FREEZE, .name = STR("f")});
    publish(&w, "app", "v1");
    publish(&w, "base", "v1");
    on_h1(&w, ACT_SKIP, "app");
    publish(&w, "base", "v2");
    check_text(reasons_at(&w, a, "app", "h1"), "skipped:retry app; freeze:thaw f");
    on_h1(&w, ACT_RETRY, "app");
    world_act(&w, (fact_act){.act = ACT_THAW, .name = STR("f")});
    check_text(last_job(&w, a, "app", "h1"), "v1 at 08:00:00Z");
    check_text(last_job(&w, a, "base", "h1"), "v2 at 08:00:00Z");
    arena_free(a);
    world_close(&w);
}

/* A hook that failed runs again in the next group, which another version of app is collected for.
 */
static void a_hook_that_failed_runs_in_the_next_group(void **state)
{
    (void)state;
    world w;
    arena *a = arena_new(0);
    open_world(&w,
               "  - deploymentBracket: {deploymentSelector: 'true', readinessWindowSeconds: 60, "
               "preSelector: 'deployment.name == \"base\"'}\n");
    put_host(&w, "h1", "app: 'yes', base: 'yes'");
    plan(&w, "base", "h1", 30, 1);
    publish(&w, "app", "v1");
    world_at(&w, "2026-03-01T08:02:00Z");
    check_text(reasons_at(&w, a, "base", "h1"), "retry:retry base");
    publish(&w, "app", "v2");
    check_text(reasons_at(&w, a, "base", "h1"), "failed:retry base @01T08:03:00Z");
    world_at(&w, "2026-03-01T08:04:00Z");
    check_text(last_job(&w, a, "base", "h1"), "v0 at 08:03:00Z");
    arena_free(a);
    world_close(&w);
}

/* That a deployment leaves a host is no edit of the others: a halt stays. Another version is one.
 */
static void a_member_that_leaves_lifts_no_halt(void **state)
{
    (void)state;
    world w;
    arena *a = arena_new(0);
    open_world(&w, COLLECTED("queue") "  - rolloutStrategy: {maxUnavailable: 1, failureThreshold: "
                                      "1}\n");
    plan(&w, "app", NULL, 60, 1);
    put_host(&w, "h1", "app: 'yes'");
    put_host(&w, "h2", "app: 'yes', tool: 'yes'");
    publish(&w, "app", "v1");
    publish(&w, "tool", "v1");
    world_at(&w, "2026-03-01T08:10:00Z");
    check_text(last_job(&w, a, "app", "h1"), "v1 at 08:05:00Z");
    put_host(&w, "h2", "app: 'yes'");
    check_text(reasons_at(&w, a, "app", "h2"),
               "halted:resume p/rolloutStrategy/0; unavailable:complete h1");
    publish(&w, "app", "v2");
    world_at(&w, "2026-03-01T08:20:00Z");
    check_text(last_job(&w, a, "app", "h1"), "v2 at 08:15:00Z");
    check_text(last_job(&w, a, "app", "h2"), "v2 at 08:16:00Z");
    arena_free(a);
    world_close(&w);
}

/* Of app the next group has nothing to do but what was skipped, and it has its turn when base is
 * done, whose group is another rule's. */
static void a_group_in_the_queue_waits_for_the_one_of_another_rule(void **state)
{
    (void)state;
    world w;
    arena *a = arena_new(0);
    open_world(&w, "  - deploymentBracket: {deploymentSelector: 'deployment.name == \"base\"', "
                   "readinessMode: immediate}\n"
                   "  - deploymentBracket: {deploymentSelector: 'deployment.name == \"app\"', "
                   "readinessMode: immediate}\n");
    plan(&w, "base", NULL, HOUR, 0);
    put_host(&w, "h1", "app: 'yes', base: 'yes'");
    publish(&w, "base", "v1");
    world_at(&w, "2026-03-01T08:10:00Z");
    publish(&w, "app", "v1");
    on_h1(&w, ACT_SKIP, "app");
    on_h1(&w, ACT_RETRY, "app");
    check_text(reasons_at(&w, a, "app", "h1"), "bracket:complete base");
    world_at(&w, "2026-03-01T09:10:00Z");
    check_text(last_job(&w, a, "app", "h1"), "v1 at 09:00:00Z");
    arena_free(a);
    world_close(&w);
}

/* tool has failed, and app waits for base, which is under way. The next group is ready: it goes on
 * with app when base has ended, whatever becomes of tool. */
static void whom_a_failed_group_never_came_to_waits_in_the_next(void **state)
{
    (void)state;
    world w;
    arena *a = arena_new(0);
    open_world(&w, "  - deploymentBracket: {deploymentSelector: 'true', readinessMode: "
                   "immediate}\n" BASE_FIRST);
    plan(&w, "base", NULL, HOUR, 0);
    plan(&w, "tool", NULL, 60, -1);
    put_host(&w, "h1", "app: 'yes', base: 'yes', tool: 'yes'");
    world_act(&w, (fact_act){.act = ACT_PAUSE, .change = STR("app")});
    publish(&w, "app", "v1");
    publish(&w, "base", "v1");
    publish(&w, "tool", "v1");
    world_act(&w, (fact_act){.act = ACT_RESUME, .change = STR("app")});
    world_at(&w, "2026-03-01T08:10:00Z");
    check_text(reasons_at(&w, a, "app", "h1"), "failed:retry tool; dependency:complete base");
    publish(&w, "app", "v2");
    check_text(reasons_at(&w, a, "app", "h1"), "bracket:complete base");
    world_at(&w, "2026-03-01T09:10:00Z");
    check_text(last_job(&w, a, "app", "h1"), "v2 at 09:00:00Z");
    arena_free(a);
    world_close(&w);
}

/* And if one is collected that has nothing of app it takes app along. */
static void the_next_group_takes_along_whom_a_failed_one_never_came_to(void **state)
{
    (void)state;
    world w;
    arena *a = arena_new(0);
    open_world(&w, COLLECTED("queue") BASE_FIRST);
    plan(&w, "base", NULL, 60, -1);
    put_host(&w, "h1", "app: 'yes', base: 'yes', tool: 'yes'");
    publish(&w, "app", "v1");
    publish(&w, "base", "v1");
    world_at(&w, "2026-03-01T08:10:00Z");
    check_text(reasons_at(&w, a, "app", "h1"), "dependency:complete base");
    publish(&w, "tool", "v1");
    check_text(reasons_at(&w, a, "app", "h1"), "dependency:complete base @01T08:15:00Z");
    world_at(&w, "2026-03-01T08:20:00Z");
    check_text(last_job(&w, a, "app", "h1"), "v1 at 08:15:00Z");
    arena_free(a);
    world_close(&w);
}

/* app was skipped in a group that failed, and the next one collects what is new of base: app is all
 * that it lacks. */
static void what_was_skipped_completes_what_is_collected(void **state)
{
    (void)state;
    world w;
    arena *a = arena_new(0);
    open_world(&w, "  - deploymentBracket: {deploymentSelector: 'true', readinessMode: "
                   "wait_for_all, readinessWindowSeconds: 600}\n" BASE_FIRST);
    plan(&w, "base", NULL, 60, 1);
    put_host(&w, "h1", "app: 'yes', base: 'yes'");
    publish(&w, "app", "v1");
    publish(&w, "base", "v1");
    world_at(&w, "2026-03-01T08:10:00Z");
    on_h1(&w, ACT_SKIP, "app");
    publish(&w, "base", "v2");
    check_text(reasons_at(&w, a, "app", "h1"), "skipped:retry app");
    on_h1(&w, ACT_RETRY, "app");
    check_text(last_job(&w, a, "base", "h1"), "v2 at 08:10:00Z");
    world_at(&w, "2026-03-01T08:15:00Z");
    check_text(last_job(&w, a, "app", "h1"), "v1 at 08:11:00Z");
    arena_free(a);
    world_close(&w);
}

/* v1 has failed on h1, where v2 was skipped: to retry the one takes up the other, too, and that
 * comes when it is its turn. */
static void a_retry_takes_up_what_was_skipped(void **state)
{
    (void)state;
    world w;
    arena *a = arena_new(0);
    open_world(&w, "  - gradualRollout: {rolloutType: linear, timeScaleInterval: 1800}\n");
    plan(&w, "app", "h1", 60, 1);
    put_host(&w, "h1", "app: 'yes'");
    put_host(&w, "h2", "app: 'yes'");
    world_act(&w, (fact_act){.act = ACT_PAUSE, .change = STR("app")});
    publish(&w, "app", "v1");
    world_at(&w, "2026-03-01T08:40:00Z");
    publish(&w, "app", "v2");
    on_h1(&w, ACT_SKIP, "app");
    world_act(&w, (fact_act){.act = ACT_RESUME, .change = STR("app")});
    world_at(&w, "2026-03-01T08:50:00Z");
    check_text(reasons_at(&w, a, "app", "h1"), "skipped:retry app; rollout:time @01T09:10:00Z");
    on_h1(&w, ACT_RETRY, "app");
    world_at(&w, "2026-03-01T09:20:00Z");
    check_text(last_job(&w, a, "app", "h1"), "v2 at 09:10:00Z");
    arena_free(a);
    world_close(&w);
}

/* tool has failed and is tried again in the present group. The next one needs it, too, and waits
 * for the present one: that is all there is to say. */
static void who_is_to_be_complete_need_not_be_tried_again(void **state)
{
    (void)state;
    world w;
    arena *a = arena_new(0);
    open_world(&w, "  - deploymentBracket: {deploymentSelector: 'true', readinessMode: immediate, "
                   "postSelector: 'deployment.name == \"tool\"'}\n"
                   "  - retry: {maxRetries: 1, backoffSeconds: 600}\n");
    plan(&w, "tool", NULL, 60, 1);
    put_host(&w, "h1", "app: 'yes', tool: 'yes'");
    publish(&w, "app", "v1");
    world_at(&w, "2026-03-01T08:05:00Z");
    publish(&w, "app", "v2");
    check_text(reasons_at(&w, a, "app", "h1"), "bracket:complete tool");
    world_at(&w, "2026-03-01T08:20:00Z");
    check_text(last_job(&w, a, "app", "h1"), "v2 at 08:13:00Z");
    arena_free(a);
    world_close(&w);
}

/* But what is collected and may not come yet opens nothing: app waits for the group that failed. */
static void what_may_not_come_yet_ends_no_group(void **state)
{
    (void)state;
    world w;
    arena *a = arena_new(0);
    open_world(&w, "  - deploymentBracket: {deploymentSelector: 'true', readinessMode: "
                   "immediate}\n  - anyApproval: {minApprovals: 1}\n" BASE_FIRST);
    plan(&w, "base", NULL, 60, -1);
    put_host(&w, "h1", "app: 'yes', base: 'yes'");
    world_act(&w, (fact_act){.act = ACT_HALT, .target = STR("h1")});
    publish(&w, "app", "v1");
    publish(&w, "base", "v1");
    world_act(&w, (fact_act){.act = ACT_APPROVE, .version = STR("app-v1"), .who = STR("ann")});
    world_act(&w, (fact_act){.act = ACT_APPROVE, .version = STR("base-v1"), .who = STR("ann")});
    world_act(&w, (fact_act){.act = ACT_RESUME, .target = STR("h1")});
    world_at(&w, "2026-03-01T08:10:00Z");
    on_h1(&w, ACT_SKIP, "app");
    publish(&w, "base", "v3");
    check_text(reasons_at(&w, a, "app", "h1"), "skipped:retry app; bracket:complete base");
    arena_free(a);
    world_close(&w);
}

/* app failed, would be tried again at 08:16, and was skipped: to retry it waits for no time. */
static void a_retry_by_a_person_waits_for_no_time(void **state)
{
    (void)state;
    world w;
    arena *a = arena_new(0);
    open_world(&w, COLLECTED("queue") "  - retry: {maxRetries: 1, backoffSeconds: 600}\n");
    plan(&w, "app", NULL, 60, 1);
    put_host(&w, "h1", "app: 'yes'");
    publish(&w, "app", "v1");
    world_at(&w, "2026-03-01T08:10:00Z");
    check_text(reasons_at(&w, a, "app", "h1"), "retry:time app @01T08:16:00Z");
    on_h1(&w, ACT_SKIP, "app");
    check_text(reasons_at(&w, a, "app", "h1"), "skipped:retry app");
    arena_free(a);
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_next_group_takes_the_place_over),
        cmocka_unit_test(the_next_group_waits_for_nobody_who_failed),
        cmocka_unit_test(what_was_skipped_ends_a_group_that_failed),
        cmocka_unit_test(what_was_skipped_joins_a_group_that_executes),
        cmocka_unit_test(what_a_group_passed_over_waits_for_it),
        cmocka_unit_test(what_is_collected_waits_for_whoever_runs),
        cmocka_unit_test(what_is_collected_ends_a_group_that_has_not_begun),
        cmocka_unit_test(a_hook_that_failed_runs_in_the_next_group),
        cmocka_unit_test(a_member_that_leaves_lifts_no_halt),
        cmocka_unit_test(a_group_in_the_queue_waits_for_the_one_of_another_rule),
        cmocka_unit_test(whom_a_failed_group_never_came_to_waits_in_the_next),
        cmocka_unit_test(the_next_group_takes_along_whom_a_failed_one_never_came_to),
        cmocka_unit_test(what_was_skipped_completes_what_is_collected),
        cmocka_unit_test(a_retry_takes_up_what_was_skipped),
        cmocka_unit_test(who_is_to_be_complete_need_not_be_tried_again),
        cmocka_unit_test(what_may_not_come_yet_ends_no_group),
        cmocka_unit_test(a_retry_by_a_person_waits_for_no_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
