/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "base/log.h"
#include "base/mem.h"
#include "cluster_agent/agent_internal.h"
#include "engine/go_json.h"
#include "model/json.h"

#define CONFIG_MAPS "configmaps"

/* ---- texts ---- */

char *agent_copy(agent_shell *s, str text)
{
    char *made = mem_alloc(text.len + 1);
    if (!made) {
        s->no_memory = true;
        return NULL;
    }
    if (text.len > 0)
        memcpy(made, text.ptr, text.len);
    made[text.len] = '\0';
    return made;
}

str agent_text_at(const yyjson_val *of, const char *inner, const char *name)
{
    str found = go_str(go_member(go_member(of, str_of(inner)), str_of(name)));
    return found.ptr ? found : STR_EMPTY;
}

str agent_owner_of(const yyjson_val *json)
{
    return agent_text_at(go_member(json, STR("metadata")), "labels", LABEL_OWNER);
}

/* ---- entries ---- */

static agent_entry *entry_find(const agent_shell *s, str name)
{
    for (size_t i = 0; i < s->entries.len; i++)
        if (str_eq(str_of(s->entries.at[i]->name), name))
            return s->entries.at[i];
    return NULL;
}

static agent_entry *entry_free(agent_entry *e)
{
    if (!e)
        return NULL;
    steps_free(e->steps);
    yyjson_doc_free(e->deployment);
    mem_free(e->told);
    mem_free(e->collection);
    mem_free(e->name);
    return mem_free(e);
}

static agent_entry *entry_of(agent_shell *s, str name)
{
    agent_entry *e = entry_find(s, name);
    if (e)
        return e;
    scoped(arena_cleanup) arena *a = arena_new(0);
    str owner = a ? owner_label(a, name) : (str){NULL, 0};
    e = owner.ptr ? mem_zalloc(sizeof *e) : NULL;
    if (!e) {
        s->no_memory = true;
        return NULL;
    }
    *e = (agent_entry){.shell = s, .name = agent_copy(s, name), .owner = str_hash(owner)};
    e->steps = steps_new(name);
    if (e->name && e->steps && vec_push(&s->entries, e))
        return e;
    s->no_memory = true;
    return entry_free(e);
}

void agent_entry_wake(agent_entry *e)
{
    e->due_ms = 0;
    e->shell->due = true;
}

static void entry_forget(agent_shell *s, size_t at)
{
    log_line(LOG_INFO, "%s: nothing is left of it", s->entries.at[at]->name);
    entry_free(s->entries.at[at]);
    s->entries.at[at] = s->entries.at[--s->entries.len];
}

/* ---- answers ---- */

static steps_world world_of(const agent_entry *e)
{
    const agent_shell *s = e->shell;
    return (steps_world){.discovery = s->discovery,
                         .agent_namespace = s->settings.agent_namespace,
                         .deployments = s->deployments.at,
                         .deployment_count = s->deployments.len,
                         .now_ms = s->api.now_ms(s->api.context),
                         .time = s->api.time(s->api.context),
                         .watched = !e->unlabelled && agent_kinds_watched(s)};
}

void agent_entry_answer(agent_entry *e, const step_answer *answer)
{
    agent_shell *s = e->shell;
    steps_world world = world_of(e);
    bool bad = answer->outcome == OUTCOME_INVALID || answer->outcome == OUTCOME_REFUSED;
    if (bad)
        log_line(LOG_WARN, "%s: %s: %.*s", e->name, step_kind_text(e->kind),
                 STR_ARG(answer->message));
    e->running = e->discovers = false;
    s->steps_done++;
    steps_answer(e->steps, &world, answer);
    agent_entry_wake(e);
}

static step_outcome outcome_of(const write_outcome *how)
{
    switch (how->kind) {
    case WRITE_DONE: return OUTCOME_OK;
    case WRITE_EXISTS:
    case WRITE_CONFLICT: return OUTCOME_CONFLICT;
    case WRITE_GONE: return how->no_path ? OUTCOME_NOWHERE : OUTCOME_MISSING;
    case WRITE_REFUSED:
        if (how->status == 404) /* of a create: its namespace, or its kind */
            return how->no_path ? OUTCOME_NOWHERE : OUTCOME_MISSING;
        /* 500: see write_judge. */
        return how->status == 400 || how->status == 422 || how->status == 500 ? OUTCOME_INVALID
                                                                              : OUTCOME_REFUSED;
    case WRITE_BLOCKED:
    case WRITE_LATER:
    case WRITE_AMBIGUOUS:
    case WRITE_BARRED: return OUTCOME_LATER;
    }
    return OUTCOME_LATER;
}

/* From now on somebody tells when it changes; but what helm made has no label to watch for. A
 * namespace that others may use, too, has none either, and does not change. */
static void object_answered(agent_entry *e, const yyjson_val *json)
{
    str at = e->collection ? str_of(e->collection) : STR_EMPTY;
    if (agent_owner_of(json).len > 0)
        agent_kind_follow(e->shell, at);
    else if (!str_eq(at, STR("/api/v1/namespaces")))
        e->unlabelled = true;
}

static void answered(void *context, const write_outcome *how, yyjson_val *json)
{
    agent_entry *e = context;
    step_answer answer = {.outcome = outcome_of(how),
                          .json = how->kind == WRITE_DONE ? json : NULL,
                          .text = STR_EMPTY,
                          .message = str_of(how->message)};
    if (answer.json && (e->kind == STEP_APPLY_OBJECT || e->kind == STEP_READ_OBJECT))
        object_answered(e, answer.json);
    agent_entry_answer(e, &answer);
}

static void chart_answered(void *context, const step_answer *answer)
{
    agent_entry_answer(context, answer);
}

/* ---- carrying steps out ---- */

static void refuse(agent_entry *e, step_outcome outcome, const char *why)
{
    step_answer answer = {.outcome = outcome, .text = STR_EMPTY, .message = str_of(why)};
    agent_entry_answer(e, &answer);
}

/* The request of a step that is one; false: it is none. */
static bool step_write(const step *t, agent_side *side, kube_write *w)
{
    *side = AGENT_OWN;
    switch (t->kind) {
    case STEP_READ_CONTENT:
    case STEP_READ_VALUES: *side = AGENT_HUB; return w->verb = WRITE_READ, true;
    case STEP_READ_INVENTORY:
    case STEP_READ_GATE:
    case STEP_READ_OBJECT: return w->verb = WRITE_READ, true;
    case STEP_REPORT:
        *side = AGENT_HUB;
        w->verb = WRITE_MERGE;
        w->subresource = STR("status");
        w->anyhow = true;
        return true;
    case STEP_WRITE_INVENTORY:
        w->verb = t->version.len > 0 ? WRITE_UPDATE : WRITE_CREATE;
        return true;
    case STEP_APPLY_OBJECT:
    case STEP_TRY_OBJECT:
        w->verb = WRITE_APPLY;
        w->anyhow = true;
        w->tried = t->kind == STEP_TRY_OBJECT;
        return true;
    case STEP_MARK_OBJECT: return w->verb = WRITE_MERGE, true;
    case STEP_DELETE_INVENTORY:
    case STEP_DELETE_OBJECT:
        w->verb = WRITE_DELETE;
        w->propagation = WRITE_BACKGROUND;
        return true;
    case STEP_WAIT:
    case STEP_DISCOVER:
    case STEP_TRY_CHART:
    case STEP_INSTALL_CHART:
    case STEP_READ_CHART:
    case STEP_REMOVE_CHART:
    case STEP_FORGET: return false;
    }
    return false;
}

static str or_empty(str text)
{
    return text.ptr ? text : STR_EMPTY;
}

static void carry_out(agent_entry *e, const step *t)
{
    agent_shell *s = e->shell;
    err error = {0};
    agent_side side;
    kube_write w = {.collection = or_empty(t->collection),
                    .name = or_empty(t->name),
                    .subresource = STR_EMPTY,
                    .body = or_empty(t->body),
                    .version = or_empty(t->version),
                    .uid = or_empty(t->uid),
                    .manager = or_empty(t->manager),
                    .user = or_empty(t->user),
                    .force = t->force};
    e->running = true;
    e->kind = t->kind;
    mem_free(e->collection);
    e->collection = agent_copy(s, w.collection);
    if (step_write(t, &side, &w)) {
        if (!s->api.send(s->api.context, side, &w, (write_handler){e, answered, NULL}, &error))
            refuse(e, OUTCOME_INVALID, error.text);
    } else if (t->kind == STEP_DISCOVER) {
        e->discovers = true;
        agent_kinds_read(s);
    } else if (!s->api.chart(s->api.context, t, (chart_handler){e, chart_answered}, &error)) {
        refuse(e, OUTCOME_REFUSED, error.text);
    }
}

static void tell_wait(agent_entry *e, str why)
{
    str before = e->told ? str_of(e->told) : STR_EMPTY;
    if (str_eq(before, or_empty(why)))
        return;
    mem_free(e->told);
    e->told = agent_copy(e->shell, or_empty(why));
    if (why.len > 0)
        log_line(LOG_INFO, "%s: %.*s", e->name, STR_ARG(why));
}

/* Whoever waits until nobody unpacks is woken, if it was this one that did. */
static void unpacks_no_more(const agent_entry *e)
{
    agent_shell *s = e->shell;
    if (s->unpacks != e)
        return;
    s->unpacks = NULL;
    for (size_t i = 0; i < s->entries.len; i++)
        if (s->entries.at[i]->queues)
            agent_entry_wake(s->entries.at[i]);
}

/* Contents are unpacked one after the other. False: e is woken when it may go on. */
static bool may_go_on(agent_entry *e, step_kind next)
{
    agent_shell *s = e->shell;
    e->queues = next == STEP_READ_CONTENT && s->unpacks && s->unpacks != e;
    if (next == STEP_READ_CONTENT && !s->unpacks)
        s->unpacks = e;
    if (next != STEP_READ_CONTENT && !steps_unpacking(e->steps))
        unpacks_no_more(e);
    return !e->queues;
}

/* True: it is to be forgotten. */
static bool entry_step(agent_entry *e)
{
    agent_shell *s = e->shell;
    steps_world world = world_of(e);
    while (!e->running && !s->no_memory) {
        step next = steps_next(e->steps, &world);
        if (!may_go_on(e, next.kind)) {
            e->due_ms = INT64_MAX;
            break;
        }
        if (next.kind == STEP_FORGET)
            return true;
        if (next.kind == STEP_WAIT) {
            tell_wait(e, next.why);
            e->due_ms = next.due_ms;
            break;
        }
        carry_out(e, &next);
    }
    return false;
}

/* ---- what comes in ---- */

void agent_watch_path(const agent_shell *s, agent_watch watch, buf *out)
{
    switch (watch) {
    case AGENT_WATCH_DEPLOYMENTS:
        buf_addf(out, AGENT_GROUP_FLEET "/namespaces/%.*s/bundledeployments",
                 STR_ARG(s->settings.home));
        break;
    case AGENT_WATCH_INVENTORIES:
        buf_addf(out,
                 "/api/v1/namespaces/%.*s/" CONFIG_MAPS "?labelSelector=drover.dev%%2Finventory",
                 STR_ARG(s->settings.agent_namespace));
        break;
    }
}

static bool deployment_seen(agent_shell *s, yyjson_val *json)
{
    agent_entry *e = entry_of(s, agent_text_at(json, "metadata", "name"));
    yyjson_mut_doc *made = e ? yyjson_mut_doc_new(&json_memory) : NULL;
    yyjson_mut_val *root = made ? yyjson_val_mut_copy(made, json) : NULL;
    yyjson_mut_doc_set_root(made, root);
    yyjson_doc *kept = root ? yyjson_mut_doc_imut_copy(made, &json_memory) : NULL;
    yyjson_mut_doc_free(made);
    if (!kept)
        return false;
    yyjson_doc_free(e->deployment);
    e->deployment = kept;
    if (e->leave == AGENT_LEFT)
        s->hub.ask_ms = 0; /* a Cluster that was made anew may have waited for it */
    e->leave = AGENT_STAYS;
    e->unlabelled = false;
    agent_entry_wake(e);
    return steps_see(e->steps, yyjson_doc_get_root(kept));
}

/* What the hub has no deployment of is told once both are known. */
static bool inventory_seen(agent_shell *s, yyjson_val *json)
{
    scoped(arena_cleanup) arena *a = arena_new(0);
    inventory found;
    err error = {0};
    if (!a)
        return false;
    if (inventory_read(a, json, &found, &error))
        return entry_of(s, found.deployment);
    if (err_is_memory(&error))
        return false;
    log_line(LOG_WARN, "%.*s: %s", STR_ARG(agent_text_at(json, "metadata", "name")), error.text);
    return true;
}

bool agent_shell_seen(agent_shell *s, agent_watch watch, yyjson_val *json)
{
    bool good = true;
    s->due = true;
    switch (watch) {
    case AGENT_WATCH_DEPLOYMENTS: good = deployment_seen(s, json); break;
    case AGENT_WATCH_INVENTORIES: good = s->synced[watch] || inventory_seen(s, json); break;
    }
    return good && !s->no_memory;
}

static void entry_left(agent_entry *e)
{
    e->leave = AGENT_LEFT;
    e->left_at = e->shell->hub.sent;
    agent_hub_hurry(e->shell);
}

void agent_shell_gone(agent_shell *s, agent_watch watch, str name)
{
    agent_entry *e = watch == AGENT_WATCH_DEPLOYMENTS ? entry_find(s, name) : NULL;
    if (!e || !e->deployment)
        return;
    yyjson_doc_free(e->deployment);
    e->deployment = NULL;
    entry_left(e);
}

bool agent_shell_left(const agent_shell *s)
{
    for (size_t i = 0; i < s->entries.len; i++)
        if (s->entries.at[i]->leave == AGENT_LEFT)
            return true;
    return false;
}

void agent_shell_confirm(agent_shell *s, uint64_t beat)
{
    for (size_t i = 0; i < s->entries.len; i++) {
        agent_entry *e = s->entries.at[i];
        if (e->leave != AGENT_LEFT || e->left_at >= beat)
            continue;
        e->leave = AGENT_GONE;
        steps_gone(e->steps);
        agent_entry_wake(e);
    }
}

void agent_shell_synced(agent_shell *s, agent_watch watch)
{
    s->synced[watch] = true;
    agent_shell_begin(s);
}

void agent_shell_begin(agent_shell *s)
{
    s->due = true;
    if (!agent_shell_ready(s))
        return;
    for (size_t i = 0; i < s->entries.len; i++)
        if (!s->entries.at[i]->deployment && s->entries.at[i]->leave == AGENT_STAYS)
            entry_left(s->entries.at[i]);
    if (agent_shell_left(s))
        agent_hub_hurry(s);
}

bool agent_shell_ready(const agent_shell *s)
{
    return s->synced[AGENT_WATCH_DEPLOYMENTS] && s->synced[AGENT_WATCH_INVENTORIES] && s->hub.known;
}

const char *agent_shell_trouble(const agent_shell *s)
{
    return s->hub.trouble[0] ? s->hub.trouble : "not everything is known yet";
}

/* ---- turns ---- */

static bool list_deployments(agent_shell *s)
{
    s->deployments.len = 0;
    for (size_t i = 0; i < s->entries.len; i++) {
        yyjson_doc *one = s->entries.at[i]->deployment;
        if (one && !vec_push(&s->deployments, yyjson_doc_get_root(one)))
            return false;
    }
    return true;
}

bool agent_shell_turn(agent_shell *s)
{
    int64_t now = s->api.now_ms(s->api.context);
    s->due = false;
    s->next_ms = INT64_MAX;
    agent_hub_step(s, now);
    if (!list_deployments(s))
        return false;
    /* Nothing is done, and above all nothing removed, before both clusters are known, and the hub
     * as the one whose cluster this is. */
    for (size_t i = s->entries.len; agent_shell_ready(s) && i-- > 0;) {
        agent_entry *e = s->entries.at[i];
        if (e->leave == AGENT_LEFT) {
            if (!e->running)
                unpacks_no_more(e);
            continue;
        }
        if (!e->running && e->due_ms <= now && entry_step(e)) {
            entry_forget(s, i);
            s->due = true; /* the list of deployments is old */
            continue;
        }
        if (!e->running && e->due_ms < s->next_ms)
            s->next_ms = e->due_ms;
    }
    agent_kinds_step(s, now);
    int64_t hub_ms = agent_hub_next_ms(s);
    if (hub_ms < s->next_ms)
        s->next_ms = hub_ms;
    return !s->no_memory;
}

bool agent_shell_is_due(const agent_shell *s)
{
    return s->due;
}

int64_t agent_shell_next_ms(const agent_shell *s)
{
    return s->next_ms;
}

uint64_t agent_shell_steps(const agent_shell *s)
{
    return s->steps_done;
}

void agent_shell_metrics(const agent_shell *s, buf *out)
{
    buf_addf(out,
             "# TYPE drover_cluster_agent_deployments gauge\n"
             "drover_cluster_agent_deployments %zu\n"
             "# TYPE drover_cluster_agent_kinds_watched gauge\n"
             "drover_cluster_agent_kinds_watched %zu\n"
             "# TYPE drover_cluster_agent_steps_total counter\n"
             "drover_cluster_agent_steps_total %llu\n"
             "# TYPE drover_cluster_agent_heartbeats_total counter\n"
             "drover_cluster_agent_heartbeats_total %llu\n"
             "# TYPE drover_cluster_agent_hub_known gauge\n"
             "drover_cluster_agent_hub_known %d\n",
             s->deployments.len, s->kinds.len, (unsigned long long)s->steps_done,
             (unsigned long long)s->hub.beats, s->hub.known);
}

/* ---- beginning and end ---- */

agent_shell *agent_shell_free(agent_shell *s)
{
    if (!s)
        return NULL;
    for (size_t i = 0; i < s->entries.len; i++)
        entry_free(s->entries.at[i]);
    for (size_t i = 0; i < s->kinds.len; i++) {
        s->api.unfollow(s->api.context, s->kinds.at[i]);
        agent_kind_free(s->kinds.at[i]);
    }
    vec_done(&s->entries);
    vec_done(&s->kinds);
    vec_done(&s->deployments);
    buf_done(&s->reading.paths);
    mem_free(s->hub.uid);
    discovery_free(s->discovery);
    return mem_free(s);
}

agent_shell *agent_shell_new(const agent_shell_settings *settings, agent_api api, err *error)
{
    agent_shell *s = mem_zalloc(sizeof *s);
    if (s) {
        *s = (agent_shell){.settings = *settings, .api = api, .due = true};
        s->reading.paths = BUF(AGENT_PATHS_BYTES_MAX);
        s->discovery = discovery_new();
    }
    if (s && s->discovery)
        return s;
    err_memory(error);
    return agent_shell_free(s);
}
