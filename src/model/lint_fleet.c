/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>

#include "model/lint_parts.h"

/* Agents check in every 15 minutes by default; twice that is the least that makes sense. */
#define OFFLINE_SECONDS_LEAST 1800

/* ---- who is in a partition (fleet.md 2.1) ---- */

static bool accepts(const cluster_match *m, const object *c, const object *group)
{
    const metadata *meta = c->metadata;
    bool given = m->cluster_name.len > 0 || m->cluster_group.len > 0 ||
                 m->cluster_selector.compiled || m->cluster_group_selector.compiled;
    str display = label_get(meta->labels, STR("management.cattle.io/cluster-display-name"));
    str group_name = group ? group->metadata->name : STR_EMPTY;
    label_set group_labels = group ? group->metadata->labels : (label_set){0};
    if (m->cluster_name.len > 0 && !str_eq(m->cluster_name, meta->name) &&
        !(display.ptr && str_eq(m->cluster_name, display)))
        return false;
    if (m->cluster_group.len > 0 && !str_eq(m->cluster_group, group_name))
        return false;
    if (m->cluster_group_selector.compiled &&
        !selector_match(m->cluster_group_selector.compiled, group_labels))
        return false;
    if (m->cluster_selector.compiled && !selector_match(m->cluster_selector.compiled, meta->labels))
        return false;
    return given;
}

static bool is_member(const lint *l, const cluster_match *m, const object *c)
{
    bool grouped = false;
    size_t i = 0;
    for (const object *g = lint_next(l, KIND_CLUSTER_GROUP, &i); g;
         g = lint_next(l, KIND_CLUSTER_GROUP, &i)) {
        if (!str_eq(g->metadata->namespace_, c->metadata->namespace_) ||
            !selector_match(g->cluster_group->spec.selector.compiled, c->metadata->labels))
            continue;
        grouped = true;
        if (accepts(m, c, g))
            return true;
    }
    return !grouped && accepts(m, c, NULL);
}

/* A cluster that is in two partitions is counted in both. One example a partition is enough. */
static void lint_overlaps(lint *l, const place *list, const rollout_strategy *s)
{
    size_t count = s->partitions.len;
    bool *told = ARENA_ARRAY(l->arena, count, bool);
    if (!told) {
        l->no_memory = true;
        return;
    }
    size_t i = 0;
    for (const object *c = lint_next(l, KIND_CLUSTER, &i); c; c = lint_next(l, KIND_CLUSTER, &i)) {
        const partition *first = NULL;
        for (size_t k = 0; k < count; k++) {
            if (!is_member(l, &s->partitions.at[k].match, c))
                continue;
            if (first && !told[k]) {
                place here = place_at(list, k);
                lint_warning(l, &here, "found cluster \"%s\" in this partition and in \"%s\"",
                             str_shown(c->metadata->name).text, str_shown(first->name).text);
                told[k] = true;
            }
            first = first ? first : &s->partitions.at[k];
        }
    }
}

void lint_rollout_strategy(lint *l, const place *at, const rollout_strategy *s)
{
    place max = place_key(at, STR("maxUnavailable"));
    bool all = s->max_unavailable.kind == AMOUNT_PERCENT &&
               s->max_unavailable.value >= 100 * AMOUNT_PERCENT_SCALE;
    if (all)
        lint_warning(l, &max, "found 100%%, which is the default: no cluster waits for another");
    place offline = place_key(at, STR("offlineAfterSeconds"));
    if (s->offline_after_seconds.set && s->offline_after_seconds.value < OFFLINE_SECONDS_LEAST)
        lint_warning(l, &offline,
                     "found %" PRId64
                     " seconds, less than twice the 15 minutes between two check-ins",
                     s->offline_after_seconds.value);
    place list = place_key(at, STR("partitions"));
    lint_overlaps(l, &list, s);
}

void lint_fleets(lint *l)
{
    size_t i = 0;
    for (const object *o = lint_next(l, KIND_BUNDLE, &i); o; o = lint_next(l, KIND_BUNDLE, &i)) {
        LINT_SPEC(o);
        place here = place_key(&spec_at, STR("rolloutStrategy"));
        lint_rollout_strategy(l, &here, &o->bundle->spec.rollout_strategy);
    }
    i = 0;
    for (const object *o = lint_next(l, KIND_FLEET_YAML, &i); o;
         o = lint_next(l, KIND_FLEET_YAML, &i)) {
        place root = lint_place(o);
        place here = place_key(&root, STR("rolloutStrategy"));
        lint_rollout_strategy(l, &here, &o->fleet_yaml->rollout_strategy);
    }
}
