/* SPDX-License-Identifier: Apache-2.0 */
/* Contents: made before anything refers to them, deleted when nothing does any more. */
#include <stdio.h>

#include "base/log.h"
#include "base/mem.h"
#include "operator/bundle_objects.h"
#include "operator/hub_internal.h"

void hub_content_free(hub_content *c)
{
    mem_free(c->name);
    mem_free(c);
}

static hub_content *content_of(cluster_shell *s, str name)
{
    hub_content *c = hub_find(&s->contents, name);
    if (c)
        return c;
    char *own;
    c = hub_record_new(s, &s->contents, name, sizeof *c, &own);
    if (!c)
        return NULL;
    c->name = own;
    return c;
}

/* It is looked at again then. */
static void wake_at(cluster_shell *s, int64_t at_ms)
{
    if (s->contents_due_ms == REASON_NEVER || at_ms < s->contents_due_ms)
        s->contents_due_ms = at_ms;
}

static void hold(cluster_shell *s, hub_content *c, content_state state)
{
    c->state = state;
    c->until_ms = s->now_ms + HUB_REFUSED_MS;
    wake_at(s, c->until_ms);
}

void hub_contents_seen(cluster_shell *s, yyjson_val *json)
{
    yyjson_val *meta = yyjson_obj_get(json, "metadata");
    char revision_text[SHELL_VERSION_BYTES];
    hub_content *c = content_of(s, read_text(meta, "name"));
    if (!c)
        return;
    c->revision = read_revision(json, revision_text);
    if (yyjson_obj_get(meta, "deletionTimestamp"))
        c->state = CONTENT_GOING;
    else if (!c->deleting)
        c->state = CONTENT_THERE;
    s->contents_stale = true;
}

/* Makes it if clusters may have to read it still. */
static void make_if_needed(cluster_shell *s, str name)
{
    HUB_EACH(&s->bundles, hub_bundle, b)
    if (b->known && str_eq(hub_text(b->content), name) && b->deployments > 0)
        hub_content_ready(s, b);
}

void hub_contents_gone(cluster_shell *s, str name)
{
    hub_content *c = hub_find(&s->contents, name);
    if (!c)
        return;
    name = arena_str(s->scratch, name); /* it may be the record's own */
    if (!name.ptr)
        hub_memory(s);
    strmap_remove(&s->contents, str_of(c->name));
    hub_content_free(c);
    make_if_needed(s, name);
}

/* ---- making ---- */

static void made(cluster_shell *s, const hub_ticket *t, const write_outcome *how, yyjson_val *json)
{
    hub_content *c = hub_find(&s->contents, str_of(t->bundle));
    if (!c || c->state != CONTENT_MAKING)
        return;
    if (how->kind == WRITE_DONE && json) {
        hub_contents_seen(s, json);
    } else if (how->kind == WRITE_EXISTS || how->kind == WRITE_DONE) {
        c->state = CONTENT_THERE;
        s->contents_stale = true;
    } else {
        log_line(LOG_WARN, "Content %s: %s", c->name, how->message);
        hold(s, c, CONTENT_HELD);
    }
}

static void make(cluster_shell *s, hub_bundle *b, hub_content *c)
{
    err error;
    buf body = BUF(LIMIT_TEXT_BYTES);
    bool good = content_put(&body, b->document->object.bundle->spec.resources, &error);
    kube_write w = {.verb = WRITE_CREATE,
                    .collection = str_of(hub_kind_path(HUB_CONTENT)),
                    .name = str_of(b->content),
                    .body = buf_str(&body)};
    if (!good)
        hub_bundle_refuse(s, b, error.text);
    c->state = CONTENT_MAKING;
    if (good && hub_send(s, &w, (hub_ticket){.done = made, .bundle = b->content}))
        s->counts.contents++;
    else
        hold(s, c, CONTENT_HELD);
    buf_done(&body);
}

bool hub_content_ready(cluster_shell *s, hub_bundle *b)
{
    if (hub_text(b->content).len == 0)
        return true;
    hub_content *c = hub_find(&s->contents, str_of(b->content));
    if (c && c->state == CONTENT_THERE)
        return true;
    bool waits =
        c && (c->state == CONTENT_MAKING || c->state == CONTENT_GOING || c->until_ms > s->now_ms);
    if (waits)
        return false;
    c = content_of(s, str_of(b->content));
    if (c)
        make(s, b, c);
    return false;
}

/* ---- what nothing refers to ---- */

static void deleted(cluster_shell *s, const hub_ticket *t, const write_outcome *how,
                    yyjson_val *json)
{
    (void)json;
    hub_content *c = hub_find(&s->contents, str_of(t->bundle));
    if (!c)
        return;
    c->deleting = false;
    if (how->kind == WRITE_DONE || how->kind == WRITE_GONE) {
        hub_contents_gone(s, str_of(t->bundle));
        return;
    }
    if (how->kind == WRITE_CONFLICT) { /* the watch tells what it is by now, or has told */
        c->state = CONTENT_THERE;
        s->contents_stale |= c->revision > t->revision;
        return;
    }
    log_line(LOG_WARN, "Content %s: %s", c->name, how->message);
    hold(s, c, CONTENT_THERE);
}

static void mark_used(strmap *used, cluster_shell *s, str name)
{
    if (name.len > 0 && !strmap_put(used, name, 1))
        hub_memory(s);
}

static void mark_all_used(strmap *used, cluster_shell *s)
{
    for (size_t i = 0; i < s->versions.len; i++) {
        str id = s->versions.entries[i].key;
        mark_used(used, s, str_cut(&id, ':'));
    }
    HUB_EACH(&s->bundles, hub_bundle, b)
    if (b->known)
        mark_used(used, s, hub_text(b->content));
}

/* From here on nobody may count on it: who needs it again waits, and makes it anew. */
static void delete_content(cluster_shell *s, hub_content *c)
{
    char revision_text[SHELL_VERSION_BYTES];
    snprintf(revision_text, sizeof revision_text, "%llu", (unsigned long long)c->revision);
    kube_write w = {.verb = WRITE_DELETE,
                    .collection = str_of(hub_kind_path(HUB_CONTENT)),
                    .name = str_of(c->name),
                    .version = str_of(revision_text)};
    c->deleting = hub_send(
        s, &w, (hub_ticket){.done = deleted, .bundle = c->name, .revision = c->revision});
    if (c->deleting)
        c->state = CONTENT_GOING;
    s->counts.contents += c->deleting;
}

/* The ten minutes begin when it is first seen that nothing refers to it. */
static void look_at(cluster_shell *s, hub_content *c, bool used)
{
    if (used)
        c->unused_ms = 0;
    else if (c->unused_ms == 0)
        c->unused_ms = s->now_ms;
    if (used || c->deleting)
        return;
    int64_t due = c->unused_ms + HUB_CONTENT_GRACE_MS;
    due = due > c->until_ms ? due : c->until_ms;
    if (due <= s->now_ms)
        delete_content(s, c);
    else
        wake_at(s, due);
}

void hub_contents_step(cluster_shell *s)
{
    if (!s->contents_stale &&
        (s->contents_due_ms == REASON_NEVER || s->contents_due_ms > s->now_ms))
        return;
    s->contents_stale = false;
    s->contents_due_ms = REASON_NEVER;
    strmap used = {0};
    mark_all_used(&used, s);
    HUB_EACH(&s->contents, hub_content, c)
    {
        if (s->no_memory)
            break;
        if (c->state == CONTENT_THERE)
            look_at(s, c, strmap_get(&used, str_of(c->name)) != NULL);
        else if (c->state == CONTENT_HELD && c->until_ms > s->now_ms)
            wake_at(s, c->until_ms);
        else if (c->state == CONTENT_HELD)
            make_if_needed(s, str_of(c->name));
    }
    strmap_done(&used);
}
