/* SPDX-License-Identifier: Apache-2.0 */
/* The server about itself: health, metrics, journal, events, backup. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/num.h"
#include "server/api.h"
#include "server/api_shapes.h"

void run_health(call *c)
{
    api_answer(c, &(status_output){.status = STR("ok")});
}

void run_ready(call *c)
{
    if (c->api->ready && control_engine(c->api->control))
        api_answer(c, &(status_output){.status = STR("ready")});
    else
        api_fail(c, 503, NULL, "not ready");
}

void run_openapi(call *c)
{
    openapi_write(api_out(c));
}

void run_info(call *c)
{
    api_answer(c, &(info_output){.version = STR(DROVER_VERSION),
                                 .started_at = api_moment(c->api->started_ms),
                                 .caller = c->caller.name,
                                 .role = str_of(access_text(c->caller.level)),
                                 .mode = STR("serve"),
                                 .sequence = store_sequence(control_store(c->api->control))});
}

/* ---- metrics ---- */

typedef struct tally {
    int64_t states[8];
    buf *out;
} tally;

static bool tally_target(void *context, const placement_view *v)
{
    tally *t = context;
    if (v->kind == TARGET_RESOURCE)
        t->states[v->state]++;
    return true;
}

static void escape_label(buf *out, str text)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        if (c == '\\' || c == '"')
            buf_addc(out, '\\');
        buf_addc(out, c == '\n' ? ' ' : c);
    }
}

static bool write_group(void *context, const group_view *v)
{
    tally *t = context;
    const int64_t values[] = {v->holders, v->limit};
    const char *const names[] = {"holders", "limit"};
    for (size_t i = 0; i < 2; i++) {
        buf_addz(t->out, "drover_group_places{group=\"");
        escape_label(t->out, v->name.len > 0 ? v->name : v->change);
        buf_addz(t->out, "\",rule=\"");
        escape_label(t->out, v->change);
        buf_addf(t->out, "\",count=\"%s\"} %lld\n", names[i], (long long)values[i]);
    }
    return true;
}

static void metric(buf *out, const char *name, const char *type, const char *help)
{
    buf_addf(out, "# HELP drover_%s %s\n# TYPE drover_%s %s\n", name, help, name, type);
}

static void single(buf *out, const char *name, const char *help, int64_t value)
{
    size_t len = strlen(name);
    bool total = len > 6 && strcmp(name + len - 6, "_total") == 0;
    metric(out, name, total ? "counter" : "gauge", help);
    buf_addf(out, "drover_%s %lld\n", name, (long long)value);
}

static void write_fleet(call *c, buf *out)
{
    static const char *const states[] = {
#define X(state, text) [PLACEMENT_##state] = (text),
        PLACEMENT_STATES(X)
#undef X
    };
    tally t = {.out = out};
    const engine *e = control_engine(c->api->control);
    if (!e)
        return;
    if (!engine_placements(e, tally_target, &t))
        out->failed = true;
    metric(out, "release_targets", "gauge", "Release targets by state.");
    for (size_t i = 0; i < sizeof states / sizeof states[0]; i++)
        buf_addf(out, "drover_release_targets{state=\"%s\"} %lld\n", states[i],
                 (long long)t.states[i]);
    metric(out, "group_places", "gauge", "Places of groups that share a limit, and who hold them.");
    engine_groups(e, write_group, &t);
}

void run_metrics(call *c)
{
    buf *out = api_out(c);
    const api *a = c->api;
    c->reply->type = "text/plain; version=0.0.4; charset=utf-8";
    metric(out, "build_info", "gauge", "What runs here.");
    buf_addf(out, "drover_build_info{version=\"%s\"} 1\n", DROVER_VERSION);
    single(out, "start_time_seconds", "When the server started.", a->started_ms / 1000);
    single(out, "journal_entries_total", "Entries of the journal.",
           store_sequence(control_store(a->control)));
    single(out, "jobs_watched", "Jobs that are looked after here.", (int64_t)jobs_count(a->jobs));
    single(out, "http_connections", "Open connections.", (int64_t)http_connections(a->http));
    single(out, "http_streams", "Open streams.", (int64_t)http_streams(a->http));
    single(out, "http_rate_refused_total", "Requests refused for their rate.",
           (int64_t)a->refused_rate);
    metric(out, "http_requests_total", "counter", "Requests by the class of their status.");
    for (unsigned i = 1; i < 6; i++)
        buf_addf(out, "drover_http_requests_total{class=\"%uxx\"} %llu\n", i,
                 (unsigned long long)a->answered[i]);
    write_fleet(c, out);
}

/* ---- journal and events ---- */

typedef struct journal_listing {
    call *call;
    page_writer page;
    int64_t last;
    bool more;
} journal_listing;

static bool list_entry(void *context, const journal_entry *e)
{
    journal_listing *l = context;
    if (!api_next(l->call, &l->page)) {
        l->more = true;
        return false;
    }
    journal_entry_json(api_out(l->call), e);
    l->last = e->sequence;
    return true;
}

void run_journal_list(call *c)
{
    err error;
    journal_listing l = {.call = c};
    store *s = control_store(c->api->control);
    api_page(c, &l.page);
    if (!store_journal(s, api_number(c, "continue", api_number(c, "after", 0)), list_entry, &l,
                       &error))
        api_error(c, &error);
    else
        api_page_end(c, &l.page,
                     l.more ? arena_printf(c->request->arena, "%lld", (long long)l.last)
                            : STR_EMPTY);
}

void run_events(call *c)
{
    str header = http_header(c->request, "Last-Event-ID");
    int64_t after = api_number(c, "after", INT64_MAX);
    if (header.ptr && (!num_parse(header, &after) || after < 0)) {
        api_fail(c, 400, NULL, "Last-Event-ID: found \"%s\", allowed a sequence number",
                 str_shown(header).text);
        return;
    }
    if (!events_source(c->api->events, after, &c->reply->source)) {
        api_fail(c, 503, NULL, "memory ran out");
        return;
    }
    c->reply->type = "text/event-stream";
    http_field_add(c->reply, "X-Accel-Buffering", STR("no"));
}

/* ---- backup ---- */

typedef struct backup_file {
    int fd;
} backup_file;

static stream_state pull_backup(void *context, buf *out)
{
    backup_file *b = context;
    char bytes[HTTP_STREAM_CHUNK_BYTES];
    ssize_t len = read(b->fd, bytes, sizeof bytes);
    if (len <= 0)
        return STREAM_END;
    buf_add(out, (str){bytes, (size_t)len});
    return STREAM_MORE;
}

static void close_backup(void *context)
{
    backup_file *b = context;
    close(b->fd);
    mem_free(b);
}

#define BACKUP_PREFIX ".backup-"

void backup_sweep(str folder)
{
    char path[LIMIT_PATH_BYTES];
    snprintf(path, sizeof path, "%.*s", STR_ARG(folder));
    DIR *all = opendir(path);
    for (const struct dirent *one; all && (one = readdir(all));)
        if (str_starts(str_of(one->d_name), STR(BACKUP_PREFIX)))
            unlinkat(dirfd(all), one->d_name, 0);
    if (all)
        closedir(all);
}

/* A copy on its way: one piece in each turn of the loop. */
typedef struct backup_work {
    call *call;
    store_copy *copy;
    const char *path;
} backup_work;

static void drop_backup(void *context)
{
    backup_work *w = context;
    w->copy = store_copy_end(w->copy);
    unlink(w->path);
}

/* The answer is the file, which has no name from here on: it is gone when it is sent, or when this
 * program is. */
static void answer_backup(backup_work *w)
{
    call *c = w->call;
    struct stat status;
    w->copy = store_copy_end(w->copy);
    int fd = open(w->path, O_RDONLY | O_CLOEXEC);
    int cause = errno;
    unlink(w->path);
    backup_file *b = fd < 0 || fstat(fd, &status) != 0 ? NULL : mem_zalloc(sizeof *b);
    if (!b) {
        if (fd >= 0)
            close(fd);
        api_fail(c, 500, NULL, "the copy cannot be read: %s", strerror(cause));
        return;
    }
    b->fd = fd;
    c->reply->type = "application/octet-stream";
    c->reply->source = (http_source){
        .context = b, .pull = pull_backup, .close = close_backup, .size = status.st_size};
}

static bool step_backup(void *context, http_reply *r)
{
    backup_work *w = context;
    err error;
    bool done = false;
    w->call->reply = r;
    if (api_settle(w->call->api, &error) && store_copy_step(w->copy, &done, &error)) {
        if (done)
            answer_backup(w);
        return done;
    }
    drop_backup(w);
    api_error(w->call, &error);
    return true;
}

void run_backup(call *c)
{
    err error;
    arena *a = c->request->arena;
    str path = arena_printf(a, "%.*s/" BACKUP_PREFIX "%lld", STR_ARG(c->api->folder),
                            (long long)c->now_ms);
    backup_work *w = ARENA_NEW(a, backup_work);
    if (!path.ptr || !w) {
        api_fail(c, 503, NULL, "memory ran out");
        return;
    }
    if (!api_audit(c, "{\"audit\":\"backup\"}"))
        return;
    *w = (backup_work){.call = c, .path = path.ptr};
    w->copy = api_settle(c->api, &error)
                  ? store_copy_begin(control_store(c->api->control), path, &error)
                  : NULL;
    if (w->copy)
        c->reply->later = (http_later){.context = w, .step = step_backup, .drop = drop_backup};
    else
        api_error(c, &error);
}
