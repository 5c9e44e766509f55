/* SPDX-License-Identifier: Apache-2.0 */
/* A deployment that is in place: what is told of drift that stays, that looking after it for months
 * costs no more than for a day, and on whose behalf and under which names it is written. */
#include <malloc.h>

#include "base/mem.h"
#include "support/agent_versions.h"
#include "support/agent_world.h"

static deployment_steps *begin(agent_world *w, const char *name)
{
    deployment_steps *s = steps_new(str_of(name));
    assert_non_null(s);
    world_show(w, s, name);
    return s;
}

static void check_status(agent_world *w, const char *member, const char *want)
{
    check_text(world_status(w, "web", member), want);
}

static str condition_of(agent_world *w, const char *type, const char *member)
{
    str text = world_status(w, "web", "conditions");
    yyjson_val *list = json_parse(w->arena, text, NULL), *one;
    size_t i, max;
    yyjson_arr_foreach(list, i, max, one)
    {
        if (str_eq(object_text(one, STR("type")), str_of(type)))
            return object_text(one, str_of(member));
    }
    return STR_EMPTY;
}

/* The version is deployed all the same: what keeps drift from being put right is no failure of it,
 * and what was found stays told. */
static void test_drift_that_stays(void **state)
{
    (void)state;
    static const step_outcome outcomes[] = {OUTCOME_REFUSED, OUTCOME_INVALID};
    for (size_t i = 0; i < COUNT_OF(outcomes); i++) {
        agent_world w = world_new();
        world_release(&w, "web", BOTH, OPTIONS ",\"correctDrift\":{\"enabled\":true}");
        deployment_steps *s = begin(&w, "web");
        world_run(&w, &s, "web", REST);
        w.refuse = SHOP "a";
        w.refuse_outcome = outcomes[i];
        world_merge(&w, SHOP "a", STR("{\"data\":{\"key\":\"edited\"}}"));
        steps_look(s);
        world_run(&w, &s, "web", REST);
        check_text(condition_of(&w, "Deployed", "status"), "True");
        check_text(condition_of(&w, "Installed", "status"), "True");
        check_text(condition_of(&w, "Ready", "status"), "False");
        check_text(condition_of(&w, "Ready", "message"),
                   "drift could not be corrected: ConfigMap shop/a: not like this");
        check_status(&w, "nonModified", "false");
        check_status(&w, "ready", "true");
        w.refuse = NULL;
        w.now_ms += STEPS_RETRY_MAX_MS;
        world_run(&w, &s, "web", REST);
        check_status(&w, "nonModified", "true");
        check_text(condition_of(&w, "Ready", "status"), "True");
        steps_free(s);
        world_done(&w);
    }
}

/* ---- kinds that move ---- */

#define TILL_PATH(version) "/apis/shop.io/" version "/namespaces/shop/tills/t"
#define TILL_KINDS(version)                                                                        \
    "{\"kind\":\"APIResourceList\",\"groupVersion\":\"shop.io/" version                            \
    "\",\"resources\":[{\"name\":\"tills\",\"kind\":\"Till\",\"namespaced\":true}]}"
#define TILL "apiVersion: shop.io/v1beta1\nkind: Till\nmetadata: {name: t}\nspec: {drawers: 2}\n"

/* The cluster serves another version of the kind from now on, with the same object. */
static void move_tills(agent_world *w)
{
    yyjson_val *till = world_read(w, TILL_PATH("v1beta1"));
    assert_non_null(till);
    buf text = BUF(LIMIT_TEXT_BYTES);
    json_write(&text, till);
    world_drop(w, TILL_PATH("v1beta1"));
    world_put(w, TILL_PATH("v1"), buf_str(&text));
    buf_done(&text);
    w->unserved = "/apis/shop.io/v1beta1/";
    w->learns = TILL_KINDS("v1");
}

/* An object whose version is not served any more is neither missing nor left behind. */
static void test_version_unserved(void **state)
{
    (void)state;
    agent_world w = world_new();
    w.learns = TILL_KINDS("v1beta1");
    world_release(&w, "web", MAP("a", "one") "---\n" TILL, OPTIONS);
    deployment_steps *s = begin(&w, "web");
    world_run(&w, &s, "web", REST);
    check_status(&w, "nonModified", "true");
    move_tills(&w);
    unsigned before = w.discoveries;
    for (int i = 0; i < 3; i++) {
        w.now_ms += STEPS_LOOK_MS;
        steps_look(s);
        world_run(&w, &s, "web", REST);
        check_status(&w, "nonModified", "true");
        check_status(&w, "ready", "true");
    }
    assert_int_equal(w.discoveries, before + 1);
    world_release(&w, "web", MAP("a", "two"), OPTIONS);
    world_show(&w, s, "web");
    world_run(&w, &s, "web", REST);
    check_status(&w, "nonModified", "true");
    assert_false(world_has(&w, TILL_PATH("v1")));
    steps_free(s);
    world_done(&w);
}

/* The same without a look in between: what leaves goes from where it is now. What is wanted in a
 * version that is not served is told as such. */
static void test_version_unserved_when_it_goes(void **state)
{
    (void)state;
    for (int stays = 0; stays < 2; stays++) {
        agent_world w = world_new();
        w.learns = TILL_KINDS("v1beta1");
        world_release(&w, "web", MAP("a", "one") "---\n" TILL, OPTIONS);
        deployment_steps *s = begin(&w, "web");
        world_run(&w, &s, "web", REST);
        move_tills(&w);
        world_release(&w, "web", stays ? MAP("a", "two") "---\n" TILL : MAP("a", "two"), OPTIONS);
        world_show(&w, s, "web");
        world_run(&w, &s, "web", 5000);
        assert_int_equal(world_has(&w, TILL_PATH("v1")), stays);
        if (stays)
            check_text(condition_of(&w, "Deployed", "message"),
                       "the cluster has no kind Till in shop.io/v1beta1, wanted by \"t\"");
        else
            check_status(&w, "nonModified", "true");
        steps_free(s);
        world_done(&w);
    }
}

/* A kind that is told of and has no place is asked for again, ever more slowly, and its object is
 * not taken for gone. */
static void test_kind_without_a_place(void **state)
{
    (void)state;
    agent_world w = world_new();
    w.learns = TILL_KINDS("v1beta1");
    world_release(&w, "web", MAP("a", "one") "---\n" TILL, OPTIONS);
    deployment_steps *s = begin(&w, "web");
    world_run(&w, &s, "web", REST);
    w.unserved = "/apis/shop.io/v1beta1/";
    unsigned before = w.discoveries;
    world_release(&w, "web", MAP("a", "two"), OPTIONS);
    world_show(&w, s, "web");
    world_run(&w, &s, "web", STEPS_PATIENCE_MS / 2);
    assert_true(w.discoveries > before && w.discoveries < before + 10);
    assert_true(world_has(&w, TILL_PATH("v1beta1")));
    w.unserved = NULL;
    world_run(&w, &s, "web", STEPS_PATIENCE_MS);
    assert_false(world_has(&w, TILL_PATH("v1beta1")));
    steps_free(s);
    world_done(&w);
}

/* ---- months ---- */

/* Looks at it again and again; somebody edits the object in between, if there is one. The hub is
 * not needed for it. */
static void check_no_growth(agent_world *w, deployment_steps **s, const char *edited)
{
    int64_t live = 0;
    for (size_t i = 0; i < w->objects.len; i++)
        if (strstr(w->objects.at[i].path, WORLD_CONTENTS))
            w->objects.at[i].there = false;
    for (int i = 0; i < 3000; i++) {
        arena_place before = arena_mark(w->arena);
        if (edited)
            world_merge(w, edited, STR("{\"data\":{\"key\":\"edited\",\"of\":\"edited\"}}"));
        w->log[0] = '\0';
        w->now_ms += STEPS_RETRY_MAX_MS;
        steps_look(*s);
        world_run(w, s, "web", REST);
        arena_rewind(w->arena, before);
        live = i == 100 ? mem_live() : live;
    }
    assert_int_equal(mem_live(), live);
}

static void test_no_growth(void **state)
{
    (void)state;
    static const struct {
        const char *yaml, *options, *edited;
    } rows[] = {
        {BOTH, OPTIONS, NULL},
        {BOTH, OPTIONS ",\"correctDrift\":{\"enabled\":true}", SHOP "a"},
        {"ignored", CHART ",\"correctDrift\":{\"enabled\":true}", WORLD_CHART_OBJECT},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        agent_world w = world_new();
        world_release(&w, "web", rows[i].yaml, rows[i].options);
        deployment_steps *s = begin(&w, "web");
        world_run(&w, &s, "web", REST);
        check_no_growth(&w, &s, rows[i].edited);
        check_status(&w, "nonModified", "true");
        steps_free(s);
        world_done(&w);
    }
}

static size_t heap_bytes(void)
{
    struct mallinfo2 all = mallinfo2();
    return all.uordblks + all.hblkhd;
}

/* Of a large object only what is compared and applied is kept: neither the Content it came from nor
 * what was found in the cluster. */
static void test_what_is_kept(void **state)
{
    (void)state;
    enum { LARGE = 1000000 };
    agent_world w = world_new();
    str yaml = arena_printf(w.arena, MAP("a", "%0*d"), LARGE, 0);
    world_release(&w, "web", yaml.ptr, OPTIONS);
    deployment_steps *s = begin(&w, "web");
    world_run(&w, &s, "web", REST);
    check_status(&w, "ready", "true");
    size_t with = heap_bytes();
    steps_free(s);
    size_t kept = with - heap_bytes(); /* nothing under a sanitizer, which has a heap of its own */
    check_msg(kept < 4 * LARGE, "%zu bytes", kept);
    world_done(&w);
}

/* ---- names ---- */

/* A namespace of others keeps what they say of it: each deployment manages its own labels there. */
static void test_managers(void **state)
{
    (void)state;
    agent_world w = world_new();
    world_release(&w, "web", MAP("a", "one"),
                  "\"options\":{\"defaultNamespace\":\"shop\",\"namespaceLabels\":{\"a\":\"b\"}}");
    deployment_steps *s = begin(&w, "web");
    unsigned applied = 0;
    for (bool killed = false; applied < 2;) {
        steps_world facts = world_facts(&w);
        step next = steps_next(s, &facts);
        if (next.kind == STEP_APPLY_OBJECT) {
            bool shared = str_eq(next.name, STR("shop"));
            check_text(next.manager, shared ? STEPS_MANAGER ".web" : STEPS_MANAGER);
            applied++;
        }
        step_answer answer = world_do(&w, &next, &killed);
        steps_answer(s, &facts, &answer);
    }
    steps_free(s);
    world_done(&w);
}

/* Two long names may be cut to one: the second has to wait, and touches nothing of the first. */
static void test_inventory_of_another(void **state)
{
    (void)state;
    agent_world w = world_new();
    world_put(&w, RECORD,
              STR("{\"metadata\":{\"name\":\"drover-web\"},\"data\":{\"inventory\":"
                  "\"{\\\"deployment\\\":\\\"other\\\",\\\"objects\\\":[]}\"}}"));
    world_release(&w, "web", BOTH, OPTIONS);
    deployment_steps *s = begin(&w, "web");
    world_run(&w, &s, "web", 2);
    check_text(condition_of(&w, "Deployed", "message"),
               "ConfigMap drover-web is the inventory of the deployment \"other\"");
    assert_false(world_has(&w, SHOP "a"));
    world_drop(&w, WORLD_DEPLOYMENTS "/web");
    world_show(&w, s, "web");
    assert_int_equal(world_run(&w, &s, "web", 2).kind, STEP_WAIT);
    assert_true(world_has(&w, RECORD));
    steps_free(s);
    world_done(&w);
}

/* ---- what may not be touched ---- */

/* It is found before anything else is written, and does not stand in the way of a version without
 * it. */
static void test_checked_first(void **state)
{
    (void)state;
    static const struct {
        bool hidden;
        const char *message;
    } rows[] = {{true, "ConfigMap shop/b: not for you"},
                {false, "ConfigMap shop/b: it exists and is not owned by us; helm.takeOwnership or "
                        "overwrites takes it over"}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        agent_world w = world_new();
        if (rows[i].hidden)
            w.hidden = SHOP "b";
        else
            world_put(&w, SHOP "b", STR("{\"metadata\":{\"name\":\"b\"}}"));
        world_release(&w, "web", BOTH, OPTIONS);
        deployment_steps *s = begin(&w, "web");
        world_run(&w, &s, "web", 5000);
        check_text(condition_of(&w, "Deployed", "message"), rows[i].message);
        check_text(str_of(w.log), "report " WORLD_DEPLOYMENTS "/web\n");
        world_release(&w, "web", MAP("a", "two"), OPTIONS);
        world_show(&w, s, "web");
        world_run(&w, &s, "web", REST);
        check_status(&w, "ready", "true");
        assert_int_equal(world_has(&w, SHOP "b"), !rows[i].hidden);
        steps_free(s);
        world_done(&w);
    }
}

/* What helm, or Fleet's own agent, made for the same release is taken over; for another it is not.
 */
static void test_objects_of_helm(void **state)
{
    (void)state;
    static const struct {
        const char *release, *space;
        bool taken;
    } rows[] = {{"web", "shop", true}, {"web", "market", false}, {"other", "shop", false}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        agent_world w = world_new();
        world_put(&w, SHOP "b",
                  arena_printf(w.arena,
                               "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{"
                               "\"name\":\"b\",\"annotations\":{"
                               "\"meta.helm.sh/release-name\":\"%s\","
                               "\"meta.helm.sh/release-namespace\":\"%s\"}}}",
                               rows[i].release, rows[i].space));
        world_release(&w, "web", BOTH, OPTIONS);
        deployment_steps *s = begin(&w, "web");
        world_run(&w, &s, "web", 5000);
        check_status(&w, "ready", rows[i].taken ? "true" : "");
        steps_free(s);
        world_done(&w);
    }
}

/* What may go better next time is tried again ever more slowly, and at once when it is edited. */
static void test_ever_more_slowly(void **state)
{
    (void)state;
    agent_world w = world_new();
    w.refuse = SHOP "a";
    w.refuse_outcome = OUTCOME_REFUSED;
    world_release(&w, "web", BOTH, OPTIONS);
    deployment_steps *s = begin(&w, "web");
    for (int64_t wait = STEPS_RETRY_FIRST_MS; wait < 4 * (int64_t)STEPS_RETRY_MAX_MS; wait *= 2) {
        step rest = world_run(&w, &s, "web", 1);
        int64_t want = wait < STEPS_RETRY_MAX_MS ? wait : STEPS_RETRY_MAX_MS;
        assert_int_equal(rest.due_ms - w.now_ms, want);
        w.now_ms = rest.due_ms;
    }
    world_release(&w, "web", MAP("a", "two"), OPTIONS);
    world_show(&w, s, "web");
    step rest = world_run(&w, &s, "web", 1);
    assert_int_equal(rest.due_ms - w.now_ms, STEPS_RETRY_FIRST_MS);
    steps_free(s);
    world_done(&w);
}

/* ---- accounts ---- */

#define ACCOUNT "/api/v1/namespaces/drover-system/serviceaccounts/tenant"
#define AS "\"serviceAccount\":\"tenant\""
#define TENANT "system:serviceaccount:drover-system:tenant"

static void put_account(agent_world *w)
{
    world_put(w, ACCOUNT, STR("{\"metadata\":{\"name\":\"tenant\"}}"));
}

/* From its first version to its end all that it holds is touched on behalf of the account, and all
 * else on the agent's own. */
static void test_account(void **state)
{
    (void)state;
    static const char *const versions[][2] = {
        {BOTH, "\"options\":{" AS ",\"defaultNamespace\":\"shop\",\"deleteNamespace\":true}"},
        {MAP("a", "two"), "\"options\":{" AS ",\"defaultNamespace\":\"shop\","
                          "\"allowedTargetNamespaceSelector\":{},\"deleteNamespace\":true}"},
        {"ignored", "\"options\":{" AS ",\"defaultNamespace\":\"shop\",\"deleteNamespace\":true,"
                    "\"helm\":{\"chart\":\"web\",\"repo\":\"https://charts.example\"}}"},
    };
    agent_world w = world_new();
    w.user = TENANT;
    put_account(&w);
    deployment_steps *s = steps_new(STR("web"));
    for (size_t i = 0; i < COUNT_OF(versions); i++) {
        world_release(&w, "web", versions[i][0], versions[i][1]);
        world_show(&w, s, "web");
        world_run(&w, &s, "web", REST);
        check_status(&w, "ready", "true");
    }
    /* Another life finds in the inventory who it was. */
    steps_free(s);
    s = steps_new(STR("web"));
    steps_gone(s);
    assert_int_equal(world_run(&w, &s, "web", REST).kind, STEP_FORGET);
    assert_false(world_has(&w, NAMESPACE));
    assert_false(world_has(&w, WORLD_CHART_OBJECT));
    /* Without an account the rights are the agent's own. */
    w.user = "";
    world_release(&w, "web", BOTH, OPTIONS);
    steps_free(s);
    s = begin(&w, "web");
    world_run(&w, &s, "web", REST);
    assert_true(world_has(&w, SHOP "b"));
    steps_free(s);
    world_done(&w);
}

static void test_account_is_missing(void **state)
{
    (void)state;
    agent_world w = world_new();
    world_release(&w, "web", BOTH, "\"options\":{" AS "}");
    deployment_steps *s = begin(&w, "web");
    world_run(&w, &s, "web", 5000);
    check_text(condition_of(&w, "Deployed", "message"),
               "serviceAccount: the cluster has no ServiceAccount drover-system/tenant");
    assert_int_equal(w.writes, 1); /* the report */
    put_account(&w);
    w.now_ms += STEPS_RETRY_MAX_MS;
    world_run(&w, &s, "web", REST);
    check_status(&w, "ready", "true");
    steps_free(s);
    world_done(&w);
}

/* It may not look at the namespace that it works in, nor label it. */
static void test_account_of_one_namespace(void **state)
{
    (void)state;
    static const struct {
        const char *more;
        bool goes;
    } rows[] = {{"", true}, {",\"namespaceLabels\":{\"a\":\"b\"}", false}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        agent_world w = world_new();
        char options[256];
        snprintf(options, sizeof options, "\"options\":{" AS ",\"defaultNamespace\":\"shop\"%s}",
                 rows[i].more);
        put_account(&w);
        w.hidden = NAMESPACE;
        world_release(&w, "web", BOTH, options);
        deployment_steps *s = begin(&w, "web");
        world_run(&w, &s, "web", 5000);
        assert_int_equal(world_has(&w, SHOP "a"), rows[i].goes);
        check_text(condition_of(&w, "Deployed", "message"),
                   rows[i].goes ? "" : "Namespace shop: not for you");
        steps_free(s);
        world_done(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_drift_that_stays),
        cmocka_unit_test(test_version_unserved),
        cmocka_unit_test(test_version_unserved_when_it_goes),
        cmocka_unit_test(test_kind_without_a_place),
        cmocka_unit_test(test_no_growth),
        cmocka_unit_test(test_what_is_kept),
        cmocka_unit_test(test_managers),
        cmocka_unit_test(test_inventory_of_another),
        cmocka_unit_test(test_checked_first),
        cmocka_unit_test(test_objects_of_helm),
        cmocka_unit_test(test_ever_more_slowly),
        cmocka_unit_test(test_account),
        cmocka_unit_test(test_account_is_missing),
        cmocka_unit_test(test_account_of_one_namespace),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
