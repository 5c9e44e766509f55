/* SPDX-License-Identifier: Apache-2.0 */
/* value_template.h - Helm values that differ from cluster to cluster.
 *
 * As in Fleet: a text "global.fleet.clusterLabels.NAME" becomes the value of that label, and
 * actions between ${ and } are evaluated with the cluster's name, namespace, labels, annotations
 * and spec.templateValues (ClusterName, ClusterNamespace, ClusterLabels, ClusterAnnotations,
 * ClusterValues). What an action leaves is read as YAML, so that it may become a number or a list.
 *
 * Fleet writes all values as one YAML text and renders that. Here each text of the values is
 * rendered by itself, which gives the same as long as no action goes from one value to another.
 * The functions are those of go_template.h. Pure. */
#ifndef DROVER_ENGINE_VALUE_TEMPLATE_H
#define DROVER_ENGINE_VALUE_TEMPLATE_H

#include "base/arena.h"
#include "base/err.h"
#include "model/values.h"

/* A cluster as templates see it. */
typedef struct template_cluster {
    str namespace_;
    str name;
    label_set labels;         /* all of them: those that templates do not see are left out here */
    label_set annotations;    /* the same */
    raw_json template_values; /* spec.templateValues; NULL: none */
} template_cluster;

/* Whether values or the helm.templateValues beside them depend on the cluster. */
bool values_depend(raw_json values, raw_json templates);

/* The values for a cluster: processed, with helm.templateValues laid over them. values is an object
 * or NULL. With plain, only cluster labels are put in (helm.disablePreProcess). All of it is in a.
 * NULL with an error that names the value. */
typedef struct template_source {
    raw_json values;
    raw_json templates; /* helm.templateValues; may be NULL */
    bool plain;
} template_source;
raw_json values_for(arena *a, const template_source *from, const template_cluster *cluster,
                    err *error);

#endif
