/* SPDX-License-Identifier: Apache-2.0 */
/* Drains: which pods they take, and how many nodes take turns. */
#include "support/check.h"

#include "support/operator_story.h"

#define PODS_OF_APPS "/api/v1/namespaces/default/pods"

/* No policy: all nodes at once. */
#define DRAINS(more) DRAINS_OF("sk", more)
#define DRAINS_OF(name, more)                                                                      \
    "{\"metadata\":{\"name\":\"" name "\"},\"spec\":{" more "\"packages\":{\"tune\":{\"version\":" \
    "\"1.0.0\",\"image\":\"example.test/tune\",\"interrupt\":{\"type\":\"service\","               \
    "\"services\":[\"a\"]}}}}}"

static fake *begin_drains(int nodes, const char *of_skyhook)
{
    fake *f = fake_new();
    fake_add_nodes(f, nodes);
    fake_create(f, FAKE_SKYHOOKS, of_skyhook);
    fake_start(f);
    return f;
}

static size_t count_status(fake *f, const char *status)
{
    size_t count = 0;
    for (size_t i = 0; i < f->count; i++)
        count += strcmp(f->objects[i].collection, FAKE_NODES) == 0 &&
                 strcmp(status_of(f, f->objects[i].name), status) == 0;
    return count;
}

/* A pod of n00 that tolerates every taint. */
static void create_tolerant(fake *f)
{
    char text[512], when[MOMENT_TEXT_BYTES + 1];
    moment now = {f->now_ms / 1000, 0};
    when[moment_format(now, when)] = '\0';
    snprintf(text, sizeof text,
             "{\"metadata\":{\"name\":\"agent\",\"namespace\":\"default\",\"creationTimestamp\":"
             "\"%s\"},\"spec\":{\"nodeName\":\"n00\",\"tolerations\":[{\"operator\":\"Exists\"}]},"
             "\"status\":{\"phase\":\"Running\"}}",
             when);
    fake_create(f, PODS_OF_APPS, text);
}

/* Whoever made it makes the next one at once, and the scheduler puts that on the cordoned node. */
static void comes_back(fake *f, const kube_write *w)
{
    if (w->verb == WRITE_EVICT)
        create_tolerant(f);
}

static void pods_that_come_back_stay(void **state)
{
    (void)state;
    fake *f = begin_drains(1, DRAINS(""));
    f->watch = comes_back;
    create_tolerant(f);
    f->now_ms += 5000;
    fake_run(f, -1);
    /* Of those that came in the same second nobody knows whether they came back. */
    uint64_t evictions = node_shell_count(f->shell).evictions;
    check_msg(evictions >= 1 && evictions <= 2, "%llu", (unsigned long long)evictions);
    assert_int_equal(count_status(f, "complete"), 1);
    fake_free(f);
}

#define SPARES_TRAINING "\"podNonInterruptLabels\":{\"matchLabels\":{\"kind\":\"training\"}},"

static void add_pod(fake *f, const char *name, int on, const char *kind)
{
    char text[512];
    snprintf(text, sizeof text,
             "{\"metadata\":{\"name\":\"%s\",\"namespace\":\"default\",\"labels\":{\"kind\":"
             "\"%s\"}},\"spec\":{\"nodeName\":\"n%02d\"},\"status\":{\"phase\":\"Running\"}}",
             name, kind, on);
    fake_create(f, PODS_OF_APPS, text);
}

/* Whatever is edited in the middle of a drain counts for pods that it knows already. */
static void labels_that_are_taken_back_spare_nobody(void **state)
{
    (void)state;
    fake *f = begin_drains(1, DRAINS(SPARES_TRAINING));
    add_pod(f, "job", 0, "training");
    fake_run(f, 60000);
    assert_int_equal(node_shell_count(f->shell).evictions, 0);
    fake_edit(f, FAKE_SKYHOOKS, "sk", "{\"spec\":{\"podNonInterruptLabels\":null}}");
    fake_run(f, -1);
    assert_int_equal(node_shell_count(f->shell).evictions, 1);
    assert_int_equal(count_status(f, "complete"), 1);
    fake_free(f);
}

static bool protects_web(fake *f, const char *pod_name)
{
    (void)f;
    return strcmp(pod_name, "web") == 0;
}

static void labels_that_are_added_spare_who_is_left(void **state)
{
    (void)state;
    fake *f = begin_drains(1, DRAINS(""));
    f->refuses = protects_web;
    add_pod(f, "web", 0, "training");
    fake_run(f, 7000);
    uint64_t evictions = node_shell_count(f->shell).evictions;
    assert_true(evictions > 0);
    fake_edit(f, FAKE_SKYHOOKS, "sk",
              "{\"spec\":{\"podNonInterruptLabels\":{\"matchLabels\":{\"kind\":\"training\"}}}}");
    fake_run(f, 60000);
    assert_int_equal(node_shell_count(f->shell).evictions, evictions);
    fake_edit(f, PODS_OF_APPS, "web", "{\"metadata\":{\"labels\":{\"kind\":\"batch\"}}}");
    fake_run(f, 1000);
    assert_int_equal(node_shell_count(f->shell).evictions, evictions + 1);
    fake_edit(f, PODS_OF_APPS, "web", "{\"status\":{\"phase\":\"Succeeded\"}}");
    fake_run(f, -1);
    assert_int_equal(count_status(f, "complete"), 1);
    fake_free(f);
}

/* More than can drain at once. */
#define CROWD 60
#define STUCK 40
#define HOUR_MS (INT64_C(3600) * 1000)

static const char *name_in(char out[16], const char *prefix, int number)
{
    snprintf(out, 16, "%s%02d", prefix, number);
    return out;
}

/* A pod that is told to go, and stays until let_go. */
static void add_lingering(fake *f, const char *name, int on)
{
    add_pod(f, name, on, "web");
    fake_edit(f, PODS_OF_APPS, name, "{\"metadata\":{\"finalizers\":[\"example.test/keep\"]}}");
}

static void let_go(fake *f, const char *name)
{
    fake_edit(f, PODS_OF_APPS, name, "{\"metadata\":{\"finalizers\":null}}");
}

/* People are told of a pod that a drain waits for, once, when it has taken long; not of pods that
 * end in time, and of the next one that blocks it anew. */
static void long_drains_are_told(void **state)
{
    (void)state;
    static const struct {
        const char *kind, *why;
    } rows[] = {{"web", "it was told to end, and has not"},
                {"training", "podNonInterruptLabels lets it end by itself"}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        fake *f = begin_drains(1, DRAINS(SPARES_TRAINING));
        char text[256];
        for (int k = 0; k < 2; k++) {
            add_pod(f, k == 0 ? "one" : "two", 0, rows[i].kind);
            if (i == 0)
                fake_edit(f, PODS_OF_APPS, k == 0 ? "one" : "two",
                          "{\"metadata\":{\"finalizers\":[\"example.test/keep\"]}}");
        }
        fake_run(f, 299 * 1000);
        assert_null(strstr(f->told.ptr, "the drain waits"));
        for (int k = 0; k < 2; k++) {
            const char *name = k == 0 ? "one" : "two";
            fake_run(f, (k == 0 ? 30 : 600) * 1000);
            snprintf(text, sizeof text,
                     "Node n00 Drain: the drain waits for pod default/%s for 5 minutes: %s\n", name,
                     rows[i].why);
            assert_int_equal(count_in(&f->told, text), 1);
            assert_int_equal(count_in(&f->told, "the drain waits"), k + 1);
            if (i == 0)
                let_go(f, name);
            else
                fake_delete(f, PODS_OF_APPS, name);
        }
        fake_run(f, -1);
        assert_int_equal(count_status(f, "complete"), 1);
        assert_int_equal(count_in(&f->told, "the drain waits"), 2);
        fake_free(f);
    }
}

static bool protects_all(fake *f, const char *pod_name)
{
    (void)f;
    (void)pod_name;
    return true;
}

enum { HELD_BY_TRAINING, HELD_BY_PODS_THAT_LINGER, HELD_BY_BUDGETS, HOLDS };

/* As many nodes as can drain at once wait for their pods, and those that have none wait for them
 * no longer than a turn. */
static void who_waits_lets_others_drain(void **state)
{
    (void)state;
    char name[16];
    for (int how = 0; how < HOLDS; how++) {
        fake *f = begin_drains(CROWD, DRAINS(SPARES_TRAINING));
        f->refuses = how == HELD_BY_BUDGETS ? protects_all : NULL;
        for (int i = 0; i < STUCK; i++)
            if (how == HELD_BY_PODS_THAT_LINGER)
                add_lingering(f, name_in(name, "pod", i), i);
            else
                add_pod(f, name_in(name, "pod", i), i,
                        how == HELD_BY_TRAINING ? "training" : "web");
        fake_run(f, 20000);
        check_msg(count_status(f, "complete") == CROWD - STUCK, "%d: %zu", how,
                  count_status(f, "complete"));
        fake_run(f, 60000);
        assert_int_equal(count_in(&f->told, "the drain waits for pod"),
                         how == HELD_BY_BUDGETS ? STUCK : 0); /* once each, whoever had turns */
        for (int i = 0; i < STUCK; i++)
            if (how == HELD_BY_PODS_THAT_LINGER)
                let_go(f, name_in(name, "pod", i));
            else
                fake_edit(f, PODS_OF_APPS, name_in(name, "pod", i),
                          "{\"status\":{\"phase\":\"Succeeded\"}}");
        fake_run(f, -1);
        assert_int_equal(count_status(f, "complete"), CROWD);
        fake_free(f);
    }
}

/* Who gives its turn away waits behind all others: with three times as many as can drain at once
 * everybody is looked at in the third turn, and again and again. */
static void turns_are_taken_in_order(void **state)
{
    (void)state;
    char name[16];
    fake *f = begin_drains(3 * STUCK, DRAINS(SPARES_TRAINING));
    for (int i = 0; i < 3 * STUCK; i++)
        add_pod(f, name_in(name, "pod", i), i, "training");
    for (int round = 0; round < 2; round++) {
        fake_run(f, 35000);
        for (int i = 0; i < 3 * STUCK; i++) {
            arena *a = arena_new(0);
            str why = sentence_of(f, a, name_in(name, "n", i));
            check_msg(str_find(why, str_of(name_in(name, round == 0 ? "pod" : "new", i))) !=
                          SIZE_MAX,
                      "round %d: %.*s", round, STR_ARG(why));
            arena_free(a);
        }
        for (int i = 0; round == 0 && i < 3 * STUCK; i++) {
            fake_delete(f, PODS_OF_APPS, name_in(name, "pod", i));
            add_pod(f, name_in(name, "new", i), i, "training");
        }
    }
    assert_int_equal(node_shell_count(f->shell).evictions, 0);
    fake_free(f);
}

/* Its time begins with its turn. */
static void waiting_for_a_turn_is_no_drain(void **state)
{
    (void)state;
    char name[16];
    fake *f = begin_drains(CROWD, DRAINS("\"drainTimeout\":\"5s\"," SPARES_TRAINING));
    for (int i = 0; i < CROWD; i++)
        add_pod(f, name_in(name, "pod", i), i, "training");
    for (int i = STUCK; i < CROWD; i++)
        fake_delete(f, PODS_OF_APPS, name_in(name, "pod", i));
    fake_run(f, 20000);
    assert_int_equal(count_status(f, "complete"), CROWD - STUCK);
    assert_int_equal(count_status(f, "erroring"), STUCK);
    fake_free(f);
}

/* A failure is told on the node, once: that of a stage as its own, and any other, too. */
static void failures_are_told(void **state)
{
    (void)state;
    fake *f = begin_drains(2, DRAINS("\"drainTimeout\":\"60s\"," SPARES_TRAINING));
    f->settings.engine.stage_retries = -1;
    fake_start(f);
    f->job_ms = 3 * HOUR_MS;
    add_pod(f, "pod", 0, "training");
    fake_run(f, 30000);
    fake_edit(f, FAKE_NODES, "n01",
              "{\"status\":{\"conditions\":[{\"type\":\"Ready\",\"status\":\"Unknown\"}]}}");
    fake_run(f, 2 * HOUR_MS);
    assert_int_equal(count_status(f, "erroring"), 2);
    assert_int_equal(count_in(&f->told, "Node n00 Apply: state erroring on [skyhook:sk]: Drain"),
                     1);
    assert_int_equal(count_in(&f->told, "Node n01 Apply: Package [tune:1.0.0] state erroring on "),
                     1);
    assert_int_equal(count_in(&f->told, "DrainTimeout"), 1);
    assert_int_equal(count_in(&f->told, "NodeLost"), 1);
    fake_free(f);
}

static void node_that_is_lost_while_it_drains(void **state)
{
    (void)state;
    fake *f = begin_drains(1, DRAINS(SPARES_TRAINING));
    add_pod(f, "pod", 0, "training");
    fake_run(f, 30000);
    fake_edit(f, FAKE_NODES, "n00",
              "{\"status\":{\"conditions\":[{\"type\":\"Ready\",\"status\":\"Unknown\"}]}}");
    fake_run(f, 2 * HOUR_MS);
    assert_int_equal(count_in(&f->told, "Node n00 Apply: state erroring on [skyhook:sk]: NodeLost"),
                     1);
    fake_free(f);
}

static void time_of_a_drain_outlives_restarts(void **state)
{
    (void)state;
    fake *f = begin_drains(1, DRAINS("\"drainTimeout\":\"60s\"," SPARES_TRAINING));
    add_pod(f, "pod", 0, "training");
    fake_run(f, 50000);
    check_text(str_of(status_of(f, "n00")), "in_progress");
    fake_start(f);
    fake_run(f, 9000);
    check_text(str_of(status_of(f, "n00")), "in_progress");
    fake_run(f, 2000);
    check_text(str_of(status_of(f, "n00")), "erroring");
    fake_free(f);
}

#define ON_POOL(pool) "\"nodeSelectors\":{\"matchLabels\":{\"pool\":\"" pool "\"}},"

/* Another Skyhook's nodes have all turns, and the time of those that wait is over before they get
 * one, as far as an operator can know that finds them: it has not begun. */
static void waiting_for_a_turn_outlives_restarts(void **state)
{
    (void)state;
    char name[16];
    fake *f = fake_new();
    fake_add_nodes(f, CROWD);
    for (int i = 0; i < STUCK; i++)
        add_pod(f, name_in(name, "pod", i), i, "training");
    for (int i = STUCK; i < CROWD; i++)
        fake_edit(f, FAKE_NODES, name_in(name, "n", i),
                  "{\"metadata\":{\"labels\":{\"pool\":\"b\"}}}");
    fake_create(f, FAKE_SKYHOOKS, DRAINS_OF("first", ON_POOL("a") SPARES_TRAINING));
    fake_start(f);
    fake_run(f, 1000);
    fake_create(f, FAKE_SKYHOOKS, DRAINS(ON_POOL("b") "\"drainTimeout\":\"5s\","));
    fake_run(f, 7000);
    assert_int_equal(count_status(f, "in_progress"), CROWD - STUCK);
    fake_start(f);
    fake_run(f, 20000);
    assert_int_equal(count_status(f, "complete"), CROWD - STUCK);
    fake_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pods_that_come_back_stay),
        cmocka_unit_test(labels_that_are_taken_back_spare_nobody),
        cmocka_unit_test(labels_that_are_added_spare_who_is_left),
        cmocka_unit_test(long_drains_are_told),
        cmocka_unit_test(who_waits_lets_others_drain),
        cmocka_unit_test(turns_are_taken_in_order),
        cmocka_unit_test(waiting_for_a_turn_is_no_drain),
        cmocka_unit_test(failures_are_told),
        cmocka_unit_test(node_that_is_lost_while_it_drains),
        cmocka_unit_test(time_of_a_drain_outlives_restarts),
        cmocka_unit_test(waiting_for_a_turn_outlives_restarts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
