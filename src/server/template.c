/* SPDX-License-Identifier: Apache-2.0 */
#include "server/template.h"

#include "base/limits.h"

/* The rest of name behind a prefix, or a NULL pointer. */
static str behind(str name, str prefix)
{
    return str_starts(name, prefix) ? str_part(name, prefix.len, SIZE_MAX) : (str){0};
}

static bool add_config(buf *out, raw_json config, str key, err *error)
{
    /* yyjson takes values that are not const; it changes none of them. */
    yyjson_val *members = (yyjson_val *)(uintptr_t)config;
    yyjson_val *v = config ? yyjson_obj_getn(members, key.ptr, key.len) : NULL;
    if (!v)
        return err_set(error, "there is no config \"%s\"", str_shown(key).text);
    if (yyjson_is_str(v))
        buf_add(out, (str){yyjson_get_str(v), yyjson_get_len(v)});
    else
        json_write(out, v);
    return true;
}

static bool add_label(buf *out, label_set labels, str key, err *error)
{
    str value = label_get(labels, key);
    if (!value.ptr)
        return err_set(error, "there is no label \"%s\"", str_shown(key).text);
    buf_add(out, value);
    return true;
}

static bool add_resource(buf *out, str name, const object *resource_object, err *error)
{
    if (!resource_object)
        return err_set(error, "the resource is gone");
    const resource *r = resource_object->resource;
    str config = behind(name, STR("config.")), label_key = behind(name, STR("metadata."));
    if (config.ptr)
        return add_config(out, r->spec.config, config, error);
    if (label_key.ptr)
        return add_label(out, r->metadata.labels, label_key, error);
    buf_add(out, r->metadata.name);
    return str_eq(name, STR("name")) || err_set(error, "there is no such name");
}

static bool add_value(buf *out, str name, const template_values *values, err *error)
{
    str of_resource = behind(name, STR("resource."));
    str of_config = behind(name, STR("version.config."));
    if (of_resource.ptr)
        return add_resource(out, of_resource, values->resource, error);
    if (of_config.ptr && !values->version_object)
        return err_set(error, "the version is gone");
    if (of_config.ptr)
        return add_config(out, values->version_object->version->spec.config, of_config, error);
    if (str_eq(name, STR("version.tag")))
        buf_add(out, values->version);
    else if (str_eq(name, STR("environment.name")))
        buf_add(out, values->environment);
    else if (str_eq(name, STR("deployment.name")))
        buf_add(out, values->deployment);
    else
        return err_set(error, "there is no such name");
    return true;
}

str template_expand(arena *a, str text, const template_values *values, err *error)
{
    buf out = BUF(LIMIT_DOCUMENT_BYTES);
    bool good = true;
    while (good && text.len > 0) {
        size_t open = str_find(text, STR("{{"));
        buf_add(&out, str_part(text, 0, open));
        if (open == SIZE_MAX)
            break;
        text = str_part(text, open + 2, SIZE_MAX);
        size_t close = str_find(text, STR("}}"));
        str name = str_trim(str_part(text, 0, close));
        good = close != SIZE_MAX || err_set(error, "found {{ without }}");
        good = good && (add_value(&out, name, values, error) ||
                        err_wrap(error, "{{%s}}", str_shown(name).text));
        text = str_part(text, close + 2, SIZE_MAX);
    }
    if (good && out.failed)
        good = err_set(error, "the text is larger than %u bytes", LIMIT_DOCUMENT_BYTES);
    if (good && out.len > 0 && memchr(out.ptr, 0, out.len))
        good = err_set(error, "found a zero byte, which no program can be handed");
    str result = good ? arena_str(a, buf_str(&out)) : (str){0};
    if (good && !result.ptr)
        err_memory(error);
    buf_done(&out);
    return result;
}
