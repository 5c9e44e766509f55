/* SPDX-License-Identifier: Apache-2.0 */
/* console.h - the dashboard of the operator: the same page and the same answers as `drover serve`
 * has, read from the operator's engine.
 *
 * It lives on the operator's loop and thread: a request is answered between two turns, so that
 * nothing is read while it changes, and nothing has to be copied or locked. What takes time is made
 * by a copy of the process (plans) or waits for the API server without holding the loop (who asks,
 * and acts). It decides nothing and writes nothing of its own: an act is a patch that the API
 * server gets with the viewer's own token, the same that `kubectl skyhook` or `drover pause
 * --bundle` sends, over a connection that never shows the operator's credentials.
 *
 * Who reaches a loopback address may look without a token, as at /metrics: such a request came from
 * this machine or through `kubectl port-forward`. On any other address looking needs a token, too.
 */
#ifndef DROVER_CONSOLE_CONSOLE_H
#define DROVER_CONSOLE_CONSOLE_H

#include "operator/operator_run.h"

/* Texts must live as long as the console. */
typedef struct console_settings {
    str listen;                   /* "[ADDRESS]:PORT"; without an address: loopback */
    str tls_certificate, tls_key; /* PEM files; empty: no TLS */
    bool insecure;                /* other addresses than loopback without TLS */
    const str *hosts;             /* further names it is called by */
    size_t host_count;
    engine_settings engine; /* those of the operator, for plans */
    bool nodes, clusters;   /* what the operator serves */
} console_settings;

typedef struct console console;

/* NULL with an error, also for settings that are not allowed. */
console *console_new(const console_settings *settings, err *error);
console *console_free(console *c);
/* To be given to operator_run, once. */
operator_watcher console_watcher(console *c);
/* Where it listens, once it is open. */
uint16_t console_port(const console *c);

#endif
