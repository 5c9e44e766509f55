/* SPDX-License-Identifier: Apache-2.0 */
#include "server/api.h"

#include <assert.h>
#include <openssl/evp.h>
#include <stdarg.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/num.h"
#include "server/api_shapes.h"
#include "server/clock.h"
#include "server/dashboard.h"
#include "server/refusal.h"

#define BASIC_BYTES_MAX 512

/* ---- refusals ---- */

/* FleetLock's clients look for "kind" and "value" beside. */
static void add_fleet_form(buf *out, const char *code, str message)
{
    if (out->failed)
        return;
    out->len -= strlen("}\n");
    buf_addf(out, ",\"kind\":\"%s\",\"value\":", code);
    buf_add_json(out, message);
    buf_addz(out, "}\n");
}

void api_fail(call *c, int status, const char *code, const char *format, ...)
{
    char text[LIMIT_ERR_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    code = code ? code : refusal_code(status);
    refusal_write(c->reply, status, code, str_of(text), STR_EMPTY);
    if (c->operation && c->operation->fleet_lock)
        add_fleet_form(&c->reply->body, code, str_of(text));
}

void api_error(call *c, const err *error)
{
    api_fail(c, 500, NULL, "%s", error->text);
}

void api_problems(call *c, int status, const problems *found)
{
    const problem *first = NULL;
    for (size_t i = 0; i < problems_count(found) && !first; i++)
        if (problems_at(found, i)->severity == SEVERITY_ERROR)
            first = problems_at(found, i);
    refusal_write(c->reply, status, NULL, first ? first->message : STR("memory ran out"),
                  first ? first->path : STR_EMPTY);
    buf *out = api_out(c);
    if (out->failed)
        return;
    out->len -= strlen("}}\n");
    buf_addz(out, ",\"problems\":[");
    for (size_t i = 0; i < problems_count(found); i++) {
        buf_addz(out, i > 0 ? "," : "");
        problem_json(problems_at(found, i), out);
    }
    buf_addz(out, "]}}\n");
}

/* ---- answers ---- */

void api_answer(call *c, const void *typed)
{
    assert(c->operation->answer.shape);
    buf_clear(api_out(c));
    shape_write(c->operation->answer.shape, typed, api_out(c), 0);
    buf_addc(api_out(c), '\n');
}

bool api_page(call *c, page_writer *p)
{
    *p = (page_writer){.limit = api_number(c, "limit", PAGE_ITEMS_DEFAULT),
                       .after = uri_find(&c->request->uri, "continue")};
    buf_addz(api_out(c), "{\"items\":[");
    return true;
}

bool api_next(call *c, page_writer *p)
{
    if (p->count >= p->limit)
        return false;
    buf_addz(api_out(c), p->count++ > 0 ? ",\n" : "\n");
    return true;
}

void api_page_end(call *c, page_writer *p, str last)
{
    buf_addz(api_out(c), p->count > 0 ? "\n]" : "]");
    if (last.len > 0) {
        buf_addz(api_out(c), ",\"continue\":");
        buf_add_json(api_out(c), last);
    }
    buf_addz(api_out(c), "}\n");
}

/* ---- what operations ask ---- */

str api_text(const call *c, const char *name)
{
    str value = uri_find(&c->request->uri, name);
    return value.ptr ? value : STR_EMPTY;
}

bool api_flag(const call *c, const char *name)
{
    str value = uri_find(&c->request->uri, name);
    return value.ptr && (value.len == 0 || str_eq(value, STR("true")));
}

int64_t api_number(const call *c, const char *name, int64_t otherwise)
{
    int64_t value;
    str text = uri_find(&c->request->uri, name);
    return text.ptr && num_parse(text, &value) ? value : otherwise;
}

opt_moment api_moment(int64_t ms)
{
    int64_t rest = ((ms % 1000) + 1000) % 1000;
    return (opt_moment){.set = ms != 0,
                        .at = {.seconds = (ms - rest) / 1000, .nanos = (int32_t)(rest * 1000000)}};
}

bool api_may_work(const call *c, str resource_name)
{
    err ignored;
    if (c->caller.level != ACCESS_WORKER)
        return true;
    const object *o = control_object(c->api->control, KIND_RESOURCE, resource_name);
    const selector *s = selector_parse(c->request->arena, c->caller.selector, &ignored);
    return o && s && selector_match(s, o->metadata->labels);
}

bool api_audit(call *c, const char *format, ...)
{
    char text[LIMIT_ERR_BYTES];
    va_list args;
    err error;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (control_note(c->api->control, c->caller.name, str_of(text), c->now_ms, &error))
        return true;
    api_error(c, &error);
    return false;
}

bool api_settle(api *a, err *error)
{
    if (control_settle(a->control, error))
        return true;
    log_line(LOG_ERROR, "%s", error->text);
    a->lost = *error;
    return false;
}

/* ---- who asks ---- */

/* FleetLock's clients know only user and password: the password is the token. */
static str basic_token(arena *a, str encoded)
{
    if (encoded.len == 0 || encoded.len > BASIC_BYTES_MAX || encoded.len % 4 != 0)
        return STR_EMPTY;
    unsigned char *plain = arena_alloc(a, encoded.len);
    int len =
        plain ? EVP_DecodeBlock(plain, (const unsigned char *)encoded.ptr, (int)encoded.len) : -1;
    if (len < 0)
        return STR_EMPTY;
    str text = {(char *)plain, strnlen((char *)plain, (size_t)len)};
    str_cut(&text, ':');
    return text.ptr ? text : STR_EMPTY;
}

static str token_of(const http_request *q)
{
    str value = http_header(q, "Authorization");
    if (value.ptr && str_starts(value, STR("Bearer ")))
        return str_trim(str_part(value, strlen("Bearer "), value.len));
    if (value.ptr && str_starts(value, STR("Basic ")))
        return basic_token(q->arena, str_trim(str_part(value, strlen("Basic "), value.len)));
    return STR_EMPTY;
}

static bool rate_kept(call *c, bool known)
{
    api *a = c->api;
    if (auth_rate(a->auth, known ? c->caller.name : c->request->client, !known, c->now_ms))
        return true;
    a->refused_rate++;
    http_field_add(c->reply, "Retry-After", STR("1"));
    api_fail(c, 429, NULL, "too many requests; try again in a second");
    return false;
}

static bool identify(call *c, bool open)
{
    str token = token_of(c->request);
    bool known = token.len > 0 && auth_find(c->api->auth, token, c->now_ms, &c->caller);
    if (known) {
        c->caller.name = arena_str(c->request->arena, c->caller.name);
        c->caller.selector = arena_str(c->request->arena, c->caller.selector);
        known = c->caller.name.ptr && c->caller.selector.ptr;
    }
    if (!rate_kept(c, known))
        return false;
    if (known || open)
        return true;
    http_field_add(c->reply, "WWW-Authenticate", STR("Bearer"));
    api_fail(c, 401, NULL,
             token.len > 0 ? "this token is not known, or was revoked"
                           : "a token is needed: Authorization: Bearer TOKEN");
    return false;
}

static bool may(const call *c)
{
    const operation *o = c->operation;
    if (o->level == ACCESS_NONE)
        return true;
    if (c->caller.level == ACCESS_WORKER)
        return o->worker;
    return c->caller.level >= o->level;
}

/* ---- parameters ---- */

static const parameter *parameter_of(const operation *o, str name)
{
    for (const parameter *p = o->parameters; p && p->name; p++)
        if (str_eq(str_of(p->name), name))
            return p;
    return NULL;
}

static bool word_good(call *c, const parameter *p, str value)
{
    for (size_t i = 0; p->words[i]; i++)
        if (str_eq(str_of(p->words[i]), value))
            return true;
    scoped(buf_done) buf allowed = BUF(LIMIT_ERR_BYTES);
    for (size_t i = 0; p->words[i]; i++)
        buf_addf(&allowed, "%s%s", i > 0 ? ", " : "", p->words[i]);
    api_fail(c, 400, NULL, "parameter %s: found \"%s\", allowed %.*s", p->name,
             str_shown(value).text, STR_ARG(buf_str(&allowed)));
    return false;
}

static bool parameter_good(call *c, const uri_parameter *given)
{
    const parameter *p = parameter_of(c->operation, given->name);
    int64_t number;
    if (!p) {
        api_fail(c, 400, NULL, "found the parameter \"%s\", which this operation does not have",
                 str_shown(given->name).text);
        return false;
    }
    if (p->type == PARAMETER_NUMBER &&
        (!num_parse(given->value, &number) || number < p->min || number > p->max)) {
        api_fail(c, 400, NULL,
                 "parameter %s: found \"%s\", allowed a whole number from %lld to %lld", p->name,
                 str_shown(given->value).text, (long long)p->min, (long long)p->max);
        return false;
    }
    if (p->type == PARAMETER_FLAG && given->value.len > 0 && !str_eq(given->value, STR("true")) &&
        !str_eq(given->value, STR("false"))) {
        api_fail(c, 400, NULL, "parameter %s: found \"%s\", allowed true or false", p->name,
                 str_shown(given->value).text);
        return false;
    }
    return !p->words || word_good(c, p, given->value);
}

static bool parameters_good(call *c)
{
    const uri *u = &c->request->uri;
    for (size_t i = 0; i < u->parameter_count; i++)
        if (!parameter_good(c, &u->parameters[i]))
            return false;
    return true;
}

/* ---- bodies ---- */

static bool read_input(call *c, document_set *set, problems *found)
{
    const shape *s = c->operation->input.shape;
    bool good = documents_read_as(set, STR("body"), c->request->body, FORMAT_JSON, found);
    if (!good || documents_count(set) != 1) {
        if (problems_errors(found) == 0)
            problems_add(found, &(problem){.severity = SEVERITY_ERROR,
                                           .message = STR("found no or several JSON objects, "
                                                          "allowed one")});
        return false;
    }
    c->input = arena_alloc(c->request->arena, s->size);
    if (!c->input)
        return problems_memory(found);
    reader r = {.arena = c->request->arena, .found = found, .closed = true};
    place at = place_root(documents_at(set, 0));
    return shape_read(&r, s, &at, c->input);
}

static void run(call *c)
{
    c->operation->run(c);
}

static void run_with_input(call *c)
{
    problems *found = problems_new();
    document_set *set = document_set_new();
    bool good = found && set && read_input(c, set, found);
    if (good)
        run(c);
    else if (found)
        api_problems(c, 400, found);
    else
        api_fail(c, 503, NULL, "memory ran out");
    problems_free(found);
    document_set_free(set);
}

/* ---- the handler ---- */

static bool prepare(call *c)
{
    char allow[64];
    const uri *u = &c->request->uri;
    c->operation = route_find(u, c->request->method, c->arguments, allow);
    if (!identify(c, c->operation && c->operation->level == ACCESS_NONE))
        return false;
    if (!c->operation && allow[0]) {
        str methods = arena_str(c->request->arena, str_of(allow));
        http_field_add(c->reply, "Allow", methods.ptr ? methods : STR("GET"));
        api_fail(c, 405, NULL, "found %s, allowed %s", str_shown(c->request->method).text, allow);
        return false;
    }
    if (!c->operation) {
        api_fail(c, 404, NULL, "there is nothing at this path");
        return false;
    }
    if (!may(c)) {
        api_fail(c, 403, NULL, "the role %s may not do this; %s may", access_text(c->caller.level),
                 access_text(c->operation->level));
        return false;
    }
    bool takes_body = c->operation->input.name || c->operation->raw;
    if (c->request->has_body && !takes_body) {
        api_fail(c, 400, NULL, "this operation takes no body");
        return false;
    }
    return parameters_good(c);
}

static void count(api *a, const http_reply *r)
{
    if (r->status >= 100 && r->status < 600)
        a->answered[r->status / 100]++;
}

/* The dashboard's files are no operations: they need no token and take nothing. */
static void answer_file(call *c, const dashboard_file *f)
{
    str method = c->request->method;
    if (!rate_kept(c, false))
        return;
    if (str_eq(method, STR("GET")) || str_eq(method, STR("HEAD"))) {
        dashboard_answer(f, c->request, c->reply);
        return;
    }
    http_field_add(c->reply, "Allow", STR("GET, HEAD"));
    api_fail(c, 405, NULL, "found %s, allowed GET, HEAD", str_shown(method).text);
}

static bool admit(void *context, http_request *q, http_reply *r)
{
    api *a = context;
    const dashboard_file *file = dashboard_find(&q->uri);
    call *c = ARENA_NEW(q->arena, call);
    r->type = REFUSAL_TYPE;
    if (!c) {
        refusal_write(r, 503, "unavailable", STR("memory ran out"), STR_EMPTY);
        return false;
    }
    *c = (call){.api = a, .request = q, .reply = r, .now_ms = clock_ms()};
    q->attached = c;
    if (file)
        answer_file(c, file);
    else if (prepare(c))
        return true;
    count(a, r);
    return false;
}

static void handle(void *context, http_request *q, http_reply *r)
{
    api *a = context;
    call *c = q->attached;
    c->reply = r;
    c->now_ms = clock_ms();
    r->type = REFUSAL_TYPE;
    r->status = c->operation->status ? c->operation->status : 200;
    if (c->operation->input.shape && !c->operation->documents)
        run_with_input(c);
    else
        run(c);
    count(a, r);
}

static void refuse(void *context, http_reply *r, int status, const char *message)
{
    refusal_write(r, status, NULL, str_of(message), STR_EMPTY);
    count(context, r);
}

static bool unsettled(void *context)
{
    const api *a = context;
    return a->lost.text[0] != '\0' || control_unsettled(a->control);
}

static bool settle(void *context, err *error)
{
    api *a = context;
    bool good = api_settle(a, error);
    if (a->lost.text[0] != '\0') {
        *error = a->lost;
        a->lost.text[0] = '\0';
        good = false;
    }
    return good;
}

http_handler api_handler(api *a)
{
    return (http_handler){.context = a,
                          .admit = admit,
                          .handle = handle,
                          .refuse = refuse,
                          .unsettled = unsettled,
                          .settle = settle};
}
