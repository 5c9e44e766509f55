/* SPDX-License-Identifier: Apache-2.0 */
#include "support/check.h"

#include <ftw.h>
#include <sys/stat.h>

#include "server/auth.h"
#include "store/store.h"

#define NOW INT64_C(1700000000000)

static int remove_one(const char *path, const struct stat *s, int type, struct FTW *f)
{
    (void)s;
    (void)type;
    (void)f;
    return remove(path);
}

static char folder[64];

static int make_folder(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/drover-auth-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    return nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static str admin_token(char text[128])
{
    char path[128];
    snprintf(path, sizeof path, "%s/admin-token", folder);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_non_null(fgets(text, 128, file));
    fclose(file);
    struct stat status;
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0600);
    return str_trim(str_of(text));
}

static void test_first_token(void **state)
{
    (void)state;
    err error;
    char first[128], second[128];
    caller c;
    store *s = store_open(str_of(folder), &error);
    auth *a = auth_open(s, str_of(folder), NOW, &error);
    assert_non_null(a);
    str token = admin_token(first);
    assert_int_equal(token.len, 43);
    assert_true(auth_find(a, token, NOW, &c));
    check_text(c.name, "admin");
    assert_int_equal(c.level, ACCESS_ADMIN);
    assert_false(auth_find(a, str_part(token, 0, 42), NOW, &c));
    assert_false(auth_find(a, STR(""), NOW, &c));
    auth_close(a);
    /* A second start keeps it; a file that was removed makes another one, under another name. */
    a = auth_open(s, str_of(folder), NOW + 1, &error);
    check_str(admin_token(second), token);
    auth_close(a);
    char path[128];
    snprintf(path, sizeof path, "%s/admin-token", folder);
    assert_int_equal(remove(path), 0);
    a = auth_open(s, str_of(folder), NOW + 2, &error);
    assert_non_null(a);
    assert_false(str_eq(admin_token(second), token));
    assert_true(auth_find(a, token, NOW, &c)); /* until it is revoked */
    bool found;
    assert_true(auth_revoke(a, STR("admin"), NOW, &found, &error));
    assert_true(found);
    assert_false(auth_find(a, token, NOW, &c));
    assert_true(auth_find(a, admin_token(second), NOW, &c));
    check_text(c.name, "admin-1700000000002");
    auth_close(a);
    store_close(s);
}

static void test_links(void **state)
{
    (void)state;
    err error;
    caller c, viewer = {.name = STR("v"), .level = ACCESS_VIEWER};
    char code[AUTH_TOKEN_BYTES], token[AUTH_TOKEN_BYTES], other[AUTH_TOKEN_BYTES];
    store *s = store_open(str_of(folder), &error);
    auth *a = auth_open(s, str_of(folder), NOW, &error);
    assert_true(auth_link(a, &viewer, NOW, code, &error));
    assert_false(auth_find(a, str_of(code), NOW, &c));
    assert_true(auth_login(a, str_of(code), NOW + 1, token, &error));
    assert_false(auth_login(a, str_of(code), NOW + 1, other, &error));
    assert_true(auth_find(a, str_of(token), NOW + 2, &c));
    assert_int_equal(c.level, ACCESS_VIEWER);
    assert_false(auth_find(a, str_of(token), NOW + 1 + AUTH_SESSION_MS, &c));
    assert_true(auth_link(a, &viewer, NOW, code, &error));
    assert_false(auth_login(a, str_of(code), NOW + AUTH_LINK_MS, other, &error)); /* too old */
    auth_close(a);
    store_close(s);
}

static void test_rate(void **state)
{
    (void)state;
    err error;
    store *s = store_open(str_of(folder), &error);
    auth *a = auth_open(s, str_of(folder), NOW, &error);
    int64_t taken = 0;
    while (auth_rate(a, STR("1.2.3.4"), true, NOW))
        taken++;
    assert_int_equal(taken, AUTH_STRANGER_BURST);
    assert_true(auth_rate(a, STR("1.2.3.5"), true, NOW)); /* another one's is another's */
    assert_false(auth_rate(a, STR("1.2.3.4"), true, NOW + 1000 / AUTH_STRANGER_PER_SECOND - 1));
    for (taken = 0; auth_rate(a, STR("1.2.3.4"), true, NOW + 1000); taken++) {
    }
    assert_int_equal(taken, AUTH_STRANGER_PER_SECOND);
    assert_false(auth_rate(a, STR("1.2.3.4"), true, NOW)); /* a clock that goes back: none */
    auth_set_rate(a, 10); /* of a token, also one that is called like the address */
    for (taken = 0; auth_rate(a, STR("1.2.3.4"), false, NOW); taken++) {
    }
    assert_int_equal(taken, 20);
    assert_false(auth_rate(a, STR("1.2.3.4"), false, NOW + 99));
    assert_true(auth_rate(a, STR("1.2.3.4"), false, NOW + 199));
    for (unsigned i = 0; i < AUTH_BUCKETS_MAX + 10; i++) {
        char name[16];
        snprintf(name, sizeof name, "n%u", i);
        assert_true(auth_rate(a, str_of(name), true, NOW + 2000));
    }
    auth_close(a);
    store_close(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_first_token, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_links, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_rate, make_folder, remove_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
