/* SPDX-License-Identifier: Apache-2.0 */
/* releases_internal.h - what the files of the third vocabulary share. Nobody else includes it.
 *
 * A release target is one deployment on one resource in one environment.
 *
 *     documents -> release_target.c   which targets there are, and which policies they fall under
 *               -> lane.c             targets under the same rules; the newest version they may
 * have
 *               -> bracket*.c         members of a bracket on a resource, locked into version
 * groups
 *               -> chain.c, rule_*.c  may it start now? every rule in a file of its own
 *               -> concurrency.c      slots: all that are needed, or none
 *               -> release_job.c      the job starts; the job has ended
 *
 * Everything is in arrays and is named by its index; NO is no index. What a fact touches is marked
 * and looked at in the next step; what only time can change is in one heap. */
#ifndef DROVER_ENGINE_RELEASES_INTERNAL_H
#define DROVER_ENGINE_RELEASES_INTERNAL_H

#include "base/names.h"
#include "engine/keymap.h"
#include "engine/vocabulary.h"
#include "model/document.h"

#define NO KEYMAP_NONE
#define NEVER REASON_NEVER
#define LONG_AGO INT64_MIN /* publication of a version that is known by its tag only */
#define SECOND_MS INT64_C(1000)

typedef VEC(uint32_t) index_list;
typedef VEC(uint8_t) byte_list;

/* ---- what documents say ---- */

typedef struct rel_version {
    const version *doc; /* NULL: known by its tag only, or its document is gone */
    name_id name;       /* of the document */
    name_id id;         /* metadata.uid, else the name */
    name_id tag;
    uint32_t deployment;
    int64_t published_ms;
    uint64_t wish;    /* hash of the tag, not 0 */
    uint32_t refused; /* on so many targets */
} rel_version;

typedef struct rel_deployment {
    const deployment *doc; /* NULL: not there (yet, or any more) */
    name_id name, id;
    uint64_t hash; /* of the name */
    bool paused, halted;
    bitset resources;    /* those its selector matches */
    index_list versions; /* newest first */
    index_list cells;
} rel_deployment;

typedef struct rel_environment {
    const environment *doc;
    name_id name, id;
    bitset resources;
    index_list cells;
} rel_environment;

/* A slot of one resourceConcurrency rule that this resource has. */
typedef struct rel_hold {
    uint32_t rule;
    int64_t progress_ms; /* the last start or end of a job under it */
    bool host;           /* a FleetLock host has it */
    bool job;            /* jobs have it */
    bool late;           /* it outlived slotTimeoutSeconds and is kept all the same */
    uint64_t step;       /* in which jobs took it; for the check */
} rel_hold;

typedef struct rel_resource {
    const object *object; /* NULL: gone */
    name_id name, id;
    bool halted;
    bool quarantined; /* a slot was taken away from it */
    bool dirty;       /* its slots are to be looked at */
    bool untold;      /* its compartments are to be told how its groups stand */
    uint32_t active;  /* the version group that executes (or has failed) here */
    index_list targets;
    index_list sites; /* by name */
    VEC(rel_hold) holds;
    int64_t wake_ms;
} rel_resource;

/* ---- rules ---- */

/* A claim that waits for a slot. What it is ordered by stands in it: one that has left is still in
 * the heap and keeps its place there, whatever has become of its group since. */
typedef struct rel_waiter {
    int64_t position;
    int64_t locked_ms; /* of a group */
    uint32_t claim;    /* CLAIM_TARGET or CLAIM_GROUP */
    uint32_t stamp;    /* of the claim when it was put here: another one means it has left */
    uint32_t resource;
    uint32_t site; /* of a group */
} rel_waiter;
#define CLAIM_TARGET(index) ((index) << 1)
#define CLAIM_GROUP(index) ((index) << 1 | 1u)
#define CLAIM_IS_GROUP(claim) (((claim) & 1u) != 0)
#define CLAIM_INDEX(claim) ((claim) >> 1)

typedef VEC(rel_waiter) waiter_heap;

/* Positions that do not move while a rollout goes on. */
typedef struct rel_order {
    uint32_t version; /* NO: of a bracket */
    keymap positions; /* target, or resource for a bracket -> position */
    uint32_t frozen;  /* how many there were when it started */
    uint32_t next;
} rel_order;

struct window_cache;
struct slot_queue;
struct cohort;
struct rel_partitions;

typedef struct rel_rule {
    const rule *doc; /* NULL: gone; what it left is still there */
    rule_kind kind;
    name_id id;
    uint32_t policy;
    str scope;     /* "policy NAME, rule ID"; lives as long as the names */
    bool bypassed; /* some bypass names it */
    /* resourceConcurrency */
    bitset group; /* the resources that match */
    int64_t matched, held, peak;
    int64_t quarantined;
    waiter_heap waiters;
    struct slot_queue *queue; /* what questions are answered from; decides nothing */
    /* deploymentWindow */
    struct window_cache *windows;
    bool asked; /* about something it can hold, since the engine was made; decides nothing */
    /* deploymentBracket: settings outlive the document, for groups that execute */
    readiness_mode readiness;
    unchanged_strategy unchanged;
    overlap_strategy overlap;
    window_trigger trigger;
    rollback_strategy strategy;
    int64_t window_ms;
    rel_order order;
    uint32_t unfinished; /* locked groups that are not over */
    /* gradualRollout: the bracket of the same policy */
    uint32_t bracket;
    /* Answers of the rule's expression that are known: versionSelector by (version, environment or
     * target); deploymentDependency by version, and by deployment whether any version could match;
     * environmentProgression by environment. */
    keymap selected;
    byte_list matches;
    byte_list upstream;
} rel_rule;

typedef struct rel_policy {
    const rollout_policy *doc;
    name_id name;
    bitset targets; /* those its selector matches */
    index_list rules;
    index_list broken; /* targets its selector could not be evaluated for */
} rel_policy;

/* ---- release targets ---- */

/* (deployment, environment): what progress is counted over. */
typedef struct rel_success {
    uint32_t target;
    int64_t at_ms;
} rel_success;

typedef struct rel_tally {
    uint32_t version;
    VEC(rel_success) successes; /* the first of each target, by time */
    VEC(rel_success) failures;
} rel_tally;

typedef struct rel_cell {
    uint32_t deployment, environment;
    index_list targets;
    uint32_t idle; /* of these, hooks that have nobody to prepare: they never run */
    index_list lanes;
    VEC(rel_tally) tallies;
    VEC(rel_order) orders;
} rel_cell;

/* A version as all targets of a lane see it. */
typedef struct rel_candidate {
    uint32_t version;
    bool passes;
    bool selected; /* versionSelector lets it be */
    int64_t eligible_ms;
} rel_candidate;

/* A rule of a lane that paces. */
typedef struct lane_pace {
    uint32_t rule;
    uint8_t kind;
    uint32_t pace; /* that of the lane's targets; NO: not looked up yet, or there is none */
} lane_pace;

/* Targets of one cell under the same policies: they share every rule. */
typedef struct rel_lane {
    uint32_t cell;
    index_list policies;         /* by priority, then name */
    index_list rules;            /* in the order of the chain */
    byte_list kinds;             /* of these: most who walk them look for one kind */
    size_t gates_from, gates_to; /* of these, those asked of each start, [from, to) */
    VEC(lane_pace) paces;        /* those of these that pace, in the same order */
    uint32_t bracket;            /* the bracket rule they are members under; NO: none */
    job_role role;               /* in it */
    bool each; /* a version-level rule looks at the resource: no common candidates */
    bool dirty;
    uint32_t users;                /* targets in it */
    VEC(rel_candidate) candidates; /* newest first, up to the first that passes */
    int64_t wake_ms;
} rel_lane;

#define REFUSALS(X) X(SKIPPED, "skipped") X(ROLLED_BACK, "rolledBack")
typedef enum rel_refusal {
#define X(why, text) REFUSAL_##why,
    REFUSALS(X)
#undef X
} rel_refusal;

typedef struct rel_target {
    placement_id id; /* 0: gone, the place is free */
    uint32_t deployment, environment, resource;
    uint32_t cell, lane, site;
    uint32_t current, previous; /* versions that run, and ran before: both known to be good */
    uint32_t wanted;     /* the newest that passes the version-level rules, else the current one */
    uint32_t aim;        /* the newest that would be wanted if people and progress allowed it */
    int64_t eligible_ms; /* when wanted passed them */
    int64_t current_ms;
    /* the job that runs: number 0 is none */
    int64_t job;
    uint64_t job_epoch; /* documents as they were when it started */
    uint32_t job_version;
    uint32_t job_group;
    job_role job_role;
    /* the last attempt, if it failed */
    uint32_t failed_version; /* NO: it did not */
    uint32_t attempts;       /* of it, that failed */
    int64_t failed_ms;
    job_states failed_as;
    name_id failure;
    bool failed_rollback;
    uint32_t retried;     /* what failed and a person lets be tried again, until a job starts; NO */
    uint32_t rollback_to; /* a version to go back to, at once; NO: none */
    uint32_t refusals;    /* how many versions are refused here */
    /* bookkeeping */
    bool dirty, relane, gone;
    bool idle;   /* a hook on a resource where its bracket has no other member */
    bool broken; /* an expression about it could not be evaluated: nothing starts */
    uint32_t stamp;
    uint32_t waits_in; /* the concurrency rule it waits for */
    int64_t waits_at;  /* its position there */
    int64_t wake_ms;
} rel_target;

/* ---- version groups ---- */

#define GROUP_STATES(X)                                                                            \
    X(COLLECTING, "collecting")                                                                    \
    X(READY, "ready")                                                                              \
    X(QUEUED, "queued")                                                                            \
    X(EXECUTING, "executing")                                                                      \
    X(COMPLETED, "completed") X(FAILED, "failed") X(SUPERSEDED, "superseded")
typedef enum rel_group_state {
#define X(state, text) GROUP_STATE_##state,
    GROUP_STATES(X)
#undef X
} rel_group_state;

#define GROUP_MEMBER_STATES(X)                                                                     \
    X(PENDING, "pending")                                                                          \
    X(RUNNING, "running")                                                                          \
    X(DONE, "done")                                                                                \
    X(FAILED, "failed")                                                                            \
    X(SKIPPED, "skipped") X(TO_ROLL_BACK, "toRollBack") X(ROLLED_BACK, "rolledBack")
typedef enum rel_member_state {
#define X(state, text) MEMBER_IS_##state,
    GROUP_MEMBER_STATES(X)
#undef X
} rel_member_state;

typedef struct rel_member {
    uint32_t target;
    uint32_t version;
    uint32_t later; /* merge: the version to run after the one that runs now; NO: none */
    uint32_t good;  /* what ran before the group: where a rollback goes; NO: nothing */
    job_role role;
    rel_member_state state;
    bool redeploy; /* runs although the version runs already */
    bool ran;
    uint32_t started; /* order of starts in the group, from 1 */
} rel_member;

typedef struct rel_group {
    bool used;
    uint32_t site;
    uint32_t number;
    name_id name;
    rel_group_state state;
    int64_t opened_ms, locked_ms;
    int64_t turn_ms;   /* what turn times count from: locked, or that of the group it supersedes */
    bool took_over;    /* the slots of the group it superseded are its own */
    bool rolling_back; /* all_members */
    bool counted;      /* in its rule's unfinished */
    uint32_t starts;
    uint32_t stamp;
    uint32_t waits_in;
    int64_t waits_at; /* its position there */
    VEC(rel_member) members;
} rel_group;

/* (bracket rule, environment, resource): where version groups come and go. */
typedef struct rel_site {
    bool used;
    uint32_t rule, environment, resource;
    index_list targets;
    int64_t opened_ms;  /* of the group that is collecting; NEVER: none is */
    uint32_t announced; /* its number, if its opening was told; 0: not */
    uint32_t groups;    /* number of the last one */
    uint32_t ready;     /* the group that is locked and not started; NO: none */
    uint32_t active;    /* the one that executes or has failed; NO: none */
    bool gates;         /* every gate but the limits lets the ready group start */
    bool dirty;
    int64_t wake_ms;
} rel_site;

/* The version of a deployment that batches bring out. */
typedef struct rel_work {
    uint32_t deployment, version;
} rel_work;

/* Compartments of a deploymentPolicy rule, or partitions of a rolloutStrategy rule: counted per
 * deployment and environment over targets, in a bracket per environment over resources. */
typedef struct rel_pace {
    uint32_t rule;
    uint32_t cell; /* NO: of a bracket */
    uint32_t environment;
    struct cohort *cohort;            /* deploymentPolicy, else NULL */
    struct rel_partitions *partition; /* rolloutStrategy, else NULL */
    bool dirty;
    bool complete; /* everybody was done: the next work begins at batch 1 */
    bool begun;    /* works are known, those of the last step: what comes to them is an edit */
    bool edited;   /* another version is to be brought out since the last step */
    VEC(rel_work) works;
    int64_t wake_ms;
} rel_pace;

/* ---- what people did ---- */

typedef struct rel_approval {
    name_id version;     /* id */
    name_id environment; /* 0: all */
    name_id who;
    int64_t at_ms;
    bool approved;
} rel_approval;

typedef struct rel_bypass {
    name_id rule, version, environment, resource; /* 0: any, for the last two */
    int64_t at_ms, until_ms;                      /* 0: for ever */
    name_id reason;
} rel_bypass;

typedef struct rel_freeze {
    name_id name, who, reason, selector;
    int64_t at_ms, until_ms; /* 0: for ever */
    expression expression;   /* source.ptr NULL: everything */
    bitset targets;
    bool failed; /* the selector could not be compiled or evaluated: it holds everything */
} rel_freeze;

/* ---- the whole ---- */

#define WAKE_KINDS(X)                                                                              \
    X(TARGET, "target")                                                                            \
    X(LANE, "lane") X(SITE, "site") X(RESOURCE, "resource") X(PEOPLE, "people") X(PACE, "pace")
typedef enum wake_kind {
#define X(kind, text) WAKE_##kind,
    WAKE_KINDS(X)
#undef X
} wake_kind;

typedef struct rel_wake {
    int64_t at_ms;
    uint32_t kind;
    uint32_t index;
} rel_wake;

typedef struct releases {
    engine_core *core;
    VEC(rel_version) versions;
    VEC(rel_deployment) deployments;
    VEC(rel_environment) environments;
    VEC(rel_resource) resources;
    VEC(rel_policy) policies;
    VEC(rel_rule) rules;
    VEC(rel_cell) cells;
    VEC(rel_lane) lanes;
    VEC(rel_target) targets;
    VEC(rel_group) groups;
    VEC(rel_site) sites;
    VEC(rel_pace) paces;
    VEC(rel_approval) approvals;
    VEC(rel_bypass) bypasses;
    VEC(rel_freeze) freezes;
    keymap deployment_of, environment_of, resource_of, policy_of; /* by name_id */
    keymap version_of;                                            /* (deployment, tag) */
    keymap version_named;                                         /* by the document's name_id */
    keymap cell_of;                                               /* (deployment, environment) */
    keymap target_of;                                             /* (cell, resource) */
    keymap placement_of;                                          /* placement -> target */
    keymap pace_of;   /* (rule, cell), or (rule, environment) with PACE_BRACKET */
    keymap refused;   /* (target, version) -> rel_refusal */
    keymap succeeded; /* (target, version): it has, there */
    index_list dirty_targets, dirty_lanes, dirty_sites, dirty_resources, dirty_paces, relanes;
    index_list untold;
    index_list free_groups;
    index_list concurrency; /* rules of that kind that are alive */
    VEC(rel_wake) wakes;
    int64_t people_wake_ms; /* when a freeze or bypass runs out */
    index_list round;       /* what the present round works off */
    index_list sorting;     /* scratch of sorted lists */
    index_list needed;      /* scratch of slots_take */
    waiter_heap candidates; /* of this step: claims that all gates but the limits let through */
    int64_t last_job;
    int64_t step_job; /* the last one before the last step */
    uint64_t step;    /* number of the last step; for the check */
    uint64_t epoch;   /* rises when documents or resources change */
    uint64_t changes; /* rises with every fact and step: what was asked before may not be true */
    bool halted;
    bool asking;      /* somebody only wants to know: no position is given out */
    bool gates_only;  /* and only of gates: limits and turns are left out of reasons */
    int64_t asked_ms; /* when they ask: the engine's now_ms may be a later moment meanwhile */
    bool restored;    /* no step has looked at what was read yet */
    bool refill;      /* rules changed: lanes are to be filled in again */
    arena *texts;     /* scopes, compiled selectors of freezes */
    arena *scratch;   /* of one evaluation */
    expression_list expressions;
} releases;

/* ---- small things ---- */

static inline str rel_text(const releases *r, name_id n)
{
    return names_text(r->core->names, n);
}
static inline int64_t earlier(int64_t a, int64_t b)
{
    if (a == NEVER || b == NEVER)
        return a == NEVER ? b : a;
    return a < b ? a : b;
}
static inline int64_t later_of(int64_t a, int64_t b)
{
    return a > b ? a : b;
}
/* The lane's next rule of a kind, *at on; NO: there are no more. Start with *at = 0. */
static inline uint32_t lane_next(const rel_lane *lane, rule_kind kind, size_t *at)
{
    while (*at < lane->kinds.len)
        if (lane->kinds.at[(*at)++] == kind)
            return lane->rules.at[*at - 1];
    return NO;
}
/* Whether one of the lane's rules that pace is this one. */
static inline bool lane_paced(const rel_lane *lane, uint32_t rule_)
{
    for (size_t i = 0; i < lane->paces.len; i++)
        if (lane->paces.at[i].rule == rule_)
            return true;
    return false;
}
/* Remembers that memory ran out; returns false. */
bool rel_no_memory(releases *r);
/* Pushes an index; no_memory is remembered. */
void index_add(releases *r, index_list *list, uint32_t index);
/* Removes one entry, keeping the order. */
void index_drop(index_list *list, uint32_t index);
bool index_has(const index_list *list, uint32_t index);
name_id rel_name(releases *r, str text);

/* releases.c: marking */
void mark_target(releases *r, uint32_t t);
void mark_lane(releases *r, uint32_t l);
void mark_site(releases *r, uint32_t s);
void mark_resource(releases *r, uint32_t res);
/* All targets, sites and slots of a resource. */
void mark_resource_all(releases *r, uint32_t res);
/* Everything there is; and also which rules each target is under. */
void mark_all(releases *r);
void mark_anew(releases *r);
void wake_at(releases *r, wake_kind kind, uint32_t index, int64_t at_ms);
/* By deployment, environment, resource; and by name. */
void targets_in_order(releases *r, index_list *list);
void resources_in_order(releases *r, index_list *list);
/* A decision about a target, with its names filled in; NULL when nothing is to be decided now. */
decision *decide(releases *r, decision_kind kind, uint32_t target);

/* release_document.c */
void document_take(releases *r, const object *o);
void document_gone(releases *r, const object *o);
void resource_take(releases *r, const fact_target *f);
void resource_gone(releases *r, str name);
bool version_newer(const releases *r, uint32_t a, uint32_t b);
/* The version of a deployment with a tag; made if it is not known. */
uint32_t version_by_tag(releases *r, uint32_t deployment, name_id tag);
uint32_t version_by_id(const releases *r, str id, str deployment);
/* A bracket rule that is gone, for groups of it that are not over. */
uint32_t rule_gone_at(releases *r, str policy, str id);

/* release_target.c */
void targets_of_resource(releases *r, uint32_t res);
void targets_of_deployment(releases *r, uint32_t d);
void targets_of_environment(releases *r, uint32_t e);
void policy_match_all(releases *r, uint32_t p);
/* rule_verification.c */
void releases_metrics(const void *self, release_name of, metric_visitor visit, void *context);
/* rule_window.c */
bool releases_windows(const void *self, int64_t from_ms, int64_t to_ms, window_visitor *visit,
                      void *context);
uint32_t release_find(const releases *r, str deployment, str environment, str resource);
void tally_add(releases *r, uint32_t target, uint32_t version, int64_t at_ms, bool success);
void tally_forget(releases *r, uint32_t target);
/* What happens in an environment may let a version into others. */
void mark_followers(releases *r, uint32_t cell);
const rel_tally *tally_find(const rel_cell *c, uint32_t version);

/* lane.c */
void lanes_settle(releases *r);
void lane_refresh(releases *r, uint32_t l);
/* Recomputes wanted and aim. True if one of them changed. */
bool target_want(releases *r, uint32_t t);
/* The version a placement is on its way to: that of its group, else the wanted one. */
uint32_t target_goal(const releases *r, uint32_t t);
bool target_refused(const releases *r, uint32_t t, uint32_t version, rel_refusal *ret);
void target_refuse(releases *r, uint32_t t, uint32_t version, rel_refusal why);
void target_pardon(releases *r, uint32_t t, uint32_t version);
/* versionSelector would have this version. */
bool target_selects(releases *r, uint32_t t, uint32_t v);
/* The version-level rules' answer for one version on one target. */
rel_candidate version_answer(releases *r, uint32_t t, uint32_t v);
/* Whether the version may be deployed by its own state. */
bool version_ready(const releases *r, uint32_t v);

/* bracket_lock.c */
void site_refresh(releases *r, uint32_t s);
uint32_t site_at(releases *r, uint32_t rule, uint32_t environment, uint32_t resource);
/* Members stand in the order of their deployments' names. */
void site_enter(releases *r, uint32_t s, uint32_t target);
int site_cmp(const releases *r, uint32_t a, uint32_t b);
void site_leave(releases *r, uint32_t s, uint32_t target);
/* Notes which members are hooks without anybody to prepare. */
void site_idle(releases *r, uint32_t s);
void target_idle(releases *r, uint32_t t, bool idle);
/* What is known of a group that is collecting, computed from the present facts. */
typedef struct site_collection {
    int64_t opened_ms; /* NEVER: nothing to collect */
    int64_t locks_ms;  /* the latest moment of its lock; NEVER: when something is eligible */
    bool due;          /* it locks now */
    uint32_t eligible; /* ordinary members with a new version that passes the version-level rules */
    uint32_t news;     /* of these, versions that no unfinished group has locked */
    uint32_t ordinary;
    uint32_t missing; /* a hook without any version; NO: none */
} site_collection;
void site_collect(releases *r, uint32_t s, site_collection *ret);
name_id group_name(releases *r, uint32_t s, uint32_t number);

/* bracket.c */
void group_advance(releases *r, uint32_t g);
void group_state_set(releases *r, uint32_t g, rel_group_state state, str detail);
void group_end(releases *r, uint32_t g, rel_group_state state, str detail);
uint32_t group_new(releases *r, uint32_t s);
rel_member *member_in(const releases *r, uint32_t g, uint32_t target);
/* Its place in the group that executes on the resource, else in the one that is ready, as long as
 * it has something to do there. A group that has begun keeps its members, also those that are under
 * other rules by now. NULL: none. */
rel_member *member_of_target(const releases *r, uint32_t t, uint32_t *ret_group);
bool group_runs(const rel_group *g);
bool group_has_work(const rel_group *g);
bool member_over(const rel_member *m);
/* Which members of an executing group may start their next job now, but for dependencies and
 * retry. */
bool member_open(const rel_group *g, const rel_member *m);
void group_outcome(releases *r, uint32_t g, uint32_t t, bool success);
/* Starts what the group lets start now; true if something did. */
bool group_start_members(releases *r, uint32_t g);
/* The member that may go back to what it ran now, but for slots; NULL: none. */
rel_member *group_goes_back(releases *r, uint32_t g);
void group_begin(releases *r, uint32_t g);
/* The group that is ready takes the place of one that failed; or joins one that executes. */
void group_supersede(releases *r, uint32_t s);
void group_merge(releases *r, uint32_t s);
/* Whether one that executes takes in others now, as far as it is for itself to say. */
bool group_takes_in(const releases *r, uint32_t g);
/* Locked versions that were withdrawn before their job began are locked again. */
void group_relock(releases *r, uint32_t g);
/* Locked versions that run already are dropped. True if nothing is left to change. */
bool group_prune(releases *r, uint32_t g);
/* A failed group goes on when nobody in it has failed any more. */
void group_resume(releases *r, uint32_t g);
void member_skip(releases *r, uint32_t g, rel_member *m);
void member_retry(releases *r, uint32_t g, rel_member *m);
void group_forget_target(releases *r, uint32_t g, uint32_t t);
str group_state_text(rel_group_state s);

/* concurrency.c */
int64_t rule_limit(const rel_rule *rule);
/* Whether the rule counts this resource at all. */
bool slot_applies(const releases *r, uint32_t rule, uint32_t res);
rel_hold *hold_find(const releases *r, uint32_t res, uint32_t rule);
void slot_release(releases *r, uint32_t res, uint32_t rule, str why);
/* Whether the rule's slots are all taken, and none by the claim's resource. */
bool slot_lacks(const releases *r, uint32_t claim, uint32_t rule);
/* Takes every slot the claim needs, or none and names the rule that is full. */
bool slots_take(releases *r, uint32_t claim, uint32_t *ret_full);
/* The concurrency rules a claim needs a slot of, as far as they count its resource. */
void claim_rules(releases *r, uint32_t claim, index_list *ret);
void slots_settle(releases *r, uint32_t res);
void slots_progress(releases *r, uint32_t res);
void claim_offer(releases *r, uint32_t claim);
/* Puts a claim into the queue of a rule that is full. */
void claim_wait(releases *r, uint32_t claim, uint32_t full);
void claim_withdraw(releases *r, uint32_t claim);
void claims_serve(releases *r);
int64_t claim_position(releases *r, uint32_t claim);
uint32_t claim_resource(const releases *r, uint32_t claim);
bool slot_claim_host(releases *r, uint32_t res, str rule);
void slot_free_host(releases *r, uint32_t res, str rule);
bool waiter_stands(const releases *r, const rel_waiter *w);
bool waiter_before(const releases *r, const rel_waiter *a, const rel_waiter *b);
/* The claim as it would stand in a queue now. */
rel_waiter waiter_of(releases *r, uint32_t claim);
/* When a slot is overdue that nothing moves under; NEVER: not by time alone. */
int64_t slot_due(const releases *r, uint32_t res, uint32_t rule_);
/* Whether the resource must keep its slot. */
bool slot_needed(releases *r, uint32_t res, uint32_t rule);

/* release_job.c */
void job_start(releases *r, uint32_t t, uint32_t version, uint32_t group, job_role role);
void job_take(releases *r, const fact_job *f);
/* Whether a claim may start now, all gates but the limits asked; the time to ask again
 * otherwise. */
bool claim_gates(releases *r, uint32_t claim, int64_t *ret_next_ms);
/* The same, and its compartments have it in a batch. */
bool claim_passes(releases *r, uint32_t claim, int64_t *ret_next_ms);
/* Looks at one target that is in no group, and offers or withdraws its claim. */
void target_evaluate(releases *r, uint32_t t);
bool target_pending(const releases *r, uint32_t t);
/* Failed, and nothing but a person or a new version gets it going. */
bool target_failed(releases *r, uint32_t t);
void target_drop(releases *r, uint32_t t);

/* release_act.c */
void act_take(releases *r, const fact_act *a);
void people_expire(releases *r);
void people_freeze(releases *r, rel_freeze f);
void releases_freezes(const void *self, freeze_visitor visit, void *context);
bool releases_paused(const void *self, str change);
void people_bypass(releases *r, rel_bypass b);
void people_approve(releases *r, rel_approval a);
bool target_frozen(const releases *r, uint32_t t, const rel_freeze **ret);
void freezes_match(releases *r, uint32_t t);
const rel_bypass *bypass_find(const releases *r, uint32_t rule, uint32_t version,
                              uint32_t environment, uint32_t resource);

/* rule_compartments.c: compartments, and what they share with partitions */
#define PACE_BRACKET UINT32_C(0x80000000)
/* A target has come under its lane's rules, or its labels changed; or it leaves. */
void paces_join(releases *r, uint32_t t);
void paces_leave(releases *r, uint32_t t, bool for_good);
/* Whether rules of that kind pace, and that one of them changed. */
bool rule_paces(rule_kind kind);
void paces_rule_changed(releases *r, uint32_t rule);
/* Says whether every gate but the limits lets the claim start. */
void paces_report(releases *r, uint32_t claim, bool gates);
/* Compartments and partitions over resources hear of them once in a round, when all their sites are
 * settled. */
void paces_tell(releases *r);
/* A job of the target, or the first of a group's, has started; it succeeded, or a person says that
 * all is well, whatever is wanted by now; its last attempt has failed. */
void paces_started(releases *r, uint32_t t);
void paces_whole(releases *r, uint32_t t);
void paces_failed(releases *r, uint32_t t);
/* Whether the claim is in a batch of every compartment and released by every partition it needs. */
bool paces_permit(const releases *r, uint32_t claim);
/* Passes over partitions; and then, when all they released was looked at, batches. */
void paces_partitions(releases *r);
void paces_compartments(releases *r);
void pace_mark(releases *r, uint32_t p);
/* Compartments of a deployment, or of a bracket's rule or member, begin at batch 1 again; empty:
 * all of them. */
void paces_reset(releases *r, str change);
bool pace_empty(const rel_pace *p);
void paces_done(releases *r);
/* Why they hold the claim; a target also when that version comes in (NO: what is wanted now). */
bool paces_reasons(const releases *r, uint32_t claim, uint32_t version_, arena *a, reasons *out);
/* One pace that the target is under: whether it lets the target start, why not, and a number that
 * all have in common whom it holds for the same reasons. */
bool pace_permits(const releases *r, uint32_t p, uint32_t t);
bool pace_reasons(const releases *r, uint32_t p, uint32_t t, arena *a, reasons *out);
uint32_t pace_place(const releases *r, uint32_t p, uint32_t t);
bool paces_check(const releases *r, err *error);
bool paces_full(releases *r, err *error);
/* What batches or partitions are counted over: a deployment, in a bracket the rule. */
str pace_change(const releases *r, const rel_pace *p);
/* As whom its compartments count a target. */
uint32_t pace_member(const releases *r, const rel_pace *p, uint32_t t);
/* States as restored targets and groups say, then the saved batches or partitions. */
bool pace_restore(releases *r, uint32_t p, yyjson_val *saved, err *error);
void pace_save(const releases *r, const rel_pace *p, buf *out);
uint32_t pace_find(releases *r, uint32_t rule, uint32_t environment, uint32_t cell);
void paces_groups(const releases *r, group_visitor visit, void *context);
/* Whether a compartment has the target, or its resource, in a batch. */
bool pace_in_batch(const releases *r, uint32_t t);
/* A pace of that rule kind that the target is under, behind the given one; NO: no more. */
uint32_t pace_next(const releases *r, uint32_t t, rule_kind kind, uint32_t behind);

/* rule_partitions.c: p is a pace with partitions, a member is a resource */
bool partition_pace_new(releases *r, uint32_t p);
struct rel_partitions *partition_pace_free(struct rel_partitions *x);
void partition_pace_rule(releases *r, uint32_t p);
void partition_pace_join(releases *r, uint32_t p, uint32_t res);
void partition_pace_leave(releases *r, uint32_t p, uint32_t res);
bool partition_pace_has(const rel_pace *p, uint32_t res);
bool partition_pace_empty(const rel_pace *p);
/* What is known of a target; in a bracket its resource's sites know whether gates are open. */
typedef struct partition_news {
    uint32_t target;
    bool gates; /* every gate but the limits lets it start */
    bool kept;  /* a compartment has it in a batch: it keeps its release */
} partition_news;
void partition_pace_report(releases *r, uint32_t p, partition_news news);
/* The same of a resource in a bracket, when all its sites are settled. */
void partition_pace_tell(releases *r, uint32_t p, uint32_t res);
void partition_pace_started(releases *r, uint32_t p, uint32_t t);
void partition_pace_whole(releases *r, uint32_t p, uint32_t res);
void partition_pace_failed(releases *r, uint32_t p, uint32_t res);
bool partition_pace_permits(const releases *r, uint32_t p, uint32_t t);
/* The first partition of a member. */
uint32_t partition_pace_place(const rel_pace *p, uint32_t res);
void partition_pace_step(releases *r, uint32_t p);
/* With manual partitions, somebody who is in none. */
bool partition_excludes(const releases *r, uint32_t t);
/* The name of the first partition a target is in; empty. */
str partition_of_target(const releases *r, uint32_t t);
bool partition_pace_reasons(const releases *r, uint32_t p, uint32_t t, arena *a, reasons *out);
bool partition_pace_check(const releases *r, const rel_pace *p, err *error);
bool partition_pace_compare(releases *r, uint32_t p, err *error);
void partition_pace_save(const releases *r, const rel_pace *p, buf *out);
bool partition_pace_restore(releases *r, uint32_t p, yyjson_val *saved, err *error);
bool partition_pace_groups(const releases *r, const rel_pace *p, group_visitor visit,
                           void *context);
/* A person approves a partition, or resumes what a failureThreshold halted. */
void partition_acts(releases *r, const fact_act *act);

/* slot_reason.c */
struct slot_queue *slot_queue_free(struct slot_queue *q);
/* The holders of a rule's slots, and who stands ahead of the claim in its queue; and that of every
 * rule whose slot it lacks. */
bool slot_reason(releases *r, uint32_t claim, uint32_t rule, arena *a, reasons *out);
bool slot_reasons(releases *r, uint32_t claim, arena *a, reasons *out);

/* release_reason.c */
placement_state target_state(releases *r, uint32_t t);
bool target_reasons(releases *r, uint32_t t, arena *a, reasons *out);

/* release_hope.c: whether one of them gets on, and not only with the help of a person who repairs
 * what failed. version: of the rollout that is asked about; NO: whatever is wanted. */
bool hope_of_any(releases *r, const index_list *waits, uint32_t version);

/* release_rollout.c */
void releases_rollout(const void *self, str change, str version_, rollout_view *ret);

/* release_save.c */
void releases_write(const releases *r, buf *out);
bool releases_read(releases *r, str key, str json, err *error);
void releases_unnumber(void *self);
void releases_number(void *self);

/* release_history.c: I6, I7 and I8 of what the last step started. */
bool releases_history(const releases *r, err *error);

/* release_check.c */
bool releases_compare(releases *r, err *error);
bool releases_verify(const releases *r, err *error);

#endif
