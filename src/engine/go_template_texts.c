/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of templates that are about text. */
#include <inttypes.h>

#include "base/base64.h"
#include "engine/fleet_names.h"
#include "engine/go_template_internal.h"
#include "model/document.h"
#include "select/cel_regex.h"

#define REGEX_ERROR_BYTES 200

bool template_take_buf(const template_call *c, buf *b, template_value *ret)
{
    str kept = b->failed ? (str){NULL, 0} : arena_str(c->arena, buf_str(b));
    buf_done(b);
    *ret = template_text(kept);
    return kept.ptr || err_set(c->error, "the result is too long, or memory ran out");
}

/* nil is the text that Go prints for it. */
str template_str(const template_call *c, const template_value *v)
{
    buf out = BUF(TEMPLATE_OUTPUT_BYTES_MAX);
    template_value made;
    if (v->kind == TEMPLATE_TEXT)
        return v->text;
    if (v->kind == TEMPLATE_NIL)
        return STR("<nil>");
    template_print(&out, v);
    return template_take_buf(c, &out, &made) ? made.text : (str){NULL, 0};
}

bool template_fn_toString(const template_call *c, template_value *ret)
{
    *ret = template_text(template_str(c, &c->args[0]));
    return ret->text.ptr != NULL;
}

/* ---- letters ---- */

static bool is_lower(char c)
{
    return c >= 'a' && c <= 'z';
}

static bool is_upper(char c)
{
    return c >= 'A' && c <= 'Z';
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '\v' || c == '\f';
}

/* Letters of ASCII only: what others would become depends on tables of Unicode. */
static bool recase(const template_call *c, bool up, bool words, template_value *ret)
{
    str text;
    buf out = BUF(TEMPLATE_OUTPUT_BYTES_MAX);
    if (!template_text_at(c, 0, &text))
        return false;
    for (size_t i = 0; i < text.len; i++) {
        char at = text.ptr[i];
        if (at & 0x80) {
            buf_done(&out);
            return err_set(c->error, "found letters beyond ASCII, which are not supported here");
        }
        bool begins = !words || i == 0 || is_blank(text.ptr[i - 1]);
        if (up && begins && is_lower(at))
            at = (char)(at - 'a' + 'A');
        else if (!up && is_upper(at))
            at = (char)(at - 'A' + 'a');
        buf_addc(&out, at);
    }
    return template_take_buf(c, &out, ret);
}

bool template_fn_upper(const template_call *c, template_value *ret)
{
    return recase(c, true, false, ret);
}

bool template_fn_lower(const template_call *c, template_value *ret)
{
    return recase(c, false, false, ret);
}

bool template_fn_title(const template_call *c, template_value *ret)
{
    return recase(c, true, true, ret);
}

/* ---- cutting ---- */

static bool in_set(char c, str set)
{
    return set.len > 0 && memchr(set.ptr, c, set.len) != NULL;
}

static str trim_set(str text, str set)
{
    while (text.len > 0 && in_set(text.ptr[0], set))
        text = str_part(text, 1, SIZE_MAX);
    while (text.len > 0 && in_set(text.ptr[text.len - 1], set))
        text.len--;
    return text;
}

bool template_fn_trim(const template_call *c, template_value *ret)
{
    str text;
    bool good = template_text_at(c, 0, &text);
    *ret = template_text(good ? trim_set(text, STR(" \t\r\n\v\f")) : STR_EMPTY);
    return good;
}

/* Two texts: of most functions the first is what is looked for, the last where. */
static bool two_texts(const template_call *c, str *what, str *text)
{
    return template_text_at(c, 0, what) && template_text_at(c, 1, text);
}

bool template_fn_trimAll(const template_call *c, template_value *ret)
{
    str set, text;
    bool good = two_texts(c, &set, &text);
    *ret = template_text(good ? trim_set(text, set) : STR_EMPTY);
    return good;
}

bool template_fn_trimPrefix(const template_call *c, template_value *ret)
{
    str what, text;
    if (!two_texts(c, &what, &text))
        return false;
    *ret = template_text(str_starts(text, what) ? str_part(text, what.len, SIZE_MAX) : text);
    return true;
}

bool template_fn_trimSuffix(const template_call *c, template_value *ret)
{
    str what, text;
    if (!two_texts(c, &what, &text))
        return false;
    *ret = template_text(str_ends(text, what) ? str_part(text, 0, text.len - what.len) : text);
    return true;
}

bool template_fn_nospace(const template_call *c, template_value *ret)
{
    str text;
    buf out = BUF(TEMPLATE_OUTPUT_BYTES_MAX);
    if (!template_text_at(c, 0, &text))
        return false;
    for (size_t i = 0; i < text.len; i++)
        if (!is_blank(text.ptr[i]))
            buf_addc(&out, text.ptr[i]);
    return template_take_buf(c, &out, ret);
}

bool template_fn_substr(const template_call *c, template_value *ret)
{
    int64_t from, to;
    str text;
    if (!template_int_at(c, 0, &from) || !template_int_at(c, 1, &to) ||
        !template_text_at(c, 2, &text))
        return false;
    if (from < 0)
        from = 0;
    if (to < 0 || (uint64_t)to > text.len)
        to = (int64_t)text.len;
    *ret = template_text(from < to ? str_part(text, (size_t)from, (size_t)(to - from)) : STR_EMPTY);
    return true;
}

bool template_fn_trunc(const template_call *c, template_value *ret)
{
    int64_t count;
    str text;
    if (!template_int_at(c, 0, &count) || !template_text_at(c, 1, &text))
        return false;
    if (count >= 0)
        text = str_part(text, 0, (size_t)count);
    else if (count > -(int64_t)text.len)
        text = str_part(text, text.len - (size_t)-count, SIZE_MAX);
    *ret = template_text(text);
    return true;
}

/* ---- looking ---- */

bool template_fn_contains(const template_call *c, template_value *ret)
{
    str what, text;
    bool good = two_texts(c, &what, &text);
    *ret = template_bool(good && str_find(text, what) != SIZE_MAX);
    return good;
}

bool template_fn_hasPrefix(const template_call *c, template_value *ret)
{
    str what, text;
    bool good = two_texts(c, &what, &text);
    *ret = template_bool(good && str_starts(text, what));
    return good;
}

bool template_fn_hasSuffix(const template_call *c, template_value *ret)
{
    str what, text;
    bool good = two_texts(c, &what, &text);
    *ret = template_bool(good && str_ends(text, what));
    return good;
}

bool template_fn_regexMatch(const template_call *c, template_value *ret)
{
    str pattern, text;
    char why[REGEX_ERROR_BYTES] = {0};
    if (!two_texts(c, &pattern, &text))
        return false;
    cel_regex *compiled =
        cel_regex_new(pattern.ptr, pattern.len, LIMIT_REGEX_MEMORY_BYTES, why, sizeof why);
    if (!compiled)
        return err_set(c->error, "%s", why);
    int found = cel_regex_match(compiled, text.ptr, text.len);
    cel_regex_free(compiled);
    *ret = template_bool(found > 0);
    return found >= 0 || err_memory(c->error);
}

/* ---- making ---- */

static void add_replaced(buf *out, str text, str old, str new)
{
    for (;;) {
        size_t at = old.len > 0 ? str_find(text, old) : SIZE_MAX;
        buf_add(out, str_part(text, 0, at));
        if (at == SIZE_MAX)
            return;
        buf_add(out, new);
        text = str_part(text, at + old.len, SIZE_MAX);
    }
}

bool template_fn_replace(const template_call *c, template_value *ret)
{
    str old, new, text;
    buf out = BUF(TEMPLATE_OUTPUT_BYTES_MAX);
    if (!template_text_at(c, 0, &old) || !template_text_at(c, 1, &new) ||
        !template_text_at(c, 2, &text))
        return false;
    if (old.len == 0)
        return err_set(c->error, "argument 1: found an empty text");
    add_replaced(&out, text, old, new);
    return template_take_buf(c, &out, ret);
}

bool template_fn_repeat(const template_call *c, template_value *ret)
{
    int64_t count;
    str text;
    buf out = BUF(TEMPLATE_OUTPUT_BYTES_MAX);
    if (!template_int_at(c, 0, &count) || !template_text_at(c, 1, &text))
        return false;
    for (int64_t i = 0; i < count && !out.failed && text.len > 0; i++)
        buf_add(&out, text);
    return template_take_buf(c, &out, ret);
}

static bool indented(const template_call *c, bool newline, template_value *ret)
{
    int64_t count;
    str text;
    buf pad = BUF(TEMPLATE_OUTPUT_BYTES_MAX), out = BUF(TEMPLATE_OUTPUT_BYTES_MAX);
    if (!template_int_at(c, 0, &count) || !template_text_at(c, 1, &text))
        return false;
    buf_addc(&pad, '\n');
    for (int64_t i = 0; i < count && !pad.failed; i++)
        buf_addc(&pad, ' ');
    buf_add(&out, newline ? buf_str(&pad) : str_part(buf_str(&pad), 1, SIZE_MAX));
    add_replaced(&out, text, STR("\n"), buf_str(&pad));
    out.failed |= pad.failed;
    buf_done(&pad);
    return template_take_buf(c, &out, ret);
}

bool template_fn_indent(const template_call *c, template_value *ret)
{
    return indented(c, false, ret);
}

bool template_fn_nindent(const template_call *c, template_value *ret)
{
    return indented(c, true, ret);
}

/* Go's %q, as far as ASCII and printable letters go. */
static void add_quoted(buf *out, str text)
{
    static const char from[] = "\a\b\f\n\r\t\v\\\"", to[] = "abfnrtv\\\"";
    buf_addc(out, '"');
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        const char *found = c ? strchr(from, c) : NULL;
        if (found) {
            buf_addc(out, '\\');
            buf_addc(out, to[found - from]);
        } else if ((unsigned char)c < 0x20 || c == 0x7f) {
            buf_addf(out, "\\x%02x", (unsigned)(unsigned char)c);
        } else {
            buf_addc(out, c);
        }
    }
    buf_addc(out, '"');
}

/* Arguments that are not nil, with a blank between them; quote: 0, ' or ". */
static bool joined(const template_call *c, char quote, template_value *ret)
{
    buf out = BUF(TEMPLATE_OUTPUT_BYTES_MAX);
    bool any = false;
    for (size_t i = 0; i < c->count; i++) {
        if (c->args[i].kind == TEMPLATE_NIL)
            continue;
        str text = template_str(c, &c->args[i]);
        out.failed |= !text.ptr;
        buf_addz(&out, any ? " " : "");
        any = true;
        if (quote == '"') {
            add_quoted(&out, text);
            continue;
        }
        buf_addz(&out, quote ? "'" : "");
        buf_add(&out, text);
        buf_addz(&out, quote ? "'" : "");
    }
    return template_take_buf(c, &out, ret);
}

bool template_fn_quote(const template_call *c, template_value *ret)
{
    return joined(c, '"', ret);
}

bool template_fn_squote(const template_call *c, template_value *ret)
{
    return joined(c, '\'', ret);
}

bool template_fn_cat(const template_call *c, template_value *ret)
{
    return joined(c, 0, ret);
}

bool template_fn_join(const template_call *c, template_value *ret)
{
    str between;
    const template_value *list;
    buf out = BUF(TEMPLATE_OUTPUT_BYTES_MAX);
    bool any = false;
    if (!template_text_at(c, 0, &between) || !template_list_at(c, 1, &list))
        return false;
    for (size_t i = 0; i < list->list.len; i++) {
        if (list->list.at[i].kind == TEMPLATE_NIL)
            continue;
        str text = template_str(c, &list->list.at[i]);
        out.failed |= !text.ptr;
        buf_add(&out, any ? between : STR_EMPTY);
        buf_add(&out, text);
        any = true;
    }
    return template_take_buf(c, &out, ret);
}

bool template_fn_splitList(const template_call *c, template_value *ret)
{
    str between, text;
    template_value *at;
    size_t len = 1;
    if (!two_texts(c, &between, &text))
        return false;
    if (between.len == 0)
        return err_set(c->error, "argument 1: found an empty text");
    for (str rest = text; str_find(rest, between) != SIZE_MAX; len++)
        rest = str_part(rest, str_find(rest, between) + between.len, SIZE_MAX);
    if (!template_new_list(c, len, &at, ret))
        return false;
    for (size_t i = 0; i < len; i++) {
        size_t end = str_find(text, between);
        at[i] = template_text(str_part(text, 0, end));
        text = end == SIZE_MAX ? STR_EMPTY : str_part(text, end + between.len, SIZE_MAX);
    }
    return true;
}

static int pair_order(const void *a, const void *b)
{
    return str_cmp(((const template_pair *)a)->key, ((const template_pair *)b)->key);
}

/* The parts by the names _0, _1 and so on. */
bool template_fn_split(const template_call *c, template_value *ret)
{
    template_value list;
    if (!template_fn_splitList(c, &list))
        return false;
    template_pair *at = ARENA_ARRAY(c->arena, list.list.len, template_pair);
    for (size_t i = 0; at && i < list.list.len; i++)
        at[i] = (template_pair){arena_printf(c->arena, "_%zu", i), list.list.at[i]};
    if (!at || !at[list.list.len - 1].key.ptr)
        return err_memory(c->error);
    qsort(at, list.list.len, sizeof *at, pair_order);
    *ret = (template_value){.kind = TEMPLATE_MAP, .map = {at, list.list.len}};
    return true;
}

/* ---- printing ---- */

/* Go puts a blank between operands when neither is a text; println between all. */
static bool printed(const template_call *c, bool line, template_value *ret)
{
    buf out = BUF(TEMPLATE_OUTPUT_BYTES_MAX);
    for (size_t i = 0; i < c->count; i++) {
        bool apart =
            i > 0 && c->args[i].kind != TEMPLATE_TEXT && c->args[i - 1].kind != TEMPLATE_TEXT;
        str text = template_str(c, &c->args[i]);
        buf_addz(&out, apart || (line && i > 0) ? " " : "");
        buf_add(&out, text.ptr ? text : STR_EMPTY);
        out.failed |= !text.ptr;
    }
    buf_addz(&out, line ? "\n" : "");
    return template_take_buf(c, &out, ret);
}

bool template_fn_print(const template_call *c, template_value *ret)
{
    return printed(c, false, ret);
}

bool template_fn_println(const template_call *c, template_value *ret)
{
    return printed(c, true, ret);
}

#define WIDTH_MAX 1000
/* Pads to the width, on the right with "-", with zeros with "0". */
static void add_padded(buf *out, str text, bool left, bool zeros, size_t width)
{
    size_t columns = 0;
    for (size_t at = 0; at < text.len; columns++)
        str_utf8_next(text, &at);
    if (left)
        buf_add(out, text);
    if (zeros && !left && text.len > 0 && text.ptr[0] == '-') {
        buf_addc(out, '-');
        text = str_part(text, 1, SIZE_MAX);
    }
    for (; columns < width; columns++)
        buf_addc(out, zeros && !left ? '0' : ' ');
    if (!left)
        buf_add(out, text);
}

/* One verb of a format, from behind its "%": flags - and 0, a width, and v, s, d, q or t. */
static bool add_verb(const template_call *c, str *format, size_t *next, buf *out)
{
    bool left = false, zeros = false;
    size_t width = 0;
    while (format->len > 0 && (format->ptr[0] == '-' || format->ptr[0] == '0')) {
        left |= format->ptr[0] == '-';
        zeros |= format->ptr[0] == '0';
        *format = str_part(*format, 1, SIZE_MAX);
    }
    while (format->len > 0 && format->ptr[0] >= '0' && format->ptr[0] <= '9') {
        width = width * 10 + (size_t)(format->ptr[0] - '0');
        width = width > WIDTH_MAX ? WIDTH_MAX : width;
        *format = str_part(*format, 1, SIZE_MAX);
    }
    char verb = format->len > 0 ? format->ptr[0] : 0;
    *format = str_part(*format, 1, SIZE_MAX);
    if (verb == '%') {
        buf_addc(out, '%');
        return true;
    }
    const template_value *v = *next < c->count ? &c->args[(*next)++] : NULL;
    bool fits = verb == 'v' || (v && ((verb == 's' && v->kind == TEMPLATE_TEXT) ||
                                      (verb == 'q' && v->kind == TEMPLATE_TEXT) ||
                                      (verb == 'd' && v->kind == TEMPLATE_INT) ||
                                      (verb == 't' && v->kind == TEMPLATE_BOOL)));
    if (!v || !fits)
        return err_set(c->error, "found %%%c for %s, which is not supported", verb ? verb : ' ',
                       v ? template_kind_text(v->kind) : "no argument");
    str text = template_str(c, v);
    if (!text.ptr)
        return false;
    buf quoted = BUF(TEMPLATE_OUTPUT_BYTES_MAX);
    if (verb == 'q') {
        add_quoted(&quoted, text);
        text = buf_str(&quoted);
    }
    add_padded(out, text, left, zeros, width);
    out->failed |= quoted.failed;
    buf_done(&quoted);
    return true;
}

bool template_fn_printf(const template_call *c, template_value *ret)
{
    str format;
    size_t next = 1;
    buf out = BUF(TEMPLATE_OUTPUT_BYTES_MAX);
    if (!template_text_at(c, 0, &format))
        return false;
    for (;;) {
        size_t at = str_find(format, STR("%"));
        buf_add(&out, str_part(format, 0, at));
        if (at == SIZE_MAX)
            break;
        format = str_part(format, at + 1, SIZE_MAX);
        if (!add_verb(c, &format, &next, &out)) {
            buf_done(&out);
            return false;
        }
    }
    if (next < c->count) {
        buf_done(&out);
        return err_set(c->error, "found more arguments than verbs");
    }
    return template_take_buf(c, &out, ret);
}

/* ---- other forms ---- */

bool template_fn_toJson(const template_call *c, template_value *ret)
{
    buf out = BUF(TEMPLATE_OUTPUT_BYTES_MAX);
    template_to_json(&out, &c->args[0]);
    return template_take_buf(c, &out, ret);
}

bool template_fn_fromJson(const template_call *c, template_value *ret)
{
    str text;
    if (!template_text_at(c, 0, &text))
        return false;
    yyjson_val *json = json_parse(c->arena, text, c->error);
    return json && (template_from_json(c->arena, json, ret) || err_memory(c->error));
}

bool template_fn_b64enc(const template_call *c, template_value *ret)
{
    str text;
    buf out = BUF(TEMPLATE_OUTPUT_BYTES_MAX);
    if (!template_text_at(c, 0, &text))
        return false;
    base64_encode(text, &out);
    return template_take_buf(c, &out, ret);
}

bool template_fn_b64dec(const template_call *c, template_value *ret)
{
    str text;
    buf out = BUF(TEMPLATE_OUTPUT_BYTES_MAX);
    if (!template_text_at(c, 0, &text))
        return false;
    if (!base64_decode(text, &out) || !str_utf8(buf_str(&out))) {
        buf_done(&out);
        return err_set(c->error, "found no base64 of a text");
    }
    return template_take_buf(c, &out, ret);
}

bool template_fn_sha256sum(const template_call *c, template_value *ret)
{
    str text;
    char hex[SHA256_HEX_BYTES];
    if (!template_text_at(c, 0, &text))
        return false;
    str kept = sha256_hex(text, hex) ? arena_str(c->arena, str_of(hex)) : (str){NULL, 0};
    *ret = template_text(kept);
    return kept.ptr || err_memory(c->error);
}

bool template_fn_fail(const template_call *c, template_value *ret)
{
    str text;
    *ret = (template_value){.kind = TEMPLATE_NIL};
    return template_text_at(c, 0, &text) && err_set(c->error, "%s", str_shown(text).text);
}
