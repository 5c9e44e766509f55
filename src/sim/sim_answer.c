/* SPDX-License-Identifier: Apache-2.0 */
/* sim_answer.c - carries decisions out in the virtual fleet, and tells what came of them. */
#include <assert.h>

#include "base/mem.h"
#include "engine/package_stage.h"
#include "engine/verification.h"
#include "sim/sim_internal.h"
#include "sim/story.h"

#define INTERRUPT_BITS 63

/* ---- who is in flight ---- */

void sim_hold(sim *s, uint32_t target)
{
    if (s->herd.targets.at[target].holds++ == 0)
        s->ledger.now_in_flight++;
}

/* What a node's drain saved is known when its claim ends. */
static void drain_ends(sim *s, herd_target *t)
{
    int ran = __builtin_popcountll(t->interrupted);
    if ((t->flags & HERD_DRAINED) && ran > 1)
        s->ledger.drains_saved += ran - 1;
    t->flags &= (uint16_t)~HERD_DRAINED;
    t->interrupted = 0;
}

void sim_let_go(sim *s, uint32_t target)
{
    herd_target *t = &s->herd.targets.at[target];
    if (t->holds == 0 || --t->holds > 0)
        return;
    s->ledger.now_in_flight--;
    drain_ends(s, t);
}

void sim_let_all_go(sim *s, uint32_t target)
{
    herd_target *t = &s->herd.targets.at[target];
    if (t->holds > 0)
        s->ledger.now_in_flight--;
    t->holds = 0;
    drain_ends(s, t);
}

static sim_placement *place_of(sim *s, const decision *d)
{
    while (s->placements.len <= d->placement)
        if (!vec_push(&s->placements, (sim_placement){.target = HERD_NONE})) {
            s->no_memory = true;
            return NULL;
        }
    sim_placement *p = &s->placements.at[d->placement];
    placement_view view;
    if (p->target == HERD_NONE && d->placement != 0 &&
        engine_placement(s->engine, d->placement, &view))
        p->target = herd_find(&s->herd, view.kind, d->target);
    return p;
}

/* ---- time and chance ---- */

static const deployment *deployment_of(const sim *s, str name)
{
    for (size_t i = 0; i < s->documents.len; i++) {
        const object *o = s->documents.at[i];
        if (o->kind == KIND_DEPLOYMENT && str_eq(o->metadata->name, name))
            return o->deployment;
    }
    return NULL;
}

/* What a deployment says of its simulated jobs; NULL: its jobs are none. */
static const simulated_job *simulated_of(const sim *s, str name)
{
    const deployment *d = deployment_of(s, name);
    return d ? d->spec.job.simulated : NULL;
}

/* After this long a job has failed (timeoutSeconds). */
static int64_t job_limit_ms(const sim *s, str name)
{
    const deployment *d = deployment_of(s, name);
    int64_t seconds = d ? d->spec.timeout_seconds : 0;
    return (seconds < INT32_MAX ? seconds : INT32_MAX) * 1000;
}

int64_t sim_duration(const sim *s, str name)
{
    const uint64_t *given = strmap_get(&s->durations, name);
    if (given)
        return (int64_t)*given;
    const simulated_job *job = simulated_of(s, name);
    return job && job->seconds.set ? job->seconds.value * 1000 : s->settings.duration_ms;
}

/* A deployment's own failPercent, once there is a seed. */
static bool job_fails_by_chance(sim *s, str name)
{
    const simulated_job *job = s->settings.random ? simulated_of(s, name) : NULL;
    return job && job->fail_percent > 0 && dice_percent(&s->dice, (uint32_t)job->fail_percent);
}

bool sim_faulty(const sim *s)
{
    const sim_faults *f = &s->settings.faults;
    return s->settings.random &&
           (f->until_ms == 0 || s->now_ms - s->settings.start_ms < f->until_ms);
}

bool sim_schedule(sim *s, int64_t in_ms, agenda_entry e)
{
    if (s->settings.random && s->settings.jitter_percent > 0 && in_ms > 0)
        in_ms += in_ms * dice_between(&s->dice, 0, s->settings.jitter_percent) / 100;
    const sim_faults *f = &s->settings.faults;
    if (sim_faulty(s)) {
        if (f->late_percent > 0 && dice_percent(&s->dice, f->late_percent))
            in_ms += dice_between(&s->dice, 1000, SIM_LATE_MS_MAX);
        if (f->lost_percent > 0 && dice_percent(&s->dice, f->lost_percent))
            in_ms = sim_resync_ms(s, s->now_ms + in_ms) - s->now_ms;
    }
    in_ms = (in_ms + 999) / 1000 * 1000;
    bool good = agenda_put(&s->agenda, s->now_ms + in_ms, e);
    sim_memory(s, good);
    return good;
}

/* An outcome that was told is told once more, some time later. */
static void repeat(sim *s, agenda_entry e, bool failed)
{
    const sim_faults *f = &s->settings.faults;
    if (!sim_faulty(s) || f->duplicate_percent == 0 || (e.flags & AGENDA_REPEATED) ||
        !dice_percent(&s->dice, f->duplicate_percent))
        return;
    e.flags =
        (uint8_t)((e.flags & AGENDA_MEASURED) | AGENDA_REPEATED | (failed ? AGENDA_FAILED : 0));
    int64_t in_ms = dice_between(&s->dice, 0, SIM_LATE_MS_MAX / 1000) * 1000;
    sim_memory(s, agenda_put(&s->agenda, s->now_ms + in_ms, e));
}

static bool fails(sim *s, uint32_t target)
{
    s->herd.targets.at[target].flags |= HERD_FAILED;
    return true;
}

static bool fails_by_chance(sim *s, uint32_t target)
{
    return s->settings.fail_percent > 0 && sim_faulty(s) &&
           dice_percent(&s->dice, s->settings.fail_percent) && fails(s, target);
}

bool sim_fails(sim *s, uint32_t target, name_id part)
{
    if (s->herd.targets.at[target].flags & HERD_MAY_FAIL)
        for (size_t i = 0; i < s->failing.len; i++) {
            sim_failing f = s->failing.at[i];
            if (f.target != target || (f.part != 0 && f.part != part))
                continue;
            if (f.once)
                s->failing.at[i] = s->failing.at[--s->failing.len];
            return fails(s, target);
        }
    return fails_by_chance(s, target);
}

bool sim_doomed(const sim *s, uint32_t target, name_id part)
{
    if (s->herd.targets.at[target].flags & HERD_MAY_FAIL)
        for (size_t i = 0; i < s->failing.len; i++) {
            const sim_failing *f = &s->failing.at[i];
            if (f->target == target && !f->once && (f->part == 0 || part == 0 || f->part == part))
                return true;
        }
    return false;
}

/* ---- decisions ---- */

static void count_start(sim *s, sim_placement *p)
{
    s->ledger.starts++;
    if (p->started < UINT16_MAX)
        p->started++;
}

static void answer_start(sim *s, const decision *d, sim_placement *p)
{
    count_start(s, p);
    p->retrying = d->retry;
    if (!p->in_flight)
        sim_hold(s, p->target);
    p->in_flight = true;
    if (!d->retry && d->group.len > 0)
        ledger_batch_joins(&s->ledger, d, p->target);
}

static void answer_release(sim *s, const decision *d, sim_placement *p)
{
    if (p->in_flight)
        sim_let_go(s, p->target);
    if (p->in_flight && p->retrying && str_eq(d->state, STR("complete")))
        ledger_recovers(&s->ledger, d);
    p->in_flight = p->retrying = false;
}

static void answer_run(sim *s, const decision *d, uint32_t target)
{
    herd_target *t = &s->herd.targets.at[target];
    const uint64_t *bit = strmap_get(&s->interrupting, d->package);
    if ((t->flags & HERD_DRAINED) && bit)
        t->interrupted |= UINT64_C(1) << (*bit < INTERRUPT_BITS ? *bit : INTERRUPT_BITS);
    agenda_entry e = {.kind = AGENDA_STAGE,
                      .target = target,
                      .change = sim_name(s, d->change),
                      .part = sim_name(s, d->package),
                      .version = sim_name(s, d->version),
                      .stage = sim_name(s, d->stage),
                      .number = d->number};
    if (str_find(d->detail, STR("reboot")) != SIZE_MAX && str_ends(d->stage, STR("interrupt")))
        e.flags |= AGENDA_REBOOTS;
    sim_schedule(s, sim_duration(s, d->package), e);
}

static bool answer_drain(sim *s, const decision *d, uint32_t target)
{
    s->ledger.drains++;
    s->herd.targets.at[target].flags |= HERD_DRAINED;
    agenda_entry e = {.kind = AGENDA_DRAIN, .target = target};
    (void)d;
    /* A drain takes no time unless told; a deployment of that name is a job like any other. */
    const uint64_t *given = strmap_get(&s->durations, STR("drain"));
    return sim_schedule(s, given ? (int64_t)*given : 0, e);
}

static bool answer_cordon(sim *s, const decision *d, uint32_t target, err *error)
{
    herd_target *t = &s->herd.targets.at[target];
    if (d->kind == DECISION_CORDON)
        t->flags |= HERD_UNSCHEDULABLE;
    else
        t->flags &= (uint16_t)~HERD_UNSCHEDULABLE;
    return sim_fact_target(s, target, error);
}

/* The taint stands in "detail" as key=value:effect. */
static bool answer_taint(sim *s, const decision *d, uint32_t target, err *error)
{
    str rest =
        d->detail.len > 0 ? d->detail : STR("skyhook.nvidia.com=runtime-required:NoSchedule");
    str pair = str_cut(&rest, ':');
    str key = str_cut(&pair, '=');
    fact_taint t = {key, pair.ptr ? pair : STR_EMPTY, rest.ptr ? rest : STR_EMPTY};
    bool good = d->kind == DECISION_TAINT ? herd_taint(&s->herd, target, t)
                                          : herd_untaint(&s->herd, target, t);
    return (good || err_memory(error)) && sim_fact_target(s, target, error);
}

static bool answer_deploy(sim *s, const decision *d, sim_placement *p, err *error)
{
    if (!p->in_flight)
        count_start(s, p);
    name_id change = sim_name(s, d->change);
    sim_release *r = sim_release_of(s, change, p->target);
    if (!r)
        return err_memory(error);
    r->exists = true;
    r->live = sim_name(s, d->version);
    r->failed = false;
    int64_t ms = s->now_ms - s->settings.start_ms;
    ledger_span_ends(&s->ledger, r->span, false, ms);
    r->span = ledger_span_starts(&s->ledger, d, p->target, ms);
    herd_target *t = &s->herd.targets.at[p->target];
    if (!(t->flags & HERD_DISTURBED)) {
        t->flags |= HERD_DISTURBED;
        sim_hold(s, p->target);
    }
    fact f;
    sim_report_fact(s, change, p->target, r, &f);
    if (!sim_fact(s, &f, error))
        return false;
    if (s->settings.silent)
        return true;
    str part = sim_part_name(d->change);
    agenda_entry e = {.kind = AGENDA_REPORT,
                      .target = p->target,
                      .change = change,
                      .part = sim_name(s, part),
                      .version = r->live};
    return sim_schedule(s, sim_duration(s, part), e) || err_memory(error);
}

static bool answer_job(sim *s, const decision *d, sim_placement *p, err *error)
{
    if (!p->in_flight)
        count_start(s, p);
    sim_hold(s, p->target);
    agenda_entry e = {
        .kind = AGENDA_JOB,
        .target = p->target,
        .change = sim_name(s, d->change),
        .part = sim_name(s, d->environment),
        .stage = ledger_job_starts(&s->ledger, d, p->target, s->now_ms - s->settings.start_ms),
        .number = d->number};
    return sim_schedule(s, sim_duration(s, d->change), e) || err_memory(error);
}

/* How long what a job brought is measured when it has succeeded. */
static int64_t measuring_ms(const sim *s, const agenda_entry *e)
{
    release_name of = {names_text(s->names, e->change), names_text(s->names, e->part),
                       s->herd.targets.at[e->target].name};
    return engine_measuring_ms(s->engine, of);
}

bool sim_node_goes_on(sim *s, const placement_view *v, err *error)
{
    uint32_t target = herd_find(&s->herd, TARGET_NODE, v->target);
    scoped(arena_cleanup) arena *a = arena_new(0);
    node_view n;
    if (target == HERD_NONE)
        return true;
    if (!a || !engine_node(s->engine, v->change, v->target, a, &n))
        return err_memory(error);
    decision started = {.kind = DECISION_START,
                        .placement = v->id,
                        .change = v->change,
                        .target = v->target,
                        .group = v->group};
    sim_placement *own = place_of(s, &started);
    if (!own)
        return err_memory(error);
    if (!own->in_flight)
        sim_hold(s, target);
    own->in_flight = true;
    s->placements_alive++;
    for (size_t i = 0; i < n.package_count; i++) {
        const package_view *p = &n.packages[i];
        decision d = {.kind = DECISION_RUN,
                      .change = v->change,
                      .target = v->target,
                      .package = p->name,
                      .version = p->version,
                      .stage = stage_text(p->stage),
                      .detail = p->interrupt,
                      .number = p->attempt};
        if (p->running)
            answer_run(s, &d, target);
    }
    return !n.draining || answer_drain(s, NULL, target) || err_memory(error);
}

bool sim_cluster_goes_on(sim *s, const placement_view *v, err *error)
{
    decision started = {.kind = DECISION_START,
                        .placement = v->id,
                        .change = v->change,
                        .target = v->target,
                        .group = v->group};
    sim_placement *own = place_of(s, &started);
    name_id change = sim_name(s, v->change);
    str part = sim_part_name(v->change);
    sim_release *r = own ? sim_release_of(s, change, own->target) : NULL;
    if (!r)
        return err_memory(error);
    herd_target *t = &s->herd.targets.at[own->target];
    if (!(t->flags & HERD_DISTURBED)) {
        t->flags |= HERD_DISTURBED;
        sim_hold(s, own->target);
    }
    own->in_flight = true;
    s->placements_alive++;
    if (!r->exists) { /* it was released, and the write was still on its way */
        r->exists = true;
        r->live = sim_name(s, v->wanted);
    }
    agenda_entry e = {.kind = AGENDA_REPORT,
                      .target = own->target,
                      .change = change,
                      .part = sim_name(s, part),
                      .version = r->live};
    return s->settings.silent || sim_schedule(s, sim_duration(s, part), e) || err_memory(error);
}

bool sim_goes_on(sim *s, const sim_running *job, err *error)
{
    uint32_t target = herd_find(&s->herd, TARGET_RESOURCE, job->resource);
    if (target == HERD_NONE)
        return true;
    decision d = {.kind = DECISION_JOB,
                  .change = job->deployment,
                  .target = job->resource,
                  .environment = job->environment,
                  .version = job->version,
                  .group = job->group,
                  .role = job->role,
                  .number = job->number};
    bool begun = job->since_ms > 0 && job->since_ms < s->now_ms;
    int64_t since_ms = begun ? job->since_ms : s->now_ms;
    int64_t start_ms = since_ms - s->settings.start_ms; /* before the plan's own start */
    agenda_entry e = {.kind = AGENDA_JOB,
                      .target = target,
                      .change = sim_name(s, d.change),
                      .part = sim_name(s, d.environment),
                      .stage = ledger_job_starts(&s->ledger, &d, target, start_ms),
                      .number = d.number};
    int64_t left = sim_duration(s, d.change) - (s->now_ms - since_ms);
    int64_t measuring = left > 0 ? 0 : measuring_ms(s, &e);
    if (measuring > 0) {
        e.flags = AGENDA_MEASURED;
        left += measuring;
    }
    sim_hold(s, target);
    return sim_schedule(s, left > 0 ? left : 0, e) || err_memory(error);
}

static void answer_slot(sim *s, const decision *d)
{
    uint32_t target = herd_find(&s->herd, TARGET_RESOURCE, d->target);
    ledger_slot(&s->ledger, d, s->now_ms - s->settings.start_ms);
    if (target == HERD_NONE)
        return;
    if (d->taken)
        sim_hold(s, target);
    else
        sim_let_go(s, target);
}

static void answer_batch(sim *s, const decision *d, int64_t ms)
{
    ledger_batch_opens(&s->ledger, d, ms);
    for (int64_t i = 0; d->members && i < d->size; i++) {
        uint32_t target = herd_find(&s->herd, TARGET_RESOURCE, d->members[i]);
        if (target != HERD_NONE)
            ledger_batch_joins(&s->ledger, d, target);
    }
}

/* Decisions about groups, which only the ledger cares for. */
static void answer_group(sim *s, const decision *d)
{
    int64_t ms = s->now_ms - s->settings.start_ms;
    if (d->kind == DECISION_BATCH)
        answer_batch(s, d, ms);
    else if (d->kind == DECISION_JUDGE)
        ledger_batch_judged(&s->ledger, d, ms);
    else if (d->kind == DECISION_HALT)
        ledger_halts(&s->ledger, d);
    else if (d->kind == DECISION_RESET)
        ledger_resets(&s->ledger, d);
    else if (d->kind == DECISION_PASS)
        ledger_passes(&s->ledger, d, ms);
}

static void tell_decision(sim *s, const decision *d)
{
    if (!s->settings.tell && !s->hash)
        return;
    decision relative = *d;
    if (d->kind == DECISION_WAKE)
        relative.at_ms -= s->settings.start_ms;
    const group_view of = {.change = d->change, .name = d->group};
    const ledger_group *g = d->kind == DECISION_START ? ledger_find(&s->ledger, &of) : NULL;
    story_decision(&s->story, s->now_ms - s->settings.start_ms, &relative,
                   g ? g->current_batch : 0);
}

static bool answer_placed(sim *s, const decision *d, sim_placement *p, err *error)
{
    switch (d->kind) {
    case DECISION_START: answer_start(s, d, p); return true;
    case DECISION_RELEASE: answer_release(s, d, p); return true;
    case DECISION_CORDON:
    case DECISION_UNCORDON: return answer_cordon(s, d, p->target, error);
    case DECISION_DRAIN: return answer_drain(s, d, p->target) || err_memory(error);
    case DECISION_RUN: answer_run(s, d, p->target); return true;
    case DECISION_TAINT:
    case DECISION_UNTAINT: return answer_taint(s, d, p->target, error);
    case DECISION_DEPLOY: return answer_deploy(s, d, p, error);
    case DECISION_JOB: return answer_job(s, d, p, error);
    case DECISION_RECORD:
    case DECISION_REAPPLY:
    case DECISION_BATCH:
    case DECISION_JUDGE:
    case DECISION_HALT:
    case DECISION_RESET:
    case DECISION_GROUP:
    case DECISION_SLOT:
    case DECISION_PASS:
    case DECISION_FINALIZE:
    case DECISION_WAKE: return true;
    }
    return true;
}

bool sim_answer(sim *s, const decision *d, err *error)
{
    if (d->kind != DECISION_WAKE)
        s->moved_ms = s->now_ms;
    answer_group(s, d);
    tell_decision(s, d);
    if (d->kind == DECISION_SLOT)
        answer_slot(s, d);
    if (d->kind == DECISION_FINALIZE && !sim_finalize(s, d->change, error))
        return false;
    sim_placement free_node = {.target = HERD_NONE};
    sim_placement *p = place_of(s, d);
    if (p && p->target == HERD_NONE && d->target.len > 0) {
        /* Taints and cordons may concern a node no change wants anything of. */
        free_node.target = herd_find(&s->herd, TARGET_NODE, d->target);
        p = &free_node;
    }
    if (p && p->target != HERD_NONE && !answer_placed(s, d, p, error))
        return false;
    return !(s->no_memory || s->ledger.no_memory) || err_memory(error);
}

/* ---- what comes of them ---- */

static bool due_stage(sim *s, const agenda_entry *e, err *error)
{
    bool repeated = (e->flags & AGENDA_REPEATED) != 0;
    bool failed = repeated ? (e->flags & AGENDA_FAILED) != 0 : sim_fails(s, e->target, e->part);
    if ((e->flags & AGENDA_REBOOTS) && !failed && !repeated) {
        s->herd.targets.at[e->target].boots++;
        if (!sim_fact_boot(s, e->target, error))
            return false;
    }
    fact f = {.kind = FACT_STAGE,
              .stage = {.change = names_text(s->names, e->change),
                        .target = s->herd.targets.at[e->target].name,
                        .package = names_text(s->names, e->part),
                        .version = names_text(s->names, e->version),
                        .stage = names_text(s->names, e->stage),
                        .attempt = e->number,
                        .outcome = failed ? OUTCOME_FAILED : OUTCOME_SUCCEEDED,
                        .reason = failed ? STR("Failed") : STR_EMPTY}};
    if (failed)
        sim_tell(s, "%.*s %.*s fails on %.*s", STR_ARG(f.stage.package), STR_ARG(f.stage.stage),
                 STR_ARG(f.stage.target));
    repeat(s, *e, failed);
    return sim_fact(s, &f, error);
}

static bool due_job(sim *s, const agenda_entry *e, err *error)
{
    bool repeated = (e->flags & AGENDA_REPEATED) != 0;
    bool measured = (e->flags & AGENDA_MEASURED) != 0;
    bool late = (e->flags & AGENDA_LATE) != 0;
    bool failed = repeated   ? (e->flags & AGENDA_FAILED) != 0
                  : late     ? fails(s, e->target)
                  : measured ? fails_by_chance(s, e->target)
                             : sim_fails(s, e->target, e->change) ||
                                   (job_fails_by_chance(s, names_text(s->names, e->change)) &&
                                    fails(s, e->target));
    int64_t measuring = failed || repeated || measured ? 0 : measuring_ms(s, e);
    if (measuring > 0) {
        agenda_entry later = *e;
        later.flags |= AGENDA_MEASURED;
        return sim_schedule(s, measuring, later) || err_memory(error);
    }
    fact f = {.kind = FACT_JOB,
              .job = {.deployment = names_text(s->names, e->change),
                      .environment = names_text(s->names, e->part),
                      .resource = s->herd.targets.at[e->target].name,
                      .job = e->number,
                      .outcome = failed && !measured ? OUTCOME_FAILED : OUTCOME_SUCCEEDED,
                      .verification_failed = failed && measured,
                      .reason = late     ? STR("timed out")
                                : failed ? STR("Failed")
                                         : STR_EMPTY}};
    if (!repeated) {
        ledger_job_ends(&s->ledger, e->stage, failed, s->now_ms - s->settings.start_ms);
        sim_let_go(s, e->target);
    }
    if (failed)
        sim_tell(s, late ? "%.*s times out on %.*s" : "%.*s fails on %.*s",
                 STR_ARG(f.job.deployment), STR_ARG(f.job.resource));
    repeat(s, *e, failed);
    return sim_fact(s, &f, error);
}

/* Whether every bundle that was released to a cluster runs there. */
static bool cluster_is_whole(const sim *s, uint32_t target)
{
    for (size_t i = 0; i < s->bundles.len; i++) {
        uint32_t key[2] = {s->bundles.at[i], target};
        const uint64_t *at = strmap_get(&s->release_at, (str){(const char *)key, sizeof key});
        const sim_release *r = at ? &s->releases.at[*at] : NULL;
        if (r && r->exists && (r->live != r->applied || !r->ready))
            return false;
    }
    return true;
}

static bool due_report(sim *s, const agenda_entry *e, err *error)
{
    sim_release *r = sim_release_of(s, e->change, e->target);
    if (!r)
        return err_memory(error);
    if (r->live !=
        e->version) /* it was told another version meanwhile, which has an entry of its own */
        return true;
    bool repeated = (e->flags & AGENDA_REPEATED) != 0;
    if (!repeated) {
        r->failed = sim_fails(s, e->target, e->part);
        r->ready = !r->failed;
        if (!r->failed)
            r->applied = r->live;
        /* An agent tries again by itself; what always fails is left in peace until it is healed. */
        if (r->failed && !sim_doomed(s, e->target, e->part) &&
            !sim_schedule(s, sim_duration(s, names_text(s->names, e->part)), *e))
            return err_memory(error);
    }
    ledger_span_ends(&s->ledger, r->span, r->failed, s->now_ms - s->settings.start_ms);
    fact f;
    sim_report_fact(s, e->change, e->target, r, &f);
    herd_target *t = &s->herd.targets.at[e->target];
    if ((t->flags & HERD_DISTURBED) && !r->failed && cluster_is_whole(s, e->target)) {
        t->flags &= (uint16_t)~HERD_DISTURBED;
        sim_let_go(s, e->target);
    }
    repeat(s, *e, r->failed);
    return sim_fact(s, &f, error);
}

/* The end of it is told when the target answers again; a job fails at its time limit before. How
 * long it takes is taken at its word, also beyond the limit. */
static bool hold_back(sim *s, const agenda_entry *e)
{
    if (!vec_push(&s->held, *e))
        return false;
    if (e->kind != AGENDA_JOB || (e->flags & (AGENDA_REPEATED | AGENDA_MEASURED)))
        return true;
    str change = names_text(s->names, e->change);
    int64_t left = job_limit_ms(s, change) - sim_duration(s, change);
    agenda_entry late = *e;
    late.flags |= AGENDA_LATE;
    return sim_schedule(s, left > 0 ? left : 0, late);
}

/* Whether its end was held back until now; it is no more. */
static bool let_go_of_held(sim *s, const agenda_entry *e)
{
    for (size_t i = 0; i < s->held.len; i++) {
        const agenda_entry *one = &s->held.at[i];
        if (one->kind == AGENDA_JOB && one->target == e->target && one->change == e->change &&
            one->part == e->part && one->number == e->number) {
            memmove(&s->held.at[i], &s->held.at[i + 1], (s->held.len - i - 1) * sizeof *one);
            s->held.len--;
            return true;
        }
    }
    return false;
}

bool sim_due(sim *s, const agenda_entry *e, err *error)
{
    if (e->kind >= AGENDA_TARGET)
        return sim_arrives(s, e, error);
    const herd_target *t = &s->herd.targets.at[e->target];
    if (t->flags & HERD_GONE)
        return true;
    bool late = (e->flags & AGENDA_LATE) != 0;
    if (late && !let_go_of_held(s, e))
        return true;
    if ((t->flags & HERD_OFFLINE) && !late)
        return hold_back(s, e) || err_memory(error);
    switch ((agenda_kind)e->kind) {
    case AGENDA_STAGE: return due_stage(s, e, error);
    case AGENDA_JOB: return due_job(s, e, error);
    case AGENDA_REPORT: return due_report(s, e, error);
    case AGENDA_DRAIN: {
        fact f = {.kind = FACT_DRAIN, .drain = {.target = t->name, .done = true}};
        repeat(s, *e, false);
        return sim_fact(s, &f, error);
    }
    case AGENDA_TARGET:
    case AGENDA_DOCUMENT:
    case AGENDA_ACT:
    case AGENDA_RESYNC: break;
    }
    return true;
}
