/* SPDX-License-Identifier: Apache-2.0 */
/* fake_agent.h - the API servers of a hub and of a cluster in memory, around an agent's shell.
 *
 * Objects have versions, writes their preconditions, and every change is told to who watches. A
 * server may be away: it then answers "later" and tells nothing. Workloads of the cluster become
 * ready after a while unless the test says that they do not. Time is the test's. Nothing here knows
 * a rule of the agent's: only what servers and controllers do. */
#ifndef DROVER_TESTS_SUPPORT_FAKE_AGENT_H
#define DROVER_TESTS_SUPPORT_FAKE_AGENT_H

#include "base/vec.h"
#include "cluster_agent/agent_shell.h"

#define FAKE_OBJECTS_MAX 128
#define FAKE_KINDS_MAX 32
#define FAKE_NAME_BYTES 320
#define FAKE_START_MS INT64_C(1763272800000)
#define FAKE_TURNS_MAX 100000
#define FAKE_HUB_API "/apis/fleet.cattle.io/v1alpha1"
#define FAKE_HOME FAKE_HUB_API "/namespaces/home/bundledeployments"
#define FAKE_CONTENTS FAKE_HUB_API "/contents"
#define FAKE_CLUSTERS FAKE_HUB_API "/namespaces/fleet-default/clusters"

typedef struct fake_object {
    agent_side side;
    char collection[FAKE_NAME_BYTES];
    char name[FAKE_NAME_BYTES];
    yyjson_doc *doc;
    int64_t ready_ms; /* a Deployment: when its pods are; INT64_MAX: they are */
} fake_object;

typedef struct fake_followed {
    agent_kind *kind; /* NULL: free */
    char path[FAKE_NAME_BYTES];
} fake_followed;

typedef enum fake_message_kind { FAKE_ANSWER, FAKE_SEEN, FAKE_GONE, FAKE_SYNCED } fake_message_kind;

typedef struct fake_message {
    fake_message_kind kind;
    agent_side side;
    char collection[FAKE_NAME_BYTES]; /* of an answer: NULL kind of watch */
    char name[FAKE_NAME_BYTES];
    agent_kind *of; /* of SYNCED; NULL: of a watch from the start */
    agent_watch watch;
    write_handler handler;
    write_outcome how;
    yyjson_doc *doc;
} fake_message;

typedef struct fake {
    agent_shell *shell;
    agent_shell_settings settings;
    int64_t now_ms;
    int64_t wrong_s; /* by so much its clock is wrong */
    uint64_t revision, uids;
    fake_object objects[FAKE_OBJECTS_MAX];
    size_t count;
    fake_followed followed[FAKE_KINDS_MAX];
    VEC(fake_message) messages;
    size_t message_at;
    bool watching[AGENT_WATCH_COUNT];
    bool away[AGENT_SIDE_COUNT];
    bool silent;         /* watches of the cluster tell nothing, though it answers */
    bool unready;        /* pods that begin now do not become ready */
    const char *refused; /* name of an object that the cluster finds invalid; NULL: none */
    bool deaf;           /* the hub takes no sign of life */
    uint64_t writes, requests;
    int unpacking, unpacking_most; /* Contents that are asked for: now, and at the most */
    uint64_t kill_at;              /* the agent dies right after so many writes; 0: never */
    bool killed;
    const char *helm; /* what charts render; NULL: there is no helm */
    uint64_t installs, removals;
} fake;

/* ---- objects ---- */

static inline yyjson_doc *fake_copy(yyjson_val *json)
{
    yyjson_mut_doc *made = yyjson_mut_doc_new(NULL);
    yyjson_mut_doc_set_root(made, yyjson_val_mut_copy(made, json));
    yyjson_doc *same = yyjson_mut_doc_imut_copy(made, NULL);
    yyjson_mut_doc_free(made);
    return same;
}

static inline fake_object *fake_find(fake *f, agent_side side, const char *collection,
                                     const char *name)
{
    for (size_t i = 0; i < f->count; i++)
        if (f->objects[i].side == side && strcmp(f->objects[i].collection, collection) == 0 &&
            strcmp(f->objects[i].name, name) == 0)
            return &f->objects[i];
    return NULL;
}

static inline yyjson_val *fake_get(fake *f, agent_side side, const char *collection,
                                   const char *name, const char *pointer)
{
    fake_object *o = fake_find(f, side, collection, name);
    return o ? yyjson_doc_ptr_get(o->doc, pointer) : NULL;
}

static inline const char *fake_text(fake *f, agent_side side, const char *collection,
                                    const char *name, const char *pointer)
{
    const char *text = yyjson_get_str(fake_get(f, side, collection, name, pointer));
    return text ? text : "";
}

/* "/apis/apps/v1/namespaces/shop/deployments" is in "/apis/apps/v1/deployments". */
static inline bool fake_in(const char *collection, const char *whole)
{
    const char *at = strstr(collection, "/namespaces/");
    const char *end = at ? strchr(at + strlen("/namespaces/"), '/') : NULL;
    if (!end)
        return strcmp(collection, whole) == 0;
    size_t head = (size_t)(at - collection);
    return strncmp(collection, whole, head) == 0 && strcmp(end, whole + head) == 0;
}

static inline bool fake_is(const char *collection, const char *plural)
{
    size_t len = strlen(collection), tail = strlen(plural);
    return len > tail && collection[len - tail - 1] == '/' &&
           strcmp(collection + len - tail, plural) == 0;
}

static inline void fake_tell(fake *f, const fake_object *o, bool gone)
{
    if (f->away[o->side] || (f->silent && o->side == AGENT_OWN))
        return;
    fake_message m = {.kind = gone ? FAKE_GONE : FAKE_SEEN,
                      .side = o->side,
                      .doc = fake_copy(yyjson_doc_get_root(o->doc))};
    memcpy(m.collection, o->collection, sizeof m.collection);
    memcpy(m.name, o->name, sizeof m.name);
    assert_true(vec_push(&f->messages, m));
}

/* What changes the spec changes the generation, and of a Deployment begins pods anew. */
static inline void fake_store(fake *f, fake_object *o, yyjson_mut_doc *doc)
{
    char text[32];
    yyjson_mut_val *meta = yyjson_mut_doc_ptr_get(doc, "/metadata");
    yyjson_doc *made = yyjson_mut_doc_imut_copy(doc, NULL);
    yyjson_val *before = o->doc ? yyjson_doc_ptr_get(o->doc, "/spec") : NULL;
    yyjson_val *after = yyjson_doc_ptr_get(made, "/spec");
    bool news = !o->doc || (after && !(before && yyjson_equals(before, after)));
    yyjson_doc_free(made);
    int64_t generation = yyjson_mut_get_sint(yyjson_mut_obj_get(meta, "generation"));
    yyjson_mut_obj_remove_key(meta, "generation");
    yyjson_mut_obj_add_int(doc, meta, "generation", generation + (news ? 1 : 0));
    if (news && fake_is(o->collection, "deployments"))
        o->ready_ms = f->now_ms + 1000;
    snprintf(text, sizeof text, "%llu", (unsigned long long)++f->revision);
    yyjson_mut_obj_remove_key(meta, "resourceVersion");
    yyjson_mut_obj_add_strcpy(doc, meta, "resourceVersion", text);
    yyjson_doc_free(o->doc);
    o->doc = yyjson_mut_doc_imut_copy(doc, NULL);
    yyjson_mut_doc_free(doc);
    fake_tell(f, o, false);
}

static inline fake_object *fake_create(fake *f, agent_side side, const char *collection,
                                       yyjson_val *json)
{
    yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    yyjson_mut_doc_set_root(doc, yyjson_val_mut_copy(doc, json));
    yyjson_mut_val *meta = yyjson_mut_doc_ptr_get(doc, "/metadata");
    check_msg(f->count < FAKE_OBJECTS_MAX, "too many objects");
    fake_object *o = &f->objects[f->count++];
    *o = (fake_object){.side = side, .ready_ms = INT64_MAX};
    snprintf(o->collection, sizeof o->collection, "%s", collection);
    const char *name = yyjson_mut_get_str(yyjson_mut_obj_get(meta, "name"));
    snprintf(o->name, sizeof o->name, "%s", name ? name : "");
    char uid[64];
    snprintf(uid, sizeof uid, "uid-%llu", (unsigned long long)++f->uids);
    yyjson_mut_obj_add_strcpy(doc, meta, "uid", uid);
    fake_store(f, o, doc);
    return o;
}

static inline fake_object *fake_create_text(fake *f, agent_side side, const char *collection,
                                            const char *json)
{
    yyjson_doc *doc = yyjson_read(json, strlen(json), 0);
    check_msg(doc, "no JSON: %s", json);
    fake_object *o = fake_create(f, side, collection, yyjson_doc_get_root(doc));
    yyjson_doc_free(doc);
    return o;
}

static inline void fake_remove(fake *f, fake_object *o)
{
    fake_tell(f, o, true);
    yyjson_doc_free(o->doc);
    *o = f->objects[--f->count];
}

/* The object as a merge patch makes it; nothing happens if it is the same. */
static inline void fake_merge(fake *f, fake_object *o, yyjson_val *patch)
{
    yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL), *whole = yyjson_doc_mut_copy(o->doc, NULL);
    yyjson_mut_val *to = yyjson_val_mut_copy(doc, patch);
    yyjson_mut_obj_remove_key(yyjson_mut_obj_get(to, "metadata"), "resourceVersion");
    yyjson_mut_doc_set_root(doc, yyjson_mut_merge_patch(doc, yyjson_mut_doc_get_root(whole), to));
    yyjson_mut_doc_free(whole);
    yyjson_doc *made = yyjson_mut_doc_imut_copy(doc, NULL);
    bool same = yyjson_equals(yyjson_doc_get_root(made), yyjson_doc_get_root(o->doc));
    yyjson_doc_free(made);
    if (same)
        yyjson_mut_doc_free(doc);
    else
        fake_store(f, o, doc);
}

static inline void fake_merge_text(fake *f, fake_object *o, const char *json)
{
    yyjson_doc *doc = yyjson_read(json, strlen(json), 0);
    check_msg(doc, "no JSON: %s", json);
    fake_merge(f, o, yyjson_doc_get_root(doc));
    yyjson_doc_free(doc);
}

/* ---- the servers ---- */

/* clang-format off */
#define FAKE_KIND(plural, group, kind, scope)                                                      \
    "{\"resource\":\"" plural "\",\"scope\":\"" scope "\",\"verbs\":[\"get\",\"patch\"],"          \
    "\"responseKind\":{\"group\":\"" group "\",\"version\":\"v1\",\"kind\":\"" kind "\"}}"
#define FAKE_GROUP(name, kinds)                                                                    \
    "{\"metadata\":{\"name\":\"" name "\"},\"versions\":[{\"version\":\"v1\",\"freshness\":"       \
    "\"Current\",\"resources\":[" kinds "]}]}"
#define FAKE_DISCOVERY(groups)                                                                     \
    "{\"kind\":\"APIGroupDiscoveryList\",\"apiVersion\":\"apidiscovery.k8s.io/v2\","             \
    "\"items\":[" groups "]}"
/* clang-format on */

static inline const char *fake_discovery(const char *path)
{
    if (strcmp(path, "/api") == 0)
        return FAKE_DISCOVERY(
            FAKE_GROUP("", FAKE_KIND("configmaps", "", "ConfigMap", "Namespaced") "," FAKE_KIND(
                               "namespaces", "", "Namespace", "Cluster")));
    if (strcmp(path, "/apis") == 0)
        return FAKE_DISCOVERY(
            FAKE_GROUP("apps", FAKE_KIND("deployments", "apps", "Deployment", "Namespaced")));
    return NULL;
}

/* Whether the object that is meant has what the write asks for. */
static inline bool fake_holds(const kube_write *w, const fake_object *o)
{
    yyjson_val *version = yyjson_doc_ptr_get(o->doc, "/metadata/resourceVersion");
    yyjson_val *uid = yyjson_doc_ptr_get(o->doc, "/metadata/uid");
    return (w->version.len == 0 || yyjson_equals_strn(version, w->version.ptr, w->version.len)) &&
           (w->uid.len == 0 || yyjson_equals_strn(uid, w->uid.ptr, w->uid.len));
}

static inline write_outcome fake_outcome(write_outcome_kind kind, int status, const char *message)
{
    write_outcome how = {.kind = kind, .status = status};
    snprintf(how.message, sizeof how.message, "%s", message);
    return how;
}

/* What a server does with a request. *ret_changed: it was a write and took effect. */
static inline write_outcome fake_serve(fake *f, const fake_message *to, const kube_write *w,
                                       bool *ret_changed)
{
    agent_side side = to->side;
    const char *collection = to->collection, *name = to->name;
    fake_object *o = fake_find(f, side, collection, name);
    uint64_t before = f->revision;
    yyjson_doc *body = w->body.len > 0 ? yyjson_read(w->body.ptr, w->body.len, 0) : NULL;
    write_outcome how = fake_outcome(WRITE_DONE, 200, "");
    check_msg(w->body.len == 0 || body, "no JSON: %.*s", STR_ARG(w->body));
    if (f->refused && side == AGENT_OWN && w->verb == WRITE_APPLY && strcmp(name, f->refused) == 0)
        how = fake_outcome(WRITE_REFUSED, 422, "it is invalid");
    else if (f->deaf && strcmp(collection, FAKE_CLUSTERS) == 0)
        how = fake_outcome(WRITE_REFUSED, 403, "not you");
    else if (w->verb == WRITE_CREATE && o)
        how = fake_outcome(WRITE_EXISTS, 409, "it exists");
    else if (!o && w->verb != WRITE_CREATE && w->verb != WRITE_APPLY)
        how = fake_outcome(WRITE_GONE, 404, "not found");
    else if (o && !fake_holds(w, o))
        how = fake_outcome(WRITE_CONFLICT, 409, "it was changed");
    else if (!o)
        fake_create(f, side, collection, yyjson_doc_get_root(body));
    else if (w->verb == WRITE_DELETE)
        fake_remove(f, o);
    else if (w->verb != WRITE_READ)
        fake_merge(f, o, yyjson_doc_get_root(body));
    *ret_changed = how.kind == WRITE_DONE && (f->revision != before || w->verb == WRITE_DELETE);
    yyjson_doc_free(body);
    return how;
}

static inline bool fake_send(void *context, agent_side side, const kube_write *w,
                             write_handler handler, err *error)
{
    fake *f = context;
    fake_message m = {.kind = FAKE_ANSWER, .side = side, .handler = handler};
    bool changed = false;
    if (!write_check(w, error))
        return false;
    if (f->killed)
        return true; /* nobody is there to send anything, nor to be answered */
    snprintf(m.collection, sizeof m.collection, "%.*s", STR_ARG(w->collection));
    snprintf(m.name, sizeof m.name, "%.*s", STR_ARG(w->name));
    f->requests++;
    f->unpacking += strcmp(m.collection, FAKE_CONTENTS) == 0;
    f->unpacking_most = f->unpacking > f->unpacking_most ? f->unpacking : f->unpacking_most;
    const char *kinds = fake_discovery(m.collection);
    if (w->tried && !f->away[side]) {
        m.how = fake_outcome(WRITE_DONE, 200, "");
        m.doc = yyjson_read(w->body.ptr, w->body.len, 0);
    } else if (f->away[side]) {
        m.how = fake_outcome(WRITE_LATER, 0, "the server is away");
    } else if (kinds && w->name.len == 0) {
        m.how = fake_outcome(WRITE_DONE, 200, "");
        m.doc = yyjson_read(kinds, strlen(kinds), 0);
        check_msg(m.doc, "no JSON: %s", kinds);
    } else {
        m.how = fake_serve(f, &m, w, &changed);
        fake_object *o = fake_find(f, side, m.collection, m.name);
        if (m.how.kind == WRITE_DONE && o)
            m.doc = fake_copy(yyjson_doc_get_root(o->doc));
    }
    f->writes += changed;
    f->killed = changed && f->writes == f->kill_at;
    assert_true(vec_push(&f->messages, m));
    return true;
}

static inline void fake_tell_synced(fake *f, agent_kind *of, agent_watch watch)
{
    fake_message m = {.kind = FAKE_SYNCED, .of = of, .watch = watch};
    assert_true(vec_push(&f->messages, m));
}

static inline void fake_follow(void *context, agent_kind *kind, str path)
{
    fake *f = context;
    size_t at = str_find(path, STR("?")), slot = 0;
    assert_true(at != SIZE_MAX);
    while (slot < FAKE_KINDS_MAX && f->followed[slot].kind)
        slot++;
    assert_true(slot < FAKE_KINDS_MAX);
    f->followed[slot].kind = kind;
    snprintf(f->followed[slot].path, FAKE_NAME_BYTES, "%.*s", (int)at, path.ptr);
    for (size_t i = 0; i < f->count; i++)
        if (f->objects[i].side == AGENT_OWN &&
            fake_in(f->objects[i].collection, f->followed[slot].path))
            fake_tell(f, &f->objects[i], false);
    fake_tell_synced(f, kind, 0);
}

static inline void fake_unfollow(void *context, agent_kind *kind)
{
    fake *f = context;
    for (size_t i = 0; i < FAKE_KINDS_MAX; i++)
        if (f->followed[i].kind == kind)
            f->followed[i].kind = NULL;
}

static inline bool fake_chart(void *context, const step *s, chart_handler handler, err *error)
{
    fake *f = context;
    step_answer answer = {.outcome = OUTCOME_OK, .message = STR_EMPTY};
    if (!f->helm)
        return err_set(error, "there is no helm");
    f->installs += s->kind == STEP_INSTALL_CHART;
    f->removals += s->kind == STEP_REMOVE_CHART;
    answer.text = str_of(f->helm);
    handler.done(handler.context, &answer);
    return true;
}

static inline int64_t fake_now(void *context)
{
    return ((fake *)context)->now_ms;
}

static inline moment fake_time(void *context)
{
    const fake *f = context;
    return (moment){f->now_ms / 1000 + f->wrong_s, 0};
}

/* ---- the agent's life ---- */

static inline void fake_forget_messages(fake *f)
{
    for (size_t i = f->message_at; i < f->messages.len; i++)
        yyjson_doc_free(f->messages.at[i].doc);
    f->messages.len = f->message_at = 0;
}

static inline void fake_start(fake *f)
{
    err error;
    f->killed = false;
    f->shell = agent_shell_new(
        &f->settings,
        (agent_api){f, fake_send, fake_follow, fake_unfollow, fake_chart, fake_now, fake_time},
        &error);
    assert_non_null(f->shell);
    for (size_t i = 0; i < f->count; i++)
        if (fake_is(f->objects[i].collection, "bundledeployments") ||
            yyjson_doc_ptr_get(f->objects[i].doc, "/metadata/labels/drover.dev~1inventory"))
            fake_tell(f, &f->objects[i], false);
    for (int i = 0; i < AGENT_WATCH_COUNT; i++)
        if (!f->away[i == AGENT_WATCH_DEPLOYMENTS ? AGENT_HUB : AGENT_OWN])
            fake_tell_synced(f, NULL, (agent_watch)i);
}

static inline void fake_stop(fake *f)
{
    fake_forget_messages(f);
    f->unpacking = 0;
    f->shell = agent_shell_free(f->shell);
    memset(f->followed, 0, sizeof f->followed);
}

static inline void fake_open(fake *f)
{
    *f = (fake){.now_ms = FAKE_START_MS,
                .settings = {.home = STR("home"),
                             .cluster_namespace = STR("fleet-default"),
                             .cluster = STR("east"),
                             .agent_namespace = STR("drover-system"),
                             .heartbeat_ms = 900000}};
    fake_create_text(f, AGENT_HUB, FAKE_CLUSTERS,
                     "{\"metadata\":{\"name\":\"east\",\"namespace\":\"fleet-default\"},"
                     "\"status\":{\"namespace\":\"home\"}}");
    f->writes = 0;
}

static inline void fake_close(fake *f)
{
    fake_stop(f);
    for (size_t i = 0; i < f->count; i++)
        yyjson_doc_free(f->objects[i].doc);
    vec_done(&f->messages);
}

/* ---- time ---- */

static inline void fake_deliver_object(fake *f, const fake_message *m)
{
    yyjson_val *json = yyjson_doc_get_root(m->doc);
    bool record = yyjson_ptr_get(json, "/metadata/labels/drover.dev~1inventory");
    bool deployment = fake_is(m->collection, "bundledeployments");
    agent_watch watch = deployment ? AGENT_WATCH_DEPLOYMENTS : AGENT_WATCH_INVENTORIES;
    if ((deployment || record) && m->kind == FAKE_SEEN)
        assert_true(agent_shell_seen(f->shell, watch, json));
    else if (deployment || record)
        agent_shell_gone(f->shell, watch, str_of(m->name));
    if (m->side != AGENT_OWN || !yyjson_ptr_get(json, "/metadata/labels/drover.dev~1deployment"))
        return;
    const char *space = yyjson_get_str(yyjson_ptr_get(json, "/metadata/namespace"));
    for (size_t i = 0; i < FAKE_KINDS_MAX; i++) {
        agent_kind *kind = f->followed[i].kind;
        if (!kind || !fake_in(m->collection, f->followed[i].path))
            continue;
        if (m->kind == FAKE_SEEN)
            assert_true(agent_shell_object_seen(f->shell, kind, json));
        else
            agent_shell_object_gone(f->shell, kind, str_of(space ? space : ""), str_of(m->name));
    }
}

static inline void fake_deliver(fake *f)
{
    fake_message m = f->messages.at[f->message_at++];
    bool followed = !m.of;
    for (size_t i = 0; i < FAKE_KINDS_MAX; i++)
        followed |= m.of && f->followed[i].kind == m.of;
    f->unpacking -= m.kind == FAKE_ANSWER && strcmp(m.collection, FAKE_CONTENTS) == 0;
    if (m.kind == FAKE_ANSWER)
        m.handler.done(m.handler.context, &m.how, m.doc ? yyjson_doc_get_root(m.doc) : NULL);
    else if (m.kind != FAKE_SYNCED)
        fake_deliver_object(f, &m);
    else if (m.of && followed)
        agent_shell_object_synced(f->shell, m.of);
    else if (!m.of)
        agent_shell_synced(f->shell, m.watch);
    yyjson_doc_free(m.doc);
}

/* Pods whose time has come are ready. */
static inline int64_t fake_controllers(fake *f)
{
    int64_t next = INT64_MAX;
    for (size_t i = 0; i < f->count; i++) {
        fake_object *o = &f->objects[i];
        if (o->ready_ms > f->now_ms) {
            next = o->ready_ms < next ? o->ready_ms : next;
            continue;
        }
        char text[512];
        o->ready_ms = INT64_MAX;
        long long generation = yyjson_get_sint(yyjson_doc_ptr_get(o->doc, "/metadata/generation"));
        snprintf(text, sizeof text,
                 "{\"status\":{\"observedGeneration\":%lld,\"replicas\":1,\"updatedReplicas\":1,"
                 "\"availableReplicas\":%d}}",
                 generation, f->unready ? 0 : 1);
        fake_merge_text(f, o, text);
    }
    return next;
}

/* Lets everything happen until nothing does for a while, or until the time is over. False: the
 * agent was killed. */
static inline bool fake_run(fake *f, int64_t ms)
{
    int64_t end = f->now_ms + ms;
    for (size_t i = 0; i < FAKE_TURNS_MAX; i++) {
        int64_t controllers = fake_controllers(f);
        if (f->killed)
            return false;
        if (f->message_at < f->messages.len) {
            fake_deliver(f);
            continue;
        }
        f->messages.len = f->message_at = 0;
        int64_t next = agent_shell_next_ms(f->shell);
        if (agent_shell_is_due(f->shell) || next <= f->now_ms) {
            assert_true(agent_shell_turn(f->shell));
            continue;
        }
        next = controllers < next ? controllers : next;
        if (next > end) {
            f->now_ms = end;
            return true;
        }
        f->now_ms = next;
    }
    fail_msg("it does not come to rest");
    return false;
}

#endif
