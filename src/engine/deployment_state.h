/* SPDX-License-Identifier: Apache-2.0 */
/* deployment_state.h - the state of one Bundle on one cluster, and of many together, in Fleet's
 * words.
 *
 * Where Fleet shows a cluster that is held back as WaitApplied or Ready, Drover says what it is:
 * Pending when it never got anything, OutOfSync when it runs an older version. Pure. */
#ifndef DROVER_ENGINE_DEPLOYMENT_STATE_H
#define DROVER_ENGINE_DEPLOYMENT_STATE_H

#include "base/arena.h"
#include "model/fleet.h"

/* What is known of a deployment: the engine's wish and the agent's report. */
typedef struct deployment_seen {
    str wanted;           /* the version it should run */
    str live;             /* spec.deploymentID; empty: nothing was released yet */
    str applied;          /* status.appliedDeploymentID */
    bool ready;           /* status.ready */
    bool non_modified;    /* status.nonModified */
    bool deployed_failed; /* the condition Deployed is False */
} deployment_seen;

bundle_state deployment_state(const deployment_seen *d);
/* The same of a BundleDeployment; wanted is what it should run. */
deployment_seen deployment_seen_of(const bundle_deployment *d, str wanted);
/* What the agent says of it: the message of Deployed, else of Installed if that is about the live
 * version, else of Monitored; may be empty. */
str deployment_message(const bundle_deployment *d);
const char *bundle_state_text(bundle_state state);

/* A summary that is being made. Zeroed is empty; it must stay where it is while in use. */
#define SUMMARY_LISTED_MAX 10
typedef struct summary_maker {
    bundle_summary summary; /* its list is the array below */
    non_ready_resource listed[SUMMARY_LISTED_MAX];
} summary_maker;

/* Counts one deployment; the first that are not ready are listed. Views are kept. */
void summary_add(summary_maker *s, const non_ready_resource *one);
/* Adds all of another summary. The list never grows beyond its maximum. */
void summary_sum(summary_maker *s, const bundle_summary *other);
bool summary_ready(const bundle_summary *s);
/* The highest rank among those listed; NONE when none is. */
bundle_state summary_state(const bundle_summary *s);
/* "NotReady(2) [Cluster ns/name: why]; Pending(40) [...]", empty when all is well. kind is what the
 * names are of: Cluster, or Bundle. */
void summary_message(buf *out, const bundle_summary *s, const char *kind);

#endif
