/* SPDX-License-Identifier: Apache-2.0 */
/* What must be true before a deployment touches its cluster. */
#include "base/mem.h"
#include "cluster_agent/steps_internal.h"
#include "engine/deployment_state.h"
#include "engine/fleet_names.h"
#include "engine/go_json.h"
#include "operator/shell_read.h"

/* ---- selectors ---- */

static bool read_values(arena *a, yyjson_val *list, label_term *term)
{
    size_t i, max;
    yyjson_val *one;
    str *values = ARENA_ARRAY(a, yyjson_arr_size(list) + 1, str);
    if (!values)
        return false;
    yyjson_arr_foreach(list, i, max, one)
    {
        str text = go_str(one);
        values[term->value_count++] = text.ptr ? text : STR_EMPTY;
    }
    term->values = values;
    return true;
}

static bool read_operator(str text, label_operator *ret)
{
    static const str texts[] = {
#define X(op, text) STR(text),
        LABEL_OPERATORS(X)
#undef X
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        if (!str_eq(texts[i], text))
            continue;
        *ret = (label_operator)i;
        return true;
    }
    return false;
}

/* Kubernetes' object form. NULL with an error. */
static selector *read_selector(arena *a, const yyjson_val *json, err *error)
{
    yyjson_val *labels = go_member(json, STR("matchLabels")), *key, *one;
    yyjson_val *expressions = go_member(json, STR("matchExpressions"));
    size_t count = yyjson_obj_size(labels) + yyjson_arr_size(expressions), len = 0, i, max;
    label_term *terms = ARENA_ARRAY(a, count + 1, label_term);
    bool good = terms;
    yyjson_obj_iter walk = yyjson_obj_iter_with(labels);
    while (good && (key = yyjson_obj_iter_next(&walk))) {
        str *value = ARENA_NEW(a, str);
        str text = go_str(yyjson_obj_iter_get_val(key));
        good = value;
        if (!value)
            break;
        *value = text.ptr ? text : STR_EMPTY;
        terms[len++] = (label_term){go_str(key), LABEL_IN, value, 1};
    }
    yyjson_arr_foreach(expressions, i, max, one)
    {
        if (!good)
            break;
        label_term *term = &terms[len++];
        str op = object_text(one, STR("operator"));
        term->key = object_text(one, STR("key"));
        if (!read_operator(op, &term->op)) {
            err_set(error, "operator: found \"%s\", allowed In, NotIn, Exists, DoesNotExist",
                    str_shown(op).text);
            return NULL;
        }
        good = read_values(a, go_member(one, STR("values")), term);
    }
    if (!good) {
        err_memory(error);
        return NULL;
    }
    return selector_compile(a, terms, len, error);
}

static label_set labels_of(arena *a, const yyjson_val *of)
{
    yyjson_val *meta = go_member(of, STR("metadata"));
    return read_labels(a, go_member(meta, STR("labels")), STR_EMPTY);
}

bool gate_namespace(arena *a, const yyjson_val *options, const yyjson_val *live, err *error)
{
    const yyjson_val *json = go_member(options, STR("allowedTargetNamespaceSelector"));
    selector *allowed = read_selector(a, json, error);
    if (!allowed)
        return err_is_memory(error) ? false : err_wrap(error, "allowedTargetNamespaceSelector");
    if (!live)
        return err_set(error, "allowedTargetNamespaceSelector: the namespace does not exist");
    return selector_match(allowed, labels_of(a, live)) ||
           err_set(error, "allowedTargetNamespaceSelector does not allow the namespace \"%s\"",
                   str_shown(object_ref_of(live).name).text);
}

/* ---- dependsOn ---- */

static bool condition_false(const yyjson_val *status, str type)
{
    size_t i, max;
    yyjson_val *one;
    yyjson_arr_foreach(go_member(status, STR("conditions")), i, max, one)
    {
        if (str_eq(object_text(one, STR("type")), type))
            return str_eq(object_text(one, STR("status")), STR("False"));
    }
    return false;
}

static bundle_state state_of(const yyjson_val *of)
{
    const yyjson_val *spec = go_member(of, STR("spec"));
    const yyjson_val *status = go_member(of, STR("status"));
    str staged = object_text(spec, STR("stagedDeploymentID"));
    deployment_seen seen = {
        .live = object_text(spec, STR("deploymentID")),
        .applied = object_text(status, STR("appliedDeploymentID")),
        .ready = yyjson_is_true(go_member(status, STR("ready"))),
        .non_modified = yyjson_is_true(go_member(status, STR("nonModified"))),
        .deployed_failed = condition_false(status, STR("Deployed")),
    };
    seen.wanted = staged.len > 0 ? staged : seen.live;
    return deployment_state(&seen);
}

static bool accepted(const yyjson_val *dependency, bundle_state state)
{
    yyjson_val *states = go_member(dependency, STR("acceptedStates")), *one;
    size_t i, max;
    if (yyjson_arr_size(states) == 0)
        return state == BUNDLE_READY;
    yyjson_arr_foreach(states, i, max, one)
    {
        str text = go_str(one);
        if (text.ptr && str_eq(text, str_of(bundle_state_text(state))))
            return true;
    }
    return false;
}

/* Whether a deployment is one that the dependency names. */
static bool meant(arena *a, const yyjson_val *dependency, const selector *by_label,
                  const yyjson_val *other, str bundle_namespace)
{
    str name = object_text(dependency, STR("name"));
    label_set labels = labels_of(a, other);
    if (name.len > 0) {
        str its = label_get(labels, STR(LABEL_BUNDLE_NAME));
        str home = label_get(labels, STR(LABEL_BUNDLE_NAMESPACE));
        if (!its.ptr || !str_eq(its, name) || !home.ptr || !str_eq(home, bundle_namespace))
            return false;
    }
    return !by_label || selector_match(by_label, labels);
}

/* MET: it may go on. WAITS: it may yet, by itself. WRONG: not before an edit, or without memory. */
typedef enum dependency_state {
    DEPENDENCY_MET,
    DEPENDENCY_WAITS,
    DEPENDENCY_WRONG
} dependency_state;

static dependency_state one_dependency(arena *a, const yyjson_val *dependency, str bundle_namespace,
                                       const steps_world *w, err *error)
{
    const yyjson_val *json = go_member(dependency, STR("selector"));
    selector *by_label = json ? read_selector(a, json, error) : NULL;
    str name = object_text(dependency, STR("name"));
    size_t found = 0;
    if (json && !by_label) {
        if (!err_is_memory(error))
            err_wrap(error, "dependsOn");
        return DEPENDENCY_WRONG;
    }
    if (!json && name.len == 0)
        return DEPENDENCY_MET; /* says nothing, as in Fleet */
    for (size_t i = 0; i < w->deployment_count; i++) {
        const yyjson_val *other = w->deployments[i];
        if (!meant(a, dependency, by_label, other, bundle_namespace))
            continue;
        found++;
        bundle_state state = state_of(other);
        if (accepted(dependency, state))
            continue;
        err_set(error, "it depends on \"%s\", which is %s",
                str_shown(object_ref_of(other).name).text, bundle_state_text(state));
        return DEPENDENCY_WAITS;
    }
    if (found > 0)
        return DEPENDENCY_MET;
    err_set(error, "it depends on \"%s\", of which there is none",
            name.len > 0 ? str_shown(name).text : "a selector");
    return DEPENDENCY_WAITS;
}

bool gate_dependencies(arena *a, const yyjson_val *of, const steps_world *w, int64_t *ret_wait_ms,
                       err *error)
{
    const yyjson_val *meta = go_member(of, STR("metadata"));
    str home = object_text(go_member(meta, STR("labels")), STR(LABEL_BUNDLE_NAMESPACE));
    yyjson_val *list = go_member(go_member(of, STR("spec")), STR("dependsOn")), *one;
    size_t i, max;
    arena_place before = arena_mark(a);
    *ret_wait_ms = 0;
    yyjson_arr_foreach(list, i, max, one)
    {
        dependency_state found = one_dependency(a, one, home, w, error);
        arena_rewind(a, before);
        if (found == DEPENDENCY_MET)
            continue;
        *ret_wait_ms = found == DEPENDENCY_WAITS ? STEPS_DEPENDENCY_MS : 0;
        return false;
    }
    return true;
}
