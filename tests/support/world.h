/* SPDX-License-Identifier: Apache-2.0 */
/* world.h - release targets in virtual time, for tests: documents go in as text, jobs take as long
 * as the test says and end as it says, and every job is written down.
 *
 * Every step is followed by engine_check and engine_full. */
#ifndef DROVER_TESTS_SUPPORT_WORLD_H
#define DROVER_TESTS_SUPPORT_WORLD_H

#include "support/check.h"

#include "base/moment.h"
#include "base/vec.h"
#include "engine/engine.h"
#include "support/documents.h"

#define MINUTE 60
#define HOUR 3600
#define DAY 86400

#define EVEN_BACK (-2)

typedef struct world_job {
    char deployment[64], environment[64], resource[64], version[64], group[160];
    job_role role;
    int64_t number, start, end; /* seconds; end is planned until it has ended */
    bool retry, ended, failed;
} world_job;

/* How the jobs of a deployment (on a resource, if given) go. The last plan that fits is used. */
typedef struct world_plan {
    const char *deployment, *resource; /* NULL: any */
    int64_t seconds;
    int fail; /* so many times; -1: always, EVEN_BACK: also what goes back */
    bool bad_verification, lost;
} world_plan;

typedef struct world {
    engine *engine;
    VEC(loaded) texts;
    VEC(char *) copies;
    VEC(world_job) jobs;
    VEC(world_plan) plans;
    VEC(char *) trace; /* "SECONDS group NAME STATE" */
    decision_list out;
    int64_t now; /* seconds */
    int64_t starts, peak_running;
    bool quiet; /* no full evaluation after each step */
    uint64_t steps;
    /* Called before and after every step. */
    void (*before)(struct world *w, const fact *facts, size_t count);
    void (*after)(struct world *w);
} world;

static inline int64_t at_time(const char *text)
{
    moment m;
    err error;
    check_msg(moment_parse(str_of(text), &m, &error), "%s: %s", text, error.text);
    return m.seconds;
}

static inline const char *time_at(int64_t seconds)
{
    static char text[MOMENT_TEXT_BYTES];
    size_t n = moment_format((moment){seconds, 0}, text);
    text[n] = 0;
    return text;
}

static inline void world_open(world *w, const char *start)
{
    err error;
    *w = (world){.now = at_time(start)};
    engine_settings settings = {.start_ms = w->now * 1000};
    w->engine = engine_new(&settings, &error);
    assert_non_null(w->engine);
}

static inline void world_close(world *w)
{
    engine_free(w->engine);
    for (size_t i = 0; i < w->texts.len; i++)
        loaded_free(&w->texts.at[i]);
    for (size_t i = 0; i < w->copies.len; i++)
        mem_free(w->copies.at[i]);
    for (size_t i = 0; i < w->trace.len; i++)
        mem_free(w->trace.at[i]);
    vec_done(&w->texts);
    vec_done(&w->copies);
    vec_done(&w->trace);
    vec_done(&w->jobs);
    vec_done(&w->plans);
    vec_done(&w->out);
}

static inline void keep(char *to, size_t size, str from)
{
    size_t n = from.len < size - 1 ? from.len : size - 1;
    memcpy(to, from.ptr, n);
    to[n] = 0;
}

static inline const world_plan *plan_for(world *w, const char *change, const char *target)
{
    for (size_t i = w->plans.len; i-- > 0;) {
        const world_plan *p = &w->plans.at[i];
        if ((!p->deployment || strcmp(p->deployment, change) == 0) &&
            (!p->resource || strcmp(p->resource, target) == 0))
            return p;
    }
    static const world_plan usual = {.seconds = 60};
    return &usual;
}

static inline void world_note(world *w, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static inline void world_note(world *w, const char *format, ...)
{
    char *line = mem_alloc(512);
    int n = snprintf(line, 512, "%s ", time_at(w->now) + 8);
    va_list args;
    va_start(args, format);
    vsnprintf(line + n, (size_t)(512 - n), format, args);
    va_end(args);
    assert_true(vec_push(&w->trace, line));
}

static inline void world_take_decisions(world *w)
{
    for (size_t i = 0; i < w->out.len; i++) {
        const decision *d = &w->out.at[i];
        if (d->kind == DECISION_GROUP)
            world_note(w, "%.*s %.*s", STR_ARG(d->group), STR_ARG(d->state));
        if (d->kind == DECISION_SLOT)
            world_note(w, "slot %.*s %.*s %s %lld", STR_ARG(d->group), STR_ARG(d->target),
                       d->taken ? "taken" : "free", (long long)d->size);
        if (d->kind == DECISION_HALT)
            world_note(w, "halt %.*s", STR_ARG(d->group));
        if (d->kind != DECISION_JOB)
            continue;
        world_job j = {.role = d->role, .number = d->number, .start = w->now, .retry = d->retry};
        keep(j.deployment, sizeof j.deployment, d->change);
        keep(j.environment, sizeof j.environment, d->environment);
        keep(j.resource, sizeof j.resource, d->target);
        keep(j.version, sizeof j.version, d->version);
        keep(j.group, sizeof j.group, d->group);
        j.end = w->now + plan_for(w, j.deployment, j.resource)->seconds;
        assert_true(vec_push(&w->jobs, j));
        w->starts++;
    }
    int64_t running = 0;
    for (size_t i = 0; i < w->jobs.len; i++)
        running += !w->jobs.at[i].ended;
    w->peak_running = running > w->peak_running ? running : w->peak_running;
}

/* TRACE=1 shows what is decided. */
static inline void world_show(const world *w)
{
    static const char *const kinds[] = {
#define X(kind, text) [DECISION_##kind] = text,
        DECISION_KINDS(X)
#undef X
    };
    for (size_t i = 0; getenv("TRACE") && i < w->out.len; i++) {
        const decision *d = &w->out.at[i];
        fprintf(stderr, "%s %s %.*s %.*s %.*s %.*s %.*s %.*s %lld role %d\n", time_at(w->now),
                kinds[d->kind], STR_ARG(d->change), STR_ARG(d->target), STR_ARG(d->environment),
                STR_ARG(d->version), STR_ARG(d->group), STR_ARG(d->state), (long long)d->number,
                (int)d->role);
    }
}

/* Steps until a step starts nothing. */
static inline void world_step(world *w, const fact *facts, size_t count)
{
    err error;
    for (int round = 0; round < 100; round++) {
        w->out.len = 0;
        if (w->before)
            w->before(w, facts, count);
        check_msg(engine_step(w->engine, facts, count, w->now * 1000, &w->out), "%s", error.text);
        w->steps++;
        size_t started = w->jobs.len;
        world_take_decisions(w);
        world_show(w);
        if (!w->quiet) {
            check_msg(engine_check(w->engine, &error), "at %s: %s", time_at(w->now), error.text);
            check_msg(engine_full(w->engine, &error), "at %s: %s", time_at(w->now), error.text);
        }
        if (w->after)
            w->after(w);
        if (w->jobs.len == started)
            return;
        count = 0;
    }
    fail_msg("a hundred steps and still something to start");
}

/* Documents, all in one step. */
static inline void world_apply(world *w, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static inline void world_apply(world *w, const char *format, ...)
{
    char *text = NULL, *copy;
    va_list args;
    va_start(args, format);
    int length = vasprintf(&copy, format, args);
    va_end(args);
    assert_true(length >= 0);
    text = mem_alloc((size_t)length + 1);
    memcpy(text, copy, (size_t)length + 1);
    free(copy);
    assert_true(vec_push(&w->copies, text));
    loaded l = load_text("world.yaml", str_of(text));
    if (!l.good) {
        buf found = problems_as_text(l.found);
        print_error("%.*s", STR_ARG(buf_str(&found)));
        buf_done(&found);
        fail();
    }
    assert_true(vec_push(&w->texts, l));
    VEC(fact) facts = {0};
    for (size_t i = 0; i < l.objects->len; i++) {
        const object *o = &l.objects->at[i];
        fact f = {.kind = FACT_DOCUMENT, .document = o};
        if (o->kind == KIND_RESOURCE)
            f = (fact){
                .kind = FACT_TARGET,
                .target = {.kind = TARGET_RESOURCE, .name = o->metadata->name, .document = o}};
        assert_true(vec_push(&facts, f));
    }
    world_step(w, facts.at, facts.len);
    vec_done(&facts);
}

static inline void world_delete(world *w, object_kind kind, const char *name)
{
    metadata m = {.name = str_of(name)};
    object o = {.kind = kind, .metadata = &m};
    fact f = {.kind = FACT_DOCUMENT_GONE, .document = &o};
    if (kind == KIND_RESOURCE)
        f = (fact){.kind = FACT_TARGET_GONE, .target = {.kind = TARGET_RESOURCE, .name = m.name}};
    world_step(w, &f, 1);
    for (size_t i = 0; kind == KIND_RESOURCE && i < w->jobs.len; i++)
        if (strcmp(w->jobs.at[i].resource, name) == 0)
            w->jobs.at[i].ended = true;
}

static inline void world_act(world *w, fact_act act)
{
    fact f = {.kind = FACT_ACT, .act = act};
    world_step(w, &f, 1);
}

static inline fact job_answer(world *w, world_job *j)
{
    world_plan *p = (world_plan *)(uintptr_t)plan_for(w, j->deployment, j->resource);
    bool failing = p->fail != 0 && (j->role != ROLE_ROLLBACK || p->fail == EVEN_BACK);
    if (failing && p->fail > 0)
        p->fail--;
    j->ended = true;
    j->failed = failing;
    bool verifying = failing && p->bad_verification;
    outcome how = !failing || verifying ? OUTCOME_SUCCEEDED
                  : p->lost             ? OUTCOME_LOST
                                        : OUTCOME_FAILED;
    return (fact){.kind = FACT_JOB,
                  .job = {.deployment = str_of(j->deployment),
                          .environment = str_of(j->environment),
                          .resource = str_of(j->resource),
                          .job = j->number,
                          .outcome = how,
                          .verification_failed = verifying}};
}

/* The next moment at which something happens; INT64_MAX if never. */
static inline int64_t world_next(world *w)
{
    int64_t next = INT64_MAX;
    for (size_t i = 0; i < w->jobs.len; i++)
        if (!w->jobs.at[i].ended && w->jobs.at[i].end < next)
            next = w->jobs.at[i].end;
    int64_t wake = engine_next_ms(w->engine);
    if (wake != REASON_NEVER) {
        int64_t seconds = wake <= w->now * 1000 ? w->now : (wake + 999) / 1000;
        next = seconds < next ? seconds : next;
    }
    return next;
}

/* Lets time go on until the given moment, or until nothing happens any more. */
static inline void world_until(world *w, int64_t until)
{
    for (uint64_t guard = 0; guard < 10000000; guard++) {
        int64_t next = world_next(w);
        if (next > until || next == INT64_MAX)
            break;
        w->now = next > w->now ? next : w->now;
        VEC(fact) facts = {0};
        for (size_t i = 0; i < w->jobs.len; i++)
            if (!w->jobs.at[i].ended && w->jobs.at[i].end <= w->now)
                assert_true(vec_push(&facts, job_answer(w, &w->jobs.at[i])));
        world_step(w, facts.at, facts.len);
        vec_done(&facts);
    }
    if (until != INT64_MAX && until > w->now)
        w->now = until;
}

static inline void world_at(world *w, const char *when)
{
    world_until(w, at_time(when));
    world_step(w, NULL, 0);
}

/* The nth job (from 0) of a deployment on a resource; NULL if there is none. */
static inline const world_job *job_of(const world *w, const char *change, const char *target,
                                      size_t nth)
{
    for (size_t i = 0; i < w->jobs.len; i++)
        if (strcmp(w->jobs.at[i].deployment, change) == 0 &&
            (!target || strcmp(w->jobs.at[i].resource, target) == 0) && nth-- == 0)
            return &w->jobs.at[i];
    return NULL;
}

static inline size_t jobs_count(const world *w, const char *change, const char *target)
{
    size_t n = 0;
    while (job_of(w, change, target, n))
        n++;
    return n;
}

#define check_time(seconds, text)                                                                  \
    do {                                                                                           \
        if ((seconds) != at_time(text)) {                                                          \
            print_error("found %s, expected %s\n", time_at(seconds), text);                        \
            _fail(__FILE__, __LINE__);                                                             \
        }                                                                                          \
    } while (0)

typedef struct placement_search {
    const char *deployment, *resource;
    placement_view found;
} placement_search;

static inline bool search_placement(void *context, const placement_view *view)
{
    placement_search *s = context;
    if (str_eq(view->change, str_of(s->deployment)) && str_eq(view->target, str_of(s->resource))) {
        s->found = *view;
        return false;
    }
    return true;
}

static inline placement_view view_at(const world *w, const char *change, const char *target)
{
    placement_search s = {.deployment = change, .resource = target};
    engine_placements(w->engine, search_placement, &s);
    check_msg(s.found.id != 0, "no placement of %s on %s", change, target);
    return s.found;
}

/* "rule(scope)->act:of next; ..." of a placement. */
static inline str reasons_at(const world *w, arena *a, const char *change, const char *target)
{
    reasons list = {0};
    assert_true(engine_reasons(w->engine, view_at(w, change, target).id, a, &list));
    buf out = BUF(1 << 20);
    for (size_t i = 0; i < list.len; i++) {
        const reason *why = &list.at[i];
        buf_addf(&out, "%s%.*s:%.*s", i ? "; " : "", STR_ARG(reason_rule_name(why->rule)),
                 STR_ARG(release_act_name(why->act)));
        for (size_t k = 0; k < why->of_count; k++)
            buf_addf(&out, "%c%.*s", k ? ',' : ' ', STR_ARG(why->of[k]));
        if (why->next_ms != REASON_NEVER)
            buf_addf(&out, " @%s", time_at(why->next_ms / 1000) + 8);
    }
    str text = arena_str(a, buf_str(&out));
    buf_done(&out);
    return text;
}

#endif
