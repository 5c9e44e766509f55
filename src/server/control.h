/* SPDX-License-Identifier: Apache-2.0 */
/* control.h - the embedded control plane: one store, one engine, one order of things.
 *
 * Everything that happens (a document, an act, a job's end, a time) becomes a fact; a step makes decisions
 * of it; facts and decisions are committed together; only then are decisions acted on. After a crash
 * control_open feeds the engine what the store knows and arrives at the same state. Decides nothing: rules
 * are the engine's.
 *
 * One thread. Does no I/O but through the store; time comes in as a value, so tests drive it by hand. Jobs
 * are run by whoever listens (jobs.h); a job that was decided and not yet known to run is announced again
 * after a restart. */
#ifndef DROVER_SERVER_CONTROL_H
#define DROVER_SERVER_CONTROL_H

#include "engine/engine.h"
#include "model/problems.h"
#include "store/store.h"

typedef struct control control;

/* What the rest of the server hears, after it is durable. Any may be NULL. */
typedef struct control_listener {
    void *context;
    /* A job is to be run (again after a restart: "known" tells that it was announced before). */
    void (*job)(void *context, const stored_job *job, bool known);
    /* An entry of the journal is on disk; in order, without gaps. */
    void (*journal)(void *context, const journal_entry *entry);
} control_listener;

/* Rebuilds the engine from the store. The store stays the caller's. */
control *control_open(store *s, int64_t now_ms, const control_listener *listener, err *error);
/* Writes a snapshot, so that the next start is short. */
control *control_close(control *c);

/* ---- what happens ---- */

/* How one document of an apply ended. */
typedef struct apply_result {
    str kind;
    str name;
    const char *action; /* "created", "updated", "unchanged", "refused" */
    int64_t version;
} apply_result;

typedef struct apply_options {
    str who;
    bool partial;        /* each by itself; else all or none */
    bool dry_run;        /* check only */
    int64_t expected;    /* If-Match of a single document; -1: none */
    bool *ret_conflict;  /* set when "expected" was another; may be NULL */
} apply_options;

/* Reads, checks (each in itself and all together with what is stored) and writes documents of the five
 * kinds. Problems go to found. Results are in a, one a document. False when something was refused. */
bool control_apply(control *c, str file, str bytes, const apply_options *options, int64_t now_ms, arena *a,
                   apply_result **ret, size_t *ret_count, problems *found, err *error);
bool control_delete(control *c, str kind, str name, str who, int64_t expected, int64_t now_ms,
                    bool *ret_conflict, err *error);
/* A person's act (fact.h). False, with a sentence, when it names something that does not exist. */
bool control_act(control *c, const fact_act *act, int64_t now_ms, err *error);

/* A job began, or ended. Both are ignored if the job has ended already, or when fencing is older than the
 * job's. */
bool control_job_started(control *c, int64_t number, int64_t fencing, int64_t pid, int64_t now_ms, err *error);
bool control_job_ended(control *c, int64_t number, int64_t fencing, outcome outcome, str reason,
                       int64_t now_ms, err *error);

/* Pull jobs: the oldest open one of a resource. A claim holds until lease_ms and has a fencing number that
 * is larger than any before; heartbeat prolongs it. *ret_found is false when there is nothing to do. */
bool control_claim(control *c, str resource, int64_t lease_ms, int64_t now_ms, arena *a, stored_job *ret,
                   bool *ret_found, err *error);
bool control_heartbeat(control *c, int64_t number, int64_t fencing, int64_t lease_ms, int64_t now_ms,
                       bool *ret_held, err *error);

/* Time has come: steps the engine, and declares jobs lost whose lease or time limit has run out. */
bool control_tick(control *c, int64_t now_ms, err *error);
/* When to call control_tick next; REASON_NEVER: only when something happens. */
int64_t control_next_ms(const control *c);

/* ---- what is known ---- */

/* The engine, for its views and reasons. Nobody else steps it. */
const engine *control_engine(const control *c);
store *control_store(control *c);

#endif
