/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/follower.h"

#include "base/mem.h"

struct follower {
    uv_loop_t *loop;
    uv_timer_t timer;
    connection *connection;
    list_watch *watch;
    exchange *exchange; /* NULL: none is under way */
    bool stopping;
};

static int64_t now_ms(const follower *f)
{
    return (int64_t)uv_now(f->loop);
}

static void go_on(follower *f);

static void on_timer(uv_timer_t *timer)
{
    go_on(timer->data);
}

static void on_status(void *context, int status, int64_t retry_after_s)
{
    follower *f = context;
    list_watch_status(f->watch, status, retry_after_s, now_ms(f));
}

static void on_bytes(void *context, str bytes)
{
    follower *f = context;
    list_watch_bytes(f->watch, bytes, now_ms(f));
    if (list_watch_useless(f->watch)) /* it cannot be cut from in here */
        uv_timer_start(&f->timer, on_timer, 0, 0);
}

static void on_end(void *context, connection_result result, str problem)
{
    (void)problem;
    follower *f = context;
    f->exchange = NULL;
    list_watch_end(f->watch, result == CONNECTION_WHOLE, now_ms(f));
    if (!f->stopping)
        go_on(f);
}

static void go_on(follower *f)
{
    watch_ask ask = {0};
    watch_ask_kind kind = list_watch_next(f->watch, now_ms(f), &ask);
    if (kind == ASK_SEND) {
        exchange_request request = {
            .method = "GET", .path = ask.path, .accept = ask.accept, .stream = true};
        err error;
        f->exchange = connection_send(f->connection, &request,
                                      (exchange_handler){f, on_status, on_bytes, on_end}, &error);
        if (!f->exchange)
            list_watch_end(f->watch, false, now_ms(f));
        kind = list_watch_next(f->watch, now_ms(f), &ask);
    }
    if (kind == ASK_ABORT) {
        exchange_abort(f->exchange); /* goes on from there */
        return;
    }
    int64_t wait = kind == ASK_WAIT ? ask.at_ms - now_ms(f) : 0;
    uv_timer_start(&f->timer, on_timer, wait > 0 ? (uint64_t)wait : 0, 0);
}

follower *follower_start(uv_loop_t *loop, connection *c, str path, watch_sink sink)
{
    follower *f = mem_zalloc(sizeof *f);
    if (!f)
        return NULL;
    *f = (follower){.loop = loop, .connection = c, .watch = list_watch_new(path, sink)};
    if (!f->watch || uv_timer_init(loop, &f->timer) != 0) {
        list_watch_free(f->watch);
        return mem_free(f);
    }
    f->timer.data = f;
    uv_timer_start(&f->timer, on_timer, 0, 0);
    return f;
}

void follower_doubt(follower *f)
{
    list_watch_doubt(f->watch);
}

void follower_rows(follower *f)
{
    list_watch_rows(f->watch);
}

static void closed(uv_handle_t *handle)
{
    follower *f = handle->data;
    list_watch_free(f->watch);
    mem_free(f);
}

follower *follower_stop(follower *f)
{
    if (!f)
        return NULL;
    f->stopping = true;
    if (f->exchange)
        exchange_abort(f->exchange);
    uv_close((uv_handle_t *)&f->timer, closed);
    return NULL;
}

const list_watch *follower_state(const follower *f)
{
    return f->watch;
}
