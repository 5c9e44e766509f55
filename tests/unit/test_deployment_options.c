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

static str deployed(agent_world *w)
{
    yyjson_val *list = json_parse(w->arena, world_status(w, "web", "conditions"), NULL), *one;
    size_t i, max;
    yyjson_arr_foreach(list, i, max, one)
    {
        if (str_eq(object_text(one, STR("type")), STR("Deployed")))
            return object_text(one, STR("message"));
    }
    return STR_EMPTY;
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
        cmocka_unit_test(test_normalised),  cmocka_unit_test(test_normalised_and_edited),
        cmocka_unit_test(test_overwrites),  cmocka_unit_test(test_values_from),
        cmocka_unit_test(test_chart_drift),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
