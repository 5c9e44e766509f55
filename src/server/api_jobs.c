/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs: lists, logs, and what workers do. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/num.h"
#include "server/api.h"
#include "server/api_shapes.h"
#include "server/control_internal.h"

static job_output output_of(const stored_job *j)
{
    return (job_output){.number = j->number,
                        .deployment = j->deployment,
                        .environment = j->environment,
                        .resource = j->resource,
                        .version = j->version,
                        .group = j->group,
                        .role = j->role,
                        .state = j->state,
                        .reason = j->reason,
                        .attempt = j->attempt,
                        .started_at = api_moment(j->started_ms),
                        .ended_at = api_moment(j->ended_ms),
                        .lease_until = api_moment(j->lease_ms)};
}

/* ---- list and get ---- */

typedef struct job_listing {
    call *call;
    page_writer page;
    str deployment, resource;
    int64_t last;
    bool more;
} job_listing;

static bool list_job(void *context, const stored_job *j)
{
    job_listing *l = context;
    if ((l->deployment.len > 0 && !str_eq(l->deployment, j->deployment)) ||
        (l->resource.len > 0 && !str_eq(l->resource, j->resource)))
        return true;
    if (!api_next(l->call, &l->page)) {
        l->more = true;
        return false;
    }
    job_output out = output_of(j);
    shape_write(&job_output_shape, &out, api_out(l->call), 0);
    l->last = j->number;
    return true;
}

void run_job_list(call *c)
{
    err error;
    job_listing l = {
        .call = c, .deployment = api_text(c, "deployment"), .resource = api_text(c, "resource")};
    store *s = control_store(c->api->control);
    api_page(c, &l.page);
    if (!store_jobs(s, (job_range){api_number(c, "continue", 0), api_flag(c, "open")}, list_job, &l,
                    &error))
        api_error(c, &error);
    else
        api_page_end(c, &l.page,
                     l.more ? arena_printf(c->request->arena, "%lld", (long long)l.last)
                            : STR_EMPTY);
}

/* The job that the path names; a worker sees only those of its resources. */
static bool find_job(call *c, stored_job *ret)
{
    int64_t number;
    err error = {.text = ""};
    if (!num_parse(c->arguments[0], &number) || number < 1) {
        api_fail(c, 404, NULL, "found \"%s\", allowed the number of a job",
                 str_shown(c->arguments[0]).text);
        return false;
    }
    store *s = control_store(c->api->control);
    if (!store_get_job(s, number, c->request->arena, ret, &error)) {
        if (error.text[0])
            api_error(c, &error);
        else
            api_fail(c, 404, NULL, "there is no job %lld", (long long)number);
        return false;
    }
    if (api_may_work(c, ret->resource))
        return true;
    api_fail(c, 403, NULL, "this worker's token is not for %s", str_shown(ret->resource).text);
    return false;
}

void run_job_get(call *c)
{
    stored_job j;
    if (!find_job(c, &j))
        return;
    job_output out = output_of(&j);
    api_answer(c, &out);
}

/* ---- logs out ---- */

typedef struct log_reader {
    api *api;
    int fd; /* -1: not there yet */
    int64_t number;
    int64_t at;
    int64_t end; /* where to stop; -1: follow */
    char path[LIMIT_PATH_BYTES];
} log_reader;

static bool job_over(api *a, int64_t number)
{
    err error;
    stored_job j;
    arena *texts = arena_new(0);
    bool over = !texts || !store_get_job(control_store(a->control), number, texts, &j, &error) ||
                j.ended_ms != 0;
    arena_free(texts);
    return over;
}

static stream_state pull_log(void *context, buf *out)
{
    log_reader *l = context;
    char bytes[HTTP_STREAM_CHUNK_BYTES];
    /* Asked before reading: what is written before the end is then read for sure. */
    bool over = l->end >= 0 || job_over(l->api, l->number);
    if (l->fd < 0)
        l->fd = open(l->path, O_RDONLY | O_CLOEXEC);
    size_t room = sizeof bytes;
    if (l->end >= 0 && l->end - l->at < (int64_t)room)
        room = (size_t)(l->end - l->at);
    ssize_t len = l->fd < 0 || room == 0 ? 0 : pread(l->fd, bytes, room, l->at);
    if (len > 0) {
        buf_add(out, (str){bytes, (size_t)len});
        l->at += len;
        return STREAM_MORE;
    }
    return over ? STREAM_END : STREAM_WAIT;
}

static void close_log(void *context)
{
    log_reader *l = context;
    if (l->fd >= 0)
        close(l->fd);
    mem_free(l);
}

/* "bytes=5-", "bytes=5-9", "bytes=-100"; -1 where there is no number. */
typedef struct byte_range {
    int64_t first, last;
} byte_range;

static bool parse_range(str text, byte_range *ret)
{
    byte_range r = {-1, -1};
    if (!str_starts(text, STR("bytes=")))
        return false;
    str last = str_part(text, strlen("bytes="), text.len);
    str first = str_cut(&last, '-');
    if (!last.ptr || (first.len == 0 && last.len == 0) ||
        (first.len > 0 && (!num_parse(first, &r.first) || r.first < 0)) ||
        (last.len > 0 && (!num_parse(last, &r.last) || r.last < 0)))
        return false;
    *ret = r;
    return true;
}

/* The bytes of a log of this size that a range names. False: there are none. */
static bool cut_range(byte_range r, int64_t size, log_reader *l)
{
    int64_t from = r.first, to = r.last;
    if (from < 0) { /* the last so many */
        from = to < size ? size - to : 0;
        to = size - 1;
    } else if (to < 0 || to >= size) {
        to = size - 1;
    }
    if (from >= size || to < from)
        return false;
    l->at = from;
    l->end = to + 1;
    return true;
}

static bool set_range(call *c, log_reader *l)
{
    struct stat status;
    byte_range wanted;
    int64_t size = stat(l->path, &status) == 0 ? (int64_t)status.st_size : 0;
    str range = http_header(c->request, "Range");
    /* A range of another unit or form is as if it were not there: RFC 9110, 14.2. */
    bool follow = api_flag(c, "follow");
    bool part = !follow && range.ptr && parse_range(range, &wanted);
    l->end = follow ? -1 : size;
    if (!part)
        return true;
    if (!cut_range(wanted, size, l)) {
        http_field_add(c->reply, "Content-Range",
                       arena_printf(c->request->arena, "bytes */%lld", (long long)size));
        api_fail(c, 416, NULL, "Range: found \"%s\", the log has %lld bytes", str_shown(range).text,
                 (long long)size);
        return false;
    }
    c->reply->status = 206;
    http_field_add(c->reply, "Content-Range",
                   arena_printf(c->request->arena, "bytes %lld-%lld/%lld", (long long)l->at,
                                (long long)l->end - 1, (long long)size));
    return true;
}

void run_job_log(call *c)
{
    stored_job j;
    if (!find_job(c, &j))
        return;
    log_reader *l = mem_zalloc(sizeof *l);
    if (!l) {
        api_fail(c, 503, NULL, "memory ran out");
        return;
    }
    *l = (log_reader){.api = c->api, .fd = -1, .number = j.number, .end = -1};
    bool follow = api_flag(c, "follow");
    if (!jobs_log_path(c->api->jobs, j.number, l->path)) {
        api_fail(c, 500, NULL, "the path of the log is too long");
    } else if (set_range(c, l)) {
        c->reply->type = "text/plain; charset=utf-8";
        http_field_add(c->reply, "Accept-Ranges", STR("bytes"));
        c->reply->source = (http_source){.context = l,
                                         .pull = pull_log,
                                         .close = close_log,
                                         .size = follow ? -1 : l->end - l->at};
        return;
    }
    close_log(l);
}

/* ---- workers ---- */

static bool find_fenced(call *c, int64_t fencing, stored_job *ret)
{
    if (!find_job(c, ret))
        return false;
    if (ret->fencing == fencing && ret->ended_ms == 0)
        return true;
    api_fail(c, 409, NULL, "the claim with the fencing number %lld is over", (long long)fencing);
    return false;
}

void run_job_log_add(call *c)
{
    stored_job j;
    err error;
    if (!find_fenced(c, api_number(c, "fencing", 0), &j))
        return;
    if (!jobs_log_add(c->api->jobs, j.number, c->request->body, &error)) {
        api_error(c, &error);
        return;
    }
    http_wake(c->api->http);
    api_answer(c, &(log_output){.bytes = (int64_t)c->request->body.len});
}

void run_job_claim(call *c)
{
    const claim_input *in = c->input;
    err error;
    claim_request request = {
        .who = c->caller.name, .resource = in->resource, .lease_ms = in->lease_seconds * 1000};
    claim_answer answer = {.arena = c->request->arena};
    if (!control_object(c->api->control, KIND_RESOURCE, in->resource)) {
        api_fail(c, 404, NULL, "there is no Resource \"%s\"", str_shown(in->resource).text);
        return;
    }
    if (!api_may_work(c, in->resource)) {
        api_fail(c, 403, NULL, "this worker's token is not for %s", str_shown(in->resource).text);
        return;
    }
    if (!control_claim(c->api->control, &request, c->now_ms, &answer, &error)) {
        api_error(c, &error);
        return;
    }
    claim_output out = {.found = answer.found};
    job_output job = {0};
    if (answer.found) {
        const control *plane = c->api->control;
        const object *d = control_object(plane, KIND_DEPLOYMENT, answer.job.deployment);
        const object *r = control_object(plane, KIND_RESOURCE, answer.job.resource);
        job = output_of(&answer.job);
        out.job = &job;
        out.fencing = answer.job.fencing;
        out.timeout_seconds = d ? d->deployment->spec.timeout_seconds : 0;
        const object *v = version_tagged(plane, answer.job.deployment, answer.job.version);
        out.version_config = v ? v->version->spec.config : NULL;
        out.resource_config = r ? r->resource->spec.config : NULL;
    }
    api_answer(c, &out);
}

void run_job_heartbeat(call *c)
{
    const beat_input *in = c->input;
    stored_job j;
    err error;
    if (!find_job(c, &j))
        return;
    heartbeat beat = {
        .number = j.number, .fencing = in->fencing, .lease_ms = in->lease_seconds * 1000};
    if (!control_heartbeat(c->api->control, &beat, c->now_ms, &error)) {
        api_error(c, &error);
        return;
    }
    api_answer(c, &(beat_output){.held = beat.held,
                                 .cancel = beat.cancel,
                                 .lease_until = api_moment(beat.held ? beat.until_ms : 0)});
}

/* Only what a worker claimed or a person does is ended from outside. */
static bool may_complete(call *c, const stored_job *j, bool fenced)
{
    const object *d = control_object(c->api->control, KIND_DEPLOYMENT, j->deployment);
    job_kind kind = d ? d->deployment->spec.job.kind : JOB_NONE;
    if (kind == JOB_PULL && fenced)
        return true;
    if (kind == JOB_MANUAL && c->caller.level != ACCESS_WORKER)
        return true;
    if (kind == JOB_PULL)
        api_fail(c, 422, NULL, "fencing: the number of the claim is needed");
    else
        api_fail(c, 409, NULL, "job %lld is neither manual nor a worker's", (long long)j->number);
    return false;
}

void run_job_complete(call *c)
{
    const complete_input *in = c->input;
    stored_job j;
    err error;
    if (!find_job(c, &j))
        return;
    if (j.ended_ms != 0) {
        api_answer(c, &(complete_output){.ignored = true});
        return;
    }
    if (!may_complete(c, &j, in->fencing.set))
        return;
    job_report report = {.who = c->caller.name,
                         .number = j.number,
                         .fencing = in->fencing.set ? in->fencing.value : JOB_FENCING_ANY,
                         .ended = true,
                         .outcome = in->outcome == COMPLETION_SUCCEEDED ? OUTCOME_SUCCEEDED
                                                                        : OUTCOME_FAILED,
                         .reason = in->reason};
    if (in->fencing.set && in->fencing.value != j.fencing)
        report.ignored = true; /* also one that is larger than was ever given out */
    else if (!control_jobs(c->api->control, &report, 1, c->now_ms, &error)) {
        api_error(c, &error);
        return;
    }
    api_answer(c, &(complete_output){.ignored = report.ignored});
}

void run_job_cancel(call *c)
{
    stored_job j;
    err error;
    if (!find_job(c, &j))
        return;
    if (j.ended_ms != 0) {
        api_fail(c, 409, NULL, "job %lld has ended", (long long)j.number);
        return;
    }
    if (!control_cancel(c->api->control, j.number, c->caller.name, c->now_ms, &error))
        api_error(c, &error);
    else
        run_job_get(c);
}
