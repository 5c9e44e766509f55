/* SPDX-License-Identifier: Apache-2.0 */
/* Out of the cluster: what left a deployment, and deployments that are gone. Only what carries the
 * owner's label is deleted, and only the very object that was looked at. */
#include <stdio.h>

#include "base/mem.h"
#include "cluster_agent/steps_internal.h"
#include "engine/go_json.h"
#include "operator/bundle_json.h"

/* ---- one after the other ---- */

left_place steps_find_left(const deployment_steps *s, const steps_world *w, arena *a,
                           const object_ref *ref, str *ret_collection)
{
    const discovery_kind *kind = discovery_find(w->discovery, ref->api_version, ref->kind);
    if (!kind)
        kind = discovery_find_any(w->discovery, object_group(ref->api_version), ref->kind);
    if (!kind && !s->discovered)
        return LEFT_ASK;
    if (!kind) /* with its kind went the object, unless the kind's server only is away */
        return discovery_stale(w->discovery, object_group(ref->api_version)) ? LEFT_LATER
                                                                             : LEFT_NOWHERE;
    buf path = BUF(LIMIT_PATH_BYTES);
    discovery_collection_put(&path, kind, ref->namespace_);
    *ret_collection = path.failed ? (str){NULL, 0} : arena_str(a, buf_str(&path));
    buf_done(&path);
    return ret_collection->ptr ? LEFT_FOUND : LEFT_LATER;
}

/* Helm takes over what says that it is the release's. */
static bool put_marks(buf *out, const manifest *m)
{
    buf_clear(out);
    buf_addz(out, "{\"metadata\":{");
    json_open(out, "labels");
    json_text(out, "app.kubernetes.io/managed-by", STR("Helm"));
    json_close(out);
    json_open(out, "annotations");
    json_text(out, ANNOTATION_RELEASE, m->release);
    json_text(out, ANNOTATION_RELEASE_NAMESPACE, m->release_namespace);
    json_close(out);
    buf_addz(out, "}}");
    return !out->failed;
}

bool steps_change_left(deployment_steps *s, const steps_world *w, step_kind how, steps_phase then)
{
    s->left_kind = how;
    for (; s->at < s->left.len; s->at++) {
        const object_ref *ref = &s->left.objects[s->at];
        str collection;
        switch (steps_find_left(s, w, s->way, ref, &collection)) {
        case LEFT_NOWHERE: continue;
        case LEFT_ASK:
            s->discovered = true;
            return steps_give(s, STEP_DISCOVER, STR_EMPTY, STR_EMPTY);
        case LEFT_LATER:
            return steps_fail(s, w, FAULT_LATER, "the kinds of the cluster are not all known");
        case LEFT_FOUND: break;
        }
        bool known = s->delete_uid.len > 0;
        steps_give(s, known ? how : STEP_READ_OBJECT, collection, ref->name);
        s->out.uid = s->delete_uid;
        if (known && how == STEP_MARK_OBJECT && !put_marks(&s->body, &s->manifest))
            return steps_fail_memory(s, w);
        s->out.body = known && how == STEP_MARK_OBJECT ? buf_str(&s->body) : STR_EMPTY;
        return true;
    }
    return steps_go(s, then);
}

static bool is_kept(const yyjson_val *live)
{
    const yyjson_val *notes = go_member(go_member(live, STR("metadata")), STR("annotations"));
    return str_eq(object_text(notes, STR(ANNOTATION_KEEP)), STR("keep")) ||
           str_eq(object_text(notes, STR(ANNOTATION_HELM_KEEP)), STR("keep"));
}

static void next_left(deployment_steps *s)
{
    s->at++;
    s->delete_uid = STR_EMPTY;
}

/* Ours, not kept and not on its way out already: its uid is kept for what follows. */
static void judge_left(deployment_steps *s, const steps_world *w, const yyjson_val *live)
{
    const yyjson_val *meta = go_member(live, STR("metadata"));
    str uid = arena_str(s->way, object_text(meta, STR("uid")));
    if (!uid.ptr) {
        steps_fail_memory(s, w);
        return;
    }
    bool goes = owner_is(live, s->owner) && (s->left_kind == STEP_MARK_OBJECT || !is_kept(live)) &&
                uid.len > 0 && object_text(meta, STR("deletionTimestamp")).len == 0;
    if (goes)
        s->delete_uid = uid;
    else
        next_left(s);
}

void steps_left_answer(deployment_steps *s, const steps_world *w, const step_answer *answer)
{
    if (s->out.kind == STEP_DISCOVER) {
        if (answer->outcome != OUTCOME_OK)
            steps_fail_answer(s, w, answer, NULL);
        return;
    }
    bool deleting = s->delete_uid.len > 0;
    if (answer->outcome == OUTCOME_MISSING || (deleting && answer->outcome == OUTCOME_OK))
        next_left(s);
    else if (deleting && answer->outcome == OUTCOME_CONFLICT)
        s->delete_uid = STR_EMPTY; /* another object has its name: it is looked at again */
    else if (answer->outcome != OUTCOME_OK)
        steps_fail_answer(s, w, answer, &s->left.objects[s->at]);
    else
        judge_left(s, w, answer->json);
}

/* ---- a deployment that is gone ---- */

bool steps_give_removal(deployment_steps *s, release_name which)
{
    s->removal = (manifest){.owner = buf_str(&s->name),
                            .release = which.name,
                            .release_namespace = which.namespace_,
                            .keep_resources = s->inventory.keep_resources,
                            .is_chart = true};
    steps_give(s, STEP_REMOVE_CHART, STR_EMPTY, which.name);
    s->out.chart = &s->removal;
    return true;
}

/* Everything in the inventory; with keepResources nothing but the inventory itself, and releases
 * that were on their way out. */
bool remove_step(deployment_steps *s, const steps_world *w)
{
    inventory *i = &s->inventory;
    if (i->former_len > 0)
        return steps_give_removal(s, i->former[i->former_len - 1]);
    if (i->keep_resources)
        return steps_go(s, PHASE_REMOVE_RECORD);
    if (i->is_chart)
        return steps_give_removal(s, i->release);
    if (s->at == 0 && s->delete_uid.len == 0 &&
        !inventory_left(s->way, &s->inventory, NULL, 0, &s->left))
        return steps_fail_memory(s, w);
    return steps_change_left(s, w, STEP_DELETE_OBJECT, PHASE_REMOVE_NAMESPACE);
}

void remove_answer(deployment_steps *s, const steps_world *w, const step_answer *answer)
{
    if (s->out.kind != STEP_REMOVE_CHART)
        steps_left_answer(s, w, answer);
    else if (answer->outcome != OUTCOME_OK && answer->outcome != OUTCOME_MISSING)
        steps_fail_answer(s, w, answer, NULL);
    else if (s->inventory.former_len > 0)
        s->inventory.former_len--;
    else
        s->inventory.is_chart = false;
}

/* deleteNamespace: the namespace goes even though others may have put things into it, as the
 * option says. */
bool remove_namespace_step(deployment_steps *s, const steps_world *w)
{
    (void)w;
    str name = s->inventory.delete_namespace;
    if (name.len == 0)
        return steps_go(s, PHASE_REMOVE_RECORD);
    bool known = s->delete_uid.len > 0;
    steps_give(s, known ? STEP_DELETE_OBJECT : STEP_READ_OBJECT, STR("/api/v1/namespaces"), name);
    s->out.uid = s->delete_uid;
    return true;
}

void remove_namespace_answer(deployment_steps *s, const steps_world *w, const step_answer *answer)
{
    bool deleting = s->delete_uid.len > 0;
    if (answer->outcome == OUTCOME_MISSING || (deleting && answer->outcome == OUTCOME_OK)) {
        steps_go(s, PHASE_REMOVE_RECORD);
        return;
    }
    if (answer->outcome != OUTCOME_OK) {
        steps_fail_answer(s, w, answer, NULL);
        return;
    }
    const yyjson_val *meta = go_member(answer->json, STR("metadata"));
    str uid = arena_str(s->way, object_text(meta, STR("uid")));
    if (!uid.ptr)
        steps_fail_memory(s, w);
    else if (uid.len == 0 || object_text(meta, STR("deletionTimestamp")).len > 0)
        steps_go(s, PHASE_REMOVE_RECORD);
    else
        s->delete_uid = uid;
}

bool remove_record_step(deployment_steps *s, const steps_world *w)
{
    if (!steps_give_inventory(s, w, STEP_DELETE_INVENTORY))
        return false;
    s->out.uid = s->inventory.uid;
    return true;
}

void remove_record_answer(deployment_steps *s, const steps_world *w, const step_answer *answer)
{
    if (answer->outcome == OUTCOME_OK || answer->outcome == OUTCOME_MISSING)
        steps_go(s, PHASE_OVER);
    else
        steps_fail_answer(s, w, answer, NULL);
}
