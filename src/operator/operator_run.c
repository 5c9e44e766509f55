/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/operator_run.h"

#include <curl/curl.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/footprint.h"
#include "base/log.h"
#include "base/mem.h"
#include "kube/follower.h"
#include "kube/leader.h"
#include "kube/recorder.h"
#include "kube/writer.h"
#include "operator/program.h"

/* How long news of nodes and pods may wait for more of them, if nothing waits for them. */
#define BUNCH_MS 200
#define PATH_BYTES (LIMIT_NAME_BYTES + 256)
#define HOST_BYTES 256
/* Before it begins anew: two that are not elected must not keep each other busy. */
#define ANEW_MS 1000

typedef struct run run;

/* A node whose pods are followed. */
typedef struct watched_node {
    run *run;
    struct watched_node *next;
    follower *follower;
    char name[LIMIT_NAME_BYTES + 1];
} watched_node;

typedef struct watched {
    run *run;
    shell_kind kind;
    connection *connection; /* of its own */
    follower *follower;
    bool synced;
} watched;

struct run {
    const operator_settings *settings;
    program program;
    connection *connection;
    leader *leader; /* NULL: nobody else is reckoned with */
    char leases[PATH_BYTES], identity[HOST_BYTES + 32];
    writer *writer; /* this and what follows is there while it works */
    recorder *recorder;
    hub_run *hub;      /* NULL: clusters are not served */
    node_shell *shell; /* NULL: nodes are not */
    watched kinds[SHELL_KIND_COUNT];
    watched_node *nodes;
    bool ready_told;
    bool woken; /* news that rested was asked for, and the turn waits for it */
    bool anew;  /* the shell was thrown away, and another is to be made when the timer says so */
    bool failed;
    bool ending, releasing; /* it was told to end; it gives the Lease back */
};

static const connection *clock_of; /* who tells the time */

/* The API server's clock as it was at the start, and from then on one that nobody sets: neither may
 * hours seem to have passed, nor may time stand still until a clock that was put back has caught
 * up; and what another operator wrote with a time is as old here as it is there. Before the server
 * has answered nothing is known that could be late. */
static int64_t clock_ms(void)
{
    int64_t now_ms = 0;
    return clock_of && connection_clock(clock_of, &now_ms) ? now_ms : 0;
}

/* ---- what comes in ---- */

static bool seen(void *context, yyjson_val *json)
{
    const watched *w = context;
    const operator_watcher *look = w->run->settings->watcher;
    bool good = node_shell_seen(w->run->shell, w->kind, json, clock_ms());
    if (look)
        look->seen(look->context, w->kind, json);
    return good;
}

static void gone(void *context, str space, str name)
{
    const watched *w = context;
    const operator_watcher *look = w->run->settings->watcher;
    node_shell_gone(w->run->shell, w->kind, space, name, clock_ms());
    if (look)
        look->gone(look->context, w->kind, name);
}

static void synced(void *context)
{
    watched *w = context;
    w->synced = true;
    node_shell_synced(w->run->shell, w->kind);
}

static void set_back(void *context)
{
    const watched *w = context;
    node_shell_set_back(w->run->shell);
}

static bool send_write(void *context, const kube_write *write, write_handler handler, err *error)
{
    const run *r = context;
    return writer_send(r->writer, write, handler, error);
}

static void tell_event(void *context, const kube_event *event)
{
    const run *r = context;
    recorder_tell(r->recorder, event);
}

static void tell_decided(void *context, const decision *d)
{
    const run *r = context;
    const operator_watcher *look = r->settings->watcher;
    if (look)
        look->decided(look->context, d);
}

static void tell_shells(const run *r)
{
    const operator_watcher *look = r->settings->watcher;
    if (look)
        look->shells(look->context, r->shell, r->hub ? hub_run_shell(r->hub) : NULL);
}

static bool pod_seen(void *context, yyjson_val *json)
{
    const watched_node *n = context;
    return node_shell_pod_seen(n->run->shell, str_of(n->name), json, clock_ms());
}

static void pod_gone(void *context, str space, str name)
{
    const watched_node *n = context;
    node_shell_pod_gone(n->run->shell, str_of(n->name), space, name, clock_ms());
}

static void pods_synced(void *context)
{
    const watched_node *n = context;
    node_shell_pods_synced(n->run->shell, str_of(n->name));
}

static void unfollow_pods(run *r, str node_name)
{
    watched_node **link = &r->nodes;
    while (*link && !str_eq(str_of((*link)->name), node_name))
        link = &(*link)->next;
    watched_node *n = *link;
    if (!n)
        return;
    *link = n->next;
    follower_stop(n->follower);
    mem_free(n);
}

static void follow_pods(void *context, str node_name, bool wanted)
{
    run *r = context;
    char path[PATH_BYTES];
    unfollow_pods(r, node_name);
    watched_node *n = wanted ? mem_zalloc(sizeof *n) : NULL;
    if (!n) {
        r->failed |= wanted;
        return;
    }
    n->run = r;
    snprintf(n->name, sizeof n->name, "%.*s", STR_ARG(node_name));
    /* What has ended is in nobody's way. */
    snprintf(path, sizeof path,
             "/api/v1/pods?fieldSelector=spec.nodeName%%3D%s,status.phase%%21%%3DSucceeded,"
             "status.phase%%21%%3DFailed",
             n->name);
    n->follower = follower_start(&r->program.loop, r->connection, str_of(path),
                                 (watch_sink){n, pod_seen, pod_gone, pods_synced, NULL});
    n->next = r->nodes;
    r->nodes = n;
    r->failed |= !n->follower;
}

static bool follow(run *r, shell_kind kind)
{
    static const char *const paths[] = {
#define X(name, path) path,
        SHELL_KINDS(X)
#undef X
    };
    char path[PATH_BYTES];
    str space = r->settings->shell.job.namespace_;
    str form = str_of(paths[kind]);
    size_t at = str_find(form, STR("%s"));
    str before = at == SIZE_MAX ? form : str_part(form, 0, at);
    str after = at == SIZE_MAX ? STR_EMPTY : str_part(form, at + 2, SIZE_MAX);
    snprintf(path, sizeof path, "%.*s%.*s%.*s", STR_ARG(before),
             at == SIZE_MAX ? 0 : (int)space.len, space.ptr, STR_ARG(after));
    watched *w = &r->kinds[kind];
    *w = (watched){.run = r, .kind = kind, .connection = connection_beside(r->connection, NULL)};
    if (w->connection)
        w->follower = follower_start(&r->program.loop, w->connection, str_of(path),
                                     (watch_sink){w, seen, gone, synced, set_back});
    if (w->follower && (kind == SHELL_JOB || kind == SHELL_POD))
        follower_rows(w->follower);
    return w->follower;
}

static void unfollow(watched *w)
{
    w->follower = follower_stop(w->follower);
    w->connection = connection_close(w->connection);
}

/* ---- working ---- */

static void end_work(run *r)
{
    for (size_t i = 0; i < SHELL_KIND_COUNT; i++)
        unfollow(&r->kinds[i]);
    while (r->nodes)
        unfollow_pods(r, str_of(r->nodes->name));
    r->writer = writer_stop(r->writer);
    r->recorder = recorder_stop(r->recorder);
    r->hub = hub_run_stop(r->hub);
    r->shell = node_shell_free(r->shell);
    tell_shells(r);
    r->ready_told = r->anew = false;
}

static bool begin_nodes(run *r, err *error)
{
    shell_settings of = r->settings->shell;
    of.identity = str_of(r->identity);
    r->shell =
        node_shell_new(&of, (api){r, send_write, follow_pods, tell_event, tell_decided}, error);
    tell_shells(r);
    return r->shell &&
           ((follow(r, SHELL_NODE) && follow(r, SHELL_POLICY) && follow(r, SHELL_SKYHOOK)) ||
            err_memory(error));
}

static bool begin_clusters(run *r, err *error)
{
    const operator_watcher *look = r->settings->watcher;
    r->hub = hub_run_start((hub_place_to_run){.loop = &r->program.loop,
                                              .connection = r->connection,
                                              .writer = r->writer,
                                              .clock_ms = clock_ms,
                                              .watcher = look ? &look->hub : NULL},
                           &r->settings->hub, error);
    tell_shells(r);
    return r->hub;
}

static bool begin_work(run *r, err *error)
{
    writer_options options = {.seed = (uint64_t)getpid() * 2654435761u};
    r->anew = false;
    if (r->leader)
        options.permit = leader_permit(r->leader);
    r->writer = writer_start(&r->program.loop, r->connection, options);
    if (r->writer)
        r->recorder = recorder_start(&r->program.loop, r->writer, STR("skyhook-controller"),
                                     str_of(r->identity));
    if (!r->writer || !r->recorder)
        return err_memory(error);
    if (r->settings->clusters && !begin_clusters(r, error))
        return false;
    return !r->settings->nodes || begin_nodes(r, error);
}

/* ---- the loop ---- */

/* Jobs and pods are of interest once it is known what runs: most are of the past. Jobs go first: a
 * pod that failed says why its Job did. */
static bool follow_more(run *r)
{
    if (!r->kinds[SHELL_JOB].follower)
        return !node_shell_restored(r->shell) || follow(r, SHELL_JOB);
    return !r->kinds[SHELL_JOB].synced || r->kinds[SHELL_POD].follower || follow(r, SHELL_POD);
}

static void due(void *context)
{
    run *r = context;
    err error;
    if (r->ending) {
        uv_stop(&r->program.loop); /* long enough */
    } else if (r->shell) {
        r->failed |= !node_shell_turn(r->shell, clock_ms());
    } else if (r->anew && !begin_work(r, &error)) {
        r->failed = true;
        uv_stop(&r->program.loop);
    }
}

/* Another operator has written, or the server was set back: nothing that is known here counts any
 * more. */
static void throw_away(run *r)
{
    end_work(r);
    r->anew = true;
    log_line(LOG_INFO, "what the objects say is read anew");
    program_wait(&r->program, ANEW_MS + getpid() % ANEW_MS);
}

/* Nothing more is decided; what is under way is let end, so that the next one need not guess. */
static void end_in_order(run *r)
{
    if (r->releasing || (r->writer && writer_waiting(r->writer) > 0))
        return;
    r->releasing = true;
    leader_release(r->leader);
}

static void bunch(const run *r, shell_kind kind)
{
    const watched *w = &r->kinds[kind];
    if (w->connection)
        connection_bunch(w->connection,
                         w->synced && !node_shell_waits_for(r->shell, kind) ? BUNCH_MS : 0);
}

/* Nothing is decided on what nodes were: a label that was set before a Skyhook came counts. */
static bool wake_news(run *r)
{
    if (r->woken || !node_shell_wants_news(r->shell))
        return false;
    for (shell_kind kind = 0; kind < SHELL_KIND_COUNT; kind++)
        if (r->kinds[kind].connection)
            r->woken |= connection_wake(r->kinds[kind].connection);
    return r->woken;
}

/* False: what was known is thrown away. */
static bool turn_nodes(run *r)
{
    r->woken = false;
    while (node_shell_is_due(r->shell) && !r->failed)
        r->failed = !node_shell_turn(r->shell, clock_ms());
    if (node_shell_stale(r->shell)) {
        throw_away(r);
        return false;
    }
    r->failed |= !follow_more(r);
    bunch(r, SHELL_NODE);
    bunch(r, SHELL_POD);
    if (!r->ready_told && node_shell_ready(r->shell)) {
        r->ready_told = true;
        log_line(LOG_INFO, "everything is known: decisions begin");
        footprint_shrink();
    }
    return true;
}

/* A lone event is looked at at once: the rest comes after it. What is due is not held up, and nodes
 * are not made to wait for clusters. A loop that has a socket to add, as after each write, says
 * that it is due at once: then wait_ms is what counts, unless there is more to write. */
static void take_a_rest(const run *r, int64_t wait_ms, bool writes)
{
    int rest = r->shell ? node_shell_rest_ms(r->shell) : r->hub ? hub_run_rest_ms(r->hub) : 0;
    int due = uv_backend_timeout(&r->program.loop);
    if (due == 0 && !writes)
        due = (int)wait_ms;
    if (due >= 0 && due < rest)
        rest = due;
    struct timespec time = {.tv_nsec = rest * 1000000L};
    if (rest > 0)
        nanosleep(&time, NULL); /* a signal ends it */
}

static void turn(void *context)
{
    run *r = context;
    if (r->ending)
        end_in_order(r);
    if (r->ending || (!r->shell && !r->hub))
        return;
    int64_t next = REASON_NEVER, later = REASON_NEVER;
    size_t waited = r->writer ? writer_waiting(r->writer) : 0;
    if (r->shell && wake_news(r)) {
        program_wait(&r->program, 0);
        return;
    }
    if (r->shell && !turn_nodes(r))
        return;
    if (r->hub && hub_run_stale(r->hub)) {
        throw_away(r);
        return;
    }
    r->failed |= r->hub && !hub_run_turn(r->hub, &later);
    if (r->failed) {
        uv_stop(&r->program.loop);
        return;
    }
    if (r->shell)
        next = node_shell_next_ms(r->shell);
    if (next == REASON_NEVER || (later != REASON_NEVER && later < next))
        next = later;
    int64_t wait = next == REASON_NEVER ? PROGRAM_WAIT_MS_MAX : next - clock_ms();
    wait = wait < 0 ? 0 : wait > PROGRAM_WAIT_MS_MAX ? PROGRAM_WAIT_MS_MAX : wait;
    program_wait(&r->program, wait);
    take_a_rest(r, wait, r->writer && writer_waiting(r->writer) > waited);
}

static void end(void *context)
{
    run *r = context;
    if (!r->leader || r->ending) {
        uv_stop(&r->program.loop);
        return;
    }
    r->ending = true;
    recorder_hurry(r->recorder);
    program_wait(&r->program, OPERATOR_ENDING_MS);
}

/* ---- leading ---- */

static void began(void *context)
{
    run *r = context;
    err error;
    log_line(LOG_INFO, "%s leads", r->identity);
    if (!r->ending && !begin_work(r, &error)) {
        r->failed = true;
        uv_stop(&r->program.loop);
    }
}

/* What it knew may be old by the time it leads again. */
static void ended(void *context)
{
    run *r = context;
    log_line(r->ending ? LOG_INFO : LOG_WARN, "%s leads no more", r->identity);
    end_work(r);
}

static void server_set_back(void *context)
{
    run *r = context;
    if (r->ending || (!r->shell && !r->hub))
        return;
    log_line(LOG_WARN, "the API server was set back to an older state");
    throw_away(r);
}

static void released(void *context)
{
    run *r = context;
    uv_stop(&r->program.loop);
}

/* A name that no other process has, nor an earlier one of this pod. */
static void name_process(run *r)
{
    char host[HOST_BYTES] = "";
    uint32_t number = 0;
    if (gethostname(host, sizeof host - 1) != 0 ||
        uv_random(NULL, NULL, &number, sizeof number, 0, NULL) != 0)
        number = (uint32_t)uv_hrtime();
    snprintf(r->identity, sizeof r->identity, "%s_%ld_%08x", host, (long)getpid(), number);
}

static bool stand_for_election(run *r, err *error)
{
    str space = r->settings->shell.job.namespace_;
    name_process(r);
    snprintf(r->leases, sizeof r->leases, "/apis/coordination.k8s.io/v1/namespaces/%.*s/leases",
             STR_ARG(space));
    lease_options options = {.collection = str_of(r->leases),
                             .name = STR(OPERATOR_LEASE),
                             .identity = str_of(r->identity)};
    r->leader = leader_start(&r->program.loop, r->connection, &options,
                             (leader_handler){r, began, ended, released, server_set_back});
    return r->leader || err_memory(error);
}

/* ---- probes ---- */

static void put_metrics(void *context, buf *out)
{
    const run *r = context;
    if (r->shell)
        node_shell_metrics(r->shell, out);
    if (r->hub)
        cluster_shell_metrics(hub_run_shell(r->hub), out);
}

/* Who waits for the lease is ready, too: it may be stopped and started without harm. */
static const char *trouble(void *context)
{
    const run *r = context;
    bool ready = (!r->shell || node_shell_ready(r->shell)) &&
                 (!r->hub || cluster_shell_ready(hub_run_shell(r->hub)));
    return ready ? NULL : "not everything is known yet";
}

/* ---- opening and closing ---- */

static bool open_cluster(run *r, const kube_access *access, err *error)
{
    const operator_watcher *look = r->settings->watcher;
    if (look && !look->open(look->context, &r->program.loop, access, error))
        return false;
    r->connection = connection_open(&r->program.loop, access, "drover-operator", error);
    if (!r->connection)
        return false;
    clock_of = r->connection;
    return r->settings->elect ? stand_for_election(r, error) : begin_work(r, error);
}

static void close_loop(run *r)
{
    r->leader = leader_stop(r->leader);
    end_work(r);
    if (r->settings->watcher)
        r->settings->watcher->close(r->settings->watcher->context);
    clock_of = NULL;
    r->connection = connection_close(r->connection);
    program_close(&r->program);
}

bool operator_run(const operator_settings *settings, err *error)
{
    scoped(arena_cleanup) arena *texts = arena_new(0);
    kube_access access;
    if (!texts)
        return err_memory(error);
    if (!kubeconfig_read(&settings->where, texts, &access, error))
        return false;
    run *r = mem_zalloc(sizeof *r);
    if (!r)
        return err_memory(error);
    r->settings = settings;
    curl_global_init(CURL_GLOBAL_DEFAULT);
    bool good = program_open(&r->program,
                             (program_handler){r, turn, due, end, put_metrics, trouble}, error);
    if (good) {
        good =
            program_serve(&r->program, settings->metrics_listen, settings->health_listen, error) &&
            open_cluster(r, &access, error);
        if (good) {
            log_line(LOG_INFO, "operator of %.*s", STR_ARG(access.server));
            uv_run(&r->program.loop, UV_RUN_DEFAULT);
            good = !r->failed || err_memory(error);
        }
        close_loop(r);
    }
    curl_global_cleanup();
    mem_free(r);
    return good;
}
