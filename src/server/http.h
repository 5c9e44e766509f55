/* SPDX-License-Identifier: Apache-2.0 */
/* http.h - the embedded HTTP server: libmicrohttpd on one libuv loop, one thread.
 *
 * Takes requests in whole, within the limits below, and hands each to one handler; sends what the
 * handler answers, when that is settled, or a stream as it grows. Checks who it is talked to as
 * (Host) and from where (Origin). A client that is too slow is dropped: a request must be complete
 * in HTTP_REQUEST_MS, and a client that takes nothing for HTTP_IDLE_SECONDS is gone. Knows no
 * routes, tokens or documents. */
#ifndef DROVER_SERVER_HTTP_H
#define DROVER_SERVER_HTTP_H

#include <uv.h>

#include "server/uri.h"

#define HTTP_BODY_BYTES_MAX (32u * 1024u * 1024u)
#define HTTP_BODIES_BYTES_MAX (256u * 1024u * 1024u) /* of all requests together */
#define HTTP_HEADER_BYTES_MAX (16u * 1024u)          /* of a request, its first line counted */
/* What the library sets aside for a connection: it must have room for more than is allowed, since
 * what does not fit is refused by it and not by us. Only what is used of it takes memory. */
#define HTTP_CONNECTION_BYTES (64u * 1024u)
#define HTTP_CONNECTIONS_MAX 16384u
#define HTTP_STREAMS_MAX 4096u
#define HTTP_STREAM_CHUNK_BYTES (16u * 1024u)
#define HTTP_STREAM_PIECE_BYTES (6u * 1024u) /* of it that is handed to the library at a time */
#define HTTP_REQUEST_MS 30000
#define HTTP_IDLE_SECONDS 30u
#define HTTP_KEEP_ALIVE_MS 15000 /* streams are asked this often at least */
#define HTTP_WAKE_MS 10          /* streams are asked no more often than this */
#define HTTP_BACKLOG 1024u
#define HTTP_REPLY_HEADERS_MAX 8
#define HTTP_HOSTS_MAX 16

typedef struct http http;
typedef struct http_stream http_stream;
typedef struct http_reply http_reply;

typedef struct http_request {
    arena *arena; /* lives as long as the request */
    str method;
    uri uri;
    str body;       /* complete; empty in admit */
    bool has_body;  /* one is announced */
    str client;     /* its address, without the port */
    void *handle;   /* for http_header */
    void *attached; /* the handler's, from admit to handle; in arena */
} http_request;

/* The value of a header; ptr is NULL if it is not there. */
str http_header(const http_request *q, const char *name);
/* How often it is there. */
size_t http_header_count(const http_request *q, const char *name);

#define STREAM_STATES(X)                                                                           \
    X(MORE, "something was added") X(WAIT, "nothing now; http_wake asks again") X(END, "it is over")
typedef enum stream_state {
#define X(state, text) STREAM_##state,
    STREAM_STATES(X)
#undef X
} stream_state;

/* What a stream is fed from. pull appends about HTTP_STREAM_CHUNK_BYTES at most. */
typedef struct http_source {
    void *context;
    stream_state (*pull)(void *context, buf *out);
    void (*close)(void *context);
    int64_t size; /* -1: not known */
} http_source;

typedef struct http_field {
    const char *name;
    str value; /* in the request's arena, or constant */
} http_field;

/* An answer that takes time. step does a bounded piece of the work, once in each turn of the loop,
 * until it returns true: then the reply is complete. drop is called instead when the server
 * closes. */
typedef struct http_later {
    void *context;
    bool waits; /* for something else on the loop: a turn is not made for its sake */
    bool (*step)(void *context, http_reply *r);
    void (*drop)(void *context);
} http_later;

struct http_reply {
    int status;
    const char *type; /* of the content */
    buf body;
    http_field fields[HTTP_REPLY_HEADERS_MAX];
    size_t field_count;
    http_source source; /* used if pull is set */
    http_later later;   /* used if step is set */
};

void http_field_add(http_reply *r, const char *name, str value);

typedef struct http_handler {
    void *context;
    /* The header is here, the body is not. False: the reply is sent at once. */
    bool (*admit)(void *context, http_request *q, http_reply *r);
    void (*handle)(void *context, http_request *q, http_reply *r);
    /* A problem of the request as such: fills the reply's body. */
    void (*refuse)(void *context, http_reply *r, int status, const char *message);
    /* While this is true answers are held back, so that several requests can share the wait for
     * the disk; then settle is called, and if it says false all of them become refusals. */
    bool (*unsettled)(void *context);
    bool (*settle)(void *context, err *error);
} http_handler;

typedef struct http_settings {
    str address;         /* IP address */
    uint16_t port;       /* 0: any */
    str tls_certificate; /* PEM; empty: no TLS */
    str tls_key;
    const str *hosts; /* further names this server is called by */
    size_t host_count;
} http_settings;

http *http_open(uv_loop_t *loop, const http_settings *settings, const http_handler *handler,
                err *error);
/* Ends every stream and connection. The loop must run once more. Returns NULL. */
http *http_close(http *h);
uint16_t http_port(const http *h);

/* Asks every waiting stream again, once, before the loop next waits. */
void http_wake(http *h);
size_t http_streams(const http *h);
size_t http_connections(const http *h);

/* "127.0.0.1:7070", "[::1]:7070", ":7070", "localhost:0" to address and port. */
bool http_address(str text, char address[64], uint16_t *ret_port, err *error);
bool http_is_loopback(str address);

#endif
