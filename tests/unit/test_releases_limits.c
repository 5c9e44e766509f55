/* SPDX-License-Identifier: Apache-2.0 */
/* Limits that shrink, and resources that move, between being picked and being started: each is a
 * case that the model checker (test_slow_claims_releases.c) once found. */
#include "support/check.h"

#include "support/world.h"

#define API "apiVersion: drover.dev/v1alpha1\n"
#define FLEET                                                                                      \
    API "kind: Environment\nmetadata: {name: prod}\nspec: {resourceSelector: 'true'}\n---\n" API   \
        "kind: Deployment\nmetadata: {name: app}\n"                                                \
        "spec: {resourceSelector: 'true', job: {pull: {}}}\n"

static void put_host(world *w, const char *name, const char *zone)
{
    world_apply(w,
                API "kind: Resource\nmetadata: {name: %s, labels: {zone: %s}}\n"
                    "spec: {kind: host, version: v1}\n"
                    "status: {releases: [{deployment: app, version: v0}]}\n",
                name, zone);
}

static void put_rules(world *w, const char *rules)
{
    world_apply(w, API "kind: RolloutPolicy\nmetadata: {name: p}\nspec:\n  rules:\n%s", rules);
}

static void publish(world *w)
{
    world_apply(w, API "kind: Version\nmetadata: {name: app-v1}\n"
                       "spec: {deployment: app, tag: v1, status: ready}\n");
}

#define ZONE_SLOT                                                                                  \
    "  - resourceConcurrency: {groupSelector: 'resource.metadata[\"zone\"] == \"a\"', limitType: " \
    "count, limitValue: 1}\n"

/* C3: a slot belongs to a resource until no job runs there. */
static void what_runs_keeps_its_slot_wherever_it_goes(void **state)
{
    (void)state;
    world w;
    world_open(&w, "2026-03-01T08:00:00Z");
    world_apply(&w, FLEET);
    put_host(&w, "h0", "a");
    put_host(&w, "h1", "a");
    put_rules(&w, ZONE_SLOT);
    publish(&w);
    assert_int_equal(w.starts, 1);
    put_host(&w, "h0", "b");
    put_host(&w, "h0", "a");
    assert_int_equal(w.starts, 1); /* h0 runs, and has the zone's one slot */
    put_host(&w, "h0", "b");
    assert_int_equal(w.starts, 1);
    world_until(&w, w.now + 60);
    assert_int_equal(w.starts, 2);
    world_close(&w);
}

/* "A limit that shrinks below what it holds stops starts": h1 was released and waits for its slot.
 */
static void a_release_that_has_not_begun_is_taken_back(void **state)
{
    (void)state;
    world w;
    world_open(&w, "2026-03-01T08:00:00Z");
    world_apply(&w, FLEET);
    put_host(&w, "h0", "a");
    put_host(&w, "h1", "a");
    put_host(&w, "h2", "b");
    put_rules(&w, ZONE_SLOT "  - rolloutStrategy: {maxUnavailable: 2}\n");
    w.plans.len = 0;
    assert_true(vec_push(&w.plans, (world_plan){.deployment = "app", .seconds = 60, .fail = 1}));
    publish(&w);
    assert_int_equal(w.starts, 1);
    put_rules(&w, ZONE_SLOT "  - rolloutStrategy: {maxUnavailable: 1}\n");
    put_host(&w, "h0", "b"); /* where it fails, and keeps no slot of zone a */
    world_until(&w, w.now + 60);
    assert_int_equal(w.starts, 1); /* one is unavailable, and one may be */
    world_close(&w);
}

/* The same of a place in a batch. */
static void a_place_that_has_not_begun_is_given_back(void **state)
{
    (void)state;
    static const char rules[] =
        ZONE_SLOT "  - deploymentPolicy: {default: {budget: {count: %d}, strategy: {fixed: "
                  "{initialBatch: 2}}}}\n";
    char text[512];
    world w;
    world_open(&w, "2026-03-01T08:00:00Z");
    world_apply(&w, FLEET);
    put_host(&w, "h0", "a");
    put_host(&w, "h1", "a");
    snprintf(text, sizeof text, rules, 2);
    put_rules(&w, text);
    publish(&w);
    assert_int_equal(w.starts, 1); /* both are in the batch, one has the slot */
    snprintf(text, sizeof text, rules, 1);
    put_rules(&w, text);
    put_host(&w, "h1", "b"); /* it needs no slot any more, but there is one place */
    assert_int_equal(w.starts, 1);
    world_until(&w, w.now + 60);
    assert_int_equal(w.starts, 2);
    world_close(&w);
}

/* One retry by a person ends the quarantine and tries again: it is asked for once. */
static void who_is_quarantined_is_to_be_retried_once(void **state)
{
    (void)state;
    world w;
    arena *a = arena_new(0);
    world_open(&w, "2026-03-01T08:00:00Z");
    world_apply(&w, FLEET);
    put_host(&w, "h0", "a");
    put_rules(&w,
              "  - resourceConcurrency: {groupSelector: 'true', limitType: count, limitValue: 1, "
              "slotTimeoutSeconds: 100, onTimeout: quarantine}\n");
    assert_true(vec_push(&w.plans, (world_plan){.deployment = "app", .seconds = 60, .fail = 1}));
    publish(&w);
    world_until(&w, w.now + 300);
    check_text(reasons_at(&w, a, "app", "h0"), "quarantined:retry h0");
    world_act(&w, (fact_act){.act = ACT_RETRY, .target = STR("h0")});
    assert_int_equal(w.starts, 2);
    arena_free(a);
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_runs_keeps_its_slot_wherever_it_goes),
        cmocka_unit_test(a_release_that_has_not_begun_is_taken_back),
        cmocka_unit_test(a_place_that_has_not_begun_is_given_back),
        cmocka_unit_test(who_is_quarantined_is_to_be_retried_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
