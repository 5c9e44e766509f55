/* SPDX-License-Identifier: Apache-2.0 */
/* What the operator leaves behind, and what it finds left by others: failed Jobs, status entries,
 * pods of an older operator. */
#include "support/check.h"

#include "operator/failed_jobs.h"
#include "support/fake_cluster.h"

static const char skyhook_plain[] =
    "{\"metadata\":{\"name\":\"sk\"},\"spec\":{\"packages\":{\"tune\":"
    "{\"version\":\"1.0.0\",\"image\":\"example.test/tune\"}}}}";

static fake *begin(int nodes)
{
    fake *f = fake_new();
    fake_add_nodes(f, nodes);
    fake_create(f, FAKE_SKYHOOKS, skyhook_plain);
    fake_start(f);
    return f;
}

static size_t count_lines(const fake *f, const char *part)
{
    size_t count = 0;
    str rest = buf_str(&f->log);
    for (size_t at; (at = str_find(rest, str_of(part))) != SIZE_MAX; count++)
        rest = str_part(rest, at + 1, SIZE_MAX);
    return count;
}

static size_t count_jobs(const fake *f, const char *part)
{
    size_t count = 0;
    for (size_t i = 0; i < f->count; i++)
        count += strcmp(f->objects[i].collection, FAKE_JOBS) == 0 &&
                 strstr(f->objects[i].name, part) != NULL;
    return count;
}

/* ---- failed Jobs ---- */

static bool fails_five_times(fake *f, const char *job)
{
    (void)f;
    for (char n = '1'; n <= '5'; n++) {
        char part[] = "-apply-n00-N-";
        part[sizeof part - 3] = n;
        if (strstr(job, part))
            return true;
    }
    return false;
}

static void failed_jobs_stay_and_go(void **state)
{
    (void)state;
    fake *f = begin(2);
    f->fails = fails_five_times;
    size_t most = 0;
    for (int i = 0;
         i < 24 * 60 && count_lines(f, "POST " FAKE_JOBS "/sk-tune-1-0-0-config-n00") == 0; i++) {
        fake_run(f, 60 * 1000);
        size_t now = count_jobs(f, "-apply-n00-");
        most = now > most ? now : most;
    }
    assert_int_equal(count_lines(f, "POST " FAKE_JOBS "/sk-tune-1-0-0-apply-n00"), 6);
    check_msg(most <= FAILED_JOBS_OF_STAGE + 1, "%zu Jobs of one stage", most);
    fake_run(f, -1);
    /* It has succeeded: the one that did is left, and those of the other node. */
    assert_int_equal(count_jobs(f, "-apply-n00-"), 1);
    assert_int_equal(count_lines(f, "DELETE " FAKE_JOBS), 5);
    assert_int_equal(count_jobs(f, "-n01-"), 2);
    fake_free(f);
}

/* A crash before their deletion was sent: the next operator deletes them. */
static void failed_jobs_go_after_a_restart(void **state)
{
    (void)state;
    for (uint64_t kill_at = 1; kill_at < 60; kill_at++) {
        fake *f = begin(1);
        f->fails = fails_five_times;
        fake_arm(f, (fake_plan){.fault = FAULT_KILL, .at = kill_at});
        fake_run(f, -1);
        fake_start(f);
        fake_run(f, -1);
        check_msg(count_jobs(f, "-apply-n00-") == 1, "%zu Jobs after a kill at write %llu\n%s",
                  count_jobs(f, "-apply-n00-"), (unsigned long long)kill_at, f->log.ptr);
        fake_free(f);
    }
}

/* ---- what the status shows ---- */

static bool shows(fake *f, const char *map, const char *node_name)
{
    char path[128];
    snprintf(path, sizeof path, "/status/%s/%s", map, node_name);
    return fake_get(f, FAKE_SKYHOOKS, "sk", path) != NULL;
}

static void check_shown(fake *f, const char *node_name, bool wanted)
{
    static const char *const maps[] = {"nodeState", "nodeStatus", "nodeBootIds"};
    for (size_t i = 0; i < COUNT_OF(maps); i++)
        check_msg(shows(f, maps[i], node_name) == wanted, "%s of %s", maps[i], node_name);
    check_msg(wanted || !shows(f, "nodePriority", node_name), "nodePriority of %s", node_name);
}

static void nodes_that_left_are_not_shown(void **state)
{
    (void)state;
    fake *f = begin(4);
    fake_run(f, -1);
    check_shown(f, "n00", true);
    check_text(str_of(fake_text(f, FAKE_SKYHOOKS, "sk", "/status/nodeBootIds/n01")), "boot-01");
    fake_delete(f, FAKE_NODES, "n00");
    fake_run(f, -1);
    check_shown(f, "n00", false);
    /* While nobody looks. */
    fake_delete(f, FAKE_NODES, "n01");
    fake_start(f);
    fake_run(f, -1);
    check_shown(f, "n01", false);
    check_shown(f, "n02", true);
    check_text(str_of(fake_text(f, FAKE_SKYHOOKS, "sk", "/status/completeNodes")), "2/2");
    fake_reboot(f, "n02", true);
    fake_run(f, -1);
    check_msg(strncmp(fake_text(f, FAKE_SKYHOOKS, "sk", "/status/nodeBootIds/n02"), "again-", 6) ==
                  0,
              "the boot is not shown");
    fake_free(f);
}

/* A write that did not take effect takes nobody with it. */
static void nodes_that_left_go_after_a_fault(void **state)
{
    (void)state;
    static const fake_fault faults[] = {FAULT_KILL, FAULT_CONFLICT, FAULT_LOST};
    for (size_t i = 0; i < COUNT_OF(faults); i++) {
        fake *f = begin(3);
        fake_run(f, -1);
        fake_delete(f, FAKE_NODES, "n00");
        fake_arm(f, (fake_plan){.fault = faults[i], .at = 1});
        fake_run(f, -1);
        check_shown(f, "n00", false);
        check_shown(f, "n01", true);
        fake_free(f);
    }
}

static void compartments_that_are_gone_are_not_shown(void **state)
{
    (void)state;
    fake *f = fake_new();
    fake_add_nodes(f, 3);
    fake_create(
        f, FAKE_POLICIES,
        "{\"metadata\":{\"name\":\"p\"},\"spec\":{\"default\":{\"budget\":{\"count\":3},"
        "\"strategy\":{\"fixed\":{\"initialBatch\":3}}},"
        "\"compartments\":[{\"name\":\"east\",\"selector\":{\"matchLabels\":{\"pool\":"
        "\"a\"}},\"budget\":{\"count\":1},\"strategy\":{\"fixed\":{\"initialBatch\":1}}}]}}");
    fake_create(f, FAKE_SKYHOOKS,
                "{\"metadata\":{\"name\":\"sk\"},\"spec\":{\"deploymentPolicy\":\"p\",\"packages\":"
                "{\"tune\":{\"version\":\"1.0.0\",\"image\":\"example.test/tune\"}}}}");
    fake_start(f);
    fake_run(f, -1);
    assert_true(shows(f, "compartmentStatuses", "east"));
    fake_edit(f, FAKE_POLICIES, "p",
              "{\"spec\":{\"compartments\":[{\"name\":\"west\",\"selector\":{\"matchLabels\":"
              "{\"pool\":\"a\"}},\"budget\":{\"count\":1},"
              "\"strategy\":{\"fixed\":{\"initialBatch\":1}}}]}}");
    fake_run(f, -1);
    assert_true(shows(f, "compartmentStatuses", "west"));
    assert_false(shows(f, "compartmentStatuses", "east"));
    fake_free(f);
}

/* ---- conditions that are there only while they hold ---- */

/* The message of a condition; NULL: there is none. */
static const char *message_of(fake *f, const char *type, const char **ret_reason)
{
    yyjson_arr_iter walk =
        yyjson_arr_iter_with(fake_get(f, FAKE_SKYHOOKS, "sk", "/status/conditions"));
    for (yyjson_val *one; (one = yyjson_arr_iter_next(&walk));)
        if (yyjson_equals_str(yyjson_obj_get(one, "type"), type)) {
            *ret_reason = yyjson_get_str(yyjson_obj_get(one, "reason"));
            return yyjson_get_str(yyjson_obj_get(one, "message"));
        }
    return NULL;
}

static void check_condition(fake *f, const char *type, const char *why, const char *text)
{
    const char *found_why = "";
    const char *found = message_of(f, type, &found_why);
    if (!text) {
        check_msg(!found, "%s: %s", type, found);
        return;
    }
    check_msg(found, "no condition %s", type);
    check_text(str_of(found), text);
    check_text(str_of(found_why), why);
}

static const char skyhook_pair[] =
    "{\"metadata\":{\"name\":\"sk\"},\"spec\":{\"packages\":{\"base\":{\"version\":\"1.0.0\","
    "\"image\":\"example.test/base\",\"uninstall\":{\"enabled\":true,\"apply\":false}},\"top\":"
    "{\"version\":\"1.0.0\",\"image\":\"example.test/top\",\"dependsOn\":{\"base\":\"1.0.0\"}}}}}";

static bool uninstall_fails(fake *f, const char *job)
{
    (void)f;
    return strstr(job, "-uninstall-") != NULL;
}

static void uninstalls_are_told(void **state)
{
    (void)state;
    fake *f = fake_new();
    fake_add_nodes(f, 2);
    fake_create(f, FAKE_SKYHOOKS, skyhook_pair);
    fake_start(f);
    fake_run(f, -1);
    check_condition(f, "UninstallInProgress", NULL, NULL);
    f->fails = uninstall_fails;
    fake_edit(f, FAKE_SKYHOOKS, "sk",
              "{\"spec\":{\"packages\":{\"base\":{\"uninstall\":{\"apply\":true}},\"top\":"
              "{\"version\":\"1.1.0\"}}}}");
    fake_run(f, 5000);
    check_condition(f, "UninstallInProgress", "UninstallInProgress",
                    "One or more packages are being uninstalled");
    check_condition(f, "UninstallFailed", "UninstallPodFailing",
                    "One or more uninstall pods are failing");
    check_condition(f, "Blocked", "DependencyUninstalled",
                    "package top is blocked: dependency base is being uninstalled");
    f->fails = NULL;
    fake_run(f, -1);
    check_condition(f, "UninstallInProgress", NULL, NULL);
    check_condition(f, "UninstallFailed", NULL, NULL);
    check_condition(f, "Blocked", "DependencyUninstalled",
                    "package top is blocked: dependency base has been uninstalled");
    fake_edit(f, FAKE_SKYHOOKS, "sk",
              "{\"spec\":{\"packages\":{\"base\":{\"uninstall\":{\"apply\":false}}}}}");
    fake_run(f, -1);
    check_condition(f, "Blocked", NULL, NULL);
    fake_free(f);
}

static void deletions_that_wait_are_told(void **state)
{
    (void)state;
    fake *f = fake_new();
    fake_add_nodes(f, 2);
    fake_create(f, FAKE_SKYHOOKS, skyhook_pair);
    fake_start(f);
    fake_run(f, -1);
    fake_edit(f, FAKE_SKYHOOKS, "sk",
              "{\"metadata\":{\"deletionTimestamp\":\"2026-11-16T07:00:00Z\",\"annotations\":"
              "{\"skyhook.nvidia.com/pause\":\"true\"}}}");
    fake_run(f, -1);
    check_condition(f, "DeletionBlocked", "PausedWithPendingUninstall",
                    "paused with uninstall work pending; unpause to let it complete");
    fake_edit(f, FAKE_SKYHOOKS, "sk",
              "{\"metadata\":{\"annotations\":{\"skyhook.nvidia.com/pause\":null,"
              "\"skyhook.nvidia.com/disable\":\"true\"}}}");
    fake_run(f, -1);
    check_condition(f, "DeletionBlocked", "DisabledWithPendingUninstall",
                    "disabled with uninstall work pending; re-enable to let it complete");
    fake_edit(f, FAKE_SKYHOOKS, "sk",
              "{\"metadata\":{\"annotations\":{\"skyhook.nvidia.com/disable\":null}}}");
    fake_run(f, -1);
    assert_null(fake_find(f, FAKE_SKYHOOKS, "sk"));
    fake_free(f);
}

static void malformed_states_are_told(void **state)
{
    (void)state;
    fake *f = fake_new();
    fake_add_nodes(f, 8);
    for (int i = 1; i < 8; i++) {
        char name[16];
        snprintf(name, sizeof name, "n%02d", i);
        fake_edit(f, FAKE_NODES, name,
                  "{\"metadata\":{\"annotations\":{\"skyhook.nvidia.com/nodeState_sk\":\"{\"}}}");
    }
    fake_create(f, FAKE_SKYHOOKS, skyhook_plain);
    fake_start(f);
    fake_run(f, -1);
    check_condition(f, "NodeStateMalformed", "ParseError",
                    "nodeState annotation cannot be parsed on 7 node(s): n01, n02, n03, n04, n05 "
                    "and 2 more");
    /* The other node goes its way. */
    check_text(str_of(fake_text(f, FAKE_SKYHOOKS, "sk", "/status/completeNodes")), "1/8");
    fake_free(f);
}

static const char *note_of(fake *f, const char *key)
{
    char path[128];
    snprintf(path, sizeof path, "/metadata/annotations/skyhook.nvidia.com~1%s", key);
    return fake_text(f, FAKE_NODES, "n03", path);
}

/* A state that somebody broke is no wish to run everything again. */
static void broken_states_are_left(void **state)
{
    (void)state;
    for (int restarted = 0; restarted < 2; restarted++) {
        fake *f = fake_new();
        fake_add_nodes(f, 8);
        fake_create(f, FAKE_SKYHOOKS, skyhook_plain);
        fake_start(f);
        fake_run(f, -1);
        char good[512];
        snprintf(good, sizeof good, "%s", note_of(f, "nodeState_sk"));
        fake_edit(f, FAKE_NODES, "n03",
                  "{\"metadata\":{\"annotations\":{\"skyhook.nvidia.com/nodeState_sk\":\"{\"}}}");
        if (restarted)
            fake_start(f);
        buf_clear(&f->log);
        fake_run(f, -1);
        check_condition(f, "NodeStateMalformed", "ParseError",
                        "nodeState annotation cannot be parsed on 1 node(s): n03");
        check_text(str_of(note_of(f, "nodeState_sk")), "{");
        check_msg(str_find(buf_str(&f->log), STR(FAKE_JOBS)) == SIZE_MAX, "%s", f->log.ptr);
        buf edit = BUF(4096);
        buf_addz(&edit, "{\"metadata\":{\"annotations\":{\"skyhook.nvidia.com/nodeState_sk\":");
        buf_add_json(&edit, str_of(good));
        buf_addz(&edit, "}}}");
        fake_edit(f, FAKE_NODES, "n03", edit.ptr);
        buf_done(&edit);
        fake_run(f, -1);
        check_text(str_of(fake_text(f, FAKE_SKYHOOKS, "sk", "/status/completeNodes")), "8/8");
        check_msg(str_find(buf_str(&f->log), STR(FAKE_JOBS)) == SIZE_MAX, "%s", f->log.ptr);
        fake_free(f);
    }
}

/* What of a Skyhook's record somebody took out, or broke, counts as not there. */
static void broken_records_stop_nobody(void **state)
{
    (void)state;
    static const char *const records[] = {
        "{}",
        "[]",
        "{\"cohort\":null}",
        "{\"cohort\":[1]}",
        "{\"cohort\":{\"__default__\":7}}",
        "{\"cohort\":{\"__default__\":{\"members\":7,\"retrying\":[7]}}}",
        "{\"claims\":{\"n01\":\"x\"},\"packages\":7,\"found\":7}",
        "{\"claims\":[1,2],\"names\":7}",
    };
    for (size_t i = 0; i < COUNT_OF(records); i++) {
        fake *f = begin(4);
        fake_run(f, -1);
        buf edit = BUF(4096);
        buf_addz(&edit, "{\"status\":{\"drover\":");
        buf_add_json(&edit, str_of(records[i]));
        buf_addz(&edit, "}}");
        fake_edit(f, FAKE_SKYHOOKS, "sk", edit.ptr);
        buf_done(&edit);
        fake_start(f);
        fake_edit(f, FAKE_SKYHOOKS, "sk",
                  "{\"spec\":{\"packages\":{\"tune\":{\"version\":\"2.0.0\"}}}}");
        fake_run(f, -1);
        check_msg(strcmp(fake_text(f, FAKE_SKYHOOKS, "sk", "/status/completeNodes"), "4/4") == 0,
                  "%s", records[i]);
        assert_int_equal(count_jobs(f, "sk-tune-2-0-0-config-"), 4);
        fake_free(f);
    }
}

/* A node that is worked on shows that it is held, and by what, and nobody else is written to. */
static void halts_are_shown_on_nodes(void **state)
{
    (void)state;
    fake *f = fake_new();
    fake_add_nodes(f, 8);
    fake_create(f, FAKE_SKYHOOKS,
                "{\"metadata\":{\"name\":\"sk\",\"finalizers\":[\"skyhook.nvidia.com/skyhook\"]},"
                "\"spec\":{\"interruptionBudget\":{\"count\":1},"
                "\"packages\":{\"tune\":{\"version\":\"1.0.0\",\"image\":"
                "\"example.test/tune\"}}}}");
    fake_start(f);
    f->job_ms = 60000;
    fake_run(f, 2500);
    check_text(str_of(fake_text(f, FAKE_NODES, "n00",
                                "/metadata/labels/skyhook.nvidia.com~1"
                                "status_sk")),
               "in_progress");
    static const char *const rows[][2] = {{"\"skyhook.nvidia.com/pause\":\"true\"", "paused"},
                                          {"\"skyhook.nvidia.com/pause\":null,"
                                           "\"skyhook.nvidia.com/disable\":\"true\"",
                                           "disabled"},
                                          {"\"skyhook.nvidia.com/disable\":null", "in_progress"}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char edit[256];
        snprintf(edit, sizeof edit, "{\"metadata\":{\"annotations\":{%s}}}", rows[i][0]);
        buf_clear(&f->log);
        fake_edit(f, FAKE_SKYHOOKS, "sk", edit);
        fake_run(f, 1500);
        check_text(str_of(fake_text(f, FAKE_NODES, "n00",
                                    "/metadata/labels/skyhook.nvidia.com~1status_sk")),
                   rows[i][1]);
        check_msg(str_find(buf_str(&f->log), STR(FAKE_NODES "/n05")) == SIZE_MAX, "%s", f->log.ptr);
    }
    fake_free(f);
}

/* ---- pods of an older operator ---- */

#define OLDER(stage, state)                                                                        \
    "{\"metadata\":{\"annotations\":{\"skyhook.nvidia.com/nodeState_sk\":"                         \
    "\"{\\\"tune|1.0.0\\\":{\\\"name\\\":\\\"tune\\\",\\\"version\\\":\\\"1.0.0\\\","              \
    "\\\"image\\\":\\\"example.test/tune\\\",\\\"stage\\\":\\\"" stage                             \
    "\\\",\\\"state\\\":\\\"" state "\\\"}}\"}}}"

static void add_raw(fake *f, const char *states)
{
    buf text = BUF(8192);
    fake_edit(f, FAKE_NODES, "n00", OLDER("apply", "in_progress"));
    buf_addf(&text,
             "{\"metadata\":{\"name\":\"raw\",\"namespace\":\"skyhook\",\"labels\":"
             "{\"skyhook.nvidia.com/name\":\"sk\",\"skyhook.nvidia.com/package\":\"tune-1.0.0\"},"
             "\"annotations\":{\"skyhook.nvidia.com/package\":\"{\\\"name\\\":\\\"tune\\\","
             "\\\"version\\\":\\\"1.0.0\\\",\\\"skyhook\\\":\\\"sk\\\",\\\"stage\\\":"
             "\\\"apply\\\",\\\"image\\\":\\\"example.test/tune\\\"}\"}},\"spec\":"
             "{\"nodeName\":\"n00\"},\"status\":{\"phase\":\"Running\","
             "\"initContainerStatuses\":%s}}",
             states);
    fake_create(f, FAKE_PODS, text.ptr);
    buf_done(&text);
}

#define RAW_DONE                                                                                   \
    "[{\"state\":{\"terminated\":{\"exitCode\":0}}},{\"state\":{\"terminated\":{\"exitCode\":0}}}]"
#define RAW_RUNS "[{\"state\":{\"terminated\":{\"exitCode\":0}}},{\"state\":{\"running\":{}}}]"
#define RAW_FAILS                                                                                  \
    "[{\"state\":{\"terminated\":{\"exitCode\":0}}},{\"state\":{\"waiting\":{\"reason\":"          \
    "\"CrashLoopBackOff\"}}}]"

static fake *begin_raw(const char *states)
{
    fake *f = fake_new();
    fake_add_nodes(f, 2);
    add_raw(f, states);
    fake_create(f, FAKE_SKYHOOKS, skyhook_plain);
    fake_start(f);
    return f;
}

static void check_raw_end(fake *f, size_t applied)
{
    assert_null(fake_find(f, FAKE_PODS, "raw"));
    assert_int_equal(count_lines(f, "POST " FAKE_JOBS "/sk-tune-1-0-0-apply-n00"), applied);
    assert_int_equal(count_lines(f, "POST " FAKE_JOBS "/sk-tune-1-0-0-config-n00"), 1);
    check_text(str_of(fake_text(f, FAKE_SKYHOOKS, "sk", "/status/completeNodes")), "2/2");
}

static void raw_pod_that_succeeded_counts(void **state)
{
    (void)state;
    fake *f = begin_raw(RAW_DONE);
    fake_run(f, -1);
    check_raw_end(f, 0);
    fake_free(f);
}

static void raw_pod_is_waited_for(void **state)
{
    (void)state;
    fake *f = begin_raw(RAW_RUNS);
    fake_run(f, 3600 * 1000);
    assert_non_null(fake_find(f, FAKE_PODS, "raw"));
    assert_int_equal(count_lines(f, "-n00-"), 0);
    check_text(str_of(fake_text(f, FAKE_SKYHOOKS, "sk", "/status/completeNodes")), "1/2");
    fake_edit(f, FAKE_PODS, "raw", "{\"status\":{\"initContainerStatuses\":" RAW_DONE "}}");
    fake_run(f, -1);
    check_raw_end(f, 0);
    fake_free(f);
}

static void raw_pod_that_fails_ends_as_erroring(void **state)
{
    (void)state;
    fake *f = begin_raw(RAW_FAILS);
    fake_run(f, 5000);
    assert_null(fake_find(f, FAKE_PODS, "raw"));
    check_text(str_of(fake_text(f, FAKE_NODES, "n00",
                                "/metadata/annotations/skyhook.nvidia.com~1status_sk")),
               "erroring");
    fake_run(f, -1);
    check_raw_end(f, 1); /* a Job does it again */
    fake_free(f);
}

/* A node on which an older operator had finished is done, and one on which it had begun is not. */
static void finished_by_an_older_operator(void **state)
{
    (void)state;
    static const char *const specs[] = {
        "", ",\"configMap\":{\"a.conf\":\"1\"}",
        ",\"configMap\":{\"a.conf\":\"1\"},\"interrupt\":{\"type\":\"noop\"}"};
    for (size_t i = 0; i < COUNT_OF(specs); i++) {
        fake *f = fake_new();
        fake_add_nodes(f, 4);
        char text[512];
        fake_edit(f, FAKE_NODES, "n00",
                  i < 2 ? OLDER("config", "complete") : OLDER("post-interrupt", "complete"));
        fake_edit(f, FAKE_NODES, "n01", OLDER("apply", "in_progress"));
        snprintf(text, sizeof text,
                 "{\"metadata\":{\"name\":\"sk\",\"finalizers\":[\"skyhook.nvidia.com/skyhook\"]},"
                 "\"spec\":{\"interruptionBudget\":{\"count\":1},"
                 "\"packages\":{\"tune\":{\"version\":\"1.0.0\",\"image\":"
                 "\"example.test/tune\"%s}}}}",
                 specs[i]);
        fake_create(f, FAKE_SKYHOOKS, text);
        fake_start(f);
        fake_run(f, -1);
        assert_int_equal(count_lines(f, "-n00-"), 0);
        check_text(str_of(fake_text(f, FAKE_SKYHOOKS, "sk", "/status/completeNodes")), "4/4");
        check_text(str_of(fake_text(f, FAKE_SKYHOOKS, "sk", "/status/status")), "complete");
        fake_free(f);
    }
}

/* Until its node's turn comes nothing is due. */
static void raw_pod_waits_for_its_turn(void **state)
{
    (void)state;
    fake *f = fake_new();
    fake_add_nodes(f, 2);
    add_raw(f, RAW_FAILS);
    fake_create(f, FAKE_SKYHOOKS, skyhook_plain);
    fake_edit(f, FAKE_SKYHOOKS, "sk",
              "{\"metadata\":{\"annotations\":{\"skyhook.nvidia.com/pause\":\"true\"}}}");
    fake_start(f);
    fake_run(f, -1);
    assert_non_null(fake_find(f, FAKE_PODS, "raw"));
    fake_edit(f, FAKE_SKYHOOKS, "sk",
              "{\"metadata\":{\"annotations\":{\"skyhook.nvidia.com/pause\":null}}}");
    fake_run(f, -1);
    check_raw_end(f, 1);
    fake_free(f);
}

/* An upgrade of the operator that dies after any of its writes. */
static void raw_pod_and_kills(void **state)
{
    (void)state;
    for (uint64_t at = 1; at < 20; at++) {
        fake *f = begin_raw(RAW_DONE);
        fake_arm(f, (fake_plan){.fault = FAULT_KILL, .at = at});
        fake_run(f, -1);
        assert_null(fake_find(f, FAKE_PODS, "raw"));
        check_text(str_of(fake_text(f, FAKE_SKYHOOKS, "sk", "/status/completeNodes")), "2/2");
        fake_free(f);
    }
}

/* The deletion comes while the first claim is being written, which meets a conflict by that. */
static fake_fault deleted_by_then(fake *f, const kube_write *w)
{
    const char *since = fake_text(f, FAKE_SKYHOOKS, "sk", "/metadata/deletionTimestamp");
    if (str_eq(w->subresource, STR("status")) && str_eq(w->collection, STR(FAKE_SKYHOOKS)) &&
        since[0] == '\0')
        fake_edit(f, FAKE_SKYHOOKS, "sk",
                  "{\"metadata\":{\"deletionTimestamp\":\"2026-11-16T07:00:00Z\"}}");
    return FAULT_NONE;
}

static void deleted_before_its_first_claim(void **state)
{
    (void)state;
    fake *f = fake_new();
    fake_add_nodes(f, 2);
    fake_create(f, FAKE_SKYHOOKS,
                "{\"metadata\":{\"name\":\"sk\"},\"spec\":{\"packages\":{\"tune\":{\"version\":"
                "\"1.0.0\",\"image\":\"example.test/tune\",\"interrupt\":{\"type\":\"noop\"}}}}}");
    f->meets = deleted_by_then;
    fake_start(f);
    fake_run(f, -1);
    check_msg(yyjson_arr_size(fake_get(f, FAKE_SKYHOOKS, "sk", "/metadata/finalizers")) == 0, "%s",
              f->log.ptr);
    assert_null(
        fake_get(f, FAKE_NODES, "n00", "/metadata/annotations/skyhook.nvidia.com~1drover_sk"));
    fake_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(raw_pod_that_succeeded_counts),
        cmocka_unit_test(raw_pod_is_waited_for),
        cmocka_unit_test(raw_pod_that_fails_ends_as_erroring),
        cmocka_unit_test(finished_by_an_older_operator),
        cmocka_unit_test(raw_pod_waits_for_its_turn),
        cmocka_unit_test(raw_pod_and_kills),
        cmocka_unit_test(failed_jobs_stay_and_go),
        cmocka_unit_test(failed_jobs_go_after_a_restart),
        cmocka_unit_test(nodes_that_left_are_not_shown),
        cmocka_unit_test(nodes_that_left_go_after_a_fault),
        cmocka_unit_test(compartments_that_are_gone_are_not_shown),
        cmocka_unit_test(uninstalls_are_told),
        cmocka_unit_test(deletions_that_wait_are_told),
        cmocka_unit_test(malformed_states_are_told),
        cmocka_unit_test(broken_states_are_left),
        cmocka_unit_test(broken_records_stop_nobody),
        cmocka_unit_test(halts_are_shown_on_nodes),
        cmocka_unit_test(deleted_before_its_first_claim),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
