/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/go_json.h"

#include <math.h>

/* yyjson's readers take no const. */
static yyjson_val *open_up(const yyjson_val *value)
{
    return (yyjson_val *)(uintptr_t)value;
}

str go_str(const yyjson_val *value)
{
    yyjson_val *v = open_up(value);
    return yyjson_is_str(v) ? (str){yyjson_get_str(v), yyjson_get_len(v)} : (str){NULL, 0};
}

yyjson_val *go_member(const yyjson_val *object, str key)
{
    yyjson_val *v = open_up(object);
    return v && yyjson_is_obj(v) ? yyjson_obj_getn(v, key.ptr, key.len) : NULL;
}

static char short_escape(unsigned char c)
{
    switch (c) {
    case '\n': return 'n';
    case '\r': return 'r';
    case '\t': return 't';
    case '\b': return 'b';
    case '\f': return 'f';
    case '"':
    case '\\': return (char)c;
    }
    return 0;
}

/* What encoding/json does not write as it is: control characters, what HTML would take for markup,
 * and the two separators of JavaScript, of which this is the first byte. */
static const bool is_special[256] = {[0 ... 0x1F] = true, ['"'] = true, ['\\'] = true, ['<'] = true,
                                     ['>'] = true,        ['&'] = true, [0xE2] = true};

/* How many bytes are to be escaped; 0: none. */
static size_t escaped(str text, size_t at)
{
    unsigned char c = (unsigned char)text.ptr[at];
    if (c == 0xE2)
        return at + 2 < text.len && (unsigned char)text.ptr[at + 1] == 0x80 &&
                       ((unsigned char)text.ptr[at + 2] & 0xFE) == 0xA8
                   ? 3
                   : 0;
    return is_special[c];
}

static void put_escape(buf *out, str text)
{
    unsigned char c = (unsigned char)text.ptr[0];
    if (c == 0xE2) {
        buf_addz(out, (unsigned char)text.ptr[2] == 0xA8 ? "\\u2028" : "\\u2029");
    } else if (short_escape(c)) {
        buf_addc(out, '\\');
        buf_addc(out, short_escape(c));
    } else {
        buf_addf(out, "\\u%04x", (unsigned)c);
    }
}

static size_t plain_end(str text, size_t at)
{
    while (at < text.len && !is_special[(unsigned char)text.ptr[at]])
        at++;
    return at;
}

void go_text(buf *out, str text)
{
    size_t plain = 0, at = plain_end(text, 0);
    if (at == text.len) {
        buf_add_quoted(out, text);
        return;
    }
    buf_addc(out, '"');
    for (; at < text.len; at = plain_end(text, at)) {
        size_t bytes = escaped(text, at);
        if (bytes > 0) {
            buf_add(out, str_part(text, plain, at - plain));
            put_escape(out, str_part(text, at, bytes));
            plain = at + bytes;
        }
        at += bytes > 0 ? bytes : 1;
    }
    buf_add(out, str_part(text, plain, text.len));
    buf_addc(out, '"');
}

/* Go writes the shortest digits that read back the same, with an exponent only far from 1. Values
 * only: no decision depends on the number. */
#define GO_PLAIN_EXPONENT_MIN (-6)
#define GO_PLAIN_EXPONENT_MAX 21
#define DOUBLE_DIGITS_MAX 17
void go_real(buf *out, double number)
{
    char text[40];
    int digits = 0;
    do
        snprintf(text, sizeof text, "%.*e", digits, number);
    while (strtod(text, NULL) != number && ++digits < DOUBLE_DIGITS_MAX);
    char *mark = strchr(text, 'e');
    if (!mark) { /* no number: JSON has none such */
        buf_addz(out, "null");
        return;
    }
    long exponent = strtol(mark + 1, NULL, 10);
    if (number == 0 || (exponent >= GO_PLAIN_EXPONENT_MIN && exponent < GO_PLAIN_EXPONENT_MAX)) {
        int decimals = digits > exponent ? digits - (int)exponent : 0;
        buf_addf(out, "%.*f", decimals, number);
        return;
    }
    *mark = 0;
    buf_addf(out, "%se%s%ld", text, exponent < 0 ? "-" : "+", labs(exponent));
}

bool go_pairs_add(go_pairs *pairs, const yyjson_val *object)
{
    size_t i, max;
    yyjson_val *key, *value, *members = open_up(object);
    if (!members || !yyjson_is_obj(members))
        return true;
    yyjson_obj_foreach(members, i, max, key, value)
    {
        if (!vec_push(pairs, (go_pair){go_str(key), value}))
            return false;
    }
    return true;
}

static int pair_order(const void *a, const void *b)
{
    return str_cmp(((const go_pair *)a)->key, ((const go_pair *)b)->key);
}

void go_pairs_sort(go_pairs *pairs)
{
    if (pairs->len > 1)
        qsort(pairs->at, pairs->len, sizeof *pairs->at, pair_order);
}

static void go_map(buf *out, const yyjson_val *map)
{
    go_pairs sorted = {0};
    if (!go_pairs_add(&sorted, map))
        out->failed = true;
    go_pairs_sort(&sorted);
    buf_addc(out, '{');
    for (size_t at = 0; at < sorted.len; at++) {
        if (at > 0)
            buf_addc(out, ',');
        go_text(out, sorted.at[at].key);
        buf_addc(out, ':');
        go_value(out, sorted.at[at].value);
    }
    buf_addc(out, '}');
    vec_done(&sorted);
}

static void go_list(buf *out, yyjson_val *list)
{
    size_t i, max;
    yyjson_val *value;
    buf_addc(out, '[');
    yyjson_arr_foreach(list, i, max, value)
    {
        if (i > 0)
            buf_addc(out, ',');
        go_value(out, value);
    }
    buf_addc(out, ']');
}

void go_value(buf *out, const yyjson_val *value)
{
    yyjson_val *v = open_up(value);
    if (yyjson_is_obj(v))
        go_map(out, v);
    else if (yyjson_is_arr(v))
        go_list(out, v);
    else if (yyjson_is_str(v))
        go_text(out, go_str(v));
    else if (yyjson_is_bool(v))
        buf_addz(out, yyjson_get_bool(v) ? "true" : "false");
    else if (yyjson_is_uint(v))
        buf_add_uint(out, yyjson_get_uint(v));
    else if (yyjson_is_int(v))
        buf_add_int(out, yyjson_get_sint(v));
    else if (yyjson_is_real(v))
        go_real(out, yyjson_get_real(v));
    else
        buf_addz(out, "null");
}

bool go_is_zero(const yyjson_val *value)
{
    yyjson_val *v = open_up(value);
    return !v || yyjson_is_null(v) || yyjson_is_false(v) ||
           (yyjson_is_str(v) && yyjson_get_len(v) == 0) ||
           (yyjson_is_int(v) && yyjson_get_sint(v) == 0) ||
           (yyjson_is_arr(v) && yyjson_arr_size(v) == 0);
}
