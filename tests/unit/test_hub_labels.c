/* SPDX-License-Identifier: Apache-2.0 */
/* The labels of a deployment say which Bundle it is of. People, and programs that copy objects,
 * change them: what runs there stays, and is heard of. */
#include "support/check.h"

#include "support/fake_fleet.h"

#define ONE ",\"rolloutStrategy\":{\"maxUnavailable\":1}"
#define BUNDLE_OF "/metadata/labels/fleet.cattle.io~1bundle-name"
#define SPACE_OF "/metadata/labels/fleet.cattle.io~1bundle-namespace"

static const char *const edits[] = {
    "{\"metadata\":{\"labels\":{\"fleet.cattle.io/bundle-name\":null}}}",
    "{\"metadata\":{\"labels\":{\"fleet.cattle.io/bundle-name\":\"other\"}}}",
    "{\"metadata\":{\"labels\":{\"fleet.cattle.io/bundle-namespace\":null}}}",
    "{\"metadata\":{\"labels\":{\"fleet.cattle.io/bundle-namespace\":\"elsewhere\"}}}",
    "{\"metadata\":{\"labels\":{\"fleet.cattle.io/cluster\":\"c99\"}}}",
    "{\"metadata\":{\"labels\":null}}",
};

/* Whoever lists them without any of the labels that say where they belong. */
static const char *const lost[] = {
    "{\"metadata\":{\"labels\":{\"fleet.cattle.io/bundle-name\":null}}}",
    "{\"metadata\":{\"labels\":{\"fleet.cattle.io/bundle-namespace\":null}}}",
    "{\"metadata\":{\"labels\":null}}",
};

static void edit(fake *f, int at, const char *patch)
{
    char home[FAKE_NAME_BYTES];
    fake_edit(f, fake_home(fleet_name(at), home), "app", patch);
}

static size_t count_lines(const fake *f, const char *part)
{
    size_t count = 0;
    for (const char *at = f->log.ptr; at && (at = strstr(at, part)); at++)
        count++;
    return count;
}

/* It is the same object all the time, and its labels are right. */
static void check_kept(fake *f, int at, const char *uid)
{
    check_text(str_of(fleet_deployed(f, at, "/metadata/uid")), uid);
    check_text(str_of(fleet_deployed(f, at, BUNDLE_OF)), "app");
    check_text(str_of(fleet_deployed(f, at, SPACE_OF)), FAKE_SPACE);
}

static void labels_are_put_right(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(edits); i++) {
        fake *f = fleet_of(2, ONE);
        fake_run(f, -1);
        char *uid = strdup(fleet_deployed(f, 1, "/metadata/uid"));
        edit(f, 1, edits[i]);
        edit(f, 1, "{\"status\":{\"ready\":false}}");
        fake_run(f, -1);
        fleet_check(f, "1/2", 1);
        edit(f, 1, "{\"status\":{\"ready\":true}}");
        fake_run(f, -1);
        fleet_check(f, "2/2", 0);
        check_kept(f, 1, uid);
        fleet_content(f, "two");
        fake_run(f, -1);
        fleet_check(f, "2/2", 0);
        check_kept(f, 1, uid);
        (free)(uid);
        fake_free(f);
    }
}

/* While nobody looked: what is not ready counts, and an update goes on. */
static void labels_are_put_right_after_a_restart(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(lost); i++) {
        fake *f = fleet_of(3, ONE);
        fake_run(f, -1);
        char *uid = strdup(fleet_deployed(f, 2, "/metadata/uid"));
        f->shell = cluster_shell_free(f->shell);
        edit(f, 2, lost[i]);
        edit(f, 2, "{\"status\":{\"ready\":false}}");
        fleet_content(f, "two");
        fake_start(f);
        fake_run(f, 500); /* who is broken gets the fix, and nobody else */
        assert_int_equal(fleet_unavailable(f), 1);
        fake_run(f, -1);
        fleet_check(f, "3/3", 0);
        check_kept(f, 2, uid);
        assert_int_equal(count_lines(f, "bundledeployments/app exists"), 0);
        (free)(uid);
        fake_free(f);
    }
}

/* Bundles whose values are read later are known later than deployments. */
static void a_bundle_that_is_known_late(void **state)
{
    (void)state;
    fake *f = fleet_of(2, ONE ",\"valuesHash\":\"ef044c49330aa54f5679add50798f2ab0480012fe1ab2416"
                              "a8142fb14c40220b\"");
    fake_create(f, "/api/v1/namespaces/" FAKE_SPACE "/secrets",
                "{\"metadata\":{\"name\":\"app\",\"namespace\":\"" FAKE_SPACE
                "\"},\"data\":{\"values.yaml\":\"eyJhIjoxfQ==\"}}");
    fake_run(f, 20000);
    fleet_check(f, "2/2", 0);
    char *uid = strdup(fleet_deployed(f, 1, "/metadata/uid"));
    f->shell = cluster_shell_free(f->shell);
    edit(f, 1, lost[2]);
    fake_start(f);
    fake_run(f, 20000);
    fleet_check(f, "2/2", 0);
    check_kept(f, 1, uid);
    (free)(uid);
    fake_free(f);
}

/* What is called like no Bundle for that cluster is left alone. */
static void those_of_nobody_stay(void **state)
{
    (void)state;
    char home[FAKE_NAME_BYTES];
    fake *f = fleet_of(1, ONE);
    fake_create(f, fake_home("c00", home),
                "{\"metadata\":{\"name\":\"own\",\"namespace\":\"ns-c00\",\"labels\":{"
                "\"fleet.cattle.io/managed\":\"true\",\"fleet.cattle.io/cluster\":\"gone\"}},"
                "\"spec\":{\"deploymentID\":\"own:1\"}}");
    fake_run(f, -1);
    fake_start(f);
    fake_run(f, -1);
    fleet_check(f, "1/1", 0);
    assert_non_null(fake_find(f, home, "own"));
    assert_int_equal(count_lines(f, "/own "), 0);
    fake_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(labels_are_put_right),
        cmocka_unit_test(labels_are_put_right_after_a_restart),
        cmocka_unit_test(a_bundle_that_is_known_late),
        cmocka_unit_test(those_of_nobody_stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
