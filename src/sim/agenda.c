/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/agenda.h"

#include <assert.h>

#include "base/mem.h"

static str key_of(const agenda_second *s)
{
    return (str){(const char *)&s->ms, sizeof s->ms};
}

static void sift_up(agenda *a, size_t at)
{
    agenda_second *moving = a->heap.at[at];
    while (at > 0) {
        size_t up = (at - 1) / 2;
        if (a->heap.at[up]->ms <= moving->ms)
            break;
        a->heap.at[at] = a->heap.at[up];
        at = up;
    }
    a->heap.at[at] = moving;
}

static void sift_down(agenda *a, size_t at)
{
    agenda_second *moving = a->heap.at[at];
    for (size_t child; (child = 2 * at + 1) < a->heap.len; at = child) {
        if (child + 1 < a->heap.len && a->heap.at[child + 1]->ms < a->heap.at[child]->ms)
            child++;
        if (a->heap.at[child]->ms >= moving->ms)
            break;
        a->heap.at[at] = a->heap.at[child];
    }
    a->heap.at[at] = moving;
}

static agenda_second *fresh_second(agenda *a)
{
    if (a->idle.len > 0)
        return a->idle.at[--a->idle.len];
    return mem_zalloc(sizeof(agenda_second));
}

static void second_free(agenda_second *s)
{
    vec_done(&s->entries);
    mem_free(s);
}

/* The second at ms, made if need be; NULL without memory. */
static agenda_second *second_at(agenda *a, int64_t ms)
{
    const uint64_t *known = strmap_get(&a->by_ms, (str){(const char *)&ms, sizeof ms});
    if (known)
        return (agenda_second *)(uintptr_t)*known;
    agenda_second *s = fresh_second(a);
    if (!s)
        return NULL;
    s->ms = ms;
    if (!vec_reserve(&a->heap, a->heap.len + 1) ||
        !strmap_put(&a->by_ms, key_of(s), (uint64_t)(uintptr_t)s)) {
        second_free(s);
        return NULL;
    }
    a->heap.at[a->heap.len++] = s;
    sift_up(a, a->heap.len - 1);
    return s;
}

bool agenda_put(agenda *a, int64_t ms, agenda_entry entry)
{
    agenda_second *s = second_at(a, ms);
    return s && vec_push(&s->entries, entry);
}

int64_t agenda_next_ms(const agenda *a)
{
    return a->heap.len > 0 ? a->heap.at[0]->ms : AGENDA_NEVER;
}

bool agenda_take(agenda *a, agenda_entries *ret)
{
    assert(a->heap.len > 0);
    agenda_second *s = a->heap.at[0];
    if (!vec_reserve(&a->idle, a->idle.len + 1))
        return false;
    strmap_remove(&a->by_ms, key_of(s));
    a->heap.at[0] = a->heap.at[--a->heap.len];
    if (a->heap.len > 0)
        sift_down(a, 0);
    agenda_entries full = s->entries;
    s->entries = *ret; /* its memory serves the next second */
    s->entries.len = 0;
    *ret = full;
    a->idle.at[a->idle.len++] = s;
    return true;
}

void agenda_done(agenda *a)
{
    for (size_t i = 0; i < a->heap.len; i++)
        second_free(a->heap.at[i]);
    for (size_t i = 0; i < a->idle.len; i++)
        second_free(a->idle.at[i]);
    vec_done(&a->heap);
    vec_done(&a->idle);
    strmap_done(&a->by_ms);
}
