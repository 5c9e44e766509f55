/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/acts.h"

static exit_status run(const options *given)
{
    return act_run(&cmd_bypass, given, "rule");
}

static const option options_of_bypass[] = {
    OPTION_VERSION, OPTION_DEPLOYMENT, OPTION_ENVIRONMENT, OPTION_RESOURCE,
    OPTION_UNTIL,   OPTION_REASON,     OPTIONS_SERVER,     OPTIONS_END,
};

const verb cmd_bypass = {
    .name = "bypass",
    .summary = "let a version pass a rule",
    .operands = "RULE",
    .operands_min = 1,
    .operands_max = 1,
    .about = "RULE is the id that \"drover explain\" names. --version says which version may pass.",
    .options = options_of_bypass,
    .run = run,
};
