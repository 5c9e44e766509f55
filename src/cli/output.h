/* SPDX-License-Identifier: Apache-2.0 */
/* output.h - how commands print.
 *
 * Tables that fit OUTPUT_COLUMNS, text that is wrapped there, and colour only where a person
 * looks: on a terminal, and never with NO_COLOR. JSON is written with buf_add_json and printed
 * with output_text. */
#ifndef DROVER_CLI_OUTPUT_H
#define DROVER_CLI_OUTPUT_H

#include <stdio.h>

#include "base/str.h"

#define OUTPUT_COLUMNS 100
#define OUTPUT_TABLE_COLUMNS_MAX 16

#define INKS(X) X(PLAIN, "0") X(BOLD, "1") X(DIM, "2") X(RED, "31") X(GREEN, "32") X(YELLOW, "33")

typedef enum ink {
#define X(name, code) INK_##name,
    INKS(X)
#undef X
} ink;

/* Whether to use colour there. */
bool output_colour(FILE *to);
/* Writes text in that ink where colour is wanted, else plainly. */
void output_ink(FILE *to, ink i, str text);
void output_text(FILE *to, str text);
/* Writes what was collected, or says that memory ran out. Frees the buffer. False when it ran
 * out. */
bool output_buf(FILE *to, buf *b);
/* Columns that a text takes: its code points. */
size_t output_width(str text);

/* Appends words, wrapped before OUTPUT_COLUMNS, further lines indented; no newline at the end. at
 * is the column where the first word goes. */
void output_wrap(buf *out, str words, size_t at, size_t indent);

/* A table is filled cell by cell, row by row. When it is too wide, the columns that may shrink
 * are cut, widest first, with an ellipsis. Cells are views: they must live until it is printed. */
typedef struct column {
    const char *title;
    bool right;  /* numbers */
    bool shrink; /* may be cut */
} column;

typedef struct table table;

table *table_new(const column *columns, size_t count);
table *table_free(table *t);
/* A failed one is remembered, and table_print then says so. */
void table_cell(table *t, str text);
void table_cellf(table *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* False when memory ran out. */
bool table_print(const table *t, FILE *to);

#endif
