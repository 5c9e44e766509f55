/* SPDX-License-Identifier: Apache-2.0 */
/* released_stores.h - stores as released versions left them. */
#ifndef DROVER_TESTS_SUPPORT_RELEASED_STORES_H
#define DROVER_TESTS_SUPPORT_RELEASED_STORES_H

/* A new schema adds one here, and changes none. */
static const struct released {
    const char *schema;
    const char *sql;
} released[] = {
    {"1",
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
     " hash BLOB NOT NULL UNIQUE, created_ms INTEGER NOT NULL, revoked_ms INTEGER NOT NULL);"
     "INSERT INTO documents VALUES ('Resource', 'a', 3, '{}');"
     "INSERT INTO journal VALUES (1, 10, 1, 'fact', 'me', '{\"x\":1}');"
     "INSERT INTO journal VALUES (2, 11, 1, 'decision', '', '{\"y\":1}');"
     "INSERT INTO snapshot VALUES (1, 2, 'the text');"
     "INSERT INTO jobs VALUES (7, 'd', 'e', 'r', '1', '', '', 'running', '', 1, 0, 0, 0, 5, 0);"
     "INSERT INTO tokens VALUES ('ci', 'viewer', '', zeroblob(32), 1, 0);"
     "PRAGMA application_id = 0x64726F76; PRAGMA user_version = 1;"},
};

#endif
