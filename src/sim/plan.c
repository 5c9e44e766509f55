/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/plan.h"

#include "base/duration.h"

/* ---- changes and groups ---- */

static const char *change_kind(const object *o)
{
    if (o->kind == KIND_SKYHOOK)
        return "Skyhook";
    if (o->kind == KIND_BUNDLE)
        return "Bundle";
    return o->kind == KIND_DEPLOYMENT ? "Deployment" : NULL;
}

str plan_change_name(arena *a, const object *o)
{
    if (o->kind != KIND_BUNDLE || o->metadata->namespace_.len == 0)
        return o->metadata->name;
    return arena_printf(a, "%.*s/%.*s", STR_ARG(o->metadata->namespace_),
                        STR_ARG(o->metadata->name));
}

static bool collect_changes(plan *p)
{
    for (size_t i = 0; i < sim_documents(p->sim); i++) {
        const object *o = sim_document(p->sim, i);
        const char *kind = change_kind(o);
        if (!kind)
            continue;
        plan_change c = {.name = plan_change_name(p->arena, o), .kind = kind};
        if (!c.name.ptr || !vec_push(&p->changes, c))
            return false;
        for (size_t at = p->changes.len - 1; at > 0; at--) {
            plan_change *a = &p->changes.at[at - 1], *b = &p->changes.at[at];
            if (str_cmp(a->name, b->name) <= 0)
                break;
            plan_change swap = *a;
            *a = *b;
            *b = swap;
        }
    }
    return true;
}

typedef struct collecting {
    plan *plan;
    bool good;
} collecting;

/* The counters of a compartment: the engine's own, or, when a completed rollout put them back, what
 * the batches came to. */
static plan_group group_of(const plan *p, const group_view *v)
{
    plan_group g = {.view = *v,
                    .current_batch = v->current_batch,
                    .completed = v->completed,
                    .failed = v->failed,
                    .consecutive_failures = v->consecutive_failures,
                    .stopped = v->stopped};
    if (v->kind != GROUP_COMPARTMENT)
        return g;
    g.batches = ledger_find(sim_ledger(p->sim), v);
    size_t count = g.batches ? g.batches->batches.len : 0;
    bool open = count > 0 && g.batches->batches.at[count - 1].end_ms == LEDGER_OPEN;
    if (!g.batches || !g.batches->at_rest || open || v->completed + v->failed > 0 ||
        v->current_batch > 1)
        return g;
    g.current_batch = g.batches->current_batch;
    g.completed = g.batches->completed;
    g.failed = g.batches->failed;
    g.consecutive_failures = g.batches->consecutive_failures;
    return g;
}

static bool is_change(const plan *p, str name)
{
    for (size_t i = 0; i < p->changes.len; i++)
        if (str_eq(p->changes.at[i].name, name))
            return true;
    return false;
}

/* Slots, and what paces a bracket, are a rule's own: every deployment shows them. */
static bool collect_group(void *context, const group_view *v)
{
    collecting *c = context;
    bool shared = v->kind == GROUP_CONCURRENCY || !is_change(c->plan, v->change), again = false;
    for (size_t i = 0; i < c->plan->changes.len; i++) {
        plan_change *change = &c->plan->changes.at[i];
        if (shared ? strcmp(change->kind, "Deployment") != 0 : !str_eq(change->name, v->change))
            continue;
        plan_group g = group_of(c->plan, v);
        g.shared = shared;
        g.again = again;
        again = true;
        c->good = c->good && vec_push(&change->groups, g);
    }
    return c->good;
}

static bool is_shown(const plan *p, const ledger_group *batches)
{
    for (size_t i = 0; i < p->changes.len; i++)
        for (size_t g = 0; g < p->changes.at[i].groups.len; g++)
            if (p->changes.at[i].groups.at[g].batches == batches)
                return true;
    return false;
}

/* Compartments that had batches and are no longer in any policy: nobody is in them any more. */
static bool collect_gone(plan *p)
{
    const ledger *l = sim_ledger(p->sim);
    collecting c = {p, true};
    for (size_t i = 0; c.good && i < l->groups.len; i++) {
        const ledger_group *g = &l->groups.at[i];
        group_view view = {.kind = GROUP_COMPARTMENT,
                           .change = names_text(l->names, g->change),
                           .name = names_text(l->names, g->name),
                           .environment = names_text(l->names, g->environment),
                           .rule = names_text(l->names, g->rule),
                           .strategy = STR_EMPTY,
                           .current_batch = g->current_batch,
                           .completed = g->completed,
                           .failed = g->failed,
                           .consecutive_failures = g->consecutive_failures};
        if (g->batches.len > 0 && !is_shown(p, g))
            collect_group(&c, &view);
    }
    return c.good;
}

/* ---- why it did not complete ---- */

typedef struct culprit {
    plan *plan;
    placement_view view;
    int rank; /* 0: none yet */
} culprit;

/* A failure explains more than those that wait for it. */
static int rank_of(placement_state state)
{
    switch (state) {
    case PLACEMENT_FAILED: return 4;
    case PLACEMENT_IN_FLIGHT: return 3;
    case PLACEMENT_BLOCKED: return 2;
    case PLACEMENT_WAITING: return 1;
    case PLACEMENT_EXCLUDED:
    case PLACEMENT_DONE: return 0;
    }
    return 0;
}

static bool find_culprit(void *context, const placement_view *v)
{
    culprit *c = context;
    if (rank_of(v->state) > c->rank) {
        c->rank = rank_of(v->state);
        c->view = *v;
    }
    return true;
}

const reason *plan_main_reason(const reasons *why)
{
    for (size_t i = 0; i < why->len; i++)
        if (why->at[i].act != RELEASE_TIME)
            return &why->at[i];
    return why->len > 0 ? &why->at[0] : NULL;
}

static str stalled_reason(plan *p)
{
    culprit c = {.plan = p};
    reasons why = {0};
    engine *e = sim_engine(p->sim);
    engine_placements(e, find_culprit, &c);
    if (c.rank == 0 || !engine_reasons(e, c.view.id, p->arena, &why) || why.len == 0)
        return STR("nothing can move any more");
    str text = reason_text(p->arena, plan_main_reason(&why));
    return arena_printf(p->arena, "%.*s, %.*s: %.*s", STR_ARG(c.view.target),
                        STR_ARG(c.view.change), STR_ARG(text));
}

static str stopped_reason(plan *p)
{
    for (size_t i = 0; i < p->changes.len; i++)
        for (size_t g = 0; g < p->changes.at[i].groups.len; g++) {
            const plan_group *group = &p->changes.at[i].groups.at[g];
            if (!group->view.stopped)
                continue;
            if (group->view.kind == GROUP_COMPARTMENT)
                return arena_printf(p->arena,
                                    "compartment %.*s of %.*s is stopped after %lld failed "
                                    "batch%s in a row",
                                    STR_ARG(group->view.name), STR_ARG(p->changes.at[i].name),
                                    (long long)group->consecutive_failures,
                                    group->consecutive_failures == 1 ? "" : "es");
            return arena_printf(p->arena, "%.*s is stopped", STR_ARG(p->changes.at[i].name));
        }
    return STR("a group is stopped");
}

static str reason_of(plan *p)
{
    switch (p->outcome) {
    case SIM_COMPLETE: return STR_EMPTY;
    case SIM_STOPPED: return stopped_reason(p);
    case SIM_STALLED: return stalled_reason(p);
    case SIM_HORIZON:
    case SIM_RUNNING: {
        char span[PLAN_SPAN_BYTES];
        str why = stalled_reason(p);
        return arena_printf(p->arena, "not done after %s; %.*s", plan_span(p->seconds, span),
                            STR_ARG(why));
    }
    }
    return STR_EMPTY;
}

bool plan_collect(plan *p, const sim *s)
{
    *p =
        (plan){.sim = s, .arena = arena_new(0), .outcome = sim_ended(s), .seconds = sim_seconds(s)};
    if (!p->arena || !sim_count(s, &p->counts) || !collect_changes(p))
        return false;
    ledger_sums(sim_ledger(s), &p->drains, &p->drains_saved);
    collecting c = {p, true};
    engine_groups(sim_engine(s), collect_group, &c);
    c.good = c.good && collect_gone(p);
    p->reason = reason_of(p);
    return c.good && p->reason.ptr;
}

str plan_assumption(const plan *p)
{
    size_t running = sim_running_count(p->sim);
    if (!sim_is_live(p->sim))
        return STR_EMPTY;
    if (running == 0)
        return STR("a live fleet; nothing runs there now");
    return arena_printf(p->arena, "a live fleet; the %zu job%s running there now succeed%s",
                        running, running == 1 ? "" : "s", running == 1 ? "s" : "");
}

void plan_done(plan *p)
{
    for (size_t i = 0; i < p->changes.len; i++)
        vec_done(&p->changes.at[i].groups);
    vec_done(&p->changes);
    p->arena = arena_free(p->arena);
}

/* ---- what the writers share ---- */

const char *plan_span(int64_t seconds, char text[PLAN_SPAN_BYTES])
{
    int64_t days = seconds / 86400, hours = seconds / 3600 % 24, minutes = seconds / 60 % 60;
    int at = 0;
    text[0] = 0;
    if (days > 0)
        at += snprintf(text + at, PLAN_SPAN_BYTES - (size_t)at, "%lldd", (long long)days);
    if (hours > 0)
        at += snprintf(text + at, PLAN_SPAN_BYTES - (size_t)at, "%lldh", (long long)hours);
    if (minutes > 0)
        at += snprintf(text + at, PLAN_SPAN_BYTES - (size_t)at, "%lldm", (long long)minutes);
    if (seconds % 60 > 0 || at == 0)
        snprintf(text + at, PLAN_SPAN_BYTES - (size_t)at, "%llds", (long long)(seconds % 60));
    return text;
}

void plan_curve(const plan *p, size_t parts, int64_t *ret)
{
    const ledger *l = sim_ledger(p->sim);
    int64_t span_ms = p->seconds * 1000;
    for (size_t i = 0; i < parts; i++)
        ret[i] = 0;
    for (size_t i = 0; i < l->in_flight.len; i++) {
        int64_t from = l->in_flight.at[i].ms;
        int64_t to = i + 1 < l->in_flight.len ? l->in_flight.at[i + 1].ms : span_ms;
        size_t first = span_ms > 0 ? (size_t)(from * (int64_t)parts / span_ms) : 0;
        size_t last =
            span_ms > 0 && to > from ? (size_t)((to * (int64_t)parts - 1) / span_ms) : first;
        for (size_t at = first; at <= last && at < parts; at++)
            if (l->in_flight.at[i].count > ret[at])
                ret[at] = l->in_flight.at[i].count;
    }
}
