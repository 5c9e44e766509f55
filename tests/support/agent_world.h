/* SPDX-License-Identifier: Apache-2.0 */
/* agent_world.h - a hub and a cluster in memory for the steps of one deployment: objects by their
 * paths, with uids and versions, and the rules of writing to them. Counts writes, and can lose or
 * refuse any of them. */
#ifndef DROVER_TESTS_SUPPORT_AGENT_WORLD_H
#define DROVER_TESTS_SUPPORT_AGENT_WORLD_H

#include "support/check.h"

#include "base/arena.h"
#include "base/vec.h"
#include "cluster_agent/deployment_steps.h"
#include "engine/go_json.h"
#include "model/document.h"
#include "operator/bundle_objects.h"

#define WORLD_PATH_BYTES 512
#define WORLD_STEPS_MAX 2000
#define WORLD_HUB_NAMESPACE "cluster-one"
#define WORLD_DEPLOYMENTS                                                                          \
    "/apis/fleet.cattle.io/v1alpha1/namespaces/" WORLD_HUB_NAMESPACE "/bundledeployments"
#define WORLD_CONTENTS "/apis/fleet.cattle.io/v1alpha1/contents"

typedef struct world_object {
    char path[WORLD_PATH_BYTES];
    buf json;
    bool there;
} world_object;

typedef struct agent_world {
    arena *arena; /* of the test: lives as long as the world */
    discovery *kinds;
    VEC(world_object) objects;
    int64_t now_ms;
    unsigned versions;
    unsigned writes; /* that took effect */
    unsigned steps;
    unsigned tries; /* applies that were only tried */
    /* Faults: the write with this number (from 1) takes effect, and nobody hears of it; 0: none.
     * The step with this number (from 1) gets this answer and has no effect. */
    unsigned silent_write, bad_step;
    step_outcome bad_outcome;
    const char *refuse; /* a path that no apply gets into */
    step_outcome refuse_outcome;
    const char *renders;  /* what a chart renders that is only tried; NULL: as it is installed */
    const char *learns;   /* kinds that are found besides when they are read; NULL: none */
    const char *unserved; /* what collections begin with that there are none of; NULL: any */
    unsigned discoveries;
    bool brings;        /* a chart that is tried has definitions in its folder "crds" */
    bool establishes;   /* definitions are established at once */
    bool dark;          /* the objects of the cluster cannot be read */
    const char *hidden; /* a path that nobody may read */
    const char *user;   /* whose rights must count for objects and charts; NULL: any */
    bool normalises;    /* the server keeps "1000m" as "1", wherever it stands */
    char log[1 << 16];  /* one line for each write */
    char fault[STR_SHOWN_BYTES];
} agent_world;

static inline void world_path(char path[WORLD_PATH_BYTES], str collection, str name)
{
    snprintf(path, WORLD_PATH_BYTES, "%.*s/%.*s", STR_ARG(collection), STR_ARG(name));
}

static inline world_object *world_find(agent_world *w, const char *path)
{
    for (size_t i = 0; i < w->objects.len; i++)
        if (strcmp(w->objects.at[i].path, path) == 0)
            return &w->objects.at[i];
    return NULL;
}

static inline bool world_has(agent_world *w, const char *path)
{
    world_object *o = world_find(w, path);
    return o && o->there;
}

/* The object in the arena of the world; NULL: there is none. */
static inline yyjson_val *world_read(agent_world *w, const char *path)
{
    world_object *o = world_find(w, path);
    return o && o->there ? json_parse(w->arena, buf_str(&o->json), NULL) : NULL;
}

/* What the server makes of an apply. */
static inline str world_form(agent_world *w, str body)
{
    size_t at = w->normalises ? str_find(body, STR("\"1000m\"")) : SIZE_MAX;
    if (at == SIZE_MAX)
        return body;
    return arena_printf(w->arena, "%.*s\"1\"%.*s", (int)at, body.ptr, (int)(body.len - at - 7),
                        body.ptr + at + 7);
}

/* Puts an object there as the server would keep it: a new one gets a uid, each change a version,
 * and the status that was there stays. */
static inline void world_put(agent_world *w, const char *path, str json)
{
    world_object *o = world_find(w, path);
    if (!o) {
        world_object fresh = {.json = BUF(LIMIT_TEXT_BYTES)};
        snprintf(fresh.path, sizeof fresh.path, "%s", path);
        assert_true(vec_push(&w->objects, fresh));
        o = &w->objects.at[w->objects.len - 1];
    }
    yyjson_val *is = json_parse(w->arena, json, NULL);
    yyjson_val *was = o->there ? json_parse(w->arena, buf_str(&o->json), NULL) : NULL;
    assert_non_null(is);
    yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    yyjson_mut_val *root = yyjson_val_mut_copy(doc, is);
    yyjson_mut_doc_set_root(doc, root);
    yyjson_mut_val *meta = yyjson_mut_obj_get(root, "metadata");
    char uid[32], version[32];
    str old = object_text(go_member(was, STR("metadata")), STR("uid"));
    snprintf(uid, sizeof uid, "uid-%u", w->versions);
    snprintf(version, sizeof version, "%u", ++w->versions);
    if (old.len > 0)
        snprintf(uid, sizeof uid, "%.*s", STR_ARG(old));
    yyjson_mut_obj_remove_key(meta, "uid");
    yyjson_mut_obj_remove_key(meta, "resourceVersion");
    yyjson_mut_obj_add_strcpy(doc, meta, "uid", uid);
    yyjson_mut_obj_add_strcpy(doc, meta, "resourceVersion", version);
    if (go_member(was, STR("status")) && !go_member(is, STR("status")))
        yyjson_mut_obj_add_val(doc, root, "status",
                               yyjson_val_mut_copy(doc, go_member(was, STR("status"))));
    char *text = yyjson_mut_write(doc, 0, NULL);
    buf_clear(&o->json);
    buf_addz(&o->json, text);
    free(text);
    yyjson_mut_doc_free(doc);
    o->there = true;
}

static inline void world_merge(agent_world *w, const char *path, str patch)
{
    yyjson_val *was = world_read(w, path), *change = json_parse(w->arena, patch, NULL);
    assert_non_null(was);
    assert_non_null(change);
    yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    yyjson_mut_doc_set_root(doc, yyjson_merge_patch(doc, was, change));
    char *text = yyjson_mut_write(doc, 0, NULL);
    world_put(w, path, str_of(text));
    free(text);
    yyjson_mut_doc_free(doc);
}

static inline void world_drop(agent_world *w, const char *path)
{
    world_object *o = world_find(w, path);
    assert_non_null(o);
    o->there = false;
}

/* ---- carrying out ---- */

static inline void world_log(agent_world *w, const step *s, const char *path)
{
    size_t len = strlen(w->log);
    snprintf(w->log + len, sizeof w->log - len, "%s %s\n", step_kind_text(s->kind), path);
}

static inline step_answer world_write(agent_world *w, const step *s, const char *path)
{
    yyjson_val *was = world_read(w, path);
    const yyjson_val *meta = go_member(was, STR("metadata"));
    bool other_uid = s->uid.len > 0 && !str_eq(s->uid, object_text(meta, STR("uid")));
    if (s->kind == STEP_DELETE_OBJECT || s->kind == STEP_DELETE_INVENTORY) {
        assert_true(s->uid.len > 0);
        if (!was)
            return (step_answer){.outcome = OUTCOME_MISSING};
        if (other_uid)
            return (step_answer){.outcome = OUTCOME_CONFLICT};
        world_drop(w, path);
    } else if (s->kind == STEP_WRITE_INVENTORY) {
        bool fits = s->version.len > 0
                        ? was && str_eq(s->version, object_text(meta, STR("resourceVersion")))
                        : !was;
        if (!fits)
            return (step_answer){.outcome = OUTCOME_CONFLICT};
        world_put(w, path, s->body);
    } else if (s->kind == STEP_REPORT || s->kind == STEP_MARK_OBJECT) {
        if (!was || other_uid)
            return (step_answer){.outcome = was ? OUTCOME_CONFLICT : OUTCOME_MISSING};
        world_merge(w, path, s->body);
    } else {
        assert_true(s->force);
        world_put(w, path, world_form(w, s->body));
        if (w->establishes && strstr(path, "/customresourcedefinitions/"))
            world_merge(w, path,
                        STR("{\"status\":{\"conditions\":[{\"type\":\"Established\","
                            "\"status\":\"True\"}]}}"));
    }
    w->writes++;
    world_log(w, s, path);
    return (step_answer){.outcome = OUTCOME_OK, .json = world_read(w, path)};
}

/* helm with a chart of one ConfigMap, which it makes and takes away. A chart that is called "named"
 * calls it as the release is called, any other "of-chart". Releases are objects below WORLD_HELM.
 */
#define WORLD_CHART_OBJECT "/api/v1/namespaces/shop/configmaps/of-chart"
#define WORLD_HELM "/helm/"

static inline str world_chart_text(agent_world *w, str object)
{
    return arena_printf(w->arena,
                        "# Source: chart\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: %.*s}\n"
                        "data: {of: chart}\n",
                        STR_ARG(object));
}

/* Whether helm may write an object that is there. */
static inline bool world_of_release(const yyjson_val *object, const manifest *m)
{
    const yyjson_val *meta = go_member(object, STR("metadata"));
    const yyjson_val *notes = go_member(meta, STR("annotations"));
    return str_eq(object_text(go_member(meta, STR("labels")), STR("app.kubernetes.io/managed-by")),
                  STR("Helm")) &&
           str_eq(object_text(notes, STR("meta.helm.sh/release-name")), m->release) &&
           str_eq(object_text(notes, STR("meta.helm.sh/release-namespace")), m->release_namespace);
}

static inline step_answer world_install(agent_world *w, const manifest *m, const char *release,
                                        const char *path, str name)
{
    yyjson_val *was = world_read(w, path);
    str owner =
        object_text(go_member(go_member(was, STR("metadata")), STR("labels")), STR(LABEL_OWNER));
    if (was && !m->take_ownership && !world_of_release(was, m))
        return (step_answer){.outcome = OUTCOME_CONFLICT,
                             .message = STR("it exists and cannot be imported")};
    world_put(w, path,
              arena_printf(w->arena,
                           "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":"
                           "\"%.*s\",\"namespace\":\"%.*s\",\"labels\":{"
                           "\"app.kubernetes.io/managed-by\":\"Helm\"%s%.*s%s},\"annotations\":{"
                           "\"meta.helm.sh/release-name\":\"%.*s\","
                           "\"meta.helm.sh/release-namespace\":\"%.*s\"}},"
                           "\"data\":{\"of\":\"chart\"}}",
                           STR_ARG(name), STR_ARG(m->release_namespace),
                           owner.len > 0 ? ",\"" LABEL_OWNER "\":\"" : "", STR_ARG(owner),
                           owner.len > 0 ? "\"" : "", STR_ARG(m->release),
                           STR_ARG(m->release_namespace)));
    world_put(w, release,
              arena_printf(w->arena, "{\"metadata\":{},\"path\":\"%s\",\"name\":\"%.*s\"}", path,
                           STR_ARG(name)));
    return (step_answer){.outcome = OUTCOME_OK};
}

static inline step_answer world_chart(agent_world *w, const step *s)
{
    const manifest *m = s->chart;
    char release[WORLD_PATH_BYTES], path[WORLD_PATH_BYTES];
    assert_non_null(m);
    assert_true(m->release.len > 0);
    snprintf(release, sizeof release, WORLD_HELM "%.*s/%.*s", STR_ARG(m->release_namespace),
             STR_ARG(m->release));
    const yyjson_val *known = world_read(w, release);
    str name = str_eq(m->chart.name, STR("named")) ? m->release : STR("of-chart");
    step_answer answer = {.outcome = OUTCOME_OK};
    snprintf(path, sizeof path, "/api/v1/namespaces/%.*s/configmaps/%.*s",
             STR_ARG(m->release_namespace), STR_ARG(name));
    if (s->kind == STEP_TRY_CHART) {
        answer.definitions = w->brings;
        answer.text = w->renders ? str_of(w->renders) : world_chart_text(w, name);
        return answer;
    }
    if (s->kind == STEP_READ_CHART) {
        if (!known)
            return (step_answer){.outcome = OUTCOME_REFUSED, .message = STR("no such release")};
        answer.text = world_chart_text(w, object_text(known, STR("name")));
        return answer;
    }
    if (s->kind == STEP_INSTALL_CHART) {
        answer = world_install(w, m, release, path, name);
        if (answer.outcome != OUTCOME_OK)
            return answer;
        answer.text = world_chart_text(w, name);
    } else if (known) {
        snprintf(path, sizeof path, "%.*s", STR_ARG(object_text(known, STR("path"))));
        if (world_has(w, path))
            world_drop(w, path);
        world_drop(w, release);
    }
    w->writes++;
    world_log(w, s, release);
    return answer;
}

/* What belongs to the deployment is done on behalf of its account, all else on the agent's. */
static inline void world_check_user(const agent_world *w, const step *s)
{
    bool of_objects =
        strstr(step_kind_text(s->kind), "object") || strstr(step_kind_text(s->kind), "chart");
    if (w->user)
        check_text(s->user.ptr ? s->user : STR_EMPTY, of_objects ? w->user : "");
}

#define WORLD_KINDS                                                                                \
    "{\"kind\":\"APIResourceList\",\"groupVersion\":\"v1\",\"resources\":["                        \
    "{\"name\":\"namespaces\",\"kind\":\"Namespace\"},"                                            \
    "{\"name\":\"configmaps\",\"kind\":\"ConfigMap\",\"namespaced\":true},"                        \
    "{\"name\":\"secrets\",\"kind\":\"Secret\",\"namespaced\":true},"                              \
    "{\"name\":\"services\",\"kind\":\"Service\",\"namespaced\":true}]}"
#define WORLD_APPS                                                                                 \
    "{\"kind\":\"APIResourceList\",\"groupVersion\":\"apps/v1\",\"resources\":["                   \
    "{\"name\":\"deployments\",\"kind\":\"Deployment\",\"namespaced\":true}]}"
#define WORLD_DEFINITIONS                                                                          \
    "{\"kind\":\"APIResourceList\",\"groupVersion\":\"apiextensions.k8s.io/v1\",\"resources\":["   \
    "{\"name\":\"customresourcedefinitions\",\"kind\":\"CustomResourceDefinition\"}]}"

/* Everything that the cluster tells of its kinds. */
static inline void world_discover(agent_world *w)
{
    const char *answers[] = {WORLD_KINDS, WORLD_APPS, WORLD_DEFINITIONS, w->learns};
    discovery_begin(w->kinds);
    for (size_t i = 0; i < COUNT_OF(answers); i++)
        assert_true(!answers[i] ||
                    discovery_read(w->kinds, json_parse(w->arena, str_of(answers[i]), NULL), NULL));
    discovery_end(w->kinds);
}

/* *ret_killed: the write took effect, and the agent is gone before it hears of it. */
static inline step_answer world_do(agent_world *w, const step *s, bool *ret_killed)
{
    char path[WORLD_PATH_BYTES];
    unsigned before = w->writes;
    step_answer answer = {.outcome = OUTCOME_OK};
    world_path(path, s->collection, s->name);
    world_check_user(w, s);
    w->steps++;
    if (w->bad_step == w->steps)
        return (step_answer){.outcome = w->bad_outcome, .message = STR("a fault")};
    if (s->kind == STEP_APPLY_OBJECT && w->refuse && strcmp(w->refuse, path) == 0)
        return (step_answer){.outcome = w->refuse_outcome, .message = STR("not like this")};
    if (s->kind == STEP_READ_OBJECT && w->hidden && strcmp(w->hidden, path) == 0)
        return (step_answer){.outcome = OUTCOME_REFUSED, .message = STR("not for you")};
    if (s->kind == STEP_READ_OBJECT && w->dark)
        return (step_answer){.outcome = OUTCOME_LATER, .message = STR("it is dark")};
    if (w->unserved && s->collection.ptr && str_starts(s->collection, str_of(w->unserved)))
        return (step_answer){.outcome = OUTCOME_NOWHERE, .message = STR("there is no such path")};
    switch (s->kind) {
    case STEP_READ_CONTENT:
    case STEP_READ_VALUES:
    case STEP_READ_INVENTORY:
    case STEP_READ_GATE:
    case STEP_READ_OBJECT:
        answer.json = world_read(w, path);
        if (!answer.json)
            answer = (step_answer){.outcome = OUTCOME_MISSING, .message = STR("not found")};
        break;
    case STEP_TRY_OBJECT:
        answer.json = json_parse(w->arena, world_form(w, s->body), NULL);
        w->tries++;
        break;
    case STEP_DISCOVER:
        world_discover(w);
        w->discoveries++;
        break;
    case STEP_REPORT:
    case STEP_WRITE_INVENTORY:
    case STEP_DELETE_INVENTORY:
    case STEP_APPLY_OBJECT:
    case STEP_MARK_OBJECT:
    case STEP_DELETE_OBJECT: answer = world_write(w, s, path); break;
    case STEP_TRY_CHART:
    case STEP_INSTALL_CHART:
    case STEP_READ_CHART:
    case STEP_REMOVE_CHART: answer = world_chart(w, s); break;
    case STEP_WAIT:
    case STEP_FORGET: fail_msg("nothing to do"); break;
    }
    *ret_killed = w->writes != before && w->silent_write == w->writes;
    return answer;
}

/* ---- making and ending ---- */

static inline agent_world world_new(void)
{
    agent_world w = {.arena = arena_new(0), .kinds = discovery_new(), .now_ms = 1000000};
    assert_non_null(w.arena);
    world_discover(&w);
    return w;
}

static inline void world_done(agent_world *w)
{
    for (size_t i = 0; i < w->objects.len; i++)
        buf_done(&w->objects.at[i].json);
    vec_done(&w->objects);
    discovery_free(w->kinds);
    arena_free(w->arena);
}

/* Puts a Content of one file on the hub and a BundleDeployment that wants it. */
static inline void world_release(agent_world *w, const char *name, const char *yaml,
                                 const char *options)
{
    err error;
    buf list = BUF(LIMIT_TEXT_BYTES), content = BUF(LIMIT_TEXT_BYTES), text = BUF(LIMIT_TEXT_BYTES);
    char path[WORLD_PATH_BYTES];
    buf_addz(&list, "[{\"name\":\"all.yaml\",\"content\":");
    buf_add_json(&list, str_of(yaml));
    buf_addz(&list, "}]");
    yyjson_val *files = json_parse_within(w->arena, buf_str(&list), list.len, &error);
    assert_non_null(files);
    assert_true(content_put(&content, files, &error));
    yyjson_val *json = json_parse(w->arena, buf_str(&content), &error);
    str id = object_text(go_member(json, STR("metadata")), STR("name"));
    world_path(path, STR(WORLD_CONTENTS), id);
    world_put(w, path, buf_str(&content));
    buf_addf(&text,
             "{\"apiVersion\":\"fleet.cattle.io/v1alpha1\",\"kind\":\"BundleDeployment\","
             "\"metadata\":{\"name\":\"%s\",\"namespace\":\"" WORLD_HUB_NAMESPACE
             "\",\"labels\":{\"fleet.cattle.io/bundle-name\":\"%s\","
             "\"fleet.cattle.io/bundle-namespace\":\"fleet-default\"}},\"spec\":{"
             "\"deploymentID\":\"%.*s:x\",%s}}",
             name, name, STR_ARG(id), options);
    world_path(path, STR(WORLD_DEPLOYMENTS), str_of(name));
    world_put(w, path, buf_str(&text));
    buf_done(&list);
    buf_done(&content);
    buf_done(&text);
}

static inline steps_world world_facts(agent_world *w)
{
    return (steps_world){.discovery = w->kinds,
                         .agent_namespace = STR("drover-system"),
                         .now_ms = w->now_ms,
                         .time = {w->now_ms / 1000, 0}};
}

/* Shows the hub's BundleDeployment, or that there is none. */
static inline void world_show(agent_world *w, deployment_steps *s, const char *name)
{
    char path[WORLD_PATH_BYTES];
    world_path(path, STR(WORLD_DEPLOYMENTS), str_of(name));
    yyjson_val *json = world_read(w, path);
    if (json)
        assert_true(steps_see(s, json));
    else
        steps_gone(s);
}

/* Carries steps out until it rests for until_ms or longer, is to be forgotten, or is killed.
 * Returns the last step. Time passes where it waits for less. */
static inline step world_run(agent_world *w, deployment_steps **s, const char *name,
                             int64_t until_ms)
{
    for (int i = 0; i < WORLD_STEPS_MAX; i++) {
        steps_world facts = world_facts(w);
        step next = steps_next(*s, &facts);
        if (next.kind == STEP_FORGET)
            return next;
        if (next.kind == STEP_WAIT) {
            if (next.due_ms - w->now_ms >= until_ms)
                return next;
            w->now_ms = next.due_ms > w->now_ms ? next.due_ms : w->now_ms + 1;
            continue;
        }
        bool killed = false;
        step_answer answer = world_do(w, &next, &killed);
        if (killed) {
            *s = steps_free(*s);
            *s = steps_new(str_of(name));
            assert_non_null(*s);
        } else {
            steps_answer(*s, &facts, &answer);
        }
        if (killed || next.kind == STEP_REPORT)
            world_show(w, *s, name);
    }
    fail_msg("it does not come to rest");
    return (step){0};
}

/* A member of the status on the hub, as JSON text in the world's arena. */
static inline str world_status(agent_world *w, const char *name, const char *member)
{
    char path[WORLD_PATH_BYTES];
    world_path(path, STR(WORLD_DEPLOYMENTS), str_of(name));
    yyjson_val *status = go_member(world_read(w, path), STR("status"));
    yyjson_val *found = go_member(status, str_of(member));
    buf text = BUF(LIMIT_TEXT_BYTES);
    if (found)
        json_write(&text, found);
    str made = arena_str(w->arena, buf_str(&text));
    buf_done(&text);
    return made;
}

#endif
