/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/kube_session.h"

#include <curl/curl.h>
#include <inttypes.h>
#include <time.h>
#include <unistd.h>

#include "base/duration.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/num.h"
#include "kube/writer.h"
#include "model/document.h"

#define REPLY_BYTES_MAX (256u << 20)
#define PATH_BYTES_MAX (64u * 1024u)
#define STATUS_FORBIDDEN 403
#define STATUS_NOT_FOUND 404
#define STATUS_TOO_MANY 429
/* A server that has too much to do is asked so often, after its Retry-After or this. */
#define BUSY_TRIES 5
#define BUSY_WAIT_S 1
#define BUSY_WAIT_MAX_S 10

struct kube_session {
    arena *arena;
    uv_loop_t loop;
    bool has_loop;
    kube_access access;
    uv_timer_t timer;
    connection *connection;
    writer *writer;
    str namespace_;
    int64_t timeout_ms; /* of an answer; 0: what the connection has */
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

static bool set_groups(kube_session *s, const options *given)
{
    size_t at = 0, count = 0;
    str name;
    while (options_next(given, "as-group", &at, &name))
        count++;
    if (count == 0)
        return true;
    str *all = ARENA_ARRAY(s->arena, count, str);
    bool good = all != NULL;
    at = count = 0;
    while (good && options_next(given, "as-group", &at, &name)) {
        all[count] = arena_str(s->arena, name);
        good = all[count++].ptr;
    }
    s->access.impersonate_groups = all;
    s->access.impersonate_group_count = count;
    return good;
}

bool kube_session_limit(kube_session *s, const char *name, str time, err *error)
{
    int64_t number;
    if (num_parse(time, &number) && number >= 0 && number <= INT32_MAX) {
        s->timeout_ms = number * 1000;
        return true;
    }
    if (!duration_parse(time, &number, error) || number < 0)
        return err_set(error, "--%s: found \"%s\", allowed a duration such as 10s", name,
                       str_shown(time).text);
    s->timeout_ms = number / 1000000;
    return true;
}

static bool read_access(kube_session *s, const options *given, err *error)
{
    kube_where where = kube_where_of_environment(options_text(given, "kubeconfig", ""),
                                                 options_text(given, "context", ""));
    where.cluster = options_text(given, "cluster", "");
    where.user = options_text(given, "user", "");
    where.server = options_text(given, "server", "");
    if (!kube_session_limit(s, "request-timeout", options_text(given, "request-timeout", "0"),
                            error) ||
        !kubeconfig_read(&where, s->arena, &s->access, error))
        return false;
    if (options_given(given, "token")) /* it takes the place of whatever else there is */
        s->access.token_file = s->access.exec.command = STR_EMPTY;
    s->namespace_ = STR(KUBE_NAMESPACE);
    return (set_text(s, given, "server", &s->access.server) &&
            set_text(s, given, "token", &s->access.token) &&
            set_text(s, given, "as", &s->access.impersonate) &&
            set_text(s, given, "as-uid", &s->access.impersonate_uid) && set_groups(s, given) &&
            set_text(s, given, "tls-server-name", &s->access.tls_server_name) &&
            set_certificates(s, given) && set_text(s, given, "namespace", &s->namespace_)) ||
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
    if (s->has_loop)
        uv_timer_init(&s->loop, &s->timer);
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
        uv_close((uv_handle_t *)&s->timer, NULL);
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

int64_t kube_session_now_ms(const kube_session *s)
{
    int64_t now_ms;
    return connection_clock(s->connection, &now_ms) ? now_ms : (int64_t)time(NULL) * 1000;
}

static void on_time(uv_timer_t *timer)
{
    (void)timer;
}

/* Whether it became true in the time that answers have. */
static bool wait_until(kube_session *s, const bool *done)
{
    uv_update_time(&s->loop); /* somebody may have been asked meanwhile, and thought about it */
    uint64_t since = uv_now(&s->loop);
    if (s->timeout_ms > 0)
        uv_timer_start(&s->timer, on_time, (uint64_t)s->timeout_ms, 0);
    while (!*done && (s->timeout_ms == 0 || uv_now(&s->loop) - since < (uint64_t)s->timeout_ms))
        uv_run(&s->loop, UV_RUN_ONCE);
    uv_timer_stop(&s->timer);
    return *done;
}

/* ---- one question ---- */

typedef struct question {
    int status;
    int64_t retry_after_s;
    buf text;
    kube_bytes *bytes; /* NULL: collect */
    void *context;
    bool done;
    bool enough; /* whoever takes the bytes wants no more */
    connection_result result;
    char problem[WRITE_MESSAGE_BYTES];
} question;

static void take_status(void *context, int status, int64_t retry_after_s)
{
    question *q = context;
    q->status = status;
    q->retry_after_s = retry_after_s;
}

static void take_bytes(void *context, str bytes)
{
    question *q = context;
    if (!q->bytes || q->status >= 400)
        buf_add(&q->text, bytes);
    else if (!q->enough)
        q->enough = !q->bytes(q->context, bytes);
}

static void take_end(void *context, connection_result result, str why)
{
    question *q = context;
    q->done = true;
    q->result = result;
    snprintf(q->problem, sizeof q->problem, "%.*s", STR_ARG(why));
}

/* Waits for the end of the answer. False: there was none. */
static bool ask_once(kube_session *s, str path, question *q, err *error)
{
    exchange_request request = {.method = "GET", .path = path, .stream = q->bytes != NULL};
    exchange_handler handler = {q, take_status, take_bytes, take_end};
    exchange *x = connection_send(s->connection, &request, handler, error);
    if (!x)
        return false;
    while (q->bytes && !q->done && !q->enough)
        uv_run(&s->loop, UV_RUN_ONCE);
    if (q->enough ? !q->done : !wait_until(s, &q->done))
        exchange_abort(x);
    if (q->result != CONNECTION_WHOLE && !q->enough)
        return err_set(error, "%.*s: %s", STR_ARG(s->access.server),
                       q->problem[0] ? q->problem : "the connection was cut");
    return !q->text.failed || err_set(error, "the answer is too long");
}

static bool ask(kube_session *s, str path, question *q, err *error)
{
    for (int i = 1;; i++) {
        if (!ask_once(s, path, q, error))
            return false;
        if (q->status != STATUS_TOO_MANY || i == BUSY_TRIES)
            return true;
        int64_t wait_s = q->retry_after_s > BUSY_WAIT_MAX_S ? BUSY_WAIT_MAX_S : q->retry_after_s;
        sleep(wait_s > 0 ? (unsigned)wait_s : BUSY_WAIT_S);
        buf_clear(&q->text);
        q->done = false;
    }
}

static void take_message(int status, yyjson_val *body, char out[WRITE_MESSAGE_BYTES])
{
    str said = json_text_of(body, "message");
    if (status < 400)
        out[0] = '\0';
    else if (said.len > 0)
        str_fit(out, WRITE_MESSAGE_BYTES, said);
    else
        snprintf(out, WRITE_MESSAGE_BYTES, "the server answers %d", status);
}

/* A page of a list is longer than a document may be. */
static yyjson_val *parse(arena *a, const buf *text, err *error)
{
    return json_parse_within(a, buf_str(text), REPLY_BYTES_MAX, error);
}

bool kube_get(kube_session *s, str path, arena *a, kube_reply *ret, err *error)
{
    question q = {.text = BUF(REPLY_BYTES_MAX)};
    bool good = ask(s, path, &q, error);
    yyjson_val *body = good && q.text.len > 0 ? parse(a, &q.text, error) : NULL;
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
        take_message(q.status, parse(a, &q.text, NULL), said);
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

/* Without rights it is not said whether there is such a kind. Groups may be seen by all. */
static bool has_group(kube_session *s, arena *a, str path)
{
    size_t slashes = 0, end = 0;
    while (end < path.len && (path.ptr[end] != '/' || slashes++ < 3)) /* /apis/GROUP/VERSION */
        end++;
    kube_reply reply;
    err ignored = {0};
    return !kube_get(s, str_part(path, 0, end), a, &reply, &ignored) ||
           reply.status != STATUS_NOT_FOUND;
}

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
    if (l->may_be_unknown && (reply.status == STATUS_NOT_FOUND ||
                              (reply.status == STATUS_FORBIDDEN && !has_group(s, a, l->path))))
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
    buf_add(&l->next, json_text_of(yyjson_obj_get(reply.body, "metadata"), "continue"));
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
    w->answer.body = text.failed ? NULL : parse(w->arena, &text, NULL);
    buf_done(&text);
}

bool kube_write_answered(kube_session *s, const kube_write *w, arena *a, kube_answer *ret,
                         err *error)
{
    written *now = ARENA_ARRAY(s->arena, 1, written); /* one that is late may end after this call */
    if (!now)
        return err_memory(error);
    now->arena = a;
    write_handler handler = {.context = now, .done = take_outcome};
    if (!writer_send(s->writer, w, handler, error))
        return false;
    if (!wait_until(s, &now->done)) {
        now->arena = NULL;
        return err_set(error, "%.*s: there was no answer in time; it may be done all the same",
                       STR_ARG(s->access.server));
    }
    *ret = now->answer;
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
