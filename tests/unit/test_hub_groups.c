/* SPDX-License-Identifier: Apache-2.0 */
/* ClusterGroups that change while the shell writes to them, and BundleNamespaceMappings with the
 * labels of the namespaces they select. */
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

/* ---- what is deleted and made again at once ---- */

#define APP                                                                                        \
    "{\"metadata\":{\"name\":\"app\",\"namespace\":\"" FAKE_SPACE "\"},\"spec\":{"                 \
    "\"resources\":[{\"name\":\"a.yaml\",\"content\":\"x\"}],"                                     \
    "\"targets\":[{\"clusterSelector\":{}}]}}"

static void make_again(fake *f, const kube_write *w)
{
    if (!str_eq(w->collection, STR(FAKE_BUNDLES)) || fake_find(f, FAKE_BUNDLES, "app"))
        return;
    f->watch = NULL;
    fake_create(f, FAKE_BUNDLES, APP);
}

/* The answer to the write that lets a Bundle go comes after what the watch tells of its successor.
 */
static void takes_no_answer_of_the_dead(void **state)
{
    (void)state;
    for (int order = 0; order < 2; order++) {
        char east[FAKE_NAME_BYTES];
        fake *f = fake_new();
        fake_add_cluster(f, "east", "\"env\":\"prod\"");
        fake_create(f, FAKE_BUNDLES, APP);
        f->answers_last = order == 1;
        fake_start(f);
        fake_run(f, -1);
        f->watch = make_again;
        fake_delete(f, FAKE_BUNDLES, "app");
        fake_run(f, -1);
        assert_null(f->watch);
        check_msg(fake_find(f, fake_home("east", east), "app"), "%s", f->log.ptr);
        fake_free(f);
    }
}

static void delete_deployment(fake *f, const kube_write *w)
{
    char east[FAKE_NAME_BYTES];
    if (w->subresource.len > 0 || str_find(w->collection, STR("bundledeployments")) == SIZE_MAX)
        return;
    f->watch = NULL;
    fake_edit(f, fake_home("east", east), "app", "{\"metadata\":{\"finalizers\":null}}");
    fake_delete(f, fake_home("east", east), "app");
}

/* Somebody deletes a deployment as soon as it is there, or has another version: the answer to that
 * write is no sign of life. */
static void makes_again_what_somebody_deletes(void **state)
{
    (void)state;
    for (int row = 0; row < 4; row++) {
        char east[FAKE_NAME_BYTES];
        int order = row & 1;
        fake *f = fake_new();
        fake_add_cluster(f, "east", "\"env\":\"prod\"");
        fake_create(f, FAKE_BUNDLES, APP);
        f->answers_last = order == 1;
        fake_start(f);
        if (row > 1) {
            fake_run(f, -1);
            fake_edit(f, FAKE_BUNDLES, "app",
                      "{\"spec\":{\"resources\":[{\"name\":\"a.yaml\",\"content\":\"y\"}]}}");
        }
        f->watch = delete_deployment;
        fake_run(f, -1);
        assert_null(f->watch);
        check_msg(fake_find(f, fake_home("east", east), "app"), "%d: %s", row, f->log.ptr);
        check_text(str_of(fake_text(f, FAKE_BUNDLES, "app", "/status/display/readyClusters")),
                   "1/1");
        fake_free(f);
    }
}

/* ---- mappings ---- */

#define TEAM_BUNDLES HUB_API "/namespaces/team/bundles"
#define TEAM_MAPPINGS HUB_API "/namespaces/team/bundlenamespacemappings"
#define SPACES "/api/v1/namespaces"

static void add_namespace(fake *f, const char *name, const char *labels)
{
    char text[512];
    snprintf(text, sizeof text,
             "{\"metadata\":{\"name\":\"%s\",\"labels\":{\"kubernetes.io/metadata.name\":\"%s\""
             "%s}}}",
             name, name, labels);
    fake_create(f, SPACES, text);
}

static void add_mapping(fake *f, const char *spaces)
{
    char text[512];
    snprintf(text, sizeof text,
             "{\"metadata\":{\"name\":\"ring\",\"namespace\":\"team\"},"
             "\"bundleSelector\":{\"matchLabels\":{\"of\":\"team\"}},\"namespaceSelector\":%s}",
             spaces);
    fake_create(f, TEAM_MAPPINGS, text);
}

/* One cluster, and a Bundle of another namespace that selects it. */
static fake *with_a_foreign_bundle(const char *labels)
{
    fake *f = fake_new();
    add_namespace(f, FAKE_SPACE, labels);
    add_namespace(f, "team", "");
    fake_add_cluster(f, "east", "\"env\":\"prod\"");
    fake_create(f, TEAM_BUNDLES,
                "{\"metadata\":{\"name\":\"app\",\"namespace\":\"team\",\"labels\":{\"of\":"
                "\"team\"}},\"spec\":{\"resources\":[{\"name\":\"a.yaml\",\"content\":\"x\"}],"
                "\"targets\":[{\"clusterName\":\"east\"}]}}");
    return f;
}

static bool deployed(fake *f)
{
    char east[FAKE_NAME_BYTES];
    fake_run(f, -1);
    return fake_find(f, fake_home("east", east), "app");
}

/* The label of a namespace comes and goes, and with it the deployment. */
static void follows_labels_of_namespaces(void **state)
{
    (void)state;
    fake *f = with_a_foreign_bundle("");
    fake_start(f);
    assert_false(deployed(f));
    assert_false(f->follows_namespaces); /* nobody asks for them */
    add_mapping(f, "{\"matchLabels\":{\"stage\":\"prod\"}}");
    assert_false(deployed(f));
    assert_true(f->follows_namespaces);
    fake_edit(f, SPACES, FAKE_SPACE, "{\"metadata\":{\"labels\":{\"stage\":\"prod\"}}}");
    assert_true(deployed(f));
    fake_start(f); /* a restart finds the same */
    assert_true(deployed(f));
    fake_edit(f, SPACES, FAKE_SPACE, "{\"metadata\":{\"labels\":{\"stage\":\"test\"}}}");
    assert_false(deployed(f));
    fake_edit(f, TEAM_MAPPINGS, "ring",
              "{\"namespaceSelector\":{\"matchLabels\":{\"stage\":\"test\"}}}");
    assert_true(deployed(f));
    fake_delete(f, TEAM_MAPPINGS, "ring");
    assert_false(deployed(f));
    assert_false(f->follows_namespaces);
    add_mapping(f, "{\"matchLabels\":{\"stage\":\"test\"}}"); /* they are read anew */
    assert_true(deployed(f));
    fake_free(f);
}

/* A selector of what a namespace does not have selects nothing before namespaces are known. */
static void waits_for_namespaces(void **state)
{
    (void)state;
    static const char unlabelled[] =
        "{\"matchExpressions\":[{\"key\":\"closed\",\"operator\":\"DoesNotExist\"}]}";
    fake *f = with_a_foreign_bundle(",\"closed\":\"yes\"");
    f->holds_namespaces = true;
    fake_start(f);
    fake_run(f, -1);
    add_mapping(f, unlabelled);
    assert_false(deployed(f));
    f->holds_namespaces = false;
    assert_false(deployed(f));
    fake_edit(f, SPACES, FAKE_SPACE, "{\"metadata\":{\"labels\":{\"closed\":null}}}");
    assert_true(deployed(f));
    f->holds_namespaces = true; /* nor is anything taken away by a controller that just began */
    fake_start(f);
    assert_true(deployed(f));
    assert_false(cluster_shell_ready(f->shell));
    f->holds_namespaces = false;
    assert_true(deployed(f));
    assert_true(cluster_shell_ready(f->shell));
    fake_free(f);
}

/* A mapping has nothing to do with a ClusterGroup of its name. */
static void takes_no_group_along(void **state)
{
    (void)state;
    fake *f = with_a_foreign_bundle("");
    fake_create(f, HUB_API "/namespaces/team/clustergroups",
                "{\"metadata\":{\"name\":\"ring\",\"namespace\":\"team\"},\"spec\":{"
                "\"selector\":{}}}");
    add_mapping(f, "{}");
    fake_start(f);
    assert_true(deployed(f));
    fake_delete(f, TEAM_MAPPINGS, "ring");
    assert_false(deployed(f));
    fake_create(f, HUB_API "/namespaces/team/clusters",
                "{\"metadata\":{\"name\":\"west\",\"namespace\":\"team\"},\"spec\":{},"
                "\"status\":{\"namespace\":\"ns-west\"}}");
    fake_run(f, -1);
    check_text(str_of(fake_text(f, HUB_API "/namespaces/team/clustergroups", "ring",
                                "/status/display/readyClusters")),
               "1/1");
    fake_free(f);
}

/* ---- repositories ---- */

#define REPO(called)                                                                               \
    "{\"metadata\":{\"name\":\"" called "\",\"namespace\":\"" FAKE_SPACE "\"},"                    \
    "\"spec\":{},\"status\":{\"gitJobStatus\":\"Current\"}}"

static const char *counted(fake *f, const char *repo)
{
    fake_run(f, -1);
    return fake_text(f, FAKE_REPOS, repo, "/status/display/readyBundleDeployments");
}

/* One Bundle of each of two repositories, on one cluster. */
static void counts_a_bundle_where_it_belongs(void **state)
{
    (void)state;
    fake *f = fake_new();
    fake_add_cluster(f, "east", "");
    fake_create(f, FAKE_REPOS, REPO("one"));
    fake_create(f, FAKE_REPOS, REPO("two"));
    for (int i = 0; i < 3; i++) {
        char text[512];
        snprintf(text, sizeof text,
                 "{\"metadata\":{\"name\":\"b%d\",\"namespace\":\"" FAKE_SPACE
                 "\",\"labels\":{\"fleet.cattle.io/repo-name\":\"%s\"}},\"spec\":{"
                 "\"resources\":[{\"name\":\"a.yaml\",\"content\":\"x\"}],"
                 "\"targets\":[{\"clusterSelector\":{}}]}}",
                 i, i < 2 ? "one" : "two");
        fake_create(f, FAKE_BUNDLES, text);
    }
    fake_start(f);
    check_text(str_of(counted(f, "one")), "2/2");
    check_text(str_of(counted(f, "two")), "1/1");
    fake_edit(f, FAKE_BUNDLES, "b1",
              "{\"metadata\":{\"labels\":{\"fleet.cattle.io/repo-name\":\"two\"}}}");
    check_text(str_of(counted(f, "one")), "1/1");
    check_text(str_of(counted(f, "two")), "2/2");
    fake_edit(f, FAKE_BUNDLES, "b1", "{\"metadata\":{\"labels\":null}}");
    check_text(str_of(counted(f, "two")), "1/1");
    fake_delete(f, FAKE_BUNDLES, "b0");
    check_text(str_of(counted(f, "one")), "0/0");
    fake_free(f);
}

/* The namespace of a cluster's deployments is of no use, and there are many. */
static bool is_namespace(void *context, const object *o)
{
    *(size_t *)context += o->kind == KIND_NAMESPACE;
    return true;
}

static void keeps_no_homes(void **state)
{
    (void)state;
    fake *f = with_a_foreign_bundle("");
    arena *a = arena_new(0);
    size_t kept = 0;
    fake_create(f, SPACES,
                "{\"metadata\":{\"name\":\"ns-east\",\"annotations\":{\"fleet.cattle.io/cluster\":"
                "\"east\",\"fleet.cattle.io/cluster-namespace\":\"" FAKE_SPACE "\"}}}");
    add_mapping(f, "{}");
    fake_start(f);
    assert_true(deployed(f));
    assert_true(cluster_shell_objects(f->shell, a, is_namespace, &kept));
    assert_int_equal(kept, 2);
    arena_free(a);
    fake_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes_no_old_answer),
        cmocka_unit_test(takes_no_answer_of_the_dead),
        cmocka_unit_test(makes_again_what_somebody_deletes),
        cmocka_unit_test(waits_for_namespaces),
        cmocka_unit_test(follows_labels_of_namespaces),
        cmocka_unit_test(takes_no_group_along),
        cmocka_unit_test(keeps_no_homes),
        cmocka_unit_test(counts_a_bundle_where_it_belongs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
