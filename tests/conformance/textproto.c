/* SPDX-License-Identifier: Apache-2.0 */
#include "textproto.h"

#include <ctype.h>
#include <stdio.h>

typedef struct reader {
    arena *arena;
    str text;
    size_t at;
    unsigned depth;
    err *error;
} reader;

static bool fail(reader *r, const char *what)
{
    unsigned line = 1;
    for (size_t i = 0; i < r->at && i < r->text.len; i++)
        line += r->text.ptr[i] == '\n';
    return err_set(r->error, "line %u: %s", line, what);
}

static char peek(reader *r)
{
    while (r->at < r->text.len) {
        char c = r->text.ptr[r->at];
        if (c == '#')
            while (r->at < r->text.len && r->text.ptr[r->at] != '\n')
                r->at++;
        else if (isspace((unsigned char)c) || c == ',' || c == ';')
            r->at++;
        else
            return c;
    }
    return '\0';
}

static bool take(reader *r, char c)
{
    if (peek(r) != c)
        return false;
    r->at++;
    return true;
}

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || (c && strchr("_.+-/", c));
}

static str word(reader *r)
{
    peek(r);
    size_t from = r->at;
    while (r->at < r->text.len && is_word(r->text.ptr[r->at]))
        r->at++;
    return (str){r->text.ptr + from, r->at - from};
}

static int digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : 99;
}

/* At most "most" digits of a base; *ret_count says how many there were. */
static uint32_t digits(reader *r, int base, int most, int *ret_count)
{
    uint32_t value = 0;
    *ret_count = 0;
    while (*ret_count < most && r->at < r->text.len && digit(r->text.ptr[r->at]) < base) {
        value = value * (uint32_t)base + (uint32_t)digit(r->text.ptr[r->at++]);
        (*ret_count)++;
    }
    return value;
}

static bool escape(reader *r, char *out, size_t *len)
{
    static const char from[] = "abfnrtv\\?\"'";
    static const char to[] = "\a\b\f\n\r\t\v\\?\"'";
    char c = r->at < r->text.len ? r->text.ptr[r->at] : '\0';
    const char *simple = c ? strchr(from, c) : NULL;
    int count = 1;
    if (simple) {
        r->at++;
        out[(*len)++] = to[simple - from];
    } else if (c == 'x' || c == 'X') {
        r->at++;
        out[(*len)++] = (char)digits(r, 16, 2, &count);
    } else if (c == 'u' || c == 'U') {
        r->at++;
        *len += str_utf8_put(digits(r, 16, c == 'u' ? 4 : 8, &count), out + *len);
    } else {
        out[(*len)++] = (char)digits(r, 8, 3, &count);
    }
    return count > 0 || fail(r, "unknown escape");
}

/* Bytes up to the last closing quote of the strings in a row: no escape makes text longer. */
static size_t room(const reader *r)
{
    reader ahead = *r;
    for (char quote = peek(&ahead); quote == '"' || quote == '\''; quote = peek(&ahead)) {
        ahead.at++;
        while (ahead.at < ahead.text.len && ahead.text.ptr[ahead.at] != quote)
            ahead.at += ahead.text.ptr[ahead.at] == '\\' ? 2 : 1;
        ahead.at++;
    }
    return ahead.at - r->at + 8;
}

/* One or more quoted strings in a row are one. */
static bool quoted(reader *r, str *ret)
{
    char *out = arena_alloc(r->arena, room(r));
    size_t len = 0;
    if (!out)
        return fail(r, "out of memory");
    for (char quote = peek(r); quote == '"' || quote == '\''; quote = peek(r)) {
        r->at++;
        while (r->at < r->text.len && r->text.ptr[r->at] != quote) {
            char c = r->text.ptr[r->at++];
            if (c == '\n')
                return fail(r, "a string is not closed");
            if (c != '\\')
                out[len++] = c;
            else if (!escape(r, out, &len))
                return false;
        }
        if (r->at >= r->text.len)
            return fail(r, "a string is not closed");
        r->at++;
    }
    *ret = (str){out, len};
    return true;
}

static bool message(reader *r, char closing, text_field **ret);

static bool value(reader *r, text_field *f)
{
    char c = peek(r);
    if (c == '{' || c == '<') {
        r->at++;
        f->is_message = true;
        return message(r, c == '{' ? '}' : '>', &f->fields);
    }
    if (c == '"' || c == '\'') {
        f->quoted = true;
        return quoted(r, &f->scalar);
    }
    f->scalar = word(r);
    return f->scalar.len > 0 || fail(r, "expected a value");
}

static bool field_name(reader *r, str *ret)
{
    if (!take(r, '[')) {
        *ret = word(r);
        return ret->len > 0 || fail(r, "expected a field name");
    }
    *ret = word(r);
    return take(r, ']') || fail(r, "expected ]");
}

static bool message(reader *r, char closing, text_field **ret)
{
    text_field **end = ret;
    if (++r->depth > 200)
        return fail(r, "nested too deep");
    while (peek(r) != closing) {
        if (peek(r) == '\0')
            return fail(r, "a message is not closed");
        str name;
        if (!field_name(r, &name))
            return false;
        take(r, ':');
        bool list = take(r, '[');
        do {
            text_field *f = ARENA_NEW(r->arena, text_field);
            if (!f)
                return fail(r, "out of memory");
            f->name = name;
            if (list && peek(r) == ']')
                break;
            if (!value(r, f))
                return false;
            *end = f;
            end = &f->next;
        } while (list && peek(r) != ']');
        if (list && !take(r, ']'))
            return fail(r, "expected ]");
    }
    if (closing)
        r->at++;
    r->depth--;
    return true;
}

bool textproto_read(arena *a, str text, text_field **ret, err *error)
{
    reader r = {.arena = a, .text = text, .error = error};
    *ret = NULL;
    return message(&r, '\0', ret);
}

text_field *text_find(text_field *fields, const char *name)
{
    while (fields && !str_eq(fields->name, str_of(name)))
        fields = fields->next;
    return fields;
}

text_field *text_inside(text_field *fields, const char *name)
{
    text_field *f = text_find(fields, name);
    return f ? f->fields : NULL;
}

str text_scalar(text_field *fields, const char *name)
{
    text_field *f = text_find(fields, name);
    return f && !f->is_message ? f->scalar : STR_EMPTY;
}

bool text_true(text_field *fields, const char *name)
{
    return str_eq(text_scalar(fields, name), STR("true"));
}
