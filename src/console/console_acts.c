/* SPDX-License-Identifier: Apache-2.0 */
/* What a viewer asks for, with their own token: the same patches as `kubectl skyhook` sends.
 * Whether they may, the API server decides. */
#include "base/limits.h"
#include "base/mem.h"
#include "console/console_internal.h"
#include "model/document.h"
#include "operator/act_request.h"
#include "operator/object_names.h"

#define ACT_TRIES 5

static const struct {
    const char *act, *note, *value; /* annotation; value as JSON */
} switches[] = {
    {"pause", KEY_PREFIX "pause", "\"true\""},
    {"resume", KEY_PREFIX "pause", "null"},
    {"disable", KEY_PREFIX "disable", "\"true\""},
    {"enable", KEY_PREFIX "disable", "null"},
};

static str text_of(yyjson_val *json, const char *key)
{
    yyjson_val *v = yyjson_obj_get(json, key);
    return yyjson_is_str(v) ? (str){yyjson_get_str(v), yyjson_get_len(v)} : STR_EMPTY;
}

/* An annotation that says how it shall be, whatever else changed. */
static bool put_switch(str act, buf *body)
{
    for (size_t i = 0; i < sizeof switches / sizeof switches[0]; i++) {
        if (!str_eq(act, str_of(switches[i].act)))
            continue;
        buf_addf(body, "{\"metadata\":{\"annotations\":{\"%s\":%s}}}", switches[i].note,
                 switches[i].value);
        return true;
    }
    return false;
}

/* One more wish in the list of the Skyhook, if nobody changed it meanwhile. */
static bool put_request(const errand *e, const kept_object *o, buf *body, err *error)
{
    scoped(buf_done) buf list = BUF(LIMIT_DOCUMENT_BYTES);
    fact_act act = {.act = ACT_RETRY, .target = e->target, .who = str_of(e->asking->viewer.name)};
    if (!act_request_add(&list, o->acts ? str_of(o->acts) : STR_EMPTY, ACT_OF_SKYHOOK, &act, error))
        return false;
    buf_addz(body, "{\"metadata\":{\"annotations\":{\"" KEY_ACTS "\":");
    buf_add_json(body, buf_str(&list));
    buf_addz(body, "}}}");
    return true;
}

static bool send_patch(errand *e, const kube_write *w, err *error)
{
    scoped(buf_done) buf path = BUF(LIMIT_PATH_BYTES);
    scoped(buf_done) buf body = BUF(WRITE_BODY_BYTES_MAX);
    if (!write_check(w, error))
        return false;
    if (!write_path(w, &path) || !write_body(w, &body))
        return err_memory(error);
    e->count = 0;
    return errand_send(e,
                       &(exchange_request){.method = write_method(w->verb),
                                           .content_type = write_content_type(w->verb),
                                           .path = buf_str(&path),
                                           .body = buf_str(&body)},
                       error);
}

static bool attempt(errand *e, err *error)
{
    scoped(buf_done) buf body = BUF(LIMIT_DOCUMENT_BYTES);
    const kept_object *o = kept_find(&e->console->kept, SHELL_SKYHOOK, e->change);
    kube_write w = {.verb = WRITE_MERGE, .collection = STR(CONSOLE_SKYHOOKS), .name = e->change};
    if (!o)
        return err_set(error, "there is no Skyhook \"%s\"", str_shown(e->change).text);
    if (put_switch(e->act, &body)) {
        w.anyhow = true;
    } else {
        if (!put_request(e, o, &body, error))
            return false;
        w.version = str_of(o->version);
    }
    snprintf(e->version, sizeof e->version, "%s", o->version);
    w.body = buf_str(&body);
    e->tries++;
    return !body.failed ? send_patch(e, &w, error) : err_memory(error);
}

static int status_of(const write_outcome *how)
{
    switch (how->kind) {
    case WRITE_DONE: return 200;
    case WRITE_EXISTS:
    case WRITE_CONFLICT: return 409;
    case WRITE_GONE: return 404;
    case WRITE_BLOCKED:
    case WRITE_REFUSED: return how->status >= 400 && how->status < 500 ? how->status : 422;
    case WRITE_LATER:
    case WRITE_AMBIGUOUS:
    case WRITE_BARRED: return 503;
    }
    return 503;
}

static void note_act(const errand *e)
{
    scoped(buf_done) buf text = BUF(LIMIT_DOCUMENT_BYTES);
    const str values[] = {e->change, e->target, e->reason};
    static const char *const keys[] = {"change", "target", "reason"};
    buf_addz(&text, "{\"fact\":\"act\",\"act\":");
    buf_add_json(&text, e->act);
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        if (values[i].len == 0)
            continue;
        buf_addf(&text, ",\"%s\":", keys[i]);
        buf_add_json(&text, values[i]);
    }
    buf_addc(&text, '}');
    console_note(e->console, "fact", str_of(e->asking->viewer.name), buf_str(&text));
}

static void settle(errand *e, const write_outcome *how)
{
    asking *a = e->asking;
    if (how->kind == WRITE_DONE) {
        note_act(e);
        buf_addz(&a->reply->body, "{\"act\":");
        buf_add_json(&a->reply->body, e->act);
        buf_addf(&a->reply->body, ",\"sequence\":%lld}\n", (long long)e->console->sequence);
        return;
    }
    if (how->status == 401)
        viewer_forget(e->console, a->token);
    console_fail(a, status_of(how), "%s", how->message);
}

/* Somebody was faster: as soon as that is seen here it is tried again. */
static bool try_again(errand *e, const write_outcome *how)
{
    err error;
    const kept_object *o = kept_find(&e->console->kept, SHELL_SKYHOOK, e->change);
    if (how->kind != WRITE_CONFLICT || e->tries >= ACT_TRIES || !o)
        return false;
    return strcmp(o->version, e->version) == 0 || attempt(e, &error);
}

static bool step(void *context, http_reply *r)
{
    errand *e = context;
    errand_answer *got = &e->answers[0];
    if (e->pending > 0)
        return false;
    write_answer answer = {.result = got->result,
                           .problem = str_of(got->problem),
                           .status = got->status,
                           .body = errand_json(e, 0)};
    write_outcome how = write_judge(WRITE_MERGE, &answer);
    if (try_again(e, &how))
        return false;
    e->asking->reply = r;
    settle(e, &how);
    errand_over(e);
    return true;
}

static bool known(str act)
{
    scoped(buf_done) buf unused = BUF(LIMIT_DOCUMENT_BYTES);
    return put_switch(act, &unused) || str_eq(act, STR("retry"));
}

void answer_act(asking *a)
{
    err error;
    yyjson_val *body = json_parse(a->request->arena, a->request->body, NULL);
    if (!known(a->name)) {
        console_fail(a, 404, "an operator has no act \"%s\"", str_shown(a->name).text);
        return;
    }
    if (a->token.len == 0) {
        http_field_add(a->reply, "WWW-Authenticate", STR("Bearer"));
        console_fail(a, 401, "acts need your own Kubernetes token");
        return;
    }
    str change = text_of(body, "deployment");
    if (!yyjson_is_obj(body) || !kept_find(&a->console->kept, SHELL_SKYHOOK, change)) {
        console_fail(a, 404, "there is no Skyhook \"%s\"", str_shown(change).text);
        return;
    }
    errand *e = errand_new(a, step);
    if (!e)
        return;
    e->act = a->name;
    e->change = change;
    e->target = text_of(body, "resource");
    e->reason = text_of(body, "reason");
    if (attempt(e, &error))
        return;
    a->reply->later = (http_later){.step = NULL};
    console_fail(a, 503, "%s", error.text);
    errand_over(e);
}
