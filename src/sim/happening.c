/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/happening.h"

#include "base/duration.h"

static const char *const words[] = {
#define X(kind, text) text,
    HAPPENINGS(X)
#undef X
};

const char *happening_text(happening_kind kind)
{
    return words[kind];
}

static bool kind_of(str word, happening_kind *ret, err *error)
{
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (str_eq(word, str_of(words[i]))) {
            *ret = (happening_kind)i;
            return true;
        }
    return err_set(
        error,
        "do: found \"%s\", allowed publish, pause, resume, approve, cordon, uncordon, join, "
        "delete, label, fail, heal, offline, online, apply, retry, skip, reset, reboot, reject, "
        "rollback, bypass, freeze, thaw, halt, taint, untaint, claimSlot, freeSlot, "
        "rerun",
        str_shown(word).text);
}

static str text_of(yyjson_val *value)
{
    return (str){yyjson_get_str(value), yyjson_get_len(value)};
}

static bool read_labels(happening_reader *r, yyjson_val *value, happening *ret, err *error)
{
    if (!yyjson_is_obj(value))
        return err_set(error, "labels: allowed an object of texts; null takes a label away");
    label *labels = ARENA_ARRAY(r->arena, yyjson_obj_size(value) + 1, label);
    if (!labels)
        return err_memory(error);
    size_t at, max;
    yyjson_val *key, *one;
    yyjson_obj_foreach(value, at, max, key, one)
    {
        if (!yyjson_is_str(one) && !yyjson_is_null(one))
            return err_set(error, "labels.%s: allowed a text or null", yyjson_get_str(key));
        str name = text_of(key);
        if (!label_key_check(name, error))
            return err_wrap(error, "labels");
        labels[at] = (label){name, yyjson_is_str(one) ? text_of(one) : (str){NULL, 0}};
    }
    ret->labels = labels;
    ret->label_count = yyjson_obj_size(value);
    return true;
}

static bool read_document(happening_reader *r, yyjson_val *value, happening *ret, err *error)
{
    buf *text = ARENA_NEW(r->arena, buf);
    if (!text)
        return err_memory(error);
    *text = BUF(LIMIT_DOCUMENT_BYTES);
    json_write(text, value);
    str bytes = arena_str(r->arena, buf_str(text));
    bool whole = !text->failed && bytes.ptr;
    buf_done(text);
    if (!whole)
        return err_memory(error);
    size_t before = documents_count(r->documents);
    uint64_t errors = problems_errors(r->found);
    object *o = ARENA_NEW(r->arena, object);
    if (!o)
        return err_memory(error);
    documents_read_as(r->documents, STR("events"), bytes, FORMAT_JSON, r->found);
    if (documents_count(r->documents) != before + 1 ||
        !object_read(r->objects, documents_at(r->documents, before), r->found, o)) {
        if (problems_errors(r->found) > errors)
            return err_set(error, "document: has errors");
        return err_set(error, "document: allowed one document of a kind Drover reads");
    }
    ret->document = o;
    return true;
}

static bool read_as(str word, happening *ret, err *error)
{
    static const char *const kinds[] = {
#define X(kind, text) text,
        TARGET_KINDS(X)
#undef X
    };
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (str_eq(word, str_of(kinds[i]))) {
            ret->as = (target_kind)i;
            ret->as_given = true;
            return true;
        }
    return err_set(error, "kind: found \"%s\", allowed node, cluster, resource",
                   str_shown(word).text);
}

static bool read_after(yyjson_val *value, happening *ret, err *error)
{
    int64_t ns = 0;
    if (yyjson_is_int(value))
        ns = yyjson_get_sint(value) * DURATION_SECOND;
    else if (!yyjson_is_str(value))
        return err_set(error, "after: allowed a duration such as \"5m\"");
    else if (!duration_parse_days(text_of(value), &ns, error))
        return err_wrap(error, "after");
    if (ns < 0)
        return err_set(error, "after: allowed a duration that is not negative");
    ret->after_ms = ns / DURATION_MILLISECOND;
    return true;
}

/* "key=value:effect"; the value may be missing. */
static bool read_taint(yyjson_val *value, happening *ret, err *error)
{
    str rest = text_of(value);
    if (!yyjson_is_str(value))
        return err_set(error, "taint: allowed a text such as \"key=value:NoSchedule\"");
    str pair = str_cut(&rest, ':');
    str key = str_cut(&pair, '=');
    if (key.len == 0 || !rest.ptr || rest.len == 0)
        return err_set(error, "taint: found \"%s\", allowed KEY=VALUE:EFFECT or KEY:EFFECT",
                       str_shown(text_of(value)).text);
    ret->taint = (fact_taint){key, pair.ptr ? pair : STR_EMPTY, rest};
    return true;
}

static bool read_text(str key, yyjson_val *value, happening *ret, err *error)
{
    const struct {
        const char *key;
        str *to;
    } texts[] = {
        {"target", &ret->target}, {"name", &ret->name},     {"version", &ret->version},
        {"who", &ret->who},       {"reason", &ret->reason}, {"environment", &ret->environment},
        {"rule", &ret->rule},
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (str_eq(key, str_of(texts[i].key))) {
            if (!yyjson_is_str(value))
                return err_set(error, "%s: allowed a text", texts[i].key);
            *texts[i].to = text_of(value);
            return true;
        }
    return err_set(
        error,
        "found the key \"%s\", allowed after, do, target, name, version, labels, document, "
        "environment, kind, taint, who, reason, rule",
        str_shown(key).text);
}

static bool read_member(happening_reader *r, str key, yyjson_val *value, happening *ret, err *error)
{
    if (str_eq(key, STR("after")))
        return read_after(value, ret, error);
    if (str_eq(key, STR("labels")))
        return read_labels(r, value, ret, error);
    if (str_eq(key, STR("taint")))
        return read_taint(value, ret, error);
    if (str_eq(key, STR("document")))
        return read_document(r, value, ret, error);
    if (str_eq(key, STR("do")))
        return yyjson_is_str(value) ? kind_of(text_of(value), &ret->kind, error)
                                    : err_set(error, "do: allowed a word");
    if (str_eq(key, STR("kind")) && yyjson_is_str(value))
        return read_as(text_of(value), ret, error);
    return read_text(key, value, ret, error);
}

/* Which members each kind cannot do without. */
static bool complete(const happening *h, err *error)
{
    switch (h->kind) {
    case HAPPEN_CORDON:
    case HAPPEN_UNCORDON:
    case HAPPEN_FAIL:
    case HAPPEN_HEAL:
    case HAPPEN_OFFLINE:
    case HAPPEN_ONLINE:
    case HAPPEN_REBOOT:
    case HAPPEN_CLAIM_SLOT:
    case HAPPEN_FREE_SLOT:
        if (h->target.len == 0)
            return err_set(error, "%s needs \"target\"", words[h->kind]);
        return true;
    case HAPPEN_TAINT:
    case HAPPEN_UNTAINT:
        if (h->target.len == 0 || h->taint.key.len == 0)
            return err_set(error, "%s needs \"target\" and \"taint\"", words[h->kind]);
        return true;
    case HAPPEN_BYPASS:
        if (h->rule.len == 0 || h->version.len == 0)
            return err_set(error, "bypass needs \"rule\" and \"version\"");
        return true;
    case HAPPEN_LABEL:
        if (h->target.len == 0 || !h->labels)
            return err_set(error, "label needs \"target\" and \"labels\"");
        return true;
    case HAPPEN_JOIN:
        if (h->target.len == 0 && !h->document)
            return err_set(error, "join needs \"target\" or \"document\"");
        return true;
    case HAPPEN_APPLY:
        if (!h->document)
            return err_set(error, "apply needs \"document\"");
        return true;
    case HAPPEN_PUBLISH:
        if (h->name.len == 0 || h->version.len == 0)
            return err_set(error, "publish needs \"name\" and \"version\"");
        return true;
    case HAPPEN_DELETE:
        if (h->target.len == 0 && h->name.len == 0)
            return err_set(error, "delete needs \"target\" or \"name\"");
        return true;
    case HAPPEN_PAUSE:
    case HAPPEN_RESUME:
    case HAPPEN_RETRY:
    case HAPPEN_SKIP:
    case HAPPEN_RESET:
    case HAPPEN_RERUN:
    case HAPPEN_ROLLBACK:
    case HAPPEN_HALT:
        if (h->target.len == 0 && h->name.len == 0)
            return err_set(error, "%s needs \"name\" or \"target\"", words[h->kind]);
        return true;
    case HAPPEN_APPROVE:
    case HAPPEN_REJECT:
        if (h->name.len == 0 && h->version.len == 0)
            return err_set(error, "%s needs \"name\" or \"version\"", words[h->kind]);
        return true;
    case HAPPEN_FREEZE:
    case HAPPEN_THAW: return true;
    }
    return true;
}

bool happening_read(happening_reader *r, str line, happening *ret, err *error)
{
    yyjson_val *root = json_parse(r->arena, line, error);
    if (!root)
        return false;
    if (!yyjson_is_obj(root))
        return err_set(error, "allowed one JSON object a line");
    happening h = {0};
    bool has_do = false;
    size_t at, max;
    yyjson_val *key, *value;
    yyjson_obj_foreach(root, at, max, key, value)
    {
        if (!read_member(r, text_of(key), value, &h, error))
            return false;
        has_do = has_do || str_eq(text_of(key), STR("do"));
    }
    if (!has_do)
        return err_set(error, "\"do\" is missing");
    if (!complete(&h, error))
        return false;
    *ret = h;
    return true;
}
