/* SPDX-License-Identifier: Apache-2.0 */
/* The way of a BundleDeployment into its cluster, with a hub and a cluster in memory: what is
 * written in which order, what is told, and that neither a kill after any write nor a fault at any
 * step changes where it ends. */
#include "support/agent_world.h"

#define SHOP "/api/v1/namespaces/shop/configmaps/"
#define NAMESPACE "/api/v1/namespaces/shop"
#define RECORD "/api/v1/namespaces/drover-system/configmaps/drover-web"
#define MAP(name, value)                                                                           \
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " name "}\ndata: {key: " value "}\n"
#define BOTH MAP("a", "one") "---\n" MAP("b", "one")
#define OPTIONS "\"options\":{\"defaultNamespace\":\"shop\"}"
#define REST STEPS_LOOK_MS / 2

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
    world_run(&w, &s, "web", 5000);
    check_text(condition_of(&w, "Deployed", "status"), "False");
    check_text(condition_of(&w, "Deployed", "message"),
               "ConfigMap shop/b: it exists and is not owned by us; helm.takeOwnership or "
               "overwrites takes it over");
    check_status(&w, "appliedDeploymentID", "");
    /* The inventory names b, but b does not carry the label: it outlives the deployment. */
    world_drop(&w, WORLD_DEPLOYMENTS "/web");
    world_show(&w, s, "web");
    assert_int_equal(world_run(&w, &s, "web", REST).kind, STEP_FORGET);
    assert_true(world_has(&w, SHOP "b"));
    assert_false(world_has(&w, SHOP "a"));
    steps_free(s);

    world_release(&w, "web", BOTH,
                  "\"options\":{\"defaultNamespace\":\"shop\",\"helm\":{\"takeOwnership\":true}}");
    s = begin(&w, "web");
    world_run(&w, &s, "web", REST);
    check_status(&w, "ready", "true");
    steps_free(s);
    world_done(&w);
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
        {"\"options\":{\"serviceAccount\":\"deployer\"}", "serviceAccount"},
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
            deployment_steps *other = begin(&w, "db");
            world_run(&w, &other, "db", REST);
            steps_free(other);
        }
        w.now_ms = next.due_ms;
    }
    assert_true(done);
    check_text(condition_of(&w, "Deployed", "status"), "True");
    steps_free(s);
    world_done(&w);
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

#define TILLS                                                                                      \
    "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n"                        \
    "metadata: {name: tills.shop.io}\nspec:\n  group: shop.io\n  scope: Namespaced\n"              \
    "  names: {kind: Till, plural: tills}\n  versions: [{name: v1, served: true}]\n"               \
    "---\napiVersion: shop.io/v1\nkind: Till\nmetadata: {name: t}\n"
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

/* ---- charts ---- */

#define CHART                                                                                      \
    "\"options\":{\"defaultNamespace\":\"shop\",\"deleteNamespace\":true,\"helm\":{"               \
    "\"chart\":\"web\",\"repo\":\"https://charts.example\",\"releaseName\":\"front\"}}"

static void test_chart(void **state)
{
    (void)state;
    agent_world w = world_new();
    world_release(&w, "web", "ignored", CHART);
    deployment_steps *s = begin(&w, "web");
    world_run(&w, &s, "web", REST);
    check_text(str_of(w.log), "write inventory " RECORD "\n"
                              "install chart \n"
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
                              "remove chart \n"
                              "apply object " NAMESPACE "\n"
                              "apply object " SHOP "b\n"
                              "write inventory " RECORD "\n"
                              "report " WORLD_DEPLOYMENTS "/web\n");
    steps_free(s);
    world_done(&w);
}

/* ---- kills and faults ---- */

/* A version after the other; one without a manifest is the end of the deployment. */
typedef struct version {
    const char *yaml, *options;
} version;

static const version plain[] = {
    {BOTH, OPTIONS}, {MAP("a", "two") "---\n" MAP("c", "one"), OPTIONS}, {NULL, NULL}};
static const version charts[] = {{TILLS "---\n" MAP("a", "one"), OPTIONS},
                                 {"ignored", CHART},
                                 {MAP("a", "two"), OPTIONS},
                                 {"ignored", CHART},
                                 {NULL, NULL}};

typedef struct faults {
    unsigned silent_write, bad_step;
    step_outcome outcome;
} faults;

typedef struct ending {
    char text[4096]; /* what is there at the end of each part */
    unsigned writes, steps;
} ending;

static ending story(const version *versions, faults with)
{
    agent_world w = world_new();
    w.silent_write = with.silent_write;
    w.bad_step = with.bad_step;
    w.bad_outcome = with.outcome;
    w.establishes = true;
    ending end = {.writes = 0};
    size_t len = 0, size = sizeof end.text;
    deployment_steps *s = steps_new(STR("web"));
    for (size_t i = 0; i == 0 || versions[i - 1].yaml; i++) {
        if (versions[i].yaml)
            world_release(&w, "web", versions[i].yaml, versions[i].options);
        else
            world_drop(&w, WORLD_DEPLOYMENTS "/web");
        world_show(&w, s, "web");
        step last = world_run(&w, &s, "web", REST);
        check_msg(last.kind == (versions[i].yaml ? STEP_WAIT : STEP_FORGET), "part %zu", i);
        for (size_t k = 0; k < w.objects.len; k++)
            if (w.objects.at[k].there && !strstr(w.objects.at[k].path, "contents/"))
                len += (size_t)snprintf(end.text + len, size - len, "%s;", w.objects.at[k].path);
        str key = object_text(go_member(world_read(&w, SHOP "a"), STR("data")), STR("key"));
        str applied = world_status(&w, "web", "appliedDeploymentID");
        len += (size_t)snprintf(end.text + len, size - len, "%.*s %.*s\n", STR_ARG(key),
                                STR_ARG(applied));
    }
    assert_true(len < size);
    end.writes = w.writes;
    end.steps = w.steps;
    steps_free(s);
    world_done(&w);
    return end;
}

static void check_ends(const version *versions, faults with, const ending *want)
{
    ending got = story(versions, with);
    check_msg(strcmp(want->text, got.text) == 0,
              "killed after write %u, outcome %d at step %u:\n%s\nexpected\n%s", with.silent_write,
              (int)with.outcome, with.bad_step, got.text, want->text);
}

static void kill_after_each_write(const version *versions)
{
    ending want = story(versions, (faults){0});
    assert_true(want.writes > 12);
    for (unsigned i = 1; i <= want.writes; i++)
        check_ends(versions, (faults){.silent_write = i}, &want);
}

static void fault_at_each_step(const version *versions)
{
    static const step_outcome outcomes[] = {OUTCOME_LATER, OUTCOME_REFUSED, OUTCOME_CONFLICT};
    ending want = story(versions, (faults){0});
    assert_true(want.steps > 30);
    for (size_t k = 0; k < COUNT_OF(outcomes); k++)
        for (unsigned i = 1; i <= want.steps; i++)
            check_ends(versions, (faults){.bad_step = i, .outcome = outcomes[k]}, &want);
}

static void test_kill_after_each_write(void **state)
{
    (void)state;
    kill_after_each_write(plain);
    kill_after_each_write(charts);
}

static void test_a_fault_at_each_step(void **state)
{
    (void)state;
    fault_at_each_step(plain);
    fault_at_each_step(charts);
}

/* Two agents on one cluster: whoever comes second finds the inventory changed and begins anew. */
static void test_two_agents(void **state)
{
    (void)state;
    agent_world w = world_new();
    world_release(&w, "web", BOTH, OPTIONS);
    deployment_steps *both[2] = {begin(&w, "web"), begin(&w, "web")};
    rng r = rng_seeded();
    int resting = 0;
    for (int i = 0; i < 2000 && resting < 40; i++) {
        deployment_steps *s = both[rng_below(&r, 2)];
        steps_world facts = world_facts(&w);
        step next = steps_next(s, &facts);
        if (next.kind == STEP_WAIT) {
            resting++;
            w.now_ms += 500;
            continue;
        }
        bool killed;
        step_answer answer = world_do(&w, &next, &killed);
        steps_answer(s, &facts, &answer);
        if (next.kind == STEP_REPORT) {
            world_show(&w, both[0], "web");
            world_show(&w, both[1], "web");
        }
    }
    check_status(&w, "ready", "true");
    assert_true(world_has(&w, SHOP "a") && world_has(&w, SHOP "b"));
    steps_free(both[0]);
    steps_free(both[1]);
    world_done(&w);
}

/* One allocation of the agent fails, counted over all its steps. */
typedef struct shortage {
    uint64_t left; /* until then */
    uint64_t before;
    bool happened;
} shortage;

static void shortage_begin(shortage *m)
{
    m->before = mem_calls();
    mem_fail_at(m->happened ? 0 : m->left);
}

static void shortage_end(shortage *m)
{
    if (!m->happened && mem_failed())
        m->happened = true;
    else if (!m->happened)
        m->left -= mem_calls() - m->before;
    mem_fail_at(0);
}

static bool runs_short(uint64_t nth)
{
    agent_world w = world_new();
    shortage m = {.left = nth};
    world_release(&w, "web", BOTH, OPTIONS);
    deployment_steps *s = begin(&w, "web");
    for (int i = 0; i < 400; i++) {
        steps_world facts = world_facts(&w);
        shortage_begin(&m);
        step next = steps_next(s, &facts);
        shortage_end(&m);
        if (next.kind == STEP_WAIT) {
            if (next.due_ms - w.now_ms >= REST)
                break;
            w.now_ms = next.due_ms > w.now_ms ? next.due_ms : w.now_ms + 1;
            continue;
        }
        bool killed;
        step_answer answer = world_do(&w, &next, &killed);
        shortage_begin(&m);
        steps_answer(s, &facts, &answer);
        shortage_end(&m);
        if (next.kind == STEP_REPORT)
            world_show(&w, s, "web");
    }
    check_msg(str_eq(world_status(&w, "web", "ready"), STR("true")), "allocation %llu",
              (unsigned long long)nth);
    assert_true(world_has(&w, SHOP "a") && world_has(&w, SHOP "b"));
    steps_free(s);
    world_done(&w);
    return m.happened;
}

/* Whichever it is, the agent rests a while and comes to the same end. */
static void test_memory(void **state)
{
    (void)state;
    int64_t live = mem_live();
    uint64_t nth = 1;
    while (runs_short(nth))
        nth++;
    assert_true(nth > 100);
    assert_int_equal(mem_live(), live);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_install_update_uninstall),
        cmocka_unit_test(test_keep_resources),
        cmocka_unit_test(test_delete_namespace),
        cmocka_unit_test(test_held_back),
        cmocka_unit_test(test_foreign_objects_stay),
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
        cmocka_unit_test(test_allowed_namespaces),
        cmocka_unit_test(test_definitions_come_first),
        cmocka_unit_test(test_chart),
        cmocka_unit_test(test_kill_after_each_write),
        cmocka_unit_test(test_a_fault_at_each_step),
        cmocka_unit_test(test_two_agents),
        cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
