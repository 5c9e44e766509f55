/* SPDX-License-Identifier: Apache-2.0 */
/* steps_internal.h - the inside of deployment_steps.h, for deployment_steps.c and steps_*.c alone.
 *
 * A way is a row of phases. Each has two functions: "step" gives the next step out, or moves to the
 * next phase and returns false; "answer" takes in what came of the step. */
#ifndef DROVER_CLUSTER_AGENT_STEPS_INTERNAL_H
#define DROVER_CLUSTER_AGENT_STEPS_INTERNAL_H

#include "cluster_agent/deployment_steps.h"

#define STEPS_BODY_BYTES_MAX (8u << 20)
#define STEPS_NEVER INT64_MAX

/* X(phase, functions). In the order of the way: of a deployment, then of one that is gone. */
#define STEPS_PHASES(X)                                                                            \
    X(REST, rest)           /* nothing to do before due_ms */                                      \
    X(INVENTORY, inventory) /* what is in the cluster already */                                   \
    X(VALUES, values)       /* the options Secret */                                               \
    X(CONTENT, content)     /* the Content */                                                      \
    X(PLACE, place)         /* what is wanted, and where */                                        \
    X(VALUES_FROM,                                                                                 \
      values_from)          /* of a chart: values that lie in the cluster; then placed again */    \
    X(RENDERED, rendered)   /* of a chart that is there: what helm rendered, for those who look */ \
    X(GATES, gates)         /* dependsOn, allowedTargetNamespaceSelector */                        \
    X(CHECK, check)         /* each object that is there: whose it is */                           \
    X(RECORD, record)       /* the inventory of before and now */                                  \
    X(UNCHART, unchart)     /* releases that are not wanted any more */                            \
    X(CHART, chart)         /* helm */                                                             \
    X(HAND_OVER, hand_over) /* objects that are ours become the release's */                       \
    X(APPLY, apply)         /* each object: read, unless it was, then applied */                   \
    X(PRUNE, prune)         /* what left */                                                        \
    X(SETTLE, settle)       /* the inventory of now */                                             \
    X(LOOK, look)           /* how the objects do */                                               \
    X(REPORT, report)       /* to the hub */                                                       \
    X(REMOVE, remove)       /* everything that is in the inventory */                              \
    X(REMOVE_NAMESPACE, remove_namespace)                                                          \
    X(REMOVE_RECORD, remove_record) /* the inventory itself */                                     \
    X(OVER, over)
typedef enum steps_phase {
#define X(phase, functions) PHASE_##phase,
    STEPS_PHASES(X)
#undef X
} steps_phase;

/* An object on its way. */
#define OBJECT_WAYS(X)                                                                             \
    X(UNREAD, "unread")                                                                            \
    X(FREE, "may be applied") X(APPLIED, "applied") X(ESTABLISHED, "applied and established")
typedef enum object_way {
#define X(way, text) OBJECT_##way,
    OBJECT_WAYS(X)
#undef X
} object_way;

struct deployment_steps {
    buf name;
    /* What the hub says. */
    buf seen;      /* the BundleDeployment as JSON; empty: not seen yet */
    buf seen_spec; /* what of it begins a new way when it changes */
    bool gone;
    bool restart; /* a new way is to begin */
    bool look;    /* something may have changed in the cluster */
    bool retell;  /* the hub's status may not be what was told */

    /* The step that is out. */
    bool pending;
    step out;
    buf body;

    /* The way. All its texts are in the arena. */
    steps_phase phase;
    arena *way;
    str owner;                    /* the label's value of what is ours */
    str user;                     /* whose rights count for its objects; empty: the agent's */
    const yyjson_val *deployment; /* as it was when the way began */
    inventory inventory;
    bool has_inventory;
    str values;
    arena *content;   /* what the Content holds; NULL: it is not needed any more */
    arena *rendering; /* what helm made of it; NULL: nothing yet */
    resource_files files;
    manifest manifest;
    str digest;
    object_way *ways;    /* of each wanted object */
    size_t at;           /* in the list that the phase works on */
    inventory left;      /* to be deleted */
    step_kind left_kind; /* or to be marked */
    str delete_uid;      /* of the object at hand, once it is known to be ours */
    bool discovered;     /* the kinds were read on this way, or in this look */
    bool rereading;      /* they are to be read, because an object had no place */
    bool reread;         /* they were, and nothing has gone well or wrong since */
    bool rendered;       /* a chart is installed, and kinds that it brought are to be found */
    bool values_read;    /* helm.valuesFrom */
    bool correcting;
    bool in_place;       /* the live version is in the cluster: it is looked after from now on */
    bool waiting;        /* for a definition */
    size_t establishing; /* which one */
    int64_t establish_until_ms; /* 0: none was waited for yet; STEPS_NEVER: none is any more */
    manifest removal;           /* names a chart that goes */
    steps_phase after_unchart;
    bool handed_over;
    bool chart_tried; /* and found to be where it may be */
    bool doubted;     /* it has kinds that are to be read first */

    /* What was found. Renewed with each look. */
    arena *looking;
    arena *sight; /* the object that is looked at, in whole; NULL: none */
    report_object *found;
    const wanted_object **found_wanted; /* what each should be; NULL: a chart knows */
    size_t found_len;
    bool trying; /* what looks modified may only be another form of the same */
    report_outcome outcome;
    char trouble[REPORT_MESSAGE_BYTES_MAX];

    /* Time. */
    int64_t due_ms;
    int64_t retry_ms;         /* how long after the next failure */
    int64_t failing_since_ms; /* 0: not failing */
    int64_t looked_ms;
    int64_t look_wait_ms;
    int64_t correct_due_ms, correct_wait_ms;
    int64_t tell_wait_ms;
    const char *why;
};

/* ---- the BundleDeployment of the way ---- */

const yyjson_val *steps_spec(const deployment_steps *s);
const yyjson_val *steps_options(const deployment_steps *s);
str steps_live_id(const deployment_steps *s);

/* ---- moving ---- */

/* Leaves the phase: the next one begins with its first element. Returns false. */
bool steps_go(deployment_steps *s, steps_phase phase);
/* Whose rights count from now on: those of an account in the agent's namespace, or the agent's own
 * if there is no name. False without memory. */
bool steps_act_as(deployment_steps *s, const steps_world *w, str account);
/* Gives out a step of the phase. Returns true. */
bool steps_give(deployment_steps *s, step_kind kind, str collection, str name);
/* The same for a step with the inventory. False without memory, and then it has failed. */
bool steps_give_inventory(deployment_steps *s, const steps_world *w, step_kind kind);
/* The same for an apply, or the trial of one. False without memory, and then it has failed. */
bool steps_give_apply(deployment_steps *s, const steps_world *w, step_kind kind,
                      const wanted_object *o);

/* How bad it is. */
#define STEPS_FAULTS(X)                                                                            \
    X(BAD)     /* only an edit helps */                                                            \
    X(FAILED)  /* it may go better next time */                                                    \
    X(LATER)   /* somebody cannot now: a failure when it lasts */                                  \
    X(EARLY)   /* what it needs is on its way: told when it lasts, but never as a failure */       \
    X(DEPENDS) /* on another deployment, which is not ready */
typedef enum steps_fault {
#define X(fault) FAULT_##fault,
    STEPS_FAULTS(X)
#undef X
} steps_fault;
/* Ends the way for now; it begins again after a while. Returns false. */
bool steps_fail(deployment_steps *s, const steps_world *w, steps_fault fault, const char *text);
bool steps_fail_memory(deployment_steps *s, const steps_world *w);
/* The fault of an answer that is no success. what: the object, for the message; may be NULL. */
bool steps_fail_answer(deployment_steps *s, const steps_world *w, const step_answer *answer,
                       const object_ref *what);
void steps_succeeded(deployment_steps *s);

/* A copy of an answer's object. NULL without memory. */
yyjson_val *steps_copy(arena *a, const yyjson_val *json);

/* ---- gates ---- */

/* Whether dependsOn lets it go on. False with what it waits for; *ret_wait_ms: when to ask, 0 if it
 * does not wait but something is wrong. */
bool gate_dependencies(arena *a, const yyjson_val *deployment, const steps_world *w,
                       int64_t *ret_wait_ms, err *error);
/* Whether a namespace may be used, as options.allowedTargetNamespaceSelector says. */
bool gate_namespace(arena *a, const yyjson_val *options, const yyjson_val *live, err *error);

/* ---- objects of the inventory ---- */

typedef enum left_place { LEFT_FOUND, LEFT_ASK, LEFT_NOWHERE, LEFT_LATER } left_place;
/* Where an object is that may be of a kind that is gone; the place is in a. */
left_place steps_find_left(const deployment_steps *s, const steps_world *w, arena *a,
                           const object_ref *ref, str *ret_collection);
/* Gives out the removal of a release. Returns true. */
bool steps_give_removal(deployment_steps *s, release_name which);
/* The common part of pruning, removing and handing over: goes through s->left one by one and
 * deletes, or marks, only what is ours. */
bool steps_change_left(deployment_steps *s, const steps_world *w, step_kind how, steps_phase then);
void steps_left_answer(deployment_steps *s, const steps_world *w, const step_answer *answer);

#define X(phase, functions)                                                                        \
    bool functions##_step(deployment_steps *s, const steps_world *w);                              \
    void functions##_answer(deployment_steps *s, const steps_world *w, const step_answer *answer);
STEPS_PHASES(X)
#undef X

#endif
