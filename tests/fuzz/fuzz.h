/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz.h - what the fuzzers share.
 *
 * A fuzzer defines fuzz_one(), which may assert anything that must hold for every input. */
#ifndef DROVER_TESTS_FUZZ_FUZZ_H
#define DROVER_TESTS_FUZZ_FUZZ_H

#include <assert.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"

static void fuzz_one(str input);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int64_t live = mem_live();
    fuzz_one((str){(const char *)data, size});
    assert(mem_live() == live);
    return 0;
}

/* A refused input comes with a sentence that can be shown. */
static inline void fuzz_check_error(const err *error)
{
    assert(error->text[0] != '\0');
    assert(str_utf8(str_of(error->text)));
}

#endif
