/* SPDX-License-Identifier: Apache-2.0 */
/* names.h - interned names: equal text, equal number.
 *
 * A name is a small number from 1 on; 0 is "no name". Text is kept until the table is freed. */
#ifndef DROVER_BASE_NAMES_H
#define DROVER_BASE_NAMES_H

#include "base/str.h"

typedef struct names names;
typedef uint32_t name_id;

names *names_new(void);
names *names_free(names *table);
/* The number of text, given out now if need be. 0 without memory or past LIMIT_NAMES. */
name_id names_add(names *table, str text);
/* The number of text if it has one, else 0. */
name_id names_find(const names *table, str text);
/* Zero-terminated. The empty text for 0. */
str names_text(const names *table, name_id n);
size_t names_count(const names *table);

#endif
