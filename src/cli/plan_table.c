/* SPDX-License-Identifier: Apache-2.0 */
#include "base/limits.h"
#include "cli/output.h"
#include "cli/plan_show.h"

#define SPARK_COLUMNS 60
#define WAITING_SHOWN 12
#define BATCHES_SHOWN 12

static const char *const group_kinds[] = {
#define X(kind, text) text,
    GROUP_KINDS(X)
#undef X
};

static void head(const plan *p, FILE *to)
{
    char span[PLAN_SPAN_BYTES];
    buf line = BUF(LIMIT_TEXT_BYTES);
    static const ink inks[] = {[SIM_RUNNING] = INK_YELLOW,
                               [SIM_COMPLETE] = INK_GREEN,
                               [SIM_STOPPED] = INK_RED,
                               [SIM_STALLED] = INK_RED,
                               [SIM_HORIZON] = INK_YELLOW};
    output_ink(to, inks[p->outcome], str_of(sim_outcome_text(p->outcome)));
    buf_addf(&line, " after %s", plan_span(p->seconds, span));
    if (p->reason.len > 0) {
        buf_addz(&line, ": ");
        buf_add(&line, p->reason);
    }
    buf wrapped = BUF(LIMIT_TEXT_BYTES);
    output_wrap(&wrapped, buf_str(&line), strlen(sim_outcome_text(p->outcome)), 2);
    if (wrapped.len > 0 && wrapped.ptr[0] != ' ')
        output_text(to, STR(" "));
    buf_addc(&wrapped, '\n');
    buf_done(&line);
    output_buf(to, &wrapped);
    str assumption = plan_assumption(p);
    if (assumption.len > 0)
        fprintf(to, "assumes %.*s\n", STR_ARG(assumption));
    const ledger *l = sim_ledger(p->sim);
    fprintf(to, "%lld target%s: %lld done, %lld failed, %lld excluded; %lld start%s, %lld drain%s",
            (long long)p->counts.targets, plan_s(p->counts.targets), (long long)p->counts.done,
            (long long)p->counts.failed, (long long)p->counts.excluded, (long long)l->starts,
            plan_s(l->starts), (long long)p->drains, plan_s(p->drains));
    if (p->drains_saved > 0)
        fprintf(to, " instead of %lld", (long long)(p->drains + p->drains_saved));
    fputs("\n", to);
}

/* One character a part of the run: how many were in flight at most. */
static void sparkline(const plan *p, FILE *to)
{
    static const char *const bars[] = {"\u2581", "\u2582", "\u2583", "\u2584",
                                       "\u2585", "\u2586", "\u2587", "\u2588"};
    int64_t curve[SPARK_COLUMNS];
    int64_t peak = sim_ledger(p->sim)->peak_in_flight;
    if (peak == 0)
        return;
    plan_curve(p, SPARK_COLUMNS, curve);
    char span[PLAN_SPAN_BYTES], share[PLAN_SHARE_BYTES];
    fputs("\nin flight  ", to);
    for (size_t i = 0; i < SPARK_COLUMNS; i++) {
        int64_t level = (curve[i] * 8 + peak - 1) / peak;
        fputs(level == 0 ? " " : bars[level - 1], to);
    }
    fprintf(to, "  peak %lld", (long long)peak);
    if (p->counts.targets > 0)
        fprintf(to, " (%s)", plan_share(p, share));
    fprintf(to, "\n           0s%*s\n", SPARK_COLUMNS - 2, plan_span(p->seconds, span));
}

/* "1,2,4(1),8 ...": sizes, failures in brackets. */
static str batches_text(const plan *p, const plan_group *g)
{
    str text = STR("-");
    size_t count = g->batches ? g->batches->batches.len : 0;
    for (size_t i = 0; i < count; i++) {
        const ledger_batch *b = &g->batches->batches.at[i];
        if (i == BATCHES_SHOWN && count > BATCHES_SHOWN + 1)
            return arena_printf(p->arena, "%.*s and %zu more", STR_ARG(text), count - i);
        int64_t bad = b->erroring + b->blocked;
        str size = arena_printf(p->arena, bad > 0 ? "%lld(%lld)" : "%lld", (long long)b->size,
                                (long long)bad);
        text = i == 0 ? size : arena_printf(p->arena, "%.*s,%.*s", STR_ARG(text), STR_ARG(size));
    }
    return text;
}

static str end_text(const plan *p, const plan_group *g)
{
    char span[PLAN_SPAN_BYTES];
    size_t count = g->batches ? g->batches->batches.len : 0;
    if (count == 0)
        return STR("-");
    const ledger_batch *last = &g->batches->batches.at[count - 1];
    if (last->end_ms == LEDGER_OPEN)
        return STR("open");
    return arena_str(p->arena, str_of(plan_span(last->end_ms / 1000, span)));
}

static void group_row(const plan *p, const plan_change *c, const plan_group *g, table *t)
{
    table_cell(t, g->shared ? STR("-") : c->name);
    table_cell(t, g->view.name);
    table_cell(t, str_of(group_kinds[g->view.kind]));
    table_cellf(t, "%lld", (long long)g->view.matched);
    table_cellf(t, "%lld", (long long)g->view.limit);
    switch (g->view.kind) {
    case GROUP_COMPARTMENT:
        table_cell(t, g->view.strategy);
        table_cell(t, batches_text(p, g));
        table_cell(t, g->stopped ? STR("stopped") : end_text(p, g));
        break;
    case GROUP_PARTITION:
        table_cell(t, STR("-"));
        table_cellf(t, "%lld unavailable", (long long)g->view.unavailable);
        table_cell(t, g->view.ready ? STR("ready") : STR("not ready"));
        break;
    case GROUP_CONCURRENCY:
        table_cell(t, STR("-"));
        table_cellf(t, "peak %lld", (long long)g->view.peak);
        table_cell(t, STR("-"));
        break;
    }
}

static bool groups(const plan *p, FILE *to)
{
    static const column columns[] = {
        {.title = "CHANGE", .shrink = true},
        {.title = "GROUP", .shrink = true},
        {.title = "KIND"},
        {.title = "TARGETS", .right = true},
        {.title = "LIMIT", .right = true},
        {.title = "STRATEGY"},
        {.title = "BATCHES", .shrink = true},
        {.title = "END"},
    };
    table *t = table_new(columns, sizeof columns / sizeof columns[0]);
    size_t rows = 0;
    for (size_t i = 0; t && i < p->changes.len; i++)
        for (size_t g = 0; g < p->changes.at[i].groups.len; g++) {
            if (p->changes.at[i].groups.at[g].again)
                continue;
            group_row(p, &p->changes.at[i], &p->changes.at[i].groups.at[g], t);
            rows++;
        }
    bool good = t != NULL;
    if (good && rows > 0) {
        fputs("\n", to);
        good = table_print(t, to);
    }
    table_free(t);
    return good;
}

typedef struct waiting {
    const plan *plan;
    table *table;
    size_t count;
    bool good;
} waiting;

static bool waiting_row(void *context, const placement_view *v)
{
    waiting *w = context;
    if (v->state == PLACEMENT_DONE || w->count++ >= WAITING_SHOWN)
        return true;
    static const char *const states[] = {
#define X(state, text) text,
        PLACEMENT_STATES(X)
#undef X
    };
    reasons why = {0};
    if (!engine_reasons(sim_engine(w->plan->sim), v->id, w->plan->arena, &why)) {
        w->good = false;
        return false;
    }
    table_cell(w->table, v->target);
    table_cell(w->table, v->change);
    table_cell(w->table, str_of(states[v->state]));
    table_cell(w->table,
               why.len > 0 ? reason_text(w->plan->arena, plan_main_reason(&why)) : STR("-"));
    return true;
}

static bool waiting_table(const plan *p, FILE *to)
{
    static const column columns[] = {{.title = "TARGET", .shrink = true},
                                     {.title = "CHANGE", .shrink = true},
                                     {.title = "STATE"},
                                     {.title = "WHY", .shrink = true}};
    waiting w = {.plan = p, .good = true};
    w.table = table_new(columns, sizeof columns / sizeof columns[0]);
    if (!w.table)
        return false;
    w.good = engine_placements(sim_engine(p->sim), waiting_row, &w) && w.good;
    if (w.count > 0 && w.good) {
        fputs("\n", to);
        w.good = table_print(w.table, to);
        if (w.count > WAITING_SHOWN)
            fprintf(to, "and %zu more; drover explain TARGET tells all about one\n",
                    w.count - WAITING_SHOWN);
    }
    table_free(w.table);
    return w.good;
}

bool plan_table(const plan *p, FILE *to)
{
    head(p, to);
    sparkline(p, to);
    return groups(p, to) && waiting_table(p, to);
}
