/* SPDX-License-Identifier: Apache-2.0 */
/* recorder.h - events that are written: by a writer, on its loop.
 *
 * Decides nothing, see events.h. Telling one returns at once and cannot fail. It is sent a moment
 * later, so that it is not in the way of what follows from the same news. */
#ifndef DROVER_KUBE_RECORDER_H
#define DROVER_KUBE_RECORDER_H

#include "kube/events.h"
#include "kube/writer.h"

typedef struct recorder recorder;

/* NULL without memory. Is stopped right after its writer, which answers it until then. */
recorder *recorder_start(uv_loop_t *loop, writer *w, str component, str instance);
/* Forgets what is not written yet. The loop must run once more. */
recorder *recorder_stop(recorder *r);

void recorder_tell(recorder *r, const kube_event *event);
/* Hands the writer now what was told so far. */
void recorder_hurry(recorder *r);
events_counts recorder_count(const recorder *r);

#endif
