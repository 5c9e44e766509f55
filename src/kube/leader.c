/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/leader.h"

#include <time.h>

#include "base/mem.h"

#define REQUEST_BYTES_MAX (64u * 1024u)

struct leader {
    uv_loop_t *loop;
    uv_timer_t timer;
    connection *connection;
    lease *lease;
    leader_handler handler;
    exchange *exchange; /* NULL: none is under way */
    write_verb verb;    /* of that one */
    int status;
    int64_t retry_after_s;
    buf body;
    bool leads; /* as was told */
    bool releasing, stopping;
};

static int64_t clock_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static moment wall_clock(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (moment){now.tv_sec, (int32_t)now.tv_nsec};
}

bool leader_leads(const leader *l)
{
    return lease_leads(l->lease, clock_ms());
}

static bool permit(void *context)
{
    return leader_leads(context);
}

exchange_permit leader_permit(leader *l)
{
    return (exchange_permit){permit, l};
}

const lease *leader_state(const leader *l)
{
    return l->lease;
}

static void go_on(uv_timer_t *timer);

static void wake(leader *l)
{
    if (!l->stopping)
        uv_timer_start(&l->timer, go_on, 0, 0);
}

static void on_status(void *context, int status, int64_t retry_after_s)
{
    leader *l = context;
    l->status = status;
    l->retry_after_s = retry_after_s;
}

static void on_bytes(void *context, str bytes)
{
    leader *l = context;
    buf_add(&l->body, bytes);
}

static void answer(leader *l, connection_result result, str problem)
{
    bool whole = result == CONNECTION_WHOLE && !l->body.failed && l->body.len > 0;
    yyjson_doc *parsed = whole ? yyjson_read(l->body.ptr, l->body.len, 0) : NULL;
    yyjson_val *object = yyjson_doc_get_root(parsed);
    write_answer found = {.result = result,
                          .problem = problem,
                          .status = l->status,
                          .retry_after_s = l->retry_after_s,
                          .body = object};
    write_outcome outcome = write_judge(l->verb, &found);
    lease_answer(l->lease, &outcome, object, clock_ms());
    yyjson_doc_free(parsed);
    wake(l);
}

static void on_end(void *context, connection_result result, str problem)
{
    leader *l = context;
    l->exchange = NULL;
    if (!l->stopping)
        answer(l, result, problem);
}

static void carry(leader *l, const kube_write *write)
{
    buf path = BUF(REQUEST_BYTES_MAX), body = BUF(REQUEST_BYTES_MAX);
    err error = {.text = "memory ran out"};
    l->verb = write->verb;
    l->status = 0;
    l->retry_after_s = 0;
    buf_clear(&l->body);
    if (write_path(write, &path) && write_body(write, &body)) {
        exchange_request request = {.method = write_method(write->verb),
                                    .path = buf_str(&path),
                                    .content_type = write_content_type(write->verb),
                                    .body = buf_str(&body)};
        l->exchange = connection_send(l->connection, &request,
                                      (exchange_handler){l, on_status, on_bytes, on_end}, &error);
    }
    buf_done(&path);
    buf_done(&body);
    if (!l->exchange)
        answer(l, CONNECTION_UNSENT, str_of(error.text));
}

static void tell(leader *l)
{
    bool leads = leader_leads(l);
    if (lease_take_set_back(l->lease) && l->handler.set_back)
        l->handler.set_back(l->handler.context);
    if (leads == l->leads)
        return;
    l->leads = leads;
    if (leads)
        l->handler.began(l->handler.context);
    else
        l->handler.ended(l->handler.context);
}

static void go_on(uv_timer_t *timer)
{
    leader *l = timer->data;
    lease_ask ask = {0};
    tell(l);
    if (l->stopping)
        return;
    int64_t wait;
    switch (lease_next(l->lease, clock_ms(), wall_clock(), &ask)) {
    case LEASE_ASK_SEND:
        carry(l, &ask.write);
        wake(l);
        return;
    case LEASE_ASK_ABORT: exchange_abort(l->exchange); return;
    case LEASE_ASK_WAIT:
        wait = ask.at_ms - clock_ms();
        uv_timer_start(timer, go_on, wait > 0 ? (uint64_t)wait : 0, 0);
        return;
    case LEASE_ASK_NEVER:
        if (l->handler.released && l->releasing)
            l->handler.released(l->handler.context);
        return;
    }
}

leader *leader_start(uv_loop_t *loop, connection *c, const lease_options *options,
                     leader_handler handler)
{
    leader *l = mem_zalloc(sizeof *l);
    if (!l)
        return NULL;
    l->loop = loop;
    l->connection = c;
    l->handler = handler;
    l->body = BUF(REQUEST_BYTES_MAX);
    l->lease = lease_new(options);
    if (!l->lease || uv_timer_init(loop, &l->timer) != 0) {
        lease_free(l->lease);
        return mem_free(l);
    }
    l->timer.data = l;
    wake(l);
    return l;
}

static void closed(uv_handle_t *handle)
{
    leader *l = handle->data;
    lease_free(l->lease);
    buf_done(&l->body);
    mem_free(l);
}

leader *leader_stop(leader *l)
{
    if (!l)
        return NULL;
    l->stopping = true;
    if (l->exchange)
        exchange_abort(l->exchange);
    uv_close((uv_handle_t *)&l->timer, closed);
    return NULL;
}

void leader_release(leader *l)
{
    l->releasing = true;
    lease_release(l->lease);
    wake(l);
}
