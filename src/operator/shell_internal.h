/* SPDX-License-Identifier: Apache-2.0 */
/* shell_internal.h - the inside of the node shell, for shell_*.c alone. */
#ifndef DROVER_OPERATOR_SHELL_INTERNAL_H
#define DROVER_OPERATOR_SHELL_INTERNAL_H

#include "base/strmap.h"
#include "base/vec.h"
#include "engine/pod_rules.h"
#include "engine/skyhook_status.h"
#include "operator/failed_jobs.h"
#include "operator/node_shell.h"
#include "operator/shell_read.h"

#define SHELL_STATUS_EVERY_MS 1000
/* How long the reason of a failed Job is waited for: its pod is told by another watch. */
#define SHELL_POD_REASON_MS 2000
/* How long a pod that belongs to no Job that is known may be on its way out before it is read. */
#define SHELL_POD_ASK_MS 500
/* A write that was refused is tried again after this time, in case somebody repaired the cause. */
#define SHELL_REFUSED_MS 30000
/* How long the version that a conflict was with is waited for before the object is read: a watch
 * tells it within a moment, if there is one. */
#define SHELL_UNSEEN_MS 5000
/* How long the taint that follows a cordon is waited for: a busy controller takes a second. */
#define SHELL_SETTLE_MS 5000
/* See node_shell_rest_ms: from how many nodes on, and for how long. A stage ends with two writes,
 * one after the other, so it is held up twice. */
#define SHELL_REST_FLIGHTS 4
#define SHELL_REST_MS 25
/* Jobs are written out, some KiB each, when they can be sent soon. Twice as many as are sent at
 * once (WRITE_RUNNING_MAX), so that the next ones are there when an answer comes. */
#define SHELL_CREATING_MAX 64
#define SHELL_MIRROR_NODES 500 /* up to so many nodes the Skyhook's status mirrors */
/* A node that drains takes a watch: writes must have room beside them on the connection. One that
 * has nothing to send gives its turn to another after a while; its pods are listed anew when it is
 * its turn again, so not sooner. */
#define SHELL_DRAINS_MAX 40
#define SHELL_DRAIN_TURN_MS 10000
/* After so long people are told of a pod that blocks a drain without a budget: by then nearly every
 * pod has ended that was told to. */
#define SHELL_DRAIN_LONG_MS 300000
#define SHELL_TEXT_BYTES (4u << 20)

#define NODE_AUTO_TAINTED KEY_PREFIX "autoTaint_"
#define NODE_NODE_STATE KEY_PREFIX "nodeState_"
#define NODE_STATUS KEY_PREFIX "status_"
#define NODE_HOLDS_CORDON KEY_PREFIX "cordon_"
#define NODE_VERSION KEY_PREFIX "version_"
#define NODE_RECORD KEY_PREFIX "drover_"
#define NODE_BEFORE KEY_PREFIX "cordonedBefore"
#define NODE_SEEN_ONCE KEY_PREFIX "seen"
#define CHANGE_FINALIZER KEY_PREFIX "skyhook"

typedef struct shell_node shell_node;
typedef struct shell_change shell_change;
typedef struct shell_place shell_place;
typedef struct shell_job shell_job;
typedef struct shell_pod shell_pod;
typedef struct shell_drain shell_drain;
typedef struct shell_older shell_older; /* see shell_older.c */

/* What a node's condition says: bits of conditions_shown. */
enum { SHOWN_NOT_READY = 1, SHOWN_ERRORING = 2, SHOWN_ANY = 4 };

enum { RELEASE_NONE, RELEASE_WAITS, RELEASE_SENT };

/* Hashes of what was sent last, the latest first: by these one's own writes are known when they are
 * seen. The one before counts, too, since it may have had no answer and take effect late. */
typedef struct shell_sent {
    uint64_t hashes[2];
} shell_sent;
static inline void shell_sent_note(shell_sent *sent, str text)
{
    uint64_t hash = str_hash(text);
    if (hash == sent->hashes[0])
        return;
    sent->hashes[1] = sent->hashes[0];
    sent->hashes[0] = hash;
}
static inline bool shell_sent_has(const shell_sent *sent, str text)
{
    uint64_t hash = str_hash(text);
    return hash == sent->hashes[0] || hash == sent->hashes[1];
}

typedef VEC(char *) shell_names; /* its own */

/* A write that met a conflict; see shell_conflicts.c. */
typedef struct shell_conflict {
    uint64_t with;  /* a later revision than this, which is to be seen first; 0: there was none */
    int64_t ask_ms; /* when the object is read, if nobody tells */
    bool asking;    /* which it is */
} shell_conflict;

/* By these texts are compared that are not kept; 0: there is none. */
static inline uint64_t text_mark(str text)
{
    return text.ptr ? str_hash(text) | 1u : 0;
}

/* One Skyhook on one node: what stands on the node, and what is to be done about it. */
struct shell_place {
    shell_node *node;
    shell_place *next;    /* of the same node */
    char *skyhook;        /* its name */
    size_t index;         /* in the change's places */
    shell_change *change; /* NULL: there is no such Skyhook */
    /* what the node is known to have, by text_mark; the engine has the texts, see place_text */
    uint64_t state;  /* nodeState_SK */
    uint64_t record; /* drover_SK */
    /* what packages are told of the node in this claim, as JSON; NULL: it was not read yet */
    char *annotations, *labels;
    shell_sent sent_of; /* drover_SK, as it was sent */
    uint8_t status;     /* skyhook_state of the label, and of the annotation */
    uint8_t conditions;
    bool cordon;
    bool versioned; /* version_SK is there */
    /* what is to be */
    uint8_t state_now;     /* skyhook_state, as the engine has it */
    int8_t want_cordon;    /* spec.unschedulable: 1, 0, or -1: as it is */
    int8_t sent_cordon;    /* the same of the write that is under way */
    bool dirty;            /* the engine may have another state than the node */
    bool sent;             /* the write that is under way is about it */
    uint8_t releasing;     /* its claim has ended, and the node does not say so yet; see above */
    bool stuck;            /* and that cannot be written: nobody waits for it */
    bool hindered;         /* the engine was told that something is in the way of its Jobs */
    int64_t held_until_ms; /* a write for its Jobs was not taken */
    bool of_act;           /* what a person asked for is not durable here yet */
    bool in_flight;
    bool draining; /* its node is to be drained */
    bool selected;
    bool in_order;
    bool mirror_dirty; /* the Skyhook's status does not show it yet */
    bool map_written;  /* in this claim, the ConfigMap with that and the packages */
    bool map_sending;  /* the node is read, or that written */
    bool looked_after; /* in the list of places whose Jobs are */
    uint8_t troubles;  /* bits TROUBLE_*, which status_troubles.c tells of */
    bool map_refused;  /* so its stage fails */
    bool edited;       /* somebody else changed its nodeState_SK */
    uint8_t cleanups;  /* patches that were to take it away */
    bool cleanup;      /* the Skyhook is deleted: what it wrote here goes */
    uint32_t claim;    /* the epoch of the status that holds its claim */
    int64_t claim_ms;
};

struct shell_node {
    char *name, *uid;
    uint64_t digest; /* of all that is looked at */
    char version[SHELL_VERSION_BYTES];
    uint64_t revision; /* the same as a number */
    shell_conflict conflict;
    char *taints; /* JSON as it is; NULL: none */
    char *boot;   /* its bootID */
    shell_place *places;
    int64_t held_until_ms; /* a write was refused */
    uint64_t drain_told;   /* digest of what blocks its drain, as the engine knows it */
    int64_t drain_long_ms; /* when people are told of it; REASON_NEVER: they were */
    /* Its cordon was changed, and Kubernetes changes a taint after it: what is written before that
     * is seen would only be a conflict. */
    int64_t settles_until_ms;
    bool unschedulable, before, ignored;
    bool shows_cordon; /* by the taint of Kubernetes' own */
    bool want_taint, want_untaint, sent_taint, sent_untaint;
    bool auto_tainted; /* Drover put the runtime-required taint there */
    bool is_new;  /* what stands on it is seen for the first time */
    bool queued;  /* in the list of nodes to be written */
    bool sending; /* a write is under way */
};

/* A write that is under way, by names: what it is about may be gone when the answer comes. */
typedef struct shell_ticket {
    node_shell *shell;
    struct shell_ticket *next, **link;
    void (*done)(node_shell *s, const struct shell_ticket *t, const write_outcome *outcome,
                 yyjson_val *object);
    char *node, *skyhook, *job; /* NULL: none */
    char *uid;                  /* of the object it is about, if another one would not do */
    uint64_t revision;          /* of the object it was made for */
    uint32_t epoch;
    int64_t number;
    bool gone; /* what it reads was deleted meanwhile: the answer is of the past */
} shell_ticket;

/* One Skyhook. */
struct shell_change {
    char *name;
    char *uid;
    char version[SHELL_VERSION_BYTES];
    uint64_t revision;
    shell_conflict conflict;
    uint64_t digest; /* of all but the status */
    shell_document *document;
    uint64_t record;    /* status.drover as it is known to be, by text_mark */
    char *kept;         /* the same with its names, until it is restored */
    shell_older *older; /* what an older operator left instead, until then; NULL: nothing */
    shell_sent sent_of;
    VEC(shell_place *) places;
    VEC(shell_place *) waiting;    /* for their claim to be durable */
    uint32_t epoch, durable_epoch; /* of the status that was sent last, and that took effect */
    int64_t next_status_ms, held_until_ms;
    int64_t maps_generation; /* of the packages' ConfigMaps that are written */
    uint32_t maps_sending;
    int64_t maps_held_until_ms;
    int64_t maps_look_ms; /* when it is asked whether all pods have begun; 0: it need not */
    bool maps_failed;
    bool maps_stale; /* there may be maps that nobody needs */
    bool maps_looking;
    uint32_t releasing; /* places whose end is about to be durable; those that are stuck left out */
    bool known;         /* the engine knows it */
    bool dirty;         /* the status may differ */
    bool urgent;        /* a claim waits for it */
    bool again;         /* the last write of it had no effect */
    bool sending;
    bool wants_finalizer;            /* nothing is written for it before it has it */
    bool finalize;                   /* its finalizer may go */
    bool finalizing;                 /* a write of the object itself is under way */
    int64_t finalizer_held_until_ms; /* it was not taken */
    /* as it is known to be */
    uint8_t status;
    int64_t observed_generation;
    uint8_t next_status;
    uint64_t shown; /* digest of the last status sent */
    buf conditions; /* JSON */
    buf next_conditions;
    char *applying;   /* what ran last, for a condition */
    shell_names lost; /* entries "PKG|VER" that left a node's state, and the status may show them */
    size_t lost_sent; /* as below */
    shell_names left; /* nodes that left, and the status shows them still */
    size_t left_sent; /* the first so many of them are in the write that is under way */
    shell_names groups;            /* compartments that the status shows */
    shell_names installed;         /* packages that it says are on nodes */
    bool mirrored;                 /* it shows nodes one by one */
    uint8_t blocked, next_blocked; /* deletion_blocked, as told and as sent */
    char *acts;                    /* what people ask: the annotation as it is; NULL: nothing */
    size_t acts_taken;
    uint32_t acts_open;  /* places where what follows is not durable yet */
    uint32_t acts_epoch; /* of the status that says so */
    int64_t acts_held_until_ms;
    bool acts_new; /* some of it was not taken yet */
    bool acts_sending;
};

/* What a Job or a pod runs, in memory of its own. All of a node's are found by its name. */
typedef struct shell_attempt {
    char *texts;
    job_key key;
    const shell_job *job; /* one of the two, whose it is */
    const shell_pod *pod;
    struct shell_attempt *next, **link;
} shell_attempt;

/* Those of one node, be it known or not. */
typedef struct shell_host {
    shell_attempt *first;
    char name[];
} shell_host;

/* A Job that has not ended: of the present attempt of something, or of one that the engine waits
 * for no longer. */
struct shell_job {
    char *name;
    shell_attempt of;
    char pod_reason[64]; /* what its pod said of its failure */
    uint64_t uid;        /* of the object that was seen last, by its hash */
    uint64_t after;      /* the node's revision when its creation began: it must be newer */
    int64_t tell_ms;     /* it failed, and its pod's word is waited for until then; else never */
    bool created;        /* it was seen; else its creation is under way */
    bool gone;           /* and one of that name was deleted meanwhile: perhaps this one */
    bool telling;        /* in the list of those that are waited for */
    bool nothing_ran;    /* it fails before any step of its package began */
};

/* A pod of a package that may still run. */
struct shell_pod {
    char *name, *uid;
    char *job;          /* empty: a raw pod of an older operator */
    bool stage_ran;     /* the container behind the first one has begun, for all that is known */
    bool unread;        /* only its row was seen: where it runs is known, but not what, nor whose */
    bool reading;       /* which is being asked */
    int64_t version;    /* of the row that was seen last */
    int64_t ask_ms;     /* when it is to be asked; else never */
    int64_t unbegun_ms; /* since when it is seen without a container that has begun; 0: one has */
    uint64_t job_uid;   /* of that Job, by its hash; 0: nobody says */
    shell_attempt of;
    char waiting[64]; /* why a container does not begin; empty: it is not known to be stuck */
    int64_t waits_since_ms;
    int64_t held_until_ms; /* to end it was not allowed */
    bool stuck;            /* for too long: it is to be ended */
    bool ending;           /* and that is under way */
    bool troubled;         /* in the list of those that are looked at each turn */
    /* of a raw pod */
    bool raw_over;      /* its stage has ended, though the pod may run for ever */
    bool raw_succeeded; /* well */
};

struct node_shell {
    shell_settings settings;
    api api;
    engine *engine;
    int64_t now_ms;
    bool synced[SHELL_KIND_COUNT];
    bool restored;
    bool begun;  /* it has decided once */
    bool due;    /* something came in since the last turn */
    bool wished; /* a document of a person among it */
    bool no_memory;
    bool asks_pods;    /* of this turn: whose pods run on a node is waited for */
    bool taints_first; /* of this turn: new nodes are tainted before anybody is untainted */
    bool stale;        /* somebody else writes, too: what is known here is of no more use */
    strmap nodes;      /* name -> shell_node * */
    strmap changes;    /* name -> shell_change * */
    strmap policies;   /* name -> shell_document * */
    strmap jobs;
    strmap pods;
    strmap hosts;              /* node -> shell_host * */
    VEC(shell_job *) telling;  /* that failed, and whose pod's word is waited for */
    VEC(shell_pod *) troubled; /* that wait, or are to be ended, or were when they were put here */
    failed_jobs failed;
    strmap drains;           /* node -> shell_drain * */
    size_t drains_wait;      /* places that have yet to get their turn to drain, as of now */
    VEC(shell_node *) queue; /* nodes to be written */
    size_t flights;          /* places that are in flight */
    VEC(shell_place *) runs; /* places whose Jobs are to be looked after */
    size_t creating;         /* Jobs that are sent and not answered */
    decision_list decisions;
    shell_counts counts;
    shell_ticket *tickets;
    arena *scratch;
};

/* ---- node_shell.c ---- */
void shell_memory(node_shell *s);
void shell_stale(node_shell *s, const char *kind, const char *name);
char *shell_copy(node_shell *s, str text); /* NULL without memory */
static inline str shell_text(const char *text)
{
    return text ? str_of(text) : STR_EMPTY;
}
/* Of two times, either of which may be REASON_NEVER. */
static inline int64_t shell_sooner(int64_t a, int64_t b)
{
    return a == REASON_NEVER || (b != REASON_NEVER && b < a) ? b : a;
}
shell_node *shell_find_node(const node_shell *s, str name);
shell_change *shell_find_change(const node_shell *s, str name);
/* An annotation of the node that ends in the Skyhook's name; until the engine is told of the node
 * again. Without a pointer: it is not there. */
str place_text(const node_shell *s, const shell_place *p, const char *prefix);
/* The place of a Skyhook on a node, made if need be. NULL without memory. */
shell_place *shell_place_of(node_shell *s, shell_node *n, str skyhook);
shell_place *shell_find_place(const node_shell *s, str skyhook, str node);
void shell_queue(node_shell *s, shell_node *n);
/* What is in the way of a place, or (NULL) that nothing is; "passing": it is nothing of the node's.
 */
void shell_tell_kept(node_shell *s, shell_place *p, const char *why, bool passing);
/* Sets both, and counts. */
void shell_release(shell_place *p, uint8_t releasing, bool stuck);
void shell_fly(node_shell *s, shell_place *p, bool in_flight); /* the same */
/* What a person asked for is durable there, or there is no such place any more. */
void shell_act_done(shell_place *p);
void shell_look_after(node_shell *s, shell_place *p);
/* Brings what is shown of a place up to date with the engine. */
void shell_look(node_shell *s, shell_place *p);
/* The same for a Skyhook on a node, which gets a place if the engine knows of it. */
void shell_look_at(node_shell *s, shell_node *n, shell_change *c);
bool shell_take(node_shell *s, const fact *f);
/* Sends; the ticket's texts are copied and its "done" called with the answer. False: it was not
 * sent, and is not answered. */
bool shell_send(node_shell *s, const kube_write *w, shell_ticket ticket);
/* The server does not take this object, and would not take it from anybody else. Rights and
 * credentials that are missing, and a namespace that goes or is not there, say nothing of the
 * object. */
bool shell_is_refused(const write_outcome *how);
void shell_place_free(node_shell *s, shell_place *p);
/* What packages are told of the node is read anew for the next claim. */
void shell_place_unread(shell_place *p);
void shell_node_free(node_shell *s, shell_node *n);

/* ---- shell_conflicts.c ---- */
/* The write was made for that revision. */
void conflict_met(const node_shell *s, shell_conflict *k, uint64_t revision);
/* Whether what it was with is not known yet, when that revision is. */
bool conflict_stands(const shell_conflict *k, uint64_t revision);
/* Whether the object is to be read; that it was, or could not be; and the answer to that. What
 * there is may be what was known: then the write is made again. */
bool conflict_asks(const node_shell *s, const shell_conflict *k);
void conflict_asked(const node_shell *s, shell_conflict *k, bool sent);
void conflict_answered(const node_shell *s, shell_conflict *k, bool done);
int64_t conflict_next_ms(const node_shell *s, const shell_conflict *k, uint64_t revision);

/* ---- shell_nodes.c: nodes as they are seen ---- */
/* The key of drover_SK that has the hash of the nodeState_SK written with it. By it a person's edit
 * is told from a write of ours, whoever made it. */
#define RECORD_STATE_HASH "nodeState"
/* And the one that says who wrote it: another operator, which comes to the same, must not be taken
 * for this one. Whoever is behind would make Jobs that the other has made and deleted. */
#define RECORD_WRITER "by"
void nodes_begin(node_shell *s); /* what people did while nobody looked */
void nodes_seen(node_shell *s, yyjson_val *object);
void nodes_gone(node_shell *s, str name);

/* ---- shell_changes.c: Skyhooks and policies ---- */
void changes_seen(node_shell *s, yyjson_val *object);
void changes_gone(node_shell *s, str name);
/* Looks again at a Skyhook that wants a finalizer: one that came before it was known what they
 * remember, or whose finalizer could not be put. */
void changes_finalizer(node_shell *s, shell_change *c);
/* Whether its last write met something that is not known yet; if nobody tells, it is read. */
bool change_waits(node_shell *s, shell_change *c);
void policies_seen(node_shell *s, yyjson_val *object);
void policies_gone(node_shell *s, str name);
void change_free_shown(node_shell *s, shell_change *c);
/* An entry of a node's state that the status must not show any more. */
void shell_note_lost(node_shell *s, shell_change *c, str entry);

/* ---- shell_jobs.c ---- */
void jobs_seen(node_shell *s, yyjson_val *object);
void jobs_gone(node_shell *s, str name);
/* What is due by time. */
void jobs_due(node_shell *s);
int64_t jobs_next_ms(const node_shell *s);
shell_host *shell_find_host(const node_shell *s, str node_name); /* NULL: nothing runs there */
/* What runs, in memory of its own, among what runs on its node. */
bool shell_attempt_keep(node_shell *s, const job_key *key, const shell_job *job,
                        shell_attempt *ret);
void shell_attempt_done(node_shell *s, shell_attempt *a);
shell_job *shell_find_job(const node_shell *s, str name);
/* Whether the engine waits for the end of this very attempt: of this Skyhook, not of another one of
 * that name, and on this node. */
bool shell_is_present(node_shell *s, const job_key *key);
/* The engine's answer to its RUN. */
void shell_stage_tell(node_shell *s, const job_key *key, fact_stage how);
/* And of the attempt's Job, which is of no more interest then. */
void shell_job_tell(node_shell *s, shell_job *j, outcome how, str why);
/* The ends of a Job of a present attempt; it is of no more interest then. Without a reason its
 * pod's word is waited for. */
void shell_job_succeeded(node_shell *s, shell_job *j);
void shell_job_fails(node_shell *s, shell_job *j, str why);
shell_job *shell_job_new(node_shell *s, str name, const job_key *key);
/* Its creation took effect. */
void shell_job_made(node_shell *s, shell_job *j, uint64_t uid);
/* Its name belongs to something else: the next attempt has another. */
void shell_job_taken(node_shell *s, shell_job *j);
void shell_job_refused(node_shell *s, shell_job *j);
/* Its creation failed, and may be tried again. */
void shell_job_forget(node_shell *s, shell_job *j);
bool shell_attempt_has_job(const node_shell *s, const shell_place *p, const package_view *of);
/* An attempt that fails before it has a Job. */
void shell_stage_failed(node_shell *s, const shell_place *p, const package_view *of, str why);
/* An attempt that is never to have a Job. */
void shell_stage_not_begun(node_shell *s, const shell_place *p, const package_view *of);
void jobs_done(node_shell *s); /* and pods */

/* ---- shell_pods.c ---- */
void pods_seen(node_shell *s, yyjson_val *object);
void pods_gone(node_shell *s, str name);
/* What is due by time. */
void pods_due(node_shell *s);
int64_t pods_next_ms(const node_shell *s);
void pods_end(node_shell *s); /* those that are stuck */
shell_pod *shell_find_pod(const node_shell *s, str name);
shell_pod *shell_pod_unread(node_shell *s, str name, str node_name); /* NULL without memory */
/* It is looked at in every turn from now on. */
void shell_pod_trouble(node_shell *s, shell_pod *p);
/* Whether a container has begun; if not, those of this Skyhook wait for what it mounts. */
void shell_pod_begun(node_shell *s, shell_pod *p, str skyhook_name, bool begun);
/* Why a container does not begin, of the reasons that may last for ever; empty: none. */
void shell_pod_waits(node_shell *s, shell_pod *p, str why);
/* Whether Jobs or pods that belong to no present attempt may still run on the node: of the same
 * Skyhook, or of anybody. Unsure: whose one of them is, is asked. */
typedef enum beside { BESIDE_NOTHING, BESIDE_UNSURE, BESIDE_SOMETHING } beside;
beside shell_runs_beside(node_shell *s, const shell_place *of, bool of_anybody);
void pods_done(node_shell *s);

/* ---- pod_rows.c ---- */
bool pod_row_seen(node_shell *s, yyjson_val *table); /* false: it is no row */
/* The Job has failed: its pod is read for the reason. */
void pod_rows_ask(node_shell *s, const shell_job *j);
/* Of a pod that is not read yet. */
beside pod_row_beside(node_shell *s, const shell_pod *p);
void pod_row_due(node_shell *s, shell_pod *p);

/* ---- job_rows.c ---- */
bool job_row_seen(node_shell *s, yyjson_val *table); /* false: it is no row */
/* The answer to its creation. False: the server knows no tables, and it does not say which Job. */
bool job_row_created(node_shell *s, shell_job *j, yyjson_val *table);
void job_row_gone(node_shell *s, str name);

/* ---- shell_failed.c ---- */
/* A Job that nobody waits for has failed, or had when we came. */
void failed_seen(node_shell *s, yyjson_val *object, const job_key *key);
/* This attempt has succeeded. */
void failed_after(node_shell *s, const job_key *succeeded);

/* ---- package_maps.c ---- */
/* Whether what the packages mount is as the document says; else it is seen to. */
bool package_maps_ready(node_shell *s, shell_change *c);
/* A pod of the Skyhook's has yet to begin, for which they must be there. */
void package_maps_awaited(node_shell *s, str skyhook_name);
/* Looks at them again if one has not begun for a while. */
void package_maps_look(node_shell *s, shell_change *c);

/* ---- shell_older.c: before all is restored ---- */
/* A status, which may be an older operator's. */
void older_seen(node_shell *s, shell_change *c, yyjson_val *status);
void older_forget(shell_change *c);
/* Whether all is known that older operators left; else it is being read. */
bool older_maps_read(node_shell *s);
int64_t older_next_ms(const node_shell *s);
/* The Skyhook's record, made of that. */
void older_put(node_shell *s, const shell_change *c, buf *out);

/* ---- stale_maps.c ---- */
/* Deletes those of packages that are gone, if there may be any and nobody needs them. */
void stale_maps_look(node_shell *s, shell_change *c);
/* A node has left the Skyhook: what was written about it for its packages goes. */
void stale_maps_left(node_shell *s, const shell_change *c, str node_name);

/* ---- job_write.c ---- */
/* What packages are told of their node, if it is not known yet in this claim. */
void place_told(node_shell *s, shell_place *p, yyjson_val *node);
/* Sees to it that what runs on a place has its Job. True: nothing is left to see to. */
bool jobs_run(node_shell *s, shell_place *p);

/* ---- shell_drain.c ---- */
/* False: too many nodes drain already; it waits for its turn. */
bool drain_begin(node_shell *s, shell_node *n);
/* Its time runs from now on. Where that is limited it is written, so that it outlives this process.
 */
void drain_tell_begun(node_shell *s, shell_node *n);
/* The engine wants it from the beginning, and has forgotten what blocked it. */
void drain_anew(node_shell *s, str node_name);
/* Goes on with all drains, and ends those that are wanted no longer, or whose turn is over. */
void drains_step(node_shell *s);
void drains_seen(node_shell *s, str node_name, yyjson_val *object);
void drains_gone(node_shell *s, str node_name, str space, str name);
void drains_synced(node_shell *s, str node_name);
int64_t drains_next_ms(const node_shell *s);
void drains_done(node_shell *s);

/* ---- shell_acts.c ---- */
void acts_seen(node_shell *s, shell_change *c, yyjson_val *object);
void acts_take(node_shell *s, shell_change *c);
void acts_remove(node_shell *s, shell_change *c); /* once all that follows is durable */

/* ---- shell_events.c ---- */
void events_decided(node_shell *s, const decision *d);
void events_status(node_shell *s, const shell_change *c, skyhook_state from, skyhook_state to);
void events_change_unreadable(node_shell *s, const shell_change *c, const char *message);
void events_status_refused(node_shell *s, const shell_change *c, const char *message);
/* Its finalizer cannot be added or, once all is done, taken away. */
void events_finalizer_refused(node_shell *s, const shell_change *c, const char *message);
void events_node_refused(node_shell *s, const char *node_name, const char *message);
void events_deletion_blocked(node_shell *s, const shell_change *c, deletion_blocked why);
void events_drain_blocked(node_shell *s, str node_name, const char *pod_text, const char *keeper);
/* The same of a pod that is waited for without a budget, for the reason it says. */
void events_drain_long(node_shell *s, str node_name, const char *pod_text, const char *why);

/* ---- shell_restore.c ---- */
bool shell_restore(node_shell *s, err *error);
/* Takes up what the engine has of every place, whether or not it decided anything there. */
void shell_look_around(node_shell *s);

/* ---- node_write.c ---- */
/* Pieces of one patch of a node. */
typedef struct node_patch {
    buf annotations, labels, conditions, spec;
    char now[MOMENT_TEXT_BYTES];
    int8_t cordon; /* spec.unschedulable, as want_cordon of a place */
    bool left;     /* something may not be written yet */
} node_patch;
/* The node's conditions about a Skyhook, as bits SHOWN_*. */
uint8_t conditions_wanted(const node_view *v);
/* One more annotation or label; a value without pointer takes it away. */
void patch_note(buf *out, const char *prefix, const char *name, str value);
/* Whether a new node is still to be tainted, and may be: until then nobody is untainted. */
bool taints_are_open(const node_shell *s);
/* Sends what differs from what is on the node, if it may be sent. True: nothing is left to send. */
bool node_write(node_shell *s, shell_node *n);

/* ---- shell_deletion.c ---- */
void deletion_put(node_patch *patch, shell_place *p);
/* Once the engine has said that the finalizer may go. */
void deletion_step(node_shell *s, shell_change *c);

/* ---- status_write.c ---- */
void status_write(node_shell *s, shell_change *c);

/* ---- status_installed.c: packages that can be uninstalled, and where they are ---- */
/* ",\"installed\":{...}" as a merge of the status, or nothing. */
void status_installed_put(node_shell *s, const shell_change *c, buf *out);

/* ---- status_troubles.c: conditions that are there only while they hold ---- */
typedef struct status_trouble {
    const char *type, *reason;
    buf message;
} status_trouble;
#define STATUS_TROUBLES_MAX 5
typedef struct status_troubles {
    status_trouble at[STATUS_TROUBLES_MAX];
    size_t len;
} status_troubles;
void status_troubles_find(node_shell *s, shell_change *c, status_troubles *out);
void status_troubles_done(status_troubles *t);

/* ---- status_view.c ---- */
/* What is shown of a placement of the Skyhook. */
static inline skyhook_state place_state(const shell_change *c, const node_view *v)
{
    return node_status(c->document->object.skyhook, v->state);
}
/* Appends the status, with what changes by node only where it changed. */
/* record: as the engine keeps it, parsed; stored: as it stands in the status (status_record.h). */
void status_put(node_shell *s, shell_change *c, yyjson_val *record, str stored, buf *out);
const char *skyhook_state_text(skyhook_state state);

#endif
