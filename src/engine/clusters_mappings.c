/* SPDX-License-Identifier: Apache-2.0 */
/* Which Bundles reach the clusters of other namespaces: BundleNamespaceMappings, and the labels of
 * the namespaces they select. */
#include "base/mem.h"
#include "engine/clusters_internal.h"

#define NAMESPACE_NAME_LABEL "kubernetes.io/metadata.name"

/* A namespace that was never told has the one label that each has. The server gives it to all;
 * documents in files may lack it. */
static label_set labels_of(clusters *c, str name, const kube_namespace *doc)
{
    label_set given = doc ? doc->metadata.labels : (label_set){NULL, 0}, sorted = {NULL, 0};
    label *at = ARENA_ARRAY(c->scratch, given.len + 1, label);
    size_t len = 0;
    err never; /* no key stands twice */
    if (!at) {
        c->core->no_memory = true;
        return sorted;
    }
    for (size_t i = 0; i < given.len; i++)
        if (!str_eq(given.at[i].key, STR(NAMESPACE_NAME_LABEL)))
            at[len++] = given.at[i];
    at[len++] = (label){STR(NAMESPACE_NAME_LABEL), name};
    label_set_sort(at, len, &sorted, &never);
    return sorted;
}

static const kube_namespace *namespace_find(const clusters *c, str name)
{
    const uint64_t *found = strmap_get(&c->namespaces, name);
    return found ? (const kube_namespace *)(uintptr_t)*found : NULL;
}

bool namespace_mapped(const bundle_record *b, name_id namespace_)
{
    clusters *c = b->self;
    str name = names_text(c->core->names, namespace_);
    bool mapped = false;
    arena_place here = arena_mark(c->scratch);
    label_set labels = {NULL, 0};
    for (size_t i = 0; i < c->mappings.len && !mapped; i++) {
        const mapping_record *mapping = &c->mappings.at[i];
        if (!mapping->document || mapping->namespace_ != b->namespace_ ||
            !selector_match(mapping->document->bundle_selector.compiled,
                            b->document->metadata.labels))
            continue;
        if (!labels.at)
            labels = labels_of(c, name, namespace_find(c, name));
        mapped = selector_match(mapping->document->namespace_selector.compiled, labels);
    }
    arena_rewind(c->scratch, here);
    return mapped;
}

static void place_bundles_of(clusters *c, name_id namespace_)
{
    for (size_t i = 0; i < c->bundles.len && !c->core->no_memory; i++)
        if (c->bundles.at[i]->present && c->bundles.at[i]->namespace_ == namespace_)
            bundle_place(c->bundles.at[i]);
}

void mapping_document(clusters *c, const metadata *meta, const bundle_namespace_mapping *doc)
{
    name_id namespace_ = intern(c, meta->namespace_), name = intern(c, meta->name);
    size_t i = 0;
    while (i < c->mappings.len &&
           (c->mappings.at[i].namespace_ != namespace_ || c->mappings.at[i].name != name))
        i++;
    if (i == c->mappings.len && !vec_push(&c->mappings, (mapping_record){namespace_, name, NULL})) {
        c->core->no_memory = true;
        return;
    }
    c->mappings.at[i].document = doc;
    place_bundles_of(c, namespace_);
}

/* Only who is selected now and was not, or the other way round, is looked at again. */
void namespace_document(clusters *c, const metadata *meta, const kube_namespace *doc)
{
    name_id kept = intern(c, meta->name);
    str name = names_text(c->core->names, kept);
    label_set before = labels_of(c, name, namespace_find(c, name)), now = labels_of(c, name, doc);
    if (doc && !strmap_put(&c->namespaces, name, (uint64_t)(uintptr_t)doc))
        c->core->no_memory = true;
    if (!doc)
        strmap_remove(&c->namespaces, name);
    for (size_t i = 0; i < c->mappings.len && !c->core->no_memory; i++) {
        const mapping_record *mapping = &c->mappings.at[i];
        const selector *wanted =
            mapping->document ? mapping->document->namespace_selector.compiled : NULL;
        if (wanted && selector_match(wanted, before) != selector_match(wanted, now))
            place_bundles_of(c, mapping->namespace_);
    }
}
