/* SPDX-License-Identifier: Apache-2.0 */
/* What pods' states mean, and whose edit of a node's state it was. */
#include "support/check.h"

#include "engine/pod_rules.h"

static void stuck_words(void **state)
{
    (void)state;
    static const char *const stuck[] = {"ImagePullBackOff",     "ErrImagePull",
                                        "ErrImageNeverPull",    "InvalidImageName",
                                        "CreateContainerError", "CreateContainerConfigError"};
    static const char *const others[] = {"",
                                         "ContainerCreating",
                                         "PodInitializing",
                                         "CrashLoopBackOff",
                                         "imagepullbackoff",
                                         "ErrImagePull "};
    for (size_t i = 0; i < COUNT_OF(stuck); i++)
        check_msg(stage_is_stuck(str_of(stuck[i])), "%s", stuck[i]);
    for (size_t i = 0; i < COUNT_OF(others); i++)
        check_msg(!stage_is_stuck(str_of(others[i])), "%s", others[i]);
    assert_int_equal(STAGE_STUCK_MS, 60000);
}

static void failures_that_come_again(void **state)
{
    (void)state;
    assert_true(stage_only_fails_again(STR("InvalidImageName")));
    assert_false(stage_only_fails_again(STR("ImagePullBackOff")));
    assert_false(stage_only_fails_again(STR_EMPTY));
}

static void pods_of_a_drain(void **state)
{
    (void)state;
    drain_pod_view p = {.space = STR("default"), .phase = STR("Running")};
    assert_true(drain_takes(&p, 0));
    p.phase = STR("Pending");
    assert_true(drain_takes(&p, 0));
    static const char *const ended[] = {"Succeeded", "Failed", "Unknown", ""};
    for (size_t i = 0; i < COUNT_OF(ended); i++) {
        drain_pod_view over = {.space = STR("default"), .phase = str_of(ended[i])};
        check_msg(!drain_takes(&over, 0) && !drain_runs(&over), "%s", ended[i]);
    }
    drain_pod_view spared[] = {p, p, p, p};
    spared[0].tolerates = TOLERATES_NAMED;
    spared[1].of_daemon_set = true;
    spared[2].mirror = true;
    spared[3].space = STR("kube-system");
    for (size_t i = 0; i < COUNT_OF(spared); i++)
        check_msg(!drain_takes(&spared[i], 0) && drain_runs(&spared[i]), "%zu", i);
}

static void tolerations_of_a_cordon(void **state)
{
    (void)state;
    static const char cordon[] = "node.kubernetes.io/unschedulable";
    static const struct {
        const char *key, *op, *effect;
        cordon_toleration expected;
    } rows[] = {
        {cordon, "Exists", "NoSchedule", TOLERATES_NAMED},
        {cordon, "Equal", "", TOLERATES_NAMED},
        {cordon, "", "NoExecute", TOLERATES_NAMED}, /* Skyhook looks at no more than the key */
        {"", "Exists", "", TOLERATES_ANY},
        {"", "Exists", "NoSchedule", TOLERATES_ANY},
        {"", "Exists", "NoExecute", TOLERATES_NONE},
        {"", "Exists", "PreferNoSchedule", TOLERATES_NONE},
        {"", "Equal", "", TOLERATES_NONE},
        {"", "", "", TOLERATES_NONE},
        {"node.kubernetes.io/not-ready", "Exists", "", TOLERATES_NONE},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        pod_toleration t = {
            .key = str_of(rows[i].key), .op = str_of(rows[i].op), .effect = str_of(rows[i].effect)};
        check_msg(toleration_of_cordon(&t) == rows[i].expected, "row %zu", i);
    }
}

/* Who was there goes; who came back meanwhile would come back again. */
static void successors_stay(void **state)
{
    (void)state;
    drain_pod_view pod = {.space = STR("default"), .phase = STR("Running"), .created_ms = 5000};
    const int64_t begun[] = {0, 5001, 5000, 4000};
    for (size_t i = 0; i < COUNT_OF(begun); i++) {
        pod.tolerates = TOLERATES_ANY;
        assert_int_equal(drain_takes(&pod, begun[i]), i < 2);
        pod.tolerates = TOLERATES_NONE;
        assert_true(drain_takes(&pod, begun[i]));
    }
}

static void who_is_told(void **state)
{
    (void)state;
    /* Each before all that follow. */
    static const drain_wait order[] = {
        {STR("z"), STR("z"), true, false},  {STR("a"), STR("b"), false, true},
        {STR("b"), STR("a"), false, true},  {STR("a"), STR("a"), false, false},
        {STR("a"), STR("b"), false, false}, {STR("b"), STR("a"), false, false},
    };
    for (size_t i = 0; i < COUNT_OF(order); i++)
        for (size_t k = 0; k < COUNT_OF(order); k++)
            check_msg(drain_tells(&order[i], &order[k]) == (i < k), "%zu %zu", i, k);
}

static void evictions(void **state)
{
    (void)state;
    const eviction_view tight = {.running = true, .ready = true, .healthy = 2, .desired = 2};
    eviction_view v = tight;
    assert_true(eviction_refused(&v));
    v.allowed = 1;
    assert_false(eviction_refused(&v));
    v.behind = true;
    assert_true(eviction_refused(&v));
    v = tight;
    v.running = false;
    assert_false(eviction_refused(&v));
    v = tight;
    v.leaving = true;
    assert_false(eviction_refused(&v));
    /* One that is not ready may go if enough others are, or if its budget says so. */
    v = tight;
    v.ready = false;
    assert_false(eviction_refused(&v));
    v.healthy = 1;
    assert_true(eviction_refused(&v));
    v.unready_always = true;
    assert_false(eviction_refused(&v));
    v = tight;
    v.ready = false;
    v.healthy = v.desired = 0;
    assert_true(eviction_refused(&v));
}

static void edits(void **state)
{
    (void)state;
    static const struct {
        noted_view v;
        noted_edit want;
    } rows[] = {
        {{.record_there = true, .state_fits = true}, NOTED_NONE},
        {{.record_there = true, .record_changed = true, .record_ours = true, .state_fits = true},
         NOTED_NONE},
        {{.record_there = true, .record_changed = true, .state_fits = true}, NOTED_OPERATOR},
        {{.record_there = true, .record_changed = true}, NOTED_OPERATOR},
        {{.record_there = true}, NOTED_PERSON},
        {{.record_there = true, .state_gone = true}, NOTED_PERSON},
        {{.record_changed = true}, NOTED_NONE},
        {{.record_changed = true, .state_gone = true}, NOTED_PERSON},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        check_msg(noted_judge(&rows[i].v) == rows[i].want, "row %zu", i);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stuck_words),     cmocka_unit_test(failures_that_come_again),
        cmocka_unit_test(pods_of_a_drain), cmocka_unit_test(tolerations_of_a_cordon),
        cmocka_unit_test(successors_stay), cmocka_unit_test(who_is_told),
        cmocka_unit_test(evictions),       cmocka_unit_test(edits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
