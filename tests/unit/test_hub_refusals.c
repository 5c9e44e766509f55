/* SPDX-License-Identifier: Apache-2.0 */
/* What the API server does not do: it is asked again, not too often, and people see why. */
#include "support/check.h"

#include "operator/bundle_hindrance.h"
#include "operator/shell_read.h"
#include "support/fake_hub.h"

#define MINUTE_MS 60000
#define HOUR_MS 3600000

/* ---- arranging ---- */

static fake *begin(void)
{
    fake *f = fake_new();
    fake_create(f, FAKE_BUNDLES,
                "{\"metadata\":{\"name\":\"app\",\"namespace\":\"" FAKE_SPACE
                "\"},\"spec\":{\"resources\":[{\"name\":\"a.yaml\",\"content\":\"x\"}],"
                "\"targets\":[{\"clusterSelector\":{}}]}}");
    return f;
}

static size_t count_lines(const fake *f, const char *part)
{
    size_t count = 0;
    for (const char *at = f->log.ptr; at && (at = strstr(at, part)); at++)
        count++;
    return count;
}

static const char *ready_message(fake *f)
{
    return fake_text(f, FAKE_BUNDLES, "app", "/status/conditions/0/message");
}

static reason reason_on(const engine *e, arena *a, const char *on)
{
    reasons list = {0};
    deployment_view v;
    assert_true(engine_deployment(e, STR(FAKE_SPACE "/app"), str_of(on), &v));
    assert_true(engine_reasons(e, v.id, a, &list));
    assert_int_equal(list.len, 1);
    return list.at[0];
}

static reason only_reason(fake *f, arena *a, const char *on)
{
    return reason_on(cluster_shell_engine(f->shell), a, on);
}

/* ---- creations ---- */

/* status.namespace names what is not there: asked twice a minute, until somebody makes it. */
static void waits_for_a_namespace(void **state)
{
    (void)state;
    char home[FAKE_NAME_BYTES];
    fake *f = begin();
    arena *a = arena_new(0);
    fake_add_cluster(f, "east", "");
    fake_delete(f, FAKE_NAMESPACES, "ns-east");
    fake_start(f);
    fake_run(f, 5 * MINUTE_MS);
    assert_in_range(count_lines(f, "ns-east/bundledeployments/app refused"), 9, 11);
    check_text(str_of(ready_message(f)),
               "Pending(1) [Cluster fleet-default/east: the hub refuses: namespaces not found]");
    reason r = only_reason(f, a, "east");
    assert_int_equal(r.rule, REASON_HINDERED);
    check_text(reason_text(a, &r), "namespaces not found");
    fake_create(f, FAKE_NAMESPACES, "{\"metadata\":{\"name\":\"ns-east\"}}");
    fake_run(f, MINUTE_MS);
    assert_non_null(fake_find(f, fake_home("east", home), "app"));
    check_text(str_of(ready_message(f)), "");
    arena_free(a);
    fake_free(f);
}

/* As it is, with its status. */
static void load_bundle(fake *f, document_set *set, object_list *list)
{
    char *json = yyjson_val_write(fake_get(f, FAKE_BUNDLES, "app", ""), 0, NULL);
    buf text = BUF(1u << 20);
    problems *found = problems_new();
    buf_addf(&text, "{\"apiVersion\":\"" API_FLEET "\",\"kind\":\"Bundle\",%s", json + 1);
    assert_true(objects_load(list, set, STR("hub"), buf_str(&text), found));
    problems_free(found);
    buf_done(&text);
    (free)(json);
}

/* Whoever manages a Cluster makes its namespace; until then it has none. */
static void leaves_namespaces_to_managers(void **state)
{
    (void)state;
    fake *f = begin();
    arena *a = arena_new(0);
    fake_create(f, FAKE_CLUSTERS,
                "{\"metadata\":{\"name\":\"m\",\"namespace\":\"" FAKE_SPACE
                "\",\"labels\":{\"fleet.cattle.io/cluster-management\":\"true\"}},\"spec\":{}}");
    fake_start(f);
    fake_run(f, HOUR_MS);
    assert_null(fake_get(f, FAKE_CLUSTERS, "m", "/status/namespace"));
    assert_int_equal(count_lines(f, "POST " FAKE_NAMESPACES "/"), 0);
    assert_int_equal(count_lines(f, "bundledeployments"), 0);
    check_text(str_of(ready_message(f)),
               "Pending(1) [Cluster fleet-default/m: the cluster has no namespace yet]");
    assert_int_equal(only_reason(f, a, "m").rule, REASON_NO_NAMESPACE);
    arena_free(a);
    fake_free(f);
}

static fake_trouble exists(fake *f, const kube_write *w)
{
    (void)f;
    bool is = w->verb == WRITE_CREATE && str_ends(w->collection, STR("/bundledeployments"));
    return (fake_trouble){is, WRITE_EXISTS, false};
}

static fake_trouble refuses_changes(fake *f, const kube_write *w)
{
    (void)f;
    return (fake_trouble){w->verb == WRITE_JSON_PATCH, WRITE_REFUSED, false};
}

static void shows_why_it_cannot_write(void **state)
{
    (void)state;
    fake *f = begin();
    fake_add_cluster(f, "east", "");
    f->trouble = exists;
    fake_start(f);
    fake_run(f, MINUTE_MS);
    check_text(str_of(ready_message(f)),
               "Pending(1) [Cluster fleet-default/east: the hub refuses: the server says exists]");
    f->trouble = NULL;
    fake_run(f, MINUTE_MS);
    check_text(str_of(ready_message(f)), "");
    f->trouble = refuses_changes;
    fake_edit(f, FAKE_BUNDLES, "app",
              "{\"spec\":{\"resources\":[{\"name\":\"a.yaml\",\"content\":\"y\"}]}}");
    fake_run(f, MINUTE_MS);
    check_text(str_of(ready_message(f)),
               "OutOfSync(1) [Cluster fleet-default/east: the hub refuses: the server says "
               "refused]");
    check_text(str_of(fake_text(f, FAKE_CLUSTERS, "east", "/status/conditions/0/message")),
               "OutOfSync(1) [Bundle app: the hub refuses: the server says refused]");
    f->trouble = NULL;
    fake_run(f, MINUTE_MS);
    check_text(str_of(ready_message(f)), "");
    fake_free(f);
}

/* An engine that only reads the hub's objects is told by the Bundle's status. */
static void check_reader(fake *f, const char *why)
{
    err error;
    char home[FAKE_NAME_BYTES];
    arena *a = arena_new(0);
    document_set *set = document_set_new();
    object_list *list = objects_new();
    load_bundle(f, set, list);
    engine *e = engine_new(&f->settings.engine, &error);
    fake_home("east", home);
    fact facts[] = {
        {.kind = FACT_DOCUMENT, .document = &list->at[0]},
        {.kind = FACT_TARGET,
         .target = {.kind = TARGET_CLUSTER,
                    .name = STR("east"),
                    .namespace_ = STR(FAKE_SPACE),
                    .deploy_namespace = STR("ns-east")}},
        {.kind = FACT_REPORT,
         .report = {.change = STR(FAKE_SPACE "/app"),
                    .target = STR("east"),
                    .exists = fake_find(f, home, "app"),
                    .live = str_of(fake_text(f, home, "app", "/spec/deploymentID")),
                    .applied = str_of(fake_text(f, home, "app", "/status/appliedDeploymentID")),
                    .ready = yyjson_get_bool(fake_get(f, home, "app", "/status/ready"))}}};
    decision_list decisions = {0};
    assert_true(engine_step(e, facts, COUNT_OF(facts), f->now_ms, &decisions));
    assert_int_not_equal(reason_on(e, a, "east").rule, REASON_HINDERED);
    assert_true(bundle_hindrances_tell(e, list->at[0].bundle));
    reason r = reason_on(e, a, "east");
    assert_int_equal(r.rule, REASON_HINDERED);
    check_text(reason_text(a, &r), why);
    vec_done(&decisions);
    engine_free(e);
    objects_free(list);
    document_set_free(set);
    arena_free(a);
}

static fake_trouble refuses_secrets(fake *f, const kube_write *w)
{
    (void)f;
    return (fake_trouble){w->verb == WRITE_APPLY, WRITE_REFUSED, false};
}

static void tells_readers_why(void **state)
{
    (void)state;
    fake *f = begin();
    fake_add_cluster(f, "east", "");
    fake_delete(f, FAKE_NAMESPACES, "ns-east");
    fake_start(f);
    fake_run(f, MINUTE_MS);
    check_reader(f, "namespaces not found");
    fake_create(f, FAKE_NAMESPACES, "{\"metadata\":{\"name\":\"ns-east\"}}");
    fake_run(f, MINUTE_MS);
    f->trouble = refuses_changes; /* of what runs already */
    fake_edit(f, FAKE_BUNDLES, "app", "{\"spec\":{\"defaultNamespace\":\"newer\"}}");
    fake_run(f, MINUTE_MS);
    check_reader(f, "the server says refused");
    f->trouble = refuses_secrets; /* for which the agent waits */
    fake_edit(f, FAKE_BUNDLES, "app", "{\"spec\":{\"helm\":{\"values\":{\"n\":1}}}}");
    fake_run(f, MINUTE_MS);
    check_has_at(str_of(ready_message(f)), STR("WaitApplied(1)"), __FILE__, __LINE__);
    check_reader(f, "type: field is immutable");
    fake_free(f);
}

/* What an agent says is no word of the hub's. */
static void tells_readers_nothing_of_agents(void **state)
{
    (void)state;
    err error;
    char home[FAKE_NAME_BYTES];
    fake *f = begin();
    fake_add_cluster(f, "east", "");
    fake_start(f);
    fake_run(f, MINUTE_MS);
    fake_edit(f, fake_home("east", home), "app",
              "{\"status\":{\"ready\":false,\"conditions\":[{\"type\":\"Deployed\",\"status\":"
              "\"True\",\"message\":\"pods crash\"}]}}");
    fake_run(f, MINUTE_MS);
    check_text(str_of(ready_message(f)), "NotReady(1) [Cluster fleet-default/east: pods crash]");
    document_set *set = document_set_new();
    object_list *list = objects_new();
    load_bundle(f, set, list);
    engine *e = engine_new(&f->settings.engine, &error);
    fact facts[] = {{.kind = FACT_DOCUMENT, .document = &list->at[0]},
                    {.kind = FACT_TARGET,
                     .target = {.kind = TARGET_CLUSTER,
                                .name = STR("east"),
                                .namespace_ = STR(FAKE_SPACE),
                                .deploy_namespace = STR("ns-east")}}};
    assert_true(engine_take(e, facts, COUNT_OF(facts), f->now_ms));
    assert_true(bundle_hindrances_tell(e, list->at[0].bundle));
    deployment_view v;
    assert_true(engine_deployment(e, STR(FAKE_SPACE "/app"), STR("east"), &v));
    check_text(v.hindered, "");
    engine_free(e);
    objects_free(list);
    document_set_free(set);
    fake_free(f);
}

/* ---- documents ---- */

static int live_versions(fake *f, const char *unlike)
{
    static const char *const names[] = {"east", "north", "south", "west"};
    char home[FAKE_NAME_BYTES];
    int count = 0;
    for (size_t i = 0; i < COUNT_OF(names); i++)
        count += strcmp(fake_text(f, fake_home(names[i], home), "app", "/spec/deploymentID"),
                        unlike) != 0;
    return count;
}

static void set_strategy(fake *f, const char *text, const char *spec)
{
    buf patch = BUF(1u << 16);
    buf_addz(&patch, "{\"metadata\":{\"annotations\":{\"drover.dev/rollout-strategy\":");
    buf_add_json(&patch, str_of(text));
    buf_addf(&patch, "}}%s}", spec);
    fake_edit(f, FAKE_BUNDLES, "app", patch.ptr);
    buf_done(&patch);
}

#define NEWER ",\"spec\":{\"defaultNamespace\":\"newer\"}"

/* A strategy that cannot be read has no limits: nothing of that document is carried out. */
static void keeps_to_the_strategy_that_it_can_read(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "{\"maxUnavailable\":1,}", "{\"maxUnavailable\":\"most\"}", "", "[]", "maxUnavailable: 1"};
    char home[FAKE_NAME_BYTES], before[FAKE_NAME_BYTES];
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        fake *f = begin();
        fake_add_cluster(f, "east", "");
        fake_add_cluster(f, "north", "");
        fake_add_cluster(f, "south", "");
        fake_add_cluster(f, "west", "");
        set_strategy(f, "{\"maxUnavailable\":1}", "");
        fake_start(f);
        fake_run(f, MINUTE_MS);
        snprintf(before, sizeof before, "%s",
                 fake_text(f, fake_home("east", home), "app", "/spec/deploymentID"));
        set_strategy(f, bad[i], NEWER);
        fake_run(f, MINUTE_MS);
        assert_int_equal(live_versions(f, before), 0);
        check_has_at(str_of(ready_message(f)),
                     STR("annotations[\"drover.dev/rollout-strategy\"]: found no"), __FILE__,
                     __LINE__);
        fake_start(f);
        fake_run(f, MINUTE_MS);
        assert_int_equal(live_versions(f, before), 0);
        set_strategy(f, "{\"maxUnavailable\":1,\"maxNew\":2}", "");
        fake_run(f, 500);
        assert_int_equal(live_versions(f, before), 1);
        fake_run(f, MINUTE_MS);
        assert_int_equal(live_versions(f, before), 4);
        check_text(str_of(ready_message(f)), "");
        fake_free(f);
    }
}

/* ---- ends ---- */

static write_outcome_kind answer;
static int troubles;

/* Of the Bundle itself: its record and its finalizer. */
static fake_trouble troubles_bundle(fake *f, const kube_write *w)
{
    (void)f;
    bool is = str_eq(w->collection, STR(FAKE_BUNDLES)) && w->subresource.len == 0 && troubles > 0;
    troubles -= is;
    return (fake_trouble){is, answer, false};
}

static fake_trouble troubles_deletion(fake *f, const kube_write *w)
{
    (void)f;
    bool is = w->verb == WRITE_DELETE && troubles > 0;
    troubles -= is;
    return (fake_trouble){is, answer, false};
}

static const write_outcome_kind unlucky[] = {WRITE_LATER, WRITE_AMBIGUOUS, WRITE_REFUSED};

static void ends_a_bundle(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(unlucky); i++) {
        fake *f = begin();
        fake_add_cluster(f, "east", "");
        fake_start(f);
        fake_run(f, -1);
        answer = unlucky[i];
        troubles = 2;
        f->trouble = troubles_bundle;
        fake_delete(f, FAKE_BUNDLES, "app");
        fake_run(f, 5 * MINUTE_MS);
        assert_int_equal(troubles, 0);
        assert_null(fake_find(f, FAKE_BUNDLES, "app"));
        fake_free(f);
    }
}

/* Nothing is released before the record is written. */
static void begins_a_bundle(void **state)
{
    (void)state;
    char home[FAKE_NAME_BYTES];
    for (size_t i = 0; i < COUNT_OF(unlucky); i++) {
        fake *f = begin();
        fake_add_cluster(f, "east", "");
        answer = unlucky[i];
        troubles = 2;
        f->trouble = troubles_bundle;
        fake_start(f);
        fake_run(f, 5 * MINUTE_MS);
        assert_int_equal(troubles, 0);
        assert_non_null(fake_find(f, fake_home("east", home), "app"));
        fake_free(f);
    }
}

/* A deployment whose Cluster went while nobody looked. */
static void ends_strays(void **state)
{
    (void)state;
    char home[FAKE_NAME_BYTES];
    for (size_t i = 0; i < COUNT_OF(unlucky); i++) {
        fake *f = begin();
        fake_add_cluster(f, "east", "");
        fake_start(f);
        fake_run(f, -1);
        f->shell = cluster_shell_free(f->shell);
        fake_delete(f, FAKE_CLUSTERS, "east");
        answer = unlucky[i];
        troubles = 2;
        f->trouble = troubles_deletion;
        fake_start(f);
        fake_run(f, 5 * MINUTE_MS);
        assert_int_equal(troubles, 0);
        assert_null(fake_find(f, fake_home("east", home), "app"));
        fake_free(f);
    }
}

/* Fleet's finalizer is nobody's here; those of others wait for something. */
static void leaves_finalizers_of_others(void **state)
{
    (void)state;
    for (int wanted = 0; wanted < 2; wanted++) { /* a person deletes what is wanted, or we do */
        char home[FAKE_NAME_BYTES];
        fake *f = begin();
        fake_add_cluster(f, "east", "");
        fake_start(f);
        fake_run(f, MINUTE_MS);
        fake_edit(f, fake_home("east", home), "app",
                  "{\"metadata\":{\"finalizers\":[\"example.com/hold\","
                  "\"fleet.cattle.io/bundle-deployment-finalizer\",\"example.com/other\"]}}");
        if (wanted)
            fake_delete(f, home, "app");
        else
            fake_edit(f, FAKE_BUNDLES, "app", "{\"spec\":{\"targets\":[]}}");
        fake_run(f, MINUTE_MS);
        yyjson_val *left = fake_get(f, home, "app", "/metadata/finalizers");
        assert_int_equal(yyjson_arr_size(left), 2);
        check_text(str_of(fake_text(f, home, "app", "/metadata/finalizers/0")), "example.com/hold");
        check_text(str_of(fake_text(f, home, "app", "/metadata/finalizers/1")),
                   "example.com/other");
        fake_edit(f, home, "app", "{\"metadata\":{\"finalizers\":null}}");
        fake_run(f, MINUTE_MS);
        assert_int_equal(fake_find(f, home, "app") != NULL, wanted);
        fake_free(f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(waits_for_a_namespace),
        cmocka_unit_test(tells_readers_why),
        cmocka_unit_test(tells_readers_nothing_of_agents),
        cmocka_unit_test(leaves_namespaces_to_managers),
        cmocka_unit_test(shows_why_it_cannot_write),
        cmocka_unit_test(keeps_to_the_strategy_that_it_can_read),
        cmocka_unit_test(ends_a_bundle),
        cmocka_unit_test(begins_a_bundle),
        cmocka_unit_test(ends_strays),
        cmocka_unit_test(leaves_finalizers_of_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
