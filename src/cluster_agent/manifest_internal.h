/* SPDX-License-Identifier: Apache-2.0 */
/* manifest_internal.h - the inside of manifest.h, for manifest*.c alone. */
#ifndef DROVER_CLUSTER_AGENT_MANIFEST_INTERNAL_H
#define DROVER_CLUSTER_AGENT_MANIFEST_INTERNAL_H

#include "cluster_agent/manifest.h"

/* spec.options of the BundleDeployment. */
const yyjson_val *manifest_options(const manifest_source *from);
/* The fault, or MEMORY if the error says so. */
manifest_fault manifest_failed(manifest_fault fault, const err *error);
/* Lays a patch of an overlay over the file that it is for. */
bool manifest_patch(arena *a, resource_file *file, const resource_file *patch, err *error);
/* Puts the objects into the order of applying. */
void manifest_sort(manifest *m);
/* Finds out whether it is a chart, and if so, how helm is to be asked. */
manifest_fault manifest_chart(arena *a, const manifest_source *from, manifest *m, err *error);

#endif
