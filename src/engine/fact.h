/* SPDX-License-Identifier: Apache-2.0 */
/* fact.h - what the engine is told.
 *
 * A fact is something that is so or that happened, as the outside reports it: a document, a target,
 * an outcome, a person's act. Facts may come late, twice or in another order than they happened;
 * each is taken for what it says and for which version it says it. Views in a fact need to live
 * only until engine_step returns, except documents: see FACT_DOCUMENT. */
#ifndef DROVER_ENGINE_FACT_H
#define DROVER_ENGINE_FACT_H

#include "base/str.h"
#include "model/object.h"
#include "select/labels.h"

#define FACT_KINDS(X)                                                                              \
    X(DOCUMENT, "document")          /* a document was written or changed */                       \
    X(DOCUMENT_GONE, "documentGone") /* and is there no longer */                                  \
    X(TARGET, "target")              /* a target appeared or changed: its whole present state */   \
    X(TARGET_GONE, "targetGone")                                                                   \
    X(STAGE, "stage")   /* one stage of a package on a node ended */                               \
    X(DRAIN, "drain")   /* how far a node's drain is */                                            \
    X(KEPT, "kept")     /* what was decided of a placement on a node is durable, or cannot be */   \
    X(REPORT, "report") /* what a cluster's agent says of a change */                              \
    X(JOB, "job")       /* a job of a release target ended */                                      \
    X(ACT, "act")       /* a person did something */

typedef enum fact_kind {
#define X(kind, text) FACT_##kind,
    FACT_KINDS(X)
#undef X
} fact_kind;

#define TARGET_KINDS(X) X(NODE, "node") X(CLUSTER, "cluster") X(RESOURCE, "resource")
typedef enum target_kind {
#define X(kind, text) TARGET_##kind,
    TARGET_KINDS(X)
#undef X
} target_kind;

/* A taint or a toleration as far as the choice of nodes needs it. */
typedef struct fact_taint {
    str key;
    str value;
    str effect;
} fact_taint;

/* FACT_TARGET. Whole state: what is not set is not so. Everything is copied. */
typedef struct fact_target {
    target_kind kind;
    str name;
    str uid; /* another uid under the same name is another target */
    int64_t created_ms;
    label_set labels;
    /* nodes */
    bool not_ready;         /* Ready is known and not true */
    int64_t ready_since_ms; /* since when it is so, or is not; 0: not known */
    bool unschedulable;
    str boot_id;
    const fact_taint *taints;
    size_t taint_count;
    label_set annotations; /* only those under skyhook.nvidia.com/; of clusters: any */
    /* clusters */
    str namespace_;       /* the registration namespace the Cluster lives in */
    str deploy_namespace; /* status.namespace; empty: none yet */
    bool paused;
    int64_t last_seen_ms;     /* 0: never */
    raw_json template_values; /* spec.templateValues; NULL: none */
    /* resources */
    const object *document; /* what CEL sees; kept until replaced or gone */
} fact_target;

#define OUTCOMES(X) X(SUCCEEDED, "succeeded") X(FAILED, "failed") X(LOST, "lost")
typedef enum outcome {
#define X(kind, text) OUTCOME_##kind,
    OUTCOMES(X)
#undef X
} outcome;

/* FACT_STAGE: answers one DECISION_RUN. An answer to another attempt than the present one is
 * ignored. */
typedef struct fact_stage {
    str change;
    str target;
    str package;
    str version;
    str stage;
    int64_t attempt;
    outcome outcome;
    str reason; /* why it failed: a word such as Evicted, DeadlineExceeded, ImagePullBackOff */
    bool found; /* what ran was there before Drover came: another operator's, with its files */
    bool never_retry; /* the same attempt can only fail again; some reasons say so themselves */
    bool nothing_ran; /* FAILED: before any step of the package began, as for want of its image */
    bool not_begun;   /* LOST: it never ran, since its number was used before or it is wanted no
                         longer; the next attempt follows, and no loss is counted */
} fact_stage;

/* FACT_DRAIN: answers DECISION_DRAIN. */
typedef struct fact_drain {
    str target;
    bool begun; /* no more than that: what was decided is being done from now on */
    bool done;
    str blocking_pod;    /* namespace/name, when it is not */
    str blocking_budget; /* the PodDisruptionBudget that refuses, or empty */
} fact_drain;

/* FACT_KEPT: what a shell that makes decisions durable in objects of their own says of one
 * placement. Of a Bundle on a cluster it is always only shown: until it is durable, or the next
 * report of what was released. */
typedef struct fact_kept {
    str change;
    str target;
    bool durable; /* all that was decided of it is written, the end of its claim included */
    str why;      /* else: what is in the way, in words for people */
    bool passing; /* and it says nothing of the target: it is shown, and has no other effect */
} fact_kept;

/* FACT_REPORT: the state of a bundle's deployment on a cluster, as its BundleDeployment says. */
typedef struct fact_report {
    str change; /* the Bundle, namespace/name */
    str target;
    bool exists; /* false: there is no deployment (any more) */
    str live;    /* spec.deploymentID */
    str applied; /* status.appliedDeploymentID */
    bool ready;
    bool failed; /* Deployed or Installed is False for the live version */
    str message;
    bool released;  /* to a target that joined just now: the live version was released before, and
                       what fails of it counts */
    bool under_way; /* likewise, and it is not known to be carried out: what shows another version,
                       or none, is older */
    bool withdrawn; /* what was released could not be carried out and will not be: this is how it
                       is, although it is older than the release */
} fact_report;

/* FACT_JOB: answers DECISION_JOB. */
typedef struct fact_job {
    str deployment;
    str environment;
    str resource;
    int64_t job; /* the number the decision gave it */
    outcome outcome;
    str reason;
    bool verification_failed; /* the job succeeded, its verification did not */
} fact_job;

#define ACTS(X)                                                                                    \
    X(PAUSE, "pause")                                                                              \
    X(RESUME, "resume")                                                                            \
    X(APPROVE, "approve")                                                                          \
    X(REJECT, "reject")                                                                            \
    X(RETRY, "retry")                                                                              \
    X(SKIP, "skip")                                                                                \
    X(BYPASS, "bypass")                                                                            \
    X(ROLLBACK, "rollback")                                                                        \
    X(RESET, "reset")                                                                              \
    X(RESET_BATCHES, "resetBatches")                                                               \
    X(FREEZE, "freeze") X(THAW, "thaw") X(HALT, "halt") X(CLAIM_SLOT, "claimSlot")                 \
        X(FREE_SLOT, "freeSlot")
typedef enum act_kind {
#define X(kind, text) ACT_##kind,
    ACTS(X)
#undef X
} act_kind;

/* FACT_ACT. Which members matter depends on the act; empty means "any" or "all". */
typedef struct fact_act {
    act_kind act;
    str who;
    str change; /* Skyhook, Bundle (namespace/name) or Deployment */
    str target;
    str environment;
    str version;   /* id of a Version */
    str rule;      /* BYPASS: rule id */
    str partition; /* APPROVE of a partition */
    str name;      /* FREEZE, THAW: the freeze's name */
    str selector;  /* FREEZE: CEL, empty is everything */
    str reason;
    int64_t until_ms;  /* FREEZE, BYPASS: 0 is for ever */
    str package;       /* RESET of a target: only this package */
    str stage;         /* and only from this stage on */
    bool keep_batches; /* RESET: --skip-batch-reset */
} fact_act;

typedef struct fact {
    fact_kind kind;
    union {
        const object *document; /* DOCUMENT: kept by pointer until it is replaced or gone.
                                   DOCUMENT_GONE: any object of the same kind, namespace and name */
        fact_target target;     /* TARGET; TARGET_GONE reads kind and name */
        fact_stage stage;
        fact_drain drain;
        fact_kept kept;
        fact_report report;
        fact_job job;
        fact_act act;
    };
} fact;

#endif
