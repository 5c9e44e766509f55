/* SPDX-License-Identifier: Apache-2.0 */
/* Which failed Jobs stay for their logs. */
#include "support/check.h"

#include "operator/failed_jobs.h"

static job_key key_of(const char *on, package_stage stage, int64_t attempt)
{
    return (job_key){.skyhook = STR("sk"),
                     .package = STR("tune"),
                     .version = STR("1.0.0"),
                     .stage = stage,
                     .node = str_of(on),
                     .attempt = attempt};
}

static void add(failed_jobs *f, const job_key *key, int64_t created_ms)
{
    char name[128];
    snprintf(name, sizeof name, "%.*s-%.*s-%d-%lld", STR_ARG(key->skyhook), STR_ARG(key->node),
             (int)key->stage, (long long)key->attempt);
    assert_true(failed_jobs_add(f, str_of(name), STR("uid"), key, created_ms));
}

static void three_of_a_stage(void **state)
{
    (void)state;
    failed_jobs f = {0};
    for (int attempt = 1; attempt <= 5; attempt++) {
        job_key key = key_of("n1", STAGE_APPLY, attempt);
        add(&f, &key, 1000);
        add(&f, &key, 1000); /* seen again */
        failed_job *goes = failed_jobs_beyond(&f, &key);
        if (attempt <= FAILED_JOBS_OF_STAGE) {
            assert_null(goes);
            continue;
        }
        assert_int_equal(goes->attempt, attempt - FAILED_JOBS_OF_STAGE);
        goes->goes = true;
        assert_null(failed_jobs_beyond(&f, &key));
    }
    /* Others are others. */
    job_key config = key_of("n1", STAGE_CONFIG, 6), elsewhere = key_of("n2", STAGE_APPLY, 7);
    add(&f, &config, 1000);
    add(&f, &elsewhere, 1000);
    assert_null(failed_jobs_beyond(&f, &config));
    assert_null(failed_jobs_beyond(&f, &elsewhere));
    failed_jobs_done(&f);
}

static void all_when_it_succeeds(void **state)
{
    (void)state;
    failed_jobs f = {0};
    for (int attempt = 1; attempt <= 3; attempt++) {
        job_key key = key_of("n1", STAGE_APPLY, attempt);
        add(&f, &key, 1000);
    }
    job_key later = key_of("n1", STAGE_APPLY, 9);
    add(&f, &later, 2000);
    job_key config = key_of("n1", STAGE_CONFIG, 4), other = key_of("n2", STAGE_APPLY, 4);
    assert_null(failed_jobs_after(&f, &config));
    assert_null(failed_jobs_after(&f, &other));
    /* One that came after the success stays. */
    job_key succeeded = key_of("n1", STAGE_APPLY, 4);
    for (int i = 0; i < 3; i++) {
        failed_job *goes = failed_jobs_after(&f, &succeeded);
        assert_non_null(goes);
        goes->goes = true;
    }
    assert_null(failed_jobs_after(&f, &succeeded));
    failed_jobs_gone(&f, STR("sk-n1-1-1"));
    failed_jobs_gone(&f, STR("unknown"));
    failed_jobs_done(&f);
}

static void two_hundred_of_a_skyhook(void **state)
{
    (void)state;
    failed_jobs f = {0};
    char on[16];
    for (int i = 0; i <= FAILED_JOBS_OF_SKYHOOK; i++) {
        snprintf(on, sizeof on, "n%03d", i);
        job_key key = key_of(on, STAGE_APPLY, 1);
        add(&f, &key, i == 100 ? 500 : 1000);
        if (i < FAILED_JOBS_OF_SKYHOOK)
            assert_null(failed_jobs_beyond(&f, &key));
    }
    job_key another = key_of("x", STAGE_APPLY, 1);
    another.skyhook = STR("another");
    add(&f, &another, 1);
    assert_null(failed_jobs_beyond(&f, &another));
    job_key any = key_of("n000", STAGE_APPLY, 1);
    failed_job *goes = failed_jobs_beyond(&f, &any);
    assert_non_null(goes);
    check_text(str_of(goes->node), "n100"); /* the oldest */
    goes->goes = true;
    assert_null(failed_jobs_beyond(&f, &any));
    failed_jobs_done(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(three_of_a_stage),
        cmocka_unit_test(all_when_it_succeeds),
        cmocka_unit_test(two_hundred_of_a_skyhook),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
