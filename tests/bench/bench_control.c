/* SPDX-License-Identifier: Apache-2.0 */
/* A bracket over ten thousand hosts with jobs that take no time, from the publication to the last
 * uncordon; and a start with a hundred thousand release targets. Both over a real store in /tmp. */
#include "bench/bench.h"

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/vec.h"
#include "server/jobs.h"

#define HOSTS 10000
#define MEMBERS 5
#define API "---\napiVersion: drover.dev/v1alpha1\n"

typedef struct plane {
    char folder[64];
    store *store;
    control *control;
    uv_loop_t loop;
    uv_timer_t tick;
    jobs *jobs;
    int64_t ended;
    int64_t wanted;
    int64_t commits;
} plane;

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void check(bool good, const err *error)
{
    if (good)
        return;
    fprintf(stderr, "%s\n", error->text);
    exit(1);
}

static void run_job(void *context, const job_order *order)
{
    err error = {"no memory"};
    check(jobs_start(((plane *)context)->jobs, order), &error);
}

static bool take(void *context, job_report *reports, size_t count)
{
    plane *p = context;
    err error;
    check(control_jobs(p->control, reports, count, now_ms(), &error), &error);
    p->commits++;
    for (size_t i = 0; i < count; i++)
        p->ended += reports[i].ended && !reports[i].ignored;
    return true;
}

static void tick(uv_timer_t *timer)
{
    plane *p = timer->data;
    err error;
    check(control_tick(p->control, now_ms(), &error), &error);
}

static void open_plane(plane *p, bool sync)
{
    err error;
    p->store = store_open(str_of(p->folder), &error);
    check(p->store && store_set_sync(p->store, sync, &error), &error);
    uv_loop_init(&p->loop);
    uv_timer_init(&p->loop, &p->tick);
    p->tick.data = p;
    char folder[80];
    snprintf(folder, sizeof folder, "%s/jobs", p->folder);
    p->jobs = jobs_open(&p->loop, &(jobs_settings){.folder = str_of(folder)},
                        (jobs_reporter){p, take}, &error);
    check(p->jobs != NULL, &error);
    p->control = control_open(p->store, NULL, &(control_listener){.context = p, .job = run_job},
                              now_ms(), &error);
    check(p->control != NULL, &error);
}

static void close_plane(plane *p)
{
    p->control = control_close(p->control);
    p->store = store_close(p->store);
    p->jobs = jobs_close(p->jobs);
    uv_close((uv_handle_t *)&p->tick, NULL);
    uv_run(&p->loop, UV_RUN_DEFAULT);
    uv_loop_close(&p->loop);
}

static void apply(plane *p, buf *text)
{
    err error = {""};
    apply_answer answer = {.arena = arena_new(0), .found = problems_new()};
    bool good = control_apply(
        p->control,
        &(apply_request){.file = STR("bench"), .bytes = buf_str(text), .expected = APPLY_ANY},
        now_ms(), &answer, &error);
    check(good, &error);
    problems_free(answer.found);
    arena_free(answer.arena);
    buf_done(text);
}

static void fleet(plane *p, int deployments)
{
    buf text = BUF(LIMIT_TEXT_BYTES);
    buf_addz(&text, "{\"kind\":\"List\",\"apiVersion\":\"v1\",\"items\":[");
    for (int i = 0; i < HOSTS; i++)
        buf_addf(&text,
                 "%s{\"apiVersion\":\"drover.dev/v1alpha1\",\"kind\":\"Resource\","
                 "\"metadata\":{\"name\":\"host-%05d\",\"labels\":{\"ring\":\"%d\"}},"
                 "\"spec\":{\"kind\":\"host\",\"config\":{\"address\":\"10.0.%d.%d\"}}}\n",
                 i > 0 ? "," : "", i, i % 5, i / 256, i % 256);
    buf_addz(&text, "]}");
    apply(p, &text);
    text = BUF(LIMIT_TEXT_BYTES);
    buf_addz(&text,
             API "kind: Environment\nmetadata: {name: prod}\nspec: {resourceSelector: 'true'}\n");
    for (int i = 0; i < deployments; i++)
        buf_addf(&text,
                 API "kind: Deployment\nmetadata: {name: d%d, labels: {layer: node}}\n"
                     "spec: {resourceSelector: 'true', job: {simulated: {seconds: 0}}}\n",
                 i);
    apply(p, &text);
}

static void publish(plane *p, int deployments)
{
    buf text = BUF(LIMIT_TEXT_BYTES);
    for (int i = 0; i < deployments; i++)
        buf_addf(&text,
                 API "kind: Version\nmetadata: {name: d%d-1}\nspec: {deployment: d%d, tag: '1'}\n",
                 i, i);
    apply(p, &text);
}

static void run_to_the_end(plane *p, int64_t wanted)
{
    while (p->ended < wanted) {
        int64_t due = control_next_ms(p->control), now = now_ms();
        if (due != REASON_NEVER)
            uv_timer_start(&p->tick, tick, due > now ? (uint64_t)(due - now) : 0, 0);
        uv_run(&p->loop, UV_RUN_ONCE);
    }
}

static void bench_bracket(bool sync)
{
    plane p = {.folder = "/tmp/drover-bench-XXXXXX"};
    if (!mkdtemp(p.folder))
        exit(1);
    open_plane(&p, sync);
    fleet(&p, MEMBERS);
    buf policy = BUF(10000);
    buf_addz(&policy,
             API "kind: RolloutPolicy\nmetadata: {name: nodes}\nspec:\n  rules:\n"
                 "  - deploymentBracket: {deploymentSelector: 'true', readinessMode: immediate, "
                 "preSelector: 'deployment.name == \"d0\"', "
                 "postSelector: 'deployment.name == \"d4\"'}\n"
                 "  - deploymentDependency: {dependsOn: 'deployment.name == \"d1\"', "
                 "appliesTo: 'deployment.name == \"d2\"'}\n"
                 "  - resourceConcurrency: {groupSelector: 'true', limitType: percentage, "
                 "limitValue: 20}\n");
    apply(&p, &policy);
    double start = bench_seconds();
    publish(&p, MEMBERS);
    run_to_the_end(&p, (int64_t)HOSTS * MEMBERS);
    double seconds = bench_seconds() - start;
    bench_row(sync ? "bracket of 5 on 10,000 hosts, durable"
                   : "the same without waiting for the disk",
              seconds, "s", sync ? "<= 60" : "-");
    bench_row(sync ? "jobs, durable" : "jobs without waiting for the disk",
              HOSTS * MEMBERS / seconds, "1/s", "-");
    start = bench_seconds();
    close_plane(&p);
    bench_row("snapshot and close", bench_seconds() - start, "s", "-");
    char line[128];
    snprintf(line, sizeof line, "rm -rf %s", p.folder);
    if (system(line) != 0)
        exit(1);
}

static double resident_mib(void)
{
    long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (!f || fscanf(f, "%*s %ld", &pages) != 1)
        exit(1);
    fclose(f);
    return (double)pages * (double)sysconf(_SC_PAGESIZE) / (1024.0 * 1024.0);
}

#define WRITES 1000

/* One document a request, beside ten thousand others. */
static void bench_writes(plane *p)
{
    double start = bench_seconds();
    for (int i = 0; i < WRITES; i++) {
        buf text = BUF(10000);
        buf_addf(&text,
                 API "kind: Version\nmetadata: {name: none-%d}\n"
                     "spec: {deployment: none, tag: 't%d'}\n",
                 i, i);
        apply(p, &text);
    }
    bench_row("documents written one by one, durable", WRITES / (bench_seconds() - start), "1/s",
              ">= 500");
}

static void bench_start(void)
{
    plane p = {.folder = "/tmp/drover-bench-XXXXXX"};
    if (!mkdtemp(p.folder))
        exit(1);
    pid_t child = fork();
    if (child == 0) { /* so that its memory is not ours */
        open_plane(&p, false);
        fleet(&p, 10);
        buf none = BUF(10000);
        buf_addz(&none, API "kind: Deployment\nmetadata: {name: none}\n"
                            "spec: {resourceSelector: 'false', job: {manual: {}}}\n");
        apply(&p, &none);
        publish(&p, 10);
        run_to_the_end(&p, (int64_t)HOSTS * 10);
        close_plane(&p);
        _exit(0);
    }
    int status = 1;
    if (waitpid(child, &status, 0) != child || status != 0)
        exit(1);
    double start = bench_seconds();
    open_plane(&p, true);
    bench_row("start with 100,000 release targets", bench_seconds() - start, "s", "<= 3");
    bench_row("resident after it", resident_mib(), "MiB", "<= 300");
    bench_writes(&p);
    close_plane(&p);
    char line[128];
    snprintf(line, sizeof line, "rm -rf %s", p.folder);
    if (system(line) != 0)
        exit(1);
}

int main(void)
{
    bench_start();
    bench_bracket(true);
    bench_bracket(false);
    return 0;
}
