/* SPDX-License-Identifier: Apache-2.0 */
/* deploymentPolicy as a rule of a RolloutPolicy: any fleet in compartments and batches; and several
 * rules that pace the same hosts. */
#include "support/check.h"

#include "support/batch_rows.h"
#include "support/rows.h"
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

/* Who fails in each batch, as its members start. */
static const batch_row *row;
static int64_t batch, in_batch;
static buf judged;

static void take_batches(world *w)
{
    for (size_t i = 0; i < w->out.len; i++) {
        const decision *d = &w->out.at[i];
        if (d->kind == DECISION_BATCH) {
            batch = d->number;
            in_batch = 0;
        }
        if (d->kind == DECISION_JUDGE) {
            buf_addf(&judged, "%s%lld", judged.len > 0 ? "," : "", (long long)d->size);
            if (d->erroring > 0)
                buf_addf(&judged, "(%lld)", (long long)d->erroring);
        }
        if (d->kind != DECISION_JOB || batch < 1 || batch > (int64_t)COUNT_OF(row->failures))
            continue;
        if (in_batch++ >= row->failures[batch - 1])
            continue;
        char *host = mem_alloc(64);
        keep(host, 64, d->target);
        assert_true(vec_push(&w->copies, host) &&
                    vec_push(&w->plans, (world_plan){"app", host, 60, -1, false, false}));
    }
}

static bool keep_group(void *context, const group_view *g)
{
    group_view *want = context;
    if (g->kind != GROUP_COMPARTMENT || !str_eq(g->name, want->name))
        return true;
    *want = *g;
    return false;
}

static void open_hosts(world *w, int count, const char *policy)
{
    world_open(w, "2026-03-01T08:00:00Z");
    world_apply(w, API
                "kind: Environment\nmetadata: {name: prod}\nspec: {resourceSelector: 'true'}\n");
    world_apply(w, API
                "kind: Deployment\nmetadata: {name: app}\nspec: {resourceSelector: 'true', job: {"
                "pull: {}}}\n");
    for (int k = 0; k < count; k++)
        world_apply(w,
                    API "kind: Resource\nmetadata: {name: h%03d, labels: {x: z}}\nspec: {kind: "
                        "host, version: v1}\n",
                    k);
    world_apply(w,
                API "kind: RolloutPolicy\nmetadata: {name: p}\nspec:\n  rules:\n  - "
                    "deploymentPolicy: {%s, resetBatchStateOnCompletion: false}\n",
                policy);
}

/* A4 over resources. Nothing makes a resource blocked in flight: that row is the nodes' alone. */
static void a4_row_as_a_rule(void **state)
{
    world w;
    char policy[512];
    row = *state;
    batch = in_batch = 0;
    judged = BUF(10000);
    if (row->strategy)
        snprintf(policy, sizeof policy, "default: {budget: {%s}, strategy: {%s}}", row->budget,
                 row->strategy);
    else
        snprintf(policy, sizeof policy,
                 "default: {budget: {count: 1}, strategy: {fixed: {}}}, compartments: [{name: "
                 "rest, selector: {matchLabels: {x: z}}, budget: {%s}}]",
                 row->budget);
    open_hosts(&w, row->nodes, policy);
    w.after = take_batches;
    world_apply(&w,
                API "kind: Version\nmetadata: {name: app-1}\nspec: {deployment: app, tag: '1'}\n");
    world_until(&w, INT64_MAX);
    check_text(buf_str(&judged), row->batches);
    group_view g = {.name = str_of(row->strategy ? "__default__" : "rest"), .matched = -1};
    engine_groups(w.engine, keep_group, &g);
    assert_int_equal(g.limit, row->ceiling);
    assert_true(g.peak <= row->ceiling);
    assert_int_equal(g.current_batch, row->current);
    assert_int_equal(g.completed, row->completed);
    assert_int_equal(g.failed, row->failed);
    assert_int_equal(g.consecutive_failures, row->consecutive);
    assert_int_equal(g.stopped, row->stopped);
    buf_done(&judged);
    world_close(&w);
}

/* In a bracket a resource counts once, from its first job to the end of its group. */
static void c7_compartments_in_a_bracket(void **state)
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
    world_apply(&w, API
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

/* Two groups are ready on each host: app has no release yet, which is no reason to give back the
 * place that base starts with. */
static void c7_a_place_for_one_group_of_two(void **state)
{
    (void)state;
    static const char *const changes[] = {"app", "base"};
    world w;
    world_open(&w, "2026-03-01T08:00:00Z");
    world_apply(&w, API
                "kind: Environment\nmetadata: {name: prod}\nspec: {resourceSelector: 'true'}\n");
    for (int k = 0; k < 2; k++) {
        world_apply(&w,
                    API "kind: Deployment\nmetadata: {name: %s}\nspec: {resourceSelector: 'true', "
                        "job: {pull: {}}}\n",
                    changes[k]);
        world_apply(&w,
                    API "kind: Resource\nmetadata: {name: h%d}\nspec: {kind: host, version: v1}\n"
                        "status: {releases: [{deployment: app, version: '0'}, {deployment: base, "
                        "version: '0'}]}\n",
                    k);
    }
    world_apply(&w, API
                "kind: RolloutPolicy\nmetadata: {name: p}\nspec:\n  rules:\n  - deploymentPolicy: {"
                "default: {budget: {count: 2}, strategy: {fixed: {initialBatch: 2}}}}\n"
                "  - deploymentBracket: {deploymentSelector: 'deployment.name == \"base\"', "
                "readinessMode: immediate}\n");
    world_apply(&w, API
                "kind: RolloutPolicy\nmetadata: {name: q}\nspec:\n  selector: 'deployment.name == "
                "\"app\"'\n  rules:\n  - rolloutStrategy: {partitions: [{name: all, "
                "clusterSelector: {}, approval: true}]}\n"
                "  - deploymentBracket: {deploymentSelector: 'true', readinessMode: immediate}\n");
    world_apply(&w,
                API "kind: Version\nmetadata: {name: app-1}\nspec: {deployment: app, tag: '1'}\n"
                    "---\n" API
                    "kind: Version\nmetadata: {name: base-1}\nspec: {deployment: base, tag: '1'}"
                    "\n");
    world_until(&w, INT64_MAX);
    assert_int_equal(w.jobs.len, 2);
    check_time(job_of(&w, "base", "h1", 0)->start, "2026-03-01T08:00:00Z");
    world_act(&w, (fact_act){.act = ACT_APPROVE, .partition = STR("all")});
    check_text(str_of(w.jobs.at[2].deployment), "app");
    world_close(&w);
}

/* ---- limits that shrink ---- */

/* Hosts h000 to h003, one of which may run at a time. The default compartment has so many percent
 * for its batch; all but the first of them have their place, and wait for the slot. */
static void open_slots(world *w, int percent)
{
    char policy[256];
    snprintf(policy, sizeof policy,
             "default: {budget: {percent: %d}, strategy: {fixed: {initialBatch: 4}}}, "
             "compartments: [{name: a, selector: {matchLabels: {x: a}}, budget: {count: 1}, "
             "strategy: {fixed: {}}}]",
             percent);
    open_hosts(w, 4, policy);
    world_apply(w, API "kind: RolloutPolicy\nmetadata: {name: q}\nspec:\n  rules:\n  - "
                       "resourceConcurrency: {groupSelector: 'true', limitType: count, limitValue: "
                       "1}\n");
    world_apply(w,
                API "kind: Version\nmetadata: {name: app-1}\nspec: {deployment: app, tag: '1'}\n");
}

static void move_to_a(world *w, const char *host)
{
    world_apply(w,
                API "kind: Resource\nmetadata: {name: %s, labels: {x: a}}\nspec: {kind: host, "
                    "version: v1}\n",
                host);
}

/* Half of four are two; when h003 has other labels, half of three are one. h001 has its place and
 * has not begun: it takes it anew. */
static void a2_who_leaves_takes_the_ceiling_along(void **state)
{
    (void)state;
    world w;
    arena *a = arena_new(0);
    open_slots(&w, 50);
    check_text(reasons_at(&w, a, "app", "h001"), "concurrency:complete h000");
    move_to_a(&w, "h003");
    check_text(reasons_at(&w, a, "app", "h001"), "batch:complete h000; concurrency:complete h000");
    world_until(&w, INT64_MAX);
    assert_int_equal(w.starts, 4);
    arena_free(a);
    world_close(&w);
}

/* Three of four have a place, and then two of three: who was picked last gives it back. */
static void a2_who_was_picked_last_gives_its_place_back(void **state)
{
    (void)state;
    world w;
    arena *a = arena_new(0);
    open_slots(&w, 75);
    check_text(reasons_at(&w, a, "app", "h002"), "concurrency:complete h000,h001");
    move_to_a(&w, "h003");
    check_text(reasons_at(&w, a, "app", "h001"), "concurrency:complete h000");
    check_text(reasons_at(&w, a, "app", "h002"),
               "batch:complete h000,h001; concurrency:complete h000,h001");
    world_until(&w, INT64_MAX);
    assert_int_equal(w.starts, 4);
    arena_free(a);
    world_close(&w);
}

/* ---- several rules ---- */

/* One rule lets one host be unavailable, and comes to h000 first; the other has h001 in its first
 * partition. A release for h000 would hold the place that h001 needs, and neither would start. */
static void b_partitions_of_two_rules_do_not_wait_for_each_other(void **state)
{
    (void)state;
    world w;
    arena *a = arena_new(0);
    open_hosts(&w, 2, "default: {budget: {count: 2}, strategy: {fixed: {initialBatch: 2}}}");
    world_apply(&w, API
                "kind: RolloutPolicy\nmetadata: {name: q}\nspec:\n  rules:\n  - rolloutStrategy: "
                "{maxUnavailable: 1, maxNew: 1}\n  - rolloutStrategy: {maxUnavailable: 0, "
                "partitions: [{name: one, clusterName: h001}, {name: two, clusterName: h000}]}\n");
    for (int round = 1; round <= 2; round++) {
        size_t before = w.jobs.len;
        world_apply(&w,
                    API "kind: Version\nmetadata: {name: app-%d, creationTimestamp: '%s'}\nspec: "
                        "{deployment: app, tag: '%d'}\n",
                    round, time_at(w.now), round);
        check_text(reasons_at(&w, a, "app", "h000"), "batch:complete h001");
        world_until(&w, INT64_MAX);
        assert_int_equal(w.jobs.len, before + 2);
        check_text(str_of(w.jobs.at[before].resource), "h001");
        check_text(str_of(w.jobs.at[before + 1].resource), "h000");
    }
    arena_free(a);
    world_close(&w);
}

/* app depends on drain, and has no place on h001 while h000 has it. There drain is done when base
 * fails, and goes back with it: it is in place no more. */
static void c5_what_goes_back_is_not_in_place(void **state)
{
    (void)state;
    static const char *const changes[] = {"base", "drain"};
    world w;
    arena *a = arena_new(0);
    open_hosts(&w, 0, "default: {budget: {count: 2}, strategy: {fixed: {initialBatch: 2}}}");
    for (int k = 0; k < 2; k++)
        world_apply(&w,
                    API "kind: Deployment\nmetadata: {name: %s}\nspec: {resourceSelector: 'true', "
                        "job: {pull: {}}}\n---\n" API
                        "kind: Resource\nmetadata: {name: h00%d}\nspec: {kind: host, version: "
                        "v1}\nstatus: {releases: [{deployment: app, version: '0'}, {deployment: "
                        "base, version: '0'}, {deployment: drain, version: '0'}]}\n",
                    changes[k], k);
    world_apply(&w, API
                "kind: RolloutPolicy\nmetadata: {name: p}\nspec:\n  selector: 'deployment.name == "
                "\"app\"'\n  rules:\n  - deploymentDependency: {dependsOn: 'deployment.name == "
                "\"drain\"'}\n  - rolloutStrategy: {maxUnavailable: 1}\n---\n" API
                "kind: RolloutPolicy\nmetadata: {name: q}\nspec:\n  selector: 'deployment.name != "
                "\"app\"'\n  rules:\n  - deploymentBracket: {deploymentSelector: 'deployment.name "
                "!= \"app\"', readinessMode: immediate, rollbackStrategy: all_members}\n");
    const world_plan plans[] = {{"app", NULL, 600, 0, false, false},
                                {"base", NULL, 120, 0, false, false},
                                {"base", "h001", 120, 1, false, false}};
    for (size_t i = 0; i < COUNT_OF(plans); i++)
        assert_true(vec_push(&w.plans, plans[i]));
    world_apply(&w, API
                "kind: Version\nmetadata: {name: drain-1}\nspec: {deployment: drain, tag: '1'}\n---"
                "\n" API
                "kind: Version\nmetadata: {name: base-1}\nspec: {deployment: base, tag: '1'}\n");
    world_at(&w, "2026-03-01T08:01:10Z");
    world_apply(&w,
                API "kind: Version\nmetadata: {name: app-1}\nspec: {deployment: app, tag: '1'}\n");
    check_text(reasons_at(&w, a, "app", "h001"), "unavailable:complete h000");
    world_at(&w, "2026-03-01T08:02:10Z");
    check_text(reasons_at(&w, a, "app", "h001"),
               "dependency:complete drain; unavailable:complete h000");
    arena_free(a);
    world_close(&w);
}

int main(void)
{
    static row_list all;
    for (size_t i = 0; i < COUNT_OF(batch_rows); i++)
        if (batch_rows[i].blocked[0] == 0)
            rows_add(&all, a4_row_as_a_rule, &batch_rows[i], "A4 as a rule: %s",
                     batch_rows[i].name);
    ROWS_TEST(&all, c7_compartments_in_a_bracket);
    ROWS_TEST(&all, c7_a_place_for_one_group_of_two);
    ROWS_TEST(&all, a2_who_leaves_takes_the_ceiling_along);
    ROWS_TEST(&all, a2_who_was_picked_last_gives_its_place_back);
    ROWS_TEST(&all, b_partitions_of_two_rules_do_not_wait_for_each_other);
    ROWS_TEST(&all, c5_what_goes_back_is_not_in_place);
    return rows_run(&all);
}
