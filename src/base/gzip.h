/* SPDX-License-Identifier: Apache-2.0 */
/* gzip.h - bytes made smaller, by RFC 1952. The same bytes in give the same bytes out. */
#ifndef DROVER_BASE_GZIP_H
#define DROVER_BASE_GZIP_H

#include "base/str.h"

/* Appends the compressed bytes. False without memory, or when the buffer failed. */
bool gzip_compress(str bytes, buf *out);

#endif
