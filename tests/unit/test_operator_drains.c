/* SPDX-License-Identifier: Apache-2.0 */
/* Drains: which pods they take. */
#include "support/check.h"

#include "support/operator_story.h"

#define PODS_OF_APPS "/api/v1/namespaces/default/pods"

/* No policy: all nodes at once. */
#define DRAINS(more)                                                                               \
    "{\"metadata\":{\"name\":\"sk\"},\"spec\":{" more "\"packages\":{\"tune\":{\"version\":"       \
    "\"1.0.0\",\"image\":\"example.test/tune\",\"interrupt\":{\"type\":\"service\","               \
    "\"services\":[\"a\"]}}}}}"

static fake *begin_drains(int nodes, const char *of_skyhook)
{
    fake *f = fake_new();
    fake_add_nodes(f, nodes);
    fake_create(f, FAKE_SKYHOOKS, of_skyhook);
    fake_start(f);
    return f;
}

static size_t count_status(fake *f, const char *status)
{
    size_t count = 0;
    for (size_t i = 0; i < f->count; i++)
        count += strcmp(f->objects[i].collection, FAKE_NODES) == 0 &&
                 strcmp(status_of(f, f->objects[i].name), status) == 0;
    return count;
}

#define TOLERANT                                                                                   \
    "{\"metadata\":{\"name\":\"agent\",\"namespace\":\"default\"},\"spec\":{\"nodeName\":\"n00\"," \
    "\"tolerations\":[{\"operator\":\"Exists\"}]},\"status\":{\"phase\":\"Running\"}}"

/* Whoever made it makes the next one at once, and the scheduler puts that on the cordoned node. */
static void comes_back(fake *f, const kube_write *w)
{
    if (w->verb == WRITE_EVICT)
        fake_create(f, PODS_OF_APPS, TOLERANT);
}

static void pods_that_tolerate_everything_stay(void **state)
{
    (void)state;
    fake *f = begin_drains(1, DRAINS(""));
    f->watch = comes_back;
    fake_create(f, PODS_OF_APPS, TOLERANT);
    fake_run(f, -1);
    assert_int_equal(node_shell_count(f->shell).evictions, 0);
    assert_int_equal(count_status(f, "complete"), 1);
    fake_free(f);
}

#define SPARES_TRAINING "\"podNonInterruptLabels\":{\"matchLabels\":{\"kind\":\"training\"}},"

static void add_pod(fake *f, const char *name, int on, const char *kind)
{
    char text[512];
    snprintf(text, sizeof text,
             "{\"metadata\":{\"name\":\"%s\",\"namespace\":\"default\",\"labels\":{\"kind\":"
             "\"%s\"}},\"spec\":{\"nodeName\":\"n%02d\"},\"status\":{\"phase\":\"Running\"}}",
             name, kind, on);
    fake_create(f, PODS_OF_APPS, text);
}

/* Whatever is edited in the middle of a drain counts for pods that it knows already. */
static void labels_that_are_taken_back_spare_nobody(void **state)
{
    (void)state;
    fake *f = begin_drains(1, DRAINS(SPARES_TRAINING));
    add_pod(f, "job", 0, "training");
    fake_run(f, 60000);
    assert_int_equal(node_shell_count(f->shell).evictions, 0);
    fake_edit(f, FAKE_SKYHOOKS, "sk", "{\"spec\":{\"podNonInterruptLabels\":null}}");
    fake_run(f, -1);
    assert_int_equal(node_shell_count(f->shell).evictions, 1);
    assert_int_equal(count_status(f, "complete"), 1);
    fake_free(f);
}

static bool protects_web(fake *f, const char *pod_name)
{
    (void)f;
    return strcmp(pod_name, "web") == 0;
}

static void labels_that_are_added_spare_who_is_left(void **state)
{
    (void)state;
    fake *f = begin_drains(1, DRAINS(""));
    f->refuses = protects_web;
    add_pod(f, "web", 0, "training");
    fake_run(f, 7000);
    uint64_t evictions = node_shell_count(f->shell).evictions;
    assert_true(evictions > 0);
    fake_edit(f, FAKE_SKYHOOKS, "sk",
              "{\"spec\":{\"podNonInterruptLabels\":{\"matchLabels\":{\"kind\":\"training\"}}}}");
    fake_run(f, 60000);
    assert_int_equal(node_shell_count(f->shell).evictions, evictions);
    fake_edit(f, PODS_OF_APPS, "web", "{\"metadata\":{\"labels\":{\"kind\":\"batch\"}}}");
    fake_run(f, 1000);
    assert_int_equal(node_shell_count(f->shell).evictions, evictions + 1);
    fake_edit(f, PODS_OF_APPS, "web", "{\"status\":{\"phase\":\"Succeeded\"}}");
    fake_run(f, -1);
    assert_int_equal(count_status(f, "complete"), 1);
    fake_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pods_that_tolerate_everything_stay),
        cmocka_unit_test(labels_that_are_taken_back_spare_nobody),
        cmocka_unit_test(labels_that_are_added_spare_who_is_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
