/* SPDX-License-Identifier: Apache-2.0 */
/* deployment_id.h - what a Bundle wants on a cluster, as one identity.
 *
 * Fleet's deployment ID: the manifest ID, ":", and the SHA-256 of the merged deployment options,
 * byte for byte as Fleet computes them, so that a fleet can be taken over without deploying
 * everything again. Owns the merge of options and their canonical JSON. Pure.
 *
 * Helm value templating (cluster labels and templateValues inside helm.values) is not done here:
 * values are hashed as they are written. What templating does to the hash by itself is done: a
 * cluster with usable labels gets an empty "helm" when the options have none. */
#ifndef DROVER_ENGINE_DEPLOYMENT_ID_H
#define DROVER_ENGINE_DEPLOYMENT_ID_H

#include "engine/fleet_names.h"
#include "model/fleet.h"

/* The ID of a Bundle's content: spec.contentsId, "" for a HelmOp, else that of its resources.
 * ptr is NULL without memory, here and below. */
str manifest_id(arena *a, const bundle_spec *spec);
/* The ID of a list of resources ({"name","content","encoding"} each; NULL is the empty list). */
str resources_id(arena *a, raw_json resources);
/* The text of which that is the hash: what a Content object holds. */
void manifest_json(buf *out, raw_json resources);

/* The canonical JSON of options and those that are laid over them, in order, with its line feed.
 * With ensure_helm there is a "helm" in any case. */
str options_json(arena *a, const bundle_options *base, const bundle_options *const *over,
                 size_t over_count, bool ensure_helm);

/* manifest ":" hex(options_json(...)). */
str deployment_id(arena *a, str manifest, str options);

/* Whether Fleet's template processing would look at a cluster with these labels. */
bool labels_usable(label_set labels);

#endif
