/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/node_gate.h"

bool change_before(const change *c, const change *o)
{
    if (c->spec->spec.priority != o->spec->spec.priority)
        return c->spec->spec.priority < o->spec->spec.priority;
    return str_cmp(c->spec->metadata.name, o->spec->metadata.name) < 0;
}

/* ---- taints ---- */

/* Only key and effect: a taint of another value is still the runtime-required one. */
static bool is_runtime_required(const nodes *self, const fact_taint *t)
{
    return str_eq(t->key, self->runtime_required.key) &&
           str_eq(t->effect, self->runtime_required.effect);
}

static taint_effect effect_of(str text)
{
    static const str texts[] = {
#define X(effect, name) [TAINT_##effect] = STR(name),
        TAINT_EFFECTS(X)
#undef X
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (str_eq(text, texts[i]))
            return (taint_effect)i;
    return TAINT_NONE;
}

static bool tolerated(const nodes *self, const skyhook *s, const fact_taint *t)
{
    static const toleration unschedulable = {.key = {"node.kubernetes.io/unschedulable", 32},
                                             .op = TOLERATION_EXISTS,
                                             .effect = TAINT_NO_SCHEDULE};
    if (is_runtime_required(self, t))
        return true;
    taint of = {.key = t->key, .value = t->value, .effect = effect_of(t->effect)};
    if (toleration_covers(&unschedulable, &of))
        return true;
    for (size_t i = 0; i < s->spec.additional_tolerations.len; i++)
        if (toleration_covers(&s->spec.additional_tolerations.at[i], &of))
            return true;
    return false;
}

/* Taints that come and go with the node's own health; what is in flight waits for it to return. */
static bool of_life_cycle(const fact_taint *t)
{
    return str_starts(t->key, STR("node.kubernetes.io/")) ||
           str_starts(t->key, STR("node.cloudprovider.kubernetes.io/"));
}

const fact_taint *node_untolerated_of(const nodes *self, const change *c, const node_target *t,
                                      bool in_flight)
{
    for (size_t i = 0; i < t->taint_count; i++) {
        const fact_taint *one = &t->taints[i];
        if (in_flight && of_life_cycle(one))
            continue;
        if (!tolerated(self, c->spec, one))
            return one;
    }
    return NULL;
}

const fact_taint *node_untolerated(const nodes *self, const node_placement *p, bool in_flight)
{
    return node_untolerated_of(self, p->change, &self->targets.at[p->target], in_flight);
}

bool node_blocked_in_flight(const nodes *self, const node_placement *p)
{
    return self->targets.at[p->target].ignored || node_untolerated(self, p, true);
}

/* ---- other Skyhooks ---- */

bool change_precedes(const nodes *self, const change *o, const node_placement *p)
{
    if (o == p->change || o->disabled || !change_before(o, p->change))
        return false;
    if (o->spec->spec.sequencing == SEQUENCING_ALL)
        return o->not_done > 0;
    const node_placement *q = placement_on(self, p->target, o);
    return q && q->selected && !q->done;
}

/* A Skyhook that comes before and is not done is a matter of priority, not of being busy. */
bool placement_busies(const node_placement *q, const node_placement *p)
{
    if (q == p || q->phase == PHASE_IDLE)
        return false;
    if (!q->change->disabled && change_before(q->change, p->change))
        return false;
    return !change_halted(q->change) || q->running > 0;
}

static bool held_by_priority(const nodes *self, const node_placement *p)
{
    const node_target *t = &self->targets.at[p->target];
    for (uint32_t i = t->first; i != NOBODY; i = self->placements.at[i].next)
        if (change_precedes(self, self->placements.at[i].change, p))
            return true;
    for (size_t i = 0; self->all_count > 0 && i < self->changes.len; i++) {
        const change *o = self->changes.at[i];
        if (!change_before(o, p->change))
            break;
        if (o->spec->spec.sequencing == SEQUENCING_ALL && change_precedes(self, o, p))
            return true;
    }
    return false;
}

static bool held_by_work(const nodes *self, const node_placement *p)
{
    const node_target *t = &self->targets.at[p->target];
    for (uint32_t i = t->first; i != NOBODY; i = self->placements.at[i].next)
        if (placement_busies(&self->placements.at[i], p))
            return true;
    return false;
}

/* Incomplete, and every package that is waits for one that will not come. */
static bool stuck(const node_placement *p)
{
    const package_rules *r = &p->change->rules;
    for (uint16_t i = 0; i < r->len; i++)
        if (package_next(r, &p->entries, i) != STAGE_NONE && package_free(r, &p->entries, i))
            return false;
    return !p->complete;
}

unsigned node_gates(const nodes *self, const node_placement *p)
{
    const node_target *t = &self->targets.at[p->target];
    unsigned closed = 0;
    closed |= t->ignored ? GATE_IGNORED : 0;
    closed |= t->taint_count > 0 && node_untolerated(self, p, false) ? GATE_TAINT : 0;
    closed |= t->not_ready ? GATE_NOT_READY : 0;
    closed |= p->malformed ? GATE_MALFORMED : 0;
    closed |= held_by_priority(self, p) ? GATE_PRIORITY : 0;
    closed |= held_by_work(self, p) ? GATE_BUSY : 0;
    closed |= stuck(p) ? GATE_STUCK : 0;
    return closed;
}
