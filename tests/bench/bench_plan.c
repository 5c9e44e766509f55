/* SPDX-License-Identifier: Apache-2.0 */
/* Plans of whole fleets: time, growth and memory. */
#include "bench.h"

#include <stdlib.h>
#include <sys/resource.h>

#include "sim/sim.h"

static const char nodes_text[] =
    "{\"apiVersion\":\"skyhook.nvidia.com/v1alpha1\",\"kind\":\"DeploymentPolicy\",\"metadata\":{"
    "\"name\":"
    "\"p\"},\"spec\":{\"default\":{\"budget\":{\"percent\":100},\"strategy\":{\"exponential\":{}}},"
    "\"compartments\":["
    "{\"name\":\"a\",\"selector\":{\"matchLabels\":{\"tier\":\"a\"}},\"budget\":{\"percent\":100},"
    "\"strategy\":{\"exponential\":{}}},"
    "{\"name\":\"b\",\"selector\":{\"matchLabels\":{\"tier\":\"b\"}},\"budget\":{\"percent\":50},"
    "\"strategy\":{\"exponential\":{}}},"
    "{\"name\":\"c\",\"selector\":{\"matchLabels\":{\"tier\":\"c\"}},\"budget\":{\"percent\":25},"
    "\"strategy\":{\"exponential\":{}}},"
    "{\"name\":\"d\",\"selector\":{\"matchLabels\":{\"tier\":\"d\"}},\"budget\":{\"percent\":10},"
    "\"strategy\":{\"exponential\":{}}}]}}"
    "{\"apiVersion\":\"skyhook.nvidia.com/v1alpha1\",\"kind\":\"Skyhook\",\"metadata\":{"
    "\"name\":\"sk\"},"
    "\"spec\":{\"deploymentPolicy\":\"p\",\"packages\":{\"pack\":{\"version\":\"1.0.0\","
    "\"image\":\"r/p\"}}}}";

#define DEPLOYMENT(name, seconds) \
    "{\"apiVersion\":\"drover.dev/v1alpha1\",\"kind\":\"Deployment\",\"metadata\":{" \
    "\"name\":\"" name \
    "\"},\"spec\":{\"resourceSelector\":\"true\",\"job\":{\"simulated\":{\"seconds\":" seconds \
    "}}}}" \
    "{\"apiVersion\":\"drover.dev/v1alpha1\",\"kind\":\"Version\",\"metadata\":{\"name\":\"" name \
    "-1\"},\"spec\":{\"deployment\":\"" name "\",\"tag\":\"1\"}}"

static const char bracket_text[] =
    "{\"apiVersion\":\"drover.dev/v1alpha1\",\"kind\":\"Environment\",\"metadata\":{"
    "\"name\":\"prod\"},"
    "\"spec\":{\"resourceSelector\":\"true\"}}" DEPLOYMENT("drain", "480") DEPLOYMENT("os-patch",
                                                                                      "180")
        DEPLOYMENT("kubelet", "180") DEPLOYMENT("containerd", "180") DEPLOYMENT(
            "uncordon",
            "60") "{\"apiVersion\":\"drover.dev/v1alpha1\",\"kind\":\"RolloutPolicy\","
            "\"metadata\":{\"name\":\"p\"},"
                  "\"spec\":{\"selector\":\"true\",\"rules\":["
                  "{\"deploymentBracket\":{\"deploymentSelector\":\"true\","
                  "\"readinessMode\":\"collection_window\","
                  "\"readinessWindowSeconds\":86400,\"preSelector\":\"deployment.name == "
                  "'drain'\",\"postSelector\":"
                  "\"deployment.name == 'uncordon'\"}},"
                  "{\"resourceConcurrency\":{\"groupSelector\":\"true\","
                  "\"limitType\":\"percentage\",\"limitValue\":20}},"
                  "{\"gradualRollout\":{\"rolloutType\":\"linear\",\"timeScaleInterval\":300}},"
                  "{\"deploymentDependency\":{\"dependsOn\":\"deployment.name == 'os-patch'\","
                  "\"appliesTo\":"
                  "\"deployment.name in ['kubelet','containerd']\"}}]}}";

static void must(bool good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "bench-plan: %s\n", what);
    exit(1);
}

/* Processor seconds: the goals are for one core, however busy the machine is. */
static double cpu_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static double plan_seconds(const char *text, target_kind kind, uint64_t count)
{
    static const label tiers[][1] = {{{STR("tier"), STR("a")}},
                                     {{STR("tier"), STR("b")}},
                                     {{STR("tier"), STR("c")}},
                                     {{STR("tier"), STR("d")}}};
    double start = cpu_seconds();
    err error = {0};
    problems *found = problems_new();
    document_set *documents = document_set_new();
    object_list *objects = objects_new();
    sim_settings settings = {
        .start_ms = INT64_C(1767225600000), .duration_ms = -1, .horizon_ms = INT64_C(1) << 40};
    sim *s = sim_new(&settings, &error);
    must(s && documents_read_as(documents, STR("bench"), str_of(text), FORMAT_JSON, found) &&
             objects_read(objects, documents, found),
         "documents");
    for (size_t i = 0; i < objects->len; i++)
        must(sim_add_object(s, &objects->at[i], &error), error.text);
    for (size_t i = 0; i < 4; i++)
        must(sim_add_targets(s, kind, count / 4, (label_set){tiers[i], 1}, &error), error.text);
    must(sim_run(s, SIM_TO_THE_END, &error), error.text);
    must(sim_ended(s) == SIM_COMPLETE, "the plan does not complete");
    sim_free(s);
    objects_free(objects);
    document_set_free(documents);
    problems_free(found);
    return cpu_seconds() - start;
}

int main(void)
{
    double small = plan_seconds(nodes_text, TARGET_NODE, 10000);
    double middle = plan_seconds(nodes_text, TARGET_NODE, 100000);
    double large = plan_seconds(nodes_text, TARGET_NODE, 1000000);
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    bench_row("plan, 10,000 nodes in 4 compartments", small, "s", "<= 0.1");
    bench_row("plan, 100,000 nodes", middle, "s", "<= 1");
    bench_row("plan, 1,000,000 nodes", large, "s", "<= 15");
    /* n log n from 10^5 to 10^6 is a factor of 12; from 10^4 to 10^6, 150. */
    bench_row("plan, 1,000,000 to 100,000 nodes, against n log n", large / middle / 12, "x",
              "<= 1.5");
    bench_row("plan, 1,000,000 to 10,000 nodes, against n log n", large / small / 150, "x",
              "<= 1.5");
    bench_row("plan, peak memory a node", (double)usage.ru_maxrss * 1024 / 1e6, "bytes", "<= 1024");
    bench_row("plan, bracket of 5 on 10,000 resources",
              plan_seconds(bracket_text, TARGET_RESOURCE, 10000), "s", "<= 2");
    return 0;
}
