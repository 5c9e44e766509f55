/* SPDX-License-Identifier: Apache-2.0 */
/* What an edit does to packages that are there already, or on their way: config changes behind the
 * config stage (semantics.md E, F; skyhook.md 2.5), older versions and newer ones again (2.4). */
#include "support/node_fleet.h"

#include "engine/package_stage.h"

#define API "apiVersion: skyhook.nvidia.com/v1alpha1\n"
#define P(name, number) name ": {version: '" number "', image: r/" name "}"
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

/* ---- versions ---- */

typedef struct way {
    const char *versions[6];
    const char *runs; /* of the last edit */
} way;

#define UPGRADE_TO(number) "run sk node-001 tool " number " upgrade\n"
#define APPLY_OF(number) "run sk node-001 tool " number " apply\n"

static const way ways[] = {
    {{"1.0.0", "1.1.0", "1.0.0", "1.1.0"}, UPGRADE_TO("1.1.0")},
    {{"1.0.0", "0.9.0", "1.0.0"}, UPGRADE_TO("1.0.0")},
    {{"1.1.0", "1.0.0", "0.9.0", "1.0.0"}, UPGRADE_TO("1.0.0")},
    {{"1.2.0", "1.0.0", "1.1.0"}, UPGRADE_TO("1.1.0")},
    {{"1.2.0", "1.0.0", "1.1.0", "1.2.0"}, UPGRADE_TO("1.2.0")},
    {{"1.0.0", "1.1.0", "1.0.0", "1.1.0", "1.0.0"}, APPLY_OF("1.0.0")},
    {{"1.0.0", "1.0", "1.0.0"}, APPLY_OF("1.0.0")},
    {{"1.1.0", "1.0.0", "1.0.0"}, ""},
    {{"1.0.0", "1.1.0", "1.1.0"}, ""},
};

/* The runs of first stages, without the numbers of their attempts. */
static void check_first_stages(fleet *f, const char *want, size_t row)
{
    str lines = str_of(fleet_lines(f, "run"));
    buf got = BUF(LIMIT_TEXT_BYTES);
    while (lines.len > 0) {
        str line = str_cut(&lines, '\n');
        line = str_cut(&line, '#');
        if (!str_ends(line, STR(" config ")))
            buf_addf(&got, "%.*s\n", (int)line.len - 1, line.ptr);
    }
    check_msg(str_eq(buf_str(&got), str_of(want)), "row %zu:\n%.*s", row, STR_ARG(buf_str(&got)));
    buf_done(&got);
}

static void run_way(fleet *f, const way *w)
{
    for (int i = 0; i < (int)COUNT_OF(w->versions) && w->versions[i]; i++) {
        char packages[128];
        snprintf(packages, sizeof packages, P("tool", "%s"), w->versions[i]);
        fleet_lines(f, "");
        run_edited(f, i + 1, packages);
        check_state(f, "sk", "node-001", DONE);
        restart(f);
        fleet_run(f, -1);
    }
}

/* skyhook.md 2.4: a version above one that is there is an upgrade, also when it was there before;
 * any other one is a fresh installation. */
static void versions_back_and_forth(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(ways); i++) {
        fleet *f = fleet_new();
        fleet_nodes_add(f, 1);
        run_way(f, &ways[i]);
        check_first_stages(f, ways[i].runs, i + 1);
        fleet_free(f);
    }
}

/* An upgrade that failed has been at the host: the older version is installed over it. */
static void back_from_an_upgrade_that_failed(void **state)
{
    (void)state;
    fleet *f = one_node(PI("tool", "1.0.0", "interrupt: {type: noop}"));
    fleet_run(f, -1);
    f->nodes[0].fails = true;
    edit(f, 2, PI("tool", "1.1.0", "interrupt: {type: noop}"));
    fleet_run(f, 65 * SECOND);
    check_state(f, "sk", "node-001", FAILED);
    fleet_lines(f, "");
    f->nodes[0].fails = false;
    run_edited(f, 3, PI("tool", "1.0.0", "interrupt: {type: noop}"));
    check_lines(f, "run drain",
                "run sk node-001 tool 1.0.0 apply #6\nrun sk node-001 tool 1.0.0 config #7\n"
                "run sk node-001 tool 1.0.0 interrupt {\"type\":\"noop\"} #8\n"
                "run sk node-001 tool 1.0.0 post-interrupt #9\n");
    check_state(f, "sk", "node-001", DONE);
    fleet_free(f);
}

/* One that was decided and never ran was not: nothing is done, and nothing is left of it. */
static void back_from_an_upgrade_that_never_ran(void **state)
{
    (void)state;
    fleet *f = one_node(P("tool", "1.0.0"));
    fleet_run(f, -1);
    f->nodes[0].silent = true;
    edit(f, 2, P("tool", "1.1.0"));
    fleet_run(f, 0);
    restart(f);
    edit(f, 3, P("tool", "1.0.0"));
    fleet_run(f, 0);
    check_state(f, "sk", "node-001", IN_FLIGHT);
    fleet_lines(f, "");
    fact lost = ended("upgrade", 3, OUTCOME_LOST);
    lost.stage.version = STR("1.1.0");
    lost.stage.not_begun = true;
    fleet_tell(f, lost);
    fleet_run(f, 0);
    check_lines(f, "run record", "record sk node-001 tool 1.1.0\n");
    check_state(f, "sk", "node-001", DONE);
    check_text(fleet_placement(f, "sk", "node-001").current, "tool:1.0.0");
    fleet_free(f);
}

/* ---- versions that never came to the node ---- */

#define TYPO "1.0.1"
#define LEAVES_LATER "uninstall: {enabled: true, apply: false}"
#define LEAVES "uninstall: {enabled: true, apply: true}"

/* The first attempt at this document fails: without having done anything, or in the middle. */
static void fail_first(fleet *f, int generation, bool nothing_runs, const char *packages)
{
    f->nodes[0].fails = true;
    f->nodes[0].nothing_runs = nothing_runs;
    edit(f, generation, packages);
    fleet_run(f, 65 * SECOND);
    check_state(f, "sk", "node-001", FAILED);
    f->nodes[0].fails = false;
    fleet_lines(f, "");
}

static fleet *failed_first(bool nothing_ran, const char *packages)
{
    fleet *f = fleet_new();
    fleet_nodes_add(f, 1);
    fail_first(f, 1, nothing_ran, packages);
    return f;
}

/* There is nothing to be upgraded: the version that can be pulled is installed. */
static void a_version_that_could_not_be_pulled_is_not_upgraded(void **state)
{
    (void)state;
    fleet *f = failed_first(true, P("tool", TYPO));
    restart(f);
    run_edited(f, 2, P("tool", "1.0.2"));
    check_lines(f, "run",
                "run sk node-001 tool 1.0.2 apply #2\nrun sk node-001 tool 1.0.2 config #3\n");
    check_state(f, "sk", "node-001", DONE);
    check_text(fleet_placement(f, "sk", "node-001").current, "tool:1.0.2");
    fleet_free(f);
    f = failed_first(false, P("tool", TYPO)); /* it may have been at the host */
    run_edited(f, 2, P("tool", "1.0.2"));
    check_lines(f, "run",
                "run sk node-001 tool 1.0.2 upgrade #2\nrun sk node-001 tool 1.0.2 config #3\n");
    fleet_free(f);
}

/* One attempt of many that did something is enough. */
static void one_attempt_that_ran_is_enough(void **state)
{
    (void)state;
    for (int lost = 0; lost < 2; lost++) {
        fleet *f = failed_first(true, P("tool", TYPO));
        f->nodes[0].silent = true;
        fleet_run(f, 20 * SECOND);
        fact how = ended("apply", 2, lost ? OUTCOME_LOST : OUTCOME_FAILED);
        how.stage.version = STR(TYPO);
        fleet_tell(f, how);
        fleet_run(f, 0);
        if (lost) { /* the next one follows at once */
            how.stage.attempt = 3;
            how.stage.outcome = OUTCOME_FAILED;
            how.stage.nothing_ran = true;
            fleet_tell(f, how);
            fleet_run(f, 0);
        }
        f->nodes[0].silent = false;
        fleet_lines(f, "");
        run_edited(f, 2, P("tool", "1.0.2"));
        assert_int_equal(fleet_count(f, "tool 1.0.2 upgrade #"), 1);
        assert_int_equal(fleet_count(f, "tool 1.0.2 apply #"), 0);
        fleet_free(f);
    }
}

/* What was there before is there still. */
static void back_from_an_upgrade_that_could_not_be_pulled(void **state)
{
    (void)state;
    fleet *f = one_node(PI("tool", "1.0.0", "interrupt: {type: reboot}"));
    fleet_run(f, -1);
    fleet_lines(f, "");
    fail_first(f, 2, true, PI("tool", TYPO, "interrupt: {type: reboot}"));
    restart(f);
    run_edited(f, 3, PI("tool", "1.0.0", "interrupt: {type: reboot}"));
    check_lines(f, "run drain record uncordon",
                "record sk node-001 tool 1.0.1\nuncordon sk node-001\n");
    check_state(f, "sk", "node-001", DONE);
    check_text(fleet_placement(f, "sk", "node-001").current, "tool:1.0.0");
    fleet_free(f);
}

/* Its uninstall could not be pulled either. */
static void what_could_not_be_pulled_is_not_uninstalled(void **state)
{
    (void)state;
    fleet *f = failed_first(true, PI("tool", TYPO, LEAVES_LATER));
    run_edited(f, 2, PI("tool", TYPO, LEAVES));
    check_lines(f, "run record", "record sk node-001 tool 1.0.1\n");
    check_state(f, "sk", "node-001", DONE);
    check_text(fleet_placement(f, "sk", "node-001").current, "");
    run_edited(f, 3,
               PI("tool", TYPO, LEAVES_LATER)); /* and it is installed when it is wanted again */
    check_lines(f, "run",
                "run sk node-001 tool 1.0.1 apply #2\nrun sk node-001 tool 1.0.1 config #3\n");
    fleet_free(f);
    f = failed_first(false, PI("tool", TYPO, LEAVES_LATER));
    run_edited(f, 2, PI("tool", TYPO, LEAVES));
    check_lines(f, "run", "run sk node-001 tool 1.0.1 uninstall #2\n");
    fleet_free(f);
}

/* Not even while it is tried again. */
static void a_deletion_does_not_wait_for_what_could_not_be_pulled(void **state)
{
    (void)state;
    for (int late = 0; late < 2; late++) {
        fleet *f = failed_first(true, PI("tool", TYPO, LEAVES_LATER));
        f->nodes[0].silent = late;
        fleet_run(f, late * 20 * SECOND);
        fleet_lines(f, "");
        fleet_document(f,
                       API "kind: Skyhook\nmetadata: {name: sk, generation: 2, deletionTimestamp: "
                           "'2026-11-16T07:00:00Z', finalizers: [skyhook.nvidia.com/skyhook]}\n"
                           "spec:\n  packages: {" PI("tool", TYPO, LEAVES_LATER) "}\n");
        fleet_run(f, 0);
        if (late) {
            check_lines(f, "run record finalize", "");
            fact how = ended("apply", 2, OUTCOME_FAILED);
            how.stage.version = STR(TYPO);
            how.stage.nothing_ran = true;
            fleet_tell(f, how);
            fleet_run(f, 0);
        }
        check_lines(f, "run record finalize",
                    late ? "record sk node-001 tool 1.0.1 apply erroring Broken\n"
                           "record sk node-001 tool 1.0.1\nfinalize sk\n"
                         : "record sk node-001 tool 1.0.1\nfinalize sk\n");
        fleet_free(f);
    }
}

/* Whoever depends on a version waits until it is there again, and drains for its interrupt. */
static void forth_again_with_all_that_belongs_to_it(void **state)
{
    (void)state;
#define BOTH(number)                                                                               \
    PI("aa", number,                                                                               \
       "interrupt: {type: noop}, configMap: {k: '" number "'}, configInterrupts: {}")              \
    ", " PI("bb", "1", "dependsOn: {aa: '" number "'}")
    fleet *f = one_node(BOTH("1.0.0"));
    fleet_run(f, -1);
    run_edited(f, 2, BOTH("1.1.0"));
    run_edited(f, 3, BOTH("1.0.0"));
    fleet_lines(f, "");
    run_edited(f, 4, BOTH("1.1.0"));
    check_lines(f, "run drain",
                "drain sk node-001\n"
                "run sk node-001 aa 1.1.0 upgrade #15\nrun sk node-001 aa 1.1.0 config #16\n"
                "run sk node-001 aa 1.1.0 interrupt {\"type\":\"noop\"} #17\n"
                "run sk node-001 aa 1.1.0 post-interrupt #18\n");
    check_text(fleet_placement(f, "sk", "node-001").current, "bb:1,aa:1.1.0");
    fleet_free(f);
}

/* What Skyhook's operator left has no attempts: the versions alone say what came last. */
static void versions_that_another_operator_left(void **state)
{
    (void)state;
#define LEFT(number, stage, state)                                                                 \
    "\"tool|" number "\":{\"name\":\"tool\",\"version\":\"" number                                 \
    "\",\"image\":\"r\",\"stage\":\"" stage "\",\"state\":\"" state "\"}"
#define BOTH_LEFT                                                                                  \
    "{" LEFT("1.0.0", "config", "complete") "," LEFT("1.1.0", "config", "complete") "}"
    static const struct {
        const char *left, *version, *runs;
    } rows[] = {
        {BOTH_LEFT, "1.0.0", ""},
        {BOTH_LEFT, "1.1.0", UPGRADE_TO("1.1.0")},
        {"{" LEFT("1.0.0", "config", "complete") "," LEFT("1.1.0", "upgrade", "complete") "}",
         "1.1.0", ""},
        {"{" LEFT("1.0.0", "config", "complete") "," LEFT("1.1.0", "upgrade", "in_progress") "}",
         "1.1.0", UPGRADE_TO("1.1.0")},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char packages[128];
        fleet *f = fleet_new();
        fleet_node *n = fleet_node_add(f, "node-001");
        n->annotations[n->annotation_count++] =
            (label){STR("skyhook.nvidia.com/nodeState_sk"), str_of(rows[i].left)};
        fleet_show(f, n);
        snprintf(packages, sizeof packages, P("tool", "%s"), rows[i].version);
        run_edited(f, 1, packages);
        check_first_stages(f, rows[i].runs, i + 1);
        check_state(f, "sk", "node-001", DONE);
        fleet_free(f);
    }
}

/* ---- what another engine has to know ---- */

/* Success that was said too early waits for its reboot also after a restart, and what the node was
 * rebooted for is known after a reset. */
static void reboots_are_remembered(void **state)
{
    (void)state;
    fleet *f = one_node(
        PI("first", "1", "interrupt: {type: reboot}") ", " PI(
            "tool", "1", "interrupt: {type: reboot}, dependsOn: {first: '1'}"));
    fleet_node *n = &f->nodes[0];
    fleet_run(f, 6 * MINUTE + SECOND);
    n->silent = true;
    fleet_lines(f, "");
    fleet_tell(f, ended("interrupt", 7, OUTCOME_SUCCEEDED));
    fleet_run(f, SECOND);
    restart(f);
    fleet_run(f, SECOND);
    check_lines(f, "run record", "");
    snprintf(n->boot, FLEET_TEXT, "boot-of-tool");
    fleet_show(f, n);
    n->silent = false;
    fleet_run(f, -1);
    check_state(f, "sk", "node-001", DONE);
    restart(f);
    fleet_act(f, ACT_RESET, "sk", "");
    fleet_step(f);
    restart(f);
    fleet_run(f, -1);
    check_state(f, "sk", "node-001", DONE);
    assert_int_equal(fleet_count(f, "erroring"), 0);
    fleet_free(f);
}

/* Whom a person blocked is fresh when it is released, also if that is while nobody looks. */
static void a_release_that_nobody_sees(void **state)
{
    (void)state;
    for (int seen = 0; seen < 2; seen++) {
        fleet *f = fleet_with((engine_settings){.stage_retries = -1});
        edit(f, 1, P("tool", "1"));
        fleet_nodes_add(f, 1);
        fleet_node *n = &f->nodes[0];
        n->fails = true;
        fleet_run(f, HOUR);
        check_state(f, "sk", "node-001", FAILED);
        fleet_label(n, "skyhook.nvidia.com/ignore", "true");
        fleet_show(f, n);
        fleet_run(f, HOUR);
        n->fails = false;
        fleet_label(n, "skyhook.nvidia.com/ignore", NULL);
        if (seen) {
            fleet_show(f, n);
        } else {
            f->shown[0] = *n;
            restart(f);
        }
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
        cmocka_unit_test(versions_back_and_forth),
        cmocka_unit_test(back_from_an_upgrade_that_failed),
        cmocka_unit_test(back_from_an_upgrade_that_never_ran),
        cmocka_unit_test(a_version_that_could_not_be_pulled_is_not_upgraded),
        cmocka_unit_test(one_attempt_that_ran_is_enough),
        cmocka_unit_test(back_from_an_upgrade_that_could_not_be_pulled),
        cmocka_unit_test(what_could_not_be_pulled_is_not_uninstalled),
        cmocka_unit_test(a_deletion_does_not_wait_for_what_could_not_be_pulled),
        cmocka_unit_test(forth_again_with_all_that_belongs_to_it),
        cmocka_unit_test(versions_that_another_operator_left),
        cmocka_unit_test(reboots_are_remembered),
        cmocka_unit_test(a_release_that_nobody_sees),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
