/* SPDX-License-Identifier: Apache-2.0 */
/* Documents come and go. */
#include <assert.h>

#include "base/mem.h"
#include "model/lint.h"
#include "server/control_internal.h"

static const str action_names[] = {
#define X(action, text) [APPLY_##action] = {text, sizeof(text) - 1},
    APPLY_ACTIONS(X)
#undef X
};

str apply_action_name(apply_action a)
{
    return action_names[a];
}

static bool is_ours(object_kind kind)
{
    return kind == KIND_RESOURCE || kind == KIND_ENVIRONMENT || kind == KIND_DEPLOYMENT ||
           kind == KIND_VERSION || kind == KIND_ROLLOUT_POLICY;
}

/* One document on its way in. */
typedef struct candidate {
    object object;
    held_document *present; /* NULL: it is new */
    str json;               /* as it will be stored */
    bool refused;
    bool unchanged;
} candidate;

typedef struct application {
    control *control;
    const apply_request *request;
    apply_answer *answer;
    err *error;
    document_set *set;
    object_list *objects;
    candidate *at; /* one a document, good or not */
    size_t len;
    strmap seen;        /* "Kind/name" of those read so far */
    problems *after;    /* what lint says of all of them with what is accepted */
    bool only_versions; /* lint looks at versions and the few documents around them */
} application;

/* ---- reading ---- */

static void refuse(application *a, candidate *c, const char *why)
{
    if (why)
        problems_addf(a->answer->found,
                      &(problem){.severity = SEVERITY_ERROR,
                                 .file = a->request->file,
                                 .document = arena_printf(a->answer->arena, "%s/%.*s",
                                                          object_kind_text(c->object.kind),
                                                          STR_ARG(c->object.metadata->name))},
                      "%s", why);
    c->refused = true;
}

/* Whether this document stands in the request already; remembers it. False without memory, too,
 * with *ret_failed. */
static bool known_before(application *a, const object *o, bool *ret_failed)
{
    str key = arena_printf(a->objects->arena, "%s/%.*s", object_kind_text(o->kind),
                           STR_ARG(o->metadata->name));
    bool known = key.ptr && strmap_get(&a->seen, key);
    *ret_failed = !key.ptr || (!known && !strmap_put(&a->seen, key, 1));
    return known;
}

/* The server owns these: a client that sends back what it got changes nothing by it. */
static void stamp(const application *a, candidate *c)
{
    metadata *own = (metadata *)c->object.any;
    assert(own == c->object.metadata);
    own->resource_version = STR_EMPTY;
    if (own->creation_timestamp.set)
        return;
    int64_t now_ms = a->control->now_ms;
    own->creation_timestamp =
        (opt_moment){true, {.seconds = now_ms / 1000, .nanos = (int32_t)(now_ms % 1000) * 1000000}};
    if (c->present)
        own->creation_timestamp = c->present->object.metadata->creation_timestamp;
}

static bool read_one(application *a, size_t at)
{
    candidate *c = &a->at[at];
    const document *d = documents_at(a->set, at);
    apply_result *result = &a->answer->results[at];
    *result = (apply_result){.kind = arena_str(a->answer->arena, d->kind),
                             .name = arena_str(a->answer->arena, d->name)};
    if (!result->kind.ptr || !result->name.ptr)
        return false;
    uint64_t errors = problems_errors(a->answer->found);
    if (!object_read(a->objects, d, a->answer->found, &c->object)) {
        c->refused = true;
        if (problems_errors(a->answer->found) == errors) /* only warned of: not one of ours */
            problems_addf(a->answer->found,
                          &(problem){.severity = SEVERITY_ERROR, .file = a->request->file},
                          "found the kind \"%s\", allowed Resource, Environment, Deployment, "
                          "Version, RolloutPolicy",
                          str_shown(d->kind).text);
        return true;
    }
    if (!is_ours(c->object.kind)) {
        refuse(a, c,
               "found this kind, allowed Resource, Environment, Deployment, Version, "
               "RolloutPolicy");
        return true;
    }
    bool failed;
    if (known_before(a, &c->object, &failed))
        refuse(a, c, "stands there twice");
    if (failed || c->refused)
        return !failed;
    c->present = document_find(a->control, d->kind, c->object.metadata->name);
    stamp(a, c);
    buf text = BUF(LIMIT_DOCUMENT_BYTES);
    object_write(&c->object, &text);
    c->json = text.failed ? (str){0} : arena_str(a->objects->arena, buf_str(&text));
    buf_done(&text);
    return c->json.ptr != NULL;
}

static bool compare_one(application *a, candidate *c)
{
    stored_document row;
    arena_place here = arena_mark(a->objects->arena);
    if (!store_get_document(
            a->control->store,
            (document_key){str_of(object_kind_text(c->object.kind)), c->object.metadata->name},
            a->objects->arena, &row, a->error))
        return false;
    c->unchanged = str_eq(row.json, c->json);
    arena_rewind(a->objects->arena, here);
    return true;
}

static bool read_all(application *a)
{
    apply_answer *answer = a->answer;
    documents_read(a->set, a->request->file, a->request->bytes, answer->found);
    a->len = documents_count(a->set);
    a->at = ARENA_ARRAY(a->objects->arena, a->len + 1, candidate);
    answer->results = ARENA_ARRAY(answer->arena, a->len + 1, apply_result);
    bool good = a->at && answer->results;
    for (size_t i = 0; good && i < a->len; i++)
        good = read_one(a, i);
    if (!good)
        return err_memory(a->error);
    answer->count = a->len;
    for (size_t i = 0; good && i < a->len; i++)
        if (!a->at[i].refused && a->at[i].present)
            good = compare_one(a, &a->at[i]);
    return good;
}

/* ---- all documents together ---- */

static bool changes(const candidate *c)
{
    return !c->refused && !c->unchanged;
}

/* Whether nothing but Resources and Versions changes. There are many of them, and none is ever
 * refused for another Resource, or for a Version but one of its own deployment and tag. So they are
 * looked at beside the few other documents only, and a request costs the same in a large fleet as
 * in a small one. (Warnings that count resources come with the documents that have the rule.) */
static bool changes_only_many(const application *a, bool *ret_versions)
{
    *ret_versions = false;
    for (size_t i = 0; i < a->len; i++) {
        const candidate *c = &a->at[i];
        if (!changes(c))
            continue;
        if (c->object.kind != KIND_RESOURCE && c->object.kind != KIND_VERSION)
            return false;
        *ret_versions = *ret_versions || c->object.kind == KIND_VERSION;
    }
    return true;
}

static void mark_replaced(const application *a, bool replaced)
{
    for (size_t i = 0; i < a->len; i++)
        if (a->at[i].present)
            a->at[i].present->replaced = replaced && !a->at[i].refused;
}

static bool add_stored(const application *a, object_list *all)
{
    const strmap *stored = &a->control->documents;
    bool good = true;
    for (size_t i = 0; good && i < stored->len; i++) {
        const held_document *d = (const held_document *)(uintptr_t)stored->entries[i].value;
        good = d->replaced || objects_add(all, d->object);
    }
    return good;
}

/* The few, and the versions that have the place or the tag of one that comes. */
static bool add_few(const application *a, object_list *all, bool candidates)
{
    const control *c = a->control;
    bool good = true;
    for (size_t i = 0; good && i < c->few.len; i++)
        good = objects_add(all, c->few.at[i]->object);
    for (size_t i = 0; good && i < a->len; i++) {
        const candidate *new = &a->at[i];
        if (new->refused || new->object.kind != KIND_VERSION)
            continue;
        const struct version_spec *spec = &new->object.version->spec;
        const object *same = version_tagged(c, spec->deployment, spec->tag);
        const held_document *other =
            same ? document_find(c, STR("Version"), same->metadata->name) : NULL;
        if (other && other != new->present && !other->replaced)
            good = objects_add(all, other->object);
        if (good && new->present && !candidates)
            good = objects_add(all, new->present->object);
    }
    return good;
}

/* What lint says of the stored documents with (or without) the candidates in their places. */
static problems *lint_with(const application *a, bool candidates)
{
    object_list *all = objects_new();
    problems *found = problems_new();
    mark_replaced(a, candidates);
    bool good =
        all && found && (a->only_versions ? add_few(a, all, candidates) : add_stored(a, all));
    for (size_t i = 0; good && candidates && i < a->len; i++)
        if (!a->at[i].refused && !(a->only_versions && a->at[i].object.kind == KIND_RESOURCE))
            good = objects_add(all, a->at[i].object);
    if (good)
        lint_all(all, found);
    good = good && !problems_out_of_memory(found);
    objects_free(all);
    return good ? found : problems_free(found);
}

static bool same_problem(const problem *a, const problem *b)
{
    return str_eq(a->document, b->document) && str_eq(a->path, b->path) &&
           str_eq(a->message, b->message);
}

static bool in_list(const problems *list, const problem *p)
{
    for (size_t i = 0; i < problems_count(list); i++)
        if (same_problem(problems_at(list, i), p))
            return true;
    return false;
}

/* Refuses the candidates that a problem is about; all of them if it is about none. */
static void refuse_named(application *a, const problem *p)
{
    bool any = false;
    for (size_t i = 0; i < a->len; i++) {
        candidate *c = &a->at[i];
        if (c->refused)
            continue;
        str kind = str_of(object_kind_text(c->object.kind));
        str rest = p->document;
        if (str_eq(str_cut(&rest, '/'), kind) && str_eq(rest, c->object.metadata->name)) {
            c->refused = true;
            any = true;
        }
    }
    for (size_t i = 0; !any && i < a->len; i++)
        a->at[i].refused = true;
}

/* Problems that are there already are not this request's. *ret_new: some were. */
static bool lint_once(application *a, const problems *before, bool *ret_new)
{
    problems_free(a->after);
    a->after = lint_with(a, true);
    *ret_new = false;
    if (!a->after)
        return err_memory(a->error);
    for (size_t i = 0; i < problems_count(a->after); i++) {
        const problem *p = problems_at(a->after, i);
        if (in_list(before, p))
            continue;
        problems_add(a->answer->found, p);
        if (p->severity == SEVERITY_WARNING)
            continue;
        *ret_new = true;
        refuse_named(a, p);
    }
    return true;
}

static bool lint_candidates(application *a)
{
    bool versions, good = true, again = true;
    bool many = changes_only_many(a, &versions);
    a->only_versions = many && versions;
    if (many && !versions)
        return true;
    problems *few = a->only_versions ? lint_with(a, false) : NULL;
    if (!a->only_versions && !a->control->lint)
        a->control->lint = lint_with(a, false);
    const problems *before = a->only_versions ? few : a->control->lint;
    good = before || err_memory(a->error);
    /* With partial, what is left over may lack what was refused: it is looked at again. */
    while (good && again)
        good = lint_once(a, before, &again);
    mark_replaced(a, false);
    problems_free(few);
    return good;
}

/* ---- writing ---- */

static bool all_or_none(application *a)
{
    bool refused = problems_errors(a->answer->found) > 0;
    for (size_t i = 0; i < a->len; i++)
        refused = refused || a->at[i].refused;
    if (refused && !a->request->partial)
        for (size_t i = 0; i < a->len; i++)
            a->at[i].refused = true;
    return !refused;
}

static bool expectation_met(application *a)
{
    const apply_request *r = a->request;
    if (r->expected == APPLY_ANY)
        return true;
    if (a->len != 1)
        return err_set(a->error, "found %zu documents and an expected version, allowed 1", a->len);
    int64_t now = a->at[0].present ? a->at[0].present->version : 0;
    if (a->at[0].refused || now == r->expected)
        return true;
    a->answer->conflict = true;
    return err_set(a->error, "found version %lld, expected %lld", (long long)now,
                   (long long)r->expected);
}

/* The documents are read again from the text that is stored: a restart will see the same. */
static bool fill_turn(application *a, turn *t)
{
    buf text = BUF(LIMIT_TEXT_BYTES);
    for (size_t i = 0; i < a->len; i++) {
        if (!changes(&a->at[i]))
            continue;
        buf_add(&text, a->at[i].json);
        buf_addc(&text, '\n');
    }
    t->batch = batch_read(&text, a->error);
    buf_done(&text);
    if (!t->batch)
        return false;
    size_t next = 0;
    for (size_t i = 0; i < a->len; i++) {
        if (!changes(&a->at[i]))
            continue;
        assert(next < t->batch->objects->len);
        turn_document d = {.object = &t->batch->objects->at[next++],
                           .json = a->at[i].json,
                           .expected = a->at[i].present ? a->at[i].present->version : 0};
        if (!vec_push(&t->documents, d))
            return err_memory(a->error);
    }
    return true;
}

static bool write_candidates(application *a, int64_t now_ms)
{
    turn t;
    bool any = false;
    for (size_t i = 0; i < a->len; i++)
        any = any || changes(&a->at[i]);
    if (!any || a->request->dry_run)
        return true;
    if (!turn_begin(&t, a->request->who, a->error))
        return false;
    bool good = fill_turn(a, &t) && turn_run(a->control, &t, now_ms, a->error);
    if (good && a->control->engine && a->after && !a->only_versions) {
        /* What is accepted is what was looked at last. */
        lint_forget(a->control);
        a->control->lint = a->after;
        a->after = NULL;
    }
    size_t next = 0;
    for (size_t i = 0; good && i < a->len; i++)
        if (changes(&a->at[i]))
            a->answer->results[i].version = t.documents.at[next++].version;
    turn_done(&t);
    return good;
}

static void fill_results(application *a)
{
    for (size_t i = 0; i < a->len; i++) {
        const candidate *c = &a->at[i];
        apply_result *result = &a->answer->results[i];
        result->action = c->refused     ? APPLY_REFUSED
                         : c->unchanged ? APPLY_UNCHANGED
                         : c->present   ? APPLY_UPDATED
                                        : APPLY_CREATED;
        result->version = c->present ? c->present->version : 0;
    }
}

static bool apply_all(application *a, int64_t now_ms)
{
    if (!read_all(a) || !lint_candidates(a))
        return false;
    bool good = all_or_none(a);
    fill_results(a);
    if (!expectation_met(a) || !write_candidates(a, now_ms)) {
        for (size_t i = 0; i < a->len; i++) {
            a->answer->results[i].action = APPLY_REFUSED;
            a->answer->results[i].version = 0;
        }
        return false;
    }
    return good || err_set(a->error, "%llu problems were found",
                           (unsigned long long)problems_errors(a->answer->found));
}

bool control_apply(control *c, const apply_request *request, int64_t now_ms, apply_answer *answer,
                   err *error)
{
    answer->results = NULL;
    answer->count = 0;
    answer->conflict = false;
    if (!control_ready(c, now_ms, error))
        return false;
    application a = {.control = c,
                     .request = request,
                     .answer = answer,
                     .error = error,
                     .set = document_set_new(),
                     .objects = objects_new()};
    bool good = (a.set && a.objects) || err_memory(error);
    good = good && apply_all(&a, now_ms);
    problems_free(a.after);
    strmap_done(&a.seen);
    objects_free(a.objects);
    document_set_free(a.set);
    return good;
}

/* ---- deleting ---- */

bool control_delete(control *c, const delete_request *request, int64_t now_ms,
                    delete_answer *answer, err *error)
{
    *answer = (delete_answer){0};
    if (!control_ready(c, now_ms, error))
        return false;
    held_document *d = document_find(c, request->kind, request->name);
    if (!d) {
        answer->missing = true;
        return err_set(error, "there is no %s \"%s\"", str_shown(request->kind).text,
                       str_shown(request->name).text);
    }
    turn t;
    if (!turn_begin(&t, request->who, error))
        return false;
    /* The object is looked at until the turn is over. */
    t.batch = d->batch;
    t.batch->users++;
    object gone = d->object;
    bool good =
        vec_push(&t.documents, (turn_document){.object = &gone, .expected = request->expected}) ||
        err_memory(error);
    good = good && turn_run(c, &t, now_ms, error);
    answer->conflict = t.conflict;
    turn_done(&t);
    return good;
}
