/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes made smaller and large again; what is no gzip, or too large. */
#include "support/check.h"

#include "base/gzip.h"

static void test_round_trip(void **state)
{
    (void)state;
    buf text = BUF(1u << 20), zipped = BUF(1u << 20), back = BUF(1u << 20);
    for (unsigned i = 0; i < 20000; i++)
        buf_addf(&text, "%u,", i * i);
    assert_true(gzip_compress(buf_str(&text), &zipped));
    assert_true(zipped.len < text.len);
    assert_int_equal(gzip_expand(buf_str(&zipped), &back), GZIP_GOOD);
    check_str(buf_str(&back), buf_str(&text));
    /* Two one after the other are one text. */
    size_t one = zipped.len;
    assert_true(gzip_compress(STR("tail"), &zipped));
    buf_clear(&back);
    assert_int_equal(gzip_expand(buf_str(&zipped), &back), GZIP_GOOD);
    assert_int_equal(back.len, text.len + 4);
    /* Cut anywhere it is bad, and so is what follows it. */
    for (size_t len = 0; len < one; len += 1 + one / 50) {
        str part = exact_new(str_part(buf_str(&zipped), 0, len));
        buf_clear(&back);
        assert_int_equal(gzip_expand(part, &back), GZIP_BAD);
        exact_done(&part);
    }
    zipped.len = one;
    buf_addc(&zipped, 'x');
    buf_clear(&back);
    assert_int_equal(gzip_expand(buf_str(&zipped), &back), GZIP_BAD);
    /* Into a buffer that is just large enough, and one that is not. */
    zipped.len = one;
    buf exact = BUF(text.len), small = BUF(text.len - 1);
    assert_int_equal(gzip_expand(buf_str(&zipped), &exact), GZIP_GOOD);
    assert_int_equal(gzip_expand(buf_str(&zipped), &small), GZIP_LARGE);
    assert_true(small.len <= small.max);
    buf *all[] = {&text, &zipped, &back, &exact, &small};
    for (size_t i = 0; i < COUNT_OF(all); i++)
        buf_done(all[i]);
}

static bool expand(void *context)
{
    buf back = BUF(1024);
    gzip_result result = gzip_expand(*(const str *)context, &back);
    assert_true(result == GZIP_GOOD || result == GZIP_MEMORY);
    buf_done(&back);
    return result == GZIP_GOOD;
}

static void test_memory(void **state)
{
    (void)state;
    buf zipped = BUF(1024);
    assert_true(gzip_compress(STR("some text"), &zipped));
    str bytes = buf_str(&zipped);
    check_each_allocation_fails(expand, &bytes);
    buf_done(&zipped);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
