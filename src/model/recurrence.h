/* SPDX-License-Identifier: Apache-2.0 */
/* recurrence.h - the text of a deploymentWindow's rrule, taken apart.
 *
 * Accepted: "FREQ=WEEKLY;BYDAY=SA", the same with "RRULE:" in front, and a start, either in a line
 * of its own ("DTSTART:20260101T020000Z", "DTSTART;TZID=Europe/Berlin:20260101T020000") or as a
 * part
 * ("DTSTART=20260101T020000Z;FREQ=DAILY"). Nothing is computed here. */
#ifndef DROVER_MODEL_RECURRENCE_H
#define DROVER_MODEL_RECURRENCE_H

#include "base/err.h"
#include "base/str.h"

#define RECURRENCE_TEXT_BYTES 1024

typedef struct recurrence {
    char rule[RECURRENCE_TEXT_BYTES]; /* without "RRULE:" and DTSTART, zero-terminated */
    char start[40];                   /* "20260101T020000Z" or without "Z"; empty: none given */
    char zone[64];                    /* of start, empty: the window's own */
} recurrence;

bool recurrence_parse(str text, recurrence *ret, err *error);
/* Whether the system knows that IANA time zone (select/zone.h, which reads it). "UTC" is always
 * known. */
bool timezone_known(str name);

#endif
