/* SPDX-License-Identifier: Apache-2.0 */
/* The Skyhook as an object: how large it becomes with thousands of nodes, what stands in it in
 * whose place, and what happens where the server does not take its status. */
#include "support/check.h"

#define FAKE_OBJECTS_MAX 6000
#include "model/crd.h"
#include "operator/status_record.h"
#include "support/operator_story.h"

#define MANY 5000
#define MANY_BYTES (4u << 20)
/* etcd takes 1.5 MiB, and there must be room for spec and annotations of users. */
#define OBJECT_BYTES_MOST (900u << 10)

/* ---- many nodes with long names ---- */

/* 57 letters, and a number with six more. */
#define LONG_NAME "ip-10-0-000.some-region-2.compute.of-a-long-name.internal"

static void add_many(fake *f)
{
    char text[512];
    for (int i = 0; i < MANY; i++) {
        snprintf(text, sizeof text,
                 "{\"metadata\":{\"name\":\"" LONG_NAME "-%05d\",\"labels\":{},\"annotations\":"
                 "{}},\"spec\":{},\"status\":{\"conditions\":[{\"type\":\"Ready\",\"status\":"
                 "\"True\"}],\"nodeInfo\":{\"bootID\":\"b%05d\"}}}",
                 i, i);
        fake_create(f, FAKE_NODES, text);
    }
    assert_int_equal(strlen(f->objects[0].name), 63);
}

static buf claimed_by_first;

/* The operator dies when its claims stand in the Skyhook, and nowhere else. */
static fake_fault dies_with_claims(fake *f, const kube_write *w)
{
    if (!str_eq(w->collection, STR(FAKE_SKYHOOKS)) || !str_eq(w->subresource, STR("status")) ||
        str_find(w->body, STR("\"members\":[\"")) == SIZE_MAX)
        return FAULT_NONE;
    f->meets = NULL;
    assert_true(engine_keep_change(node_shell_engine(f->shell), STR("sk"), &claimed_by_first));
    return FAULT_KILL;
}

static size_t bytes_of(yyjson_val *json)
{
    buf text = BUF(MANY_BYTES);
    if (json)
        json_write(&text, json);
    assert_false(text.failed);
    size_t bytes = text.len;
    buf_done(&text);
    return bytes;
}

static yyjson_val *claims_in(arena *a, const buf *record)
{
    yyjson_val *json = json_parse_within(a, buf_str(record), MANY_BYTES, NULL);
    yyjson_val *found = yyjson_obj_get(json, "claims");
    assert_true(yyjson_is_obj(found));
    return found;
}

/* All of them in one batch. Whoever comes next has the same claims, by the status alone. */
static void thousands_fit_into_a_skyhook(void **state)
{
    (void)state;
    fake *f = fake_new();
    add_many(f);
    fake_create(f, FAKE_SKYHOOKS,
                "{\"metadata\":{\"name\":\"sk\"},\"spec\":{\"packages\":{\"tune\":{\"version\":"
                "\"1.0.0\",\"image\":\"example.test/tune\"}}}}");
    claimed_by_first = BUF(MANY_BYTES);
    f->meets = dies_with_claims;
    fake_start(f);
    for (int i = 0; i < 8 && f->meets; i++)
        fake_turn(f, 0);
    assert_null(f->meets);
    assert_int_equal(claims(f, "sk"), MANY);
    assert_int_equal(yyjson_obj_size(fake_get(f, FAKE_SKYHOOKS, "sk", "/status/nodePriority")),
                     MANY);
    size_t bytes = bytes_of(fake_get(f, FAKE_SKYHOOKS, "sk", ""));
    print_message("# the object has %zu bytes: members %zu, nodePriority %zu, drover %zu\n", bytes,
                  bytes_of(fake_get(f, FAKE_SKYHOOKS, "sk", "/status/compartmentStatuses")),
                  bytes_of(fake_get(f, FAKE_SKYHOOKS, "sk", "/status/nodePriority")),
                  bytes_of(fake_get(f, FAKE_SKYHOOKS, "sk", "/status/drover")));
    check_msg(bytes < OBJECT_BYTES_MOST, "%zu bytes", bytes);
    fake_turn(f, 0); /* which begins the next one */
    arena *a = arena_new(0);
    buf now = BUF(MANY_BYTES);
    assert_true(engine_keep_change(node_shell_engine(f->shell), STR("sk"), &now));
    assert_int_equal(yyjson_obj_size(claims_in(a, &now)), MANY);
    assert_true(yyjson_equals(claims_in(a, &now), claims_in(a, &claimed_by_first)));
    arena_free(a);
    buf_done(&now);
    buf_done(&claimed_by_first);
    fake_free(f);
}

/* What a server adds to the object, managedFields, has a part for each field that it tells apart,
 * and of an atomic map it tells none: {"f:status":{}}, whatever stands there. (Measured: 534 bytes
 * in all.) */
static void owners_of_a_status_are_not_told_apart(void **state)
{
    (void)state;
    arena *a = arena_new(0);
    buf text = BUF(MANY_BYTES);
    crd_put(&text, KIND_SKYHOOK);
    yyjson_val *json = json_parse(a, buf_str(&text), NULL);
    assert_true(yyjson_equals_str(
        yyjson_ptr_get(json, "/spec/versions/0/schema/openAPIV3Schema/properties/status/"
                             "x-kubernetes-map-type"),
        "atomic"));
    buf_done(&text);
    arena_free(a);
}

/* ---- the record ---- */

#define RECORD                                                                                     \
    "{\"offset\":3,\"packages\":[],\"claims\":{\"n2\":[1,4],\"n1\":[2,5,1],\"n9\":[1,6]},"         \
    "\"cohort\":{\"a\":{\"open\":true,\"members\":[\"n1\",\"n2\"]},"                               \
    "\"b\":{\"open\":false,\"retrying\":[\"n9\"],\"done\":[\"n5\"]}}}"
#define STORED                                                                                     \
    "{\"offset\":3,\"packages\":[],\"claims\":[[2,5,1],[1,4],[1,6]],\"names\":"                    \
    "\"HHHHHHHHHHHHHHHH\",\"cohort\":{\"a\":{\"open\":true},\"b\":{\"open\":false,\"done\":["      \
    "\"n5\"]}}}"
#define SHOWN(members)                                                                             \
    "{\"a\":{\"batchState\":{\"members\":" members "}},\"b\":{\"batchState\":{\"retrying\":["      \
    "\"n9\"],\"members\":null}},\"c\":{}}"

static void stored_of(arena *a, const char *record, buf *out)
{
    status_record_put(a, json_parse(a, str_of(record), NULL), out);
    assert_false(out->failed);
}

/* The record that is read from a status with this one and these compartments. */
static yyjson_val *whole_of(arena *a, str record, const char *groups)
{
    buf status = BUF(MANY_BYTES), whole = BUF(MANY_BYTES);
    buf_addf(&status, "{\"compartmentStatuses\":%s,\"drover\":", groups);
    buf_add_json(&status, record);
    buf_addc(&status, '}');
    status_record_whole(a, json_parse(a, buf_str(&status), NULL), &whole);
    assert_false(whole.failed);
    yyjson_val *json = json_parse(a, buf_str(&whole), NULL);
    buf_done(&status);
    buf_done(&whole);
    return json;
}

static void check_json(arena *a, yyjson_val *found, const char *want)
{
    buf text = BUF(MANY_BYTES);
    json_write(&text, found);
    check_msg(yyjson_equals(found, json_parse(a, str_of(want), NULL)), "found %s\nwant  %s",
              text.ptr, want);
    buf_done(&text);
}

static void names_stand_once(void **state)
{
    (void)state;
    arena *a = arena_new(0);
    buf stored = BUF(MANY_BYTES);
    stored_of(a, RECORD, &stored);
    char *hash = strstr(stored.ptr, "\"names\":\"");
    assert_non_null(hash);
    check_json(a, whole_of(a, buf_str(&stored), SHOWN("[\"n1\",\"n2\"]")), RECORD);
    memset(hash + 9, 'H', 16);
    check_text(buf_str(&stored), STORED);
    buf_done(&stored);
    arena_free(a);
}

/* A claim of whom no compartment has in its lists is kept by its name. */
static void claims_beside_the_lists(void **state)
{
    (void)state;
    static const char record[] = "{\"claims\":{\"n1\":[1,0],\"n8\":[2,1]},\"cohort\":{\"a\":"
                                 "{\"members\":[\"n1\",\"n2\"]}}}";
    arena *a = arena_new(0);
    buf stored = BUF(MANY_BYTES);
    stored_of(a, record, &stored);
    check_has_at(buf_str(&stored), STR("[[1,0],null],\"claimsBeside\":{\"n8\":[2,1]}"), __FILE__,
                 __LINE__);
    check_json(a, whole_of(a, buf_str(&stored), SHOWN("[\"n1\",\"n2\"]")), record);
    buf_clear(&stored);
    stored_of(a, "{\"claims\":{},\"cohort\":{\"a\":{}}}", &stored);
    check_json(a, whole_of(a, buf_str(&stored), "null"), "{\"claims\":{},\"cohort\":{\"a\":{}}}");
    buf_done(&stored);
    arena_free(a);
}

/* As when a person resets the batches while no operator runs: those that are left hold claims, and
 * what was noted of the others is not taken for theirs. */
static void names_that_somebody_changed(void **state)
{
    (void)state;
    arena *a = arena_new(0);
    buf stored = BUF(MANY_BYTES);
    stored_of(a, RECORD, &stored);
    check_json(a, whole_of(a, buf_str(&stored), SHOWN("[\"n2\"]")),
               "{\"offset\":3,\"packages\":[],\"claims\":{},\"cohort\":{\"a\":{\"open\":true,"
               "\"members\":[\"n2\"]},\"b\":{\"open\":false,\"retrying\":[\"n9\"],\"done\":["
               "\"n5\"]}}}");
    buf_done(&stored);
    arena_free(a);
}

/* Nothing, what is no record, and a record of before, with all names. */
static void records_of_before(void **state)
{
    (void)state;
    arena *a = arena_new(0);
    check_json(a, whole_of(a, STR(RECORD), SHOWN("[\"n1\",\"n2\"]")), RECORD);
    assert_null(whole_of(a, STR_EMPTY, SHOWN("[]")));
    assert_null(whole_of(a, STR("no record"), SHOWN("[]")));
    arena_free(a);
}

/* An operator of before stops in the middle: the new one goes on, and nothing runs twice. */
static void goes_on_from_a_record_of_before(void **state)
{
    (void)state;
    for (int64_t at_ms = 0; at_ms < 6000; at_ms += 500) {
        fake *f = begin(skyhook_interrupt);
        fake_run(f, at_ms);
        buf whole = BUF(MANY_BYTES), patch = BUF(MANY_BYTES);
        arena *a = arena_new(0);
        status_record_whole(a, fake_get(f, FAKE_SKYHOOKS, "sk", "/status"), &whole);
        fake_end_side(&f->sides[0]);
        buf_addz(&patch, "{\"status\":{\"drover\":");
        buf_add_json(&patch, buf_str(&whole));
        buf_addz(&patch, "}}");
        fake_edit(f, FAKE_SKYHOOKS, "sk", patch.ptr);
        fake_start(f);
        fake_run(f, -1);
        assert_string_equal(fake_text(f, FAKE_SKYHOOKS, "sk", "/status/completeNodes"), "8/8");
        assert_int_equal(count_lines(f, "POST " FAKE_JOBS), 4 * NODES);
        arena_free(a);
        buf_done(&whole);
        buf_done(&patch);
        fake_free(f);
    }
}

/* ---- a status that is not taken ---- */

static fake_fault refuses_status(fake *f, const kube_write *w)
{
    (void)f;
    bool of_status =
        str_eq(w->collection, STR(FAKE_SKYHOOKS)) && str_eq(w->subresource, STR("status"));
    return of_status ? FAULT_INVALID : FAULT_NONE;
}

static str why(fake *f, arena *a, placement_id id)
{
    placement_view v;
    reasons found = {0};
    const engine *e = node_shell_engine(f->shell);
    assert_true(engine_placement(e, id, &v) && engine_reasons(e, id, a, &found));
    return engine_sentence(a, &v, &found);
}

/* It is told on the Skyhook, the nodes whose claims wait for it say so, and it goes on by itself
 * when the status is taken. */
static void refused_status_is_told(void **state)
{
    (void)state;
    arena *a = arena_new(0);
    fake *f = begin(skyhook_plain);
    f->meets = refuses_status;
    fake_run(f, 120000);
    assert_int_equal(count_lines(f, "POST " FAKE_JOBS), 0);
    check_has_at(buf_str(&f->told),
                 STR("Skyhook sk Refused: its status cannot be written, and nothing starts on its "
                     "nodes before it is"),
                 __FILE__, __LINE__);
    check_text(why(f, a, 1), "n00 is being changed by sk: its claim cannot be written into the "
                             "status of its Skyhook: refused (status 422)");
    f->meets = NULL;
    fake_run(f, 31000);
    assert_true(count_lines(f, "POST " FAKE_JOBS) > 0);
    assert_int_equal(str_find(why(f, a, 1), STR("cannot be written")), SIZE_MAX);
    fake_run(f, -1);
    assert_string_equal(fake_text(f, FAKE_SKYHOOKS, "sk", "/status/completeNodes"), "8/8");
    arena_free(a);
    fake_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(thousands_fit_into_a_skyhook),
        cmocka_unit_test(owners_of_a_status_are_not_told_apart),
        cmocka_unit_test(names_stand_once),
        cmocka_unit_test(claims_beside_the_lists),
        cmocka_unit_test(names_that_somebody_changed),
        cmocka_unit_test(records_of_before),
        cmocka_unit_test(goes_on_from_a_record_of_before),
        cmocka_unit_test(refused_status_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
