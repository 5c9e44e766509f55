/* SPDX-License-Identifier: Apache-2.0 */
/* The Jobs of stages that run, and the ConfigMaps they need: created when the attempt stands on the
 * node, in the order maps, Job. What a package may know about its node is carried by the Job. */
#include <stdio.h>

#include "base/log.h"
#include "base/mem.h"
#include "operator/config_map.h"
#include "operator/shell_internal.h"

#define COLLECTION_BYTES (LIMIT_NAME_BYTES + 64)

static str collection_of(const node_shell *s, const char *group, const char *kind,
                         char out[COLLECTION_BYTES])
{
    snprintf(out, COLLECTION_BYTES, "%s/namespaces/%.*s/%s", group,
             STR_ARG(s->settings.job.namespace_), kind);
    return str_of(out);
}

/* ---- the Job ---- */

/* It is tried again after a while: what is in the way says nothing of the node. */
static void job_hold(node_shell *s, shell_place *p, const char *why)
{
    p->held_until_ms = s->now_ms + SHELL_REFUSED_MS;
    shell_tell_kept(s, p, why, true);
    shell_look_after(s, p);
}

static void job_again(node_shell *s, shell_job *j, const write_outcome *how)
{
    char why[96];
    shell_place *p = shell_find_place(s, j->of.key.skyhook, j->of.key.node);
    snprintf(why, sizeof why, "its Job cannot be created: %s (status %d)",
             write_outcome_text(how->kind), how->status);
    log_line(LOG_WARN, "Job %s: %s", j->name, how->message);
    shell_job_forget(s, j);
    if (p)
        job_hold(s, p, why);
}

static void job_read(node_shell *s, const shell_ticket *t, const write_outcome *how,
                     yyjson_val *json)
{
    shell_job *j = shell_find_job(s, str_of(t->job));
    if (j && !j->created && (j->gone || how->kind == WRITE_GONE)) {
        shell_job_tell(s, j, OUTCOME_LOST, STR_EMPTY);
        return;
    }
    if (how->kind == WRITE_DONE && json)
        jobs_seen(s, json);
    j = shell_find_job(s, str_of(t->job));
    if (!j || j->created)
        return;
    if (how->kind == WRITE_DONE)
        shell_job_taken(s, j);
    else
        job_again(s, j, how);
}

/* Which Job has the name, and whether there is one. */
static void job_ask(node_shell *s, shell_job *j)
{
    char collection[COLLECTION_BYTES];
    shell_place *p = shell_find_place(s, j->of.key.skyhook, j->of.key.node);
    kube_write read = {.verb = WRITE_READ,
                       .collection = collection_of(s, "/apis/batch/v1", "jobs", collection),
                       .name = str_of(j->name)};
    j->gone = false; /* what was told so far: that may have been of an older Job */
    if (shell_send(s, &read, (shell_ticket){.done = job_read, .job = j->name}))
        return;
    shell_job_forget(s, j);
    if (p)
        job_hold(s, p, "its Job waits behind too many writes");
}

static void job_created(node_shell *s, const shell_ticket *t, const write_outcome *how,
                        yyjson_val *json)
{
    s->creating--;
    shell_job *j = shell_find_job(s, str_of(t->job));
    shell_place *p = j ? shell_find_place(s, j->of.key.skyhook, j->of.key.node) : NULL;
    if (how->kind == WRITE_DONE && p && p->hindered)
        shell_tell_kept(s, p, NULL, true);
    if (!j || j->created)
        return; /* its watch told more */
    if (how->kind == WRITE_DONE && !j->gone && job_row_created(s, j, json))
        return;
    if (how->kind == WRITE_DONE || how->kind == WRITE_EXISTS) {
        job_ask(s, j);
    } else if (shell_is_refused(how)) {
        log_line(LOG_ERROR, "Job %s: %s", t->job, how->message);
        shell_job_refused(s, j);
    } else {
        job_again(s, j, how);
    }
}

static void job_create(node_shell *s, shell_place *p, const node_view *v, const package_view *of,
                       const node_files *files)
{
    const shell_change *c = p->change;
    const skyhook *of_change = c->document->object.skyhook;
    const package *wanted = skyhook_package(of_change, of->name);
    if (!wanted || !str_eq(wanted->version, of->version) || of->overtaken) {
        shell_stage_not_begun(s, p, of); /* an edit took it away before its Job was made */
        return;
    }
    job_order order = {.skyhook = of_change,
                       .package = wanted,
                       .stage = of->stage,
                       .node = str_of(p->node->name),
                       .node_uid = shell_text(p->node->uid),
                       .attempt = of->attempt,
                       .generation = of->generation,
                       .node_order = v->order,
                       .interrupt = of->interrupt,
                       .files = files};
    job_key key = job_order_key(&order);
    char collection[COLLECTION_BYTES];
    err error;
    buf name = BUF(LIMIT_NAME_BYTES), body = BUF(JOB_BYTES_MAX);
    job_name(&name, &key);
    bool good = job_object_put(&body, &s->settings.job, &order, &error);
    shell_job *j = shell_job_new(s, buf_str(&name), &key);
    kube_write w = {.verb = WRITE_CREATE,
                    .collection = collection_of(s, "/apis/batch/v1", "jobs", collection),
                    .name = buf_str(&name),
                    .row = true, /* the rest is what was sent */
                    .body = buf_str(&body)};
    if (j)
        j->after = p->node->revision;
    if (!good && j) {
        log_line(LOG_ERROR, "Job %.*s: %s", STR_ARG(buf_str(&name)), error.text);
        shell_job_refused(s, j);
    } else if (j && shell_send(s, &w, (shell_ticket){.done = job_created, .job = name.ptr})) {
        s->creating++;
    } else if (j) {
        shell_job_forget(s, j);
        job_hold(s, p, "its Job waits behind too many writes");
    }
    s->counts.jobs += good && j;
    buf_done(&name);
    buf_done(&body);
}

/* ---- ConfigMaps ---- */

static bool send_map(node_shell *s, const buf *name, const buf *body, shell_ticket ticket)
{
    char collection[COLLECTION_BYTES];
    kube_write w = {.verb = WRITE_APPLY,
                    .collection = collection_of(s, "/api/v1", "configmaps", collection),
                    .name = buf_str(name),
                    .manager = STR("drover"),
                    .force = true,
                    .anyhow = true,
                    .body = buf_str(body)};
    bool sent = !body->failed && shell_send(s, &w, ticket);
    s->counts.maps += sent;
    return sent;
}

/* ---- what a package may know about its node ---- */

static void node_map_written(node_shell *s, const shell_ticket *t, const write_outcome *how,
                             yyjson_val *json)
{
    (void)json;
    shell_place *p = shell_find_place(s, str_of(t->skyhook), str_of(t->node));
    if (!p)
        return;
    p->map_sending = false;
    p->map_written = how->kind == WRITE_DONE;
    p->map_refused = shell_is_refused(how);
    if (how->kind == WRITE_DONE)
        return;
    log_line(LOG_WARN, "ConfigMap of node %s: %s", t->node, how->message);
    if (!p->map_refused)
        job_hold(s, p, "the ConfigMap about its node cannot be written");
}

static char *kept_map(node_shell *s, yyjson_val *json, const char *key,
                      void (*put)(buf *out, label_set map))
{
    arena_place mark = arena_mark(s->scratch);
    buf text = BUF(SHELL_TEXT_BYTES);
    put(&text, read_labels(s->scratch, read_at(json, "metadata", key), STR_EMPTY));
    char *kept = text.failed ? NULL : shell_copy(s, buf_str(&text));
    if (!kept)
        shell_memory(s);
    buf_done(&text);
    arena_rewind(s->scratch, mark);
    return kept;
}

void place_told(node_shell *s, shell_place *p, yyjson_val *json)
{
    if (p->labels)
        return;
    p->annotations = kept_map(s, json, "annotations", node_annotations_put);
    p->labels = kept_map(s, json, "labels", node_labels_put);
}

static void node_read(node_shell *s, const shell_ticket *t, const write_outcome *how,
                      yyjson_val *json)
{
    shell_place *p = shell_find_place(s, str_of(t->skyhook), str_of(t->node));
    if (!p)
        return;
    p->map_sending = false;
    if (how->kind != WRITE_DONE || !json) {
        job_hold(s, p, "its node cannot be read");
        return;
    }
    place_told(s, p, json);
}

/* Once a claim, from the node as it is then: of a node's labels and annotations nothing else is
 * kept. The answer to the patch that begins the claim has told it, unless that was another
 * process'. */
static bool node_is_read(node_shell *s, shell_place *p)
{
    if (p->labels || p->map_sending)
        return p->labels && !p->map_sending;
    kube_write w = {
        .verb = WRITE_READ, .collection = STR("/api/v1/nodes"), .name = str_of(p->node->name)};
    p->map_sending = shell_send(
        s, &w, (shell_ticket){.done = node_read, .node = p->node->name, .skyhook = p->skyhook});
    if (!p->map_sending)
        job_hold(s, p, "its Job waits behind too many writes");
    return false;
}

/* The Job carries the files, if it can; else they are written into a ConfigMap, once a claim. */
static bool node_files_ready(node_shell *s, shell_place *p, const node_files *files)
{
    if (job_carries(files) || p->map_written || p->map_sending)
        return !p->map_sending;
    buf name = BUF(LIMIT_NAME_BYTES), body = BUF(SHELL_TEXT_BYTES);
    node_config_map_name(&name, str_of(p->skyhook), str_of(p->node->name));
    node_config_map_put(&body, &s->settings.job, p->change->document->object.skyhook,
                        str_of(p->node->name), files);
    p->map_sending = send_map(
        s, &name, &body,
        (shell_ticket){.done = node_map_written, .node = p->node->name, .skyhook = p->skyhook});
    buf_done(&name);
    buf_done(&body);
    return false;
}

/* ---- all of it ---- */

/* False: something that it needs is not there yet. */
static bool job_begin(node_shell *s, shell_place *p, const node_view *v, const package_view *of)
{
    if (of->interrupt.len > 0) { /* which is told nothing */
        job_create(s, p, v, of, NULL);
        return true;
    }
    if (!node_is_read(s, p))
        return false;
    buf packages = BUF(SHELL_TEXT_BYTES);
    node_packages_put(&packages, &s->settings.job, p->change->document->object.skyhook);
    if (packages.failed)
        shell_memory(s);
    if (p->map_refused) {
        p->map_refused = false;
        shell_stage_failed(s, p, of, STR("ConfigMapRefused"));
        buf_done(&packages);
        return true;
    }
    node_files files = {str_of(p->annotations), str_of(p->labels), buf_str(&packages)};
    bool ready = node_files_ready(s, p, &files);
    if (ready)
        job_create(s, p, v, of, job_carries(&files) ? &files : NULL);
    buf_done(&packages);
    return ready;
}

/* Whether something else must happen before the stage's Job is created; people are told what. */
static bool is_hindered(node_shell *s, shell_place *p, const package_view *of)
{
    const char *why = NULL;
    if (p->held_until_ms > s->now_ms)
        return true;
    beside runs = shell_runs_beside(s, p, of->interrupt.len > 0);
    if (!package_maps_ready(s, p->change))
        why = p->change->maps_sending > 0 ? "" : "a ConfigMap of its packages cannot be written";
    else if (runs == BESIDE_SOMETHING)
        why = "a Job or pod of an earlier attempt has not ended there";
    else if (runs == BESIDE_UNSURE)
        why = "";
    s->asks_pods |= runs == BESIDE_UNSURE;
    if (why && why[0] != '\0' && !p->hindered)
        shell_tell_kept(s, p, why, true);
    else if (!why && p->hindered)
        shell_tell_kept(s, p, NULL, true);
    return why;
}

/* False: it is not its turn to drain. One that had a turn before waits for the pods it found then.
 */
static bool drain_turn(node_shell *s, shell_place *p, bool had_one)
{
    if (p->held_until_ms > s->now_ms)
        return false;
    bool begun = drain_begin(s, p->node);
    if (begun && !had_one)
        drain_tell_begun(s, p->node);
    if (!begun && !had_one && !p->hindered)
        shell_tell_kept(s, p, "its drain waits for its turn: many nodes drain already", true);
    else if (begun && p->hindered)
        shell_tell_kept(s, p, NULL, true);
    return begun;
}

/* It was to begin, and may not any more. */
static void job_give_up(node_shell *s, shell_place *p, const package_view *of)
{
    if (p->hindered)
        shell_tell_kept(s, p, NULL, true);
    shell_stage_not_begun(s, p, of);
}

bool jobs_run(node_shell *s, shell_place *p)
{
    shell_change *c = p->change;
    if (!c || !c->known)
        return true;
    /* What is not durable yet is not acted upon, nor is anything while a person's wish is not. */
    if (c->acts || p->dirty || p->sent || p->claim > c->durable_epoch)
        return false;
    if (s->creating >= SHELL_CREATING_MAX)
        return false; /* an answer leads to the next turn */
    arena_place mark = arena_mark(s->scratch);
    node_view v;
    bool done = true;
    if (!engine_node(s->engine, str_of(p->skyhook), str_of(p->node->name), s->scratch, &v))
        v = (node_view){0};
    if (v.draining)
        done = drain_turn(s, p, v.drain_since_ms != 0);
    for (size_t i = 0; i < v.package_count; i++) {
        const package_view *of = &v.packages[i];
        if (!of->running || shell_attempt_has_job(s, p, of))
            continue;
        if (v.stopped && p->held_until_ms <= s->now_ms) {
            job_give_up(s, p, of);
            continue;
        }
        if (is_hindered(s, p, of) || !job_begin(s, p, &v, of)) {
            done = false;
            break;
        }
    }
    arena_rewind(s->scratch, mark);
    return done;
}
