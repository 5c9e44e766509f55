/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "cli/client.h"

static exit_status run(const options *given)
{
    exit_status status = STATUS_DONE;
    scoped(client_cleanup) client *c = client_open(given, &status);
    if (!c)
        return status;
    str number = given->operands.at[0];
    status =
        client_call(c, "POST", client_path(c, "/api/v1/jobs/%s/cancel", number), STR_EMPTY, NULL);
    if (status == STATUS_DONE)
        printf("job/%.*s is asked to end\n", STR_ARG(number));
    return status;
}

static const option options_of_cancel[] = {
    OPTIONS_SERVER,
    OPTIONS_END,
};

const verb cmd_cancel = {
    .name = "cancel",
    .summary = "ask for the end of a job",
    .operands = "JOB",
    .operands_min = 1,
    .operands_max = 1,
    .about =
        "JOB is the number that \"drover get jobs\" shows. A command is sent TERM, later KILL; "
        "a worker is told with its next heartbeat. The job then counts as failed.",
    .options = options_of_cancel,
    .run = run,
};
