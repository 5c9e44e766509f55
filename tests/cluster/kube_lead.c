/* SPDX-License-Identifier: Apache-2.0 */
/* Takes part in an election and writes as fast as it can while it leads, for tests.
 *
 *     kube-lead KUBECONFIG IDENTITY DURATION_MS DEADLINE_MS RETRY_MS
 *
 * The Lease is default/lead. While it leads it counts up data.count of the ConfigMap
 * default/counter, which must exist, each time with the version it saw last. Prints "began",
 * "ended", "wrote VERSION", "released". SIGTERM gives the lease back and ends it. */
#include <curl/curl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "kube/leader.h"
#include "kube/writer.h"

#define VERSION_BYTES 64

typedef struct program {
    connection *connection;
    leader *leader;
    writer *writer;
    const char *identity;
    uv_signal_t signal;
    char version[VERSION_BYTES];
    int count;
    bool ending;
} program;

static void say(const char *word, const char *more)
{
    printf("%s %s\n", word, more);
    fflush(stdout);
}

static void write_next(program *p);

static void took(void *context, const write_outcome *outcome, yyjson_val *object)
{
    program *p = context;
    const char *version =
        yyjson_get_str(yyjson_obj_get(yyjson_obj_get(object, "metadata"), "resourceVersion"));
    const char *count = yyjson_get_str(yyjson_obj_get(yyjson_obj_get(object, "data"), "count"));
    if (outcome->kind == WRITE_DONE && version) {
        if (p->version[0] != '\0')
            say("wrote", version);
        snprintf(p->version, sizeof p->version, "%s", version);
        p->count = count ? (int)strtol(count, NULL, 10) : 0;
    } else {
        say(write_outcome_text(outcome->kind), outcome->message);
        p->version[0] = '\0'; /* read again */
    }
    if (p->ending)
        leader_release(p->leader);
    else if (leader_leads(p->leader))
        write_next(p);
}

static void write_next(program *p)
{
    char body[256];
    err error = {0};
    kube_write w = {.verb = WRITE_READ,
                    .collection = STR("/api/v1/namespaces/default/configmaps"),
                    .name = STR("counter")};
    snprintf(body, sizeof body, "{\"data\":{\"count\":\"%d\",\"by\":\"%s\"}}", p->count + 1,
             p->identity);
    if (p->version[0] != '\0') {
        w.verb = WRITE_MERGE;
        w.version = str_of(p->version);
        w.body = str_of(body);
    }
    if (!writer_send(p->writer, &w, (write_handler){p, took, NULL}, &error))
        say("failed", error.text);
}

static void began(void *context)
{
    program *p = context;
    say("began", p->identity);
    p->version[0] = '\0';
    if (writer_waiting(p->writer) == 0)
        write_next(p);
}

static void ended(void *context)
{
    const program *p = context;
    say("ended", p->identity);
}

static void released(void *context)
{
    program *p = context;
    say("released", p->identity);
    p->leader = leader_stop(p->leader);
    p->writer = writer_stop(p->writer);
    p->connection = connection_close(p->connection);
}

static void stop(uv_signal_t *signal, int number)
{
    (void)number;
    program *p = signal->data;
    p->ending = true;
    uv_close((uv_handle_t *)signal, NULL);
    if (writer_waiting(p->writer) == 0)
        leader_release(p->leader);
}

int main(int count, char **words)
{
    static program p;
    err error = {0};
    kube_access access;
    arena *a = arena_new(0);
    uv_loop_t *loop = uv_default_loop();
    curl_global_init(CURL_GLOBAL_DEFAULT);
    if (count != 6)
        return 2;
    kube_where where = {.files = str_of(words[1])};
    bool good = a && kubeconfig_read(&where, a, &access, &error);
    p.connection = good ? connection_open(loop, &access, words[2], &error) : NULL;
    if (!p.connection) {
        fprintf(stderr, "%s\n", error.text);
        return 1;
    }
    p.identity = words[2];
    lease_options options = {.collection =
                                 STR("/apis/coordination.k8s.io/v1/namespaces/default/leases"),
                             .name = STR("lead"),
                             .identity = str_of(p.identity),
                             .duration_ms = strtol(words[3], NULL, 10),
                             .deadline_ms = strtol(words[4], NULL, 10),
                             .retry_ms = strtol(words[5], NULL, 10)};
    p.leader = leader_start(loop, p.connection, &options,
                            (leader_handler){&p, began, ended, released, NULL});
    p.writer = writer_start(loop, p.connection,
                            (writer_options){.seed = 1, .permit = leader_permit(p.leader)});
    p.signal.data = &p;
    uv_signal_init(loop, &p.signal);
    uv_signal_start(&p.signal, stop, SIGTERM);
    uv_run(loop, UV_RUN_DEFAULT);
    int left = uv_loop_close(loop);
    arena_free(a);
    curl_global_cleanup();
    return left != 0 || mem_live() != 0;
}
