/* SPDX-License-Identifier: Apache-2.0 */
/* bundle_objects.h - what a Bundle becomes on the hub: Content, BundleDeployment and its options
 * Secret, as JSON.
 *
 * Pure: text out, no requests, no clock. Names, labels and hashes are Fleet's, so that Fleet's own
 * agents read them unchanged. What is released, and when, is decided elsewhere. */
#ifndef DROVER_OPERATOR_BUNDLE_OBJECTS_H
#define DROVER_OPERATOR_BUNDLE_OBJECTS_H

#include "base/arena.h"
#include "base/err.h"
#include "model/fleet.h"

/* ---- Content ---- */

/* Appends the object that holds a Bundle's resources: named by their hash, compressed. False with
 * an error when it would be larger than the API server takes. */
bool content_put(buf *out, raw_json resources, err *error);

/* ---- BundleDeployment ---- */

/* One of the two versions that a BundleDeployment names. */
typedef struct bundle_version {
    str id;      /* deployment ID; empty: none */
    str options; /* options_all_json of the cluster; empty: none */
} bundle_version;

typedef struct bundle_deployment_order {
    const bundle *bundle;
    str cluster_namespace; /* where the Cluster is */
    str cluster;
    str namespace_; /* where its deployments are: status.namespace */
    bundle_version staged, live;
    bool paused;
    bool off_schedule;
    raw_json downstream_resources_generation; /* kept as it is; may be NULL */
    str access; /* which Secret of a registry it needs, and in which state; empty: none */
} bundle_deployment_order;

/* What is written for one deployment. All of it is in the arena given. */
typedef struct bundle_deployment_texts {
    str object;        /* the BundleDeployment: metadata and spec */
    str values;        /* Helm values for the Secret, live; empty: none */
    str staged_values; /* and staged */
    str values_hash;   /* empty: there is nothing to keep in a Secret */
} bundle_deployment_texts;

/* False with an error: options that cannot be read, or no memory. */
bool bundle_deployment_make(arena *a, const bundle_deployment_order *o,
                            bundle_deployment_texts *ret, err *error);

/* Appends the Secret of a deployment; owner_uid is the BundleDeployment's. */
void options_secret_put(buf *out, const bundle_deployment_order *o,
                        const bundle_deployment_texts *texts, str owner_uid);

/* A Secret by which agents read a registry, as it is copied to a cluster's namespace. */
#define LABEL_ACCESS "drover.dev/access" /* of the deployment: which of them it was given */
typedef struct access_secret {
    str namespace_, name, type;
    str data; /* JSON, as the original has it */
} access_secret;
void access_secret_put(buf *out, const access_secret *secret);

/* The labels of the deployment of a Bundle on a cluster, sorted; texts are views. The content is
 * that of the live version, so that it stays as long as somebody may need it. ptr of at is NULL
 * without memory. */
label_set bundle_deployment_labels(arena *a, const bundle_deployment_order *o);

#endif
