/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text_pool.h"

#include <assert.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/strmap.h"
#include "base/vec.h"

#define SWEEP_LEAST 64 /* fewer are not worth a look at all who have numbers */

typedef struct entry {
    char *text; /* NULL: the number is free */
    size_t len;
    bool marked;
} entry;

struct text_pool {
    VEC(entry) entries; /* by number, less one */
    VEC(text_id) free;  /* there is room for all numbers */
    strmap numbers;
    size_t left; /* by the last sweep */
};

text_pool *text_pool_new(void)
{
    return mem_zalloc(sizeof(text_pool));
}

text_pool *text_pool_free(text_pool *t)
{
    if (!t)
        return NULL;
    for (size_t i = 0; i < t->entries.len; i++)
        mem_free(t->entries.at[i].text);
    vec_done(&t->entries);
    vec_done(&t->free);
    strmap_done(&t->numbers);
    return mem_free(t);
}

/* A number without a text; 0 without memory. */
static text_id new_number(text_pool *t)
{
    if (t->free.len > 0)
        return t->free.at[--t->free.len];
    if (t->entries.len >= LIMIT_NAMES || !vec_reserve(&t->free, t->entries.len + 1) ||
        !vec_push(&t->entries, (entry){0}))
        return 0;
    return (text_id)t->entries.len;
}

text_id text_pool_add(text_pool *t, str text)
{
    const uint64_t *known = strmap_get(&t->numbers, text);
    if (known)
        return (text_id)*known;
    text_id n = new_number(t);
    char *copy = n ? mem_alloc(text.len + 1) : NULL;
    if (copy && text.len > 0)
        memcpy(copy, text.ptr, text.len);
    if (copy)
        copy[text.len] = '\0';
    if (copy && strmap_put(&t->numbers, (str){copy, text.len}, n)) {
        t->entries.at[n - 1] = (entry){copy, text.len, false};
        return n;
    }
    mem_free(copy);
    if (n)
        t->free.at[t->free.len++] = n;
    return 0;
}

str text_pool_get(const text_pool *t, text_id n)
{
    assert(n <= t->entries.len);
    const entry *e = n ? &t->entries.at[n - 1] : NULL;
    assert(!e || e->text); /* whoever has a number marks it */
    return e ? (str){e->text, e->len} : STR_EMPTY;
}

size_t text_pool_count(const text_pool *t)
{
    return t->numbers.len;
}

/* ---- sweeping ---- */

bool text_pool_due(const text_pool *t)
{
    return t->numbers.len >= 2 * t->left + SWEEP_LEAST;
}

void text_pool_mark(text_pool *t, text_id n)
{
    if (n)
        t->entries.at[n - 1].marked = true;
}

void text_pool_mark_text(text_pool *t, str text)
{
    const uint64_t *known = strmap_get(&t->numbers, text);
    if (known)
        text_pool_mark(t, (text_id)*known);
}

void text_pool_sweep(text_pool *t)
{
    for (size_t i = 0; i < t->entries.len; i++) {
        entry *e = &t->entries.at[i];
        if (e->text && !e->marked) {
            strmap_remove(&t->numbers, (str){e->text, e->len});
            e->text = mem_free(e->text);
            t->free.at[t->free.len++] = (text_id)i + 1;
        }
        e->marked = false;
    }
    t->left = t->numbers.len;
}
