/* SPDX-License-Identifier: Apache-2.0 */
/* Events about objects: written once, counted when they happen again, and never too many. */
#include "support/check.h"

#include "kube/events.h"

#define WALL(seconds) ((moment){1000000000 + (seconds), 500})

typedef struct room {
    events *events;
    int64_t now_ms;
} room;

static int enter(void **state)
{
    static room r;
    r = (room){events_new(STR("skyhook-controller"), STR("pod-1")), 7000};
    *state = &r;
    return r.events ? 0 : -1;
}

static int leave(void **state)
{
    room *r = *state;
    events_free(r->events);
    return 0;
}

static void happens(room *r, const char *name, const char *message)
{
    kube_event event = {.api_version = STR("v1"),
                        .kind = STR("Node"),
                        .name = str_of(name),
                        .uid = STR("u"),
                        .reason = STR("Apply"),
                        .message = str_of(message)};
    events_tell(r->events, &event, r->now_ms, WALL(r->now_ms / 1000));
}

static kube_write sent(room *r, size_t *ret_slot)
{
    events_ask ask = {0};
    assert_int_equal(events_next(r->events, r->now_ms, &ask), EVENTS_ASK_SEND);
    err error;
    assert_true(write_check(&ask.write, &error));
    *ret_slot = ask.slot;
    return ask.write;
}

static int64_t waits_ms(room *r)
{
    events_ask ask = {0};
    assert_int_equal(events_next(r->events, r->now_ms, &ask), EVENTS_ASK_WAIT);
    return ask.at_ms == INT64_MAX ? INT64_MAX : ask.at_ms - r->now_ms;
}

static void test_first(void **state)
{
    room *r = *state;
    size_t slot;
    happens(r, "n1", "it \"goes\"");
    kube_write w = sent(r, &slot);
    assert_int_equal(w.verb, WRITE_CREATE);
    check_text(w.collection, "/api/v1/namespaces/default/events");
    str body = w.body;
    str before = STR("{\"apiVersion\":\"v1\",\"kind\":\"Event\",\"metadata\":{\"name\":\"n1.");
    assert_true(str_starts(body, before));
    check_text(str_part(body, before.len + 16, SIZE_MAX),
               "\",\"namespace\":\"default\"},\"involvedObject\":{\"kind\":\"Node\","
               "\"apiVersion\":\"v1\",\"name\":\"n1\",\"uid\":\"u\"},\"type\":\"Normal\","
               "\"reason\":\"Apply\",\"message\":\"it \\\"goes\\\"\","
               "\"source\":{\"component\":\"skyhook-controller\"},"
               "\"reportingComponent\":\"skyhook-controller\",\"reportingInstance\":\"pod-1\","
               "\"firstTimestamp\":\"2001-09-09T01:46:47Z\","
               "\"lastTimestamp\":\"2001-09-09T01:46:47Z\",\"count\":1}");
    assert_true(waits_ms(r) == INT64_MAX);
    events_answer(r->events, slot, WRITE_DONE, r->now_ms);
    /* In a namespace, and as a warning. */
    kube_event event = {.api_version = STR("batch/v1"),
                        .kind = STR("Job"),
                        .namespace = STR("skyhook"),
                        .name = STR("j"),
                        .warning = true,
                        .reason = STR("Failed"),
                        .message = STR("m")};
    events_tell(r->events, &event, r->now_ms, WALL(1));
    w = sent(r, &slot);
    check_text(w.collection, "/api/v1/namespaces/skyhook/events");
    assert_true(str_find(w.body, STR("\"namespace\":\"skyhook\",\"name\":\"j\"")) != SIZE_MAX);
    assert_true(str_find(w.body, STR("\"type\":\"Warning\"")) != SIZE_MAX);
}

static void test_again(void **state)
{
    room *r = *state;
    size_t slot;
    happens(r, "n1", "m");
    char name[300];
    kube_write w = sent(r, &slot);
    snprintf(name, sizeof name, "%.*s", STR_ARG(w.name));
    happens(r, "n1", "m"); /* while the first is being written */
    events_answer(r->events, slot, WRITE_DONE, r->now_ms);
    assert_int_equal(waits_ms(r), EVENT_REPEAT_MS);
    r->now_ms += 5000;
    for (int i = 0; i < 40; i++)
        happens(r, "n1", "m");
    assert_int_equal(waits_ms(r), EVENT_REPEAT_MS - 5000);
    r->now_ms += EVENT_REPEAT_MS - 5000;
    w = sent(r, &slot);
    assert_int_equal(w.verb, WRITE_MERGE);
    check_text(w.name, name);
    check_text(w.body, "{\"count\":42,\"lastTimestamp\":\"2001-09-09T01:46:52Z\"}");
    events_answer(r->events, slot, WRITE_DONE, r->now_ms);
    assert_true(waits_ms(r) == INT64_MAX);
    /* Another message is another event; so is the same one after a long time. */
    happens(r, "n1", "other");
    w = sent(r, &slot);
    assert_int_equal(w.verb, WRITE_CREATE);
    events_answer(r->events, slot, WRITE_DONE, r->now_ms);
    r->now_ms += EVENT_KNOWN_MS;
    happens(r, "n1", "m");
    w = sent(r, &slot);
    assert_int_equal(w.verb, WRITE_CREATE);
    assert_false(str_eq(w.name, str_of(name)));
    events_answer(r->events, slot, WRITE_DONE, r->now_ms);
    events_counts counts = events_count(r->events);
    assert_int_equal(counts.added, 44);
    assert_int_equal(counts.written, 3);
    assert_int_equal(counts.repeated, 1);
    assert_int_equal(counts.dropped, 0);
}

/* The server has forgotten it: written anew the next time. */
static void test_gone(void **state)
{
    room *r = *state;
    size_t slot;
    happens(r, "n1", "m");
    sent(r, &slot);
    events_answer(r->events, slot, WRITE_DONE, r->now_ms);
    happens(r, "n1", "m");
    r->now_ms += EVENT_REPEAT_MS;
    sent(r, &slot);
    events_answer(r->events, slot, WRITE_GONE, r->now_ms);
    happens(r, "n1", "m");
    kube_write w = sent(r, &slot);
    assert_int_equal(w.verb, WRITE_CREATE);
    events_answer(r->events, slot, WRITE_BARRED, r->now_ms);
    assert_int_equal(events_count(r->events).dropped, 2);
}

static void test_bounded(void **state)
{
    room *r = *state;
    char name[16];
    size_t slot, count = 0;
    for (size_t i = 0; i < EVENT_WAITING_MAX + 10; i++) {
        snprintf(name, sizeof name, "n%zu", i);
        happens(r, name, "m");
    }
    assert_int_equal(events_count(r->events).dropped, 10);
    /* Few at once. */
    for (size_t i = 0; i < EVENT_RUNNING_MAX; i++)
        sent(r, &slot);
    assert_true(waits_ms(r) == INT64_MAX);
    for (size_t i = 0; i < EVENT_RUNNING_MAX; i++)
        events_answer(r->events, i, WRITE_DONE, r->now_ms);
    /* A burst, then so many a second. */
    events_ask ask = {0};
    for (count = EVENT_RUNNING_MAX; events_next(r->events, r->now_ms, &ask) == EVENTS_ASK_SEND;
         count++)
        events_answer(r->events, ask.slot, WRITE_DONE, r->now_ms);
    assert_int_equal(count, EVENT_BURST);
    assert_int_equal(waits_ms(r), 1000 / EVENT_PER_SECOND);
    r->now_ms += 1000;
    for (count = 0; events_next(r->events, r->now_ms, &ask) == EVENTS_ASK_SEND; count++)
        events_answer(r->events, ask.slot, WRITE_DONE, r->now_ms);
    assert_int_equal(count, EVENT_PER_SECOND);
}

/* Names and messages of any length; those that were written make room for others. */
static void test_long(void **state)
{
    room *r = *state;
    static char name[LIMIT_NAME_BYTES + 1], message[5000];
    memset(name, 'n', LIMIT_NAME_BYTES);
    for (size_t i = 0; i < sizeof message - 2; i += 2)
        memcpy(message + i, "\xc3\xa4", 2);
    message[0] = 'x';
    message[1] = 'x';
    happens(r, name, message + 1);
    size_t slot;
    kube_write w = sent(r, &slot);
    assert_int_equal(w.name.len, LIMIT_NAME_BYTES);
    assert_true(str_utf8(w.body));
    size_t at = str_find(w.body, STR("\"message\":\"")) + 11;
    size_t end = str_find(str_part(w.body, at, SIZE_MAX), STR("\","));
    assert_int_equal(end, EVENT_MESSAGE_BYTES_MAX - 1); /* not through a letter */
    events_answer(r->events, slot, WRITE_DONE, r->now_ms);
    for (size_t i = 0; i < EVENT_KNOWN_MAX + 100; i++) {
        snprintf(name, sizeof name, "n%zu", i);
        r->now_ms += 1000;
        happens(r, name, "m");
        sent(r, &slot);
        events_answer(r->events, slot, WRITE_DONE, r->now_ms);
    }
    assert_int_equal(events_count(r->events).dropped, 0);
}

static bool with_memory(void *context)
{
    (void)context;
    room r = {events_new(STR("c"), STR("i")), 0};
    if (!r.events)
        return false;
    for (int i = 0; i < 3; i++)
        happens(&r, i == 0 ? "a" : "b", "m");
    events_ask ask = {0};
    size_t count = 0;
    for (; events_next(r.events, r.now_ms, &ask) == EVENTS_ASK_SEND; count++)
        events_answer(r.events, ask.slot, WRITE_DONE, r.now_ms);
    bool good = events_count(r.events).dropped == 0;
    events_free(r.events);
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
        cmocka_unit_test_setup_teardown(test_first, enter, leave),
        cmocka_unit_test_setup_teardown(test_again, enter, leave),
        cmocka_unit_test_setup_teardown(test_gone, enter, leave),
        cmocka_unit_test_setup_teardown(test_bounded, enter, leave),
        cmocka_unit_test_setup_teardown(test_long, enter, leave),
        cmocka_unit_test(test_memory),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
