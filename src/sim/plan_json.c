/* SPDX-License-Identifier: Apache-2.0 */
#include "base/moment.h"
#include "sim/plan.h"

static const char *const group_kinds[] = {
#define X(kind, text) text,
    GROUP_KINDS(X)
#undef X
};
static const char *const role_words[] = {
#define X(role, text) text,
    JOB_ROLES(X)
#undef X
};

static void key_text(buf *out, const char *key, str text)
{
    buf_addf(out, "\"%s\":", key);
    buf_add_json(out, text);
}

/* What ran before the start has begun below 0. */
static int64_t seconds_of(int64_t ms)
{
    return ms >= 0 ? ms / 1000 : -((999 - ms) / 1000);
}

static void seconds_or_null(buf *out, int64_t ms)
{
    if (ms == LEDGER_OPEN)
        buf_addz(out, "null");
    else
        buf_addf(out, "%lld", (long long)(ms / 1000));
}

void plan_time_json(int64_t ms, buf *out)
{
    if (ms == REASON_NEVER) {
        buf_addz(out, "null");
        return;
    }
    char text[MOMENT_TEXT_BYTES];
    int64_t seconds = ms >= 0 ? ms / 1000 : (ms - 999) / 1000;
    size_t len = moment_format((moment){seconds, 0}, text);
    buf_add_json(out, (str){text, len});
}

static void batch_json(const plan *p, const ledger_batch *b, buf *out)
{
    buf_addf(out, "{\"number\":%lld,\"start\":%lld,\"end\":", (long long)b->number,
             (long long)(b->start_ms / 1000));
    seconds_or_null(out, b->end_ms);
    buf_addf(out, ",\"size\":%lld,\"targets\":[", (long long)b->size);
    for (size_t i = 0; i < b->targets.len; i++) {
        if (i > 0)
            buf_addc(out, ',');
        buf_add_json(out, sim_herd(p->sim)->targets.at[b->targets.at[i]].name);
    }
    buf_addf(out, "],\"complete\":%lld,\"erroring\":%lld,\"blocked\":%lld,\"failed\":%s}",
             (long long)b->complete, (long long)b->erroring, (long long)b->blocked,
             b->failed ? "true" : "false");
}

static void compartment_json(const plan *p, const plan_group *g, buf *out)
{
    buf_addf(out, ",\"ceiling\":%lld,", (long long)g->view.limit);
    key_text(out, "strategy", g->view.strategy);
    buf_addz(out, ",\"batches\":[");
    for (size_t i = 0; g->batches && i < g->batches->batches.len; i++) {
        buf_addz(out, i > 0 ? ",\n      " : "\n      ");
        batch_json(p, &g->batches->batches.at[i], out);
    }
    buf_addf(out,
             "],\"final\":{\"currentBatch\":%lld,\"completed\":%lld,\"failed\":%lld,"
             "\"consecutiveFailures\":%lld,\"stopped\":%s}",
             (long long)g->current_batch, (long long)g->completed, (long long)g->failed,
             (long long)g->consecutive_failures, g->stopped ? "true" : "false");
}

/* [second, slots taken from then on]. Without a change: what it is at the end. */
static void in_use_json(const plan *p, const plan_group *g, buf *out)
{
    const ledger_slots *s = ledger_slots_of(sim_ledger(p->sim), g->view.name);
    bool from_start = s && s->taken.at[0].ms / 1000 == 0;
    buf_addz(out, ",\"inUse\":[");
    if (!from_start)
        buf_addf(out, "[0,%lld]", (long long)(s ? s->before : g->view.holders));
    for (size_t i = 0; s && i < s->taken.len; i++)
        buf_addf(out, i > 0 || !from_start ? ",[%lld,%lld]" : "[%lld,%lld]",
                 (long long)(s->taken.at[i].ms / 1000), (long long)s->taken.at[i].count);
    buf_addc(out, ']');
}

/* The same of a compartment or partition. */
static void held_json(const plan *p, const plan_group *g, buf *out)
{
    const ledger_holds *h = ledger_holds_of(sim_ledger(p->sim), g->view.change, g->view.name);
    if (!sim_is_live(p->sim))
        return;
    buf_addz(out, ",\"inUse\":[");
    for (size_t i = 0; h && i < h->held.len; i++)
        buf_addf(out, i > 0 ? ",[%lld,%lld]" : "[%lld,%lld]", (long long)(h->held.at[i].ms / 1000),
                 (long long)h->held.at[i].count);
    buf_addc(out, ']');
}

/* Which rule of a RolloutPolicy it is of, and where. */
static void rule_json(str rule_, str environment_, buf *out)
{
    key_text(out, "rule", rule_);
    buf_addc(out, ',');
    key_text(out, "environment", environment_);
    buf_addc(out, ',');
}

static void group_json(const plan *p, const plan_group *g, buf *out)
{
    buf_addc(out, '{');
    key_text(out, "name", g->view.name);
    buf_addf(out, ",\"kind\":\"%s\",", group_kinds[g->view.kind]);
    if (g->view.environment.len > 0)
        rule_json(g->view.rule, g->view.environment, out);
    buf_addf(out, "\"matched\":%lld", (long long)g->view.matched);
    switch (g->view.kind) {
    case GROUP_COMPARTMENT:
        compartment_json(p, g, out);
        held_json(p, g, out);
        break;
    case GROUP_PARTITION:
        buf_addf(out, ",\"limit\":%lld,\"ready\":%s", (long long)g->view.limit,
                 g->view.ready ? "true" : "false");
        held_json(p, g, out);
        break;
    case GROUP_CONCURRENCY:
        buf_addf(out, ",\"limit\":%lld,\"peak\":%lld", (long long)g->view.limit,
                 (long long)g->view.peak);
        if (sim_is_live(p->sim))
            in_use_json(p, g, out);
        break;
    }
    buf_addc(out, '}');
}

static void changes_json(const plan *p, buf *out)
{
    buf_addz(out, "\"changes\":[");
    for (size_t i = 0; i < p->changes.len; i++) {
        const plan_change *c = &p->changes.at[i];
        buf_addz(out, i > 0 ? ",\n  {" : "\n  {");
        key_text(out, "name", c->name);
        buf_addf(out, ",\"kind\":\"%s\",\"groups\":[", c->kind);
        for (size_t g = 0; g < c->groups.len; g++) {
            buf_addz(out, g > 0 ? ",\n    " : "\n    ");
            group_json(p, &c->groups.at[g], out);
        }
        buf_addz(out, "]}");
    }
    buf_addz(out, "],\n");
}

static void passes_json(const plan *p, buf *out)
{
    const ledger *l = sim_ledger(p->sim);
    buf_addz(out, "\"passes\":[");
    for (size_t i = 0; i < l->passes.len; i++) {
        const ledger_pass *one = &l->passes.at[i];
        buf_addz(out, i > 0 ? ",\n  {" : "\n  {");
        if (one->rule != 0) {
            key_text(out, "change", names_text(l->names, one->change));
            buf_addc(out, ',');
            rule_json(names_text(l->names, one->rule), names_text(l->names, one->environment), out);
        }
        buf_addf(out,
                 "\"start\":%lld,\"created\":%lld,\"updated\":%lld,\"fixed\":%lld,"
                 "\"visitedPartitions\":%lld,\"notReadyPartitions\":%lld}",
                 (long long)(one->start_ms / 1000), (long long)one->created,
                 (long long)one->updated, (long long)one->fixed, (long long)one->visited,
                 (long long)one->not_ready);
    }
    buf_addz(out, "],\n");
}

static void job_json(const plan *p, const ledger_job *j, buf *out)
{
    const ledger *l = sim_ledger(p->sim);
    buf_addc(out, '{');
    key_text(out, "deployment", names_text(l->names, j->deployment));
    buf_addc(out, ',');
    key_text(out, "resource", sim_herd(p->sim)->targets.at[j->resource].name);
    buf_addc(out, ',');
    key_text(out, "environment", names_text(l->names, j->environment));
    buf_addc(out, ',');
    key_text(out, "version", names_text(l->names, j->version));
    buf_addc(out, ',');
    key_text(out, "group", names_text(l->names, j->group));
    buf_addf(out, ",\"role\":\"%s\",\"start\":%lld,\"end\":", role_words[j->role],
             (long long)seconds_of(j->start_ms));
    seconds_or_null(out, j->end_ms);
    buf_addz(out, ",\"startAt\":");
    plan_time_json(sim_start_ms(p->sim) + j->start_ms, out);
    buf_addf(out, ",\"status\":\"%s\"}",
             j->end_ms == LEDGER_OPEN ? "inProgress"
             : j->failed              ? "failed"
                                      : "successful");
}

static void jobs_json(const plan *p, buf *out)
{
    const ledger *l = sim_ledger(p->sim);
    buf_addz(out, "\"jobs\":[");
    for (size_t i = 0; i < l->jobs.len; i++) {
        buf_addz(out, i > 0 ? ",\n  " : "\n  ");
        job_json(p, &l->jobs.at[i], out);
    }
    buf_addz(out, "],\n");
}

static void in_flight_json(const plan *p, buf *out)
{
    const ledger *l = sim_ledger(p->sim);
    buf_addz(out, "\"inFlight\":[");
    for (size_t i = 0; i < l->in_flight.len; i++)
        buf_addf(out, "%s[%lld,%lld]", i > 0 ? "," : "", (long long)(l->in_flight.at[i].ms / 1000),
                 (long long)l->in_flight.at[i].count);
    buf_addz(out, "],\n");
}

typedef struct writing {
    const plan *plan;
    buf *out;
    arena *arena;
    size_t count;
} writing;

static bool waiting_json(void *context, const placement_view *v)
{
    writing *w = context;
    if (v->state == PLACEMENT_DONE)
        return true;
    arena_rewind(w->arena, (arena_place){0});
    reasons why = {.most = REASON_NAMES_BRIEF};
    if (!engine_reasons(sim_engine(w->plan->sim), v->id, w->arena, &why)) {
        w->out->failed = true;
        return false;
    }
    buf_addz(w->out, w->count++ > 0 ? ",\n  {" : "\n  {");
    key_text(w->out, "target", v->target);
    buf_addc(w->out, ',');
    key_text(w->out, "change", v->change);
    buf_addz(w->out, ",\"reasons\":[");
    for (size_t i = 0; i < why.len; i++) {
        if (i > 0)
            buf_addc(w->out, ',');
        reason_json(&why.at[i], REASON_NAMES_BRIEF, w->arena, w->out);
    }
    buf_addz(w->out, "]}");
    return true;
}

void plan_json(const plan *p, buf *out)
{
    const ledger *l = sim_ledger(p->sim);
    buf_addz(out, "{");
    key_text(out, "outcome", str_of(sim_outcome_text(p->outcome)));
    buf_addc(out, ',');
    key_text(out, "reason", p->reason);
    buf_addf(out,
             ",\"seconds\":%lld,\"targets\":%lld,\"done\":%lld,\"failed\":%lld,\"excluded\":%lld,"
             "\"peakInFlight\":%lld,\"starts\":%lld,\"drains\":%lld,\"drainsSaved\":%lld,\n",
             (long long)p->seconds, (long long)p->counts.targets, (long long)p->counts.done,
             (long long)p->counts.failed, (long long)p->counts.excluded,
             (long long)l->peak_in_flight, (long long)l->starts, (long long)p->drains,
             (long long)p->drains_saved);
    if (sim_is_live(p->sim)) {
        key_text(out, "assumes", plan_assumption(p));
        buf_addz(out, ",\"startAt\":");
        plan_time_json(sim_start_ms(p->sim), out);
        buf_addz(out, ",\n");
    }
    changes_json(p, out);
    passes_json(p, out);
    jobs_json(p, out);
    in_flight_json(p, out);
    writing w = {.plan = p, .out = out, .arena = arena_new(0)};
    buf_addz(out, "\"waiting\":[");
    if (!w.arena || !engine_placements(sim_engine(p->sim), waiting_json, &w))
        out->failed = true;
    arena_free(w.arena);
    buf_addz(out, "]}\n");
}
