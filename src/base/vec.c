/* SPDX-License-Identifier: Apache-2.0 */
#include "base/vec.h"

#include "base/mem.h"

#define CAP_FIRST 8u

bool vec_room(void **at, size_t *cap, size_t need, size_t element_bytes)
{
    if (need <= *cap)
        return true;
    size_t grown = *cap ? *cap * 2 : CAP_FIRST;
    if (grown < need)
        grown = need;
    size_t bytes;
    if (__builtin_mul_overflow(grown, element_bytes, &bytes))
        return false;
    void *moved = mem_realloc(*at, bytes);
    if (!moved)
        return false;
    *at = moved;
    *cap = grown;
    return true;
}

void vec_release(void **at, size_t *len, size_t *cap)
{
    *at = mem_free(*at);
    *len = 0;
    *cap = 0;
}
