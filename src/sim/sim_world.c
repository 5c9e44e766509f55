/* SPDX-License-Identifier: Apache-2.0 */
/* sim_world.c - documents and targets before and while the run goes on, and a restart in its midst.
 */
#include <assert.h>

#include "base/mem.h"
#include "engine/fleet_names.h"
#include "sim/plan.h"
#include "sim/sim_internal.h"

#define ANNOTATION_NODE_STATE "skyhook.nvidia.com/nodeState_"
#define ANNOTATION_OURS "skyhook.nvidia.com/"
#define NODE_STATE_BYTES_MAX (256u * 1024u)
#define SAVED_BYTES_MAX (1024u * 1024u * 1024u)

bool sim_object_target(const object *o)
{
    return o->kind == KIND_NODE || o->kind == KIND_CLUSTER || o->kind == KIND_RESOURCE;
}

str sim_change_name(sim *s, const object *o)
{
    str name = plan_change_name(s->arena, o);
    sim_memory(s, name.ptr != NULL);
    return name.ptr ? name : STR_EMPTY;
}

str sim_part_name(str change)
{
    size_t slash = str_find(change, STR("/"));
    return slash == SIZE_MAX ? change : str_part(change, slash + 1, SIZE_MAX);
}

static int64_t created_ms_of(const sim *s, const metadata *m)
{
    return m->creation_timestamp.set ? m->creation_timestamp.at.seconds * 1000
                                     : s->settings.start_ms;
}

/* ---- targets that documents describe ---- */

static bool node_traits(sim *s, const node *n, herd_traits *ret)
{
    label *kept = ARENA_ARRAY(s->arena, n->metadata.annotations.len + 1, label);
    fact_taint *taints = ARENA_ARRAY(s->arena, n->spec.taints.len + 1, fact_taint);
    static const char *const effects[] = {
#define X(effect, text) text,
        TAINT_EFFECTS(X)
#undef X
    };
    if (!kept || !taints)
        return false;
    size_t len = 0;
    for (size_t i = 0; i < n->metadata.annotations.len; i++)
        if (str_starts(n->metadata.annotations.at[i].key, STR(ANNOTATION_OURS)))
            kept[len++] = n->metadata.annotations.at[i];
    for (size_t i = 0; i < n->spec.taints.len; i++) {
        const taint *t = &n->spec.taints.at[i];
        taints[i] = (fact_taint){t->key, t->value, str_of(effects[t->effect])};
    }
    ret->annotations = (label_set){kept, len};
    ret->taints = taints;
    ret->taint_count = n->spec.taints.len;
    return true;
}

static uint16_t node_flags(const node *n)
{
    uint16_t flags = n->spec.unschedulable ? HERD_UNSCHEDULABLE : 0;
    const condition *ready = condition_find(n->status.conditions, STR("Ready"));
    if (ready && ready->status != CONDITION_TRUE)
        flags |= HERD_NOT_READY;
    return flags;
}

static bool object_traits(sim *s, const object *o, herd_traits *traits, uint16_t *flags)
{
    *traits = (herd_traits){.uid = o->metadata->uid, .labels = o->metadata->labels};
    *flags = 0;
    if (o->kind == KIND_NODE) {
        *flags = node_flags(o->node);
        traits->boot_id = o->node->status.node_info.boot_id;
        return node_traits(s, o->node, traits);
    }
    if (o->kind == KIND_RESOURCE) {
        traits->document = o;
        return true;
    }
    const cluster *c = o->cluster;
    traits->annotations = c->metadata.annotations;
    traits->template_values = c->spec.template_values;
    traits->namespace_ = c->metadata.namespace_;
    traits->deploy_namespace = c->status.namespace_;
    const opt_moment *seen = &c->status.agent.last_seen;
    traits->last_seen_ms = seen->set ? seen->at.seconds * 1000 : s->settings.start_ms;
    if (c->spec.paused)
        *flags = HERD_PAUSED;
    return true;
}

bool sim_object_joins(sim *s, const object *o, err *error)
{
    static const target_kind kinds[] = {[KIND_NODE] = TARGET_NODE,
                                        [KIND_CLUSTER] = TARGET_CLUSTER,
                                        [KIND_RESOURCE] = TARGET_RESOURCE};
    herd_traits traits;
    uint16_t flags;
    if (!sim_rejoins(s, kinds[o->kind], o->metadata->name, error))
        return false;
    if (!object_traits(s, o, &traits, &flags))
        return err_memory(error);
    herd_traits *own = herd_share(&s->herd, &traits);
    uint32_t before = herd_find(&s->herd, kinds[o->kind], o->metadata->name);
    uint16_t kept = before == HERD_NONE ? 0 : s->herd.targets.at[before].flags;
    uint32_t t = own ? herd_add(&s->herd, kinds[o->kind], o->metadata->name, own,
                                created_ms_of(s, o->metadata))
                     : HERD_NONE;
    if (t == HERD_NONE)
        return err_memory(error);
    kept &= HERD_MAY_FAIL | HERD_OFFLINE | HERD_DISTURBED | HERD_DRAINED;
    s->herd.targets.at[t].flags |= (uint16_t)(flags | kept | HERD_OWN_TRAITS);
    return !s->no_memory || err_memory(error);
}

/* ---- documents ---- */

static bool same_object(const object *a, const object *b)
{
    return a->kind == b->kind && str_eq(a->metadata->name, b->metadata->name) &&
           str_eq(a->metadata->namespace_, b->metadata->namespace_);
}

static bool add_document(sim *s, const object *o)
{
    for (size_t i = 0; i < s->documents.len; i++)
        if (same_object(s->documents.at[i], o)) {
            s->documents.at[i] = o;
            return true;
        }
    return vec_push(&s->documents, o);
}

const object *sim_keep_document(sim *s, const object *o)
{
    if (o->kind == KIND_POD)
        return NULL;
    if (o->kind == KIND_FLEET_YAML) {
        object *made = ARENA_NEW(s->arena, object);
        str name = fleet_yaml_name(s->arena, o->document ? o->document->file : STR_EMPTY);
        bundle *b = made && name.ptr ? fleet_yaml_bundle(s->arena, o->fleet_yaml, name) : NULL;
        sim_memory(s, b != NULL);
        if (!b)
            return NULL;
        *made = object_of(KIND_BUNDLE, b);
        o = made;
    }
    sim_memory(s, add_document(s, o));
    return s->no_memory ? NULL : o;
}

/* A version is published when it was created: one of later comes on the way. */
static bool publish_later(sim *s, const object *o, err *error)
{
    happening h = {.kind = HAPPEN_APPLY,
                   .after_ms = created_ms_of(s, o->metadata) - s->settings.start_ms,
                   .document = o};
    return sim_add_happening(s, &h, error);
}

bool sim_add_object(sim *s, const object *o, err *error)
{
    if (sim_object_target(o))
        return sim_object_joins(s, o, error);
    if (o->kind == KIND_VERSION && created_ms_of(s, o->metadata) > s->settings.start_ms)
        return publish_later(s, o, error);
    if (o->kind == KIND_BUNDLE_DEPLOYMENT) /* there may be very many */
        return vec_push(&s->deployed, o->bundle_deployment) || err_memory(error);
    sim_keep_document(s, o);
    return !s->no_memory || err_memory(error);
}

/* ---- what runs on clusters ---- */

/* Clusters by the namespace of their deployments; several may share one. */
typedef struct homes {
    strmap first;   /* namespace -> a target */
    uint32_t *next; /* of each target: another one there, or HERD_NONE */
} homes;

static bool find_homes(sim *s, homes *ret)
{
    ret->next = ARENA_ARRAY(s->arena, s->herd.targets.len + 1, uint32_t);
    for (uint32_t t = 0; ret->next && t < s->herd.targets.len; t++) {
        const herd_target *c = &s->herd.targets.at[t];
        str home = c->kind == TARGET_CLUSTER ? c->traits->deploy_namespace : STR_EMPTY;
        const uint64_t *known = home.len > 0 ? strmap_get(&ret->first, home) : NULL;
        ret->next[t] = known ? (uint32_t)*known : HERD_NONE;
        if (home.len > 0 && !strmap_put(&ret->first, home, t))
            return false;
    }
    return ret->next != NULL;
}

/* What a BundleDeployment says of a bundle on the cluster in whose namespace it lives. */
static bool add_bundle_deployment(sim *s, const homes *h, const bundle_deployment *d)
{
    str name = label_get(d->metadata.labels, STR(LABEL_BUNDLE_NAME));
    str space = label_get(d->metadata.labels, STR(LABEL_BUNDLE_NAMESPACE));
    const uint64_t *known = name.ptr ? strmap_get(&h->first, d->metadata.namespace_) : NULL;
    if (!known)
        return true;
    str change = arena_printf(s->arena, "%.*s/%.*s", STR_ARG(space), STR_ARG(name));
    if (!change.ptr)
        return false;
    for (uint32_t t = (uint32_t)*known; t != HERD_NONE; t = h->next[t]) {
        sim_release *r = sim_release_of(s, sim_name(s, change), t);
        if (!r)
            return false;
        *r = (sim_release){.live = sim_name(s, d->spec.deployment_id),
                           .applied = sim_name(s, d->status.applied_deployment_id),
                           .span = UINT32_MAX,
                           .exists = true,
                           .ready = d->status.ready};
    }
    return true;
}

static bool add_bundle_deployments(sim *s)
{
    homes h = {0};
    bool good = s->deployed.len == 0 || find_homes(s, &h);
    for (size_t i = 0; good && i < s->deployed.len; i++)
        good = add_bundle_deployment(s, &h, s->deployed.at[i]);
    strmap_done(&h.first);
    return good;
}

/* ---- made-up targets ---- */

/* Clusters that are made up live where the bundles look for them. */
static str made_up_namespace(const sim *s)
{
    for (size_t i = 0; i < s->documents.len; i++)
        if (s->documents.at[i]->kind == KIND_BUNDLE)
            return s->documents.at[i]->metadata->namespace_;
    return STR("fleet-default");
}

static bool made_up_resources(sim *s, size_t from)
{
    for (size_t i = from; i < s->herd.targets.len; i++) {
        herd_traits *own = herd_own(&s->herd, (uint32_t)i);
        resource *r = ARENA_NEW(s->arena, resource);
        object *o = ARENA_NEW(s->arena, object);
        if (!own || !r || !o)
            return false;
        r->metadata.name = s->herd.targets.at[i].name;
        r->metadata.labels = own->labels;
        r->spec.kind = STR("host");
        *o = object_of(KIND_RESOURCE, r);
        own->document = o;
    }
    return true;
}

bool sim_add_targets(sim *s, target_kind kind, uint64_t count, label_set labels, err *error)
{
    herd_traits traits = {.labels = labels};
    if (kind == TARGET_CLUSTER) {
        traits.namespace_ = made_up_namespace(s);
        traits.deploy_namespace = STR("cluster-fleet-made-up");
        traits.last_seen_ms = s->settings.start_ms;
    }
    herd_traits *shared = herd_share(&s->herd, &traits);
    size_t before = s->herd.targets.len;
    bool good = shared && herd_make_up(&s->herd, kind, count, shared, s->settings.start_ms);
    if (good && kind == TARGET_RESOURCE)
        good = made_up_resources(s, before);
    return good || err_memory(error);
}

/* ---- what runs already (--from) ---- */

/* The version that "from" gives to a name; 0 if none. The last one given counts, a named one first.
 */
static name_id from_version(const sim *s, str name)
{
    name_id any = 0, named = 0;
    for (size_t i = 0; i < s->from.len; i++)
        if (s->from.at[i].name == 0)
            any = s->from.at[i].version;
        else if (str_eq(names_text(s->names, s->from.at[i].name), name))
            named = s->from.at[i].version;
    return named ? named : any;
}

/* The text of the annotation nodeState_SK on a node where packages run at their "from" versions. */
static bool from_node_state(sim *s, const skyhook *sk, str *ret)
{
    package_status *entries = ARENA_ARRAY(s->arena, sk->spec.packages.len + 1, package_status);
    if (!entries)
        return false;
    node_state state = {.packages = {entries, 0}};
    for (size_t i = 0; i < sk->spec.packages.len; i++) {
        const package *p = &sk->spec.packages.at[i];
        name_id tag = from_version(s, p->name);
        if (!tag)
            continue;
        str text = names_text(s->names, tag);
        entries[state.packages.len++] = (package_status){
            .key = arena_printf(s->arena, "%.*s|%.*s", STR_ARG(p->name), STR_ARG(text)),
            .name = p->name,
            .version = text,
            .image = p->image,
            .stage = p->interrupt ? STAGE_POST_INTERRUPT : STAGE_CONFIG,
            .state = PACKAGE_COMPLETE,
        };
    }
    *ret = STR_EMPTY;
    if (state.packages.len == 0)
        return true;
    buf text = BUF(NODE_STATE_BYTES_MAX);
    node_state_write(&state, &text);
    *ret = arena_str(s->arena, buf_str(&text));
    bool good = !text.failed && ret->ptr;
    buf_done(&text);
    return good;
}

static bool from_nodes(sim *s, const object *o)
{
    str state;
    str key = arena_printf(s->arena, "%s%.*s", ANNOTATION_NODE_STATE, STR_ARG(o->metadata->name));
    if (!key.ptr || !from_node_state(s, o->skyhook, &state))
        return false;
    for (size_t i = 0; state.len > 0 && i < s->herd.targets.len; i++) {
        herd_target *t = &s->herd.targets.at[i];
        /* Shared traits are met again and again, and changed the first time. */
        if (t->kind == TARGET_NODE && !label_get(t->traits->annotations, key).ptr &&
            !herd_label(&s->herd, &t->traits->annotations, key, state))
            return false;
    }
    return true;
}

static bool from_clusters(sim *s, const object *o)
{
    name_id tag = from_version(s, o->metadata->name);
    name_id change = sim_name(s, sim_change_name(s, o));
    for (uint32_t i = 0; tag && i < s->herd.targets.len; i++) {
        if (s->herd.targets.at[i].kind != TARGET_CLUSTER)
            continue;
        sim_release *r = sim_release_of(s, change, i);
        if (!r)
            return false;
        if (!r->exists)
            *r = (sim_release){
                .live = tag, .applied = tag, .span = UINT32_MAX, .exists = true, .ready = true};
    }
    return !s->no_memory;
}

static bool from_resource(sim *s, uint32_t target, str name, str tag)
{
    herd_traits *own = herd_own(&s->herd, target);
    if (!own || !own->document)
        return false;
    const resource *old = own->document->resource;
    for (size_t i = 0; i < old->status.releases.len; i++)
        if (str_eq(old->status.releases.at[i].deployment, name))
            return true;
    resource *r = ARENA_NEW(s->arena, resource);
    object *o = ARENA_NEW(s->arena, object);
    resource_release *list = ARENA_ARRAY(s->arena, old->status.releases.len + 1, resource_release);
    if (!r || !o || !list)
        return false;
    *r = *old;
    if (old->status.releases.len > 0)
        memcpy(list, old->status.releases.at, old->status.releases.len * sizeof *list);
    list[r->status.releases.len++] = (resource_release){.deployment = name, .version = tag};
    r->status.releases.at = list;
    *o = object_of(KIND_RESOURCE, r);
    o->document = own->document->document;
    own->document = o;
    return true;
}

static bool from_resources(sim *s, const object *o)
{
    name_id tag = from_version(s, o->metadata->name);
    for (uint32_t i = 0; tag && i < s->herd.targets.len; i++)
        if (s->herd.targets.at[i].kind == TARGET_RESOURCE &&
            !from_resource(s, i, o->metadata->name, names_text(s->names, tag)))
            return false;
    return true;
}

/* ---- before the first second ---- */

static bool note_bundle(sim *s, const object *o)
{
    const opt_int *offline = &o->bundle->spec.rollout_strategy.offline_after_seconds;
    int64_t beat_ms = offline->set ? offline->value * 1000 / 2 / 1000 * 1000 : 0;
    if (offline->set && beat_ms < 1000)
        beat_ms = 1000;
    if (beat_ms > 0 && (s->heartbeat_ms == 0 || beat_ms < s->heartbeat_ms))
        s->heartbeat_ms = beat_ms;
    name_id change = sim_name(s, sim_change_name(s, o));
    for (size_t i = 0; i < s->bundles.len; i++)
        if (s->bundles.at[i] == change)
            return true;
    return change && vec_push(&s->bundles, change);
}

bool sim_note_document(sim *s, const object *o)
{
    if (o->kind == KIND_BUNDLE)
        return note_bundle(s, o);
    for (size_t p = 0; o->kind == KIND_SKYHOOK && p < o->skyhook->spec.packages.len; p++) {
        const package *one = &o->skyhook->spec.packages.at[p];
        if (one->interrupt && !strmap_get(&s->interrupting, one->name) &&
            !strmap_put(&s->interrupting, one->name, s->interrupting.len))
            return false;
    }
    return true;
}

static bool prepare_document(sim *s, const object *o)
{
    if (!sim_note_document(s, o))
        return false;
    if (s->from.len == 0)
        return true;
    if (o->kind == KIND_SKYHOOK)
        return from_nodes(s, o);
    if (o->kind == KIND_BUNDLE)
        return from_clusters(s, o);
    return o->kind != KIND_DEPLOYMENT || from_resources(s, o);
}

static bool hold_slot(void *context, const slot_view *v)
{
    sim *s = context;
    uint32_t target = herd_find(&s->herd, TARGET_RESOURCE, v->target);
    if (target != HERD_NONE)
        sim_hold(s, target);
    return true;
}

typedef struct going_on {
    sim *sim;
    err *error;
    bool good;
} going_on;

static bool placement_goes_on(void *context, const placement_view *v)
{
    going_on *g = context;
    if (v->kind == TARGET_NODE && v->state == PLACEMENT_IN_FLIGHT)
        g->good = sim_node_goes_on(g->sim, v, g->error);
    if (v->kind == TARGET_CLUSTER && v->state == PLACEMENT_IN_FLIGHT)
        g->good = sim_cluster_goes_on(g->sim, v, g->error);
    return g->good;
}

/* The engine knows what the live one knew, and what runs there runs on here. */
static bool come_alive(sim *s, err *error)
{
    if (!engine_restore(s->engine, s->live_saved, error))
        return false;
    for (size_t i = 0; i < s->running_count; i++)
        if (!sim_goes_on(s, &s->running[i], error))
            return false;
    engine_slots(s->engine, STR_EMPTY, hold_slot, s);
    going_on g = {s, error, true};
    return (engine_placements(s->engine, placement_goes_on, &g) || !g.good || err_memory(error)) &&
           g.good;
}

bool sim_prepare(sim *s, err *error)
{
    assert(!s->prepared);
    s->prepared = true;
    if (!add_bundle_deployments(s))
        return err_memory(error);
    for (size_t i = 0; i < s->documents.len; i++)
        if (!prepare_document(s, s->documents.at[i]))
            return err_memory(error);
    s->next_heartbeat_ms = s->settings.start_ms + s->heartbeat_ms;
    return sim_take_world(s, s->engine, error) && (!s->live || come_alive(s, error));
}

void sim_report_fact(const sim *s, name_id change, uint32_t target, const sim_release *r, fact *ret)
{
    *ret = (fact){.kind = FACT_REPORT,
                  .report = {.change = names_text(s->names, change),
                             .target = s->herd.targets.at[target].name,
                             .exists = r->exists,
                             .live = names_text(s->names, r->live),
                             .applied = names_text(s->names, r->applied),
                             .ready = r->ready,
                             .failed = r->failed,
                             .message = r->failed ? STR("it was told to fail") : STR_EMPTY}};
}

static bool take_targets(sim *s, engine *e, err *error)
{
    size_t count = 0;
    for (uint32_t i = 0; i < s->herd.targets.len; i++) {
        if (s->herd.targets.at[i].flags & HERD_GONE)
            continue;
        herd_fact(&s->herd, i, s->boots[count], &s->facts[count]);
        if (++count < SIM_PORTION)
            continue;
        if (!(engine_take(e, s->facts, count, s->now_ms) || err_memory(error)))
            return false;
        count = 0;
    }
    return (engine_take(e, s->facts, count, s->now_ms) || err_memory(error));
}

static bool take_reports(sim *s, engine *e, err *error)
{
    for (size_t i = 0; i < s->release_at.len; i++) {
        uint32_t key[2];
        memcpy(key, s->release_at.entries[i].key.ptr, sizeof key);
        const sim_release *r = &s->releases.at[s->release_at.entries[i].value];
        if ((s->herd.targets.at[key[1]].flags & HERD_GONE) || !r->exists)
            continue;
        fact f;
        sim_report_fact(s, key[0], key[1], r, &f);
        if (!(engine_take(e, &f, 1, s->now_ms) || err_memory(error)))
            return false;
    }
    return true;
}

bool sim_take_world(sim *s, engine *e, err *error)
{
    assert(s->fact_count == 0);
    for (size_t i = 0; i < s->documents.len; i++) {
        fact f = {.kind = FACT_DOCUMENT, .document = s->documents.at[i]};
        if (!(engine_take(e, &f, 1, s->now_ms) || err_memory(error)))
            return false;
    }
    return take_targets(s, e, error) && take_reports(s, e, error);
}

/* ---- a restart ---- */

static bool restart_with(sim *s, engine *fresh, str saved, err *error)
{
    if (!sim_take_world(s, fresh, error) || !engine_restore(fresh, saved, error))
        return false;
    buf again = BUF(SAVED_BYTES_MAX);
    bool good = engine_save(fresh, &again) || err_memory(error);
    if (good && !str_eq(buf_str(&again), saved)) {
        str a = saved, b = buf_str(&again);
        str was = STR_EMPTY, is = STR_EMPTY;
        while ((a.len > 0 || b.len > 0) && str_eq(was, is)) {
            was = str_cut(&a, '\n');
            is = str_cut(&b, '\n');
        }
        good = err_set(error, "restored, the engine saves \"%.*s\", it saved \"%.*s\"",
                       is.len < 400 ? (int)is.len : 400, is.ptr, was.len < 400 ? (int)was.len : 400,
                       was.ptr);
    }
    buf_done(&again);
    return good;
}

bool sim_restart(sim *s, err *error)
{
    buf saved = BUF(SAVED_BYTES_MAX);
    engine *fresh = NULL;
    bool good = engine_save(s->engine, &saved) || err_memory(error);
    if (good) {
        fresh = engine_new(&s->settings.engine, error);
        good = fresh && restart_with(s, fresh, buf_str(&saved), error);
    }
    buf_done(&saved);
    engine_free(good ? s->engine : fresh);
    if (!good)
        return err_wrap(error, "restart");
    s->engine = fresh;
    return true;
}
