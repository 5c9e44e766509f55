/* SPDX-License-Identifier: Apache-2.0 */
/* partition.h - partitions and passes: which members are released now.
 *
 * Members are cut into partitions, automatically or by definition; the cut is kept until it is
 * made anew. A pass visits the partitions in order, releases first versions in bulk and updates
 * only while few enough are unavailable, and stops behind too many partitions that are not
 * ready.
 *
 * Pure, and knows nothing of clusters, bundles or release targets: the caller says what each
 * member runs and gets the members that are released. Incremental: counts are kept for each
 * partition and candidates in ordered trees, so a member's news costs a logarithm and a pass
 * costs the partitions it visits and what it releases. */
#ifndef DROVER_ENGINE_PARTITION_H
#define DROVER_ENGINE_PARTITION_H

#include "base/vec.h"
#include "engine/keep_detail.h"
#include "engine/reason.h"
#include "model/fleet.h"

typedef struct partitions partitions;
typedef uint32_t member_id; /* the caller's, dense from 0 */

/* What is known of a member. */
enum {
    PACED_OUT = 1,       /* neither released nor counted nor waited for; caps count it */
    PACED_HAS = 2,       /* it runs a version, or was given one */
    PACED_CURRENT = 4,   /* which is the wanted one */
    PACED_AVAILABLE = 8, /* and is applied and ready */
    PACED_AGAIN = 16,    /* a current one that is not available is to be released again */
    PACED_HELD = 32,     /* something else holds it: counted and waited for, not released now */
};

/* Whether a member belongs to the manual partition with that index. */
typedef bool (*partition_matcher)(void *context, member_id m, size_t definition);

partitions *partitions_new(partition_matcher matches, void *context);
partitions *partitions_free(partitions *p);

/* Puts the policy in force; nothing of it is kept. The cut stays: make it anew when the settings
 * that define partitions have changed. False without memory, here and below. */
bool partitions_set_policy(partitions *p, const rollout_strategy *policy);

/* A member joined, in no partition yet. Order is by name, then tie; "called" is what reasons and
 * saved state call it. The texts live as long as the member. */
bool partitions_join(partitions *p, member_id m, str called, str name, str tie);
void partitions_leave(partitions *p, member_id m);
/* Puts a member that is in no partition into those it matches, or into the last automatic one. */
bool partitions_assign(partitions *p, member_id m);
/* Takes it out of every partition, so that it can be assigned anew. */
void partitions_unassign(partitions *p, member_id m);
/* Says what is known of it now; returns whether that is news. */
bool partitions_set(partitions *p, member_id m, unsigned paced);
unsigned partitions_get(const partitions *p, member_id m);

/* Makes the cut from scratch over all members there are. Approvals and soaks begin anew. */
bool partitions_cut(partitions *p);
bool partitions_are_cut(const partitions *p);
/* An edit: approvals, soaks and the halt are forgotten. */
void partitions_edited(partitions *p);

/* Opens a partition that asks for approval. False if there is none of that name. */
bool partitions_approve(partitions *p, str name);
/* A member failed after its release. True if that halts everything, now. */
bool partitions_failed(partitions *p, member_id m);
bool partitions_halted(const partitions *p);
int64_t partitions_failures(const partitions *p);
/* Forgets failures and the halt. */
void partitions_resume(partitions *p);
/* Whether every member that is paced is current and available. */
bool partitions_complete(const partitions *p);
/* Whether more are unavailable than a limit allows to updates: it shrank, or first releases did it.
 */
bool partitions_exceeded(const partitions *p);

typedef struct partition_pick {
    member_id member;
    uint32_t partition;
    bool first; /* it runs nothing yet */
    bool fix;   /* it was unavailable already */
} partition_pick;

typedef VEC(partition_pick) partition_picks;

/* What one pass came to. */
typedef struct pass_figures {
    int64_t created, updated, fixed;
    int64_t visited, partitions, not_ready;
    int64_t looked_at; /* members the pass looked at */
} pass_figures;

/* One pass: appends what is released; those members are current and unavailable from now on. */
bool partitions_pass(partitions *p, int64_t now_ms, partition_picks *out, pass_figures *ret);
/* When a soak ends that a pass waited for; REASON_NEVER if none. */
int64_t partitions_next_ms(const partitions *p);

#define PARTITION_NONE UINT32_MAX
typedef struct partition_view {
    str name;
    int64_t matched, cap, unavailable, not_ready, peak;
    bool own; /* has its own maxUnavailable */
    bool ready, visited, approved;
    int64_t ready_since_ms; /* REASON_NEVER: it is not, or nobody looked since */
} partition_view;

/* The limits of the whole, and how much of them is used now. */
typedef struct partition_figures {
    int64_t unavailable, cap; /* outside partitions that have their own maxUnavailable */
    int64_t budget;           /* partitions that may be not ready */
    uint64_t cuts;            /* so many cuts were made or restored */
} partition_figures;
partition_figures partitions_figures(const partitions *p);

size_t partitions_count(const partitions *p);
void partitions_view(const partitions *p, size_t index, partition_view *ret);
/* The first partition of a member; PARTITION_NONE. */
uint32_t partitions_of(const partitions *p, member_id m);
/* Whether passes that visit so many partitions get to one of the member's: it is approved, too,
 * where that is needed. And a hash of which partitions those are. */
bool partitions_reached(const partitions *p, member_id m, int64_t visited);
uint64_t partitions_reach(const partitions *p, int64_t visited);

/* Why the partitions hold a member that is to be released: every partition, limit, approval and
 * soak in its way, supposing that it is neither OUT nor HELD. Names as few as must become complete;
 * where that would take too long to find (more than PARTITION_BLAMED_MAX could matter to a limit of
 * the whole), all that might. */
#define PARTITION_BLAMED_MAX 256
typedef struct partition_question {
    member_id member;
    bool again;   /* supposing that it is AGAIN */
    bool repeats; /* passes follow each other in the same step until one releases nothing */
    int64_t now_ms;
    str scope;    /* what the limits of the whole belong to: "bundle x" */
    str editable; /* who would have to be edited where only that helps: "x" */
} partition_question;
bool partitions_reasons(const partitions *p, const partition_question *q, arena *a, reasons *out);

/* The cut, approvals, soaks and failures as one JSON object, and back; members by label. */
void partitions_save(const partitions *p, buf *out);
/* The same without what is only for looking at, and without the members of the last automatic
 * partition, which is where all go that are in no other: it changes with the cut, not with every
 * pass. */
void partitions_keep(const partitions *p, keep_detail detail, buf *out);
typedef bool (*partition_finder)(void *context, str label, member_id *ret);
bool partitions_restore(partitions *p, str json, partition_finder find, err *error);

/* Recounts everything from the members, and makes the pass the slow way: it must come to the
 * same as the quick one. settled: it must release nothing. */
bool partitions_check(const partitions *p, int64_t now_ms, bool settled, err *error);

#endif
