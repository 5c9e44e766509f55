/* SPDX-License-Identifier: Apache-2.0 */
/* help.h - help, made from the rows of command.h. */
#ifndef DROVER_CLI_HELP_H
#define DROVER_CLI_HELP_H

#include <stdio.h>

#include "cli/command.h"

#define OPTION_HELP {.name = "help", .letter = 'h', .help = "print this help"}

/* What Drover is and its commands. */
exit_status help_all(FILE *to);
/* The commands of two words that begin with this one; false: there are none. */
bool help_group(str first, FILE *to);
/* One command, on standard output. */
exit_status help_verb(const verb *c);
/* A usage error with a guess at what was meant. */
exit_status unknown_verb(str name);

#endif
