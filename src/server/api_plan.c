/* SPDX-License-Identifier: Apache-2.0 */
/* What the live fleet will do: a plan made here, or all that a plan needs, for the command line. */
#include "base/duration.h"
#include "server/api.h"
#include "server/api_shapes.h"
#include "server/planner.h"

/* ---- what is wished, checked before the copy is made ---- */

static bool duration_of(const char *what, str text, int64_t *ret_ms, err *error)
{
    int64_t ns;
    if (!duration_parse_days(text, &ns, error))
        return err_wrap(error, "%s", what);
    if (ns < 0)
        return err_set(error, "%s: found \"%s\", allowed a duration that is not negative", what,
                       str_shown(text).text);
    *ret_ms = ns / DURATION_MILLISECOND;
    return true;
}

static bool settings_of(const plan_input *in, int64_t start_ms, sim_settings *ret, err *error)
{
    *ret = (sim_settings){.duration_ms = -1, .start_ms = start_ms};
    if (in->duration.len > 0 && !duration_of("duration", in->duration, &ret->duration_ms, error))
        return false;
    if (in->until.len > 0 && !duration_of("until", in->until, &ret->horizon_ms, error))
        return false;
    int64_t unused;
    for (size_t i = 0; i < in->durations.len; i++)
        if (!duration_of("durations", in->durations.at[i].value, &unused, error))
            return false;
    return true;
}

static bool failures_known(const control *c, str_list listed, err *error)
{
    for (size_t i = 0; i < listed.len; i++) {
        sim_failure f = sim_failure_of(listed.at[i], false);
        if (!control_object(c, KIND_RESOURCE, f.target))
            return err_set(error, "found \"%s\", allowed the name of a resource",
                           str_shown(f.target).text);
    }
    return true;
}

/* ---- in the copy ---- */

static bool add_failures(sim *s, str_list listed, bool once, err *error)
{
    for (size_t i = 0; i < listed.len; i++) {
        sim_failure f = sim_failure_of(listed.at[i], once);
        if (!sim_add_failure(s, &f, error))
            return false;
    }
    return true;
}

/* They were checked; what is made of them lives as long as the copy does. */
static bool apply_documents(sim *s, str text, err *error)
{
    problems *found = problems_new();
    document_set *set = document_set_new();
    object_list *objects = objects_new();
    bool good = (found && set && objects) || err_memory(error);
    good = good && ((documents_read(set, STR("documents"), text, found) &&
                     objects_read(objects, set, found)) ||
                    err_set(error, "the documents cannot be read again"));
    for (size_t i = 0; good && i < objects->len; i++) {
        happening h = {.kind = HAPPEN_APPLY, .document = &objects->at[i]};
        good = sim_add_happening(s, &h, error);
    }
    return good;
}

typedef struct live_plan {
    const control *control;
    const plan_input *input;
} live_plan;

static bool arrange(void *context, sim *s, arena *a, err *error)
{
    const live_plan *l = context;
    const plan_input *in = l->input;
    if (!control_live(l->control, s, a, error))
        return false;
    if (in->documents.len > 0 && !apply_documents(s, in->documents, error))
        return false;
    for (size_t i = 0; i < in->durations.len; i++) {
        int64_t ms = 0;
        if (!duration_of("durations", in->durations.at[i].value, &ms, error) ||
            !(sim_set_duration(s, in->durations.at[i].key, ms) || err_memory(error)))
            return false;
    }
    for (size_t i = 0; i < in->publish.len; i++) {
        happening h = {.kind = HAPPEN_PUBLISH,
                       .name = in->publish.at[i].deployment,
                       .version = in->publish.at[i].tag};
        if (!sim_add_happening(s, &h, error))
            return false;
    }
    return add_failures(s, in->fail, false, error) && add_failures(s, in->fail_once, true, error);
}

/* ---- the operations ---- */

/* As an apply that changes nothing: what it would refuse is refused here, too. */
static bool documents_good(call *c, str text)
{
    err error = {.text = ""};
    problems *found = problems_new();
    apply_request request = {.who = c->caller.name,
                             .file = STR("documents"),
                             .bytes = text,
                             .dry_run = true,
                             .expected = APPLY_ANY};
    apply_answer answer = {.arena = c->request->arena, .found = found};
    bool good = found && control_apply(c->api->control, &request, c->now_ms, &answer, &error);
    if (!good && found && problems_errors(found) > 0)
        api_problems(c, 422, found);
    else if (!good)
        api_fail(c, 422, NULL, "%s", error.text[0] ? error.text : "memory ran out");
    problems_free(found);
    return good;
}

static bool engine_there(call *c)
{
    if (control_engine(c->api->control))
        return true;
    api_fail(c, 503, NULL, "the engine is being rebuilt after a failure of the store");
    return false;
}

void run_plan(call *c)
{
    err error = {.text = ""};
    control *plane = c->api->control;
    plan_input given = {.duration = api_text(c, "duration"), .until = api_text(c, "until")};
    plan_input *in = c->input ? c->input : &given;
    live_plan live = {plane, in};
    plan_request request = {.server = c->api->http, .arrange = arrange, .context = &live};
    if (!engine_there(c))
        return;
    bool good = settings_of(in, control_now_ms(plane, c->now_ms), &request.settings, &error) &&
                failures_known(plane, in->fail, &error) &&
                failures_known(plane, in->fail_once, &error);
    for (size_t i = 0; good && i < in->publish.len; i++)
        good = control_object(plane, KIND_DEPLOYMENT, in->publish.at[i].deployment) ||
               err_set(&error, "there is no Deployment \"%s\"",
                       str_shown(in->publish.at[i].deployment).text);
    if (!good) {
        api_fail(c, 422, NULL, "%s", error.text);
        return;
    }
    if (in->documents.len > 0 && !documents_good(c, in->documents))
        return;
    if (!planner_start(c->api->planner, &request, &c->reply->source, &error))
        api_fail(c, 503, NULL, "%s", error.text);
}

void run_state(call *c)
{
    if (!engine_there(c))
        return;
    c->reply->type = "text/plain; charset=utf-8";
    if (!control_state(c->api->control, c->now_ms, api_out(c)))
        api_fail(c, 503, NULL, "memory ran out");
}
