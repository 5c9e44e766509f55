/* SPDX-License-Identifier: Apache-2.0 */
/* What a viewer asks for, with their own token: the same patches as `kubectl skyhook`, or `drover
 * pause --bundle`, sends. Whether they may, the API server decides. */
#include "base/limits.h"
#include "base/mem.h"
#include "console/console_internal.h"
#include "model/document.h"
#include "operator/act_request.h"
#include "operator/object_names.h"

#define ACT_TRIES 5

/* Only the name of a Bundle has a namespace. */
static bool of_bundle(str change)
{
    return str_find(change, STR("/")) != SIZE_MAX;
}

static const kept_object *kept_change(const console *c, str change)
{
    return kept_find(&c->kept, of_bundle(change) ? KEPT_BUNDLE : KEPT_SKYHOOK, change);
}

static act_owner owner_of(str change)
{
    return of_bundle(change) ? ACT_OF_BUNDLE : ACT_OF_SKYHOOK;
}

#define ANNOTATE(key, value) "{\"metadata\":{\"annotations\":{\"" KEY_PREFIX key "\":" value "}}}"

/* Those with a patch say how something shall be, whatever else changed. The others are asked of the
 * operator, in a list on the object. */
typedef struct console_act {
    act_owner owner;
    const char *word;
    const char *patch; /* JSON; NULL: it is asked of the operator */
    act_kind act;
} console_act;

static const console_act acts[] = {
    {ACT_OF_SKYHOOK, "pause", ANNOTATE("pause", "\"true\""), ACT_PAUSE},
    {ACT_OF_SKYHOOK, "resume", ANNOTATE("pause", "null"), ACT_RESUME},
    {ACT_OF_SKYHOOK, "disable", ANNOTATE("disable", "\"true\""), ACT_PAUSE},
    {ACT_OF_SKYHOOK, "enable", ANNOTATE("disable", "null"), ACT_RESUME},
    {ACT_OF_SKYHOOK, "retry", NULL, ACT_RETRY},
    {ACT_OF_BUNDLE, "pause", "{\"spec\":{\"paused\":true}}", ACT_PAUSE},
    {ACT_OF_BUNDLE, "resume", NULL, ACT_RESUME},
    {ACT_OF_BUNDLE, "approve", NULL, ACT_APPROVE},
};

static const console_act *find_act(act_owner owner, str word)
{
    for (size_t i = 0; i < sizeof acts / sizeof acts[0]; i++)
        if (acts[i].owner == owner && str_eq(word, str_of(acts[i].word)))
            return &acts[i];
    return NULL;
}

/* One more wish in the list of the object, if nobody changed it meanwhile. */
static bool put_request(const errand *e, const kept_object *o, act_kind kind, buf *body, err *error)
{
    scoped(buf_done) buf list = BUF(LIMIT_DOCUMENT_BYTES);
    act_owner owner = owner_of(e->change);
    fact_act act = {.act = kind,
                    .target = e->target,
                    .partition = e->partition,
                    .who = str_of(e->asking->viewer.name)};
    if (!act_request_add(&list, o->acts ? str_of(o->acts) : STR_EMPTY, owner, &act, error))
        return false;
    buf_addf(body, "{\"metadata\":{\"annotations\":{\"%s\":",
             owner == ACT_OF_BUNDLE ? KEY_BUNDLE_ACTS : KEY_ACTS);
    buf_add_json(body, buf_str(&list));
    buf_addz(body, "}}");
    if (owner == ACT_OF_BUNDLE && kind == ACT_RESUME && o->paused)
        buf_addz(body, ",\"spec\":{\"paused\":null}");
    buf_addc(body, '}');
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
    scoped(buf_done) buf collection = BUF(LIMIT_PATH_BYTES);
    const kept_object *o = kept_change(e->console, e->change);
    const console_act *act = find_act(owner_of(e->change), e->act);
    str name = e->change, space = of_bundle(name) ? str_cut(&name, '/') : STR_EMPTY;
    if (!o || !act)
        return err_set(error, "\"%s\" is gone", str_shown(e->change).text);
    if (space.len > 0)
        buf_addf(&collection, CONSOLE_BUNDLES, STR_ARG(space));
    else
        buf_addz(&collection, CONSOLE_SKYHOOKS);
    kube_write w = {.verb = WRITE_MERGE, .collection = buf_str(&collection), .name = name};
    if (act->patch) {
        buf_addz(&body, act->patch);
        w.anyhow = true;
    } else {
        if (!put_request(e, o, act->act, &body, error))
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
    const str values[] = {e->change, e->target, e->partition, e->reason};
    static const char *const keys[] = {"change", "target", "partition", "reason"};
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
    const kept_object *o = kept_change(e->console, e->change);
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

/* False: the reply says why. */
static bool check_act(asking *a, yyjson_val *body, str change)
{
    const console_settings *serves = &a->console->settings;
    const char *kind = of_bundle(change) ? "Bundle" : "Skyhook";
    if (!(serves->nodes && find_act(ACT_OF_SKYHOOK, a->name)) &&
        !(serves->clusters && find_act(ACT_OF_BUNDLE, a->name))) {
        console_fail(a, 404, "an operator has no act \"%s\"", str_shown(a->name).text);
        return false;
    }
    if (a->token.len == 0) {
        http_field_add(a->reply, "WWW-Authenticate", STR("Bearer"));
        console_fail(a, 401, "acts need your own Kubernetes token");
        return false;
    }
    if (!yyjson_is_obj(body) || !kept_change(a->console, change)) {
        console_fail(a, 404, "there is no %s \"%s\"", kind, str_shown(change).text);
        return false;
    }
    if (!find_act(owner_of(change), a->name)) {
        console_fail(a, 404, "a %s has no act \"%s\"", kind, str_shown(a->name).text);
        return false;
    }
    if (str_eq(a->name, STR("approve")) && json_text_of(body, "partition").len == 0) {
        console_fail(a, 422, "approve: a partition is needed");
        return false;
    }
    return true;
}

void answer_act(asking *a)
{
    err error;
    yyjson_val *body = json_parse(a->request->arena, a->request->body, NULL);
    str change = json_text_of(body, "deployment");
    if (!check_act(a, body, change))
        return;
    errand *e = errand_new(a, step);
    if (!e)
        return;
    e->act = a->name;
    e->change = change;
    e->target = json_text_of(body, "resource");
    e->partition = json_text_of(body, "partition");
    e->reason = json_text_of(body, "reason");
    if (attempt(e, &error))
        return;
    a->reply->later = (http_later){.step = NULL};
    console_fail(a, 503, "%s", error.text);
    errand_over(e);
}
