/* SPDX-License-Identifier: Apache-2.0 */
/* Stages of packages in a flight: which are started, and what their ends mean for the node's state.
 */
#include <assert.h>

#include "engine/interrupt.h"
#include "engine/nodes_internal.h"

/* A job that vanished so many times without an outcome is an error. */
#define LOSSES_MOST 3

void stage_record(nodes *self, const node_placement *p, const package_entry *e)
{
    decision *d = node_decide(self, DECISION_RECORD, p);
    d->package = names_text(self->core->names, e->name);
    d->version = names_text(self->core->names, e->version);
    d->stage = stage_text(e->stage);
    d->state = state_text(e->state);
    d->number = e->restarts;
    if (e->state == PACKAGE_ERRORING)
        d->detail = names_text(self->core->names, p->why);
}

/* ---- starting ---- */

/* Whether the stage begins other work than its package was at. An agent runs an interrupt once for
 * each piece of work, which it knows by its generation. */
static bool begins_work(const package_entry *e, package_stage stage)
{
    if (stage == STAGE_CONFIG)
        return e->stage == STAGE_INTERRUPT || e->stage == STAGE_POST_INTERRUPT;
    bool first = stage == STAGE_APPLY || stage == STAGE_UPGRADE || stage == STAGE_UNINSTALL;
    return first && e->stage != stage;
}

/* What is decided is what is run, whatever an edit makes of it before its job is there. */
static bool keep_interrupt(nodes *self, package_entry *e, const merged_interrupt *m)
{
    str text = interrupt_json(m, self->core->step);
    e->interrupt = text.ptr ? nodes_name(self, text) : 0;
    return e->interrupt != 0;
}

/* An agent reboots once for each piece of work: where that was done before a reset, it only says
 * so. */
static void reboot_begins(const nodes *self, const node_placement *p, package_entry *e)
{
    e->flags |= ENTRY_REBOOTS;
    if (reboot_came_before(self, p, e))
        e->flags |= ENTRY_REBOOTED;
}

static void stage_start(nodes *self, node_placement *p, uint16_t index, package_stage stage,
                        const merged_interrupt *m)
{
    const package_rules *r = &p->change->rules;
    const package_rule *wanted = &r->at[index];
    node_target *t = &self->targets.at[p->target];
    package_entry *e = entry_add(&p->entries, wanted->name, wanted->version);
    if (!e) {
        nodes_memory(self);
        return;
    }
    if (!entry_of(r, &p->entries, wanted)) /* of an older time */
        *e = (package_entry){.name = wanted->name, .version = wanted->version};
    bool first = e->stage == STAGE_NONE;
    bool installs = stage == STAGE_APPLY || stage == STAGE_UPGRADE;
    bool unproven = installs && (first || (e->flags & ENTRY_UNPROVEN));
    bool anew = e->stage != stage || e->state == PACKAGE_COMPLETE;
    /* What another operator began may have been rebooted for before Drover came. */
    if (!anew && e->attempt == 0 && stage_interrupts(stage))
        e->flags |= ENTRY_REBOOTED;
    if (stage == STAGE_CONFIG) {
        e->pending = package_pending(r, wanted, e);
        e->config = wanted->config;
    } else if (installs) {
        e->pending = 0;
    }
    assert(p->phase != PHASE_IDLE); /* I2 */
    /* How often a stage failed stays to be seen when it has succeeded; the same stage for another
     * change is counted anew. */
    if (anew)
        e->restarts = e->losses = 0;
    if (e->generation == 0 || begins_work(e, stage))
        e->generation = (uint32_t)p->change->spec->metadata.generation;
    e->stage = (uint8_t)stage;
    e->state = PACKAGE_IN_PROGRESS;
    if (p->stage_step != self->step)
        p->attempt_before = p->attempt;
    p->stage_step = self->step;
    e->attempt = ++p->attempt;
    e->flags = ENTRY_RUNNING | (anew ? 0 : e->flags & ENTRY_REBOOTED) | (first ? ENTRY_FIRST : 0) |
               (unproven ? ENTRY_UNPROVEN : 0);
    if (m && m->type == INTERRUPT_REBOOT)
        reboot_begins(self, p, e);
    e->interrupt = 0;
    if (m && !keep_interrupt(self, e, m))
        nodes_memory(self);
    p->boot = t->boot;
    running_count(t, p, e, true);
    stage_record(self, p, e);
    decision *d = node_decide(self, DECISION_RUN, p);
    d->package = wanted->spec->name;
    d->version = wanted->spec->version;
    d->stage = stage_text(stage);
    d->number = e->attempt;
    d->detail = names_text(self->core->names, e->interrupt);
}

/* Everything that is no interrupt goes first, so that one interrupt serves as many as it can.
 * Returns whether anything of that kind runs. */
static bool start_ordinary(nodes *self, node_placement *p, const uint16_t *packages, uint16_t count)
{
    const package_rules *r = &p->change->rules;
    bool runs = false;
    for (uint16_t k = 0; k < count; k++) {
        package_stage stage = package_next(r, &p->entries, packages[k]);
        if (stage_interrupts(stage))
            continue;
        runs = true;
        const package_entry *e = entry_of(r, &p->entries, &r->at[packages[k]]);
        if (!e || !(e->flags & ENTRY_RUNNING))
            stage_start(self, p, packages[k], stage, NULL);
    }
    return runs;
}

/* Folds an interrupt into that of the owner. */
static void skip(nodes *self, node_placement *p, uint16_t index, package_stage stage)
{
    const package_rules *r = &p->change->rules;
    package_entry *e = entry_of(r, &p->entries, &r->at[index]);
    assert(e && !(e->flags & ENTRY_RUNNING));
    if (e->stage == stage && e->state == PACKAGE_SKIPPED)
        return;
    e->restarts = e->losses = 0;
    e->stage = (uint8_t)stage;
    e->state = PACKAGE_SKIPPED;
    stage_record(self, p, e);
}

static void start_interrupts(nodes *self, node_placement *p, const uint16_t *packages,
                             uint16_t count, bool ordinary_runs)
{
    const package_rules *r = &p->change->rules;
    merged_interrupt m;
    if (!interrupts_merge(r, &p->entries, (package_choice){packages, count}, self->core->step,
                          &m)) {
        nodes_memory(self);
        return;
    }
    for (uint16_t k = 0; k < count; k++) {
        package_stage stage = package_next(r, &p->entries, packages[k]);
        if (!stage_interrupts(stage))
            continue;
        if (packages[k] != m.owner)
            skip(self, p, packages[k], stage);
        else if (!ordinary_runs && self->targets.at[p->target].running == 0)
            stage_start(self, p, packages[k], stage, &m);
    }
}

bool stages_run(nodes *self, node_placement *p)
{
    /* Nothing begins beside an interrupt, whosever it is. */
    if (self->targets.at[p->target].interrupts_running > 0)
        return true;
    uint16_t *packages = self->runnable.at;
    uint16_t count = packages_runnable(&p->change->rules, &p->entries, packages);
    bool runs = start_ordinary(self, p, packages, count);
    start_interrupts(self, p, packages, count, runs);
    return count > 0 || p->running > 0;
}

const package_rule *stages_drain_for(const node_placement *p)
{
    const package_rules *r = &p->change->rules;
    for (uint16_t i = 0; i < r->len; i++)
        if (package_interrupt_ahead(r, &p->entries, i))
            return &r->at[i];
    return NULL;
}

/* ---- ending ---- */

static void remove_at(nodes *self, node_placement *p, uint16_t index)
{
    package_entry gone = p->entries.at[index];
    gone.stage = STAGE_NONE;
    gone.state = PACKAGE_NONE;
    entry_remove(&p->entries, index);
    stage_record(self, p, &gone);
}

static const package_rule *rule_of(const node_placement *p, const package_entry *e)
{
    const package_rules *r = &p->change->rules;
    for (uint16_t i = 0; i < r->len; i++)
        if (r->at[i].name == e->name && r->at[i].version == e->version)
            return &r->at[i];
    return NULL;
}

/* An upgrade leaves no other version of its package behind, and neither does an uninstall. */
static void drop_other_versions(nodes *self, node_placement *p, package_entry of)
{
    for (uint16_t i = p->entries.len; i-- > 0;) {
        const package_entry *e = &p->entries.at[i];
        if (e->name == of.name && e->version != of.version && !(e->flags & ENTRY_RUNNING))
            remove_at(self, p, i);
    }
}

/* What comes after the last stage of a package is other work, of another generation. */
static void stage_done(nodes *self, const node_placement *p, package_entry *e)
{
    const package_rule *wanted = rule_of(p, e);
    if (wanted && package_ended(&p->change->rules, wanted, e))
        e->generation = 0;
    stage_record(self, p, e);
}

/* The interrupt of the owner was also that of every package that was skipped for it. */
static void finish_skipped(nodes *self, node_placement *p)
{
    for (uint16_t i = p->entries.len; i-- > 0;) {
        package_entry *e = &p->entries.at[i];
        if (e->state != PACKAGE_SKIPPED || !stage_interrupts(e->stage))
            continue;
        e->state = PACKAGE_COMPLETE;
        if (e->stage != STAGE_UNINSTALL_INTERRUPT) {
            stage_record(self, p, e);
            continue;
        }
        package_entry was = *e;
        remove_at(self, p, i);
        drop_other_versions(self, p, was);
        i = p->entries.len;
    }
}

void stage_succeeded(nodes *self, node_placement *p, package_entry *e)
{
    e->state = PACKAGE_COMPLETE;
    e->losses = 0;
    if (e->flags & ENTRY_REBOOTS)
        reboot_came(self, p, e);
    e->flags = 0;
    package_entry was = *e;
    const package_rule *wanted = rule_of(p, e);
    uint16_t index = (uint16_t)(e - p->entries.at);
    bool interrupts =
        wanted && wanted->uninstall && package_has_interrupt(&p->change->rules, wanted, NULL);
    bool gone =
        was.stage == STAGE_UNINSTALL_INTERRUPT || (was.stage == STAGE_UNINSTALL && !interrupts);
    if (gone)
        remove_at(self, p, index);
    else
        stage_done(self, p, e);
    if (was.stage == STAGE_UPGRADE || (gone && wanted))
        drop_other_versions(self, p, was);
    if (stage_interrupts(was.stage))
        finish_skipped(self, p);
}

void stage_failed(nodes *self, node_placement *p, package_entry *e, str why)
{
    e->state = PACKAGE_ERRORING;
    e->flags &= ENTRY_NEVER_RETRY | ENTRY_UNPROVEN | ENTRY_REBOOTED;
    if (!rule_of(p, e)) {
        /* A6, I5: what an edit has replaced in the meantime ends and is recorded; it says nothing
         * of the packages that are wanted now. */
        e->restarts = 0;
        e->flags &= ENTRY_UNPROVEN;
        stage_record(self, p, e);
        return;
    }
    if (e->restarts < UINT16_MAX)
        e->restarts++;
    p->failed = true;
    p->untold = false;
    p->why = nodes_name(self, why.len > 0 ? why : STR("Failed"));
    if (p->why == 0)
        nodes_memory(self);
    stage_record(self, p, e);
}

/* What never ran leaves no trace of a version that was not there: another one may still be. */
void stage_not_begun(nodes *self, node_placement *p, package_entry *e)
{
    bool first = e->flags & ENTRY_FIRST;
    e->flags &= ENTRY_UNPROVEN | ENTRY_REBOOTED;
    if (first)
        remove_at(self, p, (uint16_t)(e - p->entries.at));
}

void stages_forget(nodes *self, node_placement *p)
{
    for (uint16_t i = p->entries.len; i-- > 0;)
        if (package_left_nothing(&p->change->rules, &p->entries.at[i]))
            remove_at(self, p, i);
}

/* A job that vanished: the next attempt follows in the same claim. */
void stage_lost(nodes *self, node_placement *p, package_entry *e)
{
    e->flags &= ENTRY_REBOOTED;
    if (++e->losses < LOSSES_MOST)
        return;
    e->losses = 0;
    stage_failed(self, p, e, STR("JobLost"));
}
