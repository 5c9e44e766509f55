/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/work.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/log.h"
#include "base/mem.h"

#define LOG_KEPT_BYTES (1024u * 1024u)
#define REASON_BYTES 128
#define COMPLETE_TRIES 30

typedef struct run {
    const work *work;
    long long number, fencing;
    int64_t lease_until, time_limit, beat_at, sent_at, kill_at;
    pid_t child; /* the leash, and the process group of the command */
    int output;
    int leash; /* the end that is written */
    buf log;
    bool asked; /* TERM was sent */
    bool lost;  /* the claim is another's: nothing to report */
    bool exited;
    int status;
    char reason[REASON_BYTES];
} run;

int64_t work_clock_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_BOOTTIME, &t); /* a machine that sleeps does not stop the claim */
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* ---- starting ---- */

static void put_environment(client *c, yyjson_val *claim)
{
    static const struct {
        const char *name, *pointer;
    } members[] = {{"DROVER_JOB_ID", "/job/number"},
                   {"DROVER_RESOURCE", "/job/resource"},
                   {"DROVER_DEPLOYMENT", "/job/deployment"},
                   {"DROVER_ENVIRONMENT", "/job/environment"},
                   {"DROVER_VERSION", "/job/version"},
                   {"DROVER_GROUP", "/job/group"},
                   {"DROVER_ATTEMPT", "/job/attempt"},
                   {"DROVER_VERSION_CONFIG", "/versionConfig"},
                   {"DROVER_RESOURCE_CONFIG", "/resourceConfig"}};
    for (size_t i = 0; i < sizeof members / sizeof members[0]; i++) {
        str value = json_at(c, claim, members[i].pointer);
        str text = arena_str(client_arena(c), value);
        setenv(members[i].name, text.ptr ? text.ptr : "", 1);
    }
    unsetenv("DROVER_TOKEN"); /* it is not the command's */
}

/* What runs as the command: its output goes to the worker. */
static void be_the_command(const run *r, int output)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* if somebody kills the leash alone */
    signal(SIGTERM, SIG_DFL);
    signal(SIGINT, SIG_DFL);
    signal(SIGPIPE, SIG_DFL);
    int nothing = open("/dev/null", O_RDONLY);
    dup2(nothing, STDIN_FILENO);
    dup2(output, STDOUT_FILENO);
    dup2(output, STDERR_FILENO);
    execvp(r->work->argv[0], r->work->argv);
    fprintf(stderr, "%s cannot be run: %s\n", r->work->argv[0], strerror(errno));
    _exit(127);
}

/* Ends as the command did. */
static void end_alike(int status)
{
    if (!WIFSIGNALED(status))
        _exit(WEXITSTATUS(status));
    prctl(PR_SET_DUMPABLE, 0);
    signal(WTERMSIG(status), SIG_DFL);
    kill(getpid(), WTERMSIG(status));
    _exit(128 + WTERMSIG(status));
}

/* The leash: between worker and command, in the command's process group. It is told until when the
 * claim holds. When that is over, or the worker is gone, it kills the group, itself with it: a
 * worker that dies or hangs cannot do so. */
static void be_the_leash(const run *r, int told, int output)
{
    int64_t until = r->lease_until - WORK_MARGIN_MS;
    int status = 0;
    setpgid(0, 0);
    signal(SIGTERM, SIG_IGN); /* meant for the command; its end is waited for */
    signal(SIGINT, SIG_IGN);
    pid_t command = fork();
    if (command == 0)
        be_the_command(r, output);
    close(output);
    while (command > 0 && waitpid(command, &status, WNOHANG) == 0) {
        struct pollfd p = {.fd = told, .events = POLLIN};
        int64_t later = 0;
        int ready = poll(&p, 1, WORK_LEASH_MS);
        ssize_t len = ready > 0 ? read(told, &later, sizeof later) : -1;
        if (len == (ssize_t)sizeof later)
            until = later;
        if ((ready > 0 && len != (ssize_t)sizeof later) || work_clock_ms() >= until)
            kill(0, SIGKILL);
    }
    if (command < 0)
        _exit(127);
    end_alike(status);
}

static void close_both(int ends[2])
{
    close(ends[0]);
    close(ends[1]);
}

static bool start(run *r, yyjson_val *claim)
{
    int ends[2], leash[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return false;
    if (pipe2(leash, O_CLOEXEC) != 0) {
        close_both(ends);
        return false;
    }
    put_environment(r->work->client, claim);
    prctl(PR_SET_CHILD_SUBREAPER, 1); /* so that orphans can be waited for */
    r->child = fork();
    if (r->child == 0) {
        close(ends[0]);
        close(leash[1]);
        be_the_leash(r, leash[0], ends[1]);
    }
    close(ends[1]);
    close(leash[0]);
    if (r->child < 0) {
        close(ends[0]);
        close(leash[1]);
        return false;
    }
    setpgid(r->child, r->child);
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    r->output = ends[0];
    r->leash = leash[1];
    return true;
}

/* The claim holds longer: the leash must know, or it ends the command. */
static void lengthen_leash(const run *r)
{
    int64_t until = r->lease_until - WORK_MARGIN_MS;
    if (write(r->leash, &until, sizeof until) != (ssize_t)sizeof until)
        log_line(LOG_WARN, "job %lld: its leash is gone", r->number);
}

/* ---- while it runs ---- */

static void ask_for_end(run *r, const char *reason)
{
    if (r->asked)
        return;
    r->asked = true;
    r->kill_at = work_clock_ms() + WORK_GRACE_MS;
    snprintf(r->reason, sizeof r->reason, "%s", reason);
    kill(-r->child, SIGTERM);
}

static void read_output(run *r)
{
    char bytes[16384];
    ssize_t len;
    while (r->output >= 0 && (len = read(r->output, bytes, sizeof bytes)) != 0) {
        if (len < 0)
            return;
        if (r->log.len < LOG_KEPT_BYTES) /* what cannot be sent in time is not kept for ever */
            buf_add(&r->log, (str){bytes, (size_t)len});
    }
    if (r->output >= 0)
        close(r->output);
    r->output = -1;
}

static void send_log(run *r)
{
    client_answer answer;
    client *c = r->work->client;
    r->sent_at = work_clock_ms();
    if (r->log.len == 0 || r->lost)
        return;
    str path =
        arena_printf(client_arena(c), "/api/v1/jobs/%lld/log?fencing=%lld", r->number, r->fencing);
    if (client_try(c, "POST", path, buf_str(&r->log), &answer) == STATUS_DONE)
        buf_clear(&r->log);
    client_forget(c);
}

static void beat(run *r)
{
    client_answer answer;
    client *c = r->work->client;
    int64_t now = work_clock_ms();
    int64_t lease_ms = r->work->lease_seconds * 1000;
    r->beat_at = now + lease_ms / 3;
    str path = arena_printf(client_arena(c), "/api/v1/jobs/%lld/heartbeat", r->number);
    str body = arena_printf(client_arena(c), "{\"fencing\":%lld,\"leaseSeconds\":%lld}", r->fencing,
                            (long long)r->work->lease_seconds);
    if (client_try(c, "POST", path, body, &answer) != STATUS_DONE) {
        r->beat_at = now + 1000; /* the server may be back in a moment */
    } else if (!yyjson_get_bool(yyjson_obj_get(answer.json, "held"))) {
        r->lost = true;
        kill(-r->child, SIGKILL);
    } else {
        r->lease_until = now + lease_ms;
        lengthen_leash(r);
        if (yyjson_get_bool(yyjson_obj_get(answer.json, "cancel")))
            ask_for_end(r, "cancelled");
    }
    client_forget(c);
}

static void look_after(run *r)
{
    int64_t now = work_clock_ms();
    if (now >= r->beat_at)
        beat(r);
    if (r->log.len >= WORK_LOG_PIECE_BYTES || now - r->sent_at >= WORK_LOG_EVERY_MS)
        send_log(r);
    if (*r->work->stop)
        ask_for_end(r, "the worker was stopped");
    if (r->time_limit > 0 && now >= r->time_limit)
        ask_for_end(r, "the time limit was reached");
    if (r->asked && now >= r->kill_at)
        kill(-r->child, SIGKILL);
    if (now >= r->lease_until - WORK_MARGIN_MS) {
        snprintf(r->reason, sizeof r->reason, "the claim could not be prolonged");
        kill(-r->child, SIGKILL);
    }
}

static void wait_for_end(run *r)
{
    while (!r->exited) {
        struct pollfd p = {.fd = r->output, .events = POLLIN};
        poll(&p, r->output >= 0 ? 1 : 0, 100);
        read_output(r);
        look_after(r);
        r->exited = waitpid(r->child, &r->status, WNOHANG) == r->child;
    }
    /* What it left behind; nothing is reported while some of it still runs. */
    kill(-r->child, SIGKILL);
    while (waitpid(-r->child, NULL, 0) > 0)
        continue;
    close(r->leash);
    read_output(r);
    if (r->output >= 0)
        close(r->output);
}

/* ---- reporting ---- */

static void explain_end(run *r)
{
    if (r->reason[0])
        return;
    if (WIFSIGNALED(r->status) && work_clock_ms() >= r->lease_until - WORK_MARGIN_MS)
        snprintf(r->reason, sizeof r->reason, "the claim could not be prolonged");
    else if (WIFSIGNALED(r->status))
        snprintf(r->reason, sizeof r->reason, "ended by signal %d", WTERMSIG(r->status));
    else if (WEXITSTATUS(r->status) != 0)
        snprintf(r->reason, sizeof r->reason, "exit status %d", WEXITSTATUS(r->status));
}

static void report(run *r)
{
    client *c = r->work->client;
    bool good = WIFEXITED(r->status) && WEXITSTATUS(r->status) == 0 && !r->asked;
    explain_end(r);
    for (int try = 0; try < COMPLETE_TRIES && !r->lost; try++) {
        client_answer answer;
        str path = arena_printf(client_arena(c), "/api/v1/jobs/%lld/complete", r->number);
        str body =
            arena_printf(client_arena(c), "{\"fencing\":%lld,\"outcome\":\"%s\",\"reason\":\"%s\"}",
                         r->fencing, good ? "succeeded" : "failed", good ? "" : r->reason);
        client_try(c, "POST", path, body, &answer);
        bool over = answer.status != 0 && answer.status < 500;
        client_forget(c);
        if (over)
            break;
        sleep(1);
    }
    log_line(LOG_INFO, "job %lld %s%s%s", r->number,
             r->lost ? "is another's"
             : good  ? "succeeded"
                     : "failed",
             r->reason[0] ? ": " : "", r->reason);
}

void work_run(const work *w, yyjson_val *claim, int64_t asked_ms)
{
    run r = {.work = w,
             .number = yyjson_get_sint(yyjson_ptr_get(claim, "/job/number")),
             .fencing = yyjson_get_sint(yyjson_obj_get(claim, "fencing")),
             .lease_until = asked_ms + w->lease_seconds * 1000,
             .output = -1,
             .log = BUF(2 * LOG_KEPT_BYTES)};
    int64_t limit = yyjson_get_sint(yyjson_obj_get(claim, "timeoutSeconds"));
    r.time_limit = limit > 0 ? asked_ms + limit * 1000 : 0;
    r.beat_at = asked_ms + w->lease_seconds * 1000 / 3;
    r.sent_at = asked_ms;
    str deployment_name = json_at(w->client, claim, "/job/deployment");
    str version_tag = json_at(w->client, claim, "/job/version");
    log_line(LOG_INFO, "job %lld: %.*s %.*s", r.number, STR_ARG(deployment_name),
             STR_ARG(version_tag));
    if (start(&r, claim)) {
        client_forget(w->client);
        wait_for_end(&r);
        send_log(&r);
    } else {
        snprintf(r.reason, sizeof r.reason, "no process could be started");
        r.asked = true;
    }
    report(&r);
    buf_done(&r.log);
}
