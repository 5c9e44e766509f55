/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic, and conversions between types. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/duration.h"
#include "base/num.h"
#include "select/cel_functions.h"

/* ---- Arithmetic --------------------------------------------------------------------------- */

static cel_value overflow(const char *what)
{
    return cel_fail(CEL_OVERFLOW, what);
}

static cel_value int_arithmetic(token_kind op, int64_t a, int64_t b)
{
    int64_t v = 0;
    bool fits = true;
    if ((op == TOKEN_SLASH || op == TOKEN_PERCENT) && b == 0)
        return cel_fail(CEL_DIVIDE_BY_ZERO,
                        op == TOKEN_SLASH ? "division by zero" : "modulus by zero");
    if (op == TOKEN_PLUS)
        fits = num_add(a, b, &v);
    else if (op == TOKEN_MINUS)
        fits = num_sub(a, b, &v);
    else if (op == TOKEN_STAR)
        fits = num_mul(a, b, &v);
    else if (a == INT64_MIN && b == -1)
        fits = false;
    else
        v = op == TOKEN_SLASH ? a / b : a % b;
    return fits ? cel_int(v) : overflow("integer overflow");
}

static cel_value uint_arithmetic(token_kind op, uint64_t a, uint64_t b)
{
    uint64_t v = 0;
    bool bad = false;
    if ((op == TOKEN_SLASH || op == TOKEN_PERCENT) && b == 0)
        return cel_fail(CEL_DIVIDE_BY_ZERO,
                        op == TOKEN_SLASH ? "division by zero" : "modulus by zero");
    if (op == TOKEN_PLUS)
        bad = __builtin_add_overflow(a, b, &v);
    else if (op == TOKEN_MINUS)
        bad = __builtin_sub_overflow(a, b, &v);
    else if (op == TOKEN_STAR)
        bad = __builtin_mul_overflow(a, b, &v);
    else
        v = op == TOKEN_SLASH ? a / b : a % b;
    return bad ? overflow("unsigned integer overflow") : cel_uint(v);
}

static cel_value double_arithmetic(token_kind op, double a, double b)
{
    if (op == TOKEN_PLUS)
        return cel_double(a + b);
    if (op == TOKEN_MINUS)
        return cel_double(a - b);
    if (op == TOKEN_STAR)
        return cel_double(a * b);
    return op == TOKEN_SLASH ? cel_double(a / b) : cel_fail(CEL_NO_SUCH_OVERLOAD, NULL);
}

static cel_value concat_text(run *r, cel_value a, cel_value b)
{
    if (a.len == 0 || b.len == 0)
        return a.len == 0 ? b : a;
    size_t len = (size_t)a.len + b.len;
    char *text = cel_charge_bytes(r, len) ? cel_alloc(r, len, 1) : NULL;
    if (!text)
        return r->fatal;
    memcpy(text, a.text, a.len);
    memcpy(text + a.len, b.text, b.len);
    str all = {text, len};
    return a.kind == CEL_STRING ? cel_string(all) : cel_bytes(all);
}

static cel_value concat_lists(run *r, cel_value a, cel_value b)
{
    size_t la;
    size_t lb;
    const cel_value *x = cel_items(r, a, &la);
    const cel_value *y = x ? cel_items(r, b, &lb) : NULL;
    cel_value *items = y && cel_charge(r, la + lb) ? cel_alloc(r, la + lb, sizeof *items) : NULL;
    if (!items)
        return r->fatal;
    memcpy(items, x, la * sizeof *items);
    memcpy(items + la, y, lb * sizeof *items);
    return cel_native_list(r, items, la + lb);
}

static cel_value time_result(bool fits, const moment *m)
{
    return fits ? cel_timestamp(*m) : overflow("timestamp out of range: years 1 to 9999");
}

/* A pointer: the argument before may be what sets it. */
static cel_value duration_result(bool fits, const int64_t *ns)
{
    return fits ? cel_duration(*ns) : overflow("duration out of range: about 292 years");
}

static cel_value time_arithmetic(token_kind op, cel_value a, cel_value b)
{
    moment m = {0};
    int64_t ns = 0;
    bool plus = op == TOKEN_PLUS;
    if (!plus && op != TOKEN_MINUS)
        return cel_fail(CEL_NO_SUCH_OVERLOAD, NULL);
    if (a.kind == CEL_DURATION && b.kind == CEL_DURATION)
        return duration_result(plus ? num_add(a.i, b.i, &ns) : num_sub(a.i, b.i, &ns), &ns);
    if (a.kind == CEL_TIMESTAMP && b.kind == CEL_DURATION) {
        bool fits = plus || num_sub(0, b.i, &b.i);
        return time_result(fits && moment_add(cel_moment(a), b.i, &m), &m);
    }
    if (plus && a.kind == CEL_DURATION && b.kind == CEL_TIMESTAMP)
        return time_result(moment_add(cel_moment(b), a.i, &m), &m);
    if (!plus && a.kind == CEL_TIMESTAMP && b.kind == CEL_TIMESTAMP)
        return duration_result(moment_sub(cel_moment(a), cel_moment(b), &ns), &ns);
    return cel_fail(CEL_NO_SUCH_OVERLOAD, NULL);
}

/* An error without text says that there is no such operation. */
cel_value cel_arithmetic(run *r, token_kind op, cel_value a, cel_value b)
{
    if (a.kind == CEL_TIMESTAMP || a.kind == CEL_DURATION)
        return time_arithmetic(op, a, b);
    if (a.kind != b.kind)
        return cel_fail(CEL_NO_SUCH_OVERLOAD, NULL);
    if (a.kind == CEL_INT)
        return int_arithmetic(op, a.i, b.i);
    if (a.kind == CEL_UINT)
        return uint_arithmetic(op, a.u, b.u);
    if (a.kind == CEL_DOUBLE)
        return double_arithmetic(op, a.d, b.d);
    if (op == TOKEN_PLUS && (a.kind == CEL_STRING || a.kind == CEL_BYTES))
        return concat_text(r, a, b);
    if (op == TOKEN_PLUS && a.kind == CEL_LIST)
        return concat_lists(r, a, b);
    return cel_fail(CEL_NO_SUCH_OVERLOAD, NULL);
}

/* ---- Conversions -------------------------------------------------------------------------- */

static cel_value range_error(run *r, cel_value v, const char *type)
{
    buf text = BUF(80);
    cel_render(r, &text, v);
    cel_value e = cel_failf(r, CEL_INVALID_ARGUMENT, "%.*s is out of the range of %s",
                            STR_ARG(buf_str(&text)), type);
    buf_done(&text);
    return e;
}

static cel_value text_error(run *r, cel_value v, const char *type)
{
    int len = v.len > 60 ? 60 : (int)v.len;
    return cel_failf(r, CEL_INVALID_ARGUMENT, "\"%.*s\" cannot become %s", len, cel_text(v).ptr,
                     type);
}

cel_value cel_fn_same(run *r, const cel_value *args, uint32_t count)
{
    (void)r;
    (void)count;
    return args[0];
}

cel_value cel_fn_type(run *r, const cel_value *args, uint32_t count)
{
    (void)r;
    (void)count;
    return cel_type_value(args[0].kind);
}

cel_value cel_fn_int(run *r, const cel_value *args, uint32_t count)
{
    (void)count;
    cel_value v = args[0];
    int64_t i;
    if (v.kind == CEL_UINT)
        return v.u <= INT64_MAX ? cel_int(v.i) : range_error(r, v, "int");
    if (v.kind == CEL_DOUBLE)
        return v.d > -0x1p63 && v.d < 0x1p63 ? cel_int((int64_t)v.d) : range_error(r, v, "int");
    if (v.kind == CEL_STRING)
        return num_parse(cel_text(v), &i) ? cel_int(i) : text_error(r, v, "an int");
    return cel_int(v.i); /* an int, or the seconds of a timestamp */
}

static bool parse_uint(str text, uint64_t *ret)
{
    uint64_t u = 0;
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] < '0' || text.ptr[i] > '9')
            return false;
        if (__builtin_mul_overflow(u, 10, &u) ||
            __builtin_add_overflow(u, (uint64_t)(text.ptr[i] - '0'), &u))
            return false;
    }
    *ret = u;
    return text.len > 0;
}

cel_value cel_fn_uint(run *r, const cel_value *args, uint32_t count)
{
    (void)count;
    cel_value v = args[0];
    uint64_t u;
    if (v.kind == CEL_INT)
        return v.i >= 0 ? cel_uint(v.u) : range_error(r, v, "uint");
    if (v.kind == CEL_DOUBLE)
        return v.d > -1 && v.d < 0x1p64 ? cel_uint((uint64_t)v.d) : range_error(r, v, "uint");
    if (v.kind == CEL_STRING)
        return parse_uint(cel_text(v), &u) ? cel_uint(u) : text_error(r, v, "a uint");
    return v;
}

static bool word_is(str text, const char *word)
{
    size_t len = strlen(word);
    if (text.len != len)
        return false;
    for (size_t i = 0; i < len; i++)
        if (tolower((unsigned char)text.ptr[i]) != word[i])
            return false;
    return true;
}

/* Decimal only: strtod alone would also read hexadecimal, locales aside. */
static bool parse_double(str text, double *ret)
{
    char copy[400];
    str body = text;
    bool negative = text.len > 0 && text.ptr[0] == '-';
    if (text.len > 0 && (negative || text.ptr[0] == '+'))
        body = str_part(text, 1, text.len);
    if (word_is(body, "infinity") || word_is(body, "inf")) {
        *ret = negative ? -INFINITY : INFINITY;
        return true;
    }
    if (word_is(text, "nan")) {
        *ret = NAN;
        return true;
    }
    if (text.len == 0 || text.len >= sizeof copy)
        return false;
    for (size_t i = 0; i < body.len; i++)
        if (!strchr("0123456789.eE+-", body.ptr[i]) || body.ptr[i] == '\0')
            return false;
    memcpy(copy, text.ptr, text.len);
    copy[text.len] = '\0';
    char *end;
    *ret = strtod(copy, &end);
    return end == copy + text.len;
}

cel_value cel_fn_double(run *r, const cel_value *args, uint32_t count)
{
    (void)count;
    cel_value v = args[0];
    double d;
    if (v.kind == CEL_INT)
        return cel_double((double)v.i);
    if (v.kind == CEL_UINT)
        return cel_double((double)v.u);
    if (v.kind == CEL_STRING)
        return parse_double(cel_text(v), &d) ? cel_double(d) : text_error(r, v, "a double");
    return v;
}

cel_value cel_fn_bool(run *r, const cel_value *args, uint32_t count)
{
    (void)count;
    static const char *const yes[] = {"1", "t", "T", "true", "TRUE", "True"};
    static const char *const no[] = {"0", "f", "F", "false", "FALSE", "False"};
    if (args[0].kind == CEL_BOOL)
        return args[0];
    for (size_t i = 0; i < sizeof yes / sizeof yes[0]; i++) {
        if (str_eq(cel_text(args[0]), str_of(yes[i])))
            return cel_bool(true);
        if (str_eq(cel_text(args[0]), str_of(no[i])))
            return cel_bool(false);
    }
    return text_error(r, args[0], "a bool");
}

cel_value cel_fn_bytes(run *r, const cel_value *args, uint32_t count)
{
    (void)r;
    (void)count;
    return cel_bytes(cel_text(args[0]));
}

/* As few digits as give the same number again; an exponent below 10^-4 and from 10^21 on, or from
 * 10^6 on if there are many digits is what some do: plain digits read better up to there. */
size_t cel_format_double(double d, char *out, size_t room)
{
    if (isnan(d))
        return (size_t)snprintf(out, room, "NaN");
    if (isinf(d))
        return (size_t)snprintf(out, room, d < 0 ? "-Infinity" : "Infinity");
    int digits = 1;
    while (digits < 17) {
        snprintf(out, room, "%.*e", digits - 1, d);
        if (strtod(out, NULL) == d)
            break;
        digits++;
    }
    snprintf(out, room, "%.*e", digits - 1, d);
    const char *e = strchr(out, 'e');
    int exponent = e ? (int)strtol(e + 1, NULL, 10) : 0;
    if (exponent < -4 || exponent >= 21)
        return strlen(out);
    int places = digits - 1 - exponent;
    return (size_t)snprintf(out, room, "%.*f", places > 0 ? places : 0, d);
}

cel_value cel_fn_string(run *r, const cel_value *args, uint32_t count)
{
    (void)count;
    cel_value v = args[0];
    if (v.kind == CEL_STRING)
        return v;
    if (v.kind == CEL_BYTES)
        return cel_charge_bytes(r, v.len) && str_utf8(cel_text(v))
                   ? cel_string(cel_text(v))
                   : cel_fail(CEL_INVALID_ARGUMENT, "the bytes are not valid UTF-8");
    buf text = BUF(1000);
    cel_render(r, &text, v);
    cel_value s = text.failed ? cel_stop(r, CEL_MEMORY, "out of memory")
                              : cel_text_value(r, text.ptr, text.len);
    buf_done(&text);
    return s;
}

cel_value cel_fn_timestamp(run *r, const cel_value *args, uint32_t count)
{
    (void)count;
    cel_value v = args[0];
    moment m = {.seconds = v.i};
    if (v.kind == CEL_STRING)
        return moment_parse(cel_text(v), &m, NULL)
                   ? cel_timestamp(m)
                   : text_error(r, v, "a timestamp such as 2026-11-15T09:00:00Z");
    if (v.kind == CEL_INT)
        return v.i >= MOMENT_SECONDS_MIN && v.i <= MOMENT_SECONDS_MAX
                   ? cel_timestamp(m)
                   : range_error(r, v, "timestamp");
    return v;
}

cel_value cel_fn_duration(run *r, const cel_value *args, uint32_t count)
{
    (void)count;
    int64_t ns = 0;
    if (args[0].kind == CEL_DURATION)
        return args[0];
    if (args[0].kind == CEL_INT)
        return duration_result(num_mul(args[0].i, DURATION_SECOND, &ns), &ns);
    return duration_parse(cel_text(args[0]), &ns, NULL)
               ? cel_duration(ns)
               : text_error(r, args[0], "a duration such as 90s or 1h30m");
}

cel_value cel_fn_size(run *r, const cel_value *args, uint32_t count)
{
    (void)count;
    cel_value v = args[0];
    if (v.kind == CEL_STRING)
        return cel_charge_bytes(r, v.len) ? cel_int((int64_t)cel_code_points(cel_text(v)))
                                          : r->fatal;
    return v.kind == CEL_BYTES ? cel_int(v.len) : cel_int((int64_t)cel_size(v));
}
