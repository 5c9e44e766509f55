/* SPDX-License-Identifier: Apache-2.0 */
/* keymap.h - a hash map from one number to another, and sets of small numbers.
 *
 * Nothing may depend on the order in it: it is only ever asked for a key. Internal to
 * src/engine. */
#ifndef DROVER_ENGINE_KEYMAP_H
#define DROVER_ENGINE_KEYMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KEYMAP_NONE UINT32_MAX
#define KEY_PAIR(a, b) ((uint64_t)(a) << 32 | (uint32_t)(b))

/* Key and value lie side by side: a lookup in a large map costs one line of the cache. */
typedef struct keymap_entry {
    uint64_t key;
    uint32_t value; /* KEYMAP_NONE: an empty place */
} keymap_entry;

typedef struct keymap {
    keymap_entry *at;
    size_t len;
    size_t cap;
} keymap;

/* KEYMAP_NONE if it is not there. */
uint32_t keymap_get(const keymap *m, uint64_t key);
/* Sets or replaces; value is not KEYMAP_NONE. False without memory: the map is unchanged. */
bool keymap_put(keymap *m, uint64_t key, uint32_t value);
void keymap_remove(keymap *m, uint64_t key);
void keymap_clear(keymap *m);
void keymap_done(keymap *m);

/* A set of small numbers. */
typedef struct bitset {
    uint64_t *at;
    size_t words;
} bitset;

static inline bool bitset_has(const bitset *s, uint32_t n)
{
    return n / 64 < s->words && (s->at[n / 64] >> (n % 64) & 1) != 0;
}
/* False without memory. */
bool bitset_put(bitset *s, uint32_t n, bool in);
void bitset_done(bitset *s);

#endif
