/* SPDX-License-Identifier: Apache-2.0 */
/* Ends of claims that a shell has to make durable before anybody takes the place they free.
 *
 * A claim that has ended is unwritten until its node says so: after a crash it would be in flight
 * again, and a node whose uncordon is not written is still out of service. Writing takes a moment,
 * in which nothing starts in the Skyhook. An end that cannot be written holds back no more than its
 * own place: it counts as taken until a person has repaired what is in the way.
 *
 * The same goes for a flight of which nothing can be written: it fails after a while, so that its
 * batch does not wait for it for ever, and is tried again when what was in the way is gone. */
#include "base/mem.h"
#include "engine/nodes_internal.h"

#define REFUSED_MOST_MS (INT64_C(300) * 1000)

static void ends_as(node_placement *p, node_end end)
{
    change *c = p->change;
    c->unwritten -= p->end == END_UNWRITTEN;
    c->cohort_dirty = true;
    p->end = (uint8_t)end;
    if (p->selected)
        cohort_set_stuck(c->cohort, p->member, end == END_STUCK);
}

void ends_begin(nodes *self, node_placement *p)
{
    if (!self->core->settings.ends_are_told || p->end != END_WRITTEN)
        return;
    p->end = END_UNWRITTEN;
    p->change->unwritten++;
    if (p->refused)
        ends_as(p, END_STUCK);
}

int64_t ends_deadline(const node_placement *p)
{
    return p->refused ? p->refused_ms + REFUSED_MOST_MS : REASON_NEVER;
}

void ends_forget(node_placement *p)
{
    if (p->end != END_WRITTEN)
        ends_as(p, END_WRITTEN);
}

void ends_take(nodes *self, const fact_kept *f)
{
    change *c = change_find(self, f->change);
    uint32_t target = c ? target_find(self, f->target) : NOBODY;
    node_placement *p = target == NOBODY ? NULL : placement_on(self, target, c);
    if (!p)
        return;
    mem_free(p->hindrance);
    p->hindrance = f->durable ? NULL : nodes_copy(self, f->why);
    if (f->passing)
        return;
    bool before = p->refused;
    p->refused = !f->durable;
    if (!before)
        p->refused_ms = self->core->now_ms;
    if (f->durable)
        ends_forget(p);
    else if (p->end == END_UNWRITTEN)
        ends_as(p, END_STUCK);
    if (f->durable && before && p->failed && p->phase == PHASE_IDLE)
        placement_forgive(self, p);
    if (before != p->refused)
        target_touch(self, target);
}
