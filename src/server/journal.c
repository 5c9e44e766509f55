/* SPDX-License-Identifier: Apache-2.0 */
#include "server/journal.h"

#include <assert.h>

#include "model/shape.h"

#define WORD(text) {text, sizeof(text) - 1}

static const str fact_names[] = {
#define X(kind, text) [FACT_##kind] = WORD(text),
    FACT_KINDS(X)
#undef X
};
static const str decision_names[] = {
#define X(kind, text) [DECISION_##kind] = WORD(text),
    DECISION_KINDS(X)
#undef X
};
static const str role_names[] = {
#define X(role, text) [ROLE_##role] = WORD(text),
    JOB_ROLES(X)
#undef X
};
static const str outcome_names[] = {
#define X(kind, text) [OUTCOME_##kind] = WORD(text),
    OUTCOMES(X)
#undef X
};
static const str act_names[] = {
#define X(kind, text) [ACT_##kind] = WORD(text),
    ACTS(X)
#undef X
};
#define COUNT_OF(list) (sizeof(list) / sizeof((list)[0]))

str outcome_name(outcome o)
{
    return outcome_names[o];
}

str act_name(act_kind a)
{
    return act_names[a];
}

static bool word_find(const str *words, size_t count, str word, size_t *ret)
{
    for (size_t i = 0; i < count; i++) {
        if (str_eq(words[i], word)) {
            *ret = i;
            return true;
        }
    }
    return false;
}

bool act_find(str name, act_kind *ret)
{
    size_t at;
    if (!word_find(act_names, COUNT_OF(act_names), name, &at))
        return false;
    *ret = (act_kind)at;
    return true;
}

/* ---- what both use: members that say something ---- */

static void put_text(buf *out, const char *key, str value)
{
    if (value.len == 0)
        return;
    buf_addf(out, ",\"%s\":", key);
    buf_add_json(out, value);
}

static void put_number(buf *out, const char *key, int64_t value)
{
    if (value != 0)
        buf_addf(out, ",\"%s\":%lld", key, (long long)value);
}

static void put_flag(buf *out, const char *key, bool value)
{
    if (value)
        buf_addf(out, ",\"%s\":true", key);
}

static void begin(buf *out, const char *what, str name)
{
    buf_addf(out, "{\"%s\":", what);
    buf_add_json(out, name);
}

/* ---- facts out ---- */

/* X(member, JSON key) of an act's texts. */
#define ACT_TEXTS(X)                                                                               \
    X(who, "who")                                                                                  \
    X(change, "change")                                                                            \
    X(target, "target")                                                                            \
    X(environment, "environment")                                                                  \
    X(version, "version")                                                                          \
    X(rule, "rule")                                                                                \
    X(partition, "partition") X(name, "name") X(selector, "selector") X(reason, "reason")

static void write_act(buf *out, const fact_act *a)
{
    put_text(out, "act", act_names[a->act]);
#define X(member, key) put_text(out, key, a->member);
    ACT_TEXTS(X)
#undef X
    put_number(out, "untilMs", a->until_ms);
    put_flag(out, "keepBatches", a->keep_batches);
}

static void write_job(buf *out, const fact_job *j)
{
    put_text(out, "deployment", j->deployment);
    put_text(out, "environment", j->environment);
    put_text(out, "resource", j->resource);
    put_number(out, "job", j->job);
    put_text(out, "outcome", outcome_names[j->outcome]);
    put_text(out, "reason", j->reason);
    put_flag(out, "verificationFailed", j->verification_failed);
}

/* The document comes last, so that its text can be cut out as it is. */
static void write_object(buf *out, const object *o)
{
    buf_addz(out, ",\"document\":");
    object_write(o, out);
}

void journal_write_fact(buf *out, const fact *f)
{
    if (!f) {
        buf_addz(out, "{\"fact\":\"time\"}");
        return;
    }
    begin(out, "fact", fact_names[f->kind]);
    switch (f->kind) {
    case FACT_DOCUMENT: write_object(out, f->document); break;
    case FACT_DOCUMENT_GONE:
        put_text(out, "kind", str_of(object_kind_text(f->document->kind)));
        put_text(out, "name", f->document->metadata->name);
        break;
    case FACT_TARGET:
        assert(f->target.document);
        write_object(out, f->target.document);
        break;
    case FACT_TARGET_GONE: put_text(out, "name", f->target.name); break;
    case FACT_JOB: write_job(out, &f->job); break;
    case FACT_ACT: write_act(out, &f->act); break;
    case FACT_STAGE:
    case FACT_DRAIN:
    case FACT_KEPT:
    case FACT_REPORT: assert(false && "a fact of the embedded control plane");
    }
    buf_addc(out, '}');
}

/* ---- decisions out ---- */

void journal_write_decision(buf *out, const decision *d)
{
    begin(out, "decision", decision_names[d->kind]);
    put_text(out, "change", d->change);
    put_text(out, "target", d->target);
    put_text(out, "environment", d->environment);
    put_text(out, "version", d->version);
    put_text(out, "group", d->group);
    put_text(out, "state", d->state);
    put_text(out, "detail", d->detail);
    if (d->kind == DECISION_JOB || d->role != ROLE_MEMBER)
        put_text(out, "role", role_names[d->role]);
    put_number(out, "number", d->number);
    if (d->kind == DECISION_SLOT || d->kind == DECISION_BATCH || d->kind == DECISION_JUDGE)
        buf_addf(out, ",\"size\":%lld", (long long)d->size);
    if (d->kind == DECISION_JUDGE) {
        put_number(out, "complete", d->complete);
        put_number(out, "erroring", d->erroring);
        put_number(out, "blocked", d->blocked);
    }
    put_flag(out, "failed", d->failed);
    put_flag(out, "first", d->first);
    put_flag(out, "fix", d->fix);
    put_flag(out, "retry", d->retry);
    if (d->kind == DECISION_SLOT)
        buf_addf(out, ",\"taken\":%s", d->taken ? "true" : "false");
    if (d->kind == DECISION_WAKE)
        put_number(out, "atMs", d->at_ms);
    buf_addc(out, '}');
}

/* ---- facts in ---- */

static str get_text(yyjson_val *o, const char *key)
{
    yyjson_val *v = yyjson_obj_get(o, key);
    return yyjson_is_str(v) ? (str){yyjson_get_str(v), yyjson_get_len(v)} : STR_EMPTY;
}

static int64_t get_number(yyjson_val *o, const char *key)
{
    return yyjson_get_sint(yyjson_obj_get(o, key));
}

static bool get_flag(yyjson_val *o, const char *key)
{
    return yyjson_get_bool(yyjson_obj_get(o, key));
}

static bool read_act(yyjson_val *o, fact_act *ret, err *error)
{
    str name = get_text(o, "act");
    if (!act_find(name, &ret->act))
        return err_set(error, "found the act \"%s\", which is none", str_shown(name).text);
#define X(member, key) ret->member = get_text(o, key);
    ACT_TEXTS(X)
#undef X
    ret->until_ms = get_number(o, "untilMs");
    ret->keep_batches = get_flag(o, "keepBatches");
    return true;
}

static bool read_job(yyjson_val *o, fact_job *ret, err *error)
{
    str name = get_text(o, "outcome");
    size_t at;
    if (!word_find(outcome_names, COUNT_OF(outcome_names), name, &at))
        return err_set(error, "found the outcome \"%s\", which is none", str_shown(name).text);
    *ret = (fact_job){.deployment = get_text(o, "deployment"),
                      .environment = get_text(o, "environment"),
                      .resource = get_text(o, "resource"),
                      .job = get_number(o, "job"),
                      .outcome = (outcome)at,
                      .reason = get_text(o, "reason"),
                      .verification_failed = get_flag(o, "verificationFailed")};
    return true;
}

/* An object that has a name and nothing else. */
static bool read_gone(arena *a, yyjson_val *o, const object **ret, err *error)
{
    object_kind kind;
    str name = get_text(o, "kind");
    if (!object_kind_find(STR(API_DROVER), name, &kind))
        return err_set(error, "found the kind \"%s\", which is none", str_shown(name).text);
    metadata *typed = arena_alloc(a, object_kind_shape(kind)->size);
    object *gone = ARENA_NEW(a, object);
    if (!typed || !gone)
        return err_memory(error);
    typed->name = get_text(o, "name");
    *gone = object_of(kind, typed);
    *ret = gone;
    return true;
}

#define DOCUMENT_PREFIX "{\"fact\":\"document\",\"document\":"
#define TARGET_PREFIX "{\"fact\":\"target\",\"document\":"

static bool cut_document(str json, str prefix, str *ret)
{
    if (!str_starts(json, prefix) || !str_ends(json, STR("}")))
        return false;
    *ret = str_part(json, prefix.len, json.len - prefix.len - 1);
    return true;
}

static bool read_other(arena *a, yyjson_val *o, journal_fact *ret, err *error)
{
    str name = get_text(o, "fact");
    size_t kind;
    ret->time = str_eq(name, STR("time"));
    if (ret->time)
        return true;
    if (!word_find(fact_names, COUNT_OF(fact_names), name, &kind))
        return err_set(error, "found the fact \"%s\", which is none", str_shown(name).text);
    ret->fact.kind = (fact_kind)kind;
    switch (ret->fact.kind) {
    case FACT_DOCUMENT_GONE: return read_gone(a, o, &ret->fact.document, error);
    case FACT_TARGET_GONE:
        ret->fact.target = (fact_target){.kind = TARGET_RESOURCE, .name = get_text(o, "name")};
        return true;
    case FACT_JOB: return read_job(o, &ret->fact.job, error);
    case FACT_ACT: return read_act(o, &ret->fact.act, error);
    case FACT_DOCUMENT:
    case FACT_TARGET:
    case FACT_STAGE:
    case FACT_DRAIN:
    case FACT_KEPT:
    case FACT_REPORT: break;
    }
    return err_set(error, "found a fact \"%s\" that cannot be read", str_shown(name).text);
}

bool journal_read_fact(arena *a, str json, journal_fact *ret, err *error)
{
    journal_fact f = {0};
    if (cut_document(json, STR(DOCUMENT_PREFIX), &f.document))
        f.fact.kind = FACT_DOCUMENT;
    else if (cut_document(json, STR(TARGET_PREFIX), &f.document))
        f.fact.kind = FACT_TARGET;
    else {
        yyjson_val *o = json_parse(a, json, error);
        if (!o || !read_other(a, o, &f, error))
            return false;
    }
    *ret = f;
    return true;
}

/* ---- objects ---- */

static int64_t moment_ms(opt_moment m)
{
    return m.set ? m.at.seconds * 1000 + m.at.nanos / 1000000 : 0;
}

fact journal_fact_of(const object *o)
{
    if (o->kind != KIND_RESOURCE)
        return (fact){.kind = FACT_DOCUMENT, .document = o};
    return (fact){.kind = FACT_TARGET,
                  .target = {.kind = TARGET_RESOURCE,
                             .name = o->metadata->name,
                             .uid = o->metadata->uid,
                             .created_ms = moment_ms(o->metadata->creation_timestamp),
                             .labels = o->metadata->labels,
                             .document = o}};
}

fact journal_gone_of(const object *o)
{
    if (o->kind != KIND_RESOURCE)
        return (fact){.kind = FACT_DOCUMENT_GONE, .document = o};
    return (fact){.kind = FACT_TARGET_GONE,
                  .target = {.kind = TARGET_RESOURCE, .name = o->metadata->name}};
}
