/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DROVER_KUBE_CONNECTION_INTERNAL_H
#define DROVER_KUBE_CONNECTION_INTERNAL_H

/* Between connection.c, which sends requests and tells of answers, and connection_sockets.c, which
 * lets curl's sockets and timers run on the loop. */

#include <curl/curl.h>

#include "kube/connection.h"
#include "kube/credentials.h"

#define METHOD_BYTES 8
/* What curl keeps of requests that have ended is used for the next ones. */
#define SPARES_MAX 32

struct exchange {
    connection *connection;
    exchange *next; /* in the queue, or among those that run */
    exchange **link;
    CURL *curl; /* NULL: it waits */
    CURLU *url; /* its own; NULL: it waits */
    struct curl_slist *headers;
    exchange_handler handler;
    char *path, *body; /* path: with query */
    size_t body_len;
    char method[METHOD_BYTES];
    exchange_permit permit;
    bool stream;
    bool foreign;  /* it shows somebody else's token */
    bool reads;    /* it may be sent twice */
    bool sent;     /* at least a part of it */
    bool barred;   /* its permit was withdrawn */
    bool answered; /* the status was told */
    bool dead;     /* of a connection that was given up */
    int64_t retry_after_s;
    char problem[CURL_ERROR_SIZE];
};

/* A socket of curl's, for as long as it is open. */
typedef struct watched {
    uv_poll_t poll;
    connection *connection;
    struct watched *next;
    curl_socket_t socket;
    int events; /* that curl wants to know of; 0: none now */
} watched;

/* The server's clock, of BOOTTIME; 0: nothing was heard yet. */
typedef struct server_clock {
    int64_t first_ms, newest_ms; /* how far it was ahead by its first answer, and by the newest */
    int64_t heard_ms;            /* when that was */
} server_clock;

struct connection {
    uv_loop_t *loop;
    uv_timer_t timer;
    CURLM *multi;
    const kube_access *access;
    credentials *credentials;
    bool beside; /* the credentials are another one's, and so is the clock */
    server_clock own_clock, *clock;
    const char *agent;
    char *server;                  /* what URLs begin with; curl's */
    CURLU *base;                   /* the same */
    char *base_path;               /* and its path, curl's, without a slash at its end */
    struct curl_slist *connect_to; /* where that is, if its name is only that of a certificate */
    exchange *running;
    exchange *first, **last; /* waiting */
    size_t running_count, waiting_count;
    CURL *spares[SPARES_MAX];
    size_t spare_count;
    size_t handles;    /* of the loop, that are still to be closed */
    bool plain;        /* the server has no HTTP/2: a connection for each request */
    bool found_plain;  /* that was just found out */
    uint64_t asked_ns; /* when the first request was sent that nothing was heard after; 0: none */
    bool closing;
    uint64_t bunch_ms; /* see connection_bunch */
    uv_timer_t bunch;
    watched *sockets;
    watched *resting; /* what is not looked at until then; NULL: none */
    size_t heard;     /* bytes of answers since the socket was looked at */
};

/* ---- connection.c ---- */

/* Tells of requests that have ended, and starts those that wait. */
void connection_collect(connection *c);

/* ---- connection_sockets.c ---- */

/* False if the loop has no room for the timers. */
bool sockets_open(connection *c);
/* Has curl tell of its sockets and its time. */
void sockets_serve(connection *c, CURLM *multi);
/* In place of curl's own close (CURLOPT_CLOSESOCKETFUNCTION, with the connection). */
int sockets_close_one(void *context, curl_socket_t socket);
/* Ends timers; the connection is freed when the loop has let go of all. */
void sockets_close(connection *c);

#endif
