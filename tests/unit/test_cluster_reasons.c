/* SPDX-License-Identifier: Apache-2.0 */
/* Explanations for real, on clusters: for random fleets that are stuck, doing what the reasons name
 * starts the cluster in that step; leaving any of it out, or doing what another waits for, does
 * not. What each act is, and what is not asked, is said at the functions. */
#include "support/herd_random.h"

#include "support/explain.h"

#define FLEETS 6000
#define STARVED 25

typedef struct stuck_herd {
    herd *h;
    int64_t until_ms; /* when all is done, this is waited for */
} stuck_herd;

static void settle(herd *h)
{
    for (size_t i = 0; i < 200; i++)
        if (herd_step(h) == 0)
            return;
    fail();
}

static void *stuck(uint64_t seed)
{
    rng r = {seed};
    wild w = {
        .h = herd_new(1 + rng_below(&r, CLUSTERS_MAX)), .r = &r, .soaks = rng_below(&r, 3) == 0};
    random_strategy(&w);
    random_herd(&w);
    herd_load(w.h);
    settle(w.h);
    size_t events = rng_below(&r, 5);
    for (size_t i = 0; i < events; i++) {
        random_event(&w);
        settle(w.h);
        w.h->now_ms += (int64_t)rng_below(&r, 4) * 1000;
    }
    settle(w.h);
    stuck_herd *s = calloc(1, sizeof *s);
    s->h = w.h;
    return s;
}

static void stuck_free(void *context)
{
    stuck_herd *s = context;
    herd_free(s->h);
    free(s);
}

static engine *stuck_engine(void *context)
{
    return ((stuck_herd *)context)->h->e;
}

/* ---- doing what a reason names ---- */

/* It runs what is wanted there, and is well. */
static void complete(herd *h, herd_cluster *c)
{
    size_t i = (size_t)(c - h->at);
    placement_view view = herd_view(h, c->name);
    if (c->exists) /* what was released last is there before anything newer can be */
        herd_report(h, i);
    c->exists = true;
    c->live = c->applied = arena_str(h->a, view.wanted);
    c->ready = true;
    c->failed = false;
    herd_report(h, i);
}

/* A strategy that holds nobody back; and, for a version that failed, another one. */
static void edit(herd *h, const reason *r)
{
    rollout_strategy *s = &h->document.spec.rollout_strategy;
    s->max_unavailable = s->max_unavailable_partitions = herd_amount("100%");
    s->max_new = CLUSTERS_MAX;
    s->soak_seconds = (opt_int){0};
    s->partitions.len = 0; /* they are made anew by this, and who matches none would be left out */
    if (r->rule == REASON_FAILED)
        herd_edit(h, "repaired");
    else
        herd_document(h);
}

static void obey_one(herd *h, const reason *r, str of)
{
    herd_cluster *c = herd_find(h, of);
    size_t i = c ? (size_t)(c - h->at) : 0;
    switch (r->act) {
    case RELEASE_COMPLETE: complete(h, c); return;
    case RELEASE_RESUME:
        if (!c) {
            herd_act(h, ACT_RESUME, "");
            return;
        }
        c->paused = false;
        herd_target(h, i);
        return;
    case RELEASE_APPROVE: herd_act(h, ACT_APPROVE, arena_str(h->a, of).ptr); return;
    case RELEASE_ONLINE:
        c->no_namespace = false;
        c->last_seen_ms = h->now_ms;
        herd_target(h, i);
        return;
    case RELEASE_EDIT: edit(h, r); return;
    case RELEASE_TIME:
    case RELEASE_RETRY:
    case RELEASE_RESET:
    case RELEASE_LABEL:
    case RELEASE_UNTAINT:
    case RELEASE_UNCORDON:
    case RELEASE_CORDON:
    case RELEASE_THAW:
    case RELEASE_PUBLISH: break;
    }
    check_msg(false, "act %d of a cluster", (int)r->act);
}

static void obey(void *context, const explain_target *of, const reason *r)
{
    stuck_herd *s = context;
    (void)of;
    if (r->act == RELEASE_TIME) {
        s->until_ms = r->next_ms > s->until_ms ? r->next_ms : s->until_ms;
        return;
    }
    for (size_t i = 0; i < r->of_count; i++)
        obey_one(s->h, r, r->of[i]);
}

static bool starts_now(herd *h, const explain_target *of)
{
    herd_step(h);
    for (size_t i = 0; i < h->out.len; i++)
        if (h->out.at[i].kind == DECISION_START && str_eq(h->out.at[i].target, str_of(of->target)))
            return true;
    return false;
}

static bool starts(void *context, const explain_target *of)
{
    stuck_herd *s = context;
    bool started = starts_now(s->h, of);
    while (!started && s->until_ms > s->h->now_ms) {
        int64_t next_ms = engine_next_ms(s->h->e);
        bool sooner = next_ms > s->h->now_ms && next_ms < s->until_ms;
        s->h->now_ms = sooner ? next_ms : s->until_ms;
        started = starts_now(s->h, of);
    }
    return started;
}

/* Who is in flight, or runs what is wanted and is not ready, waits for no start. Who is in no
 * partition must be given a label, and only then is known what holds it in the partition it
 * got. */
static bool asks(const placement_view *view, const reasons *list)
{
    for (size_t i = 0; i < list->len; i++)
        if (list->at[i].rule == REASON_NOT_READY || list->at[i].act == RELEASE_LABEL)
            return false;
    return view->state != PLACEMENT_IN_FLIGHT;
}

static bool several_not_ready(const stuck_herd *s)
{
    return s->h->document.spec.rollout_strategy.max_unavailable_partitions.kind != AMOUNT_NONE &&
           explain_exempt("not-ready");
}

/* A soak takes time, in which others are released: who uses up a small maxNew is worked out as if
 * all of it were one pass. And where several partitions may be not ready at once, another one may
 * become ready meanwhile. */
static bool single(void *context, const reasons *list, size_t index)
{
    const stuck_herd *s = context;
    bool soaks = false;
    (void)index;
    for (size_t i = 0; i < list->len; i++)
        soaks |= list->at[i].rule == REASON_SOAK;
    bool small = s->h->document.spec.rollout_strategy.max_new < CLUSTERS_MAX;
    return !soaks || !((small && explain_exempt("max-new")) || several_not_ready(s));
}

/* Where several partitions may be not ready, another one may become so than is named; and one in
 * which nobody waits needs no approval. */
static bool one_way(void *context)
{
    const stuck_herd *s = context;
    const rollout_strategy *given = &s->h->document.spec.rollout_strategy;
    bool one = !several_not_ready(s);
    for (size_t p = 0; p < given->partitions.len; p++)
        one &= !given->partitions.at[p].approval || !explain_exempt("approval");
    return one;
}

static bool each(const reason *r)
{
    (void)r;
    return true;
}

static void test_reasons_are_true(void **state)
{
    (void)state;
    static const explain_fleet how = {.stuck = stuck,
                                      .free = stuck_free,
                                      .engine = stuck_engine,
                                      .asks = asks,
                                      .each = each,
                                      .single = single,
                                      .one_way = one_way,
                                      .obey = obey,
                                      .starts = starts};
    explain_counts counts = {0};
    explain_fleets(&how, FLEETS, &counts);
    if (!getenv("ONLY") && !getenv("FLEETS"))
        assert_true(counts.asked > FLEETS);
}

/* The first partition broke and came back while the second one soaked, whose time goes on. */
static void test_a_soak_that_has_begun_goes_on(void **state)
{
    (void)state;
    herd *h = herd_new(3);
    rollout_strategy *given = &h->document.spec.rollout_strategy;
    given->max_unavailable = herd_amount("#0");
    given->soak_seconds = (opt_int){true, 60};
    for (size_t i = 0; i < 3; i++) {
        char select[32];
        snprintf(select, sizeof select, "part=%s", herd_groups[i]);
        herd_partition(h, herd_groups[i], select, NULL);
        herd_label(h, i, "part", herd_groups[i]);
    }
    herd_load(h);
    herd_finish(h);
    h->now_ms += 60000;
    herd_finish(h);
    int64_t second_ms = h->now_ms; /* it is ready since then */
    h->now_ms += 10000;
    h->at[0].ready = false;
    herd_report(h, 0);
    herd_settle(h);
    h->now_ms += 10000;
    herd_answers(h, 0);
    herd_settle(h);
    reasons list = {0};
    assert_true(engine_reasons(h->e, herd_view(h, "c00003").id, h->a, &list));
    assert_int_equal(list.len, 2);
    assert_int_equal(list.at[0].next_ms, h->now_ms + 60000);
    assert_int_equal(list.at[1].next_ms, second_ms + 60000);
    h->now_ms += 60000;
    assert_int_equal(herd_step(h), 1);
    herd_free(h);
}

/* c00001 is in two partitions, and the first is empty without it: when it has its namespace that
 * one must be ready for a while before the second is reached, in which it could start at once. */
static void test_who_is_let_in_makes_its_partition_soak(void **state)
{
    (void)state;
    herd *h = herd_new(3);
    rollout_strategy *given = &h->document.spec.rollout_strategy;
    given->max_unavailable = herd_amount("#1");
    given->soak_seconds = (opt_int){true, 60};
    herd_partition(h, herd_groups[0], "part=both", NULL);
    herd_partition(h, herd_groups[1], "part in (both,own)", "#2");
    herd_partition(h, herd_groups[2], "part=rest", NULL);
    for (size_t i = 0; i < 3; i++) {
        herd_label(h, i, "part", i == 0 ? "both" : i == 1 ? "own" : "rest");
        herd_runs_old(h, i, i != 2); /* c00003 is unavailable */
    }
    h->at[0].no_namespace = true;
    herd_load(h);
    herd_settle(h);
    reasons list = {0};
    assert_true(engine_reasons(h->e, herd_view(h, "c00001").id, h->a, &list));
    assert_int_equal(list.len, 2);
    assert_int_equal(list.at[0].rule, REASON_NO_NAMESPACE);
    assert_int_equal(list.at[1].rule, REASON_UNAVAILABLE);
    check_text(list.at[1].of[0], "c00003");
    h->at[0].no_namespace = false;
    herd_target(h, 0);
    assert_int_equal(herd_step(h), 0);
    herd_answers(h, 2);
    assert_int_equal(herd_step(h), 1);
    herd_free(h);
}

static void test_asking_without_memory(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < STARVED; i++) {
        stuck_herd *s = stuck(EXPLAIN_SEED + i);
        explain_starved(s->h->e, s->h->now_ms);
        stuck_free(s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reasons_are_true),
        cmocka_unit_test(test_a_soak_that_has_begun_goes_on),
        cmocka_unit_test(test_who_is_let_in_makes_its_partition_soak),
        cmocka_unit_test(test_asking_without_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
