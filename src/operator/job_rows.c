/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs as rows of a table: name and state, a twentieth of the object. Most changes of a Job say no
 * more than that it is on its way, or that it succeeded; where there is more to know it is read. */
#include <stdio.h>

#include "kube/list_watch.h"
#include "operator/shell_internal.h"

/* What `kubectl get jobs -o wide` prints. The selector has the Job's uid. */
enum { CELL_NAME, CELL_STATE, CELL_SELECTOR = 7 };

static bool is_one_of(str text, str a, str b)
{
    return str_eq(text, a) || str_eq(text, b);
}

static bool row_read(node_shell *s, str name, bool failed);

/* Its end must not be missed: it is asked for until there is an answer. */
static void row_answered(node_shell *s, const shell_ticket *t, const write_outcome *how,
                         yyjson_val *json)
{
    shell_job *j = shell_find_job(s, str_of(t->job));
    if (t->gone)
        return;
    switch (how->kind) {
    case WRITE_DONE:
        if (json)
            jobs_seen(s, json);
        return;
    case WRITE_GONE: return; /* the watch tells */
    case WRITE_LATER:
    case WRITE_AMBIGUOUS:
        if (row_read(s, str_of(t->job), t->number))
            return;
        break;
    case WRITE_EXISTS:
    case WRITE_CONFLICT:
    case WRITE_REFUSED:
    case WRITE_BLOCKED:
    case WRITE_BARRED: break;
    }
    if (t->number && j && j->created && shell_is_present(s, &j->of.key))
        shell_job_fails(s, j, STR_EMPTY); /* for a reason that nobody lets us know */
}

static bool row_read(node_shell *s, str name, bool failed)
{
    char collection[LIMIT_NAME_BYTES + 64], job[LIMIT_NAME_BYTES + 1];
    snprintf(collection, sizeof collection, "/apis/batch/v1/namespaces/%.*s/jobs",
             STR_ARG(s->settings.job.namespace_));
    snprintf(job, sizeof job, "%.*s", STR_ARG(name));
    kube_write w = {.verb = WRITE_READ, .collection = str_of(collection), .name = str_of(job)};
    return shell_send(s, &w,
                      (shell_ticket){.done = row_answered, .job = job, .number = failed ? 1 : 0});
}

/* An answer that comes after its Job's end would be taken for a Job that runs. */
void job_row_gone(node_shell *s, str name)
{
    for (shell_ticket *t = s->tickets; t; t = t->next)
        t->gone |= t->done == row_answered && str_eq(str_of(t->job), name);
}

/* 0: it does not say. */
static uint64_t uid_of(yyjson_val *json)
{
    str pods_by = watch_row_cell(json, CELL_SELECTOR);
    str_cut(&pods_by, '=');
    return pods_by.len > 0 ? str_hash(pods_by) : 0;
}

/* Whether the row is about the very Job that is known. */
static bool is_known(const shell_job *j, yyjson_val *json)
{
    uint64_t uid = uid_of(json);
    return j && j->created && uid != 0 && j->uid == uid;
}

bool job_row_created(node_shell *s, shell_job *j, yyjson_val *json)
{
    uint64_t uid = uid_of(json);
    if (uid != 0)
        shell_job_made(s, j, uid);
    return uid != 0;
}

bool job_row_seen(node_shell *s, yyjson_val *json)
{
    str name = watch_row_cell(json, CELL_NAME), state = watch_row_cell(json, CELL_STATE);
    if (name.len == 0)
        return false;
    shell_job *j = shell_find_job(s, name);
    bool known = is_known(j, json);
    bool succeeded = is_one_of(state, STR("Complete"), STR("SuccessCriteriaMet"));
    bool failed = is_one_of(state, STR("Failed"), STR("FailureTarget"));
    if (known && succeeded && shell_is_present(s, &j->of.key)) {
        shell_job_succeeded(s, j);
        return true;
    }
    /* On its way; or failed, and its pod's word is waited for; or ours, and the answer to its
     * creation comes; or told before. */
    if ((known && !succeeded && (!failed || j->telling)) ||
        (j && !j->created && !succeeded && !failed) || (!j && succeeded))
        return true;
    row_read(s, name, failed);
    return true;
}
