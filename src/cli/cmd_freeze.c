/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/acts.h"

static exit_status run(const options *given)
{
    return act_run(&cmd_freeze, given, "name");
}

static const option options_of_freeze[] = {
    {.name = "selector",
     .argument = "CEL",
     .help = "over deployment, environment and resource; everything unless told"},
    {.name = "name", .argument = "NAME", .help = "the same as the operand"},
    OPTION_UNTIL,
    OPTION_REASON,
    OPTIONS_SERVER,
    OPTIONS_END,
};

const verb cmd_freeze = {
    .name = "freeze",
    .summary = "start nothing that a selector matches",
    .operands = "[NAME]",
    .operands_min = 0,
    .operands_max = 1,
    .about =
        "NAME tells freezes apart; the same name again replaces it. What runs goes on to its end.",
    .options = options_of_freeze,
    .run = run,
};
