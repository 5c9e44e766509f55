/* SPDX-License-Identifier: Apache-2.0 */
/* deployment_id.h - what a Bundle wants on a cluster, as one identity.
 *
 * Fleet's deployment ID: the manifest ID, ":", and the SHA-256 of the merged deployment options,
 * byte for byte as Fleet computes them, so that a fleet can be taken over without deploying
 * everything again. Owns the merge of options and their canonical JSON. Pure. Values that
 * differ from cluster to cluster are value_template.h's. */
#ifndef DROVER_ENGINE_DEPLOYMENT_ID_H
#define DROVER_ENGINE_DEPLOYMENT_ID_H

#include "engine/fleet_names.h"
#include "engine/value_template.h"
#include "model/fleet.h"

/* The ID of a Bundle's content: spec.contentsId, "" for a HelmOp, else that of its resources.
 * ptr is NULL without memory, here and below. */
str manifest_id(arena *a, const bundle_spec *spec);
/* The ID of a list of resources ({"name","content","encoding"} each; NULL is the empty list). */
str resources_id(arena *a, raw_json resources);
/* The text of which that is the hash: what a Content object holds. */
void manifest_json(buf *out, raw_json resources);

/* A Bundle's options and those that are laid over them, in order. */
typedef struct option_layers {
    const bundle_options *base;
    const bundle_options *const *over;
    size_t over_count;
} option_layers;

/* The canonical JSON of merged options, with its line feed. For a cluster with usable labels the
 * Helm values are made what they are there, and there is a "helm" in any case, as in Fleet; without
 * a cluster (NULL) they stay as they are written. ptr is NULL with an error. */
str options_json(arena *a, const option_layers *l, const template_cluster *cluster, err *error);
/* The same with what is not hashed, diff and correctDrift: what a BundleDeployment says. */
str options_all_json(arena *a, const option_layers *l, const template_cluster *cluster, err *error);
/* Whether clusters with usable labels may get different options. */
bool options_depend(const option_layers *l);

/* manifest ":" hex(options_json(...)). */
str deployment_id(arena *a, str manifest, str options);

/* Whether Fleet's template processing would look at a cluster with these labels. */
bool labels_usable(label_set labels);

#endif
