/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base64.h"

#include "support/check.h"

static const struct {
    const char *bytes, *text;
} rows[] = {
    {"", ""},
    {"f", "Zg=="},
    {"fo", "Zm8="},
    {"foo", "Zm9v"},
    {"foob", "Zm9vYg=="},
    {"fooba", "Zm9vYmE="},
    {"foobar", "Zm9vYmFy"},
    {"\xff\xfe\xfb", "//77"},
};

static void test_both_ways(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        buf out = BUF(100);
        base64_encode(str_of(rows[i].bytes), &out);
        check_text(buf_str(&out), rows[i].text);
        buf_clear(&out);
        assert_true(base64_decode(str_of(rows[i].text), &out));
        check_text(buf_str(&out), rows[i].bytes);
        buf_clear(&out);
        size_t len = strcspn(rows[i].text, "=");
        assert_true(base64_decode((str){rows[i].text, len}, &out));
        check_text(buf_str(&out), rows[i].bytes);
        buf_done(&out);
    }
}

static void test_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {"Z", "Zm9v!", "Zm9vY", "Zg===", "Z=g=", "Zm 9", "Zm9v\n"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        buf out = BUF(100);
        assert_false(base64_decode(str_of(bad[i]), &out));
        buf_done(&out);
    }
    buf small = BUF(2);
    assert_false(base64_decode(STR("Zm9vYmFy"), &small));
    buf_done(&small);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_both_ways),
        cmocka_unit_test(test_refused),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
