/* SPDX-License-Identifier: Apache-2.0 */
/* credentials.h - what is shown to the API server in each request, kept fresh.
 *
 * A token file is read again every minute, since kubelets replace it. An exec plugin is run once,
 * and again when what it handed out expires or is refused; that blocks for as long as the plugin
 * takes, at most CREDENTIALS_EXEC_SECONDS. One that fails is run again after CREDENTIALS_RETRY_MS;
 * what it handed out before is shown as long as it holds. */
#ifndef DROVER_KUBE_CREDENTIALS_H
#define DROVER_KUBE_CREDENTIALS_H

#include "kube/kubeconfig.h"

#define CREDENTIALS_FILE_MS 60000
#define CREDENTIALS_EXEC_SECONDS 60
#define CREDENTIALS_RETRY_MS 5000
#define CREDENTIALS_BYTES_MAX (1u << 20)

typedef struct credentials credentials;

/* The access must live as long. NULL without memory. */
credentials *credentials_new(const kube_access *access);
credentials *credentials_free(credentials *c);

/* Zero-terminated bearer token, or empty: none is used. Stays until the next call. */
bool credentials_token(credentials *c, int64_t now_ms, str *ret, err *error);
/* PEM that an exec plugin handed out instead of a token; empty if it did not. */
str credentials_certificate(const credentials *c);
str credentials_key(const credentials *c);
/* The server did not accept them: get new ones before the next request. */
void credentials_refused(credentials *c);

#endif
