/* SPDX-License-Identifier: Apache-2.0 */
/* rolloutStrategy as a rule of a RolloutPolicy: the table of semantics.md part B and the scenarios
 * of the document on rollout strategies over release targets, and what only happens here: other
 * gates, slots, batches, brackets, retries, rollbacks, people and restarts in between. */
#include "support/check.h"

#include "support/partition_rows.h"
#include "support/rows.h"
#include "support/world.h"

#define API "apiVersion: drover.dev/v1alpha1\n"
#define NEVER_ENDS 1000000000

/* ---- small worlds ---- */

static void open_world(world *w)
{
    world_open(w, "2026-03-01T08:00:00Z");
    world_apply(w, API
                "kind: Environment\nmetadata: {name: prod}\nspec: {resourceSelector: 'true'}\n");
    world_apply(w, API
                "kind: Deployment\nmetadata: {name: app}\nspec: {resourceSelector: 'true', job: {"
                "pull: {}}}\n");
}

static void publish(world *w, const char *change, int number)
{
    world_apply(w,
                API "kind: Version\nmetadata: {name: %s-%d, creationTimestamp: '%s'}\nspec: {"
                    "deployment: %s, tag: v%d}\n",
                change, number, time_at(w->now), change, number);
}

/* Hosts h1 to hN; those from "old" on run v0. */
static void put_hosts(world *w, int count, int old)
{
    for (int i = 1; i <= count; i++)
        world_apply(w,
                    API
                    "kind: Resource\nmetadata: {name: h%d, labels: {ring: %s}}\nspec: {kind: host, "
                    "version: v1}\n%s",
                    i, i <= 2 ? "canary" : "rest",
                    i >= old ? "status: {releases: [{deployment: app, version: v0}]}\n" : "");
}

static void put_rules(world *w, const char *rules)
{
    world_apply(w, API "kind: RolloutPolicy\nmetadata: {name: p}\nspec:\n  rules:\n%s", rules);
}

#define RINGS                                                                                      \
    "partitions: [{name: canary, clusterSelector: {matchLabels: {ring: canary}}}, {name: rest, "   \
    "clusterSelector: {matchLabels: {ring: rest}}}]"

static void plan_job(world *w, const char *host, int64_t seconds, int fail)
{
    assert_true(vec_push(&w->plans, (world_plan){"app", host, seconds, fail, false, false}));
}

/* "h1 h2" of the jobs that started at this moment. */
static str started(const world *w, arena *a)
{
    str text = STR_EMPTY;
    for (size_t i = 0; i < w->jobs.len; i++)
        if (w->jobs.at[i].start == w->now)
            text = arena_printf(a, "%.*s%s%s", STR_ARG(text), text.len ? " " : "",
                                w->jobs.at[i].resource);
    return text;
}

static placement_state state_at(const world *w, const char *host)
{
    return view_at(w, "app", host).state;
}

/* ---- semantics.md part B, row by row ---- */

static notation *noted;
static decision last_pass;

static void note_passes(world *w)
{
    for (size_t i = 0; i < w->out.len; i++) {
        const decision *d = &w->out.at[i];
        if (d->kind != DECISION_PASS)
            continue;
        last_pass = *d;
        if (d->size > 0)
            notation_add(noted, d->created, d->updated, d->fixed);
    }
}

static void add_limit(buf *out, const char *key, const char *amount)
{
    if (!amount)
        return;
    buf_addf(out, ", %s: %s", key, amount[0] == '#' ? amount + 1 : amount);
}

static void put_row_policy(world *w, const partition_row *r)
{
    buf text = BUF(10000);
    buf_addf(&text, "  - rolloutStrategy: {maxNew: %lld, autoPartitionThreshold: %lld",
             r->max_new ? (long long)r->max_new : 50, r->threshold ? (long long)r->threshold : 200);
    add_limit(&text, "maxUnavailable", r->unavailable);
    add_limit(&text, "maxUnavailablePartitions", r->unavailable_partitions);
    add_limit(&text, "autoPartitionSize", r->size);
    for (size_t p = 0; p < COUNT_OF(r->manual) && r->manual[p]; p++) {
        buf_addf(&text, "%s{name: %s, clusterSelector: {matchLabels: {part: %s}}",
                 p ? ", " : ", partitions: [", partition_names[p], partition_names[p]);
        add_limit(&text, "maxUnavailable", p == 0 ? r->own : NULL);
        buf_addc(&text, '}');
    }
    buf_addz(&text, r->manual[0] ? "]}\n" : "}\n");
    buf_addc(&text, 0);
    put_rules(w, text.ptr);
    buf_done(&text);
}

/* The resources of a row, in one document. */
static void put_row_hosts(world *w, const partition_row *r)
{
    buf text = BUF(1 << 20);
    size_t part = 0, left = r->manual[0];
    for (size_t i = 0; i < r->clusters; i++) {
        while (left == 0 && part + 1 < COUNT_OF(r->manual) && r->manual[part + 1] > 0)
            left = r->manual[++part];
        buf_addf(&text,
                 "---\n" API "kind: Resource\nmetadata: {name: c%05zu%s%s}\nspec: {kind: host, "
                 "version: v1}\n",
                 i + 1, left ? ", labels: {part: " : "", left ? partition_names[part] : "");
        if (left > 0) {
            text.len -= sizeof "}\nspec: {kind: host, version: v1}\n" - 1;
            buf_addz(&text, "}}\nspec: {kind: host, version: v1}\n");
            left--;
        }
        if (i >= r->fresh)
            buf_addz(&text, "status: {releases: [{deployment: app, version: v0}]}\n");
    }
    buf_addc(&text, 0);
    world_apply(w, "%s", text.ptr);
    buf_done(&text);
}

static bool count_done(void *context, const placement_view *view)
{
    *(size_t *)context += view->state == PLACEMENT_DONE;
    return true;
}

static void run_row(const partition_row *r)
{
    world w;
    err error;
    char names[32][32];
    notation n = {.text = BUF(10000)};
    noted = &n;
    last_pass = (decision){0};
    open_world(&w);
    w.quiet = true;
    put_row_hosts(&w, r);
    for (size_t i = 0; i < r->broken;
         i++) { /* an older version fails there, and is in no rollout */
        snprintf(names[i], sizeof names[i], "c%05zu", i + 1);
        plan_job(&w, names[i], 60, -1);
    }
    if (r->broken > 0) {
        put_rules(&w, "  - versionSelector: {selector: 'version.tag != \"v1\" || resource.name in "
                      "[\"c00001\", \"c00002\"]'}\n");
        publish(&w, "app", 1);
        world_until(&w, w.now + HOUR);
    }
    put_row_policy(&w, r);
    for (size_t i = 0; i < r->paused; i++) {
        snprintf(names[i], sizeof names[i], "c%05zu", i + 1);
        world_act(&w, (fact_act){.act = ACT_HALT, .target = str_of(names[i])});
    }
    if (!r->prompt)
        plan_job(&w, NULL, NEVER_ENDS, 0);
    for (size_t i = 0; i < r->offline; i++) {
        snprintf(names[i], sizeof names[i], "c%05zu", i + 1);
        plan_job(&w, names[i], NEVER_ENDS, 0);
    }
    w.after = note_passes;
    publish(&w, "app", 2);
    world_until(&w, w.now + 10 * DAY);
    check_msg(engine_check(w.engine, &error), "%s: %s", r->id, error.text);
    check_msg(engine_full(w.engine, &error), "%s: %s", r->id, error.text);
    notation_add(&n, last_pass.created, last_pass.updated, last_pass.fixed);
    notation_flush(&n);
    check_msg(str_eq(buf_str(&n.text), str_of(r->releases)), "%s: %.*s", r->id,
              STR_ARG(buf_str(&n.text)));
    check_msg(last_pass.visited == r->visited && last_pass.partitions == r->partitions &&
                  last_pass.not_ready == r->not_ready,
              "%s: visits %lld/%lld, not ready %lld", r->id, (long long)last_pass.visited,
              (long long)last_pass.partitions, (long long)last_pass.not_ready);
    size_t done = 0;
    engine_placements(w.engine, count_done, &done);
    check_msg(done == r->up_to_date, "%s: %zu up to date", r->id, done);
    buf_done(&n.text);
    world_close(&w);
}

static void row_as_a_rule(void **state)
{
    run_row(*state);
}

/* ---- between the passes ---- */

#define STRICT "  - rolloutStrategy: {maxUnavailable: 0, " RINGS "}\n"

static void test_partitions_go_one_after_the_other(void **state)
{
    (void)state;
    world w;
    arena *a = arena_new(0);
    open_world(&w);
    put_hosts(&w, 5, 1);
    put_rules(&w, STRICT);
    publish(&w, "app", 1);
    check_text(started(&w, a), "h1");
    check_text(view_at(&w, "app", "h3").group, "rest");
    check_text(reasons_at(&w, a, "app", "h2"), "unavailable:complete h1");
    check_text(reasons_at(&w, a, "app", "h3"), "partition:complete h1,h2");
    check_text(reasons_at(&w, a, "app", "h4"), "partition:complete h1,h2; unavailable:complete h3");
    world_until(&w, w.now + 2 * MINUTE);
    check_text(started(&w, a), "h3");
    world_until(&w, INT64_MAX);
    assert_int_equal(w.starts, 5);
    assert_int_equal(w.peak_running, 1);
    assert_int_equal(state_at(&w, "h5"), PLACEMENT_DONE);
    arena_free(a);
    world_close(&w);
}

/* Whom another gate holds is waited for: partitions keep their order (I7). */
static void test_a_gate_holds_the_later_partitions_too(void **state)
{
    (void)state;
    world w;
    arena *a = arena_new(0);
    open_world(&w);
    put_hosts(&w, 4, 1);
    put_rules(&w, STRICT);
    world_act(&w, (fact_act){.act = ACT_FREEZE,
                             .name = STR("ice"),
                             .selector = STR("resource.metadata['ring'] == 'canary'")});
    publish(&w, "app", 1);
    assert_int_equal(w.starts, 0);
    check_text(reasons_at(&w, a, "app", "h1"), "freeze:thaw ice");
    check_text(reasons_at(&w, a, "app", "h3"), "partition:complete h1,h2");
    world_act(&w, (fact_act){.act = ACT_THAW});
    check_text(started(&w, a), "h1");
    arena_free(a);
    world_close(&w);
}

/* As a paused cluster: not waited for, and outside every count but the cap. */
static void test_a_halted_resource_is_left_out(void **state)
{
    (void)state;
    world w;
    arena *a = arena_new(0);
    open_world(&w);
    put_hosts(&w, 4, 1);
    put_rules(&w, STRICT);
    world_act(&w, (fact_act){.act = ACT_HALT, .target = STR("h1")});
    publish(&w, "app", 1);
    check_text(started(&w, a), "h2");
    world_until(&w, INT64_MAX);
    assert_int_equal(w.starts, 3);
    check_text(reasons_at(&w, a, "app", "h1"), "halted:resume h1");
    world_act(&w, (fact_act){.act = ACT_RESUME, .target = STR("h1")});
    check_text(started(&w, a), "h1");
    arena_free(a);
    world_close(&w);
}

static void test_who_is_in_no_partition_is_excluded(void **state)
{
    (void)state;
    world w;
    arena *a = arena_new(0);
    open_world(&w);
    put_hosts(&w, 3, 1);
    put_rules(&w, "  - rolloutStrategy: {maxUnavailable: 1, partitions: [{name: one, clusterName: "
                  "h1}, {name: two, clusterSelector: {matchLabels: {ring: canary}}}]}\n");
    publish(&w, "app", 1);
    world_until(&w, INT64_MAX);
    assert_int_equal(w.starts, 2);
    assert_int_equal(state_at(&w, "h3"), PLACEMENT_EXCLUDED);
    check_text(reasons_at(&w, a, "app", "h3"), "noPartition:label h3");
    world_apply(&w,
                API "kind: Resource\nmetadata: {name: h3, labels: {ring: canary}}\nspec: {kind: "
                    "host, version: v1}\nstatus: {releases: [{deployment: app, version: v0}]}\n");
    check_text(started(&w, a), "h3");
    arena_free(a);
    world_close(&w);
}

/* A fix reaches broken resources at once; who failed is unavailable until then. */
static void test_a_failed_resource_holds_its_limit_until_a_fix(void **state)
{
    (void)state;
    world w;
    arena *a = arena_new(0);
    open_world(&w);
    put_hosts(&w, 4, 1);
    put_rules(&w, "  - rolloutStrategy: {maxUnavailable: 1}\n");
    plan_job(&w, "h1", 60, -1);
    publish(&w, "app", 1);
    world_until(&w, INT64_MAX);
    assert_int_equal(w.starts, 1);
    assert_int_equal(state_at(&w, "h1"), PLACEMENT_FAILED);
    check_text(reasons_at(&w, a, "app", "h3"), "unavailable:complete h1,h2");
    world_act(&w, (fact_act){.act = ACT_RETRY, .target = STR("h1")});
    check_text(started(&w, a), "h1"); /* and nobody in its place, though it is not failed now */
    world_until(&w, INT64_MAX);
    assert_int_equal(w.starts, 2);
    w.plans.len = 0;
    publish(&w, "app", 2);
    check_text(started(&w, a), "h1");
    world_until(&w, INT64_MAX);
    assert_int_equal(w.peak_running, 1);
    assert_int_equal(state_at(&w, "h4"), PLACEMENT_DONE);
    arena_free(a);
    world_close(&w);
}

static void test_a_retry_keeps_its_release(void **state)
{
    (void)state;
    world w;
    arena *a = arena_new(0);
    open_world(&w);
    put_hosts(&w, 3, 1);
    put_rules(&w, "  - rolloutStrategy: {maxUnavailable: 1}\n"
                  "  - retry: {maxRetries: 2, backoffSeconds: 30}\n");
    plan_job(&w, "h1", 60, 1);
    publish(&w, "app", 1);
    world_until(&w, w.now + MINUTE);
    check_text(started(&w, a), "");
    check_text(reasons_at(&w, a, "app", "h2"), "unavailable:complete h1");
    world_until(&w, w.now + MINUTE / 2);
    check_text(started(&w, a), "h1");
    world_until(&w, INT64_MAX);
    assert_int_equal(w.peak_running, 1);
    assert_int_equal(state_at(&w, "h3"), PLACEMENT_DONE);
    arena_free(a);
    world_close(&w);
}

/* A rollback needs no release; who went back is available again. */
static void test_a_rollback_makes_room(void **state)
{
    (void)state;
    world w;
    arena *a = arena_new(0);
    open_world(&w);
    put_hosts(&w, 3, 1);
    put_rules(&w, "  - rolloutStrategy: {maxUnavailable: 1, failureThreshold: 2}\n"
                  "  - rollback: {onJobStatuses: [failure]}\n");
    plan_job(&w, "h1", 60, 1);
    publish(&w, "app", 1);
    world_until(&w, w.now + MINUTE);
    check_text(started(&w, a), "h1"); /* back to v0 */
    world_until(&w, w.now + MINUTE);
    check_text(started(&w, a), "h2");
    world_until(&w, INT64_MAX);
    assert_int_equal(w.peak_running, 1);
    assert_int_equal(state_at(&w, "h1"), PLACEMENT_EXCLUDED);
    assert_int_equal(state_at(&w, "h3"), PLACEMENT_DONE);
    arena_free(a);
    world_close(&w);
}

/* Who succeeded is available, also when a newer version is out by then. */
static void test_a_newer_version_in_mid_job(void **state)
{
    (void)state;
    world w;
    arena *a = arena_new(0);
    open_world(&w);
    put_hosts(&w, 2, 1);
    put_rules(&w, "  - rolloutStrategy: {maxUnavailable: 1}\n");
    publish(&w, "app", 1);
    check_text(started(&w, a), "h1");
    publish(&w, "app", 2);
    world_act(&w, (fact_act){.act = ACT_HALT, .target = STR("h1")});
    world_until(&w, w.now + MINUTE); /* h1 runs v1 and is whole */
    check_text(started(&w, a), "h2");
    world_act(&w, (fact_act){.act = ACT_RESUME, .target = STR("h1")});
    world_until(&w, INT64_MAX);
    assert_int_equal(w.peak_running, 1);
    assert_int_equal(state_at(&w, "h1"), PLACEMENT_DONE);
    arena_free(a);
    world_close(&w);
}

/* ---- beyond Fleet ---- */

static void test_soak_approval_and_threshold(void **state)
{
    (void)state;
    world w;
    arena *a = arena_new(0);
    open_world(&w);
    put_hosts(&w, 5, 1);
    put_rules(&w, "  - rolloutStrategy: {maxUnavailable: 1, soakSeconds: 300, failureThreshold: 2, "
                  "partitions: [{name: canary, clusterSelector: {matchLabels: {ring: canary}}}, "
                  "{name: rest, approval: true, clusterSelector: {matchLabels: {ring: rest}}}]}\n");
    publish(&w, "app", 1);
    check_text(reasons_at(&w, a, "app", "h3"),
               "soak:time @01T08:05:00Z; approval:approve rest; unavailable:complete h1,h2");
    world_at(&w, "2026-03-01T08:02:00Z");
    check_text(reasons_at(&w, a, "app", "h3"), "soak:time @01T08:06:00Z; approval:approve rest");
    world_at(&w, "2026-03-01T09:00:00Z");
    check_text(reasons_at(&w, a, "app", "h3"), "approval:approve rest");
    world_act(&w, (fact_act){.act = ACT_APPROVE, .change = STR("other")});
    assert_int_equal(w.starts, 2);
    plan_job(&w, NULL, 60, 2);
    world_act(&w, (fact_act){.act = ACT_APPROVE, .change = STR("app"), .partition = STR("rest")});
    check_text(started(&w, a), "h3");
    world_until(&w, INT64_MAX);
    world_act(&w, (fact_act){.act = ACT_SKIP, .change = STR("app"), .target = STR("h3")});
    check_text(started(&w, a), "h4");
    world_until(&w, INT64_MAX);
    world_act(&w, (fact_act){.act = ACT_SKIP, .change = STR("app"), .target = STR("h4")});
    assert_int_equal(w.starts, 4);
    check_text(reasons_at(&w, a, "app", "h5"), "halted:resume app");
    world_act(&w, (fact_act){.act = ACT_RESUME, .change = STR("app")});
    check_text(started(&w, a), "h5");
    world_until(&w, INT64_MAX);
    publish(&w, "app", 2); /* an edit: approvals and soaks begin anew */
    world_until(&w, w.now + HOUR);
    check_text(reasons_at(&w, a, "app", "h3"), "approval:approve rest");
    arena_free(a);
    world_close(&w);
}

/* What one host has to do changes by a skip, and by the retry that ends it. That is no edit: the
 * halt is lifted by a newer version, or by a resume. */
static void test_a_skip_on_one_host_lifts_no_halt(void **state)
{
    (void)state;
    world w;
    arena *a = arena_new(0);
    open_world(&w);
    put_hosts(&w, 4, 1);
    put_rules(&w, "  - rolloutStrategy: {maxUnavailable: 1, failureThreshold: 1}\n");
    plan_job(&w, "h1", 60, 1);
    world_act(&w, (fact_act){.act = ACT_PAUSE, .change = STR("app")});
    publish(&w, "app", 1);
    world_until(&w, w.now + MINUTE);
    publish(&w, "app", 2);
    world_act(&w, (fact_act){.act = ACT_RESUME, .change = STR("app")});
    check_text(started(&w, a), "h1");
    world_until(&w, INT64_MAX);
    assert_int_equal(w.starts, 1);
    check_text(reasons_at(&w, a, "app", "h2"), "halted:resume app; unavailable:complete h1");
    world_act(&w, (fact_act){.act = ACT_SKIP, .change = STR("app"), .target = STR("h1")});
    assert_int_equal(w.starts, 1);
    check_text(reasons_at(&w, a, "app", "h1"), "halted:resume app");
    check_text(reasons_at(&w, a, "app", "h2"), "halted:resume app; unavailable:complete h1");
    world_act(&w, (fact_act){.act = ACT_RETRY, .change = STR("app"), .target = STR("h1")});
    assert_int_equal(w.starts, 1);
    check_text(reasons_at(&w, a, "app", "h2"), "halted:resume app; unavailable:complete h1");
    publish(&w, "app", 3);
    check_text(started(&w, a), "h1");
    arena_free(a);
    world_close(&w);
}

/* The same where the rollout was complete before: who joined after that failed. */
static void test_a_skip_begins_no_rollout_while_one_is_halted(void **state)
{
    (void)state;
    world w;
    arena *a = arena_new(0);
    open_world(&w);
    put_hosts(&w, 2, 1);
    put_rules(&w, "  - rolloutStrategy: {maxUnavailable: 1, failureThreshold: 1}\n");
    publish(&w, "app", 1);
    world_until(&w, w.now + MINUTE);
    publish(&w, "app", 2);
    world_until(&w, INT64_MAX);
    int64_t before = w.starts;
    plan_job(&w, "h3", 60, 1);
    put_hosts(&w, 3, 1);
    check_text(started(&w, a), "h3");
    world_until(&w, INT64_MAX);
    world_act(&w, (fact_act){.act = ACT_SKIP, .change = STR("app"), .target = STR("h3")});
    world_act(&w, (fact_act){.act = ACT_RETRY, .change = STR("app"), .target = STR("h3")});
    assert_int_equal(w.starts, before + 1);
    check_text(reasons_at(&w, a, "app", "h3"), "halted:resume app");
    world_act(&w, (fact_act){.act = ACT_RESUME, .change = STR("app")});
    check_text(started(&w, a), "h3");
    arena_free(a);
    world_close(&w);
}

/* ---- with other limits ---- */

static void test_a_release_waits_for_its_slot(void **state)
{
    (void)state;
    world w;
    arena *a = arena_new(0);
    open_world(&w);
    put_hosts(&w, 4, 1);
    put_rules(&w, "  - rolloutStrategy: {maxUnavailable: 2}\n"
                  "  - resourceConcurrency: {groupSelector: 'true', limitType: count, limitValue: "
                  "1}\n");
    publish(&w, "app", 1);
    check_text(started(&w, a), "h1");
    check_text(reasons_at(&w, a, "app", "h2"), "concurrency:complete h1");
    /* Two are to be complete anyway, and one of them is who is unavailable. */
    check_text(reasons_at(&w, a, "app", "h3"), "concurrency:complete h1,h2");
    world_act(&w, (fact_act){.act = ACT_FREEZE,
                             .name = STR("ice"),
                             .selector = STR("resource.name == 'h2'")});
    /* h2 gives its release back, and h3 has it. */
    check_text(reasons_at(&w, a, "app", "h3"), "concurrency:complete h1");
    world_until(&w, INT64_MAX);
    assert_int_equal(w.starts, 3);
    assert_int_equal(w.peak_running, 1);
    arena_free(a);
    world_close(&w);
}

#define PACED_SLOTS(unavailable, slots)                                                            \
    "  - rolloutStrategy: {maxUnavailable: " unavailable "}\n"                                     \
    "  - resourceConcurrency: {groupSelector: 'true', limitType: count, limitValue: " slots "}\n"

/* h1 to h4, those up to "old" run v0: what a pass releases waits for slots. One host leaves, there
 * are two slots then, and these have them. */
static void check_releases(int old, const char *before, const char *after, const char *want)
{
    world w;
    arena *a = arena_new(0);
    open_world(&w);
    put_rules(&w, before);
    for (int i = 1; i <= 4; i++)
        world_apply(&w,
                    API "kind: Resource\nmetadata: {name: h%d}\nspec: {kind: host, version: v1}\n"
                        "status: {releases: [%s]}\n",
                    i, i <= old ? "{deployment: app, version: v0}" : "");
    publish(&w, "app", 1);
    check_text(started(&w, a), "");
    world_delete(&w, KIND_RESOURCE, "h4");
    put_rules(&w, after);
    check_text(started(&w, a), want);
    arena_free(a);
    world_close(&w);
}

/* First releases may be more than the limit is. An update beside them keeps the release that it has
 * when another rule is edited, or somebody leaves; a limit that shrinks takes it back. */
static void test_only_a_limit_that_shrank_takes_releases_back(void **state)
{
    (void)state;
    check_releases(1, PACED_SLOTS("1", "0"), PACED_SLOTS("1", "2"), "h1 h2");
    check_releases(1, PACED_SLOTS("1", "0"), PACED_SLOTS("2", "2"), "h1 h2");
    check_releases(4, PACED_SLOTS("2", "0"), PACED_SLOTS("2", "2"), "h1 h2");
    check_releases(4, PACED_SLOTS("2", "0"), PACED_SLOTS("1", "2"), "h1");
    check_releases(4, PACED_SLOTS("50%", "0"), PACED_SLOTS("50%", "2"), "h1");
}

/* A later partition that failed gives its slot to an earlier one once a newer version is out. */
static void test_slots_and_partitions_do_not_wait_for_each_other(void **state)
{
    (void)state;
    world w;
    open_world(&w);
    put_hosts(&w, 4, 1);
    put_rules(&w, "  - rolloutStrategy: {maxUnavailable: 0, partitions: [{name: canary, "
                  "maxUnavailable: 0, clusterSelector: {matchLabels: {ring: canary}}}, {name: "
                  "rest, clusterSelector: {matchLabels: {ring: rest}}}]}\n"
                  "  - resourceConcurrency: {groupSelector: 'true', limitType: count, "
                  "limitValue: 1}\n");
    plan_job(&w, "h3", 60, 1);
    publish(&w, "app", 1);
    world_until(&w, INT64_MAX);
    assert_int_equal(w.starts, 3);
    publish(&w, "app", 2);
    world_until(&w, INT64_MAX);
    for (int i = 1; i <= 4; i++) {
        char host[16];
        snprintf(host, sizeof host, "h%d", i);
        assert_int_equal(state_at(&w, host), PLACEMENT_DONE);
    }
    world_close(&w);
}

/* Batches are made of what the partitions have released. */
static void test_with_compartments(void **state)
{
    (void)state;
    world w;
    arena *a = arena_new(0);
    open_world(&w);
    put_hosts(&w, 8, 1);
    put_rules(&w, "  - rolloutStrategy: {maxUnavailable: 3, " RINGS "}\n"
                  "  - deploymentPolicy: {default: {budget: {count: 2}, strategy: {fixed: {"
                  "initialBatch: 2}}}}\n");
    publish(&w, "app", 1);
    check_text(started(&w, a), "h1 h2");
    world_until(&w, w.now + MINUTE);
    check_text(started(&w, a), "h3 h4");
    check_text(reasons_at(&w, a, "app", "h5"), "batch:complete h3,h4");
    world_until(&w, INT64_MAX);
    assert_int_equal(w.peak_running, 2);
    assert_int_equal(state_at(&w, "h8"), PLACEMENT_DONE);
    arena_free(a);
    world_close(&w);
}

/* In a bracket a resource counts once, from its first job to the end of its group. */
static void c7_partitions_in_a_bracket(void **state)
{
    (void)state;
    world w;
    arena *a = arena_new(0);
    open_world(&w);
    world_apply(&w,
                API "kind: Deployment\nmetadata: {name: drain}\nspec: {resourceSelector: 'true', "
                    "job: {pull: {}}}\n");
    put_hosts(&w, 4, 1);
    put_rules(&w, STRICT "  - deploymentBracket: {deploymentSelector: 'true', readinessMode: "
                         "immediate, preSelector: 'deployment.name == \"drain\"'}\n");
    publish(&w, "drain", 1);
    publish(&w, "app", 1);
    check_text(started(&w, a), "h1");
    check_text(reasons_at(&w, a, "app", "h3"), "partition:complete h1,h2; bracket:complete drain");
    world_until(&w, w.now + MINUTE); /* the drain is over, the group is not */
    check_text(started(&w, a), "h1");
    world_until(&w, w.now + MINUTE);
    check_text(started(&w, a), "h2");
    plan_job(&w, "h2", 60, 1);
    world_until(&w, INT64_MAX); /* its group fails, and holds the partition */
    assert_int_equal(w.starts, 4);
    check_text(reasons_at(&w, a, "app", "h3"), "partition:complete h2; bracket:complete drain");
    world_act(&w, (fact_act){.act = ACT_RETRY, .target = STR("h2")});
    world_until(&w, INT64_MAX);
    assert_int_equal(w.peak_running, 1);
    assert_int_equal(state_at(&w, "h4"), PLACEMENT_DONE);
    arena_free(a);
    world_close(&w);
}

/* What prepares the resource was withdrawn, and h3 is prepared with the version before: an edit as
 * any other. The first partition soaks anew, from that moment on. */
static void test_a_hook_that_is_withdrawn_begins_the_soak_anew(void **state)
{
    (void)state;
    world w;
    arena *a = arena_new(0);
    open_world(&w);
    world_apply(&w, API "kind: Deployment\nmetadata: {name: drain}\nspec: {job: {pull: {}}, "
                        "resourceSelector: 'resource.metadata[\"ring\"] == \"rest\"'}\n");
    put_hosts(&w, 3, 1);
    put_rules(&w, "  - rolloutStrategy: {maxUnavailable: 1, soakSeconds: 600, " RINGS "}\n"
                  "  - deploymentBracket: {deploymentSelector: 'true', readinessMode: immediate, "
                  "preSelector: 'deployment.name == \"drain\"'}\n");
    publish(&w, "drain", 1);
    publish(&w, "drain", 2);
    publish(&w, "app", 1);
    check_text(started(&w, a), "h1");
    world_until(&w, w.now + 5 * MINUTE); /* h1 and h2 are done, and the soak has begun */
    check_text(reasons_at(&w, a, "app", "h3"), "soak:time @01T08:11:00Z; bracket:complete drain");
    world_act(&w, (fact_act){.act = ACT_PAUSE, .change = STR("app")});
    world_apply(&w, API "kind: Version\nmetadata: {name: drain-2}\nspec: {deployment: drain, tag: "
                        "v2, status: rejected}\n");
    world_until(&w, w.now + 8 * MINUTE);
    check_text(reasons_at(&w, a, "app", "h3"),
               "paused:resume app; soak:time @01T08:15:00Z; bracket:complete drain");
    world_act(&w, (fact_act){.act = ACT_RESUME, .change = STR("app")});
    world_until(&w, INT64_MAX);
    assert_int_equal(state_at(&w, "h3"), PLACEMENT_DONE);
    arena_free(a);
    world_close(&w);
}

/* ---- the cut ---- */

static bool see_group(void *context, const group_view *view)
{
    buf *out = context;
    if (view->kind == GROUP_PARTITION)
        buf_addf(out, "%.*s: %.*s %lld/%lld%s%s; ", STR_ARG(view->change), STR_ARG(view->name),
                 (long long)view->matched, (long long)view->limit, view->ready ? " ready" : "",
                 view->visited ? " visited" : "");
    return true;
}

static void check_groups(world *w, const char *want)
{
    buf text = BUF(10000);
    engine_groups(w->engine, see_group, &text);
    check_text(buf_str(&text), want);
    buf_done(&text);
}

/* Two rules: the first lets a host go that the second holds; when the first is cut anew without it,
 * the second must know (the full evaluation after each step sees it). */
static void test_a_cut_of_one_rule_is_told_to_the_other(void **state)
{
    (void)state;
    world w;
    open_world(&w);
    put_hosts(&w, 4, 1);
    world_apply(&w, API "kind: RolloutPolicy\nmetadata: {name: a}\nspec:\n  rules:\n"
                        "  - rolloutStrategy: {maxUnavailable: 1}\n");
    world_apply(&w, API "kind: RolloutPolicy\nmetadata: {name: b}\nspec:\n  rules:\n"
                        "  - rolloutStrategy: {partitions: [{name: all, clusterSelector: {}, "
                        "approval: true}]}\n");
    publish(&w, "app", 1);
    world_until(&w, INT64_MAX);
    assert_int_equal(w.jobs.len, 0);
    world_apply(&w, API "kind: RolloutPolicy\nmetadata: {name: a}\nspec:\n  rules:\n"
                        "  - rolloutStrategy: {maxUnavailable: 1, partitions: [{name: rest, "
                        "clusterSelector: {matchLabels: {ring: rest}}}]}\n");
    world_act(&w, (fact_act){.act = ACT_APPROVE, .partition = STR("all"), .change = STR("app")});
    world_until(&w, INT64_MAX);
    assert_int_equal(w.jobs.len, 2); /* h3 and h4 */
    world_close(&w);
}

static void test_the_cut_is_kept_until_the_next_rollout(void **state)
{
    (void)state;
    world w;
    open_world(&w);
    put_hosts(&w, 4, 1);
    put_rules(&w, "  - rolloutStrategy: {maxUnavailable: 0, autoPartitionThreshold: 1, "
                  "autoPartitionSize: 2}\n");
    publish(&w, "app", 1);
    check_groups(&w, "app: Partition 0 - 2 2/0 visited; app: Partition 2 - 4 2/0; ");
    put_hosts(&w, 5, 6); /* joins the last one */
    world_delete(&w, KIND_RESOURCE, "h1");
    check_groups(&w, "app: Partition 0 - 2 1/0 visited; app: Partition 2 - 4 3/0; ");
    publish(&w, "app", 2); /* in mid-rollout */
    check_groups(&w, "app: Partition 0 - 2 1/0 visited; app: Partition 2 - 4 3/0; ");
    world_until(&w, INT64_MAX);
    check_groups(&w, "app: Partition 0 - 2 1/0 ready visited; app: Partition 2 - 4 3/0 ready "
                     "visited; ");
    put_hosts(&w, 6, 7); /* so does one that joins when all is done; h1 comes back with it */
    world_until(&w, INT64_MAX);
    check_groups(&w, "app: Partition 0 - 2 1/0 ready visited; app: Partition 2 - 4 5/0 ready "
                     "visited; ");
    publish(&w, "app", 3); /* a rollout starts */
    check_groups(&w, "app: Partition 0 - 2 2/0 visited; app: Partition 2 - 4 2/0; app: Partition "
                     "4 - 6 2/0; ");
    put_rules(&w, "  - rolloutStrategy: {maxUnavailable: 0, autoPartitionThreshold: 1, "
                  "autoPartitionSize: 3}\n");
    check_groups(&w, "app: Partition 0 - 3 3/0 visited; app: Partition 3 - 6 3/0; ");
    world_until(&w, INT64_MAX);
    assert_int_equal(state_at(&w, "h6"), PLACEMENT_DONE);
    world_close(&w);
}

int main(void)
{
    static row_list all;
    for (size_t i = 0; i < COUNT_OF(partition_rows); i++)
        rows_add(&all, row_as_a_rule, &partition_rows[i], "B as a rule: %s", partition_rows[i].id);
    for (size_t i = 0; i < COUNT_OF(partition_more); i++)
        rows_add(&all, row_as_a_rule, &partition_more[i], "B as a rule, more: %s",
                 partition_more[i].id);
    for (size_t i = 0; i < COUNT_OF(partition_cuts); i++)
        rows_add(&all, row_as_a_rule, &partition_cuts[i], "B as a rule, partitions: %s",
                 partition_cuts[i].id);
    for (size_t i = 0; i < COUNT_OF(partition_scenarios); i++)
        rows_add(&all, row_as_a_rule, &partition_scenarios[i], "seed 003 as a rule: %s",
                 partition_scenarios[i].id);
    ROWS_TEST(&all, test_partitions_go_one_after_the_other);
    ROWS_TEST(&all, test_a_gate_holds_the_later_partitions_too);
    ROWS_TEST(&all, test_a_halted_resource_is_left_out);
    ROWS_TEST(&all, test_who_is_in_no_partition_is_excluded);
    ROWS_TEST(&all, test_a_failed_resource_holds_its_limit_until_a_fix);
    ROWS_TEST(&all, test_a_retry_keeps_its_release);
    ROWS_TEST(&all, test_a_rollback_makes_room);
    ROWS_TEST(&all, test_a_newer_version_in_mid_job);
    ROWS_TEST(&all, test_soak_approval_and_threshold);
    ROWS_TEST(&all, test_a_skip_on_one_host_lifts_no_halt);
    ROWS_TEST(&all, test_a_skip_begins_no_rollout_while_one_is_halted);
    ROWS_TEST(&all, test_a_release_waits_for_its_slot);
    ROWS_TEST(&all, test_only_a_limit_that_shrank_takes_releases_back);
    ROWS_TEST(&all, test_slots_and_partitions_do_not_wait_for_each_other);
    ROWS_TEST(&all, test_with_compartments);
    ROWS_TEST(&all, c7_partitions_in_a_bracket);
    ROWS_TEST(&all, test_a_hook_that_is_withdrawn_begins_the_soak_anew);
    ROWS_TEST(&all, test_a_cut_of_one_rule_is_told_to_the_other);
    ROWS_TEST(&all, test_the_cut_is_kept_until_the_next_rollout);
    return rows_run(&all);
}
