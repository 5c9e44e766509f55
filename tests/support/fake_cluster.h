/* SPDX-License-Identifier: Apache-2.0 */
/* fake_cluster.h - an API server in memory, with players for Jobs and nodes, around a node shell.
 *
 * Objects have versions, writes their preconditions, and every change is told to the shell in the
 * order the test wants. A Job's pod ends after a while, as the test arranges. Time is the test's.
 * After every write that took effect the limits are looked at. Nothing here knows a rule of the
 * operator's: only what a server does. */
#ifndef DROVER_TESTS_SUPPORT_FAKE_CLUSTER_H
#define DROVER_TESTS_SUPPORT_FAKE_CLUSTER_H

#include "base/vec.h"
#include "operator/node_shell.h"

#define FAKE_OBJECTS_MAX 512
#define FAKE_NAME_BYTES 128
#define FAKE_FOLLOWED_MAX 16
#define FAKE_START_MS INT64_C(1763272800000)
#define FAKE_SPACE "skyhook"
#define FAKE_SKYHOOKS "/apis/skyhook.nvidia.com/v1alpha1/skyhooks"
#define FAKE_POLICIES "/apis/skyhook.nvidia.com/v1alpha1/deploymentpolicies"
#define FAKE_NODES "/api/v1/nodes"
#define FAKE_JOBS "/apis/batch/v1/namespaces/" FAKE_SPACE "/jobs"
#define FAKE_MAPS "/api/v1/namespaces/" FAKE_SPACE "/configmaps"
#define FAKE_PODS "/api/v1/namespaces/" FAKE_SPACE "/pods"

typedef struct fake_object {
    char collection[FAKE_NAME_BYTES];
    char name[FAKE_NAME_BYTES];
    yyjson_doc *doc;
    int64_t ends_ms; /* a Job: when it ends */
} fake_object;

typedef struct fake_message {
    bool is_answer;
    char collection[FAKE_NAME_BYTES]; /* an event */
    char name[FAKE_NAME_BYTES];
    char node[FAKE_NAME_BYTES]; /* of a pod */
    bool synced;                /* all pods of the node were told */
    write_handler handler;      /* an answer */
    write_outcome how;
    yyjson_doc *doc; /* NULL: it is gone, or there is none */
} fake_message;

typedef struct fake fake;
struct fake {
    node_shell *shell;
    shell_settings settings;
    int64_t now_ms;
    uint64_t revision;
    fake_object objects[FAKE_OBJECTS_MAX];
    size_t count;
    VEC(fake_message) messages;
    uint64_t uids;
    int64_t job_ms; /* how long a Job takes */
    /* Whether the Job of this name fails; NULL: none does. */
    bool (*fails)(fake *f, const char *job);
    /* Whether it reboots its node, and dies of it. */
    bool (*reboots)(fake *f, const char *job);
    /* Whether a budget protects the pod; NULL: none does. */
    bool (*refuses)(fake *f, const char *pod_name);
    /* Called after every write of the shell that took effect. */
    void (*watch)(fake *f, const kube_write *w);
    uint64_t writes;  /* that took effect */
    uint64_t kill_at; /* the shell dies right after so many of them; 0: never */
    bool killed;
    bool answers_last; /* events are told before answers */
    uint64_t conflicts;
    char followed[FAKE_FOLLOWED_MAX][FAKE_NAME_BYTES]; /* nodes whose pods are */
    buf log;
};

/* ---- objects ---- */

static inline fake_object *fake_find(fake *f, const char *collection, const char *name)
{
    for (size_t i = 0; i < f->count; i++)
        if (strcmp(f->objects[i].collection, collection) == 0 &&
            strcmp(f->objects[i].name, name) == 0)
            return &f->objects[i];
    return NULL;
}

static inline yyjson_val *fake_get(fake *f, const char *collection, const char *name,
                                   const char *pointer)
{
    fake_object *o = fake_find(f, collection, name);
    return o ? yyjson_doc_ptr_get(o->doc, pointer) : NULL;
}

static inline const char *fake_text(fake *f, const char *collection, const char *name,
                                    const char *pointer)
{
    const char *text = yyjson_get_str(fake_get(f, collection, name, pointer));
    return text ? text : "";
}

static inline yyjson_doc *fake_copy(const yyjson_doc *doc)
{
    yyjson_mut_doc *copy = yyjson_doc_mut_copy((yyjson_doc *)(uintptr_t)doc, NULL);
    yyjson_doc *same = yyjson_mut_doc_imut_copy(copy, NULL);
    yyjson_mut_doc_free(copy);
    return same;
}

static inline void fake_tell(fake *f, const fake_object *o, bool gone)
{
    fake_message m = {.doc = gone ? NULL : fake_copy(o->doc)};
    memcpy(m.collection, o->collection, sizeof m.collection);
    memcpy(m.name, o->name, sizeof m.name);
    const char *on = yyjson_get_str(yyjson_doc_ptr_get(o->doc, "/spec/nodeName"));
    snprintf(m.node, sizeof m.node, "%s", on ? on : "");
    assert_true(vec_push(&f->messages, m));
}

static inline bool fake_is_pod(const char *collection)
{
    size_t len = strlen(collection);
    return len > 5 && strcmp(collection + len - 5, "/pods") == 0;
}

static inline bool fake_follows(const fake *f, const char *on)
{
    for (size_t i = 0; i < FAKE_FOLLOWED_MAX; i++)
        if (on[0] != '\0' && strcmp(f->followed[i], on) == 0)
            return true;
    return false;
}

static inline void fake_follow(void *context, str on, bool wanted)
{
    fake *f = context;
    size_t at = 0;
    for (size_t i = 0; i < FAKE_FOLLOWED_MAX; i++)
        if (str_eq(str_of(f->followed[i]), on))
            f->followed[i][0] = '\0';
    if (!wanted)
        return;
    while (f->followed[at][0] != '\0')
        check_msg(++at < FAKE_FOLLOWED_MAX, "too many nodes drain");
    snprintf(f->followed[at], FAKE_NAME_BYTES, "%.*s", STR_ARG(on));
    for (size_t i = 0; i < f->count; i++)
        if (fake_is_pod(f->objects[i].collection) &&
            str_eq(str_of(fake_text(f, f->objects[i].collection, f->objects[i].name,
                                    "/spec/nodeName")),
                   on))
            fake_tell(f, &f->objects[i], false);
    fake_message m = {.synced = true};
    snprintf(m.node, sizeof m.node, "%.*s", STR_ARG(on));
    assert_true(vec_push(&f->messages, m));
}

/* Stores what a write made of an object, with a version of its own. */
static inline void fake_store(fake *f, fake_object *o, yyjson_mut_doc *doc)
{
    char text[32];
    yyjson_mut_val *meta = yyjson_mut_doc_ptr_get(doc, "/metadata");
    snprintf(text, sizeof text, "%llu", (unsigned long long)++f->revision);
    yyjson_mut_obj_remove_key(meta, "resourceVersion");
    yyjson_mut_obj_add_strcpy(doc, meta, "resourceVersion", text);
    yyjson_doc_free(o->doc);
    o->doc = yyjson_mut_doc_imut_copy(doc, NULL);
    yyjson_mut_doc_free(doc);
    fake_tell(f, o, false);
}

static inline fake_object *fake_create(fake *f, const char *collection, const char *json)
{
    yyjson_doc *doc = yyjson_read(json, strlen(json), 0);
    check_msg(doc, "no JSON: %s", json);
    yyjson_mut_doc *mut = yyjson_doc_mut_copy(doc, NULL);
    yyjson_doc_free(doc);
    yyjson_mut_val *meta = yyjson_mut_doc_ptr_get(mut, "/metadata");
    check_msg(f->count < FAKE_OBJECTS_MAX, "too many objects");
    fake_object *o = &f->objects[f->count++];
    *o = (fake_object){.ends_ms = REASON_NEVER};
    snprintf(o->collection, sizeof o->collection, "%s", collection);
    const char *name = yyjson_mut_get_str(yyjson_mut_obj_get(meta, "name"));
    check_msg(name, "no name: %s", json);
    snprintf(o->name, sizeof o->name, "%s", name ? name : "");
    char uid[64];
    snprintf(uid, sizeof uid, "uid-%llu", (unsigned long long)++f->uids);
    yyjson_mut_obj_add_strcpy(mut, meta, "uid", uid);
    yyjson_mut_obj_add_int(mut, meta, "generation", 1);
    yyjson_mut_obj_add_strcpy(mut, meta, "creationTimestamp", "2026-11-16T06:00:00Z");
    if (strcmp(collection, FAKE_JOBS) == 0)
        o->ends_ms = f->now_ms + f->job_ms;
    fake_store(f, o, mut);
    return o;
}

static inline void fake_delete(fake *f, const char *collection, const char *name)
{
    fake_object *o = fake_find(f, collection, name);
    assert_non_null(o);
    fake_tell(f, o, true);
    yyjson_doc_free(o->doc);
    *o = f->objects[--f->count];
}

/* ---- patches ---- */

/* Conditions are merged by their type, and come to stand in front. */
static inline void fake_merge_conditions(yyjson_mut_doc *doc, yyjson_val *patch)
{
    yyjson_mut_val *status = yyjson_mut_doc_ptr_get(doc, "/status");
    yyjson_mut_val *list = yyjson_mut_obj_get(status, "conditions");
    yyjson_arr_iter walk = yyjson_arr_iter_with(patch);
    for (yyjson_val *one; (one = yyjson_arr_iter_next(&walk));) {
        yyjson_mut_arr_iter at = yyjson_mut_arr_iter_with(list);
        for (yyjson_mut_val *old; (old = yyjson_mut_arr_iter_next(&at));)
            if (strcmp(yyjson_mut_get_str(yyjson_mut_obj_get(old, "type")),
                       yyjson_get_str(yyjson_obj_get(one, "type"))) == 0)
                yyjson_mut_arr_iter_remove(&at);
        if (!yyjson_obj_get(one, "$patch"))
            yyjson_mut_arr_prepend(list, yyjson_val_mut_copy(doc, one));
    }
}

static inline void fake_patch(fake *f, fake_object *o, yyjson_val *patch, bool strategic)
{
    yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    yyjson_mut_doc *whole = yyjson_doc_mut_copy(o->doc, NULL);
    yyjson_mut_val *to = yyjson_val_mut_copy(doc, patch);
    yyjson_val *conditions = yyjson_ptr_get(patch, "/status/conditions");
    if (strategic)
        yyjson_mut_obj_remove_key(to, "status");
    yyjson_mut_obj_remove_key(yyjson_mut_obj_get(to, "metadata"), "resourceVersion");
    yyjson_mut_val *merged = yyjson_mut_merge_patch(doc, yyjson_mut_doc_get_root(whole), to);
    yyjson_mut_doc_set_root(doc, merged);
    yyjson_val *spec = yyjson_obj_get(patch, "spec");
    if (spec && yyjson_obj_size(spec) > 0) {
        yyjson_mut_val *meta = yyjson_mut_obj_get(merged, "metadata");
        int64_t generation = yyjson_mut_get_sint(yyjson_mut_obj_get(meta, "generation"));
        yyjson_mut_obj_remove_key(meta, "generation");
        yyjson_mut_obj_add_int(doc, meta, "generation", generation + 1);
    }
    if (strategic && conditions)
        fake_merge_conditions(doc, conditions);
    yyjson_doc *same = yyjson_mut_doc_imut_copy(doc, NULL);
    bool changed = !yyjson_equals(yyjson_doc_get_root(same), yyjson_doc_get_root(o->doc));
    yyjson_doc_free(same);
    yyjson_mut_doc_free(whole);
    if (!changed) {
        yyjson_mut_doc_free(doc);
        return;
    }
    fake_store(f, o, doc);
    /* What is deleted goes with its last finalizer. */
    if (yyjson_doc_ptr_get(o->doc, "/metadata/deletionTimestamp") &&
        yyjson_arr_size(yyjson_doc_ptr_get(o->doc, "/metadata/finalizers")) == 0)
        fake_delete(f, o->collection, o->name);
}

/* A person's edit: a merge patch as text. */
static inline void fake_edit(fake *f, const char *collection, const char *name, const char *patch)
{
    yyjson_doc *doc = yyjson_read(patch, strlen(patch), 0);
    check_msg(doc, "no JSON: %s", patch);
    fake_object *o = fake_find(f, collection, name);
    check_msg(o, "no %s", name);
    fake_patch(f, o, yyjson_doc_get_root(doc), false);
    yyjson_doc_free(doc);
}

/* ---- the server ---- */

static inline write_outcome_kind fake_write(fake *f, const kube_write *w, fake_object **ret)
{
    char collection[FAKE_NAME_BYTES], name[FAKE_NAME_BYTES];
    snprintf(collection, sizeof collection, "%.*s", STR_ARG(w->collection));
    snprintf(name, sizeof name, "%.*s", STR_ARG(w->name));
    fake_object *o = *ret = fake_find(f, collection, name);
    if (w->verb == WRITE_READ)
        return o ? WRITE_DONE : WRITE_GONE;
    bool creates = w->verb == WRITE_CREATE || w->verb == WRITE_APPLY;
    if (!o && !creates)
        return WRITE_GONE;
    if (o && w->verb == WRITE_CREATE)
        return WRITE_EXISTS;
    const char *present =
        o ? yyjson_get_str(yyjson_doc_ptr_get(o->doc, "/metadata/resourceVersion")) : "";
    if (w->version.len > 0 && !str_eq(w->version, str_of(present))) {
        f->conflicts++;
        return WRITE_CONFLICT;
    }
    char *body = strndup(w->body.ptr ? w->body.ptr : "", w->body.len);
    yyjson_doc *patch = yyjson_read(body, strlen(body), 0);
    if (w->verb == WRITE_EVICT) {
        if (f->refuses && f->refuses(f, name)) {
            yyjson_doc_free(patch);
            (free)(body);
            return WRITE_BLOCKED;
        }
        fake_delete(f, collection, name);
        *ret = NULL;
    } else if (w->verb == WRITE_DELETE) {
        fake_delete(f, collection, name);
        *ret = NULL;
    } else if (!o) {
        *ret = fake_create(f, collection, body);
    } else {
        check_msg(patch, "no JSON: %s", body);
        fake_patch(f, o, yyjson_doc_get_root(patch), w->verb == WRITE_STRATEGIC);
        *ret = fake_find(f, collection, name);
    }
    yyjson_doc_free(patch);
    (free)(body);
    return WRITE_DONE;
}

static inline bool fake_send(void *context, const kube_write *w, write_handler handler, err *error)
{
    fake *f = context;
    fake_object *o = NULL;
    if (!write_check(w, error)) {
        print_error("%s\n", error->text);
        return false;
    }
    if (f->killed) /* nothing of it reaches the server any more */
        return true;
    fake_message m = {.is_answer = true, .handler = handler};
    m.how.kind = fake_write(f, w, &o);
    if (m.how.kind == WRITE_BLOCKED)
        snprintf(m.how.budget, sizeof m.how.budget, "keep-it");
    if (m.how.kind == WRITE_DONE && o)
        m.doc = fake_copy(o->doc);
    buf_addf(&f->log, "%lld %s %.*s/%.*s%s%.*s %s\n", (long long)(f->now_ms - FAKE_START_MS),
             write_method(w->verb), STR_ARG(w->collection), STR_ARG(w->name),
             w->subresource.len > 0 ? "/" : "", STR_ARG(w->subresource),
             write_outcome_text(m.how.kind));
    assert_true(vec_push(&f->messages, m));
    if (w->verb == WRITE_READ || m.how.kind != WRITE_DONE)
        return true;
    f->writes++;
    if (f->watch)
        f->watch(f, w);
    f->killed = f->kill_at > 0 && f->writes == f->kill_at;
    return true;
}

/* ---- telling ---- */

static inline bool fake_kind(const char *collection, shell_kind *ret)
{
    static const struct {
        const char *collection;
        shell_kind kind;
    } kinds[] = {{FAKE_NODES, SHELL_NODE},
                 {FAKE_POLICIES, SHELL_POLICY},
                 {FAKE_SKYHOOKS, SHELL_SKYHOOK},
                 {FAKE_JOBS, SHELL_JOB},
                 {FAKE_PODS, SHELL_POD}};
    for (size_t i = 0; i < COUNT_OF(kinds); i++)
        if (strcmp(kinds[i].collection, collection) == 0) {
            *ret = kinds[i].kind;
            return true;
        }
    return false;
}

static inline void fake_deliver_pod(fake *f, const fake_message *m)
{
    str space = str_part(str_of(m->collection), sizeof "/api/v1/namespaces/" - 1, SIZE_MAX);
    space = str_cut(&space, '/');
    if (m->doc)
        assert_true(
            node_shell_pod_seen(f->shell, str_of(m->node), yyjson_doc_get_root(m->doc), f->now_ms));
    else
        node_shell_pod_gone(f->shell, str_of(m->node), space, str_of(m->name), f->now_ms);
}

static inline void fake_deliver_one(fake *f, fake_message m)
{
    shell_kind kind;
    yyjson_val *root = m.doc ? yyjson_doc_get_root(m.doc) : NULL;
    if (m.synced)
        node_shell_pods_synced(f->shell, str_of(m.node));
    else if (!m.is_answer && fake_is_pod(m.collection) && fake_follows(f, m.node))
        fake_deliver_pod(f, &m);
    if (m.synced)
        return;
    if (m.is_answer)
        m.handler.done(m.handler.context, &m.how, root);
    else if (fake_kind(m.collection, &kind) && root)
        assert_true(node_shell_seen(f->shell, kind, root, f->now_ms));
    else if (fake_kind(m.collection, &kind))
        node_shell_gone(f->shell, kind, STR_EMPTY, str_of(m.name), f->now_ms);
    yyjson_doc_free(m.doc);
}

static inline void fake_deliver(fake *f)
{
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < f->messages.len; i++) {
            if (f->messages.at[i].is_answer != ((pass == 0) != f->answers_last))
                continue;
            fake_message m = f->messages.at[i];
            memmove(&f->messages.at[i], &f->messages.at[i + 1],
                    (f->messages.len - i - 1) * sizeof m);
            f->messages.len--;
            i--;
            fake_deliver_one(f, m);
        }
}

/* A shell that knows nothing but what the objects say. */
static inline void fake_start(fake *f)
{
    err error;
    for (size_t i = 0; i < f->messages.len; i++)
        yyjson_doc_free(f->messages.at[i].doc);
    f->messages.len = 0;
    f->killed = false;
    memset(f->followed, 0, sizeof f->followed);
    f->shell = node_shell_free(f->shell);
    f->shell = node_shell_new(&f->settings, (api){f, fake_send, fake_follow, NULL}, &error);
    assert_non_null(f->shell);
    for (size_t i = 0; i < f->count; i++)
        fake_tell(f, &f->objects[i], false);
    fake_deliver(f);
    for (int kind = 0; kind < SHELL_KIND_COUNT; kind++)
        node_shell_synced(f->shell, (shell_kind)kind);
}

/* ---- players ---- */

/* The node goes down and comes back with another boot; its Job dies of it. */
static inline void fake_reboot(fake *f, const char *on)
{
    char text[256];
    fake_edit(f, FAKE_NODES, on,
              "{\"status\":{\"conditions\":[{\"type\":\"Ready\",\"status\":\"Unknown\"}]}}");
    fake_deliver(f);
    snprintf(text, sizeof text,
             "{\"status\":{\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}],"
             "\"nodeInfo\":{\"bootID\":\"again-%llu\"}}}",
             (unsigned long long)f->revision);
    fake_edit(f, FAKE_NODES, on, text);
}

static inline void fake_job_ends(fake *f, fake_object *o)
{
    const char *on = fake_text(f, FAKE_JOBS, o->name, "/spec/template/spec/nodeName");
    bool reboots = f->reboots && f->reboots(f, o->name);
    if (reboots) {
        char name[FAKE_NAME_BYTES];
        snprintf(name, sizeof name, "%s", on);
        fake_reboot(f, name);
    }
    bool fails = reboots || (f->fails && f->fails(f, o->name));
    o->ends_ms = REASON_NEVER;
    fake_edit(f, FAKE_JOBS, o->name,
              fails
                  ? "{\"status\":{\"conditions\":[{\"type\":\"FailureTarget\",\"status\":"
                    "\"True\",\"reason\":\"DeadlineExceeded\"}]}}"
                  : "{\"status\":{\"conditions\":[{\"type\":\"Complete\",\"status\":\"True\"}]}}");
}

static inline int64_t fake_next_ms(const fake *f)
{
    int64_t next = node_shell_next_ms(f->shell);
    for (size_t i = 0; i < f->count; i++)
        if (f->objects[i].ends_ms != REASON_NEVER &&
            (next == REASON_NEVER || f->objects[i].ends_ms < next))
            next = f->objects[i].ends_ms;
    return next;
}

/* Runs for so long, or (negative) until nothing is due any more. Restarts the shell when it dies.
 */
static inline void fake_run(fake *f, int64_t for_ms)
{
    int64_t end = f->now_ms + for_ms;
    for (int turns = 0;; turns++) {
        check_msg(turns < 20000, "no end in sight");
        fake_deliver(f);
        assert_true(node_shell_turn(f->shell, f->now_ms));
        if (f->killed) {
            f->kill_at = 0;
            fake_start(f);
            continue;
        }
        if (f->messages.len > 0 || node_shell_is_due(f->shell))
            continue;
        int64_t next = fake_next_ms(f);
        if (next == REASON_NEVER || (for_ms >= 0 && next > end))
            break;
        if (next > f->now_ms)
            f->now_ms = next;
        for (size_t i = 0; i < f->count; i++)
            if (f->objects[i].ends_ms != REASON_NEVER && f->objects[i].ends_ms <= f->now_ms)
                fake_job_ends(f, &f->objects[i]);
    }
    if (for_ms >= 0)
        f->now_ms = end;
}

static inline fake *fake_new(void)
{
    fake *f = test_calloc(1, sizeof *f);
    f->settings = (shell_settings){.job = job_settings_default, .version = STR("1.0.0")};
    f->now_ms = FAKE_START_MS;
    f->job_ms = 1000;
    f->log = BUF(64u << 20);
    return f;
}

static inline void fake_free(fake *f)
{
    f->shell = node_shell_free(f->shell);
    for (size_t i = 0; i < f->messages.len; i++)
        yyjson_doc_free(f->messages.at[i].doc);
    for (size_t i = 0; i < f->count; i++)
        yyjson_doc_free(f->objects[i].doc);
    vec_done(&f->messages);
    buf_done(&f->log);
    test_free(f);
}

static inline void fake_add_nodes(fake *f, int count)
{
    char text[512];
    for (int i = 0; i < count; i++) {
        snprintf(
            text, sizeof text,
            "{\"metadata\":{\"name\":\"n%02d\",\"labels\":{\"pool\":\"a\"},\"annotations\":{}},"
            "\"spec\":{},\"status\":{\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}],"
            "\"nodeInfo\":{\"bootID\":\"boot-%02d\"}}}",
            i, i);
        fake_create(f, FAKE_NODES, text);
    }
}

#endif
