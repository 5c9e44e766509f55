/* SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/num.h"
#include "cli/client.h"
#include "cli/work.h"

#define WORDS_MAX 256
#define LEASE_SECONDS "30"
#define LEASE_SECONDS_LEAST 5
#define LEASE_SECONDS_MOST 60
#define POLL_MS 2000

static volatile int stopped;

static void on_signal(int number)
{
    (void)number;
    stopped = 1;
}

/* Asks until there is something to do. False: stopped, or refused for good. */
static bool serve_jobs(const work *w, str resource_name, bool once)
{
    bool reachable = true;
    while (!stopped) {
        client_answer answer;
        client *c = w->client;
        int64_t asked = work_clock_ms();
        str lease = arena_printf(client_arena(c), "%lld", (long long)w->lease_seconds);
        str body = json_texts(c, "resource", resource_name, (const char *)NULL);
        body = arena_printf(client_arena(c), "%.*s,\"leaseSeconds\":%.*s}", (int)body.len - 1,
                            body.ptr, STR_ARG(lease));
        client_try(c, "POST", STR("/api/v1/jobs/claim"), body, &answer);
        if (answer.status >= 400 && answer.status < 500 && answer.status != 429) {
            str message = json_at(c, answer.json, "/error/message");
            fail("%.*s", STR_ARG(message));
            return false;
        }
        bool here = answer.status > 0 && answer.status < 300;
        if (here != reachable)
            log_line(here ? LOG_INFO : LOG_WARN,
                     here ? "the server answers again" : "the server does not answer");
        reachable = here;
        bool found = here && yyjson_get_bool(yyjson_obj_get(answer.json, "found"));
        if (found)
            work_run(w, answer.json, asked);
        client_forget(c);
        if (once && (found || here))
            return true;
        if (!found)
            usleep(POLL_MS * 1000);
    }
    return true;
}

static exit_status run(const options *given)
{
    char *argv[WORDS_MAX + 1];
    exit_status status = STATUS_DONE;
    int64_t lease;
    str resource_name = options_text(given, "resource", "");
    str lease_text = options_text(given, "lease", LEASE_SECONDS);
    if (resource_name.len == 0)
        return usage_error(&cmd_worker, "--resource NAME is missing");
    if (!num_parse(lease_text, &lease) || lease < LEASE_SECONDS_LEAST || lease > LEASE_SECONDS_MOST)
        return usage_error(&cmd_worker, "--lease: found \"%s\", allowed %d to %d seconds",
                           str_shown(lease_text).text, LEASE_SECONDS_LEAST, LEASE_SECONDS_MOST);
    scoped(client_cleanup) client *c = client_open(given, &status);
    if (!c)
        return status;
    scoped(arena_cleanup) arena *words = arena_new(0);
    for (size_t i = 0; i < given->operands.len; i++) {
        str word = words ? arena_str(words, given->operands.at[i]) : STR_EMPTY;
        argv[i] = (char *)(uintptr_t)word.ptr;
        argv[i + 1] = NULL;
    }
    struct sigaction action = {.sa_handler = on_signal};
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    client_hurry(c, lease * 1000 / 3); /* a server that hangs must not keep it from its clock */
    work w = {.client = c, .argv = argv, .lease_seconds = lease, .stop = &stopped};
    return serve_jobs(&w, resource_name, options_given(given, "once")) ? STATUS_DONE : STATUS_NO;
}

static const option options_of_worker[] = {
    {.name = "resource", .argument = "NAME", .help = "the resource whose jobs it runs"},
    {.name = "lease",
     .argument = "SECONDS",
     .help = "how long a claim holds without a heartbeat; 30 unless told"},
    {.name = "once", .help = "run one job, if there is one, and end"},
    OPTIONS_SERVER,
    OPTIONS_END,
};

const verb cmd_worker = {
    .name = "worker",
    .summary = "run the pull jobs of a resource",
    .operands = "COMMAND [ARGUMENT...]",
    .operands_min = 1,
    .operands_max = WORDS_MAX,
    .about = "Claims the jobs of one resource, one after the other, and runs COMMAND for each; put "
             "-- before it. The command learns from DROVER_JOB_ID, DROVER_RESOURCE, "
             "DROVER_DEPLOYMENT, DROVER_ENVIRONMENT, DROVER_VERSION, DROVER_GROUP, DROVER_ATTEMPT, "
             "DROVER_VERSION_CONFIG and DROVER_RESOURCE_CONFIG what to do; its output is sent to "
             "the server, and its exit status says how the job ended.\n"
             "\n"
             "A worker that dies loses its claim and the job is lost; a worker that cannot reach "
             "the server stops its command before the claim ends. So no job runs twice at once.",
    .options = options_of_worker,
    .run = run,
};
