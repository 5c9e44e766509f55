/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/client.h"
#include "cli/remote_explain.h"

static const option options_of_explain[] = {
    {.name = "change", .argument = "NAME", .help = "the Deployment to ask about"},
    {.name = "environment", .argument = "NAME", .help = "the Environment to ask about"},
    OPTION_OUTPUT("text|json"),
    OPTIONS_SERVER,
    OPTIONS_END,
};

const verb cmd_explain = {
    .name = "explain",
    .summary = "say why a target is not moving, and what would release it",
    .operands = "TARGET",
    .operands_min = 1,
    .operands_max = 1,
    .about = "First the answer in one sentence, then each cause: who holds what it waits for, what "
             "would release it, when it is asked again.\n"
             "\n"
             "When several deployments concern the target, the answer is about the first by name "
             "that is not done, or about the one --change names.",
    .options = options_of_explain,
    .run = remote_explain,
};
