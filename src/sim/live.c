/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/live.h"

#include "base/limits.h"
#include "model/json.h"

#define LIVE_FORMAT 1

static const char *const roles[] = {
#define X(role, text) text,
    JOB_ROLES(X)
#undef X
};

/* ---- out ---- */

void live_write_head(buf *out, const live_head *head)
{
    buf_addf(out, "{\"format\":%d,\"nowMs\":%lld,\"documents\":%lld,\"jobs\":%lld}\n", LIVE_FORMAT,
             (long long)head->now_ms, (long long)head->documents, (long long)head->jobs);
}

static void add_text(buf *out, const char *key, str value)
{
    buf_addf(out, "\"%s\":", key);
    buf_add_json(out, value);
    buf_addc(out, ',');
}

void live_write_job(buf *out, const sim_running *job)
{
    buf_addc(out, '{');
    add_text(out, "deployment", job->deployment);
    add_text(out, "environment", job->environment);
    add_text(out, "resource", job->resource);
    add_text(out, "version", job->version);
    add_text(out, "group", job->group);
    buf_addf(out, "\"role\":\"%s\",\"number\":%lld,\"sinceMs\":%lld}\n", roles[job->role],
             (long long)job->number, (long long)job->since_ms);
}

/* ---- in ---- */

static bool number_of(yyjson_val *value, const char *key, int64_t *ret)
{
    yyjson_val *v = yyjson_obj_get(value, key);
    *ret = yyjson_get_sint(v);
    return yyjson_is_int(v);
}

static bool read_head(live *l, str line, err *error)
{
    int64_t format;
    yyjson_val *head = json_parse(l->arena, line, error);
    if (!head)
        return false;
    return (number_of(head, "format", &format) && format == LIVE_FORMAT &&
            number_of(head, "nowMs", &l->head.now_ms) &&
            number_of(head, "documents", &l->head.documents) &&
            number_of(head, "jobs", &l->head.jobs) && l->head.jobs >= 0 &&
            l->head.jobs < (int64_t)LIMIT_TEXT_BYTES) ||
           err_set(error, "found a form of state that this program does not know");
}

static bool read_documents(live *l, str *text, err *error)
{
    problems *found = problems_new();
    bool good = found || err_memory(error);
    for (int64_t i = 0; good && i < l->head.documents; i++)
        good = documents_read_as(l->set, STR("state"), str_cut(text, '\n'), FORMAT_JSON, found);
    good = good && objects_read(l->objects, l->set, found);
    if (!good && found)
        err_set(error, "a document of the live fleet cannot be read");
    problems_free(found);
    return good;
}

static bool read_job(const live *l, str line, sim_running *ret, err *error)
{
    yyjson_val *job = json_parse(l->arena, line, error);
    if (!job)
        return false;
    *ret = (sim_running){.deployment = json_text_of(job, "deployment"),
                         .environment = json_text_of(job, "environment"),
                         .resource = json_text_of(job, "resource"),
                         .version = json_text_of(job, "version"),
                         .group = json_text_of(job, "group")};
    str role = json_text_of(job, "role");
    for (size_t i = 0; i < sizeof roles / sizeof roles[0]; i++)
        if (str_eq(role, str_of(roles[i])))
            ret->role = (job_role)i;
    return (number_of(job, "number", &ret->number) && number_of(job, "sinceMs", &ret->since_ms)) ||
           err_set(error, "found a job without a number");
}

bool live_read(live *l, str text, err *error)
{
    *l = (live){.arena = arena_new(0), .set = document_set_new(), .objects = objects_new()};
    if (!l->arena || !l->set || !l->objects)
        return err_memory(error);
    if (!read_head(l, str_cut(&text, '\n'), error) || !read_documents(l, &text, error))
        return false;
    l->jobs = ARENA_ARRAY(l->arena, (size_t)l->head.jobs + 1, sim_running);
    if (!l->jobs)
        return err_memory(error);
    for (int64_t i = 0; i < l->head.jobs; i++)
        if (!read_job(l, str_cut(&text, '\n'), &l->jobs[i], error))
            return false;
    l->saved = text.ptr ? text : STR_EMPTY;
    return true;
}

void live_done(live *l)
{
    l->objects = objects_free(l->objects);
    l->set = document_set_free(l->set);
    l->arena = arena_free(l->arena);
}

bool live_enter(const live *l, sim *s, err *error)
{
    for (size_t i = 0; i < l->objects->len; i++)
        if (!sim_add_object(s, &l->objects->at[i], error))
            return false;
    sim_set_live(s, l->saved, l->jobs, (size_t)l->head.jobs);
    return true;
}
