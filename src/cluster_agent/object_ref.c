/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster_agent/object_ref.h"

#include "base/limits.h"
#include "engine/go_json.h"

str object_text(const yyjson_val *object, str key)
{
    str found = go_str(go_member(object, key));
    return found.ptr ? found : STR_EMPTY;
}

str object_group(str api_version)
{
    return str_find(api_version, STR("/")) == SIZE_MAX ? STR_EMPTY : str_cut(&api_version, '/');
}

object_ref object_ref_of(const yyjson_val *object)
{
    const yyjson_val *meta = go_member(object, STR("metadata"));
    return (object_ref){.api_version = object_text(object, STR("apiVersion")),
                        .kind = object_text(object, STR("kind")),
                        .namespace_ = object_text(meta, STR("namespace")),
                        .name = object_text(meta, STR("name"))};
}

int object_ref_cmp(const object_ref *a, const object_ref *b)
{
    int order = str_cmp(object_group(a->api_version), object_group(b->api_version));
    if (order == 0)
        order = str_cmp(a->kind, b->kind);
    if (order == 0)
        order = str_cmp(a->namespace_, b->namespace_);
    return order != 0 ? order : str_cmp(a->name, b->name);
}

bool object_ref_keep(arena *a, object_ref *r)
{
    *r = (object_ref){arena_str(a, r->api_version), arena_str(a, r->kind),
                      arena_str(a, r->namespace_), arena_str(a, r->name)};
    return r->api_version.ptr && r->kind.ptr && r->namespace_.ptr && r->name.ptr;
}

bool object_ref_same(const object_ref *a, const object_ref *b)
{
    return object_ref_cmp(a, b) == 0;
}

bool object_path_part(str text)
{
    static const char marks[] = "-._~:@!$'()*+,;=";
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (!letter && (c == '\0' || !strchr(marks, c)))
            return false;
    }
    return text.len > 0 && text.len <= LIMIT_NAME_BYTES && !str_eq(text, STR(".")) &&
           !str_eq(text, STR(".."));
}

void object_ref_put(buf *out, const object_ref *r)
{
    str group = object_group(r->api_version);
    buf_add(out, r->kind);
    buf_addc(out, '.');
    buf_add(out, group.len > 0 ? group : r->api_version);
    buf_addc(out, ' ');
    if (r->namespace_.len > 0) {
        buf_add(out, r->namespace_);
        buf_addc(out, '/');
    }
    buf_add(out, r->name);
}
