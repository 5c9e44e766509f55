/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/output.h"

#include <assert.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/vec.h"

#define GAP 2
#define SHRUNK_MIN 8

struct table {
    const column *columns;
    size_t count;
    VEC(str) cells;
    arena *texts; /* of formatted cells */
    bool failed;
};

bool output_colour(FILE *to)
{
    const char *no_color = getenv("NO_COLOR");
    const char *terminal = getenv("TERM");
    if (no_color && *no_color)
        return false;
    if (terminal && strcmp(terminal, "dumb") == 0)
        return false;
    return isatty(fileno(to));
}

void output_ink(FILE *to, ink i, str text)
{
    static const char *const codes[] = {
#define X(name, code) code,
        INKS(X)
#undef X
    };
    bool colour = output_colour(to);
    if (colour)
        fprintf(to, "\033[%sm", codes[i]);
    output_text(to, text);
    if (colour)
        fputs("\033[0m", to);
}

void output_text(FILE *to, str text)
{
    if (text.len > 0)
        fwrite(text.ptr, 1, text.len, to);
}

bool output_buf(FILE *to, buf *b)
{
    bool good = !b->failed;
    if (good)
        output_text(to, buf_str(b));
    else
        fputs("drover: out of memory\n", stderr);
    buf_done(b);
    return good;
}

size_t output_width(str text)
{
    size_t width = 0;
    for (size_t i = 0; i < text.len; i++)
        width += ((unsigned char)text.ptr[i] & 0xC0) != 0x80;
    return width;
}

void output_wrap(buf *out, str words, size_t at, size_t indent)
{
    str rest = words;
    bool first = true;
    while (rest.ptr) {
        str word = str_cut(&rest, ' ');
        size_t width = output_width(word);
        if (!first && at + 1 + width > OUTPUT_COLUMNS) {
            buf_addf(out, "\n%*s", (int)indent, "");
            at = indent;
        } else if (!first) {
            buf_addc(out, ' ');
            at++;
        }
        buf_add(out, word);
        at += width;
        first = false;
    }
}

table *table_new(const column *columns, size_t count)
{
    assert(count > 0 && count <= OUTPUT_TABLE_COLUMNS_MAX);
    table *t = mem_zalloc(sizeof *t);
    if (!t)
        return NULL;
    t->columns = columns;
    t->count = count;
    t->texts = arena_new(0);
    return t->texts ? t : table_free(t);
}

table *table_free(table *t)
{
    if (!t)
        return NULL;
    vec_done(&t->cells);
    arena_free(t->texts);
    return mem_free(t);
}

void table_cell(table *t, str text)
{
    if (!vec_push(&t->cells, text))
        t->failed = true;
}

void table_cellf(table *t, const char *format, ...)
{
    char text[256];
    va_list args;
    va_start(args, format);
    int len = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    assert(len >= 0);
    size_t kept = (size_t)len < sizeof text ? (size_t)len : sizeof text - 1;
    str copy = arena_str(t->texts, (str){text, kept});
    if (copy.ptr)
        table_cell(t, copy);
    else
        t->failed = true;
}

/* The widest column that may shrink and still can, or count. */
static size_t widest(const table *t, const size_t *widths)
{
    size_t best = t->count;
    for (size_t c = 0; c < t->count; c++)
        if (t->columns[c].shrink && widths[c] > SHRUNK_MIN &&
            (best == t->count || widths[c] > widths[best]))
            best = c;
    return best;
}

static void measure(const table *t, size_t *widths)
{
    size_t total = (t->count - 1) * GAP;
    for (size_t c = 0; c < t->count; c++) {
        widths[c] = output_width(str_of(t->columns[c].title));
        for (size_t i = c; i < t->cells.len; i += t->count) {
            size_t width = output_width(t->cells.at[i]);
            widths[c] = width > widths[c] ? width : widths[c];
        }
        total += widths[c];
    }
    for (size_t c; total > OUTPUT_COLUMNS && (c = widest(t, widths)) < t->count; total--)
        widths[c]--;
}

static void put_cell(buf *out, const column *c, size_t width, str text, bool last)
{
    size_t natural = output_width(text);
    size_t padding = natural < width ? width - natural : 0;
    if (c->right)
        buf_addf(out, "%*s", (int)padding, "");
    if (natural > width) {
        size_t at = 0;
        for (size_t points = 0; points + 1 < width && at < text.len; points++)
            do
                at++;
            while (at < text.len && ((unsigned char)text.ptr[at] & 0xC0) == 0x80);
        buf_add(out, str_part(text, 0, at));
        buf_addz(out, "…");
    } else {
        buf_add(out, text);
    }
    if (!last)
        buf_addf(out, "%*s", (int)((c->right ? 0 : padding) + GAP), "");
}

bool table_print(const table *t, FILE *to)
{
    assert(t->failed || t->cells.len % t->count == 0);
    size_t widths[OUTPUT_TABLE_COLUMNS_MAX];
    buf out = BUF(LIMIT_TEXT_BYTES);
    out.failed = t->failed;
    measure(t, widths);
    for (size_t c = 0; c < t->count; c++)
        put_cell(&out, &t->columns[c], widths[c], str_of(t->columns[c].title), c + 1 == t->count);
    buf_addc(&out, '\n');
    if (!out.failed)
        output_ink(to, INK_BOLD, buf_str(&out));
    buf_clear(&out);
    out.failed = t->failed;
    for (size_t i = 0; i < t->cells.len; i++) {
        bool last = (i + 1) % t->count == 0;
        put_cell(&out, &t->columns[i % t->count], widths[i % t->count], t->cells.at[i], last);
        if (last)
            buf_addc(&out, '\n');
    }
    return output_buf(to, &out);
}
