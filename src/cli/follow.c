/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/follow.h"

#include <unistd.h>

#include "base/limits.h"
#include "base/mem.h"
#include "cli/output.h"
#include "cli/stream.h"

#define REST_MS 200       /* between two looks */
#define LOOK_MS_MAX 30000 /* without news; time alone may have moved something */
#define BAR_COLUMNS 24

/* How far it is. */
typedef struct progress {
    client *client;
    const follow_wish *wish;
    size_t all, done, failed, running;
    size_t hopeful; /* not at their end, and something other than a failure will move them */
    str why;        /* what the first that waits waits for */
} progress;

static bool meant(const progress *p, yyjson_val *item)
{
    const follow_wish *wish = p->wish;
    str name = json_at(p->client, item, "/change");
    bool here = wish->count == 0;
    for (size_t i = 0; !here && i < wish->count; i++)
        here = str_eq(wish->deployments[i], name);
    return here && (wish->tag.len == 0 || str_eq(json_at(p->client, item, "/current"), wish->tag) ||
                    str_eq(json_at(p->client, item, "/wanted"), wish->tag));
}

/* A time is known when it is asked again, or a person can release it who was not asked yet. What
 * waits for the end of another is as hopeful as that one. */
static bool hopeful(const progress *p, yyjson_val *item)
{
    size_t index, count;
    yyjson_val *why;
    yyjson_arr_foreach(yyjson_obj_get(item, "reasons"), index, count, why)
    {
        str act = json_at(p->client, why, "/releasedBy/act");
        if (json_at(p->client, why, "/nextAt").len > 0 ||
            (!str_eq(act, STR("complete")) && !str_eq(act, STR("retry"))))
            return true;
    }
    return false;
}

static bool look_at(void *context, yyjson_val *item)
{
    progress *p = context;
    str state = json_at(p->client, item, "/state");
    if (!meant(p, item) || str_eq(state, STR("excluded")))
        return true;
    bool done = str_eq(state, STR("done")), failed = str_eq(state, STR("failed"));
    bool running = str_eq(state, STR("inFlight"));
    p->all++;
    p->done += done;
    p->failed += failed;
    p->running += running;
    p->hopeful += !done && !running && hopeful(p, item);
    if (p->why.len == 0 && !done && !running)
        p->why = json_at(p->client, item, "/summary");
    return true;
}

static bool is_over(const progress *p)
{
    if (p->done == p->all)
        return true;
    return p->running == 0 && p->failed > 0 && p->hopeful == 0;
}

static void add_bar(buf *out, const progress *p)
{
    size_t done = p->all > 0 ? p->done * BAR_COLUMNS / p->all : 0;
    size_t busy = p->all > 0 ? (p->done + p->running) * BAR_COLUMNS / p->all - done : 0;
    buf_addc(out, '[');
    for (size_t i = 0; i < BAR_COLUMNS; i++)
        buf_addc(out, i < done ? '#' : i < done + busy ? '>' : '.');
    buf_addz(out, "] ");
}

static void print(const progress *p, bool terminal, buf *last)
{
    scoped(buf_done) buf line = BUF(LIMIT_TEXT_BYTES), wide = BUF(LIMIT_TEXT_BYTES);
    buf_addf(&line, "%zu of %zu done, %zu in flight, %zu failed", p->done, p->all, p->running,
             p->failed);
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
    str cut = str_part(buf_str(&wide), 0, OUTPUT_COLUMNS - 1);
    fprintf(stderr, "\r\033[K%.*s", STR_ARG(cut));
    fflush(stderr);
}

exit_status follow(client *c, const follow_wish *wish)
{
    bool terminal = isatty(STDERR_FILENO);
    scoped(buf_done) buf last = BUF(LIMIT_TEXT_BYTES);
    scoped(stream_cleanup) stream *s = stream_open(c);
    exit_status status = s ? STATUS_DONE : fail("memory ran out");
    while (status == STATUS_DONE) {
        progress p = {.client = c, .wish = wish};
        client_forget(c);
        str path = wish->count == 1
                       ? client_path(c, "/api/v1/targets?deployment=%s", wish->deployments[0])
                       : STR("/api/v1/targets");
        status = client_list(c, path, 0, look_at, &p);
        if (status != STATUS_DONE)
            break;
        print(&p, terminal, &last);
        if (is_over(&p)) {
            status = p.failed > 0 ? STATUS_NO : STATUS_DONE;
            break;
        }
        usleep(REST_MS * 1000);
        stream_wait(s, -1, LOOK_MS_MAX);
    }
    if (terminal && last.len > 0)
        fputc('\n', stderr);
    return status;
}
