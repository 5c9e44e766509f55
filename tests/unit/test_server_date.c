/* SPDX-License-Identifier: Apache-2.0 */
/* What time it is by a server that tells whole seconds. */
#include "support/check.h"

#include "kube/server_date.h"

#define DATE STR("Tue, 17 Nov 2026 16:00:00 GMT")
#define DATE_MS (INT64_C(1794931200) * 1000)

static int64_t told(int64_t wall_ms)
{
    return server_date_ms(DATE, DATE_MS + wall_ms) - DATE_MS;
}

static void clock_that_agrees_is_the_finer_one(void **state)
{
    (void)state;
    assert_int_equal(told(0), 0);
    assert_int_equal(told(999), 999);
    assert_int_equal(told(1999), 1999);
    assert_int_equal(told(-1000), -1000);
}

static void clock_that_is_wrong_does_not_count(void **state)
{
    (void)state;
    assert_int_equal(told(2000), 0);
    assert_int_equal(told(-1001), 0);
    assert_int_equal(told(3600 * 1000), 0);
    assert_int_equal(told(-3600 * 1000), 0);
}

static void date_that_cannot_be_read_does_not_count(void **state)
{
    (void)state;
    const str dates[] = {STR(""), STR("soon"),
                         STR("Tue, 17 Nov 2026 16:00:00 GMT and then much "
                             "more than any date has, to the end of it")};
    for (size_t i = 0; i < sizeof dates / sizeof dates[0]; i++)
        assert_int_equal(server_date_ms(dates[i], 12345), 12345);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clock_that_agrees_is_the_finer_one),
        cmocka_unit_test(clock_that_is_wrong_does_not_count),
        cmocka_unit_test(date_that_cannot_be_read_does_not_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
