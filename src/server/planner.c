/* SPDX-License-Identifier: Apache-2.0 */
#include "server/planner.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/mem.h"
#include "sim/plan.h"

#define PLAN_BYTES_MAX (512u * 1024u * 1024u)
#define CHUNK_BYTES (64u * 1024u)

typedef struct task {
    struct task *next;
    planner *planner;
    http *server;
    uv_poll_t poll;
    int fd;
    pid_t pid;
    buf text;
    size_t sent;
    bool over;   /* the copy has ended */
    bool failed; /* and not well */
    bool left;   /* the client is gone */
    bool closed; /* the poll handle is */
} task;

struct planner {
    uv_loop_t *loop;
    task *tasks;
    size_t count;
    bool closing;
};

planner *planner_open(uv_loop_t *loop)
{
    planner *p = mem_zalloc(sizeof *p);
    if (p)
        p->loop = loop;
    return p;
}

/* ---- in the copy ---- */

static bool make_plan(const plan_request *request, buf *out, err *error)
{
    arena *a = arena_new(0);
    sim *s = a ? sim_new(&request->settings, error) : NULL;
    bool good = s || err_memory(error);
    good = good && request->arrange(request->context, s, a, error) &&
           sim_run(s, SIM_TO_THE_END, error);
    plan p = {0};
    if (good && plan_collect(&p, s))
        plan_json(&p, out);
    plan_done(&p);
    sim_free(s);
    arena_free(a);
    return good && !out->failed;
}

static void write_all(int fd, str text)
{
    while (text.len > 0) {
        ssize_t len = write(fd, text.ptr, text.len);
        if (len <= 0 && errno != EINTR)
            return;
        if (len > 0)
            text = str_part(text, (size_t)len, SIZE_MAX);
    }
}

static void be_the_copy(const plan_request *request, int fd, pid_t parent)
{
    err error = {.text = ""};
    buf out = BUF(PLAN_BYTES_MAX);
    signal(SIGTERM, SIG_DFL);
    signal(SIGINT, SIG_DFL);
    signal(SIGPIPE, SIG_DFL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    alarm(PLAN_SECONDS_MAX);
    bool good = make_plan(request, &out, &error);
    if (good)
        write_all(fd, buf_str(&out));
    _exit(good ? 0 : 1);
}

/* ---- in the server ---- */

static void task_free(task *t)
{
    for (task **at = &t->planner->tasks; *at; at = &(*at)->next)
        if (*at == t) {
            *at = t->next;
            break;
        }
    t->planner->count--;
    if (t->planner->closing && t->planner->count == 0)
        mem_free(t->planner);
    buf_done(&t->text);
    mem_free(t);
}

static void on_closed(uv_handle_t *handle)
{
    task *t = handle->data;
    t->closed = true;
    if (t->left)
        task_free(t);
}

/* The copy has ended, or is ended. */
static void task_over(task *t)
{
    int status = 0;
    if (t->over)
        return;
    t->over = true;
    if (t->left)
        kill(t->pid, SIGKILL);
    while (waitpid(t->pid, &status, 0) < 0 && errno == EINTR)
        continue;
    t->failed = !WIFEXITED(status) || WEXITSTATUS(status) != 0;
    uv_poll_stop(&t->poll);
    uv_close((uv_handle_t *)&t->poll, on_closed);
    close(t->fd);
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
    task *t = poll->data;
    char bytes[CHUNK_BYTES];
    (void)events;
    ssize_t len = status < 0 ? 0 : read(t->fd, bytes, sizeof bytes);
    if (len < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (len > 0) {
        buf_add(&t->text, (str){bytes, (size_t)len});
        return;
    }
    task_over(t);
    http_wake(t->server);
}

static stream_state pull(void *context, buf *out)
{
    task *t = context;
    if (!t->over)
        return STREAM_WAIT;
    if (t->failed || t->text.failed) {
        out->failed = true; /* the connection is cut: half a plan is none */
        return STREAM_END;
    }
    str rest = str_part(buf_str(&t->text), t->sent, HTTP_STREAM_CHUNK_BYTES);
    buf_add(out, rest);
    t->sent += rest.len;
    return t->sent < t->text.len ? STREAM_MORE : STREAM_END;
}

static void leave(void *context)
{
    task *t = context;
    t->left = true;
    if (t->closed)
        task_free(t);
    else
        task_over(t);
}

static bool launch(task *t, const plan_request *request, err *error)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return err_set(error, "a pipe cannot be made: %s", strerror(errno));
    pid_t parent = getpid();
    t->pid = fork();
    if (t->pid == 0) {
        close(ends[0]);
        be_the_copy(request, ends[1], parent);
    }
    int cause = errno;
    close(ends[1]);
    if (t->pid < 0) {
        close(ends[0]);
        return err_set(error, "a process cannot be made: %s", strerror(cause));
    }
    t->fd = ends[0];
    fcntl(t->fd, F_SETFL, O_NONBLOCK);
    uv_poll_init(t->planner->loop, &t->poll, t->fd);
    t->poll.data = t;
    uv_poll_start(&t->poll, UV_READABLE, on_readable);
    return true;
}

bool planner_start(planner *p, const plan_request *request, http_source *ret, err *error)
{
    if (p->count >= PLANS_AT_ONCE_MAX)
        return err_set(error, "%d plans are being made already", PLANS_AT_ONCE_MAX);
    task *t = mem_zalloc(sizeof *t);
    if (!t)
        return err_memory(error);
    *t = (task){.planner = p, .server = request->server, .text = BUF(PLAN_BYTES_MAX)};
    if (!launch(t, request, error)) {
        mem_free(t);
        return false;
    }
    t->next = p->tasks;
    p->tasks = t;
    p->count++;
    *ret = (http_source){.context = t, .pull = pull, .close = leave, .size = -1};
    return true;
}

/* The streams are closed before, so every task is left already. */
planner *planner_close(planner *p)
{
    if (p && p->count > 0)
        p->closing = true;
    else
        mem_free(p);
    return NULL;
}
