/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster_agent/chart_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/vec.h"
#include "cluster_agent/chart_folder.h"
#include "engine/go_json.h"
#include "model/document.h"

#define FILES "files/"
#define FROM_FORM "from-%zu.yaml"
#define WORDS_MAX 64
#define READ_BYTES 65536
#define COMPLAINT_BYTES_MAX (1u << 20)
#define COMPLAINT_SHOWN_BYTES 900u
#define LOCKED "another operation (install/upgrade/rollback) is in progress"
#define NO_REVISION STR("has no 0 version")
#define NOT_FOUND "release: not found"
#define TOO_MUCH "the chart renders more than can be taken in"

extern char **environ;

typedef struct chart_job chart_job;

/* One helm after the other; UNLOCK and UNDO lead back to MAIN. */
#define CHART_STAGES(X)                                                                            \
    X(MAIN)   /* what was asked for */                                                             \
    X(SECOND) /* what it rendered; of a trial: the definitions that it has */                      \
    X(UNLOCK) /* rollback */                                                                       \
    X(UNDO)   /* uninstall: the first revision was never complete */
typedef enum chart_stage {
#define X(stage) CHART_##stage,
    CHART_STAGES(X)
#undef X
} chart_stage;
#define CHART_STAGE_COUNT (CHART_UNDO + 1)

typedef struct chart_pipe {
    uv_pipe_t pipe;
    buf text;
    bool open;
} chart_pipe;

/* Words of a command line; they are in the job's arena. */
typedef struct chart_words {
    char *at[WORDS_MAX + 1];
    size_t len;
    bool failed;
} chart_words;

struct chart_job {
    chart_runner *runner;
    chart_job *next;
    chart_handler handler;
    arena *arena;
    chart_folder folder;
    chart_words words[CHART_STAGE_COUNT]; /* no words: there is no such stage */
    str user;                             /* whose rights count; empty: those of the kubeconfig */
    str kubeconfig;
    buf rendered; /* by a trial */
    chart_stage stage;
    bool installs, tries, removes, unlocked;
    uint64_t limit_ms;
    uv_process_t process;
    uv_timer_t timer;
    chart_pipe out, complaints;
    size_t handles; /* that are not closed yet */
    bool running, late;
    bool waits; /* it was told to, or is slow and there is room among those that wait */
    bool slow;
    int64_t status;
    char buffer[READ_BYTES];
};

struct chart_runner {
    uv_loop_t *loop;
    chart_place place;
    chart_job *jobs;  /* in the order they came */
    uint64_t born_ms; /* by the loop's clock */
    bool stopped;
};

/* ---- what helm says ---- */

/* In the order in which they are looked for. */
typedef struct chart_complaint {
    str part;
    step_outcome outcome;
} chart_complaint;

static const chart_complaint complaints_known[] = {
    {STR("cannot be imported into the current release"), OUTCOME_CONFLICT},
    {STR(LOCKED), OUTCOME_BUSY},
    /* A server, or the way to it, cannot now. */
    {STR("cluster unreachable"), OUTCOME_LATER},
    {STR("connection refused"), OUTCOME_LATER},
    {STR("connection reset by peer"), OUTCOME_LATER},
    {STR("connection lost"), OUTCOME_LATER},
    {STR("no route to host"), OUTCOME_LATER},
    {STR("i/o timeout"), OUTCOME_LATER},
    {STR("TLS handshake timeout"), OUTCOME_LATER},
    {STR("Client.Timeout exceeded"), OUTCOME_LATER},
    {STR("unexpected EOF"), OUTCOME_LATER},
    {STR("etcdserver:"), OUTCOME_LATER},
    {STR("the server is currently unable to handle the request"), OUTCOME_LATER},
    {STR("the server was unable to return a response in the time"), OUTCOME_LATER},
    {STR("Too Many Requests"), OUTCOME_LATER},
    {STR("too many requests"), OUTCOME_LATER},
    {STR("Internal error occurred"), OUTCOME_LATER},
    {STR("the object has been modified"), OUTCOME_LATER},
    /* Only an edit helps. */
    {STR("YAML parse error"), OUTCOME_INVALID},
    {STR("error converting YAML"), OUTCOME_INVALID},
    {STR("error validating"), OUTCOME_INVALID},
    {STR("values don't meet the specifications"), OUTCOME_INVALID},
    {STR("timed out waiting"), OUTCOME_INVALID},
    {STR("context deadline exceeded"), OUTCOME_INVALID},
    {STR("chart requires kubeVersion"), OUTCOME_INVALID},
    {STR("field is immutable"), OUTCOME_INVALID},
    {STR("cannot patch"), OUTCOME_INVALID},
    {STR("has been rolled back due to atomic"), OUTCOME_INVALID},
    {STR("uninstalled due to atomic"), OUTCOME_INVALID},
    {STR("unknown field"), OUTCOME_INVALID},
    {STR("parse error at"), OUTCOME_INVALID},
    {STR("execution error at"), OUTCOME_INVALID},
    {STR("error calling"), OUTCOME_INVALID},
    {STR("no matches for kind"), OUTCOME_INVALID},
    {STR("release name is invalid"), OUTCOME_INVALID},
};

step_outcome chart_judge(str complaint)
{
    for (size_t i = 0; i < sizeof complaints_known / sizeof complaints_known[0]; i++)
        if (str_find(complaint, complaints_known[i].part) != SIZE_MAX)
            return complaints_known[i].outcome;
    return OUTCOME_REFUSED;
}

/* ---- words ---- */

static void word(chart_job *j, chart_words *w, str text)
{
    str kept = arena_str(j->arena, text);
    if (!kept.ptr || w->len == WORDS_MAX) {
        w->failed = true;
        return;
    }
    w->at[w->len++] = (char *)(uintptr_t)kept.ptr;
}

static void flag(chart_job *j, chart_words *w, const char *name, str value)
{
    if (!value.ptr || value.len == 0)
        return;
    word(j, w, str_of(name));
    word(j, w, value);
}

static void flag_if(chart_job *j, chart_words *w, bool yes, const char *name)
{
    if (yes)
        word(j, w, str_of(name));
}

static void begin_words(chart_job *j, chart_words *w, const char *verb)
{
    word(j, w, str_of(j->runner->place.program));
    word(j, w, str_of(verb));
}

/* Its groups as well, as the API server knows them: helm would send along those for which the
 * kubeconfig, or a variable of helm's, has the agent itself act. */
static void account_words(chart_job *j, chart_words *w)
{
    str rest = str_part(j->user, STR("system:serviceaccount:").len, SIZE_MAX);
    str space = str_cut(&rest, ':');
    flag(j, w, "--kube-as-user", j->user);
    flag(j, w, "--kube-as-group", STR("system:authenticated"));
    flag(j, w, "--kube-as-group", STR("system:serviceaccounts"));
    flag(j, w, "--kube-as-group",
         arena_printf(j->arena, "system:serviceaccounts:%.*s", STR_ARG(space)));
}

static void end_words(chart_job *j, chart_words *w, const manifest *m)
{
    flag(j, w, "--namespace", m->release_namespace);
    flag(j, w, "--kube-context", j->runner->place.context);
    if (j->user.len > 0)
        account_words(j, w);
}

static str in_folder(chart_job *j, const char *below, str name)
{
    return arena_printf(j->arena, "%s/%s%.*s", j->folder.path, below, STR_ARG(name));
}

/* Helm takes a list there, parted by commas, which names of files may have. */
static void values_flag(chart_job *j, chart_words *w, str path)
{
    scoped(buf_done) buf quoted = BUF(LIMIT_PATH_BYTES * 2);
    buf_addc(&quoted, '"');
    for (size_t i = 0; i < path.len; i++) {
        if (path.ptr[i] == '"')
            buf_addc(&quoted, '"');
        buf_addc(&quoted, path.ptr[i]);
    }
    buf_addc(&quoted, '"');
    w->failed |= quoted.failed || !path.ptr;
    flag(j, w, "--values", buf_str(&quoted));
}

/* Where a chart is that is no folder of the Bundle. */
static void source_words(chart_job *j, chart_words *w, const chart_order *c)
{
    if (c->folder.ptr)
        return;
    flag(j, w, "--repo", c->repo);
    flag(j, w, "--version", c->version);
    flag_if(j, w, c->skip_tls_verify, "--insecure-skip-tls-verify");
}

/* Comes last: what the hub says is the name of a chart is none of helm's flags. */
static void chart_word(chart_job *j, chart_words *w, const chart_order *c)
{
    word(j, w, c->folder.ptr ? in_folder(j, FILES, c->folder) : c->name);
}

static void install_words(chart_job *j, const manifest *m)
{
    chart_words *w = &j->words[CHART_MAIN];
    const chart_order *c = &m->chart;
    begin_words(j, w, "upgrade");
    word(j, w, STR("--install"));
    end_words(j, w, m);
    flag_if(j, w, m->create_namespace, "--create-namespace");
    source_words(j, w, c);
    for (size_t i = 0; i < c->values_files.len; i++)
        values_flag(j, w, in_folder(j, FILES, c->values_files.at[i]));
    values_flag(j, w, in_folder(j, "", STR("values.json")));
    for (size_t i = 0; i < c->values_from.len; i++)
        values_flag(j, w, arena_printf(j->arena, "%s/" FROM_FORM, j->folder.path, i));
    flag(j, w, "--history-max",
         arena_printf(j->arena, "%lld",
                      (long long)(c->max_history > 0 ? c->max_history : CHART_HISTORY_MAX)));
    if (c->timeout_s > 0) {
        word(j, w, STR("--wait"));
        flag(j, w, "--timeout", arena_printf(j->arena, "%llds", (long long)c->timeout_s));
    }
    flag_if(j, w, c->atomic, "--atomic");
    flag_if(j, w, c->force, "--force");
    flag_if(j, w, c->take_ownership || j->tries, "--take-ownership"); /* a trial tells all */
    flag_if(j, w, c->wait_for_jobs, "--wait-for-jobs");
    flag_if(j, w, !c->disable_dns, "--enable-dns");
    flag_if(j, w, c->skip_schema_validation, "--skip-schema-validation");
    flag_if(j, w, j->tries, "--dry-run=server");
    flag_if(j, w, j->tries, "--output=json");
    flag_if(j, w, m->confined, "--skip-crds"); /* it has none, or was refused */
    word(j, w, STR("--"));
    word(j, w, m->release);
    chart_word(j, w, c);
}

/* What a trial does not tell of: the folders "crds" of the chart and of those that it depends on.
 */
static void definitions_words(chart_job *j, chart_words *w, const manifest *m)
{
    begin_words(j, w, "show");
    word(j, w, STR("crds"));
    end_words(j, w, m);
    source_words(j, w, &m->chart);
    word(j, w, STR("--"));
    chart_word(j, w, &m->chart);
}

static void read_words(chart_job *j, chart_words *w, const manifest *m)
{
    begin_words(j, w, "get");
    word(j, w, STR("manifest"));
    word(j, w, m->release);
    end_words(j, w, m);
}

static void remove_words(chart_job *j, chart_words *w, const manifest *m)
{
    begin_words(j, w, "uninstall");
    word(j, w, m->release);
    end_words(j, w, m);
}

static void unlock_words(chart_job *j, chart_words *w, const manifest *m)
{
    begin_words(j, w, "rollback");
    word(j, w, m->release);
    end_words(j, w, m);
}

static bool make_words(chart_job *j, step_kind kind, const manifest *m, err *error)
{
    if (kind == STEP_READ_CHART) {
        read_words(j, &j->words[CHART_MAIN], m);
    } else if (kind == STEP_REMOVE_CHART) {
        remove_words(j, &j->words[CHART_MAIN], m);
    } else {
        install_words(j, m);
        if (j->tries)
            definitions_words(j, &j->words[CHART_SECOND], m);
        else
            read_words(j, &j->words[CHART_SECOND], m);
        unlock_words(j, &j->words[CHART_UNLOCK], m);
        remove_words(j, &j->words[CHART_UNDO], m);
    }
    for (size_t i = 0; i < CHART_STAGE_COUNT; i++)
        if (j->words[i].failed)
            return err_set(error, "too many words for helm, or no memory");
    return true;
}

/* ---- the folder ---- */

/* Names come from the hub: nothing may be written outside the folder. */
static bool is_inside(str name)
{
    if (name.len == 0 || name.ptr[0] == '/' || memchr(name.ptr, '\0', name.len))
        return false;
    for (str rest = name; rest.ptr;) {
        str part = str_cut(&rest, '/');
        if (part.len == 0 || str_eq(part, STR("..")) || str_eq(part, STR(".")))
            return false;
    }
    return true;
}

/* Where the cluster is, for a helm that acts on somebody's behalf: by itself it finds a pod's
 * account only where it is told nothing at all. */
static bool fill_config(chart_job *j, err *error)
{
    const chart_place *at = &j->runner->place;
    j->kubeconfig = at->kubeconfig;
    if (at->config.len == 0)
        return true;
    j->kubeconfig = in_folder(j, "", STR("kubeconfig"));
    return j->kubeconfig.ptr ? chart_folder_write(&j->folder, STR("kubeconfig"), at->config, error)
                             : err_memory(error);
}

static bool fill_folder(chart_job *j, const manifest *m, err *error)
{
    if (!chart_folder_make(&j->folder, error) || !fill_config(j, error))
        return false;
    if (!j->installs)
        return true;
    str values = m->chart.values.len > 0 ? m->chart.values : STR("{}");
    if (!chart_folder_write(&j->folder, STR("values.json"), values, error))
        return false;
    for (size_t i = 0; i < m->chart.values_from.len; i++) {
        str path = arena_printf(j->arena, FROM_FORM, i);
        if (!path.ptr)
            return err_memory(error);
        if (!chart_folder_write(&j->folder, path, m->chart.values_from.at[i], error))
            return false;
    }
    for (size_t i = 0; i < m->files.len; i++) {
        str name = m->files.at[i].name;
        if (!is_inside(name))
            return err_set(error, "found a file \"%s\", which is no path inside the bundle",
                           str_shown(name).text);
        str path = arena_printf(j->arena, FILES "%.*s", STR_ARG(name));
        if (!path.ptr)
            return err_memory(error);
        if (!chart_folder_write(&j->folder, path, m->files.at[i].bytes, error))
            return false;
    }
    return true;
}

/* ---- one process ---- */

static void job_free(chart_job *j)
{
    chart_folder_remove(&j->folder);
    buf_done(&j->out.text);
    buf_done(&j->complaints.text);
    buf_done(&j->rendered);
    arena_free(j->arena);
    mem_free(j);
}

static void run_waiting(chart_runner *r);
static bool spawn(chart_job *j, err *error);

/* What helm would install: the objects of the release that it only tried, and its hooks, which make
 * objects as well. False without memory, and if there is no such release. The rest, which is the
 * chart itself, is given back. */
static bool keep_rendered(chart_job *j)
{
    scoped(arena_cleanup) arena *reading = arena_new(0);
    str all = buf_str(&j->out.text);
    yyjson_val *release = reading ? json_parse_within(reading, all, all.len, NULL) : NULL, *one;
    str objects = go_str(go_member(release, STR("manifest")));
    size_t i, max;
    buf_done(&j->out.text);
    if (!objects.ptr)
        return false;
    buf_add(&j->rendered, objects);
    yyjson_arr_foreach(go_member(release, STR("hooks")), i, max, one)
    {
        buf_addz(&j->rendered, "\n---\n");
        buf_add(&j->rendered, object_text(one, STR("manifest")));
    }
    return !j->rendered.failed;
}

static void job_answer(chart_job *j, step_outcome outcome, str message)
{
    chart_runner *r = j->runner;
    chart_job **link = &r->jobs;
    while (*link != j)
        link = &(*link)->next;
    *link = j->next;
    str out = buf_str(&j->out.text);
    step_answer answer = {.outcome = outcome, .text = STR_EMPTY, .message = message};
    if (outcome == OUTCOME_OK) {
        answer.text = j->tries ? buf_str(&j->rendered) : out;
        answer.definitions = j->tries && str_trim(out).len > 0;
    }
    if (!r->stopped)
        j->handler.done(j->handler.context, &answer);
    job_free(j);
    if (!r->stopped)
        run_waiting(r);
    else if (!r->jobs)
        mem_free(r);
}

/* The end of what helm wrote says what is wrong. */
static str complaint_of(const chart_job *j)
{
    str all = str_trim(buf_str(&j->complaints.text));
    return all.len > COMPLAINT_SHOWN_BYTES
               ? str_part(all, all.len - COMPLAINT_SHOWN_BYTES, SIZE_MAX)
               : all;
}

static void go_on(chart_job *j, chart_stage stage)
{
    err error = {0};
    j->stage = stage;
    if (!spawn(j, &error))
        job_answer(j, OUTCOME_REFUSED, str_of(error.text));
}

/* Whether the lock that stops helm is of one that cannot be running any more: ours come one after
 * the other, and those of an earlier agent had their time. */
static bool may_unlock(const chart_job *j, str complaint)
{
    const chart_runner *r = j->runner;
    uint64_t patience = r->place.lock_ms > 0 ? r->place.lock_ms : j->limit_ms;
    return j->stage == CHART_MAIN && j->installs && !j->unlocked &&
           str_find(complaint, STR(LOCKED)) != SIZE_MAX && uv_now(r->loop) - r->born_ms >= patience;
}

/* Whether what is to be removed was not there. Helm has a flag for it, but with that no error is
 * one: it says that all is done, too, when it could not ask for the release. */
static bool has_nothing_to_remove(const chart_job *j, str complaint)
{
    return (j->removes || j->stage == CHART_UNDO) && str_ends(complaint, STR(NOT_FOUND)) &&
           str_find(complaint, STR("Release not loaded: ")) != SIZE_MAX;
}

/* The next helm after one that failed; false: there is none. */
static bool failed_on(chart_job *j, str complaint)
{
    bool undo = j->stage == CHART_UNLOCK && str_find(complaint, NO_REVISION) != SIZE_MAX;
    if (!undo && !may_unlock(j, complaint))
        return false;
    j->unlocked = true;
    go_on(j, undo ? CHART_UNDO : CHART_UNLOCK);
    return true;
}

static void ended(chart_job *j)
{
    j->running = false;
    str what = complaint_of(j);
    bool failed = j->status != 0 && !has_nothing_to_remove(j, what);
    if (j->runner->stopped) {
        job_answer(j, OUTCOME_LATER, STR_EMPTY);
    } else if (j->late) {
        job_answer(j, OUTCOME_REFUSED, STR("helm took too long and was ended"));
    } else if (failed) {
        if (!failed_on(j, what))
            job_answer(j, chart_judge(what),
                       what.len > 0 ? what : STR("helm failed without a word"));
    } else if (j->out.text.failed) {
        job_answer(j, OUTCOME_INVALID, STR(TOO_MUCH));
    } else if (j->stage == CHART_MAIN && j->tries && !keep_rendered(j)) {
        job_answer(j, j->rendered.full ? OUTCOME_INVALID : OUTCOME_REFUSED,
                   j->rendered.full ? STR(TOO_MUCH)
                                    : STR("what helm would install cannot be read"));
    } else if (j->stage == CHART_MAIN && j->words[CHART_SECOND].len > 0) {
        go_on(j, CHART_SECOND);
    } else if (j->stage == CHART_UNLOCK || j->stage == CHART_UNDO) {
        go_on(j, CHART_MAIN);
    } else {
        job_answer(j, OUTCOME_OK, STR_EMPTY);
    }
}

static void closed(uv_handle_t *handle)
{
    chart_job *j = handle->data;
    if (--j->handles == 0)
        ended(j);
}

static void close_pipe(chart_pipe *p)
{
    if (p->open)
        uv_close((uv_handle_t *)&p->pipe, closed);
    p->open = false;
}

static void give_buffer(uv_handle_t *handle, size_t wanted, uv_buf_t *ret)
{
    (void)wanted;
    chart_job *j = handle->data;
    *ret = uv_buf_init(j->buffer, sizeof j->buffer);
}

static void on_read(uv_stream_t *stream, ssize_t count, const uv_buf_t *bytes)
{
    chart_job *j = stream->data;
    chart_pipe *p = stream == (uv_stream_t *)&j->out.pipe ? &j->out : &j->complaints;
    if (count > 0)
        buf_add(&p->text, (str){bytes->base, (size_t)count});
    else if (count < 0)
        close_pipe(p);
}

static void on_end(uv_process_t *process, int64_t status, int number)
{
    chart_job *j = process->data;
    j->status = number != 0 ? -1 : status;
    if (j->late) { /* what it started may hold them open */
        close_pipe(&j->out);
        close_pipe(&j->complaints);
    }
    uv_close((uv_handle_t *)&j->timer, closed);
    uv_close((uv_handle_t *)process, closed);
}

static uint64_t quick_ms(const chart_job *j)
{
    uint64_t quick = j->runner->place.quick_ms > 0 ? j->runner->place.quick_ms : CHART_QUICK_MS;
    return quick < j->limit_ms ? quick : j->limit_ms;
}

static size_t waiting(const chart_runner *r)
{
    size_t count = 0;
    for (const chart_job *j = r->jobs; j; j = j->next)
        count += j->running && j->waits;
    return count;
}

/* Comes twice: when it is not quick any more, and when it took too long. */
static void on_limit(uv_timer_t *timer)
{
    chart_job *j = timer->data;
    if (!j->slow) {
        j->slow = true;
        uv_timer_start(timer, on_limit, j->limit_ms - quick_ms(j), 0);
        if (!j->runner->stopped)
            run_waiting(j->runner);
        return;
    }
    j->late = true;
    uv_process_kill(&j->process, SIGKILL);
}

/* Ours, with the cluster that is meant, and folders for helm that may be written to. */
static char **environment_of(chart_job *j)
{
    static const char *const homes[] = {"HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME"};
    size_t count = 0, at = 0;
    while (environ[count])
        count++;
    char **made = ARENA_ARRAY(j->arena, count + 5, char *);
    if (!made)
        return NULL;
    for (size_t i = 0; i < count; i++)
        if (strncmp(environ[i], "KUBECONFIG=", strlen("KUBECONFIG=")) != 0)
            made[at++] = environ[i];
    for (size_t i = 0; i < sizeof homes / sizeof homes[0]; i++)
        if (!getenv(homes[i]))
            made[at++] =
                (char *)(uintptr_t)arena_printf(j->arena, "%s=%s/helm", homes[i], j->folder.path)
                    .ptr;
    made[at++] =
        (char *)(uintptr_t)arena_printf(j->arena, "KUBECONFIG=%.*s", STR_ARG(j->kubeconfig)).ptr;
    return made;
}

static void open_pipe(chart_job *j, chart_pipe *p)
{
    uv_pipe_init(j->runner->loop, &p->pipe, 0);
    p->pipe.data = j;
    p->open = true;
    j->handles++;
    buf_clear(&p->text);
}

static bool spawn(chart_job *j, err *error)
{
    chart_words *w = &j->words[j->stage];
    uv_stdio_container_t files[] = {
        {.flags = UV_IGNORE},
        {.flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE, .data.stream = (uv_stream_t *)&j->out.pipe},
        {.flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE,
         .data.stream = (uv_stream_t *)&j->complaints.pipe},
        {.flags = UV_INHERIT_FD, .data.fd = j->folder.lock}}; /* it may outlive us */
    uv_process_options_t options = {.exit_cb = on_end,
                                    .file = w->at[0],
                                    .args = w->at,
                                    .env = environment_of(j),
                                    .stdio_count = sizeof files / sizeof files[0],
                                    .stdio = files};
    if (!options.env)
        return err_memory(error);
    j->handles = 0;
    open_pipe(j, &j->out);
    open_pipe(j, &j->complaints);
    uv_timer_init(j->runner->loop, &j->timer);
    j->timer.data = j->process.data = j;
    j->handles += 2;
    int code = uv_spawn(j->runner->loop, &j->process, &options);
    j->running = true;
    if (code != 0) { /* told when everything is closed */
        buf_addf(&j->complaints.text, "the program \"%s\" cannot be run: %s", w->at[0],
                 uv_strerror(code));
        j->status = -1;
        close_pipe(&j->out);
        close_pipe(&j->complaints);
        uv_close((uv_handle_t *)&j->timer, closed);
        uv_close((uv_handle_t *)&j->process, closed);
        return true;
    }
    j->slow = false;
    uv_timer_start(&j->timer, on_limit, quick_ms(j), 0);
    uv_read_start((uv_stream_t *)&j->out.pipe, give_buffer, on_read);
    uv_read_start((uv_stream_t *)&j->complaints.pipe, give_buffer, on_read);
    return true;
}

/* ---- all of them ---- */

/* Whoever is slow makes room, as long as there is some among those that wait. */
static void let_slow_wait(chart_runner *r)
{
    for (chart_job *j = r->jobs; j; j = j->next)
        if (j->running && j->slow && !j->waits && waiting(r) < CHART_WAITING_MAX)
            j->waits = true;
}

static bool may_start(const chart_runner *r, const chart_job *job)
{
    size_t working = 0;
    if (job->running)
        return false;
    if (job->waits)
        return waiting(r) < CHART_WAITING_MAX;
    for (const chart_job *j = r->jobs; j; j = j->next)
        working += j->running && !j->waits;
    return working < CHART_RUNNING_MAX;
}

static void run_waiting(chart_runner *r)
{
    err error;
    let_slow_wait(r);
    for (chart_job *j = r->jobs; j; j = j->next) {
        if (!may_start(r, j))
            continue;
        if (!spawn(j, &error)) {
            job_answer(j, OUTCOME_REFUSED, str_of(error.text));
            return; /* goes on from there */
        }
    }
}

chart_runner *chart_runner_new(uv_loop_t *loop, chart_place at)
{
    chart_runner *r = mem_zalloc(sizeof *r);
    chart_folders_sweep();
    if (r)
        *r = (chart_runner){.loop = loop, .place = at, .born_ms = uv_now(loop)};
    return r;
}

chart_runner *chart_runner_stop(chart_runner *r)
{
    if (!r)
        return NULL;
    r->stopped = true;
    for (chart_job *j = r->jobs, *next; j; j = next) {
        next = j->next;
        if (!j->running) {
            chart_job **link = &r->jobs;
            while (*link != j)
                link = &(*link)->next;
            *link = next;
            job_free(j);
            continue;
        }
        close_pipe(&j->out);
        close_pipe(&j->complaints);
        if (!uv_is_closing((uv_handle_t *)&j->process)) {
            uv_close((uv_handle_t *)&j->timer, closed);
            uv_close((uv_handle_t *)&j->process, closed);
        }
        chart_folder_leave(&j->folder); /* helm may still read it */
    }
    return r->jobs ? NULL : mem_free(r);
}

bool chart_runner_start(chart_runner *r, const step *s, chart_handler handler, err *error)
{
    chart_job *j = mem_zalloc(sizeof *j);
    if (!j)
        return err_memory(error);
    const manifest *m = s->chart;
    *j = (chart_job){.runner = r,
                     .handler = handler,
                     .arena = arena_new(0),
                     .installs = s->kind == STEP_INSTALL_CHART || s->kind == STEP_TRY_CHART,
                     .tries = s->kind == STEP_TRY_CHART,
                     .removes = s->kind == STEP_REMOVE_CHART,
                     .out.text = BUF(s->kind == STEP_TRY_CHART ? CHART_TRIED_BYTES_MAX
                                                               : MANIFEST_BYTES_MAX),
                     .rendered = BUF(MANIFEST_BYTES_MAX),
                     .complaints.text = BUF(COMPLAINT_BYTES_MAX)};
    int64_t limit =
        m->chart.timeout_s > 0 ? m->chart.timeout_s + CHART_LIMIT_MORE_S : CHART_LIMIT_S;
    j->limit_ms = (uint64_t)limit * 1000;
    j->waits = s->kind == STEP_INSTALL_CHART && (m->chart.timeout_s > 0 || m->chart.atomic);
    if (j->arena)
        j->user = arena_str(j->arena, s->user);
    bool good = j->user.ptr ? fill_folder(j, m, error) : err_memory(error);
    good = good && make_words(j, s->kind, m, error);
    if (!good) {
        job_free(j);
        return false;
    }
    chart_job **link = &r->jobs;
    while (*link)
        link = &(*link)->next;
    *link = j;
    run_waiting(r);
    return true;
}
