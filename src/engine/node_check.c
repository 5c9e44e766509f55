/* SPDX-License-Identifier: Apache-2.0 */
/* Everything that is kept up to date step by step, computed from scratch and compared. */
#include "engine/node_gate.h"
#include "engine/nodes_internal.h"

static bool differs(const nodes *self, const node_placement *p, const char *what, err *error)
{
    return err_set(error, "%.*s on %.*s: %s",
                   STR_ARG(names_text(self->core->names, p->change->name)),
                   STR_ARG(target_name(self, p->target)), what);
}

/* ---- invariants ---- */

static bool check_claim(const nodes *self, const node_placement *p, err *error)
{
    bool claims = p->selected && cohort_state(p->change->cohort, p->member) == MEMBER_IN_FLIGHT;
    if (claims != (p->phase != PHASE_IDLE))
        return differs(
            self, p,
            claims ? "I2: it has a claim and is idle" : "I2: it is at work without a claim", error);
    unsigned running = 0;
    for (uint16_t i = 0; i < p->entries.len; i++)
        running += (p->entries.at[i].flags & ENTRY_RUNNING) != 0;
    if (running != p->running)
        return differs(self, p, "the count of running stages is wrong", error);
    if (running > 0 && p->phase == PHASE_IDLE)
        return differs(self, p, "I2: a stage runs without a claim", error);
    if (p->phase == PHASE_DRAINING && !p->cordoned)
        return differs(self, p, "I4: it drains without a cordon", error);
    if (p->done && p->cordoned)
        return differs(self, p, "I4: it is done and holds a cordon", error);
    return true;
}

static bool check_target(const nodes *self, uint32_t target, err *error)
{
    const node_target *t = &self->targets.at[target];
    unsigned running = 0;
    unsigned interrupts = 0;
    for (uint32_t i = t->first; i != NOBODY; i = self->placements.at[i].next) {
        const node_placement *p = &self->placements.at[i];
        running += p->running;
        for (uint16_t k = 0; k < p->entries.len; k++)
            interrupts += (p->entries.at[k].flags & ENTRY_RUNNING) &&
                          stage_interrupts(p->entries.at[k].stage);
    }
    if (running != t->running || interrupts != t->interrupts_running)
        return err_set(error, "%.*s: the count of running stages is wrong",
                       STR_ARG(target_name(self, target)));
    if (interrupts > 0 && running != interrupts)
        return err_set(error, "%.*s: a stage runs beside an interrupt",
                       STR_ARG(target_name(self, target)));
    return interrupts <= 1 ||
           err_set(error, "%.*s: two interrupts run", STR_ARG(target_name(self, target)));
}

bool nodes_check(const void *context, err *error)
{
    const nodes *self = context;
    for (size_t i = 0; i < self->placements.len; i++)
        if (self->placements.at[i].change && !check_claim(self, &self->placements.at[i], error))
            return false;
    for (uint32_t i = 0; i < self->targets.len; i++)
        if (self->targets.at[i].present && !check_target(self, i, error))
            return false;
    for (size_t i = 0; i < self->changes.len; i++)
        if (!cohort_check(self->changes.at[i]->cohort, error))
            return err_wrap(error, "%.*s",
                            STR_ARG(names_text(self->core->names, self->changes.at[i]->name)));
    return true;
}

/* ---- from scratch ---- */

static member_state expected_state(const nodes *self, const node_placement *p)
{
    if (p->complete)
        return MEMBER_DONE;
    unsigned gates = node_gates(self, p);
    if (gates & GATES_BLOCKED)
        return MEMBER_BLOCKED;
    if (p->failed)
        return MEMBER_FAILED;
    return gates ? MEMBER_WAITING : MEMBER_STARTABLE;
}

static bool full_placement(const nodes *self, const node_placement *p, err *error)
{
    const change *c = p->change;
    bool complete = !p->malformed && packages_complete(&c->rules, &p->entries);
    bool selected = selector_match(c->spec->spec.node_selectors.compiled,
                                   target_labels(&self->targets.at[p->target]));
    if (complete != p->complete)
        return differs(self, p, "complete is wrong", error);
    if ((selected || p->leaving) != p->selected)
        return differs(self, p, "selected is wrong", error);
    if (p->done != (p->selected && complete && p->phase == PHASE_IDLE))
        return differs(self, p, "done is wrong", error);
    if (p->wake_ms != flight_deadline(self, p))
        return differs(self, p, "its timer is wrong", error);
    if (!p->selected || p->phase != PHASE_IDLE || cohort_in_batch(c->cohort, p->member))
        return true;
    return expected_state(self, p) == cohort_state(c->cohort, p->member) ||
           differs(self, p, "its state in the cohort is wrong", error);
}

static bool full_change(const nodes *self, const change *c, err *error)
{
    int64_t selected = 0;
    int64_t not_done = 0;
    int64_t in_flight = 0;
    int64_t entries = 0;
    for (size_t i = 0; i < self->placements.len; i++) {
        const node_placement *p = &self->placements.at[i];
        if (p->change != c)
            continue;
        selected += p->selected;
        not_done += p->selected && !p->done;
        in_flight += p->phase != PHASE_IDLE;
        entries += p->in_priority;
    }
    const char *wrong = selected != c->selected            ? "selected"
                        : not_done != c->not_done          ? "not done"
                        : in_flight != c->in_flight        ? "in flight"
                        : entries != c->priority_entries   ? "nodePriority"
                        : c->cohort_dirty || c->tell_reset ? "unfinished work"
                                                           : NULL;
    return !wrong || err_set(error, "%s is wrong", wrong);
}

bool nodes_full(void *context, err *error)
{
    nodes *self = context;
    for (uint32_t i = 0; i < self->targets.len; i++)
        for (size_t k = 0; self->targets.at[i].present && k < self->changes.len; k++) {
            const change *c = self->changes.at[k];
            if (!placement_on(self, i, c) && selector_match(c->spec->spec.node_selectors.compiled,
                                                            target_labels(&self->targets.at[i])))
                return err_set(error, "%.*s has a placement too few",
                               STR_ARG(target_name(self, i)));
        }
    for (size_t i = 0; i < self->placements.len; i++)
        if (self->placements.at[i].change && !full_placement(self, &self->placements.at[i], error))
            return false;
    for (size_t i = 0; i < self->changes.len; i++)
        if (!full_change(self, self->changes.at[i], error) ||
            !cohort_full(self->changes.at[i]->cohort, error))
            return err_wrap(error, "%.*s",
                            STR_ARG(names_text(self->core->names, self->changes.at[i]->name)));
    return self->dirty.len == 0 || err_set(error, "targets are left unevaluated");
}
