/* SPDX-License-Identifier: Apache-2.0 */
/* deploymentPolicy as a rule of a RolloutPolicy: any fleet in compartments and batches. */
#include "support/check.h"

#include "support/world.h"

#define API "apiVersion: drover.dev/v1alpha1\n"

/* Sizes of the batches, from the starts that share a second: jobs take a minute. */
static str batches(const world *w, arena *a, const char *change)
{
    str text = STR_EMPTY;
    size_t n = 0;
    for (size_t i = 0; i <= w->jobs.len; i++) {
        bool here = i < w->jobs.len && strcmp(w->jobs.at[i].deployment, change) == 0;
        if (i < w->jobs.len && !here)
            continue;
        if (n > 0 && (i == w->jobs.len || w->jobs.at[i].start != w->jobs.at[i - 1].start)) {
            text = arena_printf(a, "%.*s%s%zu", STR_ARG(text), text.len ? "," : "", n);
            n = 0;
        }
        n++;
    }
    return text;
}

static void batch_rows(void **state)
{
    (void)state;
    static const struct {
        int hosts;
        const char *policy, *sizes;
        int fail; /* so many jobs, from the first */
    } rows[] = {
        {8, "default: {budget: {count: 8}, strategy: {linear: {initialBatch: 1, delta: 1}}}",
         "1,2,3,2", 0},
        {15, "default: {budget: {count: 15}, strategy: {exponential: {growthFactor: 2}}}",
         "1,2,4,8", 0},
        {40, "default: {budget: {percent: 25}, strategy: {exponential: {growthFactor: 2}}}",
         "1,2,4,8,10,10,5", 0},
        {10, "default: {budget: {percent: 30}, strategy: {fixed: {initialBatch: 5}}}", "3,3,3,1",
         0},
        {10,
         "default: {budget: {count: 1}, strategy: {fixed: {}}}, compartments: [{name: all, "
         "selector: {matchLabels: {x: z}}, budget: {percent: 25}}]",
         "2,2,2,2,2", 0},
        {10,
         "default: {budget: {count: 10}, strategy: {fixed: {initialBatch: 3, failureThreshold: "
         "1}}}",
         "3", 1},
        {6, "default: {budget: {count: 2}, strategy: {fixed: {initialBatch: 2}}}", "2,2,2", 6},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        world w;
        arena *a = arena_new(0);
        world_open(&w, "2026-03-01T08:00:00Z");
        world_apply(
            &w,
            API "kind: Environment\nmetadata: {name: prod}\nspec: {resourceSelector: 'true'}\n");
        world_apply(
            &w, API
            "kind: Deployment\nmetadata: {name: app}\nspec: {resourceSelector: 'true', job: {"
            "pull: {}}}\n");
        for (int k = 0; k < rows[i].hosts; k++)
            world_apply(
                &w,
                API
                "kind: Resource\nmetadata: {name: h%02d, labels: {x: z}}\nspec: {kind: host, "
                "version: v1}\n",
                k);
        world_apply(
            &w,
            API
            "kind: RolloutPolicy\nmetadata: {name: p}\nspec:\n  rules:\n  - deploymentPolicy: {"
            "%s}\n",
            rows[i].policy);
        assert_true(vec_push(&w.plans, (world_plan){"app", NULL, 60, rows[i].fail, false, false}));
        world_apply(&w, API
                    "kind: Version\nmetadata: {name: app-1}\nspec: {deployment: app, tag: '1'}\n");
        world_until(&w, INT64_MAX);
        str got = batches(&w, a, "app");
        check_msg(str_eq(got, str_of(rows[i].sizes)), "row %zu: %.*s", i, STR_ARG(got));
        arena_free(a);
        world_close(&w);
    }
}

/* In a bracket a resource counts once, from its first job to the end of its group. */
static void in_a_bracket(void **state)
{
    (void)state;
    world w;
    arena *a = arena_new(0);
    world_open(&w, "2026-03-01T08:00:00Z");
    world_apply(&w, API
                "kind: Environment\nmetadata: {name: prod}\nspec: {resourceSelector: 'true'}\n");
    world_apply(
        &w, API
        "kind: Deployment\nmetadata: {name: drain}\nspec: {resourceSelector: 'true', job: {pull: {"
        "}}}\n");
    world_apply(
        &w, API
        "kind: Deployment\nmetadata: {name: app}\nspec: {resourceSelector: 'true', job: {pull: {"
        "}}}\n");
    for (int k = 0; k < 5; k++)
        world_apply(
            &w, API "kind: Resource\nmetadata: {name: h%d}\nspec: {kind: host, version: v1}\n", k);
    world_apply(
        &w, API
        "kind: RolloutPolicy\nmetadata: {name: p}\nspec:\n  rules:\n  - deploymentPolicy: {"
        "default: {budget: {count: 2}, strategy: {fixed: {initialBatch: 2}}}}\n"
        "  - deploymentBracket: {deploymentSelector: 'true', readinessMode: immediate, "
        "preSelector: 'deployment.name == \"drain\"'}\n");
    world_apply(&w, API
                "kind: Version\nmetadata: {name: drain-1}\nspec: {deployment: drain, tag: '1'}\n");
    world_apply(&w,
                API "kind: Version\nmetadata: {name: app-1}\nspec: {deployment: app, tag: '1'}\n");
    assert_int_equal(w.jobs.len, 2);
    check_text(reasons_at(&w, a, "drain", "h4"), "batch:complete h0,h1,h2,h3");
    world_until(&w, INT64_MAX);
    check_text(batches(&w, a, "app"), "2,2,1");
    check_time(job_of(&w, "drain", "h2", 0)->start, "2026-03-01T08:02:00Z");
    arena_free(a);
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(batch_rows),
                                       cmocka_unit_test(in_a_bracket)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
