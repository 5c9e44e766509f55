/* SPDX-License-Identifier: Apache-2.0 */
#include "base/arena.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/mem.h"

#define CHUNK_BYTES_FIRST ((size_t)4096)
#define CHUNK_BYTES_MOST ((size_t)1024 * 1024)
#define ALIGNMENT ((size_t)16)
#define BRIEF_BYTES 256

typedef struct chunk {
    struct chunk *next; /* the one to use when this is full: kept over a rewind */
    size_t size;
    size_t used;
    _Alignas(16) char bytes[];
} chunk;

struct arena {
    chunk *first;
    chunk *current;
    size_t total;
    size_t max;
};

arena *arena_new(size_t max_bytes)
{
    arena *a = mem_zalloc(sizeof *a);
    if (a) /* half of the address space is no limit, and leaves room for padding */
        a->max = max_bytes && max_bytes < SIZE_MAX / 2 ? max_bytes : SIZE_MAX / 2;
    return a;
}

arena *arena_free(arena *a)
{
    if (!a)
        return NULL;
    chunk *c = a->first;
    while (c) {
        chunk *next = c->next;
        mem_free(c);
        c = next;
    }
    return mem_free(a);
}

void arena_cleanup(arena **a)
{
    *a = arena_free(*a);
}

/* Links a chunk with room for "bytes" behind the current one and makes it the current one. */
static bool arena_grow(arena *a, size_t bytes)
{
    chunk *next = a->current ? a->current->next : a->first;
    if (next && next->size >= bytes) {
        next->used = 0;
        a->current = next;
        return true;
    }
    size_t size = a->current ? a->current->size * 2 : CHUNK_BYTES_FIRST;
    if (size > CHUNK_BYTES_MOST)
        size = CHUNK_BYTES_MOST;
    if (size < bytes)
        size = bytes;
    chunk *c = mem_alloc(sizeof *c + size);
    if (!c)
        return false;
    *c = (chunk){.next = next, .size = size};
    if (a->current)
        a->current->next = c;
    else
        a->first = c;
    a->current = c;
    return true;
}

void *arena_alloc(arena *a, size_t bytes)
{
    if (bytes > a->max || a->total > a->max - bytes)
        return NULL;
    size_t padded = (bytes + ALIGNMENT - 1) & ~(ALIGNMENT - 1);
    chunk *c = a->current;
    if (!c || c->size - c->used < padded) {
        if (!arena_grow(a, padded))
            return NULL;
        c = a->current;
    }
    void *ptr = c->bytes + c->used;
    c->used += padded;
    a->total += padded;
    return memset(ptr, 0, bytes);
}

void *arena_array(arena *a, size_t count, size_t element_bytes)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, element_bytes, &bytes))
        return NULL;
    return arena_alloc(a, bytes);
}

str arena_str(arena *a, str text)
{
    char *copy = arena_alloc(a, text.len + 1);
    if (!copy)
        return (str){NULL, 0};
    if (text.len > 0)
        memcpy(copy, text.ptr, text.len);
    return (str){copy, text.len};
}

str arena_printf(arena *a, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    va_list again;
    va_copy(again, args);
    char brief[BRIEF_BYTES]; /* most texts fit: they are made once */
    int length = vsnprintf(brief, sizeof brief, format, args);
    va_end(args);
    char *text = length < 0 ? NULL : arena_alloc(a, (size_t)length + 1);
    if (text && (size_t)length < sizeof brief)
        memcpy(text, brief, (size_t)length + 1);
    else if (text)
        vsnprintf(text, (size_t)length + 1, format, again);
    va_end(again);
    return (str){text, text ? (size_t)length : 0};
}

arena_place arena_mark(const arena *a)
{
    return (arena_place){a->current, a->current ? a->current->used : 0, a->total};
}

void arena_rewind(arena *a, arena_place place)
{
    assert(place.total <= a->total);
    a->current = place.chunk;
    if (a->current)
        a->current->used = place.used;
    a->total = place.total;
}

size_t arena_used(const arena *a)
{
    return a->total;
}
