/* SPDX-License-Identifier: Apache-2.0 */
/* Compartments, budgets and batches, row by row as the rules state them (A1 to A7), then at random.
 */
#include "support/check.h"

#include "engine/cohort_internal.h"

#define MEMBERS_MAX 200

/* ---- a story: one compartment, batches end at once, some members fail or get blocked ---- */

typedef struct story {
    const char *name;
    int64_t members;
    compartment_rule rule;
    int failures[8]; /* of each batch */
    int blocked[8];
    const char *batches;
    int64_t ceiling, current_batch, completed, failed, consecutive;
    bool stopped;
} story;

#define PERCENT(p) .percent = true, .budget = (p)
#define COUNT(n) .budget = (n)
#define FIXED(n) .pace = COHORT_FIXED, .initial_batch = (n)
#define LINEAR(n, d) .pace = COHORT_LINEAR, .initial_batch = (n), .delta = (d)
#define EXPONENTIAL(n, f) .pace = COHORT_EXPONENTIAL, .initial_batch = (n), .growth_factor = (f)
#define RULE_AT(threshold, ...)                                                                    \
    {.name = STR(COHORT_DEFAULT), .batch_threshold = (threshold), .safety_limit = 50, __VA_ARGS__}
#define RULE(...) RULE_AT(100, __VA_ARGS__)

static const story a4_rows[] = {
    {"linear, initial 1, delta 1",
     8,
     RULE(PERCENT(100), LINEAR(1, 1)),
     {0},
     {0},
     "1,2,3,2",
     8,
     5,
     8,
     0,
     0,
     false},
    {"linear, initial 2, delta 2, failureThreshold 3; batch 2 has 1 failure",
     10,
     RULE(PERCENT(100), LINEAR(2, 2), .failure_threshold = 3),
     {0, 1},
     {0},
     "2,4(1),4",
     10,
     4,
     9,
     1,
     0,
     false},
    {"linear, initial 3, delta 2, failureThreshold 2; failures 0,1,1",
     20,
     RULE(PERCENT(100), LINEAR(3, 2), .failure_threshold = 2),
     {0, 1, 1},
     {0},
     "3,5(1),3(1)",
     20,
     4,
     9,
     2,
     2,
     true},
    {"linear, initial 3, delta 2, failureThreshold 3; failures 0,1,1",
     20,
     RULE(PERCENT(100), LINEAR(3, 2), .failure_threshold = 3),
     {0, 1, 1},
     {0},
     "3,5(1),3(1),1,3,5",
     20,
     7,
     18,
     2,
     0,
     false},
    {"exponential, factor 2",
     15,
     RULE(PERCENT(100), EXPONENTIAL(1, 2)),
     {0},
     {0},
     "1,2,4,8",
     15,
     5,
     15,
     0,
     0,
     false},
    {"exponential, factor 2, budget 25%",
     40,
     RULE(PERCENT(25), EXPONENTIAL(1, 2)),
     {0},
     {0},
     "1,2,4,8,10,10,5",
     10,
     8,
     40,
     0,
     0,
     false},
    {"exponential, factor 4",
     100,
     RULE(PERCENT(100), EXPONENTIAL(1, 4)),
     {0},
     {0},
     "1,4,16,64,15",
     100,
     6,
     100,
     0,
     0,
     false},
    {"exponential, initial 4, threshold 75, failureThreshold 2; failures 0,4,1",
     40,
     RULE_AT(75, PERCENT(100), EXPONENTIAL(4, 2), .failure_threshold = 2),
     {0, 4, 1},
     {0},
     "4,8(4),4(1),8,16",
     40,
     6,
     35,
     5,
     0,
     false},
    {"exponential, initial 4, threshold 75, failureThreshold 2, count 6; failures 0,3,3",
     40,
     RULE_AT(75, COUNT(6), EXPONENTIAL(4, 2), .failure_threshold = 2),
     {0, 3, 3},
     {0},
     "4,6(3),3(3)",
     6,
     4,
     7,
     6,
     2,
     true},
    {"fixed 3, failureThreshold 1; first batch 1 failure",
     10,
     RULE(PERCENT(100), FIXED(3), .failure_threshold = 1),
     {1},
     {0},
     "3(1)",
     10,
     2,
     2,
     1,
     1,
     true},
    {"fixed 3, failureThreshold 1; failure in batch 2",
     10,
     RULE(PERCENT(100), FIXED(3), .failure_threshold = 1),
     {0, 1},
     {0},
     "3,3(1),3,1",
     10,
     5,
     9,
     1,
     0,
     false},
    {"fixed 3, threshold 60, failureThreshold 1; failures 1,1,2",
     9,
     RULE_AT(60, PERCENT(100), FIXED(3), .failure_threshold = 1),
     {1, 1, 2},
     {0},
     "3(1),3(1),3(2)",
     9,
     4,
     5,
     4,
     1,
     false},
    {"fixed 5, budget 30%",
     10,
     RULE(PERCENT(30), FIXED(5)),
     {0},
     {0},
     "3,3,3,1",
     3,
     5,
     10,
     0,
     0,
     false},
    {"fixed 5, failureThreshold 1; all fail",
     10,
     RULE(PERCENT(100), FIXED(5), .failure_threshold = 1),
     {5, 5},
     {0},
     "5(5)",
     10,
     2,
     0,
     5,
     1,
     true},
    {"fixed 2, count 2, no failureThreshold; all fail",
     6,
     RULE(COUNT(2), FIXED(2)),
     {2, 2, 2},
     {0},
     "2(2),2(2),2(2)",
     2,
     4,
     0,
     6,
     3,
     false},
    {"fixed 4, threshold 75, failureThreshold 2; one of batch 1 and 2 becomes blocked in flight",
     12,
     RULE_AT(75, PERCENT(100), FIXED(4), .failure_threshold = 2),
     {0},
     {1, 1},
     "4[1],4[1],4",
     12,
     4,
     10,
     0,
     0,
     false},
    {"no strategy, budget 25%",
     10,
     RULE(PERCENT(25), .pace = COHORT_NONE),
     {0},
     {0},
     "2,2,2,2,2",
     2,
     6,
     10,
     0,
     0,
     false},
    /* A7: the legacy budget. */
    {"legacy percent 25",
     10,
     RULE(PERCENT(25), .pace = COHORT_FIXED, .initial_is_ceiling = true),
     {0},
     {0},
     "2,2,2,2,2",
     2,
     6,
     10,
     0,
     0,
     false},
    {"legacy percent 0 is one at a time",
     3,
     RULE(PERCENT(0), .pace = COHORT_FIXED, .initial_is_ceiling = true),
     {0},
     {0},
     "1,1,1",
     1,
     4,
     3,
     0,
     0,
     false},
    {"legacy count 0 is one at a time",
     3,
     RULE(COUNT(0), .pace = COHORT_FIXED, .initial_is_ceiling = true),
     {0},
     {0},
     "1,1,1",
     1,
     4,
     3,
     0,
     0,
     false},
    {"legacy without numbers is all",
     7,
     RULE(PERCENT(100), .pace = COHORT_FIXED, .initial_is_ceiling = true),
     {0},
     {0},
     "7",
     7,
     2,
     7,
     0,
     0,
     false},
};

static char member_names[MEMBERS_MAX][16];

static str member_name(member_id m)
{
    snprintf(member_names[m], sizeof member_names[m], "node-%04u", m + 1);
    return str_of(member_names[m]);
}

static cohort *cohort_with(const compartment_rule *rules, size_t count, int64_t members)
{
    cohort *c = cohort_new();
    assert_non_null(c);
    assert_true(cohort_set_policy(c, &(cohort_policy){rules, count, false}));
    for (member_id m = 0; m < members; m++) {
        assert_true(cohort_join(c, m, member_name(m), 0, (label_set){0}));
        assert_true(cohort_set_state(c, m, MEMBER_STARTABLE));
    }
    return c;
}

static void expect_sound(cohort *c)
{
    err error;
    check_msg(cohort_check(c, &error), "%s", error.text);
}

/* Ends the batch that has just begun: the last ones fail, those before them get blocked. */
static void end_batch(cohort *c, const cohort_events *events, int failures, int blocked, buf *told)
{
    int64_t size = 0;
    for (size_t i = 0; i < events->len; i++)
        size += events->at[i].kind == COHORT_EVENT_START;
    int64_t place = 0;
    for (size_t i = 0; i < events->len; i++) {
        if (events->at[i].kind != COHORT_EVENT_START)
            continue;
        int64_t left = size - place++;
        member_state end = left <= failures             ? MEMBER_FAILED
                           : left <= failures + blocked ? MEMBER_BLOCKED
                                                        : MEMBER_DONE;
        assert_true(cohort_outcome(c, events->at[i].member, end));
    }
    buf_addf(told, "%s%lld", told->len > 0 ? "," : "", (long long)size);
    if (failures > 0)
        buf_addf(told, "(%d)", failures);
    if (blocked > 0)
        buf_addf(told, "[%d]", blocked);
}

static void run_story(const story *s)
{
    cohort *c = cohort_with(&s->rule, 1, s->members);
    buf told = BUF(1000);
    cohort_events events = {0};
    compartment_view view;
    for (int batch = 0;; batch++) {
        events.len = 0;
        assert_true(cohort_step(c, 0, &events));
        expect_sound(c);
        cohort_view(c, 0, &view);
        assert_true(view.holders <= view.ceiling);
        if (view.in_flight == 0)
            break;
        int n = batch < 8 ? batch : 7;
        end_batch(c, &events, s->failures[n], s->blocked[n], &told);
    }
    check_msg(str_eq(buf_str(&told), str_of(s->batches)), "%s: %.*s", s->name,
              STR_ARG(buf_str(&told)));
    check_msg(view.ceiling == s->ceiling, "%s: %lld", s->name, (long long)view.ceiling);
    check_msg(view.current_batch == s->current_batch, "%s: %lld", s->name,
              (long long)view.current_batch);
    check_msg(view.completed == s->completed, "%s: %lld", s->name, (long long)view.completed);
    check_msg(view.failed == s->failed, "%s: %lld", s->name, (long long)view.failed);
    check_msg(view.consecutive_failures == s->consecutive, "%s", s->name);
    check_msg(view.stopped == s->stopped, "%s", s->name);
    vec_done(&events);
    buf_done(&told);
    cohort_free(c);
}

static void a4_table(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(a4_rows); i++)
        run_story(&a4_rows[i]);
}

static void a4_ceilings(void **state)
{
    (void)state;
    static const struct {
        int64_t members;
        bool percent;
        int64_t budget, ceiling;
    } rows[] = {{10, true, 25, 2},   {10, true, 30, 3}, {5, true, 10, 1},  {100, true, 1, 1},
                {100, true, 29, 29}, {0, true, 50, 0},  {10, false, 3, 3}, {2, false, 5, 5}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        compartment_rule rule =
            RULE(.percent = rows[i].percent, .budget = rows[i].budget, FIXED(1));
        cohort *c = cohort_with(&rule, 1, rows[i].members);
        cohort_events events = {0};
        assert_true(cohort_step(c, 0, &events));
        compartment_view view;
        cohort_view(c, 0, &view);
        check_msg(view.ceiling == rows[i].ceiling, "row %zu: %lld", i, (long long)view.ceiling);
        vec_done(&events);
        cohort_free(c);
    }
}

/* ---- A1: the document's own example of overlapping compartments ---- */

static const selector *select_text(arena *a, const char *text)
{
    err error;
    selector *s = selector_parse(a, str_of(text), &error);
    check_msg(s != NULL, "%s", error.text);
    return s;
}

static void the_safest_compartment_wins(void **state)
{
    (void)state;
    arena *a = arena_new(0);
    compartment_rule rules[] = {
        {.name = STR("us-west"),
         .selector = select_text(a, "region=us-west"),
         COUNT(20),
         EXPONENTIAL(1, 2)},
        {.name = STR("production"),
         .selector = select_text(a, "env=production"),
         COUNT(10),
         LINEAR(1, 1)},
        {.name = STR("critical"),
         .selector = select_text(a, "priority=critical"),
         COUNT(3),
         FIXED(1)},
        {.name = STR("east-b"),
         .selector = select_text(a, "region=east"),
         PERCENT(50),
         LINEAR(1, 1)},
        {.name = STR("east-a"),
         .selector = select_text(a, "region=east"),
         PERCENT(50),
         LINEAR(1, 1)},
        RULE(COUNT(1), FIXED(1)),
    };
    cohort *c = cohort_new();
    assert_true(cohort_set_policy(c, &(cohort_policy){rules, COUNT_OF(rules), false}));
    static const label all[] = {{STR("env"), STR("production")},
                                {STR("priority"), STR("critical")},
                                {STR("region"), STR("us-west")}};
    static const label two[] = {{STR("env"), STR("production")}, {STR("region"), STR("us-west")}};
    static const label one[] = {{STR("region"), STR("us-west")}};
    static const label east[] = {{STR("region"), STR("east")}};
    assert_true(cohort_join(c, 0, STR("a"), 0, (label_set){all, 3}));
    assert_true(cohort_join(c, 1, STR("b"), 0, (label_set){two, 2}));
    assert_true(cohort_join(c, 2, STR("c"), 0, (label_set){one, 1}));
    assert_true(cohort_join(c, 3, STR("d"), 0, (label_set){NULL, 0}));
    assert_true(cohort_join(c, 4, STR("e"), 0, (label_set){east, 1}));
    cohort_events events = {0};
    assert_true(cohort_step(c, 0, &events));
    static const char *const want[] = {"critical", "production", "us-west", COHORT_DEFAULT,
                                       "east-a"};
    for (member_id m = 0; m < COUNT_OF(want); m++) {
        compartment_view view;
        cohort_view(c, cohort_compartment_of(c, m), &view);
        check_text(view.rule->name, want[m]);
    }
    /* A relabelled member moves; one in flight stays until its batch has ended. */
    assert_true(cohort_set_state(c, 2, MEMBER_STARTABLE));
    assert_true(cohort_step(c, 0, &events));
    assert_int_equal(cohort_state(c, 2), MEMBER_IN_FLIGHT);
    assert_true(cohort_join(c, 2, STR("c"), 0, (label_set){all, 3}));
    assert_true(cohort_join(c, 1, STR("b"), 0, (label_set){all, 3}));
    assert_true(cohort_step(c, 0, &events));
    compartment_view view;
    cohort_view(c, cohort_compartment_of(c, 1), &view);
    check_text(view.rule->name, "critical");
    cohort_view(c, cohort_compartment_of(c, 2), &view);
    check_text(view.rule->name, "us-west");
    assert_true(cohort_outcome(c, 2, MEMBER_DONE));
    assert_true(cohort_step(c, 0, &events));
    cohort_view(c, cohort_compartment_of(c, 2), &view);
    check_text(view.rule->name, "critical");
    expect_sound(c);
    vec_done(&events);
    cohort_free(c);
    arena_free(a);
}

/* ---- A2, A3, A5, A6 ---- */

static size_t starts(const cohort_events *events, cohort_event_kind kind)
{
    size_t n = 0;
    for (size_t i = 0; i < events->len; i++)
        n += events->at[i].kind == kind;
    return n;
}

static void members_start_oldest_first_then_by_name(void **state)
{
    (void)state;
    compartment_rule rule = RULE(COUNT(2), FIXED(2));
    cohort *c = cohort_new();
    assert_true(cohort_set_policy(c, &(cohort_policy){&rule, 1, false}));
    static const struct {
        str name;
        int64_t created;
    } members[] = {{STR("c"), 5}, {STR("b"), 9}, {STR("a"), 9}, {STR("d"), 5}};
    for (member_id m = 0; m < COUNT_OF(members); m++) {
        assert_true(cohort_join(c, m, members[m].name, members[m].created, (label_set){0}));
        assert_true(cohort_set_state(c, m, MEMBER_STARTABLE));
    }
    cohort_events events = {0};
    assert_true(cohort_step(c, 0, &events));
    assert_int_equal(events.len, 3);
    assert_int_equal(events.at[1].member, 0);
    assert_int_equal(events.at[2].member, 3);
    vec_done(&events);
    cohort_free(c);
}

static void a_failed_member_held_out_of_service_keeps_its_place(void **state)
{
    (void)state;
    compartment_rule rule = RULE(COUNT(2), FIXED(2));
    cohort *c = cohort_with(&rule, 1, 6);
    cohort_events events = {0};
    assert_true(cohort_step(c, 0, &events));
    cohort_set_held(c, 0, true);
    assert_true(cohort_outcome(c, 0, MEMBER_FAILED));
    assert_true(cohort_outcome(c, 1, MEMBER_DONE));
    events.len = 0;
    assert_true(cohort_step(c, 0, &events));
    assert_int_equal(starts(&events, COHORT_EVENT_START),
                     1); /* one of the two places is still taken */
    cohort_set_held(c, 0, false);
    assert_true(cohort_outcome(c, 2, MEMBER_DONE));
    events.len = 0;
    assert_true(cohort_step(c, 0, &events));
    assert_int_equal(starts(&events, COHORT_EVENT_START), 2);
    expect_sound(c);
    vec_done(&events);
    cohort_free(c);
}

static void a_failed_member_is_tried_again_when_nobody_fresh_is_left(void **state)
{
    (void)state;
    compartment_rule rule = RULE(COUNT(1), FIXED(1));
    cohort *c = cohort_with(&rule, 1, 2);
    cohort_events events = {0};
    assert_true(cohort_step(c, 0, &events));
    assert_true(cohort_outcome(c, 0, MEMBER_FAILED));
    assert_true(cohort_set_retry(c, 0, 10000));
    events.len = 0;
    assert_true(cohort_step(c, 20000, &events));
    assert_int_equal(starts(&events, COHORT_EVENT_RETRY), 0); /* node-0002 is fresh */
    assert_int_equal(cohort_state(c, 1), MEMBER_IN_FLIGHT);
    assert_int_equal(cohort_next_ms(c),
                     REASON_NEVER); /* no place: it waits for node-0002, not for a time */
    assert_true(cohort_outcome(c, 1, MEMBER_DONE));
    assert_int_equal(cohort_next_ms(c), 10000);
    events.len = 0;
    assert_true(cohort_step(c, 20000, &events));
    assert_int_equal(starts(&events, COHORT_EVENT_RETRY), 1);
    compartment_view view;
    cohort_view(c, 0, &view);
    assert_int_equal(view.failed, 1);
    assert_int_equal(view.completed, 1);
    assert_true(cohort_outcome(c, 0, MEMBER_DONE));
    cohort_view(c, 0, &view);
    assert_int_equal(view.failed, 0);
    assert_int_equal(view.completed, 2);
    vec_done(&events);
    cohort_free(c);
}

static void a_batch_whose_members_all_leave_is_not_judged(void **state)
{
    (void)state;
    compartment_rule rule = RULE(COUNT(2), FIXED(2));
    cohort *c = cohort_with(&rule, 1, 4);
    cohort_events events = {0};
    assert_true(cohort_step(c, 0, &events));
    cohort_leave(c, 0);
    cohort_leave(c, 1);
    events.len = 0;
    assert_true(cohort_step(c, 0, &events));
    assert_int_equal(starts(&events, COHORT_EVENT_JUDGE), 0);
    assert_int_equal(starts(&events, COHORT_EVENT_START), 2);
    compartment_view view;
    cohort_view(c, 0, &view);
    assert_int_equal(view.current_batch, 1);
    vec_done(&events);
    cohort_free(c);
}

static void after_a_reset_what_is_in_flight_is_batch_1(void **state)
{
    (void)state;
    compartment_rule rule = RULE(COUNT(8), EXPONENTIAL(1, 2));
    cohort *c = cohort_with(&rule, 1, 20);
    cohort_events events = {0};
    for (int batch = 0; batch < 2; batch++) {
        events.len = 0;
        assert_true(cohort_step(c, 0, &events));
        buf told = BUF(100);
        end_batch(c, &events, 0, 0, &told);
        buf_done(&told);
    }
    events.len = 0;
    assert_true(cohort_step(c, 0, &events)); /* 4 start */
    assert_int_equal(starts(&events, COHORT_EVENT_START), 4);
    assert_true(cohort_outcome(c, 3, MEMBER_DONE));
    cohort_reset(c);
    expect_sound(c);
    for (member_id m = 4; m < 7; m++)
        assert_true(cohort_outcome(c, m, MEMBER_DONE));
    events.len = 0;
    assert_true(cohort_step(c, 0, &events));
    assert_int_equal(events.at[0].kind, COHORT_EVENT_JUDGE);
    assert_int_equal(events.at[0].number, 1);
    assert_int_equal(events.at[0].size, 3);
    assert_int_equal(starts(&events, COHORT_EVENT_START), 1); /* initialBatch again */
    vec_done(&events);
    cohort_free(c);
}

static void without_a_policy_nothing_starts_and_state_is_kept(void **state)
{
    (void)state;
    compartment_rule rule = RULE(COUNT(2), FIXED(2));
    cohort *c = cohort_with(&rule, 1, 5);
    cohort_events events = {0};
    assert_true(cohort_step(c, 0, &events));
    assert_true(cohort_set_policy(c, NULL));
    assert_true(cohort_outcome(c, 0, MEMBER_DONE));
    assert_true(cohort_outcome(c, 1, MEMBER_DONE));
    events.len = 0;
    assert_true(cohort_step(c, 0, &events));
    assert_int_equal(starts(&events, COHORT_EVENT_START), 0);
    assert_true(cohort_set_policy(c, &(cohort_policy){&rule, 1, false}));
    events.len = 0;
    assert_true(cohort_step(c, 0, &events));
    assert_int_equal(starts(&events, COHORT_EVENT_START), 2);
    compartment_view view;
    cohort_view(c, 0, &view);
    assert_int_equal(view.completed, 2);
    assert_int_equal(view.current_batch, 2);
    expect_sound(c);
    vec_done(&events);
    cohort_free(c);
}

/* ---- at random ---- */

typedef struct history {
    rng r;
    cohort *c;
    const selector *y;
    compartment_rule rules[3];
    cohort_events events;
} history;

static size_t dice(history *h, size_t below)
{
    return rng_below(&h->r, below);
}

static void random_rules(history *h, const selector *x)
{
    static const str names[] = {STR("p"), STR("q"), STR(COHORT_DEFAULT)};
    for (size_t i = 0; i < 3; i++)
        h->rules[i] = (compartment_rule){.name = names[i],
                                         .selector = i == 0   ? x
                                                     : i == 1 ? h->y
                                                              : NULL,
                                         .percent = dice(h, 2) == 0,
                                         .budget = 1 + (int64_t)dice(h, 40),
                                         .pace = (cohort_pace)dice(h, 4),
                                         .initial_batch = 1 + (int64_t)dice(h, 3),
                                         .delta = 1,
                                         .growth_factor = 2,
                                         .batch_threshold = 1 + (int64_t)dice(h, 100),
                                         .failure_threshold = (int64_t)dice(h, 3),
                                         .safety_limit = 50};
}

static void end_claim(history *h, member_id m, int64_t now)
{
    static const member_state ends[] = {MEMBER_DONE, MEMBER_DONE, MEMBER_FAILED, MEMBER_BLOCKED};
    member_state end = ends[dice(h, COUNT_OF(ends))];
    cohort_set_held(h->c, m, end == MEMBER_FAILED && dice(h, 2) == 0);
    assert_true(cohort_outcome(h->c, m, end));
    if (end == MEMBER_FAILED)
        assert_true(cohort_set_retry(h->c, m, now + (int64_t)dice(h, 20)));
}

static void edit_rarely(history *h)
{
    if (dice(h, 10) == 0)
        cohort_reset(h->c);
    else if (dice(h, 10) == 0)
        cohort_lift_stops(h->c);
    else if (dice(h, 10) == 0) {
        h->rules[1].selector = h->rules[1].selector ? NULL : h->y;
        cohort_policy policy = {h->rules + dice(h, 2), 2, false};
        assert_true(cohort_set_policy(h->c, &policy));
    }
}

static void something_happens(history *h, int64_t now)
{
    static const label sets[][2] = {{{STR("x"), STR("1")}, {STR("y"), STR("1")}},
                                    {{STR("x"), STR("1")}, {STR("z"), STR("1")}},
                                    {{STR("y"), STR("2")}, {STR("z"), STR("1")}},
                                    {{STR("a"), STR("2")}, {STR("z"), STR("1")}}};
    member_id m = (member_id)dice(h, 30);
    member_state s = cohort_state(h->c, m);
    size_t what = dice(h, 7);
    if (what == 0)
        assert_true(cohort_join(h->c, m, member_name(m), m / 4, (label_set){sets[dice(h, 4)], 2}));
    else if (what == 1 && dice(h, 4) == 0)
        cohort_leave(h->c, m);
    else if (what <= 3 && s == MEMBER_IN_FLIGHT)
        end_claim(h, m, now);
    else if (what <= 5 && s != MEMBER_IN_FLIGHT && s != MEMBER_ABSENT)
        assert_true(cohort_set_state(h->c, m, dice(h, 3) ? MEMBER_STARTABLE : MEMBER_WAITING));
    else if (what == 6)
        edit_rarely(h);
}

/* Whoever started somebody is within its ceiling after it. */
static void expect_ceilings(const history *h)
{
    for (size_t i = 0; i < cohort_compartments(h->c); i++) {
        compartment_view view;
        cohort_view(h->c, i, &view);
        for (size_t k = 0; k < h->events.len; k++)
            if (h->events.at[k].kind <= COHORT_EVENT_RETRY &&
                str_eq(h->events.at[k].compartment, view.rule->name))
                check_msg(view.holders <= view.ceiling, "%lld of %lld", (long long)view.holders,
                          (long long)view.ceiling);
    }
}

static void random_history(uint64_t seed)
{
    arena *a = arena_new(0);
    history h = {.r = {seed}, .c = cohort_new(), .y = select_text(a, "y")};
    random_rules(&h, select_text(a, "x=1"));
    assert_true(cohort_set_policy(h.c, &(cohort_policy){h.rules, 3, dice(&h, 4) == 0}));
    for (int64_t now = 0; now < 300; now++) {
        something_happens(&h, now);
        h.events.len = 0;
        assert_true(cohort_step(h.c, now, &h.events));
        expect_sound(h.c);
        expect_ceilings(&h);
    }
    vec_done(&h.events);
    cohort_free(h.c);
    arena_free(a);
}

static void no_random_history_exceeds_a_ceiling(void **state)
{
    (void)state;
    rng seeds = rng_seeded();
    for (uint64_t i = 0; i < 300; i++)
        random_history(rng_next(&seeds));
}

/* I6: the check finds a claim that began after a stop or a pause, and one before it is well. */
static void claims_after_a_halt_are_found(void **state)
{
    (void)state;
    cohort *c = cohort_new();
    compartment_rule rule = RULE(COUNT(2), FIXED(1));
    cohort_policy policy = {.rules = &rule, .rule_count = 1};
    cohort_events events = {0};
    err error;
    assert_true(cohort_set_policy(c, &policy));
    assert_true(cohort_join(c, 0, STR("m"), 0, (label_set){0}));
    assert_true(cohort_set_state(c, 0, MEMBER_STARTABLE));
    assert_true(cohort_step(c, 0, &events));
    assert_int_equal(cohort_state(c, 0), MEMBER_IN_FLIGHT);
    assert_true(cohort_check(c, &error));
    c->compartments.at[0].stopped = true;
    assert_false(cohort_check(c, &error));
    check_err(error, "I6: m was claimed after a stop");
    c->compartments.at[0].stop_claim = c->claims;
    assert_true(cohort_check(c, &error));
    c->paused = true;
    assert_false(cohort_check(c, &error));
    check_err(error, "I6: m was claimed after a pause");
    c->paused = false;
    cohort_pause(c, true);
    assert_true(cohort_check(c, &error));
    vec_done(&events);
    cohort_free(c);
}

/* I1: the check finds claims of the last step that a ceiling has no place for. One that shrinks
 * later stops starts, never work that runs. */
static void claims_over_a_ceiling_are_found(void **state)
{
    (void)state;
    cohort *c = cohort_new();
    compartment_rule rule = RULE(COUNT(2), FIXED(2));
    cohort_policy policy = {.rules = &rule, .rule_count = 1};
    cohort_events events = {0};
    err error;
    assert_true(cohort_set_policy(c, &policy));
    assert_true(cohort_join(c, 0, STR("m"), 0, (label_set){0}));
    assert_true(cohort_join(c, 1, STR("n"), 0, (label_set){0}));
    assert_true(cohort_set_state(c, 0, MEMBER_STARTABLE));
    assert_true(cohort_set_state(c, 1, MEMBER_STARTABLE));
    assert_true(cohort_step(c, 0, &events));
    assert_true(cohort_check(c, &error));
    c->compartments.at[0].rule.budget = 1;
    assert_false(cohort_check(c, &error));
    check_err(error, "I1: m was started, and 2 hold compartment __default__, which has 1 places");
    assert_true(cohort_step(c, 1, &events));
    assert_true(cohort_check(c, &error));
    vec_done(&events);
    cohort_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(claims_over_a_ceiling_are_found),
        cmocka_unit_test(claims_after_a_halt_are_found),
        cmocka_unit_test(a4_table),
        cmocka_unit_test(a4_ceilings),
        cmocka_unit_test(the_safest_compartment_wins),
        cmocka_unit_test(members_start_oldest_first_then_by_name),
        cmocka_unit_test(a_failed_member_held_out_of_service_keeps_its_place),
        cmocka_unit_test(a_failed_member_is_tried_again_when_nobody_fresh_is_left),
        cmocka_unit_test(a_batch_whose_members_all_leave_is_not_judged),
        cmocka_unit_test(after_a_reset_what_is_in_flight_is_batch_1),
        cmocka_unit_test(without_a_policy_nothing_starts_and_state_is_kept),
        cmocka_unit_test(no_random_history_exceeds_a_ceiling),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
