/* SPDX-License-Identifier: Apache-2.0 */
/* watch_view.h - a fleet as a screen of text.
 *
 * Knows no terminal and no server: rows go in, lines come out. Rows are views. */
#ifndef DROVER_CLI_WATCH_VIEW_H
#define DROVER_CLI_WATCH_VIEW_H

#include "base/str.h"
#include "base/vec.h"

typedef struct watch_row {
    str deployment, environment, resource;
    str state, current, wanted, why;
} watch_row;

typedef VEC(watch_row) watch_rows;

typedef struct watch_screen {
    size_t lines, columns;
    size_t cursor; /* which of the rows that are shown */
    str filter;    /* only rows that have this in a name, state or reason */
    bool typing;   /* the filter is being typed */
    bool colour;
} watch_screen;

/* Appends the whole screen; returns the rows that the filter lets through and are not done. */
size_t watch_draw(buf *out, const watch_rows *rows, watch_screen *screen);
/* The row the cursor is on, or NULL. */
const watch_row *watch_chosen(const watch_rows *rows, const watch_screen *screen);
/* One line: "web: 5 of 48 done, 3 in flight, 0 failed; ..." */
void watch_line(buf *out, const watch_rows *rows);

#endif
