/* SPDX-License-Identifier: Apache-2.0 */
/* Secrets of registries: a copy beside each deployment that needs it, before the deployment, and
 * none where nothing needs it. */
#include "support/check.h"

#include "model/document.h"
#include "support/fake_hub.h"

#define SECRETS "/api/v1/namespaces/" FAKE_SPACE "/secrets"
#define OCI ",\"contentsId\":\"s-one\""
#define CHART                                                                                      \
    ",\"helmOpOptions\":{\"helmOpSecretName\":\"key\"},"                                           \
    "\"helm\":{\"chart\":\"c\",\"repo\":\"https://charts.example\",\"version\":\"1.0.0\"}"
/* registry.example/fleet */
#define REFERENCE "cmVnaXN0cnkuZXhhbXBsZS9mbGVldA=="
#define MOMENT_MS 20000
#define LABEL "/metadata/labels/drover.dev~1access"

static const char *const clusters[] = {"east", "west"};

static void add_bundle(fake *f, const char *name, const char *more)
{
    char text[1024];
    snprintf(text, sizeof text,
             "{\"metadata\":{\"name\":\"%s\",\"namespace\":\"" FAKE_SPACE "\"},\"spec\":{"
             "\"targets\":[{\"clusterSelector\":{\"matchLabels\":{\"env\":\"prod\"}}}]%s}}",
             name, more);
    fake_create(f, FAKE_BUNDLES, text);
}

static void add_secret(fake *f, const char *name, const char *password)
{
    char text[512];
    snprintf(text, sizeof text,
             "{\"metadata\":{\"name\":\"%s\",\"namespace\":\"" FAKE_SPACE
             "\"},\"type\":\"Opaque\",\"data\":{\"username\":\"bWU=\",\"password\":\"%s\","
             "\"reference\":\"" REFERENCE "\"}}",
             name, password);
    fake_create(f, SECRETS, text);
}

static fake *begin(const char *more)
{
    fake *f = fake_new();
    for (size_t i = 0; i < COUNT_OF(clusters); i++)
        fake_add_cluster(f, clusters[i], "\"env\":\"prod\"");
    add_bundle(f, "app", more);
    return f;
}

/* ---- looking ---- */

static const char *secrets_of(const char *where)
{
    static char path[FAKE_NAME_BYTES];
    snprintf(path, sizeof path, "/api/v1/namespaces/ns-%s/secrets", where);
    return path;
}

static const char *copied(fake *f, const char *where, const char *name, const char *pointer)
{
    return fake_text(f, secrets_of(where), name, pointer);
}

/* On all clusters; NULL: there is none. */
static void check_copies(fake *f, const char *name, const char *password)
{
    for (size_t i = 0; i < COUNT_OF(clusters); i++) {
        bool there = fake_find(f, secrets_of(clusters[i]), name);
        const char *found = copied(f, clusters[i], name, "/data/password");
        check_msg(there == (password != NULL) && strcmp(found, password ? password : "") == 0,
                  "%s on %s: found %s\n%s", name, clusters[i], there ? found : "none", f->log.ptr);
    }
}

static size_t count_secrets(fake *f, const char *where)
{
    size_t count = 0;
    const char *path = secrets_of(where);
    for (size_t i = 0; i < f->count; i++)
        count += strcmp(f->objects[i].collection, path) == 0;
    return count;
}

static const char *deployed(fake *f, const char *where, const char *name, const char *pointer)
{
    char home[FAKE_NAME_BYTES];
    return fake_text(f, fake_home(where, home), name, pointer);
}

static void check_ready(fake *f, const char *name, const char *wanted)
{
    const char *found = fake_text(f, FAKE_BUNDLES, name, "/status/display/readyClusters");
    check_msg(strcmp(found, wanted) == 0, "%s: found %s\n%s", name, found, f->log.ptr);
}

static void check_says(fake *f, const char *part)
{
    const char *found = fake_text(f, FAKE_BUNDLES, "app", "/status/conditions/0/message");
    check_has_at(str_of(found), str_of(part), __FILE__, __LINE__);
}

/* Called after every write: a deployment that was just written has what it needs. */
static void watch_order(fake *f, const kube_write *w)
{
    if (str_find(w->collection, STR("bundledeployments")) == SIZE_MAX || w->verb == WRITE_DELETE)
        return;
    for (size_t i = 0; i < COUNT_OF(clusters); i++) {
        char home[FAKE_NAME_BYTES], name[64];
        fake_home(clusters[i], home);
        if (!str_eq(w->collection, str_of(home)))
            continue;
        const char *id = fake_text(f, home, "app", "/spec/deploymentID");
        snprintf(name, sizeof name, "%.*s", (int)strcspn(id, ":"), id);
        assert_true(yyjson_get_bool(fake_get(f, home, "app", "/spec/ociContents")));
        check_msg(fake_find(f, secrets_of(clusters[i]), name), "no %s\n%s", name, f->log.ptr);
    }
}

static void check_quiet(fake *f)
{
    for (int restarts = 0; restarts < 2; restarts++) {
        uint64_t writes = f->writes;
        fake_run(f, 600 * 1000);
        check_msg(f->writes == writes, "%s", f->log.ptr);
        fake_start(f);
    }
    uint64_t writes = f->writes;
    fake_run(f, -1);
    check_msg(f->writes == writes, "%s", f->log.ptr);
}

/* ---- stories ---- */

static void check_type(fake *f, const char *name, const char *type)
{
    for (size_t i = 0; i < COUNT_OF(clusters); i++) {
        check_text(str_of(copied(f, clusters[i], name, "/type")), type);
        check_text(str_of(copied(f, clusters[i], name,
                                 "/metadata/labels/fleet.cattle.io~1bundle-internal-secret")),
                   "true");
    }
}

static size_t at_line(const fake *f, const char *part)
{
    size_t at = str_find(buf_str(&f->log), str_of(part));
    check_msg(at != SIZE_MAX, "no %s\n%s", part, f->log.ptr);
    return at;
}

static void copies_it_first(void **state)
{
    (void)state;
    static const struct {
        const char *spec, *name, *type, *reference;
    } kinds[] = {
        {OCI, "s-one", "fleet.cattle.io/bundle-oci-storage/v1alpha1",
         "oci://registry.example/fleet/s-one:latest"},
        {CHART, "key", "fleet.cattle.io/bundle-helmops-access/v1alpha1", ""},
    };
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        fake *f = begin(kinds[i].spec);
        add_secret(f, kinds[i].name, "b25l");
        fake_start(f);
        fake_run(f, -1);
        check_ready(f, "app", "2/2");
        check_copies(f, kinds[i].name, "b25l");
        check_type(f, kinds[i].name, kinds[i].type);
        check_text(str_of(fake_text(f, FAKE_BUNDLES, "app", "/status/ociReference")),
                   kinds[i].reference);
        assert_true(at_line(f, "ns-east/secrets/") < at_line(f, "ns-east/bundledeployments/"));
        hub_counts c = cluster_shell_count(f->shell);
        assert_int_equal(c.secrets, COUNT_OF(clusters));
        assert_int_equal(c.deployments, COUNT_OF(clusters));
        check_quiet(f);
        fake_delete(f, FAKE_BUNDLES, "app");
        fake_run(f, -1);
        check_copies(f, kinds[i].name, NULL);
        assert_null(fake_find(f, FAKE_BUNDLES, "app"));
        assert_non_null(fake_find(f, SECRETS, kinds[i].name));
        fake_free(f);
    }
}

static void follows_new_contents(void **state)
{
    (void)state;
    fake *f = begin(OCI);
    add_secret(f, "s-one", "b25l");
    fake_start(f);
    fake_run(f, -1);
    /* A new version has its Secret; the old one goes. */
    hub_counts before = cluster_shell_count(f->shell);
    add_secret(f, "s-two", "dHdv");
    fake_edit(f, FAKE_BUNDLES, "app", "{\"spec\":{\"contentsId\":\"s-two\"}}");
    fake_run(f, -1);
    check_ready(f, "app", "2/2");
    check_copies(f, "s-two", "dHdv");
    check_copies(f, "s-one", NULL);
    hub_counts after = cluster_shell_count(f->shell);
    assert_int_equal(after.secrets - before.secrets, 2 * COUNT_OF(clusters));
    assert_int_equal(after.deployments - before.deployments, COUNT_OF(clusters));
    check_quiet(f);
    /* Contents of its own need none. */
    fake_edit(f, FAKE_BUNDLES, "app",
              "{\"spec\":{\"contentsId\":null,\"resources\":[{\"name\":\"a.yaml\",\"content\":"
              "\"x\"}]}}");
    fake_run(f, -1);
    check_ready(f, "app", "2/2");
    check_copies(f, "s-two", NULL);
    check_text(str_of(deployed(f, "east", "app", LABEL)), "");
    /* Who is no target any more has none. */
    fake_edit(f, FAKE_BUNDLES, "app", "{\"spec\":{\"contentsId\":\"s-one\"}}");
    fake_run(f, -1);
    check_copies(f, "s-one", "b25l");
    fake_edit(f, FAKE_CLUSTERS, "east", "{\"metadata\":{\"labels\":{\"env\":\"test\"}}}");
    fake_run(f, -1);
    check_ready(f, "app", "1/1");
    assert_int_equal(count_secrets(f, "east"), 0);
    assert_int_equal(count_secrets(f, "west"), 1);
    fake_free(f);
}

static void waits_for_it(void **state)
{
    (void)state;
    fake *f = begin(OCI);
    add_bundle(f, "other", CHART);
    add_secret(f, "key", "b25l");
    fake_start(f);
    fake_run(f, MOMENT_MS);
    check_says(f, "Secret fleet-default/s-one for its registry does not exist");
    check_text(str_of(deployed(f, "east", "app", "/spec/deploymentID")), "");
    check_ready(f, "other", "2/2");
    fake_create(f, SECRETS,
                "{\"metadata\":{\"name\":\"s-one\",\"namespace\":\"" FAKE_SPACE "\"},\"data\":{}}");
    fake_run(f, MOMENT_MS);
    check_says(f, "Secret s-one for its registry says no reference");
    fake_delete(f, SECRETS, "s-one");
    add_secret(f, "s-one", "b25l");
    fake_run(f, -1);
    check_ready(f, "app", "2/2");
    check_copies(f, "s-one", "b25l");
    /* A version whose Secret is missing changes nothing, and so does a restart without it. */
    fake_edit(f, FAKE_BUNDLES, "app", "{\"spec\":{\"contentsId\":\"s-two\"}}");
    fake_delete(f, SECRETS, "s-one");
    for (int restarts = 0; restarts < 2; restarts++) {
        fake_run(f, MOMENT_MS);
        check_says(f, "Secret fleet-default/s-two for its registry does not exist");
        assert_true(strncmp(deployed(f, "east", "app", "/spec/deploymentID"), "s-one:", 6) == 0);
        check_copies(f, "s-one", "b25l");
        check_ready(f, "other", "2/2");
        fake_start(f);
    }
    fake_delete(f, FAKE_BUNDLES, "app");
    fake_run(f, MOMENT_MS);
    check_copies(f, "s-one", NULL);
    check_copies(f, "key", "b25l");
    fake_free(f);
}

/* Values lie in a Secret, too: both are needed. */
static void waits_for_both(void **state)
{
    (void)state;
    fake *f = begin(OCI ",\"valuesHash\":"
                        "\"ef044c49330aa54f5679add50798f2ab0480012fe1ab2416a8142fb14c40220b\"");
    add_secret(f, "s-one", "b25l");
    fake_start(f);
    fake_run(f, MOMENT_MS);
    check_says(f, "Secret fleet-default/app with the values of valuesHash does not exist");
    assert_int_equal(count_secrets(f, "east"), 0);
    fake_create(f, SECRETS,
                "{\"metadata\":{\"name\":\"app\",\"namespace\":\"" FAKE_SPACE "\"},"
                "\"data\":{\"values.yaml\":\"eyJhIjoxfQ==\"}}");
    fake_run(f, -1);
    check_ready(f, "app", "2/2");
    check_copies(f, "s-one", "b25l");
    check_text(str_of(copied(f, "west", "app", "/data/values")), "eyJhIjoxfQ==");
    check_quiet(f);
    fake_delete(f, FAKE_BUNDLES, "app");
    fake_run(f, -1);
    assert_int_equal(count_secrets(f, "east") + count_secrets(f, "west"), 0);
    fake_free(f);
}

/* ---- changes of the original ---- */

static fake_agent opens(fake *f, const char *collection, const char *live)
{
    (void)live;
    for (size_t i = 0; i < COUNT_OF(clusters); i++)
        if (strstr(collection, clusters[i]))
            return strcmp(copied(f, clusters[i], "key", "/data/password"), "dHdv") == 0
                       ? AGENT_WELL
                       : AGENT_FAILS;
    return AGENT_FAILS;
}

static void brings_changes(void **state)
{
    (void)state;
    fake *f = begin(CHART);
    add_secret(f, "key", "b25l");
    fake_start(f);
    fake_run(f, -1);
    char id[FAKE_NAME_BYTES], when[64];
    snprintf(id, sizeof id, "%s", deployed(f, "east", "app", "/spec/deploymentID"));
    snprintf(when, sizeof when, "%s",
             deployed(f, "east", "app", "/metadata/labels/drover.dev~1released-at"));
    /* With the next change of the Bundle, or a restart; one write for each copy and its label. */
    fake_edit(f, SECRETS, "key", "{\"data\":{\"password\":\"dHdv\"}}");
    fake_start(f);
    fake_run(f, -1);
    check_copies(f, "key", "dHdv");
    hub_counts c = cluster_shell_count(f->shell);
    assert_int_equal(c.secrets, COUNT_OF(clusters));
    assert_int_equal(c.deployments, COUNT_OF(clusters));
    /* It is no release. */
    check_text(str_of(deployed(f, "east", "app", "/spec/deploymentID")), id);
    check_text(str_of(deployed(f, "east", "app", "/metadata/labels/drover.dev~1released-at")),
               when);
    check_ready(f, "app", "2/2");
    check_quiet(f);
    fake_free(f);
}

static void looks_again_when_agents_fail(void **state)
{
    (void)state;
    fake *f = begin(CHART);
    add_secret(f, "key", "b25l");
    f->agent = opens;
    fake_start(f);
    fake_run(f, 10 * MOMENT_MS);
    check_ready(f, "app", "0/2");
    hub_counts before = cluster_shell_count(f->shell);
    assert_int_equal(before.secrets, COUNT_OF(clusters));
    fake_edit(f, SECRETS, "key", "{\"data\":{\"password\":\"dHdv\"}}");
    fake_run(f, 2 * MOMENT_MS);
    check_copies(f, "key", "dHdv");
    /* Its agents try again. */
    char home[FAKE_NAME_BYTES];
    for (size_t i = 0; i < COUNT_OF(clusters); i++)
        fake_agent_answers(f, fake_find(f, fake_home(clusters[i], home), "app"));
    fake_run(f, -1);
    check_ready(f, "app", "2/2");
    check_quiet(f);
    fake_free(f);
}

/* Somebody deleted a copy, and its agent says so. */
static void makes_it_anew(void **state)
{
    (void)state;
    fake *f = begin(CHART);
    char home[FAKE_NAME_BYTES];
    add_secret(f, "key", "b25l");
    fake_start(f);
    fake_run(f, -1);
    for (int times = 0; times < 2; times++) {
        hub_counts before = cluster_shell_count(f->shell);
        fake_delete(f, secrets_of("east"), "key");
        fake_edit(f, fake_home("east", home), "app",
                  "{\"status\":{\"ready\":false,\"appliedDeploymentID\":\"before\",\"conditions\":"
                  "[{\"type\":\"Deployed\",\"status\":\"False\","
                  "\"message\":\"secrets \\\"key\\\" not found\"}]}}");
        fake_run(f, 2 * MOMENT_MS);
        check_copies(f, "key", "b25l");
        /* Once, however long the agent takes. */
        fake_run(f, 20 * MOMENT_MS);
        hub_counts after = cluster_shell_count(f->shell);
        assert_int_equal(after.secrets - before.secrets, 1);
        assert_int_equal(after.deployments, before.deployments);
        fake_agent_answers(f, fake_find(f, fake_home("east", home), "app"));
        fake_run(f, -1);
        check_ready(f, "app", "2/2");
    }
    check_quiet(f);
    fake_free(f);
}

/* ---- those that several need, and those of others ---- */

static void shares_it(void **state)
{
    (void)state;
    for (int together = 0; together < 2; together++) {
        fake *f = begin(CHART);
        add_bundle(f, "other", CHART);
        add_secret(f, "key", "b25l");
        fake_start(f);
        fake_run(f, -1);
        check_ready(f, "app", "2/2");
        check_ready(f, "other", "2/2");
        fake_delete(f, FAKE_BUNDLES, "other");
        if (!together) {
            fake_run(f, -1);
            check_copies(f, "key", "b25l");
            check_quiet(f);
        }
        fake_delete(f, FAKE_BUNDLES, "app");
        fake_run(f, -1);
        check_copies(f, "key", NULL);
        fake_free(f);
    }
}

/* A deployment of Fleet's, which has no label of ours: its Secret goes with its owner. */
static void leaves_what_is_not_its_own(void **state)
{
    (void)state;
    fake *f = fake_new();
    char home[FAKE_NAME_BYTES];
    fake_add_cluster(f, "east", "\"env\":\"prod\"");
    fake_create(f, fake_home("east", home),
                "{\"metadata\":{\"name\":\"old\",\"namespace\":\"ns-east\",\"labels\":{"
                "\"fleet.cattle.io/bundle-name\":\"old\","
                "\"fleet.cattle.io/bundle-namespace\":\"" FAKE_SPACE "\"}},\"spec\":{"
                "\"deploymentID\":\"s-one:1\",\"ociContents\":true}}");
    fake_create(f, secrets_of("east"),
                "{\"metadata\":{\"name\":\"s-one\",\"namespace\":\"ns-east\"},\"data\":{}}");
    fake_start(f);
    fake_run(f, -1);
    assert_null(fake_find(f, fake_home("east", home), "old"));
    assert_int_equal(count_secrets(f, "east"), 1);
    fake_free(f);
}

/* A Secret of that name which is somebody else's: that cluster waits, and it stays as it is. */
static void does_not_take_a_name(void **state)
{
    (void)state;
    for (int repairs = 0; repairs < 2; repairs++) {
        fake *f = begin(CHART);
        add_secret(f, "key", "b25l");
        fake_create(f, secrets_of("east"),
                    "{\"metadata\":{\"name\":\"key\"},\"type\":\"Opaque\","
                    "\"data\":{\"password\":\"dHdv\"}}");
        fake_start(f);
        fake_run(f, 3 * MOMENT_MS);
        check_ready(f, "app", "1/2");
        check_says(f, "Pending(1) [Cluster fleet-default/east: the hub refuses: Secret ns-east/"
                      "key: type: field is");
        check_text(str_of(deployed(f, "east", "app", "/spec/deploymentID")), "");
        if (repairs)
            fake_delete(f, secrets_of("east"), "key");
        else
            fake_delete(f, FAKE_BUNDLES, "app");
        fake_run(f, -1);
        if (repairs) {
            check_ready(f, "app", "2/2");
            check_copies(f, "key", "b25l");
        } else {
            assert_null(fake_find(f, FAKE_BUNDLES, "app"));
            check_text(str_of(copied(f, "east", "key", "/data/password")), "dHdv");
            assert_int_equal(count_secrets(f, "west"), 0);
        }
        fake_free(f);
    }
}

static void bring_back(fake *f, const kube_write *w)
{
    if (w->verb != WRITE_DELETE || str_find(w->collection, STR("secrets")) == SIZE_MAX)
        return;
    f->watch = NULL;
    fake_edit(f, FAKE_CLUSTERS, "east", "{\"metadata\":{\"labels\":{\"env\":\"prod\"}}}");
}

/* A target again, just after its copy went and before its deployment did. */
static void gives_it_back(void **state)
{
    (void)state;
    fake *f = begin(CHART);
    add_secret(f, "key", "b25l");
    fake_start(f);
    fake_run(f, -1);
    fake_edit(f, SECRETS, "key", "{\"data\":{\"password\":\"dHdv\"}}");
    fake_edit(f, FAKE_BUNDLES, "app", "{\"metadata\":{\"labels\":{\"a\":\"b\"}}}");
    fake_run(f, -1);
    f->watch = bring_back;
    fake_edit(f, FAKE_CLUSTERS, "east", "{\"metadata\":{\"labels\":{\"env\":\"test\"}}}");
    fake_run(f, -1);
    assert_null(f->watch);
    check_ready(f, "app", "2/2");
    check_copies(f, "key", "dHdv");
    fake_free(f);
}

static void delete_bundle(fake *f, const kube_write *w)
{
    if (w->verb != WRITE_APPLY)
        return;
    f->watch = NULL;
    fake_delete(f, FAKE_BUNDLES, "app");
}

/* What was copied for a deployment that never came to be goes, too. */
static void takes_back_what_was_not_used(void **state)
{
    (void)state;
    fake *f = begin(OCI);
    add_secret(f, "s-one", "b25l");
    f->watch = delete_bundle;
    fake_start(f);
    fake_run(f, -1);
    assert_null(f->watch);
    check_copies(f, "s-one", NULL);
    assert_null(fake_find(f, FAKE_BUNDLES, "app"));
    fake_free(f);
}

static void takes_back_what_became_old(void **state)
{
    (void)state;
    fake *f = begin(OCI);
    char home[FAKE_NAME_BYTES];
    add_secret(f, "s-one", "b25l");
    add_secret(f, "s-two", "dHdv");
    for (size_t i = 0; i < COUNT_OF(clusters); i++) /* somebody else's is in the way */
        fake_create(f, fake_home(clusters[i], home), "{\"metadata\":{\"name\":\"app\"}}");
    fake_start(f);
    fake_run(f, MOMENT_MS);
    check_copies(f, "s-one", "b25l");
    fake_edit(f, FAKE_BUNDLES, "app", "{\"spec\":{\"contentsId\":\"s-two\"}}");
    for (size_t i = 0; i < COUNT_OF(clusters); i++)
        fake_delete(f, fake_home(clusters[i], home), "app");
    fake_run(f, -1);
    check_ready(f, "app", "2/2");
    check_copies(f, "s-one", NULL);
    check_copies(f, "s-two", "dHdv");
    fake_free(f);
}

/* ---- crashes ---- */

static void put_end(fake *f, buf *out)
{
    for (size_t i = 0; i < COUNT_OF(clusters); i++) {
        buf_addf(out, "%s %s %s %s\n", clusters[i],
                 deployed(f, clusters[i], "app", "/spec/deploymentID"),
                 deployed(f, clusters[i], "app", "/status/appliedDeploymentID"),
                 deployed(f, clusters[i], "app", LABEL));
        buf_addf(out, "%zu %s %s\n", count_secrets(f, clusters[i]),
                 copied(f, clusters[i], "s-one", "/data/password"),
                 copied(f, clusters[i], "s-two", "/data/password"));
    }
    buf_addf(out, "%s\n", fake_text(f, FAKE_BUNDLES, "app", "/status/display/readyClusters"));
}

/* Install, update, a changed Secret, a cluster that leaves, the end. */
static void tell_story(uint64_t kill_at, buf *ret_ends, uint64_t *ret_writes)
{
    fake *f = begin(OCI);
    add_secret(f, "s-one", "b25l");
    add_secret(f, "s-two", "dHdv");
    f->watch = watch_order;
    fake_start(f);
    f->kill_at = kill_at;
    fake_run(f, -1);
    put_end(f, ret_ends);
    fake_edit(f, FAKE_BUNDLES, "app", "{\"spec\":{\"contentsId\":\"s-two\"}}");
    fake_run(f, -1);
    put_end(f, ret_ends);
    fake_edit(f, SECRETS, "s-two", "{\"data\":{\"password\":\"dGhyZWU=\"}}");
    fake_edit(f, FAKE_BUNDLES, "app", "{\"metadata\":{\"labels\":{\"a\":\"b\"}}}");
    fake_run(f, -1);
    put_end(f, ret_ends);
    fake_edit(f, FAKE_CLUSTERS, "west", "{\"metadata\":{\"labels\":{\"env\":\"test\"}}}");
    fake_run(f, -1);
    put_end(f, ret_ends);
    fake_delete(f, FAKE_BUNDLES, "app");
    fake_run(f, -1);
    put_end(f, ret_ends);
    *ret_writes = f->writes;
    fake_free(f);
}

static void survives_a_crash_after_every_write(void **state)
{
    (void)state;
    buf want = BUF(1u << 20), got = BUF(1u << 20);
    uint64_t writes, ignored;
    tell_story(0, &want, &writes);
    check_msg(writes > 20, "%llu writes", (unsigned long long)writes);
    for (uint64_t at = 1; at <= writes; at++) {
        buf_clear(&got);
        tell_story(at, &got, &ignored);
        check_msg(str_eq(buf_str(&got), buf_str(&want)), "killed after write %llu:\n%s\n%s",
                  (unsigned long long)at, got.ptr, want.ptr);
    }
    buf_done(&want);
    buf_done(&got);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies_it_first),
        cmocka_unit_test(follows_new_contents),
        cmocka_unit_test(waits_for_it),
        cmocka_unit_test(waits_for_both),
        cmocka_unit_test(brings_changes),
        cmocka_unit_test(looks_again_when_agents_fail),
        cmocka_unit_test(makes_it_anew),
        cmocka_unit_test(shares_it),
        cmocka_unit_test(leaves_what_is_not_its_own),
        cmocka_unit_test(does_not_take_a_name),
        cmocka_unit_test(gives_it_back),
        cmocka_unit_test(takes_back_what_was_not_used),
        cmocka_unit_test(takes_back_what_became_old),
        cmocka_unit_test(survives_a_crash_after_every_write),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
