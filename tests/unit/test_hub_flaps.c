/* SPDX-License-Identifier: Apache-2.0 */
/* Targets that leave and are back before the shell has its turn: what runs there, and what was
 * released there, is not forgotten. */
#include "support/check.h"

#include "support/fake_fleet.h"

#define CLUSTERS 4
#define ONE ",\"rolloutStrategy\":{\"maxUnavailable\":1}"
#define STRICT                                                                                     \
    ",\"rolloutStrategy\":{\"maxUnavailable\":0,\"autoPartitionThreshold\":1,"                     \
    "\"autoPartitionSize\":2}"
#define GROUP                                                                                      \
    "{\"metadata\":{\"name\":\"ring\",\"namespace\":\"" FAKE_SPACE                                 \
    "\"},\"spec\":{\"selector\":{\"matchLabels\":{\"env\":\"prod\"}}}}"

static int64_t peak;

static void watch_peak(fake *f, const kube_write *w)
{
    (void)w;
    int64_t now = fleet_unavailable(f);
    peak = now > peak ? now : peak;
}

/* ---- what happens in between ---- */

static void nothing(fake *f)
{
    (void)f;
}

static void replace_group(fake *f)
{
    fake_delete(f, FAKE_GROUPS, "ring");
    fake_create(f, FAKE_GROUPS, GROUP);
}

static void edit_targets(fake *f)
{
    fake_edit(f, FAKE_BUNDLES, "app", "{\"spec\":{\"targets\":[{\"clusterName\":\"nobody\"}]}}");
    fake_edit(f, FAKE_BUNDLES, "app", "{\"spec\":{\"targets\":[{\"clusterGroup\":\"ring\"}]}}");
}

static void flap_labels(fake *f)
{
    for (int i = CLUSTERS; i > 0; i--)
        fleet_flap(f, i - 1);
}

static void make_cluster(fake *f, int at)
{
    char text[512];
    snprintf(text, sizeof text,
             "{\"metadata\":{\"name\":\"%s\",\"namespace\":\"" FAKE_SPACE
             "\",\"labels\":{\"env\":\"prod\"}},\"spec\":{},\"status\":{\"namespace\":\"ns-%s\"}}",
             fleet_name(at), fleet_name(at));
    fake_create(f, FAKE_CLUSTERS, text);
}

static void make_clusters_anew(fake *f)
{
    for (int i = 0; i < CLUSTERS; i++) {
        fake_delete(f, FAKE_CLUSTERS, fleet_name(i));
        make_cluster(f, i);
    }
}

/* As a list shows it: nobody says that the one of before is gone. */
static void replace_clusters(fake *f)
{
    make_clusters_anew(f);
    for (size_t i = 0; i < f->messages.len; i++) {
        fake_message m = f->messages.at[i];
        if (m.is_answer || m.doc)
            continue;
        memmove(&f->messages.at[i], &f->messages.at[i + 1], (f->messages.len - i - 1) * sizeof m);
        f->messages.len--;
        i--;
    }
}

static void (*const events[])(fake *f) = {nothing,     replace_group,      edit_targets,
                                          flap_labels, make_clusters_anew, replace_clusters};

static fake *begin(const char *more)
{
    fake *f = fake_new();
    for (int i = 0; i < CLUSTERS; i++)
        fake_add_cluster(f, fleet_name(i), "\"env\":\"prod\"");
    fake_create(f, FAKE_GROUPS, GROUP);
    fleet_add_bundle(f, "{\"clusterGroup\":\"ring\"}", more);
    fake_start(f);
    fake_run(f, -1);
    fleet_check(f, "4/4", 0);
    return f;
}

/* ---- stories ---- */

static void at_rest(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(events); i++) {
        fake *f = begin(ONE);
        uint64_t deployments = cluster_shell_count(f->shell).deployments;
        events[i](f);
        fake_run(f, 60000);
        fleet_check(f, "4/4", 0);
        assert_int_equal(cluster_shell_count(f->shell).deployments, deployments);
        fake_add_cluster(f, "late", "\"env\":\"prod\"");
        fake_run(f, 60000);
        fleet_check(f, "5/5", 0);
        fake_free(f);
    }
}

/* One cluster after the other, whatever happens while one is under way. */
static void in_mid_update(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(events); i++)
        for (int64_t after_ms = 0; after_ms < 9000; after_ms += 900) {
            fake *f = begin(ONE);
            f->agent_ms = 2000;
            f->watch = watch_peak;
            peak = 0;
            fleet_content(f, "two");
            fake_run(f, after_ms);
            events[i](f);
            fake_run(f, -1);
            check_msg(peak == 1, "event %zu after %lld: %lld unavailable\n%s", i,
                      (long long)after_ms, (long long)peak, f->log.ptr);
            fleet_check(f, "4/4", 0);
            fake_free(f);
        }
}

/* Before the answer to a write, and before the event of what it did. */
static void while_a_release_is_written(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(events); i++)
        for (int turns = 1; turns < 8; turns++)
            for (int at = 0; at < 2; at++) {
                fake *f = begin(ONE);
                f->answers_last = at == 1;
                f->agent_ms = 2000;
                f->watch = watch_peak;
                peak = 0;
                fleet_content(f, "two");
                for (int k = 0; k < turns; k++) {
                    if (k + 1 < turns)
                        fake_deliver(f);
                    assert_true(cluster_shell_turn(f->shell, f->now_ms));
                }
                events[i](f);
                if (turns % 2 == 0)
                    fleet_content(f, "three");
                fake_run(f, -1);
                check_msg(peak == 1, "event %zu, turn %d: %lld unavailable\n%s", i, turns,
                          (long long)peak, f->log.ptr);
                fleet_check(f, "4/4", 0);
                fake_free(f);
            }
}

/* What is told of Clusters and Bundles comes before answers and what is told of deployments. */
static void take_but_deployments(fake *f)
{
    for (size_t i = 0; i < f->messages.len; i++) {
        fake_message m = f->messages.at[i];
        if (m.is_answer || fake_is(m.collection, "bundledeployments"))
            continue;
        memmove(&f->messages.at[i], &f->messages.at[i + 1], (f->messages.len - i - 1) * sizeof m);
        f->messages.len--;
        i--;
        fake_deliver_one(f, m);
    }
    assert_true(cluster_shell_turn(f->shell, f->now_ms));
}

/* The cluster that comes first leaves while its release is written, and one that comes before it
 * joins: the limit is the first one's still. */
static void while_another_comes_first(void **state)
{
    (void)state;
    for (int back = 0; back < 2; back++) {
        fake *f = begin(ONE);
        fake_edit(f, FAKE_CLUSTERS, fleet_name(0), "{\"spec\":{\"paused\":true}}");
        fake_run(f, -1);
        f->watch = watch_peak;
        peak = 0;
        fleet_content(f, "two");
        while (strcmp(fleet_deployed(f, 1, "/spec/deploymentID"),
                      fleet_deployed(f, 0, "/spec/deploymentID")) == 0) {
            fake_deliver(f);
            assert_true(cluster_shell_turn(f->shell, f->now_ms));
        }
        fleet_flap(f, 1);
        fake_edit(f, FAKE_CLUSTERS, fleet_name(0), "{\"spec\":{\"paused\":false}}");
        if (back)
            fleet_content(f, "one");
        take_but_deployments(f);
        fake_run(f, -1);
        assert_int_equal(peak, 1);
        fleet_check(f, "4/4", 0);
        fake_free(f);
    }
}

static fake_trouble no_content(fake *f, const kube_write *w)
{
    (void)f;
    bool is = w->verb == WRITE_CREATE && str_eq(w->collection, STR(HUB_API "/contents"));
    return (fake_trouble){is, WRITE_LATER, false};
}

/* A deployment is deleted while its release waits for a Content: it is made anew, and nobody else
 * has its turn meanwhile. */
static void while_a_deployment_is_deleted(void **state)
{
    (void)state;
    char home[FAKE_NAME_BYTES];
    fake *f = begin(ONE);
    fake_edit(f, FAKE_CLUSTERS, fleet_name(0), "{\"spec\":{\"paused\":true}}");
    fake_run(f, -1);
    f->trouble = no_content;
    fleet_content(f, "two");
    fake_run(f, 1000);
    fleet_flap(f, 1);
    fake_run(f, 1000);
    fake_delete(f, fake_home(fleet_name(1), home), "app");
    fake_edit(f, FAKE_CLUSTERS, fleet_name(0), "{\"spec\":{\"paused\":false}}");
    f->watch = watch_peak;
    peak = 0;
    f->trouble = NULL;
    fake_run(f, -1);
    assert_int_equal(peak, 1);
    fleet_check(f, "4/4", 0);
    fake_free(f);
}

/* What is released but not written, for want of a Content, is forgotten with its target, also where
 * somebody else holds the deployment back from going. */
static void before_a_release_is_written(void **state)
{
    (void)state;
    char home[FAKE_NAME_BYTES];
    for (int held = 0; held < 4; held++) {
        fake *f = begin(ONE);
        fake_home(fleet_name(0), home);
        fake_edit(f, home, "app", "{\"metadata\":{\"finalizers\":[\"example.com/hold\"]}}");
        f->trouble = no_content;
        fleet_content(f, "two");
        fake_run(f, 1000);
        fake_edit(f, FAKE_CLUSTERS, fleet_name(0),
                  "{\"metadata\":{\"labels\":{\"env\":\"test\"}}}");
        if (held > 0)
            fake_run(f, 1000);
        fake_edit(f, FAKE_CLUSTERS, fleet_name(0),
                  "{\"metadata\":{\"labels\":{\"env\":\"prod\"}}}");
        if (held > 1)
            fake_run(f, 1000);
        fake_edit(f, home, "app", "{\"metadata\":{\"finalizers\":null}}");
        if (held > 2)
            fake_run(f, 1000);
        f->watch = watch_peak;
        peak = 0;
        f->trouble = NULL;
        fake_run(f, -1);
        assert_int_equal(peak, 1);
        fleet_check(f, "4/4", 0);
        fake_free(f);
    }
}

static void in_strict_rollouts(void **state)
{
    (void)state;
    for (int at = 0; at < CLUSTERS; at++)
        for (int64_t after_ms = 500; after_ms < 4000; after_ms += 1000) {
            fake *f = begin(STRICT);
            fleet_content(f, "two");
            fake_run(f, after_ms);
            fleet_flap(f, at);
            fake_run(f, -1);
            fleet_check(f, "4/4", 0);
            fake_free(f);
        }
}

static int64_t told_unavailable(fake *f)
{
    fake_run(f, 5000);
    return yyjson_get_sint(fake_get(f, FAKE_BUNDLES, "app", "/status/unavailable"));
}

/* Who is paused is left out, and the status says so although nobody's state has changed. */
static void who_is_paused_is_not_counted(void **state)
{
    (void)state;
    fake *f = begin(ONE);
    f->agent_ms = INT64_C(600000);
    fleet_content(f, "two");
    assert_int_equal(told_unavailable(f), 1);
    fake_edit(f, FAKE_BUNDLES, "app", "{\"spec\":{\"paused\":true}}");
    fake_edit(f, FAKE_CLUSTERS, fleet_name(0), "{\"spec\":{\"paused\":true}}");
    assert_int_equal(told_unavailable(f), 0);
    fake_edit(f, FAKE_CLUSTERS, fleet_name(0), "{\"spec\":{\"paused\":false}}");
    assert_int_equal(told_unavailable(f), 1);
    fake_free(f);
}

/* ---- what an agent says then ---- */

static bool broken;

static fake_agent fails_if_broken(fake *f, const char *collection, const char *live)
{
    (void)f;
    (void)collection;
    (void)live;
    return broken ? AGENT_FAILS : AGENT_WELL;
}

/* A version that was released before its target left and came back fails: it counts. */
static void failures_count(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(events); i++) {
        fake *f = begin(",\"rolloutStrategy\":{\"maxUnavailable\":1,\"failureThreshold\":1}");
        bundle_view v;
        f->agent = fails_if_broken;
        broken = true;
        fleet_content(f, "two");
        fake_run(f, 500);
        events[i](f);
        fake_run(f, 300);
        check_text(str_of(fleet_reason(f, fleet_name(0))),
                   "a deployment that its agent has not confirmed yet is under way");
        fake_run(f, -1);
        assert_true(engine_bundle(cluster_shell_engine(f->shell), STR(FLEET_APP), &v));
        assert_true(v.halted);
        broken = false;
        fake_free(f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(at_rest),
        cmocka_unit_test(in_mid_update),
        cmocka_unit_test(while_a_release_is_written),
        cmocka_unit_test(while_another_comes_first),
        cmocka_unit_test(while_a_deployment_is_deleted),
        cmocka_unit_test(before_a_release_is_written),
        cmocka_unit_test(in_strict_rollouts),
        cmocka_unit_test(who_is_paused_is_not_counted),
        cmocka_unit_test(failures_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
