/* SPDX-License-Identifier: Apache-2.0 */
/* str.h - text.
 *
 * A str is a view: pointer and length, not owned, not terminated, possibly empty. A buf owns bytes
 * that grow up to a stated maximum, and has a zero byte behind them once something was appended. */
#ifndef DROVER_BASE_STR_H
#define DROVER_BASE_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/err.h"

typedef struct str {
    const char *ptr;
    size_t len;
} str;

#define STR(literal) ((str){"" literal, sizeof(literal) - 1})
#define STR_EMPTY ((str){"", 0})
/* For printf: "%.*s", STR_ARG(text). */
#define STR_ARG(text) (int)(text).len, (text).ptr

static inline str str_of(const char *zero_terminated)
{
    return (str){zero_terminated, strlen(zero_terminated)};
}

static inline bool str_eq(str a, str b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

/* Bytewise order, the order every tie in Drover is broken by. */
int str_cmp(str a, str b);
bool str_starts(str text, str prefix);
bool str_ends(str text, str suffix);
/* Position of the first occurrence, or SIZE_MAX. An empty needle is found at 0. */
size_t str_find(str text, str needle);
/* The part from byte "from" on, at most "len" bytes; clamped to the text. */
str str_part(str text, size_t from, size_t len);
/* Without leading and trailing space, tab, carriage return and newline. */
str str_trim(str text);
/* Cuts off and returns what stands before the separator; the rest stays in *text. Without a
 * separator returns everything and leaves *text empty with a NULL pointer. */
str str_cut(str *text, char separator);

/* How many letters must be changed, added, left out or swapped with their neighbour to make one
 * text of the other, whatever their case: for "did you mean". SIZE_MAX when one is longer than
 * STR_DISTANCE_BYTES. */
#define STR_DISTANCE_BYTES 64
size_t str_distance(str a, str b);

/* Valid UTF-8 by RFC 3629: shortest forms, no surrogates, nothing above U+10FFFF. */
bool str_utf8(str text);
/* Length of the valid sequence at the start of text, 0 if there is none. */
size_t str_utf8_sequence(str text);
/* The same, but 0 also for a control character: below U+0020, and U+007F to U+009F. */
size_t str_utf8_printable(str text);
/* Decodes the code point at *at and moves *at behind it. The text must be valid UTF-8. */
uint32_t str_utf8_next(str text, size_t *at);
/* Writes 1 to 4 bytes to out and returns how many. code_point must be one. */
size_t str_utf8_put(uint32_t code_point, char out[4]);

/* Text of others as a message shows it: control characters and what is no UTF-8 as "?", cut after
 * STR_SHOWN_BYTES bytes with "..." behind. err_set(error, "found \"%s\"", str_shown(text).text). */
#define STR_SHOWN_BYTES 80
typedef struct shown {
    char text[STR_SHOWN_BYTES + 4];
} shown;
shown str_shown(str text);

/* Copies text to out, zero-terminated, in at most size bytes, of which there must be 16. What does
 * not fit is left out in its middle: the words of servers begin with what was found and end with
 * what is wrong with it. */
void str_fit(char *out, size_t size, str text);

/* A growing buffer. Once an append fails, by memory or by the maximum, the buffer is "failed" and
 * all later appends do nothing: check once, at the end. */
typedef struct buf {
    char *ptr;
    size_t len;
    size_t cap;
    size_t max;
    bool failed;
    bool full; /* by the maximum, not by memory */
} buf;

#define BUF(max_bytes) ((buf){.max = (max_bytes)})

void buf_add(buf *b, str text);
void buf_addc(buf *b, char c);
void buf_addz(buf *b, const char *zero_terminated);
void buf_addf(buf *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* In decimal digits, without a format: statuses are full of them. */
void buf_add_int(buf *b, int64_t number);
void buf_add_uint(buf *b, uint64_t number);
/* Appends text between double quotes, as it is. */
void buf_add_quoted(buf *b, str text);
/* Appends text as a JSON string, quotes included. Bytes that are no UTF-8 become U+FFFD. */
void buf_add_json(buf *b, str text);
/* Forgets the content, keeps the memory and clears "failed". */
void buf_clear(buf *b);
void buf_done(buf *b);
/* Says why it failed: it is too long, or there was no memory. Returns false, always. */
bool buf_fault(const buf *b, err *error);
static inline str buf_str(const buf *b)
{
    return (str){b->ptr ? b->ptr : "", b->len};
}

#endif
