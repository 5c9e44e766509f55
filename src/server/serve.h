/* SPDX-License-Identifier: Apache-2.0 */
/* serve.h - the whole server: store, control plane, jobs and HTTP on one loop in one thread.
 *
 * Opens them in that order, hands time to the control plane when it is due, and closes them in the
 * other order when it is told to stop (SIGTERM, SIGINT), with a snapshot. Everything that matters
 * is on disk at any time, so being killed loses nothing. */
#ifndef DROVER_SERVER_SERVE_H
#define DROVER_SERVER_SERVE_H

#include "base/err.h"
#include "base/str.h"

#define SERVE_LISTEN "127.0.0.1:7070"
/* Names of files in the data folder. */
#define SERVE_ADDRESS_FILE "address"
#define SERVE_TOKEN_FILE "admin-token"
#define SERVE_JOBS_FOLDER "jobs"

typedef struct serve_settings {
    str listen;          /* ADDRESS:PORT */
    str folder;          /* of the data; made if need be */
    bool folder_named;   /* it is not where clients look by themselves */
    str tls_certificate; /* files; empty: no TLS */
    str tls_key;
    bool insecure; /* other addresses than loopback without TLS */
    bool demo;
    bool fleetlock_join; /* hosts that ask by FleetLock and are no Resource become one */
    bool unsafe_no_sync; /* commits do not wait for the disk: for measurements */
    int64_t per_second;  /* requests that a token may make; 0: AUTH_RATE_PER_SECOND */
    const str *hosts;    /* further names the server is called by */
    size_t host_count;
} serve_settings;

/* Returns when it was stopped. False if it could not begin. */
bool serve_run(const serve_settings *settings, err *error);

#endif
