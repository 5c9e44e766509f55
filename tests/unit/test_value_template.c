/* SPDX-License-Identifier: Apache-2.0 */
/* Helm values for one cluster: what Go and sprig make of them (tests/data/values), and what the
 * engine does with values that cannot be made. */
#include "support/check.h"

#include "engine/deployment_id.h"
#include "engine/go_json.h"
#include "engine/go_template.h"
#include "model/document.h"
#include "support/documents.h"
#include "support/herd.h"

static const label cluster_labels[] = {{STR("env"), STR("prod")},
                                       {STR("n"), STR("5")},
                                       {STR("objectset.rio.cattle.io/hash"), STR("x")},
                                       {STR("region"), STR("eu-west-1")}};
static const label cluster_annotations[] = {{STR("management.cattle.io/x"), STR("y")},
                                            {STR("note"), STR("a b")}};

static raw_json json(arena *a, str text)
{
    err error;
    raw_json value = json_parse(a, text, &error);
    check_msg(value != NULL, "%.*s: %s", STR_ARG(text), error.text);
    return value;
}

static template_cluster the_cluster(arena *a)
{
    return (template_cluster){
        .namespace_ = STR("fleet-default"),
        .name = STR("c1"),
        .labels = {cluster_labels, COUNT_OF(cluster_labels)},
        .annotations = {cluster_annotations, COUNT_OF(cluster_annotations)},
        .template_values =
            json(a, STR("{\"port\":8080,\"big\":1234567,\"on\":true,\"off\":false,"
                        "\"list\":[\"x\",\"y\",3],\"map\":{\"b\":\"2\",\"a\":1},\"nothing\":null,"
                        "\"text\":\"hello: world\",\"empty\":\"\"}")),
    };
}

/* The result as Go writes it, or "ERR" with the error. */
static str made(arena *a, const char *values, const char *templates, bool plain, err *error)
{
    template_cluster c = the_cluster(a);
    template_source from = {.values = values ? json(a, str_of(values)) : NULL,
                            .templates = templates ? json(a, str_of(templates)) : NULL,
                            .plain = plain};
    raw_json result = values_for(a, &from, &c, error);
    buf out = BUF(LIMIT_TEXT_BYTES);
    if (result)
        go_value(&out, result);
    str text = result ? arena_str(a, buf_str(&out)) : STR("ERR");
    buf_done(&out);
    return text;
}

static void test_values_as_go_makes_them(void **state)
{
    (void)state;
    buf file = file_content(TEST_DATA "/values/templates.tsv");
    str rest = buf_str(&file);
    size_t rows = 0;
    while (rest.len > 0) {
        str line = str_cut(&rest, '\n');
        if (line.len == 0 || line.ptr[0] == '#')
            continue;
        arena *a = arena_new(0);
        err error = {0};
        str values = str_cut(&line, '\t');
        str got = made(a, arena_str(a, values).ptr, NULL, false, &error);
        check_msg(str_eq(got, line), "%.*s\n  found    %.*s %s\n  expected %.*s", STR_ARG(values),
                  STR_ARG(got), error.text, STR_ARG(line));
        arena_free(a);
        rows++;
    }
    assert_true(rows > 90);
    buf_done(&file);
}

static void test_errors_say_where_and_what(void **state)
{
    (void)state;
    static const struct {
        const char *values, *templates, *want;
    } rows[] = {
        {"{\"a\":{\"b\":[\"x\",\"${ .ClusterLabels.missing }\"]}}", NULL,
         "helm.values.a.b[1]: no entry for key \"missing\""},
        {"{\"a\":\"${ genCA \\\"x\\\" 1 }\"}", NULL,
         "helm.values.a: found the function \"genCA\", which Drover does not have"},
        {"{\"a\":\"${ template \\\"x\\\" }\"}", NULL,
         "helm.values.a: found \"template\", which is not supported"},
        {"{\"a\":\"${ upper 1 }\"}", NULL,
         "helm.values.a: upper: argument 1: found a whole number, allowed a text"},
        {"{\"a\":\"${ upper }\"}", NULL, "helm.values.a: upper: found 0 arguments, allowed 1"},
        {"{\"a\":\"${ .ClusterName\"}", NULL, "helm.values.a: found no closing } at \"\""},
        {"{\"a\":\"${ nil }\"}", NULL, "helm.values.a: nil is not a command"},
        {"{\"a\":\"${ $x }\"}", NULL, "helm.values.a: undefined variable $x"},
        {"{\"a\":\"${ range until 100000 }${ range until 100000 }${ end }${ end }\"}", NULL,
         "helm.values.a: found more than 100000 steps, which is the most"},
        {"{\"a\":\"${ range until 1000 }${ $x := until 100000 }${ end }\"}", NULL,
         "helm.values.a: found more than 16777216 bytes of values, which is the most"},
        {"{}", "{\"k\":\"${ .X }\"}", "helm.templateValues.k: no entry for key \"X\""},
        {"{}", "{\"k\":5}", "helm.templateValues.k: found no text"},
        /* What grows too long is not what no memory is left for. */
        {"{}", "{\"k\":\"'${ repeat 1000000 \\\"\\\\\\\"\\\" }'\"}",
         "helm.templateValues.k: found more than 1572864 bytes, which is the most"},
        {"{\"a\":\"x${ repeat 1000000 \\\"\\\\\\\"\\\" }\"}", NULL,
         "helm.values.a: found more than 1572864 bytes, which is the most"},
        {"{\"a\":\"x${ repeat 1572860 \\\"x\\\" }\"}", NULL,
         "helm.values.a: found more than 1572864 bytes, which is the most"},
        {"{\"a\":\"${ toString (list (repeat 1000000 \\\"x\\\") (repeat 1000000 \\\"x\\\")) }\"}",
         NULL, "helm.values.a: toString: the result is too long, or memory ran out"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        arena *a = arena_new(0);
        err error = {0};
        check_text(made(a, rows[i].values, rows[i].templates, false, &error), "ERR");
        check_err(error, rows[i].want);
        arena_free(a);
    }
}

static void test_labels_and_template_values(void **state)
{
    (void)state;
    static const struct {
        const char *values, *templates;
        bool plain;
        const char *want;
    } rows[] = {
        {"{\"a\":\"global.fleet.clusterLabels.env\"}", NULL, false, "{\"a\":\"prod\"}"},
        {"{\"a\":\"global.fleet.clusterLabels.n\"}", NULL, false, "{\"a\":\"5\"}"},
        {"{\"a\":\"global.fleet.clusterLabels.none\"}", NULL, false, "{\"a\":\"\"}"},
        {"{\"a\":\"global.fleet.clusterLabels.objectset.rio.cattle.io/hash\"}", NULL, false,
         "{\"a\":\"\"}"},
        {"{\"a\":[\"global.fleet.clusterLabels.env\",{\"b\":\"global.fleet.clusterLabels.env\"}]}",
         NULL, false, "{\"a\":[\"global.fleet.clusterLabels.env\",{\"b\":\"prod\"}]}"},
        {"{\"a\":[[{\"b\":\"global.fleet.clusterLabels.env\"}]],\"c\":\"global.fleet.clusterLabels."
         "env\"}",
         NULL, false, "{\"a\":[[{\"b\":\"global.fleet.clusterLabels.env\"}]],\"c\":\"prod\"}"},
        {"{\"a\":\"global.fleet.clusterLabels.env\",\"b\":\"${ .ClusterName }\"}", NULL, true,
         "{\"a\":\"prod\",\"b\":\"${ .ClusterName }\"}"},
        {NULL, NULL, false, "{}"},
        {"{\"a\":1,\"b\":2}", "{\"a\":\"${ .ClusterValues.list | toJson }\",\"c\":\"k: 1\"}", false,
         "{\"a\":[\"x\",\"y\",3],\"b\":2,\"c\":{\"k\":1}}"},
        {"{\"a\":1}", "{\"a\":\"2\"}", true, "{\"a\":1}"},
        {"{}", "{\"a\":\"${ range .ClusterValues.list }\\n- ${ . }${ end }\"}", false,
         "{\"a\":[\"x\",true,3]}"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        arena *a = arena_new(0);
        err error = {0};
        check_text(made(a, rows[i].values, rows[i].templates, rows[i].plain, &error), rows[i].want);
        arena_free(a);
    }
}

/* A cluster with labels gets "values" in a helm that has none, and "helm" where there is none. */
static void test_options_for_a_cluster(void **state)
{
    (void)state;
    static const struct {
        const char *base, *over, *want;
    } rows[] = {
        {"{\"chart\":\"x\"}", NULL, "{\"helm\":{\"chart\":\"x\",\"values\":{}}}\n"},
        {NULL, NULL, "{\"helm\":{}}\n"},
        {"{\"values\":{\"r\":\"${ .ClusterLabels.region }\",\"n\":1}}",
         "{\"values\":{\"n\":\"${ .ClusterLabels.n }\"},\"force\":true}",
         "{\"helm\":{\"values\":{\"n\":5,\"r\":\"eu-west-1\"},\"force\":true}}\n"},
        {"{\"values\":{\"r\":\"${ .X }\"},\"disablePreProcess\":true}", NULL,
         "{\"helm\":{\"values\":{\"r\":\"${ .X }\"},\"disablePreProcess\":true}}\n"},
        {"{\"templateValues\":{\"a\":\"${ .ClusterName }\"}}", NULL,
         "{\"helm\":{\"values\":{\"a\":\"c1\"},\"templateValues\":{\"a\":\"${ .ClusterName }\"}}}"
         "\n"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        arena *a = arena_new(0);
        err error = {0};
        bundle_options base = {.helm = rows[i].base ? json(a, str_of(rows[i].base)) : NULL};
        bundle_options top = {.helm = rows[i].over ? json(a, str_of(rows[i].over)) : NULL};
        const bundle_options *over = &top;
        option_layers l = {&base, &over, 1};
        template_cluster c = the_cluster(a);
        check_text(options_json(a, &l, &c, &error), rows[i].want);
        arena_free(a);
    }
}

/* ---- in the engine ---- */

static str wanted_by(herd *h, size_t cluster_number)
{
    placement_view view;
    for (placement_id id = 0; id < 100; id++)
        if (engine_placement(h->e, id, &view) &&
            str_eq(view.target, str_of(h->at[cluster_number].name)))
            return view.wanted;
    return STR_EMPTY;
}

static void test_labels_make_versions(void **state)
{
    (void)state;
    herd *h = herd_new(3);
    h->document.spec.options.helm =
        json(h->a, STR("{\"values\":{\"r\":\"${ .ClusterLabels.r }\"}}"));
    herd_label(h, 0, "r", "a");
    herd_label(h, 1, "r", "b");
    herd_label(h, 2, "r", "a");
    herd_load(h);
    herd_finish(h);
    assert_int_equal(herd_done(h), 3);
    check_str(wanted_by(h, 0), wanted_by(h, 2));
    assert_false(str_eq(wanted_by(h, 0), wanted_by(h, 1)));
    herd_label(h, 1, "r", "a"); /* another label, another version */
    herd_target(h, 1);
    herd_step(h);
    herd_verify(h);
    check_str(wanted_by(h, 0), wanted_by(h, 1));
    herd_finish(h);
    assert_int_equal(herd_done(h), 3);
    herd_free(h);
}

static void test_values_that_cannot_be_made_hold_one_cluster(void **state)
{
    (void)state;
    herd *h = herd_new(3);
    h->document.spec.options.helm =
        json(h->a, STR("{\"values\":{\"r\":\"${ .ClusterLabels.r }\"}}"));
    herd_label(h, 0, "r", "a");
    herd_label(h, 1, "other", "b");
    herd_label(h, 2, "r", "a");
    herd_load(h);
    herd_finish(h);
    herd_verify(h);
    assert_int_equal(herd_done(h), 2);
    placement_view view;
    reasons why = {0};
    for (placement_id id = 0; id < 100; id++)
        if (engine_placement(h->e, id, &view) && str_eq(view.target, str_of(h->at[1].name)))
            assert_true(engine_reasons(h->e, id, h->a, &why));
    assert_int_equal(why.len, 1);
    check_text(reason_text(h->a, &why.at[0]),
               "an expression failed: helm.values.r: no entry for key \"r\"");
    herd_label(h, 1, "r", "c");
    herd_target(h, 1);
    herd_finish(h);
    assert_int_equal(herd_done(h), 3);
    herd_free(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values_as_go_makes_them),
        cmocka_unit_test(test_errors_say_where_and_what),
        cmocka_unit_test(test_labels_and_template_values),
        cmocka_unit_test(test_options_for_a_cluster),
        cmocka_unit_test(test_labels_make_versions),
        cmocka_unit_test(test_values_that_cannot_be_made_hold_one_cluster),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
