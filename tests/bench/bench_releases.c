/* SPDX-License-Identifier: Apache-2.0 */
/* Release targets: the plan of a five-deployment bracket over 10,000 resources, and single facts
 * and whole evaluations among 100,000 placements under all kinds of rules. */
#include <string.h>

#include "bench/bench.h"
#include "support/release_fleet.h"

#define BRACKET                                                                                    \
    RELEASE_API                                                                                    \
    "\"RolloutPolicy\",\"metadata\":{\"name\":\"nodes\"},\"spec\":{\"rules\":["                    \
    "{\"deploymentBracket\":{\"deploymentSelector\":\"true\","                                     \
    "\"readinessWindowSeconds\":86400,"                                                            \
    "\"preSelector\":\"deployment.name == 'drain'\",\"postSelector\":\"deployment.name == "        \
    "'uncordon'\"}},"                                                                              \
    "{\"deploymentDependency\":{\"dependsOn\":\"deployment.name == 'os-patch'\","                  \
    "\"appliesTo\":\"deployment.name in ['kubelet', 'containerd']\"}},"                            \
    "{\"gradualRollout\":{\"rolloutType\":\"linear\",\"timeScaleInterval\":30}},"                  \
    "{\"resourceConcurrency\":{\"groupSelector\":\"resource.metadata['stage'] == 'prod'\","        \
    "\"limitType\":\"percentage\",\"limitValue\":20}}]}}\n" RELEASE_API                            \
    "\"Environment\",\"metadata\":{\"name\":\"prod\"},\"spec\":{\"resourceSelector\":\"true\"}}\n"

static void bench_plan(void)
{
    static buf text;
    release_fleet f;
    text = BUF(LIMIT_TEXT_BYTES);
    release_add_deployments(&text, "1");
    release_add_resources(&text, "prod", 10000, NULL);
    buf_addz(&text, BRACKET);
    release_fleet_open(&f, buf_str(&text));
    double start = bench_seconds();
    release_fleet_feed(&f);
    double fed = bench_seconds() - start;
    release_fleet_until(&f, INT64_MAX);
    double seconds = bench_seconds() - start;
    if (f.started != 50000)
        abort();
    bench_row("bracket of 5 over 10,000 resources: documents", fed, "s", "-");
    bench_row("bracket of 5 over 10,000 resources: whole plan", seconds, "s", "<= 2");
    release_fleet_close(&f);
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

#define FACTS 4000

/* One outcome after the other, as they come. */
static void measure_outcomes(release_fleet *f)
{
    static double times[FACTS];
    size_t n = 0;
    uint64_t looked = 0;
    for (; n < FACTS && f->jobs.len > 0; n++) {
        f->now_ms = f->jobs.at[0].end_ms > f->now_ms ? f->jobs.at[0].end_ms : f->now_ms;
        release_fleet_step(f, NULL, 0); /* what time alone brings is not the fact's doing */
        fact ended = release_fleet_answer(f);
        uint64_t before = engine_looked_at(f->engine);
        double start = bench_seconds();
        release_fleet_step(f, &ended, 1);
        times[n] = bench_seconds() - start;
        looked += engine_looked_at(f->engine) - before;
    }
    qsort(times, n, sizeof times[0], compare);
    bench_row("one outcome among 100,000 placements, median", times[n / 2] * 1e6, "us", "<= 20");
    bench_row("one outcome among 100,000 placements, 99th percentile", times[n * 99 / 100] * 1e6,
              "us", "<= 1000");
    bench_row("placements looked at for one outcome", (double)looked / (double)n, "count", "-");
}

/* A freeze that ends makes the engine ask every rule about everything; engine_full asks it all
 * again from the documents and compares. The best of a few: the machine does other things too. */
static void measure_everything(release_fleet *f)
{
    double step = 0, full = 0;
    err error;
    for (int i = 0; i < BENCH_RUNS; i++) {
        fact freeze = {.kind = FACT_ACT, .act = {.act = ACT_FREEZE, .name = STR("f")}};
        release_fleet_step(f, &freeze, 1);
        fact thaw = {.kind = FACT_ACT, .act = {.act = ACT_THAW, .name = STR("f")}};
        double start = bench_seconds();
        release_fleet_step(f, &thaw, 1);
        double seconds = bench_seconds() - start;
        step = i == 0 || seconds < step ? seconds : step;
        start = bench_seconds();
        if (!engine_full(f->engine, &error)) {
            fprintf(stderr, "%s\n", error.text);
            abort();
        }
        seconds = bench_seconds() - start;
        full = i == 0 || seconds < full ? seconds : full;
    }
    bench_row("everything asked again, 100,000 placements", step * 1e3, "ms", "<= 100");
    bench_row("full evaluation of 100,000 placements", full * 1e3, "ms", "<= 100");
}

static void bench_facts(void)
{
    static buf text;
    release_fleet f;
    text = BUF(LIMIT_TEXT_BYTES);
    release_fleet_all_rules(&text, 20000);
    release_fleet_open(&f, buf_str(&text));
    double start = bench_seconds();
    release_fleet_feed(&f);
    bench_row("100,000 placements: documents", bench_seconds() - start, "s", "-");
    release_fleet_approve(&f);
    release_fleet_until(&f, RELEASE_START_MS + 24 * RELEASE_MINUTE_MS);
    if (f.jobs.len < 1000)
        abort(); /* nothing is measured in a fleet at rest */
    measure_outcomes(&f);
    measure_everything(&f);
    release_fleet_close(&f);
}

int main(void)
{
    bench_plan();
    bench_facts();
    return 0;
}
