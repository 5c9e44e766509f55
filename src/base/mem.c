/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"

#include <stdlib.h>

static _Thread_local uint64_t calls;
static _Thread_local int64_t live;
static _Thread_local uint64_t fail_countdown;
static _Thread_local bool failed;

static bool must_fail(void)
{
    calls++;
    if (fail_countdown == 0)
        return false;
    fail_countdown--;
    if (fail_countdown > 0)
        return false;
    failed = true;
    return true;
}

void *mem_alloc(size_t bytes)
{
    if (must_fail())
        return NULL;
    void *ptr = malloc(bytes ? bytes : 1);
    if (ptr)
        live++;
    return ptr;
}

void *mem_zalloc(size_t bytes)
{
    if (must_fail())
        return NULL;
    void *ptr = calloc(1, bytes ? bytes : 1);
    if (ptr)
        live++;
    return ptr;
}

void *mem_realloc(void *ptr, size_t bytes)
{
    if (must_fail())
        return NULL;
    void *moved = realloc(ptr, bytes ? bytes : 1);
    if (moved && !ptr)
        live++;
    return moved;
}

void *mem_free(void *ptr)
{
    if (ptr)
        live--;
    free(ptr);
    return NULL;
}

void mem_fail_at(uint64_t nth)
{
    fail_countdown = nth;
    failed = false;
}

bool mem_failed(void)
{
    return failed;
}

uint64_t mem_calls(void)
{
    return calls;
}

int64_t mem_live(void)
{
    return live;
}
