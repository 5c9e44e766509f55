/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/writer.h"

#include "base/mem.h"

/* One request that is under way. */
typedef struct carried {
    writer *writer;
    exchange *exchange; /* NULL: none */
    int status;
    int64_t retry_after_s;
    buf body;
} carried;

struct writer {
    uv_loop_t *loop;
    uv_timer_t timer;
    connection *connection;
    write_queue *queue;
    writer_options options;
    bool stopping;
    carried slots[WRITE_RUNNING_MAX];
};

static int64_t now_ms(const writer *w)
{
    return (int64_t)uv_now(w->loop);
}

static void on_status(void *context, int status, int64_t retry_after_s)
{
    carried *c = context;
    c->status = status;
    c->retry_after_s = retry_after_s;
}

static void on_bytes(void *context, str bytes)
{
    carried *c = context;
    buf_add(&c->body, bytes);
}

static void answer(carried *c, connection_result result, str problem)
{
    writer *w = c->writer;
    bool whole = result == CONNECTION_WHOLE && !c->body.failed && c->body.len > 0;
    yyjson_doc *document = whole ? yyjson_read(c->body.ptr, c->body.len, 0) : NULL;
    write_answer found = {.result = result,
                          .problem = problem,
                          .status = c->status,
                          .retry_after_s = c->retry_after_s,
                          .body = yyjson_doc_get_root(document)};
    buf_done(&c->body);
    write_queue_answer(w->queue, (size_t)(c - w->slots), &found, now_ms(w));
    yyjson_doc_free(document);
}

static void go_on(uv_timer_t *timer);

static void wake(writer *w)
{
    uv_timer_start(&w->timer, go_on, 0, 0);
}

static void on_end(void *context, connection_result result, str problem)
{
    carried *c = context;
    writer *w = c->writer;
    c->exchange = NULL;
    if (w->stopping) {
        buf_done(&c->body);
        return;
    }
    answer(c, result, problem);
    if (!w->stopping)
        wake(w);
}

static void carry(writer *w, size_t slot, exchange_request *request)
{
    carried *c = &w->slots[slot];
    *c = (carried){.writer = w, .body = BUF(WRITE_BODY_BYTES_MAX)};
    if (request->method != write_method(WRITE_READ))
        request->permit = w->options.permit;
    err error = {0};
    c->exchange = connection_send(w->connection, request,
                                  (exchange_handler){c, on_status, on_bytes, on_end}, &error);
    if (!c->exchange)
        answer(c, CONNECTION_UNSENT, str_of(error.text));
}

static void go_on(uv_timer_t *timer)
{
    writer *w = timer->data;
    while (!w->stopping) {
        write_ask ask = {0};
        switch (write_queue_next(w->queue, now_ms(w), &ask)) {
        case WRITE_ASK_SEND: carry(w, ask.slot, &ask.request); break;
        case WRITE_ASK_ABORT: exchange_abort(w->slots[ask.slot].exchange); break;
        case WRITE_ASK_WAIT:
            uv_timer_stop(timer);
            if (ask.at_ms != INT64_MAX) {
                int64_t wait = ask.at_ms - now_ms(w);
                uv_timer_start(timer, go_on, wait > 0 ? (uint64_t)wait : 0, 0);
            }
            return;
        }
    }
}

writer *writer_start(uv_loop_t *loop, connection *c, writer_options options)
{
    writer *w = mem_zalloc(sizeof *w);
    if (!w)
        return NULL;
    w->loop = loop;
    w->connection = c;
    w->options = options;
    w->queue = write_queue_new(options.seed);
    if (!w->queue || uv_timer_init(loop, &w->timer) != 0) {
        write_queue_free(w->queue);
        return mem_free(w);
    }
    w->timer.data = w;
    return w;
}

static void closed(uv_handle_t *handle)
{
    writer *w = handle->data;
    write_queue_free(w->queue);
    mem_free(w);
}

writer *writer_stop(writer *w)
{
    if (!w)
        return NULL;
    w->stopping = true;
    for (size_t i = 0; i < WRITE_RUNNING_MAX; i++)
        if (w->slots[i].exchange)
            exchange_abort(w->slots[i].exchange);
    uv_close((uv_handle_t *)&w->timer, closed);
    return NULL;
}

bool writer_send(writer *w, const kube_write *write, write_handler handler, err *error)
{
    if (!write_queue_add(w->queue, write, handler, error))
        return false;
    wake(w);
    return true;
}

size_t writer_waiting(const writer *w)
{
    return write_queue_waiting(w->queue);
}

write_counts writer_count(const writer *w)
{
    return write_queue_count(w->queue);
}
