/* SPDX-License-Identifier: Apache-2.0 */
/* check.h - what the tests share: cmocka, comparisons that say what they found, random numbers that
 * can be repeated, and a loop that makes every allocation fail in turn.
 *
 * A test includes this first, before any other header of Drover. */
#ifndef DROVER_TESTS_SUPPORT_CHECK_H
#define DROVER_TESTS_SUPPORT_CHECK_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"

/* Arguments that every printf refuses: it returns a negative length. */
#define CHECK_NOT_PRINTABLE "%lc", (wint_t)0x7FFFFFFF

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* A condition with a sentence that says which case broke it:
 *     check_msg(got == rows[i].want, "row %zu", i); */
#define check_msg(condition, ...)                                                                  \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            print_error("%s: ", #condition);                                                       \
            print_error(__VA_ARGS__);                                                              \
            print_error("\n");                                                                     \
            _fail(__FILE__, __LINE__);                                                             \
        }                                                                                          \
    } while (0)

static inline void check_str_at(str got, str want, const char *file, int line)
{
    if (str_eq(got, want))
        return;
    print_error("found   \"%.*s\" (%zu bytes)\nexpected \"%.*s\" (%zu bytes)\n", STR_ARG(got),
                got.len, STR_ARG(want), want.len);
    _fail(file, line);
}

/* Both are str. */
#define check_str(got, want) check_str_at((got), (want), __FILE__, __LINE__)
/* A str and a zero-terminated text. */
#define check_text(got, want) check_str_at((got), str_of(want), __FILE__, __LINE__)
/* The text of an err. */
#define check_err(error, want) check_str_at(str_of((error).text), str_of(want), __FILE__, __LINE__)

static inline void check_has_at(str text, str part, const char *file, int line)
{
    if (str_find(text, part) != SIZE_MAX)
        return;
    print_error("\"%.*s\"\nlacks \"%.*s\"\n", STR_ARG(text), STR_ARG(part));
    _fail(file, line);
}

/* The text of an err contains a part. */
#define check_err_has(error, part)                                                                 \
    check_has_at(str_of((error).text), str_of(part), __FILE__, __LINE__)

/* A copy of text in a block of just its size: the address sanitizer sees who reads on behind it. */
static inline str exact_new(str text)
{
    char *copy = mem_alloc(text.len);
    assert_non_null(copy);
    if (text.len > 0)
        memcpy(copy, text.ptr, text.len);
    return (str){copy, text.len};
}

static inline void exact_done(str *text)
{
    mem_free((void *)(uintptr_t)text->ptr);
}

/* Random numbers (splitmix64): the same from the same seed on every machine. */
typedef struct rng {
    uint64_t state;
} rng;

static inline uint64_t rng_next(rng *r)
{
    uint64_t z = r->state += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

/* From 0 to below - 1. */
static inline size_t rng_below(rng *r, size_t below)
{
    return (size_t)(rng_next(r) % below);
}

/* Another seed each run, printed, so that a failure can be repeated with SEED=number. */
static inline rng rng_seeded(void)
{
    const char *fixed = getenv("SEED");
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    uint64_t seed = fixed ? strtoull(fixed, NULL, 10)
                          : ((uint64_t)now.tv_sec * 1000000007u) ^ (uint64_t)now.tv_nsec;
    print_message("# SEED=%llu\n", (unsigned long long)seed);
    return (rng){seed};
}

/* Runs "work" with the first, second, third ... allocation failing until it gets by without one,
 * and checks each time that it said false, and that nothing is left on the heap.
 *
 * work returns whether it succeeded, and frees what it made either way. */
static inline void check_each_allocation_fails(bool (*work)(void *context), void *context)
{
    for (uint64_t nth = 1;; nth++) {
        int64_t live = mem_live();
        mem_fail_at(nth);
        bool done = work(context);
        bool failed = mem_failed();
        mem_fail_at(0);
        check_msg(mem_live() == live, "allocation %llu failed and %lld blocks are left",
                  (unsigned long long)nth, (long long)(mem_live() - live));
        check_msg(done != failed, "allocation %llu %s, but the work %s", (unsigned long long)nth,
                  failed ? "failed" : "did not fail", done ? "succeeded" : "failed");
        if (!failed)
            return;
        check_msg(nth < 100000, "no end of allocations");
    }
}

#endif
