/* SPDX-License-Identifier: Apache-2.0 */
/* window_internal.h - what the two files of deploymentWindow share. Nobody else includes it.
 *
 *     rule_window.c   the rule; occurrences that libical counts one by one
 *     window_steps.c  rules that come by the hour, minute or second: libical finds their days, and
 *                     what is in a day is worked out, however many there are */
#ifndef DROVER_ENGINE_WINDOW_INTERNAL_H
#define DROVER_ENGINE_WINDOW_INTERNAL_H

#include <libical/ical.h>

#include "engine/chain.h"
#include "select/zone.h"

#define MINUTE_SECONDS 60
#define HOUR_SECONDS 3600
#define DAY_SECONDS 86400
#define MINUTE_MS (MINUTE_SECONDS * SECOND_MS)
#define DAY_MS (DAY_SECONDS * SECOND_MS)
#define DAY_MINUTES 1440

/* So many steps a rule has at most: a rule with more is counted one by one. */
#define STEPS_MAX 120u

typedef struct span {
    int64_t start_ms, end_ms;
} span;

/* Occurrences at first, first + every, ...: in seconds as the clocks of the zone show them. */
typedef struct window_step {
    int64_t first, every;
} window_step;

/* Some minutes of a day that lie side by side, in seconds: [from, to). */
typedef struct day_part {
    int32_t from, to;
} day_part;

/* What was answered: a step asks of all targets for the same few moments. */
#define WINDOW_ANSWERS 2u
typedef struct window_answer {
    bool known, inside;
    int64_t at_ms, start_ms, change_ms;
} window_answer;

struct window_cache {
    bool good, allow;
    struct icalrecurrencetype recurrence; /* with steps: of the days */
    const time_zone *zone;
    struct icaltimetype anchor;
    bool ends;     /* by UNTIL or COUNT */
    int64_t count; /* COUNT, 0: none; kept here, since libical counts what does not occur, too */
    int64_t latest_ms; /* the latest moment that was asked for */
    int64_t duration_ms;
    int64_t from_ms, to_ms; /* answers are known for [from, to) */
    VEC(span) spans;        /* merged: they neither touch nor overlap */
    window_answer last[WINDOW_ANSWERS];
    size_t next;            /* of these, to be forgotten */
    VEC(window_step) steps; /* empty: occurrences are counted one by one */
    VEC(day_part) parts;    /* of a day in which steps count */
    int64_t until;          /* the last second of steps; INT64_MAX: they do not end */
};

/* Where the occurrences are being counted. */
typedef struct counting {
    icalrecur_iterator *it;
    int64_t left;    /* of COUNT */
    int64_t from_ms; /* earlier ones do not matter */
} counting;

/* ---- clocks: times as the zone shows them are in seconds ---- */

/* The first moment at which the clocks of the zone show a time. False if they skip it; then it is
 * what the offset before the gap makes of it. */
bool moment_shown(int64_t wall, const time_zone *z, int64_t *ret_ms);
/* The moment at which clocks that were put back show it once more; NEVER: they do not. What comes
 * by the hour, minute or second comes then, too: an hour that is repeated has no hole. */
int64_t moment_again(int64_t wall, const time_zone *z, int64_t first_ms);

/* ---- steps ---- */

/* Turns a rule by the hour, minute or second into steps and a rule of its days, if it can be.
 * False without memory. */
bool steps_make(struct window_cache *w);
/* Adds what occurs in a day that begins at this time. False without memory. */
bool steps_day(struct window_cache *w, counting *k, int64_t day);

#endif
