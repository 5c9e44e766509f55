/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/remote_explain.h"

#include "base/limits.h"
#include "base/mem.h"
#include "cli/output.h"
#include "cli/show.h"

#define NAMES_SHOWN 8
#define LABEL_COLUMNS 16

typedef struct search {
    client *client;
    str environment;   /* empty: any */
    yyjson_val *first; /* the first that is not done, or the first of all */
    bool undone;
} search;

static bool look(void *context, yyjson_val *item)
{
    search *s = context;
    str where = json_at(s->client, item, "/environment");
    if (s->environment.len > 0 && !str_eq(s->environment, where))
        return true;
    bool done = str_eq(json_at(s->client, item, "/state"), STR("done"));
    if (!s->first || (!s->undone && !done))
        s->first = item;
    s->undone = s->undone || !done;
    return !s->undone;
}

static void add_names(buf *out, const char *title, yyjson_val *names)
{
    size_t index, count;
    yyjson_val *name;
    buf words = BUF(LIMIT_TEXT_BYTES);
    if (yyjson_arr_size(names) == 0)
        return;
    yyjson_arr_foreach(names, index, count, name)
    {
        if (index < NAMES_SHOWN)
            buf_addf(&words, "%s%s", index > 0 ? ", " : "", yyjson_get_str(name));
    }
    if (count > NAMES_SHOWN)
        buf_addf(&words, " and %zu more", count - NAMES_SHOWN);
    buf_addf(out, "    %-12s", title);
    output_wrap(out, buf_str(&words), LABEL_COLUMNS, LABEL_COLUMNS);
    buf_addc(out, '\n');
    buf_done(&words);
}

static void add_reason(client *c, buf *out, yyjson_val *reason)
{
    str rule = json_at(c, reason, "/rule"), scope = json_at(c, reason, "/scope");
    str next = json_at(c, reason, "/nextAt"), act = json_at(c, reason, "/releasedBy/act");
    buf_addf(out, "\n  %.*s", STR_ARG(rule));
    if (scope.len > 0)
        buf_addf(out, " (%.*s)", STR_ARG(scope));
    buf_addz(out, ": ");
    output_wrap(out, json_at(c, reason, "/message"), 6 + rule.len + scope.len, 4);
    buf_addc(out, '\n');
    add_names(out, "held by", yyjson_ptr_get(reason, "/holders"));
    buf_addf(out, "    %-12s%.*s\n", "released by", STR_ARG(act));
    add_names(out, "of", yyjson_ptr_get(reason, "/releasedBy/of"));
    if (next.len > 0)
        buf_addf(out, "    %-12s%.*s\n", "asked again", STR_ARG(next));
}

void remote_explain_text(client *c, buf *out, yyjson_val *target)
{
    size_t index, count;
    yyjson_val *reason;
    str name = json_at(c, target, "/target"), state = json_at(c, target, "/state");
    str change = json_at(c, target, "/change"), summary = json_at(c, target, "/summary");
    str where = json_at(c, target, "/environment"), wanted = json_at(c, target, "/wanted");
    str line = str_eq(state, STR("done"))
                   ? arena_printf(client_arena(c), "%.*s is done in %.*s: %.*s", STR_ARG(name),
                                  STR_ARG(where), STR_ARG(summary))
                   : arena_printf(client_arena(c), "%.*s, %.*s %.*s in %.*s, is %.*s: %.*s",
                                  STR_ARG(name), STR_ARG(change), STR_ARG(wanted), STR_ARG(where),
                                  STR_ARG(state), STR_ARG(summary));
    output_wrap(out, line.ptr ? line : STR_EMPTY, 0, 2);
    buf_addc(out, '\n');
    yyjson_arr_foreach(yyjson_obj_get(target, "reasons"), index, count, reason)
        add_reason(c, out, reason);
}

exit_status remote_explain(const options *given)
{
    exit_status status = STATUS_DONE;
    str name = given->operands.at[0], change = options_text(given, "change", "");
    scoped(client_cleanup) client *c = client_open(given, &status);
    if (!c)
        return status;
    search s = {.client = c, .environment = options_text(given, "environment", "")};
    str path = change.len > 0
                   ? client_path(c, "/api/v1/targets?resource=%s&deployment=%s", name, change)
                   : client_path(c, "/api/v1/targets?resource=%s", name);
    status = client_list(c, path, 0, look, &s);
    if (status != STATUS_DONE)
        return status;
    if (!s.first)
        return fail("%.*s: no deployment wants anything of it, or there is no such resource",
                    STR_ARG(name));
    buf out = BUF(LIMIT_TEXT_BYTES);
    if (str_eq(options_text(given, "output", "text"), STR("json"))) {
        json_pretty(&out, s.first);
        buf_addc(&out, '\n');
    } else {
        remote_explain_text(c, &out, s.first);
    }
    return output_buf(stdout, &out) ? STATUS_DONE : STATUS_NO;
}
