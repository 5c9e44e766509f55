/* SPDX-License-Identifier: Apache-2.0 */
/* store.h - what survives: one SQLite file in one folder.
 *
 * Documents, the journal, jobs, tokens and the last snapshot of the engine. Whoever holds the store
 * is the only one: a second process is told so. Everything that one step of the engine causes is
 * written in one transaction that is on disk before anything is done about it, so after a crash the
 * journal says exactly what was decided. Decides nothing itself.
 *
 * Every function that fails says why and changes nothing; a full or read-only disk is such a
 * failure, and the store works again when it is gone. Texts handed to a visitor are valid during
 * the call. */
#ifndef DROVER_STORE_STORE_H
#define DROVER_STORE_STORE_H

#include "base/arena.h"
#include "base/err.h"

typedef struct store store;

/* Opens FOLDER/drover.db, and makes both if need be (mode 0700 and 0600). Refuses a file that is
 * not Drover's, that a newer Drover wrote, or that is damaged. */
store *store_open(str folder, err *error);
store *store_close(store *s);

/* How safely a commit is kept: true (the default) waits for the disk. */
bool store_set_sync(store *s, bool sync, err *error);

/* One transaction at a time. Without one, each write is its own. rollback does nothing without one.
 */
bool store_begin(store *s, err *error);
bool store_commit(store *s, err *error);
void store_rollback(store *s);
/* Whether one is open. A failure may have ended it: then all of it is taken back. */
bool store_is_open(const store *s);

/* Inside a transaction: what is written from the mark on can be kept, or taken back alone. One mark
 * at a time; take_back does nothing without one. */
bool store_mark(store *s, err *error);
bool store_keep(store *s, err *error);
void store_take_back(store *s);

/* ---- documents ---- */

typedef struct stored_document {
    str kind;
    str name;
    int64_t version; /* grows with every write of anything: what If-Match compares */
    str json;
} stored_document;

/* What names a document. */
typedef struct document_key {
    str kind, name;
} document_key;
typedef bool (*document_visitor)(void *context, const stored_document *d);

/* Writes one. expected: the version it must have now (0: it must not exist, -1: whatever it is). A
 * conflict is false with *ret_conflict true. */
bool store_put_document(store *s, stored_document *d, int64_t expected, bool *ret_conflict,
                        err *error);
bool store_delete_document(store *s, document_key key, int64_t expected, bool *ret_conflict,
                           err *error);
/* False with an empty error text if there is none. Texts are in a. */
bool store_get_document(store *s, document_key key, arena *a, stored_document *ret, err *error);
/* In the order of their names, those behind "after" (empty: from the start), until the visitor says
 * false. An empty kind visits all, by kind and name. */
bool store_documents(store *s, document_key after, document_visitor visit, void *context,
                     err *error);

/* ---- journal ---- */

typedef struct journal_entry {
    int64_t sequence; /* from 1, without gaps */
    int64_t at_ms;
    int64_t step; /* entries of one step of the engine have the same */
    str kind;     /* "fact", "decision", "audit" */
    str who;      /* the token's name; empty for Drover itself */
    str json;
} journal_entry;

typedef bool (*journal_visitor)(void *context, const journal_entry *e);

/* Appends; *ret_sequence may be NULL. Nothing is ever changed or taken out. */
bool store_append(store *s, const journal_entry *e, int64_t *ret_sequence, err *error);
/* Those behind "after", in order. */
bool store_journal(store *s, int64_t after, journal_visitor visit, void *context, err *error);
/* The last sequence number; 0 for an empty journal. */
int64_t store_sequence(const store *s);

/* ---- the engine's snapshot ---- */

/* A snapshot is large, so it comes in parts, each a write of its own. */
typedef struct snapshot_part {
    int64_t sequence; /* of the journal: the engine as it was after it */
    int64_t number;   /* from 0 */
    str text;
} snapshot_part;
bool store_put_snapshot_part(store *s, snapshot_part part, err *error);
/* All its parts are there: it takes the place of the one before. */
bool store_use_snapshot(store *s, int64_t sequence, int64_t parts, err *error);
/* Takes out one part that is of no use any more. *ret_more is false if there was none. */
bool store_drop_snapshot_part(store *s, bool *ret_more, err *error);
/* All of it. *ret_sequence is 0 if there is none. The text is in a. */
bool store_get_snapshot(store *s, arena *a, int64_t *ret_sequence, str *ret_text, err *error);

/* ---- jobs ---- */

typedef struct stored_job {
    int64_t number;
    str deployment;
    str environment;
    str resource;
    str version;
    str group;
    str role;
    str state; /* pending, running, succeeded, failed, lost */
    str reason;
    int64_t attempt;
    int64_t fencing;  /* grows with every claim */
    int64_t lease_ms; /* until when the claim holds, or a person may take; 0: no claim */
    int64_t pid;      /* of its supervisor; 0: none */
    int64_t started_ms;
    int64_t ended_ms; /* 0: not yet */
} stored_job;

typedef struct job_range {
    int64_t before; /* only older ones; 0: from the newest on */
    bool open_only;
} job_range;
typedef bool (*job_visitor)(void *context, const stored_job *j);

/* Inserts or replaces by number. */
bool store_put_job(store *s, const stored_job *j, err *error);
bool store_get_job(store *s, int64_t number, arena *a, stored_job *ret, err *error);
/* Newest first, those below "before" (0: from the newest). open_only: not ended. */
bool store_jobs(store *s, job_range range, job_visitor visit, void *context, err *error);

/* ---- tokens: only their SHA-256 is kept ---- */

#define TOKEN_HASH_BYTES 32

typedef struct stored_token {
    str name;
    str role;     /* viewer, operator, admin, worker */
    str selector; /* workers: the resources they may work on */
    unsigned char hash[TOKEN_HASH_BYTES];
    int64_t created_ms;
    int64_t revoked_ms; /* 0: in force */
} stored_token;

typedef bool (*token_visitor)(void *context, const stored_token *t);

bool store_put_token(store *s, const stored_token *t, err *error);
bool store_revoke_token(store *s, str name, int64_t now_ms, bool *ret_found, err *error);
bool store_tokens(store *s, token_visitor visit, void *context, err *error);

/* ---- copies ---- */

typedef struct store_copy store_copy;

/* A consistent copy while everything goes on: what is committed when the last step is done. The
 * file must not exist. */
store_copy *store_copy_begin(store *s, str path, err *error);
/* Copies a bounded piece; not inside a transaction. *ret_done is true after the last one. */
bool store_copy_step(store_copy *k, bool *ret_done, err *error);
/* Lets go of it, done or not. The file is the caller's. Returns NULL. */
store_copy *store_copy_end(store_copy *k);
/* All of it in one go. */
bool store_backup(store *s, str path, err *error);

#endif
