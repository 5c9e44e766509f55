/* SPDX-License-Identifier: Apache-2.0 */
#include "base/names.h"

#include <assert.h>

#include "base/arena.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/strmap.h"

struct names {
    arena *texts;
    strmap numbers; /* insertion order is the number, less one */
};

names *names_new(void)
{
    names *table = mem_zalloc(sizeof *table);
    if (!table)
        return NULL;
    table->texts = arena_new(LIMIT_TEXT_BYTES);
    if (!table->texts)
        return mem_free(table);
    return table;
}

names *names_free(names *table)
{
    if (!table)
        return NULL;
    strmap_done(&table->numbers);
    arena_free(table->texts);
    return mem_free(table);
}

name_id names_add(names *table, str text)
{
    name_id known = names_find(table, text);
    if (known)
        return known;
    if (table->numbers.len >= LIMIT_NAMES)
        return 0;
    str copy = arena_str(table->texts, text);
    if (!copy.ptr)
        return 0;
    name_id n = (name_id)table->numbers.len + 1;
    return strmap_put(&table->numbers, copy, n) ? n : 0;
}

name_id names_find(const names *table, str text)
{
    const uint64_t *found = strmap_get(&table->numbers, text);
    return found ? (name_id)*found : 0;
}

str names_text(const names *table, name_id n)
{
    assert(n <= table->numbers.len);
    return n ? table->numbers.entries[n - 1].key : STR_EMPTY;
}

size_t names_count(const names *table)
{
    return table->numbers.len;
}
