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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pods_that_tolerate_everything_stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
