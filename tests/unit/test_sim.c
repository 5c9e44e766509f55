/* SPDX-License-Identifier: Apache-2.0 */
/* The virtual fleet: its parts, what it tells and what it counts. */
#include "support/check.h"

#include "sim/agenda.h"
#include "sim/world.h"

/* ---- parts ---- */

static void dice_repeat_themselves(void **state)
{
    (void)state;
    dice a = dice_of(7), b = dice_of(7), c = dice_of(8);
    bool other = false;
    for (int i = 0; i < 100; i++) {
        uint64_t x = dice_next(&a);
        assert_int_equal(x, dice_next(&b));
        other = other || x != dice_next(&c);
        int64_t between = dice_between(&a, -3, 3);
        assert_in_range(between + 3, 0, 6);
        dice_between(&b, -3, 3);
        dice_between(&c, -3, 3);
    }
    assert_true(other);
}

static void an_agenda_gives_seconds_in_order(void **state)
{
    (void)state;
    agenda a = {0};
    agenda_entries due = {0};
    rng r = {99};
    for (uint32_t i = 0; i < 1000; i++)
        assert_true(agenda_put(&a, (int64_t)rng_below(&r, 50) * 1000, (agenda_entry){.target = i}));
    int64_t last = -1;
    size_t count = 0;
    while (agenda_next_ms(&a) != AGENDA_NEVER) {
        int64_t ms = agenda_next_ms(&a);
        assert_true(ms > last);
        last = ms;
        assert_true(agenda_take(&a, &due));
        for (size_t i = 1; i < due.len; i++)
            assert_true(due.at[i - 1].target < due.at[i].target); /* in the order they were put */
        count += due.len;
    }
    assert_int_equal(count, 1000);
    vec_done(&due);
    agenda_done(&a);
}

static void made_up_targets_are_numbered_on(void **state)
{
    (void)state;
    herd h;
    assert_true(herd_init(&h));
    herd_traits *shared = herd_share(&h, &(herd_traits){0});
    assert_true(herd_make_up(&h, TARGET_NODE, 2, shared, 0));
    assert_true(herd_make_up(&h, TARGET_NODE, 1, shared, 0));
    assert_true(herd_make_up(&h, TARGET_CLUSTER, 1, shared, 0));
    check_text(h.targets.at[2].name, "node-0003");
    check_text(h.targets.at[3].name, "cluster-0001");
    assert_int_equal(herd_find(&h, TARGET_NODE, STR("node-0002")), 1);
    assert_int_equal(herd_find(&h, TARGET_CLUSTER, STR("node-0002")), HERD_NONE);
    herd_traits *own = herd_own(&h, 1);
    assert_true(herd_label(&h, &own->labels, STR("b"), STR("2")));
    assert_true(herd_label(&h, &own->labels, STR("a"), STR("1")));
    assert_true(herd_label(&h, &own->labels, STR("b"), (str){NULL, 0}));
    assert_int_equal(own->labels.len, 1);
    check_text(label_get(own->labels, STR("a")), "1");
    assert_int_equal(shared->labels.len, 0); /* the others keep theirs */
    assert_true(sizeof(herd_target) <= 100);
    herd_done(&h);
}

/* ---- whole runs ---- */

typedef struct fixture {
    document_set *documents;
    object_list *objects;
    problems *found;
    sim *sim;
} fixture;

static const char skyhook_text[] =
    "{\"apiVersion\":\"skyhook.nvidia.com/v1alpha1\",\"kind\":\"DeploymentPolicy\",\"metadata\":{"
    "\"name\":"
    "\"p\"},\"spec\":{\"default\":{\"budget\":{\"percent\":100},\"strategy\":{\"linear\":{"
    "\"initialBatch\":2,"
    "\"delta\":2,\"failureThreshold\":3}}}}}"
    "{\"apiVersion\":\"skyhook.nvidia.com/v1alpha1\",\"kind\":\"Skyhook\",\"metadata\":{"
    "\"name\":\"sk\"},"
    "\"spec\":{\"deploymentPolicy\":\"p\",\"packages\":{\"pack\":{\"version\":\"1.0.0\","
    "\"image\":\"r/p\"}}}}";

static fixture fixture_of(const char *text, sim_settings settings)
{
    fixture f = {document_set_new(), objects_new(), problems_new(), NULL};
    err error = {0};
    settings.duration_ms = -1;
    settings.start_ms = WORLD_START_MS;
    assert_true(documents_read_as(f.documents, STR("test"), str_of(text), FORMAT_JSON, f.found));
    assert_true(objects_read(f.objects, f.documents, f.found));
    f.sim = sim_new(&settings, &error);
    assert_non_null(f.sim);
    for (size_t i = 0; i < f.objects->len; i++)
        assert_true(sim_add_object(f.sim, &f.objects->at[i], &error));
    return f;
}

static void fixture_done(fixture *f)
{
    sim_free(f->sim);
    objects_free(f->objects);
    document_set_free(f->documents);
    problems_free(f->found);
}

static void run(fixture *f)
{
    err error = {0};
    check_msg(sim_run(f->sim, SIM_TO_THE_END, &error), "%s", error.text);
}

/* semantics.md A4, second row: linear, initial 2, delta 2; batch 2 has one failure. */
static void batches_are_counted_as_they_went(void **state)
{
    (void)state;
    err error;
    fixture f = fixture_of(skyhook_text, (sim_settings){.tell = true, .check = true, .full = true});
    assert_true(sim_add_targets(f.sim, TARGET_NODE, 10, (label_set){0}, &error));
    sim_failure failure = sim_failure_of(STR("pack@node-0004"), false);
    assert_true(sim_add_failure(f.sim, &failure, &error));
    run(&f);
    const group_view of = {.change = STR("sk"), .name = STR("__default__")};
    const ledger_group *g = ledger_find(sim_ledger(f.sim), &of);
    assert_non_null(g);
    assert_int_equal(g->batches.len, 3);
    const int64_t sizes[] = {2, 4, 4}, failures[] = {0, 1, 0};
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(g->batches.at[i].size, sizes[i]);
        assert_int_equal(g->batches.at[i].erroring, failures[i]);
    }
    assert_int_equal(g->completed, 9);
    assert_int_equal(g->failed, 1);
    assert_int_equal(g->current_batch, 4);
    sim_counts counts;
    assert_true(sim_count(f.sim, &counts));
    assert_int_equal(counts.done, 9);
    assert_int_equal(counts.failed, 1);
    assert_int_equal(sim_ended(f.sim), SIM_STALLED);
    /* The last batch of four, and the failed one, which is tried again when nobody fresh is left.
     */
    assert_int_equal(sim_ledger(f.sim)->peak_in_flight, 5);
    assert_true(str_starts(sim_story(f.sim),
                           STR("      0s  open batch 1 of __default__ for sk: 2 to go\n"
                               "      0s  start node-0001 for sk (batch 1 of __default__)\n")));
    fixture_done(&f);
}

static void a_failure_that_happens_once_is_retried(void **state)
{
    (void)state;
    err error;
    fixture f = fixture_of(skyhook_text, (sim_settings){0});
    assert_true(sim_add_targets(f.sim, TARGET_NODE, 4, (label_set){0}, &error));
    sim_failure failure = sim_failure_of(STR("node-0002"), true);
    assert_true(sim_add_failure(f.sim, &failure, &error));
    run(&f);
    assert_int_equal(sim_ended(f.sim), SIM_COMPLETE);
    assert_int_equal(sim_ledger(f.sim)->starts, 5);
    fixture_done(&f);
}

/* A fleet that lives is planned from the middle of its work: what runs goes on, in its batch. */
static void nodes_in_flight_go_on(void **state)
{
    (void)state;
    err error;
    fixture before = fixture_of(skyhook_text, (sim_settings){0});
    assert_true(sim_add_targets(before.sim, TARGET_NODE, 10, (label_set){0}, &error));
    assert_true(sim_run(before.sim, 150 * 1000, &error)); /* in batch 2, after its first stage */
    buf saved = BUF(1u << 20);
    assert_true(engine_save(sim_engine(before.sim), &saved));
    fixture f = fixture_of(skyhook_text, (sim_settings){.check = true, .full = true});
    assert_true(sim_add_targets(f.sim, TARGET_NODE, 10, (label_set){0}, &error));
    sim_set_live(f.sim, buf_str(&saved), NULL, 0);
    run(&f);
    assert_int_equal(sim_ended(f.sim), SIM_COMPLETE);
    assert_int_equal(sim_running_count(f.sim), 4);
    assert_int_equal(sim_ledger(f.sim)->starts, 4); /* the two batches after the one that ran: 4 */
    assert_int_equal(sim_ledger(f.sim)->peak_in_flight, 4);
    fixture_done(&f);
    fixture_done(&before);
    buf_done(&saved);
}

static bool one_more(void *context, const placement_view *v)
{
    (void)v;
    ++*(int *)context;
    return true;
}

static int placements_after(fixture *f, int64_t seconds)
{
    int count = 0;
    err error = {0};
    check_msg(sim_run(f->sim, seconds * 1000, &error), "%s", error.text);
    assert_true(engine_placements(sim_engine(f->sim), one_more, &count));
    return count;
}

/* A node that joins is known half a minute later at the latest, or, if that was lost, when
 * everything is listed anew; and so is that it went. */
static void facts_are_late_or_lost(void **state)
{
    (void)state;
    for (int lost = 0; lost < 2; lost++) {
        sim_settings settings = {.seed = 5, .random = true};
        settings.faults = (sim_faults){
            .late_percent = 100, .lost_percent = lost ? 100 : 0, .way = true, .until_ms = 3600000};
        fixture f = fixture_of(skyhook_text, settings);
        happening h = {.kind = HAPPEN_JOIN, .after_ms = 60000, .target = STR("late")};
        err error = {0};
        assert_true(sim_add_happening(f.sim, &h, &error));
        h.target = STR("stays");
        assert_true(sim_add_happening(f.sim, &h, &error));
        h.kind = HAPPEN_DELETE;
        h.after_ms = 700000;
        h.target = STR("late");
        assert_true(sim_add_happening(f.sim, &h, &error));
        assert_int_equal(placements_after(&f, 60), 0);
        assert_int_equal(placements_after(&f, 599), lost ? 0 : 2);
        assert_int_equal(placements_after(&f, 700), 2);
        assert_int_equal(placements_after(&f, 1199), lost ? 2 : 1);
        assert_int_equal(placements_after(&f, 1200), 1);
        run(&f);
        assert_int_equal(sim_ended(f.sim), SIM_COMPLETE);
        fixture_done(&f);
    }
}

static void happenings_are_read_line_by_line(void **state)
{
    (void)state;
    static const struct {
        const char *line, *problem; /* NULL: good */
    } rows[] = {
        {"{\"after\":\"5m\",\"do\":\"cordon\",\"target\":\"n\"}", NULL},
        {"{\"do\":\"label\",\"target\":\"n\",\"labels\":{\"a\":\"b\",\"c\":null}}", NULL},
        {"{\"do\":\"publish\",\"name\":\"d\",\"version\":\"2\",\"after\":\"1d\"}", NULL},
        {"{\"after\":\"5m\"}", "\"do\" is missing"},
        {"{\"do\":\"cordon\"}", "cordon needs \"target\""},
        {"{\"do\":\"explode\"}", "do: found \"explode\", allowed publish"},
        {"{\"do\":\"cordon\",\"target\":\"n\",\"when\":\"now\"}", "found the key \"when\""},
        {"{\"do\":\"cordon\",\"target\":\"n\",\"after\":\"soon\"}", "after: "},
        {"{\"do\":\"taint\",\"target\":\"n\",\"taint\":\"a=b:NoSchedule\"}", NULL},
        {"{\"do\":\"untaint\",\"target\":\"n\",\"taint\":\"a:NoSchedule\"}", NULL},
        {"{\"do\":\"taint\",\"target\":\"n\"}", "taint needs \"target\" and \"taint\""},
        {"{\"do\":\"taint\",\"target\":\"n\",\"taint\":\"a\"}", "taint: found \"a\""},
        {"{\"do\":\"bypass\",\"rule\":\"r\",\"version\":\"2\"}", NULL},
        {"{\"do\":\"bypass\",\"rule\":\"r\"}", "bypass needs \"rule\" and \"version\""},
        {"[]", "allowed one JSON object a line"},
    };
    fixture f =
        fixture_of("{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"n\"}}",
                   (sim_settings){0});
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        err error = {0};
        happening h;
        happening_reader reader = {f.objects->arena, f.documents, f.objects, f.found};
        bool good = happening_read(&reader, str_of(rows[i].line), &h, &error);
        check_msg(good == !rows[i].problem, "row %zu: %s", i, error.text);
        if (rows[i].problem)
            check_err_has(error, rows[i].problem);
    }
    fixture_done(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dice_repeat_themselves),
        cmocka_unit_test(an_agenda_gives_seconds_in_order),
        cmocka_unit_test(made_up_targets_are_numbered_on),
        cmocka_unit_test(batches_are_counted_as_they_went),
        cmocka_unit_test(a_failure_that_happens_once_is_retried),
        cmocka_unit_test(nodes_in_flight_go_on),
        cmocka_unit_test(facts_are_late_or_lost),
        cmocka_unit_test(happenings_are_read_line_by_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
