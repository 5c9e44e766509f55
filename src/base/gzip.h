/* SPDX-License-Identifier: Apache-2.0 */
/* gzip.h - bytes made smaller, by RFC 1952, and large again. The same bytes in give the same bytes
 * out. */
#ifndef DROVER_BASE_GZIP_H
#define DROVER_BASE_GZIP_H

#include "base/str.h"

/* Appends the compressed bytes. False without memory, or when the buffer failed. */
bool gzip_compress(str bytes, buf *out);

#define GZIP_RESULTS(X) X(GOOD, "good") X(BAD, "bad") X(LARGE, "large") X(MEMORY, "memory")

typedef enum gzip_result {
#define X(result, text) GZIP_##result,
    GZIP_RESULTS(X)
#undef X
} gzip_result;

/* Appends what was compressed. BAD: this is no gzip, or not all of it. LARGE: it does not fit into
 * the buffer's maximum; at most that much memory was taken. */
gzip_result gzip_expand(str bytes, buf *out);

#endif
