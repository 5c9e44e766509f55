/* SPDX-License-Identifier: Apache-2.0 */
/* A deployment that waits for another one on its cluster has not failed, whichever agent says so.
 */
#include "support/check.h"

#include "engine/fleet_names.h"
#include "model/document.h"
#include "support/fake_hub.h"

static const char *const names[] = {"east", "north", "south"};

static fake_agent nobody(fake *f, const char *collection, const char *live)
{
    (void)f;
    (void)collection;
    (void)live;
    return AGENT_SILENT;
}

static fake *begin(void)
{
    fake *f = fake_new();
    for (size_t i = 0; i < COUNT_OF(names); i++)
        fake_add_cluster(f, names[i], "\"env\":\"prod\"");
    fake_create(f, FAKE_BUNDLES,
                "{\"metadata\":{\"name\":\"app\",\"namespace\":\"" FAKE_SPACE "\"},\"spec\":{"
                "\"resources\":[{\"name\":\"a.yaml\",\"content\":\"one\"}],\"targets\":["
                "{\"clusterSelector\":{}}],\"dependsOn\":[{\"name\":\"db\"}],\"rolloutStrategy\":{"
                "\"maxUnavailable\":1,\"failureThreshold\":1}}}");
    fake_start(f);
    fake_run(f, -1);
    f->agent = nobody;
    fake_edit(f, FAKE_BUNDLES, "app",
              "{\"spec\":{\"resources\":[{\"name\":\"a.yaml\",\"content\":\"two\"}]}}");
    fake_run(f, 5000);
    return f;
}

static const char *live(fake *f, size_t at, char text[FAKE_NAME_BYTES])
{
    char home[FAKE_NAME_BYTES];
    snprintf(text, FAKE_NAME_BYTES, "%s",
             fake_text(f, fake_home(names[at], home), "app", "/spec/deploymentID"));
    return text;
}

/* Who was released to first says this, and then that all is well. */
static void say(fake *f, const char *why, const char *message)
{
    char home[FAKE_NAME_BYTES], id[FAKE_NAME_BYTES], text[1024];
    snprintf(text, sizeof text,
             "{\"status\":{\"conditions\":[{\"type\":\"Deployed\",\"status\":\"False\","
             "\"reason\":\"%s\",\"message\":\"%s\",\"lastUpdateTime\":\"2099-01-01T00:00:00Z\"}]}}",
             why, message);
    fake_edit(f, fake_home(names[0], home), "app", text);
    fake_run(f, 5000);
    check_text(str_of(fake_text(f, FAKE_BUNDLES, "app", "/status/display/state")), "ErrApplied");
    snprintf(text, sizeof text,
             "{\"status\":{\"appliedDeploymentID\":\"%s\",\"ready\":true,\"nonModified\":true,"
             "\"conditions\":[{\"type\":\"Deployed\",\"status\":\"True\","
             "\"lastUpdateTime\":\"2099-01-01T00:00:01Z\"}]}}",
             live(f, 0, id));
    fake_edit(f, home, "app", text);
    fake_run(f, 5000);
}

static void waiting_is_no_failure(void **state)
{
    (void)state;
    static const struct {
        const char *reason, *message;
        bool failed;
    } rows[] = {
        {CONDITION_DEPENDENCY, "it depends on db, which is WaitApplied", false},
        {"Error", "dependent bundle(s) are not ready: [db]", false},
        {"Error", "list bundledeployments: no bundles matching labels a=b in namespace c", false},
        {"Error", "no such chart", true},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char one[FAKE_NAME_BYTES], two[FAKE_NAME_BYTES];
        fake *f = begin();
        assert_string_not_equal(live(f, 0, one), live(f, 1, two));
        say(f, rows[i].reason, rows[i].message);
        bool halted = strcmp(live(f, 0, one), live(f, 1, two)) != 0;
        check_msg(halted == rows[i].failed, "row %zu", i);
        fake_free(f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(waiting_is_no_failure)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
