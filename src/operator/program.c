/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/program.h"

#include <signal.h>

/* ---- probes ---- */

static int answer_metrics(void *context, str path, buf *out)
{
    const program *p = context;
    if (!str_eq(path, STR("/metrics")))
        return 404;
    p->handler.metrics(p->handler.context, out);
    return 200;
}

static int answer_health(void *context, str path, buf *out)
{
    const program *p = context;
    bool asks_ready = str_eq(path, STR("/readyz"));
    if (!asks_ready && !str_eq(path, STR("/healthz")))
        return 404;
    const char *trouble = asks_ready ? p->handler.trouble(p->handler.context) : NULL;
    buf_addz(out, trouble ? trouble : "ok");
    return trouble ? 503 : 200;
}

bool program_serve(program *p, str metrics, str health, err *error)
{
    if (metrics.len > 0)
        p->metrics = probes_start(&p->loop, metrics, (probe_handler){p, answer_metrics}, error);
    if (metrics.len > 0 && !p->metrics)
        return err_wrap(error, "metrics");
    if (health.len > 0)
        p->health = probes_start(&p->loop, health, (probe_handler){p, answer_health}, error);
    return health.len == 0 || p->health || err_wrap(error, "probes");
}

/* ---- the loop ---- */

static void before_wait(uv_prepare_t *prepare)
{
    const program *p = prepare->data;
    p->handler.turn(p->handler.context);
}

static void on_timer(uv_timer_t *timer)
{
    const program *p = timer->data;
    if (p->handler.due)
        p->handler.due(p->handler.context);
}

static void on_signal(uv_signal_t *handle, int number)
{
    (void)number;
    const program *p = handle->data;
    p->handler.end(p->handler.context);
}

void program_wait(program *p, int64_t ms)
{
    ms = ms < 0 ? 0 : ms > PROGRAM_WAIT_MS_MAX ? PROGRAM_WAIT_MS_MAX : ms;
    uv_timer_start(&p->timer, on_timer, (uint64_t)ms, 0);
}

bool program_open(program *p, program_handler handler, err *error)
{
    static const int numbers[] = {SIGTERM, SIGINT};
    *p = (program){.handler = handler};
    if (uv_loop_init(&p->loop) != 0)
        return err_set(error, "the event loop cannot be made");
    /* These have no way to fail. */
    uv_prepare_init(&p->loop, &p->prepare);
    uv_timer_init(&p->loop, &p->timer);
    p->prepare.data = p->timer.data = p;
    uv_prepare_start(&p->prepare, before_wait);
    bool good = true;
    for (size_t i = 0; i < 2; i++) {
        uv_signal_init(&p->loop, &p->signals[i]);
        p->signals[i].data = p;
        good &= uv_signal_start(&p->signals[i], on_signal, numbers[i]) == 0;
    }
    if (good)
        return true;
    program_close(p);
    return err_set(error, "the event loop cannot take signals");
}

void program_close(program *p)
{
    p->metrics = probes_stop(p->metrics);
    p->health = probes_stop(p->health);
    uv_close((uv_handle_t *)&p->prepare, NULL);
    uv_close((uv_handle_t *)&p->timer, NULL);
    for (size_t i = 0; i < 2; i++)
        uv_close((uv_handle_t *)&p->signals[i], NULL);
    uv_run(&p->loop, UV_RUN_DEFAULT);
    uv_loop_close(&p->loop);
}
