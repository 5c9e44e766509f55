/* SPDX-License-Identifier: Apache-2.0 */
#include "server/http.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <strings.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "base/mem.h"
#include "base/num.h"
#include "server/http_guard.h"

#define FILES_KEPT_FREE 256u
#define STREAM_PENDING_BYTES_MAX (16u * HTTP_STREAM_CHUNK_BYTES + HTTP_BODY_BYTES_MAX)

/* One TCP connection; deadline_ms is 0 while an answer is on its way. */
typedef struct peer {
    struct peer *next, *previous;
    struct MHD_Connection *connection;
    int64_t deadline_ms;
} peer;

struct http_stream {
    struct http_stream *next, *previous;
    http *server;
    struct MHD_Connection *connection;
    http_source source;
    buf pending;
    size_t sent; /* of pending */
    bool suspended;
};

/* One request on its way in. */
typedef struct exchange {
    http_request request;
    http *server;
    str target;
    buf body;
    size_t counted; /* bytes of all bodies that are this one's */
    bool begun, answered, too_large, too_many;
    http_reply held; /* waits to be settled, if is_held */
    bool is_held;
    struct exchange *next_held;
} exchange;

struct http {
    uv_loop_t *loop;
    http_handler handler;
    guard_names names;
    struct MHD_Daemon *daemon;
    uv_poll_t poll;
    uv_timer_t timer, sweep;
    uv_prepare_t prepare;
    int handles;
    bool closing, wake, again;
    exchange *held;  /* whose connections are suspended until they are settled */
    exchange *later; /* the same until their answers are complete */
    int64_t woken_ms;
    peer *peers;
    http_stream *streams;
    size_t peer_count, stream_count;
    size_t body_bytes;
};

str http_header(const http_request *q, const char *name)
{
    const char *value = MHD_lookup_connection_value(q->handle, MHD_HEADER_KIND, name);
    return value ? str_of(value) : (str){NULL, 0};
}

typedef struct header_count {
    const char *name;
    size_t count;
} header_count;

static enum MHD_Result count_header(void *context, enum MHD_ValueKind kind, const char *name,
                                    const char *value)
{
    (void)kind;
    (void)value;
    header_count *c = context;
    c->count += strcasecmp(name, c->name) == 0;
    return MHD_YES;
}

size_t http_header_count(const http_request *q, const char *name)
{
    header_count c = {.name = name};
    MHD_get_connection_values(q->handle, MHD_HEADER_KIND, count_header, &c);
    return c.count;
}

void http_field_add(http_reply *r, const char *name, str value)
{
    assert(r->field_count < HTTP_REPLY_HEADERS_MAX);
    r->fields[r->field_count++] = (http_field){name, value};
}

static int64_t loop_ms(const http *h)
{
    return (int64_t)uv_now(h->loop);
}

/* ---- peers ---- */

static peer *peer_of(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info ? info->socket_context : NULL;
}

static void sweep(uv_timer_t *timer)
{
    http *h = timer->data;
    int64_t now = loop_ms(h);
    for (peer *p = h->peers; p; p = p->next) {
        if (p->deadline_ms == 0 || p->deadline_ms > now)
            continue;
        const union MHD_ConnectionInfo *info =
            MHD_get_connection_info(p->connection, MHD_CONNECTION_INFO_CONNECTION_FD);
        if (info)
            shutdown(info->connect_fd, SHUT_RDWR); /* the library then sees its end */
        p->deadline_ms = 0;
    }
    if (h->stream_count > 0)
        h->wake = true;
}

static void peer_changed(void *context, struct MHD_Connection *connection, void **socket_context,
                         enum MHD_ConnectionNotificationCode code)
{
    http *h = context;
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        peer *p = mem_zalloc(sizeof *p);
        if (!p)
            return; /* such a connection has no deadline but the idle one */
        p->connection = connection;
        p->deadline_ms = loop_ms(h) + HTTP_REQUEST_MS;
        p->next = h->peers;
        if (h->peers)
            h->peers->previous = p;
        h->peers = p;
        *socket_context = p;
        if (h->peer_count++ == 0 && !h->closing)
            uv_timer_start(&h->sweep, sweep, 1000, 1000);
        return;
    }
    peer *p = *socket_context;
    if (!p)
        return;
    if (p->previous)
        p->previous->next = p->next;
    else
        h->peers = p->next;
    if (p->next)
        p->next->previous = p->previous;
    mem_free(p);
    *socket_context = NULL;
    if (--h->peer_count == 0 && !h->closing)
        uv_timer_stop(&h->sweep);
}

/* ---- streams ---- */

static ssize_t stream_read(void *context, uint64_t position, char *out, size_t room)
{
    (void)position;
    http_stream *s = context;
    if (s->sent == s->pending.len) {
        buf_clear(&s->pending);
        s->sent = 0;
        stream_state state =
            s->server->closing ? STREAM_END : s->source.pull(s->source.context, &s->pending);
        if (s->pending.failed)
            return MHD_CONTENT_READER_END_WITH_ERROR;
        if (s->pending.len == 0) {
            if (state == STREAM_END)
                return MHD_CONTENT_READER_END_OF_STREAM;
            buf_done(&s->pending); /* most streams wait most of the time */
            s->pending = BUF(STREAM_PENDING_BYTES_MAX);
            s->suspended = true;
            MHD_suspend_connection(s->connection);
            return 0;
        }
    }
    size_t len = s->pending.len - s->sent;
    room = room < HTTP_STREAM_PIECE_BYTES ? room : HTTP_STREAM_PIECE_BYTES;
    len = len < room ? len : room;
    memcpy(out, s->pending.ptr + s->sent, len);
    s->sent += len;
    return (ssize_t)len;
}

static void stream_close(void *context)
{
    http_stream *s = context;
    if (s->previous)
        s->previous->next = s->next;
    else
        s->server->streams = s->next;
    if (s->next)
        s->next->previous = s->previous;
    s->server->stream_count--;
    if (s->source.close)
        s->source.close(s->source.context);
    buf_done(&s->pending);
    mem_free(s);
}

static struct MHD_Response *stream_response(http *h, struct MHD_Connection *connection,
                                            const http_source *source)
{
    http_stream *s = mem_zalloc(sizeof *s);
    if (!s)
        return NULL;
    *s = (http_stream){.server = h,
                       .connection = connection,
                       .source = *source,
                       .pending = BUF(STREAM_PENDING_BYTES_MAX)};
    s->next = h->streams;
    if (h->streams)
        h->streams->previous = s;
    h->streams = s;
    h->stream_count++;
    uint64_t size = source->size < 0 ? MHD_SIZE_UNKNOWN : (uint64_t)source->size;
    struct MHD_Response *response =
        MHD_create_response_from_callback(size, 4096, stream_read, s, stream_close);
    if (!response)
        stream_close(s);
    return response;
}

static void resume_streams(http *h)
{
    for (http_stream *s = h->streams; s; s = s->next) {
        if (!s->suspended)
            continue;
        s->suspended = false;
        MHD_resume_connection(s->connection);
    }
}

/* ---- answers ---- */

static void body_free(void *bytes)
{
    mem_free(bytes);
}

static struct MHD_Response *response_of(http *h, struct MHD_Connection *connection, http_reply *r)
{
    if (r->source.pull && h->stream_count < HTTP_STREAMS_MAX)
        return stream_response(h, connection, &r->source);
    if (r->source.pull) {
        if (r->source.close)
            r->source.close(r->source.context);
        h->handler.refuse(h->handler.context, r, 503, "too many streams are open");
    }
    if (r->body.failed) {
        buf_clear(&r->body);
        h->handler.refuse(h->handler.context, r, 500, "memory ran out");
    }
    struct MHD_Response *response =
        r->body.len > 0 ? MHD_create_response_from_buffer_with_free_callback(r->body.len,
                                                                             r->body.ptr, body_free)
                        : MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT);
    if (response && r->body.len > 0)
        r->body = (buf){.max = 0};
    return response;
}

static void add_fields(struct MHD_Response *response, const http_reply *r)
{
    char value[1024];
    bool told = false;
    if (r->type)
        MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, r->type);
    MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
    for (size_t i = 0; i < r->field_count; i++) {
        snprintf(value, sizeof value, "%.*s", STR_ARG(r->fields[i].value));
        MHD_add_response_header(response, r->fields[i].name, value);
        told = told || strcmp(r->fields[i].name, "Cache-Control") == 0;
    }
    if (!told)
        MHD_add_response_header(response, "Cache-Control", "no-store");
}

static enum MHD_Result answer(exchange *x, struct MHD_Connection *connection, http_reply *r)
{
    struct MHD_Response *response = response_of(x->server, connection, r);
    enum MHD_Result result = MHD_NO;
    if (response) {
        add_fields(response, r);
        result = MHD_queue_response(connection, (unsigned)r->status, response);
        MHD_destroy_response(response);
    }
    buf_done(&r->body);
    peer *p = peer_of(connection);
    if (p)
        p->deadline_ms = 0;
    x->answered = true;
    return result;
}

static enum MHD_Result refuse(exchange *x, struct MHD_Connection *connection, int status,
                              const char *message)
{
    http_reply r = {.body = BUF(LIMIT_TEXT_BYTES)};
    x->server->handler.refuse(x->server->handler.context, &r, status, message);
    if (status == 413 || status == 400)
        http_field_add(&r, "Connection", STR("close"));
    return answer(x, connection, &r);
}

/* ---- answers that wait ---- */

static enum MHD_Result hold(exchange *x, struct MHD_Connection *connection, const http_reply *r)
{
    exchange **list = r->later.step ? &x->server->later : &x->server->held;
    x->held = *r;
    x->is_held = true;
    x->next_held = *list;
    *list = x;
    MHD_suspend_connection(connection);
    return MHD_YES;
}

/* What is not durable has not happened. */
static void take_back(exchange *x, const char *why)
{
    http_reply *r = &x->held;
    if (r->source.pull && r->source.close)
        r->source.close(r->source.context);
    r->source = (http_source){.pull = NULL};
    r->field_count = 0;
    buf_clear(&r->body);
    x->server->handler.refuse(x->server->handler.context, r, 503, why);
}

/* The daemon asks for the answers when it next runs. */
static void settle(http *h)
{
    err error;
    if (!h->held && !h->handler.unsettled(h->handler.context))
        return;
    bool good = h->handler.settle(h->handler.context, &error);
    for (exchange *x = h->held; x; x = x->next_held) {
        if (!good)
            take_back(x, error.text);
        MHD_resume_connection(x->request.handle);
    }
    h->again = h->again || h->held;
    h->held = NULL;
}

/* A piece of each answer that takes time. */
static void step_later(http *h)
{
    for (exchange **at = &h->later; *at;) {
        exchange *x = *at;
        http_later later = x->held.later;
        if (!h->closing && !later.step(later.context, &x->held)) {
            h->again = h->again || !later.waits;
            at = &x->next_held;
            continue;
        }
        h->again = true;
        if (h->closing) {
            later.drop(later.context);
            take_back(x, "the server stops");
        }
        x->held.later = (http_later){.step = NULL};
        *at = x->next_held;
        MHD_resume_connection(x->request.handle);
    }
}

/* Everything that came together is settled together. */
static void run_daemon(http *h)
{
    MHD_run(h->daemon);
    settle(h);
}

/* ---- requests ---- */

static void *request_line(void *context, const char *target, struct MHD_Connection *connection)
{
    http *h = context;
    exchange *x = mem_zalloc(sizeof *x);
    if (!x)
        return NULL;
    x->server = h;
    x->request.handle = connection;
    x->request.arena = arena_new(0);
    x->body = BUF(HTTP_BODY_BYTES_MAX);
    if (x->request.arena)
        x->target = arena_str(x->request.arena, str_of(target));
    return x;
}

static void request_over(void *context, struct MHD_Connection *connection, void **request_context,
                         enum MHD_RequestTerminationCode code)
{
    (void)code;
    http *h = context;
    exchange *x = *request_context;
    peer *p = peer_of(connection);
    if (p)
        p->deadline_ms = loop_ms(h) + HTTP_REQUEST_MS;
    if (!x)
        return;
    h->body_bytes -= x->counted;
    buf_done(&x->body);
    arena_free(x->request.arena);
    mem_free(x);
    *request_context = NULL;
}

static str client_address(exchange *x, struct MHD_Connection *connection)
{
    char text[INET6_ADDRSTRLEN] = "";
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    if (info && info->client_addr->sa_family == AF_INET)
        inet_ntop(AF_INET, &((const struct sockaddr_in *)(const void *)info->client_addr)->sin_addr,
                  text, sizeof text);
    else if (info && info->client_addr->sa_family == AF_INET6)
        inet_ntop(AF_INET6,
                  &((const struct sockaddr_in6 *)(const void *)info->client_addr)->sin6_addr, text,
                  sizeof text);
    return arena_str(x->request.arena, str_of(text));
}

static enum MHD_Result add_header_bytes(void *context, enum MHD_ValueKind kind, const char *name,
                                        const char *value)
{
    (void)kind;
    *(size_t *)context += strlen(name) + (value ? strlen(value) : 0) + strlen(": \r\n");
    return MHD_YES;
}

static bool sizes_good(const exchange *x, int *ret_status, err *error)
{
    size_t bytes = x->target.len;
    MHD_get_connection_values(x->request.handle, MHD_HEADER_KIND, add_header_bytes, &bytes);
    *ret_status = x->target.len > URI_BYTES_MAX ? 414 : 431;
    if (x->target.len > URI_BYTES_MAX)
        return err_set(error, "the path is longer than %d bytes", URI_BYTES_MAX);
    return bytes <= HTTP_HEADER_BYTES_MAX ||
           err_set(error, "the header is larger than %u bytes", HTTP_HEADER_BYTES_MAX);
}

/* What the header alone decides. */
static enum MHD_Result begin(exchange *x, struct MHD_Connection *connection, const char *method)
{
    http *h = x->server;
    http_request *q = &x->request;
    err error;
    int status;
    int64_t length = 0;
    x->begun = true;
    if (!q->arena || !x->target.ptr)
        return refuse(x, connection, 503, "memory ran out");
    if (!sizes_good(x, &status, &error))
        return refuse(x, connection, status, error.text);
    q->method = arena_str(q->arena, str_of(method));
    q->client = client_address(x, connection);
    str announced = http_header(q, MHD_HTTP_HEADER_CONTENT_LENGTH);
    if (announced.ptr && !num_parse(announced, &length))
        return refuse(x, connection, 400, "found a Content-Length that is no number");
    q->has_body = length > 0 || http_header(q, MHD_HTTP_HEADER_TRANSFER_ENCODING).ptr;
    if (!uri_parse(q->arena, x->target, &q->uri, &error))
        return refuse(x, connection, 400, error.text);
    status = guard_check(&h->names, q, &error);
    if (status != 0)
        return refuse(x, connection, status, error.text);
    if (length > (int64_t)HTTP_BODY_BYTES_MAX)
        return refuse(x, connection, 413, "the body is larger than 32 MiB");
    http_reply r = {.status = 200, .body = BUF(LIMIT_TEXT_BYTES)};
    if (!h->handler.admit(h->handler.context, q, &r))
        return answer(x, connection, &r);
    buf_done(&r.body);
    return MHD_YES;
}

static enum MHD_Result take_body(exchange *x, const char *bytes, size_t *len)
{
    http *h = x->server;
    /* The rest of what is refused is thrown away, for as long as a request may take. */
    x->too_large = x->too_large || x->body.len + *len > HTTP_BODY_BYTES_MAX;
    x->too_many = x->too_many || h->body_bytes + *len > HTTP_BODIES_BYTES_MAX;
    if (!x->too_large && !x->too_many) {
        buf_add(&x->body, (str){bytes, *len});
        h->body_bytes += *len;
        x->counted += *len;
    }
    *len = 0;
    return MHD_YES;
}

static enum MHD_Result access_handler(void *context, struct MHD_Connection *connection,
                                      const char *url, const char *method, const char *version,
                                      const char *upload, size_t *upload_len,
                                      void **request_context)
{
    (void)url;
    (void)version;
    http *h = context;
    exchange *x = *request_context;
    if (!x)
        return MHD_NO;
    if (!x->begun)
        return begin(x, connection, method);
    if (x->answered)
        return MHD_YES;
    if (x->is_held) { /* and settled by now */
        x->is_held = false;
        return answer(x, connection, &x->held);
    }
    if (*upload_len > 0)
        return take_body(x, upload, upload_len);
    if (x->too_large)
        return refuse(x, connection, 413, "the body is larger than 32 MiB");
    if (x->too_many)
        return refuse(x, connection, 503, "too many bodies at once; try again");
    if (x->body.failed)
        return refuse(x, connection, 503, "memory ran out");
    x->request.body = buf_str(&x->body);
    http_reply r = {.status = 200, .body = BUF(LIMIT_TEXT_BYTES)};
    h->handler.handle(h->handler.context, &x->request, &r);
    if (r.later.step || h->handler.unsettled(h->handler.context))
        return hold(x, connection, &r);
    return answer(x, connection, &r);
}

/* Targets are decoded by uri.h alone. */
static size_t keep_escapes(void *context, struct MHD_Connection *connection, char *text)
{
    (void)context;
    (void)connection;
    return strlen(text);
}

/* ---- the loop ---- */

static void on_readable(uv_poll_t *poll, int status, int events)
{
    (void)status;
    (void)events;
    http *h = poll->data;
    run_daemon(h);
}

static void on_timer(uv_timer_t *timer)
{
    http *h = timer->data;
    run_daemon(h);
}

/* Before the loop waits: wake streams, and find out how long it may wait. */
static void before_wait(uv_prepare_t *prepare)
{
    http *h = prepare->data;
    MHD_UNSIGNED_LONG_LONG wait;
    int64_t rest = h->woken_ms + HTTP_WAKE_MS - loop_ms(h);
    step_later(h);
    if (h->wake && rest <= 0) {
        h->wake = false;
        h->woken_ms = loop_ms(h);
        resume_streams(h);
        run_daemon(h);
    }
    rest = rest > 0 ? rest : HTTP_WAKE_MS;
    if (h->again)
        uv_timer_start(&h->timer, on_timer, 0, 0);
    else if (MHD_get_timeout(h->daemon, &wait) == MHD_YES)
        uv_timer_start(&h->timer, on_timer,
                       h->wake && wait > (uint64_t)rest ? (uint64_t)rest : wait, 0);
    else if (h->wake)
        uv_timer_start(&h->timer, on_timer, (uint64_t)rest, 0);
    else
        uv_timer_stop(&h->timer);
    h->again = false;
}

void http_wake(http *h)
{
    h->wake = true;
}

size_t http_streams(const http *h)
{
    return h->stream_count;
}

size_t http_connections(const http *h)
{
    return h->peer_count;
}

/* ---- opening and closing ---- */

static unsigned connections_allowed(void)
{
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) != 0)
        return 512;
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    getrlimit(RLIMIT_NOFILE, &files);
    rlim_t room =
        files.rlim_cur > 2 * FILES_KEPT_FREE ? files.rlim_cur - FILES_KEPT_FREE : FILES_KEPT_FREE;
    return room < HTTP_CONNECTIONS_MAX ? (unsigned)room : HTTP_CONNECTIONS_MAX;
}

static bool socket_address(const http_settings *s, struct sockaddr_storage *ret, socklen_t *ret_len,
                           err *error)
{
    char text[64];
    struct sockaddr_in *v4 = (void *)ret;
    struct sockaddr_in6 *v6 = (void *)ret;
    memset(ret, 0, sizeof *ret);
    snprintf(text, sizeof text, "%.*s", STR_ARG(s->address));
    if (inet_pton(AF_INET, text, &v4->sin_addr) == 1) {
        v4->sin_family = AF_INET;
        v4->sin_port = htons(s->port);
        *ret_len = sizeof *v4;
        return true;
    }
    if (inet_pton(AF_INET6, text, &v6->sin6_addr) == 1) {
        v6->sin6_family = AF_INET6;
        v6->sin6_port = htons(s->port);
        *ret_len = sizeof *v6;
        return true;
    }
    return err_set(error, "found the address \"%s\", allowed an IP address",
                   str_shown(s->address).text);
}

/* Bound here, so that what went wrong can be said. */
static int listening_socket(const http_settings *s, err *error)
{
    struct sockaddr_storage address;
    socklen_t len = 0;
    int one = 1;
    if (!socket_address(s, &address, &len, error))
        return -1;
    int fd = socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        err_set(error, "a socket cannot be made: %s", strerror(errno));
        return -1;
    }
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(fd, (struct sockaddr *)&address, len) != 0 || listen(fd, (int)HTTP_BACKLOG) != 0) {
        err_set(error, "%.*s, port %u cannot be listened on: %s", STR_ARG(s->address), s->port,
                strerror(errno));
        close(fd);
        return -1;
    }
    return fd;
}

static bool start_daemon(http *h, const http_settings *s, int fd, err *error)
{
    bool tls = s->tls_certificate.len > 0;
    struct MHD_OptionItem tls_options[] = {
        {MHD_OPTION_HTTPS_MEM_CERT, 0, (void *)(uintptr_t)s->tls_certificate.ptr},
        {MHD_OPTION_HTTPS_MEM_KEY, 0, (void *)(uintptr_t)s->tls_key.ptr},
        {MHD_OPTION_END, 0, NULL},
    };
    struct MHD_OptionItem no_options[] = {{MHD_OPTION_END, 0, NULL}};
    unsigned flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | (tls ? MHD_USE_TLS : 0);
    h->daemon = MHD_start_daemon(
        flags, 0, NULL, NULL, access_handler, h, MHD_OPTION_LISTEN_SOCKET, fd,
        MHD_OPTION_CONNECTION_LIMIT, connections_allowed(), MHD_OPTION_CONNECTION_TIMEOUT,
        HTTP_IDLE_SECONDS, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HTTP_CONNECTION_BYTES,
        MHD_OPTION_URI_LOG_CALLBACK, request_line, h, MHD_OPTION_NOTIFY_COMPLETED, request_over, h,
        MHD_OPTION_NOTIFY_CONNECTION, peer_changed, h, MHD_OPTION_UNESCAPE_CALLBACK, keep_escapes,
        NULL, MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_ARRAY, tls ? tls_options : no_options,
        MHD_OPTION_END);
    if (!h->daemon)
        return err_set(error,
                       tls ? "the HTTP server cannot be started; are certificate and key good?"
                           : "the HTTP server cannot be started");
    return true;
}

static bool start_loop(http *h, err *error)
{
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(h->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    if (!info || uv_poll_init(h->loop, &h->poll, info->epoll_fd) != 0)
        return err_set(error, "the HTTP server cannot be watched");
    uv_timer_init(h->loop, &h->timer);
    uv_timer_init(h->loop, &h->sweep);
    uv_prepare_init(h->loop, &h->prepare);
    h->handles = 4;
    h->poll.data = h->timer.data = h->sweep.data = h->prepare.data = h;
    uv_poll_start(&h->poll, UV_READABLE, on_readable);
    uv_prepare_start(&h->prepare, before_wait);
    return true;
}

http *http_open(uv_loop_t *loop, const http_settings *settings, const http_handler *handler,
                err *error)
{
    http *h = mem_zalloc(sizeof *h);
    if (!h) {
        err_memory(error);
        return NULL;
    }
    h->loop = loop;
    h->handler = *handler;
    int fd = listening_socket(settings, error);
    bool good = fd >= 0 && guard_fill(&h->names, settings, error);
    if (good && !start_daemon(h, settings, fd, error)) {
        close(fd);
        good = false;
    }
    if (good && !start_loop(h, error)) {
        MHD_stop_daemon(h->daemon);
        good = false;
    }
    return good ? h : mem_free(h);
}

static void handle_closed(uv_handle_t *handle)
{
    http *h = handle->data;
    if (--h->handles == 0)
        mem_free(h);
}

http *http_close(http *h)
{
    if (!h)
        return NULL;
    h->closing = true;
    step_later(h);
    resume_streams(h);
    run_daemon(h);
    MHD_run(h->daemon); /* what was just settled */
    uv_close((uv_handle_t *)&h->poll, handle_closed);
    uv_close((uv_handle_t *)&h->timer, handle_closed);
    uv_close((uv_handle_t *)&h->sweep, handle_closed);
    uv_close((uv_handle_t *)&h->prepare, handle_closed);
    MHD_stop_daemon(h->daemon);
    return NULL;
}

uint16_t http_port(const http *h)
{
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(h->daemon, MHD_DAEMON_INFO_LISTEN_FD);
    struct sockaddr_storage address;
    socklen_t len = sizeof address;
    if (!info || getsockname(info->listen_fd, (struct sockaddr *)&address, &len) != 0)
        return 0;
    return ntohs(address.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&address)->sin6_port
                                               : ((struct sockaddr_in *)&address)->sin_port);
}
