/* SPDX-License-Identifier: Apache-2.0 */
/* Explanations for real, on release targets: for random worlds that are stuck, doing what the
 * reasons name starts the job; leaving any of it out, or doing what another waits for, does not.
 *
 * Time that a reason names passes, and the target is asked again: a window may have closed by the
 * time a cooldown is over. */
#include "support/check.h"

#include "base/strmap.h"
#include "support/explain.h"
#include "support/world.h"

#define API "apiVersion: drover.dev/v1alpha1\n"
#define FLEETS 2000
#define STARVED 25
#define HOSTS 5
#define CHANGES 3
#define POLICIES 2
#define RULES 3
#define BRACKET_ROUNDS 2
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
    int64_t until; /* seconds: when all is done, this is waited for */
    const char *given[POLICIES][RULES], *rules[POLICIES][RULES]; /* and as they were edited */
    const char *selectors[POLICIES];
    bool any_version;       /* whichever is published last */
    VEC(char *) collecting; /* version groups that have not locked */
    size_t published;       /* so many times something had to be published */
} wild;

/* ---- documents ---- */

/* The same fleet is made again and again from the same texts, and to read them is most of the work:
 * each is read once, and kept while any fleet is there. */
typedef struct kept_document {
    uint64_t hash;
    char *text;
    loaded is;
} kept_document;

static VEC(kept_document) documents;
static size_t fleets;

static const object *document_of(char *text)
{
    uint64_t hash = str_hash(str_of(text));
    for (size_t i = 0; i < documents.len; i++)
        if (documents.at[i].hash == hash && strcmp(documents.at[i].text, text) == 0) {
            free(text);
            return &documents.at[i].is.objects->at[0];
        }
    kept_document fresh = {hash, text, load_text("world.yaml", str_of(text))};
    if (!fresh.is.good || fresh.is.objects->len != 1) {
        buf found = problems_as_text(fresh.is.found);
        print_error("%s\n%.*s", text, STR_ARG(buf_str(&found)));
        fail();
    }
    assert_true(vec_push(&documents, fresh));
    return &fresh.is.objects->at[0];
}

static void documents_forget(void)
{
    for (size_t i = 0; i < documents.len; i++) {
        loaded_free(&documents.at[i].is);
        free(documents.at[i].text);
    }
    vec_done(&documents);
}

static void put(wild *w, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void put(wild *w, const char *format, ...)
{
    char *text;
    va_list args;
    va_start(args, format);
    assert_true(vasprintf(&text, format, args) > 0);
    va_end(args);
    const object *o = document_of(text);
    fact f = {.kind = FACT_DOCUMENT, .document = o};
    if (o->kind == KIND_RESOURCE)
        f = (fact){.kind = FACT_TARGET,
                   .target = {.kind = TARGET_RESOURCE, .name = o->metadata->name, .document = o}};
    assert_true(vec_push(&w->pending, f));
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

#define BRACKET "  - deploymentBracket: {deploymentSelector: 'true', "

#define RING(name, zone) "{name: " name ", clusterSelector: {matchLabels: {zone: " zone "}}"
#define RINGS "partitions: [" RING("first", "a") "}, " RING("second", "b") "}]"
#define RINGS_APPROVED                                                                             \
    "partitions: [" RING("first", "b") "}, " RING("second", "a") ", approval: true}]"

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
        "  - resourceConcurrency: {groupSelector: 'true', limitType: count, limitValue: 0}\n",
        "  - versionSelector: {selector: 'version.tag != \"v1\"'}\n",
        BRACKET "readinessMode: immediate}\n",
        BRACKET "readinessWindowSeconds: 300, overlapStrategy: merge}\n",
        BRACKET "readinessMode: wait_for_all, readinessWindowSeconds: 600}\n",
        BRACKET "readinessMode: immediate, preSelector: 'deployment.name == \"base\"'}\n",
        BRACKET "readinessWindowSeconds: 60, preSelector: 'deployment.name == \"base\"', "
                "postSelector: 'deployment.name == \"tool\"'}\n",
        "  - deploymentPolicy: {default: {budget: {count: 2}, strategy: {fixed: {initialBatch: 1, "
        "failureThreshold: 1}}}}\n",
        "  - deploymentPolicy: {default: {budget: {percent: 60}, strategy: {exponential: {}}}, "
        "compartments: [{name: a, selector: {matchLabels: {zone: a}}, budget: {count: 1}, "
        "strategy: {linear: {initialBatch: 1, failureThreshold: 1}}}]}\n",
        "  - rolloutStrategy: {maxUnavailable: 1}\n",
        "  - rolloutStrategy: {maxUnavailable: 2, maxNew: 1, failureThreshold: 2}\n",
        "  - rolloutStrategy: {maxUnavailable: 0, " RINGS "}\n",
        "  - rolloutStrategy: {maxUnavailable: 1, soakSeconds: 120, " RINGS "}\n",
        "  - rolloutStrategy: {maxUnavailable: 1, " RINGS_APPROVED "}\n",
        "  - resourceConcurrency: {groupSelector: 'true', limitType: count, limitValue: 1, "
        "slotTimeoutSeconds: 100, onTimeout: quarantine}\n",
        "  - resourceConcurrency: {groupSelector: 'true', limitType: count, limitValue: 1, "
        "slotTimeoutSeconds: 100, onTimeout: release}\n",
        "  - verification: {metrics: [{name: m, provider: {type: sleep, durationSeconds: 1}, "
        "intervalSeconds: 1, count: 1, successCondition: result.ok}]}\n",
    };
    return rules[rng_below(&w->r, COUNT_OF(rules))];
}

static void write_policy(wild *w, int p)
{
    char rules[4096] = "";
    size_t length = 0;
    for (size_t i = 0; i < RULES && w->rules[p][i]; i++)
        length += (size_t)snprintf(rules + length, sizeof rules - length, "%s", w->rules[p][i]);
    if (getenv("SHOW"))
        fprintf(stderr, "policy p%d selects %s\n%s", p, w->selectors[p], rules);
    put(w, API "kind: RolloutPolicy\nmetadata: {name: p%d}\nspec:\n  selector: '%s'\n  rules:\n%s",
        p, w->selectors[p], rules);
}

static void put_policy(wild *w, int p)
{
    static const char *const selectors[] = {"true", "environment.name == \"prod\"",
                                            "deployment.name != \"base\""};
    size_t count = 1 + rng_below(&w->r, RULES);
    for (size_t i = 0; i < count; i++)
        w->given[p][i] = w->rules[p][i] = some_rule(w);
    w->selectors[p] = selectors[rng_below(&w->r, COUNT_OF(selectors))];
    write_policy(w, p);
}

/* A rule that says no more, under the same name. */
static void relax(wild *w, int p, const char *kind, size_t number)
{
    static const char *const open[][2] = {
        {"resourceConcurrency",
         "  - resourceConcurrency: {groupSelector: 'true', limitType: count, limitValue: 99}\n"},
        {"versionSelector", "  - versionSelector: {selector: 'true'}\n"},
        {"rolloutStrategy", "  - rolloutStrategy: {maxUnavailable: 100%}\n"},
        {"environmentProgression", "  - versionSelector: {selector: 'true'}\n"},
    };
    for (size_t i = 0; i < RULES && w->rules[p][i]; i++)
        if (strncmp(w->given[p][i] + strlen("  - "), kind, strlen(kind)) == 0 && number-- == 0)
            for (size_t k = 0; k < COUNT_OF(open); k++)
                if (strcmp(open[k][0], kind) == 0)
                    w->rules[p][i] = open[k][1];
    write_policy(w, p);
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
        size_t kind = rng_below(&w->r, 8);
        assert_true(vec_push(&w->w.plans, (world_plan){.deployment = changes[c],
                                                       .seconds = kind < 2 ? LONG_SECONDS : 30,
                                                       .fail = kind == 2 || kind == 3 ? -1 : 0,
                                                       .bad_verification = kind == 3}));
    }
}

static void random_event(wild *w)
{
    rng *r = &w->r;
    size_t c = rng_below(r, CHANGES);
    str change = str_of(changes[c]), host = str_of(host_name(rng_below(r, HOSTS)));
    switch (rng_below(r, 11)) {
    case 10: act(w, (fact_act){.act = ACT_SKIP, .change = change, .target = host}); break;
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

/* Notes which version groups collect. */
static void see_groups(world *of)
{
    wild *w = (wild *)of; /* its first member */
    for (size_t i = 0; i < of->out.len; i++) {
        const decision *d = &of->out.at[i];
        size_t left = 0;
        if (d->kind != DECISION_GROUP)
            continue;
        for (size_t k = 0; k < w->collecting.len; k++) {
            if (str_eq(d->group, str_of(w->collecting.at[k])))
                free(w->collecting.at[k]);
            else
                w->collecting.at[left++] = w->collecting.at[k];
        }
        w->collecting.len = left;
        if (str_eq(d->state, STR("collecting")))
            assert_true(vec_push(&w->collecting, strndup(d->group.ptr, d->group.len)));
    }
}

static void *stuck(uint64_t seed)
{
    wild *w = calloc(1, sizeof *w);
    fleets++;
    w->r = (rng){seed};
    world_open(&w->w, "2026-03-01T08:00:00Z");
    w->w.quiet = !getenv("FULL");
    w->w.after = see_groups;
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
    for (size_t i = 0; i < w->collecting.len; i++)
        free(w->collecting.at[i]);
    vec_done(&w->collecting);
    vec_done(&w->pending);
    free(w);
    if (--fleets == 0)
        documents_forget();
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

/* Deployments of the same host are named, and taken away from it. */
static bool on_the_host(const reason *r)
{
    return r->rule == REASON_DEPENDENCY || r->rule == REASON_BRACKET || r->rule == REASON_BUSY;
}

static void obey_complete(wild *w, const explain_target *of, const reason *r)
{
    int own = of->target[1] - '0';
    if (r->rule == REASON_PROGRESSION) { /* nothing is to be done there any more */
        for (int i = 0; i < HOSTS; i++)
            if (w->env[i] == 1) {
                w->env[i] = 2;
                put_host(w, i, false);
            }
        return;
    }
    for (size_t i = 0; i < r->of_count; i++) {
        if (on_the_host(r)) {
            for (int c = 0; c < CHANGES; c++)
                if (str_eq(r->of[i], str_of(changes[c])))
                    w->uses[own][c] = false;
            continue;
        }
        int host = r->of[i].ptr[1] - '0';
        if (host != own)
            host_is_done(w, host);
    }
    if (on_the_host(r))
        put_host(w, own, false);
}

static void approve(wild *w, const explain_target *of, const reason *r)
{
    if (str_starts(r->scope, STR("partition "))) {
        act(w, (fact_act){.act = ACT_APPROVE,
                          .partition = r->of[0],
                          .environment = str_of(of->environment)});
        return;
    }
    static const char *const people[] = {"bob", "cid", "dan", "eve"};
    for (int64_t i = r->have; i < r->limit; i++)
        act(w, (fact_act){.act = ACT_APPROVE,
                          .version = r->of[0],
                          .environment = str_of(of->environment),
                          .who = str_of(people[i])});
}

/* "policy p0, rule p0/resourceConcurrency/1" */
static void edit(wild *w, const reason *r)
{
    char kind[EXPLAIN_NAME];
    str rest = r->scope;
    check_msg(r->of_count == 1 && r->of[0].ptr[0] == 'p', "an edit of nobody");
    str_cut(&rest, '/');
    keep(kind, sizeof kind, str_cut(&rest, '/'));
    relax(w, r->of[0].ptr[1] - '0', kind, (size_t)(rest.ptr[0] - '0'));
}

/* One that the selectors of the rules above have nothing against. */
static void publish_good(wild *w, int c)
{
    w->versions[c] += w->versions[c] == 0;
    publish(w, c);
}

static void obey(void *context, const explain_target *of, const reason *r)
{
    wild *w = context;
    str target = str_of(of->target);
    switch (r->act) {
    case RELEASE_COMPLETE: obey_complete(w, of, r); return;
    case RELEASE_TIME:
        if (r->next_ms > w->until * 1000)
            w->until = (r->next_ms + 999) / 1000;
        return;
    case RELEASE_RESUME:
        act(w, (fact_act){.act = ACT_RESUME,
                          .change = r->of[0].ptr[0] == 'h' ? STR_EMPTY : r->of[0],
                          .target = r->of[0].ptr[0] == 'h' ? r->of[0] : STR_EMPTY});
        return;
    case RELEASE_APPROVE: approve(w, of, r); return;
    case RELEASE_RETRY:
        if (r->rule == REASON_QUARANTINED && r->next_ms != REASON_NEVER)
            return;            /* it will be: then it is asked for once more */
        w->any_version = true; /* a hook has its own idea of which one */
        act(w, (fact_act){.act = ACT_RETRY,
                          .change = r->rule == REASON_QUARANTINED ? STR_EMPTY : r->of[0],
                          .target = target});
        return;
    case RELEASE_RESET:
        check_msg(r->of_count == 1, "a reset of nobody");
        act(w, (fact_act){.act = ACT_RESET_BATCHES, .change = r->of[0]});
        return;
    case RELEASE_THAW: act(w, (fact_act){.act = ACT_THAW, .name = r->of[0]}); return;
    case RELEASE_EDIT: edit(w, r); return;
    case RELEASE_PUBLISH:
        for (size_t i = 0; i < r->of_count; i++)
            for (int c = 0; c < CHANGES; c++)
                if (str_eq(r->of[i], str_of(changes[c])))
                    publish_good(w, c);
        w->any_version = true;
        return;
    case RELEASE_LABEL:
    case RELEASE_UNTAINT:
    case RELEASE_UNCORDON:
    case RELEASE_CORDON:
    case RELEASE_ONLINE: break;
    }
    check_msg(false, "act %d of a release target", (int)r->act);
}

static bool has_rule(const wild *w, const char *kind)
{
    for (size_t p = 0; p < POLICIES; p++)
        for (size_t i = 0; i < RULES && w->rules[p][i]; i++)
            if (strstr(w->rules[p][i], kind))
                return true;
    return false;
}

static bool has_bracket(const wild *w)
{
    return has_rule(w, "deploymentBracket");
}

/* Of "v12". */
static long number_of(const char *tag)
{
    return *tag ? strtol(tag + 1, NULL, 10) : 0;
}

static bool starts(void *context, const explain_target *of)
{
    wild *w = context;
    size_t before = w->w.jobs.len;
    /* Which version a group brings is settled when it locks. Elsewhere it is the one that was asked
     * about, or a newer one that what was done has let in: who is complete in one environment may
     * let it into the next. */
    bool any_version = w->any_version || has_bracket(w);
    step(w);
    if (w->until > w->w.now) {
        w->w.now = w->until;
        step(w);
    }
    for (size_t i = before; i < w->w.jobs.len; i++) {
        const world_job *j = &w->w.jobs.at[i];
        if (getenv("SHOW"))
            fprintf(stderr, "    > %s %s on %s in %s at %lld s\n", j->deployment, j->version,
                    j->resource, j->environment, (long long)j->start);
        if (strcmp(j->deployment, of->change) == 0 && strcmp(j->resource, of->target) == 0 &&
            strcmp(j->environment, of->environment) == 0 &&
            /* What failed goes back before anything newer comes: that is its start then. */
            (any_version || j->role == ROLE_ROLLBACK ||
             number_of(j->version) >= number_of(of->wanted)))
            return true;
    }
    return false;
}

/* A member of a version group waits for others by its role. */
static bool is_role(const reason *r)
{
    return r->rule == REASON_BRACKET && r->act == RELEASE_COMPLETE &&
           str_starts(r->scope, STR("version group"));
}

static bool asks(const placement_view *view, const reasons *list)
{
    bool progression = false, slots = false;
    for (size_t i = 0; i < list->len; i++) {
        /* Taken away, those that a hook waits for would leave it nothing to do. */
        if (on_the_host(&list->at[i]) && list->at[i].act == RELEASE_COMPLETE &&
            !str_eq(view->change, STR("app")))
            return false;
        progression |= list->at[i].rule == REASON_PROGRESSION;
        slots |= list->at[i].rule == REASON_CONCURRENCY;
        /* Which partition it is to be in is for a person to say. */
        if (list->at[i].act == RELEASE_LABEL)
            return false;
    }
    /* Taking targets away from an environment gives their slots back. */
    return view->state != PLACEMENT_IN_FLIGHT && !(progression && slots);
}

/* Limits name all holders and all that are ahead, or all who avert a stop; of dependencies, one may
 * be enough. */
static bool each(const reason *r)
{
    return r->rule != REASON_STOPPED && r->rule != REASON_BUDGET && r->rule != REASON_BATCH &&
           r->rule != REASON_CONCURRENCY && r->rule != REASON_DEPENDENCY &&
           r->rule != REASON_ROLLOUT;
}

static bool lists(const reasons *list, reason_rule rule_)
{
    for (size_t i = 0; i < list->len; i++)
        if (list->at[i].rule == rule_)
            return true;
    return false;
}

static bool completes_on_the_host(const reasons *list)
{
    for (size_t i = 0; i < list->len; i++)
        if (on_the_host(&list->at[i]) && list->at[i].act == RELEASE_COMPLETE)
            return true;
    return false;
}

static bool publishes(const reasons *list)
{
    for (size_t i = 0; i < list->len; i++)
        if (list->at[i].act == RELEASE_PUBLISH)
            return true;
    return false;
}

static bool completes(const reasons *list)
{
    for (size_t i = 0; i < list->len; i++)
        if (list->at[i].act == RELEASE_COMPLETE)
            return true;
    return false;
}

static bool brings(const reasons *list)
{
    for (size_t i = 0; i < list->len; i++)
        if (explain_brings(&list->at[i]))
            return true;
    return false;
}

static size_t partition_rules(const wild *w)
{
    size_t count = 0;
    for (size_t p = 0; p < POLICIES; p++)
        for (size_t i = 0; i < RULES && w->rules[p][i]; i++)
            count += strstr(w->rules[p][i], "rolloutStrategy") != NULL;
    return count;
}

static bool waits(const reasons *list)
{
    for (size_t i = 0; i < list->len; i++)
        if (list->at[i].act == RELEASE_TIME)
            return true;
    return false;
}

static size_t retries(const reasons *list)
{
    size_t count = 0;
    for (size_t i = 0; i < list->len; i++)
        count += list->at[i].rule == REASON_FAILED || list->at[i].rule == REASON_RETRY;
    return count;
}

/* Who is a candidate of a pass, and who is unavailable by it, is settled when it is made. */
static bool of_partitions(const reason *r)
{
    return r->rule == REASON_PARTITION || r->rule == REASON_UNAVAILABLE ||
           r->rule == REASON_MAX_NEW || r->rule == REASON_SOAK ||
           (r->rule == REASON_APPROVAL && str_starts(r->scope, STR("partition ")));
}

/* What may come to an end when a version group locks: it takes the place of one that failed, with
 * its slot and what is unavailable by it, and what it brings is new work, which lifts a stop or a
 * halt that failures caused, and begins batches anew. */
static bool ends_with_lock(const reason *r)
{
    return r->rule == REASON_STOPPED || r->rule == REASON_BATCH ||
           (r->rule == REASON_HALTED && r->limit > 0) || r->rule == REASON_CONCURRENCY ||
           of_partitions(r);
}

typedef struct failed_holder {
    const reason *of;
    bool found;
} failed_holder;

static bool look_for_failed(void *context, const placement_view *view)
{
    failed_holder *is = context;
    is->found |= view->state == PLACEMENT_FAILED &&
                 explain_share(is->of->holders, is->of->holder_count, &view->target, 1);
    return !is->found;
}

/* Whether something has failed on one of those that hold the limit. */
static bool held_by_failed(wild *w, const reason *r)
{
    failed_holder is = {r, false};
    engine_placements(w->w.engine, look_for_failed, &is);
    return is.found;
}

/* Whether something else that is done here may do away with the reason, too. */
static bool single(void *context, const reasons *list, size_t index)
{
    const reason *r = &list->at[index];
    /* What is collected may join a group that has begun, which no pause holds up. */
    if (has_bracket(context) && (r->rule == REASON_FREEZE || r->rule == REASON_PAUSED) &&
        explain_exempt("joins"))
        return false;
    for (size_t i = 0; i < list->len; i++) {
        /* Who is taken away from the host, to complete it, takes its halt or pause along. */
        if (i != index && on_the_host(&list->at[i]) && r->act == RELEASE_RESUME &&
            explain_share(r->of, r->of_count, list->at[i].of, list->at[i].of_count) &&
            explain_exempt("taken-along"))
            return false;
    }
    /* Who is taken away from an environment leaves nothing to wait for there: turns, and what is
     * collected, are counted from the publication then. */
    bool counted =
        r->rule == REASON_ROLLOUT || (r->rule == REASON_BRACKET && r->act == RELEASE_TIME);
    /* And when the turn comes sooner, so may the window be open still. */
    counted |= r->rule == REASON_WINDOW && lists(list, REASON_ROLLOUT);
    if (lists(list, REASON_PROGRESSION) && counted && explain_exempt("from-then"))
        return false;
    /* So it is when what is published waits for that environment; and slots are given back. */
    if (has_rule(context, "environmentProgression") && publishes(list) &&
        (counted || r->rule == REASON_CONCURRENCY) && explain_exempt("published"))
        return false;
    /* A group that failed is superseded by the next one, which a retry may open. */
    if (lists(list, REASON_FAILED) && retries(list) > 1 && r->act == RELEASE_RETRY &&
        explain_exempt("superseded"))
        return false;
    /* Where an environment is left nobody, an older version that was approved may come first. */
    if (has_bracket(context) && lists(list, REASON_PROGRESSION) && r->rule == REASON_APPROVAL &&
        explain_exempt("older"))
        return false;
    /* Who is taken away from the host may have been the only one of the group that runs there: a
     * first deployment needs no window. And it takes its turn along. */
    if (has_bracket(context) && (r->rule == REASON_WINDOW || r->rule == REASON_ROLLOUT) &&
        completes_on_the_host(list) && explain_exempt("first"))
        return false;
    /* And nothing runs in a group that failed any more, nor is a new version of it awaited: the
     * next group takes its place. */
    if (completes_on_the_host(list) && has_bracket(context) && r->act == RELEASE_RETRY &&
        explain_exempt("not-awaited"))
        return false;
    /* Where two rules have partitions, others give back what one of them has released them for, and
     * have not begun, when the other does not reach them any more. */
    if (partition_rules(context) > 1 && of_partitions(r) && explain_exempt("two-rules"))
        return false;
    /* A newer version that comes in takes the place of the one that failed elsewhere, too, and with
     * it the slot: also one that whoever is completed lets into the next environment. */
    if (r->rule == REASON_CONCURRENCY && held_by_failed(context, r) &&
        (brings(list) || (has_rule(context, "environmentProgression") && completes(list))) &&
        explain_exempt("let-in-slot"))
        return false;
    /* Who is taken away, to complete it, has no turn any more. */
    for (size_t i = 0; r->rule == REASON_ROLLOUT && i < list->len; i++)
        if (list->at[i].act == RELEASE_COMPLETE &&
            explain_share(r->of, r->of_count, list->at[i].of, list->at[i].of_count) &&
            explain_exempt("own-turn"))
            return false;
    /* Also while time passes that is waited for. */
    const wild *w = context;
    return !(ends_with_lock(r) && w->collecting.len > 0 && waits(list)) ||
           !explain_exempt("meanwhile");
}

/* Whether a version group may lock while time passes for this one. */
static bool locks_by(const wild *w, const reason *r)
{
    return r->act == RELEASE_TIME && w->collecting.len > 0;
}

/* A version that comes in opens the next version group. That one takes the place of a group that
 * failed, and in it hooks run again, whatever became of them. */
static bool touches(void *context, const explain_target *t, const reason *r,
                    const explain_target *whose, const reason *other)
{
    str host = str_of(whose->target), change = str_of(whose->change);
    /* Whoever is completed may be what an environment lacked: that lets versions in, too. */
    bool lets_in = explain_brings(other) ||
                   (other->act == RELEASE_COMPLETE && has_rule(context, "environmentProgression"));
    if (r->rule == REASON_BRACKET && r->act == RELEASE_TIME && lets_in &&
        has_rule(context, "wait_for_all") && explain_exempt("collected"))
        return true; /* a version group may wait for it: it locks when all have one, or in time */
    if (r->rule == REASON_RETRY && explain_brings(other) &&
        (str_eq(change, r->of[0]) || other->rule == REASON_PROGRESSION) &&
        explain_exempt("let-in-newer"))
        return true; /* a newer version that comes in takes the place of the one that failed */
    if (ends_with_lock(r) && locks_by(context, other) && explain_exempt("locks"))
        return true;
    if (ends_with_lock(r) && on_the_host(other) && other->act == RELEASE_COMPLETE &&
        has_rule(context, "wait_for_all") && explain_exempt("not-awaited"))
        return true; /* what is taken away, to complete it, is not waited for: a group may lock */
    if (on_the_host(other) && other->act == RELEASE_COMPLETE && of_partitions(r) &&
        explain_has(other, str_of(t->change)) && explain_exempt("nobody"))
        return true; /* a partition in which nobody is left of the deployment holds nobody up */
    if (has_bracket(context) && explain_brings(other) && r->rule == REASON_CONCURRENCY &&
        held_by_failed(context, r) && explain_exempt("opens-slot"))
        return true; /* a failed resource keeps its slot until its group is superseded by one that a
                        version opens, and no longer if that needs none of the rule */
    if (other->act == RELEASE_RETRY && r->rule == REASON_CONCURRENCY &&
        explain_share(r->holders, r->holder_count, &host, 1) && explain_exempt("retry-slot"))
        return true; /* or by one that the retry of something else opens there; and a slot is not
                        kept for a place in a batch, which who is retried may need */
    if (other->act == RELEASE_RETRY && has_bracket(context) && ends_with_lock(r) &&
        explain_exempt("retry-locks"))
        return true; /* the group that it opens may bring newer versions, also of hooks */
    if (other->act == RELEASE_PUBLISH && has_rule(context, "deploymentDependency") &&
        of_partitions(r) && explain_exempt("ahead"))
        return true; /* who is ahead in a pass waits for another one on its resource then */
    return has_bracket(context) && explain_brings(other) &&
           (r->rule == REASON_RETRY || r->rule == REASON_FAILED ||
            of_partitions(r)) && /* what failed is not unavailable by it any more */
           explain_exempt("opens");
}

/* Of two version groups on one resource that one limit let through together one comes first. */
static bool comes_first(const reason *r)
{
    return r->rule == REASON_BRACKET && r->act == RELEASE_COMPLETE && !is_role(r);
}

static bool limited(const reasons *list)
{
    for (size_t i = 0; i < list->len; i++)
        if (list->at[i].rule == REASON_CONCURRENCY || list->at[i].rule == REASON_BATCH ||
            list->at[i].rule == REASON_BUDGET || of_partitions(&list->at[i]))
            return true;
    return false;
}

/* Which jobs a version group has is settled when it locks, and what a new version needs when it is
 * there. And whom one act released, and whom one limit let through, want the same places. */
static bool again(void *context, size_t round, const reasons *done, const reasons *list)
{
    wild *w = context;
    bool published = publishes(done), taken_up = false;
    for (size_t i = 0; i < done->len; i++) {
        taken_up |= done->at[i].rule == REASON_SKIPPED || done->at[i].rule == REASON_ROLLED_BACK;
    }
    /* A group begins to collect, and locks, anew with each version that had to be published, and
     * with one that is taken up again. */
    w->published += published || taken_up;
    if ((published && explain_exempt("again-published")) ||
        (has_bracket(context) && round <= BRACKET_ROUNDS + w->published &&
         explain_exempt("again-locks")))
        return true;
    /* Who is taken away from an environment, to complete it, takes along that it had succeeded, and
     * another version may come into the next: what that one needs is seen when it is wanted. */
    if (completes(done) && has_rule(w, "environmentProgression") && round == 1 &&
        explain_exempt("again-let-in"))
        return true;
    /* Who holds a slot without moving is quarantined while time passes, as was said, and then is to
     * be retried once more. */
    if (lists(done, REASON_QUARANTINED) && explain_exempt("again-quarantined"))
        return true;
    /* When the job under its slot ends nobody knows: the slot's time is counted from then. */
    if (waits(done) && completes_on_the_host(done) && lists(list, REASON_QUARANTINED) &&
        explain_exempt("again-held"))
        return true;
    for (size_t i = 0; i < list->len; i++)
        if (list->at[i].rule != REASON_CONCURRENCY && list->at[i].rule != REASON_BATCH &&
            list->at[i].rule != REASON_BUDGET && list->at[i].rule != REASON_DEPENDENCY &&
            !of_partitions(&list->at[i]) &&
            /* When a soak is over that nobody could foresee, a window may be closed, and a slot
             * lost under which nothing moved. */
            !((list->at[i].act == RELEASE_TIME || list->at[i].rule == REASON_QUARANTINED) &&
              (lists(list, REASON_SOAK) || lists(done, REASON_SOAK))) &&
            !(comes_first(&list->at[i]) && limited(done)))
            return false;
    return true;
}

static void test_reasons_are_true(void **state)
{
    (void)state;
    static const explain_fleet how = {.stuck = stuck,
                                      .free = wild_free,
                                      .engine = wild_engine,
                                      .asks = asks,
                                      .each = each,
                                      .single = single,
                                      .touches = touches,
                                      .again = again,
                                      .obey = obey,
                                      .starts = starts};
    explain_counts counts = {0};
    explain_fleets(&how, FLEETS, &counts);
    if (!getenv("ONLY") && !getenv("FLEETS"))
        assert_true(counts.asked > FLEETS);
}

static void test_asking_without_memory(void **state)
{
    (void)state;
    bool others = getenv("SEED") || getenv("ONLY"); /* these fleets are the same every time */
    for (uint64_t i = 0; !others && i < STARVED; i++) {
        wild *w = stuck(EXPLAIN_SEED + i);
        explain_starved(w->w.engine, w->w.now * 1000);
        wild_free(w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_reasons_are_true),
                                       cmocka_unit_test(test_asking_without_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
