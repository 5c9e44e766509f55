/* SPDX-License-Identifier: Apache-2.0 */
/* What one agent's report costs while a Bundle rolls out, and what a whole rollout costs. */
#include "bench/bench.h"

#include <stdlib.h>

#include "base/mem.h"
#include "engine/engine.h"

#define NAME_BYTES 32
#define REPORTS 500u

typedef struct fleet {
    size_t count;
    char (*names)[NAME_BYTES];
    bundle document;
    object object;
    arena *a;
    engine *e;
    decision_list out;
    VEC(fact) facts;
    int64_t now_ms;
    size_t released;
} fleet;

static void insist(bool good)
{
    if (!good)
        abort();
}

static void step(fleet *f)
{
    f->out.len = 0;
    insist(engine_step(f->e, f->facts.at, f->facts.len, ++f->now_ms, &f->out));
    f->facts.len = 0;
    f->released = 0;
    for (size_t i = 0; i < f->out.len; i++)
        f->released += f->out.at[i].kind == DECISION_DEPLOY;
}

static fact report(str target, str live)
{
    return (fact){.kind = FACT_REPORT,
                  .report = {.change = STR("b"),
                             .target = target,
                             .exists = true,
                             .live = live,
                             .applied = live,
                             .ready = true}};
}

static fleet fleet_of(size_t count, int_or_percent unavailable)
{
    fleet f = {.count = count, .a = arena_new(0), .e = NULL, .now_ms = 1000};
    err error;
    f.names = mem_zalloc(count * NAME_BYTES);
    f.e = engine_new(NULL, &error);
    bundle_target *target = ARENA_NEW(f.a, bundle_target);
    target->match.cluster_selector.compiled = selector_compile(f.a, NULL, 0, &error);
    f.document.metadata.name = STR("b");
    f.document.spec.contents_id = STR("new");
    f.document.spec.targets = (bundle_target_list){target, 1};
    f.document.spec.rollout_strategy = (rollout_strategy){
        .max_unavailable = unavailable, .auto_partition_threshold = 200, .max_new = 50};
    for (size_t i = 0; i < count; i++) {
        snprintf(f.names[i], NAME_BYTES, "cluster-%06zu", i);
        fact_target t = {
            .kind = TARGET_CLUSTER, .name = str_of(f.names[i]), .deploy_namespace = STR("x")};
        insist(vec_push(&f.facts, (fact){.kind = FACT_TARGET, .target = t}));
    }
    return f;
}

static void begin(fleet *f)
{
    f->object =
        (object){.kind = KIND_BUNDLE, .metadata = &f->document.metadata, .bundle = &f->document};
    insist(vec_push(&f->facts, (fact){.kind = FACT_DOCUMENT, .document = &f->object}));
    for (size_t i = 0; i < f->count; i++)
        insist(vec_push(&f->facts, report(str_of(f->names[i]), STR("old:0"))));
    step(f);
}

static void end(fleet *f)
{
    engine_free(f->e);
    arena_free(f->a);
    mem_free(f->names);
    vec_done(&f->facts);
    vec_done(&f->out);
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* One cluster becomes ready, the next is released: one fact, one step, again and again. */
static void measure_reports(size_t count, const char *name)
{
    fleet f = fleet_of(count, (int_or_percent){AMOUNT_COUNT, 5, STR_EMPTY});
    begin(&f);
    double seconds[REPORTS];
    for (size_t i = 0; i < REPORTS; i++) {
        str target = STR_EMPTY, live = STR_EMPTY;
        for (size_t d = 0; d < f.out.len; d++)
            if (f.out.at[d].kind == DECISION_DEPLOY) {
                target = arena_str(f.a, f.out.at[d].target);
                live = arena_str(f.a, f.out.at[d].version);
            }
        insist(target.len > 0 && vec_push(&f.facts, report(target, live)));
        double start = bench_seconds();
        step(&f);
        seconds[i] = bench_seconds() - start;
    }
    qsort(seconds, REPORTS, sizeof *seconds, by_value);
    bench_row(name, seconds[REPORTS / 2] * 1e6, "us median", "<= 20");
    bench_row(name, seconds[REPORTS * 99 / 100] * 1e6, "us 99th", "<= 1000");
    end(&f);
}

/* A whole update at 10%: after each pass all that was released reports at once. */
static void measure_rollout(size_t count, const char *name)
{
    fleet f =
        fleet_of(count, (int_or_percent){AMOUNT_PERCENT, 10 * AMOUNT_PERCENT_SCALE, STR_EMPTY});
    double start = bench_seconds();
    begin(&f);
    while (f.released > 0) {
        for (size_t d = 0; d < f.out.len; d++)
            if (f.out.at[d].kind == DECISION_DEPLOY)
                insist(vec_push(&f.facts, report(arena_str(f.a, f.out.at[d].target),
                                                 arena_str(f.a, f.out.at[d].version))));
        step(&f);
    }
    bench_row(name, (bench_seconds() - start) * 1e3, "ms", "-");
    end(&f);
}

/* Why is it not moving, for clusters of the last partition. */
static void measure_reasons(size_t count, const char *name)
{
    fleet f =
        fleet_of(count, (int_or_percent){AMOUNT_PERCENT, 10 * AMOUNT_PERCENT_SCALE, STR_EMPTY});
    begin(&f);
    step(&f);
    double start = bench_seconds();
    for (size_t i = 0; i < 100; i++) {
        arena_place here = arena_mark(f.a);
        reasons list = {0};
        insist(engine_reasons(f.e, (placement_id)(count - i), f.a, &list) && list.len > 0);
        arena_rewind(f.a, here);
    }
    bench_row(name, (bench_seconds() - start) * 1e6 / 100, "us", "-");
    end(&f);
}

/* Everything counted again, and the pass made the slow way. The best of a few: the machine does
 * other things too. */
static void measure_full(size_t count, const char *name)
{
    fleet f =
        fleet_of(count, (int_or_percent){AMOUNT_PERCENT, 10 * AMOUNT_PERCENT_SCALE, STR_EMPTY});
    err error;
    double best = 0;
    begin(&f);
    for (int i = 0; i < BENCH_RUNS; i++) {
        double start = bench_seconds();
        insist(engine_full(f.e, &error));
        double seconds = bench_seconds() - start;
        best = i == 0 || seconds < best ? seconds : best;
    }
    bench_row(name, best * 1e3, "ms", "<= 100");
    end(&f);
}

int main(void)
{
    measure_reports(1000, "clusters: one report among 1,000");
    measure_reports(10000, "clusters: one report among 10,000");
    measure_reports(100000, "clusters: one report among 100,000");
    measure_rollout(10000, "clusters: a rollout over 10,000");
    measure_rollout(100000, "clusters: a rollout over 100,000");
    measure_reasons(10000, "clusters: reasons of one among 10,000");
    measure_full(100000, "clusters: full evaluation of 100,000");
    return 0;
}
