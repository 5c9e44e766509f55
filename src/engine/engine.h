/* SPDX-License-Identifier: Apache-2.0 */
/* engine.h - which targets may change now, and why not the others?
 *
 * The one place that decides. Pure: no I/O, no clock, no randomness, no threads, no global state.
 * The same facts in the same order give the same decisions on every machine; where windows name a
 * time zone, on every machine with the same time zone database, which libical and CEL read once.
 *
 *     facts -> engine_step -> decisions          a shell makes them durable, then carries them out
 *                 |
 *                 +-> engine_reasons             for every placement that is not done: why
 *
 * One step, five moves: take the facts in and mark the groups they touch; judge what has ended; let
 * each touched group propose its next placements in its order and pace; pass each through the
 * gates; claim all limits it needs, together or not at all. A step looks only at what its facts
 * touch; engine_full looks at everything and must come to the same.
 *
 * Three vocabularies, one step: nodes.c (Skyhooks on nodes), clusters.c (Bundles on clusters) and
 * releases.c (deployments on resources) say what a target, a change and a group are; cohort.c
 * (compartments and batches) and partition.c (partitions and passes) pace any of them. */
#ifndef DROVER_ENGINE_ENGINE_H
#define DROVER_ENGINE_ENGINE_H

#include "base/err.h"
#include "engine/decision.h"
#include "engine/fact.h"
#include "engine/keep_detail.h"
#include "engine/reason.h"

typedef struct engine engine;

typedef struct engine_settings {
    int64_t node_lost_after_ms; /* 0: 60 min */
    int64_t stage_retries;      /* automatic retries a stage and version; 0: 10, negative: none */
    int64_t reboot_grace_ms; /* Ready with the old boot for so long is a failed reboot; 0: 120 s */
    bool reapply_on_reboot;
    bool ends_are_told; /* FACT_KEPT says when the end of a node's claim is durable: until then
                           nothing starts in its place */
    bool
        drains_are_told; /* FACT_DRAIN says when a drain begins: until then its time does not run */
    str runtime_required_taint; /* key=value:effect; empty:
                                   skyhook.nvidia.com=runtime-required:NoSchedule */
    int64_t start_ms; /* publication time of documents that have none; 0: the first step's time */
} engine_settings;

engine *engine_new(const engine_settings *settings, err *error);
engine *engine_free(engine *e);

/* Takes the facts in, in order, at the time now_ms (which never goes back; an earlier time counts
 * as the latest one seen) and appends decisions to out. Call again with no facts until a step
 * appends no START, DEPLOY or JOB. A fact about something the engine does not know is ignored.
 * False only without memory: the engine must then be thrown away and rebuilt. */
bool engine_step(engine *e, const fact *facts, size_t count, int64_t now_ms, decision_list *out);

/* Takes facts in without deciding anything: how a shell feeds what it knows before engine_restore.
 */
bool engine_take(engine *e, const fact *facts, size_t count, int64_t now_ms);

/* When the next step is due by time alone; REASON_NEVER if never. */
int64_t engine_next_ms(const engine *e);

#define PLACEMENT_STATES(X)                                                                        \
    X(WAITING, "waiting")                                                                          \
    X(IN_FLIGHT, "inFlight")                                                                       \
    X(FAILED, "failed") X(BLOCKED, "blocked") X(EXCLUDED, "excluded") X(DONE, "done")
typedef enum placement_state {
#define X(state, text) PLACEMENT_##state,
    PLACEMENT_STATES(X)
#undef X
} placement_state;

typedef struct placement_view {
    placement_id id;
    target_kind kind;
    placement_state state;
    str change;
    str target;
    str environment; /* release targets */
    str wanted;      /* version; empty: none */
    str current;     /* version that runs; empty: none */
    str group;       /* compartment or partition, if any */
    str next;        /* a hook at rest: the version it runs at when another member changes */
} placement_view;

/* Placements in the order: change, environment, target, all by name. False without memory: not all
 * were shown; nothing else is lost by that. */
typedef bool (*placement_visitor)(void *context, const placement_view *view);
bool engine_placements(const engine *e, placement_visitor visit, void *context);
/* The same, only those that the selector of a RolloutPolicy matches; none if there is no such
 * policy. */
bool engine_policy(const engine *e, str policy, placement_visitor visit, void *context);
/* False if there is none, or without memory. */
bool engine_placement(const engine *e, placement_id id, placement_view *ret);

/* Why a placement is not done: never empty for one that is not. False without memory, by which
 * nothing else is lost. */
bool engine_reasons(const engine *e, placement_id id, arena *a, reasons *out);

/* The answer to "why is it not moving" in one sentence. Empty text without memory. */
str engine_sentence(arena *a, const placement_view *v, const reasons *why);

#define GROUP_KINDS(X)                                                                             \
    X(COMPARTMENT, "compartment") X(PARTITION, "partition") X(CONCURRENCY, "concurrency")
typedef enum group_kind {
#define X(kind, text) GROUP_##kind,
    GROUP_KINDS(X)
#undef X
} group_kind;

/* What is known of a group now. */
typedef struct group_view {
    group_kind kind;
    str change; /* or, for concurrency, the rule's id */
    str name;
    str rule;        /* compartments and partitions of a RolloutPolicy: the rule's id, */
    str environment; /* and where; else empty */
    str strategy;    /* compartments: fixed, linear, exponential, none */
    int64_t matched;
    int64_t limit;           /* ceiling, cap or slots */
    int64_t holders;         /* who hold it now */
    int64_t peak;            /* most that ever held it */
    bool ready;              /* partitions */
    bool visited;            /* partitions: in the last pass */
    int64_t unavailable;     /* partitions */
    int64_t passed_ms;       /* partitions: when the last pass was made */
    int64_t done, in_flight; /* compartments: members that are so now */
    int64_t current_batch, completed, failed, consecutive_failures,
        last_batch_size; /* compartments */
    bool last_batch_failed, stopped;
} group_view;
typedef bool (*group_visitor)(void *context, const group_view *view);
void engine_groups(const engine *e, group_visitor visit, void *context);

/* Whether a person paused or halted this very change: a resume of it ends that. */
bool engine_paused(const engine *e, str change);

/* How a rollout stands. */
#define ROLLOUT_STATES(X)                                                                          \
    X(RUNNING, "running") /* something runs, or will by itself or when a person lets it */         \
    X(HELD, "held")       /* it can only wait for something else that failed */                    \
    X(DONE, "done") X(FAILED, "failed")
typedef enum rollout_state {
#define X(state, text) ROLLOUT_##state,
    ROLLOUT_STATES(X)
#undef X
} rollout_state;

/* The rollout of a deployment: its release targets, and the version groups they are members of with
 * all that belongs to these, hooks and rollbacks too. It is over, done or failed, when all of that
 * is; or when something failed and what is left can only wait for it. */
typedef struct rollout_view {
    str change;
    str version; /* empty: whatever each target wants */
    rollout_state state;
    int64_t targets; /* whom it concerns: the sum of the next five */
    int64_t done, in_flight, waiting, failed, rolled_back;
    int64_t excluded;  /* left out, by a rule or by a person */
    int64_t missed;    /* whom a version was meant for and does not come to: it is not ready, or was
                          withdrawn, or a newer one came first */
    int64_t groups;    /* version groups of these targets that are not over */
    int64_t ended_ms;  /* when the last job of any of these ended, well or not; 0: none has */
    placement_id open; /* whom to ask why: the first of the targets that wait, else of the groups
                          that are not over, else of the targets that failed; 0: none */
} rollout_view;
/* An empty change: there is no such deployment or version. False without memory. */
bool engine_rollout(const engine *e, str change, str version_, rollout_view *ret);

/* A freeze in force. */
typedef struct freeze_view {
    str name, selector, reason, who; /* any may be empty */
    int64_t at_ms, until_ms;         /* until_ms 0: for ever */
} freeze_view;
typedef bool (*freeze_visitor)(void *context, const freeze_view *view);
/* In the order in which they came. */
void engine_freezes(const engine *e, freeze_visitor visit, void *context);

/* A concurrency slot that a resource has now. */
typedef struct slot_view {
    str rule; /* its id */
    str target;
    bool host; /* the host asked for it (ACT_CLAIM_SLOT) and has not given it back */
    bool job;  /* it was taken for a job */
} slot_view;
typedef bool (*slot_visitor)(void *context, const slot_view *view);
/* Those of one resource, or of all (an empty one). What became of an
 * ACT_CLAIM_SLOT is seen here: a host that got what it asked for has slots with "host". */
void engine_slots(const engine *e, str target, slot_visitor visit, void *context);

/* Everything that must survive a restart and is not in documents and targets: claims, batches,
 * version groups, outcomes, approvals, freezes. Canonical text: equal state, equal bytes. */
bool engine_save(const engine *e, buf *out);
/* What is known of clusters, and without the numbers of placements, which are given anew: to be
 * restored together with what another engine saved that knows no clusters. */
bool engine_save_clusters(const engine *e, buf *out);
/* Into an engine that has taken in (engine_take) the same documents and targets and has made no
 * step of its own. */
bool engine_restore(engine *e, str saved, err *error);

/* ---- nodes whose shell keeps state in objects of their own ---- */

/* One package on a node. */
typedef struct package_view {
    str name, version;
    package_stage stage;
    package_state state;
    int64_t restarts;
    int64_t attempt;    /* of the last run */
    int64_t generation; /* of the Skyhook when the work that is not done began */
    bool running;       /* that attempt has no outcome yet: its job is to be there */
    str interrupt;      /* of an interrupt that runs: what DECISION_RUN said of it */
    bool overtaken; /* and by an edit another one is wanted there now, or none: unless its job is
                       there already it is not to begin */
} package_view;

/* One Skyhook on one node, as far as it is to be seen there. Texts are in the arena. */
typedef struct node_view {
    placement_state state;
    const package_view *packages;
    size_t package_count;
    int64_t order; /* SKYHOOK_NODE_ORDER */
    bool selected;
    bool in_order;        /* it stands in nodePriority */
    bool cordoned;        /* the Skyhook holds the node's cordon */
    bool cordoned_before; /* the node was unschedulable when Drover came */
    bool draining;        /* DECISION_DRAIN stands */
    int64_t drain_since_ms; /* since when its time runs; 0: it does not yet */
    bool malformed;       /* its nodeState could not be read */
    bool stopped;     /* nothing that was decided may begin there any more: the Skyhook is paused
                         or disabled, the node is blocked or has left it, or is to be reset */
    bool untolerated; /* a taint of the node is, whether or not that holds anything up */
    str why;          /* failed: the word */
} node_view;

/* False if there is no such placement, or without memory. */
bool engine_node(const engine *e, str change, str target, arena *a, node_view *ret);
/* Which keys of its packages' configMaps have changed and are not on all nodes yet, as JSON:
 * {"PACKAGE":["key"],"OTHER":null}; null: none are. The union over all nodes. False as above. */
bool engine_config_updates(const engine *e, str change, buf *out);
/* What holds all of a Skyhook back. */
typedef struct held_view {
    bool policy_missing; /* it names a DeploymentPolicy that is not there */
    bool predecessor;    /* one that comes first on all nodes is not done everywhere */
} held_view;
held_view engine_held(const engine *e, str change);
/* What must survive a restart, piece by piece, each in an object of its own: of one Skyhook on one
 * node, and of one Skyhook. They are the JSON of the records "nodes placement/SKYHOOK/NODE" and
 * "nodes skyhook/SKYHOOK" that engine_restore reads, in that order. Pieces may be of different
 * age, if a shell writes a Skyhook's record before the records of nodes that got their claim in
 * it, and after those of nodes whose claim has ended in it. False as above. */
bool engine_keep_placement(const engine *e, str change, str target, buf *out);
bool engine_keep_change(const engine *e, str change, buf *out);
/* An annotation of a node as the last fact had it, until the next one: a shell need not keep it,
 * too. Without a pointer: it is not there. */
str engine_annotation(const engine *e, str target, str key);

/* ---- clusters whose shell keeps state in objects of their own ---- */

/* A Bundle's rollout in numbers. engine_keep_change gives what must survive a restart and is not
 * in its deployments: the JSON of the record "clusters NAMESPACE/NAME" that engine_restore reads
 * once all deployments are reported. It changes with the partitions, approvals, soaks and failures,
 * not with every release. */
typedef struct bundle_view {
    str manifest; /* the ID of its content */
    bool paused, halted;
    size_t partitions;
    uint64_t cuts;        /* partitions were made anew so many times */
    uint64_t fingerprint; /* of what is kept: when it changes, engine_keep_change may have */
    int64_t unavailable, max_unavailable;
    int64_t created;                  /* by the last pass */
    int64_t not_ready, max_not_ready; /* partitions */
} bundle_view;
bool engine_bundle(const engine *e, str change, bundle_view *ret);
/* That record alone, into an engine that may have made steps, but none of this Bundle yet; its
 * deployments are reported. */
bool engine_restore_bundle(engine *e, str change, str record, err *error);
/* The same record as engine_keep_change gives, where that is too long. */
bool engine_keep_less(const engine *e, str change, keep_detail detail, buf *out);
/* One of its partitions. */
bool engine_bundle_partition(const engine *e, str change, size_t index, group_view *ret);

/* A Bundle on a cluster. */
typedef struct deployment_view {
    placement_id id;
    str wanted;
    str refused;        /* why its Helm values cannot be made; empty: they can */
    str hindered;       /* what is in the way of its deployment (FACT_KEPT); empty: nothing */
    uint32_t partition; /* the first it is in; UINT32_MAX: none */
    bool released;      /* the wanted version was released, and is not known to be carried out */
} deployment_view;
/* False: the cluster is no target of that Bundle. */
bool engine_deployment(const engine *e, str change, str target, deployment_view *ret);
/* The options of the wanted version there, as a BundleDeployment has them. ptr is NULL with an
 * error. */
str engine_deployment_options(engine *e, str change, str target, arena *a, err *error);

/* Whether a cluster belongs to a ClusterGroup of its namespace. */
typedef struct engine_cluster {
    str namespace_, name;
} engine_cluster;
bool engine_in_group(const engine *e, engine_cluster of, str group);

/* Evaluates everything from scratch and compares with what the steps arrived at. False, with the
 * first difference, if they are not equal. For tests. */
bool engine_full(engine *e, err *error);
/* Checks the invariants of docs/ARCHITECTURE.md that concern decisions; false names the broken one.
 * It looks at everything, and so is for tests and simulations with sim_settings.check: no program
 * calls it in real use. Call it after a step, before more facts are taken in: I1 (limits), I6
 * (nothing starts after a halt), I7 (order) and I8 (windows) are worked out anew, from documents
 * and state, for what the last step started. What began earlier cannot be judged by the present
 * state: it was right then, and is finished whatever changed since. I3 and I9 are the shells'
 * (writes); I5 is kept by attempt and job numbers as facts are taken in; I10 and I12 are about the
 * end of a run: the simulator's; the order of partitions (I7) is engine_full's, which makes each
 * pass twice.
 *
 * Always on, as assertions where a decision is made, are those that cost nothing there: I1 for
 * every claim of a compartment, slot and partition; I2 for every cordon, drain and stage; I6
 * (halts) and I8 for every job. */
bool engine_check(const engine *e, err *error);
/* Placements looked at since the engine was made: what "incremental" is measured by. */
uint64_t engine_looked_at(const engine *e);

#endif
