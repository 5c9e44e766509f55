/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/acts.h"

static exit_status run(const options *given)
{
    return act_run(&cmd_approve, given, "version");
}

static const option options_of_approve[] = {
    OPTION_DEPLOYMENT, OPTION_ENVIRONMENT, OPTION_REASON, OPTIONS_SERVER, OPTIONS_END,
};

const verb cmd_approve = {
    .name = "approve",
    .summary = "approve a version",
    .operands = "VERSION",
    .operands_min = 1,
    .operands_max = 1,
    .about = "VERSION is its name, or with --deployment its tag.",
    .options = options_of_approve,
    .run = run,
};
