/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of the store: documents, journal, snapshot, jobs and tokens. */
#include <assert.h>

#include "store/store_internal.h"

/* Calls "row" for each row until it says false. */
typedef bool (*row_reader)(sqlite3_stmt *statement, void *context);

static bool each_row(store *s, sqlite3_stmt *statement, row_reader row, void *context, err *error)
{
    int code;
    while ((code = sqlite3_step(statement)) == SQLITE_ROW)
        if (!row(statement, context))
            break;
    bool good =
        code == SQLITE_ROW || code == SQLITE_DONE || store_failed(s, "reading the database", error);
    sqlite3_reset(statement);
    return good;
}

/* ---- documents ---- */

static stored_document document_row(sqlite3_stmt *statement)
{
    return (stored_document){.kind = column_text(statement, 0),
                             .name = column_text(statement, 1),
                             .version = sqlite3_column_int64(statement, 2),
                             .json = column_text(statement, 3)};
}

/* The version a document has now; 0 if there is none. */
static bool present_version(store *s, document_key key, int64_t *ret, err *error)
{
    sqlite3_stmt *statement = store_statement(s, SQL_GET_DOCUMENT);
    bind_text(statement, 1, key.kind);
    bind_text(statement, 2, key.name);
    int code = sqlite3_step(statement);
    *ret = code == SQLITE_ROW ? sqlite3_column_int64(statement, 2) : 0;
    bool good =
        code == SQLITE_ROW || code == SQLITE_DONE || store_failed(s, "reading a document", error);
    sqlite3_reset(statement);
    return good;
}

static bool expect_version(store *s, document_key key, int64_t expected, bool *ret_conflict,
                           err *error)
{
    *ret_conflict = false;
    int64_t now;
    if (expected < 0)
        return true;
    if (!present_version(s, key, &now, error))
        return false;
    if (now == expected)
        return true;
    *ret_conflict = true;
    return err_set(error, "found version %lld, expected %lld", (long long)now, (long long)expected);
}

bool store_put_document(store *s, stored_document *d, int64_t expected, bool *ret_conflict,
                        err *error)
{
    if (!expect_version(s, (document_key){d->kind, d->name}, expected, ret_conflict, error))
        return false;
    sqlite3_stmt *statement = store_statement(s, SQL_PUT_DOCUMENT);
    bind_text(statement, 1, d->kind);
    bind_text(statement, 2, d->name);
    sqlite3_bind_int64(statement, 3, s->version + 1);
    bind_text(statement, 4, d->json);
    if (!store_run(s, statement, "writing a document", error))
        return false;
    d->version = ++s->version;
    return true;
}

bool store_delete_document(store *s, document_key key, int64_t expected, bool *ret_conflict,
                           err *error)
{
    if (!expect_version(s, key, expected, ret_conflict, error))
        return false;
    sqlite3_stmt *statement = store_statement(s, SQL_DELETE_DOCUMENT);
    bind_text(statement, 1, key.kind);
    bind_text(statement, 2, key.name);
    return store_run(s, statement, "deleting a document", error);
}

bool store_get_document(store *s, document_key key, arena *a, stored_document *ret, err *error)
{
    if (error)
        error->text[0] = '\0';
    sqlite3_stmt *statement = store_statement(s, SQL_GET_DOCUMENT);
    bind_text(statement, 1, key.kind);
    bind_text(statement, 2, key.name);
    int code = sqlite3_step(statement);
    bool found = code == SQLITE_ROW;
    if (found) {
        stored_document d = document_row(statement);
        d.kind = arena_str(a, d.kind);
        d.name = arena_str(a, d.name);
        d.json = arena_str(a, d.json);
        found = d.kind.ptr && d.name.ptr && d.json.ptr;
        if (found)
            *ret = d;
        else
            err_memory(error);
    } else if (code != SQLITE_DONE)
        store_failed(s, "reading a document", error);
    sqlite3_reset(statement);
    return found;
}

typedef struct document_walk {
    document_visitor visit;
    void *context;
} document_walk;

static bool visit_document(sqlite3_stmt *statement, void *context)
{
    document_walk *walk = context;
    stored_document d = document_row(statement);
    return walk->visit(walk->context, &d);
}

bool store_documents(store *s, document_key after, document_visitor visit, void *context,
                     err *error)
{
    sqlite3_stmt *statement =
        store_statement(s, after.kind.len > 0 ? SQL_LIST_DOCUMENTS : SQL_ALL_DOCUMENTS);
    if (after.kind.len > 0) {
        bind_text(statement, 1, after.kind);
        bind_text(statement, 2, after.name);
    }
    return each_row(s, statement, visit_document, &(document_walk){visit, context}, error);
}

/* ---- journal ---- */

bool store_append(store *s, const journal_entry *e, int64_t *ret_sequence, err *error)
{
    sqlite3_stmt *statement = store_statement(s, SQL_APPEND);
    sqlite3_bind_int64(statement, 1, s->sequence + 1);
    sqlite3_bind_int64(statement, 2, e->at_ms);
    sqlite3_bind_int64(statement, 3, e->step);
    bind_text(statement, 4, e->kind);
    bind_text(statement, 5, e->who);
    bind_text(statement, 6, e->json);
    if (!store_run(s, statement, "writing the journal", error))
        return false;
    s->sequence++;
    if (ret_sequence)
        *ret_sequence = s->sequence;
    return true;
}

typedef struct journal_walk {
    journal_visitor visit;
    void *context;
} journal_walk;

static bool visit_entry(sqlite3_stmt *statement, void *context)
{
    journal_walk *walk = context;
    journal_entry e = {.sequence = sqlite3_column_int64(statement, 0),
                       .at_ms = sqlite3_column_int64(statement, 1),
                       .step = sqlite3_column_int64(statement, 2),
                       .kind = column_text(statement, 3),
                       .who = column_text(statement, 4),
                       .json = column_text(statement, 5)};
    return walk->visit(walk->context, &e);
}

bool store_journal(store *s, int64_t after, journal_visitor visit, void *context, err *error)
{
    sqlite3_stmt *statement = store_statement(s, SQL_JOURNAL);
    sqlite3_bind_int64(statement, 1, after);
    return each_row(s, statement, visit_entry, &(journal_walk){visit, context}, error);
}

int64_t store_sequence(const store *s)
{
    return s->sequence;
}

/* ---- snapshot ---- */

bool store_put_snapshot_part(store *s, snapshot_part part, err *error)
{
    sqlite3_stmt *statement = store_statement(s, SQL_PUT_PART);
    sqlite3_bind_int64(statement, 1, part.sequence);
    sqlite3_bind_int64(statement, 2, part.number);
    bind_text(statement, 3, part.text);
    return store_run(s, statement, "writing the snapshot", error);
}

bool store_use_snapshot(store *s, int64_t sequence, int64_t parts, err *error)
{
    sqlite3_stmt *statement = store_statement(s, SQL_USE_SNAPSHOT);
    sqlite3_bind_int64(statement, 1, sequence);
    sqlite3_bind_int64(statement, 2, parts);
    return store_run(s, statement, "writing the snapshot", error);
}

bool store_drop_snapshot_part(store *s, bool *ret_more, err *error)
{
    if (!store_run(s, store_statement(s, SQL_DROP_PART), "writing the snapshot", error))
        return false;
    *ret_more = sqlite3_changes(s->db) > 0;
    return true;
}

/* The one that is in use. */
typedef struct snapshot_row {
    int64_t sequence;
    int64_t parts;
} snapshot_row;

typedef struct parts {
    buf text;
    int64_t count;
} parts;

static bool add_part(sqlite3_stmt *statement, void *context)
{
    parts *to = context;
    buf_add(&to->text, column_text(statement, 0));
    to->count++;
    return !to->text.failed;
}

static bool get_parts(store *s, snapshot_row row, arena *a, str *ret_text, err *error)
{
    parts to = {.text = BUF(LIMIT_TEXT_BYTES)};
    sqlite3_stmt *statement = store_statement(s, SQL_GET_PARTS);
    sqlite3_bind_int64(statement, 1, row.sequence);
    sqlite3_bind_int64(statement, 2, row.parts);
    bool good = each_row(s, statement, add_part, &to, error);
    if (good && !to.text.failed && to.count != row.parts)
        good = err_set(error, "reading the snapshot: %lld of %lld parts are there",
                       (long long)to.count, (long long)row.parts);
    if (good)
        *ret_text = to.text.failed ? (str){0} : arena_str(a, buf_str(&to.text));
    buf_done(&to.text);
    return good && (ret_text->ptr || err_memory(error));
}

bool store_get_snapshot(store *s, arena *a, int64_t *ret_sequence, str *ret_text, err *error)
{
    sqlite3_stmt *statement = store_statement(s, SQL_GET_SNAPSHOT);
    int code = sqlite3_step(statement);
    bool good = code == SQLITE_DONE || code == SQLITE_ROW;
    snapshot_row row = {0};
    if (code == SQLITE_ROW)
        row =
            (snapshot_row){sqlite3_column_int64(statement, 0), sqlite3_column_int64(statement, 1)};
    if (!good)
        store_failed(s, "reading the snapshot", error);
    sqlite3_reset(statement);
    str text = STR_EMPTY;
    good = good && (row.sequence == 0 || get_parts(s, row, a, &text, error));
    if (good) {
        *ret_sequence = row.sequence;
        *ret_text = text;
    }
    return good;
}

/* ---- jobs ---- */

bool store_put_job(store *s, const stored_job *j, err *error)
{
    sqlite3_stmt *statement = store_statement(s, SQL_PUT_JOB);
    sqlite3_bind_int64(statement, 1, j->number);
    const str texts[] = {j->deployment, j->environment, j->resource, j->version,
                         j->group,      j->role,        j->state,    j->reason};
    const int64_t numbers[] = {j->attempt, j->fencing,    j->lease_ms,
                               j->pid,     j->started_ms, j->ended_ms};
    int at = 2;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        bind_text(statement, at++, texts[i]);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        sqlite3_bind_int64(statement, at++, numbers[i]);
    return store_run(s, statement, "writing a job", error);
}

static stored_job job_row(sqlite3_stmt *statement)
{
    return (stored_job){.number = sqlite3_column_int64(statement, 0),
                        .deployment = column_text(statement, 1),
                        .environment = column_text(statement, 2),
                        .resource = column_text(statement, 3),
                        .version = column_text(statement, 4),
                        .group = column_text(statement, 5),
                        .role = column_text(statement, 6),
                        .state = column_text(statement, 7),
                        .reason = column_text(statement, 8),
                        .attempt = sqlite3_column_int64(statement, 9),
                        .fencing = sqlite3_column_int64(statement, 10),
                        .lease_ms = sqlite3_column_int64(statement, 11),
                        .pid = sqlite3_column_int64(statement, 12),
                        .started_ms = sqlite3_column_int64(statement, 13),
                        .ended_ms = sqlite3_column_int64(statement, 14)};
}

static bool copy_job(arena *a, stored_job *j)
{
    str *texts[] = {&j->deployment, &j->environment, &j->resource, &j->version,
                    &j->group,      &j->role,        &j->state,    &j->reason};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        *texts[i] = arena_str(a, *texts[i]);
        if (!texts[i]->ptr)
            return false;
    }
    return true;
}

bool store_get_job(store *s, int64_t number, arena *a, stored_job *ret, err *error)
{
    if (error)
        error->text[0] = '\0';
    sqlite3_stmt *statement = store_statement(s, SQL_GET_JOB);
    sqlite3_bind_int64(statement, 1, number);
    int code = sqlite3_step(statement);
    bool found = code == SQLITE_ROW;
    if (found) {
        stored_job j = job_row(statement);
        found = copy_job(a, &j) || err_memory(error);
        if (found)
            *ret = j;
    } else if (code != SQLITE_DONE)
        store_failed(s, "reading a job", error);
    sqlite3_reset(statement);
    return found;
}

typedef struct job_walk {
    job_visitor visit;
    void *context;
} job_walk;

static bool visit_job(sqlite3_stmt *statement, void *context)
{
    job_walk *walk = context;
    stored_job j = job_row(statement);
    return walk->visit(walk->context, &j);
}

bool store_jobs(store *s, job_range range, job_visitor visit, void *context, err *error)
{
    sqlite3_stmt *statement = store_statement(s, range.open_only ? SQL_OPEN_JOBS : SQL_JOBS);
    sqlite3_bind_int64(statement, 1, range.before > 0 ? range.before : INT64_MAX);
    return each_row(s, statement, visit_job, &(job_walk){visit, context}, error);
}

/* ---- tokens ---- */

bool store_put_token(store *s, const stored_token *t, err *error)
{
    sqlite3_stmt *statement = store_statement(s, SQL_PUT_TOKEN);
    bind_text(statement, 1, t->name);
    bind_text(statement, 2, t->role);
    bind_text(statement, 3, t->selector);
    sqlite3_bind_blob(statement, 4, t->hash, sizeof t->hash, SQLITE_STATIC);
    sqlite3_bind_int64(statement, 5, t->created_ms);
    int code = sqlite3_step(statement);
    if (code == SQLITE_CONSTRAINT)
        err_set(error, "a token named \"%.*s\" exists already", STR_ARG(t->name));
    else if (code != SQLITE_DONE)
        store_failed(s, "writing a token", error);
    sqlite3_reset(statement);
    return code == SQLITE_DONE;
}

bool store_revoke_token(store *s, str name, int64_t now_ms, bool *ret_found, err *error)
{
    sqlite3_stmt *statement = store_statement(s, SQL_REVOKE_TOKEN);
    bind_text(statement, 1, name);
    sqlite3_bind_int64(statement, 2, now_ms);
    if (!store_run(s, statement, "revoking a token", error))
        return false;
    *ret_found = sqlite3_changes(s->db) > 0;
    return true;
}

typedef struct token_walk {
    token_visitor visit;
    void *context;
} token_walk;

static bool visit_token(sqlite3_stmt *statement, void *context)
{
    token_walk *walk = context;
    stored_token t = {.name = column_text(statement, 0),
                      .role = column_text(statement, 1),
                      .selector = column_text(statement, 2),
                      .created_ms = sqlite3_column_int64(statement, 4),
                      .revoked_ms = sqlite3_column_int64(statement, 5)};
    if (sqlite3_column_bytes(statement, 3) == TOKEN_HASH_BYTES)
        memcpy(t.hash, sqlite3_column_blob(statement, 3), TOKEN_HASH_BYTES);
    else
        t.revoked_ms = t.created_ms; /* a hash nobody can have */
    return walk->visit(walk->context, &t);
}

bool store_tokens(store *s, token_visitor visit, void *context, err *error)
{
    return each_row(s, store_statement(s, SQL_TOKENS), visit_token, &(token_walk){visit, context},
                    error);
}
