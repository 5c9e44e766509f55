/* SPDX-License-Identifier: Apache-2.0 */
/* Stages that are decided and have no Job yet, when they may not begin any more. */
#include "support/check.h"

#include "support/operator_story.h"

#define ALONE                                                                                      \
    "{\"metadata\":{\"name\":\"sk\"},\"spec\":{\"nodeSelectors\":{\"matchLabels\":{\"pool\":"      \
    "\"a\"}},\"packages\":{\"tune\":{\"version\":\"1.0.0\",\"image\":\"example.test/tune\"}}}}"
#define NOTE(key, value)                                                                           \
    "{\"metadata\":{\"annotations\":{\"skyhook.nvidia.com/" key "\":" value "}}}"
#define LABEL(key, value) "{\"metadata\":{\"labels\":{\"" key "\":" value "}}}"
#define TAINT "{\"spec\":{\"taints\":[{\"key\":\"taken\",\"effect\":\"NoSchedule\"}]}}"

static bool first_attempt_fails(fake *f, const char *job)
{
    (void)f;
    return strstr(job, "-apply-n00-1-") != NULL;
}

/* A node whose second attempt is decided; its Job waits for the end of the first one's pod. */
static fake *begin_waiting(void)
{
    char job[FAKE_NAME_BYTES];
    fake *f = fake_new();
    fake_add_nodes(f, 1);
    fake_create(f, FAKE_SKYHOOKS, ALONE);
    f->fails = first_attempt_fails;
    f->job_ms = 5000;
    fake_start(f);
    fake_run(f, 2000);
    snprintf(job, sizeof job, "%s", first_job(f, "-apply-n00-1-"));
    make_pod(f, "of-the-first", job, fake_text(f, FAKE_JOBS, job, "/metadata/uid"));
    fake_run(f, 60000);
    check_text(str_of(status_of(f, "n00")), "in_progress");
    assert_int_equal(count_lines(f, "POST " FAKE_JOBS), 1);
    return f;
}

static void no_job_is_made_any_more(void **state)
{
    (void)state;
    static const struct {
        const char *collection, *name, *halt, *resume, *word;
    } rows[] = {
        {FAKE_SKYHOOKS, "sk", NOTE("pause", "\"true\""), NOTE("pause", "null"), "paused"},
        {FAKE_SKYHOOKS, "sk", NOTE("disable", "\"true\""), NOTE("disable", "null"), "disabled"},
        {FAKE_NODES, "n00", LABEL("skyhook.nvidia.com/ignore", "\"true\""),
         LABEL("skyhook.nvidia.com/ignore", "null"), "ignore"},
        {FAKE_NODES, "n00", TAINT, "{\"spec\":{\"taints\":null}}", "taint"},
        {FAKE_NODES, "n00", LABEL("pool", "\"b\""), LABEL("pool", "\"a\""), ""},
    };
    for (size_t i = 0; i < 2 * COUNT_OF(rows); i++) {
        fake *f = begin_waiting();
        fake_edit(f, rows[i / 2].collection, rows[i / 2].name, rows[i / 2].halt);
        fake_run(f, 10000);
        arena *a = arena_new(0);
        str why = sentence_of(f, a, "n00");
        check_msg(str_find(why, str_of(rows[i / 2].word)) != SIZE_MAX &&
                      str_find(why, STR("earlier attempt")) == SIZE_MAX,
                  "%zu: %.*s", i, STR_ARG(why));
        arena_free(a);
        if (i % 2 == 1)
            fake_start(f);
        fake_delete(f, FAKE_PODS, "of-the-first");
        fake_run(f, 10 * 60000);
        check_msg(count_lines(f, "POST " FAKE_JOBS) == 1, "%zu: %s", i, f->log.ptr);
        fake_edit(f, rows[i / 2].collection, rows[i / 2].name, rows[i / 2].resume);
        fake_run(f, -1);
        check_text(str_of(status_of(f, "n00")), "complete");
        assert_int_equal(count_lines(f, "POST " FAKE_JOBS), 3);
        fake_free(f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_job_is_made_any_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
