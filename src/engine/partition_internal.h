/* SPDX-License-Identifier: Apache-2.0 */
/* partition_internal.h - the inside of partitions, for partition*.c alone. */
#ifndef DROVER_ENGINE_PARTITION_INTERNAL_H
#define DROVER_ENGINE_PARTITION_INTERNAL_H

#include "engine/partition.h"

/* Candidates of a partition: members whose version is not the wanted one. Each kind is let
 * through by another rule, so each has its own tree. */
#define CANDIDATES(X) X(NEW, "new") X(BROKEN, "broken") X(HEALTHY, "healthy")
typedef enum candidate_kind {
#define X(kind, text) CANDIDATE_##kind,
    CANDIDATES(X)
#undef X
        CANDIDATE_NONE,
} candidate_kind;
#define CANDIDATE_KINDS 3

/* A member's place in one partition, and a node of one of its trees. Number 0 is none. */
typedef struct seat {
    member_id member;
    uint32_t partition;
    uint32_t next; /* of the same member, in the order of the partitions */
    uint32_t left, right;
    uint32_t before, after; /* in the order of the tree */
    uint8_t tree;           /* candidate_kind */
} seat;

typedef struct paced {
    str label, name, tie;
    uint32_t seats; /* the first one */
    uint8_t flags;
    bool present;
    bool own;          /* one of its partitions has its own maxUnavailable */
    bool failed;       /* counted against failureThreshold */
    uint32_t mark;     /* scratch of a walk: its number if the member was picked */
    uint32_t supposed; /* scratch of reasons: their number if the member is supposed complete */
} paced;

/* The counts that a walk changes. */
typedef struct tally {
    int64_t unavailable;
    int64_t bad;        /* paced members that are not (current and available) */
    int64_t candidates; /* HELD ones too: they need the approval as well */
} tally;

typedef struct part {
    str name;
    int_or_percent max_unavailable; /* its own; NONE: the policy's */
    bool approval, approved, visited;
    int64_t count;   /* members */
    int64_t counted; /* of them, not OUT */
    int64_t cap;
    int64_t peak;
    int64_t ready_since_ms; /* REASON_NEVER: not ready, or not visited since */
    tally now;
    uint32_t root[CANDIDATE_KINDS];
    uint32_t first[CANDIDATE_KINDS], last[CANDIDATE_KINDS];
} part;

struct partitions {
    partition_matcher matches;
    void *context;
    arena *texts; /* names of the partitions of this cut */
    bool cut, automatic;
    uint64_t cuts;
    int_or_percent max_unavailable, max_unavailable_partitions, auto_partition_size;
    int64_t auto_partition_threshold, max_new, soak_ms, failure_threshold;
    VEC(partition) definitions; /* of the policy; only name, maxUnavailable and approval are read */
    VEC(part) parts;
    VEC(paced) members;
    VEC(seat) seats;
    uint32_t free_seat;
    int64_t assigned;    /* members in at least one partition */
    int64_t unavailable; /* of those, outside partitions with their own maxUnavailable */
    int64_t bad;         /* of those, paced and not (current and available) */
    int64_t cap;         /* of the whole */
    int64_t budget;      /* partitions that may be not ready */
    int64_t failures;
    bool halted;
    int64_t next_ms;
    uint32_t walks; /* marks in use */
    VEC(tally) scratch;
    /* For reasons: all members in order, and those of each partition one after the other. Made when
     * first asked for; an empty order says that it is to be made. */
    VEC(member_id) order;
    VEC(member_id) grouped;
    VEC(size_t) group_ends;
};

candidate_kind paced_candidate(unsigned flags);
/* A candidate, or one if nothing else held it. */
static inline bool paced_pending(unsigned flags)
{
    return paced_candidate(flags & ~(unsigned)PACED_HELD) != CANDIDATE_NONE;
}
static inline bool paced_unavailable(unsigned flags)
{
    return !(flags & PACED_OUT) && (flags & PACED_HAS) && !(flags & PACED_AVAILABLE);
}
static inline bool paced_bad(unsigned flags)
{
    unsigned done = PACED_HAS | PACED_CURRENT | PACED_AVAILABLE;
    return !(flags & PACED_OUT) && (flags & done) != done;
}
static inline int64_t at_least_one(int64_t cap)
{
    return cap < 1 ? 1 : cap;
}

/* Order of members: by name, then tie. */
int paced_order(const paced *a, const paced *b);
/* The first seat of a tree behind that member (from the start if it is NULL); 0: none. */
uint32_t tree_after(const partitions *p, uint32_t root, const paced *behind);
/* Gives a member a seat and counts it. */
bool seat_add(partitions *p, member_id m, uint32_t index);
bool part_add(partitions *p, str name, const partition *definition);
/* Limits follow from the present members. */
void part_update(partitions *p, part *at);
void caps_update(partitions *p);

/* A partition that later ones must wait for: not ready, or not ready for long enough. */
bool part_is_ready(const part *at, const tally *t);
bool part_soaks(const partitions *p, const part *at, const tally *t, int64_t now_ms);

/* One walk over the partitions, on a copy of the counts. */
#define WALK_ENDS(X)                                                                               \
    X(RELEASED, "released")                                                                        \
    X(UNREACHED, "partition")                                                                      \
    X(NO_CREATE, "mayCreate")                                                                      \
    X(PARTITION_FULL, "partition limit") X(WHOLE_FULL, "whole limit") X(MAX_NEW, "maxNew")
typedef enum walk_end {
#define X(kind, text) WALK_##kind,
    WALK_ENDS(X)
#undef X
} walk_end;

typedef struct walk {
    const partitions *p;
    int64_t now_ms;
    uint32_t mark;          /* members with this mark were picked already */
    uint32_t supposed;      /* and those with this one are supposed complete; 0: none are */
    tally *at;              /* one for each partition, to be changed */
    int64_t unavailable;    /* of the whole, likewise */
    partition_picks *picks; /* NULL: only watching */
    const bool *open;  /* what if these partitions were approved and soaks over; NULL: as it is */
    const bool *soaks; /* and then: but for these */
    const paced *watched;      /* stop when it is decided; NULL: none */
    candidate_kind watched_as; /* a watched member that is in no tree is looked at as this */
    walk_end end;              /* what became of it */
    pass_figures figures;
    bool no_memory;
} walk;

void walk_partitions(walk *w);
/* A mark that no member carries. */
uint32_t walk_mark(const partitions *p);

/* partition_rolls.c */
typedef struct roll {
    const member_id *at;
    size_t len;
} roll;
/* Makes the rolls if they are not there. False without memory. */
bool rolls_make(const partitions *p);
/* The members of a partition, or with PARTITION_NONE all there are, in order. */
roll roll_of(const partitions *p, uint32_t index);
bool sits(const partitions *p, const paced *member, uint32_t index);

#endif
