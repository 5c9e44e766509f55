/* SPDX-License-Identifier: Apache-2.0 */
/* chain.h - may this version start on this release target now? Internal to src/engine.
 *
 * The rules are asked in one order: halt, quarantine, pause, freeze, versionSelector, approval,
 * environmentProgression, deploymentBracket, deploymentWindow, versionCooldown, gradualRollout,
 * deploymentDependency and version dependencies, retry, deploymentPolicy, rolloutStrategy,
 * resourceConcurrency. A "no" is a value. Deciding stops at the first "no"; explaining asks
 * every rule the same question over the same state.
 *
 * What facts matter to a rule is not said by the rule but by where its facts are taken in: each
 * marks the targets, lanes and sites it can change the answer for. */
#ifndef DROVER_ENGINE_CHAIN_H
#define DROVER_ENGINE_CHAIN_H

#include "engine/releases_internal.h"

typedef struct chain_context {
    releases *r;
    uint32_t target; /* NO: any target of the lane; only version-level rules are asked then */
    uint32_t lane;
    uint32_t version; /* the one that would start */
    uint32_t group;   /* the version group it would start in; NO: none */
    bool starting; /* the group's first job: all members are asked, as if they were done in turn */
    arena *a;      /* explaining: memory for names and sentences; NULL: only the answer counts */
    int64_t would_ms; /* explaining: when the version-level rules are satisfied if people do now
                         what they ask for; set by chain_explain */
} chain_context;

#define VERDICTS(X) X(ALLOWED, "allowed") X(WAITING, "waiting") X(REFUSED, "refused")
typedef enum verdict_kind {
#define X(kind, text) VERDICT_##kind,
    VERDICTS(X)
#undef X
} verdict_kind;

typedef struct verdict {
    verdict_kind kind;
    int64_t satisfied_ms; /* allowed: since when; LONG_AGO if the rule has no such time */
    reason reason;        /* next_ms also counts when allowed: the answer may change then */
    reasons more;         /* explaining: what else the same rule says no for */
    bool implied;         /* another rule's "no" is the cause of this one: not to be listed */
} verdict;

/* When a rule is asked. */
#define RULE_LEVELS(X)                                                                             \
    X(VERSION, "version")     /* which version is wanted */                                        \
    X(FIRST, "first")         /* of a version group only its first job, else every job */          \
    X(EACH, "each")           /* every job */                                                      \
    X(ELSEWHERE, "elsewhere") /* not a question of the chain: concurrency.c, rule_rollback.c ...   \
                               */
typedef enum rule_level {
#define X(kind, text) LEVEL_##kind,
    RULE_LEVELS(X)
#undef X
} rule_level;

/* One rule kind. verdict is given an ALLOWED verdict without times and changes it. */
typedef struct rule_ops {
    unsigned order; /* place in the chain */
    rule_level level;
    bool job_level; /* a bypass does not touch it */
    void (*verdict)(const chain_context *c, uint32_t rule, verdict *v);
} rule_ops;

extern const rule_ops version_selector_ops, approval_ops, progression_ops, bracket_ops, window_ops,
    cooldown_ops, rollout_ops, dependency_ops, retry_ops, elsewhere_ops, cohort_rule_ops,
    partition_rule_ops;
const rule_ops *rule_ops_of(rule_kind kind);

/* One rule's answer, bypasses included. */
void chain_rule(const chain_context *c, uint32_t rule, verdict *v);
/* Says no. */
void verdict_no(verdict *v, verdict_kind kind, reason_rule rule, int64_t next_ms);

/* The version-level rules alone. ret->satisfied_ms: when all of them were satisfied. Stops at
 * the first "no"; *ret_selected is false if it was versionSelector's. */
void chain_version(const chain_context *c, verdict *ret, bool *ret_selected);
/* Everything behind them but the limits. False at the first "no". *ret_next_ms: when to ask again,
 * whatever the answer. */
bool chain_allows(const chain_context *c, int64_t *ret_next_ms);
/* The same without dependencies: what a slot is kept for. */
bool chain_allows_but_dependencies(const chain_context *c);
/* Every "no" of the chain, as reasons. False without memory. */
bool chain_explain(const chain_context *c, reasons *out);
/* Those of the version-level rules. */
bool chain_explain_version(const chain_context *c, reasons *out);
bool verdict_report(const chain_context *c, const verdict *v, reasons *out);

/* release_reason.c: the newest version that would be wanted had it not been skipped or rolled back
 * here; NO: none. */
uint32_t target_refusal(const releases *r, uint32_t t, rel_refusal *ret);

/* bracket.c: what a group that is collecting lacks, besides time. */
bool collecting_explain(const chain_context *c, reasons *out);

/* freeze.c: halt, quarantine, pause and freeze, which are no rules of a policy. */
void people_verdict(const chain_context *c, verdict *v);
bool people_explain(const chain_context *c, reasons *out);

/* rule_version_selector.c: keys of rel_rule.selected are (version, environment), or with this bit
 * (version, target). */
#define SELECTED_BY_TARGET UINT32_C(0x80000000)

/* rule_window.c */
struct window_cache *window_free(struct window_cache *w);
/* Whether at_ms is inside an occurrence of the rule's windows, and when the next change is. */
bool window_inside(releases *r, uint32_t rule, int64_t at_ms, int64_t *ret_start_ms,
                   int64_t *ret_change_ms);
/* The first moment from at_ms on at which the rule lets things start; NEVER if there is none. */
int64_t window_opens(releases *r, uint32_t rule, int64_t at_ms);
/* Whether windows can hold the start: a first deployment disturbs nothing that runs, unless its
 * group prepares the resource or has a member that runs there. */
bool window_concerns(const chain_context *c);
/* The first rule whose window is shut for a start on the target, or of the whole group, whatever
 * people let pass; NO: none. */
uint32_t window_shut(releases *r, uint32_t t, uint32_t version, uint32_t group);

/* rule_rollout.c */
uint64_t fnv1a_64(str text, uint64_t hash);
#define FNV1A_64_OFFSET UINT64_C(14695981039346656037)
/* The position of a target (in its cell, for a version) or of a resource (in a bracket). */
int64_t rollout_position(releases *r, uint32_t rule, uint32_t lane, uint32_t target,
                         uint32_t version);
void orders_extend(releases *r, const index_list *targets);
void bracket_order_start(releases *r, uint32_t rule);
void order_done(rel_order *o);
/* When the turn of a target comes; NEVER while that cannot be known. */
int64_t rollout_turn(const chain_context *c, uint32_t rule);

/* rule_dependency.c */
bool dependency_upstream(releases *r, uint32_t rule, uint32_t deployment);
bool dependency_matches(releases *r, uint32_t rule, uint32_t deployment, uint32_t version);
void version_dependency_verdict(const chain_context *c, verdict *v);

/* rule_retry.c: how a failed attempt goes on. */
typedef struct retry_answer {
    bool again;      /* it is tried again by itself */
    int64_t at_ms;   /* from then on */
    int64_t allowed; /* attempts that may fail before it is left alone */
} retry_answer;
retry_answer retry_ask(const releases *r, uint32_t t);
/* The back-off after a number of failed attempts, in seconds. */
int64_t retry_backoff_seconds(const retry *rule, int64_t failed_attempts);

/* rule_rollback.c */
bool rollback_wanted(const releases *r, uint32_t t);

/* cel_scope.c */
bool scope_resource_matches(releases *r, const expression *e, uint32_t res, bool *ret, err *error);
bool scope_deployment_matches(releases *r, const expression *e, uint32_t d, bool *ret, err *error);
bool scope_environment_matches(releases *r, const expression *e, uint32_t env, bool *ret,
                               err *error);
bool scope_version_matches(releases *r, const expression *e, uint32_t d, uint32_t v, bool *ret);
/* Whether some version of the deployment could match, also one that is not known yet. */
bool scope_version_may_match(releases *r, const expression *e, uint32_t d, bool *ret);
/* deployment, environment, resource and, unless NO, version. */
typedef struct scope_release {
    uint32_t deployment, environment, resource, version;
} scope_release;
bool scope_release_matches(releases *r, const expression *e, scope_release of, bool *ret,
                           err *error);
bool expression_sees(const expression *e, str variable);

struct cohort_event;
/* Of a batch: the resources whose starts come right behind it. NULL without memory. */
const str *pace_members(releases *r, const rel_pace *p, const struct cohort_event *batch);

#endif
