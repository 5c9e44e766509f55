/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the command, reads its options, runs it. */
#include <errno.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/help.h"
#include "cli/kube_session.h"
#include "cli/options.h"
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
    options given = {0};
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

/* Commands of two words, "node list"; options may stand in front of them. Every failure is 1, as
 * that plugin's users know it. */
static exit_status dispatch_skyhook(int count, char **words)
{
    static const option common[] = {OPTIONS_CLUSTER, OPTIONS_END};
    int at = 0;
    while (at < count && words[at][0] == '-') {
        bool takes = false;
        for (const option *o = common; o->name; o++)
            takes |= str_eq(str_of(words[at]), STR("-n")) ||
                     (o->argument && strncmp(words[at], "--", 2) == 0 &&
                      strcmp(words[at] + 2, o->name) == 0);
        at += takes ? 2 : 1;
    }
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
    if (!c) {
        unknown_verb(str_of(at + 1 < count && words[at + 1][0] != '-' ? name : first));
        return STATUS_NO;
    }
    /* The words of the command go; what stood in front of them stays. */
    for (int i = at; i + used < count; i++)
        words[i] = words[i + used];
    return run(c, count - used, words) == STATUS_DONE ? STATUS_DONE : STATUS_NO;
}

static exit_status dispatch(int count, char **words)
{
    if (count == 0) {
        help_all(stderr);
        return STATUS_USAGE;
    }
    str word = str_of(words[0]);
    bool skyhook = program_now() == &program_skyhook;
    if (str_eq(word, STR("--version"))) {
        puts(skyhook ? "Skyhook plugin: " DROVER_VERSION : "drover " DROVER_VERSION);
        return STATUS_DONE;
    }
    if (str_eq(word, STR("--help")) || str_eq(word, STR("-h")))
        return help_all(stdout);
    if (skyhook)
        return dispatch_skyhook(count, words);
    if (str_eq(word, STR(SUPERVISOR_VERB))) /* not for people: "drover serve" starts it */
        return (exit_status)supervisor_main(count - 1, words + 1);
    const verb *c = verb_find(word);
    return c ? run(c, count - 1, words + 1) : unknown_verb(word);
}

int main(int argc, char **argv)
{
    signal(SIGPIPE,
           SIG_IGN); /* "drover ... | head" ends by a failed write, which is looked at below */
    signal(SIGXFSZ, SIG_IGN); /* a limit on the size of files is a failed write, too */
    program_choose(argc > 0 ? argv[0] : NULL);
    exit_status status = dispatch(argc > 0 ? argc - 1 : 0, argv + 1);
    errno = 0;
    if ((fflush(stdout) != 0 || ferror(stdout)) && errno != EPIPE && status == STATUS_DONE)
        status = fail("standard output cannot be written: %s", strerror(errno ? errno : EIO));
    return (int)status;
}
