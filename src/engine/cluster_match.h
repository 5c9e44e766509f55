/* SPDX-License-Identifier: Apache-2.0 */
/* cluster_match.h - which clusters a Bundle is for, and with which options, as in Fleet.
 *
 * Pure: looks at one cluster and one Bundle, keeps nothing. */
#ifndef DROVER_ENGINE_CLUSTER_MATCH_H
#define DROVER_ENGINE_CLUSTER_MATCH_H

#include "model/fleet.h"

/* A ClusterGroup that a cluster belongs to. */
typedef struct matched_group {
    str name;
    label_set labels;
} matched_group;

/* A cluster as a matcher sees it. */
typedef struct match_subject {
    str name;
    label_set labels;
    const matched_group *groups; /* those of its namespace whose selector matches its labels */
    size_t group_count;
} match_subject;

/* Members of a matcher are ANDed; none given matches nothing. With groups, one of them must
 * satisfy all of it; the view without a group is tried only for a cluster that has none. */
bool cluster_match_accepts(const cluster_match *m, const match_subject *s);

/* What a Bundle does with a cluster. */
typedef struct match_choice {
    const bundle_options **over; /* options to lay over the Bundle's, lowest first */
    size_t over_count;
    str key; /* equal keys of one Bundle mean equal options */
} match_choice;

/* False when the cluster is no target of the Bundle. The choice is in a; without memory it is
 * false too and *no_memory is set. */
bool bundle_choose(const bundle_spec *spec, const match_subject *s, arena *a, match_choice *ret,
                   bool *no_memory);

#endif
