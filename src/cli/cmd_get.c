/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "base/num.h"
#include "cli/client.h"
#include "cli/show.h"
#include "server/uri.h"

static void add_query(buf *path, const options *given, const char *name, const char *parameter_name)
{
    str value = options_text(given, name, "");
    if (value.len == 0)
        return;
    buf_addf(path, "%c%s=", str_find(buf_str(path), STR("?")) == SIZE_MAX ? '?' : '&',
             parameter_name);
    uri_encode(path, value);
}

static str list_path(client *c, const show_kind *kind, const options *given)
{
    buf path = BUF(URI_BYTES_MAX);
    bool targets = strcmp(kind->plural, "targets") == 0, jobs = strcmp(kind->plural, "jobs") == 0;
    buf_addf(&path, "/api/v1/%s", kind->plural);
    if (kind->kind || targets)
        add_query(&path, given, "selector", "selector");
    if (targets) {
        add_query(&path, given, "environment", "environment");
        add_query(&path, given, "state", "state");
    }
    if (targets || jobs) {
        add_query(&path, given, "deployment", "deployment");
        add_query(&path, given, "resource", "resource");
    }
    if (jobs && options_given(given, "open"))
        buf_addf(&path, "%copen=true", str_find(buf_str(&path), STR("?")) == SIZE_MAX ? '?' : '&');
    str whole = arena_str(client_arena(c), buf_str(&path));
    buf_done(&path);
    return whole.ptr ? whole : STR("/");
}

/* "web", or "web/prod/host-1" for a release target. */
static str one_path(client *c, const show_kind *kind, str name)
{
    if (strcmp(kind->plural, "targets") != 0)
        return client_path(c, "/api/v1/%s/%s", str_of(kind->plural), name);
    str parts[3] = {STR_EMPTY, STR_EMPTY, STR_EMPTY};
    for (size_t i = 0; i < 3 && name.ptr; i++)
        parts[i] = str_cut(&name, '/');
    return client_path(c, "/api/v1/targets/%s/%s/%s", parts[0], parts[1], parts[2]);
}

typedef struct name_search {
    client *client;
    const show_kind *kind;
    str name;
    yyjson_val *found;
} name_search;

static bool is_named(void *context, yyjson_val *item)
{
    name_search *s = context;
    if (str_eq(json_at(s->client, item, s->kind->name), s->name))
        s->found = item;
    return !s->found;
}

static exit_status get_one(client *c, const show_kind *kind, str name, yyjson_val **ret)
{
    if (!kind->listed)
        return client_call(c, "GET", one_path(c, kind, name), (str){NULL, 0}, ret);
    name_search s = {.client = c, .kind = kind, .name = name};
    str path = client_path(c, "/api/v1/%s", str_of(kind->plural));
    exit_status status = client_list(c, path, 0, is_named, &s);
    *ret = s.found;
    return status != STATUS_DONE || s.found
               ? status
               : fail("there is no %s \"%s\"", kind->singular, str_shown(name).text);
}

/* "web/prod/host-1": a release target has three names. */
static bool whole_name(const show_kind *kind, str name)
{
    size_t slashes = 0;
    for (size_t i = 0; i < name.len; i++)
        slashes += name.ptr[i] == '/';
    return strcmp(kind->plural, "targets") != 0 || slashes == 2;
}

/* All that are named, of one kind. */
static exit_status get_named(client *c, show *s, const show_kind *kind, const options *given)
{
    exit_status status = STATUS_DONE;
    const show_kind *each = kind;
    str name;
    for (size_t at = 0; show_next(given, &at, &each, &name);) {
        yyjson_val *answer = NULL;
        if (each != kind)
            return usage_error(&cmd_get, "found %s and %s, allowed names of one kind", kind->plural,
                               each->plural);
        if (!whole_name(kind, name))
            return usage_error(&cmd_get,
                               "found the target \"%s\", allowed DEPLOYMENT/ENVIRONMENT/RESOURCE",
                               str_shown(name).text);
        exit_status one = get_one(c, kind, name, &answer);
        if (one == STATUS_DONE)
            show_item(s, answer);
        status = one == STATUS_DONE ? status : one;
    }
    if (!each)
        return usage_error(&cmd_get, "found a word that is no KIND/NAME");
    return status;
}

static exit_status run(const options *given)
{
    exit_status status = STATUS_DONE;
    int64_t limit = 0;
    const show_kind *kind = NULL;
    str name;
    size_t at = 0;
    show_next(given, &at, &kind, &name);
    str limit_text = options_text(given, "limit", "0");
    if (!kind)
        return usage_error(&cmd_get, "found \"%s\", allowed " SHOW_KINDS_HELP,
                           str_shown(given->operands.at[0]).text);
    if (!num_parse(limit_text, &limit) || limit < 0)
        return usage_error(&cmd_get, "--limit: found \"%s\", allowed a number",
                           str_shown(limit_text).text);
    scoped(client_cleanup) client *c = client_open(given, &status);
    if (!c)
        return status;
    bool jobs = strcmp(kind->plural, "jobs") == 0;
    limit = limit == 0 && jobs ? 50 : limit;
    show *s = show_begin(c, kind, options_text(given, "output", "table"));
    bool one = name.len > 0 && at == given->operands.len;
    if (!s)
        status = fail("memory ran out");
    else if (name.len == 0)
        status = client_list(c, list_path(c, kind, given), limit, show_item, s);
    else
        status = get_named(c, s, kind, given);
    if (status == STATUS_DONE)
        return show_end(s, one);
    if (s)
        show_free(s);
    return status;
}

static const option options_of_get[] = {
    OPTION_OUTPUT("table|json|yaml|name"),
    {.name = "selector",
     .letter = 'l',
     .argument = "LABELS",
     .help = "only what has these labels; targets: whose resource has them"},
    {.name = "deployment", .argument = "NAME", .help = "targets, jobs: only of this one"},
    {.name = "environment", .argument = "NAME", .help = "targets: only of this one"},
    {.name = "resource", .argument = "NAME", .help = "targets, jobs: only of this one"},
    {.name = "state",
     .argument = "waiting|inFlight|failed|blocked|excluded|done",
     .help = "targets: only in this state"},
    {.name = "open", .help = "jobs: only what has not ended"},
    {.name = "limit", .argument = "N", .help = "at most so many; jobs: 50 unless told"},
    OPTIONS_SERVER,
    OPTIONS_END,
};

const verb cmd_get = {
    .name = "get",
    .summary = "list what the server has",
    .operands = "KIND [NAME...]",
    .operands_min = 1,
    .operands_max = 1000,
    .about = "KIND is one of " SHOW_KINDS_HELP ". A release target is named "
             "DEPLOYMENT/ENVIRONMENT/RESOURCE; KIND/NAME works too.",
    .options = options_of_get,
    .run = run,
};
