/* SPDX-License-Identifier: Apache-2.0 */
/* Charts by a helm that is made up: a script that keeps its words, and fails when it is told to. */
#include "support/check.h"

#include <sys/stat.h>
#include <unistd.h>

#include "cluster_agent/chart_run.h"

#define HELM                                                                                       \
    "#!/bin/sh\n"                                                                                  \
    "echo \"$KUBECONFIG: $*\" >> \"${0%/*}/words\"\n"                                              \
    "cat \"$KUBECONFIG\" >> \"${0%/*}/config\" 2> /dev/null\n"                                     \
    "case $1 in\n"                                                                                 \
    "upgrade) case $* in *--dry-run=server*)\n"                                                    \
    "  cat \"${0%/*}/tried\" 2> /dev/null ||\n"                                                    \
    "  echo '{\"manifest\":\"kind: Secret\"}'; exit;; esac\n"                                      \
    "  for last; do :; done; cp -r \"$last\" \"${0%/*}/chart\"\n"                                  \
    "  [ ! -e \"${0%/*}/fails\" ] || { cat \"${0%/*}/fails\" >&2; exit 1; };;\n"                   \
    "get) echo 'kind: ConfigMap';;\n"                                                              \
    "show) cat \"${0%/*}/crds\" 2> /dev/null || :;;\n"                                             \
    "rollback) [ ! -e \"${0%/*}/new\" ] || { echo 'release has no 0 version' >&2; exit 1; }\n"     \
    "  rm \"${0%/*}/fails\";;\n"                                                                   \
    "uninstall) case $* in *--ignore-not-found*) exit;; esac\n"                                    \
    "  rm -f \"${0%/*}/fails\"\n"                                                                  \
    "  [ ! -e \"${0%/*}/stays\" ] || { cat \"${0%/*}/stays\" >&2; exit 1; };;\n"                   \
    "esac\n"

typedef struct bench {
    char folder[64];
    char program[96];
    uv_loop_t loop;
    chart_runner *runner;
    bool answered;
    step_outcome outcome;
    char text[256], message[1024];
    bool definitions;
    str user;   /* whose rights count */
    str config; /* what helm finds for a kubeconfig; empty: it is told where one is */
} bench;

static void put_file(const bench *b, const char *name, const char *text)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", b->folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(path, 0700), 0);
}

/* The file's text; empty: there is none. */
static void get_file(const bench *b, const char *name, char out[4096])
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", b->folder, name);
    FILE *file = fopen(path, "r");
    size_t len = file ? fread(out, 1, 4095, file) : 0;
    out[len] = '\0';
    if (file)
        fclose(file);
}

/* A runner that takes a lock for another's during so many milliseconds (0: as long as a helm may
 * take); one from before ends. */
static void start_runner(bench *b, uint64_t lock_ms)
{
    if (b->runner) {
        b->runner = chart_runner_stop(b->runner);
        uv_run(&b->loop, UV_RUN_DEFAULT);
    }
    b->runner = chart_runner_new(&b->loop, (chart_place){.program = b->program,
                                                         .kubeconfig = STR("/etc/config"),
                                                         .config = b->config,
                                                         .context = STR("here"),
                                                         .lock_ms = lock_ms});
    assert_non_null(b->runner);
}

static void bench_open(bench *b, const char *program)
{
    char folder[] = "/tmp/test-chart-run-XXXXXX";
    assert_non_null(mkdtemp(folder));
    *b = (bench){0};
    snprintf(b->folder, sizeof b->folder, "%s", folder);
    snprintf(b->program, sizeof b->program, "%s/%s", folder, program);
    put_file(b, "helm", HELM);
    setenv("TMPDIR", b->folder, 1);
    assert_int_equal(uv_loop_init(&b->loop), 0);
    start_runner(b, 0);
}

static void bench_close(bench *b)
{
    char command[128];
    b->runner = chart_runner_stop(b->runner);
    uv_run(&b->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&b->loop), 0);
    snprintf(command, sizeof command, "rm -r %s", b->folder);
    assert_int_equal(system(command), 0);
}

static void done(void *context, const step_answer *answer)
{
    bench *b = context;
    b->answered = true;
    b->outcome = answer->outcome;
    b->definitions = answer->definitions;
    snprintf(b->text, sizeof b->text, "%.*s", STR_ARG(answer->text));
    snprintf(b->message, sizeof b->message, "%.*s", STR_ARG(answer->message));
}

static manifest chart_of(resource_file *files, size_t count)
{
    return (manifest){.owner = STR("app"),
                      .release = STR("app"),
                      .release_namespace = STR("shop"),
                      .create_namespace = true,
                      .is_chart = true,
                      .files = {files, count},
                      .chart = {.folder = STR("charts/web"),
                                .name = STR_EMPTY,
                                .repo = STR_EMPTY,
                                .version = STR_EMPTY,
                                .values = STR("{\"x\":1}"),
                                .timeout_s = 5,
                                .atomic = true,
                                .disable_dns = true}};
}

static void run_chart(bench *b, step_kind kind, const manifest *m)
{
    err error = {0};
    step s = {.kind = kind, .chart = m, .user = b->user};
    b->answered = false;
    check_msg(chart_runner_start(b->runner, &s, (chart_handler){b, done}, &error), "%s",
              error.text);
    uv_run(&b->loop, UV_RUN_DEFAULT);
    assert_true(b->answered);
}

static resource_file good[] = {{STR("charts/web/Chart.yaml"), STR("name: web\n")},
                               {STR("charts/web/templates/a.yaml"), STR("kind: ConfigMap\n")}};

static void test_installs_and_removes(void **state)
{
    (void)state;
    bench b;
    char text[4096];
    manifest m = chart_of(good, COUNT_OF(good));
    bench_open(&b, "helm");
    run_chart(&b, STEP_INSTALL_CHART, &m);
    assert_int_equal(b.outcome, OUTCOME_OK);
    assert_string_equal(b.text, "kind: ConfigMap\n");
    get_file(&b, "chart/templates/a.yaml", text);
    assert_string_equal(text, "kind: ConfigMap\n");
    run_chart(&b, STEP_REMOVE_CHART, &m);
    assert_int_equal(b.outcome, OUTCOME_OK);
    get_file(&b, "words", text);
    check_has_at(str_of(text),
                 STR("/etc/config: upgrade --install --namespace shop --kube-context here "),
                 __FILE__, __LINE__);
    check_has_at(str_of(text),
                 STR("/files/charts/web\n/etc/config: get manifest app "
                     "--namespace shop --kube-context here\n"),
                 __FILE__, __LINE__);
    check_has_at(str_of(text), STR("uninstall app --namespace shop --kube-context here\n"),
                 __FILE__, __LINE__);
    assert_int_equal(str_find(str_of(text), STR("enable-dns")), SIZE_MAX);
    bench_close(&b);
}

/* Every helm is told on whose behalf it works, and for which groups: for no others. */
static void test_account(void **state)
{
    (void)state;
    static const step_kind kinds[] = {STEP_TRY_CHART, STEP_INSTALL_CHART, STEP_READ_CHART,
                                      STEP_REMOVE_CHART};
    bench b;
    char text[4096];
    size_t lines = 0, told = 0;
    manifest m = chart_of(good, COUNT_OF(good));
    bench_open(&b, "helm");
    b.user = STR("system:serviceaccount:here:tenant");
    for (size_t i = 0; i < COUNT_OF(kinds); i++)
        run_chart(&b, kinds[i], &m);
    get_file(&b, "words", text);
    for (str rest = str_of(text); rest.len > 0; lines++)
        told += str_find(str_cut(&rest, '\n'),
                         STR(" --kube-as-user system:serviceaccount:here:tenant"
                             " --kube-as-group system:authenticated"
                             " --kube-as-group system:serviceaccounts"
                             " --kube-as-group system:serviceaccounts:here")) != SIZE_MAX;
    assert_int_equal(lines, 6);
    assert_int_equal(told, lines);
    bench_close(&b);
}

/* In a pod every helm is told where the cluster is, by a file that goes with its folder. */
static void test_config(void **state)
{
    (void)state;
    static const step_kind kinds[] = {STEP_TRY_CHART, STEP_READ_CHART, STEP_REMOVE_CHART};
    bench b;
    char text[4096];
    size_t lines = 0;
    manifest m = chart_of(good, COUNT_OF(good));
    bench_open(&b, "helm");
    b.config = STR("{\"kind\":\"Config\"}\n");
    start_runner(&b, 0);
    for (size_t i = 0; i < COUNT_OF(kinds); i++)
        run_chart(&b, kinds[i], &m);
    get_file(&b, "config", text);
    assert_string_equal(text, "{\"kind\":\"Config\"}\n{\"kind\":\"Config\"}\n"
                              "{\"kind\":\"Config\"}\n{\"kind\":\"Config\"}\n");
    get_file(&b, "words", text);
    for (str rest = str_of(text); rest.len > 0; lines++) {
        str line = str_cut(&rest, '\n'), path = str_cut(&line, ':');
        char name[256];
        snprintf(name, sizeof name, "%.*s", STR_ARG(path));
        assert_true(str_starts(path, str_of(b.folder)) && str_ends(path, STR("/kubeconfig")));
        assert_int_equal(access(name, F_OK), -1);
    }
    assert_int_equal(lines, COUNT_OF(kinds) + 1);
    bench_close(&b);
}

/* What it would render is found in helm's words of the release. */
static void test_tries(void **state)
{
    (void)state;
    bench b;
    char text[4096];
    manifest m = chart_of(good, COUNT_OF(good));
    m.chart.folder = (str){NULL, 0};
    m.chart.name = STR("oci://shop.io/web");
    m.chart.skip_tls_verify = true;
    bench_open(&b, "helm");
    run_chart(&b, STEP_TRY_CHART, &m);
    assert_int_equal(b.outcome, OUTCOME_OK);
    assert_string_equal(b.text, "kind: Secret");
    get_file(&b, "words", text);
    check_has_at(str_of(text), STR(" --insecure-skip-tls-verify "), __FILE__, __LINE__);
    check_has_at(str_of(text), STR(" --take-ownership "), __FILE__, __LINE__);
    check_has_at(str_of(text),
                 STR(" --dry-run=server --output=json -- app oci://shop.io/web\n/etc/config: show "
                     "crds --namespace shop --kube-context here --insecure-skip-tls-verify -- "
                     "oci://shop.io/web\n"),
                 __FILE__, __LINE__);
    assert_int_equal(str_find(str_of(text), STR(": get manifest")), SIZE_MAX);
    assert_int_equal(str_find(str_of(text), STR("--skip-crds")), SIZE_MAX);
    assert_false(b.definitions);
    bench_close(&b);
}

/* Hooks make objects as well, and so does the folder of definitions, of which a trial says nothing.
 * What must be in one namespace is installed without that. */
static void test_tries_all(void **state)
{
    (void)state;
    bench b;
    char text[4096];
    manifest m = chart_of(good, COUNT_OF(good));
    m.confined = true;
    bench_open(&b, "helm");
    put_file(
        &b, "tried",
        "{\"manifest\":\"kind: Secret\",\"hooks\":[{\"name\":\"a\",\"manifest\":\"kind: Job\"},"
        "{\"manifest\":\"kind: Pod\"}]}");
    put_file(&b, "crds", "---\nkind: CustomResourceDefinition\n");
    run_chart(&b, STEP_TRY_CHART, &m);
    assert_int_equal(b.outcome, OUTCOME_OK);
    assert_string_equal(b.text, "kind: Secret\n---\nkind: Job\n---\nkind: Pod");
    assert_true(b.definitions);
    put_file(&b, "crds", "\n");
    run_chart(&b, STEP_TRY_CHART, &m);
    assert_false(b.definitions);
    run_chart(&b, STEP_INSTALL_CHART, &m);
    assert_false(b.definitions);
    get_file(&b, "words", text);
    check_has_at(str_of(text), STR(" --atomic --skip-crds -- app /"), __FILE__, __LINE__);
    put_file(&b, "tried", "Odd words, and no release\n");
    run_chart(&b, STEP_TRY_CHART, &m);
    assert_int_equal(b.outcome, OUTCOME_REFUSED);
    bench_close(&b);
}

/* The name of a chart that looks like a flag is the name of a chart. */
static void test_flag_for_a_chart(void **state)
{
    (void)state;
    bench b;
    char text[4096];
    manifest m = chart_of(good, COUNT_OF(good));
    m.chart.folder = (str){NULL, 0};
    m.chart.name = STR("--post-renderer=/bin/true");
    bench_open(&b, "helm");
    run_chart(&b, STEP_INSTALL_CHART, &m);
    get_file(&b, "words", text);
    str line = str_of(text);
    check_has_at(str_cut(&line, '\n'), STR(" -- app --post-renderer=/bin/true"), __FILE__,
                 __LINE__);
    bench_close(&b);
}

static void test_failures(void **state)
{
    (void)state;
    static const struct {
        const char *complaint;
        step_outcome outcome;
    } rows[] = {
        {"Error: UPGRADE FAILED: nobody knows", OUTCOME_REFUSED},
        {"Error: Kubernetes cluster unreachable: Get \"https://10.0.0.1/version\": dial tcp "
         "10.0.0.1:443: connect: connection refused",
         OUTCOME_LATER},
        {"Error: UPGRADE FAILED: cannot patch \"web\" with kind Deployment: Operation cannot be "
         "fulfilled on deployments.apps \"web\": the object has been modified",
         OUTCOME_LATER},
        {"Error: UPGRADE FAILED: cannot patch \"web\" with kind Deployment: Internal error "
         "occurred: failed calling webhook",
         OUTCOME_LATER},
        {"Error: release name is invalid: No_Name", OUTCOME_INVALID},
        {"Error: Unable to continue with install: ConfigMap \"a\" in namespace \"shop\" exists and "
         "cannot be imported into the current release: invalid ownership metadata",
         OUTCOME_CONFLICT},
        {"Error: YAML parse error on web/a.yaml", OUTCOME_INVALID},
        {"Error: timed out waiting for the condition", OUTCOME_INVALID},
        {"Error: Deployment \"web\" is invalid: spec.selector: field is immutable",
         OUTCOME_INVALID},
    };
    bench b;
    manifest m = chart_of(good, COUNT_OF(good));
    bench_open(&b, "helm");
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        put_file(&b, "fails", rows[i].complaint);
        run_chart(&b, STEP_INSTALL_CHART, &m);
        check_msg(b.outcome == rows[i].outcome, "row %zu", i);
        assert_string_equal(b.message, rows[i].complaint);
    }
    bench_close(&b);
}

/* Only a release of which helm says that there is none needs no removal; helm has a flag for that
 * with which it takes every error for it. */
static void test_removal_fails(void **state)
{
    (void)state;
    static const struct {
        const char *complaint;
        step_outcome outcome;
    } rows[] = {
        {"Error: uninstall: Release not loaded: app: release: not found", OUTCOME_OK},
        {"level=WARN msg=\"odd\"\nError: uninstall: Release not loaded: app: release: not found\n",
         OUTCOME_OK},
        {"Error: uninstall: Release not loaded: app: query: failed to query with labels: secrets "
         "is forbidden",
         OUTCOME_REFUSED},
        {"Error: uninstall: Release not loaded: app: Get \"https://10.0.0.1/api/v1\": dial tcp "
         "10.0.0.1:443: connect: connection refused",
         OUTCOME_LATER},
        {"Error: uninstallation completed with 1 error(s): job \"release: not found\" failed",
         OUTCOME_REFUSED},
        {"Error: context \"here\" does not exist", OUTCOME_REFUSED},
    };
    bench b;
    manifest m = chart_of(good, COUNT_OF(good));
    bench_open(&b, "helm");
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        put_file(&b, "stays", rows[i].complaint);
        run_chart(&b, STEP_REMOVE_CHART, &m);
        check_msg(b.outcome == rows[i].outcome, "row %zu: %s", i, b.message);
    }
    bench_close(&b);
}

/* Of a locked first revision that is gone when it is to be undone the chart is installed. */
static void test_undone_already(void **state)
{
    (void)state;
    bench b;
    manifest m = chart_of(good, COUNT_OF(good));
    bench_open(&b, "helm");
    start_runner(&b, 1);
    usleep(2000);
    uv_update_time(&b.loop);
    put_file(&b, "fails", "Error: another operation (install/upgrade/rollback) is in progress");
    put_file(&b, "new", "");
    put_file(&b, "stays", "Error: uninstall: Release not loaded: app: release: not found");
    run_chart(&b, STEP_INSTALL_CHART, &m);
    assert_int_equal(b.outcome, OUTCOME_OK);
    bench_close(&b);
}

/* A helm that was killed left the release locked: it is taken back, but not while it may still be
 * running, and not by those who only remove. */
static void test_locked(void **state)
{
    (void)state;
    static const char complaint[] = "Error: UPGRADE FAILED: another operation "
                                    "(install/upgrade/rollback) is in progress";
    for (int first = 0; first < 2; first++) {
        bench b;
        char text[4096];
        manifest m = chart_of(good, COUNT_OF(good));
        bench_open(&b, "helm");
        put_file(&b, "fails", complaint);
        if (first)
            put_file(&b, "new", "");
        run_chart(&b, STEP_INSTALL_CHART, &m);
        assert_int_equal(b.outcome, OUTCOME_BUSY);
        start_runner(&b, 1);
        usleep(2000);
        uv_update_time(&b.loop);
        put_file(&b, "words", "");
        run_chart(&b, STEP_INSTALL_CHART, &m);
        assert_int_equal(b.outcome, OUTCOME_OK);
        assert_string_equal(b.text, "kind: ConfigMap\n");
        get_file(&b, "words", text);
        str rest = str_of(text);
        static const char *const verbs[] = {": upgrade", ": rollback app --namespace shop",
                                            ": uninstall app", ": upgrade", ": get manifest app"};
        for (size_t i = 0; i < COUNT_OF(verbs); i++) {
            if (i == 2 && !first)
                continue;
            str line = str_cut(&rest, '\n');
            check_has_at(line, str_of(verbs[i]), __FILE__, __LINE__);
        }
        bench_close(&b);
    }
}

/* Values of the cluster win over those of the options, as with Fleet's own agent. */
static void test_values_from(void **state)
{
    (void)state;
    str texts[] = {STR("a: 1\n"), STR("b: 2\n")};
    bench b;
    char text[4096];
    manifest m = chart_of(good, COUNT_OF(good));
    m.chart.values_from = (str_list){texts, 2};
    bench_open(&b, "helm");
    run_chart(&b, STEP_INSTALL_CHART, &m);
    assert_int_equal(b.outcome, OUTCOME_OK);
    get_file(&b, "words", text);
    size_t first = str_find(str_of(text), STR("/values.json\" --values "));
    size_t one = str_find(str_of(text), STR("/from-0.yaml\" --values "));
    size_t two = str_find(str_of(text), STR("/from-1.yaml\" --history-max"));
    assert_true(first < one && one < two && two != SIZE_MAX);
    run_chart(&b, STEP_READ_CHART, &m);
    assert_string_equal(b.text, "kind: ConfigMap\n");
    bench_close(&b);
}

/* A name with a comma is that of one file, and none of another that the agent can read. */
static void test_values_files(void **state)
{
    (void)state;
    static resource_file files[] = {{STR("charts/web/Chart.yaml"), STR("name: web\n")},
                                    {STR("a\",/etc/config"), STR("a: 1\n")}};
    str names[] = {STR("a\",/etc/config")};
    bench b;
    char text[4096];
    manifest m = chart_of(files, COUNT_OF(files));
    m.chart.values_files = (str_list){names, 1};
    bench_open(&b, "helm");
    run_chart(&b, STEP_INSTALL_CHART, &m);
    assert_int_equal(b.outcome, OUTCOME_OK);
    get_file(&b, "words", text);
    check_has_at(str_of(text), STR(" --values \"/tmp/"), __FILE__, __LINE__);
    check_has_at(str_of(text), STR("/files/a\"\",/etc/config\" --values "), __FILE__, __LINE__);
    bench_close(&b);
}

static void test_no_helm(void **state)
{
    (void)state;
    bench b;
    manifest m = chart_of(good, COUNT_OF(good));
    bench_open(&b, "no-helm");
    run_chart(&b, STEP_INSTALL_CHART, &m);
    assert_int_equal(b.outcome, OUTCOME_REFUSED);
    check_has_at(str_of(b.message), STR("cannot be run: no such file"), __FILE__, __LINE__);
    bench_close(&b);
}

/* Nothing is written outside of its folder. */
static void test_paths(void **state)
{
    (void)state;
    static const char *const names[] = {"../a", "/etc/a", "a/../../b", "a//b", "./a", ""};
    bench b;
    bench_open(&b, "helm");
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        resource_file bad = {str_of(names[i]), STR("x")};
        manifest m = chart_of(&bad, 1);
        step s = {.kind = STEP_INSTALL_CHART, .chart = &m};
        err error = {0};
        check_msg(!chart_runner_start(b.runner, &s, (chart_handler){&b, done}, &error), "%s",
                  names[i]);
        check_err_has(error, "no path inside the bundle");
    }
    bench_close(&b);
}

/* ---- those that wait ---- */

/* One that is told to wait, or has a hook called "slow", waits for the file "go"; it gives up. */
#define WAITING_HELM                                                                               \
    "#!/bin/sh\n"                                                                                  \
    "here=${0%/*}\n"                                                                               \
    "case $* in upgrade*--wait*|upgrade*slow*) echo x >> \"$here/began\"; i=0\n"                   \
    "  while [ ! -e \"$here/go\" ] && [ $i -lt 200 ]; do sleep 0.1; i=$((i + 1)); done;; esac\n"

typedef struct tally {
    size_t answers, failures;
} tally;

static void counted(void *context, const step_answer *answer)
{
    tally *t = context;
    t->answers++;
    t->failures += answer->outcome != OUTCOME_OK;
}

static void start_counted(bench *b, const manifest *m, tally *t)
{
    err error = {0};
    step s = {.kind = STEP_INSTALL_CHART, .chart = m};
    check_msg(chart_runner_start(b->runner, &s, (chart_handler){t, counted}, &error), "%s",
              error.text);
}

static size_t began(const bench *b)
{
    char text[4096];
    get_file(b, "began", text);
    return strlen(text) / 2;
}

static void run_until(bench *b, const tally *t, size_t answers)
{
    while (t->answers < answers && uv_run(&b->loop, UV_RUN_ONCE))
        ;
    assert_int_equal(t->answers, answers);
}

/* Charts that wait leave room for those that do not, which may bring what they wait for; and there
 * are never more than so many of them. */
static void test_waiting_leaves_room(void **state)
{
    (void)state;
    bench b;
    tally waiting = {0}, quick = {0};
    manifest m = chart_of(good, COUNT_OF(good)), other = m;
    other.chart.timeout_s = 0;
    other.chart.atomic = false;
    bench_open(&b, "helm");
    put_file(&b, "helm", WAITING_HELM);
    for (int i = 0; i < CHART_WAITING_MAX + 2; i++)
        start_counted(&b, &m, &waiting);
    for (int i = 0; i < CHART_RUNNING_MAX + 1; i++)
        start_counted(&b, &other, &quick);
    run_until(&b, &quick, CHART_RUNNING_MAX + 1);
    assert_int_equal(waiting.answers, 0);
    for (int i = 0; i < 100 && began(&b) < CHART_WAITING_MAX; i++)
        usleep(50000);
    assert_int_equal(began(&b), CHART_WAITING_MAX);
    put_file(&b, "go", "");
    run_until(&b, &waiting, CHART_WAITING_MAX + 2);
    assert_int_equal(began(&b), CHART_WAITING_MAX + 2);
    assert_int_equal(waiting.failures + quick.failures, 0);
    bench_close(&b);
}

/* So do those that nobody told to wait, and that take long all the same. */
static void test_slow_leaves_room(void **state)
{
    (void)state;
    bench b;
    tally slow = {0}, quick = {0};
    manifest m = chart_of(good, COUNT_OF(good)), other;
    m.chart.timeout_s = 0;
    m.chart.atomic = false;
    other = m;
    m.release = STR("slow");
    bench_open(&b, "helm");
    put_file(&b, "helm", WAITING_HELM);
    b.runner = chart_runner_stop(b.runner);
    b.runner = chart_runner_new(
        &b.loop,
        (chart_place){.program = b.program, .kubeconfig = STR("/etc/config"), .quick_ms = 50});
    for (int i = 0; i < CHART_WAITING_MAX + CHART_RUNNING_MAX - 1; i++)
        start_counted(&b, &m, &slow);
    start_counted(&b, &other, &quick);
    run_until(&b, &quick, 1);
    assert_int_equal(slow.answers, 0);
    put_file(&b, "go", "");
    run_until(&b, &slow, CHART_WAITING_MAX + CHART_RUNNING_MAX - 1);
    assert_int_equal(slow.failures + quick.failures, 0);
    bench_close(&b);
}

/* ---- folders ---- */

/* How many folders of helms there are. */
static int folders(const bench *b)
{
    char command[160], text[16] = "";
    snprintf(command, sizeof command, "ls -d %s/drover-chart-* 2> /dev/null | wc -l", b->folder);
    FILE *found = popen(command, "r");
    assert_non_null(found);
    assert_non_null(fgets(text, sizeof text, found));
    pclose(found);
    return (int)strtol(text, NULL, 10);
}

/* What an agent left that was killed goes when one starts: no folder of an agent that runs, and not
 * as long as a helm works in it that outlived its agent. */
static void test_left_folders(void **state)
{
    (void)state;
    bench b;
    char path[128];
    tally quick = {0};
    manifest m = chart_of(good, COUNT_OF(good));
    bench_open(&b, "helm");
    put_file(&b, "helm", WAITING_HELM);
    snprintf(path, sizeof path, "%s/drover-chart-abcdef", b.folder);
    assert_int_equal(mkdir(path, 0700), 0);
    put_file(&b, "drover-chart-abcdef/values.json", "{}");
    put_file(&b, "drover-chart-file", "none of ours");
    start_counted(&b, &m, &quick);
    assert_int_equal(folders(&b), 3);
    chart_runner *other = chart_runner_new(&b.loop, (chart_place){.program = b.program});
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(folders(&b), 2);
    while (began(&b) == 0)
        usleep(1000);
    b.runner = chart_runner_stop(b.runner); /* the helm of it goes on */
    uv_run(&b.loop, UV_RUN_DEFAULT);
    chart_runner_stop(chart_runner_new(&b.loop, (chart_place){.program = b.program}));
    assert_int_equal(folders(&b), 2);
    put_file(&b, "go", "");
    for (int i = 0; i < 1000 && folders(&b) == 2; i++) {
        chart_runner_stop(chart_runner_new(&b.loop, (chart_place){.program = b.program}));
        usleep(10000);
    }
    assert_int_equal(folders(&b), 1);
    assert_int_equal(quick.answers, 0);
    chart_runner_stop(other);
    bench_close(&b);
}

/* An agent that ends does not wait for helm. */
static void test_ends_while_it_runs(void **state)
{
    (void)state;
    bench b;
    err error = {0};
    manifest m = chart_of(good, COUNT_OF(good));
    step s = {.kind = STEP_INSTALL_CHART, .chart = &m};
    bench_open(&b, "helm");
    put_file(&b, "helm", "#!/bin/sh\nexec sleep 2\n"); /* whoever is killed leaves no children */
    for (int i = 0; i < CHART_WAITING_MAX + 1; i++)
        assert_true(chart_runner_start(b.runner, &s, (chart_handler){&b, done}, &error));
    uv_run(&b.loop, UV_RUN_NOWAIT);
    bench_close(&b);
    assert_false(b.answered);
}

/* What a chart renders is bounded like what a Bundle holds: more would not fit into the pod. */
static void test_renders_too_much(void **state)
{
    (void)state;
    bench b;
    bench_open(&b, "helm");
    resource_file files[] = {{STR("charts/web/Chart.yaml"), STR("name: web\n")}};
    manifest m = chart_of(files, 1);
    for (size_t more = 0; more < 2; more++) {
        buf text = BUF(2 * (size_t)MANIFEST_BYTES_MAX);
        buf_addz(&text, "{\"manifest\":\"");
        for (size_t i = 0; i < MANIFEST_BYTES_MAX / 16 + more; i++)
            buf_addz(&text, "# sixteen bytes ");
        buf_addz(&text, "\"}");
        put_file(&b, "tried", text.ptr);
        buf_done(&text);
        run_chart(&b, STEP_TRY_CHART, &m);
        assert_int_equal(b.outcome, more ? OUTCOME_INVALID : OUTCOME_OK);
        check_text(str_of(b.message), more ? "the chart renders more than can be taken in" : "");
    }
    bench_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_installs_and_removes),
        cmocka_unit_test(test_account),
        cmocka_unit_test(test_config),
        cmocka_unit_test(test_tries),
        cmocka_unit_test(test_tries_all),
        cmocka_unit_test(test_renders_too_much),
        cmocka_unit_test(test_flag_for_a_chart),
        cmocka_unit_test(test_failures),
        cmocka_unit_test(test_removal_fails),
        cmocka_unit_test(test_undone_already),
        cmocka_unit_test(test_locked),
        cmocka_unit_test(test_values_from),
        cmocka_unit_test(test_values_files),
        cmocka_unit_test(test_no_helm),
        cmocka_unit_test(test_paths),
        cmocka_unit_test(test_waiting_leaves_room),
        cmocka_unit_test(test_slow_leaves_room),
        cmocka_unit_test(test_left_folders),
        cmocka_unit_test(test_ends_while_it_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
