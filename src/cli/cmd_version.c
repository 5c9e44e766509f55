/* SPDX-License-Identifier: Apache-2.0 */
#include "base/limits.h"
#include "base/mem.h"
#include "cli/follow.h"
#include "model/document.h"

static exit_status run(const options *given)
{
    exit_status status = STATUS_DONE;
    err error;
    if (!str_eq(given->operands.at[0], STR("publish")))
        return usage_error(&cmd_version, "found \"%s\", allowed publish",
                           str_shown(given->operands.at[0]).text);
    scoped(client_cleanup) client *c = client_open(given, &status);
    if (!c)
        return status;
    str deployment_name = given->operands.at[1], tag = given->operands.at[2];
    str config = options_text(given, "config", "");
    if (config.len > 0 && !json_parse(client_arena(c), config, &error))
        return usage_error(&cmd_version, "--config: %s", error.text);
    str body = json_texts(c, "tag", tag, "name", options_text(given, "name", ""), "status",
                          options_text(given, "status", ""), (const char *)NULL);
    if (config.len > 0)
        body = arena_printf(client_arena(c), "%.*s,\"config\":%.*s}", (int)body.len - 1, body.ptr,
                            STR_ARG(config));
    yyjson_val *answer = NULL;
    str path = client_path(c, "/api/v1/deployments/%s/versions", deployment_name);
    status = client_call(c, "POST", path, body, &answer);
    if (status != STATUS_DONE)
        return status;
    str name = json_at(c, answer, "/name"), action = json_at(c, answer, "/action");
    printf("version/%.*s %.*s\n", STR_ARG(name), STR_ARG(action));
    fflush(stdout);
    follow_wish wish = {.deployments = &deployment_name, .count = 1, .tag = tag};
    return options_given(given, "wait") ? follow(c, &wish) : STATUS_DONE;
}

static const option options_of_version[] = {
    {.name = "name", .argument = "NAME", .help = "of the Version; DEPLOYMENT-TAG unless told"},
    {.name = "status",
     .argument = "ready|building|paused|rejected|failed",
     .help = "ready unless told"},
    {.name = "config", .argument = "JSON", .help = "what jobs see as {{version.config.KEY}}"},
    {.name = "wait",
     .help = "follow the rollout to its end, with its hooks and rollbacks; the status is 1 if "
             "something failed or went back"},
    OPTIONS_SERVER,
    OPTIONS_END,
};

const verb cmd_version = {
    .name = "version",
    .summary = "publish a version of a deployment",
    .operands = "publish DEPLOYMENT TAG",
    .operands_min = 3,
    .operands_max = 3,
    .about = "The same tag again changes nothing.",
    .options = options_of_version,
    .run = run,
};
