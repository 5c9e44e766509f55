/* SPDX-License-Identifier: Apache-2.0 */
/* ClusterGroups that change while the shell writes to them. */
#include "support/check.h"

#include "support/fake_hub.h"

static void edit_group(fake *f, const kube_write *w)
{
    if (str_find(w->collection, STR("clustergroups")) == SIZE_MAX)
        return;
    f->watch = NULL;
    fake_edit(f, FAKE_GROUPS, "ring",
              "{\"spec\":{\"selector\":{\"matchLabels\":{\"env\":\"test\"}}}}");
}

/* One is edited while its status is written, and the answer comes after what the watch tells. */
static void takes_no_old_answer(void **state)
{
    (void)state;
    for (int order = 0; order < 2; order++) {
        char east[FAKE_NAME_BYTES], west[FAKE_NAME_BYTES];
        fake *f = fake_new();
        fake_add_cluster(f, "east", "\"env\":\"prod\"");
        fake_add_cluster(f, "west", "\"env\":\"test\"");
        fake_create(f, FAKE_GROUPS,
                    "{\"metadata\":{\"name\":\"ring\",\"namespace\":\"" FAKE_SPACE "\"},\"spec\":{"
                    "\"selector\":{\"matchLabels\":{\"env\":\"prod\"}}}}");
        fake_create(f, FAKE_BUNDLES,
                    "{\"metadata\":{\"name\":\"app\",\"namespace\":\"" FAKE_SPACE "\"},\"spec\":{"
                    "\"resources\":[{\"name\":\"a.yaml\",\"content\":\"x\"}],"
                    "\"targets\":[{\"clusterGroup\":\"ring\"}]}}");
        f->answers_last = order == 1;
        f->watch = edit_group;
        fake_start(f);
        fake_run(f, -1);
        assert_null(f->watch);
        check_msg(!fake_find(f, fake_home("east", east), "app"), "%s", f->log.ptr);
        check_msg(fake_find(f, fake_home("west", west), "app"), "%s", f->log.ptr);
        check_text(str_of(fake_text(f, FAKE_GROUPS, "ring", "/status/display/readyClusters")),
                   "1/1");
        fake_free(f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(takes_no_old_answer)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
