/* SPDX-License-Identifier: Apache-2.0 */
/* Stories of release targets that random worlds told first: each is the smallest world in which the
 * engine once went wrong. */
#include "support/check.h"

#include "support/world.h"

#define API "apiVersion: drover.dev/v1alpha1\n"

/* ---- a small fleet: drain, app, base, undrain on hosts ---- */

static const char *const changes[] = {"drain", "app", "base", "undrain"};

static void put_host(world *w, const char *name, const char *labels)
{
    world_apply(w,
                API
                "kind: Resource\nmetadata: {name: %s, labels: {env: prod, %s}}\nspec: {kind: host, "
                "version: v1}\nstatus: {releases: [{deployment: drain, version: v1}, "
                "{deployment: app, version: v1}, {deployment: base, version: v1}, "
                "{deployment: undrain, version: v1}]}\n",
                name, labels);
}

static void publish(world *w, const char *change, const char *tag)
{
    world_apply(w,
                API "kind: Version\nmetadata: {name: %s-%s, creationTimestamp: '%s'}\nspec: "
                    "{deployment: %s, tag: %s}\n",
                change, tag, time_at(w->now), change, tag);
}

static void put_rules(world *w, const char *rules)
{
    world_apply(w,
                API "kind: RolloutPolicy\nmetadata: {name: p}\nspec:\n  selector: 'true'\n  "
                    "rules:\n%s",
                rules);
}

static void put_deployment(world *w, const char *name, const char *where)
{
    world_apply(w,
                API "kind: Deployment\nmetadata: {name: %s}\nspec: {resourceSelector: '%s', job: "
                    "{pull: {}}}\n",
                name, where);
}

/* Everything runs v1, published long ago. */
static void open_fleet(world *w, const char *rules)
{
    world_open(w, "2026-03-01T08:00:00Z");
    world_apply(w, API "kind: Environment\nmetadata: {name: prod}\nspec: {resourceSelector: "
                       "'resource.metadata[\"env\"] != \"staging\"'}\n");
    for (size_t i = 0; i < COUNT_OF(changes); i++)
        put_deployment(w, changes[i], "true");
    put_rules(w, rules);
    for (size_t i = 0; i < COUNT_OF(changes); i++)
        publish(w, changes[i], "v1");
    world_until(w, w->now + HOUR);
}

/* "change=version ..." of a host, in the order of the starts; all hosts with their names. */
static str story(const world *w, arena *a, const char *host)
{
    str text = STR_EMPTY;
    for (size_t i = 0; i < w->jobs.len; i++) {
        const world_job *j = &w->jobs.at[i];
        if (host && strcmp(j->resource, host) != 0)
            continue;
        text = arena_printf(a, "%.*s%s%s%s%s=%s%s%s", STR_ARG(text), text.len ? " " : "",
                            host ? "" : j->resource, host ? "" : ":", j->deployment, j->version,
                            j->role == ROLE_ROLLBACK ? "!" : "", j->failed ? "(failed)" : "");
    }
    return text;
}

static void fails(world *w, const char *change, int times)
{
    assert_true(vec_push(&w->plans, (world_plan){change, NULL, 60, times, false, false}));
}

#define HOOKS                                                                                      \
    "preSelector: 'deployment.name == \"drain\"', postSelector: 'deployment.name == \"undrain\"'"
#define BRACKET(more)                                                                              \
    "  - deploymentBracket: {deploymentSelector: 'true', readinessMode: immediate, " HOOKS more    \
    "}\n"

/* ---- groups and who is in them ---- */

/* The drain fails, and then the host needs no drain any more: the group goes on without it. */
static void who_failed_has_left(void **state)
{
    (void)state;
    world w;
    arena *a = arena_new(0);
    open_fleet(&w, BRACKET(""));
    put_deployment(&w, "drain", "resource.metadata[\"bare\"] != \"all\"");
    put_host(&w, "h", "bare: none");
    fails(&w, "drain", -1);
    publish(&w, "app", "v2");
    world_until(&w, w.now + HOUR);
    check_text(story(&w, a, "h"), "drain=v1(failed)");
    check_text(reasons_at(&w, a, "app", "h"), "bracket:complete drain");
    put_host(&w, "h", "bare: all");
    world_until(&w, INT64_MAX);
    check_text(story(&w, a, "h"), "drain=v1(failed) app=v2 undrain=v1");
    arena_free(a);
    world_close(&w);
}

/* A second group joins the first; its "current versions" are those that the first one brings. */
static void current_is_what_the_group_brings(void **state)
{
    (void)state;
    world w;
    arena *a = arena_new(0);
    open_fleet(&w, BRACKET(", unchangedMemberStrategy: redeploy_current, overlapStrategy: merge"));
    put_host(&w, "h", "a: b");
    publish(&w, "app", "v2");
    world_until(&w, w.now + 90);
    check_text(story(&w, a, "h"), "drain=v1 app=v2 base=v1");
    publish(&w, "base", "v2");
    world_until(&w, INT64_MAX);
    check_text(story(&w, a, "h"), "drain=v1 app=v2 base=v1 app=v2 base=v2 undrain=v1");
    check_text(view_at(&w, "app", "h").current, "v2");
    check_text(view_at(&w, "base", "h").current, "v2");
    arena_free(a);
    world_close(&w);
}

/* A newer version has joined and not run yet when all go back: it is not what was rolled back. */
static void what_never_ran_is_not_rolled_back(void **state)
{
    (void)state;
    world w;
    arena *a = arena_new(0);
    open_fleet(&w, BRACKET(", overlapStrategy: merge, rollbackStrategy: all_members"));
    put_host(&w, "h", "a: b");
    assert_true(vec_push(&w.plans, (world_plan){"base", NULL, 50, 1, false, false}));
    publish(&w, "app", "v2");
    publish(&w, "base", "v2");
    world_until(&w, w.now + 90);
    publish(&w, "app", "v3");
    world_until(&w, INT64_MAX);
    check_text(story(&w, a, "h"), "drain=v1 app=v2 base=v2(failed) base=v1! app=v1! undrain=v1 "
                                  "drain=v1 app=v3 undrain=v1");
    check_text(reasons_at(&w, a, "base", "h"), "rolledBack:retry base");
    arena_free(a);
    world_close(&w);
}

/* A hook that the running group has not run cannot join it in the middle: the next group waits. */
static void a_new_hook_does_not_join(void **state)
{
    (void)state;
    world w;
    arena *a = arena_new(0);
    open_fleet(&w, BRACKET(", overlapStrategy: merge"));
    put_deployment(&w, "drain", "resource.metadata[\"bare\"] != \"all\"");
    put_host(&w, "h", "bare: all");
    publish(&w, "app", "v2");
    put_host(&w, "h", "bare: none");
    publish(&w, "base", "v2");
    world_until(&w, INT64_MAX);
    check_text(story(&w, a, "h"), "app=v2 undrain=v1 drain=v1 base=v2 undrain=v1");
    arena_free(a);
    world_close(&w);
}

/* The bracket is taken from app while its group drains the host: app still waits for its drain,
 * and a halt on the way is lifted for it too. */
static void begun_groups_keep_their_members(void **state)
{
    (void)state;
    world w;
    arena *a = arena_new(0);
    open_fleet(&w, BRACKET(""));
    put_host(&w, "h", "a: b");
    publish(&w, "app", "v2");
    world_until(&w, w.now + 30);
    put_rules(&w, "  - deploymentBracket: {deploymentSelector: 'deployment.name != \"app\"', "
                  "readinessMode: immediate, " HOOKS "}\n");
    check_text(story(&w, a, "h"), "drain=v1");
    check_text(reasons_at(&w, a, "app", "h"), "bracket:complete drain");
    world_act(&w, (fact_act){.act = ACT_HALT, .target = STR("h")});
    world_until(&w, w.now + HOUR);
    check_text(story(&w, a, "h"), "drain=v1");
    world_act(&w, (fact_act){.act = ACT_RESUME, .target = STR("h")});
    world_until(&w, INT64_MAX);
    check_text(story(&w, a, "h"), "drain=v1 app=v2 undrain=v1");
    arena_free(a);
    world_close(&w);
}

/* A bypass makes the group lock at once, but not without a version for its hook. */
static void a_bypassed_bracket_says_what_it_lacks(void **state)
{
    (void)state;
    world w;
    arena *a = arena_new(0);
    open_fleet(&w, "  - deploymentBracket: {deploymentSelector: 'true', readinessWindowSeconds: "
                   "600, preSelector: 'deployment.name == \"prepare\"'}\n");
    put_deployment(&w, "prepare", "true");
    put_host(&w, "h", "a: b");
    publish(&w, "app", "v2");
    world_act(&w, (fact_act){.act = ACT_BYPASS,
                             .rule = STR("p/deploymentBracket/0"),
                             .version = STR("app-v2")});
    check_text(reasons_at(&w, a, "app", "h"), "bracket:publish prepare");
    publish(&w, "prepare", "v1");
    world_until(&w, INT64_MAX);
    check_text(story(&w, a, "h"), "prepare=v1 app=v2");
    arena_free(a);
    world_close(&w);
}

/* base fails for good and is about to go back: app, which depends on it, waits until it has. */
static void what_goes_back_is_not_in_place(void **state)
{
    (void)state;
    world w;
    arena *a = arena_new(0);
    open_fleet(&w, "  - rollback: {onJobStatuses: [failure]}\n  - deploymentDependency: "
                   "{dependsOn: 'deployment.name == \"base\"', appliesTo: 'deployment.name == "
                   "\"app\"'}\n");
    put_host(&w, "h", "a: b");
    fails(&w, "base", 1);
    publish(&w, "base", "v2");
    publish(&w, "app", "v2");
    world_until(&w, w.now + 70);
    check_text(story(&w, a, "h"), "base=v2(failed) base=v1!");
    world_until(&w, INT64_MAX);
    check_text(story(&w, a, "h"), "base=v2(failed) base=v1! app=v2");
    arena_free(a);
    world_close(&w);
}

/* base cannot even go back; whoever skips it has said that it is well as it is. */
static void a_skip_ends_a_failed_rollback(void **state)
{
    (void)state;
    world w;
    arena *a = arena_new(0);
    open_fleet(&w, "  - rollback: {onJobStatuses: [failure]}\n");
    put_host(&w, "h", "a: b");
    publish(&w, "base", "v2");
    for (int i = 0; i < 2; i++) {
        fact f = {.kind = FACT_JOB,
                  .job = {.deployment = STR("base"),
                          .environment = STR("prod"),
                          .resource = STR("h"),
                          .job = job_of(&w, "base", "h", (size_t)i)->number,
                          .outcome = OUTCOME_FAILED}};
        world_step(&w, &f, 1);
    }
    check_text(reasons_at(&w, a, "base", "h"), "failed:retry base");
    world_act(&w, (fact_act){.act = ACT_SKIP, .change = STR("base"), .target = STR("h")});
    check_text(reasons_at(&w, a, "base", "h"), "rolledBack:retry base");
    arena_free(a);
    world_close(&w);
}

/* ---- environments ---- */

/* The only hook on a staging host that has nothing else never runs: production does not wait for
 * it. */
static void a_hook_without_work_holds_nobody(void **state)
{
    (void)state;
    world w;
    arena *a = arena_new(0);
    open_fleet(&w, BRACKET(""));
    world_apply(&w, API "kind: Environment\nmetadata: {name: staging}\nspec: {resourceSelector: "
                        "'resource.metadata[\"env\"] == \"staging\"'}\n");
    world_apply(&w, API "kind: RolloutPolicy\nmetadata: {name: q}\nspec:\n  selector: "
                        "'environment.name == \"prod\"'\n  rules:\n  - environmentProgression: "
                        "{dependsOnEnvironmentSelector: 'environment.name == \"staging\"'}\n");
    put_deployment(&w, "app", "resource.metadata[\"idle\"] != \"all\"");
    put_deployment(&w, "base", "resource.metadata[\"idle\"] != \"all\"");
    put_deployment(&w, "drain", "resource.metadata[\"idle\"] != \"all\"");
    const char *const hosts[] = {"p", "s", "t"};
    const char *const labels[] = {"env: prod, idle: none", "env: staging, idle: none",
                                  "env: staging, idle: all"};
    for (size_t i = 0; i < COUNT_OF(hosts); i++)
        world_apply(&w,
                    API "kind: Resource\nmetadata: {name: %s, labels: {%s}}\nspec: {kind: host}\n",
                    hosts[i], labels[i]);
    world_until(&w, INT64_MAX);
    check_text(story(&w, a, "s"), "drain=v1 app=v1 base=v1 undrain=v1");
    check_text(story(&w, a, "t"), "");
    check_text(story(&w, a, "p"), "drain=v1 app=v1 base=v1 undrain=v1");
    arena_free(a);
    world_close(&w);
}

/* ---- slots ---- */

/* Whichever queue a host's changes stand in, they start together when it gets its slots. */
static void one_host_after_the_other(void **state)
{
    (void)state;
    world w;
    arena *a = arena_new(0);
    open_fleet(&w,
               "  - resourceConcurrency: {groupSelector: 'true', limitType: count, limitValue: 2}\n"
               "  - resourceConcurrency: {groupSelector: 'resource.metadata[\"colour\"] == "
               "\"red\"', limitType: count, limitValue: 1}\n");
    const char *const names[] = {"h1", "h2", "h3", "h4"};
    const char *const labels[] = {"colour: red", "colour: red", "colour: blue", "colour: blue"};
    for (size_t i = 0; i < COUNT_OF(names); i++)
        put_host(&w, names[i], labels[i]);
    publish(&w, "app", "v2");
    publish(&w, "base", "v2");
    world_until(&w, INT64_MAX);
    check_text(story(&w, a, NULL),
               "h1:app=v2 h3:app=v2 h1:base=v2 h3:base=v2 h2:app=v2 h2:base=v2 h4:app=v2 "
               "h4:base=v2");
    arena_free(a);
    world_close(&w);
}

/* h2 has the only place among the bases and needs the only slot; h1 has the slot and would need the
 * place: it gives the slot back. */
static void no_limit_waits_for_another(void **state)
{
    (void)state;
    world w;
    arena *a = arena_new(0);
    open_fleet(&w, "  - resourceConcurrency: {groupSelector: 'true', limitType: count, limitValue: "
                   "1}\n  - deploymentPolicy: {default: {budget: {count: 1}, strategy: {fixed: "
                   "{initialBatch: 1}}}}\n");
    put_host(&w, "h1", "a: b");
    put_host(&w, "h2", "a: b");
    publish(&w, "app", "v2");
    world_act(&w, (fact_act){.act = ACT_HALT, .target = STR("h1")});
    publish(&w, "base", "v2");
    world_act(&w, (fact_act){.act = ACT_RESUME, .target = STR("h1")});
    check_text(story(&w, a, NULL), "h1:app=v2");
    check_text(reasons_at(&w, a, "base", "h1"), "batch:complete h2");
    check_text(reasons_at(&w, a, "base", "h2"), "concurrency:complete h1");
    world_until(&w, INT64_MAX);
    check_text(story(&w, a, NULL), "h1:app=v2 h2:app=v2 h2:base=v2 h1:base=v2");
    arena_free(a);
    world_close(&w);
}

/* A slot is not overdue while its group works, be it on what the slot's policy does not name. */
static void a_working_group_is_not_overdue(void **state)
{
    (void)state;
    world w;
    arena *a = arena_new(0);
    open_fleet(&w,
               "  - deploymentBracket: {deploymentSelector: 'true', readinessWindowSeconds: 60}\n");
    world_apply(&w, API "kind: RolloutPolicy\nmetadata: {name: q}\nspec:\n  selector: "
                        "'deployment.name == \"app\"'\n  rules:\n  - resourceConcurrency: "
                        "{groupSelector: 'true', limitType: count, limitValue: 1, "
                        "slotTimeoutSeconds: 300, onTimeout: quarantine}\n");
    put_host(&w, "h", "a: b");
    assert_true(vec_push(&w.plans, (world_plan){"base", NULL, HOUR, 0, false, false}));
    publish(&w, "app", "v2");
    publish(&w, "base", "v2");
    world_until(&w, INT64_MAX);
    check_text(story(&w, a, "h"), "app=v2 base=v2");
    assert_int_equal(view_at(&w, "base", "h").state, PLACEMENT_DONE);
    arena_free(a);
    world_close(&w);
}

/* A host that asks for its slot again has its time anew, also when it ran out before. */
static void a_late_host_has_its_time_anew(void **state)
{
    (void)state;
    world w;
    open_fleet(&w, "  - resourceConcurrency: {groupSelector: 'true', limitType: count, limitValue: "
                   "1, slotTimeoutSeconds: 600, onTimeout: hold}\n");
    put_host(&w, "h1", "a: b");
    put_host(&w, "h2", "a: b");
    world_act(&w, (fact_act){.act = ACT_CLAIM_SLOT, .target = STR("h1")});
    world_until(&w, w.now + HOUR);
    world_act(&w, (fact_act){.act = ACT_CLAIM_SLOT, .target = STR("h1")});
    assert_int_equal(world_next(&w), w.now + 10 * MINUTE);
    world_close(&w);
}

/* ---- batches ---- */

static bool find_compartment(void *context, const group_view *v)
{
    int64_t *batch = context;
    if (v->kind == GROUP_COMPARTMENT && str_eq(v->change, STR("app")))
        *batch = v->current_batch;
    return true;
}

#define ONE_BY_ONE "{default: {budget: {count: 1}, strategy: {fixed: {initialBatch: 1}}}}"

/* Whoever joins when all are done begins a rollout of its own, from batch 1. */
static void who_joins_late_begins_anew(void **state)
{
    (void)state;
    world w;
    open_fleet(&w, "  - deploymentPolicy: {default: {budget: {count: 1}, strategy: {fixed: "
                   "{initialBatch: 1}}}}\n");
    put_host(&w, "h1", "a: b");
    put_host(&w, "h2", "a: b");
    publish(&w, "app", "v2");
    world_until(&w, w.now + HOUR);
    int64_t batch = 0;
    engine_groups(w.engine, find_compartment, &batch);
    assert_int_equal(batch, 3);
    put_host(&w, "h3", "a: b");
    engine_groups(w.engine, find_compartment, &batch);
    assert_int_equal(batch, 1);
    world_until(&w, INT64_MAX);
    engine_groups(w.engine, find_compartment, &batch);
    assert_int_equal(batch, 2);
    world_close(&w);
}

/* What an engine saves that was restored from what this one saved, and looked at everything once.
 */
static buf saved_again(const world *w, str saved)
{
    err error;
    engine_settings settings = {.start_ms = w->now * 1000};
    engine *e = engine_new(&settings, &error);
    assert_non_null(e);
    for (size_t i = 0; i < w->texts.len; i++)
        for (size_t k = 0; k < w->texts.at[i].objects->len; k++) {
            const object *o = &w->texts.at[i].objects->at[k];
            fact f = {.kind = FACT_DOCUMENT, .document = o};
            if (o->kind == KIND_RESOURCE)
                f = (fact){
                    .kind = FACT_TARGET,
                    .target = {.kind = TARGET_RESOURCE, .name = o->metadata->name, .document = o}};
            assert_true(engine_take(e, &f, 1, w->now * 1000));
        }
    check_msg(engine_restore(e, saved, &error), "%s", error.text);
    decision_list out = {0};
    assert_true(engine_step(e, NULL, 0, w->now * 1000, &out));
    assert_int_equal(out.len, 0);
    vec_done(&out);
    buf again = BUF(LIMIT_TEXT_BYTES);
    assert_true(engine_save(e, &again));
    engine_free(e);
    return again;
}

/* A group goes on with members that have left its bracket; batches they are under now are not asked
 * for that, before a restart or after it. */
static void no_batch_for_a_group_that_was_left(void **state)
{
    (void)state;
    world w;
    arena *a = arena_new(0);
    open_fleet(&w, "  - deploymentBracket: {deploymentSelector: 'true', readinessMode: immediate, "
                   "unchangedMemberStrategy: redeploy_current}\n");
    world_apply(&w, API "kind: RolloutPolicy\nmetadata: {name: q}\nspec:\n  rules:\n  - retry: "
                        "{maxRetries: 2, backoffSeconds: 60}\n");
    put_host(&w, "h", "a: b");
    fails(&w, "app", 1);
    publish(&w, "base", "v2");
    put_rules(&w, "  - deploymentPolicy: " ONE_BY_ONE "\n");
    world_until(&w, w.now + 2 * MINUTE + MINUTE / 2);
    check_text(story(&w, a, "h"), "app=v1(failed) base=v2 drain=v1 undrain=v1 app=v1");
    buf saved = BUF(LIMIT_TEXT_BYTES);
    assert_true(engine_save(w.engine, &saved));
    buf again = saved_again(&w, buf_str(&saved));
    check_str(buf_str(&again), buf_str(&saved));
    buf_done(&saved);
    buf_done(&again);
    arena_free(a);
    world_close(&w);
}

/* ---- partitions ---- */

/* A newer version comes while the first host of a batch runs: its partition releases another host,
 * which needs the place in the batch that the first one kept. */
static void a_batch_gives_way_to_a_release(void **state)
{
    (void)state;
    world w;
    arena *a = arena_new(0);
    open_fleet(&w, "  - deploymentPolicy: " ONE_BY_ONE "\n"
                   "  - rolloutStrategy: {maxUnavailable: 1}\n");
    put_host(&w, "h1", "a: b");
    put_host(&w, "h2", "a: b");
    publish(&w, "app", "v2");
    world_until(&w, w.now + MINUTE + MINUTE / 2);
    check_text(story(&w, a, NULL), "h1:app=v2 h2:app=v2");
    publish(&w, "app", "v3");
    world_until(&w, INT64_MAX);
    check_text(story(&w, a, NULL), "h1:app=v2 h2:app=v2 h1:app=v3 h2:app=v3");
    arena_free(a);
    world_close(&w);
}

/* The same with version groups. */
static void a_batch_of_groups_gives_way_too(void **state)
{
    (void)state;
    world w;
    arena *a = arena_new(0);
    open_fleet(&w, "  - deploymentBracket: {deploymentSelector: 'true', readinessMode: immediate}\n"
                   "  - deploymentPolicy: " ONE_BY_ONE "\n"
                   "  - rolloutStrategy: {maxUnavailable: 1}\n");
    put_host(&w, "h1", "a: b");
    put_host(&w, "h2", "a: b");
    publish(&w, "app", "v2");
    world_until(&w, w.now + MINUTE + MINUTE / 2);
    check_text(story(&w, a, NULL), "h1:app=v2 h2:app=v2");
    publish(&w, "app", "v3");
    world_until(&w, INT64_MAX);
    check_text(story(&w, a, NULL), "h1:app=v2 h2:app=v2 h1:app=v3 h2:app=v3");
    arena_free(a);
    world_close(&w);
}

/* h2 failed in a partition that is behind that of h1 now, and h1 may not start beside it: a retry
 * needs no other pass. */
static void a_retry_needs_no_other_pass(void **state)
{
    (void)state;
    world w;
    arena *a = arena_new(0);
    open_fleet(&w, "  - rolloutStrategy: {maxUnavailable: 1}\n");
    put_host(&w, "h1", "a: b");
    put_host(&w, "h2", "a: b");
    world_act(
        &w,
        (fact_act){.act = ACT_FREEZE, .name = STR("f"), .selector = STR("resource.name == 'h1'")});
    fails(&w, "app", 1);
    publish(&w, "app", "v2");
    world_until(&w, w.now + HOUR);
    check_text(story(&w, a, NULL), "h2:app=v2(failed)");
    put_rules(&w, "  - rolloutStrategy: {maxUnavailable: 0, autoPartitionThreshold: 1, "
                  "autoPartitionSize: 1}\n");
    world_act(&w, (fact_act){.act = ACT_THAW, .name = STR("f")});
    check_text(reasons_at(&w, a, "app", "h1"), "unavailable:complete h2");
    world_act(&w, (fact_act){.act = ACT_RETRY, .target = STR("h2")});
    world_until(&w, INT64_MAX);
    check_text(story(&w, a, NULL), "h2:app=v2(failed) h2:app=v2 h1:app=v2");
    arena_free(a);
    world_close(&w);
}

/* Members of a group are under different rules; these are asked in one order all the same. */
static void rules_of_a_group_are_asked_in_one_order(void **state)
{
    (void)state;
    world w;
    arena *a = arena_new(0);
    open_fleet(&w,
               "  - deploymentBracket: {deploymentSelector: 'true', readinessWindowSeconds: 60}\n"
               "  - rolloutStrategy: {maxUnavailable: 1}\n");
    world_apply(&w, API "kind: RolloutPolicy\nmetadata: {name: o}\nspec:\n  selector: "
                        "'deployment.name == \"app\"'\n  rules:\n  - rolloutStrategy: "
                        "{maxUnavailable: 1}\n");
    put_host(&w, "h", "a: b");
    publish(&w, "app", "v2");
    publish(&w, "base", "v2");
    world_until(&w, INT64_MAX);
    check_text(story(&w, a, "h"), "app=v2 base=v2");
    arena_free(a);
    world_close(&w);
}

/* Who is in no partition and goes back to an older version says what holds that. */
static void a_rollback_outside_of_partitions_has_a_reason(void **state)
{
    (void)state;
    world w;
    arena *a = arena_new(0);
    open_fleet(&w, "  - rolloutStrategy: {maxUnavailable: 1, partitions: [{name: reds, "
                   "clusterSelector: {matchLabels: {colour: red}}}]}\n");
    put_host(&w, "h", "colour: red");
    publish(&w, "app", "v2");
    world_until(&w, w.now + HOUR);
    put_rules(&w, "  - rolloutStrategy: {maxUnavailable: 1, partitions: [{name: blues, "
                  "clusterSelector: {matchLabels: {colour: blue}}}]}\n");
    world_act(&w, (fact_act){.act = ACT_HALT, .change = STR("app")});
    world_act(&w, (fact_act){.act = ACT_ROLLBACK, .change = STR("app"), .target = STR("h")});
    check_text(reasons_at(&w, a, "app", "h"), "halted:resume app");
    world_act(&w, (fact_act){.act = ACT_RESUME, .change = STR("app")});
    world_until(&w, INT64_MAX);
    check_text(story(&w, a, "h"), "app=v2 app=v1!");
    arena_free(a);
    world_close(&w);
}

/* Who failed and is in no partition is not tried again: it is excluded. */
static void no_retry_outside_of_partitions(void **state)
{
    (void)state;
    world w;
    arena *a = arena_new(0);
    open_fleet(&w, "  - retry: {maxRetries: 2, backoffSeconds: 3600}\n");
    put_host(&w, "h", "colour: red");
    fails(&w, "app", 1);
    publish(&w, "app", "v2");
    world_until(&w, w.now + 5 * MINUTE);
    put_rules(&w, "  - retry: {maxRetries: 2, backoffSeconds: 60}\n"
                  "  - rolloutStrategy: {maxUnavailable: 1, partitions: [{name: blues, "
                  "clusterSelector: {matchLabels: {colour: blue}}}]}\n");
    world_until(&w, w.now + HOUR);
    check_text(story(&w, a, "h"), "app=v2(failed)");
    assert_int_equal(view_at(&w, "app", "h").state, PLACEMENT_EXCLUDED);
    check_text(reasons_at(&w, a, "app", "h"), "noPartition:label h");
    arena_free(a);
    world_close(&w);
}

/* The group of h1 is released, has its place and waits for a slot when its only member is skipped:
 * it gives all of it back. */
static void a_release_goes_with_the_place(void **state)
{
    (void)state;
    world w;
    arena *a = arena_new(0);
    open_fleet(&w, "  - deploymentBracket: {deploymentSelector: 'true', readinessMode: immediate}\n"
                   "  - resourceConcurrency: {groupSelector: 'true', limitType: count, limitValue: "
                   "0}\n  - deploymentPolicy: " ONE_BY_ONE "\n"
                   "  - rolloutStrategy: {maxUnavailable: 1}\n");
    put_host(&w, "h1", "a: b");
    put_host(&w, "h2", "a: b");
    publish(&w, "app", "v2");
    check_text(reasons_at(&w, a, "app", "h2"), "batch:complete h1; concurrency:edit p");
    world_act(&w, (fact_act){.act = ACT_SKIP, .change = STR("app"), .target = STR("h1")});
    check_text(reasons_at(&w, a, "app", "h2"), "concurrency:edit p");
    arena_free(a);
    world_close(&w);
}

/* A member goes back while its group, with a newer version of it, is released and waits for its
 * batch: the group waits for that, too, and keeps what it was given. */
static void a_rollback_beside_a_group(void **state)
{
    (void)state;
    world w;
    arena *a = arena_new(0);
    open_fleet(&w, "  - deploymentBracket: {deploymentSelector: 'true', readinessMode: immediate}\n"
                   "  - deploymentPolicy: " ONE_BY_ONE "\n"
                   "  - rolloutStrategy: {maxUnavailable: 2}\n");
    put_host(&w, "h1", "a: b");
    put_host(&w, "h2", "a: b");
    publish(&w, "app", "v2");
    world_until(&w, w.now + HOUR);
    world_act(&w, (fact_act){.act = ACT_HALT, .change = STR("app")});
    world_act(&w, (fact_act){.act = ACT_ROLLBACK, .change = STR("app"), .target = STR("h2")});
    publish(&w, "app", "v3");
    world_act(&w, (fact_act){.act = ACT_RESUME, .change = STR("app")});
    check_text(story(&w, a, NULL), "h1:app=v2 h2:app=v2 h1:app=v3 h2:app=v1!");
    world_until(&w, INT64_MAX);
    check_text(story(&w, a, "h2"), "app=v2 app=v1! app=v3");
    arena_free(a);
    world_close(&w);
}

/* A limit comes while a group is about to go back: its members say that they wait for a slot. */
static void a_rollback_waits_for_a_slot(void **state)
{
    (void)state;
    world w;
    arena *a = arena_new(0);
    static const char limits[] =
        "  - deploymentBracket: {deploymentSelector: 'true', readinessWindowSeconds: 60, "
        "rollbackStrategy: all_members}\n"
        "  - resourceConcurrency: {groupSelector: 'true', limitType: count, limitValue: 0}\n";
    open_fleet(&w,
               "  - deploymentBracket: {deploymentSelector: 'true', readinessWindowSeconds: 60, "
               "rollbackStrategy: all_members}\n");
    put_host(&w, "h", "a: b");
    fails(&w, "app", 1);
    assert_true(vec_push(&w.plans, (world_plan){"base", NULL, 120, 0, false, false}));
    publish(&w, "app", "v2");
    publish(&w, "base", "v2");
    world_until(&w, w.now + 2 * MINUTE + MINUTE / 2);
    put_rules(&w, limits);
    world_until(&w, w.now + HOUR);
    check_text(reasons_at(&w, a, "base", "h"), "concurrency:edit p");
    arena_free(a);
    world_close(&w);
}

/* ---- documents that come back ---- */

/* The rules of a deployment that is deleted are edited; when it is back they hold for it. */
static void what_comes_back_finds_its_rules(void **state)
{
    (void)state;
    world w;
    arena *a = arena_new(0);
    open_fleet(&w,
               "  - deploymentDependency: {dependsOn: 'deployment.name == \"base\"', appliesTo: "
               "'deployment.name == \"app\"'}\n");
    put_host(&w, "h", "a: b");
    fails(&w, "base", -1);
    publish(&w, "base", "v2");
    world_until(&w, w.now + HOUR);
    world_delete(&w, KIND_DEPLOYMENT, "app");
    put_rules(&w, "  - deploymentDependency: {dependsOn: 'deployment.name == \"base\"', appliesTo: "
                  "'deployment.name == \"app\"'}\n");
    put_deployment(&w, "app", "true");
    publish(&w, "app", "v2");
    world_until(&w, w.now + HOUR);
    check_text(reasons_at(&w, a, "app", "h"), "dependency:complete base");
    arena_free(a);
    world_close(&w);
}

/* Who joins stands behind the others from then on, also while something holds it. */
static void who_joins_has_its_place_at_once(void **state)
{
    (void)state;
    world w;
    arena *a = arena_new(0);
    open_fleet(&w, "  - gradualRollout: {rolloutType: linear, timeScaleInterval: 600}\n");
    put_host(&w, "h1", "a: b");
    publish(&w, "app", "v2");
    world_until(&w, w.now + MINUTE);
    world_act(
        &w,
        (fact_act){.act = ACT_FREEZE, .name = STR("f"), .selector = STR("resource.name == 'h3'")});
    put_host(&w, "h3", "a: b");
    world_until(&w, w.now + MINUTE);
    put_host(&w, "h2", "a: b");
    world_until(&w, w.now + 15 * MINUTE);
    check_text(story(&w, a, NULL), "h1:app=v2");
    world_until(&w, w.now + 5 * MINUTE);
    check_text(story(&w, a, NULL), "h1:app=v2 h2:app=v2");
    arena_free(a);
    world_close(&w);
}

/* ---- reasons ---- */

/* The turn behind an approval is known: it is counted from the approval. */
static void a_turn_behind_an_approval_is_a_reason(void **state)
{
    (void)state;
    world w;
    arena *a = arena_new(0);
    open_fleet(&w, "  - anyApproval: {minApprovals: 1}\n"
                   "  - gradualRollout: {rolloutType: linear, timeScaleInterval: 60}\n");
    put_host(&w, "g", "a: b");
    put_host(&w, "h", "a: b");
    publish(&w, "app", "v2");
    str first = reasons_at(&w, a, "app", "g"), second = reasons_at(&w, a, "app", "h");
    bool swapped = first.len > second.len;
    check_text(swapped ? second : first, "approval:approve app-v2");
    check_text(swapped ? first : second, swapped ? "approval:approve app-v2; rollout:time h "
                                                   "@01T09:01:00Z"
                                                 : "approval:approve app-v2; rollout:time g "
                                                   "@01T09:01:00Z");
    arena_free(a);
    world_close(&w);
}

/* When the cooldown is over the window is closed again: the next one is what is waited for. */
static void a_window_that_closes_before_a_cooldown_ends(void **state)
{
    (void)state;
    world w;
    arena *a = arena_new(0);
    open_fleet(&w, "  - versionCooldown: {intervalSeconds: 6000}\n"
                   "  - deploymentWindow: {rrule: 'FREQ=HOURLY', durationMinutes: 30}\n");
    put_host(&w, "h", "a: b");
    publish(&w, "app", "v2");
    check_text(reasons_at(&w, a, "app", "h"),
               "cooldown:time @01T09:40:00Z; window:time @01T10:00:00Z");
    arena_free(a);
    world_close(&w);
}

/* What a hook lacks holds the whole group: each of its approvals is named. */
static void a_group_names_what_its_hooks_lack(void **state)
{
    (void)state;
    world w;
    arena *a = arena_new(0);
    open_fleet(&w, "  - anyApproval: {minApprovals: 1}\n"
                   "  - deploymentBracket: {deploymentSelector: 'true', readinessMode: immediate, "
                   "preSelector: 'deployment.name == \"prepare\"'}\n");
    put_deployment(&w, "prepare", "true");
    put_host(&w, "h", "a: b");
    publish(&w, "app", "v2");
    check_text(reasons_at(&w, a, "app", "h"), "approval:approve app-v2; bracket:publish prepare");
    publish(&w, "prepare", "v1");
    check_text(reasons_at(&w, a, "app", "h"),
               "approval:approve app-v2; approval:approve prepare-v1");
    arena_free(a);
    world_close(&w);
}

/* A version that is not selected needs no approval. */
static void what_does_not_matter_is_no_reason(void **state)
{
    (void)state;
    world w;
    arena *a = arena_new(0);
    open_fleet(&w, "  - versionSelector: {selector: 'version.tag != \"v2\"'}\n"
                   "  - anyApproval: {minApprovals: 1}\n");
    world_apply(&w, API "kind: Resource\nmetadata: {name: h, labels: {env: prod}}\nspec: {kind: "
                        "host, version: v1}\n");
    put_deployment(&w, "extra", "true");
    publish(&w, "extra", "v2");
    check_text(reasons_at(&w, a, "extra", "h"), "versionSelector:publish extra");
    arena_free(a);
    world_close(&w);
}

/* h1 is away from the policy's hosts when the version comes, and is the only one there when it is
 * back: the version comes in when it has soaked, as if h1 had never been away. */
static void who_comes_back_is_woken(void **state)
{
    (void)state;
    world w;
    open_fleet(&w, "  - retry: {maxRetries: 1}\n");
    world_apply(&w,
                API "kind: Environment\nmetadata: {name: staging}\nspec: {resourceSelector: "
                    "'resource.metadata[\"env\"] == \"staging\"'}\n---\n" API
                    "kind: RolloutPolicy\nmetadata: {name: q}\nspec:\n  selector: "
                    "'resource.metadata[\"zone\"] == \"a\"'\n  rules:\n  - "
                    "environmentProgression: {dependsOnEnvironmentSelector: 'environment.name "
                    "== \"staging\"', minimumSoakTimeMinutes: 5}\n---\n" API
                    "kind: Resource\nmetadata: {name: s1, labels: {env: staging}}\nspec: {kind: "
                    "host, version: v1}\n");
    put_host(&w, "h1", "zone: a");
    put_host(&w, "h1", "zone: b");
    world_until(&w, w.now + HOUR);
    world_act(&w, (fact_act){.act = ACT_HALT, .target = STR("h1")});
    publish(&w, "app", "v2");
    world_until(&w, w.now + 2 * MINUTE); /* s1 has it, and it soaks */
    put_host(&w, "h1", "zone: a");
    world_act(&w, (fact_act){.act = ACT_RESUME, .target = STR("h1")});
    world_at(&w, "2026-03-01T10:05:59Z");
    assert_null(job_of(&w, "app", "h1", 0));
    world_at(&w, "2026-03-01T10:06:00Z");
    check_time(job_of(&w, "app", "h1", 0)->start, "2026-03-01T10:06:00Z");
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_failed_has_left),
        cmocka_unit_test(current_is_what_the_group_brings),
        cmocka_unit_test(what_never_ran_is_not_rolled_back),
        cmocka_unit_test(a_new_hook_does_not_join),
        cmocka_unit_test(begun_groups_keep_their_members),
        cmocka_unit_test(a_bypassed_bracket_says_what_it_lacks),
        cmocka_unit_test(what_goes_back_is_not_in_place),
        cmocka_unit_test(a_skip_ends_a_failed_rollback),
        cmocka_unit_test(a_hook_without_work_holds_nobody),
        cmocka_unit_test(one_host_after_the_other),
        cmocka_unit_test(no_limit_waits_for_another),
        cmocka_unit_test(a_working_group_is_not_overdue),
        cmocka_unit_test(a_late_host_has_its_time_anew),
        cmocka_unit_test(who_joins_late_begins_anew),
        cmocka_unit_test(no_batch_for_a_group_that_was_left),
        cmocka_unit_test(a_batch_gives_way_to_a_release),
        cmocka_unit_test(a_batch_of_groups_gives_way_too),
        cmocka_unit_test(a_retry_needs_no_other_pass),
        cmocka_unit_test(rules_of_a_group_are_asked_in_one_order),
        cmocka_unit_test(a_rollback_outside_of_partitions_has_a_reason),
        cmocka_unit_test(no_retry_outside_of_partitions),
        cmocka_unit_test(a_release_goes_with_the_place),
        cmocka_unit_test(a_rollback_beside_a_group),
        cmocka_unit_test(a_rollback_waits_for_a_slot),
        cmocka_unit_test(what_comes_back_finds_its_rules),
        cmocka_unit_test(who_joins_has_its_place_at_once),
        cmocka_unit_test(a_turn_behind_an_approval_is_a_reason),
        cmocka_unit_test(a_window_that_closes_before_a_cooldown_ends),
        cmocka_unit_test(a_group_names_what_its_hooks_lack),
        cmocka_unit_test(what_does_not_matter_is_no_reason),
        cmocka_unit_test(who_comes_back_is_woken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
