/* SPDX-License-Identifier: Apache-2.0 */
/* plan_show.h - a plan as people look at it: a table with a sparkline, a picture. */
#ifndef DROVER_CLI_PLAN_SHOW_H
#define DROVER_CLI_PLAN_SHOW_H

#include <stdio.h>

#include "sim/plan.h"

/* "1 target", "2 targets". */
static inline const char *plan_s(int64_t count)
{
    return count == 1 ? "" : "s";
}

/* The most in flight as a share of all: "42%", and never nothing of something. */
#define PLAN_SHARE_BYTES 32
static inline const char *plan_share(const plan *p, char out[PLAN_SHARE_BYTES])
{
    int64_t peak = sim_ledger(p->sim)->peak_in_flight, all = p->counts.targets;
    int64_t percent = all > 0 ? peak * 100 / all : 0;
    if (peak > 0 && percent == 0 && all > 0)
        snprintf(out, PLAN_SHARE_BYTES, "under 1%%");
    else
        snprintf(out, PLAN_SHARE_BYTES, "%lld%%", (long long)percent);
    return out;
}

void plan_svg(const plan *p, buf *out);
/* Prints. False without memory. */
bool plan_table(const plan *p, FILE *to);

#endif
