/* SPDX-License-Identifier: Apache-2.0 */
#include "base/duration.h"
#include "base/limits.h"
#include "base/mem.h"
#include "cli/command.h"
#include "cli/object_options.h"
#include "cluster_agent/agent_run.h"
#include "engine/fleet_names.h"

#define DEFAULT_NAMESPACE "fleet-default"
#define DEFAULT_HEARTBEAT "15m"
#define HEARTBEAT_LEAST_S 1
#define HEARTBEAT_MOST_S (24 * 3600)
#define HTTPS STR("https://")

/* Where the hub is: a kubeconfig, or its address and the files of the account that `drover cluster
 * register` made. */
static exit_status read_hub(const options *given, kube_where *ret)
{
    str file = options_text(given, "hub-kubeconfig", ""), url = options_text(given, "hub", "");
    if ((file.len > 0) == (url.len > 0))
        return usage_error(&cmd_cluster_agent,
                           "allowed is one of --hub-kubeconfig FILE and --hub URL, found %s",
                           file.len > 0 ? "both" : "none");
    *ret = (kube_where){.files = file,
                        .home = STR_EMPTY,
                        .context = options_text(given, "hub-context", ""),
                        .host = STR_EMPTY,
                        .port = STR("443"),
                        .account = options_text(given, "hub-account", "")};
    if (file.len > 0)
        return STATUS_DONE;
    if (!str_starts(url, HTTPS) || url.len == HTTPS.len || ret->account.len == 0)
        return usage_error(&cmd_cluster_agent,
                           "--hub: found \"%s\", allowed https://HOST:PORT with --hub-account",
                           str_shown(url).text);
    str rest = str_part(url, HTTPS.len, SIZE_MAX), host = rest;
    if (rest.ptr[0] == '[') {
        rest = str_part(rest, 1, SIZE_MAX);
        host = str_cut(&rest, ']');
        str_cut(&rest, ':');
    } else {
        host = str_cut(&rest, ':');
    }
    ret->in_cluster = true;
    ret->host =
        host.len > 0 && host.ptr[host.len - 1] == '/' ? str_part(host, 0, host.len - 1) : host;
    if (rest.len > 0)
        ret->port = rest.ptr[rest.len - 1] == '/' ? str_part(rest, 0, rest.len - 1) : rest;
    return STATUS_DONE;
}

/* Whoever is called otherwise would ask the hub for ever for what cannot be. */
static exit_status check_names(const options *given, const agent_settings *s)
{
    const struct {
        const char *what;
        str name;
    } rows[] = {{"NAME", s->cluster},
                {"--namespace", s->cluster_namespace},
                {"--hub-namespace", options_text(given, "hub-namespace", "x")}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (!is_object_name(rows[i].name))
            return usage_error(&cmd_cluster_agent,
                               "%s: found \"%s\", allowed lower case letters, digits and \"-\", at "
                               "most %d",
                               rows[i].what, str_shown(rows[i].name).text, LIMIT_LABEL_VALUE_BYTES);
    return STATUS_DONE;
}

static exit_status run(const options *given)
{
    scoped(arena_cleanup) arena *a = arena_new(0);
    err error;
    int64_t beat_ns;
    agent_settings s = {.own = kube_where_of_environment(options_text(given, "kubeconfig", ""),
                                                         options_text(given, "context", "")),
                        .cluster_namespace = options_text(given, "namespace", DEFAULT_NAMESPACE),
                        .cluster = given->operands.at[0],
                        .metrics_listen = options_text(given, "metrics-port", ""),
                        .health_listen = options_text(given, "probe-port", "")};
    if (!a)
        return fail("out of memory");
    exit_status status = check_names(given, &s);
    if (status == STATUS_DONE)
        status = read_hub(given, &s.hub);
    if (status != STATUS_DONE)
        return status;
    str beat = options_text(given, "heartbeat", DEFAULT_HEARTBEAT);
    if (!duration_parse(beat, &beat_ns, &error) || beat_ns < HEARTBEAT_LEAST_S * DURATION_SECOND ||
        beat_ns > HEARTBEAT_MOST_S * DURATION_SECOND)
        return usage_error(&cmd_cluster_agent, "--heartbeat: found \"%s\", allowed 1s to 24h",
                           str_shown(beat).text);
    s.heartbeat_ms = beat_ns / DURATION_MILLISECOND;
    s.home = options_given(given, "hub-namespace")
                 ? options_text(given, "hub-namespace", "")
                 : cluster_namespace_name(a, s.cluster_namespace, s.cluster);
    if (!s.home.ptr)
        return fail("out of memory");
    return agent_run(&s, &error) ? STATUS_DONE : fail("%s", error.text);
}

static const option options_of_cluster_agent[] = {
    {.name = "namespace",
     .letter = 'n',
     .argument = "NAMESPACE",
     .help = "where the Cluster is on the hub; " DEFAULT_NAMESPACE " unless told otherwise"},
    {.name = "hub-kubeconfig", .argument = "FILE", .help = "where the hub is and who asks"},
    {.name = "hub-context",
     .argument = "NAME",
     .help = "of that kubeconfig; its current one unless told"},
    {.name = "hub",
     .argument = "URL",
     .help = "https://HOST:PORT of the hub, instead of a kubeconfig"},
    {.name = "hub-account",
     .argument = "FOLDER",
     .help = "with --hub: holds token and ca.crt, as the Secret of cluster register has them"},
    {.name = "hub-namespace",
     .argument = "NAME",
     .help = "of its deployments on the hub; the one that cluster register makes unless told"},
    {.name = "kubeconfig",
     .argument = "FILE",
     .help = "of its own cluster; in a pod the service account unless told"},
    {.name = "context",
     .argument = "NAME",
     .help = "of the kubeconfig; its current one unless told"},
    {.name = "heartbeat",
     .argument = "TIME",
     .help = "how often it tells the hub that it lives, such as 30s; " DEFAULT_HEARTBEAT
             " unless told"},
    {.name = "metrics-port",
     .argument = "[ADDRESS]:PORT",
     .help = "where /metrics is served; nowhere unless told"},
    {.name = "probe-port",
     .argument = "[ADDRESS]:PORT",
     .help = "where /healthz and /readyz are served; nowhere unless told"},
    OPTIONS_END,
};

const verb cmd_cluster_agent = {
    .name = "cluster-agent",
    .summary = "run as the agent of a cluster: carry out what a Fleet hub deploys to it",
    .operands = "NAME",
    .operands_min = 1,
    .operands_max = 1,
    .about =
        "NAME is the Cluster as drover cluster register named it. The agent watches the "
        "BundleDeployments of that cluster on the hub, applies what they hold to its own cluster, "
        "deletes what is not among it any more, judges whether it is ready, and tells the hub. It "
        "needs the rights that cluster register grants there, and those to change whatever it is "
        "to deploy here. It may be killed at any time, and hub and cluster may be away.",
    .options = options_of_cluster_agent,
    .run = run,
};
