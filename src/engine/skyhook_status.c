/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/skyhook_status.h"

/* ---- of a node, and of all of them ---- */

/* What the document itself says; NONE: that it goes on. Of both, a pause is what counts. */
static skyhook_state halted(const skyhook *of)
{
    if (skyhook_paused(of))
        return SKYHOOK_PAUSED;
    return skyhook_disabled(of) ? SKYHOOK_DISABLED : SKYHOOK_NONE;
}

skyhook_state node_status(const skyhook *of, placement_state state)
{
    skyhook_state halt = halted(of);
    if (halt != SKYHOOK_NONE && state != PLACEMENT_DONE)
        return halt;
    switch (state) {
    case PLACEMENT_DONE: return SKYHOOK_COMPLETE;
    case PLACEMENT_WAITING: return SKYHOOK_WAITING;
    case PLACEMENT_IN_FLIGHT: return SKYHOOK_IN_PROGRESS;
    case PLACEMENT_FAILED: return SKYHOOK_ERRORING;
    case PLACEMENT_BLOCKED: return SKYHOOK_BLOCKED;
    case PLACEMENT_EXCLUDED: break;
    }
    return SKYHOOK_UNKNOWN;
}

static skyhook_state roll_up(const node_statuses *nodes)
{
    static const skyhook_state alone[] = {SKYHOOK_ERRORING, SKYHOOK_BLOCKED, SKYHOOK_UNKNOWN,
                                          SKYHOOK_WAITING};
    int64_t open = nodes->all - nodes->of[SKYHOOK_COMPLETE];
    if (nodes->of[SKYHOOK_IN_PROGRESS] > 0)
        return SKYHOOK_IN_PROGRESS;
    for (size_t i = 0; i < sizeof alone / sizeof alone[0]; i++)
        if (nodes->of[alone[i]] == open)
            return alone[i];
    return SKYHOOK_UNKNOWN;
}

skyhook_state skyhook_status_of(const skyhook *of, const node_statuses *nodes, held_view held)
{
    if (nodes->of[SKYHOOK_COMPLETE] == nodes->all)
        return held.policy_missing ? SKYHOOK_BLOCKED : SKYHOOK_COMPLETE;
    skyhook_state halt = halted(of);
    if (halt != SKYHOOK_NONE)
        return halt;
    if (held.policy_missing)
        return SKYHOOK_BLOCKED;
    return held.predecessor ? SKYHOOK_WAITING : roll_up(nodes);
}

int64_t nodes_in_progress(const node_statuses *nodes)
{
    return nodes->of[SKYHOOK_IN_PROGRESS] + nodes->of[SKYHOOK_ERRORING];
}

int64_t progress_percent(int64_t done, int64_t matched)
{
    return matched > 0 ? done * 100 / matched : 0;
}

/* ---- what is wrong ---- */

static bool uninstalls(package_stage stage)
{
    return stage == STAGE_UNINSTALL || stage == STAGE_UNINSTALL_INTERRUPT;
}

uint8_t node_troubles(const skyhook *of, const node_view *v)
{
    uint8_t found = v->malformed ? TROUBLE_MALFORMED : 0;
    found |= v->untolerated ? TROUBLE_UNTOLERATED : 0;
    for (size_t i = 0; i < v->package_count; i++) {
        const package_view *p = &v->packages[i];
        const package *wanted = skyhook_package(of, p->name);
        if (!wanted || !wanted->uninstall)
            continue;
        found |= wanted->uninstall->enabled ? TROUBLE_CARRIES : 0;
        if (uninstalls(p->stage))
            found |= p->state == PACKAGE_ERRORING ? TROUBLE_UNINSTALLS | TROUBLE_FAILS
                                                  : TROUBLE_UNINSTALLS;
    }
    return found;
}

deletion_blocked deletion_blocked_by(const skyhook *of, uint8_t troubles)
{
    if (!of->metadata.deletion_timestamp.set)
        return DELETION_FREE;
    if (troubles & TROUBLE_MALFORMED)
        return DELETION_MALFORMED;
    if (!(troubles & TROUBLE_CARRIES))
        return DELETION_FREE;
    return skyhook_paused(of)     ? DELETION_PAUSED
           : skyhook_disabled(of) ? DELETION_DISABLED
                                  : DELETION_FREE;
}

const char *deletion_blocked_reason(deletion_blocked why)
{
    static const char *const words[] = {
#define X(name, reason) reason,
        DELETION_BLOCKS(X)
#undef X
    };
    return words[why];
}

static bool is_done(const package *p, const package_view *v)
{
    return str_eq(v->version, p->version) && v->state == PACKAGE_COMPLETE &&
           (v->stage == STAGE_CONFIG || v->stage == STAGE_POST_INTERRUPT);
}

void package_spread_look(const package *p, const node_view *v, package_spread *spread)
{
    bool done = false;
    for (size_t i = 0; i < v->package_count; i++) {
        if (!str_eq(v->packages[i].name, p->name))
            continue;
        spread->present = true;
        spread->nodes += str_eq(v->packages[i].version, p->version);
        done |= is_done(p, &v->packages[i]);
    }
    spread->incomplete |= v->selected && !done;
}

/* It is to be uninstalled. */
static bool leaves(const skyhook *of, const package *p)
{
    bool deleted = of->metadata.deletion_timestamp.set;
    return p && p->uninstall && p->uninstall->enabled && (p->uninstall->apply || deleted);
}

bool package_dependency_leaves(const skyhook *of, const package *p, const package *dependency)
{
    return !leaves(of, p) && leaves(of, dependency);
}
