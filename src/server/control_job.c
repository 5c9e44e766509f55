/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs begin, are claimed, end. */
#include <assert.h>

#include "base/mem.h"
#include "server/control_internal.h"

#define TIMEOUT_SECONDS_DEFAULT 3600
#define CANCELLING STR("cancelling")

static const str state_of_outcome[] = {
    [OUTCOME_SUCCEEDED] = {"succeeded", 9},
    [OUTCOME_FAILED] = {"failed", 6},
    [OUTCOME_LOST] = {"lost", 4},
};

/* ---- in memory ---- */

live_job *job_make(const stored_job *row)
{
    const str texts[] = {row->deployment, row->environment, row->resource, row->version,
                         row->group,      row->role,        row->state};
    size_t bytes = 0;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        bytes += texts[i].len;
    live_job *j = mem_zalloc(sizeof *j + bytes);
    if (!j)
        return NULL;
    j->job = *row;
    str *copies[] = {&j->job.deployment, &j->job.environment, &j->job.resource, &j->job.version,
                     &j->job.group,      &j->job.role,        &j->job.state};
    char *at = j->text;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        if (texts[i].len > 0)
            memcpy(at, texts[i].ptr, texts[i].len);
        *copies[i] = (str){at, texts[i].len};
        at += texts[i].len;
    }
    j->job.reason = str_eq(row->reason, CANCELLING) ? CANCELLING : STR_EMPTY;
    return j;
}

/* The place of the first job that is not below number. */
static size_t job_place(const control *c, int64_t number)
{
    size_t low = 0, high = c->jobs.len;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (c->jobs.at[middle]->job.number < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

live_job *job_find(const control *c, int64_t number)
{
    size_t at = job_place(c, number);
    return at < c->jobs.len && c->jobs.at[at]->job.number == number ? c->jobs.at[at] : NULL;
}

bool job_hold(control *c, live_job *j)
{
    assert(c->jobs.len == 0 || c->jobs.at[c->jobs.len - 1]->job.number < j->job.number);
    return vec_push(&c->jobs, j);
}

void job_drop(control *c, int64_t number)
{
    size_t at = job_place(c, number);
    assert(at < c->jobs.len && c->jobs.at[at]->job.number == number);
    mem_free(c->jobs.at[at]);
    c->jobs.len--;
    for (; at < c->jobs.len; at++)
        c->jobs.at[at] = c->jobs.at[at + 1];
}

stored_job *job_draft(control *c, live_job *j)
{
    if (!j->drafted) {
        if (!vec_push(&c->drafts, j))
            return NULL;
        j->draft = j->job;
        j->drafted = true;
    }
    return &j->draft;
}

void drafts_forget(control *c)
{
    for (size_t i = 0; i < c->drafts.len; i++)
        c->drafts.at[i]->drafted = false;
    c->drafts.len = 0;
}

typedef VEC(const verification_metric *) metric_list;

static bool take_metric(void *context, const verification_metric *m)
{
    metric_list *list = context;
    return vec_push(list, m);
}

void job_announce(const control *c, const live_job *j, bool known)
{
    if (!c->listener.job)
        return;
    metric_list metrics = {0};
    if (c->engine) /* else it is being rebuilt, and all of them are announced again */
        engine_metrics(c->engine,
                       (release_name){j->job.deployment, j->job.environment, j->job.resource},
                       take_metric, &metrics);
    c->listener.job(
        c->listener.context,
        &(job_order){.job = &j->job,
                     .known = known,
                     .deployment = control_object(c, KIND_DEPLOYMENT, j->job.deployment),
                     .version = version_tagged(c, j->job.deployment, j->job.version),
                     .resource = control_object(c, KIND_RESOURCE, j->job.resource),
                     .metrics = metrics.at,
                     .metric_count = metrics.len});
    vec_done(&metrics);
}

static job_kind kind_of(const control *c, const stored_job *j)
{
    const object *o = control_object(c, KIND_DEPLOYMENT, j->deployment);
    return o ? o->deployment->spec.job.kind : JOB_NONE;
}

/* ---- ends ---- */

static bool end_job(control *c, turn *t, live_job *j, const job_report *r, err *error)
{
    stored_job *draft = job_draft(c, j);
    if (!draft)
        return err_memory(error);
    draft->state = r->outcome == OUTCOME_SUCCEEDED && r->verification_failed
                       ? STR("failed")
                       : state_of_outcome[r->outcome];
    draft->reason =
        r->verification_failed && r->reason.len == 0 ? STR("the verification failed") : r->reason;
    draft->ended_ms = c->now_ms;
    draft->lease_ms = 0;
    fact f = {.kind = FACT_JOB,
              .job = {.deployment = j->job.deployment,
                      .environment = j->job.environment,
                      .resource = j->job.resource,
                      .job = j->job.number,
                      .outcome = r->outcome,
                      .reason = r->reason,
                      .verification_failed = r->verification_failed}};
    return (vec_push(&t->facts, f) && vec_push(&t->fact_who, r->who)) || err_memory(error);
}

static bool add_note(turn *t, str who, str json, err *error)
{
    return (json.ptr && vec_push(&t->notes, (turn_note){who, json})) || err_memory(error);
}

static bool start_job(control *c, turn *t, live_job *j, const job_report *r, err *error)
{
    stored_job *draft = job_draft(c, j);
    if (!draft)
        return err_memory(error);
    draft->state = STR("running");
    draft->pid = r->pid;
    draft->started_ms = c->now_ms;
    draft->lease_ms = 0;
    return add_note(t, r->who,
                    arena_printf(t->arena, "{\"audit\":\"jobStarted\",\"job\":%lld,\"pid\":%lld}",
                                 (long long)j->job.number, (long long)r->pid),
                    error);
}

static bool any_metric(void *context, const verification_metric *m)
{
    (void)m;
    *(bool *)context = true;
    return false;
}

/* What a worker or a person did is judged before it counts, if its deployment or a rule says so. */
static bool to_be_verified(const control *c, const stored_job *j, const job_report *r)
{
    job_kind kind = kind_of(c, j);
    bool any = false;
    if (!r->ended || r->outcome != OUTCOME_SUCCEEDED || str_eq(j->state, JOB_VERIFYING) ||
        (kind != JOB_PULL && kind != JOB_MANUAL))
        return false;
    const object *o = control_object(c, KIND_DEPLOYMENT, j->deployment);
    engine_metrics(c->engine, (release_name){j->deployment, j->environment, j->resource},
                   any_metric, &any);
    return any || (o && o->deployment->spec.verify);
}

static bool verify_job(control *c, turn *t, live_job *j, const job_report *r, err *error)
{
    stored_job *draft = job_draft(c, j);
    if (!draft)
        return err_memory(error);
    draft->state = JOB_VERIFYING;
    draft->lease_ms = 0;
    if (draft->started_ms == 0)
        draft->started_ms = c->now_ms;
    return add_note(t, r->who,
                    arena_printf(t->arena, "{\"audit\":\"jobVerifying\",\"job\":%lld}",
                                 (long long)j->job.number),
                    error);
}

static bool take_report(control *c, turn *t, job_report *r, err *error)
{
    live_job *j = job_find(c, r->number);
    const stored_job *now = !j ? NULL : j->drafted ? &j->draft : &j->job;
    r->ignored =
        !j || now->ended_ms != 0 || r->fencing < now->fencing ||
        (!r->ended && (str_eq(now->state, STR("running")) || str_eq(now->state, JOB_VERIFYING))) ||
        (r->ended && r->who.len > 0 && r->outcome == OUTCOME_SUCCEEDED &&
         str_eq(now->state, JOB_VERIFYING));
    if (r->ignored)
        return true;
    if (to_be_verified(c, now, r))
        return verify_job(c, t, j, r, error);
    return r->ended ? end_job(c, t, j, r, error) : start_job(c, t, j, r, error);
}

bool control_jobs(control *c, job_report *reports, size_t count, int64_t now_ms, err *error)
{
    turn t;
    if (!control_ready(c, now_ms, error) || !turn_begin(&t, STR_EMPTY, error))
        return false;
    bool good = true;
    for (size_t i = 0; good && i < count; i++)
        good = take_report(c, &t, &reports[i], error);
    if (!good)
        drafts_forget(c);
    else if (c->drafts.len > 0)
        good = turn_run(c, &t, now_ms, error);
    turn_done(&t);
    return good;
}

/* ---- claims ---- */

int64_t job_limit_ms(const object *o)
{
    int64_t seconds = o ? o->deployment->spec.timeout_seconds : TIMEOUT_SECONDS_DEFAULT;
    return seconds < INT32_MAX ? seconds * 1000 : INT64_C(1000) * INT32_MAX;
}

static int64_t time_limit_ms(const control *c, const stored_job *j)
{
    return job_limit_ms(control_object(c, KIND_DEPLOYMENT, j->deployment));
}

/* Until when a claim holds that is made or prolonged now. */
static int64_t lease_until(const control *c, const stored_job *j, int64_t lease_ms)
{
    if (lease_ms <= 0 || lease_ms > LIMIT_LEASE_MS)
        lease_ms = LIMIT_LEASE_MS;
    if (lease_ms < LIMIT_LEASE_MS_LEAST)
        lease_ms = LIMIT_LEASE_MS_LEAST;
    int64_t lease = c->now_ms + lease_ms;
    int64_t limit = j->started_ms + time_limit_ms(c, j);
    return lease < limit ? lease : limit;
}

int64_t job_expiry_next(const control *c)
{
    int64_t next = REASON_NEVER;
    for (size_t i = 0; i < c->jobs.len; i++) {
        int64_t lease = c->jobs.at[i]->job.lease_ms;
        if (lease != 0 && (next == REASON_NEVER || lease < next))
            next = lease;
    }
    return next;
}

static bool prolong(control *c, live_job *j, int64_t until, err *error)
{
    stored_job *draft = job_draft(c, j);
    if (!draft)
        return err_memory(error);
    draft->lease_ms = until;
    return true;
}

bool jobs_expire(control *c, turn *t, err *error)
{
    bool good = true;
    for (size_t i = 0; good && i < c->jobs.len; i++) {
        live_job *j = c->jobs.at[i];
        if (j->job.lease_ms == 0 || j->job.lease_ms > c->now_ms)
            continue;
        int64_t limit = j->job.started_ms + time_limit_ms(c, &j->job);
        bool late = j->job.lease_ms >= limit;
        if (!late && j->job.fencing == 0) { /* a person got more time since */
            good = prolong(c, j, limit, error);
            continue;
        }
        bool cancelled = str_eq(j->job.reason, CANCELLING);
        job_report r = {.outcome = late ? OUTCOME_FAILED : OUTCOME_LOST,
                        .reason = late        ? STR("the time limit was reached")
                                  : cancelled ? STR("cancelled, and its worker did not answer")
                                              : STR("its worker sent no heartbeat")};
        good = end_job(c, t, j, &r, error);
    }
    if (!good)
        drafts_forget(c);
    return good;
}

/* Leases that have run out are settled first, so that nothing is claimed under an old state. */
static bool settle(control *c, int64_t now_ms, err *error)
{
    return control_ready(c, now_ms, error) && control_tick(c, now_ms, error);
}

static live_job *oldest_open(const control *c, str resource_name)
{
    for (size_t i = 0; i < c->jobs.len; i++) {
        const stored_job *j = &c->jobs.at[i]->job;
        if (str_eq(j->resource, resource_name) && str_eq(j->state, STR("pending")) &&
            kind_of(c, j) == JOB_PULL)
            return c->jobs.at[i];
    }
    return NULL;
}

static bool copy_job(arena *a, stored_job *j)
{
    str *texts[] = {&j->deployment, &j->environment, &j->resource, &j->version,
                    &j->group,      &j->role,        &j->state,    &j->reason};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        *texts[i] = arena_str(a, *texts[i]);
        if (!texts[i]->ptr)
            return false;
    }
    return true;
}

bool control_claim(control *c, const claim_request *request, int64_t now_ms, claim_answer *answer,
                   err *error)
{
    answer->found = false;
    if (!settle(c, now_ms, error))
        return false;
    live_job *j = oldest_open(c, request->resource);
    if (!j)
        return true;
    turn t;
    stored_job *draft = job_draft(c, j);
    if (!draft)
        return err_memory(error);
    /* The sequence number of the claim's own entry: no other claim ever had or will have it. */
    draft->fencing = store_sequence(c->store) + 1;
    draft->state = STR("running");
    draft->started_ms = c->now_ms;
    draft->lease_ms = lease_until(c, draft, request->lease_ms);
    stored_job claimed = *draft;
    bool good = copy_job(answer->arena, &claimed) || err_memory(error);
    if (!good || !turn_begin(&t, request->who, error)) {
        drafts_forget(c);
        return false;
    }
    good =
        add_note(&t, request->who,
                 arena_printf(t.arena, "{\"audit\":\"jobClaimed\",\"job\":%lld,\"fencing\":%lld}",
                              (long long)draft->number, (long long)draft->fencing),
                 error);
    if (good)
        good = turn_run(c, &t, now_ms, error);
    else
        drafts_forget(c);
    turn_done(&t);
    if (good) {
        answer->found = true;
        answer->job = claimed;
    }
    return good;
}

bool control_heartbeat(control *c, heartbeat *beat, int64_t now_ms, err *error)
{
    beat->held = false;
    beat->cancel = false;
    if (!settle(c, now_ms, error))
        return false;
    live_job *j = job_find(c, beat->number);
    if (!j || j->job.lease_ms == 0 || j->job.fencing == 0 || j->job.fencing != beat->fencing)
        return true;
    bool cancel = str_eq(j->job.reason, CANCELLING);
    int64_t until = lease_until(c, &j->job, beat->lease_ms);
    if (!cancel && until > j->job.lease_ms) {
        stored_job prolonged = j->job;
        prolonged.lease_ms = until;
        if (!commit_begin(c, error))
            return false;
        bool good = store_put_job(c->store, &prolonged, error);
        if (good)
            j->job.lease_ms = until;
        else
            store_take_back(c->store);
        if (!commit_end(c, good, error)) /* which may have read all jobs again */
            return false;
    } else {
        until = j->job.lease_ms;
    }
    beat->held = true;
    beat->cancel = cancel;
    beat->until_ms = until;
    return true;
}

/* ---- cancel ---- */

static bool note_cancel(control *c, live_job *j, str who, err *error)
{
    turn t;
    if (!turn_begin(&t, who, error))
        return false;
    bool worker = j->job.lease_ms != 0;
    t.cancel = worker ? 0 : j->job.number;
    stored_job *draft = job_draft(c, j);
    if (draft)
        draft->reason = CANCELLING;
    bool good = (draft || err_memory(error)) &&
                add_note(&t, who,
                         arena_printf(t.arena, "{\"audit\":\"jobCancelled\",\"job\":%lld}",
                                      (long long)j->job.number),
                         error);
    if (good)
        good = turn_run(c, &t, c->now_ms, error);
    else
        drafts_forget(c);
    turn_done(&t);
    return good;
}

void jobs_cancel_again(const control *c)
{
    for (size_t i = 0; c->listener.cancel && i < c->jobs.len; i++) {
        const stored_job *j = &c->jobs.at[i]->job;
        if (str_eq(j->reason, CANCELLING) && j->lease_ms == 0)
            c->listener.cancel(c->listener.context, j->number);
    }
}

bool control_cancel(control *c, int64_t number, str who, int64_t now_ms, err *error)
{
    if (!settle(c, now_ms, error))
        return false;
    live_job *j = job_find(c, number);
    if (!j)
        return err_set(error, "there is no job %lld, or it has ended", (long long)number);
    job_kind kind = kind_of(c, &j->job);
    bool waits = str_eq(j->job.state, STR("pending"));
    bool verifying = str_eq(j->job.state, JOB_VERIFYING);
    if ((kind == JOB_MANUAL && !verifying) || (waits && (kind == JOB_PULL || kind == JOB_NONE)))
        return control_jobs(c,
                            &(job_report){.who = who,
                                          .number = number,
                                          .fencing = JOB_FENCING_ANY,
                                          .ended = true,
                                          .outcome = OUTCOME_FAILED,
                                          .reason = STR("cancelled")},
                            1, now_ms, error);
    return note_cancel(c, j, who, error);
}
