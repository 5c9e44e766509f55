/* SPDX-License-Identifier: Apache-2.0 */
/* Reading 5,000 nodes as "kubectl get nodes -o json" prints them, against yyjson alone. */
#include <assert.h>
#include <stdlib.h>

#include "base/limits.h"
#include "bench.h"
#include "model/object.h"

#define NODES 5000

static const char *const managers[] = {"kubelet", "kube-controller-manager", "gpu-operator",
                                       "cilium"};

static void add_map(buf *out, const char *name, const char *key, size_t count, size_t seed)
{
    buf_addf(out, "                \"%s\": {\n", name);
    for (size_t i = 0; i < count; i++)
        buf_addf(out, "                    \"%s.example.com/%s-%02zu\": \"value-%zu\"%s\n",
                 i < count / 2 ? "feature.node" : "topology", key, i, (seed * 31 + i) % 97,
                 i + 1 < count ? "," : "");
    buf_addz(out, "                },\n");
}

static void add_managed_fields(buf *out)
{
    buf_addz(out, "                \"managedFields\": [\n");
    for (size_t m = 0; m < 4; m++) {
        buf_addf(out, "                    {\n                        \"apiVersion\": \"v1\",\n"
                      "                        \"fieldsType\": \"FieldsV1\",\n"
                      "                        \"fieldsV1\": {\n"
                      "                            \"f:metadata\": {\n"
                      "                                \"f:labels\": {\n"
                      "                                    \".\": {},\n");
        for (size_t i = 0; i < 10; i++)
            buf_addf(out, "                                    \"f:example.com/label-%zu\": {}%s\n",
                     i, i < 9 ? "," : "");
        buf_addf(out,
                 "                                }\n                            }\n"
                 "                        },\n"
                 "                        \"manager\": \"%s\",\n"
                 "                        \"operation\": \"Update\",\n"
                 "                        \"time\": \"2026-01-31T12:00:00Z\"\n"
                 "                    }%s\n",
                 managers[m], m < 3 ? "," : "");
    }
    buf_addz(out, "                ],\n");
}

static void add_conditions(buf *out)
{
    static const char *const types[] = {"NetworkUnavailable", "MemoryPressure", "DiskPressure",
                                        "PIDPressure", "Ready"};
    buf_addz(out, "                \"conditions\": [\n");
    for (size_t i = 0; i < 5; i++)
        buf_addf(out,
                 "                    {\n"
                 "                        \"lastHeartbeatTime\": \"2026-01-31T12:00:00Z\",\n"
                 "                        \"lastTransitionTime\": \"2026-01-30T08:15:30Z\",\n"
                 "                        \"message\": \"kubelet has nothing to complain about\",\n"
                 "                        \"reason\": \"Kubelet%s\",\n"
                 "                        \"status\": \"%s\",\n"
                 "                        \"type\": \"%s\"\n                    }%s\n",
                 types[i], i == 4 ? "True" : "False", types[i], i < 4 ? "," : "");
    buf_addz(out, "                ],\n");
}

static void add_images(buf *out)
{
    buf_addz(out, "                \"images\": [\n");
    for (size_t i = 0; i < 40; i++)
        buf_addf(out,
                 "                    {\n                        \"names\": [\n"
                 "                            \"registry.example.com/team/app-%02zu@sha256:"
                 "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\",\n"
                 "                            \"registry.example.com/team/app-%02zu:v1.%zu.0\"\n"
                 "                        ],\n                        \"sizeBytes\": %zu\n"
                 "                    }%s\n",
                 i, i, i, 10000000 + i * 7919, i < 39 ? "," : "");
    buf_addz(out, "                ],\n");
}

static void add_node(buf *out, size_t n)
{
    buf_addf(out,
             "        {\n            \"apiVersion\": \"v1\",\n            \"kind\": \"Node\",\n"
             "            \"metadata\": {\n");
    add_map(out, "annotations", "note", 10, n);
    buf_addz(out, "                \"creationTimestamp\": \"2026-01-31T11:00:00Z\",\n");
    add_map(out, "labels", "label", 25, n);
    add_managed_fields(out);
    buf_addf(out,
             "                \"name\": \"node-%05zu\",\n"
             "                \"resourceVersion\": \"%zu\",\n"
             "                \"uid\": \"3e1b2f6a-0000-4000-8000-%012zu\"\n            },\n"
             "            \"spec\": {\n                \"podCIDR\": \"10.244.0.0/24\",\n"
             "                \"podCIDRs\": [\n                    \"10.244.0.0/24\"\n"
             "                ],\n                \"providerID\": \"aws:///us-east-1a/i-%016zx\"\n"
             "            },\n            \"status\": {\n",
             n, 1000 + n, n, n);
    buf_addz(out,
             "                \"addresses\": [\n                    {\n"
             "                        \"address\": \"10.0.0.1\",\n"
             "                        \"type\": \"InternalIP\"\n                    }\n"
             "                ],\n"
             "                \"allocatable\": {\n                    \"cpu\": \"63770m\",\n"
             "                    \"memory\": \"512Gi\",\n                    \"pods\": \"110\"\n"
             "                },\n");
    add_conditions(out);
    add_images(out);
    buf_addf(out,
             "                \"nodeInfo\": {\n                    \"architecture\": \"amd64\",\n"
             "                    \"bootID\": \"b0071d00-1111-4222-8333-%012zu\",\n"
             "                    \"kernelVersion\": \"6.1.0-28-cloud-amd64\",\n"
             "                    \"kubeletVersion\": \"v1.33.1\"\n                }\n"
             "            }\n        }",
             n);
}

static buf make_nodes(void)
{
    buf out = BUF(LIMIT_FILE_BYTES);
    buf_addz(&out, "{\n    \"apiVersion\": \"v1\",\n    \"items\": [\n");
    for (size_t n = 0; n < NODES; n++) {
        add_node(&out, n);
        buf_addz(&out, n + 1 < NODES ? ",\n" : "\n");
    }
    buf_addz(&out, "    ],\n    \"kind\": \"List\",\n    \"metadata\": {\n"
                   "        \"resourceVersion\": \"\"\n    }\n}\n");
    return out;
}

static void read_plain(str text)
{
    yyjson_doc *doc = yyjson_read(text.ptr, text.len, 0);
    assert(doc);
    bench_keep(doc);
    yyjson_doc_free(doc);
}

static void read_typed(str text)
{
    document_set *set = document_set_new();
    object_list *objects = objects_new();
    problems *found = problems_new();
    assert(set && objects && found);
    bool good = objects_load(objects, set, STR("bench"), text, found);
    assert(good && !problems_out_of_memory(found) && objects->len == NODES);
    bench_keep(objects->at);
    objects_free(objects);
    document_set_free(set);
    problems_free(found);
}

/* The two take turns, so that a slow machine is slow for both. */
static void compare(const char *form, str text)
{
    double plain = 1e9;
    double typed = 1e9;
    for (int run = 0; run <= BENCH_RUNS; run++) {
        double start = bench_seconds();
        read_plain(text);
        double middle = bench_seconds();
        read_typed(text);
        double end = bench_seconds();
        plain = middle - start < plain ? middle - start : plain;
        typed = end - middle < typed ? end - middle : typed;
    }
    char name[80];
    snprintf(name, sizeof name, "%s node document", form);
    bench_row(name, (double)text.len / NODES / 1024, "KiB", "-");
    snprintf(name, sizeof name, "%s nodes, yyjson alone", form);
    bench_row(name, plain * 1e3, "ms", "-");
    snprintf(name, sizeof name, "%s nodes, typed", form);
    bench_row(name, typed * 1e3, "ms", "-");
    snprintf(name, sizeof name, "%s nodes, typed over yyjson", form);
    bench_row(name, typed / plain, "times", "<= 1.5");
}

int main(void)
{
    buf nodes = make_nodes();
    assert(!nodes.failed);
    compare("indented", buf_str(&nodes));
    yyjson_doc *doc = yyjson_read(nodes.ptr, nodes.len, 0);
    size_t length;
    char *compact = yyjson_write(doc, 0, &length);
    yyjson_doc_free(doc);
    buf_done(&nodes);
    assert(compact);
    compare("compact", (str){compact, length});
    free(compact);
    return 0;
}
