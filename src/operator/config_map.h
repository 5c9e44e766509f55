/* SPDX-License-Identifier: Apache-2.0 */
/* config_map.h - the ConfigMaps that package pods mount, as JSON.
 *
 * Pure: text out, no requests. Two kinds, both owned by their Skyhook: the files of a package
 * (spec.packages[].configMap), one for each package that has any; and what a package may know about
 * its node (annotations.json, labels.json, packages.json), where that is too much for the Job
 * itself. */
#ifndef DROVER_OPERATOR_CONFIG_MAP_H
#define DROVER_OPERATOR_CONFIG_MAP_H

#include "operator/job_object.h"

/* What stands in a package's pod under configmaps/. Appends the whole object. */
void package_config_map_put(buf *out, const job_settings *s, const skyhook *of, const package *p);

/* The texts of what stands under node-metadata/. The operator's own annotations on the node are
 * left out: they change with every stage and are nothing to a package. */
void node_annotations_put(buf *out, label_set annotations);
void node_labels_put(buf *out, label_set labels);
void node_packages_put(buf *out, const job_settings *s, const skyhook *of);

/* The ConfigMap with them, for Jobs that cannot carry them. Appends the whole object. */
void node_config_map_put(buf *out, const job_settings *s, const skyhook *of, str node_name,
                         const node_files *files);

#endif
