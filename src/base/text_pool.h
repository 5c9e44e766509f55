/* SPDX-License-Identifier: Apache-2.0 */
/* text_pool.h - texts that go again: equal text, equal number, while somebody has it.
 *
 * Like names.h, but for what is ever new: versions, messages. Whoever has numbers marks them when
 * text_pool_due says so, and sweeps: all others go, and their numbers are given out again. So
 * memory is at most about twice of what was marked last. A text that stays does not move. */
#ifndef DROVER_BASE_TEXT_POOL_H
#define DROVER_BASE_TEXT_POOL_H

#include "base/str.h"

typedef struct text_pool text_pool;
typedef uint32_t text_id; /* from 1 on; 0 is "no text" */

text_pool *text_pool_new(void);
text_pool *text_pool_free(text_pool *t);
/* The number of text, given out now if need be. 0 without memory or past LIMIT_NAMES. */
text_id text_pool_add(text_pool *t, str text);
/* Zero-terminated. The empty text for 0. */
str text_pool_get(const text_pool *t, text_id n);
size_t text_pool_count(const text_pool *t);

/* Since the last sweep as many have come as it left, and some more. */
bool text_pool_due(const text_pool *t);
void text_pool_mark(text_pool *t, text_id n); /* 0 is nobody's */
/* The same by the text, if there is one like it. */
void text_pool_mark_text(text_pool *t, str text);
void text_pool_sweep(text_pool *t);

#endif
