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
    assert_true(auth_in_force(a, STR("admin")));
    auth_revoke(a, STR("admin"), NOW);
    assert_false(auth_in_force(a, STR("admin")));
    assert_false(auth_find(a, token, NOW, &c));
    assert_true(auth_find(a, admin_token(second), NOW, &c));
    check_text(c.name, "admin-1700000000002");
    auth_close(a);
    store_close(s);
}

/* A start that was killed between the two leaves a file that the next one takes as it is. */
static void test_a_file_that_the_store_does_not_know(void **state)
{
    (void)state;
    err error;
    char path[128], text[128];
    caller c;
    store *s = store_open(str_of(folder), &error);
    snprintf(path, sizeof path, "%s/admin-token", folder);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs("0123456789012345678901234567890123456789012\n", file);
    fclose(file);
    assert_int_equal(chmod(path, 0600), 0);
    auth *a = auth_open(s, str_of(folder), NOW, &error);
    assert_non_null(a);
    assert_true(auth_find(a, admin_token(text), NOW, &c));
    check_text(c.name, "admin");
    auth_close(a);
    store_close(s);
}

static void test_a_token_counts_when_it_is_stored(void **state)
{
    (void)state;
    err error;
    caller c;
    char lost[AUTH_TOKEN_BYTES], kept[AUTH_TOKEN_BYTES], code[AUTH_TOKEN_BYTES],
        session[AUTH_TOKEN_BYTES];
    store *s = store_open(str_of(folder), &error);
    auth *a = auth_open(s, str_of(folder), NOW, &error);
    stored_token row = {.name = STR("ci"), .role = STR("viewer")};
    assert_true(auth_create(a, &row, NOW, lost, &error));
    assert_false(auth_find(a, str_of(lost), NOW, &c));
    assert_false(auth_in_force(a, STR("ci")));
    auth_confirm(a, STR("ci"), false);
    assert_true(auth_create(a, &row, NOW, kept, &error));
    assert_true(store_put_token(s, &row, &error));
    auth_confirm(a, STR("ci"), true);
    assert_false(auth_find(a, str_of(lost), NOW, &c));
    assert_true(auth_find(a, str_of(kept), NOW, &c));
    assert_int_equal(c.level, ACCESS_VIEWER);
    auth_close(a);
    a = auth_open(s, str_of(folder), NOW, &error);
    assert_true(auth_find(a, str_of(kept), NOW, &c));
    assert_true(auth_link(a, &c, NOW, code, &error));
    assert_true(auth_login(a, str_of(code), NOW, session, &error));
    auth_revoke(a, STR("ci"), NOW);
    assert_false(auth_find(a, str_of(kept), NOW, &c));
    assert_false(auth_find(a, str_of(session), NOW, &c));
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
        cmocka_unit_test_setup_teardown(test_a_file_that_the_store_does_not_know, make_folder,
                                        remove_folder),
        cmocka_unit_test_setup_teardown(test_a_token_counts_when_it_is_stored, make_folder,
                                        remove_folder),
        cmocka_unit_test_setup_teardown(test_links, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_rate, make_folder, remove_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
