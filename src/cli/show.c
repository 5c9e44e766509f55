/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/show.h"

#include "base/limits.h"
#include "base/mem.h"
#include "base/moment.h"
#include "base/vec.h"
#include "server/clock.h"

static const show_kind kinds[] = {
    {.plural = "resources",
     .singular = "resource",
     .also = "res",
     .kind = "Resource",
     .name = "/metadata/name",
     .columns = {{.title = "NAME", .pointer = "/metadata/name", .shrink = true},
                 {.title = "KIND", .pointer = "/spec/kind", .shrink = true},
                 {.title = "LABELS", .pointer = "/metadata/labels", .shrink = true},
                 {.title = "AGE", .pointer = "/metadata/creationTimestamp", .age = true}}},
    {.plural = "environments",
     .singular = "environment",
     .also = "env",
     .kind = "Environment",
     .name = "/metadata/name",
     .columns = {{.title = "NAME", .pointer = "/metadata/name", .shrink = true},
                 {.title = "SELECTOR", .pointer = "/spec/resourceSelector", .shrink = true},
                 {.title = "AGE", .pointer = "/metadata/creationTimestamp", .age = true}}},
    {.plural = "deployments",
     .singular = "deployment",
     .also = "deploy",
     .kind = "Deployment",
     .name = "/metadata/name",
     .columns = {{.title = "NAME", .pointer = "/metadata/name", .shrink = true},
                 {.title = "SELECTOR", .pointer = "/spec/resourceSelector", .shrink = true},
                 {.title = "JOB", .pointer = "/spec/job", .shrink = true},
                 {.title = "AGE", .pointer = "/metadata/creationTimestamp", .age = true}}},
    {.plural = "versions",
     .singular = "version",
     .also = "ver",
     .kind = "Version",
     .name = "/metadata/name",
     .columns = {{.title = "NAME", .pointer = "/metadata/name", .shrink = true},
                 {.title = "DEPLOYMENT", .pointer = "/spec/deployment", .shrink = true},
                 {.title = "TAG", .pointer = "/spec/tag", .shrink = true},
                 {.title = "STATUS", .pointer = "/spec/status", .missing = "ready"},
                 {.title = "AGE", .pointer = "/metadata/creationTimestamp", .age = true}}},
    {.plural = "rolloutpolicies",
     .singular = "rolloutpolicy",
     .also = "policies",
     .kind = "RolloutPolicy",
     .name = "/metadata/name",
     .columns = {{.title = "NAME", .pointer = "/metadata/name", .shrink = true},
                 {.title = "PRIORITY", .pointer = "/spec/priority", .right = true, .missing = "0"},
                 {.title = "SELECTOR", .pointer = "/spec/selector", .shrink = true},
                 {.title = "AGE", .pointer = "/metadata/creationTimestamp", .age = true}}},
    {.plural = "targets",
     .singular = "target",
     .also = "rt",
     .name = "/target",
     .columns = {{.title = "DEPLOYMENT", .pointer = "/change", .shrink = true},
                 {.title = "ENVIRONMENT", .pointer = "/environment", .shrink = true},
                 {.title = "RESOURCE", .pointer = "/target", .shrink = true},
                 {.title = "STATE", .pointer = "/state"},
                 {.title = "CURRENT", .pointer = "/current", .shrink = true},
                 {.title = "WANTED", .pointer = "/wanted", .shrink = true},
                 {.title = "WHY", .pointer = "/reasons/0/message", .shrink = true}}},
    {.plural = "jobs",
     .singular = "job",
     .also = "job",
     .name = "/number",
     .columns = {{.title = "JOB", .pointer = "/number", .right = true},
                 {.title = "DEPLOYMENT", .pointer = "/deployment", .shrink = true},
                 {.title = "ENVIRONMENT", .pointer = "/environment", .shrink = true},
                 {.title = "RESOURCE", .pointer = "/resource", .shrink = true},
                 {.title = "VERSION", .pointer = "/version", .shrink = true},
                 {.title = "STATE", .pointer = "/state"},
                 {.title = "AGE", .pointer = "/startedAt", .age = true},
                 {.title = "REASON", .pointer = "/reason", .shrink = true}}},
    {.plural = "groups",
     .singular = "group",
     .also = "group",
     .name = "/name",
     .listed = true,
     .columns = {{.title = "KIND", .pointer = "/kind"},
                 {.title = "NAME", .pointer = "/change", .shrink = true},
                 {.title = "MATCHED", .pointer = "/matched", .right = true},
                 {.title = "HOLDERS", .pointer = "/holders", .right = true},
                 {.title = "LIMIT", .pointer = "/limit", .right = true},
                 {.title = "PEAK", .pointer = "/peak", .right = true}}},
    {.plural = "freezes",
     .singular = "freeze",
     .also = "freeze",
     .name = "/name",
     .listed = true,
     .columns = {{.title = "NAME", .pointer = "/name", .shrink = true},
                 {.title = "SELECTOR", .pointer = "/selector", .shrink = true},
                 {.title = "UNTIL", .pointer = "/until"},
                 {.title = "WHO", .pointer = "/who", .shrink = true},
                 {.title = "AGE", .pointer = "/createdAt", .age = true},
                 {.title = "REASON", .pointer = "/reason", .shrink = true}}},
    {.plural = "tokens",
     .singular = "token",
     .also = "token",
     .name = "/name",
     .listed = true,
     .columns = {{.title = "NAME", .pointer = "/name", .shrink = true},
                 {.title = "ROLE", .pointer = "/role"},
                 {.title = "SELECTOR", .pointer = "/selector", .shrink = true},
                 {.title = "AGE", .pointer = "/createdAt", .age = true},
                 {.title = "REVOKED", .pointer = "/revokedAt", .age = true}}},
};

struct show {
    client *client;
    const show_kind *kind;
    str output;
    VEC(yyjson_val *) items;
    bool no_memory;
};

static bool lower_equal(str word, const char *name)
{
    if (word.len != strlen(name))
        return false;
    for (size_t i = 0; i < word.len; i++)
        if ((word.ptr[i] | 0x20) != name[i])
            return false;
    return true;
}

const show_kind *show_find(str word)
{
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (lower_equal(word, kinds[i].plural) || lower_equal(word, kinds[i].singular) ||
            lower_equal(word, kinds[i].also))
            return &kinds[i];
    return NULL;
}

bool show_next(const options *given, size_t *at, const show_kind **ret_kind, str *ret_name)
{
    size_t count = given->operands.len;
    if (*at >= count)
        return false;
    str word = given->operands.at[*at];
    size_t slash = str_find(word, STR("/"));
    bool whole = str_find(given->operands.at[0], STR("/")) != SIZE_MAX;
    if (whole) {
        *ret_kind = show_find(str_part(word, 0, slash));
        *ret_name = slash == SIZE_MAX ? STR_EMPTY : str_part(word, slash + 1, SIZE_MAX);
    } else {
        *ret_kind = show_find(given->operands.at[0]);
        *ret_name = count == 1 ? STR_EMPTY : given->operands.at[*at == 0 ? ++*at : *at];
    }
    ++*at;
    return *ret_kind != NULL;
}

show *show_begin(client *c, const show_kind *kind, str output)
{
    show *s = mem_zalloc(sizeof *s);
    if (s)
        *s = (show){.client = c, .kind = kind, .output = output};
    return s;
}

bool show_item(void *context, yyjson_val *item)
{
    show *s = context;
    s->no_memory = s->no_memory || !vec_push(&s->items, item);
    return !s->no_memory;
}

show *show_free(show *s)
{
    if (s)
        vec_done(&s->items);
    return mem_free(s);
}

/* ---- tables ---- */

str show_age(client *c, str text)
{
    moment at;
    err error;
    if (text.len == 0 || !moment_parse(text, &at, &error))
        return text;
    int64_t seconds = clock_ms() / 1000 - at.seconds;
    seconds = seconds < 0 ? 0 : seconds;
    arena *a = client_arena(c);
    if (seconds < 120)
        return arena_printf(a, "%llds", (long long)seconds);
    if (seconds < 7200)
        return arena_printf(a, "%lldm", (long long)(seconds / 60));
    if (seconds < 172800)
        return arena_printf(a, "%lldh", (long long)(seconds / 3600));
    return arena_printf(a, "%lldd", (long long)(seconds / 86400));
}

static exit_status print_table(show *s)
{
    column columns[SHOW_COLUMNS_MAX];
    size_t count = 0;
    if (s->items.len == 0) {
        fprintf(stderr, "no %s found\n", s->kind->plural);
        return STATUS_DONE;
    }
    for (; count < SHOW_COLUMNS_MAX && s->kind->columns[count].title; count++)
        columns[count] = (column){.title = s->kind->columns[count].title,
                                  .right = s->kind->columns[count].right,
                                  .shrink = s->kind->columns[count].shrink};
    table *t = table_new(columns, count);
    if (!t)
        return fail("memory ran out");
    for (size_t i = 0; i < s->items.len; i++)
        for (size_t k = 0; k < count; k++) {
            const show_column *column_ = &s->kind->columns[k];
            str text = json_at(s->client, s->items.at[i], column_->pointer);
            if (text.len == 0 && column_->missing)
                text = str_of(column_->missing);
            table_cell(t, column_->age ? show_age(s->client, text) : text);
        }
    bool good = table_print(t, stdout);
    table_free(t);
    return good ? STATUS_DONE : STATUS_NO;
}

/* ---- the other forms ---- */

static str full_name(show *s, yyjson_val *item)
{
    if (strcmp(s->kind->plural, "targets") != 0)
        return json_at(s->client, item, s->kind->name);
    str change = json_at(s->client, item, "/change");
    str environment = json_at(s->client, item, "/environment");
    str target = json_at(s->client, item, "/target");
    return arena_printf(client_arena(s->client), "%.*s/%.*s/%.*s", STR_ARG(change),
                        STR_ARG(environment), STR_ARG(target));
}

static void print_names(show *s, buf *out)
{
    for (size_t i = 0; i < s->items.len; i++) {
        str name = full_name(s, s->items.at[i]);
        buf_addf(out, "%s/%.*s\n", s->kind->singular, STR_ARG(name));
    }
}

static void print_json(show *s, buf *out, bool one)
{
    if (!one)
        buf_addz(out, "{\"apiVersion\":\"v1\",\"kind\":\"List\",\"items\":[");
    for (size_t i = 0; i < s->items.len; i++) {
        buf_addz(out, i > 0 ? ",\n" : one ? "" : "\n");
        json_pretty(out, s->items.at[i]);
    }
    buf_addz(out, one ? "\n" : "\n]}\n");
}

static void print_yaml(show *s, buf *out, bool one)
{
    for (size_t i = 0; i < s->items.len; i++) {
        if (!one)
            buf_addz(out, "---\n");
        yaml_write(out, s->items.at[i]);
    }
}

exit_status show_end(show *s, bool one)
{
    exit_status status = STATUS_DONE;
    buf out = BUF(LIMIT_TEXT_BYTES);
    if (!s || s->no_memory)
        status = fail("memory ran out");
    else if (str_eq(s->output, STR("json")))
        print_json(s, &out, one);
    else if (str_eq(s->output, STR("yaml")))
        print_yaml(s, &out, one);
    else if (str_eq(s->output, STR("name")))
        print_names(s, &out);
    else
        status = print_table(s);
    if (!output_buf(stdout, &out))
        status = STATUS_NO;
    show_free(s);
    return status;
}
