/* SPDX-License-Identifier: Apache-2.0 */
/* Every allocation fails in turn while an engine of nodes is rebuilt, restored, stepped, asked for
 * its reasons and saved: it says so, nothing is left behind, and once there is memory the rebuilt
 * engine decides what the one that never lacked any decides. */
#include "support/node_fleet.h"

#define API "apiVersion: skyhook.nvidia.com/v1alpha1\n"

typedef struct trial {
    fleet *fleet;
    VEC(fact) known; /* what the engine was told before the step */
    buf saved;       /* its state before the step */
    buf after;       /* what the last trial came to */
    bool first;
    int steps;
} trial;

static bool ask(void *context, const placement_view *v)
{
    placement_id *ids = context;
    if (ids[0] < FLEET_NODES)
        ids[++ids[0]] = v->id;
    return true;
}

static bool explain(const engine *e)
{
    placement_id ids[FLEET_NODES + 1] = {0};
    if (!engine_placements(e, ask, ids))
        return false;
    for (size_t i = 1; i <= ids[0]; i++) {
        arena *a = arena_new(0);
        reasons out = {0};
        bool good = a && engine_reasons(e, ids[i], a, &out);
        arena_free(a);
        if (!good)
            return false;
    }
    return true;
}

static bool rebuild_and_step(void *context)
{
    trial *t = context;
    const fleet *f = t->fleet;
    err error;
    engine *e = engine_new(&f->settings, &error);
    bool good = e != NULL;
    if (good && !t->first)
        good = engine_take(e, t->known.at, t->known.len, f->stepped_ms) &&
               engine_restore(e, buf_str(&t->saved), &error);
    decision_list out = {0};
    good = good && engine_step(e, f->pending.at, f->pending.len, f->now_ms, &out);
    good = good && explain(e);
    buf text = BUF(LIMIT_TEXT_BYTES);
    good = good && engine_save(e, &text);
    good = good && engine_check(e, &error);
    if (good) {
        buf_clear(&t->after);
        buf_add(&t->after, buf_str(&text));
    }
    buf_done(&text);
    vec_done(&out);
    engine_free(e);
    return good;
}

static void try_before(fleet *f)
{
    trial *t = f->context;
    t->first = f->stepped_ms == 0;
    t->known.len = 0;
    for (size_t i = 0; i < f->current.len; i++)
        assert_true(
            vec_push(&t->known, (fact){.kind = FACT_DOCUMENT, .document = f->current.at[i]}));
    for (size_t i = 0; i < f->node_count; i++)
        if (f->shown[i].exists)
            assert_true(vec_push(&t->known, fleet_fact(&f->shown[i])));
    buf_clear(&t->saved);
    assert_true(engine_save(f->engine, &t->saved));
    rebuild_and_step(t); /* gives "after" its room before allocations are counted */
    check_each_allocation_fails(rebuild_and_step, t);
    t->steps++;
}

static void compare_after(fleet *f)
{
    trial *t = f->context;
    buf text = BUF(LIMIT_TEXT_BYTES);
    assert_true(engine_save(f->engine, &text));
    str got = buf_str(&t->after), want = buf_str(&text);
    while (got.len > 0 || want.len > 0) {
        str line = str_cut(&want, '\n');
        check_str(str_cut(&got, '\n'), line);
    }
    buf_done(&text);
}

static void write_skyhooks(fleet *f, const char *number, const char *value, bool uninstall)
{
    fleet_document(f,
                   API "kind: Skyhook\nmetadata: {name: base}\nspec:\n  deploymentPolicy: pace\n"
                       "  priority: 10\n  runtimeRequired: true\n  autoTaintNewNodes: true\n"
                       "  packages:\n"
                       "    aa: {version: '%s', image: r/aa, interrupt: {type: reboot}}\n"
                       "    bb: {version: '%s', image: r/bb, dependsOn: {aa: '%s'},"
                       " interrupt: {type: service, services: [x, z]},"
                       " configMap: {k: '%s'}, configInterrupts: {k: {type: noop}}}\n",
                   number, number, number, value);
    fleet_document(f,
                   API "kind: Skyhook\nmetadata: {name: later}\nspec:\n  sequencing: all\n"
                       "  interruptionBudget: {count: 1}\n  packages:\n"
                       "    cc: {version: '1', image: r/cc, uninstall: {enabled: true, apply: %s}}"
                       "\n",
                   uninstall ? "true" : "false");
}

static void a_day(fleet *f)
{
    fleet_document(f, API "kind: DeploymentPolicy\nmetadata: {name: pace}\nspec:\n"
                          "  default: {budget: {percent: 50}, strategy: {exponential: {}}}\n"
                          "  compartments: [{name: red, selector: {matchLabels: {colour: red}},"
                          " budget: {count: 1}, strategy: {fixed: {initialBatch: 1}}}]\n");
    write_skyhooks(f, "1.0.0", "v1", false);
    fleet_nodes_add(f, 4);
    fleet_label(&f->nodes[3], "colour", "red");
    fleet_show(f, &f->nodes[3]);
    f->nodes[1].fails_once = true;
    fleet_run(f, -1);
    check_state(f, "later", "node-002", DONE);
    write_skyhooks(f, "1.1.0", "v1", false);
    fleet_run(f, 2 * MINUTE);
    fleet_gone(f, &f->nodes[2]);
    snprintf(f->nodes[0].boot, FLEET_TEXT, "boot-2");
    fleet_show(f, &f->nodes[0]);
    fleet_run(f, -1);
    write_skyhooks(f, "1.1.0", "v2", true);
    fleet_run(f, -1);
    fleet_act(f, ACT_RESET, "base", "node-004");
    fleet_run(f, -1);
    check_state(f, "base", "node-004", DONE);
    assert_int_equal(fleet_count(f, " run later node-001 cc 1 uninstall"), 1);
}

static void every_allocation_fails(void **state)
{
    (void)state;
    trial t = {.saved = BUF(LIMIT_TEXT_BYTES), .after = BUF(LIMIT_TEXT_BYTES)};
    t.fleet = fleet_new();
    t.fleet->context = &t;
    t.fleet->before_step = try_before;
    t.fleet->after_step = compare_after;
    a_day(t.fleet);
    print_message("# %d steps\n", t.steps);
    fleet_free(t.fleet);
    vec_done(&t.known);
    buf_done(&t.saved);
    buf_done(&t.after);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_allocation_fails)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
