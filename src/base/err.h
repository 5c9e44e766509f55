/* SPDX-License-Identifier: Apache-2.0 */
/* err.h - errors are values with a sentence.
 *
 * A function that can fail takes an err * as its last parameter, fills it and returns false (or
 * NULL). Outputs named ret_ are untouched on failure. The failure path allocates nothing. */
#ifndef DROVER_BASE_ERR_H
#define DROVER_BASE_ERR_H

#include <stdbool.h>

#include "base/limits.h"

typedef struct err {
    char text[LIMIT_ERR_BYTES];
} err;

/* Both return false, always, so that "return err_set(...)" reads well. error may be NULL. A text
 * that is too long is cut and ends in "...". */
bool err_set(err *error, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Puts "context: " in front of the text that is there. */
bool err_wrap(err *error, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The one sentence for a failed allocation. */
bool err_memory(err *error);
/* Whether that is the sentence, with or without a context in front. */
bool err_is_memory(const err *error);

#endif
