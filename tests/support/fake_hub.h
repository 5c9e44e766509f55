/* SPDX-License-Identifier: Apache-2.0 */
/* fake_hub.h - a hub's API server in memory, with players for agents, around a cluster shell.
 *
 * Objects have versions, writes their preconditions, and every change is told to the shell in the
 * order the test wants. An agent answers a new version after a while, as the test arranges. Time is
 * the test's. Nothing here knows a rule of the operator's: only what a server and an agent do. */
#ifndef DROVER_TESTS_SUPPORT_FAKE_HUB_H
#define DROVER_TESTS_SUPPORT_FAKE_HUB_H

#include "base/base64.h"
#include "base/vec.h"
#include "engine/fleet_names.h"
#include "operator/cluster_shell.h"

#define FAKE_OBJECTS_MAX 512
#define FAKE_NAME_BYTES 320
#define FAKE_START_MS INT64_C(1763272800000)
#define FAKE_SPACE "fleet-default"
#define FAKE_IN(plural) HUB_API "/namespaces/" FAKE_SPACE "/" plural
#define FAKE_BUNDLES FAKE_IN("bundles")
#define FAKE_CLUSTERS FAKE_IN("clusters")
#define FAKE_GROUPS FAKE_IN("clustergroups")
#define FAKE_REPOS FAKE_IN("gitrepos")
#define FAKE_NAMESPACES "/api/v1/namespaces"

typedef struct fake_object {
    char collection[FAKE_NAME_BYTES];
    char name[FAKE_NAME_BYTES];
    yyjson_doc *doc;
    int64_t answers_ms;         /* a BundleDeployment: when its agent answers */
    char seen[FAKE_NAME_BYTES]; /* the version that it saw */
} fake_object;

typedef struct fake_message {
    bool is_answer;
    char collection[FAKE_NAME_BYTES];
    char name[FAKE_NAME_BYTES];
    write_handler handler;
    write_outcome how;
    yyjson_doc *doc; /* NULL: it is gone, or there is none */
} fake_message;

/* What the server answers instead of doing it. */
typedef struct fake_trouble {
    bool is;
    write_outcome_kind kind;
    bool took_effect; /* all the same: of WRITE_AMBIGUOUS */
} fake_trouble;

/* A delete that is on its way for long. */
typedef struct fake_late {
    bool waits;
    char collection[FAKE_NAME_BYTES], name[FAKE_NAME_BYTES], version[32];
    write_handler handler;
} fake_late;

/* What an agent makes of a version. */
typedef enum fake_agent { AGENT_WELL, AGENT_FAILS, AGENT_SILENT } fake_agent;

typedef struct fake fake;
struct fake {
    cluster_shell *shell;
    hub_settings settings;
    int64_t now_ms;
    uint64_t revision, uids;
    fake_object objects[FAKE_OBJECTS_MAX];
    size_t count;
    VEC(fake_message) messages;
    int64_t agent_ms; /* how long an agent takes */
    fake_agent (*agent)(fake *f, const char *collection, const char *live);
    void (*watch)(fake *f, const kube_write *w); /* after every write that took effect */
    void (*meanwhile)(fake *f);                  /* while the shell is dead; once */
    fake_trouble (*trouble)(fake *f, const kube_write *w);
    bool (*is_late)(fake *f, const kube_write *w); /* of a delete; one at a time */
    fake_late late;                                /* until fake_arrive */
    uint64_t writes;
    uint64_t kill_at; /* the shell dies right after so many of them; 0: never */
    bool killed, answers_last;
    bool follows_namespaces, holds_namespaces; /* holds: they cannot be listed yet */
    uint64_t conflicts;
    yyjson_doc *ended; /* what went with its last finalizer, for the answer */
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

static inline bool fake_is(const char *collection, const char *plural)
{
    size_t len = strlen(collection), tail = strlen(plural);
    return len > tail && collection[len - tail - 1] == '/' &&
           strcmp(collection + len - tail, plural) == 0;
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
    assert_true(vec_push(&f->messages, m));
}

/* An agent sees what it is to run. */
static inline void fake_agent_sees(fake *f, fake_object *o)
{
    if (!fake_is(o->collection, "bundledeployments"))
        return;
    const char *live = fake_text(f, o->collection, o->name, "/spec/deploymentID");
    bool paused = yyjson_get_bool(fake_get(f, o->collection, o->name, "/spec/paused"));
    if (paused || strcmp(live, o->seen) == 0)
        return;
    snprintf(o->seen, sizeof o->seen, "%s", live);
    o->answers_ms = f->now_ms + f->agent_ms;
}

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
    fake_agent_sees(f, o);
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
    *o = (fake_object){.answers_ms = REASON_NEVER};
    snprintf(o->collection, sizeof o->collection, "%s", collection);
    const char *name = yyjson_mut_get_str(yyjson_mut_obj_get(meta, "name"));
    check_msg(name, "no name: %s", json);
    snprintf(o->name, sizeof o->name, "%s", name ? name : "");
    char uid[64];
    snprintf(uid, sizeof uid, "uid-%llu", (unsigned long long)++f->uids);
    yyjson_mut_obj_add_strcpy(mut, meta, "uid", uid);
    yyjson_mut_obj_add_int(mut, meta, "generation", 1);
    if (!yyjson_mut_obj_get(meta, "creationTimestamp"))
        yyjson_mut_obj_add_strcpy(mut, meta, "creationTimestamp", "2026-11-16T06:00:00Z");
    fake_store(f, o, mut);
    return o;
}

/* What it owned goes with it, as by Kubernetes' garbage collector. */
static inline void fake_collect(fake *f, const char *uid)
{
    for (size_t i = 0; i < f->count; i++) {
        fake_object *o = &f->objects[i];
        yyjson_val *owner = yyjson_doc_ptr_get(o->doc, "/metadata/ownerReferences/0/uid");
        if (!owner || !yyjson_equals_str(owner, uid))
            continue;
        fake_tell(f, o, true);
        yyjson_doc_free(o->doc);
        *o = f->objects[--f->count];
        i--;
    }
}

static inline void fake_remove(fake *f, fake_object *o)
{
    char uid[64];
    snprintf(uid, sizeof uid, "%s", yyjson_get_str(yyjson_doc_ptr_get(o->doc, "/metadata/uid")));
    fake_tell(f, o, true);
    yyjson_doc_free(o->doc);
    *o = f->objects[--f->count];
    fake_collect(f, uid);
}

/* What changes the spec changes the generation; what is deleted goes with its last finalizer. */
static inline void fake_changed(fake *f, fake_object *o, yyjson_mut_doc *doc)
{
    yyjson_doc *made = yyjson_mut_doc_imut_copy(doc, NULL);
    bool same = yyjson_equals(yyjson_doc_get_root(made), yyjson_doc_get_root(o->doc));
    yyjson_val *before = yyjson_doc_ptr_get(o->doc, "/spec");
    yyjson_val *after = yyjson_doc_ptr_get(made, "/spec");
    bool news = (before || after) && !(before && after && yyjson_equals(before, after));
    yyjson_doc_free(made);
    if (same) {
        yyjson_mut_doc_free(doc);
        return;
    }
    if (news) {
        yyjson_mut_val *meta = yyjson_mut_doc_ptr_get(doc, "/metadata");
        int64_t generation = yyjson_mut_get_sint(yyjson_mut_obj_get(meta, "generation"));
        yyjson_mut_obj_remove_key(meta, "generation");
        yyjson_mut_obj_add_int(doc, meta, "generation", generation + 1);
    }
    fake_store(f, o, doc);
    if (yyjson_doc_ptr_get(o->doc, "/metadata/deletionTimestamp") &&
        yyjson_arr_size(yyjson_doc_ptr_get(o->doc, "/metadata/finalizers")) == 0) {
        yyjson_doc_free(f->ended);
        f->ended = fake_copy(o->doc);
        fake_remove(f, o);
    }
}

static inline void fake_merge(fake *f, fake_object *o, yyjson_val *patch)
{
    yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    yyjson_mut_doc *whole = yyjson_doc_mut_copy(o->doc, NULL);
    yyjson_mut_val *to = yyjson_val_mut_copy(doc, patch);
    yyjson_mut_obj_remove_key(yyjson_mut_obj_get(to, "metadata"), "resourceVersion");
    yyjson_mut_val *merged = yyjson_mut_merge_patch(doc, yyjson_mut_doc_get_root(whole), to);
    yyjson_mut_doc_set_root(doc, merged);
    yyjson_mut_doc_free(whole);
    fake_changed(f, o, doc);
}

static inline void fake_json_patch(fake *f, fake_object *o, yyjson_val *patch)
{
    yyjson_mut_doc *doc = yyjson_doc_mut_copy(o->doc, NULL);
    size_t i, max;
    yyjson_val *one;
    yyjson_arr_foreach(patch, i, max, one)
    {
        const char *path = yyjson_get_str(yyjson_obj_get(one, "path"));
        assert_true(yyjson_equals_str(yyjson_obj_get(one, "op"), "add"));
        yyjson_mut_val *value = yyjson_val_mut_copy(doc, yyjson_obj_get(one, "value"));
        assert_true(yyjson_mut_doc_ptr_set(doc, path, value));
    }
    fake_changed(f, o, doc);
}

/* A person's edit: a merge patch as text. */
static inline void fake_edit(fake *f, const char *collection, const char *name, const char *patch)
{
    yyjson_doc *doc = yyjson_read(patch, strlen(patch), 0);
    check_msg(doc, "no JSON: %s", patch);
    fake_object *o = fake_find(f, collection, name);
    check_msg(o, "no %s", name);
    fake_merge(f, o, yyjson_doc_get_root(doc));
    yyjson_doc_free(doc);
}

/* A person's delete: what has finalizers only says that it is deleted. */
static inline void fake_delete(fake *f, const char *collection, const char *name)
{
    fake_object *o = fake_find(f, collection, name);
    check_msg(o, "no %s", name);
    if (yyjson_arr_size(yyjson_doc_ptr_get(o->doc, "/metadata/finalizers")) > 0)
        fake_edit(f, collection, name,
                  "{\"metadata\":{\"deletionTimestamp\":\"2026-11-16T07:00:00Z\"}}");
    else
        fake_remove(f, o);
}

/* ---- the server ---- */

/* Nothing is created in a namespace that is not there. */
static inline bool fake_has_space(fake *f, const kube_write *w)
{
    char name[FAKE_NAME_BYTES];
    size_t at = str_find(w->collection, STR("/namespaces/"));
    if (at == SIZE_MAX)
        return true;
    str space = str_part(w->collection, at + sizeof "/namespaces/" - 1, SIZE_MAX);
    space = str_cut(&space, '/');
    snprintf(name, sizeof name, "%.*s", STR_ARG(space));
    return fake_find(f, FAKE_NAMESPACES, name) != NULL;
}

/* The type of a Secret cannot be changed. */
static inline bool fake_same_type(const fake_object *o, str body)
{
    yyjson_doc *doc = yyjson_read(body.ptr, body.len, 0);
    yyjson_val *before = yyjson_doc_ptr_get(o->doc, "/type");
    yyjson_val *after = yyjson_doc_ptr_get(doc, "/type");
    bool same = !before || !after || yyjson_equals(before, after);
    yyjson_doc_free(doc);
    return same;
}

static inline write_outcome_kind fake_write(fake *f, const kube_write *w, fake_object **ret)
{
    char collection[FAKE_NAME_BYTES], name[FAKE_NAME_BYTES];
    snprintf(collection, sizeof collection, "%.*s", STR_ARG(w->collection));
    snprintf(name, sizeof name, "%.*s", STR_ARG(w->name));
    fake_object *o = *ret = fake_find(f, collection, name);
    bool creates = w->verb == WRITE_CREATE || w->verb == WRITE_APPLY;
    if (!o && !creates)
        return WRITE_GONE;
    if (!o && !fake_has_space(f, w))
        return w->verb == WRITE_CREATE ? WRITE_REFUSED : WRITE_GONE;
    if (o && w->verb == WRITE_CREATE)
        return WRITE_EXISTS;
    const char *present =
        o ? yyjson_get_str(yyjson_doc_ptr_get(o->doc, "/metadata/resourceVersion")) : "";
    if (w->version.len > 0 && !str_eq(w->version, str_of(present))) {
        f->conflicts++;
        return WRITE_CONFLICT;
    }
    if (w->verb == WRITE_READ)
        return WRITE_DONE;
    if (o && w->verb == WRITE_APPLY && !fake_same_type(o, w->body))
        return WRITE_REFUSED;
    char *body = strndup(w->body.ptr ? w->body.ptr : "", w->body.len);
    yyjson_doc *patch = yyjson_read(body, strlen(body), 0);
    if (w->verb == WRITE_DELETE) {
        fake_delete(f, collection, name);
        *ret = NULL;
    } else if (!o) {
        *ret = fake_create(f, collection, body);
    } else {
        check_msg(patch, "no JSON: %s", body);
        if (w->verb == WRITE_JSON_PATCH)
            fake_json_patch(f, o, yyjson_doc_get_root(patch));
        else
            fake_merge(f, o, yyjson_doc_get_root(patch));
        *ret = fake_find(f, collection, name);
    }
    yyjson_doc_free(patch);
    (free)(body);
    return WRITE_DONE;
}

/* An answer that says no more than that the object has this version now. */
static inline yyjson_doc *fake_row(const fake_object *o)
{
    char text[1024];
    snprintf(text, sizeof text,
             "{\"kind\":\"Table\",\"metadata\":{\"resourceVersion\":\"%s\"},\"rows\":[{\"cells\":"
             "[\"%s\"],\"object\":null}]}",
             yyjson_get_str(yyjson_doc_ptr_get(o->doc, "/metadata/resourceVersion")), o->name);
    yyjson_doc *doc = yyjson_read(text, strlen(text), 0);
    assert_non_null(doc);
    return doc;
}

static inline void fake_say(fake *f, const kube_write *w, write_outcome *how)
{
    static const char *const words[] = {
#define X(outcome, text) text,
        WRITE_OUTCOMES(X)
#undef X
    };
    if (how->kind == WRITE_REFUSED && w->verb == WRITE_CREATE && !fake_has_space(f, w)) {
        how->status = 404;
        snprintf(how->message, sizeof how->message, "namespaces not found");
    } else if (how->kind == WRITE_REFUSED && w->verb == WRITE_APPLY) {
        snprintf(how->message, sizeof how->message, "type: field is immutable");
    } else if (how->kind != WRITE_DONE) {
        snprintf(how->message, sizeof how->message, "the server says %s", words[how->kind]);
    }
}

static inline bool fake_comes_late(fake *f, const kube_write *w, write_handler handler)
{
    fake_late *l = &f->late;
    if (w->verb != WRITE_DELETE || l->waits || !f->is_late || !f->is_late(f, w))
        return false;
    *l = (fake_late){.waits = true, .handler = handler};
    snprintf(l->collection, sizeof l->collection, "%.*s", STR_ARG(w->collection));
    snprintf(l->name, sizeof l->name, "%.*s", STR_ARG(w->name));
    snprintf(l->version, sizeof l->version, "%.*s", STR_ARG(w->version));
    return true;
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
    if (fake_comes_late(f, w, handler))
        return true;
    fake_message m = {.is_answer = true, .handler = handler};
    fake_trouble trouble = f->trouble ? f->trouble(f, w) : (fake_trouble){0};
    if (!trouble.is || trouble.took_effect)
        m.how.kind = fake_write(f, w, &o);
    if (trouble.is)
        m.how.kind = trouble.kind;
    fake_say(f, w, &m.how);
    if (m.how.kind == WRITE_DONE && o)
        m.doc = w->row ? fake_row(o) : fake_copy(o->doc);
    if (m.how.kind == WRITE_DONE && !o && w->verb != WRITE_DELETE)
        m.doc = fake_copy(f->ended);
    buf_addf(&f->log, "%lld %s %.*s/%.*s%s%.*s %s\n", (long long)(f->now_ms - FAKE_START_MS),
             write_method(w->verb), STR_ARG(w->collection), STR_ARG(w->name),
             w->subresource.len > 0 ? "/" : "", STR_ARG(w->subresource),
             write_outcome_text(m.how.kind));
    assert_true(vec_push(&f->messages, m));
    if (m.how.kind != WRITE_DONE || w->verb == WRITE_READ)
        return true;
    f->writes++;
    if (f->watch)
        f->watch(f, w);
    f->killed = f->kill_at > 0 && f->writes == f->kill_at;
    return true;
}

/* What was on its way arrives now. */
static inline void fake_arrive(fake *f)
{
    err error;
    fake_late l = f->late;
    kube_write w = {.verb = WRITE_DELETE,
                    .collection = str_of(l.collection),
                    .name = str_of(l.name),
                    .version = str_of(l.version)};
    assert_true(l.waits);
    f->is_late = NULL;
    f->late.waits = false;
    assert_true(fake_send(f, &w, l.handler, &error));
}

/* ---- telling ---- */

static inline bool fake_kind(const char *collection, hub_kind *ret)
{
    static const char *const plurals[] = {
#define X(kind, plural) plural,
        HUB_KINDS(X)
#undef X
    };
    for (size_t i = 0; i < COUNT_OF(plurals); i++)
        if (fake_is(collection, plurals[i])) {
            *ret = (hub_kind)i;
            return true;
        }
    return false;
}

static inline void fake_deliver_one(fake *f, fake_message m)
{
    hub_kind kind = HUB_GROUP;
    yyjson_val *root = m.doc ? yyjson_doc_get_root(m.doc) : NULL;
    bool told = fake_kind(m.collection, &kind) && (kind != HUB_NAMESPACE || f->follows_namespaces);
    str space = str_of(m.collection);
    size_t at = str_find(space, STR("/namespaces/"));
    space = at == SIZE_MAX ? STR_EMPTY : str_part(space, at + sizeof "/namespaces/" - 1, SIZE_MAX);
    if (m.is_answer)
        m.handler.done(m.handler.context, &m.how, root);
    else if (told && root)
        assert_true(cluster_shell_seen(f->shell, kind, root, f->now_ms));
    else if (told)
        cluster_shell_gone(f->shell, kind, str_cut(&space, '/'), str_of(m.name), f->now_ms);
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

static inline int fake_by_name(const void *a, const void *b)
{
    const fake_object *x = *(fake_object *const *)a, *y = *(fake_object *const *)b;
    int order = strcmp(x->collection, y->collection);
    return order ? order : strcmp(x->name, y->name);
}

/* In the order of the names, as a server lists them. */
static inline void fake_list(fake *f, hub_kind kind)
{
    static fake_object *found[FAKE_OBJECTS_MAX];
    size_t count = 0;
    for (size_t i = 0; i < f->count; i++) {
        hub_kind of;
        if (fake_kind(f->objects[i].collection, &of) && of == kind)
            found[count++] = &f->objects[i];
    }
    if (count > 1)
        qsort(found, count, sizeof found[0], fake_by_name);
    for (size_t i = 0; i < count; i++)
        fake_tell(f, found[i], false);
    fake_deliver(f);
    cluster_shell_synced(f->shell, kind);
}

/* Namespaces are followed while they are wanted. */
static inline void fake_follow_namespaces(fake *f)
{
    bool wanted = cluster_shell_wants_namespaces(f->shell) && !f->holds_namespaces;
    if (wanted == f->follows_namespaces)
        return;
    f->follows_namespaces = wanted;
    if (wanted)
        fake_list(f, HUB_NAMESPACE);
    else
        cluster_shell_unfollowed(f->shell, HUB_NAMESPACE);
}

/* A shell that knows nothing but what the objects say. */
static inline void fake_start(fake *f)
{
    err error;
    for (size_t i = 0; i < f->messages.len; i++)
        yyjson_doc_free(f->messages.at[i].doc);
    f->messages.len = 0;
    f->killed = false;
    f->shell = cluster_shell_free(f->shell);
    f->shell = cluster_shell_new(&f->settings, (hub_api){f, fake_send, NULL}, &error);
    assert_non_null(f->shell);
    f->follows_namespaces = false;
    for (int kind = 0; kind < HUB_NAMESPACE; kind++)
        fake_list(f, (hub_kind)kind);
}

/* ---- agents ---- */

static inline str fake_data(fake *f, arena *a, const char *collection, const char *name,
                            const char *pointer)
{
    buf text = BUF(1u << 20);
    base64_decode(str_of(fake_text(f, collection, name, pointer)), &text);
    str made = arena_str(a, buf_str(&text));
    buf_done(&text);
    return made;
}

/* Whether the Secret beside a deployment has the values that it is said to have. */
static inline bool fake_has_values(fake *f, const char *home, const char *name)
{
    char secrets[FAKE_NAME_BYTES];
    const char *wanted = fake_text(f, home, name, "/spec/valuesHash");
    str rest = str_part(str_of(home), sizeof HUB_API "/namespaces/" - 1, SIZE_MAX);
    str space = str_cut(&rest, '/');
    snprintf(secrets, sizeof secrets, "/api/v1/namespaces/%.*s/secrets", STR_ARG(space));
    arena *a = arena_new(0);
    str values = fake_data(f, a, secrets, name, "/data/values");
    str found = values_hash(a, values, fake_data(f, a, secrets, name, "/data/stagedValues"));
    bool same = str_eq(found, str_of(wanted));
    arena_free(a);
    return same;
}

static inline void fake_agent_answers(fake *f, fake_object *o)
{
    char patch[1024];
    fake_agent how = f->agent ? f->agent(f, o->collection, o->seen) : AGENT_WELL;
    if (!fake_has_values(f, o->collection, o->name)) {
        o->answers_ms = f->now_ms + 100; /* it says nothing, and looks again */
        return;
    }
    o->answers_ms = REASON_NEVER;
    if (how == AGENT_WELL)
        snprintf(patch, sizeof patch,
                 "{\"status\":{\"appliedDeploymentID\":\"%s\",\"ready\":true,\"nonModified\":true,"
                 "\"resourceCounts\":{\"ready\":1,\"desiredReady\":1},"
                 "\"conditions\":[{\"type\":\"Deployed\",\"status\":\"True\"}]}}",
                 o->seen);
    else
        snprintf(patch, sizeof patch,
                 "{\"status\":{\"ready\":false,\"conditions\":[{\"type\":\"Deployed\",\"status\":"
                 "\"False\",\"message\":\"no such chart %lld\"}]}}",
                 (long long)f->now_ms);
    if (how != AGENT_SILENT)
        fake_edit(f, o->collection, o->name, patch);
}

static inline int64_t fake_next_ms(const fake *f)
{
    int64_t next = cluster_shell_next_ms(f->shell);
    for (size_t i = 0; i < f->count; i++)
        if (f->objects[i].answers_ms != REASON_NEVER &&
            (next == REASON_NEVER || f->objects[i].answers_ms < next))
            next = f->objects[i].answers_ms;
    return next;
}

/* Runs for so long, or (negative) until nothing is due any more. Restarts the shell when it dies.
 */
static inline void fake_run(fake *f, int64_t for_ms)
{
    int64_t end = f->now_ms + for_ms;
    for (int turns = 0;; turns++) {
        check_msg(turns < 20000, "no end in sight\n%s", f->log.ptr);
        fake_deliver(f);
        fake_follow_namespaces(f);
        assert_true(cluster_shell_turn(f->shell, f->now_ms));
        if (f->killed) {
            f->kill_at = 0;
            if (f->meanwhile)
                f->meanwhile(f);
            fake_start(f);
            continue;
        }
        if (f->messages.len > 0 || cluster_shell_is_due(f->shell))
            continue;
        int64_t next = fake_next_ms(f);
        if (next == REASON_NEVER || (for_ms >= 0 && next > end))
            break;
        if (next > f->now_ms)
            f->now_ms = next;
        for (size_t i = 0; i < f->count; i++)
            if (f->objects[i].answers_ms != REASON_NEVER && f->objects[i].answers_ms <= f->now_ms)
                fake_agent_answers(f, &f->objects[i]);
    }
    if (for_ms >= 0)
        f->now_ms = end;
}

static inline fake *fake_new(void)
{
    fake *f = test_calloc(1, sizeof *f);
    f->now_ms = FAKE_START_MS;
    f->agent_ms = 1000;
    f->log = BUF(64u << 20);
    return f;
}

static inline void fake_free(fake *f)
{
    f->shell = cluster_shell_free(f->shell);
    for (size_t i = 0; i < f->messages.len; i++)
        yyjson_doc_free(f->messages.at[i].doc);
    for (size_t i = 0; i < f->count; i++)
        yyjson_doc_free(f->objects[i].doc);
    yyjson_doc_free(f->ended);
    vec_done(&f->messages);
    buf_done(&f->log);
    test_free(f);
}

/* Clusters whose namespace is there already: ns-NAME. */
static inline void fake_add_cluster(fake *f, const char *name, const char *labels)
{
    char text[512];
    snprintf(text, sizeof text, "{\"metadata\":{\"name\":\"ns-%s\"}}", name);
    fake_create(f, FAKE_NAMESPACES, text);
    snprintf(text, sizeof text,
             "{\"metadata\":{\"name\":\"%s\",\"namespace\":\"" FAKE_SPACE
             "\",\"labels\":{%s}},\"spec\":{},\"status\":{\"namespace\":\"ns-%s\",\"agent\":"
             "{\"lastSeen\":\"2026-11-16T06:00:00Z\"}}}",
             name, labels, name);
    fake_create(f, FAKE_CLUSTERS, text);
}

static inline const char *fake_home(const char *of, char ret[FAKE_NAME_BYTES])
{
    snprintf(ret, FAKE_NAME_BYTES, HUB_API "/namespaces/ns-%s/bundledeployments", of);
    return ret;
}

#endif
