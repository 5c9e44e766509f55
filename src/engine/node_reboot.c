/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes that go away and come back: reboots of ours, reboots of others, and deadlines.
 *
 * The job of a reboot dies with the node, so its end without success says nothing yet. Another
 * bootID and a ready node: the next attempt follows in the same claim. Ready with the old one for a
 * while: it failed. Neither: the node is lost.
 *
 * Success that is said in the boot that the job began in waits for the reboot in the same way,
 * since some agents only ask for it; then it counts. One that is said again after that has failed
 * counts, too: its host was rebooted for this before anybody looked, as where a cluster was set
 * back. */
#include <inttypes.h>

#include "base/mem.h"
#include "base/num.h"
#include "engine/nodes_internal.h"

#define REBOOTED_TEXT_BYTES (4u * 1024u * 1024u)

static package_entry *rebooting_entry(const node_placement *p)
{
    for (uint16_t i = 0; i < p->entries.len; i++)
        if (p->entries.at[i].flags & ENTRY_REBOOTS)
            return &p->entries.at[i];
    return NULL;
}

void reboot_wait(nodes *self, node_placement *p, str why)
{
    p->phase = PHASE_REBOOTING;
    p->since_ms = self->core->now_ms;
    p->why = nodes_name(self, why);
}

void reboot_wait_said(nodes *self, node_placement *p, package_entry *e)
{
    e->flags |= ENTRY_EARLY;
    reboot_wait(self, p, STR_EMPTY);
}

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* A node that does not say what boot it is in cannot be waited for. */
bool reboot_is_due(const nodes *self, const node_placement *p, const package_entry *e)
{
    uint64_t boot = self->targets.at[p->target].boot;
    return (e->flags & ENTRY_REBOOTS) && !(e->flags & ENTRY_REBOOTED) && boot != 0 &&
           boot == p->boot;
}

/* Generation of the last work of the package that the node was rebooted for; 0: none is known. */
static int64_t rebooted_for(const nodes *self, const node_placement *p, name_id of)
{
    str name = names_text(self->core->names, of);
    int64_t generation = 0;
    for (str rest = names_text(self->core->names, p->rebooted); rest.ptr && rest.len > 0;) {
        str value = str_cut(&rest, ',');
        if (str_eq(str_cut(&value, '='), name) && num_parse(value, &generation))
            return generation;
    }
    return 0;
}

bool reboot_came_before(const nodes *self, const node_placement *p, const package_entry *e)
{
    return e->generation != 0 && e->generation == rebooted_for(self, p, e->name);
}

void reboot_came(nodes *self, node_placement *p, package_entry *e)
{
    const package_rules *r = &p->change->rules;
    scoped(buf_done) buf text = BUF(REBOOTED_TEXT_BYTES);
    e->flags |= ENTRY_REBOOTED;
    for (uint16_t i = 0; i < r->len; i++) { /* those that are wanted no more are forgotten */
        name_id of = r->at[i].name;
        int64_t generation = of == e->name ? e->generation : rebooted_for(self, p, of);
        if (generation != 0)
            buf_addf(&text, "%s%.*s=%" PRId64, text.len > 0 ? "," : "",
                     STR_ARG(names_text(self->core->names, of)), generation);
    }
    if (text.failed)
        nodes_memory(self);
    p->rebooted = nodes_name(self, buf_str(&text));
}

static void reboot_ends(nodes *self, node_placement *p, package_entry *e)
{
    bool said = e->flags & ENTRY_EARLY;
    reboot_came(self, p, e);
    if (said)
        stage_succeeded(self, p, e);
    else
        e->flags &= (uint8_t)~ENTRY_REBOOTS;
}

void reboot_advance(nodes *self, node_placement *p)
{
    const node_target *t = &self->targets.at[p->target];
    const engine_settings *s = &self->core->settings;
    int64_t now = self->core->now_ms;
    package_entry *e = rebooting_entry(p);
    if (!e || (t->boot != p->boot && !t->not_ready)) {
        p->phase = PHASE_WORKING;
        if (e)
            reboot_ends(self, p, e);
        return;
    }
    if (!t->not_ready && now >= later(p->since_ms, t->ready_ms) + s->reboot_grace_ms) {
        if (e->flags & ENTRY_EARLY)
            reboot_came(self, p, e);
        str why = p->why ? names_text(self->core->names, p->why) : STR("NotRebooted");
        stage_failed(self, p, e, why);
        p->phase = PHASE_WORKING;
        return;
    }
    if (now >= p->since_ms + s->node_lost_after_ms)
        flight_fail(self, p, STR("NodeLost"));
}

/* Whoever rebooted the node: an interrupt that was begun has what it is for. One that another
 * package's serves was not: its own agent has done nothing, and would reboot the node. */
static void rebooted(nodes *self, node_placement *p)
{
    for (uint16_t i = 0; i < p->entries.len; i++) {
        package_entry *e = &p->entries.at[i];
        bool begun = e->state != PACKAGE_COMPLETE && e->state != PACKAGE_SKIPPED;
        if (stage_interrupts(e->stage) && begun)
            reboot_came(self, p, e);
    }
    bool ours = p->phase != PHASE_IDLE && rebooting_entry(p); /* it is part of the work */
    if (self->core->settings.reapply_on_reboot && !ours) {
        p->reapplies = p->entries.len > 0;
        placement_reset(self, p);
    } else if (p->failed && p->phase == PHASE_IDLE) {
        placement_forgive(self, p);
    }
}

void reboot_seen(nodes *self, uint32_t target)
{
    target_touch(self, target);
    for (uint32_t i = self->targets.at[target].first; i != NOBODY;
         i = self->placements.at[i].next) {
        node_placement *p = &self->placements.at[i];
        if (p->phase == PHASE_IDLE)
            p->boot = self->targets.at[target].boot;
        rebooted(self, p);
    }
}

void reboot_remembered(nodes *self, node_placement *p)
{
    uint64_t boot = self->targets.at[p->target].boot;
    if (boot == 0 || p->boot == 0 || p->boot == boot || p->phase != PHASE_IDLE)
        return;
    p->boot = boot;
    rebooted(self, p);
}

void reboot_compare(nodes *self, uint32_t target)
{
    const node_target *t = &self->targets.at[target];
    target_touch(self, target);
    for (uint32_t i = t->first; i != NOBODY; i = self->placements.at[i].next) {
        node_placement *p = &self->placements.at[i];
        if (p->boot == 0)
            p->boot = p->phase == PHASE_IDLE ? 0 : t->boot; /* not known is not another one */
        else
            reboot_remembered(self, p);
    }
}

static int64_t earlier(int64_t a, int64_t b)
{
    return a == REASON_NEVER || (b != REASON_NEVER && b < a) ? b : a;
}

int64_t flight_deadline(const nodes *self, const node_placement *p)
{
    const node_target *t = &self->targets.at[p->target];
    const engine_settings *s = &self->core->settings;
    opt_duration limit = p->change->spec->spec.drain_timeout;
    int64_t at = ends_deadline(p);
    switch ((node_phase)p->phase) {
    case PHASE_IDLE: return REASON_NEVER;
    case PHASE_REBOOTING:
        at = earlier(at, p->since_ms + s->node_lost_after_ms);
        if (!t->not_ready)
            at = earlier(at, later(p->since_ms, t->ready_ms) + s->reboot_grace_ms);
        return at;
    case PHASE_DRAINING:
        if (limit.set && p->drain_begun && p->drain_told && !p->drained &&
            !change_halted(p->change))
            at = earlier(at, p->since_ms + limit.ns / DURATION_MILLISECOND);
        break;
    case PHASE_WORKING: break;
    }
    return t->not_ready ? earlier(at, t->ready_ms + s->node_lost_after_ms) : at;
}
