/* SPDX-License-Identifier: Apache-2.0 */
/* Into the cluster: the inventory first, then the objects, then away with what left. */
#include <stdio.h>

#include "base/mem.h"
#include "cluster_agent/steps_internal.h"
#include "engine/go_json.h"

/* ---- what is wanted, as names ---- */

/* The objects that the deployment owns. Sorted. The namespace of the release is one of them once a
 * version brought it along: it goes with the deployment, and not while others of its objects are in
 * it. */
static bool wanted_refs(deployment_steps *s, object_ref **ret, size_t *ret_len)
{
    inventory none = {0}, all;
    object_ref space = {STR("v1"), STR("Namespace"), STR_EMPTY, s->manifest.release_namespace};
    object_ref *refs = ARENA_ARRAY(s->way, s->manifest.len + 1, object_ref);
    size_t len = 0;
    for (size_t i = 0; refs && i < s->manifest.len; i++)
        if (!s->manifest.at[i].shared)
            refs[len++] = s->manifest.at[i].ref;
    for (size_t i = 0; refs && i < s->inventory.len; i++)
        if (object_ref_same(&s->inventory.objects[i], &space)) {
            refs[len++] = space;
            break;
        }
    if (!refs || !inventory_join(s->way, &none, refs, len, &all))
        return false;
    *ret = all.objects;
    *ret_len = all.len;
    return true;
}

/* Namespaces that a cluster does not live without. */
static bool may_delete_namespace(const steps_world *w, str name)
{
    static const str never[] = {STR("default"), STR("kube-system"), STR("kube-public"),
                                STR("kube-node-lease")};
    for (size_t i = 0; i < sizeof never / sizeof never[0]; i++)
        if (str_eq(never[i], name))
            return false;
    return !str_eq(name, w->agent_namespace);
}

static void describe(const deployment_steps *s, const steps_world *w, inventory *i)
{
    const manifest *m = &s->manifest;
    i->deployment = buf_str(&s->name);
    i->wanted = steps_live_id(s);
    i->release = (release_name){m->release_namespace, m->release};
    i->account = m->account;
    i->keep_resources = m->keep_resources;
    bool with_namespace = m->delete_namespace && may_delete_namespace(w, m->release_namespace);
    i->delete_namespace = with_namespace ? m->release_namespace : STR_EMPTY;
}

/* ---- writing the inventory ---- */

static bool give_inventory(deployment_steps *s, const steps_world *w, const inventory *i)
{
    err error;
    buf_clear(&s->body);
    if (!inventory_put(&s->body, i, w->agent_namespace, &error))
        return steps_fail(s, w, err_is_memory(&error) ? FAULT_LATER : FAULT_BAD, error.text);
    if (!steps_give_inventory(s, w, STEP_WRITE_INVENTORY))
        return false;
    s->out.body = buf_str(&s->body);
    s->out.version = s->inventory.version;
    return true;
}

/* What was written is what is there from now on. Another agent's write, or one whose fate is
 * unknown: everything is looked at again. */
static bool inventory_written(deployment_steps *s, const steps_world *w, const step_answer *answer)
{
    err error;
    if (answer->outcome == OUTCOME_CONFLICT || answer->outcome == OUTCOME_MISSING)
        return steps_fail(s, w, FAULT_LATER, "the inventory was written by somebody else");
    if (answer->outcome != OUTCOME_OK)
        return steps_fail_answer(s, w, answer, NULL);
    yyjson_val *copy = steps_copy(s->way, answer->json);
    if (!copy || !inventory_read(s->way, copy, &s->inventory, &error))
        return steps_fail(s, w, FAULT_LATER, "the answer to the inventory cannot be read");
    s->has_inventory = true;
    return true;
}

/* Whether the inventory says already what is to be done. */
static bool is_recorded(const deployment_steps *s, const inventory *all)
{
    const inventory *have = &s->inventory;
    const manifest *m = &s->manifest;
    release_name now = {m->release_namespace, m->release};
    return s->has_inventory && str_eq(have->wanted, steps_live_id(s)) && have->applied.len == 0 &&
           have->len == all->len && /* a union that is no larger is the set itself */
           have->is_chart == m->is_chart && release_same(have->release, now) &&
           have->former_len == all->former_len;
}

/* Plain manifests come after the chart that they take the place of. A chart comes before the one
 * that it takes the place of, which runs on until then; but objects that it would take from it
 * would go with it. One that may be refused yet is tried before anything goes. */
static bool go_from_record(deployment_steps *s)
{
    const manifest *m = &s->manifest;
    /* Of a chart there is at most the namespace to be applied. */
    steps_phase next = m->is_chart && m->len == 0 ? PHASE_CHART : PHASE_APPLY;
    bool first = !m->is_chart || (m->take_ownership && !m->confined);
    s->after_unchart = next;
    return steps_go(s, first && s->inventory.former_len > 0 ? PHASE_UNCHART : next);
}

bool record_step(deployment_steps *s, const steps_world *w)
{
    object_ref *refs;
    size_t len;
    inventory all;
    const manifest *m = &s->manifest;
    release_name now = {m->release_namespace, m->release};
    if (!wanted_refs(s, &refs, &len) || !inventory_join(s->way, &s->inventory, refs, len, &all) ||
        !inventory_leave_release(s->way, &s->inventory, now, m->is_chart, &all))
        return steps_fail_memory(s, w);
    if (is_recorded(s, &all))
        return go_from_record(s);
    describe(s, w, &all);
    all.applied = STR_EMPTY;
    all.digest = STR_EMPTY;
    all.is_chart = m->is_chart;
    return give_inventory(s, w, &all);
}

/* Asked again, the step finds it written. */
void record_answer(deployment_steps *s, const steps_world *w, const step_answer *answer)
{
    inventory_written(s, w, answer);
}

/* ---- charts ---- */

bool unchart_step(deployment_steps *s, const steps_world *w)
{
    (void)w;
    const inventory *i = &s->inventory;
    if (i->former_len == 0)
        return steps_go(s, s->after_unchart);
    return steps_give_removal(s, i->former[i->former_len - 1]);
}

void unchart_answer(deployment_steps *s, const steps_world *w, const step_answer *answer)
{
    if (answer->outcome == OUTCOME_OK || answer->outcome == OUTCOME_MISSING)
        s->inventory.former_len--;
    else
        steps_fail_answer(s, w, answer, NULL);
}

/* Objects of plain manifests that a chart is to have from now on. Those that it does not have are
 * pruned after it. */
bool hand_over_step(deployment_steps *s, const steps_world *w)
{
    s->left = s->inventory;
    return steps_change_left(s, w, STEP_MARK_OBJECT, PHASE_CHART);
}

void hand_over_answer(deployment_steps *s, const steps_world *w, const step_answer *answer)
{
    steps_left_answer(s, w, answer);
}

/* The kinds that a chart brings are known to the cluster only when it is installed. */
bool chart_step(deployment_steps *s, const steps_world *w)
{
    (void)w;
    if (s->rendered || s->doubted)
        return steps_give(s, STEP_DISCOVER, STR_EMPTY, STR_EMPTY);
    bool tries = s->manifest.confined && !s->chart_tried;
    steps_give(s, tries ? STEP_TRY_CHART : STEP_INSTALL_CHART, STR_EMPTY, s->manifest.release);
    s->out.chart = &s->manifest;
    return true;
}

/* See go_from_record. */
static void tried_well(deployment_steps *s)
{
    s->chart_tried = true;
    s->after_unchart = PHASE_CHART;
    if (s->manifest.take_ownership)
        steps_go(s, PHASE_UNCHART);
}

/* A chart may be outside of its namespace only if nobody says that it must not: that is found out
 * before anything is installed. Kinds that are not known are read, and then it is tried again. */
static void chart_rendered(deployment_steps *s, const steps_world *w, const step_answer *answer)
{
    err error;
    bool unknown = false;
    manifest m = s->manifest;
    scoped(arena_cleanup) arena *a = arena_new(0);
    manifest_fault fault = a ? manifest_rendered(a, &m, answer->text, &error) : MANIFEST_MEMORY;
    if (fault == MANIFEST_MEMORY)
        steps_fail_memory(s, w);
    else if (answer->definitions)
        steps_fail(
            s, w, FAULT_BAD,
            "the chart, or one that it depends on, has a folder crds, whose definitions have "
            "no namespace, but everything must be in one");
    else if (fault != MANIFEST_NONE)
        steps_fail(s, w, FAULT_BAD, error.text);
    else if (manifest_confined(&m, w->discovery, &unknown, &error))
        tried_well(s);
    else if (unknown && !s->discovered)
        s->discovered = s->doubted = true;
    else
        steps_fail(s, w, unknown ? FAULT_FAILED : FAULT_BAD, error.text);
}

/* What was rendered before, and what was found of it, is forgotten. */
static manifest_fault read_rendered(deployment_steps *s, str text, err *error)
{
    arena *fresh = arena_new(0);
    manifest m = s->manifest;
    manifest_fault fault = fresh ? manifest_rendered(fresh, &m, text, error) : MANIFEST_MEMORY;
    if (fault != MANIFEST_NONE) {
        arena_free(fresh);
        return fault;
    }
    arena_free(s->rendering);
    s->rendering = fresh;
    s->manifest = m;
    s->found_len = 0;
    return fault;
}

/* Takes in what helm rendered, or kinds that were read since. False: kinds must be read first, or
 * there is a fault. */
static bool take_rendered(deployment_steps *s, const steps_world *w, const step_answer *answer,
                          manifest_fault *ret_fault, err *error)
{
    manifest_fault fault = MANIFEST_NONE;
    if (!s->rendered)
        fault = read_rendered(s, answer->text, error);
    if (fault == MANIFEST_NONE)
        fault = manifest_place(s->rendering, &s->manifest, w->discovery, error);
    s->rendered = fault == MANIFEST_UNKNOWN_KIND && !s->discovered;
    s->discovered |= s->rendered;
    *ret_fault = fault;
    return fault == MANIFEST_NONE;
}

/* Objects that the chart wants are not the release's: those of the releases of before go with them,
 * our own become its own. True: it is tried again then. */
static bool make_way(deployment_steps *s)
{
    s->after_unchart = PHASE_CHART;
    if (s->inventory.former_len > 0) {
        steps_go(s, PHASE_UNCHART);
    } else if (!s->handed_over) {
        s->handed_over = true;
        steps_go(s, PHASE_HAND_OVER);
    } else {
        return false;
    }
    return true;
}

void chart_answer(deployment_steps *s, const steps_world *w, const step_answer *answer)
{
    err error;
    manifest_fault fault;
    if (answer->outcome == OUTCOME_CONFLICT && make_way(s))
        return;
    s->doubted = false;
    if (answer->outcome != OUTCOME_OK) {
        s->rendered = false;
        steps_fail_answer(s, w, answer, NULL);
    } else if (s->out.kind == STEP_DISCOVER && !s->rendered) {
        return; /* it is tried again */
    } else if (s->out.kind == STEP_TRY_CHART) {
        chart_rendered(s, w, answer);
    } else if (take_rendered(s, w, answer, &fault, &error)) {
        s->after_unchart = PHASE_PRUNE;
        steps_go(s, PHASE_UNCHART);
    } else if (!s->rendered) {
        steps_fail(s, w, fault == MANIFEST_MEMORY ? FAULT_LATER : FAULT_FAILED, error.text);
    }
}

/* What an earlier life installed: without what helm rendered only that objects are missing can be
 * told. */
bool rendered_step(deployment_steps *s, const steps_world *w)
{
    (void)w;
    if (s->rendered)
        return steps_give(s, STEP_DISCOVER, STR_EMPTY, STR_EMPTY);
    steps_give(s, STEP_READ_CHART, STR_EMPTY, s->manifest.release);
    s->out.chart = &s->manifest;
    return true;
}

void rendered_answer(deployment_steps *s, const steps_world *w, const step_answer *answer)
{
    err error;
    manifest_fault fault;
    bool good = answer->outcome == OUTCOME_OK && take_rendered(s, w, answer, &fault, &error);
    if (answer->outcome == OUTCOME_OK && s->rendered)
        return;
    s->rendered = false;
    if (!good)
        s->manifest.len = 0;
    s->in_place = true;
    steps_go(s, PHASE_LOOK);
}

/* ---- objects ---- */

/* Helm's marks: what Fleet's own agent, or helm, made for the same release is taken over. */
static bool is_of_release(const manifest *m, const yyjson_val *live)
{
    const yyjson_val *notes = go_member(go_member(live, STR("metadata")), STR("annotations"));
    return str_eq(object_text(notes, STR(ANNOTATION_RELEASE)), m->release) &&
           str_eq(object_text(notes, STR(ANNOTATION_RELEASE_NAMESPACE)), m->release_namespace);
}

/* Objects of others that the deployment may take, each by itself. */
static bool may_overwrite(const deployment_steps *s, const object_ref *ref)
{
    size_t i, max;
    yyjson_val *one;
    yyjson_arr_foreach(go_member(steps_options(s), STR("overwrites")), i, max, one)
    {
        str namespace_ = object_text(one, STR("namespace"));
        if (str_eq(object_text(one, STR("kind")), ref->kind) &&
            str_eq(object_text(one, STR("name")), ref->name) &&
            (namespace_.len == 0 || str_eq(namespace_, ref->namespace_)))
            return true;
    }
    return false;
}

/* Whether the namespace of the release is to say something. */
static bool is_dressed(const manifest *m)
{
    return m->namespace_labels || m->namespace_annotations;
}

static void judge_found(deployment_steps *s, const steps_world *w, const wanted_object *o,
                        const yyjson_val *live)
{
    const manifest *m = &s->manifest;
    const yyjson_val *meta = go_member(live, STR("metadata"));
    step_answer as = {.outcome = OUTCOME_REFUSED};
    if (object_text(meta, STR("deletionTimestamp")).len > 0) {
        as = (step_answer){.outcome = OUTCOME_LATER, .message = STR("it is being deleted")};
        steps_fail_answer(s, w, &as, &o->ref);
        return;
    }
    if (o->shared) { /* it is there; what it should say is applied only if it says something */
        s->ways[s->at] = is_dressed(m) ? OBJECT_FREE : OBJECT_APPLIED;
        return;
    }
    if (owner_is(live, s->owner) || m->take_ownership || is_of_release(m, live) ||
        may_overwrite(s, &o->ref)) {
        s->ways[s->at] = OBJECT_FREE;
        return;
    }
    as.message =
        STR("it exists and is not owned by us; helm.takeOwnership or overwrites takes it over");
    steps_fail_answer(s, w, &as, &o->ref);
}

/* Definitions are applied before all others, which may need them. */
static bool must_wait(const deployment_steps *s, size_t at)
{
    if (s->manifest.at[at].definition || s->establish_until_ms == STEPS_NEVER)
        return false;
    for (size_t i = 0; i < at; i++)
        if (s->manifest.at[i].definition)
            return true;
    return false;
}

/* While it waits somebody may make what was not there: everything is looked at again. */
static void doubt_found(deployment_steps *s)
{
    for (size_t i = 0; i < s->manifest.len; i++)
        if (s->ways[i] == OBJECT_FREE)
            s->ways[i] = OBJECT_UNREAD;
}

/* The next definition that is not known to be established: read again until it is. */
static bool establish_step(deployment_steps *s, const steps_world *w)
{
    if (s->establish_until_ms == 0) {
        s->establish_until_ms = w->now_ms + STEPS_ESTABLISH_MS;
        s->due_ms = w->now_ms;
    }
    for (size_t i = 0; i < s->manifest.len; i++) {
        const wanted_object *o = &s->manifest.at[i];
        if (!o->definition || s->ways[i] != OBJECT_APPLIED)
            continue;
        if (w->now_ms < s->due_ms) {
            doubt_found(s);
            steps_give(s, STEP_WAIT, STR_EMPTY, STR_EMPTY);
            s->out.due_ms = s->due_ms;
            s->out.why = STR("a definition that is not established yet");
            return true;
        }
        s->establishing = i;
        return steps_give(s, STEP_READ_OBJECT, o->collection, o->ref.name);
    }
    s->establish_until_ms = STEPS_NEVER;
    return false;
}

static void establish_answer(deployment_steps *s, const steps_world *w, const step_answer *answer)
{
    const wanted_object *o = &s->manifest.at[s->establishing];
    if (answer->outcome != OUTCOME_OK) {
        steps_fail_answer(s, w, answer, &o->ref);
        return;
    }
    readiness found = readiness_judge(s->way, answer->json);
    if (found.state == READINESS_READY) {
        s->ways[s->establishing] = OBJECT_ESTABLISHED;
        return;
    }
    s->due_ms = w->now_ms + STEPS_RETRY_FIRST_MS;
    if (found.state == READINESS_ERROR || w->now_ms >= s->establish_until_ms) {
        step_answer as = {.outcome = OUTCOME_REFUSED, .message = found.message};
        steps_fail_answer(s, w, &as, &o->ref);
    }
}

bool apply_step(deployment_steps *s, const steps_world *w)
{
    while (s->at < s->manifest.len && s->ways[s->at] >= OBJECT_APPLIED)
        s->at++;
    if (s->at >= s->manifest.len)
        return steps_go(s, s->manifest.is_chart ? PHASE_CHART : PHASE_PRUNE);
    s->waiting = must_wait(s, s->at);
    if (s->waiting)
        return establish_step(s, w);
    const wanted_object *o = &s->manifest.at[s->at];
    if (s->ways[s->at] == OBJECT_UNREAD)
        return steps_give(s, STEP_READ_OBJECT, o->collection, o->ref.name);
    return steps_give_apply(s, w, STEP_APPLY_OBJECT, o);
}

/* An account may work in its namespace and still not look at it: whether it is there shows with the
 * first object. */
static bool is_taken_for_granted(const manifest *m, const wanted_object *o, step_outcome outcome)
{
    return outcome == OUTCOME_REFUSED && o->shared && m->account.len > 0 && !is_dressed(m);
}

static void read_answer(deployment_steps *s, const steps_world *w, const step_answer *answer)
{
    const wanted_object *o = &s->manifest.at[s->at];
    if (answer->outcome == OUTCOME_MISSING) {
        step_answer as = {.outcome = OUTCOME_REFUSED,
                          .message =
                              STR("it does not exist, and options.createNamespace is false")};
        if (o->shared && !s->manifest.create_namespace)
            steps_fail_answer(s, w, &as, &o->ref);
        else
            s->ways[s->at] = OBJECT_FREE;
    } else if (is_taken_for_granted(&s->manifest, o, answer->outcome)) {
        s->ways[s->at] = OBJECT_APPLIED;
    } else if (answer->outcome != OUTCOME_OK) {
        steps_fail_answer(s, w, answer, &o->ref);
    } else {
        judge_found(s, w, o, answer->json);
    }
}

/* Before anything is written: what is another's, or nobody may touch, is neither named in the
 * inventory, where it would stand in the way of versions without it, nor found when half of the
 * others are applied. Objects of a chart that goes first are looked at when it is gone. */
bool check_step(deployment_steps *s, const steps_world *w)
{
    (void)w;
    bool waits = s->inventory.is_chart || s->inventory.former_len > 0;
    while (s->at < s->manifest.len && s->ways[s->at] != OBJECT_UNREAD)
        s->at++;
    if (waits || s->at >= s->manifest.len)
        return steps_go(s, PHASE_RECORD);
    const wanted_object *o = &s->manifest.at[s->at];
    return steps_give(s, STEP_READ_OBJECT, o->collection, o->ref.name);
}

void check_answer(deployment_steps *s, const steps_world *w, const step_answer *answer)
{
    read_answer(s, w, answer);
}

void apply_answer(deployment_steps *s, const steps_world *w, const step_answer *answer)
{
    if (s->waiting)
        establish_answer(s, w, answer);
    else if (s->ways[s->at] == OBJECT_UNREAD)
        read_answer(s, w, answer);
    else if (answer->outcome == OUTCOME_OK)
        s->ways[s->at] = OBJECT_APPLIED;
    else
        steps_fail_answer(s, w, answer, &s->manifest.at[s->at].ref);
}

/* ---- what left ---- */

/* What a chart left is helm's to prune: it does not carry our label. */
bool prune_step(deployment_steps *s, const steps_world *w)
{
    object_ref *refs;
    size_t len;
    if (s->correcting)
        return steps_go(s, PHASE_LOOK); /* nothing left: the version is the same */
    if (s->at == 0 && s->delete_uid.len == 0) {
        if (!wanted_refs(s, &refs, &len) ||
            !inventory_left(s->way, &s->inventory, refs, len, &s->left))
            return steps_fail_memory(s, w);
    }
    return steps_change_left(s, w, STEP_DELETE_OBJECT, PHASE_SETTLE);
}

void prune_answer(deployment_steps *s, const steps_world *w, const step_answer *answer)
{
    steps_left_answer(s, w, answer);
}

/* ---- all is there ---- */

bool settle_step(deployment_steps *s, const steps_world *w)
{
    inventory now = s->inventory;
    if (!wanted_refs(s, &now.objects, &now.len))
        return steps_fail_memory(s, w);
    describe(s, w, &now);
    now.applied = steps_live_id(s);
    now.digest = s->digest;
    now.revision = s->inventory.revision + 1;
    now.is_chart = s->manifest.is_chart;
    return give_inventory(s, w, &now);
}

void settle_answer(deployment_steps *s, const steps_world *w, const step_answer *answer)
{
    if (!inventory_written(s, w, answer))
        return;
    steps_succeeded(s);
    s->in_place = true;
    s->look_wait_ms = STEPS_LOOK_SOON_MS;
    steps_go(s, PHASE_LOOK);
}
