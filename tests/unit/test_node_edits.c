/* SPDX-License-Identifier: Apache-2.0 */
/* What an edit does to packages that are there already, or on their way: config changes behind the
 * config stage (semantics.md E, F; skyhook.md 2.5). */
#include "support/node_fleet.h"

#include "engine/package_stage.h"

#define API "apiVersion: skyhook.nvidia.com/v1alpha1\n"
#define PI(name, number, more) name ": {version: '" number "', image: r/" name ", " more "}"

/* Every edit is another generation. */
static void edit(fleet *f, int generation, const char *packages)
{
    fleet_document(f,
                   API "kind: Skyhook\nmetadata: {name: sk, generation: %d}\nspec:\n"
                       "  packages: {%s}\n",
                   generation, packages);
}

static fleet *one_node(const char *packages)
{
    fleet *f = fleet_new();
    edit(f, 1, packages);
    fleet_nodes_add(f, 1);
    return f;
}

static void run_edited(fleet *f, int generation, const char *packages)
{
    edit(f, generation, packages);
    fleet_run(f, -1);
}

/* What is kept is enough for another engine. */
static void restart(fleet *f)
{
    err error;
    buf saved = BUF(LIMIT_TEXT_BYTES);
    assert_true(engine_save(f->engine, &saved));
    engine_free(f->engine);
    assert_non_null(f->engine = engine_new(&f->settings, &error));
    for (size_t i = 0; i < f->current.len; i++) {
        fact one = {.kind = FACT_DOCUMENT, .document = f->current.at[i]};
        assert_true(engine_take(f->engine, &one, 1, f->now_ms));
    }
    for (size_t i = 0; i < f->node_count; i++) {
        fact one = fleet_fact(&f->shown[i]);
        assert_true(engine_take(f->engine, &one, 1, f->now_ms));
    }
    assert_true(engine_restore(f->engine, buf_str(&saved), &error));
    buf_done(&saved);
}

static fact ended(const char *stage, int64_t attempt, outcome how)
{
    return (fact){.kind = FACT_STAGE,
                  .stage = {.change = STR("sk"),
                            .target = STR("node-001"),
                            .package = STR("tool"),
                            .version = STR("1"),
                            .stage = str_of(stage),
                            .attempt = attempt,
                            .outcome = how,
                            .reason = how == OUTCOME_FAILED ? STR("Broken") : STR_EMPTY}};
}

static void end_stage(fleet *f, const char *stage, int64_t attempt, outcome how)
{
    fleet_tell(f, ended(stage, attempt, how));
    fleet_run(f, 0);
}

/* Of the stage that runs. */
static int64_t generation_of(fleet *f, const char *stage)
{
    node_view v;
    int64_t found = 0;
    arena *a = arena_new(0);
    assert_true(engine_node(f->engine, STR("sk"), STR("node-001"), a, &v));
    for (size_t i = 0; i < v.package_count; i++)
        if (v.packages[i].running && str_eq(stage_text(v.packages[i].stage), str_of(stage)))
            found = v.packages[i].generation;
    arena_free(a);
    check_msg(found > 0, "%s does not run", stage);
    return found;
}

/* ---- config changes ---- */

#define TOOL(a, b)                                                                                 \
    PI("tool", "1",                                                                                \
       "interrupt: {type: noop}, configMap: {a: '" a "', b: '" b "'}, configInterrupts:"           \
       " {a: {type: service, services: [of-a]}, b: {type: service, services: [of-b]}}")

/* Until so many of the four stages of an installation have succeeded; the next one runs. */
static fleet *installed_until(int stages)
{
    static const char *const all[] = {"apply", "config", "interrupt", "post-interrupt"};
    fleet *f = one_node(TOOL("1", "1"));
    f->nodes[0].silent = true;
    fleet_run(f, 0);
    for (int i = 0; i < stages; i++)
        end_stage(f, all[i], i + 1, OUTCOME_SUCCEEDED);
    fleet_lines(f, "");
    return f;
}

/* E: the interrupt of a change that came while the one before it was run, or behind it, is another
 * piece of work: the agent would take it for the one that it ran. */
static void a_change_behind_the_interrupt_has_its_own(void **state)
{
    (void)state;
    for (int stages = 2; stages < 4; stages++) {
        fleet *f = installed_until(stages);
        int64_t attempt = stages + 1;
        edit(f, 2, TOOL("2", "1"));
        fleet_run(f, 0);
        assert_int_equal(generation_of(f, stages == 2 ? "interrupt" : "post-interrupt"), 1);
        if (stages == 2)
            end_stage(f, "interrupt", attempt++, OUTCOME_SUCCEEDED);
        end_stage(f, "post-interrupt", attempt++, OUTCOME_SUCCEEDED);
        assert_int_equal(generation_of(f, "config"), 2);
        end_stage(f, "config", attempt++, OUTCOME_SUCCEEDED);
        assert_int_equal(generation_of(f, "interrupt"), 2);
        assert_int_equal(fleet_count(f, "interrupt {\"type\":\"service\",\"services\":[\"of-a\"]}"),
                         1);
        fleet_free(f);
    }
}

/* One that came before the interrupt is served by it. */
static void a_change_before_the_interrupt_shares_it(void **state)
{
    (void)state;
    fleet *f = installed_until(1);
    edit(f, 2, TOOL("2", "1"));
    fleet_run(f, 0);
    end_stage(f, "config", 2, OUTCOME_SUCCEEDED);
    assert_int_equal(generation_of(f, "config"), 1);
    end_stage(f, "config", 3, OUTCOME_SUCCEEDED);
    assert_int_equal(generation_of(f, "interrupt"), 1);
    f->nodes[0].silent = false;
    end_stage(f, "interrupt", 4, OUTCOME_SUCCEEDED);
    fleet_run(f, -1);
    check_lines(f, "run",
                "run sk node-001 tool 1 config #3\n"
                "run sk node-001 tool 1 interrupt {\"type\":\"noop\"} #4\n"
                "run sk node-001 tool 1 post-interrupt #5\n");
    check_state(f, "sk", "node-001", DONE);
    fleet_free(f);
}

/* A change without an interrupt that ended before the next one came is work of its own, too. */
static void a_change_behind_a_config_stage_is_other_work(void **state)
{
    (void)state;
#define PLAIN(a, b)                                                                                \
    PI("tool", "1", "configMap: {a: '" a "', b: '" b "'}, configInterrupts: {b: {type: noop}}")
    fleet *f = one_node(PLAIN("1", "1"));
    f->nodes[0].silent = true;
    fleet_run(f, 0);
    end_stage(f, "apply", 1, OUTCOME_SUCCEEDED);
    edit(f, 2, PLAIN("1", "2"));
    fleet_run(f, 0);
    end_stage(f, "config", 2, OUTCOME_SUCCEEDED);
    assert_int_equal(generation_of(f, "config"), 2);
    end_stage(f, "config", 3, OUTCOME_SUCCEEDED);
    assert_int_equal(generation_of(f, "interrupt"), 2);
    fleet_free(f);
}

/* So is an uninstall: its interrupt is not the one that ran when it was asked for. */
static void an_uninstall_has_its_own_interrupt(void **state)
{
    (void)state;
#define GOES(apply)                                                                                \
    PI("tool", "1", "interrupt: {type: noop}, uninstall: {enabled: true, " apply "}")
    fleet *f = one_node(GOES("apply: false"));
    f->nodes[0].silent = true;
    fleet_run(f, 0);
    end_stage(f, "apply", 1, OUTCOME_SUCCEEDED);
    end_stage(f, "config", 2, OUTCOME_SUCCEEDED);
    assert_int_equal(generation_of(f, "interrupt"), 1);
    edit(f, 2, GOES("apply: true"));
    fleet_run(f, 0);
    end_stage(f, "interrupt", 3, OUTCOME_SUCCEEDED);
    assert_int_equal(generation_of(f, "uninstall"), 2);
    end_stage(f, "uninstall", 4, OUTCOME_SUCCEEDED);
    assert_int_equal(generation_of(f, "uninstall-interrupt"), 2);
    fleet_free(f);
}

/* F, skyhook.md 2.5: a node that errs behind its config stage begins there again with the fix. */
static void a_fix_reaches_who_errs(void **state)
{
    (void)state;
    static const char *const stages[] = {"interrupt", "post-interrupt"};
    for (size_t i = 0; i < 2; i++) {
        fleet *f = installed_until((int)i + 2);
        end_stage(f, stages[i], (int64_t)i + 3, OUTCOME_FAILED);
        check_state(f, "sk", "node-001", FAILED);
        fleet_lines(f, "");
        edit(f, 2, TOOL("2", "1"));
        f->nodes[0].silent = false;
        f->stage_ms = 1;
        fleet_run(f, 0);
        assert_int_equal(generation_of(f, "config"), 2);
        restart(f);
        fleet_run(f, -1);
        char want[256];
        snprintf(want, sizeof want,
                 "run sk node-001 tool 1 config #%zu\n"
                 "run sk node-001 tool 1 interrupt {\"type\":\"noop\"} #%zu\n"
                 "run sk node-001 tool 1 post-interrupt #%zu\n",
                 i + 4, i + 5, i + 6);
        check_lines(f, "run", want);
        check_state(f, "sk", "node-001", DONE);
        fleet_free(f);
    }
}

/* The change that it erred at is carried together with the fix: a and b have their interrupts. */
static void a_fix_keeps_what_it_fixes(void **state)
{
    (void)state;
    fleet *f = one_node(TOOL("1", "1"));
    fleet_run(f, -1);
    edit(f, 2, TOOL("2", "1"));
    fleet_run(f, 150 * SECOND); /* config and interrupt */
    f->nodes[0].fails_once = true;
    fleet_run(f, 35 * SECOND);
    check_state(f, "sk", "node-001", FAILED);
    fleet_lines(f, "");
    run_edited(f, 3, TOOL("2", "2"));
    check_lines(f, "run",
                "run sk node-001 tool 1 config #8\n"
                "run sk node-001 tool 1 interrupt "
                "{\"type\":\"service\",\"services\":[\"of-a\",\"of-b\"]} #9\n"
                "run sk node-001 tool 1 post-interrupt #10\n");
    fleet_free(f);
}

/* A5: a node whose attempts are used up has fresh ones, and takes its turn as a fresh node. So has
 * one whose last attempt ran when the fix came. */
static void a_fix_gives_fresh_attempts(void **state)
{
    (void)state;
    static const char *const stages[] = {"config", "interrupt", "post-interrupt"};
    for (size_t i = 0; i < 6; i++) {
        bool runs = i >= 3;
        int64_t attempt = (int64_t)(i % 3) + 2;
        fleet *f = installed_until((int)attempt - 1);
        for (int failures = 0; failures < 11 - runs; failures++) {
            end_stage(f, stages[i % 3], attempt++, OUTCOME_FAILED);
            fleet_run(f, failures < 10 ? HOUR : 0);
        }
        edit(f, 2, TOOL("2", "1"));
        if (!runs) {
            check_text(str_of(fleet_reasons(f, "sk", "node-001")), "retry:retry:node-001");
        } else {
            check_state(f, "sk", "node-001", IN_FLIGHT);
            fleet_run(f, 0);
            end_stage(f, stages[i % 3], attempt, OUTCOME_FAILED);
        }
        f->nodes[0].silent = false;
        fleet_run(f, -1);
        check_state(f, "sk", "node-001", DONE);
        fleet_free(f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_change_behind_the_interrupt_has_its_own),
        cmocka_unit_test(a_change_before_the_interrupt_shares_it),
        cmocka_unit_test(a_change_behind_a_config_stage_is_other_work),
        cmocka_unit_test(an_uninstall_has_its_own_interrupt),
        cmocka_unit_test(a_fix_reaches_who_errs),
        cmocka_unit_test(a_fix_keeps_what_it_fixes),
        cmocka_unit_test(a_fix_gives_fresh_attempts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
