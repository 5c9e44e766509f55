/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/write.h"

#include <stdio.h>

#include "model/document.h"

#define STATUS_UNAUTHORIZED 401
#define STATUS_NOT_FOUND 404
#define STATUS_CONFLICT 409
#define STATUS_GONE 410
#define STATUS_PRECONDITION 412
#define STATUS_UNPROCESSABLE 422
#define STATUS_TOO_MANY 429

const char *write_method(write_verb verb)
{
    static const char *const methods[] = {
#define X(name, method, type) method,
        WRITE_VERBS(X)
#undef X
    };
    return methods[verb];
}

const char *write_content_type(write_verb verb)
{
    static const char *const types[] = {
#define X(name, method, type) type,
        WRITE_VERBS(X)
#undef X
    };
    return types[verb];
}

const char *write_outcome_text(write_outcome_kind kind)
{
    static const char *const texts[] = {
#define X(outcome, text) text,
        WRITE_OUTCOMES(X)
#undef X
    };
    return texts[kind];
}

/* ---- the request ---- */

static bool has_precondition(const kube_write *w)
{
    return w->version.len > 0 || w->uid.len > 0;
}

/* Whether a JSON patch has a test of its own. */
static bool has_test(const kube_write *w)
{
    yyjson_doc *parsed = w->body.len > 0 ? yyjson_read(w->body.ptr, w->body.len, 0) : NULL;
    yyjson_val *operation;
    size_t i, most;
    bool found = false;
    yyjson_arr_foreach(yyjson_doc_get_root(parsed), i, most, operation)
    {
        found = found || yyjson_equals_str(yyjson_obj_get(operation, "op"), "test");
    }
    yyjson_doc_free(parsed);
    return found;
}

static bool is_guarded(const kube_write *w)
{
    return w->verb == WRITE_READ || w->verb == WRITE_CREATE || w->anyhow || has_precondition(w) ||
           (w->verb == WRITE_JSON_PATCH && has_test(w));
}

bool write_repeatable(const kube_write *w)
{
    return w->verb != WRITE_JSON_PATCH || has_precondition(w) || has_test(w);
}

bool write_check(const kube_write *w, err *error)
{
    if (w->collection.len == 0 || w->collection.ptr[0] != '/')
        return err_set(error, "a write needs the path of a collection");
    if (w->name.len == 0 && w->verb != WRITE_READ)
        return err_set(error, "a write to %.*s needs a name", STR_ARG(w->collection));
    if (w->verb == WRITE_APPLY && w->manager.len == 0)
        return err_set(error, "an apply of %.*s needs a manager", STR_ARG(w->name));
    if (w->body.len > WRITE_BODY_BYTES_MAX)
        return err_set(error, "%.*s has more than %u bytes", STR_ARG(w->name),
                       WRITE_BODY_BYTES_MAX);
    bool bodiless = w->verb == WRITE_READ || w->verb == WRITE_DELETE || w->verb == WRITE_EVICT;
    if (bodiless != (w->body.len == 0))
        return err_set(error, "a %s of %.*s %s a body", write_method(w->verb), STR_ARG(w->name),
                       bodiless ? "makes itself" : "needs");
    if (!is_guarded(w))
        return err_set(error, "a write to %.*s/%.*s has no precondition", STR_ARG(w->collection),
                       STR_ARG(w->name));
    return true;
}

static void add_query(buf *out, const char *key, str value)
{
    buf_addc(out, str_find(buf_str(out), STR("?")) == SIZE_MAX ? '?' : '&');
    buf_addz(out, key);
    buf_addc(out, '=');
    buf_add(out, value);
}

bool write_path(const kube_write *w, buf *out)
{
    buf_add(out, w->collection);
    if (w->verb != WRITE_CREATE && w->name.len > 0) {
        buf_addc(out, '/');
        buf_add(out, w->name);
    }
    str part = w->verb == WRITE_EVICT ? STR("eviction") : w->subresource;
    if (part.len > 0) {
        buf_addc(out, '/');
        buf_add(out, part);
    }
    if (w->manager.len > 0)
        add_query(out, "fieldManager", w->manager);
    if (w->force)
        add_query(out, "force", STR("true"));
    if (w->tried)
        add_query(out, "dryRun", STR("All"));
    if (w->row)
        add_query(out, "includeObject", STR("None"));
    return !out->failed;
}

static void add_member(buf *out, const char *key, str value, bool *first)
{
    if (value.len == 0)
        return;
    buf_addf(out, "%s\"%s\":", *first ? "" : ",", key);
    buf_add_json(out, value);
    *first = false;
}

/* What a delete and an eviction share. */
static void add_delete_options(const kube_write *w, buf *out)
{
    static const char *const propagations[] = {
#define X(propagation, text) text,
        WRITE_PROPAGATIONS(X)
#undef X
    };
    buf_addf(out, "{\"propagationPolicy\":\"%s\"", propagations[w->propagation]);
    if (w->has_grace)
        buf_addf(out, ",\"gracePeriodSeconds\":%lld", (long long)w->grace_s);
    if (has_precondition(w)) {
        bool first = true;
        buf_addz(out, ",\"preconditions\":{");
        add_member(out, "uid", w->uid, &first);
        add_member(out, "resourceVersion", w->version, &first);
        buf_addc(out, '}');
    }
    buf_addc(out, '}');
}

/* The namespace in /api/v1/namespaces/NAME/pods. */
static str namespace_of(str collection)
{
    static const str before = {"/namespaces/", sizeof "/namespaces/" - 1};
    size_t at = str_find(collection, before);
    str rest = at == SIZE_MAX ? STR_EMPTY : str_part(collection, at + before.len, SIZE_MAX);
    return str_cut(&rest, '/');
}

static void add_eviction(const kube_write *w, buf *out)
{
    bool first = true;
    buf_addz(out, "{\"apiVersion\":\"policy/v1\",\"kind\":\"Eviction\",\"metadata\":{");
    add_member(out, "name", w->name, &first);
    add_member(out, "namespace", namespace_of(w->collection), &first);
    buf_addz(out, "},\"deleteOptions\":");
    add_delete_options(w, out);
    buf_addc(out, '}');
}

/* Tests go first, so that nothing of the patch is applied when one fails. */
static bool add_tests(const kube_write *w, buf *out)
{
    str rest = str_trim(w->body);
    if (rest.len < 2 || rest.ptr[0] != '[')
        return false;
    rest = str_trim(str_part(rest, 1, SIZE_MAX));
    const struct {
        const char *path;
        str value;
    } tests[] = {{"/metadata/uid", w->uid}, {"/metadata/resourceVersion", w->version}};
    buf_addc(out, '[');
    bool first = true;
    for (size_t i = 0; i < 2; i++) {
        if (tests[i].value.len == 0)
            continue;
        buf_addf(out, "%s{\"op\":\"test\",\"path\":\"%s\",\"value\":", first ? "" : ",",
                 tests[i].path);
        buf_add_json(out, tests[i].value);
        buf_addc(out, '}');
        first = false;
    }
    if (!first && rest.ptr[0] != ']')
        buf_addc(out, ',');
    buf_add(out, rest);
    return true;
}

static bool is_ours(yyjson_val *key)
{
    return yyjson_equals_str(key, "resourceVersion") || yyjson_equals_str(key, "uid");
}

static void add_own_metadata(const kube_write *w, yyjson_val *metadata, buf *out)
{
    bool first = true;
    size_t i, most;
    yyjson_val *key, *value;
    buf_addc(out, '{');
    add_member(out, "resourceVersion", w->version, &first);
    add_member(out, "uid", w->uid, &first);
    yyjson_obj_foreach(metadata, i, most, key, value)
    {
        if (is_ours(key))
            continue;
        buf_addc(out, ',');
        json_write(out, key);
        buf_addc(out, ':');
        json_write(out, value);
    }
    buf_addc(out, '}');
}

/* Most bodies are of our own making: they begin with their metadata, of which neither version nor
 * uid is a part, or have none. What is to be added goes in front of the rest. False: this is none
 * of them. */
static bool add_metadata_in_front(const kube_write *w, buf *out)
{
    static const str begins = {"{\"metadata\":{", sizeof "{\"metadata\":{" - 1};
    bool has = str_starts(w->body, begins);
    if (!str_starts(w->body, STR("{\"")) ||
        (!has && str_find(w->body, STR("\"metadata\"")) != SIZE_MAX) ||
        str_find(w->body, STR("\"resourceVersion\"")) != SIZE_MAX ||
        str_find(w->body, STR("\"uid\"")) != SIZE_MAX)
        return false;
    str rest = str_part(w->body, has ? begins.len : 1, SIZE_MAX);
    bool first = true;
    buf_add(out, begins);
    add_member(out, "resourceVersion", w->version, &first);
    add_member(out, "uid", w->uid, &first);
    buf_addz(out, !has ? "}," : rest.len > 0 && rest.ptr[0] != '}' ? "," : "");
    buf_add(out, rest);
    return true;
}

/* The server compares version and uid with the object's own and answers "conflict". */
static bool add_metadata(const kube_write *w, buf *out)
{
    if (add_metadata_in_front(w, out))
        return true;
    yyjson_doc *parsed = yyjson_read(w->body.ptr, w->body.len, 0);
    yyjson_val *root = yyjson_doc_get_root(parsed), *key, *value;
    yyjson_val *metadata = yyjson_obj_get(root, "metadata");
    bool good = yyjson_is_obj(root) && (!metadata || yyjson_is_obj(metadata));
    size_t i, most;
    buf_addz(out, "{\"metadata\":");
    add_own_metadata(w, metadata, out);
    yyjson_obj_foreach(root, i, most, key, value)
    {
        if (value == metadata)
            continue;
        buf_addc(out, ',');
        json_write(out, key);
        buf_addc(out, ':');
        json_write(out, value);
    }
    buf_addc(out, '}');
    yyjson_doc_free(parsed);
    return good;
}

bool write_body(const kube_write *w, buf *out)
{
    bool good = true;
    switch (w->verb) {
    case WRITE_READ: break;
    case WRITE_CREATE: buf_add(out, w->body); break;
    case WRITE_UPDATE:
    case WRITE_MERGE:
    case WRITE_STRATEGIC:
    case WRITE_APPLY:
        if (has_precondition(w))
            good = add_metadata(w, out);
        else
            buf_add(out, w->body);
        break;
    case WRITE_JSON_PATCH: good = add_tests(w, out); break;
    case WRITE_DELETE: add_delete_options(w, out); break;
    case WRITE_EVICT: add_eviction(w, out); break;
    }
    return good && !out->failed;
}

/* ---- the answer ---- */

static bool has(str text, const char *part)
{
    return str_find(text, str_of(part)) != SIZE_MAX;
}

/* The message of the first cause of a kind; empty: there is none. */
static str cause_of(yyjson_val *status, const char *kind)
{
    yyjson_val *causes = yyjson_obj_get(yyjson_obj_get(status, "details"), "causes"), *cause;
    size_t i, most;
    yyjson_arr_foreach(causes, i, most, cause)
    {
        if (str_eq(json_text_of(cause, "reason"), str_of(kind)))
            return json_text_of(cause, "message");
    }
    return STR_EMPTY;
}

static void say(write_outcome *outcome, str text)
{
    str_fit(outcome->message, sizeof outcome->message, text);
}

/* "The disruption budget NAME needs 2 healthy pods and has 1 currently" */
static void name_budget(write_outcome *outcome, str cause)
{
    static const str before = {"The disruption budget ", sizeof "The disruption budget " - 1};
    size_t at = str_find(cause, before);
    if (at == SIZE_MAX)
        return;
    str rest = str_part(cause, at + before.len, SIZE_MAX);
    str name = str_cut(&rest, ' ');
    if (name.len < sizeof outcome->budget) {
        memcpy(outcome->budget, name.ptr, name.len);
        outcome->budget[name.len] = '\0';
    }
}

static bool judge_eviction(write_outcome *outcome, yyjson_val *status)
{
    str cause = cause_of(status, "DisruptionBudget");
    bool several = outcome->status == 500 &&
                   has(json_text_of(status, "message"), "more than one PodDisruptionBudget");
    if (!several && (outcome->status != STATUS_TOO_MANY || cause.len == 0))
        return false;
    outcome->kind = WRITE_BLOCKED;
    name_budget(outcome, cause);
    if (cause.len > 0)
        say(outcome, cause);
    return true;
}

/* Not all that do not hold are answered with "conflict". */
static bool precondition_failed(write_verb verb, yyjson_val *status)
{
    yyjson_val *causes = yyjson_obj_get(yyjson_obj_get(status, "details"), "causes"), *cause;
    size_t i, most;
    if (verb == WRITE_JSON_PATCH && yyjson_arr_size(causes) == 0)
        return true; /* it does not fit the object as it is; why, the server keeps to itself */
    yyjson_arr_foreach(causes, i, most, cause)
    {
        if (str_eq(json_text_of(cause, "field"), STR("metadata.uid")))
            return true;
    }
    return false;
}

/* A body that does not fit its kind, or an object that etcd does not take, is no trouble of the
 * server's, whatever it says. */
static bool never_fits(write_verb verb, str message)
{
    bool untyped = verb == WRITE_APPLY && has(message, "failed to create typed patch object");
    return untyped || has(message, "etcdserver: request is too large") ||
           has(message, "trying to send message larger than max");
}

static write_outcome_kind kind_of(const write_outcome *outcome, write_verb verb, yyjson_val *status)
{
    int code = outcome->status;
    if (code >= 200 && code < 300)
        return WRITE_DONE;
    /* What is to be created cannot be gone: its namespace or its kind is what is not there. */
    if (code == STATUS_NOT_FOUND || code == STATUS_GONE)
        return verb == WRITE_CREATE ? WRITE_REFUSED : WRITE_GONE;
    if (code == STATUS_CONFLICT)
        return verb == WRITE_CREATE && str_eq(json_text_of(status, "reason"), STR("AlreadyExists"))
                   ? WRITE_EXISTS
                   : WRITE_CONFLICT;
    if (code == STATUS_PRECONDITION)
        return WRITE_CONFLICT;
    if (code == STATUS_UNPROCESSABLE && precondition_failed(verb, status))
        return WRITE_CONFLICT;
    if (code == 500 && never_fits(verb, json_text_of(status, "message")))
        return WRITE_REFUSED;
    /* New credentials are fetched before the next request: it is worth one more. */
    if (code == STATUS_TOO_MANY || code >= 500 || code == STATUS_UNAUTHORIZED)
        return WRITE_LATER;
    return WRITE_REFUSED;
}

/* Of an object that is not there the server tells the name; of a kind that is not, or of a group,
 * it does not. */
static bool is_of_path(int code, yyjson_val *status)
{
    return code == STATUS_NOT_FOUND &&
           json_text_of(yyjson_obj_get(status, "details"), "name").len == 0;
}

write_outcome write_judge(write_verb verb, const write_answer *answer)
{
    write_outcome outcome = {.status = answer->status};
    switch (answer->result) {
    case CONNECTION_WHOLE: break;
    case CONNECTION_UNSENT:
        outcome.kind = WRITE_LATER;
        say(&outcome, answer->problem);
        return outcome;
    case CONNECTION_CUT:
        outcome.kind = WRITE_AMBIGUOUS;
        outcome.maybe = true;
        say(&outcome, answer->problem);
        return outcome;
    case CONNECTION_BARRED:
        outcome.kind = WRITE_BARRED;
        say(&outcome, answer->problem);
        return outcome;
    }
    int64_t seconds = answer->retry_after_s;
    if (seconds < 0)
        seconds = 0;
    outcome.wait_ms =
        (seconds < WRITE_RETRY_AFTER_MAX_S ? seconds : WRITE_RETRY_AFTER_MAX_S) * 1000;
    if (outcome.status < 200 || outcome.status >= 300)
        say(&outcome, json_text_of(answer->body, "message"));
    if (verb == WRITE_EVICT && judge_eviction(&outcome, answer->body))
        return outcome;
    outcome.kind = kind_of(&outcome, verb, answer->body);
    outcome.no_path = is_of_path(outcome.status, answer->body);
    outcome.maybe = outcome.kind == WRITE_LATER && outcome.status >= 500;
    return outcome;
}
