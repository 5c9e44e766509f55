/* SPDX-License-Identifier: Apache-2.0 */
/* story.h - a run told line by line.
 *
 *     0s  start node-0001 for gpu-init (batch 1 of production)
 *
 * One line a decision, one a happening. Text only: nothing is decided here and nothing reads it
 * back. */
#ifndef DROVER_SIM_STORY_H
#define DROVER_SIM_STORY_H

#include "base/str.h"
#include "engine/decision.h"

/* Appends one line with its newline. batch is the number of the group's open batch, 0 if none. */
void story_decision(buf *out, int64_t ms, const decision *d, int64_t batch);
/* "  60s  * text" */
void story_line(buf *out, int64_t ms, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
