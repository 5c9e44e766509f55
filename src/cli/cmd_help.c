/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/command.h"
#include "cli/help.h"

static exit_status run(const options *given)
{
    if (given->operands.len == 0)
        return help_all(stdout);
    const verb *c = verb_find(given->operands.at[0]);
    return c ? help_verb(c) : unknown_verb(given->operands.at[0]);
}

const verb cmd_help = {
    .name = "help",
    .summary = "print help, about one command or all",
    .operands = "[COMMAND]",
    .operands_max = 1,
    .run = run,
};
