/* SPDX-License-Identifier: Apache-2.0 */
/* moment.h - points in time, as RFC 3339 writes them.
 *
 * Years 1 to 9999, nanoseconds, proleptic Gregorian calendar, no leap seconds. */
#ifndef DROVER_BASE_MOMENT_H
#define DROVER_BASE_MOMENT_H

#include "base/err.h"
#include "base/str.h"

typedef struct moment {
    int64_t seconds; /* since 1970-01-01T00:00:00Z */
    int32_t nanos;   /* 0 to 999,999,999, counted forwards also before 1970 */
} moment;

#define MOMENT_SECONDS_MIN INT64_C(-62135596800) /* 0001-01-01T00:00:00Z */
#define MOMENT_SECONDS_MAX INT64_C(253402300799) /* 9999-12-31T23:59:59Z */

/* What a calendar and a clock on the wall show. */
typedef struct civil {
    int64_t year;
    int month; /* 1 to 12 */
    int day;   /* 1 to 31 */
    int hour, minute, second;
    int weekday;     /* 0 is Sunday */
    int day_of_year; /* 0 to 365 */
} civil;

bool moment_parse(str text, moment *ret, err *error);
/* In UTC, with as many digits of the second as are needed. */
#define MOMENT_TEXT_BYTES 40
size_t moment_format(moment m, char out[MOMENT_TEXT_BYTES]);

static inline int moment_cmp(moment a, moment b)
{
    if (a.seconds != b.seconds)
        return a.seconds < b.seconds ? -1 : 1;
    return (a.nanos > b.nanos) - (a.nanos < b.nanos);
}

/* m + ns; false outside the years 1 to 9999. */
bool moment_add(moment m, int64_t ns, moment *ret);
/* a - b in nanoseconds; false when it does not fit. */
bool moment_sub(moment a, moment b, int64_t *ret_ns);

/* The calendar of a time zone that is offset_seconds east of UTC. */
civil moment_civil(moment m, int64_t offset_seconds);
/* Days since 1970-01-01 of a date. */
int64_t civil_days(int64_t year, int month, int day);

#endif
