/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/hub_run.h"

#include "base/footprint.h"
#include "base/log.h"
#include "base/mem.h"
#include "operator/fleet_schema.h"

/* Clusters answer in seconds, and the first of them is looked at at once. What comes in within this
 * time after it is looked at together: most of what an event costs is that somebody wakes up for
 * it. */
#define REST_MS 75
#define REST_CALM_MS 200 /* while nothing waits for what comes in */

typedef struct hub_watched {
    hub_run *run;
    hub_kind kind;
    connection *connection; /* of its own: see connection.h */
    follower *follower;
} hub_watched;

struct hub_run {
    hub_place_to_run where;
    cluster_shell *shell;
    hub_watched kinds[HUB_KIND_COUNT];
    bool follow_repos;
    bool ready_told;
    bool set_back;
};

static bool seen(void *context, yyjson_val *json)
{
    const hub_watched *w = context;
    const hub_watcher *look = w->run->where.watcher;
    bool good = cluster_shell_seen(w->run->shell, w->kind, json, w->run->where.clock_ms());
    if (look)
        look->seen(look->context, w->kind, json);
    return good;
}

static void gone(void *context, str space, str name)
{
    const hub_watched *w = context;
    const hub_watcher *look = w->run->where.watcher;
    cluster_shell_gone(w->run->shell, w->kind, space, name, w->run->where.clock_ms());
    if (look)
        look->gone(look->context, w->kind, space, name);
}

static void synced(void *context)
{
    const hub_watched *w = context;
    cluster_shell_synced(w->run->shell, w->kind);
}

static void set_back(void *context)
{
    const hub_watched *w = context;
    w->run->set_back = true;
}

static bool send_write(void *context, const kube_write *write, write_handler handler, err *error)
{
    const hub_run *h = context;
    return writer_send(h->where.writer, write, handler, error);
}

static void tell_decided(void *context, const decision *d)
{
    const hub_run *h = context;
    const hub_watcher *look = h->where.watcher;
    if (look)
        look->decided(look->context, d);
}

static bool follow(hub_run *h, hub_kind kind)
{
    hub_watched *w = &h->kinds[kind];
    if (w->follower)
        return true;
    *w = (hub_watched){
        .run = h, .kind = kind, .connection = connection_beside(h->where.connection, NULL)};
    if (w->connection)
        w->follower = follower_start(h->where.loop, w->connection, str_of(hub_kind_path(kind)),
                                     (watch_sink){w, seen, gone, synced, set_back});
    return w->follower;
}

/* The labels of namespaces matter only to mappings. */
static bool follow_namespaces(hub_run *h)
{
    hub_watched *w = &h->kinds[HUB_NAMESPACE];
    if (cluster_shell_wants_namespaces(h->shell))
        return follow(h, HUB_NAMESPACE);
    if (!w->follower)
        return true;
    follower_stop(w->follower);
    connection_close(w->connection);
    *w = (hub_watched){0};
    cluster_shell_unfollowed(h->shell, HUB_NAMESPACE);
    return true;
}

/* A hub of ours has no GitRepos; one that Fleet made has. */
static void kinds_told(void *context, const write_outcome *how, yyjson_val *json)
{
    hub_run *h = context;
    size_t i, max;
    yyjson_val *one;
    if (how->kind != WRITE_DONE)
        log_line(LOG_WARN, "the kinds of Fleet cannot be listed: %s", how->message);
    yyjson_arr_foreach(yyjson_obj_get(json, "resources"), i, max, one)
    {
        h->follow_repos |= yyjson_equals_str(yyjson_obj_get(one, "name"), "gitrepos");
    }
}

static void schema_told(void *context, const write_outcome *how, yyjson_val *json)
{
    hub_run *h = context;
    if (how->kind == WRITE_DONE && json)
        cluster_shell_schema(h->shell, json);
    else
        log_line(LOG_WARN, "how the hub defines Bundles is not known: %s", how->message);
}

hub_run *hub_run_stop(hub_run *h)
{
    if (!h)
        return NULL;
    for (size_t i = 0; i < HUB_KIND_COUNT; i++) {
        follower_stop(h->kinds[i].follower);
        connection_close(h->kinds[i].connection);
    }
    cluster_shell_free(h->shell);
    return mem_free(h);
}

hub_run *hub_run_start(hub_place_to_run where, const hub_settings *settings, err *error)
{
    static const kube_write kinds = {
        .verb = WRITE_READ, .collection = {"/apis/fleet.cattle.io", 21}, .name = {"v1alpha1", 8}};
    static const kube_write schema = {
        .verb = WRITE_READ,
        .collection = {FLEET_SCHEMA_COLLECTION, sizeof FLEET_SCHEMA_COLLECTION - 1},
        .name = {FLEET_SCHEMA_NAME, sizeof FLEET_SCHEMA_NAME - 1}};
    hub_run *h = mem_zalloc(sizeof *h);
    if (!h) {
        err_memory(error);
        return NULL;
    }
    h->where = where;
    h->shell = cluster_shell_new(settings, (hub_api){h, send_write, tell_decided}, error);
    bool good = h->shell &&
                writer_send(where.writer, &kinds, (write_handler){h, kinds_told, NULL}, error) &&
                writer_send(where.writer, &schema, (write_handler){h, schema_told, NULL}, error);
    for (int kind = HUB_GROUP; good && kind < HUB_DEPLOYMENT; kind++)
        good = follow(h, (hub_kind)kind) || err_memory(error);
    return good ? h : hub_run_stop(h);
}

bool hub_run_turn(hub_run *h, int64_t *ret_next_ms)
{
    int64_t now = h->where.clock_ms(), next = cluster_shell_next_ms(h->shell);
    bool good = true;
    /* One turn: if another is due, what came in meanwhile is looked at before. */
    if (cluster_shell_is_due(h->shell) || (next != REASON_NEVER && next <= now)) {
        good = cluster_shell_turn(h->shell, now);
        next = cluster_shell_next_ms(h->shell);
    }
    if (good && cluster_shell_wants_deployments(h->shell))
        good = follow(h, HUB_DEPLOYMENT);
    if (good && h->follow_repos)
        good = follow(h, HUB_REPO);
    if (good)
        good = follow_namespaces(h);
    if (!h->ready_told && cluster_shell_ready(h->shell)) {
        h->ready_told = true;
        log_line(LOG_INFO, "every Bundle and Cluster is known: decisions begin");
        footprint_shrink();
    }
    *ret_next_ms = next;
    return good;
}

const cluster_shell *hub_run_shell(const hub_run *h)
{
    return h->shell;
}

int hub_run_rest_ms(const hub_run *h)
{
    if (!cluster_shell_ready(h->shell))
        return 0;
    return cluster_shell_calm(h->shell) ? REST_CALM_MS : REST_MS;
}

bool hub_run_stale(const hub_run *h)
{
    return h->set_back;
}
