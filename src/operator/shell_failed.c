/* SPDX-License-Identifier: Apache-2.0 */
/* Failed Jobs that stay for their logs: those that are too many, or of no more interest, go. */
#include <stdio.h>

#include "base/log.h"
#include "operator/shell_internal.h"

static failed_job *find(const node_shell *s, str name)
{
    for (size_t i = 0; i < s->failed.all.len; i++)
        if (str_eq(str_of(s->failed.all.at[i]->name), name))
            return s->failed.all.at[i];
    return NULL;
}

/* What was not deleted is tried again with the next Job of its Skyhook that fails. */
static void deleted(node_shell *s, const shell_ticket *t, const write_outcome *how,
                    yyjson_val *json)
{
    (void)json;
    failed_job *j = find(s, str_of(t->job));
    if (how->kind == WRITE_DONE || how->kind == WRITE_GONE)
        return; /* the watch tells */
    log_line(LOG_WARN, "failed Job %s stays: %s", t->job, how->message);
    if (j)
        j->goes = false;
}

static bool send_delete(node_shell *s, failed_job *j)
{
    char collection[LIMIT_NAME_BYTES + 64];
    snprintf(collection, sizeof collection, "/apis/batch/v1/namespaces/%.*s/jobs",
             STR_ARG(s->settings.job.namespace_));
    kube_write w = {.verb = WRITE_DELETE,
                    .collection = str_of(collection),
                    .name = str_of(j->name),
                    .uid = str_of(j->uid)};
    j->goes = shell_send(s, &w, (shell_ticket){.done = deleted, .job = j->name});
    s->counts.others += j->goes;
    return j->goes;
}

void failed_after(node_shell *s, const job_key *succeeded)
{
    for (failed_job *j; (j = failed_jobs_after(&s->failed, succeeded));)
        if (!send_delete(s, j))
            return;
}

/* Whether a later attempt of its stage has succeeded, as the node remembers it: the package is done
 * with that stage, or in another one. */
static bool is_over(node_shell *s, const job_key *key, int64_t *ret_attempt)
{
    arena_place mark = arena_mark(s->scratch);
    node_view v;
    bool over = false;
    if (engine_node(s->engine, key->skyhook, key->node, s->scratch, &v))
        for (size_t i = 0; i < v.package_count; i++) {
            const package_view *p = &v.packages[i];
            if (!str_eq(p->name, key->package) || !str_eq(p->version, key->version) ||
                p->attempt <= key->attempt)
                continue;
            over = p->stage != key->stage || p->state == PACKAGE_COMPLETE;
            *ret_attempt = p->attempt;
        }
    arena_rewind(s->scratch, mark);
    return over;
}

void failed_seen(node_shell *s, yyjson_val *json, const job_key *key)
{
    yyjson_val *m = yyjson_obj_get(json, "metadata");
    const shell_change *c = shell_find_change(s, key->skyhook);
    if (!c || !str_eq(key->owner_uid, shell_text(c->uid)) || yyjson_obj_get(m, "deletionTimestamp"))
        return; /* it goes with its Skyhook, or by itself */
    if (!failed_jobs_add(&s->failed, read_text(m, "name"), read_text(m, "uid"), key,
                         read_time_ms(read_text(m, "creationTimestamp"))))
        shell_memory(s);
    if (!s->restored)
        return;
    job_key later = *key;
    if (is_over(s, key, &later.attempt))
        failed_after(s, &later);
    for (failed_job *j; (j = failed_jobs_beyond(&s->failed, key));)
        if (!send_delete(s, j))
            return;
}
