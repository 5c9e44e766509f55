/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/bundle_patch.h"

#include "operator/bundle_json.h"

static bool same(const yyjson_val *a, const yyjson_val *b)
{
    return a && b && yyjson_equals((yyjson_val *)(uintptr_t)a, (yyjson_val *)(uintptr_t)b);
}

static bool is_object(const yyjson_val *v)
{
    return v && yyjson_is_obj((yyjson_val *)(uintptr_t)v);
}

static bool put_members(buf *out, const yyjson_val *before, const yyjson_val *after);

/* One member that is there now: nothing if it was the same. */
static bool put_member(buf *out, str key, const yyjson_val *was, const yyjson_val *is)
{
    if (same(was, is))
        return false;
    size_t length = out->len;
    json_key_of(out, key);
    if (!is_object(is) || !is_object(was)) {
        go_value(out, is);
        return true;
    }
    if (put_members(out, was, is))
        return true;
    if (!out->failed)
        out->len = length;
    return false;
}

/* Objects may differ in the order of their members alone: then nothing is put. */
static bool put_members(buf *out, const yyjson_val *before, const yyjson_val *after)
{
    size_t i, max, start = out->len;
    yyjson_val *key, *value;
    bool any = false;
    buf_addc(out, '{');
    yyjson_obj_foreach((yyjson_val *)(uintptr_t)after, i, max, key, value)
    {
        any |= put_member(out, go_str(key), go_member(before, go_str(key)), value);
    }
    if (is_object(before)) {
        yyjson_obj_foreach((yyjson_val *)(uintptr_t)before, i, max, key, value)
        {
            if (go_member(after, go_str(key)))
                continue;
            json_key_of(out, go_str(key));
            buf_addz(out, "null");
            any = true;
        }
    }
    buf_addc(out, '}');
    if (!any && !out->failed)
        out->len = start;
    return any;
}

bool merge_patch_put(buf *out, const yyjson_val *before, const yyjson_val *after)
{
    return put_members(out, is_object(before) ? before : NULL, after);
}
