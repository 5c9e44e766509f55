/* SPDX-License-Identifier: Apache-2.0 */
/* arena.h - memory for things that die together.
 *
 * An arena hands out memory piece by piece and gives it back all at once. Nothing in it is freed
 * alone. What a document, a compiled expression or one evaluation needs lives in one arena. */
#ifndef DROVER_BASE_ARENA_H
#define DROVER_BASE_ARENA_H

#include "base/str.h"

typedef struct arena arena;

/* An arena that hands out at most max_bytes (0: no maximum). NULL without memory. */
arena *arena_new(size_t max_bytes);
/* Frees everything. Accepts NULL, returns NULL. */
arena *arena_free(arena *a);
/* For scoped(arena_cleanup). */
void arena_cleanup(arena **a);

/* Zeroed, aligned for any type. NULL when memory or the maximum is exhausted. */
void *arena_alloc(arena *a, size_t bytes);
/* The same for count elements; checks the product. */
void *arena_array(arena *a, size_t count, size_t element_bytes);
#define ARENA_NEW(a, type) ((type *)arena_alloc((a), sizeof(type)))
#define ARENA_ARRAY(a, count, type) ((type *)arena_array((a), (count), sizeof(type)))

/* A copy of text, with a zero byte behind it. ptr is NULL on failure. */
str arena_str(arena *a, str text);
/* Formatted text; ptr is NULL on failure. */
str arena_printf(arena *a, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A place to return to: everything handed out after arena_mark is forgotten by arena_rewind. Memory
 * is kept for the next use, so a steady state allocates nothing. */
typedef struct arena_place {
    void *chunk;
    size_t used;
    size_t total;
} arena_place;
arena_place arena_mark(const arena *a);
void arena_rewind(arena *a, arena_place place);

/* Bytes handed out, padding included. */
size_t arena_used(const arena *a);

#endif
