/* SPDX-License-Identifier: Apache-2.0 */
/* plan_show.h - a plan as people look at it: a table with a sparkline, a picture. */
#ifndef DROVER_CLI_PLAN_SHOW_H
#define DROVER_CLI_PLAN_SHOW_H

#include "sim/plan.h"

void plan_svg(const plan *p, buf *out);
/* Prints. False without memory. */
bool plan_table(const plan *p, FILE *to);

#endif
