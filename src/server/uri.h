/* SPDX-License-Identifier: Apache-2.0 */
/* uri.h - the target of a request, taken apart strictly.
 *
 * Segments and parameters are decoded once, after they were cut, so that what is decoded can never
 * become structure. Refused: empty segments, "." and "..", control characters (zero bytes too), bad
 * percent signs, what is no UTF-8, a parameter that stands twice, and more than the limits. Knows
 * no routes. */
#ifndef DROVER_SERVER_URI_H
#define DROVER_SERVER_URI_H

#include "base/arena.h"
#include "base/err.h"

#define URI_BYTES_MAX 8192
#define URI_SEGMENTS_MAX 8
#define URI_PARAMETERS_MAX 16

typedef struct uri_parameter {
    str name;
    str value;
} uri_parameter;

typedef struct uri {
    str segments[URI_SEGMENTS_MAX];
    size_t segment_count; /* 0: "/" */
    uri_parameter parameters[URI_PARAMETERS_MAX];
    size_t parameter_count;
} uri;

/* Reads an origin-form target such as "/api/v1/jobs?limit=5". Texts are in a. */
bool uri_parse(arena *a, str target, uri *ret, err *error);
/* The value of a parameter; ptr is NULL if it is not there. */
str uri_find(const uri *u, const char *name);
/* Appends text so that it can stand as one segment or one value. */
void uri_encode(buf *out, str text);

#endif
