/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/run.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/host_file.h"
#include "agent/stamp.h"
#include "base/mem.h"
#include "base/vec.h"

/* ---- signals ---- */

bool run_signals_open(run_signals *ret, err *error)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGCHLD);
    *ret = (run_signals){.fd = -1};
    signal(SIGPIPE, SIG_IGN); /* that nobody reads what it shows is no reason to end */
    if (sigprocmask(SIG_BLOCK, &set, NULL) == 0)
        ret->fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    return ret->fd >= 0 || err_set(error, "signals: %s", strerror(errno));
}

bool run_terminated(run_signals *signals)
{
    struct signalfd_siginfo info;
    while (read(signals->fd, &info, sizeof info) == (ssize_t)sizeof info)
        signals->terminated = signals->terminated || info.ssi_signo == SIGTERM;
    return signals->terminated;
}

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

bool run_wait_terminated(run_signals *signals, int64_t seconds)
{
    int64_t end_ms = now_ms() + seconds * 1000, left;
    while (!run_terminated(signals) && (left = end_ms - now_ms()) > 0) {
        struct pollfd fd = {.fd = signals->fd, .events = POLLIN};
        poll(&fd, 1, left > INT32_MAX ? INT32_MAX : (int)left);
    }
    return signals->terminated;
}

/* ---- output ---- */

typedef struct stream {
    int from;  /* -1: it ended */
    int shown; /* standard output or error */
    int log;   /* -1: none */
    const char *prefix;
    size_t logged;
    bool in_line;
} stream;

static void put(int fd, str text)
{
    /* Nobody to read it, or a full disk, must not end the step. */
    while (fd >= 0 && text.len > 0) {
        ssize_t n = write(fd, text.ptr, text.len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return;
        text = str_part(text, (size_t)n, SIZE_MAX);
    }
}

static void show(stream *s, str text)
{
    put(s->shown, text);
    if (s->logged + text.len <= RUN_LOG_BYTES_MAX)
        put(s->log, text);
    s->logged += text.len;
}

static void show_lines(stream *s, str text)
{
    while (text.len > 0) {
        if (!s->in_line) {
            char head[80];
            int len = snprintf(head, sizeof head, "%s%s ", s->prefix, stamp_local().text);
            show(s, (str){head, (size_t)len});
        }
        const char *end = memchr(text.ptr, '\n', text.len);
        size_t len = end ? (size_t)(end - text.ptr) + 1 : text.len;
        show(s, str_part(text, 0, len));
        s->in_line = !end;
        text = str_part(text, len, SIZE_MAX);
    }
}

/* Takes what is there, so much at the most, and returns how much it was; 0: nothing for now. */
static size_t take(stream *s, char *buffer, size_t bytes)
{
    if (s->from < 0)
        return 0;
    ssize_t n = read(s->from, buffer, bytes);
    if (n > 0) {
        show_lines(s, (str){buffer, (size_t)n});
        return (size_t)n;
    }
    if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
        close(s->from);
        s->from = -1;
    }
    return 0;
}

/* Takes the rest of what an ended command printed. What it left in the background may print for
 * ever: only that counts which is there by now. */
static void take_rest(stream *s, char *buffer, size_t bytes)
{
    int there = 0;
    if (s->from >= 0)
        ioctl(s->from, FIONREAD, &there);
    size_t left = there > 0 ? (size_t)there : 0, n = 1;
    for (; left > 0 && n > 0; left -= n)
        n = take(s, buffer, left < bytes ? left : bytes);
}

/* ---- the child ---- */

typedef struct pipes {
    int out[2], err[2], problem[2];
} pipes;

static void pipes_close(pipes *p)
{
    int *all[] = {p->out, p->err, p->problem};
    for (size_t i = 0; i < 3; i++)
        for (size_t k = 0; k < 2; k++)
            if (all[i][k] >= 0)
                close(all[i][k]);
}

static bool pipes_open(pipes *p, err *error)
{
    *p = (pipes){{-1, -1}, {-1, -1}, {-1, -1}};
    if (pipe2(p->out, O_CLOEXEC) == 0 && pipe2(p->err, O_CLOEXEC) == 0 &&
        pipe2(p->problem, O_CLOEXEC) == 0 && fcntl(p->out[0], F_SETFL, O_NONBLOCK) == 0 &&
        fcntl(p->err[0], F_SETFL, O_NONBLOCK) == 0)
        return true;
    return err_set(error, "pipe: %s", strerror(errno));
}

static bool start(const command *c, err *error)
{
    struct stat about;
    if (!host_enter(c->root, error))
        return false;
    if (c->make_executable && (stat(c->arguments[0], &about) != 0 ||
                               chmod(c->arguments[0], (about.st_mode & 07777) | 0111) != 0))
        return err_set(error, "%s: %s", c->arguments[0], strerror(errno));
    if (chdir(c->folder.ptr) != 0)
        return err_set(error, "%s: %s", c->folder.ptr, strerror(errno));
    /* It takes them as what they were before there was const, and leaves them alone. */
    execvpe(c->arguments[0], (char *const *)(uintptr_t)c->arguments,
            (char *const *)(uintptr_t)c->environment);
    return err_set(error, "%s: %s", c->arguments[0], strerror(errno));
}

static void child(const command *c, const pipes *p)
{
    sigset_t none;
    sigemptyset(&none);
    setpgid(0, 0);
    int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (nothing >= 0)
        dup2(nothing, STDIN_FILENO);
    dup2(p->out[1], STDOUT_FILENO);
    dup2(p->err[1], STDERR_FILENO);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL);
    err problem = {0};
    start(c, &problem);
    put(p->problem[1], str_of(problem.text));
    _exit(1);
}

/* What kept the program from starting, if anything did. */
static bool started(int problem, err *error)
{
    size_t len = 0;
    ssize_t n;
    while (len + 1 < sizeof error->text &&
           ((n = read(problem, error->text + len, sizeof error->text - 1 - len)) > 0 ||
            (n < 0 && errno == EINTR)))
        len += n > 0 ? (size_t)n : 0;
    error->text[len] = '\0';
    return len == 0;
}

/* ---- waiting ---- */

typedef struct waiting {
    pid_t child;
    int64_t kill_at_ms; /* 0: nobody asked it to end */
    bool killed;
} waiting;

/* How long to sleep; ends the child when its time is over. */
static int urge(const command *c, const run_signals *signals, waiting *w)
{
    if (!signals->terminated || w->killed || c->outlives_term)
        return -1;
    if (w->kill_at_ms == 0) {
        kill(-w->child, SIGTERM);
        w->kill_at_ms = now_ms() + c->grace_seconds * 1000;
    }
    int64_t left = w->kill_at_ms - now_ms();
    if (left > 0)
        return left > INT32_MAX ? INT32_MAX : (int)left;
    kill(-w->child, SIGKILL);
    w->killed = true;
    return -1;
}

static int follow(const command *c, run_signals *signals, stream streams[2], waiting *w)
{
    char *buffer = mem_alloc(c->buffer_bytes);
    char small[512];
    char *bytes = buffer ? buffer : small;
    size_t count = buffer ? c->buffer_bytes : sizeof small;
    int status = 0;
    bool ended = false;
    while (!ended) {
        int timeout = urge(c, signals, w);
        struct pollfd fds[] = {{.fd = streams[0].from, .events = POLLIN},
                               {.fd = streams[1].from, .events = POLLIN},
                               {.fd = signals->fd, .events = POLLIN}};
        poll(fds, 3, timeout);
        run_terminated(signals);
        ended = waitpid(w->child, &status, WNOHANG) == w->child;
        for (size_t i = 0; i < 2; i++) {
            if (ended)
                take_rest(&streams[i], bytes, count);
            else
                take(&streams[i], bytes, count);
        }
    }
    mem_free(buffer);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static int open_log(const command *c, const char *suffix)
{
    char path[PATH_MAX];
    err ignored;
    if (c->log_path.len == 0 || !host_make_parents(c->log_path, &ignored) ||
        (size_t)snprintf(path, sizeof path, "%s%s", c->log_path.ptr, suffix) >= sizeof path)
        return -1;
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (fd < 0)
        fprintf(stderr, "warning: %s: %s\n", path, strerror(errno));
    return fd;
}

bool run_command(const command *c, run_signals *signals, int *ret_code, err *error)
{
    pipes p;
    fflush(NULL);
    if (!pipes_open(&p, error)) {
        pipes_close(&p);
        return false;
    }
    pid_t pid = fork();
    if (pid == 0)
        child(c, &p);
    if (pid < 0) {
        pipes_close(&p);
        return err_set(error, "fork: %s", strerror(errno));
    }
    setpgid(pid, pid);
    close(p.out[1]);
    close(p.err[1]);
    close(p.problem[1]);
    bool good = started(p.problem[0], error);
    close(p.problem[0]);
    stream streams[] = {
        {.from = p.out[0], .shown = STDOUT_FILENO, .log = open_log(c, ""), .prefix = "[out]"},
        {.from = p.err[0], .shown = STDERR_FILENO, .log = open_log(c, ".err"), .prefix = "[err]"}};
    if (c->log_head.len > 0) {
        put(streams[0].log, c->log_head);
        put(streams[0].log, STR("\n"));
    }
    waiting w = {.child = pid};
    int code = follow(c, signals, streams, &w);
    for (size_t i = 0; i < 2; i++) {
        if (streams[i].in_line)
            show(&streams[i], STR("\n"));
        if (streams[i].from >= 0)
            close(streams[i].from);
        if (streams[i].log >= 0)
            close(streams[i].log);
    }
    *ret_code = code;
    return good;
}

/* ---- old logs ---- */

typedef struct old_log {
    str path;
    struct timespec written;
} old_log;

static int newest_first(const void *a, const void *b)
{
    const old_log *x = a, *y = b;
    if (x->written.tv_sec != y->written.tv_sec)
        return x->written.tv_sec < y->written.tv_sec ? 1 : -1;
    if (x->written.tv_nsec != y->written.tv_nsec)
        return x->written.tv_nsec < y->written.tv_nsec ? 1 : -1;
    return -str_cmp(x->path, y->path);
}

void run_keep_newest_logs(str prefix, arena *a)
{
    VEC(old_log) logs = {0};
    size_t slash = prefix.len;
    while (slash > 0 && prefix.ptr[slash - 1] != '/')
        slash--;
    str folder_path = arena_str(a, str_part(prefix, 0, slash));
    DIR *folder = folder_path.ptr ? opendir(folder_path.ptr) : NULL;
    const struct dirent *entry;
    while (folder && (entry = readdir(folder))) {
        str path = arena_printf(a, "%s%s", folder_path.ptr, entry->d_name);
        struct stat about;
        /* A stamp has a fixed length: "install" does not take "install-all" for its own. */
        if (path.ptr && str_starts(path, prefix) && str_ends(path, STR(".log")) &&
            path.len == prefix.len + sizeof "-2026-01-31-120000.log" - 1 &&
            stat(path.ptr, &about) == 0 && !vec_push(&logs, (old_log){path, about.st_mtim}))
            break;
    }
    if (folder)
        closedir(folder);
    if (logs.len > RUN_LOGS_KEPT)
        qsort(logs.at, logs.len, sizeof *logs.at, newest_first);
    for (size_t i = RUN_LOGS_KEPT; i < logs.len; i++) {
        str other = arena_printf(a, "%s.err", logs.at[i].path.ptr);
        unlink(logs.at[i].path.ptr);
        if (other.ptr)
            unlink(other.ptr);
    }
    vec_done(&logs);
}
