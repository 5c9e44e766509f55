/* SPDX-License-Identifier: Apache-2.0 */
#include "model/shape_value.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>

#include "base/mem.h"
#include "base/num.h"
#include "model/json.h"

static const char *const allowed_texts[] = {
#define X(type, c, text) [FIELD_##type] = (text),
    FIELD_TYPES(X)
#undef X
};

#define DECIMAL_MAX 1000000
#define DECIMAL_SLACK 1e-6 /* 33.3 is not quite 33300 thousandths */

/* ---- messages ---- */

void value_describe(const yyjson_val *v, char out[VALUE_DESCRIBED_BYTES])
{
    const size_t size = VALUE_DESCRIBED_BYTES;
    switch (json_type(v)) {
    case YYJSON_TYPE_STR: snprintf(out, size, "text \"%s\"", str_shown(json_str(v)).text); break;
    case YYJSON_TYPE_NUM:
        if (json_number(v) == YYJSON_SUBTYPE_UINT)
            snprintf(out, size, "number %" PRIu64, v->uni.u64);
        else if (json_number(v) == YYJSON_SUBTYPE_SINT)
            snprintf(out, size, "number %" PRId64, v->uni.i64);
        else
            snprintf(out, size, "number %.15g", v->uni.f64);
        break;
    case YYJSON_TYPE_BOOL: snprintf(out, size, "%s", json_is_true(v) ? "true" : "false"); break;
    case YYJSON_TYPE_ARR: snprintf(out, size, "a list"); break;
    case YYJSON_TYPE_OBJ: snprintf(out, size, "an object"); break;
    default: snprintf(out, size, "null"); break;
    }
}

static void describe_allowed(const field *f, buf *out)
{
    if (f->words) {
        bool first = true;
        buf_addz(out, f->type == FIELD_ENUM_SET ? "a list of these: " : "");
        for (size_t i = 0; i < f->words->len; i++) {
            if (f->words->at[i].len == 0)
                continue;
            buf_addf(out, "%s%.*s", first ? "" : ", ", STR_ARG(f->words->at[i]));
            first = false;
        }
        return;
    }
    buf_addz(out, allowed_texts[f->type]);
    if (f->limited && f->max != INT64_MAX)
        buf_addf(out, " from %" PRId64 " to %" PRId64, f->min, f->max);
    else if (f->limited)
        buf_addf(out, " of at least %" PRId64, f->min);
}

void value_refuse(reader *r, const field *f, const place *at)
{
    char found[VALUE_DESCRIBED_BYTES];
    scoped(buf_done) buf allowed = BUF(LIMIT_ERR_BYTES);
    value_describe(at->value, found);
    describe_allowed(f, &allowed);
    if (allowed.failed) {
        reader_memory(r);
        return;
    }
    yyjson_type type = json_type(at->value);
    bool unquoted =
        (f->type == FIELD_TEXT || f->type == FIELD_TEXT_LIST || f->type == FIELD_TEXT_MAP) &&
        (type == YYJSON_TYPE_NUM || type == YYJSON_TYPE_BOOL);
    reader_error(r, at, "found %s, allowed %.*s%s", found, STR_ARG(buf_str(&allowed)),
                 unquoted ? " (put it in quotes)" : "");
}

/* An error of a parser: what it says is what is wrong with the text found. */
static void refuse_because(reader *r, const place *at, const char *allowed, const err *why)
{
    char found[VALUE_DESCRIBED_BYTES];
    value_describe(at->value, found);
    reader_error(r, at, "found %s, allowed %s: %s", found, allowed, why->text);
}

/* ---- scalars ---- */

static bool word_find(const word_list *words, str text, unsigned *ret)
{
    for (size_t i = 0; i < words->len; i++) {
        if (text.len > 0 && str_eq(words->at[i], text)) {
            *ret = (unsigned)i;
            return true;
        }
    }
    return false;
}

static bool int_of(const yyjson_val *v, int64_t *ret)
{
    if (!json_is(v, YYJSON_TYPE_NUM))
        return false;
    if (json_number(v) == YYJSON_SUBTYPE_UINT && v->uni.u64 <= (uint64_t)INT64_MAX)
        *ret = (int64_t)v->uni.u64;
    else if (json_number(v) == YYJSON_SUBTYPE_SINT)
        *ret = v->uni.i64;
    else
        return false;
    return true;
}

static void read_int(reader *r, const field *f, const place *at, int64_t *ret)
{
    int64_t value;
    bool good = int_of(at->value, &value);
    if (!good || (f->limited && (value < f->min || value > f->max)))
        value_refuse(r, f, at);
    else
        *ret = value;
}

/* Whole thousandths, so that nothing is decided by fractions that cannot be written down. What is
 * between two is the larger one: a share that is asked for is never less than what was written. */
static bool thousandths_of(const yyjson_val *v, thousandths *ret)
{
    int64_t whole;
    if (int_of(v, &whole)) {
        *ret = whole > -DECIMAL_MAX && whole < DECIMAL_MAX ? whole * 1000 : INT64_MAX;
        return *ret != INT64_MAX;
    }
    if (!json_is(v, YYJSON_TYPE_NUM) || json_number(v) != YYJSON_SUBTYPE_REAL ||
        !(fabs(v->uni.f64) < (double)DECIMAL_MAX))
        return false;
    *ret = (thousandths)ceil(v->uni.f64 * 1000 - DECIMAL_SLACK);
    return true;
}

static void read_decimal(reader *r, const field *f, const place *at, thousandths *ret)
{
    thousandths value;
    bool good = thousandths_of(at->value, &value);
    if (!good || (f->limited && (value < f->min * 1000 || value > f->max * 1000)))
        value_refuse(r, f, at);
    else
        *ret = value;
}

static void read_text(reader *r, const field *f, const place *at, str *ret)
{
    if (!json_is_text(at->value)) {
        value_refuse(r, f, at);
        return;
    }
    *ret = json_str(at->value);
    err why = {0};
    if (ret->len == 0 && (f->flags & FIELD_FILLED))
        reader_error(r, at, "found an empty text, allowed some");
    else if (f->most > 0 && ret->len > f->most)
        reader_error(r, at, "found %zu bytes, allowed %u", ret->len, f->most);
    else if (f->rule && ret->len > 0 && !f->rule->valid(*ret, &why))
        refuse_because(r, at, f->rule->allowed, &why);
}

static void read_enum(reader *r, const field *f, const place *at, unsigned *ret)
{
    if (!json_is_text(at->value) || !word_find(f->words, json_str(at->value), ret))
        value_refuse(r, f, at);
}

static void read_enum_set(reader *r, const field *f, const place *at, uint32_t *ret)
{
    if (!json_is_array(at->value)) {
        value_refuse(r, f, at);
        return;
    }
    size_t count = json_len(at->value);
    const yyjson_val *item = json_first(at->value);
    for (size_t i = 0; i < count; i++) {
        place here = {at, {NULL, 0}, i, at->document, item};
        unsigned word;
        if (json_is_text(item) && word_find(f->words, json_str(item), &word))
            *ret |= UINT32_C(1) << word;
        else
            value_refuse(r, &(field){.type = FIELD_ENUM, .words = f->words}, &here);
        item = json_next(item);
    }
}

static void read_duration(reader *r, const field *f, const place *at, opt_duration *ret)
{
    err why;
    int64_t ns;
    if (!json_is_text(at->value))
        value_refuse(r, f, at);
    else if (!duration_parse_days(json_str(at->value), &ns, &why))
        reader_error(r, at, "%s", why.text);
    else if (ns < 0)
        reader_error(r, at, "found a negative duration, allowed one of at least 0s");
    else
        *ret = (opt_duration){true, ns};
}

static void read_time(reader *r, const field *f, const place *at, opt_moment *ret)
{
    err why;
    moment m;
    if (!json_is_text(at->value))
        value_refuse(r, f, at);
    else if (!moment_parse(json_str(at->value), &m, &why))
        reader_error(r, at, "%s", why.text);
    else
        *ret = (opt_moment){true, m};
}

static void read_quantity(reader *r, const field *f, const place *at, quantity *ret)
{
    str text = STR_EMPTY;
    int64_t number;
    err why;
    if (json_is_text(at->value)) {
        text = json_str(at->value);
    } else if (int_of(at->value, &number)) {
        text = arena_printf(r->arena, "%" PRId64, number);
        if (!text.ptr) {
            reader_memory(r);
            return;
        }
    } else {
        value_refuse(r, f, at);
        return;
    }
    if (!quantity_parse(text, ret, &why))
        refuse_because(r, at, allowed_texts[f->type], &why);
}

static void read_amount(reader *r, const field *f, const place *at, int_or_percent *ret)
{
    int64_t number;
    err why = {0};
    if (int_of(at->value, &number)) {
        *ret = (int_or_percent){.kind = AMOUNT_COUNT, .value = number};
        if (number < 0)
            reader_warning(r, at, "found number %" PRId64 ", which counts as 0", number);
    } else if (!json_is_text(at->value)) {
        value_refuse(r, f, at);
    } else if (!int_or_percent_parse(json_str(at->value), ret, &why)) {
        refuse_because(r, at, allowed_texts[f->type], &why);
    } else if (ret->kind == AMOUNT_PERCENT && ret->value <= 0) {
        reader_warning(r, at, "found \"%.*s\", which counts as one", STR_ARG(ret->text));
    }
}

/* ---- CEL ---- */

static void read_expression(reader *r, const field *f, const place *at, expression *ret)
{
    str source;
    err why;
    /* YAML makes a bool of a plain true. */
    if (json_is(at->value, YYJSON_TYPE_BOOL))
        source = json_is_true(at->value) ? STR("true") : STR("false");
    else if (json_is_text(at->value))
        source = json_str(at->value);
    else {
        value_refuse(r, f, at);
        return;
    }
    assert(r->expressions);
    if (!expression_compile(r->expressions, source, f->scope, ret, &why))
        reader_error(r, at, "found an expression that does not compile, at %s; it may use %s",
                     why.text, expression_scope_text(f->scope));
}

/* ---- label selectors ---- */

static bool read_values(reader *r, const place *at, label_term *term)
{
    static const field values = {.type = FIELD_TEXT_LIST};
    str_list list = {0};
    uint64_t before = r->errors;
    value_read(r, &values, at, &list);
    term->values = list.at;
    term->value_count = list.len;
    return r->errors == before && !r->no_memory;
}

static bool read_term_member(reader *r, const place *at, label_term *term)
{
    if (str_eq(at->key, STR("key")) && json_is_text(at->value)) {
        term->key = json_str(at->value);
        return true;
    }
    if (str_eq(at->key, STR("operator")) && json_is_text(at->value)) {
        static const str names[] = {
#define X(op, text) [LABEL_##op] = {text, sizeof(text) - 1},
            LABEL_OPERATORS(X)
#undef X
        };
        const word_list words = {names, sizeof names / sizeof names[0]};
        unsigned op;
        if (word_find(&words, json_str(at->value), &op)) {
            term->op = (label_operator)op;
            return true;
        }
        char found[VALUE_DESCRIBED_BYTES];
        value_describe(at->value, found);
        reader_error(r, at, "found %s, allowed In, NotIn, Exists, DoesNotExist", found);
        return false;
    }
    if (str_eq(at->key, STR("values")))
        return json_is(at->value, YYJSON_TYPE_NULL) || read_values(r, at, term);
    bool known = str_eq(at->key, STR("key")) || str_eq(at->key, STR("operator"));
    if (known)
        value_refuse(r, &(field){.type = FIELD_TEXT}, at);
    else
        reader_error(r, at, "found an unknown field, allowed key, operator and values");
    return false;
}

/* One entry of matchExpressions. */
static bool read_term(reader *r, const place *at, label_term *ret)
{
    bool has_key = false;
    bool has_operator = false;
    if (!json_is_object(at->value)) {
        value_refuse(r, &(field){.type = FIELD_OBJECT}, at);
        return false;
    }
    size_t count = json_len(at->value);
    const yyjson_val *key = json_first(at->value);
    for (size_t i = 0; i < count; i++, key = json_next(key + 1)) {
        place here = {at, json_str(key), 0, at->document, key + 1};
        if (!read_term_member(r, &here, ret))
            return false;
        has_key = has_key || str_eq(here.key, STR("key"));
        has_operator = has_operator || str_eq(here.key, STR("operator"));
    }
    if (!has_key || !has_operator)
        reader_error(r, at, "found no %s, which is required", has_key ? "operator" : "key");
    return has_key && has_operator;
}

/* The terms of one member, "matchLabels" or "matchExpressions", appended to terms. */
static bool read_terms(reader *r, const place *at, label_term *terms, size_t *used)
{
    if (json_is(at->value, YYJSON_TYPE_NULL))
        return true;
    bool labels = str_eq(at->key, STR("matchLabels"));
    if (!labels && !str_eq(at->key, STR("matchExpressions"))) {
        reader_error(r, at, "found an unknown field, allowed matchLabels and matchExpressions");
        return false;
    }
    if (labels ? !json_is_object(at->value) : !json_is_array(at->value)) {
        value_refuse(r, &(field){.type = labels ? FIELD_LABELS : FIELD_OBJECT_LIST}, at);
        return false;
    }
    size_t count = json_len(at->value);
    const yyjson_val *item = json_first(at->value);
    for (size_t i = 0; i < count; i++, item = json_next(item)) {
        place here = {at, {NULL, 0}, i, at->document, item};
        if (labels) {
            here.key = json_str(item);
            here.value = ++item;
            str *value = ARENA_NEW(r->arena, str);
            if (!value)
                return reader_memory(r);
            if (!json_is_text(item)) {
                value_refuse(r, &(field){.type = FIELD_TEXT}, &here);
                return false;
            }
            *value = json_str(item);
            terms[(*used)++] = (label_term){here.key, LABEL_IN, value, 1};
        } else if (!read_term(r, &here, &terms[(*used)++])) {
            return false;
        }
    }
    return true;
}

static void read_selector(reader *r, const field *f, const place *at, label_query *ret)
{
    if (!json_is_object(at->value)) {
        value_refuse(r, f, at);
        return;
    }
    size_t members = json_len(at->value);
    size_t most = 0;
    const yyjson_val *key = json_first(at->value);
    for (size_t i = 0; i < members; i++, key = json_next(key + 1))
        most += json_is_container(key + 1) ? json_len(key + 1) : 0;
    label_term *terms = ARENA_ARRAY(r->arena, most, label_term);
    if (!terms) {
        reader_memory(r);
        return;
    }
    size_t used = 0;
    key = json_first(at->value);
    for (size_t i = 0; i < members; i++, key = json_next(key + 1)) {
        place here = {at, json_str(key), 0, at->document, key + 1};
        if (!read_terms(r, &here, terms, &used))
            return;
    }
    err why;
    const selector *compiled = selector_compile(r->arena, terms, used, &why);
    if (!compiled)
        reader_error(r, at, "found a label selector that is not one: %s", why.text);
    else
        *ret = (label_query){compiled, terms, used};
}

/* ---- texts ---- */

static void read_text_list(reader *r, const field *f, const place *at, str_list *ret)
{
    if (!json_is_array(at->value)) {
        value_refuse(r, f, at);
        return;
    }
    size_t count = json_len(at->value);
    str *texts = ARENA_ARRAY(r->arena, count, str);
    if (!texts) {
        reader_memory(r);
        return;
    }
    const yyjson_val *item = json_first(at->value);
    for (size_t i = 0; i < count; i++, item = json_next(item)) {
        place here = {at, {NULL, 0}, i, at->document, item};
        if (json_is_text(item))
            texts[i] = json_str(item);
        else
            value_refuse(r, &(field){.type = FIELD_TEXT}, &here);
    }
    if (count == 0 && (f->flags & FIELD_FILLED))
        reader_error(r, at, "found an empty list, allowed at least one entry");
    *ret = (str_list){texts, count};
}

static bool in_order(const label *at, size_t len)
{
    for (size_t i = 1; i < len; i++)
        if (str_cmp(at[i - 1].key, at[i].key) >= 0)
            return false;
    return true;
}

/* What Kubernetes writes is in order already. */
static void read_text_map(reader *r, const field *f, const place *at, label_set *ret)
{
    if (!json_is_object(at->value)) {
        value_refuse(r, f, at);
        return;
    }
    size_t count = json_len(at->value);
    if (f->most > 0 && count > f->most) {
        reader_error(r, at, "found %zu entries, allowed %u", count, f->most);
        return;
    }
    label *labels = ARENA_ARRAY(r->arena, count, label);
    if (!labels) {
        reader_memory(r);
        return;
    }
    const yyjson_val *key = json_first(at->value);
    err why;
    for (size_t i = 0; i < count; i++, key = json_next(key + 1)) {
        labels[i].key = json_str(key);
        if (json_is_text(key + 1)) {
            labels[i].value = json_str(key + 1);
            if (f->type != FIELD_LABELS)
                continue;
        }
        place here = {at, labels[i].key, 0, at->document, key + 1};
        if (!json_is_text(key + 1))
            value_refuse(r, &(field){.type = FIELD_TEXT}, &here);
        else if (!label_key_check(labels[i].key, &why) || !label_value_check(labels[i].value, &why))
            reader_error(r, &here, "found a label that is not one: %s", why.text);
    }
    *ret = (label_set){labels, count};
    if (!in_order(labels, count) && !label_set_sort(labels, count, ret, &why))
        reader_error(r, at, "%s", why.text);
}

/* ---- all of them ---- */

static void read_bool(reader *r, const field *f, const place *at, bool *ret)
{
    if (json_is(at->value, YYJSON_TYPE_BOOL))
        *ret = json_is_true(at->value);
    else
        value_refuse(r, f, at);
}

void value_read(reader *r, const field *f, const place *at, void *member)
{
    switch (f->type) {
    case FIELD_BOOL: read_bool(r, f, at, member); break;
    case FIELD_OPT_BOOL:
        ((opt_bool *)member)->set = true;
        read_bool(r, f, at, &((opt_bool *)member)->value);
        break;
    case FIELD_INT: read_int(r, f, at, member); break;
    case FIELD_DECIMAL: read_decimal(r, f, at, member); break;
    case FIELD_OPT_INT:
        ((opt_int *)member)->set = true;
        read_int(r, f, at, &((opt_int *)member)->value);
        break;
    case FIELD_TEXT: read_text(r, f, at, member); break;
    case FIELD_ENUM: read_enum(r, f, at, member); break;
    case FIELD_ENUM_SET: read_enum_set(r, f, at, member); break;
    case FIELD_DURATION: read_duration(r, f, at, member); break;
    case FIELD_TIME: read_time(r, f, at, member); break;
    case FIELD_QUANTITY: read_quantity(r, f, at, member); break;
    case FIELD_INT_OR_PERCENT: read_amount(r, f, at, member); break;
    case FIELD_SELECTOR: read_selector(r, f, at, member); break;
    case FIELD_EXPRESSION: read_expression(r, f, at, member); break;
    case FIELD_TEXT_LIST: read_text_list(r, f, at, member); break;
    case FIELD_TEXT_MAP:
    case FIELD_LABELS: read_text_map(r, f, at, member); break;
    case FIELD_RAW:
        *(raw_json *)member = at->value;
        if (f->as)
            value_look(r, f->as, at);
        break;
    case FIELD_STRUCT:
    case FIELD_OBJECT:
    case FIELD_OBJECT_LIST:
    case FIELD_OBJECT_MAP:
    case FIELD_INLINE:
    case FIELD_HEADER: break;
    }
}

/* A default is text in a table: that it is right is the table's business. */
void value_default(reader *r, const field *f, const place *at, void *member)
{
    if (!f->otherwise)
        return;
    str text = str_of(f->otherwise);
    yyjson_val value = {.tag = YYJSON_TYPE_STR | (uint64_t)text.len << YYJSON_TAG_BIT,
                        .uni.str = text.ptr};
    int64_t number;
    if (f->type == FIELD_BOOL || f->type == FIELD_OPT_BOOL) {
        bool truth = str_eq(text, STR("true"));
        value.tag = YYJSON_TYPE_BOOL | (truth ? YYJSON_SUBTYPE_TRUE : YYJSON_SUBTYPE_FALSE);
    } else if (f->type == FIELD_SELECTOR) {
        value = json_empty_object;
    } else if (f->type == FIELD_ENUM_SET) {
        unsigned word = 0;
        bool known = word_find(f->words, text, &word);
        assert(known);
        *(uint32_t *)member = UINT32_C(1) << word;
        return;
    } else if (num_parse(text, &number) && f->type != FIELD_TEXT) {
        value = (yyjson_val){.tag = YYJSON_TYPE_NUM | YYJSON_SUBTYPE_SINT, .uni.i64 = number};
    }
    place here = *at;
    here.value = &value;
    value_read(r, f, &here, member);
}
