/* SPDX-License-Identifier: Apache-2.0 */
/* What the hub is told: each outcome, the lists and their limits, and silence when all is said. */
#include "support/check.h"

#include "base/arena.h"
#include "cluster_agent/report.h"
#include "engine/go_json.h"
#include "model/document.h"

#define SPEC                                                                                       \
    "\"spec\":{\"deploymentID\":\"s-2:x\",\"options\":{\"forceSyncGeneration\":3},"                \
    "\"downstreamResourcesGeneration\":4}"
#define BEFORE                                                                                     \
    "\"status\":{\"appliedDeploymentID\":\"s-1:x\",\"ready\":true,\"nonModified\":true,"           \
    "\"release\":\"shop/web:1\",\"display\":{\"state\":\"Ready\"},\"conditions\":[{\"type\":"      \
    "\"Deployed\",\"status\":\"True\",\"lastUpdateTime\":\"2026-01-01T00:00:00Z\"},{\"type\":"     \
    "\"Theirs\",\"status\":\"Unknown\",\"message\":\"m\"}]}"

typedef struct fixture {
    arena *arena;
    yyjson_val *deployment;
    report_object objects[REPORT_RESOURCES_MAX + 100];
    report_facts facts;
    bool changed;
} fixture;

static void fixture_new(fixture *f, const char *deployment)
{
    *f = (fixture){.arena = arena_new(0)};
    f->deployment = json_parse(f->arena, str_of(deployment), NULL);
    assert_non_null(f->deployment);
    f->facts = (report_facts){.deployment = f->deployment,
                              .outcome = REPORT_APPLIED,
                              .message = STR_EMPTY,
                              .release = STR("shop/web:2"),
                              .objects = f->objects,
                              .now = {1767225600 + 60, 5}};
}

static report_object *add_object(fixture *f, const char *name)
{
    report_object *o = &f->objects[f->facts.len++];
    str text = arena_printf(f->arena,
                            "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"%s\","
                            "\"namespace\":\"shop\",\"creationTimestamp\":\"2026-01-01T00:00:00Z\"}"
                            "}",
                            name);
    *o = (report_object){.ref = {STR("v1"), STR("Pod"), STR("shop"), str_of(name)},
                         .live = json_parse(f->arena, text, NULL)};
    return o;
}

/* The patch, as a value in the arena; NULL: there is none. */
static yyjson_val *patch_of(fixture *f)
{
    buf out = BUF(LIMIT_TEXT_BYTES);
    err error;
    assert_true(report_patch(&out, &f->facts, &f->changed, &error));
    yyjson_val *json =
        f->changed ? json_parse_within(f->arena, buf_str(&out), out.len, NULL) : NULL;
    assert_int_equal(f->changed, out.len > 0);
    buf_done(&out);
    return go_member(json, STR("status"));
}

static void check_member(const yyjson_val *status, const char *name, const char *want)
{
    yyjson_val *found = go_member(status, str_of(name));
    buf text = BUF(LIMIT_TEXT_BYTES);
    if (found)
        json_write(&text, found);
    check_text(buf_str(&text), want);
    buf_done(&text);
}

static void test_applied(void **state)
{
    (void)state;
    fixture f;
    fixture_new(&f, "{" SPEC "," BEFORE "}");
    add_object(&f, "a");
    yyjson_val *status = patch_of(&f);
    check_member(status, "appliedDeploymentID", "\"s-2:x\"");
    check_member(status, "release", "\"shop/web:2\"");
    check_member(status, "ready", ""); /* as it was */
    check_member(status, "syncGeneration", "3");
    check_member(status, "downstreamResourcesGeneration", "4");
    check_member(status, "display", "");
    check_member(status, "resources",
                 "[{\"apiVersion\":\"v1\",\"createdAt\":\"2026-01-01T00:00:00Z\",\"kind\":\"Pod\","
                 "\"name\":\"a\",\"namespace\":\"shop\"}]");
    check_member(status, "resourceCounts",
                 "{\"desiredReady\":1,\"missing\":0,\"modified\":0,\"notReady\":0,\"orphaned\":0,"
                 "\"ready\":1,\"unknown\":0,\"waitApplied\":0}");
    check_member(status, "conditions",
                 "[{\"lastUpdateTime\":\"2026-01-01T00:00:00Z\",\"status\":\"True\",\"type\":"
                 "\"Deployed\"},{\"message\":\"m\",\"status\":\"Unknown\",\"type\":\"Theirs\"},"
                 "{\"lastUpdateTime\":\"2026-01-01T00:01:00Z\",\"status\":\"True\",\"type\":"
                 "\"Installed\"},{\"lastUpdateTime\":\"2026-01-01T00:01:00Z\",\"status\":\"True\","
                 "\"type\":\"Monitored\"},{\"lastUpdateTime\":\"2026-01-01T00:01:00Z\",\"status\":"
                 "\"True\",\"type\":\"Ready\"}]");
    arena_free(f.arena);
}

/* What the hub has already is not told again, at any later time. */
static void test_silence(void **state)
{
    (void)state;
    static const report_outcome outcomes[] = {REPORT_APPLIED, REPORT_BAD,    REPORT_FAILED,
                                              REPORT_WAITING, REPORT_UNSEEN, REPORT_UNCORRECTED};
    for (size_t i = 0; i < COUNT_OF(outcomes); i++) {
        fixture f;
        fixture_new(&f, "{" SPEC "," BEFORE "}");
        f.facts.outcome = outcomes[i];
        f.facts.message = STR("why");
        add_object(&f, "a")->drift = (drift){i == 0, STR("{}")};
        buf out = BUF(LIMIT_TEXT_BYTES);
        assert_true(report_patch(&out, &f.facts, &f.changed, NULL));
        assert_true(f.changed);
        yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
        yyjson_mut_val *merged =
            yyjson_merge_patch(doc, f.deployment, json_parse(f.arena, buf_str(&out), NULL));
        yyjson_mut_doc_set_root(doc, merged);
        yyjson_doc *after = yyjson_mut_doc_imut_copy(doc, NULL);
        f.facts.deployment = yyjson_doc_get_root(after);
        f.facts.now.seconds += 3600;
        assert_null(patch_of(&f));
        check_msg(!f.changed, "outcome %zu", i);
        yyjson_doc_free(after);
        yyjson_mut_doc_free(doc);
        buf_done(&out);
        arena_free(f.arena);
    }
}

static void test_bad_and_failed(void **state)
{
    (void)state;
    fixture f;
    fixture_new(&f, "{" SPEC "," BEFORE "}");
    f.facts.outcome = REPORT_BAD;
    f.facts.message = STR("field is immutable");
    yyjson_val *status = patch_of(&f);
    check_member(status, "appliedDeploymentID", "\"s-2:x\"");
    check_member(status, "release", "null");
    check_member(status, "ready", "false");
    check_member(status, "nonModified", "");
    yyjson_val *installed = yyjson_arr_get(go_member(status, STR("conditions")), 2);
    check_text(object_text(installed, STR("type")), "Installed");
    check_text(object_text(installed, STR("status")), "False");
    check_text(object_text(installed, STR("reason")), "Error");
    check_text(object_text(installed, STR("message")), "field is immutable");
    f.facts.outcome = REPORT_FAILED;
    status = patch_of(&f);
    check_member(status, "appliedDeploymentID", "");
    check_member(status, "ready", "");
    check_member(status, "conditions",
                 "[{\"lastUpdateTime\":\"2026-01-01T00:01:00Z\",\"message\":\"field is immutable\","
                 "\"reason\":\"Error\",\"status\":\"False\",\"type\":\"Deployed\"},{\"message\":"
                 "\"m\",\"status\":\"Unknown\",\"type\":\"Theirs\"}]");
    arena_free(f.arena);
}

/* The condition Ready says what is not ready; if all is, what is not as it was applied. */
static void test_what_is_wrong(void **state)
{
    (void)state;
    for (int unready = 0; unready < 2; unready++) {
        fixture f;
        fixture_new(&f, "{" SPEC "}");
        add_object(&f, "a")->drift = (drift){true, STR("{}")};
        report_object *gone = add_object(&f, "b");
        *gone = (report_object){.ref = gone->ref, .drift = {true, STR_EMPTY}};
        add_object(&f, "c")->foreign = true;
        if (unready)
            add_object(&f, "d")->readiness = (readiness){READINESS_ERROR, STR("it crashes")};
        yyjson_val *status = patch_of(&f);
        yyjson_val *ready = yyjson_arr_get_last(go_member(status, STR("conditions")));
        check_text(object_text(ready, STR("type")), "Ready");
        check_text(object_text(ready, STR("status")), "False");
        check_text(object_text(ready, STR("message")),
                   unready ? "Pod.v1 shop/d: it crashes"
                           : "Pod.v1 shop/a: modified; Pod.v1 shop/b: missing; Pod.v1 shop/c: not "
                             "owned by us");
        check_member(status, "ready", unready ? "false" : "true");
        arena_free(f.arena);
    }
}

static void test_lists_are_cut(void **state)
{
    (void)state;
    fixture *f = mem_zalloc(sizeof *f);
    fixture_new(f, "{" SPEC "}");
    for (unsigned i = 0; i < REPORT_RESOURCES_MAX + 5; i++) {
        str name = arena_printf(f->arena, "p%u", i);
        report_object *o = add_object(f, name.ptr);
        if (i < 12)
            o->readiness = (readiness){READINESS_TRANSITIONING, STR("waits")};
        else if (i < 30)
            o->drift = (drift){true, STR("{}")};
        else if (i < 32)
            *o = (report_object){.ref = o->ref, .drift = {true, STR_EMPTY}};
        else if (i < 33)
            o->foreign = true;
    }
    yyjson_val *status = patch_of(f);
    assert_int_equal(yyjson_arr_size(go_member(status, STR("nonReadyStatus"))), REPORT_LISTED_MAX);
    assert_int_equal(yyjson_arr_size(go_member(status, STR("modifiedStatus"))), REPORT_LISTED_MAX);
    assert_int_equal(yyjson_arr_size(go_member(status, STR("resources"))), REPORT_RESOURCES_MAX);
    check_member(status, "incompleteState", "true");
    check_member(status, "ready", "false");
    check_member(status, "nonModified", "false");
    check_member(status, "resourceCounts",
                 "{\"desiredReady\":505,\"missing\":2,\"modified\":19,\"notReady\":12,\"orphaned\":"
                 "0,\"ready\":472,\"unknown\":0,\"waitApplied\":0}");
    arena_free(f->arena);
    mem_free(f);
}

static void test_long_message(void **state)
{
    (void)state;
    fixture f;
    char text[5000];
    fixture_new(&f, "{" SPEC "}");
    memset(text, 'x', sizeof text);
    f.facts.outcome = REPORT_FAILED;
    f.facts.message = (str){text, sizeof text};
    yyjson_val *list = go_member(patch_of(&f), STR("conditions"));
    str message = object_text(yyjson_arr_get(list, 0), STR("message"));
    assert_int_equal(message.len, REPORT_MESSAGE_BYTES_MAX);
    assert_true(str_ends(message, STR("x...")));
    arena_free(f.arena);
}

static void test_check_in(void **state)
{
    (void)state;
    buf out = BUF(1024);
    check_in_put(&out, (moment){1767225600, 7}, STR("drover-system"));
    check_text(buf_str(&out), "{\"status\":{\"agent\":{\"lastSeen\":\"2026-01-01T00:00:00Z\","
                              "\"namespace\":\"drover-system\"}}}");
    buf_done(&out);
}

static bool whole(void *context)
{
    fixture *f = context;
    buf out = BUF(LIMIT_TEXT_BYTES);
    err error;
    bool good = report_patch(&out, &f->facts, &f->changed, &error);
    buf_done(&out);
    return good;
}

static void test_memory(void **state)
{
    (void)state;
    fixture f;
    fixture_new(&f, "{" SPEC "," BEFORE "}");
    add_object(&f, "a")->readiness = (readiness){READINESS_ERROR, STR("broken")};
    add_object(&f, "b")->drift = (drift){true, STR("{}")};
    check_each_allocation_fails(whole, &f);
    arena_free(f.arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_applied),        cmocka_unit_test(test_silence),
        cmocka_unit_test(test_bad_and_failed), cmocka_unit_test(test_what_is_wrong),
        cmocka_unit_test(test_lists_are_cut),  cmocka_unit_test(test_long_message),
        cmocka_unit_test(test_check_in),       cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
