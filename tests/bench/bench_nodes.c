/* SPDX-License-Identifier: Apache-2.0 */
/* Skyhooks: single facts and a full evaluation among 100,000 placements under all kinds of rules.
 */
#include "bench/bench.h"
#include "support/node_crowd.h"

#define NODES 50000u /* two Skyhooks on each */
#define FACTS 1000u

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

typedef fact make_fact(const node_crowd *c, uint32_t i, char boot_id[HERD_BOOT_BYTES]);

static fact heartbeat(const node_crowd *c, uint32_t i, char boot_id[HERD_BOOT_BYTES])
{
    return node_crowd_heartbeat(c, i * (NODES / FACTS), boot_id);
}

static fact relabel(const node_crowd *c, uint32_t i, char boot_id[HERD_BOOT_BYTES])
{
    static const label tiers[] = {{STR("tier"), STR("b")}, {STR("tier"), STR("c")}};
    fact f = heartbeat(c, i, boot_id);
    f.target.labels = (label_set){&tiers[i % 2], 1};
    return f;
}

static fact gone(const node_crowd *c, uint32_t i, char boot_id[HERD_BOOT_BYTES])
{
    fact f = heartbeat(c, i, boot_id);
    f.kind = FACT_TARGET_GONE;
    return f;
}

static fact outcome_of(const node_crowd *c, uint32_t i, char boot_id[HERD_BOOT_BYTES])
{
    (void)boot_id;
    return node_crowd_outcome(sim_herd(c->sim)->targets.at[i].name);
}

static void measure(const node_crowd *c, const char *name, make_fact *make, int64_t now_ms)
{
    static double seconds[FACTS];
    decision_list out = {0};
    engine *e = sim_engine(c->sim);
    size_t decisions = 0;
    for (uint32_t i = 0; i < FACTS; i++) {
        char boot_id[HERD_BOOT_BYTES];
        fact f = make(c, i, boot_id);
        out.len = 0;
        double start = bench_seconds();
        if (!engine_step(e, &f, 1, now_ms, &out))
            abort();
        seconds[i] = bench_seconds() - start;
        decisions += out.len;
    }
    vec_done(&out);
    if (make == outcome_of && decisions < FACTS)
        abort(); /* outcomes that nobody waits for would be cheap */
    char text[128];
    qsort(seconds, FACTS, sizeof *seconds, compare);
    snprintf(text, sizeof text, "nodes: %s among 100,000 placements, median", name);
    bench_row(text, seconds[FACTS / 2] * 1e6, "us", "<= 20");
    snprintf(text, sizeof text, "nodes: %s among 100,000 placements, 99th percentile", name);
    bench_row(text, seconds[FACTS * 99 / 100] * 1e6, "us", "<= 1000");
}

static void measure_full(const node_crowd *c)
{
    double best = 0;
    err error;
    for (int i = 0; i < BENCH_RUNS; i++) {
        double start = bench_seconds();
        node_crowd_insist(engine_full(sim_engine(c->sim), &error), error.text);
        double seconds = bench_seconds() - start;
        best = i == 0 || seconds < best ? seconds : best;
    }
    bench_row("nodes: full evaluation of 100,000 placements", best * 1e3, "ms", "<= 100");
}

int main(void)
{
    node_crowd c = node_crowd_open(NODES);
    int64_t now_ms = sim_now_ms(c.sim);
    measure(&c, "one outcome", outcome_of, now_ms + 1000);
    measure(&c, "one heartbeat", heartbeat, now_ms + 2000);
    measure(&c, "one label", relabel, now_ms + 3000);
    measure(&c, "one node that is gone", gone, now_ms + 4000);
    measure_full(&c);
    node_crowd_close(&c);
    return 0;
}
