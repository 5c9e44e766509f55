/* SPDX-License-Identifier: Apache-2.0 */
/* interrupt.h - which interrupt runs on a node, and for which package.
 *
 * Several packages that reach their interrupts together share one: the strongest type wins,
 * services are united, and the owner runs it for all. */
#ifndef DROVER_ENGINE_INTERRUPT_H
#define DROVER_ENGINE_INTERRUPT_H

#include "engine/package_stage.h"

typedef struct merged_interrupt {
    uint16_t owner; /* index of the package that runs it; PACKAGE_NO_RULE: there is none */
    interrupt_type type;
    str_list services; /* united and sorted, for services */
} merged_interrupt;

/* Packages by their indexes in the rules. */
typedef struct package_choice {
    const uint16_t *at;
    uint16_t len;
} package_choice;

/* Whether a configInterrupt is for one of the changed keys "a,b". Its key is a name or a glob as
 * Go's filepath.Match reads it. */
bool interrupt_matches(const interrupt *i, str changed_keys);

/* Merges the interrupts that the given packages have ahead. Memory is a's; false without. */
bool interrupts_merge(const package_rules *r, const package_entries *entries,
                      package_choice packages, arena *a, merged_interrupt *ret);

/* {"type":"service","services":["a","b"]} in a. ptr is NULL without memory. */
str interrupt_json(const merged_interrupt *m, arena *a);

/* Go's filepath.Match: *, ?, [a-z], [^a], and \ before a character taken as it is; * and ? do not
 * cross "/". A malformed pattern matches nothing. */
bool glob_match(str pattern, str text);

#endif
