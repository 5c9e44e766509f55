/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/acts.h"

static exit_status run(const options *given)
{
    return act_run(&cmd_retry, given, "resource");
}

static const option options_of_retry[] = {
    OPTION_DEPLOYMENT, OPTION_ENVIRONMENT, OPTION_VERSION,
    OPTION_REASON,     OPTIONS_SERVER,     OPTIONS_END,
};

const verb cmd_retry = {
    .name = "retry",
    .summary = "try again what failed",
    .operands = "[RESOURCE]",
    .operands_min = 0,
    .operands_max = 1,
    .about = "Everything that failed, or what the options name.",
    .options = options_of_retry,
    .run = run,
};
