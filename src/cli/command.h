/* SPDX-License-Identifier: Apache-2.0 */
/* command.h - the commands of the program: one row of data and one function each.
 *
 * In the code they are verbs, since a command is also what a job runs. A verb is one file,
 * cmd_NAME.c. Help, usage errors, the manual page and the shell completions are all made from
 * these rows; nothing about a verb is written anywhere else.
 *
 * To add one: write cmd_NAME.c, add X(NAME) to VERBS and the file to meson.build. */
#ifndef DROVER_CLI_COMMAND_H
#define DROVER_CLI_COMMAND_H

#include "base/err.h"
#include "base/str.h"
#include "cli/options.h"

/* The exit status of every command. */
#define EXIT_STATUSES(X)                                                                           \
    X(DONE, 0, "done")                                                                             \
    X(NO, 1, "the answer is no: a validation error, a plan that stops")                            \
    X(USAGE, 2, "wrong usage")                                                                     \
    X(UNREACHABLE, 3, "the server or the cluster cannot be reached")

typedef enum exit_status {
#define X(name, number, text) STATUS_##name = number,
    EXIT_STATUSES(X)
#undef X
} exit_status;

typedef struct verb {
    const char *name;
    const char *summary; /* one line, no full stop */
    const char
        *operands; /* as usage shows them: "TARGET", "bash|zsh|fish", "[COMMAND]"; may be NULL */
    size_t operands_min;
    size_t operands_max;
    const char *about;     /* paragraphs, one line each, with an empty line between them */
    const option *options; /* ends with a row without name; may be NULL; --help is added to each */
    exit_status (*run)(const options *given);
} verb;

/* In the order in which help lists them. */
#define VERBS(X)                                                                                   \
    X(serve)                                                                                       \
    X(operator)                                                                                    \
    X(apply)                                                                                       \
    X(delete)                                                                                      \
    X(get)                                                                                         \
    X(describe)                                                                                    \
    X(version)                                                                                     \
    X(pause)                                                                                       \
    X(resume)                                                                                      \
    X(halt)                                                                                        \
    X(approve)                                                                                     \
    X(reject)                                                                                      \
    X(retry)                                                                                       \
    X(skip)                                                                                        \
    X(rollback)                                                                                    \
    X(bypass)                                                                                      \
    X(freeze)                                                                                      \
    X(thaw)                                                                                        \
    X(dashboard)                                                                                   \
    X(watch)                                                                                       \
    X(history)                                                                                     \
    X(replay)                                                                                      \
    X(logs)                                                                                        \
    X(complete)                                                                                    \
    X(cancel)                                                                                      \
    X(token)                                                                                       \
    X(worker)                                                                                      \
    X(backup)                                                                                      \
    X(crds)                                                                                        \
    X(bundle)                                                                                      \
    X(cluster)                                                                                     \
    X(cluster_agent)                                                                               \
    X(validate)                                                                                    \
    X(plan)                                                                                        \
    X(explain)                                                                                     \
    X(completion)                                                                                  \
    X(man)                                                                                         \
    X(help)

#define X(name) extern const verb cmd_##name;
VERBS(X)
#undef X

/* A program is a name under which it is run, and the commands that it then has. */
typedef struct program {
    const char *file; /* how it is run */
    const char *name; /* as people write it: "drover", "kubectl skyhook" */
    const char *about;
    const verb *const *verbs; /* ends with NULL */
    bool last_counts;         /* see options.h */
} program;
extern const program program_drover;
extern const program program_skyhook;
/* The one that runs: that whose file name it was started by, else drover. */
const program *program_now(void);
void program_choose(const char *started_as);

/* Those of the program that runs. */
const verb *verb_find(str name);
/* The command a person probably meant, or NULL. */
const verb *verb_like(str name);

/* "drover: validate: MESSAGE" and where to read on, on standard error. Returns STATUS_USAGE. */
exit_status usage_error(const verb *c, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* "drover: MESSAGE" on standard error. Returns STATUS_NO. */
exit_status fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* "drover validate -f FILE... [--strict]" */
void verb_usage(const verb *c, buf *out);

/* What most commands share. */
#define OPTION_FILES                                                                               \
    {.name = "file",                                                                               \
     .letter = 'f',                                                                                \
     .argument = "FILE",                                                                           \
     .repeatable = true,                                                                           \
     .help = "documents to read: a file, a folder (its *.yaml, *.yml and *.json files) or - for "  \
             "standard input"}
#define OPTION_OUTPUT(forms)                                                                       \
    {.name = "output",                                                                             \
     .letter = 'o',                                                                                \
     .argument = forms,                                                                            \
     .help = "the form of what is printed; the first one unless told otherwise"}
#define OPTIONS_END {.name = NULL}

#endif
