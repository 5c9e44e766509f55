/* SPDX-License-Identifier: Apache-2.0 */
/* The documents in memory, by kind and name; versions also by deployment and tag. */
#include "base/mem.h"
#include "server/control_internal.h"

#define KEY_BYTES_MOST (2 * LIMIT_DOCUMENT_BYTES)

static void *find(const strmap *map, str first, str second)
{
    buf key = BUF(KEY_BYTES_MOST);
    buf_add(&key, first);
    buf_addc(&key, '/');
    buf_add(&key, second);
    const uint64_t *at = strmap_get(map, buf_str(&key));
    buf_done(&key);
    return at ? (void *)(uintptr_t)*at : NULL;
}

held_document *document_find(const control *c, str kind, str name)
{
    return find(&c->documents, kind, name);
}

const object *control_object(const control *c, object_kind kind, str name)
{
    const held_document *d = document_find(c, str_of(object_kind_text(kind)), name);
    return d ? &d->object : NULL;
}

const object *version_tagged(const control *c, str deployment_name, str tag)
{
    const held_document *d = find(&c->versions, deployment_name, tag);
    return d ? &d->object : NULL;
}

/* ---- versions by tag ---- */

static void release_drop(control *c, held_document *d)
{
    if (!d->release.ptr)
        return;
    const uint64_t *at = strmap_get(&c->versions, d->release);
    if (at && (held_document *)(uintptr_t)*at == d)
        strmap_remove(&c->versions, d->release);
    mem_free((void *)(uintptr_t)d->release.ptr);
    d->release = (str){0};
}

static bool release_hold(control *c, held_document *d)
{
    const struct version_spec *spec = &d->object.version->spec;
    size_t len = spec->deployment.len + 1 + spec->tag.len;
    char *text = mem_alloc(len + 1);
    if (!text)
        return false;
    snprintf(text, len + 1, "%.*s/%.*s", STR_ARG(spec->deployment), STR_ARG(spec->tag));
    d->release = (str){text, len};
    /* A second document of the same tag takes the place; its key must be the map's, so the first
     * one goes. */
    strmap_remove(&c->versions, d->release);
    if (strmap_put(&c->versions, d->release, (uintptr_t)d))
        return true;
    d->release = (str){0};
    mem_free(text);
    return false;
}

/* ---- coming and going ---- */

static held_document *document_make(control *c, str kind, str name)
{
    size_t len = kind.len + 1 + name.len;
    held_document *d = mem_zalloc(sizeof *d + len + 1);
    if (!d)
        return NULL;
    snprintf(d->text, len + 1, "%.*s/%.*s", STR_ARG(kind), STR_ARG(name));
    d->key = (str){d->text, len};
    return strmap_put(&c->documents, d->key, (uintptr_t)d) ? d : mem_free(d);
}

bool document_hold(control *c, const object *o, batch *b, int64_t version_number)
{
    str kind = str_of(object_kind_text(o->kind));
    held_document *d = document_find(c, kind, o->metadata->name);
    if (!d)
        d = document_make(c, kind, o->metadata->name);
    if (!d)
        return false;
    release_drop(c, d);
    batch_leave(d->batch);
    b->users++;
    d->batch = b;
    d->object = *o;
    d->version = version_number;
    return o->kind != KIND_VERSION || release_hold(c, d);
}

void document_drop(control *c, str kind, str name)
{
    held_document *d = document_find(c, kind, name);
    if (!d)
        return;
    release_drop(c, d);
    strmap_remove(&c->documents, d->key);
    batch_leave(d->batch);
    mem_free(d);
}

void documents_done(control *c)
{
    for (size_t i = 0; i < c->documents.len; i++) {
        held_document *d = (held_document *)(uintptr_t)c->documents.entries[i].value;
        mem_free((void *)(uintptr_t)d->release.ptr);
        batch_leave(d->batch);
        mem_free(d);
    }
    strmap_done(&c->versions);
    strmap_done(&c->documents);
}
