/* SPDX-License-Identifier: Apache-2.0 */
/* What one status change of one BundleDeployment costs the cluster shell, what a turn over a large
 * hub costs, and how much memory such a hub takes. The server answers every write at once. */
#include "bench/bench.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/vec.h"
#include "operator/cluster_shell.h"

#define SPACE "fleet-default"
#define TEXT_BYTES 4096
#define CHANGES 2000u

typedef struct reply {
    write_handler handler;
    char *object; /* JSON; NULL: none */
    bool deployment;
} reply;

typedef struct server {
    cluster_shell *shell;
    VEC(reply) replies;
    uint64_t revision;
    int64_t now_ms;
    size_t clusters, bundles;
    char *sample; /* one deployment, as it is */
    uint64_t writes;
} server;

static void insist(bool good)
{
    if (!good)
        abort();
}

static char *text_of(const buf *text)
{
    insist(!text->failed);
    return text->ptr;
}

/* What a write made: its own metadata behind what the server adds. */
static char *made(server *v, const kube_write *w, const char *more)
{
    str body = w->body, id = STR_EMPTY;
    size_t at = str_find(body, STR("\"metadata\":{"));
    size_t from = str_find(body, STR("\"deploymentID\":\""));
    if (from != SIZE_MAX) {
        id = str_part(body, from + sizeof "\"deploymentID\":\"" - 1, SIZE_MAX);
        id = str_cut(&id, '"');
    }
    insist(at != SIZE_MAX);
    buf out = BUF(1u << 20);
    buf_add(&out, str_part(body, 0, at + sizeof "\"metadata\":{" - 1));
    buf_addf(&out, "\"uid\":\"u\",\"resourceVersion\":\"%llu\",\"generation\":1,%s",
             (unsigned long long)++v->revision, more);
    buf_add(&out, str_part(body, at + sizeof "\"metadata\":{" - 1, SIZE_MAX));
    out.len--;
    if (id.len > 0)
        buf_addf(&out,
                 ",\"status\":{\"appliedDeploymentID\":\"%.*s\",\"ready\":true,"
                 "\"nonModified\":true}",
                 STR_ARG(id));
    buf_addz(&out, "}");
    return text_of(&out);
}

static void put_bundle(buf *out, int number, const char *content, const char *more)
{
    buf_addf(out,
             "{\"metadata\":{\"name\":\"b%02d\",\"namespace\":\"" SPACE "\"%s},\"spec\":"
             "{\"rolloutStrategy\":{\"maxUnavailable\":\"10%%\"},\"resources\":[{\"name\":\"a\","
             "\"content\":\"%s%d\"}],\"targets\":[{\"clusterSelector\":{\"matchLabels\":"
             "{\"env\":\"prod\"}}}]}}",
             number, more, content, number);
}

/* The record of a Bundle: the Bundle with it. */
static char *recorded(server *v, const kube_write *w)
{
    buf more = BUF(1u << 20), out = BUF(1u << 20);
    str inner = str_part(w->body, sizeof "{\"metadata\":{" - 1, SIZE_MAX);
    inner.len -= 2;
    buf_addf(&more, ",\"uid\":\"u\",\"generation\":1,\"resourceVersion\":\"%llu\",%.*s",
             (unsigned long long)++v->revision, STR_ARG(inner));
    put_bundle(&out, (w->name.ptr[1] - '0') * 10 + w->name.ptr[2] - '0', "one", text_of(&more));
    buf_done(&more);
    return text_of(&out);
}

static bool send_write(void *context, const kube_write *w, write_handler handler, err *error)
{
    server *v = context;
    (void)error;
    reply one = {.handler = handler};
    bool status = w->subresource.len > 0;
    v->writes++;
    one.deployment = w->verb == WRITE_CREATE && str_find(w->body, STR("stagedOpt")) != SIZE_MAX;
    if (w->verb == WRITE_CREATE)
        one.object = made(v, w, "");
    else if (w->verb == WRITE_MERGE && !status)
        one.object = recorded(v, w);
    insist(vec_push(&v->replies, one));
    return true;
}

static void show(server *v, hub_kind kind, const char *text)
{
    yyjson_doc *doc = yyjson_read(text, strlen(text), 0);
    insist(doc && cluster_shell_seen(v->shell, kind, yyjson_doc_get_root(doc), v->now_ms));
    yyjson_doc_free(doc);
}

static void answer(server *v)
{
    for (size_t i = 0; i < v->replies.len; i++) {
        reply one = v->replies.at[i];
        write_outcome how = {.kind = WRITE_DONE};
        yyjson_doc *doc = one.object ? yyjson_read(one.object, strlen(one.object), 0) : NULL;
        one.handler.done(one.handler.context, &how, doc ? yyjson_doc_get_root(doc) : NULL);
        yyjson_doc_free(doc);
        if (one.deployment && !v->sample)
            v->sample = one.object;
        else
            mem_free(one.object);
    }
    v->replies.len = 0;
}

static void settle(server *v)
{
    do {
        insist(cluster_shell_turn(v->shell, v->now_ms));
        answer(v);
    } while (cluster_shell_is_due(v->shell));
}

static server server_of(size_t clusters, int bundles)
{
    server v = {.now_ms = 1763272800000, .clusters = clusters, .bundles = (size_t)bundles};
    return v;
}

static void fill(server *v)
{
    char text[TEXT_BYTES];
    err error;
    hub_settings settings = {0};
    v->shell = cluster_shell_new(&settings, (hub_api){v, send_write, NULL}, &error);
    insist(v->shell != NULL);
    for (size_t i = 0; i < v->clusters; i++) {
        snprintf(text, sizeof text,
                 "{\"metadata\":{\"name\":\"c%05zu\",\"namespace\":\"" SPACE
                 "\",\"uid\":\"u\",\"resourceVersion\":\"%zu\",\"generation\":1,\"labels\":"
                 "{\"env\":\"prod\"}},\"spec\":{},\"status\":{\"namespace\":\"ns-c%05zu\","
                 "\"agent\":{\"lastSeen\":\"2026-11-16T06:00:00Z\"}}}",
                 i, i + 1, i);
        show(v, HUB_CLUSTER, text);
    }
    v->revision = v->clusters + 1;
    for (int i = 0; i < (int)v->bundles; i++) {
        buf out = BUF(TEXT_BYTES);
        put_bundle(&out, i, "one", ",\"uid\":\"u\",\"generation\":1,\"resourceVersion\":\"1\"");
        show(v, HUB_BUNDLE, text_of(&out));
        buf_done(&out);
    }
    for (int kind = 0; kind < HUB_KIND_COUNT; kind++)
        cluster_shell_synced(v->shell, (hub_kind)kind);
    settle(v);
    v->now_ms += 10000;
    settle(v);
}

/* One deployment becomes ready or not ready each time; a turn follows. */
static void change(void *context, uint64_t count)
{
    server *v = context;
    for (uint64_t i = 0; i < count; i++) {
        buf out = BUF(1u << 16);
        str rest = str_of(v->sample);
        size_t at = str_find(rest, STR("\"ready\":true"));
        insist(at != SIZE_MAX);
        buf_add(&out, str_part(rest, 0, at));
        buf_addz(&out, i % 2 == 0 ? "\"ready\":false" : "\"ready\":true");
        buf_add(&out, str_part(rest, at + sizeof "\"ready\":true" - 1, SIZE_MAX));
        show(v, HUB_DEPLOYMENT, text_of(&out));
        buf_done(&out);
        settle(v);
    }
}

static double resident_mib(void)
{
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    return (double)used.ru_maxrss / 1024;
}

static void free_server(server *v)
{
    v->shell = cluster_shell_free(v->shell);
    mem_free(v->sample);
    vec_done(&v->replies);
}

int main(void)
{
    server small = server_of(1000, 1);
    fill(&small);
    bench_row("hub shell: one status change among 1,000", 1e6 / bench_rate(change, &small, CHANGES),
              "us", "<= 50");
    free_server(&small);
    server large = server_of(10000, 20);
    double start = bench_seconds();
    fill(&large);
    bench_row("hub shell: 10,000 clusters and 20 Bundles from nothing", bench_seconds() - start,
              "s", "-");
    bench_row("hub shell: a pass over them", 1e3 / bench_rate(change, &large, 200), "ms", "<= 10");
    bench_row("hub shell: resident with them", resident_mib(), "MiB", "<= 256");
    free_server(&large);
    return 0;
}
