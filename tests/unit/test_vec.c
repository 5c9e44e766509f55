/* SPDX-License-Identifier: Apache-2.0 */
#include "support/check.h"

#include "base/vec.h"

typedef struct pair {
    int a;
    char b;
} pair;

static void test_push(void **state)
{
    (void)state;
    VEC(int) numbers = {0};
    for (int i = 0; i < 1000; i++) {
        assert_true(vec_push(&numbers, i * 3));
        assert_int_equal(numbers.len, i + 1);
        assert_true(numbers.cap >= numbers.len);
    }
    for (int i = 0; i < 1000; i++)
        assert_int_equal(numbers.at[i], i * 3);
    vec_done(&numbers);
    assert_null(numbers.at);
    assert_int_equal(numbers.len, 0);
    assert_int_equal(numbers.cap, 0);
    vec_done(&numbers);
}

static void test_push_structs(void **state)
{
    (void)state;
    VEC(pair) pairs = {0};
    assert_true(vec_push(&pairs, (pair){1, 'x'}));
    assert_true(vec_push(&pairs, (pair){.b = 'y', .a = 2}));
    assert_int_equal(pairs.at[1].a, 2);
    assert_int_equal(pairs.at[1].b, 'y');
    vec_done(&pairs);
}

static void test_reserve(void **state)
{
    (void)state;
    VEC(int) numbers = {0};
    assert_true(vec_reserve(&numbers, 100));
    assert_int_equal(numbers.len, 0);
    uint64_t calls = mem_calls();
    for (int i = 0; i < 100; i++)
        assert_true(vec_push(&numbers, i));
    assert_true(vec_reserve(&numbers, 10));
    assert_int_equal(mem_calls(), calls);
    vec_done(&numbers);
}

static void test_growth_is_geometric(void **state)
{
    (void)state;
    VEC(char) bytes = {0};
    uint64_t calls = mem_calls();
    for (int i = 0; i < 1000000; i++)
        assert_true(vec_push(&bytes, 'x'));
    assert_true(mem_calls() - calls < 25);
    vec_done(&bytes);
}

static void test_sizes_that_overflow(void **state)
{
    (void)state;
    VEC(uint64_t) numbers = {0};
    assert_true(vec_push(&numbers, 7));
    assert_false(vec_reserve(&numbers, SIZE_MAX));
    assert_false(vec_reserve(&numbers, SIZE_MAX / 8 + 1));
    assert_int_equal(numbers.len, 1);
    assert_int_equal(numbers.at[0], 7);
    vec_done(&numbers);
}

static void test_no_memory_changes_nothing(void **state)
{
    (void)state;
    VEC(int) numbers = {0};
    mem_fail_at(1);
    assert_false(vec_push(&numbers, 1));
    assert_int_equal(numbers.len, 0);
    assert_null(numbers.at);
    for (int i = 0; i < 100; i++) {
        mem_fail_at(1);
        if (!vec_push(&numbers, i)) {
            assert_int_equal(numbers.len, i);
            mem_fail_at(0);
            assert_true(vec_push(&numbers, i));
        }
    }
    mem_fail_at(0);
    for (int i = 0; i < 100; i++)
        assert_int_equal(numbers.at[i], i);
    vec_done(&numbers);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_push),
        cmocka_unit_test(test_push_structs),
        cmocka_unit_test(test_reserve),
        cmocka_unit_test(test_growth_is_geometric),
        cmocka_unit_test(test_sizes_that_overflow),
        cmocka_unit_test(test_no_memory_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
