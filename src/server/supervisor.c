/* SPDX-License-Identifier: Apache-2.0 */
#include "server/supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/num.h"
#include "server/job_files.h"
#include "server/measure.h"

#define READ_BYTES 65536
#define FAILED_TO_EXEC 127
#define AGAIN_SECONDS 1u /* between two tries to write to a folder that cannot be written */

/* ---- the log ---- */

typedef struct job_log {
    int fd;
    size_t written;
    char *tail; /* the last bytes behind the head, a ring */
    uint64_t behind;
} job_log;

static void log_write(job_log *l, str text)
{
    /* A full disk must not end the job; what does not fit is gone. */
    while (text.len > 0) {
        ssize_t n = write(l->fd, text.ptr, text.len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return;
        text = str_part(text, (size_t)n, SIZE_MAX);
    }
}

static void log_add(job_log *l, str text)
{
    size_t room = LIMIT_JOB_LOG_HEAD_BYTES - l->written;
    str head = str_part(text, 0, room);
    log_write(l, head);
    l->written += head.len;
    text = str_part(text, head.len, SIZE_MAX);
    for (size_t i = 0; l->tail && i < text.len; i++)
        l->tail[(l->behind + i) % LIMIT_JOB_LOG_TAIL_BYTES] = text.ptr[i];
    l->behind += text.len;
}

static void log_end(job_log *l)
{
    uint64_t kept = l->tail ? l->behind : 0;
    if (kept > LIMIT_JOB_LOG_TAIL_BYTES)
        kept = LIMIT_JOB_LOG_TAIL_BYTES;
    if (l->behind > kept) {
        char line[96];
        snprintf(line, sizeof line, "\n[drover: %llu bytes are left out here]\n",
                 (unsigned long long)(l->behind - kept));
        log_write(l, str_of(line));
    }
    size_t from = (size_t)((l->behind - kept) % LIMIT_JOB_LOG_TAIL_BYTES);
    size_t first = LIMIT_JOB_LOG_TAIL_BYTES - from;
    if (first > kept)
        first = (size_t)kept;
    if (kept > 0) {
        log_write(l, (str){l->tail + from, first});
        log_write(l, (str){l->tail, (size_t)kept - first});
    }
    mem_free(l->tail);
    close(l->fd);
}

/* ---- one command ---- */

#define HURRIES(X) X(NONE, "") X(TIMEOUT, "timeout") X(CANCEL, "cancel")
typedef enum hurry {
#define X(why, text) HURRY_##why,
    HURRIES(X)
#undef X
} hurry;

typedef struct process {
    pid_t pid;   /* also its process group */
    int output;  /* -1: closed */
    int signals; /* TERM and CHLD of the supervisor */
    job_log *log;
    int64_t deadline_ms; /* when the next thing is done to it */
    int64_t grace_ms;
    hurry hurry;
    bool killed;
    bool ended;
    int status;
} process;

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_BOOTTIME, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static char **words_of(arena *a, const str *words, size_t len)
{
    char **list = ARENA_ARRAY(a, len + 1, char *);
    for (size_t i = 0; list && i < len; i++)
        list[i] = (char *)(uintptr_t)words[i].ptr; /* exec does not change them */
    return list;
}

/* In the child: becomes the command, or writes down why not. ends: where its output goes, where
 * trouble is told, and the supervisor. */
static _Noreturn void become(const job_command *c, char **argv, char **env, const int ends[3])
{
    sigset_t none;
    sigemptyset(&none);
    setpgid(0, 0);
    /* Without its supervisor the job is lost, and may be started again: it must not go on. */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != ends[2])
        _exit(FAILED_TO_EXEC);
    const int reset[] = {SIGPIPE, SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
    for (size_t i = 0; i < sizeof reset / sizeof reset[0]; i++)
        signal(reset[i], SIG_DFL);
    sigprocmask(SIG_SETMASK, &none, NULL);
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    bool good = null >= 0 && dup2(null, 0) == 0 && dup2(ends[0], 1) == 1 && dup2(ends[0], 2) == 2 &&
                (c->workdir.len == 0 || chdir(c->workdir.ptr) == 0);
    if (good)
        execvpe(argv[0], argv, env);
    int why = errno;
    ssize_t ignored = write(ends[1], &why, sizeof why);
    (void)ignored;
    _exit(FAILED_TO_EXEC);
}

/* Starts it. False with the reason if it does not run. */
static bool process_start(process *p, arena *a, const job_command *c, err *error)
{
    int output[2], trouble[2];
    char **argv = words_of(a, c->argv, c->argv_len), **env = words_of(a, c->env, c->env_len);
    if (!argv || !env)
        return err_memory(error);
    if (pipe2(output, O_CLOEXEC) != 0)
        return err_set(error, "cannot make a pipe: %s", strerror(errno));
    if (pipe2(trouble, O_CLOEXEC) != 0) {
        close(output[0]);
        close(output[1]);
        return err_set(error, "cannot make a pipe: %s", strerror(errno));
    }
    int self = getpid();
    p->pid = fork();
    if (p->pid == 0)
        become(c, argv, env, (int[]){output[1], trouble[1], self});
    int why = errno;
    close(output[1]);
    close(trouble[1]);
    ssize_t n = 0;
    if (p->pid > 0) {
        setpgid(p->pid, p->pid); /* the child does it too: whoever is first */
        do
            n = read(trouble[0], &why, sizeof why);
        while (n < 0 && errno == EINTR);
    }
    close(trouble[0]);
    p->output = output[0];
    fcntl(p->output, F_SETFL, O_NONBLOCK);
    if (p->pid > 0 && n == 0)
        return true;
    close(p->output);
    if (p->pid > 0)
        waitpid(p->pid, NULL, 0);
    return err_set(error, "cannot run \"%s\": %s", str_shown(c->argv[0]).text, strerror(why));
}

static void process_read(process *p)
{
    char part[READ_BYTES];
    for (;;) {
        ssize_t n = read(p->output, part, sizeof part);
        if (n > 0) {
            log_add(p->log, (str){part, (size_t)n});
            continue;
        }
        if (n < 0 && errno == EINTR)
            continue;
        if (n == 0 || errno != EAGAIN) {
            close(p->output);
            p->output = -1;
        }
        return;
    }
}

static void process_hurry(process *p, hurry why)
{
    if (p->hurry == HURRY_NONE) {
        p->hurry = why;
        kill(-p->pid, SIGTERM);
        p->deadline_ms = now_ms() + p->grace_ms;
    } else if (!p->killed && now_ms() >= p->deadline_ms) {
        p->killed = true;
        kill(-p->pid, SIGKILL);
    }
}

static void process_signals(process *p)
{
    struct signalfd_siginfo got;
    while (read(p->signals, &got, sizeof got) == sizeof got)
        if (got.ssi_signo == SIGTERM)
            process_hurry(p, HURRY_CANCEL);
    siginfo_t about = {0};
    if (waitid(P_PID, (id_t)p->pid, &about, WEXITED | WNOHANG | WNOWAIT) != 0 || about.si_pid == 0)
        return;
    /* Its number is its own until it is waited for, so nobody else is hit. */
    kill(-p->pid, SIGKILL);
    waitpid(p->pid, &p->status, 0);
    p->ended = true;
}

static void process_wait(process *p)
{
    while (!p->ended) {
        int64_t left = p->killed ? -1 : p->deadline_ms - now_ms();
        if (!p->killed && left < 0)
            left = 0;
        struct pollfd files[] = {{.fd = p->signals, .events = POLLIN},
                                 {.fd = p->output, .events = POLLIN}};
        int n = poll(files, 2, left > INT32_MAX ? INT32_MAX : (int)left);
        if (n > 0 && files[1].revents != 0)
            process_read(p);
        if (n > 0 && files[0].revents != 0)
            process_signals(p);
        if (!p->ended && !p->killed && now_ms() >= p->deadline_ms)
            process_hurry(p, HURRY_TIMEOUT);
    }
    if (p->output >= 0)
        process_read(p);
    if (p->output >= 0)
        close(p->output);
}

/* ---- the job ---- */

typedef struct supervised {
    str folder;
    int64_t number;
    arena *arena;
    job_spec spec;
    job_log log;
    int signals;
    int64_t deadline_ms;
    bool cancelled; /* while metrics are measured */
} supervised;

/* An empty reason is success. */
static str judge(const supervised *s, const process *p)
{
    if (p->hurry == HURRY_CANCEL)
        return STR("cancelled");
    if (p->hurry == HURRY_TIMEOUT)
        return arena_printf(s->arena, "the time limit of %lld s was reached",
                            (long long)(s->spec.timeout_ms / 1000));
    if (WIFSIGNALED(p->status))
        return arena_printf(s->arena, "ended by signal %d (%s)", WTERMSIG(p->status),
                            strsignal(WTERMSIG(p->status)));
    if (WEXITSTATUS(p->status) != 0)
        return arena_printf(s->arena, "exit status %d", WEXITSTATUS(p->status));
    return STR_EMPTY;
}

static str run_command(supervised *s, const job_command *c)
{
    err error;
    process p = {.signals = s->signals,
                 .log = &s->log,
                 .deadline_ms = s->deadline_ms,
                 .grace_ms = s->spec.grace_ms};
    if (!process_start(&p, s->arena, c, &error))
        return arena_str(s->arena, str_of(error.text));
    process_wait(&p);
    return judge(s, &p);
}

/* ---- metrics ---- */

/* False when it was asked to stop. */
static bool wait_until(void *context, int64_t until_ms)
{
    supervised *s = context;
    struct signalfd_siginfo got;
    for (;;) {
        while (read(s->signals, &got, sizeof got) == sizeof got)
            s->cancelled = s->cancelled || got.ssi_signo == SIGTERM;
        int64_t left = until_ms - now_ms();
        if (s->cancelled || left <= 0)
            return !s->cancelled;
        struct pollfd file = {.fd = s->signals, .events = POLLIN};
        poll(&file, 1, left > INT32_MAX ? INT32_MAX : (int)left);
    }
}

static void say(void *context, str line)
{
    supervised *s = context;
    log_add(&s->log, line);
}

/* Providers that do not answer are asked again, but not for ever. */
static int64_t measuring_ms(const supervised *s, const verification *v)
{
    int64_t longest = 0;
    for (size_t i = 0; i < v->metrics.len; i++) {
        const verification_metric *m = &v->metrics.at[i];
        int64_t each = m->interval_seconds + m->provider.duration_seconds;
        int64_t ms =
            m->count < INT32_MAX / each ? m->count * each * 1000 : INT64_C(1000) * INT32_MAX;
        longest = ms > longest ? ms : longest;
    }
    return longest + s->spec.timeout_ms;
}

static str run_metrics(supervised *s)
{
    document_set *set = document_set_new();
    object_list *objects = objects_new();
    problems *found = problems_new();
    str why = STR("its metrics cannot be read");
    bool good = set && objects && found &&
                documents_read_as(set, STR("spec"), s->spec.metrics, FORMAT_JSON, found) &&
                objects_read(objects, set, found) && objects->len == 1 &&
                objects->at[0].rollout_policy->spec.rules.len == 1;
    if (good) {
        const verification *v = objects->at[0].rollout_policy->spec.rules.at[0].verification;
        measuring m = {.what = v,
                       .deadline_ms = now_ms() + measuring_ms(s, v),
                       .context = s,
                       .now_ms = now_ms,
                       .wait = wait_until,
                       .say = say};
        why = measure_all(&m, s->arena);
    }
    problems_free(found);
    objects_free(objects);
    document_set_free(set);
    return why;
}

static job_exit run_job(supervised *s)
{
    str why = s->spec.run.argv_len > 0 ? run_command(s, &s->spec.run) : STR_EMPTY;
    if (why.len > 0 || !why.ptr)
        return (job_exit){.outcome = OUTCOME_FAILED, .reason = why.ptr ? why : STR("failed")};
    job_exit e = {.outcome = OUTCOME_SUCCEEDED};
    if (s->spec.verified)
        why = run_command(s, &s->spec.verify);
    if (why.len == 0 && why.ptr && s->spec.metrics.len > 0)
        why = run_metrics(s);
    e.verification_failed = why.len > 0 || !why.ptr;
    if (e.verification_failed)
        e.reason = arena_printf(s->arena, "verify: %.*s", STR_ARG(why));
    return e;
}

static int open_signals(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGCHLD);
    sigprocmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    signal(SIGINT, SIG_IGN);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* Whether a file that could not be written may be written later: the disk is full or failing, the
 * folder is read-only. Somebody's own record, and a folder that is gone, are final. */
static bool worth_waiting(int why)
{
    return why != EEXIST && why != ENOENT && why != ENOTDIR && why != ENAMETOOLONG;
}

static int open_patiently(const char *path, int flags)
{
    for (;;) {
        int fd = open(path, flags | O_CLOEXEC, 0600);
        if (fd >= 0 || !worth_waiting(errno))
            return fd;
        sleep(AGAIN_SECONDS);
    }
}

/* The lock is kept until the process ends: spec must not be closed, nor opened again. */
static bool claim(const supervised *s, int spec)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    char path[LIMIT_PATH_BYTES];
    int got;
    do
        got = fcntl(spec, F_SETLKW, &lock);
    while (got != 0 && errno == EINTR);
    if (got != 0 || !job_path(s->folder, s->number, JOB_FILE_RUN, path))
        return false;
    int run = open_patiently(path, O_WRONLY | O_CREAT | O_EXCL);
    if (run < 0)
        return false;
    fsync(run);
    close(run);
    /* Asked after "run" was made: its absence says nothing of a job whose files were taken away
     * while this process waited for the lock, and of those the spec goes before "run". */
    bool present = job_spec_is(s->folder, s->number, spec);
    if (!present)
        unlink(path);
    return present;
}

static int supervise(supervised *s)
{
    char path[LIMIT_PATH_BYTES];
    err error;
    if (!job_path(s->folder, s->number, JOB_FILE_SPEC, path))
        return 1;
    s->signals = open_signals();
    int spec = open_patiently(path, O_RDWR);
    if (s->signals < 0 || spec < 0)
        return 1;
    if (!claim(s, spec))
        return 0; /* somebody else has run it, or runs it */
    job_exit e = {.outcome = OUTCOME_FAILED};
    if (!job_path(s->folder, s->number, JOB_FILE_LOG, path))
        return 1;
    s->log.fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    s->log.tail = mem_alloc(LIMIT_JOB_LOG_TAIL_BYTES);
    if (job_spec_read(spec, s->arena, &s->spec, &error)) {
        s->deadline_ms = now_ms() + s->spec.timeout_ms;
        e = run_job(s);
    } else
        e.reason = str_of(error.text);
    log_end(&s->log);
    /* Without this record the job counts as lost. */
    while (!job_exit_make(s->folder, s->number, &e, &error) && worth_waiting(errno))
        sleep(AGAIN_SECONDS);
    return 0;
}

int supervisor_run(str folder, int64_t number)
{
    supervised s = {.folder = folder, .number = number, .arena = arena_new(0)};
    int status = s.arena ? supervise(&s) : 1;
    arena_free(s.arena);
    return status;
}

int supervisor_main(int argc, char **argv)
{
    int64_t number;
    if (argc != 2 || !num_parse(str_of(argv[1]), &number))
        return 2;
    return supervisor_run(str_of(argv[0]), number);
}
