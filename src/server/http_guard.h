/* SPDX-License-Identifier: Apache-2.0 */
/* http_guard.h - whom a request was meant for, and from where it comes.
 *
 * A page of somebody else that makes a browser talk to this server is told so: its Host is a name
 * this server does not have (a name that was rebound to our address), or its Origin is another.
 * IP addresses are never foreign: no one can rebind them. Internal to src/server. */
#ifndef DROVER_SERVER_HTTP_GUARD_H
#define DROVER_SERVER_HTTP_GUARD_H

#include "server/http.h"

#define GUARD_NAME_BYTES 256

typedef struct guard_names {
    char at[HTTP_HOSTS_MAX][GUARD_NAME_BYTES];
    size_t len;
    bool tls;
} guard_names;

bool guard_fill(guard_names *names, const http_settings *settings, err *error);
/* 0, or the status to refuse it with. */
int guard_check(const guard_names *names, const http_request *q, err *error);

#endif
