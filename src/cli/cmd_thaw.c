/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/acts.h"

static exit_status run(const options *given)
{
    return act_run(&cmd_thaw, given, "name");
}

static const option options_of_thaw[] = {
    OPTION_REASON,
    OPTIONS_SERVER,
    OPTIONS_END,
};

const verb cmd_thaw = {
    .name = "thaw",
    .summary = "end a freeze, or all of them",
    .operands = "[NAME]",
    .operands_min = 0,
    .operands_max = 1,
    .about = "Without NAME all freezes end.",
    .options = options_of_thaw,
    .run = run,
};
