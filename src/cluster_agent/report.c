/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster_agent/report.h"

#include "base/mem.h"
#include "engine/fleet_names.h"
#include "engine/go_json.h"
#include "model/document.h"
#include "operator/bundle_json.h"
#include "operator/bundle_patch.h"
#include "operator/bundle_status.h"

#define OWN_CONDITIONS 4

/* X(member): what of the status is written when the live version is in the cluster, and when it is
 * known to be bad. The rest stays as it is. */
#define OWN_MEMBERS(X)                                                                             \
    X("appliedDeploymentID")                                                                       \
    X("release")                                                                                   \
    X("ready")                                                                                     \
    X("nonModified")                                                                               \
    X("nonReadyStatus")                                                                            \
    X("modifiedStatus")                                                                            \
    X("incompleteState")                                                                           \
    X("resources")                                                                                 \
    X("resourceCounts")                                                                            \
    X("syncGeneration")                                                                            \
    X("downstreamResourcesGeneration")

static bool is_own(str key)
{
    static const str members[] = {
#define X(member) STR(member),
        OWN_MEMBERS(X)
#undef X
    };
    for (size_t i = 0; i < sizeof members / sizeof members[0]; i++)
        if (str_eq(members[i], key))
            return true;
    return false;
}

static const yyjson_val *spec_of(const report_facts *f)
{
    return go_member(f->deployment, STR("spec"));
}

static const yyjson_val *status_of(const report_facts *f)
{
    return go_member(f->deployment, STR("status"));
}

/* Whether only a condition is told, and all else stays as it is. */
static bool is_brief(const report_facts *f)
{
    return f->outcome == REPORT_FAILED || f->outcome == REPORT_WAITING ||
           f->outcome == REPORT_UNSEEN;
}

static bool looked(const report_facts *f)
{
    return f->outcome == REPORT_APPLIED || f->outcome == REPORT_UNCORRECTED;
}

/* ---- one object ---- */

static bool is_drifted(const report_object *o)
{
    return o->foreign || o->drift.modified;
}

static bool is_unready(const report_object *o)
{
    return o->live && o->readiness.state != READINESS_READY;
}

static drift_kind drift_of(const report_object *o)
{
    if (o->foreign)
        return DRIFT_FOREIGN;
    return o->live ? DRIFT_MODIFIED : DRIFT_MISSING;
}

/* ---- conditions ---- */

static str cut_message(arena *a, str text)
{
    if (text.len <= REPORT_MESSAGE_BYTES_MAX)
        return text;
    size_t len = 0, one;
    while ((one = str_utf8_sequence(str_part(text, len, text.len))) > 0 &&
           len + one <= REPORT_MESSAGE_BYTES_MAX - 3)
        len += one;
    str made = arena_printf(a, "%.*s...", (int)len, text.ptr);
    return made.ptr ? made : STR_EMPTY;
}

static str drift_says(const report_object *o)
{
    static const char *const texts[] = {
#define X(kind, text) text,
        DRIFT_KINDS(X)
#undef X
    };
    return str_of(texts[drift_of(o)]);
}

/* What is listed of an object: why it is not ready, or what else is wrong with it. */
static void put_trouble(buf *out, const report_object *o, bool unready)
{
    str message = unready ? o->readiness.message : drift_says(o);
    buf_addz(out, out->len > 0 ? "; " : "");
    object_ref_put(out, &o->ref);
    buf_addz(out, ": ");
    buf_add(out, message.len > 0 ? message : STR("not ready"));
}

/* What keeps it from being ready, object by object; if nothing does, what is not as it was applied:
 * the condition is False for both, as in Fleet. */
static str ready_message(arena *a, const report_facts *f, bool *ret_failed)
{
    buf text = BUF(LIMIT_TEXT_BYTES);
    size_t listed = 0;
    for (size_t i = 0; i < f->len && listed < REPORT_LISTED_MAX; i++)
        if (is_unready(&f->objects[i])) {
            put_trouble(&text, &f->objects[i], true);
            listed++;
        }
    bool ready = listed == 0;
    for (size_t i = 0; ready && i < f->len && listed < REPORT_LISTED_MAX; i++)
        if (is_drifted(&f->objects[i])) {
            put_trouble(&text, &f->objects[i], false);
            listed++;
        }
    str made = text.failed ? (str){NULL, 0} : arena_str(a, buf_str(&text));
    buf_done(&text);
    *ret_failed |= !made.ptr;
    return made.ptr ? cut_message(a, made) : STR_EMPTY;
}

static opt_moment time_of(const yyjson_val *condition_json, str key)
{
    moment at;
    str text = object_text(condition_json, key);
    return text.len > 0 && moment_parse(text, &at, NULL) ? (opt_moment){true, at} : (opt_moment){0};
}

static condition_state state_of(str text)
{
    static const str states[] = {
#define X(state, text) STR(text),
        CONDITION_STATES(X)
#undef X
    };
    for (size_t i = 0; i < sizeof states / sizeof states[0]; i++)
        if (str_eq(states[i], text))
            return (condition_state)i;
    return CONDITION_UNKNOWN;
}

static bool read_conditions(arena *a, const yyjson_val *status, condition_list *ret)
{
    yyjson_val *list = go_member(status, STR("conditions")), *one;
    size_t i, max;
    ret->len = 0;
    ret->at = ARENA_ARRAY(a, yyjson_arr_size(list) + 1, condition);
    if (!ret->at)
        return false;
    yyjson_arr_foreach(list, i, max, one)
    {
        ret->at[ret->len++] = (condition){
            .type = object_text(one, STR("type")),
            .status = state_of(object_text(one, STR("status"))),
            .reason = object_text(one, STR("reason")),
            .message = object_text(one, STR("message")),
            .last_update_time = time_of(one, STR("lastUpdateTime")),
            .last_transition_time = time_of(one, STR("lastTransitionTime")),
        };
    }
    return true;
}

static status_condition condition_now(const char *type, str trouble)
{
    bool yes = trouble.len == 0;
    return (status_condition){str_of(type), yes, yes ? STR_EMPTY : STR("Error"), trouble};
}

static bool put_conditions(arena *a, buf *out, const report_facts *f)
{
    status_condition now[OWN_CONDITIONS];
    status_conditions all = {.at = now, .now = f->now};
    bool failed = !read_conditions(a, status_of(f), &all.before);
    str trouble = cut_message(a, f->message);
    if (f->outcome != REPORT_APPLIED && trouble.len == 0)
        trouble = STR("it failed without a word");
    switch (f->outcome) {
    case REPORT_FAILED: now[all.len++] = condition_now("Deployed", trouble); break;
    case REPORT_WAITING:
        now[all.len] = condition_now("Deployed", trouble);
        now[all.len++].reason = STR(CONDITION_DEPENDENCY);
        break;
    case REPORT_UNSEEN: now[all.len++] = condition_now("Monitored", trouble); break;
    case REPORT_BAD:
        now[all.len++] = condition_now("Deployed", STR_EMPTY);
        now[all.len++] = condition_now("Installed", trouble);
        now[all.len++] = condition_now("Ready", trouble);
        break;
    case REPORT_APPLIED:
    case REPORT_UNCORRECTED:
        now[all.len++] = condition_now("Deployed", STR_EMPTY);
        now[all.len++] = condition_now("Installed", STR_EMPTY);
        now[all.len++] = condition_now("Monitored", STR_EMPTY);
        if (f->outcome == REPORT_APPLIED)
            trouble = ready_message(a, f, &failed);
        now[all.len++] = condition_now("Ready", trouble);
        break;
    }
    if (!failed)
        conditions_put(out, &all);
    return !failed;
}

/* ---- lists ---- */

/* Appends a list of at most REPORT_LISTED_MAX; returns how many there are. */
static size_t put_non_ready(buf *out, const report_facts *f)
{
    size_t count = 0;
    for (size_t i = 0; i < f->len; i++) {
        const report_object *o = &f->objects[i];
        if (!is_unready(o) || ++count > REPORT_LISTED_MAX)
            continue;
        if (count == 1) {
            json_key(out, "nonReadyStatus");
            buf_addc(out, '[');
        }
        json_next_item(out);
        non_ready_put(out, o->live, &o->readiness);
    }
    if (count > 0)
        buf_addc(out, ']');
    return count;
}

static size_t put_modified(buf *out, const report_facts *f)
{
    size_t count = 0;
    for (size_t i = 0; i < f->len; i++) {
        const report_object *o = &f->objects[i];
        if (!is_drifted(o) || ++count > REPORT_LISTED_MAX)
            continue;
        if (count == 1) {
            json_key(out, "modifiedStatus");
            buf_addc(out, '[');
        }
        json_next_item(out);
        modified_put(out, &o->ref, drift_of(o), o->drift.patch);
    }
    if (count > 0)
        buf_addc(out, ']');
    return count;
}

static void put_resources(buf *out, const report_facts *f)
{
    if (f->len == 0)
        return;
    json_key(out, "resources");
    buf_addc(out, '[');
    for (size_t i = 0; i < f->len && i < REPORT_RESOURCES_MAX; i++) {
        const report_object *o = &f->objects[i];
        const yyjson_val *meta = go_member(o->live, STR("metadata"));
        json_next_item(out);
        buf_addc(out, '{');
        json_text(out, "kind", o->ref.kind);
        json_text(out, "apiVersion", o->ref.api_version);
        json_text_if(out, "namespace", o->ref.namespace_);
        json_text(out, "name", o->ref.name);
        json_text_if(out, "createdAt", object_text(meta, STR("creationTimestamp")));
        json_close(out);
    }
    buf_addc(out, ']');
}

static resource_count count_of(const report_object *o)
{
    if (!o->live)
        return RESOURCES_MISSING;
    if (is_drifted(o))
        return RESOURCES_MODIFIED;
    return is_unready(o) ? RESOURCES_NOT_READY : RESOURCES_READY;
}

static void put_counts(buf *out, const report_facts *f)
{
    int64_t counts[RESOURCE_COUNT_KINDS] = {0};
    counts[RESOURCES_DESIRED_READY] = (int64_t)f->len;
    for (size_t i = 0; i < f->len; i++)
        counts[count_of(&f->objects[i])]++;
    json_open(out, "resourceCounts");
    for (int i = 0; i < RESOURCE_COUNT_KINDS; i++)
        json_number(out, resource_count_text((resource_count)i), counts[i]);
    json_close(out);
}

/* ---- the status ---- */

static void put_flag(buf *out, const char *name, bool yes)
{
    json_key(out, name);
    buf_addz(out, yes ? "true" : "false");
}

static void put_found(buf *out, const report_facts *f)
{
    size_t unready = put_non_ready(out, f), drifted = put_modified(out, f);
    put_flag(out, "ready", unready == 0);
    put_flag(out, "nonModified", drifted == 0);
    json_true_if(out, "incompleteState",
                 unready > REPORT_LISTED_MAX || drifted > REPORT_LISTED_MAX ||
                     f->len > REPORT_RESOURCES_MAX);
    put_resources(out, f);
    put_counts(out, f);
    yyjson_val *generation =
        go_member(go_member(spec_of(f), STR("options")), STR("forceSyncGeneration"));
    json_number(out, "syncGeneration", yyjson_is_int(generation) ? yyjson_get_sint(generation) : 0);
    json_value_if(out, "downstreamResourcesGeneration",
                  go_member(spec_of(f), STR("downstreamResourcesGeneration")));
}

static bool put_status(arena *a, buf *out, const report_facts *f)
{
    buf_addc(out, '{');
    yyjson_obj_iter walk = yyjson_obj_iter_with((yyjson_val *)(uintptr_t)status_of(f));
    for (yyjson_val *key; (key = yyjson_obj_iter_next(&walk));) {
        str k = go_str(key);
        if (str_eq(k, STR("conditions")) || (!is_brief(f) && is_own(k)))
            continue;
        json_key_of(out, k);
        json_write(out, yyjson_obj_iter_get_val(key));
    }
    if (!is_brief(f))
        json_text(out, "appliedDeploymentID", object_text(spec_of(f), STR("deploymentID")));
    if (looked(f)) {
        json_text_if(out, "release", f->release);
        put_found(out, f);
    } else if (f->outcome == REPORT_BAD) {
        put_flag(out, "ready", false);
        put_flag(out, "nonModified", true);
    }
    bool good = put_conditions(a, out, f);
    json_close(out);
    return good && !out->failed;
}

bool report_patch(buf *out, const report_facts *f, bool *ret_changed, err *error)
{
    arena *a scoped(arena_cleanup) = arena_new(0);
    buf text = BUF(LIMIT_TEXT_BYTES);
    yyjson_val *after = NULL;
    if (a && put_status(a, &text, f))
        after = json_parse_within(a, buf_str(&text), text.len, NULL);
    buf_done(&text);
    if (!after)
        return err_memory(error);
    size_t start = out->len;
    buf_addz(out, "{\"status\":");
    bool changed = merge_patch_put(out, status_of(f), after);
    buf_addc(out, '}');
    if (out->failed)
        return err_memory(error);
    if (!changed)
        out->len = start;
    *ret_changed = changed;
    return true;
}

void check_in_put(buf *out, moment now, str agent_namespace)
{
    char text[MOMENT_TEXT_BYTES];
    now.nanos = 0;
    buf_addz(out, "{\"status\":{\"agent\":{\"lastSeen\":\"");
    buf_add(out, (str){text, moment_format(now, text)});
    buf_addz(out, "\",\"namespace\":");
    go_text(out, agent_namespace);
    buf_addz(out, "}}}");
}
