/* SPDX-License-Identifier: Apache-2.0 */
/* Pods as rows of a table: name, state and node, a twentieth of the object. Most changes of a pod
 * say no more than that it is on its way. Where there is more to know, or it matters whose it is
 * and its name does not tell, it is read. */
#include <stdio.h>

#include "base/log.h"
#include "base/num.h"
#include "kube/list_watch.h"
#include "operator/shell_internal.h"

/* What `kubectl get pods -o wide` prints. */
enum { CELL_NAME, CELL_STATE = 2, CELL_NODE = 6 };

/* A Job's pod has the Job's name, a hyphen and five letters that the server makes up; of a name
 * that would be too long only the beginning is left. */
#define POD_MADE_UP 5
#define POD_BASE_MAX (63 - POD_MADE_UP)

static bool is_on_its_way(str state)
{
    static const str states[] = {
        STR("Pending"),  STR("ContainerCreating"), STR("PodInitializing"), STR("Running"),
        STR("NotReady"), STR("Completed"),         STR("Terminating")};
    for (size_t i = 0; i < sizeof states / sizeof states[0]; i++)
        if (str_eq(state, states[i]))
            return true;
    /* So many of its init containers have ended. */
    return str_starts(state, STR("Init:")) && state.len > 5 && state.ptr[5] >= '0' &&
           state.ptr[5] <= '9';
}

static bool has_begun(str state)
{
    return !str_eq(state, STR("Pending")) && !str_eq(state, STR("ContainerCreating")) &&
           !str_starts(state, STR("Init:0/"));
}

/* For all that its row says: which init container waits does not stand there. */
static bool may_have_run(str state, str waits)
{
    return has_begun(state) && !str_eq(state, STR("Terminating")) &&
           !(str_starts(state, STR("Init:")) && stage_is_stuck(waits));
}

static int64_t version_of(yyjson_val *json)
{
    int64_t number = 0;
    str text = read_text(yyjson_obj_get(json, "metadata"), "resourceVersion");
    return num_parse(text, &number) ? number : 0;
}

/* ---- whose it is ---- */

typedef struct pod_owner {
    const shell_job *job; /* whose it may be; NULL: nobody's that is known */
    bool sure;
} pod_owner;

static pod_owner owner_of(const node_shell *s, const shell_pod *p)
{
    const shell_host *h = shell_find_host(s, p->of.key.node);
    str base = str_of(p->name);
    base.len -= base.len < POD_MADE_UP ? base.len : POD_MADE_UP;
    for (const shell_attempt *a = h ? h->first : NULL; a; a = a->next) {
        str name = a->job ? str_of(a->job->name) : STR_EMPTY;
        bool whole = name.len > 0 && base.len == name.len + 1 && str_starts(base, name) &&
                     base.ptr[name.len] == '-';
        if (whole ||
            (name.len >= POD_BASE_MAX && base.len == POD_BASE_MAX && str_starts(name, base)))
            return (pod_owner){a->job, whole};
    }
    return (pod_owner){0};
}

/* ---- reading ---- */

static void pod_read(node_shell *s, shell_pod *p);

static void pod_ask(node_shell *s, shell_pod *p, int64_t in_ms)
{
    if (p->reading || (p->ask_ms != REASON_NEVER && p->ask_ms <= s->now_ms + in_ms))
        return;
    p->ask_ms = s->now_ms + in_ms;
    shell_pod_trouble(s, p);
}

static void pod_answered(node_shell *s, const shell_ticket *t, const write_outcome *how,
                         yyjson_val *json)
{
    shell_pod *p = shell_find_pod(s, str_of(t->job));
    if (!p)
        return; /* gone since */
    p->reading = false;
    switch (how->kind) {
    case WRITE_DONE:
        if (json && version_of(json) >= p->version)
            pods_seen(s, json);
        else
            pod_read(s, p); /* its row has told more since */
        return;
    case WRITE_GONE: return; /* the watch tells */
    case WRITE_LATER:
    case WRITE_AMBIGUOUS: pod_read(s, p); return;
    case WRITE_EXISTS:
    case WRITE_CONFLICT:
    case WRITE_REFUSED:
    case WRITE_BLOCKED:
    case WRITE_BARRED: break;
    }
    log_line(LOG_WARN, "pod %s cannot be read: %s", t->job, how->message);
    pod_ask(s, p, SHELL_REFUSED_MS);
}

static void pod_read(node_shell *s, shell_pod *p)
{
    char collection[LIMIT_NAME_BYTES + 64];
    p->ask_ms = REASON_NEVER;
    if (p->reading)
        return;
    snprintf(collection, sizeof collection, "/api/v1/namespaces/%.*s/pods",
             STR_ARG(s->settings.job.namespace_));
    kube_write w = {.verb = WRITE_READ, .collection = str_of(collection), .name = str_of(p->name)};
    p->reading = shell_send(s, &w, (shell_ticket){.done = pod_answered, .job = p->name});
    if (!p->reading)
        pod_ask(s, p, SHELL_REFUSED_MS);
}

void pod_row_due(node_shell *s, shell_pod *p)
{
    if (p->ask_ms != REASON_NEVER && p->ask_ms <= s->now_ms)
        pod_read(s, p);
}

beside pod_row_beside(node_shell *s, const shell_pod *p)
{
    pod_owner owner = owner_of(s, p);
    if (owner.sure && owner.job->created)
        return shell_is_present(s, &owner.job->of.key) ? BESIDE_NOTHING : BESIDE_SOMETHING;
    /* Of one that has just ended it is about to be told. */
    pod_ask(s, shell_find_pod(s, str_of(p->name)), owner.job ? 0 : SHELL_POD_ASK_MS);
    return BESIDE_UNSURE;
}

/* ---- rows ---- */

/* Of a pod that was read. */
static void known_seen(node_shell *s, shell_pod *p, str state)
{
    const shell_job *j = shell_find_job(s, str_of(p->job));
    str waits = state;
    if (str_starts(waits, STR("Init:")))
        waits = str_part(waits, sizeof "Init:" - 1, SIZE_MAX);
    bool passes = is_on_its_way(state);
    p->stage_ran |= may_have_run(state, waits);
    if (p->job[0] == '\0' || (!passes && !stage_is_stuck(waits)) || (j && j->telling))
        pod_read(s, p);
    else if (!str_eq(state, STR("Terminating"))) /* which says nothing of what it waits for */
        shell_pod_waits(s, p, passes ? STR_EMPTY : waits);
}

void pod_rows_ask(node_shell *s, const shell_job *j)
{
    const shell_host *h = shell_find_host(s, j->of.key.node);
    for (const shell_attempt *a = h ? h->first : NULL; a; a = a->next)
        if (a->pod && (a->pod->unread ? owner_of(s, a->pod).job == j
                                      : str_eq(str_of(a->pod->job), str_of(j->name))))
            pod_read(s, shell_find_pod(s, str_of(a->pod->name)));
}

bool pod_row_seen(node_shell *s, yyjson_val *json)
{
    str name = watch_row_cell(json, CELL_NAME), state = watch_row_cell(json, CELL_STATE);
    if (name.len == 0)
        return false;
    shell_pod *p = shell_find_pod(s, name);
    if (!p && !(p = shell_pod_unread(s, name, watch_row_cell(json, CELL_NODE))))
        return true;
    p->version = version_of(json);
    if (!p->unread) {
        shell_pod_begun(s, p, p->of.key.skyhook, has_begun(state));
        known_seen(s, p, state);
        return true;
    }
    /* Whether it has failed is not seen while a container has yet to begin. */
    const shell_job *owner = owner_of(s, p).job;
    shell_pod_begun(s, p, owner ? owner->of.key.skyhook : STR_EMPTY, has_begun(state));
    if (!is_on_its_way(state) || (owner && owner->telling))
        pod_read(s, p);
    else if (!owner)
        pod_ask(s, p, SHELL_POD_ASK_MS);
    return true;
}
