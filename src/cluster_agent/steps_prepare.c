/* SPDX-License-Identifier: Apache-2.0 */
/* From a BundleDeployment to what is wanted: inventory, values, content, places, gates. */
#include <stdio.h>

#include "base/base64.h"
#include "base/mem.h"
#include "cluster_agent/steps_internal.h"
#include "engine/fleet_names.h"
#include "engine/go_json.h"
#include "model/document.h"

#define VALUES_KEY "values.yaml" /* of an entry of valuesFrom that names none */
#define VALUES_SOON_MS 100
#define API_FLEET_PATH "/apis/fleet.cattle.io/v1alpha1/"

/* "/api/v1/namespaces/NAMESPACE/PLURAL" */
static str core_collection(arena *a, str namespace_, const char *plural)
{
    return arena_printf(a, "/api/v1/namespaces/%.*s/%s", STR_ARG(namespace_), plural);
}

/* ---- inventory ---- */

bool inventory_step(deployment_steps *s, const steps_world *w)
{
    return steps_give_inventory(s, w, STEP_READ_INVENTORY);
}

void inventory_answer(deployment_steps *s, const steps_world *w, const step_answer *answer)
{
    err error;
    steps_phase next = s->gone ? PHASE_REMOVE : PHASE_VALUES;
    if (answer->outcome == OUTCOME_MISSING) {
        s->has_inventory = false;
        s->inventory = (inventory){.deployment = buf_str(&s->name)};
        steps_go(s, s->gone ? PHASE_OVER : next);
        return;
    }
    if (answer->outcome != OUTCOME_OK) {
        steps_fail_answer(s, w, answer, NULL);
        return;
    }
    yyjson_val *copy = steps_copy(s->way, answer->json);
    if (!copy) {
        steps_fail_memory(s, w);
        return;
    }
    if (!inventory_read(s->way, copy, &s->inventory, &error)) {
        steps_fail(s, w, err_is_memory(&error) ? FAULT_LATER : FAULT_FAILED, error.text);
        return;
    }
    if (!str_eq(s->inventory.deployment, buf_str(&s->name))) { /* long names may be cut to one */
        err_set(&error, "ConfigMap %s is the inventory of the deployment \"%s\"",
                str_shown(s->out.name).text, str_shown(s->inventory.deployment).text);
        steps_fail(s, w, FAULT_FAILED, error.text);
        return;
    }
    s->has_inventory = true;
    if (s->gone && !steps_act_as(s, w, s->inventory.account))
        steps_fail_memory(s, w);
    else
        steps_go(s, next);
}

/* ---- values ---- */

bool values_step(deployment_steps *s, const steps_world *w)
{
    const yyjson_val *meta = go_member(s->deployment, STR("metadata"));
    if (object_text(steps_spec(s), STR("valuesHash")).len == 0)
        return steps_go(s, PHASE_CONTENT);
    str collection = core_collection(s->way, object_text(meta, STR("namespace")), "secrets");
    if (!collection.ptr)
        return steps_fail_memory(s, w);
    return steps_give(s, STEP_READ_VALUES, collection, object_text(meta, STR("name")));
}

static str secret_text(arena *a, const yyjson_val *secret, str key, err *error)
{
    buf text = BUF(LIMIT_DOCUMENT_BYTES);
    str coded = object_text(go_member(secret, STR("data")), key);
    bool good = base64_decode(coded, &text) || !text.failed;
    str made = good ? arena_str(a, buf_str(&text)) : (str){NULL, 0};
    buf_done(&text);
    if (!made.ptr)
        err_memory(error);
    return made;
}

/* The Secret follows the BundleDeployment: it is on its way, however long the controller that
 * writes both was away in between. */
static void values_later(deployment_steps *s, const steps_world *w, const char *text)
{
    bool first = s->failing_since_ms == 0;
    steps_fail(s, w, FAULT_EARLY, text);
    if (first)
        s->due_ms = w->now_ms + VALUES_SOON_MS;
}

void values_answer(deployment_steps *s, const steps_world *w, const step_answer *answer)
{
    err error;
    if (answer->outcome == OUTCOME_MISSING) {
        values_later(s, w, "the Secret with the values of valuesHash does not exist");
        return;
    }
    if (answer->outcome != OUTCOME_OK) {
        steps_fail_answer(s, w, answer, NULL);
        return;
    }
    str values = secret_text(s->way, answer->json, STR("values"), &error);
    str staged = secret_text(s->way, answer->json, STR("stagedValues"), &error);
    str hash = values.ptr && staged.ptr ? values_hash(s->way, values, staged) : (str){NULL, 0};
    if (!hash.ptr) {
        steps_fail_memory(s, w);
        return;
    }
    if (!str_eq(hash, object_text(steps_spec(s), STR("valuesHash")))) {
        values_later(s, w, "the values in the Secret are not those of valuesHash");
        return;
    }
    s->values = values;
    steps_go(s, PHASE_CONTENT);
}

/* ---- content ---- */

/* Kinds come first: what was unpacked does not wait for them. */
bool content_step(deployment_steps *s, const steps_world *w)
{
    if (discovery_count(w->discovery) == 0 && !s->discovered) {
        s->discovered = true;
        return steps_give(s, STEP_DISCOVER, STR_EMPTY, STR_EMPTY);
    }
    str id = steps_live_id(s), name = str_cut(&id, ':');
    if (name.len == 0 || yyjson_is_true(go_member(steps_spec(s), STR("ociContents"))))
        return steps_go(s, PHASE_PLACE); /* a chart from a repository, or what is refused later */
    if (!object_path_part(name))
        return steps_fail(s, w, FAULT_BAD, "deploymentID: the name of the Content is no name");
    return steps_give(s, STEP_READ_CONTENT, STR(API_FLEET_PATH "contents"), name);
}

void content_answer(deployment_steps *s, const steps_world *w, const step_answer *answer)
{
    err error;
    if (answer->outcome != OUTCOME_OK) {
        steps_fail_answer(s, w, answer, NULL);
        return;
    }
    if (s->out.kind == STEP_DISCOVER)
        return;
    if (content_read(s->content, answer->json, &s->files, &error))
        steps_go(s, PHASE_PLACE);
    else
        steps_fail(s, w, err_is_memory(&error) ? FAULT_LATER : FAULT_BAD, error.text);
}

/* ---- places ---- */

/* What was applied is the same only if all of this is. */
static bool make_digest(deployment_steps *s)
{
    scoped(arena_cleanup) arena *a = arena_new(0);
    char hex[SHA256_HEX_BYTES];
    const manifest *m = &s->manifest;
    size_t len = 0;
    str *all = a ? ARENA_ARRAY(a, 1 + m->chart.values_from.len + 2 * m->len, str) : NULL;
    if (!all)
        return false;
    if (m->is_chart)
        all[len++] = m->chart.values;
    for (size_t i = 0; i < m->chart.values_from.len; i++)
        all[len++] = m->chart.values_from.at[i];
    for (size_t i = 0; i < m->len; i++) {
        all[len++] = m->at[i].body;
        all[len++] = STR("\n");
    }
    bool good = sha256_hex_of(all, len, hex);
    s->digest = good ? arena_str(s->way, str_of(hex)) : (str){NULL, 0};
    return s->digest.ptr;
}

/* Whether the cluster has just this. */
static bool is_there(const deployment_steps *s)
{
    const inventory *i = &s->inventory;
    return s->has_inventory && str_eq(i->applied, steps_live_id(s)) &&
           str_eq(i->digest, s->digest) && i->is_chart == s->manifest.is_chart;
}

bool place_step(deployment_steps *s, const steps_world *w)
{
    err error;
    manifest_source from = {s->deployment, s->files, s->values};
    manifest_fault fault = MANIFEST_NONE;
    if (s->manifest.release.len == 0)
        fault = manifest_read(s->content, &from, &s->manifest, &error);
    if (!steps_act_as(s, w, s->manifest.account))
        return steps_fail_memory(s, w);
    if (fault == MANIFEST_NONE && s->manifest.is_chart && !s->values_read)
        return steps_go(s, PHASE_VALUES_FROM);
    if (fault == MANIFEST_NONE)
        fault = manifest_place(s->way, &s->manifest, w->discovery, &error);
    if (fault == MANIFEST_UNKNOWN_KIND && !s->discovered) {
        s->discovered = true;
        return steps_give(s, STEP_DISCOVER, STR_EMPTY, STR_EMPTY);
    }
    switch (fault) {
    case MANIFEST_NONE: break;
    case MANIFEST_BAD:
    case MANIFEST_UNSUPPORTED: return steps_fail(s, w, FAULT_BAD, error.text);
    case MANIFEST_UNKNOWN_KIND: return steps_fail(s, w, FAULT_FAILED, error.text);
    case MANIFEST_MEMORY: return steps_fail_memory(s, w);
    }
    s->ways = ARENA_ARRAY(s->way, s->manifest.len + 1, object_way);
    if (!s->ways || !make_digest(s))
        return steps_fail_memory(s, w);
    if (!s->manifest.is_chart) {
        s->files = s->manifest.files = (resource_files){0};
        s->content = arena_free(s->content);
    }
    if (!is_there(s))
        return steps_go(s, PHASE_GATES);
    if (s->manifest.is_chart)
        return steps_go(s, PHASE_RENDERED);
    s->in_place = true;
    return steps_go(s, PHASE_LOOK);
}

/* The kinds were read, or not: what is missing is found out by placing again. */
void place_answer(deployment_steps *s, const steps_world *w, const step_answer *answer)
{
    if (answer->outcome != OUTCOME_OK)
        steps_fail_answer(s, w, answer, NULL);
}

/* ---- values that lie in the cluster ---- */

static yyjson_val *values_from_of(const deployment_steps *s)
{
    const yyjson_val *helm = go_member(steps_options(s), STR("helm"));
    return go_member(helm, STR("valuesFrom"));
}

/* Each entry may name one of each: the Secret's values win. */
static const yyjson_val *values_ref(yyjson_val *list, size_t at, bool *ret_secret)
{
    *ret_secret = at % 2 == 1;
    return go_member(yyjson_arr_get(list, at / 2),
                     *ret_secret ? STR("secretKeyRef") : STR("configMapKeyRef"));
}

static object_ref values_place(const deployment_steps *s, const yyjson_val *ref, bool secret)
{
    str namespace_ = object_text(ref, STR("namespace"));
    return (object_ref){STR("v1"), secret ? STR("Secret") : STR("ConfigMap"),
                        namespace_.len > 0 ? namespace_ : s->manifest.release_namespace,
                        object_text(ref, STR("name"))};
}

bool values_from_step(deployment_steps *s, const steps_world *w)
{
    yyjson_val *list = values_from_of(s);
    size_t most = 2 * yyjson_arr_size(list);
    bool secret;
    str_list *texts = &s->manifest.chart.values_from;
    if (!texts->at && !(texts->at = ARENA_ARRAY(s->way, most + 1, str)))
        return steps_fail_memory(s, w);
    for (; s->at < most; s->at++) {
        const yyjson_val *ref = values_ref(list, s->at, &secret);
        if (!ref)
            continue;
        object_ref of = values_place(s, ref, secret);
        if (!object_path_part(of.name) || !object_path_part(of.namespace_))
            return steps_fail(s, w, FAULT_BAD,
                              "helm.valuesFrom: found a name that is none of an object");
        str collection = core_collection(s->way, of.namespace_, secret ? "secrets" : "configmaps");
        if (!collection.ptr)
            return steps_fail_memory(s, w);
        return steps_give(s, STEP_READ_OBJECT, collection, of.name);
    }
    s->values_read = true;
    return steps_go(s, PHASE_PLACE);
}

void values_from_answer(deployment_steps *s, const steps_world *w, const step_answer *answer)
{
    err error;
    bool secret;
    char text[REPORT_MESSAGE_BYTES_MAX];
    const yyjson_val *ref = values_ref(values_from_of(s), s->at, &secret);
    object_ref of = values_place(s, ref, secret);
    str key = object_text(ref, STR("key")), found;
    if (answer->outcome != OUTCOME_OK && answer->outcome != OUTCOME_MISSING) {
        steps_fail_answer(s, w, answer, &of);
        return;
    }
    key = key.len > 0 ? key : STR(VALUES_KEY);
    const yyjson_val *data = go_member(answer->json, STR("data"));
    if (answer->outcome == OUTCOME_MISSING || !go_member(data, key)) {
        snprintf(text, sizeof text, "helm.valuesFrom: %.*s %.*s/%.*s %s \"%s\"", STR_ARG(of.kind),
                 STR_ARG(of.namespace_), STR_ARG(of.name),
                 answer->outcome == OUTCOME_MISSING ? "does not exist; wanted is its" : "has no",
                 str_shown(key).text);
        steps_fail(s, w, FAULT_FAILED, text);
        return;
    }
    found = secret ? secret_text(s->way, answer->json, key, &error)
                   : arena_str(s->way, object_text(data, key));
    if (!found.ptr) {
        steps_fail_memory(s, w);
        return;
    }
    str_list *texts = &s->manifest.chart.values_from;
    texts->at[texts->len++] = found;
    s->at++;
}

/* ---- gates ---- */

static bool inside_namespace(const manifest *m)
{
    for (size_t i = 0; i < m->len; i++)
        if (!m->at[i].shared && !str_eq(m->at[i].ref.namespace_, m->release_namespace))
            return false;
    return true;
}

static bool dependencies_met(deployment_steps *s, const steps_world *w)
{
    err error;
    int64_t wait_ms = 0;
    if (gate_dependencies(s->way, s->deployment, w, &wait_ms, &error))
        return true;
    steps_fail(s, w,
               err_is_memory(&error) ? FAULT_LATER
               : wait_ms > 0         ? FAULT_DEPENDS
                                     : FAULT_FAILED,
               error.text);
    if (wait_ms > 0) {
        s->due_ms = w->now_ms + wait_ms;
        s->why = "another deployment that it depends on";
    }
    return false;
}

/* The gates behind which somebody must be asked. */
enum { GATE_ACCOUNT, GATE_NAMESPACE };

bool gates_step(deployment_steps *s, const steps_world *w)
{
    str account = s->manifest.account;
    if (!dependencies_met(s, w))
        return false;
    if (s->at == GATE_ACCOUNT && account.len > 0) {
        str collection = core_collection(s->way, w->agent_namespace, "serviceaccounts");
        return collection.ptr ? steps_give(s, STEP_READ_GATE, collection, account)
                              : steps_fail_memory(s, w);
    }
    s->at = GATE_NAMESPACE;
    const yyjson_val *allowed = go_member(steps_options(s), STR("allowedTargetNamespaceSelector"));
    if (!allowed)
        return steps_go(s, PHASE_CHECK);
    if (!inside_namespace(&s->manifest))
        return steps_fail(s, w, FAULT_FAILED,
                          "allowedTargetNamespaceSelector: found objects outside of the namespace "
                          "of the release");
    return steps_give(s, STEP_READ_GATE, STR("/api/v1/namespaces"), s->manifest.release_namespace);
}

/* Rights outlive the account that they were given to: without it they count no more. */
static void account_answer(deployment_steps *s, const steps_world *w, bool there)
{
    err error;
    if (there) {
        s->at = GATE_NAMESPACE;
        return;
    }
    err_set(&error, "serviceAccount: the cluster has no ServiceAccount %.*s/%s",
            STR_ARG(w->agent_namespace), str_shown(s->manifest.account).text);
    steps_fail(s, w, FAULT_FAILED, error.text);
}

void gates_answer(deployment_steps *s, const steps_world *w, const step_answer *answer)
{
    err error;
    bool there = answer->outcome == OUTCOME_OK;
    if (!there && answer->outcome != OUTCOME_MISSING) {
        steps_fail_answer(s, w, answer, NULL);
        return;
    }
    if (s->at == GATE_ACCOUNT) {
        account_answer(s, w, there);
        return;
    }
    const yyjson_val *options = steps_options(s);
    if (gate_namespace(s->way, options, there ? answer->json : NULL, &error))
        steps_go(s, PHASE_CHECK);
    else
        steps_fail(s, w, err_is_memory(&error) ? FAULT_LATER : FAULT_FAILED, error.text);
}
