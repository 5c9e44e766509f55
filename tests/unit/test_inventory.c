/* SPDX-License-Identifier: Apache-2.0 */
/* What a deployment may have put into its cluster: written, read back, joined and compared. */
#include "support/check.h"

#include "base/arena.h"
#include "cluster_agent/inventory.h"
#include "model/document.h"

#define REF(api, kind, ns, name) {STR(api), STR(kind), STR(ns), STR(name)}

static yyjson_val *written(arena *a, const inventory *i, err *error)
{
    buf text = BUF(LIMIT_TEXT_BYTES);
    yyjson_val *json = NULL;
    if (inventory_put(&text, i, STR("drover-system"), error))
        json = json_parse(a, buf_str(&text), error);
    buf_done(&text);
    return json;
}

static void test_round_trip(void **state)
{
    (void)state;
    arena *a = arena_new(0);
    err error;
    object_ref refs[] = {REF("v1", "Service", "shop", "b"), REF("v1", "ConfigMap", "shop", "a"),
                         REF("v1", "ConfigMap", "shop", "a"), REF("v1", "Namespace", "", "shop")};
    inventory i = {.deployment = STR("web"),
                   .wanted = STR("s-2:x"),
                   .applied = STR("s-1:x"),
                   .digest = STR("d"),
                   .release = {STR("shop"), STR("front")},
                   .revision = 7,
                   .is_chart = true,
                   .keep_resources = true,
                   .delete_namespace = STR("shop"),
                   .former = &(release_name){STR("old"), STR("back")},
                   .former_len = 1,
                   .objects = refs,
                   .len = COUNT_OF(refs)},
              back;
    yyjson_val *json = written(a, &i, &error);
    check_text(object_ref_of(json).name, "drover-web");
    assert_true(inventory_read(a, json, &back, &error));
    check_text(back.deployment, "web");
    check_text(back.wanted, "s-2:x");
    check_text(back.applied, "s-1:x");
    check_text(back.digest, "d");
    check_text(back.release.name, "front");
    check_text(back.release.namespace_, "shop");
    check_text(back.delete_namespace, "shop");
    assert_int_equal(back.former_len, 1);
    assert_true(release_same(back.former[0], i.former[0]));
    assert_int_equal(back.revision, 7);
    assert_true(back.is_chart && back.keep_resources);
    assert_int_equal(back.len, 3); /* sorted, none twice */
    check_text(back.objects[0].kind, "ConfigMap");
    check_text(back.objects[1].kind, "Namespace");
    check_text(back.objects[2].kind, "Service");
    arena_free(a);
}

static void test_bad(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"", "this is not JSON"},
        {"{}", "found no name of a deployment"},
        {"{\"deployment\":\"w\",\"objects\":{}}", "objects: found something that is no list"},
        {"{\"deployment\":\"w\",\"objects\":[{\"kind\":\"Pod\",\"apiVersion\":\"v1\"}]}",
         "objects: found an entry that names no object"},
        {"{\"deployment\":\"w\",\"objects\":[{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"name\":"
         "\"a/b\"}]}",
         "objects: found an entry that names no object"},
        {"{\"deployment\":\"w\",\"former\":{}}", "former: found something that is no list"},
        {"{\"deployment\":\"w\",\"former\":[{\"name\":\"a\"}]}",
         "former: found an entry that names no release"},
        {"{\"deployment\":\"w\",\"deleteNamespace\":\"../x\"}", "deleteNamespace: found \"../x\""},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        arena *a = arena_new(0);
        err error;
        inventory back;
        buf text = BUF(4096);
        buf_addz(&text, "{\"metadata\":{\"name\":\"drover-w\"},\"data\":{\"inventory\":");
        buf_add_json(&text, str_of(rows[i][0]));
        buf_addz(&text, "}}");
        assert_false(inventory_read(a, json_parse(a, buf_str(&text), NULL), &back, &error));
        check_err_has(error, "ConfigMap drover-w: ");
        check_err_has(error, rows[i][1]);
        buf_done(&text);
        arena_free(a);
    }
}

/* An earlier agent wrote down any name that a Bundle gave; helm took none of these. */
static void test_names_of_before(void **state)
{
    (void)state;
    arena *a = arena_new(0);
    err error;
    inventory back;
    buf text = BUF(4096);
    buf_addz(&text, "{\"metadata\":{\"name\":\"drover-w\"},\"data\":{\"inventory\":");
    buf_add_json(&text, STR("{\"deployment\":\"w\",\"chart\":true,\"releaseNamespace\":\"a\","
                            "\"release\":\"--debug\",\"former\":["
                            "{\"namespace\":\"a\",\"name\":\"a/b\"},"
                            "{\"namespace\":\"a\",\"name\":\"web\"},"
                            "{\"namespace\":\"a\",\"name\":\"No_Name\"}]}"));
    buf_addz(&text, "}}");
    yyjson_val *json = json_parse(a, buf_str(&text), NULL);
    buf_done(&text);
    assert_non_null(json);
    check_msg(inventory_read(a, json, &back, &error), "%s", error.text);
    assert_false(back.is_chart);
    assert_int_equal(back.former_len, 1);
    check_text(back.former[0].name, "web");
    arena_free(a);
}

static void test_too_large(void **state)
{
    (void)state;
    arena *a = arena_new(0);
    err error;
    size_t len = 20000;
    object_ref *refs = ARENA_ARRAY(a, len, object_ref);
    for (size_t i = 0; i < len; i++)
        refs[i] = (object_ref)REF("v1", "ConfigMap", "a-namespace", "x");
    inventory i = {.deployment = STR("web"), .objects = refs, .len = len};
    assert_null(written(a, &i, &error));
    check_err_has(error, "found 20000 objects, whose names take more than 921600 bytes");
    arena_free(a);
}

/* Which releases are to go, when that of now is shop/now. */
static void test_releases(void **state)
{
    (void)state;
    static const struct {
        const char *release; /* of before */
        bool was_chart, keeps, is_chart;
        const char *want; /* old is in the list already */
    } rows[] = {
        {"now", true, false, true, "old"},      {"now", true, false, false, "old now"},
        {"now", true, true, false, "old now"},  {"before", true, false, true, "old before"},
        {"before", true, true, true, "old"},    {"before", true, false, false, "old before"},
        {"before", true, true, false, "old"},   {"before", false, false, true, "old"},
        {"before", false, false, false, "old"},
    };
    arena *a = arena_new(0);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        release_name now = {STR("shop"), STR("now")}, former[] = {now, {STR("shop"), STR("old")}};
        /* One of before that is wanted again does not go. */
        inventory from = {.release = {STR("shop"), str_of(rows[i].release)},
                          .is_chart = rows[i].was_chart,
                          .keep_resources = rows[i].keeps,
                          .former = rows[i].is_chart ? former : former + 1,
                          .former_len = rows[i].is_chart ? 2 : 1},
                  ret = {0};
        char text[64] = "";
        assert_true(inventory_leave_release(a, &from, now, rows[i].is_chart, &ret));
        for (size_t k = 0; k < ret.former_len; k++)
            snprintf(text + strlen(text), sizeof text - strlen(text), "%s%.*s", k > 0 ? " " : "",
                     STR_ARG(ret.former[k].name));
        check_msg(strcmp(text, rows[i].want) == 0, "row %zu: %s", i, text);
    }
    arena_free(a);
}

static void test_sets(void **state)
{
    (void)state;
    arena *a = arena_new(0);
    object_ref before[] = {REF("apps/v1beta1", "Deployment", "shop", "a"),
                           REF("v1", "ConfigMap", "shop", "a"), REF("v1", "Namespace", "", "shop"),
                           REF("v1", "Service", "shop", "s")};
    object_ref now[] = {REF("v1", "ConfigMap", "shop", "b"),
                        REF("apps/v1", "Deployment", "shop", "a")};
    inventory none = {0}, was, all, left, sorted;
    assert_true(inventory_join(a, &none, before, COUNT_OF(before), &was));
    assert_true(inventory_join(a, &was, now, COUNT_OF(now), &all));
    assert_int_equal(all.len, 5);
    check_text(all.objects[4].api_version, "apps/v1"); /* the version of now */
    assert_true(inventory_join(a, &none, now, COUNT_OF(now), &sorted));
    assert_true(inventory_left(a, &all, sorted.objects, sorted.len, &left));
    static const char *const want[] = {"Service", "ConfigMap", "Namespace"};
    assert_int_equal(left.len, COUNT_OF(want));
    for (size_t i = 0; i < left.len; i++)
        check_text(left.objects[i].kind, want[i]);
    arena_free(a);
}

static void test_refs(void **state)
{
    (void)state;
    object_ref web = REF("apps/v1", "Deployment", "shop", "web"),
               ns = REF("v1", "Namespace", "", "shop");
    buf out = BUF(256);
    object_ref_put(&out, &web);
    buf_addc(&out, '|');
    object_ref_put(&out, &ns);
    check_text(buf_str(&out), "Deployment.apps shop/web|Namespace.v1 shop");
    buf_done(&out);
    assert_true(object_path_part(STR("system:node-1.x")));
    static const char *const bad[] = {"", ".", "..", "a/b", "a%2f", "a?b", "a#b", "a b", "\n"};
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        check_msg(!object_path_part(str_of(bad[i])), "%s", bad[i]);
}

static bool whole(void *context)
{
    (void)context;
    err error;
    arena *a = arena_new(0);
    object_ref refs[] = {REF("v1", "Service", "shop", "b"), REF("v1", "ConfigMap", "shop", "a")};
    inventory i = {.deployment = STR("web"), .objects = refs, .len = 2}, back, all, left;
    yyjson_val *json = a ? written(a, &i, &error) : NULL;
    bool good = json && inventory_read(a, json, &back, &error) &&
                inventory_join(a, &back, refs, 1, &all) &&
                inventory_left(a, &all, NULL, 0, &left) && left.len == 2;
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
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_bad),
        cmocka_unit_test(test_names_of_before),
        cmocka_unit_test(test_too_large),
        cmocka_unit_test(test_releases),
        cmocka_unit_test(test_sets),
        cmocka_unit_test(test_refs),
        cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
