/* SPDX-License-Identifier: Apache-2.0 */
/* JSON values as YAML and as JSON that people read. */
#include "cli/show.h"
#include "model/document.h"

static void indent(buf *out, size_t depth)
{
    for (size_t i = 0; i < depth; i++)
        buf_addz(out, "  ");
}

/* ---- JSON ---- */

static void pretty(buf *out, yyjson_val *v, size_t depth)
{
    bool object = yyjson_is_obj(v);
    size_t index, count, members = object ? yyjson_obj_size(v) : yyjson_arr_size(v);
    yyjson_val *key, *item;
    if (!yyjson_is_ctn(v) || members == 0) {
        json_write(out, v);
        return;
    }
    buf_addz(out, object ? "{\n" : "[\n");
    if (object) {
        yyjson_obj_foreach(v, index, count, key, item)
        {
            indent(out, depth + 1);
            buf_add_json(out, (str){yyjson_get_str(key), yyjson_get_len(key)});
            buf_addz(out, ": ");
            pretty(out, item, depth + 1);
            buf_addz(out, index + 1 < count ? ",\n" : "\n");
        }
    } else {
        yyjson_arr_foreach(v, index, count, item)
        {
            indent(out, depth + 1);
            pretty(out, item, depth + 1);
            buf_addz(out, index + 1 < count ? ",\n" : "\n");
        }
    }
    indent(out, depth);
    buf_addc(out, object ? '}' : ']');
}

void json_pretty(buf *out, yyjson_val *value)
{
    pretty(out, value, 0);
}

/* ---- YAML ---- */

/* Begins with a letter, has nothing that means something, and is no word such as "yes". */
static bool plain(str text)
{
    static const char *const words[] = {"y",   "n",    "yes",   "no",   "on",
                                        "off", "true", "false", "null", NULL};
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._/-";
    if (text.len == 0 ||
        !strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ", text.ptr[0]))
        return false;
    for (size_t i = 0; i < text.len; i++)
        if (text.ptr[i] == 0 || !strchr(allowed, text.ptr[i]))
            return false;
    for (size_t i = 0; words[i]; i++)
        if (strncasecmp(words[i], text.ptr, text.len) == 0 && strlen(words[i]) == text.len)
            return false;
    return true;
}

static void scalar(buf *out, yyjson_val *v)
{
    if (yyjson_is_str(v) && plain((str){yyjson_get_str(v), yyjson_get_len(v)}))
        buf_add(out, (str){yyjson_get_str(v), yyjson_get_len(v)});
    else
        json_write(out, v); /* JSON is YAML */
}

static void block(buf *out, yyjson_val *v, size_t depth, bool first_indented);

static void member(buf *out, yyjson_val *item, size_t depth)
{
    bool nested = yyjson_is_ctn(item) &&
                  (yyjson_is_obj(item) ? yyjson_obj_size(item) : yyjson_arr_size(item)) > 0;
    if (!nested) {
        buf_addc(out, ' ');
        scalar(out, item);
        buf_addc(out, '\n');
        return;
    }
    buf_addc(out, '\n');
    block(out, item, depth + 1, true);
}

static void block(buf *out, yyjson_val *v, size_t depth, bool first_indented)
{
    size_t index, count;
    yyjson_val *key, *item;
    if (yyjson_is_obj(v)) {
        yyjson_obj_foreach(v, index, count, key, item)
        {
            if (index > 0 || first_indented)
                indent(out, depth);
            scalar(out, key);
            buf_addc(out, ':');
            member(out, item, depth);
        }
        return;
    }
    yyjson_arr_foreach(v, index, count, item)
    {
        indent(out, depth);
        buf_addc(out, '-');
        if (yyjson_is_obj(item) && yyjson_obj_size(item) > 0) {
            buf_addc(out, ' ');
            block(out, item, depth + 1, false);
        } else {
            member(out, item, depth);
        }
    }
}

void yaml_write(buf *out, yyjson_val *value)
{
    if (yyjson_is_ctn(value)) {
        block(out, value, 0, true);
    } else {
        scalar(out, value);
        buf_addc(out, '\n');
    }
}
