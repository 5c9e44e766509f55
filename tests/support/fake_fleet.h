/* SPDX-License-Identifier: Apache-2.0 */
/* fake_fleet.h - the Bundle "app" on the clusters c00, c01 ... of a fake hub (fake_hub.h). */
#ifndef DROVER_TESTS_SUPPORT_FAKE_FLEET_H
#define DROVER_TESTS_SUPPORT_FAKE_FLEET_H

#include "support/fake_hub.h"

#define FLEET_APP FAKE_SPACE "/app"
#define FLEET_PROD "{\"clusterSelector\":{\"matchLabels\":{\"env\":\"prod\"}}}"

static inline const char *fleet_name(int at)
{
    static char names[8][16];
    static int next;
    char *name = names[next = (next + 1) % 8];
    snprintf(name, sizeof names[0], "c%02d", at);
    return name;
}

static inline void fleet_add_bundle(fake *f, const char *targets, const char *more)
{
    char text[4096];
    snprintf(text, sizeof text,
             "{\"metadata\":{\"name\":\"app\",\"namespace\":\"" FAKE_SPACE
             "\"},\"spec\":{\"resources\":[{\"name\":\"a.yaml\",\"content\":\"one\"}],"
             "\"targets\":[%s]%s}}",
             targets, more);
    fake_create(f, FAKE_BUNDLES, text);
}

/* Nothing has happened yet. */
static inline fake *fleet_of(int clusters, const char *more)
{
    fake *f = fake_new();
    for (int i = 0; i < clusters; i++)
        fake_add_cluster(f, fleet_name(i), "\"env\":\"prod\"");
    fleet_add_bundle(f, FLEET_PROD, more);
    fake_start(f);
    return f;
}

static inline void fleet_content(fake *f, const char *content)
{
    char text[256];
    snprintf(text, sizeof text,
             "{\"spec\":{\"resources\":[{\"name\":\"a.yaml\",\"content\":\"%s\"}]}}", content);
    fake_edit(f, FAKE_BUNDLES, "app", text);
}

static inline fake_object *fleet_deployment(fake *f, int at)
{
    char home[FAKE_NAME_BYTES];
    return fake_find(f, fake_home(fleet_name(at), home), "app");
}

static inline const char *fleet_deployed(fake *f, int at, const char *pointer)
{
    char home[FAKE_NAME_BYTES];
    return fake_text(f, fake_home(fleet_name(at), home), "app", pointer);
}

/* It leaves the targets and comes back before anybody looks. */
static inline void fleet_flap(fake *f, int at)
{
    fake_edit(f, FAKE_CLUSTERS, fleet_name(at), "{\"metadata\":{\"labels\":{\"env\":\"test\"}}}");
    fake_edit(f, FAKE_CLUSTERS, fleet_name(at), "{\"metadata\":{\"labels\":{\"env\":\"prod\"}}}");
}

/* Deployments that run another version than they should, or are not ready. */
static inline int64_t fleet_unavailable(fake *f)
{
    int64_t count = 0;
    for (size_t i = 0; i < f->count; i++) {
        const fake_object *o = &f->objects[i];
        if (!fake_is(o->collection, "bundledeployments"))
            continue;
        const char *live = fake_text(f, o->collection, o->name, "/spec/deploymentID");
        const char *applied = fake_text(f, o->collection, o->name, "/status/appliedDeploymentID");
        count += strcmp(live, applied) != 0 ||
                 !yyjson_get_bool(fake_get(f, o->collection, o->name, "/status/ready"));
    }
    return count;
}

static inline const char *fleet_message(fake *f)
{
    return fake_text(f, FAKE_BUNDLES, "app", "/status/conditions/0/message");
}

static inline void fleet_check(fake *f, const char *ready, int64_t unavailable)
{
    const char *found = fake_text(f, FAKE_BUNDLES, "app", "/status/display/readyClusters");
    check_msg(strcmp(found, ready) == 0, "found %s, expected %s: %s\n%s", found, ready,
              fleet_message(f), f->log.ptr);
    assert_int_equal(yyjson_get_sint(fake_get(f, FAKE_BUNDLES, "app", "/status/unavailable")),
                     unavailable);
}

/* What the engine says first of a cluster. */
static inline const char *fleet_reason(fake *f, const char *on)
{
    static char text[512];
    reasons list = {0};
    deployment_view v;
    arena *a = arena_new(0);
    const engine *e = cluster_shell_engine(f->shell);
    bool known = engine_deployment(e, STR(FLEET_APP), str_of(on), &v);
    check_msg(known, "%s is no target", on);
    assert_true(engine_reasons(e, v.id, a, &list));
    str first = list.len > 0 ? reason_text(a, &list.at[0]) : STR_EMPTY;
    snprintf(text, sizeof text, "%.*s", STR_ARG(first));
    arena_free(a);
    return text;
}

#endif
