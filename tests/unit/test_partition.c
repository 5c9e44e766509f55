/* SPDX-License-Identifier: Apache-2.0 */
/* Limits (fleet.md 2.3), the cut (fleet.md 2.4) and identities (fleet.md 1.4), row by row. */
#include "support/check.h"

#include "engine/deployment_id.h"
#include "engine/fleet_names.h"
#include "engine/partition.h"
#include "model/document.h"

static int_or_percent amount(const char *text)
{
    int_or_percent v = {0};
    err error;
    if (text[0] == '#') { /* a JSON number */
        return (int_or_percent){AMOUNT_COUNT, strtoll(text + 1, NULL, 10), STR_EMPTY};
    }
    if (text[0] == '-' && text[1] == 0)
        return v;
    check_msg(int_or_percent_parse(str_of(text), &v, &error), "%s: %s", text, error.text);
    return v;
}

static void test_fleet_2_3_limit_vectors(void **state)
{
    (void)state;
    static const struct {
        int64_t count;
        const char *value;
        int64_t want;
    } rows[] = {
        {10, "#5", 5},      {10, "#15", 10},  {10, "#0", 0},      {10, "#-3", 0},  {0, "#15", 1},
        {-15, "#15", 1},    {50, "-", 50},    {10, "0%", 1},      {10, "-10%", 1}, {5, "10%", 1},
        {11, "100%", 11},   {10, "150%", 10}, {10, "49%", 4},     {4, "49%", 1},   {230, "25%", 57},
        {1000, "49%", 490}, {200, "0.5%", 1}, {200, "33.3%", 66}, {3, "66.6%", 1}, {3, "66.7%", 2},
        {1000, "0.29%", 2}, {10, "7", 7},     {10, "25", 25},     {10, "+7", 7},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        int64_t got = int_or_percent_limit(amount(rows[i].value), rows[i].count);
        check_msg(got == rows[i].want, "limit(%lld, %s) is %lld, not %lld",
                  (long long)rows[i].count, rows[i].value, (long long)got, (long long)rows[i].want);
    }
    static const char *const errors[] = {"0", "-4", "foo", "25 %"};
    for (size_t i = 0; i < COUNT_OF(errors); i++) {
        int_or_percent v;
        err error;
        check_msg(!int_or_percent_parse(str_of(errors[i]), &v, &error), "%s", errors[i]);
    }
}

static bool matches_none(void *context, member_id m, size_t definition)
{
    (void)context;
    (void)m;
    (void)definition;
    return false;
}

#define MEMBERS_MAX 1000
static char member_names[MEMBERS_MAX][24];

static partitions *fleet_of(size_t count, const rollout_strategy *policy)
{
    partitions *p = partitions_new(matches_none, NULL);
    assert_non_null(p);
    assert_true(partitions_set_policy(p, policy));
    for (size_t i = 0; i < count; i++) { /* from the last to the first: the order is by name */
        size_t m = count - 1 - i;
        snprintf(member_names[m], sizeof member_names[m], "c%04zu", m);
        str name = str_of(member_names[m]);
        assert_true(partitions_join(p, (member_id)m, name, name, STR_EMPTY));
    }
    assert_true(partitions_cut(p));
    return p;
}

/* "57x4,2" of the cut as sizes, caps or names. */
static void describe(const partitions *p, char what, buf *out)
{
    char last[64] = "";
    size_t times = 0;
    for (size_t i = 0; i <= partitions_count(p); i++) {
        char text[64] = "";
        partition_view view = {0};
        if (i < partitions_count(p)) {
            partitions_view(p, i, &view);
            if (what == 'n')
                snprintf(text, sizeof text, "%.*s", STR_ARG(view.name));
            else
                snprintf(text, sizeof text, "%lld",
                         (long long)(what == 's' ? view.matched : view.cap));
        }
        if (i > 0 && strcmp(text, last) != 0) {
            buf_addf(out, times > 1 ? "%s%sx%zu" : "%s%s", out->len ? "," : "", last, times);
            times = 0;
        }
        snprintf(last, sizeof last, "%s", text);
        times++;
    }
}

static void test_fleet_2_4_cuts(void **state)
{
    (void)state;
    static const struct {
        size_t members;
        const char *size, *unavailable;
        int64_t threshold;
        const char *sizes, *caps, *names;
    } rows[] = {
        {0, "-", "-", 200, "0", "1", "All"},
        {199, "-", "-", 200, "199", "199", "All"},
        {200, "-", "-", 200, "50x4", "50x4",
         "Partition 0 - 50,Partition 50 - 100,Partition 100 - 150,Partition 150 - 200"},
        {201, "-", "-", 200, "50x4,1", "50x4,1",
         "Partition 0 - 50,Partition 50 - 100,Partition 100 - 150,Partition 150 - 200,"
         "Partition 200 - 201"},
        {203, "-", "-", 200, "50x4,3", "50x4,3", NULL},
        {230, "-", "-", 200, "57x4,2", "57x4,2",
         "Partition 0 - 57,Partition 57 - 114,Partition 114 - 171,Partition 171 - 228,"
         "Partition 228 - 230"},
        {230, "-", "10%", 200, "57x4,2", "5x4,1", NULL},
        {200, "10%", "-", 200, "20x10", "20x10", NULL},
        {200, "#100", "-", 200, "100x2", "100x2", NULL},
        {200, "60", "-", 200, "60x3,20", "60x3,20", NULL},
        {200, "100%", "-", 200, "200", "200", "Partition 0 - 200"},
        {200, "#500", "-", 200, "200", "200", "Partition 0 - 200"},
        {250, "33.3%", "-", 200, "83x3,1", "83x3,1", NULL},
        {1000, "49%", "-", 200, "490x2,20", "490x2,20", NULL},
        {1000, "10%", "10%", 200, "100x10", "10x10", NULL},
        {199, "25%", "#1", 200, "199", "1", "All"},
        {50, "50%", "-", 50, "25x2", "25x2", NULL},
        {49, "50%", "-", 50, "49", "49", "All"},
        {500, "-", "-", 0, "500", "500", "All"},
        {500, "-", "-", -1, "500", "500", "All"},
        {500, "#0", "-", 200, "500", "500", "All"},
        {500, "0%", "-", 200, "1x500", "1x500", NULL},
        {3, "-", "-", 1, "1x3", "1x3", NULL},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        rollout_strategy policy = {.max_unavailable = amount(rows[i].unavailable),
                                   .auto_partition_size = amount(rows[i].size),
                                   .auto_partition_threshold = rows[i].threshold,
                                   .max_new = 50};
        partitions *p = fleet_of(rows[i].members, &policy);
        const char *wants[] = {rows[i].sizes, rows[i].caps, rows[i].names};
        for (size_t k = 0; k < 3; k++) {
            buf text = BUF(100000);
            describe(p, "scn"[k], &text);
            check_msg(!wants[k] || str_eq(buf_str(&text), str_of(wants[k])),
                      "row %zu: %.*s, not %s", i, STR_ARG(buf_str(&text)), wants[k]);
            buf_done(&text);
        }
        uint32_t before = 0; /* in the order of the names */
        for (size_t m = 0; m < rows[i].members; m++) {
            uint32_t index = partitions_of(p, (member_id)m);
            check_msg(index == before || index == before + 1, "row %zu, member %zu", i, m);
            before = index;
        }
        err error;
        check_msg(partitions_check(p, 0, false, &error), "row %zu: %s", i, error.text);
        partitions_free(p);
    }
}

/* ---- identities ---- */

static raw_json json(arena *a, const char *text)
{
    err error;
    raw_json value = json_parse(a, str_of(text), &error);
    check_msg(value != NULL, "%s: %s", text, error.text);
    return value;
}

static void check_hash(str options, const char *want)
{
    char hex[SHA256_HEX_BYTES];
    assert_true(sha256_hex(options, hex));
    check_text(str_of(hex), want);
}

/* Merged, for a cluster with one label or for none. */
static str merged(arena *a, const bundle_options *base, const bundle_options *over, bool labelled)
{
    static const label env = {STR("env"), STR("prod")};
    template_cluster seen = {.name = STR("c1"), .labels = {&env, 1}};
    option_layers l = {base, &over, over ? 1 : 0};
    err error = {0};
    str text = options_json(a, &l, labelled ? &seen : NULL, &error);
    check_msg(text.ptr != NULL, "%s", error.text);
    return text;
}

static void test_fleet_1_4_identities(void **state)
{
    (void)state;
    arena *a = arena_new(0);
    bundle_options options = {0};
    str text = merged(a, &options, NULL, false);
    check_text(text, "{}\n");
    check_hash(text, "ca3d163bab055381827226140568f3bef7eaac187cebd76878e0b63e9e442356");
    text = merged(a, &options, NULL, true);
    check_text(text, "{\"helm\":{}}\n");
    check_hash(text, "2b3eb1c0044dd55963b580c402f9703533c40396e53a2aa27a2ba991ec15d145");
    options.ignore = json(a, "{}");
    options.diff = json(a, "{\"comparePatches\":[{\"kind\":\"x\"}]}"); /* is not hashed */
    options.correct_drift = json(a, "{\"enabled\":true}");
    options.helm = json(
        a, "{\"values\":{\"name\":\"example-value\"},\"chart\":\"config-chart\",\"force\":false}");
    text = merged(a, &options, NULL, false);
    check_text(text,
               "{\"helm\":{\"chart\":\"config-chart\",\"values\":{\"name\":\"example-value\"}},"
               "\"ignore\":{}}\n");
    check_hash(text, "c32e813ecbf48f56833aa2267cd3d8758eecc94f9948fb0dea510147a57760b5");
    check_text(resources_id(a, json(a, "[{\"content\":\"x\",\"name\":\"a.yaml\"}]")),
               "s-902c80d9af09be4c64bb5c86aca53351f865e7e42eaeb3368f0fc93d653f5");
    check_text(deployment_id(a, STR("s-1"), STR("{}\n")),
               "s-1:ca3d163bab055381827226140568f3bef7eaac187cebd76878e0b63e9e442356");
    bundle_spec spec = {.contents_id = STR("oci")};
    check_text(manifest_id(a, &spec), "oci");
    spec = (bundle_spec){.helm_op_options = json(a, "{}")};
    check_text(manifest_id(a, &spec), "");
    arena_free(a);
}

static void test_fleet_2_2_merges(void **state)
{
    (void)state;
    static const struct {
        const char *base, *over, *want; /* of helm */
    } rows[] = {
        {"{\"chart\":\"a\",\"version\":\"1\"}", "{\"chart\":\"\",\"version\":\"2\"}",
         "{\"chart\":\"a\",\"version\":\"2\"}"},
        {"{\"values\":{\"b\":{\"y\":1,\"x\":2},\"a\":[1]}}",
         "{\"values\":{\"b\":{\"x\":3},\"a\":[2]}}",
         "{\"values\":{\"a\":[2],\"b\":{\"x\":3,\"y\":1}}}"},
        {"{\"timeoutSeconds\":30}", "{\"timeoutSeconds\":-1}", "{}"},
        {"{\"timeoutSeconds\":30}", "{\"timeoutSeconds\":0}", "{\"timeoutSeconds\":30}"},
        {"{\"force\":true}", "{\"force\":false,\"atomic\":true}",
         "{\"force\":true,\"atomic\":true}"},
        {"{\"maxHistory\":3}", "{\"maxHistory\":5,\"valuesFiles\":[\"x\"]}", "{\"maxHistory\":3}"},
        {"{\"valuesFrom\":[{\"secretKeyRef\":{\"key\":\"k\",\"name\":\"n\"}}]}",
         "{\"valuesFrom\":[{\"secretKeyRef\":{\"name\":\"n\",\"key\":\"k\"}},"
         "{\"configMapKeyRef\":{\"name\":\"m\"}}]}",
         "{\"valuesFrom\":[{\"secretKeyRef\":{\"name\":\"n\",\"key\":\"k\"}},"
         "{\"configMapKeyRef\":{\"name\":\"m\"}}]}"},
        {"{\"values\":{\"t\":\"<&>\\u2028\"}}", "{}",
         "{\"values\":{\"t\":\"\\u003c\\u0026\\u003e\\u2028\"}}"},
        {"{\"values\":{\"a\":1.5,\"b\":2.0,\"c\":null,\"d\":false,\"e\":\"\"}}", "{}",
         "{\"values\":{\"a\":1.5,\"b\":2,\"c\":null,\"d\":false,\"e\":\"\"}}"},
    };
    arena *a = arena_new(0);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        bundle_options base = {.helm = json(a, rows[i].base)},
                       over = {.helm = json(a, rows[i].over)};
        str want = arena_printf(a, "{\"helm\":%s}\n", rows[i].want);
        str got = merged(a, &base, &over, false);
        check_msg(str_eq(got, want), "row %zu: %.*s", i, STR_ARG(got));
    }
    bundle_options base = {.default_namespace = json(a, "\"a\""),
                           .keep_resources = json(a, "false"),
                           .create_namespace = json(a, "true"),
                           .yaml = json(a, "{\"overlays\":[\"x\"]}"),
                           .namespace_labels = json(a, "{\"k\":\"v\"}")};
    bundle_options over = {.default_namespace = json(a, "\"b\""),
                           .keep_resources = json(a, "true"),
                           .create_namespace = json(a, "false"),
                           .delete_namespace = json(a, "true"),
                           .yaml = json(a, "{\"overlays\":[\"y\"]}"),
                           .namespace_labels = json(a, "{\"k\":\"w\"}")};
    check_text(merged(a, &base, &over, false),
               "{\"yaml\":{\"overlays\":[\"x\",\"y\"]},\"defaultNamespace\":\"b\","
               "\"createNamespace\":true,"
               "\"keepResources\":true,\"namespaceLabels\":{\"k\":\"v\"}}\n");
    arena_free(a);
}

/* A pointer in Go: false is said, and is not the same as nothing. Overrides do not change it. */
static void test_fleet_1_4_create_namespace(void **state)
{
    (void)state;
    static const struct {
        const char *base, *over, *want;
    } rows[] = {
        {NULL, NULL, "{}"},
        {"null", NULL, "{}"},
        {"true", NULL, "{\"createNamespace\":true}"},
        {"false", NULL, "{\"createNamespace\":false}"},
        {"false", "true", "{\"createNamespace\":false}"},
        {"true", "false", "{\"createNamespace\":true}"},
        {NULL, "false", "{}"},
        {NULL, "true", "{}"},
    };
    arena *a = arena_new(0);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        bundle_options base = {.create_namespace = rows[i].base ? json(a, rows[i].base) : NULL};
        bundle_options over = {.create_namespace = rows[i].over ? json(a, rows[i].over) : NULL};
        str got = merged(a, &base, &over, false);
        check_msg(str_eq(got, arena_printf(a, "%s\n", rows[i].want)), "row %zu: %.*s", i,
                  STR_ARG(got));
    }
    bundle_options base = {.service_account = json(a, "\"s\""),
                           .create_namespace = json(a, "false"),
                           .force_sync_generation = json(a, "2")};
    check_text(merged(a, &base, &(bundle_options){0}, false),
               "{\"serviceAccount\":\"s\",\"createNamespace\":false,"
               "\"forceSyncGeneration\":2}\n");
    arena_free(a);
}

/* A LabelSelector of Kubernetes: labels first, and of an expression its key. An override replaces
 * all of it. */
static void test_fleet_1_4_selector(void **state)
{
    (void)state;
#define EXPRESSIONS                                                                                \
    "\"matchExpressions\":[{\"values\":[\"x\",\"y\"],\"operator\":\"In\",\"key\":\"k\"},"          \
    "{\"operator\":\"Exists\",\"key\":\"l\"}]"
#define IN_ORDER                                                                                   \
    "\"matchExpressions\":[{\"key\":\"k\",\"operator\":\"In\",\"values\":[\"x\",\"y\"]},"          \
    "{\"key\":\"l\",\"operator\":\"Exists\"}]"
    static const struct {
        const char *base, *over, *want;
    } rows[] = {
        {"{" EXPRESSIONS ",\"matchLabels\":{\"b\":\"2\",\"a\":\"1\"}}", NULL,
         "{\"matchLabels\":{\"a\":\"1\",\"b\":\"2\"}," IN_ORDER "}"},
        {"{\"matchLabels\":{}," EXPRESSIONS "}", NULL, "{" IN_ORDER "}"},
        {"{\"matchExpressions\":[],\"matchLabels\":{\"a\":\"1\"}}", NULL,
         "{\"matchLabels\":{\"a\":\"1\"}}"},
        {"{}", NULL, "{}"},
        {"{\"matchLabels\":{\"a\":\"1\"}}", "{" EXPRESSIONS "}", "{" IN_ORDER "}"},
        {"{" EXPRESSIONS "}", "null", "{" IN_ORDER "}"},
        {NULL, "{\"matchLabels\":{\"a\":\"1\"}}", "{\"matchLabels\":{\"a\":\"1\"}}"},
    };
    arena *a = arena_new(0);
    str text = STR_EMPTY;
    for (size_t i = COUNT_OF(rows); i-- > 0;) {
        bundle_options base = {.allowed_target_namespace_selector =
                                   rows[i].base ? json(a, rows[i].base) : NULL};
        bundle_options over = {.allowed_target_namespace_selector =
                                   rows[i].over ? json(a, rows[i].over) : NULL};
        text = merged(a, &base, &over, false);
        str want = arena_printf(a, "{\"allowedTargetNamespaceSelector\":%s}\n", rows[i].want);
        check_msg(str_eq(text, want), "row %zu: %.*s", i, STR_ARG(text));
    }
    check_hash(text, "7b0fef397bb7356aeeab6f14013badcf7177a204a7fc7b79a1eb38a8e21a9e3c");
    arena_free(a);
}

/* One override after the other: an object over a text replaces it, and brings back nothing of what
 * the text had replaced. */
static void test_fleet_2_2_merges_of_three(void **state)
{
    (void)state;
    static const struct {
        const char *base, *one, *other, *want; /* of helm.values */
    } rows[] = {
        {"{\"a\":{\"x\":1}}", "{\"a\":\"off\"}", "{\"a\":{\"y\":2}}", "{\"a\":{\"y\":2}}"},
        {"{\"a\":{\"x\":1}}", "{\"a\":null}", "{\"a\":{\"y\":2}}", "{\"a\":{\"y\":2}}"},
        {"{\"a\":{\"x\":1}}", "{\"a\":[1]}", "{}", "{\"a\":[1]}"},
        {"{\"a\":{\"x\":1}}", "{\"b\":3}", "{\"a\":{\"y\":2}}",
         "{\"a\":{\"x\":1,\"y\":2},\"b\":3}"},
        {"{\"a\":\"off\"}", "{\"a\":{\"x\":1}}", "{\"a\":{\"y\":2}}", "{\"a\":{\"x\":1,\"y\":2}}"},
        {"{\"a\":{\"b\":{\"x\":1}}}", "{\"a\":{\"b\":0}}", "{\"a\":{\"b\":{\"y\":2}}}",
         "{\"a\":{\"b\":{\"y\":2}}}"},
        {"{\"a\":1}", "null", "{\"b\":2}", "{\"a\":1,\"b\":2}"},
        {"{\"a\":1}", "{}", "null", "{\"a\":1}"},
        {"null", "{\"a\":1}", "null", "{\"a\":1}"},
    };
    arena *a = arena_new(0);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const char *const texts[] = {rows[i].base, rows[i].one, rows[i].other};
        bundle_options of[3] = {{0}};
        for (size_t k = 0; k < COUNT_OF(texts); k++)
            of[k].helm = json(a, arena_printf(a, "{\"values\":%s}", texts[k]).ptr);
        const bundle_options *over[] = {&of[1], &of[2]};
        option_layers l = {&of[0], over, COUNT_OF(over)};
        err error = {0};
        str got = options_json(a, &l, NULL, &error);
        str want = arena_printf(a, "{\"helm\":{\"values\":%s}}\n", rows[i].want);
        check_msg(str_eq(got, want), "row %zu: %.*s", i, STR_ARG(got));
    }
    arena_free(a);
}

static void test_usable_labels(void **state)
{
    (void)state;
    static const struct {
        const char *key;
        bool want;
    } rows[] = {{"env", true},
                {"kubectl.kubernetes.io/x", false},
                {"objectset.rio.cattle.io/hash", false},
                {"fleet.cattle.io/x", true},
                {"management.cattle.io/cluster-name", true}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        label one = {str_of(rows[i].key), STR("v")};
        check_msg(labels_usable((label_set){&one, 1}) == rows[i].want, "%s", rows[i].key);
    }
    assert_false(labels_usable((label_set){NULL, 0}));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fleet_2_3_limit_vectors),   cmocka_unit_test(test_fleet_2_4_cuts),
        cmocka_unit_test(test_fleet_1_4_identities),      cmocka_unit_test(test_fleet_2_2_merges),
        cmocka_unit_test(test_fleet_2_2_merges_of_three),
        cmocka_unit_test(test_fleet_1_4_create_namespace), cmocka_unit_test(test_usable_labels),
        cmocka_unit_test(test_fleet_1_4_selector), cmocka_unit_test(test_usable_labels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
