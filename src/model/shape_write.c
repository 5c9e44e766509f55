/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdlib.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/num.h"
#include "model/json.h"
#include "model/shape.h"

typedef struct writer {
    buf *out;
    unsigned flags;
} writer;

typedef struct any_list {
    const void *at;
    size_t len;
} any_list;

static void write_struct(writer *w, const shape *s, const void *value);

/* ---- texts ---- */

/* encoding/json escapes these three everywhere, so that its output can stand in HTML, and two ends
 * of lines. */
static bool has_go_escapes(str text)
{
    for (size_t i = 0; i < text.len; i++)
        if (text.ptr[i] == '<' || text.ptr[i] == '>' || text.ptr[i] == '&' || text.ptr[i] == '\xE2')
            return true;
    return false;
}

void json_write_go_text(buf *out, str text)
{
    if (!has_go_escapes(text)) {
        buf_add_json(out, text);
        return;
    }
    scoped(buf_done) buf plain = BUF(LIMIT_TEXT_BYTES);
    buf_add_json(&plain, text);
    if (plain.failed) {
        out->failed = true;
        return;
    }
    for (size_t i = 0; i < plain.len; i++) {
        char c = plain.ptr[i];
        str rest = {plain.ptr + i, plain.len - i};
        if (c == '<' || c == '>' || c == '&') {
            buf_addf(out, "\\u%04x", (unsigned)c);
        } else if (str_starts(rest, STR("\xE2\x80\xA8")) || str_starts(rest, STR("\xE2\x80\xA9"))) {
            buf_addz(out, rest.ptr[2] == '\xA8' ? "\\u2028" : "\\u2029");
            i += 2;
        } else {
            buf_addc(out, c);
        }
    }
}

static void add_text(writer *w, str text)
{
    if (w->flags & SHAPE_WRITE_GO_ESCAPES)
        json_write_go_text(w->out, text);
    else
        buf_add_json(w->out, text);
}

static void add_texts(writer *w, const str *at, size_t len)
{
    buf_addc(w->out, '[');
    for (size_t i = 0; i < len; i++) {
        if (i > 0)
            buf_addc(w->out, ',');
        add_text(w, at[i]);
    }
    buf_addc(w->out, ']');
}

static void add_text_map(writer *w, label_set map)
{
    buf_addc(w->out, '{');
    for (size_t i = 0; i < map.len; i++) {
        if (i > 0)
            buf_addc(w->out, ',');
        add_text(w, map.at[i].key);
        buf_addc(w->out, ':');
        add_text(w, map.at[i].value);
    }
    buf_addc(w->out, '}');
}

static void add_words(writer *w, const word_list *words, uint32_t set)
{
    bool first = true;
    buf_addc(w->out, '[');
    for (size_t i = 0; i < words->len; i++) {
        if (!((set >> i) & 1))
            continue;
        if (!first)
            buf_addc(w->out, ',');
        first = false;
        add_text(w, words->at[i]);
    }
    buf_addc(w->out, ']');
}

/* ---- label selectors ---- */

/* One value for a key that no earlier such term has: it fits into matchLabels. */
static bool is_match_label(const label_query *q, size_t index)
{
    const label_term *t = &q->terms[index];
    if (t->op != LABEL_IN || t->value_count != 1)
        return false;
    for (size_t i = 0; i < index; i++) {
        const label_term *other = &q->terms[i];
        if (other->op == LABEL_IN && other->value_count == 1 && str_eq(other->key, t->key))
            return false;
    }
    return true;
}

static const char *operator_text(label_operator op)
{
    static const char *const texts[] = {
#define X(op, text) [LABEL_##op] = (text),
        LABEL_OPERATORS(X)
#undef X
    };
    return texts[op];
}

static void add_term(writer *w, const label_term *t)
{
    buf_addz(w->out, "{\"key\":");
    add_text(w, t->key);
    buf_addf(w->out, ",\"operator\":\"%s\"", operator_text(t->op));
    if (t->value_count > 0) {
        buf_addz(w->out, ",\"values\":");
        add_texts(w, t->values, t->value_count);
    }
    buf_addc(w->out, '}');
}

static void add_selector(writer *w, const label_query *q)
{
    size_t labels = 0;
    size_t terms = 0;
    buf_addc(w->out, '{');
    for (size_t i = 0; i < q->len; i++) {
        if (!is_match_label(q, i))
            continue;
        buf_addz(w->out, labels++ ? "," : "\"matchLabels\":{");
        add_text(w, q->terms[i].key);
        buf_addc(w->out, ':');
        add_text(w, q->terms[i].values[0]);
    }
    buf_addz(w->out, labels ? "}" : "");
    for (size_t i = 0; i < q->len; i++) {
        if (is_match_label(q, i))
            continue;
        buf_addz(w->out, terms++  ? ","
                         : labels ? ",\"matchExpressions\":["
                                  : "\"matchExpressions\":[");
        add_term(w, &q->terms[i]);
    }
    buf_addz(w->out, terms ? "]}" : "}");
}

/* ---- what need not be written ---- */

static bool equals_default(const field *f, str text)
{
    return f->otherwise && str_eq(str_of(f->otherwise), text);
}

static bool int_is_default(const field *f, int64_t value)
{
    int64_t otherwise = 0;
    if (f->otherwise)
        num_parse(str_of(f->otherwise), &otherwise);
    return value == otherwise;
}

static bool decimal_is_default(const field *f, thousandths value)
{
    return value % 1000 == 0 && int_is_default(f, value / 1000);
}

static bool word_is_default(const field *f, unsigned value)
{
    str word = f->words->at[value];
    if (word.len == 0)
        return true;
    if (f->flags & (FIELD_REQUIRED | FIELD_ALWAYS))
        return false;
    return f->otherwise ? equals_default(f, word) : value == 0;
}

static bool amount_is_default(const field *f, const int_or_percent *v)
{
    if (v->kind == AMOUNT_NONE)
        return true;
    if (v->kind != AMOUNT_COUNT)
        return equals_default(f, v->text);
    int64_t otherwise;
    return f->otherwise && num_parse(str_of(f->otherwise), &otherwise) && otherwise == v->value;
}

static bool words_are_default(const field *f, uint32_t set)
{
    if (!f->otherwise)
        return set == 0;
    for (size_t i = 0; i < f->words->len; i++)
        if (equals_default(f, f->words->at[i]))
            return set == UINT32_C(1) << i;
    return false;
}

/* Absent, or what reading would put there anyway. */
static bool is_default(const field *f, const void *member)
{
    bool always = (f->flags & (FIELD_REQUIRED | FIELD_ALWAYS)) != 0;
    switch (f->type) {
    case FIELD_BOOL:
        return !always &&
               *(const bool *)member == (f->otherwise && str_eq(str_of(f->otherwise), STR("true")));
    case FIELD_OPT_BOOL: return !((const opt_bool *)member)->set;
    case FIELD_INT: return !always && int_is_default(f, *(const int64_t *)member);
    case FIELD_OPT_INT: return !((const opt_int *)member)->set;
    case FIELD_DECIMAL: return !always && decimal_is_default(f, *(const thousandths *)member);
    case FIELD_TEXT:
        return !always &&
               (((const str *)member)->len == 0 || equals_default(f, *(const str *)member));
    case FIELD_ENUM: return word_is_default(f, *(const unsigned *)member);
    case FIELD_ENUM_SET: return words_are_default(f, *(const uint32_t *)member);
    case FIELD_DURATION: return !((const opt_duration *)member)->set;
    case FIELD_TIME: return !((const opt_moment *)member)->set;
    case FIELD_QUANTITY: return !((const quantity *)member)->text.ptr;
    case FIELD_INT_OR_PERCENT: return amount_is_default(f, member);
    case FIELD_SELECTOR:
        return !((const label_query *)member)->compiled ||
               (f->otherwise && ((const label_query *)member)->len == 0);
    case FIELD_EXPRESSION:
        return !((const expression *)member)->source.ptr ||
               equals_default(f, ((const expression *)member)->source);
    case FIELD_TEXT_MAP:
    case FIELD_LABELS:
    case FIELD_TEXT_LIST:
    case FIELD_OBJECT_LIST:
    case FIELD_OBJECT_MAP: return !((const any_list *)member)->at;
    case FIELD_RAW:
    case FIELD_OBJECT: return !*(void *const *)member;
    case FIELD_STRUCT:
    case FIELD_INLINE: return false;
    case FIELD_HEADER: return true;
    }
    return true;
}

/* ---- values ---- */

static void add_duration(writer *w, int64_t ns)
{
    char text[DURATION_TEXT_BYTES];
    size_t len = duration_format(ns, text);
    buf_addc(w->out, '"');
    buf_add(w->out, (str){text, len});
    buf_addc(w->out, '"');
}

static void add_moment(writer *w, moment m)
{
    char text[MOMENT_TEXT_BYTES];
    size_t len = moment_format(m, text);
    buf_addc(w->out, '"');
    buf_add(w->out, (str){text, len});
    buf_addc(w->out, '"');
}

static void add_list(writer *w, const field *f, const any_list *list)
{
    bool map = f->type == FIELD_OBJECT_MAP;
    buf_addc(w->out, map ? '{' : '[');
    for (size_t i = 0; i < list->len; i++) {
        const char *item = (const char *)list->at + i * f->shape->size;
        if (i > 0)
            buf_addc(w->out, ',');
        if (map) {
            add_text(w, *(const str *)(const void *)(item + f->shape->key_offset));
            buf_addc(w->out, ':');
        }
        write_struct(w, f->shape, item);
    }
    buf_addc(w->out, map ? '}' : ']');
}

static void add_amount(writer *w, const int_or_percent *v)
{
    if (v->kind == AMOUNT_COUNT)
        buf_addf(w->out, "%" PRId64, v->value);
    else
        add_text(w, v->text);
}

static void add_decimal(writer *w, thousandths value)
{
    char text[THOUSANDTHS_BYTES];
    thousandths_print(value, text);
    buf_addz(w->out, text);
}

static void add_value(writer *w, const field *f, const void *member)
{
    switch (f->type) {
    case FIELD_BOOL: buf_addz(w->out, *(const bool *)member ? "true" : "false"); break;
    case FIELD_OPT_BOOL:
        buf_addz(w->out, ((const opt_bool *)member)->value ? "true" : "false");
        break;
    case FIELD_INT: buf_addf(w->out, "%" PRId64, *(const int64_t *)member); break;
    case FIELD_OPT_INT: buf_addf(w->out, "%" PRId64, ((const opt_int *)member)->value); break;
    case FIELD_DECIMAL: add_decimal(w, *(const thousandths *)member); break;
    case FIELD_TEXT: add_text(w, *(const str *)member); break;
    case FIELD_ENUM: add_text(w, f->words->at[*(const unsigned *)member]); break;
    case FIELD_ENUM_SET: add_words(w, f->words, *(const uint32_t *)member); break;
    case FIELD_DURATION: add_duration(w, ((const opt_duration *)member)->ns); break;
    case FIELD_TIME: add_moment(w, ((const opt_moment *)member)->at); break;
    case FIELD_QUANTITY: add_text(w, ((const quantity *)member)->text); break;
    case FIELD_INT_OR_PERCENT: add_amount(w, member); break;
    case FIELD_SELECTOR: add_selector(w, member); break;
    case FIELD_EXPRESSION: add_text(w, ((const expression *)member)->source); break;
    case FIELD_TEXT_LIST:
        add_texts(w, ((const str_list *)member)->at, ((const str_list *)member)->len);
        break;
    case FIELD_TEXT_MAP:
    case FIELD_LABELS: add_text_map(w, *(const label_set *)member); break;
    case FIELD_RAW: json_write(w->out, *(const raw_json *)member); break;
    case FIELD_STRUCT: write_struct(w, f->shape, member); break;
    case FIELD_OBJECT: write_struct(w, f->shape, *(void *const *)member); break;
    case FIELD_OBJECT_LIST:
    case FIELD_OBJECT_MAP: add_list(w, f, member); break;
    case FIELD_INLINE:
    case FIELD_HEADER: break;
    }
}

/* ---- objects ---- */

static void add_name(writer *w, str name, bool *first)
{
    if (!*first)
        buf_addc(w->out, ',');
    *first = false;
    add_text(w, name);
    buf_addc(w->out, ':');
}

/* A struct in place that holds only defaults is not written. */
static void write_field(writer *w, const field *f, const void *member, bool *first)
{
    if (is_default(f, member))
        return;
    size_t before = w->out->len;
    bool first_before = *first;
    add_name(w, f->name, first);
    size_t start = w->out->len;
    add_value(w, f, member);
    bool always = (f->flags & (FIELD_REQUIRED | FIELD_ALWAYS)) != 0;
    if (f->type == FIELD_STRUCT && !always && w->out->len == start + 2) {
        w->out->len = before;
        *first = first_before;
    }
}

static void write_fields(writer *w, const shape *s, const char *value, bool *first)
{
    for (size_t i = 0; i < s->field_count; i++) {
        const field *f = &s->fields[i];
        if (f->type == FIELD_INLINE)
            write_fields(w, f->shape, value + f->offset, first);
        else
            write_field(w, f, value + f->offset, first);
    }
    if (s->open != SHAPE_KEPT)
        return;
    const kept_fields *kept = (const kept_fields *)(const void *)(value + s->kept_offset);
    for (size_t i = 0; i < kept->len; i++) {
        add_name(w, kept->at[i].name, first);
        json_write(w->out, kept->at[i].value);
    }
}

static void write_struct(writer *w, const shape *s, const void *value)
{
    if (s->whole) {
        const void *member = (const char *)value + s->whole->offset;
        if (is_default(s->whole, member))
            buf_addz(w->out, "null");
        else
            add_value(w, s->whole, member);
        return;
    }
    bool first = true;
    buf_addc(w->out, '{');
    write_fields(w, s, value, &first);
    buf_addc(w->out, '}');
}

void shape_write(const shape *s, const void *value, buf *out, unsigned flags)
{
    writer w = {out, flags};
    write_struct(&w, s, value);
}

bool shape_equal(const shape *s, const void *a, const void *b)
{
    scoped(buf_done) buf left = BUF(LIMIT_TEXT_BYTES);
    scoped(buf_done) buf right = BUF(LIMIT_TEXT_BYTES);
    shape_write(s, a, &left, 0);
    shape_write(s, b, &right, 0);
    return !left.failed && !right.failed && str_eq(buf_str(&left), buf_str(&right));
}
