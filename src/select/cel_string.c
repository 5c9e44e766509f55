/* SPDX-License-Identifier: Apache-2.0 */
/* Functions on text. Positions count code points; everything that copies is charged for. */
#include "select/cel_functions.h"

/* ---- Code points -------------------------------------------------------------------------- */

/* The bytes of the character at "at". What is no UTF-8 is taken byte by byte. */
static size_t char_bytes(str text, size_t at)
{
    unsigned char c = (unsigned char)text.ptr[at];
    size_t want = c < 0x80 ? 1 : c >= 0xF0 ? 4 : c >= 0xE0 ? 3 : c >= 0xC0 ? 2 : 1;
    size_t have = 1;
    while (have < want && at + have < text.len &&
           ((unsigned char)text.ptr[at + have] & 0xC0) == 0x80)
        have++;
    return have == want ? want : 1;
}

size_t cel_code_points(str text)
{
    size_t n = 0;
    for (size_t i = 0; i < text.len; i += char_bytes(text, i))
        n++;
    return n;
}

size_t cel_code_offset(str text, int64_t n)
{
    size_t at = 0;
    if (n < 0)
        return SIZE_MAX;
    for (; n > 0 && at < text.len; n--)
        at += char_bytes(text, at);
    return n == 0 ? at : SIZE_MAX;
}

cel_value cel_text_value(run *r, const char *ptr, size_t len)
{
    char *text = cel_alloc(r, len + 1, 1);
    if (!text)
        return r->fatal;
    if (len > 0)
        memcpy(text, ptr, len);
    return cel_string((str){text, len});
}

static cel_value index_error(run *r, int64_t index)
{
    return cel_failf(r, CEL_OUT_OF_RANGE, "index out of range: %lld", (long long)index);
}

/* A view into a text that is already there. */
static cel_value part(str text, size_t from, size_t to)
{
    return cel_string((str){text.ptr + from, to - from});
}

/* ---- Searching ---------------------------------------------------------------------------- */

cel_value cel_fn_contains(run *r, const cel_value *args, uint32_t count)
{
    (void)count;
    if (!cel_charge_bytes(r, args[0].len))
        return r->fatal;
    return cel_bool(str_find(cel_text(args[0]), cel_text(args[1])) != SIZE_MAX);
}

cel_value cel_fn_starts(run *r, const cel_value *args, uint32_t count)
{
    (void)count;
    if (args[1].len <= args[0].len && !cel_charge_bytes(r, args[1].len))
        return r->fatal;
    return cel_bool(str_starts(cel_text(args[0]), cel_text(args[1])));
}

cel_value cel_fn_ends(run *r, const cel_value *args, uint32_t count)
{
    (void)count;
    if (args[1].len <= args[0].len && !cel_charge_bytes(r, args[1].len))
        return r->fatal;
    return cel_bool(str_ends(cel_text(args[0]), cel_text(args[1])));
}

/* RE2 may in the worst case look at every instruction for every byte. */
cel_value cel_matches(run *r, cel_regex *regex, str text)
{
    uint64_t steps;
    if (__builtin_mul_overflow(cel_regex_size(regex), text.len, &steps) ||
        !cel_charge(r, 1 + steps / 32))
        return cel_cost_exceeded(r);
    int found = cel_regex_match(regex, text.ptr, text.len);
    return found < 0 ? cel_stop(r, CEL_MEMORY, "out of memory") : cel_bool(found > 0);
}

#define REGEX_FAILURE_COST 200000

/* A pattern that is no literal: the last one is kept, for loops. */
cel_value cel_fn_matches(run *r, const cel_value *args, uint32_t count)
{
    (void)count;
    str pattern = cel_text(args[1]);
    if (pattern.len > LIMIT_REGEX_BYTES)
        return cel_fail(CEL_INVALID_ARGUMENT, "the regular expression is too long");
    if (!r->regex || !str_eq(pattern, r->regex_text)) {
        char problem[200];
        r->regex = r->regex ? cel_regex_free(r->regex) : NULL;
        if (!cel_charge(r, 1000 + pattern.len * 16))
            return r->fatal;
        r->regex = cel_regex_new(pattern.ptr, pattern.len, LIMIT_REGEX_MEMORY_BYTES, problem,
                                 sizeof problem);
        /* A pattern that is refused for its size has cost as much as the largest that is not. */
        if (!r->regex && !cel_charge(r, REGEX_FAILURE_COST))
            return r->fatal;
        if (!r->regex)
            return cel_failf(r, CEL_INVALID_ARGUMENT, "not a regular expression: %s", problem);
        r->regex_text = pattern;
        /* A short pattern may still be a large program. */
        if (!cel_charge(r, cel_regex_size(r->regex)))
            return r->fatal;
    }
    return cel_matches(r, r->regex, cel_text(args[0]));
}

cel_value cel_fn_char_at(run *r, const cel_value *args, uint32_t count)
{
    (void)count;
    str text = cel_text(args[0]);
    if (!cel_charge_bytes(r, text.len))
        return r->fatal;
    size_t at = cel_code_offset(text, args[1].i);
    if (at == SIZE_MAX)
        return index_error(r, args[1].i);
    return part(text, at, at < text.len ? at + char_bytes(text, at) : at);
}

/* What a search may cost at most is charged before; memmem is linear. */
cel_value cel_fn_index_of(run *r, const cel_value *args, uint32_t count)
{
    str text = cel_text(args[0]);
    if (!cel_charge_bytes(r, text.len))
        return r->fatal;
    size_t from = count > 2 ? cel_code_offset(text, args[2].i) : 0;
    if (from == SIZE_MAX)
        return index_error(r, args[2].i);
    size_t at = str_find(str_part(text, from, text.len), cel_text(args[1]));
    if (at == SIZE_MAX)
        return cel_int(-1);
    return cel_int((int64_t)cel_code_points(str_part(text, 0, from + at)));
}

static size_t find_last(run *r, str text, str needle, size_t from)
{
    if (needle.len > text.len)
        return SIZE_MAX;
    if (from > text.len - needle.len)
        from = text.len - needle.len;
    for (size_t at = from + 1; at-- > 0;) {
        if (memcmp(text.ptr + at, needle.ptr, needle.len) == 0)
            return at;
        if (text.ptr[at] == needle.ptr[0] && !cel_charge_bytes(r, needle.len))
            return SIZE_MAX;
    }
    return SIZE_MAX;
}

cel_value cel_fn_last_index_of(run *r, const cel_value *args, uint32_t count)
{
    str text = cel_text(args[0]);
    str needle = cel_text(args[1]);
    if (!cel_charge_bytes(r, text.len))
        return r->fatal;
    size_t from = count > 2 ? cel_code_offset(text, args[2].i) : text.len;
    if (from == SIZE_MAX)
        return index_error(r, args[2].i);
    size_t at = needle.len == 0 ? from : find_last(r, text, needle, from);
    if (at == SIZE_MAX)
        return cel_int(-1);
    return cel_int((int64_t)cel_code_points(str_part(text, 0, at)));
}

cel_value cel_fn_substring(run *r, const cel_value *args, uint32_t count)
{
    str text = cel_text(args[0]);
    if (!cel_charge_bytes(r, text.len))
        return r->fatal;
    size_t from = cel_code_offset(text, args[1].i);
    if (from == SIZE_MAX)
        return index_error(r, args[1].i);
    if (count < 3)
        return part(text, from, text.len);
    if (args[2].i < args[1].i)
        return cel_failf(r, CEL_OUT_OF_RANGE, "invalid substring range: start %lld, end %lld",
                         (long long)args[1].i, (long long)args[2].i);
    size_t len = cel_code_offset(str_part(text, from, text.len), args[2].i - args[1].i);
    if (len == SIZE_MAX)
        return index_error(r, args[2].i);
    return part(text, from, from + len);
}

/* ---- Changing ----------------------------------------------------------------------------- */

static cel_value change_case(run *r, cel_value v, char first, char last)
{
    cel_value copy = cel_text_value(r, v.text, v.len);
    if (is_error(copy))
        return copy;
    char *text = (char *)(uintptr_t)copy.text;
    for (size_t i = 0; i < copy.len; i++)
        if (text[i] >= first && text[i] <= last)
            text[i] = (char)(text[i] ^ 0x20);
    return copy;
}

cel_value cel_fn_lower(run *r, const cel_value *args, uint32_t count)
{
    (void)count;
    return change_case(r, args[0], 'A', 'Z');
}

cel_value cel_fn_upper(run *r, const cel_value *args, uint32_t count)
{
    (void)count;
    return change_case(r, args[0], 'a', 'z');
}

/* Where the next replacement goes, or SIZE_MAX. An empty text is found between all characters. */
static size_t next_match(str text, size_t at, str old, bool first)
{
    if (old.len > 0) {
        size_t found = str_find(str_part(text, at, text.len), old);
        return found == SIZE_MAX ? SIZE_MAX : at + found;
    }
    if (first)
        return 0;
    return at < text.len ? at + char_bytes(text, at) : SIZE_MAX;
}

static void replace_into(run *r, buf *out, const cel_value *args, int64_t limit)
{
    str text = cel_text(args[0]);
    str old = cel_text(args[1]);
    size_t at = 0;
    for (bool first = true; limit != 0 && !r->stopped && !out->failed; first = false, limit--) {
        size_t found = next_match(text, at, old, first);
        if (found == SIZE_MAX || !cel_charge(r, 1) || !cel_charge_bytes(r, args[2].len))
            break;
        buf_add(out, str_part(text, at, found - at));
        buf_add(out, cel_text(args[2]));
        at = found + old.len;
    }
    buf_add(out, str_part(text, at, text.len));
}

/* Text from a buffer of the heap into the arena. */
static cel_value finished(run *r, buf *out)
{
    cel_value v = out->failed  ? cel_stop(r, CEL_MEMORY, "out of memory")
                  : r->stopped ? r->fatal
                               : cel_text_value(r, out->ptr, out->len);
    buf_done(out);
    return v;
}

cel_value cel_fn_replace(run *r, const cel_value *args, uint32_t count)
{
    buf out = BUF(LIMIT_CEL_EVAL_BYTES);
    if (cel_charge_bytes(r, args[0].len))
        replace_into(r, &out, args, count > 3 && args[3].i >= 0 ? args[3].i : -1);
    return finished(r, &out);
}

static bool is_space(uint32_t c)
{
    return (c >= 9 && c <= 13) || c == ' ' || c == 0x85 || c == 0xA0 || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F ||
           c == 0x205F || c == 0x3000;
}

static uint32_t code_at(str text, size_t at)
{
    size_t bytes = char_bytes(text, at);
    if (bytes == 1)
        return (unsigned char)text.ptr[at] < 0x80 ? (uint32_t)text.ptr[at] : 0xFFFD;
    uint32_t code = (unsigned char)text.ptr[at] & (0xFFu >> (bytes + 1));
    for (size_t i = 1; i < bytes; i++)
        code = code << 6 | ((unsigned char)text.ptr[at + i] & 0x3Fu);
    return code;
}

cel_value cel_fn_trim(run *r, const cel_value *args, uint32_t count)
{
    (void)count;
    str text = cel_text(args[0]);
    if (!cel_charge_bytes(r, text.len))
        return r->fatal;
    size_t from = 0;
    while (from < text.len && is_space(code_at(text, from)))
        from += char_bytes(text, from);
    size_t to = from;
    for (size_t i = from; i < text.len; i += char_bytes(text, i))
        if (!is_space(code_at(text, i)))
            to = i + char_bytes(text, i);
    return part(text, from, to);
}

cel_value cel_fn_reverse_text(run *r, const cel_value *args, uint32_t count)
{
    (void)count;
    str text = cel_text(args[0]);
    char *out = cel_alloc(r, text.len + 1, 1);
    if (!out)
        return r->fatal;
    size_t end = text.len;
    for (size_t i = 0; i < text.len;) {
        size_t bytes = char_bytes(text, i);
        end -= bytes;
        memcpy(out + end, text.ptr + i, bytes);
        i += bytes;
    }
    return cel_string((str){out, text.len});
}

/* ---- Lists of text ------------------------------------------------------------------------ */

static size_t count_parts(str text, str separator)
{
    if (separator.len == 0)
        return cel_code_points(text);
    size_t n = 1;
    for (size_t at = 0;; n++) {
        size_t found = str_find(str_part(text, at, text.len), separator);
        if (found == SIZE_MAX)
            return n;
        at += found + separator.len;
    }
}

cel_value cel_fn_split(run *r, const cel_value *args, uint32_t count)
{
    str text = cel_text(args[0]);
    str separator = cel_text(args[1]);
    if (!cel_charge_bytes(r, text.len))
        return r->fatal;
    size_t most = count_parts(text, separator);
    if (count > 2 && args[2].i >= 0 && (uint64_t)args[2].i < most)
        most = (size_t)args[2].i;
    cel_value *items = cel_charge(r, most) ? cel_alloc(r, most, sizeof *items) : NULL;
    if (!items)
        return r->fatal;
    size_t at = 0;
    for (size_t i = 0; i < most; i++) {
        size_t len = text.len - at;
        if (i + 1 < most)
            len = separator.len ? str_find(str_part(text, at, text.len), separator)
                                : char_bytes(text, at);
        items[i] = part(text, at, at + len);
        at += len + separator.len;
    }
    return cel_native_list(r, items, most);
}

cel_value cel_fn_join(run *r, const cel_value *args, uint32_t count)
{
    buf out = BUF(LIMIT_CEL_EVAL_BYTES);
    cel_iter it = cel_iterate(r, args[0]);
    cel_value key;
    cel_value item;
    str separator = count > 1 ? cel_text(args[1]) : STR_EMPTY;
    while (cel_charge(r, 1) && cel_next(&it, &key, &item)) {
        if (item.kind != CEL_STRING) {
            buf_done(&out);
            return cel_no_overload(r, STR("join: element"), &item, 1);
        }
        if (!cel_charge_bytes(r, (size_t)item.len + separator.len))
            break;
        if (key.i > 0)
            buf_add(&out, separator);
        buf_add(&out, cel_text(item));
    }
    return finished(r, &out);
}

cel_value cel_fn_quote(run *r, const cel_value *args, uint32_t count)
{
    (void)count;
    static const char from[] = "\a\b\f\n\r\t\v\\\"";
    static const char to[] = "abfnrtv\\\"";
    str text = cel_text(args[0]);
    buf out = BUF(LIMIT_CEL_EVAL_BYTES);
    if (!cel_charge_bytes(r, text.len))
        return r->fatal;
    buf_addc(&out, '"');
    for (size_t i = 0; i < text.len;) {
        size_t bytes = char_bytes(text, i);
        const char *escape = text.ptr[i] ? strchr(from, text.ptr[i]) : NULL;
        if (escape) {
            buf_addc(&out, '\\');
            buf_addc(&out, to[escape - from]);
        } else if (bytes == 1 && (unsigned char)text.ptr[i] >= 0x80) {
            buf_add(&out, STR("\xEF\xBF\xBD"));
        } else {
            buf_add(&out, str_part(text, i, bytes));
        }
        i += bytes;
    }
    buf_addc(&out, '"');
    return finished(r, &out);
}

/* ---- Base64 ------------------------------------------------------------------------------- */

static const char base64[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

cel_value cel_fn_base64_encode(run *r, const cel_value *args, uint32_t count)
{
    (void)count;
    str in = cel_text(args[0]);
    size_t len = (in.len + 2) / 3 * 4;
    char *out = cel_charge_bytes(r, len) ? cel_alloc(r, len + 1, 1) : NULL;
    if (!out)
        return r->fatal;
    char *at = out;
    for (size_t i = 0; i < in.len; i += 3) {
        unsigned char b[3] = {0};
        size_t have = in.len - i < 3 ? in.len - i : 3;
        memcpy(b, in.ptr + i, have);
        *at++ = base64[b[0] >> 2];
        *at++ = base64[(b[0] & 3) << 4 | b[1] >> 4];
        *at++ = have > 1 ? base64[(b[1] & 15) << 2 | b[2] >> 6] : '=';
        *at++ = have > 2 ? base64[b[2] & 63] : '=';
    }
    return cel_string((str){out, len});
}

cel_value cel_fn_base64_decode(run *r, const cel_value *args, uint32_t count)
{
    (void)count;
    str in = cel_text(args[0]);
    size_t full = in.len;
    while (in.len > 0 && full - in.len < 2 && in.ptr[in.len - 1] == '=')
        in.len--;
    char *out = cel_charge_bytes(r, in.len) ? cel_alloc(r, in.len + 1, 1) : NULL;
    if (!out)
        return r->fatal;
    /* Padding may be left out, but not be wrong. */
    bool good = in.len % 4 != 1 && (full == in.len || full % 4 == 0);
    uint32_t bits = 0;
    unsigned have = 0;
    size_t len = 0;
    for (size_t i = 0; good && i < in.len; i++) {
        const char *digit = in.ptr[i] ? strchr(base64, in.ptr[i]) : NULL;
        good = digit != NULL;
        bits = bits << 6 | (uint32_t)(digit ? digit - base64 : 0);
        have += 6;
        if (have >= 8) {
            have -= 8;
            out[len++] = (char)(bits >> have & 0xFF);
        }
    }
    return good ? cel_bytes((str){out, len}) : cel_fail(CEL_INVALID_ARGUMENT, "not valid base64");
}
