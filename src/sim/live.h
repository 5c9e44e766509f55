/* SPDX-License-Identifier: Apache-2.0 */
/* live.h - a fleet that lives, as text: all that a plan of it needs.
 *
 * Whoever runs the fleet writes it; a plan reads it and goes on from there in virtual time. One
 * line of JSON that counts what follows, one line a document, one line a job that runs, and then
 * what engine_save wrote. Does no I/O. */
#ifndef DROVER_SIM_LIVE_H
#define DROVER_SIM_LIVE_H

#include "sim/sim.h"

typedef struct live_head {
    int64_t now_ms;
    int64_t documents, jobs;
} live_head;

void live_write_head(buf *out, const live_head *head);
void live_write_job(buf *out, const sim_running *job);

typedef struct live {
    arena *arena;
    document_set *set;
    object_list *objects;
    sim_running *jobs;
    live_head head;
    str saved;
} live;

/* Views of text, which must outlive it. live_done is needed in either case. */
bool live_read(live *l, str text, err *error);
void live_done(live *l);
/* Puts it into a simulation that is empty; l must outlive it. */
bool live_enter(const live *l, sim *s, err *error);

#endif
