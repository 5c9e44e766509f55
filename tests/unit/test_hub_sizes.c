/* SPDX-License-Identifier: Apache-2.0 */
/* What is too large: it is told of, and all the rest goes on. */
#include "support/check.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_large_bundle_is_refused_alone),
        cmocka_unit_test(values_of_a_cluster_may_grow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
