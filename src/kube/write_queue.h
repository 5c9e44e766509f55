/* SPDX-License-Identifier: Apache-2.0 */
/* write_queue.h - the rules by which writes are sent, repeated and given up.
 *
 * Pure: it neither sends nor sleeps nor looks at a clock; writer.h does.
 *
 * - Of one object (its subresources included) one write at a time is under way, in the order they
 *   came, whatever the server answers. At most WRITE_RUNNING_MAX in all.
 * - What the server cannot do now is repeated after its Retry-After, or a back-off that doubles and
 *   is spread by the queue's seed, until WRITE_PATIENCE_MS have passed since it was first sent. A
 *   wait that would be longer ends it at once. Then the outcome is WRITE_LATER or WRITE_AMBIGUOUS.
 * - A write that may have taken effect is repeated, since its precondition lets it take effect only
 *   once. If the repeat finds that the object exists or has changed, the object is read and "ours"
 *   is asked: yes means done. A JSON patch without a test is not repeated: WRITE_AMBIGUOUS.
 * - Credentials that are refused are fetched anew once. An eviction that a budget blocks, and all
 *   else that would be answered the same way again, is not repeated. */
#ifndef DROVER_KUBE_WRITE_QUEUE_H
#define DROVER_KUBE_WRITE_QUEUE_H

#include "kube/write.h"

/* Fewer than CONNECTION_REQUESTS_MAX: watches and the lease never wait behind writes. */
#define WRITE_RUNNING_MAX 32
#define WRITE_WAITING_MAX 100000
#define WRITE_TIMEOUT_MS 30000
#define WRITE_BACKOFF_FIRST_MS 200
#define WRITE_BACKOFF_MAX_MS 30000
#define WRITE_PATIENCE_MS 120000

/* Both may add writes. */
typedef struct write_handler {
    void *context;
    /* The last word, always from within a later call. object: as it is now, after WRITE_DONE, and
     * after WRITE_EXISTS and WRITE_CONFLICT if it was read; NULL in all other cases, and where the
     * server sends none, as after some deletes. Gone after the call. */
    void (*done)(void *context, const write_outcome *outcome, yyjson_val *object);
    /* Whether an object that was found is what the write made of it. NULL: never. */
    bool (*ours)(void *context, yyjson_val *object);
} write_handler;

typedef struct write_queue write_queue;

/* NULL without memory. */
write_queue *write_queue_new(uint64_t seed);
/* Forgets all without a word. */
write_queue *write_queue_free(write_queue *q);

/* Copies the write. False: write_check found something, too many wait, or no memory. */
bool write_queue_add(write_queue *q, const kube_write *w, write_handler handler, err *error);

typedef enum write_ask_kind {
    WRITE_ASK_SEND,  /* then write_queue_answer(slot) */
    WRITE_ASK_ABORT, /* cut the request of the slot, then write_queue_answer(slot) */
    WRITE_ASK_WAIT,  /* ask again at at_ms, or when something came in */
} write_ask_kind;
typedef struct write_ask {
    size_t slot;              /* below WRITE_RUNNING_MAX; its own until it is answered */
    exchange_request request; /* lives until the next call */
    int64_t at_ms;            /* INT64_MAX: nothing is to be waited for */
} write_ask;
write_ask_kind write_queue_next(write_queue *q, int64_t now_ms, write_ask *ret);
void write_queue_answer(write_queue *q, size_t slot, const write_answer *answer, int64_t now_ms);

/* Not done yet, those under way included. */
size_t write_queue_waiting(const write_queue *q);
size_t write_queue_running(const write_queue *q);

/* So far. */
typedef struct write_counts {
    uint64_t sent; /* repeats and reads included */
    uint64_t ended[WRITE_BARRED + 1];
} write_counts;
write_counts write_queue_count(const write_queue *q);

#endif
