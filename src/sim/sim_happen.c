/* SPDX-License-Identifier: Apache-2.0 */
/* sim_happen.c - lets happenings happen: what people and the world do becomes facts. */
#include <assert.h>

#include "sim/sim_internal.h"

static bool unknown(const sim *s, const char *what, str found, err *error)
{
    return s->settings.lenient ||
           err_set(error, "%s: found \"%s\", which is not there", what, str_shown(found).text);
}

/* ---- documents ---- */

static bool tell_document(sim *s, const object *o, err *error)
{
    const object *kept = sim_keep_document(s, o);
    if (!kept)
        return !s->no_memory || err_memory(error);
    if (!sim_note_document(s, kept))
        return err_memory(error);
    return sim_fact_document(s, kept, error);
}

static bool apply(sim *s, const object *o, err *error)
{
    if (!sim_object_target(o))
        return tell_document(s, o, error);
    if (!sim_object_joins(s, o, error))
        return false;
    return sim_fact_target(s, herd_find_any(&s->herd, o->metadata->name), error);
}

static const object *document_named(const sim *s, object_kind kind, str name)
{
    for (size_t i = 0; i < s->documents.len; i++)
        if (s->documents.at[i]->kind == kind && str_eq(s->documents.at[i]->metadata->name, name))
            return s->documents.at[i];
    return NULL;
}

/* A version of a deployment, published now. */
static bool publish_version(sim *s, const happening *h, err *error)
{
    version *v = ARENA_NEW(s->arena, version);
    object *o = ARENA_NEW(s->arena, object);
    str name = arena_printf(s->arena, "%.*s-%.*s", STR_ARG(h->name), STR_ARG(h->version));
    if (!v || !o || !name.ptr)
        return err_memory(error);
    v->metadata.name = name;
    v->metadata.creation_timestamp = (opt_moment){true, {s->now_ms / 1000, 0}};
    v->spec.deployment = h->name;
    v->spec.tag = h->version;
    v->spec.status = VERSION_READY;
    *o = object_of(KIND_VERSION, v);
    return tell_document(s, o, error);
}

static bool publish_bundle(sim *s, const object *old, str tag, err *error)
{
    bundle *b = ARENA_NEW(s->arena, bundle);
    object *o = ARENA_NEW(s->arena, object);
    if (!b || !o)
        return err_memory(error);
    *b = *old->bundle;
    b->spec.contents_id = tag;
    b->metadata.generation++;
    *o = object_of(KIND_BUNDLE, b);
    return tell_document(s, o, error);
}

/* The Skyhook with the package at another version; *ret is NULL if it has no such package. */
static bool with_package(sim *s, const object *old, str name, str tag, const object **ret)
{
    *ret = NULL;
    if (old->kind != KIND_SKYHOOK || !skyhook_package(old->skyhook, name))
        return true;
    skyhook *sk = ARENA_NEW(s->arena, skyhook);
    object *o = ARENA_NEW(s->arena, object);
    size_t count = old->skyhook->spec.packages.len;
    package *packages = ARENA_ARRAY(s->arena, count, package);
    if (!sk || !o || !packages)
        return false;
    *sk = *old->skyhook;
    memcpy(packages, sk->spec.packages.at, count * sizeof *packages);
    for (size_t i = 0; i < count; i++)
        if (str_eq(packages[i].name, name))
            packages[i].version = tag;
    sk->spec.packages.at = packages;
    sk->metadata.generation++;
    *o = object_of(KIND_SKYHOOK, sk);
    *ret = o;
    return true;
}

static bool publish(sim *s, const happening *h, err *error)
{
    if (document_named(s, KIND_DEPLOYMENT, h->name))
        return publish_version(s, h, error);
    const object *named = document_named(s, KIND_BUNDLE, h->name);
    if (named)
        return publish_bundle(s, named, h->version, error);
    bool found = false;
    for (size_t i = 0; i < s->documents.len; i++) {
        const object *changed;
        if (!with_package(s, s->documents.at[i], h->name, h->version, &changed))
            return err_memory(error);
        found = found || changed;
        if (changed && !tell_document(s, changed, error))
            return false;
    }
    return found || unknown(s, "publish", h->name, error);
}

/* A Skyhook goes by its finalizer: what can be uninstalled is, first. */
static bool delete_skyhook(sim *s, const object *old, err *error)
{
    skyhook *sk = ARENA_NEW(s->arena, skyhook);
    object *o = ARENA_NEW(s->arena, object);
    str *finalizer = ARENA_NEW(s->arena, str);
    if (!sk || !o || !finalizer)
        return err_memory(error);
    *finalizer = STR("skyhook.nvidia.com/skyhook");
    *sk = *old->skyhook;
    sk->metadata.deletion_timestamp = (opt_moment){true, {s->now_ms / 1000, 0}};
    sk->metadata.finalizers = (str_list){.at = finalizer, .len = 1};
    *o = object_of(KIND_SKYHOOK, sk);
    return tell_document(s, o, error);
}

bool sim_finalize(sim *s, str name, err *error)
{
    const object *o = document_named(s, KIND_SKYHOOK, name);
    size_t kept = 0;
    for (size_t i = 0; i < s->documents.len; i++)
        if (s->documents.at[i] != o)
            s->documents.at[kept++] = s->documents.at[i];
    s->documents.len = kept;
    return !o || sim_fact_document_gone(s, o, error);
}

static bool delete_documents(sim *s, str name, err *error)
{
    const object *skyhook_named = document_named(s, KIND_SKYHOOK, name);
    if (skyhook_named && !delete_skyhook(s, skyhook_named, error))
        return false;
    bool found = skyhook_named;
    for (size_t i = 0; i < s->documents.len;) {
        const object *o = s->documents.at[i];
        if (!str_eq(o->metadata->name, name) || o->kind == KIND_SKYHOOK) {
            i++;
            continue;
        }
        memmove(&s->documents.at[i], &s->documents.at[i + 1],
                (s->documents.len - i - 1) * sizeof *s->documents.at);
        s->documents.len--;
        found = true;
        if (!sim_fact_document_gone(s, o, error))
            return false;
    }
    return found || unknown(s, "delete", name, error);
}

/* ---- targets ---- */

static bool leave(sim *s, uint32_t target, err *error)
{
    sim_let_all_go(s, target);
    herd_target *t = &s->herd.targets.at[target];
    t->flags = (uint16_t)(HERD_GONE | HERD_UNTOLD | (t->flags & HERD_FAILED));
    for (size_t i = 0; i < s->release_at.len; i++) {
        uint32_t key[2];
        memcpy(key, s->release_at.entries[i].key.ptr, sizeof key);
        if (key[1] == target)
            s->releases.at[s->release_at.entries[i].value] = (sim_release){.span = UINT32_MAX};
    }
    for (size_t i = 0; i < s->placements.len; i++)
        if (s->placements.at[i].target == target)
            s->placements.at[i] = (sim_placement){.target = HERD_NONE};
    return sim_fact_target(s, target, error);
}

static target_kind joining_kind(const sim *s, const happening *h)
{
    if (h->as_given)
        return h->as;
    if (s->herd.targets.len > 0)
        return (target_kind)s->herd.targets.at[0].kind;
    for (size_t i = 0; i < s->documents.len; i++) {
        if (s->documents.at[i]->kind == KIND_BUNDLE)
            return TARGET_CLUSTER;
        if (s->documents.at[i]->kind == KIND_DEPLOYMENT)
            return TARGET_RESOURCE;
    }
    return TARGET_NODE;
}

/* A resource is seen through its document: labels that change give it another one. */
static bool relabel_document(sim *s, herd_traits *own, str name)
{
    resource *r = ARENA_NEW(s->arena, resource);
    object *o = ARENA_NEW(s->arena, object);
    if (!r || !o)
        return false;
    if (own->document)
        *r = *own->document->resource;
    else
        r->spec.kind = STR("host");
    r->metadata.name = name;
    r->metadata.labels = own->labels;
    *o = object_of(KIND_RESOURCE, r);
    own->document = o;
    return true;
}

static bool set_labels(sim *s, uint32_t target, const happening *h)
{
    herd_traits *own = herd_own(&s->herd, target);
    for (size_t i = 0; own && i < h->label_count; i++)
        if (!herd_label(&s->herd, &own->labels, h->labels[i].key, h->labels[i].value))
            return false;
    const herd_target *t = &s->herd.targets.at[target];
    return own && (t->kind != TARGET_RESOURCE || relabel_document(s, own, t->name));
}

static bool join(sim *s, const happening *h, err *error)
{
    if (h->document)
        return apply(s, h->document, error);
    target_kind kind = joining_kind(s, h);
    herd_traits traits = {.last_seen_ms = s->now_ms};
    for (size_t i = 0; kind == TARGET_CLUSTER && i < s->documents.len; i++)
        if (s->documents.at[i]->kind == KIND_BUNDLE)
            traits.namespace_ = s->documents.at[i]->metadata->namespace_;
    if (kind == TARGET_CLUSTER)
        traits.deploy_namespace = STR("cluster-fleet-made-up");
    uint32_t before = herd_find(&s->herd, kind, h->target);
    if (before != HERD_NONE)
        return s->settings.lenient || err_set(error, "join: found \"%s\", which is there already",
                                              str_shown(h->target).text);
    if (!sim_rejoins(s, kind, h->target, error))
        return false;
    herd_traits *own = herd_share(&s->herd, &traits);
    uint32_t t = own ? herd_add(&s->herd, kind, h->target, own, s->now_ms) : HERD_NONE;
    if (t == HERD_NONE)
        return err_memory(error);
    s->herd.targets.at[t].flags |= HERD_OWN_TRAITS;
    if (!set_labels(s, t, h))
        return err_memory(error);
    return sim_fact_target(s, t, error);
}

/* The agent of a cluster that was failing tries again. */
static bool try_again(sim *s, uint32_t target, err *error)
{
    for (size_t i = 0; i < s->bundles.len; i++) {
        const sim_release *r = sim_release_of(s, s->bundles.at[i], target);
        if (!r)
            return err_memory(error);
        if (!r->exists || !r->failed)
            continue;
        str part = sim_part_name(names_text(s->names, s->bundles.at[i]));
        agenda_entry e = {.kind = AGENDA_REPORT,
                          .target = target,
                          .change = s->bundles.at[i],
                          .part = sim_name(s, part),
                          .version = r->live};
        if (!sim_schedule(s, sim_duration(s, part), e))
            return err_memory(error);
    }
    return true;
}

static bool heal(sim *s, uint32_t target, str part, err *error)
{
    name_id id = sim_name(s, part);
    size_t kept = 0;
    for (size_t i = 0; i < s->failing.len; i++) {
        sim_failing f = s->failing.at[i];
        if (f.target != target || (id != 0 && f.part != id))
            s->failing.at[kept++] = f;
    }
    s->failing.len = kept;
    return s->herd.targets.at[target].kind != TARGET_CLUSTER || try_again(s, target, error);
}

static bool go_online(sim *s, uint32_t target, err *error)
{
    herd_target *t = &s->herd.targets.at[target];
    t->flags &= (uint16_t)~(HERD_OFFLINE | HERD_NOT_READY);
    if (t->kind == TARGET_CLUSTER) {
        herd_traits *own = herd_own(&s->herd, target);
        if (!own)
            return err_memory(error);
        own->last_seen_ms = s->now_ms;
    }
    size_t kept = 0;
    for (size_t i = 0; i < s->held.len; i++) {
        agenda_entry e = s->held.at[i];
        if (e.target != target)
            s->held.at[kept++] = e;
        else if (!agenda_put(&s->agenda, s->now_ms, e))
            return err_memory(error);
    }
    s->held.len = kept;
    return sim_fact_target(s, target, error);
}

static bool go_offline(sim *s, uint32_t target, err *error)
{
    herd_target *t = &s->herd.targets.at[target];
    t->flags |= HERD_OFFLINE;
    if (t->kind == TARGET_NODE)
        t->flags |= HERD_NOT_READY;
    return sim_fact_target(s, target, error);
}

static void set_flag(herd_target *t, uint16_t flag, bool on)
{
    t->flags = on ? (uint16_t)(t->flags | flag) : (uint16_t)(t->flags & ~flag);
}

static bool to_target(sim *s, const happening *h, uint32_t target, err *error)
{
    herd_target *t = &s->herd.targets.at[target];
    switch (h->kind) {
    case HAPPEN_DELETE: return leave(s, target, error);
    case HAPPEN_OFFLINE: return go_offline(s, target, error);
    case HAPPEN_ONLINE: return go_online(s, target, error);
    case HAPPEN_CORDON:
    case HAPPEN_UNCORDON: set_flag(t, HERD_UNSCHEDULABLE, h->kind == HAPPEN_CORDON); break;
    case HAPPEN_PAUSE:
    case HAPPEN_RESUME: set_flag(t, HERD_PAUSED, h->kind == HAPPEN_PAUSE); break;
    case HAPPEN_REBOOT: t->boots++; break;
    case HAPPEN_LABEL:
        if (!set_labels(s, target, h))
            return err_memory(error);
        break;
    case HAPPEN_TAINT:
        if (!herd_taint(&s->herd, target, h->taint))
            return err_memory(error);
        break;
    case HAPPEN_UNTAINT:
        if (!herd_untaint(&s->herd, target, h->taint))
            return err_memory(error);
        break;
    case HAPPEN_PUBLISH:
    case HAPPEN_APPROVE:
    case HAPPEN_JOIN:
    case HAPPEN_FAIL:
    case HAPPEN_HEAL:
    case HAPPEN_APPLY:
    case HAPPEN_RETRY:
    case HAPPEN_SKIP:
    case HAPPEN_RESET:
    case HAPPEN_RERUN:
    case HAPPEN_REJECT:
    case HAPPEN_ROLLBACK:
    case HAPPEN_BYPASS:
    case HAPPEN_FREEZE:
    case HAPPEN_THAW:
    case HAPPEN_CLAIM_SLOT:
    case HAPPEN_FREE_SLOT:
    case HAPPEN_HALT: return true;
    }
    return sim_fact_target(s, target, error);
}

/* ---- people ---- */

/* The name of a change as the engine says it: a Bundle's with its namespace. */
static str change_named(sim *s, str name)
{
    const object *b = document_named(s, KIND_BUNDLE, name);
    return b ? sim_change_name(s, b) : name;
}

/* Whether there is a change of that name. What a live fleet has is not all in documents here. */
static bool is_change(sim *s, str name)
{
    for (size_t i = 0; i < s->documents.len; i++) {
        const object *o = s->documents.at[i];
        bool change =
            o->kind == KIND_SKYHOOK || o->kind == KIND_BUNDLE || o->kind == KIND_DEPLOYMENT;
        if (change && (str_eq(o->metadata->name, name) || str_eq(sim_change_name(s, o), name)))
            return true;
    }
    return sim_is_live(s);
}

/* The version with that tag, or id: of a deployment, or of any without a name. */
static const object *document_version(const sim *s, str name, str tag)
{
    const object *by_id = NULL;
    for (size_t i = 0; i < s->documents.len; i++) {
        const object *o = s->documents.at[i];
        if (o->kind != KIND_VERSION || (name.len > 0 && !str_eq(o->version->spec.deployment, name)))
            continue;
        if (str_eq(o->version->spec.tag, tag))
            return o;
        if (str_eq(o->metadata->name, tag) || str_eq(o->metadata->uid, tag))
            by_id = o;
    }
    return by_id;
}

/* The id of a deployment's version: its uid, else its name. */
static str version_id(const sim *s, str name, str tag)
{
    const object *o = document_version(s, name, tag);
    if (!o)
        return tag;
    return o->metadata->uid.len > 0 ? o->metadata->uid : o->metadata->name;
}

typedef struct lookup {
    str name, change;
    bool any, found;
} lookup;

static bool is_that_freeze(void *context, const freeze_view *v)
{
    lookup *l = context;
    l->found |= str_eq(v->name, l->name);
    return !l->found;
}

/* Whether there is a freeze of that name, also one of this very moment. */
static bool is_frozen_as(const sim *s, str name)
{
    lookup l = {.name = name};
    engine_freezes(s->engine, is_that_freeze, &l);
    for (size_t i = 0; i < s->fact_count; i++)
        l.found |= s->facts[i].kind == FACT_ACT && s->facts[i].act.act == ACT_FREEZE &&
                   str_eq(s->facts[i].act.name, name);
    return l.found;
}

static bool is_rule(const sim *s, str id)
{
    for (size_t i = 0; i < s->documents.len; i++) {
        const object *o = s->documents.at[i];
        for (size_t k = 0; o->kind == KIND_ROLLOUT_POLICY && k < o->rollout_policy->spec.rules.len;
             k++)
            if (str_eq(o->rollout_policy->spec.rules.at[k].id, id))
                return true;
    }
    return sim_is_live(s);
}

static bool is_that_partition(void *context, const group_view *v)
{
    lookup *l = context;
    bool meant = v->kind == GROUP_PARTITION && (l->change.len == 0 || str_eq(v->change, l->change));
    l->any |= meant;
    l->found |= meant && str_eq(v->name, l->name);
    return !l->found;
}

/* Whether a change has a partition of that name; as long as it has none at all, it may get it. */
static bool is_partition(sim *s, str change, str name)
{
    lookup l = {.name = name, .change = change_named(s, change)};
    engine_groups(s->engine, is_that_partition, &l);
    return l.found || !l.any;
}

/* Whether the version that a bypass is for is there, of whatever deployment. */
static bool is_version(const sim *s, str version_)
{
    return document_version(s, STR_EMPTY, version_) || sim_is_live(s);
}

static bool names_its_own(sim *s, const happening *h, act_kind kind, err *error)
{
    const char *what = happening_text(h->kind);
    if (kind == ACT_THAW && h->name.len > 0 && !is_frozen_as(s, h->name))
        return unknown(s, what, h->name, error);
    if (kind == ACT_BYPASS && !is_rule(s, h->rule))
        return unknown(s, what, h->rule, error);
    if (kind == ACT_BYPASS && h->name.len == 0 && !is_version(s, h->version))
        return unknown(s, what, h->version, error);
    if (kind == ACT_APPROVE && h->version.len == 0 && h->target.len > 0 &&
        !is_partition(s, h->name, h->target))
        return unknown(s, what, h->target, error);
    if (h->environment.len > 0 && !sim_is_live(s) &&
        !document_named(s, KIND_ENVIRONMENT, h->environment))
        return unknown(s, what, h->environment, error);
    return true;
}

/* Whether what a person names is there: a change, one of its versions, a target, an environment, a
 * rule. A freeze has a name of its own, and what is approved without a version is a partition. */
static bool names_something(sim *s, const happening *h, act_kind kind, err *error)
{
    const char *what = happening_text(h->kind);
    bool versioned =
        h->version.len > 0 && document_named(s, KIND_DEPLOYMENT, h->name) && !sim_is_live(s);
    if (s->settings.lenient)
        return true;
    if (!names_its_own(s, h, kind, error))
        return false;
    if (kind == ACT_FREEZE || kind == ACT_THAW)
        return true;
    if (h->name.len > 0 && !is_change(s, h->name))
        return unknown(s, what, h->name, error);
    if (versioned && !document_version(s, h->name, h->version))
        return err_set(error, "%s: found version \"%s\" of \"%s\", which is not there", what,
                       str_shown(h->version).text, str_shown(h->name).text);
    bool cut = kind == ACT_APPROVE && h->version.len == 0;
    if (h->target.len > 0 && !cut && herd_find_any(&s->herd, h->target) == HERD_NONE)
        return unknown(s, what, h->target, error);
    return true;
}

static bool act(sim *s, const happening *h, act_kind kind, err *error)
{
    str who = h->who.len > 0 ? h->who : arena_printf(s->arena, "person-%zu", s->happened);
    if (!names_something(s, h, kind, error))
        return false;
    fact f = {.kind = FACT_ACT,
              .act = {.act = kind,
                      .who = who,
                      .change = change_named(s, h->name),
                      .target = h->target,
                      .environment = h->environment,
                      .version = version_id(s, h->name, h->version),
                      .rule = h->rule,
                      .selector = h->selector,
                      .until_ms = h->for_ms > 0 ? s->now_ms + h->for_ms : 0,
                      .reason = h->reason}};
    /* A version is approved everywhere; what is approved in one place is a partition. */
    if (kind == ACT_APPROVE && h->version.len == 0) {
        f.act.partition = h->target;
        f.act.target = STR_EMPTY;
    }
    if (kind == ACT_FREEZE || kind == ACT_THAW) {
        f.act.name = h->name;
        f.act.change = STR_EMPTY;
    }
    return sim_fact_act(s, &f, error);
}

static void tell_happening(sim *s, const happening *h)
{
    str what = h->document ? h->document->metadata->name : h->name;
    sim_tell(s, "%s%s%.*s%s%.*s%s%.*s", happening_text(h->kind), h->target.len > 0 ? " " : "",
             STR_ARG(h->target), what.len > 0 ? " " : "", STR_ARG(what),
             h->version.len > 0 ? " " : "", STR_ARG(h->version));
}

/* Only nodes are cordoned, tainted and rebooted; only clusters are paused one by one. */
static bool fits(const sim *s, const happening *h, uint32_t target, err *error)
{
    target_kind kind = (target_kind)s->herd.targets.at[target].kind;
    bool of_node = h->kind == HAPPEN_CORDON || h->kind == HAPPEN_UNCORDON ||
                   h->kind == HAPPEN_TAINT || h->kind == HAPPEN_UNTAINT || h->kind == HAPPEN_REBOOT;
    bool of_cluster = h->kind == HAPPEN_PAUSE || h->kind == HAPPEN_RESUME;
    bool good = of_node ? kind == TARGET_NODE : !of_cluster || kind == TARGET_CLUSTER;
    if (good || s->settings.lenient)
        return true;
    return err_set(error, "%s: found \"%s\", allowed a %s", happening_text(h->kind),
                   str_shown(h->target).text, of_node ? "node" : "cluster");
}

static bool happen_to_target(sim *s, const happening *h, err *error)
{
    sim_failure at = sim_failure_of(h->target, false);
    uint32_t target = herd_find_any(&s->herd, at.target);
    if (target == HERD_NONE)
        return unknown(s, happening_text(h->kind), h->target, error);
    if (!fits(s, h, target, error))
        return false;
    if (h->kind == HAPPEN_FAIL)
        return sim_add_failure(s, &at, error);
    if (h->kind == HAPPEN_HEAL)
        return heal(s, target, at.part, error);
    return to_target(s, h, target, error);
}

/* Resources are halted one by one, clusters paused. */
static bool resume(sim *s, const happening *h, err *error)
{
    bool halted = herd_find(&s->herd, TARGET_RESOURCE, h->target) != HERD_NONE;
    return h->target.len > 0 && !halted ? happen_to_target(s, h, error)
                                        : act(s, h, ACT_RESUME, error);
}

bool sim_happen(sim *s, const happening *h, err *error)
{
    tell_happening(s, h);
    switch (h->kind) {
    case HAPPEN_PUBLISH: return publish(s, h, error);
    case HAPPEN_APPLY: return apply(s, h->document, error);
    case HAPPEN_JOIN: return join(s, h, error);
    case HAPPEN_DELETE:
        return h->target.len > 0 ? happen_to_target(s, h, error)
                                 : delete_documents(s, h->name, error);
    case HAPPEN_PAUSE:
        return h->target.len > 0 ? happen_to_target(s, h, error) : act(s, h, ACT_PAUSE, error);
    case HAPPEN_RESUME: return resume(s, h, error);
    case HAPPEN_CORDON:
    case HAPPEN_UNCORDON:
    case HAPPEN_LABEL:
    case HAPPEN_FAIL:
    case HAPPEN_HEAL:
    case HAPPEN_OFFLINE:
    case HAPPEN_ONLINE:
    case HAPPEN_REBOOT:
    case HAPPEN_TAINT:
    case HAPPEN_UNTAINT: return happen_to_target(s, h, error);
    case HAPPEN_APPROVE: return act(s, h, ACT_APPROVE, error);
    case HAPPEN_RETRY: return act(s, h, ACT_RETRY, error);
    case HAPPEN_SKIP: return act(s, h, ACT_SKIP, error);
    case HAPPEN_RESET: /* of batches, as reasons mean it; of a target all that it has */
        return act(s, h, h->target.len > 0 ? ACT_RESET : ACT_RESET_BATCHES, error);
    case HAPPEN_RERUN: return act(s, h, ACT_RESET, error);
    case HAPPEN_REJECT: return act(s, h, ACT_REJECT, error);
    case HAPPEN_ROLLBACK: return act(s, h, ACT_ROLLBACK, error);
    case HAPPEN_BYPASS: return act(s, h, ACT_BYPASS, error);
    case HAPPEN_FREEZE: return act(s, h, ACT_FREEZE, error);
    case HAPPEN_THAW: return act(s, h, ACT_THAW, error);
    case HAPPEN_HALT: return act(s, h, ACT_HALT, error);
    case HAPPEN_CLAIM_SLOT: return act(s, h, ACT_CLAIM_SLOT, error);
    case HAPPEN_FREE_SLOT: return act(s, h, ACT_FREE_SLOT, error);
    }
    return true;
}
