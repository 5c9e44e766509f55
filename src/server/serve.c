/* SPDX-License-Identifier: Apache-2.0 */
#include "server/serve.h"

#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "server/api.h"
#include "server/clock.h"
#include "server/dashboard.h"
#include "server/demo.h"
#include "server/pem.h"
#include "server/planner.h"

/* The longest that a timer is set to: a clock that is put forward is noticed then. */
#define TIMER_MS_MAX INT64_C(60000)

typedef struct serve {
    const serve_settings *settings;
    uv_loop_t loop;
    uv_prepare_t prepare;
    uv_timer_t timer;
    uv_signal_t signals[2];
    api api;
    store *store;
    demo *demo;
    char address[64];
    uint16_t port;
    str certificate, key;
    arena *texts;
    bool looping;
} serve;

/* ---- what the control plane says ---- */

static void on_job(void *context, const job_order *order)
{
    serve *s = context;
    if (!jobs_start(s->api.jobs, order)) {
        /* It is announced again at the next start, which nobody should have to wait for. */
        log_line(LOG_ERROR, "job %lld is not started until a restart: memory ran out",
                 (long long)order->job->number);
    }
}

static void on_cancel(void *context, int64_t number)
{
    serve *s = context;
    jobs_cancel(s->api.jobs, number);
}

static void on_journal(void *context, const journal_entry *entry)
{
    serve *s = context;
    events_add(s->api.events, entry);
    if (s->api.http)
        http_wake(s->api.http);
}

static bool on_report(void *context, job_report *reports, size_t count)
{
    serve *s = context;
    err error;
    if (!s->api.control)
        return false;
    if (control_jobs(s->api.control, reports, count, clock_ms(), &error) &&
        control_settle(s->api.control, &error))
        return true;
    err lost; /* no later call is refused for this one */
    control_settle(s->api.control, &lost);
    log_line(LOG_ERROR, "%s", error.text);
    return false;
}

/* ---- time ---- */

static void on_timer(uv_timer_t *timer)
{
    serve *s = timer->data;
    err error;
    if (!control_tick(s->api.control, clock_ms(), &error))
        log_line(LOG_ERROR, "%s", error.text);
}

static void before_wait(uv_prepare_t *prepare)
{
    serve *s = prepare->data;
    err error;
    if (control_unsettled(s->api.control) && !control_settle(s->api.control, &error))
        log_line(LOG_ERROR, "%s", error.text);
    int64_t due = control_next_ms(s->api.control);
    if (due == REASON_NEVER) {
        uv_timer_stop(&s->timer);
        return;
    }
    int64_t wait = due - clock_ms();
    wait = wait < 0 ? 0 : wait > TIMER_MS_MAX ? TIMER_MS_MAX : wait;
    uv_timer_start(&s->timer, on_timer, (uint64_t)wait, 0);
}

static void on_signal(uv_signal_t *handle, int number)
{
    (void)number;
    uv_stop(handle->loop);
}

/* ---- opening ---- */

static bool check_settings(serve *s, err *error)
{
    const serve_settings *set = s->settings;
    if (!http_address(set->listen, s->address, &s->port, error))
        return err_wrap(error, "--listen");
    if ((set->tls_certificate.len > 0) != (set->tls_key.len > 0))
        return err_set(error, "--tls-cert and --tls-key go together");
    bool tls = set->tls_certificate.len > 0;
    if (!tls && !set->insecure && !http_is_loopback(str_of(s->address)))
        return err_set(error,
                       "--listen: %s is reached from other machines; give --tls-cert and "
                       "--tls-key, or --insecure",
                       s->address);
    s->api.scheme = tls ? "https" : "http";
    return !tls || (pem_read(s->texts, set->tls_certificate, &s->certificate, error) &&
                    pem_read(s->texts, set->tls_key, &s->key, error));
}

static bool open_jobs(serve *s, err *error)
{
    char folder[LIMIT_PATH_BYTES];
    snprintf(folder, sizeof folder, "%.*s/" SERVE_JOBS_FOLDER, STR_ARG(s->settings->folder));
    jobs_settings settings = {.folder = str_of(folder)};
    jobs_reporter reporter = {.context = s, .report = on_report};
    s->api.jobs = jobs_open(&s->loop, &settings, reporter, error);
    return s->api.jobs;
}

static bool open_http(serve *s, err *error)
{
    http_settings settings = {.address = str_of(s->address),
                              .port = s->port,
                              .tls_certificate = s->certificate,
                              .tls_key = s->key,
                              .hosts = s->settings->hosts,
                              .host_count = s->settings->host_count};
    http_handler handler = api_handler(&s->api);
    s->api.http = http_open(&s->loop, &settings, &handler, error);
    return s->api.http;
}

static bool open_parts(serve *s, err *error)
{
    int64_t now = clock_ms();
    s->api.folder = s->settings->folder;
    s->api.started_ms = now;
    s->api.fleetlock_join = s->settings->fleetlock_join;
    s->store = store_open(s->settings->folder, error);
    if (!s->store || !store_set_sync(s->store, !s->settings->unsafe_no_sync, error))
        return false;
    backup_sweep(s->settings->folder);
    s->api.auth = auth_open(s->store, s->settings->folder, now, error);
    if (s->api.auth && s->settings->per_second > 0)
        auth_set_rate(s->api.auth, s->settings->per_second);
    s->api.events = s->api.auth ? events_open(s->store) : NULL;
    if (!s->api.events)
        return s->api.auth ? err_memory(error) : false;
    control_listener listener = {
        .context = s, .job = on_job, .cancel = on_cancel, .journal = on_journal};
    if (!open_jobs(s, error))
        return false;
    s->api.control =
        control_open(s->store, &(control_settings){.share_commits = true, .snapshots_beside = true},
                     &listener, now, error);
    s->api.planner = planner_open(&s->loop);
    if (!s->api.planner)
        return err_memory(error);
    return s->api.control && open_http(s, error);
}

/* ---- the loop ---- */

static void start_loop(serve *s)
{
    const int numbers[] = {SIGTERM, SIGINT};
    uv_prepare_init(&s->loop, &s->prepare);
    uv_timer_init(&s->loop, &s->timer);
    s->prepare.data = s->timer.data = s;
    uv_prepare_start(&s->prepare, before_wait);
    for (size_t i = 0; i < 2; i++) {
        uv_signal_init(&s->loop, &s->signals[i]);
        s->signals[i].data = s;
        uv_signal_start(&s->signals[i], on_signal, numbers[i]);
    }
    s->looping = true;
}

static void stop_loop(serve *s)
{
    if (!s->looping)
        return;
    uv_close((uv_handle_t *)&s->prepare, NULL);
    uv_close((uv_handle_t *)&s->timer, NULL);
    for (size_t i = 0; i < 2; i++)
        uv_close((uv_handle_t *)&s->signals[i], NULL);
}

/* Where clients of this machine find the server. */
static bool write_address(serve *s, err *error)
{
    char path[LIMIT_PATH_BYTES];
    char temporary[LIMIT_PATH_BYTES + 8];
    bool v6 = strchr(s->address, ':') != NULL;
    bool any = strcmp(s->address, "0.0.0.0") == 0 || strcmp(s->address, "::") == 0;
    snprintf(path, sizeof path, "%.*s/" SERVE_ADDRESS_FILE, STR_ARG(s->settings->folder));
    snprintf(temporary, sizeof temporary, "%s.new", path);
    FILE *file = fopen(temporary, "we");
    if (!file)
        return err_set(error, "%s cannot be written: %s", temporary, strerror(errno));
    bool brackets = v6 && !any;
    fprintf(file, "%s://%s%s%s:%u\n", s->api.scheme, brackets ? "[" : "",
            any ? "127.0.0.1" : s->address, brackets ? "]" : "", http_port(s->api.http));
    bool good = fclose(file) == 0 && rename(temporary, path) == 0;
    return good || err_set(error, "%s cannot be written: %s", path, strerror(errno));
}

static void print_url(const serve *s)
{
    bool v6 = strchr(s->address, ':') != NULL;
    printf("%s://%s%s%s:%u", s->api.scheme, v6 ? "[" : "", s->address, v6 ? "]" : "",
           http_port(s->api.http));
}

/* Only a person is told: what a service prints is kept in logs, and the code opens everything. */
static void greet_dashboard(serve *s)
{
    char code[AUTH_TOKEN_BYTES];
    err error;
    caller owner = {.name = STR("admin"), .level = ACCESS_ADMIN, .selector = STR_EMPTY};
    if (!dashboard_files[0].path)
        return;
    if ((!s->demo && !isatty(STDOUT_FILENO)) ||
        !auth_link(s->api.auth, &owner, clock_ms(), code, &error)) {
        printf("\"drover dashboard\" prints a link to the dashboard\n");
        return;
    }
    printf(
        "\nDashboard (opens once, within 5 minutes; \"drover dashboard\" prints another link):\n\n"
        "    ");
    print_url(s);
    printf("/#code=%s\n\n", code);
}

static void greet(serve *s)
{
    printf("drover %s listens on ", DROVER_VERSION);
    print_url(s);
    printf(", data in %.*s\n", STR_ARG(s->settings->folder));
    if (s->demo)
        demo_greet(stdout,
                   strchr(program_invocation_name, '/') ? program_invocation_name : "drover",
                   s->settings->folder_named ? s->settings->folder : STR_EMPTY);
    greet_dashboard(s);
    fflush(stdout);
}

static void close_parts(serve *s)
{
    s->demo = demo_close(s->demo);
    s->api.http = http_close(s->api.http);
    s->api.planner = planner_close(s->api.planner);
    s->api.jobs = jobs_close(s->api.jobs);
    stop_loop(s);
    uv_run(&s->loop, UV_RUN_DEFAULT);
    s->api.control = control_close(s->api.control);
    s->api.events = events_close(s->api.events);
    s->api.auth = auth_close(s->api.auth);
    store_close(s->store);
}

static bool run(serve *s, err *error)
{
    if (!check_settings(s, error) || !open_parts(s, error) || !write_address(s, error))
        return false;
    if (s->settings->demo) {
        s->demo = demo_open(&s->loop, s->api.control, error);
        if (!s->demo)
            return false;
    }
    start_loop(s);
    s->api.ready = true;
    greet(s);
    uv_run(&s->loop, UV_RUN_DEFAULT);
    return true;
}

bool serve_run(const serve_settings *settings, err *error)
{
    serve *s = mem_zalloc(sizeof *s);
    if (!s)
        return err_memory(error);
    s->settings = settings;
    s->texts = arena_new(0);
    bool good = s->texts || err_memory(error);
    if (good && uv_loop_init(&s->loop) != 0) {
        good = err_set(error, "an event loop cannot be made");
    } else if (good) {
        good = run(s, error);
        close_parts(s);
        uv_loop_close(&s->loop);
    }
    arena_free(s->texts);
    mem_free(s);
    return good;
}
