/* SPDX-License-Identifier: Apache-2.0 */
/* rule_compartments_internal.h - what rule_compartments*.c share. Nobody else includes it. */
#ifndef DROVER_ENGINE_RULE_COMPARTMENTS_INTERNAL_H
#define DROVER_ENGINE_RULE_COMPARTMENTS_INTERNAL_H

#include "engine/chain.h"
#include "engine/cohort.h"

/* When a resource was created: members of a batch are picked in that order, then by name. */
static inline int64_t created_ms(const releases *r, uint32_t res)
{
    const object *o = r->resources.at[res].object;
    return o && o->metadata->creation_timestamp.set
               ? o->metadata->creation_timestamp.at.seconds * 1000
               : 0;
}

/* Whether a version group has work that the rule paces. */
bool group_paced(const releases *r, uint32_t g, uint32_t rule_);
/* Whether every partition rule has released the target, or all members of a group. */
bool released(const releases *r, uint32_t t);
bool group_released(const releases *r, uint32_t g);
/* Who needs a place in several batches takes them in one order, that of the rules: nobody holds one
 * that another waits for while it waits for that other's. */
bool has_earlier_places(const releases *r, const rel_pace *p, uint32_t t);
bool group_has_earlier_places(const releases *r, const rel_pace *p, uint32_t g);

/* Rules or versions changed under a claim that has its place and has not started: whether it takes
 * them anew, in their order, because it lacks a release or a place that comes before this one. */
bool target_lacks(const releases *r, const rel_pace *p, uint32_t t);
bool resource_lacks(const releases *r, const rel_pace *p, uint32_t res);
void give_back(releases *r, uint32_t p, uint32_t t);
void give_back_resource(releases *r, uint32_t p, uint32_t res);
/* A ceiling that shrank stops starts: who has a place there and has not begun takes it anew, and
 * those first that were picked last. */
void give_back_idle(releases *r, uint32_t p);

#endif
