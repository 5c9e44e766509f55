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

void hub_contents_seen(cluster_shell *s, yyjson_val *json)
{
    yyjson_val *meta = yyjson_obj_get(json, "metadata");
    char revision_text[SHELL_VERSION_BYTES];
    hub_content *c = content_of(s, read_text(meta, "name"));
    if (!c)
        return;
    c->revision = read_revision(json, revision_text);
    c->created_ms = read_time_ms(read_text(meta, "creationTimestamp"));
    c->there = yyjson_obj_get(meta, "deletionTimestamp") == NULL;
    s->contents_stale = true;
}

static void forget(cluster_shell *s, hub_content *c)
{
    strmap_remove(&s->contents, str_of(c->name));
    hub_content_free(c);
}

void hub_contents_gone(cluster_shell *s, str name)
{
    hub_content *c = hub_find(&s->contents, name);
    if (!c)
        return;
    forget(s, c);
    HUB_EACH(&s->bundles, hub_bundle, b)
    {
        /* Clusters may have to read it still. */
        if (b->known && str_eq(hub_text(b->content), name) && b->deployments > 0)
            hub_content_ready(s, b);
    }
}

/* ---- making ---- */

static void made(cluster_shell *s, const hub_ticket *t, const write_outcome *how, yyjson_val *json)
{
    hub_content *c = hub_find(&s->contents, str_of(t->bundle));
    if (!c || c->there)
        return;
    if (how->kind == WRITE_DONE && json) {
        hub_contents_seen(s, json);
    } else if (how->kind == WRITE_EXISTS || how->kind == WRITE_DONE) {
        c->there = true;
        c->created_ms = s->now_ms;
    } else {
        log_line(LOG_WARN, "Content %s: %s", c->name, how->message);
        c->deleting = false;
        c->held_until_ms = s->now_ms + HUB_REFUSED_MS;
    }
}

bool hub_content_ready(cluster_shell *s, hub_bundle *b)
{
    if (hub_text(b->content).len == 0)
        return true;
    hub_content *c = hub_find(&s->contents, str_of(b->content));
    if (c && c->there)
        return true;
    if (c && c->held_until_ms == 0)
        return false; /* under way */
    if (c && c->held_until_ms > s->now_ms)
        return false;
    c = content_of(s, str_of(b->content));
    if (!c)
        return false;
    c->held_until_ms = 0;
    err error;
    buf body = BUF(LIMIT_TEXT_BYTES);
    bool good = content_put(&body, b->document->object.bundle->spec.resources, &error);
    kube_write w = {.verb = WRITE_CREATE,
                    .collection = str_of(hub_kind_path(HUB_CONTENT)),
                    .name = str_of(b->content),
                    .body = buf_str(&body)};
    if (!good)
        hub_bundle_refuse(s, b, error.text);
    if (good && hub_send(s, &w, (hub_ticket){.done = made, .bundle = b->content}))
        s->counts.contents++;
    else
        c->held_until_ms = s->now_ms + HUB_REFUSED_MS;
    buf_done(&body);
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
    if (how->kind == WRITE_DONE || how->kind == WRITE_GONE)
        forget(s, c);
}

static void mark_used(strmap *used, cluster_shell *s, str name)
{
    if (name.len > 0 && !strmap_put(used, name, 1))
        hub_memory(s);
}

static void delete_content(cluster_shell *s, hub_content *c)
{
    char revision_text[SHELL_VERSION_BYTES];
    snprintf(revision_text, sizeof revision_text, "%llu", (unsigned long long)c->revision);
    kube_write w = {.verb = WRITE_DELETE,
                    .collection = str_of(hub_kind_path(HUB_CONTENT)),
                    .name = str_of(c->name),
                    .version = str_of(revision_text)};
    c->deleting = hub_send(s, &w, (hub_ticket){.done = deleted, .bundle = c->name});
    s->counts.contents += c->deleting;
}

void hub_contents_step(cluster_shell *s)
{
    if (!s->contents_stale &&
        (s->contents_due_ms == REASON_NEVER || s->contents_due_ms > s->now_ms))
        return;
    s->contents_stale = false;
    s->contents_due_ms = REASON_NEVER;
    strmap used = {0};
    for (size_t i = 0; i < s->versions.len; i++) {
        str id = s->versions.entries[i].key;
        mark_used(&used, s, str_cut(&id, ':'));
    }
    HUB_EACH(&s->bundles, hub_bundle, b)
    if (b->known)
        mark_used(&used, s, hub_text(b->content));
    HUB_EACH(&s->contents, hub_content, c)
    {
        if (s->no_memory || !c->there || c->deleting || strmap_get(&used, str_of(c->name)))
            continue;
        int64_t due = c->created_ms + HUB_CONTENT_GRACE_MS;
        if (due <= s->now_ms)
            delete_content(s, c);
        else if (s->contents_due_ms == REASON_NEVER || due < s->contents_due_ms)
            s->contents_due_ms = due;
    }
    strmap_done(&used);
}
