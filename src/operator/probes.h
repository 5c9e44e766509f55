/* SPDX-License-Identifier: Apache-2.0 */
/* probes.h - GET /metrics, /healthz and /readyz, on the operator's own loop.
 *
 * As little of HTTP as kubelets and Prometheus need: one request a connection, no bodies, no names.
 * What is answered is the caller's; who may ask is the network's business. */
#ifndef DROVER_OPERATOR_PROBES_H
#define DROVER_OPERATOR_PROBES_H

#include <uv.h>

#include "base/err.h"
#include "base/str.h"

#define PROBE_REQUEST_BYTES_MAX 8192
#define PROBE_CONNECTIONS_MAX 64
#define PROBE_SECONDS 10 /* of one connection */

typedef struct probes probes;

typedef struct probe_handler {
    void *context;
    /* Appends the answer to a path and returns its status; 404: there is no such thing. */
    int (*get)(void *context, str path, buf *out);
} probe_handler;

/* address: "8080", ":8080" or "127.0.0.1:8080"; without a host: all of them. NULL with an error. */
probes *probes_start(uv_loop_t *loop, str address, probe_handler handler, err *error);
/* The loop must run once more. */
probes *probes_stop(probes *p);

#endif
