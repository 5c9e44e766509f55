/* SPDX-License-Identifier: Apache-2.0 */
/* What of a deployment's options needs more than its manifests: values that lie in the cluster,
 * objects of others that it may take, and what a server or helm makes of what is wanted. */
#include "support/agent_world.h"

#define MAPS "/api/v1/namespaces/shop/configmaps/"
#define SECRETS "/api/v1/namespaces/other/secrets/"
#define MAP(name, value)                                                                           \
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " name "}\ndata: {key: " value "}\n"
#define OPTIONS "\"options\":{\"defaultNamespace\":\"shop\"}"
#define REST STEPS_LOOK_MS / 2

static deployment_steps *begin(agent_world *w)
{
    deployment_steps *s = steps_new(STR("web"));
    assert_non_null(s);
    world_show(w, s, "web");
    return s;
}

static void check_status(agent_world *w, const char *member, const char *want)
{
    check_text(world_status(w, "web", member), want);
}

/* What a condition says. */
static str said(agent_world *w, const char *type)
{
    yyjson_val *list = json_parse(w->arena, world_status(w, "web", "conditions"), NULL), *one;
    size_t i, max;
    yyjson_arr_foreach(list, i, max, one)
    {
        if (str_eq(object_text(one, STR("type")), str_of(type)))
            return object_text(one, STR("message"));
    }
    return STR_EMPTY;
}

static str deployed(agent_world *w)
{
    return said(w, "Deployed");
}

static const char *key_of(agent_world *w, const char *path)
{
    return yyjson_get_str(go_member(go_member(world_read(w, path), STR("data")), STR("key")));
}

/* ---- the server's form ---- */

/* What the server keeps in another form is not modified; what somebody edited is. */
static void test_normalised(void **state)
{
    (void)state;
    agent_world w = world_new();
    w.normalises = true;
    world_release(&w, "web", MAP("a", "1000m"), OPTIONS ",\"correctDrift\":{\"enabled\":true}");
    deployment_steps *s = begin(&w);
    world_run(&w, &s, "web", REST);
    assert_string_equal(key_of(&w, MAPS "a"), "1");
    check_status(&w, "nonModified", "true");
    assert_int_equal(w.tries, 1);
    unsigned writes = w.writes;
    for (int i = 0; i < 3; i++) {
        w.now_ms += STEPS_LOOK_MS;
        world_run(&w, &s, "web", REST);
    }
    assert_int_equal(w.writes, writes);
    world_merge(&w, MAPS "a", STR("{\"data\":{\"key\":\"2\"}}"));
    steps_look(s);
    world_run(&w, &s, "web", REST);
    assert_string_equal(key_of(&w, MAPS "a"), "1");
    check_status(&w, "nonModified", "true");
    steps_free(s);
    world_done(&w);
}

/* Told is what really differs. */
static void test_normalised_and_edited(void **state)
{
    (void)state;
    agent_world w = world_new();
    w.normalises = true;
    world_release(&w, "web",
                  "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
                  "data: {key: 1000m, other: x}\n",
                  OPTIONS);
    deployment_steps *s = begin(&w);
    world_run(&w, &s, "web", REST);
    check_status(&w, "nonModified", "true");
    world_merge(&w, MAPS "a", STR("{\"data\":{\"other\":\"y\"}}"));
    steps_look(s);
    world_run(&w, &s, "web", REST);
    check_status(&w, "nonModified", "false");
    check_has_at(world_status(&w, "web", "modifiedStatus"),
                 STR("{\\\"data\\\":{\\\"other\\\":\\\"x\\\"}}"), __FILE__, __LINE__);
    steps_free(s);
    world_done(&w);
}

/* ---- overwrites ---- */

static void test_overwrites(void **state)
{
    (void)state;
    static const struct {
        const char *kind, *name, *namespace_;
        bool taken;
    } rows[] = {{"ConfigMap", "a", "shop", true},
                {"ConfigMap", "a", "", true},
                {"ConfigMap", "a", "other", false},
                {"ConfigMap", "b", "shop", false},
                {"Secret", "a", "shop", false}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        agent_world w = world_new();
        char options[256];
        snprintf(options, sizeof options,
                 "\"options\":{\"defaultNamespace\":\"shop\",\"overwrites\":[{\"kind\":\"%s\","
                 "\"name\":\"%s\",\"namespace\":\"%s\"}]}",
                 rows[i].kind, rows[i].name, rows[i].namespace_);
        world_release(&w, "web", MAP("a", "ours"), options);
        world_put(&w, MAPS "a",
                  STR("{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"a\","
                      "\"namespace\":\"shop\"},\"data\":{\"key\":\"theirs\"}}"));
        deployment_steps *s = begin(&w);
        world_run(&w, &s, "web", 5000);
        check_msg(strcmp(key_of(&w, MAPS "a"), rows[i].taken ? "ours" : "theirs") == 0, "row %zu",
                  i);
        steps_free(s);
        world_done(&w);
    }
}

/* ---- the Secret with the values ---- */

#define SECRET "/api/v1/namespaces/" WORLD_HUB_NAMESPACE "/secrets/web"
#define HASH_OF_KEY_VALUE "e43abcf3375244839c012f9633f95862d232a95b00d5bc7348b3098b9fed7f32"

static void put_values(agent_world *w, const char *values)
{
    world_put(w, SECRET,
              arena_printf(w->arena,
                           "{\"metadata\":{\"name\":\"web\"},\"data\":{"
                           "\"values\":\"%s\",\"stagedValues\":\"\"}}",
                           values));
}

/* It is written after the deployment: until then nothing is applied, and nothing is told. If that
 * lasts it is told, but never as a failure: a controller that crashed in between comes back. */
static void test_values_follow(void **state)
{
    (void)state;
    for (int late = 0; late < 2; late++) {
        agent_world w = world_new();
        world_release(&w, "web", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n",
                      "\"options\":{\"defaultNamespace\":\"shop\"},\"valuesHash\":"
                      "\"" HASH_OF_KEY_VALUE "\"");
        deployment_steps *s = steps_new(STR("web"));
        world_show(&w, s, "web");
        step next = world_run(&w, &s, "web", 100); /* it is asked for again soon */
        assert_int_equal(next.due_ms - w.now_ms, 100);
        assert_int_equal(w.writes, 0);
        put_values(&w, "e30="); /* those of the version before */
        if (late) {             /* in the end it is told why */
            while (w.writes == 0)
                world_run(&w, &s, "web", 1000), w.now_ms += 1000;
            check_text(said(&w, "Monitored"),
                       "the values in the Secret are not those of valuesHash");
            check_text(deployed(&w), "");
            check_text(world_status(&w, "web", "appliedDeploymentID"), "");
        }
        put_values(&w, "eyJrZXkiOiJ2YWx1ZSJ9");
        w.now_ms += STEPS_RETRY_MAX_MS;
        world_run(&w, &s, "web", STEPS_LOOK_MS / 2);
        check_text(world_status(&w, "web", "ready"), "true");
        check_text(said(&w, "Monitored"), "");
        steps_free(s);
        world_done(&w);
    }
}

/* ---- who cannot now ---- */

/* A hub that cannot give the content, and a release that a killed helm left locked, are told when
 * they last, but not as failures of the change; a helm that cannot reach the cluster is one then.
 */
static void test_whose_failure(void **state)
{
    (void)state;
    static const struct {
        step_kind kind;
        step_outcome outcome;
        const char *told; /* by this condition */
    } rows[] = {{STEP_READ_CONTENT, OUTCOME_LATER, "Monitored"},
                {STEP_INSTALL_CHART, OUTCOME_BUSY, "Monitored"},
                {STEP_INSTALL_CHART, OUTCOME_LATER, "Deployed"},
                {STEP_READ_CONTENT, OUTCOME_REFUSED, "Deployed"}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        agent_world w = world_new();
        world_release(&w, "web", "ignored",
                      "\"options\":{\"defaultNamespace\":\"shop\",\"helm\":{\"chart\":\"web\","
                      "\"repo\":\"https://charts.example\"}}");
        deployment_steps *s = begin(&w);
        bool patient = rows[i].outcome != OUTCOME_REFUSED;
        for (int64_t start = w.now_ms; w.now_ms - start < 2 * STEPS_PATIENCE_MS;) {
            steps_world facts = world_facts(&w);
            step next = steps_next(s, &facts);
            step_answer answer = {.outcome = rows[i].outcome, .message = STR("not now")};
            bool killed;
            if (next.kind == STEP_WAIT) {
                w.now_ms = next.due_ms;
                continue;
            }
            if (next.kind != rows[i].kind)
                answer = world_do(&w, &next, &killed);
            steps_answer(s, &facts, &answer);
            check_msg(next.kind != STEP_REPORT || !patient || w.now_ms - start >= STEPS_PATIENCE_MS,
                      "row %zu: told at once", i);
            if (next.kind == STEP_REPORT)
                world_show(&w, s, "web");
        }
        check_has_at(said(&w, rows[i].told), STR("not now"), __FILE__, __LINE__);
        if (strcmp(rows[i].told, "Deployed") != 0)
            check_text(deployed(&w), "");
        steps_free(s);
        world_done(&w);
    }
}

/* ---- valuesFrom ---- */

#define FROM(list)                                                                                 \
    "\"options\":{\"defaultNamespace\":\"shop\",\"helm\":{\"chart\":\"web\","                      \
    "\"repo\":\"https://charts.example\",\"valuesFrom\":[" list "]}}"
#define MAP_REF "{\"configMapKeyRef\":{\"name\":\"settings\"}}"
#define SECRET_REF                                                                                 \
    "{\"secretKeyRef\":{\"name\":\"keys\",\"namespace\":\"other\",\"key\":\"more.yaml\"}}"

/* The values that the next step gives to helm, in their order. */
static step run_to_chart(agent_world *w, deployment_steps *s)
{
    for (int i = 0; i < WORLD_STEPS_MAX; i++) {
        steps_world facts = world_facts(w);
        step next = steps_next(s, &facts);
        bool killed;
        if (next.kind == STEP_INSTALL_CHART || next.kind == STEP_WAIT)
            return next;
        step_answer answer = world_do(w, &next, &killed);
        steps_answer(s, &facts, &answer);
    }
    fail_msg("no chart");
    return (step){0};
}

static void test_values_from(void **state)
{
    (void)state;
    agent_world w = world_new();
    world_release(&w, "web", "ignored", FROM(MAP_REF "," SECRET_REF));
    deployment_steps *s = begin(&w);
    step next = run_to_chart(&w, s);
    assert_int_equal(next.kind, STEP_WAIT);
    check_text(deployed(&w),
               "helm.valuesFrom: ConfigMap shop/settings does not exist; wanted is its "
               "\"values.yaml\"");
    world_put(&w, MAPS "settings",
              STR("{\"metadata\":{\"name\":\"settings\"},\"data\":{\"values.yaml\":\"a: 1\"}}"));
    world_put(&w, SECRETS "keys",
              STR("{\"metadata\":{\"name\":\"keys\"},\"data\":{\"values.yaml\":\"YjogMg==\"}}"));
    w.now_ms += STEPS_RETRY_MAX_MS;
    next = run_to_chart(&w, s);
    assert_int_equal(next.kind, STEP_WAIT);
    check_text(deployed(&w), "helm.valuesFrom: Secret other/keys has no \"more.yaml\"");
    world_put(&w, SECRETS "keys",
              STR("{\"metadata\":{\"name\":\"keys\"},\"data\":{\"more.yaml\":\"YjogMg==\"}}"));
    w.now_ms += STEPS_RETRY_MAX_MS;
    next = run_to_chart(&w, s);
    assert_int_equal(next.kind, STEP_INSTALL_CHART);
    assert_int_equal(next.chart->chart.values_from.len, 2);
    check_text(next.chart->chart.values_from.at[0], "a: 1");
    check_text(next.chart->chart.values_from.at[1], "b: 2");
    world_run(&w, &s, "web", REST);
    check_status(&w, "ready", "true");
    /* A new agent installs again only if they changed. */
    for (int changed = 0; changed < 2; changed++) {
        steps_free(s);
        if (changed)
            world_merge(&w, MAPS "settings", STR("{\"data\":{\"values.yaml\":\"a: 3\"}}"));
        s = begin(&w);
        w.log[0] = '\0';
        world_run(&w, &s, "web", REST);
        assert_int_equal(strstr(w.log, "install chart") != NULL, changed);
    }
    steps_free(s);
    world_done(&w);
}

/* ---- where charts are ---- */

#define IN_SHOP(more)                                                                              \
    "\"options\":{" more ",\"helm\":{\"chart\":\"web\",\"repo\":\"https://charts.example\"}}"
#define SHOP_SPACE "/api/v1/namespaces/shop"

/* The namespace of a chart has the labels of the options before there is anything in it. */
static void test_namespace_of_chart(void **state)
{
    (void)state;
    agent_world w = world_new();
    world_release(&w, "web", "ignored",
                  IN_SHOP("\"defaultNamespace\":\"shop\",\"namespaceLabels\":{\"team\":\"a\"}"));
    deployment_steps *s = begin(&w);
    world_run(&w, &s, "web", REST);
    check_text(str_of(w.log),
               "write inventory /api/v1/namespaces/drover-system/configmaps/drover-web\n"
               "apply object " SHOP_SPACE "\n"
               "install chart /helm/shop/web\n"
               "write inventory /api/v1/namespaces/drover-system/configmaps/drover-web\n"
               "report " WORLD_DEPLOYMENTS "/web\n");
    check_status(&w, "ready", "true");
    unsigned writes = w.writes;
    for (int i = 0; i < 3; i++) {
        w.now_ms += STEPS_LOOK_MS;
        world_run(&w, &s, "web", REST);
    }
    assert_int_equal(w.writes, writes);
    /* They are no part of the version. */
    world_merge(&w, WORLD_DEPLOYMENTS "/web",
                STR("{\"spec\":{\"options\":{\"namespaceLabels\":{\"team\":\"b\"}}}}"));
    world_show(&w, s, "web");
    world_run(&w, &s, "web", REST);
    const yyjson_val *meta = go_member(world_read(&w, SHOP_SPACE), STR("metadata"));
    check_text(object_text(go_member(meta, STR("labels")), STR("team")), "b");
    steps_free(s);
    world_done(&w);
}

#define ROLE "apiVersion: v1\nkind: Namespace\nmetadata: {name: more}\n"
#define OUTSIDE "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: other}\n"
#define UNKNOWN "apiVersion: shop.io/v1\nkind: Till\nmetadata: {name: t, namespace: other}\n"
#define LISTED                                                                                     \
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: some}\nitems:\n- apiVersion: v1\n"          \
    "  kind: Namespace\n  metadata: {name: more}\n"
#define DEFINED_TILLS                                                                              \
    "{\"kind\":\"CustomResourceDefinition\",\"spec\":{\"group\":\"shop.io\",\"scope\":"            \
    "\"Namespaced\",\"names\":{\"kind\":\"Till\",\"plural\":\"tills\"},\"versions\":["             \
    "{\"name\":\"v1\"}]}}"
#define WIDE_TILLS                                                                                 \
    "{\"kind\":\"APIResourceList\",\"groupVersion\":\"shop.io/v1\",\"resources\":["                \
    "{\"name\":\"tills\",\"kind\":\"Till\"}]}"

/* What must be in one namespace is not installed if it is not. */
static void test_confined_chart(void **state)
{
    (void)state;
    static const struct {
        const char *options, *renders, *message; /* NULL: it is installed */
        const char *learns;
        bool brings;
    } rows[] = {
        {"\"namespace\":\"shop\"", NULL,
         "the chart, or one that it depends on, has a folder crds, whose definitions have no "
         "namespace, but everything must be in one",
         .brings = true},
        {"\"defaultNamespace\":\"shop\"", NULL, NULL, .brings = true},
        {"\"namespace\":\"shop\"", UNKNOWN,
         "Till t has no namespace, but options.namespace puts everything into one; "
         "consider defaultNamespace",
         .learns = WIDE_TILLS},
        {"\"namespace\":\"shop\"", ROLE,
         "Namespace more has no namespace, but options.namespace puts everything into one; "
         "consider defaultNamespace",
         NULL, false},
        {"\"namespace\":\"shop\"", OUTSIDE,
         "ConfigMap a: metadata.namespace: found \"other\", allowed \"shop\"", NULL, false},
        {"\"defaultNamespace\":\"shop\",\"allowedTargetNamespaceSelector\":{}", OUTSIDE,
         "ConfigMap a: metadata.namespace: found \"other\", allowed \"shop\"", NULL, false},
        {"\"namespace\":\"shop\"", UNKNOWN,
         "the cluster has no kind Till in shop.io/v1, wanted by \"t\"", NULL, false},
        {"\"namespace\":\"shop\"", LISTED,
         "ConfigMap some has items, which helm takes for objects, each of a place of its own",
         NULL, false},
        {"\"namespace\":\"shop\"", NULL, NULL, NULL, false},
        {"\"defaultNamespace\":\"shop\"", OUTSIDE, NULL, NULL, false},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        agent_world w = world_new();
        char options[512];
        assert_true(discovery_define(
            w.kinds, json_parse(w.arena, STR(DEFINED_TILLS), NULL), NULL)); /* by another one */
        w.renders = rows[i].renders;
        w.learns = rows[i].learns;
        w.brings = rows[i].brings;
        world_put(
            &w, SHOP_SPACE,
            STR("{\"apiVersion\":\"v1\",\"kind\":\"Namespace\",\"metadata\":{\"name\":\"shop\"}}"));
        snprintf(options, sizeof options, IN_SHOP("%s"), rows[i].options);
        world_release(&w, "web", "ignored", options);
        deployment_steps *s = begin(&w);
        world_run(&w, &s, "web", 5000);
        bool later = rows[i].renders && !rows[i].learns && strstr(rows[i].renders, "Till");
        check_text(said(&w, later ? "Deployed" : "Installed"),
                   rows[i].message ? rows[i].message : "");
        check_msg(world_has(&w, "/helm/shop/web") == !rows[i].message, "row %zu", i);
        check_msg(later || str_eq(world_status(&w, "web", "nonModified"), STR("true")), "row %zu",
                  i);
        steps_free(s);
        world_done(&w);
    }
}

/* What is refused takes the place of nothing: the release of before stays. */
static void test_refused_chart(void **state)
{
    (void)state;
    static const char *const more[] = {"", ",\"takeOwnership\":true"};
    for (size_t i = 0; i < COUNT_OF(more); i++) {
        agent_world w = world_new();
        char options[512];
        world_put(
            &w, SHOP_SPACE,
            STR("{\"apiVersion\":\"v1\",\"kind\":\"Namespace\",\"metadata\":{\"name\":\"shop\"}}"));
        world_release(&w, "web", "ignored", IN_SHOP("\"namespace\":\"shop\""));
        deployment_steps *s = begin(&w);
        world_run(&w, &s, "web", 5000);
        assert_true(world_has(&w, "/helm/shop/web"));
        snprintf(options, sizeof options,
                 "\"options\":{\"namespace\":\"shop\",\"helm\":{\"chart\":\"web\",\"releaseName\":"
                 "\"next\",\"repo\":\"https://charts.example\"%s}}",
                 more[i]);
        world_release(&w, "web", "another", options);
        w.renders = OUTSIDE;
        world_show(&w, s, "web");
        world_run(&w, &s, "web", 5000);
        check_has_at(said(&w, "Installed"), STR("found \"other\""), __FILE__, __LINE__);
        assert_true(world_has(&w, "/helm/shop/web") && world_has(&w, WORLD_CHART_OBJECT));
        w.renders = NULL;
        world_release(&w, "web", "a third", options);
        world_show(&w, s, "web");
        world_run(&w, &s, "web", 5000);
        assert_true(world_has(&w, "/helm/shop/next") && world_has(&w, WORLD_CHART_OBJECT));
        assert_false(world_has(&w, "/helm/shop/web"));
        steps_free(s);
        world_done(&w);
    }
}

/* ---- drift of charts ---- */

static void test_chart_drift(void **state)
{
    (void)state;
    agent_world w = world_new();
    world_release(&w, "web", "ignored",
                  "\"options\":{\"defaultNamespace\":\"shop\",\"helm\":{\"chart\":\"web\","
                  "\"repo\":\"https://charts.example\"}}");
    deployment_steps *s = begin(&w);
    world_run(&w, &s, "web", REST);
    check_status(&w, "nonModified", "true");
    for (int again = 0; again < 2; again++) {
        world_merge(&w, WORLD_CHART_OBJECT, STR("{\"data\":{\"of\":\"somebody\"}}"));
        steps_look(s);
        world_run(&w, &s, "web", REST);
        check_status(&w, "nonModified", "false");
        world_merge(&w, WORLD_CHART_OBJECT, STR("{\"data\":{\"of\":\"chart\"}}"));
        steps_look(s);
        world_run(&w, &s, "web", REST);
        check_status(&w, "nonModified", "true");
        steps_free(s); /* an agent that did not install it finds out as well */
        s = begin(&w);
        world_run(&w, &s, "web", REST);
    }
    steps_free(s);
    world_done(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_normalised),     cmocka_unit_test(test_normalised_and_edited),
        cmocka_unit_test(test_overwrites),     cmocka_unit_test(test_values_from),
        cmocka_unit_test(test_values_follow),  cmocka_unit_test(test_chart_drift),
        cmocka_unit_test(test_whose_failure),  cmocka_unit_test(test_namespace_of_chart),
        cmocka_unit_test(test_confined_chart), cmocka_unit_test(test_refused_chart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
