/* SPDX-License-Identifier: Apache-2.0 */
/* Values as text: string(), format(), and literals for messages. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/duration.h"
#include "select/cel_functions.h"

/* ---- Plain rendering ---------------------------------------------------------------------- */

static void add_duration(buf *out, int64_t ns)
{
    uint64_t rest = ns < 0 ? 0 - (uint64_t)ns : (uint64_t)ns;
    uint64_t fraction = rest % (uint64_t)DURATION_SECOND;
    buf_addf(out, "%s%llu", ns < 0 ? "-" : "",
             (unsigned long long)(rest / (uint64_t)DURATION_SECOND));
    if (fraction > 0) {
        int places = 9;
        for (; fraction % 10 == 0; places--)
            fraction /= 10;
        buf_addf(out, ".%0*llu", places, (unsigned long long)fraction);
    }
    buf_addc(out, 's');
}

static void render_list(run *r, buf *out, cel_value v)
{
    cel_iter it = cel_iterate(r, v);
    cel_value key;
    cel_value item;
    buf_addc(out, '[');
    for (bool first = true; !r->stopped && cel_next(&it, &key, &item); first = false) {
        buf_addz(out, first ? "" : ", ");
        cel_render(r, out, item);
    }
    buf_addc(out, ']');
}

typedef struct rendered {
    str key;
    cel_value value;
} rendered;

static int by_key(const void *a, const void *b)
{
    return str_cmp(((const rendered *)a)->key, ((const rendered *)b)->key);
}

/* Maps have no order: their keys are sorted as text, so that the result is always the same. */
static void render_map(run *r, buf *out, cel_value v)
{
    cel_iter it = cel_iterate(r, v);
    rendered *entries = cel_alloc(r, it.len, sizeof *entries);
    cel_value key;
    size_t len = 0;
    while (entries && !r->stopped && cel_next(&it, &key, &entries[len].value)) {
        buf text = BUF(LIMIT_CEL_EVAL_BYTES);
        cel_render(r, &text, key);
        cel_value s = cel_text_value(r, text.ptr, text.len);
        buf_done(&text);
        entries[len++].key = is_error(s) ? STR_EMPTY : cel_text(s);
    }
    if (!entries || r->stopped)
        return;
    qsort(entries, len, sizeof *entries, by_key);
    buf_addc(out, '{');
    for (size_t i = 0; i < len && !r->stopped; i++) {
        buf_addf(out, "%s%.*s: ", i ? ", " : "", STR_ARG(entries[i].key));
        cel_render(r, out, entries[i].value);
    }
    buf_addc(out, '}');
}

static void render_nested(run *r, buf *out, cel_value v)
{
    if (r->depth >= LIMIT_CEL_VALUE_DEPTH) {
        cel_stop(r, CEL_COST_EXCEEDED, "values are nested too deep");
        return;
    }
    r->depth++;
    if (v.kind == CEL_LIST)
        render_list(r, out, v);
    else if (v.kind == CEL_MAP)
        render_map(r, out, v);
    else if (v.inner)
        cel_render(r, out, *v.inner);
    else
        buf_addz(out, "none");
    r->depth--;
}

static void render_number(buf *out, cel_value v)
{
    char text[400];
    if (v.kind == CEL_INT)
        buf_addf(out, "%lld", (long long)v.i);
    else if (v.kind == CEL_UINT)
        buf_addf(out, "%llu", (unsigned long long)v.u);
    else
        buf_add(out, (str){text, cel_format_double(v.d, text, sizeof text)});
}

/* What %s gives. False when it had to stop. */
bool cel_render(run *r, buf *out, cel_value v)
{
    char text[MOMENT_TEXT_BYTES];
    if (!cel_charge(r, 1))
        return false;
    switch ((cel_kind)v.kind) {
    case CEL_NULL: buf_addz(out, "null"); break;
    case CEL_BOOL: buf_addz(out, v.b ? "true" : "false"); break;
    case CEL_INT:
    case CEL_UINT:
    case CEL_DOUBLE: render_number(out, v); break;
    case CEL_BYTES:
    case CEL_STRING:
        if (cel_charge_bytes(r, v.len))
            buf_add(out, cel_text(v));
        break;
    case CEL_TIMESTAMP: buf_add(out, (str){text, moment_format(cel_moment(v), text)}); break;
    case CEL_DURATION: add_duration(out, v.i); break;
    case CEL_TYPE: buf_addz(out, cel_kind_name((cel_kind)v.i)); break;
    case CEL_LIST:
    case CEL_MAP:
    case CEL_OPTIONAL: render_nested(r, out, v); break;
    case CEL_IP:
    case CEL_CIDR: cel_net_text(out, v); break;
    case CEL_ERROR:
        buf_addf(out, "%s: %s", cel_code_name((cel_code)v.code), v.text ? v.text : "");
        break;
    case CEL_DYN: break;
    }
    return !r->stopped;
}

/* ---- Literals for messages ---------------------------------------------------------------- */

static void print(run *r, buf *out, cel_value v);

static void print_bytes(buf *out, str bytes)
{
    buf_add(out, STR("b\""));
    for (size_t i = 0; i < bytes.len; i++) {
        unsigned char c = (unsigned char)bytes.ptr[i];
        if (c >= ' ' && c <= '~' && c != '"' && c != '\\')
            buf_addc(out, (char)c);
        else
            buf_addf(out, "\\x%02x", c);
    }
    buf_addc(out, '"');
}

static void print_nested(run *r, buf *out, cel_value v)
{
    cel_iter it = cel_iterate(r, v);
    cel_value key;
    cel_value item;
    if (r->depth >= LIMIT_CEL_VALUE_DEPTH) {
        buf_addz(out, "...");
        return;
    }
    r->depth++;
    bool map = v.kind == CEL_MAP;
    buf_addc(out, map ? '{' : '[');
    for (bool first = true; !out->failed && cel_next(&it, &key, &item); first = false) {
        buf_addz(out, first ? "" : ", ");
        if (map) {
            print(r, out, key);
            buf_addz(out, ": ");
        }
        print(r, out, item);
    }
    buf_addc(out, map ? '}' : ']');
    r->depth--;
}

static void print(run *r, buf *out, cel_value v)
{
    if (v.kind == CEL_STRING) {
        buf_add_json(out, cel_text(v));
    } else if (v.kind == CEL_BYTES) {
        print_bytes(out, cel_text(v));
    } else if (v.kind == CEL_LIST || v.kind == CEL_MAP) {
        print_nested(r, out, v);
    } else if (v.kind == CEL_OPTIONAL && v.inner && r->depth < LIMIT_CEL_VALUE_DEPTH) {
        r->depth++;
        buf_addz(out, "optional.of(");
        print(r, out, *v.inner);
        buf_addc(out, ')');
        r->depth--;
    } else if (v.kind == CEL_TIMESTAMP || v.kind == CEL_DURATION) {
        buf_addz(out, v.kind == CEL_TIMESTAMP ? "timestamp(\"" : "duration(\"");
        cel_render(r, out, v);
        buf_addz(out, "\")");
    } else {
        cel_render(r, out, v);
        if (v.kind == CEL_UINT)
            buf_addc(out, 'u');
    }
}

void cel_print(buf *out, cel_value v, arena *scratch)
{
    run r = cel_run_in(scratch);
    print(&r, out, v);
}

/* ---- format() ----------------------------------------------------------------------------- */

typedef struct clause {
    char letter;
    int precision; /* -1 is none */
} clause;

/* %[.digits]letter behind a percent sign at *i. */
static bool read_clause(run *r, str format, size_t *i, clause *ret, cel_value *problem)
{
    ret->precision = -1;
    if (*i < format.len && format.ptr[*i] == '.') {
        (*i)++;
        ret->precision = 0;
        size_t from = *i;
        for (; *i < format.len && format.ptr[*i] >= '0' && format.ptr[*i] <= '9'; (*i)++)
            if (ret->precision <= 1000)
                ret->precision = ret->precision * 10 + (format.ptr[*i] - '0');
        if (*i == from || ret->precision > 1000) {
            *problem =
                cel_fail(CEL_INVALID_ARGUMENT, "format: expected a precision from 0 to 1000");
            return false;
        }
    }
    ret->letter = *i < format.len ? format.ptr[(*i)++] : '\0';
    if (ret->letter && strchr("sdfebxXo", ret->letter))
        return true;
    *problem = cel_failf(r, CEL_INVALID_ARGUMENT,
                         "format: expected one of s d f e b x X o behind %%, found \"%c\"",
                         ret->letter >= ' ' && ret->letter <= '~' ? ret->letter : '?');
    return false;
}

static cel_value cannot(run *r, clause c, cel_value v)
{
    return cel_failf(r, CEL_INVALID_ARGUMENT, "format: %%%c cannot show a value of type %s",
                     c.letter, cel_kind_name(v.kind));
}

static bool is_special(cel_value v)
{
    return v.kind == CEL_DOUBLE && (isnan(v.d) || isinf(v.d));
}

static void add_radix(buf *out, cel_value v, unsigned base, bool upper)
{
    char digits[72];
    size_t at = sizeof digits;
    bool negative = v.kind == CEL_INT && v.i < 0;
    uint64_t u = negative ? 0 - v.u : v.u;
    do {
        digits[--at] = (upper ? "0123456789ABCDEF" : "0123456789abcdef")[u % base];
        u /= base;
    } while (u > 0);
    if (negative)
        buf_addc(out, '-');
    buf_add(out, (str){digits + at, sizeof digits - at});
}

static void add_hex_text(buf *out, str text, bool upper)
{
    for (size_t i = 0; i < text.len; i++)
        buf_addf(out, upper ? "%02X" : "%02x", (unsigned char)text.ptr[i]);
}

static void add_real(buf *out, clause c, cel_value v)
{
    char text[1400];
    double d = v.kind == CEL_INT ? (double)v.i : v.kind == CEL_UINT ? (double)v.u : v.d;
    int precision = c.precision < 0 ? 6 : c.precision;
    int len = c.letter == 'f' ? snprintf(text, sizeof text, "%.*f", precision, d)
                              : snprintf(text, sizeof text, "%.*e", precision, d);
    buf_add(out, (str){text, (size_t)len});
}

static cel_value add_clause(run *r, buf *out, clause c, cel_value v)
{
    bool whole = v.kind == CEL_INT || v.kind == CEL_UINT;
    bool real = whole || v.kind == CEL_DOUBLE;
    bool text = v.kind == CEL_STRING || v.kind == CEL_BYTES;
    bool upper = c.letter == 'X';
    if (c.letter == 's' || (is_special(v) && strchr("dfe", c.letter)) || (c.letter == 'd' && whole))
        cel_render(r, out, v);
    else if ((c.letter == 'f' || c.letter == 'e') && real)
        add_real(out, c, v);
    else if (c.letter == 'b' && (whole || v.kind == CEL_BOOL))
        add_radix(out, v, 2, false);
    else if (c.letter == 'o' && whole)
        add_radix(out, v, 8, false);
    else if ((c.letter == 'x' || upper) && whole)
        add_radix(out, v, 16, upper);
    else if ((c.letter == 'x' || upper) && text && cel_charge_bytes(r, v.len))
        add_hex_text(out, cel_text(v), upper);
    else if (!r->stopped)
        return cannot(r, c, v);
    return cel_null();
}

static cel_value format_into(run *r, buf *out, str format, cel_value list)
{
    cel_iter it = cel_iterate(r, list);
    for (size_t i = 0; i < format.len;) {
        const char *percent = memchr(format.ptr + i, '%', format.len - i);
        size_t to = percent ? (size_t)(percent - format.ptr) : format.len;
        buf_add(out, str_part(format, i, to - i));
        i = to + 1;
        if (!percent)
            break;
        if (i < format.len && format.ptr[i] == '%') {
            buf_addc(out, '%');
            i++;
            continue;
        }
        clause c;
        cel_value key;
        cel_value v;
        if (!read_clause(r, format, &i, &c, &v))
            return v;
        if (!cel_next(&it, &key, &v))
            return cel_failf(r, CEL_OUT_OF_RANGE, "format: the list has only %zu values", it.len);
        v = add_clause(r, out, c, v);
        if (is_error(v) || !cel_charge(r, 1))
            return is_error(v) ? v : r->fatal;
        if (out->failed)
            break;
    }
    return cel_null();
}

cel_value cel_fn_format(run *r, const cel_value *args, uint32_t count)
{
    (void)count;
    buf out = BUF(LIMIT_CEL_EVAL_BYTES);
    cel_value v = cel_charge_bytes(r, args[0].len)
                      ? format_into(r, &out, cel_text(args[0]), args[1])
                      : r->fatal;
    if (out.failed)
        v = cel_stop(r, CEL_MEMORY, "out of memory");
    if (!is_error(v) && !r->stopped)
        v = cel_text_value(r, out.ptr, out.len);
    buf_done(&out);
    return r->stopped ? r->fatal : v;
}
