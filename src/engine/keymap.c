/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/keymap.h"

#include <string.h>

#include "base/mem.h"

#define CAP_FIRST 16u

static size_t place_of(const keymap *m, uint64_t key)
{
    uint64_t h = key * UINT64_C(0x9E3779B97F4A7C15);
    size_t mask = m->cap - 1;
    size_t at = (size_t)(h ^ (h >> 29)) & mask;
    while (m->at[at].value != KEYMAP_NONE && m->at[at].key != key)
        at = (at + 1) & mask;
    return at;
}

uint32_t keymap_get(const keymap *m, uint64_t key)
{
    return m->cap ? m->at[place_of(m, key)].value : KEYMAP_NONE;
}

static bool grow(keymap *m)
{
    keymap bigger = {.cap = m->cap ? m->cap * 2 : CAP_FIRST, .len = m->len};
    bigger.at = mem_alloc(bigger.cap * sizeof *bigger.at);
    if (!bigger.at)
        return false;
    memset(bigger.at, 0xff, bigger.cap * sizeof *bigger.at);
    for (size_t i = 0; i < m->cap; i++)
        if (m->at[i].value != KEYMAP_NONE)
            bigger.at[place_of(&bigger, m->at[i].key)] = m->at[i];
    mem_free(m->at);
    *m = bigger;
    return true;
}

bool keymap_put(keymap *m, uint64_t key, uint32_t value)
{
    if ((m->len + 1) * 4 > m->cap * 3 && !grow(m))
        return false;
    size_t at = place_of(m, key);
    if (m->at[at].value == KEYMAP_NONE)
        m->len++;
    m->at[at] = (keymap_entry){key, value};
    return true;
}

void keymap_remove(keymap *m, uint64_t key)
{
    if (m->cap == 0)
        return;
    size_t at = place_of(m, key);
    if (m->at[at].value == KEYMAP_NONE)
        return;
    m->at[at].value = KEYMAP_NONE;
    m->len--;
    /* Whoever stands behind the hole may have been pushed there by what was removed. */
    size_t mask = m->cap - 1;
    for (size_t next = (at + 1) & mask; m->at[next].value != KEYMAP_NONE;
         next = (next + 1) & mask) {
        keymap_entry moved = m->at[next];
        m->at[next].value = KEYMAP_NONE;
        m->at[place_of(m, moved.key)] = moved;
    }
}

void keymap_clear(keymap *m)
{
    if (m->cap)
        memset(m->at, 0xff, m->cap * sizeof *m->at);
    m->len = 0;
}

void keymap_done(keymap *m)
{
    mem_free(m->at);
    *m = (keymap){0};
}

bool bitset_put(bitset *s, uint32_t n, bool in)
{
    size_t word = n / 64;
    if (word >= s->words) {
        if (!in)
            return true;
        size_t words = s->words ? s->words : 4;
        while (words <= word)
            words *= 2;
        uint64_t *grown = mem_realloc(s->at, words * sizeof *grown);
        if (!grown)
            return false;
        memset(grown + s->words, 0, (words - s->words) * sizeof *grown);
        s->at = grown;
        s->words = words;
    }
    uint64_t bit = UINT64_C(1) << (n % 64);
    s->at[word] = in ? s->at[word] | bit : s->at[word] & ~bit;
    return true;
}

void bitset_done(bitset *s)
{
    mem_free(s->at);
    *s = (bitset){0};
}
