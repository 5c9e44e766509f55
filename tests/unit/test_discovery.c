/* SPDX-License-Identifier: Apache-2.0 */
/* Which kinds a cluster has, from every form in which servers say it. */
#include "support/check.h"

#include "base/arena.h"
#include "cluster_agent/discovery.h"
#include "model/document.h"

#define CORE                                                                                       \
    "{\"kind\":\"APIGroupDiscoveryList\",\"items\":[{\"metadata\":{},\"versions\":[{\"version\":"  \
    "\"v1\",\"resources\":[{\"resource\":\"namespaces\",\"responseKind\":{\"kind\":\"Namespace\"," \
    "\"version\":\"v1\"},\"scope\":\"Cluster\"},{\"resource\":\"pods\",\"responseKind\":{"         \
    "\"kind\":\"Pod\"},\"scope\":\"Namespaced\",\"subresources\":[{\"subresource\":\"log\"}]}]}]}]}"
#define GROUPS                                                                                     \
    "{\"kind\":\"APIGroupDiscoveryList\",\"items\":[{\"metadata\":{\"name\":\"apps\"},"            \
    "\"versions\":[{\"version\":\"v1\",\"resources\":[{\"resource\":\"deployments\","              \
    "\"responseKind\":{\"kind\":\"Deployment\"},\"scope\":\"Namespaced\"},{\"resource\":\"\","     \
    "\"responseKind\":{\"kind\":\"Nothing\"}},{}]},{\"version\":\"v1beta1\"}]},7]}"
#define LIST                                                                                       \
    "{\"kind\":\"APIResourceList\",\"groupVersion\":\"batch/v1\",\"resources\":[{\"name\":"        \
    "\"jobs\",\"kind\":\"Job\",\"namespaced\":true},{\"name\":\"jobs/status\",\"kind\":\"Job\","   \
    "\"namespaced\":true},{\"name\":\"things\",\"kind\":\"Thing\",\"namespaced\":false}]}"
#define TILLS                                                                                      \
    "{\"kind\":\"APIResourceList\",\"groupVersion\":\"shop.io/v1\",\"resources\":["                \
    "{\"name\":\"tills\",\"kind\":\"Till\",\"namespaced\":true}]}"
#define DEFINITION(scope)                                                                          \
    "{\"kind\":\"CustomResourceDefinition\",\"spec\":{\"group\":\"shop.io\",\"scope\":\"" scope    \
    "\",\"names\":{\"kind\":\"Till\",\"plural\":\"tills\"},\"versions\":[{\"name\":\"v1\","        \
    "\"served\":true},{\"name\":\"v0\",\"served\":false}]}}"

static bool feed(arena *a, discovery *d, const char *text,
                 bool (*read)(discovery *, const yyjson_val *, err *), err *error)
{
    yyjson_val *json = json_parse(a, str_of(text), error);
    return json && read(d, json, error);
}

static void check_collection(const discovery *d, const char *api_version, const char *kind,
                             const char *want)
{
    const discovery_kind *k = discovery_find(d, str_of(api_version), str_of(kind));
    buf out = BUF(1024);
    if (!want) {
        assert_null(k);
        return;
    }
    assert_non_null(k);
    discovery_collection_put(&out, k, STR("shop"));
    check_text(buf_str(&out), want);
    buf_done(&out);
}

static void test_kinds(void **state)
{
    (void)state;
    arena *a = arena_new(0);
    discovery *d = discovery_new();
    err error;
    assert_true(feed(a, d, CORE, discovery_read, &error));
    assert_true(feed(a, d, GROUPS, discovery_read, &error));
    assert_true(feed(a, d, LIST, discovery_read, &error));
    assert_true(feed(a, d, DEFINITION("Namespaced"), discovery_define, &error));
    assert_true(feed(a, d, CORE, discovery_define, &error)); /* is none */
    check_collection(d, "v1", "Namespace", "/api/v1/namespaces");
    check_collection(d, "v1", "Pod", "/api/v1/namespaces/shop/pods");
    check_collection(d, "apps/v1", "Deployment", "/apis/apps/v1/namespaces/shop/deployments");
    check_collection(d, "apps/v1", "Nothing", NULL);
    check_collection(d, "apps/v1beta1", "Deployment", NULL);
    check_collection(d, "batch/v1", "Job", "/apis/batch/v1/namespaces/shop/jobs");
    check_collection(d, "batch/v1", "Thing", "/apis/batch/v1/things");
    check_collection(d, "shop.io/v1", "Till", "/apis/shop.io/v1/namespaces/shop/tills");
    check_collection(d, "shop.io/v0", "Till", NULL);
    assert_int_equal(discovery_count(d), 6);
    /* Said again, it is said differently. */
    assert_true(feed(a, d, DEFINITION("Cluster"), discovery_define, &error));
    check_collection(d, "shop.io/v1", "Till", "/apis/shop.io/v1/tills");
    assert_int_equal(discovery_count(d), 6);
    /* What the server tells is not for a definition to say. */
    assert_true(discovery_find(d, STR("shop.io/v1"), STR("Till"))->defined);
    assert_true(feed(a, d, TILLS, discovery_read, &error));
    assert_false(discovery_find(d, STR("shop.io/v1"), STR("Till"))->defined);
    assert_true(feed(a, d, DEFINITION("Cluster"), discovery_define, &error));
    check_collection(d, "shop.io/v1", "Till", "/apis/shop.io/v1/namespaces/shop/tills");
    discovery_free(d);
    arena_free(a);
}

/* What a whole reading does not tell any more is gone, but not while its server is away; what was
 * only defined may be on its way. */
static void test_forgets(void **state)
{
    (void)state;
    static const char stale[] =
        "{\"kind\":\"APIGroupDiscoveryList\",\"items\":[{\"metadata\":{\"name\":\"batch\"},"
        "\"versions\":[{\"version\":\"v1\",\"freshness\":\"Stale\",\"resources\":[]}]}]}";
    static const struct {
        const char *tells; /* besides CORE; NULL: nothing */
        const char *jobs, *tills;
        bool ends;
    } rows[] = {
        {NULL, "/apis/batch/v1/namespaces/shop/jobs", "/apis/shop.io/v1/namespaces/shop/tills",
         false},
        {stale, "/apis/batch/v1/namespaces/shop/jobs", "/apis/shop.io/v1/namespaces/shop/tills",
         true},
        {LIST, "/apis/batch/v1/namespaces/shop/jobs", NULL, true},
        {NULL, NULL, NULL, true},
        {LIST, "/apis/batch/v1/namespaces/shop/jobs", NULL, true},
    };
    arena *a = arena_new(0);
    discovery *d = discovery_new();
    err error;
    assert_true(feed(a, d, LIST, discovery_read, &error));
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        discovery_begin(d);
        if (i == 0) /* the reading that comes right after it, or that is under way */
            assert_true(feed(a, d, DEFINITION("Namespaced"), discovery_define, &error));
        assert_true(feed(a, d, CORE, discovery_read, &error));
        assert_true(!rows[i].tells || feed(a, d, rows[i].tells, discovery_read, &error));
        if (rows[i].ends)
            discovery_end(d);
        check_collection(d, "v1", "Pod", "/api/v1/namespaces/shop/pods");
        check_collection(d, "batch/v1", "Job", rows[i].jobs);
        check_collection(d, "shop.io/v1", "Till", rows[i].tills);
        assert_int_equal(discovery_has(d, STR("/apis/batch/v1/namespaces/x/jobs")),
                         rows[i].jobs != NULL);
        assert_int_equal(discovery_has(d, STR("/apis/batch/v1/jobs")), rows[i].jobs != NULL);
        assert_int_equal(discovery_find_any(d, STR("shop.io"), STR("Till")) != NULL,
                         rows[i].tills != NULL);
        assert_true(discovery_has(d, STR("/api/v1/namespaces/x/pods")));
        assert_false(discovery_has(d, STR("/apis/v1/pods")));
    }
    assert_int_equal(discovery_count(d), 4);
    discovery_free(d);
    arena_free(a);
}

static void test_other_answers(void **state)
{
    (void)state;
    arena *a = arena_new(0);
    discovery *d = discovery_new();
    err error;
    assert_false(feed(a, d, "{\"kind\":\"Status\"}", discovery_read, &error));
    check_err(error, "kind: found \"Status\", allowed APIGroupDiscoveryList, APIResourceList");
    assert_false(discovery_read(d, NULL, &error));
    assert_false(feed(a, d, "[]", discovery_read, &error));
    assert_true(feed(a, d, "{\"kind\":\"APIResourceList\",\"resources\":{\"a\":1}}", discovery_read,
                     &error));
    assert_int_equal(discovery_count(d), 0);
    discovery_free(d);
    arena_free(a);
}

static void test_paths(void **state)
{
    (void)state;
    arena *a = arena_new(0);
    err error;
    buf out = BUF(1024);
    yyjson_val *core =
        json_parse(a, STR("{\"kind\":\"APIVersions\",\"versions\":[\"v1\",2]}"), &error);
    yyjson_val *groups = json_parse(
        a,
        STR("{\"kind\":\"APIGroupList\",\"groups\":[{\"name\":\"apps\",\"versions\":[{"
            "\"groupVersion\":\"apps/v1\"},{\"groupVersion\":\"apps/v2\"}]},{\"name\":\"none\"}]}"),
        &error);
    assert_true(discovery_paths(core, &out, &error));
    assert_true(discovery_paths(groups, &out, &error));
    check_text(buf_str(&out), "/api/v1\n/apis/apps/v1\n/apis/apps/v2\n");
    assert_false(discovery_paths(NULL, &out, &error));
    buf_done(&out);
    arena_free(a);
}

/* A cluster with more kinds than anybody has is refused, not swallowed. */
static void test_too_many(void **state)
{
    (void)state;
    discovery *d = discovery_new();
    buf text = BUF(LIMIT_DOCUMENT_BYTES);
    err error;
    buf_addz(&text, "{\"kind\":\"APIResourceList\",\"groupVersion\":\"v1\",\"resources\":[");
    for (unsigned i = 0; i <= DISCOVERY_KINDS_MAX; i++)
        buf_addf(&text, "%s{\"name\":\"p%u\",\"kind\":\"K%u\"}", i > 0 ? "," : "", i, i);
    buf_addz(&text, "]}");
    arena *a = arena_new(0);
    assert_false(feed(a, d, text.ptr, discovery_read, &error));
    check_err_has(error, "more than 20000 kinds");
    assert_int_equal(discovery_count(d), DISCOVERY_KINDS_MAX);
    buf_done(&text);
    discovery_free(d);
    arena_free(a);
}

static bool whole(void *context)
{
    (void)context;
    err error;
    arena *a = arena_new(0);
    discovery *d = discovery_new();
    bool good = a && d && feed(a, d, GROUPS, discovery_read, &error) &&
                feed(a, d, LIST, discovery_read, &error) &&
                feed(a, d, DEFINITION("Cluster"), discovery_define, &error) &&
                discovery_find(d, STR("batch/v1"), STR("Job"));
    discovery_free(d);
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
        cmocka_unit_test(test_kinds),         cmocka_unit_test(test_forgets),
        cmocka_unit_test(test_other_answers), cmocka_unit_test(test_paths),
        cmocka_unit_test(test_too_many),      cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
