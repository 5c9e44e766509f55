/* SPDX-License-Identifier: Apache-2.0 */
#include "base/str.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/mem.h"

int str_cmp(str a, str b)
{
    size_t common = a.len < b.len ? a.len : b.len;
    int order = common ? memcmp(a.ptr, b.ptr, common) : 0;
    if (order != 0)
        return order;
    return (a.len > b.len) - (a.len < b.len);
}

bool str_starts(str text, str prefix)
{
    return text.len >= prefix.len && str_eq((str){text.ptr, prefix.len}, prefix);
}

bool str_ends(str text, str suffix)
{
    return text.len >= suffix.len &&
           str_eq(str_part(text, text.len - suffix.len, suffix.len), suffix);
}

size_t str_find(str text, str needle)
{
    if (needle.len == 0)
        return 0;
    if (needle.len > text.len)
        return SIZE_MAX;
    const char *found = memmem(text.ptr, text.len, needle.ptr, needle.len);
    return found ? (size_t)(found - text.ptr) : SIZE_MAX;
}

str str_part(str text, size_t from, size_t len)
{
    if (from > text.len)
        from = text.len;
    if (from > 0) { /* not even 0 may be added to NULL */
        text.ptr += from;
        text.len -= from;
    }
    return (str){text.ptr, len < text.len ? len : text.len};
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

str str_trim(str text)
{
    while (text.len > 0 && is_blank(text.ptr[0])) {
        text.ptr++;
        text.len--;
    }
    while (text.len > 0 && is_blank(text.ptr[text.len - 1]))
        text.len--;
    return text;
}

str str_cut(str *text, char separator)
{
    const char *found = text->len ? memchr(text->ptr, separator, text->len) : NULL;
    if (!found) {
        str all = *text;
        *text = (str){NULL, 0};
        return all;
    }
    str head = {text->ptr, (size_t)(found - text->ptr)};
    *text = (str){found + 1, text->len - head.len - 1};
    return head;
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

size_t str_distance(str a, str b)
{
    size_t rows[3][STR_DISTANCE_BYTES + 1];
    if (a.len > STR_DISTANCE_BYTES || b.len > STR_DISTANCE_BYTES)
        return SIZE_MAX;
    for (size_t j = 0; j <= b.len; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= a.len; i++) {
        size_t *now = rows[i % 3], *before = rows[(i + 2) % 3], *older = rows[(i + 1) % 3];
        char c = lower(a.ptr[i - 1]);
        now[0] = i;
        for (size_t j = 1; j <= b.len; j++) {
            char d = lower(b.ptr[j - 1]);
            now[j] = smaller(before[j - 1] + (c != d), smaller(before[j], now[j - 1]) + 1);
            if (i > 1 && j > 1 && c == lower(b.ptr[j - 2]) && d == lower(a.ptr[i - 2]))
                now[j] = smaller(now[j], older[j - 2] + 1);
        }
    }
    return rows[a.len % 3][b.len];
}

size_t str_utf8_sequence(str text)
{
    if (text.len == 0)
        return 0;
    const unsigned char *p = (const unsigned char *)text.ptr;
    if (p[0] < 0x80)
        return 1;
    size_t length = p[0] >= 0xF0 ? 4 : p[0] >= 0xE0 ? 3 : 2;
    if (p[0] < 0xC2 || p[0] > 0xF4 || text.len < length)
        return 0;
    unsigned char low = 0x80;
    unsigned char high = 0xBF;
    if (p[0] == 0xE0)
        low = 0xA0;
    else if (p[0] == 0xED)
        high = 0x9F;
    else if (p[0] == 0xF0)
        low = 0x90;
    else if (p[0] == 0xF4)
        high = 0x8F;
    if (p[1] < low || p[1] > high)
        return 0;
    for (size_t i = 2; i < length; i++)
        if ((p[i] & 0xC0) != 0x80)
            return 0;
    return length;
}

bool str_utf8(str text)
{
    while (text.len > 0) {
        size_t length = str_utf8_sequence(text);
        if (length == 0)
            return false;
        text.ptr += length;
        text.len -= length;
    }
    return true;
}

uint32_t str_utf8_next(str text, size_t *at)
{
    const unsigned char *p = (const unsigned char *)text.ptr + *at;
    if (p[0] < 0x80) {
        *at += 1;
        return p[0];
    }
    if (p[0] < 0xE0) {
        *at += 2;
        return ((uint32_t)(p[0] & 0x1F) << 6) | (p[1] & 0x3Fu);
    }
    if (p[0] < 0xF0) {
        *at += 3;
        return ((uint32_t)(p[0] & 0x0F) << 12) | ((uint32_t)(p[1] & 0x3F) << 6) | (p[2] & 0x3Fu);
    }
    *at += 4;
    return ((uint32_t)(p[0] & 0x07) << 18) | ((uint32_t)(p[1] & 0x3F) << 12) |
           ((uint32_t)(p[2] & 0x3F) << 6) | (p[3] & 0x3Fu);
}

size_t str_utf8_put(uint32_t code_point, char out[4])
{
    if (code_point < 0x80) {
        out[0] = (char)code_point;
        return 1;
    }
    if (code_point < 0x800) {
        out[0] = (char)(0xC0 | (code_point >> 6));
        out[1] = (char)(0x80 | (code_point & 0x3F));
        return 2;
    }
    if (code_point < 0x10000) {
        out[0] = (char)(0xE0 | (code_point >> 12));
        out[1] = (char)(0x80 | ((code_point >> 6) & 0x3F));
        out[2] = (char)(0x80 | (code_point & 0x3F));
        return 3;
    }
    out[0] = (char)(0xF0 | (code_point >> 18));
    out[1] = (char)(0x80 | ((code_point >> 12) & 0x3F));
    out[2] = (char)(0x80 | ((code_point >> 6) & 0x3F));
    out[3] = (char)(0x80 | (code_point & 0x3F));
    return 4;
}

size_t str_utf8_printable(str text)
{
    size_t length = str_utf8_sequence(text);
    const unsigned char *p = (const unsigned char *)text.ptr;
    if (length == 1 && (p[0] < 0x20 || p[0] == 0x7F))
        return 0;
    if (length == 2 && p[0] == 0xC2 && p[1] < 0xA0)
        return 0;
    return length;
}

shown str_shown(str text)
{
    shown out;
    size_t len = 0;
    while (text.len > 0) {
        size_t good = str_utf8_printable(text);
        size_t length = good > 0 ? good : 1;
        if (len + length > STR_SHOWN_BYTES) {
            memcpy(out.text + len, "...", 3);
            len += 3;
            break;
        }
        memcpy(out.text + len, good > 0 ? text.ptr : "?", length);
        len += length;
        text = str_part(text, length, text.len);
    }
    out.text[len] = '\0';
    return out;
}

/* Whether a byte of UTF-8 goes on with a character that began before it. */
static bool goes_on(str text, size_t at)
{
    return at < text.len && ((unsigned char)text.ptr[at] & 0xc0) == 0x80;
}

void str_fit(char *out, size_t size, str text)
{
    static const char gap[] = " ... ";
    assert(size >= 16);
    size_t room = size - 1, head = text.len, tail = text.len;
    if (text.len > room) {
        head = (room - (sizeof gap - 1)) / 2;
        tail = text.len - (room - (sizeof gap - 1) - head);
        while (head > 0 && goes_on(text, head))
            head--;
        while (goes_on(text, tail))
            tail++;
    }
    snprintf(out, size, "%.*s%s%.*s", (int)head, text.ptr ? text.ptr : "",
             head < text.len ? gap : "", (int)(text.len - tail),
             text.len > tail ? text.ptr + tail : "");
}

/* Makes room for "more" bytes and a terminator behind them. */
static bool buf_room(buf *b, size_t more)
{
    if (b->failed)
        return false;
    if (more > b->max || b->len > b->max - more) {
        b->failed = b->full = true;
        return false;
    }
    size_t need = b->len + more + 1;
    if (need <= b->cap)
        return true;
    size_t cap = b->cap ? b->cap * 2 : 64;
    if (cap < need)
        cap = need;
    char *moved = mem_realloc(b->ptr, cap);
    if (!moved) {
        b->failed = true;
        return false;
    }
    b->ptr = moved;
    b->cap = cap;
    return true;
}

void buf_add(buf *b, str text)
{
    if (!buf_room(b, text.len))
        return;
    if (text.len > 0)
        memcpy(b->ptr + b->len, text.ptr, text.len);
    b->len += text.len;
    b->ptr[b->len] = '\0';
}

void buf_addc(buf *b, char c)
{
    if (!buf_room(b, 1))
        return;
    b->ptr[b->len++] = c;
    b->ptr[b->len] = '\0';
}

void buf_add_quoted(buf *b, str text)
{
    if (!buf_room(b, text.len + 2))
        return;
    char *at = b->ptr + b->len;
    at[0] = '"';
    if (text.len > 0)
        memcpy(at + 1, text.ptr, text.len);
    at[text.len + 1] = '"';
    at[text.len + 2] = '\0';
    b->len += text.len + 2;
}

void buf_addz(buf *b, const char *zero_terminated)
{
    buf_add(b, str_of(zero_terminated));
}

/* An integer argument as wide as the letters between % and d or u say. */
static int64_t next_int(va_list *args, int longs, bool size)
{
    if (size)
        return (int64_t)va_arg(*args, size_t);
    if (longs == 0)
        return va_arg(*args, int);
    return longs == 1 ? va_arg(*args, long) : va_arg(*args, long long);
}

/* Texts and whole numbers without flags are most of what is ever written, and libc takes ten times
 * as long for them. False: there is something else in the format. */
static bool add_plain(buf *b, const char *format, va_list *args)
{
    for (const char *at = format; *at != '\0';) {
        size_t literal = strcspn(at, "%");
        buf_add(b, (str){at, literal});
        at += literal;
        if (*at == '\0')
            break;
        at++;
        int longs = 0;
        bool size = *at == 'z';
        if (strncmp(at, ".*s", 3) == 0) {
            int length = va_arg(*args, int);
            const char *text = va_arg(*args, const char *);
            buf_add(b, (str){text, length > 0 ? strnlen(text, (size_t)length) : 0});
            at += 3;
            continue;
        }
        for (at += size; *at == 'l'; at++)
            longs++;
        if ((longs > 0 || size) && *at != 'd' && *at != 'u')
            return false;
        switch (*at++) {
        case 's': buf_addz(b, va_arg(*args, const char *)); break;
        case 'd': buf_add_int(b, next_int(args, longs, size)); break;
        case 'u':
            buf_add_uint(b, longs > 0 || size ? (uint64_t)next_int(args, longs, size)
                                              : va_arg(*args, unsigned));
            break;
        case 'c': buf_addc(b, (char)va_arg(*args, int)); break;
        case '%': buf_addc(b, '%'); break;
        default: return false;
        }
    }
    return true;
}

__attribute__((format(printf, 2, 0))) static void add_any(buf *b, const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    size_t free_bytes = b->cap - b->len;
    int length = vsnprintf(free_bytes > 0 ? b->ptr + b->len : NULL, free_bytes, format, args);
    if (length < 0) {
        b->failed = true;
    } else if (buf_room(b, (size_t)length)) {
        if ((size_t)length >= free_bytes)
            vsnprintf(b->ptr + b->len, (size_t)length + 1, format, again);
        b->len += (size_t)length;
    }
    if (b->ptr)
        b->ptr[b->len] = '\0'; /* also of what had no room */
    va_end(again);
}

void buf_addf(buf *b, const char *format, ...)
{
    va_list args, again;
    size_t before = b->len;
    va_start(args, format);
    va_copy(again, args);
    if (!add_plain(b, format, &args) || (b->failed && b->len != before)) {
        b->len = before; /* all of it, or nothing */
        if (!b->failed)
            add_any(b, format, again);
        else if (b->ptr)
            b->ptr[b->len] = '\0';
    }
    va_end(again);
    va_end(args);
}

void buf_add_uint(buf *b, uint64_t number)
{
    char digits[sizeof "18446744073709551615"];
    size_t at = sizeof digits;
    do {
        digits[--at] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    buf_add(b, (str){digits + at, sizeof digits - at});
}

void buf_add_int(buf *b, int64_t number)
{
    if (number < 0)
        buf_addc(b, '-');
    buf_add_uint(b, number < 0 ? 0 - (uint64_t)number : (uint64_t)number);
}

static void add_json_escape(buf *b, unsigned char c)
{
    switch (c) {
    case '"': buf_addz(b, "\\\""); break;
    case '\\': buf_addz(b, "\\\\"); break;
    case '\n': buf_addz(b, "\\n"); break;
    case '\r': buf_addz(b, "\\r"); break;
    case '\t': buf_addz(b, "\\t"); break;
    default: buf_addf(b, "\\u%04x", c); break;
    }
}

/* Whether a byte of a text stands for itself in JSON. */
static bool is_plain_json(unsigned char c)
{
    return c >= 0x20 && c < 0x80 && c != '"' && c != '\\';
}

/* Whether eight bytes are all plain: none has its highest bit, before or after 0x20 is taken away,
 * or 1 of what differs from a quote or a backslash. A byte that is not plain may also show in the
 * next one. */
static bool are_plain_json(const char *at)
{
    const uint64_t ones = UINT64_C(0x0101010101010101);
    uint64_t eight;
    memcpy(&eight, at, sizeof eight);
    uint64_t quote = (eight ^ ones * '"') - ones, slash = (eight ^ ones * '\\') - ones;
    return ((eight | (eight - ones * 0x20) | quote | slash) & ones * 0x80) == 0;
}

/* Where the first byte stands that is not plain, from a place on. */
static size_t plain_json_end(str text, size_t at)
{
    while (text.len - at >= sizeof(uint64_t) && are_plain_json(text.ptr + at))
        at += sizeof(uint64_t);
    while (at < text.len && is_plain_json((unsigned char)text.ptr[at]))
        at++;
    return at;
}

void buf_add_json(buf *b, str text)
{
    size_t plain = 0, at = plain_json_end(text, 0);
    if (at == text.len) {
        buf_add_quoted(b, text);
        return;
    }
    buf_addc(b, '"');
    for (; at < text.len; at = plain_json_end(text, at)) {
        unsigned char c = (unsigned char)text.ptr[at];
        size_t length = c < 0x80 ? 1 : str_utf8_sequence((str){text.ptr + at, text.len - at});
        if (length > 1) {
            at += length;
            continue;
        }
        buf_add(b, (str){text.ptr + plain, at - plain});
        if (length == 0)
            buf_addz(b, "\xEF\xBF\xBD");
        else
            add_json_escape(b, c);
        at++;
        plain = at;
    }
    if (at > plain)
        buf_add(b, (str){text.ptr + plain, at - plain});
    buf_addc(b, '"');
}

void buf_clear(buf *b)
{
    b->len = 0;
    b->failed = b->full = false;
    if (b->ptr)
        b->ptr[0] = '\0';
}

void buf_done(buf *b)
{
    b->ptr = mem_free(b->ptr);
    b->len = 0;
    b->cap = 0;
}

bool buf_fault(const buf *b, err *error)
{
    return b->full ? err_set(error, "found more than %zu bytes, which is the most", b->max)
                   : err_memory(error);
}
