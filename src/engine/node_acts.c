/* SPDX-License-Identifier: Apache-2.0 */
/* What people do to Skyhooks: pause, resume, retry, reset. */
#include "engine/nodes_internal.h"

void placement_forgive(nodes *self, node_placement *p)
{
    if (p->phase == PHASE_IDLE)
        p->retry_ms = self->core->now_ms;
    p->failures = 0;
    for (uint16_t i = 0; i < p->entries.len; i++) {
        package_entry *e = &p->entries.at[i];
        if (e->state == PACKAGE_COMPLETE)
            continue;
        e->restarts = 0;
        e->flags &= (uint8_t)~ENTRY_NEVER_RETRY;
    }
}

/* Entries go, except those of stages that run: they go when they have ended. */
void placement_reset(nodes *self, node_placement *p)
{
    for (uint16_t i = p->entries.len; i-- > 0;) {
        package_entry e = p->entries.at[i];
        if (e.flags & ENTRY_RUNNING)
            continue;
        e.stage = STAGE_NONE;
        e.state = PACKAGE_NONE;
        entry_remove(&p->entries, i);
        stage_record(self, p, &e);
    }
    p->reset_pending = p->running > 0;
    p->failed = p->malformed = false;
    p->failures = 0;
    p->retry_ms = REASON_NEVER;
    if (p->phase == PHASE_REBOOTING)
        p->phase = PHASE_WORKING;
    if (p->phase == PHASE_IDLE)
        cordon_lift(self, p);
    placement_count(self, p);
    target_touch(self, p->target);
}

/* One package runs again, from the beginning or from a stage on. What runs is let be: its outcome
 * comes later than the wish. */
static void rerun_package(nodes *self, node_placement *p, name_id name, package_stage stage)
{
    bool changed = false;
    for (uint16_t i = p->entries.len; i-- > 0;) {
        package_entry e = p->entries.at[i];
        if (e.name != name || (e.flags & ENTRY_RUNNING))
            continue;
        e.stage = (uint8_t)stage;
        e.state = stage == STAGE_NONE ? PACKAGE_NONE : PACKAGE_IN_PROGRESS;
        e.restarts = 0;
        e.losses = 0;
        e.flags = 0;
        if (stage == STAGE_NONE)
            entry_remove(&p->entries, i);
        else
            p->entries.at[i] = e;
        stage_record(self, p, &e);
        changed = true;
    }
    if (!changed)
        return;
    p->failed = false;
    p->failures = 0;
    p->retry_ms = REASON_NEVER;
    placement_count(self, p);
    target_touch(self, p->target);
}

static void rerun(nodes *self, change *c, const fact_act *act)
{
    package_stage stage = STAGE_NONE;
    name_id name = names_find(self->core->names, act->package);
    uint32_t index = target_find(self, act->target);
    node_placement *p = index == NOBODY ? NULL : placement_on(self, index, c);
    if (p && name != 0 && (act->stage.len == 0 || stage_parse(act->stage, &stage)))
        rerun_package(self, p, name, stage);
}

/* nodePriority and nodeOrderOffset begin anew; nodes with a running stage leave when it ends. */
static void forget_order(nodes *self, change *c)
{
    c->order_offset = 0;
    for (size_t i = 0; i < self->placements.len; i++) {
        node_placement *p = &self->placements.at[i];
        if (p->change != c || !p->in_priority)
            continue;
        if (p->running > 0)
            p->leave_priority = true;
        else
            priority_leave(p, false);
    }
}

static void reset_batches(nodes *self, change *c)
{
    change_reset_batches(self, c);
    c->tell_reset = true;
    forget_order(self, c);
}

/* Calls "work" for the placement of one target, or for all. */
static void each_placement(nodes *self, change *c, str target,
                           void (*work)(nodes *self, node_placement *p))
{
    if (target.len > 0) {
        uint32_t index = target_find(self, target);
        node_placement *p = index == NOBODY ? NULL : placement_on(self, index, c);
        if (p)
            work(self, p);
        return;
    }
    change_choose_placements(self, c);
    for (size_t i = 0; i < self->chosen.len; i++)
        work(self, &self->placements.at[self->chosen.at[i]]);
}

static void try_again(nodes *self, node_placement *p)
{
    if (!p->failed || p->phase != PHASE_IDLE)
        return;
    placement_forgive(self, p);
    target_touch(self, p->target);
}

static void act_on(nodes *self, change *c, const fact_act *act)
{
    switch (act->act) {
    case ACT_PAUSE: change_set_paused(self, c, true); break;
    case ACT_RESUME: change_set_paused(self, c, false); break;
    case ACT_RETRY: each_placement(self, c, act->target, try_again); break;
    case ACT_RESET:
        if (act->package.len > 0) {
            rerun(self, c, act);
            break;
        }
        if (!act->keep_batches && act->target.len == 0)
            reset_batches(self, c);
        each_placement(self, c, act->target, placement_reset);
        break;
    case ACT_RESET_BATCHES: reset_batches(self, c); break;
    case ACT_APPROVE:
    case ACT_REJECT:
    case ACT_SKIP:
    case ACT_BYPASS:
    case ACT_ROLLBACK:
    case ACT_FREEZE:
    case ACT_THAW:
    case ACT_HALT:
    case ACT_CLAIM_SLOT:
    case ACT_FREE_SLOT: break; /* of the other vocabularies */
    }
}

void node_act(nodes *self, const fact_act *act)
{
    change *c = change_find(self, act->change);
    if (c) {
        act_on(self, c, act);
        return;
    }
    /* A retry of a node without naming the Skyhook is one of all that failed there. */
    for (size_t i = 0; act->change.len == 0 && act->target.len > 0 && i < self->changes.len; i++)
        if (act->act == ACT_RETRY)
            act_on(self, self->changes.at[i], act);
}
