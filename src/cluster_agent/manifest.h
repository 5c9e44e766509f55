/* SPDX-License-Identifier: Apache-2.0 */
/* manifest.h - what a BundleDeployment puts into its cluster.
 *
 * Pure: a Content, the live options and the Helm values come in; out comes the list of objects in
 * the order in which they are applied, or a chart for the "helm" program. Nothing is fetched and
 * nothing is rendered here.
 *
 * Plain manifests: every resource whose name ends in .yaml, .yml or .json, but fleet.yaml, what
 * lies under overlays/, and folders with a Chart.yaml or fleet.yaml of their own; a file of an
 * overlay that the options name is added, or replaces the one of its name; NAME_patch.yaml patches
 * NAME.yaml. A folder with a Chart.yaml is a chart. kustomize, copies of resources of the hub, and
 * contents in an OCI registry are refused by name: see MANIFEST_FAULTS. */
#ifndef DROVER_CLUSTER_AGENT_MANIFEST_H
#define DROVER_CLUSTER_AGENT_MANIFEST_H

#include "base/arena.h"
#include "cluster_agent/discovery.h"
#include "model/values.h"

#define MANIFEST_BYTES_MAX (16u << 20) /* of all resources, unpacked */
/* As many times as much is needed until they are placed: deploy/cluster-agent.yaml allows for it.
 */
#define MANIFEST_PEAK_TIMES 8u
#define MANIFEST_FILES_MAX 5000u
#define MANIFEST_OBJECTS_MAX 5000u

/* Every object that the agent made carries this label: nothing without it is ever deleted, and a
 * watch finds all of them by it. Its value is owner_label(name of the BundleDeployment). */
#define LABEL_OWNER "drover.dev/deployment"
/* An object with this annotation, or Helm's, with the value "keep" is left in the cluster. */
#define ANNOTATION_KEEP "drover.dev/resource-policy"
#define ANNOTATION_HELM_KEEP "helm.sh/resource-policy"

/* Helm's own: whose an object is that it made. */
#define ANNOTATION_RELEASE "meta.helm.sh/release-name"
#define ANNOTATION_RELEASE_NAMESPACE "meta.helm.sh/release-namespace"

/* ---- a Content, unpacked ---- */

typedef struct resource_file {
    str name;
    str bytes;
} resource_file;

typedef struct resource_files {
    resource_file *at; /* by name */
    size_t len;
} resource_files;

/* The files of a Content, checked against its sha256sum; all in a. The same for the text itself
 * ({"resources":[...]}). Contents of a file may be plain, "base64", or "base64+gz". */
bool content_read(arena *a, const yyjson_val *content, resource_files *ret, err *error);
bool resources_read(arena *a, str text, resource_files *ret, err *error);

/* ---- what is to be there ---- */

typedef struct wanted_object {
    object_ref ref;  /* with its namespace, once manifest_place was asked */
    str text;        /* JSON, as it was read; empty once it is placed */
    str body;        /* for server-side apply: that with namespace and owner */
    bool shared;     /* the namespace of the release: never pruned, nobody owns it */
    bool listing;    /* it has items, whatever its kind: helm takes those for objects */
    bool definition; /* a CustomResourceDefinition: others wait until it is established */
    str collection;  /* where it is applied; empty: the cluster does not have its kind yet */
} wanted_object;

/* A chart, as the "helm" program is to be told. */
typedef struct chart_order {
    str folder; /* in files, "" is the root; ptr NULL: name, repo and version say which */
    str name, repo, version; /* of a registry: its whole address is the name */
    str values;              /* JSON object; may be "{}" */
    str_list values_files;   /* names of files, relative to the root */
    str_list values_from;    /* YAML of helm.valuesFrom, read by whoever can; wins over values */
    int64_t timeout_s;       /* 0: helm's own */
    int64_t max_history;
    bool atomic, force, take_ownership, wait_for_jobs, disable_dns, skip_schema_validation;
    bool disable_dependency_update;
    bool skip_tls_verify; /* of the server that has the chart */
} chart_order;

typedef struct manifest {
    str owner;             /* name of the BundleDeployment */
    str release;           /* its name: helm.releaseName, else helm_release_name() of the owner */
    str release_namespace; /* namespace, else defaultNamespace, else "default" */
    bool namespace_forced; /* options.namespace: every object must be in it */
    bool confined;         /* nothing may be outside of it: that, or a selector of namespaces */
    bool create_namespace;
    bool take_ownership;
    bool keep_resources;
    bool delete_namespace;
    bool delete_definitions; /* deleteCRDResources: else definitions are kept */
    str account;             /* serviceAccount: whose rights count; empty: the agent's */
    const yyjson_val *namespace_labels, *namespace_annotations; /* NULL: none */
    bool is_chart;
    resource_files files; /* of a chart: write them to a folder */
    chart_order chart;
    wanted_object *at; /* in the order of applying; of a chart: what helm rendered */
    size_t len;
    bool rendered; /* by helm */
} manifest;

/* Why there is no manifest. Those that only an edit repairs count as applied and not ready, as in
 * Fleet; the others are tried again. */
#define MANIFEST_FAULTS(X)                                                                         \
    X(NONE, "")                                                                                    \
    X(BAD, "bad content")           /* no YAML, no object, twice the same, too much */             \
    X(UNSUPPORTED, "unsupported")   /* kustomize and the like */                                   \
    X(UNKNOWN_KIND, "unknown kind") /* the cluster may get it yet */                               \
    X(MEMORY, "out of memory")
typedef enum manifest_fault {
#define X(fault, text) MANIFEST_##fault,
    MANIFEST_FAULTS(X)
#undef X
} manifest_fault;
const char *manifest_fault_text(manifest_fault fault);

typedef struct manifest_source {
    const yyjson_val *deployment; /* the BundleDeployment */
    resource_files files;
    str values; /* of the options Secret: JSON, or empty */
} manifest_source;

/* Reads and orders. All in a; views into deployment and files. */
manifest_fault manifest_read(arena *a, const manifest_source *from, manifest *ret, err *error);
/* The objects that helm rendered ("helm get manifest"): sets at and len of a chart's manifest. */
manifest_fault manifest_rendered(arena *a, manifest *m, str yaml, err *error);
/* Whether nothing of a chart that was rendered is outside of the namespace of the release: helm has
 * no means of putting it there. *ret_unknown: it is not, because the cluster does not tell of a
 * kind, so that nobody can say. */
bool manifest_confined(const manifest *m, const discovery *d, bool *ret_unknown, err *error);
/* Gives every object its namespace, body and collection; of a chart that is not rendered yet: the
 * namespace of the release, if it is to have labels or annotations. Kinds that a definition of the
 * manifest brings are added to d. UNKNOWN_KIND names the first that the cluster does not have.
 * Objects that are placed are all in a, with the list of them: files, and the arena that they were
 * read into, are needed for charts alone. */
manifest_fault manifest_place(arena *a, manifest *m, discovery *d, err *error);

/* The label's value: the name, cut and with digits of its hash when it is too long for a label. */
str owner_label(arena *a, str deployment);
/* Whether an object of the cluster says that it is this deployment's. */
bool owner_is(const yyjson_val *object, str owner_label_value);

/* Which of two kinds is applied first: Helm's order of installation, namespaces and definitions
 * before all others, kinds it does not know last. Deleting goes the other way. */
int kind_order(str kind);

#endif
