/* SPDX-License-Identifier: Apache-2.0 */
/* writer.h - a write_queue that runs: over a connection, on its loop.
 *
 * Decides nothing; it carries requests and answers between the two and keeps the time. Outcomes
 * come on the loop, never from within writer_send.
 *
 *     static void created(void *context, const write_outcome *outcome, yyjson_val *object) ...
 *     writer_send(w, &(kube_write){.verb = WRITE_CREATE, .collection = jobs, .name = name,
 *                                  .body = json},
 *                 (write_handler){job, created, is_my_job}, &error); */
#ifndef DROVER_KUBE_WRITER_H
#define DROVER_KUBE_WRITER_H

#include "kube/write_queue.h"

typedef struct writer writer;

typedef struct writer_options {
    uint64_t seed;          /* spreads the repeats of several writers */
    exchange_permit permit; /* asked before anything is sent, reads left out; see lease.h */
} writer_options;

/* NULL without memory. Must end before its connection. */
writer *writer_start(uv_loop_t *loop, connection *c, writer_options options);
/* Ends without a word: what is under way may take effect or not. The loop must run once more. */
writer *writer_stop(writer *w);

/* Copies the write. False: see write_queue_add; the handler is not called then. */
bool writer_send(writer *w, const kube_write *write, write_handler handler, err *error);
/* Not done yet. */
size_t writer_waiting(const writer *w);
write_counts writer_count(const writer *w);

#endif
