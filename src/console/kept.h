/* SPDX-License-Identifier: Apache-2.0 */
/* kept.h - Skyhooks and Bundles, their nodes and clusters, and policies, as they were last seen.
 *
 * For what the engine does not keep: labels to group by, and documents to plan with. Of each object
 * only what those need is kept. Of a Bundle, whose resources may be a megabyte, that is no document
 * at all: the shell has it, and gives it to a plan (cluster_shell_objects); the same holds for
 * deployments, of which there are very many. */
#ifndef DROVER_CONSOLE_KEPT_H
#define DROVER_CONSOLE_KEPT_H

#include <yyjson.h>

#include "base/strmap.h"
#include "operator/cluster_shell.h"
#include "operator/node_shell.h"

/* In the order in which a plan reads them: those that others refer to first. */
#define KEPT_KINDS(X)                                                                              \
    X(POLICY, "DeploymentPolicy", "skyhook.nvidia.com/v1alpha1")                                   \
    X(SKYHOOK, "Skyhook", "skyhook.nvidia.com/v1alpha1")                                           \
    X(NODE, "Node", "v1")                                                                          \
    X(CLUSTER_GROUP, "ClusterGroup", "fleet.cattle.io/v1alpha1")                                   \
    X(CLUSTER, "Cluster", "fleet.cattle.io/v1alpha1")                                              \
    X(MAPPING, "BundleNamespaceMapping", "fleet.cattle.io/v1alpha1")                               \
    X(BUNDLE, "Bundle", "fleet.cattle.io/v1alpha1")                                                \
    X(NOTHING, "", "")
typedef enum kept_kind {
#define X(kind, text, api) KEPT_##kind,
    KEPT_KINDS(X)
#undef X
} kept_kind;

/* KEPT_NOTHING: it is not kept. */
kept_kind kept_of_nodes(shell_kind kind);
kept_kind kept_of_clusters(hub_kind kind);

typedef struct kept_object {
    char *name;      /* in a namespace: "namespace/name" */
    char *document;  /* one line of JSON, to plan with; NULL: none is kept */
    str labels;      /* of nodes and clusters: JSON, a part of it */
    uint64_t digest; /* of what people change, not of what Drover writes */
    char *acts;      /* Skyhooks, Bundles: what is asked of the operator; NULL: nothing */
    bool paused;     /* Bundles: spec.paused */
    char version[24];
} kept_object;

typedef struct kept {
    strmap of[KEPT_NOTHING]; /* by kind: name -> kept_object */
} kept;

/* What an object goes by, such as "namespace/name"; made in text if need be. */
str kept_key(yyjson_val *json, buf *text);
/* True if it is new, or something about it changed that people decide. */
bool kept_seen(kept *k, kept_kind kind, yyjson_val *json);
/* False if it was not there. */
bool kept_gone(kept *k, kept_kind kind, str name);
const kept_object *kept_find(const kept *k, kept_kind kind, str name);
static inline const kept_object *kept_at(const kept *k, kept_kind kind, size_t i)
{
    return (const kept_object *)(uintptr_t)k->of[kind].entries[i].value;
}
const char *kept_kind_text(kept_kind kind);
void kept_clear(kept *k);

#endif
