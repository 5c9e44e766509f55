/* SPDX-License-Identifier: Apache-2.0 */
/* ledger.h - the figures of a run: batches, passes, jobs, and how many targets were disturbed when.
 *
 * Written from decisions as they are made; decides nothing. Times are milliseconds from the start
 * of the run, below 0 for jobs that ran before it; LEDGER_OPEN is "not yet". Texts are numbers of
 * the run's name table, targets of its herd. */
#ifndef DROVER_SIM_LEDGER_H
#define DROVER_SIM_LEDGER_H

#include "base/names.h"
#include "base/strmap.h"
#include "base/vec.h"
#include "engine/decision.h"
#include "engine/engine.h"

#define LEDGER_OPEN INT64_MIN

typedef struct ledger_batch {
    int64_t number, size, complete, erroring, blocked;
    int64_t start_ms, end_ms;
    bool failed;
    VEC(uint32_t) targets;
} ledger_batch;

/* A compartment of a change, as its batches went. */
typedef struct ledger_group {
    name_id change, name, environment, rule; /* the last two: of a RolloutPolicy */
    VEC(ledger_batch) batches;
    int64_t current_batch, completed, failed, consecutive_failures;
    bool stopped;
    bool at_rest; /* it returned to batch 1; the counters are those before */
    bool runs;    /* said by ledger_batch_runs */
} ledger_group;

typedef struct ledger_job {
    name_id deployment, environment, version, group;
    name_id outside; /* decision.outside; 0: it kept its windows */
    uint32_t resource;
    job_role role;
    int64_t start_ms, end_ms;
    bool failed;
} ledger_job;

/* A cluster from its release until it was ready. */
typedef struct ledger_span {
    name_id change, group;
    uint32_t target;
    bool failed;
    int64_t start_ms, end_ms;
} ledger_span;

typedef struct ledger_pass {
    name_id change, rule, environment; /* the last two: of a RolloutPolicy */
    int64_t start_ms, created, updated, fixed, visited, not_ready;
} ledger_pass;

typedef struct ledger_point {
    int64_t ms, count;
} ledger_point;

/* A concurrency rule: how many of its slots were taken, from each moment on. */
typedef struct ledger_slots {
    name_id rule;
    int64_t before; /* when the run began */
    VEC(ledger_point) taken;
} ledger_slots;

/* A compartment or partition: how many held its limit, from each moment on. */
typedef struct ledger_holds {
    name_id change, name;
    VEC(ledger_point) held;
} ledger_holds;

/* A version group, for the drains it cost and saved. */
typedef struct ledger_bracket {
    VEC(name_id) members; /* ordinary ones that ran, each once */
    bool prepared;        /* a pre member ran */
} ledger_bracket;

typedef struct ledger {
    names *names; /* the run's */
    VEC(ledger_group) groups;
    VEC(ledger_job) jobs;
    VEC(ledger_span) spans;
    VEC(ledger_pass) passes;
    VEC(ledger_point) in_flight;
    VEC(ledger_slots) slots;
    VEC(ledger_holds) holds;
    VEC(ledger_bracket) brackets;
    size_t next_holds; /* groups are shown in the same order again and again */
    size_t last_group; /* asked for: a batch starts thousands in a row */
    strmap group_at;   /* "change\nname" -> number in groups */
    strmap bracket_at; /* group text -> number in brackets */
    int64_t now_in_flight, peak_in_flight;
    int64_t starts, drains, drains_saved;
    bool no_memory;
} ledger;

void ledger_init(ledger *l, names *table);
void ledger_done(ledger *l);

void ledger_batch_opens(ledger *l, const decision *d, int64_t ms);
void ledger_batch_joins(ledger *l, const decision *d, uint32_t target);
void ledger_batch_judged(ledger *l, const decision *d, int64_t ms);
/* A batch that all its members left ends without being judged, and nobody says so: when targets or
 * documents are gone, every group is shown (ledger_batch_runs), and open batches of those where
 * nobody is in flight end (ledger_batches_left). */
bool ledger_has_open_batch(const ledger *l);
void ledger_batch_runs(ledger *l, const group_view *g);
void ledger_batches_left(ledger *l, int64_t ms);
void ledger_halts(ledger *l, const decision *d);
void ledger_resets(ledger *l, const decision *d);
/* A retry, in no batch, came to a good end. */
void ledger_recovers(ledger *l, const decision *d);

/* A pass of a bundle, or of a rule in an environment. Of those that released nothing only the last
 * stays. */
void ledger_passes(ledger *l, const decision *d, int64_t ms);
/* When the last pass over these partitions was made. One that releases nothing and finds them as
 * they were is not told of; it is the last all the same. */
void ledger_last_pass(ledger *l, const group_view *of, int64_t ms);
/* Returns the job's number in the ledger. */
uint32_t ledger_job_starts(ledger *l, const decision *d, uint32_t target, int64_t ms);
void ledger_job_ends(ledger *l, uint32_t job, bool failed, int64_t ms);
/* Returns the span's number in the ledger. */
uint32_t ledger_span_starts(ledger *l, const decision *d, uint32_t target, int64_t ms);
void ledger_span_ends(ledger *l, uint32_t span, bool failed, int64_t ms);
/* Drains that version groups cost and saved, added to the nodes' own. */
void ledger_sums(const ledger *l, int64_t *ret_drains, int64_t *ret_saved);

/* A slot was taken or given back. */
void ledger_slot(ledger *l, const decision *d, int64_t ms);
/* NULL if none of the rule's was. */
const ledger_slots *ledger_slots_of(const ledger *l, str rule_id);

/* A group as it is now. */
void ledger_holds_now(ledger *l, const group_view *g, int64_t ms);
/* NULL if it was never shown. */
const ledger_holds *ledger_holds_of(const ledger *l, str change, str name);

/* The number of targets in flight changed, or a second came to rest. */
void ledger_in_flight(ledger *l, int64_t ms);

/* NULL if nothing happened in it. */
const ledger_group *ledger_find(const ledger *l, const group_view *g);

#endif
