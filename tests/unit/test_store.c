/* SPDX-License-Identifier: Apache-2.0 */
/* The store: what it keeps, what it refuses, and that nothing half-written is ever seen. */
#include "support/check.h"
#include "support/released_stores.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "store/store.h"

static char folder[64];

static int make_folder(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/drover-store-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    char command[256];
    snprintf(command, sizeof command, "chmod -R u+w %s; rm -rf %s", folder, folder);
    return system(command);
}

static store *open_store(void)
{
    err error;
    store *s = store_open(str_of(folder), &error);
    check_msg(s != NULL, "%s", error.text);
    return s;
}

#define must(call)                                                                                 \
    do {                                                                                           \
        err error_ = {""};                                                                         \
        err *problem = &error_;                                                                    \
        check_msg(call, "%s", error_.text);                                                        \
    } while (0)

static int64_t put(store *s, const char *kind, const char *name, const char *json)
{
    stored_document d = {.kind = str_of(kind), .name = str_of(name), .json = str_of(json)};
    bool conflict;
    must(store_put_document(s, &d, -1, &conflict, problem));
    return d.version;
}

static bool tell_document(void *context, const stored_document *d)
{
    buf_addf(context, "%.*s/%.*s@%lld=%.*s ", STR_ARG(d->kind), STR_ARG(d->name),
             (long long)d->version, STR_ARG(d->json));
    return true;
}

static void documents_are_kept_by_kind_and_name(void **state)
{
    (void)state;
    store *s = open_store();
    put(s, "Resource", "b", "{\"x\":1}");
    put(s, "Resource", "a", "{}");
    put(s, "Version", "a", "{}");
    put(s, "Resource", "b", "{\"x\":2}");
    s = store_close(s);
    s = open_store();
    buf told = BUF(1000);
    must(store_documents(s, (document_key){0}, tell_document, &told, problem));
    check_text(buf_str(&told), "Resource/a@2={} Resource/b@4={\"x\":2} Version/a@3={} ");
    buf_clear(&told);
    must(store_documents(s, (document_key){STR("Resource"), STR("a")}, tell_document, &told,
                         problem));
    check_text(buf_str(&told), "Resource/b@4={\"x\":2} ");
    assert_int_equal(put(s, "Resource", "c", "{}"), 5); /* versions go on after a restart */
    arena *a = arena_new(0);
    stored_document d;
    err error;
    must(store_get_document(s, (document_key){STR("Resource"), STR("b")}, a, &d, problem));
    check_text(d.json, "{\"x\":2}");
    assert_false(store_get_document(s, (document_key){STR("Resource"), STR("z")}, a, &d, &error));
    check_err(error, "");
    arena_free(a);
    buf_done(&told);
    store_close(s);
}

static void a_write_that_expects_another_version_is_refused(void **state)
{
    (void)state;
    store *s = open_store();
    int64_t first = put(s, "Resource", "a", "{}");
    stored_document d = {.kind = STR("Resource"), .name = STR("a"), .json = STR("{\"x\":1}")};
    bool conflict = false;
    err error;
    assert_false(store_put_document(s, &d, 0, &conflict, &error));
    assert_true(conflict);
    check_err(error, "found version 1, expected 0");
    assert_true(store_put_document(s, &d, first, &conflict, &error));
    assert_false(conflict);
    assert_false(store_delete_document(s, (document_key){STR("Resource"), STR("a")}, first,
                                       &conflict, &error));
    assert_true(conflict);
    assert_true(store_delete_document(s, (document_key){STR("Resource"), STR("a")}, d.version,
                                      &conflict, &error));
    store_close(s);
}

static void append(store *s, int64_t step, const char *json);

/* A version that was given out is never given to another write: an old If-Match would fit it. */
static void versions_go_on_though_the_newest_document_is_gone(void **state)
{
    (void)state;
    bool conflict;
    store *s = open_store();
    put(s, "Resource", "a", "{}");
    append(s, 1, "a was written");
    int64_t before = put(s, "Resource", "b", "{\"x\":1}");
    append(s, 2, "b was written");
    must(store_delete_document(s, (document_key){STR("Resource"), STR("b")}, before, &conflict,
                               problem));
    append(s, 3, "b was deleted");
    store_close(s);
    s = open_store();
    assert_true(put(s, "Resource", "b", "{\"x\":2}") > before);
    store_close(s);
}

static bool tell_entry(void *context, const journal_entry *e)
{
    buf_addf(context, "%lld:%lld:%.*s:%.*s ", (long long)e->sequence, (long long)e->step,
             STR_ARG(e->kind), STR_ARG(e->json));
    return e->sequence < 4;
}

static void append(store *s, int64_t step, const char *json)
{
    must(store_append(
        s, &(journal_entry){.at_ms = 1, .step = step, .kind = STR("fact"), .json = str_of(json)},
        NULL, problem));
}

static void what_is_behind_a_mark_is_taken_back_alone(void **state)
{
    (void)state;
    store *s = open_store();
    must(store_begin(s, problem));
    append(s, 1, "a");
    must(store_mark(s, problem));
    append(s, 2, "b");
    put(s, "Resource", "b", "{}");
    store_take_back(s);
    assert_true(store_is_open(s));
    assert_int_equal(store_sequence(s), 1);
    must(store_mark(s, problem));
    append(s, 2, "c");
    assert_int_equal(put(s, "Resource", "c", "{}"), 1);
    must(store_keep(s, problem));
    must(store_commit(s, problem));
    assert_false(store_is_open(s));
    buf told = BUF(1000);
    must(store_journal(s, 0, tell_entry, &told, problem));
    check_text(buf_str(&told), "1:1:fact:a 2:2:fact:c ");
    buf_clear(&told);
    must(store_documents(s, (document_key){0}, tell_document, &told, problem));
    check_text(buf_str(&told), "Resource/c@1={} ");
    buf_done(&told);
    store_close(s);
}

static void the_journal_grows_without_gaps_and_rolls_back_whole(void **state)
{
    (void)state;
    store *s = open_store();
    append(s, 1, "a");
    must(store_begin(s, problem));
    append(s, 2, "b");
    append(s, 2, "c");
    store_rollback(s);
    assert_int_equal(store_sequence(s), 1);
    must(store_begin(s, problem));
    append(s, 2, "d");
    append(s, 2, "e");
    must(store_commit(s, problem));
    append(s, 3, "f");
    append(s, 3, "g");
    buf told = BUF(1000);
    must(store_journal(s, 1, tell_entry, &told, problem));
    check_text(buf_str(&told), "2:2:fact:d 3:2:fact:e 4:3:fact:f ");
    buf_done(&told);
    s = store_close(s);
    s = open_store();
    assert_int_equal(store_sequence(s), 5);
    store_close(s);
}

static void nobody_changes_the_journal(void **state)
{
    (void)state;
    store *s = open_store();
    append(s, 1, "a");
    store_close(s);
    char path[128];
    snprintf(path, sizeof path, "%s/drover.db", folder);
    sqlite3 *db;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "UPDATE journal SET json = 'b'", NULL, NULL, NULL),
                     SQLITE_CONSTRAINT);
    assert_int_equal(sqlite3_exec(db, "DELETE FROM journal", NULL, NULL, NULL), SQLITE_CONSTRAINT);
    sqlite3_close(db);
}

static bool tell_job(void *context, const stored_job *j)
{
    buf_addf(context, "%lld:%.*s ", (long long)j->number, STR_ARG(j->state));
    return true;
}

static bool tell_token(void *context, const stored_token *t)
{
    buf_addf(context, "%.*s:%.*s:%d:%lld ", STR_ARG(t->name), STR_ARG(t->role), t->hash[0],
             (long long)t->revoked_ms);
    return true;
}

static void put_snapshot(store *s, int64_t sequence, const char *first, const char *second)
{
    must(store_put_snapshot_part(s, (snapshot_part){sequence, 0, str_of(first)}, problem));
    must(store_put_snapshot_part(s, (snapshot_part){sequence, 1, str_of(second)}, problem));
    must(store_use_snapshot(s, sequence, 2, problem));
}

static void jobs_tokens_and_the_snapshot_are_kept(void **state)
{
    (void)state;
    store *s = open_store();
    for (int64_t n = 1; n <= 3; n++)
        must(store_put_job(
            s, &(stored_job){.number = n, .deployment = STR("d"), .state = STR("running")},
            problem));
    must(store_put_job(s, &(stored_job){.number = 2, .state = STR("succeeded"), .ended_ms = 7},
                       problem));
    buf told = BUF(1000);
    must(store_jobs(s, (job_range){0, false}, tell_job, &told, problem));
    check_text(buf_str(&told), "3:running 2:succeeded 1:running ");
    buf_clear(&told);
    must(store_jobs(s, (job_range){3, true}, tell_job, &told, problem));
    check_text(buf_str(&told), "1:running ");
    arena *a = arena_new(0);
    stored_job j;
    must(store_get_job(s, 2, a, &j, problem));
    assert_int_equal(j.ended_ms, 7);

    stored_token t = {.name = STR("ci"), .role = STR("operator"), .hash = {9}, .created_ms = 1};
    must(store_put_token(s, &t, problem));
    err error;
    assert_false(store_put_token(s, &t, &error));
    check_err(error, "a token named \"ci\" exists already");
    bool found;
    must(store_revoke_token(s, STR("ci"), 5, &found, problem));
    assert_true(found);
    must(store_revoke_token(s, STR("ci"), 6, &found, problem));
    assert_false(found);
    buf_clear(&told);
    must(store_tokens(s, tell_token, &told, problem));
    check_text(buf_str(&told), "ci:operator:9:5 ");

    int64_t sequence;
    str text;
    must(store_get_snapshot(s, a, &sequence, &text, problem));
    assert_int_equal(sequence, 0);
    put_snapshot(s, 4, "on", "e");
    must(store_put_snapshot_part(s, (snapshot_part){8, 0, STR("lost")}, problem));
    must(store_get_snapshot(s, a, &sequence, &text, problem));
    assert_int_equal(sequence, 4); /* the other is not complete */
    check_text(text, "one");
    put_snapshot(s, 8, "tw", "o");
    must(store_get_snapshot(s, a, &sequence, &text, problem));
    assert_int_equal(sequence, 8);
    check_text(text, "two");
    int dropped = 0;
    for (bool more = true; more; dropped += more)
        must(store_drop_snapshot_part(s, &more, problem));
    assert_int_equal(dropped, 2);
    must(store_get_snapshot(s, a, &sequence, &text, problem));
    check_text(text, "two");
    arena_free(a);
    buf_done(&told);
    store_close(s);
}

/* ---- what is refused ---- */

static void expect_refused(const char *part)
{
    err error;
    store *s = store_open(str_of(folder), &error);
    assert_null(s);
    check_err_has(error, part);
    check_err_has(error, folder);
}

static void write_file(const char *name, const char *text)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static void a_folder_in_use_is_refused(void **state)
{
    (void)state;
    store *s = open_store();
    expect_refused("the folder is in use by another drover");
    store_close(s);
    store_close(open_store());
}

static void a_file_that_is_no_database_is_refused_and_left_alone(void **state)
{
    (void)state;
    write_file("drover.db",
               "this is not a database, and somebody may miss it. this is not a database.");
    expect_refused("damaged");
    char path[128];
    snprintf(path, sizeof path, "%s/drover.db", folder);
    struct stat info;
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_size, 73);
}

static void run_on_file(const char *sql)
{
    char path[128];
    snprintf(path, sizeof path, "%s/drover.db", folder);
    sqlite3 *db;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
}

static void a_database_of_another_program_is_refused(void **state)
{
    (void)state;
    run_on_file("CREATE TABLE theirs (x)");
    expect_refused("belongs to another program");
}

static void a_database_of_a_newer_drover_is_refused(void **state)
{
    (void)state;
    store_close(open_store());
    run_on_file("PRAGMA user_version = 999");
    expect_refused("written by a newer Drover (schema 999");
}

static void a_folder_that_cannot_be_written_is_refused(void **state)
{
    (void)state;
    err error;
    assert_null(store_open(STR("/proc/nobody/can/write/here"), &error));
    check_err_has(error, "cannot make the folder");
    assert_null(store_open(STR_EMPTY, &error));
    check_err_has(error, "allowed 1 to");
}

/* A full disk, as far as one process can see it: files may not grow past a size. */
static void a_full_disk_loses_nothing_and_work_goes_on_when_there_is_room(void **state)
{
    (void)state;
    pid_t child = fork();
    if (child == 0) {
        signal(SIGXFSZ, SIG_IGN);
        store *s = open_store();
        append(s, 1, "before");
        struct rlimit old;
        getrlimit(RLIMIT_FSIZE, &old);
        struct rlimit small = {1024, old.rlim_max};
        setrlimit(RLIMIT_FSIZE, &small);
        err error = {""};
        bool refused = store_begin(s, &error) && true;
        journal_entry e = {.kind = STR("fact"), .json = STR("lost")};
        bool written = refused && store_append(s, &e, NULL, &error) && store_commit(s, &error);
        store_rollback(s);
        if (written || error.text[0] == '\0' || store_sequence(s) != 1)
            _exit(1);
        setrlimit(RLIMIT_FSIZE, &old);
        append(s, 2, "after");
        store_close(s);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    store *s = open_store();
    buf told = BUF(1000);
    must(store_journal(s, 0, tell_entry, &told, problem));
    check_text(buf_str(&told), "1:1:fact:before 2:2:fact:after ");
    buf_done(&told);
    store_close(s);
}

static void a_process_killed_in_a_transaction_leaves_no_trace_of_it(void **state)
{
    (void)state;
    pid_t child = fork();
    if (child == 0) {
        store *s = open_store();
        append(s, 1, "kept");
        must(store_begin(s, problem));
        append(s, 2, "gone");
        kill(getpid(), SIGKILL);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    store *s = open_store();
    assert_int_equal(store_sequence(s), 1);
    store_close(s);
}

static void a_backup_is_whole_and_never_overwrites(void **state)
{
    (void)state;
    store *s = open_store();
    append(s, 1, "a");
    char path[128];
    snprintf(path, sizeof path, "%s/copy", folder);
    mkdir(path, 0700);
    snprintf(path, sizeof path, "%s/copy/drover.db", folder);
    must(store_backup(s, str_of(path), problem));
    append(s, 2, "b");
    err error;
    assert_false(store_backup(s, str_of(path), &error));
    check_err_has(error, "exists already");
    store_close(s);
    snprintf(path, sizeof path, "%s/copy", folder);
    s = store_open(str_of(path), &error);
    assert_non_null(s);
    assert_int_equal(store_sequence(s), 1);
    store_close(s);
}

/* What is written while the copy is made is in it, too; nothing is in it twice or by half. */
static void a_copy_is_made_in_pieces_while_work_goes_on(void **state)
{
    (void)state;
    char path[128], large[8001];
    err error;
    store *s = open_store();
    memset(large, 'x', sizeof large - 1);
    large[sizeof large - 1] = 0;
    for (int i = 0; i < 1000; i++)
        append(s, 1, large);
    snprintf(path, sizeof path, "%s/copy", folder);
    mkdir(path, 0700);
    snprintf(path, sizeof path, "%s/copy/drover.db", folder);
    store_copy *k = store_copy_begin(s, str_of(path), &error);
    check_msg(k, "%s", error.text);
    int pieces = 0;
    for (bool done = false; !done; pieces++) {
        must(store_copy_step(k, &done, problem));
        if (!done)
            append(s, 2, large);
    }
    store_copy_end(k);
    int64_t written = store_sequence(s);
    append(s, 3, "not in it");
    store_close(s);
    assert_in_range(pieces, 4, 100);
    snprintf(path, sizeof path, "%s/copy", folder);
    s = store_open(str_of(path), &error);
    check_msg(s, "%s", error.text);
    assert_int_equal(store_sequence(s), written);
    store_close(s);
}

/* ---- upgrades ---- */

static void every_schema_before_the_present_one_is_there(void **state)
{
    (void)state;
    store_close(open_store());
    char path[128];
    sqlite3 *db;
    sqlite3_stmt *statement;
    snprintf(path, sizeof path, "%s/drover.db", folder);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, "PRAGMA user_version", -1, &statement, NULL),
                     SQLITE_OK);
    assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
    assert_int_equal(sqlite3_column_int(statement, 0), COUNT_OF(released) + 1);
    sqlite3_finalize(statement);
    sqlite3_close(db);
}

/* What the stores above hold is there, and it works as a new one does. */
static void check_brought_up(void)
{
    store *s = open_store();
    arena *a = arena_new(0);
    buf told = BUF(1000);
    int64_t sequence;
    str text;
    must(store_documents(s, (document_key){0}, tell_document, &told, problem));
    must(store_journal(s, 0, tell_entry, &told, problem));
    must(store_jobs(s, (job_range){0, true}, tell_job, &told, problem));
    must(store_tokens(s, tell_token, &told, problem));
    check_text(buf_str(&told), "Resource/a@3={} 1:1:fact:{\"x\":1} 2:1:decision:{\"y\":1} "
                               "7:running ci:viewer:0:0 ");
    must(store_get_snapshot(s, a, &sequence, &text, problem));
    assert_int_equal(sequence, 2);
    check_text(text, "the text");
    assert_int_equal(put(s, "Resource", "b", "{}"), 4);
    append(s, 2, "c");
    put_snapshot(s, 3, "x", "y");
    store_close(s);
    store_close(open_store());
    arena_free(a);
    buf_done(&told);
}

static void empty_folder(void)
{
    remove_folder(NULL);
    assert_int_equal(mkdir(folder, 0700), 0);
}

static void a_store_of_every_released_version_is_brought_up(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(released); i++) {
        run_on_file(released[i].sql);
        check_brought_up();
        empty_folder();
    }
}

#define test(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        test(documents_are_kept_by_kind_and_name),
        test(a_write_that_expects_another_version_is_refused),
        test(the_journal_grows_without_gaps_and_rolls_back_whole),
        test(what_is_behind_a_mark_is_taken_back_alone),
        test(nobody_changes_the_journal),
        test(jobs_tokens_and_the_snapshot_are_kept),
        test(a_folder_in_use_is_refused),
        test(a_file_that_is_no_database_is_refused_and_left_alone),
        test(a_database_of_another_program_is_refused),
        test(a_database_of_a_newer_drover_is_refused),
        test(a_folder_that_cannot_be_written_is_refused),
        test(a_full_disk_loses_nothing_and_work_goes_on_when_there_is_room),
        test(a_process_killed_in_a_transaction_leaves_no_trace_of_it),
        test(a_backup_is_whole_and_never_overwrites),
        test(a_copy_is_made_in_pieces_while_work_goes_on),
        test(every_schema_before_the_present_one_is_there),
        test(a_store_of_every_released_version_is_brought_up),
        test(versions_go_on_though_the_newest_document_is_gone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
