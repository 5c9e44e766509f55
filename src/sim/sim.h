/* SPDX-License-Identifier: Apache-2.0 */
/* sim.h - a virtual fleet around the engine.
 *
 * Virtual time, targets that take time, fail, go away and come back, people who pause and approve.
 * The engine is the real one: the simulation tells it facts and carries its decisions out, and
 * knows no rule. What happens in the same virtual second is taken in together; then the engine
 * steps until a step starts nothing.
 *
 * Everything random comes from one seed; without a seed nothing is random. The same world and the
 * same seed give the same story, to the byte. */
#ifndef DROVER_SIM_SIM_H
#define DROVER_SIM_SIM_H

#include "engine/engine.h"
#include "sim/happening.h"
#include "sim/herd.h"
#include "sim/ledger.h"

typedef struct sim sim;

#define SIM_HORIZON_MS (INT64_C(90) * 24 * 3600 * 1000)
#define SIM_DURATION_MS (INT64_C(60) * 1000)

/* Faults of the way between fleet and engine, each in so many of a hundred cases. */
typedef struct sim_faults {
    uint32_t late_percent;      /* an outcome comes some seconds later */
    uint32_t duplicate_percent; /* it comes twice */
    uint32_t lost_percent;      /* it gets lost: the next time that everything is listed it comes */
    bool way;                   /* so do targets, documents and what people do (these never lost) */
    bool shuffle;               /* outcomes of one second come in any order */
    uint32_t restart_percent;   /* before a step the engine is saved, thrown away and restored */
    int64_t until_ms;           /* faults stop then, from the start; 0: never */
} sim_faults;

typedef struct sim_settings {
    uint64_t seed;
    bool random;             /* a seed was given */
    int64_t start_ms;        /* since 1970 */
    int64_t horizon_ms;      /* from the start; 0: SIM_HORIZON_MS */
    int64_t duration_ms;     /* of a stage, deployment or job; negative: SIM_DURATION_MS */
    uint32_t jitter_percent; /* durations vary by so much, if random */
    uint32_t fail_percent;   /* of all outcomes, if random */
    bool silent;             /* no cluster ever answers */
    bool tell;               /* keep the story */
    bool hash;               /* and its hash */
    bool check;              /* engine_check after every step */
    bool full;               /* engine_full after every step */
    bool lenient;            /* a happening to something that is not there is no error */
    sim_faults faults;
    engine_settings engine;
} sim_settings;

sim *sim_new(const sim_settings *settings, err *error);
sim *sim_free(sim *s);
void sim_cleanup(sim **s);

/* ---- the world before it starts ---- */

/* A document, or a target that a document describes. Kept by pointer. */
bool sim_add_object(sim *s, const object *o, err *error);
/* Made-up targets. Labels are kept by pointer. */
bool sim_add_targets(sim *s, target_kind kind, uint64_t count, label_set labels, err *error);
/* How long something takes: a package, deployment or bundle, or "drain". */
bool sim_set_duration(sim *s, str name, int64_t ms);
void sim_set_default_duration(sim *s, int64_t ms);

/* Something will fail: always, or the first time. An empty part is every package or deployment. */
typedef struct sim_failure {
    str part;
    str target;
    bool once;
} sim_failure;
bool sim_add_failure(sim *s, const sim_failure *failure, err *error);
/* "TARGET" or "PACKAGE@TARGET". */
sim_failure sim_failure_of(str text, bool once);
bool sim_set_offline(sim *s, str target, err *error);
/* Targets run this version already and are ready. An empty name is every package, deployment,
 * bundle. */
bool sim_add_from(sim *s, str name, str tag, err *error);
bool sim_add_happening(sim *s, const happening *h, err *error);

/* A job that runs when the simulation begins. It is assumed to succeed, after the time that jobs of
 * its deployment take. */
typedef struct sim_running {
    str deployment, environment, resource, version, group;
    job_role role;
    int64_t number;
    int64_t since_ms; /* since 1970; 0: nobody has begun it, and somebody does now */
} sim_running;

/* The fleet is one that lives: what its engine saved, and the jobs that run there. Its documents
 * must have been added, and nothing else. Kept by pointer. */
void sim_set_live(sim *s, str saved, const sim_running *jobs, size_t count);
bool sim_is_live(const sim *s);
size_t sim_running_count(const sim *s);

/* ---- the run ---- */

/* Lets time pass until after_ms from the start, or until the end. False with an error: an invariant
 * is broken, or memory ran out. */
bool sim_run(sim *s, int64_t after_ms, err *error);
#define SIM_TO_THE_END INT64_MAX

#define SIM_OUTCOMES(X)                                                                            \
    X(RUNNING, "running")                                                                          \
    X(COMPLETE, "complete") X(STOPPED, "stopped") X(STALLED, "stalled") X(HORIZON, "horizon")
typedef enum sim_outcome {
#define X(outcome, text) SIM_##outcome,
    SIM_OUTCOMES(X)
#undef X
} sim_outcome;
const char *sim_outcome_text(sim_outcome ended);

/* Counts of distinct targets: done for every change, failed for any, taken out with a reason. */
typedef struct sim_counts {
    int64_t targets, done, failed, excluded;
    int64_t unfinished; /* placements that are neither done nor excluded */
    int64_t hopeless;   /* of these, those that can only fail again and do not run */
} sim_counts;
bool sim_count(const sim *s, sim_counts *ret);

sim_outcome sim_ended(const sim *s);
/* When the last thing happened, from the start. */
int64_t sim_seconds(const sim *s);
int64_t sim_start_ms(const sim *s);
int64_t sim_now_ms(const sim *s);
engine *sim_engine(const sim *s);
const ledger *sim_ledger(const sim *s);
const herd *sim_herd(const sim *s);
/* Documents in force, in the order they came. */
size_t sim_documents(const sim *s);
const object *sim_document(const sim *s, size_t index);
/* The story so far, and the hash of all of it. */
str sim_story(const sim *s);
uint64_t sim_hash(const sim *s);
uint64_t sim_steps(const sim *s);
/* Starts, deployments and jobs of a placement so far. */
uint32_t sim_started(const sim *s, placement_id placement);

/* The same instant with another engine: saved, thrown away, restored. False if the restored engine
 * would save another text, or with an error of its own. */
bool sim_restart(sim *s, err *error);

#endif
