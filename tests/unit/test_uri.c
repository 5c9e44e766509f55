/* SPDX-License-Identifier: Apache-2.0 */
#include "support/check.h"

#include "server/http.h"
#include "server/uri.h"

static void test_good(void **state)
{
    (void)state;
    arena *a = arena_new(0);
    uri u;
    err error;
    assert_true(uri_parse(a, STR("/"), &u, &error));
    assert_int_equal(u.segment_count, 0);
    assert_true(uri_parse(a, STR("/api/v1/a%2Fb?limit=5&x=%20y+z&flag&&e="), &u, &error));
    assert_int_equal(u.segment_count, 3);
    check_text(u.segments[0], "api");
    check_text(u.segments[2], "a/b"); /* decoded after it was cut: no new segment */
    check_text(uri_find(&u, "limit"), "5");
    check_text(uri_find(&u, "x"), " y z");
    check_text(uri_find(&u, "flag"), "");
    check_text(uri_find(&u, "e"), "");
    assert_null(uri_find(&u, "none").ptr);
    assert_int_equal(u.parameter_count, 4);
    assert_true(uri_parse(a, STR("/a+b?"), &u, &error));
    check_text(u.segments[0], "a+b"); /* a plus is a space only in the query */
    assert_true(uri_parse(a, STR("/\xC3\xA4/%c3%a4"), &u, &error));
    check_str(u.segments[0], u.segments[1]);
    arena_free(a);
}

static void test_refused(void **state)
{
    (void)state;
    static const char *const targets[] = {
        "",       "a",      "*",       "http://x/a", "//",      "//a",     "/a//b",    "/a/",
        "/.",     "/..",    "/a/../b", "/%2e",       "/%2E%2e", "/.%2e/a", "/a%00",    "/a%0a",
        "/a%7f",  "/%",     "/%4",     "/%4g",       "/%g4",    "/a%",     "/%ff",     "/%c0%af",
        "/a?%00", "/a?x=%", "/a?x&x",  "/a?x=1&x=2", "/1/2/3/4/5/6/7/8/9",
        "/a?1&2&3&4&5&6&7&8&9&10&11&12&13&14&15&16&17"};
    for (size_t i = 0; i < COUNT_OF(targets); i++) {
        arena *a = arena_new(0);
        uri u = {.segment_count = 77};
        err error = {""};
        check_msg(!uri_parse(a, str_of(targets[i]), &u, &error), "%s", targets[i]);
        check_msg(error.text[0] != 0 && u.segment_count == 77, "%s", targets[i]);
        arena_free(a);
    }
}

static void test_encoding_is_undone(void **state)
{
    (void)state;
    char all[256];
    size_t len = 0;
    for (int c = 0x20; c < 0x7f; c++)
        all[len++] = (char)c;
    buf out = BUF(4096);
    buf_addc(&out, '/');
    uri_encode(&out, (str){all, len});
    buf_addz(&out, "?k=");
    uri_encode(&out, (str){all, len});
    arena *a = arena_new(0);
    uri u;
    err error;
    assert_true(uri_parse(a, buf_str(&out), &u, &error));
    check_str(u.segments[0], ((str){all, len}));
    check_str(uri_find(&u, "k"), ((str){all, len}));
    arena_free(a);
    buf_done(&out);
}

static void test_addresses(void **state)
{
    (void)state;
    char address[64];
    uint16_t port;
    err error;
    assert_true(http_address(STR("127.0.0.1:7070"), address, &port, &error));
    assert_string_equal(address, "127.0.0.1");
    assert_int_equal(port, 7070);
    assert_true(http_address(STR("[::1]:0"), address, &port, &error));
    assert_string_equal(address, "::1");
    assert_true(http_address(STR("localhost:1"), address, &port, &error));
    assert_string_equal(address, "127.0.0.1");
    assert_true(http_address(STR(":65535"), address, &port, &error));
    assert_string_equal(address, "0.0.0.0");
    static const char *const bad[] = {"", "7070", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536",
                                      "127.0.0.1:-1", "example.com:1", "1.2.3:1", "[::1:1"};
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        check_msg(!http_address(str_of(bad[i]), address, &port, &error), "%s", bad[i]);
    assert_true(http_is_loopback(STR("127.9.9.9")));
    assert_true(http_is_loopback(STR("::1")));
    assert_false(http_is_loopback(STR("0.0.0.0")));
    assert_false(http_is_loopback(STR("::")));
    assert_false(http_is_loopback(STR("128.0.0.1")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_encoding_is_undone),
        cmocka_unit_test(test_addresses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
