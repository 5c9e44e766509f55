/* SPDX-License-Identifier: Apache-2.0 */
/* config_map.h - the ConfigMaps that package pods mount, as JSON.
 *
 * Pure: text out, no requests. Two kinds, both owned by their Skyhook: the files of a package
 * (spec.packages[].configMap), one for each package that has any; and what a package may know about
 * its node (annotations.json, labels.json, packages.json), one for each node. */
#ifndef DROVER_OPERATOR_CONFIG_MAP_H
#define DROVER_OPERATOR_CONFIG_MAP_H

#include "operator/job_object.h"

/* What stands in a package's pod under configmaps/. Appends the whole object. */
void package_config_map_put(buf *out, const job_settings *s, const skyhook *of, const package *p);

typedef struct node_facts {
    str name;
    label_set labels;
    label_set annotations;
} node_facts;

/* What stands under node-metadata/. The operator's own annotations on the node are left out: they
 * change with every stage and are nothing to a package. Appends the whole object. */
void node_config_map_put(buf *out, const job_settings *s, const skyhook *of, const node_facts *n);

#endif
