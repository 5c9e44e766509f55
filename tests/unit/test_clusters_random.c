/* SPDX-License-Identifier: Apache-2.0 */
/* Small random fleets: after every step the quick way equals the slow one, a restart changes
 * nothing, and reasons are true: doing what they name starts the cluster, leaving any of it out
 * does not. */
#include "support/herd.h"

#define FLEETS 2000
#define STEPS 14
#define CLUSTERS_MAX 12

static const char *const amounts[] = {"#0", "#1", "#2", "#3", "10%", "25%", "50%", "100%", NULL};
static const char *const groups[] = {"p0", "p1", "p2"};

static const char *any_amount(rng *r)
{
    return amounts[rng_below(r, COUNT_OF(amounts))];
}

typedef struct wild {
    herd *h;
    rng *r;
    bool soaks; /* reasons of a fleet that soaks come true one after the other, not in one step */
    int64_t edits;
} wild;

static void random_strategy(wild *w)
{
    rollout_strategy *s = &w->h->document.spec.rollout_strategy;
    rng *r = w->r;
    s->max_unavailable = herd_amount(any_amount(r));
    s->max_unavailable_partitions = herd_amount(rng_below(r, 3) ? NULL : any_amount(r));
    s->auto_partition_size = herd_amount(rng_below(r, 2) ? "#3" : "40%");
    s->auto_partition_threshold = rng_below(r, 2) ? 4 : 200;
    s->max_new = (int64_t)(rng_below(r, 4) ? 50 : 1 + rng_below(r, 4));
    if (rng_below(r, 4) == 0)
        s->failure_threshold = (opt_int){true, (int64_t)(1 + rng_below(r, 3))};
    if (w->soaks)
        s->soak_seconds = (opt_int){true, 5};
    if (rng_below(r, 6) == 0)
        s->offline_after_seconds = (opt_int){true, 30};
    if (rng_below(r, 2) == 0)
        return;
    size_t count = 1 + rng_below(r, COUNT_OF(groups));
    for (size_t p = 0; p < count; p++) {
        char select[32]; /* some overlap */
        snprintf(select, sizeof select, "part in (%s,%s)", groups[p],
                 groups[rng_below(r, 4) ? p : rng_below(r, COUNT_OF(groups))]);
        herd_partition(w->h, groups[p], select, rng_below(r, 3) ? NULL : any_amount(r));
        s->partitions.at[p].approval = rng_below(r, 5) == 0;
    }
}

static void random_herd(wild *w)
{
    rng *r = w->r;
    herd *h = w->h;
    for (size_t i = 0; i < h->count; i++) {
        herd_cluster *c = &h->at[i];
        herd_label(h, i, "part", groups[rng_below(r, COUNT_OF(groups))]);
        c->paused = rng_below(r, 10) == 0;
        c->no_namespace = rng_below(r, 12) == 0;
        c->gone = rng_below(r, 8) == 0;
        c->last_seen_ms = rng_below(r, 2) ? h->now_ms : 0;
        if (rng_below(r, 2))
            herd_runs_old(h, i, rng_below(r, 6) != 0);
    }
}

static void random_event(wild *w)
{
    rng *r = w->r;
    herd *h = w->h;
    size_t i = rng_below(r, h->count);
    herd_cluster *c = &h->at[i];
    switch (rng_below(r, 16)) {
    case 0:
        c->paused = !c->paused;
        herd_target(h, i);
        break;
    case 1:
        c->gone = !c->gone;
        c->live = c->applied = STR_EMPTY;
        c->exists = c->ready = c->failed = c->was_told = false;
        herd_target(h, i);
        break;
    case 2: {
        char name[24];
        w->edits++;
        snprintf(name, sizeof name, "v%lld", (long long)(1 + w->edits % 3)); /* A, B, C, A ... */
        herd_edit(h, name);
        break;
    }
    case 3:
        herd_label(h, i, "part", groups[rng_below(r, COUNT_OF(groups))]);
        herd_target(h, i);
        break;
    case 4: herd_act(h, ACT_APPROVE, groups[rng_below(r, COUNT_OF(groups))]); break;
    case 5: herd_act(h, rng_below(r, 3) ? ACT_RESUME : ACT_PAUSE, ""); break;
    case 6:
        c->last_seen_ms = h->now_ms;
        c->no_namespace = false;
        herd_target(h, i);
        break;
    case 7: /* it breaks */
        c->ready = false;
        herd_report(h, i);
        break;
    case 8: /* it fails to apply */
        c->failed = c->exists;
        herd_report(h, i);
        break;
    case 9:
        h->document.spec.rollout_strategy.max_unavailable = herd_amount(any_amount(r));
        herd_document(h);
        break;
    default: /* agents do their work */
        for (size_t k = 0; k < h->count; k++)
            if (h->at[k].exists && !h->at[k].gone && rng_below(r, 2)) {
                h->at[k].failed = false;
                herd_answers(h, k);
            }
        break;
    }
}

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
    check_msg(engine_take(h->e, h->facts.at, h->facts.len, h->now_ms, &error), "%s", error.text);
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
    check_msg(engine_take(h->e, h->facts.at, h->facts.len, h->now_ms, &error), "%s", error.text);
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

/* ---- reasons ---- */

static void settle(herd *h)
{
    for (size_t i = 0; i < 200; i++)
        if (herd_step(h) == 0)
            return;
    fail();
}

typedef struct todo {
    VEC(placement_id) at;
} todo;

static bool collect(void *context, const placement_view *view)
{
    todo *t = context;
    if (view->state != PLACEMENT_DONE)
        assert_true(vec_push(&t->at, view->id));
    return true;
}

/* Does what a reason asks for, or, of those it must be done to, all but one. */
static void obey(herd *h, const reason *q, size_t but)
{
    for (size_t k = 0; k < q->of_count; k++) {
        if (k == but)
            continue;
        herd_cluster *c = herd_find(h, q->of[k]);
        size_t i = c ? (size_t)(c - h->at) : 0;
        switch (q->act) {
        case RELEASE_COMPLETE: {
            placement_view view = herd_view(h, c->name);
            if (c->exists) /* what was released last is there before anything newer can be */
                herd_report(h, i);
            c->exists = true;
            c->live = c->applied = arena_str(h->a, view.wanted);
            c->ready = true;
            c->failed = false;
            herd_report(h, i);
            break;
        }
        case RELEASE_RESUME:
            if (c) {
                c->paused = false;
                herd_target(h, i);
            } else {
                herd_act(h, ACT_RESUME, "");
            }
            break;
        case RELEASE_APPROVE: {
            str name = arena_str(h->a, q->of[k]);
            herd_act(h, ACT_APPROVE, name.ptr);
            break;
        }
        case RELEASE_ONLINE:
            c->no_namespace = false;
            c->last_seen_ms = h->now_ms;
            herd_target(h, i);
            break;
        default: check_msg(false, "act %d", (int)q->act);
        }
    }
}

/* The same fleet once more, at the point where it is stuck. */
static herd *stuck_herd(uint64_t seed)
{
    rng r = {seed};
    wild w = {.h = herd_new(1 + rng_below(&r, CLUSTERS_MAX)), .r = &r};
    random_strategy(&w);
    random_herd(&w);
    herd_load(w.h);
    settle(w.h);
    size_t events = rng_below(&r, 4);
    for (size_t i = 0; i < events; i++) {
        random_event(&w);
        settle(w.h);
    }
    return w.h;
}

static bool started(const herd *h, str name)
{
    for (size_t i = 0; i < h->out.len; i++)
        if (h->out.at[i].kind == DECISION_START && str_eq(h->out.at[i].target, name))
            return true;
    return false;
}

/* Follows all reasons but, of reason skip, the one it must be done to; true if the cluster
 * started. */
static bool follow(uint64_t seed, placement_id id, size_t skip, size_t but)
{
    herd *h = stuck_herd(seed);
    reasons list = {0};
    placement_view view;
    assert_true(engine_placement(h->e, id, &view));
    str name = arena_str(h->a, view.target);
    assert_true(engine_reasons(h->e, id, h->a, &list));
    for (size_t i = 0; i < list.len; i++)
        obey(h, &list.at[i], i == skip ? but : SIZE_MAX);
    herd_step(h);
    bool result = started(h, name);
    herd_free(h);
    return result;
}

static bool waits_for_start(const placement_view *view, const reasons *list)
{
    if (view->state == PLACEMENT_IN_FLIGHT || view->state == PLACEMENT_FAILED)
        return false;
    for (size_t i = 0; i < list->len; i++) {
        reason_rule which = list->at[i].rule;
        if (which == REASON_NOT_READY || which == REASON_NO_PARTITION ||
            list->at[i].act == RELEASE_EDIT)
            return false; /* it runs the version already, or only a person can tell what to do */
    }
    return true;
}

static void check_reasons(uint64_t seed, size_t *checked)
{
    herd *h = stuck_herd(seed);
    todo t = {0};
    engine_placements(h->e, collect, &t);
    for (size_t i = 0; i < t.at.len; i++) {
        reasons list = {0};
        placement_view view;
        assert_true(engine_placement(h->e, t.at.at[i], &view));
        assert_true(engine_reasons(h->e, t.at.at[i], h->a, &list));
        check_msg(list.len > 0, "seed %llu: %.*s has no reason", (unsigned long long)seed,
                  STR_ARG(view.target));
        if (!waits_for_start(&view, &list))
            continue;
        (*checked)++;
        if (getenv("SHOW")) {
            print_message("%.*s in %.*s (%d):\n", STR_ARG(view.target), STR_ARG(view.group),
                          (int)view.state);
            for (size_t k = 0; k < list.len; k++) {
                print_message("    %.*s, %.*s: %.*s; %.*s of",
                              STR_ARG(reason_rule_name(list.at[k].rule)), STR_ARG(list.at[k].scope),
                              STR_ARG(reason_text(h->a, &list.at[k])),
                              STR_ARG(release_act_name(list.at[k].act)));
                for (size_t of = 0; of < list.at[k].of_count; of++)
                    print_message(" %.*s", STR_ARG(list.at[k].of[of]));
                print_message("\n");
            }
        }
        check_msg(follow(seed, view.id, SIZE_MAX, SIZE_MAX), "seed %llu: %.*s does not start",
                  (unsigned long long)seed, STR_ARG(view.target));
        for (size_t k = 0; k < list.len; k++)
            for (size_t of = 0; of < list.at[k].of_count; of++)
                check_msg(!follow(seed, view.id, k, of),
                          "seed %llu: %.*s starts without %.*s of %.*s", (unsigned long long)seed,
                          STR_ARG(view.target), STR_ARG(list.at[k].of[of]),
                          STR_ARG(reason_rule_name(list.at[k].rule)));
    }
    vec_done(&t.at);
    herd_free(h);
}

static void test_reasons_are_true(void **state)
{
    (void)state;
    rng r = rng_seeded();
    size_t checked = 0;
    const char *only = getenv("ONLY"); /* one fleet, to look at */
    if (only)
        check_reasons(strtoull(only, NULL, 10), &checked);
    for (size_t i = 0; !only && i < FLEETS / 4; i++)
        check_reasons(rng_next(&r), &checked);
    print_message("# %zu clusters asked why\n", checked);
    assert_true(checked > 100);
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
        cmocka_unit_test(test_reasons_are_true),
        cmocka_unit_test(test_every_fleet_whose_faults_stop_reaches_its_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
