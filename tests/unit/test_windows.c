/* SPDX-License-Identifier: Apache-2.0 */
/* Windows that come by the hour, minute or second, held against what the clocks on the wall show:
 * for random rules every second is asked whether it is one. */
#include <stdlib.h>
#include <time.h>

#include "support/check.h"

#include "base/str.h"
#include "engine/window.h"
#include "model/recurrence.h"
#include "select/zone.h"

#define RULES 60
#define DAYS 3
#define DAY INT64_C(86400)

/* A rule, once as text and once taken apart. */
typedef struct rule_parts {
    const char *freq;
    int64_t unit, interval, duration_minutes, anchor, until; /* as clocks show them, in seconds */
    int64_t count;
    uint64_t hours, minutes, seconds, weekdays; /* sets; 0: not given */
    const char *zone;
    char text[1024];
} rule_parts;

static uint64_t roll(uint64_t *seed, uint64_t sides)
{
    *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (*seed >> 33) % sides;
}

/* Some of the numbers below limit, or in three of four cases all. */
static uint64_t some(uint64_t *seed, unsigned limit)
{
    uint64_t set = 0;
    if (roll(seed, 4) != 0)
        return 0;
    for (uint64_t n = 1 + roll(seed, 4); n > 0; n--)
        set |= UINT64_C(1) << roll(seed, limit);
    return set;
}

static void add_set(buf *b, const char *part, uint64_t set, const char *const *names)
{
    bool any = false;
    for (int i = 0; i < 64; i++) {
        if (!(set >> i & 1))
            continue;
        buf_addf(b, "%s", any ? "," : part);
        any = true;
        if (names)
            buf_addz(b, names[i]);
        else
            buf_addf(b, "%d", i);
    }
}

static void add_time(buf *b, const char *part, int64_t wall)
{
    time_t at = (time_t)wall;
    struct tm parts;
    gmtime_r(&at, &parts);
    buf_addf(b, "%s%04d%02d%02dT%02d%02d%02d", part, parts.tm_year + 1900, parts.tm_mon + 1,
             parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec);
}

static void random_rule(rule_parts *r, uint64_t seed, int64_t from)
{
    static const char *const days[] = {"SU", "MO", "TU", "WE", "TH", "FR", "SA"};
    static const char *const zones[] = {"UTC", "Europe/Berlin", "Australia/Lord_Howe"};
    static const struct {
        const char *freq;
        int64_t unit;
    } units[] = {{"SECONDLY", 1}, {"MINUTELY", 60}, {"HOURLY", 3600}};
    static const int64_t intervals[] = {1, 1, 2, 5, 7, 15, 25, 90, 1000};
    static const int64_t durations[] = {1, 1, 2, 7, 30, 61, 200};
    uint64_t unit = roll(&seed, 3);
    *r = (rule_parts){.freq = units[unit].freq,
                      .unit = units[unit].unit,
                      .interval = intervals[roll(&seed, COUNT_OF(intervals))],
                      .duration_minutes = durations[roll(&seed, COUNT_OF(durations))],
                      .zone = zones[roll(&seed, 3)],
                      .until = INT64_MAX};
    r->hours = some(&seed, 24);
    r->minutes = some(&seed, 60);
    r->seconds = some(&seed, 60);
    r->weekdays = some(&seed, 7);
    buf b = BUF(sizeof r->text);
    if (roll(&seed, 2) == 0) {
        r->anchor = from - 2 * DAY + (int64_t)roll(&seed, 3 * DAY);
        add_time(&b, "DTSTART=", r->anchor);
        buf_addz(&b, ";");
    }
    buf_addf(&b, "FREQ=%s;INTERVAL=%lld", r->freq, (long long)r->interval);
    add_set(&b, ";BYHOUR=", r->hours, NULL);
    add_set(&b, ";BYMINUTE=", r->minutes, NULL);
    add_set(&b, ";BYSECOND=", r->seconds, NULL);
    add_set(&b, ";BYDAY=", r->weekdays, days);
    uint64_t end = roll(&seed, 4);
    if (end == 0) {
        r->until = from + (int64_t)roll(&seed, DAYS * DAY);
        add_time(&b, ";UNTIL=", r->until);
    } else if (end == 1 && r->anchor != 0 && strcmp(r->zone, "UTC") == 0) {
        r->count = 1 + (int64_t)roll(&seed, 2000);
        buf_addf(&b, ";COUNT=%lld", (long long)r->count);
    }
    buf_add(&b, STR("\0"));
    assert_false(b.failed);
    memcpy(r->text, b.ptr, b.len);
    buf_done(&b);
}

static bool in(uint64_t set, int64_t n)
{
    return set == 0 || (set >> n & 1);
}

static int64_t floor_to(int64_t at, int64_t unit)
{
    return at - (at % unit + unit) % unit;
}

/* Whether the rule has an occurrence when clocks show that. What is not given of the smaller parts
 * is the anchor's. */
static bool occurs(const rule_parts *r, int64_t wall)
{
    if (wall < r->anchor || wall > r->until)
        return false;
    if ((floor_to(wall, r->unit) - floor_to(r->anchor, r->unit)) % (r->unit * r->interval) != 0)
        return false;
    int64_t second = wall - floor_to(wall, 60), minute = (wall - floor_to(wall, 3600)) / 60;
    int64_t own_second = r->anchor - floor_to(r->anchor, 60);
    int64_t own_minute = (r->anchor - floor_to(r->anchor, 3600)) / 60;
    if (r->unit > 1 && r->seconds == 0 ? second != own_second : !in(r->seconds, second))
        return false;
    if (r->unit > 60 && r->minutes == 0 ? minute != own_minute : !in(r->minutes, minute))
        return false;
    return in(r->hours, (wall - floor_to(wall, DAY)) / 3600) &&
           in(r->weekdays, (floor_to(wall, DAY) / DAY + 4) % 7);
}

static int64_t offset_of(int64_t at)
{
    time_t t = (time_t)at;
    struct tm parts;
    localtime_r(&t, &parts);
    return parts.tm_gmtoff;
}

typedef struct listener {
    int64_t open; /* seconds that were told to be open */
    uint8_t *at;  /* by second */
    int64_t from;
} listener;

static void hear(void *context, int64_t from_ms, int64_t to_ms)
{
    listener *l = context;
    for (int64_t at = from_ms / 1000; at < to_ms / 1000; at++) {
        l->at[at - l->from] = 1;
        l->open++;
    }
}

static void check_rule(const rule_parts *r, int64_t from)
{
    deployment_window w = {.rrule = str_of(r->text),
                           .duration_minutes = r->duration_minutes,
                           .timezone = str_of(r->zone),
                           .allow_window = true};
    listener l = {.at = calloc(DAYS * (size_t)DAY, 1), .from = from};
    assert_non_null(l.at);
    setenv("TZ", r->zone, 1);
    tzset();
    assert_true(window_open_spans(&w, from * 1000, (from + DAYS * DAY) * 1000, hear, &l));
    int64_t last = INT64_MIN / 2, left = r->count > 0 ? r->count : INT64_MAX, offset = 0;
    /* The longest duration, and an anchor two days back, are before the first second. */
    for (int64_t at = from - 3 * DAY; at < from + DAYS * DAY; at++) {
        if (at % 60 == 0)
            offset = offset_of(at);
        if (left > 0 && occurs(r, at + offset)) {
            last = at;
            left--;
        }
        bool open = at - last < r->duration_minutes * 60;
        if (at >= from)
            check_msg(l.at[at - from] == open, "%s in %s, %lld min: at %lld it is %s", r->text,
                      r->zone, (long long)r->duration_minutes, (long long)at,
                      open ? "open" : "shut");
    }
    free(l.at);
}

/* Three days in which clocks go back in Berlin, and forward on another row; in Lord Howe half an
 * hour. */
static void steps_are_what_clocks_show(void **state)
{
    (void)state;
    static const int64_t starts[] = {
        1792800000, /* 2026-10-24: Berlin goes back */
        1774656000, /* 2026-03-28: Berlin goes forward */
        1775260800, /* 2026-04-04: Lord Howe goes back */
        1790985600, /* 2026-10-03: Lord Howe goes forward */
        1767225600, /* 2026-01-01 */
    };
    for (uint64_t i = 0; i < RULES; i++) {
        rule_parts r;
        int64_t from = starts[i % COUNT_OF(starts)];
        random_rule(&r, i * 7919 + 1, from);
        check_rule(&r, from);
    }
}

/* ---- answers far away ---- */

static void note_first(void *context, int64_t from_ms, int64_t to_ms)
{
    int64_t *first = context;
    (void)to_ms;
    if (*first == 0)
        *first = from_ms;
}

/* A window that denies is open first at that time, from 2026-03-01T08:00Z on and within 40 years;
 * each is asked in little time. */
static void far_ends_are_found_soon(void **state)
{
    (void)state;
    static const struct {
        const char *rule;
        int64_t minutes, opens; /* 0: never */
    } rows[] = {
        {"FREQ=SECONDLY;UNTIL=20300101T000000Z", 1, 1893456060},
        {"FREQ=SECONDLY;UNTIL=20300101T000000Z", 4320, 1893456000 + 3 * 86400},
        {"FREQ=MINUTELY;UNTIL=20500101T000030Z", 1, 2524608060},
        {"FREQ=MINUTELY;INTERVAL=7;UNTIL=20400101T000000Z", 10, 2208989340},
        {"FREQ=SECONDLY;INTERVAL=59", 1, 0},
        {"FREQ=SECONDLY;INTERVAL=3;BYMONTH=1,2,3", 1, 1775001657},
        {"FREQ=SECONDLY;INTERVAL=11;BYSECOND=0,30;BYMONTH=1,2,3,4,5,6,7,8,9,10,11,12", 6, 0},
        {"FREQ=DAILY;UNTIL=20500101T000000Z", 1440, 2524694400},
        {"DTSTART=20260301T000000;FREQ=SECONDLY;COUNT=100000000", 1, 1772323200 + 100000059},
    };
    struct timespec begun, ended;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begun);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        deployment_window w = {.rrule = str_of(rows[i].rule),
                               .duration_minutes = rows[i].minutes,
                               .timezone = STR("UTC")};
        int64_t from_ms = INT64_C(1772352000000), first = 0;
        assert_true(window_open_spans(&w, from_ms, from_ms + INT64_C(40) * 365 * DAY * 1000,
                                      note_first, &first));
        check_msg(first == rows[i].opens * 1000, "%s: opens at %lld", rows[i].rule,
                  (long long)first / 1000);
    }
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ended);
    check_msg(ended.tv_sec - begun.tv_sec < 10, "%lld s", (long long)(ended.tv_sec - begun.tv_sec));
}

/* ---- zones ---- */

/* Decisions open no file: whoever takes in a document has read its zones. */
static void zones_are_read_with_the_document(void **state)
{
    (void)state;
    deployment_window w = {.rrule = STR("DTSTART;TZID=Asia/Kathmandu:20260101T020000\n"
                                        "RRULE:FREQ=DAILY;BYHOUR=2"),
                           .allow_window = true,
                           .duration_minutes = 60,
                           .timezone = STR("America/St_Johns")};
    int64_t from_ms = INT64_C(1772352000000), first = 0;
    recurrence parts;
    assert_true(recurrence_parse(w.rrule, &parts, NULL));
    assert_true(timezone_known(w.timezone));
    uint64_t before = zone_lookups();
    assert_true(window_open_spans(&w, from_ms, from_ms + 365 * DAY * 1000, note_first, &first));
    /* It starts at 16:45 in Newfoundland: the hour is 2, the minute stays, and that is 06:15Z. */
    assert_int_equal(first, INT64_C(1772432100) * 1000);
    assert_int_equal(zone_lookups(), before);
}

static void a_zone_is_read_once_and_kept(void **state)
{
    (void)state;
    static const char *const unknown[] = {"Mars/Base", "posix/Europe/Berlin", "right/Europe/Paris"};
    const time_zone *berlin = zone_named(STR("Europe/Berlin"));
    uint64_t before = zone_lookups();
    assert_non_null(berlin);
    assert_ptr_equal(zone_named(STR("Europe/Berlin")), berlin);
    assert_int_equal(zone_lookups(), before);
    assert_int_equal(zone_offset(berlin, 1782864000), 7200); /* July 2026 */
    assert_int_equal(zone_offset(berlin, 4070908800), 3600); /* January 2099 */
    for (size_t i = 0; i < COUNT_OF(unknown); i++)
        assert_null(zone_named(str_of(unknown[i])));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_are_what_clocks_show),
        cmocka_unit_test(far_ends_are_found_soon),
        cmocka_unit_test(zones_are_read_with_the_document),
        cmocka_unit_test(a_zone_is_read_once_and_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
