/* SPDX-License-Identifier: Apache-2.0 */
/* Writes against a server that is made up: what is sent, what an answer means, and by which rules
 * writes wait, are repeated and end. */
#include "support/check.h"

#include "kube/write_queue.h"

/* ---- one write ---- */

static void check_request(kube_write w, const char *path, const char *body)
{
    buf found_path = BUF(4096), found_body = BUF(4096);
    err error = {0};
    check_msg(write_check(&w, &error), "%s", error.text);
    assert_true(write_path(&w, &found_path));
    assert_true(write_body(&w, &found_body));
    check_text(buf_str(&found_path), path);
    check_text(buf_str(&found_body), body);
    buf_done(&found_path);
    buf_done(&found_body);
}

#define NODES STR("/api/v1/nodes")
#define PODS STR("/api/v1/namespaces/n/pods")

static void test_requests(void **state)
{
    (void)state;
    check_request((kube_write){.verb = WRITE_READ, .collection = NODES, .name = STR("a")},
                  "/api/v1/nodes/a", "");
    check_request((kube_write){.verb = WRITE_READ, .collection = STR("/apis"), .name = STR_EMPTY},
                  "/apis", "");
    check_request((kube_write){.verb = WRITE_CREATE,
                               .collection = PODS,
                               .name = STR("a"),
                               .manager = STR("drover"),
                               .body = STR("{}")},
                  "/api/v1/namespaces/n/pods?fieldManager=drover", "{}");
    check_request((kube_write){.verb = WRITE_MERGE,
                               .collection = NODES,
                               .name = STR("a"),
                               .subresource = STR("status"),
                               .version = STR("7"),
                               .body = STR("{\"status\":{},\"metadata\":{\"labels\":{\"x\":null},"
                                           "\"resourceVersion\":\"6\"}}")},
                  "/api/v1/nodes/a/status",
                  "{\"metadata\":{\"resourceVersion\":\"7\",\"labels\":{\"x\":null}},"
                  "\"status\":{}}");
    check_request((kube_write){.verb = WRITE_STRATEGIC,
                               .collection = NODES,
                               .name = STR("a"),
                               .uid = STR("u"),
                               .body = STR("{}")},
                  "/api/v1/nodes/a", "{\"metadata\":{\"uid\":\"u\"}}");
    check_request((kube_write){.verb = WRITE_APPLY,
                               .collection = NODES,
                               .name = STR("a"),
                               .manager = STR("m"),
                               .force = true,
                               .anyhow = true,
                               .body = STR("{\"x\":1}")},
                  "/api/v1/nodes/a?fieldManager=m&force=true", "{\"x\":1}");
    check_request((kube_write){.verb = WRITE_JSON_PATCH,
                               .collection = NODES,
                               .name = STR("a"),
                               .version = STR("7"),
                               .uid = STR("u"),
                               .body = STR(" [ {\"op\":\"remove\",\"path\":\"/x\"}]")},
                  "/api/v1/nodes/a",
                  "[{\"op\":\"test\",\"path\":\"/metadata/uid\",\"value\":\"u\"},"
                  "{\"op\":\"test\",\"path\":\"/metadata/resourceVersion\",\"value\":\"7\"},"
                  "{\"op\":\"remove\",\"path\":\"/x\"}]");
    check_request((kube_write){.verb = WRITE_DELETE,
                               .collection = NODES,
                               .name = STR("a"),
                               .uid = STR("u"),
                               .version = STR("7"),
                               .propagation = WRITE_FOREGROUND},
                  "/api/v1/nodes/a",
                  "{\"propagationPolicy\":\"Foreground\",\"preconditions\":{\"uid\":\"u\","
                  "\"resourceVersion\":\"7\"}}");
    check_request((kube_write){.verb = WRITE_EVICT,
                               .collection = PODS,
                               .name = STR("a"),
                               .uid = STR("u"),
                               .has_grace = true},
                  "/api/v1/namespaces/n/pods/a/eviction",
                  "{\"apiVersion\":\"policy/v1\",\"kind\":\"Eviction\",\"metadata\":{"
                  "\"name\":\"a\",\"namespace\":\"n\"},\"deleteOptions\":{"
                  "\"propagationPolicy\":\"Background\",\"gracePeriodSeconds\":0,"
                  "\"preconditions\":{\"uid\":\"u\"}}}");
}

static void test_precondition_is_needed(void **state)
{
    (void)state;
    err error;
    kube_write w = {.verb = WRITE_MERGE, .collection = NODES, .name = STR("a"), .body = STR("{}")};
    assert_false(write_check(&w, &error));
    check_err(error, "a write to /api/v1/nodes/a has no precondition");
    w.verb = WRITE_JSON_PATCH;
    w.body = STR("[{\"op\":\"add\",\"path\":\"/x\",\"value\":1}]");
    assert_false(write_check(&w, &error));
    assert_false(write_repeatable(&w));
    w.body = STR("[{\"op\":\"test\",\"path\":\"/x\",\"value\":1}]");
    assert_true(write_check(&w, &error));
    assert_true(write_repeatable(&w));
    w = (kube_write){.verb = WRITE_DELETE, .collection = NODES, .name = STR("a")};
    assert_false(write_check(&w, &error));
    w.uid = STR("u");
    assert_true(write_check(&w, &error));
    w.body = STR("{}");
    assert_false(write_check(&w, &error));
    w = (kube_write){.verb = WRITE_EVICT, .collection = PODS, .name = STR("a")};
    assert_false(write_check(&w, &error));
    w = (kube_write){.verb = WRITE_CREATE, .collection = PODS, .body = STR("{}")};
    assert_false(write_check(&w, &error));
    w = (kube_write){.verb = WRITE_APPLY,
                     .collection = PODS,
                     .name = STR("a"),
                     .uid = STR("u"),
                     .body = STR("{}")};
    assert_false(write_check(&w, &error));
    check_err(error, "an apply of a needs a manager");
}

/* ---- answers ---- */

#define BUDGET(text)                                                                               \
    "{\"message\":\"Cannot evict pod\",\"reason\":\"TooManyRequests\",\"details\":{\"causes\":["   \
    "{\"reason\":\"DisruptionBudget\",\"message\":\"" text "\"}]}}"

static void test_answers(void **state)
{
    (void)state;
    static const struct {
        write_verb verb;
        int status;
        const char *body;
        write_outcome_kind kind;
        bool maybe;
    } rows[] = {
        {WRITE_CREATE, 201, "{}", WRITE_DONE, false},
        {WRITE_MERGE, 200, "{}", WRITE_DONE, false},
        {WRITE_DELETE, 202, "{}", WRITE_DONE, false},
        {WRITE_CREATE, 409, "{\"reason\":\"AlreadyExists\"}", WRITE_EXISTS, false},
        {WRITE_CREATE, 409, "{\"reason\":\"Conflict\"}", WRITE_CONFLICT, false},
        {WRITE_UPDATE, 409, "{\"reason\":\"Conflict\"}", WRITE_CONFLICT, false},
        {WRITE_APPLY, 409, "", WRITE_CONFLICT, false},
        {WRITE_APPLY, 500, "{\"message\":\"failed to create typed patch object (a/b)\"}",
         WRITE_REFUSED, false},
        {WRITE_APPLY, 500, "{\"message\":\"etcd is away\"}", WRITE_LATER, true},
        {WRITE_MERGE, 500, "{\"message\":\"etcdserver: request is too large\"}", WRITE_REFUSED,
         false},
        {WRITE_MERGE, 500, "{\"message\":\"trying to send message larger than max (3 vs. 2)\"}",
         WRITE_REFUSED, false},
        {WRITE_UPDATE, 412, "{}", WRITE_CONFLICT, false},
        {WRITE_JSON_PATCH, 422, "{\"reason\":\"Invalid\",\"details\":{}}", WRITE_CONFLICT, false},
        {WRITE_JSON_PATCH, 422, "{\"details\":{\"causes\":[{\"field\":\"spec\"}]}}", WRITE_REFUSED,
         false},
        {WRITE_MERGE, 422, "{\"details\":{\"causes\":[{\"field\":\"metadata.uid\"}]}}",
         WRITE_CONFLICT, false},
        {WRITE_MERGE, 422, "{\"details\":{}}", WRITE_REFUSED, false},
        {WRITE_MERGE, 404, "{}", WRITE_GONE, false},
        {WRITE_DELETE, 404, "{}", WRITE_GONE, false},
        {WRITE_CREATE, 404, "{\"message\":\"namespaces not found\"}", WRITE_REFUSED, false},
        {WRITE_CREATE, 400, "{}", WRITE_REFUSED, false},
        {WRITE_CREATE, 403, "{}", WRITE_REFUSED, false},
        {WRITE_CREATE, 413, "no JSON", WRITE_REFUSED, false},
        {WRITE_CREATE, 401, "{}", WRITE_LATER, false},
        {WRITE_CREATE, 429, "{}", WRITE_LATER, false},
        {WRITE_EVICT, 429, "{}", WRITE_LATER, false},
        {WRITE_CREATE, 500, "{}", WRITE_LATER, true},
        {WRITE_CREATE, 503, "", WRITE_LATER, true},
        {WRITE_CREATE, 504, "", WRITE_LATER, true},
        {WRITE_EVICT, 429, BUDGET("The disruption budget b needs 1"), WRITE_BLOCKED, false},
        {WRITE_EVICT, 429, BUDGET("words of another server"), WRITE_BLOCKED, false},
        {WRITE_EVICT, 500, "{\"message\":\"has more than one PodDisruptionBudget, which\"}",
         WRITE_BLOCKED, false},
        {WRITE_EVICT, 500, "{\"message\":\"\"}", WRITE_LATER, true},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        yyjson_doc *body = yyjson_read(rows[i].body, strlen(rows[i].body), 0);
        write_answer answer = {.status = rows[i].status, .body = yyjson_doc_get_root(body)};
        write_outcome found = write_judge(rows[i].verb, &answer);
        check_msg(found.kind == rows[i].kind && found.maybe == rows[i].maybe, "row %zu: %s", i,
                  write_outcome_text(found.kind));
        yyjson_doc_free(body);
    }
}

/* An object that is not there has a name in the answer; a kind that is not has none. */
static void test_answers_of_no_path(void **state)
{
    (void)state;
    static const struct {
        write_verb verb;
        int status;
        const char *body;
        bool no_path;
    } rows[] = {
        {WRITE_READ, 404, "404 page not found", true},
        {WRITE_APPLY, 404, "{\"reason\":\"NotFound\",\"details\":{}}", true},
        {WRITE_READ, 404, "{\"reason\":\"NotFound\",\"details\":{\"name\":\"a\"}}", false},
        {WRITE_CREATE, 404, "{\"details\":{\"name\":\"space\",\"kind\":\"namespaces\"}}", false},
        {WRITE_READ, 403, "{\"details\":{}}", false},
        {WRITE_READ, 200, "{}", false},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        yyjson_doc *body = yyjson_read(rows[i].body, strlen(rows[i].body), 0);
        write_answer answer = {.status = rows[i].status, .body = yyjson_doc_get_root(body)};
        check_msg(write_judge(rows[i].verb, &answer).no_path == rows[i].no_path, "row %zu", i);
        yyjson_doc_free(body);
    }
}

static void test_answers_in_words(void **state)
{
    (void)state;
    const char text[] = BUDGET("The disruption budget keep-one needs 2 healthy pods and has 1");
    yyjson_doc *body = yyjson_read(text, strlen(text), 0);
    write_answer answer = {.status = 429, .retry_after_s = 10, .body = yyjson_doc_get_root(body)};
    write_outcome found = write_judge(WRITE_EVICT, &answer);
    assert_string_equal(found.budget, "keep-one");
    assert_string_equal(found.message,
                        "The disruption budget keep-one needs 2 healthy pods and has 1");
    assert_int_equal(found.wait_ms, 10000);
    /* Of another verb it is nothing but a 429. */
    assert_int_equal(write_judge(WRITE_CREATE, &answer).kind, WRITE_LATER);
    yyjson_doc_free(body);
    answer = (write_answer){.status = 429, .retry_after_s = INT64_MAX};
    assert_int_equal(write_judge(WRITE_CREATE, &answer).wait_ms, WRITE_RETRY_AFTER_MAX_S * 1000);
    answer.retry_after_s = -5;
    assert_int_equal(write_judge(WRITE_CREATE, &answer).wait_ms, 0);
    /* What is wrong stands at the end, however much of the object a server shows before. */
    char large[2048];
    snprintf(large, sizeof large,
             "{\"message\":\"Job \\\"x\\\" is invalid: %01500d: field is immutable\"}", 0);
    body = yyjson_read(large, strlen(large), 0);
    answer = (write_answer){.status = 422, .body = yyjson_doc_get_root(body)};
    found = write_judge(WRITE_APPLY, &answer);
    check_has_at(str_of(found.message), STR("Job \"x\" is invalid: 000"), __FILE__, __LINE__);
    check_has_at(str_of(found.message), STR("000: field is immutable"), __FILE__, __LINE__);
    yyjson_doc_free(body);
    answer = (write_answer){.result = CONNECTION_CUT, .problem = STR("reset")};
    found = write_judge(WRITE_CREATE, &answer);
    assert_int_equal(found.kind, WRITE_AMBIGUOUS);
    assert_string_equal(found.message, "reset");
    answer.result = CONNECTION_UNSENT;
    found = write_judge(WRITE_CREATE, &answer);
    assert_int_equal(found.kind, WRITE_LATER);
    assert_false(found.maybe);
    answer.result = CONNECTION_BARRED;
    assert_int_equal(write_judge(WRITE_CREATE, &answer).kind, WRITE_BARRED);
}

/* ---- the queue ---- */

typedef struct talk {
    write_queue *queue;
    int64_t now_ms;
    buf told; /* "name:outcome " */
    bool is_ours;
    const char *next; /* added by the handler once it is told */
} talk;

typedef struct told {
    talk *talk;
    const char *name;
} told;

static void add(talk *t, kube_write w);

static void done(void *context, const write_outcome *outcome, yyjson_val *object)
{
    told *one = context;
    talk *t = one->talk;
    buf_addf(&t->told, "%s:%s%s ", one->name, write_outcome_text(outcome->kind), object ? "+" : "");
    mem_free(one);
    if (t->next) {
        const char *name = t->next;
        t->next = NULL;
        add(t, (kube_write){.verb = WRITE_DELETE, .name = str_of(name), .anyhow = true});
    }
}

static bool is_ours(void *context, yyjson_val *object)
{
    const told *one = context;
    assert_non_null(object);
    return one->talk->is_ours;
}

static void add(talk *t, kube_write w)
{
    told *one = mem_alloc(sizeof *one);
    assert_non_null(one);
    *one = (told){t, w.name.ptr};
    w.collection = PODS;
    err error = {0};
    check_msg(write_queue_add(t->queue, &w, (write_handler){one, done, is_ours}, &error), "%s",
              error.text);
}

static void add_create(talk *t, const char *name)
{
    add(t, (kube_write){.verb = WRITE_CREATE, .name = str_of(name), .body = STR("{}")});
}

static void add_patch(talk *t, const char *name)
{
    add(t, (kube_write){
               .verb = WRITE_MERGE, .name = str_of(name), .body = STR("{}"), .version = STR("1")});
}

static void begin(talk *t)
{
    *t = (talk){.queue = write_queue_new(1), .now_ms = 1000, .told = BUF(1 << 20)};
    assert_non_null(t->queue);
}

static void finish(talk *t)
{
    assert_int_equal(write_queue_waiting(t->queue), 0);
    assert_int_equal(write_queue_running(t->queue), 0);
    write_queue_free(t->queue);
    buf_done(&t->told);
}

static size_t sent(talk *t, const char *method, const char *path)
{
    write_ask ask = {0};
    assert_int_equal(write_queue_next(t->queue, t->now_ms, &ask), WRITE_ASK_SEND);
    assert_string_equal(ask.request.method, method);
    check_text(ask.request.path, path);
    return ask.slot;
}

/* Nothing is to be sent now; how long it waits. */
static int64_t waits_ms(talk *t)
{
    write_ask ask = {0};
    assert_int_equal(write_queue_next(t->queue, t->now_ms, &ask), WRITE_ASK_WAIT);
    return ask.at_ms == INT64_MAX ? INT64_MAX : ask.at_ms - t->now_ms;
}

static void answer(talk *t, size_t slot, int status, const char *body)
{
    yyjson_doc *parsed = yyjson_read(body, strlen(body), 0);
    write_answer a = {.status = status, .body = yyjson_doc_get_root(parsed)};
    write_queue_answer(t->queue, slot, &a, t->now_ms);
    yyjson_doc_free(parsed);
}

static void cut(talk *t, size_t slot)
{
    write_answer a = {.result = CONNECTION_CUT, .problem = STR("reset")};
    write_queue_answer(t->queue, slot, &a, t->now_ms);
}

/* The next request, once its time has come; sooner than most_ms from now. */
static size_t sent_later(talk *t, const char *method, const char *path, int64_t most_ms)
{
    int64_t wait = waits_ms(t);
    check_msg(wait > 0 && wait <= most_ms, "waits %lld ms", (long long)wait);
    t->now_ms += wait;
    return sent(t, method, path);
}

#define EXISTS "{\"reason\":\"AlreadyExists\"}"
#define PATH(name) "/api/v1/namespaces/n/pods/" name
#define PODS_PATH "/api/v1/namespaces/n/pods"

static void test_one_at_a_time(void **state)
{
    (void)state;
    talk t;
    begin(&t);
    add_patch(&t, "a");
    add(&t, (kube_write){.verb = WRITE_DELETE, .name = STR("a"), .uid = STR("u")});
    add(&t, (kube_write){.verb = WRITE_READ, .name = STR("a")});
    add_patch(&t, "b");
    size_t a = sent(&t, "PATCH", PATH("a")), b = sent(&t, "PATCH", PATH("b"));
    assert_int_equal(waits_ms(&t), WRITE_TIMEOUT_MS);
    answer(&t, b, 200, "{}");
    /* An error of the server does not let the next one pass. */
    answer(&t, a, 503, "");
    a = sent_later(&t, "PATCH", PATH("a"), WRITE_BACKOFF_FIRST_MS);
    answer(&t, a, 200, "{}");
    a = sent(&t, "DELETE", PATH("a"));
    answer(&t, a, 200, "{\"kind\":\"Status\"}"); /* no object */
    a = sent(&t, "GET", PATH("a"));
    answer(&t, a, 404, "{}");
    assert_true(waits_ms(&t) == INT64_MAX);
    check_text(buf_str(&t.told), "b:done+ a:done+ a:done a:gone ");
    write_counts counts = write_queue_count(t.queue);
    assert_int_equal(counts.sent, 5);
    assert_int_equal(counts.ended[WRITE_DONE], 3);
    finish(&t);
}

static void test_who_is_told_may_add(void **state)
{
    (void)state;
    talk t;
    begin(&t);
    t.next = "a";
    add_patch(&t, "a");
    answer(&t, sent(&t, "PATCH", PATH("a")), 200, "{}");
    answer(&t, sent(&t, "DELETE", PATH("a")), 200, "{}");
    check_text(buf_str(&t.told), "a:done+ a:done+ ");
    finish(&t);
}

static void test_bounded(void **state)
{
    (void)state;
    talk t;
    begin(&t);
    static char names[WRITE_RUNNING_MAX + 5][8];
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        snprintf(names[i], sizeof names[i], "p%zu", i);
        add_create(&t, names[i]);
    }
    for (size_t i = 0; i < WRITE_RUNNING_MAX; i++)
        assert_int_equal(sent(&t, "POST", PODS_PATH), i);
    assert_int_equal(waits_ms(&t), WRITE_TIMEOUT_MS);
    for (size_t i = 0; i < 5; i++) {
        answer(&t, 7, 201, "{}");
        assert_int_equal(sent(&t, "POST", PODS_PATH), 7);
    }
    for (size_t i = 0; i < WRITE_RUNNING_MAX; i++)
        answer(&t, i, 201, "{}");
    finish(&t);
}

static void test_retry_after_is_obeyed(void **state)
{
    (void)state;
    talk t;
    begin(&t);
    add_create(&t, "a");
    size_t slot = sent(&t, "POST", PODS_PATH);
    write_answer busy = {.status = 429, .retry_after_s = 7};
    write_queue_answer(t.queue, slot, &busy, t.now_ms);
    assert_int_equal(waits_ms(&t), 7000);
    t.now_ms += 7000;
    slot = sent(&t, "POST", PODS_PATH);
    /* A 429 was not carried out: the object that exists is another's. */
    t.is_ours = true;
    answer(&t, slot, 409, EXISTS);
    check_text(buf_str(&t.told), "a:exists ");
    /* Longer than patience lasts: told at once. */
    buf_clear(&t.told);
    add_create(&t, "b");
    busy.retry_after_s = 3600;
    write_queue_answer(t.queue, sent(&t, "POST", PODS_PATH), &busy, t.now_ms);
    check_text(buf_str(&t.told), "b:later ");
    finish(&t);
}

static void test_backoff(void **state)
{
    (void)state;
    talk t;
    begin(&t);
    add_create(&t, "a");
    int64_t first = t.now_ms, most = WRITE_BACKOFF_FIRST_MS;
    size_t slot = sent(&t, "POST", PODS_PATH), tries = 1;
    for (;; tries++) {
        answer(&t, slot, 500, "{}");
        if (write_queue_waiting(t.queue) == 0)
            break;
        int64_t wait = waits_ms(&t);
        check_msg(wait >= most / 2 && wait <= most, "try %zu waits %lld", tries, (long long)wait);
        most = most * 2 < WRITE_BACKOFF_MAX_MS ? most * 2 : WRITE_BACKOFF_MAX_MS;
        t.now_ms += wait;
        slot = sent(&t, "POST", PODS_PATH);
    }
    assert_true(t.now_ms - first <= WRITE_PATIENCE_MS);
    assert_true(tries > 8 && tries < 20);
    check_text(buf_str(&t.told), "a:ambiguous ");
    finish(&t);
}

/* A create that may have happened: repeated; what exists then is looked at. */
static void ambiguous_create(bool is_mine, int read_status, const char *expected)
{
    talk t;
    begin(&t);
    t.is_ours = is_mine;
    add_create(&t, "a");
    add_patch(&t, "a");
    cut(&t, sent(&t, "POST", PODS_PATH));
    answer(&t, sent_later(&t, "POST", PODS_PATH, WRITE_BACKOFF_FIRST_MS), 409, EXISTS);
    answer(&t, sent(&t, "GET", PATH("a")), read_status, "{}");
    check_text(buf_str(&t.told), expected);
    answer(&t, sent(&t, "PATCH", PATH("a")), 200, "{}");
    finish(&t);
}

static void test_ambiguous_create(void **state)
{
    (void)state;
    ambiguous_create(true, 200, "a:done+ ");
    ambiguous_create(false, 200, "a:exists+ ");
    ambiguous_create(true, 404, "a:gone ");
    ambiguous_create(true, 403, "a:ambiguous ");
}

static void test_ambiguous_patch(void **state)
{
    (void)state;
    talk t;
    begin(&t);
    t.is_ours = true;
    add_patch(&t, "a");
    cut(&t, sent(&t, "PATCH", PATH("a")));
    answer(&t, sent_later(&t, "PATCH", PATH("a"), WRITE_BACKOFF_FIRST_MS), 409, "{}");
    /* The read is repeated, too. */
    answer(&t, sent(&t, "GET", PATH("a")), 503, "");
    answer(&t, sent_later(&t, "GET", PATH("a"), WRITE_BACKOFF_MAX_MS), 200, "{}");
    check_text(buf_str(&t.told), "a:done+ ");
    buf_clear(&t.told);
    /* Without doubt a conflict is a conflict. */
    add_patch(&t, "a");
    answer(&t, sent(&t, "PATCH", PATH("a")), 409, "{}");
    check_text(buf_str(&t.told), "a:conflict ");
    buf_clear(&t.told);
    /* The first of the two had no effect. */
    add_patch(&t, "a");
    answer(&t, sent(&t, "PATCH", PATH("a")), 504, "{}");
    answer(&t, sent_later(&t, "PATCH", PATH("a"), WRITE_BACKOFF_FIRST_MS), 200, "{}");
    check_text(buf_str(&t.told), "a:done+ ");
    finish(&t);
}

static void test_not_repeated(void **state)
{
    (void)state;
    talk t;
    begin(&t);
    add(&t, (kube_write){.verb = WRITE_JSON_PATCH,
                         .name = STR("a"),
                         .anyhow = true,
                         .body = STR("[{\"op\":\"add\",\"path\":\"/x/-\",\"value\":1}]")});
    cut(&t, sent(&t, "PATCH", PATH("a")));
    add(&t, (kube_write){.verb = WRITE_EVICT, .name = STR("b"), .uid = STR("u")});
    answer(&t, sent(&t, "POST", PATH("b/eviction")), 429, BUDGET("The disruption budget x needs"));
    add_create(&t, "c");
    answer(&t, sent(&t, "POST", PODS_PATH), 403, "{}");
    add(&t, (kube_write){
                .verb = WRITE_MERGE, .name = STR("d"), .body = STR("[]"), .version = STR("1")});
    assert_true(waits_ms(&t) == INT64_MAX);
    check_text(buf_str(&t.told), "a:ambiguous b:blocked c:refused d:refused ");
    finish(&t);
}

static void test_credentials_are_fetched_once(void **state)
{
    (void)state;
    talk t;
    begin(&t);
    add_create(&t, "a");
    answer(&t, sent(&t, "POST", PODS_PATH), 401, "{}");
    answer(&t, sent_later(&t, "POST", PODS_PATH, WRITE_BACKOFF_FIRST_MS), 401, "{}");
    check_text(buf_str(&t.told), "a:refused ");
    finish(&t);
}

static void test_time_out(void **state)
{
    (void)state;
    talk t;
    begin(&t);
    add_create(&t, "a");
    size_t slot = sent(&t, "POST", PODS_PATH);
    t.now_ms += WRITE_TIMEOUT_MS;
    write_ask ask = {0};
    assert_int_equal(write_queue_next(t.queue, t.now_ms, &ask), WRITE_ASK_ABORT);
    assert_int_equal(ask.slot, slot);
    cut(&t, slot);
    answer(&t, sent_later(&t, "POST", PODS_PATH, WRITE_BACKOFF_FIRST_MS), 201, "{}");
    check_text(buf_str(&t.told), "a:done+ ");
    finish(&t);
}

/* Who no longer leads sends nothing, and says whether something was. */
static void test_barred(void **state)
{
    (void)state;
    talk t;
    begin(&t);
    write_answer barred = {.result = CONNECTION_BARRED};
    add_create(&t, "a");
    add_patch(&t, "a");
    write_queue_answer(t.queue, sent(&t, "POST", PODS_PATH), &barred, t.now_ms);
    cut(&t, sent(&t, "PATCH", PATH("a")));
    size_t slot = sent_later(&t, "PATCH", PATH("a"), WRITE_BACKOFF_FIRST_MS);
    write_queue_answer(t.queue, slot, &barred, t.now_ms);
    check_text(buf_str(&t.told), "a:barred a:ambiguous ");
    finish(&t);
}

/* ---- against a server that does anything ---- */

#define OBJECTS 12
#define ROUNDS 4000

typedef struct world {
    write_queue *queue;
    rng random;
    int64_t now_ms;
    int versions[OBJECTS];                 /* of the server */
    size_t begun[OBJECTS], ended[OBJECTS]; /* writes, in order */
    bool running[OBJECTS];
    size_t effects, dones;
} world;

typedef struct change {
    world *world;
    size_t object, number;
    bool effect; /* it has taken effect */
} change;

static void changed(void *context, const write_outcome *outcome, yyjson_val *object)
{
    (void)object;
    change *c = context;
    world *w = c->world;
    check_msg(w->ended[c->object] == c->number, "object %zu: out of order", c->object);
    w->ended[c->object]++;
    switch (outcome->kind) {
    case WRITE_DONE:
        assert_true(c->effect);
        w->dones++;
        break;
    case WRITE_AMBIGUOUS: break;
    case WRITE_EXISTS:
    case WRITE_CONFLICT:
    case WRITE_GONE:
    case WRITE_REFUSED:
    case WRITE_BLOCKED:
    case WRITE_LATER:
    case WRITE_BARRED:
        check_msg(!c->effect, "%s, but it took effect", write_outcome_text(outcome->kind));
    }
    mem_free(c);
}

static bool was_changed(void *context, yyjson_val *object)
{
    (void)object;
    const change *c = context;
    return c->effect;
}

typedef struct transfer {
    change *change;
    bool read;
} transfer;

static change
    *of_object[OBJECTS]; /* whose write is first in line, found by the path's last digits */

static void add_change(world *w)
{
    size_t o = rng_below(&w->random, OBJECTS);
    if (w->begun[o] != w->ended[o])
        return; /* the next one needs the version that this one makes */
    change *c = mem_alloc(sizeof *c);
    assert_non_null(c);
    *c = (change){w, o, w->begun[o]++, false};
    of_object[o] = c;
    char name[16], version[16];
    snprintf(name, sizeof name, "x%02zu", o);
    snprintf(version, sizeof version, "%d", w->versions[o]);
    kube_write write = {.verb = WRITE_MERGE,
                        .collection = NODES,
                        .name = str_of(name),
                        .version = str_of(version),
                        .body = STR("{\"x\":1}")};
    assert_true(write_queue_add(w->queue, &write, (write_handler){c, changed, was_changed}, NULL));
}

/* The server takes a write whose version fits, and may still lose the answer. */
static void serve(world *w, size_t slot, transfer t)
{
    size_t o = t.change->object;
    static const char text[] = "{}";
    yyjson_doc *parsed = yyjson_read(text, sizeof text - 1, 0);
    write_answer a = {.status = 200, .body = yyjson_doc_get_root(parsed)};
    size_t luck = rng_below(&w->random, 10);
    bool acts = luck < 6 && !t.read;
    if (acts && t.change->effect) {
        a.status = 409; /* its version is old now */
    } else if (acts) {
        t.change->effect = true;
        w->versions[o]++;
        w->effects++;
    }
    if (luck >= 4)
        a = (write_answer){.result = luck < 8 ? CONNECTION_CUT : CONNECTION_UNSENT};
    if (luck == 5)
        a = (write_answer){.status = 504};
    if (luck == 9)
        a = (write_answer){.status = 429, .retry_after_s = (int64_t)rng_below(&w->random, 3)};
    write_queue_answer(w->queue, slot, &a, w->now_ms);
    yyjson_doc_free(parsed);
}

static void test_any_server(void **state)
{
    (void)state;
    world w = {.queue = write_queue_new(3), .random = rng_seeded(), .now_ms = 5};
    transfer running[WRITE_RUNNING_MAX] = {0};
    assert_non_null(w.queue);
    for (size_t round = 0; round < ROUNDS || write_queue_waiting(w.queue) > 0; round++) {
        write_ask ask = {0};
        if (round < ROUNDS)
            add_change(&w);
        switch (write_queue_next(w.queue, w.now_ms, &ask)) {
        case WRITE_ASK_SEND: {
            size_t at = str_find(ask.request.path, STR("/x")) + 2;
            size_t o = (size_t)strtoul(ask.request.path.ptr + at, NULL, 10);
            check_msg(!w.running[o], "two writes of object %zu at once", o);
            w.running[o] = true;
            running[ask.slot] = (transfer){of_object[o], strcmp(ask.request.method, "GET") == 0};
            break;
        }
        case WRITE_ASK_ABORT: fail_msg("nothing takes that long here");
        case WRITE_ASK_WAIT:
            for (size_t i = 0; i < WRITE_RUNNING_MAX; i++)
                if (running[i].change && (ask.at_ms - w.now_ms > 1000 || rng_below(&w.random, 3))) {
                    transfer t = running[i];
                    running[i] = (transfer){0};
                    w.running[t.change->object] = false;
                    serve(&w, i, t);
                }
            w.now_ms += 1 + (int64_t)rng_below(&w.random, 500);
        }
        check_msg(round < 100 * ROUNDS, "it does not end");
    }
    check_msg(w.dones > 30 && w.effects >= w.dones, "%zu done, %zu effects", w.dones, w.effects);
    write_queue_free(w.queue);
}

static bool with_memory(void *context)
{
    (void)context;
    write_queue *q = write_queue_new(1);
    bool good = q;
    kube_write w = {.verb = WRITE_DELETE, .collection = PODS, .name = STR("a"), .anyhow = true};
    for (size_t i = 0; good && i < 3; i++)
        good = write_queue_add(q, &w, (write_handler){0}, NULL);
    write_queue_free(q);
    return good;
}

static void test_memory(void **state)
{
    (void)state;
    check_each_allocation_fails(with_memory, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_requests),
        cmocka_unit_test(test_precondition_is_needed),
        cmocka_unit_test(test_answers),
        cmocka_unit_test(test_answers_of_no_path),
        cmocka_unit_test(test_answers_in_words),
        cmocka_unit_test(test_one_at_a_time),
        cmocka_unit_test(test_who_is_told_may_add),
        cmocka_unit_test(test_bounded),
        cmocka_unit_test(test_retry_after_is_obeyed),
        cmocka_unit_test(test_backoff),
        cmocka_unit_test(test_ambiguous_create),
        cmocka_unit_test(test_ambiguous_patch),
        cmocka_unit_test(test_not_repeated),
        cmocka_unit_test(test_credentials_are_fetched_once),
        cmocka_unit_test(test_time_out),
        cmocka_unit_test(test_barred),
        cmocka_unit_test(test_any_server),
        cmocka_unit_test(test_memory),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
