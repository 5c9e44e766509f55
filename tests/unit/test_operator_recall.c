/* SPDX-License-Identifier: Apache-2.0 */
/* An operator begins, and what its nodes remember is not what the cluster says now: somebody
 * changed it while nobody looked. */
#include "support/check.h"

#include "support/operator_story.h"

#define MOMENT_MS 100
#define STORY_MS 12000 /* all that happens to the first nodes */
#define LEFT 4         /* nodes that leave */

/* In a Skyhook that was made anew claims are counted anew: what is really disturbed is what counts.
 */
static void watch_nodes(fake *f, const kube_write *w)
{
    (void)w;
    watch_disturbed(f);
}

static void check_given_back(fake *f, int nodes, int64_t at_ms)
{
    char name[16];
    for (int i = 0; i < nodes; i++) {
        snprintf(name, sizeof name, "n%02d", i);
        check_msg(!yyjson_get_bool(fake_get(f, FAKE_NODES, name, "/spec/unschedulable")) &&
                      !holds_cordon(f, name, "sk"),
                  "%s is cordoned: stopped after %d ms\n%s", name, (int)at_ms, f->log.ptr);
    }
}

static fake *stop_after(const char *of_skyhook, int64_t at_ms)
{
    fake *f = begin(of_skyhook);
    add_pods(f);
    f->reboots = reboots_first;
    fake_run(f, at_ms);
    fake_end_side(&f->sides[0]);
    f->watch = watch_nodes;
    return f;
}

static void check_all_complete(fake *f, int64_t at_ms)
{
    const char *done = fake_text(f, FAKE_SKYHOOKS, "sk", "/status/completeNodes");
    check_msg(strcmp(done, "8/8") == 0, "%s: stopped after %d ms\n%s", done, (int)at_ms,
              f->log.ptr);
    check_given_back(f, NODES, at_ms);
}

/* As of one that was restored from a backup, or replaced by force. */
static void a_status_that_was_lost(void **state)
{
    (void)state;
    for (int64_t at_ms = 0; at_ms < STORY_MS; at_ms += MOMENT_MS) {
        fake *f = stop_after(skyhook_interrupt, at_ms);
        fake_edit(f, FAKE_SKYHOOKS, "sk", "{\"status\":null}");
        fake_start(f);
        fake_run(f, -1);
        check_all_complete(f, at_ms);
        fake_free(f);
    }
}

static void a_skyhook_that_was_made_anew(void **state)
{
    (void)state;
    for (int64_t at_ms = 0; at_ms < STORY_MS; at_ms += MOMENT_MS) {
        fake *f = stop_after(skyhook_interrupt, at_ms);
        fake_delete(f, FAKE_SKYHOOKS, "sk");
        fake_create(f, FAKE_SKYHOOKS, skyhook_interrupt);
        fake_start(f);
        fake_run(f, -1);
        check_all_complete(f, at_ms);
        fake_free(f);
    }
}

/* What is in flight goes on without the policy, too; nothing else starts before it is there. */
static void a_policy_and_a_status_that_were_lost(void **state)
{
    (void)state;
    for (int64_t at_ms = 0; at_ms < STORY_MS; at_ms += MOMENT_MS) {
        fake *f = stop_after(skyhook_interrupt, at_ms);
        fake_edit(f, FAKE_SKYHOOKS, "sk", "{\"status\":null}");
        fake_delete(f, FAKE_POLICIES, "p");
        fake_start(f);
        fake_run(f, -1);
        fake_create(f, FAKE_POLICIES, policy);
        fake_run(f, -1);
        check_all_complete(f, at_ms);
        fake_free(f);
    }
}

static const char skyhook_pool[] =
    "{\"metadata\":{\"name\":\"sk\"},\"spec\":{\"deploymentPolicy\":\"p\",\"nodeSelectors\":"
    "{\"matchLabels\":{\"pool\":\"a\"}},\"packages\":{\"tune\":{\"version\":\"1.0.0\",\"image\":"
    "\"example.test/tune\",\"interrupt\":{\"type\":\"reboot\"}}}}}";

/* Whatever was being done there when the operator stopped. */
static void nodes_that_left(void **state)
{
    (void)state;
    for (int64_t at_ms = 0; at_ms < STORY_MS; at_ms += MOMENT_MS) {
        fake *f = stop_after(skyhook_pool, at_ms);
        char name[16];
        for (int i = 0; i < LEFT; i++) {
            snprintf(name, sizeof name, "n%02d", i);
            fake_edit(f, FAKE_NODES, name, "{\"metadata\":{\"labels\":{\"pool\":\"b\"}}}");
        }
        fake_start(f);
        fake_run(f, -1);
        check_text(str_of(fake_text(f, FAKE_SKYHOOKS, "sk", "/status/completeNodes")), "4/4");
        check_given_back(f, NODES, at_ms);
        fake_free(f);
    }
}

/* Whoever took its finalizer away did not wait for the nodes. */
static void a_skyhook_that_went_by_force(void **state)
{
    (void)state;
    for (int64_t at_ms = 0; at_ms < STORY_MS; at_ms += MOMENT_MS) {
        fake *f = stop_after(skyhook_interrupt, at_ms);
        fake_delete(f, FAKE_SKYHOOKS, "sk");
        fake_start(f);
        fake_run(f, -1);
        check_given_back(f, NODES, at_ms);
        check_text(str_of(status_of(f, "n00")), "");
        fake_free(f);
    }
}

#define NOTE(key) "\"skyhook.nvidia.com/" key "\":\"true\""

/* What a person cordoned before stays so, and so does what another Skyhook, or an operator that
 * leaves no record, has taken. */
static void cordons_of_others_stay(void **state)
{
    (void)state;
    static const char *const notes[] = {NOTE("cordonedBefore"), NOTE("cordon_other")};
    for (size_t i = 0; i < COUNT_OF(notes); i++) {
        fake *f = stop_after(skyhook_interrupt, MOMENT_MS);
        char patch[256];
        assert_true(holds_cordon(f, "n00", "sk"));
        snprintf(patch, sizeof patch, "{\"metadata\":{\"annotations\":{%s}}}", notes[i]);
        fake_edit(f, FAKE_NODES, "n00", patch);
        fake_delete(f, FAKE_SKYHOOKS, "sk");
        fake_start(f);
        fake_run(f, -1);
        assert_false(holds_cordon(f, "n00", "sk"));
        assert_true(yyjson_get_bool(fake_get(f, FAKE_NODES, "n00", "/spec/unschedulable")));
        fake_free(f);
    }
    fake *f = begin_shared(); /* the other one's turn has come */
    fake_run(f, -1);
    fake_edit(f, FAKE_SKYHOOKS, "sl",
              "{\"spec\":{\"packages\":{\"tune-sl\":{\"version\":\"2.0.0\"}}}}");
    fake_run(f, 200);
    fake_end_side(&f->sides[0]);
    assert_true(holds_cordon(f, "n00", "sl"));
    fake_edit(f, FAKE_NODES, "n00",
              "{\"metadata\":{\"annotations\":{" NOTE(
                  "cordon_sk") ","
                               "\"skyhook.nvidia.com/drover_sk\":\"{\\\"attempt\\\":1}\"}}}");
    fake_delete(f, FAKE_SKYHOOKS, "sk");
    fake_start(f);
    fake_run(f, 400);
    assert_false(holds_cordon(f, "n00", "sk"));
    assert_true(holds_cordon(f, "n00", "sl"));
    fake_run(f, -1); /* watch_cordons looks at every write */
    assert_false(yyjson_get_bool(fake_get(f, FAKE_NODES, "n00", "/spec/unschedulable")));
    fake_free(f);
}

/* Nobody would ever take these taints away: the Skyhook does not hold them any more. */
static void taints_that_nobody_holds(void **state)
{
    (void)state;
    static const char *const edits[] = {
        NULL, /* it goes by force */
        "{\"spec\":{\"nodeSelectors\":{\"matchLabels\":{\"pool\":\"b\"}}}}",
        "{\"spec\":{\"runtimeRequired\":false,\"autoTaintNewNodes\":false}}",
        "{\"metadata\":{\"deletionTimestamp\":\"2026-11-16T07:00:00Z\"}}"};
    for (size_t i = 0; i < COUNT_OF(edits); i++) {
        fake *f = begin(skyhook_required);
        f->job_ms = 60000;
        fake_run(f, 5000);
        assert_int_equal(tainted(f), NODES);
        fake_end_side(&f->sides[0]);
        if (edits[i])
            fake_edit(f, FAKE_SKYHOOKS, "sk", edits[i]);
        else
            fake_delete(f, FAKE_SKYHOOKS, "sk");
        fake_start(f);
        fake_run(f, 70000); /* until the stage that runs has ended, too */
        check_msg(tainted(f) == 0, "%zu are tainted\n%s", tainted(f), f->log.ptr);
        fake_free(f);
    }
    fake *f = begin(skyhook_required); /* those that are held stay */
    f->job_ms = 60000;
    fake_run(f, 5000);
    fake_start(f);
    fake_run(f, 2000);
    assert_int_equal(tainted(f), NODES);
    fake_end_side(&f->sides[0]); /* and those of one that cannot be read may be */
    fake_edit(f, FAKE_SKYHOOKS, "sk", "{\"spec\":{\"packages\":{\"tune\":{\"version\":\"?\"}}}}");
    fake_start(f);
    fake_run(f, 2000);
    assert_int_equal(tainted(f), NODES);
    fake_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_status_that_was_lost),
        cmocka_unit_test(a_skyhook_that_was_made_anew),
        cmocka_unit_test(a_policy_and_a_status_that_were_lost),
        cmocka_unit_test(nodes_that_left),
        cmocka_unit_test(a_skyhook_that_went_by_force),
        cmocka_unit_test(cordons_of_others_stay),
        cmocka_unit_test(taints_that_nobody_holds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
