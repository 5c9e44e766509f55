/* SPDX-License-Identifier: Apache-2.0 */
#include "support/check.h"

#include "base/strmap.h"

#define KEYS 400

static void test_put_get_remove(void **state)
{
    (void)state;
    strmap m = {0};
    assert_null(strmap_get(&m, STR("a")));
    assert_false(strmap_remove(&m, STR("a")));
    assert_true(strmap_put(&m, STR("a"), 1));
    assert_true(strmap_put(&m, STR("b"), 2));
    assert_true(strmap_put(&m, STR(""), 3));
    assert_true(strmap_put(&m, (str){"a\0", 2}, 4));
    assert_int_equal(m.len, 4);
    assert_int_equal(*strmap_get(&m, STR("a")), 1);
    assert_int_equal(*strmap_get(&m, (str){NULL, 0}), 3);
    assert_int_equal(*strmap_get(&m, (str){"a\0", 2}), 4);
    assert_true(strmap_put(&m, STR("a"), UINT64_MAX));
    assert_int_equal(m.len, 4);
    assert_true(*strmap_get(&m, STR("a")) == UINT64_MAX);
    *strmap_get(&m, STR("b")) = 20;
    assert_int_equal(*strmap_get(&m, STR("b")), 20);
    assert_true(strmap_remove(&m, STR("a")));
    assert_false(strmap_remove(&m, STR("a")));
    assert_null(strmap_get(&m, STR("a")));
    assert_int_equal(m.len, 3);
    strmap_clear(&m);
    assert_int_equal(m.len, 0);
    assert_null(strmap_get(&m, STR("b")));
    assert_true(strmap_put(&m, STR("b"), 5));
    assert_int_equal(*strmap_get(&m, STR("b")), 5);
    strmap_done(&m);
    assert_null(m.entries);
    strmap_done(&m);
    strmap_clear(&m);
}

static void test_order_is_insertion(void **state)
{
    (void)state;
    static const char *const keys[] = {"zebra", "ant", "mole", "bee", "yak"};
    strmap m = {0};
    for (size_t i = 0; i < COUNT_OF(keys); i++)
        assert_true(strmap_put(&m, str_of(keys[i]), i));
    assert_true(strmap_put(&m, STR("ant"), 11)); /* replacing keeps its place */
    for (size_t i = 0; i < COUNT_OF(keys); i++)
        check_text(m.entries[i].key, keys[i]);
    assert_true(strmap_remove(&m, STR("ant"))); /* the last moves in */
    check_text(m.entries[1].key, "yak");
    assert_true(strmap_remove(&m, STR("bee"))); /* it was the last */
    assert_int_equal(m.len, 3);
    check_text(m.entries[2].key, "mole");
    strmap_done(&m);
}

static void test_hash_is_the_bytes(void **state)
{
    (void)state;
    char copy[] = "text";
    assert_true(str_hash(STR("text")) == str_hash(str_of(copy)));
    assert_true(str_hash(STR("text")) != str_hash(STR("texu")));
    assert_true(str_hash(STR("")) == str_hash((str){NULL, 0}));
}

/* The model is one flag and one number for each of a fixed set of keys. */
static void test_random_against_model(void **state)
{
    (void)state;
    static char texts[KEYS][8];
    for (size_t i = 0; i < KEYS; i++)
        snprintf(texts[i], sizeof texts[i], "k%zu", i);
    rng r = rng_seeded();
    for (int round = 0; round < 60; round++) {
        strmap m = {0};
        bool there[KEYS] = {false};
        uint64_t values[KEYS] = {0};
        size_t count = 0;
        size_t range = 1 + rng_below(&r, KEYS);
        for (int step = 0; step < 3000; step++) {
            size_t k = rng_below(&r, range);
            str key = str_of(texts[k]);
            size_t choice = rng_below(&r, 1000);
            if (choice < 450) {
                values[k] = rng_next(&r);
                assert_true(strmap_put(&m, key, values[k]));
                count += !there[k];
                there[k] = true;
            } else if (choice < 800) {
                assert_int_equal(strmap_remove(&m, key), there[k]);
                count -= there[k];
                there[k] = false;
            } else if (choice < 999) {
                uint64_t *found = strmap_get(&m, key);
                assert_int_equal(found != NULL, there[k]);
                assert_true(!found || *found == values[k]);
            } else {
                strmap_clear(&m);
                memset(there, 0, sizeof there);
                count = 0;
            }
            assert_int_equal(m.len, count);
        }
        for (size_t k = 0; k < KEYS; k++) {
            uint64_t *found = strmap_get(&m, str_of(texts[k]));
            assert_int_equal(found != NULL, there[k]);
            assert_true(!found || *found == values[k]);
        }
        for (size_t i = 0; i < m.len; i++)
            assert_ptr_equal(strmap_get(&m, m.entries[i].key), &m.entries[i].value);
        strmap_done(&m);
    }
}

static bool fill(void *context)
{
    char(*texts)[8] = context;
    strmap m = {0};
    bool good = true;
    size_t i = 0;
    for (; good && i < 100; i++)
        good = strmap_put(&m, str_of(texts[i]), i);
    if (!good) {
        i--;
        assert_null(strmap_get(&m, str_of(texts[i])));
    }
    assert_int_equal(m.len, i);
    for (size_t j = 0; j < i; j++)
        assert_int_equal(*strmap_get(&m, str_of(texts[j])), j);
    strmap_done(&m);
    return good;
}

static void test_no_memory_changes_nothing(void **state)
{
    (void)state;
    char texts[100][8];
    for (size_t i = 0; i < COUNT_OF(texts); i++)
        snprintf(texts[i], sizeof texts[i], "k%zu", i);
    check_each_allocation_fails(fill, texts);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_put_get_remove),
        cmocka_unit_test(test_order_is_insertion),
        cmocka_unit_test(test_hash_is_the_bytes),
        cmocka_unit_test(test_random_against_model),
        cmocka_unit_test(test_no_memory_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
