/* SPDX-License-Identifier: Apache-2.0 */
/* Patches of overlays: JSON patches, strategic merge patches and JSON merge patches, what they make
 * of a file, and what is wrong with them. */
#include "support/check.h"

#include "base/arena.h"
#include "cluster_agent/manifest_internal.h"
#include "model/document.h"

#define POD(spec) "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: " spec "}"
#define POD_JSON(spec)                                                                             \
    "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"a\"},\"spec\":" spec "}"
#define TILL(spec) "{apiVersion: shop.io/v1, kind: Till, metadata: {name: a}, spec: " spec "}"
#define TILL_JSON(spec)                                                                            \
    "{\"apiVersion\":\"shop.io/v1\",\"kind\":\"Till\",\"metadata\":{\"name\":\"a\"},\"spec\":"     \
    "" spec "}"

static const struct {
    const char *name, *base, *patch, *want;
} good[] = {
    {"members are set, changed and removed", TILL("{a: 1, b: {c: 1, d: 2}, e: 3}"),
     "spec: {a: 2, b: {c: null, x: {y: null, z: 1}}, f: [1]}",
     TILL_JSON("{\"a\":2,\"b\":{\"d\":2,\"x\":{\"z\":1}},\"e\":3,\"f\":[1]}")},
    {"a list of another's kind is replaced", TILL("{containers: [{name: a}, {name: b}]}"),
     "spec: {containers: [{name: b, x: 1}]}",
     TILL_JSON("{\"containers\":[{\"name\":\"b\",\"x\":1}]}")},
    {"words of a strategic patch are members there", TILL("{a: 1}"), "spec: {$patch: replace}",
     TILL_JSON("{\"a\":1,\"$patch\":\"replace\"}")},
    {"containers are known by name", POD("{containers: [{name: a, image: x}, {name: b}]}"),
     "spec: {containers: [{name: b, image: z}, {name: c}]}",
     POD_JSON("{\"containers\":[{\"name\":\"a\",\"image\":\"x\"},{\"name\":\"b\",\"image\":"
              "\"z\"},{\"name\":\"c\"}]}")},
    {"and deleted by it", POD("{containers: [{name: a}, {name: b}]}"),
     "spec: {containers: [{name: a, $patch: delete}]}",
     POD_JSON("{\"containers\":[{\"name\":\"b\"}]}")},
    {"a list that replaces", POD("{containers: [{name: a}, {name: b}]}"),
     "spec: {containers: [{$patch: replace}, {name: c}]}",
     POD_JSON("{\"containers\":[{\"name\":\"c\"}]}")},
    {"lists in lists",
     POD("{containers: [{name: a, env: [{name: X, value: \"1\"}], ports: [{containerPort: 80}], "
         "volumeMounts: [{mountPath: /a, name: v}], args: [x, y]}]}"),
     "spec: {containers: [{name: a, env: [{name: Z, value: \"2\"}], ports: [{containerPort: 80, "
     "name: web}], volumeMounts: [{mountPath: /a, readOnly: true}], args: [z]}]}",
     POD_JSON("{\"containers\":[{\"name\":\"a\",\"env\":[{\"name\":\"X\",\"value\":\"1\"},"
              "{\"name\":\"Z\",\"value\":\"2\"}],\"ports\":[{\"containerPort\":80,\"name\":"
              "\"web\"}],\"volumeMounts\":[{\"mountPath\":\"/a\",\"name\":\"v\",\"readOnly\":true}"
              "],\"args\":[\"z\"]}]}")},
    {"tolerations are replaced", POD("{tolerations: [{key: a}]}"),
     "spec: {tolerations: [{key: b}]}", POD_JSON("{\"tolerations\":[{\"key\":\"b\"}]}")},
    {"an object that replaces", POD("{securityContext: {a: 1, b: 2}}"),
     "spec: {securityContext: {$patch: replace, c: 3}}",
     POD_JSON("{\"securityContext\":{\"c\":3}}")},
    {"an object that is deleted", POD("{securityContext: {a: 1}, x: 1}"),
     "spec: {securityContext: {$patch: delete}}", POD_JSON("{\"x\":1}")},
    {"ports of a Service",
     "{apiVersion: v1, kind: Service, spec: {ports: [{port: 80, name: a}, {port: 443}]}}",
     "spec: {ports: [{port: 443, name: tls}]}",
     "{\"apiVersion\":\"v1\",\"kind\":\"Service\",\"spec\":{\"ports\":[{\"port\":80,\"name\":\"a\"}"
     ",{\"port\":443,\"name\":\"tls\"}]}}"},
    {"a JSON patch", POD("{a: 1, l: [1, 2, 3], o: {x: 1}}"),
     "[{op: test, path: /spec/a, value: 1}, {op: replace, path: /spec/a, value: 2},"
     "{op: add, path: /spec/l/1, value: 9}, {op: add, path: /spec/l/-, value: 4},"
     "{op: remove, path: /spec/l/0}, {op: copy, from: /spec/a, path: /spec/b},"
     "{op: move, from: /spec/o/x, path: /spec/o/w}, {op: add, path: /spec/o/w, value: {z: 1}}]",
     POD_JSON("{\"l\":[9,2,3,4],\"o\":{\"w\":{\"z\":1}},\"a\":2,\"b\":2}")},
    {"the object that is meant", POD("{a: 1}") "\n---\n" TILL("{a: 1}"),
     "{apiVersion: shop.io/v1, kind: Till, metadata: {name: a}, spec: {a: 2}}",
     POD_JSON("{\"a\":1}") "\n---\n" TILL_JSON("{\"a\":2}")},
    {"JSON", "{\"a\": 1}", "{\n\t\"a\": 2\n}", "{\"a\":2}"},
};

static const struct {
    const char *name, *base, *patch, *what;
} bad[] = {
    {"no YAML", POD("{}"), "a: [", "overlays/x/a_patch.yaml: line "},
    {"a base that is none", "a: [", "a: 1", "a.yaml"},
    {"nobody is meant", POD("{}") "\n---\n" TILL("{}"), "spec: {a: 1}", "none of the 2 objects"},
    {"a directive", POD("{}"), "spec: {$retainKeys: [a]}", "found \"$retainKeys\""},
    {"a wrong directive", POD("{a: {}}"), "spec: {a: {$patch: merger}}", "found \"merger\""},
    {"an element without its key", POD("{containers: [{name: a}]}"), "spec: {containers: [{x: 1}]}",
     "without \"name\""},
    {"an operation", POD("{}"), "[{op: change, path: /a}]", "op: found \"change\""},
    {"a path that is not there", POD("{}"), "[{op: remove, path: /spec/a}]",
     "remove of \"/spec/a\" cannot be done"},
    {"a parent that is not there", POD("{}"), "[{op: add, path: /spec/a/b, value: 1}]",
     "add of \"/spec/a/b\" cannot be done"},
    {"a test that fails", POD("{a: 1}"), "[{op: test, path: /spec/a, value: 2}]", "test of"},
};

static void test_patches(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(good); i++) {
        arena *a = arena_new(0);
        err error = {0};
        resource_file file = {STR("a.yaml"), str_of(good[i].base)};
        resource_file patch = {STR("overlays/x/a_patch.yaml"), str_of(good[i].patch)};
        check_msg(manifest_patch(a, &file, &patch, &error), "%s: %s", good[i].name, error.text);
        check_msg(str_eq(file.bytes, str_of(good[i].want)), "%s: %.*s", good[i].name,
                  STR_ARG(file.bytes));
        arena_free(a);
    }
}

static void test_what_is_wrong(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        arena *a = arena_new(0);
        err error = {0};
        resource_file file = {STR("a.yaml"), str_of(bad[i].base)};
        resource_file patch = {STR("overlays/x/a_patch.yaml"), str_of(bad[i].patch)};
        check_msg(!manifest_patch(a, &file, &patch, &error), "%s", bad[i].name);
        check_msg(str_find(str_of(error.text), str_of(bad[i].what)) != SIZE_MAX, "%s: %s",
                  bad[i].name, error.text);
        arena_free(a);
    }
}

/* Overlays in their order, each over what the ones before left. */
static void test_overlays(void **state)
{
    (void)state;
    arena *a = arena_new(0);
    err error = {0};
    resource_file files[] = {
        {STR("dir/a.yaml"), STR("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {x: "
                                "base}}")},
        {STR("overlays/one/dir/a_patch.yaml"), STR("data: {x: one, v: one}")},
        {STR("overlays/two/dir/a_patch.yaml"), STR("data: {x: two}")}};
    str text = STR("{\"metadata\":{\"name\":\"web\"},\"spec\":{\"options\":{\"yaml\":{\"overlays\":"
                   "[\"two\",\"one\"]}}}}");
    manifest_source from = {.deployment = json_parse(a, text, &error),
                            .files = {files, COUNT_OF(files)},
                            .values = STR_EMPTY};
    manifest m;
    check_msg(manifest_read(a, &from, &m, &error) == MANIFEST_NONE, "%s", error.text);
    assert_int_equal(m.len, 1);
    const yyjson_val *data = yyjson_obj_get(json_parse(a, m.at[0].text, &error), "data");
    check_text(object_text(data, STR("x")), "one");
    check_text(object_text(data, STR("v")), "one");
    arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_patches),
        cmocka_unit_test(test_what_is_wrong),
        cmocka_unit_test(test_overlays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
