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
    if (p->phase == PHASE_DRAINING && !p->cordoned && !p->no_cordon)
        return differs(self, p, "I4: it drains without a cordon", error);
    if (p->done && p->cordoned)
        return differs(self, p, "I4: it is done and holds a cordon", error);
    return true;
}

/* I7: what the last step began, in the order of priorities and dependencies. What began earlier is
 * not looked at: an edit may have changed the order since. I8 is no matter of nodes: they have no
 * windows. */
static bool check_priority(const nodes *self, const node_placement *p, err *error)
{
    for (size_t i = 0; i < self->changes.len; i++) {
        const change *o = self->changes.at[i];
        int64_t before = o->spec->spec.priority - p->change->spec->spec.priority;
        if (before == 0)
            before = str_cmp(o->spec->metadata.name, p->change->spec->metadata.name);
        if (before >= 0 || o->disabled)
            continue;
        for (size_t k = 0; k < self->placements.len; k++) {
            const node_placement *q = &self->placements.at[k];
            if (q->change == o && q->selected && !q->done &&
                (q->target == p->target || o->spec->spec.sequencing == SEQUENCING_ALL))
                return differs(self, p, "I7: it began before a Skyhook that comes first was done",
                               error);
        }
    }
    return true;
}

/* Of all versions of the package it is the wanted one that ran last, to its end. */
static bool is_complete(const node_placement *p, const package_rule *wanted)
{
    const package_entry *there = NULL;
    for (uint16_t i = 0; i < p->entries.len; i++) {
        const package_entry *e = &p->entries.at[i];
        bool later = !there || e->attempt > there->attempt ||
                     (e->attempt == there->attempt && e->version == wanted->version);
        if (e->name == wanted->name && later)
            there = e;
    }
    return there && there->version == wanted->version && there->state == PACKAGE_COMPLETE &&
           (there->stage == STAGE_CONFIG || there->stage == STAGE_POST_INTERRUPT);
}

static bool check_dependencies(const nodes *self, const node_placement *p, const package_entry *e,
                               err *error)
{
    const package_rules *r = &p->change->rules;
    bool removes = e->stage == STAGE_UNINSTALL || e->stage == STAGE_UNINSTALL_INTERRUPT;
    for (uint16_t i = 0; i < r->len && !removes; i++) {
        const package_rule *wanted = &r->at[i];
        if (wanted->name != e->name || wanted->version != e->version)
            continue;
        for (uint16_t k = 0; k < wanted->need_count; k++)
            if (wanted->needs[k] == PACKAGE_NO_RULE || !is_complete(p, &r->at[wanted->needs[k]]))
                return differs(self, p,
                               "I7: a stage began before a package it depends on was complete",
                               error);
    }
    return true;
}

static bool check_order(const nodes *self, const node_placement *p, err *error)
{
    if (p->phase == PHASE_IDLE)
        return true;
    if (p->claim_step == self->step && !check_priority(self, p, error))
        return false;
    for (uint16_t i = 0; p->stage_step == self->step && i < p->entries.len; i++) {
        const package_entry *e = &p->entries.at[i];
        if (!(e->flags & ENTRY_RUNNING) || e->attempt <= p->attempt_before)
            continue;
        if (!check_dependencies(self, p, e, error))
            return false;
        if (p->change->rules.serial && p->running > 1)
            return differs(self, p, "serial: a stage began beside another package's", error);
    }
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
        if (self->placements.at[i].change && (!check_claim(self, &self->placements.at[i], error) ||
                                              !check_order(self, &self->placements.at[i], error)))
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
    bool matches = target_matches(self, p->target, c);
    bool selected = target_selected(self, p->target, c, p);
    if (complete != p->complete)
        return differs(self, p, "complete is wrong", error);
    if ((selected || p->leaving) != p->selected)
        return differs(self, p, "selected is wrong", error);
    if (p->astray != (selected && !matches))
        return differs(self, p, "astray is wrong", error);
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
    const char *wrong = selected != c->selected                 ? "selected"
                        : not_done != c->not_done               ? "not done"
                        : in_flight != c->in_flight             ? "in flight"
                        : entries != c->priority_entries        ? "nodePriority"
                        : c->cohort_dirty || c->tell_reset      ? "unfinished work"
                        : deletion_ends(c) != c->finalizer_told ? "finalizer"
                                                                : NULL;
    return !wrong || err_set(error, "%s is wrong", wrong);
}

bool nodes_full(void *context, err *error)
{
    nodes *self = context;
    for (uint32_t i = 0; i < self->targets.len; i++)
        for (size_t k = 0; self->targets.at[i].present && k < self->changes.len; k++) {
            const change *c = self->changes.at[k];
            if (!placement_on(self, i, c) && target_selected(self, i, c, NULL))
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
