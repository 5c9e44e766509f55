/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of part C one by one, through engine_step, and the vectors of ctrlplane's rules. */
#include "support/check.h"

#include "support/rows.h"
#include "support/world.h"

#define API "apiVersion: drover.dev/v1alpha1\n"

static void environment_of(world *w, const char *name, const char *selector_text)
{
    world_apply(w, API "kind: Environment\nmetadata: {name: %s}\nspec: {resourceSelector: '%s'}\n",
                name, selector_text);
}

static void deployment_of(world *w, const char *name)
{
    world_apply(
        w,
        API "kind: Deployment\nmetadata: {name: %s}\nspec: {resourceSelector: 'true', job: {pull: {"
            "}}}\n",
        name);
}

/* Resources that run version 1 of app already, or nothing. */
static void hosts(world *w, const char *prefix, int count, const char *labels, bool running)
{
    for (int i = 0; i < count; i++)
        world_apply(
            w,
            API "kind: Resource\nmetadata: {name: %s%d, labels: {%s}}\nspec: {kind: host, version: "
                "v1}\n%s",
            prefix, i, labels,
            running ? "status: {releases: [{deployment: app, version: '1'}]}\n" : "");
}

static void publish(world *w, const char *change, const char *tag)
{
    world_apply(
        w,
        API
        "kind: Version\nmetadata: {name: %s-%s, creationTimestamp: '%s'}\nspec: {deployment: %s, "
        "tag: '%s'}\n",
        change, tag, time_at(w->now), change, tag);
}

static void policy(world *w, const char *rules)
{
    world_apply(w, API "kind: RolloutPolicy\nmetadata: {name: p}\nspec:\n  rules:\n%s", rules);
}

/* app in prod on some hosts that run version 1. */
static void open_app(world *w, const char *start, int count, const char *rules)
{
    world_open(w, start);
    environment_of(w, "prod", "true");
    deployment_of(w, "app");
    world_apply(
        w, API
        "kind: Version\nmetadata: {name: app-1, creationTimestamp: '2026-01-01T00:00:00Z'}\nspec: "
        "{deployment: app, tag: '1'}\n");
    hosts(w, "h", count, "", true);
    if (rules)
        policy(w, rules);
}

/* ---- what is wanted ---- */

static void c1_newest_ready_version(void **state)
{
    (void)state;
    world w;
    open_app(&w, "2026-03-01T08:00:00Z", 1, NULL);
    assert_int_equal(view_at(&w, "app", "h0").state, PLACEMENT_DONE);
    static const char *const states[] = {"building", "paused", "rejected", "failed"};
    for (size_t i = 0; i < COUNT_OF(states); i++)
        world_apply(
            &w,
            API "kind: Version\nmetadata: {name: x%zu}\nspec: {deployment: app, tag: x%zu, status: "
                "%s}\n",
            i, i, states[i]);
    world_until(&w, INT64_MAX);
    assert_int_equal(w.jobs.len, 0);
    publish(&w, "app", "2");
    publish(&w, "app", "3"); /* the same second: the greater id is newer; 2 has started already */
    world_until(&w, INT64_MAX);
    assert_int_equal(w.jobs.len, 2);
    check_text(view_at(&w, "app", "h0").current, "3");
    /* A version that is rejected is no longer wanted: back to the newest that is. */
    world_apply(
        &w, API
        "kind: Version\nmetadata: {name: app-3, creationTimestamp: '2026-03-01T08:00:00Z'}\nspec: "
        "{deployment: app, tag: '3', status: rejected}\n");
    world_until(&w, INT64_MAX);
    check_text(view_at(&w, "app", "h0").current, "2");
    /* A paused one stays where it runs. */
    world_apply(
        &w, API
        "kind: Version\nmetadata: {name: app-2, creationTimestamp: '2026-03-01T08:00:00Z'}\nspec: "
        "{deployment: app, tag: '2', status: paused}\n");
    world_until(&w, INT64_MAX);
    check_text(view_at(&w, "app", "h0").current, "2");
    world_close(&w);
}

static void c1_version_selector(void **state)
{
    (void)state;
    world w;
    arena *a = arena_new(0);
    open_app(&w, "2026-03-01T08:00:00Z", 2,
             "  - versionSelector: {selector: 'version.tag != \"2\" || resource.name == \"h1\"', "
             "description: not two}\n");
    publish(&w, "app", "2");
    world_until(&w, INT64_MAX);
    assert_int_equal(jobs_count(&w, "app", "h0"), 0);
    assert_int_equal(jobs_count(&w, "app", "h1"), 1);
    /* Another evaluation error than a missing key refuses. */
    policy(
        &w,
        "  - versionSelector: {selector: 'version.tag == \"1\" || int(version.tag) / 0 == 1'}\n");
    publish(&w, "app", "3");
    world_until(&w, INT64_MAX);
    assert_int_equal(w.jobs.len, 2); /* h1 goes back to 1, nothing goes to 3 */
    check_text(view_at(&w, "app", "h1").current, "1");
    arena_free(a);
    world_close(&w);
}

/* ---- approval ---- */

static void c6_approval(void **state)
{
    (void)state;
    world w;
    arena *a = arena_new(0);
    open_app(&w, "2026-03-01T08:00:00Z", 1, "  - anyApproval: {minApprovals: 2}\n");
    publish(&w, "app", "2");
    assert_int_equal(view_at(&w, "app", "h0").state, PLACEMENT_WAITING);
    check_text(reasons_at(&w, a, "app", "h0"), "approval:approve app-2");
    world_act(&w, (fact_act){.act = ACT_APPROVE, .version = STR("app-2"), .who = STR("ann")});
    world_act(&w, (fact_act){.act = ACT_APPROVE, .version = STR("app-2"), .who = STR("ann")});
    assert_int_equal(w.jobs.len, 0);
    world_act(&w, (fact_act){.act = ACT_APPROVE,
                             .version = STR("app-2"),
                             .who = STR("bob"),
                             .environment = STR("other")});
    assert_int_equal(w.jobs.len, 0);
    world_act(&w, (fact_act){.act = ACT_REJECT, .version = STR("app-2"), .who = STR("ann")});
    world_act(&w, (fact_act){.act = ACT_APPROVE,
                             .version = STR("app-2"),
                             .who = STR("bob"),
                             .environment = STR("prod")});
    assert_int_equal(w.jobs.len, 0);
    world_act(&w, (fact_act){.act = ACT_APPROVE, .version = STR("app-2"), .who = STR("ann")});
    assert_int_equal(w.jobs.len, 1);
    arena_free(a);
    world_close(&w);
}

/* ---- environment progression ---- */

static void c6_progression(void **state)
{
    (void)state;
    world w;
    arena *a = arena_new(0);
    world_open(&w, "2026-03-01T10:00:00Z");
    environment_of(&w, "staging", "resource.metadata[\"env\"] == \"staging\"");
    environment_of(&w, "prod", "resource.metadata[\"env\"] == \"prod\"");
    deployment_of(&w, "app");
    hosts(&w, "s", 3, "env: staging", false);
    hosts(&w, "h", 1, "env: prod", false);
    world_apply(&w, API
                "kind: RolloutPolicy\nmetadata: {name: p}\nspec:\n  selector: 'environment.name == "
                "\"prod\"'\n  rules:\n"
                "  - environmentProgression: {dependsOnEnvironmentSelector: 'environment.name == "
                "\"staging\"', minimumSuccessPercentage: 50, minimumSoakTimeMinutes: 30}\n"
                "  - gradualRollout: {rolloutType: linear, timeScaleInterval: 60}\n");
    for (int i = 0; i < 3; i++) {
        static const char *const names[] = {"s0", "s1", "s2"};
        assert_true(vec_push(&w.plans,
                             (world_plan){"app", names[i], (i + 1) * 5 * MINUTE, 0, false, false}));
    }
    publish(&w, "app", "1");
    /* successes 10:05, 10:10, 10:15; half of three is the second; the soak counts from the last. */
    world_at(&w, "2026-03-01T10:06:00Z");
    check_text(reasons_at(&w, a, "app", "h0"), "progression:complete staging");
    world_at(&w, "2026-03-01T10:16:00Z");
    check_text(reasons_at(&w, a, "app", "h0"), "progression:time staging @01T10:45:00Z");
    world_until(&w, INT64_MAX);
    check_time(job_of(&w, "app", "h0", 0)->start, "2026-03-01T10:45:00Z");
    arena_free(a);
    world_close(&w);
}

/* The k-th success: percentage of targets, rounded up; a failed verification is no success. */
static void c6_progression_counts(void **state)
{
    (void)state;
    static const struct {
        int targets;
        const char *percent;
        int need; /* successes */
    } rows[] = {{3, "50", 2},   {3, "100", 3},     {3, "0", 1},   {3, "1", 1},
                {4, "50", 2},   {5, "61", 4},      {1, "100", 1}, {3, "33.333", 1},
                {3, "33.4", 2}, {3, "66.6667", 3}, {4, "75.0", 3}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        world w;
        world_open(&w, "2026-03-01T10:00:00Z");
        environment_of(&w, "staging", "resource.metadata[\"env\"] == \"staging\"");
        environment_of(&w, "prod", "resource.metadata[\"env\"] == \"prod\"");
        deployment_of(&w, "app");
        hosts(&w, "s", rows[i].targets, "env: staging", false);
        hosts(&w, "h", 1, "env: prod", false);
        world_apply(
            &w,
            API "kind: RolloutPolicy\nmetadata: {name: p}\nspec:\n  selector: 'environment.name == "
                "\"prod\"'\n  rules:\n"
                "  - environmentProgression: {dependsOnEnvironmentSelector: 'environment.name == "
                "\"staging\"', minimumSuccessPercentage: %s}\n",
            rows[i].percent);
        char names[8][16];
        for (int k = 0; k < rows[i].targets; k++) {
            snprintf(names[k], sizeof names[k], "s%d", k);
            assert_true(vec_push(&w.plans,
                                 (world_plan){"app", names[k], (k + 1) * MINUTE, 0, false, false}));
        }
        publish(&w, "app", "1");
        world_until(&w, INT64_MAX);
        check_msg(job_of(&w, "app", "h0", 0)->start ==
                      at_time("2026-03-01T10:00:00Z") + rows[i].need * MINUTE,
                  "row %zu: %s", i, time_at(job_of(&w, "app", "h0", 0)->start));
        world_close(&w);
    }
}

static void c6_progression_age_and_absence(void **state)
{
    (void)state;
    world w;
    arena *a = arena_new(0);
    world_open(&w, "2026-03-01T10:00:00Z");
    environment_of(&w, "staging", "resource.metadata[\"env\"] == \"staging\"");
    environment_of(&w, "prod", "resource.metadata[\"env\"] == \"prod\"");
    deployment_of(&w, "app");
    hosts(&w, "s", 1, "env: staging", false);
    world_apply(&w, API
                "kind: RolloutPolicy\nmetadata: {name: p}\nspec:\n  selector: 'environment.name == "
                "\"prod\"'\n  rules:\n"
                "  - environmentProgression: {dependsOnEnvironmentSelector: "
                "'environment.name.startsWith(\"stag\")', maximumAgeHours: 1}\n");
    publish(&w, "app", "1");
    world_at(&w, "2026-03-01T12:00:00Z");
    hosts(&w, "h", 1, "env: prod", false);
    world_until(&w, INT64_MAX);
    assert_int_equal(jobs_count(&w, "app", "h0"), 0); /* too old */
    /* no environment matches: refused */
    world_apply(&w, API
                "kind: RolloutPolicy\nmetadata: {name: p}\nspec:\n  selector: 'environment.name == "
                "\"prod\"'\n  rules:\n"
                "  - environmentProgression: {dependsOnEnvironmentSelector: 'environment.name == "
                "\"nowhere\"'}\n");
    world_until(&w, INT64_MAX);
    assert_int_equal(jobs_count(&w, "app", "h0"), 0);
    arena_free(a);
    world_close(&w);
}

/* ---- windows ---- */

/* YAML folds a newline in quotes; write it as an escape. */
static void yaml_quoted(const char *plain, char out[300])
{
    size_t n = 0;
    for (const char *c = plain; *c; c++) {
        if (*c == '\n') {
            out[n++] = '\\';
            out[n++] = 'n';
        } else {
            out[n++] = *c == '\'' ? '"' : *c;
        }
    }
    out[n] = 0;
}

static const struct window_row {
    const char *rule, *publish, *start;
} windows[] = {
    /* half-open to the second */
    {"rrule: 'FREQ=DAILY;BYHOUR=2', durationMinutes: 60", "2026-03-01T01:59:59Z",
     "2026-03-01T02:00:00Z"},
    {"rrule: 'FREQ=DAILY;BYHOUR=2', durationMinutes: 60", "2026-03-01T02:00:00Z",
     "2026-03-01T02:00:00Z"},
    {"rrule: 'FREQ=DAILY;BYHOUR=2', durationMinutes: 60", "2026-03-01T02:59:59Z",
     "2026-03-01T02:59:59Z"},
    {"rrule: 'FREQ=DAILY;BYHOUR=2', durationMinutes: 60", "2026-03-01T03:00:00Z",
     "2026-03-02T02:00:00Z"},
    /* deny */
    {"rrule: 'FREQ=DAILY;BYHOUR=2', durationMinutes: 60, allowWindow: false",
     "2026-03-01T02:30:00Z", "2026-03-01T03:00:00Z"},
    {"rrule: 'FREQ=DAILY;BYHOUR=2', durationMinutes: 60, allowWindow: false",
     "2026-03-01T03:00:00Z", "2026-03-01T03:00:00Z"},
    {"rrule: 'FREQ=DAILY;BYHOUR=2', durationMinutes: 60, allowWindow: false",
     "2026-03-01T01:59:59Z", "2026-03-01T01:59:59Z"},
    /* local time: 02:00 in Berlin is 01:00Z in winter, 00:00Z in summer (from 29 March 2026) */
    {"rrule: 'FREQ=DAILY;BYHOUR=2', durationMinutes: 60, timezone: Europe/Berlin",
     "2026-03-01T00:30:00Z", "2026-03-01T01:00:00Z"},
    {"rrule: 'FREQ=DAILY;BYHOUR=2', durationMinutes: 60, timezone: Europe/Berlin",
     "2026-03-29T12:00:00Z", "2026-03-30T00:00:00Z"},
    /* RFC 5545: New York's clocks skip 02:30 on 8 March 2026, and show 01:30 twice on 1
     * November
     */
    {"rrule: 'FREQ=DAILY;BYHOUR=2;BYMINUTE=30', durationMinutes: 60,"
     " timezone: America/New_York",
     "2026-03-07T07:00:00Z", "2026-03-07T07:30:00Z"},
    {"rrule: 'FREQ=DAILY;BYHOUR=2;BYMINUTE=30', durationMinutes: 60,"
     " timezone: America/New_York",
     "2026-03-08T05:00:00Z", "2026-03-09T06:30:00Z"},
    {"rrule: 'FREQ=DAILY;BYHOUR=3;BYMINUTE=0', durationMinutes: 60,"
     " timezone: America/New_York",
     "2026-03-08T05:00:00Z", "2026-03-08T07:00:00Z"},
    {"rrule: 'FREQ=DAILY;BYHOUR=1;BYMINUTE=30', durationMinutes: 60,"
     " timezone: America/New_York",
     "2026-11-01T05:00:00Z", "2026-11-01T05:30:00Z"},
    {"rrule: 'FREQ=DAILY;BYHOUR=1;BYMINUTE=30', durationMinutes: 60,"
     " timezone: America/New_York",
     "2026-11-01T06:30:00Z", "2026-11-02T06:30:00Z"},
    {"rrule: 'FREQ=DAILY;BYHOUR=2', durationMinutes: 60, timezone: America/New_York",
     "2026-11-01T06:00:00Z", "2026-11-01T07:00:00Z"},
    /* a start in the skipped hour is by the offset before; others there are not counted */
    {"rrule: 'DTSTART:20260308T023000\nRRULE:FREQ=DAILY', durationMinutes: 60,"
     " timezone: America/New_York",
     "2026-03-08T05:00:00Z", "2026-03-08T07:30:00Z"},
    {"rrule: 'DTSTART:20260307T023000\nRRULE:FREQ=DAILY;COUNT=2', durationMinutes: 60,"
     " timezone: America/New_York",
     "2026-03-08T05:00:00Z", "2026-03-09T06:30:00Z"},
    {"rrule: 'DTSTART:20260307T023000\nRRULE:FREQ=DAILY;COUNT=2', durationMinutes: 60,"
     " timezone: America/New_York",
     "2026-03-09T12:00:00Z", NULL},
    /* over midnight, and a window longer than its period */
    {"rrule: 'FREQ=DAILY;BYHOUR=23', durationMinutes: 120", "2026-03-02T00:59:59Z",
     "2026-03-02T00:59:59Z"},
    {"rrule: 'FREQ=HOURLY', durationMinutes: 90", "2026-03-02T00:30:00Z", "2026-03-02T00:30:00Z"},
    /* weekly on Saturday; 2026-03-07 is one */
    {"rrule: 'FREQ=WEEKLY;BYDAY=SA', durationMinutes: 60", "2026-03-01T08:00:00Z",
     "2026-03-07T00:00:00Z"},
    /* every second day, anchored at 1970-01-01: 2026-03-01 is day 20513, so 2026-03-02 is even
     */
    {"rrule: 'FREQ=DAILY;INTERVAL=2', durationMinutes: 60", "2026-03-01T08:00:00Z",
     "2026-03-02T00:00:00Z"},
    /* a start of its own */
    {"rrule: 'DTSTART:20260310T040000Z\nRRULE:FREQ=DAILY', durationMinutes: 60",
     "2026-03-01T08:00:00Z", "2026-03-10T04:00:00Z"},
    /* the last occurrence has gone by: never */
    {"rrule: 'DTSTART:20260101T040000Z\nRRULE:FREQ=DAILY;COUNT=3', durationMinutes: 60",
     "2026-03-01T08:00:00Z", NULL},
    {"rrule: 'FREQ=DAILY;UNTIL=20260302T000000Z', durationMinutes: 60", "2026-03-01T08:00:00Z",
     "2026-03-02T00:00:00Z"},
};

static void c6_window_row(void **state)
{
    const struct window_row *r = *state;
    world w;
    char rules[400], text[300];
    yaml_quoted(r->rule, text);
    snprintf(rules, sizeof rules, "  - deploymentWindow: {%s}\n", text);
    open_app(&w, r->publish, 1, rules);
    publish(&w, "app", "2");
    world_until(&w, at_time("2026-12-01T00:00:00Z"));
    const world_job *j = job_of(&w, "app", "h0", 0);
    assert_int_equal(j != NULL, r->start != NULL);
    if (j)
        check_time(j->start, r->start);
    world_close(&w);
}

/* Clocks in Berlin go from 3:00 back to 2:00 at 01:00Z on 2026-10-25: what comes by the hour comes
 * in both, what comes by the day in the first alone. */
static void c6_window_in_the_repeated_hour(void **state)
{
    (void)state;
    static const struct {
        const char *rule, *publish, *start;
    } rows[] = {
        {"FREQ=HOURLY", "2026-10-25T00:20:00Z", "2026-10-25T00:20:00Z"},
        {"FREQ=HOURLY", "2026-10-25T00:40:00Z", "2026-10-25T01:00:00Z"},
        {"FREQ=HOURLY", "2026-10-25T01:20:00Z", "2026-10-25T01:20:00Z"},
        {"FREQ=HOURLY", "2026-10-25T01:40:00Z", "2026-10-25T02:00:00Z"},
        {"FREQ=DAILY;BYHOUR=2;BYMINUTE=0;BYSECOND=0", "2026-10-25T00:40:00Z",
         "2026-10-26T01:00:00Z"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        world w;
        char rules[200];
        snprintf(rules, sizeof rules,
                 "  - deploymentWindow: {rrule: '%s', durationMinutes: 30, timezone: "
                 "Europe/Berlin}\n",
                 rows[i].rule);
        open_app(&w, rows[i].publish, 1, rules);
        publish(&w, "app", "2");
        world_until(&w, at_time("2026-12-01T00:00:00Z"));
        const world_job *j = job_of(&w, "app", "h0", 0);
        check_msg(j && j->start == at_time(rows[i].start), "row %zu: %s", i,
                  j ? time_at(j->start) : "never");
        world_close(&w);
    }
}

/* What began inside the window is finished; a first deployment is not held. */
static void c6_window_exemptions(void **state)
{
    (void)state;
    world w;
    arena *a = arena_new(0);
    open_app(&w, "2026-03-01T08:00:00Z", 1,
             "  - deploymentWindow: {rrule: 'FREQ=DAILY;BYHOUR=2', durationMinutes: 60}\n");
    hosts(&w, "new", 1, "", false);
    check_time(job_of(&w, "app", "new0", 0)->start, "2026-03-01T08:00:00Z");
    publish(&w, "app", "2");
    check_text(reasons_at(&w, a, "app", "h0"), "window:time @02T02:00:00Z");
    arena_free(a);
    world_close(&w);
}

/* Members of a group are all that its bracket has on the resource: where one of them runs, a first
 * deployment of another waits for the window, also while the one that runs is unchanged. */
static void c6_window_first_deployment_beside_a_member(void **state)
{
    (void)state;
    world w;
    arena *a = arena_new(0);
    open_app(&w, "2026-03-01T08:00:00Z", 1,
             "  - deploymentBracket: {deploymentSelector: 'true', readinessMode: immediate}\n"
             "  - deploymentWindow: {rrule: 'FREQ=DAILY;BYHOUR=2', durationMinutes: 60}\n");
    deployment_of(&w, "other");
    publish(&w, "other", "1");
    check_text(reasons_at(&w, a, "other", "h0"), "window:time @02T02:00:00Z");
    hosts(&w, "new", 1, "", false);
    check_time(job_of(&w, "other", "new0", 0)->start, "2026-03-01T08:00:00Z");
    world_until(&w, at_time("2026-03-03T00:00:00Z"));
    check_time(job_of(&w, "other", "h0", 0)->start, "2026-03-02T02:00:00Z");
    arena_free(a);
    world_close(&w);
}

/* ---- cooldown ---- */

static void c6_cooldown(void **state)
{
    (void)state;
    world w;
    arena *a = arena_new(0);
    open_app(&w, "2026-03-01T08:00:00Z", 1, "  - versionCooldown: {intervalSeconds: 3600}\n");
    publish(&w, "app", "2"); /* 1 is two months old */
    world_at(&w, "2026-03-01T08:10:00Z");
    publish(&w, "app", "3");
    check_text(reasons_at(&w, a, "app", "h0"), "cooldown:time @01T09:00:00Z");
    world_at(&w, "2026-03-01T08:20:00Z");
    publish(&w, "app", "4");
    world_until(&w, INT64_MAX);
    assert_int_equal(w.jobs.len, 2); /* 3 is never deployed */
    check_time(job_of(&w, "app", "h0", 1)->start, "2026-03-01T09:00:00Z");
    arena_free(a);
    world_close(&w);
}

/* ---- retry ---- */

typedef struct retry_row {
    const char *name; /* the rule */
    int jobs;
    int pauses[4];
} retry_row;

static const retry_row retries[] = {
    {"maxRetries: 3", 4, {0, 0, 0, 0}},
    {"maxRetries: 4, backoffSeconds: 30, backoffStrategy: exponential", 5, {30, 60, 120, 240}},
    {"maxRetries: 4, backoffSeconds: 30, backoffStrategy: exponential, maxBackoffSeconds: 100",
     5,
     {30, 60, 100, 100}},
    {"maxRetries: 2, backoffSeconds: 45", 3, {45, 45, 0, 0}},
    {"maxRetries: 0", 1, {0, 0, 0, 0}},
    {"maxRetries: 3, retryOnStatuses: [cancelled]", 1, {0, 0, 0, 0}},
};

static void c6_retry_row(void **state)
{
    const retry_row *r = *state;
    world w;
    char rules[200];
    snprintf(rules, sizeof rules, "  - retry: {%s}\n", r->name);
    open_app(&w, "2026-03-01T08:00:00Z", 1, rules);
    assert_true(vec_push(&w.plans, (world_plan){"app", NULL, 60, -1, false, false}));
    publish(&w, "app", "2");
    world_until(&w, INT64_MAX);
    assert_int_equal(w.jobs.len, r->jobs);
    for (size_t k = 1; k < w.jobs.len; k++) {
        assert_int_equal(w.jobs.at[k].start - w.jobs.at[k - 1].end, r->pauses[k - 1]);
        assert_true(w.jobs.at[k].retry);
    }
    assert_int_equal(view_at(&w, "app", "h0").state, PLACEMENT_FAILED);
    w.plans.at[0].fail = 0;
    world_act(&w, (fact_act){.act = ACT_RETRY, .change = STR("app"), .target = STR("h0")});
    world_until(&w, INT64_MAX);
    assert_int_equal(w.jobs.len, r->jobs + 1);
    assert_int_equal(view_at(&w, "app", "h0").state, PLACEMENT_DONE); /* and never again */
    world_close(&w);
}

/* A policy that goes in the same step as a failure comes to light has nothing to say of it. */
static void c6_failure_after_the_policy(void **state)
{
    (void)state;
    world w;
    metadata of = {.name = STR("p")};
    object policy = {.kind = KIND_ROLLOUT_POLICY, .metadata = &of};
    open_app(&w, "2026-03-01T08:00:00Z", 1,
             "  - retry: {maxRetries: 3}\n  - rollback: {onJobStatuses: [failure]}\n");
    assert_true(vec_push(&w.plans, (world_plan){"app", NULL, 60, -1, false, false}));
    publish(&w, "app", "2");
    w.now += MINUTE;
    fact both[] = {{.kind = FACT_DOCUMENT_GONE, .document = &policy},
                   job_answer(&w, &w.jobs.at[0])};
    world_step(&w, both, COUNT_OF(both));
    world_until(&w, INT64_MAX);
    assert_int_equal(w.jobs.len, 1);
    assert_int_equal(view_at(&w, "app", "h0").state, PLACEMENT_FAILED);
    world_close(&w);
}

/* ---- rollback ---- */

static void c6_rollback(void **state)
{
    (void)state;
    for (int verify = 0; verify < 2; verify++) {
        world w;
        arena *a = arena_new(0);
        open_app(&w, "2026-03-01T08:00:00Z", 1,
                 verify ? "  - rollback: {onVerificationFailure: true}\n"
                        : "  - retry: {maxRetries: 1}\n  - rollback: {onJobStatuses: [failure]}\n");
        assert_true(vec_push(&w.plans, (world_plan){"app", NULL, 60, -1, verify, false}));
        publish(&w, "app", "2");
        world_until(&w, INT64_MAX);
        assert_int_equal(w.jobs.len, verify ? 2 : 3);
        const world_job *last = &w.jobs.at[w.jobs.len - 1];
        assert_int_equal(last->role, ROLE_ROLLBACK);
        check_text(str_of(last->version), "1");
        check_text(view_at(&w, "app", "h0").current, "1");
        check_text(reasons_at(&w, a, "app", "h0"), "rolledBack:retry app");
        arena_free(a);
        world_close(&w);
    }
}

/* A person rolls back what succeeded. */
static void c6_rollback_by_hand(void **state)
{
    (void)state;
    world w;
    open_app(&w, "2026-03-01T08:00:00Z", 1, NULL);
    publish(&w, "app", "2");
    world_until(&w, INT64_MAX);
    world_act(&w, (fact_act){.act = ACT_ROLLBACK, .change = STR("app"), .target = STR("h0")});
    world_until(&w, INT64_MAX);
    check_text(view_at(&w, "app", "h0").current, "1");
    assert_int_equal(w.jobs.at[1].role, ROLE_ROLLBACK);
    assert_int_equal(view_at(&w, "app", "h0").state, PLACEMENT_EXCLUDED);
    publish(&w, "app", "3");
    world_until(&w, INT64_MAX);
    check_text(view_at(&w, "app", "h0").current, "3");
    world_close(&w);
}

/* ---- dependencies ---- */

static void c5_dependency_rows(void **state)
{
    (void)state;
    static const struct {
        const char *match, *start;
    } rows[] = {{"all", "2026-03-01T08:10:00Z"}, {"any", "2026-03-01T08:05:00Z"}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        world w;
        world_open(&w, "2026-03-01T08:00:00Z");
        environment_of(&w, "prod", "true");
        deployment_of(&w, "a");
        deployment_of(&w, "b");
        deployment_of(&w, "app");
        hosts(&w, "h", 1, "", false);
        char rules[300];
        snprintf(rules, sizeof rules,
                 "  - deploymentDependency: {dependsOn: 'deployment.name in [\"a\", \"b\"]', "
                 "appliesTo: 'deployment.name == \"app\"', match: %s}\n",
                 rows[i].match);
        policy(&w, rules);
        assert_true(vec_push(&w.plans, (world_plan){"a", NULL, 5 * MINUTE, 0, false, false}));
        assert_true(vec_push(&w.plans, (world_plan){"b", NULL, 10 * MINUTE, 0, false, false}));
        world_apply(
            &w, API
            "kind: List\nitems:\n"
            "- {apiVersion: drover.dev/v1alpha1, kind: Version, metadata: {name: a-1}, spec: {"
            "deployment: a, tag: '1'}}\n"
            "- {apiVersion: drover.dev/v1alpha1, kind: Version, metadata: {name: b-1}, spec: {"
            "deployment: b, tag: '1'}}\n"
            "- {apiVersion: drover.dev/v1alpha1, kind: Version, metadata: {name: app-1}, spec: {"
            "deployment: app, tag: '1'}}\n");
        world_until(&w, INT64_MAX);
        check_time(job_of(&w, "app", "h0", 0)->start, rows[i].start);
        world_close(&w);
    }
}

/* A condition on the version makes others wait, also while no such version is published; only where
 * no deployment matches there is no upstream. */
static void c5_dependency_on_a_version(void **state)
{
    (void)state;
    static const struct {
        const char *depends_on, *first; /* why app does not start while os has no version */
    } rows[] = {
        {"deployment.name == \"os\" && version.tag == \"2\"", "dependency:publish os"},
        {"version.tag == \"2\" && deployment.name == \"os\"", "dependency:publish os"},
        {"deployment.name == \"os\" && version.tag.startsWith(\"2\")", "dependency:publish os"},
        {"deployment.name == \"os\" && version.metadata[\"x\"] == \"2\"", "dependency:publish os"},
        {"deployment.name == \"ghost\" && version.tag == \"2\"", NULL},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        world w;
        char rules[300];
        arena *a = arena_new(0);
        world_open(&w, "2026-03-01T08:00:00Z");
        environment_of(&w, "prod", "true");
        deployment_of(&w, "os");
        deployment_of(&w, "app");
        hosts(&w, "h", 1, "", false);
        snprintf(rules, sizeof rules,
                 "  - deploymentDependency: {dependsOn: '%s', appliesTo: 'deployment.name == "
                 "\"app\"'}\n",
                 rows[i].depends_on);
        policy(&w, rules);
        publish(&w, "app", "1");
        if (rows[i].first)
            check_text(reasons_at(&w, a, "app", "h0"), rows[i].first);
        publish(&w, "os", "1");
        world_until(&w, INT64_MAX);
        assert_int_equal(jobs_count(&w, "app", NULL), rows[i].first ? 0 : 1);
        world_apply(&w, API
                    "kind: Version\nmetadata: {name: os-2, labels: {x: '2'}}\nspec: {deployment: "
                    "os, tag: '2', status: building}\n");
        assert_int_equal(jobs_count(&w, "app", NULL), rows[i].first ? 0 : 1);
        world_apply(&w, API
                    "kind: Version\nmetadata: {name: os-2, labels: {x: '2'}}\nspec: {deployment: "
                    "os, tag: '2'}\n");
        world_until(&w, INT64_MAX);
        assert_int_equal(jobs_count(&w, "app", NULL), 1);
        arena_free(a);
        world_close(&w);
    }
}

static void c5_version_dependencies(void **state)
{
    (void)state;
    world w;
    arena *a = arena_new(0);
    open_app(&w, "2026-03-01T08:00:00Z", 1, NULL);
    deployment_of(&w, "db");
    world_apply(
        &w, API
        "kind: Version\nmetadata: {name: app-2}\nspec: {deployment: app, tag: '2', dependsOn: [{"
        "deployment: db, versionSelector: 'version.tag == \"7\"'}]}\n");
    assert_int_equal(w.jobs.len, 0);
    check_text(reasons_at(&w, a, "app", "h0"), "dependency:publish db");
    publish(&w, "db", "6");
    world_until(&w, INT64_MAX);
    assert_int_equal(jobs_count(&w, "app", NULL), 0);
    publish(&w, "db", "7");
    world_until(&w, INT64_MAX);
    assert_int_equal(jobs_count(&w, "app", NULL), 1);
    arena_free(a);
    world_close(&w);
}

/* ---- freeze, bypass, pause ---- */

static void c6_freeze_and_thaw(void **state)
{
    (void)state;
    world w;
    arena *a = arena_new(0);
    open_app(&w, "2026-03-01T08:00:00Z", 2, NULL);
    world_act(&w, (fact_act){.act = ACT_FREEZE,
                             .name = STR("audit"),
                             .selector = STR("resource.name == 'h0'"),
                             .who = STR("ann")});
    world_act(&w, (fact_act){.act = ACT_FREEZE,
                             .name = STR("night"),
                             .until_ms = at_time("2026-03-01T09:00:00Z") * 1000});
    publish(&w, "app", "2");
    assert_int_equal(w.jobs.len, 0);
    check_text(reasons_at(&w, a, "app", "h0"),
               "freeze:thaw audit; freeze:thaw night @01T09:00:00Z");
    world_act(&w, (fact_act){.act = ACT_THAW, .name = STR("a name that nothing has")});
    check_text(reasons_at(&w, a, "app", "h0"),
               "freeze:thaw audit; freeze:thaw night @01T09:00:00Z");
    world_until(&w, at_time("2026-03-01T10:00:00Z"));
    check_time(job_of(&w, "app", "h1", 0)->start, "2026-03-01T09:00:00Z");
    assert_int_equal(jobs_count(&w, "app", "h0"), 0);
    world_act(&w, (fact_act){.act = ACT_THAW, .name = STR("audit")});
    assert_int_equal(jobs_count(&w, "app", "h0"), 1);
    /* a selector that does not compile holds everything */
    world_act(
        &w, (fact_act){.act = ACT_FREEZE, .name = STR("bad"), .selector = STR("resource.name ==")});
    publish(&w, "app", "3");
    world_until(&w, at_time("2026-03-01T12:00:00Z"));
    assert_int_equal(w.jobs.len, 2);
    arena_free(a);
    world_close(&w);
}

static void c2_bypass_of_rules(void **state)
{
    (void)state;
    world w;
    open_app(
        &w, "2026-03-01T08:00:00Z", 2,
        "  - anyApproval: {minApprovals: 1}\n  - deploymentWindow: {rrule: 'FREQ=DAILY;BYHOUR=2', "
        "durationMinutes: 60}\n");
    publish(&w, "app", "2");
    world_act(&w, (fact_act){.act = ACT_BYPASS,
                             .rule = STR("p/deploymentWindow/0"),
                             .version = STR("app-2")});
    assert_int_equal(w.jobs.len, 0);
    world_act(&w, (fact_act){.act = ACT_BYPASS,
                             .rule = STR("p/anyApproval/0"),
                             .version = STR("app-2"),
                             .target = STR("h1")});
    assert_int_equal(jobs_count(&w, "app", "h1"), 1);
    assert_int_equal(jobs_count(&w, "app", "h0"), 0);
    world_act(&w, (fact_act){.act = ACT_BYPASS,
                             .rule = STR("p/anyApproval/0"),
                             .version = STR("app-2"),
                             .until_ms = (w.now + 1) * 1000});
    assert_int_equal(jobs_count(&w, "app", "h0"), 1);
    world_close(&w);
}

static void pause_of_a_deployment(void **state)
{
    (void)state;
    world w;
    arena *a = arena_new(0);
    open_app(&w, "2026-03-01T08:00:00Z", 1, NULL);
    world_act(&w, (fact_act){.act = ACT_PAUSE, .change = STR("app")});
    publish(&w, "app", "2");
    assert_int_equal(w.jobs.len, 0);
    check_text(reasons_at(&w, a, "app", "h0"), "paused:resume app");
    world_act(&w, (fact_act){.act = ACT_RESUME, .change = STR("app")});
    assert_int_equal(w.jobs.len, 1);
    arena_free(a);
    world_close(&w);
}

int main(void)
{
    static row_list all;
    ROWS_TEST(&all, c1_newest_ready_version);
    ROWS_TEST(&all, c1_version_selector);
    ROWS_TEST(&all, c6_approval);
    ROWS_TEST(&all, c6_progression);
    ROWS_TEST(&all, c6_progression_counts);
    ROWS_TEST(&all, c6_progression_age_and_absence);
    for (size_t i = 0; i < COUNT_OF(windows); i++)
        rows_add(&all, c6_window_row, &windows[i], "C6, deploymentWindow: %s from %s",
                 windows[i].rule, windows[i].publish);
    ROWS_TEST(&all, c6_window_exemptions);
    ROWS_TEST(&all, c6_window_first_deployment_beside_a_member);
    ROWS_TEST(&all, c6_window_in_the_repeated_hour);
    ROWS_TEST(&all, c6_cooldown);
    ROWS_ADD(&all, c6_retry_row, retries, "C6, retry");
    ROWS_TEST(&all, c6_failure_after_the_policy);
    ROWS_TEST(&all, c6_rollback);
    ROWS_TEST(&all, c6_rollback_by_hand);
    ROWS_TEST(&all, c5_dependency_rows);
    ROWS_TEST(&all, c5_dependency_on_a_version);
    ROWS_TEST(&all, c5_version_dependencies);
    ROWS_TEST(&all, c6_freeze_and_thaw);
    ROWS_TEST(&all, c2_bypass_of_rules);
    ROWS_TEST(&all, pause_of_a_deployment);
    return rows_run(&all);
}
