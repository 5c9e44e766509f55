/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster_agent/agent_run.h"

#include <curl/curl.h>
#include <limits.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/footprint.h"
#include "base/log.h"
#include "base/mem.h"
#include "cluster_agent/chart_run.h"
#include "kube/follower.h"
#include "kube/writer.h"
#include "operator/program.h"

#define PATH_BYTES_MAX 4096u
/* After so many steps, and when nothing is to be done for a while, what they needed is given back:
 * definitions of some MB pass through several forms before they are applied. */
#define SHRINK_STEPS 30
#define SHRINK_REST_MS 1000

typedef struct run run;

typedef struct watched {
    run *run;
    agent_watch watch;
    follower *follower;
    bool done; /* it is of no interest any more */
} watched;

/* A kind of the cluster's own objects. */
typedef struct watched_kind {
    run *run;
    struct watched_kind *next;
    agent_kind *kind;
    follower *follower;
} watched_kind;

typedef struct side {
    kube_access access;
    connection *connection; /* of requests */
    connection *watches;
    writer *writer;
} side;

struct run {
    const agent_settings *settings;
    program program;
    side sides[AGENT_SIDE_COUNT];
    agent_shell *shell;
    watched watches[AGENT_WATCH_COUNT];
    watched_kind *kinds;
    chart_runner *charts;
    char kubeconfig[PATH_MAX]; /* for helm; empty: there is none in a pod */
    buf pod_config;            /* what would stand there */
    bool ready_told, failed;
    uint64_t shrunk; /* steps by then */
};

static int64_t read_clock_ms(clockid_t which)
{
    struct timespec now;
    clock_gettime(which, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* A machine that comes up with a wrong time, and has it put right, must not wait for hours to pass
 * again; one that slept has waited. */
static int64_t clock_ms(void *context)
{
    (void)context;
    return read_clock_ms(CLOCK_BOOTTIME);
}

/* By the hub's clock once it has answered: what is told is compared with it there. */
static moment time_told(void *context)
{
    const run *r = context;
    int64_t ms;
    if (!connection_date(r->sides[AGENT_HUB].connection, &ms))
        ms = read_clock_ms(CLOCK_REALTIME);
    return (moment){ms / 1000, 0};
}

/* ---- what comes in ---- */

static bool seen(void *context, yyjson_val *json)
{
    const watched *w = context;
    return agent_shell_seen(w->run->shell, w->watch, json);
}

static void gone(void *context, str space, str name)
{
    (void)space;
    const watched *w = context;
    agent_shell_gone(w->run->shell, w->watch, name);
}

static void synced(void *context)
{
    watched *w = context;
    w->done = w->watch == AGENT_WATCH_INVENTORIES;
    agent_shell_synced(w->run->shell, w->watch);
}

static bool object_seen(void *context, yyjson_val *json)
{
    const watched_kind *k = context;
    return agent_shell_object_seen(k->run->shell, k->kind, json);
}

static void object_gone(void *context, str space, str name)
{
    const watched_kind *k = context;
    agent_shell_object_gone(k->run->shell, k->kind, space, name);
}

static void object_synced(void *context)
{
    const watched_kind *k = context;
    agent_shell_object_synced(k->run->shell, k->kind);
}

/* ---- what the shell asks for ---- */

static bool send_write(void *context, agent_side at, const kube_write *w, write_handler handler,
                       err *error)
{
    const run *r = context;
    return writer_send(r->sides[at].writer, w, handler, error);
}

static void follow_kind(void *context, agent_kind *kind, str path)
{
    run *r = context;
    watched_kind *k = mem_zalloc(sizeof *k);
    if (k) {
        *k = (watched_kind){.run = r, .next = r->kinds, .kind = kind};
        k->follower =
            follower_start(&r->program.loop, r->sides[AGENT_OWN].watches, path,
                           (watch_sink){k, object_seen, object_gone, object_synced, NULL});
        if (k->follower)
            follower_doubt(k->follower);
        r->kinds = k;
    }
    r->failed |= !k || !k->follower;
}

static void unfollow_kind(void *context, agent_kind *kind)
{
    run *r = context;
    watched_kind **link = &r->kinds;
    while (*link && (*link)->kind != kind)
        link = &(*link)->next;
    watched_kind *k = *link;
    if (!k)
        return;
    *link = k->next;
    follower_stop(k->follower);
    mem_free(k);
}

static bool run_chart(void *context, const step *s, chart_handler handler, err *error)
{
    const run *r = context;
    return chart_runner_start(r->charts, s, handler, error);
}

/* ---- the loop ---- */

static void turn(void *context)
{
    run *r = context;
    int64_t now = clock_ms(r);
    if (agent_shell_is_due(r->shell) || agent_shell_next_ms(r->shell) <= now)
        r->failed |= !agent_shell_turn(r->shell);
    if (r->failed) {
        uv_stop(&r->program.loop);
        return;
    }
    for (size_t i = 0; i < AGENT_WATCH_COUNT; i++)
        if (r->watches[i].done)
            r->watches[i].follower = follower_stop(r->watches[i].follower);
    if (!r->ready_told && agent_shell_ready(r->shell)) {
        r->ready_told = true;
        log_line(LOG_INFO, "hub and cluster are known: work begins");
    }
    int64_t next = agent_shell_next_ms(r->shell);
    int64_t wait = agent_shell_is_due(r->shell) ? 0 : next - now;
    program_wait(&r->program, wait);
    if (wait >= SHRINK_REST_MS && agent_shell_steps(r->shell) - r->shrunk >= SHRINK_STEPS) {
        r->shrunk = agent_shell_steps(r->shell);
        footprint_shrink();
    }
}

static void end(void *context)
{
    run *r = context;
    uv_stop(&r->program.loop);
}

static void put_metrics(void *context, buf *out)
{
    const run *r = context;
    agent_shell_metrics(r->shell, out);
}

static const char *trouble(void *context)
{
    const run *r = context;
    return agent_shell_ready(r->shell) ? NULL : agent_shell_trouble(r->shell);
}

/* ---- opening and closing ---- */

static bool open_side(run *r, side *s, err *error)
{
    writer_options options = {.seed = (uint64_t)getpid() * 2654435761u};
    s->connection = connection_open(&r->program.loop, &s->access, "drover-cluster-agent", error);
    s->watches = s->connection ? connection_beside(s->connection, error) : NULL;
    s->writer = s->watches ? writer_start(&r->program.loop, s->connection, options) : NULL;
    return s->writer || (s->watches && err_memory(error));
}

static bool in_pod(const run *r)
{
    return str_eq(r->sides[AGENT_OWN].access.context, STR("in-cluster"));
}

static bool open_shell(run *r, err *error)
{
    const agent_settings *from = r->settings;
    str own = from->agent_namespace.len > 0 ? from->agent_namespace : STR(AGENT_NAMESPACE);
    if (in_pod(r) && from->agent_namespace.len == 0 && r->sides[AGENT_OWN].access.namespace.len > 0)
        own = r->sides[AGENT_OWN].access.namespace;
    agent_shell_settings settings = {.home = from->home,
                                     .cluster_namespace = from->cluster_namespace,
                                     .cluster = from->cluster,
                                     .agent_namespace = own,
                                     .heartbeat_ms = from->heartbeat_ms};
    r->shell = agent_shell_new(
        &settings,
        (agent_api){r, send_write, follow_kind, unfollow_kind, run_chart, clock_ms, time_told},
        error);
    return r->shell;
}

/* The pod's account as a kubeconfig; its token is read from the file again and again. */
static void put_pod_config(buf *out, const kube_access *pod)
{
    buf_addz(out, "{\"apiVersion\":\"v1\",\"kind\":\"Config\",\"current-context\":\"pod\","
                  "\"contexts\":[{\"name\":\"pod\",\"context\":{\"cluster\":\"own\","
                  "\"user\":\"account\"}}],"
                  "\"clusters\":[{\"name\":\"own\",\"cluster\":{\"server\":");
    buf_add_json(out, pod->server);
    buf_addz(out, ",\"certificate-authority\":");
    buf_add_json(out, pod->ca_file);
    buf_addz(out, "}}],\"users\":[{\"name\":\"account\",\"user\":{\"tokenFile\":");
    buf_add_json(out, pod->token_file);
    buf_addz(out, "}}]}\n");
}

/* Helm looks at the same cluster. */
static bool open_charts(run *r, err *error)
{
    const kube_where *where = &r->settings->own;
    chart_place at = {.program = "helm", .context = where->context};
    if (in_pod(r)) {
        put_pod_config(&r->pod_config, &r->sides[AGENT_OWN].access);
        at.config = buf_str(&r->pod_config);
        at.context = STR_EMPTY;
    } else if (where->files.len > 0) {
        snprintf(r->kubeconfig, sizeof r->kubeconfig, "%.*s", STR_ARG(where->files));
    } else {
        snprintf(r->kubeconfig, sizeof r->kubeconfig, "%.*s/.kube/config", STR_ARG(where->home));
    }
    at.kubeconfig = str_of(r->kubeconfig);
    r->charts = r->pod_config.failed ? NULL : chart_runner_new(&r->program.loop, at);
    return r->charts || err_memory(error);
}

static bool open_watches(run *r, err *error)
{
    for (size_t i = 0; i < AGENT_WATCH_COUNT; i++) {
        scoped(buf_done) buf path = BUF(PATH_BYTES_MAX);
        watched *w = &r->watches[i];
        agent_side at = i == AGENT_WATCH_DEPLOYMENTS ? AGENT_HUB : AGENT_OWN;
        *w = (watched){.run = r, .watch = (agent_watch)i};
        agent_watch_path(r->shell, w->watch, &path);
        if (!path.failed)
            w->follower = follower_start(&r->program.loop, r->sides[at].watches, buf_str(&path),
                                         (watch_sink){w, seen, gone, synced, NULL});
        if (!w->follower)
            return err_memory(error);
        follower_doubt(w->follower); /* what a cluster runs is little */
    }
    return true;
}

static void close_all(run *r)
{
    for (size_t i = 0; i < AGENT_WATCH_COUNT; i++)
        r->watches[i].follower = follower_stop(r->watches[i].follower);
    for (size_t i = 0; i < AGENT_SIDE_COUNT; i++)
        r->sides[i].writer = writer_stop(r->sides[i].writer);
    r->charts = chart_runner_stop(r->charts);
    r->shell = agent_shell_free(r->shell);
    for (size_t i = 0; i < AGENT_SIDE_COUNT; i++) {
        r->sides[i].watches = connection_close(r->sides[i].watches);
        r->sides[i].connection = connection_close(r->sides[i].connection);
    }
    program_close(&r->program);
    buf_done(&r->pod_config);
}

static bool open_all(run *r, err *error)
{
    return open_side(r, &r->sides[AGENT_HUB], error) && open_side(r, &r->sides[AGENT_OWN], error) &&
           open_shell(r, error) && open_charts(r, error) && open_watches(r, error) &&
           program_serve(&r->program, r->settings->metrics_listen, r->settings->health_listen,
                         error);
}

bool agent_run(const agent_settings *settings, err *error)
{
    scoped(arena_cleanup) arena *texts = arena_new(0);
    run *r = mem_zalloc(sizeof *r);
    if (!texts || !r) {
        mem_free(r);
        return err_memory(error);
    }
    r->settings = settings;
    r->pod_config = BUF(PATH_BYTES_MAX);
    side *main_side = &r->sides[AGENT_HUB], *own = &r->sides[AGENT_OWN];
    bool good = (kubeconfig_read(&settings->hub, texts, &main_side->access, error) ||
                 err_wrap(error, "the hub")) &&
                (kubeconfig_read(&settings->own, texts, &own->access, error) ||
                 err_wrap(error, "the cluster"));
    curl_global_init(CURL_GLOBAL_DEFAULT);
    if (good &&
        (good = program_open(&r->program,
                             (program_handler){r, turn, NULL, end, put_metrics, trouble}, error))) {
        good = open_all(r, error);
        if (good) {
            log_line(LOG_INFO, "agent of %.*s at %.*s, hub %.*s", STR_ARG(settings->cluster),
                     STR_ARG(own->access.server), STR_ARG(main_side->access.server));
            uv_run(&r->program.loop, UV_RUN_DEFAULT);
            good = !r->failed || err_memory(error);
        }
        close_all(r);
    }
    curl_global_cleanup();
    mem_free(r);
    return good;
}
