/* SPDX-License-Identifier: Apache-2.0 */
/* vec.h - arrays that grow.
 *
 *     VEC(int) numbers = {0};
 *     if (!vec_push(&numbers, 7)) ...      no memory: the array is unchanged
 *     numbers.at[0]; numbers.len;
 *     vec_done(&numbers);
 */
#ifndef DROVER_BASE_VEC_H
#define DROVER_BASE_VEC_H

#include <stdbool.h>
#include <stddef.h>

#define VEC(type)                                                                                  \
    struct {                                                                                       \
        type *at;                                                                                  \
        size_t len;                                                                                \
        size_t cap;                                                                                \
    }

#define vec_push(v, ...)                                                                           \
    (vec_room((void **)&(v)->at, &(v)->cap, (v)->len + 1, sizeof *(v)->at) &&                      \
     ((v)->at[(v)->len++] = (__VA_ARGS__), true))
#define vec_reserve(v, count) vec_room((void **)&(v)->at, &(v)->cap, (count), sizeof *(v)->at)
#define vec_done(v) vec_release((void **)&(v)->at, &(v)->len, &(v)->cap)

/* The two functions behind the macros. */
bool vec_room(void **at, size_t *cap, size_t need, size_t element_bytes);
void vec_release(void **at, size_t *len, size_t *cap);

#endif
