/* SPDX-License-Identifier: Apache-2.0 */
/* A small model checker for targets that are under several limits at once: four resources, slots
 * of all of them, slots of a zone, and either compartments or the limit of a partition, all over
 * the same jobs. Every order in which jobs succeed and fail, time passes and what failed is tried
 * again, the policy is tightened and loosened, a newer version is published, resources change their
 * zone, hosts take and give back slots of their own, and people retry and skip. After each step of
 * each order no limit is exceeded by what was started in it; and whatever comes to rest is done or
 * says why it is not. (Nodes, cordons and drains: test_slow_claims.c.)
 *
 * Who holds a limit is counted here from what was decided, not asked of the engine. */
#include "support/check.h"
#include "support/documents.h"
#include "support/explore.h"

#define API "apiVersion: drover.dev/v1alpha1\n"
#define HOSTS 4
#define VERSIONS 3
#define START_MS INT64_C(1772352000000) /* 2026-03-01T08:00:00Z */
#define NO_LIMIT INT64_MAX

/* The limits of a policy, as the document has them. */
typedef struct limits {
    int64_t all, zone;                /* slots */
    int64_t compartment_a, otherwise; /* ceilings of the two compartments */
    int64_t unavailable;              /* of the partition */
} limits;

/* Two kinds of policy, each loose and tight. */
#define KINDS 2
static const limits limits_of[KINDS][2] = {
    {{.all = 3, .zone = NO_LIMIT, .compartment_a = 2, .otherwise = 1, .unavailable = NO_LIMIT},
     {.all = 2, .zone = NO_LIMIT, .compartment_a = 1, .otherwise = 1, .unavailable = NO_LIMIT}},
    {{.all = 3, .zone = 1, .compartment_a = NO_LIMIT, .otherwise = NO_LIMIT, .unavailable = 2},
     {.all = 2, .zone = 1, .compartment_a = NO_LIMIT, .otherwise = NO_LIMIT, .unavailable = 1}},
};

#define POLICY API "kind: RolloutPolicy\nmetadata: {name: p}\nspec:\n  selector: 'true'\n  rules:\n"
#define RETRY "  - retry: {maxRetries: 1, backoffSeconds: 60}\n"
#define ALL(n)                                                                                     \
    "  - resourceConcurrency: {groupSelector: 'true', limitType: count, limitValue: " #n "}\n"
#define ZONE(n)                                                                                    \
    "  - resourceConcurrency: {groupSelector: 'resource.metadata[\"zone\"] == \"a\"', limitType: " \
    "count, limitValue: " #n "}\n"
#define COMPARTMENTS(a, otherwise)                                                                 \
    "  - deploymentPolicy: {default: {budget: {count: " #otherwise "}, strategy: {fixed: "         \
    "{initialBatch: 2}}}, compartments: [{name: a, selector: {matchLabels: {zone: a}}, budget: "   \
    "{count: " #a "}, strategy: {exponential: {initialBatch: 1, failureThreshold: 2}}}]}\n"
#define STRATEGY(n) "  - rolloutStrategy: {maxUnavailable: " #n "}\n"
#define HOST(n, zone)                                                                              \
    API "kind: Resource\nmetadata: {name: h" #n ", labels: {zone: " #zone "}}\n"                   \
        "spec: {kind: host, version: v1}\n"                                                        \
        "status: {releases: [{deployment: app, version: v0}]}\n---\n"
#define VERSION(n)                                                                                 \
    API "kind: Version\nmetadata: {name: app-v" #n ", creationTimestamp: "                         \
        "'2026-03-01T07:0" #n ":00Z'}\nspec: {deployment: app, tag: v" #n                          \
        ", status: ready}\n---\n"

#define OBJECT_POLICY 2                             /* by kind, loose before tight */
#define OBJECT_VERSION (OBJECT_POLICY + 2 * KINDS)  /* v1, v2, ... */
#define OBJECT_HOST (OBJECT_VERSION + VERSIONS - 1) /* zone a before b */

/* clang-format off */
static const char documents_text[] =
    API "kind: Environment\nmetadata: {name: prod}\nspec: {resourceSelector: 'true'}\n---\n"
    API "kind: Deployment\nmetadata: {name: app}\n"
        "spec: {resourceSelector: 'true', job: {pull: {}}}\n---\n"
    POLICY ALL(3) COMPARTMENTS(2, 1) RETRY "---\n"
    POLICY ALL(2) COMPARTMENTS(1, 1) RETRY "---\n"
    POLICY ALL(3) ZONE(1) STRATEGY(2) RETRY "---\n"
    POLICY ALL(2) ZONE(1) STRATEGY(1) RETRY "---\n"
    VERSION(1) VERSION(2)
    HOST(0, a) HOST(0, b) HOST(1, a) HOST(1, b) HOST(2, a) HOST(2, b) HOST(3, a) HOST(3, b);
/* clang-format on */

/* ---- the world outside ---- */

#define PLACE_A 1
#define PLACE_DEFAULT 2
#define PLACE_UNKNOWN 3 /* it moved before it began, and may have been picked where it was */
#define TRIES 2         /* of the policies' retry rule */

/* Everything in it is compared bytewise, so it is always zeroed first. */
typedef struct world {
    int64_t now_ms, next_ms; /* and when the engine wants to be asked again */
    int64_t jobs[HOSTS];     /* numbers of those that run; 0: none does */
    uint8_t kind, tight;     /* the policy */
    uint8_t version;         /* the newest one, from 1 */
    bool zone_a[HOSTS];
    bool zone_slot[HOSTS]; /* it has one of the zone's: what runs keeps it wherever it goes */
    uint8_t place[HOSTS];  /* the compartment it is in flight in, from 1; 0: in none */
    bool moved[HOSTS];
    uint8_t tries[HOSTS]; /* failed jobs since it was started afresh */
    uint8_t job_version[HOSTS];
    bool failed[HOSTS]; /* its last job, and nothing newer was wished for since */
    bool broken[HOSTS]; /* its last job, whatever was wished for since */
    bool skipped[HOSTS];
    bool claims[HOSTS];      /* the host asked for slots and has not given them back */
    uint8_t failures, edits; /* how often it happened on this path; an edit is anything unusual */
} world;

/* What may go on for ever is bounded. */
typedef struct bounds {
    uint8_t kind;
    int failures, edits;
} bounds;

typedef struct checker {
    loaded documents;
    explorer x;
    bounds most;
} checker;

static str host_name(size_t h)
{
    static const str names[HOSTS] = {STR("h0"), STR("h1"), STR("h2"), STR("h3")};
    return names[h];
}

static size_t host_number(str name)
{
    check_msg(name.len == 2 && name.ptr[1] - '0' < HOSTS, "no such host");
    return (size_t)(name.ptr[1] - '0');
}

static const object *object_at(const checker *c, size_t index)
{
    return &c->documents.objects->at[index];
}

static fact policy_fact(const checker *c, const world *w)
{
    return (fact){.kind = FACT_DOCUMENT,
                  .document = object_at(c, OBJECT_POLICY + 2u * w->kind + w->tight)};
}

static fact version_fact(const checker *c, size_t number)
{
    return (fact){.kind = FACT_DOCUMENT, .document = object_at(c, OBJECT_VERSION + number - 1)};
}

static fact host_fact(const checker *c, const world *w, size_t h)
{
    return (fact){.kind = FACT_TARGET,
                  .target = {.kind = TARGET_RESOURCE,
                             .name = host_name(h),
                             .document = object_at(c, OBJECT_HOST + 2 * h + !w->zone_a[h])}};
}

static void tell_world(const world *w)
{
    print_error("%s\n", explore_path);
    print_error("policy %d %s, version %d, failures %d, edits %d\n", w->kind,
                w->tight ? "tight" : "loose", w->version, w->failures, w->edits);
    for (size_t h = 0; h < HOSTS; h++)
        print_error("%s: zone %c%s%s%s%s%s\n", host_name(h).ptr, w->zone_a[h] ? 'a' : 'b',
                    w->jobs[h] ? " running" : "", w->failed[h] ? " failed" : "",
                    w->broken[h] ? " broken" : "", w->skipped[h] ? " skipped" : "",
                    w->claims[h] ? " claims" : "");
}

/* ---- one step ---- */

/* Who certainly holds what: a slot, a place in a compartment, or is unavailable. */
typedef struct count {
    int64_t all, zone, compartment_a, otherwise, unavailable;
} count;

static count count_holders(const world *w)
{
    count n = {0};
    for (size_t h = 0; h < HOSTS; h++) {
        bool runs = w->jobs[h] != 0;
        bool slot = runs || w->failed[h];
        n.all += slot;
        n.zone += slot && w->zone_slot[h];
        n.compartment_a += w->place[h] == PLACE_A;
        n.otherwise += w->place[h] == PLACE_DEFAULT;
        n.unavailable += runs || w->broken[h];
    }
    return n;
}

static void over(const world *w, const char *what, int64_t have, int64_t limit)
{
    if (have <= limit)
        return;
    tell_world(w);
    fail_msg("%s: %" PRId64 " hold %" PRId64 " places", what, have, limit);
}

/* What was started: of whom, and whether it was well before. */
typedef struct started {
    bool any, zone, in_a, otherwise, healthy;
} started;

static void take_decisions(void *context, const decision_list *out)
{
    world *w = context;
    started s = {0};
    for (size_t i = 0; i < out->len; i++) {
        const decision *d = &out->at[i];
        if (d->kind != DECISION_JOB)
            continue;
        size_t h = host_number(d->target);
        check_msg(w->jobs[h] == 0, "%.*s runs two jobs", STR_ARG(d->target));
        bool again = w->place[h] != 0; /* in its claim: whoever holds a place always passes */
        if (!again)
            w->place[h] = w->moved[h] ? PLACE_UNKNOWN : w->zone_a[h] ? PLACE_A : PLACE_DEFAULT;
        w->moved[h] = false;
        bool has_slot = w->failed[h] || w->claims[h];
        s.any |= !has_slot;
        s.zone |= !has_slot && w->zone_a[h];
        s.in_a |= !again && w->place[h] == PLACE_A;
        s.otherwise |= !again && w->place[h] == PLACE_DEFAULT;
        s.healthy |= !w->broken[h];
        w->jobs[h] = d->number;
        w->job_version[h] = w->version;
        w->zone_slot[h] = w->zone_a[h];
        w->failed[h] = w->broken[h] = false;
    }
    const limits *most = &limits_of[w->kind][w->tight];
    count n = count_holders(w);
    if (s.any)
        over(w, "slots", n.all, most->all);
    if (s.zone)
        over(w, "slots of the zone", n.zone, most->zone);
    if (s.in_a)
        over(w, "compartment a", n.compartment_a, most->compartment_a);
    if (s.otherwise)
        over(w, "compartment __default__", n.otherwise, most->otherwise);
    if (s.healthy)
        over(w, "unavailable", n.unavailable, most->unavailable);
}

static engine *rebuild(checker *c, const explore_state *s)
{
    const world *w = s->world;
    err error;
    engine *e = engine_new(&(engine_settings){.start_ms = START_MS}, &error);
    assert_non_null(e);
    fact facts[3 + VERSIONS + HOSTS];
    size_t count_ = 0;
    for (size_t i = 0; i < OBJECT_POLICY; i++)
        facts[count_++] = (fact){.kind = FACT_DOCUMENT, .document = object_at(c, i)};
    for (size_t h = 0; h < HOSTS; h++)
        facts[count_++] = host_fact(c, w, h);
    facts[count_++] = policy_fact(c, w);
    for (size_t v = 1; v <= w->version; v++)
        facts[count_++] = version_fact(c, v);
    check_msg(engine_take(e, facts, count_, w->now_ms), "no memory");
    check_msg(engine_restore(e, (str){s->saved, s->saved_len}, &error), "%s", error.text);
    return e;
}

/* ---- what comes to rest ---- */

typedef struct rest {
    const world *w;
    const engine *e;
    arena *a;
    bool waits[HOSTS];
    reasons why[HOSTS];
} rest;

/* Whether a reason stands for something that happened to the host, or to who holds its place, or
 * who holds that has such a reason. */
static bool is_rooted(const rest *all, size_t h, const reason *r, const bool known[HOSTS])
{
    const world *w = all->w;
    if (r->rule == REASON_RETRY)
        return w->failed[h];
    if (r->rule == REASON_SKIPPED)
        return w->skipped[h];
    if (r->rule == REASON_STOPPED)
        return w->failures > 0;
    for (size_t i = 0; i < r->holder_count; i++) {
        size_t other = host_number(r->holders[i]);
        if (w->broken[other] || w->claims[other] || known[other])
            return true;
    }
    return false;
}

static bool collect(void *context, const placement_view *v)
{
    rest *all = context;
    size_t h = host_number(v->target);
    all->waits[h] = v->state != PLACEMENT_DONE;
    assert_true(!all->waits[h] || engine_reasons(all->e, v->id, all->a, &all->why[h]));
    return true;
}

static void complain(const rest *all, size_t h)
{
    tell_world(all->w);
    for (size_t i = 0; i < all->why[h].len; i++)
        print_error("%.*s: %.*s\n", STR_ARG(reason_rule_name(all->why[h].at[i].rule)),
                    STR_ARG(reason_text(all->a, &all->why[h].at[i])));
    fail_msg("%s is not done, and nothing says why", host_name(h).ptr);
}

/* Who is not done says why; and when all is over, why it never will be by itself. */
static void look_at_rest(checker *c, const explore_state *s, bool over_)
{
    engine *e = rebuild(c, s);
    rest all = {.w = s->world, .e = e, .a = arena_new(0)};
    bool rooted[HOSTS] = {0};
    explore_event(s, "rest", STR_EMPTY);
    assert_true(engine_placements(e, collect, &all));
    for (size_t round = 0; round < HOSTS; round++)
        for (size_t h = 0; h < HOSTS; h++)
            for (size_t i = 0; i < all.why[h].len; i++)
                rooted[h] = rooted[h] || is_rooted(&all, h, &all.why[h].at[i], rooted);
    for (size_t h = 0; h < HOSTS; h++)
        if (all.waits[h] && (all.why[h].len == 0 || (over_ && !rooted[h])))
            complain(&all, h);
    c->x.ends += over_;
    arena_free(all.a);
    engine_free(e);
}

/* ---- all that can happen next ---- */

static void try_event(checker *c, const explore_state *s, const world *after, const fact *event)
{
    world w = *after;
    engine *e = rebuild(c, s);
    explore_settle(&c->x, e, event, w.now_ms, &w);
    w.next_ms = engine_next_ms(e);
    explore_reach(&c->x, e, &w);
    engine_free(e);
}

/* True if there is a job that can end. */
static bool jobs_end(checker *c, const explore_state *s)
{
    bool any = false;
    for (size_t h = 0; h < HOSTS; h++) {
        world w = *(const world *)s->world;
        int64_t number = w.jobs[h];
        if (number == 0)
            continue;
        any = true;
        w.jobs[h] = 0;
        w.zone_slot[h] &= w.zone_a[h];
        fact ended = {.kind = FACT_JOB,
                      .job = {.deployment = STR("app"),
                              .environment = STR("prod"),
                              .resource = host_name(h),
                              .job = number}};
        uint8_t where = w.place[h];
        bool newer = w.job_version[h] != w.version; /* then it goes on with that in its claim */
        w.place[h] = newer ? where : 0;
        w.tries[h] = 0;
        explore_event(s, "success", host_name(h));
        try_event(c, s, &w, &ended);
        if (w.failures >= c->most.failures)
            continue;
        w.failures++;
        w.failed[h] = w.broken[h] = true;
        w.tries[h] = newer ? 0 : (uint8_t)(((const world *)s->world)->tries[h] + 1);
        w.place[h] = w.tries[h] < TRIES ? where : 0;
        ended.job.outcome = OUTCOME_FAILED;
        ended.job.reason = STR("exit 1");
        explore_event(s, "failure", host_name(h));
        try_event(c, s, &w, &ended);
    }
    return any;
}

/* Time passes up to the next moment at which the engine wants to be asked. */
static bool time_passes(checker *c, const explore_state *s)
{
    world w = *(const world *)s->world;
    if (w.next_ms == REASON_NEVER)
        return false;
    w.now_ms = w.next_ms > w.now_ms ? w.next_ms : w.now_ms;
    explore_event(s, "time", STR_EMPTY);
    try_event(c, s, &w, NULL);
    return true;
}

static void edit_policy(checker *c, const explore_state *s)
{
    world w = *(const world *)s->world;
    w.edits++;
    w.tight = !w.tight;
    fact edited = policy_fact(c, &w);
    explore_event(s, "policy", STR_EMPTY);
    try_event(c, s, &w, &edited);
}

/* Whoever failed before gets something else. */
static void publish(checker *c, const explore_state *s)
{
    world w = *(const world *)s->world;
    if (w.version + 1 >= VERSIONS)
        return;
    w.edits++;
    w.version++;
    for (size_t h = 0; h < HOSTS; h++) {
        w.failed[h] = w.skipped[h] = false;
        w.tries[h] = 0;
    }
    fact published = version_fact(c, w.version);
    explore_event(s, "publish", STR_EMPTY);
    try_event(c, s, &w, &published);
}

static void act(checker *c, const explore_state *s, const world *after, fact_act act_)
{
    explore_event(s,
                  act_.act == ACT_CLAIM_SLOT  ? "claim"
                  : act_.act == ACT_FREE_SLOT ? "free"
                  : act_.act == ACT_RETRY     ? "retry"
                                              : "skip",
                  act_.target);
    try_event(c, s, after, &(fact){.kind = FACT_ACT, .act = act_});
}

static void change_hosts(checker *c, const explore_state *s)
{
    for (size_t h = 0; h < HOSTS; h++) {
        world w = *(const world *)s->world;
        w.edits++;
        w.zone_a[h] = !w.zone_a[h];
        bool had = w.zone_slot[h], moved = w.moved[h];
        w.moved[h] |= w.place[h] == 0;
        w.zone_slot[h] &= w.zone_a[h] || w.jobs[h] != 0;
        fact relabelled = host_fact(c, &w, h);
        explore_event(s, "relabel", host_name(h));
        try_event(c, s, &w, &relabelled);
        w.zone_a[h] = !w.zone_a[h];
        w.zone_slot[h] = had;
        w.moved[h] = moved;
        w.claims[h] = !w.claims[h];
        act(c, s, &w,
            (fact_act){.act = w.claims[h] ? ACT_CLAIM_SLOT : ACT_FREE_SLOT,
                       .target = host_name(h)});
        w.claims[h] = !w.claims[h];
        if (!w.failed[h])
            continue;
        uint8_t tries = w.tries[h];
        w.tries[h] = 0; /* they are counted anew */
        act(c, s, &w, (fact_act){.act = ACT_RETRY, .change = STR("app"), .target = host_name(h)});
        w.tries[h] = tries;
        w.failed[h] = w.broken[h] = false; /* what is not wished for any more holds nothing */
        w.skipped[h] = true;
        w.place[h] = 0;
        act(c, s, &w, (fact_act){.act = ACT_SKIP, .change = STR("app"), .target = host_name(h)});
    }
}

static void go_on(checker *c, const explore_state *s)
{
    const world *w = s->world;
    bool moves = jobs_end(c, s);
    moves |= time_passes(c, s);
    look_at_rest(c, s, !moves);
    if (w->edits >= c->most.edits)
        return;
    edit_policy(c, s);
    publish(c, s);
    change_hosts(c, s);
}

static void check_claims(bounds most, size_t states_min)
{
    checker c = {.documents = load_text("claims.yaml", str_of(documents_text)),
                 .x = explore_new(sizeof(world), take_decisions),
                 .most = most};
    assert_true(c.documents.good);
    world w;
    memset(&w, 0, sizeof w);
    snprintf(explore_path, sizeof explore_path, "start");
    w.now_ms = START_MS;
    w.kind = most.kind;
    w.version = 1;
    for (size_t h = 0; h < HOSTS; h++)
        w.zone_a[h] = h < 3;
    explore_state s = {.world = &w};
    engine *e = rebuild(&c, &s);
    explore_settle(&c.x, e, NULL, w.now_ms, &w);
    w.next_ms = engine_next_ms(e);
    explore_reach(&c.x, e, &w);
    engine_free(e);
    while (explore_next(&c.x, &s)) {
        go_on(&c, &s);
        explore_drop(&s);
    }
    print_message("# %zu states, %" PRIu64 " events, %" PRIu64 " ends\n", c.x.seen.len, c.x.events,
                  c.x.ends);
    check_msg(c.x.seen.len >= states_min, "only %zu states were reached", c.x.seen.len);
    check_msg(c.x.ends > 0, "nothing ever ended");
    explore_done(&c.x);
    loaded_free(&c.documents);
}

/* The sanitizers make each step several times dearer: something unusual less. */
#if defined(__SANITIZE_ADDRESS__)
#define LESS 1
#else
#define LESS 0
#endif

static void slots_and_compartments_hold_together(void **unused)
{
    (void)unused;
    check_claims((bounds){.kind = 0, .failures = 2 - LESS, .edits = 1}, 500);
}

static void two_kinds_of_slots_and_a_partition_hold_together(void **unused)
{
    (void)unused;
    check_claims((bounds){.kind = 1, .failures = 1, .edits = 2 - LESS}, 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slots_and_compartments_hold_together),
        cmocka_unit_test(two_kinds_of_slots_and_a_partition_hold_together),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
