/* SPDX-License-Identifier: Apache-2.0 */
/* Explanations for real, on release targets: for random worlds that are stuck, doing what the
 * reasons name starts the job; leaving any of it out, or doing what another waits for, does not.
 *
 * Time that a reason names passes, and the target is asked again: a window may have closed by the
 * time a cooldown is over. */
#include "support/check.h"

#include "support/explain.h"
#include "support/world.h"

#define API "apiVersion: drover.dev/v1alpha1\n"
#define FLEETS 100
#define HOSTS 5
#define CHANGES 3
#define LIFE 8
#define LONG_SECONDS 100000

static const char *const changes[CHANGES] = {"app", "base", "tool"};
static const char *const environments[2] = {"prod", "staging"};

typedef struct wild {
    world w;
    rng r;
    int versions[CHANGES];
    char zone[HOSTS], env[HOSTS];
    bool runs_old[HOSTS], uses[HOSTS][CHANGES];
    VEC(fact) pending;
    size_t jobs_before;
} wild;

/* ---- documents ---- */

static const object *put(wild *w, const char *format, ...) __attribute__((format(printf, 2, 3)));
static const object *put(wild *w, const char *format, ...)
{
    char *copy;
    va_list args;
    va_start(args, format);
    int length = vasprintf(&copy, format, args);
    va_end(args);
    char *text = mem_alloc((size_t)length + 1);
    memcpy(text, copy, (size_t)length + 1);
    free(copy);
    assert_true(vec_push(&w->w.copies, text));
    loaded l = load_text("world.yaml", str_of(text));
    if (!l.good || l.objects->len != 1) {
        buf found = problems_as_text(l.found);
        print_error("%s\n%.*s", text, STR_ARG(buf_str(&found)));
        fail();
    }
    assert_true(vec_push(&w->w.texts, l));
    const object *o = &l.objects->at[0];
    fact f = {.kind = FACT_DOCUMENT, .document = o};
    if (o->kind == KIND_RESOURCE)
        f = (fact){.kind = FACT_TARGET,
                   .target = {.kind = TARGET_RESOURCE, .name = o->metadata->name, .document = o}};
    assert_true(vec_push(&w->pending, f));
    return o;
}

static void step(wild *w)
{
    world_step(&w->w, w->pending.at, w->pending.len);
    w->pending.len = 0;
}

/* done: every deployment runs its newest version there. */
static void put_host(wild *w, int i, bool done)
{
    char uses[128] = "", runs[512] = "";
    size_t at = 0, len = 0;
    for (int c = 0; c < CHANGES; c++) {
        if (w->uses[i][c])
            at += (size_t)snprintf(uses + at, sizeof uses - at, ", use-%s: 'yes'", changes[c]);
        if (done || w->runs_old[i])
            len +=
                (size_t)snprintf(runs + len, sizeof runs - len, "%s{deployment: %s, version: v%d}",
                                 len ? ", " : "", changes[c], done ? w->versions[c] : 0);
    }
    put(w,
        API "kind: Resource\nmetadata: {name: h%d, labels: {zone: %c, env: %s%s}}\n"
            "spec: {kind: host, version: v1}\nstatus: {releases: [%s]}\n",
        i, w->zone[i], w->env[i] == 2 ? "none" : environments[(int)w->env[i]], uses, runs);
}

static void publish(wild *w, int c)
{
    w->versions[c]++;
    put(w,
        API "kind: Version\nmetadata: {name: %s-v%d, creationTimestamp: '%s'}\n"
            "spec: {deployment: %s, tag: v%d, status: ready}\n",
        changes[c], w->versions[c], time_at(w->w.now), changes[c], w->versions[c]);
}

static const char *some_rule(wild *w)
{
    static const char *const rules[] = {
        "  - resourceConcurrency: {groupSelector: 'true', limitType: count, limitValue: 1}\n",
        "  - resourceConcurrency: {groupSelector: 'true', limitType: count, limitValue: 2}\n",
        "  - resourceConcurrency: {groupSelector: 'resource.metadata[\"zone\"] == \"a\"', "
        "limitType: count, limitValue: 1}\n",
        "  - gradualRollout: {rolloutType: linear, timeScaleInterval: 90}\n",
        "  - gradualRollout: {rolloutType: linear-normalized, timeScaleInterval: 500}\n",
        "  - deploymentDependency: {dependsOn: 'deployment.name == \"base\"', appliesTo: "
        "'deployment.name == \"app\"'}\n",
        "  - deploymentDependency: {dependsOn: 'deployment.name in [\"base\", \"tool\"]', "
        "appliesTo: 'deployment.name == \"app\"', match: any}\n",
        "  - deploymentWindow: {rrule: 'FREQ=MINUTELY;INTERVAL=20', durationMinutes: 10}\n",
        "  - deploymentWindow: {rrule: 'FREQ=HOURLY', durationMinutes: 15, allowWindow: false}\n",
        "  - anyApproval: {minApprovals: 1}\n",
        "  - anyApproval: {minApprovals: 2}\n",
        "  - environmentProgression: {dependsOnEnvironmentSelector: 'environment.name == "
        "\"staging\"', minimumSuccessPercentage: 50}\n",
        "  - versionSelector: {selector: 'version.tag != \"v0\"'}\n",
        "  - versionCooldown: {intervalSeconds: 240}\n",
        "  - retry: {maxRetries: 1, backoffSeconds: 60}\n",
        "  - rollback: {onJobStatuses: [failure]}\n",
        "  - deploymentPolicy: {default: {budget: {count: 2}, strategy: {fixed: {initialBatch: 1, "
        "failureThreshold: 1}}}}\n",
        "  - deploymentPolicy: {default: {budget: {percent: 60}, strategy: {exponential: {}}}, "
        "compartments: [{name: a, selector: {matchLabels: {zone: a}}, budget: {count: 1}, "
        "strategy: {linear: {initialBatch: 1, failureThreshold: 1}}}]}\n",
    };
    return rules[rng_below(&w->r, COUNT_OF(rules))];
}

static void put_policy(wild *w, int p)
{
    static const char *const selectors[] = {"true", "environment.name == \"prod\"",
                                            "deployment.name != \"base\""};
    char rules[4096] = "";
    size_t count = 1 + rng_below(&w->r, 3), length = 0;
    for (size_t i = 0; i < count; i++)
        length += (size_t)snprintf(rules + length, sizeof rules - length, "%s", some_rule(w));
    if (getenv("SHOW"))
        fprintf(stderr, "policy p%d\n%s", p, rules);
    put(w, API "kind: RolloutPolicy\nmetadata: {name: p%d}\nspec:\n  selector: '%s'\n  rules:\n%s",
        p, selectors[rng_below(&w->r, COUNT_OF(selectors))], rules);
}

/* ---- what happens ---- */

static void act(wild *w, fact_act a)
{
    assert_true(vec_push(&w->pending, (fact){.kind = FACT_ACT, .act = a}));
}

static const char *host_name(size_t i)
{
    static const char *const names[HOSTS] = {"h0", "h1", "h2", "h3", "h4"};
    return names[i];
}

static void random_plans(wild *w)
{
    w->w.plans.len = 0;
    for (int c = 0; c < CHANGES; c++) {
        size_t kind = rng_below(&w->r, 4);
        assert_true(vec_push(&w->w.plans, (world_plan){.deployment = changes[c],
                                                       .seconds = kind == 0 ? LONG_SECONDS : 30,
                                                       .fail = kind == 1 ? -1 : 0}));
    }
}

static void random_event(wild *w)
{
    rng *r = &w->r;
    size_t c = rng_below(r, CHANGES);
    str change = str_of(changes[c]), host = str_of(host_name(rng_below(r, HOSTS)));
    switch (rng_below(r, 10)) {
    case 0:
        act(w, (fact_act){.act = rng_below(r, 2) ? ACT_PAUSE : ACT_RESUME, .change = change});
        break;
    case 1:
        act(w, (fact_act){.act = ACT_FREEZE,
                          .name = rng_below(r, 2) ? STR("f") : STR("g"),
                          .until_ms = rng_below(r, 2) ? 0 : (w->w.now + 120) * 1000,
                          .selector = rng_below(r, 2) ? STR("resource.metadata['zone'] == 'a'")
                                                      : STR_EMPTY});
        break;
    case 2: act(w, (fact_act){.act = ACT_HALT, .target = host}); break;
    case 3: act(w, (fact_act){.act = ACT_HALT, .change = change}); break;
    case 4: act(w, (fact_act){.act = ACT_CLAIM_SLOT, .target = host}); break;
    case 5:
        act(w, (fact_act){.act = ACT_APPROVE,
                          .version = rng_below(r, 2) ? STR("app-v1") : STR("base-v1"),
                          .who = STR("ann")});
        break;
    case 6: random_plans(w); break;
    default: publish(w, (int)c); break;
    }
    step(w);
}

static void *stuck(uint64_t seed)
{
    wild *w = calloc(1, sizeof *w);
    w->r = (rng){seed};
    world_open(&w->w, "2026-03-01T08:00:00Z");
    w->w.quiet = true;
    random_plans(w);
    for (size_t i = 0; i < 2; i++)
        put(w,
            API "kind: Environment\nmetadata: {name: %s}\nspec: {resourceSelector: "
                "'resource.metadata[\"env\"] == \"%s\"'}\n",
            environments[i], environments[i]);
    for (int c = 0; c < CHANGES; c++)
        put(w,
            API "kind: Deployment\nmetadata: {name: %s}\nspec: {resourceSelector: "
                "'resource.metadata[\"use-%s\"] == \"yes\"', job: {pull: {}}}\n",
            changes[c], changes[c]);
    for (int i = 0; i < HOSTS; i++) {
        w->zone[i] = rng_below(&w->r, 2) ? 'a' : 'b';
        w->env[i] = rng_below(&w->r, 4) == 0;
        w->runs_old[i] = rng_below(&w->r, 2);
        for (int c = 0; c < CHANGES; c++)
            w->uses[i][c] = rng_below(&w->r, 4) != 0;
        put_host(w, i, false);
    }
    put_policy(w, 0);
    if (rng_below(&w->r, 2))
        put_policy(w, 1);
    step(w);
    for (int c = 0; c < CHANGES; c++)
        if (rng_below(&w->r, 4) != 0)
            publish(w, c);
    step(w);
    size_t life = rng_below(&w->r, LIFE);
    for (size_t i = 0; i < life; i++) {
        random_event(w);
        world_until(&w->w, w->w.now + (int64_t)rng_below(&w->r, 200));
    }
    world_step(&w->w, NULL, 0);
    return w;
}

static void wild_free(void *context)
{
    wild *w = context;
    world_close(&w->w);
    vec_done(&w->pending);
    free(w);
}

static engine *wild_engine(void *context)
{
    return ((wild *)context)->w.engine;
}

/* ---- doing what a reason names ---- */

static void host_is_done(wild *w, int i)
{
    assert_true(vec_push(&w->pending, (fact){.kind = FACT_TARGET_GONE,
                                             .target = {.kind = TARGET_RESOURCE,
                                                        .name = str_of(host_name((size_t)i))}}));
    put_host(w, i, true);
}

static void obey_complete(wild *w, int own, const reason *r)
{
    if (r->rule == REASON_PROGRESSION) { /* nothing is to be done there any more */
        for (int i = 0; i < HOSTS; i++)
            if (w->env[i] == 1) {
                w->env[i] = 2;
                put_host(w, i, false);
            }
        return;
    }
    for (size_t i = 0; i < r->of_count; i++) {
        if (r->rule == REASON_DEPENDENCY) {
            for (int c = 0; c < CHANGES; c++)
                if (str_eq(r->of[i], str_of(changes[c])))
                    w->uses[own][c] = false;
            continue;
        }
        int host = r->of[i].ptr[1] - '0';
        if (host != own)
            host_is_done(w, host);
    }
    if (r->rule == REASON_DEPENDENCY)
        put_host(w, own, false);
}

static void approve(wild *w, const explain_target *of, const reason *r)
{
    static const char *const people[] = {"bob", "cid", "dan", "eve"};
    for (int64_t i = r->have; i < r->limit; i++)
        act(w, (fact_act){.act = ACT_APPROVE,
                          .version = r->of[0],
                          .environment = str_of(of->environment),
                          .who = str_of(people[i])});
}

static void obey(void *context, const explain_target *of, const reason *r)
{
    wild *w = context;
    str change = str_of(of->change), target = str_of(of->target);
    switch (r->act) {
    case RELEASE_COMPLETE: obey_complete(w, of->target[1] - '0', r); return;
    case RELEASE_TIME:
        if (r->next_ms > w->w.now * 1000)
            w->w.now = (r->next_ms + 999) / 1000;
        return;
    case RELEASE_RESUME:
        act(w, (fact_act){.act = ACT_RESUME,
                          .change = r->of[0].ptr[0] == 'h' ? STR_EMPTY : r->of[0],
                          .target = r->of[0].ptr[0] == 'h' ? r->of[0] : STR_EMPTY});
        return;
    case RELEASE_APPROVE: approve(w, of, r); return;
    case RELEASE_RETRY:
        act(w, (fact_act){.act = ACT_RETRY,
                          .change = r->rule == REASON_QUARANTINED ? STR_EMPTY : change,
                          .target = target});
        return;
    case RELEASE_RESET:
        check_msg(r->of_count == 1, "a reset of nobody");
        act(w, (fact_act){.act = ACT_RESET_BATCHES, .change = r->of[0]});
        return;
    case RELEASE_THAW: act(w, (fact_act){.act = ACT_THAW, .name = r->of[0]}); return;
    case RELEASE_EDIT:
    case RELEASE_LABEL:
    case RELEASE_UNTAINT:
    case RELEASE_UNCORDON:
    case RELEASE_PUBLISH:
    case RELEASE_ONLINE: break;
    }
    check_msg(false, "act %d of a release target", (int)r->act);
}

static bool starts(void *context, const explain_target *of)
{
    wild *w = context;
    size_t before = w->w.jobs.len;
    step(w);
    for (size_t i = before; i < w->w.jobs.len; i++) {
        const world_job *j = &w->w.jobs.at[i];
        if (strcmp(j->deployment, of->change) == 0 && strcmp(j->resource, of->target) == 0 &&
            strcmp(j->environment, of->environment) == 0 && strcmp(j->version, of->wanted) == 0)
            return true;
    }
    return false;
}

static bool asks(const placement_view *view, const reasons *list)
{
    bool progression = false, slots = false;
    for (size_t i = 0; i < list->len; i++) {
        if (list->at[i].act == RELEASE_EDIT || list->at[i].act == RELEASE_PUBLISH)
            return false;
        progression |= list->at[i].rule == REASON_PROGRESSION;
        slots |= list->at[i].rule == REASON_CONCURRENCY;
    }
    /* Taking targets away from an environment gives their slots back. */
    return view->state != PLACEMENT_IN_FLIGHT && view->state != PLACEMENT_EXCLUDED &&
           !(progression && slots);
}

/* Limits name all holders and all that are ahead; of dependencies, one may be enough. */
static bool each(const reason *r)
{
    return r->rule != REASON_BUDGET && r->rule != REASON_BATCH && r->rule != REASON_CONCURRENCY &&
           r->rule != REASON_DEPENDENCY;
}

static void test_reasons_are_true(void **state)
{
    (void)state;
    static const explain_fleet how = {.stuck = stuck,
                                      .free = wild_free,
                                      .engine = wild_engine,
                                      .asks = asks,
                                      .each = each,
                                      .obey = obey,
                                      .starts = starts,
                                      .rounds = 5};
    explain_counts counts = {0};
    explain_fleets(&how, FLEETS, &counts);
    if (!getenv("ONLY"))
        assert_true(counts.asked > FLEETS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_reasons_are_true)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
