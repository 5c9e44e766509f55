/* SPDX-License-Identifier: Apache-2.0 */
/* deployment_steps.h - the way of one BundleDeployment into its cluster, one step after the other.
 *
 * Pure: facts and answers come in, the next step comes out; the shell carries it out and answers.
 * What is kept here is memory only: it may be lost after any step, and a new one finds its way from
 * the hub's BundleDeployment and the cluster's inventory (inventory.h) to the same end.
 *
 *     deployment_steps *s = steps_new(name);
 *     steps_see(s, bundle_deployment);            on every event of it;  steps_gone(s) when it went
 *     step next = steps_next(s, &world);          STEP_WAIT: until due_ms or the next fact
 *     ... carry it out ...
 *     steps_answer(s, &world, &answer);           exactly one answer for each step but WAIT, FORGET
 *
 * At start the shell lists the ConfigMaps labelled LABEL_INVENTORY in the agent's namespace; one
 * whose deployment the hub does not have gets a steps_new and a steps_gone: it is uninstalled.
 *
 * Whose the objects are that exist already is looked at before anything is written. The order of
 * writes: inventory (all of before and of now), definitions, other objects, deletion of what left,
 * inventory (of now), status on the hub. Of a chart that takes the place of plain
 * manifests, or of itself under another name: it is installed first, and what was there goes then;
 * what is in its way is handed over to helm, or goes first. */
#ifndef DROVER_CLUSTER_AGENT_DEPLOYMENT_STEPS_H
#define DROVER_CLUSTER_AGENT_DEPLOYMENT_STEPS_H

#include "cluster_agent/discovery.h"
#include "cluster_agent/inventory.h"
#include "cluster_agent/manifest.h"
#include "cluster_agent/report.h"

/* Who manages the fields that are applied. What is applied to a namespace that others may use, too,
 * has a manager for each deployment, so that none takes away what another said. */
#define STEPS_MANAGER "drover-cluster-agent"
/* How long until the cluster's objects are looked at again: those that are not ready, all. */
#define STEPS_LOOK_SOON_MS 2000
#define STEPS_LOOK_MS 30000
/* Changes of objects that come in quick succession are looked at together. */
#define STEPS_SETTLE_MS 1000
#define STEPS_DEPENDENCY_MS 15000
#define STEPS_RETRY_FIRST_MS 1000
#define STEPS_RETRY_MAX_MS 300000
/* A server that cannot now is not told to the hub as a failure until it lasts that long. */
#define STEPS_PATIENCE_MS 30000
/* How long definitions may take to be established. */
#define STEPS_ESTABLISH_MS 60000

typedef struct deployment_steps deployment_steps;

/* X(name, text). The first group is sent to the hub, the second to the cluster. */
#define STEP_KINDS(X)                                                                              \
    X(WAIT, "wait")                       /* until due_ms; why says for what */                    \
    X(READ_CONTENT, "read content")       /* hub: GET */                                           \
    X(READ_VALUES, "read values")         /* hub: GET of the options Secret */                     \
    X(REPORT, "report")                   /* hub: merge patch of the subresource "status" */       \
    X(DISCOVER, "discover")               /* read the cluster's kinds anew into world.discovery */ \
    X(READ_INVENTORY, "read inventory")   /* GET */                                                \
    X(WRITE_INVENTORY, "write inventory") /* create without version, else update with it */        \
    X(DELETE_INVENTORY, "delete inventory") /* with uid */                                         \
    X(READ_GATE, "read gate")               /* GET of what lets others in, or not */               \
    X(READ_OBJECT, "read object")           /* GET */                                              \
    X(APPLY_OBJECT, "apply object")         /* server-side apply by manager, with force */         \
    X(TRY_OBJECT, "try object")             /* the same, but only tried */                         \
    X(MARK_OBJECT, "mark object")           /* merge patch of its metadata, with uid */            \
    X(DELETE_OBJECT, "delete object")       /* with uid; in the background */                      \
    X(TRY_CHART, "try chart") /* the same, but only tried; answer.text: what it rendered */        \
    X(INSTALL_CHART, "install chart") /* helm upgrade --install; answer.text: helm get manifest */ \
    X(READ_CHART, "read chart")       /* helm get manifest alone */                                \
    X(REMOVE_CHART, "remove chart")   /* helm uninstall; done also if there is none */             \
    X(FORGET, "forget")               /* nothing is left: steps_free it */
typedef enum step_kind {
#define X(kind, text) STEP_##kind,
    STEP_KINDS(X)
#undef X
} step_kind;
const char *step_kind_text(step_kind kind);

/* Texts live until the next call with the same steps. */
typedef struct step {
    step_kind kind;
    str collection; /* path, as a kube_write takes it */
    str name;
    str body;
    str version, uid; /* preconditions; empty: none */
    str manager;      /* of APPLY_OBJECT and TRY_OBJECT */
    str user;         /* of objects and charts: whose rights count; empty: the agent's */
    bool force;
    int64_t due_ms; /* of WAIT; INT64_MAX: only a fact ends it */
    str why;        /* of WAIT, for logs and for people */
    const manifest
        *chart; /* of TRY_CHART and INSTALL_CHART: files, chart, release; of the others: release */
} step;

#define STEP_OUTCOMES(X)                                                                           \
    X(OK, "ok")             /* done, with the object in json where there is one */                 \
    X(MISSING, "missing")   /* 404: no such object; what a delete wants, too */                    \
    X(NOWHERE, "nowhere")   /* 404 of the collection: its kind, or that version, is not served */  \
    X(CONFLICT, "conflict") /* a precondition did not hold, or it exists, or a field is another's; \
                             * of a chart: an object of it exists and is not the release's */      \
    X(INVALID, "invalid")   /* 400, 422, or helm found a fault in the chart: only an edit helps */ \
    X(REFUSED, "refused")   /* 403, helm failed, no helm program: tried again, slowly */           \
    X(BUSY, "busy")         /* helm found its release locked: nothing was tried */                 \
    X(LATER, "later")       /* no answer, 429, 5xx: it may have taken effect or not */
typedef enum step_outcome {
#define X(outcome, text) OUTCOME_##outcome,
    STEP_OUTCOMES(X)
#undef X
} step_outcome;

typedef struct step_answer {
    step_outcome outcome;
    const yyjson_val *json; /* copied if it is needed; NULL: none */
    str text;         /* of a chart: what it rendered; of one that was tried: its hooks, too */
    bool definitions; /* of a chart that was tried: it has some in its folder "crds" */
    str message;      /* unless OK: the server's or helm's words */
} step_answer;

/* What all deployments of the cluster share. */
typedef struct steps_world {
    discovery *discovery;
    str agent_namespace;                  /* of the inventories */
    const yyjson_val *const *deployments; /* all of the cluster, for dependsOn */
    size_t deployment_count;
    int64_t now_ms; /* of a clock that only goes forward */
    moment time;    /* what is told as the time */
    bool watched;   /* steps_look is called when objects change: then no looking every so often */
} steps_world;

/* name: of the BundleDeployment. NULL without memory. */
deployment_steps *steps_new(str name);
deployment_steps *steps_free(deployment_steps *s);

/* The BundleDeployment as the hub has it now; copied. False without memory: show it again. */
bool steps_see(deployment_steps *s, const yyjson_val *deployment);
/* The hub has it no more: what it put into the cluster is to go. */
void steps_gone(deployment_steps *s);
/* Something of what it put into the cluster may have changed. */
void steps_look(deployment_steps *s);

/* Whether a Content is unpacked for it and not placed yet: then it takes many times the memory of
 * one that is. Whoever has several of them lets one after the other read its Content. */
bool steps_unpacking(const deployment_steps *s);
/* Between a step and its answer the same step is returned again. */
step steps_next(deployment_steps *s, const steps_world *w);
void steps_answer(deployment_steps *s, const steps_world *w, const step_answer *answer);

#endif
