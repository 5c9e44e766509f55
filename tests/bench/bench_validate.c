/* SPDX-License-Identifier: Apache-2.0 */
/* `drover validate` of 10,000 YAML documents, as a user runs it: a new process that reads a file.
 * The baseline is libyaml alone, which turns the same bytes into events and forgets them. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include <yaml.h>

#include "base/limits.h"
#include "base/str.h"
#include "bench/bench.h"

#define DOCUMENTS 10000

typedef struct subject {
    buf text;
    char path[PATH_MAX];
    char program[PATH_MAX];
} subject;

static void add_node(buf *out, int i)
{
    buf_addf(
        out,
        "apiVersion: v1\nkind: Node\nmetadata:\n  name: node-%05d\n"
        "  creationTimestamp: \"2026-01-05T08:00:00Z\"\n  labels:\n"
        "    kubernetes.io/arch: amd64\n    kubernetes.io/hostname: node-%05d\n"
        "    kubernetes.io/os: linux\n    topology.kubernetes.io/zone: zone-%d\n    tier: t%d\n"
        "spec:\n  podCIDR: 10.%d.%d.0/24\n  providerID: example://zone/node-%05d\nstatus:\n"
        "  conditions:\n    - type: MemoryPressure\n      status: \"False\"\n"
        "      lastHeartbeatTime: \"2026-01-06T08:00:00Z\"\n"
        "      reason: KubeletHasSufficientMemory\n    - type: Ready\n      status: \"True\"\n"
        "      lastHeartbeatTime: \"2026-01-06T08:00:00Z\"\n      reason: KubeletReady\n",
        i, i, i % 3, i % 7, i / 256 % 256, i % 256, i);
}

static void add_skyhook(buf *out, int i)
{
    buf_addf(
        out,
        "apiVersion: skyhook.nvidia.com/v1alpha1\nkind: Skyhook\nmetadata:\n"
        "  name: skyhook-%05d\nspec:\n  nodeSelectors:\n    matchLabels:\n      tier: t%d\n"
        "  interruptionBudget:\n    percent: 20\n  packages:\n    tuning:\n      version: 1.%d.0\n"
        "      image: registry.example.com/tuning\n      configMap:\n        a.conf: |\n"
        "          vm.swappiness = %d\n    driver:\n      version: 2.%d.0\n"
        "      image: registry.example.com/driver\n      dependsOn:\n        tuning: 1.%d.0\n"
        "      interrupt:\n        type: reboot\n",
        i, i % 7, i, i % 100, i, i);
}

static void add_resource(buf *out, int i)
{
    buf_addf(out,
             "apiVersion: drover.dev/v1alpha1\nkind: Resource\nmetadata:\n  name: host-%05d\n"
             "  labels: {cluster: c%d, tier: t%d}\nspec:\n  kind: host\n  version: linux/v1\n"
             "  config: {address: host-%05d.example.com, port: 22}\n",
             i, i % 11, i % 7, i);
}

static void add_deployment(buf *out, int i)
{
    buf_addf(out,
             "apiVersion: drover.dev/v1alpha1\nkind: Deployment\nmetadata:\n  name: app-%05d\n"
             "  labels: {layer: app}\nspec:\n"
             "  resourceSelector: resource.metadata[\"cluster\"] == \"c%d\"\n  job:\n    command:\n"
             "      run: [deploy, \"{{resource.name}}\", \"{{version.tag}}\"]\n",
             i, i % 11);
}

static void add_version(buf *out, int i)
{
    buf_addf(out,
             "apiVersion: drover.dev/v1alpha1\nkind: Version\nmetadata:\n  name: app-%05d-v%d\n"
             "spec: {deployment: app-%05d, tag: v%d}\n",
             i, i, i, i);
}

/* Of ten documents four are nodes, three resources, and one each a Skyhook, deployment and version.
 */
static void add_document(buf *out, int i)
{
    buf_addz(out, "---\n");
    switch (i % 10) {
    case 0: add_skyhook(out, i); return;
    case 1: add_deployment(out, i); return;
    case 2: add_version(out, i - 1); return;
    case 3:
    case 4:
    case 5: add_resource(out, i); return;
    }
    add_node(out, i);
}

static void write_file(subject *s)
{
    int fd = mkstemps(s->path, 5);
    assert(fd >= 0);
    for (size_t done = 0; done < s->text.len;) {
        ssize_t written = write(fd, s->text.ptr + done, s->text.len - done);
        assert(written > 0);
        done += (size_t)written;
    }
    close(fd);
}

static void run_validate(void *context, uint64_t count)
{
    subject *s = context;
    char *words[] = {s->program, "validate", "-f", s->path, NULL};
    char *no_environment[] = {NULL};
    posix_spawn_file_actions_t quiet;
    posix_spawn_file_actions_init(&quiet);
    posix_spawn_file_actions_addopen(&quiet, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&quiet, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    for (; count > 0; count--) {
        pid_t child;
        int status = 0;
        int failure = posix_spawn(&child, s->program, &quiet, NULL, words, no_environment);
        assert(failure == 0);
        pid_t ended = waitpid(child, &status, 0);
        assert(ended == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    posix_spawn_file_actions_destroy(&quiet);
}

static void run_libyaml(void *context, uint64_t count)
{
    subject *s = context;
    for (; count > 0; count--) {
        yaml_parser_t parser;
        yaml_event_t event;
        bool ended = false;
        int good = yaml_parser_initialize(&parser);
        assert(good);
        yaml_parser_set_input_string(&parser, (const unsigned char *)s->text.ptr, s->text.len);
        while (!ended) {
            good = yaml_parser_parse(&parser, &event);
            assert(good);
            ended = event.type == YAML_STREAM_END_EVENT;
            yaml_event_delete(&event);
        }
        yaml_parser_delete(&parser);
    }
}

int main(void)
{
    subject s = {.text = BUF(LIMIT_TEXT_BYTES), .path = "/tmp/drover-bench-XXXXXX.yaml"};
    ssize_t len = readlink("/proc/self/exe", s.program, sizeof s.program - 1);
    assert(len > 0);
    char *bench = strstr(s.program, "/tests/bench/");
    assert(bench && "the program stands in BUILD/tests/bench");
    snprintf(bench, (size_t)(s.program + sizeof s.program - bench), "/drover");
    for (int i = 0; i < DOCUMENTS; i++)
        add_document(&s.text, i);
    assert(!s.text.failed);
    write_file(&s);
    double validate = bench_best(run_validate, &s, 1);
    double libyaml = bench_best(run_libyaml, &s, 1);
    unlink(s.path);
    bench_row("validate: 10,000 YAML documents", validate, "s", "<= 1");
    bench_row("validate: their size", (double)s.text.len / 1e6, "MB", "-");
    bench_row("validate: libyaml's events alone", libyaml, "s", "-");
    bench_row("validate: times libyaml's events", validate / libyaml, "x", "-");
    buf_done(&s.text);
    return 0;
}
