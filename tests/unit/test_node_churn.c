/* SPDX-License-Identifier: Apache-2.0 */
/* A fleet whose nodes come and go for ever, each with a name of its own: what the engine keeps is
 * as much as the nodes that are there. */
#include "support/check.h"

#include "engine/nodes_internal.h"
#include "support/documents.h"

#define START_MS INT64_C(1772352000000) /* 2026-03-01T08:00:00Z */
#define AT_ONCE 16
#define ROUNDS 200

static const char text[] = "apiVersion: skyhook.nvidia.com/v1alpha1\nkind: Skyhook\n"
                           "metadata: {name: sk}\nspec:\n  interruptionBudget: {count: 8}\n"
                           "  packages: {ab: {version: '1', image: r/ab}}\n";

typedef struct stand {
    engine_core core;
    nodes *nodes;
    decision_list out;
    loaded document;
} stand;

static void take(stand *s, fact f)
{
    s->core.out = &s->out;
    vocabulary_nodes.take(s->nodes, &f);
    s->core.out = NULL;
}

/* Every decision's texts can be read until the next step, whoever has left meanwhile. */
static void step(stand *s, size_t *ret_starts)
{
    s->core.now_ms += 1000;
    s->core.out = &s->out;
    vocabulary_nodes.step(s->nodes);
    s->core.out = NULL;
    assert_false(s->core.no_memory);
    for (size_t i = 0; i < s->out.len; i++) {
        const decision *d = &s->out.at[i];
        if (d->kind == DECISION_START || d->kind == DECISION_RELEASE)
            check_msg(str_starts(d->target, STR("node-")), "%.*s", STR_ARG(d->target));
        *ret_starts += d->kind == DECISION_START;
    }
    s->out.len = 0;
}

static void open_stand(stand *s)
{
    *s = (stand){.core = {.settings = {.node_lost_after_ms = 3600000, .start_ms = START_MS},
                          .names = names_new(),
                          .step = arena_new(0),
                          .now_ms = START_MS,
                          .next_placement = 1},
                 .document = load_text("churn.yaml", str_of(text))};
    assert_true(s->core.names && s->core.step && s->document.good);
    s->nodes = vocabulary_nodes.create(&s->core);
    assert_non_null(s->nodes);
    take(s, (fact){.kind = FACT_DOCUMENT, .document = &s->document.objects->at[0]});
}

static void close_stand(stand *s)
{
    vocabulary_nodes.destroy(s->nodes);
    names_free(s->core.names);
    arena_free(s->core.step);
    loaded_free(&s->document);
    vec_done(&s->out);
}

/* All nodes of a round come; half of them go in the step in which those of the next come, the
 * others in one of their own. */
static void come_and_go(stand *s, int round, size_t *ret_starts)
{
    char name[32];
    for (int i = 0; i < AT_ONCE; i++) {
        fact gone = {.kind = FACT_TARGET_GONE, .target.kind = TARGET_NODE};
        fact come = {.kind = FACT_TARGET, .target.kind = TARGET_NODE};
        snprintf(name, sizeof name, "node-%d-%d", round - 1, i);
        gone.target.name = str_of(name);
        take(s, gone);
        snprintf(name, sizeof name, "node-%d-%d", round, i);
        come.target.name = str_of(name);
        take(s, come);
    }
    step(s, ret_starts);
    for (int i = 0; i < AT_ONCE / 2; i++) {
        fact gone = {.kind = FACT_TARGET_GONE, .target.kind = TARGET_NODE};
        snprintf(name, sizeof name, "node-%d-%d", round, i);
        gone.target.name = str_of(name);
        take(s, gone);
        take(s, (fact){.kind = FACT_KEPT,
                       .kept = {.change = STR("sk"), .target = str_of(name), .why = str_of(name)}});
    }
    step(s, ret_starts);
}

static void bounded(void **state)
{
    (void)state;
    stand s;
    open_stand(&s);
    size_t starts = 0, names_before = 0;
    for (int round = 1; round <= ROUNDS; round++) {
        come_and_go(&s, round, &starts);
        char last[32];
        snprintf(last, sizeof last, "node-%d-%d", round, AT_ONCE - 1);
        take(&s,
             (fact){.kind = FACT_KEPT,
                    .kept = {.change = STR("sk"), .target = str_of(last), .why = str_of(last)}});
        if (round == 2)
            names_before = names_count(s.core.names);
    }
    check_msg(starts >= ROUNDS * 8, "%zu", starts);
    assert_int_equal(names_count(s.core.names), names_before);
    check_msg(s.nodes->targets.len <= AT_ONCE + 1, "%zu", s.nodes->targets.len);
    check_msg(s.nodes->placements.len <= AT_ONCE + 1, "%zu", s.nodes->placements.len);
    check_msg(s.nodes->by_id.len <= AT_ONCE, "%zu", s.nodes->by_id.len);
    check_msg(s.nodes->left_names.len <= 2 * AT_ONCE, "%zu", s.nodes->left_names.len);
    check_msg(s.nodes->by_name.len <= AT_ONCE, "%zu", s.nodes->by_name.len);
    check_msg(s.nodes->timers.len <= 4 * AT_ONCE, "%zu", s.nodes->timers.len);
    check_msg(s.nodes->changes.at[0]->members.len <= AT_ONCE + 1, "%zu",
              s.nodes->changes.at[0]->members.len);
    close_stand(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(bounded)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
