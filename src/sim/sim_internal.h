/* SPDX-License-Identifier: Apache-2.0 */
/* sim_internal.h - what the files of src/sim share. */
#ifndef DROVER_SIM_SIM_INTERNAL_H
#define DROVER_SIM_SIM_INTERNAL_H

#include <xxhash.h>

#include "sim/agenda.h"
#include "sim/dice.h"
#include "sim/sim.h"

/* Facts are handed over in portions: a fact is large, a fleet larger. */
#define SIM_PORTION 1024
#define SIM_LATE_MS_MAX (30 * 1000)

typedef struct sim_failing {
    name_id part; /* 0: all */
    uint32_t target;
    bool once;
} sim_failing;

/* A bundle on a cluster, as the cluster's agent sees it. */
typedef struct sim_release {
    name_id live, applied;
    uint32_t span; /* in the ledger, of its last release */
    bool exists, ready, failed;
} sim_release;

typedef struct sim_placement {
    uint32_t target;
    uint16_t started;
    bool in_flight, retrying;
} sim_placement;

typedef struct sim_from {
    name_id name; /* 0: all */
    name_id version;
} sim_from;

struct sim {
    sim_settings settings;
    engine *engine;
    names *names;
    arena *arena;
    herd herd;
    agenda agenda;
    ledger ledger;
    dice dice;
    dice restarts; /* of its own, so that a restart changes nothing else */

    int64_t now_ms;   /* absolute */
    int64_t moved_ms; /* when something last happened */
    bool prepared;    /* the world was told to the engine */
    bool begun;
    sim_outcome outcome;
    sim_counts counts; /* when it has ended */
    uint64_t steps;
    uint64_t idle_wakes; /* seconds in a row in which nothing happened */

    VEC(const object *) documents;
    VEC(const bundle_deployment *) deployed; /* what runs on clusters at the start */
    VEC(happening) happenings;
    size_t happened;
    VEC(sim_failing) failing;
    VEC(sim_from) from;
    VEC(agenda_entry) held; /* fell due while the target was offline */
    VEC(sim_placement) placements;
    VEC(sim_release) releases;
    strmap release_at;    /* the bytes of (change, target) -> number in releases */
    strmap durations;     /* name -> ms */
    VEC(name_id) bundles; /* as the engine names them */
    strmap interrupting;  /* package -> its bit, for drains saved */
    uint32_t published;   /* Version documents made so far */

    bool live;
    str live_saved;
    const sim_running *running;
    size_t running_count;
    size_t
        placements_alive; /* on nodes and clusters, that were in flight when the simulation began */

    fact *facts; /* SIM_PORTION */
    char (*boots)[HERD_BOOT_BYTES];
    size_t fact_count;
    decision_list decisions;
    agenda_entries due;
    int64_t heartbeat_ms; /* 0: nobody asks whether clusters were seen */
    int64_t next_heartbeat_ms;

    buf story;
    XXH3_state_t *hash;
    bool no_memory;

    /* sim_way.c */
    VEC(const object *) on_the_way; /* documents that set out, by number */
    VEC(const object *) untold;     /* gone, which was not told yet */
    VEC(fact) acts;                 /* by number */
    int64_t acts_ms;                /* when the last of them arrives */
    int64_t resync_ms;              /* when everything is listed next */
};

/* sim.c */
name_id sim_name(sim *s, str text);
void sim_memory(sim *s, bool good);
void sim_tell(sim *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* What is told so far goes into the hash, and is forgotten unless it is kept. */
void sim_told(sim *s);
int64_t sim_duration(const sim *s, str name);
/* A Bundle's name without its namespace. */
str sim_part_name(str change);
sim_release *sim_release_of(sim *s, name_id change, uint32_t target);
/* The change's name as the engine says it. */
str sim_change_name(sim *s, const object *o);

/* sim_world.c: documents, targets and --from */
bool sim_prepare(sim *s, err *error);
bool sim_object_joins(sim *s, const object *o, err *error);
bool sim_object_target(const object *o);
/* Puts a document in force; returns it as it is kept, NULL without memory or if it plays no part.
 */
const object *sim_keep_document(sim *s, const object *o);
/* Notes what the simulation itself must know of a document. */
bool sim_note_document(sim *s, const object *o);
/* Tells the engine everything that stands in documents and targets, without deciding. */
bool sim_take_world(sim *s, engine *e, err *error);
void sim_report_fact(const sim *s, name_id change, uint32_t target, const sim_release *r,
                     fact *ret);

/* sim_run.c */
bool sim_fact(sim *s, const fact *f, err *error);
bool sim_fact_target_now(sim *s, uint32_t target, err *error);
bool sim_fact_reports(sim *s, uint32_t target, err *error);

/* sim_way.c: what is so is told, with the faults that are on */
bool sim_fact_target(sim *s, uint32_t target, err *error); /* gone ones, too */
bool sim_fact_boot(sim *s, uint32_t target, err *error);   /* a reboot: late, but never lost */
bool sim_fact_document(sim *s, const object *o, err *error);
bool sim_fact_document_gone(sim *s, const object *o, err *error); /* it is in force no longer */
bool sim_fact_act(sim *s, const fact *f, err *error);
/* A target comes: that one of its name is gone must have been told. */
bool sim_rejoins(sim *s, target_kind kind, str name, err *error);
/* What is lost after that time is told again then. */
int64_t sim_resync_ms(sim *s, int64_t from_ms);
bool sim_arrives(sim *s, const agenda_entry *e, err *error);

/* sim_happen.c: the finalizer of a Skyhook that is deleted goes, and the document with it. */
bool sim_finalize(sim *s, str name, err *error);

/* sim_answer.c: decisions, and what comes of them */
bool sim_answer(sim *s, const decision *d, err *error);
bool sim_due(sim *s, const agenda_entry *e, err *error);
/* Whether what ends now ends badly; uses up a failure that was to happen once. */
bool sim_fails(sim *s, uint32_t target, name_id part);
/* Whether it is to fail always. A part of 0 is any. */
bool sim_doomed(const sim *s, uint32_t target, name_id part);
/* A target has one claim, job or slot more, one less, or none any more. */
void sim_hold(sim *s, uint32_t target);
void sim_let_go(sim *s, uint32_t target);
void sim_let_all_go(sim *s, uint32_t target);
/* A job that runs already. */
bool sim_goes_on(sim *s, const sim_running *job, err *error);
/* The same for a node in flight: its stages end after the time they take, its drain as one does. */
bool sim_node_goes_on(sim *s, const placement_view *v, err *error);
bool sim_cluster_goes_on(sim *s, const placement_view *v, err *error);
/* Puts something on the agenda, with the faults that are on. */
bool sim_schedule(sim *s, int64_t in_ms, agenda_entry e);
bool sim_faulty(const sim *s);

/* sim_happen.c */
bool sim_happen(sim *s, const happening *h, err *error);

#endif
