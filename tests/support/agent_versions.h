/* SPDX-License-Identifier: Apache-2.0 */
/* agent_versions.h - versions of one deployment for agent_world.h: manifests, charts, and the
 * options that come with them. */
#ifndef DROVER_TESTS_SUPPORT_AGENT_VERSIONS_H
#define DROVER_TESTS_SUPPORT_AGENT_VERSIONS_H

#define SHOP "/api/v1/namespaces/shop/configmaps/"
#define NAMESPACE "/api/v1/namespaces/shop"
#define RECORD "/api/v1/namespaces/drover-system/configmaps/drover-web"
#define MAP(name, value)                                                                           \
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " name "}\ndata: {key: " value "}\n"
#define BOTH MAP("a", "one") "---\n" MAP("b", "one")
#define OPTIONS "\"options\":{\"defaultNamespace\":\"shop\"}"
#define REST STEPS_LOOK_MS / 2

/* A definition and an object of its kind. */
#define TILLS                                                                                      \
    "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n"                        \
    "metadata: {name: tills.shop.io}\nspec:\n  group: shop.io\n  scope: Namespaced\n"              \
    "  names: {kind: Till, plural: tills}\n  versions: [{name: v1, served: true}]\n"               \
    "---\napiVersion: shop.io/v1\nkind: Till\nmetadata: {name: t}\n"

#define CHART                                                                                      \
    "\"options\":{\"defaultNamespace\":\"shop\",\"deleteNamespace\":true,\"helm\":{"               \
    "\"chart\":\"web\",\"repo\":\"https://charts.example\",\"releaseName\":\"front\"}}"

#define CHART_AS(chart, release, space, more)                                                      \
    "\"options\":{\"defaultNamespace\":\"" space "\"" more ",\"helm\":{\"chart\":\"" chart         \
    "\",\"repo\":\"https://charts.example\",\"releaseName\":\"" release "\"}}"
#define CHART_TAKES                                                                                \
    "\"options\":{\"defaultNamespace\":\"shop\",\"helm\":{\"takeOwnership\":true,\"chart\":"       \
    "\"web\",\"repo\":\"https://charts.example\",\"releaseName\":\"back\"}}"

#endif
