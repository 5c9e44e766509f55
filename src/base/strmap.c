/* SPDX-License-Identifier: Apache-2.0 */
#include "base/strmap.h"

#include <xxhash.h>

#include "base/mem.h"
#include "base/vec.h"

#define SLOTS_FIRST ((size_t)16)

uint64_t str_hash(str text)
{
    return XXH3_64bits(text.ptr, text.len);
}

/* The slot that holds the key, or the empty one where it would go. */
static size_t find_slot(const strmap *m, str key, uint64_t hash)
{
    size_t mask = m->slot_count - 1;
    size_t slot = (size_t)hash & mask;
    while (m->slots[slot] != 0) {
        const strmap_entry *e = &m->entries[m->slots[slot] - 1];
        if (e->hash == hash && str_eq(e->key, key))
            break;
        slot = (slot + 1) & mask;
    }
    return slot;
}

static bool grow_slots(strmap *m)
{
    size_t count = m->slot_count ? m->slot_count * 2 : SLOTS_FIRST;
    uint32_t *slots = mem_zalloc(count * sizeof *slots);
    if (!slots)
        return false;
    mem_free(m->slots);
    m->slots = slots;
    m->slot_count = count;
    for (size_t i = 0; i < m->len; i++) {
        size_t slot = (size_t)m->entries[i].hash & (count - 1);
        while (slots[slot] != 0)
            slot = (slot + 1) & (count - 1);
        slots[slot] = (uint32_t)(i + 1);
    }
    return true;
}

uint64_t *strmap_get(const strmap *m, str key)
{
    if (m->len == 0)
        return NULL;
    size_t slot = find_slot(m, key, str_hash(key));
    return m->slots[slot] ? &m->entries[m->slots[slot] - 1].value : NULL;
}

bool strmap_put(strmap *m, str key, uint64_t value)
{
    uint64_t hash = str_hash(key);
    if ((m->len + 1) * 4 > m->slot_count * 3 && !grow_slots(m))
        return false;
    size_t slot = find_slot(m, key, hash);
    if (m->slots[slot] != 0) {
        m->entries[m->slots[slot] - 1].value = value;
        return true;
    }
    if (m->len >= UINT32_MAX - 1)
        return false;
    if (!vec_room((void **)&m->entries, &m->cap, m->len + 1, sizeof *m->entries))
        return false;
    m->entries[m->len++] = (strmap_entry){key, value, hash};
    m->slots[slot] = (uint32_t)m->len;
    return true;
}

/* Closes the gap that emptying a slot leaves in the probe sequences behind it. */
static void empty_slot(strmap *m, size_t slot)
{
    size_t mask = m->slot_count - 1;
    size_t next = (slot + 1) & mask;
    while (m->slots[next] != 0) {
        size_t home = (size_t)m->entries[m->slots[next] - 1].hash & mask;
        if (((next - home) & mask) >= ((next - slot) & mask)) {
            m->slots[slot] = m->slots[next];
            slot = next;
        }
        next = (next + 1) & mask;
    }
    m->slots[slot] = 0;
}

bool strmap_remove(strmap *m, str key)
{
    if (m->len == 0)
        return false;
    size_t slot = find_slot(m, key, str_hash(key));
    if (m->slots[slot] == 0)
        return false;
    size_t gone = m->slots[slot] - 1;
    empty_slot(m, slot);
    size_t last = m->len - 1;
    if (gone != last) {
        size_t moved = find_slot(m, m->entries[last].key, m->entries[last].hash);
        m->slots[moved] = (uint32_t)(gone + 1);
        m->entries[gone] = m->entries[last];
    }
    m->len = last;
    return true;
}

void strmap_clear(strmap *m)
{
    m->len = 0;
    if (m->slots)
        memset(m->slots, 0, m->slot_count * sizeof *m->slots);
}

void strmap_done(strmap *m)
{
    mem_free(m->entries);
    mem_free(m->slots);
    *m = (strmap){0};
}
