/* SPDX-License-Identifier: Apache-2.0 */
/* Stories of the node shell over an API server in memory. What faults leave behind of them:
 * test_operator_faults.c. */
#include "support/check.h"

#include "support/operator_story.h"

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
        /* By the line that `kubectl get` prints all is known that there is to know of them. */
        assert_int_equal(count_lines(f, "GET " FAKE_JOBS), 0);
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
    assert_int_equal(c.maps, 0);          /* Jobs carry what packages are told of their nodes */
    check_msg(c.statuses <= 10, "%llu statuses", (unsigned long long)c.statuses);
    fake_free(f);
}

/* What a Job cannot carry stands in a ConfigMap, which is written once a claim. */
static void large_node(void **state)
{
    (void)state;
    fake *f = begin(skyhook_plain);
    buf text = BUF(1u << 20);
    buf_addz(&text, "{\"metadata\":{\"annotations\":{\"large\":\"");
    for (size_t i = 0; i < JOB_FILES_BYTES_MAX; i++)
        buf_addc(&text, 'x');
    buf_addz(&text, "\"}}}");
    fake_edit(f, FAKE_NODES, "n03", text.ptr);
    fake_run(f, -1);
    check_text(str_of(fake_text(f, FAKE_SKYHOOKS, "sk", "/status/completeNodes")), "8/8");
    assert_int_equal(node_shell_count(f->shell).maps, 1);
    buf_clear(&text);
    node_config_map_name(&text, STR("sk"), STR("n03"));
    check_msg(fake_find(f, FAKE_MAPS, text.ptr), "no %s", text.ptr);
    size_t mounted = 0, carried = 0;
    for (size_t i = 0; i < f->count; i++) {
        yyjson_val *volume = yyjson_doc_ptr_get(f->objects[i].doc, "/spec/template/spec/volumes/1");
        mounted += yyjson_equals_str(yyjson_ptr_get(volume, "/configMap/name"), text.ptr);
        carried += yyjson_obj_get(volume, "downwardAPI") != NULL;
    }
    assert_int_equal(mounted, 2);
    assert_int_equal(carried, 2 * (NODES - 1));
    check_text(str_of(fake_text(f, FAKE_MAPS, text.ptr, "/data/labels.json")),
               "{\"pool\":\"a\",\"skyhook.nvidia.com/status_sk\":\"in_progress\"}");
    buf_done(&text);
    fake_free(f);
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
    /* Why it failed is read, and that is all that is. */
    char failed[] = "GET " FAKE_JOBS "/sk-tune-1-0-0-apply-n01-1-";
    assert_true(count_lines(f, failed) > 0);
    assert_int_equal(count_lines(f, "GET " FAKE_JOBS), count_lines(f, failed));
    /* The failed Job is kept for its logs. */
    assert_int_equal(count_lines(f, "PATCH " FAKE_JOBS), 1);
    fake_free(f);
}

/* A Job that another operator makes for an attempt of its own: what runs there is looked up. */
static void foreign_job_is_read(void **state)
{
    (void)state;
    fake *f = begin(skyhook_plain);
    fake_run(f, -1);
    fake_create(f, FAKE_JOBS, "{\"metadata\":{\"name\":\"foreign\"}}");
    fake_run(f, -1);
    assert_int_equal(count_lines(f, "GET " FAKE_JOBS "/foreign"), 1);
    fake_free(f);
}

/* The answer to that comes late, when the Job is gone: it holds nothing up for ever. */
static void foreign_job_is_gone_when_read(void **state)
{
    (void)state;
    fake *f = begin(skyhook_plain);
    f->answers_last = true;
    fake_run(f, f->job_ms / 2);
    yyjson_mut_doc *copy = NULL;
    for (size_t i = 0; i < f->count && !copy; i++)
        if (strcmp(f->objects[i].collection, FAKE_JOBS) == 0)
            copy = yyjson_doc_mut_copy(f->objects[i].doc, NULL);
    assert_non_null(copy);
    yyjson_mut_val *m = yyjson_mut_obj_get(yyjson_mut_doc_get_root(copy), "metadata");
    yyjson_mut_obj_put(m, yyjson_mut_str(copy, "name"), yyjson_mut_str(copy, "foreign"));
    yyjson_mut_obj_remove_key(m, "uid");
    yyjson_mut_val *notes = yyjson_mut_obj_get(m, "annotations");
    yyjson_mut_obj_put(notes, yyjson_mut_str(copy, "skyhook.nvidia.com/attempt"),
                       yyjson_mut_str(copy, "77"));
    char *text = yyjson_mut_write(copy, 0, NULL);
    const fake_object *o = fake_create(f, FAKE_JOBS, text);
    yyjson_doc *row = fake_job_row(yyjson_doc_get_root(o->doc));
    assert_true(node_shell_seen(f->shell, SHELL_JOB, yyjson_doc_get_root(row), f->now_ms));
    yyjson_doc_free(row);
    assert_int_equal(count_lines(f, "GET " FAKE_JOBS "/foreign"), 1); /* not answered yet */
    fake_delete(f, FAKE_JOBS, "foreign");
    fake_run(f, -1);
    check_text(str_of(fake_text(f, FAKE_SKYHOOKS, "sk", "/status/completeNodes")), "8/8");
    free(text);
    yyjson_mut_doc_free(copy);
    fake_free(f);
}

/* A few are not held up; what comes of many is let gather. */
static void many_are_let_gather(void **state)
{
    (void)state;
    static const struct {
        const char *budget;
        int rest_ms;
    } rows[] = {{"3", 0}, {"4", 25}, {"8", 25}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char text[256];
        snprintf(text, sizeof text,
                 "{\"metadata\":{\"name\":\"sk\"},\"spec\":{\"interruptionBudget\":"
                 "{\"count\":%s},\"packages\":{\"tune\":{\"version\":\"1.0.0\","
                 "\"image\":\"example.test/tune\"}}}}",
                 rows[i].budget);
        fake *f = fake_new();
        fake_add_nodes(f, NODES);
        fake_create(f, FAKE_SKYHOOKS, text);
        fake_start(f);
        assert_int_equal(node_shell_rest_ms(f->shell), 0);
        fake_run(f, f->job_ms / 2);
        assert_int_equal(node_shell_rest_ms(f->shell), rows[i].rest_ms);
        /* Nobody waits for what its own writes did to nodes. */
        assert_false(node_shell_waits_for(f->shell, SHELL_NODE));
        assert_true(node_shell_waits_for(f->shell, SHELL_JOB));
        fake_run(f, -1);
        assert_int_equal(node_shell_rest_ms(f->shell), 0);
        fake_free(f);
    }
}

/* Before a new wish is begun with, all that is known of nodes is looked at. */
static void wishes_want_news(void **state)
{
    (void)state;
    fake *f = begin(skyhook_plain);
    fake_run(f, -1);
    fake_edit(f, FAKE_NODES, "n01", "{\"metadata\":{\"labels\":{\"pool\":\"b\"}}}");
    fake_deliver(&f->sides[0]);
    assert_true(node_shell_is_due(f->shell));
    assert_false(node_shell_wants_news(f->shell));
    fake_edit(f, FAKE_SKYHOOKS, "sk", "{\"spec\":{\"priority\":5}}");
    fake_deliver(&f->sides[0]);
    assert_true(node_shell_wants_news(f->shell));
    assert_true(node_shell_turn(f->shell, f->now_ms));
    assert_false(node_shell_wants_news(f->shell));
    fake_edit(f, FAKE_POLICIES, "p", "{\"spec\":{\"default\":{\"budget\":{\"count\":2}}}}");
    fake_deliver(&f->sides[0]);
    assert_true(node_shell_wants_news(f->shell));
    fake_free(f);
}

/* ---- interrupts ---- */

static void interrupts(void **state)
{
    (void)state;
    fake *f = interrupt_story((fake_plan){0});
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

/* ---- many at once ---- */

#define CROWD 90
#define CREATING_MAX 64 /* SHELL_CREATING_MAX */

/* Answers to the creation of Jobs, which are rows, that the shell has yet to hear. */
static size_t creating(const fake *f)
{
    size_t count = 0;
    for (size_t i = 0; i < f->sides[0].messages.len; i++) {
        const fake_message *m = &f->sides[0].messages.at[i];
        const char *kind = yyjson_get_str(yyjson_doc_ptr_get(m->doc, "/kind"));
        count += m->is_answer && kind && strcmp(kind, "Table") == 0;
    }
    return count;
}

static size_t most_creating;

static void watch_creations(fake *f, const kube_write *w)
{
    (void)w;
    size_t now = creating(f);
    most_creating = now > most_creating ? now : most_creating;
}

/* A Job is some KiB: those of a large batch are not all written out before they can be sent. */
static void jobs_are_made_when_they_can_be_sent(void **state)
{
    (void)state;
    fake *f = fake_new();
    f->watch = watch_creations;
    most_creating = 0;
    fake_add_nodes(f, CROWD);
    fake_create(f, FAKE_SKYHOOKS,
                "{\"metadata\":{\"name\":\"sk\"},\"spec\":{\"packages\":{\"tune\":"
                "{\"version\":\"1.0.0\",\"image\":\"example.test/tune\"}}}}");
    fake_start(f);
    fake_run(f, -1);
    assert_int_equal(most_creating, CREATING_MAX);
    assert_int_equal(count_lines(f, "POST " FAKE_JOBS), 2 * CROWD);
    check_text(str_of(fake_text(f, FAKE_SKYHOOKS, "sk", "/status/completeNodes")), "90/90");
    fake_free(f);
}

static fake_fault refuse_finalizer(fake *f, const kube_write *w)
{
    (void)f;
    bool here = w->verb == WRITE_MERGE && str_eq(w->collection, STR(FAKE_SKYHOOKS)) &&
                str_eq(w->name, STR("first")) && w->subresource.len == 0;
    return here ? FAULT_FORBIDDEN : FAULT_NONE;
}

/* A Skyhook holds up those behind it from the moment it is known, whoever has the finalizer first;
 * for itself nothing is written before that. */
static void waits_for_who_has_no_finalizer(void **state)
{
    (void)state;
    static const char first[] = "{\"metadata\":{\"name\":\"first\"},\"spec\":{\"priority\":5,"
                                "\"packages\":{\"one\":{\"version\":\"1.0.0\",\"image\":"
                                "\"example.test/one:1.0.0\"}}}}";
    static const char behind[] = "{\"metadata\":{\"name\":\"sk\",\"finalizers\":["
                                 "\"skyhook.nvidia.com/skyhook\"]},\"spec\":{\"priority\":10,"
                                 "\"packages\":{\"tune\":{\"version\":\"1.0.0\",\"image\":"
                                 "\"example.test/tune\"}}}}";
    for (size_t known = 0; known < 2; known++) { /* found at the start, or created later */
        fake *f = fake_new();
        f->meets = refuse_finalizer;
        fake_add_nodes(f, 2);
        if (!known)
            fake_start(f);
        fake_create(f, FAKE_SKYHOOKS, first);
        fake_create(f, FAKE_SKYHOOKS, behind);
        if (known)
            fake_start(f);
        fake_run(f, 60000);
        assert_int_equal(count_lines(f, "POST " FAKE_JOBS), 0);
        assert_int_equal(count_lines(f, FAKE_SKYHOOKS "/first/status"), 0);
        check_text(str_of(fake_text(f, FAKE_SKYHOOKS, "sk", "/status/status")), "waiting");
        f->meets = NULL;
        fake_run(f, -1);
        static const char *const names[] = {"first", "sk"};
        for (size_t i = 0; i < COUNT_OF(names); i++)
            check_text(str_of(fake_text(f, FAKE_SKYHOOKS, names[i], "/status/status")), "complete");
        assert_int_equal(count_lines(f, "POST " FAKE_JOBS), 8);
        fake_free(f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(waits_for_who_has_no_finalizer),
        cmocka_unit_test(large_node),
        cmocka_unit_test(installs),
        cmocka_unit_test(counts_writes),
        cmocka_unit_test(recovers),
        cmocka_unit_test(interrupts),
        cmocka_unit_test(blocked_by_budget),
        cmocka_unit_test(taints),
        cmocka_unit_test(deleted),
        cmocka_unit_test(reset_by_hand),
        cmocka_unit_test(foreign_job_is_read),
        cmocka_unit_test(many_are_let_gather),
        cmocka_unit_test(wishes_want_news),
        cmocka_unit_test(foreign_job_is_gone_when_read),
        cmocka_unit_test(jobs_are_made_when_they_can_be_sent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
