/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the command, reads its options, runs it. */
#include <errno.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/help.h"
#include "cli/options.h"
#include "cli/skyhook.h"
#include "server/supervisor.h"

#define OPTIONS_MAX 64

/* The command's own options, and --help. */
static void complete_table(const verb *c, option table[OPTIONS_MAX])
{
    size_t count = 0;
    for (const option *o = c->options; o && o->name && count < OPTIONS_MAX - 2; o++)
        table[count++] = *o;
    table[count++] = (option)OPTION_HELP;
    table[count] = (option)OPTIONS_END;
}

static exit_status checked_run(const verb *c, const options *given)
{
    if (given->operands.len > c->operands_max && !c->operands)
        return usage_error(c, "found \"%s\", no operand is allowed",
                           str_shown(given->operands.at[0]).text);
    if (given->operands.len > c->operands_max)
        return usage_error(c, "found \"%s\", allowed at most %zu operand%s: %s",
                           str_shown(given->operands.at[c->operands_max]).text, c->operands_max,
                           c->operands_max == 1 ? "" : "s", c->operands);
    if (given->operands.len < c->operands_min)
        return usage_error(c, "%s is missing", c->operands);
    return c->run(given);
}

static exit_status run(const verb *c, int count, char **words)
{
    option table[OPTIONS_MAX];
    options given = {.last_counts = program_now()->last_counts};
    err error;
    exit_status status;
    complete_table(c, table);
    if (!options_parse(&given, table, count, words, &error))
        status = usage_error(c, "%s", error.text);
    else if (options_given(&given, "help"))
        status = help_verb(c);
    else
        status = checked_run(c, &given);
    options_done(&given);
    return status;
}

/* Whether the value of an option that stands in front of a command is the next word. */
static bool takes_next(const option *table, str word)
{
    str name = str_part(word, 2, SIZE_MAX);
    for (const option *o = table; o->name; o++)
        if (o->argument && ((str_starts(word, STR("--")) && str_eq(name, str_of(o->name))) ||
                            (word.len == 2 && o->letter && word.ptr[1] == o->letter)))
            return true;
    return false;
}

/* "node" alone has commands; anything else is none. next: the word behind it, or NULL. */
static exit_status half_a_command(str first, const char *next)
{
    char name[64];
    bool asked = next && (strcmp(next, "--help") == 0 || strcmp(next, "-h") == 0);
    bool alone = !next || next[0] == '-';
    if (alone && help_group(first, asked ? stdout : stderr))
        return asked ? STATUS_DONE : STATUS_NO;
    snprintf(name, sizeof name, "%.*s %s", STR_ARG(first), alone ? "" : next);
    unknown_verb(alone ? first : str_of(name));
    return STATUS_NO;
}

/* Commands of two words, "node list"; options may stand in front of them. Every failure is 1, as
 * that plugin's users know it. */
static exit_status dispatch_skyhook(int count, char **words)
{
    static const option common[] = {OPTION_FORM, OPTIONS_SKYHOOK, OPTIONS_END};
    int at = 0;
    while (at < count && words[at][0] == '-')
        at += takes_next(common, str_of(words[at])) ? 2 : 1;
    if (at >= count) {
        help_all(stderr);
        return STATUS_NO;
    }
    char name[64];
    int used = 2;
    const char *first = strcmp(words[at], "dp") == 0 ? "deployment-policy" : words[at];
    snprintf(name, sizeof name, "%s %s", first, at + 1 < count ? words[at + 1] : "");
    const verb *c = verb_find(str_of(name));
    if (!c) {
        used = 1;
        c = verb_find(str_of(first));
    }
    if (!c)
        return half_a_command(str_of(first), at + 1 < count ? words[at + 1] : NULL);
    /* The words of the command go; what stood in front of them stays. */
    for (int i = at; i + used < count; i++)
        words[i] = words[i + used];
    return run(c, count - used, words) == STATUS_DONE ? STATUS_DONE : STATUS_NO;
}

static exit_status dispatch(int count, char **words)
{
    bool plugin = program_now() == &program_skyhook;
    if (count == 0) {
        help_all(stderr);
        return plugin ? STATUS_NO : STATUS_USAGE;
    }
    str word = str_of(words[0]);
    if (str_eq(word, STR("--version"))) {
        puts(plugin ? "Skyhook plugin: " DROVER_VERSION : "drover " DROVER_VERSION);
        return STATUS_DONE;
    }
    if (str_eq(word, STR("--help")) || str_eq(word, STR("-h")))
        return help_all(stdout);
    if (plugin)
        return dispatch_skyhook(count, words);
    if (str_eq(word, STR(SUPERVISOR_VERB))) /* not for people: "drover serve" starts it */
        return (exit_status)supervisor_main(count - 1, words + 1);
    const verb *c = verb_find(word);
    return c ? run(c, count - 1, words + 1) : unknown_verb(word);
}

/* "drover ... | head": that is no failure. */
static bool nobody_reads(void)
{
    struct pollfd out = {.fd = STDOUT_FILENO};
    return poll(&out, 1, 0) == 1 && (out.revents & (POLLERR | POLLHUP));
}

int main(int argc, char **argv)
{
    signal(SIGPIPE, SIG_IGN); /* a failed write is looked at below */
    signal(SIGXFSZ, SIG_IGN); /* a limit on the size of files is a failed write, too */
    program_choose(argc > 0 ? argv[0] : NULL);
    exit_status status = dispatch(argc > 0 ? argc - 1 : 0, argv + 1);
    errno = 0;
    if ((fflush(stdout) != 0 || ferror(stdout)) && !nobody_reads() && status == STATUS_DONE)
        status = fail("standard output cannot be written: %s", strerror(errno ? errno : EIO));
    return (int)status;
}
