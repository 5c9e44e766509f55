/* SPDX-License-Identifier: Apache-2.0 */
#include "server/measure.h"

#include <curl/curl.h>

#include "base/duration.h"
#include "base/limits.h"
#include "base/mem.h"
#include "engine/verification.h"
#include "model/json.h"
#include "server/uri.h"

#define ANSWER_BYTES_MAX (1024u * 1024u)
#define RESULT_BYTES_MAX (8u * 1024u * 1024u)

/* One request. What is too long is cut. */
typedef struct exchange {
    CURL *curl;
    struct curl_slist *headers;
    buf body, fields;
    long status;
    int64_t took_ms;
} exchange;

static size_t take_body(char *bytes, size_t size, size_t count, void *context)
{
    exchange *x = context;
    size_t room = ANSWER_BYTES_MAX - x->body.len, len = size * count;
    buf_add(&x->body, (str){bytes, len < room ? len : room});
    return len;
}

/* "name": "value" pairs, the names in small letters. */
static size_t take_field(char *bytes, size_t size, size_t count, void *context)
{
    exchange *x = context;
    str value = {bytes, size * count};
    str name = str_trim(str_cut(&value, ':'));
    if (!value.ptr || x->fields.len > ANSWER_BYTES_MAX)
        return size * count;
    char key[128];
    size_t len = name.len < sizeof key ? name.len : sizeof key - 1;
    for (size_t i = 0; i < len; i++)
        key[i] =
            (char)(name.ptr[i] >= 'A' && name.ptr[i] <= 'Z' ? name.ptr[i] | 0x20 : name.ptr[i]);
    buf_addz(&x->fields, x->fields.len > 0 ? "," : "");
    buf_add_json(&x->fields, (str){key, len});
    buf_addc(&x->fields, ':');
    buf_add_json(&x->fields, str_trim(value));
    return size * count;
}

static bool exchange_run(exchange *x, const metric_provider *p, str url, err *error)
{
    char address[URI_BYTES_MAX + 1];
    int64_t ns = p->timeout.set ? p->timeout.ns : 30 * DURATION_SECOND;
    curl_off_t took = 0;
    snprintf(address, sizeof address, "%.*s", STR_ARG(url));
    curl_easy_setopt(x->curl, CURLOPT_URL, address);
    curl_easy_setopt(x->curl, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(x->curl, CURLOPT_HTTPHEADER, x->headers);
    curl_easy_setopt(x->curl, CURLOPT_TIMEOUT_MS, (long)(ns / DURATION_MILLISECOND));
    curl_easy_setopt(x->curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(x->curl, CURLOPT_WRITEFUNCTION, take_body);
    curl_easy_setopt(x->curl, CURLOPT_WRITEDATA, x);
    curl_easy_setopt(x->curl, CURLOPT_HEADERFUNCTION, take_field);
    curl_easy_setopt(x->curl, CURLOPT_HEADERDATA, x);
    CURLcode code = curl_easy_perform(x->curl);
    if (code != CURLE_OK)
        return err_set(error, "%s", curl_easy_strerror(code));
    curl_easy_getinfo(x->curl, CURLINFO_RESPONSE_CODE, &x->status);
    curl_easy_getinfo(x->curl, CURLINFO_TOTAL_TIME_T, &took);
    x->took_ms = took / 1000;
    return true;
}

static bool exchange_open(exchange *x, const metric_provider *p)
{
    *x = (exchange){.curl = curl_easy_init(),
                    .body = BUF(2 * ANSWER_BYTES_MAX),
                    .fields = BUF(4 * ANSWER_BYTES_MAX)};
    for (size_t i = 0; x->curl && i < p->headers.len; i++) {
        char line[4096];
        snprintf(line, sizeof line, "%.*s: %.*s", STR_ARG(p->headers.at[i].key),
                 STR_ARG(p->headers.at[i].value));
        x->headers = curl_slist_append(x->headers, line);
    }
    return x->curl != NULL;
}

static void exchange_close(exchange *x)
{
    curl_slist_free_all(x->headers);
    curl_easy_cleanup(x->curl);
    buf_done(&x->body);
    buf_done(&x->fields);
}

/* ---- what conditions see as "result" ---- */

/* Without the closing brace. */
static yyjson_val *add_answer(buf *out, const exchange *x, arena *a)
{
    err unused;
    str text = arena_str(a, buf_str(&x->body));
    yyjson_val *json = text.len > 0 ? json_parse(a, text, &unused) : NULL;
    buf_addf(out, "{\"ok\":%s,\"statusCode\":%ld,\"duration\":%lld,\"body\":",
             x->status >= 200 && x->status < 300 ? "true" : "false", x->status,
             (long long)x->took_ms);
    buf_add_json(out, text.ptr ? text : STR_EMPTY);
    buf_addz(out, ",\"json\":");
    if (json)
        json_write(out, json);
    else
        buf_addz(out, "null");
    buf_addf(out, ",\"headers\":{%.*s}", STR_ARG(buf_str(&x->fields)));
    return json;
}

/* The value of a sample, [time, "text"]: a number if it is one. */
static void add_sample(buf *out, yyjson_val *sample)
{
    yyjson_val *text = yyjson_arr_get(sample, 1);
    char *end = NULL;
    if (!yyjson_is_str(text)) {
        buf_addz(out, "null");
        return;
    }
    double number = strtod(yyjson_get_str(text), &end);
    if (end && *end == 0 && number - number == 0) /* finite */
        buf_addf(out, "%.17g", number);
    else
        buf_add_json(out, (str){yyjson_get_str(text), yyjson_get_len(text)});
}

/* value: of the first series, its last point; results: of all. */
static void add_series(buf *out, yyjson_val *json)
{
    size_t index, count;
    yyjson_val *series, *all = yyjson_ptr_get(json, "/data/result");
    bool scalar = yyjson_is_arr(all) && !yyjson_is_obj(yyjson_arr_get_first(all));
    buf_addz(out, ",\"value\":");
    if (scalar)
        add_sample(out, all);
    else
        add_sample(out, yyjson_obj_get(yyjson_arr_get_first(all), "value"));
    buf_addz(out, ",\"results\":[");
    if (!scalar)
        yyjson_arr_foreach(all, index, count, series)
        {
            buf_addz(out, index > 0 ? ",{\"metric\":" : "{\"metric\":");
            yyjson_val *labels = yyjson_obj_get(series, "metric");
            if (labels)
                json_write(out, labels);
            else
                buf_addz(out, "{}");
            buf_addz(out, ",\"value\":");
            add_sample(out, yyjson_obj_get(series, "value"));
            buf_addc(out, '}');
        }
    buf_addc(out, ']');
}

static bool ask_http(const metric_provider *p, arena *a, buf *out, err *error)
{
    exchange x;
    char method[32];
    bool good = exchange_open(&x, p) || err_memory(error);
    snprintf(method, sizeof method, "%.*s", STR_ARG(p->method));
    if (good && p->body.len > 0) {
        curl_easy_setopt(x.curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)p->body.len);
        curl_easy_setopt(x.curl, CURLOPT_POSTFIELDS, p->body.ptr);
    }
    if (good)
        curl_easy_setopt(x.curl, CURLOPT_CUSTOMREQUEST, method[0] ? method : "GET");
    good = good && exchange_run(&x, p, p->url, error);
    if (good) {
        add_answer(out, &x, a);
        buf_addc(out, '}');
    }
    exchange_close(&x);
    return good;
}

static bool ask_prometheus(const metric_provider *p, arena *a, buf *out, err *error)
{
    exchange x;
    scoped(buf_done) buf url = BUF(URI_BYTES_MAX);
    str base = p->address;
    while (base.len > 0 && base.ptr[base.len - 1] == '/')
        base.len--;
    buf_addf(&url, "%.*s/api/v1/query?query=", STR_ARG(base));
    uri_encode(&url, p->query);
    bool good = (exchange_open(&x, p) && !url.failed) || err_memory(error);
    good = good && exchange_run(&x, p, buf_str(&url), error);
    if (good) {
        add_series(out, add_answer(out, &x, a));
        buf_addc(out, '}');
    }
    exchange_close(&x);
    return good;
}

/* ---- until all are judged ---- */

typedef struct metric_run {
    const verification_metric *metric;
    metric_state state;
    metric_verdict verdict;
    int64_t due_ms;
} metric_run;

static int64_t sleep_ms(const verification_metric *m)
{
    return m->provider.type == PROVIDER_SLEEP ? m->provider.duration_seconds * 1000 : 0;
}

/* False with an error when there is no measurement. */
static bool ask(const metric_provider *p, arena *a, buf *out, err *error)
{
    switch (p->type) {
    case PROVIDER_HTTP: return ask_http(p, a, out, error);
    case PROVIDER_PROMETHEUS: return ask_prometheus(p, a, out, error);
    case PROVIDER_SLEEP: /* it has slept when it is due */
        buf_addz(out, "{\"ok\":true}");
        return true;
    }
    return false;
}

static void say(const measuring *m, const metric_run *r, const char *what, const char *why)
{
    char line[LIMIT_ERR_BYTES + 256];
    int len = snprintf(line, sizeof line, "[drover: metric %.*s, measurement %lld: %s%s%s]\n",
                       STR_ARG(r->metric->name), (long long)r->state.measured, what,
                       why[0] ? ": " : "", why);
    m->say(m->context, (str){line, len < (int)sizeof line ? (size_t)len : sizeof line - 1});
}

static void measure_one(const measuring *m, metric_run *r)
{
    err error = {.text = ""};
    arena *a = arena_new(0);
    buf result = BUF(RESULT_BYTES_MAX);
    bool answered = a && ask(&r->metric->provider, a, &result, &error) && !result.failed;
    r->due_ms = m->now_ms() + r->metric->interval_seconds * 1000 + sleep_ms(r->metric);
    if (answered) {
        int64_t failures = r->state.failures, passes = r->state.passes;
        r->verdict = metric_judge(r->metric, &r->state, buf_str(&result), &error);
        say(m, r,
            r->state.failures > failures ? "failed"
            : r->state.passes > passes   ? "passed"
                                         : "inconclusive",
            error.text);
    } else {
        say(m, r, "no answer, asked again", error.text);
    }
    buf_done(&result);
    arena_free(a);
}

static metric_run *next_due(metric_run *runs, size_t count)
{
    metric_run *next = NULL;
    for (size_t i = 0; i < count; i++)
        if (runs[i].verdict == METRIC_RUNNING && (!next || runs[i].due_ms < next->due_ms))
            next = &runs[i];
    return next;
}

str measure_all(const measuring *m, arena *a)
{
    size_t count = m->what->metrics.len;
    metric_run *runs = ARENA_ARRAY(a, count + 1, metric_run);
    if (!runs)
        return STR("memory ran out");
    for (size_t i = 0; i < count; i++) {
        const verification_metric *metric = &m->what->metrics.at[i];
        runs[i] = (metric_run){.metric = metric, .due_ms = m->now_ms() + sleep_ms(metric)};
    }
    for (metric_run *r = next_due(runs, count); r; r = next_due(runs, count)) {
        if (r->due_ms > m->deadline_ms)
            return arena_printf(a, "metric %.*s was not measured in time",
                                STR_ARG(r->metric->name));
        if (!m->wait(m->context, r->due_ms))
            return STR("cancelled");
        measure_one(m, r);
        if (r->verdict == METRIC_FAILED)
            return arena_printf(a, "metric %.*s failed, %lld of %lld measurements",
                                STR_ARG(r->metric->name), (long long)r->state.failures,
                                (long long)r->state.measured);
    }
    return STR_EMPTY;
}
