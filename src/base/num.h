/* SPDX-License-Identifier: Apache-2.0 */
/* num.h - integers that do not overflow, and percentages.
 *
 * No floating point takes part in a decision. */
#ifndef DROVER_BASE_NUM_H
#define DROVER_BASE_NUM_H

#include "base/str.h"

/* False on overflow; *ret is then untouched. */
bool num_add(int64_t a, int64_t b, int64_t *ret);
bool num_sub(int64_t a, int64_t b, int64_t *ret);
bool num_mul(int64_t a, int64_t b, int64_t *ret);

/* Decimal digits with an optional sign and nothing else. False on anything else and on overflow. */
bool num_parse(str text, int64_t *ret);

/* p percent of a group of n: max(1, floor(n * p / 100)), and 0 when n is 0. n and p are not
 * negative; p is at most NUM_PERCENT_MAX. */
#define NUM_PERCENT_MAX 1000000
int64_t num_percent(int64_t n, int64_t p);

#endif
