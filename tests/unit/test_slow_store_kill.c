/* SPDX-License-Identifier: Apache-2.0 */
/* Killed before and after each write to a file: a new store, an upgrade, tokens, a copy, the first
 * start's administrator. The store opens again and has lost nothing; nothing is half done. */
#include "support/kill_writes.h"
#include "support/released_stores.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "server/auth.h"

#define NOW INT64_C(1700000000000)
#define COPIED_ENTRIES 100

static char folder[64];

/* In memory where that can be had: nobody pulls a plug here, so no disk is waited for. */
static int make_folder(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "%s/drover-kill-XXXXXX",
             access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

static void empty_folder(void)
{
    remove_folder(NULL);
    assert_int_equal(mkdir(folder, 0700), 0);
}

#define must(call)                                                                                 \
    do {                                                                                           \
        err error_ = {""};                                                                         \
        err *problem = &error_;                                                                    \
        check_msg(call, "%s", error_.text);                                                        \
    } while (0)

static store *open_store(void)
{
    err error;
    store *s = store_open(str_of(folder), &error);
    check_msg(s != NULL, "%s", error.text);
    return s;
}

static void open_and_close(void)
{
    store_close(open_store());
}

static void append(store *s, const char *json)
{
    must(store_append(s, &(journal_entry){.at_ms = 1, .kind = STR("fact"), .json = str_of(json)},
                      NULL, problem));
}

/* What is done to a store after it was opened once more. */
static void check_works(store *s)
{
    int64_t sequence = store_sequence(s);
    append(s, "it works");
    store_close(s);
    s = open_store();
    assert_int_equal(store_sequence(s), sequence + 1);
    store_close(s);
}

static bool tell_token(void *context, const stored_token *t)
{
    buf_addf(context, "%.*s:%lld ", STR_ARG(t->name), (long long)t->revoked_ms);
    return true;
}

/* ---- a new store ---- */

static void check_new(void)
{
    store *s = open_store();
    assert_int_equal(store_sequence(s), 0);
    check_works(s);
}

static void killed_at_every_write_of_a_new_store(void **state)
{
    (void)state;
    assert_in_range(kill_writes_each(empty_folder, open_and_close, check_new), KILLS_LEAST, 1000);
}

/* ---- upgrades ---- */

static size_t upgraded_from;

static void prepare_upgrade(void)
{
    char path[128];
    sqlite3 *db;
    empty_folder();
    snprintf(path, sizeof path, "%s/drover.db", folder);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, released[upgraded_from].sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
}

static void check_upgraded(void)
{
    store *s = open_store();
    arena *a = arena_new(0);
    buf told = BUF(1000);
    int64_t sequence;
    str text;
    assert_int_equal(store_sequence(s), 2);
    must(store_tokens(s, tell_token, &told, problem));
    check_text(buf_str(&told), "ci:0 ");
    must(store_get_snapshot(s, a, &sequence, &text, problem));
    assert_int_equal(sequence, 2);
    check_text(text, "the text");
    arena_free(a);
    buf_done(&told);
    check_works(s);
}

static void killed_at_every_write_of_an_upgrade(void **state)
{
    (void)state;
    for (upgraded_from = 0; upgraded_from < COUNT_OF(released); upgraded_from++)
        assert_in_range(kill_writes_each(prepare_upgrade, open_and_close, check_upgraded),
                        KILLS_LEAST, 1000);
}

/* ---- tokens ---- */

static void prepare_tokens(void)
{
    empty_folder();
    store *s = open_store();
    must(store_put_token(s, &(stored_token){.name = STR("old"), .role = STR("viewer")}, problem));
    store_close(s);
}

static void change_tokens(void)
{
    bool found;
    store *s = open_store();
    must(store_put_token(s, &(stored_token){.name = STR("new"), .role = STR("viewer"), .hash = {1}},
                         problem));
    must(store_revoke_token(s, STR("old"), 5, &found, problem));
    store_close(s);
}

static void check_tokens(void)
{
    store *s = open_store();
    buf told = BUF(1000);
    must(store_tokens(s, tell_token, &told, problem));
    str is = buf_str(&told);
    check_msg(str_eq(is, STR("old:0 ")) || str_eq(is, STR("new:0 old:0 ")) ||
                  str_eq(is, STR("new:0 old:5 ")),
              "%.*s", STR_ARG(is));
    buf_done(&told);
    check_works(s);
}

static void killed_at_every_write_of_tokens(void **state)
{
    (void)state;
    assert_in_range(kill_writes_each(prepare_tokens, change_tokens, check_tokens), KILLS_LEAST,
                    1000);
}

/* ---- copies ---- */

static void prepare_copy(void)
{
    char large[4001];
    memset(large, 'x', sizeof large - 1);
    large[sizeof large - 1] = 0;
    empty_folder();
    store *s = open_store();
    must(store_begin(s, problem));
    for (int i = 0; i < COPIED_ENTRIES; i++)
        append(s, large);
    must(store_commit(s, problem));
    store_close(s);
    char path[128];
    snprintf(path, sizeof path, "%s/copy", folder);
    assert_int_equal(mkdir(path, 0700), 0);
}

static void make_copy(void)
{
    char path[128];
    store *s = open_store();
    snprintf(path, sizeof path, "%s/copy/drover.db", folder);
    must(store_backup(s, str_of(path), problem));
    append(s, "after it");
    store_close(s);
}

/* A copy that was not finished is no store, or has everything. */
static void check_copied(void)
{
    char path[128];
    err error;
    struct stat status;
    store *s = open_store();
    assert_in_range(store_sequence(s), COPIED_ENTRIES, COPIED_ENTRIES + 1);
    check_works(s);
    snprintf(path, sizeof path, "%s/copy/drover.db", folder);
    if (stat(path, &status) != 0 || status.st_size == 0)
        return;
    assert_int_equal(status.st_mode & 0777, 0600);
    snprintf(path, sizeof path, "%s/copy", folder);
    s = store_open(str_of(path), &error);
    if (s)
        assert_int_equal(store_sequence(s), COPIED_ENTRIES);
    store_close(s);
}

static void killed_at_every_write_of_a_copy(void **state)
{
    (void)state;
    assert_in_range(kill_writes_each(prepare_copy, make_copy, check_copied), KILLS_LEAST, 10000);
}

/* ---- the administrator's token ---- */

/* What auth.c does to files itself. */
ssize_t __real_write(int fd, const void *bytes, size_t len);
ssize_t __wrap_write(int fd, const void *bytes, size_t len);
ssize_t __wrap_write(int fd, const void *bytes, size_t len)
{
    return kill_count(__real_write(fd, bytes, len));
}

int __real_rename(const char *from, const char *to);
int __wrap_rename(const char *from, const char *to);
int __wrap_rename(const char *from, const char *to)
{
    return kill_count(__real_rename(from, to));
}

static void start_first(void)
{
    err error;
    store *s = open_store();
    auth *a = auth_open(s, str_of(folder), NOW, &error);
    check_msg(a, "%s", error.text);
    auth_close(a);
    store_close(s);
}

/* The next start has one token, which is the file's. */
static void check_admin(void)
{
    char path[128], text[128] = "";
    caller c;
    err error;
    buf told = BUF(1000);
    struct stat status;
    store *s = open_store();
    auth *a = auth_open(s, str_of(folder), NOW + 1, &error);
    check_msg(a, "%s", error.text);
    must(store_tokens(s, tell_token, &told, problem));
    check_text(buf_str(&told), "admin:0 ");
    snprintf(path, sizeof path, "%s/admin-token", folder);
    int fd = open(path, O_RDONLY);
    assert_true(fd >= 0 && fstat(fd, &status) == 0);
    assert_int_equal(status.st_mode & 0777, 0600);
    assert_true(read(fd, text, sizeof text - 1) > 0);
    close(fd);
    assert_int_equal(str_trim(str_of(text)).len, 43);
    assert_true(auth_find(a, str_trim(str_of(text)), NOW, &c));
    buf_done(&told);
    auth_close(a);
    check_works(s);
}

static void killed_at_every_write_of_the_first_start(void **state)
{
    (void)state;
    assert_in_range(kill_writes_each(empty_folder, start_first, check_admin), KILLS_LEAST, 1000);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)
    const struct CMUnitTest tests[] = {
        TEST(killed_at_every_write_of_a_new_store),     TEST(killed_at_every_write_of_an_upgrade),
        TEST(killed_at_every_write_of_tokens),          TEST(killed_at_every_write_of_a_copy),
        TEST(killed_at_every_write_of_the_first_start),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
