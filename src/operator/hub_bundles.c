/* SPDX-License-Identifier: Apache-2.0 */
/* Bundles, and what says who they are for: ClusterGroups and BundleNamespaceMappings. */
#include <stdio.h>

#include "base/log.h"
#include "base/mem.h"
#include "engine/deployment_id.h"
#include "engine/fleet_names.h"
#include "operator/act_request.h"
#include "operator/hub_internal.h"

/* ---- records ---- */

hub_bundle *hub_bundle_of(cluster_shell *s, str key)
{
    hub_bundle *b = hub_find(&s->bundles, key);
    if (b)
        return b;
    char *own;
    b = hub_record_new(s, &s->bundles, key, sizeof *b, &own);
    if (!b)
        return NULL;
    b->key = own;
    hub_key_parts(b->key, &b->space, &b->name);
    return b;
}

void hub_bundle_free(cluster_shell *s, hub_bundle *b)
{
    while (b->places.len > 0)
        hub_place_free(s, b->places.at[b->places.len - 1]);
    strmap_remove(&s->bundles, str_of(b->key));
    shell_document_free(b->document);
    hub_access_free(b->access);
    hub_access_free(b->access_next);
    char *owned[] = {b->object.uid, b->key,  b->record, b->finalizers,    b->error, b->content,
                     b->sha256,     b->repo, b->status, b->ready_message, b->acts,  b->unread};
    vec_done(&b->places);
    vec_done(&b->parts);
    for (size_t i = 0; i < sizeof owned / sizeof owned[0]; i++)
        mem_free(owned[i]);
    mem_free(b);
}

void hub_bundle_drop(cluster_shell *s, hub_bundle *b)
{
    if (!b->present && b->places.len == 0)
        hub_bundle_free(s, b);
}

void hub_bundle_refuse(cluster_shell *s, hub_bundle *b, const char *why)
{
    if (!why && !b->error)
        return;
    if (why && !(b->error && strcmp(b->error, why) == 0))
        log_line(LOG_WARN, "Bundle %s: %s", b->key, why);
    if (why)
        hub_set(s, &b->error, str_of(why));
    else
        b->error = mem_free(b->error);
    hub_touch(s, &b->clock, s->settings.status_every_ms);
}

/* ---- what is seen ---- */

static uint64_t digest_of(yyjson_val *json)
{
    yyjson_val *meta = yyjson_obj_get(json, "metadata"), *key, *value;
    uint64_t sum = hub_digest(yyjson_obj_get(meta, "uid")) * 31 +
                   hub_digest(yyjson_obj_get(meta, "generation"));
    sum = sum * 31 + hub_digest(yyjson_obj_get(meta, "labels"));
    sum = sum * 31 + hub_digest(yyjson_obj_get(meta, "deletionTimestamp"));
    size_t i, max;
    yyjson_obj_foreach(yyjson_obj_get(meta, "annotations"), i, max, key, value)
    {
        if (!yyjson_equals_str(key, HUB_RECORD) && !yyjson_equals_str(key, KEY_BUNDLE_ACTS))
            sum += hub_digest(key) ^ (hub_digest(value) * 31);
    }
    return sum;
}

void hub_set_json(cluster_shell *s, char **at, yyjson_val *value)
{
    buf text = BUF(HUB_TEXT_BYTES);
    if (value)
        json_write(&text, value);
    if (text.failed)
        hub_memory(s);
    else if (value)
        hub_set(s, at, buf_str(&text));
    else
        *at = mem_free(*at);
    buf_done(&text);
}

/* What changes without being the document's: our own record, finalizers, the status. */
static void take_rest(cluster_shell *s, hub_bundle *b, yyjson_val *json)
{
    yyjson_val *meta = yyjson_obj_get(json, "metadata");
    yyjson_val *record = read_at(meta, "annotations", HUB_RECORD);
    yyjson_val *finalizers = yyjson_obj_get(meta, "finalizers");
    if (record)
        hub_set(s, &b->record, read_text(yyjson_obj_get(meta, "annotations"), HUB_RECORD));
    else
        b->record = mem_free(b->record);
    hub_acts_seen(s, b, yyjson_obj_get(meta, "annotations"));
    b->has_finalizer = hub_has_text(finalizers, fleet_finalizer_text(FINALIZER_BUNDLE));
    b->generation = yyjson_get_sint(yyjson_obj_get(meta, "generation"));
    hub_set_json(s, &b->finalizers, finalizers);
    hub_set_json(s, &b->status, yyjson_obj_get(json, "status"));
}

static void unknow(cluster_shell *s, hub_bundle *b)
{
    b->relook = true; /* also if it never was: what it deployed before is to go */
    if (!b->known)
        return;
    fact f = {.kind = FACT_DOCUMENT_GONE, .document = &b->document->object};
    hub_take(s, &f);
    b->known = false;
    s->contents_stale = true;
    hub_repo_tell(s, b);
}

static void name_content(cluster_shell *s, hub_bundle *b)
{
    const bundle_spec *spec = &b->document->object.bundle->spec;
    char hex[SHA256_HEX_BYTES] = "";
    bundle_view v;
    bool needed = spec->contents_id.len == 0 && !spec->helm_op_options &&
                  engine_bundle(s->engine, str_of(b->key), &v);
    buf manifest = BUF(LIMIT_TEXT_BYTES);
    if (needed) {
        manifest_json(&manifest, spec->resources);
        if (manifest.failed || !sha256_hex(buf_str(&manifest), hex))
            hub_memory(s);
    }
    buf_done(&manifest);
    hub_set(s, &b->content, needed ? v.manifest : STR_EMPTY);
    s->contents_stale = true; /* the one of before may be needed no more */
    hub_set(s, &b->sha256, str_of(hex));
}

/* Clusters count the repositories and charts of which all is ready there. */
static void tell_source(cluster_shell *s, const hub_bundle *b, const object *now)
{
    static const str keys[] = {STR(LABEL_REPO_NAME), STR(LABEL_HELM_OP_NAME)};
    bool same = true;
    for (size_t i = 0; b->document && i < sizeof keys / sizeof keys[0]; i++)
        same &= str_eq(label_get(b->document->object.metadata->labels, keys[i]),
                       label_get(now->metadata->labels, keys[i]));
    for (size_t i = 0; !same && i < b->places.len; i++)
        hub_cluster_touch(s, b->places.at[i]->cluster);
}

void hub_bundle_take(cluster_shell *s, hub_bundle *b, yyjson_val *json)
{
    err error;
    shell_document *read = shell_document_new(json, API_FLEET, "Bundle", &error);
    if (!read) {
        if (err_is_memory(&error))
            hub_memory(s);
        else
            hub_bundle_refuse(s, b, error.text);
        return;
    }
    hub_bundle_refuse(s, b, NULL);
    fact f = {.kind = FACT_DOCUMENT, .document = &read->object};
    hub_take(s, &f);
    tell_source(s, b, &read->object);
    shell_document_free(b->document);
    b->document = read;
    hub_access_take(b);
    b->fresh |= !b->known;
    b->known = true;
    b->relook = true;
    hub_repo_tell(s, b); /* which may be another one's from here on */
    hub_set(s, &b->repo, label_get(read->object.metadata->labels, STR(LABEL_REPO_NAME)));
    if (!s->no_memory)
        name_content(s, b);
}

void hub_bundles_seen(cluster_shell *s, yyjson_val *json)
{
    yyjson_val *meta = yyjson_obj_get(json, "metadata");
    char revision_text[SHELL_VERSION_BYTES];
    hub_bundle *b =
        hub_bundle_of(s, hub_key(s, read_text(meta, "namespace"), read_text(meta, "name")));
    if (!b)
        return;
    bool same = str_eq(hub_text(b->object.uid), read_text(meta, "uid"));
    if (b->present && same && read_revision(json, revision_text) <= b->object.revision)
        return; /* an answer was quicker than the watch */
    if (b->present && !same)
        unknow(s, b);
    hub_object_seen(s, &b->object, json);
    b->present = true;
    take_rest(s, b, json);
    uint64_t digest = digest_of(json);
    if (digest == b->digest)
        return;
    b->digest = digest;
    b->deleting = yyjson_obj_get(meta, "deletionTimestamp") != NULL;
    hub_values_forget(b);
    if (b->deleting)
        unknow(s, b);
    else if (read_text(yyjson_obj_get(json, "spec"), "valuesHash").len > 0 ||
             hub_access_needed(yyjson_obj_get(json, "spec")))
        hub_values_want(s, b, json);
    else
        hub_bundle_take(s, b, json);
    hub_touch(s, &b->clock, s->settings.status_every_ms);
}

void hub_bundles_gone(cluster_shell *s, str key)
{
    hub_bundle *b = hub_find(&s->bundles, key);
    if (!b)
        return;
    unknow(s, b);
    hub_values_forget(b);
    b->present = b->deleting = false;
    b->digest = 0;
    b->record = mem_free(b->record);
    b->clock.dirty = false;
    b->relook = true;
}

/* ---- ClusterGroups and BundleNamespaceMappings ---- */

static strmap *map_of(cluster_shell *s, hub_kind kind)
{
    return kind == HUB_GROUP ? &s->groups : &s->mappings;
}

static void group_free(cluster_shell *s, hub_group *g)
{
    HUB_EACH(&s->clusters, hub_cluster, c)
    for (size_t i = 0; i < c->groups.len; i++)
        if (c->groups.at[i] == g)
            c->groups.at[i--] = c->groups.at[--c->groups.len];
    shell_document_free(g->document);
    mem_free(g->object.uid);
    mem_free(g->key);
    mem_free(g->status);
    mem_free(g);
}

static hub_group *group_of(cluster_shell *s, hub_kind kind, str key)
{
    hub_group *g = hub_find(map_of(s, kind), key);
    if (g)
        return g;
    char *own;
    g = hub_record_new(s, map_of(s, kind), key, sizeof *g, &own);
    if (!g)
        return NULL;
    g->key = own;
    hub_key_parts(g->key, &g->space, &g->name);
    return g;
}

void hub_groups_changed(cluster_shell *s)
{
    s->relook_all = true;
    HUB_EACH(&s->clusters, hub_cluster, c)
    {
        if (c->relook)
            continue;
        c->relook = vec_push(&s->changed, c);
        if (!c->relook)
            hub_memory(s);
    }
}

void hub_documents_seen(cluster_shell *s, hub_kind kind, yyjson_val *json)
{
    yyjson_val *meta = yyjson_obj_get(json, "metadata");
    hub_group *g =
        group_of(s, kind, hub_key(s, read_text(meta, "namespace"), read_text(meta, "name")));
    if (!g)
        return;
    char revision_text[SHELL_VERSION_BYTES];
    bool same = str_eq(hub_text(g->object.uid), read_text(meta, "uid"));
    if (same && read_revision(json, revision_text) <= g->object.revision)
        return; /* the watch was quicker than an answer, or the other way round */
    hub_object_seen(s, &g->object, json);
    hub_set_json(s, &g->status, yyjson_obj_get(json, "status"));
    uint64_t digest = hub_digest(yyjson_obj_get(json, "spec")) +
                      3 * hub_digest(yyjson_obj_get(json, "bundleSelector")) +
                      5 * hub_digest(yyjson_obj_get(json, "namespaceSelector")) +
                      7 * hub_digest(yyjson_obj_get(meta, "labels"));
    if (digest == g->digest)
        return;
    err error;
    shell_document *read = shell_document_new(
        json, API_FLEET, kind == HUB_GROUP ? "ClusterGroup" : "BundleNamespaceMapping", &error);
    if (!read) {
        log_line(LOG_WARN, "%s %s: %s", hub_kind_path(kind), g->key, error.text);
        return;
    }
    g->digest = digest;
    g->untold = kind == HUB_MAPPING && !s->synced[HUB_NAMESPACE];
    if (!g->untold) {
        fact f = {.kind = FACT_DOCUMENT, .document = &read->object};
        hub_take(s, &f);
        hub_groups_changed(s);
    }
    shell_document_free(g->document);
    g->document = read;
    hub_touch(s, &g->clock, s->settings.status_every_ms);
}

void hub_documents_gone(cluster_shell *s, hub_kind kind, str key)
{
    hub_group *g = hub_find(map_of(s, kind), key);
    if (!g)
        return;
    if (g->document && !g->untold) {
        fact f = {.kind = FACT_DOCUMENT_GONE, .document = &g->document->object};
        hub_take(s, &f);
        hub_groups_changed(s);
    }
    strmap_remove(map_of(s, kind), key);
    group_free(s, g);
}

/* ---- the record ---- */

void hub_record_restore(cluster_shell *s, hub_bundle *b)
{
    err error;
    if (!b->fresh || s->no_memory)
        return;
    b->fresh = false;
    arena_place mark = arena_mark(s->scratch);
    /* One that somebody broke is one that is not there. */
    bool is = b->record && yyjson_is_obj(json_parse(s->scratch, str_of(b->record), NULL));
    if (is && !engine_restore_bundle(s->engine, str_of(b->key), str_of(b->record), &error)) {
        if (err_is_memory(&error))
            hub_memory(s);
        log_line(LOG_ERROR, "Bundle %s: what it remembers cannot be restored: %s", b->key,
                 error.text);
    }
    arena_rewind(s->scratch, mark);
}

static void record_written(cluster_shell *s, const hub_ticket *t, const write_outcome *how,
                           yyjson_val *json)
{
    hub_bundle *b = hub_find(&s->bundles, str_of(t->bundle));
    if (!b)
        return;
    bool done = hub_answered(s, &b->object, t, how);
    if (!done && how->kind != WRITE_CONFLICT && how->kind != WRITE_GONE)
        log_line(LOG_WARN, "Bundle %s: %s", b->key, how->message);
    /* It may be gone since, and another one of its name be there. */
    yyjson_val *meta = yyjson_obj_get(json, "metadata");
    if (json && b->present && str_eq(hub_text(b->object.uid), read_text(meta, "uid")))
        hub_bundles_seen(s, json);
}

void hub_put_finalizers(cluster_shell *s, const char *before, str ours, bool with, buf *out)
{
    yyjson_val *list = before ? json_parse(s->scratch, str_of(before), NULL) : NULL;
    yyjson_val *one;
    const char *comma = "";
    size_t i, max;
    buf_addz(out, "\"finalizers\":[");
    yyjson_arr_foreach(list, i, max, one)
    {
        if (yyjson_equals_strn(one, ours.ptr, ours.len))
            continue;
        buf_addz(out, comma);
        json_write(out, one);
        comma = ",";
    }
    if (with) {
        buf_addz(out, comma);
        buf_add_json(out, ours);
    }
    buf_addc(out, ']');
}

/* record: NULL pointer: it stays as it is. What people asked and was taken goes. */
static void write_record(cluster_shell *s, hub_bundle *b, str record, bool finalizer)
{
    char revision_text[SHELL_VERSION_BYTES];
    buf body = BUF(HUB_TEXT_BYTES);
    if (!hub_may_send(s, &b->object))
        return;
    buf_addz(&body, "{\"metadata\":{");
    hub_put_finalizers(s, b->finalizers, fleet_finalizer_text(FINALIZER_BUNDLE), finalizer, &body);
    bool taken = b->acts && !b->acts_new;
    if (record.ptr || taken)
        buf_addz(&body, ",\"annotations\":{");
    if (record.ptr) {
        buf_addz(&body, "\"" HUB_RECORD "\":");
        buf_add_json(&body, record);
        buf_addz(&body, taken ? "," : "");
    }
    buf_addz(&body, taken ? "\"" KEY_BUNDLE_ACTS "\":null" : "");
    buf_addz(&body, record.ptr || taken ? "}}}" : "}}");
    snprintf(revision_text, sizeof revision_text, "%llu", (unsigned long long)b->object.revision);
    kube_write w = {.verb = WRITE_MERGE,
                    .collection = hub_collection(s, HUB_BUNDLE, b->space),
                    .name = b->name,
                    .version = str_of(revision_text),
                    .body = buf_str(&body)};
    b->object.sending = hub_send(
        s, &w,
        (hub_ticket){.done = record_written, .bundle = b->key, .revision = b->object.revision});
    s->counts.records += b->object.sending;
    buf_done(&body);
}

static void paused_changed(cluster_shell *s, hub_bundle *b, bool paused)
{
    if (b->paused == paused)
        return;
    b->paused = paused;
    for (size_t i = 0; i < b->places.len; i++)
        hub_queue(s, b->places.at[i]);
}

/* What the record does not say, for people. */
static const char *shortened_text(keep_detail detail)
{
    switch (detail) {
    case KEEP_MEMBERS: return NULL;
    case KEEP_BORDERS:
        return "the record of the rollout is too long for an annotation with the members of its "
               "partitions: a cluster that joined later may be in another one after a restart";
    case KEEP_LEAST:
        return "the record of the rollout is too long for an annotation: after a restart only "
               "later failures are counted, and automatic partitions are made anew";
    }
    return NULL;
}

static void shortened_changed(cluster_shell *s, hub_bundle *b, keep_detail detail)
{
    const char *text = shortened_text(detail);
    if (text == b->shortened)
        return;
    b->shortened = text;
    if (text)
        log_line(LOG_WARN, "Bundle %s: %s", b->key, text);
    hub_touch(s, &b->clock, s->settings.status_every_ms);
}

/* Members are left out before anything that only the record knows. */
static bool make_record(cluster_shell *s, hub_bundle *b, buf *out)
{
    keep_detail detail = KEEP_MEMBERS;
    bool good = engine_keep_less(s->engine, str_of(b->key), detail, out);
    while (good && out->len > s->settings.record_bytes_max && detail != KEEP_LEAST) {
        detail++;
        buf_clear(out);
        good = engine_keep_less(s->engine, str_of(b->key), detail, out);
    }
    if (good)
        shortened_changed(s, b, detail);
    return good;
}

static void keep_record(cluster_shell *s, hub_bundle *b, uint64_t fingerprint)
{
    buf record = BUF(HUB_TEXT_BYTES);
    bool good = make_record(s, b, &record);
    bool same = !good || str_eq(hub_text(b->record), buf_str(&record));
    if (same && b->has_finalizer && !b->acts) {
        b->kept = fingerprint;
        b->record_stale = false;
    } else {
        b->record_stale = true;
        write_record(s, b, same ? (str){NULL, 0} : buf_str(&record), true);
    }
    buf_done(&record);
}

void hub_bundle_step(cluster_shell *s, hub_bundle *b)
{
    bundle_view v;
    if (b->deleting && b->has_finalizer && b->deployments == 0)
        write_record(s, b, (str){NULL, 0}, false);
    if (b->deleting || !b->known || !engine_bundle(s->engine, str_of(b->key), &v))
        return;
    paused_changed(s, b, v.paused);
    if (v.unavailable != b->unavailable) /* also by who is offline, and left out from now on */
        hub_touch(s, &b->clock, s->settings.status_every_ms);
    b->unavailable = v.unavailable;
    bool any = b->places.len > 0 || b->acts;
    if (any && (v.fingerprint != b->kept || b->record_stale || !b->has_finalizer))
        keep_record(s, b, v.fingerprint);
}

/* ---- counts ---- */

void hub_bundle_counts(cluster_shell *s, hub_bundle *b)
{
    bundle_view v;
    if (!b->known || !engine_bundle(s->engine, str_of(b->key), &v) || v.cuts == b->cuts)
        return;
    for (size_t i = 0; i < b->places.len; i++)
        hub_place_uncount(b->places.at[i]);
    b->cuts = v.cuts;
    b->parts.len = 0;
    for (size_t i = 0; i < v.partitions; i++)
        if (!vec_push(&b->parts, (hub_tally){0})) {
            hub_memory(s);
            return;
        }
    for (size_t i = 0; i < b->places.len; i++)
        hub_place_look(s, b->places.at[i]);
    hub_touch(s, &b->clock, s->settings.status_every_ms);
}
