/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/follow.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/mem.h"
#include "cli/output.h"
#include "cli/stream.h"

#define REST_MS 200       /* between two looks, and more if a look takes long */
#define LOOK_MS_MAX 30000 /* without news; time alone may have moved something */
#define BAR_COLUMNS 24

/* How far it is, all rollouts together. */
typedef struct progress {
    client *client;
    const follow_wish *wish;
    int64_t all, done, failed, running, back, excluded, missed, groups;
    size_t going, held, lost; /* rollouts that run, that wait for another, that failed */
    size_t seen;              /* of those that are named */
    str why;                  /* what the first that waits waits for */
} progress;

static bool is_named(const progress *p, str name)
{
    const follow_wish *wish = p->wish;
    bool here = false;
    for (size_t i = 0; !here && i < wish->count; i++)
        here = str_eq(wish->deployments[i], name);
    return here;
}

static int64_t count_at(yyjson_val *item, const char *key)
{
    return yyjson_get_sint(yyjson_obj_get(item, key));
}

/* Adds how far one has come that has failed, and when: "app 3 1 0 0 2026-...", a line. */
static void add_failed(client *c, yyjson_val *item, buf *out)
{
    static const char *const counts[] = {"done", "failed", "waiting", "rolledBack"};
    if (!str_eq(json_at(c, item, "/state"), STR("failed")))
        return;
    buf_addf(out, "\n%.*s", STR_ARG(json_at(c, item, "/deployment")));
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        buf_addf(out, " %lld", (long long)count_at(item, counts[i]));
    buf_addf(out, " %.*s\n", STR_ARG(json_at(c, item, "/endedAt")));
}

/* It has failed before, and nothing has happened to it since. */
static bool is_past(const progress *p, yyjson_val *item)
{
    scoped(buf_done) buf line = BUF(LIMIT_TEXT_BYTES);
    if (p->wish->past.len == 0)
        return false;
    add_failed(p->client, item, &line);
    return line.len > 0 && str_find(p->wish->past, buf_str(&line)) != SIZE_MAX;
}

static bool look_at(void *context, yyjson_val *item)
{
    progress *p = context;
    bool named = is_named(p, json_at(p->client, item, "/deployment"));
    p->seen += named;
    if (!named && (!p->wish->all || is_past(p, item)))
        return true;
    str state = json_at(p->client, item, "/state");
    p->all += count_at(item, "targets");
    p->done += count_at(item, "done");
    p->failed += count_at(item, "failed");
    p->running += count_at(item, "inFlight");
    p->back += count_at(item, "rolledBack");
    p->excluded += count_at(item, "excluded");
    p->missed += count_at(item, "missed");
    p->groups += count_at(item, "groups");
    p->going += str_eq(state, STR("running"));
    p->held += str_eq(state, STR("held"));
    p->lost += str_eq(state, STR("failed"));
    if (p->why.len == 0)
        p->why = json_at(p->client, item, "/summary");
    return true;
}

/* What is held goes on when a person repairs what it waits for: unless that is one of these. */
static bool is_over(const progress *p)
{
    return p->going == 0 && (p->held == 0 || p->lost > 0);
}

static void add_bar(buf *out, const progress *p)
{
    int64_t done = p->all > 0 ? p->done * BAR_COLUMNS / p->all : 0;
    int64_t busy = p->all > 0 ? (p->done + p->running) * BAR_COLUMNS / p->all - done : 0;
    buf_addc(out, '[');
    for (int64_t i = 0; i < BAR_COLUMNS; i++)
        buf_addc(out, i < done ? '#' : i < done + busy ? '>' : '.');
    buf_addz(out, "] ");
}

/* A line that is broken could not be written over. */
static size_t columns(void)
{
    struct winsize size = {0};
    ioctl(STDERR_FILENO, TIOCGWINSZ, &size);
    return size.ws_col > 1 && size.ws_col < OUTPUT_COLUMNS ? size.ws_col : OUTPUT_COLUMNS;
}

static void print(const progress *p, bool terminal, buf *last)
{
    scoped(buf_done) buf line = BUF(LIMIT_TEXT_BYTES), wide = BUF(LIMIT_TEXT_BYTES);
    buf_addf(&line, "%lld of %lld done, %lld in flight, %lld failed", (long long)p->done,
             (long long)p->all, (long long)p->running, (long long)p->failed);
    const struct {
        int64_t count;
        const char *name;
    } more[] = {{p->back, "rolled back"}, {p->excluded, "left out"}, {p->missed, "passed over"}};
    for (size_t i = 0; i < sizeof more / sizeof *more; i++)
        if (more[i].count > 0)
            buf_addf(&line, ", %lld %s", (long long)more[i].count, more[i].name);
    if (p->running == 0 && p->done == p->all && p->groups > 0)
        buf_addf(&line, ", %lld version group%s to end", (long long)p->groups,
                 p->groups > 1 ? "s" : "");
    if (p->running == 0 && p->why.len > 0)
        buf_addf(&line, "; %.*s", STR_ARG(p->why));
    if (str_eq(buf_str(&line), buf_str(last)))
        return;
    buf_clear(last);
    buf_add(last, buf_str(&line));
    if (!terminal) {
        fprintf(stderr, "%.*s\n", STR_ARG(buf_str(&line)));
        return;
    }
    add_bar(&wide, p);
    buf_add(&wide, buf_str(&line));
    str cut = str_part(buf_str(&wide), 0, columns() - 1);
    fprintf(stderr, "\r\033[K%.*s", STR_ARG(cut));
    fflush(stderr);
}

typedef struct past {
    client *client;
    buf *out;
} past;

static bool keep_failed(void *context, yyjson_val *item)
{
    past *p = context;
    add_failed(p->client, item, p->out);
    return true;
}

exit_status follow_past(client *c, buf *ret)
{
    past p = {c, ret};
    exit_status status = client_list(c, STR("/api/v1/rollouts"), 0, keep_failed, &p);
    return status == STATUS_DONE && ret->failed ? fail("memory ran out") : status;
}

exit_status follow(client *c, const follow_wish *wish)
{
    bool terminal = isatty(STDERR_FILENO);
    scoped(buf_done) buf last = BUF(LIMIT_TEXT_BYTES);
    scoped(stream_cleanup) stream *s = stream_open(c);
    exit_status status = s ? STATUS_DONE : fail("memory ran out");
    while (status == STATUS_DONE) {
        progress p = {.client = c, .wish = wish};
        int64_t start = stream_clock_ms();
        client_forget(c);
        str path = STR("/api/v1/rollouts");
        if (wish->count == 1 && !wish->all)
            path = client_path(c, "/api/v1/rollouts?deployment=%s&version=%s", wish->deployments[0],
                               wish->tag);
        status = client_list(c, path, 0, look_at, &p);
        if (status != STATUS_DONE)
            break;
        if (p.seen < wish->count) {
            status = wish->tag.len > 0 ? fail("version %.*s is gone", STR_ARG(wish->tag))
                                       : fail("a deployment is gone that was waited for");
            break;
        }
        print(&p, terminal, &last);
        if (is_over(&p)) {
            status = p.lost > 0 ? STATUS_NO : STATUS_DONE;
            break;
        }
        int64_t took = stream_clock_ms() - start;
        usleep((useconds_t)(took * 4 > REST_MS ? took * 4 : REST_MS) * 1000);
        stream_wait(s, -1, LOOK_MS_MAX);
    }
    if (terminal && last.len > 0)
        fputc('\n', stderr);
    return status;
}
