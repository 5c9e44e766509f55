/* SPDX-License-Identifier: Apache-2.0 */
/* plane.h - a control plane in virtual time over a real store, for tests.
 *
 * What the outside does is a list of events, each done once: whether one was done is read from the
 * journal, where its "who" stands, so that a run can be killed anywhere and be finished by another
 * process. Jobs take as long as their deployment's plan says, counted from when they were reported
 * as started. */
#ifndef DROVER_TESTS_SUPPORT_PLANE_H
#define DROVER_TESTS_SUPPORT_PLANE_H

#include "support/check.h"

#include <sys/mman.h>
#include <sys/wait.h>

#include "base/vec.h"
#include "server/control.h"
#include "server/journal.h"

#define PLANE_JOBS_MOST 4096
#define PLANE_PART_BYTES 4096 /* of a snapshot, so that it has several */

/* What outlives a process. */
typedef struct plane_shared {
    int64_t now_ms;
    int64_t sequence;               /* the last entry that was heard of */
    int64_t reached;                /* the last entry of the store when a process began */
    uint64_t at;                    /* the write at which it ends */
    int announced[PLANE_JOBS_MOST]; /* as new */
} plane_shared;

typedef struct plane_plan {
    const char *deployment;
    const char *resource; /* NULL: any, here and below */
    const char *version;
    int64_t attempts; /* up to this attempt; 0: all */
    int64_t ms;
    outcome outcome;
    bool bad_verification;
    bool silent; /* a worker that claims and never comes back */
} plane_plan;

struct plane;
typedef struct plane_event {
    int64_t after_ms;
    /* exactly one */
    const char *apply;
    const char *gone; /* "Kind/name" */
    const fact_act *act;
    const char *finish; /* "deployment/resource": a person reports success of a manual job */
    const char *token;  /* a viewer's, that is made */
    const char *revoke; /* a token that is revoked */
} plane_event;

typedef struct plane {
    const char *folder;
    store *store;
    control *control;
    plane_shared *shared;
    const plane_event *events;
    size_t event_count;
    const plane_plan *plans;
    size_t plan_count;
    int64_t start_ms;
    bool sync;
    int64_t snapshot_entries;
    bool snapshots_beside;
    bool share;    /* all that happens at the same time is one commit, as in drover serve */
    uint64_t done; /* bits of the events that were done */
    size_t steps;
    int64_t last_sequence; /* told by the listener */
    int64_t cancelled;     /* the job that it was last told to end */
} plane;

static inline plane_shared *plane_share(void)
{
    plane_shared *s =
        mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(s != MAP_FAILED);
    return s;
}

static inline void plane_hear_job(void *context, const job_order *order)
{
    plane *p = context;
    check_msg(order->job->number < PLANE_JOBS_MOST, "too many jobs");
    if (!order->known)
        p->shared->announced[order->job->number]++;
    check_msg(p->shared->announced[order->job->number] <= 1, "job %lld is announced as new twice",
              (long long)order->job->number);
}

static inline void plane_hear_entry(void *context, const journal_entry *e)
{
    plane *p = context;
    check_msg(e->sequence == p->last_sequence + 1, "entry %lld follows %lld",
              (long long)e->sequence, (long long)p->last_sequence);
    p->last_sequence = e->sequence;
    p->shared->sequence = e->sequence;
}

static inline void plane_hear_cancel(void *context, int64_t number)
{
    plane *p = context;
    p->cancelled = number;
}

static inline bool plane_see_done(void *context, const journal_entry *e)
{
    plane *p = context;
    str who = e->who;
    if (str_starts(who, STR("event-")))
        p->done |= UINT64_C(1) << strtoul(who.ptr + 6, NULL, 10);
    return true;
}

static inline void plane_open(plane *p)
{
    err error;
    p->store = store_open(str_of(p->folder), &error);
    check_msg(p->store, "%s", error.text);
    assert_true(store_set_sync(p->store, p->sync, &error));
    p->last_sequence = store_sequence(p->store);
    if (p->shared->now_ms == 0)
        p->shared->now_ms = p->start_ms;
    p->done = 0;
    assert_true(store_journal(p->store, 0, plane_see_done, p, &error));
    control_listener listener = {.context = p,
                                 .job = plane_hear_job,
                                 .cancel = plane_hear_cancel,
                                 .journal = plane_hear_entry};
    p->control = control_open(p->store,
                              &(control_settings){.snapshot_entries = p->snapshot_entries,
                                                  .share_commits = p->share,
                                                  .snapshots_beside = p->snapshots_beside,
                                                  .snapshot_part_bytes = PLANE_PART_BYTES},
                              &listener, p->shared->now_ms, &error);
    check_msg(p->control, "%s", error.text);
}

static inline void plane_close(plane *p)
{
    p->control = control_close(p->control);
    p->store = store_close(p->store);
}

static inline bool plane_apply(plane *p, const char *who, const char *text, err *error)
{
    apply_answer answer = {.arena = arena_new(0), .found = problems_new()};
    apply_request request = {
        .who = str_of(who), .file = STR("test"), .bytes = str_of(text), .expected = APPLY_ANY};
    bool good = answer.arena && answer.found &&
                control_apply(p->control, &request, p->shared->now_ms, &answer, error);
    for (size_t i = 0; answer.found && i < problems_count(answer.found); i++) {
        buf line = BUF(2000);
        problem_text(problems_at(answer.found, i), &line);
        if (problems_at(answer.found, i)->severity == SEVERITY_ERROR)
            print_error("%.*s\n", STR_ARG(buf_str(&line)));
        buf_done(&line);
    }
    problems_free(answer.found);
    arena_free(answer.arena);
    return good;
}

/* ---- jobs ---- */

typedef struct plane_open_jobs {
    arena *arena;
    VEC(stored_job) list;
} plane_open_jobs;

static inline bool plane_see_job(void *context, const stored_job *j)
{
    plane_open_jobs *open = context;
    stored_job copy = *j;
    copy.deployment = arena_str(open->arena, j->deployment);
    copy.resource = arena_str(open->arena, j->resource);
    copy.environment = arena_str(open->arena, j->environment);
    copy.version = arena_str(open->arena, j->version);
    copy.state = arena_str(open->arena, j->state);
    return vec_push(&open->list, copy);
}

static inline const plane_plan *plane_plan_of(const plane *p, const stored_job *j)
{
    static const plane_plan otherwise = {.ms = 1000, .outcome = OUTCOME_SUCCEEDED};
    for (size_t i = 0; i < p->plan_count; i++) {
        const plane_plan *plan = &p->plans[i];
        if (str_eq(j->deployment, str_of(plan->deployment)) &&
            (!plan->resource || str_eq(j->resource, str_of(plan->resource))) &&
            (!plan->version || str_eq(j->version, str_of(plan->version))) &&
            (plan->attempts == 0 || j->attempt <= plan->attempts))
            return plan;
    }
    return &otherwise;
}

static inline job_kind plane_kind(const plane *p, const stored_job *j)
{
    const object *o = control_object(p->control, KIND_DEPLOYMENT, j->deployment);
    return o ? o->deployment->spec.job.kind : JOB_NONE;
}

/* Does what is due for one job; *ret_next is when something is due. False: the store refused. */
static inline bool plane_work_on(plane *p, const stored_job *j, bool *ret_did, int64_t *ret_next)
{
    err error;
    const plane_plan *plan = plane_plan_of(p, j);
    int64_t now = p->shared->now_ms;
    bool waits = str_eq(j->state, STR("pending"));
    job_kind kind = plane_kind(p, j);
    if (str_eq(j->state, STR("verifying"))) { /* its command takes no time */
        job_report verified = {.number = j->number,
                               .fencing = JOB_FENCING_ANY,
                               .ended = true,
                               .outcome = OUTCOME_SUCCEEDED};
        *ret_did = true;
        return control_jobs(p->control, &verified, 1, now, &error);
    }
    if (kind == JOB_MANUAL)
        return true;
    if (waits && kind == JOB_PULL) {
        claim_answer answer = {.arena = arena_new(0)};
        bool good = control_claim(p->control, &(claim_request){.resource = j->resource}, now,
                                  &answer, &error);
        *ret_did = answer.found;
        arena_free(answer.arena);
        return good;
    }
    job_report report = {.number = j->number, .fencing = JOB_FENCING_ANY, .pid = 1};
    if (!waits) {
        if (plan->silent)
            return true;
        int64_t end = j->started_ms + plan->ms;
        if (end > now) {
            *ret_next = *ret_next == REASON_NEVER || end < *ret_next ? end : *ret_next;
            return true;
        }
        report.fencing = j->fencing;
        report.ended = true;
        report.outcome = plan->outcome;
        report.verification_failed = plan->bad_verification;
    }
    *ret_did = true;
    return control_jobs(p->control, &report, 1, now, &error);
}

static inline bool plane_work(plane *p, bool *ret_did, int64_t *ret_next)
{
    plane_open_jobs open = {.arena = arena_new(0)};
    err error;
    bool good = store_jobs(p->store, (job_range){0, true}, plane_see_job, &open, &error);
    for (size_t i = open.list.len; good && i-- > 0 && !*ret_did;)
        good = plane_work_on(p, &open.list.at[i], ret_did, ret_next);
    vec_done(&open.list);
    arena_free(open.arena);
    return good;
}

/* ---- events ---- */

static inline bool plane_finish(plane *p, const char *who, str what, err *error)
{
    str deployment_name = str_cut(&what, '/');
    plane_open_jobs open = {.arena = arena_new(0)};
    bool good = store_jobs(p->store, (job_range){0, true}, plane_see_job, &open, error),
         found = false;
    for (size_t i = 0; good && i < open.list.len; i++) {
        const stored_job *j = &open.list.at[i];
        if (found || !str_eq(j->deployment, deployment_name) || !str_eq(j->resource, what))
            continue;
        found = true;
        job_report r = {.who = str_of(who),
                        .number = j->number,
                        .fencing = JOB_FENCING_ANY,
                        .ended = true,
                        .outcome = OUTCOME_SUCCEEDED};
        good = control_jobs(p->control, &r, 1, p->shared->now_ms, error);
    }
    check_msg(!good || found, "%s: there is no such job", who);
    vec_done(&open.list);
    arena_free(open.arena);
    return good;
}

static inline bool plane_token(plane *p, const char *who, const plane_event *e, err *error)
{
    char entry[128];
    stored_token made = {.name = str_of(e->token ? e->token : ""),
                         .role = STR("viewer"),
                         .created_ms = p->shared->now_ms};
    snprintf(entry, sizeof entry, "{\"audit\":\"%s\",\"token\":\"%s\"}",
             e->token ? "tokenCreated" : "tokenRevoked", e->token ? e->token : e->revoke);
    memcpy(made.hash, made.name.ptr, made.name.len);
    token_change change = {.who = str_of(who),
                           .json = str_of(entry),
                           .made = e->token ? &made : NULL,
                           .revoked = str_of(e->revoke ? e->revoke : "")};
    return control_token(p->control, &change, p->shared->now_ms, error);
}

static inline bool plane_do_event(plane *p, size_t at, err *error)
{
    const plane_event *e = &p->events[at];
    char who[32];
    snprintf(who, sizeof who, "event-%zu", at);
    if (e->apply)
        return plane_apply(p, who, e->apply, error);
    if (e->finish)
        return plane_finish(p, who, str_of(e->finish), error);
    if (e->token || e->revoke)
        return plane_token(p, who, e, error);
    if (e->gone) {
        str name = str_of(e->gone), kind = str_cut(&name, '/');
        delete_answer answer;
        return control_delete(
            p->control,
            &(delete_request){
                .who = str_of(who), .kind = kind, .name = name, .expected = APPLY_ANY},
            p->shared->now_ms, &answer, error);
    }
    fact_act act = *e->act;
    act.who = str_of(who);
    return control_act(p->control, &act, p->shared->now_ms, error);
}

/* One thing, or a step in time. False at the end; *ret_error says that something was refused. */
static inline bool plane_step(plane *p, err *ret_error)
{
    bool did = false;
    int64_t next = REASON_NEVER;
    ret_error->text[0] = 0;
    for (size_t i = 0; i < p->event_count; i++) {
        int64_t due = p->start_ms + p->events[i].after_ms;
        if ((p->done >> i & 1u) != 0)
            continue;
        if (due > p->shared->now_ms) {
            next = next == REASON_NEVER || due < next ? due : next;
            continue;
        }
        if (plane_do_event(p, i, ret_error))
            p->done |= UINT64_C(1) << i;
        return true;
    }
    if (!plane_work(p, &did, &next))
        snprintf(ret_error->text, sizeof ret_error->text, "a job's report was refused");
    if (did || ret_error->text[0])
        return true;
    if (control_unsettled(p->control)) {
        control_settle(p->control, ret_error);
        return true;
    }
    int64_t due = control_next_ms(p->control);
    if (due != REASON_NEVER && due <= p->shared->now_ms) {
        control_tick(p->control, p->shared->now_ms, ret_error);
        return true;
    }
    if (due != REASON_NEVER && (next == REASON_NEVER || due < next))
        next = due;
    if (next == REASON_NEVER || next > p->start_ms + INT64_C(86400000))
        return false;
    p->shared->now_ms = next;
    return true;
}

/* To the end; refusals are tolerated so often. */
static inline void plane_run(plane *p, int refusals)
{
    err error;
    while (plane_step(p, &error)) {
        check_msg(p->steps++ < 100000, "no end");
        if (error.text[0] != 0)
            check_msg(refusals-- > 0, "%s", error.text);
    }
}

/* ---- what came of it ---- */

static inline bool plane_add_job(void *context, const stored_job *j)
{
    buf_addf(context, "job %lld %.*s/%.*s/%.*s %.*s attempt %lld %.*s %lld..%lld\n",
             (long long)j->number, STR_ARG(j->deployment), STR_ARG(j->environment),
             STR_ARG(j->resource), STR_ARG(j->version), (long long)j->attempt, STR_ARG(j->state),
             (long long)j->started_ms, (long long)j->ended_ms);
    return true;
}

static inline bool plane_add_entry(void *context, const journal_entry *e)
{
    if (str_eq(e->kind, STR("decision")))
        buf_addf(context, "%lld %.*s\n", (long long)e->at_ms, STR_ARG(e->json));
    return true;
}

static inline bool plane_add_document(void *context, const stored_document *d)
{
    buf_addf(context, "%.*s/%.*s %.*s\n", STR_ARG(d->kind), STR_ARG(d->name), STR_ARG(d->json));
    return true;
}

static inline bool plane_add_token(void *context, const stored_token *t)
{
    buf_addf(context, "token %.*s %.*s %lld..%lld\n", STR_ARG(t->name), STR_ARG(t->role),
             (long long)t->created_ms, (long long)t->revoked_ms);
    return true;
}

static inline bool plane_add_note(void *context, const journal_entry *e)
{
    if (str_eq(e->kind, STR("audit")))
        buf_addf(context, "%.*s: %.*s\n", STR_ARG(e->who), STR_ARG(e->json));
    return true;
}

/* The engine without the numbers of its placements: they are given out in the order in which the
 * documents came, which for an engine that was rebuilt is that of their names. Nobody outside of
 * the process knows them. */
static inline void plane_add_engine(const plane *p, buf *out)
{
    static const str mark = {"\"id\":", 5};
    buf text = BUF(LIMIT_TEXT_BYTES);
    assert_true(engine_save(control_engine(p->control), &text));
    str rest = buf_str(&text);
    for (size_t at; (at = str_find(rest, mark)) != SIZE_MAX;) {
        buf_add(out, str_part(rest, 0, at));
        rest = str_part(rest, at, rest.len);
        str_cut(&rest, ',');
    }
    buf_add(out, rest);
    buf_done(&text);
}

/* Everything that must not depend on who was killed when. */
static inline buf plane_state(const plane *p)
{
    err error;
    buf out = BUF(LIMIT_TEXT_BYTES);
    plane_add_engine(p, &out);
    assert_true(store_documents(p->store, (document_key){0}, plane_add_document, &out, &error));
    assert_true(store_jobs(p->store, (job_range){0, false}, plane_add_job, &out, &error));
    assert_true(store_journal(p->store, 0, plane_add_entry, &out, &error));
    assert_true(store_tokens(p->store, plane_add_token, &out, &error));
    assert_true(store_journal(p->store, 0, plane_add_note, &out, &error));
    assert_false(out.failed);
    return out;
}

#endif
