/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/acts.h"

static exit_status run(const options *given)
{
    return act_run(&cmd_halt, given, "deployment");
}

static const option options_of_halt[] = {
    OPTION_RESOURCE,
    OPTION_REASON,
    OPTIONS_SERVER,
    OPTIONS_END,
};

const verb cmd_halt = {
    .name = "halt",
    .summary = "start nothing more: everywhere, of a deployment or on a resource",
    .operands = "[DEPLOYMENT]",
    .operands_min = 0,
    .operands_max = 1,
    .about = "Rollbacks and retries do not start either. \"drover resume\" ends it.",
    .options = options_of_halt,
    .run = run,
};
