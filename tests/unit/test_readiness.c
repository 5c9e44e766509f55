/* SPDX-License-Identifier: Apache-2.0 */
/* Whether what was deployed does its work: one row for each way a kind can stand. */
#include "support/check.h"

#include "cluster_agent/readiness.h"
#include "model/document.h"

typedef struct row {
    const char *object;  /* without the braces around it */
    const char *message; /* NULL: ready */
    readiness_state state;
} row;

#define DEPLOYMENT "\"apiVersion\":\"apps/v1\",\"kind\":\"Deployment\",\"spec\":{\"replicas\":3},"
#define STATEFUL "\"apiVersion\":\"apps/v1\",\"kind\":\"StatefulSet\","
#define DAEMON "\"apiVersion\":\"apps/v1\",\"kind\":\"DaemonSet\","
#define JOB "\"apiVersion\":\"batch/v1\",\"kind\":\"Job\","
#define POD "\"apiVersion\":\"v1\",\"kind\":\"Pod\","
#define OTHER "\"apiVersion\":\"example.org/v1\",\"kind\":\"Thing\","
#define CONDITION(type, status, more)                                                              \
    "\"conditions\":[{\"type\":\"" type "\",\"status\":\"" status "\"" more "}]"

static const row rows[] = {
    {DEPLOYMENT "\"status\":{\"replicas\":3,\"updatedReplicas\":3,\"availableReplicas\":3}", NULL,
     READINESS_READY},
    {DEPLOYMENT "\"status\":{}", "0 of 3 replicas are updated", READINESS_TRANSITIONING},
    {DEPLOYMENT "\"status\":{\"replicas\":3,\"updatedReplicas\":2,\"availableReplicas\":3}",
     "2 of 3 replicas are updated", READINESS_TRANSITIONING},
    {DEPLOYMENT "\"status\":{\"replicas\":4,\"updatedReplicas\":3,\"availableReplicas\":3}",
     "3 of 4 replicas are new, the others are ending", READINESS_TRANSITIONING},
    {DEPLOYMENT "\"status\":{\"replicas\":3,\"updatedReplicas\":3,\"availableReplicas\":1}",
     "1 of 3 replicas are available", READINESS_TRANSITIONING},
    {DEPLOYMENT "\"status\":{" CONDITION("Progressing", "False",
                                         ",\"reason\":\"ProgressDeadlineExceeded\",\"message\":"
                                         "\"too late\"") "}",
     "too late", READINESS_ERROR},
    {DEPLOYMENT "\"status\":{" CONDITION("ReplicaFailure", "True", ",\"reason\":\"Quota\"") "}",
     "Quota", READINESS_ERROR},
    {DEPLOYMENT "\"metadata\":{\"generation\":2},\"status\":{\"observedGeneration\":1,"
                "\"replicas\":3,\"updatedReplicas\":3,\"availableReplicas\":3}",
     "its controller has not seen the change yet", READINESS_TRANSITIONING},
    {DEPLOYMENT "\"metadata\":{\"deletionTimestamp\":\"2026-01-01T00:00:00Z\"}",
     "it is being deleted", READINESS_TRANSITIONING},
    {"\"apiVersion\":\"apps/v1\",\"kind\":\"Deployment\",\"spec\":{\"replicas\":0},\"status\":{}",
     NULL, READINESS_READY},
    {"\"apiVersion\":\"apps/v1\",\"kind\":\"ReplicaSet\",\"spec\":{},\"status\":{}",
     "0 of 1 replicas are available", READINESS_TRANSITIONING},
    {STATEFUL "\"spec\":{\"replicas\":2},\"status\":{\"readyReplicas\":1}",
     "1 of 2 replicas are ready", READINESS_TRANSITIONING},
    {STATEFUL "\"spec\":{\"replicas\":2},\"status\":{\"readyReplicas\":2,\"updatedReplicas\":1}",
     "1 of 2 replicas are updated", READINESS_TRANSITIONING},
    {STATEFUL "\"spec\":{\"replicas\":2},\"status\":{\"readyReplicas\":2,\"updatedReplicas\":2,"
              "\"currentRevision\":\"a\",\"updateRevision\":\"b\"}",
     "the last replicas are being updated", READINESS_TRANSITIONING},
    {STATEFUL "\"spec\":{\"replicas\":2,\"updateStrategy\":{\"rollingUpdate\":{\"partition\":1}}},"
              "\"status\":{\"readyReplicas\":2,\"updatedReplicas\":1,\"currentRevision\":\"a\","
              "\"updateRevision\":\"b\"}",
     NULL, READINESS_READY},
    {STATEFUL "\"spec\":{\"replicas\":2,\"updateStrategy\":{\"type\":\"OnDelete\"}},"
              "\"status\":{\"readyReplicas\":2}",
     NULL, READINESS_READY},
    {DAEMON "\"status\":{\"desiredNumberScheduled\":0}", "its controller has not seen it yet",
     READINESS_TRANSITIONING},
    {DAEMON "\"status\":{\"observedGeneration\":1,\"desiredNumberScheduled\":0}", NULL,
     READINESS_READY},
    {DAEMON "\"status\":{\"observedGeneration\":1,\"desiredNumberScheduled\":3,"
            "\"updatedNumberScheduled\":2,\"numberAvailable\":3}",
     "2 of 3 pods are updated", READINESS_TRANSITIONING},
    {DAEMON "\"status\":{\"observedGeneration\":1,\"desiredNumberScheduled\":3,"
            "\"updatedNumberScheduled\":3,\"numberAvailable\":2}",
     "2 of 3 pods are available", READINESS_TRANSITIONING},
    {JOB "\"status\":{" CONDITION("Complete", "True", "") "}", NULL, READINESS_READY},
    {JOB "\"status\":{" CONDITION("Failed", "True", ",\"message\":\"no\"") "}", "no",
     READINESS_ERROR},
    {JOB "\"status\":{" CONDITION("FailureTarget", "True", "") "}", "FailureTarget",
     READINESS_ERROR},
    {JOB "\"spec\":{\"suspend\":true}", "it is suspended", READINESS_TRANSITIONING},
    {JOB "\"spec\":{\"completions\":4},\"status\":{\"succeeded\":1}", "1 of 4 completions",
     READINESS_TRANSITIONING},
    {POD "\"status\":{\"phase\":\"Succeeded\"}", NULL, READINESS_READY},
    {POD "\"status\":{\"phase\":\"Failed\",\"message\":\"evicted\"}", "evicted", READINESS_ERROR},
    {POD "\"status\":{\"phase\":\"Running\"," CONDITION("Ready", "True", "") "}", NULL,
     READINESS_READY},
    {POD "\"status\":{\"phase\":\"Running\",\"containerStatuses\":[{\"name\":\"a\",\"state\":{"
         "\"waiting\":{\"reason\":\"CrashLoopBackOff\"}}}]}",
     "container a: CrashLoopBackOff", READINESS_ERROR},
    {POD "\"status\":{\"phase\":\"Pending\",\"initContainerStatuses\":[{\"name\":\"i\",\"state\":{"
         "\"waiting\":{\"reason\":\"ImagePullBackOff\"}}}]}",
     "container i: ImagePullBackOff", READINESS_ERROR},
    {POD "\"status\":{\"phase\":\"Pending\"," CONDITION("PodScheduled", "False",
                                                        ",\"message\":\"no node\"") "}",
     "no node", READINESS_TRANSITIONING},
    {POD "\"status\":{\"phase\":\"Pending\"}", "the pod is not ready", READINESS_TRANSITIONING},
    {"\"apiVersion\":\"v1\",\"kind\":\"PersistentVolumeClaim\",\"status\":{\"phase\":\"Bound\"}",
     NULL, READINESS_READY},
    {"\"apiVersion\":\"v1\",\"kind\":\"PersistentVolumeClaim\",\"status\":{\"phase\":\"Lost\"}",
     "its volume is lost", READINESS_ERROR},
    {"\"apiVersion\":\"v1\",\"kind\":\"PersistentVolumeClaim\"", "no volume is bound",
     READINESS_TRANSITIONING},
    {"\"apiVersion\":\"v1\",\"kind\":\"Service\",\"spec\":{\"type\":\"ClusterIP\"}", NULL,
     READINESS_READY},
    {"\"apiVersion\":\"v1\",\"kind\":\"Service\",\"spec\":{\"type\":\"LoadBalancer\"}",
     "it has no address of a load balancer", READINESS_TRANSITIONING},
    {"\"apiVersion\":\"v1\",\"kind\":\"Service\",\"spec\":{\"type\":\"LoadBalancer\"},"
     "\"status\":{\"loadBalancer\":{\"ingress\":[{\"ip\":\"192.0.2.1\"}]}}",
     NULL, READINESS_READY},
    {"\"apiVersion\":\"apiextensions.k8s.io/v1\",\"kind\":\"CustomResourceDefinition\"",
     "the definition is not established", READINESS_TRANSITIONING},
    {"\"apiVersion\":\"apiextensions.k8s.io/v1\",\"kind\":\"CustomResourceDefinition\","
     "\"status\":{" CONDITION("Established", "True", "") "}",
     NULL, READINESS_READY},
    {"\"apiVersion\":\"apiextensions.k8s.io/v1\",\"kind\":\"CustomResourceDefinition\","
     "\"status\":{" CONDITION("NamesAccepted", "False", ",\"message\":\"taken\"") "}",
     "taken", READINESS_ERROR},
    {"\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\"", NULL, READINESS_READY},
    {OTHER "\"status\":{}", NULL, READINESS_READY},
    {OTHER "\"status\":{" CONDITION("Ready", "True", "") "}", NULL, READINESS_READY},
    {OTHER "\"status\":{" CONDITION("Ready", "False", ",\"message\":\"m\"") "}", "m",
     READINESS_TRANSITIONING},
    {OTHER "\"status\":{" CONDITION("Ready", "Unknown", ",\"reason\":\"r\"") "}", "r",
     READINESS_TRANSITIONING},
    {OTHER "\"status\":{" CONDITION("Ready", "False", ",\"reason\":\"Error\"") "}", "Error",
     READINESS_ERROR},
    {OTHER "\"status\":{" CONDITION("Stalled", "True", "") "}", "Stalled", READINESS_ERROR},
    {OTHER "\"status\":{" CONDITION("Available", "False", "") "}", "Available",
     READINESS_TRANSITIONING},
    {OTHER "\"status\":{" CONDITION("Reconciling", "True", "") "}", "Reconciling",
     READINESS_TRANSITIONING},
    {OTHER "\"status\":{" CONDITION("Unheard", "False", "") "}", NULL, READINESS_READY},
    /* What a condition says of the object before its last change is no evidence. */
    {OTHER "\"metadata\":{\"generation\":2},\"status\":{" CONDITION(
         "Ready", "True", ",\"observedGeneration\":1") "}",
     "its controller has not seen the change yet", READINESS_TRANSITIONING},
    {OTHER "\"metadata\":{\"generation\":2},\"status\":{" CONDITION(
         "Stalled", "True", ",\"observedGeneration\":1") "}",
     "its controller has not seen the change yet", READINESS_TRANSITIONING},
    {OTHER "\"metadata\":{\"generation\":2},\"status\":{" CONDITION(
         "Ready", "True", ",\"observedGeneration\":2") "}",
     NULL, READINESS_READY},
    {OTHER "\"metadata\":{\"generation\":2},\"status\":{" CONDITION(
         "Unheard", "True", ",\"observedGeneration\":1") "}",
     NULL, READINESS_READY},
    {"\"apiVersion\":\"v1\",\"kind\":\"ReplicationController\",\"spec\":{\"replicas\":2},"
     "\"status\":{\"availableReplicas\":1}",
     "1 of 2 replicas are available", READINESS_TRANSITIONING},
    {"\"apiVersion\":\"apps/v1\",\"kind\":\"StatefulSet\",\"spec\":{\"replicas\":2,"
     "\"minReadySeconds\":9},\"status\":{\"readyReplicas\":2,\"updatedReplicas\":2,"
     "\"availableReplicas\":1}",
     "1 of 2 replicas are available", READINESS_TRANSITIONING},
    /* The same kind of somebody else's group is judged by its conditions. */
    {"\"apiVersion\":\"example.org/v1\",\"kind\":\"Job\",\"status\":{}", NULL, READINESS_READY},
    {"\"apiVersion\":5,\"kind\":[],\"spec\":7,\"status\":\"x\",\"metadata\":null", NULL,
     READINESS_READY},
};

static void test_each_way_to_stand(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        arena *a = arena_new(0);
        err error;
        yyjson_val *object = json_parse(a, arena_printf(a, "{%s}", rows[i].object), &error);
        check_msg(object != NULL, "row %zu: %s", i, error.text);
        readiness got = readiness_judge(a, object);
        check_msg(got.state == rows[i].state, "row %zu: %.*s", i, STR_ARG(got.message));
        check_text(got.message, rows[i].message ? rows[i].message : "");
        arena_free(a);
    }
}

static void test_ignored_conditions(void **state)
{
    (void)state;
    static const struct {
        const char *ignored;
        bool ready;
    } ways[] = {
        {"[]", false},
        {"[{}]", false},
        {"[{\"type\":\"Ready\"}]", true},
        {"[{\"type\":\"Ready\",\"status\":\"False\"}]", true},
        {"[{\"type\":\"Ready\",\"status\":\"True\"}]", false},
        {"[{\"type\":\"Other\"},{\"reason\":\"Slow\"}]", true},
        {"[{\"type\":7}]", false},
        {"{\"type\":\"Ready\"}", false},
    };
    for (size_t i = 0; i < COUNT_OF(ways); i++) {
        arena *a = arena_new(0);
        yyjson_val *object = json_parse(
            a,
            STR("{" OTHER "\"status\":{" CONDITION("Ready", "False", ",\"reason\":\"Slow\"") "}}"),
            NULL);
        yyjson_val *ignored = json_parse(a, str_of(ways[i].ignored), NULL);
        readiness got = readiness_judge_but(a, object, ignored);
        check_msg((got.state == READINESS_READY) == ways[i].ready, "row %zu", i);
        arena_free(a);
    }
}

static void test_the_entry_of_a_status(void **state)
{
    (void)state;
    arena *a = arena_new(0);
    err error;
    yyjson_val *object = json_parse(a,
                                    STR("{" DEPLOYMENT "\"metadata\":{\"name\":\"shop\","
                                        "\"namespace\":\"web\",\"uid\":\"u\"}}"),
                                    &error);
    readiness got = readiness_judge(a, object);
    buf out = BUF(1000);
    non_ready_put(&out, object, &got);
    check_text(buf_str(&out),
               "{\"kind\":\"Deployment\",\"apiVersion\":\"apps/v1\",\"namespace\":\"web\","
               "\"name\":\"shop\",\"uid\":\"u\",\"summary\":{\"state\":\"in-progress\","
               "\"transitioning\":true,\"message\":[\"0 of 3 replicas are updated\"]}}");
    buf_done(&out);
    arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_way_to_stand),
        cmocka_unit_test(test_ignored_conditions),
        cmocka_unit_test(test_the_entry_of_a_status),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
