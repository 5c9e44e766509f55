/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/connection_internal.h"

#include <stdio.h>

#include "base/mem.h"
#include "base/num.h"
#include "kube/credentials.h"
#include "kube/server_date.h"

#define PEM_BYTES_MAX (1u << 20)
#define DATE_MS 1000
/* What curl keeps for each request that runs; the sizes that it likes are for files. */
#define READ_BYTES 4096L
#define STREAM_BYTES 16384L
#define UPLOAD_BYTES 16384L

/* ---- lists ---- */

static void put_in(exchange **list, exchange *x)
{
    x->next = *list;
    x->link = list;
    if (x->next)
        x->next->link = &x->next;
    *list = x;
}

static void take_out(exchange *x)
{
    connection *c = x->connection;
    if (c->last == &x->next)
        c->last = x->link;
    *x->link = x->next;
    if (x->next)
        x->next->link = x->link;
    x->next = NULL;
}

/* ---- one exchange ---- */

static void keep_spare(connection *c, CURL *curl)
{
    if (!curl || c->closing || c->spare_count == SPARES_MAX) {
        curl_easy_cleanup(curl);
        return;
    }
    /* What it points at is about to go. */
    curl_easy_setopt(curl, CURLOPT_CURLU, NULL);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, NULL);
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, NULL);
    curl_easy_setopt(curl, CURLOPT_HTTPGET, 1L);
    c->spares[c->spare_count++] = curl;
}

static void exchange_free(exchange *x)
{
    if (x->stream)
        curl_easy_cleanup(x->curl);
    else
        keep_spare(x->connection, x->curl);
    curl_url_cleanup(x->url);
    curl_slist_free_all(x->headers);
    mem_free(x->path);
    mem_free(x->body);
    mem_free(x);
}

/* wanted: in small letters. */
static bool is_named(str name, str wanted)
{
    bool same = name.len == wanted.len;
    for (size_t i = 0; same && i < name.len; i++)
        same = (name.ptr[i] | 0x20) == (wanted.ptr[i] | 0x20);
    return same;
}

static int64_t read_clock_ms(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* A Date has whole seconds: of those that come within one the first is as good as all. */
static void take_date(server_clock *clock, str date)
{
    int64_t now_ms = read_clock_ms(CLOCK_BOOTTIME);
    if (clock->first_ms != 0 && now_ms - clock->heard_ms < DATE_MS)
        return;
    clock->newest_ms = server_date_ms(date, read_clock_ms(CLOCK_REALTIME)) - now_ms;
    clock->heard_ms = now_ms;
    if (clock->first_ms == 0)
        clock->first_ms = clock->newest_ms;
}

static size_t take_header(char *bytes, size_t size, size_t count, void *context)
{
    exchange *x = context;
    connection *c = x->connection;
    c->asked_ns = 0;
    str value = {bytes, size * count};
    if (str_starts(value, STR("HTTP/1.")))
        c->found_plain = !c->plain;
    str name = str_cut(&value, ':');
    if (!value.ptr)
        return size * count;
    if (is_named(name, STR("retry-after")) && !num_parse(str_trim(value), &x->retry_after_s))
        x->retry_after_s = 0;
    if (is_named(name, STR("date")))
        take_date(c->clock, str_trim(value));
    return size * count;
}

static void tell_status(exchange *x)
{
    long status = 0;
    if (x->answered)
        return;
    x->answered = true;
    if (x->connection->clock->first_ms == 0)
        take_date(x->connection->clock, STR_EMPTY);
    curl_easy_getinfo(x->curl, CURLINFO_RESPONSE_CODE, &status);
    if (x->handler.status)
        x->handler.status(x->handler.context, (int)status, x->retry_after_s);
}

static size_t take_bytes(char *bytes, size_t size, size_t count, void *context)
{
    exchange *x = context;
    x->connection->asked_ns = 0;
    x->connection->heard += size * count;
    tell_status(x);
    if (x->handler.bytes)
        x->handler.bytes(x->handler.context, (str){bytes, size * count});
    return size * count;
}

/* Called by curl right before it sends. It also would send again over another connection, unasked,
 * what was lost with the first: a write must not be. */
static int before_sending(void *context, char *to, char *from, int to_port, int from_port)
{
    (void)to, (void)from, (void)to_port, (void)from_port;
    exchange *x = context;
    connection *c = x->connection;
    if (x->sent && !x->reads)
        return CURL_PREREQFUNC_ABORT;
    if (x->permit.given && !x->permit.given(x->permit.context)) {
        x->barred = true;
        return CURL_PREREQFUNC_ABORT;
    }
    x->sent = true;
    if (c->asked_ns == 0)
        c->asked_ns = uv_hrtime();
    return CURL_PREREQFUNC_OK;
}

/* ---- many ---- */

static CURL *curl_for(connection *c, bool stream);
static CURLU *url_of(const exchange *x);
static void set_request(exchange *x);

/* A request that waits is small: curl's part of it is made when its turn comes. */
static bool start(exchange *x)
{
    connection *c = x->connection;
    if (!x->url)
        x->url = url_of(x);
    if (!x->url || !(x->curl = curl_for(c, x->stream)))
        return false;
    set_request(x);
    take_out(x);
    c->waiting_count--;
    put_in(&c->running, x);
    c->running_count++;
    curl_multi_add_handle(c->multi, x->curl);
    return true;
}

/* Without memory they wait until something ends. */
static void start_waiting(connection *c)
{
    while (c->first && c->running_count < CONNECTION_REQUESTS_MAX && start(c->first))
        ;
}

static void finish(exchange *x, connection_result result)
{
    connection *c = x->connection;
    exchange_handler handler = x->handler;
    char problem[CURL_ERROR_SIZE];
    snprintf(problem, sizeof problem, "%s", result == CONNECTION_WHOLE ? "" : x->problem);
    take_out(x);
    c->running_count--;
    curl_multi_remove_handle(c->multi, x->curl);
    exchange_free(x);
    handler.end(handler.context, result, str_of(problem));
}

static connection_result result_of(const exchange *x, CURLcode code)
{
    if (code == CURLE_OK)
        return CONNECTION_WHOLE;
    if (!x->sent)
        return x->barred ? CONNECTION_BARRED : CONNECTION_UNSENT;
    /* Even if the last thing that failed was to connect: that may have been curl's second try. */
    return CONNECTION_CUT;
}

static bool is_dead(const connection *c)
{
    return c->asked_ns != 0 &&
           uv_hrtime() - c->asked_ns >= (uint64_t)CONNECTION_SILENCE_MS * UINT64_C(1000000);
}

static void give_up(connection *c);

/* One connection carries one request at a time then: those that wait for it get their own. */
static void part_ways(connection *c)
{
    c->plain = true;
    c->found_plain = false;
    curl_multi_setopt(c->multi, CURLMOPT_MAX_HOST_CONNECTIONS, (long)CONNECTION_REQUESTS_MAX);
    for (exchange *x = c->running; x; x = x->next)
        if (!x->sent) {
            curl_multi_remove_handle(c->multi, x->curl);
            curl_easy_setopt(x->curl, CURLOPT_PIPEWAIT, 0L);
            curl_multi_add_handle(c->multi, x->curl);
        }
}

void connection_collect(connection *c)
{
    CURLMsg *message;
    int left;
    bool late = false;
    while (!c->closing && (message = curl_multi_info_read(c->multi, &left))) {
        exchange *x = NULL;
        CURLcode code = message->data.result;
        if (message->msg != CURLMSG_DONE)
            continue;
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &x);
        if (code == CURLE_OK)
            tell_status(x);
        else if (x->problem[0] == '\0')
            snprintf(x->problem, sizeof x->problem, "%s", curl_easy_strerror(code));
        long status = 0;
        curl_easy_getinfo(x->curl, CURLINFO_RESPONSE_CODE, &status);
        if (status == 401 && !x->foreign)
            credentials_refused(c->credentials);
        late = late || code == CURLE_OPERATION_TIMEDOUT;
        finish(x, result_of(x, code));
    }
    if (!c->closing && late && is_dead(c))
        give_up(c);
    if (!c->closing && c->found_plain)
        part_ways(c);
    if (!c->closing)
        start_waiting(c);
}

/* ---- opening and closing ---- */

/* A certificate is checked against the name of the URL. Where it has another one than the server is
 * reached by, the URL has the certificate's, and says where to connect all the same. */
static CURLUcode rename_server(connection *c)
{
    char *host = NULL, *port = NULL;
    str name = c->access->tls_server_name;
    CURLUcode code = curl_url_get(c->base, CURLUPART_HOST, &host, 0);
    if (code == CURLUE_OK)
        code = curl_url_get(c->base, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT);
    buf line = BUF(LIMIT_PATH_BYTES);
    if (code == CURLUE_OK)
        buf_addf(&line, "%.*s:%s:%s:%s", STR_ARG(name), port, host, port);
    if (line.len > 0 && !line.failed)
        c->connect_to = curl_slist_append(NULL, line.ptr);
    if (code == CURLUE_OK)
        code = c->connect_to ? curl_url_set(c->base, CURLUPART_HOST, name.ptr, 0)
                             : CURLUE_OUT_OF_MEMORY;
    buf_done(&line);
    curl_free(host);
    curl_free(port);
    return code;
}

/* curl takes an address apart for each request, and puts it together again for people to read: a
 * tenth of what a request costs. Here that is done once. */
static bool read_server(connection *c, err *error)
{
    const kube_access *a = c->access;
    if (!(c->base = curl_url()))
        return err_memory(error);
    CURLUcode code = curl_url_set(c->base, CURLUPART_URL, a->server.ptr,
                                  CURLU_GUESS_SCHEME | CURLU_NON_SUPPORT_SCHEME);
    if (code == CURLUE_OK && a->tls_server_name.len > 0 && str_starts(a->server, STR("https://")))
        code = rename_server(c);
    if (code == CURLUE_OK)
        code = curl_url_get(c->base, CURLUPART_URL, &c->server, 0);
    if (code == CURLUE_OK)
        code = curl_url_get(c->base, CURLUPART_PATH, &c->base_path, 0);
    if (code == CURLUE_OUT_OF_MEMORY)
        return err_memory(error);
    if (code != CURLUE_OK)
        return err_set(error, "server: found \"%s\", allowed the URL of an API server",
                       str_shown(a->server).text);
    size_t length = strlen(c->base_path);
    while (length > 0 && c->base_path[length - 1] == '/')
        c->base_path[--length] = '\0';
    return true;
}

static void forget_server(connection *c)
{
    curl_slist_free_all(c->connect_to);
    curl_free(c->base_path);
    curl_free(c->server);
    curl_url_cleanup(c->base);
}

static CURLM *multi_new(connection *c)
{
    CURLM *multi = curl_multi_init();
    if (!multi)
        return NULL;
    sockets_serve(c, multi);
    curl_multi_setopt(multi, CURLMOPT_PIPELINING, CURLPIPE_MULTIPLEX);
    curl_multi_setopt(multi, CURLMOPT_MAX_HOST_CONNECTIONS,
                      c->plain ? (long)CONNECTION_REQUESTS_MAX : 1L);
    curl_multi_setopt(multi, CURLMOPT_MAX_CONCURRENT_STREAMS, (long)CONNECTION_REQUESTS_MAX);
    return multi;
}

/* curl keeps a connection on which only a request has ended, and would send the next one over it:
 * with all that belongs to it, it goes. Without memory for another one it stays. */
static void give_up(connection *c)
{
    CURLM *fresh = multi_new(c);
    if (!fresh)
        return;
    for (exchange *x = c->running; x; x = x->next) {
        x->dead = true;
        curl_multi_remove_handle(c->multi, x->curl);
    }
    curl_multi_cleanup(c->multi);
    c->multi = fresh;
    c->asked_ns = 0;
    for (exchange *x = c->running; x && !c->closing;) {
        if (!x->dead) { /* sent by who was told */
            x = x->next;
            continue;
        }
        snprintf(x->problem, sizeof x->problem, "the server was not heard for too long");
        finish(x, x->sent ? CONNECTION_CUT : CONNECTION_UNSENT);
        x = c->running;
    }
}

static connection *open_from(const connection *from, connection like, err *error)
{
    const kube_access *access = like.access;
    connection *c = mem_zalloc(sizeof *c);
    if (!c) {
        err_memory(error);
        return NULL;
    }
    *c = like;
    c->last = &c->first;
    c->clock = from ? from->clock : &c->own_clock;
    c->multi = multi_new(c);
    c->credentials = from ? from->credentials : credentials_new(access);
    c->beside = from;
    bool good = (c->multi && c->credentials) || err_memory(error);
    if (!good || !read_server(c, error) || (!sockets_open(c) && !err_memory(error))) {
        curl_multi_cleanup(c->multi);
        forget_server(c);
        if (!from)
            credentials_free(c->credentials);
        return mem_free(c);
    }
    return c;
}

connection *connection_open(uv_loop_t *loop, const kube_access *access, const char *agent,
                            err *error)
{
    return open_from(NULL, (connection){.loop = loop, .access = access, .agent = agent}, error);
}

connection *connection_beside(const connection *c, err *error)
{
    return open_from(
        c, (connection){.loop = c->loop, .access = c->access, .agent = c->agent, .plain = true},
        error);
}

connection *connection_close(connection *c)
{
    if (!c)
        return NULL;
    c->closing = true;
    exchange *lists[] = {c->running, c->first};
    for (size_t i = 0; i < 2; i++)
        for (exchange *x = lists[i]; x;) {
            exchange *next = x->next;
            if (i == 0)
                curl_multi_remove_handle(c->multi, x->curl);
            exchange_free(x);
            x = next;
        }
    while (c->spare_count > 0)
        curl_easy_cleanup(c->spares[--c->spare_count]);
    curl_multi_cleanup(c->multi);
    forget_server(c);
    if (!c->beside)
        credentials_free(c->credentials);
    sockets_close(c);
    return NULL;
}

bool connection_clock(const connection *c, int64_t *ret_ms)
{
    if (c->clock->first_ms == 0)
        return false;
    *ret_ms = read_clock_ms(CLOCK_BOOTTIME) + c->clock->first_ms;
    return true;
}

bool connection_date(const connection *c, int64_t *ret_ms)
{
    if (c->clock->first_ms == 0)
        return false;
    *ret_ms = read_clock_ms(CLOCK_BOOTTIME) + c->clock->newest_ms;
    return true;
}

/* ---- sending ---- */

static char *copy_text(str a, str b)
{
    char *text = mem_alloc(a.len + b.len + 1);
    if (!text)
        return NULL;
    if (a.len > 0)
        memcpy(text, a.ptr, a.len);
    if (b.len > 0)
        memcpy(text + a.len, b.ptr, b.len);
    text[a.len + b.len] = '\0';
    return text;
}

static struct curl_blob blob(str bytes)
{
    return (struct curl_blob){(void *)(uintptr_t)bytes.ptr, bytes.len, CURL_BLOB_COPY};
}

static void set_trust(const connection *c, CURL *curl)
{
    const kube_access *a = c->access;
    str certificate = credentials_certificate(c->credentials);
    str key = credentials_key(c->credentials);
    if (certificate.len == 0) {
        certificate = a->certificate_data;
        key = a->key_data;
    }
    struct curl_blob ca = blob(a->ca_data), own = blob(certificate), secret = blob(key);
    if (a->insecure) {
        curl_easy_setopt(curl, CURLOPT_SSL_VERIFYPEER, 0L);
        curl_easy_setopt(curl, CURLOPT_SSL_VERIFYHOST, 0L);
    }
    if (a->ca_data.len > 0)
        curl_easy_setopt(curl, CURLOPT_CAINFO_BLOB, &ca);
    else if (a->ca_file.len > 0)
        curl_easy_setopt(curl, CURLOPT_CAINFO, a->ca_file.ptr);
    if (a->ca_data.len > 0 || a->ca_file.len > 0)
        curl_easy_setopt(curl, CURLOPT_CAPATH, NULL); /* those alone, not this machine's as well */
    if (certificate.len > 0)
        curl_easy_setopt(curl, CURLOPT_SSLCERT_BLOB, &own);
    else if (a->certificate_file.len > 0)
        curl_easy_setopt(curl, CURLOPT_SSLCERT, a->certificate_file.ptr);
    if (key.len > 0)
        curl_easy_setopt(curl, CURLOPT_SSLKEY_BLOB, &secret);
    else if (a->key_file.len > 0)
        curl_easy_setopt(curl, CURLOPT_SSLKEY, a->key_file.ptr);
    if (a->proxy_url.len > 0)
        curl_easy_setopt(curl, CURLOPT_PROXY, a->proxy_url.ptr);
}

static bool add_header(exchange *x, const char *name, str value)
{
    char *line = copy_text(str_of(name), value);
    struct curl_slist *more = line ? curl_slist_append(x->headers, line) : NULL;
    mem_free(line);
    if (more)
        x->headers = more;
    return more;
}

/* A request that names a user has that one's rights alone: nothing of what the kubeconfig says of
 * impersonation goes along. */
static bool add_impersonation(exchange *x, str user)
{
    const kube_access *a = x->connection->access;
    if (user.len > 0)
        return add_header(x, "Impersonate-User: ", user);
    bool good =
        (a->impersonate.len == 0 || add_header(x, "Impersonate-User: ", a->impersonate)) &&
        (a->impersonate_uid.len == 0 || add_header(x, "Impersonate-Uid: ", a->impersonate_uid));
    for (size_t i = 0; good && i < a->impersonate_group_count; i++)
        good = add_header(x, "Impersonate-Group: ", a->impersonate_groups[i]);
    return good;
}

static bool add_headers(exchange *x, const exchange_request *request, err *error)
{
    str token = request->token;
    if (token.len == 0 &&
        !credentials_token(x->connection->credentials, (int64_t)(uv_hrtime() / UINT64_C(1000000)),
                           &token, error))
        return false;
    str type = str_of(request->content_type ? request->content_type : "application/json");
    str accept = str_of(request->accept ? request->accept : "application/json");
    /* As CURLOPT_USERAGENT curl would put it together twice for each request. */
    bool good = add_header(x, "User-Agent: ", str_of(x->connection->agent)) &&
                add_header(x, "Accept: ", accept) &&
                (request->body.len == 0 || add_header(x, "Content-Type: ", type)) &&
                (token.len == 0 || add_header(x, "Authorization: Bearer ", token)) &&
                add_impersonation(x, request->user) && add_header(x, "Expect:", STR_EMPTY);
    return good || err_memory(error);
}

static CURLU *url_of(const exchange *x)
{
    CURLU *url = curl_url_dup(x->connection->base);
    str query = str_of(x->path), prefix = str_of(x->connection->base_path);
    str path = str_cut(&query, '?');
    char *whole = url ? copy_text(prefix, path) : NULL;
    bool good = whole && curl_url_set(url, CURLUPART_PATH, whole, 0) == CURLUE_OK &&
                (!query.ptr || curl_url_set(url, CURLUPART_QUERY, query.ptr, 0) == CURLUE_OK);
    mem_free(whole);
    if (good)
        return url;
    curl_url_cleanup(url);
    return NULL;
}

/* What all requests have in common. */
static void set_common(connection *c, CURL *curl)
{
    curl_easy_setopt(curl, CURLOPT_URL, c->server); /* shown; it goes to CURLOPT_CURLU */
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, CONNECTION_CONNECT_SECONDS);
    curl_easy_setopt(curl, CURLOPT_UPLOAD_BUFFERSIZE, UPLOAD_BYTES);
    curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, take_header);
    curl_easy_setopt(curl, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take_bytes);
    curl_easy_setopt(curl, CURLOPT_PREREQFUNCTION, before_sending);
    curl_easy_setopt(curl, CURLOPT_CLOSESOCKETFUNCTION, sockets_close_one);
    curl_easy_setopt(curl, CURLOPT_CLOSESOCKETDATA, c);
    if (c->access->user.len > 0) {
        curl_easy_setopt(curl, CURLOPT_USERNAME, c->access->user.ptr);
        curl_easy_setopt(curl, CURLOPT_PASSWORD, c->access->password.ptr);
    }
#if LIBCURL_VERSION_NUM >= 0x075700
    /* It would know a file of authorities for a day; kubelets replace it when these change. */
    curl_easy_setopt(curl, CURLOPT_CA_CACHE_TIMEOUT, 0L);
#endif
    if (c->connect_to)
        curl_easy_setopt(curl, CURLOPT_CONNECT_TO, c->connect_to);
}

/* A watch has its own: it is made once and runs for long. */
static CURL *curl_for(connection *c, bool stream)
{
    if (!stream && c->spare_count > 0)
        return c->spares[--c->spare_count];
    CURL *curl = curl_easy_init();
    if (curl)
        set_common(c, curl);
    return curl;
}

static void set_request(exchange *x)
{
    connection *c = x->connection;
    CURL *curl = x->curl;
    curl_easy_setopt(curl, CURLOPT_CURLU, x->url);
    if (x->body_len > 0) {
        curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)x->body_len);
        curl_easy_setopt(curl, CURLOPT_POSTFIELDS, x->body);
    }
    curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, x->method);
    curl_easy_setopt(curl, CURLOPT_HTTP_VERSION,
                     (long)(c->plain ? CURL_HTTP_VERSION_1_1 : CURL_HTTP_VERSION_2TLS));
    curl_easy_setopt(curl, CURLOPT_PIPEWAIT, c->plain ? 0L : 1L);
    curl_easy_setopt(curl, CURLOPT_BUFFERSIZE, x->stream || x->reads ? STREAM_BYTES : READ_BYTES);
    if (!x->stream)
        curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)CONNECTION_TIMEOUT_MS);
    /* Nobody packs a small answer. */
    curl_easy_setopt(curl, CURLOPT_ACCEPT_ENCODING, x->reads && !x->stream ? "gzip" : NULL);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, x->headers);
    curl_easy_setopt(curl, CURLOPT_HEADERDATA, x);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, x);
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, x->problem);
    curl_easy_setopt(curl, CURLOPT_PRIVATE, x);
    curl_easy_setopt(curl, CURLOPT_PREREQDATA, x);
    set_trust(c, curl);
}

exchange *connection_send(connection *c, const exchange_request *request, exchange_handler handler,
                          err *error)
{
    if (c->waiting_count >= CONNECTION_WAITING_MAX) {
        err_set(error, "more than %d requests wait", CONNECTION_WAITING_MAX);
        return NULL;
    }
    exchange *x = mem_zalloc(sizeof *x);
    if (!x) {
        err_memory(error);
        return NULL;
    }
    *x = (exchange){.connection = c,
                    .handler = handler,
                    .permit = request->permit,
                    .foreign = request->token.len > 0,
                    .reads = strcmp(request->method, "GET") == 0,
                    .stream = request->stream,
                    .path = copy_text(request->path, STR_EMPTY),
                    .body = copy_text(request->body, STR_EMPTY),
                    .body_len = request->body.len};
    snprintf(x->method, sizeof x->method, "%s", request->method);
    bool good = (x->path && x->body) || err_memory(error);
    if (!good || !add_headers(x, request, error)) {
        exchange_free(x);
        return NULL;
    }
    x->link = c->last;
    *c->last = x;
    c->last = &x->next;
    c->waiting_count++;
    start_waiting(c);
    return x;
}

void exchange_abort(exchange *x)
{
    connection *c = x->connection;
    bool runs = false;
    for (const exchange *other = c->running; other; other = other->next)
        runs = runs || other == x;
    if (!runs) { /* it never left the queue */
        exchange_handler handler = x->handler;
        take_out(x);
        c->waiting_count--;
        exchange_free(x);
        handler.end(handler.context, CONNECTION_UNSENT, STR("it was not sent in time"));
        return;
    }
    snprintf(x->problem, sizeof x->problem, "there was no answer in time");
    finish(x, x->sent ? CONNECTION_CUT : CONNECTION_UNSENT);
    if (!c->closing && is_dead(c))
        give_up(c);
    if (!c->closing)
        start_waiting(c);
}
