/* SPDX-License-Identifier: Apache-2.0 */
/* store_internal.h - the inside of the store, for store*.c alone. */
#ifndef DROVER_STORE_STORE_INTERNAL_H
#define DROVER_STORE_STORE_INTERNAL_H

#include <sqlite3.h>

#include "store/store.h"

#define JOB_COLUMNS                                                                                \
    "number, deployment, environment, resource, version, version_group, role, state, reason,"      \
    " attempt, fencing, lease_ms, pid, started_ms, ended_ms"

#define STATEMENTS(X)                                                                              \
    X(PUT_DOCUMENT, "INSERT OR REPLACE INTO documents (kind, name, version, json)"                 \
                    " VALUES (?1, ?2, ?3, ?4)")                                                    \
    X(GET_DOCUMENT, "SELECT kind, name, version, json FROM documents WHERE kind = ?1"              \
                    " AND name = ?2")                                                              \
    X(DELETE_DOCUMENT, "DELETE FROM documents WHERE kind = ?1 AND name = ?2")                      \
    X(LIST_DOCUMENTS, "SELECT kind, name, version, json FROM documents WHERE kind = ?1"            \
                      " AND name > ?2 ORDER BY name")                                              \
    X(ALL_DOCUMENTS, "SELECT kind, name, version, json FROM documents ORDER BY kind, name")        \
    X(APPEND, "INSERT INTO journal (sequence, at_ms, step, kind, who, json)"                       \
              " VALUES (?1, ?2, ?3, ?4, ?5, ?6)")                                                  \
    X(JOURNAL, "SELECT sequence, at_ms, step, kind, who, json FROM journal WHERE sequence > ?1"    \
               " ORDER BY sequence")                                                               \
    X(PUT_PART, "INSERT OR REPLACE INTO snapshot_parts (sequence, part, text)"                     \
                " VALUES (?1, ?2, ?3)")                                                            \
    X(USE_SNAPSHOT, "INSERT OR REPLACE INTO snapshot (one, sequence, parts)"                       \
                    " VALUES (1, ?1, ?2)")                                                         \
    X(DROP_PART, "DELETE FROM snapshot_parts WHERE rowid = (SELECT rowid FROM snapshot_parts"      \
                 " WHERE sequence <> coalesce((SELECT sequence FROM snapshot), -1) LIMIT 1)")      \
    X(GET_SNAPSHOT, "SELECT sequence, parts FROM snapshot")                                        \
    X(GET_PARTS, "SELECT text FROM snapshot_parts WHERE sequence = ?1 AND part < ?2"               \
                 " ORDER BY part")                                                                 \
    X(PUT_JOB, "INSERT OR REPLACE INTO jobs (" JOB_COLUMNS ") VALUES"                              \
               " (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)")              \
    X(GET_JOB, "SELECT " JOB_COLUMNS " FROM jobs WHERE number = ?1")                               \
    X(JOBS, "SELECT " JOB_COLUMNS " FROM jobs WHERE number < ?1 ORDER BY number DESC")             \
    X(OPEN_JOBS, "SELECT " JOB_COLUMNS " FROM jobs WHERE number < ?1 AND ended_ms = 0"             \
                 " ORDER BY number DESC")                                                          \
    X(PUT_TOKEN, "INSERT INTO tokens (name, role, selector, hash, created_ms, revoked_ms)"         \
                 " VALUES (?1, ?2, ?3, ?4, ?5, 0)")                                                \
    X(REVOKE_TOKEN, "UPDATE tokens SET revoked_ms = ?2 WHERE name = ?1 AND revoked_ms = 0")        \
    X(TOKENS, "SELECT name, role, selector, hash, created_ms, revoked_ms FROM tokens"              \
              " ORDER BY name")

typedef enum sql_statement {
#define X(name, sql) SQL_##name,
    STATEMENTS(X)
#undef X
        SQL_COUNT
} sql_statement;

struct store {
    sqlite3 *db;
    sqlite3_stmt *statements[SQL_COUNT];
    int lock; /* a file that is locked as long as the store is open */
    int64_t sequence;
    int64_t version;
    int64_t sequence_before; /* at the beginning of the transaction */
    int64_t version_before;
    bool in_transaction;
    int64_t sequence_marked; /* at the mark */
    int64_t version_marked;
    bool marked;
};

/* Fills the error from SQLite's; always false. */
bool store_failed(store *s, const char *what, err *error);
/* The prepared statement, ready to be bound. */
sqlite3_stmt *store_statement(store *s, sql_statement which);
/* Text is not copied: it must live until the statement was run. */
void bind_text(sqlite3_stmt *statement, int at, str text);
str column_text(sqlite3_stmt *statement, int at);
/* Runs a statement whose rows nobody wants. */
bool store_run(store *s, sqlite3_stmt *statement, const char *what, err *error);

#endif
