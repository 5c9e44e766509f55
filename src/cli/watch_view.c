/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/watch_view.h"

#include "cli/output.h"

#define BAR_COLUMNS 24
#define LINES_KEPT 4 /* for title, headings and keys */

typedef struct tally {
    str deployment, environment;
    size_t all, done, running, failed;
} tally;

typedef VEC(tally) tallies;

static bool contains(str text, str part)
{
    return str_find(text, part) != SIZE_MAX;
}

static bool passes(const watch_row *r, const watch_screen *s)
{
    return s->filter.len == 0 || contains(r->deployment, s->filter) ||
           contains(r->environment, s->filter) || contains(r->resource, s->filter) ||
           contains(r->state, s->filter) || contains(r->why, s->filter);
}

/* Rows are sorted by deployment and environment. */
static bool count_rows(const watch_rows *rows, const watch_screen *s, bool by_environment,
                       tallies *out)
{
    for (size_t i = 0; i < rows->len; i++) {
        const watch_row *r = &rows->at[i];
        if (s && !passes(r, s))
            continue;
        tally *last = out->len > 0 ? &out->at[out->len - 1] : NULL;
        if (!last || !str_eq(last->deployment, r->deployment) ||
            (by_environment && !str_eq(last->environment, r->environment))) {
            if (!vec_push(out, (tally){r->deployment, r->environment, 0, 0, 0, 0}))
                return false;
            last = &out->at[out->len - 1];
        }
        last->all++;
        last->done += str_eq(r->state, STR("done")) ? 1 : 0;
        last->running += str_eq(r->state, STR("inFlight")) ? 1 : 0;
        last->failed += str_eq(r->state, STR("failed")) ? 1 : 0;
    }
    return true;
}

/* Cut to the width, by code points; what is not printable is left out. */
static void add_cut(buf *out, str text, size_t columns)
{
    size_t used = 0;
    for (size_t at = 0; at < text.len && used < columns;) {
        size_t len = str_utf8_printable(str_part(text, at, text.len));
        if (len > 0) {
            buf_add(out, str_part(text, at, len));
            used++;
        }
        at += len > 0 ? len : 1;
    }
}

static void add_padded(buf *out, str text, size_t columns)
{
    size_t width = output_width(text);
    add_cut(out, text, columns);
    for (; width < columns; width++)
        buf_addc(out, ' ');
}

static void ink_on(buf *out, const watch_screen *s, const char *code)
{
    if (s->colour)
        buf_addf(out, "\033[%sm", code);
}

static void add_bar(buf *out, const tally *t, const watch_screen *s)
{
    size_t done = t->done * BAR_COLUMNS / t->all;
    size_t busy = (t->done + t->running) * BAR_COLUMNS / t->all - done;
    buf_addc(out, '[');
    ink_on(out, s, t->failed > 0 ? "31" : "32");
    for (size_t i = 0; i < done; i++)
        buf_addc(out, '#');
    ink_on(out, s, "33");
    for (size_t i = 0; i < busy; i++)
        buf_addc(out, '>');
    ink_on(out, s, "0");
    for (size_t i = done + busy; i < BAR_COLUMNS; i++)
        buf_addc(out, '.');
    buf_addc(out, ']');
}

static void add_tally(buf *out, const tally *t, const watch_screen *s)
{
    add_padded(out, t->deployment, 20);
    buf_addc(out, ' ');
    add_padded(out, t->environment, 14);
    buf_addc(out, ' ');
    add_bar(out, t, s);
    buf_addf(out, " %zu/%zu", t->done, t->all);
    if (t->running > 0)
        buf_addf(out, "  %zu in flight", t->running);
    if (t->failed > 0)
        buf_addf(out, "  %zu failed", t->failed);
    buf_addc(out, '\n');
}

static void add_row(buf *out, const watch_row *r, const watch_screen *s, bool chosen)
{
    size_t used = 2 + 19 + 13 + 17 + 9;
    buf_addz(out, chosen ? "> " : "  ");
    ink_on(out, s, chosen ? "7" : "0");
    add_padded(out, r->deployment, 18);
    buf_addc(out, ' ');
    add_padded(out, r->environment, 12);
    buf_addc(out, ' ');
    add_padded(out, r->resource, 16);
    buf_addc(out, ' ');
    add_padded(out, r->state, 8);
    buf_addc(out, ' ');
    add_cut(out, r->why, s->columns > used ? s->columns - used : 0);
    ink_on(out, s, "0");
    buf_addc(out, '\n');
}

static bool moves(const watch_row *r, const watch_screen *s)
{
    return !str_eq(r->state, STR("done")) && passes(r, s);
}

const watch_row *watch_chosen(const watch_rows *rows, const watch_screen *s)
{
    size_t at = 0;
    for (size_t i = 0; i < rows->len; i++)
        if (moves(&rows->at[i], s) && at++ == s->cursor)
            return &rows->at[i];
    return NULL;
}

static size_t draw_rows(buf *out, const watch_rows *rows, watch_screen *s, size_t room)
{
    size_t count = 0, at = 0;
    for (size_t i = 0; i < rows->len; i++)
        count += moves(&rows->at[i], s) ? 1 : 0;
    if (s->cursor >= count)
        s->cursor = count > 0 ? count - 1 : 0;
    size_t first = s->cursor >= room ? s->cursor - room + 1 : 0;
    for (size_t i = 0; i < rows->len; i++) {
        if (!moves(&rows->at[i], s))
            continue;
        if (at >= first && at < first + room)
            add_row(out, &rows->at[i], s, at == s->cursor);
        at++;
    }
    return count;
}

size_t watch_draw(buf *out, const watch_rows *rows, watch_screen *s)
{
    tallies groups = {0};
    count_rows(rows, s, true, &groups);
    size_t most = s->lines > LINES_KEPT ? (s->lines - LINES_KEPT) / 2 : 1;
    size_t bars = groups.len < most ? groups.len : most;
    for (size_t i = 0; i < bars; i++)
        add_tally(out, &groups.at[i], s);
    if (groups.len > bars)
        buf_addf(out, "... and %zu more\n", groups.len - bars);
    buf_addc(out, '\n');
    size_t used = bars + LINES_KEPT;
    size_t count = draw_rows(out, rows, s, s->lines > used ? s->lines - used : 1);
    if (count == 0)
        buf_addz(out, "  nothing waits and nothing runs\n");
    buf_addf(out, "%zu not done", count);
    if (s->typing || s->filter.len > 0)
        buf_addf(out, "   filter: %.*s%s", STR_ARG(s->filter), s->typing ? "_" : "");
    else
        buf_addz(out, "   up/down move, enter explains, / filters, q quits");
    vec_done(&groups);
    return count;
}

void watch_line(buf *out, const watch_rows *rows)
{
    tallies groups = {0};
    count_rows(rows, NULL, false, &groups);
    for (size_t i = 0; i < groups.len; i++) {
        const tally *t = &groups.at[i];
        buf_addf(out, "%s%.*s: %zu of %zu done, %zu in flight, %zu failed", i > 0 ? "; " : "",
                 STR_ARG(t->deployment), t->done, t->all, t->running, t->failed);
    }
    buf_addz(out, groups.len > 0 ? "\n" : "no release targets\n");
    vec_done(&groups);
}
