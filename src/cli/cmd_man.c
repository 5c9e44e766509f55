/* SPDX-License-Identifier: Apache-2.0 */
#include "base/limits.h"
#include "cli/command.h"
#include "cli/output.h"

/* Text as roff takes it: no dash becomes a hyphen, no dot or quote begins a request. */
static void add(buf *out, const char *text)
{
    bool begins = true;
    for (; *text; text++) {
        if (begins && (*text == '.' || *text == '\''))
            buf_addz(out, "\\&");
        if (*text == '-')
            buf_addz(out, "\\-");
        else if (*text == '\\')
            buf_addz(out, "\\e");
        else
            buf_addc(out, *text);
        begins = *text == '\n';
    }
}

static void add_paragraphs(buf *out, const char *text)
{
    for (; *text; text++) {
        char line[LIMIT_LOG_LINE_BYTES];
        size_t len = strcspn(text, "\n");
        snprintf(line, sizeof line, "%.*s", (int)len, text);
        buf_addz(out, ".PP\n");
        add(out, line);
        buf_addc(out, '\n');
        text += len;
        while (text[0] == '\n' && text[1] == '\n')
            text++;
        if (!*text)
            return;
    }
}

static void add_option(buf *out, const option *o)
{
    buf_addz(out, ".TP\n");
    if (o->letter)
        buf_addf(out, "\\fB\\-%c\\fR, ", o->letter);
    buf_addz(out, "\\fB\\-\\-");
    add(out, o->name);
    buf_addz(out, "\\fR");
    if (o->argument)
        buf_addf(out, " \\fI%s\\fR", o->argument);
    buf_addc(out, '\n');
    add(out, o->help);
    if (o->repeatable)
        buf_addz(out, "; may be repeated");
    buf_addz(out, ".\n");
}

static void add_command(buf *out, const program *p, const verb *c)
{
    buf_addf(out, ".SS %s %s%s%s\n", p->name, c->name, c->operands ? " " : "",
             c->operands ? c->operands : "");
    add(out, c->summary);
    buf_addz(out, ".\n");
    if (c->about)
        add_paragraphs(out, c->about);
    for (const option *o = c->options; o && o->name; o++)
        add_option(out, o);
}

static exit_status run(const options *given)
{
    (void)given;
    buf out = BUF(LIMIT_TEXT_BYTES);
    buf_addz(&out, ".TH DROVER 1 \"\" \"drover " DROVER_VERSION "\"\n"
                   ".SH NAME\ndrover \\- drives change through fleets a batch at a time\n"
                   ".SH SYNOPSIS\n\\fBdrover\\fR \\fICOMMAND\\fR [\\fIOPTION\\fR]... "
                   "[\\fIOPERAND\\fR]...\n"
                   ".SH COMMANDS\n");
    for (const verb *const *c = program_drover.verbs; *c; c++)
        add_command(&out, &program_drover, *c);
    buf_addz(&out,
             ".SH KUBECTL SKYHOOK\n.PP\nThe same program under the name kubectl\\-skyhook.\n");
    for (const verb *const *c = program_skyhook.verbs; *c; c++)
        add_command(&out, &program_skyhook, *c);
    buf_addz(&out, ".SH EXIT STATUS\n");
#define X(name, number, text) buf_addf(&out, ".TP\n%d\n%s.\n", number, text);
    EXIT_STATUSES(X)
#undef X
    buf_addz(&out, ".SH ENVIRONMENT\n.TP\nNO_COLOR\nif set, nothing is printed in colour.\n");
    return output_buf(stdout, &out) ? STATUS_DONE : STATUS_NO;
}

const verb cmd_man = {
    .name = "man",
    .summary = "print the manual page (drover man | man -l -)",
    .run = run,
};
