/* SPDX-License-Identifier: Apache-2.0 */
/* duration.h - spans of time, in nanoseconds: about 292 years either way.
 *
 * Text is Go's, which Kubernetes and CEL use: "1h30m", "-1.5s", "300ms", "2us", "0". Drover also
 * reads a day, "90d", where it says so. */
#ifndef DROVER_BASE_DURATION_H
#define DROVER_BASE_DURATION_H

#include "base/arena.h"
#include "base/err.h"

#define DURATION_MICROSECOND INT64_C(1000)
#define DURATION_MILLISECOND INT64_C(1000000)
#define DURATION_SECOND INT64_C(1000000000)
#define DURATION_MINUTE (60 * DURATION_SECOND)
#define DURATION_HOUR (60 * DURATION_MINUTE)
#define DURATION_DAY (24 * DURATION_HOUR)

bool duration_parse(str text, int64_t *ret_ns, err *error);
/* The same, and also days: "90d", "1d12h". */
bool duration_parse_days(str text, int64_t *ret_ns, err *error);
/* As Go writes it: "1h30m0s", "1.5s", "0s". */
#define DURATION_TEXT_BYTES 40
size_t duration_format(int64_t ns, char out[DURATION_TEXT_BYTES]);

#endif
