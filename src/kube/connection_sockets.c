/* SPDX-License-Identifier: Apache-2.0 */
/* curl's sockets and timers on the loop, and the rest between two looks at what comes in. */
#include "kube/connection_internal.h"

#include <unistd.h>

#include "base/mem.h"

/* Of a bunch: when more comes at once, there is more to come. */
#define BUNCH_BYTES_MAX ((size_t)1 << 18)

static void on_socket(uv_poll_t *poll, int status, int events);

static void look(watched *w)
{
    if (w->connection->resting == w)
        w->connection->resting = NULL;
    uv_poll_start(&w->poll, w->events, on_socket);
}

static void on_bunch(uv_timer_t *timer)
{
    connection *c = timer->data;
    if (c->resting)
        look(c->resting);
}

/* What comes now may as well come together with what follows. */
static void rest(connection *c, watched *w)
{
    bool little = c->heard > 0 && c->heard <= BUNCH_BYTES_MAX;
    if (c->bunch_ms == 0 || c->closing || c->resting || !little || w->events != UV_READABLE ||
        uv_is_closing((uv_handle_t *)&w->poll))
        return;
    c->resting = w;
    uv_poll_stop(&w->poll);
    /* All that rest for the same time are looked at together. */
    uv_timer_start(&c->bunch, on_bunch, c->bunch_ms - uv_now(c->loop) % c->bunch_ms, 0);
}

static void on_socket(uv_poll_t *poll, int status, int events)
{
    watched *w = poll->data;
    connection *c = w->connection;
    int flags = (events & UV_READABLE ? CURL_CSELECT_IN : 0) |
                (events & UV_WRITABLE ? CURL_CSELECT_OUT : 0) | (status < 0 ? CURL_CSELECT_ERR : 0);
    int running;
    c->heard = 0;
    curl_multi_socket_action(c->multi, w->socket, flags, &running);
    rest(c, w);
    connection_collect(c);
}

static void on_timer(uv_timer_t *timer)
{
    connection *c = timer->data;
    int running;
    curl_multi_socket_action(c->multi, CURL_SOCKET_TIMEOUT, 0, &running);
    connection_collect(c);
}

static int set_timer(CURLM *multi, long timeout_ms, void *context)
{
    (void)multi;
    connection *c = context;
    if (timeout_ms < 0)
        uv_timer_stop(&c->timer);
    else
        uv_timer_start(&c->timer, on_timer, (uint64_t)timeout_ms, 0);
    return 0;
}

static void maybe_free(connection *c)
{
    if (c->handles == 0)
        mem_free(c);
}

static void socket_closed(uv_handle_t *handle)
{
    watched *w = handle->data;
    connection *c = w->connection;
    mem_free(w);
    c->handles--;
    maybe_free(c);
}

static void timer_closed(uv_handle_t *handle)
{
    connection *c = handle->data;
    c->handles--;
    maybe_free(c);
}

static watched *find_socket(const connection *c, curl_socket_t socket)
{
    watched *w = c->sockets;
    while (w && w->socket != socket)
        w = w->next;
    return w;
}

static watched *add_socket(connection *c, curl_socket_t socket)
{
    watched *w = mem_zalloc(sizeof *w);
    if (!w)
        return NULL;
    w->connection = c;
    w->socket = socket;
    if (uv_poll_init_socket(c->loop, &w->poll, socket) != 0)
        return mem_free(w);
    w->poll.data = w;
    w->next = c->sockets;
    c->sockets = w;
    c->handles++;
    return w;
}

/* curl has no use for a socket between two requests, and wants the same one again for the next. */
static int watch_socket(CURL *curl, curl_socket_t socket, int what, void *context, void *of_socket)
{
    (void)curl;
    (void)of_socket;
    connection *c = context;
    watched *w = find_socket(c, socket);
    if (what == CURL_POLL_REMOVE) {
        if (w) {
            if (c->resting == w)
                c->resting = NULL;
            w->events = 0;
            uv_poll_stop(&w->poll);
        }
        return 0;
    }
    if (!w && !(w = add_socket(c, socket)))
        return -1;
    w->events = (what & CURL_POLL_IN ? UV_READABLE : 0) | (what & CURL_POLL_OUT ? UV_WRITABLE : 0);
    look(w);
    return 0;
}

/* In place of curl's own close: nobody may wait for a socket whose number means another one. */
int sockets_close_one(void *context, curl_socket_t socket)
{
    connection *c = context;
    watched **link = &c->sockets;
    while (*link && (*link)->socket != socket)
        link = &(*link)->next;
    watched *w = *link;
    if (w) {
        *link = w->next;
        if (c->resting == w)
            c->resting = NULL;
        uv_poll_stop(&w->poll);
        uv_close((uv_handle_t *)&w->poll, socket_closed);
    }
    return close(socket);
}

void sockets_serve(connection *c, CURLM *multi)
{
    curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, watch_socket);
    curl_multi_setopt(multi, CURLMOPT_SOCKETDATA, c);
    curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, set_timer);
    curl_multi_setopt(multi, CURLMOPT_TIMERDATA, c);
}

bool sockets_open(connection *c)
{
    c->handles = 2;
    c->timer.data = c->bunch.data = c;
    return uv_timer_init(c->loop, &c->timer) == 0 && uv_timer_init(c->loop, &c->bunch) == 0;
}

void sockets_close(connection *c)
{
    uv_close((uv_handle_t *)&c->timer, timer_closed);
    uv_close((uv_handle_t *)&c->bunch, timer_closed);
}

void connection_bunch(connection *c, uint64_t ms)
{
    c->bunch_ms = ms;
    if (ms == 0)
        connection_wake(c);
}

bool connection_wake(connection *c)
{
    bool rested = c->resting;
    if (rested)
        look(c->resting);
    return rested;
}
