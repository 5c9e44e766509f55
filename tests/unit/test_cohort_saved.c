/* SPDX-License-Identifier: Apache-2.0 */
/* Batch states and claims as they survive a restart. */
#include "support/check.h"

#include "engine/cohort.h"

#define MEMBERS 5

static cohort *five(bool restored)
{
    static const str names[MEMBERS] = {STR("n0"), STR("n1"), STR("n2"), STR("n3"), STR("n4")};
    compartment_rule rule = {
        .name = STR(COHORT_DEFAULT), .percent = true, .budget = 100, .initial_batch = MEMBERS};
    cohort *c = cohort_new();
    assert_true(c && cohort_set_policy(c, &(cohort_policy){&rule, 1, false}));
    for (member_id m = 0; m < MEMBERS; m++) {
        assert_true(cohort_join(c, m, names[m], 0, (label_set){0}));
        assert_true(cohort_set_state(c, m, restored ? MEMBER_WAITING : MEMBER_STARTABLE));
    }
    return c;
}

/* All are in one batch. n0 runs, n1 is done, n2 and n3 have failed, n4 is done; then n3 and n4 get
 * new work. */
static cohort *edited(void)
{
    cohort *c = five(false);
    cohort_events events = {0};
    assert_true(cohort_step(c, 0, &events));
    vec_done(&events);
    assert_true(cohort_outcome(c, 1, MEMBER_DONE) && cohort_outcome(c, 2, MEMBER_FAILED) &&
                cohort_outcome(c, 3, MEMBER_FAILED) && cohort_outcome(c, 4, MEMBER_DONE));
    assert_true(cohort_set_state(c, 3, MEMBER_STARTABLE) && cohort_set_state(c, 4, MEMBER_WAITING));
    return c;
}

static void check_same(const cohort *c, const char *saved)
{
    err error;
    buf again = BUF(1u << 16), text = BUF(1u << 16);
    cohort *twin = five(true);
    check_msg(cohort_restore(twin, str_of(saved), &error), "%s", error.text);
    cohort_save(twin, &again);
    cohort_save(c, &text);
    check_str(buf_str(&again), buf_str(&text));
    for (member_id m = 0; m < MEMBERS; m++) {
        assert_int_equal(cohort_state(twin, m), cohort_state(c, m));
        assert_int_equal(cohort_in_batch(twin, m), cohort_in_batch(c, m));
    }
    cohort_free(twin);
    buf_done(&again);
    buf_done(&text);
}

static void each_name_stands_once(void **state)
{
    (void)state;
    cohort *c = edited();
    buf text = BUF(1u << 16);
    cohort_save(c, &text);
    str lists = str_part(buf_str(&text), str_find(buf_str(&text), STR(",\"members\"")), SIZE_MAX);
    check_text(lists, ",\"members\":[\"n0\"],\"done\":[\"n1\"],\"doneNowWaiting\":[\"n4\"],"
                      "\"erroring\":[\"n2\"],\"erroringNowStartable\":[\"n3\"]}}");
    check_same(c, text.ptr);
    buf_done(&text);
    cohort_free(c);
}

/* Which named those with new work in two lists. */
static void older_records_are_read(void **state)
{
    (void)state;
    cohort *c = edited();
    buf text = BUF(1u << 16);
    cohort_save(c, &text);
    text.len = str_find(buf_str(&text), STR(",\"members\""));
    buf_addz(&text, ",\"members\":[\"n0\"],\"done\":[\"n1\",\"n4\"],\"erroring\":[\"n2\",\"n3\"],"
                    "\"nowWaiting\":[\"n4\"],\"nowStartable\":[\"n3\"]}}");
    check_same(c, text.ptr);
    buf_done(&text);
    cohort_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_name_stands_once),
        cmocka_unit_test(older_records_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
