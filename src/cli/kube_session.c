/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/kube_session.h"

#include <curl/curl.h>
#include <inttypes.h>

#include "base/limits.h"
#include "base/mem.h"
#include "kube/writer.h"
#include "model/document.h"

#define REPLY_BYTES_MAX (256u << 20)
#define PATH_BYTES_MAX (64u * 1024u)

struct kube_session {
    arena *arena;
    uv_loop_t loop;
    bool has_loop;
    kube_access access;
    connection *connection;
    writer *writer;
    str namespace_;
};

/* ---- begin and end ---- */

static bool set_text(kube_session *s, const options *given, const char *name, str *member)
{
    if (!options_given(given, name))
        return true;
    *member = arena_str(s->arena, options_text(given, name, ""));
    return member->ptr != NULL;
}

/* A file takes the place of what the kubeconfig holds itself. */
static bool set_file(kube_session *s, const options *given, const char *name, str *file, str *data)
{
    if (options_given(given, name))
        *data = STR_EMPTY;
    return set_text(s, given, name, file);
}

static bool set_certificates(kube_session *s, const options *given)
{
    kube_access *a = &s->access;
    a->insecure |= options_given(given, "insecure-skip-tls-verify");
    return set_file(s, given, "certificate-authority", &a->ca_file, &a->ca_data) &&
           set_file(s, given, "client-certificate", &a->certificate_file, &a->certificate_data) &&
           set_file(s, given, "client-key", &a->key_file, &a->key_data);
}

static bool read_access(kube_session *s, const options *given, err *error)
{
    kube_where where = kube_where_of_environment(options_text(given, "kubeconfig", ""),
                                                 options_text(given, "context", ""));
    where.cluster = options_text(given, "cluster", "");
    where.user = options_text(given, "user", "");
    where.server = options_text(given, "server", "");
    if (!kubeconfig_read(&where, s->arena, &s->access, error))
        return false;
    if (options_given(given, "token")) /* it takes the place of whatever else there is */
        s->access.token_file = s->access.exec.command = STR_EMPTY;
    s->namespace_ = STR(KUBE_NAMESPACE);
    return (set_text(s, given, "server", &s->access.server) &&
            set_text(s, given, "token", &s->access.token) &&
            set_text(s, given, "as", &s->access.impersonate) && set_certificates(s, given) &&
            set_text(s, given, "namespace", &s->namespace_)) ||
           err_memory(error);
}

kube_session *kube_session_open(const options *given, err *error)
{
    kube_session *s = mem_zalloc(sizeof *s);
    if (!s) {
        err_memory(error);
        return NULL;
    }
    curl_global_init(CURL_GLOBAL_DEFAULT);
    s->arena = arena_new(0);
    s->has_loop = s->arena && uv_loop_init(&s->loop) == 0;
    bool good = s->has_loop ? read_access(s, given, error) : err_memory(error);
    s->connection = good ? connection_open(&s->loop, &s->access, "kubectl-skyhook", error) : NULL;
    s->writer = s->connection ? writer_start(&s->loop, s->connection, (writer_options){0}) : NULL;
    if (s->writer)
        return s;
    if (s->connection)
        err_memory(error);
    return kube_session_close(s);
}

kube_session *kube_session_close(kube_session *s)
{
    if (!s)
        return NULL;
    if (s->writer)
        writer_stop(s->writer);
    if (s->connection)
        connection_close(s->connection);
    if (s->has_loop) {
        uv_run(&s->loop, UV_RUN_DEFAULT);
        uv_loop_close(&s->loop);
    }
    arena_free(s->arena);
    curl_global_cleanup();
    return mem_free(s);
}

str kube_session_namespace(const kube_session *s)
{
    return s->namespace_;
}

str kube_session_server(const kube_session *s)
{
    return s->access.server;
}

/* ---- one question ---- */

typedef struct question {
    int status;
    buf text;
    kube_bytes *bytes; /* NULL: collect */
    void *context;
    bool done;
    connection_result result;
    char problem[WRITE_MESSAGE_BYTES];
} question;

static void take_status(void *context, int status, int64_t retry_after_s)
{
    (void)retry_after_s;
    ((question *)context)->status = status;
}

static void take_bytes(void *context, str bytes)
{
    question *q = context;
    if (q->bytes && q->status < 400)
        q->bytes(q->context, bytes);
    else
        buf_add(&q->text, bytes);
}

static void take_end(void *context, connection_result result, str why)
{
    question *q = context;
    q->done = true;
    q->result = result;
    snprintf(q->problem, sizeof q->problem, "%.*s", STR_ARG(why));
}

/* Waits for the end of the answer. False: there was none. */
static bool ask(kube_session *s, str path, question *q, err *error)
{
    exchange_request request = {.method = "GET", .path = path, .stream = q->bytes != NULL};
    exchange_handler handler = {q, take_status, take_bytes, take_end};
    if (!connection_send(s->connection, &request, handler, error))
        return false;
    while (!q->done)
        uv_run(&s->loop, UV_RUN_ONCE);
    if (q->result != CONNECTION_WHOLE)
        return err_set(error, "%.*s: %s", STR_ARG(s->access.server),
                       q->problem[0] ? q->problem : "the connection was cut");
    return !q->text.failed || err_set(error, "the answer is too long");
}

static str text_of(yyjson_val *json, const char *key)
{
    yyjson_val *value = yyjson_obj_get(json, key);
    return yyjson_is_str(value) ? (str){yyjson_get_str(value), yyjson_get_len(value)} : STR_EMPTY;
}

static void take_message(int status, yyjson_val *body, char out[WRITE_MESSAGE_BYTES])
{
    str said = text_of(body, "message");
    if (status < 400)
        out[0] = '\0';
    else if (said.len > 0)
        snprintf(out, WRITE_MESSAGE_BYTES, "%.*s", STR_ARG(said));
    else
        snprintf(out, WRITE_MESSAGE_BYTES, "the server answers %d", status);
}

bool kube_get(kube_session *s, str path, arena *a, kube_reply *ret, err *error)
{
    question q = {.text = BUF(REPLY_BYTES_MAX)};
    bool good = ask(s, path, &q, error);
    yyjson_val *body = good && q.text.len > 0 ? json_parse(a, buf_str(&q.text), error) : NULL;
    buf_done(&q.text);
    if (!good || (!body && q.status < 400))
        return false;
    *ret = (kube_reply){.status = q.status, .body = body};
    take_message(q.status, body, ret->message);
    return true;
}

bool kube_stream(kube_session *s, str path, kube_bytes *bytes, void *context, err *error)
{
    question q = {.text = BUF(REPLY_BYTES_MAX), .bytes = bytes, .context = context};
    scoped(arena_cleanup) arena *a = arena_new(0);
    bool good = a ? ask(s, path, &q, error) : err_memory(error);
    if (good && q.status >= 400) {
        char said[WRITE_MESSAGE_BYTES];
        take_message(q.status, json_parse(a, buf_str(&q.text), NULL), said);
        good = err_set(error, "%s", said);
    }
    buf_done(&q.text);
    return good;
}

/* ---- lists ---- */

static void page_path(buf *out, str path, str next)
{
    bool query = str_find(path, STR("?")) != SIZE_MAX;
    buf_addf(out, "%.*s%climit=%d", STR_ARG(path), query ? '&' : '?', KUBE_LIST_PAGE);
    if (next.len == 0)
        return;
    buf_addz(out, "&continue=");
    for (size_t i = 0; i < next.len; i++) {
        char c = next.ptr[i];
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                     c == '-' || c == '_' || c == '.' || c == '~';
        if (plain)
            buf_addc(out, c);
        else
            buf_addf(out, "%%%02X", (unsigned)(unsigned char)c);
    }
}

typedef struct lister {
    str path;
    kube_each *each;
    void *context;
    bool may_be_unknown;
    buf next; /* where the next page begins; empty at the end */
} lister;

static bool list_page(kube_session *s, lister *l, err *error)
{
    scoped(arena_cleanup) arena *a = arena_new(0);
    scoped(buf_done) buf path = BUF(PATH_BYTES_MAX);
    kube_reply reply;
    page_path(&path, l->path, buf_str(&l->next));
    if (!a || path.failed)
        return err_memory(error);
    if (!kube_get(s, buf_str(&path), a, &reply, error))
        return false;
    buf_clear(&l->next);
    if (reply.status == 404 && l->may_be_unknown)
        return true;
    if (reply.status >= 400)
        return err_set(error, "%.*s: %s", STR_ARG(l->path), reply.message);
    size_t index, count;
    yyjson_val *item;
    yyjson_arr_foreach(yyjson_obj_get(reply.body, "items"), index, count, item)
    {
        if (!l->each(l->context, item, error))
            return false;
    }
    buf_add(&l->next, text_of(yyjson_obj_get(reply.body, "metadata"), "continue"));
    return !l->next.failed || err_memory(error);
}

static bool list_all(kube_session *s, lister *l, err *error)
{
    bool good;
    do
        good = list_page(s, l, error);
    while (good && l->next.len > 0);
    buf_done(&l->next);
    return good;
}

bool kube_list(kube_session *s, str path, kube_each *each, void *context, err *error)
{
    lister l = {path, each, context, false, BUF(PATH_BYTES_MAX)};
    return list_all(s, &l, error);
}

bool kube_list_known(kube_session *s, str path, kube_each *each, void *context, err *error)
{
    lister l = {path, each, context, true, BUF(PATH_BYTES_MAX)};
    return list_all(s, &l, error);
}

/* ---- writes ---- */

typedef struct written {
    bool done;
    arena *arena; /* NULL: the object is of no use */
    kube_answer answer;
} written;

static void take_outcome(void *context, const write_outcome *outcome, yyjson_val *answered)
{
    written *w = context;
    w->done = true;
    w->answer.outcome = *outcome;
    if (!answered || !w->arena)
        return;
    buf text = BUF(REPLY_BYTES_MAX);
    json_write(&text, answered);
    w->answer.body = text.failed ? NULL : json_parse(w->arena, buf_str(&text), NULL);
    buf_done(&text);
}

bool kube_write_answered(kube_session *s, const kube_write *w, arena *a, kube_answer *ret,
                         err *error)
{
    written now = {.arena = a};
    write_handler handler = {.context = &now, .done = take_outcome};
    if (!writer_send(s->writer, w, handler, error))
        return false;
    while (!now.done)
        uv_run(&s->loop, UV_RUN_ONCE);
    *ret = now.answer;
    return true;
}

bool kube_write_one(kube_session *s, const kube_write *w, write_outcome *ret, err *error)
{
    kube_answer answer;
    if (!kube_write_answered(s, w, NULL, &answer, error))
        return false;
    *ret = answer.outcome;
    return true;
}
