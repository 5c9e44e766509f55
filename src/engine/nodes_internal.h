/* SPDX-License-Identifier: Apache-2.0 */
/* nodes_internal.h - the inside of the nodes vocabulary, for node*.c and the rules beside it.
 *
 * A target is a node, a change is a Skyhook, a placement is one Skyhook on one node it selects.
 * What is known of them is changed by facts (node_targets.c, node_changes.c, node_facts.c); nodes.c
 * then evaluates the targets that something happened to and lets each change's cohort start what it
 * may. */
#ifndef DROVER_ENGINE_NODES_INTERNAL_H
#define DROVER_ENGINE_NODES_INTERNAL_H

#include <yyjson.h>

#include "base/strmap.h"
#include "base/vec.h"
#include "engine/cohort.h"
#include "engine/keymap.h"
#include "engine/package_stage.h"
#include "engine/vocabulary.h"

#define NOBODY UINT32_MAX
#define BACKOFF_MOST_MS (INT64_C(300) * 1000) /* that a failed node waits for its next attempt */

#define NODE_PREFIX "skyhook.nvidia.com/"
#define NODE_IGNORE NODE_PREFIX "ignore"
#define NODE_SEEN NODE_PREFIX "seen"
#define NODE_CORDONED_BEFORE NODE_PREFIX "cordonedBefore"
#define NODE_STATE NODE_PREFIX "nodeState_"
#define NODE_CORDON NODE_PREFIX "cordon_"
#define NODE_MEMORY NODE_PREFIX "drover_"
#define NODE_AUTO_TAINT NODE_PREFIX "autoTaint_"
#define SKYHOOK_FINALIZER NODE_PREFIX "skyhook"

/* Labels or annotations in one block of memory. Many nodes have equal labels and share theirs. */
typedef struct label_block {
    label_set set;
    uint64_t users;
    str key; /* what equal sets are found by */
} label_block;

/* One node. */
typedef struct node_target {
    char *name; /* its own: fleets that grow and shrink have ever new ones */
    uint32_t name_bytes;
    uint32_t first; /* placement, NOBODY: none */
    uint64_t uid;   /* hash; 0: not known */
    uint64_t boot;  /* hash of its bootID; 0: not known */
    int64_t created_ms;
    int64_t ready_ms; /* when it became ready, or not ready */
    label_block *labels;
    label_block *annotations; /* NULL: none */
    fact_taint *taints;
    uint16_t taint_count;
    uint16_t running;            /* stages that run there, for any Skyhook */
    uint16_t interrupts_running; /* those of them that are interrupts */
    bool present : 1;
    bool dirty : 1;
    bool not_ready : 1;
    bool unschedulable : 1;
    bool ignored : 1;
    bool touched : 1;       /* it carries or was given an annotation of ours: never auto-tainted */
    bool tainted : 1;       /* has the runtime-required taint */
    bool taint_decided : 1; /* we put it, and no fact has shown it yet */
    bool untaint_decided : 1;  /* we took it, and no fact has shown that yet */
    bool auto_tainted : 1;     /* Drover put it */
    bool uncordon_decided : 1; /* and no fact has shown it yet */
    bool cordoned_before : 1;  /* was unschedulable when Drover came: never uncordoned */
    bool before_seen : 1;      /* and a fact has shown the annotation that says so */
} node_target;

/* In flight: every phase but IDLE. */
#define NODE_PHASES(X)                                                                             \
    X(IDLE, "idle") X(DRAINING, "draining") X(WORKING, "working") X(REBOOTING, "rebooting")
typedef enum node_phase {
#define X(phase, text) PHASE_##phase,
    NODE_PHASES(X)
#undef X
} node_phase;

/* Whether the end of a claim is durable, where a shell tells it. */
typedef enum node_end { END_WRITTEN, END_UNWRITTEN, END_STUCK } node_end;

typedef struct change change;

/* One Skyhook on one node. */
typedef struct node_placement {
    change *change; /* NULL: a free place */
    placement_id id;
    uint32_t target;
    uint32_t member; /* in the cohort; NOBODY: not selected */
    uint32_t next;   /* placement of the same target */
    package_entries entries;
    uint32_t attempt;    /* only grows */
    uint32_t claim_step; /* the step that claimed it, and the one that began its last stages, */
    uint32_t stage_step; /* and what the attempt was before those; for the check */
    uint32_t attempt_before;
    uint32_t order;    /* SKYHOOK_NODE_ORDER of its claim */
    uint32_t claims;   /* how many it has had */
    uint64_t boot;     /* of the node when the last stage began; at rest: when it was seen last */
    int64_t since_ms;  /* DRAINING: when its time began; REBOOTING: when the attempt ended */
    int64_t retry_ms;  /* failed: when it is tried again */
    int64_t wake_ms;   /* its timer */
    name_id why;       /* failed: the word */
    name_id rebooted;  /* "package=generation,...": the last work that the node was rebooted for */
    char *blocker;     /* DRAINING: what blocks it: "pod\0budget\0"; NULL: nothing is known to */
    uint16_t failures; /* of what is no stage: drains and lost nodes */
    uint16_t running;  /* stages */
    uint8_t phase;
    uint8_t end;        /* node_end of its last claim */
    char *hindrance;    /* what keeps a shell from carrying out what was decided; NULL: nothing */
    int64_t refused_ms; /* since when nothing of it can be written, in this claim */
    bool selected : 1;
    bool complete : 1;     /* all packages are as wanted */
    bool done : 1;         /* complete, and holds no claim */
    bool failed : 1;       /* its last attempt failed */
    bool forgiven : 1;     /* and somebody blocked it: it is fresh again when it is released */
    bool untold : 1;       /* of no stage, so that no RECORD has said why */
    bool cordoned : 1;     /* it holds the node's cordon */
    bool cordon_seen : 1;  /* and a fact has shown it */
    bool cordon_lost : 1;  /* a person uncordoned it in flight */
    bool cordon_again : 1; /* and we have put it back once */
    bool no_cordon : 1;    /* and a second time: a person must cordon it */
    bool drained : 1;
    bool in_priority : 1;    /* in nodePriority */
    bool leave_priority : 1; /* a reset takes it out when its stage ends */
    bool reapplies : 1;      /* REAPPLY is to be decided */
    bool reset_pending : 1;  /* and its entries too */
    bool malformed : 1;      /* its nodeState could not be read */
    bool deferred : 1;       /* evaluated again when its batch is judged */
    bool leaving : 1;        /* no longer selected, but a stage still runs */
    bool astray : 1;         /* the selector leaves it out; it is selected for its uninstall */
    bool refused : 1;        /* nothing of it can be written */
    bool drain_begun : 1;    /* DRAINING: its time runs */
    bool drain_told : 1;     /* DRAIN was decided and not interrupted by a pause */
} node_placement;

/* What the nodes that have no record of Drover's own were given of a package before Drover came. */
typedef struct found_package {
    name_id name;
    name_id version;
    name_id config;  /* as in package_entry */
    name_id pending; /* of stages from config on */
} found_package;

/* One Skyhook. */
struct change {
    name_id name;
    const object *object;
    const skyhook *spec;
    arena *memory; /* of the rules */
    package_rules rules;
    name_id packages;    /* "a:1.0,b:2" */
    bool written_paused; /* as the document says */
    bool paused;
    bool disabled;
    bool policy_missing;
    bool reset_on_completion;
    bool rolling;    /* a rollout runs: something was not done */
    bool tell_reset; /* RESET is to be decided */
    bool cohort_dirty;
    bool held_taint;     /* runtimeRequired and not deleted, as the document said last */
    bool finalizer_told; /* FINALIZE was decided for the document as it is */
    int64_t priority;
    sequencing sequencing;
    cohort *cohort;
    VEC(uint32_t) members; /* placement of a member; NOBODY: free */
    VEC(uint32_t) free_members;
    VEC(uint32_t) deferred;
    int64_t selected;
    int64_t not_done;
    int64_t in_flight;
    int64_t unwritten;        /* ends that are about to be durable: until then nothing starts */
    int64_t priority_entries; /* nodePriority */
    int64_t order_offset;     /* nodeOrderOffset */
    /* What the last document wanted, to see what an edit changes. */
    VEC(package_rule) before;
    VEC(found_package) found; /* by name as the document had it when Drover came */
};

typedef struct node_timer {
    int64_t ms;
    uint32_t placement;
} node_timer;

/* The name of a node that is gone: decisions of the step in which it went may show it. */
typedef struct left_name {
    uint32_t target;
    char *text;
} left_name;

typedef struct nodes {
    engine_core *core;
    uint32_t step; /* number of the last one */
    VEC(node_target) targets;
    VEC(uint32_t) free_targets;
    VEC(left_name) left_names;
    size_t left_before; /* so many of them are of earlier steps */
    strmap by_name;     /* target */
    strmap label_sets;
    VEC(node_placement) placements;
    VEC(uint32_t) free_placements;
    keymap by_id;           /* placement_id -> placement */
    VEC(change *) changes;  /* by priority, then name */
    strmap policies;        /* name -> const object * */
    VEC(uint32_t) dirty;    /* targets */
    VEC(uint32_t) chosen;   /* scratch: targets or placements, in the order of names */
    VEC(uint32_t) round;    /* those that are being evaluated */
    VEC(node_timer) timers; /* heap with stale entries */
    size_t all_count;       /* changes with sequencing "all" */
    fact_taint runtime_required;
    cohort_events events;   /* scratch */
    VEC(uint16_t) runnable; /* scratch */
    decision unheard;       /* what is decided while nobody listens */
} nodes;

/* ---- nodes.c ---- */
void nodes_memory(nodes *self);
/* Memory of its own, zero-terminated, for texts that come from outside without end and so must not
 * be given numbers. NULL without memory. */
char *nodes_copy(nodes *self, str text);
/* The number of a text, 0 of an empty one. */
name_id nodes_name(nodes *self, str text);
void target_touch(nodes *self, uint32_t target);
/* Members whose batch has ended are evaluated again. */
void change_undefer(nodes *self, change *c);
/* A Skyhook that orders all nodes became complete, or is so no longer: whoever comes after it
 * looks. */
void change_touch_later(nodes *self, const change *c);
void change_touch_targets(nodes *self, const change *c);
change *change_find(const nodes *self, str name);
/* Fills self->chosen with the placements of a change, by name of their targets. */
void change_choose_placements(nodes *self, const change *c);
/* Sorts targets by name. */
void targets_sort(const nodes *self, uint32_t *at, size_t count);
uint32_t target_find(const nodes *self, str name);
str target_name(const nodes *self, uint32_t target);
/* The placement of a change on a target, or NULL. */
node_placement *placement_on(const nodes *self, uint32_t target, const change *c);
/* Never NULL; lost when nobody listens. */
decision *node_decide(nodes *self, decision_kind kind, const node_placement *p);
static inline uint32_t placement_index(const nodes *self, const node_placement *p)
{
    return (uint32_t)(p - self->placements.at);
}
static inline bool stage_interrupts(unsigned stage)
{
    return stage == STAGE_INTERRUPT || stage == STAGE_UNINSTALL_INTERRUPT;
}
/* A stage of the placement began or ended. */
static inline void running_count(node_target *t, node_placement *p, const package_entry *e,
                                 bool began)
{
    uint16_t one = began ? 1 : UINT16_MAX;
    p->running = (uint16_t)(p->running + one);
    t->running = (uint16_t)(t->running + one);
    if (stage_interrupts(e->stage))
        t->interrupts_running = (uint16_t)(t->interrupts_running + one);
}
static inline bool change_deleting(const change *c)
{
    return c->spec->metadata.deletion_timestamp.set;
}
static inline bool change_halted(const change *c)
{
    return c->paused || c->disabled;
}
/* Drops timers that no longer stand from the top. */
void timers_purge(nodes *self);
/* Sets or forgets (REASON_NEVER) the placement's timer. */
void timer_set(nodes *self, node_placement *p, int64_t ms);
/* Brings the placement's "complete" and "done" up to date with its entries and phase. */
void placement_count(nodes *self, node_placement *p);
/* Gives the cohort what it should know of a placement that is not in flight. */
void placement_evaluate(nodes *self, node_placement *p);
void placement_defer(nodes *self, node_placement *p);

/* ---- node_targets.c ---- */
void target_take(nodes *self, const fact_target *f);
void target_gone(nodes *self, str name);
void targets_done(nodes *self);
/* A step begins: names that only decisions of earlier ones may show are forgotten. */
void targets_forget(nodes *self);
/* Whether the Skyhook's selector matches the node. */
bool target_matches(const nodes *self, uint32_t target, const change *c);
/* Whether it is to be worked on: it matches, or the Skyhook is being deleted and left something
 * there. p is its placement, or NULL. */
bool target_selected(const nodes *self, uint32_t target, const change *c, const node_placement *p);
/* Makes, selects or deselects the placements of a target. */
void target_select(nodes *self, uint32_t target, change *c);
void placement_drop(nodes *self, uint32_t placement);
/* Leaves the cohort; what it knows of the node stays, should it be selected again. */
void placement_leave(nodes *self, node_placement *p);
/* Makes a placement that is not selected; NULL without memory. */
node_placement *placement_keep(nodes *self, uint32_t target, change *c);
/* Joins the cohort. */
void placement_join(nodes *self, node_placement *p);
label_set target_labels(const node_target *t);
str target_annotation(const node_target *t, str prefix, str name);
/* The same in a block of its own, which may be NULL. Without a pointer: it is not there. */
str annotation_of(const label_block *block, str prefix, str name);

/* ---- node_changes.c ---- */
void skyhook_take(nodes *self, const object *o);
void skyhook_gone(nodes *self, str name);
void policy_take(nodes *self, const object *o, bool gone);
void change_set_paused(nodes *self, change *c, bool paused);
/* Every compartment is at batch 1 again. */
void change_reset_batches(nodes *self, change *c);
void change_free(change *c);
/* Nodes hold the taint no longer for a Skyhook that is not runtimeRequired any more, or is being
 * deleted. */
void change_leave_taints(nodes *self, change *c);
/* What the document wanted when its nodes' state was kept: does what an edit from there to the
 * present one does. */
void change_edited_since(nodes *self, change *c, const package_rule *before, size_t count);

/* ---- node_deletion.c ---- */
bool change_has_finalizer(const change *c);
/* Whether a node that is not selected may have something of a Skyhook that is being deleted. */
bool deletion_asks(const nodes *self, uint32_t target, const change *c);
/* Whether it has, as far as can be known. */
bool deletion_takes(const node_placement *p);
/* Whether the finalizer may go. */
bool deletion_ends(const change *c);
void deletions_step(nodes *self);

/* ---- node_acts.c ---- */
void node_act(nodes *self, const fact_act *act);
void placement_reset(nodes *self, node_placement *p);
/* What a person's retry, an edit, a reboot or the end of a block does for a failed placement, and
 * an edit for one whose stages run: their failures are counted anew. */
void placement_forgive(nodes *self, node_placement *p);

/* ---- node_flight.c: a placement from its claim to its outcome ---- */
void flight_start(nodes *self, node_placement *p, bool again, const cohort_event *e, int64_t order);
void flight_advance(nodes *self, node_placement *p);
void flight_stage(nodes *self, const fact_stage *f);
/* The claim ends because target or change is gone, or it is not selected any more. */
void flight_gone(nodes *self, node_placement *p);
void flight_release(nodes *self, node_placement *p, member_state end);
void flight_fail(nodes *self, node_placement *p, str why);
void priority_leave(node_placement *p, bool counts);

/* ---- node_found.c: what was done on nodes before Drover came ---- */
/* What counts as given to a placement of which only the node's state is known. */
void found_adopt(node_placement *p);
/* Of a Skyhook's record, before the states of its nodes are made of it. "kept": by a shell, so that
 * nodes without a record of their own are known by the annotations that they lack. */
void found_get(nodes *self, change *c, yyjson_val *json, bool kept);
void found_put(const nodes *self, const change *c, buf *out);
/* A stage that succeeded was another operator's, with the files of its time. */
void found_given(const node_placement *p, package_entry *e);

/* ---- node_ends.c: ends of claims that a shell has to write first ---- */
void ends_begin(nodes *self, node_placement *p);
void ends_take(nodes *self, const fact_kept *f);
void ends_forget(node_placement *p);
/* When a flight that is refused fails; REASON_NEVER: it is not. */
int64_t ends_deadline(const node_placement *p);

/* ---- node_stages.c: what runs in a flight ---- */
/* Starts what may run. False when nothing runs and nothing can. */
bool stages_run(nodes *self, node_placement *p);
void stage_succeeded(nodes *self, node_placement *p, package_entry *e);
void stage_failed(nodes *self, node_placement *p, package_entry *e, str why);
void stage_lost(nodes *self, node_placement *p, package_entry *e);
void stage_not_begun(nodes *self, node_placement *p, package_entry *e);
void stage_record(nodes *self, const node_placement *p, const package_entry *e);
/* What nobody wants any more and what never came to the node is forgotten. */
void stages_forget(nodes *self, node_placement *p);
/* The first package whose interrupt is to come, for which the node is drained; NULL: none. */
const package_rule *stages_drain_for(const node_placement *p);

/* ---- node_cordon.c ---- */
/* Whether the node may be worked on: it needs no drain or is drained. Else decides what is missing.
 */
bool cordon_ready(nodes *self, node_placement *p);
/* A drain that takes too long makes the flight fail; the cordon stays. */
void cordon_time_out(nodes *self, node_placement *p);
void cordon_lift(nodes *self, node_placement *p);
void cordon_take(nodes *self, const fact_drain *f);
/* The target's unschedulable or its annotations changed, which were those of before. */
/* changed: it is schedulable now and was not, or the other way round. */
void cordon_see(nodes *self, node_target *t, const label_block *before, bool changed);
/* What a shell has kept of the placement was written in one patch with its cordon: on a node that
 * is schedulable now somebody has lifted it while nobody looked. */
void cordon_recall(const nodes *self, node_placement *p);
/* What blocks its drain; without a pod: nothing. Pods come and go, so their names are no names of
 * the engine's, which stay. */
void drain_block(nodes *self, node_placement *p, str pod_name, str pdb);
str drain_pod(const node_placement *p);
str drain_budget(const node_placement *p);
/* It holds the cordon, and no person has taken that away. */
static inline bool cordon_stands(const node_placement *p)
{
    return p->cordoned && !p->cordon_lost;
}
bool cordon_held_by_another(const nodes *self, const node_placement *p);

/* ---- node_reboot.c ---- */
/* The attempt that reboots ended without success: it is not judged yet. */
void reboot_wait(nodes *self, node_placement *p, str why);
/* It is said to have succeeded before the node was down. */
void reboot_wait_said(nodes *self, node_placement *p, package_entry *e);
/* Whether the reboot of an interrupt that is said to have succeeded is still to come. */
bool reboot_is_due(const nodes *self, const node_placement *p, const package_entry *e);
/* The node was rebooted for what the entry is at. */
void reboot_came(nodes *self, node_placement *p, package_entry *e);
/* Whether it was so before, perhaps before a reset. */
bool reboot_came_before(const nodes *self, const node_placement *p, const package_entry *e);
void reboot_advance(nodes *self, node_placement *p);
void reboot_seen(nodes *self, uint32_t target);
/* What is remembered of the placement is of another boot than the node's: it rebooted while nobody
 * looked. */
void reboot_remembered(nodes *self, node_placement *p);
/* The node's boot was not known before: whether it rebooted is seen from what is remembered. */
void reboot_compare(nodes *self, uint32_t target);
int64_t flight_deadline(const nodes *self, const node_placement *p);

/* ---- node_view.c, node_reasons.c, node_save.c, node_check.c: parts of the vocabulary ---- */
bool nodes_placements(const void *self, placement_visitor visit, void *context);
bool nodes_placement(const void *self, placement_id id, placement_view *ret);
void nodes_groups(const void *self, group_visitor visit, void *context);
bool nodes_paused(const void *self, str change);
bool nodes_reasons(const void *self, placement_id id, arena *a, reasons *out);
void nodes_save(const void *self, buf *out);
bool nodes_restore(void *self, str key, str json, err *error);
void nodes_unnumber(void *self);
void nodes_number(void *self);
bool nodes_full(void *self, err *error);
bool nodes_check(const void *self, err *error);
node_placement *placement_by_id(const nodes *self, placement_id id);

/* A placement's record, and a number or text of one that differs from what it is otherwise. */
void placement_put(const nodes *self, const node_placement *p, buf *out);
void record_put_number(buf *out, const char *key, int64_t value, int64_t otherwise);
int64_t record_get_number(yyjson_val *json, const char *key, int64_t otherwise);

/* ---- node_kept.c: records that a shell keeps in objects of their own ---- */
bool nodes_keep_placement(const void *self, str change_name, str target, buf *out);
bool nodes_keep_change(const void *self, str change_name, buf *out);
str nodes_annotation(const void *self, str target, str key);
bool nodes_node(const void *self, str change_name, str target, arena *a, node_view *ret);
bool nodes_config_updates(const void *self, str change_name, buf *out);
void nodes_held(const void *self, str change_name, held_view *ret);
/* Makes claims of the Skyhook's record and flights of the nodes' records agree; see there. */
bool kept_agree(nodes *self, change *c, yyjson_val *json);
/* All records are read: nodes in flight of whose claims no Skyhook's record tells get them. */
void kept_claim(nodes *self);

/* Reads what the annotation drover_SK, or a saved record, holds of a placement. */
bool placement_memory_read(nodes *self, node_placement *p, str json, err *error);

#endif
