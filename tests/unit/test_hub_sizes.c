/* SPDX-License-Identifier: Apache-2.0 */
/* What is too large: it is told of, and all the rest goes on. */
#include "support/check.h"

#include "operator/hub_internal.h"
#include "support/fake_hub.h"

#define MINUTE_MS 60000

/* ---- arranging ---- */

static void add_bundle(fake *f, const char *name)
{
    char text[512];
    snprintf(text, sizeof text,
             "{\"metadata\":{\"name\":\"%s\",\"namespace\":\"" FAKE_SPACE
             "\"},\"spec\":{\"resources\":[{\"name\":\"a.yaml\",\"content\":\"x\"}],"
             "\"targets\":[{\"clusterSelector\":{}}]}}",
             name);
    fake_create(f, FAKE_BUNDLES, text);
}

/* A patch in which one text stands so many times. */
typedef struct long_patch {
    const char *before, *text;
    size_t times;
    const char *after;
} long_patch;

static void edit_long(fake *f, const char *collection, const char *name, long_patch of)
{
    buf patch = BUF(16u << 20);
    buf_addz(&patch, of.before);
    for (size_t i = 0; i < of.times; i++)
        buf_addz(&patch, of.text);
    buf_addz(&patch, of.after);
    fake_edit(f, collection, name, patch.ptr);
    buf_done(&patch);
}

static const char *ready_message(fake *f, const char *name)
{
    return fake_text(f, FAKE_BUNDLES, name, "/status/conditions/0/message");
}

static bool runs(fake *f, const char *name, const char *on)
{
    char home[FAKE_NAME_BYTES];
    return yyjson_get_bool(fake_get(f, fake_home(on, home), name, "/status/ready"));
}

/* ---- documents ---- */

/* etcd may be told to take more than Drover does. */
static void a_large_bundle_is_refused_alone(void **state)
{
    (void)state;
    fake *f = fake_new();
    fake_add_cluster(f, "east", "");
    add_bundle(f, "large");
    edit_long(f, FAKE_BUNDLES, "large",
              (long_patch){"{\"spec\":{\"resources\":[{\"name\":\"a\",\"content\":\"",
                           "0123456789abcdef", 100000, "\"}]}}"});
    add_bundle(f, "small");
    fake_start(f);
    fake_run(f, MINUTE_MS);
    assert_true(runs(f, "small", "east"));
    assert_false(runs(f, "large", "east"));
    check_text(str_of(ready_message(f, "large")),
               "found more than 1572864 bytes, which is the most");
    fake_free(f);
}

/* Go writes "<" with six letters. */
static void values_of_a_cluster_may_grow(void **state)
{
    (void)state;
    fake *f = fake_new();
    fake_add_cluster(f, "east", "\"env\":\"prod\"");
    edit_long(f, FAKE_CLUSTERS, "east",
              (long_patch){"{\"spec\":{\"templateValues\":{\"n\":\"7\",\"text\":\"", "<<<<<<<<",
                           40000, "\"}}}"});
    add_bundle(f, "app");
    fake_edit(f, FAKE_BUNDLES, "app",
              "{\"spec\":{\"helm\":{\"values\":{\"n\":\"${ .ClusterValues.n }\"}}}}");
    fake_start(f);
    fake_run(f, MINUTE_MS);
    assert_true(runs(f, "app", "east"));
    fake_free(f);
}

/* ---- what agents say ---- */

/* A person has changed a resource of a deployment, in so many bytes. */
static void drift(fake *f, const char *name, const char *on, size_t bytes)
{
    char home[FAKE_NAME_BYTES];
    edit_long(f, fake_home(on, home), name,
              (long_patch){
                  .before = "{\"status\":{\"nonModified\":false,\"modifiedStatus\":["
                            "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"name\":\"settings\","
                            "\"namespace\":\"app\",\"patch\":\"{\\\"data\\\":",
                  .text = "\xC3\xA4\\\"345678",
                  .times = bytes / 10,
                  .after = "\"}],\"nonReadyStatus\":[{\"kind\":\"Pod\",\"name\":\"p\",\"summary\":"
                           "{\"state\":\"wrong\",\"error\":true,"
                           "\"message\":[\"image not found\"]}}]}}"});
}

static size_t status_bytes(fake *f, const char *collection, const char *name)
{
    size_t bytes = 0;
    char *text = yyjson_val_write(fake_get(f, collection, name, "/status"), 0, &bytes);
    assert_non_null(text);
    (free)(text);
    return bytes;
}

static void add_clusters(fake *f, int count)
{
    char name[16];
    for (int i = 0; i < count; i++) {
        snprintf(name, sizeof name, "c%03d", i);
        fake_add_cluster(f, name, "\"env\":\"prod\"");
    }
}

/* The first entry of a list of those who are not ready. */
static void check_entry(fake *f, const char *collection, const char *name, const char *list)
{
    char at[256];
    snprintf(at, sizeof at, "%s/0/modifiedStatus/0/name", list);
    check_text(str_of(fake_text(f, collection, name, at)), "settings");
    snprintf(at, sizeof at, "%s/0/modifiedStatus/0/patch", list);
    str patch = str_of(fake_text(f, collection, name, at));
    assert_true(str_starts(patch, STR("{\"data\":")));
    assert_true(str_ends(patch, STR("...")));
    assert_in_range(patch.len, 1000, 2048);
    assert_true(str_utf8(patch));
    snprintf(at, sizeof at, "%s/0/nonReadyStatus/0/summary/message/0", list);
    check_text(str_of(fake_text(f, collection, name, at)), "image not found");
}

static void a_bundle_quotes_little_of_much(void **state)
{
    (void)state;
    char name[16];
    fake *f = fake_new();
    add_clusters(f, 12);
    add_bundle(f, "app");
    fake_start(f);
    fake_run(f, -1);
    for (int i = 0; i < 12; i++) {
        snprintf(name, sizeof name, "c%03d", i);
        drift(f, "app", name, 120000);
    }
    fake_run(f, -1);
    assert_int_equal(yyjson_get_sint(fake_get(f, FAKE_BUNDLES, "app", "/status/summary/modified")),
                     12);
    check_entry(f, FAKE_BUNDLES, "app", "/status/summary/nonReadyResources");
    check_entry(f, FAKE_BUNDLES, "app", "/status/partitions/0/summary/nonReadyResources");
    assert_in_range(status_bytes(f, FAKE_BUNDLES, "app"), 30000, 60000);
    fake_start(f); /* it is no other after a restart */
    fake_run(f, -1);
    assert_in_range(status_bytes(f, FAKE_BUNDLES, "app"), 30000, 60000);
    fake_free(f);
}

static void a_cluster_quotes_little_of_many(void **state)
{
    (void)state;
    char name[16];
    fake *f = fake_new();
    fake_add_cluster(f, "east", "");
    for (int i = 0; i < 10; i++) {
        snprintf(name, sizeof name, "b%d", i);
        add_bundle(f, name);
    }
    fake_start(f);
    fake_run(f, -1);
    for (int i = 0; i < 10; i++) {
        snprintf(name, sizeof name, "b%d", i);
        drift(f, name, "east", 200000);
    }
    fake_run(f, -1);
    check_entry(f, FAKE_CLUSTERS, "east", "/status/summary/nonReadyResources");
    assert_in_range(status_bytes(f, FAKE_CLUSTERS, "east"), 20000, 60000);
    fake_free(f);
}

/* More resources than are quoted, and one of them that is no resource at all. */
static void leaves_out_what_has_no_room(void **state)
{
    (void)state;
    char home[FAKE_NAME_BYTES];
    fake *f = fake_new();
    fake_add_cluster(f, "east", "");
    add_bundle(f, "app");
    fake_start(f);
    fake_run(f, -1);
    buf patch = BUF(1u << 20);
    buf_addz(&patch, "{\"status\":{\"ready\":false,\"conditions\":[{\"type\":\"Deployed\","
                     "\"status\":\"True\",\"message\":\"");
    for (int i = 0; i < 500; i++)
        buf_addz(&patch, "message ");
    buf_addz(&patch, "\"}],\"nonReadyStatus\":[{");
    for (int i = 0; i < 1000; i++)
        buf_addf(&patch, "%s\"member%d\":true", i > 0 ? "," : "", i);
    buf_addc(&patch, '}');
    for (int i = 0; i < 9; i++) {
        buf_addf(&patch, ",{\"kind\":\"Pod\",\"name\":\"p%d\",\"summary\":{\"message\":[", i);
        for (int k = 0; k < 100; k++)
            buf_addf(&patch, "%s\"back-off restarting failed container %d\"", k > 0 ? "," : "", k);
        buf_addz(&patch, "]},\"uid\":\"dc38a9b0-e2ac-4b1e-8a5c-7a29f2c1d3e4\"}");
    }
    buf_addz(&patch, "]}}");
    fake_edit(f, fake_home("east", home), "app", patch.ptr);
    buf_done(&patch);
    fake_run(f, -1);
#define ENTRY "/status/summary/nonReadyResources/0/"
    assert_int_equal(strlen(fake_text(f, FAKE_BUNDLES, "app", ENTRY "message")), HUB_MESSAGE_BYTES);
    assert_int_equal(yyjson_arr_size(fake_get(f, FAKE_BUNDLES, "app", ENTRY "nonReadyStatus")), 1);
    check_text(str_of(fake_text(f, FAKE_BUNDLES, "app", ENTRY "nonReadyStatus/0/name")), "p0");
    check_text(str_of(fake_text(f, FAKE_BUNDLES, "app", ENTRY "nonReadyStatus/0/uid")),
               "dc38a9b0-e2ac-4b1e-8a5c-7a29f2c1d3e4");
    size_t told = yyjson_arr_size(
        fake_get(f, FAKE_BUNDLES, "app", ENTRY "nonReadyStatus/0/summary/message"));
    assert_in_range(told, 10, 99);
    fake_free(f);
}

/* What all agents say together has its limit, too: those who come later are listed without. */
static void keeps_no_more_than_fits_in_memory(void **state)
{
    (void)state;
    fake *f = fake_new();
    add_clusters(f, 4);
    add_bundle(f, "app");
    f->settings.entry_bytes_max = 6000;
    fake_start(f);
    fake_run(f, -1);
    drift(f, "app", "c000", 100000);
    drift(f, "app", "c001", 100000);
    drift(f, "app", "c002", 100000);
    fake_run(f, -1);
    assert_non_null(fake_get(f, FAKE_BUNDLES, "app", ENTRY "modifiedStatus"));
    check_text(str_of(fake_text(f, FAKE_BUNDLES, "app",
                                "/status/summary/nonReadyResources/2/bundleState")),
               "Modified");
    assert_null(fake_get(f, FAKE_BUNDLES, "app",
                         "/status/summary/nonReadyResources/2/modifiedStatus"));
    fake_edit(f, HUB_API "/namespaces/ns-c000/bundledeployments", "app",
              "{\"status\":{\"nonModified\":true,\"modifiedStatus\":null,"
              "\"nonReadyStatus\":null}}");
    drift(f, "app", "c003", 100000);
    fake_run(f, -1);
    assert_non_null(fake_get(f, FAKE_BUNDLES, "app",
                             "/status/summary/nonReadyResources/2/modifiedStatus"));
    fake_free(f);
}

/* ---- statuses ---- */

/* One partition for each cluster: names alone would fill the object in the end. */
static void lists_fewer_the_more_partitions_there_are(void **state)
{
    (void)state;
    char name[16];
    fake *f = fake_new();
    add_clusters(f, 120);
    add_bundle(f, "app");
    fake_edit(f, FAKE_BUNDLES, "app",
              "{\"spec\":{\"rolloutStrategy\":{\"autoPartitionSize\":1,"
              "\"autoPartitionThreshold\":1,\"maxUnavailablePartitions\":\"100%\"}}}");
    fake_start(f);
    fake_run(f, -1);
    for (int i = 0; i < 120; i++) {
        snprintf(name, sizeof name, "c%03d", i);
        drift(f, "app", name, 10000);
    }
    fake_run(f, -1);
    yyjson_val *all = fake_get(f, FAKE_BUNDLES, "app", "/status/partitions");
    assert_int_equal(yyjson_arr_size(all), 120);
    check_entry(f, FAKE_BUNDLES, "app", "/status/partitions/0/summary/nonReadyResources");
#define LAST "/status/partitions/119/summary/nonReadyResources/0/"
    check_text(str_of(fake_text(f, FAKE_BUNDLES, "app", LAST "name")), "fleet-default/c119");
    assert_null(fake_get(f, FAKE_BUNDLES, "app", LAST "modifiedStatus"));
    assert_in_range(status_bytes(f, FAKE_BUNDLES, "app"), HUB_QUOTED_BYTES, 2 * HUB_LISTED_BYTES);
    fake_free(f);
}

/* Others have left no room for ours. */
static void a_status_without_room_holds_nothing_up(void **state)
{
    (void)state;
    char home[FAKE_NAME_BYTES];
    fake *f = fake_new();
    fake_add_cluster(f, "east", "");
    add_bundle(f, "app");
    edit_long(f, FAKE_BUNDLES, "app",
              (long_patch){"{\"status\":{\"conditions\":[{\"type\":\"Others\",\"status\":\"True\","
                           "\"message\":\"",
                           "0123456789abcdef", 98296, "\"}]}}"});
    fake_start(f);
    fake_run(f, MINUTE_MS);
    assert_true(runs(f, "app", "east"));
    assert_null(fake_get(f, FAKE_BUNDLES, "app", "/status/summary"));
    char before[FAKE_NAME_BYTES];
    snprintf(before, sizeof before, "%s",
             fake_text(f, fake_home("east", home), "app", "/spec/deploymentID"));
    fake_edit(f, FAKE_BUNDLES, "app",
              "{\"spec\":{\"resources\":[{\"name\":\"a.yaml\",\"content\":\"y\"}]}}");
    fake_run(f, 3000);
    assert_string_not_equal(fake_text(f, home, "app", "/status/appliedDeploymentID"), before);
    fake_edit(f, FAKE_BUNDLES, "app", "{\"status\":null}");
    fake_run(f, MINUTE_MS);
    check_text(str_of(fake_text(f, FAKE_BUNDLES, "app", "/status/display/readyClusters")), "1/1");
    fake_free(f);
}

static fake_trouble refuses_statuses(fake *f, const kube_write *w)
{
    (void)f;
    bool is = w->subresource.len > 0 && str_ends(w->collection, STR("/bundles"));
    return (fake_trouble){is, WRITE_REFUSED, false};
}

/* The record stands in the same object, and releases wait for it. */
static void a_refused_status_holds_no_release_up(void **state)
{
    (void)state;
    char home[FAKE_NAME_BYTES];
    fake *f = fake_new();
    fake_add_cluster(f, "east", "");
    add_bundle(f, "app");
    fake_start(f);
    fake_run(f, -1);
    f->trouble = refuses_statuses;
    drift(f, "app", "east", 100);
    fake_run(f, 5000);
    fake_edit(f, FAKE_BUNDLES, "app",
              "{\"spec\":{\"resources\":[{\"name\":\"a.yaml\",\"content\":\"y\"}]}}");
    char before[FAKE_NAME_BYTES];
    snprintf(before, sizeof before, "%s",
             fake_text(f, fake_home("east", home), "app", "/spec/deploymentID"));
    fake_run(f, 3000);
    assert_string_not_equal(fake_text(f, home, "app", "/status/appliedDeploymentID"), before);
    fake_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_large_bundle_is_refused_alone),
        cmocka_unit_test(values_of_a_cluster_may_grow),
        cmocka_unit_test(a_bundle_quotes_little_of_much),
        cmocka_unit_test(a_cluster_quotes_little_of_many),
        cmocka_unit_test(leaves_out_what_has_no_room),
        cmocka_unit_test(keeps_no_more_than_fits_in_memory),
        cmocka_unit_test(lists_fewer_the_more_partitions_there_are),
        cmocka_unit_test(a_status_without_room_holds_nothing_up),
        cmocka_unit_test(a_refused_status_holds_no_release_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
