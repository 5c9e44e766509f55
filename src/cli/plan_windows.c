/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/plan_windows.h"

#include "cli/command.h"
#include "engine/window.h"

/* The windows of all policies in force, one by one; false ends the walk. */
typedef bool window_walk(void *context, const deployment_window *w);

static void each_window(const plan *p, window_walk *walk, void *context)
{
    for (size_t i = 0; i < sim_documents(p->sim); i++) {
        const object *o = sim_document(p->sim, i);
        if (o->kind != KIND_ROLLOUT_POLICY || !o->rollout_policy->spec.enabled)
            continue;
        for (size_t r = 0; r < o->rollout_policy->spec.rules.len; r++) {
            const rule *one = &o->rollout_policy->spec.rules.at[r];
            if (one->kind == RULE_DEPLOYMENT_WINDOW && !walk(context, one->deployment_window))
                return;
        }
    }
}

static bool found_one(void *context, const deployment_window *w)
{
    (void)w;
    *(bool *)context = true;
    return false;
}

bool plan_has_windows(const plan *p)
{
    bool found = false;
    each_window(p, found_one, &found);
    return found;
}

typedef struct drawing {
    const plan *plan;
    plan_window_visitor *visit;
    void *context;
} drawing;

static void draw_span(void *context, int64_t from_ms, int64_t to_ms)
{
    const drawing *d = context;
    int64_t start_ms = sim_start_ms(d->plan->sim);
    d->visit(d->context, from_ms - start_ms, to_ms - start_ms);
}

static bool draw_window(void *context, const deployment_window *w)
{
    drawing *d = context;
    int64_t start_ms = sim_start_ms(d->plan->sim);
    return window_open_spans(w, start_ms, start_ms + d->plan->seconds * 1000, draw_span, d);
}

void plan_windows(const plan *p, plan_window_visitor *visit, void *context)
{
    drawing d = {p, visit, context};
    each_window(p, draw_window, &d);
}

/* ---- whether they are kept ---- */

typedef struct span_test {
    int64_t from_ms, to_ms; /* of a job */
    int64_t open_ms;        /* how much of it is inside the window */
} span_test;

static void measure(void *context, int64_t from_ms, int64_t to_ms)
{
    span_test *t = context;
    t->open_ms += to_ms - from_ms;
}

typedef struct testing {
    const plan *plan;
    const ledger_job *job;
    bool kept;
} testing;

static bool test_window(void *context, const deployment_window *w)
{
    testing *t = context;
    int64_t start_ms = sim_start_ms(t->plan->sim);
    int64_t end_ms = t->job->end_ms == LEDGER_OPEN ? t->plan->seconds * 1000 : t->job->end_ms;
    span_test s = {.from_ms = start_ms + t->job->start_ms, .to_ms = start_ms + end_ms};
    if (!window_open_spans(w, s.from_ms, s.to_ms, measure, &s))
        return false;
    t->kept = t->kept && s.open_ms >= s.to_ms - s.from_ms;
    return t->kept;
}

bool plan_windows_kept(const plan *p)
{
    const ledger *l = sim_ledger(p->sim);
    for (size_t i = 0; i < l->jobs.len; i++) {
        testing t = {p, &l->jobs.at[i], true};
        each_window(p, test_window, &t);
        if (t.kept)
            continue;
        fail("check window: %.*s on %.*s runs outside a deployment window, from %llds on",
             STR_ARG(names_text(l->names, t.job->deployment)),
             STR_ARG(sim_herd(p->sim)->targets.at[t.job->resource].name),
             (long long)(t.job->start_ms / 1000));
        return false;
    }
    return true;
}
