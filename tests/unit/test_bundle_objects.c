/* SPDX-License-Identifier: Apache-2.0 */
/* What a Bundle becomes on the hub, byte for byte: Content, BundleDeployment, options Secret, the
 * namespace of a cluster, and the merge patches that change them. */
#include "support/check.h"

#include <zlib.h>

#include "base/base64.h"
#include "engine/deployment_id.h"
#include "engine/go_json.h"
#include "model/document.h"
#include "operator/bundle_objects.h"
#include "operator/bundle_partitions.h"
#include "operator/bundle_patch.h"
#include "operator/cluster_objects.h"
#include "support/documents.h"

static loaded load(const char *text)
{
    loaded l = load_text("test.yaml", str_of(text));
    buf said = problems_as_text(l.found);
    check_msg(l.good, "%.*s", STR_ARG(buf_str(&said)));
    buf_done(&said);
    return l;
}

static raw_json json(arena *a, const char *text)
{
    err error;
    raw_json value = json_parse(a, str_of(text), &error);
    check_msg(value != NULL, "%s: %s", text, error.text);
    return value;
}

static void test_content(void **state)
{
    (void)state;
    arena *a = arena_new(0);
    err error;
    buf out = BUF(LIMIT_TEXT_BYTES), again = BUF(LIMIT_TEXT_BYTES), zipped = BUF(100000);
    raw_json resources = json(a, "[{\"name\":\"a.yaml\",\"content\":\"x\"}]");
    assert_true(content_put(&out, resources, &error));
    assert_true(content_put(&again, resources, &error));
    check_str(buf_str(&out), buf_str(&again));
    raw_json made = json(a, out.ptr);
    check_text(go_str(go_member(go_member(made, STR("metadata")), STR("name"))),
               "s-902c80d9af09be4c64bb5c86aca53351f865e7e42eaeb3368f0fc93d653f5");
    check_text(go_str(go_member(made, STR("kind"))), "Content");
    assert_true(base64_decode(go_str(go_member(made, STR("content"))), &zipped));
    unsigned char plain[200] = {0};
    z_stream z = {.next_in = (unsigned char *)zipped.ptr,
                  .avail_in = (unsigned)zipped.len,
                  .next_out = plain,
                  .avail_out = sizeof plain};
    assert_int_equal(inflateInit2(&z, 15 + 16), Z_OK);
    assert_int_equal(inflate(&z, Z_FINISH), Z_STREAM_END);
    inflateEnd(&z);
    const char *manifest = "{\"resources\":[{\"name\":\"a.yaml\",\"content\":\"x\"}]}\n";
    assert_string_equal((const char *)plain, manifest);
    char hex[SHA256_HEX_BYTES];
    assert_true(sha256_hex(str_of(manifest), hex));
    check_text(go_str(go_member(made, STR("sha256sum"))), hex);
    buf_done(&out);
    buf_done(&again);
    buf_done(&zipped);
    arena_free(a);
}

/* Bytes that cannot be compressed are more than an object may have. */
static void test_content_that_is_too_big(void **state)
{
    (void)state;
    arena *a = arena_new(0);
    err error = {0};
    rng r = {7};
    buf text = BUF(LIMIT_TEXT_BYTES), out = BUF(LIMIT_TEXT_BYTES);
    buf_addz(&text, "[{\"name\":\"a\",\"content\":\"");
    for (size_t i = 0; i < 2000000; i++)
        buf_addc(&text, (char)('A' + rng_below(&r, 26)));
    buf_addz(&text, "\"}]");
    yyjson_doc *doc = yyjson_read(text.ptr, text.len, 0);
    assert_false(content_put(&out, yyjson_doc_get_root(doc), &error));
    check_err_has(error, "Content: found ");
    check_err_has(error, " bytes, allowed 1572864");
    yyjson_doc_free(doc);
    buf_done(&text);
    buf_done(&out);
    arena_free(a);
}

static const char bundle_text[] =
    "apiVersion: fleet.cattle.io/v1alpha1\n"
    "kind: Bundle\n"
    "metadata:\n"
    "  name: shop\n"
    "  namespace: fleet-default\n"
    "  labels:\n"
    "    team: a\n"
    "    fleet.cattle.io/repo-name: repo\n"
    "    fleet.cattle.io/cluster: forged\n"
    "    objectset.rio.cattle.io/hash: x\n"
    "spec:\n"
    "  defaultNamespace: web\n"
    "  correctDrift: {enabled: true}\n"
    "  diff: {comparePatches: [{kind: Service, name: a}]}\n"
    "  namespaceLabels: {own: one}\n"
    "  helm: {releaseName: shop, values: {size: 1, region: '${ .ClusterLabels.region }'}}\n"
    "  dependsOn: [{name: base}]\n"
    "  resources: [{name: a.yaml, content: x}]\n"
    "  targets:\n"
    "  - clusterSelector: {}\n"
    "    namespaceLabels: {own: two, more: three}\n";

static const label region = {STR("region"), STR("west")};

static str options_of(arena *a, const bundle *b)
{
    template_cluster at = {.name = STR("c1"), .labels = {&region, 1}};
    option_layers l = {&b->spec.options, NULL, 0};
    err error;
    str text = options_all_json(a, &l, &at, &error);
    check_msg(text.ptr != NULL, "%s", error.text);
    return text;
}

static void test_bundle_deployment(void **state)
{
    (void)state;
    loaded l = load(bundle_text);
    arena *a = l.objects->arena;
    const bundle *b = l.objects->at[0].bundle;
    bundle_version now = {STR("s-1:abc"), options_of(a, b)};
    bundle_deployment_order o = {.bundle = b,
                                 .cluster_namespace = STR("fleet-default"),
                                 .cluster = STR("c1"),
                                 .namespace_ = STR("cluster-x"),
                                 .staged = now,
                                 .live = now};
    bundle_deployment_texts texts;
    err error;
    assert_true(bundle_deployment_make(a, &o, &texts, &error));
    const char *options =
        "{\"defaultNamespace\":\"web\",\"helm\":{\"releaseName\":\"shop\"},"
        "\"diff\":{\"comparePatches\":[{\"kind\":\"Service\",\"name\":\"a\"}]},"
        "\"correctDrift\":{\"enabled\":true},\"namespaceLabels\":{\"more\":\"three\","
        "\"own\":\"two\"}}";
    check_str(texts.object,
              arena_printf(
                  a,
                  "{\"apiVersion\":\"fleet.cattle.io/v1alpha1\",\"kind\":\"BundleDeployment\","
                  "\"metadata\":{\"name\":\"shop\",\"namespace\":\"cluster-x\",\"labels\":{"
                  "\"fleet.cattle.io/bundle-name\":\"shop\","
                  "\"fleet.cattle.io/bundle-namespace\":\"fleet-default\","
                  "\"fleet.cattle.io/cluster\":\"c1\","
                  "\"fleet.cattle.io/cluster-namespace\":\"fleet-default\","
                  "\"fleet.cattle.io/content-name\":\"s-1\",\"fleet.cattle.io/managed\":\"true\","
                  "\"fleet.cattle.io/repo-name\":\"repo\",\"team\":\"a\"}},"
                  "\"spec\":{\"stagedOptions\":%s,\"stagedDeploymentID\":\"s-1:abc\","
                  "\"options\":%s,\"deploymentID\":\"s-1:abc\","
                  "\"dependsOn\":[{\"name\":\"base\"}],\"correctDrift\":{\"enabled\":true},"
                  "\"valuesHash\":\"%.*s\"}}",
                  options, options, STR_ARG(texts.values_hash)));
    check_text(texts.values, "{\"region\":\"west\",\"size\":1}");
    check_str(texts.values_hash, values_hash(a, texts.values, texts.values));
    buf secret = BUF(10000);
    options_secret_put(&secret, &o, &texts, STR("u-1"));
    check_text(buf_str(&secret),
               "{\"apiVersion\":\"v1\",\"kind\":\"Secret\",\"metadata\":{\"name\":\"shop\","
               "\"namespace\":\"cluster-x\",\"ownerReferences\":[{\"apiVersion\":"
               "\"fleet.cattle.io/v1alpha1\",\"kind\":\"BundleDeployment\",\"name\":\"shop\","
               "\"uid\":\"u-1\",\"controller\":true,\"blockOwnerDeletion\":true}]},\"type\":"
               "\"fleet.cattle.io/bundle-deployment/v1alpha1\",\"data\":{\"values\":"
               "\"eyJyZWdpb24iOiJ3ZXN0Iiwic2l6ZSI6MX0=\",\"stagedValues\":"
               "\"eyJyZWdpb24iOiJ3ZXN0Iiwic2l6ZSI6MX0=\"}}");
    buf_done(&secret);
    loaded_free(&l);
}

/* Held back: the new version is staged, the old one lives; content, Helm values and drift of the
 * live one stay. */
static void test_bundle_deployment_held_back(void **state)
{
    (void)state;
    loaded l = load("{apiVersion: fleet.cattle.io/v1alpha1, kind: Bundle,"
                    " metadata: {name: shop, namespace: fleet-default}, spec: {}}");
    arena *a = l.objects->arena;
    bundle_deployment_order o = {
        .bundle = l.objects->at[0].bundle,
        .cluster_namespace = STR("fleet-default"),
        .cluster = STR("c1"),
        .namespace_ = STR("cluster-x"),
        .staged = {STR("s-2:b"), STR("{\"helm\":{\"values\":{\"newkey\":\"value\"}}}")},
        .live = {STR("s-1:a"), STR("{\"helm\":{\"values\":{\"key\":\"value\"}}}")},
        .paused = true,
        .off_schedule = true};
    bundle_deployment_texts texts;
    err error;
    assert_true(bundle_deployment_make(a, &o, &texts, &error));
    check_has_at(texts.object,
                 STR("\"spec\":{\"paused\":true,\"stagedOptions\":{\"helm\":{}},"
                     "\"stagedDeploymentID\":\"s-2:b\",\"options\":{\"helm\":{}},"
                     "\"deploymentID\":\"s-1:a\",\"valuesHash\":"
                     "\"01c44d8a446abccb870503db292e07cb2b8da135b6fec52b21048bdab8c84a7c\","
                     "\"offSchedule\":true}}"),
                 __FILE__, __LINE__);
    check_has_at(texts.object, STR("\"fleet.cattle.io/content-name\":\"s-1\""), __FILE__, __LINE__);
    o.staged.options = STR("{");
    assert_false(bundle_deployment_make(a, &o, &texts, &error));
    check_err_has(error, "options: ");
    loaded_free(&l);
}

/* No content of its own: from a registry, or from a chart. */
static void test_bundle_deployments_without_content(void **state)
{
    (void)state;
    loaded l = load("{apiVersion: fleet.cattle.io/v1alpha1, kind: Bundle,"
                    " metadata: {name: a, namespace: d}, spec: {contentsId: s-oci}}\n"
                    "---\n"
                    "{apiVersion: fleet.cattle.io/v1alpha1, kind: Bundle,"
                    " metadata: {name: b, namespace: d}, spec: {helmOpOptions: {secret: x}}}\n");
    arena *a = l.objects->arena;
    const char *want[] = {"\"ociContents\":true", "\"helmChartOptions\":{\"secret\":\"x\"}"};
    for (size_t i = 0; i < 2; i++) {
        bundle_deployment_order o = {.bundle = l.objects->at[i].bundle,
                                     .cluster = STR("c"),
                                     .cluster_namespace = STR("d"),
                                     .namespace_ = STR("n"),
                                     .live = {STR("s-oci:1"), STR("{}")}};
        bundle_deployment_texts texts;
        err error;
        assert_true(bundle_deployment_make(a, &o, &texts, &error));
        check_has_at(texts.object, str_of(want[i]), __FILE__, __LINE__);
        assert_true(str_find(texts.object, STR("content-name")) == SIZE_MAX);
        assert_true(str_find(texts.object, STR("valuesHash")) == SIZE_MAX);
        check_text(texts.values_hash, "");
    }
    loaded_free(&l);
}

static void test_cluster_namespace(void **state)
{
    (void)state;
    buf out = BUF(10000);
    err error;
    cluster_identity who = {STR("fleet-local"), STR("local")};
    assert_true(cluster_namespace_put(&out, &who, &error));
    check_text(buf_str(&out),
               "{\"apiVersion\":\"v1\",\"kind\":\"Namespace\",\"metadata\":{\"name\":"
               "\"cluster-fleet-local-local-1a3d67d0a899\",\"labels\":{"
               "\"fleet.cattle.io/managed\":\"true\"},\"annotations\":{"
               "\"fleet.cattle.io/cluster\":\"local\","
               "\"fleet.cattle.io/cluster-namespace\":\"fleet-local\"}}}");
    buf_done(&out);
}

/* HOME stands for the namespace of the deployments. */
static const char *const agent_objects[] = {
    [AGENT_ACCOUNT] = "{\"apiVersion\":\"v1\",\"kind\":\"ServiceAccount\",\"metadata\":{"
                      "\"name\":\"agent\",\"namespace\":\"HOME\"}}",
    [AGENT_TOKEN] = "{\"apiVersion\":\"v1\",\"kind\":\"Secret\",\"metadata\":{\"name\":"
                    "\"drover-agent-token-whose-name-is-longer-than-any-bundle-of-this-hub-has\","
                    "\"namespace\":\"HOME\",\"annotations\":{"
                    "\"kubernetes.io/service-account.name\":\"agent\"}},\"type\":"
                    "\"kubernetes.io/service-account-token\"}",
    [AGENT_ROLE] =
        "{\"apiVersion\":\"rbac.authorization.k8s.io/v1\",\"kind\":\"Role\",\"metadata\":{"
        "\"name\":\"agent\",\"namespace\":\"HOME\"},\"rules\":[{\"verbs\":[\"get\",\"list\","
        "\"watch\"],\"apiGroups\":[\"fleet.cattle.io\"],\"resources\":[\"bundledeployments\"]},"
        "{\"verbs\":[\"update\",\"patch\"],\"apiGroups\":[\"fleet.cattle.io\"],\"resources\":["
        "\"bundledeployments/status\"]},{\"verbs\":[\"get\"],\"apiGroups\":[\"\"],\"resources\":["
        "\"secrets\",\"configmaps\"]}]}",
    [AGENT_BINDING] =
        "{\"apiVersion\":\"rbac.authorization.k8s.io/v1\",\"kind\":\"RoleBinding\","
        "\"metadata\":{\"name\":\"agent\",\"namespace\":\"HOME\"},\"subjects\":[{\"kind\":"
        "\"ServiceAccount\",\"name\":\"agent\",\"namespace\":\"HOME\"}],\"roleRef\":{"
        "\"apiGroup\":\"rbac.authorization.k8s.io\",\"kind\":\"Role\",\"name\":\"agent\"}}",
    [AGENT_STATUS_ROLE] =
        "{\"apiVersion\":\"rbac.authorization.k8s.io/v1\",\"kind\":\"Role\",\"metadata\":{"
        "\"name\":\"HOME\",\"namespace\":\"fleet-local\"},\"rules\":[{\"verbs\":[\"patch\"],"
        "\"apiGroups\":[\"fleet.cattle.io\"],\"resources\":[\"clusters/status\"],"
        "\"resourceNames\":[\"local\"]}]}",
    [AGENT_STATUS_BINDING] =
        "{\"apiVersion\":\"rbac.authorization.k8s.io/v1\",\"kind\":\"RoleBinding\","
        "\"metadata\":{\"name\":\"HOME\",\"namespace\":\"fleet-local\"},\"subjects\":[{\"kind\":"
        "\"ServiceAccount\",\"name\":\"agent\",\"namespace\":\"HOME\"}],\"roleRef\":{"
        "\"apiGroup\":\"rbac.authorization.k8s.io\",\"kind\":\"Role\",\"name\":\"HOME\"}}",
    [AGENT_CONTENT_BINDING] =
        "{\"apiVersion\":\"rbac.authorization.k8s.io/v1\",\"kind\":\"ClusterRoleBinding\","
        "\"metadata\":{\"name\":\"HOME-content\"},\"subjects\":[{\"kind\":\"ServiceAccount\","
        "\"name\":\"agent\",\"namespace\":\"HOME\"}],\"roleRef\":{\"apiGroup\":"
        "\"rbac.authorization.k8s.io\",\"kind\":\"ClusterRole\",\"name\":\"fleet-content\"}}",
};

static void test_a_registered_cluster(void **state)
{
    (void)state;
    static const label labels[] = {{STR("env"), STR("prod")},
                                   {STR("fleet.cattle.io/created-by-agent-pod"), STR("p")},
                                   {STR("fleet.cattle.io/x"), STR("no")},
                                   {STR("management.cattle.io/x"), STR("no")}};
    cluster_registration r = {.cluster = {STR("fleet-local"), STR("local")},
                              .client_id = STR("id"),
                              .labels = {labels, COUNT_OF(labels)},
                              .account = STR("agent")};
    buf out = BUF(10000);
    cluster_put(&out, &r);
    check_text(buf_str(&out),
               "{\"apiVersion\":\"fleet.cattle.io/v1alpha1\",\"kind\":\"Cluster\",\"metadata\":{"
               "\"name\":\"local\",\"namespace\":\"fleet-local\",\"labels\":{\"env\":\"prod\","
               "\"fleet.cattle.io/created-by-agent-pod\":\"p\"}},\"spec\":{\"clientID\":\"id\"}}");
    buf_done(&out);
    for (agent_object which = 0; which < AGENT_OBJECT_COUNT; which++) {
        buf expected = BUF(10000);
        err error;
        str rest = str_of(agent_objects[which]);
        while (rest.ptr) {
            size_t at = str_find(rest, STR("HOME"));
            buf_add(&expected, str_part(rest, 0, at));
            if (at == SIZE_MAX)
                break;
            buf_addz(&expected, "cluster-fleet-local-local-1a3d67d0a899");
            rest = str_part(rest, at + 4, SIZE_MAX);
        }
        assert_true(agent_object_put(&out, which, &r, &error));
        check_str(buf_str(&out), buf_str(&expected));
        buf_done(&out);
        buf_done(&expected);
    }
    content_role_put(&out);
    check_has_at(buf_str(&out),
                 STR("\"verbs\":[\"get\"],\"apiGroups\":[\"fleet.cattle.io\"],"
                     "\"resources\":[\"contents\"]"),
                 __FILE__, __LINE__);
    buf_done(&out);
}

/* Patches for the same object are replaced; the last correctDrift wins; neither is hashed. */
static void test_options_that_are_not_hashed(void **state)
{
    (void)state;
    arena *a = arena_new(0);
    err error;
    bundle_options base = {.diff = json(a, "{\"comparePatches\":[{\"kind\":\"A\",\"name\":\"x\"},"
                                           "{\"kind\":\"B\",\"name\":\"x\"}]}"),
                           .correct_drift = json(a, "{\"enabled\":true}")};
    bundle_options top = {.diff = json(a, "{\"comparePatches\":[{\"kind\":\"A\",\"name\":\"x\","
                                          "\"jsonPointers\":[\"/p\"]},{\"kind\":\"C\"}]}"),
                          .correct_drift = json(a, "{\"enabled\":false}")};
    const bundle_options *over = &top;
    option_layers l = {&base, &over, 1};
    check_text(options_json(a, &l, NULL, &error), "{}\n");
    check_text(options_all_json(a, &l, NULL, &error),
               "{\"diff\":{\"comparePatches\":[{\"jsonPointers\":[\"/p\"],\"kind\":\"A\","
               "\"name\":\"x\"},{\"kind\":\"B\",\"name\":\"x\"},{\"kind\":\"C\"}]},"
               "\"correctDrift\":{\"enabled\":false}}\n");
    arena_free(a);
}

static void test_merge_patches(void **state)
{
    (void)state;
    static const struct {
        const char *before, *after, *want; /* NULL: equal */
    } rows[] = {
        {"{\"a\":1,\"b\":2}", "{\"b\":2,\"a\":1}", NULL},
        {"{\"a\":1,\"b\":2}", "{\"a\":1,\"b\":3}", "{\"b\":3}"},
        {"{\"a\":1,\"b\":2}", "{\"b\":2}", "{\"a\":null}"},
        {"{\"a\":{\"x\":1,\"y\":2},\"b\":[1]}", "{\"a\":{\"x\":1,\"y\":3},\"b\":[1,2],\"c\":\"n\"}",
         "{\"a\":{\"y\":3},\"b\":[1,2],\"c\":\"n\"}"},
        {"{\"a\":{\"x\":1}}", "{\"a\":{}}", "{\"a\":{\"x\":null}}"},
        {"{\"a\":{\"x\":1}}", "{\"a\":[1]}", "{\"a\":[1]}"},
        {"{\"z\":{\"x\":{\"q\":1,\"p\":2}}}", "{\"z\":{\"x\":{\"p\":2,\"q\":1}}}", NULL},
        {"{\"z\":{\"x\":{\"q\":1,\"p\":2}},\"y\":1}", "{\"z\":{\"x\":{\"p\":2,\"q\":1}},\"y\":2}",
         "{\"y\":2}"},
        {"{}", "{\"a\":{\"b\":1}}", "{\"a\":{\"b\":1}}"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        arena *a = arena_new(0);
        buf out = BUF(1000);
        bool differs = merge_patch_put(&out, json(a, rows[i].before), json(a, rows[i].after));
        check_msg(differs == (rows[i].want != NULL), "row %zu", i);
        check_text(buf_str(&out), rows[i].want ? rows[i].want : "");
        buf_done(&out);
        arena_free(a);
    }
}

/* What a person may approve. */
static void test_partitions(void **state)
{
    (void)state;
#define RUNNING                                                                                    \
    "\"drover.dev/rollout\":\"{\\\"rollout\\\":{\\\"partitions\\\":["                              \
    "{\\\"name\\\":\\\"canary\\\"},{\\\"name\\\":\\\"old\\\"}]}}\""
#define SPEC                                                                                       \
    "\"spec\":{\"rolloutStrategy\":{\"partitions\":[{\"name\":\"canary\"},{\"name\":\"new\"}]}}"
    static const struct {
        const char *bundle, *name, *want;
    } rows[] = {
        {"{" SPEC "}", "canary", NULL},
        {"{" SPEC "}", "old", "partition: found \"old\", allowed \"canary\", \"new\""},
        {"{\"metadata\":{\"annotations\":{" RUNNING "}}," SPEC "}", "old", NULL},
        {"{\"metadata\":{\"annotations\":{" RUNNING "}}," SPEC "}", "new", NULL},
        {"{\"metadata\":{\"annotations\":{" RUNNING "}}," SPEC "}", "canery",
         "partition: found \"canery\", allowed \"canary\", \"old\", \"new\""},
        {"{\"metadata\":{\"annotations\":{\"drover.dev/rollout-strategy\":"
         "\"{\\\"partitions\\\":[{\\\"name\\\":\\\"noted\\\"}]}\"}}," SPEC "}",
         "noted", NULL},
        {"{\"metadata\":{\"annotations\":{\"drover.dev/rollout-strategy\":"
         "\"{\\\"partitions\\\":[{\\\"name\\\":\\\"noted\\\"}]}\"}}," SPEC "}",
         "new", "partition: found \"new\", allowed \"noted\""},
        {"{\"metadata\":{\"annotations\":{\"drover.dev/rollout\":\"[\"}}}", "x",
         "partition: found \"x\", but there are no partitions"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        arena *a = arena_new(0);
        err error = {0};
        yyjson_val *made = json_parse(a, str_of(rows[i].bundle), &error);
        check_msg(made, "%s: %s", rows[i].bundle, error.text);
        bool has = bundle_has_partition(a, made, str_of(rows[i].name), &error);
        check_msg(has == !rows[i].want, "%s in %s: %s", rows[i].name, rows[i].bundle, error.text);
        if (rows[i].want)
            check_err(error, rows[i].want);
        arena_free(a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_content),
        cmocka_unit_test(test_content_that_is_too_big),
        cmocka_unit_test(test_bundle_deployment),
        cmocka_unit_test(test_bundle_deployment_held_back),
        cmocka_unit_test(test_bundle_deployments_without_content),
        cmocka_unit_test(test_cluster_namespace),
        cmocka_unit_test(test_a_registered_cluster),
        cmocka_unit_test(test_options_that_are_not_hashed),
        cmocka_unit_test(test_merge_patches),
        cmocka_unit_test(test_partitions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
