/* SPDX-License-Identifier: Apache-2.0 */
/* decision.h - what the engine wants done.
 *
 * A shell makes each decision durable, then carries it out. Carrying one out twice changes nothing.
 * Texts are views that stay valid until the next engine_step. */
#ifndef DROVER_ENGINE_DECISION_H
#define DROVER_ENGINE_DECISION_H

#include "base/str.h"
#include "base/vec.h"

typedef uint32_t placement_id; /* given out once, never reused */

#define DECISION_KINDS(X)                                                                          \
    X(START, "start")     /* the placement got its claim: it is in flight from now on */           \
    X(RELEASE, "release") /* its claim ended, with an outcome */                                   \
    X(BATCH, "batch")     /* a group opened a batch */                                             \
    X(JUDGE, "judge")     /* and judged it */                                                      \
    X(HALT, "halt")       /* a group starts nothing more */                                        \
    X(RESET, "reset")     /* a group is at batch 1 again */                                        \
    X(CORDON, "cordon")                                                                            \
    X(UNCORDON, "uncordon")                                                                        \
    X(DRAIN, "drain")                                                                              \
    X(RUN, "run")         /* run one stage of a package on a node */                               \
    X(RECORD, "record")   /* a package's entry in the node's state changed */                      \
    X(REAPPLY, "reapply") /* the node was rebooted, so all packages are applied to it again */     \
    X(TAINT, "taint")                                                                              \
    X(UNTAINT, "untaint")                                                                          \
    X(DEPLOY, "deploy")     /* make this version the live one on a cluster */                      \
    X(PASS, "pass")         /* a pass over a change's partitions came to this */                   \
    X(JOB, "job")           /* run a job for a release target */                                   \
    X(GROUP, "group")       /* a version group changed its state */                                \
    X(SLOT, "slot")         /* a resource took or gave back a concurrency slot */                  \
    X(FINALIZE, "finalize") /* a Skyhook that is deleted has nothing left to do: its               \
                               finalizer may go. Decided again when the document is shown          \
                               with it once more */                                                \
    X(WAKE, "wake")         /* ask again at this time, at the latest */

typedef enum decision_kind {
#define X(kind, text) DECISION_##kind,
    DECISION_KINDS(X)
#undef X
} decision_kind;

#define JOB_ROLES(X) X(MEMBER, "member") X(PRE, "pre") X(POST, "post") X(ROLLBACK, "rollback")
typedef enum job_role {
#define X(role, text) ROLE_##role,
    JOB_ROLES(X)
#undef X
} job_role;

/* A step of a large fleet makes one of these for each target that it moves, and more: what no
 * decision needs together shares its place. Look only at what the kind has. */
typedef struct decision {
    decision_kind kind;
    placement_id placement;
    str change; /* Skyhook, Bundle (namespace/name) or Deployment */
    str target;
    str environment; /* release targets */
    str version;     /* START, DEPLOY, JOB, RUN */
    str group;       /* compartment, partition, version group or concurrency rule */
    str state;  /* RECORD: complete, in_progress, ...; GROUP: its state; RELEASE: the outcome */
    str detail; /* one word or sentence more: why it failed, the interrupt, the reason of a halt */
    union {
        str package; /* RUN, RECORD; DRAIN: the first one that interrupts the node */
        str rule;    /* BATCH, JUDGE, HALT, RESET, PASS of a rule of a RolloutPolicy: its id */
    };
    union {
        struct { /* PASS: released first, healthy and broken clusters; partitions reached, all, and
                    not ready ones */
            int64_t created, updated, fixed, visited, partitions, not_ready;
        };
        struct { /* JUDGE */
            int64_t complete, erroring, blocked;
        };
        str stage;          /* RUN, RECORD */
        str outside;        /* JOB: the id of a deploymentWindow that holds for it and was shut when
                               it began, which a person let it pass; empty: none. Of a version group
                               its first job says it: what has begun is finished */
        const str *members; /* BATCH of a rule: the resources in it, size of them, until the next
                               step; else NULL: each START of a node names its batch */
        int64_t at_ms;      /* WAKE */
    };
    int64_t number; /* JOB: its number; RUN: the attempt; BATCH, JUDGE: the batch's number; PASS:
                       its own; START: place in the rollout (SKYHOOK_NODE_ORDER) */
    int64_t size;   /* BATCH, JUDGE: members; SLOT: taken now */
    job_role role;
    bool failed; /* JUDGE: the batch failed; RELEASE: the placement did */
    bool first;  /* DEPLOY: the first version on this cluster; START: it ran nothing before */
    bool fix;    /* DEPLOY: the cluster was unavailable already */
    bool retry;  /* START, JOB: tried again, in no batch */
    bool taken;  /* SLOT: taken, else given back */
    bool untold; /* RELEASE: it failed, and no RECORD has said why: of no stage */
} decision;

typedef VEC(decision) decision_list;

#endif
