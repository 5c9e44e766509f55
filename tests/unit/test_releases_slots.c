/* SPDX-License-Identifier: Apache-2.0 */
/* Slots of resourceConcurrency, and the order in which resources take their turn. */
#include "support/check.h"

#include "engine/chain.h"
#include "support/rows.h"
#include "support/world.h"

#define API "apiVersion: drover.dev/v1alpha1\n"

static void open_hosts(world *w, int count, const char *rules)
{
    world_open(w, "2026-03-01T08:00:00Z");
    world_apply(w, API
                "kind: Environment\nmetadata: {name: prod}\nspec: {resourceSelector: 'true'}\n");
    world_apply(
        w, API
        "kind: Deployment\nmetadata: {name: app}\nspec: {resourceSelector: 'true', job: {pull: {"
        "}}}\n");
    buf text = BUF(1 << 24);
    for (int i = 0; i < count; i++)
        buf_addf(
            &text,
            "---\n" API
            "kind: Resource\nmetadata: {name: h%04d, labels: {half: '%d'}}\nspec: {kind: host, "
            "version: v1}\n",
            i, i % 2);
    buf_addc(&text, 0);
    world_apply(w, "%s", text.ptr);
    buf_done(&text);
    world_apply(w, API "kind: RolloutPolicy\nmetadata: {name: p}\nspec:\n  rules:\n%s", rules);
}

static void publish(world *w, const char *tag)
{
    world_apply(
        w,
        API
        "kind: Version\nmetadata: {name: app-%s, creationTimestamp: '%s'}\nspec: {deployment: app,"
        " tag: '%s'}\n",
        tag, time_at(w->now), tag);
}

static size_t running(const world *w)
{
    size_t n = 0;
    for (size_t i = 0; i < w->jobs.len; i++)
        n += !w->jobs.at[i].ended;
    return n;
}

/* Limits: percentages round down but never to nothing; zero is a pause; an empty group does not
 * apply. */
typedef struct limit_row {
    int hosts;
    const char *limit;
    size_t at_once;
} limit_row;

static const limit_row limits[] = {
    {10, "limitType: percentage, limitValue: 20", 2},
    {10, "limitType: percentage, limitValue: 25", 2},
    {3, "limitType: percentage, limitValue: 20", 1},
    {11, "limitType: percentage, limitValue: 50", 5},
    {9, "limitType: percentage, limitValue: 100", 9},
    {10, "limitType: percentage, limitValue: 0", 0},
    {10, "limitType: count, limitValue: 0", 0},
    {10, "limitType: count, limitValue: 3", 3},
    {2, "limitType: count, limitValue: 5", 2},
};

static void c3_limit_row(void **state)
{
    const limit_row *r = *state;
    world w;
    char rules[300];
    snprintf(rules, sizeof rules,
             "  - resourceConcurrency: {groupSelector: 'true', %s}\n  - resourceConcurrency: {"
             "groupSelector: 'false', limitType: count, limitValue: 1}\n",
             r->limit);
    open_hosts(&w, r->hosts, rules);
    publish(&w, "1");
    assert_int_equal(running(&w), r->at_once);
    world_until(&w, INT64_MAX);
    assert_int_equal(w.jobs.len, r->at_once ? r->hosts : 0);
    assert_int_equal(w.peak_running, r->at_once);
    world_close(&w);
}

/* Who waits gets a free slot in the order of names where there is no rollout. */
static void c3_order_of_waiters(void **state)
{
    (void)state;
    world w;
    open_hosts(
        &w, 6,
        "  - resourceConcurrency: {groupSelector: 'true', limitType: count, limitValue: 1}\n");
    publish(&w, "1");
    world_until(&w, INT64_MAX);
    for (int i = 0; i < 6; i++) {
        char name[16];
        snprintf(name, sizeof name, "h%04d", i);
        check_text(str_of(w.jobs.at[i].resource), name);
    }
    world_close(&w);
}

/* Several rules at once: all of a resource's slots together, or none. */
static void c3_several_rules(void **state)
{
    (void)state;
    world w;
    arena *a = arena_new(0);
    open_hosts(&w, 8,
               "  - resourceConcurrency: {groupSelector: 'true', limitType: count, limitValue: 3}\n"
               "  - resourceConcurrency: {groupSelector: 'resource.metadata[\"half\"] == \"1\"', "
               "limitType: count, limitValue: 1}\n");
    publish(&w, "1");
    /* h0 and h1 and h2; h3 waits for the second rule, h4 for the first */
    assert_int_equal(running(&w), 3);
    check_text(reasons_at(&w, a, "app", "h0003"),
               "concurrency:complete h0000,h0001,h0002; concurrency:complete h0001");
    world_until(&w, INT64_MAX);
    assert_int_equal(w.jobs.len, 8);
    arena_free(a);
    world_close(&w);
}

static void c3_timeouts(void **state)
{
    (void)state;
    static const struct {
        const char *what;
        size_t jobs; /* in the end */
        placement_state first;
    } rows[] = {{"hold", 1, PLACEMENT_FAILED},
                {"release", 3, PLACEMENT_FAILED},
                {"quarantine", 3, PLACEMENT_FAILED}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        world w;
        arena *a = arena_new(0);
        char rules[300];
        snprintf(
            rules, sizeof rules,
            "  - resourceConcurrency: {groupSelector: 'true', limitType: count, limitValue: 1, "
            "slotTimeoutSeconds: 600, onTimeout: %s}\n",
            rows[i].what);
        open_hosts(&w, 3, rules);
        assert_true(vec_push(&w.plans, (world_plan){"app", "h0000", 60, 1, false, false}));
        publish(&w, "1");
        world_until(&w, INT64_MAX);
        check_msg(w.jobs.len == rows[i].jobs, "row %zu: %zu", i, w.jobs.len);
        if (rows[i].jobs > 1)
            check_time(w.jobs.at[1].start, "2026-03-01T08:11:00Z");
        check_msg(view_at(&w, "app", "h0000").state == rows[i].first, "row %zu: %d", i,
                  (int)view_at(&w, "app", "h0000").state);
        /* A person retries: the slot is taken again. */
        world_act(&w, (fact_act){.act = ACT_RETRY, .change = STR("app"), .target = STR("h0000")});
        world_until(&w, INT64_MAX);
        check_msg(w.jobs.len == 4, "row %zu: %zu", i, w.jobs.len);
        assert_int_equal(view_at(&w, "app", "h0000").state, PLACEMENT_DONE);
        arena_free(a);
        world_close(&w);
    }
}

/* ---- what failed keeps its slot ---- */

#define LIMIT_ONE "  - resourceConcurrency: {groupSelector: 'true', limitType: count, limitValue: 1"

static void act_on_first(world *w, act_kind what)
{
    world_act(w, (fact_act){.act = what, .change = STR("app"), .target = STR("h0000")});
}

static void halt_first(world *w, act_kind what)
{
    world_act(w, (fact_act){.act = what, .target = STR("h0000")});
}

/* The first host fails, and is halted before a person asks for its retry: at 08:05 nothing has
 * moved. */
static void open_retry_held(world *w, int hosts, const char *rules)
{
    open_hosts(w, hosts, rules);
    assert_true(vec_push(&w->plans, (world_plan){"app", "h0000", 60, 1, false, false}));
    publish(w, "1");
    world_until(w, at_time("2026-03-01T08:05:00Z"));
    assert_int_equal(w->jobs.len, 1);
    halt_first(w, ACT_HALT);
    act_on_first(w, ACT_RETRY);
    assert_int_equal(w->jobs.len, 1);
}

static void c3_a_retry_keeps_the_slot(void **state)
{
    (void)state;
    world w;
    arena *a = arena_new(0);
    open_retry_held(&w, 3, LIMIT_ONE "}\n");
    world_at(&w, "2026-03-01T10:00:00Z");
    assert_int_equal(w.jobs.len, 1);
    check_text(reasons_at(&w, a, "app", "h0000"), "halted:resume h0000");
    check_text(reasons_at(&w, a, "app", "h0001"), "concurrency:complete h0000");
    /* Asking twice is asking once. */
    act_on_first(&w, ACT_RETRY);
    assert_int_equal(w.jobs.len, 1);
    halt_first(&w, ACT_RESUME);
    world_until(&w, INT64_MAX);
    assert_int_equal(w.jobs.len, 4);
    check_text(str_of(w.jobs.at[1].resource), "h0000");
    check_time(w.jobs.at[2].start, "2026-03-01T10:01:00Z");
    arena_free(a);
    world_close(&w);
}

/* What ends the hold of a retry that cannot start; and what does not. */
static void c3_what_frees_the_slot_of_a_retry(void **state)
{
    (void)state;
    world w;
    open_retry_held(&w, 2, LIMIT_ONE "}\n");
    act_on_first(&w, ACT_SKIP);
    assert_int_equal(jobs_count(&w, "app", "h0001"), 1);
    world_close(&w);

    open_retry_held(&w, 2, LIMIT_ONE "}\n");
    publish(&w, "2"); /* h0000 has nothing to mend any more, and is halted */
    assert_int_equal(jobs_count(&w, "app", "h0001"), 1);
    world_close(&w);

    open_retry_held(&w, 2, LIMIT_ONE "}\n");
    world_delete(&w, KIND_RESOURCE, "h0000");
    assert_int_equal(jobs_count(&w, "app", "h0001"), 1);
    world_close(&w);

    /* Asking is no progress. */
    open_retry_held(&w, 2, LIMIT_ONE ", slotTimeoutSeconds: 600, onTimeout: release}\n");
    world_until(&w, INT64_MAX);
    check_time(job_of(&w, "app", "h0001", 0)->start, "2026-03-01T08:11:00Z");
    world_close(&w);

    open_retry_held(&w, 2, LIMIT_ONE ", slotTimeoutSeconds: 600}\n");
    world_until(&w, INT64_MAX);
    assert_int_equal(w.jobs.len, 1);
    world_close(&w);
}

/* Only the first host has a window. */
static void c3_a_closed_window_keeps_the_slot_of_a_retry(void **state)
{
    (void)state;
    world w;
    open_hosts(&w, 2, LIMIT_ONE "}\n");
    world_apply(&w, API "kind: RolloutPolicy\nmetadata: {name: q}\nspec:\n  selector: "
                        "'resource.metadata[\"half\"] == \"0\"'\n  rules:\n"
                        "  - deploymentWindow: {rrule: 'FREQ=HOURLY', durationMinutes: 15}\n");
    publish(&w, "1");
    world_until(&w, at_time("2026-03-01T08:10:00Z"));
    assert_int_equal(w.jobs.len, 2);
    assert_true(vec_push(&w.plans, (world_plan){"app", "h0000", 60, 1, false, false}));
    publish(&w, "2");
    world_until(&w, at_time("2026-03-01T08:20:00Z"));
    act_on_first(&w, ACT_RETRY);
    world_until(&w, INT64_MAX);
    assert_int_equal(w.jobs.len, 5);
    check_time(job_of(&w, "app", "h0000", 2)->start, "2026-03-01T09:00:00Z");
    check_time(job_of(&w, "app", "h0001", 1)->start, "2026-03-01T09:01:00Z");
    world_close(&w);
}

/* What is tried again by itself has its slot in the pause, and when it is held after it. */
static void c3_a_pause_before_a_retry_keeps_the_slot(void **state)
{
    (void)state;
    world w;
    open_hosts(&w, 2, LIMIT_ONE "}\n  - retry: {maxRetries: 1, backoffSeconds: 600}\n");
    assert_true(vec_push(&w.plans, (world_plan){"app", "h0000", 60, 1, false, false}));
    publish(&w, "1");
    world_until(&w, at_time("2026-03-01T08:05:00Z"));
    halt_first(&w, ACT_HALT);
    world_at(&w, "2026-03-01T09:00:00Z");
    assert_int_equal(w.jobs.len, 1);
    halt_first(&w, ACT_RESUME);
    world_until(&w, INT64_MAX);
    assert_int_equal(w.jobs.len, 3);
    check_time(job_of(&w, "app", "h0001", 0)->start, "2026-03-01T09:01:00Z");
    world_close(&w);
}

#define ONE_BY_ONE                                                                                 \
    "  - deploymentPolicy: {default: {budget: {count: 1}, strategy: {fixed: {initialBatch: 1}}}}\n"

/* The next host has the place in the batch and waits for the slot: who has the slot and waits for
 * the place lets it go, or both would wait for ever. As long as something else holds it, it keeps
 * its slot. */
static void c3_a_slot_is_not_kept_for_a_place_in_a_batch(void **state)
{
    (void)state;
    world w;
    open_retry_held(&w, 2, LIMIT_ONE "}\n" ONE_BY_ONE);
    world_at(&w, "2026-03-01T09:00:00Z");
    assert_int_equal(w.jobs.len, 1);
    halt_first(&w, ACT_RESUME);
    world_until(&w, INT64_MAX);
    assert_int_equal(w.jobs.len, 3);
    check_text(str_of(w.jobs.at[1].resource), "h0001");
    check_time(job_of(&w, "app", "h0000", 1)->start, "2026-03-01T09:01:00Z");
    world_close(&w);

    /* The same when a rule says only later that it is tried again. */
    open_hosts(&w, 2, LIMIT_ONE "}\n" ONE_BY_ONE);
    assert_true(vec_push(&w.plans, (world_plan){"app", "h0000", 60, 1, false, false}));
    publish(&w, "1");
    world_at(&w, "2026-03-01T08:05:00Z");
    assert_int_equal(w.jobs.len, 1);
    world_apply(&w, API "kind: RolloutPolicy\nmetadata: {name: q}\nspec:\n  rules:\n"
                        "  - retry: {maxRetries: 1, backoffSeconds: 600}\n");
    world_until(&w, INT64_MAX);
    assert_int_equal(w.jobs.len, 3);
    check_time(job_of(&w, "app", "h0001", 0)->start, "2026-03-01T08:11:00Z");
    check_time(job_of(&w, "app", "h0000", 1)->start, "2026-03-01T08:12:00Z");
    world_close(&w);
}

/* A host that speaks FleetLock takes the same slots, and may ask twice. */
static void c3_fleetlock_hosts(void **state)
{
    (void)state;
    world w;
    open_hosts(
        &w, 2,
        "  - resourceConcurrency: {groupSelector: 'true', limitType: count, limitValue: 1}\n");
    world_act(&w, (fact_act){.act = ACT_CLAIM_SLOT, .target = STR("h0001")});
    world_act(&w, (fact_act){.act = ACT_CLAIM_SLOT, .target = STR("h0001")});
    publish(&w, "1");
    /* The holder always passes; the other waits. */
    assert_int_equal(w.jobs.len, 1);
    check_text(str_of(w.jobs.at[0].resource), "h0001");
    world_until(&w, at_time("2026-03-01T09:00:00Z"));
    assert_int_equal(w.jobs.len, 1);
    world_act(&w, (fact_act){.act = ACT_FREE_SLOT, .target = STR("h0001")});
    world_until(&w, INT64_MAX);
    assert_int_equal(w.jobs.len, 2);
    world_close(&w);
}

/* A limit that shrinks stops starts, never what runs. */
static void c3_shrinking_limit(void **state)
{
    (void)state;
    world w;
    open_hosts(&w, 6,
               "  - id: c\n    resourceConcurrency: {groupSelector: 'true', limitType: count, "
               "limitValue: 4}\n");
    publish(&w, "1");
    assert_int_equal(running(&w), 4);
    world_apply(&w, API
                "kind: RolloutPolicy\nmetadata: {name: p}\nspec:\n  rules:\n  - id: c\n    "
                "resourceConcurrency: {groupSelector: 'true', limitType: count, limitValue: 1}\n");
    assert_int_equal(running(&w), 4);
    world_until(&w, INT64_MAX);
    assert_int_equal(w.jobs.len, 6);
    assert_int_equal(w.jobs.at[5].start - w.jobs.at[4].start, 60);
    world_close(&w);
}

/* A thousand resources whose turn comes in the same second never take more than 200 slots of 20 %.
 */
static void c3_thousand_at_once(void **state)
{
    (void)state;
    world w;
    open_hosts(
        &w, 1000,
        "  - resourceConcurrency: {groupSelector: 'true', limitType: percentage, limitValue: "
        "20}\n");
    w.quiet = true;
    publish(&w, "1");
    assert_int_equal(running(&w), 200);
    world_until(&w, INT64_MAX);
    assert_int_equal(w.jobs.len, 1000);
    assert_int_equal(w.peak_running, 200);
    err error;
    check_msg(engine_full(w.engine, &error), "%s", error.text);
    /* Incremental: one outcome among a thousand looks at few of them. */
    world_apply(&w,
                API "kind: Version\nmetadata: {name: app-2}\nspec: {deployment: app, tag: '2'}\n");
    uint64_t before = engine_looked_at(w.engine);
    world_job *j = &w.jobs.at[1000];
    w.now++;
    fact f = job_answer(&w, j);
    world_step(&w, &f, 1);
    check_msg(engine_looked_at(w.engine) - before < 20, "%llu targets looked at",
              (unsigned long long)(engine_looked_at(w.engine) - before));
    world_close(&w);
}

/* ---- positions ---- */

static str key_of(arena *a, int i, const char *version_id)
{
    return arena_printf(
        a,
        "1111111%d-1111-4111-8111-111111111111-22222222-2222-4222-8222-222222222222-33333"
        "333-3333-4333-8333-333333333333%s",
        i, version_id);
}

/* ctrlplane.md 3.3 */
static void c4_hash_vectors(void **state)
{
    (void)state;
    arena *a = arena_new(0);
    const char *four = "44444444-4444-4444-8444-444444444444",
               *five = "55555555-5555-4555-8555-555555555555";
    assert_true(fnv1a_64(key_of(a, 9, four), FNV1A_64_OFFSET) == UINT64_C(0x12c256b3561d774b));
    assert_true(fnv1a_64(key_of(a, 3, four), FNV1A_64_OFFSET) == UINT64_C(0x2bca1d7fefe67215));
    assert_true(fnv1a_64(key_of(a, 0, four), FNV1A_64_OFFSET) == UINT64_C(0x798dfca1ebdc57a4));
    assert_true(fnv1a_64(key_of(a, 5, four), FNV1A_64_OFFSET) == UINT64_C(0xf4df506a5dbfa2a7));
    assert_true(fnv1a_64(key_of(a, 2, five), FNV1A_64_OFFSET) == UINT64_C(0x03ef5a0e3bc8da38));
    assert_true(
        fnv1a_64(STR("11111116-1111-4111-8111-11111111111166666666-6666-4666-8666-666666666666"),
                 FNV1A_64_OFFSET) == UINT64_C(0x08168492f7c2f31a));
    arena_free(a);
}

/* The same ids as documents: the order in which the engine starts them. */
static void c4_seed_002_bracket_aware_positions(void **state)
{
    (void)state;
    static const struct {
        const char *version_id, *bracket, *order, *type;
        int offset; /* of the last one, in seconds */
    } rows[] = {
        {"44444444-4444-4444-8444-444444444444", "", "9302768415", "linear", 540},
        {"55555555-5555-4555-8555-555555555555", "", "2954863017", "linear", 540},
        {"55555555-5555-4555-8555-555555555555", "", "2954863017", "linear-normalized", 54},
        {"55555555-5555-4555-8555-555555555555",
         "  - deploymentBracket: {deploymentSelector: 'true', readinessMode: immediate}\n    id: "
         "66666666-6666-4666-8666-666666666666\n",
         "6257843109", "linear", 540}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        world w;
        world_open(&w, "2026-03-01T08:00:00Z");
        world_apply(&w, API
                    "kind: Environment\nmetadata: {name: prod, uid: "
                    "22222222-2222-4222-8222-222222222222}\nspec: {resourceSelector: 'true'}\n");
        world_apply(&w, API
                    "kind: Deployment\nmetadata: {name: app, uid: 33333333-3333-4333-8333-3333333"
                    "33333}\nspec: {resourceSelector: 'true', job: {pull: {}}}\n");
        for (int k = 0; k < 10; k++)
            world_apply(&w,
                        API
                        "kind: Resource\nmetadata: {name: node-%d, uid: "
                        "1111111%d-1111-4111-8111-111111111111}\nspec: {kind: host, version: v1}\n",
                        k, k);
        world_apply(
            &w,
            API "kind: RolloutPolicy\nmetadata: {name: p}\nspec:\n  rules:\n  - gradualRollout: {"
                "rolloutType: %s, timeScaleInterval: 60}\n%s",
            rows[i].type, rows[i].bracket);
        world_apply(
            &w,
            API
            "kind: Version\nmetadata: {name: app-1, uid: %s}\nspec: {deployment: app, tag: '1'}\n",
            rows[i].version_id);
        world_until(&w, INT64_MAX);
        assert_int_equal(w.jobs.len, 10);
        for (int k = 0; k < 10; k++)
            check_msg(w.jobs.at[k].resource[5] == rows[i].order[k], "row %zu: place %d is %s", i, k,
                      w.jobs.at[k].resource);
        assert_int_equal(w.jobs.at[9].start - w.jobs.at[0].start, rows[i].offset);
        world_close(&w);
    }
}

/* Positions are frozen when the rollout starts; who joins later goes to the end. */
static void c4_frozen_positions(void **state)
{
    (void)state;
    world w;
    open_hosts(&w, 4, "  - gradualRollout: {rolloutType: linear, timeScaleInterval: 600}\n");
    publish(&w, "1");
    world_until(&w, w.now + 60);
    for (int i = 4; i < 7; i++)
        world_apply(
            &w, API "kind: Resource\nmetadata: {name: h%04d}\nspec: {kind: host, version: v1}\n",
            i);
    world_until(&w, INT64_MAX);
    for (int i = 0; i < 7; i++) {
        assert_int_equal(w.jobs.at[i].start - w.jobs.at[0].start, i * 600);
        assert_int_equal(w.jobs.at[i].resource[4] >= '4', i >= 4);
    }
    world_close(&w);
}

int main(void)
{
    static row_list all;
    for (size_t i = 0; i < COUNT_OF(limits); i++)
        rows_add(&all, c3_limit_row, &limits[i], "C3: %d hosts, %s", limits[i].hosts,
                 limits[i].limit);
    ROWS_TEST(&all, c3_order_of_waiters);
    ROWS_TEST(&all, c3_several_rules);
    ROWS_TEST(&all, c3_timeouts);
    ROWS_TEST(&all, c3_a_retry_keeps_the_slot);
    ROWS_TEST(&all, c3_what_frees_the_slot_of_a_retry);
    ROWS_TEST(&all, c3_a_closed_window_keeps_the_slot_of_a_retry);
    ROWS_TEST(&all, c3_a_pause_before_a_retry_keeps_the_slot);
    ROWS_TEST(&all, c3_a_slot_is_not_kept_for_a_place_in_a_batch);
    ROWS_TEST(&all, c3_fleetlock_hosts);
    ROWS_TEST(&all, c3_shrinking_limit);
    ROWS_TEST(&all, c3_thousand_at_once);
    ROWS_TEST(&all, c4_hash_vectors);
    ROWS_TEST(&all, c4_seed_002_bracket_aware_positions);
    ROWS_TEST(&all, c4_frozen_positions);
    return rows_run(&all);
}
