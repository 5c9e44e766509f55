/* SPDX-License-Identifier: Apache-2.0 */
#include "server/jobs.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/vec.h"
#include "server/job_files.h"
#include "server/job_make.h"
#include "server/supervisor.h"

/* How often those are looked at whose supervisor is not a child of this process. */
#define LOOK_MS 250
/* After this long a report that was not taken, or a start that failed, is tried again. */
#define AGAIN_MS 1000
/* A supervisor that ends before it has begun is started so often. */
#define STARTS_MOST 3
/* Ends that are reported together: a turn of so many is short enough for those who wait. */
#define REPORTS_MOST 256
/* Not at once: the loop looks at everything else in between. */
#define FLUSH_MS 1

/* One job that is looked after. */
typedef struct watched {
    jobs *jobs;
    int64_t number;
    uv_timer_t timer;     /* simulated: its end */
    uv_process_t process; /* command: its supervisor, if it is our child */
    int handles;          /* of the two above, not closed yet */
    bool has_timer, has_process;
    bool dropped;    /* to be freed with its last handle */
    bool supervised; /* it has, or is to have, a supervisor */
    int starts;
    bool tell_start, tell_end, queued;
    bool cancelled;
    bool late; /* simulated: it would take longer than it may */
    int64_t pid;
    outcome outcome;
    bool verification_failed;
    char *reason; /* NULL: none */
    buf spec;     /* of a command, until it is on disk */
    buf metrics;  /* simulated: the spec of what is measured afterwards */
} watched;

struct jobs {
    uv_loop_t *loop;
    jobs_reporter reporter;
    char *folder;
    char *program;
    int64_t grace_ms;
    VEC(watched *) all;  /* by number */
    VEC(watched *) told; /* with something to report */
    VEC(job_report) reports;
    uv_timer_t flush;
    uv_timer_t look;
    size_t handles; /* that must close before it can be freed */
    bool closing;
};

/* ---- letting go ---- */

static void jobs_free(jobs *j)
{
    vec_done(&j->all);
    vec_done(&j->told);
    vec_done(&j->reports);
    mem_free(j->folder);
    mem_free(j->program);
    mem_free(j);
}

static void jobs_handle_closed(jobs *j)
{
    assert(j->handles > 0);
    if (--j->handles == 0 && j->closing)
        jobs_free(j);
}

static void watched_free(watched *w)
{
    mem_free(w->reason);
    buf_done(&w->spec);
    buf_done(&w->metrics);
    mem_free(w);
}

static void watched_closed(uv_handle_t *handle)
{
    watched *w = handle->data;
    jobs *j = w->jobs;
    if (--w->handles == 0 && w->dropped)
        watched_free(w);
    jobs_handle_closed(j);
}

static void watched_let_go(watched *w)
{
    if (w->has_timer)
        uv_close((uv_handle_t *)&w->timer, watched_closed);
    if (w->has_process)
        uv_close((uv_handle_t *)&w->process, watched_closed);
    w->has_timer = w->has_process = false;
}

static void watched_drop(watched *w)
{
    w->dropped = true;
    if (w->handles == 0)
        watched_free(w);
    else
        watched_let_go(w);
}

/* ---- the list ---- */

static size_t place_of(const jobs *j, int64_t number)
{
    size_t low = 0, high = j->all.len;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (j->all.at[middle]->number < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static watched *watched_find(const jobs *j, int64_t number)
{
    size_t at = place_of(j, number);
    return at < j->all.len && j->all.at[at]->number == number ? j->all.at[at] : NULL;
}

static watched *watched_add(jobs *j, int64_t number)
{
    watched *w = mem_zalloc(sizeof *w);
    if (!w || !vec_push(&j->all, w))
        return mem_free(w);
    w->jobs = j;
    w->number = number;
    size_t at = j->all.len - 1;
    for (; at > 0 && j->all.at[at - 1]->number > number; at--)
        j->all.at[at] = j->all.at[at - 1];
    j->all.at[at] = w;
    return w;
}

static void watched_remove(watched *w)
{
    jobs *j = w->jobs;
    size_t at = place_of(j, w->number);
    assert(j->all.at[at] == w);
    j->all.len--;
    for (; at < j->all.len; at++)
        j->all.at[at] = j->all.at[at + 1];
    watched_drop(w);
}

/* ---- reports ---- */

static void flush(uv_timer_t *timer);
static void look_later(jobs *j);

static void queue(watched *w)
{
    jobs *j = w->jobs;
    if (!w->queued && vec_push(&j->told, w))
        w->queued = true;
    if (!w->queued)
        look_later(j); /* no memory now */
    if (!uv_is_active((uv_handle_t *)&j->flush))
        uv_timer_start(&j->flush, flush, FLUSH_MS, 0);
}

static void tell_end(watched *w, outcome how, bool verification_failed, str why)
{
    if (w->tell_end)
        return;
    w->tell_end = true;
    w->outcome = how;
    w->verification_failed = verification_failed;
    w->reason = mem_alloc(why.len + 1);
    if (w->reason)
        snprintf(w->reason, why.len + 1, "%.*s", STR_ARG(why));
    queue(w);
}

static bool build_reports(jobs *j)
{
    j->reports.len = 0;
    for (size_t i = 0; i < j->told.len && i < REPORTS_MOST; i++) {
        const watched *w = j->told.at[i];
        job_report r = {.number = w->number,
                        .fencing = JOB_FENCING_ANY,
                        .ended = w->tell_end,
                        .pid = w->pid,
                        .outcome = w->outcome,
                        .verification_failed = w->verification_failed,
                        .reason = w->reason ? str_of(w->reason) : STR_EMPTY};
        if (!vec_push(&j->reports, r))
            return false;
    }
    return true;
}

static void flush(uv_timer_t *timer)
{
    jobs *j = timer->data;
    if (j->told.len == 0)
        return;
    if (!build_reports(j) ||
        !j->reporter.report(j->reporter.context, j->reports.at, j->reports.len)) {
        uv_timer_start(&j->flush, flush, AGAIN_MS, 0);
        return;
    }
    /* What came in during the call stands behind these. */
    size_t taken = j->reports.len;
    for (size_t i = 0; i < taken; i++) {
        watched *w = j->told.at[i];
        w->queued = false;
        w->tell_start = false;
        if (!j->reports.at[i].ended)
            continue;
        if (w->supervised)
            job_files_remove(str_of(j->folder), w->number);
        watched_remove(w);
    }
    j->told.len -= taken;
    for (size_t i = 0; i < j->told.len; i++)
        j->told.at[i] = j->told.at[i + taken];
    if (j->told.len > 0)
        uv_timer_start(&j->flush, flush, FLUSH_MS, 0);
}

/* ---- supervisors ---- */

static void look_at(watched *w);

static void supervisor_ended(uv_process_t *process, int64_t status, int signal_number)
{
    (void)status;
    (void)signal_number;
    watched *w = process->data;
    uv_close((uv_handle_t *)process, watched_closed);
    w->has_process = false;
    look_at(w);
}

static void supervisor_start(watched *w)
{
    jobs *j = w->jobs;
    char number[32];
    snprintf(number, sizeof number, "%lld", (long long)w->number);
    char verb[] = SUPERVISOR_VERB, name[] = "drover";
    char *words[] = {name, verb, j->folder, number, NULL};
    uv_process_options_t options = {.exit_cb = supervisor_ended,
                                    .file = j->program,
                                    .args = words,
                                    .flags = UV_PROCESS_DETACHED};
    if (w->starts++ >= STARTS_MOST) {
        tell_end(w, OUTCOME_FAILED, false, STR("its supervisor cannot be started"));
        return;
    }
    w->process.data = w;
    int code = uv_spawn(j->loop, &w->process, &options);
    /* The handle is open even if nothing was started. */
    w->handles++;
    j->handles++;
    w->has_process = true;
    if (code == 0) {
        w->pid = w->process.pid;
        w->tell_start = true;
        queue(w);
        return;
    }
    uv_close((uv_handle_t *)&w->process, watched_closed);
    w->has_process = false;
}

/* Those whose supervisor cannot tell us of its end, and those that are to end. */
static bool to_be_looked_at(const watched *w)
{
    return w->supervised && !w->tell_end && (!w->has_process || w->cancelled);
}

static void look(uv_timer_t *timer)
{
    jobs *j = timer->data;
    bool any = false;
    for (size_t i = 0; i < j->all.len; i++) {
        watched *w = j->all.at[i];
        if (w->tell_end && !w->queued)
            queue(w);
        if (!to_be_looked_at(w))
            continue;
        any = true;
        look_at(w);
    }
    if (!any)
        uv_timer_stop(&j->look);
}

static void look_later(jobs *j)
{
    if (!uv_is_active((uv_handle_t *)&j->look))
        uv_timer_start(&j->look, look, LOOK_MS, LOOK_MS);
}

/* Puts the spec on disk; a full disk is waited for. */
static bool spec_is_made(watched *w)
{
    err ignored;
    if (w->spec.len == 0)
        return true;
    if (!job_spec_make(str_of(w->jobs->folder), w->number, buf_str(&w->spec), &ignored))
        return false;
    buf_done(&w->spec);
    return true;
}

static void act_on(watched *w, const job_look *seen)
{
    jobs *j = w->jobs;
    switch (seen->state) {
    case JOB_DISK_NONE: tell_end(w, OUTCOME_LOST, false, STR("its files are gone")); return;
    case JOB_DISK_ENDED:
        tell_end(w, seen->exit.outcome, seen->exit.verification_failed, seen->exit.reason);
        return;
    case JOB_DISK_LOST:
        tell_end(w, OUTCOME_LOST, false, STR("its supervisor is gone and left no record"));
        return;
    case JOB_DISK_RUNNING:
        w->pid = seen->supervisor;
        if (w->cancelled)
            job_signal(str_of(j->folder), w->number, SIGTERM);
        break;
    case JOB_DISK_NOT_STARTED:
        if (w->handles == 0) /* else one is on its way, or has just ended */
            supervisor_start(w);
        break;
    }
    look_later(j);
}

/* Where a job of a supervisor stands. */
static void look_at(watched *w)
{
    jobs *j = w->jobs;
    arena *a = arena_new(0);
    job_look seen = {0};
    err error;
    if (w->dropped || w->tell_end) {
        arena_free(a);
        return;
    }
    if (a && spec_is_made(w) && job_look_at(str_of(j->folder), w->number, a, &seen, &error))
        act_on(w, &seen);
    else
        look_later(j);
    arena_free(a);
}

/* ---- starting ---- */

static void start_command(watched *w, const job_order *order)
{
    err error;
    w->spec = BUF(LIMIT_TEXT_BYTES);
    if (!job_make_spec(order, w->jobs->grace_ms, &w->spec, &error)) {
        tell_end(w, OUTCOME_FAILED, false, str_of(error.text));
        return;
    }
    w->supervised = true;
    look_at(w);
}

static void simulated_ended(uv_timer_t *timer)
{
    watched *w = timer->data;
    if (w->outcome == OUTCOME_SUCCEEDED && w->metrics.len > 0) {
        w->spec = w->metrics;
        w->metrics = (buf){0};
        w->supervised = true;
        uv_close((uv_handle_t *)timer, watched_closed);
        w->has_timer = false;
        look_at(w); /* its supervisor is started when the timer is closed */
        return;
    }
    tell_end(w, w->outcome, false,
             w->late                        ? STR("the time limit was reached")
             : w->outcome == OUTCOME_FAILED ? STR("a simulated failure")
                                            : STR_EMPTY);
}

/* Well mixed, and the same for the same job on every machine. */
static bool simulated_fails(int64_t number, int64_t percent)
{
    uint64_t z = (uint64_t)number * UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    z ^= z >> 31;
    return (int64_t)(z % 100) < percent;
}

static int64_t wall_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void start_simulated(watched *w, const job_order *order)
{
    jobs *j = w->jobs;
    const stored_job *row = order->job;
    const simulated_job *how = order->deployment->deployment->spec.job.simulated;
    err error;
    if (order->metric_count > 0 || order->deployment->deployment->spec.verify) {
        w->metrics = BUF(LIMIT_TEXT_BYTES);
        if (!job_make_spec(order, j->grace_ms, &w->metrics, &error)) {
            tell_end(w, OUTCOME_FAILED, false, str_of(error.text));
            return;
        }
    }
    int64_t seconds = how->seconds.set ? how->seconds.value : JOB_SIMULATED_SECONDS;
    int64_t limit = order->deployment->deployment->spec.timeout_seconds;
    w->late = seconds > limit;
    seconds = w->late ? limit : seconds;
    int64_t left = seconds < INT32_MAX ? seconds * 1000 : INT64_C(1000) * INT32_MAX;
    if (row->started_ms > 0)
        left -= wall_ms() - row->started_ms;
    bool fails = w->late || simulated_fails(w->number, how->fail_percent);
    w->outcome = fails ? OUTCOME_FAILED : OUTCOME_SUCCEEDED;
    w->tell_start = true;
    uv_timer_init(j->loop, &w->timer);
    w->timer.data = w;
    w->handles++;
    j->handles++;
    w->has_timer = true;
    if (left <= 0)
        simulated_ended(&w->timer);
    else {
        uv_timer_start(&w->timer, simulated_ended, (uint64_t)left, 0);
        queue(w);
    }
}

/* Whether there are files of it. */
static bool has_files(const jobs *j, int64_t number)
{
    char path[LIMIT_PATH_BYTES];
    return job_path(str_of(j->folder), number, JOB_FILE_SPEC, path) && access(path, F_OK) == 0;
}

bool jobs_start(jobs *j, const job_order *order)
{
    const stored_job *row = order->job;
    bool adopt = order->known && (row->pid != 0 || has_files(j, row->number));
    job_kind kind = order->deployment ? order->deployment->deployment->spec.job.kind : JOB_NONE;
    bool verifying = str_eq(row->state, JOB_VERIFYING);
    bool claimed = row->fencing != 0;
    if (watched_find(j, row->number))
        return true;
    if (!adopt && !verifying && (claimed || kind == JOB_MANUAL || kind == JOB_PULL))
        return true;
    watched *w = watched_add(j, row->number);
    if (!w)
        return false;
    if (adopt) {
        w->supervised = true;
        look_at(w);
        w->tell_start = row->pid == 0; /* we ended before that was written down */
        if (w->tell_start)
            queue(w);
    } else if (kind == JOB_COMMAND || (verifying && kind != JOB_NONE))
        start_command(w, order);
    else if (kind == JOB_SIMULATED)
        start_simulated(w, order);
    else
        tell_end(w, OUTCOME_FAILED, false, STR("its deployment is gone"));
    return true;
}

void jobs_cancel(jobs *j, int64_t number)
{
    watched *w = watched_find(j, number);
    if (!w || w->tell_end)
        return;
    w->cancelled = true;
    if (!w->supervised)
        tell_end(w, OUTCOME_FAILED, false, STR("cancelled"));
    else if (!job_signal(str_of(j->folder), number, SIGTERM))
        look_later(j); /* it has not begun yet: it is told when it has */
}

size_t jobs_count(const jobs *j)
{
    return j->all.len;
}

/* ---- logs ---- */

bool jobs_log_path(const jobs *j, int64_t number, char out[LIMIT_PATH_BYTES])
{
    return job_path(str_of(j->folder), number, JOB_FILE_LOG, out);
}

bool jobs_log_add(const jobs *j, int64_t number, str bytes, err *error)
{
    char path[LIMIT_PATH_BYTES];
    struct stat about;
    int fd = -1;
    bool good = jobs_log_path(j, number, path);
    if (good)
        fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    good = fd >= 0 && fstat(fd, &about) == 0;
    if (good && (uint64_t)about.st_size < LIMIT_JOB_LOG_HEAD_BYTES) {
        size_t room = LIMIT_JOB_LOG_HEAD_BYTES - (size_t)about.st_size;
        bool cut = bytes.len >= room;
        bytes = str_part(bytes, 0, room);
        good = write(fd, bytes.ptr, bytes.len) == (ssize_t)bytes.len;
        str line = STR("\n[drover: what follows is left out]\n");
        good = good && (!cut || write(fd, line.ptr, line.len) == (ssize_t)line.len);
    }
    int why = errno;
    if (fd >= 0)
        close(fd);
    return good || err_set(error, "the log of job %lld: %s", (long long)number, strerror(why));
}

/* ---- opening and closing ---- */

static char *copy_text(str text)
{
    char *copy = mem_alloc(text.len + 1);
    if (copy)
        snprintf(copy, text.len + 1, "%.*s", STR_ARG(text));
    return copy;
}

jobs *jobs_open(uv_loop_t *loop, const jobs_settings *settings, jobs_reporter reporter, err *error)
{
    jobs *j = mem_zalloc(sizeof *j);
    if (!j) {
        err_memory(error);
        return NULL;
    }
    j->loop = loop;
    j->reporter = reporter;
    j->grace_ms = settings->grace_ms > 0 ? settings->grace_ms : JOB_GRACE_MS;
    j->folder = copy_text(settings->folder);
    j->program = copy_text(str_of(settings->program ? settings->program : "/proc/self/exe"));
    bool good = (j->folder && j->program) || err_memory(error);
    if (good && mkdir(j->folder, 0700) != 0 && errno != EEXIST)
        good = err_set(error, "%s: %s", j->folder, strerror(errno));
    if (!good) {
        jobs_free(j);
        return NULL;
    }
    job_drafts_remove(str_of(j->folder));
    uv_timer_init(loop, &j->flush);
    uv_timer_init(loop, &j->look);
    j->flush.data = j->look.data = j;
    j->handles = 2;
    return j;
}

static void own_timer_closed(uv_handle_t *handle)
{
    jobs_handle_closed(handle->data);
}

jobs *jobs_close(jobs *j)
{
    if (!j)
        return NULL;
    j->closing = true;
    for (size_t i = 0; i < j->all.len; i++)
        watched_drop(j->all.at[i]);
    j->all.len = 0;
    j->told.len = 0;
    uv_close((uv_handle_t *)&j->flush, own_timer_closed);
    uv_close((uv_handle_t *)&j->look, own_timer_closed);
    return NULL;
}
