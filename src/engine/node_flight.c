/* SPDX-License-Identifier: Apache-2.0 */
/* A placement from its claim to its outcome.
 *
 *     claimed -> [cordon -> drain] -> stages ... -> [uncordon] -> done
 *                                        |-> failed: the cordon stays, tried again later
 *                                        |-> blocked: the node may not be touched any more */
#include <assert.h>

#include "engine/node_gate.h"
#include "engine/nodes_internal.h"
#include "engine/pod_rules.h"

#define BACKOFF_FIRST_MS (INT64_C(10) * 1000)

static str compartment_name(nodes *self, const node_placement *p)
{
    size_t index = cohort_compartment_of(p->change->cohort, p->member);
    compartment_view v;
    if (index == SIZE_MAX)
        return STR_EMPTY;
    cohort_view(p->change->cohort, index, &v);
    return core_text(self->core, v.rule->name);
}

void flight_start(nodes *self, node_placement *p, bool again, const cohort_event *e, int64_t order)
{
    change *c = p->change;
    node_target *t = &self->targets.at[p->target];
    assert(p->phase == PHASE_IDLE);
    p->phase = PHASE_WORKING;
    p->claims++;
    p->claim_step = self->step;
    p->refused_ms = self->core->now_ms;
    p->failed = p->forgiven = false;
    p->cordon_again = p->cordon_lost = p->no_cordon = false;
    c->in_flight++;
    t->touched = true;
    if (!p->in_priority) {
        p->in_priority = true;
        p->order = (uint32_t)order;
        c->priority_entries++;
    }
    decision *d = node_decide(self, DECISION_START, p);
    d->version = names_text(self->core->names, c->packages);
    d->group = core_text(self->core, e->compartment);
    d->number = p->order;
    d->first = p->entries.len == 0;
    d->retry = again;
    placement_count(self, p);
    target_touch(self, p->target);
}

void priority_leave(node_placement *p, bool counts)
{
    if (!p->in_priority)
        return;
    p->in_priority = false;
    p->change->priority_entries--;
    p->change->order_offset += counts && !p->leave_priority;
    p->leave_priority = false;
}

/* The back-off: 10 s, 20 s, 40 s ... at most 300 s; not by itself once the retries are used up. */
static int64_t retry_time(const nodes *self, const node_placement *p)
{
    int64_t failures = p->failures;
    for (uint16_t i = 0; i < p->entries.len; i++) {
        const package_entry *e = &p->entries.at[i];
        if (e->state != PACKAGE_ERRORING)
            continue;
        if (e->flags & ENTRY_NEVER_RETRY)
            return REASON_NEVER;
        failures = e->restarts > failures ? e->restarts : failures;
    }
    if (failures >
        (self->core->settings.stage_retries < 0 ? 0 : self->core->settings.stage_retries))
        return REASON_NEVER;
    int64_t delay = BACKOFF_FIRST_MS;
    for (int64_t i = 1; i < failures && delay < BACKOFF_MOST_MS; i++)
        delay *= 2;
    return self->core->now_ms + (delay < BACKOFF_MOST_MS ? delay : BACKOFF_MOST_MS);
}

static str outcome_text(member_state end)
{
    return end == MEMBER_DONE     ? STR("complete")
           : end == MEMBER_FAILED ? STR("erroring")
                                  : STR("blocked");
}

/* Whatever the node does from now on is not of our doing. */
static void flight_rests(const nodes *self, node_placement *p)
{
    uint64_t boot = self->targets.at[p->target].boot;
    p->boot = boot != 0 ? boot : p->boot;
}

void flight_release(nodes *self, node_placement *p, member_state end)
{
    change *c = p->change;
    assert(p->phase != PHASE_IDLE && p->running == 0);
    str group = compartment_name(self, p);
    /* A cordon that is only decided is taken back: its claim may not be durable. */
    bool unseen = self->core->settings.ends_are_told && !p->drained && !p->cordon_seen;
    p->phase = PHASE_IDLE;
    flight_rests(self, p);
    drain_block(self, p, STR_EMPTY, STR_EMPTY);
    p->drain_told = false;
    c->in_flight--;
    c->cohort_dirty = true;
    p->failed = end == MEMBER_FAILED;
    if (end == MEMBER_DONE) {
        p->failures = 0;
        p->why = 0;
        cordon_lift(self, p);
        priority_leave(p, true);
    } else if (unseen) {
        cordon_lift(self, p);
    }
    if (end == MEMBER_BLOCKED)
        placement_forgive(self, p); /* it is fresh when it is released */
    p->retry_ms = p->failed ? retry_time(self, p) : REASON_NEVER;
    if (p->cordon_lost) { /* a person gave the node back, and nobody took it again */
        p->cordoned = p->cordon_seen = p->cordon_lost = p->drained = false;
    }
    cohort_set_held(c->cohort, p->member, p->cordoned);
    if (!cohort_outcome(c->cohort, p->member, end) ||
        !cohort_set_retry(c->cohort, p->member, p->retry_ms))
        nodes_memory(self);
    decision *d = node_decide(self, DECISION_RELEASE, p);
    d->group = group;
    d->state = outcome_text(end);
    d->failed = p->failed;
    d->untold = p->failed && p->untold;
    p->untold = false;
    if (p->failed)
        d->detail = names_text(self->core->names, p->why);
    ends_begin(self, p);
    placement_count(self, p);
    target_touch(self, p->target);
}

void flight_gone(nodes *self, node_placement *p)
{
    node_target *t = &self->targets.at[p->target];
    p->leaving = false;
    if (p->phase == PHASE_IDLE)
        return;
    decision *d = node_decide(self, DECISION_RELEASE, p);
    d->group = compartment_name(self, p);
    d->state = STR("gone");
    for (uint16_t i = 0; i < p->entries.len; i++) {
        package_entry *e = &p->entries.at[i];
        if (e->flags & ENTRY_RUNNING)
            running_count(t, p, e, false);
        if (e->flags & ENTRY_RUNNING) /* nobody will know what it did */
            e->flags &= (uint8_t)~ENTRY_UNPROVEN;
        e->flags &= (uint8_t)~(ENTRY_RUNNING | ENTRY_REBOOTS | ENTRY_EARLY);
    }
    p->phase = PHASE_IDLE;
    flight_rests(self, p);
    p->retry_ms = p->failed ? retry_time(self, p) : REASON_NEVER; /* should it come back */
    p->change->in_flight--;
    ends_begin(self, p);
    if (p->reset_pending)
        placement_reset(self, p);
    target_touch(self, p->target);
}

/* Ends what runs as failed, too: its outcome will not come. */
void flight_fail(nodes *self, node_placement *p, str why)
{
    node_target *t = &self->targets.at[p->target];
    bool stage = false;
    for (uint16_t i = 0; i < p->entries.len; i++) {
        package_entry *e = &p->entries.at[i];
        bool waits = p->phase == PHASE_REBOOTING && (e->flags & ENTRY_REBOOTS);
        if (!(e->flags & ENTRY_RUNNING) && !waits)
            continue;
        if (e->flags & ENTRY_RUNNING)
            running_count(t, p, e, false);
        e->flags &= (uint8_t)~ENTRY_UNPROVEN;
        stage_failed(self, p, e, why);
        stage = true;
    }
    if (!stage) {
        if (p->failures < UINT16_MAX)
            p->failures++;
        p->why = nodes_name(self, why);
    }
    p->failed = true;
    p->untold = !stage;
    flight_release(self, p, MEMBER_FAILED);
    if (p->reset_pending)
        placement_reset(self, p);
}

/* ---- outcomes of stages ---- */

static package_entry *entry_answered(nodes *self, const fact_stage *f, node_placement **ret)
{
    change *c = change_find(self, f->change);
    uint32_t target = target_find(self, f->target);
    node_placement *p = c && target != NOBODY ? placement_on(self, target, c) : NULL;
    if (!p)
        return NULL;
    *ret = p;
    package_entry *e = entry_find(&p->entries, names_find(self->core->names, f->package),
                                  names_find(self->core->names, f->version));
    /* Evidence of another attempt says nothing of this one (I5). */
    if (!e || !(e->flags & ENTRY_RUNNING) || e->attempt != f->attempt ||
        !str_eq(f->stage, stage_text(e->stage)))
        return NULL;
    return e;
}

void flight_stage(nodes *self, const fact_stage *f)
{
    node_placement *p = NULL;
    package_entry *e = entry_answered(self, f, &p);
    if (!e)
        return;
    e->flags &= (uint8_t)~ENTRY_RUNNING;
    running_count(&self->targets.at[p->target], p, e, false);
    bool never =
        f->never_retry || (f->outcome == OUTCOME_FAILED && stage_only_fails_again(f->reason));
    if (never)
        e->flags |= ENTRY_NEVER_RETRY;
    if (!f->nothing_ran && !f->not_begun)
        e->flags &= (uint8_t)~ENTRY_UNPROVEN;
    if (f->found)
        found_given(p, e);
    if (f->outcome == OUTCOME_LOST && f->not_begun)
        stage_not_begun(self, p, e);
    else if (f->outcome == OUTCOME_SUCCEEDED && !reboot_is_due(self, p, e))
        stage_succeeded(self, p, e);
    else if (f->outcome == OUTCOME_SUCCEEDED)
        reboot_wait_said(self, p, e);
    else if ((e->flags & ENTRY_REBOOTS) && !never)
        reboot_wait(self, p, f->reason);
    else if (f->outcome == OUTCOME_LOST)
        stage_lost(self, p, e);
    else
        stage_failed(self, p, e, f->reason);
    if (p->running == 0 && p->leave_priority)
        priority_leave(p, false);
    if (p->running == 0 && p->reset_pending)
        placement_reset(self, p);
    placement_count(self, p); /* what waits for a reboot is not looked at until it is over */
    target_touch(self, p->target);
}

/* ---- the way ---- */

static bool node_is_lost(const nodes *self, const node_placement *p)
{
    const node_target *t = &self->targets.at[p->target];
    return p->phase != PHASE_REBOOTING && t->not_ready &&
           self->core->now_ms >= t->ready_ms + self->core->settings.node_lost_after_ms;
}

/* Ends the flight if it must end. */
static bool flight_ends(nodes *self, node_placement *p)
{
    if (p->leaving && p->running == 0) {
        flight_gone(self, p);
        placement_leave(self, p);
        return true;
    }
    if (node_is_lost(self, p)) {
        flight_fail(self, p, STR("NodeLost"));
        return true;
    }
    int64_t refused = ends_deadline(p);
    if (refused != REASON_NEVER && refused <= self->core->now_ms) {
        flight_fail(self, p, STR("NodeRefused"));
        return true;
    }
    cordon_time_out(self, p);
    if (p->reset_pending)
        return true; /* a reset waits for the running stage */
    if (p->phase == PHASE_REBOOTING)
        reboot_advance(self, p);
    if (p->phase == PHASE_IDLE || p->phase == PHASE_REBOOTING)
        return true;
    bool blocked = node_blocked_in_flight(self, p);
    placement_count(self, p);
    bool complete = p->complete && !p->failed;
    if (!blocked && !p->failed && !complete && !p->leaving)
        return false;
    if (p->running == 0)
        flight_release(self, p,
                       p->failed  ? MEMBER_FAILED
                       : complete ? MEMBER_DONE
                                  : MEMBER_BLOCKED);
    return true;
}

void flight_advance(nodes *self, node_placement *p)
{
    if (flight_ends(self, p))
        return;
    if (change_halted(p->change)) {
        p->drain_told = false; /* evictions stop; they are asked for again afterwards */
        return;
    }
    if (self->targets.at[p->target].not_ready || !cordon_ready(self, p))
        return;
    if (!stages_run(self, p))
        flight_release(self, p, MEMBER_BLOCKED);
}
