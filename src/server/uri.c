/* SPDX-License-Identifier: Apache-2.0 */
#include "server/uri.h"

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static bool decode(arena *a, str raw, bool plus_is_space, str *ret, err *error)
{
    char *out = arena_alloc(a, raw.len + 1);
    size_t len = 0;
    if (!out)
        return err_memory(error);
    for (size_t i = 0; i < raw.len; i++) {
        char c = raw.ptr[i];
        if (c == '%') {
            bool room = raw.len - i > 2;
            int high = room ? hex_digit(raw.ptr[i + 1]) : -1;
            int low = room ? hex_digit(raw.ptr[i + 2]) : -1;
            if (high < 0 || low < 0)
                return err_set(error, "found a percent sign without two hexadecimal digits");
            c = (char)(high * 16 + low);
            i += 2;
        } else if (c == '+' && plus_is_space) {
            c = ' ';
        }
        if ((unsigned char)c < 0x20 || c == 0x7f)
            return err_set(error, "found a control character, allowed none");
        out[len++] = c;
    }
    if (!str_utf8((str){out, len}))
        return err_set(error, "found bytes that are no UTF-8");
    *ret = (str){out, len};
    return true;
}

static bool add_segment(arena *a, str raw, uri *u, err *error)
{
    str segment;
    if (u->segment_count == URI_SEGMENTS_MAX)
        return err_set(error, "found more than %d segments", URI_SEGMENTS_MAX);
    if (!decode(a, raw, false, &segment, error))
        return false;
    if (segment.len == 0 || str_eq(segment, STR(".")) || str_eq(segment, STR("..")))
        return err_set(error, "found the segment \"%s\", allowed a name", str_shown(segment).text);
    u->segments[u->segment_count++] = segment;
    return true;
}

static bool add_parameter(arena *a, str raw, uri *u, err *error)
{
    uri_parameter p;
    str rest = raw;
    str name = str_cut(&rest, '=');
    if (u->parameter_count == URI_PARAMETERS_MAX)
        return err_set(error, "found more than %d parameters", URI_PARAMETERS_MAX);
    if (!decode(a, name, true, &p.name, error) ||
        !decode(a, rest.ptr ? rest : STR_EMPTY, true, &p.value, error))
        return false;
    for (size_t i = 0; i < u->parameter_count; i++)
        if (str_eq(u->parameters[i].name, p.name))
            return err_set(error, "found the parameter \"%s\" twice", str_shown(p.name).text);
    u->parameters[u->parameter_count++] = p;
    return true;
}

bool uri_parse(arena *a, str target, uri *ret, err *error)
{
    uri u = {.segment_count = 0};
    if (target.len == 0 || target.ptr[0] != '/')
        return err_set(error, "found a target that does not begin with \"/\"");
    if (target.len > URI_BYTES_MAX)
        return err_set(error, "found a target of %zu bytes, allowed %d", target.len, URI_BYTES_MAX);
    str query = target;
    str path = str_cut(&query, '?');
    path = str_part(path, 1, path.len - 1);
    while (path.len > 0) {
        str before = path;
        if (!add_segment(a, str_cut(&path, '/'), &u, error))
            return false;
        if (before.ptr[before.len - 1] == '/' && path.len == 0)
            return err_set(error, "found an empty segment at the end, allowed a name");
    }
    while (query.ptr && query.len > 0) {
        str raw = str_cut(&query, '&');
        if (raw.len > 0 && !add_parameter(a, raw, &u, error))
            return false;
    }
    *ret = u;
    return true;
}

str uri_find(const uri *u, const char *name)
{
    for (size_t i = 0; i < u->parameter_count; i++)
        if (str_eq(u->parameters[i].name, str_of(name)))
            return u->parameters[i].value;
    return (str){NULL, 0};
}

void uri_encode(buf *out, str text)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~";
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        if (c != 0 && strchr(plain, c))
            buf_addc(out, c);
        else
            buf_addf(out, "%%%02X", (unsigned)(unsigned char)c);
    }
}
