/* SPDX-License-Identifier: Apache-2.0 */
/* The labels of namespaces, by which a BundleNamespaceMapping selects: read only while there is a
 * mapping. A mapping counts from when they are all known, since one that selects by what a
 * namespace does not have would select too many before. */
#include "base/mem.h"
#include "engine/fleet_names.h"
#include "operator/hub_internal.h"

static void namespace_free(hub_namespace *n)
{
    shell_document_free(n->document);
    mem_free(n->name);
    mem_free(n);
}

/* Clusters that come later are looked at by themselves. */
static void look_again(cluster_shell *s, str name)
{
    HUB_EACH(&s->clusters, const hub_cluster, c)
    if (str_eq(c->space, name)) {
        s->relook_all = true;
        return;
    }
}

static void forget(cluster_shell *s, hub_namespace *n)
{
    fact f = {.kind = FACT_DOCUMENT_GONE, .document = &n->document->object};
    hub_take(s, &f);
    look_again(s, str_of(n->name));
    strmap_remove(&s->namespaces, str_of(n->name));
    namespace_free(n);
}

void hub_namespaces_gone(cluster_shell *s, str name)
{
    hub_namespace *n = hub_find(&s->namespaces, name);
    if (n)
        forget(s, n);
}

/* Nothing of it but what a selector sees. */
static shell_document *read_namespace(cluster_shell *s, str name, yyjson_val *labels, err *error)
{
    buf text = BUF(HUB_TEXT_BYTES);
    buf_addz(&text, "{\"metadata\":{\"name\":");
    buf_add_json(&text, name);
    if (labels) {
        buf_addz(&text, ",\"labels\":");
        json_write(&text, labels);
    }
    buf_addz(&text, "}}");
    yyjson_val *json = text.failed ? NULL : json_parse(s->scratch, buf_str(&text), error);
    buf_done(&text);
    if (!json) {
        hub_memory(s);
        return NULL;
    }
    return shell_document_new(json, "v1", "Namespace", error);
}

/* The namespace of a cluster's deployments holds no Clusters, and there are as many as clusters. */
static bool is_home(yyjson_val *meta)
{
    return read_text(yyjson_obj_get(meta, "annotations"), ANNOTATION_CLUSTER).len > 0;
}

void hub_namespaces_seen(cluster_shell *s, yyjson_val *json)
{
    yyjson_val *meta = yyjson_obj_get(json, "metadata"), *labels = yyjson_obj_get(meta, "labels");
    str name = read_text(meta, "name");
    if (is_home(meta)) {
        hub_namespaces_gone(s, name);
        return;
    }
    uint64_t digest = hub_digest(labels);
    hub_namespace *n = hub_find(&s->namespaces, name);
    if (n && n->digest == digest)
        return;
    err error;
    shell_document *read = read_namespace(s, name, labels, &error);
    if (!read) {
        hub_memory(s); /* the server keeps none that cannot be read */
        return;
    }
    char *own;
    n = n ? n : hub_record_new(s, &s->namespaces, name, sizeof *n, &own);
    if (!n) {
        shell_document_free(read);
        return;
    }
    if (!n->name)
        n->name = own;
    fact f = {.kind = FACT_DOCUMENT, .document = &read->object};
    hub_take(s, &f);
    shell_document_free(n->document);
    n->document = read;
    n->digest = digest;
    look_again(s, name);
}

void hub_namespaces_forget(cluster_shell *s)
{
    while (s->namespaces.len > 0)
        forget(s, (hub_namespace *)(uintptr_t)s->namespaces.entries[0].value);
}

bool cluster_shell_wants_namespaces(const cluster_shell *s)
{
    return s->mappings.len > 0;
}

void cluster_shell_unfollowed(cluster_shell *s, hub_kind kind)
{
    s->synced[kind] = false;
    if (kind == HUB_NAMESPACE)
        hub_namespaces_forget(s);
}

void hub_mappings_tell(cluster_shell *s)
{
    if (!s->synced[HUB_NAMESPACE])
        return;
    HUB_EACH(&s->mappings, hub_group, m)
    {
        if (!m->untold)
            continue;
        m->untold = false;
        fact f = {.kind = FACT_DOCUMENT, .document = &m->document->object};
        hub_take(s, &f);
        hub_groups_changed(s);
    }
}
