/* SPDX-License-Identifier: Apache-2.0 */
/* Skyhooks that an older operator worked on: what it left in the status, and in the ConfigMaps of
 * packages, which have what its nodes were given. Drover's own are written over these, so they are
 * read before the first decision of all; an edit that it held back, or that came while it was
 * stopped, is seen by that.
 *
 * While one of them cannot be read nothing is decided at all: nobody knows which nodes are done,
 * and those of other Skyhooks may have to wait for them. Who may not read ConfigMaps can make no
 * Job either. */
#include "base/log.h"
#include "base/mem.h"
#include "operator/older_record.h"
#include "operator/shell_internal.h"

#define COLLECTION_BYTES (LIMIT_NAME_BYTES + 64)

/* What an older operator left of a Skyhook. */
struct shell_older {
    char *status;        /* JSON */
    VEC(char *) configs; /* by package; NULL: it has no ConfigMap, or is not read yet */
    int64_t generation;  /* of the document whose packages these are */
    uint32_t reading;
    bool read, failed;
    int64_t held_until_ms;
};

static void forget_configs(shell_older *o)
{
    for (size_t i = 0; i < o->configs.len; i++)
        mem_free(o->configs.at[i]);
    o->configs.len = 0;
    o->read = o->failed = false;
}

void older_forget(shell_change *c)
{
    if (!c->older)
        return;
    forget_configs(c->older);
    vec_done(&c->older->configs);
    mem_free(c->older->status);
    c->older = mem_free(c->older);
}

void older_seen(node_shell *s, shell_change *c, yyjson_val *status)
{
    if (!older_wrote(status)) {
        older_forget(c);
        return;
    }
    if (!c->older && !(c->older = mem_zalloc(sizeof *c->older))) {
        shell_memory(s);
        return;
    }
    buf text = BUF(SHELL_TEXT_BYTES);
    older_status_put(&text, status);
    mem_free(c->older->status);
    c->older->status = shell_copy(s, buf_str(&text));
    if (text.failed)
        shell_memory(s);
    buf_done(&text);
}

/* ---- reading ---- */

static void take_config(node_shell *s, shell_change *c, str package_name, yyjson_val *json)
{
    const skyhook *of = c->document->object.skyhook;
    const package *p = skyhook_package(of, package_name);
    buf text = BUF(SHELL_TEXT_BYTES);
    if (p && older_config_put(&text, json, shell_text(c->uid))) {
        char **at = &c->older->configs.at[p - of->spec.packages.at];
        mem_free(*at);
        *at = shell_copy(s, buf_str(&text));
    }
    if (text.failed)
        shell_memory(s);
    buf_done(&text);
}

static void was_read(node_shell *s, const shell_ticket *t, const write_outcome *how,
                     yyjson_val *json)
{
    shell_change *c = shell_find_change(s, str_of(t->skyhook));
    shell_older *o = c && str_eq(shell_text(c->uid), shell_text(t->uid)) ? c->older : NULL;
    if (!o || o->reading == 0)
        return;
    bool edited = c->document->object.skyhook->metadata.generation != t->number;
    bool there = how->kind == WRITE_DONE && json;
    if (there && !edited)
        take_config(s, c, str_of(t->job), json);
    if (!there && how->kind != WRITE_GONE) {
        log_line(LOG_WARN,
                 "Skyhook %s: nothing is decided before the ConfigMap of package %s is read: %s",
                 c->name, t->job, how->message);
        o->failed = true;
        o->held_until_ms = s->now_ms + SHELL_REFUSED_MS;
    }
    o->read = --o->reading == 0 && !o->failed;
}

static void ask(node_shell *s, shell_change *c, const package *p)
{
    char collection[COLLECTION_BYTES];
    buf name = BUF(LIMIT_DOCUMENT_BYTES);
    shell_older *o = c->older;
    char *of = shell_copy(s, p->name);
    snprintf(collection, sizeof collection, "/api/v1/namespaces/%.*s/configmaps",
             STR_ARG(s->settings.job.namespace_));
    package_config_map_name(&name, str_of(c->name), p);
    kube_write w = {.verb = WRITE_READ, .collection = str_of(collection), .name = buf_str(&name)};
    shell_ticket ticket = {.done = was_read,
                           .skyhook = c->name,
                           .uid = c->uid,
                           .job = of,
                           .number = o->generation};
    bool sent = of && !name.failed && shell_send(s, &w, ticket);
    o->reading += sent;
    if (!sent) {
        o->failed = true;
        o->held_until_ms = s->now_ms + SHELL_REFUSED_MS;
    }
    mem_free(of);
    buf_done(&name);
}

/* Whether they are known for the document as it is; else they are asked for. */
static bool is_read(node_shell *s, shell_change *c)
{
    shell_older *o = c->older;
    const skyhook *of = c->document->object.skyhook;
    if (o->read && o->generation == of->metadata.generation)
        return true;
    if (o->reading > 0 || o->held_until_ms > s->now_ms)
        return false;
    forget_configs(o);
    o->generation = of->metadata.generation;
    if (!vec_reserve(&o->configs, of->spec.packages.len + 1)) {
        shell_memory(s);
        return false;
    }
    for (size_t i = 0; i < of->spec.packages.len; i++)
        o->configs.at[o->configs.len++] = NULL;
    for (size_t i = 0; i < of->spec.packages.len; i++)
        if (of->spec.packages.at[i].config_map.len > 0)
            ask(s, c, &of->spec.packages.at[i]);
    o->read = o->reading == 0 && !o->failed;
    return o->read;
}

bool older_maps_read(node_shell *s)
{
    bool all = true;
    for (size_t i = 0; i < s->changes.len; i++) {
        shell_change *c = (shell_change *)(uintptr_t)s->changes.entries[i].value;
        if (c->older && c->known && !is_read(s, c))
            all = false;
    }
    return all;
}

int64_t older_next_ms(const node_shell *s)
{
    int64_t next = REASON_NEVER;
    for (size_t i = 0; i < s->changes.len; i++) {
        const shell_change *c = (const shell_change *)(uintptr_t)s->changes.entries[i].value;
        if (c->older && c->older->failed && c->older->reading == 0)
            next = shell_sooner(next, c->older->held_until_ms);
    }
    return next;
}

void older_put(node_shell *s, const shell_change *c, buf *out)
{
    arena_place mark = arena_mark(s->scratch);
    const shell_older *o = c->older;
    yyjson_val *status =
        json_parse_within(s->scratch, shell_text(o->status), SHELL_TEXT_BYTES, NULL);
    if (status)
        older_record_put(out, status, c->document->object.skyhook,
                         (const char *const *)o->configs.at);
    arena_rewind(s->scratch, mark);
}
