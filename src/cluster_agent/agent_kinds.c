/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"
#include "base/mem.h"
#include "cluster_agent/agent_internal.h"

/* ---- the kinds of objects ---- */

/* The collection over all namespaces: "/apis/apps/v1/namespaces/shop/deployments" without its
 * middle. */
static void whole_path(str collection, buf *out)
{
    str word = STR("/namespaces/");
    size_t at = str_find(collection, word);
    str rest = at == SIZE_MAX ? STR_EMPTY : str_part(collection, at + word.len, SIZE_MAX);
    size_t end = str_find(rest, STR("/"));
    if (at == SIZE_MAX || end == SIZE_MAX) {
        buf_add(out, collection);
        return;
    }
    buf_add(out, str_part(collection, 0, at));
    buf_add(out, str_part(rest, end, SIZE_MAX));
}

agent_kind *agent_kind_free(agent_kind *k)
{
    if (!k)
        return NULL;
    for (size_t i = 0; i < k->objects.len; i++)
        mem_free((void *)(uintptr_t)k->objects.entries[i].key.ptr);
    strmap_done(&k->objects);
    mem_free(k->path);
    return mem_free(k);
}

/* One that is about to be watched no more: what was found of it now is told in a moment. */
static void stay(agent_kind *k)
{
    if (k->idle_ms != INT64_MAX)
        k->idle_ms = k->shell->api.now_ms(k->shell->api.context);
}

void agent_kind_follow(agent_shell *s, str collection)
{
    scoped(buf_done) buf path = BUF(AGENT_PATH_BYTES_MAX);
    whole_path(collection, &path);
    if (path.failed) {
        s->no_memory = true;
        return;
    }
    for (size_t i = 0; i < s->kinds.len; i++)
        if (str_eq(str_of(s->kinds.at[i]->path), buf_str(&path))) {
            stay(s->kinds.at[i]);
            return;
        }
    agent_kind *k = mem_zalloc(sizeof *k);
    if (k)
        *k = (agent_kind){.shell = s, .path = agent_copy(s, buf_str(&path)), .idle_ms = INT64_MAX};
    buf_addz(&path, "?labelSelector=drover.dev%2Fdeployment");
    if (!k || !k->path || path.failed || !vec_push(&s->kinds, k)) {
        s->no_memory = true;
        agent_kind_free(k);
        return;
    }
    s->api.follow(s->api.context, k, buf_str(&path));
}

void agent_kinds_step(agent_shell *s, int64_t now_ms)
{
    for (size_t i = s->kinds.len; i-- > 0;) {
        agent_kind *k = s->kinds.at[i];
        if (k->idle_ms == INT64_MAX)
            continue;
        int64_t until = k->idle_ms + AGENT_KIND_IDLE_MS;
        if (now_ms >= until) {
            s->api.unfollow(s->api.context, k);
            agent_kind_free(k);
            s->kinds.at[i] = s->kinds.at[--s->kinds.len];
        } else if (until < s->next_ms) {
            s->next_ms = until;
        }
    }
}

bool agent_kinds_watched(const agent_shell *s)
{
    for (size_t i = 0; i < s->kinds.len; i++)
        if (!s->kinds.at[i]->synced)
            return false;
    return true;
}

static void look(agent_shell *s, uint64_t owner)
{
    for (size_t i = 0; i < s->entries.len; i++) {
        agent_entry *e = s->entries.at[i];
        if (e->owner != owner)
            continue;
        steps_look(e->steps);
        agent_entry_wake(e);
    }
}

bool agent_shell_object_seen(agent_shell *s, agent_kind *kind, yyjson_val *json)
{
    scoped(buf_done) buf key = BUF(AGENT_PATH_BYTES_MAX);
    str space = agent_text_at(json, "metadata", "namespace"),
        name = agent_text_at(json, "metadata", "name");
    uint64_t owner = str_hash(agent_owner_of(json));
    buf_addf(&key, "%.*s/%.*s", STR_ARG(space), STR_ARG(name));
    uint64_t *known = key.failed ? NULL : strmap_get(&kind->objects, buf_str(&key));
    if (known) {
        *known = owner;
    } else {
        char *kept = key.failed ? NULL : agent_copy(s, buf_str(&key));
        if (!kept || !strmap_put(&kind->objects, str_of(kept), owner)) {
            mem_free(kept);
            return false;
        }
    }
    kind->idle_ms = INT64_MAX;
    look(s, owner);
    return !s->no_memory;
}

void agent_shell_object_gone(agent_shell *s, agent_kind *kind, str space, str name)
{
    scoped(buf_done) buf key = BUF(AGENT_PATH_BYTES_MAX);
    buf_addf(&key, "%.*s/%.*s", STR_ARG(space), STR_ARG(name));
    for (size_t i = 0; i < kind->objects.len && !key.failed; i++) {
        str kept = kind->objects.entries[i].key;
        if (!str_eq(kept, buf_str(&key)))
            continue;
        look(s, kind->objects.entries[i].value);
        strmap_remove(&kind->objects, buf_str(&key));
        mem_free((void *)(uintptr_t)kept.ptr);
        break;
    }
    if (kind->objects.len == 0 && kind->synced)
        kind->idle_ms = s->api.now_ms(s->api.context);
}

void agent_shell_object_synced(agent_shell *s, agent_kind *kind)
{
    kind->synced = true;
    kind->idle_ms = kind->objects.len == 0 ? s->api.now_ms(s->api.context) : INT64_MAX;
    s->due = true;
}

/* ---- the cluster's kinds ---- */

/* What is not served any more is not watched either. */
static void leave_unserved(agent_shell *s)
{
    for (size_t i = 0; i < s->kinds.len; i++)
        if (!discovery_has(s->discovery, str_of(s->kinds.at[i]->path)))
            s->kinds.at[i]->idle_ms = s->api.now_ms(s->api.context) - AGENT_KIND_IDLE_MS;
    s->due = true;
}

static void kinds_read(agent_shell *s, step_outcome outcome, str message)
{
    step_answer answer = {.outcome = outcome, .text = STR_EMPTY, .message = message};
    if (outcome == OUTCOME_OK && !s->reading.partly) {
        discovery_end(s->discovery);
        leave_unserved(s);
    }
    s->reading.running = false;
    buf_done(&s->reading.paths);
    s->reading = (agent_discovery){.paths = BUF(AGENT_PATHS_BYTES_MAX)};
    for (size_t i = 0; i < s->entries.len; i++)
        if (s->entries.at[i]->discovers)
            agent_entry_answer(s->entries.at[i], &answer);
}

static void read_next_kinds(agent_shell *s);

/* A group whose server is away does not keep the others from being known. */
static void kinds_answered(void *context, const write_outcome *how, yyjson_val *json)
{
    agent_shell *s = context;
    err error = {0};
    bool good = how->kind == WRITE_DONE;
    if (good && !discovery_read(s->discovery, json, &error))
        good = discovery_paths(json, &s->reading.paths, &error);
    else if (!good)
        err_set(&error, "%s", how->message);
    if (!good && (how->kind == WRITE_LATER || how->kind == WRITE_AMBIGUOUS))
        kinds_read(s, OUTCOME_LATER, str_of(error.text));
    else if (!good)
        log_line(LOG_WARN, "kinds of the cluster: %s", error.text);
    s->reading.partly |= !good;
    if (s->reading.running)
        read_next_kinds(s);
}

static void read_next_kinds(agent_shell *s)
{
    str all = buf_str(&s->reading.paths), rest = str_part(all, s->reading.at, SIZE_MAX);
    str path = str_cut(&rest, '\n');
    err error;
    s->reading.at += path.len + 1;
    kube_write w = {.verb = WRITE_READ,
                    .collection = path,
                    .name = STR_EMPTY,
                    .subresource = STR_EMPTY,
                    .accept = DISCOVERY_ACCEPT};
    if (path.len == 0)
        kinds_read(s, OUTCOME_OK, STR_EMPTY);
    else if (!s->api.send(s->api.context, AGENT_OWN, &w, (write_handler){s, kinds_answered, NULL},
                          &error))
        kinds_read(s, OUTCOME_LATER, str_of(error.text));
}

void agent_kinds_read(agent_shell *s)
{
    if (s->reading.running)
        return;
    s->reading = (agent_discovery){.running = true, .paths = BUF(AGENT_PATHS_BYTES_MAX)};
    discovery_begin(s->discovery);
    buf_addz(&s->reading.paths, DISCOVERY_CORE_PATH "\n" DISCOVERY_GROUPS_PATH "\n");
    read_next_kinds(s);
}
