/* SPDX-License-Identifier: Apache-2.0 */
/* Secrets with the Helm values of deployments, whatever happens in between. */
#include "support/check.h"

#include "support/fake_hub.h"

#define CLUSTERS 3

static const char *const names[CLUSTERS] = {"c00", "c01", "c02"};

/* ---- arranging ---- */

static fake *begin(void)
{
    fake *f = fake_new();
    for (int i = 0; i < CLUSTERS; i++)
        fake_add_cluster(f, names[i], "\"env\":\"prod\"");
    fake_create(f, FAKE_BUNDLES,
                "{\"metadata\":{\"name\":\"app\",\"namespace\":\"" FAKE_SPACE
                "\"},\"spec\":{\"resources\":[{\"name\":\"a.yaml\",\"content\":\"x\"}],"
                "\"targets\":[{\"clusterSelector\":{\"matchLabels\":{\"env\":\"prod\"}}}],"
                "\"rolloutStrategy\":{\"maxUnavailable\":1},"
                "\"helm\":{\"values\":{\"a\":1}}}}");
    fake_start(f);
    return f;
}

/* 0: there are none. */
static void change_values(fake *f, int to)
{
    char text[128];
    if (to == 0)
        snprintf(text, sizeof text, "{\"spec\":{\"helm\":{\"values\":null}}}");
    else
        snprintf(text, sizeof text, "{\"spec\":{\"helm\":{\"values\":{\"a\":%d}}}}", to);
    fake_edit(f, FAKE_BUNDLES, "app", text);
}

static const char *secrets_of(int at, char ret[FAKE_NAME_BYTES])
{
    snprintf(ret, FAKE_NAME_BYTES, "/api/v1/namespaces/ns-%s/secrets", names[at]);
    return ret;
}

/* ---- looking ---- */

/* At rest: each deployment has the Secret that it names, and owns it, or neither is there. */
static void check_secrets(fake *f)
{
    for (int i = 0; i < CLUSTERS; i++) {
        char secrets[FAKE_NAME_BYTES], home[FAKE_NAME_BYTES];
        bool there = fake_find(f, secrets_of(i, secrets), "app");
        fake_home(names[i], home);
        bool wanted = fake_text(f, home, "app", "/spec/valuesHash")[0] != '\0';
        check_msg(there == wanted, "a Secret is %s on %s\n%s", there ? "left" : "missing", names[i],
                  f->log.ptr);
        check_msg(fake_has_values(f, home, "app"), "other values on %s\n%s", names[i], f->log.ptr);
        if (there)
            check_text(str_of(fake_text(f, secrets, "app", "/metadata/ownerReferences/0/uid")),
                       fake_text(f, home, "app", "/metadata/uid"));
        assert_null(fake_get(f, home, "app", "/metadata/labels/drover.dev~1values"));
    }
}

static void check_ready(fake *f)
{
    const char *found = fake_text(f, FAKE_BUNDLES, "app", "/status/display/readyClusters");
    check_msg(strcmp(found, "3/3") == 0, "%s\n%s", found, f->log.ptr);
    check_secrets(f);
}

/* ---- stories ---- */

static void keeps_values_in_secrets(void **state)
{
    (void)state;
    char secrets[FAKE_NAME_BYTES], home[FAKE_NAME_BYTES];
    fake *f = begin();
    fake_run(f, -1);
    check_ready(f);
    check_text(str_of(fake_text(f, secrets_of(1, secrets), "app", "/data/values")), "eyJhIjoxfQ==");
    assert_int_equal(strlen(fake_text(f, fake_home(names[1], home), "app", "/spec/valuesHash")),
                     64);
    assert_null(fake_get(f, home, "app", "/spec/options/helm/values"));
    assert_int_equal(cluster_shell_count(f->shell).secrets, CLUSTERS);
    assert_int_equal(cluster_shell_count(f->shell).deployments, CLUSTERS);
    change_values(f, 2); /* two writes for an update */
    fake_run(f, -1);
    check_ready(f);
    assert_int_equal(cluster_shell_count(f->shell).secrets, 2 * CLUSTERS);
    assert_int_equal(cluster_shell_count(f->shell).deployments, 2 * CLUSTERS);
    fake_start(f); /* nothing that was applied is written again */
    fake_run(f, -1);
    assert_int_equal(cluster_shell_count(f->shell).secrets, 0);
    change_values(f, 0);
    fake_run(f, -1);
    check_ready(f);
    assert_null(fake_find(f, secrets, "app"));
    fake_free(f);
}

/* A Secret of the deployment's name that somebody else made stays as it is. */
static void leaves_those_of_others(void **state)
{
    (void)state;
    char secrets[FAKE_NAME_BYTES], home[FAKE_NAME_BYTES];
    fake *f = begin();
    fake_run(f, -1);
    fake_delete(f, secrets_of(0, secrets), "app");
    fake_create(f, secrets,
                "{\"metadata\":{\"name\":\"app\",\"namespace\":\"ns-c00\"},"
                "\"type\":\"kubernetes.io/service-account-token\",\"data\":{\"token\":\"eA==\"}}");
    change_values(f, 0);
    fake_run(f, -1);
    check_text(str_of(fake_text(f, secrets, "app", "/data/token")), "eA==");
    check_text(str_of(fake_text(f, fake_home(names[0], home), "app", "/spec/valuesHash")), "");
    assert_null(fake_get(f, home, "app", "/metadata/labels/drover.dev~1values"));
    assert_null(fake_find(f, secrets_of(1, secrets), "app"));
    const char *found = fake_text(f, FAKE_BUNDLES, "app", "/status/display/readyClusters");
    assert_string_equal(found, "3/3");
    fake_free(f);
}

/* ---- crashes ---- */

static fake_agent mood;

static fake_agent as_told(fake *f, const char *collection, const char *live)
{
    (void)f;
    (void)collection;
    (void)live;
    return mood;
}

static void wake(fake *f)
{
    mood = AGENT_WELL;
    for (size_t i = 0; i < f->count; i++)
        if (fake_is(f->objects[i].collection, "bundledeployments"))
            f->objects[i].answers_ms = f->now_ms;
}

static void nothing(fake *f)
{
    (void)f;
}

static void goes_back(fake *f)
{
    if (fake_find(f, FAKE_BUNDLES, "app"))
        change_values(f, 1);
}

static void deletes(fake *f)
{
    if (fake_find(f, FAKE_BUNDLES, "app"))
        fake_delete(f, FAKE_BUNDLES, "app");
}

static void takes_one_out(fake *f)
{
    fake_edit(f, FAKE_CLUSTERS, names[0], "{\"metadata\":{\"labels\":{\"env\":\"test\"}}}");
}

/* Values change to these in turn, and the Bundle goes. False: there were not so many writes. */
static bool story(uint64_t kill, void (*meanwhile)(fake *f), bool silent)
{
    static const int turns[] = {2, 0, 3, 1};
    fake *f = begin();
    mood = AGENT_WELL;
    f->agent = as_told;
    f->kill_at = kill;
    f->meanwhile = meanwhile;
    fake_run(f, -1);
    for (size_t i = 0; i < COUNT_OF(turns) && fake_find(f, FAKE_BUNDLES, "app"); i++) {
        check_secrets(f);
        mood = silent ? AGENT_SILENT : AGENT_WELL;
        change_values(f, turns[i]);
        fake_run(f, 3000);
        if (silent && fake_find(f, FAKE_BUNDLES, "app")) /* back before anybody applied it */
            change_values(f, i > 0 ? turns[i - 1] : 1);
        fake_run(f, 3000);
        wake(f);
        fake_run(f, -1);
    }
    check_secrets(f);
    if (fake_find(f, FAKE_BUNDLES, "app"))
        fake_delete(f, FAKE_BUNDLES, "app");
    fake_run(f, -1);
    check_secrets(f);
    for (size_t i = 0; i < f->count; i++)
        check_msg(!fake_is(f->objects[i].collection, "secrets") &&
                      !fake_is(f->objects[i].collection, "bundledeployments"),
                  "%s is left\n%s", f->objects[i].collection, f->log.ptr);
    bool killed = f->kill_at == 0;
    fake_free(f);
    return killed;
}

static void survives_a_crash_after_every_write(void **state)
{
    (void)state;
    static void (*const acts[])(fake *f) = {nothing, goes_back, deletes, takes_one_out};
    for (int silent = 0; silent < 2; silent++)
        for (size_t i = 0; i < COUNT_OF(acts); i++) {
            uint64_t kill = 1;
            while (story(kill, acts[i], silent == 1))
                kill++;
            check_msg(kill > 30, "only %llu writes", (unsigned long long)kill);
        }
}

/* ---- two at once ---- */

static char *before; /* the deployment on the first cluster, as JSON */

/* Another controller has taken the edit back, Secret and deployment, when our Secret arrives. */
static void another_was_quicker(fake *f, const kube_write *w)
{
    char home[FAKE_NAME_BYTES];
    if (str_find(w->collection, STR("ns-c00/secrets")) == SIZE_MAX)
        return;
    f->watch = NULL;
    change_values(f, 1);
    fake_edit(f, fake_home(names[0], home), "app", before);
}

static void puts_right_what_came_late(void **state)
{
    (void)state;
    char home[FAKE_NAME_BYTES];
    fake *f = begin();
    fake_run(f, -1);
    yyjson_mut_doc *doc =
        yyjson_doc_mut_copy(fake_find(f, fake_home(names[0], home), "app")->doc, NULL);
    yyjson_mut_obj_remove_key(yyjson_mut_doc_get_root(doc), "metadata");
    before = yyjson_mut_write(doc, 0, NULL);
    yyjson_mut_doc_free(doc);
    f->watch = another_was_quicker;
    change_values(f, 2);
    fake_run(f, -1);
    assert_null(f->watch);
    check_ready(f);
    (free)(before);
    fake_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_values_in_secrets),
        cmocka_unit_test(leaves_those_of_others),
        cmocka_unit_test(survives_a_crash_after_every_write),
        cmocka_unit_test(puts_right_what_came_late),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
