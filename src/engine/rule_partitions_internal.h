/* SPDX-License-Identifier: Apache-2.0 */
/* rule_partitions_internal.h - what rule_partitions*.c share. Nobody else includes it. */
#ifndef DROVER_ENGINE_RULE_PARTITIONS_INTERNAL_H
#define DROVER_ENGINE_RULE_PARTITIONS_INTERNAL_H

#include "engine/chain.h"
#include "engine/partition_rollout.h"

typedef struct part_member {
    bool present;
    bool known;    /* its wish was looked at */
    bool released; /* by a pass; its job has not started yet */
    bool doubted;  /* and a gate has closed since */
    bool down;     /* what was started on it has not come to a good end */
    uint64_t live; /* while it is down: hash of what was started */
    uint64_t wish; /* hash of the versions it is to run */
} part_member;

/* Limits as they were at the last step: what is smaller now has shrunk. */
typedef struct part_limits {
    uint64_t cuts;      /* of partition_figures: after another cut, others hold */
    int64_t whole;      /* of updates, over all partitions but those with their own */
    int64_t own;        /* so many partitions have their own */
    VEC(int64_t) parts; /* of each partition */
} part_limits;

typedef struct rel_partitions {
    releases *r;
    uint32_t rule;
    partition_rollout roll;
    VEC(part_member) members; /* by resource */
    size_t count;
    uint64_t usual;  /* a wish that many have: who changed last has it */
    int64_t reached; /* so many partitions passes get to, when they release nothing more */
    uint64_t reach;  /* hash of which those are: others must know when it changes */
    index_list doubted;
    part_limits seen;
    partition_picks picks;
} rel_partitions;

static inline str resource_name(const releases *r, uint32_t res)
{
    return rel_text(r, r->resources.at[res].name);
}

static inline const rollout_strategy *strategy_of(const rel_partitions *x)
{
    const rule *doc = x->r->rules.at[x->rule].doc;
    return doc ? doc->rollout_strategy : NULL;
}

static inline part_member *member_at(const rel_partitions *x, uint32_t res)
{
    return res < x->members.len && x->members.at[res].present ? &x->members.at[res] : NULL;
}

/* All that counts of a target, or of a resource's sites in a bracket. */
typedef struct standing {
    bool has;        /* it runs something */
    bool pending;    /* there is something to start */
    bool current;    /* its live version is the wanted one */
    bool busy;       /* something goes on, or went wrong, that no pass began */
    bool rollback;   /* it goes back: no pass is asked */
    bool down;       /* unavailable by what its group does */
    uint64_t live;   /* what it runs, runs now, or failed at last; 0: nothing */
    uint64_t wish;   /* 0: none that counts */
    uint64_t failed; /* what failed at last; 0: nothing did */
} standing;

standing standing_of(const releases *r, const rel_pace *p, uint32_t t);
/* The flags of partition.h. */
unsigned flags_of(const releases *r, const part_member *m, const standing *s, uint32_t res,
                  bool gates);
/* Whether a group has a member under the rule. */
bool group_under(const releases *r, uint32_t g, uint32_t rule_);
/* Whether nothing but these partitions holds it: in a bracket, any of its groups that are ready. */
bool gates_of(const releases *r, uint32_t p, uint32_t t, bool gates);
/* Notes which partitions passes get to, and marks the members if that is news to other rules. */
void partition_pace_reaches(releases *r, uint32_t p);
/* Its targets are asked anew. */
void mark_member(releases *r, const rel_pace *p, uint32_t res);
/* A target that is counted as this member: in a bracket any of them. */
uint32_t target_of_member(const releases *r, const rel_pace *p, uint32_t res);

#endif
