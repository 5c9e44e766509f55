/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/remote_explain.h"

#include "base/limits.h"
#include "base/mem.h"
#include "cli/explain_show.h"
#include "cli/output.h"

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
    if (str_eq(options_text(given, "output", "text"), STR("json")))
        explain_json(&out, s.first);
    else
        explain_text(&out, s.first);
    return output_buf(stdout, &out) ? STATUS_DONE : STATUS_NO;
}
