/* SPDX-License-Identifier: Apache-2.0 */
/* object.h - typed objects, and which kinds Drover knows.
 *
 * An object is one document read into the struct of its kind: complete, defaulted, valid in itself.
 * What is right only together with other documents is lint.h's. */
#ifndef DROVER_MODEL_OBJECT_H
#define DROVER_MODEL_OBJECT_H

#include "model/document.h"
#include "model/fleet.h"
#include "model/node.h"
#include "model/release.h"
#include "model/skyhook.h"

#define API_SKYHOOK "skyhook.nvidia.com/v1alpha1"
#define API_FLEET "fleet.cattle.io/v1alpha1"
#define API_DROVER "drover.dev/v1alpha1"

/* X(name, apiVersion, kind, type). fleet.yaml has neither apiVersion nor kind. */
#define OBJECT_KINDS(X)                                                                            \
    X(SKYHOOK, API_SKYHOOK, "Skyhook", skyhook)                                                    \
    X(DEPLOYMENT_POLICY, API_SKYHOOK, "DeploymentPolicy", deployment_policy)                       \
    X(BUNDLE, API_FLEET, "Bundle", bundle)                                                         \
    X(BUNDLE_DEPLOYMENT, API_FLEET, "BundleDeployment", bundle_deployment)                         \
    X(CLUSTER, API_FLEET, "Cluster", cluster)                                                      \
    X(CLUSTER_GROUP, API_FLEET, "ClusterGroup", cluster_group)                                     \
    X(BUNDLE_NAMESPACE_MAPPING, API_FLEET, "BundleNamespaceMapping", bundle_namespace_mapping)     \
    X(NODE, "v1", "Node", node)                                                                    \
    X(POD, "v1", "Pod", pod)                                                                       \
    X(NAMESPACE, "v1", "Namespace", kube_namespace)                                                \
    X(RESOURCE, API_DROVER, "Resource", resource)                                                  \
    X(ENVIRONMENT, API_DROVER, "Environment", environment)                                         \
    X(DEPLOYMENT, API_DROVER, "Deployment", deployment)                                            \
    X(VERSION, API_DROVER, "Version", version)                                                     \
    X(ROLLOUT_POLICY, API_DROVER, "RolloutPolicy", rollout_policy)                                 \
    X(FLEET_YAML, "", "FleetYaml", fleet_yaml)

typedef enum object_kind {
#define X(name, api, kind, type) KIND_##name,
    OBJECT_KINDS(X)
#undef X
} object_kind;

typedef struct object {
    object_kind kind;
    const document *document; /* NULL when made by the program */
    const metadata *metadata; /* that of the typed struct; fleet.yaml: an empty one */
    union {
        void *any;
#define X(name, api, kind, type) type *type;
        OBJECT_KINDS(X)
#undef X
    };
} object;

/* Objects and all they are made of. The document set they come from must outlive it. */
typedef struct object_list {
    object *at;
    size_t len;
    size_t cap;
    arena *arena; /* also for what the caller makes to go with them */
    struct {
        const document **at;
        size_t len;
        size_t cap;
    } left_out; /* documents of known kinds that have errors: they are not missing */
    expression_list expressions; /* compiled CEL owns more than the arena: freed with the list */
} object_list;

struct shape;

object_list *objects_new(void);
object_list *objects_free(object_list *list);
void objects_cleanup(object_list **list);

/* Reads all documents of a set and appends those that are good. False without memory or when an
 * error was reported; what is good stays. */
bool objects_read(object_list *list, const document_set *set, problems *found);
/* Reads a file and its objects in one go, which is faster than one after the other: what was just
 * checked is still at hand. The set gets the documents. False as above. */
bool objects_load(object_list *list, document_set *set, str file, str bytes, problems *found);
/* Appends an object, for programs that make targets up. False without memory. */
bool objects_add(object_list *list, object o);
/* Reads one document into the list's memory without appending it. False when it has errors, or is
 * of a kind Drover does not read (which is a warning): *ret is untouched. A fleet.yaml is
 * recognised by its file name. */
bool object_read(object_list *list, const document *d, problems *found, object *ret);
/* The same for a text that is known to be a fleet.yaml, whatever its name. */
bool object_read_fleet_yaml(object_list *list, const document *d, problems *found, object *ret);

/* Makes an object of a typed struct, for programs that make targets up. */
object object_of(object_kind kind, void *typed);

/* One line of compact JSON: apiVersion, kind, metadata, spec, status. Defaults are left out.
 * Reading it again gives an equal object. */
void object_write(const object *o, buf *out);
/* Equal in everything that is written. False also without memory. */
bool object_equal(const object *a, const object *b);

const char *object_kind_text(object_kind kind);
const char *object_kind_api(object_kind kind);
/* False when Drover does not read that kind. */
bool object_kind_find(str api_version, str kind, object_kind *ret);
/* The description of the kind's fields, for schemas and help. */
const struct shape *object_kind_shape(object_kind kind);

#endif
