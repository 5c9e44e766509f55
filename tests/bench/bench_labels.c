/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/bench.h"

#include <stdlib.h>

#include "base/mem.h"
#include "select/labels.h"

#define NODES 1024
#define LABELS 12

typedef struct fleet {
    const selector *s;
    label_set nodes[NODES];
    uint64_t matched;
} fleet;

/* What a node of a cloud carries. Every third one lacks the role. */
static label_set make_node(arena *a, unsigned i)
{
    label *at = ARENA_ARRAY(a, LABELS, label);
    if (!at)
        abort();
    size_t n = 0;
    at[n++] = (label){STR("beta.kubernetes.io/arch"), STR("amd64")};
    at[n++] = (label){STR("beta.kubernetes.io/os"), STR("linux")};
    at[n++] = (label){STR("kubernetes.io/arch"), STR("amd64")};
    at[n++] = (label){STR("kubernetes.io/hostname"), arena_printf(a, "node-%04u", i)};
    at[n++] = (label){STR("kubernetes.io/os"), STR("linux")};
    at[n++] = (label){STR("node.kubernetes.io/instance-type"), STR("m5.4xlarge")};
    at[n++] = (label){STR("nvidia.com/gpu.present"), STR("true")};
    at[n++] = (label){STR("environment"), i % 8 ? STR("production") : STR("staging")};
    at[n++] = (label){STR("topology.kubernetes.io/region"), STR("eu-central-1")};
    at[n++] = (label){STR("topology.kubernetes.io/zone"),
                      arena_printf(a, "eu-central-1%c", 'a' + (int)(i % 4))};
    at[n++] = (label){STR("example.com/team"), STR("storage")};
    if (i % 3)
        at[n++] = (label){STR("node-role.kubernetes.io/worker"), STR("")};
    label_set set;
    if (!label_set_sort(at, n, &set, NULL))
        abort();
    return set;
}

static void match(void *context, uint64_t count)
{
    fleet *f = context;
    uint64_t matched = 0;
    for (uint64_t i = 0; i < count; i++)
        matched += selector_match(f->s, f->nodes[i % NODES]);
    f->matched = matched;
    bench_keep(matched);
}

/* The first of the selectors below, as one would write it in C for just this question. */
static bool by_hand(label_set labels)
{
    bool environment = false;
    bool zone = false;
    for (size_t i = 0; i < labels.len; i++) {
        const label *l = &labels.at[i];
        if (str_eq(l->key, STR("environment")))
            environment = str_eq(l->value, STR("production"));
        else if (str_eq(l->key, STR("topology.kubernetes.io/zone")))
            zone = str_eq(l->value, STR("eu-central-1a")) || str_eq(l->value, STR("eu-central-1b"));
    }
    return environment && zone;
}

static void match_by_hand(void *context, uint64_t count)
{
    fleet *f = context;
    uint64_t matched = 0;
    for (uint64_t i = 0; i < count; i++)
        matched += by_hand(f->nodes[i % NODES]);
    if (matched != f->matched)
        abort();
}

static void parse(void *context, uint64_t count)
{
    arena *a = context;
    arena_place start = arena_mark(a);
    for (uint64_t i = 0; i < count; i++) {
        bench_keep(selector_parse(a, STR("environment=production,zone in (a,b),!old"), NULL));
        arena_rewind(a, start);
    }
}

int main(void)
{
    static const struct {
        const char *name;
        const char *selector;
    } rows[] = {
        {"selector match, 2 requirements, 12 labels",
         "environment=production,topology.kubernetes.io/zone in (eu-central-1a,eu-central-1b)"},
        {"selector match, exists and not in, 12 labels",
         "node-role.kubernetes.io/worker,environment notin (staging,test)"},
    };
    scoped(arena_cleanup) arena *a = arena_new(0);
    static fleet f;
    for (unsigned i = 0; i < NODES; i++)
        f.nodes[i] = make_node(a, i);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        f.s = selector_parse(a, str_of(rows[i].selector), NULL);
        uint64_t calls = mem_calls();
        double rate = bench_rate(match, &f, 4000000);
        bench_row(rows[i].name, rate / 1e6, "M/s", ">= 20");
        bench_row("selector match: allocations", (double)(mem_calls() - calls), "count", "<= 0");
        if (f.matched == 0)
            abort();
        if (i == 0)
            bench_row("selector match: by hand in C", bench_rate(match_by_hand, &f, 4000000) / 1e6,
                      "M/s", "-");
    }
    bench_row("selector parse, 3 requirements", bench_rate(parse, a, 200000) / 1e6, "M/s", "-");
    return 0;
}
