/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/bundle_acts.h"

static exit_status run(const options *given)
{
    if (options_given(given, "bundle"))
        return bundle_act_run(&cmd_resume, given, ACT_RESUME);
    return act_run(&cmd_resume, given, "deployment");
}

static const option options_of_resume[] = {
    OPTION_RESOURCE, OPTION_REASON, OPTIONS_BUNDLE, OPTIONS_SERVER, OPTIONS_END,
};

const verb cmd_resume = {
    .name = "resume",
    .summary = "end a pause or a halt",
    .operands = "[DEPLOYMENT]",
    .operands_min = 0,
    .operands_max = 1,
    .about = "Without a deployment and a resource, ends a halt of everything. Of a Bundle "
             "it ends a pause, and a halt after failures.",
    .options = options_of_resume,
    .run = run,
};
