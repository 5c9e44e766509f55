/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/bundle_acts.h"

static exit_status run(const options *given)
{
    if (options_given(given, "bundle"))
        return bundle_act_run(&cmd_pause, given, ACT_PAUSE);
    if (given->operands.len == 0)
        return usage_error(&cmd_pause, "either a DEPLOYMENT or --bundle is needed");
    return act_run(&cmd_pause, given, "deployment");
}

static const option options_of_pause[] = {
    OPTION_REASON,
    OPTIONS_BUNDLE,
    OPTIONS_SERVER,
    OPTIONS_END,
};

const verb cmd_pause = {
    .name = "pause",
    .summary = "start nothing more of a deployment or Bundle",
    .operands = "[DEPLOYMENT]",
    .operands_max = 1,
    .about = "What runs goes on to its end. \"drover resume\" ends the pause.",
    .options = options_of_pause,
    .run = run,
};
