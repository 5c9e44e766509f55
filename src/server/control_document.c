/* SPDX-License-Identifier: Apache-2.0 */
/* The documents in memory, by kind and name; versions also by deployment and tag. */
#include "base/mem.h"
#include "server/control_internal.h"

/* Longer than two names can be; tags may be longer, and are then not found by tag. */
#define KEY_BYTES LIMIT_PATH_BYTES

/* "first/second"; both may hold any byte. */
static str join(char *out, str first, str second)
{
    memcpy(out, first.ptr, first.len);
    out[first.len] = '/';
    memcpy(out + first.len + 1, second.ptr, second.len);
    return (str){out, first.len + 1 + second.len};
}

/* Allocates nothing: "not there" must not depend on memory. */
static void *find(const strmap *map, str first, str second)
{
    char key[KEY_BYTES];
    if (first.len + second.len + 2 > sizeof key)
        return NULL;
    const uint64_t *at = strmap_get(map, join(key, first, second));
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

const object *control_held(const control *c, document_key key, int64_t *ret_version)
{
    const held_document *d = document_find(c, key.kind, key.name);
    if (!d || d->version == 0)
        return NULL;
    *ret_version = d->version;
    return &d->object;
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
    char *text = mem_alloc(spec->deployment.len + 1 + spec->tag.len);
    if (!text)
        return false;
    d->release = join(text, spec->deployment, spec->tag);
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

static bool is_of_many(object_kind kind)
{
    return kind == KIND_RESOURCE || kind == KIND_VERSION;
}

static void few_drop(control *c, const held_document *d)
{
    size_t kept = 0;
    for (size_t i = 0; i < c->few.len; i++)
        if (c->few.at[i] != d)
            c->few.at[kept++] = c->few.at[i];
    c->few.len = kept;
}

static held_document *document_make(control *c, const object *o)
{
    str kind = str_of(object_kind_text(o->kind)), name = o->metadata->name;
    held_document *d = mem_zalloc(sizeof *d + kind.len + 1 + name.len);
    if (!d)
        return NULL;
    d->key = join(d->text, kind, name);
    if (!is_of_many(o->kind) && !vec_push(&c->few, d))
        return mem_free(d);
    if (strmap_put(&c->documents, d->key, (uintptr_t)d))
        return d;
    few_drop(c, d);
    return mem_free(d);
}

bool document_hold(control *c, const object *o, batch *b, int64_t version_number)
{
    str kind = str_of(object_kind_text(o->kind));
    held_document *d = document_find(c, kind, o->metadata->name);
    if (!d)
        d = document_make(c, o);
    if (!d)
        return false;
    lint_forget(c);
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
    lint_forget(c);
    release_drop(c, d);
    if (!is_of_many(d->object.kind))
        few_drop(c, d);
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
    vec_done(&c->few);
    lint_forget(c);
}

void lint_forget(control *c)
{
    c->lint = problems_free(c->lint);
}
