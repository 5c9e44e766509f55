/* SPDX-License-Identifier: Apache-2.0 */
/* skyhook.md 2 and semantics.md E, F through the engine: stages, dependencies, interrupts, config
 * changes, uninstall, cordon and drain, reboots. */
#include "support/node_fleet.h"

#include "engine/interrupt.h"

#define API "apiVersion: skyhook.nvidia.com/v1alpha1\n"

static void add_skyhook(fleet *f, const char *more, const char *packages)
{
    fleet_document(f, API "kind: Skyhook\nmetadata: {name: sk}\nspec:\n%s  packages: {%s}\n", more,
                   packages);
}

static fleet *one_node(const char *more, const char *packages)
{
    fleet *f = fleet_new();
    add_skyhook(f, more, packages);
    fleet_nodes_add(f, 1);
    return f;
}

#define P(name, number) name ": {version: '" number "', image: r/" name "}"
#define PI(name, number, more) name ": {version: '" number "', image: r/" name ", " more "}"

static void install(void **state)
{
    (void)state;
    fleet *f = one_node("", P("tool", "1.0.0"));
    fleet_run(f, -1);
    check_lines(f, "start run record release cordon drain",
                "start sk node-001 __default__ #0\n"
                "record sk node-001 tool 1.0.0 apply in_progress\n"
                "run sk node-001 tool 1.0.0 apply #1\n"
                "record sk node-001 tool 1.0.0 apply complete\n"
                "record sk node-001 tool 1.0.0 config in_progress\n"
                "run sk node-001 tool 1.0.0 config #2\n"
                "record sk node-001 tool 1.0.0 config complete\n"
                "release sk node-001 __default__ complete\n");
    check_text(fleet_placement(f, "sk", "node-001").current, "tool:1.0.0");
    fleet_free(f);
}

static void install_with_interrupt(void **state)
{
    (void)state;
    fleet *f = one_node("", PI("tool", "1.0.0", "interrupt: {type: service, services: [b, a]}"));
    fleet_run(f, -1);
    check_lines(f, "start run release cordon drain uncordon",
                "start sk node-001 __default__ #0\n"
                "cordon sk node-001\n"
                "drain sk node-001\n"
                "run sk node-001 tool 1.0.0 apply #1\n"
                "run sk node-001 tool 1.0.0 config #2\n"
                "run sk node-001 tool 1.0.0 interrupt "
                "{\"type\":\"service\",\"services\":[\"a\",\"b\"]} #3\n"
                "run sk node-001 tool 1.0.0 post-interrupt #4\n"
                "uncordon sk node-001\n"
                "release sk node-001 __default__ complete\n");
    fleet_free(f);
}

/* Every package whose dependencies are complete may run; there is no barrier between levels. */
static void dependencies(void **state)
{
    (void)state;
    fleet *f = one_node("", P("aa", "1") ", " PI("bb", "1", "dependsOn: {aa: '1'}") ", " P(
                                "cc", "1") ", " PI("dd", "1", "dependsOn: {bb: '1', cc: '1'}"));
    f->nodes[0].silent = true;
    fleet_step(f);
    check_lines(f, "run", "run sk node-001 aa 1 apply #1\nrun sk node-001 cc 1 apply #2\n");
    f->nodes[0].silent = false;
    for (size_t i = 0; i < 2; i++) { /* aa alone goes on: bb does not wait for cc */
        fleet_tell(f, (fact){.kind = FACT_STAGE,
                             .stage = {STR("sk"), STR("node-001"), STR("aa"), STR("1"),
                                       i == 0 ? STR("apply") : STR("config"), i == 0 ? 1 : 3,
                                       OUTCOME_SUCCEEDED, STR_EMPTY, false}});
        if (i == 0)
            f->nodes[0].silent = true;
        fleet_step(f);
    }
    check_lines(f, "run", "run sk node-001 aa 1 config #3\nrun sk node-001 bb 1 apply #4\n");
    fleet_free(f);
}

static void serial(void **state)
{
    (void)state;
    fleet *f = one_node("  serial: true\n",
                        P("aa", "1") ", " PI("bb", "1", "dependsOn: {aa: '1'}") ", " P("cc", "1"));
    fleet_run(f, -1);
    check_lines(f, "run",
                "run sk node-001 aa 1 apply #1\nrun sk node-001 aa 1 config #2\n"
                "run sk node-001 bb 1 apply #3\nrun sk node-001 bb 1 config #4\n"
                "run sk node-001 cc 1 apply #5\nrun sk node-001 cc 1 config #6\n");
    fleet_free(f);
}

static void serial_stage(fleet *f, const char *name, const char *of, int64_t attempt)
{
    fleet_tell(f, (fact){.kind = FACT_STAGE,
                         .stage = {STR("sk"), STR("node-001"), str_of(name), str_of(of),
                                   STR("apply"), attempt, OUTCOME_SUCCEEDED, STR_EMPTY, false}});
    fleet_step(f);
}

/* What runs when an edit comes is a package like any other, whatever it is to the edit: an older
 * version, none at all, one that waits for another now, or one of two that began without serial. */
static void serial_after_edits(void **state)
{
    (void)state;
    static const struct {
        const char *before, *packages, *after, *then;
        int64_t attempt; /* of the stage of bb that runs */
    } rows[] = {
        {"  serial: true\n", P("bb", "1"), P("aa", "1") ", " P("bb", "2"), "aa 1 apply #2\n", 1},
        {"  serial: true\n", P("bb", "1"), P("aa", "1"), "aa 1 apply #2\n", 1},
        {"  serial: true\n", P("bb", "1"), P("aa", "1") ", " PI("bb", "1", "dependsOn: {aa: '1'}"),
         "aa 1 apply #2\n", 1},
        {"", P("aa", "1") ", " P("bb", "1"), P("aa", "1") ", " P("bb", "1"), "aa 1 config #3\n", 2},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        fleet *f = one_node(rows[i].before, rows[i].packages);
        f->nodes[0].silent = true;
        fleet_step(f);
        add_skyhook(f, "  serial: true\n", rows[i].after);
        fleet_step(f);
        fleet_lines(f, "");
        if (rows[i].attempt == 2)
            serial_stage(f, "aa", "1", 1);
        check_lines(f, "run", "");
        serial_stage(f, "bb", "1", rows[i].attempt);
        char want[128];
        snprintf(want, sizeof want, "run sk node-001 %s", rows[i].then);
        check_lines(f, "run", want);
        fleet_free(f);
    }
}

static void upgrade_and_downgrade(void **state)
{
    (void)state;
    fleet *f = one_node("", P("tool", "1.0.0"));
    fleet_run(f, -1);
    fleet_lines(f, "");
    add_skyhook(f, "", P("tool", "1.1.0"));
    fleet_run(f, -1);
    check_lines(f, "run record",
                "record sk node-001 tool 1.1.0 upgrade in_progress\n"
                "run sk node-001 tool 1.1.0 upgrade #3\n"
                "record sk node-001 tool 1.1.0 upgrade complete\n"
                "record sk node-001 tool 1.0.0\n"
                "record sk node-001 tool 1.1.0 config in_progress\n"
                "run sk node-001 tool 1.1.0 config #4\n"
                "record sk node-001 tool 1.1.0 config complete\n");
    add_skyhook(f, "", P("tool", "1.0.0")); /* lower: a fresh install beside the old entry */
    fleet_run(f, -1);
    check_lines(f, "run",
                "run sk node-001 tool 1.0.0 apply #5\nrun sk node-001 tool 1.0.0 config #6\n");
    check_text(fleet_placement(f, "sk", "node-001").current, "tool:1.1.0,tool:1.0.0");
    add_skyhook(f, "", P("tool", "1.0")); /* equal, but another identity */
    fleet_run(f, -1);
    check_lines(f, "run",
                "run sk node-001 tool 1.0 apply #7\nrun sk node-001 tool 1.0 config #8\n");
    add_skyhook(f, "", ""); /* removal leaves the entry and runs nothing */
    fleet_run(f, -1);
    check_lines(f, "run", "");
    check_state(f, "sk", "node-001", DONE);
    fleet_free(f);
}

static void uninstall(void **state)
{
    (void)state;
    fleet *f = one_node("", PI("tool", "1", "uninstall: {enabled: true, apply: false}"));
    fleet_run(f, -1);
    fleet_lines(f, "");
    add_skyhook(f, "", PI("tool", "1", "uninstall: {enabled: true, apply: true}"));
    fleet_run(f, -1);
    check_lines(f, "run record start",
                "start sk node-001 __default__ #1\n"
                "record sk node-001 tool 1 uninstall in_progress\n"
                "run sk node-001 tool 1 uninstall #3\n"
                "record sk node-001 tool 1\n");
    check_state(f, "sk", "node-001", DONE);
    add_skyhook(f, "", PI("tool", "1", "uninstall: {enabled: true, apply: false}"));
    fleet_run(f, -1);
    check_lines(f, "run", "run sk node-001 tool 1 apply #4\nrun sk node-001 tool 1 config #5\n");
    fleet_free(f);
}

static void uninstall_with_interrupt(void **state)
{
    (void)state;
    fleet *f = one_node(
        "", PI("tool", "1", "interrupt: {type: reboot}, uninstall: {enabled: true, apply: true}"));
    fleet_run(f, -1); /* never installed: there is nothing to do */
    check_lines(f, "run", "");
    check_state(f, "sk", "node-001", DONE);
    add_skyhook(
        f, "",
        PI("tool", "1", "interrupt: {type: noop}, uninstall: {enabled: true, apply: false}"));
    fleet_run(f, -1);
    fleet_lines(f, "");
    add_skyhook(
        f, "", PI("tool", "1", "interrupt: {type: noop}, uninstall: {enabled: true, apply: true}"));
    fleet_run(f, -1);
    check_lines(f, "run record cordon drain uncordon",
                "cordon sk node-001\ndrain sk node-001\n"
                "record sk node-001 tool 1 uninstall in_progress\n"
                "run sk node-001 tool 1 uninstall #5\n"
                "record sk node-001 tool 1 uninstall complete\n"
                "record sk node-001 tool 1 uninstall-interrupt in_progress\n"
                "run sk node-001 tool 1 uninstall-interrupt {\"type\":\"noop\"} #6\n"
                "record sk node-001 tool 1\n"
                "uncordon sk node-001\n");
    fleet_free(f);
}

/* A package that depends on what was uninstalled waits, and says so. */
static void dependency_uninstalled(void **state)
{
    (void)state;
    fleet *f = one_node("", PI("aa", "1", "uninstall: {enabled: true, apply: true}") ", " PI(
                                "bb", "1", "dependsOn: {aa: '1'}"));
    fleet_run(f, HOUR);
    check_lines(f, "run start", "");
    check_text(str_of(fleet_reasons(f, "sk", "node-001")), "dependency:edit:sk");
    fleet_free(f);
}

/* ---- interrupts ---- */

typedef struct merge_row {
    const char *first;  /* packages when they are installed */
    const char *then;   /* and edited: config changes */
    const char *detail; /* of the interrupt that runs last */
    const char *owner;
} merge_row;

#define SERVICE(list) "interrupt: {type: service, services: [" list "]}"
#define FOUR_BASE(foo, buz)                                                                        \
    PI("foo", "1",                                                                                 \
       SERVICE("foo, bar") ", configMap: {foo: '" foo "'},"                                        \
                           " configInterrupts: {foo: {type: service, services: [dogs]}}")          \
    ", " PI("bar", "1", SERVICE("ducks, kittens")) ", " PI(                                        \
        "buz", "1",                                                                                \
        SERVICE("foo, log") ", configMap: {foo: '" buz "'},"                                       \
                            " configInterrupts: {foo: {type: service, services: [cows]}}")

/* 12.4 */
static const merge_row merges[] = {
    {FOUR_BASE("x", "x"), NULL,
     "{\"type\":\"service\",\"services\":[\"bar\",\"ducks\",\"foo\",\"kittens\",\"log\"]}", "bar"},
    {FOUR_BASE("x", "x") ", " PI("omg", "1", "interrupt: {type: reboot}"), NULL,
     "{\"type\":\"reboot\"}", "omg"},
    {PI("foo", "1", "interrupt: {type: noop}"), NULL, "{\"type\":\"noop\"}", "foo"},
    {PI("foo", "1", "interrupt: {type: noop}") ", " PI("bar", "1", SERVICE("foo, bar")), NULL,
     "{\"type\":\"service\",\"services\":[\"bar\",\"foo\"]}", "bar"},
    {PI("foo", "1", "interrupt: {type: noop}") ", " PI("bar", "1", SERVICE("foo, bar")) ", " PI(
         "baz", "1", "interrupt: {type: restartAllServices}"),
     NULL, "{\"type\":\"restartAllServices\"}", "baz"},
    {PI("foo", "1", "interrupt: {type: noop}") ", " PI("bar", "1", SERVICE("foo, bar")) ", " PI(
         "baz", "1", "interrupt: {type: restartAllServices}") ", " PI("omg", "1",
                                                                      "interrupt: {type: reboot}"),
     NULL, "{\"type\":\"reboot\"}", "omg"},
    /* interrupts of packages that cannot run yet are ignored: omg's comes after bar's */
    {PI("bar", "1", SERVICE("foo")) ", " PI("omg", "1",
                                            "interrupt: {type: noop}, dependsOn: {bar: '1'}"),
     NULL, "{\"type\":\"noop\"}", "omg"},
    /* config changes: only those of the changed keys */
    {FOUR_BASE("x", "x"), FOUR_BASE("x", "y"), "{\"type\":\"service\",\"services\":[\"cows\"]}",
     "buz"},
    {FOUR_BASE("x", "x"), FOUR_BASE("y", "y"),
     "{\"type\":\"service\",\"services\":[\"cows\",\"dogs\"]}", "buz"},
};

static void check_merge(const merge_row *r, size_t number)
{
    fleet *f = one_node("", r->first);
    fleet_run(f, -1);
    if (r->then) {
        fleet_lines(f, "");
        add_skyhook(f, "", r->then);
        fleet_run(f, -1);
    }
    char want[512];
    snprintf(want, sizeof want, "run sk node-001 %s 1 interrupt %s", r->owner, r->detail);
    check_msg(fleet_count(f, want) == 1, "merge %zu: %s\n%.*s", number, want,
              STR_ARG(buf_str(&f->trace)));
    check_state(f, "sk", "node-001", DONE);
    fleet_free(f);
}

static void interrupt_merge(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(merges); i++)
        check_merge(&merges[i], i + 1);
}

/* Mixed: one package is installed while another has a config change (12.4, third and fourth). */
static void interrupt_merge_mixed(void **state)
{
    (void)state;
    fleet *f = one_node("", FOUR_BASE("x", "x"));
    fleet_run(f, -1);
    fleet_lines(f, "");
    add_skyhook(
        f, "",
        PI("foo", "2", SERVICE("foo, bar")) ", " PI("bar", "2", SERVICE("ducks, kittens")) ", " PI(
            "buz", "1",
            SERVICE("foo, log") ", configMap: {foo: 'y'},"
                                " configInterrupts: {foo: {type: service, services: [cows]}}"));
    fleet_run(f, -1);
    assert_int_equal(
        fleet_count(f, "run sk node-001 bar 2 interrupt {\"type\":\"service\",\"services\":"
                       "[\"bar\",\"cows\",\"ducks\",\"foo\",\"kittens\"]}"),
        1);
    assert_int_equal(fleet_count(f, "record sk node-001 buz 1 interrupt skipped"), 1);
    assert_int_equal(fleet_count(f, "record sk node-001 buz 1 interrupt complete"), 1);
    assert_int_equal(fleet_count(f, " drain "), 1);
    fleet_free(f);
}

static void globs(void **state)
{
    (void)state;
    static const struct {
        const char *pattern, *text;
        bool matches;
    } rows[] = {{"*", "abc", true},       {"*.conf", "a.conf", true}, {"*.conf", "a.conf.d", false},
                {"a*b*c", "aXbYc", true}, {"a?c", "abc", true},       {"a?c", "a/c", false},
                {"*", "a/b", false},      {"[a-c]x", "bx", true},     {"[^a-c]x", "bx", false},
                {"[^a-c]x", "dx", true},  {"\\*", "*", true},         {"\\*", "a", false},
                {"[]", "a", false},       {"[a", "a", false},         {"", "", true},
                {"", "a", false},         {"a", "", false},           {"*a", "bab", false},
                {"**", "x", true},        {"a[b-]", "ab", false},     {"[\\]]", "]", true}};
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        check_msg(glob_match(str_of(rows[i].pattern), str_of(rows[i].text)) == rows[i].matches,
                  "%s on %s", rows[i].pattern, rows[i].text);
}

/* ---- config changes ---- */

static void config_changes(void **state)
{
    (void)state;
    fleet *f = fleet_new();
    fleet_document(f,
                   API "kind: Skyhook\nmetadata: {name: sk}\nspec:\n"
                       "  interruptionBudget: {count: 1}\n  packages: {%s}\n",
                   PI("tool", "1",
                      "interrupt: {type: noop}, configMap: {a: '1', b: '1'},"
                      " configInterrupts: {b: {type: noop}}"));
    fleet_nodes_add(f, 2);
    fleet_run(f, -1);
    fleet_lines(f, "");
    buf_clear(&f->batches);
    /* A key without an interrupt: config alone, no cordon; one node at a time. */
    fleet_document(f,
                   API "kind: Skyhook\nmetadata: {name: sk}\nspec:\n"
                       "  interruptionBudget: {count: 1}\n  packages: {%s}\n",
                   PI("tool", "1",
                      "interrupt: {type: noop}, configMap: {a: '2', b: '1'},"
                      " configInterrupts: {b: {type: noop}}"));
    fleet_run(f, -1);
    check_lines(f, "run cordon",
                "run sk node-001 tool 1 config #5\nrun sk node-002 tool 1 config #5\n");
    check_text(buf_str(&f->batches), "1,1");
    /* One with: config, interrupt, post-interrupt under a cordon. A key that goes changes nothing.
     */
    fleet_document(f,
                   API "kind: Skyhook\nmetadata: {name: sk}\nspec:\n"
                       "  interruptionBudget: {count: 1}\n  packages: {%s}\n",
                   PI("tool", "1",
                      "interrupt: {type: noop}, configMap: {b: '2'},"
                      " configInterrupts: {'b*': {type: noop}}"));
    fleet_run(f, 4 * MINUTE);
    check_lines(f, "run cordon uncordon",
                "cordon sk node-001\nrun sk node-001 tool 1 config #6\n"
                "run sk node-001 tool 1 interrupt {\"type\":\"noop\"} #7\n"
                "run sk node-001 tool 1 post-interrupt #8\nuncordon sk node-001\n"
                "cordon sk node-002\nrun sk node-002 tool 1 config #6\n"
                "run sk node-002 tool 1 interrupt {\"type\":\"noop\"} #7\n");
    fleet_run(f, -1);
    check_state(f, "sk", "node-002", DONE);
    fleet_free(f);
}

/* 12.5, read from the node's annotation. */
static void completeness(void **state)
{
    (void)state;
    static const struct {
        const char *stage, *package;
        bool complete;
    } rows[] = {
        {"\"state\":\"complete\"", P("foo", "1.2.3"), false},
        {"\"stage\":\"config\",\"state\":\"complete\"", P("foo", "1.2.3"), true},
        {"\"stage\":\"config\",\"state\":\"in_progress\"", P("foo", "1.2.3"), false},
        {"\"stage\":\"config\",\"state\":\"complete\"",
         PI("foo", "1.2.3", "interrupt: {type: reboot}"), false},
        {"\"stage\":\"interrupt\",\"state\":\"complete\"",
         PI("foo", "1.2.3", "interrupt: {type: service}"), false},
        {"\"stage\":\"post-interrupt\",\"state\":\"complete\"",
         PI("foo", "1.2.3", "interrupt: {type: service}"), true},
        {"\"stage\":\"uninstall\",\"state\":\"complete\"", P("foo", "1.2.3"), false},
        {"\"stage\":\"config\",\"state\":\"complete\"", P("foo", "1.2.4"), false},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char text[512];
        snprintf(text, sizeof text,
                 "{\"foo|1.2.3\":{\"name\":\"foo\",\"version\":\"1.2.3\",\"image\":\"r\",%s}}",
                 rows[i].stage);
        fleet *f = fleet_new();
        fleet_node *n = fleet_node_add(f, "n");
        n->annotations[n->annotation_count++] =
            (label){STR("skyhook.nvidia.com/nodeState_sk"), str_of(text)};
        fleet_show(f, n);
        add_skyhook(f, "  deploymentPolicy: none\n", rows[i].package);
        fleet_step(f);
        check_msg((fleet_placement(f, "sk", "n").state == PLACEMENT_DONE) == rows[i].complete,
                  "row %zu", i + 1);
        fleet_free(f);
    }
}

static void malformed_state(void **state)
{
    (void)state;
    fleet *f = one_node("", P("tool", "1"));
    fleet_node *n = fleet_node_add(f, "bad");
    n->annotations[n->annotation_count++] =
        (label){STR("skyhook.nvidia.com/nodeState_sk"), STR("{nonsense")};
    fleet_show(f, n);
    fleet_run(f, -1);
    check_state(f, "sk", "node-001", DONE);
    check_text(str_of(fleet_reasons(f, "sk", "bad")), "malformed:reset:bad");
    fleet_act(f, ACT_RESET, "sk", "bad");
    fleet_run(f, -1);
    check_state(f, "sk", "bad", DONE);
    fleet_free(f);
}

/* A person runs one package again on one node: from the beginning, or from a stage on. */
static void rerun_of_a_package(void **state)
{
    (void)state;
    fleet *f = one_node("", P("aa", "1") ", " PI("bb", "1", "interrupt: {type: noop}"));
    fleet_run(f, -1);
    fleet_lines(f, "");
    fact_act act = {
        .act = ACT_RESET, .change = STR("sk"), .target = STR("node-001"), .package = STR("aa")};
    fleet_tell(f, (fact){.kind = FACT_ACT, .act = act});
    fleet_run(f, -1);
    check_lines(f, "run", "run sk node-001 aa 1 apply #7\nrun sk node-001 aa 1 config #8\n");
    act.package = STR("bb");
    act.stage = STR("interrupt");
    fleet_tell(f, (fact){.kind = FACT_ACT, .act = act});
    fleet_run(f, -1);
    check_lines(f, "run",
                "run sk node-001 bb 1 interrupt {\"type\":\"noop\"} #9\n"
                "run sk node-001 bb 1 post-interrupt #10\n");
    check_state(f, "sk", "node-001", DONE);
    act.package = STR("nobody");
    fleet_tell(f, (fact){.kind = FACT_ACT, .act = act});
    fleet_run(f, -1);
    check_lines(f, "run", "");
    fleet_free(f);
}

/* ---- evidence ---- */

/* A6, I5: a stage of the packages as they were before an edit fails; that is recorded, and the node
 * goes on to the new ones in the same claim. */
static void replaced_stage_fails(void **state)
{
    (void)state;
    fleet *f = one_node("", P("tool", "1"));
    f->nodes[0].silent = true;
    fleet_step(f);
    add_skyhook(f, "", P("tool", "2"));
    fleet_step(f);
    fleet_tell(f, (fact){.kind = FACT_STAGE,
                         .stage = {STR("sk"), STR("node-001"), STR("tool"), STR("1"), STR("apply"),
                                   1, OUTCOME_FAILED, STR("Broken"), false}});
    fleet_step(f);
    check_state(f, "sk", "node-001", IN_FLIGHT);
    check_lines(f, "record run release",
                "record sk node-001 tool 1 apply in_progress\n"
                "run sk node-001 tool 1 apply #1\n"
                "record sk node-001 tool 1 apply erroring\n"
                "record sk node-001 tool 2 upgrade in_progress\n"
                "run sk node-001 tool 2 upgrade #2\n");
    fleet_free(f);
}

/* I5: an answer to another attempt, stage or version says nothing. */
static void stale_evidence(void **state)
{
    (void)state;
    fleet *f = one_node("", P("tool", "1"));
    f->nodes[0].silent = true;
    fleet_step(f);
    fact right = {.kind = FACT_STAGE,
                  .stage = {STR("sk"), STR("node-001"), STR("tool"), STR("1"), STR("apply"), 1,
                            OUTCOME_SUCCEEDED, STR_EMPTY, false}};
    for (int i = 0; i < 5; i++) {
        fact wrong = right;
        if (i == 0)
            wrong.stage.attempt = 2;
        if (i == 1)
            wrong.stage.version = STR("2");
        if (i == 2)
            wrong.stage.stage = STR("config");
        if (i == 3)
            wrong.stage.package = STR("other");
        if (i == 4)
            wrong.stage.target = STR("node-777");
        fleet_lines(f, "");
        fleet_tell(f, wrong);
        fleet_step(f);
        check_lines(f, "run record release", "");
    }
    fleet_tell(f, right);
    fleet_tell(f, right); /* twice is once */
    fleet_step(f);
    check_lines(f, "run", "run sk node-001 tool 1 config #2\n");
    fleet_free(f);
}

/* E: a job that vanished is tried again in the same claim; the third time it is an error. */
static void lost_jobs(void **state)
{
    (void)state;
    fleet *f = one_node("", P("tool", "1"));
    f->nodes[0].silent = true;
    fleet_step(f);
    for (int64_t attempt = 1; attempt <= 3; attempt++) {
        fleet_lines(f, "");
        fleet_tell(f, (fact){.kind = FACT_STAGE,
                             .stage = {STR("sk"), STR("node-001"), STR("tool"), STR("1"),
                                       STR("apply"), attempt, OUTCOME_LOST, STR_EMPTY, false}});
        fleet_step(f);
        if (attempt < 3)
            assert_int_equal(fleet_count(f, " run sk node-001 tool 1 apply"), 1);
    }
    check_lines(f, "release record",
                "record sk node-001 tool 1 apply erroring JobLost\n"
                "release sk node-001 __default__ erroring JobLost\n");
    fleet_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(install),
        cmocka_unit_test(install_with_interrupt),
        cmocka_unit_test(dependencies),
        cmocka_unit_test(serial),
        cmocka_unit_test(serial_after_edits),
        cmocka_unit_test(upgrade_and_downgrade),
        cmocka_unit_test(uninstall),
        cmocka_unit_test(uninstall_with_interrupt),
        cmocka_unit_test(dependency_uninstalled),
        cmocka_unit_test(interrupt_merge),
        cmocka_unit_test(interrupt_merge_mixed),
        cmocka_unit_test(globs),
        cmocka_unit_test(config_changes),
        cmocka_unit_test(completeness),
        cmocka_unit_test(malformed_state),
        cmocka_unit_test(rerun_of_a_package),
        cmocka_unit_test(replaced_stage_fails),
        cmocka_unit_test(stale_evidence),
        cmocka_unit_test(lost_jobs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
