/* SPDX-License-Identifier: Apache-2.0 */
/* Placements and compartments as the engine shows them. */
#include <stdlib.h>

#include "base/mem.h"
#include "engine/node_gate.h"
#include "engine/nodes_internal.h"
#include "engine/policy_rules.h"

#define CURRENT_TEXT_BYTES (1024u * 1024u)

static placement_state state_of(const nodes *self, const node_placement *p)
{
    if (p->phase != PHASE_IDLE)
        return PLACEMENT_IN_FLIGHT;
    if (p->complete)
        return PLACEMENT_DONE;
    if (self->targets.at[p->target].ignored || node_untolerated(self, p, false))
        return PLACEMENT_BLOCKED;
    return p->failed ? PLACEMENT_FAILED : PLACEMENT_WAITING;
}

/* "a:1.0,b:2" of what is installed: interned, since many nodes have the same. False without memory.
 */
static bool current_text(const nodes *self, const node_placement *p, str *ret)
{
    names *table = self->core->names;
    *ret = STR_EMPTY;
    buf text = BUF(CURRENT_TEXT_BYTES);
    for (uint16_t i = 0; i < p->entries.len; i++) {
        const package_entry *e = &p->entries.at[i];
        bool installed = e->stage == STAGE_POST_INTERRUPT || e->stage == STAGE_CONFIG ||
                         e->stage == STAGE_INTERRUPT;
        if (installed)
            buf_addf(&text, "%s%.*s:%.*s", text.len > 0 ? "," : "",
                     STR_ARG(names_text(table, e->name)), STR_ARG(names_text(table, e->version)));
    }
    name_id id = text.len > 0 && !text.failed ? names_add(table, buf_str(&text)) : 0;
    bool good = !text.failed && (text.len == 0 || id != 0);
    buf_done(&text);
    if (id != 0)
        *ret = names_text(table, id);
    return good;
}

static bool view_of(const nodes *self, const node_placement *p, placement_view *ret)
{
    const change *c = p->change;
    size_t index = cohort_compartment_of(c->cohort, p->member);
    compartment_view v = {0};
    if (index != SIZE_MAX)
        cohort_view(c->cohort, index, &v);
    *ret = (placement_view){
        .id = p->id,
        .kind = TARGET_NODE,
        .state = state_of(self, p),
        .change = names_text(self->core->names, c->name),
        .target = target_name(self, p->target),
        .environment = STR_EMPTY,
        .wanted = names_text(self->core->names, c->packages),
        .group = v.rule ? v.rule->name : STR_EMPTY,
    };
    return current_text(self, p, &ret->current);
}

bool nodes_placement(const void *context, placement_id id, placement_view *ret)
{
    const nodes *self = context;
    const node_placement *p = placement_by_id(self, id);
    return p && p->selected && view_of(self, p, ret);
}

typedef struct sorted {
    str change;
    str target;
    uint32_t placement;
} sorted;

static int by_names(const void *a, const void *b)
{
    const sorted *x = a;
    const sorted *y = b;
    int order = str_cmp(x->change, y->change);
    return order != 0 ? order : str_cmp(x->target, y->target);
}

bool nodes_placements(const void *context, placement_visitor visit, void *visit_context)
{
    const nodes *self = context;
    VEC(sorted) all = {0};
    bool good = true;
    for (uint32_t i = 0; good && i < self->placements.len; i++) {
        const node_placement *p = &self->placements.at[i];
        if (!p->change || !p->selected)
            continue;
        sorted one = {names_text(self->core->names, p->change->name), target_name(self, p->target),
                      i};
        good = vec_push(&all, one);
    }
    if (all.len > 1)
        qsort(all.at, all.len, sizeof *all.at, by_names);
    for (size_t i = 0; good && i < all.len; i++) {
        placement_view view;
        good = view_of(self, &self->placements.at[all.at[i].placement], &view);
        if (!good || !visit(visit_context, &view))
            break;
    }
    vec_done(&all);
    return good;
}

bool nodes_paused(const void *self, str change_name)
{
    const change *c = change_find(self, change_name);
    return c && c->paused;
}

void nodes_groups(const void *context, group_visitor visit, void *visit_context)
{
    const nodes *self = context;
    for (size_t i = 0; i < self->changes.len; i++) {
        const group_view of = {.change =
                                   names_text(self->core->names, self->changes.at[i]->name)};
        if (!policy_groups(self->changes.at[i]->cohort, &of, visit, visit_context))
            return;
    }
}
