/* SPDX-License-Identifier: Apache-2.0 */
#include "base/limits.h"
#include "base/num.h"
#include "cli/command.h"
#include "cli/data_folder.h"
#include "server/auth.h"
#include "server/http.h"
#include "server/serve.h"

static exit_status run(const options *given)
{
    char folder[LIMIT_PATH_BYTES];
    str hosts[HTTP_HOSTS_MAX];
    size_t host_count = 0, at = 0;
    err error;
    str host;
    while (options_next(given, "host", &at, &host)) {
        if (host_count == HTTP_HOSTS_MAX)
            return usage_error(&cmd_serve, "--host: allowed at most %d", HTTP_HOSTS_MAX);
        hosts[host_count++] = host;
    }
    int64_t rate = 0;
    str rate_text = options_text(given, "rate", "");
    if (rate_text.len > 0 &&
        (!num_parse(rate_text, &rate) || rate < 1 || rate > AUTH_RATE_PER_SECOND_MAX))
        return usage_error(&cmd_serve, "--rate: found \"%s\", allowed a number from 1 to %d",
                           str_shown(rate_text).text, AUTH_RATE_PER_SECOND_MAX);
    if (!data_folder(options_text(given, "data", ""), folder, &error))
        return fail("%s", error.text);
    serve_settings settings = {
        .listen = options_text(given, "listen", SERVE_LISTEN),
        .folder = str_of(folder),
        .folder_named = options_given(given, "data"),
        .tls_certificate = options_text(given, "tls-cert", ""),
        .tls_key = options_text(given, "tls-key", ""),
        .insecure = options_given(given, "insecure"),
        .demo = options_given(given, "demo"),
        .fleetlock_join = str_eq(options_text(given, "fleetlock-unknown", ""), STR("join")),
        .unsafe_no_sync = options_given(given, "unsafe-no-sync"),
        .per_second = rate,
        .hosts = hosts,
        .host_count = host_count};
    return serve_run(&settings, &error) ? STATUS_DONE : fail("%s", error.text);
}

static const option options_of_serve[] = {
    {.name = "listen",
     .argument = "ADDRESS:PORT",
     .help = "where to listen; 127.0.0.1:7070 unless told, port 0 is any that is free"},
    OPTION_DATA,
    {.name = "demo", .help = "make a fleet up and keep changing it"},
    {.name = "tls-cert", .argument = "FILE", .help = "certificate chain, PEM"},
    {.name = "tls-key", .argument = "FILE", .help = "its key, PEM"},
    {.name = "insecure", .help = "listen on other addresses than loopback without TLS"},
    {.name = "host",
     .argument = "NAME",
     .repeatable = true,
     .help = "a further name by which clients call this server; others are refused"},
    {.name = "rate",
     .argument = "N",
     .help = "requests a second that a token may make; 50000 unless told"},
    {.name = "fleetlock-unknown",
     .argument = "refuse|join",
     .help = "what becomes of hosts that ask for a slot and are no Resource: refused unless told, "
             "or made one, labelled with the group they name"},
    {.name = "unsafe-no-sync",
     .help = "do not wait for the disk: faster, and loses the last steps when the machine stops"},
    OPTIONS_END,
};

const verb cmd_serve = {
    .name = "serve",
    .summary = "run the embedded control plane",
    .about = "One process, one data folder: the HTTP interface, the decisions and the jobs. "
             "Whatever was decided is on disk before it is done, so it may be killed at any time "
             "and goes on where it was.\n"
             "\n"
             "The first start makes a token for the administrator in the data folder; the other "
             "commands find server and token there by themselves.",
    .options = options_of_serve,
    .run = run,
};
