/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs and their pods as the API server shows them, and what their ends mean: facts. */
#include <stdio.h>

#include "base/log.h"
#include "base/mem.h"
#include "operator/shell_internal.h"

/* Why a container may not begin for ever: the pod never fails of it. */
static const str stuck_reasons[] = {
    STR("ImagePullBackOff"), STR("ErrImagePull"),         STR("ErrImageNeverPull"),
    STR("InvalidImageName"), STR("CreateContainerError"), STR("CreateContainerConfigError"),
};

/* ---- jobs ---- */

shell_job *shell_find_job(const node_shell *s, str name)
{
    const uint64_t *at = strmap_get(&s->jobs, name);
    return at ? (shell_job *)(uintptr_t)*at : NULL;
}

static void job_free(shell_job *j)
{
    mem_free(j->name);
    mem_free(j->skyhook);
    mem_free(j->package);
    mem_free(j->version);
    mem_free(j->node);
    mem_free(j);
}

static void job_drop(node_shell *s, shell_job *j)
{
    strmap_remove(&s->jobs, str_of(j->name));
    job_free(j);
}

shell_job *shell_job_new(node_shell *s, str name, const job_key *key)
{
    shell_job *j = mem_zalloc(sizeof *j);
    if (!j) {
        shell_memory(s);
        return NULL;
    }
    *j = (shell_job){.name = shell_copy(s, name),
                     .skyhook = shell_copy(s, key->skyhook),
                     .package = shell_copy(s, key->package),
                     .version = shell_copy(s, key->version),
                     .node = shell_copy(s, key->node),
                     .stage = key->stage,
                     .attempt = key->attempt,
                     .tell_ms = REASON_NEVER};
    if (!s->no_memory && strmap_put(&s->jobs, str_of(j->name), (uint64_t)(uintptr_t)j))
        return j;
    shell_memory(s);
    job_free(j);
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

/* The engine's answer to its RUN; the Job is of no more interest then. */
static void job_tell(node_shell *s, shell_job *j, outcome how, str why)
{
    fact f = {.kind = FACT_STAGE,
              .stage = {.change = str_of(j->skyhook),
                        .target = str_of(j->node),
                        .package = str_of(j->package),
                        .version = str_of(j->version),
                        .stage = stage_name(j->stage),
                        .attempt = j->attempt,
                        .outcome = how,
                        .reason = why,
                        .never_retry = str_eq(why, STR("InvalidImageName"))}};
    shell_take(s, &f);
    s->due = true;
    shell_place *p = shell_find_place(s, str_of(j->skyhook), str_of(j->node));
    if (p)
        shell_look(s, p);
    if (how == OUTCOME_FAILED && j->created)
        job_keep(s, j);
    job_drop(s, j);
}

void shell_stage_lost(node_shell *s, const shell_place *p, const package_view *of)
{
    fact f = {.kind = FACT_STAGE,
              .stage = {.change = str_of(p->skyhook),
                        .target = str_of(p->node->name),
                        .package = of->name,
                        .version = of->version,
                        .stage = stage_name(of->stage),
                        .attempt = of->attempt,
                        .outcome = OUTCOME_LOST}};
    shell_take(s, &f);
    s->due = true;
}

bool shell_attempt_has_job(const node_shell *s, const shell_place *p, const package_view *of)
{
    job_key key = {.skyhook = str_of(p->skyhook),
                   .package = of->name,
                   .version = of->version,
                   .stage = of->stage,
                   .node = str_of(p->node->name),
                   .attempt = of->attempt};
    buf name = BUF(LIMIT_NAME_BYTES);
    job_name(&name, &key);
    bool found = shell_find_job(s, buf_str(&name));
    buf_done(&name);
    return found;
}

void shell_job_forget(node_shell *s, shell_job *j)
{
    if (j)
        job_drop(s, j);
}

void shell_job_refused(node_shell *s, shell_job *j, const write_outcome *how)
{
    /* An object that the server does not take can only be refused again. */
    (void)how;
    job_tell(s, j, OUTCOME_FAILED, STR("JobRefused"));
}

void shell_job_lost(node_shell *s, str name)
{
    shell_job *j = shell_find_job(s, name);
    if (j)
        job_tell(s, j, OUTCOME_LOST, STR_EMPTY);
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

/* A pod's own word says more than that a Job may not try again. */
static void job_fails(node_shell *s, shell_job *j, str why)
{
    bool plain = str_eq(why, STR("BackoffLimitExceeded")) || why.len == 0;
    if (j->pod_reason[0] != '\0' && plain) {
        job_tell(s, j, OUTCOME_FAILED, str_of(j->pod_reason));
    } else if (!plain) {
        job_tell(s, j, OUTCOME_FAILED, why);
    } else if (j->tell_ms == REASON_NEVER) {
        j->tell_ms = s->now_ms + SHELL_POD_REASON_MS;
        s->due = true;
    }
}

static void job_take(node_shell *s, shell_job *j, yyjson_val *json)
{
    str why = STR_EMPTY;
    j->created = true;
    if (condition_holds(json, "Complete", &why) ||
        condition_holds(json, "SuccessCriteriaMet", &why))
        job_tell(s, j, OUTCOME_SUCCEEDED, STR_EMPTY);
    else if (condition_holds(json, "FailureTarget", &why) || condition_holds(json, "Failed", &why))
        job_fails(s, j, why);
}

/* Whether the engine waits for the end of this very attempt. */
static bool is_present(node_shell *s, const job_key *key)
{
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

void jobs_seen(node_shell *s, yyjson_val *json)
{
    arena_place mark = arena_mark(s->scratch);
    metadata m;
    job_key key;
    bool ours = read_metadata(s->scratch, json, &m) && job_key_read(s->scratch, &m, &key, NULL) &&
                key.attempt > 0;
    const shell_change *c = ours ? shell_find_change(s, key.skyhook) : NULL;
    /* One that another Skyhook of that name owned says nothing about this one. */
    if (c && str_eq(key.owner_uid, shell_text(c->uid)) && is_present(s, &key)) {
        shell_job *j = shell_find_job(s, m.name);
        if (!j)
            j = shell_job_new(s, m.name, &key);
        if (j)
            job_take(s, j, json);
    }
    arena_rewind(s->scratch, mark);
}

void jobs_gone(node_shell *s, str name)
{
    shell_job *j = shell_find_job(s, name);
    if (!j || !j->created)
        return;
    if (j->tell_ms != REASON_NEVER) /* its end was seen */
        job_tell(s, j, OUTCOME_FAILED, STR("Failed"));
    else
        job_tell(s, j, OUTCOME_LOST, STR_EMPTY);
}

/* ---- pods ---- */

static shell_pod *find_pod(const node_shell *s, str name)
{
    const uint64_t *at = strmap_get(&s->pods, name);
    return at ? (shell_pod *)(uintptr_t)*at : NULL;
}

static void pod_free(shell_pod *p)
{
    mem_free(p->name);
    mem_free(p->uid);
    mem_free(p->job);
    mem_free(p->node);
    mem_free(p->skyhook);
    mem_free(p);
}

static void pod_drop(node_shell *s, shell_pod *p)
{
    strmap_remove(&s->pods, str_of(p->name));
    pod_free(p);
    s->due = true;
}

static shell_pod *pod_new(node_shell *s, yyjson_val *json)
{
    yyjson_val *m = yyjson_obj_get(json, "metadata");
    yyjson_val *labels = yyjson_obj_get(m, "labels");
    shell_pod *p = mem_zalloc(sizeof *p);
    if (!p) {
        shell_memory(s);
        return NULL;
    }
    *p = (shell_pod){.name = shell_copy(s, read_text(m, "name")),
                     .uid = shell_copy(s, read_text(m, "uid")),
                     .job = shell_copy(s, read_text(labels, "batch.kubernetes.io/job-name")),
                     .node = shell_copy(s, read_text(yyjson_obj_get(json, "spec"), "nodeName")),
                     .skyhook = shell_copy(s, read_text(labels, KEY_NAME))};
    if (!s->no_memory && strmap_put(&s->pods, str_of(p->name), (uint64_t)(uintptr_t)p))
        return p;
    shell_memory(s);
    pod_free(p);
    return NULL;
}

/* Calls for each container's state of that kind; the first that is of interest wins. */
static str container_reason(yyjson_val *json, const char *state)
{
    static const char *const lists[] = {"initContainerStatuses", "containerStatuses"};
    for (size_t i = 0; i < 2; i++) {
        yyjson_arr_iter walk = yyjson_arr_iter_with(read_at(json, "status", lists[i]));
        for (yyjson_val *one; (one = yyjson_arr_iter_next(&walk));) {
            yyjson_val *found = read_at(one, "state", state);
            str why = read_text(found, "reason");
            bool failed = strcmp(state, "terminated") == 0 &&
                          yyjson_get_sint(yyjson_obj_get(found, "exitCode")) != 0;
            bool stuck = false;
            for (size_t k = 0; k < sizeof stuck_reasons / sizeof stuck_reasons[0]; k++)
                stuck |= str_eq(why, stuck_reasons[k]);
            if (failed || stuck)
                return why.len > 0 ? why : STR("Error");
        }
    }
    return STR_EMPTY;
}

static void pod_failed(node_shell *s, yyjson_val *json, str job)
{
    shell_job *j = shell_find_job(s, job);
    str why = read_text(yyjson_obj_get(json, "status"), "reason");
    if (why.len == 0)
        why = container_reason(json, "terminated");
    if (!j)
        return;
    snprintf(j->pod_reason, sizeof j->pod_reason, "%.*s", STR_ARG(why));
    if (j->tell_ms != REASON_NEVER)
        job_fails(s, j, STR_EMPTY);
}

static void pod_waits(node_shell *s, shell_pod *p, yyjson_val *json)
{
    str why = container_reason(json, "waiting");
    if (why.len == 0) {
        p->waiting[0] = '\0';
        return;
    }
    if (p->waiting[0] == '\0')
        p->waits_since_ms = s->now_ms;
    snprintf(p->waiting, sizeof p->waiting, "%.*s", STR_ARG(why));
    s->due = true;
}

void pods_seen(node_shell *s, yyjson_val *json)
{
    yyjson_val *m = yyjson_obj_get(json, "metadata");
    str phase = read_text(yyjson_obj_get(json, "status"), "phase");
    shell_pod *p = find_pod(s, read_text(m, "name"));
    bool failed = str_eq(phase, STR("Failed"));
    if (failed)
        pod_failed(s, json, read_text(yyjson_obj_get(m, "labels"), "batch.kubernetes.io/job-name"));
    if (failed || str_eq(phase, STR("Succeeded"))) {
        if (p)
            pod_drop(s, p);
        return;
    }
    if (p || (p = pod_new(s, json)))
        pod_waits(s, p, json);
}

void pods_gone(node_shell *s, str name)
{
    shell_pod *p = find_pod(s, name);
    if (p)
        pod_drop(s, p);
}

bool shell_pods_run(const node_shell *s, const shell_place *of, bool of_anybody)
{
    for (size_t i = 0; i < s->pods.len; i++) {
        const shell_pod *p = (const shell_pod *)(uintptr_t)s->pods.entries[i].value;
        if (strcmp(p->node, of->node->name) == 0 &&
            (of_anybody || strcmp(p->skyhook, of->skyhook) == 0) &&
            !shell_find_job(s, str_of(p->job)))
            return true;
    }
    return false;
}

/* ---- time ---- */

static void pod_deleted(node_shell *s, const shell_ticket *t, const write_outcome *how,
                        yyjson_val *json)
{
    (void)json;
    shell_pod *p = find_pod(s, str_of(t->job));
    if (p && how->kind != WRITE_DONE && how->kind != WRITE_GONE)
        p->ending = false;
}

/* The reason is on the node before the pod goes: nobody else would know it then. */
static void pod_end(node_shell *s, shell_pod *p)
{
    const shell_place *at = shell_find_place(s, str_of(p->skyhook), str_of(p->node));
    char collection[LIMIT_NAME_BYTES + 64];
    if (p->ending || (at && (at->dirty || at->sent)))
        return;
    snprintf(collection, sizeof collection, "/api/v1/namespaces/%.*s/pods",
             STR_ARG(s->settings.job.namespace_));
    kube_write w = {.verb = WRITE_DELETE,
                    .collection = str_of(collection),
                    .name = str_of(p->name),
                    .uid = str_of(p->uid)};
    p->ending = shell_send(s, &w, (shell_ticket){.done = pod_deleted, .job = p->name});
    s->counts.others += p->ending;
}

static void pod_due(node_shell *s, shell_pod *p)
{
    if (p->waiting[0] == '\0' || s->now_ms < p->waits_since_ms + s->settings.unpullable_ms)
        return;
    shell_job *j = shell_find_job(s, str_of(p->job));
    if (j)
        job_tell(s, j, OUTCOME_FAILED, str_of(p->waiting));
    p->stuck = true;
}

void jobs_due(node_shell *s)
{
    for (size_t i = s->jobs.len; i-- > 0;) {
        shell_job *j = (shell_job *)(uintptr_t)s->jobs.entries[i].value;
        if (j->tell_ms != REASON_NEVER && j->tell_ms <= s->now_ms)
            job_tell(s, j, OUTCOME_FAILED,
                     j->pod_reason[0] != '\0' ? str_of(j->pod_reason) : STR("Failed"));
    }
    for (size_t i = 0; i < s->pods.len; i++)
        pod_due(s, (shell_pod *)(uintptr_t)s->pods.entries[i].value);
}

void pods_end(node_shell *s)
{
    for (size_t i = 0; i < s->pods.len; i++) {
        shell_pod *p = (shell_pod *)(uintptr_t)s->pods.entries[i].value;
        if (p->stuck)
            pod_end(s, p);
    }
}

int64_t jobs_next_ms(const node_shell *s)
{
    int64_t next = REASON_NEVER;
    for (size_t i = 0; i < s->jobs.len; i++) {
        int64_t at = ((const shell_job *)(uintptr_t)s->jobs.entries[i].value)->tell_ms;
        if (at != REASON_NEVER && (next == REASON_NEVER || at < next))
            next = at;
    }
    for (size_t i = 0; i < s->pods.len; i++) {
        const shell_pod *p = (const shell_pod *)(uintptr_t)s->pods.entries[i].value;
        int64_t at = p->waits_since_ms + s->settings.unpullable_ms;
        if (p->waiting[0] != '\0' && !p->stuck && (next == REASON_NEVER || at < next))
            next = at;
    }
    return next;
}

void jobs_done(node_shell *s)
{
    for (size_t i = 0; i < s->jobs.len; i++)
        job_free((shell_job *)(uintptr_t)s->jobs.entries[i].value);
    for (size_t i = 0; i < s->pods.len; i++)
        pod_free((shell_pod *)(uintptr_t)s->pods.entries[i].value);
    strmap_done(&s->jobs);
    strmap_done(&s->pods);
}
