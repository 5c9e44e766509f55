/* SPDX-License-Identifier: Apache-2.0 */
/* reason.h - why a placement is not moving, as values.
 *
 * A reason says which rule says no, over which scope, who holds what it waits for, what would
 * release it and when it is asked again. Doing what all reasons of a placement ask for starts it in
 * that step; leaving one out does not. Where it does not matter which of several must act, all of
 * them are named and "any" says how many are enough. Text is made from these values by reason_text,
 * nowhere else. */
#ifndef DROVER_ENGINE_REASON_H
#define DROVER_ENGINE_REASON_H

#include "base/arena.h"

#define REASON_RULES(X)                                                                            \
    X(BUDGET, "budget")                                                                            \
    X(BATCH, "batch")                                                                              \
    X(STOPPED, "stopped")                                                                          \
    X(PAUSED, "paused")                                                                            \
    X(DISABLED, "disabled")                                                                        \
    X(PRIORITY, "priority")                                                                        \
    X(DEPENDENCY, "dependency") X(BRACKET, "bracket") X(CONCURRENCY, "concurrency") X(             \
        WINDOW, "window") X(APPROVAL, "approval") X(PROGRESSION, "progression")                    \
        X(COOLDOWN, "cooldown") X(ROLLOUT, "rollout") X(FREEZE, "freeze") X(DRAIN, "drain") X(     \
            TAINT, "taint") X(IGNORED, "ignored") X(PARTITION, "partition") X(OFFLINE, "offline")  \
            X(RETRY, "retry") X(POLICY_NOT_FOUND, "policyNotFound") X(NOT_READY, "notReady")       \
                X(BUSY, "busy") X(VERSION_SELECTOR, "versionSelector") X(NO_VERSION, "noVersion")  \
                    X(RUNNING, "running") X(FAILED, "failed") X(SKIPPED, "skipped")                \
                        X(ROLLED_BACK, "rolledBack") X(HALTED, "halted")                           \
                            X(NO_NAMESPACE, "noNamespace") X(NO_PARTITION, "noPartition")          \
                                X(SOAK, "soak") X(MAX_NEW, "maxNew") X(UNAVAILABLE, "unavailable") \
                                    X(NODE_LOST, "nodeLost") X(EXPRESSION, "expression")           \
                                        X(QUARANTINED, "quarantined")                              \
                                            X(VERIFICATION, "verification") X(REBOOT, "reboot")    \
                                                X(WAITING_PODS, "waitingPods")                     \
                                                    X(MALFORMED, "malformed")                      \
                                                        X(HINDERED, "hindered")

typedef enum reason_rule {
#define X(rule, text) REASON_##rule,
    REASON_RULES(X)
#undef X
} reason_rule;

#define RELEASE_ACTS(X)                                                                            \
    X(COMPLETE, "complete")                                                                        \
    X(TIME, "time")                                                                                \
    X(RESUME, "resume")                                                                            \
    X(APPROVE, "approve")                                                                          \
    X(RETRY, "retry")                                                                              \
    X(RESET, "reset")                                                                              \
    X(EDIT, "edit") X(LABEL, "label") X(UNTAINT, "untaint") X(UNCORDON, "uncordon")                \
        X(THAW, "thaw") X(PUBLISH, "publish") X(ONLINE, "online") X(CORDON, "cordon")
typedef enum release_act {
#define X(act, text) RELEASE_##act,
    RELEASE_ACTS(X)
#undef X
} release_act;

#define REASON_NEVER INT64_MIN

typedef struct reason {
    reason_rule rule;
    str scope;          /* "compartment production", "policy nodes, rule nodes/gradualRollout/0" */
    const str *holders; /* who holds what it waits for: names of targets, sorted */
    size_t holder_count;
    size_t holder_more; /* how many there are beside these: reasons.most */
    release_act act;    /* what would release it */
    const str *of;      /* and of whom; with BATCH, BUDGET, CONCURRENCY and ROLLOUT the holders and
                                  those ahead in the queue */
    size_t of_count;
    size_t of_more;
    size_t any;      /* any so many of them are enough; 0: it takes all of them */
    int64_t next_ms; /* when it is asked again by time alone; REASON_NEVER: only by a fact */
    int64_t have;    /* the numbers of the sentence: "have of limit places are taken" */
    int64_t limit;
    str detail; /* a name, message or expression the sentence quotes */
} reason;

typedef struct reasons {
    reason *at;
    size_t len;
    size_t cap;
    size_t most; /* so many names are enough for who asks; 0: all of them */
} reasons;

/* Appends; memory is a's. False without memory. */
bool reasons_add(reasons *list, arena *a, reason r);
/* The sentence, e.g. "5 of 5 places are taken". */
str reason_text(arena *a, const reason *r);
/* {"rule":...,"nextAt":...}: the one form in which programs read a reason. Of holders and of those
 * who must act at most so many names are written, and then how many more there are ("holdersMore",
 * and "more" in "releasedBy", where "any" says how many are enough, if not all are needed): where
 * everybody waits for everybody ahead, a list of all who wait would grow with the square of the
 * queue. */
#define REASON_NAMES_ALL SIZE_MAX
#define REASON_NAMES_BRIEF 20u
void reason_json(const reason *r, size_t most, arena *a, buf *out);
str reason_rule_name(reason_rule rule);
str release_act_name(release_act act);

#endif
