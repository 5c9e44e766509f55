/* SPDX-License-Identifier: Apache-2.0 */
/* A small model checker for the claims of nodes: every order in which stages can succeed and fail,
 * cordons become visible and drains end, time passes and what failed is tried again, a policy can
 * be tightened and loosened, packages edited, nodes relabelled, ignored and deleted, and a person
 * can retry, on four nodes under two limits. After each step of each order the limits hold; and
 * whatever comes to rest is done or says why it is not.
 *
 * (That a target is under two limits at once is test_slow_claims_releases.c.)
 *
 * To try another order the engine is rebuilt from its saved text, so restoring is checked
 * everywhere as well. */
#include "support/check.h"
#include "support/documents.h"
#include "support/explore.h"

#define NODES 4
#define GROUPS 2
#define RUNS_MAX 8
#define TEXT_BYTES 24
#define START_MS INT64_C(1000)

static const char *const group_names[GROUPS] = {"prod", "__default__"};

/* The two policies: the second is tighter. The default compartment takes one node at a time in
 * both. */
static const int64_t limits[2][GROUPS] = {{2, 1}, {1, 1}};

static const char documents_text[] =
    "apiVersion: skyhook.nvidia.com/v1alpha1\n"
    "kind: DeploymentPolicy\n"
    "metadata: {name: p}\n"
    "spec:\n"
    "  default: {budget: {count: 1}, strategy: {fixed: {initialBatch: 2}}}\n"
    "  compartments:\n"
    "  - {name: prod, selector: {matchLabels: {env: prod}}, budget: {count: 2},\n"
    "     strategy: {exponential: {initialBatch: 1, failureThreshold: 2}}}\n"
    "---\n"
    "apiVersion: skyhook.nvidia.com/v1alpha1\n"
    "kind: DeploymentPolicy\n"
    "metadata: {name: p}\n"
    "spec:\n"
    "  default: {budget: {count: 1}, strategy: {fixed: {initialBatch: 2}}}\n"
    "  compartments:\n"
    "  - {name: prod, selector: {matchLabels: {env: prod}}, budget: {count: 1},\n"
    "     strategy: {exponential: {initialBatch: 1, failureThreshold: 2}}}\n"
    "---\n"
    "apiVersion: skyhook.nvidia.com/v1alpha1\n"
    "kind: Skyhook\n"
    "metadata: {name: s}\n"
    "spec:\n"
    "  deploymentPolicy: p\n"
    "  packages: {os: {version: 1.0.0, image: r/os, interrupt: {type: noop}}}\n"
    "---\n"
    "apiVersion: skyhook.nvidia.com/v1alpha1\n"
    "kind: Skyhook\n"
    "metadata: {name: s, generation: 2}\n"
    "spec:\n"
    "  deploymentPolicy: p\n"
    "  packages: {os: {version: 2.0.0, image: r/os, interrupt: {type: noop}}}\n"
    "---\n"
    "apiVersion: skyhook.nvidia.com/v1alpha1\n"
    "kind: Skyhook\n"
    "metadata: {name: s}\n"
    "spec:\n"
    "  deploymentPolicy: p\n"
    "  packages: {os: {version: 1.0.0, image: r/os}}\n"
    "---\n"
    "apiVersion: skyhook.nvidia.com/v1alpha1\n"
    "kind: Skyhook\n"
    "metadata: {name: s, generation: 2}\n"
    "spec:\n"
    "  deploymentPolicy: p\n"
    "  packages: {os: {version: 2.0.0, image: r/os}}\n";

/* ---- the world outside ---- */

typedef struct run {
    char stage[TEXT_BYTES];
    char version[TEXT_BYTES];
    int64_t attempt;
    int8_t node;
} run;

#define CORDON_CHANGES(X) X(NONE, "") X(CORDON, "cordon") X(UNCORDON, "uncordon")
typedef enum cordon_change {
#define X(kind, text) ASKED_##kind,
    CORDON_CHANGES(X)
#undef X
} cordon_change;

/* Everything in it is compared bytewise, so it is always zeroed first. */
typedef struct world {
    int64_t now_ms, next_ms; /* and when the engine wants to be asked again */
    run runs[RUNS_MAX];      /* stages that were begun and have not ended, by node */
    uint8_t run_count;
    uint8_t policy, packages; /* which document is in force */
    bool gone[NODES], prod[NODES], ignored[NODES];
    bool unschedulable[NODES]; /* as the node shows it */
    uint8_t asked[NODES];      /* cordon_change: decided, and not to be seen yet */
    bool draining[NODES];
    int8_t holds[NODES]; /* the group whose limit it holds, -1: none */
    bool failed[NODES];
    uint8_t failures, edits; /* how often it happened on this path; an edit is anything unusual */
} world;

/* What may go on for ever is bounded. */
typedef struct bounds {
    bool interrupts; /* nodes are cordoned and drained, and a failed one keeps its place */
    int failures, edits;
    int retries;      /* automatic ones of a stage */
    bool only_policy; /* nodes and packages stay as they are: only the policy is edited */
} bounds;

typedef struct checker {
    loaded documents;
    explorer x;
    bounds most;
} checker;

static str node_name(size_t n)
{
    static const str names[NODES] = {STR("n0"), STR("n1"), STR("n2"), STR("n3")};
    return names[n];
}

static fact node_fact(const world *w, size_t n)
{
    static const label prod[] = {{STR("env"), STR("prod")},
                                 {STR("skyhook.nvidia.com/ignore"), STR("true")}};
    static const label test[] = {{STR("env"), STR("test")},
                                 {STR("skyhook.nvidia.com/ignore"), STR("true")}};
    return (fact){.kind = w->gone[n] ? FACT_TARGET_GONE : FACT_TARGET,
                  .target = {.kind = TARGET_NODE,
                             .name = node_name(n),
                             .uid = node_name(n),
                             .labels = {w->prod[n] ? prod : test, w->ignored[n] ? 2 : 1},
                             .unschedulable = w->unschedulable[n]}};
}

static const object *policy_document(const checker *c, const world *w)
{
    return &c->documents.objects->at[w->policy];
}

static const object *skyhook_document(const checker *c, const world *w)
{
    return &c->documents.objects->at[(c->most.interrupts ? 2 : 4) + w->packages];
}

/* ---- one step ---- */

static size_t node_number(str name)
{
    for (size_t n = 0; n < NODES; n++)
        if (str_eq(node_name(n), name))
            return n;
    fail_msg("no such node");
    return 0;
}

static int8_t group_number(str name)
{
    for (int8_t g = 0; g < GROUPS; g++)
        if (str_eq(str_of(group_names[g]), name))
            return g;
    fail_msg("no such group");
    return -1;
}

/* Kept by node: whichever came first, it is the same state. */
static void begin_run(world *w, const decision *d)
{
    assert_true(w->run_count < RUNS_MAX);
    run r;
    memset(&r, 0, sizeof r);
    snprintf(r.stage, sizeof r.stage, "%.*s", STR_ARG(d->stage));
    snprintf(r.version, sizeof r.version, "%.*s", STR_ARG(d->version));
    r.attempt = d->number;
    r.node = (int8_t)node_number(d->target);
    size_t at = w->run_count++;
    for (; at > 0 && w->runs[at - 1].node > r.node; at--)
        w->runs[at] = w->runs[at - 1];
    w->runs[at] = r;
}

static void remove_run(world *w, size_t at)
{
    w->run_count--;
    memmove(&w->runs[at], &w->runs[at + 1], (w->run_count - at) * sizeof w->runs[0]);
    memset(&w->runs[w->run_count], 0, sizeof w->runs[0]);
}

/* Out of service, or about to be: who is given back counts no longer. */
static bool is_cordoned(const world *w, size_t n)
{
    return w->asked[n] == ASKED_NONE ? w->unschedulable[n] : w->asked[n] == ASKED_CORDON;
}

/* In flight, or failed and still out of service. */
static int64_t holders(const world *w, int8_t group)
{
    int64_t n = 0;
    for (size_t i = 0; i < NODES; i++)
        n += !w->gone[i] && w->holds[i] == group && (!w->failed[i] || is_cordoned(w, i));
    return n;
}

/* Fresh again after an edit, and still out of service. */
static int64_t left_cordoned(const world *w, int8_t group)
{
    int64_t n = 0;
    for (size_t i = 0; i < NODES; i++)
        n += !w->gone[i] && !w->ignored[i] && w->holds[i] < 0 && is_cordoned(w, i) &&
             w->prod[i] == (group == 0);
    return n;
}

static void tell_world(const world *w)
{
    print_error("%s\n", explore_path);
    print_error("policy %d, packages %d, failures %d, edits %d\n", w->policy, w->packages,
                w->failures, w->edits);
    for (size_t n = 0; n < NODES; n++)
        print_error("%s: holds %d%s%s%s%s%s\n", node_name(n).ptr, w->holds[n],
                    w->gone[n] ? " gone" : "", w->prod[n] ? " prod" : "",
                    w->ignored[n] ? " ignored" : "", is_cordoned(w, n) ? " cordoned" : "",
                    w->failed[n] ? " failed" : "");
}

typedef struct started {
    bool any[GROUPS];
    bool disturbed[GROUPS]; /* somebody was started who was in service until now */
} started;

static void take_decision(world *w, const decision *d, started *s)
{
    size_t n = d->target.len > 0 ? node_number(d->target) : 0;
    if (d->kind == DECISION_START) {
        w->holds[n] = group_number(d->group);
        w->failed[n] = false;
        s->any[w->holds[n]] = true;
        s->disturbed[w->holds[n]] |= !is_cordoned(w, n);
    } else if (d->kind == DECISION_RELEASE) {
        w->failed[n] = d->failed;
        if (!d->failed)
            w->holds[n] = -1;
    } else if (d->kind == DECISION_RUN) {
        check_msg(w->holds[n] >= 0, "%.*s runs without a claim", STR_ARG(d->target));
        begin_run(w, d);
    } else if (d->kind == DECISION_CORDON) {
        check_msg(w->holds[n] >= 0, "%.*s is cordoned without a claim", STR_ARG(d->target));
        w->asked[n] = ASKED_CORDON;
    } else if (d->kind == DECISION_UNCORDON) {
        w->asked[n] = ASKED_UNCORDON;
        w->draining[n] = false;
    } else if (d->kind == DECISION_DRAIN) {
        check_msg(w->holds[n] >= 0, "%.*s is drained without a claim", STR_ARG(d->target));
        w->draining[n] = true;
    }
}

static void take_decisions(void *context, const decision_list *out)
{
    world *w = context;
    started s = {0};
    for (size_t i = 0; i < out->len; i++)
        take_decision(w, &out->at[i], &s);
    for (int8_t g = 0; g < GROUPS; g++) {
        int64_t out_of_service = holders(w, g) + (s.disturbed[g] ? left_cordoned(w, g) : 0);
        if (!s.any[g] || out_of_service <= limits[w->policy][g])
            continue;
        tell_world(w);
        fail_msg("%s: %" PRId64 " hold %" PRId64 " places", group_names[g], out_of_service,
                 limits[w->policy][g]);
    }
}

static engine *rebuild(checker *c, const explore_state *s)
{
    const world *w = s->world;
    err error;
    engine *e = engine_new(&(engine_settings){.stage_retries = c->most.retries}, &error);
    assert_non_null(e);
    fact facts[NODES + 2];
    size_t count = 0;
    facts[count++] = (fact){.kind = FACT_DOCUMENT, .document = policy_document(c, w)};
    facts[count++] = (fact){.kind = FACT_DOCUMENT, .document = skyhook_document(c, w)};
    for (size_t n = 0; n < NODES; n++)
        if (!w->gone[n])
            facts[count++] = node_fact(w, n);
    check_msg(engine_take(e, facts, count, w->now_ms), "no memory");
    check_msg(engine_restore(e, (str){s->saved, s->saved_len}, &error), "%s", error.text);
    return e;
}

/* ---- what comes to rest ---- */

typedef struct rest {
    const world *w;
    const engine *e;
    bool over; /* nothing more happens by itself */
} rest;

/* Whether a reason stands for something that happened to the node, or to who holds its place. */
static bool is_rooted(const world *w, size_t n, const reason *r)
{
    if (r->rule == REASON_RETRY)
        return w->failed[n];
    if (r->rule == REASON_IGNORED)
        return w->ignored[n];
    if (r->rule == REASON_STOPPED)
        return w->failures > 0;
    for (size_t i = 0; r->rule == REASON_BUDGET && i < r->holder_count; i++)
        if (w->failed[node_number(r->holders[i])] && is_cordoned(w, node_number(r->holders[i])))
            return true;
    return false;
}

/* Who is not done says why; and when all is over, why it never will be by itself. */
static bool is_explained(void *context, const placement_view *v)
{
    const rest *rest_ = context;
    arena *a = arena_new(0);
    reasons why = {0};
    assert_true(v->state == PLACEMENT_DONE || engine_reasons(rest_->e, v->id, a, &why));
    bool rooted = v->state == PLACEMENT_DONE || !rest_->over;
    for (size_t i = 0; i < why.len; i++)
        rooted |= is_rooted(rest_->w, node_number(v->target), &why.at[i]);
    if (!rooted || (v->state != PLACEMENT_DONE && why.len == 0)) {
        tell_world(rest_->w);
        for (size_t i = 0; i < why.len; i++)
            print_error("%.*s: %.*s\n", STR_ARG(reason_rule_name(why.at[i].rule)),
                        STR_ARG(reason_text(a, &why.at[i])));
        fail_msg("%.*s is not done, and nothing says why", STR_ARG(v->target));
    }
    arena_free(a);
    return true;
}

static void look_at_rest(checker *c, const explore_state *s, bool over)
{
    engine *e = rebuild(c, s);
    rest r = {s->world, e, over};
    explore_event(s, "rest", STR_EMPTY);
    assert_true(engine_placements(e, is_explained, &r));
    c->x.ends += over;
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

static void end_runs(checker *c, const explore_state *s)
{
    const world *now = s->world;
    for (uint8_t i = 0; i < now->run_count; i++) {
        run r = now->runs[i];
        for (int good = 0; good < 2; good++) {
            world w = *now;
            remove_run(&w, i);
            if (!good && w.failures >= c->most.failures)
                continue;
            w.failures = (uint8_t)(w.failures + !good);
            fact ended = {.kind = FACT_STAGE,
                          .stage = {.change = STR("s"),
                                    .target = node_name((size_t)r.node),
                                    .package = STR("os"),
                                    .version = str_of(r.version),
                                    .stage = str_of(r.stage),
                                    .attempt = r.attempt,
                                    .outcome = good ? OUTCOME_SUCCEEDED : OUTCOME_FAILED,
                                    .reason = STR("exit 1")}};
            explore_event(s, good ? "success" : "failure", node_name((size_t)r.node));
            try_event(c, s, &w, &ended);
        }
    }
}

/* What was decided of cordons becomes visible; what is cordoned is drained. True if there is
 * something of the kind. */
static bool cordons(checker *c, const explore_state *s)
{
    const world *now = s->world;
    bool any = false;
    for (size_t n = 0; n < NODES; n++) {
        world w = *now;
        if (w.gone[n] || (w.asked[n] == ASKED_NONE && !w.draining[n]))
            continue;
        any = true;
        if (w.asked[n] != ASKED_NONE) {
            w.unschedulable[n] = w.asked[n] == ASKED_CORDON;
            w.asked[n] = ASKED_NONE;
            fact seen = node_fact(&w, n);
            explore_event(s, "cordon seen", node_name(n));
            try_event(c, s, &w, &seen);
            continue;
        }
        w.draining[n] = false;
        fact drained = {.kind = FACT_DRAIN, .drain = {.target = node_name(n), .done = true}};
        explore_event(s, "drained", node_name(n));
        try_event(c, s, &w, &drained);
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

static void edit(checker *c, const explore_state *s)
{
    for (int which = 0; which < (c->most.only_policy ? 1 : 2); which++) {
        world w = *(const world *)s->world;
        w.edits++;
        w.policy ^= which == 0;
        w.packages ^= which == 1;
        for (size_t n = 0; which == 1 && n < NODES; n++)
            if (w.failed[n]) { /* an edit gives it new work: it is fresh */
                w.failed[n] = false;
                w.holds[n] = -1;
            }
        const object *o = which == 0 ? policy_document(c, &w) : skyhook_document(c, &w);
        explore_event(s, which == 0 ? "policy" : "packages", STR_EMPTY);
        try_event(c, s, &w, &(fact){.kind = FACT_DOCUMENT, .document = o});
    }
}

static void node_goes(checker *c, const explore_state *s, size_t n)
{
    world w = *(const world *)s->world;
    w.edits++;
    w.gone[n] = true;
    w.holds[n] = -1;
    w.asked[n] = ASKED_NONE;
    w.draining[n] = w.unschedulable[n] = w.failed[n] = false;
    for (uint8_t i = w.run_count; i-- > 0;)
        if (w.runs[i].node == (int8_t)n)
            remove_run(&w, i);
    fact gone = node_fact(&w, n);
    explore_event(s, "gone", node_name(n));
    try_event(c, s, &w, &gone);
}

static void change_nodes(checker *c, const explore_state *s)
{
    for (size_t n = 0; n < NODES; n++) {
        world w = *(const world *)s->world;
        if (w.gone[n])
            continue;
        w.edits++;
        w.prod[n] = !w.prod[n];
        fact moved = node_fact(&w, n);
        explore_event(s, "relabel", node_name(n));
        try_event(c, s, &w, &moved);
        w.prod[n] = !w.prod[n];
        w.ignored[n] = !w.ignored[n];
        fact ignored = node_fact(&w, n);
        explore_event(s, "ignore", node_name(n));
        try_event(c, s, &w, &ignored);
        node_goes(c, s, n);
    }
}

static void retry_by_hand(checker *c, const explore_state *s)
{
    for (size_t n = 0; n < NODES; n++) {
        world w = *(const world *)s->world;
        if (w.gone[n] || !w.failed[n])
            continue;
        w.edits++;
        explore_event(s, "retry", node_name(n));
        try_event(c, s, &w,
                  &(fact){.kind = FACT_ACT,
                          .act = {.act = ACT_RETRY, .change = STR("s"), .target = node_name(n)}});
    }
}

static void go_on(checker *c, const explore_state *s)
{
    const world *w = s->world;
    end_runs(c, s);
    bool moves = cordons(c, s);
    moves |= time_passes(c, s);
    look_at_rest(c, s, !moves && w->run_count == 0);
    if (w->edits >= c->most.edits)
        return;
    edit(c, s);
    retry_by_hand(c, s);
    if (!c->most.only_policy)
        change_nodes(c, s);
}

static void visit_all(checker *c)
{
    world w;
    memset(&w, 0, sizeof w);
    snprintf(explore_path, sizeof explore_path, "start");
    w.now_ms = START_MS;
    for (size_t n = 0; n < NODES; n++) {
        w.prod[n] = n < 3;
        w.holds[n] = -1;
    }
    explore_state s = {.world = &w};
    engine *e = rebuild(c, &s);
    explore_settle(&c->x, e, NULL, w.now_ms, &w);
    w.next_ms = engine_next_ms(e);
    explore_reach(&c->x, e, &w);
    engine_free(e);
    while (explore_next(&c->x, &s)) {
        go_on(c, &s);
        explore_drop(&s);
    }
    print_message("# %zu states, %" PRIu64 " events, %" PRIu64 " ends\n", c->x.seen.len,
                  c->x.events, c->x.ends);
}

static void check_claims(bounds most, size_t states_min)
{
    checker c = {.documents = load_text("claims.yaml", str_of(documents_text)),
                 .x = explore_new(sizeof(world), take_decisions),
                 .most = most};
    assert_true(c.documents.good);
    visit_all(&c);
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

static void no_order_of_events_exceeds_a_limit(void **unused)
{
    (void)unused;
    check_claims((bounds){.failures = 2 - LESS, .edits = 1, .retries = -1}, 1000);
}

static void nor_one_in_which_time_passes(void **unused)
{
    (void)unused;
    check_claims((bounds){.failures = 1, .edits = 1 - LESS, .retries = 1}, 100);
}

static void nor_one_in_which_nodes_are_drained(void **unused)
{
    (void)unused;
    check_claims((bounds){.interrupts = true,
                          .failures = 1,
                          .edits = 1 - LESS,
                          .retries = 1,
                          .only_policy = true},
                 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_order_of_events_exceeds_a_limit),
        cmocka_unit_test(nor_one_in_which_time_passes),
        cmocka_unit_test(nor_one_in_which_nodes_are_drained),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
