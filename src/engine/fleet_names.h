/* SPDX-License-Identifier: Apache-2.0 */
/* fleet_names.h - the names, labels and hashes by which Fleet's parts find each other.
 *
 * Exactly Fleet's: agents, the dashboard of Rancher and people's scripts look for them. Pure. */
#ifndef DROVER_ENGINE_FLEET_NAMES_H
#define DROVER_ENGINE_FLEET_NAMES_H

#include "base/arena.h"
#include "select/labels.h"

/* Lower-case hex of SHA-256, zero-terminated. */
#define SHA256_HEX_BYTES 65
bool sha256_hex(str text, char ret[SHA256_HEX_BYTES]);
/* The same of texts one behind the other. */
bool sha256_hex_of(const str *parts, size_t count, char ret[SHA256_HEX_BYTES]);

/* The first 12 hex digits of the hash of the first 100 bytes, zero-terminated. */
#define KEY_HASH_BYTES 13
bool key_hash(str text, char ret[KEY_HASH_BYTES]);

/* Parts joined by "-"; a result of 64 bytes and more is cut and ends in some digits of its hash, so
 * that it stays a name and stays different. ptr is NULL without memory, here and below. */
str safe_concat(arena *a, const str *parts, size_t count);

/* The namespace that holds the deployments of a Cluster. */
str cluster_namespace_name(arena *a, str cluster_namespace, str cluster);
/* What a Cluster is called whose agent registered itself. */
str agent_cluster_name(arena *a, str client_id);
/* The service account of a ClusterRegistration, which is known by its name and uid. */
str agent_account_name(arena *a, str request, str uid);

/* The Helm release of a BundleDeployment whose options name none: its name, where Helm takes it as
 * it is; else letters, digits and "-" with some digits of its hash, at most 53 in all. */
str helm_release_name(arena *a, str deployment);

/* spec.valuesHash of a BundleDeployment: of the bytes of both values as the options Secret has
 * them; empty when both are empty. */
str values_hash(arena *a, str values, str staged_values);

/* Whether a label or annotation is a person's: neither kubectl nor a part of Rancher attached it.
 */
bool label_exported(str key);
/* The labels of a Bundle that its BundleDeployments get: people's, and Fleet's own. */
bool bundle_label_inherited(str key);
/* The same for the labels of a cluster as templates see them: Fleet's own and Rancher's are back.
 */
bool cluster_label_usable(str key);

#define FLEET_PREFIX "fleet.cattle.io/"
#define LABEL_BUNDLE_NAME FLEET_PREFIX "bundle-name"
#define LABEL_BUNDLE_NAMESPACE FLEET_PREFIX "bundle-namespace"
#define LABEL_CLUSTER FLEET_PREFIX "cluster"
#define LABEL_CLUSTER_NAMESPACE FLEET_PREFIX "cluster-namespace"
#define LABEL_CONTENT_NAME FLEET_PREFIX "content-name"
#define LABEL_MANAGED FLEET_PREFIX "managed"
#define LABEL_REPO_NAME FLEET_PREFIX "repo-name"
#define LABEL_COMMIT FLEET_PREFIX "commit"
#define LABEL_HELM_OP_NAME FLEET_PREFIX "fleet-helm-name"
#define LABEL_CLUSTER_MANAGEMENT FLEET_PREFIX "cluster-management"
#define LABEL_SHARD FLEET_PREFIX "shard-ref"
#define LABEL_DISPLAY_NAME "management.cattle.io/cluster-display-name"
/* On the namespace of a cluster; the same texts as the labels. */
#define ANNOTATION_CLUSTER LABEL_CLUSTER
#define ANNOTATION_CLUSTER_NAMESPACE LABEL_CLUSTER_NAMESPACE

/* The reason of the condition Deployed while a deployment waits for another that it depends on, and
 * what Fleet's own agent, which has one reason for all, says then. It is no failure. */
#define CONDITION_DEPENDENCY "DependencyNotReady"
bool says_dependency(str reason, str message);

/* X(name, text): who holds an object until its traces are gone. */
#define FLEET_FINALIZERS(X)                                                                        \
    X(BUNDLE, FLEET_PREFIX "bundle-finalizer")                                                     \
    X(BUNDLE_DEPLOYMENT, FLEET_PREFIX "bundle-deployment-finalizer")                               \
    X(CLUSTER, FLEET_PREFIX "cluster-finalizer")                                                   \
    X(GIT_REPO, FLEET_PREFIX "gitrepo-finalizer")                                                  \
    X(HELM_OP, FLEET_PREFIX "helmop-finalizer")                                                    \
    X(SCHEDULE, FLEET_PREFIX "schedule-finalizer")
typedef enum fleet_finalizer {
#define X(name, text) FINALIZER_##name,
    FLEET_FINALIZERS(X)
#undef X
} fleet_finalizer;
str fleet_finalizer_text(fleet_finalizer finalizer);

#define SECRET_TYPE_OPTIONS FLEET_PREFIX "bundle-deployment/v1alpha1"
#define SECRET_TYPE_VALUES FLEET_PREFIX "bundle-values/v1alpha1"
#define SECRET_TYPE_OCI FLEET_PREFIX "bundle-oci-storage/v1alpha1"
#define SECRET_TYPE_CHARTS FLEET_PREFIX "bundle-helmops-access/v1alpha1"
#define LABEL_INTERNAL_SECRET FLEET_PREFIX "bundle-internal-secret"

#endif
