/* SPDX-License-Identifier: Apache-2.0 */
#include "store/store.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "store/store_internal.h"

#define FILE_NAME "drover.db"
#define LOCK_NAME "lock"
#define LOCK_TRIES 100
#define LOCK_TRY_US 10000
#define FOLDER_BYTES ((size_t)LIMIT_PATH_BYTES - 64) /* leaves room for the names in it */

/* ---- opening ---- */

/* Every schema there ever was, in order; a store of version n is brought up by those from n on. */
static const char *const migrations[] = {
    "CREATE TABLE documents (kind TEXT NOT NULL, name TEXT NOT NULL, version INTEGER NOT NULL,"
    " json TEXT NOT NULL, PRIMARY KEY (kind, name)) WITHOUT ROWID;"
    "CREATE TABLE journal (sequence INTEGER PRIMARY KEY, at_ms INTEGER NOT NULL,"
    " step INTEGER NOT NULL, kind TEXT NOT NULL, who TEXT NOT NULL, json TEXT NOT NULL);"
    "CREATE TRIGGER journal_is_not_changed BEFORE UPDATE ON journal"
    " BEGIN SELECT RAISE(ABORT, 'the journal is append-only'); END;"
    "CREATE TRIGGER journal_is_not_cut BEFORE DELETE ON journal"
    " BEGIN SELECT RAISE(ABORT, 'the journal is append-only'); END;"
    "CREATE TABLE snapshot (one INTEGER PRIMARY KEY CHECK (one = 1), sequence INTEGER NOT NULL,"
    " text TEXT NOT NULL);"
    "CREATE TABLE jobs (number INTEGER PRIMARY KEY, deployment TEXT NOT NULL,"
    " environment TEXT NOT NULL, resource TEXT NOT NULL, version TEXT NOT NULL,"
    " version_group TEXT NOT NULL, role TEXT NOT NULL, state TEXT NOT NULL, reason TEXT NOT NULL,"
    " attempt INTEGER NOT NULL, fencing INTEGER NOT NULL, lease_ms INTEGER NOT NULL,"
    " pid INTEGER NOT NULL, started_ms INTEGER NOT NULL, ended_ms INTEGER NOT NULL);"
    "CREATE INDEX open_jobs ON jobs (number) WHERE ended_ms = 0;"
    "CREATE TABLE tokens (name TEXT PRIMARY KEY, role TEXT NOT NULL, selector TEXT NOT NULL,"
    " hash BLOB NOT NULL UNIQUE, created_ms INTEGER NOT NULL, revoked_ms INTEGER NOT NULL);",
    /* 2: a snapshot is written in parts. */
    "CREATE TABLE snapshot_parts (sequence INTEGER NOT NULL, part INTEGER NOT NULL,"
    " text TEXT NOT NULL, PRIMARY KEY (sequence, part));"
    "INSERT INTO snapshot_parts SELECT sequence, 0, text FROM snapshot;"
    "ALTER TABLE snapshot DROP COLUMN text;"
    "ALTER TABLE snapshot ADD COLUMN parts INTEGER NOT NULL DEFAULT 1;",
};
#define SCHEMA_VERSION ((int64_t)(sizeof migrations / sizeof migrations[0]))
/* "drov": marks the file as ours. */
#define APPLICATION_ID INT64_C(0x64726F76)

/* The newest document may be gone, and its version must not be another's. Whoever writes or deletes
 * a document also writes an entry about it, so no version is larger than the last entry's number
 * was. */
#define LAST_VERSION                                                                               \
    "SELECT max(coalesce((SELECT max(version) FROM documents), 0),"                                \
    " coalesce((SELECT max(sequence) FROM journal), 0))"

/* Why a write to the log failed: SQLite says no more than "disk I/O error". */
static int log_errno(sqlite3 *db)
{
    sqlite3_file *log = NULL;
    int cause = 0;
    if (sqlite3_file_control(db, "main", SQLITE_FCNTL_JOURNAL_POINTER, &log) == SQLITE_OK && log &&
        log->pMethods)
        log->pMethods->xFileControl(log, SQLITE_FCNTL_LAST_ERRNO, &cause);
    return cause;
}

bool store_failed(store *s, const char *what, err *error)
{
    int code = s->db ? sqlite3_errcode(s->db) : SQLITE_NOMEM;
    if (code == SQLITE_FULL)
        return err_set(error, "%s: the disk is full", what);
    if (code == SQLITE_READONLY)
        return err_set(error, "%s: the data folder is read-only", what);
    if (code == SQLITE_CORRUPT || code == SQLITE_NOTADB)
        return err_set(error, "%s: the database is damaged; restore a backup", what);
    int cause = code == SQLITE_IOERR ? log_errno(s->db) : 0;
    if (cause == ENOSPC || cause == EDQUOT || cause == EFBIG) /* as good as full */
        return err_set(error, "%s: the disk is full (%s)", what, strerror(cause));
    if (cause != 0)
        return err_set(error, "%s: %s", what, strerror(cause));
    return err_set(error, "%s: %s", what, s->db ? sqlite3_errmsg(s->db) : "out of memory");
}

static bool run_sql(store *s, const char *sql, const char *what, err *error)
{
    return sqlite3_exec(s->db, sql, NULL, NULL, NULL) == SQLITE_OK || store_failed(s, what, error);
}

static bool read_number(store *s, const char *sql, int64_t *ret, err *error)
{
    sqlite3_stmt *statement = NULL;
    bool good = sqlite3_prepare_v2(s->db, sql, -1, &statement, NULL) == SQLITE_OK &&
                sqlite3_step(statement) == SQLITE_ROW;
    if (good)
        *ret = sqlite3_column_int64(statement, 0);
    else
        store_failed(s, "reading the database", error);
    sqlite3_finalize(statement);
    return good;
}

static bool migrate(store *s, err *error)
{
    int64_t version;
    int64_t application;
    int64_t tables;
    if (!read_number(s, "PRAGMA user_version", &version, error) ||
        !read_number(s, "PRAGMA application_id", &application, error) ||
        !read_number(s, "SELECT count(*) FROM sqlite_master", &tables, error))
        return false;
    if (tables > 0 && application != APPLICATION_ID)
        return err_set(error, "%s belongs to another program", FILE_NAME);
    if (version > SCHEMA_VERSION)
        return err_set(error, "%s was written by a newer Drover (schema %lld, this one knows %lld)",
                       FILE_NAME, (long long)version, (long long)SCHEMA_VERSION);
    if (version == SCHEMA_VERSION)
        return true;
    char mark[128];
    snprintf(mark, sizeof mark, "PRAGMA application_id = %lld; PRAGMA user_version = %lld;",
             (long long)APPLICATION_ID, (long long)SCHEMA_VERSION);
    bool good = run_sql(s, "BEGIN IMMEDIATE", "upgrading the database", error);
    for (int64_t v = version; good && v < SCHEMA_VERSION; v++)
        good = run_sql(s, migrations[v], "upgrading the database", error);
    good = good && run_sql(s, mark, "upgrading the database", error) &&
           run_sql(s, "COMMIT", "upgrading the database", error);
    if (!good)
        sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
    return good;
}

static const char *const statement_texts[] = {
#define X(name, sql) [SQL_##name] = (sql),
    STATEMENTS(X)
#undef X
};

static bool prepare_all(store *s, err *error)
{
    for (size_t i = 0; i < SQL_COUNT; i++)
        if (sqlite3_prepare_v3(s->db, statement_texts[i], -1, SQLITE_PREPARE_PERSISTENT,
                               &s->statements[i], NULL) != SQLITE_OK)
            return store_failed(s, "preparing the database", error);
    return true;
}

/* The lock goes with the process, however it ends; but what the process was just about to start
 * still has the file open until it becomes another program. So a restart waits a little. */
static bool lock_folder(store *s, const char folder[FOLDER_BYTES], err *error)
{
    if (mkdir(folder, 0700) != 0 && errno != EEXIST)
        return err_set(error, "cannot make the folder: %s", strerror(errno));
    char path[FOLDER_BYTES + sizeof LOCK_NAME];
    snprintf(path, sizeof path, "%s/%s", folder, LOCK_NAME);
    s->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (s->lock < 0)
        return err_set(error, "cannot write to the folder: %s", strerror(errno));
    for (int tries = 0; flock(s->lock, LOCK_EX | LOCK_NB) != 0; tries++) {
        if (tries == LOCK_TRIES)
            return err_set(error, "the folder is in use by another drover");
        usleep(LOCK_TRY_US);
    }
    return true;
}

static bool open_database(store *s, const char folder[FOLDER_BYTES], err *error)
{
    char path[FOLDER_BYTES + sizeof FILE_NAME];
    snprintf(path, sizeof path, "%s/%s", folder, FILE_NAME);
    mode_t before = umask(0077);
    int code = sqlite3_open_v2(path, &s->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL);
    umask(before);
    if (code != SQLITE_OK)
        return store_failed(s, "opening the database", error);
    sqlite3_extended_result_codes(s->db, 0);
    return run_sql(s, "PRAGMA journal_mode = WAL", "opening the database", error) &&
           run_sql(s, "PRAGMA synchronous = FULL", "opening the database", error) &&
           run_sql(s, "PRAGMA foreign_keys = ON", "opening the database", error) &&
           migrate(s, error) && prepare_all(s, error) &&
           read_number(s, "SELECT coalesce(max(sequence), 0) FROM journal", &s->sequence, error) &&
           read_number(s, LAST_VERSION, &s->version, error);
}

store *store_open(str folder, err *error)
{
    char path[FOLDER_BYTES];
    if (folder.len == 0 || folder.len >= sizeof path) {
        err_set(error, "found a folder name of %zu bytes, allowed 1 to %zu", folder.len,
                sizeof path - 1);
        return NULL;
    }
    snprintf(path, sizeof path, "%.*s", STR_ARG(folder));
    store *s = mem_zalloc(sizeof *s);
    if (!s) {
        err_memory(error);
        return NULL;
    }
    s->lock = -1;
    if (lock_folder(s, path, error) && open_database(s, path, error))
        return s;
    err_wrap(error, "%s", path);
    return store_close(s);
}

store *store_close(store *s)
{
    if (!s)
        return NULL;
    for (size_t i = 0; i < SQL_COUNT; i++)
        sqlite3_finalize(s->statements[i]);
    sqlite3_close(s->db);
    if (s->lock >= 0)
        close(s->lock);
    return mem_free(s);
}

bool store_set_sync(store *s, bool sync, err *error)
{
    return run_sql(s, sync ? "PRAGMA synchronous = FULL" : "PRAGMA synchronous = OFF",
                   "changing the database", error);
}

/* ---- transactions ---- */

bool store_begin(store *s, err *error)
{
    assert(!s->in_transaction);
    if (!run_sql(s, "BEGIN IMMEDIATE", "beginning a transaction", error))
        return false;
    s->in_transaction = true;
    s->sequence_before = s->sequence;
    s->version_before = s->version;
    return true;
}

bool store_commit(store *s, err *error)
{
    assert(s->in_transaction);
    if (!run_sql(s, "COMMIT", "writing a decision", error)) {
        store_rollback(s);
        return false;
    }
    s->in_transaction = false;
    return true;
}

void store_rollback(store *s)
{
    if (!s->in_transaction)
        return;
    /* After a failure SQLite may have rolled back already. */
    sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
    s->in_transaction = false;
    s->marked = false;
    s->sequence = s->sequence_before;
    s->version = s->version_before;
}

bool store_is_open(const store *s)
{
    return s->in_transaction;
}

/* ---- marks ---- */

bool store_mark(store *s, err *error)
{
    assert(s->in_transaction && !s->marked);
    if (!run_sql(s, "SAVEPOINT mark", "writing a decision", error))
        return false;
    s->marked = true;
    s->sequence_marked = s->sequence;
    s->version_marked = s->version;
    return true;
}

bool store_keep(store *s, err *error)
{
    assert(s->marked);
    if (!run_sql(s, "RELEASE mark", "writing a decision", error))
        return false;
    s->marked = false;
    return true;
}

void store_take_back(store *s)
{
    if (!s->in_transaction)
        return;
    /* A full disk, for one, makes SQLite roll back everything, not only what is behind the mark. */
    bool whole = sqlite3_get_autocommit(s->db) != 0;
    if (!whole && s->marked)
        whole =
            sqlite3_exec(s->db, "ROLLBACK TO mark; RELEASE mark", NULL, NULL, NULL) != SQLITE_OK;
    if (whole) {
        store_rollback(s);
        return;
    }
    if (!s->marked)
        return;
    s->marked = false;
    s->sequence = s->sequence_marked;
    s->version = s->version_marked;
}

/* ---- statements ---- */

sqlite3_stmt *store_statement(store *s, sql_statement which)
{
    sqlite3_stmt *statement = s->statements[which];
    sqlite3_reset(statement);
    return statement;
}

void bind_text(sqlite3_stmt *statement, int at, str text)
{
    sqlite3_bind_text64(statement, at, text.ptr ? text.ptr : "", text.len, SQLITE_STATIC,
                        SQLITE_UTF8);
}

str column_text(sqlite3_stmt *statement, int at)
{
    const char *text = (const char *)sqlite3_column_text(statement, at);
    return (str){text ? text : "", (size_t)sqlite3_column_bytes(statement, at)};
}

bool store_run(store *s, sqlite3_stmt *statement, const char *what, err *error)
{
    int code = sqlite3_step(statement);
    bool good = code == SQLITE_DONE || code == SQLITE_ROW;
    if (!good)
        store_failed(s, what, error);
    sqlite3_reset(statement);
    return good;
}
