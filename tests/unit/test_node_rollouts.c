/* SPDX-License-Identifier: Apache-2.0 */
/* Random rollouts on nodes: joins, deletions, labels, taints, edits, pauses, failures, reboots.
 * After every step the invariants hold and the incremental state equals a full evaluation; an
 * engine that is saved and restored goes on exactly as the one that was not; when the faults stop,
 * everything ends. */
#include "support/node_fleet.h"

#define API "apiVersion: skyhook.nvidia.com/v1alpha1\n"
#define RUNS 400
#define ACTS_A_RUN 40
#define SKYHOOKS 3
#define NODES_MOST 12

static const char *const skyhook_names[] = {"sk0", "sk1", "sk2"};

typedef struct wish {
    int generation;
    int version;
    int config;
    int priority;
    bool all, serial, paused, runtime;
    size_t interrupts;
    int policy; /* 0: none */
} wish;

typedef struct story {
    rng random;
    uint64_t seed;
    wish wishes[SKYHOOKS];
    int skyhooks;
    int joined;
    engine *twin;
    bool twins;
} story;

static bool chance(story *s, size_t in)
{
    return rng_below(&s->random, in) == 0;
}

static void write_skyhook(fleet *f, story *s, int i)
{
    static const char *const interrupts[] = {"", ", interrupt: {type: noop}",
                                             ", interrupt: {type: reboot}",
                                             ", interrupt: {type: service, services: [x]}"};
    wish *w = &s->wishes[i];
    w->generation++;
    char policy[64] = "";
    if (w->policy > 0)
        snprintf(policy, sizeof policy, "  deploymentPolicy: pace%d\n", w->policy);
    fleet_document(f,
                   API
                   "kind: Skyhook\nmetadata: {name: sk%d, generation: %d, annotations:"
                   " {skyhook.nvidia.com/pause: '%s'}}\nspec:\n%s  priority: %d\n"
                   "  drainTimeout: 3m\n  sequencing: %s\n  serial: %s\n  runtimeRequired: %s\n"
                   "  autoTaintNewNodes: %s\n"
                   "  nodeSelectors: {matchExpressions: [{key: out%d, operator: DoesNotExist}]}\n"
                   "  packages:\n"
                   "    aa: {version: '1.%d.0', image: r/aa%s, configMap: {k: 'v%d'},"
                   " configInterrupts: {k: {type: noop}}}\n"
                   "    bb: {version: '1.0.%d', image: r/bb, dependsOn: {aa: '1.%d.0'}}\n",
                   i, w->generation, w->paused ? "true" : "false", policy, w->priority,
                   w->all ? "all" : "node", w->serial ? "true" : "false",
                   w->runtime ? "true" : "false", w->runtime ? "true" : "false", i, w->version,
                   interrupts[w->interrupts], w->config, w->version / 2, w->version);
}

static void write_policy(fleet *f, story *s, int number)
{
    static const char *const strategies[] = {"fixed: {initialBatch: 2}", "linear: {}",
                                             "exponential: {failureThreshold: 1}",
                                             "fixed: {initialBatch: 3, batchThreshold: 50}"};
    fleet_document(f,
                   API "kind: DeploymentPolicy\nmetadata: {name: pace%d}\nspec:\n"
                       "  resetBatchStateOnCompletion: %s\n  failedNodesHoldBudget: %s\n"
                       "  default: {budget: {percent: %d}, strategy: {%s}}\n"
                       "  compartments: [{name: red, selector: {matchLabels: {colour: red}},"
                       " budget: {count: %d}, strategy: {%s}}, {name: square, selector:"
                       " {matchLabels: {shape: square}}, budget: {percent: 50}}]\n",
                   number, chance(s, 2) ? "true" : "false", chance(s, 4) ? "true" : "false",
                   (int)rng_below(&s->random, 100) + 1,
                   strategies[rng_below(&s->random, COUNT_OF(strategies))],
                   (int)rng_below(&s->random, 3) + 1,
                   strategies[rng_below(&s->random, COUNT_OF(strategies))]);
}

/* ---- the twin: an engine restored from what the first one saved ---- */

static void print_difference(str a, str b)
{
    while (a.len > 0 || b.len > 0) {
        str x = str_cut(&a, '\n');
        str y = str_cut(&b, '\n');
        if (!str_eq(x, y)) {
            fprintf(stderr, "%.*s\n%.*s\n", STR_ARG(x), STR_ARG(y));
            return;
        }
    }
}

/* The end of the trace, or (VERBOSE) all of it. */
static void print_tail(const fleet *f)
{
    str trace = buf_str(&f->trace);
    size_t from = trace.len > 4000 && !getenv("VERBOSE") ? trace.len - 4000 : 0;
    fprintf(stderr, "%.*s\n", STR_ARG(str_part(trace, from, SIZE_MAX)));
}

static void make_twin(fleet *f)
{
    story *s = f->context;
    s->twin = NULL;
    if (!s->twins || !chance(s, 4) || f->stepped_ms == 0)
        return;
    err error;
    s->twin = engine_new(&f->settings, &error);
    VEC(fact) facts = {0};
    for (size_t i = 0; i < f->current.len; i++)
        assert_true(vec_push(&facts, (fact){.kind = FACT_DOCUMENT, .document = f->current.at[i]}));
    for (size_t i = 0; i < f->node_count; i++)
        if (f->shown[i].exists)
            assert_true(vec_push(&facts, fleet_fact(&f->shown[i])));
    assert_true(engine_take(s->twin, facts.at, facts.len, f->stepped_ms));
    vec_done(&facts);
    buf saved = BUF(LIMIT_TEXT_BYTES);
    buf again = BUF(LIMIT_TEXT_BYTES);
    assert_true(engine_save(f->engine, &saved));
    if (!engine_restore(s->twin, buf_str(&saved), &error)) {
        print_error("%s\n", error.text);
        fail();
    }
    assert_true(engine_save(s->twin, &again));
    if (!str_eq(buf_str(&saved), buf_str(&again))) {
        print_error("seed %" PRIu64 "\n", s->seed);
        print_difference(buf_str(&saved), buf_str(&again));
        fail();
    }
    buf_done(&saved);
    buf_done(&again);
}

/* What only some kinds have. */
static bool same_of_kind(const decision *a, const decision *b)
{
    if (a->kind == DECISION_RUN || a->kind == DECISION_RECORD)
        return str_eq(a->package, b->package) && str_eq(a->stage, b->stage);
    if (a->kind == DECISION_JUDGE)
        return a->complete == b->complete && a->erroring == b->erroring && a->blocked == b->blocked;
    return a->kind != DECISION_WAKE || a->at_ms == b->at_ms;
}

static bool same_decision(const decision *a, const decision *b)
{
    return a->kind == b->kind && same_of_kind(a, b) && a->placement == b->placement &&
           str_eq(a->change, b->change) && str_eq(a->target, b->target) &&
           str_eq(a->group, b->group) && str_eq(a->version, b->version) &&
           str_eq(a->state, b->state) && str_eq(a->detail, b->detail) && a->number == b->number &&
           a->size == b->size && a->retry == b->retry && a->failed == b->failed &&
           a->first == b->first;
}

static void compare_twin(fleet *f)
{
    story *s = f->context;
    if (!s->twin)
        return;
    decision_list out = {0};
    assert_true(engine_step(s->twin, f->pending.at, f->pending.len, f->now_ms, &out));
    bool same = out.len == f->out.len;
    for (size_t i = 0; same && i < out.len; i++)
        same = same_decision(&out.at[i], &f->out.at[i]);
    if (!same || engine_next_ms(s->twin) != engine_next_ms(f->engine)) {
        print_error("seed %" PRIu64 ": %zu and %zu decisions, next %" PRId64 " and %" PRId64 "\n",
                    s->seed, f->out.len, out.len, engine_next_ms(f->engine),
                    engine_next_ms(s->twin));
        buf_addz(&f->trace, "--- first\n");
        for (size_t i = 0; i < f->out.len; i++)
            fleet_trace(f, &f->out.at[i]);
        buf_addz(&f->trace, "--- twin\n");
        for (size_t i = 0; i < out.len; i++)
            fleet_trace(f, &out.at[i]);
        print_tail(f);
        fail();
    }
    vec_done(&out);
    s->twin = engine_free(s->twin);
}

/* ---- what happens ---- */

static void join(fleet *f, story *s)
{
    if (f->node_count >= FLEET_NODES)
        return;
    char name[FLEET_TEXT];
    snprintf(name, sizeof name, "n%02d", s->joined++);
    fleet_node *n = fleet_node_add(f, name);
    n->created_ms = (int64_t)rng_below(&s->random, 3);
    if (chance(s, 2))
        fleet_label(n, "colour", "red");
    if (chance(s, 3))
        fleet_label(n, "shape", "square");
    fleet_show(f, n);
}

static void disturb_node(fleet *f, story *s, fleet_node *n)
{
    static const char *const values[] = {"red", "blue", NULL};
    switch (rng_below(&s->random, 11)) {
    case 0: fleet_label(n, "colour", values[rng_below(&s->random, 3)]); break;
    case 1: fleet_label(n, "skyhook.nvidia.com/ignore", chance(s, 2) ? "true" : NULL); break;
    case 2:
        n->taint_count = chance(s, 2);
        n->taints[0] = (fact_taint){STR("foreign"), STR(""), STR("NoSchedule")};
        break;
    case 3: n->not_ready = !n->not_ready; break;
    case 4: snprintf(n->boot, FLEET_TEXT, "boot-%d", (int)rng_below(&s->random, 1000)); break;
    case 5: n->fails = !n->fails; break;
    case 6: n->fails_once = true; break;
    case 7: fleet_label(n, chance(s, 2) ? "out0" : "out1", chance(s, 2) ? "yes" : NULL); break;
    case 8: n->unschedulable = !n->unschedulable; break;
    case 9: snprintf(n->uid, FLEET_TEXT, "uid-%d", (int)rng_below(&s->random, 1000)); break;
    case 10: n->drain_blocked = !n->drain_blocked; break;
    default: break;
    }
    fleet_show(f, n);
}

static void edit_wish(fleet *f, story *s)
{
    int i = (int)rng_below(&s->random, (size_t)s->skyhooks);
    wish *w = &s->wishes[i];
    switch (rng_below(&s->random, 6)) {
    case 0: w->version += w->version > 0 && chance(s, 3) ? -1 : 1; break;
    case 1: w->config++; break;
    case 2: w->paused = !w->paused; break;
    case 3: w->interrupts = rng_below(&s->random, 4); break;
    case 4: w->priority = 100 + (int)rng_below(&s->random, 3); break;
    case 5: w->policy = (int)rng_below(&s->random, 3); break;
    default: break;
    }
    write_skyhook(f, s, i);
}

static void act(fleet *f, story *s)
{
    static const act_kind acts[] = {ACT_RETRY, ACT_RESET, ACT_RESET_BATCHES, ACT_PAUSE, ACT_RESUME};
    fleet_act(f, acts[rng_below(&s->random, COUNT_OF(acts))],
              skyhook_names[rng_below(&s->random, (size_t)s->skyhooks)], "");
}

static void happen(fleet *f, story *s)
{
    fleet_node *n = f->node_count > 0 ? &f->nodes[rng_below(&s->random, f->node_count)] : NULL;
    switch (rng_below(&s->random, 8)) {
    case 0:
        if (s->joined < NODES_MOST)
            join(f, s);
        break;
    case 1:
        if (n && n->exists && chance(s, 3))
            fleet_gone(f, n);
        break;
    case 2: edit_wish(f, s); break;
    case 3: write_policy(f, s, 1 + (int)rng_below(&s->random, 2)); break;
    case 4: act(f, s); break;
    default:
        if (n && n->exists)
            disturb_node(f, s, n);
    }
}

/* Every reason names a cause; nobody who is not done is without one. */
static bool has_reason(void *context, const placement_view *v)
{
    fleet *f = context;
    reasons out = {0};
    arena *a = arena_new(0);
    assert_true(engine_reasons(f->engine, v->id, a, &out));
    if (v->state != PLACEMENT_DONE && out.len == 0) {
        print_error("no reason: %.*s on %.*s\n", STR_ARG(v->change), STR_ARG(v->target));
        fail();
    }
    assert_true(v->state != PLACEMENT_DONE || out.len == 0);
    arena_free(a);
    return true;
}

static void heal(fleet *f, story *s)
{
    for (size_t i = 0; i < f->node_count; i++) {
        fleet_node *n = &f->nodes[i];
        n->fails = n->fails_once = n->not_ready = n->drain_blocked = false;
        n->taint_count = 0;
        fleet_label(n, "skyhook.nvidia.com/ignore", NULL);
        if (!n->exists)
            continue;
        fleet_show(f, n);
        fleet_tell(f,
                   (fact){.kind = FACT_DRAIN, .drain = {.target = str_of(n->name), .done = true}});
    }
    for (int i = 0; i < s->skyhooks; i++) {
        s->wishes[i].paused = false;
        s->wishes[i].version += s->wishes[i].version > 0 && chance(s, 2) ? -1 : 1;
        write_skyhook(f, s, i);
        fleet_act(f, ACT_RESUME, skyhook_names[i], "");
    }
    write_policy(f, s, 1);
    write_policy(f, s, 2);
}

static bool is_done(void *context, const placement_view *v)
{
    fleet *f = context;
    if (v->state == PLACEMENT_DONE)
        return true;
    char change[FLEET_TEXT], target[FLEET_TEXT];
    copy_text(change, v->change);
    copy_text(target, v->target);
    story *s = f->context;
    print_error("seed %" PRIu64 ": %s on %s is not done: %s\n", s->seed, change, target,
                fleet_reasons(f, change, target));
    for (int i = 0; i < s->skyhooks; i++)
        print_error("%s: %s\n", skyhook_names[i], fleet_reasons(f, skyhook_names[i], target));
    print_tail(f);
    fail();
    return false;
}

/* The last stage of a package that ran on a node that is done is of the version that is wanted,
 * whatever came before it. */
static bool has_what_it_wants(void *context, const placement_view *v)
{
    fleet *f = context;
    story *s = f->context;
    buf part = BUF(256), want = BUF(256);
    str last = STR_EMPTY;
    buf_addf(&part, " run %.*s %.*s aa ", STR_ARG(v->change), STR_ARG(v->target));
    for (str rest = buf_str(&f->trace); rest.len > 0;) {
        str line = str_cut(&rest, '\n');
        size_t at = str_find(line, buf_str(&part));
        if (at != SIZE_MAX)
            last = str_part(line, at + part.len, SIZE_MAX);
    }
    buf_addf(&want, "1.%d.0 ", s->wishes[v->change.ptr[2] - '0'].version);
    check_msg(v->state != PLACEMENT_DONE || str_starts(last, buf_str(&want)),
              "seed %" PRIu64 ": %.*s on %.*s: %.*s is there, not %.*s", s->seed,
              STR_ARG(v->change), STR_ARG(v->target), STR_ARG(last), STR_ARG(buf_str(&want)));
    buf_done(&part);
    buf_done(&want);
    return true;
}

static void one_run(uint64_t seed, bool twins)
{
    story s = {.random = {seed}, .seed = seed, .twins = twins};
    fleet *f =
        fleet_with((engine_settings){.stage_retries = 2, .reapply_on_reboot = seed % 3 == 0});
    f->context = &s;
    f->before_step = make_twin;
    f->after_step = compare_twin;
    f->feedback = chance(&s, 2);
    s.skyhooks = 1 + (int)rng_below(&s.random, SKYHOOKS);
    for (int i = 0; i < s.skyhooks; i++) {
        s.wishes[i] = (wish){.priority = 100 + (int)rng_below(&s.random, 3),
                             .all = chance(&s, 4),
                             .interrupts = rng_below(&s.random, 4),
                             .serial = chance(&s, 3),
                             .runtime = chance(&s, 3),
                             .policy = (int)rng_below(&s.random, 3)};
        write_skyhook(f, &s, i);
    }
    for (int i = 0; i < 5; i++)
        join(f, &s);
    for (int i = 0; i < ACTS_A_RUN; i++) {
        happen(f, &s);
        if (chance(&s, 2))
            fleet_run(f, (int64_t)rng_below(&s.random, 200) * SECOND);
        else
            fleet_step(f);
        engine_placements(f->engine, has_reason, f);
    }
    heal(f, &s);
    fleet_run(f, 100 * HOUR);
    engine_placements(f->engine, has_what_it_wants, f);
    /* A failure from before may have stopped a compartment since, or failed nodes hold more places
     * than there are left: a person lifts that. */
    for (int i = 0; i < s.skyhooks; i++)
        fleet_act(f, ACT_RESET, skyhook_names[i], "");
    fleet_run(f, 100 * HOUR);
    engine_placements(f->engine, is_done, f);
    fleet_free(f);
}

static void random_rollouts(void **state)
{
    (void)state;
    rng seeds = rng_seeded();
    const char *runs = getenv("RUNS");
    int count = runs ? (int)strtol(runs, NULL, 10) : RUNS;
    for (int i = 0; i < count; i++) {
        uint64_t seed = i == 0 ? seeds.state : rng_next(&seeds);
        if (getenv("VERBOSE"))
            print_message("# run %d seed %" PRIu64 "\n", i, seed);
        one_run(seed, i % 4 == 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_rollouts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
