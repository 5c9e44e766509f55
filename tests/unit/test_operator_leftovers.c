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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(failed_jobs_stay_and_go),
        cmocka_unit_test(failed_jobs_go_after_a_restart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
