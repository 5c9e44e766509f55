/* SPDX-License-Identifier: Apache-2.0 */
/* bracket_fleet.h - the fleet of the timelines of semantics.md C7: nodes that are drained, patched
 * and brought back by five deployments in one bracket. */
#ifndef DROVER_TESTS_SUPPORT_BRACKET_FLEET_H
#define DROVER_TESTS_SUPPORT_BRACKET_FLEET_H

#include "support/world.h"

static inline void apply_nodes(world *w, int count)
{
    world_apply(w, "apiVersion: drover.dev/v1alpha1\nkind: Environment\nmetadata: {name: prod}\n"
                   "spec: {resourceSelector: 'true'}\n");
    for (int i = 0; i < count; i++)
        world_apply(
            w,
            "apiVersion: drover.dev/v1alpha1\nkind: Resource\nmetadata: {name: node-%d, labels: {"
            "cluster: east}}\n"
            "spec: {kind: host, version: v1}\n"
            "status: {releases: [{deployment: drain, version: '1'}, {deployment: uncordon, "
            "version: '1'}, "
            "{deployment: kubelet, version: '1'}, {deployment: containerd, version: '1'}, "
            "{deployment: os-patch, version: '1'}]}\n",
            i);
}

static inline void apply_deployments(world *w)
{
    const char *members[] = {"drain", "os-patch", "kubelet", "containerd", "uncordon"};
    for (size_t i = 0; i < COUNT_OF(members); i++) {
        world_apply(
            w,
            "apiVersion: drover.dev/v1alpha1\nkind: Deployment\nmetadata: {name: %s, labels: {"
            "layer: node}}\n"
            "spec: {resourceSelector: 'true', job: {pull: {}}}\n",
            members[i]);
        world_apply(w,
                    "apiVersion: drover.dev/v1alpha1\nkind: Version\n"
                    "metadata: {name: %s-1, creationTimestamp: '2026-01-01T00:00:00Z'}\n"
                    "spec: {deployment: %s, tag: '1'}\n",
                    members[i], members[i]);
    }
}

static inline void publish(world *w, const char *change, const char *tag)
{
    world_apply(
        w,
        "apiVersion: drover.dev/v1alpha1\nkind: Version\n"
        "metadata: {name: %s-%s, creationTimestamp: '%s'}\nspec: {deployment: %s, tag: '%s'}\n",
        change, tag, time_at(w->now), change, tag);
}

#define DEPENDENCIES                                                                               \
    "  - deploymentDependency: {dependsOn: 'deployment.name == \"os-patch\"', "                    \
    "appliesTo: 'deployment.name in [\"kubelet\", \"containerd\"]'}\n"

static inline void apply_policy(world *w, const char *bracket, const char *more)
{
    world_apply(
        w,
        "apiVersion: drover.dev/v1alpha1\nkind: RolloutPolicy\nmetadata: {name: nodes}\n"
        "spec:\n  selector: 'deployment.metadata[\"layer\"] == \"node\"'\n  rules:\n"
        "  - deploymentBracket: {deploymentSelector: 'deployment.metadata[\"layer\"] == \"node\"', "
        "preSelector: 'deployment.name == \"drain\"', postSelector: 'deployment.name == "
        "\"uncordon\"'%s}\n" DEPENDENCIES "%s",
        bracket, more);
}

#define TWENTY_PERCENT                                                                             \
    "  - resourceConcurrency: {groupSelector: 'resource.metadata[\"cluster\"] == \"east\"', "      \
    "limitType: percentage, limitValue: 20}\n"
#define LINEAR "  - gradualRollout: {rolloutType: linear, timeScaleInterval: 300}\n"
#define DAY_WINDOW ", readinessMode: collection_window, readinessWindowSeconds: 86400"

static inline void set_durations(world *w)
{
    const world_plan plans[] = {{"drain", NULL, 8 * MINUTE, 0, false, false},
                                {"os-patch", NULL, 3 * MINUTE, 0, false, false},
                                {"kubelet", NULL, 3 * MINUTE, 0, false, false},
                                {"containerd", NULL, 3 * MINUTE, 0, false, false},
                                {"uncordon", NULL, 1 * MINUTE, 0, false, false}};
    for (size_t i = 0; i < COUNT_OF(plans); i++)
        assert_true(vec_push(&w->plans, plans[i]));
}

static inline void open_fleet(world *w, int nodes, const char *bracket, const char *more)
{
    world_open(w, "2026-03-01T08:00:00Z");
    set_durations(w);
    apply_nodes(w, nodes);
    apply_deployments(w);
    apply_policy(w, bracket, more);
}

/* The deployments that ran on a resource, in the order of their starts: "drain kubelet=2 uncordon".
 */
static inline str story(const world *w, arena *a, const char *host)
{
    str text = STR_EMPTY;
    for (size_t i = 0; i < w->jobs.len; i++) {
        const world_job *j = &w->jobs.at[i];
        if (strcmp(j->resource, host) != 0)
            continue;
        bool hook = j->role == ROLE_PRE || j->role == ROLE_POST;
        text = arena_printf(a, "%.*s%s%s%s%s%s%s", STR_ARG(text), text.len ? " " : "",
                            j->deployment, hook ? "" : "=", hook ? "" : j->version,
                            j->role == ROLE_ROLLBACK ? "!" : "", j->failed ? "(failed)" : "");
    }
    return text;
}

#define IMMEDIATE ", readinessMode: immediate"

#endif
