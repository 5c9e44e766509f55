/* SPDX-License-Identifier: Apache-2.0 */
/* mem.h - the only door to the heap.
 *
 * Every allocation of Drover goes through here, so that a test can make the n-th one fail and count
 * what is still alive. Failure is NULL; nobody aborts. free() appears nowhere outside src/base. */
#ifndef DROVER_BASE_MEM_H
#define DROVER_BASE_MEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

void *mem_alloc(size_t bytes);
void *mem_zalloc(size_t bytes);
/* Like realloc: the old block stays valid on failure. ptr may be NULL. */
void *mem_realloc(void *ptr, size_t bytes);
/* Returns NULL, so that "p = mem_free(p)" leaves nothing dangling. */
void *mem_free(void *ptr);

/* Makes the nth allocation from now fail (1 is the next one), once; 0 switches it off. */
void mem_fail_at(uint64_t nth);
/* Whether the armed failure has happened. */
bool mem_failed(void);
/* Allocations made so far, and blocks not freed yet, by this thread. */
uint64_t mem_calls(void);
int64_t mem_live(void);

/* Runs a cleanup function when the variable leaves its scope. */
#define scoped(cleanup_function) __attribute__((cleanup(cleanup_function)))

#endif
