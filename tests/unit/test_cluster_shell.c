/* SPDX-License-Identifier: Apache-2.0 */
/* Stories of the cluster shell over a hub in memory, and what a crash after every single write of
 * them leaves behind: nothing. */
#include "support/check.h"

#include "model/document.h"
#include "support/fake_hub.h"

#define CLUSTERS 8

static char names[CLUSTERS][16];

/* ---- arranging ---- */

static void add_bundle(fake *f, const char *name, const char *content, const char *more)
{
    char text[2048];
    snprintf(text, sizeof text,
             "{\"metadata\":{\"name\":\"%s\",\"namespace\":\"" FAKE_SPACE
             "\",\"labels\":{\"fleet.cattle.io/repo-name\":\"repo\"}},\"spec\":{\"resources\":"
             "[{\"name\":\"a.yaml\",\"content\":\"%s\"}],"
             "\"targets\":[{\"clusterSelector\":{\"matchLabels\":{\"env\":\"prod\"}}}]%s}}",
             name, content, more);
    fake_create(f, FAKE_BUNDLES, text);
}

static void change_content(fake *f, const char *content)
{
    char text[256];
    snprintf(text, sizeof text,
             "{\"spec\":{\"resources\":[{\"name\":\"a.yaml\",\"content\":\"%s\"}]}}", content);
    fake_edit(f, FAKE_BUNDLES, "app", text);
}

static fake *begin(const char *more)
{
    fake *f = fake_new();
    for (int i = 0; i < CLUSTERS; i++) {
        snprintf(names[i], sizeof names[i], "c%02d", i);
        fake_add_cluster(f, names[i], "\"env\":\"prod\"");
    }
    add_bundle(f, "app", "one", more);
    fake_start(f);
    return f;
}

/* ---- looking ---- */

static const char *of_deployment(fake *f, int at, const char *pointer)
{
    char home[FAKE_NAME_BYTES];
    return fake_text(f, fake_home(names[at], home), "app", pointer);
}

static const char *of_home(int at)
{
    static char home[FAKE_NAME_BYTES];
    return fake_home(names[at], home);
}

static int64_t unavailable(fake *f)
{
    int64_t count = 0;
    char home[FAKE_NAME_BYTES];
    for (int i = 0; i < CLUSTERS; i++) {
        const char *live = of_deployment(f, i, "/spec/deploymentID");
        bool ready =
            yyjson_get_bool(fake_get(f, fake_home(names[i], home), "app", "/status/ready"));
        const char *applied = of_deployment(f, i, "/status/appliedDeploymentID");
        count += live[0] != '\0' && (strcmp(live, applied) != 0 || !ready);
    }
    return count;
}

static int64_t cap;
static int64_t peak;

/* Called after every write: from the first update on no more than the cap are unavailable. */
static void watch_cap(fake *f, const kube_write *w)
{
    (void)w;
    int64_t now = unavailable(f);
    peak = now > peak ? now : peak;
    check_msg(cap == 0 || now <= cap, "%lld unavailable\n%s", (long long)now, f->log.ptr);
}

static size_t count_lines(const fake *f, const char *part)
{
    size_t count = 0;
    str rest = buf_str(&f->log);
    for (size_t at; (at = str_find(rest, str_of(part))) != SIZE_MAX; count++)
        rest = str_part(rest, at + 1, SIZE_MAX);
    return count;
}

static void check_display(fake *f, const char *ready, const char *state)
{
    const char *found = fake_text(f, FAKE_BUNDLES, "app", "/status/display/readyClusters");
    check_msg(strcmp(found, ready) == 0, "found %s, expected %s\n%s", found, ready, f->log.ptr);
    check_text(str_of(fake_text(f, FAKE_BUNDLES, "app", "/status/display/state")), state);
}

/* Everything that a restart must not change, in one text. */
static void put_end(fake *f, buf *out)
{
    static const char *const statuses[] = {"summary", "display", "partitions", "unavailable"};
    char path[128];
    for (int i = 0; i < CLUSTERS; i++) {
        buf_addf(out, "%s %s %s %s", names[i], of_deployment(f, i, "/spec/deploymentID"),
                 of_deployment(f, i, "/spec/stagedDeploymentID"),
                 of_deployment(f, i, "/status/appliedDeploymentID"));
        buf_addf(out, " %s\n",
                 fake_text(f, FAKE_CLUSTERS, names[i], "/status/display/readyBundles"));
    }
    for (size_t k = 0; k < COUNT_OF(statuses); k++) {
        snprintf(path, sizeof path, "/status/%s", statuses[k]);
        yyjson_val *value = fake_get(f, FAKE_BUNDLES, "app", path);
        if (value)
            json_write(out, value);
        buf_addc(out, '\n');
    }
}

/* ---- stories ---- */

static void installs(void **state)
{
    (void)state;
    for (int order = 0; order < 2; order++) {
        fake *f = begin("");
        f->answers_last = order == 1;
        fake_run(f, -1);
        check_display(f, "8/8", "");
        for (int i = 0; i < CLUSTERS; i++) {
            check_text(str_of(of_deployment(f, i, "/spec/deploymentID")),
                       of_deployment(f, i, "/spec/stagedDeploymentID"));
            check_text(
                str_of(fake_text(f, FAKE_CLUSTERS, names[i], "/status/display/readyBundles")),
                "1/1");
            check_text(
                str_of(of_deployment(f, i, "/metadata/labels/fleet.cattle.io~1bundle-namespace")),
                FAKE_SPACE);
        }
        hub_counts c = cluster_shell_count(f->shell);
        assert_int_equal(c.deployments, CLUSTERS);
        assert_int_equal(c.contents, 1);
        assert_int_equal(c.secrets, 0);
        assert_int_equal(c.cluster_statuses, CLUSTERS);
        assert_int_equal(f->conflicts, 0);
        /* At rest nothing is written. */
        uint64_t writes = f->writes;
        fake_run(f, 300 * 1000);
        check_msg(f->writes == writes, "%s", f->log.ptr);
        fake_free(f);
    }
}

/* An agent that is told nothing makes the namespace. */
static void carries_what_is_false(void **state)
{
    (void)state;
    fake *f = begin(",\"createNamespace\":false");
    fake_run(f, -1);
    char home[FAKE_NAME_BYTES];
    fake_home(names[0], home);
    assert_true(yyjson_is_false(fake_get(f, home, "app", "/spec/options/createNamespace")));
    assert_true(yyjson_is_false(fake_get(f, home, "app", "/spec/stagedOptions/createNamespace")));
    check_display(f, "8/8", "");
    uint64_t writes = f->writes;
    fake_start(f);
    fake_run(f, 300 * 1000);
    check_msg(f->writes == writes, "%s", f->log.ptr);
    fake_free(f);
}

/* In quotes it would be true for an agent. */
static void refuses_options_of_other_types(void **state)
{
    (void)state;
    fake *f = begin("");
    fake_run(f, -1);
    fake_edit(f, FAKE_BUNDLES, "app", "{\"spec\":{\"keepResources\":\"false\"}}");
    fake_run(f, -1);
    const char *message = fake_text(f, FAKE_BUNDLES, "app", "/status/conditions/0/message");
    check_msg(strstr(message, "spec.keepResources: found text \"false\"") != NULL, "%s", message);
    assert_null(yyjson_obj_get(fake_get(f, of_home(0), "app", "/spec/options"), "keepResources"));
    fake_edit(f, FAKE_BUNDLES, "app", "{\"spec\":{\"keepResources\":true}}");
    fake_run(f, -1);
    check_display(f, "8/8", "");
    assert_true(yyjson_is_true(fake_get(f, of_home(0), "app", "/spec/options/keepResources")));
    fake_free(f);
}

typedef struct planned {
    fake *hub;
    size_t bundles, deployments, updated;
} planned;

static bool count_object(void *context, const object *o)
{
    planned *p = context;
    char home[FAKE_NAME_BYTES];
    if (o->kind == KIND_BUNDLE) {
        check_text(o->metadata->name, "app");
        assert_non_null(o->bundle->spec.resources);
        p->bundles++;
        return true;
    }
    assert_int_equal(o->kind, KIND_BUNDLE_DEPLOYMENT);
    const bundle_deployment *d = o->bundle_deployment;
    const char *at = fake_home(names[p->deployments++], home);
    assert_true(str_find(str_of(at), d->metadata.namespace_) != SIZE_MAX);
    check_text(d->spec.deployment_id, fake_text(p->hub, at, "app", "/spec/deploymentID"));
    check_text(d->status.applied_deployment_id,
               fake_text(p->hub, at, "app", "/status/appliedDeploymentID"));
    check_text(label_get(d->metadata.labels, STR("fleet.cattle.io/bundle-name")), "app");
    check_text(label_get(d->metadata.labels, STR("fleet.cattle.io/bundle-namespace")), FAKE_SPACE);
    p->updated += !str_eq(d->spec.deployment_id, d->status.applied_deployment_id);
    return true;
}

/* In the midst of an update: what runs where, and the engine's state without numbers. */
static void tells_plans(void **state)
{
    (void)state;
    fake *f = begin(",\"rolloutStrategy\":{\"maxUnavailable\":2}");
    fake_run(f, -1);
    change_content(f, "two");
    fake_run(f, 500);
    arena *a = arena_new(0);
    planned p = {.hub = f};
    assert_true(cluster_shell_objects(f->shell, a, count_object, &p));
    assert_int_equal(p.bundles, 1);
    assert_int_equal(p.deployments, CLUSTERS);
    assert_int_equal(p.updated, 2);
    arena_free(a);
    buf saved = BUF(1u << 20);
    assert_true(engine_save_clusters(cluster_shell_engine(f->shell), &saved));
    assert_true(str_starts(buf_str(&saved), STR("clusters " FAKE_SPACE "/app {")));
    assert_true(str_find(buf_str(&saved), STR("#ids")) == SIZE_MAX);
    assert_true(str_find(buf_str(&saved), STR("engine ids")) == SIZE_MAX);
    buf_done(&saved);
    fake_free(f);
}

static void updates(void **state)
{
    (void)state;
    for (int order = 0; order < 2; order++) {
        fake *f = begin(",\"rolloutStrategy\":{\"maxUnavailable\":2}");
        f->answers_last = order == 1;
        f->watch = watch_cap;
        cap = peak = 0;
        fake_run(f, -1);
        hub_counts before = cluster_shell_count(f->shell);
        cap = 2;
        peak = 0;
        change_content(f, "two");
        fake_run(f, 1500);
        check_text(str_of(fake_text(f, FAKE_BUNDLES, "app", "/status/display/readyClusters")),
                   "2/8");
        fake_run(f, -1);
        check_display(f, "8/8", "");
        assert_int_equal(peak, 2);
        hub_counts after = cluster_shell_count(f->shell);
        assert_int_equal(after.deployments - before.deployments, CLUSTERS);
        uint64_t of_clusters = after.deployments - before.deployments + after.cluster_statuses -
                               before.cluster_statuses;
        check_msg(of_clusters <= 3 * CLUSTERS, "%llu writes", (unsigned long long)of_clusters);
        fake_free(f);
    }
}

static void updates_strictly(void **state)
{
    (void)state;
    fake *f = begin(",\"rolloutStrategy\":{\"maxUnavailable\":0}");
    cap = 0;
    fake_run(f, -1);
    check_display(f, "8/8", "");
    f->watch = watch_cap;
    cap = 1;
    change_content(f, "two");
    fake_run(f, -1);
    check_display(f, "8/8", "");
    fake_free(f);
}

/* ---- crashes ---- */

static fake *rollout_story(uint64_t kill_at, uint64_t *ret_installed)
{
    fake *f = begin(",\"rolloutStrategy\":{\"maxUnavailable\":2,\"autoPartitionThreshold\":1,"
                    "\"autoPartitionSize\":3},\"helm\":{\"values\":{\"a\":1}}");
    cap = 0;
    f->watch = watch_cap;
    f->kill_at = kill_at;
    fake_run(f, -1);
    *ret_installed = f->writes;
    cap = 2;
    change_content(f, "two");
    fake_run(f, -1);
    return f;
}

static void survives_a_crash_after_every_write(void **state)
{
    (void)state;
    uint64_t installed;
    fake *f = rollout_story(0, &installed);
    buf want = BUF(1u << 20), got = BUF(1u << 20);
    uint64_t writes = f->writes;
    put_end(f, &want);
    check_display(f, "8/8", "");
    fake_free(f);
    check_msg(writes > 40, "%llu writes", (unsigned long long)writes);
    for (uint64_t at = 1; at <= writes; at++) {
        f = rollout_story(at, &installed);
        buf_clear(&got);
        put_end(f, &got);
        check_msg(str_eq(buf_str(&got), buf_str(&want)), "killed after write %llu:\n%s\n%s\n%s",
                  (unsigned long long)at, got.ptr, want.ptr, f->log.ptr);
        fake_free(f);
    }
    buf_done(&want);
    buf_done(&got);
}

/* ---- pauses ---- */

static void pauses(void **state)
{
    (void)state;
    fake *f = begin("");
    cap = 0;
    fake_run(f, -1);
    char home[FAKE_NAME_BYTES];
    char first[FAKE_NAME_BYTES];
    snprintf(first, sizeof first, "%s", of_deployment(f, 0, "/spec/deploymentID"));
    fake_edit(f, FAKE_CLUSTERS, names[0], "{\"spec\":{\"paused\":true}}");
    fake_run(f, -1);
    assert_true(yyjson_get_bool(fake_get(f, fake_home(names[0], home), "app", "/spec/paused")));
    change_content(f, "two");
    fake_run(f, -1);
    check_display(f, "7/8", "OutOfSync");
    check_text(str_of(of_deployment(f, 0, "/spec/deploymentID")), first);
    fake_edit(f, FAKE_CLUSTERS, names[0], "{\"spec\":{\"paused\":false}}");
    fake_run(f, -1);
    check_display(f, "8/8", "");
    assert_false(yyjson_get_bool(fake_get(f, fake_home(names[0], home), "app", "/spec/paused")));
    fake_edit(f, FAKE_BUNDLES, "app", "{\"spec\":{\"paused\":true}}");
    change_content(f, "three");
    fake_run(f, -1);
    check_display(f, "0/8", "OutOfSync");
    fake_edit(f, FAKE_BUNDLES, "app", "{\"spec\":{\"paused\":null}}");
    fake_run(f, -1);
    check_display(f, "8/8", "");
    fake_free(f);
}

/* What a watch tells, before the answers to writes. */
static void deliver_events(fake *f)
{
    for (size_t i = 0; i < f->messages.len; i++) {
        fake_message m = f->messages.at[i];
        if (m.is_answer)
            continue;
        memmove(&f->messages.at[i], &f->messages.at[i + 1], (f->messages.len - i - 1) * sizeof m);
        f->messages.len--;
        i--;
        fake_deliver_one(f, m);
    }
}

/* A cluster that is paused while its deployment is written is paused all the same. */
static void pauses_during_a_write(void **state)
{
    (void)state;
    fake *f = begin("");
    char home[FAKE_NAME_BYTES];
    char first[FAKE_NAME_BYTES];
    cap = 0;
    fake_run(f, -1);
    snprintf(first, sizeof first, "%s", of_deployment(f, 0, "/spec/deploymentID"));
    change_content(f, "two");
    while (strcmp(of_deployment(f, 0, "/spec/deploymentID"), first) == 0) {
        fake_deliver(f);
        assert_true(cluster_shell_turn(f->shell, f->now_ms));
    }
    fake_edit(f, FAKE_CLUSTERS, names[0], "{\"spec\":{\"paused\":true}}");
    deliver_events(f);
    assert_true(cluster_shell_turn(f->shell, f->now_ms));
    fake_run(f, -1);
    assert_true(yyjson_get_bool(fake_get(f, fake_home(names[0], home), "app", "/spec/paused")));
    fake_free(f);
}

/* ---- who is a target ---- */

static void clusters_come_and_go(void **state)
{
    (void)state;
    fake *f = begin("");
    cap = 0;
    fake_run(f, -1);
    fake_edit(f, FAKE_CLUSTERS, names[2], "{\"metadata\":{\"labels\":{\"env\":\"test\"}}}");
    fake_run(f, -1);
    check_display(f, "7/7", "");
    char home[FAKE_NAME_BYTES];
    assert_null(fake_find(f, fake_home(names[2], home), "app"));
    check_text(str_of(fake_text(f, FAKE_CLUSTERS, names[2], "/status/display/readyBundles")),
               "0/0");
    fake_delete(f, FAKE_CLUSTERS, names[3]);
    fake_run(f, -1);
    check_display(f, "6/6", "");
    assert_null(fake_find(f, fake_home(names[3], home), "app"));
    /* A Cluster without a namespace gets one. */
    fake_create(f, FAKE_CLUSTERS,
                "{\"metadata\":{\"name\":\"late\",\"namespace\":\"" FAKE_SPACE
                "\",\"labels\":{\"env\":\"prod\"}},\"spec\":{}}");
    fake_run(f, -1);
    check_display(f, "7/7", "");
    assert_true(str_starts(str_of(fake_text(f, FAKE_CLUSTERS, "late", "/status/namespace")),
                           STR("cluster-fleet-default-late-")));
    fake_free(f);
}

static void bundles_go(void **state)
{
    (void)state;
    fake *f = begin("");
    cap = 0;
    fake_run(f, -1);
    check_text(str_of(fake_text(f, FAKE_BUNDLES, "app", "/metadata/finalizers/0")),
               "fleet.cattle.io/bundle-finalizer");
    fake_delete(f, FAKE_BUNDLES, "app");
    fake_run(f, 60 * 1000);
    assert_null(fake_find(f, FAKE_BUNDLES, "app"));
    for (size_t i = 0; i < f->count; i++)
        check_msg(!fake_is(f->objects[i].collection, "bundledeployments"), "%s is left",
                  f->objects[i].collection);
    /* Its content goes when nobody can be about to need it. */
    assert_int_equal(count_lines(f, "DELETE " HUB_API "/contents"), 0);
    f->now_ms = FAKE_START_MS + INT64_C(365) * 86400 * 1000;
    fake_run(f, -1);
    assert_int_equal(count_lines(f, "DELETE " HUB_API "/contents"), 1);
    fake_free(f);
}

/* A BundleDeployment that somebody deletes is made again; one that is edited is put right. */
static void puts_right(void **state)
{
    (void)state;
    fake *f = begin("");
    cap = 0;
    fake_run(f, -1);
    char home[FAKE_NAME_BYTES];
    fake_delete(f, fake_home(names[1], home), "app");
    fake_run(f, -1);
    check_display(f, "8/8", "");
    assert_non_null(fake_find(f, fake_home(names[1], home), "app"));
    fake_edit(f, fake_home(names[4], home), "app",
              "{\"metadata\":{\"labels\":{\"fleet.cattle.io/managed\":\"no\"}},\"spec\":"
              "{\"correctDrift\":{\"enabled\":true}}}");
    fake_run(f, -1);
    check_text(str_of(of_deployment(f, 4, "/metadata/labels/fleet.cattle.io~1managed")), "true");
    assert_null(fake_get(f, fake_home(names[4], home), "app", "/spec/correctDrift"));
    /* What is no part of a version reaches everybody at once. */
    fake_edit(f, FAKE_BUNDLES, "app",
              "{\"metadata\":{\"labels\":{\"fleet.cattle.io/commit\":\"abc\"}}}");
    fake_run(f, -1);
    check_text(str_of(of_deployment(f, 7, "/metadata/labels/fleet.cattle.io~1commit")), "abc");
    check_display(f, "8/8", "");
    /* Also what was written again since it was made. */
    fake_edit(f, fake_home(names[7], home), "app",
              "{\"spec\":{\"correctDrift\":{\"enabled\":true}}}");
    fake_run(f, -1);
    assert_null(fake_get(f, fake_home(names[7], home), "app", "/spec/correctDrift"));
    fake_free(f);
}

/* ---- failures ---- */

static char bad[FAKE_NAME_BYTES];

static fake_agent fails_on_new(fake *f, const char *collection, const char *live)
{
    (void)f;
    (void)collection;
    return bad[0] != '\0' && strncmp(live, bad, strlen(bad)) != 0 ? AGENT_FAILS : AGENT_WELL;
}

static void stops_after_failures(void **state)
{
    (void)state;
    fake *f = begin(",\"rolloutStrategy\":{\"maxUnavailable\":3,\"failureThreshold\":2}");
    cap = 0;
    bad[0] = '\0';
    f->agent = fails_on_new;
    fake_run(f, -1);
    snprintf(bad, sizeof bad, "%.20s", of_deployment(f, 0, "/spec/deploymentID"));
    change_content(f, "broken");
    fake_run(f, -1);
    check_display(f, "0/8", "ErrApplied");
    yyjson_val *failed = fake_get(f, FAKE_BUNDLES, "app", "/status/summary/errApplied");
    assert_int_equal(yyjson_get_int(failed), 3);
    assert_true(strstr(fake_text(f, FAKE_BUNDLES, "app", "/status/conditions/0/message"),
                       "no such chart") != NULL);
    /* A restart does not forget the halt; a fix reaches the broken ones first. */
    fake_start(f);
    fake_run(f, -1);
    assert_int_equal(yyjson_get_int(fake_get(f, FAKE_BUNDLES, "app", "/status/summary/errApplied")),
                     3);
    bad[0] = '\0';
    change_content(f, "fixed");
    fake_run(f, -1);
    check_display(f, "8/8", "");
    fake_free(f);
}

static bool silent;

static fake_agent silent_if_told(fake *f, const char *collection, const char *live)
{
    (void)f;
    (void)collection;
    (void)live;
    return silent ? AGENT_SILENT : AGENT_WELL;
}

static void report(fake *f, int at, bool well)
{
    char home[FAKE_NAME_BYTES], text[1024];
    snprintf(text, sizeof text,
             "{\"status\":{\"appliedDeploymentID\":\"%s\",\"ready\":%s,\"nonModified\":true,"
             "\"conditions\":[{\"type\":\"Installed\",\"status\":\"%s\",\"message\":\"%s\","
             "\"lastUpdateTime\":\"2020-01-01T00:00:00Z\"}]}}",
             of_deployment(f, at, "/spec/deploymentID"), well ? "true" : "false",
             well ? "True" : "False", well ? "" : "no such field");
    fake_edit(f, fake_home(names[at], home), "app", text);
    fake_run(f, 5000);
}

/* A version that fails with the words of the one before has failed, too. */
static void stops_after_the_same_failure(void **state)
{
    (void)state;
    fake *f = begin(",\"rolloutStrategy\":{\"maxUnavailable\":2,\"failureThreshold\":1}");
    char first[FAKE_NAME_BYTES];
    cap = 0;
    silent = false;
    f->agent = silent_if_told;
    fake_run(f, -1);
    snprintf(first, sizeof first, "%s", of_deployment(f, 2, "/spec/deploymentID"));
    silent = true;
    for (int edit = 0; edit < 2; edit++) {
        change_content(f, edit == 0 ? "two" : "three");
        fake_run(f, 5000);
        report(f, 0, false);
        report(f, 1, true);
        check_text(str_of(of_deployment(f, 2, "/spec/deploymentID")), first);
    }
    fake_free(f);
}

static bool halted(const fake *f)
{
    bundle_view v;
    assert_true(engine_bundle(cluster_shell_engine(f->shell), STR(FAKE_SPACE "/app"), &v));
    return v.halted;
}

/* Deployed is False, by a clock of the agent's own; other: of another condition. */
static void complain(fake *f, int at, const char *time, const char *other)
{
    char home[FAKE_NAME_BYTES], text[1024];
    snprintf(text, sizeof text,
             "{\"status\":{\"ready\":false,\"conditions\":[{\"type\":\"Deployed\",\"status\":"
             "\"False\",\"message\":\"no such chart\",\"lastUpdateTime\":\"%s\"},"
             "{\"type\":\"Ready\",\"status\":\"False\",\"message\":\"%s\"}]}}",
             time, other);
    fake_edit(f, fake_home(names[at], home), "app", text);
}

#define LONG_AGO "2020-01-01T00:00:00Z"

static fake *begin_to_fail(void)
{
    fake *f = begin(",\"rolloutStrategy\":{\"maxUnavailable\":2,\"failureThreshold\":1}");
    cap = 0;
    silent = false;
    f->agent = silent_if_told;
    fake_run(f, -1);
    silent = true;
    return f;
}

/* The clock of an agent may be anything; a restart in between changes nothing. */
static void stops_whatever_a_clock_says(void **state)
{
    (void)state;
    static const char *const times[] = {LONG_AGO, "2040-01-01T00:00:00Z", ""};
    for (size_t i = 0; i < COUNT_OF(times); i++)
        for (int restart = 0; restart < 2; restart++) {
            fake *f = begin_to_fail();
            change_content(f, "two");
            fake_run(f, 5000);
            assert_false(halted(f));
            complain(f, 0, times[i], "");
            if (restart)
                fake_start(f);
            fake_run(f, 5000);
            check_msg(halted(f), "by %s", times[i]);
            fake_free(f);
        }
}

/* What was said of the version before is no failure of the next, whatever else changes. */
static void blames_no_version_for_the_one_before(void **state)
{
    (void)state;
    for (int restart = 0; restart < 2; restart++) {
        fake *f = begin_to_fail();
        complain(f, 0, LONG_AGO, "");
        fake_run(f, 5000);
        change_content(f, "two");
        fake_run(f, 5000);
        complain(f, 0, LONG_AGO, "something else");
        if (restart)
            fake_start(f);
        fake_run(f, 5000);
        assert_false(halted(f));
        complain(f, 0, "2020-01-01T00:00:01Z", "something else");
        fake_run(f, 5000);
        assert_true(halted(f));
        fake_free(f);
    }
}

/* Controllers of other versions read it, too. */
static void says_at_the_release_what_was_said(void **state)
{
    (void)state;
    fake *f = begin_to_fail();
    static const char at[] = "/metadata/labels/drover.dev~1released-at";
    check_text(str_of(of_deployment(f, 0, at)), "1763272800.809477d0.809477d0.15d514c7");
    complain(f, 0, LONG_AGO, "");
    change_content(f, "two");
    fake_run(f, 5000);
    check_text(str_of(of_deployment(f, 0, at)), "1763272805.68d6810f.809477d0.5a338b50");
    fake_free(f);
}

/* A label of an older controller says only when: then the times decide. */
static void reads_labels_of_before(void **state)
{
    (void)state;
    char home[FAKE_NAME_BYTES];
    for (int late = 0; late < 2; late++) {
        fake *f = begin_to_fail();
        change_content(f, "two");
        fake_run(f, 5000);
        fake_edit(f, fake_home(names[0], home), "app",
                  "{\"metadata\":{\"labels\":{\"drover.dev/released-at\":\"1763272800\"}}}");
        complain(f, 0, late ? "2040-01-01T00:00:00Z" : LONG_AGO, "");
        fake_run(f, 5000);
        assert_int_equal(halted(f), late);
        fake_free(f);
    }
}

/* ---- what people ask ---- */

#define ASKED "/metadata/annotations/drover.dev~1acts"
#define RECORD "/metadata/annotations/drover.dev~1rollout"

static void ask(fake *f, const char *acts)
{
    char text[256];
    snprintf(text, sizeof text, "{\"metadata\":{\"annotations\":{\"drover.dev/acts\":\"%s\"}}}",
             acts);
    fake_edit(f, FAKE_BUNDLES, "app", text);
}

static void resumes(void **state)
{
    (void)state;
    fake *f = begin(",\"rolloutStrategy\":{\"maxUnavailable\":3,\"failureThreshold\":1}");
    cap = 0;
    bad[0] = '\0';
    f->agent = fails_on_new;
    fake_run(f, -1);
    snprintf(bad, sizeof bad, "%.20s", of_deployment(f, 0, "/spec/deploymentID"));
    change_content(f, "flaky");
    fake_run(f, -1);
    check_display(f, "0/8", "ErrApplied");
    /* Their agents recover: the halt stays until a person ends it, a restart or not. */
    char home[FAKE_NAME_BYTES];
    bad[0] = '\0';
    for (int i = 0; i < CLUSTERS; i++)
        fake_find(f, fake_home(names[i], home), "app")->answers_ms = f->now_ms;
    fake_start(f);
    fake_run(f, -1);
    check_display(f, "3/8", "OutOfSync");
    ask(f, "[{\\\"act\\\":\\\"resume\\\"}]");
    fake_run(f, -1);
    check_display(f, "8/8", "");
    assert_null(fake_get(f, FAKE_BUNDLES, "app", ASKED));
    fake_free(f);
}

static void opens_approved_partitions(void **state)
{
    (void)state;
    static const char approve[] =
        "[{\\\"act\\\":\\\"approve\\\",\\\"partition\\\":\\\"second\\\"}]";
    fake *f =
        begin(",\"rolloutStrategy\":{\"partitions\":[{\"name\":\"first\",\"clusterName\":\"c00\"},"
              "{\"name\":\"second\",\"approval\":true,\"clusterSelector\":{}}]}");
    cap = 0;
    fake_run(f, -1);
    check_display(f, "1/8", "Pending");
    ask(f, "[{\\\"act\\\":\\\"reset\\\"}]"); /* is no business of Bundles */
    fake_run(f, -1);
    check_display(f, "1/8", "Pending");
    assert_null(fake_get(f, FAKE_BUNDLES, "app", ASKED));
    ask(f, approve);
    fake_run(f, -1);
    check_display(f, "8/8", "");
    assert_null(fake_get(f, FAKE_BUNDLES, "app", ASKED));
    /* The next version needs its own. */
    change_content(f, "two");
    fake_run(f, -1);
    check_display(f, "1/8", "OutOfSync");
    fake_free(f);
}

/* An approval survives a crash after whatever write. */
static void approves_once_and_for_all(void **state)
{
    (void)state;
    for (uint64_t kill = 1; kill < 40; kill++) {
        fake *f = begin(
            ",\"rolloutStrategy\":{\"partitions\":[{\"name\":\"first\",\"clusterName\":\"c00\"},"
            "{\"name\":\"second\",\"approval\":true,\"clusterSelector\":{}}]}");
        cap = 0;
        fake_run(f, -1);
        ask(f, "[{\\\"act\\\":\\\"approve\\\"}]");
        f->kill_at = f->writes + kill;
        fake_run(f, -1); /* starts it anew */
        check_display(f, "8/8", "");
        fake_free(f);
    }
}

static fake_agent silent_on_c01(fake *f, const char *collection, const char *live)
{
    (void)f;
    (void)live;
    return strstr(collection, "ns-c01") ? AGENT_SILENT : AGENT_WELL;
}

static void waits_for_who_is_offline(void **state)
{
    (void)state;
    fake *f = begin(",\"rolloutStrategy\":{\"maxUnavailable\":1}");
    cap = 0;
    fake_run(f, -1);
    f->agent = silent_on_c01;
    f->watch = watch_cap;
    cap = 1;
    change_content(f, "two");
    fake_run(f, -1);
    check_display(f, "1/8", "WaitApplied");
    /* It is back. */
    char home[FAKE_NAME_BYTES];
    f->agent = NULL;
    fake_find(f, fake_home("c01", home), "app")->answers_ms = f->now_ms;
    fake_run(f, -1);
    check_display(f, "8/8", "");
    fake_free(f);
}

static void check_cluster(fake *f, int at, const char *ready)
{
    check_text(str_of(fake_text(f, FAKE_CLUSTERS, names[at], "/status/display/readyBundles")),
               ready);
}

/* A Cluster that is soon as it was says nothing; one whose agent is silent, or that fails, does. */
static void clusters_say_little(void **state)
{
    (void)state;
    fake *f = begin(",\"rolloutStrategy\":{\"maxUnavailable\":8}");
    cap = 0;
    fake_run(f, -1);
    check_cluster(f, 1, "1/1");
    hub_counts before = cluster_shell_count(f->shell);
    assert_int_equal(before.cluster_statuses, CLUSTERS);
    change_content(f, "two");
    fake_run(f, -1);
    check_display(f, "8/8", "");
    assert_int_equal(cluster_shell_count(f->shell).cluster_statuses, before.cluster_statuses);
    f->agent = silent_on_c01;
    change_content(f, "three");
    fake_run(f, 20000);
    check_display(f, "7/8", "WaitApplied");
    check_cluster(f, 1, "1/1");
    fake_run(f, 20000);
    check_cluster(f, 1, "0/1");
    assert_int_equal(cluster_shell_count(f->shell).cluster_statuses, before.cluster_statuses + 1);
    f->agent = fails_on_new;
    snprintf(bad, sizeof bad, "none");
    change_content(f, "four");
    fake_run(f, 8000);
    check_cluster(f, 2, "0/1");
    bad[0] = '\0';
    fake_free(f);
}

/* While a rollout goes on its Bundle is told of every other second; its end is told at once. */
static void bundles_say_little(void **state)
{
    (void)state;
    fake *f = begin(",\"rolloutStrategy\":{\"maxUnavailable\":1}");
    cap = 0;
    f->agent_ms = 1000;
    fake_run(f, -1);
    uint64_t before = cluster_shell_count(f->shell).bundle_statuses;
    f->now_ms += 10000;
    int64_t began_ms = f->now_ms;
    change_content(f, "two");
    while (f->now_ms < began_ms + 5000 &&
           strcmp(fake_text(f, FAKE_BUNDLES, "app", "/status/display/readyClusters"), "8/8") == 0)
        fake_run(f, 100);
    check_msg(f->now_ms - began_ms <= 1600, "after %lld ms", (long long)(f->now_ms - began_ms));
    fake_run(f, -1);
    check_display(f, "8/8", "");
    uint64_t count = cluster_shell_count(f->shell).bundle_statuses - before;
    check_msg(count >= 4 && count <= 6, "%llu statuses in %lld ms\n%s", (unsigned long long)count,
              (long long)(f->now_ms - began_ms), f->log.ptr);
    fake_free(f);
}

/* ---- partitions ---- */

static void keeps_partitions(void **state)
{
    (void)state;
    fake *f = begin(",\"rolloutStrategy\":{\"maxUnavailable\":0,\"autoPartitionThreshold\":1,"
                    "\"autoPartitionSize\":4}");
    cap = 0;
    fake_run(f, -1);
    change_content(f, "two");
    fake_run(f, 1500);
    /* One that joins in the middle belongs to the last partition, also after a restart. */
    fake_add_cluster(f, "a", "\"env\":\"prod\"");
    fake_run(f, 10);
    fake_start(f);
    fake_run(f, 1500);
    check_text(str_of(fake_text(f, FAKE_BUNDLES, "app", "/status/partitions/1/name")),
               "Partition 4 - 8");
    assert_int_equal(yyjson_get_int(fake_get(f, FAKE_BUNDLES, "app", "/status/partitions/1/count")),
                     5);
    fake_run(f, -1);
    check_display(f, "9/9", "");
    fake_free(f);
}

static bool says_shortened(fake *f)
{
    yyjson_val *conditions = fake_get(f, FAKE_BUNDLES, "app", "/status/conditions"), *one;
    size_t i, max;
    bool found = false;
    yyjson_arr_foreach(conditions, i, max, one)
    {
        found |= yyjson_equals_str(yyjson_obj_get(one, "type"), "RecordShortened") &&
                 yyjson_equals_str(yyjson_obj_get(one, "status"), "True");
    }
    return found;
}

/* Where there is no room for members, automatic partitions are known by their borders. */
static void keeps_borders(void **state)
{
    (void)state;
    fake *f = begin(",\"rolloutStrategy\":{\"maxUnavailable\":0,\"autoPartitionThreshold\":1,"
                    "\"autoPartitionSize\":3}");
    cap = 0;
    fake_run(f, -1);
    assert_false(says_shortened(f));
    size_t whole = strlen(fake_text(f, FAKE_BUNDLES, "app", RECORD));
    f->settings.record_bytes_max = whole - 1;
    fake_start(f);
    change_content(f, "two");
    fake_run(f, 1500);
    assert_true(says_shortened(f));
    assert_null(strstr(fake_text(f, FAKE_BUNDLES, "app", RECORD), "members"));
    fake_delete(f, FAKE_CLUSTERS, names[7]); /* would cut other ones */
    fake_add_cluster(f, "z", "\"env\":\"prod\"");
    fake_start(f);
    fake_run(f, 2500);
    static const int64_t counts[] = {3, 3, 2};
    static const char *const called[] = {"Partition 0 - 3", "Partition 3 - 6", "Partition 6 - 8"};
    for (int i = 0; i < 3; i++) {
        char at[64];
        snprintf(at, sizeof at, "/status/partitions/%d/name", i);
        check_text(str_of(fake_text(f, FAKE_BUNDLES, "app", at)), called[i]);
        snprintf(at, sizeof at, "/status/partitions/%d/count", i);
        assert_int_equal(yyjson_get_int(fake_get(f, FAKE_BUNDLES, "app", at)), counts[i]);
    }
    f->settings.record_bytes_max = 0;
    fake_start(f);
    change_content(f, "three");
    fake_run(f, -1);
    check_display(f, "8/8", "");
    assert_false(says_shortened(f));
    fake_free(f);
}

/* What people and failures did is kept in whatever room there is. */
static void keeps_what_people_did(void **state)
{
    (void)state;
    fake *f = begin(",\"rolloutStrategy\":{\"failureThreshold\":1,\"partitions\":["
                    "{\"name\":\"first\",\"clusterName\":\"c00\"},{\"name\":\"second\","
                    "\"approval\":true,\"clusterSelector\":{}}]}");
    cap = 0;
    silent = false;
    f->agent = silent_if_told;
    f->settings.record_bytes_max = 1;
    fake_start(f);
    fake_run(f, -1);
    silent = true;
    ask(f, "[{\\\"act\\\":\\\"approve\\\",\\\"partition\\\":\\\"second\\\"}]");
    fake_run(f, 10);
    assert_null(fake_get(f, FAKE_BUNDLES, "app", ASKED));
    fake_start(f);
    fake_run(f, 5000);
    assert_non_null(fake_find(f, of_home(3), "app")); /* it was opened */
    complain(f, 3, LONG_AGO, "");
    fake_run(f, 5000);
    assert_true(halted(f) && says_shortened(f));
    fake_start(f);
    fake_run(f, 5000);
    assert_true(halted(f));
    fake_free(f);
}

static void keeps_a_halt(void **state)
{
    (void)state;
    fake *f = begin_to_fail();
    f->settings.record_bytes_max = 1;
    fake_start(f);
    change_content(f, "two");
    fake_run(f, 5000);
    complain(f, 0, LONG_AGO, "");
    fake_run(f, 5000);
    assert_true(halted(f));
    fake_start(f);
    fake_run(f, 5000);
    assert_true(halted(f));
    ask(f, "[{\\\"act\\\":\\\"resume\\\"}]");
    silent = false;
    fake_run(f, 5000);
    fake_start(f);
    fake_run(f, 5000);
    assert_false(halted(f));
    fake_free(f);
}

/* ---- sums ---- */

static void sums_up(void **state)
{
    (void)state;
    fake *f = begin("");
    cap = 0;
    fake_create(f, FAKE_GROUPS,
                "{\"metadata\":{\"name\":\"prod\",\"namespace\":\"" FAKE_SPACE
                "\"},\"spec\":{\"selector\":{\"matchLabels\":{\"env\":\"prod\"}}}}");
    fake_create(f, FAKE_REPOS,
                "{\"metadata\":{\"name\":\"repo\",\"namespace\":\"" FAKE_SPACE
                "\"},\"spec\":{},\"status\":{\"gitJobStatus\":\"Current\"}}");
    fake_run(f, -1);
    check_text(str_of(fake_text(f, FAKE_GROUPS, "prod", "/status/display/readyClusters")), "8/8");
    check_text(str_of(fake_text(f, FAKE_REPOS, "repo", "/status/display/readyBundleDeployments")),
               "8/8");
    assert_int_equal(yyjson_get_int(fake_get(f, FAKE_REPOS, "repo", "/status/readyClusters")), 8);
    assert_int_equal(yyjson_get_int(fake_get(f, FAKE_CLUSTERS, names[0], "/status/readyGitRepos")),
                     1);
    fake_edit(f, FAKE_CLUSTERS, names[0], "{\"metadata\":{\"labels\":{\"env\":\"test\"}}}");
    fake_run(f, -1);
    check_text(str_of(fake_text(f, FAKE_GROUPS, "prod", "/status/display/readyClusters")), "7/7");
    /* The Bundle comes from somewhere else. */
    fake_edit(f, FAKE_BUNDLES, "app",
              "{\"metadata\":{\"labels\":{\"fleet.cattle.io/repo-name\":null,"
              "\"fleet.cattle.io/fleet-helm-name\":\"chart\"}}}");
    fake_run(f, -1);
    assert_int_equal(yyjson_get_int(fake_get(f, FAKE_CLUSTERS, names[1], "/status/readyGitRepos")),
                     0);
    assert_int_equal(yyjson_get_int(fake_get(f, FAKE_CLUSTERS, names[1], "/status/readyHelmOps")),
                     1);
    fake_free(f);
}

static fake_agent never_answers(fake *f, const char *collection, const char *live)
{
    (void)f;
    (void)collection;
    (void)live;
    return AGENT_SILENT;
}

/* As in Fleet, what a GitRepo lists and quotes goes by uid; "uid-10" comes before "uid-9". */
static void sums_up_by_uid(void **state)
{
    (void)state;
    fake *f = fake_new();
    f->agent = never_answers;
    fake_add_cluster(f, "c00", "\"env\":\"prod\"");
    fake_create(f, FAKE_REPOS,
                "{\"metadata\":{\"name\":\"repo\",\"namespace\":\"" FAKE_SPACE "\"},\"spec\":{}}");
    f->uids = 8;
    add_bundle(f, "zz", "one", ",\"paused\":true");
    add_bundle(f, "aa", "one", "");
    f->uids = 96;
    fake_start(f);
    fake_run(f, 20000);
    check_text(str_of(fake_text(f, FAKE_BUNDLES, "zz", "/metadata/uid")), "uid-9");
    check_text(str_of(fake_text(f, FAKE_REPOS, "repo", "/status/conditions/0/message")),
               "WaitApplied(1) [Cluster fleet-default/c00]");
    check_text(str_of(fake_text(f, FAKE_REPOS, "repo", "/status/display/state")), "GitUpdating");
    f->uids = 98;
    fake_edit(f, FAKE_BUNDLES, "zz", "{\"spec\":{\"paused\":false}}");
    fake_delete(f, HUB_API "/namespaces/ns-c00/bundledeployments", "aa");
    fake_run(f, 20000);
    static const char home[] = HUB_API "/namespaces/ns-c00/bundledeployments";
    const char *first =
        fake_text(f, FAKE_REPOS, "repo", "/status/summary/nonReadyResources/0/name");
    const char *second =
        fake_text(f, FAKE_REPOS, "repo", "/status/summary/nonReadyResources/1/name");
    assert_string_not_equal(first, second);
    assert_true(strcmp(fake_text(f, home, first, "/metadata/uid"),
                       fake_text(f, home, second, "/metadata/uid")) < 0);
    assert_string_not_equal(fake_text(f, home, "zz", "/metadata/uid"), "");
    fake_edit(f, FAKE_REPOS, "repo", "{\"status\":{\"gitJobStatus\":\"Current\"}}");
    fake_run(f, 20000);
    check_text(str_of(fake_text(f, FAKE_REPOS, "repo", "/status/display/state")), "WaitApplied");
    fake_free(f);
}

static void measures(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "fleet_bundle_ready{name=\"app\",namespace=\"" FAKE_SPACE "\"} 3\n",
        "fleet_bundle_pending{name=\"app\",namespace=\"" FAKE_SPACE "\"} 5\n",
        "fleet_bundle_err_applied{name=\"app\",namespace=\"" FAKE_SPACE "\"} 0\n",
        "# TYPE fleet_bundle_desired_ready gauge\n",
        "fleet_bundle_desired_ready{name=\"app\",namespace=\"" FAKE_SPACE "\"} 8\n",
        "# TYPE fleet_bundle_state gauge\n",
        "fleet_bundle_state{name=\"app\",namespace=\"" FAKE_SPACE "\",state=\"Ready\"} 0\n",
        "fleet_bundle_state{name=\"app\",namespace=\"" FAKE_SPACE "\",state=\"Pending\"} 1\n",
    };
    fake *f = begin(",\"rolloutStrategy\":{\"partitions\":[{\"name\":\"a\",\"clusterSelector\":"
                    "{\"matchLabels\":{\"early\":\"yes\"}}},{\"name\":\"b\",\"approval\":true,"
                    "\"clusterSelector\":{}}]}");
    for (int i = 0; i < 3; i++)
        fake_edit(f, FAKE_CLUSTERS, names[i], "{\"metadata\":{\"labels\":{\"early\":\"yes\"}}}");
    fake_run(f, -1);
    buf out = BUF(1u << 20);
    cluster_shell_metrics(f->shell, &out);
    buf_addc(&out, '\0');
    for (size_t i = 0; i < COUNT_OF(lines); i++)
        check_msg(strstr(out.ptr, lines[i]) != NULL, "no %s\n%s", lines[i], out.ptr);
    buf_done(&out);
    fake_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(installs),
        cmocka_unit_test(carries_what_is_false),
        cmocka_unit_test(refuses_options_of_other_types),
        cmocka_unit_test(tells_plans),
        cmocka_unit_test(updates),
        cmocka_unit_test(updates_strictly),
        cmocka_unit_test(pauses),
        cmocka_unit_test(pauses_during_a_write),
        cmocka_unit_test(clusters_come_and_go),
        cmocka_unit_test(bundles_go),
        cmocka_unit_test(puts_right),
        cmocka_unit_test(stops_after_failures),
        cmocka_unit_test(stops_after_the_same_failure),
        cmocka_unit_test(stops_whatever_a_clock_says),
        cmocka_unit_test(blames_no_version_for_the_one_before),
        cmocka_unit_test(says_at_the_release_what_was_said),
        cmocka_unit_test(reads_labels_of_before),
        cmocka_unit_test(resumes),
        cmocka_unit_test(opens_approved_partitions),
        cmocka_unit_test(approves_once_and_for_all),
        cmocka_unit_test(waits_for_who_is_offline),
        cmocka_unit_test(clusters_say_little),
        cmocka_unit_test(bundles_say_little),
        cmocka_unit_test(keeps_partitions),
        cmocka_unit_test(keeps_borders),
        cmocka_unit_test(keeps_what_people_did),
        cmocka_unit_test(keeps_a_halt),
        cmocka_unit_test(sums_up),
        cmocka_unit_test(sums_up_by_uid),
        cmocka_unit_test(measures),
        cmocka_unit_test(survives_a_crash_after_every_write),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
