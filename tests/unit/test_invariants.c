/* SPDX-License-Identifier: Apache-2.0 */
/* The checks themselves: a state that breaks an invariant of what the last step started (I6, I7,
 * I8) is found, and the same state unbroken is not. The vocabularies are driven without engine.c,
 * so that their state can be broken on purpose. */
#include "support/check.h"

#include "engine/chain.h"
#include "engine/nodes_internal.h"
#include "support/documents.h"

#define START_MS INT64_C(1772352000000) /* 2026-03-01T08:00:00Z */

typedef struct stand {
    engine_core core;
    const vocabulary *of;
    void *self;
    decision_list out;
    VEC(loaded) texts;
} stand;

static void stand_open(stand *s, const vocabulary *of)
{
    *s = (stand){.of = of,
                 .core = {.settings = {.node_lost_after_ms = 3600000,
                                       .stage_retries = 10,
                                       .reboot_grace_ms = 120000,
                                       .start_ms = START_MS,
                                       .runtime_required_taint =
                                           STR("skyhook.nvidia.com=runtime-required:NoSchedule")},
                          .names = names_new(),
                          .step = arena_new(0),
                          .now_ms = START_MS,
                          .next_placement = 1}};
    assert_true(s->core.names && s->core.step);
    s->self = of->create(&s->core);
    assert_non_null(s->self);
}

static void stand_close(stand *s)
{
    s->of->destroy(s->self);
    names_free(s->core.names);
    arena_free(s->core.step);
    for (size_t i = 0; i < s->texts.len; i++)
        loaded_free(&s->texts.at[i]);
    vec_done(&s->texts);
    vec_done(&s->out);
}

static void stand_step(stand *s)
{
    s->core.out = &s->out;
    s->of->step(s->self);
    s->core.out = NULL;
    assert_false(s->core.no_memory);
}

static void stand_apply(stand *s, const char *text)
{
    loaded l = load_text("stand.yaml", str_of(text));
    buf found = problems_as_text(l.found);
    check_msg(l.good, "%.*s", STR_ARG(buf_str(&found)));
    buf_done(&found);
    assert_true(vec_push(&s->texts, l));
    for (size_t i = 0; i < l.objects->len; i++) {
        const object *o = &l.objects->at[i];
        fact f = {.kind = FACT_DOCUMENT, .document = o};
        if (o->kind == KIND_RESOURCE)
            f = (fact){
                .kind = FACT_TARGET,
                .target = {.kind = TARGET_RESOURCE, .name = o->metadata->name, .document = o}};
        s->of->take(s->self, &f);
    }
    stand_step(s);
}

static void check_sound(const stand *s)
{
    err error;
    check_msg(s->of->check(s->self, &error), "%s", error.text);
}

static void check_broken(const stand *s, const char *how)
{
    err error;
    check_msg(!s->of->check(s->self, &error), "%s is not noticed", how);
    check_err_has(error, how);
}

/* ---- release targets ---- */

#define API "apiVersion: drover.dev/v1alpha1\n"

static const char world_text[] = API
    "kind: Environment\nmetadata: {name: prod}\nspec: {resourceSelector: 'true'}\n---\n" API
    "kind: Deployment\nmetadata: {name: base}\nspec: {resourceSelector: 'true', job: {pull: {}}}\n"
    "---\n" API
    "kind: Deployment\nmetadata: {name: app}\nspec: {resourceSelector: 'true', job: {pull: {}}}\n"
    "---\n" API "kind: Resource\nmetadata: {name: h}\nspec: {kind: host, version: v1}\n"
    "status: {releases: [{deployment: app, version: v0}, {deployment: base, version: v1}]}\n"
    "---\n" API
    "kind: Version\nmetadata: {name: base-v1, creationTimestamp: '2026-03-01T07:00:00Z'}\n"
    "spec: {deployment: base, tag: v1, status: ready}\n---\n" API
    "kind: RolloutPolicy\nmetadata: {name: p}\nspec:\n  selector: 'true'\n  rules:\n"
    "  - deploymentWindow: {rrule: 'FREQ=HOURLY', durationMinutes: 15}\n"
    "  - deploymentDependency: {dependsOn: 'deployment.name == \"base\"', appliesTo: "
    "'deployment.name == \"app\"'}\n";

static const char app_text[] =
    API "kind: Version\nmetadata: {name: app-v1, creationTimestamp: '2026-03-01T08:00:00Z'}\n"
        "spec: {deployment: app, tag: v1, status: ready}\n";

static rel_target *target_named(releases *r, const char *name)
{
    for (size_t i = 0; i < r->targets.len; i++)
        if (str_eq(rel_text(r, r->deployments.at[r->targets.at[i].deployment].name), str_of(name)))
            return &r->targets.at[i];
    fail();
    return NULL;
}

static void jobs_of_the_last_step(void **state)
{
    (void)state;
    stand s;
    stand_open(&s, &vocabulary_releases);
    releases *r = s.self;
    stand_apply(&s, world_text);
    stand_apply(&s, app_text);
    assert_int_not_equal(target_named(r, "app")->job, 0);
    check_sound(&s);
    r->halted = true;
    check_broken(&s, "I6: a job began after a halt: app on h");
    r->halted = false;
    r->resources.at[0].halted = true;
    check_broken(&s, "I6: a job began after a halt: app on h");
    r->resources.at[0].halted = false;
    rel_deployment *app = &r->deployments.at[target_named(r, "app")->deployment];
    app->paused = true;
    check_broken(&s, "I6: a job began while paused or frozen: app on h");
    app->paused = false;
    assert_true(vec_push(&r->freezes, (rel_freeze){0}));
    check_broken(&s, "I6: a job began while paused or frozen: app on h");
    r->freezes.len = 0;
    uint32_t current = target_named(r, "base")->current;
    target_named(r, "base")->current = NO;
    check_broken(&s, "I7: a job began before what it depends on was in place: app on h");
    target_named(r, "base")->current = current;
    s.core.now_ms += INT64_C(20) * 60 * 1000;
    check_broken(&s, "I8: a job began outside its window: app on h");
    s.core.now_ms -= INT64_C(20) * 60 * 1000;
    check_sound(&s);
    /* One step later it is history: what has begun is finished. */
    s.core.now_ms += INT64_C(20) * 60 * 1000;
    stand_step(&s);
    r->halted = true;
    check_sound(&s);
    stand_close(&s);
}

/* ---- nodes ---- */

#define SKYHOOK_API "apiVersion: skyhook.nvidia.com/v1alpha1\n"

static const char skyhooks_text[] = SKYHOOK_API
    "kind: Skyhook\nmetadata: {name: first}\nspec: {priority: 1, packages: {tool: {version: '1', "
    "image: r/tool}}}\n---\n" SKYHOOK_API
    "kind: Skyhook\nmetadata: {name: second}\nspec: {priority: 2, packages: {tool: {version: '1', "
    "image: r/tool}, extra: {version: '1', image: r/extra, dependsOn: {tool: '1'}}}}\n";

static void stage_ends(stand *s, const char *skyhook_, const char *stage, int64_t attempt)
{
    fact f = {.kind = FACT_STAGE,
              .stage = {str_of(skyhook_), STR("n"), STR("tool"), STR("1"), str_of(stage), attempt,
                        OUTCOME_SUCCEEDED, STR_EMPTY, false}};
    s->of->take(s->self, &f);
    stand_step(s);
}

static void claims_and_stages_of_the_last_step(void **state)
{
    (void)state;
    stand s;
    stand_open(&s, &vocabulary_nodes);
    nodes *n = s.self;
    stand_apply(&s, skyhooks_text);
    fact f = {.kind = FACT_TARGET, .target = {.kind = TARGET_NODE, .name = STR("n")}};
    s.of->take(s.self, &f);
    stand_step(&s);
    change *first = n->changes.at[0], *second = n->changes.at[1];
    check_sound(&s);
    stage_ends(&s, "first", "apply", 1);
    stage_ends(&s, "first", "config", 2);
    node_placement *early = placement_on(n, 0, first), *late = placement_on(n, 0, second);
    assert_true(early->done && late->phase == PHASE_WORKING);
    check_sound(&s);
    early->done = false;
    first->not_done = 1;
    check_broken(&s, "I7: it began before a Skyhook that comes first was done");
    early->done = true;
    first->not_done = 0;
    stage_ends(&s, "second", "apply", 1);
    stage_ends(&s, "second", "config", 2);
    assert_int_equal(late->running, 1);
    check_sound(&s);
    late->entries.at[0].state = PACKAGE_ERRORING;
    check_broken(&s, "I7: a stage began before a package it depends on was complete");
    late->entries.at[0].state = PACKAGE_COMPLETE;
    check_sound(&s);
    stand_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(jobs_of_the_last_step),
        cmocka_unit_test(claims_and_stages_of_the_last_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
