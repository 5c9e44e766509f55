/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/acts.h"

static exit_status run(const options *given)
{
    if (given->operands.len == 0 && !options_given(given, "deployment"))
        return usage_error(&cmd_rollback, "a RESOURCE or --deployment is needed");
    return act_run(&cmd_rollback, given, "resource");
}

static const option options_of_rollback[] = {
    OPTION_DEPLOYMENT, OPTION_ENVIRONMENT, OPTION_VERSION,
    OPTION_REASON,     OPTIONS_SERVER,     OPTIONS_END,
};

const verb cmd_rollback = {
    .name = "rollback",
    .summary = "go back to the version before",
    .operands = "[RESOURCE]",
    .operands_min = 0,
    .operands_max = 1,
    .about = "On a resource, or with --deployment on all of them.",
    .options = options_of_rollback,
    .run = run,
};
