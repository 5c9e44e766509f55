/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/events.h"

#include "base/limits.h"
#include "base/vec.h"

str event_text(client *c, yyjson_val *entry)
{
    static const char *const members[] = {"/fact",     "/decision",    "/audit",
                                          "/act",      "/kind",        "/document/kind",
                                          "/name",     "/token",       "/document/metadata/name",
                                          "/change",   "/deployment",  "/target",
                                          "/resource", "/environment", "/version",
                                          "/number",   "/job",         "/state",
                                          "/outcome",  "/detail",      "/reason",
                                          NULL};
    buf out = BUF(LIMIT_TEXT_BYTES);
    for (size_t i = 0; members[i]; i++) {
        str text = json_at(c, entry, members[i]);
        if (text.len > 0) {
            buf_addz(&out, out.len > 0 ? " " : "");
            buf_add(&out, text);
        }
    }
    yyjson_val *taken = yyjson_obj_get(entry, "taken");
    if (taken)
        buf_addz(&out, yyjson_get_bool(taken) ? " taken" : " given back");
    str text = arena_str(client_arena(c), buf_str(&out));
    buf_done(&out);
    return text.ptr ? text : STR_EMPTY;
}

/* ---- which entries ---- */

static bool has(client *c, yyjson_val *entry, const char *pointer, str value)
{
    return value.len > 0 && str_eq(json_at(c, entry, pointer), value);
}

/* The document itself came, changed or went. */
static bool is_document(client *c, yyjson_val *entry, const event_subject *s)
{
    str kind = str_of(s->kind->kind);
    bool resource = str_eq(kind, STR("Resource"));
    if (has(c, entry, "/document/kind", kind))
        return has(c, entry, "/document/metadata/name", s->name);
    return has(c, entry, "/name", s->name) &&
           (has(c, entry, "/kind", kind) ||
            (resource && has(c, entry, "/fact", STR("targetGone"))));
}

/* Its rules are named NAME/KIND/N, and so are groups. */
static bool is_of_policy(client *c, yyjson_val *entry, str name)
{
    static const char *const members[] = {"/group", "/rule"};
    for (size_t i = 0; i < sizeof members / sizeof members[0]; i++) {
        str text = json_at(c, entry, members[i]);
        if (str_starts(text, name) && str_starts(str_part(text, name.len, SIZE_MAX), STR("/")))
            return true;
    }
    return false;
}

/* Decisions name a version by deployment and tag, acts by its name or its tag. */
static bool is_of_version(client *c, yyjson_val *entry, const event_subject *s)
{
    str deployment = json_at(c, s->document, "/spec/deployment");
    str tag = json_at(c, s->document, "/spec/tag");
    return has(c, entry, "/version", s->name) ||
           (has(c, entry, "/version", tag) && has(c, entry, "/change", deployment));
}

bool event_is_about(client *c, yyjson_val *entry, const event_subject *s)
{
    const char *kind = s->kind->singular;
    if (strcmp(kind, "job") == 0)
        return has(c, entry, "/job", s->name) ||
               (has(c, entry, "/number", s->name) && (has(c, entry, "/decision", STR("job")) ||
                                                      has(c, entry, "/decision", STR("release"))));
    if (is_document(c, entry, s))
        return true;
    if (strcmp(kind, "resource") == 0)
        return has(c, entry, "/target", s->name) || has(c, entry, "/resource", s->name);
    if (strcmp(kind, "deployment") == 0)
        return has(c, entry, "/change", s->name) || has(c, entry, "/deployment", s->name) ||
               has(c, entry, "/document/spec/deployment", s->name);
    if (strcmp(kind, "environment") == 0)
        return has(c, entry, "/environment", s->name);
    if (strcmp(kind, "version") == 0)
        return is_of_version(c, entry, s);
    return is_of_policy(c, entry, s->name);
}

/* ---- the last of them ---- */

typedef struct search {
    client *client;
    const event_subject *subject;
    VEC(yyjson_val *) found;
    bool no_memory;
} search;

static bool look(void *context, yyjson_val *item)
{
    search *s = context;
    if (event_is_about(s->client, yyjson_obj_get(item, "entry"), s->subject))
        s->no_memory = s->no_memory || !vec_push(&s->found, item);
    return !s->no_memory;
}

static bool print_found(const search *s)
{
    static const column columns[] = {
        {"AGE", false, false}, {"KIND", false, false}, {"WHO", false, true}, {"WHAT", false, true}};
    table *t = table_new(columns, sizeof columns / sizeof columns[0]);
    size_t count = s->found.len;
    for (size_t i = count > EVENTS_SHOWN ? count - EVENTS_SHOWN : 0; t && i < count; i++) {
        yyjson_val *item = s->found.at[i];
        str who = json_at(s->client, item, "/who");
        table_cell(t, show_age(s->client, json_at(s->client, item, "/at")));
        table_cell(t, json_at(s->client, item, "/kind"));
        table_cell(t, who.len > 0 ? who : STR("-"));
        table_cell(t, event_text(s->client, yyjson_obj_get(item, "entry")));
    }
    bool good = t && table_print(t, stdout);
    table_free(t);
    return good;
}

exit_status events_print(client *c, const event_subject *subject)
{
    yyjson_val *info = NULL;
    exit_status status = client_call(c, "GET", STR("/api/v1/info"), (str){NULL, 0}, &info);
    if (status != STATUS_DONE)
        return status;
    int64_t last = yyjson_get_sint(yyjson_obj_get(info, "sequence"));
    int64_t after = last > EVENTS_SEARCHED ? last - EVENTS_SEARCHED : 0;
    str path = arena_printf(client_arena(c), "/api/v1/journal?after=%lld", (long long)after);
    search s = {.client = c, .subject = subject};
    status = client_list(c, path, EVENTS_SEARCHED, look, &s);
    if (status == STATUS_DONE && s.no_memory)
        status = fail("memory ran out");
    if (status == STATUS_DONE && s.found.len == 0)
        printf("\nEvents: none among the last %d entries of the journal\n", EVENTS_SEARCHED);
    else if (status == STATUS_DONE) {
        printf("\nEvents:\n");
        status = print_found(&s) ? STATUS_DONE : STATUS_NO;
    }
    vec_done(&s.found);
    return status;
}
