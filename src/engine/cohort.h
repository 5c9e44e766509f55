/* SPDX-License-Identifier: Apache-2.0 */
/* cohort.h - compartments, budgets and batches: which members may start now.
 *
 * A cohort is all members of one change under one policy. Each member belongs to one compartment; a
 * compartment lets at most "ceiling" of its members be in flight, and starts them batch by batch:
 * fixed, linear, exponential or as many as the ceiling allows. A batch is sticky and judged once.
 *
 * Pure, and knows nothing of nodes or resources: the caller says what state each member is in and
 * gets the members that start. Incremental: a call costs the logarithm of the compartment, a step
 * looks only at compartments that something happened in. */
#ifndef DROVER_ENGINE_COHORT_H
#define DROVER_ENGINE_COHORT_H

#include "base/vec.h"
#include "engine/reason.h"
#include "select/labels.h"

#define COHORT_PACES(X)                                                                            \
    X(FIXED, "fixed") X(LINEAR, "linear") X(EXPONENTIAL, "exponential") X(NONE, "none")
/* In the order of safety: a member that matches several compartments goes to the safest. */
typedef enum cohort_pace {
#define X(kind, text) COHORT_##kind,
    COHORT_PACES(X)
#undef X
} cohort_pace;

/* One compartment as its policy describes it; defaults are already in. */
typedef struct compartment_rule {
    str name;
    const selector *selector; /* NULL for the default compartment */
    bool percent;             /* budget: percent of the members, else a count */
    int64_t budget;
    cohort_pace pace;
    bool initial_is_ceiling; /* the legacy budget: initialBatch is the ceiling, and 0 means 1 */
    int64_t initial_batch;
    int64_t batch_threshold;   /* percent */
    int64_t failure_threshold; /* 0: none */
    int64_t safety_limit;      /* percent */
    int64_t delta;
    int64_t growth_factor;
} compartment_rule;

typedef struct cohort_policy {
    const compartment_rule *rules; /* the last one is the default, named __default__ */
    size_t rule_count;
    bool failed_hold_budget; /* every failed member counts against the ceiling */
} cohort_policy;

#define COHORT_DEFAULT "__default__"

#define MEMBER_STATES(X)                                                                           \
    X(ABSENT, "absent")                                                                            \
    X(WAITING, "waiting")     /* fresh, and a gate other than the limits holds it */               \
    X(STARTABLE, "startable") /* fresh, and only the limits may hold it */                         \
    X(IN_FLIGHT, "inFlight")  /* holds a claim: set by cohort_step alone */                        \
    X(DONE, "done") X(FAILED, "failed") X(BLOCKED, "blocked")
typedef enum member_state {
#define X(kind, text) MEMBER_##kind,
    MEMBER_STATES(X)
#undef X
} member_state;

typedef struct cohort cohort;
typedef uint32_t member_id; /* the caller's, dense from 0 */

cohort *cohort_new(void);
cohort *cohort_free(cohort *c);

/* Puts the policy in force. Rules are copied, selectors are not: they live until the next call.
 * NULL: there is none, and nothing starts. State is kept by name; a compartment that is no longer
 * in the policy starts nothing more. False without memory, here and below. */
bool cohort_set_policy(cohort *c, const cohort_policy *policy);

/* A member joined, or its labels changed. name and labels live as long as the member. */
bool cohort_join(cohort *c, member_id m, str name, int64_t created_ms, label_set labels);
/* It left for good: a claim it had is forgotten, its batch goes on without it. */
void cohort_leave(cohort *c, member_id m);
/* Gives every member that may move the compartment it belongs to now. A step does so too. */
bool cohort_settle(cohort *c);

/* What the caller knows of a member that is not in flight. A member in flight changes its state by
 * cohort_outcome alone. */
bool cohort_set_state(cohort *c, member_id m, member_state state);
/* The same for the length of a question (cohort_reasons): what the member would be. The caller puts
 * it back. */
bool cohort_suppose(cohort *c, member_id m, member_state state, int64_t retry_ms);
/* Whether it is held out of service (cordoned): if failed, it keeps its place under the ceiling; if
 * fresh again, it starts before others, so that nobody is taken out of service while it still is.
 * Both return whether that is new: a place may be free, or taken. */
bool cohort_set_held(cohort *c, member_id m, bool held);
/* Whether its last attempt failed. One that is blocked since then keeps its place as a failed one
 * does: what happened to it was our doing, that it may not be touched is not. */
bool cohort_set_failed(cohort *c, member_id m, bool failed);
/* Whether the end of its claim cannot be made durable: it keeps its place under the ceiling. */
void cohort_set_stuck(cohort *c, member_id m, bool stuck);
/* When a failed member may be tried again; REASON_NEVER: not by itself. */
bool cohort_set_retry(cohort *c, member_id m, int64_t retry_ms);

/* A member that is in flight although nothing is remembered of its claim gets one: as after a
 * reset, in the batch that is open. For restarts. */
bool cohort_claim(cohort *c, member_id m);
/* The claim of a member in flight ends: DONE, FAILED or BLOCKED. It is final for its batch. */
bool cohort_outcome(cohort *c, member_id m, member_state outcome);

/* No new batch and no retry while paused. */
void cohort_pause(cohort *c, bool paused);
/* An edit gave members new work: stops are lifted. */
void cohort_lift_stops(cohort *c);
/* Every compartment returns to batch 1 with its counters cleared; members in flight are batch 1. */
void cohort_reset(cohort *c);

/* What one step did, for the caller's decisions. */
#define COHORT_EVENTS(X)                                                                           \
    X(START, "start") X(RETRY, "retry") X(BATCH, "batch") X(JUDGE, "judge") X(HALT, "halt")
typedef enum cohort_event_kind {
#define X(kind, text) COHORT_EVENT_##kind,
    COHORT_EVENTS(X)
#undef X
} cohort_event_kind;

typedef struct cohort_event {
    cohort_event_kind kind;
    member_id member; /* START, RETRY */
    str compartment;
    int64_t number; /* BATCH, JUDGE: the batch; START: place in the batch, from 0 */
    int64_t size, complete, erroring, blocked;
    bool failed; /* JUDGE */
} cohort_event;

typedef VEC(cohort_event) cohort_events;

/* Judges batches that have ended. For callers that have something to say of their members then:
 * who waited for the judgement may be startable in the next batch. */
bool cohort_judge(cohort *c, cohort_events *out);
/* Judges batches that have ended, then opens the next ones and starts retries. BATCH comes before
 * its STARTs. */
bool cohort_step(cohort *c, int64_t now_ms, cohort_events *out);
/* When a retry falls due that nothing else holds back; REASON_NEVER if none. */
int64_t cohort_next_ms(cohort *c);

typedef struct compartment_view {
    const compartment_rule *rule;
    bool removed; /* no longer in the policy */
    int64_t matched, ceiling, holders, peak, done, in_flight;
    int64_t current_batch, completed, failed, consecutive_failures, last_batch_size;
    bool last_batch_failed, stopped, batch_open;
} compartment_view;

size_t cohort_compartments(const cohort *c);
void cohort_view(const cohort *c, size_t compartment, compartment_view *ret);
/* The compartment of a member, SIZE_MAX if it has none. */
size_t cohort_compartment_of(const cohort *c, member_id m);
member_state cohort_state(const cohort *c, member_id m);
bool cohort_is_retrying(const cohort *c, member_id m);
bool cohort_in_batch(const cohort *c, member_id m);
/* The members of a compartment's open batch, with or without an outcome, until the next call. */
const member_id *cohort_batch(const cohort *c, size_t compartment, size_t *ret_count);

/* Why the compartment does not start this member, which is STARTABLE or FAILED: nothing is appended
 * when the compartment has no objection. Where a reset is asked for, after a stop or one that the
 * open batch cannot but end in, nobody is named in "of": the caller knows what is reset. */
bool cohort_reasons(const cohort *c, member_id m, arena *a, reasons *out);

/* Counters and claims as JSON: {"name":{"currentBatch":...,"members":[...],"retrying":[...]}},
 * members by name, compartments sorted by theirs. cohort_restore wants the policy set, the members
 * joined and their states set, those in flight as if they were fresh. */
void cohort_save(const cohort *c, buf *out);
bool cohort_restore(cohort *c, str json, err *error);

/* Recounts everything from the members and compares; nobody was claimed after a stop or a pause
 * (I6). */
bool cohort_check(const cohort *c, err *error);
/* Also who belongs into which compartment, and that a step would do nothing more. */
bool cohort_full(const cohort *c, err *error);

#endif
