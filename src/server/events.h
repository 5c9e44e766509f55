/* SPDX-License-Identifier: Apache-2.0 */
/* events.h - the journal as Server-Sent Events.
 *
 * Every stream gets every entry behind the one it last saw, once and in order; the id of an event
 * is the entry's sequence number. The latest entries are kept in memory, ready to send; a stream
 * that is further behind reads from the store. A client that does not keep up only delays itself.
 */
#ifndef DROVER_SERVER_EVENTS_H
#define DROVER_SERVER_EVENTS_H

#include "server/http.h"
#include "store/store.h"

#define EVENTS_KEPT 4096u
#define EVENTS_PAGE 128u

typedef struct events events;

/* Without a store only the latest EVENTS_KEPT entries are known. */
events *events_open(store *s);
events *events_close(events *e);

/* An entry is on disk: what control_listener.journal is told. */
void events_add(events *e, const journal_entry *entry);
/* A source that begins behind "after". False without memory. */
bool events_source(events *e, int64_t after, http_source *ret);

int64_t events_last(const events *e);
/* One of the latest entries as JSON, until the next is added; ptr is NULL if it is not in memory.
 */
str events_kept(const events *e, int64_t sequence);
/* Ends the streams that are open now: what follows is another story. */
void events_end_streams(events *e);

/* One entry as JSON, as the API shows it. */
void journal_entry_json(buf *out, const journal_entry *entry);
/* "2026-01-31T12:00:00.5Z", with quotes. */
void json_time_ms(buf *out, int64_t ms);

#endif
