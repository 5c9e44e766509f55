/* SPDX-License-Identifier: Apache-2.0 */
/* The way of a BundleDeployment into its cluster, with a hub and a cluster in memory: what is
 * written in which order, and what is told. */
#include "engine/fleet_names.h"
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

/* ---- the straight way ---- */

static void test_install_update_uninstall(void **state)
{
    (void)state;
    agent_world w = world_new();
    world_release(&w, "web", BOTH, OPTIONS);
    deployment_steps *s = begin(&w, "web");
    assert_int_equal(world_run(&w, &s, "web", REST).kind, STEP_WAIT);
    check_text(str_of(w.log), "write inventory " RECORD "\n"
                              "apply object " NAMESPACE "\n"
                              "apply object " SHOP "a\n"
                              "apply object " SHOP "b\n"
                              "write inventory " RECORD "\n"
                              "report " WORLD_DEPLOYMENTS "/web\n");
    check_status(&w, "ready", "true");
    check_status(&w, "nonModified", "true");
    check_status(&w, "release", "\"shop/web:1\"");
    check_status(&w, "syncGeneration", "0");
    check_text(condition_of(&w, "Deployed", "status"), "True");
    check_text(condition_of(&w, "Ready", "status"), "True");

    /* At rest nothing is written, however long. */
    unsigned writes = w.writes;
    for (int i = 0; i < 5; i++) {
        w.now_ms += STEPS_LOOK_MS;
        world_run(&w, &s, "web", REST);
    }
    assert_int_equal(w.writes, writes);

    /* b leaves, c comes. */
    w.log[0] = '\0';
    world_release(&w, "web", MAP("a", "two") "---\n" MAP("c", "one"), OPTIONS);
    world_show(&w, s, "web");
    world_run(&w, &s, "web", REST);
    check_text(str_of(w.log), "write inventory " RECORD "\n"
                              "apply object " SHOP "a\n"
                              "apply object " SHOP "c\n"
                              "delete object " SHOP "b\n"
                              "write inventory " RECORD "\n"
                              "report " WORLD_DEPLOYMENTS "/web\n");
    check_status(&w, "release", "\"shop/web:2\"");

    /* Gone from the hub: everything but the namespace goes. */
    w.log[0] = '\0';
    world_drop(&w, WORLD_DEPLOYMENTS "/web");
    world_show(&w, s, "web");
    assert_int_equal(world_run(&w, &s, "web", REST).kind, STEP_FORGET);
    check_text(str_of(w.log), "delete object " SHOP "a\n"
                              "delete object " SHOP "c\n"
                              "delete inventory " RECORD "\n");
    assert_true(world_has(&w, NAMESPACE));
    steps_free(s);
    world_done(&w);
}

static void test_keep_resources(void **state)
{
    (void)state;
    agent_world w = world_new();
    world_release(&w, "web", BOTH,
                  "\"options\":{\"defaultNamespace\":\"shop\",\"keepResources\":true}");
    deployment_steps *s = begin(&w, "web");
    world_run(&w, &s, "web", REST);
    world_drop(&w, WORLD_DEPLOYMENTS "/web");
    world_show(&w, s, "web");
    assert_int_equal(world_run(&w, &s, "web", REST).kind, STEP_FORGET);
    assert_true(world_has(&w, SHOP "a"));
    assert_false(world_has(&w, RECORD));
    steps_free(s);
    world_done(&w);
}

static void test_delete_namespace(void **state)
{
    (void)state;
    static const char *const namespaces[] = {"shop", "kube-system"};
    for (size_t i = 0; i < COUNT_OF(namespaces); i++) {
        agent_world w = world_new();
        char options[256], path[128];
        snprintf(options, sizeof options,
                 "\"options\":{\"defaultNamespace\":\"%s\",\"deleteNamespace\":true}",
                 namespaces[i]);
        snprintf(path, sizeof path, "/api/v1/namespaces/%s", namespaces[i]);
        world_release(&w, "web", MAP("a", "one"), options);
        deployment_steps *s = begin(&w, "web");
        world_run(&w, &s, "web", REST);
        assert_true(world_has(&w, path));
        world_drop(&w, WORLD_DEPLOYMENTS "/web");
        world_show(&w, s, "web");
        world_run(&w, &s, "web", REST);
        assert_int_equal(world_has(&w, path), i == 1);
        steps_free(s);
        world_done(&w);
    }
}

static void test_held_back(void **state)
{
    (void)state;
    static const char *const rows[] = {"\"paused\":true", "\"offSchedule\":true",
                                       "\"waitingForValues\":{\"a\":1}", "\"deploymentID\":null"};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        agent_world w = world_new();
        char patch[128];
        world_release(&w, "web", BOTH, OPTIONS);
        snprintf(patch, sizeof patch, "{\"spec\":{%s}}", rows[i]);
        world_merge(&w, WORLD_DEPLOYMENTS "/web", str_of(patch));
        deployment_steps *s = begin(&w, "web");
        step last = world_run(&w, &s, "web", REST);
        assert_int_equal(last.kind, STEP_WAIT);
        assert_true(last.due_ms == INT64_MAX && last.why.len > 0);
        assert_int_equal(w.steps, 0);
        steps_free(s);
        world_done(&w);
    }
}

/* ---- what is not ours ---- */

static void test_foreign_objects_stay(void **state)
{
    (void)state;
    agent_world w = world_new();
    world_release(&w, "web", BOTH, OPTIONS);
    world_put(&w, SHOP "b",
              STR("{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"b\"},"
                  "\"data\":{\"key\":\"theirs\"}}"));
    deployment_steps *s = begin(&w, "web");
    step last = world_run(&w, &s, "web", 5000);
    check_str(last.why, condition_of(&w, "Deployed", "message"));
    check_text(condition_of(&w, "Deployed", "status"), "False");
    check_text(condition_of(&w, "Deployed", "message"),
               "ConfigMap shop/b: it exists and is not owned by us; helm.takeOwnership or "
               "overwrites takes it over");
    check_status(&w, "appliedDeploymentID", "");
    world_release(&w, "web", BOTH,
                  "\"options\":{\"defaultNamespace\":\"shop\",\"helm\":{\"takeOwnership\":true}}");
    world_show(&w, s, "web");
    world_run(&w, &s, "web", REST);
    check_status(&w, "ready", "true");
    /* The inventory names b, but b carries the label no more: it outlives the deployment. */
    world_merge(&w, SHOP "b", STR("{\"metadata\":{\"labels\":null}}"));
    world_drop(&w, WORLD_DEPLOYMENTS "/web");
    world_show(&w, s, "web");
    assert_int_equal(world_run(&w, &s, "web", REST).kind, STEP_FORGET);
    assert_true(world_has(&w, SHOP "b"));
    assert_false(world_has(&w, SHOP "a"));
    steps_free(s);
    world_done(&w);
}

/* A version that does not bring the namespace along any more still is in it: it goes with the
 * deployment. */
static void test_namespace_is_not_pruned(void **state)
{
    (void)state;
    static const struct {
        const char *yaml, *options;
    } rows[] = {{MAP("a", "two"), OPTIONS}, {"ignored", CHART_AS("web", "front", "shop", "")}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        agent_world w = world_new();
        world_release(
            &w, "web",
            "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n---\n" MAP("a", "one"),
            OPTIONS);
        deployment_steps *s = begin(&w, "web");
        world_run(&w, &s, "web", REST);
        world_release(&w, "web", rows[i].yaml, rows[i].options);
        world_show(&w, s, "web");
        world_run(&w, &s, "web", REST);
        assert_true(world_has(&w, NAMESPACE));
        check_status(&w, "ready", "true");
        world_drop(&w, WORLD_DEPLOYMENTS "/web");
        world_show(&w, s, "web");
        assert_int_equal(world_run(&w, &s, "web", REST).kind, STEP_FORGET);
        assert_false(world_has(&w, NAMESPACE));
        steps_free(s);
        world_done(&w);
    }
}

static void test_kept_objects_stay(void **state)
{
    (void)state;
    agent_world w = world_new();
    world_release(&w, "web",
                  "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b, annotations: "
                  "{helm.sh/resource-policy: keep}}\n---\n" MAP("a", "one"),
                  OPTIONS);
    deployment_steps *s = begin(&w, "web");
    world_run(&w, &s, "web", REST);
    world_release(&w, "web", MAP("a", "two"), OPTIONS);
    world_show(&w, s, "web");
    world_run(&w, &s, "web", REST);
    assert_true(world_has(&w, SHOP "b"));
    steps_free(s);
    world_done(&w);
}

/* ---- readiness and drift ---- */

#define DEPLOY "/apis/apps/v1/namespaces/shop/deployments/web"
#define WORKLOAD                                                                                   \
    "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {replicas: 1}\n"

static void test_not_ready_then_ready(void **state)
{
    (void)state;
    agent_world w = world_new();
    world_release(&w, "web", WORKLOAD, OPTIONS);
    deployment_steps *s = begin(&w, "web");
    step last = world_run(&w, &s, "web", STEPS_LOOK_SOON_MS);
    check_status(&w, "ready", "false");
    assert_true(last.due_ms - w.now_ms <= STEPS_LOOK_SOON_MS * 2);
    check_has_at(world_status(&w, "web", "nonReadyStatus"), STR("0 of 1 replicas are updated"),
                 __FILE__, __LINE__);
    check_text(condition_of(&w, "Ready", "status"), "False");
    check_text(condition_of(&w, "Deployed", "status"), "True");
    world_merge(&w, DEPLOY,
                STR("{\"status\":{\"replicas\":1,\"updatedReplicas\":1,\"availableReplicas\":1}}"));
    world_run(&w, &s, "web", REST);
    check_status(&w, "ready", "true");
    check_status(&w, "nonReadyStatus", "");
    steps_free(s);
    world_done(&w);
}

static void test_drift_is_told(void **state)
{
    (void)state;
    agent_world w = world_new();
    world_release(&w, "web", BOTH, OPTIONS);
    deployment_steps *s = begin(&w, "web");
    world_run(&w, &s, "web", REST);
    world_merge(&w, SHOP "a", STR("{\"data\":{\"key\":\"edited\",\"more\":\"theirs\"}}"));
    world_drop(&w, SHOP "b");
    steps_look(s);
    world_run(&w, &s, "web", REST);
    check_status(&w, "nonModified", "false");
    check_status(&w, "ready", "true");
    check_status(
        &w, "modifiedStatus",
        "[{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"name\":\"a\",\"namespace\":\"shop\","
        "\"patch\":\"{\\\"data\\\":{\\\"key\\\":\\\"one\\\"}}\"},{\"apiVersion\":\"v1\","
        "\"kind\":\"ConfigMap\",\"missing\":true,\"name\":\"b\",\"namespace\":\"shop\"}]");
    steps_free(s);
    world_done(&w);
}

static void test_drift_is_corrected(void **state)
{
    (void)state;
    agent_world w = world_new();
    world_release(&w, "web", BOTH, OPTIONS ",\"correctDrift\":{\"enabled\":true}");
    deployment_steps *s = begin(&w, "web");
    world_run(&w, &s, "web", REST);
    world_merge(&w, SHOP "a", STR("{\"data\":{\"key\":\"edited\"}}"));
    world_drop(&w, SHOP "b");
    steps_look(s);
    world_run(&w, &s, "web", REST);
    check_status(&w, "nonModified", "true");
    assert_true(world_has(&w, SHOP "b"));
    check_text(object_text(go_member(world_read(&w, SHOP "a"), STR("data")), STR("key")), "one");
    steps_free(s);
    world_done(&w);
}

/* ---- failures ---- */

static void test_a_bad_manifest(void **state)
{
    (void)state;
    agent_world w = world_new();
    world_release(&w, "web", BOTH, OPTIONS);
    w.refuse = SHOP "b";
    w.refuse_outcome = OUTCOME_INVALID;
    deployment_steps *s = begin(&w, "web");
    world_run(&w, &s, "web", 5000);
    check_status(&w, "ready", "false");
    check_status(&w, "nonModified", "true");
    assert_true(world_status(&w, "web", "appliedDeploymentID").len > 2);
    check_text(condition_of(&w, "Installed", "status"), "False");
    check_text(condition_of(&w, "Installed", "message"), "ConfigMap shop/b: not like this");
    check_text(condition_of(&w, "Deployed", "status"), "True");
    unsigned reports = w.writes;
    world_run(&w, &s, "web", 5000); /* tried again, told once */
    assert_int_equal(w.writes, reports);
    /* Repaired, it goes through without being asked. */
    w.refuse = NULL;
    w.now_ms += STEPS_RETRY_MAX_MS;
    world_run(&w, &s, "web", REST);
    check_status(&w, "ready", "true");
    check_text(condition_of(&w, "Installed", "status"), "True");
    steps_free(s);
    world_done(&w);
}

static void test_refused_and_kinds_that_are_missing(void **state)
{
    (void)state;
    agent_world w = world_new();
    world_release(&w, "web", BOTH "---\napiVersion: shop.io/v1\nkind: Till\nmetadata: {name: t}\n",
                  OPTIONS);
    deployment_steps *s = begin(&w, "web");
    world_run(&w, &s, "web", 5000);
    check_text(condition_of(&w, "Deployed", "status"), "False");
    check_text(condition_of(&w, "Deployed", "message"),
               "the cluster has no kind Till in shop.io/v1, wanted by \"t\"");
    assert_false(world_has(&w, RECORD));
    steps_free(s);
    world_done(&w);
}

/* What needs another program or other rights is refused by its name, and nothing is applied. */
static void test_unsupported(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"\"options\":{\"kustomize\":{\"dir\":\"base\"}}", "kustomize"},
        {"\"options\":{},\"ociContents\":true", "ociContents"},
        {"\"options\":{\"helm\":{\"chart\":\"x\"}},\"helmChartOptions\":{"
         "\"helmOpSecretName\":\"s\"}",
         "helmOpSecretName"},
        {"\"options\":{\"downstreamResources\":[{\"kind\":\"Secret\",\"name\":\"x\"}]}",
         "downstreamResources"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char text[128];
        agent_world w = world_new();
        world_release(&w, "web", BOTH, rows[i][0]);
        deployment_steps *s = begin(&w, "web");
        world_run(&w, &s, "web", 5000);
        snprintf(text, sizeof text, "found %s, which this agent does not support", rows[i][1]);
        check_text(condition_of(&w, "Installed", "message"), text);
        check_text(condition_of(&w, "Ready", "status"), "False");
        assert_false(world_has(&w, SHOP "a"));
        steps_free(s);
        world_done(&w);
    }
}

/* A hub or cluster that is away is no failure of the deployment until it lasts. */
static void test_patience(void **state)
{
    (void)state;
    agent_world w = world_new();
    world_release(&w, "web", BOTH, OPTIONS);
    w.refuse = SHOP "a";
    w.refuse_outcome = OUTCOME_LATER;
    deployment_steps *s = begin(&w, "web");
    int64_t start = w.now_ms;
    while (w.now_ms - start < STEPS_PATIENCE_MS)
        w.now_ms = world_run(&w, &s, "web", 1).due_ms;
    check_status(&w, "conditions", "");
    world_run(&w, &s, "web", 1);
    check_text(condition_of(&w, "Deployed", "message"), "ConfigMap shop/a: not like this");
    steps_free(s);
    world_done(&w);
}

/* Nor does it become one by not being seen: the change is in the cluster. */
static void test_unseen(void **state)
{
    (void)state;
    agent_world w = world_new();
    world_release(&w, "web", BOTH, OPTIONS);
    deployment_steps *s = begin(&w, "web");
    world_run(&w, &s, "web", REST);
    str applied = world_status(&w, "web", "appliedDeploymentID");
    w.dark = true;
    int64_t start = w.now_ms;
    while (w.now_ms - start < 3 * STEPS_PATIENCE_MS)
        w.now_ms = world_run(&w, &s, "web", 1).due_ms;
    check_text(condition_of(&w, "Monitored", "status"), "False");
    check_text(condition_of(&w, "Deployed", "status"), "True");
    check_str(world_status(&w, "web", "appliedDeploymentID"), applied);
    check_status(&w, "ready", "true");
    w.dark = false;
    w.now_ms += STEPS_RETRY_MAX_MS;
    world_run(&w, &s, "web", REST);
    check_text(condition_of(&w, "Monitored", "status"), "True");
    steps_free(s);
    world_done(&w);
}

static void test_wrong_diff(void **state)
{
    (void)state;
    agent_world w = world_new();
    world_release(&w, "web", BOTH,
                  "\"options\":{\"defaultNamespace\":\"shop\",\"diff\":{\"comparePatches\":[{"
                  "\"operations\":[{\"op\":\"turn\"}]}]}}");
    deployment_steps *s = begin(&w, "web");
    world_run(&w, &s, "web", 5000);
    check_text(condition_of(&w, "Installed", "status"), "False");
    check_has_at(condition_of(&w, "Installed", "message"), STR("op: found \"turn\""), __FILE__,
                 __LINE__);
    steps_free(s);
    world_done(&w);
}

/* ---- what must be true first ---- */

static void test_depends_on(void **state)
{
    (void)state;
    agent_world w = world_new();
    world_release(&w, "db", MAP("d", "one"), OPTIONS);
    world_release(&w, "web", MAP("a", "one"), OPTIONS ",\"dependsOn\":[{\"name\":\"db\"}]");
    deployment_steps *s = begin(&w, "web");
    bool done = false;
    for (int i = 0; i < 200 && !done; i++) {
        const yyjson_val *all[] = {world_read(&w, WORLD_DEPLOYMENTS "/db"),
                                   world_read(&w, WORLD_DEPLOYMENTS "/web")};
        steps_world facts = world_facts(&w);
        facts.deployments = all;
        facts.deployment_count = 2;
        step next = steps_next(s, &facts);
        if (next.kind != STEP_WAIT) {
            bool killed;
            step_answer answer = world_do(&w, &next, &killed);
            steps_answer(s, &facts, &answer);
            world_show(&w, s, "web");
            continue;
        }
        if (world_has(&w, SHOP "a"))
            done = true;
        else if (str_eq(condition_of(&w, "Deployed", "message"),
                        STR("it depends on \"db\", which is WaitApplied"))) {
            assert_int_equal(next.due_ms - w.now_ms, STEPS_DEPENDENCY_MS);
            check_text(condition_of(&w, "Deployed", "status"), "False");
            check_text(condition_of(&w, "Deployed", "reason"), CONDITION_DEPENDENCY);
            deployment_steps *other = begin(&w, "db");
            world_run(&w, &other, "db", REST);
            steps_free(other);
        }
        w.now_ms = next.due_ms;
    }
    assert_true(done);
    check_text(condition_of(&w, "Deployed", "status"), "True");
    check_text(condition_of(&w, "Deployed", "reason"), "");
    steps_free(s);
    world_done(&w);
}

/* An entry that names nobody is none; one that cannot be read is no waiting. */
static void test_wrong_dependencies(void **state)
{
    (void)state;
    static const struct {
        const char *list, *message, *reason;
    } rows[] = {
        {"{}", "", ""},
        {"{\"name\":\"db\"}", "it depends on \"db\", of which there is none", CONDITION_DEPENDENCY},
        {"{\"selector\":{\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"Near\"}]}}",
         "dependsOn: operator: found \"Near\", allowed In, NotIn, Exists, DoesNotExist", "Error"}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        agent_world w = world_new();
        char options[256];
        snprintf(options, sizeof options, OPTIONS ",\"dependsOn\":[%s]", rows[i].list);
        world_release(&w, "web", MAP("a", "one"), options);
        deployment_steps *s = begin(&w, "web");
        world_run(&w, &s, "web", 1000);
        check_text(condition_of(&w, "Deployed", "message"), rows[i].message);
        check_text(condition_of(&w, "Deployed", "reason"), rows[i].reason);
        steps_free(s);
        world_done(&w);
    }
}

static void test_allowed_namespaces(void **state)
{
    (void)state;
    agent_world w = world_new();
    world_release(&w, "web", MAP("a", "one"),
                  "\"options\":{\"namespace\":\"shop\",\"allowedTargetNamespaceSelector\":{"
                  "\"matchLabels\":{\"team\":\"shop\"}}}");
    world_put(
        &w, NAMESPACE,
        STR("{\"apiVersion\":\"v1\",\"kind\":\"Namespace\",\"metadata\":{\"name\":\"shop\"}}"));
    deployment_steps *s = begin(&w, "web");
    world_run(&w, &s, "web", 5000);
    check_text(condition_of(&w, "Deployed", "message"),
               "allowedTargetNamespaceSelector does not allow the namespace \"shop\"");
    assert_false(world_has(&w, SHOP "a"));
    world_merge(&w, NAMESPACE, STR("{\"metadata\":{\"labels\":{\"team\":\"shop\"}}}"));
    w.now_ms += STEPS_RETRY_MAX_MS;
    world_run(&w, &s, "web", REST);
    check_status(&w, "ready", "true");
    steps_free(s);
    world_done(&w);
}

/* ---- definitions ---- */

#define TILL "/apis/shop.io/v1/namespaces/shop/tills/t"
#define DEFINITION "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/tills.shop.io"

static void test_definitions_come_first(void **state)
{
    (void)state;
    agent_world w = world_new();
    world_release(&w, "web", TILLS, OPTIONS);
    deployment_steps *s = begin(&w, "web");
    step last = world_run(&w, &s, "web", STEPS_RETRY_FIRST_MS);
    check_text(last.why, "a definition that is not established yet");
    assert_true(world_has(&w, DEFINITION));
    assert_false(world_has(&w, TILL));
    world_merge(
        &w, DEFINITION,
        STR("{\"status\":{\"conditions\":[{\"type\":\"Established\",\"status\":\"True\"}]}}"));
    world_run(&w, &s, "web", REST);
    assert_true(world_has(&w, TILL));
    check_status(&w, "ready", "true");
    /* Definitions are kept: with them all objects of their kinds would go. */
    world_drop(&w, WORLD_DEPLOYMENTS "/web");
    world_show(&w, s, "web");
    assert_int_equal(world_run(&w, &s, "web", REST).kind, STEP_FORGET);
    assert_true(world_has(&w, DEFINITION));
    assert_false(world_has(&w, TILL));
    steps_free(s);
    world_done(&w);
}

/* What somebody makes while a definition is waited for is not taken from him. */
static void test_made_meanwhile(void **state)
{
    (void)state;
    agent_world w = world_new();
    world_release(&w, "web", TILLS, OPTIONS);
    deployment_steps *s = begin(&w, "web");
    world_run(&w, &s, "web", STEPS_RETRY_FIRST_MS);
    world_put(&w, TILL,
              STR("{\"apiVersion\":\"shop.io/v1\",\"kind\":\"Till\",\"metadata\":{\"name\":\"t\","
                  "\"namespace\":\"shop\"},\"theirs\":true}"));
    world_merge(
        &w, DEFINITION,
        STR("{\"status\":{\"conditions\":[{\"type\":\"Established\",\"status\":\"True\"}]}}"));
    world_run(&w, &s, "web", 5000);
    assert_non_null(go_member(world_read(&w, TILL), STR("theirs")));
    check_has_at(condition_of(&w, "Deployed", "message"), STR("it exists and is not owned by us"),
                 __FILE__, __LINE__);
    steps_free(s);
    world_done(&w);
}

/* ---- charts ---- */

static void test_chart(void **state)
{
    (void)state;
    agent_world w = world_new();
    world_release(&w, "web", "ignored", CHART);
    deployment_steps *s = begin(&w, "web");
    world_run(&w, &s, "web", REST);
    check_text(str_of(w.log), "write inventory " RECORD "\n"
                              "install chart /helm/shop/front\n"
                              "write inventory " RECORD "\n"
                              "report " WORLD_DEPLOYMENTS "/web\n");
    check_status(&w, "ready", "true");
    check_status(&w, "release", "\"shop/front:1\"");
    check_has_at(world_status(&w, "web", "resources"), STR("of-chart"), __FILE__, __LINE__);
    /* A new agent finds the same. */
    steps_free(s);
    s = begin(&w, "web");
    unsigned writes = w.writes;
    world_run(&w, &s, "web", REST);
    assert_int_equal(w.writes, writes);
    /* It becomes plain manifests: the chart goes first. */
    w.log[0] = '\0';
    world_release(&w, "web", MAP("b", "one"), OPTIONS);
    world_show(&w, s, "web");
    world_run(&w, &s, "web", REST);
    check_text(str_of(w.log), "write inventory " RECORD "\n"
                              "remove chart /helm/shop/front\n"
                              "apply object " NAMESPACE "\n"
                              "apply object " SHOP "b\n"
                              "write inventory " RECORD "\n"
                              "report " WORLD_DEPLOYMENTS "/web\n");
    steps_free(s);
    world_done(&w);
}

/* The release of before goes when that of now is there; sooner if it is in its way. */
static void test_another_release(void **state)
{
    (void)state;
#define FRONT "/helm/shop/front"
#define KEPT ",\"keepResources\":true"
    static const struct {
        const char *before, *now, *log;
    } rows[] = {
        {CHART_AS("named", "front", "shop", ""), CHART_AS("named", "back", "shop", ""),
         "install chart /helm/shop/back\nremove chart " FRONT "\n"},
        {CHART_AS("web", "front", "shop", ""), CHART_AS("web", "front", "market", ""),
         "install chart /helm/market/front\nremove chart " FRONT "\n"},
        {CHART_AS("web", "front", "shop", ""), CHART_AS("web", "back", "shop", ""),
         "remove chart " FRONT "\ninstall chart /helm/shop/back\n"},
        {CHART_AS("web", "front", "shop", ""), CHART_TAKES,
         "remove chart " FRONT "\ninstall chart /helm/shop/back\n"},
        {CHART_AS("named", "front", "shop", KEPT), CHART_AS("named", "back", "shop", ""),
         "install chart /helm/shop/back\n"},
        {CHART_AS("named", "front", "shop", ""), CHART_AS("named", "back", "shop", KEPT),
         "install chart /helm/shop/back\nremove chart " FRONT "\n"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        agent_world w = world_new();
        world_release(&w, "web", "one", rows[i].before);
        deployment_steps *s = begin(&w, "web");
        world_run(&w, &s, "web", REST);
        assert_true(world_has(&w, FRONT));
        w.log[0] = '\0';
        world_release(&w, "web", "two", rows[i].now);
        world_show(&w, s, "web");
        world_run(&w, &s, "web", REST);
        str want = arena_printf(w.arena,
                                "write inventory " RECORD "\n%swrite inventory " RECORD
                                "\nreport " WORLD_DEPLOYMENTS "/web\n",
                                rows[i].log);
        check_text(str_of(w.log), want.ptr);
        check_status(&w, "ready", "true");
        check_status(&w, "nonModified", "true");
        /* A new agent has nothing to do, and with the deployment goes what it has now. */
        steps_free(s);
        s = begin(&w, "web");
        unsigned writes = w.writes;
        world_run(&w, &s, "web", REST);
        assert_int_equal(w.writes, writes);
        world_drop(&w, WORLD_DEPLOYMENTS "/web");
        world_show(&w, s, "web");
        assert_int_equal(world_run(&w, &s, "web", REST).kind, STEP_FORGET);
        assert_int_equal(world_has(&w, FRONT), i == 4);
        assert_int_equal(world_has(&w, "/helm/shop/back"), i == 5);
        steps_free(s);
        world_done(&w);
    }
}

/* Plain manifests become a chart that has some of their objects: helm takes those over, what it
 * does not have goes, and what is another's stays in its way. */
static void test_handed_over(void **state)
{
    (void)state;
    for (int foreign = 0; foreign < 2; foreign++) {
        agent_world w = world_new();
        world_release(&w, "web", MAP("b", "one") "---\n" MAP("of-chart", "one"), OPTIONS);
        deployment_steps *s = begin(&w, "web");
        world_run(&w, &s, "web", REST);
        str uid =
            object_text(go_member(world_read(&w, SHOP "of-chart"), STR("metadata")), STR("uid"));
        if (foreign)
            world_merge(&w, SHOP "of-chart",
                        STR("{\"metadata\":{\"labels\":{\"" LABEL_OWNER "\":\"other\"}}}"));
        w.log[0] = '\0';
        world_release(&w, "web", "ignored", CHART);
        world_show(&w, s, "web");
        world_run(&w, &s, "web", foreign ? 5000 : REST);
        if (foreign) {
            check_text(condition_of(&w, "Deployed", "message"),
                       "install chart: it exists and cannot be imported");
            assert_false(world_has(&w, "/helm/shop/front"));
            assert_true(world_has(&w, SHOP "b"));
        } else {
            check_text(str_of(w.log), "write inventory " RECORD "\n"
                                      "mark object " SHOP "b\n"
                                      "mark object " SHOP "of-chart\n"
                                      "install chart /helm/shop/front\n"
                                      "delete object " SHOP "b\n"
                                      "write inventory " RECORD "\n"
                                      "report " WORLD_DEPLOYMENTS "/web\n");
            check_status(&w, "ready", "true");
        }
        check_str(
            object_text(go_member(world_read(&w, SHOP "of-chart"), STR("metadata")), STR("uid")),
            uid);
        steps_free(s);
        world_done(&w);
    }
}

/* A name that helm would refuse is brought into one that it takes, as Fleet does. */
static void test_release_names(void **state)
{
    (void)state;
#define LONG "a-name-of-a-deployment-that-has-more-than-fifty-three-letters"
    static const char *const rows[][2] = {
        {LONG, "\"shop/a-name-of-a-deployment-that-has-more-than-fifty-f30ed:1\""},
        {"shop.example.com", "\"shop/shop-example-com-f40d9b2f:1\""}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        agent_world w = world_new();
        world_release(&w, rows[i][0], "ignored",
                      "\"options\":{\"defaultNamespace\":\"shop\",\"helm\":{\"chart\":\"web\","
                      "\"repo\":\"https://charts.example\"}}");
        deployment_steps *s = begin(&w, rows[i][0]);
        world_run(&w, &s, rows[i][0], REST);
        check_text(world_status(&w, rows[i][0], "release"), rows[i][1]);
        steps_free(s);
        world_done(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_install_update_uninstall),
        cmocka_unit_test(test_keep_resources),
        cmocka_unit_test(test_delete_namespace),
        cmocka_unit_test(test_held_back),
        cmocka_unit_test(test_foreign_objects_stay),
        cmocka_unit_test(test_namespace_is_not_pruned),
        cmocka_unit_test(test_kept_objects_stay),
        cmocka_unit_test(test_not_ready_then_ready),
        cmocka_unit_test(test_drift_is_told),
        cmocka_unit_test(test_drift_is_corrected),
        cmocka_unit_test(test_a_bad_manifest),
        cmocka_unit_test(test_refused_and_kinds_that_are_missing),
        cmocka_unit_test(test_unsupported),
        cmocka_unit_test(test_patience),
        cmocka_unit_test(test_unseen),
        cmocka_unit_test(test_wrong_diff),
        cmocka_unit_test(test_depends_on),
        cmocka_unit_test(test_wrong_dependencies),
        cmocka_unit_test(test_allowed_namespaces),
        cmocka_unit_test(test_definitions_come_first),
        cmocka_unit_test(test_made_meanwhile),
        cmocka_unit_test(test_chart),
        cmocka_unit_test(test_another_release),
        cmocka_unit_test(test_handed_over),
        cmocka_unit_test(test_release_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
