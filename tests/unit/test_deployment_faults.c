/* SPDX-License-Identifier: Apache-2.0 */
/* Stories of one deployment from its first version to its end: neither a kill after any write nor a
 * fault at any step, another agent beside it or a lack of memory changes where they end. */
#include "support/agent_versions.h"
#include "support/agent_world.h"

static deployment_steps *begin(agent_world *w)
{
    deployment_steps *s = steps_new(STR("web"));
    assert_non_null(s);
    world_show(w, s, "web");
    return s;
}

/* A version after the other; one without a manifest is the end of the deployment. */
typedef struct version {
    const char *yaml, *options;
} version;

static const version plain[] = {
    {BOTH, OPTIONS}, {MAP("a", "two") "---\n" MAP("c", "one"), OPTIONS}, {NULL, NULL}};
static const version charts[] = {{TILLS "---\n" MAP("a", "one"), OPTIONS},
                                 {"ignored", CHART},
                                 {MAP("a", "two"), OPTIONS},
                                 {"ignored", CHART},
                                 {NULL, NULL}};

static const version renames[] = {{MAP("of-chart", "one") "---\n" MAP("a", "one"), OPTIONS},
                                  {"ignored", CHART},
                                  {"two", CHART_AS("named", "back", "shop", "")},
                                  {"three", CHART_AS("web", "back", "market", "")},
                                  {"four", CHART_AS("web", "front", "market", "")},
                                  {MAP("of-chart", "two"), OPTIONS},
                                  {"five", CHART_AS("web", "front", "shop", "")},
                                  {NULL, NULL}};

typedef struct faults {
    unsigned silent_write, bad_step;
    step_outcome outcome;
} faults;

typedef struct ending {
    char text[4096]; /* what is there at the end of each part */
    unsigned writes, steps;
} ending;

static ending story(const version *versions, faults with)
{
    agent_world w = world_new();
    w.silent_write = with.silent_write;
    w.bad_step = with.bad_step;
    w.bad_outcome = with.outcome;
    w.establishes = true;
    ending end = {.writes = 0};
    size_t len = 0, size = sizeof end.text;
    deployment_steps *s = steps_new(STR("web"));
    for (size_t i = 0; i == 0 || versions[i - 1].yaml; i++) {
        if (versions[i].yaml)
            world_release(&w, "web", versions[i].yaml, versions[i].options);
        else
            world_drop(&w, WORLD_DEPLOYMENTS "/web");
        world_show(&w, s, "web");
        step last = world_run(&w, &s, "web", REST);
        check_msg(last.kind == (versions[i].yaml ? STEP_WAIT : STEP_FORGET), "part %zu", i);
        for (size_t k = 0; k < w.objects.len; k++)
            if (w.objects.at[k].there && !strstr(w.objects.at[k].path, "contents/"))
                len += (size_t)snprintf(end.text + len, size - len, "%s;", w.objects.at[k].path);
        str key = object_text(go_member(world_read(&w, SHOP "a"), STR("data")), STR("key"));
        str applied = world_status(&w, "web", "appliedDeploymentID");
        len += (size_t)snprintf(end.text + len, size - len, "%.*s %.*s\n", STR_ARG(key),
                                STR_ARG(applied));
    }
    assert_true(len < size);
    end.writes = w.writes;
    end.steps = w.steps;
    steps_free(s);
    world_done(&w);
    return end;
}

static void check_ends(const version *versions, faults with, const ending *want)
{
    ending got = story(versions, with);
    check_msg(strcmp(want->text, got.text) == 0,
              "killed after write %u, outcome %d at step %u:\n%s\nexpected\n%s", with.silent_write,
              (int)with.outcome, with.bad_step, got.text, want->text);
}

static void kill_after_each_write(const version *versions)
{
    ending want = story(versions, (faults){0});
    assert_true(want.writes > 12);
    for (unsigned i = 1; i <= want.writes; i++)
        check_ends(versions, (faults){.silent_write = i}, &want);
}

static void fault_at_each_step(const version *versions)
{
    static const step_outcome outcomes[] = {OUTCOME_LATER, OUTCOME_REFUSED, OUTCOME_CONFLICT};
    ending want = story(versions, (faults){0});
    assert_true(want.steps > 30);
    for (size_t k = 0; k < COUNT_OF(outcomes); k++)
        for (unsigned i = 1; i <= want.steps; i++)
            check_ends(versions, (faults){.bad_step = i, .outcome = outcomes[k]}, &want);
}

static void test_kill_after_each_write(void **state)
{
    (void)state;
    kill_after_each_write(plain);
    kill_after_each_write(charts);
    kill_after_each_write(renames);
}

static void test_a_fault_at_each_step(void **state)
{
    (void)state;
    fault_at_each_step(plain);
    fault_at_each_step(charts);
    fault_at_each_step(renames);
}

/* Two agents on one cluster: whoever comes second finds the inventory changed and begins anew. */
static void test_two_agents(void **state)
{
    (void)state;
    agent_world w = world_new();
    world_release(&w, "web", BOTH, OPTIONS);
    deployment_steps *both[2] = {begin(&w), begin(&w)};
    rng r = rng_seeded();
    int resting = 0;
    for (int i = 0; i < 2000 && resting < 40; i++) {
        deployment_steps *s = both[rng_below(&r, 2)];
        steps_world facts = world_facts(&w);
        step next = steps_next(s, &facts);
        if (next.kind == STEP_WAIT) {
            resting++;
            w.now_ms += 500;
            continue;
        }
        bool killed;
        step_answer answer = world_do(&w, &next, &killed);
        steps_answer(s, &facts, &answer);
        if (next.kind == STEP_REPORT) {
            world_show(&w, both[0], "web");
            world_show(&w, both[1], "web");
        }
    }
    check_text(world_status(&w, "web", "ready"), "true");
    assert_true(world_has(&w, SHOP "a") && world_has(&w, SHOP "b"));
    steps_free(both[0]);
    steps_free(both[1]);
    world_done(&w);
}

/* One allocation of the agent fails, counted over all its steps. */
typedef struct shortage {
    uint64_t left; /* until then */
    uint64_t before;
    bool happened;
} shortage;

static void shortage_begin(shortage *m)
{
    m->before = mem_calls();
    mem_fail_at(m->happened ? 0 : m->left);
}

static void shortage_end(shortage *m)
{
    if (!m->happened && mem_failed())
        m->happened = true;
    else if (!m->happened)
        m->left -= mem_calls() - m->before;
    mem_fail_at(0);
}

static bool runs_short(uint64_t nth)
{
    agent_world w = world_new();
    shortage m = {.left = nth};
    world_release(&w, "web", BOTH, OPTIONS);
    deployment_steps *s = begin(&w);
    for (int i = 0; i < 400; i++) {
        steps_world facts = world_facts(&w);
        shortage_begin(&m);
        step next = steps_next(s, &facts);
        shortage_end(&m);
        if (next.kind == STEP_WAIT) {
            if (next.due_ms - w.now_ms >= REST)
                break;
            w.now_ms = next.due_ms > w.now_ms ? next.due_ms : w.now_ms + 1;
            continue;
        }
        bool killed;
        step_answer answer = world_do(&w, &next, &killed);
        shortage_begin(&m);
        steps_answer(s, &facts, &answer);
        shortage_end(&m);
        if (next.kind == STEP_REPORT)
            world_show(&w, s, "web");
    }
    check_msg(str_eq(world_status(&w, "web", "ready"), STR("true")), "allocation %llu",
              (unsigned long long)nth);
    assert_true(world_has(&w, SHOP "a") && world_has(&w, SHOP "b"));
    steps_free(s);
    world_done(&w);
    return m.happened;
}

/* Whichever it is, the agent rests a while and comes to the same end. */
static void test_memory(void **state)
{
    (void)state;
    int64_t live = mem_live();
    uint64_t nth = 1;
    while (runs_short(nth))
        nth++;
    assert_true(nth > 100);
    assert_int_equal(mem_live(), live);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kill_after_each_write),
        cmocka_unit_test(test_a_fault_at_each_step),
        cmocka_unit_test(test_two_agents),
        cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
