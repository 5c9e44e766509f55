/* SPDX-License-Identifier: Apache-2.0 */
#include "support/check.h"

#include "base/duration.h"

#define US DURATION_MICROSECOND
#define MS DURATION_MILLISECOND
#define S DURATION_SECOND
#define M DURATION_MINUTE
#define H DURATION_HOUR
#define D DURATION_DAY

/* The rows of Go's own test of time.ParseDuration, and more. */
static void test_parse(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t want;
    } rows[] = {
        {"0", 0},
        {"-0", 0},
        {"+0", 0},
        {"0s", 0},
        {"5s", 5 * S},
        {"30s", 30 * S},
        {"1478s", 1478 * S},
        {"-5s", -5 * S},
        {"+5s", 5 * S},
        {"5.0s", 5 * S},
        {"5.6s", 5 * S + 600 * MS},
        {"5.s", 5 * S},
        {".5s", 500 * MS},
        {"1.0s", S},
        {"1.00s", S},
        {"1.004s", S + 4 * MS},
        {"1.0040s", S + 4 * MS},
        {"100.00100s", 100 * S + MS},
        {"10ns", 10},
        {"11us", 11 * US},
        {"12\xC2\xB5s", 12 * US},
        {"12\xCE\xBCs", 12 * US},
        {"13ms", 13 * MS},
        {"14s", 14 * S},
        {"15m", 15 * M},
        {"16h", 16 * H},
        {"3h30m", 3 * H + 30 * M},
        {"10.5s4m", 4 * M + 10 * S + 500 * MS},
        {"-2m3.4s", -(2 * M + 3 * S + 400 * MS)},
        {"1h2m3s4ms5us6ns", H + 2 * M + 3 * S + 4 * MS + 5 * US + 6},
        {"39h9m14.425s", 39 * H + 9 * M + 14 * S + 425 * MS},
        {"52763797000ns", 52763797000},
        {"0.3333333333333333333h", 20 * M},
        {"9007199254740993ns", 9007199254740993},
        {"9223372036854775807ns", INT64_MAX},
        {"9223372036854775.807us", INT64_MAX},
        {"9223372036s854ms775us807ns", INT64_MAX},
        {"-9223372036854775808ns", INT64_MIN},
        {"-9223372036854775.808us", INT64_MIN},
        {"-9223372036s854ms775us808ns", INT64_MIN},
        {"-2562047h47m16.854775808s", INT64_MIN},
        {"0.100000000000000000000h", 6 * M},
        {"0.830103483285477580700h", 49 * M + 48 * S + 372539827},
        {"0.9ns", 0}, /* down to whole nanoseconds */
        {"-0.9ns", 0},
        {"1m.5s", M + 500 * MS},
        {"0000001s", S},
        {"1s1s1s", 3 * S},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        int64_t got = 77;
        int64_t with_days = 77;
        err error = {""};
        scoped(exact_done) str text = exact_new(str_of(rows[i].text));
        check_msg(duration_parse(text, &got, &error), "%s", error.text);
        check_msg(got == rows[i].want, "%s gave %lld", rows[i].text, (long long)got);
        assert_true(duration_parse_days(str_of(rows[i].text), &with_days, &error));
        assert_true(with_days == got);
    }
}

static void test_parse_errors(void **state)
{
    (void)state;
    static const char *const rows[] = {
        "",
        "3",
        "-",
        "+",
        "s",
        ".",
        "-.",
        ".s",
        "+.s",
        "1d",
        "\x85\x85",
        "\xFF",
        "hello",
        "1 s",
        " 1s",
        "1s ",
        "1S",
        "1M",
        "--1s",
        "+-1s",
        "1s-1s",
        "1hs",
        "1mx",
        "1e3s",
        "0x1s",
        "1..5s",
        "1.5.5s",
        "00",
        "1week",
        "1s0",
        "0 ",
        "inf",
        "1_000s",
        "3000000h",
        "9223372036854775808ns",
        "9223372036854775.808us",
        "9223372036s854ms775us808ns",
        "-9223372036854775809ns",
        "99999999999999999999999999h",
        "1\xC2s",
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        int64_t got = 77;
        err error = {""};
        scoped(exact_done) str text = exact_new(str_of(rows[i]));
        check_msg(!duration_parse(text, &got, &error), "%s", rows[i]);
        assert_true(got == 77);
        check_err_has(error, "\", allowed a duration such as 90s, 5m or 1h30m");
        assert_true(str_utf8(str_of(error.text)));
        assert_false(duration_parse(str_of(rows[i]), &got, NULL));
    }
    err error = {""};
    int64_t got;
    assert_false(duration_parse(STR("1 day"), &got, &error));
    check_err(error, "found \"1 day\", allowed a duration such as 90s, 5m or 1h30m");
    assert_false(duration_parse_days(STR("1 day"), &got, &error));
    check_err(error, "found \"1 day\", allowed a duration such as 90s, 5m or 1h30m or 7d");
    assert_false(duration_parse((str){NULL, 0}, &got, &error));
    assert_false(duration_parse((str){"1s\0", 3}, &got, &error));
}

static void test_days(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t want;
    } rows[] = {
        {"1d", D}, {"90d", 90 * D}, {"1d12h", D + 12 * H}, {"0.5d", 12 * H}, {"-1d", -D},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        int64_t got = 77;
        assert_true(duration_parse_days(str_of(rows[i].text), &got, NULL));
        check_msg(got == rows[i].want, "%s", rows[i].text);
        assert_false(duration_parse(str_of(rows[i].text), &got, NULL));
    }
    int64_t got;
    assert_true(duration_parse_days(STR("106751d"), &got, NULL));
    assert_false(duration_parse_days(STR("106752d"), &got, NULL));
}

static void test_format(void **state)
{
    (void)state;
    static const struct {
        int64_t ns;
        const char *want;
    } rows[] = {
        {0, "0s"},
        {1, "1ns"},
        {999, "999ns"},
        {1100, "1.1\xC2\xB5s"},
        {1000, "1\xC2\xB5s"},
        {2200 * US, "2.2ms"},
        {MS, "1ms"},
        {999999999, "999.999999ms"},
        {S, "1s"},
        {3300 * MS, "3.3s"},
        {M, "1m0s"},
        {4 * M + 5 * S, "4m5s"},
        {4 * M + 5001 * MS, "4m5.001s"},
        {5 * H + 6 * M + 7001 * MS, "5h6m7.001s"},
        {8 * M + 1, "8m0.000000001s"},
        {H, "1h0m0s"},
        {90 * M, "1h30m0s"},
        {90 * D, "2160h0m0s"},
        {-1500 * MS, "-1.5s"},
        {-1, "-1ns"},
        {INT64_MAX, "2562047h47m16.854775807s"},
        {INT64_MIN, "-2562047h47m16.854775808s"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char text[DURATION_TEXT_BYTES];
        size_t len = duration_format(rows[i].ns, text);
        check_text(((str){text, len}), rows[i].want);
        assert_int_equal(text[len], 0);
    }
}

static void test_round_trip(void **state)
{
    (void)state;
    rng r = rng_seeded();
    for (int i = 0; i < 300000; i++) {
        int64_t want = (int64_t)rng_next(&r) >> rng_below(&r, 64);
        if (rng_below(&r, 3) == 0)
            want = want / S * S;
        char text[DURATION_TEXT_BYTES];
        size_t len = duration_format(want, text);
        int64_t got = 77;
        if (!duration_parse((str){text, len}, &got, NULL) || got != want)
            fail_msg("%s gave %lld instead of %lld", text, (long long)got, (long long)want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parse),      cmocka_unit_test(test_parse_errors),
        cmocka_unit_test(test_days),       cmocka_unit_test(test_format),
        cmocka_unit_test(test_round_trip),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
