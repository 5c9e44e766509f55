/* SPDX-License-Identifier: Apache-2.0 */
/* A small model checker for claims: every order in which stages can succeed and fail, a policy can
 * be tightened and loosened, packages edited, nodes relabelled, ignored and deleted, and a person
 * can retry, on four nodes under two limits. After each step of each order the limits hold.
 *
 * A state is the engine's saved text and what the world outside has going on; each is visited once.
 * To try another order the engine is rebuilt from its saved text, so restoring is checked
 * everywhere as well. */
#include "support/check.h"
#include "support/documents.h"

#include <inttypes.h>

#include "base/strmap.h"
#include "base/vec.h"
#include "engine/engine.h"

#define NODES 4
#define GROUPS 2
#define RUNS_MAX 8
#define TEXT_BYTES 24
#define NOW_MS INT64_C(1000)

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

/* Everything in it is compared bytewise, so it is always zeroed first. */
typedef struct world {
    run runs[RUNS_MAX]; /* stages that were begun and have not ended */
    uint8_t run_count;
    uint8_t policy, packages; /* which document is in force */
    bool gone[NODES], prod[NODES], ignored[NODES], unschedulable[NODES];
    int8_t holds[NODES]; /* the group whose limit it holds, -1: none */
    bool failed[NODES];
    uint8_t failures, edits, relabels, retries, deletions; /* how often it happened on this path */
} world;

typedef struct state {
    world world;
    char *saved;
    size_t saved_len;
} state;

typedef struct checker {
    loaded documents;
    VEC(state) open;
    strmap seen;
    arena *keys;
    uint64_t steps;
    bool interrupts; /* nodes are cordoned and drained, and a failed one keeps its place */
    int unusual_max; /* what may go on for ever is bounded: so many unusual things on one path */
} checker;

static bool is_quiet(const checker *c, const world *w)
{
    return w->failures + w->edits + w->relabels + w->retries + w->deletions >= c->unusual_max;
}

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
    return &c->documents.objects->at[(c->interrupts ? 2 : 4) + w->packages];
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

static void begin_run(world *w, const decision *d)
{
    assert_true(w->run_count < RUNS_MAX);
    run *r = &w->runs[w->run_count++];
    snprintf(r->stage, sizeof r->stage, "%.*s", STR_ARG(d->stage));
    snprintf(r->version, sizeof r->version, "%.*s", STR_ARG(d->version));
    r->attempt = d->number;
    r->node = (int8_t)node_number(d->target);
}

/* In flight, or failed and still out of service. */
static int64_t holders(const world *w, int8_t group)
{
    int64_t n = 0;
    for (size_t i = 0; i < NODES; i++)
        n += !w->gone[i] && w->holds[i] == group && (!w->failed[i] || w->unschedulable[i]);
    return n;
}

/* Fresh again after an edit, and still out of service. */
static int64_t left_cordoned(const world *w, int8_t group)
{
    int64_t n = 0;
    for (size_t i = 0; i < NODES; i++)
        n += !w->gone[i] && !w->ignored[i] && w->holds[i] < 0 && w->unschedulable[i] &&
             w->prod[i] == (group == 0);
    return n;
}

static void tell_world(const world *w)
{
    print_error("policy %d, packages %d, failures %d, edits %d, relabels %d, retries %d\n",
                w->policy, w->packages, w->failures, w->edits, w->relabels, w->retries);
    for (size_t n = 0; n < NODES; n++)
        print_error("%s: holds %d%s%s%s%s%s\n", node_name(n).ptr, w->holds[n],
                    w->gone[n] ? " gone" : "", w->prod[n] ? " prod" : "",
                    w->ignored[n] ? " ignored" : "", w->unschedulable[n] ? " cordoned" : "",
                    w->failed[n] ? " failed" : "");
}

static void take_decisions(world *w, const decision_list *out, fact *answers, size_t *answer_count)
{
    bool started[GROUPS] = {false};
    bool disturbed[GROUPS] = {false}; /* somebody was started who was in service until now */
    for (size_t i = 0; i < out->len; i++) {
        const decision *d = &out->at[i];
        size_t n = d->target.len > 0 ? node_number(d->target) : 0;
        if (d->kind == DECISION_START) {
            w->holds[n] = group_number(d->group);
            w->failed[n] = false;
            started[w->holds[n]] = true;
            disturbed[w->holds[n]] |= !w->unschedulable[n];
        } else if (d->kind == DECISION_RELEASE) {
            w->failed[n] = d->failed;
            if (!d->failed)
                w->holds[n] = -1;
        } else if (d->kind == DECISION_RUN) {
            check_msg(w->holds[n] >= 0, "%.*s runs without a claim", STR_ARG(d->target));
            begin_run(w, d);
        } else if (d->kind == DECISION_CORDON) {
            check_msg(w->holds[n] >= 0, "%.*s is cordoned without a claim", STR_ARG(d->target));
            w->unschedulable[n] = true;
            answers[(*answer_count)++] = node_fact(w, n);
        } else if (d->kind == DECISION_UNCORDON) {
            w->unschedulable[n] = false;
            answers[(*answer_count)++] = node_fact(w, n);
        } else if (d->kind == DECISION_DRAIN)
            answers[(*answer_count)++] =
                (fact){.kind = FACT_DRAIN, .drain = {.target = node_name(n), .done = true}};
    }
    for (int8_t g = 0; g < GROUPS; g++) {
        int64_t out_of_service = holders(w, g) + (disturbed[g] ? left_cordoned(w, g) : 0);
        if (!started[g] || out_of_service <= limits[w->policy][g])
            continue;
        tell_world(w);
        fail_msg("%s: %" PRId64 " hold %" PRId64 " places", group_names[g], out_of_service,
                 limits[w->policy][g]);
    }
}

/* Steps until nothing is left to be answered at once. */
static void settle(checker *c, engine *e, world *w, fact first)
{
    fact facts[4 * NODES] = {first};
    size_t count = first.kind == FACT_ACT && first.act.change.len == 0 ? 0 : 1;
    err error;
    for (int round = 0;; round++) {
        check_msg(round < 100, "it never comes to rest");
        decision_list out = {0};
        check_msg(engine_step(e, facts, count, NOW_MS, &out), "no memory");
        check_msg(engine_check(e, &error), "%s", error.text);
        check_msg(engine_full(e, &error), "%s", error.text);
        c->steps++;
        bool quiet = out.len == 0;
        count = 0;
        take_decisions(w, &out, facts, &count);
        vec_done(&out);
        if (quiet && count == 0)
            return;
    }
}

static engine *rebuild(checker *c, const state *s)
{
    err error;
    engine *e = engine_new(&(engine_settings){.stage_retries = -1}, &error);
    assert_non_null(e);
    fact facts[NODES + 2];
    size_t count = 0;
    facts[count++] = (fact){.kind = FACT_DOCUMENT, .document = policy_document(c, &s->world)};
    facts[count++] = (fact){.kind = FACT_DOCUMENT, .document = skyhook_document(c, &s->world)};
    for (size_t n = 0; n < NODES; n++)
        if (!s->world.gone[n])
            facts[count++] = node_fact(&s->world, n);
    check_msg(engine_take(e, facts, count, NOW_MS), "no memory");
    check_msg(engine_restore(e, (str){s->saved, s->saved_len}, &error), "%s", error.text);
    return e;
}

/* Remembers the state if it is new. */
static void reach(checker *c, engine *e, const world *w)
{
    buf key = BUF(LIMIT_TEXT_BYTES);
    buf_add(&key, (str){(const char *)w, sizeof *w});
    size_t head = key.len;
    assert_true(engine_save(e, &key));
    if (!strmap_get(&c->seen, buf_str(&key))) {
        str kept = arena_str(c->keys, buf_str(&key));
        assert_true(strmap_put(&c->seen, kept, 1));
        state s = {.world = *w, .saved_len = key.len - head};
        s.saved = malloc(s.saved_len + 1);
        memcpy(s.saved, key.ptr + head, s.saved_len);
        assert_true(vec_push(&c->open, s));
    }
    buf_done(&key);
}

static void try_event(checker *c, const state *s, const world *after, fact event)
{
    world w = *after;
    engine *e = rebuild(c, s);
    settle(c, e, &w, event);
    reach(c, e, &w);
    engine_free(e);
}

/* ---- all that can happen next ---- */

static void end_runs(checker *c, const state *s)
{
    for (uint8_t i = 0; i < s->world.run_count; i++) {
        run r = s->world.runs[i];
        for (int good = 0; good < 2; good++) {
            world w = s->world;
            w.runs[i] = w.runs[--w.run_count];
            memset(&w.runs[w.run_count], 0, sizeof w.runs[0]);
            if (!good && is_quiet(c, &w))
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
            try_event(c, s, &w, ended);
        }
    }
}

static void edit(checker *c, const state *s)
{
    for (int which = 0; which < 2; which++) {
        world w = s->world;
        w.edits++;
        w.policy ^= which == 0;
        w.packages ^= which == 1;
        for (size_t n = 0; which == 1 && n < NODES; n++)
            if (w.failed[n]) { /* an edit gives it new work: it is fresh */
                w.failed[n] = false;
                w.holds[n] = -1;
            }
        const object *o = which == 0 ? policy_document(c, &w) : skyhook_document(c, &w);
        try_event(c, s, &w, (fact){.kind = FACT_DOCUMENT, .document = o});
    }
}

static void forget_runs(world *w, int8_t n)
{
    for (uint8_t i = 0; i < w->run_count;)
        if (w->runs[i].node == n) {
            w->runs[i] = w->runs[--w->run_count];
            memset(&w->runs[w->run_count], 0, sizeof w->runs[0]);
        } else
            i++;
}

static void change_nodes(checker *c, const state *s)
{
    for (size_t n = 0; n < NODES; n++) {
        world w = s->world;
        if (w.gone[n])
            continue;
        w.relabels++;
        w.prod[n] = !w.prod[n];
        try_event(c, s, &w, node_fact(&w, n));
        w.prod[n] = !w.prod[n];
        w.ignored[n] = !w.ignored[n];
        try_event(c, s, &w, node_fact(&w, n));
        w = s->world;
        w.deletions++;
        w.gone[n] = true;
        w.holds[n] = -1;
        forget_runs(&w, (int8_t)n);
        try_event(c, s, &w, node_fact(&w, n));
    }
}

static void retry_by_hand(checker *c, const state *s)
{
    for (size_t n = 0; n < NODES; n++) {
        world w = s->world;
        if (w.gone[n] || !w.failed[n])
            continue;
        w.retries++;
        try_event(c, s, &w,
                  (fact){.kind = FACT_ACT,
                         .act = {.act = ACT_RETRY, .change = STR("s"), .target = node_name(n)}});
    }
}

static void visit_all(checker *c)
{
    state start;
    memset(&start, 0, sizeof start);
    for (size_t n = 0; n < NODES; n++) {
        start.world.prod[n] = n < 3;
        start.world.holds[n] = -1;
    }
    start.saved = malloc(1);
    world w = start.world;
    engine *e = rebuild(c, &start);
    settle(c, e, &w, (fact){.kind = FACT_ACT});
    reach(c, e, &w);
    engine_free(e);
    free(start.saved);
    while (c->open.len > 0) {
        state s = c->open.at[--c->open.len];
        end_runs(c, &s);
        if (!is_quiet(c, &s.world)) {
            edit(c, &s);
            change_nodes(c, &s);
            retry_by_hand(c, &s);
        }
        free(s.saved);
    }
    print_message("# %zu states, %" PRIu64 " steps\n", c->seen.len, c->steps);
}

static void check_claims(bool interrupts, int unusual_max, size_t states_min)
{
    checker c = {.documents = load_text("claims.yaml", str_of(documents_text)),
                 .keys = arena_new(0),
                 .interrupts = interrupts,
                 .unusual_max = unusual_max};
    assert_true(c.documents.good);
    visit_all(&c);
    check_msg(c.seen.len >= states_min, "only %zu states were reached", c.seen.len);
    strmap_done(&c.seen);
    vec_done(&c.open);
    arena_free(c.keys);
    loaded_free(&c.documents);
}

/* The sanitizers make each step several times dearer: one unusual thing less. */
#if defined(__SANITIZE_ADDRESS__)
#define UNUSUAL_LESS 1
#else
#define UNUSUAL_LESS 0
#endif

static void no_order_of_events_exceeds_a_limit(void **unused)
{
    (void)unused;
    check_claims(false, 2 - UNUSUAL_LESS, 1000);
}

static void nor_one_in_which_nodes_are_drained(void **unused)
{
    (void)unused;
    check_claims(true, 1 - UNUSUAL_LESS, 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_order_of_events_exceeds_a_limit),
        cmocka_unit_test(nor_one_in_which_nodes_are_drained),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
