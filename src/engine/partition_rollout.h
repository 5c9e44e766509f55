/* SPDX-License-Identifier: Apache-2.0 */
/* partition_rollout.h - a rollout over partitions: when one begins, when the cut is made anew, when
 * a pass is due and whether it is worth telling.
 *
 * The pass itself is partition.h's. Bundles on clusters and rules of a RolloutPolicy both go
 * through here; what a member is, and what a release of it means, is theirs. */
#ifndef DROVER_ENGINE_PARTITION_ROLLOUT_H
#define DROVER_ENGINE_PARTITION_ROLLOUT_H

#include "engine/partition.h"

typedef struct partition_rollout {
    partitions *pacing;
    uint64_t settings;   /* hash of what defines partitions */
    uint64_t everything; /* hash of the whole strategy */
    bool dirty;          /* a pass is due */
    bool cut_due;        /* the settings changed */
    bool work_changed;   /* somebody wants another version than before */
    bool edited;         /* and that by an edit: approvals, soaks and the halt are forgotten */
    bool halted_now;     /* the halt is to be told */
    bool running;        /* a rollout began and was not complete yet */
    int64_t passes;      /* that were worth telling */
    pass_figures last;   /* the last of them */
    bool last_released;  /* the last pass released something */
    int64_t passed_ms;   /* when the last pass was made, told or not */
} partition_rollout;

/* Puts a strategy in force; a fresh one also begins everything anew. False without memory. */
bool partition_rollout_set(partition_rollout *r, const rollout_strategy *s, bool fresh);
/* A rollout starts when the wish changes while none runs; then, and when the settings change, the
 * cut is made anew over the members. *ret_cut says that it was. */
bool partition_rollout_begin(partition_rollout *r, size_t members, bool *ret_cut);
/* Whether a pass is to be made now. */
bool partition_rollout_due(partition_rollout *r, int64_t now_ms);
/* Call it when the picks of a pass are released: whether the pass is worth telling. */
bool partition_rollout_passed(partition_rollout *r, const pass_figures *f, int64_t now_ms);

/* Members of a JSON object, each with a comma before it; and back, but for the strategy's hashes:
 * an edit that was made while nobody looked is found by comparing them. */
void partition_rollout_save(const partition_rollout *r, buf *out);
/* The same, as little as a restart needs: see partitions_keep. */
void partition_rollout_keep(const partition_rollout *r, keep_detail detail, buf *out);
struct yyjson_val;
void partition_rollout_restore(partition_rollout *r, struct yyjson_val *saved);

#endif
