/* SPDX-License-Identifier: Apache-2.0 */
/* Status in Fleet's words: the state of one deployment, summaries and their messages, and the
 * status of Bundle, Cluster, ClusterGroup and GitRepo byte for byte. */
#include "support/check.h"

#include "model/document.h"
#include "operator/bundle_status.h"
#include "operator/fleet_schema.h"
#include "support/documents.h"

static moment at(const char *text)
{
    moment m;
    err error;
    check_msg(moment_parse(str_of(text), &m, &error), "%s", error.text);
    return m;
}

#define NOW "2026-11-16T06:00:00Z"
#define BEFORE "2026-11-15T00:00:00Z"

/* ---- one deployment ---- */

static void test_states(void **state)
{
    (void)state;
    static const struct {
        const char *wanted, *live, *applied;
        bool ready, non_modified, failed;
        const char *want;
    } rows[] = {
        {"b", "", "", false, false, false, "Pending"},
        {"b", "b", "", false, false, false, "WaitApplied"},
        {"b", "b", "a", true, true, false, "WaitApplied"},
        {"b", "b", "a", true, true, true, "ErrApplied"},
        {"b", "b", "b", false, true, false, "NotReady"},
        {"b", "b", "b", false, true, true, "NotReady"},
        {"b", "b", "b", true, false, false, "Modified"},
        {"b", "b", "b", true, true, false, "Ready"},
        {"b", "a", "a", true, true, false, "OutOfSync"},
        {"b", "a", "a", true, false, false, "OutOfSync"},
        {"b", "a", "a", false, true, false, "NotReady"},
        {"b", "a", "z", true, true, true, "ErrApplied"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        deployment_seen seen = {str_of(rows[i].wanted),  str_of(rows[i].live),
                                str_of(rows[i].applied), rows[i].ready,
                                rows[i].non_modified,    rows[i].failed};
        check_msg(strcmp(bundle_state_text(deployment_state(&seen)), rows[i].want) == 0,
                  "row %zu: %s", i, bundle_state_text(deployment_state(&seen)));
    }
}

static const char deployments_text[] =
    "apiVersion: fleet.cattle.io/v1alpha1\n"
    "kind: BundleDeployment\n"
    "metadata: {name: good, namespace: n1, labels: {fleet.cattle.io/repo-name: r1}}\n"
    "spec: {deploymentID: v2, stagedDeploymentID: v2}\n"
    "status:\n"
    "  appliedDeploymentID: v2\n"
    "  ready: true\n"
    "  nonModified: true\n"
    "  resourceCounts: {ready: 3, desiredReady: 3}\n"
    "  conditions: [{type: Deployed, status: 'True'}, {type: Monitored, status: 'True'}]\n"
    "---\n"
    "apiVersion: fleet.cattle.io/v1alpha1\n"
    "kind: BundleDeployment\n"
    "metadata: {name: bad, namespace: n1, labels: {fleet.cattle.io/repo-name: r1}}\n"
    "spec: {deploymentID: v2, stagedDeploymentID: v2}\n"
    "status:\n"
    "  appliedDeploymentID: v1\n"
    "  resourceCounts: {ready: 1, desiredReady: 2, notReady: 1}\n"
    "  conditions:\n"
    "  - {type: Installed, status: 'False', message: about the old one}\n"
    "  - {type: Deployed, status: 'False', reason: Error, message: no such chart}\n"
    "---\n"
    "apiVersion: fleet.cattle.io/v1alpha1\n"
    "kind: BundleDeployment\n"
    "metadata: {name: held, namespace: n2, labels: {fleet.cattle.io/repo-name: r2}}\n"
    "spec: {deploymentID: v1, stagedDeploymentID: v1}\n"
    "status: {appliedDeploymentID: v1, ready: true, nonModified: true}\n"
    "---\n"
    "apiVersion: fleet.cattle.io/v1alpha1\n"
    "kind: BundleDeployment\n"
    "metadata: {name: slow, namespace: n2}\n"
    "spec: {deploymentID: v2, stagedDeploymentID: v2}\n"
    "status:\n"
    "  appliedDeploymentID: v2\n"
    "  nonModified: true\n"
    "  nonReadyStatus:\n"
    "  - {kind: Deployment, apiVersion: apps/v1, namespace: web, name: shop,\n"
    "     summary: {transitioning: true, message: [one, two]}}\n"
    "  modifiedStatus:\n"
    "  - {kind: Service, apiVersion: v1, namespace: web, name: a, missing: true}\n"
    "  - {kind: Service, apiVersion: v1, namespace: web, name: b, missing: true, exist: true}\n"
    "  - {kind: Node, name: c, delete: true}\n"
    "  - {kind: Service, apiVersion: v1, namespace: web, name: d, patch: '{}'}\n"
    "  - {kind: Service, apiVersion: v1, namespace: web, name: e, patch: '{}'}\n";

typedef struct scene {
    loaded l;
    status_member at[5]; /* good, bad, held, slow, and one without a deployment */
} scene;

static scene scene_new(void)
{
    scene s = {.l = load_text("d.yaml", str_of(deployments_text))};
    assert_true(s.l.good);
    static const char *const names[] = {"ns/c1", "ns/c2", "ns/c3", "ns/c4", "ns/c5"};
    for (size_t i = 0; i < 5; i++)
        s.at[i] = (status_member){str_of(names[i]), STR("v2"),
                                  i < 4 ? s.l.objects->at[i].bundle_deployment : NULL};
    return s;
}

static void check_put(buf *out, const char *want)
{
    assert_false(out->failed);
    check_text(buf_str(out), want);
    buf_done(out);
}

static void test_messages_and_displays(void **state)
{
    (void)state;
    scene s = scene_new();
    buf out = BUF(10000);
    check_text(deployment_message(s.at[1].deployment), "no such chart");
    check_text(deployment_message(s.at[2].deployment), "");
    for (size_t i = 0; i < 5; i++) {
        buf_addc(&out, '{');
        deployment_display_put(&out, &s.at[i]);
        buf_addc(&out, '}');
    }
    check_put(&out,
              "{\"display\":{\"deployed\":\"True\",\"monitored\":\"True\",\"state\":\"Ready\"}}"
              "{\"display\":{\"deployed\":\"Error: no such chart\",\"state\":\"ErrApplied\"}}"
              "{\"display\":{\"state\":\"OutOfSync\"}}"
              "{\"display\":{\"state\":\"NotReady\"}}"
              "{\"display\":{\"state\":\"Pending\"}}");
    loaded_free(&s.l);
}

static void add_all(summary_maker *made, const scene *s)
{
    for (size_t i = 0; i < 5; i++) {
        non_ready_resource one = status_member_entry(&s->at[i]);
        summary_add(made, &one);
    }
}

static void test_the_message_of_a_summary(void **state)
{
    (void)state;
    scene s = scene_new();
    summary_maker made = {0};
    buf out = BUF(10000);
    add_all(&made, &s);
    assert_int_equal(made.summary.desired_ready, 5);
    assert_int_equal(made.summary.ready, 1);
    assert_int_equal(summary_state(&made.summary), BUNDLE_ERR_APPLIED);
    summary_message(&out, &made.summary, "Cluster");
    check_put(&out, "ErrApplied(1) [Cluster ns/c2: no such chart]; NotReady(1) [Cluster ns/c4]; "
                    "OutOfSync(1) [Cluster ns/c3]; Pending(1) [Cluster ns/c5]; "
                    "deployment.apps web/shop [progressing] one, two; node c extra; "
                    "service.v1 web/a missing; service.v1 web/b is not owned by us; "
                    "service.v1 web/d modified {}");
    loaded_free(&s.l);
}

/* Ten are listed, all are counted; a state that is not listed is not told. */
static void test_only_ten_are_listed(void **state)
{
    (void)state;
    summary_maker made = {0}, sum = {0};
    buf out = BUF(10000);
    for (size_t i = 0; i < 40; i++)
        summary_add(&made, &(non_ready_resource){.name = STR("c"),
                                                 .bundle_state = i < 30 ? BUNDLE_WAIT_APPLIED
                                                                        : BUNDLE_PENDING});
    assert_int_equal(made.summary.non_ready_resources.len, 10);
    summary_message(&out, &made.summary, "Cluster");
    check_put(&out, "WaitApplied(30) [Cluster c]");
    summary_sum(&sum, &made.summary);
    summary_sum(&sum, &made.summary);
    assert_int_equal(sum.summary.non_ready_resources.len, 10);
    assert_int_equal(sum.summary.pending, 20);
    assert_int_equal(sum.summary.desired_ready, 80);
    assert_false(summary_ready(&sum.summary));
}

/* ---- conditions ---- */

static void test_conditions_keep_their_times(void **state)
{
    (void)state;
    condition had[] = {{.type = STR("Foreign"),
                        .status = CONDITION_UNKNOWN,
                        .last_update_time = {true, at(BEFORE)}},
                       {.type = STR("Ready"),
                        .status = CONDITION_FALSE,
                        .message = STR("m"),
                        .last_update_time = {true, at(BEFORE)}}};
    status_condition now[] = {{STR("Ready"), false, STR_EMPTY, STR("m")},
                              {STR("Processed"), true, STR_EMPTY, STR_EMPTY}};
    status_conditions c = {{had, 2}, now, 2, at(NOW)};
    buf out = BUF(10000);
    conditions_put(&out, &c);
    now[0].message = STR("n");
    conditions_put(&out, &c);
    check_put(&out,
              "\"conditions\":[{\"type\":\"Foreign\",\"status\":\"Unknown\",\"lastUpdateTime\":"
              "\"" BEFORE "\"},{\"type\":\"Ready\",\"status\":\"False\",\"lastUpdateTime\":"
              "\"" BEFORE "\",\"message\":\"m\"},{\"type\":\"Processed\",\"status\":\"True\","
              "\"lastUpdateTime\":\"" NOW "\"}]"
              ",\"conditions\":[{\"type\":\"Foreign\",\"status\":\"Unknown\",\"lastUpdateTime\":"
              "\"" BEFORE "\"},{\"type\":\"Ready\",\"status\":\"False\",\"lastUpdateTime\":"
              "\"" NOW "\",\"message\":\"n\"},{\"type\":\"Processed\",\"status\":\"True\","
              "\"lastUpdateTime\":\"" NOW "\"}]");
}

/* ---- objects ---- */

static void test_bundle_status(void **state)
{
    (void)state;
    scene s = scene_new();
    summary_maker one = {0}, two = {0}, all = {0};
    non_ready_resource entry = status_member_entry(&s.at[0]);
    summary_add(&one, &entry);
    entry = status_member_entry(&s.at[4]);
    summary_add(&two, &entry);
    summary_sum(&all, &one.summary);
    summary_sum(&all, &two.summary);
    status_partition parts[] = {{STR("canary"), 1, 1, 0, &one.summary},
                                {STR("rest"), 1, 0, 0, &two.summary}};
    bundle_status_facts f = {.summary = &all.summary,
                             .partitions = parts,
                             .partition_count = 2,
                             .newly_created = 1,
                             .max_unavailable = 2,
                             .generation = 7,
                             .resources_sha256_sum = STR("abc"),
                             .now = at(NOW)};
    buf out = BUF(10000);
    bundle_status_put(&out, &f);
    check_put(
        &out,
        "{\"conditions\":[{\"type\":\"Ready\",\"status\":\"False\",\"lastUpdateTime\":\"" NOW "\","
        "\"message\":\"Pending(1) [Cluster ns/c5]\"}],"
        "\"summary\":{\"ready\":1,\"pending\":1,\"desiredReady\":2,\"nonReadyResources\":["
        "{\"name\":\"ns/c5\",\"bundleState\":\"Pending\"}]},\"newlyCreated\":1,\"unavailable\":0,"
        "\"unavailablePartitions\":0,\"maxUnavailable\":2,\"maxUnavailablePartitions\":0,"
        "\"partitions\":[{\"name\":\"canary\",\"count\":1,\"maxUnavailable\":1,"
        "\"summary\":{\"ready\":1,\"desiredReady\":1}},{\"name\":\"rest\",\"count\":1,"
        "\"summary\":{\"ready\":0,\"pending\":1,\"desiredReady\":1,\"nonReadyResources\":["
        "{\"name\":\"ns/c5\",\"bundleState\":\"Pending\"}]}}],"
        "\"display\":{\"readyClusters\":\"1/2\",\"state\":\"Pending\"},"
        "\"observedGeneration\":7,\"resourcesSha256Sum\":\"abc\"}");
    f.error = STR("failed to update partitions: found \"x\"");
    bundle_status_put(&out, &f);
    check_has_at(buf_str(&out),
                 STR("\"reason\":\"Error\",\"message\":\"failed to update partitions: found "
                     "\\\"x\\\"\""),
                 __FILE__, __LINE__);
    /* Said while it is so; then that it is no more; never where it never was. */
    assert_int_equal(str_find(buf_str(&out), STR("ExtensionsPruned")), SIZE_MAX);
    buf_clear(&out);
    f.pruned = STR("soakSeconds");
    bundle_status_put(&out, &f);
    check_has_at(buf_str(&out), STR("\"type\":\"ExtensionsPruned\",\"status\":\"True\""), __FILE__,
                 __LINE__);
    check_has_at(buf_str(&out), STR("drops soakSeconds of"), __FILE__, __LINE__);
    condition known = {.type = STR("ExtensionsPruned"), .status = CONDITION_TRUE};
    f.before = (condition_list){&known, 1};
    f.pruned = STR_EMPTY;
    buf_clear(&out);
    bundle_status_put(&out, &f);
    check_has_at(buf_str(&out), STR("\"type\":\"ExtensionsPruned\",\"status\":\"False\""), __FILE__,
                 __LINE__);
    buf_done(&out);
    loaded_free(&s.l);
}

static void check_pruned(const char *spec, const char *want)
{
    char text[1024];
    snprintf(text, sizeof text,
             "{\"components\":{\"schemas\":{\"a\":{},\"b\":{\"x-kubernetes-group-version-kind\":"
             "[{\"kind\":\"Bundle\"}],\"properties\":{\"spec\":%s}}}}}",
             spec);
    yyjson_doc *doc = yyjson_read(text, strlen(text), 0);
    buf out = BUF(1000);
    assert_non_null(doc);
    fleet_schema_pruned(yyjson_doc_get_root(doc), &out);
    check_text(buf_str(&out), want);
    buf_done(&out);
    yyjson_doc_free(doc);
}

static void test_pruned_fields(void **state)
{
    (void)state;
#define KEEPS "\"x-kubernetes-preserve-unknown-fields\":true,"
#define SPEC(more, strategy) "{" more "\"properties\":{\"rolloutStrategy\":{" strategy "}}}"
#define PARTITIONS(more, fields)                                                                   \
    "\"partitions\":{\"items\":{" more "\"properties\":{\"name\":{}" fields "}}}"
    check_pruned(SPEC("", "\"properties\":{\"maxNew\":{}," PARTITIONS("", "") "}"),
                 "soakSeconds, failureThreshold, offlineAfterSeconds, partitions[].approval");
    check_pruned(SPEC("", "\"properties\":{\"soakSeconds\":{},\"failureThreshold\":{},"
                          "\"offlineAfterSeconds\":{}," PARTITIONS("", ",\"approval\":{}") "}"),
                 "");
    check_pruned(SPEC("", "\"properties\":{\"soakSeconds\":{}," PARTITIONS(KEEPS, "") "}"),
                 "failureThreshold, offlineAfterSeconds");
    check_pruned(SPEC(KEEPS, KEEPS "\"properties\":{" PARTITIONS("", "") "}"),
                 "partitions[].approval");
    check_pruned(SPEC("", KEEPS "\"properties\":{" PARTITIONS(KEEPS, "") "}"), "");
    check_pruned("{}", "");
    buf out = BUF(1000);
    fleet_schema_pruned(NULL, &out);
    assert_int_equal(out.len, 0);
    buf_done(&out);
}

static void test_cluster_status(void **state)
{
    (void)state;
    scene s = scene_new();
    s.at[0].name = STR("good");
    s.at[1].name = STR("bad");
    summary_maker made = {0};
    for (size_t i = 0; i < 2; i++) {
        non_ready_resource one = status_member_entry(&s.at[i]);
        summary_add(&made, &one);
    }
    const int64_t resources[RESOURCE_COUNT_KINDS] = {4, 5, 0, 0, 0, 0, 0, 1};
    cluster_status_facts f = {.namespace_ = STR("n1"),
                              .summary = &made.summary,
                              .repos = {0, 1},
                              .resources = resources,
                              .checked_in = true,
                              .now = at(NOW)};
    buf out = BUF(10000);
    cluster_status_put(&out, &f);
    check_put(&out,
              "{\"conditions\":[{\"type\":\"Ready\",\"status\":\"False\",\"lastUpdateTime\":\"" NOW
              "\","
              "\"message\":\"ErrApplied(1) [Bundle bad: no such chart]\"},{\"type\":\"Processed\","
              "\"status\":\"True\",\"lastUpdateTime\":\"" NOW "\"}],\"namespace\":\"n1\","
              "\"summary\":{\"errApplied\":1,\"ready\":1,\"desiredReady\":2,\"nonReadyResources\":["
              "{\"name\":\"bad\",\"bundleState\":\"ErrApplied\",\"message\":\"no such chart\"}]},"
              "\"resourceCounts\":{\"ready\":4,\"desiredReady\":5,\"waitApplied\":0,\"modified\":0,"
              "\"orphaned\":0,\"missing\":0,\"unknown\":0,\"notReady\":1},\"readyGitRepos\":0,"
              "\"desiredReadyGitRepos\":1,\"readyHelmOps\":0,\"desiredReadyHelmOps\":0,"
              "\"display\":{\"readyBundles\":\"1/2\",\"state\":\"ErrApplied\"}}");
    f.checked_in = false;
    cluster_status_put(&out, &f);
    check_has_at(buf_str(&out), STR("\"state\":\"WaitCheckIn\""), __FILE__, __LINE__);
    buf_done(&out);
    loaded_free(&s.l);
}

static void test_cluster_group_status(void **state)
{
    (void)state;
    scene s = scene_new();
    summary_maker good = {0}, bad = {0};
    non_ready_resource entry = status_member_entry(&s.at[0]);
    summary_add(&good, &entry);
    entry = status_member_entry(&s.at[2]);
    summary_add(&bad, &entry);
    summary_sum(&good, &bad.summary);
    const str names[] = {STR("c2")};
    cluster_group_status_facts f = {.summary = &good.summary,
                                    .cluster_count = 2,
                                    .non_ready_count = 1,
                                    .non_ready = names,
                                    .now = at(NOW)};
    buf out = BUF(10000);
    cluster_group_status_put(&out, &f);
    check_put(
        &out,
        "{\"clusterCount\":2,\"nonReadyClusterCount\":1,\"nonReadyClusters\":[\"c2\"],"
        "\"conditions\":[{\"type\":\"Ready\",\"status\":\"False\",\"lastUpdateTime\":\"" NOW "\","
        "\"message\":\"OutOfSync(1) [Bundle ns/c3]\"},{\"type\":\"Processed\",\"status\":\"True\","
        "\"lastUpdateTime\":\"" NOW "\"}],\"summary\":{\"outOfSync\":1,\"ready\":1,"
        "\"desiredReady\":2,\"nonReadyResources\":[{\"name\":\"ns/c3\",\"bundleState\":"
        "\"OutOfSync\"}]},\"display\":{\"readyClusters\":\"1/2 (c2)\",\"readyBundles\":\"1/2\","
        "\"state\":\"OutOfSync\"},\"resourceCounts\":{\"ready\":0,\"desiredReady\":0,"
        "\"waitApplied\":0,\"modified\":0,\"orphaned\":0,\"missing\":0,\"unknown\":0,"
        "\"notReady\":0}}");
    loaded_free(&s.l);
}

static void test_git_repo_status(void **state)
{
    (void)state;
    scene s = scene_new();
    s.at[0].name = STR("good");
    s.at[2].name = STR("held");
    summary_maker made = {0};
    for (size_t i = 0; i < 3; i += 2) {
        non_ready_resource one = status_member_entry(&s.at[i]);
        summary_add(&made, &one);
    }
    const int64_t resources[RESOURCE_COUNT_KINDS] = {3, 3};
    git_repo_status_facts f = {.summary = &made.summary,
                               .clusters = {1, 2},
                               .state = BUNDLE_OUT_OF_SYNC,
                               .resources = resources,
                               .ready_message = STR("OutOfSync(1) [Cluster x]"),
                               .git_job_status = STR("Current"),
                               .now = at(NOW)};
    buf out = BUF(10000);
    git_repo_status_put(&out, &f);
    check_put(
        &out,
        "{\"conditions\":[{\"type\":\"Ready\",\"status\":\"False\",\"lastUpdateTime\":\"" NOW "\","
        "\"message\":\"OutOfSync(1) [Cluster x]\"}],\"readyClusters\":1,"
        "\"desiredReadyClusters\":2,\"summary\":{\"outOfSync\":1,\"ready\":1,\"desiredReady\":2,"
        "\"nonReadyResources\":[{\"name\":\"held\",\"bundleState\":\"OutOfSync\"}]},"
        "\"display\":{\"readyBundleDeployments\":\"1/2\",\"state\":\"OutOfSync\"},"
        "\"resourceCounts\":{\"ready\":3,\"desiredReady\":3,\"waitApplied\":0,\"modified\":0,"
        "\"orphaned\":0,\"missing\":0,\"unknown\":0,\"notReady\":0}}");
    f.git_job_status = STR("InProgress");
    git_repo_status_put(&out, &f);
    check_has_at(buf_str(&out), STR("\"state\":\"GitUpdating\""), __FILE__, __LINE__);
    buf_done(&out);
    loaded_free(&s.l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_states),
        cmocka_unit_test(test_messages_and_displays),
        cmocka_unit_test(test_the_message_of_a_summary),
        cmocka_unit_test(test_only_ten_are_listed),
        cmocka_unit_test(test_conditions_keep_their_times),
        cmocka_unit_test(test_bundle_status),
        cmocka_unit_test(test_pruned_fields),
        cmocka_unit_test(test_cluster_status),
        cmocka_unit_test(test_cluster_group_status),
        cmocka_unit_test(test_git_repo_status),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
