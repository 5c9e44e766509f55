/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/plan_load.h"

#include <stdlib.h>

bool plan_load_add(plan_load *l, int64_t start_ms, int64_t end_ms)
{
    l->all++;
    return vec_push(&l->edges, ((load_edge){start_ms, 1})) &&
           vec_push(&l->edges, ((load_edge){end_ms, -1}));
}

/* Who ends makes room for who begins in the same moment. */
static int edge_order(const void *a, const void *b)
{
    const load_edge *x = a, *y = b;
    return x->ms != y->ms ? (x->ms < y->ms ? -1 : 1) : x->by - y->by;
}

void plan_load_measure(plan_load *l, int64_t span_ms)
{
    int64_t now = 0;
    if (l->edges.len > 1)
        qsort(l->edges.at, l->edges.len, sizeof *l->edges.at, edge_order);
    for (size_t i = 0; i + 1 < l->edges.len; i++) {
        int64_t from_ms = l->edges.at[i].ms, to_ms = l->edges.at[i + 1].ms;
        now += l->edges.at[i].by;
        if (from_ms == to_ms || to_ms <= 0)
            continue;
        int64_t k = from_ms < 0 ? 0 : from_ms * PLAN_LOAD_STEPS / span_ms;
        int64_t last = (to_ms * PLAN_LOAD_STEPS - 1) / span_ms;
        for (; k <= last && k < PLAN_LOAD_STEPS; k++)
            l->at[k] = now > l->at[k] ? now : l->at[k];
        l->most = now > l->most ? now : l->most;
    }
    vec_done(&l->edges);
}
