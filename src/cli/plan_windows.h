/* SPDX-License-Identifier: Apache-2.0 */
/* plan_windows.h - the deployment windows of a plan: when they are open, and whether it keeps them.
 */
#ifndef DROVER_CLI_PLAN_WINDOWS_H
#define DROVER_CLI_PLAN_WINDOWS_H

#include "cli/plan_show.h"

/* Told about a span in which a window is open (or, of a window that forbids, closed), in
 * milliseconds from the start of the plan. */
typedef void plan_window_visitor(void *context, int64_t from_ms, int64_t to_ms);
/* The spans in which something may start, as far as the plan reaches; nothing when there are no
 * windows. */
void plan_windows(const plan *p, plan_window_visitor *visit, void *context);
/* Whether there are any. */
bool plan_has_windows(const plan *p);

/* Whether nothing ran outside them. Says what did. */
bool plan_windows_kept(const plan *p);

#endif
