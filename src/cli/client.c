/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/client.h"

#include <curl/curl.h>
#include <errno.h>
#include <stdarg.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/num.h"
#include "model/document.h"
#include "server/serve.h"
#include "server/uri.h"

#define TOKEN_TEXT_BYTES 512
#define SERVER_TEXT_BYTES 512

struct client {
    arena *arena;
    arena_place start; /* of the arena */
    CURL *curl;
    char server[SERVER_TEXT_BYTES];
    char authorization[TOKEN_TEXT_BYTES + 32];
    char ca_file[LIMIT_PATH_BYTES];
    long timeout_ms; /* of a request as a whole; 0: none */
    buf answer;
    FILE *stream; /* what comes goes there while the status is good */
};

/* ---- finding ---- */

static bool read_line(const char *path, char *out, size_t room, err *error)
{
    FILE *file = fopen(path, "re");
    if (!file)
        return err_set(error, "%s cannot be read: %s", path, strerror(errno));
    char *line = fgets(out, (int)room, file);
    fclose(file);
    if (!line)
        return err_set(error, "%s is empty", path);
    str trimmed = str_trim(str_of(out));
    memmove(out, trimmed.ptr, trimmed.len);
    out[trimmed.len] = 0;
    return true;
}

static bool find_server(client *c, const options *given, const char *folder, err *error)
{
    char path[LIMIT_PATH_BYTES + 32];
    const char *environment = getenv("DROVER_SERVER");
    str told = options_text(given, "server", environment ? environment : "");
    if (told.len >= sizeof c->server)
        return err_set(error, "the server's address is too long");
    if (told.len > 0) {
        while (told.len > 0 && told.ptr[told.len - 1] == '/')
            told.len--;
        snprintf(c->server, sizeof c->server, "%.*s", STR_ARG(told));
        return true;
    }
    snprintf(path, sizeof path, "%s/" SERVE_ADDRESS_FILE, folder);
    return read_line(path, c->server, sizeof c->server, error) ||
           err_set(error,
                   "no server was found in %s; start one with \"drover serve\" or give --server",
                   folder);
}

bool client_known(const options *given)
{
    char folder[LIMIT_PATH_BYTES];
    err unused;
    client c = {0};
    return data_folder(options_text(given, "data", ""), folder, &unused) &&
           find_server(&c, given, folder, &unused);
}

/* The administrator's token of this machine is for its own server, unless the folder was named. */
static bool token_is_for(const client *c, const options *given, const char *folder)
{
    char path[LIMIT_PATH_BYTES + 32], local[SERVER_TEXT_BYTES];
    err unused;
    snprintf(path, sizeof path, "%s/" SERVE_ADDRESS_FILE, folder);
    return options_given(given, "data") ||
           (read_line(path, local, sizeof local, &unused) && strcmp(local, c->server) == 0);
}

static bool find_token(client *c, const options *given, const char *folder, err *error)
{
    char token[TOKEN_TEXT_BYTES] = "";
    char path[LIMIT_PATH_BYTES + 32];
    const char *environment = getenv("DROVER_TOKEN");
    str file = options_text(given, "token-file", "");
    if (file.len > 0)
        snprintf(path, sizeof path, "%.*s", STR_ARG(file));
    else
        snprintf(path, sizeof path, "%s/" SERVE_TOKEN_FILE, folder);
    if (file.len == 0 && environment && environment[0])
        snprintf(token, sizeof token, "%s", environment);
    else if (file.len == 0 && !token_is_for(c, given, folder))
        return err_set(error, "%s needs a token; give --token-file or set DROVER_TOKEN", c->server);
    else if (!read_line(path, token, sizeof token, error))
        return false;
    snprintf(c->authorization, sizeof c->authorization, "Authorization: Bearer %s", token);
    return true;
}

static size_t take_answer(char *bytes, size_t size, size_t count, void *context)
{
    client *c = context;
    long status = 0;
    curl_easy_getinfo(c->curl, CURLINFO_RESPONSE_CODE, &status);
    if (c->stream && status < 300)
        return fwrite(bytes, size, count, c->stream) == count && fflush(c->stream) == 0
                   ? size * count
                   : 0;
    buf_add(&c->answer, (str){bytes, size * count});
    return c->answer.failed ? 0 : size * count;
}

client *client_open(const options *given, exit_status *ret_status)
{
    char folder[LIMIT_PATH_BYTES];
    err error;
    client *c = mem_zalloc(sizeof *c);
    bool good = c || err_memory(&error);
    if (good) {
        c->arena = arena_new(0);
        c->curl = curl_easy_init();
        c->answer = BUF(CLIENT_ANSWER_BYTES_MAX);
        good = (c->arena && c->curl) || err_memory(&error);
        if (c->arena)
            c->start = arena_mark(c->arena);
    }
    good = good && data_folder(options_text(given, "data", ""), folder, &error) &&
           find_server(c, given, folder, &error) && find_token(c, given, folder, &error);
    if (good) {
        str file = options_text(given, "ca-file", "");
        snprintf(c->ca_file, sizeof c->ca_file, "%.*s", STR_ARG(file));
        return c;
    }
    fail("%s", error.text);
    *ret_status = STATUS_UNREACHABLE;
    return client_close(c);
}

client *client_close(client *c)
{
    if (!c)
        return NULL;
    curl_easy_cleanup(c->curl);
    buf_done(&c->answer);
    arena_free(c->arena);
    return mem_free(c);
}

void client_cleanup(client **c)
{
    *c = client_close(*c);
}

const char *client_server(const client *c)
{
    return c->server;
}

arena *client_arena(client *c)
{
    return c->arena;
}

void client_hurry(client *c, int64_t timeout_ms)
{
    c->timeout_ms = (long)timeout_ms;
}

void client_forget(client *c)
{
    arena_rewind(c->arena, c->start);
}

/* ---- requests ---- */

static struct curl_slist *headers_of(const client *c)
{
    struct curl_slist *list = curl_slist_append(NULL, c->authorization);
    /* Without the pause that curl makes before larger bodies. */
    return curl_slist_append(list, "Expect:");
}

struct curl_slist *client_prepare(const client *c, void *handle, str path)
{
    char url[SERVER_TEXT_BYTES + URI_BYTES_MAX];
    struct curl_slist *headers = headers_of(c);
    snprintf(url, sizeof url, "%s%.*s", c->server, STR_ARG(path));
    curl_easy_setopt(handle, CURLOPT_URL, url);
    curl_easy_setopt(handle, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(handle, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(handle, CURLOPT_CONNECTTIMEOUT, CLIENT_CONNECT_SECONDS);
    curl_easy_setopt(handle, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(handle, CURLOPT_PROXY, ""); /* tokens go nowhere else */
    if (c->ca_file[0])
        curl_easy_setopt(handle, CURLOPT_CAINFO, c->ca_file);
    return headers;
}

static CURLcode perform(client *c, const char *method, str path, str body)
{
    curl_easy_reset(c->curl);
    struct curl_slist *headers = client_prepare(c, c->curl, path);
    if (body.ptr)
        headers = curl_slist_append(headers, "Content-Type: application/json");
    curl_easy_setopt(c->curl, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(c->curl, CURLOPT_TIMEOUT_MS, c->timeout_ms);
    curl_easy_setopt(c->curl, CURLOPT_CUSTOMREQUEST, method);
    curl_easy_setopt(c->curl, CURLOPT_WRITEFUNCTION, take_answer);
    curl_easy_setopt(c->curl, CURLOPT_WRITEDATA, c);
    if (body.ptr) {
        curl_easy_setopt(c->curl, CURLOPT_POSTFIELDS, body.ptr);
        curl_easy_setopt(c->curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)body.len);
    }
    buf_clear(&c->answer);
    CURLcode code = curl_easy_perform(c->curl);
    curl_slist_free_all(headers);
    return code;
}

/* What the server found wrong, one line each. */
static void print_refusal(client *c, yyjson_val *answer, long status)
{
    yyjson_val *error = yyjson_obj_get(answer, "error");
    yyjson_val *list = yyjson_obj_get(error, "problems");
    yyjson_val *item;
    size_t index, count;
    if (yyjson_arr_size(list) > 0) {
        yyjson_arr_foreach(list, index, count, item)
        {
            str name = json_at(c, item, "/document"), path = json_at(c, item, "/path");
            str message = json_at(c, item, "/message");
            fprintf(stderr, "drover: %.*s%s%.*s%s%.*s\n", STR_ARG(name), name.len > 0 ? ": " : "",
                    STR_ARG(path), path.len > 0 ? ": " : "", STR_ARG(message));
        }
        return;
    }
    str message = json_at(c, error, "/message");
    if (message.len > 0)
        fail("%.*s", STR_ARG(message));
    else
        fail("the server answered with the status %ld", status);
}

exit_status client_try(client *c, const char *method, str path, str body, client_answer *ret)
{
    err error;
    *ret = (client_answer){.status = 0};
    if (perform(c, method, path, body) != CURLE_OK)
        return STATUS_UNREACHABLE;
    curl_easy_getinfo(c->curl, CURLINFO_RESPONSE_CODE, &ret->status);
    str text = arena_str(c->arena, buf_str(&c->answer));
    if (text.len > 0) /* a page of a list is longer than a document may be */
        ret->json = json_parse_within(c->arena, text, CLIENT_ANSWER_BYTES_MAX, &error);
    return ret->status < 300 ? STATUS_DONE : ret->status == 503 ? STATUS_UNREACHABLE : STATUS_NO;
}

static exit_status unreachable(const client *c, CURLcode code)
{
    fail("%s cannot be reached: %s", c->server, curl_easy_strerror(code));
    return STATUS_UNREACHABLE;
}

exit_status client_call(client *c, const char *method, str path, str body, yyjson_val **ret)
{
    client_answer answer;
    exit_status result = client_try(c, method, path, body, &answer);
    if (answer.status == 0) {
        fail("%s cannot be reached", c->server);
        return STATUS_UNREACHABLE;
    }
    if (ret)
        *ret = answer.json;
    if (result != STATUS_DONE)
        print_refusal(c, answer.json, answer.status);
    else if (ret && !answer.json && c->answer.len > 0)
        return fail("the answer of %s cannot be read", c->server);
    return result;
}

exit_status client_text(client *c, str path, buf *ret)
{
    long status = 0;
    err error;
    CURLcode code = perform(c, "GET", path, (str){NULL, 0});
    curl_easy_getinfo(c->curl, CURLINFO_RESPONSE_CODE, &status);
    if (code != CURLE_OK)
        return unreachable(c, code);
    if (status >= 300) {
        print_refusal(c, json_parse(c->arena, arena_str(c->arena, buf_str(&c->answer)), &error),
                      status);
        return status == 503 ? STATUS_UNREACHABLE : STATUS_NO;
    }
    *ret = c->answer;
    c->answer = BUF(CLIENT_ANSWER_BYTES_MAX);
    return STATUS_DONE;
}

exit_status client_stream(client *c, str path, FILE *to)
{
    long status = 0;
    err error;
    c->stream = to;
    CURLcode code = perform(c, "GET", path, (str){NULL, 0});
    c->stream = NULL;
    curl_easy_getinfo(c->curl, CURLINFO_RESPONSE_CODE, &status);
    if (code != CURLE_OK)
        return unreachable(c, code);
    if (status < 300)
        return STATUS_DONE;
    print_refusal(c, json_parse(c->arena, arena_str(c->arena, buf_str(&c->answer)), &error),
                  status);
    return STATUS_NO;
}

exit_status client_list(client *c, str path, int64_t limit, item_visitor visit, void *context)
{
    str next = {NULL, 0};
    int64_t count = 0;
    char separator = str_find(path, STR("?")) == SIZE_MAX ? '?' : '&';
    for (;;) {
        int64_t page =
            limit > 0 && limit - count < CLIENT_PAGE_ITEMS ? limit - count : CLIENT_PAGE_ITEMS;
        buf text = BUF(URI_BYTES_MAX);
        buf_addf(&text, "%.*s%climit=%lld", STR_ARG(path), separator, (long long)page);
        if (next.ptr) {
            buf_addz(&text, "&continue=");
            uri_encode(&text, next);
        }
        str whole = arena_str(c->arena, buf_str(&text));
        buf_done(&text);
        yyjson_val *answer, *item;
        exit_status status = client_call(c, "GET", whole, (str){NULL, 0}, &answer);
        if (status != STATUS_DONE)
            return status;
        size_t index, most;
        yyjson_arr_foreach(yyjson_obj_get(answer, "items"), index, most, item)
        {
            if (!visit(context, item))
                return STATUS_DONE;
            count++;
        }
        next = json_at(c, answer, "/continue");
        if (next.len == 0 || (limit > 0 && count >= limit))
            return STATUS_DONE;
    }
}

/* ---- texts ---- */

str client_path(client *c, const char *format, ...)
{
    va_list args;
    buf out = BUF(URI_BYTES_MAX);
    va_start(args, format);
    for (const char *at = format; *at; at++) {
        if (at[0] == '%' && at[1] == 's') {
            str value = va_arg(args, str);
            uri_encode(&out, value);
            at++;
        } else {
            buf_addc(&out, *at);
        }
    }
    va_end(args);
    str path = arena_str(c->arena, buf_str(&out));
    buf_done(&out);
    return path.ptr ? path : STR("/");
}

str json_at(client *c, yyjson_val *value, const char *pointer)
{
    yyjson_val *found = yyjson_ptr_get(value, pointer);
    if (!found || yyjson_is_null(found))
        return STR_EMPTY;
    if (yyjson_is_str(found))
        return (str){yyjson_get_str(found), yyjson_get_len(found)};
    buf out = BUF(LIMIT_TEXT_BYTES);
    json_write(&out, found);
    str text = arena_str(c->arena, buf_str(&out));
    buf_done(&out);
    return text.ptr ? text : STR_EMPTY;
}

str json_texts(client *c, const char *key, ...)
{
    va_list args;
    buf out = BUF(LIMIT_TEXT_BYTES);
    bool first = true;
    buf_addc(&out, '{');
    va_start(args, key);
    while (key) {
        str value = va_arg(args, str);
        if (value.len > 0) {
            buf_addf(&out, "%s\"%s\":", first ? "" : ",", key);
            buf_add_json(&out, value);
            first = false;
        }
        key = va_arg(args, const char *);
    }
    va_end(args);
    buf_addc(&out, '}');
    str text = arena_str(c->arena, buf_str(&out));
    buf_done(&out);
    return text.ptr ? text : STR("{}");
}
