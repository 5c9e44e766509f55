/* SPDX-License-Identifier: Apache-2.0 */
/* pod_rules.h - what the state of a pod, or of what was noted on its node, means to a rollout.
 *
 * Pure functions over values that a shell reads: when a stage is stuck, which failure can only come
 * again, which pods a drain takes and who is in its way, whose edit it was. They know nothing of
 * placements. */
#ifndef DROVER_ENGINE_POD_RULES_H
#define DROVER_ENGINE_POD_RULES_H

#include "base/str.h"

/* A container that waits for one of these reasons may do so for ever, and its pod never fails: the
 * stage is stuck when it has for so long. */
#define STAGE_STUCK_MS INT64_C(60000)
bool stage_is_stuck(str waiting_reason);

/* The same attempt can only fail again: it is not retried by itself. */
bool stage_only_fails_again(str reason);

/* One of a pod's tolerations, as its document has it. */
typedef struct pod_toleration {
    str key, op, effect;
} pod_toleration;
/* What a toleration makes of a node that is cordoned. */
#define CORDON_TOLERATIONS(X)                                                                      \
    X(NONE, "nothing")                                                                             \
    X(ANY, "every taint") /* the scheduler may put a successor of the pod back at once */          \
    X(NAMED, "the cordon's own taint")
typedef enum cordon_toleration {
#define X(toleration, text) TOLERATES_##toleration,
    CORDON_TOLERATIONS(X)
#undef X
} cordon_toleration;
cordon_toleration toleration_of_cordon(const pod_toleration *t);

/* A pod on a node, as far as a drain looks at it. */
typedef struct drain_pod_view {
    str space;
    str phase;
    cordon_toleration tolerates; /* the strongest */
    int64_t created_ms;
    bool of_daemon_set;
    bool mirror; /* of a static pod: only its kubelet can end it */
} drain_pod_view;
/* It has not ended. */
bool drain_runs(const drain_pod_view *p);
/* It must be gone before the node is interrupted. since_ms: when the drain began, 0: it has not.
 * Who tolerates every taint and came since then is the successor of one that was evicted, and its
 * own would come, too: it stays. */
bool drain_takes(const drain_pod_view *p, int64_t since_ms);

/* A pod that a drain waits for. */
typedef struct drain_wait {
    str space, name;
    bool holds;   /* it must not be interrupted: until it has ended nobody is evicted */
    bool refused; /* a PodDisruptionBudget does not let it go */
} drain_wait;
/* Whether people are told of a rather than of b: of who keeps all others, then of who is protected,
 * then by name. */
bool drain_tells(const drain_wait *a, const drain_wait *b);

/* In place of a budget's name: several select the pod, and no API server evicts such a one. */
#define BUDGETS_SEVERAL STR("*")

/* A pod and the PodDisruptionBudget that selects it. */
typedef struct eviction_view {
    bool running; /* its phase; any other ends without being asked */
    bool leaving; /* it is being deleted */
    bool ready;
    bool unready_always; /* unhealthyPodEvictionPolicy: AlwaysAllow */
    bool behind;         /* what the budget says is of an earlier generation of it */
    int64_t allowed;     /* disruptionsAllowed */
    int64_t healthy, desired;
} eviction_view;
/* Whether an API server would refuse to evict it, for who only looks. */
bool eviction_refused(const eviction_view *v);

/* What stands on a node about a Skyhook: the record, and the state that was written with it. */
typedef struct noted_view {
    bool record_there;
    bool record_changed; /* since it was known last */
    bool record_ours;    /* it is what this shell wrote */
    bool state_fits;     /* the record says that this state was written with it */
    bool state_gone;     /* it was there */
} noted_view;

#define NOTED_EDITS(X)                                                                             \
    X(NONE, "none")                                                                                \
    X(PERSON, "person")     /* its packages are applied again */                                   \
    X(OPERATOR, "operator") /* another one leads: all of it is to be read anew */
typedef enum noted_edit {
#define X(edit, text) NOTED_##edit,
    NOTED_EDITS(X)
#undef X
} noted_edit;
/* Who changed it. A record is only ever written together with its state, so one that does not fit
 * was left behind by somebody who edits states. */
noted_edit noted_judge(const noted_view *v);

#endif
