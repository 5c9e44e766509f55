/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens, and the link that opens the dashboard. */
#include <openssl/crypto.h>

#include "base/num.h"
#include "server/api.h"
#include "server/api_shapes.h"

static const char *const role_names[] = {
#define X(name, text) [TOKEN_##name] = (text),
    TOKEN_ROLES(X)
#undef X
};

typedef struct token_listing {
    call *call;
    page_writer page;
    int64_t skip, seen;
    bool more;
} token_listing;

static bool list_token(void *context, const stored_token *t)
{
    token_listing *l = context;
    if (l->seen++ < l->skip)
        return true;
    if (!api_next(l->call, &l->page)) {
        l->more = true;
        return false;
    }
    token_output out = {.name = t->name,
                        .role = t->role,
                        .selector = t->selector,
                        .created_at = api_moment(t->created_ms),
                        .revoked_at = api_moment(t->revoked_ms)};
    shape_write(&token_output_shape, &out, api_out(l->call), 0);
    return true;
}

void run_token_list(call *c)
{
    err error;
    token_listing l = {.call = c, .skip = api_number(c, "continue", 0)};
    api_page(c, &l.page);
    if (!store_tokens(control_store(c->api->control), list_token, &l, &error)) {
        api_error(c, &error);
        return;
    }
    str last = l.more ? arena_printf(c->request->arena, "%lld", (long long)(l.skip + l.page.count))
                      : STR_EMPTY;
    api_page_end(c, &l.page, last);
}

typedef struct name_search {
    str name;
    bool found;
} name_search;

static bool look_for_name(void *context, const stored_token *t)
{
    name_search *s = context;
    s->found = s->found || str_eq(s->name, t->name);
    return !s->found;
}

static bool wish_good(call *c, const token_input *in)
{
    err error;
    name_search search = {.name = in->name};
    if (!label_value_check(in->name, &error)) {
        api_fail(c, 422, NULL, "name: %s", error.text);
        return false;
    }
    if (in->role != TOKEN_WORKER && in->selector.len > 0) {
        api_fail(c, 422, NULL, "selector: only workers have one");
        return false;
    }
    if (in->role == TOKEN_WORKER && !selector_parse(c->request->arena, in->selector, &error)) {
        api_fail(c, 422, NULL, "selector: %s", error.text);
        return false;
    }
    if (!store_tokens(control_store(c->api->control), look_for_name, &search, &error)) {
        api_error(c, &error);
        return false;
    }
    if (search.found)
        api_fail(c, 409, NULL, "a token named \"%s\" exists already, or did",
                 str_shown(in->name).text);
    return !search.found;
}

/* On disk at once, with the entry of the journal about it: a token in memory that is not in the
 * store would be one too many. */
static bool keep_change(call *c, const token_change *change)
{
    err error;
    if (control_token(c->api->control, change, c->now_ms, &error) && api_settle(c->api, &error))
        return true;
    api_error(c, &error);
    return false;
}

void run_token_create(call *c)
{
    const token_input *in = c->input;
    char token[AUTH_TOKEN_BYTES];
    err error;
    stored_token row = {
        .name = in->name, .role = str_of(role_names[in->role]), .selector = in->selector};
    if (!wish_good(c, in))
        return;
    str entry = arena_printf(c->request->arena,
                             "{\"audit\":\"tokenCreated\",\"token\":\"%.*s\",\"role\":\"%s\"}",
                             STR_ARG(in->name), role_names[in->role]);
    if (!entry.ptr || !auth_create(c->api->auth, &row, c->now_ms, token, &error)) {
        api_fail(c, 503, NULL, "%s", entry.ptr ? error.text : "memory ran out");
        return;
    }
    bool kept = keep_change(c, &(token_change){.who = c->caller.name, .json = entry, .made = &row});
    auth_confirm(c->api->auth, row.name, kept);
    if (kept)
        api_answer(c, &(token_output){.name = row.name,
                                      .role = row.role,
                                      .selector = row.selector,
                                      .created_at = api_moment(c->now_ms),
                                      .token = str_of(token)});
    OPENSSL_cleanse(token, sizeof token);
}

void run_token_revoke(call *c)
{
    err error;
    str name = c->arguments[0];
    bool good = label_value_check(name, &error);
    if (!good || !auth_in_force(c->api->auth, name)) {
        api_fail(c, 404, NULL,
                 good ? "there is no token \"%s\" in force" : "there is no token \"%s\"",
                 str_shown(name).text);
        return;
    }
    str entry = arena_printf(c->request->arena, "{\"audit\":\"tokenRevoked\",\"token\":\"%.*s\"}",
                             STR_ARG(name));
    if (!entry.ptr) {
        api_fail(c, 503, NULL, "memory ran out");
        return;
    }
    if (!keep_change(c, &(token_change){.who = c->caller.name, .json = entry, .revoked = name}))
        return;
    auth_revoke(c->api->auth, name, c->now_ms);
    api_answer(c, &(result_output){.kind = STR("Token"), .name = name, .action = STR("deleted")});
}

void run_link_create(call *c)
{
    char code[AUTH_TOKEN_BYTES];
    err error;
    if (!auth_link(c->api->auth, &c->caller, c->now_ms, code, &error)) {
        api_error(c, &error);
        return;
    }
    /* In the fragment: it reaches no log and no other server. */
    api_answer(c, &(link_output){.path = arena_printf(c->request->arena, "/#code=%s", code),
                                 .valid_until = api_moment(c->now_ms + AUTH_LINK_MS)});
}

void run_login(call *c)
{
    const login_input *in = c->input;
    char token[AUTH_TOKEN_BYTES];
    err error;
    if (!auth_login(c->api->auth, in->code, c->now_ms, token, &error)) {
        api_fail(c, 401, NULL, "%s", error.text);
        return;
    }
    api_answer(c, &(login_output){.token = str_of(token),
                                  .valid_until = api_moment(c->now_ms + AUTH_SESSION_MS)});
    OPENSSL_cleanse(token, sizeof token);
}
