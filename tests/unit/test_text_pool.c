/* SPDX-License-Identifier: Apache-2.0 */
#include "support/check.h"

#include "base/text_pool.h"

static void test_numbers(void **state)
{
    (void)state;
    text_pool *t = text_pool_new();
    assert_int_equal(text_pool_add(t, STR("a")), 1);
    assert_int_equal(text_pool_add(t, STR("b")), 2);
    assert_int_equal(text_pool_add(t, STR("a")), 1);
    assert_int_equal(text_pool_add(t, STR("")), 3); /* a text like others */
    assert_int_equal(text_pool_add(t, (str){NULL, 0}), 3);
    assert_int_equal(text_pool_count(t), 3);
    check_text(text_pool_get(t, 0), "");
    check_text(text_pool_get(t, 1), "a");
    assert_int_equal(text_pool_get(t, 2).ptr[1], 0);
    assert_null(text_pool_free(t));
    assert_null(text_pool_free(NULL));
}

static void test_what_nobody_has_goes(void **state)
{
    (void)state;
    text_pool *t = text_pool_new();
    text_id a = text_pool_add(t, STR("a")), b = text_pool_add(t, STR("b"));
    text_id c = text_pool_add(t, STR("c"));
    const char *where = text_pool_get(t, c).ptr;
    text_pool_mark(t, c);
    text_pool_mark(t, 0);
    text_pool_mark_text(t, STR("a"));
    text_pool_mark_text(t, STR("none"));
    text_pool_sweep(t);
    assert_int_equal(text_pool_count(t), 2);
    check_text(text_pool_get(t, a), "a");
    assert_ptr_equal(text_pool_get(t, c).ptr, where);
    assert_int_equal(text_pool_add(t, STR("d")), b); /* numbers are given out again */
    assert_int_equal(text_pool_add(t, STR("b")), 4);
    text_pool_sweep(t); /* marks are gone as well */
    assert_int_equal(text_pool_count(t), 0);
    assert_int_not_equal(text_pool_add(t, STR("a")), 0);
    text_pool_free(t);
}

/* Always new ones, of which the last hundred are had. */
static void test_sweeps_bound_it(void **state)
{
    (void)state;
    text_pool *t = text_pool_new();
    text_id last[100] = {0};
    size_t most = 0, sweeps = 0;
    char text[32];
    for (unsigned i = 0; i < 100000; i++) {
        snprintf(text, sizeof text, "version-%u", i);
        last[i % 100] = text_pool_add(t, str_of(text));
        most = text_pool_count(t) > most ? text_pool_count(t) : most;
        if (!text_pool_due(t))
            continue;
        sweeps++;
        for (size_t k = 0; k < 100; k++)
            text_pool_mark(t, last[k]);
        text_pool_sweep(t);
        check_text(text_pool_get(t, last[i % 100]), text);
    }
    assert_in_range(most, 100, 400);
    assert_in_range(sweeps, 100, 1000);
    text_pool_free(t);
}

static bool fill(void *context)
{
    (void)context;
    text_pool *t = text_pool_new();
    if (!t)
        return false;
    bool good = true;
    char text[200];
    for (unsigned i = 0; good && i < 60; i++) {
        snprintf(text, sizeof text, "%0150u", i);
        text_id n = text_pool_add(t, str_of(text));
        good = n;
        if (!good) {
            assert_int_equal(text_pool_count(t), i);
            n = text_pool_add(t, str_of(text)); /* goes on afterwards */
            assert_int_equal(n, i + 1);
            check_text(text_pool_get(t, n), text);
        }
    }
    text_pool_free(t);
    return good;
}

static void test_no_memory(void **state)
{
    (void)state;
    check_each_allocation_fails(fill, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_what_nobody_has_goes),
        cmocka_unit_test(test_sweeps_bound_it),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
