/* SPDX-License-Identifier: Apache-2.0 */
/* Follows collections of an API server and prints what it is told, for tests.
 *
 *     kube-follow KUBECONFIG PATH...
 *
 * A line each: "seen PATH KEY VERSION", "gone PATH KEY", "synced PATH COUNT". Ends with SIGTERM. */
#include <curl/curl.h>
#include <signal.h>
#include <stdio.h>

#include "base/mem.h"
#include "kube/follower.h"

#define PATHS_MAX 16

typedef struct followed {
    const char *path;
    follower *follower;
} followed;

typedef struct program {
    connection *connection;
    followed kinds[PATHS_MAX];
    size_t count;
    uv_signal_t signal;
} program;

static bool seen(void *context, yyjson_val *object)
{
    const followed *k = context;
    yyjson_val *metadata = yyjson_obj_get(object, "metadata");
    const char *space = yyjson_get_str(yyjson_obj_get(metadata, "namespace"));
    printf("seen %s %s%s%s %s\n", k->path, space ? space : "", space ? "/" : "",
           yyjson_get_str(yyjson_obj_get(metadata, "name")),
           yyjson_get_str(yyjson_obj_get(metadata, "resourceVersion")));
    fflush(stdout);
    return true;
}

static void gone(void *context, str space, str name)
{
    const followed *k = context;
    printf("gone %s %.*s%s%.*s\n", k->path, STR_ARG(space), space.len > 0 ? "/" : "",
           STR_ARG(name));
    fflush(stdout);
}

static void synced(void *context)
{
    const followed *k = context;
    printf("synced %s %zu\n", k->path, list_watch_count(follower_state(k->follower)));
    fflush(stdout);
}

static void stop(uv_signal_t *signal, int number)
{
    (void)number;
    program *p = signal->data;
    for (size_t i = 0; i < p->count; i++)
        p->kinds[i].follower = follower_stop(p->kinds[i].follower);
    p->connection = connection_close(p->connection);
    uv_close((uv_handle_t *)signal, NULL);
}

int main(int count, char **words)
{
    static program p;
    err error = {0};
    kube_access access;
    arena *a = arena_new(0);
    uv_loop_t *loop = uv_default_loop();
    curl_global_init(CURL_GLOBAL_DEFAULT);
    kube_where where = {.files = str_of(count > 1 ? words[1] : "")};
    bool good = a && kubeconfig_read(&where, a, &access, &error);
    p.connection = good ? connection_open(loop, &access, "kube-follow", &error) : NULL;
    if (!p.connection) {
        fprintf(stderr, "%s\n", error.text);
        return 1;
    }
    for (int i = 2; i < count && p.count < PATHS_MAX; i++) {
        followed *k = &p.kinds[p.count++];
        k->path = words[i];
        k->follower = follower_start(loop, p.connection, str_of(k->path),
                                     (watch_sink){k, seen, gone, synced, NULL});
    }
    p.signal.data = &p;
    uv_signal_init(loop, &p.signal);
    uv_signal_start(&p.signal, stop, SIGTERM);
    uv_run(loop, UV_RUN_DEFAULT);
    int left = uv_loop_close(loop);
    arena_free(a);
    curl_global_cleanup();
    return left != 0 || mem_live() != 0;
}
