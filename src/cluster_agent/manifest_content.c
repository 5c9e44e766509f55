/* SPDX-License-Identifier: Apache-2.0 */
/* A Content, unpacked to files. */
#include <stdlib.h>

#include "base/base64.h"
#include "base/gzip.h"
#include "base/mem.h"
#include "cluster_agent/manifest.h"
#include "engine/fleet_names.h"
#include "engine/go_json.h"
#include "model/document.h"

/* Unpacked bytes that are still allowed. */
typedef struct allowance {
    size_t left;
} allowance;

static bool expand(str packed, buf *out, err *error)
{
    switch (gzip_expand(packed, out)) {
    case GZIP_GOOD: return true;
    case GZIP_BAD: return err_set(error, "found bytes that are no gzip");
    case GZIP_LARGE:
        return err_set(error, "found more than the %u bytes that a Content may unpack to",
                       MANIFEST_BYTES_MAX);
    case GZIP_MEMORY: break;
    }
    return err_memory(error);
}

/* Base64 shrinks, so a buffer of the text's size always has room: what fails is the text or the
 * memory. */
static bool decode(str text, buf *out, err *error)
{
    *out = BUF(text.len + 1);
    if (base64_decode(text, out))
        return true;
    return out->failed ? err_memory(error) : err_set(error, "found text that is no base64");
}

static bool unpack(str content, bool zipped, size_t max, buf *out, err *error)
{
    buf bytes;
    *out = BUF(max);
    if (!decode(content, &bytes, error)) {
        buf_done(&bytes);
        return false;
    }
    bool good = true;
    if (zipped)
        good = expand(buf_str(&bytes), out, error);
    else
        buf_add(out, buf_str(&bytes));
    buf_done(&bytes);
    if (good && out->failed)
        return err_memory(error);
    return good;
}

/* Names are paths below a folder, and stay below it. */
static bool name_good(str name)
{
    str rest = name;
    if (name.len == 0 || name.len > LIMIT_PATH_BYTES || name.ptr[0] == '/')
        return false;
    for (size_t i = 0; i < name.len; i++)
        if ((unsigned char)name.ptr[i] < ' ' || name.ptr[i] == '\\')
            return false;
    while (rest.ptr) {
        str part = str_cut(&rest, '/');
        if (part.len == 0 || str_eq(part, STR("..")) || str_eq(part, STR(".")))
            return false;
    }
    return true;
}

static bool read_file(arena *a, const yyjson_val *one, allowance *allowed, resource_file *ret,
                      err *error)
{
    str name = object_text(one, STR("name")), content = object_text(one, STR("content"));
    str encoding = object_text(one, STR("encoding"));
    bool zipped = str_eq(encoding, STR("base64+gz"));
    if (!name_good(name))
        return err_set(error, "resources: found the name \"%s\", allowed a path below a folder",
                       str_shown(name).text);
    if (!zipped && !str_eq(encoding, STR("base64")) && encoding.len > 0)
        return err_set(error, "%s: encoding: found \"%s\", allowed base64, base64+gz",
                       str_shown(name).text, str_shown(encoding).text);
    buf bytes = BUF(0);
    if (encoding.len > 0 && !unpack(content, zipped, MANIFEST_BYTES_MAX, &bytes, error)) {
        buf_done(&bytes);
        return err_is_memory(error) ? false : err_wrap(error, "%s", str_shown(name).text);
    }
    str text = encoding.len > 0 ? buf_str(&bytes) : content;
    bool fits = text.len <= allowed->left;
    if (fits) {
        allowed->left -= text.len;
        *ret = (resource_file){arena_str(a, name), arena_str(a, text)};
    }
    buf_done(&bytes);
    if (!fits)
        return err_set(error, "found more than the %u bytes that a Content may unpack to",
                       MANIFEST_BYTES_MAX);
    return (ret->name.ptr && ret->bytes.ptr) || err_memory(error);
}

static int by_name(const void *a, const void *b)
{
    return str_cmp(((const resource_file *)a)->name, ((const resource_file *)b)->name);
}

bool resources_read(arena *a, str text, resource_files *ret, err *error)
{
    scoped(arena_cleanup) arena *reading = arena_new(0);
    if (!reading)
        return err_memory(error);
    yyjson_val *root = json_parse_within(reading, text, 2 * (size_t)MANIFEST_BYTES_MAX, error);
    if (!root)
        return false;
    yyjson_val *list = go_member(root, STR("resources"));
    if (!yyjson_is_obj(root) || (list && !yyjson_is_arr(list) && !yyjson_is_null(list)))
        return err_set(error, "found no list of resources");
    size_t len = yyjson_arr_size(list), i, max;
    if (len > MANIFEST_FILES_MAX)
        return err_set(error, "resources: found %zu, allowed %u", len, MANIFEST_FILES_MAX);
    resource_files files = {ARENA_ARRAY(a, len + 1, resource_file), len};
    allowance allowed = {MANIFEST_BYTES_MAX};
    if (!files.at)
        return err_memory(error);
    yyjson_val *one;
    yyjson_arr_foreach(list, i, max, one)
    {
        if (!read_file(a, one, &allowed, &files.at[i], error))
            return false;
    }
    qsort(files.at, len, sizeof *files.at, by_name);
    for (size_t k = 1; k < len; k++)
        if (str_eq(files.at[k].name, files.at[k - 1].name))
            return err_set(error, "resources: found \"%s\" twice, allowed once",
                           str_shown(files.at[k].name).text);
    *ret = files;
    return true;
}

bool content_read(arena *a, const yyjson_val *content, resource_files *ret, err *error)
{
    buf text;
    char hex[SHA256_HEX_BYTES];
    str sum = object_text(content, STR("sha256sum"));
    bool good =
        unpack(object_text(content, STR("content")), true, MANIFEST_BYTES_MAX, &text, error);
    if (good && sum.len > 0) {
        good = sha256_hex(buf_str(&text), hex) || err_memory(error);
        if (good && !str_eq(sum, str_of(hex)))
            good = err_set(error, "sha256sum: found \"%s\", but the content has %s",
                           str_shown(sum).text, hex);
    }
    good = good && resources_read(a, buf_str(&text), ret, error);
    buf_done(&text);
    if (!good && !err_is_memory(error))
        err_wrap(error, "Content %s",
                 str_shown(object_text(go_member(content, STR("metadata")), STR("name"))).text);
    return good;
}
