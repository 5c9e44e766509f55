/* SPDX-License-Identifier: Apache-2.0 */
/* Documents of the five kinds: list, get, put, delete; apply of many; publishing a version. */
#include "base/mem.h"
#include "base/num.h"
#include "server/api.h"
#include "server/api_shapes.h"

#define VERSION_NAME_BYTES LIMIT_NAME_BYTES

static str kind_text(const call *c)
{
    return str_of(object_kind_text(c->operation->kind));
}

/* What is stored has no resourceVersion; what is shown has. */
static void write_document(buf *out, const stored_document *d)
{
    static const char key[] = "\"metadata\":{";
    size_t at = str_find(d->json, STR("\"metadata\":{"));
    if (at == SIZE_MAX) {
        buf_add(out, d->json);
        return;
    }
    at += sizeof key - 1;
    buf_add(out, str_part(d->json, 0, at));
    buf_addf(out, "\"resourceVersion\":\"%lld\",", (long long)d->version);
    buf_add(out, str_part(d->json, at, d->json.len));
}

static void tag(call *c, int64_t version_number)
{
    http_field_add(c->reply, "ETag",
                   arena_printf(c->request->arena, "\"%lld\"", (long long)version_number));
}

/* ---- list and get ---- */

typedef struct listing {
    call *call;
    page_writer page;
    const selector *selector;
    str last;
    bool more;
} listing;

static bool list_one(void *context, const stored_document *d)
{
    listing *l = context;
    call *c = l->call;
    const object *o =
        l->selector ? control_object(c->api->control, c->operation->kind, d->name) : NULL;
    if (l->selector && (!o || !selector_match(l->selector, o->metadata->labels)))
        return true;
    if (!api_next(c, &l->page)) {
        l->more = true;
        return false;
    }
    write_document(api_out(c), d);
    l->last = arena_str(c->request->arena, d->name);
    return true;
}

void run_document_list(call *c)
{
    err error;
    listing l = {.call = c};
    str text = api_text(c, "selector");
    if (text.len > 0) {
        l.selector = selector_parse(c->request->arena, text, &error);
        if (!l.selector) {
            api_fail(c, 400, NULL, "parameter selector: %s", error.text);
            return;
        }
    }
    api_page(c, &l.page);
    store *s = control_store(c->api->control);
    if (!store_documents(s,
                         (document_key){kind_text(c), l.page.after.ptr ? l.page.after : STR_EMPTY},
                         list_one, &l, &error))
        api_error(c, &error);
    else
        api_page_end(c, &l.page, l.more ? l.last : STR_EMPTY);
}

/* From memory, which is several times as fast as the store; it is written as it was stored. */
static bool show_held(call *c, str name)
{
    int64_t version_number;
    const object *o =
        control_held(c->api->control, (document_key){kind_text(c), name}, &version_number);
    if (!o)
        return false;
    scoped(buf_done) buf json = BUF(LIMIT_TEXT_BYTES);
    object_write(o, &json);
    if (json.failed)
        return false;
    buf_clear(api_out(c));
    write_document(api_out(c),
                   &(stored_document){.version = version_number, .json = buf_str(&json)});
    buf_addc(api_out(c), '\n');
    tag(c, version_number);
    return true;
}

static bool show(call *c, str name)
{
    stored_document d;
    err error = {.text = ""};
    if (show_held(c, name))
        return true;
    store *s = control_store(c->api->control);
    if (!store_get_document(s, (document_key){kind_text(c), name}, c->request->arena, &d, &error)) {
        if (error.text[0])
            api_error(c, &error);
        else
            api_fail(c, 404, NULL, "there is no %s \"%s\"", object_kind_text(c->operation->kind),
                     str_shown(name).text);
        return false;
    }
    buf_clear(api_out(c));
    write_document(api_out(c), &d);
    buf_addc(api_out(c), '\n');
    tag(c, d.version);
    return true;
}

void run_document_get(call *c)
{
    show(c, c->arguments[0]);
}

/* ---- If-Match ---- */

static bool match_good(str match, int64_t *ret)
{
    if (str_eq(match, STR("*")))
        return true;
    if (match.len >= 2 && match.ptr[0] == '"' && match.ptr[match.len - 1] == '"')
        match = str_part(match, 1, match.len - 2);
    return num_parse(match, ret) && *ret > 0;
}

/* "12", 12 or *; If-None-Match: * asks that it be new. */
static bool expectation(call *c, int64_t *ret)
{
    str match = http_header(c->request, "If-Match");
    str none = http_header(c->request, "If-None-Match");
    *ret = APPLY_ANY;
    if (none.ptr && !str_eq(str_trim(none), STR("*"))) {
        api_fail(c, 400, NULL, "If-None-Match: found \"%s\", allowed *", str_shown(none).text);
        return false;
    }
    if (match.ptr && !match_good(str_trim(match), ret)) {
        api_fail(c, 400, NULL, "If-Match: found \"%s\", allowed a resourceVersion",
                 str_shown(match).text);
        return false;
    }
    if (none.ptr)
        *ret = 0;
    return true;
}

static void stale(call *c)
{
    api_fail(c, 412, NULL, "it has changed since: its resourceVersion is another");
}

/* ---- put ---- */

/* One document, of this kind and name. */
static bool body_fits(call *c, problems *found)
{
    document_set *set = document_set_new();
    if (!set)
        return problems_memory(found);
    bool good = documents_read(set, STR("body"), c->request->body, found);
    if (good && documents_count(set) != 1) {
        problems_addf(found, &(problem){.severity = SEVERITY_ERROR},
                      "found %zu documents, allowed one", documents_count(set));
    } else if (good) {
        const document *d = documents_at(set, 0);
        if (!str_eq(d->kind, kind_text(c)))
            problems_addf(found, &(problem){.severity = SEVERITY_ERROR, .path = STR("kind")},
                          "found \"%s\", allowed %s", str_shown(d->kind).text,
                          object_kind_text(c->operation->kind));
        else if (!str_eq(d->name, c->arguments[0]))
            problems_addf(found,
                          &(problem){.severity = SEVERITY_ERROR, .path = STR("metadata.name")},
                          "found \"%s\", allowed the name in the path, \"%s\"",
                          str_shown(d->name).text, str_shown(c->arguments[0]).text);
    }
    document_set_free(set);
    return problems_errors(found) == 0;
}

/* Runs an apply and shows what was wrong. True if it was done. */
static bool apply_bytes(call *c, apply_request request, apply_answer *answer, problems *found)
{
    err error = {.text = ""};
    *answer = (apply_answer){.arena = c->request->arena, .found = found};
    request.who = c->caller.name;
    if (control_apply(c->api->control, &request, c->now_ms, answer, &error))
        return true;
    if (answer->conflict)
        stale(c);
    else if (problems_errors(found) > 0 && !request.partial)
        api_problems(c, 422, found);
    else if (problems_errors(found) == 0)
        api_error(c, &error);
    return problems_errors(found) > 0 && request.partial && !answer->conflict;
}

static void put_document(call *c, problems *found)
{
    apply_answer answer;
    apply_request request = {.file = STR("body"), .bytes = c->request->body};
    if (!expectation(c, &request.expected))
        return;
    if (!body_fits(c, found)) {
        api_problems(c, 422, found);
        return;
    }
    if (!apply_bytes(c, request, &answer, found))
        return;
    bool created = answer.count == 1 && answer.results[0].action == APPLY_CREATED;
    if (show(c, c->arguments[0]))
        c->reply->status = created ? 201 : 200;
}

void run_document_put(call *c)
{
    problems *found = problems_new();
    if (found)
        put_document(c, found);
    else
        api_fail(c, 503, NULL, "memory ran out");
    problems_free(found);
}

void run_document_delete(call *c)
{
    err error;
    delete_answer answer;
    delete_request request = {.who = c->caller.name, .kind = kind_text(c), .name = c->arguments[0]};
    if (!expectation(c, &request.expected))
        return;
    if (control_delete(c->api->control, &request, c->now_ms, &answer, &error))
        api_answer(c, &(result_output){
                          .kind = request.kind, .name = request.name, .action = STR("deleted")});
    else if (answer.missing)
        api_fail(c, 404, NULL, "%s", error.text);
    else if (answer.conflict)
        stale(c);
    else
        api_error(c, &error);
}

/* ---- apply ---- */

static result_output result_of(call *c, const apply_result *r)
{
    return (result_output){
        .kind = r->kind,
        .name = r->name,
        .action = apply_action_name(r->action),
        .resource_version = r->version == 0
                                ? STR_EMPTY
                                : arena_printf(c->request->arena, "%lld", (long long)r->version)};
}

static void answer_apply(call *c, const apply_answer *answer, const problems *found)
{
    arena *a = c->request->arena;
    size_t problem_count = problems_count(found);
    apply_output out = {
        .results = {ARENA_ARRAY(a, answer->count + 1, result_output), answer->count},
        .problems = {ARENA_ARRAY(a, problem_count + 1, problem_output), problem_count}};
    if (!out.results.at || !out.problems.at) {
        api_fail(c, 503, NULL, "memory ran out");
        return;
    }
    for (size_t i = 0; i < answer->count; i++)
        out.results.at[i] = result_of(c, &answer->results[i]);
    for (size_t i = 0; i < problem_count; i++) {
        const problem *p = problems_at(found, i);
        out.problems.at[i] = (problem_output){.severity = str_of(severity_text(p->severity)),
                                              .document = p->document,
                                              .path = p->path,
                                              .message = p->message,
                                              .line = p->line};
    }
    api_answer(c, &out);
}

void run_apply(call *c)
{
    problems *found = problems_new();
    apply_answer answer;
    apply_request request = {.file = STR("body"),
                             .bytes = c->request->body,
                             .partial = api_flag(c, "partial"),
                             .dry_run = api_flag(c, "dryRun"),
                             .expected = APPLY_ANY};
    if (!found)
        api_fail(c, 503, NULL, "memory ran out");
    else if (!apply_bytes(c, request, &answer, found))
        ; /* the refusal is written */
    else if (answer.count == 0 && problems_errors(found) > 0)
        api_problems(c, 422, found); /* not even in part */
    else if (answer.count == 0)
        api_fail(c, 422, NULL, "found no document, allowed one or more");
    else
        answer_apply(c, &answer, found);
    problems_free(found);
}

/* ---- publish ---- */

/* "web", "1.2.3+Build" to "web-1.2.3-build": a name as documents have them. */
static str version_name(call *c, str deployment_name, str tag_text)
{
    char text[VERSION_NAME_BYTES + 1];
    int len = snprintf(text, sizeof text, "%.*s-%.*s", STR_ARG(deployment_name), STR_ARG(tag_text));
    size_t end = len < 0 || (size_t)len >= sizeof text ? sizeof text - 1 : (size_t)len;
    for (size_t i = 0; i < end; i++) {
        char ch = text[i];
        bool upper = ch >= 'A' && ch <= 'Z';
        bool good = (ch >= 'a' && ch <= 'z') || (ch >= '0' && ch <= '9') || ch == '-' || ch == '.';
        text[i] = upper ? (char)(ch + 32) : good ? ch : '-';
    }
    while (end > 1 && (text[end - 1] == '-' || text[end - 1] == '.'))
        end--;
    return arena_str(c->request->arena, (str){text, end});
}

static void write_map(buf *out, const char *key, const label_set *map)
{
    if (map->len > 0)
        buf_addf(out, ",\"%s\":{", key);
    for (size_t i = 0; i < map->len; i++) {
        buf_addz(out, i == 0 ? "" : ",");
        buf_add_json(out, map->at[i].key);
        buf_addc(out, ':');
        buf_add_json(out, map->at[i].value);
    }
    if (map->len > 0)
        buf_addc(out, '}');
}

static void write_needs(buf *out, const struct version_spec *spec)
{
    for (size_t i = 0; i < spec->depends_on.len; i++) {
        buf_addz(out, i == 0 ? ",\"dependsOn\":[" : ",");
        buf_addz(out, "{\"deployment\":");
        buf_add_json(out, spec->depends_on.at[i].deployment);
        buf_addz(out, ",\"versionSelector\":");
        buf_add_json(out, spec->depends_on.at[i].version_selector.source);
        buf_addc(out, '}');
    }
    if (spec->depends_on.len > 0)
        buf_addc(out, ']');
}

/* What is not said of a version that is there already stays as it is, but for its status. */
static void write_version(call *c, str name, const version *was, buf *out)
{
    static const version nothing;
    const publish_input *in = c->input;
    was = was ? was : &nothing;
    buf_addz(out,
             "{\"apiVersion\":\"" API_DROVER "\",\"kind\":\"Version\",\"metadata\":{\"name\":");
    buf_add_json(out, name);
    write_map(out, "labels", in->labels.len > 0 ? &in->labels : &was->metadata.labels);
    write_map(out, "annotations", &was->metadata.annotations);
    buf_addz(out, "},\"spec\":{\"deployment\":");
    buf_add_json(out, c->arguments[0]);
    buf_addz(out, ",\"tag\":");
    buf_add_json(out, in->tag);
    if (in->status.len > 0) {
        buf_addz(out, ",\"status\":");
        buf_add_json(out, in->status);
    }
    if (in->config || was->spec.config) {
        buf_addz(out, ",\"config\":");
        json_write(out, in->config ? in->config : was->spec.config);
    }
    if (in->depends_on) {
        buf_addz(out, ",\"dependsOn\":");
        json_write(out, in->depends_on);
    } else {
        write_needs(out, &was->spec);
    }
    buf_addz(out, "}}");
}

/* The same tag again is the same version; another tag that makes the same name is refused. */
static bool name_free(call *c, str name, const object **ret_was)
{
    const publish_input *in = c->input;
    const object *o = control_object(c->api->control, KIND_VERSION, name);
    *ret_was = o;
    if (!o || (str_eq(o->version->spec.tag, in->tag) &&
               str_eq(o->version->spec.deployment, c->arguments[0])))
        return true;
    api_fail(c, 409, NULL, "the Version \"%s\" is %s of %s; give this one another name",
             str_shown(name).text, str_shown(o->version->spec.tag).text,
             str_shown(o->version->spec.deployment).text);
    return false;
}

static void publish(call *c, problems *found)
{
    const publish_input *in = c->input;
    apply_answer answer;
    scoped(buf_done) buf text = BUF(HTTP_BODY_BYTES_MAX);
    str name = in->name.len > 0 ? in->name : version_name(c, c->arguments[0], in->tag);
    if (!control_object(c->api->control, KIND_DEPLOYMENT, c->arguments[0])) {
        api_fail(c, 404, NULL, "there is no Deployment \"%s\"", str_shown(c->arguments[0]).text);
        return;
    }
    const object *was;
    if (!name_free(c, name, &was))
        return;
    write_version(c, name, was ? was->version : NULL, &text);
    if (!name.ptr || text.failed) {
        api_fail(c, 503, NULL, "memory ran out");
        return;
    }
    apply_request request = {.file = STR("body"), .bytes = buf_str(&text), .expected = APPLY_ANY};
    if (!apply_bytes(c, request, &answer, found))
        return;
    result_output out = result_of(c, &answer.results[0]);
    if (answer.results[0].action != APPLY_CREATED)
        c->reply->status = 200;
    api_answer(c, &out);
}

void run_publish(call *c)
{
    problems *found = problems_new();
    if (found)
        publish(c, found);
    else
        api_fail(c, 503, NULL, "memory ran out");
    problems_free(found);
}
