/* SPDX-License-Identifier: Apache-2.0 */
/* control_internal.h - the inside of the control plane, for control*.c alone.
 *
 *     control.c         what others call: opening, time, acts
 *     control_apply.c   documents come and go
 *     control_job.c     jobs begin, are claimed, end
 *     control_turn.c    one turn: facts in, decisions out, written together
 *     control_commit.c   turns that share a commit; after it the listener is told
 *     control_live.c    the fleet as it is now, for plans
 *     control_load.c    snapshot and journal back into an engine
 *     control_snapshot.c  the snapshot, out: at once, or beside the work */
#ifndef DROVER_SERVER_CONTROL_INTERNAL_H
#define DROVER_SERVER_CONTROL_INTERNAL_H

#include <sys/types.h>

#include "base/strmap.h"
#include "base/vec.h"
#include "server/control.h"

/* ---- documents in memory ---- */

/* Documents that were read together live until the last of them is replaced. */
typedef struct batch {
    buf text;
    document_set *set;
    object_list *objects;
    size_t users;
} batch;

/* Takes over text: JSON documents, one a line, all of them good. NULL with an error. */
batch *batch_read(buf *text, err *error);
/* One user less; frees it after the last. Accepts NULL. */
void batch_leave(batch *b);

typedef struct held_document {
    str key; /* "Kind/name", behind the struct */
    object object;
    int64_t version;
    batch *batch;
    str release;   /* a Version's "deployment/tag"; its bytes are the map's key */
    bool replaced; /* by a document of the present apply */
    char text[];
} held_document;

/* ---- jobs in memory: those that have not ended ---- */

typedef struct live_job {
    stored_job job; /* texts are behind the struct; reason is a literal */
    /* What it will be when the present turn is committed. */
    stored_job draft;
    bool drafted;
    bool announce; /* it is being verified since the present turn */
    char text[];
} live_job;

/* How often a release target was tried: the attempt that runs, or the last one that failed. */
typedef struct attempt_row {
    int64_t attempt;
    size_t len;
    char key[];
} attempt_row;

/* What a turn has written, of which nobody may hear before it is committed. */
typedef struct turn_news {
    arena *arena; /* for all texts */
    journal_entry *entries;
    size_t entry_count;
    str *edited; /* deployments */
    size_t edited_count;
    int64_t first_job, last_job; /* that were started; 0: none */
    int64_t cancel;              /* a job that runs here and is to be ended; 0: none */
} turn_news;

/* X(stage, text): where a snapshot that is made beside the work stands. */
#define SNAPSHOT_STAGES(X)                                                                         \
    X(RESTS, "there is none on its way")                                                           \
    X(IS_MADE, "a child writes the text")                                                          \
    X(IS_WRITTEN, "its parts go into the store")                                                   \
    X(IS_CLEANED, "the parts of the one before go")
typedef enum snapshot_stage {
#define X(stage, text) SNAPSHOT_##stage,
    SNAPSHOT_STAGES(X)
#undef X
} snapshot_stage;

typedef struct snapshot_work {
    snapshot_stage stage;
    int64_t sequence;
    pid_t child;
    int file;      /* that the child writes; 0: none */
    str text;      /* of the file, mapped */
    int64_t parts; /* that are in the store */
    int64_t next_ms;
} snapshot_work;

struct control {
    store *store;
    control_settings settings;
    control_listener listener;
    engine *engine;            /* NULL: to be rebuilt */
    strmap documents;          /* key -> held_document * */
    strmap versions;           /* release -> held_document * */
    VEC(held_document *) few;  /* documents that are no Resource and no Version */
    problems *lint;            /* what lint says of all documents; NULL: not known */
    VEC(live_job *) jobs;      /* by number */
    VEC(live_job *) drafts;    /* jobs that the present turn changes */
    strmap attempts;           /* "deployment/environment/resource" -> attempt_row * */
    int64_t now_ms;            /* latest time seen */
    int64_t engine_ms;         /* time of the engine's last turn */
    int64_t step;              /* number of the last turn */
    bool owes_turn;            /* the engine found more to decide than who wrote the store */
    int64_t snapshot_sequence; /* of the last snapshot, or of the last attempt */
    snapshot_work snapshot;
    int64_t rested_ms;   /* an engine that is due without end is asked again only after this */
    VEC(turn_news) news; /* of the turns that are not committed yet */
    err lost;            /* why the turns of this commit are lost; empty: they are not */
};

/* ---- one turn ---- */

/* A document that the turn writes or takes out. */
typedef struct turn_document {
    const object *object; /* of batch; for one that goes: the one that is there */
    str json;             /* empty: it goes */
    int64_t expected;
    int64_t version; /* the answer */
} turn_document;

/* An entry that is neither fact nor decision. */
typedef struct turn_note {
    str who;
    str json;
} turn_note;

typedef struct turn {
    str who;
    arena *arena;
    batch *batch; /* of the documents; may be NULL. The turn takes it over */
    VEC(turn_document) documents;
    VEC(fact) facts;   /* besides documents */
    VEC(str) fact_who; /* one a fact; empty list: who */
    VEC(turn_note) notes;
    const token_change *token; /* may be NULL */
    bool time;                 /* the engine is stepped even without facts */
    bool conflict;             /* the answer */
    int64_t cancel;            /* a job that the listener is to end after the commit; 0: none */
    /* inside */
    VEC(journal_entry) entries;
    VEC(const object *) deployments; /* of the documents */
    VEC(live_job *) started;
    bool stepped;
} turn;

bool turn_begin(turn *t, str who, err *error);
/* Writes everything or nothing; drafts of jobs are part of it. It is committed and told to the
 * listener now or, when commits are shared, by control_settle. */
bool turn_run(control *c, turn *t, int64_t now_ms, err *error);
/* The transaction that turns share. Whoever writes ends with commit_end, good or not. */
bool commit_begin(control *c, err *error);
bool commit_end(control *c, bool good, err *error);
void turn_done(turn *t);

/* Feeds facts and steps until nothing starts. Each decision is handed on before the next step. */
typedef bool (*decision_visitor)(void *context, const decision *d, err *error);
typedef struct decision_sink {
    decision_visitor visit;
    void *context;
} decision_sink;
bool engine_turn(control *c, const fact *facts, size_t count, decision_sink sink, err *error);

/* Counts attempts: called for every decision of every turn, also when it is replayed. *ret_attempt
 * is that of a job. */
bool attempts_follow(control *c, const decision *d, int64_t *ret_attempt, err *error);
bool attempts_put(control *c, str key, int64_t attempt);
void attempts_done(control *c);

/* ---- documents ---- */

held_document *document_find(const control *c, str kind, str name);
void documents_done(control *c);
/* The documents are others now: what lint says is not known. */
void lint_forget(control *c);
/* The Version of a deployment with that tag, or NULL. */
const object *version_tagged(const control *c, str deployment, str tag);
/* The document is there, as this object of this batch; one that was there before leaves. */
bool document_hold(control *c, const object *o, batch *b, int64_t version);
void document_drop(control *c, str kind, str name);

/* ---- jobs ---- */

live_job *job_find(const control *c, int64_t number);
live_job *job_make(const stored_job *j);
bool job_hold(control *c, live_job *j);
void job_drop(control *c, int64_t number);
/* What the turn makes of it; NULL without memory. */
stored_job *job_draft(control *c, live_job *j);
void drafts_forget(control *c);
void job_announce(const control *c, const live_job *j, bool known);
/* Those that run here and whose end was asked for: whoever was told may be gone. */
void jobs_cancel_again(const control *c);
/* How long it may take. deployment may be NULL. */
int64_t job_limit_ms(const object *deployment);
/* When the next claim or time limit runs out; REASON_NEVER: there is none. */
int64_t job_expiry_next(const control *c);
/* The ends of those that have run out, as part of the turn. */
bool jobs_expire(control *c, turn *t, err *error);

/* ---- the store ---- */

/* Everything from the store again; what was in memory is freed first. */
bool control_load(control *c, err *error);
void control_unload(control *c);
/* Writes a snapshot now. */
bool control_snapshot(control *c, err *error);
/* Begins one beside the work, after a commit; each step does a bounded piece of it. */
void snapshot_start(control *c);
void snapshot_step(control *c);
int64_t snapshot_next_ms(const control *c);
/* Gives up the one that is on its way; the one before stays. */
void snapshot_stop(control *c);
/* The engine is there, or is rebuilt. */
bool control_ready(control *c, int64_t now_ms, err *error);

#endif
