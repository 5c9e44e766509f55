/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/drain_blocker.h"

bool drain_blocker_begin(drain_blocker *b)
{
    *b = (drain_blocker){.arena = arena_new(0)};
    return b->arena;
}

void drain_blocker_done(drain_blocker *b)
{
    vec_done(&b->budgets);
    vec_done(&b->spared);
    b->arena = arena_free(b->arena);
}

void drain_blocker_spare(drain_blocker *b, const selector *pods)
{
    b->no_memory |= !vec_push(&b->spared, pods);
}

/* ---- budgets ---- */

/* One of matchExpressions. False: it is none. */
static bool read_term(arena *a, yyjson_val *json, label_term *ret)
{
    static const char *const operators[] = {
#define X(op, text) text,
        LABEL_OPERATORS(X)
#undef X
    };
    yyjson_val *values = yyjson_obj_get(json, "values");
    str *at = ARENA_ARRAY(a, yyjson_arr_size(values) + 1, str);
    *ret = (label_term){.key = read_text(json, "key"), .values = at};
    yyjson_arr_iter walk = yyjson_arr_iter_with(values);
    for (yyjson_val *one; at && (one = yyjson_arr_iter_next(&walk));)
        at[ret->value_count++] = (str){yyjson_get_str(one), yyjson_get_len(one)};
    for (size_t i = 0; at && i < sizeof operators / sizeof operators[0]; i++) {
        ret->op = (label_operator)i;
        if (str_eq(read_text(json, "operator"), str_of(operators[i])))
            return true;
    }
    return false;
}

/* NULL: it selects nothing, or cannot be read. */
static const selector *read_selector(drain_blocker *b, yyjson_val *json)
{
    arena *a = b->arena;
    yyjson_val *labels = yyjson_obj_get(json, "matchLabels");
    yyjson_val *expressions = yyjson_obj_get(json, "matchExpressions");
    size_t most = yyjson_obj_size(labels) + yyjson_arr_size(expressions);
    label_term *terms = ARENA_ARRAY(a, most + 1, label_term);
    str *values = ARENA_ARRAY(a, yyjson_obj_size(labels) + 1, str);
    size_t count = 0;
    b->no_memory |= !terms || !values;
    if (!yyjson_is_obj(json) || !terms || !values)
        return NULL;
    yyjson_obj_iter keys = yyjson_obj_iter_with(labels);
    for (yyjson_val *key; (key = yyjson_obj_iter_next(&keys)); count++) {
        yyjson_val *value = yyjson_obj_iter_get_val(key);
        values[count] = (str){yyjson_get_str(value), yyjson_get_len(value)};
        terms[count] =
            (label_term){{yyjson_get_str(key), yyjson_get_len(key)}, LABEL_IN, &values[count], 1};
    }
    yyjson_arr_iter walk = yyjson_arr_iter_with(expressions);
    for (yyjson_val *one; (one = yyjson_arr_iter_next(&walk)); count++)
        if (!read_term(a, one, &terms[count])) {
            b->no_memory |= !terms[count].values;
            return NULL;
        }
    err error = {0};
    const selector *compiled = selector_compile(a, terms, count, &error);
    b->no_memory |= !compiled && err_is_memory(&error);
    return compiled;
}

static int64_t number_at(yyjson_val *json, const char *key, const char *inner)
{
    return yyjson_get_sint(read_at(json, key, inner));
}

void drain_blocker_budget(drain_blocker *b, yyjson_val *json)
{
    yyjson_val *m = yyjson_obj_get(json, "metadata");
    str policy = read_text(yyjson_obj_get(json, "spec"), "unhealthyPodEvictionPolicy");
    blocker_budget one = {.space = arena_str(b->arena, read_text(m, "namespace")),
                          .name = arena_str(b->arena, read_text(m, "name")),
                          .selects = read_selector(b, read_at(json, "spec", "selector")),
                          .says = {.unready_always = str_eq(policy, STR("AlwaysAllow")),
                                   .behind = number_at(json, "status", "observedGeneration") <
                                             yyjson_get_sint(yyjson_obj_get(m, "generation")),
                                   .allowed = number_at(json, "status", "disruptionsAllowed"),
                                   .healthy = number_at(json, "status", "currentHealthy"),
                                   .desired = number_at(json, "status", "desiredHealthy")}};
    b->no_memory |= !one.space.ptr || !one.name.ptr || !vec_push(&b->budgets, one);
}

/* ---- pods ---- */

static bool is_ready(yyjson_val *json)
{
    yyjson_arr_iter walk = yyjson_arr_iter_with(read_at(json, "status", "conditions"));
    for (yyjson_val *one; (one = yyjson_arr_iter_next(&walk));)
        if (str_eq(read_text(one, "type"), STR("Ready")))
            return str_eq(read_text(one, "status"), STR("True"));
    return false;
}

/* The first budget by name that does not let it go, or that there are several. */
static str protector(const drain_blocker *b, const drain_pod_view *view, label_set labels,
                     yyjson_val *json)
{
    str found = STR_EMPTY;
    size_t selecting = 0;
    bool running = str_eq(view->phase, STR("Running"));
    bool leaving = read_at(json, "metadata", "deletionTimestamp");
    for (size_t i = 0; i < b->budgets.len; i++) {
        const blocker_budget *one = &b->budgets.at[i];
        eviction_view v = one->says;
        v.running = running;
        v.leaving = leaving;
        v.ready = is_ready(json);
        if (!str_eq(one->space, view->space) || !selector_match(one->selects, labels))
            continue;
        selecting++;
        bool earlier = found.len == 0 || str_cmp(one->name, found) < 0;
        if (earlier && eviction_refused(&v))
            found = one->name;
    }
    return selecting > 1 && running && !leaving ? BUDGETS_SEVERAL : found;
}

static bool is_spared(const drain_blocker *b, label_set labels)
{
    for (size_t i = 0; i < b->spared.len; i++)
        if (selector_match(b->spared.at[i], labels))
            return true;
    return false;
}

void drain_blocker_pod(drain_blocker *b, yyjson_val *json)
{
    arena_place mark = arena_mark(b->arena);
    drain_pod_view view = read_drain_pod(json);
    label_set labels = read_labels(b->arena, read_at(json, "metadata", "labels"), STR_EMPTY);
    b->no_memory |= !labels.at;
    bool held = drain_runs(&view) && is_spared(b, labels);
    str keeper = protector(b, &view, labels, json);
    drain_wait one = {.space = view.space,
                      .name = read_text(yyjson_obj_get(json, "metadata"), "name"),
                      .holds = held,
                      .refused = keeper.len > 0};
    arena_rewind(b->arena, mark);
    if (!(held || drain_takes(&view, b->since_ms)) || (b->found && !drain_tells(&one, &b->pod)))
        return;
    b->found = true;
    b->pod = one;
    b->pod.space = arena_str(b->arena, one.space);
    b->pod.name = arena_str(b->arena, one.name);
    b->budget = held ? STR_EMPTY : keeper;
    b->no_memory |= !b->pod.space.ptr || !b->pod.name.ptr;
}
