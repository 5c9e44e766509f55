/* SPDX-License-Identifier: Apache-2.0 */
/* What the operator's dashboard keeps beside the engine: documents as they were seen, and claims.
 */
#include "support/check.h"

#include "base/mem.h"
#include "console/claims.h"
#include "console/kept.h"
#include "model/document.h"

static bool see(kept *k, kept_kind kind, const char *text)
{
    arena *a = arena_new(0);
    yyjson_val *json = json_parse(a, str_of(text), NULL);
    assert_non_null(json);
    bool changed = kept_seen(k, kind, json);
    arena_free(a);
    return changed;
}

#define NODE(labels, more, ready)                                                                  \
    "{\"metadata\":{\"name\":\"n\",\"labels\":{" labels "},\"managedFields\":[1],"                 \
    "\"annotations\":{" more "},\"resourceVersion\":\"7\"},\"spec\":{\"podCIDR\":\"1\"},"          \
    "\"status\":{\"images\":[1],\"nodeInfo\":{\"bootID\":\"b\",\"kernelVersion\":\"6\"},"          \
    "\"conditions\":[{\"type\":\"DiskPressure\",\"status\":\"False\"},{\"type\":\"Ready\","        \
    "\"status\":\"" ready "\",\"lastHeartbeatTime\":\"now\"}]}}"

/* What Drover itself writes, and heartbeats, are no news to who looks on; what people change is. */
static void test_news(void **state)
{
    (void)state;
    kept k = {0};
    assert_true(see(&k, KEPT_NODE, NODE("\"a\":\"1\"", "", "True")));
    assert_false(see(&k, KEPT_NODE, NODE("\"a\":\"1\"", "\"x\":\"y\"", "True")));
    assert_false(see(&k, KEPT_NODE,
                     NODE("\"a\":\"1\",\"skyhook.nvidia.com/status_s\":\"complete\"", "", "True")));
    assert_true(see(&k, KEPT_NODE, NODE("\"a\":\"2\"", "", "True")));
    assert_true(see(&k, KEPT_NODE, NODE("\"a\":\"2\"", "", "False")));
    const kept_object *o = kept_find(&k, KEPT_NODE, STR("n"));
    assert_non_null(o);
    assert_string_equal(o->document,
                        "{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"n\","
                        "\"labels\":{\"a\":\"2\"},\"annotations\":{}},\"spec\":{},\"status\":{"
                        "\"nodeInfo\":{\"bootID\":\"b\"},\"conditions\":[{\"type\":\"Ready\","
                        "\"status\":\"False\"}]}}");
    assert_true(str_eq(o->labels, STR("{\"a\":\"2\"}")));
    /* A heartbeat does not even move it; Drover's own annotations are for plans. */
    const char *before = o->document;
    assert_false(see(&k, KEPT_NODE, NODE("\"a\":\"2\"", "\"x\":\"y\"", "False")));
    assert_ptr_equal(o->document, before);
    assert_false(see(&k, KEPT_NODE,
                     NODE("\"a\":\"2\"", "\"skyhook.nvidia.com/nodeState_s\":\"{}\"", "False")));
    assert_non_null(strstr(o->document, "\"annotations\":{\"skyhook.nvidia.com/nodeState_s\":"));
    assert_true(kept_gone(&k, KEPT_NODE, STR("n")));
    assert_false(kept_gone(&k, KEPT_NODE, STR("n")));
    assert_int_equal(kept_of_nodes(SHELL_POD), KEPT_NOTHING);
    assert_false(see(&k, KEPT_NOTHING, NODE("", "", "True")));
    kept_clear(&k);
}

#define HEAD "{\"metadata\":{\"name\":\"b\",\"namespace\":\"s\",\"resourceVersion\":\"7\","
#define OBJECT(notes, spec, status)                                                                \
    HEAD "\"annotations\":{" notes "}},\"spec\":{" spec "},\"status\":{" status "}}"

#define GROWN(generation, spec) HEAD "\"generation\":" generation "},\"spec\":{" spec "}}"

/* The same of Fleet's kinds, which are in namespaces. */
static void test_hub_news(void **state)
{
    (void)state;
    kept k = {0};
    assert_true(see(&k, KEPT_BUNDLE, OBJECT("", "\"paused\":true", "")));
    assert_false(see(&k, KEPT_BUNDLE,
                     OBJECT("\"drover.dev/rollout\":\"{}\"", "\"paused\":true", "\"x\":1")));
    const kept_object *o = kept_find(&k, KEPT_BUNDLE, STR("s/b"));
    assert_non_null(o);
    assert_true(o->paused);
    assert_null(o->acts);
    assert_true(see(&k, KEPT_BUNDLE, OBJECT("\"drover.dev/acts\":\"[]\"", "", "")));
    assert_false(o->paused);
    assert_string_equal(o->acts, "[]");
    /* Its resources may be long: the shell has them, and nothing of it is kept twice. */
    assert_null(o->document);
    /* What people change is what its generation says, if it has one. */
    assert_true(see(&k, KEPT_BUNDLE, GROWN("1", "\"resources\":[1]")));
    assert_false(see(&k, KEPT_BUNDLE, GROWN("1", "\"resources\":[1]")));
    assert_true(see(&k, KEPT_BUNDLE, GROWN("2", "\"resources\":[2]")));
    /* What kubectl applied is the whole document again. */
    assert_true(see(&k, KEPT_CLUSTER,
                    OBJECT("\"kubectl.kubernetes.io/last-applied-configuration\":\"{}\","
                           "\"a\":\"b\"",
                           "\"paused\":true", "\"namespace\":\"home\",\"display\":{}")));
    assert_string_equal(kept_find(&k, KEPT_CLUSTER, STR("s/b"))->document,
                        "{\"apiVersion\":\"fleet.cattle.io/v1alpha1\",\"kind\":\"Cluster\","
                        "\"metadata\":{\"name\":\"b\",\"namespace\":\"s\",\"annotations\":{"
                        "\"a\":\"b\"}},\"spec\":{\"paused\":true},\"status\":{"
                        "\"namespace\":\"home\"}}");
    assert_int_equal(kept_of_clusters(HUB_DEPLOYMENT), KEPT_NOTHING);
    assert_true(kept_gone(&k, KEPT_BUNDLE, STR("s/b")));
    assert_int_equal(kept_of_clusters(HUB_CONTENT), KEPT_NOTHING);
    assert_int_equal(kept_of_clusters(HUB_NAMESPACE), KEPT_NOTHING); /* the shell has them */
    assert_true(see(&k, kept_of_clusters(HUB_MAPPING),
                    "{\"metadata\":{\"name\":\"m\",\"namespace\":\"s\"},\"bundleSelector\":{},"
                    "\"namespaceSelector\":{\"matchLabels\":{\"a\":\"b\"}}}"));
    assert_string_equal(kept_find(&k, KEPT_MAPPING, STR("s/m"))->document,
                        "{\"apiVersion\":\"fleet.cattle.io/v1alpha1\",\"kind\":"
                        "\"BundleNamespaceMapping\",\"metadata\":{\"name\":\"m\",\"namespace\":"
                        "\"s\"},\"bundleSelector\":{},\"namespaceSelector\":{\"matchLabels\":{"
                        "\"a\":\"b\"}}}");
    kept_clear(&k);
}

static void decide(claims *c, decision_kind kind, int number, int64_t ms, bool failed)
{
    char name[16];
    snprintf(name, sizeof name, "n%d", number);
    decision d = {.kind = kind,
                  .change = STR("sk"),
                  .target = str_of(name),
                  .version = STR("p:1"),
                  .group = STR("gpu"),
                  .failed = failed,
                  .detail = failed ? STR("exit code 1") : STR_EMPTY};
    claims_decided(c, &d, ms);
}

static void test_claims(void **state)
{
    (void)state;
    claims c = {0};
    decision earlier = {.change = STR("sk"), .target = STR("n9"), .group = STR("gpu")};
    decide(&c, DECISION_START, 1, 100, false);
    claims_found(&c, &earlier, 150);
    claims_found(&c, &earlier, 160);
    decide(&c, DECISION_RELEASE, 1, 200, true);
    decide(&c, DECISION_RELEASE, 2, 200, false); /* nobody's */
    assert_int_equal(c.all.len, 2);
    assert_true(c.all.at[0]->failed && c.all.at[0]->ended_ms == 200);
    assert_string_equal(c.all.at[0]->reason, "exit code 1");
    assert_true(c.all.at[1]->earlier && c.all.at[1]->ended_ms == 0);
    /* A start while it is open ends it: it cannot be worked on twice. */
    decide(&c, DECISION_START, 1, 300, false);
    decide(&c, DECISION_START, 1, 400, false);
    assert_int_equal(c.all.at[2]->ended_ms, 400);
    assert_int_equal(c.open.len, 2);
    claims_clear(&c);
}

/* What has ended long ago is forgotten; what lives is not. */
static void test_forgetting(void **state)
{
    (void)state;
    claims c = {0};
    decide(&c, DECISION_START, -1, 1, false);
    for (int i = 0; i < (int)CLAIMS_KEPT + 10; i++) {
        decide(&c, DECISION_START, i, 10 + i, false);
        decide(&c, DECISION_RELEASE, i, 11 + i, false);
    }
    assert_true(c.all.len <= CLAIMS_KEPT);
    assert_int_equal(c.all.at[0]->ended_ms, 0);
    for (size_t i = 1; i < c.all.len; i++)
        assert_true(c.all.at[i]->number > c.all.at[i - 1]->number);
    decide(&c, DECISION_RELEASE, -1, 99999, false);
    assert_int_equal(c.open.len, 0);
    claims_clear(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_news),
        cmocka_unit_test(test_hub_news),
        cmocka_unit_test(test_claims),
        cmocka_unit_test(test_forgetting),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
