/* SPDX-License-Identifier: Apache-2.0 */
/* cel_regex.h - RE2 for C.
 *
 * Linear time and bounded memory, whatever the pattern. Nothing is thrown across; a failure is NULL
 * with a sentence in error. */
#ifndef DROVER_SELECT_CEL_REGEX_H
#define DROVER_SELECT_CEL_REGEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cel_regex cel_regex;

cel_regex *cel_regex_new(const char *pattern, size_t len, size_t memory_bytes, char *error,
                         size_t error_bytes);
cel_regex *cel_regex_free(cel_regex *regex);
/* Anywhere in the text. -1 when memory ran out. */
int cel_regex_match(const cel_regex *regex, const char *text, size_t len);
/* Instructions: a match costs at most this times the length of the text. */
uint64_t cel_regex_size(const cel_regex *regex);

#ifdef __cplusplus
}
#endif

#endif
