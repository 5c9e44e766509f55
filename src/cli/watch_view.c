/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/watch_view.h"

#include "cli/output.h"

#define BAR_COLUMNS_MOST 24u
#define BAR_COLUMNS_LEAST 6u
#define BESIDE_BAR 70u /* columns of names and counts */
#define GROUPS_SHOWN 4u
#define LINES_AROUND 5u /* title, headings, an empty line and keys */

typedef struct tally {
    str deployment, environment, version;
    size_t all, done, running, failed;
} tally;
typedef VEC(tally) tallies;

/* In the order in which they are listed: what moves first. */
static const char *const states[] = {"inFlight", "failed", "blocked", "waiting", "excluded"};
#define STATES_LISTED (sizeof states / sizeof states[0])

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

static void count_row(tally *t, const watch_row *r)
{
    bool done = str_eq(r->state, STR("done"));
    if (str_eq(r->state, STR("excluded")))
        return;
    t->all++;
    t->done += done;
    t->running += str_eq(r->state, STR("inFlight"));
    t->failed += str_eq(r->state, STR("failed"));
    if (!done || t->version.len == 0)
        t->version = r->wanted.len > 0 ? r->wanted : r->current;
}

static bool count_rows(const watch_fleet *f, const watch_screen *s, bool by_environment,
                       tallies *out)
{
    for (size_t i = 0; i < f->rows.len; i++) {
        const watch_row *r = &f->rows.at[i];
        if (s && !passes(r, s))
            continue;
        tally *last = out->len > 0 ? &out->at[out->len - 1] : NULL;
        if (!last || !str_eq(last->deployment, r->deployment) ||
            (by_environment && !str_eq(last->environment, r->environment))) {
            if (!vec_push(out, (tally){.deployment = r->deployment, .environment = r->environment}))
                return false;
            last = &out->at[out->len - 1];
        }
        count_row(last, r);
    }
    return true;
}

/* ---- lines ---- */

/* Cut to the width, by code points; what is not printable is left out. Returns the columns used. */
static size_t add_cut(buf *out, str text, size_t columns)
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
    return used;
}

static void add_padded(buf *out, str text, size_t columns)
{
    for (size_t used = add_cut(out, text, columns); used < columns; used++)
        buf_addc(out, ' ');
}

static void ink_on(buf *out, const watch_screen *s, const char *code)
{
    if (s->colour)
        buf_addf(out, "\033[%sm", code);
}

static size_t bar_columns(const watch_screen *s)
{
    size_t left = s->columns > BESIDE_BAR ? s->columns - BESIDE_BAR : 0;
    return left < BAR_COLUMNS_LEAST  ? BAR_COLUMNS_LEAST
           : left > BAR_COLUMNS_MOST ? BAR_COLUMNS_MOST
                                     : left;
}

static void add_bar(buf *out, const tally *t, const watch_screen *s)
{
    size_t wide = bar_columns(s);
    size_t all = t->all > 0 ? t->all : 1;
    size_t done = t->done * wide / all;
    size_t busy = (t->done + t->running) * wide / all - done;
    busy = done + busy > wide ? wide - done : busy;
    buf_addc(out, '[');
    ink_on(out, s, t->failed > 0 ? "31" : "32");
    for (size_t i = 0; i < done; i++)
        buf_addc(out, '#');
    ink_on(out, s, "33");
    for (size_t i = 0; i < busy; i++)
        buf_addc(out, '>');
    ink_on(out, s, "0");
    for (size_t i = done + busy; i < wide; i++)
        buf_addc(out, '.');
    buf_addc(out, ']');
}

static void add_title(buf *out, const tallies *groups, const watch_screen *s)
{
    tally sum = {0};
    for (size_t i = 0; i < groups->len; i++) {
        sum.all += groups->at[i].all;
        sum.done += groups->at[i].done;
        sum.running += groups->at[i].running;
        sum.failed += groups->at[i].failed;
    }
    buf line = BUF(4096);
    buf_addf(&line, "%.*s  %zu targets: %zu done, %zu in flight, %zu failed, %zu waiting",
             STR_ARG(s->title), sum.all, sum.done, sum.running, sum.failed,
             sum.all - sum.done - sum.running - sum.failed);
    ink_on(out, s, s->lost ? "31" : "1");
    add_cut(out, s->lost ? STR("the server cannot be reached; trying again") : buf_str(&line),
            s->columns);
    ink_on(out, s, "0");
    buf_addc(out, '\n');
    buf_done(&line);
}

static void add_tally(buf *out, const tally *t, const watch_screen *s)
{
    add_padded(out, t->deployment, 18);
    buf_addc(out, ' ');
    add_padded(out, t->environment, 12);
    buf_addc(out, ' ');
    add_padded(out, t->version, 10);
    buf_addc(out, ' ');
    add_bar(out, t, s);
    buf line = BUF(4096);
    buf_addf(&line, " %zu/%zu", t->done, t->all);
    if (t->running > 0)
        buf_addf(&line, "  %zu in flight", t->running);
    if (t->failed > 0)
        buf_addf(&line, "  %zu failed", t->failed);
    size_t used = 18 + 1 + 12 + 1 + 10 + 1 + bar_columns(s) + 2;
    add_cut(out, buf_str(&line), s->columns > used ? s->columns - used : 0);
    buf_addc(out, '\n');
    buf_done(&line);
}

static void add_group(buf *out, const watch_group *g, const watch_screen *s)
{
    int64_t limit = g->limit > 0 ? g->limit : 0;
    tally t = {.all = limit > 0 ? (size_t)limit : 1,
               .running = (size_t)(g->holders < limit ? g->holders : limit)};
    add_padded(out, g->kind, 12);
    buf_addc(out, ' ');
    add_padded(out, g->name, 29);
    buf_addc(out, ' ');
    add_bar(out, &t, s);
    char counts[64];
    snprintf(counts, sizeof counts, " %lld of %lld taken", (long long)g->holders, (long long)limit);
    size_t used = 12 + 1 + 29 + 1 + bar_columns(s) + 2;
    add_cut(out, str_of(counts), s->columns > used ? s->columns - used : 0);
    buf_addc(out, '\n');
}

static void add_row(buf *out, const watch_row *r, const watch_screen *s, bool chosen)
{
    size_t used = 2 + 19 + 13 + 17 + 9;
    buf_addz(out, chosen ? "> " : "  ");
    ink_on(out, s, chosen ? "7" : str_eq(r->state, STR("failed")) ? "31" : "0");
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

/* ---- the rows that are not done ---- */

typedef struct row_walk {
    const watch_fleet *fleet;
    const watch_screen *screen;
    size_t state, at;
} row_walk;

static const watch_row *next_row(row_walk *w)
{
    for (; w->state < STATES_LISTED; w->state++, w->at = 0)
        while (w->at < w->fleet->rows.len) {
            const watch_row *r = &w->fleet->rows.at[w->at++];
            if (str_eq(r->state, str_of(states[w->state])) && passes(r, w->screen))
                return r;
        }
    return NULL;
}

const watch_row *watch_chosen(const watch_fleet *f, const watch_screen *s)
{
    row_walk walk = {f, s, 0, 0};
    const watch_row *r = next_row(&walk);
    for (size_t i = 0; r && i < s->cursor; i++)
        r = next_row(&walk);
    return r;
}

void watch_follow(const watch_fleet *f, watch_screen *s, const watch_row *to)
{
    row_walk walk = {f, s, 0, 0};
    const watch_row *r;
    for (size_t i = 0; (r = next_row(&walk)); i++)
        if (str_eq(r->resource, to->resource) && str_eq(r->deployment, to->deployment) &&
            str_eq(r->environment, to->environment)) {
            s->cursor = i;
            return;
        }
}

size_t watch_move(const watch_fleet *f, watch_screen *s, int64_t by)
{
    size_t count = 0;
    for (row_walk walk = {f, s, 0, 0}; next_row(&walk);)
        count++;
    int64_t last = count > 0 ? (int64_t)count - 1 : 0, to = (int64_t)s->cursor + by;
    s->cursor = (size_t)(to < 0 ? 0 : to > last ? last : to);
    return count;
}

static size_t draw_rows(buf *out, const watch_fleet *f, watch_screen *s, size_t room)
{
    size_t count = watch_move(f, s, 0), at = 0;
    size_t first = s->cursor >= room ? s->cursor - room + 1 : 0;
    row_walk walk = {f, s, 0, 0};
    for (const watch_row *r = next_row(&walk); r && at < first + room; r = next_row(&walk)) {
        if (at >= first)
            add_row(out, r, s, at == s->cursor);
        at++;
    }
    return count;
}

/* Where there is no room for all, those that are not done come first. */
static void draw_tallies(buf *out, const tallies *changes, const watch_screen *s, size_t bars)
{
    size_t drawn = 0;
    for (size_t round = 0; round < 2; round++)
        for (size_t i = 0; i < changes->len && drawn < bars; i++) {
            const tally *t = &changes->at[i];
            bool done = t->done == t->all;
            if (changes->len > bars ? done == (round == 1) : round == 0) {
                add_tally(out, t, s);
                drawn++;
            }
        }
    if (changes->len > bars)
        buf_addf(out, "... and %zu more\n", changes->len - bars);
}

size_t watch_draw(buf *out, const watch_fleet *f, watch_screen *s)
{
    tallies changes = {0};
    count_rows(f, s, true, &changes);
    add_title(out, &changes, s);
    size_t room = s->lines > LINES_AROUND + 2 ? s->lines - LINES_AROUND : 2;
    size_t groups = f->groups.len < GROUPS_SHOWN ? f->groups.len : GROUPS_SHOWN;
    groups = groups < room / 4 ? groups : room / 4;
    size_t bars = changes.len < room / 2 ? changes.len : room / 2;
    draw_tallies(out, &changes, s, bars);
    for (size_t i = 0; i < groups; i++)
        add_group(out, &f->groups.at[i], s);
    buf_addc(out, '\n');
    size_t used = bars + groups + (changes.len > bars);
    size_t count = draw_rows(out, f, s, room > used + 1 ? room - used : 1);
    if (count == 0)
        buf_addz(out, "  nothing waits and nothing runs\n");
    buf keys = BUF(4096);
    buf_addf(&keys, "%zu not done", count);
    if (s->typing || s->filter.len > 0)
        buf_addf(&keys, "   filter: %.*s%s", STR_ARG(s->filter),
                 s->typing ? "_   (enter keeps it, escape takes it away)"
                           : "   (escape takes it away)");
    else
        buf_addz(&keys, "   up/down move, enter explains, / filters, q quits");
    add_cut(out, buf_str(&keys), s->columns);
    buf_done(&keys);
    vec_done(&changes);
    return count;
}

void watch_line(buf *out, const watch_fleet *f)
{
    tallies changes = {0};
    count_rows(f, NULL, false, &changes);
    for (size_t i = 0; i < changes.len; i++) {
        const tally *t = &changes.at[i];
        buf_addf(out, "%s%.*s: %zu of %zu done, %zu in flight, %zu failed", i > 0 ? "; " : "",
                 STR_ARG(t->deployment), t->done, t->all, t->running, t->failed);
    }
    buf_addz(out, changes.len > 0 ? "\n" : "no release targets\n");
    vec_done(&changes);
}
