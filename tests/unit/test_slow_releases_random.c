/* SPDX-License-Identifier: Apache-2.0 */
/* Small random worlds over all rule kinds: invariants and the full evaluation hold after every
 * step, a saved engine goes on exactly like the one that was not saved, every target that is not
 * done says why, and when faults stop everything ends. The worlds are the same each time:
 * SEED=number runs that one alone, with RUNS=number so many others that begin there. */
#include "support/check.h"

#include "support/world.h"

#define API "apiVersion: drover.dev/v1alpha1\n"
#define HOSTS 5
#define CHANGES 4
#define FIRST_SEED 1
#ifdef __SANITIZE_ADDRESS__
#define RUNS_USUAL 40
#else
#define RUNS_USUAL 600
#endif

static const char *const changes[CHANGES] = {"app", "base", "drain", "undrain"};
static const char *const environments[2] = {"prod", "staging"};

typedef struct random_world {
    world w;
    rng r;
    engine *twin;
    decision_list twin_out;
    int versions[CHANGES];
    uint64_t seed;
} random_world;

static uint64_t compared;
static random_world *the; /* for the hook after each step */
static uint64_t running;  /* the seed of the world that runs; 0: all have ended */

/* ---- documents ---- */

static void put_host(random_world *x, int i)
{
    static const char *const zones[] = {"a", "b"};
    world_apply(
        &x->w,
        API
        "kind: Resource\nmetadata: {name: h%d, labels: {zone: %s, env: %s}}\nspec: {kind: host, "
        "version: v1}\n%s",
        i, zones[rng_below(&x->r, 2)], environments[rng_below(&x->r, 3) == 0],
        rng_below(&x->r, 2)
            ? "status: {releases: [{deployment: app, version: v0}, {deployment: drain, version: "
              "v0}]}\n"
            : "");
}

static void put_version(random_world *x, int c, int number, const char *status)
{
    world_apply(
        &x->w,
        API
        "kind: Version\nmetadata: {name: %s-v%d, creationTimestamp: '%s'}\nspec: {deployment: %s, "
        "tag: v%d, status: %s}\n",
        changes[c], number, time_at(x->w.now), changes[c], number, status);
}

static const char *some_rule(random_world *x)
{
    static const char *const rules[] = {
        "  - deploymentBracket: {deploymentSelector: 'true', readinessMode: immediate, "
        "preSelector: 'deployment.name == \"drain\"', postSelector: 'deployment.name == "
        "\"undrain\"'}\n",
        "  - deploymentBracket: {deploymentSelector: 'true', readinessWindowSeconds: 300, "
        "overlapStrategy: merge, rollbackStrategy: individual, preSelector: 'deployment.name == "
        "\"drain\"'}\n",
        "  - deploymentBracket: {deploymentSelector: 'deployment.name != \"base\"', "
        "readinessMode: wait_for_all, readinessWindowSeconds: 600, unchangedMemberStrategy: "
        "redeploy_current, rollbackStrategy: all_members}\n",
        "  - deploymentBracket: {deploymentSelector: 'true', readinessWindowSeconds: 200, "
        "unchangedMemberStrategy: require_all, windowTrigger: eligible}\n",
        "  - resourceConcurrency: {groupSelector: 'true', limitType: count, limitValue: 1}\n",
        "  - resourceConcurrency: {groupSelector: 'true', limitType: count, limitValue: 2, "
        "slotTimeoutSeconds: 400, onTimeout: release}\n",
        "  - resourceConcurrency: {groupSelector: 'resource.metadata[\"zone\"] == \"a\"', "
        "limitType: percentage, limitValue: 40, slotTimeoutSeconds: 300, onTimeout: quarantine}\n",
        "  - resourceConcurrency: {groupSelector: 'resource.metadata[\"zone\"] == \"b\"', "
        "limitType: count, limitValue: 1, slotTimeoutSeconds: 500, onTimeout: hold}\n",
        "  - gradualRollout: {rolloutType: linear, timeScaleInterval: 90}\n",
        "  - gradualRollout: {rolloutType: linear-normalized, timeScaleInterval: 500}\n",
        "  - deploymentDependency: {dependsOn: 'deployment.name == \"base\"', appliesTo: "
        "'deployment.name == \"app\"'}\n",
        "  - deploymentDependency: {dependsOn: 'deployment.name in [\"base\", \"drain\"]', "
        "appliesTo: 'deployment.name in [\"app\", \"undrain\"]', match: any}\n",
        "  - deploymentWindow: {rrule: 'FREQ=MINUTELY;INTERVAL=20', durationMinutes: 10}\n",
        "  - deploymentWindow: {rrule: 'FREQ=HOURLY', durationMinutes: 15, allowWindow: false, "
        "timezone: Europe/Berlin}\n",
        "  - anyApproval: {minApprovals: 1}\n",
        "  - environmentProgression: {dependsOnEnvironmentSelector: 'environment.name == "
        "\"staging\"', minimumSuccessPercentage: 50, minimumSoakTimeMinutes: 5}\n",
        "  - versionSelector: {selector: 'version.tag != \"v2\"'}\n",
        "  - versionSelector: {selector: 'version.tag != \"v3\" || resource.metadata[\"zone\"] == "
        "\"a\"'}\n",
        "  - versionCooldown: {intervalSeconds: 240}\n",
        "  - retry: {maxRetries: 2, backoffSeconds: 60, backoffStrategy: exponential}\n",
        "  - rollback: {onJobStatuses: [failure]}\n",
        "  - deploymentPolicy: {default: {budget: {count: 2}, strategy: {fixed: {initialBatch: "
        "1}}}}\n",
        "  - deploymentPolicy: {default: {budget: {percent: 60}, strategy: {exponential: {}}}, "
        "compartments: [{name: a, selector: {matchLabels: {zone: a}}, budget: {count: 1}, "
        "strategy: {linear: {initialBatch: 1}}}]}\n",
        "  - rolloutStrategy: {maxUnavailable: 1}\n",
        "  - rolloutStrategy: {maxUnavailable: 0, autoPartitionThreshold: 1, autoPartitionSize: "
        "2, soakSeconds: 100, maxNew: 1}\n",
        "  - rolloutStrategy: {maxUnavailable: 50%, failureThreshold: 2, partitions: [{name: a, "
        "clusterSelector: {matchLabels: {zone: a}}}, {name: b, maxUnavailable: 1, "
        "clusterSelector: {matchLabels: {zone: b}}}]}\n",
    };
    return rules[rng_below(&x->r, COUNT_OF(rules))];
}

static void put_policy(random_world *x, int p)
{
    static const char *const selectors[] = {"true", "environment.name == \"prod\"",
                                            "deployment.name != \"base\"",
                                            "resource.metadata[\"zone\"] == \"a\""};
    char rules[8192] = ""; /* printed with SHOW */
    size_t count = 1 + rng_below(&x->r, 5), length = 0;
    for (size_t i = 0; i < count; i++)
        length += (size_t)snprintf(rules + length, sizeof rules - length, "%s", some_rule(x));
    if (getenv("SHOW"))
        print_error("policy p%d at %s\n%s", p, time_at(x->w.now), rules);
    world_apply(
        &x->w,
        API
        "kind: RolloutPolicy\nmetadata: {name: p%d}\nspec:\n  selector: '%s'\n  priority: %d\n  "
        "rules:\n%s",
        p, selectors[rng_below(&x->r, COUNT_OF(selectors))], (int)rng_below(&x->r, 3), rules);
}

/* ---- the twin: an engine that was restored from what the first one saved ---- */

static str decision_line(arena *a, const decision *d)
{
    static const char *const kinds[] = {
#define X(kind, text) [DECISION_##kind] = text,
        DECISION_KINDS(X)
#undef X
    };
    return arena_printf(a, "%s %.*s %.*s %.*s %.*s %.*s %.*s %d %lld %lld %d%d%d", kinds[d->kind],
                        STR_ARG(d->change), STR_ARG(d->target), STR_ARG(d->environment),
                        STR_ARG(d->version), STR_ARG(d->group), STR_ARG(d->state), (int)d->role,
                        (long long)d->number, (long long)d->size, d->retry, d->taken, d->failed);
}

static str decision_lines(arena *a, const decision_list *list)
{
    buf text = BUF(LIMIT_TEXT_BYTES);
    for (size_t i = 0; i < list->len; i++)
        buf_addf(&text, "  %.*s\n", STR_ARG(decision_line(a, &list->at[i])));
    str copy = arena_str(a, buf_str(&text));
    buf_done(&text);
    return copy;
}

static void twin_compare(random_world *x)
{
    arena *a = arena_new(0);
    str one = decision_lines(a, &x->w.out), two = decision_lines(a, &x->twin_out);
    compared++;
    if (!str_eq(one, two))
        fprintf(stderr, "the engine decides\n%.*sthe restored one\n%.*s", STR_ARG(one),
                STR_ARG(two));
    check_msg(str_eq(one, two), "SEED=%llu at %s: a restored engine decides otherwise",
              (unsigned long long)x->seed, time_at(x->w.now));
    arena_free(a);
}

typedef struct known {
    const object *object;
} known;

static void compare_saved(const random_world *x, str one, str two)
{
    while (one.len > 0 || two.len > 0) {
        str left = str_cut(&one, '\n'), right = str_cut(&two, '\n');
        check_msg(str_eq(left, right), "SEED=%llu: saved\n  %.*s\nsaved again\n  %.*s",
                  (unsigned long long)x->seed, STR_ARG(left), STR_ARG(right));
    }
}

/* Feeds the documents as they are now, in another order than they came, and restores. */
static void twin_make(random_world *x)
{
    world *w = &x->w;
    err error;
    engine_free(x->twin);
    engine_settings settings = {.start_ms = at_time("2026-03-01T08:00:00Z") * 1000};
    x->twin = engine_new(&settings, &error);
    assert_non_null(x->twin);
    VEC(known) last = {0};
    for (size_t i = 0; i < w->texts.len; i++)
        for (size_t k = 0; k < w->texts.at[i].objects->len; k++) {
            const object *o = &w->texts.at[i].objects->at[k];
            size_t at = 0;
            while (at < last.len &&
                   (last.at[at].object->kind != o->kind ||
                    !str_eq(last.at[at].object->metadata->name, o->metadata->name)))
                at++;
            if (at == last.len)
                assert_true(vec_push(&last, (known){o}));
            last.at[at].object = o;
        }
    /* What was deleted is marked by an absent placement or policy: see forget. */
    for (size_t i = last.len; i-- > 0;) {
        const object *o = last.at[i].object;
        if (o->metadata->deletion_timestamp.set)
            continue;
        fact f = {.kind = FACT_DOCUMENT, .document = o};
        if (o->kind == KIND_RESOURCE)
            f = (fact){
                .kind = FACT_TARGET,
                .target = {.kind = TARGET_RESOURCE, .name = o->metadata->name, .document = o}};
        assert_true(engine_take(x->twin, &f, 1, w->now * 1000));
    }
    vec_done(&last);
    buf saved = BUF(LIMIT_TEXT_BYTES), again = BUF(LIMIT_TEXT_BYTES);
    assert_true(engine_save(w->engine, &saved));
    check_msg(engine_restore(x->twin, buf_str(&saved), &error), "%s", error.text);
    assert_true(engine_save(x->twin, &again));
    compare_saved(x, buf_str(&saved), buf_str(&again));
    /* A restored engine looks at everything once; there is nothing new in it. */
    x->twin_out.len = 0;
    assert_true(engine_step(x->twin, NULL, 0, w->now * 1000, &x->twin_out));
    arena *a = arena_new(0);
    if (x->twin_out.len > 0)
        fprintf(stderr, "the restored one\n%.*s", STR_ARG(decision_lines(a, &x->twin_out)));
    arena_free(a);
    check_msg(x->twin_out.len == 0, "SEED=%llu: a restored engine decides at once",
              (unsigned long long)x->seed);
    buf_clear(&again);
    assert_true(engine_save(x->twin, &again));
    compare_saved(x, buf_str(&saved), buf_str(&again));
    buf_done(&saved);
    buf_done(&again);
}

/* ---- after each step ---- */

typedef struct tally {
    world *w;
    size_t open; /* neither done nor excluded */
} tally;

static bool has_reason(void *context, const placement_view *view)
{
    tally *t = context;
    if (view->state == PLACEMENT_DONE)
        return true;
    arena *a = arena_new(0);
    reasons list = {0};
    assert_true(engine_reasons(t->w->engine, view->id, a, &list));
    if (list.len == 0 && getenv("SEED")) {
        buf saved = BUF(LIMIT_TEXT_BYTES);
        engine_save(t->w->engine, &saved);
        fprintf(stderr, "%.*s", STR_ARG(buf_str(&saved)));
        buf_done(&saved);
    }
    check_msg(list.len > 0, "SEED=%llu at %s: %.*s on %.*s is %d and has no reason",
              (unsigned long long)the->seed, time_at(t->w->now), STR_ARG(view->change),
              STR_ARG(view->target), (int)view->state);
    t->open += view->state != PLACEMENT_EXCLUDED;
    arena_free(a);
    return true;
}

static void after_step(world *w)
{
    tally t = {w, 0};
    engine_placements(w->engine, has_reason, &t);
    if (the->twin)
        twin_compare(the);
}

/* The same facts go to the twin first. */
static void step_both(random_world *x, const fact *facts, size_t count)
{
    err error;
    if (x->twin) {
        x->twin_out.len = 0;
        check_msg(engine_step(x->twin, facts, count, x->w.now * 1000, &x->twin_out),
                  "SEED=%llu: %s", (unsigned long long)x->seed, error.text);
    }
}

static void before_step(world *w, const fact *facts, size_t count)
{
    (void)w;
    step_both(the, facts, count);
}

/* ---- what happens ---- */

static str random_change(random_world *x)
{
    return str_of(changes[rng_below(&x->r, CHANGES)]);
}

static void random_act(random_world *x)
{
    static const char *const names[HOSTS] = {"h0", "h1", "h2", "h3", "h4"};
    str host = str_of(names[rng_below(&x->r, HOSTS)]);
    size_t c = rng_below(&x->r, CHANGES);
    char id[64];
    snprintf(id, sizeof id, "%s-v%d", changes[c],
             1 + (int)rng_below(&x->r, (size_t)x->versions[c] + 1));
    switch (rng_below(&x->r, 12)) {
    case 0:
    case 1:
    case 2:
        world_act(&x->w, (fact_act){.act = ACT_APPROVE, .version = str_of(id), .who = STR("ann")});
        break;
    case 3: world_act(&x->w, (fact_act){.act = ACT_RETRY, .target = host}); break;
    case 4:
        world_act(&x->w, (fact_act){.act = ACT_SKIP, .change = random_change(x), .target = host});
        break;
    case 5:
        world_act(&x->w,
                  (fact_act){.act = ACT_ROLLBACK, .change = random_change(x), .target = host});
        break;
    case 6:
        world_act(&x->w, (fact_act){.act = rng_below(&x->r, 2) ? ACT_PAUSE : ACT_RESUME,
                                    .change = random_change(x)});
        break;
    case 7:
        world_act(&x->w, (fact_act){.act = ACT_FREEZE,
                                    .name = STR("f"),
                                    .until_ms = (x->w.now + 120) * 1000,
                                    .selector = rng_below(&x->r, 2)
                                                    ? STR("resource.metadata['zone'] == 'a'")
                                                    : STR_EMPTY});
        break;
    case 8:
        world_act(&x->w,
                  (fact_act){.act = rng_below(&x->r, 2) ? ACT_HALT : ACT_RESUME, .target = host});
        break;
    case 9:
        world_act(&x->w, (fact_act){.act = rng_below(&x->r, 2) ? ACT_CLAIM_SLOT : ACT_FREE_SLOT,
                                    .target = host});
        break;
    case 10: {
        static const char *const rules[] = {"p0/deploymentWindow/0", "p0/anyApproval/0",
                                            "p1/deploymentBracket/0", "p1/gradualRollout/0"};
        world_act(&x->w, (fact_act){.act = ACT_BYPASS,
                                    .rule = str_of(rules[rng_below(&x->r, COUNT_OF(rules))]),
                                    .version = str_of(id),
                                    .target = rng_below(&x->r, 2) ? host : STR_EMPTY,
                                    .until_ms = (x->w.now + 300) * 1000});
        break;
    }
    default:
        world_act(&x->w, (fact_act){.act = ACT_REJECT, .version = str_of(id), .who = STR("ann")});
        break;
    }
}

static void random_document(random_world *x)
{
    size_t c = rng_below(&x->r, CHANGES);
    static const char *const states[] = {"ready", "rejected", "paused", "ready"};
    switch (rng_below(&x->r, 6)) {
    case 0: put_host(x, (int)rng_below(&x->r, HOSTS)); break;
    case 1: put_policy(x, (int)rng_below(&x->r, 2)); break;
    case 2:
        if (x->versions[c] > 0)
            put_version(x, (int)c, 1 + (int)rng_below(&x->r, (size_t)x->versions[c]),
                        states[rng_below(&x->r, 4)]);
        break;
    default: put_version(x, (int)c, ++x->versions[c], "ready"); break;
    }
}

static void set_faults(random_world *x, bool faulty)
{
    x->w.plans.len = 0;
    for (size_t c = 0; c < CHANGES; c++)
        assert_true(
            vec_push(&x->w.plans,
                     (world_plan){changes[c], NULL, 20 + (int64_t)rng_below(&x->r, 200),
                                  faulty && rng_below(&x->r, 3) == 0 ? (int)rng_below(&x->r, 4) : 0,
                                  rng_below(&x->r, 4) == 0, rng_below(&x->r, 4) == 0}));
}

/* Faults stop: what people hold is let go, every policy goes, and all of it must end. */
static void run_to_the_end(random_world *x)
{
    set_faults(x, false);
    world_act(&x->w, (fact_act){.act = ACT_THAW});
    world_act(&x->w, (fact_act){.act = ACT_RESUME});
    for (size_t c = 0; c < CHANGES; c++)
        world_act(&x->w, (fact_act){.act = ACT_RESUME, .change = str_of(changes[c])});
    static const char *const names[HOSTS] = {"h0", "h1", "h2", "h3", "h4"};
    for (size_t i = 0; i < HOSTS; i++)
        world_act(&x->w, (fact_act){.act = ACT_RESUME, .target = str_of(names[i])});
    world_until(&x->w, x->w.now + 4 * HOUR);
    for (int round = 0; round < 4; round++) {
        world_act(&x->w, (fact_act){.act = ACT_RETRY});
        world_until(&x->w, x->w.now + 4 * HOUR);
    }
    world_delete(&x->w, KIND_ROLLOUT_POLICY, "p0");
    world_delete(&x->w, KIND_ROLLOUT_POLICY, "p1");
    world_until(&x->w, INT64_MAX);
    tally t = {&x->w, 0};
    engine_placements(x->w.engine, has_reason, &t);
    check_msg(t.open == 0, "SEED=%llu: %zu targets never end", (unsigned long long)x->seed, t.open);
}

static void one_world(uint64_t seed)
{
    random_world x = {.r = {seed}, .seed = seed};
    running = seed;
    if (getenv("SHOW"))
        print_message("# world %llu\n", (unsigned long long)seed);
    the = &x;
    world_open(&x.w, "2026-03-01T08:00:00Z");
    x.w.after = after_step;
    x.w.before = before_step;
    set_faults(&x, true);
    for (size_t i = 0; i < 2; i++)
        world_apply(&x.w,
                    API "kind: Environment\nmetadata: {name: %s}\nspec: {resourceSelector: '%s'}\n",
                    environments[i], i ? "resource.metadata[\"env\"] == \"staging\"" : "true");
    for (size_t c = 0; c < CHANGES; c++)
        world_apply(
            &x.w,
            API
            "kind: Deployment\nmetadata: {name: %s}\nspec: {resourceSelector: 'true', job: {pull: "
            "{}}}\n",
            changes[c]);
    for (int i = 0; i < HOSTS; i++)
        put_host(&x, i);
    put_policy(&x, 0);
    put_policy(&x, 1);
    size_t events = 15 + rng_below(&x.r, 20);
    for (size_t i = 0; i < events; i++) {
        if (rng_below(&x.r, 2))
            random_document(&x);
        else
            random_act(&x);
        if (rng_below(&x.r, 4) == 0)
            twin_make(&x);
        world_until(&x.w, x.w.now + (int64_t)rng_below(&x.r, 500));
        if (rng_below(&x.r, 6) == 0)
            set_faults(&x, true);
        if (rng_below(&x.r, 4) == 0)
            twin_make(&x);
    }
    run_to_the_end(&x);
    engine_free(x.twin);
    vec_done(&x.twin_out);
    world_close(&x.w);
    running = 0;
}

static void random_worlds(void **state)
{
    (void)state;
    const char *given = getenv("SEED"), *runs = getenv("RUNS");
    rng r = {given ? strtoull(given, NULL, 10) : FIRST_SEED};
    if (given && !runs) {
        one_world(r.state);
        return;
    }
    long count = runs ? strtol(runs, NULL, 10) : RUNS_USUAL;
    print_message("# %ld worlds from SEED=%llu\n", count, (unsigned long long)r.state);
    for (long i = 0; i < count; i++)
        one_world(rng_next(&r));
    print_message("# %llu steps beside a restored engine\n", (unsigned long long)compared);
}

static int name_the_seed(void **state)
{
    (void)state;
    if (running != 0)
        print_error("SEED=%llu broke\n", (unsigned long long)running);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test_teardown(random_worlds, name_the_seed)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
