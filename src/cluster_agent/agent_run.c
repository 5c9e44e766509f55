/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster_agent/agent_run.h"

#include <curl/curl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "cluster_agent/chart_run.h"
#include "kube/follower.h"
#include "kube/writer.h"
#include "operator/probes.h"

/* The longest that a timer is set to: a clock that is put forward is noticed then. */
#define TIMER_MS_MAX INT64_C(60000)
#define PATH_BYTES_MAX 4096u

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
    uv_loop_t loop;
    uv_prepare_t prepare;
    uv_timer_t timer;
    uv_signal_t signals[2];
    side sides[AGENT_SIDE_COUNT];
    agent_shell *shell;
    watched watches[AGENT_WATCH_COUNT];
    watched_kind *kinds;
    chart_runner *charts;
    char kubeconfig[PATH_MAX]; /* for helm; empty: the pod's account */
    probes *metrics, *health;
    bool ready_told, failed;
};

static int64_t clock_ms(void *context)
{
    (void)context;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
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
            follower_start(&r->loop, r->sides[AGENT_OWN].watches, path,
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

static void on_timer(uv_timer_t *timer)
{
    (void)timer; /* before_wait does what is due */
}

static void before_wait(uv_prepare_t *prepare)
{
    run *r = prepare->data;
    int64_t now = clock_ms(r);
    if (agent_shell_is_due(r->shell) || agent_shell_next_ms(r->shell) <= now)
        r->failed |= !agent_shell_turn(r->shell);
    if (r->failed) {
        uv_stop(&r->loop);
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
    wait = wait < 0 ? 0 : wait > TIMER_MS_MAX ? TIMER_MS_MAX : wait;
    uv_timer_start(&r->timer, on_timer, (uint64_t)wait, 0);
}

static void on_signal(uv_signal_t *handle, int number)
{
    (void)number;
    uv_stop(handle->loop);
}

/* ---- probes ---- */

static int answer_metrics(void *context, str path, buf *out)
{
    const run *r = context;
    if (!str_eq(path, STR("/metrics")))
        return 404;
    agent_shell_metrics(r->shell, out);
    return 200;
}

static int answer_health(void *context, str path, buf *out)
{
    const run *r = context;
    if (str_eq(path, STR("/healthz")) ||
        (str_eq(path, STR("/readyz")) && agent_shell_ready(r->shell))) {
        buf_addz(out, "ok");
        return 200;
    }
    if (!str_eq(path, STR("/readyz")))
        return 404;
    buf_addz(out, agent_shell_trouble(r->shell));
    return 503;
}

static bool open_probes(run *r, err *error)
{
    str metrics = r->settings->metrics_listen, health = r->settings->health_listen;
    if (metrics.len > 0)
        r->metrics = probes_start(&r->loop, metrics, (probe_handler){r, answer_metrics}, error);
    if (metrics.len > 0 && !r->metrics)
        return err_wrap(error, "metrics");
    if (health.len > 0)
        r->health = probes_start(&r->loop, health, (probe_handler){r, answer_health}, error);
    return health.len == 0 || r->health || err_wrap(error, "probes");
}

/* ---- opening and closing ---- */

static bool open_loop(run *r, err *error)
{
    static const int numbers[] = {SIGTERM, SIGINT};
    bool good = uv_loop_init(&r->loop) == 0 && uv_prepare_init(&r->loop, &r->prepare) == 0 &&
                uv_timer_init(&r->loop, &r->timer) == 0;
    r->prepare.data = r->timer.data = r;
    for (size_t i = 0; good && i < 2; i++) {
        good = uv_signal_init(&r->loop, &r->signals[i]) == 0;
        r->signals[i].data = r;
        if (good)
            uv_signal_start(&r->signals[i], on_signal, numbers[i]);
    }
    return good || err_set(error, "the event loop cannot be made");
}

static bool open_side(run *r, side *s, err *error)
{
    writer_options options = {.seed = (uint64_t)getpid() * 2654435761u};
    s->connection = connection_open(&r->loop, &s->access, "drover-cluster-agent", error);
    s->watches = s->connection ? connection_beside(s->connection, error) : NULL;
    s->writer = s->watches ? writer_start(&r->loop, s->connection, options) : NULL;
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
        &settings, (agent_api){r, send_write, follow_kind, unfollow_kind, run_chart, clock_ms},
        error);
    return r->shell;
}

/* Helm looks at the same cluster. */
static bool open_charts(run *r, err *error)
{
    const kube_where *where = &r->settings->own;
    if (where->files.len > 0)
        snprintf(r->kubeconfig, sizeof r->kubeconfig, "%.*s", STR_ARG(where->files));
    else if (!in_pod(r))
        snprintf(r->kubeconfig, sizeof r->kubeconfig, "%.*s/.kube/config", STR_ARG(where->home));
    r->charts = chart_runner_new(&r->loop, (chart_place){.program = "helm",
                                                         .kubeconfig = str_of(r->kubeconfig),
                                                         .context = where->context});
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
            w->follower = follower_start(&r->loop, r->sides[at].watches, buf_str(&path),
                                         (watch_sink){w, seen, gone, synced, NULL});
        if (!w->follower)
            return err_memory(error);
        follower_doubt(w->follower); /* what a cluster runs is little */
    }
    uv_prepare_start(&r->prepare, before_wait);
    return true;
}

static void close_all(run *r)
{
    r->metrics = probes_stop(r->metrics);
    r->health = probes_stop(r->health);
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
    uv_close((uv_handle_t *)&r->prepare, NULL);
    uv_close((uv_handle_t *)&r->timer, NULL);
    for (size_t i = 0; i < 2; i++)
        uv_close((uv_handle_t *)&r->signals[i], NULL);
    uv_run(&r->loop, UV_RUN_DEFAULT);
    uv_loop_close(&r->loop);
}

static bool open_all(run *r, err *error)
{
    return open_side(r, &r->sides[AGENT_HUB], error) && open_side(r, &r->sides[AGENT_OWN], error) &&
           open_shell(r, error) && open_charts(r, error) && open_watches(r, error) &&
           open_probes(r, error);
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
    side *main_side = &r->sides[AGENT_HUB], *own = &r->sides[AGENT_OWN];
    bool good = (kubeconfig_read(&settings->hub, texts, &main_side->access, error) ||
                 err_wrap(error, "the hub")) &&
                (kubeconfig_read(&settings->own, texts, &own->access, error) ||
                 err_wrap(error, "the cluster"));
    curl_global_init(CURL_GLOBAL_DEFAULT);
    if (good && (good = open_loop(r, error))) {
        good = open_all(r, error);
        if (good) {
            log_line(LOG_INFO, "agent of %.*s at %.*s, hub %.*s", STR_ARG(settings->cluster),
                     STR_ARG(own->access.server), STR_ARG(main_side->access.server));
            uv_run(&r->loop, UV_RUN_DEFAULT);
            good = !r->failed || err_memory(error);
        }
        close_all(r);
    }
    curl_global_cleanup();
    mem_free(r);
    return good;
}
