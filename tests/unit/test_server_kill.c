/* SPDX-License-Identifier: Apache-2.0 */
/* Store, control plane and real jobs together, killed with SIGKILL again and again: every job runs
 * once, no result is lost, and the rollout comes to its end. */
#include "support/check.h"

#include <signal.h>
#include <sys/wait.h>

#include "server/jobs.h"
#include "server/supervisor.h"

#define HOSTS 6
#define API "---\napiVersion: drover.dev/v1alpha1\n"
#define ROUNDS_MOST 400

static char folder[64];

typedef struct server {
    uv_loop_t loop;
    uv_timer_t tick;
    store *store;
    control *control;
    jobs *jobs;
    bool over;
} server;

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void run_job(void *context, const job_order *order)
{
    assert_true(jobs_start(((server *)context)->jobs, order));
}

static bool take(void *context, job_report *reports, size_t count)
{
    err error;
    server *s = context;
    return control_jobs(s->control, reports, count, now_ms(), &error);
}

static void tick(uv_timer_t *timer)
{
    err error;
    server *s = timer->data;
    check_msg(control_tick(s->control, now_ms(), &error), "%s", error.text);
}

static bool see_undone(void *context, const placement_view *view)
{
    *(bool *)context = *(bool *)context && view->state == PLACEMENT_DONE;
    return true;
}

static void server_open(server *s)
{
    err error;
    char path[128];
    *s = (server){0};
    s->store = store_open(str_of(folder), &error);
    check_msg(s->store, "%s", error.text);
    uv_loop_init(&s->loop);
    uv_timer_init(&s->loop, &s->tick);
    s->tick.data = s;
    snprintf(path, sizeof path, "%s/jobs", folder);
    s->jobs = jobs_open(&s->loop, &(jobs_settings){.folder = str_of(path)},
                        (jobs_reporter){s, take}, &error);
    check_msg(s->jobs, "%s", error.text);
    s->control = control_open(s->store, &(control_settings){.snapshot_entries = 20},
                              &(control_listener){.context = s, .job = run_job}, now_ms(), &error);
    check_msg(s->control, "%s", error.text);
}

static void server_close(server *s)
{
    s->control = control_close(s->control);
    s->store = store_close(s->store);
    s->jobs = jobs_close(s->jobs);
    uv_close((uv_handle_t *)&s->tick, NULL);
    uv_run(&s->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&s->loop), 0);
}

/* Until every placement is done. */
static void server_run(server *s)
{
    for (;;) {
        bool done = true;
        engine_placements(control_engine(s->control), see_undone, &done);
        if (done && jobs_count(s->jobs) == 0)
            return;
        int64_t due = control_next_ms(s->control), now = now_ms();
        if (due != REASON_NEVER)
            uv_timer_start(&s->tick, tick, due > now ? (uint64_t)(due - now) : 0, 0);
        uv_run(&s->loop, UV_RUN_ONCE);
    }
}

static void publish(void)
{
    server s;
    server_open(&s);
    buf text = BUF(100000);
    for (int i = 0; i < HOSTS; i++)
        buf_addf(&text, API "kind: Resource\nmetadata: {name: h%d}\nspec: {kind: host}\n", i);
    buf_addz(&text,
             API "kind: Environment\nmetadata: {name: all}\nspec: {resourceSelector: 'true'}\n");
    const char *names[] = {"drain", "patch", "uncordon"};
    for (size_t i = 0; i < COUNT_OF(names); i++)
        buf_addf(&text,
                 API "kind: Deployment\nmetadata: {name: %s}\nspec: {resourceSelector: "
                     "'true', job: {command: {run: [sh, -c, 'echo $DROVER_JOB_ID "
                     "{{resource.name}} {{deployment.name}} >>%s/ran; sleep 0.05']}}}\n" API
                     "kind: Version\nmetadata: {name: %s-1}\nspec: {deployment: %s, tag: '1'}\n",
                 names[i], folder, names[i], names[i]);
    buf_addz(&text,
             API "kind: RolloutPolicy\nmetadata: {name: nodes}\nspec:\n  rules:\n"
                 "  - deploymentBracket: {deploymentSelector: 'true', readinessMode: immediate, "
                 "preSelector: 'deployment.name == \"drain\"', "
                 "postSelector: 'deployment.name == \"uncordon\"'}\n"
                 "  - resourceConcurrency: {groupSelector: 'true', limitType: count, "
                 "limitValue: 2}\n");
    err error;
    apply_answer answer = {.arena = arena_new(0), .found = problems_new()};
    bool good = control_apply(
        s.control,
        &(apply_request){.file = STR("t"), .bytes = buf_str(&text), .expected = APPLY_ANY},
        now_ms(), &answer, &error);
    check_msg(good, "%s", error.text);
    problems_free(answer.found);
    arena_free(answer.arena);
    buf_done(&text);
    server_close(&s);
}

static bool check_job(void *context, const stored_job *j)
{
    check_msg(str_eq(j->state, STR("succeeded")), "job %lld: %.*s, %.*s", (long long)j->number,
              STR_ARG(j->state), STR_ARG(j->reason));
    ++*(int *)context;
    return true;
}

static void killed_again_and_again_every_job_runs_once(void **state)
{
    (void)state;
    rng r = rng_seeded();
    snprintf(folder, sizeof folder, "/tmp/drover-kill-XXXXXX");
    assert_non_null(mkdtemp(folder));
    publish();
    int rounds = 0;
    for (bool over = false; !over; rounds++) {
        check_msg(rounds < ROUNDS_MOST, "no end");
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            server s;
            server_open(&s);
            server_run(&s);
            server_close(&s);
            _exit(0);
        }
        /* Longer lives as it goes on, so that there is an end. */
        usleep((useconds_t)(1000 + rng_below(&r, 60000) + (size_t)rounds * 1000));
        kill(child, SIGKILL);
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        check_msg(WIFSIGNALED(status) || status == 0, "status %x", (unsigned)status);
        over = !WIFSIGNALED(status);
    }
    server s;
    server_open(&s);
    int count = 0;
    err error;
    assert_true(store_jobs(s.store, (job_range){0, false}, check_job, &count, &error));
    assert_int_equal(count, HOSTS * 3);
    server_close(&s);
    char line[256];
    snprintf(line, sizeof line,
             "test $(wc -l <%s/ran) = %d && test -z \"$(sort %s/ran | uniq -d)\"", folder,
             HOSTS * 3, folder);
    assert_int_equal(system(line), 0);
    print_message("# %d lives\n", rounds);
    check_msg(rounds > 5, "only %d lives", rounds);
    snprintf(line, sizeof line, "rm -rf %s", folder);
    assert_int_equal(system(line), 0);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], SUPERVISOR_VERB) == 0)
        return supervisor_main(argc - 2, argv + 2);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(killed_again_and_again_every_job_runs_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
