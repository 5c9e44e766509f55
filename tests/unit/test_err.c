/* SPDX-License-Identifier: Apache-2.0 */
#include "support/check.h"

static void fill(char *room, const char *unit, size_t bytes)
{
    size_t at = 0;
    while (at + strlen(unit) <= bytes) {
        memcpy(room + at, unit, strlen(unit));
        at += strlen(unit);
    }
    room[at] = '\0';
}

static void test_set_and_wrap(void **state)
{
    (void)state;
    err error;
    assert_false(err_set(&error, "found %d, allowed %s", 7, "8"));
    check_err(error, "found 7, allowed 8");
    assert_false(err_wrap(&error, "spec.%s", "limit"));
    check_err(error, "spec.limit: found 7, allowed 8");
    assert_false(err_wrap(&error, "%s", "file.yaml"));
    check_err(error, "file.yaml: spec.limit: found 7, allowed 8");
    assert_false(err_set(&error, "%s", ""));
    check_err(error, "");
    assert_false(err_memory(&error));
    check_err(error, "out of memory");
}

static void test_null_is_accepted(void **state)
{
    (void)state;
    assert_false(err_set(NULL, "x"));
    assert_false(err_wrap(NULL, "x"));
    assert_false(err_memory(NULL));
}

static void test_limit_of_set(void **state)
{
    (void)state;
    char text[LIMIT_ERR_BYTES * 2];
    for (size_t bytes = LIMIT_ERR_BYTES - 8; bytes < LIMIT_ERR_BYTES + 8; bytes++) {
        fill(text, "x", bytes);
        err error;
        err_set(&error, "%s", text);
        if (bytes < LIMIT_ERR_BYTES) {
            check_err(error, text);
            continue;
        }
        assert_int_equal(strlen(error.text), LIMIT_ERR_BYTES - 1);
        assert_memory_equal(error.text, text, LIMIT_ERR_BYTES - 4);
        assert_string_equal(error.text + LIMIT_ERR_BYTES - 4, "...");
    }
}

/* Wherever the cut falls in a sequence, the text stays valid and loses at most that sequence. */
static void test_cut_inside_utf8(void **state)
{
    (void)state;
    static const char *const units[] = {"\xC3\xA4", "\xE2\x82\xAC", "\xF0\x9F\x90\x91"};
    for (size_t u = 0; u < COUNT_OF(units); u++) {
        for (size_t shift = 0; shift < 8; shift++) {
            char text[LIMIT_ERR_BYTES * 2];
            memset(text, 'x', shift);
            fill(text + shift, units[u], LIMIT_ERR_BYTES + 40);
            err error;
            err_set(&error, "%s", text);
            size_t len = strlen(error.text);
            check_msg(str_utf8(str_of(error.text)), "unit %zu shift %zu", u, shift);
            assert_true(len <= LIMIT_ERR_BYTES - 1 && len > LIMIT_ERR_BYTES - 1 - 4);
            assert_true(str_ends(str_of(error.text), STR("...")));
            assert_memory_equal(error.text, text, len - 3);

            err_set(&error, "%s", "inner");
            err_wrap(&error, "%s", text);
            check_msg(str_utf8(str_of(error.text)), "wrap: unit %zu shift %zu", u, shift);
            assert_true(str_ends(str_of(error.text), STR("...")));

            fill(text + shift, units[u], LIMIT_ERR_BYTES - 20);
            err_set(&error, "%s", text);
            err_wrap(&error, "a context of twenty bytes");
            check_msg(str_utf8(str_of(error.text)), "inner: unit %zu shift %zu", u, shift);
            assert_true(str_ends(str_of(error.text), STR("...")));
        }
    }
}

static void test_limit_of_wrap(void **state)
{
    (void)state;
    char text[LIMIT_ERR_BYTES * 2];
    for (size_t bytes = LIMIT_ERR_BYTES - 12; bytes < LIMIT_ERR_BYTES; bytes++) {
        fill(text, "y", bytes);
        err error;
        err_set(&error, "%s", text);
        err_wrap(&error, "abc");
        assert_memory_equal(error.text, "abc: yyy", 8);
        bool fits = bytes + 5 < LIMIT_ERR_BYTES;
        assert_int_equal(strlen(error.text), fits ? bytes + 5 : LIMIT_ERR_BYTES - 1);
        assert_int_equal(str_ends(str_of(error.text), STR("...")), !fits);
        /* A cut text that is wrapped again keeps one mark. */
        err_wrap(&error, "d");
        assert_memory_equal(error.text, "d: abc: yyy", 11);
        assert_true(strlen(error.text) < LIMIT_ERR_BYTES);
    }
}

/* vsnprintf refuses it. */
static void test_not_printable(void **state)
{
    (void)state;
    err error;
    err_set(&error, CHECK_NOT_PRINTABLE);
    check_err(error, "...");
    err_set(&error, "inner");
    err_wrap(&error, CHECK_NOT_PRINTABLE);
    check_err(error, "inner");
}

static void test_allocates_nothing(void **state)
{
    (void)state;
    uint64_t calls = mem_calls();
    err error;
    err_set(&error, "%d", 1);
    err_wrap(&error, "%d", 2);
    err_memory(&error);
    assert_int_equal(mem_calls(), calls);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_set_and_wrap),      cmocka_unit_test(test_null_is_accepted),
        cmocka_unit_test(test_limit_of_set),      cmocka_unit_test(test_cut_inside_utf8),
        cmocka_unit_test(test_limit_of_wrap),     cmocka_unit_test(test_not_printable),
        cmocka_unit_test(test_allocates_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
