/* SPDX-License-Identifier: Apache-2.0 */
/* What of an object is no longer as it was applied, and what only looks so. */
#include "support/check.h"

#include "base/arena.h"
#include "cluster_agent/drift.h"
#include "model/document.h"

#define HEAD "\"apiVersion\":\"apps/v1\",\"kind\":\"Deployment\",\"metadata\":{\"name\":\"web\"}"
#define SPEC(text) "{" HEAD ",\"spec\":{" text "}}"
#define SECRET(text) "{\"apiVersion\":\"v1\",\"kind\":\"Secret\"," text "}"

typedef struct row {
    const char *wanted, *live, *diff;
    const char *patch; /* NULL: no drift */
} row;

static const row rows[] = {
    {SPEC("\"replicas\":2"), SPEC("\"replicas\":2"), NULL, NULL},
    {SPEC("\"replicas\":2"), SPEC("\"replicas\":3"), NULL, "{\"spec\":{\"replicas\":2}}"},
    {SPEC("\"replicas\":2"), SPEC(""), NULL, "{\"spec\":{\"replicas\":2}}"},
    /* What others add is no drift. */
    {SPEC("\"a\":1"), SPEC("\"a\":1,\"strategy\":{\"type\":\"RollingUpdate\"}"), NULL, NULL},
    {"{" HEAD ",\"spec\":{}}", "{" HEAD ",\"status\":{\"ready\":1},\"extra\":true}", NULL, NULL},
    {"{" HEAD ",\"status\":{\"a\":1}}", "{" HEAD "}", NULL, NULL},
    /* Nothing said is nothing there. */
    {SPEC("\"a\":null,\"b\":[],\"c\":{},\"d\":\"\",\"e\":false,\"f\":0"), SPEC(""), NULL, NULL},
    {SPEC("\"a\":false"), SPEC("\"a\":true"), NULL, "{\"spec\":{\"a\":false}}"},
    {SPEC("\"a\":[],\"b\":{}"), SPEC("\"a\":[1],\"b\":{\"c\":1}"), NULL, NULL},
    /* Quantities, where Kubernetes reads them as such. */
    {SPEC("\"limits\":{\"cpu\":1,\"memory\":\"1Gi\"}"),
     SPEC("\"limits\":{\"cpu\":\"1000m\",\"memory\":\"1024Mi\"}"), NULL, NULL},
    {SPEC("\"limits\":{\"cpu\":\"2\"}"), SPEC("\"limits\":{\"cpu\":\"1\"}"), NULL,
     "{\"spec\":{\"limits\":{\"cpu\":\"2\"}}}"},
    {SPEC("\"args\":{\"cpu\":\"1000m\"}"), SPEC("\"args\":{\"cpu\":\"1\"}"), NULL,
     "{\"spec\":{\"args\":{\"cpu\":\"1000m\"}}}"},
    /* Lists by name: order and additions do not count. */
    {SPEC("\"containers\":[{\"name\":\"a\",\"image\":\"x\"},{\"name\":\"b\"}]"),
     SPEC("\"containers\":[{\"name\":\"side\"},{\"name\":\"b\",\"tty\":true},{\"name\":\"a\","
          "\"image\":\"x\"}]"),
     NULL, NULL},
    {SPEC("\"containers\":[{\"name\":\"a\",\"image\":\"x\"}]"),
     SPEC("\"containers\":[{\"name\":\"a\",\"image\":\"y\"}]"), NULL,
     "{\"spec\":{\"containers\":[{\"name\":\"a\",\"image\":\"x\"}]}}"},
    {SPEC("\"containers\":[{\"name\":\"a\"}]"), SPEC("\"containers\":[{\"name\":\"b\"}]"), NULL,
     "{\"spec\":{\"containers\":[{\"name\":\"a\"}]}}"},
    /* Other lists by place. */
    {SPEC("\"ports\":[{\"port\":80}]"), SPEC("\"ports\":[{\"port\":80,\"protocol\":\"TCP\"}]"),
     NULL, NULL},
    {SPEC("\"args\":[\"a\",\"b\"]"), SPEC("\"args\":[\"b\",\"a\"]"), NULL,
     "{\"spec\":{\"args\":[\"a\",\"b\"]}}"},
    {SPEC("\"args\":[\"a\"]"), SPEC("\"args\":[\"a\",\"b\"]"), NULL,
     "{\"spec\":{\"args\":[\"a\"]}}"},
    {SPEC("\"args\":[\"a\"]"), SPEC(""), NULL, "{\"spec\":{\"args\":[\"a\"]}}"},
    {SPEC("\"a\":{\"b\":1}"), SPEC("\"a\":[1]"), NULL, "{\"spec\":{\"a\":{\"b\":1}}}"},
    {SPEC("\"a\":[1]"), SPEC("\"a\":7"), NULL, "{\"spec\":{\"a\":[1]}}"},
    /* Secrets are compared, and never shown. */
    {SECRET("\"stringData\":{\"k\":\"v\"}"), SECRET("\"data\":{\"k\":\"dg==\"}"), NULL, NULL},
    {SECRET("\"stringData\":{\"k\":\"w\"}"), SECRET("\"data\":{\"k\":\"dg==\"}"), NULL, "{}"},
    {SECRET("\"data\":{\"k\":\"dg==\"}"), SECRET("\"data\":{\"k\":\"dw==\"}"), NULL, "{}"},
    /* Parts that are not to be compared. */
    {SPEC("\"replicas\":2"), SPEC("\"replicas\":3"),
     "[{\"kind\":\"Deployment\",\"name\":\"web\",\"operations\":[{\"op\":\"remove\",\"path\":"
     "\"/spec/replicas\"}]}]",
     NULL},
    {SPEC("\"replicas\":2"), SPEC("\"replicas\":3"),
     "[{\"kind\":\"Deployment\",\"name\":\"other\",\"jsonPointers\":[\"/spec/replicas\"]}]",
     "{\"spec\":{\"replicas\":2}}"},
    {SPEC("\"replicas\":2,\"b\":1"), SPEC("\"replicas\":3"),
     "[{\"kind\":\"Deployment\",\"jsonPointers\":[\"/spec/replicas\"]}]", "{\"spec\":{\"b\":1}}"},
    {SPEC("\"a/b\":{\"c~\":[1,2]}"), SPEC("\"a/b\":{\"c~\":[1,3]}"),
     "[{\"jsonPointers\":[\"/spec/a~1b/c~0/1\"]}]", NULL},
    {SPEC("\"a/b\":{\"c~\":[1,2]}"), SPEC("\"a/b\":{\"c~\":[2,3]}"),
     "[{\"jsonPointers\":[\"/spec/a~1b/c~0/1\"]}]", "{\"spec\":{\"a/b\":{\"c~\":[1,2]}}}"},
    {SPEC("\"a\":1"), SPEC("\"a\":2"),
     "[{\"apiVersion\":\"apps/v1\",\"operations\":[{\"op\":\"ignore\"}]}]", NULL},
    {SPEC("\"a\":1"), SPEC("\"a\":2"), "[{\"jsonPointers\":[\"/spec\"]}]", NULL},
    {SPEC("\"a\":1"), SPEC("\"a\":2"), "[{\"jsonPointers\":[\"/a\"]}]", "{\"spec\":{\"a\":1}}"},
};

static bool find(arena *a, const row *r, drift *ret, err *error)
{
    char text[512];
    snprintf(text, sizeof text, "{\"comparePatches\":%s}", r->diff ? r->diff : "[]");
    drift_facts f = {.wanted = json_parse(a, str_of(r->wanted), error),
                     .live = r->live ? json_parse(a, str_of(r->live), error) : NULL,
                     .diff = r->diff ? json_parse(a, str_of(text), error) : NULL};
    if (!f.wanted || (r->live && !f.live) || (r->diff && !f.diff))
        return false;
    return drift_find(a, &f, ret, error);
}

static void test_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        arena *a = arena_new(0);
        drift found;
        err error;
        check_msg(find(a, &rows[i], &found, &error), "row %zu: %s", i, error.text);
        check_msg(found.modified == (rows[i].patch != NULL), "row %zu: %.*s", i,
                  STR_ARG(found.patch));
        check_text(found.patch, rows[i].patch ? rows[i].patch : "");
        arena_free(a);
    }
}

static void test_missing(void **state)
{
    (void)state;
    arena *a = arena_new(0);
    drift found;
    err error;
    assert_true(find(a, &(row){SPEC(""), NULL, NULL, NULL}, &found, &error));
    assert_true(found.modified && found.patch.len == 0);
    row ignored = {SPEC(""), NULL, "[{\"operations\":[{\"op\":\"ignore\"}]}]", NULL};
    assert_true(find(a, &ignored, &found, &error));
    assert_false(found.modified);
    arena_free(a);
}

static void test_wrong_patches(void **state)
{
    (void)state;
    static const char *const bad[][2] = {
        {"[{\"operations\":[{\"op\":\"move\",\"path\":\"/a\"}]}]", "op: found \"move\""},
        {"[{\"jsonPointers\":[\"a\"]}]", "found the path \"a\", allowed one from /"},
    };
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        arena *a = arena_new(0);
        drift found;
        err error;
        assert_false(find(a, &(row){SPEC(""), SPEC(""), bad[i][0], NULL}, &found, &error));
        check_err_has(error, bad[i][1]);
        arena_free(a);
    }
}

/* A long patch is cut between characters. */
static void test_long_patch(void **state)
{
    (void)state;
    arena *a = arena_new(0);
    buf text = BUF(LIMIT_DOCUMENT_BYTES);
    drift found;
    err error;
    buf_addz(&text, "{" HEAD ",\"spec\":{\"a\":\"");
    while (text.len < 3 * DRIFT_PATCH_BYTES_MAX)
        buf_addz(&text, "\xC3\xA4");
    buf_addz(&text, "\"}}");
    assert_true(find(a, &(row){text.ptr, SPEC(""), NULL, NULL}, &found, &error));
    assert_true(found.patch.len <= DRIFT_PATCH_BYTES_MAX + 3);
    assert_true(str_ends(found.patch, STR("...")) && str_utf8(found.patch));
    buf_done(&text);
    arena_free(a);
}

static void test_entries(void **state)
{
    (void)state;
    static const char *const want[] = {",\"patch\":\"{}\"}", ",\"missing\":true}",
                                       ",\"delete\":true}", ",\"missing\":true,\"exist\":true}"};
    object_ref ref = {STR("v1"), STR("Pod"), STR("shop"), STR("p")};
    for (int i = 0; i <= DRIFT_FOREIGN; i++) {
        buf out = BUF(1024);
        modified_put(&out, &ref, (drift_kind)i, STR("{}"));
        assert_true(str_ends(buf_str(&out), str_of(want[i])));
        buf_done(&out);
    }
}

static bool whole(void *context)
{
    (void)context;
    arena *a = arena_new(0);
    drift found;
    bool good = a != NULL;
    for (size_t i = 0; good && i < COUNT_OF(rows); i++) {
        good = find(a, &rows[i], &found, NULL);
        if (good) /* no shortage makes drift of what is none */
            assert_int_equal(found.modified, rows[i].patch != NULL);
    }
    arena_free(a);
    return good;
}

static void test_memory(void **state)
{
    (void)state;
    check_each_allocation_fails(whole, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),          cmocka_unit_test(test_missing),
        cmocka_unit_test(test_wrong_patches), cmocka_unit_test(test_long_patch),
        cmocka_unit_test(test_entries),       cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
