/* SPDX-License-Identifier: Apache-2.0 */
/* Pods of Jobs, of which the operator is told rows only: which it reads, and what that means. */
#include "support/check.h"

#include "support/operator_story.h"

#define HOUR_MS (INT64_C(3600) * 1000)
#define READS "GET " FAKE_PODS
#define WAITS(reason)                                                                              \
    "{\"status\":{\"phase\":\"Pending\",\"initContainerStatuses\":[{\"name\":\"a\",\"state\":"     \
    "{\"waiting\":{\"reason\":\"" reason "\"}}}]}}"
#define RUNS "{\"status\":{\"phase\":\"Running\",\"initContainerStatuses\":null}}"

/* A fleet whose Jobs take long, and the first Job's pod with the name that a server gives it. */
typedef struct scene {
    fake *f;
    char job[FAKE_NAME_BYTES], name[FAKE_NAME_BYTES];
} scene;

/* Of a name that is too long only the beginning is left. */
static void name_pod(scene *s)
{
    char base[FAKE_NAME_BYTES + 1];
    snprintf(base, sizeof base, "%s-", s->job);
    snprintf(s->name, sizeof s->name, "%.58sx1y2z", base);
}

static scene begin_scene(const char *of_skyhook, const char *job)
{
    scene s = {.f = begin(of_skyhook)};
    s.f->job_ms = 3 * HOUR_MS;
    fake_run(s.f, 2000);
    snprintf(s.job, sizeof s.job, "%s", first_job(s.f, job));
    name_pod(&s);
    make_pod(s.f, s.name, s.job, fake_text(s.f, FAKE_JOBS, s.job, "/metadata/uid"));
    return s;
}

static void end_job(fake *f, const char *part)
{
    for (size_t i = 0; i < f->count; i++)
        if (strcmp(f->objects[i].collection, FAKE_JOBS) == 0 && strstr(f->objects[i].name, part))
            f->objects[i].ends_ms = f->now_ms + 1000;
}

static void on_their_way_they_are_not_read(void **state)
{
    (void)state;
    scene s = begin_scene(skyhook_plain, "-apply-n00-1-");
    fake_edit(s.f, FAKE_PODS, s.name, WAITS("PodInitializing"));
    fake_run(s.f, 5000);
    fake_edit(s.f, FAKE_PODS, s.name, RUNS);
    fake_run(s.f, 60000);
    check_text(str_of(status_of(s.f, "n00")), "in_progress");
    fake_delete(s.f, FAKE_PODS, s.name); /* as the watch tells that it has succeeded */
    end_job(s.f, "-apply-n00-1-");
    s.f->job_ms = 1000;
    fake_run(s.f, -1);
    check_text(str_of(status_of(s.f, "n00")), "complete");
    assert_int_equal(count_lines(s.f, READS), 0);
    fake_free(s.f);
}

/* It says by turns why it waits: that it is stuck is found by one look. */
static void stuck_ones_are_read_once(void **state)
{
    (void)state;
    scene s = begin_scene(skyhook_plain, "-apply-n00-1-");
    for (int i = 0; i < 3; i++) {
        fake_edit(s.f, FAKE_PODS, s.name, WAITS("ErrImagePull"));
        fake_run(s.f, 10000);
        fake_edit(s.f, FAKE_PODS, s.name, WAITS("ImagePullBackOff"));
        fake_run(s.f, 5000);
    }
    check_text(str_of(status_of(s.f, "n00")), "in_progress");
    assert_int_equal(count_lines(s.f, READS), 1);
    fake_run(s.f, 20000);
    check_text(str_of(status_of(s.f, "n00")), "erroring");
    assert_null(fake_find(s.f, FAKE_PODS, s.name));
    fake_free(s.f);
}

#define MAP "sk-tune-1.0.0"
#define MAP_READS "GET " FAKE_MAPS "/" MAP

/* Its pod cannot begin without the map, and says nothing of that; nobody looks while all do. */
static void maps_that_somebody_deletes_are_made_again(void **state)
{
    (void)state;
    for (int restarted = 0; restarted < 2; restarted++) {
        scene s = begin_scene(skyhook_files, "-apply-n00-1-");
        fake_edit(s.f, FAKE_PODS, s.name, WAITS("PodInitializing"));
        fake_run(s.f, 5000);
        fake_edit(s.f, FAKE_PODS, s.name, RUNS);
        fake_run(s.f, 10 * 60000);
        assert_int_equal(count_lines(s.f, MAP_READS), 1);
        fake_delete(s.f, FAKE_MAPS, MAP);
        fake_edit(s.f, FAKE_PODS, s.name, WAITS("PodInitializing"));
        if (restarted)
            fake_start(s.f);
        fake_run(s.f, 20000);
        assert_null(fake_find(s.f, FAKE_MAPS, MAP));
        fake_run(s.f, 20000);
        check_text(str_of(fake_text(s.f, FAKE_MAPS, MAP, "/data/a.conf")), "old");
        fake_edit(s.f, FAKE_PODS, s.name, RUNS);
        fake_run(s.f, 10 * 60000);
        assert_int_equal(count_lines(s.f, MAP_READS), 2);
        assert_int_equal(count_lines(s.f, READS), 0);
        fake_free(s.f);
    }
}

/* The answer is older than the row that came while it was on its way: it must not count. */
static void older_answers_do_not_count(void **state)
{
    (void)state;
    scene s = begin_scene(skyhook_plain, "-apply-n00-1-");
    fake_run(s.f, 1000);
    s.f->answers_last = true;
    fake_edit(s.f, FAKE_PODS, s.name, WAITS("ErrImagePull"));
    yyjson_doc *row = fake_pod_row(yyjson_doc_get_root(fake_find(s.f, FAKE_PODS, s.name)->doc));
    assert_true(node_shell_seen(s.f->shell, SHELL_POD, yyjson_doc_get_root(row), s.f->now_ms));
    yyjson_doc_free(row);
    assert_int_equal(count_lines(s.f, READS), 1); /* not answered yet */
    fake_edit(s.f, FAKE_PODS, s.name, RUNS);
    fake_run(s.f, 10 * 60000);
    assert_int_equal(count_lines(s.f, READS), 2);
    check_text(str_of(status_of(s.f, "n00")), "in_progress");
    assert_non_null(fake_find(s.f, FAKE_PODS, s.name));
    fake_free(s.f);
}

/* What it died of is read, and shown: also if its row says only that a container has not begun, and
 * whether it or its Job is heard of first. */
static void failed_ones_are_read(void **state)
{
    (void)state;
    static const struct {
        const char *end, *word;
    } rows[] = {
        {"{\"status\":{\"phase\":\"Failed\",\"initContainerStatuses\":[{\"name\":\"a\","
         "\"state\":{\"terminated\":{\"exitCode\":137,\"reason\":\"OOMKilled\"}}}]}}",
         "OOMKilled"},
        {"{\"status\":{\"phase\":\"Failed\",\"reason\":\"Evicted\",\"initContainerStatuses\":"
         "[{\"name\":\"a\",\"state\":{\"waiting\":{\"reason\":\"PodInitializing\"}}}]}}",
         "Evicted"}};
    for (size_t i = 0; i < 2 * COUNT_OF(rows); i++) {
        scene s = begin_scene(skyhook_plain, "-apply-n00-1-");
        fake_run(s.f, 1000);
        if (i % 2 == 0)
            fake_edit(s.f, FAKE_PODS, s.name, rows[i / 2].end);
        fake_edit(
            s.f, FAKE_JOBS, s.job,
            "{\"status\":{\"conditions\":[{\"type\":\"Failed\",\"status\":\"True\",\"reason\":"
            "\"BackoffLimitExceeded\"}]}}");
        fake_run(s.f, 1000);
        if (i % 2 == 1)
            fake_edit(s.f, FAKE_PODS, s.name, rows[i / 2].end);
        fake_run(s.f, 5000);
        check_text(str_of(status_of(s.f, "n00")), "erroring");
        check_msg(strstr(s.f->told.ptr, rows[i / 2].word), "%zu: %s", i, s.f->told.ptr);
        fake_free(s.f);
    }
}

#define TWO(first, second)                                                                         \
    "{\"metadata\":{\"name\":\"sk\"},\"spec\":{\"deploymentPolicy\":\"p\",\"packages\":{"          \
    "\"" first "\":{\"version\":\"1.0.0\",\"image\":\"example.test/a\"},"                          \
    "\"" second "\":{\"version\":\"1.0.0\",\"image\":\"example.test/b\"}}}}"

/* A package goes on beside the pod of another: by its name, if that says whose it is; else it is
 * read, once. */
static void whose_they_are(void **state)
{
    (void)state;
    static const char *const documents[] = {TWO("aa", "bb"),
                                            TWO("aa", "bb-that-has-a-name-of-many-words-as-many")};
    for (size_t i = 0; i < COUNT_OF(documents); i++) {
        scene s = begin_scene(documents[i], "sk-bb");
        fake_run(s.f, 5000);
        assert_int_equal(count_lines(s.f, READS), 0);
        end_job(s.f, "sk-aa-1-0-0-apply-n00-");
        fake_run(s.f, 1100);
        check_msg(first_job(s.f, "sk-aa-1-0-0-config-n00-")[0] != '\0', "%s", s.f->log.ptr);
        end_job(s.f, "sk-aa-1-0-0-config-n00-");
        fake_run(s.f, 60000);
        assert_int_equal(count_lines(s.f, READS), i);
        fake_free(s.f);
    }
}

/* Nobody knows its Job: it is read when it has been there for a while, and holds up what comes next
 * on its node as long as it runs. */
static void nobodys_are_read(void **state)
{
    (void)state;
    scene s = begin_scene(skyhook_plain, "-apply-n00-1-");
    make_pod(s.f, "an-older-one-a1b2c", s.job, "gone");
    fake_run(s.f, 400);
    assert_int_equal(count_lines(s.f, READS), 0);
    fake_run(s.f, 200);
    assert_int_equal(count_lines(s.f, READS), 1);
    fake_delete(s.f, FAKE_PODS, s.name);
    end_job(s.f, "-apply-n00-1-");
    fake_run(s.f, 60000);
    check_text(str_of(first_job(s.f, "-config-n00-")), "");
    fake_delete(s.f, FAKE_PODS, "an-older-one-a1b2c");
    fake_run(s.f, 1000);
    assert_true(first_job(s.f, "-config-n00-")[0] != '\0');
    fake_free(s.f);
}

#define ENDED "{\"name\":\"a\",\"state\":{\"terminated\":{\"exitCode\":0}}}"
#define STUCK "{\"name\":\"b\",\"state\":{\"waiting\":{\"reason\":\"ErrImagePull\"}}}"
#define BEGINS "{\"name\":\"c\",\"state\":{\"waiting\":{\"reason\":\"PodInitializing\"}}}"
#define INITS(of) "{\"status\":{\"phase\":\"Pending\",\"initContainerStatuses\":[" of "]"
#define TO_VERSION(text) "{\"spec\":{\"packages\":{\"tune\":{\"version\":\"" text "\"}}}}"

static bool fails_first(fake *f, const char *job)
{
    (void)f;
    return strstr(job, "-apply-n00-1-") != NULL;
}

/* Before the second container has begun no step of the package has; what is installed next is not
 * taken for an upgrade then. */
static void which_containers_ran_counts(void **state)
{
    (void)state;
    static const struct {
        const char *before, *status, *next;
    } rows[] = {
        {NULL, INITS(STUCK "," STUCK) "}}", "sk-tune-1-0-1-apply-n00-"},
        {NULL, INITS(ENDED "," STUCK) "}}", "sk-tune-1-0-1-apply-n00-"},
        {NULL, INITS(ENDED "," ENDED) ",\"containerStatuses\":[" STUCK "]}}",
         "sk-tune-1-0-1-upgrade-n00-"},
        /* That it was seen to run counts, whatever it says afterwards. */
        {INITS(ENDED "," ENDED) ",\"containerStatuses\":[" BEGINS "]}}",
         INITS(STUCK "," STUCK) "}}", "sk-tune-1-0-1-upgrade-n00-"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        scene s = begin_scene(skyhook_plain, "-apply-n00-1-");
        for (int k = 0; rows[i].before && k < 2; k++) { /* it is read, and then it runs */
            fake_edit(s.f, FAKE_PODS, s.name, k == 0 ? INITS(STUCK) "}}" : rows[i].before);
            fake_run(s.f, 1000);
        }
        fake_edit(s.f, FAKE_PODS, s.name, rows[i].status);
        s.f->job_ms = 1000; /* of the others */
        fake_run(s.f, 61000);
        check_text(str_of(status_of(s.f, "n00")), "erroring");
        s.f->fails = fails_first;
        end_job(s.f, "-apply-n00-1-"); /* since its pod went */
        fake_edit(s.f, FAKE_SKYHOOKS, "sk", TO_VERSION("1.0.1"));
        fake_run(s.f, 60000);
        check_msg(first_job(s.f, rows[i].next)[0] != '\0', "%zu\n%s", i, s.f->log.ptr);
        fake_free(s.f);
    }
}

static fake_fault no_jobs(fake *f, const kube_write *w)
{
    (void)f;
    bool creates = w->verb == WRITE_CREATE && str_eq(w->collection, STR(FAKE_JOBS));
    return creates ? FAULT_INVALID : FAULT_NONE;
}

/* Nothing has come to any node: there is nothing to be uninstalled. */
static void a_skyhook_whose_jobs_are_refused_can_be_deleted(void **state)
{
    (void)state;
    fake *f = begin(skyhook_interrupt);
    f->meets = no_jobs;
    fake_run(f, 30000);
    check_text(str_of(status_of(f, "n00")), "erroring");
    fake_edit(f, FAKE_SKYHOOKS, "sk",
              "{\"metadata\":{\"deletionTimestamp\":\"2026-11-16T07:00:00Z\"}}");
    fake_run(f, 60000);
    check_msg(yyjson_arr_size(fake_get(f, FAKE_SKYHOOKS, "sk", "/metadata/finalizers")) == 0, "%s",
              f->log.ptr);
    assert_null(
        fake_get(f, FAKE_NODES, "n00", "/metadata/annotations/skyhook.nvidia.com~1nodeState_sk"));
    assert_false(yyjson_get_bool(fake_get(f, FAKE_NODES, "n00", "/spec/unschedulable")));
    fake_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(on_their_way_they_are_not_read),
        cmocka_unit_test(stuck_ones_are_read_once),
        cmocka_unit_test(maps_that_somebody_deletes_are_made_again),
        cmocka_unit_test(older_answers_do_not_count),
        cmocka_unit_test(failed_ones_are_read),
        cmocka_unit_test(whose_they_are),
        cmocka_unit_test(nobodys_are_read),
        cmocka_unit_test(which_containers_ran_counts),
        cmocka_unit_test(a_skyhook_whose_jobs_are_refused_can_be_deleted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
