/* SPDX-License-Identifier: Apache-2.0 */
/* events.h - Events about objects, for people: which are written, when, and which are not.
 *
 * Pure: it neither sends nor looks at a clock; recorder.h does. Events are core/v1, as people's
 * tools and the documents of Skyhook expect them.
 *
 * Nothing ever depends on an event or waits for one. The same one about the same object again
 * within EVENT_KNOWN_MS counts up the first, at most every EVENT_REPEAT_MS. All together are
 * bounded by a rate; what would wait too long a line is dropped and counted. */
#ifndef DROVER_KUBE_EVENTS_H
#define DROVER_KUBE_EVENTS_H

#include "base/moment.h"
#include "kube/write.h"

#define EVENT_KNOWN_MS 600000
#define EVENT_REPEAT_MS 10000
#define EVENT_KNOWN_MAX 4096
#define EVENT_WAITING_MAX 1024
#define EVENT_BURST 50
#define EVENT_PER_SECOND 20
#define EVENT_RUNNING_MAX 4
#define EVENT_REASON_BYTES_MAX 128
#define EVENT_MESSAGE_BYTES_MAX 1024

typedef struct kube_event {
    str api_version, kind; /* of the object that it is about */
    str namespace;         /* empty: the object has none */
    str name, uid;
    bool warning;
    str reason;  /* one word */
    str message; /* cut after EVENT_MESSAGE_BYTES_MAX */
} kube_event;

typedef struct events events;

/* component: who says it, such as "skyhook-controller"; instance: which process. Both are copied.
 * NULL without memory. */
events *events_new(str component, str instance);
events *events_free(events *e);

/* Copies the event. wall is when it happened. */
void events_tell(events *e, const kube_event *event, int64_t now_ms, moment wall);

typedef enum events_ask_kind {
    EVENTS_ASK_SEND, /* then events_answer(slot) */
    EVENTS_ASK_WAIT, /* ask again at at_ms, or when one was added or answered */
} events_ask_kind;
typedef struct events_ask {
    size_t slot;      /* below EVENT_RUNNING_MAX */
    kube_write write; /* lives until the next call */
    int64_t at_ms;    /* INT64_MAX: nothing is to be waited for */
} events_ask;
events_ask_kind events_next(events *e, int64_t now_ms, events_ask *ret);
void events_answer(events *e, size_t slot, write_outcome_kind kind, int64_t now_ms);

/* So far. */
typedef struct events_counts {
    uint64_t added, written, repeated, dropped;
} events_counts;
events_counts events_count(const events *e);

#endif
