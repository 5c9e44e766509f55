/* SPDX-License-Identifier: Apache-2.0 */
/* What Skyhook's own operator left when Drover takes its place: what was complete stays so, what
 * was stopped stays stopped, and no change of files is lost. */
#include "support/check.h"

#include "support/operator_story.h"

#define TUNE "{\"version\":\"1.0.0\",\"image\":\"example.test/tune\""
/* One package; "more" goes into it. */
#define SKYHOOK(more)                                                                              \
    "{\"metadata\":{\"name\":\"sk\",\"finalizers\":[\"skyhook.nvidia.com/skyhook\"]},\"spec\":"    \
    "{\"deploymentPolicy\":\"p\",\"packages\":{\"tune\":" TUNE more "}}}}"
#define FILES(text) ",\"configMap\":{\"a.conf\":\"" text "\",\"b.conf\":\"b\"}"
#define REBOOTS ",\"interrupt\":{\"type\":\"reboot\"}"
#define CONFIG_INTERRUPT                                                                           \
    ",\"configInterrupts\":{\"b.*\":{\"type\":\"service\",\"services\":[\"cron\"]}}"

static const char a_policy[] = "{\"metadata\":{\"name\":\"p\"},\"spec\":{\"default\":{\"budget\":"
                               "{\"count\":3},\"strategy\":{\"exponential\":{\"initialBatch\":1,"
                               "\"failureThreshold\":1}}}}}";

/* ---- what it left ---- */

/* The state of a node, as its operator wrote it. */
static void leave_node(fake *f, int at, const char *stage, const char *state)
{
    char name[16], patch[1024];
    snprintf(name, sizeof name, "n%02d", at);
    snprintf(patch, sizeof patch,
             "{\"metadata\":{\"annotations\":{\"skyhook.nvidia.com/nodeState_sk\":"
             "\"{\\\"tune|1.0.0\\\":{\\\"name\\\":\\\"tune\\\",\\\"version\\\":\\\"1.0.0\\\","
             "\\\"image\\\":\\\"example.test/tune\\\",\\\"stage\\\":\\\"%s\\\",\\\"state\\\":"
             "\\\"%s\\\"}}\",\"skyhook.nvidia.com/version_sk\":\"v0.15.0\"}}}",
             stage, state);
    fake_edit(f, FAKE_NODES, name, patch);
}

static void leave_cordoned(fake *f, int at)
{
    char name[16];
    snprintf(name, sizeof name, "n%02d", at);
    fake_edit(f, FAKE_NODES, name,
              "{\"metadata\":{\"annotations\":{\"skyhook.nvidia.com/cordon_sk\":\"true\"}},"
              "\"spec\":{\"unschedulable\":true}}");
}

/* The package's ConfigMap; owner NULL: the Skyhook. */
static void leave_map(fake *f, const char *text, const char *owner)
{
    char json[512];
    snprintf(json, sizeof json,
             "{\"metadata\":{\"name\":\"sk-tune-1.0.0\",\"labels\":{\"skyhook.nvidia.com/name\":"
             "\"sk\"},\"ownerReferences\":[{\"kind\":\"Skyhook\",\"name\":\"sk\",\"uid\":\"%s\"}]},"
             "\"data\":{\"a.conf\":\"%s\",\"b.conf\":\"b\"}}",
             owner ? owner : fake_text(f, FAKE_SKYHOOKS, "sk", "/metadata/uid"), text);
    fake_create(f, FAKE_MAPS, json);
}

/* "more" is of the status. */
static void leave_status(fake *f, const char *more)
{
    char patch[2048];
    snprintf(patch, sizeof patch,
             "{\"status\":{\"status\":\"in_progress\",\"packageList\":\"tune:1.0.0\"%s}}", more);
    fake_edit(f, FAKE_SKYHOOKS, "sk", patch);
}

/* Nodes, the policy and the Skyhook; nobody has begun. */
static fake *leave(const char *skyhook_json)
{
    fake *f = fake_new();
    f->watch = watch_limits;
    fake_add_nodes(f, NODES);
    fake_create(f, FAKE_POLICIES, a_policy);
    fake_create(f, FAKE_SKYHOOKS, skyhook_json);
    return f;
}

static void check_status(fake *f, const char *pointer, const char *text)
{
    char path[128];
    snprintf(path, sizeof path, "/status/%s", pointer);
    check_text(str_of(fake_text(f, FAKE_SKYHOOKS, "sk", path)), text);
}

static int64_t batch_number(fake *f, const char *key)
{
    char path[128];
    snprintf(path, sizeof path, "/status/compartmentStatuses/__default__/batchState/%s", key);
    return yyjson_get_sint(fake_get(f, FAKE_SKYHOOKS, "sk", path));
}

static size_t jobs_on(const fake *f, const char *stage, int at)
{
    char part[128];
    snprintf(part, sizeof part, "POST " FAKE_JOBS "/sk-tune-1-0-0-%s-n%02d-", stage, at);
    return count_lines(f, part);
}

static size_t jobs_of(const fake *f, const char *stage)
{
    size_t count = 0;
    for (int i = 0; i < NODES; i++)
        count += jobs_on(f, stage, i);
    return count;
}

/* ---- configUpdates ---- */

/* Its last change of files had no interrupt, and what it changed stands there for ever: all nodes
 * are complete at config, whatever interrupt the package has for installs. */
static void complete_stays_complete(void **state)
{
    (void)state;
    fake *f = leave(SKYHOOK(FILES("1") REBOOTS));
    leave_map(f, "1", NULL);
    leave_status(f, ",\"configUpdates\":{\"tune\":[\"a.conf\"]}");
    for (int i = 0; i < NODES; i++)
        leave_node(f, i, "config", "complete");
    for (int starts = 0; starts < 3; starts++) {
        fake_start(f);
        fake_run(f, -1);
        check_status(f, "completeNodes", "8/8");
        check_status(f, "status", "complete");
        assert_int_equal(count_lines(f, "POST " FAKE_JOBS), 0);
        assert_int_equal(count_lines(f, FAKE_NODES "/n"), 0);
        assert_null(fake_get(f, FAKE_SKYHOOKS, "sk", "/status/configUpdates"));
    }
    /* A new node is installed with the interrupt of the package, and nobody else is touched. */
    fake_create(f, FAKE_NODES,
                "{\"metadata\":{\"name\":\"n99\",\"annotations\":{}},\"spec\":{},\"status\":"
                "{\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}],\"nodeInfo\":"
                "{\"bootID\":\"boot-99\"}}}");
    fake_run(f, -1);
    check_status(f, "completeNodes", "9/9");
    assert_int_equal(count_lines(f, "POST " FAKE_JOBS "/sk-tune-1-0-0-"), 4);
    assert_int_equal(count_lines(f, "POST " FAKE_JOBS "/sk-tune-1-0-0-interrupt-n99"), 1);
    fake_free(f);
}

/* What a node still has to do of a change of files has the interrupt of that change. */
static void change_in_the_middle_keeps_its_interrupt(void **state)
{
    (void)state;
    static const char *const stages[][2] = {{"config", "in_progress"},
                                            {"config", "complete"},
                                            {"config", "erroring"},
                                            {"interrupt", "in_progress"},
                                            {"interrupt", "skipped"}};
    for (size_t i = 0; i < COUNT_OF(stages); i++) {
        fake *f = leave(SKYHOOK(FILES("1") REBOOTS CONFIG_INTERRUPT));
        leave_map(f, "1", NULL);
        leave_status(f, ",\"configUpdates\":{\"tune\":[\"a.conf\",\"b.conf\"]}");
        for (int n = 0; n < NODES - 1; n++)
            leave_node(f, n, "post-interrupt", "complete");
        leave_node(f, NODES - 1, stages[i][0], stages[i][1]);
        fake_start(f);
        fake_run(f, -1);
        check_status(f, "completeNodes", "8/8");
        assert_int_equal(jobs_of(f, "interrupt"), 1);
        const char *data = fake_text(f, FAKE_JOBS, first_job(f, "-interrupt-n07-"),
                                     "/spec/template/spec/containers/0/args/3");
        /* {"type":"service_restart","services":["cron"]} */
        check_text(str_of(data),
                   "eyJ0eXBlIjoic2VydmljZV9yZXN0YXJ0Iiwic2VydmljZXMiOlsiY3JvbiJdfQ==");
        assert_int_equal(jobs_of(f, "apply"), 0);
        fake_free(f);
    }
}

/* An install has the interrupt of the package, whatever was updated before. */
static void install_keeps_its_own_interrupt(void **state)
{
    (void)state;
    fake *f = leave(SKYHOOK(FILES("1") REBOOTS CONFIG_INTERRUPT));
    leave_map(f, "1", NULL);
    leave_status(f, ",\"configUpdates\":{\"tune\":[\"a.conf\"]}");
    for (int n = 0; n < NODES; n++)
        leave_node(f, n, n == 0 ? "apply" : "config", "complete");
    fake_start(f);
    fake_run(f, -1);
    check_status(f, "completeNodes", "8/8");
    assert_int_equal(jobs_of(f, "interrupt"), 1);
    check_text(str_of(fake_text(f, FAKE_JOBS, first_job(f, "-interrupt-n00-"),
                                "/spec/template/spec/containers/0/args/3")),
               "eyJ0eXBlIjoibm9kZV9yZXN0YXJ0In0=");
    fake_free(f);
}

/* ---- batches ---- */

#define BATCHES(more)                                                                              \
    ",\"nodeOrderOffset\":5,\"compartmentStatuses\":{\"__default__\":{\"matched\":8,\"ceiling\":3" \
    ",\"inProgress\":0,\"completed\":2,\"progressPercent\":25,\"batchState\":{\"currentBatch\":3," \
    "\"completedNodes\":2,\"failedNodes\":3,\"lastBatchSize\":3,\"lastBatchFailed\":true" more "}}}"

static fake *leave_stopped(void)
{
    fake *f = leave(SKYHOOK(""));
    leave_status(f, BATCHES(",\"consecutiveFailures\":1,\"shouldStop\":true"));
    for (int n = 0; n < 5; n++)
        leave_node(f, n, n < 2 ? "config" : "apply", n < 2 ? "complete" : "erroring");
    leave_node(f, 5, "apply", "in_progress");
    leave_cordoned(f, 5);
    return f;
}

static void check_stopped(fake *f)
{
    fake_run(f, 3600 * 1000);
    assert_int_equal(count_lines(f, "POST " FAKE_JOBS), 0);
    check_status(f, "completeNodes", "2/8");
    assert_true(yyjson_get_bool(fake_get(f, FAKE_SKYHOOKS, "sk",
                                         "/status/compartmentStatuses/__default__/batchState/"
                                         "shouldStop")));
    assert_int_equal(batch_number(f, "currentBatch"), 3);
    assert_int_equal(batch_number(f, "consecutiveFailures"), 1);
    assert_int_equal(batch_number(f, "completedNodes"), 2);
    assert_int_equal(batch_number(f, "failedNodes"), 3);
    assert_int_equal(batch_number(f, "lastBatchSize"), 3);
    assert_int_equal(
        yyjson_get_sint(fake_get(f, FAKE_SKYHOOKS, "sk", "/status/nodeOrderOffset")), 5);
    assert_true(yyjson_get_bool(fake_get(f, FAKE_NODES, "n05", "/spec/unschedulable")));
}

/* Until somebody resets it, or gives the nodes something else to do. */
static void stopped_stays_stopped(void **state)
{
    (void)state;
    static const char *const ways[] = {
        "{\"metadata\":{\"annotations\":{\"skyhook.nvidia.com/acts\":"
        "\"[{\\\"act\\\":\\\"resetBatches\\\"}]\"}}}",
        "{\"spec\":{\"packages\":{\"tune\":{\"env\":[{\"name\":\"A\",\"value\":\"b\"}]}}}}",
        "{\"spec\":{\"packages\":{\"tune\":{\"version\":\"1.0.1\"}}}}"};
    for (size_t i = 0; i < COUNT_OF(ways); i++) {
        fake *f = leave_stopped();
        fake_start(f);
        check_stopped(f);
        fake_start(f);
        check_stopped(f);
        fake_edit(f, FAKE_SKYHOOKS, "sk", ways[i]);
        fake_run(f, -1);
        check_status(f, "completeNodes", "8/8");
        assert_false(yyjson_get_bool(fake_get(f, FAKE_NODES, "n05", "/spec/unschedulable")));
        fake_free(f);
    }
}

/* Whoever stops the old operator to repair what had stopped the rollout has repaired it. */
static void stop_ends_with_an_edit_meanwhile(void **state)
{
    (void)state;
    fake *f = leave_stopped();
    fake_edit(f, FAKE_SKYHOOKS, "sk",
              "{\"spec\":{\"packages\":{\"tune\":{\"version\":\"1.0.1\"}}}}");
    fake_start(f);
    fake_run(f, 500);
    assert_int_equal(batch_number(f, "currentBatch"), 1);
    fake_run(f, -1);
    check_status(f, "completeNodes", "8/8");
    assert_int_equal(count_lines(f, "POST " FAKE_JOBS "/sk-tune-1-0-1-upgrade-"), 6);
    fake_free(f);
}

/* A Skyhook that only the old operator took for a good one: it is left alone until it is repaired,
 * and is no other one then. */
static void stop_of_one_that_is_repaired(void **state)
{
    (void)state;
    fake *f = leave_stopped();
    fake_edit(f, FAKE_SKYHOOKS, "sk",
              "{\"spec\":{\"packages\":{\"tune\":{\"dependsOn\":{\"tune\":\"1.0.0\"}}}}}");
    fake_start(f);
    fake_run(f, 10000);
    assert_int_equal(f->writes, 0);
    fake_edit(f, FAKE_SKYHOOKS, "sk",
              "{\"spec\":{\"packages\":{\"tune\":{\"dependsOn\":null}}}}");
    check_stopped(f);
    assert_int_equal(f->sides[0].begun, 2);
    fake_free(f);
}

static int64_t order_of(fake *f, const char *job)
{
    yyjson_val *env =
        fake_get(f, FAKE_JOBS, job, "/spec/template/spec/initContainers/1/env");
    yyjson_arr_iter walk = yyjson_arr_iter_with(env);
    for (yyjson_val *one; (one = yyjson_arr_iter_next(&walk));)
        if (yyjson_equals_str(yyjson_obj_get(one, "name"), "SKYHOOK_NODE_ORDER"))
            return strtoll(yyjson_get_str(yyjson_obj_get(one, "value")), NULL, 10);
    return -1;
}

/* The next batch is what it would have been, and nodes are counted on. */
static void batches_go_on(void **state)
{
    (void)state;
    fake *f = leave(SKYHOOK(""));
    leave_status(f, ",\"nodeOrderOffset\":2,\"compartmentStatuses\":{\"__default__\":{"
                    "\"batchState\":{\"currentBatch\":2,\"completedNodes\":2,"
                    "\"lastBatchSize\":2}}}");
    for (int n = 0; n < 2; n++)
        leave_node(f, n, "config", "complete");
    fake_start(f);
    fake_run(f, 500);
    assert_int_equal(jobs_of(f, "apply"), 3); /* twice as many as the last one, or the budget */
    assert_int_equal(order_of(f, first_job(f, "-apply-n02-")), 2);
    assert_int_equal(order_of(f, first_job(f, "-apply-n04-")), 4);
    fake_run(f, -1);
    check_status(f, "completeNodes", "8/8");
    fake_free(f);
}

/* What is nonsense counts as nothing. */
static void nonsense_is_nothing(void **state)
{
    (void)state;
    static const char *const statuses[] = {
        ",\"nodeOrderOffset\":-3,\"configUpdates\":[1],\"compartmentStatuses\":[]",
        ",\"nodeOrderOffset\":\"a\",\"configUpdates\":{\"tune\":\"a.conf\",\"other\":[\"x\"]}",
        ",\"configUpdates\":{\"tune\":[1,null,\"\"]},\"compartmentStatuses\":{\"__default__\":{"
        "\"batchState\":{\"currentBatch\":18446744073709551615,\"lastBatchSize\":"
        "9223372036854775807,\"failedNodes\":-1,\"shouldStop\":\"yes\"}},\"a\\nb\":{"
        "\"batchState\":{\"currentBatch\":2,\"shouldStop\":true}},\"c\":7}",
        ",\"packageList\":\",:,tune:,tune\"", ",\"packageList\":7", ",\"drover\":7"};
    for (size_t i = 0; i < COUNT_OF(statuses); i++) {
        fake *f = leave(SKYHOOK(FILES("1")));
        leave_status(f, statuses[i]);
        fake_start(f);
        fake_run(f, -1);
        check_status(f, "completeNodes", "8/8");
        assert_int_equal(jobs_of(f, "apply"), NODES);
        fake_start(f);
        fake_run(f, -1);
        assert_int_equal(jobs_of(f, "apply"), NODES);
        fake_free(f);
    }
}

/* ---- cordons ---- */

/* A node that had become complete, and was to be given back next. */
static void complete_ones_are_given_back(void **state)
{
    (void)state;
    fake *f = leave(SKYHOOK(REBOOTS));
    leave_status(f, "");
    for (int n = 0; n < NODES; n++)
        leave_node(f, n, "post-interrupt", "complete");
    leave_cordoned(f, 3);
    fake_start(f);
    fake_run(f, -1);
    check_status(f, "completeNodes", "8/8");
    assert_false(yyjson_get_bool(fake_get(f, FAKE_NODES, "n03", "/spec/unschedulable")));
    check_text(str_of(fake_text(f, FAKE_NODES, "n03",
                                "/metadata/annotations/skyhook.nvidia.com~1cordon_sk")),
               "");
    fake_free(f);
}

/* ---- changes of files that nobody has got yet ---- */

/* All nodes but the last are complete, with what the ConfigMap has. */
static fake *leave_held_back(const char *skyhook_json)
{
    fake *f = leave(skyhook_json);
    leave_map(f, "old", NULL);
    leave_status(f, "");
    for (int n = 0; n < NODES - 1; n++)
        leave_node(f, n, "config", "complete");
    return f;
}

static void check_all_have_it(fake *f)
{
    check_status(f, "completeNodes", "8/8");
    check_text(str_of(fake_text(f, FAKE_MAPS, "sk-tune-1.0.0", "/data/a.conf")), "new");
    for (int n = 0; n < NODES; n++)
        check_msg(jobs_on(f, "config", n) >= 1, "n%02d has the old files\n%s", n, f->log.ptr);
}

static void held_back_change_reaches_all(void **state)
{
    (void)state;
    fake *f = leave_held_back(SKYHOOK(FILES("new") REBOOTS CONFIG_INTERRUPT));
    for (int n = 0; n < NODES - 1; n++)
        leave_node(f, n, "post-interrupt", "complete");
    fake_start(f);
    fake_run(f, 500);
    yyjson_val *updates = fake_get(f, FAKE_SKYHOOKS, "sk", "/status/configUpdates/tune");
    assert_int_equal(yyjson_arr_size(updates), 1);
    assert_true(list_has(updates, "a.conf"));
    fake_run(f, -1);
    check_all_have_it(f);
    assert_int_equal(jobs_of(f, "apply"), 1);
    /* The change itself has no interrupt, the install has. */
    assert_int_equal(jobs_of(f, "interrupt"), 1);
    assert_int_equal(jobs_on(f, "interrupt", NODES - 1), 1);
    fake_free(f);
}

/* As the manual asks for it: paused, then taken over, then resumed. */
static void change_in_a_pause_reaches_all(void **state)
{
    (void)state;
    fake *f = leave_held_back(SKYHOOK(FILES("new")));
    leave_node(f, NODES - 1, "config", "complete");
    fake_edit(f, FAKE_SKYHOOKS, "sk",
              "{\"metadata\":{\"annotations\":{\"skyhook.nvidia.com/pause\":\"true\"}}}");
    fake_start(f);
    fake_run(f, 10000);
    check_status(f, "status", "paused");
    check_status(f, "completeNodes", "0/8");
    fake_start(f); /* the operator is replaced meanwhile */
    fake_run(f, 10000);
    assert_int_equal(count_lines(f, "POST " FAKE_JOBS), 0);
    fake_edit(f, FAKE_SKYHOOKS, "sk",
              "{\"metadata\":{\"annotations\":{\"skyhook.nvidia.com/pause\":null}}}");
    fake_run(f, -1);
    check_all_have_it(f);
    assert_int_equal(jobs_of(f, "config"), NODES);
    fake_free(f);
}

/* Killed after any of its writes, or one of them goes wrong: what the nodes have is not known from
 * the ConfigMap for long. (What a Job's refusal leads to is a stop.) */
static void change_and_faults(void **state)
{
    (void)state;
    for (int fault = FAULT_KILL; fault < FAKE_FAULT_COUNT; fault++)
        for (uint64_t at = 1; fault != FAULT_INVALID && at < 60; at++) {
            fake *f = leave_held_back(SKYHOOK(FILES("new")));
            fake_arm(f, (fake_plan){.fault = (fake_fault)fault, .at = at});
            fake_start(f);
            fake_run(f, -1);
            check_all_have_it(f);
            fake_free(f);
        }
}

/* An edit while Drover is away, too, on nodes that were done before it came. */
static void change_after_the_takeover(void **state)
{
    (void)state;
    fake *f = leave_held_back(SKYHOOK(FILES("old")));
    leave_node(f, NODES - 1, "config", "complete");
    fake_start(f);
    fake_run(f, -1);
    check_status(f, "completeNodes", "8/8");
    assert_int_equal(count_lines(f, "POST " FAKE_JOBS), 0);
    buf saved = BUF(1u << 20); /* from which plans go on */
    assert_true(engine_save(node_shell_engine(f->shell), &saved));
    assert_int_equal(count_in(&saved, "\"found\":[[\"tune\",\"1.0.0\",\"a.conf="), 1);
    buf_done(&saved);
    fake_end_side(&f->sides[0]);
    fake_edit(f, FAKE_SKYHOOKS, "sk",
              "{\"spec\":{\"packages\":{\"tune\":{\"configMap\":{\"a.conf\":\"new\"}}}}}");
    fake_start(f);
    fake_run(f, -1);
    check_all_have_it(f);
    fake_free(f);
}

static bool is_map(fake *f, const char *name)
{
    (void)f;
    return strcmp(name, "sk-tune-1.0.0") == 0;
}

/* While it cannot be read nothing is decided, and an edit meanwhile changes nothing of that. */
static void unreadable_files_are_waited_for(void **state)
{
    (void)state;
    fake *f = leave_held_back(SKYHOOK(FILES("newer")));
    f->hides = is_map;
    fake_start(f);
    fake_run(f, 600 * 1000);
    assert_false(node_shell_restored(f->shell));
    assert_int_equal(f->writes, 0);
    assert_in_range(count_lines(f, "GET " FAKE_MAPS), 15, 25);
    fake_edit(f, FAKE_SKYHOOKS, "sk",
              "{\"spec\":{\"packages\":{\"tune\":{\"configMap\":{\"a.conf\":\"new\"}}}}}");
    fake_run(f, 40 * 1000);
    assert_int_equal(f->writes, 0);
    f->hides = NULL;
    fake_run(f, -1);
    check_all_have_it(f);
    fake_free(f);
}

/* What is not the Skyhook's says nothing of it; neither does what is not there. */
static void other_files_say_nothing(void **state)
{
    (void)state;
    for (int there = 0; there < 2; there++) {
        fake *f = leave(SKYHOOK(FILES("new")));
        if (there)
            leave_map(f, "old", "somebody-else");
        leave_status(f, "");
        for (int n = 0; n < NODES; n++)
            leave_node(f, n, "config", "complete");
        fake_start(f);
        fake_run(f, -1);
        check_status(f, "completeNodes", "8/8");
        assert_int_equal(count_lines(f, "POST " FAKE_JOBS), 0);
        fake_free(f);
    }
}

/* A pod of the old operator that ends with the old files has not brought the new ones. */
static void raw_pod_with_old_files(void **state)
{
    (void)state;
    fake *f = leave_held_back(SKYHOOK(FILES("new")));
    leave_node(f, NODES - 1, "config", "in_progress");
    fake_create(
        f, FAKE_PODS,
        "{\"metadata\":{\"name\":\"raw\",\"namespace\":\"skyhook\",\"labels\":"
        "{\"skyhook.nvidia.com/name\":\"sk\",\"skyhook.nvidia.com/package\":\"tune-1.0.0\"},"
        "\"annotations\":{\"skyhook.nvidia.com/package\":\"{\\\"name\\\":\\\"tune\\\","
        "\\\"version\\\":\\\"1.0.0\\\",\\\"skyhook\\\":\\\"sk\\\",\\\"stage\\\":\\\"config\\\","
        "\\\"image\\\":\\\"example.test/tune\\\"}\"}},\"spec\":{\"nodeName\":\"n07\"},"
        "\"status\":{\"phase\":\"Running\",\"initContainerStatuses\":"
        "[{\"state\":{\"terminated\":{\"exitCode\":0}}}]}}");
    fake_start(f);
    fake_run(f, -1);
    assert_null(fake_find(f, FAKE_PODS, "raw"));
    check_all_have_it(f);
    assert_int_equal(jobs_on(f, "config", NODES - 1), 1);
    fake_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(complete_stays_complete),
        cmocka_unit_test(change_in_the_middle_keeps_its_interrupt),
        cmocka_unit_test(install_keeps_its_own_interrupt),
        cmocka_unit_test(stopped_stays_stopped),
        cmocka_unit_test(stop_ends_with_an_edit_meanwhile),
        cmocka_unit_test(stop_of_one_that_is_repaired),
        cmocka_unit_test(batches_go_on),
        cmocka_unit_test(nonsense_is_nothing),
        cmocka_unit_test(complete_ones_are_given_back),
        cmocka_unit_test(held_back_change_reaches_all),
        cmocka_unit_test(change_in_a_pause_reaches_all),
        cmocka_unit_test(change_and_faults),
        cmocka_unit_test(change_after_the_takeover),
        cmocka_unit_test(unreadable_files_are_waited_for),
        cmocka_unit_test(other_files_say_nothing),
        cmocka_unit_test(raw_pod_with_old_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
