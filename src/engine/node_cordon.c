/* SPDX-License-Identifier: Apache-2.0 */
/* Cordon, drain and uncordon: who holds a node out of service. */
#include <assert.h>

#include "base/mem.h"
#include "engine/nodes_internal.h"

/* An annotation cordon_X = "true" of a Skyhook that is not known here. */
static bool annotation_holds(const nodes *self, const node_target *t, bool known_too)
{
    for (size_t i = 0; t->annotations && i < t->annotations->set.len; i++) {
        label one = t->annotations->set.at[i];
        if (!str_starts(one.key, STR(NODE_CORDON)) || !str_eq(one.value, STR("true")))
            continue;
        str name = str_part(one.key, sizeof NODE_CORDON - 1, SIZE_MAX);
        if (known_too || !change_find(self, name))
            return true;
    }
    return false;
}

static bool placement_holds(const nodes *self, const node_target *t, const node_placement *but)
{
    for (uint32_t i = t->first; i != NOBODY; i = self->placements.at[i].next)
        if (&self->placements.at[i] != but && cordon_stands(&self->placements.at[i]))
            return true;
    return false;
}

bool cordon_held_by_another(const nodes *self, const node_placement *p)
{
    const node_target *t = &self->targets.at[p->target];
    return placement_holds(self, t, p) || annotation_holds(self, t, false);
}

static void cordon(nodes *self, node_placement *p, str detail)
{
    node_target *t = &self->targets.at[p->target];
    assert(p->phase != PHASE_IDLE); /* I2 */
    if (t->unschedulable && !t->uncordon_decided && !p->cordon_again &&
        !placement_holds(self, t, NULL) && !annotation_holds(self, t, true)) {
        t->cordoned_before = true;
        detail = STR("cordonedBefore");
    }
    p->cordoned = true;
    p->cordon_seen = false;
    t->uncordon_decided = false;
    node_decide(self, DECISION_CORDON, p)->detail = detail;
}

static void drain_begins(const nodes *self, node_placement *p, bool begun)
{
    p->drain_begun = begun;
    p->since_ms = self->core->now_ms;
}

/* A person gave the node back in the middle: it is taken again once, and then left to the person:
 * nothing is evicted or disturbed there until a person cordons it. */
static void cordon_restore(nodes *self, node_placement *p, bool needed)
{
    p->cordon_lost = false;
    p->drained = false;
    if (needed && !p->cordon_again) {
        p->cordon_again = true;
        cordon(self, p, STR("again"));
        p->drain_told = false;
        return;
    }
    p->cordoned = p->cordon_seen = false;
    p->no_cordon = p->drain_told = needed;
    drain_begins(self, p, true); /* its time counts anew */
    drain_block(self, p, STR_EMPTY, STR_EMPTY);
}

/* Whether a node that was given back twice may be drained, because a person has cordoned it. */
static bool cordon_allowed(const nodes *self, node_placement *p)
{
    if (p->no_cordon && self->targets.at[p->target].unschedulable)
        p->no_cordon = p->cordon_again = p->drain_told = false;
    return !p->no_cordon;
}

void drain_block(nodes *self, node_placement *p, str pod_name, str pdb)
{
    char *text = pod_name.len > 0 ? mem_alloc(pod_name.len + pdb.len + 2) : NULL;
    if (pod_name.len > 0 && !text) {
        nodes_memory(self);
        return;
    }
    if (text) {
        memcpy(text, pod_name.ptr, pod_name.len);
        text[pod_name.len] = '\0';
        if (pdb.len > 0)
            memcpy(text + pod_name.len + 1, pdb.ptr, pdb.len);
        text[pod_name.len + 1 + pdb.len] = '\0';
    }
    mem_free(p->blocker);
    p->blocker = text;
}

str drain_pod(const node_placement *p)
{
    return p->blocker ? str_of(p->blocker) : STR_EMPTY;
}

str drain_budget(const node_placement *p)
{
    return p->blocker ? str_of(p->blocker + drain_pod(p).len + 1) : STR_EMPTY;
}

static void drain(nodes *self, node_placement *p, const package_rule *of)
{
    assert(p->phase != PHASE_IDLE && p->cordoned); /* I2, and the cordon comes first */
    p->phase = PHASE_DRAINING;
    drain_begins(self, p, !self->core->settings.drains_are_told);
    p->drain_told = true;
    drain_block(self, p, STR_EMPTY, STR_EMPTY);
    node_decide(self, DECISION_DRAIN, p)->package = names_text(self->core->names, of->name);
}

void cordon_time_out(nodes *self, node_placement *p)
{
    opt_duration limit = p->change->spec->spec.drain_timeout;
    bool over = limit.set && self->core->now_ms >= p->since_ms + limit.ns / DURATION_MILLISECOND;
    if (!over || p->phase != PHASE_DRAINING || !p->drain_begun || !p->drain_told || p->drained ||
        change_halted(p->change))
        return;
    p->failed = p->untold = true;
    p->phase = PHASE_WORKING;
    p->drain_told = false;
    p->why = nodes_name(self, STR("DrainTimeout"));
    if (p->failures < UINT16_MAX)
        p->failures++;
}

bool cordon_ready(nodes *self, node_placement *p)
{
    const package_rule *of = stages_drain_for(p);
    if (p->cordon_lost)
        cordon_restore(self, p, of != NULL);
    if (!of || p->drained) {
        p->phase = PHASE_WORKING;
        return true;
    }
    if (!cordon_allowed(self, p)) {
        p->phase = PHASE_DRAINING;
        p->drain_told = true;
        return false;
    }
    if (p->phase == PHASE_DRAINING && p->drain_told)
        return false;
    if (!p->cordoned)
        cordon(self, p, STR_EMPTY);
    drain(self, p, of);
    return false;
}

/* While a state is restored nobody hears what is decided: the first step looks at everybody again.
 */
void cordon_lift(nodes *self, node_placement *p)
{
    node_target *t = &self->targets.at[p->target];
    if (!p->cordoned || !self->core->out)
        return;
    p->cordoned = p->cordon_seen = p->cordon_lost = p->drained = false;
    if (t->cordoned_before || cordon_held_by_another(self, p))
        return;
    t->uncordon_decided = true;
    node_decide(self, DECISION_UNCORDON, p);
}

void cordon_take(nodes *self, const fact_drain *f)
{
    uint32_t target = target_find(self, f->target);
    if (target == NOBODY)
        return;
    for (uint32_t i = self->targets.at[target].first; i != NOBODY;
         i = self->placements.at[i].next) {
        node_placement *p = &self->placements.at[i];
        if (p->phase != PHASE_DRAINING || p->no_cordon)
            continue;
        if (f->begun && !p->drain_begun) {
            drain_begins(self, p, true);
            target_touch(self, target);
        }
        if (f->begun)
            continue;
        p->drained = f->done;
        drain_block(self, p, f->done ? STR_EMPTY : f->blocking_pod, f->blocking_budget);
        if (f->done)
            target_touch(self, target);
    }
}

/* Whether annotations say that the placement holds the cordon. A shell writes that in one patch
 * with the cordon itself. */
static bool is_noted(const nodes *self, const node_placement *p, const label_block *annotations)
{
    str name = names_text(self->core->names, p->change->name);
    return str_eq(annotation_of(annotations, STR(NODE_CORDON), name), STR("true"));
}

static void give_back(node_placement *p)
{
    p->cordon_lost = p->phase != PHASE_IDLE;
    p->cordoned = p->phase != PHASE_IDLE;
    p->drained = false;
}

/* The mark of a person's cordon says nothing more once the person has given the node back: it goes
 * with the next patch, which may be that of a cordon. Until that is seen it stands there still. */
static void see_cordon_before(node_target *t, bool free_now)
{
    str mark = target_annotation(t, STR(NODE_CORDONED_BEFORE), STR_EMPTY);
    bool marked = str_eq(mark, STR("true"));
    if (marked && t->unschedulable)
        t->cordoned_before = t->before_seen = true;
    else if (free_now || (t->before_seen && !marked))
        t->cordoned_before = t->before_seen = false;
}

/* Until a cordon that is decided stands there with its note, what the node shows is a person's. */
static void see_cordon_meanwhile(const nodes *self, node_target *t)
{
    if (self->core->settings.ends_are_told && placement_holds(self, t, NULL) &&
        !annotation_holds(self, t, true))
        t->cordoned_before = t->unschedulable;
}

/* A cordon that stands there may be another one's; and what was noted before may be of the last
 * claim, so only a note that is new tells of a cordon that came and went unseen. */
void cordon_see(nodes *self, node_target *t, const label_block *before, bool changed)
{
    bool given_back = false, told = self->core->settings.ends_are_told;
    for (uint32_t i = t->first; i != NOBODY; i = self->placements.at[i].next) {
        node_placement *p = &self->placements.at[i];
        if (!p->cordoned)
            continue;
        bool noted = is_noted(self, p, t->annotations);
        if (t->unschedulable) {
            p->cordon_seen |= noted || !told;
        } else if (p->cordon_seen || (noted && !is_noted(self, p, before))) {
            given_back = true;
            give_back(p);
        }
    }
    bool free_now = !t->unschedulable && (given_back || !placement_holds(self, t, NULL));
    see_cordon_before(t, free_now);
    if (changed)
        see_cordon_meanwhile(self, t);
}

void cordon_recall(const nodes *self, node_placement *p)
{
    if (!self->core->settings.ends_are_told || !p->cordoned)
        return;
    p->cordon_seen = true;
    if (!self->targets.at[p->target].unschedulable)
        give_back(p);
}
