/* SPDX-License-Identifier: Apache-2.0 */
/* herd_random.h - small random herds: a strategy, clusters in all conditions, and what may happen
 * to them. The same seed gives the same herd. */
#ifndef DROVER_TESTS_SUPPORT_HERD_RANDOM_H
#define DROVER_TESTS_SUPPORT_HERD_RANDOM_H

#include "support/herd.h"

#define CLUSTERS_MAX 12

static const char *const herd_amounts[] = {"#0",  "#1",  "#2",   "#3", "10%",
                                           "25%", "50%", "100%", NULL};
static const char *const herd_groups[] = {"p0", "p1", "p2"};

static inline const char *any_amount(rng *r)
{
    return herd_amounts[rng_below(r, COUNT_OF(herd_amounts))];
}

typedef struct wild {
    herd *h;
    rng *r;
    bool soaks;
    int64_t edits;
} wild;

static inline void random_strategy(wild *w)
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
    size_t count = 1 + rng_below(r, COUNT_OF(herd_groups));
    for (size_t p = 0; p < count; p++) {
        char select[32]; /* some overlap */
        snprintf(select, sizeof select, "part in (%s,%s)", herd_groups[p],
                 herd_groups[rng_below(r, 4) ? p : rng_below(r, COUNT_OF(herd_groups))]);
        herd_partition(w->h, herd_groups[p], select, rng_below(r, 3) ? NULL : any_amount(r));
        s->partitions.at[p].approval = rng_below(r, 5) == 0;
    }
}

static inline void random_herd(wild *w)
{
    rng *r = w->r;
    herd *h = w->h;
    for (size_t i = 0; i < h->count; i++) {
        herd_cluster *c = &h->at[i];
        herd_label(h, i, "part", herd_groups[rng_below(r, COUNT_OF(herd_groups))]);
        c->paused = rng_below(r, 10) == 0;
        c->no_namespace = rng_below(r, 12) == 0;
        c->gone = rng_below(r, 8) == 0;
        c->last_seen_ms = rng_below(r, 2) ? h->now_ms : 0;
        if (rng_below(r, 2))
            herd_runs_old(h, i, rng_below(r, 6) != 0);
    }
}

static inline void random_event(wild *w)
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
        herd_label(h, i, "part", herd_groups[rng_below(r, COUNT_OF(herd_groups))]);
        herd_target(h, i);
        break;
    case 4: herd_act(h, ACT_APPROVE, herd_groups[rng_below(r, COUNT_OF(herd_groups))]); break;
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

#endif
