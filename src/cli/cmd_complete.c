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
    bool failed = options_given(given, "failed");
    str body = json_texts(c, "outcome", failed ? STR("failed") : STR("succeeded"), "reason",
                          options_text(given, "reason", ""), (const char *)NULL);
    yyjson_val *answer = NULL;
    status =
        client_call(c, "POST", client_path(c, "/api/v1/jobs/%s/complete", number), body, &answer);
    if (status != STATUS_DONE)
        return status;
    if (yyjson_get_bool(yyjson_obj_get(answer, "ignored")))
        return fail("job %.*s had ended already", STR_ARG(number));
    printf("job/%.*s %s\n", STR_ARG(number), failed ? "failed" : "succeeded");
    return STATUS_DONE;
}

static const option options_of_complete[] = {
    {.name = "failed", .help = "it did not work"},
    {.name = "reason", .argument = "TEXT", .help = "is kept with the job"},
    OPTIONS_SERVER,
    OPTIONS_END,
};

const verb cmd_complete = {
    .name = "complete",
    .summary = "say that a manual job is done",
    .operands = "JOB",
    .operands_min = 1,
    .operands_max = 1,
    .about = "JOB is the number that \"drover get jobs\" shows. What is to be done stands in the "
             "deployment's job.manual.instructions.",
    .options = options_of_complete,
    .run = run,
};
