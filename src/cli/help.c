/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/help.h"

#include <stdarg.h>

#include "base/limits.h"
#include "cli/output.h"

#define INDENT 2
#define COMMAND_COLUMN 16
#define OPTION_COLUMN 30
#define VERBS_MAX 64

static const verb *const drover_verbs[] = {
#define X(name) &cmd_##name,
    VERBS(X)
#undef X
        NULL,
};

const program program_drover = {
    .file = "drover",
    .name = "drover",
    .about = "Drover drives change through fleets a batch at a time and never past the limits its "
             "user set.",
    .verbs = drover_verbs,
};

static const program *running = &program_drover;

const program *program_now(void)
{
    return running;
}

void program_choose(const char *started_as)
{
    const char *slash = started_as ? strrchr(started_as, '/') : NULL;
    const char *file = slash ? slash + 1 : started_as;
    if (file && strcmp(file, program_skyhook.file) == 0)
        running = &program_skyhook;
}

const verb *verb_find(str name)
{
    for (const verb *const *c = running->verbs; *c; c++)
        if (str_eq(name, str_of((*c)->name)))
            return *c;
    return NULL;
}

const verb *verb_like(str name)
{
    const char *names[VERBS_MAX + 1] = {NULL};
    for (size_t i = 0; running->verbs[i] && i < VERBS_MAX; i++)
        names[i] = running->verbs[i]->name;
    const char *like = most_like(name, names);
    return like ? verb_find(str_of(like)) : NULL;
}

exit_status fail(const char *format, ...)
{
    char text[LIMIT_ERR_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    output_ink(stderr, INK_RED, str_of(running->file));
    output_ink(stderr, INK_RED, STR(":"));
    fprintf(stderr, " %s\n", text);
    return STATUS_NO;
}

exit_status usage_error(const verb *c, const char *format, ...)
{
    char text[LIMIT_ERR_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    fail("%s: %s", c->name, text);
    fprintf(stderr, "See \"%s %s --help\".\n", running->name, c->name);
    return STATUS_USAGE;
}

exit_status unknown_verb(str name)
{
    const verb *like = verb_like(name);
    if (like)
        fail("found command \"%s\", which does not exist; did you mean \"%s\"?",
             str_shown(name).text, like->name);
    else
        fail("found command \"%s\", which does not exist", str_shown(name).text);
    fprintf(stderr, "See \"%s help\".\n", running->name);
    return STATUS_USAGE;
}

void verb_usage(const verb *c, buf *out)
{
    buf_addf(out, "%s %s", running->name, c->name);
    for (const option *o = c->options; o && o->name; o++) {
        buf_addz(out, " [");
        if (o->letter)
            buf_addf(out, "-%c", o->letter);
        else
            buf_addf(out, "--%s", o->name);
        if (o->argument)
            buf_addf(out, " %s", o->argument);
        buf_addz(out, o->repeatable ? "]..." : "]");
    }
    if (c->operands)
        buf_addf(out, " %s", c->operands);
}

static void heading(buf *out, const char *text)
{
    buf_addf(out, "\n%s\n", text);
}

/* "  NAME    what it is", the second part wrapped under itself. */
static void row(buf *out, const char *name, str text, size_t at)
{
    size_t width = INDENT + output_width(str_of(name));
    buf_addf(out, "%*s%s", INDENT, "", name);
    if (width + 2 > at)
        buf_addf(out, "\n%*s", (int)at, "");
    else
        buf_addf(out, "%*s", (int)(at - width), "");
    output_wrap(out, text, at, at);
    buf_addc(out, '\n');
}

static void option_row(buf *out, const option *o)
{
    char name[128], letter[] = "-x,", text[LIMIT_ERR_BYTES];
    letter[1] = o->letter;
    snprintf(name, sizeof name, "%s --%s%s%s", o->letter ? letter : "   ", o->name,
             o->argument ? " " : "", o->argument ? o->argument : "");
    snprintf(text, sizeof text, "%s%s", o->help, o->repeatable ? "; may be repeated" : "");
    row(out, name, str_of(text), OPTION_COLUMN);
}

static void statuses(buf *out)
{
    static const struct {
        const char *number;
        const char *text;
    } rows[] = {
#define X(name, number, text) {#number, text},
        EXIT_STATUSES(X)
#undef X
    };
    heading(out, "Exit status:");
    if (running == &program_skyhook) { /* as its users know it */
        row(out, "0", STR("done"), INDENT + 3);
        row(out, "1", STR("anything else; a message says what"), INDENT + 3);
        return;
    }
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        row(out, rows[i].number, str_of(rows[i].text), INDENT + 3);
}

static size_t widest_name(void)
{
    size_t widest = COMMAND_COLUMN - 2 * INDENT;
    for (const verb *const *c = running->verbs; *c; c++)
        if (strlen((*c)->name) > widest)
            widest = strlen((*c)->name);
    return widest;
}

exit_status help_all(FILE *to)
{
    buf out = BUF(LIMIT_TEXT_BYTES);
    output_wrap(&out, str_of(running->about), 0, 0);
    buf_addf(&out, "\n\nUsage: %s COMMAND [OPTION]... [OPERAND]...\n", running->name);
    heading(&out, "Commands:");
    for (const verb *const *c = running->verbs; *c; c++)
        row(&out, (*c)->name, str_of((*c)->summary), widest_name() + 2 * INDENT);
    statuses(&out);
    buf_addf(&out, "\n\"%s COMMAND --help\" says more about one.\n", running->name);
    return output_buf(to, &out) ? STATUS_DONE : STATUS_NO;
}

bool help_group(str first, FILE *to)
{
    buf out = BUF(LIMIT_TEXT_BYTES);
    bool any = false;
    buf_addf(&out, "Usage: %s %.*s COMMAND [OPTION]... [OPERAND]...\n", running->name,
             STR_ARG(first));
    heading(&out, "Commands:");
    for (const verb *const *c = running->verbs; *c; c++) {
        str rest = str_of((*c)->name);
        if (!str_eq(str_cut(&rest, ' '), first) || !rest.ptr)
            continue;
        row(&out, (*c)->name, str_of((*c)->summary), widest_name() + 2 * INDENT);
        any = true;
    }
    if (!any)
        buf_done(&out);
    else
        output_buf(to, &out);
    return any;
}

exit_status help_verb(const verb *c)
{
    static const option help = OPTION_HELP;
    buf out = BUF(LIMIT_TEXT_BYTES), usage = BUF(LIMIT_TEXT_BYTES);
    buf_addf(&out, "%s %s - %s\n\nUsage: ", running->name, c->name, c->summary);
    verb_usage(c, &usage);
    output_wrap(&out, buf_str(&usage), 7, 11);
    buf_done(&usage);
    buf_addc(&out, '\n');
    str about = c->about ? str_of(c->about) : (str){NULL, 0};
    if (about.ptr)
        buf_addc(&out, '\n');
    while (about.ptr) {
        output_wrap(&out, str_cut(&about, '\n'), 0, 0);
        buf_addc(&out, '\n');
    }
    heading(&out, "Options:");
    for (const option *o = c->options; o && o->name; o++)
        option_row(&out, o);
    option_row(&out, &help);
    return output_buf(stdout, &out) ? STATUS_DONE : STATUS_NO;
}
