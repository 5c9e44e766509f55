/* SPDX-License-Identifier: Apache-2.0 */
#include <unistd.h>

#include "base/limits.h"
#include "base/mem.h"
#include "cli/client.h"
#include "model/document.h"

/* How far a deployment's version is. */
typedef struct progress {
    client *client;
    str tag;
    size_t wanted, done, failed, running;
} progress;

static bool count_target(void *context, yyjson_val *item)
{
    progress *p = context;
    str state = json_at(p->client, item, "/state");
    bool here = str_eq(json_at(p->client, item, "/current"), p->tag);
    if (str_eq(state, STR("excluded")) ||
        (!here && !str_eq(json_at(p->client, item, "/wanted"), p->tag)))
        return true;
    p->wanted++;
    p->done += here && str_eq(state, STR("done")) ? 1 : 0;
    p->failed += str_eq(state, STR("failed")) ? 1 : 0;
    p->running += str_eq(state, STR("inFlight")) ? 1 : 0;
    return true;
}

static exit_status follow(client *c, str deployment_name, str tag)
{
    bool terminal = isatty(STDERR_FILENO);
    size_t printed = SIZE_MAX;
    for (;;) {
        progress p = {.client = c, .tag = tag};
        exit_status status =
            client_list(c, client_path(c, "/api/v1/targets?deployment=%s", deployment_name), 0,
                        count_target, &p);
        if (status != STATUS_DONE)
            return status;
        size_t key = p.done * 1000003 + p.failed * 1009 + p.running;
        if (key != printed)
            fprintf(stderr, "%s%zu of %zu done, %zu in flight, %zu failed%s", terminal ? "\r" : "",
                    p.done, p.wanted, p.running, p.failed, terminal ? "   " : "\n");
        printed = key;
        bool over = p.wanted > 0 && p.done + p.failed >= p.wanted && p.running == 0;
        if (over && terminal)
            fputc('\n', stderr);
        if (over)
            return p.failed > 0 ? STATUS_NO : STATUS_DONE;
        sleep(1);
    }
}

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
    return options_given(given, "wait") ? follow(c, deployment_name, tag) : STATUS_DONE;
}

static const option options_of_version[] = {
    {.name = "name", .argument = "NAME", .help = "of the Version; DEPLOYMENT-TAG unless told"},
    {.name = "status",
     .argument = "ready|building|paused|rejected|failed",
     .help = "ready unless told"},
    {.name = "config", .argument = "JSON", .help = "what jobs see as {{version.config.KEY}}"},
    {.name = "wait", .help = "follow the rollout to its end; the status is 1 if something failed"},
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
