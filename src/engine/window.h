/* SPDX-License-Identifier: Apache-2.0 */
/* window.h - when a deploymentWindow is open, for those who draw plans or check the engine.
 *
 * The same computation that the rule itself uses (rule_window.c). Whether a start kept its windows
 * is not worked out from this: the engine says it with the start (decision.outside). */
#ifndef DROVER_ENGINE_WINDOW_H
#define DROVER_ENGINE_WINDOW_H

#include "engine/engine.h"
#include "model/release.h"

/* Told about one stretch of time in which the window lets things start, [from, to). */
typedef void window_visitor(void *context, int64_t from_ms, int64_t to_ms);

/* All such stretches that touch [from_ms, to_ms), in order, cut to it. False without memory. */
bool window_open_spans(const deployment_window *w, int64_t from_ms, int64_t to_ms,
                       window_visitor *visit, void *context);

/* The same for every deploymentWindow that was asked, since the engine was made, about something it
 * can hold: not one whose policy selects nobody, nor one under which everything was a first
 * deployment. False without memory. */
bool engine_windows(const engine *e, int64_t from_ms, int64_t to_ms, window_visitor *visit,
                    void *context);

#endif
