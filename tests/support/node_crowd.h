/* SPDX-License-Identifier: Apache-2.0 */
/* node_crowd.h - many nodes under every kind of rule that Skyhooks have, in the middle of their
 * first batches, for measurements and for counting what one fact touches.
 *
 * Two Skyhooks on every node, the second behind the first; compartments of all strategies; packages
 * that depend on each other, with an interrupt. The tests' own facts go straight to the engine. */
#ifndef DROVER_TESTS_SUPPORT_NODE_CROWD_H
#define DROVER_TESTS_SUPPORT_NODE_CROWD_H

#include <stdio.h>
#include <stdlib.h>

#include "sim/sim.h"

#define CROWD_API "{\"apiVersion\":\"skyhook.nvidia.com/v1alpha1\",\"kind\":"
#define CROWD_PACE "{\"initialBatch\":1000,\"failureThreshold\":3}}}"
#define CROWD_SELECTOR "\"selector\":{\"matchLabels\":{\"tier\":"

static const char *const node_crowd_texts[] = {
    CROWD_API "\"DeploymentPolicy\",\"metadata\":{\"name\":\"p\"},\"spec\":{"
              "\"failedNodesHoldBudget\":true,"
              "\"default\":{\"budget\":{\"percent\":10},\"strategy\":{\"fixed\":{}}},"
              "\"compartments\":[{\"name\":\"a\"," CROWD_SELECTOR "\"a\"}},"
              "\"budget\":{\"count\":4000},\"strategy\":{\"fixed\":" CROWD_PACE
              ",{\"name\":\"b\"," CROWD_SELECTOR "\"b\"}},"
              "\"budget\":{\"percent\":50},\"strategy\":{\"linear\":" CROWD_PACE
              ",{\"name\":\"c\"," CROWD_SELECTOR "\"c\"}},"
              "\"budget\":{\"percent\":25},\"strategy\":{\"exponential\":" CROWD_PACE "]}}",
    CROWD_API "\"Skyhook\",\"metadata\":{\"name\":\"first\"},\"spec\":{\"priority\":10,"
              "\"runtimeRequired\":true,\"deploymentPolicy\":\"p\",\"packages\":{"
              "\"tune\":{\"version\":\"1.0.0\",\"image\":\"r/t\",\"configMap\":{\"a\":\"b\"}},"
              "\"driver\":{\"version\":\"2.0.0\",\"image\":\"r/d\","
              "\"dependsOn\":{\"tune\":\"1.0.0\"},\"interrupt\":{\"type\":\"reboot\"}}}}}",
    CROWD_API "\"Skyhook\",\"metadata\":{\"name\":\"second\"},\"spec\":{\"priority\":20,"
              "\"interruptionBudget\":{\"percent\":10},\"packages\":{"
              "\"audit\":{\"version\":\"1.0.0\",\"image\":\"r/a\"}}}}",
};

typedef struct node_crowd {
    document_set *documents;
    object_list *objects;
    problems *found;
    sim *sim;
} node_crowd;

static inline void node_crowd_insist(bool good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "node_crowd: %s\n", what);
    abort();
}

/* So many nodes; the first batches have begun. */
static inline node_crowd node_crowd_open(uint64_t count)
{
    static const label tiers[][1] = {{{STR("tier"), STR("a")}},
                                     {{STR("tier"), STR("b")}},
                                     {{STR("tier"), STR("c")}},
                                     {{STR("tier"), STR("d")}}};
    node_crowd c = {document_set_new(), objects_new(), problems_new(), NULL};
    err error = {0};
    sim_settings settings = {
        .start_ms = INT64_C(1767225600000), .duration_ms = -1, .horizon_ms = INT64_C(1) << 40};
    c.sim = sim_new(&settings, &error);
    for (size_t i = 0; i < sizeof node_crowd_texts / sizeof node_crowd_texts[0]; i++)
        node_crowd_insist(documents_read_as(c.documents, STR("crowd"), str_of(node_crowd_texts[i]),
                                            FORMAT_JSON, c.found),
                          "documents");
    node_crowd_insist(objects_read(c.objects, c.documents, c.found), "documents");
    for (size_t i = 0; i < c.objects->len; i++)
        node_crowd_insist(sim_add_object(c.sim, &c.objects->at[i], &error), error.text);
    for (size_t i = 0; i < 4; i++)
        node_crowd_insist(
            sim_add_targets(c.sim, TARGET_NODE, count / 4, (label_set){tiers[i], 1}, &error),
            error.text);
    node_crowd_insist(sim_run(c.sim, 0, &error), error.text);
    return c;
}

static inline void node_crowd_close(node_crowd *c)
{
    sim_free(c->sim);
    objects_free(c->objects);
    document_set_free(c->documents);
    problems_free(c->found);
}

/* The node reports that it is as it was. boot_id takes a text the fact points to. */
static inline fact node_crowd_heartbeat(const node_crowd *c, uint32_t number,
                                        char boot_id[HERD_BOOT_BYTES])
{
    fact f;
    herd_fact(sim_herd(c->sim), number, boot_id, &f);
    return f;
}

/* The first stage of a node in its first batch succeeded. */
static inline fact node_crowd_outcome(str target)
{
    return (fact){.kind = FACT_STAGE,
                  .stage = {.change = STR("first"),
                            .target = target,
                            .package = STR("tune"),
                            .version = STR("1.0.0"),
                            .stage = STR("apply"),
                            .attempt = 1,
                            .outcome = OUTCOME_SUCCEEDED}};
}

#endif
