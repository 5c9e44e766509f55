/* SPDX-License-Identifier: Apache-2.0 */
#include "select/labels.h"

#include <assert.h>
#include <stdlib.h>

#include "base/limits.h"

/* Up to here looking at each entry beats halving: lengths differ early, nothing is mispredicted. */
#define LINEAR_MOST 24

/* Sorted by key, operator and values, without doubles, so that equal selectors look the same. */
typedef struct requirement {
    str key;
    label_operator op;
    const str *values; /* sorted, without doubles */
    size_t value_count;
} requirement;

struct selector {
    size_t count;
    requirement at[];
};

static const char *const operator_names[] = {
#define X(op, text) [LABEL_##op] = (text),
    LABEL_OPERATORS(X)
#undef X
};

/* Keys and values. */

static bool is_lower_or_digit(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

static bool is_alphanumeric(char c)
{
    return is_lower_or_digit(c) || (c >= 'A' && c <= 'Z');
}

/* ([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9] */
static bool is_plain_name(str text)
{
    if (text.len == 0 || !is_alphanumeric(text.ptr[0]) || !is_alphanumeric(text.ptr[text.len - 1]))
        return false;
    for (size_t i = 1; i + 1 < text.len; i++) {
        char c = text.ptr[i];
        if (!is_alphanumeric(c) && c != '-' && c != '_' && c != '.')
            return false;
    }
    return true;
}

/* RFC 1123 labels with dots between them, as Kubernetes checks them: the length of one is free. */
static bool is_dns_name(str text)
{
    do {
        str part = str_cut(&text, '.');
        if (part.len == 0 || !is_lower_or_digit(part.ptr[0]) ||
            !is_lower_or_digit(part.ptr[part.len - 1]))
            return false;
        for (size_t i = 0; i < part.len; i++)
            if (!is_lower_or_digit(part.ptr[i]) && part.ptr[i] != '-')
                return false;
    } while (text.ptr);
    return true;
}

bool label_key_check(str key, err *error)
{
    str prefix = STR_EMPTY;
    str name = key;
    bool has_prefix = str_find(key, STR("/")) != SIZE_MAX;
    if (has_prefix)
        prefix = str_cut(&name, '/');
    if (has_prefix && !is_dns_name(prefix))
        return err_set(error,
                       "found label key \"%s\", allowed before \"/\" a DNS name of lower-case "
                       "letters, digits, \"-\" and \".\"",
                       str_shown(key).text);
    if (prefix.len > LIMIT_LABEL_PREFIX_BYTES)
        return err_set(error,
                       "found label key \"%s\" with %zu bytes before \"/\", allowed at most %d",
                       str_shown(key).text, prefix.len, LIMIT_LABEL_PREFIX_BYTES);
    if (!is_plain_name(name))
        return err_set(error,
                       "found label key \"%s\", allowed %sletters, digits, \"-\", \"_\" and \".\", "
                       "a letter or digit first and last",
                       str_shown(key).text, has_prefix ? "after \"/\" " : "");
    if (name.len > LIMIT_LABEL_NAME_BYTES)
        return err_set(error, "found label key \"%s\" with a name of %zu bytes, allowed at most %d",
                       str_shown(key).text, name.len, LIMIT_LABEL_NAME_BYTES);
    return true;
}

bool label_value_check(str value, err *error)
{
    if (value.len > LIMIT_LABEL_VALUE_BYTES)
        return err_set(error, "found label value \"%s\" of %zu bytes, allowed at most %d",
                       str_shown(value).text, value.len, LIMIT_LABEL_VALUE_BYTES);
    if (value.len > 0 && !is_plain_name(value))
        return err_set(error,
                       "found label value \"%s\", allowed letters, digits, \"-\", \"_\" and \".\", "
                       "a letter or digit first and last, or nothing",
                       str_shown(value).text);
    return true;
}

/* Sets of labels. */

static inline uint64_t word_at(const char *ptr)
{
    uint64_t word;
    memcpy(&word, ptr, sizeof word);
    return word;
}

/* str_eq without its call: keys are short, and this is where matching spends its time. */
static inline bool same(str a, str b)
{
    if (a.len != b.len)
        return false;
    if (a.len < 8)
        return str_eq(a, b);
    /* The last word overlaps the one before it; it differs most often, so it is first. */
    size_t last = a.len - 8;
    if (word_at(a.ptr + last) != word_at(b.ptr + last))
        return false;
    for (size_t i = 0; i < last; i += 8)
        if (word_at(a.ptr + i) != word_at(b.ptr + i))
            return false;
    return true;
}

static int label_order(const void *a, const void *b)
{
    return str_cmp(((const label *)a)->key, ((const label *)b)->key);
}

bool label_set_sort(label *at, size_t len, label_set *ret, err *error)
{
    bool sorted = true;
    for (size_t i = 1; i < len && sorted; i++)
        sorted = str_cmp(at[i - 1].key, at[i].key) < 0;
    if (!sorted)
        qsort(at, len, sizeof *at, label_order);
    for (size_t i = 1; i < len && !sorted; i++)
        if (str_eq(at[i - 1].key, at[i].key))
            return err_set(error, "found label key \"%s\" twice, allowed once",
                           str_shown(at[i].key).text);
    *ret = (label_set){at, len};
    return true;
}

static const label *find_label(label_set labels, str key)
{
    const label *at = labels.at;
    size_t len = labels.len;
    if (len <= LINEAR_MOST) {
        for (size_t i = 0; i < len; i++)
            if (same(at[i].key, key))
                return &at[i];
        return NULL;
    }
    while (len > 0) {
        size_t half = len / 2;
        int order = str_cmp(key, at[half].key);
        if (order == 0)
            return &at[half];
        if (order > 0) {
            at += half + 1;
            len -= half + 1;
        } else
            len = half;
    }
    return NULL;
}

str label_get(label_set labels, str key)
{
    const label *found = find_label(labels, key);
    if (!found)
        return (str){NULL, 0};
    return found->value.ptr ? found->value : STR_EMPTY;
}

/* Compiling. */

static int str_order(const void *a, const void *b)
{
    return str_cmp(*(const str *)a, *(const str *)b);
}

static int requirement_order(const void *left, const void *right)
{
    const requirement *a = left;
    const requirement *b = right;
    int order = str_cmp(a->key, b->key);
    if (order == 0)
        order = (int)a->op - (int)b->op;
    for (size_t i = 0; order == 0 && i < a->value_count && i < b->value_count; i++)
        order = str_cmp(a->values[i], b->values[i]);
    if (order == 0)
        order = (a->value_count > b->value_count) - (a->value_count < b->value_count);
    return order;
}

static bool check_value_count(const label_term *term, err *error)
{
    const char *found = operator_names[term->op];
    switch (term->op) {
    case LABEL_IN:
    case LABEL_NOT_IN:
        return term->value_count > 0 ||
               err_set(error, "found %s without values, allowed one value or more", found);
    case LABEL_EXISTS:
    case LABEL_DOES_NOT_EXIST:
        return term->value_count == 0 ||
               err_set(error, "found values with %s, allowed none", found);
    }
    return false;
}

static bool check_term(const label_term *term, err *error)
{
    assert((size_t)term->op < sizeof operator_names / sizeof operator_names[0]);
    if (!label_key_check(term->key, error))
        return false;
    bool good = check_value_count(term, error);
    for (size_t i = 0; good && i < term->value_count; i++)
        good = label_value_check(term->values[i], error);
    return good || err_wrap(error, "label key \"%s\"", str_shown(term->key).text);
}

static bool check_terms(const label_term *terms, size_t count, err *error)
{
    if (count > LIMIT_SELECTOR_TERMS)
        return err_set(error, "found a selector with %zu terms, allowed at most %u", count,
                       LIMIT_SELECTOR_TERMS);
    size_t values = 0;
    for (size_t i = 0; i < count; i++) {
        if (terms[i].value_count > LIMIT_SELECTOR_VALUES - values)
            return err_set(error, "found a selector with over %u values, allowed at most %u",
                           LIMIT_SELECTOR_VALUES, LIMIT_SELECTOR_VALUES);
        values += terms[i].value_count;
        if (!check_term(&terms[i], error))
            return false;
    }
    return true;
}

static bool copy_term(arena *a, const label_term *term, requirement *ret)
{
    str key = arena_str(a, term->key);
    str *values = ARENA_ARRAY(a, term->value_count, str);
    if (!key.ptr || !values)
        return false;
    for (size_t i = 0; i < term->value_count; i++) {
        values[i] = arena_str(a, term->values[i]);
        if (!values[i].ptr)
            return false;
    }
    size_t kept = term->value_count;
    if (kept > 1) {
        qsort(values, kept, sizeof *values, str_order);
        kept = 1;
        for (size_t i = 1; i < term->value_count; i++)
            if (!str_eq(values[i], values[kept - 1]))
                values[kept++] = values[i];
    }
    *ret = (requirement){key, term->op, values, kept};
    return true;
}

static selector *copy_terms(arena *a, const label_term *terms, size_t count)
{
    selector *s = arena_alloc(a, sizeof *s + count * sizeof s->at[0]);
    if (!s)
        return NULL;
    for (size_t i = 0; i < count; i++)
        if (!copy_term(a, &terms[i], &s->at[i]))
            return NULL;
    s->count = count;
    if (count > 1) {
        qsort(s->at, count, sizeof s->at[0], requirement_order);
        s->count = 1;
        for (size_t i = 1; i < count; i++)
            if (requirement_order(&s->at[i], &s->at[s->count - 1]) != 0)
                s->at[s->count++] = s->at[i];
    }
    return s;
}

selector *selector_compile(arena *a, const label_term *terms, size_t count, err *error)
{
    if (!check_terms(terms, count, error))
        return NULL;
    arena_place before = arena_mark(a);
    selector *s = copy_terms(a, terms, count);
    if (!s) {
        arena_rewind(a, before);
        err_memory(error);
    }
    return s;
}

/* Matching. */

static bool has_value(const requirement *r, str value)
{
    if (r->value_count > LINEAR_MOST)
        return bsearch(&value, r->values, r->value_count, sizeof value, str_order) != NULL;
    for (size_t i = 0; i < r->value_count; i++)
        if (same(r->values[i], value))
            return true;
    return false;
}

bool selector_match(const selector *s, label_set labels)
{
    if (!s)
        return false;
    for (size_t i = 0; i < s->count; i++) {
        const requirement *r = &s->at[i];
        const label *found = find_label(labels, r->key);
        if (found) { /* both are sorted by key: the next one does not stand before it */
            labels.len -= (size_t)(found - labels.at);
            labels.at = found;
        }
        bool holds = false;
        switch (r->op) {
        case LABEL_IN: holds = found && has_value(r, found->value); break;
        /* Kubernetes: what has no such label is not in the list, either. */
        case LABEL_NOT_IN: holds = !found || !has_value(r, found->value); break;
        case LABEL_EXISTS: holds = found; break;
        case LABEL_DOES_NOT_EXIST: holds = !found; break;
        }
        if (!holds)
            return false;
    }
    return true;
}

bool selector_equal(const selector *a, const selector *b)
{
    if (!a || !b)
        return a == b;
    if (a->count != b->count)
        return false;
    for (size_t i = 0; i < a->count; i++)
        if (requirement_order(&a->at[i], &b->at[i]) != 0)
            return false;
    return true;
}
