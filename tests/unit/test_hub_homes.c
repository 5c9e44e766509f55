/* SPDX-License-Identifier: Apache-2.0 */
/* The namespaces of Clusters, which their own agents may say: nobody gets what is another's, and
 * nobody loses what is deployed. */
#include "support/check.h"

#include "support/fake_fleet.h"

#define CLUSTERS 3
/* What is named after the Clusters "m" and "c00". */
#define OF_M "cluster-fleet-default-m-03562ff84b9b"

static fake *begin(void)
{
    fake *f = fleet_of(CLUSTERS, "");
    fake_run(f, -1);
    fleet_check(f, "3/3", 0);
    return f;
}

static void add_made(fake *f, const char *name, const char *env, const char *home, const char *made)
{
    char text[512];
    snprintf(text, sizeof text,
             "{\"metadata\":{\"name\":\"%s\",\"namespace\":\"" FAKE_SPACE
             "\",\"creationTimestamp\":\"%s\",\"labels\":{\"env\":\"%s\"}},\"spec\":{},"
             "\"status\":{%s%s%s}}",
             name, made, env, home ? "\"namespace\":\"" : "", home ? home : "", home ? "\"" : "");
    fake_create(f, FAKE_CLUSTERS, text);
}

static void add(fake *f, const char *name, const char *env, const char *home)
{
    add_made(f, name, env, home, "2026-06-01T00:00:00Z");
}

static void say_home(fake *f, const char *name, const char *home)
{
    char text[256];
    snprintf(text, sizeof text, "{\"status\":{\"namespace\":%s}}", home);
    fake_edit(f, FAKE_CLUSTERS, name, text);
}

static void check_home(fake *f, const char *name, const char *home)
{
    check_text(str_of(fake_text(f, FAKE_CLUSTERS, name, "/status/namespace")), home);
}

static const char *trouble_of(fake *f, const char *name)
{
    return fake_text(f, FAKE_CLUSTERS, name, "/status/conditions/0/message");
}

static const char *owner_in(fake *f, const char *space)
{
    char collection[FAKE_NAME_BYTES];
    snprintf(collection, sizeof collection, HUB_API "/namespaces/%s/bundledeployments", space);
    return fake_text(f, collection, "app", "/metadata/labels/fleet.cattle.io~1cluster");
}

/* ---- two say the same ---- */

/* Its agent reports, and the second one is no target: the first one's deployment stays. */
static void the_first_one_has_it(void **state)
{
    (void)state;
    char home[FAKE_NAME_BYTES];
    fake *f = begin();
    add(f, "copy", "test", "ns-c00");
    fake_run(f, 60000);
    fake_edit(f, fake_home("c00", home), "app", "{\"status\":{\"release\":\"x\"}}");
    fake_run(f, 60000);
    check_text(str_of(owner_in(f, "ns-c00")), "c00");
    fleet_check(f, "3/3", 0);
    check_text(str_of(trouble_of(f, "copy")),
               "its namespace ns-c00 is that of Cluster fleet-default/c00");
    check_home(f, "copy", "ns-c00");
    fake_edit(f, FAKE_CLUSTERS, "copy", "{\"metadata\":{\"labels\":{\"env\":\"prod\"}}}");
    fake_run(f, 60000);
    fleet_check(f, "3/4", 0);
    check_text(str_of(fleet_message(f)),
               "Pending(1) [Cluster fleet-default/copy: its namespace ns-c00 is that of Cluster "
               "fleet-default/c00]");
    fleet_content(f, "two");
    fake_run(f, 60000);
    fleet_check(f, "3/4", 0);
    check_text(str_of(owner_in(f, "ns-c00")), "c00");
    fake_free(f);
}

static void the_second_one_comes_next(void **state)
{
    (void)state;
    for (int restart = 0; restart < 2; restart++) {
        fake *f = begin();
        add(f, "copy", "prod", "ns-c00");
        add(f, "late", "prod", "ns-c00");
        fake_run(f, 60000);
        if (restart)
            fake_start(f);
        fake_delete(f, FAKE_CLUSTERS, "c00");
        fake_run(f, 60000);
        check_text(str_of(owner_in(f, "ns-c00")), "copy");
        check_text(str_of(trouble_of(f, "copy")), "");
        fleet_check(f, "3/4", 0);
        check_text(str_of(trouble_of(f, "late")),
                   "its namespace ns-c00 is that of Cluster fleet-default/copy");
        say_home(f, "late", "null"); /* it gets one of its own */
        fake_run(f, 60000);
        fleet_check(f, "4/4", 0);
        fake_free(f);
    }
}

/* Names that are listed before the owner's do not count after a restart: whose deployments are
 * there has it, and of two without any the older. */
static void the_first_one_has_it_after_a_restart(void **state)
{
    (void)state;
    static const struct {
        const char *copy_env, *copy_made, *owner;
    } rows[] = {{"prod", "2020-01-01T00:00:00Z", "c00"},
                {"test", "2020-01-01T00:00:00Z", "c00"},
                {"test", "2099-01-01T00:00:00Z", "c00"}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        fake *f = begin();
        add_made(f, "a-copy", rows[i].copy_env, "ns-c00", rows[i].copy_made);
        fake_run(f, 60000);
        for (int restart = 0; restart < 2; restart++) {
            check_text(str_of(owner_in(f, "ns-c00")), rows[i].owner);
            check_text(str_of(trouble_of(f, "c00")), "");
            check_text(str_of(trouble_of(f, "a-copy")),
                       "its namespace ns-c00 is that of Cluster fleet-default/c00");
            fake_start(f);
            fake_run(f, 60000);
        }
        fleet_content(f, "two");
        fake_run(f, 60000);
        check_text(str_of(owner_in(f, "ns-c00")), "c00");
        fake_free(f);
    }
}

static void the_older_one_has_what_is_empty(void **state)
{
    (void)state;
    static const struct {
        const char *made[3];
        const char *owner;
    } rows[] = {
        {{"2026-03-03T00:00:00Z", "2026-03-01T00:00:00Z", "2026-03-02T00:00:00Z"}, "b"},
        {{"2026-03-03T00:00:00Z", "2026-03-02T00:00:00Z", "2026-03-01T00:00:00Z"}, "c"},
        {{"2026-03-01T00:00:00Z", "2026-03-02T00:00:00Z", "2026-03-03T00:00:00Z"}, "a"},
        {{"2026-03-01T00:00:00Z", "2026-03-01T00:00:00Z", "2026-03-01T00:00:00Z"}, "a"},
    };
    static const char *const names[] = {"a", "b", "c"};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char expected[128];
        fake *f = fleet_of(0, "");
        fake_create(f, FAKE_NAMESPACES, "{\"metadata\":{\"name\":\"ns-x\"}}");
        for (size_t n = 0; n < COUNT_OF(names); n++)
            add_made(f, names[n], "test", "ns-x", rows[i].made[n]);
        fake_start(f);
        fake_run(f, 60000);
        snprintf(expected, sizeof expected,
                 "its namespace ns-x is that of Cluster " FAKE_SPACE "/%s", rows[i].owner);
        for (size_t n = 0; n < COUNT_OF(names); n++)
            check_text(str_of(trouble_of(f, names[n])),
                       strcmp(names[n], rows[i].owner) == 0 ? "" : expected);
        fake_free(f);
    }
}

/* Whoever is listed first, or said it before. What is deployed there by then is the owner's. */
static void whose_name_it_has(void **state)
{
    (void)state;
    for (int late = 0; late < 2; late++) {
        fake *f = fleet_of(0, "");
        fake_create(f, FAKE_NAMESPACES, "{\"metadata\":{\"name\":\"" OF_M "\"}}");
        add(f, "a", "prod", OF_M);
        if (late)
            fake_run(f, 60000);
        if (late)
            check_text(str_of(owner_in(f, OF_M)), "a");
        add(f, "m", "prod", NULL);
        fake_run(f, 60000);
        for (int restart = 0; restart < 2; restart++) {
            check_text(str_of(trouble_of(f, "a")),
                       "its namespace " OF_M " is that of Cluster fleet-default/m");
            check_home(f, "m", OF_M);
            check_text(str_of(owner_in(f, OF_M)), "m");
            fleet_check(f, "1/2", 0);
            fake_start(f);
            fake_run(f, 60000);
        }
        say_home(f, "a", "\"ns-a\"");
        fake_create(f, FAKE_NAMESPACES, "{\"metadata\":{\"name\":\"ns-a\"}}");
        fake_run(f, 60000);
        check_text(str_of(owner_in(f, "ns-a")), "a");
        fleet_check(f, "2/2", 0);
        fake_free(f);
    }
}

/* What is gone is no target again because another one has its namespace now. */
static void a_cluster_that_is_gone_stays_gone(void **state)
{
    (void)state;
    static const char home[] = HUB_API "/namespaces/" OF_M "/bundledeployments";
    fake *f = fleet_of(0, "");
    fake_create(f, FAKE_NAMESPACES, "{\"metadata\":{\"name\":\"" OF_M "\"}}");
    add(f, "a", "prod", OF_M);
    fake_run(f, 60000);
    fake_edit(f, home, "app", "{\"metadata\":{\"finalizers\":[\"example.com/held\"]}}");
    fake_delete(f, FAKE_CLUSTERS, "a");
    fake_run(f, 60000);
    assert_non_null(fake_find(f, home, "app"));
    add(f, "m", "test", NULL);
    fake_run(f, 60000);
    check_home(f, "m", OF_M);
    check_text(str_of(fake_text(f, FAKE_BUNDLES, "app", "/status/display/readyClusters")), "0/0");
    fake_free(f);
}

/* Deployments that were there before their Cluster, or are another's, are nobody else's. */
static void others_deployments_are_left_alone(void **state)
{
    (void)state;
    static const char home[] = HUB_API "/namespaces/ns-c00/bundledeployments";
    fake *f = begin();
    add(f, "copy", "prod", "ns-c00");
    fake_run(f, 60000);
    fake_create(f, home,
                "{\"metadata\":{\"name\":\"other\",\"namespace\":\"ns-c00\",\"labels\":{"
                "\"fleet.cattle.io/bundle-name\":\"other\",\"fleet.cattle.io/bundle-namespace\":"
                "\"" FAKE_SPACE "\",\"fleet.cattle.io/managed\":\"true\","
                "\"fleet.cattle.io/cluster\":\"copy\",\"fleet.cattle.io/cluster-namespace\":"
                "\"" FAKE_SPACE "\"}},\"spec\":{\"deploymentID\":\"s-1:2\"}}");
    fake_run(f, 60000);
    fake_edit(f, home, "other", "{\"status\":{\"ready\":true}}");
    fake_run(f, 60000);
    assert_non_null(fake_find(f, home, "other"));
    fleet_check(f, "3/4", 0);
    fake_delete(f, FAKE_CLUSTERS, "copy"); /* then it is known whose it was */
    fake_run(f, 60000);
    assert_null(fake_find(f, home, "other"));
    check_text(str_of(owner_in(f, "ns-c00")), "c00");
    /* What somebody writes on one that is known is put right. */
    fake_edit(f, home, "app", "{\"metadata\":{\"labels\":{\"fleet.cattle.io/cluster\":\"c01\"}}}");
    fake_run(f, 60000);
    check_text(str_of(owner_in(f, "ns-c00")), "c00");
    fleet_check(f, "3/3", 0);
    fake_free(f);
}

/* ---- one says something else ---- */

static void what_it_has_it_keeps(void **state)
{
    (void)state;
    static const char *const others[] = {"null", "\"\"", "\"ns-c01\"", "\"elsewhere\"",
                                         "\"fleet-default/clusters/c01?x=\""};
    for (size_t i = 0; i < COUNT_OF(others); i++) {
        fake *f = begin();
        say_home(f, "c00", others[i]);
        fake_run(f, 10);
        fleet_content(f, "two");
        fake_run(f, 60000);
        check_home(f, "c00", "ns-c00");
        fleet_check(f, "3/3", 0);
        assert_null(strstr(f->log.ptr, "elsewhere"));
        assert_null(strstr(f->log.ptr, "x="));
        say_home(f, "c00", others[i]);
        fake_edit(f, FAKE_CLUSTERS, "c00", "{\"metadata\":{\"labels\":{\"env\":\"test\"}}}");
        fake_run(f, 60000);
        check_text(str_of(owner_in(f, "ns-c00")), "");
        fleet_check(f, "2/2", 0);
        fake_free(f);
    }
}

/* It would be a part of paths. */
static void nothing_but_names(void **state)
{
    (void)state;
    static const char *const wrong[] = {"fleet-default/clusters/c01?x=", "..", "-a", "a b", "A"};
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        char expected[256];
        fake *f = begin();
        add(f, "new", "prod", wrong[i]);
        size_t told = f->log.len;
        fake_run(f, 60000);
        snprintf(expected, sizeof expected,
                 "status.namespace: found \"%s\", allowed the name of a namespace", wrong[i]);
        check_text(str_of(trouble_of(f, "new")), expected);
        assert_null(strstr(f->log.ptr + told, "deployments/app"));
        fake_free(f);
    }
}

/* A Cluster that is made anew, with the same name: what is deployed stays where it says no other
 * namespace. */
static void made_anew(void **state)
{
    (void)state;
    static const struct {
        const char *before, *after, *found;
        bool same;
    } rows[] = {{NULL, NULL, OF_M, true},
                {NULL, OF_M, OF_M, true},
                {NULL, "ns-x", "ns-x", false},
                {"ns-x", "ns-x", "ns-x", true},
                {"ns-x", NULL, OF_M, false}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        fake *f = begin();
        fake_create(f, FAKE_NAMESPACES, "{\"metadata\":{\"name\":\"ns-x\"}}");
        add(f, "m", "prod", rows[i].before);
        fake_run(f, 60000);
        fleet_check(f, "4/4", 0);
        uint64_t deployments = cluster_shell_count(f->shell).deployments;
        fake_delete(f, FAKE_CLUSTERS, "m");
        add(f, "m", "prod", rows[i].after);
        fake_run(f, 60000);
        check_home(f, "m", rows[i].found);
        check_text(str_of(owner_in(f, rows[i].found)), "m");
        fleet_check(f, "4/4", 0);
        assert_int_equal(cluster_shell_count(f->shell).deployments - deployments, !rows[i].same);
        fake_free(f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_one_has_it),
        cmocka_unit_test(the_second_one_comes_next),
        cmocka_unit_test(the_first_one_has_it_after_a_restart),
        cmocka_unit_test(the_older_one_has_what_is_empty),
        cmocka_unit_test(whose_name_it_has),
        cmocka_unit_test(a_cluster_that_is_gone_stays_gone),
        cmocka_unit_test(others_deployments_are_left_alone),
        cmocka_unit_test(what_it_has_it_keeps),
        cmocka_unit_test(nothing_but_names),
        cmocka_unit_test(made_anew),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
