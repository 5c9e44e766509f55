/* SPDX-License-Identifier: Apache-2.0 */
#include "support/check.h"

#include "base/duration.h"
#include "base/moment.h"

static void test_parse(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t seconds;
        int32_t nanos;
        const char *canonical;
    } rows[] = {
        {"1970-01-01T00:00:00Z", 0, 0, "1970-01-01T00:00:00Z"},
        {"1970-01-01t00:00:00z", 0, 0, "1970-01-01T00:00:00Z"},
        {"1970-01-01T01:00:00+01:00", 0, 0, "1970-01-01T00:00:00Z"},
        {"1969-12-31T18:30:00-05:30", 0, 0, "1970-01-01T00:00:00Z"},
        {"1970-01-01T00:00:00-00:00", 0, 0, "1970-01-01T00:00:00Z"},
        {"1970-01-01T23:59:00+23:59", 0, 0, "1970-01-01T00:00:00Z"},
        {"1969-12-31T23:59:59.5Z", -1, 500000000, "1969-12-31T23:59:59.5Z"},
        {"2026-11-15T09:00:00Z", 1794733200, 0, "2026-11-15T09:00:00Z"},
        {"2000-02-29T12:34:56.123456789Z", 951827696, 123456789, "2000-02-29T12:34:56.123456789Z"},
        {"2000-02-29T12:34:56.1234567899Z", 951827696, 123456789, "2000-02-29T12:34:56.123456789Z"},
        {"2000-02-29T12:34:56.100Z", 951827696, 100000000, "2000-02-29T12:34:56.1Z"},
        {"2000-02-29T12:34:56.000000001Z", 951827696, 1, "2000-02-29T12:34:56.000000001Z"},
        {"2000-02-29T12:34:56.0Z", 951827696, 0, "2000-02-29T12:34:56Z"},
        {"2024-02-29T00:00:00Z", 1709164800, 0, "2024-02-29T00:00:00Z"},
        {"0001-01-01T00:00:00Z", MOMENT_SECONDS_MIN, 0, "0001-01-01T00:00:00Z"},
        {"0001-01-01T01:00:00+01:00", MOMENT_SECONDS_MIN, 0, "0001-01-01T00:00:00Z"},
        {"0000-12-31T23:00:00-01:00", MOMENT_SECONDS_MIN, 0, "0001-01-01T00:00:00Z"},
        {"9999-12-31T23:59:59.999999999Z", MOMENT_SECONDS_MAX, 999999999,
         "9999-12-31T23:59:59.999999999Z"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        moment m = {7, 7};
        err error = {""};
        scoped(exact_done) str exact = exact_new(str_of(rows[i].text));
        check_msg(moment_parse(exact, &m, &error), "%s", error.text);
        check_msg(m.seconds == rows[i].seconds && m.nanos == rows[i].nanos, "%s gave %lld",
                  rows[i].text, (long long)m.seconds);
        char text[MOMENT_TEXT_BYTES];
        size_t len = moment_format(m, text);
        check_text(((str){text, len}), rows[i].canonical);
        assert_int_equal(text[len], 0);
    }
}

static void test_parse_errors(void **state)
{
    (void)state;
    static const char *const rows[] = {
        "",
        "now",
        "2026",
        "2026-11-15",
        "2026-11-15T09:00:00",
        "2026-11-15T09:00Z",
        "2026-11-15 09:00:00Z",
        "2026-11-15T09:00:00ZZ",
        " 2026-11-15T09:00:00Z",
        "2026-11-15T09:00:00Z ",
        "2026-1-15T09:00:00Z",
        "26-11-15T09:00:00Z",
        "+2026-11-15T09:00:00Z",
        "12026-11-15T09:00:00Z",
        "2026-00-15T09:00:00Z",
        "2026-13-15T09:00:00Z",
        "2026-11-00T09:00:00Z",
        "2026-11-31T09:00:00Z",
        "2026-02-29T09:00:00Z",
        "1900-02-29T09:00:00Z",
        "2100-02-29T09:00:00Z",
        "2026-11-15T24:00:00Z",
        "2026-11-15T09:60:00Z",
        "2026-11-15T23:59:60Z", /* no leap seconds */
        "2026-11-15T09:00:00.Z",
        "2026-11-15T09:00:00,5Z",
        "2026-11-15T09:00:00+1:00",
        "2026-11-15T09:00:00+0100",
        "2026-11-15T09:00:00+24:00",
        "2026-11-15T09:00:00+01:60",
        "2026-11-15T09:00:00+01",
        "0000-12-31T23:59:59Z",
        "0001-01-01T00:00:00+00:01",
        "9999-12-31T23:59:59-00:01",
        "2026-11-15T09:00:00.123456789",
        "2026-11-15T09:00:0\xD9\xA3Z",
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        moment m = {7, 7};
        err error = {""};
        scoped(exact_done) str exact = exact_new(str_of(rows[i]));
        check_msg(!moment_parse(exact, &m, &error), "%s", rows[i]);
        assert_true(m.seconds == 7 && m.nanos == 7);
        check_err_has(error, "\", allowed a time such as 2026-11-15T09:00:00Z");
        assert_false(moment_parse(str_of(rows[i]), &m, NULL));
    }
    moment m;
    assert_false(moment_parse((str){NULL, 0}, &m, NULL));
    assert_false(moment_parse((str){"2026-11-15T09:00:00Z\0", 21}, &m, NULL));
}

/* No other sign is taken for a digit or a separator, wherever it stands; no shorter text passes. */
static void test_every_byte(void **state)
{
    (void)state;
    static const char good[] = "2011-11-11T11:11:11.11+11:11";
    moment m;
    assert_true(moment_parse(str_of(good), &m, NULL));
    for (size_t at = 0; at < strlen(good); at++) {
        for (int c = 0; c < 256; c++) {
            if (c >= '0' && c <= '9' && good[at] >= '0' && good[at] <= '9')
                continue;
            char text[sizeof good];
            memcpy(text, good, sizeof good);
            text[at] = (char)c;
            bool want =
                good[at] == c || (good[at] == 'T' && c == 't') || (good[at] == '+' && c == '-');
            if (moment_parse((str){text, sizeof good - 1}, &m, NULL) != want)
                fail_msg("%s with byte %d at %zu", good, c, at);
        }
        scoped(exact_done) str shorter = exact_new((str){good, at});
        assert_false(moment_parse(shorter, &m, NULL));
    }
}

static void test_compare(void **state)
{
    (void)state;
    static const moment rows[] = {{-5, 0}, {-1, 0}, {-1, 999999999}, {0, 0}, {0, 1}, {9, 0}};
    for (int i = 0; i < (int)COUNT_OF(rows); i++)
        for (int j = 0; j < (int)COUNT_OF(rows); j++)
            assert_int_equal(moment_cmp(rows[i], rows[j]), (i > j) - (i < j));
}

__extension__ typedef __int128 wide;

static wide total(moment m)
{
    return (wide)m.seconds * DURATION_SECOND + m.nanos;
}

static void check_sub(moment a, moment b)
{
    wide want = total(a) - total(b);
    bool fits = want >= INT64_MIN && want <= INT64_MAX;
    int64_t got = 77;
    if (moment_sub(a, b, &got) != fits || got != (fits ? (int64_t)want : 77))
        fail_msg("%lld.%09d - %lld.%09d gave %lld", (long long)a.seconds, a.nanos,
                 (long long)b.seconds, b.nanos, (long long)got);
}

static void check_add(moment m, int64_t ns)
{
    wide want = total(m) + ns;
    bool fits = want >= (wide)MOMENT_SECONDS_MIN * DURATION_SECOND &&
                want < ((wide)MOMENT_SECONDS_MAX + 1) * DURATION_SECOND;
    moment got = {7, 7};
    bool good = moment_add(m, ns, &got);
    if (good != fits || (fits && total(got) != want) || (!fits && got.seconds != 7) ||
        got.nanos < 0 || got.nanos > 999999999)
        fail_msg("%lld.%09d + %lld", (long long)m.seconds, m.nanos, (long long)ns);
}

static void test_sum_and_difference(void **state)
{
    (void)state;
    static const moment corners[] = {
        {MOMENT_SECONDS_MIN, 0}, {MOMENT_SECONDS_MAX, 999999999}, {0, 0}, {0, 999999999}, {-1, 1},
    };
    static const int64_t spans[] = {INT64_MIN, -DURATION_SECOND, -1, 0, 1, 999999999, INT64_MAX};
    for (size_t i = 0; i < COUNT_OF(corners); i++) {
        for (size_t j = 0; j < COUNT_OF(corners); j++)
            check_sub(corners[i], corners[j]);
        for (size_t j = 0; j < COUNT_OF(spans); j++)
            check_add(corners[i], spans[j]);
    }
    /* The seconds alone would overflow; with the nanoseconds the difference fits, just. */
    check_sub((moment){0, 145224192}, (moment){9223372037, 0});
    check_sub((moment){0, 145224191}, (moment){9223372037, 0});
    check_sub((moment){9223372036, 854775807}, (moment){0, 0});
    check_sub((moment){9223372036, 854775808}, (moment){0, 0});

    int64_t got = 77; /* no times of this calendar, but no reason to overflow, either */
    assert_false(moment_sub((moment){INT64_MAX, 0}, (moment){-1, 0}, &got));
    assert_false(moment_add((moment){INT64_MAX, 0}, INT64_MAX, &(moment){0, 0}));

    rng r = rng_seeded();
    int64_t range = MOMENT_SECONDS_MAX - MOMENT_SECONDS_MIN + 1;
    for (int i = 0; i < 200000; i++) {
        moment a = {MOMENT_SECONDS_MIN + (int64_t)rng_below(&r, (size_t)range),
                    (int32_t)rng_below(&r, 1000000000)};
        moment b = {a.seconds - 9223372037 + (int64_t)rng_below(&r, 4),
                    (int32_t)rng_below(&r, 1000000000)};
        check_sub(a, b);
        check_sub(b, a);
        check_add(a, (int64_t)rng_next(&r) >> rng_below(&r, 64));
    }
}

/* The calendar, walked a day at a time from the first to the last. */
static void test_every_day(void **state)
{
    (void)state;
    static const int lengths[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    int64_t days = MOMENT_SECONDS_MIN / 86400;
    int weekday = 1; /* 0001-01-01 was a Monday */
    for (int year = 1; year <= 9999; year++) {
        bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
        int day_of_year = 0;
        for (int month = 1; month <= 12; month++) {
            int length = lengths[month - 1] + (month == 2 && leap);
            for (int day = 1; day <= length; day++) {
                civil c = moment_civil((moment){days * 86400 + 86399, 0}, 0);
                if (c.year != year || c.month != month || c.day != day || c.weekday != weekday ||
                    c.day_of_year != day_of_year || c.hour != 23 || c.minute != 59 ||
                    c.second != 59 || civil_days(year, month, day) != days)
                    fail_msg("%04d-%02d-%02d", year, month, day);
                days++;
                day_of_year++;
                weekday = (weekday + 1) % 7;
            }
        }
    }
    assert_int_equal(days, (MOMENT_SECONDS_MAX + 1) / 86400);
}

/* The calendar repeats itself after 400 years, also before year 1. */
static void test_before_year_one(void **state)
{
    (void)state;
    for (int64_t day = civil_days(1, 1, 1); day < civil_days(801, 1, 1); day++) {
        civil c = moment_civil((moment){day * 86400, 0}, 0);
        civil before = moment_civil((moment){(day - 2 * INT64_C(146097)) * 86400, 0}, 0);
        if (before.year != c.year - 800 || before.month != c.month || before.day != c.day ||
            before.weekday != c.weekday || before.day_of_year != c.day_of_year ||
            civil_days(before.year, before.month, before.day) != day - 2 * 146097)
            fail_msg("%d-%d-%d", (int)c.year, c.month, c.day);
    }
}

static void test_civil_of_a_zone(void **state)
{
    (void)state;
    civil c = moment_civil((moment){0, 0}, -1);
    assert_true(c.year == 1969 && c.month == 12 && c.day == 31 && c.second == 59);
    assert_int_equal(c.day_of_year, 364);
    c = moment_civil((moment){1794733200, 0}, 5 * 3600 + 30 * 60);
    assert_true(c.hour == 14 && c.minute == 30 && c.weekday == 0);
    /* A zone may show a year outside of 1 to 9999. */
    c = moment_civil((moment){MOMENT_SECONDS_MIN, 0}, -3600);
    assert_true(c.year == 0 && c.month == 12 && c.day == 31 && c.hour == 23);
    c = moment_civil((moment){MOMENT_SECONDS_MAX, 0}, 1);
    assert_true(c.year == 10000 && c.month == 1 && c.day == 1 && c.hour == 0);
}

static void test_round_trip(void **state)
{
    (void)state;
    rng r = rng_seeded();
    int64_t range = MOMENT_SECONDS_MAX - MOMENT_SECONDS_MIN + 1;
    for (int i = 0; i < 200000; i++) {
        moment want = {MOMENT_SECONDS_MIN + (int64_t)rng_below(&r, (size_t)range),
                       (int32_t)rng_below(&r, 1000000000)};
        if (rng_below(&r, 2))
            want.nanos = want.nanos / 1000000 * 1000000;
        char text[MOMENT_TEXT_BYTES];
        size_t len = moment_format(want, text);
        moment got = {7, 7};
        if (!moment_parse((str){text, len}, &got, NULL) || moment_cmp(got, want) != 0)
            fail_msg("%s", text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parse),
        cmocka_unit_test(test_parse_errors),
        cmocka_unit_test(test_every_byte),
        cmocka_unit_test(test_compare),
        cmocka_unit_test(test_sum_and_difference),
        cmocka_unit_test(test_every_day),
        cmocka_unit_test(test_before_year_one),
        cmocka_unit_test(test_civil_of_a_zone),
        cmocka_unit_test(test_round_trip),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
