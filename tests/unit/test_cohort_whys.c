/* SPDX-License-Identifier: Apache-2.0 */
/* What compartments say of a member that is between two of them, or in a batch that ends badly. */
#include "support/check.h"

#include "engine/cohort.h"

enum { N1, N2, N3, N4, N5 };

static label_set zone(arena *a, const char *name)
{
    label *one = ARENA_NEW(a, label);
    assert_non_null(one);
    *one = (label){STR("zone"), str_of(name)};
    return (label_set){.at = one, .len = 1};
}

static void step(cohort *c)
{
    cohort_events events = {0};
    err error;
    assert_true(cohort_step(c, 0, &events));
    check_msg(cohort_check(c, &error), "%s", error.text);
    vec_done(&events);
}

/* n1 and n2 are in a batch of "a", and three are in the default compartment, of which half may be
 * under way: n3 is tried again, n4 could start and has no place. */
static cohort *two_compartments(arena *a)
{
    static const str names[] = {STR("n1"), STR("n2"), STR("n3"), STR("n4"), STR("n5")};
    err error;
    const selector *of_a = selector_parse(a, STR("zone=a"), &error);
    compartment_rule rules[] = {
        {.name = STR("a"), .selector = of_a, .budget = 2, .initial_batch = 2},
        {.name = STR(COHORT_DEFAULT), .percent = true, .budget = 50, .initial_batch = 1}};
    cohort *c = cohort_new();
    assert_true(c && of_a && cohort_set_policy(c, &(cohort_policy){rules, 2, false}));
    for (member_id m = N1; m <= N5; m++) {
        assert_true(cohort_join(c, m, names[m], 0, zone(a, m <= N2 ? "a" : "b")));
        assert_true(cohort_set_state(c, m, m <= N3 ? MEMBER_STARTABLE : MEMBER_WAITING));
    }
    step(c);
    assert_true(cohort_outcome(c, N3, MEMBER_FAILED) && cohort_set_retry(c, N3, 0));
    step(c);
    assert_true(cohort_is_retrying(c, N3));
    assert_true(cohort_set_state(c, N4, MEMBER_STARTABLE));
    step(c);
    assert_int_equal(cohort_state(c, N4), MEMBER_STARTABLE);
    return c;
}

/* n1 has failed, is held out of service, and belongs to the default compartment when its batch is
 * over. The place that it holds comes along: it needs no other. */
static void who_moves_takes_its_place_along(void **state)
{
    (void)state;
    arena *a = arena_new(0);
    cohort *c = two_compartments(a);
    reasons list = {0};
    cohort_set_held(c, N1, true);
    assert_true(cohort_outcome(c, N1, MEMBER_FAILED) && cohort_set_retry(c, N1, 0));
    assert_true(cohort_join(c, N1, STR("n1"), 0, zone(a, "b")));
    step(c);
    assert_true(cohort_reasons(c, N1, a, &list));
    assert_int_equal(list.len, 1);
    assert_int_equal(list.at[0].rule, REASON_BATCH);
    check_text(list.at[0].scope, "compartment a");
    assert_int_equal(list.at[0].of_count, 1);
    check_text(list.at[0].of[0], "n2");
    assert_true(cohort_outcome(c, N2, MEMBER_DONE));
    step(c);
    assert_true(cohort_is_retrying(c, N1));
    assert_int_equal(cohort_state(c, N4), MEMBER_STARTABLE);
    cohort_free(c);
    arena_free(a);
}

/* n2 and n3 have failed in a batch that n4 is still under way in. That n2 is tried again before n3
 * does not help: its outcome is final until the batch is judged, and half of them done is too few.
 */
static void who_failed_in_the_batch_is_no_progress(void **state)
{
    (void)state;
    static const str names[] = {STR("n1"), STR("n2"), STR("n3"), STR("n4")};
    static const compartment_rule rule = {.name = STR(COHORT_DEFAULT),
                                          .budget = 4,
                                          .initial_batch = 4,
                                          .batch_threshold = 100,
                                          .failure_threshold = 1,
                                          .safety_limit = 75};
    arena *a = arena_new(0);
    cohort *c = cohort_new();
    reasons list = {0};
    compartment_view view;
    assert_true(c && cohort_set_policy(c, &(cohort_policy){&rule, 1, false}));
    for (member_id m = N1; m <= N4; m++)
        assert_true(cohort_join(c, m, names[m], 0, (label_set){0}) &&
                    cohort_set_state(c, m, MEMBER_STARTABLE));
    step(c);
    assert_true(cohort_outcome(c, N1, MEMBER_DONE));
    for (member_id m = N2; m <= N3; m++)
        assert_true(cohort_outcome(c, m, MEMBER_FAILED) && cohort_set_retry(c, m, 0));
    step(c);
    assert_true(cohort_reasons(c, N3, a, &list));
    assert_true(list.len > 0 && list.at[0].rule == REASON_STOPPED);
    assert_true(cohort_outcome(c, N4, MEMBER_DONE));
    step(c);
    cohort_view(c, 0, &view);
    assert_true(view.stopped);
    cohort_free(c);
    arena_free(a);
}

/* n1 has failed in the batch of "a", and belongs to the default compartment, which is stopped. The
 * reset that is asked for lets n1 go there: of four members two may start together, not one. */
static void a_reset_moves_who_is_let_go(void **state)
{
    (void)state;
    static const str names[] = {STR("n1"), STR("n2"), STR("n3"), STR("n4"), STR("n5")};
    err error;
    arena *a = arena_new(0);
    const selector *of_a = selector_parse(a, STR("zone=a"), &error);
    compartment_rule rules[] = {
        {.name = STR("a"), .selector = of_a, .budget = 2, .initial_batch = 2},
        {.name = STR(COHORT_DEFAULT),
         .percent = true,
         .budget = 50,
         .initial_batch = 2,
         .batch_threshold = 100,
         .failure_threshold = 1,
         .safety_limit = 100}};
    cohort *c = cohort_new();
    reasons list = {0};
    assert_true(c && of_a && cohort_set_policy(c, &(cohort_policy){rules, 2, false}));
    for (member_id m = N1; m <= N5; m++) {
        assert_true(cohort_join(c, m, names[m], 0, zone(a, m <= N2 ? "a" : "b")));
        assert_true(cohort_set_state(c, m, m <= N3 ? MEMBER_STARTABLE : MEMBER_WAITING));
    }
    step(c);
    assert_true(cohort_outcome(c, N3, MEMBER_FAILED) && cohort_outcome(c, N1, MEMBER_FAILED));
    assert_true(cohort_join(c, N1, STR("n1"), 0, zone(a, "b")));
    for (member_id m = N4; m <= N5; m++)
        assert_true(cohort_set_state(c, m, MEMBER_STARTABLE));
    step(c);
    assert_true(cohort_reasons(c, N5, a, &list));
    assert_int_equal(list.len, 1);
    assert_int_equal(list.at[0].rule, REASON_STOPPED);
    cohort_reset(c);
    step(c);
    assert_int_equal(cohort_state(c, N4), MEMBER_IN_FLIGHT);
    assert_int_equal(cohort_state(c, N5), MEMBER_IN_FLIGHT);
    cohort_free(c);
    arena_free(a);
}

/* n3 is under way in a batch, n4 is tried again, and both places are taken. When n3 is done it goes
 * to "a", where its labels are, and of the three that are left only one may be under way. */
static void a_batch_that_ends_takes_its_places_along(void **state)
{
    (void)state;
    static const str names[] = {STR("n1"), STR("n2"), STR("n3"), STR("n4"), STR("n5")};
    err error;
    arena *a = arena_new(0);
    const selector *of_a = selector_parse(a, STR("zone=a"), &error);
    compartment_rule rules[] = {
        {.name = STR("a"), .selector = of_a, .budget = 2, .initial_batch = 2},
        {.name = STR(COHORT_DEFAULT), .percent = true, .budget = 50, .initial_batch = 1}};
    cohort *c = cohort_new();
    reasons list = {0};
    assert_true(c && of_a && cohort_set_policy(c, &(cohort_policy){rules, 2, false}));
    for (member_id m = N2; m <= N5; m++) {
        assert_true(cohort_join(c, m, names[m], 0, zone(a, "b")));
        assert_true(cohort_set_state(c, m, m == N4 ? MEMBER_STARTABLE : MEMBER_WAITING));
    }
    step(c);
    assert_true(cohort_outcome(c, N4, MEMBER_FAILED) && cohort_set_retry(c, N4, 0));
    step(c);
    assert_true(cohort_is_retrying(c, N4) && cohort_set_state(c, N3, MEMBER_STARTABLE));
    step(c);
    assert_int_equal(cohort_state(c, N3), MEMBER_IN_FLIGHT);
    assert_true(cohort_join(c, N3, STR("n3"), 0, zone(a, "a")));
    assert_true(cohort_set_state(c, N5, MEMBER_STARTABLE));
    step(c);
    assert_true(cohort_reasons(c, N5, a, &list));
    assert_int_equal(list.len, 2);
    assert_int_equal(list.at[0].rule, REASON_BATCH);
    check_text(list.at[0].of[0], "n3");
    assert_int_equal(list.at[1].rule, REASON_BUDGET);
    check_text(list.at[1].of[0], "n4");
    assert_true(cohort_outcome(c, N3, MEMBER_DONE));
    step(c);
    assert_int_equal(cohort_state(c, N5), MEMBER_STARTABLE);
    assert_true(cohort_outcome(c, N4, MEMBER_DONE));
    step(c);
    assert_int_equal(cohort_state(c, N5), MEMBER_IN_FLIGHT);
    cohort_free(c);
    arena_free(a);
}

/* n1 has failed in a batch that n2 is under way in, and n3 is tried again. With n2 alone too few
 * are done, and the batch ends in a stop; with n3 it does not. */
static void who_is_tried_again_may_avert_the_stop(void **state)
{
    (void)state;
    static const str names[] = {STR("n1"), STR("n2"), STR("n3"), STR("n4")};
    static const compartment_rule rule = {.name = STR(COHORT_DEFAULT),
                                          .budget = 4,
                                          .initial_batch = 2,
                                          .batch_threshold = 100,
                                          .failure_threshold = 2,
                                          .safety_limit = 50};
    arena *a = arena_new(0);
    cohort *c = cohort_new();
    reasons list = {0};
    assert_true(c && cohort_set_policy(c, &(cohort_policy){&rule, 1, false}));
    for (member_id m = N1; m <= N4; m++)
        assert_true(cohort_join(c, m, names[m], 0, (label_set){0}) &&
                    cohort_set_state(c, m, m == N3 ? MEMBER_STARTABLE : MEMBER_WAITING));
    step(c);
    assert_true(cohort_outcome(c, N3, MEMBER_FAILED) && cohort_set_retry(c, N3, 0));
    step(c);
    assert_true(cohort_is_retrying(c, N3));
    assert_true(cohort_set_state(c, N1, MEMBER_STARTABLE) &&
                cohort_set_state(c, N2, MEMBER_STARTABLE));
    step(c);
    assert_true(cohort_outcome(c, N1, MEMBER_FAILED));
    assert_true(cohort_set_state(c, N4, MEMBER_STARTABLE));
    step(c);
    assert_true(cohort_reasons(c, N4, a, &list));
    assert_int_equal(list.len, 1);
    assert_int_equal(list.at[0].rule, REASON_BATCH);
    assert_int_equal(list.at[0].of_count, 2);
    check_text(list.at[0].of[0], "n2");
    check_text(list.at[0].of[1], "n3");
    assert_true(cohort_outcome(c, N2, MEMBER_DONE) && cohort_outcome(c, N3, MEMBER_DONE));
    step(c);
    assert_int_equal(cohort_state(c, N4), MEMBER_IN_FLIGHT);
    cohort_free(c);
    arena_free(a);
}

/* n1 has failed in the default batch, is held out of service, and belongs to "a", which is stopped:
 * after the reset it has the only place there. */
static void a_reset_brings_places_along(void **state)
{
    (void)state;
    static const str names[] = {STR("n1"), STR("n2"), STR("n3"), STR("n4")};
    err error;
    arena *a = arena_new(0);
    const selector *of_a = selector_parse(a, STR("zone=a"), &error);
    compartment_rule rules[] = {{.name = STR("a"),
                                 .selector = of_a,
                                 .budget = 1,
                                 .initial_batch = 1,
                                 .batch_threshold = 100,
                                 .failure_threshold = 1,
                                 .safety_limit = 100},
                                {.name = STR(COHORT_DEFAULT), .budget = 2, .initial_batch = 2}};
    cohort *c = cohort_new();
    reasons list = {0};
    assert_true(c && of_a && cohort_set_policy(c, &(cohort_policy){rules, 2, false}));
    for (member_id m = N1; m <= N4; m++) {
        assert_true(cohort_join(c, m, names[m], 0, zone(a, m <= N2 ? "b" : "a")));
        assert_true(cohort_set_state(c, m, m <= N3 ? MEMBER_STARTABLE : MEMBER_WAITING));
    }
    step(c);
    cohort_set_held(c, N1, true);
    assert_true(cohort_outcome(c, N1, MEMBER_FAILED) && cohort_outcome(c, N3, MEMBER_FAILED));
    assert_true(cohort_join(c, N1, STR("n1"), 0, zone(a, "a")));
    assert_true(cohort_set_state(c, N4, MEMBER_STARTABLE));
    step(c);
    assert_true(cohort_reasons(c, N4, a, &list));
    assert_int_equal(list.len, 2);
    assert_int_equal(list.at[0].rule, REASON_STOPPED);
    assert_int_equal(list.at[1].rule, REASON_BUDGET);
    assert_int_equal(list.at[1].of_count, 1);
    check_text(list.at[1].of[0], "n1");
    cohort_reset(c);
    step(c);
    assert_int_equal(cohort_state(c, N4), MEMBER_STARTABLE);
    cohort_free(c);
    arena_free(a);
}

/* n1 and n5 failed in an earlier batch, and n2 in the present one, which must end in a stop: n3 is
 * under way in it, and n4 is fresh. Where n5, which is held out of service, and n4 are done, there
 * is a place for n1 before that batch ends: it needs no reset. */
static void who_failed_earlier_waits_for_no_batch(void **state)
{
    (void)state;
    static const str names[] = {STR("n1"), STR("n2"), STR("n3"), STR("n4"), STR("n5")};
    static const compartment_rule rule = {.name = STR(COHORT_DEFAULT),
                                          .budget = 3,
                                          .initial_batch = 2,
                                          .batch_threshold = 100,
                                          .failure_threshold = 2,
                                          .safety_limit = 75};
    arena *a = arena_new(0);
    cohort *c = cohort_new();
    reasons list = {0};
    assert_true(c && cohort_set_policy(c, &(cohort_policy){&rule, 1, false}));
    for (member_id m = N1; m <= N5; m++)
        assert_true(cohort_join(c, m, names[m], 0, (label_set){0}) &&
                    cohort_set_state(c, m, m % N5 == N1 ? MEMBER_STARTABLE : MEMBER_WAITING));
    step(c);
    cohort_set_held(c, N5, true);
    assert_true(cohort_outcome(c, N1, MEMBER_FAILED) && cohort_outcome(c, N5, MEMBER_FAILED));
    for (member_id m = N2; m <= N3; m++)
        assert_true(cohort_set_state(c, m, MEMBER_STARTABLE));
    step(c);
    assert_true(cohort_outcome(c, N2, MEMBER_FAILED) && cohort_in_batch(c, N3));
    assert_true(cohort_set_state(c, N4, MEMBER_STARTABLE) && cohort_set_retry(c, N1, 0));
    step(c);
    assert_true(cohort_reasons(c, N1, a, &list));
    assert_int_equal(list.len, 1);
    assert_int_equal(list.at[0].rule, REASON_BUDGET);
    assert_int_equal(list.at[0].holder_count, 3);
    assert_int_equal(list.at[0].of_count, 2);
    check_text(list.at[0].of[0], "n4");
    check_text(list.at[0].of[1], "n5");
    assert_true(cohort_set_state(c, N4, MEMBER_DONE));
    step(c);
    assert_false(cohort_is_retrying(c, N1));
    assert_true(cohort_set_state(c, N5, MEMBER_DONE));
    step(c);
    assert_true(cohort_is_retrying(c, N1));
    cohort_free(c);
    arena_free(a);
}

/* n1 failed in an earlier batch, and n2 in the present one, which n3 is under way in. These have
 * both places until it ends in a stop: only the reset makes room. */
static void a_batch_may_leave_no_place_before_its_stop(void **state)
{
    (void)state;
    static const str names[] = {STR("n1"), STR("n2"), STR("n3")};
    static const compartment_rule rule = {.name = STR(COHORT_DEFAULT),
                                          .budget = 2,
                                          .initial_batch = 2,
                                          .batch_threshold = 100,
                                          .failure_threshold = 2,
                                          .safety_limit = 100};
    arena *a = arena_new(0);
    cohort *c = cohort_new();
    reasons list = {0};
    assert_true(c && cohort_set_policy(c, &(cohort_policy){&rule, 1, false}));
    for (member_id m = N1; m <= N3; m++)
        assert_true(cohort_join(c, m, names[m], 0, (label_set){0}) &&
                    cohort_set_state(c, m, m == N1 ? MEMBER_STARTABLE : MEMBER_WAITING));
    step(c);
    assert_true(cohort_outcome(c, N1, MEMBER_FAILED));
    assert_true(cohort_set_state(c, N2, MEMBER_STARTABLE) &&
                cohort_set_state(c, N3, MEMBER_STARTABLE));
    step(c);
    assert_true(cohort_outcome(c, N2, MEMBER_FAILED) && cohort_set_retry(c, N1, 0));
    step(c);
    assert_false(cohort_is_retrying(c, N1));
    assert_true(cohort_reasons(c, N1, a, &list));
    assert_int_equal(list.len, 1);
    assert_int_equal(list.at[0].rule, REASON_STOPPED);
    cohort_reset(c);
    step(c);
    assert_true(cohort_is_retrying(c, N1));
    cohort_free(c);
    arena_free(a);
}

/* n1 and n4 failed in an earlier batch, and n2 in the present one, which n3 is under way in. Of the
 * two places n1 gets none before n4 is done, which is held out of service; then half of them are
 * done, and the batch does not end in a stop. */
static void who_gives_a_place_back_may_avert_the_stop(void **state)
{
    (void)state;
    static const str names[] = {STR("n1"), STR("n2"), STR("n3"), STR("n4")};
    compartment_rule rule = {.name = STR(COHORT_DEFAULT),
                             .budget = 3,
                             .initial_batch = 2,
                             .batch_threshold = 100,
                             .failure_threshold = 2,
                             .safety_limit = 50};
    arena *a = arena_new(0);
    cohort *c = cohort_new();
    reasons list = {0};
    assert_true(c && cohort_set_policy(c, &(cohort_policy){&rule, 1, false}));
    for (member_id m = N1; m <= N4; m++)
        assert_true(cohort_join(c, m, names[m], 0, (label_set){0}) &&
                    cohort_set_state(c, m, m % N4 == N1 ? MEMBER_STARTABLE : MEMBER_WAITING));
    step(c);
    cohort_set_held(c, N4, true);
    assert_true(cohort_outcome(c, N1, MEMBER_FAILED) && cohort_outcome(c, N4, MEMBER_FAILED));
    assert_true(cohort_set_state(c, N2, MEMBER_STARTABLE) &&
                cohort_set_state(c, N3, MEMBER_STARTABLE));
    step(c);
    rule.budget = 2;
    assert_true(cohort_set_policy(c, &(cohort_policy){&rule, 1, false}));
    assert_true(cohort_outcome(c, N2, MEMBER_FAILED) && cohort_set_retry(c, N1, 0));
    step(c);
    assert_true(cohort_reasons(c, N1, a, &list));
    assert_int_equal(list.len, 1);
    assert_int_equal(list.at[0].rule, REASON_BUDGET);
    assert_int_equal(list.at[0].of_count, 3);
    check_text(list.at[0].of[1], "n3");
    check_text(list.at[0].of[2], "n4");
    assert_true(cohort_set_state(c, N4, MEMBER_DONE) && cohort_outcome(c, N3, MEMBER_DONE));
    step(c);
    assert_true(cohort_is_retrying(c, N1));
    cohort_free(c);
    arena_free(a);
}

/* n1 has failed and is held out of service, and a reset is asked for. What is under way then is the
 * first batch, whether it was in one or tried again: n2. It goes to "a" when that ends, where its
 * labels are, and of the three that are left only one may be under way: n1 has that place. */
static void a_first_batch_that_moves(bool retried)
{
    static const str names[] = {STR("n1"), STR("n2"), STR("n3"), STR("n4")};
    err error;
    arena *a = arena_new(0);
    const selector *of_a = selector_parse(a, STR("zone=a"), &error);
    compartment_rule rules[] = {
        {.name = STR("a"), .selector = of_a, .budget = 1, .initial_batch = 1},
        {.name = STR(COHORT_DEFAULT),
         .percent = true,
         .budget = 50,
         .initial_batch = 2,
         .batch_threshold = 100,
         .failure_threshold = retried ? 2 : 1,
         .safety_limit = 100}};
    cohort *c = cohort_new();
    reasons list = {0};
    assert_true(c && of_a && cohort_set_policy(c, &(cohort_policy){rules, 2, false}));
    for (member_id m = N1; m <= N4; m++)
        assert_true(cohort_join(c, m, names[m], 0, zone(a, "b")));
    assert_true(cohort_set_state(c, N2, MEMBER_STARTABLE));
    if (retried) {
        step(c);
        assert_true(cohort_outcome(c, N2, MEMBER_FAILED) && cohort_set_retry(c, N2, 0));
        step(c);
    }
    assert_true(cohort_set_state(c, N1, MEMBER_STARTABLE));
    step(c);
    assert_int_equal(cohort_is_retrying(c, N2), retried);
    cohort_set_held(c, N1, true);
    assert_true(cohort_outcome(c, N1, MEMBER_FAILED));
    assert_true(cohort_join(c, N2, STR("n2"), 0, zone(a, "a")));
    assert_true(cohort_set_state(c, N3, MEMBER_STARTABLE));
    step(c);
    assert_true(cohort_reasons(c, N3, a, &list));
    assert_int_equal(list.len, 3);
    assert_int_equal(list.at[0].rule, REASON_STOPPED);
    assert_int_equal(list.at[1].rule, REASON_BATCH);
    check_text(list.at[1].of[0], "n2");
    assert_int_equal(list.at[2].rule, REASON_BUDGET);
    assert_int_equal(list.at[2].limit, 1);
    assert_int_equal(list.at[2].of_count, 1);
    check_text(list.at[2].of[0], "n1");
    cohort_reset(c);
    assert_true(cohort_outcome(c, N2, MEMBER_DONE));
    step(c);
    assert_int_equal(cohort_state(c, N3), MEMBER_STARTABLE);
    assert_true(cohort_set_state(c, N1, MEMBER_DONE));
    step(c);
    assert_int_equal(cohort_state(c, N3), MEMBER_IN_FLIGHT);
    cohort_free(c);
    arena_free(a);
}

static void the_first_batch_after_a_reset_moves_when_it_ends(void **state)
{
    (void)state;
    a_first_batch_that_moves(false);
    a_first_batch_that_moves(true);
}

/* n1 has failed in the batch of "a" and moves to the default compartment when that ends. There n3
 * has failed, too, and is blocked by now: its outcome and its place stay until its batch is judged,
 * which n4 is still under way in. */
static void a_place_is_kept_until_the_batch_is_judged(void **state)
{
    (void)state;
    static const str names[] = {STR("n1"), STR("n2"), STR("n3"), STR("n4")};
    err error;
    arena *a = arena_new(0);
    const selector *of_a = selector_parse(a, STR("zone=a"), &error);
    compartment_rule rules[] = {
        {.name = STR("a"), .selector = of_a, .budget = 2, .initial_batch = 2},
        {.name = STR(COHORT_DEFAULT), .budget = 2, .initial_batch = 2}};
    cohort *c = cohort_new();
    reasons list = {0};
    assert_true(c && of_a && cohort_set_policy(c, &(cohort_policy){rules, 2, false}));
    for (member_id m = N1; m <= N4; m++)
        assert_true(cohort_join(c, m, names[m], 0, zone(a, m <= N2 ? "a" : "b")) &&
                    cohort_set_state(c, m, MEMBER_STARTABLE));
    step(c);
    assert_true(cohort_outcome(c, N1, MEMBER_FAILED) && cohort_set_retry(c, N1, 0));
    assert_true(cohort_outcome(c, N3, MEMBER_FAILED));
    assert_true(cohort_join(c, N1, STR("n1"), 0, zone(a, "b")));
    step(c);
    assert_true(cohort_suppose(c, N3, MEMBER_BLOCKED, REASON_NEVER));
    assert_true(cohort_reasons(c, N1, a, &list));
    assert_true(cohort_suppose(c, N3, MEMBER_FAILED, REASON_NEVER));
    assert_int_equal(list.len, 2);
    assert_int_equal(list.at[0].rule, REASON_BUDGET);
    assert_int_equal(list.at[0].of_count, 1);
    check_text(list.at[0].of[0], "n4");
    assert_int_equal(list.at[1].rule, REASON_BATCH);
    check_text(list.at[1].of[0], "n2");
    assert_true(cohort_outcome(c, N2, MEMBER_DONE));
    step(c);
    assert_false(cohort_is_retrying(c, N1));
    assert_true(cohort_outcome(c, N4, MEMBER_DONE));
    step(c);
    assert_true(cohort_is_retrying(c, N1));
    cohort_free(c);
    arena_free(a);
}

/* Compartment "a" with a batch of n1, n2 and n3, and nobody in the default compartment yet, which
 * has so many places, and that size of its first batch. */
static cohort *a_batch_of_three(arena *a, int64_t places, int64_t first)
{
    static const str names[] = {STR("n1"), STR("n2"), STR("n3")};
    err error;
    const selector *of_a = selector_parse(a, STR("zone=a"), &error);
    compartment_rule rules[] = {
        {.name = STR("a"), .selector = of_a, .budget = 3, .initial_batch = 3},
        {.name = STR(COHORT_DEFAULT), .budget = places, .initial_batch = first}};
    cohort *c = cohort_new();
    assert_true(c && of_a && cohort_set_policy(c, &(cohort_policy){rules, 2, false}));
    for (member_id m = N1; m <= N3; m++)
        assert_true(cohort_join(c, m, names[m], 0, zone(a, "a")) &&
                    cohort_set_state(c, m, MEMBER_STARTABLE));
    step(c);
    return c;
}

/* It was blocked in its batch, is free again, and belongs to the default compartment. */
static void free_to_move(cohort *c, arena *a, member_id m, const char *name)
{
    assert_true(cohort_outcome(c, m, MEMBER_BLOCKED));
    assert_true(cohort_join(c, m, str_of(name), 0, zone(a, "b")));
    assert_true(cohort_set_state(c, m, MEMBER_STARTABLE));
}

/* n1 moves when n2 and n3 are done. Nothing starts meanwhile, for a pause; when that is over n4
 * does, alone, and n1 comes too late for that batch, though it is before n4. */
static void who_comes_later_finds_a_batch(void **state)
{
    (void)state;
    arena *a = arena_new(0);
    cohort *c = a_batch_of_three(a, 2, 2);
    reasons list = {0};
    cohort_pause(c, true);
    assert_true(cohort_join(c, N4, STR("n4"), 0, zone(a, "b")) &&
                cohort_set_state(c, N4, MEMBER_STARTABLE));
    free_to_move(c, a, N1, "n1");
    step(c);
    assert_true(cohort_reasons(c, N1, a, &list));
    assert_int_equal(list.len, 2);
    assert_int_equal(list.at[0].rule, REASON_BATCH);
    check_text(list.at[0].scope, "compartment __default__");
    assert_int_equal(list.at[0].of_count, 1);
    check_text(list.at[0].of[0], "n4");
    check_text(list.at[1].scope, "compartment a");
    assert_int_equal(list.at[1].of_count, 2);
    cohort_pause(c, false);
    step(c);
    assert_true(cohort_outcome(c, N2, MEMBER_DONE) && cohort_outcome(c, N3, MEMBER_DONE));
    step(c);
    assert_int_equal(cohort_state(c, N1), MEMBER_STARTABLE);
    assert_true(cohort_outcome(c, N4, MEMBER_DONE));
    step(c);
    assert_int_equal(cohort_state(c, N1), MEMBER_IN_FLIGHT);
    cohort_free(c);
    arena_free(a);
}

/* n1 has failed, is held out of service, and moves when n2 and n3 are done. It brings its place
 * along, but n4 has the only one there by then. */
static void who_comes_later_finds_its_place_taken(void **state)
{
    (void)state;
    arena *a = arena_new(0);
    cohort *c = a_batch_of_three(a, 1, 1);
    reasons list = {0};
    cohort_pause(c, true);
    assert_true(cohort_join(c, N4, STR("n4"), 0, zone(a, "b")) &&
                cohort_set_state(c, N4, MEMBER_STARTABLE));
    cohort_set_held(c, N1, true);
    assert_true(cohort_outcome(c, N1, MEMBER_FAILED) && cohort_set_retry(c, N1, 0));
    assert_true(cohort_join(c, N1, STR("n1"), 0, zone(a, "b")));
    step(c);
    assert_true(cohort_reasons(c, N1, a, &list));
    assert_int_equal(list.len, 2);
    assert_int_equal(list.at[0].rule, REASON_BUDGET);
    assert_int_equal(list.at[0].of_count, 1);
    check_text(list.at[0].of[0], "n4");
    cohort_pause(c, false);
    step(c);
    assert_true(cohort_outcome(c, N2, MEMBER_DONE) && cohort_outcome(c, N3, MEMBER_DONE));
    step(c);
    assert_false(cohort_is_retrying(c, N1));
    assert_true(cohort_outcome(c, N4, MEMBER_DONE));
    step(c);
    assert_true(cohort_is_retrying(c, N1));
    cohort_free(c);
    arena_free(a);
}

/* n1 has failed and moves when n2 and n3 are done. There n4 is under way in a batch of one, and n5
 * waits for the next: no batch begins before n4 is done, and n5 comes before n1. */
static void who_comes_later_waits_for_those_not_tried_yet(void **state)
{
    (void)state;
    arena *a = arena_new(0);
    cohort *c = a_batch_of_three(a, 3, 1);
    reasons list = {0};
    assert_true(cohort_join(c, N4, STR("n4"), 0, zone(a, "b")) &&
                cohort_set_state(c, N4, MEMBER_STARTABLE));
    step(c);
    assert_true(cohort_join(c, N5, STR("n5"), 0, zone(a, "b")) &&
                cohort_set_state(c, N5, MEMBER_STARTABLE));
    assert_true(cohort_outcome(c, N1, MEMBER_FAILED) && cohort_set_retry(c, N1, 0));
    assert_true(cohort_join(c, N1, STR("n1"), 0, zone(a, "b")));
    step(c);
    assert_true(cohort_reasons(c, N1, a, &list));
    assert_int_equal(list.len, 2);
    check_text(list.at[0].scope, "compartment __default__");
    assert_int_equal(list.at[0].of_count, 2);
    check_text(list.at[0].of[0], "n4");
    check_text(list.at[0].of[1], "n5");
    assert_true(cohort_outcome(c, N2, MEMBER_DONE) && cohort_outcome(c, N3, MEMBER_DONE));
    step(c);
    assert_false(cohort_is_retrying(c, N1));
    cohort_free(c);
    arena_free(a);
}

/* n1 and n2 move together when n3 is done, and there is room for both. */
static void who_moves_together_starts_together(void **state)
{
    (void)state;
    arena *a = arena_new(0);
    cohort *c = a_batch_of_three(a, 2, 2);
    reasons list = {0};
    free_to_move(c, a, N1, "n1");
    free_to_move(c, a, N2, "n2");
    step(c);
    assert_true(cohort_reasons(c, N2, a, &list));
    assert_int_equal(list.len, 1);
    check_text(list.at[0].scope, "compartment a");
    assert_int_equal(list.at[0].of_count, 1);
    check_text(list.at[0].of[0], "n3");
    assert_true(cohort_outcome(c, N3, MEMBER_DONE));
    step(c);
    assert_int_equal(cohort_state(c, N1), MEMBER_IN_FLIGHT);
    assert_int_equal(cohort_state(c, N2), MEMBER_IN_FLIGHT);
    cohort_free(c);
    arena_free(a);
}

/* n3 has failed in the first batch, keeps its place and is not tried again. n5 has failed in the
 * second, which n4 is under way in and which ends in a stop. A reset alone does not help: n1 and n2
 * were not tried yet and take the places that n3 leaves. With all of them done no reset is needed.
 */
static void who_must_be_done_anyway_may_avert_the_stop(void **state)
{
    (void)state;
    static const str names[] = {STR("n1"), STR("n2"), STR("n3"), STR("n4"), STR("n5")};
    static const compartment_rule rule = {.name = STR(COHORT_DEFAULT),
                                          .budget = 3,
                                          .initial_batch = 2,
                                          .batch_threshold = 100,
                                          .failure_threshold = 2,
                                          .safety_limit = 80};
    arena *a = arena_new(0);
    cohort *c = cohort_new();
    reasons list = {0};
    assert_true(c && cohort_set_policy(c, &(cohort_policy){&rule, 1, true}));
    for (member_id m = N1; m <= N5; m++)
        assert_true(cohort_join(c, m, names[m], 0, (label_set){0}) &&
                    cohort_set_state(c, m, m == N3 ? MEMBER_STARTABLE : MEMBER_WAITING));
    step(c);
    assert_true(cohort_outcome(c, N3, MEMBER_FAILED));
    assert_true(cohort_set_state(c, N4, MEMBER_STARTABLE) &&
                cohort_set_state(c, N5, MEMBER_STARTABLE));
    step(c);
    assert_true(cohort_outcome(c, N5, MEMBER_FAILED) && cohort_set_retry(c, N5, 0));
    assert_true(cohort_set_state(c, N1, MEMBER_STARTABLE) &&
                cohort_set_state(c, N2, MEMBER_STARTABLE));
    step(c);
    assert_true(cohort_reasons(c, N5, a, &list));
    assert_int_equal(list.len, 2);
    assert_int_equal(list.at[0].rule, REASON_BATCH);
    assert_int_equal(list.at[1].rule, REASON_STOPPED);
    assert_int_equal(list.at[1].act, RELEASE_COMPLETE);
    assert_int_equal(list.at[1].of_count, 3);
    check_text(list.at[1].of[2], "n3");
    check_text(reason_text(a, &list.at[1]),
               "unless more are done the batch will end in a stop after 2 failed batches in a row");
    for (member_id m = N1; m <= N3; m++)
        assert_true(cohort_set_state(c, m, MEMBER_DONE));
    assert_true(cohort_outcome(c, N4, MEMBER_DONE));
    step(c);
    assert_true(cohort_is_retrying(c, N5));
    cohort_free(c);
    arena_free(a);
}

/* n1 has failed, and its places are free: it waits for n2, which was not tried yet and waits for
 * the batch of n3. */
static void who_failed_waits_for_those_not_tried_yet(void **state)
{
    (void)state;
    static const str names[] = {STR("n1"), STR("n2"), STR("n3")};
    static const compartment_rule rule = {
        .name = STR(COHORT_DEFAULT), .budget = 3, .initial_batch = 1};
    arena *a = arena_new(0);
    cohort *c = cohort_new();
    reasons list = {0};
    assert_true(c && cohort_set_policy(c, &(cohort_policy){&rule, 1, false}));
    for (member_id m = N1; m <= N3; m++)
        assert_true(cohort_join(c, m, names[m], 0, (label_set){0}) &&
                    cohort_set_state(c, m, m == N1 ? MEMBER_STARTABLE : MEMBER_WAITING));
    step(c);
    assert_true(cohort_outcome(c, N1, MEMBER_FAILED) && cohort_set_retry(c, N1, 0));
    assert_true(cohort_set_state(c, N3, MEMBER_STARTABLE));
    step(c);
    assert_true(cohort_set_state(c, N2, MEMBER_STARTABLE));
    assert_true(cohort_is_retrying(c, N1) && cohort_outcome(c, N1, MEMBER_FAILED));
    step(c);
    assert_true(cohort_reasons(c, N1, a, &list));
    assert_int_equal(list.len, 1);
    check_text(reason_text(a, &list.at[0]),
               "1 of 3 places are taken, but those that were not tried yet come first");
    cohort_free(c);
    arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_moves_takes_its_place_along),
        cmocka_unit_test(who_failed_in_the_batch_is_no_progress),
        cmocka_unit_test(a_reset_moves_who_is_let_go),
        cmocka_unit_test(a_batch_that_ends_takes_its_places_along),
        cmocka_unit_test(who_is_tried_again_may_avert_the_stop),
        cmocka_unit_test(a_reset_brings_places_along),
        cmocka_unit_test(who_failed_earlier_waits_for_no_batch),
        cmocka_unit_test(a_batch_may_leave_no_place_before_its_stop),
        cmocka_unit_test(who_gives_a_place_back_may_avert_the_stop),
        cmocka_unit_test(the_first_batch_after_a_reset_moves_when_it_ends),
        cmocka_unit_test(a_place_is_kept_until_the_batch_is_judged),
        cmocka_unit_test(who_comes_later_finds_a_batch),
        cmocka_unit_test(who_comes_later_finds_its_place_taken),
        cmocka_unit_test(who_comes_later_waits_for_those_not_tried_yet),
        cmocka_unit_test(who_moves_together_starts_together),
        cmocka_unit_test(who_must_be_done_anyway_may_avert_the_stop),
        cmocka_unit_test(who_failed_waits_for_those_not_tried_yet),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
