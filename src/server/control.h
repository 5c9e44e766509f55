/* SPDX-License-Identifier: Apache-2.0 */
/* control.h - the embedded control plane: one store, one engine, one order of things.
 *
 * Everything that happens (a document, an act, a job's end, a time) becomes a fact; a turn feeds
 * the facts to the engine and steps it until it starts nothing more; facts and decisions are
 * committed together, alone or with other turns; only then are decisions acted on. After a crash
 * control_open feeds the engine what the store knows (the last snapshot, and the journal behind it)
 * and arrives at the same state: every decision is made again and compared with the recorded one.
 * If a commit fails the engine is thrown away and rebuilt in the same manner, so what was not
 * written never happened. Decides nothing: rules are the engine's.
 *
 * One thread. Does no I/O but through the store; time comes in as a value, so tests drive it by
 * hand, and a time that goes back counts as the latest one seen. Jobs are run by whoever listens
 * (jobs.h). */
#ifndef DROVER_SERVER_CONTROL_H
#define DROVER_SERVER_CONTROL_H

#include "engine/engine.h"
#include "engine/verification.h"
#include "model/problems.h"
#include "store/store.h"

typedef struct control control;
struct sim;

/* A job that is to be run, and all that running it needs. Valid during the call. */
typedef struct job_order {
    const stored_job *job;
    /* It was decided before this program started: it may run already, or have run. */
    bool known;
    const object *deployment; /* these three are NULL if the document is gone since */
    const object *version;
    const object *resource;
    /* What is measured when it has succeeded, by the rules as they are now. */
    const verification_metric *const *metrics;
    size_t metric_count;
} job_order;

/* The state of a job that has succeeded, says its worker or a person, and is measured here. */
#define JOB_VERIFYING STR("verifying")

/* What the rest of the server hears, after it is durable. Any may be NULL. None of them may call
 * control_* functions that change something. */
typedef struct control_listener {
    void *context;
    /* Once for every job with known false; after a restart once more for those that have not ended,
     * with known true; and again when the Deployment of a job that is pending was edited. */
    void (*job)(void *context, const job_order *order);
    /* A job that runs here is to be ended (control_cancel); after a restart once more. */
    void (*cancel)(void *context, int64_t number);
    /* An entry of the journal is on disk; in order, without gaps. */
    void (*journal)(void *context, const journal_entry *entry);
} control_listener;

typedef struct control_settings {
    int64_t snapshot_entries; /* a snapshot every so many entries; 0: CONTROL_SNAPSHOT_ENTRIES */
    bool share_commits;       /* calls share a commit: see control_settle */
    /* Snapshots are made beside the work by a child process and written in pieces by control_tick;
     * else at once, which takes a second with a hundred thousand release targets. */
    bool snapshots_beside;
    int64_t snapshot_part_bytes; /* of such a piece; 0: 256 KiB */
} control_settings;
#define CONTROL_SNAPSHOT_ENTRIES 50000

/* Rebuilds the engine from the store, then announces the jobs that have not ended. The store stays
 * the caller's. settings and listener may be NULL. */
control *control_open(store *s, const control_settings *settings, const control_listener *listener,
                      int64_t now_ms, err *error);
/* Writes a snapshot, so that the next start is short. */
control *control_close(control *c);

/* ---- commits that are shared ---- */

/* Waiting for the disk costs more than all else a call does, so calls may share it. With
 * share_commits, what a call has written is seen by the calls that follow, but is durable, and told
 * to the listener, only when this returns true. When it returns false nothing since the last time
 * has happened, whatever the calls have answered. So nobody outside may hear an answer before this:
 * not of a call that only reads, either. */
bool control_settle(control *c, err *error);
/* Whether there is something to settle. */
bool control_unsettled(const control *c);

/* An entry of the journal about something that is no fact for the engine. */
bool control_note(control *c, str who, str json, int64_t now_ms, err *error);

/* What is done to a token. */
typedef struct token_change {
    str who;
    str json;                 /* the journal's entry about it */
    const stored_token *made; /* NULL: one is revoked */
    str revoked;              /* the name of that one */
} token_change;
/* The token and the entry, both or none. */
bool control_token(control *c, const token_change *change, int64_t now_ms, err *error);

/* ---- documents ---- */

#define APPLY_ACTIONS(X)                                                                           \
    X(CREATED, "created")                                                                          \
    X(UPDATED, "updated") X(UNCHANGED, "unchanged") X(REFUSED, "refused")
typedef enum apply_action {
#define X(action, text) APPLY_##action,
    APPLY_ACTIONS(X)
#undef X
} apply_action;
str apply_action_name(apply_action a);

/* How one document of an apply ended. */
typedef struct apply_result {
    str kind;
    str name;
    apply_action action;
    int64_t version; /* that it has now; 0: it is not there */
} apply_result;

typedef struct apply_request {
    str who;
    str file;         /* for messages */
    str bytes;        /* YAML or JSON, any number of documents of the five kinds */
    bool partial;     /* each by itself; else all or none */
    bool dry_run;     /* check only */
    int64_t expected; /* If-Match of a single document (0: it must not exist); APPLY_ANY: none */
} apply_request;
#define APPLY_ANY INT64_C(-1)

typedef struct apply_answer {
    arena *arena;    /* the caller's: for results */
    problems *found; /* the caller's: what is wrong, and warnings */
    apply_result *results;
    size_t count;
    bool conflict; /* "expected" was another */
} apply_answer;

/* Reads, checks (each in itself and all together with what is stored) and writes documents. What
 * has no creationTimestamp gets one. False when something was refused: found says why, or the error
 * does. */
bool control_apply(control *c, const apply_request *request, int64_t now_ms, apply_answer *answer,
                   err *error);

typedef struct delete_request {
    str who;
    str kind;
    str name;
    int64_t expected; /* APPLY_ANY: whatever it is */
} delete_request;

typedef struct delete_answer {
    bool missing;
    bool conflict;
} delete_answer;

bool control_delete(control *c, const delete_request *request, int64_t now_ms,
                    delete_answer *answer, err *error);

/* The object of that name as the engine has it, or NULL. Valid until something changes. */
const object *control_object(const control *c, object_kind kind, str name);
/* The same with its resourceVersion. NULL also while the engine is to be rebuilt: the store knows.
 */
const object *control_held(const control *c, document_key key, int64_t *ret_version);

/* How many documents there are. */
size_t control_documents(const control *c);
const object *control_document(const control *c, size_t i);

/* ---- acts ---- */

/* A person's act (fact.h). False, with a sentence, when it names something that does not exist. */
bool control_act(control *c, const fact_act *act, int64_t now_ms, err *error);

/* ---- jobs ---- */

/* A job began, or ended. */
typedef struct job_report {
    str who; /* empty: Drover itself */
    int64_t number;
    int64_t fencing; /* of the worker's claim; JOB_FENCING_ANY: Drover itself, or a person */
    bool ended;
    int64_t pid;              /* of its supervisor, when it began */
    outcome outcome;          /* when it ended */
    bool verification_failed; /* it succeeded, its verification did not */
    str reason;
    bool ignored; /* the answer: it has ended already, is not known, or the fencing number is an
                     older one */
} job_report;
#define JOB_FENCING_ANY INT64_MAX

/* All of them in one turn and one commit. */
bool control_jobs(control *c, job_report *reports, size_t count, int64_t now_ms, err *error);

/* How long a claim holds without a heartbeat, unless the worker asks for less. */
#define LIMIT_LEASE_MS INT64_C(60000)
#define LIMIT_LEASE_MS_LEAST INT64_C(1000)

typedef struct claim_request {
    str who;
    str resource;
    int64_t lease_ms; /* how long; 0 and more than the limit: LIMIT_LEASE_MS */
} claim_request;

typedef struct claim_answer {
    arena *arena; /* the caller's: for the job's texts */
    bool found;   /* there was something to do */
    stored_job job;
} claim_answer;

/* Pull jobs: the oldest of a resource that nobody has claimed. The claim has a fencing number that
 * is larger than any before. It holds until job.lease_ms (never past the time limit of the
 * deployment); then the job has ended, as lost or, at the time limit, as failed, whatever the
 * worker does: it must have stopped by then. A job is claimed once. */
bool control_claim(control *c, const claim_request *request, int64_t now_ms, claim_answer *answer,
                   err *error);

typedef struct heartbeat {
    int64_t number;
    int64_t fencing;
    int64_t lease_ms; /* as in claim_request */
    /* the answer */
    bool held;        /* false: stop at once, it is another's or has ended */
    bool cancel;      /* end it and report; the lease is prolonged no more */
    int64_t until_ms; /* the lease, if it is held */
} heartbeat;

bool control_heartbeat(control *c, heartbeat *beat, int64_t now_ms, err *error);

/* Asks for the end of a job. One that waits for a worker or a person ends now, as failed; a worker
 * is told with its next heartbeat; for what runs here the listener's cancel is called. False when
 * there is no such job or it has ended. */
bool control_cancel(control *c, int64_t number, str who, int64_t now_ms, err *error);

/* ---- time ---- */

/* Time has come: steps the engine if it is due, and ends jobs whose lease has run out. */
bool control_tick(control *c, int64_t now_ms, err *error);
/* When to call control_tick next; REASON_NEVER: only when something happens. */
int64_t control_next_ms(const control *c);

/* ---- what is known ---- */

/* The engine, for its views and reasons; another one after every call that failed. Nobody else
 * steps it. NULL after a failure that could not be repaired yet (see control_repair). */
const engine *control_engine(const control *c);
store *control_store(control *c);
/* The clock's time, or the latest one seen if the clock went back. */
int64_t control_now_ms(const control *c, int64_t clock_ms);
/* Puts the fleet as it is now into an empty simulation, by pointer: nothing may change while it
 * runs. The engine must be there. */
bool control_live(const control *c, struct sim *s, arena *a, err *error);
/* The same as text (sim/live.h), for a plan from now on. False without memory. */
bool control_state(const control *c, int64_t now_ms, buf *out);
/* Tries again to rebuild the engine after that was not possible. Every call that changes something
 * does it by itself. */
bool control_repair(control *c, err *error);

#endif
