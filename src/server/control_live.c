/* SPDX-License-Identifier: Apache-2.0 */
/* The fleet as it is now, for a plan: by pointer into a simulation, or as text. Changes nothing. */
#include "base/mem.h"
#include "server/control_internal.h"
#include "sim/live.h"

static const char *const roles[] = {
#define X(role, text) text,
    JOB_ROLES(X)
#undef X
};

static sim_running running_of(const stored_job *j)
{
    sim_running r = {.deployment = j->deployment,
                     .environment = j->environment,
                     .resource = j->resource,
                     .version = j->version,
                     .group = j->group,
                     .number = j->number,
                     .since_ms = j->started_ms};
    for (size_t i = 0; i < sizeof roles / sizeof roles[0]; i++)
        if (str_eq(j->role, str_of(roles[i])))
            r.role = (job_role)i;
    return r;
}

const object *control_document(const control *c, size_t i)
{
    return &((const held_document *)(uintptr_t)c->documents.entries[i].value)->object;
}

int64_t control_now_ms(const control *c, int64_t clock_ms)
{
    return clock_ms > c->now_ms ? clock_ms : c->now_ms;
}

size_t control_documents(const control *c)
{
    return c->documents.len;
}

bool control_live(const control *c, sim *s, arena *a, err *error)
{
    buf saved = BUF(LIMIT_TEXT_BYTES);
    sim_running *jobs = ARENA_ARRAY(a, c->jobs.len + 1, sim_running);
    bool good = (jobs && engine_save(c->engine, &saved)) || err_memory(error);
    for (size_t i = 0; good && i < c->documents.len; i++)
        good = sim_add_object(s, control_document(c, i), error);
    for (size_t i = 0; good && i < c->jobs.len; i++)
        jobs[i] = running_of(&c->jobs.at[i]->job);
    str text = good ? arena_str(a, buf_str(&saved)) : STR_EMPTY;
    buf_done(&saved);
    if (good && !text.ptr)
        good = err_memory(error);
    if (good)
        sim_set_live(s, text, jobs, c->jobs.len);
    return good;
}

bool control_state(const control *c, int64_t now_ms, buf *out)
{
    live_head head = {.now_ms = control_now_ms(c, now_ms),
                      .documents = (int64_t)c->documents.len,
                      .jobs = (int64_t)c->jobs.len};
    live_write_head(out, &head);
    for (size_t i = 0; i < c->documents.len; i++) {
        object_write(control_document(c, i), out);
        buf_addc(out, '\n');
    }
    for (size_t i = 0; i < c->jobs.len; i++) {
        sim_running r = running_of(&c->jobs.at[i]->job);
        live_write_job(out, &r);
    }
    return engine_save(c->engine, out) && !out->failed;
}
