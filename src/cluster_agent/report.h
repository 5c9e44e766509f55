/* SPDX-License-Identifier: Apache-2.0 */
/* report.h - what the agent tells the hub: the status of a BundleDeployment, and that it lives.
 *
 * Pure: what was found comes in, the status comes out in Fleet's form, and the merge patch that
 * makes it so. "display" is the hub's own and never touched. Lists are cut at Fleet's lengths;
 * "incompleteState" says so. */
#ifndef DROVER_CLUSTER_AGENT_REPORT_H
#define DROVER_CLUSTER_AGENT_REPORT_H

#include <yyjson.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/moment.h"
#include "cluster_agent/drift.h"
#include "cluster_agent/readiness.h"

#define REPORT_LISTED_MAX 10u     /* of nonReadyStatus and of modifiedStatus, as in Fleet */
#define REPORT_RESOURCES_MAX 500u /* of resources; the counts are of all */
#define REPORT_MESSAGE_BYTES_MAX 1024u

/* How the application of the live version went. */
#define REPORT_OUTCOMES(X)                                                                         \
    X(APPLIED, "applied")         /* everything is in the cluster */                               \
    X(BAD, "bad")                 /* only an edit helps: applied, Installed is False, not ready */ \
    X(FAILED, "failed")           /* Deployed is False; it is tried again */                       \
    X(WAITING, "waiting")         /* the same for a dependency, which is no failure */             \
    X(UNSEEN, "unseen")           /* nobody can look at it, or begin, now: Monitored is False */   \
    X(UNCORRECTED, "uncorrected") /* applied; drift could not be corrected: Ready is False */
typedef enum report_outcome {
#define X(outcome, text) REPORT_##outcome,
    REPORT_OUTCOMES(X)
#undef X
} report_outcome;

/* One object that should be there, as it was found. */
typedef struct report_object {
    object_ref ref;
    const yyjson_val *live; /* NULL: it is missing */
    bool foreign;           /* it is there and not ours */
    readiness readiness;
    drift drift;
} report_object;

typedef struct report_facts {
    const yyjson_val *deployment; /* as the hub has it: live version, options, status of before */
    report_outcome outcome;
    str message;                  /* why not; empty with APPLIED */
    str release;                  /* "namespace/name:revision"; empty: nothing is installed */
    const report_object *objects; /* with APPLIED and UNCORRECTED */
    size_t len;
    moment now;
} report_facts;

/* Appends the merge patch {"status":{...}} for the status subresource. *ret_changed is false, and
 * nothing is appended, when the hub has it all already. */
bool report_patch(buf *out, const report_facts *f, bool *ret_changed, err *error);

/* The agent's sign of life: a merge patch for the status of its Cluster, which may have none. */
void check_in_put(buf *out, moment now, str agent_namespace);

#endif
