/* SPDX-License-Identifier: Apache-2.0 */
/* stream.h - hears when something happens on a server, by its event stream.
 *
 * Says only that the journal grew, and how far; whoever wants to know more asks. A stream that
 * breaks is opened again where it was, so nothing is missed. */
#ifndef DROVER_CLI_STREAM_H
#define DROVER_CLI_STREAM_H

#include "cli/client.h"

typedef struct stream stream;

/* From now on. NULL: memory ran out. The client must outlive it and may be used meanwhile. */
stream *stream_open(client *c);
stream *stream_close(stream *s);
void stream_cleanup(stream **s);

typedef struct stream_news {
    bool changed; /* the journal grew, or may have, since it was last said */
    bool input;   /* the other descriptor can be read */
    bool lost;    /* the server cannot be heard; it is tried again */
} stream_news;

/* Waits until there is news, but not longer than that. other: a descriptor to look at too, or -1.
 */
stream_news stream_wait(stream *s, int other, int timeout_ms);
/* A clock that only goes on, for who looks again and again. */
int64_t stream_clock_ms(void);
/* The sequence number heard last; 0: none. */
int64_t stream_sequence(const stream *s);

#endif
