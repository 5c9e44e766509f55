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
    str path = options_given(given, "follow")
                   ? client_path(c, "/api/v1/jobs/%s/log?follow=true", number)
                   : client_path(c, "/api/v1/jobs/%s/log", number);
    return client_stream(c, path, stdout);
}

static const option options_of_logs[] = {
    {.name = "follow", .letter = 'f', .help = "go on until the job has ended"},
    OPTIONS_SERVER,
    OPTIONS_END,
};

const verb cmd_logs = {
    .name = "logs",
    .summary = "print what a job wrote",
    .operands = "JOB",
    .operands_min = 1,
    .operands_max = 1,
    .about = "JOB is the number that \"drover get jobs\" shows.",
    .options = options_of_logs,
    .run = run,
};
