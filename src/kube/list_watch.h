/* SPDX-License-Identifier: Apache-2.0 */
/* list_watch.h - keeps up with all objects of one kind: which request comes next, and what its
 * answer means.
 *
 * Pure: it neither sends nor sleeps. Whoever owns a connection asks for the next request, hands in
 * what comes back, and is told of every object that is there, that changed, that is gone. A cut, a
 * stalled or an expired watch, a list that expired between two pages, a server that has no streamed
 * lists: all of it is handled here, and ends in the same objects. Nothing is asked for again that a
 * version to go on from exists for.
 *
 * list_watch_next says what is to be done:
 *
 * ASK_SEND:  send GET ask.path; hand in what comes back by list_watch_status, list_watch_bytes, as
 *            often as there are some, and list_watch_end
 * ASK_ABORT: cut the request that runs, then list_watch_end
 * ASK_WAIT:  ask again at ask.at_ms, or when something came in */
#ifndef DROVER_KUBE_LIST_WATCH_H
#define DROVER_KUBE_LIST_WATCH_H

#include <yyjson.h>

#include "base/str.h"

#define LIST_PAGE_OBJECTS 500
#define LIST_PAGE_BYTES_MAX (64u << 20)
#define WATCH_EVENT_BYTES_MAX (4u << 20)
#define WATCH_PROBLEM_BYTES 512
/* A watch is ended by the server after this time, and taken for dead when nothing, not even a
 * bookmark, came for so long. */
#define WATCH_TIMEOUT_SECONDS 300
#define WATCH_SILENCE_MS 150000
#define LIST_SILENCE_MS 60000
#define WATCH_BACKOFF_FIRST_MS 500
#define WATCH_BACKOFF_MAX_MS 30000
/* A watch that ended well is asked for again at once, unless it was shorter than this. */
#define WATCH_SHORT_MS 1000

typedef struct watch_sink {
    void *context;
    /* An object that is new, changed, or merely seen again. False: no memory. */
    bool (*seen)(void *context, yyjson_val *object);
    /* space is empty for kinds without namespaces. */
    void (*gone)(void *context, str space, str name);
    /* Everything that existed has been told; called again after every list. */
    void (*synced)(void *context);
    /* The list that is about to be synced is older than what was told before it: the server was set
     * back, as to a backup, and versions that are known mean nothing any more. NULL: that does not
     * matter. */
    void (*set_back)(void *context);
} watch_sink;

typedef struct list_watch list_watch;

/* path: of the collection, such as /api/v1/nodes, with a query or without. NULL without memory. */
list_watch *list_watch_new(str path, watch_sink sink);
list_watch *list_watch_free(list_watch *w);
/* A watch that ends otherwise than by its time is not gone on with from here on: what exists is
 * listed. For kinds of few objects. A server that is set back to a backup, as near as it may be,
 * ends all watches, and then knows nothing of the versions that it has told. */
void list_watch_doubt(list_watch *w);

/* What exists is listed whole; changes from then on are asked for as rows of a table, the line that
 * `kubectl get` prints, which is a small part of an object: it is a Table whose one row has the
 * object's name in its first cell, and no more of it. For who can tell by that line whether to read
 * the object. */
void list_watch_rows(list_watch *w);
#define WATCH_ACCEPT_ROWS "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
/* The cell of such a row; empty: there is none, or this is no such table. */
str watch_row_cell(yyjson_val *table, size_t at);

typedef enum watch_ask_kind { ASK_SEND, ASK_ABORT, ASK_WAIT } watch_ask_kind;
typedef struct watch_ask {
    str path;           /* ASK_SEND; lives until the next call */
    const char *accept; /* ASK_SEND: form of the answer; NULL: JSON */
    int64_t at_ms;      /* ASK_WAIT */
} watch_ask;
watch_ask_kind list_watch_next(list_watch *w, int64_t now_ms, watch_ask *ret);

/* The answer's status; retry_after_s is 0 without such a header. */
void list_watch_status(list_watch *w, int status, int64_t retry_after_s, int64_t now_ms);
void list_watch_bytes(list_watch *w, str bytes, int64_t now_ms);
/* whole: the answer was received to its end. */
void list_watch_end(list_watch *w, bool whole, int64_t now_ms);

/* The answer that comes in is of no use any more, although it goes on: ask what to do. */
bool list_watch_useless(const list_watch *w);

/* Everything that existed was told at least once. */
bool list_watch_synced(const list_watch *w);
/* What keeps it from being up to date, empty if nothing does. */
str list_watch_problem(const list_watch *w);
size_t list_watch_count(const list_watch *w);

#endif
