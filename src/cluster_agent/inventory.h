/* SPDX-License-Identifier: Apache-2.0 */
/* inventory.h - what a BundleDeployment may have put into its cluster: one ConfigMap each, in the
 * agent's namespace, read back after a restart.
 *
 * Pure. It is written before the first object is applied, with all objects of before and of now,
 * and again when the old ones are gone: whenever the agent is killed, it names at least everything
 * that is there. It may name what is not, or what belongs to another: so only objects that carry
 * the owner's label are ever deleted. Every write has the version that was read, so that of two
 * agents one gives way. */
#ifndef DROVER_CLUSTER_AGENT_INVENTORY_H
#define DROVER_CLUSTER_AGENT_INVENTORY_H

#include "base/arena.h"
#include "base/err.h"
#include "cluster_agent/object_ref.h"

#define LABEL_INVENTORY "drover.dev/inventory" /* "true": lists and watches select by it */
#define INVENTORY_BYTES_MAX (900u << 10)       /* the API server takes 1 MiB of a ConfigMap */

/* A Helm release. */
typedef struct release_name {
    str namespace_;
    str name;
} release_name;
bool release_same(release_name a, release_name b);

typedef struct inventory {
    str deployment; /* name of the BundleDeployment */
    str wanted;     /* the version that is being applied */
    str applied;    /* the one that was applied in whole; empty: none, or one is under way */
    str digest;     /* of what was applied: equal IDs may still come with other namespace labels */
    release_name release;
    int64_t revision;     /* counts applications */
    bool is_chart;        /* helm has the release, or is about to */
    release_name *former; /* releases of before, which helm may still have and must uninstall */
    size_t former_len;
    str account; /* whose rights counted; empty: the agent's */
    bool keep_resources;
    str delete_namespace; /* to be deleted with it; empty: none */
    object_ref *objects;  /* by object_ref_cmp, none twice */
    size_t len;
    /* Of the ConfigMap it was read from. */
    str version, uid;
} inventory;

/* The ConfigMap's name for a deployment; it begins with "drover-". ptr NULL without memory. */
str inventory_name(arena *a, str deployment);
/* Reads a ConfigMap; all in a. False with an error: somebody changed it by hand. Releases with
 * names that Helm does not take, as earlier agents wrote them down, are none. */
bool inventory_read(arena *a, const yyjson_val *config_map, inventory *ret, err *error);
/* Appends the ConfigMap. False when it would be too large, or without memory. */
bool inventory_put(buf *out, const inventory *i, str agent_namespace, err *error);

/* Sets former of ret: what helm is to uninstall when the release of now is "now", and a chart or
 * not. One that only goes because its name or namespace is another stays with keepResources. False
 * without memory. */
bool inventory_leave_release(arena *a, const inventory *i, release_name now, bool is_chart,
                             inventory *ret);

/* Sorted objects of both, none twice. False without memory. */
bool inventory_join(arena *a, const inventory *with, const object_ref *at, size_t len,
                    inventory *ret);
/* Those of i that are not in at (sorted): what is to be pruned, in the order of deleting. */
bool inventory_left(arena *a, const inventory *i, const object_ref *at, size_t len, inventory *ret);

#endif
