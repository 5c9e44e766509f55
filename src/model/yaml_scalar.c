/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "model/yaml.h"

#define TAG(name) "tag:yaml.org,2002:" name

typedef enum scalar_kind { SCALAR_TEXT, SCALAR_NULL, SCALAR_BOOL, SCALAR_INT, SCALAR_REAL } scalar_kind;

typedef struct scalar {
    scalar_kind kind;
    bool truth;
    bool negative; /* INT: magnitude with sign */
    uint64_t magnitude;
    double real;
} scalar;

/* go-yaml v2's resolve table. */
static const struct {
    str word;
    scalar value;
} words[] = {
    {{"", 0}, {.kind = SCALAR_NULL}},
    {{"~", 1}, {.kind = SCALAR_NULL}},
    {{"null", 4}, {.kind = SCALAR_NULL}},
    {{"Null", 4}, {.kind = SCALAR_NULL}},
    {{"NULL", 4}, {.kind = SCALAR_NULL}},
#define YES(text) {{text, sizeof(text) - 1}, {.kind = SCALAR_BOOL, .truth = true}},
#define NO(text) {{text, sizeof(text) - 1}, {.kind = SCALAR_BOOL}},
    YES("y") YES("Y") YES("yes") YES("Yes") YES("YES")
    YES("true") YES("True") YES("TRUE") YES("on") YES("On") YES("ON")
    NO("n") NO("N") NO("no") NO("No") NO("NO")
    NO("false") NO("False") NO("FALSE") NO("off") NO("Off") NO("OFF")
};

static const str infinities[] = {
    {".inf", 4},  {".Inf", 4},  {".INF", 4},  {"+.inf", 5}, {"+.Inf", 5}, {"+.INF", 5},
    {"-.inf", 5}, {"-.Inf", 5}, {"-.INF", 5}, {".nan", 4},  {".NaN", 4},  {".NAN", 4},
};

static int digit_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return 99;
}

/* As Go's ParseInt and ParseUint with base 0: 0x, 0o, 0b and a bare 0 choose the base. */
static bool parse_integer(str text, scalar *ret)
{
    size_t at = 0;
    bool negative = false;
    if (at < text.len && (text.ptr[at] == '-' || text.ptr[at] == '+')) {
        negative = text.ptr[at] == '-';
        at++;
    }
    unsigned base = 10;
    if (at + 1 < text.len && text.ptr[at] == '0') {
        char mark = (char)(text.ptr[at + 1] | 0x20);
        base = mark == 'x' ? 16 : mark == 'o' || (mark >= '0' && mark <= '9') ? 8 : mark == 'b' ? 2 : 0;
        bool letter = mark == 'x' || mark == 'o' || mark == 'b';
        at += letter ? 2 : 1;
        if (base == 0)
            return false;
    }
    if (at >= text.len)
        return false;
    uint64_t value = 0;
    for (; at < text.len; at++) {
        unsigned digit = (unsigned)digit_value(text.ptr[at]);
        if (digit >= base || __builtin_mul_overflow(value, base, &value) ||
            __builtin_add_overflow(value, digit, &value))
            return false;
    }
    if (negative && value > (uint64_t)INT64_MAX + 1)
        return false;
    *ret = (scalar){.kind = SCALAR_INT, .negative = negative && value > 0, .magnitude = value};
    return true;
}

static size_t skip_digits(str text, size_t at)
{
    while (at < text.len && text.ptr[at] >= '0' && text.ptr[at] <= '9')
        at++;
    return at;
}

/* ^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$ */
static bool looks_real(str text)
{
    size_t at = 0;
    if (at < text.len && (text.ptr[at] == '-' || text.ptr[at] == '+'))
        at++;
    size_t whole = skip_digits(text, at);
    bool has_whole = whole > at;
    at = whole;
    if (at < text.len && text.ptr[at] == '.') {
        size_t fraction = skip_digits(text, at + 1);
        if (!has_whole && fraction == at + 1)
            return false;
        at = fraction;
    } else if (!has_whole) {
        return false;
    }
    if (at < text.len && (text.ptr[at] == 'e' || text.ptr[at] == 'E')) {
        at++;
        if (at < text.len && (text.ptr[at] == '-' || text.ptr[at] == '+'))
            at++;
        size_t end = skip_digits(text, at);
        if (end == at)
            return false;
        at = end;
    }
    return at == text.len;
}

static bool parse_real(str text, scalar *ret)
{
    if (!looks_real(text))
        return false;
    char *end = NULL;
    double value = strtod(text.ptr, &end);
    if (end != text.ptr + text.len || !isfinite(value))
        return false;
    *ret = (scalar){.kind = SCALAR_REAL, .real = value};
    return true;
}

/* Numbers may hold underscores, which do not count. Text that is too long is no number. */
static bool parse_number(str text, scalar *ret)
{
    char plain[512];
    if (text.len == 0 || text.len >= sizeof plain)
        return false;
    char first = text.ptr[0];
    if (!(first >= '0' && first <= '9') && first != '-' && first != '+' && first != '.')
        return false;
    size_t len = 0;
    for (size_t i = 0; i < text.len; i++)
        if (text.ptr[i] != '_' || first == '.')
            plain[len++] = text.ptr[i];
    plain[len] = '\0';
    str cleaned = {plain, len};
    return parse_integer(cleaned, ret) || parse_real(cleaned, ret);
}

static bool resolve(str text, scalar *ret, err *error)
{
    *ret = (scalar){.kind = SCALAR_TEXT};
    if (text.len <= 5) {
        for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
            if (str_eq(words[i].word, text)) {
                *ret = words[i].value;
                return true;
            }
        }
        for (size_t i = 0; i < sizeof infinities / sizeof infinities[0]; i++)
            if (str_eq(infinities[i], text))
                return err_set(error, "found %.*s, allowed a finite number", STR_ARG(text));
    }
    parse_number(text, ret);
    return true;
}

/* As encoding/json prints a float64, near enough to read back the same number. */
static void write_real(buf *out, double value)
{
    if (value == floor(value) && fabs(value) < 1e15) {
        buf_addf(out, "%.0f", value == 0 ? 0.0 : value);
        return;
    }
    char text[40];
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        if (strtod(text, NULL) == value)
            break;
    }
    buf_addz(out, text);
}

static void write_scalar(buf *out, const scalar *s, str text)
{
    switch (s->kind) {
    case SCALAR_TEXT:
        buf_add_json(out, text);
        break;
    case SCALAR_NULL:
        buf_addz(out, "null");
        break;
    case SCALAR_BOOL:
        buf_addz(out, s->truth ? "true" : "false");
        break;
    case SCALAR_INT:
        buf_addf(out, "%s%llu", s->negative ? "-" : "", (unsigned long long)s->magnitude);
        break;
    case SCALAR_REAL:
        write_real(out, s->real);
        break;
    }
}

static const char *kind_tag(scalar_kind kind)
{
    switch (kind) {
    case SCALAR_TEXT:
        return TAG("str");
    case SCALAR_NULL:
        return TAG("null");
    case SCALAR_BOOL:
        return TAG("bool");
    case SCALAR_INT:
        return TAG("int");
    case SCALAR_REAL:
        return TAG("float");
    }
    return "";
}

/* What a scalar is, tag and style considered. */
static bool scalar_of(str text, bool plain, const char *tag, scalar *ret, err *error)
{
    bool core = tag && strncmp(tag, TAG(""), sizeof TAG("") - 1) == 0;
    *ret = (scalar){.kind = SCALAR_TEXT};
    if (!tag || tag[0] == '\0')
        return !plain || resolve(text, ret, error);
    if (strcmp(tag, TAG("binary")) == 0)
        return err_set(error, "found the tag !!binary, allowed text");
    if (!core || strcmp(tag, TAG("str")) == 0 || strcmp(tag, TAG("timestamp")) == 0)
        return true;
    if (!resolve(text, ret, error))
        return false;
    if (ret->kind == SCALAR_INT && strcmp(tag, TAG("float")) == 0)
        return true;
    if (strcmp(tag, kind_tag(ret->kind)) == 0)
        return true;
    return err_set(error, "found \"%.*s\" with the tag !!%s, which it is not",
                   (int)(text.len < 60 ? text.len : 60), text.ptr, tag + sizeof TAG("") - 1);
}

bool yaml_scalar(buf *out, str text, bool plain, const char *tag, err *error)
{
    scalar s;
    if (!scalar_of(text, plain, tag, &s, error))
        return false;
    write_scalar(out, &s, text);
    return true;
}

/* As strconv.FormatFloat(v, 'g', -1, 32), which sigs.k8s.io/yaml uses for keys. */
static void write_real_key(buf *out, double value)
{
    float single = (float)value;
    char text[48];
    int digits = 0;
    for (; digits < 9; digits++) {
        snprintf(text, sizeof text, "%.*e", digits, (double)single);
        if (strtof(text, NULL) == single)
            break;
    }
    const char *mark = strchr(text, 'e');
    long exponent = mark ? strtol(mark + 1, NULL, 10) : 0;
    if (exponent >= -4 && exponent < 6) {
        long decimals = digits - exponent;
        snprintf(text, sizeof text, "%.*f", (int)(decimals > 0 ? decimals : 0), (double)single);
    }
    buf_addz(out, text);
}

bool yaml_key(buf *out, str text, bool plain, const char *tag, err *error)
{
    scalar s;
    if (!scalar_of(text, plain, tag, &s, error))
        return false;
    if (s.kind == SCALAR_TEXT) {
        buf_add_json(out, text);
        return true;
    }
    if (s.kind == SCALAR_NULL)
        return err_set(error, "found null as a key, allowed text");
    buf_addc(out, '"');
    if (s.kind == SCALAR_REAL)
        write_real_key(out, s.real);
    else
        write_scalar(out, &s, text);
    buf_addc(out, '"');
    return true;
}
