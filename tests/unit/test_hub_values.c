/* SPDX-License-Identifier: Apache-2.0 */
/* Bundles whose Helm values lie in a Secret, as Fleet's own programs make them, and Bundles that
 * cannot be read: nothing is deployed without values, and nothing is removed for want of them. */
#include "support/check.h"

#include "model/document.h"
#include "support/fake_hub.h"

#define SECRETS "/api/v1/namespaces/" FAKE_SPACE "/secrets"
#define ONE_HASH "ef044c49330aa54f5679add50798f2ab0480012fe1ab2416a8142fb14c40220b"
#define ONE_DATA "{\"values.yaml\":\"eyJhIjoxfQ==\"}"
/* {"a":2,"b":1} for all, and {"b":2} for the target "special". */
#define TWO_HASH "ac871d0cd4ac0e59d18ecdab9a25fb89f66e5c503b1ce6993e846ce854d7f42d"
#define TWO_DATA "{\"values.yaml\":\"eyJhIjoyLCJiIjoxfQ==\",\"special\":\"eyJiIjoyfQ==\"}"
#define LIST_HASH "bb1010f269f73ad89576a53f87f84f45b853052dbbc6bab92ec0fb7e5651e30d"
#define LIST_DATA "{\"values.yaml\":\"WzFd\"}"
#define HASH_IS(hash) "{\"spec\":{\"valuesHash\":\"" hash "\"}}"
#define MOMENT_MS 20000 /* a Secret that is not as it should be is asked for again and again */

static fake *begin(const char *more)
{
    char text[1024];
    fake *f = fake_new();
    fake_add_cluster(f, "east", "\"env\":\"prod\"");
    fake_add_cluster(f, "west", "\"env\":\"prod\",\"kind\":\"special\"");
    snprintf(text, sizeof text,
             "{\"metadata\":{\"name\":\"app\",\"namespace\":\"" FAKE_SPACE "\"},\"spec\":{"
             "\"resources\":[{\"name\":\"a.yaml\",\"content\":\"x\"}],\"targets\":["
             "{\"name\":\"special\",\"clusterSelector\":{\"matchLabels\":{\"kind\":\"special\"}}},"
             "{\"name\":\"all\",\"clusterSelector\":{\"matchLabels\":{\"env\":\"prod\"}}}]%s}}",
             more);
    fake_create(f, FAKE_BUNDLES, text);
    return f;
}

static void add_secret(fake *f, const char *data)
{
    char text[512];
    snprintf(text, sizeof text,
             "{\"metadata\":{\"name\":\"app\",\"namespace\":\"" FAKE_SPACE "\"},\"data\":%s}",
             data);
    fake_create(f, SECRETS, text);
}

static void change_secret(fake *f, const char *data)
{
    char text[512];
    snprintf(text, sizeof text, "{\"data\":%s}", data);
    fake_edit(f, SECRETS, "app", text);
}

static void check_values(fake *f, const char *name, const char *wanted)
{
    char path[FAKE_NAME_BYTES];
    snprintf(path, sizeof path, "/api/v1/namespaces/ns-%s/secrets", name);
    const char *found = fake_text(f, path, "app", "/data/values");
    check_msg(strcmp(found, wanted) == 0, "%s: found %s\n%s", name, found, f->log.ptr);
}

static void check_ready(fake *f, const char *wanted)
{
    check_text(str_of(fake_text(f, FAKE_BUNDLES, "app", "/status/display/readyClusters")), wanted);
}

/* The condition Ready says why not. */
static void check_says(fake *f, const char *part)
{
    const char *found = fake_text(f, FAKE_BUNDLES, "app", "/status/conditions/0/message");
    check_has_at(str_of(found), str_of(part), __FILE__, __LINE__);
}

static bool deployed(fake *f, const char *name)
{
    char home[FAKE_NAME_BYTES];
    return fake_find(f, fake_home(name, home), "app") != NULL;
}

static void deploys_them(void **state)
{
    (void)state;
    fake *f = begin(",\"valuesHash\":\"" ONE_HASH "\"");
    add_secret(f, ONE_DATA);
    fake_start(f);
    fake_run(f, -1);
    check_ready(f, "2/2");
    check_values(f, "east", "eyJhIjoxfQ==");
    check_values(f, "west", "eyJhIjoxfQ==");
    /* New ones, in whichever order the two are written. */
    for (int secret_first = 0; secret_first < 2; secret_first++) {
        const char *hash = secret_first ? HASH_IS(ONE_HASH) : HASH_IS(TWO_HASH);
        const char *data =
            secret_first ? "{\"values.yaml\":\"eyJhIjoxfQ==\",\"special\":null}" : TWO_DATA;
        if (secret_first)
            change_secret(f, data);
        fake_edit(f, FAKE_BUNDLES, "app", hash);
        fake_run(f, secret_first ? -1 : MOMENT_MS);
        if (!secret_first) {
            check_says(f, "the values in Secret fleet-default/app are not those of valuesHash");
            check_values(f, "east", "eyJhIjoxfQ==");
            change_secret(f, data);
        }
        fake_run(f, -1);
        check_ready(f, "2/2");
        check_values(f, "east", secret_first ? "eyJhIjoxfQ==" : "eyJhIjoyLCJiIjoxfQ==");
        check_values(f, "west", secret_first ? "eyJhIjoxfQ==" : "eyJhIjoyLCJiIjoyfQ==");
    }
    /* At rest a restart changes nothing. */
    uint64_t writes = f->writes;
    fake_start(f);
    fake_run(f, -1);
    check_msg(f->writes == writes, "%s", f->log.ptr);
    fake_free(f);
}

static void waits_for_them(void **state)
{
    (void)state;
    fake *f = begin(",\"valuesHash\":\"" ONE_HASH "\"");
    fake_start(f);
    fake_run(f, MOMENT_MS);
    assert_true(!deployed(f, "east") && !deployed(f, "west"));
    check_says(f, "Secret fleet-default/app with the values of valuesHash does not exist");
    add_secret(f, LIST_DATA);
    fake_edit(f, FAKE_BUNDLES, "app", HASH_IS(LIST_HASH));
    fake_run(f, MOMENT_MS);
    assert_true(!deployed(f, "east") && !deployed(f, "west"));
    check_says(f, "the values in Secret fleet-default/app are no JSON objects");
    change_secret(f, ONE_DATA);
    fake_edit(f, FAKE_BUNDLES, "app", HASH_IS(ONE_HASH));
    fake_run(f, -1);
    check_ready(f, "2/2");
    check_values(f, "east", "eyJhIjoxfQ==");
    /* It is gone when the controller starts: what was deployed stays. */
    fake_delete(f, SECRETS, "app");
    fake_start(f);
    fake_run(f, MOMENT_MS);
    assert_true(deployed(f, "east") && deployed(f, "west"));
    check_values(f, "east", "eyJhIjoxfQ==");
    /* Who does not want them any more does not wait. */
    fake_edit(f, FAKE_BUNDLES, "app", "{\"spec\":{\"valuesHash\":null}}");
    fake_run(f, -1);
    check_ready(f, "2/2");
    check_values(f, "east", "");
    fake_free(f);
}

static void goes_while_it_waits(void **state)
{
    (void)state;
    fake *f = begin("");
    fake_start(f);
    fake_run(f, -1);
    fake_edit(f, FAKE_BUNDLES, "app", HASH_IS(ONE_HASH));
    fake_start(f);
    fake_run(f, MOMENT_MS);
    assert_true(deployed(f, "east") && deployed(f, "west"));
    fake_delete(f, FAKE_BUNDLES, "app");
    fake_run(f, MOMENT_MS);
    assert_true(!deployed(f, "east") && !deployed(f, "west"));
    assert_null(fake_find(f, FAKE_BUNDLES, "app"));
    fake_free(f);
}

/* What cannot be read removes nothing, also if the controller never could. */
static void keeps_what_it_cannot_read(void **state)
{
    (void)state;
    fake *f = begin("");
    fake_start(f);
    fake_run(f, -1);
    fake_edit(f, FAKE_BUNDLES, "app", "{\"spec\":{\"paused\":\"perhaps\"}}");
    for (int restarts = 0; restarts < 2; restarts++) {
        fake_run(f, MOMENT_MS);
        assert_true(deployed(f, "east") && deployed(f, "west"));
        check_says(f, "paused");
        fake_start(f);
    }
    /* But for a Cluster that is to go. */
    fake_edit(f, FAKE_CLUSTERS, "east",
              "{\"metadata\":{\"finalizers\":[\"fleet.cattle.io/cluster-finalizer\"]}}");
    fake_delete(f, FAKE_CLUSTERS, "east");
    fake_run(f, MOMENT_MS);
    assert_true(!deployed(f, "east") && deployed(f, "west"));
    assert_null(fake_find(f, FAKE_CLUSTERS, "east"));
    fake_edit(f, FAKE_BUNDLES, "app", "{\"spec\":{\"paused\":null}}");
    fake_run(f, -1);
    check_ready(f, "1/1");
    fake_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(deploys_them),
        cmocka_unit_test(waits_for_them),
        cmocka_unit_test(goes_while_it_waits),
        cmocka_unit_test(keeps_what_it_cannot_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
