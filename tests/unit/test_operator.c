/* SPDX-License-Identifier: Apache-2.0 */
/* Stories of the node shell over an API server in memory, and what a crash after every single write
 * of them leaves behind: nothing. */
#include "support/check.h"

#include "support/fake_cluster.h"

#define LIMIT 3
#define NODES 8

static const char policy[] =
    "{\"metadata\":{\"name\":\"p\"},\"spec\":{\"default\":{\"budget\":{\"count\":3},\"strategy\":"
    "{\"exponential\":{\"initialBatch\":1}}}}}";
static const char skyhook_plain[] =
    "{\"metadata\":{\"name\":\"sk\"},\"spec\":{\"deploymentPolicy\":\"p\",\"packages\":{\"tune\":"
    "{\"version\":\"1.0.0\",\"image\":\"example.test/tune\"}}}}";

static const char skyhook_interrupt[] =
    "{\"metadata\":{\"name\":\"sk\"},\"spec\":{\"deploymentPolicy\":\"p\",\"packages\":{\"tune\":"
    "{\"version\":\"1.0.0\",\"image\":\"example.test/tune\",\"interrupt\":{\"type\":"
    "\"reboot\"},\"uninstall\":{\"enabled\":true,\"apply\":false}}}}}";
static const char skyhook_required[] =
    "{\"metadata\":{\"name\":\"sk\"},\"spec\":{\"deploymentPolicy\":\"p\",\"runtimeRequired\":true,"
    "\"autoTaintNewNodes\":true,\"packages\":{\"tune\":{\"version\":\"1.0.0\",\"image\":"
    "\"example.test/tune\"}}}}";

/* ---- what must hold after every write ---- */

/* Who holds a claim, as the Skyhook's status says. */
static size_t claims(fake *f, const char *name)
{
    size_t count = 0;
    yyjson_val *groups = fake_get(f, FAKE_SKYHOOKS, name, "/status/compartmentStatuses");
    yyjson_obj_iter walk = yyjson_obj_iter_with(groups);
    for (yyjson_val *key; (key = yyjson_obj_iter_next(&walk));) {
        yyjson_val *g = yyjson_obj_iter_get_val(key);
        count += yyjson_arr_size(yyjson_ptr_get(g, "/batchState/members"));
        count += yyjson_arr_size(yyjson_ptr_get(g, "/batchState/retrying"));
    }
    return count;
}

static bool list_has(yyjson_val *list, const char *name)
{
    yyjson_arr_iter walk = yyjson_arr_iter_with(list);
    for (yyjson_val *one; (one = yyjson_arr_iter_next(&walk));)
        if (yyjson_equals_str(one, name))
            return true;
    return false;
}

static bool claimed(fake *f, const char *name, const char *node_name)
{
    yyjson_val *groups = fake_get(f, FAKE_SKYHOOKS, name, "/status/compartmentStatuses");
    yyjson_obj_iter walk = yyjson_obj_iter_with(groups);
    for (yyjson_val *key; (key = yyjson_obj_iter_next(&walk));) {
        yyjson_val *g = yyjson_obj_iter_get_val(key);
        if (list_has(yyjson_ptr_get(g, "/batchState/members"), node_name) ||
            list_has(yyjson_ptr_get(g, "/batchState/retrying"), node_name))
            return true;
    }
    return false;
}

/* Nodes that are out of service, or have a Job that has not ended. */
static void watch_disturbed(fake *f)
{
    size_t busy = 0;
    char name[16];
    for (int i = 0; i < NODES; i++) {
        snprintf(name, sizeof name, "n%02d", i);
        bool disturbed = yyjson_get_bool(fake_get(f, FAKE_NODES, name, "/spec/unschedulable"));
        for (size_t k = 0; k < f->count; k++)
            disturbed |=
                f->objects[k].ends_ms != REASON_NEVER &&
                strcmp(fake_text(f, FAKE_JOBS, f->objects[k].name, "/spec/template/spec/nodeName"),
                       name) == 0;
        busy += disturbed;
    }
    check_msg(busy <= LIMIT, "%zu nodes are disturbed\n%s", busy, f->log.ptr);
}

static void watch_limits(fake *f, const kube_write *w)
{
    watch_disturbed(f);
    check_msg(claims(f, "sk") <= LIMIT, "%zu claims\n%s", claims(f, "sk"), f->log.ptr);
    if (!str_eq(w->collection, STR(FAKE_JOBS)) || w->verb != WRITE_CREATE)
        return;
    char name[FAKE_NAME_BYTES];
    snprintf(name, sizeof name, "%.*s", STR_ARG(w->name));
    const char *on = fake_text(f, FAKE_JOBS, name, "/spec/template/spec/nodeName");
    check_msg(claimed(f, "sk", on), "a Job without a claim on %s\n%s", on, f->log.ptr);
    char key[] = "/metadata/annotations/skyhook.nvidia.com~1drover_sk";
    check_msg(strstr(fake_text(f, FAKE_NODES, on, key), "\"flags\":"), "no attempt on %s", on);
}

/* ---- ends ---- */

/* Everything that a restart must not change, in one text. */
static void put_end(fake *f, buf *out)
{
    static const char *const notes[] = {"nodeState_sk", "status_sk", "cordon_sk"};
    static const char *const statuses[] = {"status", "completeNodes", "nodesInProgress",
                                           "nodeOrderOffset", "nodePriority"};
    char path[128], name[16];
    for (int i = 0; i < NODES; i++) {
        snprintf(name, sizeof name, "n%02d", i);
        for (size_t k = 0; k < COUNT_OF(notes); k++) {
            snprintf(path, sizeof path, "/metadata/annotations/skyhook.nvidia.com~1%s", notes[k]);
            buf_addf(out, "%s %s %s\n", name, notes[k], fake_text(f, FAKE_NODES, name, path));
        }
        buf_addf(out, "%s %d\n", name,
                 yyjson_get_bool(fake_get(f, FAKE_NODES, name, "/spec/unschedulable")));
    }
    for (size_t k = 0; k < COUNT_OF(statuses); k++) {
        snprintf(path, sizeof path, "/status/%s", statuses[k]);
        buf_addf(out, "%s ", statuses[k]);
        yyjson_val *value = fake_get(f, FAKE_SKYHOOKS, "sk", path);
        if (value)
            json_write(out, value);
        buf_addc(out, '\n');
    }
}

static fake *begin(const char *of_skyhook)
{
    fake *f = fake_new();
    f->watch = watch_limits;
    fake_add_nodes(f, NODES);
    fake_create(f, FAKE_POLICIES, policy);
    fake_create(f, FAKE_SKYHOOKS, of_skyhook);
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

/* ---- stories ---- */

static void installs(void **state)
{
    (void)state;
    for (int order = 0; order < 2; order++) {
        fake *f = begin(skyhook_plain);
        f->answers_last = order == 1;
        fake_run(f, -1);
        check_text(str_of(fake_text(f, FAKE_SKYHOOKS, "sk", "/status/status")), "complete");
        check_text(str_of(fake_text(f, FAKE_SKYHOOKS, "sk", "/status/completeNodes")), "8/8");
        check_text(str_of(fake_text(f, FAKE_NODES, "n03",
                                    "/metadata/annotations/skyhook.nvidia.com~1nodeState_sk")),
                   "{\"tune|1.0.0\":{\"name\":\"tune\",\"version\":\"1.0.0\",\"image\":"
                   "\"example.test/tune\",\"stage\":\"config\",\"state\":\"complete\"}}");
        assert_int_equal(count_lines(f, "POST " FAKE_JOBS), 2 * NODES);
        assert_int_equal(f->conflicts, 0);
        /* At rest nothing is written. */
        uint64_t writes = f->writes;
        fake_run(f, 3600 * 1000);
        assert_int_equal(f->writes, writes);
        fake_free(f);
    }
}

static void counts_writes(void **state)
{
    (void)state;
    fake *f = begin(skyhook_plain);
    fake_run(f, -1);
    shell_counts c = node_shell_count(f->shell);
    assert_int_equal(c.jobs, 2 * NODES);
    assert_int_equal(c.nodes, 3 * NODES); /* claim and apply; config; complete */
    assert_int_equal(c.maps, NODES);
    check_msg(c.statuses <= 10, "%llu statuses", (unsigned long long)c.statuses);
    fake_free(f);
}

static bool fails_on_n01(fake *f, const char *job)
{
    (void)f;
    return strstr(job, "-apply-n01-1-") != NULL;
}

static void recovers(void **state)
{
    (void)state;
    fake *f = begin(skyhook_plain);
    f->fails = fails_on_n01;
    fake_run(f, 5000);
    check_text(str_of(fake_text(f, FAKE_NODES, "n01",
                                "/metadata/annotations/skyhook.nvidia.com~1status_sk")),
               "erroring");
    fake_run(f, -1);
    check_text(str_of(fake_text(f, FAKE_SKYHOOKS, "sk", "/status/completeNodes")), "8/8");
    /* The failed Job is kept for its logs. */
    assert_int_equal(count_lines(f, "PATCH " FAKE_JOBS), 1);
    fake_free(f);
}

/* ---- interrupts ---- */

static bool reboots_first(fake *f, const char *job)
{
    (void)f;
    return strstr(job, "-interrupt-") && strstr(job, "-3-") && !strstr(job, "-post-");
}

static void add_pods(fake *f)
{
    char text[256];
    for (int i = 0; i < NODES; i++) {
        snprintf(text, sizeof text,
                 "{\"metadata\":{\"name\":\"app-%02d\",\"namespace\":\"default\"},\"spec\":"
                 "{\"nodeName\":\"n%02d\"},\"status\":{\"phase\":\"Running\"}}",
                 i, i);
        fake_create(f, "/api/v1/namespaces/default/pods", text);
    }
}

static fake *interrupt_story(uint64_t kill_at, bool answers_last)
{
    fake *f = begin(skyhook_interrupt);
    add_pods(f);
    f->kill_at = kill_at;
    f->answers_last = answers_last;
    f->reboots = reboots_first;
    fake_run(f, -1);
    return f;
}

static void interrupts(void **state)
{
    (void)state;
    fake *f = interrupt_story(0, false);
    check_text(str_of(fake_text(f, FAKE_SKYHOOKS, "sk", "/status/completeNodes")), "8/8");
    check_text(str_of(fake_text(f, FAKE_NODES, "n03",
                                "/metadata/annotations/skyhook.nvidia.com~1nodeState_sk")),
               "{\"tune|1.0.0\":{\"name\":\"tune\",\"version\":\"1.0.0\",\"image\":"
               "\"example.test/tune\",\"stage\":\"post-interrupt\",\"state\":\"complete\"}}");
    /* apply, config, interrupt, again after the reboot, post-interrupt */
    assert_int_equal(count_lines(f, "POST " FAKE_JOBS), 5 * NODES);
    assert_int_equal(count_lines(f, "POST /api/v1/namespaces/default/pods"), NODES);
    for (int i = 0; i < NODES; i++) {
        char name[16];
        snprintf(name, sizeof name, "n%02d", i);
        assert_false(yyjson_get_bool(fake_get(f, FAKE_NODES, name, "/spec/unschedulable")));
        assert_null(
            fake_get(f, FAKE_NODES, name, "/metadata/annotations/skyhook.nvidia.com~1cordon_sk"));
    }
    assert_int_equal(f->conflicts, 0);
    fake_free(f);
}

static bool refuses_all(fake *f, const char *pod_name)
{
    (void)pod_name;
    return f->now_ms < FAKE_START_MS + 60000;
}

static void blocked_by_budget(void **state)
{
    (void)state;
    fake *f = begin(skyhook_interrupt);
    add_pods(f);
    f->refuses = refuses_all;
    fake_run(f, 30000);
    placement_view view = {0};
    assert_true(engine_placement(node_shell_engine(f->shell), 1, &view));
    arena *a = arena_new(0);
    reasons why = {0};
    assert_true(engine_reasons(node_shell_engine(f->shell), 1, a, &why));
    check_text(
        engine_sentence(a, &view, &why),
        "n00 is being changed by sk: the drain waits for default/app-00, which the budget keep-it "
        "protects");
    arena_free(a);
    assert_int_equal(count_lines(f, "POST " FAKE_JOBS), 0);
    fake_run(f, -1);
    check_text(str_of(fake_text(f, FAKE_SKYHOOKS, "sk", "/status/completeNodes")), "8/8");
    fake_free(f);
}

/* ---- taints ---- */

static size_t tainted(fake *f)
{
    size_t count = 0;
    char name[16];
    for (int i = 0; i < NODES; i++) {
        snprintf(name, sizeof name, "n%02d", i);
        count +=
            strcmp(fake_text(f, FAKE_NODES, name, "/spec/taints/0/value"), "runtime-required") == 0;
    }
    return count;
}

static void taints(void **state)
{
    (void)state;
    fake *f = begin(skyhook_required);
    fake_run(f, 500);
    assert_int_equal(tainted(f), NODES);
    fake_run(f, -1);
    assert_int_equal(tainted(f), 0);
    check_text(str_of(fake_text(f, FAKE_SKYHOOKS, "sk", "/status/completeNodes")), "8/8");
    fake_free(f);
}

/* ---- edits and deletion ---- */

static void deleted(void **state)
{
    (void)state;
    fake *f = begin(skyhook_interrupt);
    fake_run(f, -1);
    fake_edit(f, FAKE_SKYHOOKS, "sk",
              "{\"metadata\":{\"deletionTimestamp\":\"2026-11-16T07:00:00Z\"}}");
    fake_run(f, -1);
    assert_int_equal(yyjson_arr_size(fake_get(f, FAKE_SKYHOOKS, "sk", "/metadata/finalizers")), 0);
    for (int i = 0; i < NODES; i++) {
        char name[16];
        snprintf(name, sizeof name, "n%02d", i);
        yyjson_val *notes = fake_get(f, FAKE_NODES, name, "/metadata/annotations");
        assert_int_equal(yyjson_obj_size(notes), 1);
        assert_non_null(yyjson_obj_get(notes, "skyhook.nvidia.com/seen"));
        assert_false(yyjson_get_bool(fake_get(f, FAKE_NODES, name, "/spec/unschedulable")));
    }
    fake_free(f);
}

static void reset_by_hand(void **state)
{
    (void)state;
    fake *f = begin(skyhook_plain);
    fake_run(f, -1);
    size_t before = count_lines(f, "POST " FAKE_JOBS);
    fake_edit(f, FAKE_NODES, "n02",
              "{\"metadata\":{\"annotations\":{\"skyhook.nvidia.com/nodeState_sk\":null}}}");
    fake_run(f, -1);
    assert_int_equal(count_lines(f, "POST " FAKE_JOBS), before + 2);
    check_text(str_of(fake_text(f, FAKE_SKYHOOKS, "sk", "/status/completeNodes")), "8/8");
    fake_free(f);
}

/* ---- crashes ---- */

typedef fake *(*story)(uint64_t kill_at, bool answers_last);

static void killed_everywhere(story tell)
{
    buf want = BUF(1u << 20), got = BUF(1u << 20);
    fake *f = tell(0, false);
    uint64_t writes = f->writes;
    put_end(f, &want);
    fake_free(f);
    for (uint64_t at = 1; at <= writes; at++)
        for (int order = 0; order < 2; order++) {
            f = tell(at, order == 1);
            buf_clear(&got);
            put_end(f, &got);
            check_msg(str_eq(buf_str(&got), buf_str(&want)), "killed after write %llu:\n%s\n%s",
                      (unsigned long long)at, got.ptr, f->log.ptr);
            fake_free(f);
        }
    buf_done(&want);
    buf_done(&got);
}

static fake *install_story(uint64_t kill_at, bool answers_last)
{
    fake *f = begin(skyhook_plain);
    f->kill_at = kill_at;
    f->answers_last = answers_last;
    fake_run(f, -1);
    return f;
}

static fake *failure_story(uint64_t kill_at, bool answers_last)
{
    fake *f = begin(skyhook_plain);
    f->kill_at = kill_at;
    f->answers_last = answers_last;
    f->fails = fails_on_n01;
    fake_run(f, -1);
    return f;
}

static fake *upgrade_story(uint64_t kill_at, bool answers_last)
{
    fake *f = begin(skyhook_plain);
    fake_run(f, 4500); /* some are done, some are in flight */
    f->writes = 0;
    f->kill_at = kill_at;
    f->answers_last = answers_last;
    fake_edit(f, FAKE_SKYHOOKS, "sk",
              "{\"spec\":{\"packages\":{\"tune\":{\"version\":\"2.0.0\"}}}}");
    fake_run(f, -1);
    return f;
}

static void killed_in_install(void **state)
{
    (void)state;
    killed_everywhere(install_story);
}

static void killed_in_failure(void **state)
{
    (void)state;
    killed_everywhere(failure_story);
}

static void killed_in_upgrade(void **state)
{
    (void)state;
    killed_everywhere(upgrade_story);
}

static void killed_in_interrupt(void **state)
{
    (void)state;
    killed_everywhere(interrupt_story);
}

static fake *required_story(uint64_t kill_at, bool answers_last)
{
    fake *f = begin(skyhook_required);
    f->kill_at = kill_at;
    f->answers_last = answers_last;
    fake_run(f, -1);
    assert_int_equal(tainted(f), 0);
    return f;
}

static void killed_with_taints(void **state)
{
    (void)state;
    killed_everywhere(required_story);
}

static fake *deletion_story(uint64_t kill_at, bool answers_last)
{
    fake *f = begin(skyhook_interrupt);
    fake_run(f, -1);
    f->writes = 0;
    f->kill_at = kill_at;
    f->answers_last = answers_last;
    fake_edit(f, FAKE_SKYHOOKS, "sk",
              "{\"metadata\":{\"deletionTimestamp\":\"2026-11-16T07:00:00Z\"}}");
    fake_run(f, -1);
    assert_int_equal(yyjson_arr_size(fake_get(f, FAKE_SKYHOOKS, "sk", "/metadata/finalizers")), 0);
    return f;
}

static void killed_in_deletion(void **state)
{
    (void)state;
    killed_everywhere(deletion_story);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(installs),
        cmocka_unit_test(counts_writes),
        cmocka_unit_test(recovers),
        cmocka_unit_test(killed_in_install),
        cmocka_unit_test(killed_in_failure),
        cmocka_unit_test(killed_in_upgrade),
        cmocka_unit_test(interrupts),
        cmocka_unit_test(blocked_by_budget),
        cmocka_unit_test(taints),
        cmocka_unit_test(deleted),
        cmocka_unit_test(reset_by_hand),
        cmocka_unit_test(killed_in_interrupt),
        cmocka_unit_test(killed_with_taints),
        cmocka_unit_test(killed_in_deletion),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
