/* SPDX-License-Identifier: Apache-2.0 */
/* connection.h - requests to one API server: HTTP/2, all of them over one connection, on an event
 * loop. Where something in between has no HTTP/2, each request that runs has a connection. Whatever
 * comes in is looked at for every request that runs, so watches, which run for ever, are cheaper on
 * a connection of their own, and there HTTP/2 would only be more to do.
 *
 * Sends and hands back; it neither repeats nor judges, and keeps curl from repeating a write. A
 * request that has ended without an answer may have taken effect: the caller knows by its kind what
 * to do (see write_outcome). A connection on which nothing at all was heard for as long as a
 * request was waited for is dead: all its requests end, and the next one makes a new connection. */
#ifndef DROVER_KUBE_CONNECTION_H
#define DROVER_KUBE_CONNECTION_H

#include <uv.h>

#include "kube/kubeconfig.h"

#define CONNECTION_REQUESTS_MAX 100 /* at once; the rest waits in order */
#define CONNECTION_WAITING_MAX 100000
#define CONNECTION_CONNECT_SECONDS 10L
#define CONNECTION_TIMEOUT_MS 60000 /* of a request that is no stream */
/* A request that ends for want of an answer takes its connection with it if nothing was heard on it
 * for so long while answers were due. */
#define CONNECTION_SILENCE_MS 5000

typedef enum connection_result {
    CONNECTION_WHOLE,  /* an answer, to its end */
    CONNECTION_UNSENT, /* nothing reached the server */
    CONNECTION_CUT,    /* anything may have happened */
    CONNECTION_BARRED, /* its permit was withdrawn before anything was sent */
} connection_result;

typedef struct connection connection;
typedef struct exchange exchange; /* a request that is under way */

/* Called on the loop. Any but end may be NULL. */
typedef struct exchange_handler {
    void *context;
    void (*status)(void *context, int status, int64_t retry_after_s);
    void (*bytes)(void *context, str bytes);
    /* The last word; the exchange is gone afterwards. problem: empty with CONNECTION_WHOLE. */
    void (*end)(void *context, connection_result result, str problem);
} exchange_handler;

/* Whether a request may be sent, asked at the very moment when it would be. */
typedef struct exchange_permit {
    bool (*given)(void *context); /* NULL: always */
    void *context;
} exchange_permit;

typedef struct exchange_request {
    const char *method;
    str path;                 /* with query */
    const char *content_type; /* NULL: JSON */
    const char *accept;       /* form of the answer; NULL: JSON */
    str body;
    str token;   /* shown instead of the connection's own; empty: that one */
    str user;    /* whose rights count, if the token's may speak for it; empty: the connection's */
    bool stream; /* a watch: it may take as long as it likes */
    exchange_permit permit;
} exchange_request;

/* access must live as long as the connection. agent: what it calls itself to the server. */
connection *connection_open(uv_loop_t *loop, const kube_access *access, const char *agent,
                            err *error);
/* Another connection to the same server with the same credentials, without HTTP/2. It must be
 * closed first. */
connection *connection_beside(const connection *c, err *error);
/* The time by the server's clock as its first answer showed it (see server_date.h), and from then
 * on by one that nobody sets. False until there was an answer. What several processes read from
 * each other's records is not to depend on whose clock is right. */
bool connection_clock(const connection *c, int64_t *ret_ms);
/* The same as its newest answer showed it: it may jump, and is right where this machine stood still
 * for a while. For times that others are told. */
bool connection_date(const connection *c, int64_t *ret_ms);
/* What comes in is looked at only so often, in bunches: for watches whose news nobody waits for. A
 * process that is woken up pays for that far more than for what it then reads. 0: at once. */
void connection_bunch(connection *c, uint64_t ms);
/* What rests until its bunch is looked at is looked at when the loop goes on. False: nothing rests.
 */
bool connection_wake(connection *c);
/* Ends all requests without a word and lets go of the loop, which must run once more. */
connection *connection_close(connection *c);

/* Copies path and body. NULL: no memory, too many waiting, or no credentials; end is not called. */
exchange *connection_send(connection *c, const exchange_request *request, exchange_handler handler,
                          err *error);
/* Cuts it; end is called before this returns, with CONNECTION_UNSENT if it was still waiting, else
 * with CONNECTION_CUT. Not from within a handler. */
void exchange_abort(exchange *x);

#endif
