/* SPDX-License-Identifier: Apache-2.0 */
#include "support/check.h"

#include "base/names.h"

static void test_numbers(void **state)
{
    (void)state;
    names *table = names_new();
    assert_int_equal(names_count(table), 0);
    assert_int_equal(names_find(table, STR("a")), 0);
    assert_int_equal(names_add(table, STR("a")), 1);
    assert_int_equal(names_add(table, STR("b")), 2);
    assert_int_equal(names_add(table, STR("a")), 1);
    assert_int_equal(names_add(table, STR("")), 3); /* the empty text is a name like others */
    assert_int_equal(names_add(table, (str){"a\0", 2}), 4);
    assert_int_equal(names_find(table, STR("b")), 2);
    assert_int_equal(names_find(table, (str){NULL, 0}), 3);
    assert_int_equal(names_find(table, STR("c")), 0);
    assert_int_equal(names_count(table), 4);
    check_text(names_text(table, 0), "");
    check_text(names_text(table, 1), "a");
    check_text(names_text(table, 2), "b");
    check_str(names_text(table, 4), ((str){"a\0", 2}));
    assert_null(names_free(table));
    assert_null(names_free(NULL));
}

static void test_text_is_a_terminated_copy(void **state)
{
    (void)state;
    names *table = names_new();
    char text[] = "node-1-and-more";
    name_id n = names_add(table, (str){text, 6});
    memset(text, 'x', sizeof text - 1);
    check_text(names_text(table, n), "node-1");
    assert_int_equal(names_text(table, n).ptr[6], 0);
    names_free(table);
}

static void test_many_keep_their_places(void **state)
{
    (void)state;
    names *table = names_new();
    const char *first = NULL;
    char text[32];
    for (unsigned i = 0; i < 50000; i++) {
        snprintf(text, sizeof text, "name-%u", i);
        assert_int_equal(names_add(table, str_of(text)), i + 1);
        if (i == 0)
            first = names_text(table, 1).ptr;
    }
    assert_ptr_equal(names_text(table, 1).ptr, first); /* text never moves */
    for (unsigned i = 0; i < 50000; i++) {
        snprintf(text, sizeof text, "name-%u", i);
        assert_int_equal(names_find(table, str_of(text)), i + 1);
        check_text(names_text(table, i + 1), text);
    }
    names_free(table);
}

static bool fill(void *context)
{
    (void)context;
    names *table = names_new();
    if (!table)
        return false;
    bool good = true;
    char text[200];
    for (unsigned i = 0; good && i < 60; i++) {
        snprintf(text, sizeof text, "%0150u", i);
        good = names_add(table, str_of(text));
        if (!good) {
            assert_int_equal(names_count(table), i);
            assert_int_equal(names_find(table, str_of(text)), 0);
            assert_int_equal(names_add(table, str_of(text)), i + 1); /* goes on afterwards */
        }
    }
    names_free(table);
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
        cmocka_unit_test(test_text_is_a_terminated_copy),
        cmocka_unit_test(test_many_keep_their_places),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
