/* SPDX-License-Identifier: Apache-2.0 */
/* Names, hashes and JSON as Fleet writes them: every vector of its specification. */
#include "support/check.h"

#include "engine/deployment_id.h"
#include "engine/fleet_names.h"
#include "engine/go_json.h"
#include "model/document.h"

static void test_namespaces_of_clusters(void **state)
{
    (void)state;
    static const struct {
        const char *namespace_, *name, *want;
    } rows[] = {
        {"fleet-local", "local", "cluster-fleet-local-local-1a3d67d0a899"},
        {"fleet-default", "c-abc123", "cluster-fleet-default-c-abc123-24cd9c04e689"},
        {"fleet-default", "my-production-cluster-eu-west-1-a",
         "cluster-fleet-default-my-production-cluster-eu-west-1-a-8-d96ed"},
    };
    arena *a = arena_new(0);
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        check_text(cluster_namespace_name(a, str_of(rows[i].namespace_), str_of(rows[i].name)),
                   rows[i].want);
    arena_free(a);
}

/* 63 bytes stay; from 64 on the cut depends on what stands at byte 56. */
static void test_long_names_are_cut(void **state)
{
    (void)state;
    char text[101];
    char hex[SHA256_HEX_BYTES];
    arena *a = arena_new(0);
    memset(text, 'a', sizeof text - 1);
    text[100] = 0;
    str whole = {text, 63};
    check_str(safe_concat(a, &whole, 1), whole);
    whole.len = 64;
    assert_true(sha256_hex(whole, hex));
    check_str(safe_concat(a, &whole, 1), arena_printf(a, "%.57s-%.5s", text, hex));
    text[56] = '-';
    assert_true(sha256_hex(whole, hex));
    check_str(safe_concat(a, &whole, 1), arena_printf(a, "%.56s-%.6s", text, hex));
    const str parts[] = {STR("a"), STR_EMPTY, STR("b")};
    check_text(safe_concat(a, parts, 3), "a--b");
    check_text(safe_concat(a, NULL, 0), "");
    check_text(agent_account_name(a, STR("request"), STR("uid")), "request-uid");
    arena_free(a);
}

static void test_key_hashes_look_at_100_bytes(void **state)
{
    (void)state;
    char text[200], first[KEY_HASH_BYTES], second[KEY_HASH_BYTES], hex[SHA256_HEX_BYTES];
    memset(text, 'x', sizeof text);
    assert_true(key_hash((str){text, 100}, first) && key_hash((str){text, 200}, second));
    assert_string_equal(first, second);
    assert_true(sha256_hex((str){text, 100}, hex));
    assert_memory_equal(first, hex, KEY_HASH_BYTES - 1);
    assert_true(key_hash((str){text, 99}, second));
    assert_string_not_equal(first, second);
    arena *a = arena_new(0);
    check_str(agent_cluster_name(a, (str){text, 100}), arena_printf(a, "cluster-%s", first));
    arena_free(a);
}

static void test_hashes_of_values(void **state)
{
    (void)state;
    arena *a = arena_new(0);
    check_text(values_hash(a, STR("{\"key\":\"value\"}"), STR_EMPTY),
               "e43abcf3375244839c012f9633f95862d232a95b00d5bc7348b3098b9fed7f32");
    check_text(values_hash(a, STR("{\"key\":\"value\"}"), STR("{\"newkey\":\"value\"}")),
               "01c44d8a446abccb870503db292e07cb2b8da135b6fec52b21048bdab8c84a7c");
    check_text(values_hash(a, STR_EMPTY, STR_EMPTY), "");
    arena_free(a);
}

static void test_the_hash_of_content_is_that_of_its_manifest(void **state)
{
    (void)state;
    arena *a = arena_new(0);
    err error;
    raw_json resources = json_parse(a, STR("[{\"content\":\"a<b\",\"name\":\"a.yaml\"}]"), &error);
    buf text = BUF(1000);
    char hex[SHA256_HEX_BYTES];
    manifest_json(&text, resources);
    check_text(buf_str(&text),
               "{\"resources\":[{\"name\":\"a.yaml\",\"content\":\"a\\u003cb\"}]}\n");
    assert_true(sha256_hex(buf_str(&text), hex));
    check_str(resources_id(a, resources), arena_printf(a, "s-%.61s", hex));
    buf_done(&text);
    arena_free(a);
}

static void test_which_labels_go_where(void **state)
{
    (void)state;
    static const struct {
        const char *key;
        bool exported, inherited, usable;
    } rows[] = {
        {"env", true, true, true},
        {"kubectl.kubernetes.io/x", false, false, false},
        {"objectset.rio.cattle.io/hash", false, false, false},
        {"fleet.cattle.io/commit", false, true, true},
        {"management.cattle.io/cluster-name", false, false, true},
        {"app.kubernetes.io/name", true, true, true},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        str key = str_of(rows[i].key);
        check_msg(label_exported(key) == rows[i].exported, "%s", rows[i].key);
        check_msg(bundle_label_inherited(key) == rows[i].inherited, "%s", rows[i].key);
        check_msg(cluster_label_usable(key) == rows[i].usable, "%s", rows[i].key);
    }
    check_text(fleet_finalizer_text(FINALIZER_BUNDLE), "fleet.cattle.io/bundle-finalizer");
    check_text(fleet_finalizer_text(FINALIZER_BUNDLE_DEPLOYMENT),
               "fleet.cattle.io/bundle-deployment-finalizer");
    check_text(fleet_finalizer_text(FINALIZER_CLUSTER), "fleet.cattle.io/cluster-finalizer");
    check_text(fleet_finalizer_text(FINALIZER_GIT_REPO), "fleet.cattle.io/gitrepo-finalizer");
    check_text(fleet_finalizer_text(FINALIZER_HELM_OP), "fleet.cattle.io/helmop-finalizer");
    check_text(fleet_finalizer_text(FINALIZER_SCHEDULE), "fleet.cattle.io/schedule-finalizer");
}

/* Names of releases are Fleet's, so that whoever takes over a cluster finds them. */
static void test_releases(void **state)
{
    (void)state;
#define FIFTY "12345678901234567890123456789012345678901234567890"
    static const struct {
        const char *name, *want;
    } rows[] = {
        {"web", "web"},
        {FIFTY "123", FIFTY "123"},
        {FIFTY "123a", "12345678901234567890123456789012345678901234567-fdba4"},
        {FIFTY "1234567890123a", "12345678901234567890123456789012345678901234567-eb12d"},
        {"1234567890123456789012345678901234567890123456-1234567",
         "1234567890123456789012345678901234567890123456-d0bce"},
        {"long-name-test-shortpath-with@char", "long-name-test-shortpath-with-char-031bab5e"},
        {"long-name-test-shortpath-with+char", "long-name-test-shortpath-with-char-21c88393"},
        {"long-name-test-0.App_ ", "long-name-test-0-app-5bf6b3fb"},
        {"long-name-test--App_-_12.factor", "long-name-test-app-12-factor-0efbac37"},
        {"bundle.name.example.com", "bundle-name-example-com-645ef821"},
        {"a/b", "a-b"},
        {"-a--b-", "a-b"},
        {"-", "336d5ebc5436534e61d16e63"},
        {"", "d41d8cd98f00b204e9800998"},
    };
    arena *a = arena_new(0);
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        check_text(helm_release_name(a, str_of(rows[i].name)), rows[i].want);
    arena_free(a);
}

static void test_dependencies(void **state)
{
    (void)state;
    assert_true(says_dependency(STR(CONDITION_DEPENDENCY), STR("it depends on \"db\"")));
    assert_true(says_dependency(STR("Error"), STR("dependent bundle(s) are not ready: [db]")));
    assert_true(says_dependency(STR("Error"),
                                STR("list bundledeployments: no bundles matching labels "
                                    "fleet.cattle.io/bundle-name=db in namespace fleet-default")));
    assert_false(says_dependency(STR("Error"), STR("it depends")));
    assert_false(says_dependency(STR_EMPTY, STR_EMPTY));
}

/* What encoding/json makes of numbers and texts. */
static void test_json_as_go_writes_it(void **state)
{
    (void)state;
    static const struct {
        const char *json, *want;
    } rows[] = {
        {"1.0", "1"},
        {"1.5", "1.5"},
        {"-0.25", "-0.25"},
        {"0.000001", "0.000001"},
        {"0.0000001", "1e-7"},
        {"0.00000000012", "1.2e-10"},
        {"123456789.125", "123456789.125"},
        {"1e20", "100000000000000000000"},
        {"1e21", "1e+21"},
        {"1.25e22", "1.25e+22"},
        {"0.1", "0.1"},
        {"18446744073709551615", "18446744073709551615"},
        {"-7", "-7"},
        {"\"ab<cd\\u2028\\u2027x&\"", "\"ab\\u003ccd\\u2028\xE2\x80\xA7x\\u0026\""},
        {"{\"b\":[1,null,true],\"a\":\"<\\u2029\\t\\u0001\\\"\"}",
         "{\"a\":\"\\u003c\\u2029\\t\\u0001\\\"\",\"b\":[1,null,true]}"},
    };
    arena *a = arena_new(0);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        err error;
        buf out = BUF(1000);
        go_value(&out, json_parse(a, str_of(rows[i].json), &error));
        check_text(buf_str(&out), rows[i].want);
        buf_done(&out);
    }
    arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_namespaces_of_clusters),
        cmocka_unit_test(test_long_names_are_cut),
        cmocka_unit_test(test_key_hashes_look_at_100_bytes),
        cmocka_unit_test(test_hashes_of_values),
        cmocka_unit_test(test_the_hash_of_content_is_that_of_its_manifest),
        cmocka_unit_test(test_which_labels_go_where),
        cmocka_unit_test(test_releases),
        cmocka_unit_test(test_dependencies),
        cmocka_unit_test(test_json_as_go_writes_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
