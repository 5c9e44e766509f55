/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/explain_show.h"

#include <inttypes.h>

#include "base/limits.h"
#include "base/mem.h"
#include "cli/output.h"
#include "model/json.h"

#define NAMES_SHOWN 8
#define LABEL_COLUMNS 16
#define TITLE_BYTES 32

static bool look(void *context, const placement_view *v)
{
    explain_search *s = context;
    if (!str_eq(v->target, s->target))
        return true;
    s->has_target = true;
    if (s->change.len > 0 && !str_eq(v->change, s->change) &&
        !(v->kind == TARGET_CLUSTER && str_ends(v->change, s->change)))
        return true;
    if (!s->found || (s->view.state == PLACEMENT_DONE && v->state != PLACEMENT_DONE))
        s->view = *v;
    s->found = true;
    return true;
}

bool explain_find(const engine *e, explain_search *s)
{
    return engine_placements(e, look, s);
}

exit_status explain_print(const options *given, yyjson_val *target)
{
    if (!target)
        return fail("out of memory");
    buf out = BUF(LIMIT_TEXT_BYTES);
    if (str_eq(options_text(given, "output", "text"), STR("json")))
        explain_json(&out, target);
    else
        explain_text(&out, target);
    return output_buf(stdout, &out) ? STATUS_DONE : STATUS_NO;
}

static const char *const states[] = {
#define X(state, text) text,
    PLACEMENT_STATES(X)
#undef X
};

yyjson_val *explain_value(const engine *e, const placement_view *v, str said, arena *a)
{
    reasons why = {0};
    err error;
    if (!engine_reasons(e, v->id, a, &why))
        return NULL;
    for (size_t i = 0; i < why.len; i++)
        if (why.at[i].rule == REASON_NOT_READY && why.at[i].detail.len == 0)
            why.at[i].detail = said;
    scoped(buf_done) buf out = BUF(LIMIT_TEXT_BYTES);
    buf_addz(&out, "{\"target\":");
    buf_add_json(&out, v->target);
    buf_addz(&out, ",\"change\":");
    buf_add_json(&out, v->change);
    buf_addf(&out, ",\"state\":\"%s\",\"summary\":", states[v->state]);
    buf_add_json(&out, engine_sentence(a, v, &why));
    buf_addz(&out, ",\"reasons\":[");
    for (size_t i = 0; i < why.len; i++) {
        buf_addz(&out, i > 0 ? "," : "");
        reason_json(&why.at[i], REASON_NAMES_ALL, a, &out);
    }
    buf_addz(&out, "]}");
    str text = out.failed ? (str){0} : arena_str(a, buf_str(&out));
    return text.ptr ? json_parse(a, text, &error) : NULL;
}

static str text_at(yyjson_val *value, const char *pointer)
{
    yyjson_val *found = yyjson_ptr_get(value, pointer);
    return yyjson_is_str(found) ? (str){yyjson_get_str(found), yyjson_get_len(found)} : STR_EMPTY;
}

/* ---- text ---- */

static void add_names(buf *out, const char *title, yyjson_val *names)
{
    size_t index, count;
    yyjson_val *name;
    if (yyjson_arr_size(names) == 0)
        return;
    scoped(buf_done) buf words = BUF(LIMIT_TEXT_BYTES);
    yyjson_arr_foreach(names, index, count, name)
    {
        if (index < NAMES_SHOWN)
            buf_addf(&words, "%s%s", index > 0 ? ", " : "", yyjson_get_str(name));
    }
    if (count > NAMES_SHOWN)
        buf_addf(&words, " and %zu more", count - NAMES_SHOWN);
    buf_addf(out, "    %-11s ", title);
    output_wrap(out, buf_str(&words), LABEL_COLUMNS, LABEL_COLUMNS);
    buf_addc(out, '\n');
}

static void add_reason(buf *out, yyjson_val *why)
{
    str name = text_at(why, "/rule"), scope = text_at(why, "/scope");
    str next = text_at(why, "/nextAt"), act = text_at(why, "/releasedBy/act");
    buf_addf(out, "\n  %.*s", STR_ARG(name));
    if (scope.len > 0)
        buf_addf(out, " (%.*s)", STR_ARG(scope));
    buf_addz(out, ": ");
    output_wrap(out, text_at(why, "/message"), 6 + name.len + scope.len, 4);
    buf_addc(out, '\n');
    add_names(out, "held by", yyjson_ptr_get(why, "/holders"));
    buf_addf(out, "    %-12s%.*s\n", "released by", STR_ARG(act));
    char title[TITLE_BYTES] = "of";
    yyjson_val *any = yyjson_ptr_get(why, "/releasedBy/any");
    if (any)
        snprintf(title, sizeof title, "any %" PRIu64 " of", yyjson_get_uint(any));
    add_names(out, title, yyjson_ptr_get(why, "/releasedBy/of"));
    if (next.len > 0)
        buf_addf(out, "    %-12s%.*s\n", "asked again", STR_ARG(next));
}

void explain_text(buf *out, yyjson_val *target)
{
    size_t index, count;
    yyjson_val *why;
    output_wrap(out, text_at(target, "/summary"), 0, 2);
    buf_addc(out, '\n');
    yyjson_arr_foreach(yyjson_obj_get(target, "reasons"), index, count, why) add_reason(out, why);
}

/* ---- JSON ---- */

void explain_json(buf *out, yyjson_val *target)
{
    static const char *const keys[] = {"target", "change", "state", "summary"};
    size_t index, count;
    yyjson_val *why;
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        buf_addf(out, "%s\"%s\":", i > 0 ? "," : "{", keys[i]);
        json_write(out, yyjson_obj_get(target, keys[i]));
    }
    buf_addz(out, ",\n \"reasons\":[");
    yyjson_arr_foreach(yyjson_obj_get(target, "reasons"), index, count, why)
    {
        buf_addz(out, index > 0 ? ",\n  " : "\n  ");
        json_write(out, why);
    }
    buf_addz(out, "]}\n");
}
