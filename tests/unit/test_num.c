/* SPDX-License-Identifier: Apache-2.0 */
#include "support/check.h"

#include "base/num.h"

__extension__ typedef __int128 wide;

static const int64_t corners[] = {INT64_MIN, INT64_MIN + 1, -4294967296,   -3,       -1, 0, 1, 2,
                                  10,        3037000500,    INT64_MAX / 2, INT64_MAX};

static void check_wide(bool good, int64_t got, wide want)
{
    bool fits = want >= INT64_MIN && want <= INT64_MAX;
    assert_int_equal(good, fits);
    assert_true(got == (fits ? (int64_t)want : 77));
}

static void check_pair(int64_t a, int64_t b)
{
    int64_t got = 77;
    bool good = num_add(a, b, &got);
    check_wide(good, got, (wide)a + b);
    got = 77;
    good = num_sub(a, b, &got);
    check_wide(good, got, (wide)a - b);
    got = 77;
    good = num_mul(a, b, &got);
    check_wide(good, got, (wide)a * b);
}

static void test_arithmetic(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(corners); i++)
        for (size_t j = 0; j < COUNT_OF(corners); j++)
            check_pair(corners[i], corners[j]);
    rng r = rng_seeded();
    for (int i = 0; i < 100000; i++) {
        unsigned shift = (unsigned)rng_below(&r, 64);
        check_pair((int64_t)rng_next(&r) >> shift, (int64_t)rng_next(&r) >> (63 - shift));
    }
}

static void test_parse(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool good;
        int64_t want;
    } rows[] = {
        {"0", true, 0},
        {"-0", true, 0},
        {"+0", true, 0},
        {"7", true, 7},
        {"+7", true, 7},
        {"-7", true, -7},
        {"007", true, 7},
        {"9223372036854775807", true, INT64_MAX},
        {"+9223372036854775807", true, INT64_MAX},
        {"-9223372036854775808", true, INT64_MIN},
        {"0000000000000000000000000000001", true, 1},
        {"9223372036854775808", false, 0},
        {"-9223372036854775809", false, 0},
        {"99999999999999999999999999", false, 0},
        {"", false, 0},
        {"+", false, 0},
        {"-", false, 0},
        {"--1", false, 0},
        {"+-1", false, 0},
        {" 1", false, 0},
        {"1 ", false, 0},
        {"1.0", false, 0},
        {"1e3", false, 0},
        {"0x10", false, 0},
        {"1_000", false, 0},
        {"\xD9\xA3", false, 0}, /* an Arabic-Indic digit */
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        int64_t got = 77;
        scoped(exact_done) str text = exact_new(str_of(rows[i].text));
        check_msg(num_parse(text, &got) == rows[i].good, "%s", rows[i].text);
        check_msg(got == (rows[i].good ? rows[i].want : 77), "%s", rows[i].text);
    }
    int64_t got = 77;
    assert_false(num_parse((str){NULL, 0}, &got));
    assert_false(num_parse((str){"1\0", 2}, &got));
    assert_true(num_parse((str){"123", 2}, &got));
    assert_int_equal(got, 12);
}

static void test_parse_what_printf_writes(void **state)
{
    (void)state;
    rng r = rng_seeded();
    for (int i = 0; i < 100000; i++) {
        int64_t want = (int64_t)rng_next(&r) >> rng_below(&r, 64);
        char text[32];
        snprintf(text, sizeof text, "%lld", (long long)want);
        int64_t got;
        assert_true(num_parse(str_of(text), &got));
        assert_true(got == want);
    }
}

static void test_percent(void **state)
{
    (void)state;
    static const struct {
        int64_t n, p, want;
    } rows[] = {
        {0, 0, 0},
        {0, 100, 0},
        {0, NUM_PERCENT_MAX, 0},
        {1, 0, 1}, /* never less than one of a group that is not empty */
        {1, 1, 1},
        {1, 99, 1},
        {1, 100, 1},
        {10, 9, 1},
        {10, 10, 1},
        {10, 19, 1},
        {10, 20, 2},
        {10, 25, 2}, /* down */
        {3, 50, 1},
        {99, 33, 32},
        {100, 33, 33},
        {101, 50, 50},
        {199, 1, 1},
        {200, 1, 2},
        {5, 200, 10},
        {INT64_MAX, 100, INT64_MAX},
        {INT64_MAX, 50, INT64_MAX / 2},
        {INT64_MAX, 101, INT64_MAX}, /* saturates */
        {INT64_MAX, NUM_PERCENT_MAX, INT64_MAX},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        check_msg(num_percent(rows[i].n, rows[i].p) == rows[i].want, "row %zu", i);
    rng r = rng_seeded();
    for (int i = 0; i < 100000; i++) {
        int64_t n = (int64_t)(rng_next(&r) >> (1 + rng_below(&r, 63)));
        int64_t p = (int64_t)rng_below(&r, NUM_PERCENT_MAX + 1);
        wide want = (wide)n * p / 100;
        if (n > 0 && want < 1)
            want = 1;
        if (want > INT64_MAX)
            want = INT64_MAX;
        check_msg(num_percent(n, p) == (int64_t)want, "%lld percent of %lld", (long long)p,
                  (long long)n);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_arithmetic),
        cmocka_unit_test(test_parse),
        cmocka_unit_test(test_parse_what_printf_writes),
        cmocka_unit_test(test_percent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
