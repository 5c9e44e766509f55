/* SPDX-License-Identifier: Apache-2.0 */
/* crd.h - CustomResourceDefinitions, made from the shapes of the kinds.
 *
 * The schema, its defaults, limits, descriptions and rules are what the tables say that documents
 * are read by; nothing about a field is written a second time. What CEL cannot say (cycles, globs)
 * is left to those who read documents. */
#ifndef DROVER_MODEL_CRD_H
#define DROVER_MODEL_CRD_H

#include "model/object.h"

/* The kinds that Drover defines on a cluster. */
extern const object_kind crd_kinds[];
extern const size_t crd_count;
/* Fleet's, for a hub that has none: whatever else Fleet's own programs write into them is kept. */
extern const object_kind crd_fleet_kinds[];
extern const size_t crd_fleet_count;
/* And the one that holds manifests. */
void crd_content_put(buf *out);

/* Appends the definition as compact JSON. The kind is one of those above. */
void crd_put(buf *out, object_kind kind);
/* "skyhooks.skyhook.nvidia.com" */
const char *crd_name(object_kind kind);

#endif
