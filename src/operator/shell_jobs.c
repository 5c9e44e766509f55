/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs as the API server shows them, and what their ends mean: facts. */
#include <stdio.h>

#include "base/log.h"
#include "base/mem.h"
#include "operator/shell_internal.h"

/* ---- jobs ---- */

shell_job *shell_find_job(const node_shell *s, str name)
{
    const uint64_t *at = strmap_get(&s->jobs, name);
    return at ? (shell_job *)(uintptr_t)*at : NULL;
}

shell_host *shell_find_host(const node_shell *s, str node_name)
{
    const uint64_t *at = strmap_get(&s->hosts, node_name);
    return at ? (shell_host *)(uintptr_t)*at : NULL;
}

static shell_host *host_of(node_shell *s, str node_name)
{
    shell_host *h = shell_find_host(s, node_name);
    if (h || !(h = mem_zalloc(sizeof *h + node_name.len + 1)))
        return h;
    if (node_name.len > 0)
        memcpy(h->name, node_name.ptr, node_name.len);
    if (strmap_put(&s->hosts, str_of(h->name), (uint64_t)(uintptr_t)h))
        return h;
    return mem_free(h);
}

void shell_attempt_done(node_shell *s, shell_attempt *a)
{
    shell_host *h = a->link ? shell_find_host(s, a->key.node) : NULL;
    if (h) {
        *a->link = a->next;
        if (a->next)
            a->next->link = a->link;
    }
    if (h && !h->first) {
        strmap_remove(&s->hosts, str_of(h->name));
        mem_free(h);
    }
    mem_free(a->texts);
    *a = (shell_attempt){0};
}

static bool attempt_join(node_shell *s, shell_attempt *a)
{
    shell_host *h = host_of(s, a->key.node);
    if (!h) {
        shell_memory(s);
        return false;
    }
    a->next = h->first;
    a->link = &h->first;
    if (a->next)
        a->next->link = &a->next;
    h->first = a;
    return true;
}

bool shell_attempt_keep(node_shell *s, const job_key *key, const shell_job *job, shell_attempt *ret)
{
    *ret = (shell_attempt){.key = *key, .job = job};
    str *const parts[] = {&ret->key.skyhook, &ret->key.package,   &ret->key.version,
                          &ret->key.node,    &ret->key.owner_uid, &ret->key.node_uid};
    size_t bytes = 1;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        bytes += parts[i]->len;
    char *at = ret->texts = mem_alloc(bytes);
    if (!at) {
        shell_memory(s);
        return false;
    }
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        if (parts[i]->len > 0)
            memcpy(at, parts[i]->ptr, parts[i]->len);
        *parts[i] = (str){at, parts[i]->len};
        at += parts[i]->len;
    }
    return attempt_join(s, ret);
}

static void job_free(node_shell *s, shell_job *j)
{
    for (size_t i = 0; j->telling && i < s->telling.len; i++)
        if (s->telling.at[i] == j)
            s->telling.at[i--] = s->telling.at[--s->telling.len];
    mem_free(j->name);
    shell_attempt_done(s, &j->of);
    mem_free(j);
}

static void job_drop(node_shell *s, shell_job *j)
{
    strmap_remove(&s->jobs, str_of(j->name));
    job_free(s, j);
    s->due = true;
}

shell_job *shell_job_new(node_shell *s, str name, const job_key *key)
{
    shell_job *j = mem_zalloc(sizeof *j);
    if (!j) {
        shell_memory(s);
        return NULL;
    }
    j->tell_ms = REASON_NEVER;
    j->name = shell_copy(s, name);
    if (shell_attempt_keep(s, key, j, &j->of) && !s->no_memory &&
        strmap_put(&s->jobs, str_of(j->name), (uint64_t)(uintptr_t)j))
        return j;
    shell_memory(s);
    job_free(s, j);
    return NULL;
}

static str stage_name(package_stage stage)
{
    static const str texts[] = {
#define X(name, text) STR(text),
        PACKAGE_STAGES(X)
#undef X
    };
    return texts[stage];
}

static void kept(node_shell *s, const shell_ticket *t, const write_outcome *how, yyjson_val *json)
{
    (void)s;
    (void)json;
    if (how->kind != WRITE_DONE && how->kind != WRITE_GONE)
        log_line(LOG_WARN, "Job %s is not kept for its logs: %s", t->job, how->message);
}

/* A failed Job stays for its logs. */
static void job_keep(node_shell *s, const shell_job *j)
{
    char collection[LIMIT_NAME_BYTES + 64];
    snprintf(collection, sizeof collection, "/apis/batch/v1/namespaces/%.*s/jobs",
             STR_ARG(s->settings.job.namespace_));
    kube_write w = {.verb = WRITE_MERGE,
                    .collection = str_of(collection),
                    .name = str_of(j->name),
                    .anyhow = true,
                    .body = STR(JOB_KEEP_PATCH)};
    s->counts.others += shell_send(s, &w, (shell_ticket){.done = kept, .job = j->name});
}

void shell_stage_tell(node_shell *s, const job_key *key, fact_stage how)
{
    how.change = key->skyhook;
    how.target = key->node;
    how.package = key->package;
    how.version = key->version;
    how.stage = stage_name(key->stage);
    how.attempt = key->attempt;
    fact f = {.kind = FACT_STAGE, .stage = how};
    shell_take(s, &f);
    s->due = true;
    shell_place *p = shell_find_place(s, key->skyhook, key->node);
    if (p)
        shell_look(s, p);
}

/* The engine's answer to its RUN; the Job is of no more interest then. */
void shell_job_tell(node_shell *s, shell_job *j, outcome how, str why)
{
    bool nothing_ran = how == OUTCOME_FAILED && j->nothing_ran;
    shell_stage_tell(s, &j->of.key,
                     (fact_stage){.outcome = how, .reason = why, .nothing_ran = nothing_ran});
    if (how == OUTCOME_FAILED && j->created)
        job_keep(s, j);
    if (how == OUTCOME_SUCCEEDED)
        failed_after(s, &j->of.key);
    job_drop(s, j);
}

static job_key key_of(const shell_place *p, const package_view *of)
{
    return (job_key){.skyhook = str_of(p->skyhook),
                     .package = of->name,
                     .version = of->version,
                     .stage = of->stage,
                     .node = str_of(p->node->name),
                     .attempt = of->attempt,
                     .owner_uid = p->change ? shell_text(p->change->uid) : STR_EMPTY,
                     .node_uid = shell_text(p->node->uid)};
}

void shell_stage_not_begun(node_shell *s, const shell_place *p, const package_view *of)
{
    job_key key = key_of(p, of);
    shell_stage_tell(s, &key, (fact_stage){.outcome = OUTCOME_LOST, .not_begun = true});
}

void shell_stage_failed(node_shell *s, const shell_place *p, const package_view *of, str why)
{
    job_key key = key_of(p, of);
    shell_stage_tell(s, &key,
                     (fact_stage){.outcome = OUTCOME_FAILED, .reason = why, .nothing_ran = true});
}

void shell_job_taken(node_shell *s, shell_job *j)
{
    shell_stage_tell(s, &j->of.key, (fact_stage){.outcome = OUTCOME_LOST, .not_begun = true});
    job_drop(s, j);
}

bool shell_attempt_has_job(const node_shell *s, const shell_place *p, const package_view *of)
{
    job_key key = key_of(p, of);
    const shell_host *h = shell_find_host(s, key.node);
    for (const shell_attempt *a = h ? h->first : NULL; a; a = a->next)
        if (a->job && job_key_equal(&a->key, &key))
            return true;
    return false;
}

void shell_job_forget(node_shell *s, shell_job *j)
{
    if (j)
        job_drop(s, j);
}

void shell_job_refused(node_shell *s, shell_job *j)
{
    /* An object that the server does not take can only be refused again. */
    j->nothing_ran = true;
    shell_job_tell(s, j, OUTCOME_FAILED, STR("JobRefused"));
}

static bool condition_holds(yyjson_val *json, const char *type, str *ret_reason)
{
    yyjson_arr_iter walk = yyjson_arr_iter_with(read_at(json, "status", "conditions"));
    for (yyjson_val *one; (one = yyjson_arr_iter_next(&walk));)
        if (str_eq(read_text(one, "type"), str_of(type)) &&
            str_eq(read_text(one, "status"), STR("True"))) {
            *ret_reason = read_text(one, "reason");
            return true;
        }
    return false;
}

void shell_job_succeeded(node_shell *s, shell_job *j)
{
    shell_job_tell(s, j, OUTCOME_SUCCEEDED, STR_EMPTY);
}

/* A pod's own word says more than that a Job may not try again. */
void shell_job_fails(node_shell *s, shell_job *j, str why)
{
    bool plain = str_eq(why, STR("BackoffLimitExceeded")) || why.len == 0;
    if (j->pod_reason[0] != '\0' && plain) {
        shell_job_tell(s, j, OUTCOME_FAILED, str_of(j->pod_reason));
    } else if (!plain) {
        shell_job_tell(s, j, OUTCOME_FAILED, why);
    } else if (j->tell_ms == REASON_NEVER) {
        j->tell_ms = s->now_ms + SHELL_POD_REASON_MS;
        j->telling = vec_push(&s->telling, j);
        if (!j->telling)
            shell_memory(s);
        pod_rows_ask(s, j);
        s->due = true;
    }
}

static void job_take(node_shell *s, shell_job *j, yyjson_val *json)
{
    str why = STR_EMPTY;
    j->created = true;
    if (condition_holds(json, "Complete", &why) ||
        condition_holds(json, "SuccessCriteriaMet", &why))
        shell_job_tell(s, j, OUTCOME_SUCCEEDED, STR_EMPTY);
    else if (condition_holds(json, "FailureTarget", &why) || condition_holds(json, "Failed", &why))
        shell_job_fails(s, j, why);
}

/* Its pod is gone or has ended, whatever came of it. */
static bool job_is_over(yyjson_val *json)
{
    str why = STR_EMPTY;
    return condition_holds(json, "Complete", &why) || condition_holds(json, "Failed", &why);
}

bool shell_is_present(node_shell *s, const job_key *key)
{
    const shell_change *c = shell_find_change(s, key->skyhook);
    const shell_node *n = shell_find_node(s, key->node);
    if (!c || !n || !str_eq(key->owner_uid, shell_text(c->uid)) ||
        !str_eq(key->node_uid, shell_text(n->uid)))
        return false;
    arena_place mark = arena_mark(s->scratch);
    node_view v;
    bool found = false;
    if (engine_node(s->engine, key->skyhook, key->node, s->scratch, &v))
        for (size_t i = 0; i < v.package_count; i++)
            found |= v.packages[i].running && v.packages[i].attempt == key->attempt &&
                     v.packages[i].stage == key->stage &&
                     str_eq(v.packages[i].name, key->package) &&
                     str_eq(v.packages[i].version, key->version);
    arena_rewind(s->scratch, mark);
    return found;
}

/* One that nobody waits for is kept in mind while it has not ended: nothing may run beside it. */
static void job_stray(node_shell *s, str name, const job_key *key, yyjson_val *json)
{
    shell_job *j = shell_find_job(s, name);
    if (j && !j->created)
        return; /* ours is being created: that it is taken is found by the answer */
    if (j && job_is_over(json)) {
        job_drop(s, j);
    } else if (!j && !job_is_over(json) && (j = shell_job_new(s, name, key))) {
        j->created = true;
        j->uid = str_hash(read_text(yyjson_obj_get(json, "metadata"), "uid"));
    }
    str why;
    if (condition_holds(json, "Failed", &why))
        failed_seen(s, json, key);
}

/* A pod that was seen before its Job counted for an earlier one, and may have held something up. */
static void job_meets_pods(node_shell *s, const shell_job *j)
{
    const shell_host *h = shell_find_host(s, j->of.key.node);
    for (const shell_attempt *a = h ? h->first : NULL; a; a = a->next)
        s->due |= a->pod && (a->pod->unread || a->pod->job_uid == j->uid);
}

void shell_job_made(node_shell *s, shell_job *j, uint64_t uid)
{
    j->created = true;
    j->uid = uid;
    job_meets_pods(s, j);
}

/* Where a node's record was lost its attempts are counted anew: then an old Job has the name of the
 * one that is being created, and all that it says of itself. */
static bool is_of_before(const shell_job *j, yyjson_val *json)
{
    char text[SHELL_VERSION_BYTES];
    uint64_t revision = read_revision(json, text);
    return revision > 0 && revision <= j->after;
}

static void job_seen(node_shell *s, str name, const job_key *key, yyjson_val *json)
{
    shell_job *j = shell_find_job(s, name);
    if (j && j->created && !job_key_equal(&j->of.key, key)) {
        job_drop(s, j); /* deleted and made again, seen as one */
        j = NULL;
    }
    if (!shell_is_present(s, key) || (j && !job_key_equal(&j->of.key, key))) {
        job_stray(s, name, key, json);
        return;
    }
    if (j && !j->created && is_of_before(j, json)) {
        shell_job_taken(s, j);
        return;
    }
    if (!j)
        j = shell_job_new(s, name, key);
    if (!j)
        return;
    j->uid = str_hash(read_text(yyjson_obj_get(json, "metadata"), "uid"));
    job_meets_pods(s, j);
    job_take(s, j, json);
}

/* Most changes of a Job on its way, and the echo of its creation, say nothing that is not known. */
static bool job_is_known(const node_shell *s, yyjson_val *json)
{
    yyjson_val *m = yyjson_obj_get(json, "metadata");
    const shell_job *j = shell_find_job(s, read_text(m, "name"));
    return j && j->created && j->uid == str_hash(read_text(m, "uid")) &&
           yyjson_arr_size(read_at(json, "status", "conditions")) == 0;
}

void jobs_seen(node_shell *s, yyjson_val *json)
{
    if (job_row_seen(s, json) || job_is_known(s, json))
        return;
    arena_place mark = arena_mark(s->scratch);
    metadata m;
    job_key key;
    if (read_metadata(s->scratch, json, &m) && job_key_read(s->scratch, &m, &key, NULL) &&
        key.attempt > 0)
        job_seen(s, m.name, &key, json);
    arena_rewind(s->scratch, mark);
}

void jobs_gone(node_shell *s, str name)
{
    failed_jobs_gone(&s->failed, name);
    job_row_gone(s, name);
    shell_job *j = shell_find_job(s, name);
    if (j && !j->created)
        j->gone = true; /* the answer to its creation tells more */
    if (!j || !j->created)
        return;
    if (j->tell_ms != REASON_NEVER) /* its end was seen */
        shell_job_tell(s, j, OUTCOME_FAILED, STR("Failed"));
    else
        shell_job_tell(s, j, OUTCOME_LOST, STR_EMPTY);
}

/* ---- time ---- */

void jobs_due(node_shell *s)
{
    for (size_t i = s->telling.len; i-- > 0;) {
        shell_job *j = s->telling.at[i];
        if (j->tell_ms <= s->now_ms)
            shell_job_tell(s, j, OUTCOME_FAILED,
                           j->pod_reason[0] != '\0' ? str_of(j->pod_reason) : STR("Failed"));
    }
}

int64_t jobs_next_ms(const node_shell *s)
{
    int64_t next = REASON_NEVER;
    for (size_t i = 0; i < s->telling.len; i++) {
        int64_t at = s->telling.at[i]->tell_ms;
        if (at != REASON_NEVER && (next == REASON_NEVER || at < next))
            next = at;
    }
    return next;
}

void jobs_done(node_shell *s)
{
    for (size_t i = 0; i < s->jobs.len; i++)
        job_free(s, (shell_job *)(uintptr_t)s->jobs.entries[i].value);
    pods_done(s);
    strmap_done(&s->jobs);
    strmap_done(&s->hosts);
    vec_done(&s->telling);
    failed_jobs_done(&s->failed);
}
