/* SPDX-License-Identifier: Apache-2.0 */
/* The text form of a selector, as labels.Parse of Kubernetes' apimachinery reads it:
 *
 *     selector = [ term { "," term } ]
 *     term     = "!" key | key [ ("=" | "==" | "!=") [ value ] | ("in" | "notin") "(" list ")" ]
 *     list     = [ value ] { "," [ value ] }
 *
 * A missing value is the empty one. "in" and "notin" are operators only behind a key. The operators
 * > and < of labels.Parse have no object form and are refused. */
#include "base/limits.h"
#include "base/mem.h"
#include "select/labels.h"

typedef enum token_kind {
    TOKEN_END,
    TOKEN_WORD,
    TOKEN_COMMA,
    TOKEN_NOT,
    TOKEN_EQUAL,
    TOKEN_NOT_EQUAL,
    TOKEN_OPEN,
    TOKEN_CLOSE,
    TOKEN_OTHER,
} token_kind;

typedef struct parser {
    str text;
    size_t at; /* behind the token */
    token_kind kind;
    str token;
    size_t token_at;
    label_term *terms;
    size_t term_count;
    size_t term_room;
    str *values;
    size_t value_count;
    size_t value_room;
    err *error;
} parser;

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static bool is_special(char c)
{
    return c == '=' || c == '!' || c == '(' || c == ')' || c == ',' || c == '>' || c == '<';
}

static size_t word_length(str rest)
{
    size_t n = 0;
    while (n < rest.len && !is_blank(rest.ptr[n]) && !is_special(rest.ptr[n]))
        n++;
    return n;
}

static token_kind special_kind(char c)
{
    switch (c) {
    case ',': return TOKEN_COMMA;
    case '!': return TOKEN_NOT;
    case '=': return TOKEN_EQUAL;
    case '(': return TOKEN_OPEN;
    case ')': return TOKEN_CLOSE;
    default: return TOKEN_OTHER;
    }
}

static void next_token(parser *p)
{
    while (p->at < p->text.len && is_blank(p->text.ptr[p->at]))
        p->at++;
    str rest = str_part(p->text, p->at, p->text.len);
    size_t length = word_length(rest);
    if (rest.len == 0)
        p->kind = TOKEN_END;
    else if (length > 0)
        p->kind = TOKEN_WORD;
    else {
        length = 1;
        p->kind = special_kind(rest.ptr[0]);
        if (str_starts(rest, STR("==")) || str_starts(rest, STR("!="))) {
            length = 2;
            p->kind = rest.ptr[0] == '=' ? TOKEN_EQUAL : TOKEN_NOT_EQUAL;
        }
    }
    p->token = str_part(rest, 0, length);
    p->token_at = p->at;
    p->at += length;
}

static bool fail(const parser *p, const char *allowed)
{
    if (p->kind == TOKEN_END)
        return err_set(p->error, "found the end of the selector, allowed %s", allowed);
    return err_set(p->error, "found \"%s\" at byte %zu of the selector, allowed %s",
                   str_shown(p->token).text, p->token_at + 1, allowed);
}

static bool add_value(parser *p, str value)
{
    if (p->value_count == p->value_room)
        return err_set(p->error, "found a selector with over %u values, allowed at most %u",
                       LIMIT_SELECTOR_VALUES, LIMIT_SELECTOR_VALUES);
    p->values[p->value_count++] = value;
    return true;
}

/* Behind "=", "==" and "!=": one value, which may be missing. */
static bool parse_exact_value(parser *p)
{
    if (p->kind == TOKEN_END || p->kind == TOKEN_COMMA)
        return add_value(p, STR_EMPTY);
    if (p->kind != TOKEN_WORD)
        return fail(p, "a value");
    if (!add_value(p, p->token))
        return false;
    next_token(p);
    return true;
}

/* Behind "in" and "notin". As in Kubernetes "()" holds the empty value: there is no empty list. */
static bool parse_value_list(parser *p)
{
    if (p->kind != TOKEN_OPEN)
        return fail(p, "\"(\"");
    next_token(p);
    for (;;) {
        bool word = p->kind == TOKEN_WORD;
        if (!word && p->kind != TOKEN_COMMA && p->kind != TOKEN_CLOSE)
            return fail(p, "a value, \",\" or \")\"");
        if (!add_value(p, word ? p->token : STR_EMPTY))
            return false;
        if (word)
            next_token(p);
        if (p->kind == TOKEN_CLOSE)
            break;
        if (p->kind != TOKEN_COMMA)
            return fail(p, "\",\" or \")\"");
        next_token(p);
    }
    next_token(p);
    return true;
}

static bool parse_operator(parser *p, label_term *term)
{
    if (p->kind == TOKEN_END || p->kind == TOKEN_COMMA) {
        term->op = LABEL_EXISTS;
        return true;
    }
    bool equal = p->kind == TOKEN_EQUAL;
    bool in = p->kind == TOKEN_WORD && str_eq(p->token, STR("in"));
    bool not_in = p->kind == TOKEN_WORD && str_eq(p->token, STR("notin"));
    if (!equal && !in && !not_in && p->kind != TOKEN_NOT_EQUAL)
        return fail(p, "=, ==, !=, in, notin, \",\" or the end");
    term->op = equal || in ? LABEL_IN : LABEL_NOT_IN;
    next_token(p);
    return in || not_in ? parse_value_list(p) : parse_exact_value(p);
}

static bool parse_term(parser *p)
{
    if (p->term_count == p->term_room)
        return err_set(p->error, "found a selector with over %u terms, allowed at most %u",
                       LIMIT_SELECTOR_TERMS, LIMIT_SELECTOR_TERMS);
    label_term *term = &p->terms[p->term_count];
    bool not = p->kind == TOKEN_NOT;
    if (not)
        next_token(p);
    if (p->kind != TOKEN_WORD)
        return fail(p, not? "a label key" : "a label key or \"!\"");
    size_t first = p->value_count;
    *term = (label_term){.key = p->token, .op = LABEL_DOES_NOT_EXIST};
    /* Here and not only in selector_compile, so that "a b=c" is told what is wrong first. */
    if (!label_key_check(term->key, p->error))
        return false;
    next_token(p);
    if (!not&&!parse_operator(p, term))
        return false;
    term->values = p->values + first;
    term->value_count = p->value_count - first;
    p->term_count++;
    return true;
}

static bool parse_terms(parser *p)
{
    next_token(p);
    if (p->kind == TOKEN_END)
        return true;
    for (;;) {
        if (!parse_term(p))
            return false;
        if (p->kind == TOKEN_END)
            return true;
        if (p->kind != TOKEN_COMMA)
            return fail(p, "\",\" or the end");
        next_token(p);
    }
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

selector *selector_parse(arena *a, str text, err *error)
{
    if (text.len > LIMIT_SELECTOR_BYTES) {
        err_set(error, "found a selector of %zu bytes, allowed at most %u", text.len,
                LIMIT_SELECTOR_BYTES);
        return NULL;
    }
    /* Each term and each value but the first has a comma in front of it. */
    size_t most = 1;
    for (size_t i = 0; i < text.len; i++)
        most += text.ptr[i] == ',';
    parser p = {.text = text, .error = error};
    p.term_room = least(most, LIMIT_SELECTOR_TERMS);
    p.value_room = least(most, LIMIT_SELECTOR_VALUES);
    scoped(arena_cleanup) arena *scratch = arena_new(0);
    if (scratch) {
        p.terms = ARENA_ARRAY(scratch, p.term_room, label_term);
        p.values = ARENA_ARRAY(scratch, p.value_room, str);
    }
    if (!p.terms || !p.values) {
        err_memory(error);
        return NULL;
    }
    return parse_terms(&p) ? selector_compile(a, p.terms, p.term_count, error) : NULL;
}
