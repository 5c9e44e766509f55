/* SPDX-License-Identifier: Apache-2.0 */
/* fake_cluster.h - an API server in memory, with players for Jobs and nodes, around node shells.
 *
 * Objects have versions, writes their preconditions, and every change is told to the shells in the
 * order the test wants, at once or late. A Job's pod ends after a while, as the test arranges. Time
 * is the test's. After every write that took effect the limits are looked at. One write, of the
 * test's choice, may meet a fault. Nothing here knows a rule of the operator's: only what a server
 * does. */
#ifndef DROVER_TESTS_SUPPORT_FAKE_CLUSTER_H
#define DROVER_TESTS_SUPPORT_FAKE_CLUSTER_H

#include "base/vec.h"
#include "operator/node_shell.h"

#ifndef FAKE_OBJECTS_MAX
#define FAKE_OBJECTS_MAX 2048
#endif
#define FAKE_NAME_BYTES 128
#define FAKE_FOLLOWED_MAX 64
#define FAKE_START_MS INT64_C(1763272800000)
#define FAKE_SPACE "skyhook"
#define FAKE_SKYHOOKS "/apis/skyhook.nvidia.com/v1alpha1/skyhooks"
#define FAKE_POLICIES "/apis/skyhook.nvidia.com/v1alpha1/deploymentpolicies"
#define FAKE_NODES "/api/v1/nodes"
#define FAKE_REBOOT "eyJ0eXBlIjoibm9kZV9yZXN0YXJ0In0=" /* for the agent */
#define FAKE_JOBS "/apis/batch/v1/namespaces/" FAKE_SPACE "/jobs"
#define FAKE_MAPS "/api/v1/namespaces/" FAKE_SPACE "/configmaps"
#define FAKE_PODS "/api/v1/namespaces/" FAKE_SPACE "/pods"

typedef struct fake_object {
    char collection[FAKE_NAME_BYTES];
    char name[FAKE_NAME_BYTES];
    yyjson_doc *doc;
    int64_t ends_ms; /* a Job: when it ends; a node: when its taints show whether it is cordoned */
    bool failing;    /* that it fails is known, and its pod is not gone yet */
} fake_object;

typedef struct fake_message {
    int64_t at_ms; /* when it arrives */
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

/* What may happen to a write. */
#define FAKE_FAULTS(X)                                                                             \
    X(NONE, "none")                                                                                \
    X(KILL, "the shell dies when it has taken effect")                                             \
    X(CONFLICT, "somebody else was faster")                                                        \
    X(PHANTOM, "a conflict, though nobody was faster")                                             \
    X(INVALID, "refused with 422")                                                                 \
    X(FORBIDDEN, "refused with 403")                                                               \
    X(LOST, "it takes effect, and its answer is lost")                                             \
    X(REPEATED, "it takes effect, and its repeat finds that")                                      \
    X(LATE, "it takes effect late, and is not answered")                                           \
    X(LEGACY, "the shell dies, and it takes effect under the next one")
typedef enum fake_fault {
#define X(fault, text) FAULT_##fault,
    FAKE_FAULTS(X)
#undef X
} fake_fault;
#define FAKE_FAULT_COUNT (FAULT_LEGACY + 1)
#define FAKE_LATE_MS 20000 /* less than a shell waits before it sends again */
#define FAKE_LEGACY_MS 500
#define FAKE_FAILING_MS 200

static inline const char *fake_fault_text(fake_fault fault)
{
    static const char *const texts[] = {
#define X(fault, text) text,
        FAKE_FAULTS(X)
#undef X
    };
    return texts[fault];
}

/* A shell, and what it has yet to hear. */
typedef struct fake_side {
    fake *cluster;
    node_shell *shell; /* NULL: there is none */
    VEC(fake_message) messages;
    char followed[FAKE_FOLLOWED_MAX][FAKE_NAME_BYTES]; /* nodes whose pods are */
    int64_t delay_ms;                                  /* of everything that its watches tell */
    bool told;                                         /* what Jobs and pods there are */
    bool killed;
    size_t begun; /* shells it has had */
    char identity[32];
} fake_side;
#define FAKE_SIDES 2

struct fake {
    node_shell *shell; /* the first one's */
    fake_side sides[FAKE_SIDES];
    shell_settings settings;
    int64_t now_ms;
    uint64_t revision;
    fake_object objects[FAKE_OBJECTS_MAX];
    size_t count;
    uint64_t uids;
    int64_t job_ms; /* how long a Job takes */
    /* Whether the Job of this name fails; NULL: none does. */
    bool (*fails)(fake *f, const char *job);
    /* Whether it dies of the reboot of its node that it asks for; else it succeeds after it. */
    bool (*reboots)(fake *f, const char *job);
    VEC(const char *) rebooted; /* what hosts were rebooted for: once for each piece of work */
    /* Whether a budget protects the pod; NULL: none does. */
    bool (*refuses)(fake *f, const char *pod_name);
    /* Whether nobody may read the object of this name; NULL: all may be read. */
    bool (*hides)(fake *f, const char *name);
    /* Called after every write of the shell that took effect. */
    void (*watch)(fake *f, const kube_write *w);
    /* What becomes of a write; NULL: what the fault says. */
    fake_fault (*meets)(fake *f, const kube_write *w);
    const char *forbids; /* the words of a 403; NULL: those of missing rights */
    uint64_t writes;     /* that took effect */
    uint64_t sent;       /* and that were sent, since the last fake_arm */
    uint64_t fault_at;   /* the one of them that the fault happens to; 0: none */
    fake_fault fault;
    arena *memory; /* of the write that takes effect late */
    kube_write late;
    int64_t late_ms;   /* REASON_NEVER: there is none */
    bool answers_last; /* events are told before answers */
    uint64_t conflicts;
    buf log;
    buf told; /* Events, a line each */
};

/* From now on: the fault, at which write it happens, and in which order the shell hears of things.
 */
typedef struct fake_plan {
    fake_fault fault;
    uint64_t at;
    bool answers_last;
} fake_plan;

static inline void fake_arm(fake *f, fake_plan plan)
{
    f->sent = 0;
    f->fault = plan.fault;
    f->fault_at = plan.at;
    f->answers_last = plan.answers_last;
}

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

static inline void fake_tell_side(fake_side *side, const fake_object *o, bool gone)
{
    fake_message m = {.doc = gone ? NULL : fake_copy(o->doc),
                      .at_ms = side->cluster->now_ms + side->delay_ms};
    memcpy(m.collection, o->collection, sizeof m.collection);
    memcpy(m.name, o->name, sizeof m.name);
    const char *on = yyjson_get_str(yyjson_doc_ptr_get(o->doc, "/spec/nodeName"));
    snprintf(m.node, sizeof m.node, "%s", on ? on : "");
    assert_true(vec_push(&side->messages, m));
}

static inline bool fake_is_pod(const char *collection)
{
    size_t len = strlen(collection);
    return len > 5 && strcmp(collection + len - 5, "/pods") == 0;
}

static inline void fake_tell(fake *f, const fake_object *o, bool gone)
{
    bool later = fake_is_pod(o->collection) || strcmp(o->collection, FAKE_JOBS) == 0;
    for (size_t i = 0; i < FAKE_SIDES; i++)
        if (f->sides[i].shell && (f->sides[i].told || !later))
            fake_tell_side(&f->sides[i], o, gone);
}

static inline bool fake_follows(const fake_side *side, const char *on)
{
    for (size_t i = 0; i < FAKE_FOLLOWED_MAX; i++)
        if (on[0] != '\0' && strcmp(side->followed[i], on) == 0)
            return true;
    return false;
}

static inline void fake_follow(void *context, str on, bool wanted)
{
    fake_side *side = context;
    fake *f = side->cluster;
    size_t at = 0;
    for (size_t i = 0; i < FAKE_FOLLOWED_MAX; i++)
        if (str_eq(str_of(side->followed[i]), on))
            side->followed[i][0] = '\0';
    if (!wanted)
        return;
    while (side->followed[at][0] != '\0')
        check_msg(++at < FAKE_FOLLOWED_MAX, "too many nodes drain");
    snprintf(side->followed[at], FAKE_NAME_BYTES, "%.*s", STR_ARG(on));
    for (size_t i = 0; i < f->count; i++)
        if (fake_is_pod(f->objects[i].collection) &&
            str_eq(str_of(fake_text(f, f->objects[i].collection, f->objects[i].name,
                                    "/spec/nodeName")),
                   on))
            fake_tell_side(side, &f->objects[i], false);
    fake_message m = {.synced = true, .at_ms = f->now_ms + side->delay_ms};
    snprintf(m.node, sizeof m.node, "%.*s", STR_ARG(on));
    assert_true(vec_push(&side->messages, m));
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

/* A JSON patch, as far as "test" and "remove" go. False: a test failed. */
static inline bool fake_json_patch(fake *f, fake_object *o, yyjson_val *patch)
{
    yyjson_mut_doc *doc = yyjson_doc_mut_copy(o->doc, NULL);
    yyjson_arr_iter walk = yyjson_arr_iter_with(patch);
    bool good = true;
    for (yyjson_val *one; good && (one = yyjson_arr_iter_next(&walk));) {
        const char *path = yyjson_get_str(yyjson_obj_get(one, "path"));
        yyjson_val *now = yyjson_doc_ptr_get(o->doc, path);
        if (yyjson_equals_str(yyjson_obj_get(one, "op"), "test"))
            good = yyjson_equals(now, yyjson_obj_get(one, "value"));
        else
            good = yyjson_mut_doc_ptr_remove(doc, path) != NULL;
    }
    if (good)
        fake_store(f, o, doc);
    else
        yyjson_mut_doc_free(doc);
    return good;
}

/* ---- the server ---- */

static inline write_outcome_kind fake_write(fake *f, const kube_write *w, fake_object **ret)
{
    char collection[FAKE_NAME_BYTES], name[FAKE_NAME_BYTES];
    snprintf(collection, sizeof collection, "%.*s", STR_ARG(w->collection));
    snprintf(name, sizeof name, "%.*s", STR_ARG(w->name));
    fake_object *o = *ret = fake_find(f, collection, name);
    if (w->verb == WRITE_READ && f->hides && f->hides(f, name))
        return WRITE_REFUSED;
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
    write_outcome_kind kind = WRITE_DONE;
    char *body = strndup(w->body.ptr ? w->body.ptr : "", w->body.len);
    yyjson_doc *patch = yyjson_read(body, strlen(body), 0);
    if (w->verb == WRITE_EVICT) {
        if (f->refuses && f->refuses(f, name)) {
            yyjson_doc_free(patch);
            (free)(body);
            return WRITE_BLOCKED;
        }
        if (yyjson_arr_size(yyjson_doc_ptr_get(o->doc, "/metadata/finalizers")) > 0) {
            fake_edit(f, collection, name,
                      "{\"metadata\":{\"deletionTimestamp\":\"2026-11-16T07:00:00Z\"}}");
        } else {
            fake_delete(f, collection, name);
            *ret = NULL;
        }
    } else if (w->verb == WRITE_DELETE) {
        fake_delete(f, collection, name);
        *ret = NULL;
    } else if (!o) {
        *ret = fake_create(f, collection, body);
    } else {
        check_msg(patch, "no JSON: %s", body);
        if (w->verb == WRITE_JSON_PATCH && !fake_json_patch(f, o, yyjson_doc_get_root(patch)))
            kind = WRITE_CONFLICT;
        else if (w->verb != WRITE_JSON_PATCH)
            fake_patch(f, o, yyjson_doc_get_root(patch), w->verb == WRITE_STRATEGIC);
        *ret = fake_find(f, collection, name);
    }
    yyjson_doc_free(patch);
    (free)(body);
    return kind;
}

/* The write under way goes on after its sender has given up. */
static inline void fake_keep_late(fake *f, const kube_write *w, int64_t after_ms)
{
    f->late = *w;
    str *texts[] = {&f->late.collection, &f->late.name, &f->late.subresource, &f->late.body,
                    &f->late.version,    &f->late.uid,  &f->late.manager};
    for (size_t i = 0; i < COUNT_OF(texts); i++)
        *texts[i] = arena_str(f->memory, *texts[i]);
    f->late_ms = f->now_ms + after_ms;
}

static inline void fake_log(fake *f, const kube_write *w, const char *end)
{
    buf_addf(&f->log, "%lld %s %.*s/%.*s%s%.*s %s\n", (long long)(f->now_ms - FAKE_START_MS),
             write_method(w->verb), STR_ARG(w->collection), STR_ARG(w->name),
             w->subresource.len > 0 ? "/" : "", STR_ARG(w->subresource), end);
}

static inline void fake_take_effect(fake *f, const kube_write *w)
{
    f->writes++;
    if (f->watch)
        f->watch(f, w);
}

/* Somebody writes something of their own into the object. */
static inline void fake_touch(fake *f, const kube_write *w)
{
    char collection[FAKE_NAME_BYTES], name[FAKE_NAME_BYTES], patch[128];
    snprintf(collection, sizeof collection, "%.*s", STR_ARG(w->collection));
    snprintf(name, sizeof name, "%.*s", STR_ARG(w->name));
    snprintf(patch, sizeof patch, "{\"metadata\":{\"annotations\":{\"somebody\":\"%llu\"}}}",
             (unsigned long long)f->revision);
    if (w->version.len > 0 && fake_find(f, collection, name))
        fake_edit(f, collection, name, patch);
}

static inline write_outcome_kind fake_fault_outcome(const kube_write *w, fake_fault fault,
                                                    write_outcome_kind kind)
{
    switch (fault) {
    case FAULT_NONE:
    case FAULT_KILL:
    case FAULT_CONFLICT: return kind;
    case FAULT_PHANTOM: return w->version.len > 0 ? WRITE_CONFLICT : kind;
    case FAULT_INVALID:
    case FAULT_FORBIDDEN: return WRITE_REFUSED;
    case FAULT_REPEATED:
        if (kind == WRITE_DONE && w->verb == WRITE_CREATE)
            return WRITE_EXISTS;
        return kind == WRITE_DONE && w->version.len > 0 ? WRITE_CONFLICT : kind;
    case FAULT_LOST: return kind == WRITE_DONE ? WRITE_AMBIGUOUS : kind;
    case FAULT_LATE:
    case FAULT_LEGACY: return WRITE_AMBIGUOUS;
    }
    return kind;
}

static inline fake_fault fake_fault_of(fake *f, const kube_write *w)
{
    if (w->verb == WRITE_READ)
        return FAULT_NONE;
    f->sent++;
    if (f->meets)
        return f->meets(f, w);
    return f->sent == f->fault_at ? f->fault : FAULT_NONE;
}

/* A collection, whatever its query chooses. */
static inline yyjson_doc *fake_list(fake *f, str path)
{
    str collection = str_cut(&path, '?');
    yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    yyjson_mut_val *root = yyjson_mut_obj(doc), *items = yyjson_mut_arr(doc);
    yyjson_mut_doc_set_root(doc, root);
    yyjson_mut_obj_add_val(doc, root, "items", items);
    for (size_t i = 0; i < f->count; i++)
        if (str_eq(str_of(f->objects[i].collection), collection))
            yyjson_mut_arr_append(items,
                                  yyjson_val_mut_copy(doc, yyjson_doc_get_root(f->objects[i].doc)));
    yyjson_doc *same = yyjson_mut_doc_imut_copy(doc, NULL);
    yyjson_mut_doc_free(doc);
    return same;
}

static inline const char *fake_job_state(yyjson_val *job)
{
    static const char *const states[] = {"Complete", "Failed", "FailureTarget",
                                         "SuccessCriteriaMet"};
    yyjson_val *conditions = yyjson_obj_get(yyjson_obj_get(job, "status"), "conditions");
    for (size_t i = 0; i < COUNT_OF(states); i++) {
        yyjson_arr_iter walk = yyjson_arr_iter_with(conditions);
        for (yyjson_val *one; (one = yyjson_arr_iter_next(&walk));)
            if (yyjson_equals_str(yyjson_obj_get(one, "type"), states[i]) &&
                yyjson_equals_str(yyjson_obj_get(one, "status"), "True"))
                return states[i];
    }
    return "Running";
}

/* A change of a Job as the operator asks for it: a row of a table. */
static inline yyjson_doc *fake_job_row(yyjson_val *job)
{
    yyjson_val *m = yyjson_obj_get(job, "metadata");
    buf out = BUF(1 << 16);
    buf_addf(&out,
             "{\"kind\":\"Table\",\"metadata\":{\"resourceVersion\":\"%s\"},\"rows\":[{\"cells\":"
             "[\"%s\",\"%s\",\"0/1\",\"\",\"0s\",\"\",\"\","
             "\"batch.kubernetes.io/controller-uid=%s\"],\"object\":null}]}",
             yyjson_get_str(yyjson_obj_get(m, "resourceVersion")),
             yyjson_get_str(yyjson_obj_get(m, "name")), fake_job_state(job),
             yyjson_get_str(yyjson_obj_get(m, "uid")));
    assert_false(out.failed);
    yyjson_doc *doc = yyjson_read(out.ptr, out.len, 0);
    buf_done(&out);
    assert_non_null(doc);
    return doc;
}

static inline bool fake_send(void *context, const kube_write *w, write_handler handler, err *error)
{
    fake_side *side = context;
    fake *f = side->cluster;
    fake_object *o = NULL;
    if (!write_check(w, error)) {
        print_error("%s\n", error->text);
        return false;
    }
    if (side->killed) /* nothing of it reaches the server any more */
        return true;
    fake_fault fault = fake_fault_of(f, w);
    fake_message m = {.is_answer = true, .handler = handler, .at_ms = f->now_ms};
    bool phantom = fault == FAULT_PHANTOM && w->version.len > 0;
    bool now = fault != FAULT_INVALID && fault != FAULT_FORBIDDEN && fault != FAULT_LATE &&
               fault != FAULT_LEGACY && !phantom;
    if (fault == FAULT_CONFLICT)
        fake_touch(f, w);
    write_outcome_kind kind = now ? fake_write(f, w, &o) : WRITE_AMBIGUOUS;
    m.how.kind = fake_fault_outcome(w, fault, kind);
    m.how.status = fault == FAULT_FORBIDDEN ? 403 : fault == FAULT_INVALID ? 422 : 0;
    if (fault == FAULT_FORBIDDEN)
        snprintf(m.how.message, sizeof m.how.message, "%s",
                 f->forbids ? f->forbids
                            : "it is forbidden: User \"drover\" cannot do that to resource \"it\"");
    if (fault == FAULT_LATE || fault == FAULT_LEGACY)
        fake_keep_late(f, w, fault == FAULT_LATE ? FAKE_LATE_MS : FAKE_LEGACY_MS);
    if (m.how.kind == WRITE_BLOCKED)
        snprintf(m.how.budget, sizeof m.how.budget, "keep-it");
    if (m.how.kind == WRITE_DONE && o)
        m.doc = w->row ? fake_job_row(yyjson_doc_get_root(o->doc)) : fake_copy(o->doc);
    if (w->verb == WRITE_READ && w->name.len == 0) {
        m.how.kind = WRITE_DONE;
        m.doc = fake_list(f, w->collection);
    }
    fake_log(f, w, fault != FAULT_NONE ? fake_fault_text(fault) : write_outcome_text(kind));
    assert_true(vec_push(&side->messages, m));
    side->killed |= fault == FAULT_KILL || fault == FAULT_LEGACY;
    if (w->verb != WRITE_READ && kind == WRITE_DONE)
        fake_take_effect(f, w);
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

static inline void fake_deliver_pod(fake_side *side, const fake_message *m)
{
    int64_t now_ms = side->cluster->now_ms;
    str space = str_part(str_of(m->collection), sizeof "/api/v1/namespaces/" - 1, SIZE_MAX);
    space = str_cut(&space, '/');
    if (m->doc)
        assert_true(
            node_shell_pod_seen(side->shell, str_of(m->node), yyjson_doc_get_root(m->doc), now_ms));
    else
        node_shell_pod_gone(side->shell, str_of(m->node), space, str_of(m->name), now_ms);
}

/* Its init containers, or the others: what the first of them says that has not ended well. False:
 * all have. */
static inline bool fake_container_state(yyjson_val *list, bool init, char *out, size_t bytes)
{
    yyjson_arr_iter walk = yyjson_arr_iter_with(list);
    size_t at = 0;
    for (yyjson_val *one; (one = yyjson_arr_iter_next(&walk)); at++) {
        yyjson_val *state = yyjson_obj_get(one, "state");
        yyjson_val *ended = yyjson_obj_get(state, "terminated");
        const char *why = yyjson_get_str(
            yyjson_obj_get(ended ? ended : yyjson_obj_get(state, "waiting"), "reason"));
        if (ended && yyjson_get_sint(yyjson_obj_get(ended, "exitCode")) == 0)
            continue;
        if (init && why && strcmp(why, "PodInitializing") == 0)
            why = NULL;
        if (why)
            snprintf(out, bytes, "%s%s", init ? "Init:" : "", why);
        else if (ended)
            snprintf(out, bytes, "%sExitCode:%lld", init ? "Init:" : "",
                     (long long)yyjson_get_sint(yyjson_obj_get(ended, "exitCode")));
        else if (init)
            snprintf(out, bytes, "Init:%zu/%zu", at, yyjson_arr_size(list));
        return init || why || ended;
    }
    return false;
}

/* As `kubectl get pods` prints it. */
static inline void fake_pod_state(yyjson_val *of, char *out, size_t bytes)
{
    yyjson_val *status = yyjson_obj_get(of, "status");
    const char *phase = yyjson_get_str(yyjson_obj_get(status, "phase"));
    const char *why = yyjson_get_str(yyjson_obj_get(status, "reason"));
    snprintf(out, bytes, "%s", why ? why : phase ? phase : "Pending");
    if (!fake_container_state(yyjson_obj_get(status, "initContainerStatuses"), true, out, bytes))
        fake_container_state(yyjson_obj_get(status, "containerStatuses"), false, out, bytes);
    if (yyjson_obj_get(yyjson_obj_get(of, "metadata"), "deletionTimestamp"))
        snprintf(out, bytes, "Terminating");
}

static inline yyjson_doc *fake_pod_row(yyjson_val *of)
{
    yyjson_val *m = yyjson_obj_get(of, "metadata");
    const char *on = yyjson_get_str(yyjson_obj_get(yyjson_obj_get(of, "spec"), "nodeName"));
    char state[FAKE_NAME_BYTES];
    buf out = BUF(1 << 16);
    fake_pod_state(of, state, sizeof state);
    buf_addf(&out,
             "{\"kind\":\"Table\",\"metadata\":{\"resourceVersion\":\"%s\"},\"rows\":[{\"cells\":"
             "[\"%s\",\"0/1\",\"%s\",0,\"0s\",\"<none>\",\"%s\",\"<none>\",\"<none>\"],"
             "\"object\":null}]}",
             yyjson_get_str(yyjson_obj_get(m, "resourceVersion")),
             yyjson_get_str(yyjson_obj_get(m, "name")), state, on ? on : "<none>");
    assert_false(out.failed);
    yyjson_doc *doc = yyjson_read(out.ptr, out.len, 0);
    buf_done(&out);
    assert_non_null(doc);
    return doc;
}

static inline void fake_deliver_seen(fake_side *side, shell_kind kind, yyjson_val *root)
{
    int64_t now_ms = side->cluster->now_ms;
    bool rows = node_shell_ready(side->shell);
    yyjson_doc *row = rows && kind == SHELL_JOB   ? fake_job_row(root)
                      : rows && kind == SHELL_POD ? fake_pod_row(root)
                                                  : NULL;
    assert_true(node_shell_seen(side->shell, kind, row ? yyjson_doc_get_root(row) : root, now_ms));
    yyjson_doc_free(row);
}

static inline void fake_deliver_one(fake_side *side, fake_message m)
{
    shell_kind kind;
    int64_t now_ms = side->cluster->now_ms;
    yyjson_val *root = m.doc ? yyjson_doc_get_root(m.doc) : NULL;
    if (m.synced)
        node_shell_pods_synced(side->shell, str_of(m.node));
    else if (!m.is_answer && fake_is_pod(m.collection) && fake_follows(side, m.node))
        fake_deliver_pod(side, &m);
    if (m.synced)
        return;
    if (m.is_answer)
        m.handler.done(m.handler.context, &m.how, root);
    else if (fake_kind(m.collection, &kind) && root)
        fake_deliver_seen(side, kind, root);
    else if (fake_kind(m.collection, &kind))
        node_shell_gone(side->shell, kind, STR_EMPTY, str_of(m.name), now_ms);
    yyjson_doc_free(m.doc);
}

static inline void fake_deliver(fake_side *side)
{
    const fake *f = side->cluster;
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < side->messages.len; i++) {
            fake_message m = side->messages.at[i];
            if (m.at_ms > f->now_ms || m.is_answer != ((pass == 0) != f->answers_last))
                continue;
            memmove(&side->messages.at[i], &side->messages.at[i + 1],
                    (side->messages.len - i - 1) * sizeof m);
            side->messages.len--;
            i--;
            fake_deliver_one(side, m);
        }
}

static inline void fake_end_side(fake_side *side)
{
    for (size_t i = 0; i < side->messages.len; i++)
        yyjson_doc_free(side->messages.at[i].doc);
    side->messages.len = 0;
    side->killed = false;
    memset(side->followed, 0, sizeof side->followed);
    side->told = false;
    side->shell = node_shell_free(side->shell);
}

static inline void fake_event(void *context, const kube_event *e)
{
    const fake_side *side = context;
    buf_addf(&side->cluster->told, "%.*s %.*s %.*s: %.*s\n", STR_ARG(e->kind), STR_ARG(e->name),
             STR_ARG(e->reason), STR_ARG(e->message));
}

/* Tells a shell of all that there is of these kinds, and that this is all. */
static inline void fake_list_kinds(fake_side *side, shell_kind first, shell_kind last)
{
    const fake *f = side->cluster;
    shell_kind kind;
    for (size_t i = 0; i < f->count; i++)
        if (fake_kind(f->objects[i].collection, &kind) && kind >= first && kind <= last)
            fake_tell_side(side, &f->objects[i], false);
    fake_deliver(side);
    for (int of = first; of <= (int)last; of++)
        node_shell_synced(side->shell, (shell_kind)of);
}

/* Jobs and pods are told when the shell has read what the others remember. */
static inline void fake_tell_more(fake_side *side)
{
    int64_t delay_ms = side->delay_ms;
    if (side->told || !node_shell_restored(side->shell))
        return;
    side->told = true;
    side->delay_ms = 0; /* lists are as new as anything */
    fake_list_kinds(side, SHELL_JOB, SHELL_POD);
    side->delay_ms = delay_ms;
}

/* A shell that knows nothing but what the objects say. */
static inline void fake_start_side(fake *f, size_t which)
{
    err error;
    fake_side *side = &f->sides[which];
    fake_end_side(side);
    side->cluster = f;
    side->begun++;
    snprintf(side->identity, sizeof side->identity, "%zu-%zu", which, side->begun);
    shell_settings settings = f->settings;
    settings.identity = str_of(side->identity);
    side->shell =
        node_shell_new(&settings, (api){side, fake_send, fake_follow, fake_event, NULL}, &error);
    assert_non_null(side->shell);
    f->shell = f->sides[0].shell;
    int64_t delay_ms = side->delay_ms;
    side->delay_ms = 0; /* lists are as new as anything */
    fake_list_kinds(side, SHELL_NODE, SHELL_SKYHOOK);
    assert_true(node_shell_turn(side->shell, f->now_ms));
    side->delay_ms = delay_ms;
    fake_tell_more(side);
}

static inline void fake_start(fake *f)
{
    fake_start_side(f, 0);
}

/* ---- players ---- */

/* The node goes down, which may be seen, and comes back with another boot. */
static inline void fake_reboot(fake *f, const char *on, bool seen)
{
    char text[256];
    if (seen)
        fake_edit(f, FAKE_NODES, on,
                  "{\"status\":{\"conditions\":[{\"type\":\"Ready\",\"status\":\"Unknown\"}]}}");
    for (size_t i = 0; i < FAKE_SIDES; i++)
        if (f->sides[i].shell)
            fake_deliver(&f->sides[i]);
    snprintf(text, sizeof text,
             "{\"status\":{\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}],"
             "\"nodeInfo\":{\"bootID\":\"again-%llu\"}}}",
             (unsigned long long)f->revision);
    fake_edit(f, FAKE_NODES, on, text);
}

/* Whether the agent of this Job asks for a reboot: it does so once for each piece of work. */
static inline bool fake_asks(fake *f, const fake_object *o)
{
    const char *data = fake_text(f, FAKE_JOBS, o->name, "/spec/template/spec/containers/0/args/3");
    buf key = BUF(1024);
    buf_addf(
        &key, "%s %s %s", fake_text(f, FAKE_JOBS, o->name, "/spec/template/spec/nodeName"),
        fake_text(f, FAKE_JOBS, o->name, "/metadata/labels/skyhook.nvidia.com~1resource-id"),
        fake_text(f, FAKE_JOBS, o->name, "/metadata/annotations/skyhook.nvidia.com~1resource-id"));
    bool asks = strcmp(data, FAKE_REBOOT) == 0;
    for (size_t i = 0; asks && i < f->rebooted.len; i++)
        asks = !str_eq(str_of(f->rebooted.at[i]), buf_str(&key));
    if (asks) {
        buf_addc(&key, '\0');
        assert_true(vec_push(&f->rebooted, arena_str(f->memory, buf_str(&key)).ptr));
    }
    buf_done(&key);
    return asks;
}

static inline void fake_job_ends(fake *f, fake_object *o)
{
    const char *on = fake_text(f, FAKE_JOBS, o->name, "/spec/template/spec/nodeName");
    o->ends_ms = REASON_NEVER;
    if (o->failing) {
        fake_edit(f, FAKE_JOBS, o->name,
                  "{\"status\":{\"conditions\":[{\"type\":\"FailureTarget\",\"status\":\"True\","
                  "\"reason\":\"DeadlineExceeded\"},{\"type\":\"Failed\",\"status\":\"True\","
                  "\"reason\":\"DeadlineExceeded\"}]}}");
        return;
    }
    bool reboots = f->reboots && f->reboots(f, o->name);
    bool fails = reboots || (f->fails && f->fails(f, o->name));
    if (fake_asks(f, o) && (reboots || !fails)) {
        char name[FAKE_NAME_BYTES], job[FAKE_NAME_BYTES];
        snprintf(name, sizeof name, "%s", on);
        snprintf(job, sizeof job, "%s", o->name);
        fake_reboot(f, name, reboots);
        o = fake_find(f, FAKE_JOBS, job); /* what a shell deletes meanwhile moves others */
        if (!o)
            return;
    }
    o->failing = fails;
    if (fails)
        o->ends_ms = f->now_ms + FAKE_FAILING_MS;
    fake_edit(f, FAKE_JOBS, o->name,
              fails
                  ? "{\"status\":{\"conditions\":[{\"type\":\"FailureTarget\",\"status\":"
                    "\"True\",\"reason\":\"DeadlineExceeded\"}]}}"
                  : "{\"status\":{\"conditions\":[{\"type\":\"Complete\",\"status\":\"True\"}]}}");
}

static inline int64_t fake_sooner(int64_t a, int64_t b)
{
    return a == REASON_NEVER || (b != REASON_NEVER && b < a) ? b : a;
}

static inline int64_t fake_next_ms(const fake *f)
{
    int64_t next = f->late_ms;
    for (size_t i = 0; i < f->count; i++)
        next = fake_sooner(next, f->objects[i].ends_ms);
    for (size_t i = 0; i < FAKE_SIDES; i++) {
        const fake_side *side = &f->sides[i];
        if (!side->shell)
            continue;
        next = fake_sooner(next, node_shell_next_ms(side->shell));
        for (size_t k = 0; k < side->messages.len; k++)
            next = fake_sooner(next, side->messages.at[k].at_ms);
    }
    return next;
}

/* What Kubernetes does after a cordon, a while later. */
static inline void fake_show_cordon(fake *f, fake_object *o)
{
    o->ends_ms = REASON_NEVER;
    fake_edit(f, o->collection, o->name,
              yyjson_get_bool(yyjson_doc_ptr_get(o->doc, "/spec/unschedulable"))
                  ? "{\"spec\":{\"taints\":[{\"key\":\"node.kubernetes.io/unschedulable\","
                    "\"effect\":\"NoSchedule\"}]}}"
                  : "{\"spec\":{\"taints\":null}}");
}

/* What falls due by time, of the server and of the players. */
static inline void fake_due(fake *f)
{
    if (f->late_ms != REASON_NEVER && f->late_ms <= f->now_ms) {
        fake_object *o = NULL;
        f->late_ms = REASON_NEVER;
        write_outcome_kind kind = fake_write(f, &f->late, &o);
        fake_log(f, &f->late, kind == WRITE_DONE ? "takes effect late" : "is too late");
        if (kind == WRITE_DONE)
            fake_take_effect(f, &f->late);
    }
    for (size_t i = 0; i < f->count; i++)
        if (f->objects[i].ends_ms != REASON_NEVER && f->objects[i].ends_ms <= f->now_ms)
            strcmp(f->objects[i].collection, FAKE_NODES) == 0 ? fake_show_cordon(f, &f->objects[i])
                                                              : fake_job_ends(f, &f->objects[i]);
}

/* Returns whether the shell, if there is one, has anything to do at this time. */
static inline bool fake_turn(fake *f, size_t which)
{
    fake_side *side = &f->sides[which];
    if (!side->shell)
        return false;
    fake_deliver(side);
    assert_true(node_shell_turn(side->shell, f->now_ms));
    fake_tell_more(side);
    if (side->killed || node_shell_stale(side->shell)) {
        fake_start_side(f, which);
        return true;
    }
    bool heard = false;
    for (size_t i = 0; i < side->messages.len; i++)
        heard |= side->messages.at[i].at_ms <= f->now_ms;
    return heard || node_shell_is_due(side->shell);
}

/* Runs for so long, or (negative) until nothing is due any more. Restarts a shell when it dies. */
static inline void fake_run(fake *f, int64_t for_ms)
{
    int64_t end = f->now_ms + for_ms;
    for (int turns = 0;; turns++) {
        check_msg(turns < 20000, "no end in sight\n%s",
                  f->log.len > 4000 ? f->log.ptr + f->log.len - 4000 : f->log.ptr);
        bool busy = false;
        for (size_t i = 0; i < FAKE_SIDES; i++)
            busy |= fake_turn(f, i);
        if (busy)
            continue;
        int64_t next = fake_next_ms(f);
        if (next == REASON_NEVER || (for_ms >= 0 && next > end))
            break;
        if (next > f->now_ms)
            f->now_ms = next;
        fake_due(f);
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
    f->late_ms = REASON_NEVER;
    f->memory = arena_new(0);
    assert_non_null(f->memory);
    f->log = BUF(64u << 20);
    f->told = BUF(64u << 20);
    return f;
}

static inline void fake_free(fake *f)
{
    for (size_t i = 0; i < FAKE_SIDES; i++) {
        fake_end_side(&f->sides[i]);
        vec_done(&f->sides[i].messages);
    }
    for (size_t i = 0; i < f->count; i++)
        yyjson_doc_free(f->objects[i].doc);
    vec_done(&f->rebooted);
    arena_free(f->memory);
    buf_done(&f->log);
    buf_done(&f->told);
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
