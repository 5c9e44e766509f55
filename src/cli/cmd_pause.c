/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/acts.h"

static exit_status run(const options *given)
{
    return act_run(&cmd_pause, given, "deployment");
}

static const option options_of_pause[] = {
    OPTION_REASON,
    OPTIONS_SERVER,
    OPTIONS_END,
};

const verb cmd_pause = {
    .name = "pause",
    .summary = "start nothing more of a deployment",
    .operands = "DEPLOYMENT",
    .operands_min = 1,
    .operands_max = 1,
    .about = "What runs goes on to its end. \"drover resume\" ends the pause.",
    .options = options_of_pause,
    .run = run,
};
