/* SPDX-License-Identifier: Apache-2.0 */
/* sim_run.c - virtual time: what falls due is told to the engine, until nothing can happen any
 * more. */
#include <assert.h>

#include "sim/sim_internal.h"

/* More steps in one second than any world needs: the engine does not come to rest. */
#define STEPS_PER_SECOND_MAX 100000u
/* So many wakes in a row without anything happening are taken for "nothing will". */
#define IDLE_WAKES_MAX 2000u
/* After so many it is asked whether time alone can help anybody, unless more than so many wait. */
#define IDLE_WAKES_FEW 8u
#define ASKED_MAX 2000

/* ---- facts ---- */

static bool portion(sim *s, err *error)
{
    size_t count = s->fact_count;
    s->fact_count = 0;
    return count == 0 || (engine_take(s->engine, s->facts, count, s->now_ms) || err_memory(error));
}

bool sim_fact(sim *s, const fact *f, err *error)
{
    if (s->fact_count == SIM_PORTION && !portion(s, error))
        return false;
    s->facts[s->fact_count++] = *f;
    return true;
}

bool sim_fact_target_now(sim *s, uint32_t target, err *error)
{
    if (s->fact_count == SIM_PORTION && !portion(s, error))
        return false;
    herd_fact(&s->herd, target, s->boots[s->fact_count], &s->facts[s->fact_count]);
    s->fact_count++;
    return s->herd.targets.at[target].kind != TARGET_CLUSTER || sim_fact_reports(s, target, error);
}

/* What runs on a cluster stands beside it and is told with it: the engine may not have known it
 * before. */
bool sim_fact_reports(sim *s, uint32_t target, err *error)
{
    for (size_t i = 0; i < s->bundles.len; i++) {
        uint32_t key[2] = {s->bundles.at[i], target};
        const uint64_t *at = strmap_get(&s->release_at, (str){(const char *)key, sizeof key});
        fact f;
        if (!at || !s->releases.at[*at].exists)
            continue;
        sim_report_fact(s, key[0], target, &s->releases.at[*at], &f);
        if (!sim_fact(s, &f, error))
            return false;
    }
    return true;
}

/* ---- one second ---- */

static bool due_now(sim *s, err *error)
{
    if (!agenda_take(&s->agenda, &s->due))
        return err_memory(error);
    s->moved_ms = s->now_ms;
    if (s->settings.faults.shuffle && sim_faulty(s))
        for (size_t i = s->due.len; i > 1; i--) {
            size_t j = dice_below(&s->dice, i);
            agenda_entry swap = s->due.at[i - 1];
            s->due.at[i - 1] = s->due.at[j];
            s->due.at[j] = swap;
        }
    for (size_t i = 0; i < s->due.len; i++)
        if (!sim_due(s, &s->due.at[i], error))
            return false;
    s->due.len = 0;
    return true;
}

static bool happen_now(sim *s, err *error)
{
    int64_t after_ms = s->now_ms - s->settings.start_ms;
    while (s->happened < s->happenings.len && s->happenings.at[s->happened].after_ms <= after_ms) {
        s->moved_ms = s->now_ms;
        if (!sim_happen(s, &s->happenings.at[s->happened++], error))
            return false;
    }
    return true;
}

/* Agents that are there say so. */
static bool heartbeat(sim *s, err *error)
{
    s->next_heartbeat_ms = s->now_ms + s->heartbeat_ms;
    for (uint32_t i = 0; i < s->herd.targets.len; i++) {
        herd_target *t = &s->herd.targets.at[i];
        if (t->kind != TARGET_CLUSTER || (t->flags & (HERD_GONE | HERD_OFFLINE)) ||
            s->settings.silent)
            continue;
        t->traits->last_seen_ms = s->now_ms;
        if (!sim_fact_target(s, i, error))
            return false;
    }
    return true;
}

/* Who looks at a live fleet wants to see how much of each limit it will use. */
static bool note_holders(void *context, const group_view *g)
{
    sim *s = context;
    if (g->kind != GROUP_CONCURRENCY)
        ledger_holds_now(&s->ledger, g, s->now_ms - s->settings.start_ms);
    return true;
}

/* Whether a fact may take members away from a batch. */
static bool takes_away(const fact *f)
{
    return f->kind == FACT_TARGET_GONE || f->kind == FACT_DOCUMENT || f->kind == FACT_DOCUMENT_GONE;
}

static bool note_batch(void *context, const group_view *g)
{
    ledger_batch_runs(context, g);
    return true;
}

/* One step of the engine, and its decisions carried out. */
static bool step(sim *s, bool *ret_started, err *error)
{
    size_t count = s->fact_count;
    bool away = false;
    for (size_t i = 0; i < count; i++)
        away = away || takes_away(&s->facts[i]);
    s->fact_count = 0;
    s->decisions.len = 0;
    s->steps++;
    if (!(engine_step(s->engine, s->facts, count, s->now_ms, &s->decisions) || err_memory(error)))
        return false;
    if (s->settings.check && !engine_check(s->engine, error))
        return err_wrap(error, "engine_check");
    if (s->settings.full && !engine_full(s->engine, error))
        return err_wrap(error, "engine_full");
    *ret_started = false;
    for (size_t i = 0; i < s->decisions.len; i++) {
        const decision *d = &s->decisions.at[i];
        *ret_started = *ret_started || d->kind == DECISION_START || d->kind == DECISION_DEPLOY ||
                       d->kind == DECISION_JOB;
        if (!sim_answer(s, d, error))
            return false;
    }
    if (away && ledger_has_open_batch(&s->ledger)) {
        engine_groups(s->engine, note_batch, &s->ledger);
        ledger_batches_left(&s->ledger, s->now_ms - s->settings.start_ms);
    }
    if (s->ledger.now_in_flight > s->ledger.peak_in_flight)
        s->ledger.peak_in_flight = s->ledger.now_in_flight;
    sim_told(s);
    return true;
}

/* The engine dies between two steps, when it knows all that the fleet knows. */
static bool maybe_restart(sim *s, err *error)
{
    if (s->settings.faults.restart_percent == 0 || s->steps == 0 ||
        !dice_percent(&s->restarts, s->settings.faults.restart_percent))
        return true;
    return portion(s, error) && sim_restart(s, error);
}

static bool second(sim *s, int64_t ms, err *error)
{
    assert(ms >= s->now_ms);
    s->now_ms = ms;
    int64_t moved_ms = s->moved_ms;
    if (s->heartbeat_ms > 0 && ms >= s->next_heartbeat_ms && !heartbeat(s, error))
        return false;
    bool started = true;
    for (uint64_t steps = 0; started || s->fact_count > 0 || agenda_next_ms(&s->agenda) <= ms;
         steps++) {
        if (steps > STEPS_PER_SECOND_MAX)
            return err_set(error, "the engine does not come to rest");
        if (!maybe_restart(s, error))
            return false;
        while (agenda_next_ms(&s->agenda) <= ms)
            if (!due_now(s, error))
                return false;
        if (!happen_now(s, error) || !step(s, &started, error))
            return false;
    }
    ledger_in_flight(&s->ledger, ms - s->settings.start_ms);
    if (sim_is_live(s))
        engine_groups(s->engine, note_holders, s);
    s->idle_wakes = s->moved_ms == moved_ms && moved_ms != ms ? s->idle_wakes + 1 : 0;
    return !s->ledger.no_memory || err_memory(error);
}

/* ---- the end ---- */

typedef struct counting {
    const sim *s;
    sim_counts counts;
    uint8_t *seen; /* by target: bits */
} counting;

enum { SEEN = 1, UNDONE = 2, FAILED = 4, EXCLUDED = 8 };

/* It is arranged to fail, nothing will change that, and it does not run now. */
static bool hopeless(const sim *s, const placement_view *v, uint32_t target)
{
    return (v->state == PLACEMENT_FAILED || v->state == PLACEMENT_BLOCKED) &&
           sim_doomed(s, target, 0);
}

static bool count_placement(void *context, const placement_view *v)
{
    counting *c = context;
    uint32_t target = herd_find(&c->s->herd, v->kind, v->target);
    if (target == HERD_NONE)
        return true;
    uint8_t *seen = &c->seen[target];
    *seen |= SEEN;
    if (v->state == PLACEMENT_EXCLUDED)
        *seen |= EXCLUDED;
    if (v->state == PLACEMENT_FAILED)
        *seen |= FAILED;
    if (v->state != PLACEMENT_DONE)
        *seen |= UNDONE;
    if (v->state != PLACEMENT_DONE && v->state != PLACEMENT_EXCLUDED) {
        c->counts.unfinished++;
        c->counts.hopeless += hopeless(c->s, v, target);
    }
    return true;
}

bool sim_count(const sim *s, sim_counts *ret)
{
    if (s->outcome != SIM_RUNNING) {
        *ret = s->counts;
        return true;
    }
    arena *a = arena_new(0);
    counting c = {.s = s, .seen = a ? ARENA_ARRAY(a, s->herd.targets.len + 1, uint8_t) : NULL};
    if (!c.seen) {
        arena_free(a);
        return false;
    }
    bool all = engine_placements(s->engine, count_placement, &c);
    for (size_t i = 0; i < s->herd.targets.len; i++) {
        if (!(c.seen[i] & SEEN))
            continue;
        c.counts.targets++;
        c.counts.failed += (c.seen[i] & FAILED) != 0;
        c.counts.excluded += (c.seen[i] & EXCLUDED) != 0;
        c.counts.done += !(c.seen[i] & UNDONE);
    }
    arena_free(a);
    *ret = c.counts;
    return all;
}

static bool any_stopped(void *context, const group_view *v)
{
    bool *stopped = context;
    *stopped = *stopped || v->stopped;
    return !*stopped;
}

static bool note_last_pass(void *context, const group_view *v)
{
    sim *s = context;
    if (v->kind == GROUP_PARTITION)
        ledger_last_pass(&s->ledger, v, v->passed_ms - s->settings.start_ms);
    return true;
}

static bool end_with(sim *s, bool at_horizon, err *error)
{
    sim_counts counts;
    if (!sim_count(s, &counts))
        return err_memory(error);
    bool stopped = false;
    engine_groups(s->engine, any_stopped, &stopped);
    engine_groups(s->engine, note_last_pass, s);
    s->counts = counts;
    if (counts.unfinished == 0)
        s->outcome = SIM_COMPLETE;
    else if (stopped)
        s->outcome = SIM_STOPPED;
    else
        s->outcome = at_horizon ? SIM_HORIZON : SIM_STALLED;
    if (s->outcome == SIM_HORIZON)
        s->moved_ms = s->settings.start_ms + s->settings.horizon_ms;
    return true;
}

/* When the engine wants to be asked, in whole seconds; AGENDA_NEVER if it does not. */
static int64_t wake_ms(const sim *s)
{
    int64_t next = engine_next_ms(s->engine);
    if (next == REASON_NEVER)
        return AGENDA_NEVER;
    if (next <= s->now_ms)
        return s->now_ms + 1000;
    int64_t start_ms = s->settings.start_ms;
    return start_ms + (next - start_ms + 999) / 1000 * 1000;
}

static int64_t happening_ms(const sim *s)
{
    if (s->happened == s->happenings.len)
        return AGENDA_NEVER;
    return s->settings.start_ms + s->happenings.at[s->happened].after_ms / 1000 * 1000;
}

typedef struct asking {
    const sim *s;
    arena *a;
    bool helps; /* somebody waits for nothing but time, or cannot be asked */
} asking;

/* Whoever waits for a person, or for somebody else, is not let go by time. */
static bool ask_why(void *context, const placement_view *v)
{
    asking *k = context;
    reasons why = {.most = 1};
    if (v->state == PLACEMENT_DONE || v->state == PLACEMENT_EXCLUDED)
        return true;
    arena_rewind(k->a, (arena_place){0});
    bool held = false, asked = engine_reasons(k->s->engine, v->id, k->a, &why);
    for (size_t i = 0; i < why.len; i++)
        held = held || (why.at[i].act != RELEASE_TIME && why.at[i].next_ms == REASON_NEVER);
    k->helps = !asked || !held;
    return !k->helps;
}

/* Whether to wait may help, where nothing runs and nothing is to happen: windows open and close for
 * ever, also over what failed and waits for a person. */
static bool time_helps(const sim *s, int64_t waiting)
{
    if (s->idle_wakes < IDLE_WAKES_FEW || waiting > ASKED_MAX)
        return true;
    asking k = {.s = s, .a = arena_new(0)};
    k.helps = !k.a || !engine_placements(s->engine, ask_why, &k) || k.helps;
    arena_free(k.a);
    return k.helps;
}

/* The next second in which something may happen; AGENDA_NEVER: nothing can. */
static bool next_second(sim *s, int64_t *ret_ms, err *error)
{
    int64_t ms = agenda_next_ms(&s->agenda);
    if (happening_ms(s) < ms)
        ms = happening_ms(s);
    int64_t wake = wake_ms(s);
    if (ms == AGENDA_NEVER && wake != AGENDA_NEVER) {
        sim_counts counts;
        if (!sim_count(s, &counts))
            return err_memory(error);
        /* Waking up helps nobody when all are done, or can only fail again. */
        if (counts.unfinished == counts.hopeless || s->idle_wakes > IDLE_WAKES_MAX ||
            !time_helps(s, counts.unfinished))
            wake = AGENDA_NEVER;
    }
    if (wake < ms)
        ms = wake;
    if (s->heartbeat_ms > 0 && ms != AGENDA_NEVER && s->next_heartbeat_ms < ms)
        ms = s->next_heartbeat_ms;
    *ret_ms = ms;
    return true;
}

static bool run_until(sim *s, int64_t after_ms, err *error)
{
    int64_t start_ms = s->settings.start_ms;
    if (!s->begun) {
        s->begun = true;
        if (!sim_prepare(s, error) || !second(s, start_ms, error))
            return false;
    }
    while (s->outcome == SIM_RUNNING) {
        int64_t ms = AGENDA_NEVER;
        if (!next_second(s, &ms, error))
            return false;
        bool late = ms != AGENDA_NEVER && ms - start_ms > s->settings.horizon_ms;
        if (ms == AGENDA_NEVER || late)
            return end_with(s, late, error);
        if (ms - start_ms > after_ms)
            return true;
        if (!second(s, ms, error))
            return false;
    }
    return true;
}

/* Who asks why at that moment, in which nothing happens, is answered for it and not for the last
 * one in which something did. */
static bool arrive(sim *s, int64_t after_ms, err *error)
{
    if (after_ms > s->settings.horizon_ms)
        return true;
    int64_t ms = s->settings.start_ms + after_ms, next_ms = engine_next_ms(s->engine);
    if (ms <= s->now_ms || s->fact_count > 0 || (next_ms != REASON_NEVER && next_ms <= ms))
        return true;
    s->now_ms = ms;
    if (s->heartbeat_ms == 0 && !heartbeat(s, error)) /* who is there was seen a moment ago */
        return false;
    size_t count = s->fact_count;
    s->fact_count = 0;
    return engine_take(s->engine, s->facts, count, ms) || err_memory(error);
}

bool sim_run(sim *s, int64_t after_ms, err *error)
{
    if (run_until(s, after_ms, error) && arrive(s, after_ms, error))
        return true;
    return err_wrap(error, "at %llds", (long long)((s->now_ms - s->settings.start_ms) / 1000));
}
