/* SPDX-License-Identifier: Apache-2.0 */
/* Small random fleets: after every step the quick way equals the slow one, a restart changes
 * nothing, and when faults stop the wish is reached. (Reasons: test_cluster_reasons.c.) */
#include "support/herd_random.h"

#define FLEETS 2000
#define STEPS 14

/* ---- a restart ---- */

/* Everything the engine was told of deployments, once more. */
static void replay(herd *h)
{
    for (size_t i = 0; i < h->count; i++)
        if (!h->at[i].gone && h->at[i].was_told) /* what a cache still shows */
            herd_fact(h, (fact){.kind = FACT_REPORT, .report = h->at[i].told});
}

/* The herd goes on with an engine that was saved and restored; or, with the same facts told once
 * more, with the one it has. */
static void restart(herd *h, bool restarting)
{
    buf saved = BUF(1u << 20), kept = BUF(1u << 20), restored = BUF(1u << 20);
    err error;
    assert_true(engine_save(h->e, &saved));
    assert_int_equal(h->facts.len, 0);
    replay(h);
    check_msg(engine_take(h->e, h->facts.at, h->facts.len, h->now_ms), "%s", error.text);
    h->facts.len = 0;
    if (!restarting) {
        buf_done(&saved);
        return;
    }
    assert_true(engine_save(h->e, &kept));
    engine_free(h->e);
    h->e = herd_engine();
    for (size_t i = h->count; i > 0; i--) /* in another order than they came */
        if (!h->at[i - 1].gone)
            herd_target(h, i - 1);
    herd_document(h);
    replay(h);
    check_msg(engine_take(h->e, h->facts.at, h->facts.len, h->now_ms), "%s", error.text);
    h->facts.len = 0;
    check_msg(engine_restore(h->e, buf_str(&saved), &error), "%s", error.text);
    assert_true(engine_save(h->e, &restored));
    size_t same = 0;
    while (same < kept.len && same < restored.len && kept.ptr[same] == restored.ptr[same])
        same++;
    check_msg(same == kept.len && same == restored.len, "saved:\n%.*s\nrestored:\n%.*s",
              STR_ARG(str_part(buf_str(&kept), same > 150 ? same - 150 : 0, 300)),
              STR_ARG(str_part(buf_str(&restored), same > 150 ? same - 150 : 0, 300)));
    buf_done(&saved);
    buf_done(&kept);
    buf_done(&restored);
}

/* Decisions as text, without placement numbers: another engine gives out its own. */
static void tell(const herd *h, buf *out)
{
    for (size_t i = 0; i < h->out.len; i++) {
        const decision *d = &h->out.at[i];
        buf_addf(out, "%d %.*s %.*s %.*s %.*s %d%d%d%d %lld %lld %lld %lld %lld\n", (int)d->kind,
                 STR_ARG(d->target), STR_ARG(d->version), STR_ARG(d->group), STR_ARG(d->state),
                 d->first, d->fix, d->retry, d->failed, (long long)d->number, (long long)d->size,
                 (long long)d->visited, (long long)d->partitions, (long long)d->not_ready);
    }
    buf_addf(out, "next %lld\n", (long long)engine_next_ms(h->e));
}

/* One random life as text; restarting: the engine is saved and restored after every step. */
static void live(uint64_t seed, bool restarting, buf *story)
{
    rng r = {seed};
    wild w = {
        .h = herd_new(1 + rng_below(&r, CLUSTERS_MAX)), .r = &r, .soaks = rng_below(&r, 5) == 0};
    herd *h = w.h;
    random_strategy(&w);
    random_herd(&w);
    herd_load(h);
    for (size_t step = 0; step < STEPS; step++) {
        herd_step(h);
        tell(h, story);
        err error;
        check_msg(engine_full(h->e, &error), "seed %llu, step %zu: %s", (unsigned long long)seed,
                  step, error.text);
        check_msg(engine_check(h->e, &error), "seed %llu, step %zu: %s", (unsigned long long)seed,
                  step, error.text);
        restart(h, restarting);
        for (size_t i = 0; i < h->count; i++)
            if (h->at[i].released && rng_below(&r, 2))
                herd_report(h, i);
        if (rng_below(&r, 3))
            random_event(&w);
        h->now_ms += (int64_t)rng_below(&r, 20000);
    }
    herd_free(h);
}

static void test_full_equals_quick_and_restarts_change_nothing(void **state)
{
    (void)state;
    rng r = rng_seeded();
    for (size_t i = 0; i < FLEETS && !getenv("ONLY"); i++) {
        uint64_t seed = rng_next(&r);
        buf plain = BUF(1u << 20), restarted = BUF(1u << 20);
        live(seed, false, &plain);
        live(seed, true, &restarted);
        str one = buf_str(&plain), other = buf_str(&restarted);
        for (size_t line = 1; one.len > 0 || other.len > 0; line++) {
            str left = str_cut(&one, '\n'), right = str_cut(&other, '\n');
            check_msg(str_eq(left, right), "seed %llu, line %zu:\n%.*s\nrestarted:\n%.*s",
                      (unsigned long long)seed, line, STR_ARG(left), STR_ARG(right));
        }
        buf_done(&plain);
        buf_done(&restarted);
    }
}

/* ---- the end ---- */

static bool is_settled(void *context, const placement_view *view)
{
    bool fine = view->state == PLACEMENT_DONE ||
                (view->state == PLACEMENT_EXCLUDED && view->group.len == 0); /* no partition */
    *(bool *)context &= fine;
    return fine;
}

/* Whatever happened before: faults stop, people say yes, and the wish is reached and kept. */
static void check_end(uint64_t seed)
{
    rng r = {seed};
    wild w = {
        .h = herd_new(1 + rng_below(&r, CLUSTERS_MAX)), .r = &r, .soaks = rng_below(&r, 5) == 0};
    herd *h = w.h;
    random_strategy(&w);
    random_herd(&w);
    herd_load(h);
    for (size_t step = 0; step < STEPS; step++) {
        herd_step(h);
        random_event(&w);
        h->now_ms += (int64_t)rng_below(&r, 20000);
    }
    bool reached = false;
    for (size_t round = 0; !reached && round < 200; round++) {
        herd_act(h, ACT_RESUME, "");
        herd_act(h, ACT_APPROVE, "");
        for (size_t i = 0; i < h->count; i++) {
            herd_cluster *c = &h->at[i];
            c->paused = c->no_namespace = c->failed = c->broken = false;
            c->last_seen_ms = h->now_ms;
            if (c->gone)
                continue;
            herd_target(h, i);
            if (c->exists)
                herd_answers(h, i);
        }
        herd_step(h);
        h->now_ms += 3000;
        reached = true;
        engine_placements(h->e, is_settled, &reached);
    }
    check_msg(reached, "seed %llu: no end", (unsigned long long)seed);
    for (size_t i = 0; i < 3; i++) {
        h->now_ms += 3000;
        check_msg(herd_step(h) == 0, "seed %llu: no rest", (unsigned long long)seed);
    }
    herd_free(h);
}

static void test_every_fleet_whose_faults_stop_reaches_its_end(void **state)
{
    (void)state;
    rng r = rng_seeded();
    for (size_t i = 0; i < FLEETS && !getenv("ONLY"); i++)
        check_end(rng_next(&r));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_full_equals_quick_and_restarts_change_nothing),
        cmocka_unit_test(test_every_fleet_whose_faults_stop_reaches_its_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
