/* SPDX-License-Identifier: Apache-2.0 */
/* pem.h - certificates and keys of the HTTP server, as they lie in files. Does not look into them.
 */
#ifndef DROVER_SERVER_PEM_H
#define DROVER_SERVER_PEM_H

#include "base/arena.h"
#include "base/err.h"

#define PEM_BYTES_MAX (1024u * 1024u)

/* Zero-terminated, in a. */
bool pem_read(arena *a, str path, str *ret, err *error);

#endif
