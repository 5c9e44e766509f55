/* SPDX-License-Identifier: Apache-2.0 */
/* A Skyhook that is being deleted: who still has something of it, and when its finalizer may go.
 *
 * Packages with uninstall.enabled are uninstalled, paced like any other work, wherever they are:
 * also on nodes that the Skyhook no longer selects, since nobody is left to do it afterwards. When
 * no such package is left and nothing runs, the finalizer may go; what cannot be uninstalled stays
 * where it is. */
#include "engine/nodes_internal.h"

bool change_has_finalizer(const change *c)
{
    str_list all = c->spec->metadata.finalizers;
    for (size_t i = 0; i < all.len; i++)
        if (str_eq(all.at[i], STR(SKYHOOK_FINALIZER)))
            return true;
    return false;
}

/* A package that shall go is there, in whatever version. */
static bool carries(const node_placement *p)
{
    const package_rules *r = &p->change->rules;
    for (uint16_t i = 0; i < r->len; i++)
        if (r->at[i].uninstall && !package_complete(r, &p->entries, i))
            return true;
    return false;
}

bool deletion_asks(const nodes *self, uint32_t target, const change *c)
{
    str name = names_text(self->core->names, c->name);
    return change_deleting(c) &&
           target_annotation(&self->targets.at[target], STR(NODE_STATE), name).ptr;
}

bool deletion_takes(const node_placement *p)
{
    return change_deleting(p->change) && (p->astray || p->malformed || carries(p));
}

bool deletion_ends(const change *c)
{
    return change_deleting(c) && change_has_finalizer(c) && c->not_done == 0 && c->in_flight == 0;
}

void deletions_step(nodes *self)
{
    for (size_t i = 0; i < self->changes.len && !self->core->no_memory; i++) {
        change *c = self->changes.at[i];
        bool ends = deletion_ends(c);
        if (ends && !c->finalizer_told)
            node_decide(self, DECISION_FINALIZE, NULL)->change =
                names_text(self->core->names, c->name);
        c->finalizer_told = ends;
    }
}
