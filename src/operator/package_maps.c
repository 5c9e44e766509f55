/* SPDX-License-Identifier: Apache-2.0 */
/* The ConfigMaps of packages: what Jobs mount is as the document says before the first one of it is
 * created.
 *
 * Each is read once for every generation of the Skyhook, and written only where it differs, by the
 * version that was read: a write of an operator that no longer leads cannot put old files under a
 * name that a newer one relies on. One that somebody deletes afterwards is missed by the pods that
 * mount it, which do not begin then: so when one does not for a while, they are read again. */
#include <stdio.h>

#include "base/log.h"
#include "base/mem.h"
#include "operator/config_map.h"
#include "operator/shell_internal.h"

#define COLLECTION_BYTES (LIMIT_NAME_BYTES + 64)
#define CHANGED_MS 1000  /* somebody else wrote it: it is read again after this time */
#define UNBEGUN_MS 30000 /* that a pod may take to begin before its maps are looked at */
#define MAPS_UNREAD (-1) /* no generation */

static bool send_map(node_shell *s, kube_write w, shell_ticket ticket)
{
    char collection[COLLECTION_BYTES];
    snprintf(collection, sizeof collection, "/api/v1/namespaces/%.*s/configmaps",
             STR_ARG(s->settings.job.namespace_));
    w.collection = str_of(collection);
    bool sent = shell_send(s, &w, ticket);
    s->counts.maps += sent && w.verb != WRITE_READ;
    return sent;
}

/* One of them is as it should be, or it could not be made so before a time. */
static void map_ends(shell_change *c, int64_t generation, int64_t hold_until_ms)
{
    if (hold_until_ms > 0) {
        c->maps_failed = true;
        c->maps_held_until_ms = hold_until_ms;
    }
    if (c->maps_sending > 0 && --c->maps_sending == 0 && !c->maps_failed)
        c->maps_generation = generation;
}

static void written(node_shell *s, const shell_ticket *t, const write_outcome *how,
                    yyjson_val *json)
{
    (void)json;
    shell_change *c = shell_find_change(s, str_of(t->skyhook));
    if (!c || !str_eq(shell_text(c->uid), shell_text(t->uid)))
        return;
    bool changed =
        how->kind == WRITE_EXISTS || how->kind == WRITE_CONFLICT || how->kind == WRITE_GONE;
    int64_t hold_until_ms = s->now_ms + (changed ? CHANGED_MS : SHELL_REFUSED_MS);
    if (how->kind != WRITE_DONE)
        log_line(LOG_WARN, "ConfigMap %s: %s", t->job, how->message);
    map_ends(c, t->number, how->kind == WRITE_DONE ? 0 : hold_until_ms);
}

static const package *package_of(const shell_change *c, str map_name)
{
    const skyhook *of = c->document->object.skyhook;
    for (size_t i = 0; i < of->spec.packages.len; i++) {
        buf name = BUF(LIMIT_DOCUMENT_BYTES);
        package_config_map_name(&name, str_of(c->name), &of->spec.packages.at[i]);
        bool found = str_eq(buf_str(&name), map_name);
        buf_done(&name);
        if (found)
            return &of->spec.packages.at[i];
    }
    return NULL;
}

/* Whether the map has these files and no others, and is the Skyhook's own. */
static bool is_same(node_shell *s, yyjson_val *json, str body)
{
    arena_place mark = arena_mark(s->scratch);
    yyjson_val *want = json_parse(s->scratch, body, NULL);
    yyjson_val *owner = yyjson_arr_get_first(read_at(json, "metadata", "ownerReferences"));
    yyjson_val *wanted = yyjson_arr_get_first(read_at(want, "metadata", "ownerReferences"));
    bool same = want && yyjson_equals(yyjson_obj_get(json, "data"), yyjson_obj_get(want, "data")) &&
                str_eq(read_text(owner, "uid"), read_text(wanted, "uid"));
    arena_rewind(s->scratch, mark);
    return same;
}

static void was_read(node_shell *s, const shell_ticket *t, const write_outcome *how,
                     yyjson_val *json)
{
    shell_change *c = shell_find_change(s, str_of(t->skyhook));
    if (!c || !c->known || !str_eq(shell_text(c->uid), shell_text(t->uid)))
        return;
    const skyhook *of = c->document->object.skyhook;
    const package *p = package_of(c, str_of(t->job));
    bool there = how->kind == WRITE_DONE && json;
    if (!p || of->metadata.generation != t->number || (!there && how->kind != WRITE_GONE)) {
        bool edited = !p || of->metadata.generation != t->number;
        map_ends(c, t->number, edited ? s->now_ms : s->now_ms + SHELL_REFUSED_MS);
        return;
    }
    buf body = BUF(LIMIT_DOCUMENT_BYTES * 2);
    package_config_map_put(&body, &s->settings.job, of, p);
    bool same = there && is_same(s, json, buf_str(&body));
    kube_write w = {.verb = there ? WRITE_UPDATE : WRITE_CREATE,
                    .name = str_of(t->job),
                    .version = there
                                   ? read_text(yyjson_obj_get(json, "metadata"), "resourceVersion")
                                   : STR_EMPTY,
                    .body = buf_str(&body)};
    shell_ticket next = {
        .done = written, .skyhook = t->skyhook, .uid = t->uid, .job = t->job, .number = t->number};
    if (same)
        map_ends(c, t->number, 0);
    else if (body.failed || !send_map(s, w, next))
        map_ends(c, t->number, s->now_ms + SHELL_REFUSED_MS);
    buf_done(&body);
}

bool package_maps_ready(node_shell *s, shell_change *c)
{
    const skyhook *of = c->document->object.skyhook;
    if (c->maps_generation == of->metadata.generation && c->maps_sending == 0)
        return true;
    if (c->maps_sending > 0 || c->maps_held_until_ms > s->now_ms)
        return false;
    c->maps_failed = false;
    for (size_t i = 0; i < of->spec.packages.len; i++) {
        if (of->spec.packages.at[i].config_map.len == 0)
            continue;
        buf name = BUF(LIMIT_DOCUMENT_BYTES);
        package_config_map_name(&name, str_of(c->name), &of->spec.packages.at[i]);
        kube_write w = {.verb = WRITE_READ, .name = buf_str(&name)};
        shell_ticket ticket = {.done = was_read,
                               .skyhook = c->name,
                               .uid = c->uid,
                               .job = name.ptr,
                               .number = of->metadata.generation};
        c->maps_sending++;
        if (name.failed || !send_map(s, w, ticket))
            map_ends(c, of->metadata.generation, s->now_ms + SHELL_REFUSED_MS);
        buf_done(&name);
    }
    if (c->maps_sending == 0 && !c->maps_failed)
        c->maps_generation = of->metadata.generation;
    return c->maps_generation == of->metadata.generation;
}

/* ---- maps that somebody deleted ---- */

void package_maps_awaited(node_shell *s, str skyhook_name)
{
    shell_change *c = shell_find_change(s, skyhook_name);
    if (c && c->maps_look_ms == 0)
        c->maps_look_ms = s->now_ms + UNBEGUN_MS;
}

/* Since when a pod on one of its nodes has not begun; 0: all have. */
static int64_t unbegun_since(const node_shell *s, const shell_change *c)
{
    int64_t since = 0;
    for (size_t i = 0; i < c->places.len; i++) {
        const shell_place *p = c->places.at[i];
        const shell_host *h = p->in_flight ? shell_find_host(s, str_of(p->node->name)) : NULL;
        for (const shell_attempt *a = h ? h->first : NULL; a; a = a->next)
            if (a->pod && a->pod->unbegun_ms != 0 && (since == 0 || a->pod->unbegun_ms < since))
                since = a->pod->unbegun_ms;
    }
    return since;
}

void package_maps_look(node_shell *s, shell_change *c)
{
    if (c->maps_look_ms == 0 || c->maps_look_ms > s->now_ms)
        return;
    int64_t since = unbegun_since(s, c), due_ms = since + UNBEGUN_MS;
    c->maps_look_ms = since == 0 ? 0 : due_ms > s->now_ms ? due_ms : s->now_ms + UNBEGUN_MS;
    if (since == 0 || due_ms > s->now_ms || !c->known || c->maps_sending > 0)
        return;
    c->maps_generation = MAPS_UNREAD;
    package_maps_ready(s, c);
}
