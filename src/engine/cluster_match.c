/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/cluster_match.h"

/* Rancher shows clusters by another name than their objects'; targets may use either. */
#define DISPLAY_NAME_LABEL "management.cattle.io/cluster-display-name"

static const matched_group no_group = {STR_EMPTY, {NULL, 0}};

static bool accepts_in_group(const cluster_match *m, const match_subject *s, const matched_group *g)
{
    bool any = false;
    if (m->cluster_name.len > 0) {
        any = true;
        if (!str_eq(m->cluster_name, s->name) &&
            !str_eq(m->cluster_name, label_get(s->labels, STR(DISPLAY_NAME_LABEL))))
            return false;
    }
    if (m->cluster_group.len > 0) {
        any = true;
        if (!str_eq(m->cluster_group, g->name))
            return false;
    }
    if (m->cluster_group_selector.compiled) {
        any = true;
        if (!selector_match(m->cluster_group_selector.compiled, g->labels))
            return false;
    }
    if (m->cluster_selector.compiled) {
        any = true;
        if (!selector_match(m->cluster_selector.compiled, s->labels))
            return false;
    }
    return any;
}

static size_t view_count(const match_subject *s)
{
    return s->group_count > 0 ? s->group_count : 1;
}

static const matched_group *view_at(const match_subject *s, size_t index)
{
    return s->group_count > 0 ? &s->groups[index] : &no_group;
}

bool cluster_match_accepts(const cluster_match *m, const match_subject *s)
{
    for (size_t i = 0; i < view_count(s); i++)
        if (accepts_in_group(m, s, view_at(s, i)))
            return true;
    return false;
}

/* The target accepts the cluster, and some restriction does so under the same group. */
static bool target_accepts(const bundle_spec *spec, const bundle_target *target,
                           const match_subject *s)
{
    for (size_t i = 0; i < view_count(s); i++) {
        const matched_group *group = view_at(s, i);
        if (!accepts_in_group(&target->match, s, group))
            continue;
        if (spec->target_restrictions.len == 0)
            return true;
        for (size_t r = 0; r < spec->target_restrictions.len; r++)
            if (accepts_in_group(&spec->target_restrictions.at[r].match, s, group))
                return true;
    }
    return false;
}

/* Customizations stand in front of the targets, which are repeated as restrictions: what is
 * which is told by position alone. */
static size_t customization_count(const bundle_spec *spec)
{
    size_t restrictions = spec->target_restrictions.len;
    return restrictions > 0 && spec->targets.len > restrictions ? spec->targets.len - restrictions
                                                                : 0;
}

bool bundle_choose(const bundle_spec *spec, const match_subject *s, arena *a, match_choice *ret,
                   bool *no_memory)
{
    size_t customizations = customization_count(spec);
    size_t chosen = customizations;
    while (chosen < spec->targets.len && !target_accepts(spec, &spec->targets.at[chosen], s))
        chosen++;
    if (chosen == spec->targets.len || spec->targets.at[chosen].do_not_deploy)
        return false;
    match_choice choice = {.over = ARENA_ARRAY(a, customizations + 1, const bundle_options *),
                           .over_count = 1,
                           .key = arena_printf(a, "%zu", chosen)};
    if (choice.over)
        choice.over[0] = &spec->targets.at[chosen].options;
    for (size_t i = 0; choice.over && choice.key.ptr && i < customizations; i++) {
        const bundle_target *custom = &spec->targets.at[i];
        if (!cluster_match_accepts(&custom->match, s))
            continue;
        if (custom->do_not_deploy)
            return false;
        choice.key = arena_printf(a, "%.*s,%zu", STR_ARG(choice.key), i);
        if (spec->target_customization_mode == CUSTOMIZATION_FIRST_MATCH) {
            choice.over[0] = &custom->options; /* replaces the target's */
            break;
        }
        choice.over[choice.over_count++] = &custom->options;
    }
    if (!choice.over || !choice.key.ptr) {
        *no_memory = true;
        return false;
    }
    *ret = choice;
    return true;
}
