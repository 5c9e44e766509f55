/* SPDX-License-Identifier: Apache-2.0 */
/* cohort_internal.h - the inside of a cohort, for cohort*.c alone. */
#ifndef DROVER_ENGINE_COHORT_INTERNAL_H
#define DROVER_ENGINE_COHORT_INTERNAL_H

#include "engine/cohort.h"

#define COMPARTMENT_NONE UINT32_MAX

typedef struct entry {
    str name;
    label_set labels;
    int64_t created_ms;
    int64_t retry_ms;     /* FAILED: when it may be tried again */
    uint32_t compartment; /* COMPARTMENT_NONE until the next step */
    uint32_t place;       /* in the heap it stands in, from 1; 0: in none */
    uint32_t claim;       /* number of its last claim; for the check */
    uint32_t turn;        /* its place in the order of its queue when it was asked last */
    uint32_t next;        /* in a batch, or tried again: where its labels belong, as of then */
    uint8_t state;        /* member_state */
    uint8_t outcome;      /* of a batch member: final for its batch, whatever it is now */
    bool held;
    bool failed; /* its last attempt did; of those that are BLOCKED */
    bool stuck;
    bool in_batch; /* of the open batch, with or without an outcome */
    bool retrying;
    bool supposed; /* cohort_suppose has given it another state */
} entry;

typedef VEC(member_id) member_heap;

typedef struct compartment {
    compartment_rule rule;
    bool removed;
    /* counted from the members */
    int64_t selected; /* members that match the selector, wherever they are */
    int64_t matched, done, startable, in_flight, holders;
    int64_t unresolved; /* members of the open batch without an outcome */
    int64_t peak;
    /* the batch state that survives */
    int64_t current_batch, completed, failed, consecutive_failures, last_batch_size;
    bool last_batch_failed, stopped, batch_open;
    uint32_t stop_claim;  /* the last claim before the stop; for the check */
    bool carried;         /* the open batch was in flight when the state was reset */
    VEC(member_id) batch; /* of the open batch, in the order they were picked */
    member_heap queue;    /* startable: those held out of service, then oldest, then name */
    member_heap retries;  /* failed, to be tried again: earliest first */
} compartment;

/* The members that stand in a compartment's queue, by their turn and by name. */
typedef struct asked_queue {
    VEC(member_id) turns;
    VEC(member_id) names;
} asked_queue;

struct cohort {
    arena *names; /* of compartments: one that left the policy is known by name alone */
    bool has_policy;
    bool failed_hold_budget;
    bool paused;
    uint32_t claims;       /* number of the last claim */
    uint32_t step_claim;   /* and before the last step; for the check */
    uint32_t pause_claim;  /* the last claim before the pause; for the check */
    VEC(uint32_t) by_name; /* compartments */
    bool renamed;          /* and one was added since they were sorted */
    bool no_memory;        /* where no call could say so; the next step does */
    bool unsettled;        /* members may belong to another compartment than at the last step */
    bool everybody;        /* all of them: the policy or the order of compartments changed */
    VEC(entry) members;
    VEC(compartment) compartments; /* those of the policy in its order, then removed ones */
    VEC(uint32_t) order;           /* compartments with a selector, safest first */
    VEC(member_id) unassigned;
    /* what questions are answered from: cohort_asked.c */
    uint64_t edits;          /* rises with whatever changes a member */
    uint64_t asked_at;       /* edits when these were made */
    int64_t supposed;        /* how many members have a supposed state */
    bool alone;              /* one at most, and these are as if it had its own */
    VEC(asked_queue) queues; /* by compartment */
    VEC(member_id)
    others; /* who is in no queue, and may hold a place or come before others; by
               name */
};

/* Sorts what questions are answered from, if something has changed. False without memory. */
bool cohort_ask(cohort *c);
void cohort_asked_done(cohort *c);
/* How many of a compartment's queue, as it was sorted, start before e. */
size_t cohort_ahead_in_queue(const cohort *c, uint32_t index, const entry *e);

int64_t compartment_ceiling(const compartment *p, int64_t members);
/* How many the next batch would start now, or after a reset; may be less than 1. */
int64_t compartment_next_size(const compartment *p, bool after_reset);
bool cohort_may_start(const cohort *c, const compartment *p);
/* The compartment of that name; one that no policy has. Both SIZE_MAX: there is none, or no memory.
 */
size_t cohort_find(const cohort *c, str name);
size_t cohort_add(cohort *c, str name);
/* Whether the compartment's selector matches; that of the default, and of one that was removed,
 * matches nobody. */
bool compartment_selects(const compartment *p, label_set labels);
/* The order in which a member that matches several compartments looks for its own. */
bool compartment_safer(const compartment *a, const compartment *b);
/* The compartment it belongs into by its labels. */
uint32_t cohort_choose(const cohort *c, const entry *e);
/* The compartment of members that no selector matches; COMPARTMENT_NONE: there is none. */
uint32_t cohort_default(const cohort *c);

/* Creation time, then name. */
bool entry_before(const entry *a, const entry *b);
/* The order in which startable members start: a member that is held out of service already (it
 * failed, then got new work) comes first, so that no other is taken out of service while it still
 * is. */
bool entry_starts_before(const entry *a, const entry *b);
/* Adds (sign 1) or takes away (-1) a member's share of its compartment's counters. */
void entry_count(cohort *c, const entry *e, int64_t sign);
/* Whatever changes a member happens between these two: they take it out of the counters and queues
 * of its compartment, and put it into those it belongs to then. */
void entry_out(cohort *c, member_id m);
void entry_in(cohort *c, member_id m);
/* Whether it failed, also if it is blocked by now. */
bool entry_failed(const entry *e);
/* Whether it takes a place under its compartment's ceiling. */
bool entry_holds(const cohort *c, const entry *e);

/* The startable member whose turn it is; there is one. */
member_id queue_first(const cohort *c, uint32_t compartment);
/* The member that is tried again first, of those for which there is a place; false: there is none.
 */
bool retries_next(const cohort *c, uint32_t compartment, member_id *ret);
/* Whether failed members may be tried again: nobody fresh is left that could start. Else a failed
 * member that keeps its place, and a fresh one that waits for it, would wait for each other for
 * ever. */
bool compartment_retries(const compartment *p);

#endif
