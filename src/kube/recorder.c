/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/recorder.h"

#include <time.h>

#include "base/mem.h"

/* What an event tells of is more urgent than the event: it is not sent along with the writes that
 * follow from the same news, but behind them. */
#define REST_MS 100

/* One event that is being written. */
typedef struct carried {
    recorder *recorder;
    size_t slot;
} carried;

struct recorder {
    uv_loop_t *loop;
    uv_timer_t timer;
    writer *writer;
    events *events;
    carried slots[EVENT_RUNNING_MAX];
    bool stopping;
};

static void go_on(uv_timer_t *timer);

static void wake(recorder *r)
{
    if (!r->stopping)
        uv_timer_start(&r->timer, go_on, 0, 0);
}

static void written(void *context, const write_outcome *outcome, yyjson_val *object)
{
    (void)object;
    const carried *c = context;
    recorder *r = c->recorder;
    events_answer(r->events, c->slot, outcome->kind, (int64_t)uv_now(r->loop));
    wake(r);
}

static void carry(recorder *r, const events_ask *ask)
{
    carried *c = &r->slots[ask->slot];
    err error;
    *c = (carried){r, ask->slot};
    if (!writer_send(r->writer, &ask->write, (write_handler){c, written, NULL}, &error))
        events_answer(r->events, ask->slot, WRITE_LATER, (int64_t)uv_now(r->loop));
}

static void go_on(uv_timer_t *timer)
{
    recorder *r = timer->data;
    int64_t now_ms = (int64_t)uv_now(r->loop);
    events_ask ask = {0};
    while (events_next(r->events, now_ms, &ask) == EVENTS_ASK_SEND)
        carry(r, &ask);
    if (ask.at_ms != INT64_MAX)
        uv_timer_start(timer, go_on, ask.at_ms > now_ms ? (uint64_t)(ask.at_ms - now_ms) : 0, 0);
}

recorder *recorder_start(uv_loop_t *loop, writer *w, str component, str instance)
{
    recorder *r = mem_zalloc(sizeof *r);
    if (!r)
        return NULL;
    r->loop = loop;
    r->writer = w;
    r->events = events_new(component, instance);
    if (!r->events || uv_timer_init(loop, &r->timer) != 0) {
        events_free(r->events);
        return mem_free(r);
    }
    r->timer.data = r;
    return r;
}

static void closed(uv_handle_t *handle)
{
    recorder *r = handle->data;
    events_free(r->events);
    mem_free(r);
}

recorder *recorder_stop(recorder *r)
{
    if (!r)
        return NULL;
    r->stopping = true;
    uv_close((uv_handle_t *)&r->timer, closed);
    return NULL;
}

void recorder_tell(recorder *r, const kube_event *event)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    events_tell(r->events, event, (int64_t)uv_now(r->loop),
                (moment){now.tv_sec, (int32_t)now.tv_nsec});
    bool sooner =
        uv_is_active((uv_handle_t *)&r->timer) && uv_timer_get_due_in(&r->timer) <= REST_MS;
    if (!r->stopping && !sooner)
        uv_timer_start(&r->timer, go_on, REST_MS, 0);
}

void recorder_hurry(recorder *r)
{
    if (r && !r->stopping)
        go_on(&r->timer);
}

events_counts recorder_count(const recorder *r)
{
    return events_count(r->events);
}
