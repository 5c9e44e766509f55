/* SPDX-License-Identifier: Apache-2.0 */
/* What a BundleDeployment puts into its cluster: contents unpacked, objects found, placed and
 * ordered, charts told, and everything that is wrong with them. */
#include "support/check.h"

#include "base/arena.h"
#include "base/base64.h"
#include "base/gzip.h"
#include "cluster_agent/manifest.h"
#include "model/document.h"
#include "operator/bundle_objects.h"

#define KINDS                                                                                      \
    "{\"kind\":\"APIResourceList\",\"groupVersion\":\"v1\",\"resources\":["                        \
    "{\"name\":\"namespaces\",\"kind\":\"Namespace\"},"                                            \
    "{\"name\":\"configmaps\",\"kind\":\"ConfigMap\",\"namespaced\":true},"                        \
    "{\"name\":\"services\",\"kind\":\"Service\",\"namespaced\":true}]}"
#define DEFINED                                                                                    \
    "{\"kind\":\"APIResourceList\",\"groupVersion\":\"apiextensions.k8s.io/v1\",\"resources\":["   \
    "{\"name\":\"customresourcedefinitions\",\"kind\":\"CustomResourceDefinition\"}]}"
#define MAP(name) "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " name "}\n"
#define OWNED "\"labels\":{\"drover.dev/deployment\":\"web\"}"

typedef struct fixture {
    arena *arena;
    discovery *kinds;
    resource_file files[8];
    size_t len;
    const char *options;
    const char *values;
    manifest m;
    err error;
} fixture;

static fixture fixture_new(const char *options)
{
    fixture f = {.arena = arena_new(0), .kinds = discovery_new(), .options = options};
    static const char *const answers[] = {KINDS, DEFINED};
    for (size_t i = 0; i < COUNT_OF(answers); i++)
        assert_true(discovery_read(f.kinds, json_parse(f.arena, str_of(answers[i]), NULL), NULL));
    return f;
}

static void fixture_done(fixture *f)
{
    discovery_free(f->kinds);
    arena_free(f->arena);
}

static void add_file(fixture *f, const char *name, const char *text)
{
    f->files[f->len++] = (resource_file){str_of(name), str_of(text)};
}

static manifest_fault read_it(fixture *f)
{
    str text = arena_printf(f->arena,
                            "{\"metadata\":{\"name\":\"web\",\"namespace\":\"c1\"},\"spec\":{"
                            "\"options\":%s}}",
                            f->options);
    manifest_source from = {.deployment = json_parse(f->arena, text, &f->error),
                            .files = {f->files, f->len},
                            .values = str_of(f->values ? f->values : "")};
    assert_non_null(from.deployment);
    return manifest_read(f->arena, &from, &f->m, &f->error);
}

static manifest_fault place_it(fixture *f)
{
    manifest_fault fault = read_it(f);
    return fault != MANIFEST_NONE ? fault : manifest_place(f->arena, &f->m, f->kinds, &f->error);
}

/* ---- contents ---- */

#define RESOURCES                                                                                  \
    "[{\"name\":\"b.yaml\",\"content\":\"eA==\",\"encoding\":\"base64\"},"                         \
    "{\"name\":\"a.yaml\",\"content\":\"<x>\"}]"

static void test_content(void **state)
{
    (void)state;
    arena *a = arena_new(0);
    err error;
    buf text = BUF(LIMIT_TEXT_BYTES);
    resource_files files;
    assert_true(content_put(&text, json_parse(a, STR(RESOURCES), &error), &error));
    assert_true(content_read(a, json_parse(a, buf_str(&text), &error), &files, &error));
    assert_int_equal(files.len, 2);
    check_text(files.at[0].name, "a.yaml");
    check_text(files.at[0].bytes, "<x>");
    check_text(files.at[1].bytes, "x");
    buf_done(&text);
    arena_free(a);
}

static void test_bad_contents(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"{}", "Content : found bytes that are no gzip"},
        {"{\"metadata\":{\"name\":\"c\"},\"content\":\"$\"}",
         "Content c: found text that is no base64"},
        {"{\"metadata\":{\"name\":\"c\"},\"content\":\"eHh4\"}",
         "Content c: found bytes that are no gzip"},
        {"{\"metadata\":{\"name\":\"c\"},\"sha256sum\":\"00\",\"content\":"
         "\"H4sIAAAAAAAAAwMAAAAAAAAAAAA=\"}",
         "Content c: sha256sum: found \"00\", but the content has "
         "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        arena *a = arena_new(0);
        err error;
        resource_files files;
        assert_false(content_read(a, json_parse(a, str_of(rows[i][0]), &error), &files, &error));
        check_err(error, rows[i][1]);
        arena_free(a);
    }
}

static void test_bad_resources(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"", "this is not JSON"},
        {"[]", "found no list of resources"},
        {"{\"resources\":{}}", "found no list of resources"},
        {"{\"resources\":[{}]}", "found the name \"\", allowed a path below a folder"},
        {"{\"resources\":[{\"name\":\"../x\"}]}", "found the name \"../x\""},
        {"{\"resources\":[{\"name\":\"/x\"}]}", "found the name \"/x\""},
        {"{\"resources\":[{\"name\":\"a//x\"}]}", "found the name \"a//x\""},
        {"{\"resources\":[{\"name\":\"x\",\"encoding\":\"zip\"}]}",
         "x: encoding: found \"zip\", allowed base64, base64+gz"},
        {"{\"resources\":[{\"name\":\"x\",\"content\":\"eHh4\",\"encoding\":\"base64+gz\"}]}",
         "x: found bytes that are no gzip"},
        {"{\"resources\":[{\"name\":\"x\"},{\"name\":\"x\"}]}", "found \"x\" twice, allowed once"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        arena *a = arena_new(0);
        err error;
        resource_files files;
        assert_false(resources_read(a, str_of(rows[i][0]), &files, &error));
        check_err_has(error, rows[i][1]);
        arena_free(a);
    }
}

/* A few bytes that would unpack to more than is allowed. */
static void test_bomb(void **state)
{
    (void)state;
    arena *a = arena_new(0);
    err error;
    buf large = BUF(LIMIT_TEXT_BYTES), zipped = BUF(LIMIT_TEXT_BYTES), text = BUF(LIMIT_TEXT_BYTES);
    while (large.len <= MANIFEST_BYTES_MAX)
        buf_add(&large, STR("                                                                "));
    assert_true(gzip_compress(buf_str(&large), &zipped));
    buf_addz(&text, "{\"metadata\":{\"name\":\"c\"},\"content\":\"");
    base64_encode(buf_str(&zipped), &text);
    buf_addz(&text, "\"}");
    resource_files files;
    assert_false(content_read(a, json_parse(a, buf_str(&text), &error), &files, &error));
    check_err_has(error, "found more than the 16777216 bytes that a Content may unpack to");
    buf_done(&large);
    buf_done(&zipped);
    buf_done(&text);
    arena_free(a);
}

/* ---- plain manifests ---- */

static void test_objects_in_order(void **state)
{
    (void)state;
    fixture f = fixture_new("{\"defaultNamespace\":\"shop\"}");
    add_file(&f, "app.yaml",
             "apiVersion: v1\nkind: Service\nmetadata: {name: s}\n---\n# nothing\n---\n" MAP(
                 "b") "---\n" MAP("a"));
    add_file(&f, "crd.json",
             "{\"apiVersion\":\"apiextensions.k8s.io/v1\",\"kind\":\"CustomResourceDefinition\","
             "\"metadata\":{\"name\":\"tills.shop.io\"},\"spec\":{\"group\":\"shop.io\",\"scope\":"
             "\"Cluster\",\"names\":{\"kind\":\"Till\",\"plural\":\"tills\"},\"versions\":[{"
             "\"name\":\"v1\"}]}}");
    add_file(&f, "fleet.yaml", "namespace: x");
    add_file(&f, "list.yml",
             "kind: List\napiVersion: v1\nitems:\n- apiVersion: shop.io/v1\n  kind: Till\n"
             "  metadata: {name: t, namespace: ignored}\n");
    add_file(&f, "notes.md", "not: [yaml");
    check_msg(place_it(&f) == MANIFEST_NONE, "%s", f.error.text);
    static const char *const want[] = {
        "/api/v1/namespaces",
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        "/api/v1/namespaces/shop/configmaps",
        "/api/v1/namespaces/shop/configmaps",
        "/api/v1/namespaces/shop/services",
        "/apis/shop.io/v1/tills",
    };
    assert_int_equal(f.m.len, COUNT_OF(want));
    for (size_t i = 0; i < COUNT_OF(want); i++)
        check_text(f.m.at[i].collection, want[i]);
    check_text(f.m.at[2].ref.name, "a");
    check_text(f.m.at[2].body, "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{"
                               "\"name\":\"a\",\"namespace\":\"shop\"," OWNED "}}");
    assert_true(f.m.at[0].shared);
    check_text(f.m.at[0].body, "{\"apiVersion\":\"v1\",\"kind\":\"Namespace\",\"metadata\":{"
                               "\"name\":\"shop\"}}");
    assert_true(f.m.at[1].definition);
    check_has_at(f.m.at[1].body, STR("\"annotations\":{\"drover.dev/resource-policy\":\"keep\"}"),
                 __FILE__, __LINE__);
    check_text(f.m.at[5].ref.namespace_, "");
    check_text(f.m.release, "web");
    fixture_done(&f);
}

/* What only the server says is not applied; what people say stays. */
static void test_bodies(void **state)
{
    (void)state;
    fixture f = fixture_new("{\"namespace\":\"shop\",\"helm\":{\"releaseName\":\"front\"},"
                            "\"namespaceLabels\":{\"team\":\"b\"},\"namespaceAnnotations\":{"
                            "\"note\":\"1\"}}");
    add_file(&f, "a.yaml",
             "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  namespace: elsewhere\n"
             "  uid: u\n  resourceVersion: '7'\n  creationTimestamp: null\n  labels: {x: 'y', "
             "drover.dev/deployment: other}\n  annotations: {note: '1'}\n  finalizers: [f]\n"
             "data: {k: v}\nstatus: {s: 1}\n");
    add_file(&f, "n.yaml",
             "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop, labels: {team: a}}\n");
    check_msg(place_it(&f) == MANIFEST_NONE, "%s", f.error.text);
    assert_int_equal(f.m.len, 2);
    check_text(f.m.at[0].body,
               "{\"apiVersion\":\"v1\",\"kind\":\"Namespace\",\"metadata\":{\"name\":\"shop\","
               "\"labels\":{\"team\":\"b\",\"drover.dev/deployment\":\"web\"},\"annotations\":{"
               "\"note\":\"1\"}}}");
    check_text(f.m.at[1].body,
               "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"a\","
               "\"namespace\":\"shop\",\"labels\":{\"x\":\"y\",\"drover.dev/deployment\":\"web\"},"
               "\"annotations\":{\"note\":\"1\"},\"finalizers\":[\"f\"]},\"data\":{\"k\":\"v\"}}");
    check_text(f.m.release, "front");
    fixture_done(&f);
}

/* Charts and Bundles in folders of their own are not part of this one, as in Fleet. */
static void test_folders_apart(void **state)
{
    (void)state;
    fixture f = fixture_new("{}");
    add_file(&f, "a.yaml", MAP("a"));
    add_file(&f, "fleet.yml", "defaultNamespace: x\n");
    add_file(&f, "chart/Chart.yaml", "name: web\n");
    add_file(&f, "chart/templates/b.yaml", "name: {{ .Release.Name }}\n");
    add_file(&f, "charts.yaml", MAP("charts"));
    add_file(&f, "other/fleet.yaml", "defaultNamespace: x\n");
    add_file(&f, "other/c.yaml", MAP("c"));
    add_file(&f, "sub/d.yaml", MAP("d"));
    check_msg(place_it(&f) == MANIFEST_NONE, "%s", f.error.text);
    assert_int_equal(f.m.len, 4);
    check_text(f.m.at[1].ref.name, "a");
    check_text(f.m.at[2].ref.name, "charts");
    check_text(f.m.at[3].ref.name, "d");
    fixture_done(&f);
}

static void test_overlays(void **state)
{
    (void)state;
    fixture f = fixture_new("{\"yaml\":{\"overlays\":[\"prod\"]}}");
    add_file(&f, "a.yaml", MAP("a"));
    add_file(&f, "overlays/prod/a.yaml", MAP("prod"));
    add_file(&f, "overlays/prod/more.yaml", MAP("more"));
    add_file(&f, "overlays/test/a.yaml", MAP("test"));
    check_msg(place_it(&f) == MANIFEST_NONE, "%s", f.error.text);
    assert_int_equal(f.m.len, 3);
    check_text(f.m.at[1].ref.name, "more");
    check_text(f.m.at[2].ref.name, "prod");
    fixture_done(&f);
}

typedef struct bad_row {
    const char *options, *file, *text;
    manifest_fault fault;
    const char *message;
} bad_row;

static const bad_row bad_rows[] = {
    {"{}", "a.yaml", "a: [", MANIFEST_BAD, "a.yaml:"},
    {"{}", "a.yaml", "- 1", MANIFEST_BAD, "a.yaml:1: found a list"},
    {"{}", "a.yaml", "metadata: {name: a}", MANIFEST_BAD, "a.yaml: found an object without kind"},
    {"{}", "a.yaml", "kind: ConfigMap", MANIFEST_BAD, "a.yaml: found an object without apiVersion"},
    {"{}", "a.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {generateName: a}", MANIFEST_BAD,
     "metadata.name: found \"\", allowed the name of an object"},
    {"{}", "a.yaml", MAP("a/b"), MANIFEST_BAD, "metadata.name: found \"a/b\""},
    {"{}", "a.yaml", MAP(".."), MANIFEST_BAD, "metadata.name: found \"..\""},
    {"{}", "a.yaml", MAP("a") "---\n" MAP("a"), MANIFEST_BAD,
     "found ConfigMap a twice, allowed once"},
    {"{}", "a.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: a/b}",
     MANIFEST_BAD, "metadata.namespace: found \"a/b\""},
    {"{\"namespace\":\"../x\"}", "a.yaml", MAP("a"), MANIFEST_BAD, "the namespace \"../x\""},
    {"{\"namespace\":\"shop\"}", "a.yaml",
     "apiVersion: v1\nkind: Namespace\nmetadata: {name: other}", MANIFEST_BAD,
     "Namespace other has no namespace, but options.namespace puts everything into one"},
    {"{}", "a.yaml", "apiVersion: shop.io/v1\nkind: Till\nmetadata: {name: t}",
     MANIFEST_UNKNOWN_KIND, "the cluster has no kind Till in shop.io/v1, wanted by \"t\""},
    {"{\"kustomize\":{\"dir\":\"x\"}}", "a.yaml", MAP("a"), MANIFEST_UNSUPPORTED,
     "found kustomize, which this agent does not support"},
    {"{}", "base/kustomization.yaml", "resources: []", MANIFEST_UNSUPPORTED, "found kustomize"},
    {"{\"helm\":{\"releaseName\":\"-f\"}}", "a.yaml", MAP("a"), MANIFEST_BAD,
     "options.helm.releaseName: found \"-f\", allowed parts of lower case letters"},
    {"{\"helm\":{\"releaseName\":\"a/b\"}}", "a.yaml", MAP("a"), MANIFEST_BAD,
     "options.helm.releaseName: found \"a/b\""},
    {"{\"helm\":{\"releaseName\":"
     "\"a23456789.b23456789.c23456789.d23456789.e23456789.f234\"}}",
     "a.yaml", MAP("a"), MANIFEST_BAD, "at most 53 bytes in all"},
    {"{\"serviceAccount\":\"a/b\"}", "a.yaml", MAP("a"), MANIFEST_BAD,
     "options.serviceAccount: found \"a/b\", allowed the name of one"},
    {"{\"serviceAccount\":\"a:b\"}", "a.yaml", MAP("a"), MANIFEST_BAD,
     "options.serviceAccount: found \"a:b\""},
    {"{\"downstreamResources\":[{}]}", "a.yaml", MAP("a"), MANIFEST_UNSUPPORTED,
     "found downstreamResources"},
    {"{\"downstreamResources\":[{\"kind\":\"Secret\"}]}", "Chart.yaml", "name: web",
     MANIFEST_UNSUPPORTED, "found downstreamResources"},
    {"{\"yaml\":{\"overlays\":[\"x\"]}}", "a.yaml", MAP("a"), MANIFEST_BAD,
     "yaml.overlays: found \"x\", but there is no folder overlays/x"},
    {"{\"yaml\":{\"overlays\":[\"x\"]}}", "overlays/x/a_patch.yaml", MAP("a"), MANIFEST_BAD,
     "overlays/x/a_patch.yaml: found a patch, but there is no file a.yaml"},
    {"{\"helm\":{\"chart\":\"/proc/1/fd/9/files\"}}", "a.yaml", MAP("a"), MANIFEST_BAD,
     "helm.chart: found \"/proc/1/fd/9/files\", which is no folder"},
    {"{\"helm\":{\"chart\":\"proc/1/fd/9/files\",\"repo\":\"https://shop.io\"}}", "a.yaml",
     MAP("a"), MANIFEST_BAD, "helm.chart: found \"proc/1/fd/9/files\", which is no folder"},
    {"{\"helm\":{\"chart\":\" /tmp/web\"}}", "a.yaml", MAP("a"), MANIFEST_BAD,
     "which is no folder"},
    {"{\"helm\":{\"chart\":\"./web\"}}", "a.yaml", MAP("a"), MANIFEST_BAD, "which is no folder"},
};

static void test_too_many_objects(void **state)
{
    (void)state;
    for (unsigned more = 0; more < 2; more++) {
        fixture f = fixture_new("{}");
        buf text = BUF(LIMIT_TEXT_BYTES);
        for (unsigned i = 0; i < MANIFEST_OBJECTS_MAX + more; i++)
            buf_addf(&text, "---\n" MAP("a%u"), i);
        buf_addc(&text, '\0');
        add_file(&f, "a.yaml", text.ptr);
        assert_int_equal(place_it(&f), more ? MANIFEST_BAD : MANIFEST_NONE);
        if (more)
            check_err_has(f.error, "found more than the 5000 objects that are allowed");
        buf_done(&text);
        fixture_done(&f);
    }
}

static void test_bad_manifests(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(bad_rows); i++) {
        fixture f = fixture_new(bad_rows[i].options);
        add_file(&f, bad_rows[i].file, bad_rows[i].text);
        manifest_fault fault = place_it(&f);
        check_msg(fault == bad_rows[i].fault, "row %zu: %s", i, manifest_fault_text(fault));
        check_err_has(f.error, bad_rows[i].message);
        fixture_done(&f);
    }
}

/* ---- charts ---- */

static void test_charts(void **state)
{
    (void)state;
/* SHA-256 of "web::1.2" */
#define FETCHED ".chart/47226c57058af7d75d719e9a4c2189f02a1233a0ce2539b4b87ca308bcb35d3d"
    static const struct {
        const char *chart, *file, *want;
    } rows[] = {
        {"", "Chart.yaml", ""},
        {"./charts/web/", "charts/web/Chart.yaml", "charts/web"},
        {"web", FETCHED "/Chart.yaml", FETCHED},
        {"web", FETCHED "/web/Chart.yaml", FETCHED "/web"},
        {"web", FETCHED "/web/charts/sub/Chart.yaml", NULL},
        {"web", ".chart/0123/Chart.yaml", NULL}, /* another target's */
        {"web", "Chart.yaml", NULL},
        {"web", "elsewhere/Chart.yaml", NULL},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char options[256];
        snprintf(options, sizeof options,
                 "{\"helm\":{\"chart\":\"%s\",\"version\":\"1.2\",\"timeoutSeconds\":90,\"atomic\":"
                 "true,\"valuesFiles\":[\"in-values.yaml\",\"./v.yaml\"]}}",
                 rows[i].chart);
        fixture f = fixture_new(options);
        f.values = "{\"a\":{\"b\":1}}";
        add_file(&f, rows[i].file, "name: web");
        add_file(&f, "v.yaml", "x: 1");
        check_msg(place_it(&f) == MANIFEST_NONE, "row %zu: %s", i, f.error.text);
        assert_true(f.m.is_chart);
        if (rows[i].want)
            check_text(f.m.chart.folder, rows[i].want);
        else
            assert_null(f.m.chart.folder.ptr);
        check_text(f.m.chart.values, "{\"a\":{\"b\":1}}");
        assert_int_equal(f.m.chart.timeout_s, 90);
        assert_true(f.m.chart.atomic && !f.m.chart.force);
        assert_int_equal(f.m.chart.values_files.len, 1);
        check_text(f.m.chart.values_files.at[0], "v.yaml");
        assert_int_equal(f.m.len, 0);
        assert_int_equal(
            manifest_rendered(f.arena, &f.m, STR("---\n# Source: x\n" MAP("a")), &f.error),
            MANIFEST_NONE);
        assert_int_equal(manifest_place(f.arena, &f.m, f.kinds, &f.error), MANIFEST_NONE);
        check_text(f.m.at[0].ref.namespace_, "default");
        assert_null(strstr(f.m.at[0].body.ptr, "drover.dev/deployment"));
        fixture_done(&f);
    }
}

/* A chart in a registry has one address. */
static void test_registries(void **state)
{
    (void)state;
    static const char *const rows[][3] = {
        {"{\"repo\":\"oci://shop.io/charts/web\"}", "oci://shop.io/charts/web", ""},
        {"{\"repo\":\"oci://shop.io/charts\",\"chart\":\"web\"}", "oci://shop.io/charts/web", ""},
        {"{\"chart\":\"oci://shop.io/charts/web\"}", "oci://shop.io/charts/web", ""},
        {"{\"chart\":\"https://shop.io/charts/web/web-1.tgz\"}",
         "https://shop.io/charts/web/web-1.tgz", ""},
        {"{\"chart\":\"shop/web\"}", "shop/web", ""},
        {"{\"repo\":\"https://shop.io\",\"chart\":\"web\"}", "web", "https://shop.io"}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char options[256];
        snprintf(options, sizeof options, "{\"helm\":%s}", rows[i][0]);
        fixture f = fixture_new(options);
        check_msg(place_it(&f) == MANIFEST_NONE, "row %zu: %s", i, f.error.text);
        assert_true(f.m.is_chart && !f.m.chart.folder.ptr && !f.m.chart.skip_tls_verify);
        check_text(f.m.chart.name, rows[i][1]);
        check_text(f.m.chart.repo, rows[i][2]);
        fixture_done(&f);
    }
}

static void test_bad_values(void **state)
{
    (void)state;
    static const char *const rows[][2] = {{"{", "values: this is not JSON"},
                                          {"[]", "values: found something that is no object"}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        fixture f = fixture_new("{}");
        f.values = rows[i][0];
        add_file(&f, "Chart.yaml", "name: web");
        assert_int_equal(place_it(&f), MANIFEST_BAD);
        check_err_has(f.error, rows[i][1]);
        fixture_done(&f);
    }
}

/* ---- the rest ---- */

static void test_owner(void **state)
{
    (void)state;
    arena *a = arena_new(0);
    str value = owner_label(a, STR("a-name-that-is-much-too-long-to-be-the-value-of-a-label-in-the-"
                                   "cluster"));
    assert_true(value.len <= LIMIT_LABEL_VALUE_BYTES);
    yyjson_val *ours =
        json_parse(a, STR("{\"metadata\":{\"labels\":{\"drover.dev/deployment\":\"web\"}}}"), NULL);
    yyjson_val *nobodys = json_parse(a, STR("{\"metadata\":{}}"), NULL);
    assert_true(owner_is(ours, STR("web")));
    assert_false(owner_is(ours, STR("other")));
    assert_false(owner_is(nobodys, STR_EMPTY));
    assert_true(kind_order(STR("Namespace")) < kind_order(STR("CustomResourceDefinition")));
    assert_true(kind_order(STR("CustomResourceDefinition")) < kind_order(STR("ConfigMap")));
    assert_true(kind_order(STR("APIService")) < kind_order(STR("Anything")));
    arena_free(a);
}

static bool whole(void *context)
{
    str content = *(const str *)context;
    err error;
    arena *a = arena_new(0);
    discovery *d = discovery_new();
    manifest m;
    resource_files files;
    yyjson_val *kinds = a ? json_parse(a, STR(KINDS), NULL) : NULL;
    yyjson_val *json = a ? json_parse(a, content, NULL) : NULL;
    yyjson_val *deployment =
        a ? json_parse(a, STR("{\"metadata\":{\"name\":\"web\"},\"spec\":{}}"), NULL) : NULL;
    bool good = d && kinds && json && deployment && discovery_read(d, kinds, &error) &&
                content_read(a, json, &files, &error);
    if (good) {
        manifest_source from = {.deployment = deployment, .files = files, .values = STR_EMPTY};
        manifest_fault fault = manifest_read(a, &from, &m, &error);
        if (fault == MANIFEST_NONE)
            fault = manifest_place(a, &m, d, &error);
        check_msg(fault == MANIFEST_NONE || fault == MANIFEST_MEMORY, "%s", error.text);
        good = fault == MANIFEST_NONE;
    }
    discovery_free(d);
    arena_free(a);
    return good;
}

static void test_memory(void **state)
{
    (void)state;
    arena *a = arena_new(0);
    err error;
    buf text = BUF(LIMIT_TEXT_BYTES);
    yyjson_val *list =
        json_parse(a,
                   STR("[{\"name\":\"a.yaml\",\"content\":\"apiVersion: v1\\nkind: ConfigMap\\n"
                       "metadata: {name: a}\\n\"},{\"name\":\"b.md\",\"encoding\":\"base64\","
                       "\"content\":\"e30=\"}]"),
                   &error);
    assert_true(content_put(&text, list, &error));
    str content = buf_str(&text);
    check_each_allocation_fails(whole, &content);
    buf_done(&text);
    arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_content),          cmocka_unit_test(test_bad_contents),
        cmocka_unit_test(test_bad_resources),    cmocka_unit_test(test_bomb),
        cmocka_unit_test(test_objects_in_order), cmocka_unit_test(test_bodies),
        cmocka_unit_test(test_folders_apart),    cmocka_unit_test(test_overlays),
        cmocka_unit_test(test_too_many_objects), cmocka_unit_test(test_bad_manifests),
        cmocka_unit_test(test_charts),           cmocka_unit_test(test_registries),
        cmocka_unit_test(test_bad_values),       cmocka_unit_test(test_owner),
        cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
