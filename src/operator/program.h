/* SPDX-License-Identifier: Apache-2.0 */
/* program.h - the frame of a program that runs for months: one event loop, a turn before it waits,
 * a time until which it waits, signals that end it, and what probes are told.
 *
 *     program_open(&p, handler, &error) && program_serve(&p, ":8080", ":8081", &error)
 *     uv_run(&p.loop, UV_RUN_DEFAULT);    each turn says how long there is nothing to do:
 *                                         program_wait
 *     program_close(&p);                  after all else that is on the loop was closed
 *
 * Knows neither API servers nor what is decided. */
#ifndef DROVER_OPERATOR_PROGRAM_H
#define DROVER_OPERATOR_PROGRAM_H

#include "operator/probes.h"

/* The longest that is waited: a clock that is put forward, or a machine that slept, is noticed
 * then. */
#define PROGRAM_WAIT_MS_MAX INT64_C(60000)

typedef struct program_handler {
    void *context;
    void (*turn)(void *context); /* before the loop waits */
    void (*due)(void *context);  /* what was waited for is over; NULL: the turn after it knows */
    void (*end)(void *context);  /* SIGTERM or SIGINT: uv_stop, now or when the time has come */
    void (*metrics)(void *context, buf *out); /* in the text form of Prometheus */
    const char *(*trouble)(void *context);    /* why it is not ready; NULL: it is */
} program_handler;

/* Must not move while it is open. */
typedef struct program {
    uv_loop_t loop;
    program_handler handler;
    uv_prepare_t prepare;
    uv_timer_t timer;
    uv_signal_t signals[2];
    probes *metrics, *health;
} program;

/* False with an error: nothing is open. */
bool program_open(program *p, program_handler handler, err *error);
/* Serves /metrics, and /healthz and /readyz; empty: nowhere. */
bool program_serve(program *p, str metrics, str health, err *error);
/* The next turn comes after this time at the latest; less than 0 is at once. */
void program_wait(program *p, int64_t ms);
/* Runs the loop once more, so that all that was closed on it ends. */
void program_close(program *p);

#endif
