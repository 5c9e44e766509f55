/* SPDX-License-Identifier: Apache-2.0 */
#include "console/console.h"

#include <stdarg.h>

#include "base/limits.h"
#include "base/log.h"
#include "base/mem.h"
#include "console/console_internal.h"
#include "server/clock.h"
#include "server/dashboard.h"
#include "server/journal.h"
#include "server/pem.h"

/* ---- what the operator tells ---- */

void console_note(console *c, const char *kind, str who, str json)
{
    if (!c->events)
        return;
    journal_entry entry = {.sequence = ++c->sequence,
                           .at_ms = clock_ms(),
                           .step = 0,
                           .kind = str_of(kind),
                           .who = who,
                           .json = json};
    events_add(c->events, &entry);
    http_wake(c->http);
}

static bool note_in_flight(void *context, const placement_view *v)
{
    console *c = context;
    decision d = {.kind = DECISION_START,
                  .change = v->change,
                  .target = v->target,
                  .version = v->wanted,
                  .group = v->group};
    if (v->state == PLACEMENT_IN_FLIGHT)
        claims_found(&c->claims, &d, clock_ms());
    return true;
}

size_t console_engines(console *c, const engine *ret[CONSOLE_ENGINES_MAX])
{
    size_t count = 0;
    if ((c->nodes && !node_shell_ready(c->nodes)) ||
        (c->clusters && !cluster_shell_ready(c->clusters)))
        return 0;
    if (c->nodes)
        ret[count++] = node_shell_engine(c->nodes);
    if (c->clusters)
        ret[count++] = cluster_shell_engine(c->clusters);
    for (size_t i = 0; !c->found && i < count; i++)
        c->found = engine_placements(ret[i], note_in_flight, c) && i + 1 == count;
    return count;
}

static bool is_known(console *c)
{
    const engine *unused[CONSOLE_ENGINES_MAX];
    return console_engines(c, unused) > 0;
}

static void note_document(console *c, const char *what, kept_kind kind, str name)
{
    scoped(buf_done) buf text = BUF(LIMIT_DOCUMENT_BYTES);
    if (!is_known(c))
        return; /* what is read at the beginning is no news */
    buf_addf(&text, "{\"fact\":\"%s\",\"kind\":\"%s\",\"name\":", what, kept_kind_text(kind));
    buf_add_json(&text, name);
    buf_addc(&text, '}');
    console_note(c, "fact", STR_EMPTY, buf_str(&text));
}

static void seen(console *c, kept_kind kind, yyjson_val *json)
{
    scoped(buf_done) buf key = BUF(LIMIT_PATH_BYTES);
    if (kept_seen(&c->kept, kind, json))
        note_document(c, "document", kind, kept_key(json, &key));
}

static void on_seen(void *context, shell_kind kind, yyjson_val *json)
{
    seen(context, kept_of_nodes(kind), json);
}

static void on_gone(void *context, shell_kind kind, str name)
{
    console *c = context;
    if (kept_gone(&c->kept, kept_of_nodes(kind), name))
        note_document(c, "documentGone", kept_of_nodes(kind), name);
}

static void on_hub_seen(void *context, hub_kind kind, yyjson_val *json)
{
    seen(context, kept_of_clusters(kind), json);
}

static void on_hub_gone(void *context, hub_kind kind, str space, str name)
{
    console *c = context;
    scoped(buf_done) buf key = BUF(LIMIT_PATH_BYTES);
    buf_addf(&key, "%.*s/%.*s", STR_ARG(space), STR_ARG(name));
    if (kept_gone(&c->kept, kept_of_clusters(kind), buf_str(&key)))
        note_document(c, "documentGone", kept_of_clusters(kind), buf_str(&key));
}

static void on_decided(void *context, const decision *d)
{
    console *c = context;
    scoped(buf_done) buf text = BUF(LIMIT_DOCUMENT_BYTES);
    claims_decided(&c->claims, d, clock_ms());
    if (d->kind == DECISION_WAKE)
        return;
    journal_write_decision(&text, d);
    if (!text.failed)
        console_note(c, "decision", STR_EMPTY, buf_str(&text));
}

static void on_shells(void *context, const node_shell *nodes, const cluster_shell *clusters)
{
    console *c = context;
    c->nodes = nodes;
    c->clusters = clusters;
    c->found = false;
    kept_clear(&c->kept);
    claims_clear(&c->claims);
    if (c->events)
        events_end_streams(c->events);
    if (c->http)
        http_wake(c->http);
}

/* ---- requests ---- */

void console_fail(asking *a, int status, const char *format, ...)
{
    char text[LIMIT_ERR_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    refusal_write(a->reply, status, NULL, str_of(text), STR_EMPTY);
}

static const console_route routes[] = {
    {"GET", "info", false, true, answer_info},
    {"GET", "fleet", false, false, answer_fleet},
    {"GET", "targets", false, false, answer_targets},
    {"GET", "groups", false, false, answer_groups},
    {"GET", "freezes", false, false, answer_freezes},
    {"GET", "plan", false, false, answer_plan},
    {"GET", "jobs", false, false, answer_jobs},
    {"GET", "journal", false, true, answer_journal},
    {"GET", "events", false, false, answer_events},
    {"GET", "resources", false, false, answer_resources},
    {"GET", "resources", true, false, answer_resource},
    {"POST", "actions", true, false, answer_act},
};

static const console_route *route_of(const uri *u, str method, str *ret_name, bool *ret_path)
{
    *ret_path = false;
    if (u->segment_count < 3 || u->segment_count > 4 || !str_eq(u->segments[0], STR("api")) ||
        !str_eq(u->segments[1], STR("v1")))
        return NULL;
    bool named = u->segment_count == 4;
    *ret_name = named ? u->segments[3] : STR_EMPTY;
    for (size_t i = 0; i < sizeof routes / sizeof routes[0]; i++) {
        const console_route *one = &routes[i];
        if (!str_eq(u->segments[2], str_of(one->word)) || named != one->named)
            continue;
        *ret_path = true;
        bool head = str_eq(method, STR("HEAD")) && strcmp(one->method, "GET") == 0;
        if (head || str_eq(method, str_of(one->method)))
            return one;
    }
    return NULL;
}

static str token_of(const http_request *q)
{
    str value = http_header(q, "Authorization");
    if (!value.ptr || !str_starts(value, STR("Bearer ")))
        return STR_EMPTY;
    return str_trim(str_part(value, strlen("Bearer "), SIZE_MAX));
}

void console_run(asking *a)
{
    if (!a->console->open_to_all && !a->viewer.looks) {
        console_fail(a, 403, "%s may not list %s", a->viewer.name,
                     !a->console->settings.clusters ? "Skyhooks"
                     : a->console->settings.nodes   ? "Skyhooks and Bundles"
                                                    : "Bundles");
        return;
    }
    if (!a->route->any_time && !is_known(a->console)) {
        bool works = a->console->nodes || a->console->clusters;
        console_fail(a, 503,
                     works ? "not everything is known yet"
                           : "this operator does not lead: another one works");
        return;
    }
    a->reply->status = 200;
    a->reply->type = REFUSAL_TYPE;
    a->route->run(a);
}

static void admit_file(const dashboard_file *f, asking *a)
{
    str method = a->request->method;
    if (str_eq(method, STR("GET")) || str_eq(method, STR("HEAD"))) {
        dashboard_answer(f, a->request, a->reply);
        return;
    }
    http_field_add(a->reply, "Allow", STR("GET, HEAD"));
    console_fail(a, 405, "found %s, allowed GET, HEAD", str_shown(method).text);
}

static bool admit_call(asking *a)
{
    bool path;
    http_request *q = a->request;
    a->route = route_of(&q->uri, q->method, &a->name, &path);
    a->token = token_of(q);
    if (!a->route && !path) {
        console_fail(a, 404, "there is nothing at this path");
        return false;
    }
    if (!a->route) {
        console_fail(a, 405, "found %s, which this path does not have", str_shown(q->method).text);
        return false;
    }
    if (a->token.len > VIEWER_TOKEN_BYTES_MAX) {
        console_fail(a, 401, "the token is too long");
        return false;
    }
    if (a->token.len == 0 && !a->console->open_to_all) {
        http_field_add(a->reply, "WWW-Authenticate", STR("Bearer"));
        console_fail(a, 401, "a Kubernetes token is needed: Authorization: Bearer TOKEN");
        return false;
    }
    return true;
}

static bool admit(void *context, http_request *q, http_reply *r)
{
    const dashboard_file *file = dashboard_find(&q->uri);
    asking *a = ARENA_NEW(q->arena, asking);
    if (!a) {
        refusal_write(r, 503, NULL, STR("memory ran out"), STR_EMPTY);
        return false;
    }
    *a = (asking){.console = context, .request = q, .reply = r, .now_ms = clock_ms()};
    q->attached = a;
    if (!file)
        return admit_call(a);
    admit_file(file, a);
    return false;
}

static void handle(void *context, http_request *q, http_reply *r)
{
    (void)context;
    asking *a = q->attached;
    a->reply = r;
    a->now_ms = clock_ms();
    if (q->body.len > CONSOLE_BODY_BYTES_MAX)
        console_fail(a, 413, "the body is larger than 64 KiB");
    else if (a->token.len > 0 && !viewer_find(a->console, a->token, a->now_ms, &a->viewer))
        viewer_ask(a);
    else
        console_run(a);
}

static void refuse(void *context, http_reply *r, int status, const char *message)
{
    (void)context;
    refusal_write(r, status, NULL, str_of(message), STR_EMPTY);
}

/* Nothing is written here, so nothing waits for a disk. */
static bool unsettled(void *context)
{
    (void)context;
    return false;
}

static bool settle(void *context, err *error)
{
    (void)context;
    (void)error;
    return true;
}

/* ---- opening and closing ---- */

static bool check_settings(console *c, err *error)
{
    const console_settings *set = &c->settings;
    str listen = set->listen;
    if (str_starts(listen, STR(":")))
        listen = arena_printf(c->texts, "127.0.0.1%.*s", STR_ARG(listen));
    if (!http_address(listen, c->address, &c->port, error))
        return err_wrap(error, "--dashboard");
    if ((set->tls_certificate.len > 0) != (set->tls_key.len > 0))
        return err_set(error, "--dashboard-tls-cert and --dashboard-tls-key go together");
    bool tls = set->tls_certificate.len > 0;
    c->open_to_all = http_is_loopback(str_of(c->address));
    if (!tls && !set->insecure && !c->open_to_all)
        return err_set(error,
                       "--dashboard: %s is reached from other machines; give --dashboard-tls-cert "
                       "and --dashboard-tls-key, or --dashboard-insecure",
                       c->address);
    return !tls || (pem_read(c->texts, set->tls_certificate, &c->certificate, error) &&
                    pem_read(c->texts, set->tls_key, &c->key, error));
}

console *console_new(const console_settings *settings, err *error)
{
    console *c = mem_zalloc(sizeof *c);
    if (!c) {
        err_memory(error);
        return NULL;
    }
    c->settings = *settings;
    c->texts = arena_new(0);
    if (c->texts ? check_settings(c, error) : err_memory(error))
        return c;
    return console_free(c);
}

console *console_free(console *c)
{
    if (!c)
        return NULL;
    kept_clear(&c->kept);
    claims_clear(&c->claims);
    events_close(c->events);
    arena_free(c->texts);
    return mem_free(c);
}

uint16_t console_port(const console *c)
{
    return c->http ? http_port(c->http) : 0;
}

/* Where the API server is, and nothing of who the operator is there. */
static kube_access without_credentials(const kube_access *access)
{
    return (kube_access){.context = access->context,
                         .server = access->server,
                         .namespace = access->namespace,
                         .ca_data = access->ca_data,
                         .ca_file = access->ca_file,
                         .tls_server_name = access->tls_server_name,
                         .proxy_url = access->proxy_url,
                         .insecure = access->insecure};
}

static bool on_open(void *context, uv_loop_t *loop, const kube_access *access, err *error)
{
    console *c = context;
    http_settings settings = {.address = str_of(c->address),
                              .port = c->port,
                              .tls_certificate = c->certificate,
                              .tls_key = c->key,
                              .hosts = c->settings.hosts,
                              .host_count = c->settings.host_count};
    http_handler handler = {.context = c,
                            .admit = admit,
                            .handle = handle,
                            .refuse = refuse,
                            .unsettled = unsettled,
                            .settle = settle};
    c->access = without_credentials(access);
    c->started_ms = clock_ms();
    c->connection = connection_open(loop, &c->access, "drover-dashboard", error);
    if (!c->connection)
        return false;
    c->events = events_open(NULL);
    c->planner = planner_open(loop);
    if (!c->events || !c->planner)
        return err_memory(error);
    c->http = http_open(loop, &settings, &handler, error);
    if (!c->http)
        return err_wrap(error, "--dashboard");
    bool v6 = strchr(c->address, ':') != NULL;
    log_line(LOG_INFO, "dashboard at %s://%s%s%s:%u/", c->key.len > 0 ? "https" : "http",
             v6 ? "[" : "", c->address, v6 ? "]" : "", http_port(c->http));
    return true;
}

static void on_close(void *context)
{
    console *c = context;
    c->http = http_close(c->http);
    c->planner = planner_close(c->planner);
    c->connection = connection_close(c->connection); /* without a word to errands */
    while (c->errands) {
        c->errands->pending = 0;
        errand_over(c->errands);
    }
}

operator_watcher console_watcher(console *c)
{
    return (operator_watcher){.context = c,
                              .open = on_open,
                              .shells = on_shells,
                              .seen = on_seen,
                              .gone = on_gone,
                              .decided = on_decided,
                              .hub = {c, on_hub_seen, on_hub_gone, on_decided},
                              .close = on_close};
}
