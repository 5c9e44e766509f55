/* SPDX-License-Identifier: Apache-2.0 */
/* watch_view.h - a fleet as a screen of text.
 *
 * Knows no terminal and no server: rows go in, lines come out, never wider or more than the screen.
 * Rows are views. */
#ifndef DROVER_CLI_WATCH_VIEW_H
#define DROVER_CLI_WATCH_VIEW_H

#include "base/str.h"
#include "base/vec.h"

/* A release target. */
typedef struct watch_row {
    str deployment, environment, resource;
    str state, current, wanted, why;
} watch_row;
typedef VEC(watch_row) watch_rows;

/* Who share a limit. */
typedef struct watch_group {
    str kind, name;
    int64_t holders, limit;
} watch_group;
typedef VEC(watch_group) watch_groups;

typedef struct watch_fleet {
    watch_rows rows; /* by deployment, environment, resource */
    watch_groups groups;
} watch_fleet;

typedef struct watch_screen {
    size_t lines, columns;
    size_t cursor; /* which of the rows that are shown */
    str title;
    str filter;  /* only rows that have this in a name, state or reason */
    bool typing; /* the filter is being typed */
    bool colour;
    bool lost; /* the server cannot be heard */
} watch_screen;

/* Appends the whole screen; returns the rows that the filter lets through and are not done. Puts a
 * cursor that is behind the end on the last row. */
size_t watch_draw(buf *out, const watch_fleet *fleet, watch_screen *screen);
/* Moves the cursor by so many rows, not past the ends; returns how many rows there are. */
size_t watch_move(const watch_fleet *fleet, watch_screen *screen, int64_t by);
/* Puts the cursor on the row of that release target, if it is shown. */
void watch_follow(const watch_fleet *fleet, watch_screen *screen, const watch_row *to);
/* The row the cursor is on, or NULL. */
const watch_row *watch_chosen(const watch_fleet *fleet, const watch_screen *screen);
/* One line: "web: 5 of 48 done, 3 in flight, 0 failed; ..." */
void watch_line(buf *out, const watch_fleet *fleet);

#endif
