/* SPDX-License-Identifier: Apache-2.0 */
/* What a Bundle remembers of its rollout, in an annotation: it is known again whenever the Bundle
 * is. */
#include "support/check.h"

#include "support/fake_fleet.h"

#define CLUSTERS 4
#define SECRETS "/api/v1/namespaces/" FAKE_SPACE "/secrets"
#define VALUES                                                                                     \
    ",\"valuesHash\":\"ef044c49330aa54f5679add50798f2ab0480012fe1ab2416a8142fb14c40220b\""
#define VALUES_SECRET                                                                              \
    "{\"metadata\":{\"name\":\"app\",\"namespace\":\"" FAKE_SPACE                                  \
    "\"},\"data\":{\"values.yaml\":\"eyJhIjoxfQ==\"}}"
#define CHART ",\"helmOpOptions\":{\"helmOpSecretName\":\"key\"}"
#define CHART_SECRET                                                                               \
    "{\"metadata\":{\"name\":\"key\",\"namespace\":\"" FAKE_SPACE                                  \
    "\"},\"type\":\"Opaque\",\"data\":{\"username\":\"bWU=\"}}"

#define NEWER "{\"spec\":{\"defaultNamespace\":\"newer\"}}"

/* What a Bundle may have to wait for. */
static const char *const needs[] = {"", VALUES, CHART};

static fake_trouble no_secrets(fake *f, const kube_write *w)
{
    (void)f;
    return (fake_trouble){w->verb == WRITE_READ && str_ends(w->collection, STR("/secrets")),
                          WRITE_LATER, false};
}

static fake *begin(const char *need, const char *rollout)
{
    char more[512];
    snprintf(more, sizeof more, "%s,\"rolloutStrategy\":%s", need, rollout);
    fake *f = fleet_of(CLUSTERS, more);
    fake_create(f, SECRETS, VALUES_SECRET);
    fake_create(f, SECRETS, CHART_SECRET);
    fake_run(f, 20000);
    return f;
}

/* The controller begins anew, and reads no Secret for a while. */
static void restart(fake *f)
{
    f->trouble = no_secrets;
    fake_start(f);
    fake_run(f, 20000);
    f->trouble = NULL;
    fake_run(f, 20000);
}

static bool broken;

static fake_agent fails_if_broken(fake *f, const char *collection, const char *live)
{
    (void)f;
    (void)collection;
    (void)live;
    return broken ? AGENT_FAILS : AGENT_WELL;
}

static bool halted(fake *f)
{
    bundle_view v = {0};
    assert_true(engine_bundle(cluster_shell_engine(f->shell), STR(FLEET_APP), &v));
    return v.halted;
}

/* ---- stories ---- */

static void a_halt(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(needs); i++) {
        fake *f = begin(needs[i], "{\"maxUnavailable\":1,\"failureThreshold\":1}");
        fleet_check(f, "4/4", 0);
        f->agent = fails_if_broken;
        broken = true;
        fake_edit(f, FAKE_BUNDLES, "app", NEWER);
        fake_run(f, 20000);
        assert_true(halted(f));
        broken = false; /* it gets well by itself */
        fleet_deployment(f, 0)->answers_ms = f->now_ms + 50000;
        restart(f);
        assert_true(halted(f));
        fake_run(f, 60000);
        fleet_check(f, "1/4", 0);
        fake_edit(f, FAKE_BUNDLES, "app",
                  "{\"metadata\":{\"annotations\":{\"drover.dev/acts\":"
                  "\"[{\\\"act\\\":\\\"resume\\\"}]\"}}}");
        fake_run(f, 60000);
        fleet_check(f, "4/4", 0);
        fake_free(f);
    }
}

static void an_approval(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(needs); i++) {
        fake *f = begin(needs[i], "{\"partitions\":[{\"name\":\"first\",\"clusterName\":\"c00\"},"
                                  "{\"name\":\"gate\",\"approval\":true,\"clusterSelector\":{}}]}");
        fleet_check(f, "1/4", 0);
        f->agent_ms = INT64_C(1000000);
        fake_edit(f, FAKE_BUNDLES, "app",
                  "{\"metadata\":{\"annotations\":{\"drover.dev/acts\":"
                  "\"[{\\\"act\\\":\\\"approve\\\"}]\"}}}");
        fake_run(f, 20000);
        restart(f);
        fake_add_cluster(f, "late", "\"env\":\"prod\"");
        fake_run(f, 20000);
        char home[FAKE_NAME_BYTES];
        assert_non_null(fake_find(f, fake_home("late", home), "app"));
        fake_free(f);
    }
}

/* Who is in which partition. */
static void a_cut(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(needs); i++) {
        fake *f = begin(needs[i], "{\"maxUnavailable\":0,\"autoPartitionThreshold\":1,"
                                  "\"autoPartitionSize\":2}");
        fleet_check(f, "4/4", 0);
        f->agent_ms = INT64_C(1000000);
        fake_edit(f, FAKE_BUNDLES, "app", NEWER);
        fake_run(f, 20000);
        fake_add_cluster(f, "a", "\"env\":\"prod\"");
        fake_run(f, 20000);
        restart(f);
        check_text(str_of(fake_text(f, FAKE_BUNDLES, "app", "/status/partitions/1/name")),
                   "Partition 2 - 4");
        assert_int_equal(
            yyjson_get_int(fake_get(f, FAKE_BUNDLES, "app", "/status/partitions/1/count")), 3);
        fake_free(f);
    }
}

/* A Bundle that comes while others go on, with the record of one that was there before. */
static void that_comes_late(void **state)
{
    (void)state;
    fake *f = begin("", "{\"maxUnavailable\":1,\"failureThreshold\":1}");
    char text[4096];
    f->agent = fails_if_broken;
    broken = true;
    fake_edit(f, FAKE_BUNDLES, "app", NEWER);
    fake_run(f, 20000);
    assert_true(halted(f));
    char *record =
        yyjson_val_write(fake_get(f, FAKE_BUNDLES, "app", "/metadata/annotations"), 0, NULL);
    yyjson_val *spec = fake_get(f, FAKE_BUNDLES, "app", "/spec");
    char *kept = yyjson_val_write(spec, 0, NULL);
    snprintf(text, sizeof text,
             "{\"metadata\":{\"name\":\"app\",\"namespace\":\"" FAKE_SPACE
             "\",\"annotations\":%s},\"spec\":%s}",
             record, kept);
    fake_edit(f, FAKE_BUNDLES, "app", "{\"metadata\":{\"finalizers\":null}}");
    fake_delete(f, FAKE_BUNDLES, "app");
    fake_create(f, FAKE_BUNDLES, text);
    fake_run(f, 20000);
    assert_true(halted(f));
    (free)(record);
    (free)(kept);
    broken = false;
    fake_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_halt),
        cmocka_unit_test(an_approval),
        cmocka_unit_test(a_cut),
        cmocka_unit_test(that_comes_late),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
