/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "select/cel_internal.h"

const char *cel_token_name(token_kind kind)
{
    static const char *const names[] = {
#define X(kind, text) text,
        CEL_TOKENS(X)
#undef X
    };
    return names[kind];
}

void cel_position(str source, size_t at, unsigned *ret_line, unsigned *ret_column)
{
    unsigned line = 1;
    unsigned column = 1;
    for (size_t i = 0; i < at && i < source.len; i++) {
        if (source.ptr[i] == '\n') {
            line++;
            column = 1;
        } else if (((unsigned char)source.ptr[i] & 0xC0) != 0x80) {
            column++;
        }
    }
    *ret_line = line;
    *ret_column = column;
}

static bool fail_with(lexer *lx, size_t at, const char *format, va_list args)
{
    if (!lx->failed) {
        lx->failed = true;
        cel_position(lx->source, at, &lx->error->line, &lx->error->column);
        vsnprintf(lx->error->message, sizeof lx->error->message, format, args);
    }
    return false;
}

bool cel_lex_fail(lexer *lx, size_t at, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fail_with(lx, at, format, args);
    va_end(args);
    return false;
}

bool cel_parse_fail(parser *p, uint32_t at, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fail_with(&p->lx, at, format, args);
    va_end(args);
    return false;
}

bool cel_check_fail(checker *c, uint32_t at, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fail_with(c->lx, at, format, args);
    va_end(args);
    return false;
}

bool cel_check_mismatch(checker *c, uint32_t at, const char *format, ...)
{
    if (c->env->unchecked)
        return true;
    va_list args;
    va_start(args, format);
    fail_with(c->lx, at, format, args);
    va_end(args);
    return false;
}

static char peek(const lexer *lx, size_t ahead)
{
    return lx->at + ahead < lx->source.len ? lx->source.ptr[lx->at + ahead] : '\0';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_name_start(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_name(char c)
{
    return is_name_start(c) || is_digit(c);
}

static int hex_digit(char c)
{
    if (is_digit(c))
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

static void skip_space(lexer *lx)
{
    while (lx->at < lx->source.len) {
        char c = lx->source.ptr[lx->at];
        if (c == '/' && peek(lx, 1) == '/') {
            const char *end = memchr(lx->source.ptr + lx->at, '\n', lx->source.len - lx->at);
            lx->at = end ? (size_t)(end - lx->source.ptr) : lx->source.len;
        } else if (c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f') {
            lx->at++;
        } else {
            return;
        }
    }
}

/* ---- Numbers ------------------------------------------------------------------------------ */

static token literal(cel_value value)
{
    return (token){.kind = TOKEN_LITERAL, .value = value};
}

static token bad(lexer *lx, size_t at, const char *text)
{
    cel_lex_fail(lx, at, "%s", text);
    return (token){.kind = TOKEN_BAD};
}

static token lex_double(lexer *lx, size_t start)
{
    char text[512];
    size_t len = lx->at - start;
    if (len >= sizeof text)
        return bad(lx, start, "a number with more than 511 digits");
    memcpy(text, lx->source.ptr + start, len);
    text[len] = '\0';
    return literal(cel_double(strtod(text, NULL)));
}

/* The digits are in [from, at). The sign of the smallest int is not ours: MIN_INT. */
static token lex_integer(lexer *lx, size_t start, size_t from, unsigned base)
{
    uint64_t value = 0;
    bool overflow = false;
    for (size_t i = from; i < lx->at; i++) {
        uint64_t digit = (uint64_t)hex_digit(lx->source.ptr[i]);
        overflow = overflow || __builtin_mul_overflow(value, base, &value) ||
                   __builtin_add_overflow(value, digit, &value);
    }
    if (peek(lx, 0) == 'u' || peek(lx, 0) == 'U') {
        lx->at++;
        return overflow ? bad(lx, start, "the number does not fit uint (64 bits)")
                        : literal(cel_uint(value));
    }
    if (!overflow && value == (uint64_t)INT64_MAX + 1)
        return (token){.kind = TOKEN_MIN_INT};
    if (overflow || value > INT64_MAX)
        return bad(lx, start, "the number does not fit int (64 bits)");
    return literal(cel_int((int64_t)value));
}

static void skip_digits(lexer *lx)
{
    while (is_digit(peek(lx, 0)))
        lx->at++;
}

static bool skip_exponent(lexer *lx)
{
    if (peek(lx, 0) != 'e' && peek(lx, 0) != 'E')
        return false;
    size_t sign = peek(lx, 1) == '+' || peek(lx, 1) == '-' ? 1 : 0;
    if (!is_digit(peek(lx, 1 + sign)))
        return false;
    lx->at += 1 + sign;
    skip_digits(lx);
    return true;
}

static token lex_number(lexer *lx)
{
    size_t start = lx->at;
    if (peek(lx, 0) == '0' && (peek(lx, 1) == 'x' || peek(lx, 1) == 'X')) {
        lx->at += 2;
        while (hex_digit(peek(lx, 0)) >= 0)
            lx->at++;
        if (lx->at == start + 2)
            return bad(lx, start, "expected hexadecimal digits after \"0x\"");
        return lex_integer(lx, start, start + 2, 16);
    }
    skip_digits(lx);
    bool real = false;
    if (peek(lx, 0) == '.' && is_digit(peek(lx, 1))) {
        real = true;
        lx->at++;
        skip_digits(lx);
    }
    if (skip_exponent(lx) || real)
        return lex_double(lx, start);
    return lex_integer(lx, start, start, 10);
}

/* ---- Text --------------------------------------------------------------------------------- */

typedef struct unescape {
    lexer *lx;
    char *out;
    size_t len;
    bool bytes;
} unescape;

static bool put_code(unescape *u, size_t at, uint32_t code, bool raw_byte)
{
    if (u->bytes && raw_byte) {
        u->out[u->len++] = (char)code;
        return true;
    }
    if (code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF))
        return cel_lex_fail(u->lx, at, "the escape is no Unicode character");
    u->len += str_utf8_put(code, u->out + u->len);
    return true;
}

/* count digits of a base behind the backslash and its letter. */
static bool put_number(unescape *u, str body, size_t *i, unsigned skip, unsigned count)
{
    size_t at = (size_t)(body.ptr - u->lx->source.ptr) + *i;
    unsigned base = skip == 1 ? 8 : 16;
    uint32_t code = 0;
    for (unsigned k = 0; k < count; k++) {
        size_t from = *i + skip + k;
        int digit = from < body.len ? hex_digit(body.ptr[from]) : -1;
        if (digit < 0 || digit >= (int)base)
            return cel_lex_fail(u->lx, at, "expected %u %s digits in the escape", count,
                                base == 8 ? "octal" : "hexadecimal");
        code = code * base + (uint32_t)digit;
    }
    if (base == 8 && code > 255)
        return cel_lex_fail(u->lx, at, "expected an octal escape up to \\377");
    *i += skip + count;
    return put_code(u, at, code, count < 4);
}

static bool put_escape(unescape *u, str body, size_t *i)
{
    static const char from[] = "abfnrtv\\?\"'`";
    static const char to[] = "\a\b\f\n\r\t\v\\?\"'`";
    size_t at = (size_t)(body.ptr - u->lx->source.ptr) + *i;
    char c = *i + 1 < body.len ? body.ptr[*i + 1] : '\0';
    const char *simple = c ? strchr(from, c) : NULL;
    if (simple) {
        u->out[u->len++] = to[simple - from];
        *i += 2;
        return true;
    }
    if (c == 'x' || c == 'X')
        return put_number(u, body, i, 2, 2);
    if (c >= '0' && c <= '3')
        return put_number(u, body, i, 1, 3);
    if (!u->bytes && c == 'u')
        return put_number(u, body, i, 2, 4);
    if (!u->bytes && c == 'U')
        return put_number(u, body, i, 2, 8);
    return cel_lex_fail(u->lx, at, "unknown escape \"\\%c\"%s", c >= ' ' && c <= '~' ? c : '?',
                        u->bytes && (c == 'u' || c == 'U') ? ": bytes have only \\x and octal ones"
                                                           : "");
}

/* No escape makes the text longer than it was. */
static token unescaped(lexer *lx, str body, bool bytes)
{
    unescape u = {.lx = lx, .bytes = bytes, .out = arena_alloc(lx->arena, body.len + 4)};
    if (!u.out)
        return bad(lx, lx->at, "out of memory");
    for (size_t i = 0; i < body.len;) {
        if (body.ptr[i] != '\\')
            u.out[u.len++] = body.ptr[i++];
        else if (!put_escape(&u, body, &i))
            return (token){.kind = TOKEN_BAD};
    }
    str text = {u.out, u.len};
    return literal(bytes ? cel_bytes(text) : cel_string(text));
}

/* Finds the closing quotes; *ret_body is what stands between. */
static bool find_body(lexer *lx, bool raw, str *ret_body, bool *ret_escapes)
{
    size_t start = lx->at;
    char quote = peek(lx, 0);
    bool triple = peek(lx, 1) == quote && peek(lx, 2) == quote;
    lx->at += triple ? 3 : 1;
    size_t from = lx->at;
    while (lx->at < lx->source.len) {
        char c = lx->source.ptr[lx->at];
        if (c == quote && (!triple || (peek(lx, 1) == quote && peek(lx, 2) == quote))) {
            *ret_body = (str){lx->source.ptr + from, lx->at - from};
            lx->at += triple ? 3 : 1;
            return true;
        }
        if (!triple && (c == '\n' || c == '\r'))
            break;
        if (c == '\\' && !raw) {
            *ret_escapes = true;
            lx->at++;
        }
        lx->at++;
    }
    return cel_lex_fail(lx, start, "the string that begins here is not closed: expected %s%c%s",
                        triple ? "three of " : "", quote,
                        triple ? "" : " before the end of the line");
}

static token lex_string(lexer *lx, bool raw, bool bytes)
{
    str body;
    bool escapes = false;
    if (!find_body(lx, raw, &body, &escapes))
        return (token){.kind = TOKEN_BAD};
    if (escapes)
        return unescaped(lx, body, bytes);
    return literal(bytes ? cel_bytes(body) : cel_string(body));
}

/* ---- Names and operators ------------------------------------------------------------------ */

static bool is_reserved(str text)
{
    static const char *const words[] = {
        "as",  "break", "const",   "continue",  "else",   "for", "function", "if",   "import",
        "let", "loop",  "package", "namespace", "return", "var", "void",     "while"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (str_eq(text, str_of(words[i])))
            return true;
    return false;
}

static token lex_name(lexer *lx)
{
    size_t start = lx->at;
    while (is_name(peek(lx, 0)))
        lx->at++;
    str text = {lx->source.ptr + start, lx->at - start};
    if (str_eq(text, STR("true")) || str_eq(text, STR("false")))
        return literal(cel_bool(text.len == 4));
    if (str_eq(text, STR("null")))
        return literal(cel_null());
    if (str_eq(text, STR("in")))
        return (token){.kind = TOKEN_IN};
    return (token){.kind = TOKEN_IDENT, .text = text, .reserved = is_reserved(text)};
}

static token lex_quoted_name(lexer *lx)
{
    size_t start = lx->at++;
    while (is_name(peek(lx, 0)) || (peek(lx, 0) && strchr(".-/ ", peek(lx, 0))))
        lx->at++;
    str text = {lx->source.ptr + start + 1, lx->at - start - 1};
    if (peek(lx, 0) != '`' || text.len == 0)
        return bad(lx, start,
                   "expected a name of letters, digits and \"_.-/ \" between backquotes");
    lx->at++;
    return (token){.kind = TOKEN_QUOTED, .text = text};
}

/* r"", b"", br"" and rb"" in both cases, else a name. */
static token lex_word(lexer *lx)
{
    bool raw = false;
    bool bytes = false;
    size_t i = 0;
    for (; i < 2; i++) {
        char c = peek(lx, i);
        if ((c == 'r' || c == 'R') && !raw)
            raw = true;
        else if ((c == 'b' || c == 'B') && !bytes)
            bytes = true;
        else
            break;
    }
    if (i > 0 && (peek(lx, i) == '"' || peek(lx, i) == '\'')) {
        lx->at += i;
        return lex_string(lx, raw, bytes);
    }
    return lex_name(lx);
}

static token lex_operator(lexer *lx)
{
    static const struct {
        char text[3];
        token_kind kind;
    } operators[] = {
        {"&&", TOKEN_AND},   {"||", TOKEN_OR},      {"==", TOKEN_EQ},      {"!=", TOKEN_NE},
        {"<=", TOKEN_LE},    {">=", TOKEN_GE},      {"<", TOKEN_LT},       {">", TOKEN_GT},
        {"(", TOKEN_LPAREN}, {")", TOKEN_RPAREN},   {"[", TOKEN_LBRACKET}, {"]", TOKEN_RBRACKET},
        {"{", TOKEN_LBRACE}, {"}", TOKEN_RBRACE},   {".", TOKEN_DOT},      {",", TOKEN_COMMA},
        {":", TOKEN_COLON},  {"?", TOKEN_QUESTION}, {"!", TOKEN_NOT},      {"-", TOKEN_MINUS},
        {"+", TOKEN_PLUS},   {"*", TOKEN_STAR},     {"/", TOKEN_SLASH},    {"%", TOKEN_PERCENT},
    };
    for (size_t i = 0; i < sizeof operators / sizeof operators[0]; i++) {
        const char *text = operators[i].text;
        if (peek(lx, 0) == text[0] && (!text[1] || peek(lx, 1) == text[1])) {
            lx->at += text[1] ? 2 : 1;
            return (token){.kind = operators[i].kind};
        }
    }
    char c = peek(lx, 0);
    if (c == '=' || c == '&' || c == '|') {
        cel_lex_fail(lx, lx->at, "found \"%c\", did you mean \"%c%c\"?", c, c, c);
        return (token){.kind = TOKEN_BAD};
    }
    size_t after = lx->at;
    uint32_t code = str_utf8_next(lx->source, &after);
    if (code < ' ' || code == 0x7F)
        cel_lex_fail(lx, lx->at, "found the character U+%04X, which begins nothing",
                     (unsigned)code);
    else
        cel_lex_fail(lx, lx->at, "found \"%.*s\", which begins nothing", (int)(after - lx->at),
                     lx->source.ptr + lx->at);
    return (token){.kind = TOKEN_BAD};
}

token cel_lex(lexer *lx)
{
    if (lx->failed)
        return (token){.kind = TOKEN_BAD};
    skip_space(lx);
    size_t start = lx->at;
    char c = peek(lx, 0);
    token t;
    if (start >= lx->source.len)
        t = (token){.kind = TOKEN_END};
    else if (is_digit(c) || (c == '.' && is_digit(peek(lx, 1))))
        t = lex_number(lx);
    else if (is_name_start(c))
        t = lex_word(lx);
    else if (c == '"' || c == '\'')
        t = lex_string(lx, false, false);
    else if (c == '`')
        t = lex_quoted_name(lx);
    else
        t = lex_operator(lx);
    t.at = (uint32_t)start;
    t.len = (uint32_t)(lx->at - start);
    return t;
}
