/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/runtime_required.h"

void runtime_required_parse(str text, fact_taint *ret)
{
    str rest = text;
    str pair = str_cut(&rest, ':');
    str key = str_cut(&pair, '=');
    *ret = (fact_taint){key, pair.ptr ? pair : STR_EMPTY, rest.ptr ? rest : STR_EMPTY};
}

static bool has_taint(const node_target *t)
{
    return (t->tainted && !t->untaint_decided) || t->taint_decided;
}

static void decide(nodes *self, uint32_t target, decision_kind kind)
{
    decision *d = node_decide(self, kind, NULL);
    d->target = target_name(self, target);
    d->detail = self->core->settings.runtime_required_taint;
}

bool runtime_required_holds(const change *c)
{
    return c->spec->spec.runtime_required && !change_deleting(c);
}

void runtime_required_taint(nodes *self, uint32_t target)
{
    node_target *t = &self->targets.at[target];
    if (t->touched || has_taint(t))
        return;
    for (uint32_t i = t->first; i != NOBODY; i = self->placements.at[i].next) {
        const node_placement *p = &self->placements.at[i];
        if (!p->selected || !runtime_required_holds(p->change) ||
            !p->change->spec->spec.auto_taint_new_nodes)
            continue;
        t->touched = t->taint_decided = t->auto_tainted = true;
        decide(self, target, DECISION_TAINT);
        return;
    }
}

static void take_away(nodes *self, uint32_t target)
{
    node_target *t = &self->targets.at[target];
    t->untaint_decided = t->tainted;
    t->taint_decided = t->auto_tainted = false;
    decide(self, target, DECISION_UNTAINT);
}

/* Whether some runtimeRequired Skyhook selects the node, and whether one of them is not done there.
 */
static void holders(const nodes *self, uint32_t target, bool *ret_any, bool *ret_waits)
{
    for (uint32_t i = self->targets.at[target].first; i != NOBODY;
         i = self->placements.at[i].next) {
        const node_placement *p = &self->placements.at[i];
        if (!p->selected || !runtime_required_holds(p->change))
            continue;
        *ret_any = true;
        *ret_waits |= !p->done;
    }
}

void runtime_required_untaint(nodes *self, uint32_t target)
{
    bool any = false;
    bool waits = false;
    if (!has_taint(&self->targets.at[target]))
        return;
    holders(self, target, &any, &waits);
    if (any && !waits)
        take_away(self, target);
}

void runtime_required_leave(nodes *self, const node_placement *p, bool was_done)
{
    const node_target *t = &self->targets.at[p->target];
    bool any = false;
    bool waits = false;
    if (!t->present || !has_taint(t) || !(t->auto_tainted || was_done))
        return;
    holders(self, p->target, &any, &waits);
    if (!waits)
        take_away(self, p->target);
}
