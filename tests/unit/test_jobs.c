/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs as real processes: what they are handed, how they end, and who survives whom. */
#include "support/check.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "server/job_files.h"
#include "server/jobs.h"
#include "server/supervisor.h"
#include "server/template.h"
#include "support/documents.h"

#define REPORTS_MOST 64
#define LONG_MS 15000

static char folder[64];

typedef struct told {
    job_report report;
    char reason[256];
} told;

/* A small server: a loop, its jobs, and all that was reported. */
static struct server {
    uv_loop_t loop;
    jobs *jobs;
    told told[REPORTS_MOST];
    size_t len;
    int refusals; /* so many reports are not taken */
    loaded documents[REPORTS_MOST];
    str texts[REPORTS_MOST];
    size_t document_count;
} server;

static bool hear(void *context, job_report *reports, size_t count)
{
    struct server *s = context;
    if (s->refusals > 0) {
        s->refusals--;
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        told *t = &s->told[s->len++];
        t->report = reports[i];
        snprintf(t->reason, sizeof t->reason, "%.*s", STR_ARG(reports[i].reason));
    }
    return true;
}

static void server_open(void)
{
    err error;
    memset(&server, 0, sizeof server);
    assert_int_equal(uv_loop_init(&server.loop), 0);
    server.jobs =
        jobs_open(&server.loop, &(jobs_settings){.folder = str_of(folder), .grace_ms = 300},
                  (jobs_reporter){&server, hear}, &error);
    check_msg(server.jobs, "%s", error.text);
}

static void forget_documents(void)
{
    for (; server.document_count > 0; server.document_count--) {
        loaded_free(&server.documents[server.document_count - 1]);
        exact_done(&server.texts[server.document_count - 1]);
    }
}

static void server_close(void)
{
    server.jobs = jobs_close(server.jobs);
    uv_run(&server.loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&server.loop), 0);
    forget_documents();
}

static int set_up(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/drover-jobs-XXXXXX");
    if (!mkdtemp(folder))
        return -1;
    server_open();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    char line[256];
    server_close();
    snprintf(line, sizeof line, "rm -rf %s", folder);
    return system(line);
}

static int64_t clock_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void wake(uv_timer_t *timer)
{
    (void)timer;
}

/* Runs the loop until the condition holds or too much time has passed. */
static void run_until(bool (*done)(void *), void *context)
{
    uv_timer_t timer;
    uv_timer_init(&server.loop, &timer);
    uv_timer_start(&timer, wake, 5, 5);
    int64_t end = clock_ms() + LONG_MS;
    while (!done(context)) {
        check_msg(clock_ms() < end, "it takes too long");
        uv_run(&server.loop, UV_RUN_ONCE);
    }
    uv_close((uv_handle_t *)&timer, NULL);
    uv_run(&server.loop, UV_RUN_NOWAIT);
}

static const told *end_of(int64_t number)
{
    for (size_t i = 0; i < server.len; i++)
        if (server.told[i].report.number == number && server.told[i].report.ended)
            return &server.told[i];
    return NULL;
}

static bool has_ended(void *context)
{
    return end_of(*(int64_t *)context) != NULL;
}

static const told *wait_for(int64_t number)
{
    run_until(has_ended, &number);
    return end_of(number);
}

/* ---- orders ---- */

#define API "apiVersion: drover.dev/v1alpha1\n"

static const char *resource_text =
    API "kind: Resource\nmetadata: {name: web-1, labels: {ring: one}}\n"
        "spec: {kind: host, config: {address: 10.0.0.7, port: 22, "
        "evil: \"$(touch hacked) `id` ; '\\\" {{version.tag}}\"}}\n";
static const char *version_text = API "kind: Version\nmetadata: {name: app-1}\n"
                                      "spec: {deployment: app, tag: '1.2', config: {sum: abc}}\n";

static const object *read_object(const char *text)
{
    assert_true(server.document_count < REPORTS_MOST);
    loaded *l = &server.documents[server.document_count];
    server.texts[server.document_count] = exact_new(str_of(text));
    *l = load_text("test.yaml", server.texts[server.document_count++]);
    buf problems_text = problems_as_text(l->found);
    check_msg(l->good, "%.*s", STR_ARG(buf_str(&problems_text)));
    buf_done(&problems_text);
    return &l->objects->at[0];
}

/* spec: what follows "spec: {resourceSelector: 'true', ". */
static const object *deployment_of(const char *spec)
{
    char text[4000];
    snprintf(text, sizeof text,
             API "kind: Deployment\nmetadata: {name: app}\nspec: {resourceSelector: 'true', %s}\n",
             spec);
    return read_object(text);
}

static stored_job row_of(int64_t number)
{
    return (stored_job){.number = number,
                        .deployment = STR("app"),
                        .environment = STR("prod"),
                        .resource = STR("web-1"),
                        .version = STR("1.2"),
                        .group = STR("g1"),
                        .role = STR("member"),
                        .state = STR("pending"),
                        .attempt = 3};
}

static void start_row(const stored_job *row, const char *spec, bool known)
{
    job_order order = {.job = row,
                       .known = known,
                       .deployment = spec ? deployment_of(spec) : NULL,
                       .version = read_object(version_text),
                       .resource = read_object(resource_text)};
    assert_true(jobs_start(server.jobs, &order));
}

static void start(int64_t number, const char *spec)
{
    stored_job row = row_of(number);
    start_row(&row, spec, false);
}

static buf log_of(int64_t number)
{
    char path[LIMIT_PATH_BYTES];
    assert_true(jobs_log_path(server.jobs, number, path));
    return file_content(path);
}

static void check_log(int64_t number, const char *want)
{
    buf log = log_of(number);
    check_text(buf_str(&log), want);
    buf_done(&log);
}

static bool file_exists(int64_t number, job_file file)
{
    char path[LIMIT_PATH_BYTES];
    return job_path(str_of(folder), number, file, path) && access(path, F_OK) == 0;
}

static void expect_end(int64_t number, outcome how, const char *why)
{
    const told *t = wait_for(number);
    check_msg(t->report.outcome == how, "outcome %d, %s", (int)t->report.outcome, t->reason);
    check_text(str_of(t->reason), why);
}

/* ---- how they end ---- */

static void an_exit_status_is_an_outcome(void **state)
{
    (void)state;
    start(1, "job: {command: {run: ['true']}}");
    start(2, "job: {command: {run: [sh, -c, 'echo out; echo err >&2; exit 3']}}");
    start(3, "job: {command: {run: [sh, -c, 'kill -9 $$']}}");
    start(4, "job: {command: {run: [/no/such/program]}}");
    start(5, "job: {command: {run: ['true'], workdir: /no/such/folder}}");
    start(6, "job: {command: {run: [pwd], workdir: /usr}}");
    expect_end(1, OUTCOME_SUCCEEDED, "");
    expect_end(2, OUTCOME_FAILED, "exit status 3");
    expect_end(3, OUTCOME_FAILED, "ended by signal 9 (Killed)");
    expect_end(4, OUTCOME_FAILED, "cannot run \"/no/such/program\": No such file or directory");
    expect_end(5, OUTCOME_FAILED, "cannot run \"true\": No such file or directory");
    expect_end(6, OUTCOME_SUCCEEDED, "");
    check_log(2, "out\nerr\n");
    check_log(6, "/usr\n");
    assert_int_equal(jobs_count(server.jobs), 0);
    /* Only the log stays. */
    assert_false(file_exists(2, JOB_FILE_SPEC) || file_exists(2, JOB_FILE_RUN) ||
                 file_exists(2, JOB_FILE_EXIT));
    /* It was told that they began, and who looks after them. */
    assert_false(server.told[0].report.ended);
    assert_true(server.told[0].report.pid > 0);
}

static bool alive(pid_t pid)
{
    /* A zombie whose parent is gone is nobody any more. */
    char path[64], text[256] = "";
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *f = fopen(path, "r");
    if (!f)
        return false;
    size_t n = fread(text, 1, sizeof text - 1, f);
    fclose(f);
    text[n] = 0;
    const char *end = strrchr(text, ')');
    return end && end[2] != 'Z' && end[2] != 'X';
}

/* The numbers in a log, one a line. */
static size_t pids_in_log(int64_t number, pid_t out[8])
{
    buf log = log_of(number);
    str text = buf_str(&log);
    size_t n = 0;
    while (text.len > 0 && n < 8) {
        str line = str_cut(&text, '\n');
        int value = 0;
        for (size_t i = 0; i < line.len; i++)
            value = value * 10 + (line.ptr[i] - '0');
        if (value > 1)
            out[n++] = value;
    }
    buf_done(&log);
    return n;
}

/* Whoever was killed is gone soon, not at once. */
static void expect_gone(pid_t pid)
{
    for (int i = 0; i < 500 && alive(pid); i++)
        usleep(10000);
    check_msg(!alive(pid), "%d is left", (int)pid);
}

static void the_time_limit_ends_the_whole_group(void **state)
{
    (void)state;
    int64_t begin = clock_ms();
    start(1, "timeoutSeconds: 1, job: {command: {run: [sh, -c, 'trap \"\" TERM; "
             "sleep 60 & echo $!; echo $$; sleep 60; sleep 60']}}");
    start(2, "timeoutSeconds: 1, job: {command: {run: [sleep, '60']}}");
    expect_end(1, OUTCOME_FAILED, "the time limit of 1 s was reached");
    expect_end(2, OUTCOME_FAILED, "the time limit of 1 s was reached");
    assert_true(clock_ms() - begin >= 1000);
    pid_t pids[8];
    assert_int_equal(pids_in_log(1, pids), 2);
    for (size_t i = 0; i < 2; i++)
        expect_gone(pids[i]);
}

static void what_a_command_leaves_behind_is_killed(void **state)
{
    (void)state;
    start(1, "job: {command: {run: [sh, -c, 'sleep 60 & echo $!']}}");
    expect_end(1, OUTCOME_SUCCEEDED, "");
    pid_t pids[8];
    assert_int_equal(pids_in_log(1, pids), 1);
    expect_gone(pids[0]);
}

static void a_job_can_be_cancelled(void **state)
{
    (void)state;
    start(1, "job: {command: {run: [sleep, '60']}}");
    start(2, "job: {simulated: {seconds: 60}}");
    jobs_cancel(server.jobs, 1); /* at once: its supervisor has not begun */
    jobs_cancel(server.jobs, 2);
    jobs_cancel(server.jobs, 77);
    expect_end(1, OUTCOME_FAILED, "cancelled");
    expect_end(2, OUTCOME_FAILED, "cancelled");
}

static void a_verification_is_judged_after_the_command(void **state)
{
    (void)state;
    start(1, "job: {command: {run: [echo, one]}}, verify: {run: [echo, '{{resource.name}}']}");
    start(2, "job: {command: {run: [echo, one]}}, verify: {run: [sh, -c, 'exit 4']}");
    start(3, "job: {command: {run: ['false']}}, verify: {run: [echo, never]}");
    start(4, "timeoutSeconds: 1, job: {command: {run: ['true']}}, verify: {run: [sleep, '60']}");
    expect_end(1, OUTCOME_SUCCEEDED, "");
    expect_end(2, OUTCOME_SUCCEEDED, "verify: exit status 4");
    expect_end(3, OUTCOME_FAILED, "exit status 1");
    expect_end(4, OUTCOME_SUCCEEDED, "verify: the time limit of 1 s was reached");
    assert_false(end_of(1)->report.verification_failed);
    assert_true(end_of(2)->report.verification_failed && end_of(4)->report.verification_failed);
    check_log(1, "one\nweb-1\n");
    check_log(3, "");
}

/* ---- what they are handed ---- */

static void words_are_words_whatever_they_hold(void **state)
{
    (void)state;
    start(1, "job: {command: {run: [printf, '%s|', '{{resource.name}}', "
             "'{{ resource.config.address }}:{{resource.config.port}}', "
             "'{{resource.metadata.ring}}', '{{resource.config.evil}}', '{{version.tag}}', "
             "'{{version.config.sum}}', "
             "'{{environment.name}}-{{deployment.name}}', '', 'a b  c'], workdir: /tmp}}");
    expect_end(1, OUTCOME_SUCCEEDED, "");
    check_log(1, "web-1|10.0.0.7:22|one|$(touch hacked) `id` ; '\" {{version.tag}}|"
                 "1.2|abc|prod-app||a b  c|");
    assert_int_not_equal(access("/tmp/hacked", F_OK), 0);
}

static void the_environment_is_made_for_the_job(void **state)
{
    (void)state;
    setenv("DROVER_TOKEN", "secret", 1);
    setenv("AWS_KEY", "secret", 1);
    start(1, "job: {command: {run: [sh, -c, 'env | sort | grep \"^DROVER\\|^ADDR\\|^AWS\"; "
             "cat; test -n \"$PATH\"'], "
             "env: {ADDRESS: '{{resource.config.address}}', DROVER_JOB_ID: mine}}}");
    expect_end(1, OUTCOME_SUCCEEDED, "");
    check_log(1,
              "ADDRESS=10.0.0.7\nDROVER_ATTEMPT=3\nDROVER_DEPLOYMENT=app\nDROVER_ENVIRONMENT=prod\n"
              "DROVER_GROUP=g1\n"
              "DROVER_JOB_ID=1\nDROVER_RESOURCE=web-1\nDROVER_VERSION=1.2\n");
}

static void what_a_template_lacks_fails_the_job_before_it_runs(void **state)
{
    (void)state;
    start(1, "job: {command: {run: [echo, '{{resource.config.none}}']}}");
    start(2, "job: {command: {run: ['true'], env: {X: '{{resource.metadata.none}}'}}}");
    start(3, "job: {command: {run: ['true']}}, verify: {run: ['{{version.config.none}}']}");
    expect_end(1, OUTCOME_FAILED, "run[1]: {{resource.config.none}}: there is no config \"none\"");
    expect_end(2, OUTCOME_FAILED, "env.X: {{resource.metadata.none}}: there is no label \"none\"");
    expect_end(3, OUTCOME_FAILED,
               "verify: run[0]: {{version.config.none}}: there is no config \"none\"");
    assert_false(file_exists(1, JOB_FILE_LOG) || file_exists(2, JOB_FILE_LOG));
    stored_job row = row_of(4);
    assert_true(jobs_start(
        server.jobs,
        &(job_order){.job = &row,
                     .deployment = deployment_of("job: {command: {run: ['{{resource.name}}']}}")}));
    expect_end(4, OUTCOME_FAILED, "run[0]: {{resource.name}}: the resource is gone");
    assert_true(jobs_start(server.jobs, &(job_order){.job = &(stored_job){.number = 5}}));
    expect_end(5, OUTCOME_FAILED, "its deployment is gone");
}

static void a_log_keeps_its_beginning_and_its_end(void **state)
{
    (void)state;
    start(1, "job: {command: {run: [sh, -c, 'echo begin; "
             "head -c 3000000 /dev/zero | tr \"\\\\0\" x; echo; echo end']}}");
    start(2, "job: {command: {run: [sh, -c, 'head -c 1200000 /dev/zero | tr \"\\\\0\" y']}}");
    expect_end(1, OUTCOME_SUCCEEDED, "");
    expect_end(2, OUTCOME_SUCCEEDED, "");
    buf log = log_of(1);
    str text = buf_str(&log);
    assert_true(str_starts(text, STR("begin\nxxxx")) && str_ends(text, STR("xxx\nend\n")));
    size_t marker = str_find(text, STR("\n[drover: "));
    assert_int_equal(marker, LIMIT_JOB_LOG_HEAD_BYTES);
    long long left_out = strtoll(text.ptr + marker + 10, NULL, 10);
    size_t rest = str_find(str_part(text, marker, SIZE_MAX), STR(" here]\n")) + 7;
    assert_int_equal(text.len - marker - rest, LIMIT_JOB_LOG_TAIL_BYTES);
    assert_int_equal(left_out + (long long)(marker + LIMIT_JOB_LOG_TAIL_BYTES), 6 + 3000000 + 5);
    buf_done(&log);
    log = log_of(2);
    assert_int_equal(log.len, 1200000);
    buf_done(&log);
}

static void a_log_that_a_worker_sends_is_bounded(void **state)
{
    (void)state;
    err error;
    char *part = mem_zalloc(300000);
    memset(part, 'z', 300000);
    for (int i = 0; i < 10; i++)
        assert_true(jobs_log_add(server.jobs, 9, (str){part, 300000}, &error));
    buf log = log_of(9);
    str end = STR("zz\n[drover: what follows is left out]\n");
    assert_int_equal(log.len, LIMIT_JOB_LOG_HEAD_BYTES + end.len - 2);
    assert_true(str_ends(buf_str(&log), end));
    buf_done(&log);
    mem_free(part);
}

/* ---- the other kinds ---- */

static void simulated_jobs_take_time_and_fail_by_their_number(void **state)
{
    (void)state;
    int failed = 0;
    for (int64_t n = 1; n <= 20; n++) {
        stored_job row = row_of(n);
        start_row(&row,
                  n == 1 ? "job: {simulated: {seconds: 0, failPercent: 100}}"
                         : "job: {simulated: {seconds: 0}}",
                  false);
        wait_for(n);
        failed += end_of(n)->report.outcome == OUTCOME_FAILED;
        server.len = 0;
        forget_documents();
    }
    assert_int_equal(failed, 1);
    int64_t begin = clock_ms();
    start(30, "job: {simulated: {seconds: 1}}");
    expect_end(30, OUTCOME_SUCCEEDED, "");
    assert_true(clock_ms() - begin >= 990);
    /* One that began long ago, before a restart, is over. */
    stored_job row = row_of(31);
    row.started_ms = 1000;
    row.state = STR("running");
    start_row(&row, "job: {simulated: {seconds: 3600, failPercent: 100}}", true);
    expect_end(31, OUTCOME_FAILED, "a simulated failure");
}

static void a_simulated_job_keeps_to_its_time_limit(void **state)
{
    (void)state;
    int64_t begin = clock_ms();
    start(1, "timeoutSeconds: 1, job: {simulated: {seconds: 60}}");
    expect_end(1, OUTCOME_FAILED, "the time limit was reached");
    assert_in_range(clock_ms() - begin, 990, 30000);
}

#define VERIFY(line) "job: {pull: {}}, verify: {run: [sh, -c, '" line "']}"

/* The work was done by a worker or a person; what judges it runs here. */
static void a_job_that_was_done_elsewhere_is_verified(void **state)
{
    (void)state;
    stored_job row = row_of(1);
    err error;
    row.state = STR("verifying");
    row.fencing = 7;
    assert_true(jobs_log_add(server.jobs, 1, STR("the worker\n"), &error));
    start_row(&row, VERIFY("echo {{resource.name}} $DROVER_JOB_ID"), true);
    expect_end(1, OUTCOME_SUCCEEDED, "");
    assert_false(end_of(1)->report.verification_failed);
    check_log(1, "the worker\nweb-1 1\n");
    row.number = 2;
    start_row(&row, VERIFY("exit 3"), true);
    expect_end(2, OUTCOME_SUCCEEDED, "verify: exit status 3");
    assert_true(end_of(2)->report.verification_failed);
    /* The command is gone from the deployment since. */
    row.number = 3;
    start_row(&row, "job: {pull: {}}", true);
    expect_end(3, OUTCOME_SUCCEEDED, "");
    /* Announced a second time, as after an edit, it runs once. */
    row.number = 4;
    start_row(&row, VERIFY("echo x; sleep 0.2"), true);
    start_row(&row, VERIFY("echo x; sleep 0.2"), true);
    expect_end(4, OUTCOME_SUCCEEDED, "");
    check_log(4, "x\n");
}

static void a_simulated_job_is_verified(void **state)
{
    (void)state;
    start(1, "job: {simulated: {seconds: 0}}, verify: {run: ['true']}");
    expect_end(1, OUTCOME_SUCCEEDED, "");
    start(2, "job: {simulated: {seconds: 0}}, verify: {run: ['false']}");
    expect_end(2, OUTCOME_SUCCEEDED, "verify: exit status 1");
    assert_true(end_of(2)->report.verification_failed);
    start(3, "job: {simulated: {seconds: 0, failPercent: 100}}, verify: {run: ['true']}");
    expect_end(3, OUTCOME_FAILED, "a simulated failure");
}

static void jobs_of_people_and_workers_are_left_alone(void **state)
{
    (void)state;
    start(1, "job: {manual: {instructions: x}}");
    start(2, "job: {pull: {}}");
    stored_job claimed = row_of(3);
    claimed.fencing = 8;
    start_row(&claimed, NULL, true);
    uv_run(&server.loop, UV_RUN_NOWAIT);
    assert_int_equal(jobs_count(server.jobs), 0);
    assert_int_equal(server.len, 0);
}

static void a_report_that_is_not_taken_comes_again(void **state)
{
    (void)state;
    server.refusals = 1;
    start(1, "job: {command: {run: ['true']}}");
    expect_end(1, OUTCOME_SUCCEEDED, "");
    assert_int_equal(server.refusals, 0);
}

static void starting_twice_runs_once(void **state)
{
    (void)state;
    start(1, "job: {command: {run: [echo, ran]}}");
    start(1, "job: {command: {run: [echo, ran]}}");
    expect_end(1, OUTCOME_SUCCEEDED, "");
    check_log(1, "ran\n");
}

/* ---- who survives whom ---- */

static bool began(void *context)
{
    return file_exists(*(int64_t *)context, JOB_FILE_LOG);
}

/* A server that starts the job and is killed after so long, or when the job has begun. */
static void start_and_die(int64_t number, const char *spec, int64_t after_us)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        server_open();
        start(number, spec);
        if (after_us < 0)
            run_until(began, &number);
        else {
            uv_run(&server.loop, UV_RUN_NOWAIT);
            usleep((useconds_t)after_us);
        }
        kill(getpid(), SIGKILL);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    check_msg(WIFSIGNALED(status), "status %x", (unsigned)status);
}

static void a_job_survives_the_server(void **state)
{
    (void)state;
    const char *spec = "job: {command: {run: [sh, -c, 'echo begin; sleep 0.7; echo end; exit 5']}}";
    start_and_die(1, spec, -1);
    stored_job row = row_of(1);
    row.state = STR("running");
    row.pid = 12345;
    start_row(&row, spec, true);
    assert_int_equal(jobs_count(server.jobs), 1);
    expect_end(1, OUTCOME_FAILED, "exit status 5");
    check_log(1, "begin\nend\n");
}

static void a_job_that_ended_while_nobody_looked_is_known(void **state)
{
    (void)state;
    const char *spec = "job: {command: {run: [sh, -c, 'echo ran']}}, verify: {run: ['false']}";
    start_and_die(1, spec, -1);
    for (int i = 0; i < 500 && !file_exists(1, JOB_FILE_EXIT); i++)
        usleep(10000);
    stored_job row = row_of(1);
    start_row(&row, NULL, true); /* its deployment is gone by now */
    expect_end(1, OUTCOME_SUCCEEDED, "verify: exit status 1");
    check_log(1, "ran\n");
}

static void killed_at_any_time_a_job_runs_once(void **state)
{
    (void)state;
    rng r = rng_seeded();
    const char *spec = "job: {command: {run: [echo, ran]}}";
    for (int64_t n = 1; n <= 15; n++)
        start_and_die(n, spec, (int64_t)rng_below(&r, 20000));
    for (int64_t n = 1; n <= 15; n++) {
        stored_job row = row_of(n);
        start_row(&row, spec, true);
    }
    for (int64_t n = 1; n <= 15; n++) {
        expect_end(n, OUTCOME_SUCCEEDED, "");
        check_log(n, "ran\n");
    }
}

/* A job that prints "ran", for supervisors that are started by hand. */
static void make_spec(void)
{
    str echo[] = {STR("echo"), STR("ran")};
    str env[] = {STR("PATH=/usr/bin:/bin")};
    job_spec spec = {.timeout_ms = 9000, .grace_ms = 100, .run = {echo, 2, env, 1, STR_EMPTY}};
    buf text = BUF(10000);
    err error;
    job_spec_write(&spec, &text);
    assert_true(job_spec_make(str_of(folder), 1, buf_str(&text), &error));
    assert_true(job_spec_make(str_of(folder), 1, STR("another"), &error)); /* the first one stays */
    buf_done(&text);
}

static pid_t supervisor_fork(void)
{
    pid_t child = fork();
    if (child == 0)
        _exit(supervisor_run(str_of(folder), 1));
    return child;
}

static void supervisors_that_race_run_it_once(void **state)
{
    (void)state;
    make_spec();
    pid_t children[8];
    for (size_t i = 0; i < COUNT_OF(children); i++)
        children[i] = supervisor_fork();
    for (size_t i = 0; i < COUNT_OF(children); i++)
        assert_int_equal(waitpid(children[i], NULL, 0), children[i]);
    check_log(1, "ran\n");
}

/* Whether a process waits for a lock on a file. */
static bool waits_for_lock(pid_t pid)
{
    char path[64], text[64] = {0}, want[16];
    snprintf(path, sizeof path, "/proc/%ld/syscall", (long)pid);
    snprintf(want, sizeof want, "%d ", SYS_fcntl);
    FILE *f = fopen(path, "r");
    bool waits = f && fgets(text, sizeof text, f) && strncmp(text, want, strlen(want)) == 0;
    if (f)
        fclose(f);
    return waits;
}

static void a_supervisor_that_is_late_runs_nothing(void **state)
{
    (void)state;
    make_spec();
    char path[LIMIT_PATH_BYTES], draft[LIMIT_PATH_BYTES + 8];
    assert_true(job_path(str_of(folder), 1, JOB_FILE_SPEC, path));
    /* A server was killed while it made the spec: its draft is another name of the same file. */
    snprintf(draft, sizeof draft, "%s.99", path);
    assert_int_equal(link(path, draft), 0);
    /* This process is the supervisor that was in time... */
    int spec = open(path, O_RDWR | O_CLOEXEC);
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    assert_int_equal(fcntl(spec, F_SETLK, &lock), 0);
    pid_t late = supervisor_fork();
    for (int i = 0; i < LONG_MS && !waits_for_lock(late); i++)
        usleep(1000);
    /* ...whose end has been taken in by the server when the late one gets the lock. */
    job_files_remove(str_of(folder), 1);
    close(spec);
    assert_int_equal(waitpid(late, NULL, 0), late);
    assert_false(file_exists(1, JOB_FILE_LOG));
    assert_false(file_exists(1, JOB_FILE_RUN));
    job_drafts_remove(str_of(folder));
    assert_int_not_equal(access(draft, F_OK), 0);
}

static bool is_running(void *context)
{
    job_look look = {0};
    err error;
    arena *a = arena_new(0);
    assert_true(job_look_at(str_of(folder), *(int64_t *)context, a, &look, &error));
    arena_free(a);
    return look.state == JOB_DISK_RUNNING && began(context);
}

static void a_job_without_supervisor_is_lost_and_does_not_go_on(void **state)
{
    (void)state;
    start(1, "job: {command: {run: [sh, -c, 'echo $$; exec sleep 60']}}");
    int64_t number = 1;
    run_until(is_running, &number);
    pid_t pids[8];
    while (pids_in_log(1, pids) == 0)
        usleep(1000);
    assert_true(job_signal(str_of(folder), 1, SIGKILL));
    expect_end(1, OUTCOME_LOST, "its supervisor is gone and left no record");
    expect_gone(pids[0]);
}

static void a_process_with_the_same_number_is_not_taken_for_it(void **state)
{
    (void)state;
    pid_t other = fork();
    if (other == 0) {
        execlp("sleep", "sleep", "60", (char *)NULL);
        _exit(1);
    }
    /* All that is left of a job whose supervisor had the number that another process has now. */
    const job_file files[] = {JOB_FILE_SPEC, JOB_FILE_RUN};
    for (size_t i = 0; i < COUNT_OF(files); i++) {
        char path[LIMIT_PATH_BYTES];
        assert_true(job_path(str_of(folder), 1, files[i], path));
        close(open(path, O_WRONLY | O_CREAT, 0600));
    }
    stored_job row = row_of(1);
    row.pid = other;
    row.state = STR("running");
    start_row(&row, "job: {command: {run: [echo, again]}}", true);
    jobs_cancel(server.jobs, 1);
    assert_false(job_signal(str_of(folder), 1, SIGKILL));
    expect_end(1, OUTCOME_LOST, "its supervisor is gone and left no record");
    assert_true(alive(other));
    assert_false(file_exists(1, JOB_FILE_LOG));
    kill(other, SIGKILL);
    waitpid(other, NULL, 0);
    /* And when the files are gone too. */
    row.number = 2;
    start_row(&row, "job: {command: {run: [echo, again]}}", true);
    expect_end(2, OUTCOME_LOST, "its files are gone");
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], SUPERVISOR_VERB) == 0)
        return supervisor_main(argc - 2, argv + 2);
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(an_exit_status_is_an_outcome),
        TEST(the_time_limit_ends_the_whole_group),
        TEST(what_a_command_leaves_behind_is_killed),
        TEST(a_job_can_be_cancelled),
        TEST(a_verification_is_judged_after_the_command),
        TEST(words_are_words_whatever_they_hold),
        TEST(the_environment_is_made_for_the_job),
        TEST(what_a_template_lacks_fails_the_job_before_it_runs),
        TEST(a_log_keeps_its_beginning_and_its_end),
        TEST(a_log_that_a_worker_sends_is_bounded),
        TEST(simulated_jobs_take_time_and_fail_by_their_number),
        TEST(a_simulated_job_keeps_to_its_time_limit),
        TEST(a_job_that_was_done_elsewhere_is_verified),
        TEST(a_simulated_job_is_verified),
        TEST(jobs_of_people_and_workers_are_left_alone),
        TEST(a_report_that_is_not_taken_comes_again),
        TEST(starting_twice_runs_once),
        TEST(a_job_survives_the_server),
        TEST(a_job_that_ended_while_nobody_looked_is_known),
        TEST(killed_at_any_time_a_job_runs_once),
        TEST(supervisors_that_race_run_it_once),
        TEST(a_supervisor_that_is_late_runs_nothing),
        TEST(a_job_without_supervisor_is_lost_and_does_not_go_on),
        TEST(a_process_with_the_same_number_is_not_taken_for_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
