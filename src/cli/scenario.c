/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/scenario.h"

#include "base/duration.h"
#include "base/limits.h"
#include "base/moment.h"
#include "base/num.h"
#include "cli/kube_live.h"
#include "cli/output.h"
#include "cli/scenario_names.h"
#include "model/lint.h"

#define TARGETS_MAX 10000000

bool scenario_duration(str text, int64_t *ret_ms, err *error)
{
    int64_t ns;
    if (!duration_parse_days(text, &ns, error))
        return false;
    if (ns < 0)
        return err_set(error, "found \"%s\", allowed a duration that is not negative",
                       str_shown(text).text);
    *ret_ms = ns / DURATION_MILLISECOND;
    return true;
}

/* ---- settings ---- */

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000;
}

static bool read_start(const options *given, sim_settings *to, err *error)
{
    to->start_ms = now_ms();
    if (!options_given(given, "at"))
        return true;
    moment at;
    if (!moment_parse(options_text(given, "at", ""), &at, error))
        return err_wrap(error, "--at");
    to->start_ms = at.seconds * 1000;
    return true;
}

static bool read_settings(const options *given, sim_settings *to, err *error)
{
    *to = (sim_settings){.duration_ms = -1, .silent = options_given(given, "silent")};
    if (!read_start(given, to, error))
        return false;
    if (options_given(given, "until") &&
        !scenario_duration(options_text(given, "until", ""), &to->horizon_ms, error))
        return err_wrap(error, "--until");
    if (options_given(given, "until") && to->horizon_ms == 0)
        return err_set(error, "--until: found \"%s\", allowed more than no time",
                       str_shown(options_text(given, "until", "")).text);
    if (!options_given(given, "seed"))
        return true;
    int64_t seed;
    if (!num_parse(options_text(given, "seed", ""), &seed))
        return err_set(error, "--seed: found \"%s\", allowed a whole number",
                       str_shown(options_text(given, "seed", "")).text);
    to->seed = (uint64_t)seed;
    to->random = true;
    return true;
}

/* ---- made-up targets ---- */

static size_t count_of(str text, char wanted)
{
    size_t count = 0;
    for (size_t i = 0; i < text.len; i++)
        count += text.ptr[i] == wanted;
    return count;
}

static bool read_label(str text, label *ret, err *error)
{
    str rest = text;
    str key = str_cut(&rest, '=');
    if (!rest.ptr)
        return err_set(error, "found the label \"%s\", allowed KEY=VALUE", str_shown(text).text);
    if (!label_key_check(key, error) || !label_value_check(rest, error))
        return false;
    *ret = (label){key, rest};
    return true;
}

/* "N" or "N:k=v,k=v" */
static bool made_up(scenario *sc, target_kind kind, str text, err *error)
{
    str rest = text;
    str number = str_cut(&rest, ':');
    int64_t count;
    if (!num_parse(number, &count) || count < 0 || count > TARGETS_MAX)
        return err_set(error, "found \"%s\", allowed a number of targets up to %d",
                       str_shown(number).text, TARGETS_MAX);
    size_t len = 0;
    label *labels = ARENA_ARRAY(sc->arena, count_of(rest, ',') + 1, label);
    label_set set = {0};
    if (!labels)
        return err_memory(error);
    while (rest.ptr && rest.len > 0)
        if (!read_label(str_cut(&rest, ','), &labels[len++], error))
            return false;
    return label_set_sort(labels, len, &set, error) &&
           sim_add_targets(sc->sim, kind, (uint64_t)count, set, error);
}

static bool each(scenario *sc, const options *given, const char *name,
                 bool (*take)(scenario *sc, str text, err *error), err *error)
{
    size_t at = 0;
    for (str text; options_next(given, name, &at, &text);)
        if (!take(sc, text, error))
            return err_wrap(error, "--%s", name);
    return true;
}

static bool take_nodes(scenario *sc, str text, err *error)
{
    return made_up(sc, TARGET_NODE, text, error);
}

static bool take_clusters(scenario *sc, str text, err *error)
{
    return made_up(sc, TARGET_CLUSTER, text, error);
}

static bool take_resources(scenario *sc, str text, err *error)
{
    return made_up(sc, TARGET_RESOURCE, text, error);
}

/* ---- durations, failures, versions ---- */

static bool take_duration(scenario *sc, str text, err *error)
{
    str rest = text;
    str name = str_cut(&rest, '=');
    int64_t ms = 0;
    if (!scenario_duration(rest.ptr ? rest : text, &ms, error))
        return false;
    if (!rest.ptr)
        sim_set_default_duration(sc->sim, ms);
    return !rest.ptr || sim_set_duration(sc->sim, name, ms) || err_memory(error);
}

static bool take_fail(scenario *sc, str text, err *error)
{
    sim_failure f = sim_failure_of(text, false);
    return sim_add_failure(sc->sim, &f, error);
}

static bool take_fail_once(scenario *sc, str text, err *error)
{
    sim_failure f = sim_failure_of(text, true);
    return sim_add_failure(sc->sim, &f, error);
}

static bool take_offline(scenario *sc, str text, err *error)
{
    return sim_set_offline(sc->sim, text, error);
}

static bool take_from(scenario *sc, str text, err *error)
{
    str rest = text;
    str name = str_cut(&rest, '=');
    if (!rest.ptr)
        return sim_add_from(sc->sim, STR_EMPTY, text, error);
    return sim_add_from(sc->sim, name, rest, error);
}

/* ---- events ---- */

static void events_trouble(void *context, str path, const char *message)
{
    err_set(context, "%.*s: %s", STR_ARG(path), message);
}

static bool take_events(scenario *sc, str path, err *error)
{
    sc->event_files = files_new(events_trouble, error);
    if (!sc->event_files)
        return err_memory(error);
    if (!files_add(sc->event_files, path))
        return false;
    happening_reader reader = {sc->arena, sc->in.documents, sc->in.objects, sc->in.problems};
    for (size_t i = 0; i < files_count(sc->event_files); i++) {
        const file *f = files_at(sc->event_files, i);
        str rest = f->bytes;
        for (size_t number = 1; rest.len > 0; number++) {
            str line = str_trim(str_cut(&rest, '\n'));
            happening h;
            if (line.len == 0)
                continue;
            if (!happening_read(&reader, line, &h, error))
                return err_wrap(error, "%.*s:%zu", STR_ARG(f->name), number);
            if (!sim_add_happening(sc->sim, &h, error))
                return false;
        }
    }
    return true;
}

/* ---- all of it ---- */

/* Documents make up the fleet; of a live one they are what is applied first. */
static bool take_documents(scenario *sc, err *error)
{
    if (sc->alive && !live_enter(&sc->live, sc->sim, error))
        return false;
    for (size_t i = 0; i < sc->in.objects->len; i++) {
        const object *o = &sc->in.objects->at[i];
        happening applied = {.kind = HAPPEN_APPLY, .document = o};
        if (sc->alive ? !sim_add_happening(sc->sim, &applied, error)
                      : !sim_add_object(sc->sim, o, error))
            return false;
    }
    return true;
}

static bool take_all(scenario *sc, const options *given, err *error)
{
    return take_documents(sc, error) && each(sc, given, "nodes", take_nodes, error) &&
           each(sc, given, "clusters", take_clusters, error) &&
           each(sc, given, "resources", take_resources, error) &&
           each(sc, given, "events", take_events, error) &&
           scenario_names_check(sc, given, error) &&
           each(sc, given, "duration", take_duration, error) &&
           each(sc, given, "fail", take_fail, error) &&
           each(sc, given, "fail-once", take_fail_once, error) &&
           each(sc, given, "offline", take_offline, error) &&
           each(sc, given, "from", take_from, error);
}

/* ---- a live fleet ---- */

bool scenario_live(const options *given)
{
    static const char *const made_up[] = {"file", "nodes", "clusters", "resources"};
    if (options_given(given, "server"))
        return true;
    for (size_t i = 0; i < sizeof made_up / sizeof made_up[0]; i++)
        if (options_given(given, made_up[i]))
            return false;
    return client_known(given);
}

static exit_status read_server(scenario *sc, const options *given)
{
    exit_status status = STATUS_DONE;
    sc->client = client_open(given, &status);
    return sc->client ? client_text(sc->client, STR("/api/v1/state"), &sc->text) : status;
}

static exit_status read_cluster(scenario *sc, const options *given)
{
    err error = {0};
    kube_session *session = kube_session_open(given, &error);
    bool read = session && kube_live_read(session, &sc->text, &error);
    kube_session_close(session);
    if (read)
        return STATUS_DONE;
    fail("%s", error.text);
    return STATUS_UNREACHABLE;
}

static exit_status read_live(scenario *sc, const verb *c, const options *given)
{
    static const char *const senseless[] = {"nodes", "clusters", "resources", "from", "at"};
    err error;
    for (size_t i = 0; i < sizeof senseless / sizeof senseless[0]; i++)
        if (options_given(given, senseless[i]))
            return usage_error(c, "--%s makes no sense with a live fleet", senseless[i]);
    sc->alive = true;
    return live_read(&sc->live, buf_str(&sc->text), &error) ? STATUS_DONE : fail("%s", error.text);
}

static exit_status read_fleet(scenario *sc, const verb *c, const options *given)
{
    bool of_cluster = options_given(given, "kubeconfig") || options_given(given, "context");
    if (!of_cluster && !scenario_live(given))
        return input_read(&sc->in, c, given);
    exit_status status = of_cluster ? read_cluster(sc, given) : read_server(sc, given);
    if (status == STATUS_DONE)
        status = read_live(sc, c, given);
    return status == STATUS_DONE ? input_read_some(&sc->in, given) : status;
}

/* What was read becomes a simulation. Documents that validate refuses are refused here, too: what
 * waits for itself never moves, whatever a plan would say of it. Of a live fleet the server knows
 * the other documents, and refuses them when they are applied. */
static exit_status make_sim(scenario *sc, const verb *c, const options *given, bool tell)
{
    if (!sc->alive)
        lint_planned(sc->in.objects, sc->in.problems);
    if (input_bad(&sc->in)) {
        input_report(&sc->in);
        return STATUS_NO;
    }
    err error = {0};
    sim_settings settings;
    if (!read_settings(given, &settings, &error))
        return usage_error(c, "%s", error.text);
    settings.tell = tell;
    if (sc->alive)
        settings.start_ms = sc->live.head.now_ms;
    sc->arena = arena_new(0);
    sc->sim = sc->arena ? sim_new(&settings, &error) : NULL;
    if (!sc->sim)
        return fail("out of memory");
    if (take_all(sc, given, &error))
        return STATUS_DONE;
    if (input_bad(&sc->in))
        input_report(&sc->in);
    return usage_error(c, "%s", error.text);
}

exit_status scenario_read(scenario *sc, const verb *c, const options *given, bool tell)
{
    *sc = (scenario){.text = BUF(LIMIT_TEXT_BYTES)};
    exit_status status = read_fleet(sc, c, given);
    return status == STATUS_DONE ? make_sim(sc, c, given, tell) : status;
}

exit_status scenario_read_cluster(scenario *sc, const verb *c, const options *given)
{
    *sc = (scenario){.text = BUF(LIMIT_TEXT_BYTES)};
    exit_status status = read_cluster(sc, given);
    if (status == STATUS_DONE)
        status = read_live(sc, c, given);
    if (status == STATUS_DONE)
        status = input_read_some(&sc->in, given);
    return status == STATUS_DONE ? make_sim(sc, c, given, false) : status;
}

void scenario_done(scenario *sc)
{
    sc->sim = sim_free(sc->sim);
    sc->arena = arena_free(sc->arena);
    sc->event_files = files_free(sc->event_files);
    input_done(&sc->in);
    live_done(&sc->live);
    buf_done(&sc->text);
    sc->client = client_close(sc->client);
}
