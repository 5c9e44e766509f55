/* SPDX-License-Identifier: Apache-2.0 */
/* Incremental for real: among 100,000 placements under every kind of rule one fact makes the engine
 * look at a few of them, whatever the fact is. */
#include "support/check.h"

#include "support/node_crowd.h"
#include "support/release_fleet.h"

#define LOOKED_AT_MOST 64u
#define NODES 50000u     /* two Skyhooks on each */
#define RESOURCES 20000u /* five deployments on each */
#define PLACEMENTS 100000u

/* How many placements one step looks at; steps go on until one starts nothing. */
static uint64_t looked_at_for(engine *e, const fact *f, int64_t now_ms)
{
    decision_list out = {0};
    uint64_t before = engine_looked_at(e);
    size_t facts = 1;
    bool started = true;
    while (started) {
        out.len = 0;
        assert_true(engine_step(e, f, facts, now_ms, &out));
        facts = 0;
        started = false;
        for (size_t i = 0; i < out.len; i++)
            started = started || out.at[i].kind == DECISION_START;
    }
    vec_done(&out);
    return engine_looked_at(e) - before;
}

static void check_few(const char *what, uint64_t looked_at, uint64_t least)
{
    check_msg(looked_at >= least && looked_at <= LOOKED_AT_MOST, "%s: %llu placements looked at",
              what, (unsigned long long)looked_at);
}

static void full_agrees(engine *e)
{
    err error;
    check_msg(engine_full(e, &error), "%s", error.text);
}

static void nodes(void **state)
{
    (void)state;
    node_crowd c = node_crowd_open(NODES);
    engine *e = sim_engine(c.sim);
    int64_t now_ms = sim_now_ms(c.sim);
    char boot_id[HERD_BOOT_BYTES];
    assert_true(engine_looked_at(e) >= PLACEMENTS); /* at first everything is new */
    fact heartbeat = node_crowd_heartbeat(&c, NODES / 2, boot_id);
    check_few("a heartbeat", looked_at_for(e, &heartbeat, now_ms + 1000), 0);
    const label labels[] = {{STR("tier"), STR("b")}};
    fact relabelled = heartbeat;
    relabelled.target.labels = (label_set){labels, 1};
    check_few("a label", looked_at_for(e, &relabelled, now_ms + 2000), 1);
    fact away = heartbeat;
    away.target.not_ready = true;
    check_few("a node that is not Ready", looked_at_for(e, &away, now_ms + 3000), 1);
    fact ended = node_crowd_outcome(sim_herd(c.sim)->targets.at[0].name);
    check_few("an outcome", looked_at_for(e, &ended, now_ms + 4000), 1);
    fact gone = heartbeat;
    gone.kind = FACT_TARGET_GONE;
    check_few("a node that is gone", looked_at_for(e, &gone, now_ms + 5000), 0);
    full_agrees(e);
    node_crowd_close(&c);
}

static fact of_resource(const release_fleet *f, const object *o)
{
    (void)f;
    return (fact){.kind = FACT_TARGET,
                  .target = {.kind = TARGET_RESOURCE, .name = o->metadata->name, .document = o}};
}

static void releases(void **state)
{
    (void)state;
    static buf text;
    release_fleet f;
    text = BUF(LIMIT_TEXT_BYTES);
    release_fleet_all_rules(&text, RESOURCES);
    for (rule_kind kind = 0; kind <= RULE_ROLLOUT_STRATEGY; kind++) /* the last of them */
        check_msg(strstr(text.ptr, rule_kind_text(kind)), "no rule %s", rule_kind_text(kind));
    release_fleet_open(&f, buf_str(&text));
    release_fleet_feed(&f);
    assert_true(engine_looked_at(f.engine) >= PLACEMENTS);
    release_fleet_approve(&f);
    release_fleet_until(&f, RELEASE_START_MS + 24 * RELEASE_MINUTE_MS);
    assert_true(f.jobs.len > 1000); /* nothing is counted in a fleet at rest */
    uint64_t most = 0;
    for (int i = 0; i < 100; i++) {
        f.now_ms = f.jobs.at[0].end_ms > f.now_ms ? f.jobs.at[0].end_ms : f.now_ms;
        release_fleet_step(&f, NULL, 0); /* what time alone brings is not the fact's doing */
        fact ended = release_fleet_answer(&f);
        uint64_t looked_at = looked_at_for(f.engine, &ended, f.now_ms);
        most = looked_at > most ? looked_at : most;
    }
    check_few("an outcome", most, 1);
    const object *o = &f.objects->at[f.objects->len / 2];
    assert_int_equal(o->kind, KIND_RESOURCE);
    fact same = of_resource(&f, o);
    check_few("a heartbeat", looked_at_for(f.engine, &same, f.now_ms), 0);
    const label labels[] = {{STR("stage"), STR("prod")}, {STR("zone"), STR("9")}};
    metadata other = *o->metadata;
    other.labels = (label_set){labels, 2};
    object changed = *o;
    changed.metadata = &other;
    fact relabelled = of_resource(&f, &changed);
    check_few("a label", looked_at_for(f.engine, &relabelled, f.now_ms), 1);
    full_agrees(f.engine);
    fact gone = relabelled;
    gone.kind = FACT_TARGET_GONE;
    check_few("a resource that is gone", looked_at_for(f.engine, &gone, f.now_ms), 0);
    full_agrees(f.engine);
    release_fleet_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nodes),
        cmocka_unit_test(releases),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
