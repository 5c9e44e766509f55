/* SPDX-License-Identifier: Apache-2.0 */
/* strmap.h - a hash map from text to one machine word.
 *
 * Keys are views: the caller keeps their bytes alive as long as the map. Iteration order is the
 * order of insertion, so that nothing ever depends on hashes; removing an entry moves the last one
 * into its place. */
#ifndef DROVER_BASE_STRMAP_H
#define DROVER_BASE_STRMAP_H

#include "base/str.h"

typedef struct strmap_entry {
    str key;
    uint64_t value;
    uint64_t hash;
} strmap_entry;

typedef struct strmap {
    strmap_entry *entries; /* in order of insertion */
    size_t len;
    size_t cap;
    uint32_t *slots; /* index + 1 into entries; 0 is empty */
    size_t slot_count;
} strmap;

/* The value's place, or NULL. It stays valid until the next put or remove. */
uint64_t *strmap_get(const strmap *m, str key);
/* Sets or replaces. False without memory: the map is unchanged. */
bool strmap_put(strmap *m, str key, uint64_t value);
bool strmap_remove(strmap *m, str key);
void strmap_clear(strmap *m);
void strmap_done(strmap *m);

/* The hash used here and wherever a table needs one. */
uint64_t str_hash(str text);

#endif
