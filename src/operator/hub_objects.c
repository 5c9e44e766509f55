/* SPDX-License-Identifier: Apache-2.0 */
/* What the shell knows, as objects again: for plans, which are made by a copy of the process. */
#include "engine/fleet_names.h"
#include "operator/hub_internal.h"

static str version_text(const hub_version *v)
{
    return v ? (str){v->text, v->len} : STR_EMPTY;
}

/* By its labels a deployment is known to be the Bundle's. */
static bool labels_of(const hub_bundle *b, arena *a, label_set *ret)
{
    label *both = ARENA_ARRAY(a, 2, label);
    if (!both)
        return false;
    both[0] = (label){STR(LABEL_BUNDLE_NAME), b->name};
    both[1] = (label){STR(LABEL_BUNDLE_NAMESPACE), b->space};
    *ret = (label_set){both, 2};
    return true;
}

static const object *object_of_place(const hub_place *p, label_set labels, arena *a)
{
    object *o = ARENA_NEW(a, object);
    bundle_deployment *d = ARENA_NEW(a, bundle_deployment);
    if (!o || !d)
        return NULL;
    d->metadata.name = p->bundle->name;
    d->metadata.namespace_ = hub_text(p->cluster->home);
    d->metadata.labels = labels;
    d->spec.deployment_id = version_text(p->live);
    d->status.applied_deployment_id = version_text(p->applied);
    d->status.ready = p->ready;
    *o = object_of(KIND_BUNDLE_DEPLOYMENT, d);
    return o;
}

static bool visit_places(const hub_bundle *b, arena *a, hub_object_visitor *visit, void *context)
{
    label_set labels;
    if (!labels_of(b, a, &labels))
        return false;
    for (size_t i = 0; i < b->places.len; i++) {
        const hub_place *p = b->places.at[i];
        const object *o = p->exists ? object_of_place(p, labels, a) : NULL;
        if (p->exists && (!o || !visit(context, o)))
            return false;
    }
    return true;
}

bool cluster_shell_objects(const cluster_shell *s, arena *a, hub_object_visitor *visit,
                           void *context)
{
    HUB_EACH(&s->namespaces, const hub_namespace, n)
    if (!visit(context, &n->document->object))
        return false;
    HUB_EACH(&s->bundles, const hub_bundle, b)
    if ((b->known && !visit(context, &b->document->object)) || !visit_places(b, a, visit, context))
        return false;
    return true;
}
