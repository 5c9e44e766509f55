/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/bundle_acts.h"

static exit_status run(const options *given)
{
    if (options_given(given, "bundle") && options_given(given, "partition"))
        return bundle_act_run(&cmd_approve, given, ACT_APPROVE);
    if (options_given(given, "bundle"))
        return usage_error(&cmd_approve, "--bundle needs --partition");
    if ((given->operands.len > 0) == options_given(given, "partition"))
        return usage_error(&cmd_approve, "either a VERSION or --partition is needed");
    return act_run(&cmd_approve, given, "version");
}

static const option options_of_approve[] = {
    {.name = "partition",
     .argument = "NAME",
     .help = "approve a partition of a rolloutStrategy rule, instead of a version"},
    OPTION_DEPLOYMENT,
    OPTION_ENVIRONMENT,
    OPTION_REASON,
    OPTIONS_BUNDLE,
    OPTIONS_SERVER,
    OPTIONS_END,
};

const verb cmd_approve = {
    .name = "approve",
    .summary = "approve a version, or a partition of a rollout",
    .operands = "[VERSION]",
    .operands_max = 1,
    .about = "VERSION is its name, or with --deployment its tag. A partition is that of the "
             "rollout under way: the next version needs its own approval.",
    .options = options_of_approve,
    .run = run,
};
