/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "base/duration.h"
#include "base/num.h"
#include "cli/command.h"
#include "console/console.h"
#include "server/http.h"

#define STAGE_RETRIES_MAX 1000

/* What a flag says, else a variable that the operator our users know reads, else what is usual. */
static str chosen(const options *given, const char *flag, const char *variable, str usual)
{
    const char *set = variable ? getenv(variable) : NULL;
    if (options_given(given, flag))
        return options_text(given, flag, "");
    return set && set[0] != '\0' ? str_of(set) : usual;
}

static bool parse_taint(str text, taint *ret)
{
    static const str effects[] = {
#define X(effect, name) STR(name),
        TAINT_EFFECTS(X)
#undef X
    };
    str rest = text, pair = str_cut(&rest, ':'), key = str_cut(&pair, '=');
    *ret = (taint){.key = key, .value = pair.ptr ? pair : STR_EMPTY};
    for (size_t i = 1; rest.ptr && i < sizeof effects / sizeof effects[0]; i++)
        if (str_eq(rest, effects[i]))
            ret->effect = (taint_effect)i;
    return key.len > 0 && ret->effect != TAINT_NONE;
}

/* A span of time of at least a second, as milliseconds; 0: it is not set. */
static bool read_span(str text, int64_t *ret_ms)
{
    int64_t ns;
    if (text.len == 0)
        return true;
    if (!duration_parse_days(text, &ns, NULL) || ns < DURATION_SECOND)
        return false;
    *ret_ms = ns / DURATION_MILLISECOND;
    return true;
}

/* What limits attempts: how long a stage may take, a node may be silent, and how often it is tried
 * again. */
static bool read_limits(const options *given, shell_settings *s)
{
    int64_t stage_ms = 0, retries;
    str timeout = chosen(given, "stage-timeout", "STAGE_TIMEOUT", STR_EMPTY);
    str lost = chosen(given, "node-lost-after", "NODE_LOST_AFTER", STR_EMPTY);
    str tries = chosen(given, "stage-retries", "STAGE_RETRIES", STR("10"));
    bool counts = num_parse(tries, &retries) && retries >= 0 && retries <= STAGE_RETRIES_MAX;
    if (!read_span(timeout, &stage_ms))
        usage_error(&cmd_operator, "--stage-timeout: found \"%s\", allowed a time such as 90m",
                    str_shown(timeout).text);
    else if (!read_span(lost, &s->engine.node_lost_after_ms))
        usage_error(&cmd_operator, "--node-lost-after: found \"%s\", allowed a time such as 90m",
                    str_shown(lost).text);
    else if (!counts)
        usage_error(&cmd_operator, "--stage-retries: found \"%s\", allowed 0 to %d",
                    str_shown(tries).text, STAGE_RETRIES_MAX);
    else {
        if (stage_ms > 0)
            s->job.stage_timeout_s = stage_ms / 1000;
        s->engine.stage_retries = retries > 0 ? retries : -1;
        return true;
    }
    return false;
}

/* What every pod is made of: where things lie on hosts, and the agent. */
static bool read_job(const options *given, job_settings *job)
{
    job->agent_image = chosen(given, "agent-image", "AGENT_IMAGE", job->agent_image);
    job->copy_dir_root = chosen(given, "copy-dir-root", "COPY_DIR_ROOT", job->copy_dir_root);
    job->agent_log_root = chosen(given, "agent-log-root", "AGENT_LOG_ROOT", job->agent_log_root);
    job->host_root = chosen(given, "host-root", NULL, job->host_root);
    const struct {
        const char *name;
        str folder;
    } folders[] = {{"copy-dir-root", job->copy_dir_root},
                   {"agent-log-root", job->agent_log_root},
                   {"host-root", job->host_root}};
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++)
        if (!str_starts(folders[i].folder, STR("/"))) {
            usage_error(&cmd_operator, "--%s: found \"%s\", allowed a path that begins with /",
                        folders[i].name, str_shown(folders[i].folder).text);
            return false;
        }
    if (str_find(job->agent_image, STR(":")) != SIZE_MAX)
        return true;
    usage_error(&cmd_operator, "--agent-image: found \"%s\", allowed an image with its tag",
                str_shown(job->agent_image).text);
    return false;
}

/* A variable that turns something on or off. */
static bool read_switch(const char *variable, bool otherwise, bool *ret)
{
    const char *text = getenv(variable);
    str word = text && text[0] != '\0' ? str_of(text) : otherwise ? STR("true") : STR("false");
    *ret = str_eq(word, STR("true"));
    if (*ret || str_eq(word, STR("false")))
        return true;
    usage_error(&cmd_operator, "%s: found \"%s\", allowed true and false", variable,
                str_shown(word).text);
    return false;
}

/* Runs with the dashboard beside, if one is wanted. */
static exit_status run_with(const options *given, operator_settings *s)
{
    err error;
    str hosts[HTTP_HOSTS_MAX], host;
    console_settings look = {
        .listen = chosen(given, "dashboard", "DASHBOARD", STR_EMPTY),
        .tls_certificate = options_text(given, "dashboard-tls-cert", ""),
        .tls_key = options_text(given, "dashboard-tls-key", ""),
        .insecure = options_given(given, "dashboard-insecure"),
        .hosts = hosts,
        .engine = s->shell.engine,
        .nodes = s->nodes,
        .clusters = s->clusters,
    };
    size_t at = 0;
    while (options_next(given, "dashboard-host", &at, &host)) {
        if (look.host_count == HTTP_HOSTS_MAX)
            return usage_error(&cmd_operator, "--dashboard-host: allowed at most %d",
                               HTTP_HOSTS_MAX);
        hosts[look.host_count++] = host;
    }
    if (look.listen.len == 0)
        return operator_run(s, &error) ? STATUS_DONE : fail("%s", error.text);
    console *c = console_new(&look, &error);
    if (!c)
        return usage_error(&cmd_operator, "%s", error.text);
    operator_watcher watcher = console_watcher(c);
    s->watcher = &watcher;
    bool good = operator_run(s, &error);
    console_free(c);
    return good ? STATUS_DONE : fail("%s", error.text);
}

static exit_status run(const options *given)
{
    operator_settings s = {
        .shell = {.job = job_settings_default, .version = STR("v" DROVER_VERSION)}};
    job_settings *job = &s.shell.job;
    s.where = kube_where_of_environment(options_text(given, "kubeconfig", ""),
                                        options_text(given, "context", ""));
    job->namespace_ = chosen(given, "namespace", "NAMESPACE", job->namespace_);
    job->image_pull_secret =
        chosen(given, "image-pull-secret", "IMAGE_PULL_SECRET", job->image_pull_secret);
    job->image_pull_policy = chosen(given, "image-pull-policy", NULL, job->image_pull_policy);
    str taint_text = chosen(given, "runtime-required-taint", "RUNTIME_REQUIRED_TAINT",
                            STR("skyhook.nvidia.com=runtime-required:NoSchedule"));
    if (!parse_taint(taint_text, &job->runtime_required))
        return usage_error(&cmd_operator,
                           "--runtime-required-taint: found \"%s\", allowed KEY=VALUE:EFFECT",
                           str_shown(taint_text).text);
    s.shell.engine.runtime_required_taint = taint_text;
    bool reapply, elect;
    if (!read_limits(given, &s.shell) || !read_job(given, job) ||
        !read_switch("REAPPLY_ON_REBOOT", false, &reapply) ||
        !read_switch("LEADER_ELECTION", true, &elect))
        return STATUS_USAGE;
    s.shell.engine.reapply_on_reboot = options_given(given, "reapply-on-reboot") || reapply;
    str served = chosen(given, "serve", "DROVER_SERVE", STR("nodes"));
    s.nodes = str_eq(served, STR("nodes")) || str_eq(served, STR("all"));
    s.clusters = str_eq(served, STR("clusters")) || str_eq(served, STR("all"));
    if (!s.nodes && !s.clusters)
        return usage_error(&cmd_operator, "--serve: found \"%s\", allowed nodes, clusters, all",
                           str_shown(served).text);
    s.metrics_listen = chosen(given, "metrics-port", "METRICS_PORT", STR_EMPTY);
    s.health_listen = chosen(given, "probe-port", "PROBE_PORT", STR_EMPTY);
    s.elect = !options_given(given, "no-leader-election") && elect;
    return run_with(given, &s);
}

static const option options_of_operator[] = {
    {.name = "kubeconfig", .argument = "FILE", .help = "where the cluster is and who asks"},
    {.name = "context",
     .argument = "NAME",
     .help = "of the kubeconfig; its current one unless told"},
    {.name = "namespace",
     .argument = "NAME",
     .help = "of Jobs and ConfigMaps; $NAMESPACE, else skyhook"},
    {.name = "agent-image", .argument = "IMAGE", .help = "runs the stages; $AGENT_IMAGE"},
    {.name = "image-pull-secret",
     .argument = "NAME",
     .help = "of package pods; $IMAGE_PULL_SECRET"},
    {.name = "image-pull-policy",
     .argument = "POLICY",
     .help = "of every container; Always unless told"},
    {.name = "copy-dir-root",
     .argument = "FOLDER",
     .help = "where packages lie on hosts; $COPY_DIR_ROOT, else /var/lib/skyhook"},
    {.name = "agent-log-root",
     .argument = "FOLDER",
     .help = "where stages log on hosts; $AGENT_LOG_ROOT, else /var/log/skyhook"},
    {.name = "host-root",
     .argument = "FOLDER",
     .help = "what packages see as the host's root; / unless told"},
    {.name = "runtime-required-taint",
     .argument = "KEY=VALUE:EFFECT",
     .help = "$RUNTIME_REQUIRED_TAINT, else skyhook.nvidia.com=runtime-required:NoSchedule"},
    {.name = "stage-timeout",
     .argument = "TIME",
     .help = "that a stage may take whose package does not say; $STAGE_TIMEOUT, else 6h"},
    {.name = "stage-retries",
     .argument = "COUNT",
     .help = "that a failed stage is tried again by itself; $STAGE_RETRIES, else 10"},
    {.name = "node-lost-after",
     .argument = "TIME",
     .help = "that a node in flight may be silent before it has failed; $NODE_LOST_AFTER, else 1h"},
    {.name = "metrics-port",
     .argument = "[ADDRESS]:PORT",
     .help = "where /metrics is served; $METRICS_PORT, else nowhere"},
    {.name = "probe-port",
     .argument = "[ADDRESS]:PORT",
     .help = "where /healthz and /readyz are served; $PROBE_PORT, else nowhere"},
    {.name = "serve",
     .argument = "nodes|clusters|all",
     .help = "Skyhooks on nodes, Bundles on clusters, or both; $DROVER_SERVE, else nodes"},
    {.name = "dashboard",
     .argument = "[ADDRESS]:PORT",
     .help = "where the dashboard is served, on this machine alone without an address; "
             "$DASHBOARD, else nowhere"},
    {.name = "dashboard-tls-cert", .argument = "FILE", .help = "PEM"},
    {.name = "dashboard-tls-key", .argument = "FILE", .help = "PEM"},
    {.name = "dashboard-insecure",
     .help = "allow another address than loopback without TLS; tokens are then sent in the clear"},
    {.name = "dashboard-host",
     .argument = "NAME",
     .repeatable = true,
     .help = "a further name that the dashboard is called by"},
    {.name = "no-leader-election",
     .help = "it takes no Lease: no other one may run, also not while it is replaced; "
             "$LEADER_ELECTION=false"},
    {.name = "reapply-on-reboot",
     .help = "packages are applied again to a node that rebooted; $REAPPLY_ON_REBOOT"},
    OPTIONS_END,
};

const verb cmd_operator = {
    .name = "operator",
    .summary = "run as a Kubernetes controller of Skyhooks and Bundles",
    .about =
        "The same decisions as everywhere, on the nodes of a cluster: every stage of a package "
        "is a Job, and all state lives in the cluster's own objects. So it may be killed at "
        "any time and goes on where it was. With --serve clusters it rolls out the Bundles of a "
        "Fleet hub on which no fleet-controller runs.\n"
        "\n"
        "Inside a pod the service account says where the cluster is; else a kubeconfig does.",
    .options = options_of_operator,
    .run = run,
};
