/* SPDX-License-Identifier: Apache-2.0 */
/* The agent of a cluster between two API servers that are made up: what reaches the cluster, what
 * the hub is told, and that neither a kill after any write nor servers that are away change the
 * end. */
#include "support/check.h"

#include "engine/fleet_names.h"
#include "model/document.h"
#include "operator/bundle_objects.h"
#include "support/fake_agent.h"

#define MINUTE_MS INT64_C(60000)
#define DEPLOYMENTS "/apis/apps/v1/namespaces/shop/deployments"
#define MAPS "/api/v1/namespaces/shop/configmaps"
#define INVENTORIES "/api/v1/namespaces/drover-system/configmaps"

/* ---- what the hub deploys ---- */

#define check_contains(text, part) check_has_at((text), str_of(part), __FILE__, __LINE__)
#define FILE_OF(name, content) "{\"name\":\"" name "\",\"content\":\"" content "\"}"
#define WEB(version)                                                                               \
    FILE_OF("web.yaml",                                                                            \
            "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: "                \
            "{replicas: 1, template: {metadata: {annotations: {version: \\\"" version "\\\"}}}}}")
#define MAP(name, version)                                                                         \
    FILE_OF(name ".yaml", "{apiVersion: v1, kind: ConfigMap, metadata: {name: " name               \
                          "}, data: {version: \\\"" version "\\\"}}")
#define CHART                                                                                      \
    FILE_OF("Chart.yaml", "{name: web, version: 1.0.0}")                                           \
    "," FILE_OF("templates/web.yaml", "{{ .Values.x }}")

static void make_content(fake *f, const char *resources, char ret_name[FAKE_NAME_BYTES])
{
    buf text = BUF(1u << 20);
    err error = {0};
    arena *a = arena_new(0);
    char list[8192];
    snprintf(list, sizeof list, "[%s]", resources);
    check_msg(content_put(&text, json_parse(a, str_of(list), &error), &error), "%s", error.text);
    yyjson_doc *doc = yyjson_read(text.ptr, text.len, 0);
    const char *name = yyjson_get_str(yyjson_doc_ptr_get(doc, "/metadata/name"));
    snprintf(ret_name, FAKE_NAME_BYTES, "%s", name ? name : "");
    if (!fake_find(f, AGENT_HUB, FAKE_CONTENTS, ret_name))
        fake_create(f, AGENT_HUB, FAKE_CONTENTS, yyjson_doc_get_root(doc));
    yyjson_doc_free(doc);
    arena_free(a);
    buf_done(&text);
}

/* options: further members of spec.options. */
static void deploy_with(fake *f, const char *name, const char *resources, const char *options)
{
    char content[FAKE_NAME_BYTES], text[4096];
    make_content(f, resources, content);
    snprintf(text, sizeof text,
             "{\"apiVersion\":\"fleet.cattle.io/v1alpha1\",\"kind\":\"BundleDeployment\","
             "\"metadata\":{\"name\":\"%s\",\"namespace\":\"home\",\"labels\":{"
             "\"fleet.cattle.io/bundle-name\":\"%s\"}},"
             "\"spec\":{\"deploymentID\":\"%s:x\",\"stagedDeploymentID\":\"%s:x\","
             "\"options\":{\"defaultNamespace\":\"shop\"%s}}}",
             name, name, content, content, options);
    fake_object *o = fake_find(f, AGENT_HUB, FAKE_HOME, name);
    if (o)
        fake_merge_text(f, o, text);
    else
        fake_create_text(f, AGENT_HUB, FAKE_HOME, text);
}

static void deploy(fake *f, const char *name, const char *resources)
{
    deploy_with(f, name, resources, "");
}

static void withdraw(fake *f, const char *name)
{
    fake_remove(f, fake_find(f, AGENT_HUB, FAKE_HOME, name));
}

/* ---- what is found ---- */

static const char *web_version(fake *f)
{
    return fake_text(f, AGENT_OWN, DEPLOYMENTS, "web",
                     "/spec/template/metadata/annotations/version");
}

static bool is_there(fake *f, const char *collection, const char *name)
{
    return fake_find(f, AGENT_OWN, collection, name);
}

static const char *condition_message(fake *f, const char *name, const char *type)
{
    yyjson_val *list = fake_get(f, AGENT_HUB, FAKE_HOME, name, "/status/conditions"), *one;
    size_t i, max;
    yyjson_arr_foreach(list, i, max, one)
    {
        const char *message = yyjson_get_str(yyjson_obj_get(one, "message"));
        if (yyjson_equals_str(yyjson_obj_get(one, "type"), type))
            return message ? message : "";
    }
    return "";
}

/* The live version was applied. */
static bool is_applied(fake *f, const char *name)
{
    const char *live = fake_text(f, AGENT_HUB, FAKE_HOME, name, "/spec/deploymentID");
    return strcmp(fake_text(f, AGENT_HUB, FAKE_HOME, name, "/status/appliedDeploymentID"), live) ==
           0;
}

static bool is_told(fake *f, const char *name, const char *member)
{
    char pointer[64];
    snprintf(pointer, sizeof pointer, "/status/%s", member);
    return yyjson_get_bool(fake_get(f, AGENT_HUB, FAKE_HOME, name, pointer));
}

static void check_ready(fake *f, const char *name)
{
    check_msg(is_applied(f, name), "%s is not applied: %s", name,
              condition_message(f, name, "Deployed"));
    check_msg(is_told(f, name, "ready"), "%s is not ready: %s", name,
              condition_message(f, name, "Ready"));
    check_msg(is_told(f, name, "nonModified"), "%s is modified", name);
}

/* ---- tests ---- */

static void test_deploys(void **state)
{
    (void)state;
    fake f;
    fake_open(&f);
    deploy(&f, "app", WEB("1") "," MAP("settings", "1"));
    fake_start(&f);
    fake_run(&f, MINUTE_MS);
    check_ready(&f, "app");
    scoped(buf_done) buf metrics = BUF(1u << 16);
    agent_shell_metrics(f.shell, &metrics);
    check_contains(buf_str(&metrics), "\ndrover_cluster_agent_deployments 1\n");
    check_contains(buf_str(&metrics), "\ndrover_cluster_agent_hub_known 1\n");
    assert_string_equal(web_version(&f), "1");
    assert_string_equal(
        fake_text(&f, AGENT_OWN, DEPLOYMENTS, "web", "/metadata/labels/drover.dev~1deployment"),
        "app");
    assert_string_equal(fake_text(&f, AGENT_OWN, MAPS, "settings", "/data/version"), "1");
    assert_true(strlen(fake_text(&f, AGENT_HUB, FAKE_CLUSTERS, "east", "/status/agent/lastSeen")));
    assert_string_equal(fake_text(&f, AGENT_HUB, FAKE_CLUSTERS, "east", "/status/agent/namespace"),
                        "drover-system");
    fake_close(&f);
}

/* Nobody asks for anything while nothing happens. */
static void test_rests(void **state)
{
    (void)state;
    fake f;
    fake_open(&f);
    deploy(&f, "app", WEB("1"));
    fake_start(&f);
    fake_run(&f, MINUTE_MS);
    check_ready(&f, "app");
    uint64_t before = f.requests;
    fake_run(&f, 9 * MINUTE_MS);
    assert_int_equal(f.requests, before);
    fake_run(&f, 10 * MINUTE_MS);
    assert_int_equal(f.requests, before + 1); /* a sign of life */
    fake_close(&f);
}

static void test_updates_and_prunes(void **state)
{
    (void)state;
    fake f;
    fake_open(&f);
    deploy(&f, "app", WEB("1") "," MAP("settings", "1"));
    deploy(&f, "other", MAP("theirs", "1"));
    fake_start(&f);
    fake_run(&f, MINUTE_MS);
    deploy(&f, "app", WEB("2"));
    fake_run(&f, MINUTE_MS);
    check_ready(&f, "app");
    assert_string_equal(web_version(&f), "2");
    assert_false(is_there(&f, MAPS, "settings"));
    assert_true(is_there(&f, MAPS, "theirs"));
    withdraw(&f, "app");
    fake_run(&f, MINUTE_MS);
    assert_false(is_there(&f, DEPLOYMENTS, "web"));
    assert_true(is_there(&f, MAPS, "theirs"));
    check_ready(&f, "other");
    fake_close(&f);
}

/* Not ready before its pods are, and not when they fail later. */
/* A clock that is put right by a day while it works changes what is told, and not when. */
static void test_clock_is_set(void **state)
{
    (void)state;
    static const int64_t wrong[] = {24 * 3600, 0, -24 * 3600, 0};
    fake f;
    fake_open(&f);
    f.wrong_s = wrong[0];
    deploy(&f, "app", WEB("1"));
    fake_start(&f);
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        moment told;
        f.wrong_s = wrong[i];
        fake_run(&f, 16 * MINUTE_MS);
        assert_true(moment_parse(
            str_of(fake_text(&f, AGENT_HUB, FAKE_CLUSTERS, "east", "/status/agent/lastSeen")),
            &told, NULL));
        int64_t age_s = f.now_ms / 1000 + wrong[i] - told.seconds;
        check_msg(age_s >= 0 && age_s <= 15 * 60, "a sign of life %lld s ago", (long long)age_s);
        deploy(&f, "app", i % 2 == 0 ? WEB("2") : WEB("1"));
        fake_run(&f, MINUTE_MS);
        check_ready(&f, "app");
    }
    fake_close(&f);
}

static bool is_followed(const fake *f, const char *path)
{
    for (size_t i = 0; i < FAKE_KINDS_MAX; i++)
        if (f->followed[i].kind && strcmp(f->followed[i].path, path) == 0)
            return true;
    return false;
}

/* A kind of which nothing is left is watched for a while, and on if something of it comes just
 * before that is over: also if the watch tells of it late. */
static void test_kinds_are_left(void **state)
{
    (void)state;
    fake f;
    fake_open(&f);
    fake_start(&f);
    deploy(&f, "app", MAP("a", "1"));
    fake_run(&f, MINUTE_MS);
    assert_true(is_followed(&f, "/api/v1/configmaps"));
    withdraw(&f, "app");
    fake_run(&f, AGENT_KIND_IDLE_MS - 500);
    assert_true(is_followed(&f, "/api/v1/configmaps"));
    f.silent = true;
    deploy(&f, "app", MAP("a", "2"));
    fake_run(&f, 2000);
    assert_true(is_there(&f, MAPS, "a"));
    assert_true(is_followed(&f, "/api/v1/configmaps"));
    f.silent = false;
    withdraw(&f, "app");
    fake_run(&f, 3 * AGENT_KIND_IDLE_MS);
    assert_false(is_followed(&f, "/api/v1/configmaps"));
    fake_close(&f);
}

/* Whatever a deployment is called, what the agent remembers of it is nobody else's. */
static void test_names(void **state)
{
    (void)state;
    static const char *const names[] = {
        "hub", "cluster-agent-hub", "a.b",
        "a-name-that-is-longer-than-what-a-label-and-a-config-map-may-be-called"};
    fake f;
    fake_open(&f);
    fake_start(&f);
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        char files[512];
        snprintf(files, sizeof files,
                 FILE_OF("a.yaml", "{apiVersion: v1, kind: ConfigMap, metadata: {name: m%zu}}"), i);
        deploy(&f, names[i], files);
        fake_run(&f, MINUTE_MS);
        check_ready(&f, names[i]);
    }
    fake_close(&f);
}

static void test_readiness_follows(void **state)
{
    (void)state;
    fake f;
    fake_open(&f);
    f.unready = true;
    deploy(&f, "app", WEB("1"));
    fake_start(&f);
    fake_run(&f, MINUTE_MS);
    assert_true(is_applied(&f, "app"));
    assert_false(is_told(&f, "app", "ready"));
    f.unready = false;
    fake_object *o = fake_find(&f, AGENT_OWN, DEPLOYMENTS, "web");
    fake_merge_text(&f, o, "{\"status\":{\"availableReplicas\":1}}");
    fake_run(&f, MINUTE_MS);
    check_ready(&f, "app");
    o = fake_find(&f, AGENT_OWN, DEPLOYMENTS, "web");
    fake_merge_text(&f, o, "{\"status\":{\"availableReplicas\":0}}");
    fake_run(&f, MINUTE_MS);
    assert_false(is_told(&f, "app", "ready"));
    fake_close(&f);
}

static void test_refused(void **state)
{
    (void)state;
    fake f;
    fake_open(&f);
    deploy(&f, "app", WEB("1") "," MAP("settings", "1"));
    fake_start(&f);
    fake_run(&f, MINUTE_MS);
    f.refused = "settings";
    deploy(&f, "app", WEB("2") "," MAP("settings", "2"));
    fake_run(&f, MINUTE_MS);
    assert_false(is_told(&f, "app", "ready"));
    check_contains(str_of(condition_message(&f, "app", "Installed")), "settings");
    f.refused = NULL;
    deploy(&f, "app", WEB("3") "," MAP("settings", "3"));
    fake_run(&f, MINUTE_MS);
    check_ready(&f, "app");
    fake_close(&f);
}

static void test_drift(void **state)
{
    (void)state;
    fake f;
    fake_open(&f);
    deploy(&f, "app", MAP("settings", "1"));
    fake_start(&f);
    fake_run(&f, MINUTE_MS);
    fake_remove(&f, fake_find(&f, AGENT_OWN, MAPS, "settings"));
    fake_run(&f, MINUTE_MS);
    assert_false(is_told(&f, "app", "nonModified"));
    fake_merge_text(&f, fake_find(&f, AGENT_HUB, FAKE_HOME, "app"),
                    "{\"spec\":{\"correctDrift\":{\"enabled\":true}}}");
    fake_run(&f, MINUTE_MS);
    assert_true(is_there(&f, MAPS, "settings"));
    check_ready(&f, "app");
    fake_close(&f);
}

static void test_hub_away(void **state)
{
    (void)state;
    fake f;
    fake_open(&f);
    deploy(&f, "app", WEB("1"));
    fake_start(&f);
    fake_run(&f, MINUTE_MS);
    f.away[AGENT_HUB] = true;
    fake_object *o = fake_find(&f, AGENT_OWN, DEPLOYMENTS, "web");
    fake_merge_text(&f, o, "{\"status\":{\"availableReplicas\":0}}");
    fake_run(&f, 10 * MINUTE_MS);
    assert_true(is_told(&f, "app", "ready")); /* as it knew last */
    f.away[AGENT_HUB] = false;
    fake_run(&f, 10 * MINUTE_MS);
    assert_false(is_told(&f, "app", "ready"));
    assert_true(is_there(&f, DEPLOYMENTS, "web"));
    fake_close(&f);
}

/* An agent that begins without its hub removes nothing. */
static void test_begins_without_hub(void **state)
{
    (void)state;
    fake f;
    fake_open(&f);
    deploy(&f, "app", WEB("1"));
    fake_start(&f);
    fake_run(&f, MINUTE_MS);
    fake_stop(&f);
    f.away[AGENT_HUB] = true;
    fake_start(&f);
    fake_run(&f, 10 * MINUTE_MS);
    assert_true(is_there(&f, DEPLOYMENTS, "web"));
    fake_close(&f);
}

static void test_cluster_away(void **state)
{
    (void)state;
    fake f;
    fake_open(&f);
    deploy(&f, "app", WEB("1"));
    fake_start(&f);
    fake_run(&f, MINUTE_MS);
    f.away[AGENT_OWN] = true;
    deploy(&f, "app", WEB("2"));
    fake_run(&f, 2 * MINUTE_MS);
    assert_false(is_applied(&f, "app"));
    check_contains(str_of(condition_message(&f, "app", "Deployed")), "away");
    f.away[AGENT_OWN] = false;
    fake_run(&f, 10 * MINUTE_MS);
    check_ready(&f, "app");
    assert_string_equal(web_version(&f), "2");
    fake_close(&f);
}

/* What is in the cluster stays deployed, however long nobody can look at it. */
static void test_cluster_away_for_long(void **state)
{
    (void)state;
    fake f;
    fake_open(&f);
    f.unready = true;
    deploy(&f, "app", WEB("1"));
    fake_start(&f);
    fake_run(&f, MINUTE_MS);
    assert_true(is_applied(&f, "app"));
    f.away[AGENT_OWN] = true;
    fake_run(&f, 30 * MINUTE_MS);
    check_text(str_of(condition_message(&f, "app", "Deployed")), "");
    check_contains(str_of(condition_message(&f, "app", "Monitored")), "away");
    f.away[AGENT_OWN] = false;
    fake_run(&f, 10 * MINUTE_MS);
    check_text(str_of(condition_message(&f, "app", "Monitored")), "");
    fake_close(&f);
}

static void test_gone_while_away(void **state)
{
    (void)state;
    fake f;
    fake_open(&f);
    deploy(&f, "app", WEB("1") "," MAP("settings", "1"));
    fake_start(&f);
    fake_run(&f, MINUTE_MS);
    fake_stop(&f);
    fake_create_text(&f, AGENT_OWN, MAPS,
                     "{\"metadata\":{\"name\":\"foreign\",\"namespace\":\"shop\"}}");
    withdraw(&f, "app");
    fake_start(&f);
    fake_run(&f, MINUTE_MS);
    assert_false(is_there(&f, DEPLOYMENTS, "web"));
    assert_false(is_there(&f, MAPS, "settings"));
    assert_true(is_there(&f, MAPS, "foreign"));
    for (size_t i = 0; i < f.count; i++)
        check_msg(strcmp(f.objects[i].collection, INVENTORIES) != 0 ||
                      strcmp(f.objects[i].name, AGENT_RECORD) == 0,
                  "%s is left", f.objects[i].name);
    fake_close(&f);
}

/* ---- whose cluster it is ---- */

/* Deploys as it should be, ends, and begins again with other settings, where it finds nothing. */
static void begin_elsewhere(fake *f, const agent_shell_settings *other)
{
    deploy(f, "app", WEB("1") "," MAP("settings", "1"));
    fake_start(f);
    fake_run(f, MINUTE_MS);
    check_ready(f, "app");
    assert_string_equal(fake_text(f, AGENT_OWN, INVENTORIES, AGENT_RECORD, "/data/deployments"),
                        "home");
    fake_stop(f);
    withdraw(f, "app");
    f->settings = *other;
    fake_start(f);
    fake_run(f, 10 * MINUTE_MS);
}

/* Nothing was done by an agent that is not sure of its hub. */
static void check_untouched(fake *f, const char *trouble)
{
    assert_true(is_there(f, DEPLOYMENTS, "web"));
    assert_true(is_there(f, MAPS, "settings"));
    assert_false(agent_shell_ready(f->shell));
    check_contains(str_of(agent_shell_trouble(f->shell)), trouble);
    scoped(buf_done) buf metrics = BUF(1u << 16);
    agent_shell_metrics(f->shell, &metrics);
    check_contains(buf_str(&metrics), "\ndrover_cluster_agent_hub_known 0\n");
}

static void test_wrong_namespace(void **state)
{
    (void)state;
    fake f;
    fake_open(&f);
    agent_shell_settings other = f.settings;
    other.home = STR("nowhere");
    begin_elsewhere(&f, &other);
    check_untouched(&f, "in the namespace \"home\", but \"nowhere\" is watched");
    fake_close(&f);
}

static void test_no_cluster_on_the_hub(void **state)
{
    (void)state;
    fake f;
    fake_open(&f);
    agent_shell_settings other = f.settings;
    other.cluster = STR("nobody");
    begin_elsewhere(&f, &other);
    check_untouched(&f, "the hub does not take the sign of life of Cluster fleet-default/nobody");
    fake_create_text(&f, AGENT_HUB, FAKE_CLUSTERS,
                     "{\"metadata\":{\"name\":\"nobody\",\"namespace\":\"fleet-default\"},"
                     "\"status\":{\"namespace\":\"home\"}}");
    fake_run(&f, 10 * MINUTE_MS);
    check_untouched(&f, "Cluster was \"east\" and is \"nobody\"");
    fake_close(&f);
}

/* The hub was made anew and has nothing yet. A person may say that this is meant. */
static void test_another_hub(void **state)
{
    (void)state;
    fake f;
    fake_open(&f);
    agent_shell_settings same = f.settings;
    deploy(&f, "app", WEB("1") "," MAP("settings", "1"));
    fake_start(&f);
    fake_run(&f, MINUTE_MS);
    fake_stop(&f);
    withdraw(&f, "app");
    fake_remove(&f, fake_find(&f, AGENT_HUB, FAKE_CLUSTERS, "east"));
    fake_create_text(&f, AGENT_HUB, FAKE_CLUSTERS,
                     "{\"metadata\":{\"name\":\"east\",\"namespace\":\"fleet-default\"},"
                     "\"status\":{\"namespace\":\"home\"}}");
    f.settings = same;
    fake_start(&f);
    fake_run(&f, 10 * MINUTE_MS);
    check_untouched(&f, "uid");
    fake_remove(&f, fake_find(&f, AGENT_OWN, INVENTORIES, AGENT_RECORD));
    fake_run(&f, MINUTE_MS);
    assert_true(agent_shell_ready(f.shell));
    assert_false(is_there(&f, DEPLOYMENTS, "web"));
    fake_close(&f);
}

/* A Cluster that is made anew under a running agent stays its own, also after a restart. */
static void test_cluster_made_anew(void **state)
{
    (void)state;
    fake f;
    fake_open(&f);
    deploy(&f, "app", WEB("1"));
    fake_start(&f);
    fake_run(&f, MINUTE_MS);
    fake_remove(&f, fake_find(&f, AGENT_HUB, FAKE_CLUSTERS, "east"));
    fake_create_text(&f, AGENT_HUB, FAKE_CLUSTERS,
                     "{\"metadata\":{\"name\":\"east\",\"namespace\":\"fleet-default\"},"
                     "\"status\":{\"namespace\":\"home\"}}");
    fake_run(&f, 30 * MINUTE_MS);
    fake_stop(&f);
    fake_start(&f);
    deploy(&f, "app", WEB("2"));
    fake_run(&f, MINUTE_MS);
    check_ready(&f, "app");
    assert_string_equal(web_version(&f), "2");
    fake_close(&f);
}

static void add_cluster(fake *f)
{
    fake_create_text(f, AGENT_HUB, FAKE_CLUSTERS,
                     "{\"metadata\":{\"name\":\"east\",\"namespace\":\"fleet-default\"},"
                     "\"status\":{\"namespace\":\"home\"}}");
}

/* Deployments that go because their Cluster goes leave everything where it is. One that is made
 * anew is obeyed when they are back, or when a person says so. */
static void test_cluster_deleted(void **state)
{
    (void)state;
    for (int meant = 0; meant < 2; meant++) {
        fake f;
        char uid[FAKE_NAME_BYTES];
        fake_open(&f);
        deploy(&f, "app", WEB("1") "," MAP("settings", "1"));
        fake_start(&f);
        fake_run(&f, MINUTE_MS);
        check_ready(&f, "app");
        snprintf(uid, sizeof uid, "%s",
                 fake_text(&f, AGENT_OWN, DEPLOYMENTS, "web", "/metadata/uid"));
        fake_remove(&f, fake_find(&f, AGENT_HUB, FAKE_CLUSTERS, "east"));
        withdraw(&f, "app");
        fake_run(&f, 40 * MINUTE_MS);
        check_untouched(&f, "the hub does not take the sign of life of Cluster fleet-default/east");
        add_cluster(&f);
        fake_run(&f, 40 * MINUTE_MS);
        check_untouched(&f, "uid");
        if (meant)
            fake_remove(&f, fake_find(&f, AGENT_OWN, INVENTORIES, AGENT_RECORD));
        else
            deploy(&f, "app", WEB("2"));
        fake_run(&f, MINUTE_MS);
        assert_true(agent_shell_ready(f.shell));
        if (meant) {
            assert_false(is_there(&f, DEPLOYMENTS, "web"));
        } else {
            check_ready(&f, "app");
            assert_string_equal(web_version(&f), "2");
            assert_string_equal(fake_text(&f, AGENT_OWN, DEPLOYMENTS, "web", "/metadata/uid"), uid);
            withdraw(&f, "app"); /* from here on all is as ever */
            fake_run(&f, MINUTE_MS);
            assert_false(is_there(&f, DEPLOYMENTS, "web"));
        }
        fake_close(&f);
    }
}

/* It is the same while a finalizer still holds the Cluster. */
static void test_cluster_terminates(void **state)
{
    (void)state;
    fake f;
    fake_open(&f);
    deploy(&f, "app", WEB("1") "," MAP("settings", "1"));
    fake_start(&f);
    fake_run(&f, MINUTE_MS);
    fake_merge_text(&f, fake_find(&f, AGENT_HUB, FAKE_CLUSTERS, "east"),
                    "{\"metadata\":{\"deletionTimestamp\":\"2026-01-01T00:00:00Z\"}}");
    withdraw(&f, "app");
    fake_run(&f, 10 * MINUTE_MS);
    check_untouched(&f, "Cluster fleet-default/east is being deleted on the hub");
    fake_close(&f);
}

/* The hub may say later than its agent comes where the deployments are. */
static void test_namespace_told_late(void **state)
{
    (void)state;
    fake f;
    fake_open(&f);
    fake_object *o = fake_find(&f, AGENT_HUB, FAKE_CLUSTERS, "east");
    fake_merge_text(&f, o, "{\"status\":{\"namespace\":null}}");
    deploy(&f, "app", WEB("1"));
    fake_start(&f);
    fake_run(&f, MINUTE_MS);
    assert_false(is_there(&f, DEPLOYMENTS, "web"));
    o = fake_find(&f, AGENT_HUB, FAKE_CLUSTERS, "east");
    fake_merge_text(&f, o, "{\"status\":{\"namespace\":\"home\"}}");
    fake_run(&f, MINUTE_MS);
    check_ready(&f, "app");
    fake_close(&f);
}

/* Contents are unpacked one after the other, whatever becomes of each. */
static void test_one_unpacks(void **state)
{
    (void)state;
    fake f;
    fake_open(&f);
    f.helm = "";
    deploy(&f, "a", WEB("1"));
    deploy(&f, "b", FILE_OF("a.yaml", "{apiVersion: shop.io/v1, kind: Till, metadata: {name: t}}"));
    deploy(&f, "c", FILE_OF("a.yaml", "{no: object}"));
    deploy_with(&f, "d", CHART,
                ",\"helm\":{\"valuesFrom\":[{\"configMapKeyRef\":{\"name\":\"settings\"}}]}");
    deploy(&f, "e", MAP("settings", "1"));
    fake_create_text(&f, AGENT_HUB, FAKE_HOME,
                     "{\"metadata\":{\"name\":\"f\",\"namespace\":\"home\"},\"spec\":{"
                     "\"deploymentID\":\"s-none:x\",\"options\":{}}}");
    fake_start(&f);
    fake_run(&f, 3 * MINUTE_MS);
    check_ready(&f, "a");
    check_ready(&f, "e");
    check_contains(str_of(condition_message(&f, "b", "Deployed")), "the cluster has no kind Till");
    check_contains(str_of(condition_message(&f, "c", "Installed")), "without kind");
    check_contains(str_of(condition_message(&f, "d", "Deployed")), "settings has no");
    assert_int_equal(f.unpacking_most, 1);
    withdraw(&f, "d");
    deploy(&f, "b", MAP("other", "1"));
    fake_run(&f, 3 * MINUTE_MS);
    check_ready(&f, "b");
    assert_int_equal(f.unpacking_most, 1);
    fake_close(&f);
}

/* Who left while its Content was under way keeps nobody from another, however long it takes until
 * it is known to be gone. */
static void test_left_unpacks_no_more(void **state)
{
    (void)state;
    fake f;
    fake_open(&f);
    deploy(&f, "a", MAP("one", "1"));
    fake_start(&f);
    while (f.unpacking == 0) {
        if (f.message_at < f.messages.len)
            fake_deliver(&f);
        else
            assert_true(agent_shell_turn(f.shell));
    }
    withdraw(&f, "a");
    f.deaf = true;
    deploy(&f, "b", MAP("other", "1"));
    fake_run(&f, 3 * MINUTE_MS);
    check_ready(&f, "b");
    f.deaf = false;
    fake_run(&f, 3 * MINUTE_MS);
    assert_int_equal(f.unpacking_most, 1);
    fake_close(&f);
}

static void test_charts(void **state)
{
    (void)state;
    fake f;
    fake_open(&f);
    deploy(&f, "chart", CHART);
    fake_start(&f);
    fake_run(&f, MINUTE_MS);
    check_contains(str_of(condition_message(&f, "chart", "Deployed")), "there is no helm");
    f.helm = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: made, namespace: shop}\n";
    fake_create_text(&f, AGENT_OWN, MAPS,
                     "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\","
                     "\"metadata\":{\"name\":\"made\",\"namespace\":\"shop\"}}");
    fake_run(&f, 10 * MINUTE_MS);
    check_ready(&f, "chart");
    assert_int_equal(f.installs, 1);
    withdraw(&f, "chart");
    fake_run(&f, MINUTE_MS);
    assert_int_equal(f.removals, 1);
    fake_close(&f);
}

/* ---- killed after every write ---- */

/* Runs on, as often as it is killed. */
static void run_lives(fake *f, int64_t ms)
{
    while (!fake_run(f, ms)) {
        f->kill_at = 0;
        fake_stop(f);
        fake_start(f);
    }
}

/* A whole life: returns the writes it took. */
static uint64_t live(uint64_t kill_at)
{
    fake f;
    fake_open(&f);
    f.kill_at = kill_at;
    deploy(&f, "app", WEB("1") "," MAP("settings", "1"));
    deploy(&f, "other", MAP("theirs", "1"));
    f.writes = 0;
    fake_start(&f);
    run_lives(&f, 3 * MINUTE_MS);
    check_ready(&f, "app");
    deploy(&f, "app", WEB("2") "," MAP("more", "2"));
    run_lives(&f, 3 * MINUTE_MS);
    check_ready(&f, "app");
    check_ready(&f, "other");
    assert_string_equal(web_version(&f), "2");
    assert_false(is_there(&f, MAPS, "settings"));
    assert_true(is_there(&f, MAPS, "more"));
    withdraw(&f, "app");
    run_lives(&f, 3 * MINUTE_MS);
    assert_false(is_there(&f, DEPLOYMENTS, "web"));
    assert_false(is_there(&f, MAPS, "more"));
    assert_true(is_there(&f, MAPS, "theirs"));
    uint64_t writes = f.writes, requests = f.requests;
    fake_run(&f, 5 * MINUTE_MS);
    check_msg(f.requests == requests, "killed after %llu: it does not rest",
              (unsigned long long)kill_at);
    check_msg(kill_at == 0 || f.kill_at == 0, "%llu writes are never made",
              (unsigned long long)kill_at);
    fake_close(&f);
    return writes;
}

static void test_killed_after_every_write(void **state)
{
    (void)state;
    uint64_t writes = live(0);
    print_message("%llu writes\n", (unsigned long long)writes);
    for (uint64_t at = 1; at <= writes; at++)
        live(at);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_deploys),
        cmocka_unit_test(test_rests),
        cmocka_unit_test(test_updates_and_prunes),
        cmocka_unit_test(test_clock_is_set),
        cmocka_unit_test(test_kinds_are_left),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_readiness_follows),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_drift),
        cmocka_unit_test(test_hub_away),
        cmocka_unit_test(test_begins_without_hub),
        cmocka_unit_test(test_cluster_away),
        cmocka_unit_test(test_cluster_away_for_long),
        cmocka_unit_test(test_gone_while_away),
        cmocka_unit_test(test_wrong_namespace),
        cmocka_unit_test(test_no_cluster_on_the_hub),
        cmocka_unit_test(test_another_hub),
        cmocka_unit_test(test_cluster_made_anew),
        cmocka_unit_test(test_cluster_deleted),
        cmocka_unit_test(test_cluster_terminates),
        cmocka_unit_test(test_namespace_told_late),
        cmocka_unit_test(test_one_unpacks),
        cmocka_unit_test(test_left_unpacks_no_more),
        cmocka_unit_test(test_charts),
        cmocka_unit_test(test_killed_after_every_write),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
