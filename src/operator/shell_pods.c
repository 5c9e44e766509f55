/* SPDX-License-Identifier: Apache-2.0 */
/* The pods of packages as the API server shows them, and what runs on a node beside what the engine
 * waits for. */
#include <stdio.h>

#include "base/log.h"
#include "base/mem.h"
#include "operator/shell_internal.h"

shell_pod *shell_find_pod(const node_shell *s, str name)
{
    const uint64_t *at = strmap_get(&s->pods, name);
    return at ? (shell_pod *)(uintptr_t)*at : NULL;
}

static void pod_free(node_shell *s, shell_pod *p)
{
    for (size_t i = 0; p->troubled && i < s->troubled.len; i++)
        if (s->troubled.at[i] == p)
            s->troubled.at[i--] = s->troubled.at[--s->troubled.len];
    mem_free(p->name);
    mem_free(p->uid);
    mem_free(p->job);
    shell_attempt_done(s, &p->of);
    mem_free(p);
}

static void pod_drop(node_shell *s, shell_pod *p)
{
    strmap_remove(&s->pods, str_of(p->name));
    pod_free(s, p);
    s->due = true;
}

/* What it runs; of a raw pod of an older operator, or one that somebody changed, only where and for
 * whom. */
static job_key pod_key(node_shell *s, yyjson_val *json)
{
    metadata m;
    job_key key;
    if (!read_metadata(s->scratch, json, &m) || !job_key_read(s->scratch, &m, &key, NULL))
        key = (job_key){.skyhook = read_text(read_at(json, "metadata", "labels"), KEY_NAME)};
    key.node = read_text(yyjson_obj_get(json, "spec"), "nodeName");
    return key;
}

static uint64_t job_uid_of(yyjson_val *json)
{
    yyjson_arr_iter walk = yyjson_arr_iter_with(read_at(json, "metadata", "ownerReferences"));
    for (yyjson_val *one; (one = yyjson_arr_iter_next(&walk));)
        if (str_eq(read_text(one, "kind"), STR("Job")))
            return str_hash(read_text(one, "uid"));
    return 0;
}

/* Takes it over, with its texts. */
static shell_pod *pod_put(node_shell *s, const job_key *key, shell_pod like)
{
    shell_pod *p = mem_zalloc(sizeof *p);
    if (!p) {
        mem_free(like.name);
        mem_free(like.uid);
        mem_free(like.job);
        shell_memory(s);
        return NULL;
    }
    *p = like;
    p->ask_ms = REASON_NEVER;
    bool good = shell_attempt_keep(s, key, NULL, &p->of) && !s->no_memory &&
                strmap_put(&s->pods, str_of(p->name), (uint64_t)(uintptr_t)p);
    p->of.pod = p;
    if (good)
        return p;
    shell_memory(s);
    pod_free(s, p);
    return NULL;
}

static shell_pod *pod_new(node_shell *s, yyjson_val *json)
{
    yyjson_val *m = yyjson_obj_get(json, "metadata");
    arena_place mark = arena_mark(s->scratch);
    job_key key = pod_key(s, json);
    str job = read_text(yyjson_obj_get(m, "labels"), "batch.kubernetes.io/job-name");
    shell_pod *p = pod_put(s, &key,
                           (shell_pod){.name = shell_copy(s, read_text(m, "name")),
                                       .uid = shell_copy(s, read_text(m, "uid")),
                                       .job = shell_copy(s, job),
                                       .job_uid = job_uid_of(json)});
    arena_rewind(s->scratch, mark);
    return p;
}

shell_pod *shell_pod_unread(node_shell *s, str name, str node_name)
{
    job_key key = {.node = node_name};
    return pod_put(s, &key, (shell_pod){.name = shell_copy(s, name), .unread = true});
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
            if (failed || stage_is_stuck(why))
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
        shell_job_fails(s, j, STR_EMPTY);
}

void shell_pod_trouble(node_shell *s, shell_pod *p)
{
    s->due = true;
    if (p->troubled)
        return;
    p->troubled = vec_push(&s->troubled, p);
    if (!p->troubled)
        shell_memory(s);
}

void shell_pod_waits(node_shell *s, shell_pod *p, str why)
{
    if (why.len == 0) {
        p->waiting[0] = '\0';
        return;
    }
    if (p->waiting[0] == '\0')
        p->waits_since_ms = s->now_ms;
    snprintf(p->waiting, sizeof p->waiting, "%.*s", STR_ARG(why));
    shell_pod_trouble(s, p);
}

void shell_pod_begun(node_shell *s, shell_pod *p, str skyhook_name, bool begun)
{
    if (begun) {
        p->unbegun_ms = 0;
        return;
    }
    if (p->unbegun_ms == 0)
        p->unbegun_ms = s->now_ms;
    package_maps_awaited(s, skyhook_name);
}

/* The first container is an init container, if there is any. */
static bool has_begun(yyjson_val *json)
{
    yyjson_val *first = yyjson_arr_get_first(read_at(json, "status", "initContainerStatuses"));
    if (!first)
        first = yyjson_arr_get_first(read_at(json, "status", "containerStatuses"));
    yyjson_val *state = yyjson_obj_get(first, "state");
    return yyjson_obj_get(state, "running") || yyjson_obj_get(state, "terminated") ||
           !str_eq(read_text(yyjson_obj_get(json, "status"), "phase"), STR("Pending"));
}

static bool has_run(yyjson_val *status)
{
    yyjson_val *state = yyjson_obj_get(status, "state");
    return yyjson_obj_get(state, "running") || yyjson_obj_get(state, "terminated") ||
           yyjson_obj_get(yyjson_obj_get(status, "lastState"), "terminated");
}

/* The first container brings the package's files, the next one runs its steps. */
static bool stage_has_run(yyjson_val *json)
{
    yyjson_val *inits = read_at(json, "status", "initContainerStatuses");
    bool ran = !str_eq(read_text(yyjson_obj_get(json, "status"), "phase"), STR("Pending"));
    for (size_t i = 1; i < yyjson_arr_size(inits); i++)
        ran |= has_run(yyjson_arr_get(inits, i));
    return ran;
}

/* ---- raw pods of an older operator ---- */

/* A stage is an init container there, and what comes behind it only keeps the pod alive. The first
 * that failed counts, else the last. */
static void raw_look(shell_pod *p, yyjson_val *json)
{
    str phase = read_text(yyjson_obj_get(json, "status"), "phase");
    str why = read_text(yyjson_obj_get(json, "status"), "reason");
    bool failed = str_eq(phase, STR("Failed")), done = false;
    yyjson_arr_iter walk = yyjson_arr_iter_with(read_at(json, "status", "initContainerStatuses"));
    for (yyjson_val *one; (one = yyjson_arr_iter_next(&walk));) {
        yyjson_val *ended = read_at(one, "state", "terminated");
        str waits = read_text(read_at(one, "state", "waiting"), "reason");
        done = ended && yyjson_get_sint(yyjson_obj_get(ended, "exitCode")) == 0;
        if ((!ended || done) && !str_eq(waits, STR("CrashLoopBackOff")))
            continue;
        failed = true;
        why = ended ? read_text(ended, "reason") : waits;
        break;
    }
    p->raw_over = failed || done;
    p->raw_succeeded = done && !failed;
    if (failed)
        snprintf(p->waiting, sizeof p->waiting, "%.*s", STR_ARG(why.len > 0 ? why : STR("Failed")));
}

/* The attempt that the engine waits for and that has no Job, because the pod does its work: 0: no
 * attempt runs there; -1: another one than the pod's. */
static int64_t raw_attempt(node_shell *s, const shell_place *at, const job_key *key)
{
    arena_place mark = arena_mark(s->scratch);
    node_view v;
    int64_t found = 0;
    if (engine_node(s->engine, key->skyhook, key->node, s->scratch, &v))
        for (size_t i = 0; i < v.package_count && found <= 0; i++) {
            const package_view *p = &v.packages[i];
            bool same = p->stage == key->stage && str_eq(p->name, key->package) &&
                        str_eq(p->version, key->version) && !shell_attempt_has_job(s, at, p);
            if (p->running)
                found = same ? p->attempt : -1;
        }
    arena_rewind(s->scratch, mark);
    return found;
}

/* Its outcome is that of the attempt that would have done the same. Then, or if nobody is going to
 * ask for it, it is to be deleted; until its node's turn comes it stays. */
static void raw_step(node_shell *s, shell_pod *p)
{
    const shell_change *c = shell_find_change(s, p->of.key.skyhook);
    const shell_place *at = shell_find_place(s, p->of.key.skyhook, p->of.key.node);
    int64_t attempt = at ? raw_attempt(s, at, &p->of.key) : 0;
    bool waits = at && at->selected && at->state_now != SKYHOOK_COMPLETE;
    if (!c || !c->known || (attempt == 0 && waits))
        return;
    if (attempt > 0) {
        job_key key = p->of.key;
        key.attempt = attempt;
        shell_stage_tell(
            s, &key,
            (fact_stage){.outcome = p->raw_succeeded ? OUTCOME_SUCCEEDED : OUTCOME_FAILED,
                         .found = true,
                         .reason = p->raw_succeeded ? STR_EMPTY : str_of(p->waiting)});
    }
    p->stuck = s->due = true;
}

static void raw_seen(node_shell *s, shell_pod *p, yyjson_val *json)
{
    if (!p && !(p = pod_new(s, json)))
        return;
    shell_pod_waits(s, p, container_reason(json, "waiting"));
    raw_look(p, json);
    shell_pod_trouble(s, p);
}

void pods_seen(node_shell *s, yyjson_val *json)
{
    if (pod_row_seen(s, json))
        return;
    yyjson_val *m = yyjson_obj_get(json, "metadata");
    str phase = read_text(yyjson_obj_get(json, "status"), "phase");
    shell_pod *p = shell_find_pod(s, read_text(m, "name"));
    bool failed = str_eq(phase, STR("Failed"));
    str job = read_text(yyjson_obj_get(m, "labels"), "batch.kubernetes.io/job-name");
    if (p && p->unread) {
        pod_drop(s, p);
        p = NULL;
    }
    if (job.len == 0) {
        raw_seen(s, p, json);
        return;
    }
    if (failed)
        pod_failed(s, json, job);
    if (failed || str_eq(phase, STR("Succeeded"))) {
        if (p)
            pod_drop(s, p);
        return;
    }
    if (!p && !(p = pod_new(s, json)))
        return;
    p->stage_ran |= stage_has_run(json);
    shell_pod_begun(s, p, p->of.key.skyhook, has_begun(json));
    shell_pod_waits(s, p, container_reason(json, "waiting"));
}

void pods_gone(node_shell *s, str name)
{
    shell_pod *p = shell_find_pod(s, name);
    if (p)
        pod_drop(s, p);
}

/* A pod is owned by its Job, and does not say by whose Skyhook that is. */
static beside pod_beside(node_shell *s, const shell_pod *p)
{
    if (p->unread)
        return pod_row_beside(s, p);
    const shell_job *j = shell_find_job(s, str_of(p->job));
    bool present = j && j->created && p->job_uid != 0 && j->uid == p->job_uid &&
                   shell_is_present(s, &j->of.key);
    return present ? BESIDE_NOTHING : BESIDE_SOMETHING;
}

/* By what the engine waits for now, not by what it waited for when they were seen: it may have
 * given an attempt up. */
beside shell_runs_beside(node_shell *s, const shell_place *of, bool of_anybody)
{
    const shell_host *h = shell_find_host(s, str_of(of->node->name));
    beside worst = BESIDE_NOTHING;
    for (const shell_attempt *a = h ? h->first : NULL; a; a = a->next) {
        bool counts = !a->job || a->job->created;
        bool of_whom =
            of_anybody || str_eq(a->key.skyhook, str_of(of->skyhook)) || (a->pod && a->pod->unread);
        if (!counts || !of_whom)
            continue;
        beside found = a->pod                         ? pod_beside(s, a->pod)
                       : shell_is_present(s, &a->key) ? BESIDE_NOTHING
                                                      : BESIDE_SOMETHING;
        worst = found > worst ? found : worst;
    }
    return worst;
}

/* ---- time ---- */

static void pod_deleted(node_shell *s, const shell_ticket *t, const write_outcome *how,
                        yyjson_val *json)
{
    (void)json;
    shell_pod *p = shell_find_pod(s, str_of(t->job));
    if (!p || how->kind == WRITE_DONE || how->kind == WRITE_GONE)
        return;
    p->ending = false;
    p->held_until_ms = s->now_ms + SHELL_REFUSED_MS;
    log_line(LOG_WARN, "pod %s cannot be ended: %s", t->job, how->message);
}

/* The reason is on the node before the pod goes: nobody else would know it then. */
static void pod_end(node_shell *s, shell_pod *p)
{
    const shell_place *at = shell_find_place(s, p->of.key.skyhook, p->of.key.node);
    char collection[LIMIT_NAME_BYTES + 64];
    if (p->ending || p->held_until_ms > s->now_ms || (at && (at->dirty || at->sent)))
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
    pod_row_due(s, p);
    if (p->waiting[0] == '\0' || s->now_ms < p->waits_since_ms + s->settings.unpullable_ms)
        return;
    shell_job *j = shell_find_job(s, str_of(p->job));
    if (j) {
        j->nothing_ran = !p->stage_ran;
        shell_job_tell(s, j, OUTCOME_FAILED, str_of(p->waiting));
    }
    if (p->job[0] == '\0')
        p->raw_over = true;
    else
        p->stuck = true;
}

void pods_due(node_shell *s)
{
    for (size_t i = 0; i < s->troubled.len; i++)
        pod_due(s, s->troubled.at[i]);
}

void pods_end(node_shell *s)
{
    for (size_t i = 0; i < s->troubled.len; i++) {
        shell_pod *p = s->troubled.at[i];
        if (p->raw_over && !p->stuck)
            raw_step(s, p);
        if (p->stuck)
            pod_end(s, p);
    }
}

int64_t pods_next_ms(const node_shell *s)
{
    int64_t next = REASON_NEVER;
    for (size_t i = 0; i < s->troubled.len; i++) {
        const shell_pod *p = s->troubled.at[i];
        int64_t at = p->waits_since_ms + s->settings.unpullable_ms;
        bool due = p->waiting[0] != '\0' && !p->stuck && !p->raw_over;
        if (p->stuck && p->held_until_ms > s->now_ms) {
            at = p->held_until_ms;
            due = true;
        }
        if (due && (next == REASON_NEVER || at < next))
            next = at;
        if (p->ask_ms != REASON_NEVER && (next == REASON_NEVER || p->ask_ms < next))
            next = p->ask_ms;
    }
    return next;
}

void pods_done(node_shell *s)
{
    for (size_t i = 0; i < s->pods.len; i++)
        pod_free(s, (shell_pod *)(uintptr_t)s->pods.entries[i].value);
    strmap_done(&s->pods);
    vec_done(&s->troubled);
}
