/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/acts.h"

static exit_status run(const options *given)
{
    return act_run(&cmd_resume, given, "deployment");
}

static const option options_of_resume[] = {
    OPTION_RESOURCE,
    OPTION_REASON,
    OPTIONS_SERVER,
    OPTIONS_END,
};

const verb cmd_resume = {
    .name = "resume",
    .summary = "end a pause or a halt",
    .operands = "[DEPLOYMENT]",
    .operands_min = 0,
    .operands_max = 1,
    .about = "Without a deployment and a resource, ends a halt of everything.",
    .options = options_of_resume,
    .run = run,
};
