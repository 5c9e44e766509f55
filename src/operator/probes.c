/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/probes.h"

#include <stdio.h>

#include "base/mem.h"
#include "base/num.h"

#define ANSWER_BYTES_MAX (64u << 20)
#define BACKLOG 16

typedef struct client client;

struct probes {
    uv_tcp_t server;
    uv_loop_t *loop;
    probe_handler handler;
    client *clients;
    size_t count;
    bool stopping;
};

struct client {
    uv_tcp_t socket;
    uv_timer_t timer;
    uv_write_t write;
    probes *probes;
    client *next, **link;
    size_t open; /* handles that are not closed yet */
    size_t len;
    bool closing;
    buf answer;
    char request[PROBE_REQUEST_BYTES_MAX];
};

static void maybe_free(probes *p)
{
    if (p->stopping && p->count == 0 && !uv_is_active((uv_handle_t *)&p->server) &&
        p->server.data == NULL)
        mem_free(p);
}

static void client_closed(uv_handle_t *handle)
{
    client *c = handle->data;
    probes *p = c->probes;
    if (--c->open > 0)
        return;
    *c->link = c->next;
    if (c->next)
        c->next->link = c->link;
    buf_done(&c->answer);
    mem_free(c);
    p->count--;
    maybe_free(p);
}

static void client_close(client *c)
{
    if (c->closing)
        return;
    c->closing = true;
    uv_close((uv_handle_t *)&c->socket, client_closed);
    uv_close((uv_handle_t *)&c->timer, client_closed);
}

static void on_late(uv_timer_t *timer)
{
    client_close(timer->data);
}

static void on_written(uv_write_t *write, int status)
{
    (void)status;
    client_close(write->data);
}

static const char *status_words(int status)
{
    return status == 200 ? "OK" : status == 404 ? "Not Found" : "Service Unavailable";
}

static void answer(client *c)
{
    str line = {c->request, c->len}, text = str_cut(&line, '\n');
    str method = str_cut(&text, ' '), path = str_cut(&text, ' ');
    str plain = str_cut(&path, '?');
    buf body = BUF(ANSWER_BYTES_MAX);
    int status = str_eq(method, STR("GET"))
                     ? c->probes->handler.get(c->probes->handler.context, plain, &body)
                     : 404;
    c->answer = BUF(ANSWER_BYTES_MAX);
    buf_addf(&c->answer,
             "HTTP/1.1 %d %s\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"
             "Content-Length: %zu\r\nConnection: close\r\n\r\n",
             status, status_words(status), body.len);
    buf_add(&c->answer, buf_str(&body));
    bool good = !body.failed && !c->answer.failed;
    buf_done(&body);
    uv_buf_t bytes = uv_buf_init(c->answer.ptr, (unsigned)c->answer.len);
    c->write.data = c;
    if (!good || uv_write(&c->write, (uv_stream_t *)&c->socket, &bytes, 1, on_written) != 0)
        client_close(c);
}

static void give_room(uv_handle_t *handle, size_t wanted, uv_buf_t *ret)
{
    client *c = handle->data;
    (void)wanted;
    *ret = uv_buf_init(c->request + c->len, (unsigned)(sizeof c->request - c->len));
}

static void on_read(uv_stream_t *stream, ssize_t count, const uv_buf_t *bytes)
{
    client *c = stream->data;
    (void)bytes;
    if (count < 0 || c->len + (size_t)count >= sizeof c->request) {
        client_close(c);
        return;
    }
    c->len += (size_t)count;
    if (str_find((str){c->request, c->len}, STR("\r\n\r\n")) == SIZE_MAX)
        return;
    uv_read_stop(stream);
    answer(c);
}

static void on_client(uv_stream_t *server, int status)
{
    probes *p = server->data;
    client *c = status == 0 ? mem_zalloc(sizeof *c) : NULL;
    if (!c)
        return;
    uv_tcp_init(p->loop, &c->socket);
    uv_timer_init(p->loop, &c->timer);
    c->socket.data = c->timer.data = c;
    c->probes = p;
    c->open = 2;
    c->next = p->clients;
    c->link = &p->clients;
    if (c->next)
        c->next->link = &c->next;
    p->clients = c;
    p->count++;
    uv_timer_start(&c->timer, on_late, PROBE_SECONDS * 1000, 0);
    /* One too many is accepted and closed at once: as long as one is not accepted, no other would
     * be told of. */
    if (uv_accept(server, (uv_stream_t *)&c->socket) != 0 || p->count > PROBE_CONNECTIONS_MAX ||
        uv_read_start((uv_stream_t *)&c->socket, give_room, on_read) != 0)
        client_close(c);
}

static void server_closed(uv_handle_t *handle)
{
    probes *p = handle->data;
    p->server.data = NULL;
    maybe_free(p);
}

/* Without an address: all of them, of both families. */
static bool parse(str address, struct sockaddr_storage *ret, err *error)
{
    char host[64] = "::";
    size_t colon = SIZE_MAX;
    int64_t number = 0;
    for (size_t i = 0; i < address.len; i++)
        if (address.ptr[i] == ':')
            colon = i;
    str name = colon == SIZE_MAX ? STR_EMPTY : str_part(address, 0, colon);
    str port = colon == SIZE_MAX ? address : str_part(address, colon + 1, SIZE_MAX);
    if (name.len > 2 && name.ptr[0] == '[' && name.ptr[name.len - 1] == ']')
        name = str_part(name, 1, name.len - 2);
    if (name.len > 0 && name.len < sizeof host)
        snprintf(host, sizeof host, "%.*s", STR_ARG(name));
    bool good = num_parse(port, &number) && number >= 0 && number <= 65535;
    if (!good || (uv_ip4_addr(host, (int)number, (struct sockaddr_in *)ret) != 0 &&
                  uv_ip6_addr(host, (int)number, (struct sockaddr_in6 *)ret) != 0))
        return err_set(error, "found \"%s\", allowed PORT, :PORT, ADDRESS:PORT or [ADDRESS]:PORT",
                       str_shown(address).text);
    return true;
}

static int listen_at(probes *p, const struct sockaddr_storage *at)
{
    int wrong = uv_tcp_bind(&p->server, (const struct sockaddr *)at, 0);
    return wrong != 0 ? wrong : uv_listen((uv_stream_t *)&p->server, BACKLOG, on_client);
}

probes *probes_start(uv_loop_t *loop, str address, probe_handler handler, err *error)
{
    struct sockaddr_storage at = {0};
    if (!parse(address, &at, error))
        return NULL;
    probes *p = mem_zalloc(sizeof *p);
    if (!p) {
        err_memory(error);
        return NULL;
    }
    p->loop = loop;
    p->handler = handler;
    uv_tcp_init(loop, &p->server);
    p->server.data = p;
    int wrong = listen_at(p, &at);
    if (wrong == UV_EAFNOSUPPORT || wrong == UV_EADDRNOTAVAIL) { /* a machine without IPv6 */
        uv_ip4_addr("0.0.0.0", ntohs(((const struct sockaddr_in6 *)&at)->sin6_port),
                    (struct sockaddr_in *)&at);
        wrong = listen_at(p, &at);
    }
    if (wrong == 0)
        return p;
    err_set(error, "%s: %s", str_shown(address).text, uv_strerror(wrong));
    return probes_stop(p);
}

probes *probes_stop(probes *p)
{
    if (!p)
        return NULL;
    p->stopping = true;
    for (client *c = p->clients; c; c = c->next)
        client_close(c);
    uv_close((uv_handle_t *)&p->server, server_closed);
    return NULL;
}
