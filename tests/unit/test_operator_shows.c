/* SPDX-License-Identifier: Apache-2.0 */
/* What the operator shows and keeps is what there is: nothing of versions and nodes that are gone,
 * and nothing that a killed operator left half done. */
#include "support/check.h"

#include "support/operator_story.h"

/* ---- ConfigMaps ---- */

static void maps_of_old_versions_go(void **state)
{
    (void)state;
    for (int restarted = 0; restarted < 2; restarted++) {
        fake *f = begin(skyhook_files);
        fake_run(f, 2500);
        fake_edit(f, FAKE_SKYHOOKS, "sk",
                  "{\"spec\":{\"packages\":{\"tune\":{\"version\":\"2.0.0\"}}}}");
        fake_run(f, 1500);
        /* Pods that run may still mount it. */
        assert_non_null(fake_find(f, FAKE_MAPS, "sk-tune-1.0.0"));
        if (restarted)
            fake_start(f);
        fake_run(f, -1);
        assert_null(fake_find(f, FAKE_MAPS, "sk-tune-1.0.0"));
        assert_non_null(fake_find(f, FAKE_MAPS, "sk-tune-2.0.0"));
        /* And when there are no files any more. */
        fake_edit(f, FAKE_SKYHOOKS, "sk",
                  "{\"spec\":{\"packages\":{\"tune\":{\"configMap\":null}}}}");
        fake_run(f, -1);
        assert_null(fake_find(f, FAKE_MAPS, "sk-tune-2.0.0"));
        fake_free(f);
    }
}

/* A map about a node, as it is written where it is too large for Jobs. */
static void add_node_map(fake *f, const char *of_node)
{
    char text[512];
    buf name = BUF(LIMIT_NAME_BYTES);
    node_config_map_name(&name, STR("sk"), str_of(of_node));
    snprintf(text, sizeof text,
             "{\"metadata\":{\"name\":\"%.*s\",\"ownerReferences\":[{\"uid\":\"%s\"}]}}",
             STR_ARG(buf_str(&name)), fake_text(f, FAKE_SKYHOOKS, "sk", "/metadata/uid"));
    fake_create(f, FAKE_MAPS, text);
    buf_done(&name);
}

static size_t count_maps(fake *f)
{
    size_t count = 0;
    for (size_t i = 0; i < f->count; i++)
        count += strcmp(f->objects[i].collection, FAKE_MAPS) == 0;
    return count;
}

static void maps_of_nodes_that_left_go(void **state)
{
    (void)state;
    fake *f = begin(skyhook_plain);
    fake_run(f, -1);
    add_node_map(f, "n02");
    add_node_map(f, "n03");
    add_node_map(f, "n04");
    fake_delete(f, FAKE_NODES, "n02");
    fake_run(f, -1);
    assert_int_equal(count_maps(f), 2);
    /* One that went while nobody looked, and one that is selected no longer. */
    fake_delete(f, FAKE_NODES, "n03");
    fake_start(f);
    fake_run(f, -1);
    assert_int_equal(count_maps(f), 1);
    fake_edit(f, FAKE_SKYHOOKS, "sk",
              "{\"spec\":{\"nodeSelectors\":{\"matchLabels\":{\"pool\":\"b\"}}}}");
    fake_run(f, -1);
    assert_int_equal(count_maps(f), 0);
    fake_free(f);
}

/* ---- what the status shows of packages ---- */

static void replaced_versions_are_not_shown(void **state)
{
    (void)state;
    for (int restarted = 0; restarted < 2; restarted++) {
        fake *f = begin(skyhook_plain);
        fake_run(f, -1);
        fake_edit(f, FAKE_SKYHOOKS, "sk",
                  "{\"spec\":{\"packages\":{\"tune\":{\"version\":\"2.0.0\"}}}}");
        fake_run(f, 2500);
        if (restarted)
            fake_start(f);
        fake_run(f, -1);
        for (int i = 0; i < NODES; i++) {
            char path[64];
            snprintf(path, sizeof path, "/status/nodeState/n%02d", i);
            yyjson_val *entries = fake_get(f, FAKE_SKYHOOKS, "sk", path);
            assert_non_null(yyjson_obj_get(entries, "tune|2.0.0"));
            assert_null(yyjson_obj_get(entries, "tune|1.0.0"));
        }
        fake_free(f);
    }
}

static void config_updates_are_shown(void **state)
{
    (void)state;
    fake *f = begin(skyhook_files);
    fake_run(f, -1);
    fake_edit(f, FAKE_SKYHOOKS, "sk",
              "{\"spec\":{\"packages\":{\"tune\":{\"configMap\":{\"a.conf\":\"new\","
              "\"b.conf\":\"new\",\"c.conf\":\"new\"}}}}}");
    fake_run(f, 1500);
    yyjson_val *keys = fake_get(f, FAKE_SKYHOOKS, "sk", "/status/configUpdates/tune");
    assert_int_equal(yyjson_arr_size(keys), 3);
    assert_true(yyjson_equals_str(yyjson_arr_get(keys, 1), "b.conf"));
    fake_run(f, -1);
    assert_int_equal(yyjson_obj_size(fake_get(f, FAKE_SKYHOOKS, "sk", "/status/configUpdates")), 0);
    /* An upgrade is no config change. */
    fake_edit(f, FAKE_SKYHOOKS, "sk",
              "{\"spec\":{\"packages\":{\"tune\":{\"version\":\"2.0.0\","
              "\"configMap\":{\"a.conf\":\"newer\"}}}}}");
    fake_run(f, 1500);
    assert_null(fake_get(f, FAKE_SKYHOOKS, "sk", "/status/configUpdates/tune"));
    fake_free(f);
}

/* ---- taints ---- */

#define CONFIG_OF_N01 "POST " FAKE_JOBS "/sk-tune-1-0-0-config-n01-"

static bool first_two_fail_to_configure(fake *f, const char *job)
{
    return strstr(job, "-config-n01-") && count_lines(f, CONFIG_OF_N01) <= 2;
}

static void check_restarts(fake *f, const char *stage, const char *state, const char *restarts)
{
    char want[256];
    snprintf(want, sizeof want,
             "{\"tune|1.0.0\":{\"name\":\"tune\",\"version\":\"1.0.0\",\"image\":"
             "\"example.test/tune\",\"stage\":\"%s\",\"state\":\"%s\"%s}}",
             stage, state, restarts);
    check_text(str_of(fake_text(f, FAKE_NODES, "n01",
                                "/metadata/annotations/skyhook.nvidia.com~1nodeState_sk")),
               want);
}

/* How often a stage failed stays to be seen when it has succeeded, until it is run for something
 * else. */
static void failed_attempts_are_shown(void **state)
{
    (void)state;
    for (int restarted = 0; restarted < 2; restarted++) {
        fake *f = begin(skyhook_files);
        f->fails = first_two_fail_to_configure;
        while (count_lines(f, CONFIG_OF_N01) < 2)
            fake_run(f, 200);
        check_restarts(f, "config", "in_progress", ",\"restarts\":1");
        if (restarted)
            fake_start(f);
        fake_run(f, -1);
        check_text(str_of(fake_text(f, FAKE_SKYHOOKS, "sk", "/status/completeNodes")), "8/8");
        check_restarts(f, "config", "complete", ",\"restarts\":2");
        if (restarted)
            fake_start(f);
        fake_edit(f, FAKE_SKYHOOKS, "sk",
                  "{\"spec\":{\"packages\":{\"tune\":{\"configMap\":{\"a.conf\":\"new\"}}}}}");
        fake_run(f, -1);
        check_restarts(f, "config", "complete", "");
        fake_free(f);
    }
}

static void taints_before_it_untaints(void **state)
{
    (void)state;
    fake *f = begin(skyhook_required);
    fake_run(f, -1);
    assert_int_equal(tainted(f), 0);
    fake_edit(f, FAKE_NODES, "n00",
              "{\"spec\":{\"taints\":[{\"key\":\"skyhook.nvidia.com\",\"value\":"
              "\"runtime-required\",\"effect\":\"NoSchedule\"}]}}");
    fake_delete(f, FAKE_NODES, "n07");
    fake_create(f, FAKE_NODES,
                "{\"metadata\":{\"name\":\"n07\",\"labels\":{\"pool\":\"a\"},\"annotations\":{}},"
                "\"spec\":{},\"status\":{\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}],"
                "\"nodeInfo\":{\"bootID\":\"other\"}}}");
    buf_clear(&f->log);
    fake_start(f);
    fake_run(f, -1);
    assert_int_equal(tainted(f), 0);
    size_t new_one = str_find(buf_str(&f->log), STR("PATCH " FAKE_NODES "/n07 "));
    size_t old_one = str_find(buf_str(&f->log), STR("PATCH " FAKE_NODES "/n00 "));
    check_msg(new_one < old_one, "%s", f->log.ptr);
    fake_free(f);
}

/* Whoever was killed between the end of a claim and its last conditions left the old ones. */
static void conditions_follow_after_a_restart(void **state)
{
    (void)state;
    fake *f = begin(skyhook_interrupt);
    fake_run(f, -1);
    fake_edit(f, FAKE_NODES, "n03",
              "{\"status\":{\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"},{\"type\":"
              "\"skyhook.nvidia.com/sk/NotReady\",\"status\":\"True\"}]}}");
    fake_start(f);
    fake_run(f, -1);
    yyjson_val *all = fake_get(f, FAKE_NODES, "n03", "/status/conditions");
    yyjson_arr_iter walk = yyjson_arr_iter_with(all);
    for (yyjson_val *one; (one = yyjson_arr_iter_next(&walk));)
        if (yyjson_equals_str(yyjson_obj_get(one, "type"), "skyhook.nvidia.com/sk/NotReady"))
            check_text(str_of(yyjson_get_str(yyjson_obj_get(one, "status"))), "False");
    fake_free(f);
}

/* ---- the document ---- */

/* What is written besides the finalizer is what every reader makes of the packages. */
static void packages_are_written_as_they_are_read(void **state)
{
    (void)state;
    fake *f = begin("{\"metadata\":{\"name\":\"sk\"},\"spec\":{\"packages\":{"
                    "\"tune\":{\"version\":\"1.0.0\",\"image\":\"host.test:5000/tune\"},"
                    "\"base\":{\"name\":\"base\",\"version\":\"2.0\","
                    "\"image\":\"host.test:5000/base:2.0\"}}}}");
    f->watch = NULL; /* all nodes at once */
    fake_run(f, 1000);
    static const char *const wanted[][2] = {
        {"/spec/packages/tune/name", "tune"},
        {"/spec/packages/tune/image", "host.test:5000/tune"},
        {"/spec/packages/base/name", "base"},
        {"/spec/packages/base/image", "host.test:5000/base"},
    };
    for (size_t i = 0; i < COUNT_OF(wanted); i++)
        check_text(str_of(fake_text(f, FAKE_SKYHOOKS, "sk", wanted[i][0])), wanted[i][1]);
    fake_free(f);
}

/* ---- conditions ---- */

static str condition_message(fake *f, const char *type)
{
    yyjson_val *all = fake_get(f, FAKE_SKYHOOKS, "sk", "/status/conditions");
    yyjson_arr_iter walk = yyjson_arr_iter_with(all);
    for (yyjson_val *one; (one = yyjson_arr_iter_next(&walk));)
        if (yyjson_equals_str(yyjson_obj_get(one, "type"), type))
            return str_of(yyjson_get_str(yyjson_obj_get(one, "message")));
    return STR_EMPTY;
}

/* What was applied last is never taken back, whoever shows it. */
static void last_applied_outlives_restarts(void **state)
{
    (void)state;
    fake *f = begin(skyhook_plain);
    fake_run(f, -1);
    fake_start(f);
    fake_run(f, -1);
    check_text(condition_message(f, "ApplyPackage"), "Applying package [tune:1.0.0] to node [n07]");
    check_text(condition_message(f, "skyhook.nvidia.com/ApplyPackage"),
               "Applying package [tune:1.0.0] to node [n07]");
    fake_free(f);
}

/* Taints that are not tolerated are told whatever else holds the node, or nothing does. */
static void taints_are_told(void **state)
{
    (void)state;
    static const char tainted_text[] =
        "{\"spec\":{\"taints\":[{\"key\":\"foreign\",\"effect\":\"NoSchedule\"}]}}";
    fake *f = begin(skyhook_plain);
    fake_edit(f, FAKE_NODES, "n00", tainted_text);
    fake_run(f, 3000);
    static const char *const halts[] = {"true", "false"};
    for (size_t i = 0; i < 2; i++) {
        char text[128];
        snprintf(text, sizeof text,
                 "{\"metadata\":{\"annotations\":{\"skyhook.nvidia.com/pause\":\"%s\"}}}",
                 halts[i]);
        fake_edit(f, FAKE_SKYHOOKS, "sk", text);
        fake_run(f, 3000);
        check_text(condition_message(f, "TaintNotTolerable"),
                   "Node [n00] has taints that are not tolerable. Skipping.");
    }
    fake_run(f, -1);
    fake_edit(f, FAKE_NODES, "n01", tainted_text); /* which is done */
    fake_run(f, -1);
    check_text(condition_message(f, "TaintNotTolerable"),
               "Node [n00, n01] has taints that are not tolerable. Skipping.");
    for (int i = 0; i < 2; i++)
        fake_edit(f, FAKE_NODES, i == 0 ? "n00" : "n01", "{\"spec\":{\"taints\":null}}");
    fake_run(f, -1);
    check_text(condition_message(f, "TaintNotTolerable"), "All nodes have tolerable taints.");
    fake_free(f);
}

static const char *condition_time(fake *f, const char *type)
{
    yyjson_val *all = fake_get(f, FAKE_SKYHOOKS, "sk", "/status/conditions");
    yyjson_arr_iter walk = yyjson_arr_iter_with(all);
    for (yyjson_val *one; (one = yyjson_arr_iter_next(&walk));)
        if (yyjson_equals_str(yyjson_obj_get(one, "type"), type))
            return yyjson_get_str(yyjson_obj_get(one, "lastTransitionTime"));
    return "";
}

/* "Ready" has been false since the rollout began; "Transition" is as old as its words. */
static void transition_is_as_old_as_its_words(void **state)
{
    (void)state;
    fake *f = begin(skyhook_plain);
    fake_run(f, 1500);
    char began[64];
    snprintf(began, sizeof began, "%s", condition_time(f, "Ready"));
    fake_run(f, 6000);
    check_text(str_of(condition_time(f, "Ready")), began);
    check_msg(strcmp(condition_time(f, "skyhook.nvidia.com/Transition"), began) > 0, "%s", began);
    fake_run(f, -1);
    fake_free(f);
}

/* ---- events ---- */

static void drains_are_told(void **state)
{
    (void)state;
    fake *f = begin(skyhook_interrupt);
    fake_run(f, -1);
    for (int i = 0; i < NODES; i++) {
        char line[128];
        snprintf(line, sizeof line,
                 "Node n%02d Interrupt: draining node [n%02d] package [tune:1.0.0] from "
                 "[skyhook:sk]\n",
                 i, i);
        check_msg(strstr(f->told.ptr, line), "%s", f->told.ptr);
    }
    assert_null(strstr(f->told.ptr, "Interrupting"));
    fake_free(f);
}

/* Whoever looks at a node, or at the Skyhook, is told why its packages run again; also of a reboot
 * while nobody looked, and only where they do. */
static void reboots_are_told(void **state)
{
    (void)state;
    for (int row = 0; row < 4; row++) {
        bool reapply = row < 2, away = row % 2;
        fake *f = begin(skyhook_plain);
        f->settings.engine.reapply_on_reboot = reapply;
        fake_start(f);
        fake_run(f, -1);
        buf_clear(&f->told);
        if (away)
            fake_end_side(&f->sides[0]);
        fake_reboot(f, "n03", true);
        if (away)
            fake_start(f);
        fake_run(f, -1);
        str told = buf_str(&f->told);
        size_t on_node = str_find(told, STR("Node n03 Reboot: the node was rebooted: packages of "
                                            "[skyhook:sk] are applied again\n"));
        size_t on_change = str_find(told, STR("Skyhook sk Reboot: node [n03] was rebooted: "
                                              "packages are applied to it again\n"));
        check_msg((on_node != SIZE_MAX) == reapply && (on_change != SIZE_MAX) == reapply,
                  "row %d: %.*s", row, STR_ARG(told));
        size_t count = 0;
        while (told.ptr && told.len > 0)
            count += str_find(str_cut(&told, '\n'), STR(" Reboot: ")) != SIZE_MAX;
        assert_int_equal(count, reapply ? 2 : 0);
        fake_free(f);
    }
}

/* ---- metrics ---- */

static bool is_measured(fake *f, const char *part)
{
    buf out = BUF(1024 * 1024);
    node_shell_metrics(f->shell, &out);
    bool found = str_find(buf_str(&out), str_of(part)) != SIZE_MAX;
    buf_done(&out);
    return found;
}

/* Nobody who is told of a package that was uninstalled, or of a Skyhook that is finalised, can tell
 * it from one that nobody has begun. */
static void series_go(void **state)
{
    (void)state;
    fake *f = begin(skyhook_interrupt);
    fake_run(f, 0);
    assert_true(is_measured(f, "package_name=\"tune\""));
    fake_run(f, -1);
    assert_true(is_measured(f, "skyhook_package_state_count{skyhook_name=\"sk\",package_name="
                               "\"tune\",package_version=\"1.0.0\",state=\"complete\"} 8"));
    fake_edit(f, FAKE_SKYHOOKS, "sk",
              "{\"spec\":{\"packages\":{\"tune\":{\"uninstall\":{\"apply\":true}}}}}");
    fake_run(f, 1500);
    assert_true(is_measured(f, "stage=\"uninstall\"} 1"));
    fake_run(f, -1);
    assert_false(is_measured(f, "package_name=\"tune\""));
    assert_true(is_measured(f, "skyhook_node_target_count{skyhook_name=\"sk\"} 8"));
    fake_edit(f, FAKE_SKYHOOKS, "sk",
              "{\"metadata\":{\"finalizers\":[\"skyhook.nvidia.com/skyhook\",\"example.test/f\"],"
              "\"deletionTimestamp\":\"2026-11-16T07:00:00Z\"}}");
    fake_run(f, -1);
    check_text(str_of(fake_text(f, FAKE_SKYHOOKS, "sk", "/metadata/finalizers/0")),
               "example.test/f");
    assert_false(is_measured(f, "skyhook_name=\"sk\""));
    fake_free(f);
}

/* ---- many nodes ---- */

static size_t shown_nodes(fake *f, const char *path)
{
    return yyjson_obj_size(fake_get(f, FAKE_SKYHOOKS, "sk", path));
}

static void check_shown(fake *f, size_t nodes, size_t mirrored)
{
    char all[32];
    snprintf(all, sizeof all, "%zu/%zu", nodes, nodes);
    fake_run(f, -1);
    check_text(str_of(fake_text(f, FAKE_SKYHOOKS, "sk", "/status/completeNodes")), all);
    assert_int_equal(shown_nodes(f, "/status/nodeState"), mirrored);
    assert_int_equal(shown_nodes(f, "/status/nodeStatus"), mirrored);
    assert_int_equal(shown_nodes(f, "/status/nodeBootIds"), mirrored);
}

/* Up to 500 nodes are mirrored one by one; with more of them only their own annotations tell. */
static void many_nodes_are_counted_only(void **state)
{
    (void)state;
    fake *f = fake_new();
    fake_add_nodes(f, 500);
    fake_create(f, FAKE_SKYHOOKS,
                "{\"metadata\":{\"name\":\"sk\"},\"spec\":{\"packages\":{\"tune\":{\"version\":"
                "\"1.0.0\",\"image\":\"example.test/tune\"}}}}");
    fake_start(f);
    check_shown(f, 500, 500);
    fake_create(f, FAKE_NODES,
                "{\"metadata\":{\"name\":\"late\",\"annotations\":{}},\"spec\":{},\"status\":{"
                "\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}],\"nodeInfo\":{"
                "\"bootID\":\"boot-late\"}}}");
    check_shown(f, 501, 0);
    assert_int_equal(yyjson_get_int(fake_get(f, FAKE_SKYHOOKS, "sk", "/status/nodeOrderOffset")),
                     501);
    fake_start(f);
    check_shown(f, 501, 0);
    fake_delete(f, FAKE_NODES, "n07");
    check_shown(f, 500, 500);
    fake_free(f);
}

/* At rest, too, when nothing else leads to a write. */
static void a_status_that_somebody_took_away_is_written_again(void **state)
{
    (void)state;
    fake *f = begin(skyhook_plain);
    fake_run(f, -1);
    fake_edit(f, FAKE_SKYHOOKS, "sk", "{\"status\":null}");
    fake_run(f, -1);
    check_text(str_of(fake_text(f, FAKE_SKYHOOKS, "sk", "/status/completeNodes")), "8/8");
    check_text(str_of(fake_text(f, FAKE_SKYHOOKS, "sk", "/status/nodeStatus/n03")), "complete");
    assert_non_null(fake_get(f, FAKE_SKYHOOKS, "sk", "/status/nodeState/n03"));
    fake_free(f);
}

static fake_fault no_finalizers(fake *f, const kube_write *w)
{
    (void)f;
    bool names_them = str_find(w->body, STR("\"finalizers\"")) != SIZE_MAX;
    return names_them ? FAULT_INVALID : FAULT_NONE;
}

/* A webhook does not let the Skyhook be changed: nothing starts, and at its end it would not go. */
static void refused_finalizers_are_told(void **state)
{
    (void)state;
    fake *f = fake_new();
    arena *a = arena_new(0);
    fake_add_nodes(f, NODES);
    fake_create(f, FAKE_POLICIES, policy);
    fake_create(f, FAKE_SKYHOOKS, skyhook_plain);
    f->meets = no_finalizers;
    fake_start(f);
    fake_run(f, 60000);
    check_msg(strstr(f->told.ptr, "Skyhook sk Refused: its finalizer cannot be added, and nothing "
                                  "starts on its nodes before it is: "),
              "%s", f->told.ptr);
    check_text(sentence_of(f, a, "n00"),
               "n00 is being changed by sk: the finalizer of its Skyhook cannot be added: refused "
               "(status 422)");
    f->meets = NULL;
    fake_run(f, -1);
    check_text(str_of(fake_text(f, FAKE_SKYHOOKS, "sk", "/status/completeNodes")), "8/8");
    f->meets = no_finalizers;
    fake_edit(f, FAKE_SKYHOOKS, "sk",
              "{\"metadata\":{\"deletionTimestamp\":\"2026-11-16T07:00:00Z\"}}");
    fake_run(f, 60000);
    check_msg(strstr(f->told.ptr, "Skyhook sk Refused: its finalizer cannot be taken away, so that "
                                  "it stays: "),
              "%s", f->told.ptr);
    f->meets = NULL;
    fake_run(f, -1);
    assert_int_equal(yyjson_arr_size(fake_get(f, FAKE_SKYHOOKS, "sk", "/metadata/finalizers")), 0);
    arena_free(a);
    fake_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(maps_of_old_versions_go),
        cmocka_unit_test(maps_of_nodes_that_left_go),
        cmocka_unit_test(replaced_versions_are_not_shown),
        cmocka_unit_test(config_updates_are_shown),
        cmocka_unit_test(failed_attempts_are_shown),
        cmocka_unit_test(taints_before_it_untaints),
        cmocka_unit_test(conditions_follow_after_a_restart),
        cmocka_unit_test(last_applied_outlives_restarts),
        cmocka_unit_test(taints_are_told),
        cmocka_unit_test(transition_is_as_old_as_its_words),
        cmocka_unit_test(drains_are_told),
        cmocka_unit_test(packages_are_written_as_they_are_read),
        cmocka_unit_test(reboots_are_told),
        cmocka_unit_test(series_go),
        cmocka_unit_test(many_nodes_are_counted_only),
        cmocka_unit_test(a_status_that_somebody_took_away_is_written_again),
        cmocka_unit_test(refused_finalizers_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
