/* SPDX-License-Identifier: Apache-2.0 */
/* Windows that come by the hour, minute or second.
 *
 * There are too many of them to be counted: a year has 31 million seconds. But all of them are some
 * steps of the same length, of which BYHOUR and BYMINUTE leave parts of a day, and the other parts
 * of the rule leave days. libical says which days; a day costs the same whether a window begins in
 * every second of it or in none. Where clocks change, minutes are looked at one by one. */
#include <assert.h>

#include "base/mem.h"
#include "engine/window_internal.h"

/* ---- reading the rule ---- */

static bool given(const short *by)
{
    return by[0] != ICAL_RECURRENCE_ARRAY_MAX;
}

/* Whether the value is in the list; every value is in one that is not given. */
static bool allows(const short *by, size_t size, int value)
{
    if (!given(by))
        return true;
    for (size_t i = 0; i < size && by[i] != ICAL_RECURRENCE_ARRAY_MAX; i++)
        if (by[i] == value)
            return true;
    return false;
}

static int64_t floor_to(int64_t at, int64_t unit)
{
    int64_t rest = at % unit;
    return at - (rest < 0 ? rest + unit : rest);
}

/* BYHOUR, and unless the rule comes by the hour BYMINUTE, leave these parts of a day. */
static bool make_parts(struct window_cache *w)
{
    const struct icalrecurrencetype *is = &w->recurrence;
    bool limits = is->freq != ICAL_HOURLY_RECURRENCE; /* else it says when in the hour */
    day_part open = {0, 0};
    for (int32_t minute = 0; minute < DAY_MINUTES; minute++) {
        int32_t at = minute * MINUTE_SECONDS;
        if (!allows(is->by_hour, ICAL_BY_HOUR_SIZE, minute / 60) ||
            (limits && !allows(is->by_minute, ICAL_BY_MINUTE_SIZE, minute % 60)))
            continue;
        if (open.to != at) {
            if (open.to > open.from && !vec_push(&w->parts, open))
                return false;
            open.from = at;
        }
        open.to = at + MINUTE_SECONDS;
    }
    return open.to == open.from || vec_push(&w->parts, open);
}

static bool add_step(struct window_cache *w, int64_t first, int64_t every, int64_t anchor)
{
    while (first < anchor)
        first += every;
    return vec_push(&w->steps, (window_step){first, every});
}

/* By the second: those of every interval that BYSECOND allows. */
static bool steps_of_seconds(struct window_cache *w, int64_t anchor)
{
    const struct icalrecurrencetype *is = &w->recurrence;
    int64_t every = is->interval;
    if (!given(is->by_second))
        return add_step(w, anchor, every, anchor);
    int64_t round = every; /* after which the same seconds of a minute come again */
    while (round % MINUTE_SECONDS != 0)
        round += every;
    for (int64_t at = anchor; at < anchor + round; at += every) {
        int second = (int)(at - floor_to(at, MINUTE_SECONDS));
        if (allows(is->by_second, ICAL_BY_SECOND_SIZE, second) && !add_step(w, at, round, anchor))
            return false;
    }
    return true;
}

/* By the minute or hour: at every second, and minute of an hour, that is given; else at those of
 * the anchor. */
static bool steps_of_minutes(struct window_cache *w, int64_t anchor, bool hours)
{
    const struct icalrecurrencetype *is = &w->recurrence;
    int64_t unit = hours ? HOUR_SECONDS : MINUTE_SECONDS;
    int64_t base = floor_to(anchor, unit), minute = floor_to(anchor, MINUTE_SECONDS);
    bool minutes = hours && given(is->by_minute), seconds = given(is->by_second);
    for (int64_t at = base; at < base + unit; at += MINUTE_SECONDS) {
        int of_hour = (int)((at - base) / MINUTE_SECONDS);
        if (minutes ? !allows(is->by_minute, ICAL_BY_MINUTE_SIZE, of_hour) : at != minute)
            continue;
        for (int second = 0; second < MINUTE_SECONDS; second++) {
            if (seconds ? !allows(is->by_second, ICAL_BY_SECOND_SIZE, second)
                        : second != anchor - minute)
                continue;
            if (!add_step(w, at + second, unit * is->interval, anchor))
                return false;
        }
    }
    return true;
}

/* The days are those of the rule without all that is smaller. */
static void keep_days(struct window_cache *w)
{
    struct icalrecurrencetype *is = &w->recurrence;
    is->freq = given(is->by_year_day) ? ICAL_YEARLY_RECURRENCE : ICAL_DAILY_RECURRENCE;
    is->interval = 1;
    is->until = icaltime_null_time();
    /* Whole: libical puts the anchor's own in front of what is left in them. */
    memset(is->by_hour, ICAL_RECURRENCE_ARRAY_MAX_BYTE, sizeof is->by_hour);
    memset(is->by_minute, ICAL_RECURRENCE_ARRAY_MAX_BYTE, sizeof is->by_minute);
    memset(is->by_second, ICAL_RECURRENCE_ARRAY_MAX_BYTE, sizeof is->by_second);
    w->anchor.hour = w->anchor.minute = w->anchor.second = 0;
}

bool steps_make(struct window_cache *w)
{
    const struct icalrecurrencetype *is = &w->recurrence;
    int64_t anchor = (int64_t)icaltime_as_timet(w->anchor);
    bool good = true;
    if (is->freq > ICAL_HOURLY_RECURRENCE || given(is->by_set_pos) || is->interval < 1)
        return true;
    if (is->freq == ICAL_SECONDLY_RECURRENCE)
        good = steps_of_seconds(w, anchor);
    else
        good = steps_of_minutes(w, anchor, is->freq == ICAL_HOURLY_RECURRENCE);
    bool never = w->steps.len == 0;
    /* COUNT needs the order of occurrences, which is that of one kind of steps alone. */
    if (w->steps.len > STEPS_MAX || (w->count > 0 && w->steps.len > 1))
        w->steps.len = 0;
    if (never) /* no second is one of the interval and of BYSECOND */
        good = good && vec_push(&w->steps, (window_step){anchor, 1});
    if (!good || w->steps.len == 0)
        return good;
    w->until = never ? INT64_MIN : INT64_MAX;
    if (!never && !icaltime_is_null_time(is->until)) /* a date: not on that day any more */
        w->until = (int64_t)icaltime_as_timet(is->until) - (is->until.is_date ? 1 : 0);
    good = make_parts(w);
    keep_days(w);
    return good;
}

/* ---- a day ---- */

static bool add_span(struct window_cache *w, const counting *k, int64_t start_ms, int64_t end_ms)
{
    if (end_ms <= k->from_ms)
        return true;
    span *last = w->spans.len > 0 ? &w->spans.at[w->spans.len - 1] : NULL;
    if (last && start_ms >= last->start_ms && start_ms <= last->end_ms) {
        last->end_ms = later_of(last->end_ms, end_ms);
        return true;
    }
    return vec_push(&w->spans, (span){start_ms, end_ms});
}

/* Some seconds that clocks show one after the other, with one offset: [from, to). */
typedef struct stretch {
    int64_t from, to, offset;
} stretch;

/* The occurrences of one kind of steps in it. Those that reach the next are one window. */
static bool add_steps(struct window_cache *w, counting *k, const window_step *s, stretch in)
{
    int64_t from = later_of(in.from, s->first), to = w->until < in.to - 1 ? w->until + 1 : in.to;
    int64_t at = s->first + (from - s->first + s->every - 1) / s->every * s->every;
    if (at >= to)
        return true;
    int64_t count = (to - 1 - at) / s->every + 1;
    count = count < k->left ? count : k->left;
    k->left -= count;
    bool dense = s->every * SECOND_MS <= w->duration_ms;
    for (int64_t left = dense && count > 0 ? 1 : count; left > 0; left--, at += s->every) {
        int64_t start_ms = (at - in.offset) * SECOND_MS;
        int64_t more_ms = dense ? (count - 1) * s->every * SECOND_MS : 0;
        if (!add_span(w, k, start_ms, start_ms + more_ms + w->duration_ms))
            return false;
    }
    return true;
}

static bool add_stretch(struct window_cache *w, counting *k, int64_t day, stretch in)
{
    for (size_t p = 0; p < w->parts.len && k->left > 0; p++) {
        stretch part = {later_of(in.from, day + w->parts.at[p].from), in.to, in.offset};
        if (day + w->parts.at[p].to < part.to)
            part.to = day + w->parts.at[p].to;
        for (size_t i = 0; part.from < part.to && i < w->steps.len; i++)
            if (!add_steps(w, k, &w->steps.at[i], part))
                return false;
    }
    return true;
}

/* Whether clocks show all of [from, to) once, and with which offset; asked of an hour at most. */
static bool shown_once(const struct window_cache *w, int64_t from, int64_t to, int64_t *ret_offset)
{
    int64_t first_ms, last_ms, last = to - MINUTE_SECONDS;
    bool even = moment_shown(from, w->zone, &first_ms) && moment_shown(last, w->zone, &last_ms) &&
                last_ms - first_ms == (last - from) * SECOND_MS;
    *ret_offset = from - first_ms / SECOND_MS;
    return even && moment_again(from, w->zone, first_ms) == NEVER &&
           moment_again(last, w->zone, last_ms) == NEVER;
}

/* A minute that clocks skip, or show twice. What comes again does so whatever COUNT says. */
static bool add_minute(struct window_cache *w, counting *k, int64_t day, int64_t from)
{
    int64_t first_ms, left = k->left;
    if (!moment_shown(from, w->zone, &first_ms))
        return true;
    int64_t again_ms = moment_again(from, w->zone, first_ms);
    stretch in = {from, from + MINUTE_SECONDS, from - first_ms / SECOND_MS};
    if (!add_stretch(w, k, day, in))
        return false;
    if (again_ms == NEVER)
        return true;
    counting again = *k;
    again.left = left;
    in.offset = from - again_ms / SECOND_MS;
    return add_stretch(w, &again, day, in);
}

bool steps_day(struct window_cache *w, counting *k, int64_t day)
{
    int64_t offset = zone_offset(w->zone, day - DAY_SECONDS);
    if (offset == zone_offset(w->zone, day + 2 * DAY_SECONDS))
        return add_stretch(w, k, day, (stretch){day, day + DAY_SECONDS, offset});
    for (int64_t hour = day; hour < day + DAY_SECONDS; hour += HOUR_SECONDS) {
        bool good = true, once = shown_once(w, hour, hour + HOUR_SECONDS, &offset);
        if (once)
            good = add_stretch(w, k, day, (stretch){hour, hour + HOUR_SECONDS, offset});
        for (int64_t at = hour; good && !once && at < hour + HOUR_SECONDS; at += MINUTE_SECONDS)
            good = add_minute(w, k, day, at);
        if (!good)
            return false;
    }
    return true;
}
