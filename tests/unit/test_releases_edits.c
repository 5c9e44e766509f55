/* SPDX-License-Identifier: Apache-2.0 */
/* What changes while compartments of a RolloutPolicy are at work: another version lifts a stop and
 * lets batches begin anew, and a limit that shrinks stops starts, live or after a restart. */
#include "support/check.h"

#include "support/rows.h"
#include "support/world.h"

#define API "apiVersion: drover.dev/v1alpha1\n"
#define RULES API "kind: RolloutPolicy\nmetadata: {name: p}\nspec:\n  rules:\n"
#define PACE(strategy, more)                                                                       \
    "  - deploymentPolicy: {default: {budget: {count: 4}, strategy: {" strategy "}}" more "}\n"
#define STOPS "fixed: {initialBatch: 1, failureThreshold: 1}"
#define KEPT ", resetBatchStateOnCompletion: false"

/* ---- helpers ---- */

static buf told; /* sizes of the batches as they are judged, "!" for a halt, "|" for a reset */

static void take_batches(world *w)
{
    for (size_t i = 0; i < w->out.len; i++) {
        const decision *d = &w->out.at[i];
        if (d->kind == DECISION_JUDGE)
            buf_addf(&told, "%lld", (long long)d->size);
        if (d->kind == DECISION_JUDGE && d->erroring > 0)
            buf_addf(&told, "(%lld)", (long long)d->erroring);
        if (d->kind == DECISION_JUDGE)
            buf_addc(&told, ' ');
        bool of_pace = str_eq(d->group, STR("__default__")); /* a version group halts too */
        if (of_pace && (d->kind == DECISION_HALT || d->kind == DECISION_RESET))
            buf_addz(&told, d->kind == DECISION_HALT ? "! " : "| ");
    }
}

static void deploy(world *w, const char *name)
{
    world_apply(w,
                API "kind: Deployment\nmetadata: {name: %s}\nspec: {resourceSelector: 'true', job: "
                    "{pull: {}}}\n",
                name);
}

static void publish(world *w, const char *name, const char *tag)
{
    world_apply(w,
                API "kind: Version\nmetadata: {name: %s-%s, creationTimestamp: '%s'}\nspec: "
                    "{deployment: %s, tag: '%s'}\n",
                name, tag, time_at(w->now), name, tag);
}

static void open_fleet(world *w, int count, const char *rules)
{
    told = BUF(10000);
    world_open(w, "2026-03-01T08:00:00Z");
    w->after = take_batches;
    world_apply(w, API
                "kind: Environment\nmetadata: {name: prod}\nspec: {resourceSelector: 'true'}\n");
    deploy(w, "app");
    for (int k = 0; k < count; k++)
        world_apply(
            w, API "kind: Resource\nmetadata: {name: h%d}\nspec: {kind: host, version: v1}\n", k);
    world_apply(w, "%s", rules);
}

static void close_fleet(world *w)
{
    buf_done(&told);
    world_close(w);
}

static void fails(world *w, const char *host, bool yes)
{
    world_plan p = {.deployment = "app", .resource = host, .seconds = 60, .fail = yes ? -1 : 0};
    assert_true(vec_push(&w->plans, p));
}

static bool keep_group(void *context, const group_view *g)
{
    if (g->kind == GROUP_COMPARTMENT)
        *(group_view *)context = *g;
    return true;
}

static group_view group(const world *w)
{
    group_view g = {.matched = -1};
    engine_groups(w->engine, keep_group, &g);
    return g;
}

/* A new engine that reads what the old one saved. What is applied meanwhile it only ever sees as
 * it is in the end. */
static void restart(world *w, const char *applied, const char *left_out)
{
    err error;
    buf saved = BUF(1 << 20), cut = BUF(1 << 20);
    assert_true(engine_save(w->engine, &saved));
    engine_settings settings = {.start_ms = w->now * 1000};
    engine_free(w->engine);
    w->engine = engine_new(&settings, &error);
    assert_non_null(w->engine);
    if (applied) {
        loaded l = load_text("applied.yaml", str_of(applied));
        assert_true(l.good && vec_push(&w->texts, l));
    }
    for (size_t i = 0; i < w->texts.len; i++)
        for (size_t k = 0; k < w->texts.at[i].objects->len; k++) {
            const object *o = &w->texts.at[i].objects->at[k];
            fact f = {.kind = FACT_DOCUMENT, .document = o};
            if (o->kind == KIND_RESOURCE)
                f = (fact){
                    .kind = FACT_TARGET,
                    .target = {.kind = TARGET_RESOURCE, .name = o->metadata->name, .document = o}};
            assert_true(engine_take(w->engine, &f, 1, w->now * 1000));
        }
    buf_addc(&saved, 0);
    const char *at = left_out ? strstr(saved.ptr, left_out) : NULL;
    check_msg(!left_out || at, "%s is not saved", left_out);
    buf_add(&cut, (str){saved.ptr, at ? (size_t)(at - saved.ptr) : saved.len - 1});
    if (at)
        buf_addz(&cut, at + strlen(left_out));
    check_msg(engine_restore(w->engine, buf_str(&cut), &error), "%s", error.text);
    buf_done(&saved);
    buf_done(&cut);
    world_step(w, NULL, 0);
}

/* ---- another version ---- */

/* A6: in mid-rollout every compartment returns to batch 1; who is in flight is batch 1, and the
 * next is an initial one. */
static void a6_edit_as_a_rule(void **state)
{
    (void)state;
    world w;
    open_fleet(&w, 8, RULES PACE("exponential: {initialBatch: 1}", ""));
    publish(&w, "app", "1");
    world_at(&w, "2026-03-01T08:02:10Z");
    publish(&w, "app", "2");
    assert_int_equal(group(&w).current_batch, 1);
    world_until(&w, INT64_MAX);
    check_text(buf_str(&told), "1 2 | 4 1 2 1 ");
    assert_int_equal(group(&w).completed, 8);
    assert_int_equal(group(&w).current_batch, 5);
    check_text(str_of(job_of(&w, "app", "h3", 1)->version), "2");
    close_fleet(&w);
}

/* A4: publishing a fix lifts the stop, and failed ones are fresh. */
static void a6_edit_lifts_a_stop_as_a_rule(void **state)
{
    (void)state;
    static const struct {
        const char *rules, *told;
        int64_t current, completed;
    } rows[] = {{RULES PACE(STOPS, ""), "1(1) ! | 1 1 1 1 ", 5, 4},
                {RULES PACE(STOPS, KEPT), "1(1) ! 1 1 1 1 ", 6, 4}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        world w;
        open_fleet(&w, 4, rows[i].rules);
        fails(&w, "h0", true);
        publish(&w, "app", "1");
        world_until(&w, INT64_MAX);
        assert_true(group(&w).stopped);
        fails(&w, "h0", false);
        publish(&w, "app", "2");
        assert_false(group(&w).stopped);
        assert_int_equal(group(&w).consecutive_failures, 0);
        world_until(&w, INT64_MAX);
        check_text(buf_str(&told), rows[i].told);
        assert_int_equal(group(&w).current_batch, rows[i].current);
        assert_int_equal(group(&w).completed, rows[i].completed);
        close_fleet(&w);
    }
}

/* A6: counters that nobody clears count on: they are then of several rollouts. */
static void a6_edit_keeps_counters_that_are_kept(void **state)
{
    (void)state;
    world w;
    open_fleet(&w, 9, RULES PACE("exponential: {initialBatch: 1}", KEPT));
    publish(&w, "app", "1");
    world_at(&w, "2026-03-01T08:02:00Z");
    publish(&w, "app", "2");
    world_until(&w, INT64_MAX);
    check_text(buf_str(&told), "1 2 4 4 1 ");
    assert_int_equal(group(&w).completed, 12);
    assert_int_equal(group(&w).current_batch, 6);
    close_fleet(&w);
}

/* A version that is taken away, or that a policy no longer has, leaves other work behind. */
static void a6_withdrawal_lifts_a_stop(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        world w;
        open_fleet(&w, 4, RULES PACE(STOPS, ""));
        publish(&w, "app", "1");
        world_until(&w, INT64_MAX);
        fails(&w, "h1", true);
        publish(&w, "app", "2");
        world_until(&w, INT64_MAX);
        assert_true(group(&w).stopped);
        check_text(view_at(&w, "app", "h0").current, "2");
        if (i == 0)
            world_apply(&w, API "kind: Version\nmetadata: {name: app-2}\nspec: {deployment: app, "
                                "tag: '2', status: rejected}\n");
        else
            world_apply(&w, RULES PACE(STOPS, "") "  - versionSelector: {selector: 'version.tag == "
                                                  "\"1\"'}\n");
        assert_false(group(&w).stopped);
        world_until(&w, INT64_MAX);
        check_text(view_at(&w, "app", "h0").current, "1");
        close_fleet(&w);
    }
}

/* What gives nobody new work lifts nothing. */
static void a4_stop_stays_without_new_work(void **state)
{
    (void)state;
    world w;
    open_fleet(&w, 4, RULES PACE(STOPS, ""));
    publish(&w, "app", "0");
    world_until(&w, INT64_MAX);
    w.now++;
    fails(&w, "h0", true);
    publish(&w, "app", "1");
    world_until(&w, INT64_MAX);
    assert_true(group(&w).stopped);
    world_apply(&w, RULES PACE("fixed: {initialBatch: 2, failureThreshold: 1}", ""));
    world_apply(&w, API "kind: Resource\nmetadata: {name: h9}\nspec: {kind: host, version: v1}\n");
    world_apply(&w, API
                "kind: Version\nmetadata: {name: app-2}\nspec: {deployment: app, tag: '2', status: "
                "building}\n");
    world_act(&w, (fact_act){.act = ACT_FREEZE, .name = STR("f"), .who = STR("me")});
    world_act(&w, (fact_act){.act = ACT_THAW, .name = STR("f"), .who = STR("me")});
    restart(&w, NULL, NULL);
    assert_true(group(&w).stopped);
    world_act(&w, (fact_act){.act = ACT_SKIP,
                             .change = STR("app"),
                             .target = STR("h1"),
                             .version = STR("1"),
                             .who = STR("me")});
    assert_true(group(&w).stopped);
    check_msg(strchr(told.ptr, '|') == NULL, "%.*s", STR_ARG(buf_str(&told)));
    close_fleet(&w);
}

/* Targets under other policies may want other versions all the time: that is no edit. */
static void a6_two_versions_side_by_side(void **state)
{
    (void)state;
    world w;
    open_fleet(&w, 6, RULES PACE("exponential: {initialBatch: 1}", ""));
    world_apply(&w, API
                "kind: RolloutPolicy\nmetadata: {name: old}\nspec:\n  selector: 'resource.name in ["
                "\"h1\", \"h3\"]'\n  rules:\n  - versionSelector: {selector: 'version.tag == "
                "\"1\"'}\n");
    world_apply(&w, API
                "kind: Version\nmetadata: {name: one}\nspec: {deployment: app, tag: '1'}\n---\n" API
                "kind: Version\nmetadata: {name: two}\nspec: {deployment: app, tag: '2'}\n");
    world_until(&w, INT64_MAX);
    check_text(buf_str(&told), "1 2 3 ");
    check_text(view_at(&w, "app", "h3").current, "1");
    check_text(view_at(&w, "app", "h4").current, "2");
    close_fleet(&w);
}

#define BRACKET                                                                                    \
    "  - deploymentBracket: {deploymentSelector: 'true', readinessMode: immediate, "               \
    "preSelector: 'deployment.name == \"drain\"'}\n"

/* In a bracket any member's version counts, also the first one of a deployment. */
static void a6_edit_in_a_bracket(void **state)
{
    (void)state;
    static const struct {
        const char *deployment, *told;
    } rows[] = {{"app", "1(1) ! | 1 1 1 "}, {"other", "1(1) ! | 1 1 1 "}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        world w;
        open_fleet(&w, 3, RULES PACE(STOPS, "") BRACKET);
        deploy(&w, "drain");
        deploy(&w, "other");
        publish(&w, "drain", "1");
        fails(&w, "h0", true);
        publish(&w, "app", "1");
        world_until(&w, INT64_MAX);
        assert_true(group(&w).stopped);
        fails(&w, "h0", false);
        publish(&w, rows[i].deployment, "2");
        assert_false(group(&w).stopped);
        world_until(&w, INT64_MAX);
        check_text(buf_str(&told), rows[i].told);
        close_fleet(&w);
    }
}

/* Who joins has to catch up with versions that the others have: that is no edit. */
static void a4_joining_lifts_no_stop(void **state)
{
    (void)state;
    world w;
    open_fleet(&w, 3, RULES BRACKET);
    deploy(&w, "other");
    publish(&w, "other", "1");
    world_until(&w, INT64_MAX);
    world_apply(&w, "%s", RULES PACE(STOPS, "") BRACKET);
    fails(&w, "h0", true);
    publish(&w, "app", "1");
    world_until(&w, INT64_MAX);
    assert_true(group(&w).stopped);
    world_apply(&w, API "kind: Resource\nmetadata: {name: h9}\nspec: {kind: host, version: v1}\n");
    world_until(&w, INT64_MAX);
    assert_true(group(&w).stopped);
    check_text(buf_str(&told), "1(1) ! ");
    close_fleet(&w);
}

/* ---- after a restart ---- */

#define APP_2                                                                                      \
    API "kind: Version\nmetadata: {name: app-2, creationTimestamp: '2026-03-01T09:00:00Z'}\n"      \
        "spec: {deployment: app, tag: '2'}\n"

/* A fix that is published while nobody looks lifts the stop too. */
static void a6_edit_while_down(void **state)
{
    (void)state;
    static const char *rules[] = {RULES PACE(STOPS, ""), RULES PACE(STOPS, "") BRACKET};
    for (size_t i = 0; i < COUNT_OF(rules); i++) {
        world w;
        open_fleet(&w, 3, rules[i]);
        fails(&w, "h0", true);
        publish(&w, "app", "1");
        world_until(&w, INT64_MAX);
        restart(&w, NULL, NULL);
        assert_true(group(&w).stopped);
        fails(&w, "h0", false);
        restart(&w, APP_2, NULL);
        assert_false(group(&w).stopped);
        world_until(&w, INT64_MAX);
        check_text(buf_str(&told), "1(1) ! | 1 1 1 ");
        close_fleet(&w);
    }
}

/* What was saved before versions were noted is read: nothing begins anew by that, and the next
 * version is an edit. */
static void a6_record_without_versions(void **state)
{
    (void)state;
    world w;
    open_fleet(&w, 3, RULES PACE(STOPS, ""));
    fails(&w, "h0", true);
    publish(&w, "app", "1");
    world_until(&w, INT64_MAX);
    restart(&w, NULL, ",\"versions\":{\"app\":\"1\"}");
    assert_true(group(&w).stopped);
    assert_int_equal(group(&w).current_batch, 2);
    fails(&w, "h0", false);
    publish(&w, "app", "2");
    assert_false(group(&w).stopped);
    world_until(&w, INT64_MAX);
    check_text(buf_str(&told), "1(1) ! | 1 1 1 ");
    close_fleet(&w);
}

#define ZONE_SLOT                                                                                  \
    "  - resourceConcurrency: {groupSelector: 'resource.metadata[\"zone\"] == \"a\"', limitType: " \
    "count, limitValue: 1}\n"
#define HOST(name, zone)                                                                           \
    API "kind: Resource\nmetadata: {name: " name ", labels: {zone: " zone "}}\n"                   \
        "spec: {kind: host, version: v1}\nstatus: {releases: [{deployment: app, version: v0}]}\n"
#define BATCH_OF(count)                                                                            \
    "  - deploymentPolicy: {default: {budget: {count: " count                                      \
    "}, strategy: {fixed: {initialBatch: "                                                         \
    "2}}}}\n"

/* A limit that shrinks while nobody looks stops starts as one that shrinks live does: h1 has its
 * place or release and waits for its slot; then it needs none any more. */
static void limits_that_shrink_while_down(void **state)
{
    (void)state;
    static const struct {
        const char *before, *after;
    } rows[] = {{RULES ZONE_SLOT BATCH_OF("2"), RULES ZONE_SLOT BATCH_OF("1")},
                {RULES ZONE_SLOT "  - rolloutStrategy: {maxUnavailable: 2}\n",
                 RULES ZONE_SLOT "  - rolloutStrategy: {maxUnavailable: 1}\n"}};
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        for (int down = 0; down < 2; down++) {
            world w;
            open_fleet(&w, 0, rows[i].before);
            world_apply(&w, HOST("h0", "a") "---\n" HOST("h1", "a"));
            publish(&w, "app", "v1");
            assert_int_equal(w.starts, 1); /* both may, one has the slot */
            if (down)
                restart(&w, rows[i].after, NULL);
            else
                world_apply(&w, "%s", rows[i].after);
            world_apply(&w, HOST("h1", "b"));
            assert_int_equal(w.starts, 1); /* one place is all there is now */
            world_until(&w, INT64_MAX);
            check_text(view_at(&w, "app", "h1").current, "v1");
            close_fleet(&w);
        }
}

/* An edit of the rule lifts a halt of its failureThreshold, whenever it is made. */
static void a_halt_that_is_edited_while_down(void **state)
{
    (void)state;
    for (int down = 0; down < 2; down++) {
        static const char edited[] =
            RULES "  - rolloutStrategy: {maxUnavailable: 2, failureThreshold: 1}\n";
        world w;
        open_fleet(&w, 0, RULES "  - rolloutStrategy: {maxUnavailable: 1, failureThreshold: 1}\n");
        world_apply(&w, HOST("h0", "a") "---\n" HOST("h1", "a"));
        fails(&w, "h0", true);
        publish(&w, "app", "v1");
        world_until(&w, INT64_MAX);
        restart(&w, NULL, NULL);
        world_until(&w, INT64_MAX);
        assert_int_equal(w.starts, 1);
        if (down)
            restart(&w, edited, NULL);
        else
            world_apply(&w, "%s", edited);
        world_until(&w, INT64_MAX);
        check_text(view_at(&w, "app", "h1").current, "v1");
        close_fleet(&w);
    }
}

/* A3: what goes back to an older version is not startable, and no batch waits for it; live and
 * after a restart. */
static void a3_what_goes_back_has_no_place(void **state)
{
    (void)state;
    for (int restarted = 0; restarted < 2; restarted++) {
        world w;
        open_fleet(&w, 3, RULES PACE("fixed: {initialBatch: 1}", ""));
        publish(&w, "app", "1");
        world_until(&w, INT64_MAX);
        w.now = at_time("2026-03-01T09:00:00Z");
        publish(&w, "app", "2");
        world_at(&w, "2026-03-01T09:01:10Z");
        check_time(job_of(&w, "app", "h1", 1)->start, "2026-03-01T09:01:00Z");
        assert_true(vec_push(&w.plans, (world_plan){"app", "h0", 600, 0, false, false}));
        world_act(&w, (fact_act){.act = ACT_ROLLBACK, .change = STR("app"), .target = STR("h0")});
        check_text(str_of(job_of(&w, "app", "h0", 2)->version), "1");
        if (restarted)
            restart(&w, NULL, NULL);
        world_until(&w, INT64_MAX);
        check_time(job_of(&w, "app", "h2", 1)->start, "2026-03-01T09:02:00Z");
        check_text(view_at(&w, "app", "h0").current, "1");
        close_fleet(&w);
    }
}

int main(void)
{
    static row_list all;
    ROWS_TEST(&all, a6_edit_as_a_rule);
    ROWS_TEST(&all, a6_edit_lifts_a_stop_as_a_rule);
    ROWS_TEST(&all, a6_edit_keeps_counters_that_are_kept);
    ROWS_TEST(&all, a6_withdrawal_lifts_a_stop);
    ROWS_TEST(&all, a4_stop_stays_without_new_work);
    ROWS_TEST(&all, a6_two_versions_side_by_side);
    ROWS_TEST(&all, a6_edit_in_a_bracket);
    ROWS_TEST(&all, a4_joining_lifts_no_stop);
    ROWS_TEST(&all, a6_edit_while_down);
    ROWS_TEST(&all, a6_record_without_versions);
    ROWS_TEST(&all, limits_that_shrink_while_down);
    ROWS_TEST(&all, a_halt_that_is_edited_while_down);
    ROWS_TEST(&all, a3_what_goes_back_has_no_place);
    return rows_run(&all);
}
