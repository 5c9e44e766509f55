/* SPDX-License-Identifier: Apache-2.0 */
/* discovery.h - which kinds a cluster has, and where their objects are.
 *
 * Pure: the API server's answers come in, paths come out. Feed it either the aggregated form (the
 * two answers to DISCOVERY_CORE_PATH and DISCOVERY_GROUPS_PATH asked for with DISCOVERY_ACCEPT) or
 * one APIResourceList after the other; and the CustomResourceDefinitions that are being applied, so
 * that their objects have a path before the server tells of it. A group whose server is away is
 * "stale" and keeps what was known before; of the others a reading that came to its end forgets
 * what the server told no more.
 *
 *     discovery *d = discovery_new();
 *     discovery_begin(d);
 *     discovery_read(d, answer_to_api, &error); discovery_read(d, answer_to_apis, &error);
 *     discovery_end(d);
 *     const discovery_kind *k = discovery_find(d, STR("apps/v1"), STR("Deployment"));
 */
#ifndef DROVER_CLUSTER_AGENT_DISCOVERY_H
#define DROVER_CLUSTER_AGENT_DISCOVERY_H

#include "base/err.h"
#include "cluster_agent/object_ref.h"

#define DISCOVERY_CORE_PATH "/api"
#define DISCOVERY_GROUPS_PATH "/apis"
#define DISCOVERY_ACCEPT                                                                           \
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"
#define DISCOVERY_KINDS_MAX 20000u

typedef struct discovery discovery;

typedef struct discovery_kind {
    str api_version;
    str kind;
    str plural; /* "deployments" */
    bool namespaced;
    bool defined;  /* only a definition says so yet, which may never come to be */
    uint64_t told; /* the last reading that told of it; 0: it is forgotten */
} discovery_kind;

/* NULL without memory. */
discovery *discovery_new(void);
discovery *discovery_free(discovery *d);

/* A reading begins, and has come to its end: everything was answered. One that breaks off forgets
 * nothing. What was only defined is not forgotten by the first reading after that, which may have
 * come too early. */
void discovery_begin(discovery *d);
void discovery_end(discovery *d);
/* Adds or replaces the kinds of one answer: APIGroupDiscoveryList, or APIResourceList. Anything
 * else is an error that names its kind; kinds already known stay. */
bool discovery_read(discovery *d, const yyjson_val *answer, err *error);
/* For a server without the aggregated form: appends to out, one a line, the paths whose
 * APIResourceLists are to be read, from an APIVersions ("/api") or an APIGroupList ("/apis"). */
bool discovery_paths(const yyjson_val *answer, buf *out, err *error);
/* The kinds of a CustomResourceDefinition that is about to exist; what the server tells of a kind
 * stays. What is no such definition adds nothing. False without memory or with too many kinds. */
bool discovery_define(discovery *d, const yyjson_val *definition, err *error);

/* NULL: the cluster has no such kind. Valid until the next call that adds. */
const discovery_kind *discovery_find(const discovery *d, str api_version, str kind);
/* The same for any version of a group: the one that was said first, as the server prefers it. */
const discovery_kind *discovery_find_any(const discovery *d, str group, str kind);
/* Whether the server of a group was away, so that kinds of it may be missing here. */
bool discovery_stale(const discovery *d, str group);
/* Whether a collection, in a namespace or over all, is one of a known kind. */
bool discovery_has(const discovery *d, str collection);
size_t discovery_count(const discovery *d);

/* Where objects of that kind are, such as "/apis/apps/v1/namespaces/shop/deployments": a kube_write
 * takes it as its collection. */
void discovery_collection_put(buf *out, const discovery_kind *kind, str namespace_);

#endif
