/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/bundle_values.h"

#include "base/base64.h"
#include "base/limits.h"
#include "base/mem.h"
#include "engine/fleet_names.h"
#include "engine/go_json.h"
#include "model/document.h"
#include "operator/shell_read.h"

#define ALL_TARGETS "values.yaml" /* a key of the Secret; all others are names of targets */

/* Of its data, keys sorted and values as they are sent. */
static bool has_hash(yyjson_val *data, str wanted)
{
    char hex[SHA256_HEX_BYTES];
    buf text = BUF(LIMIT_TEXT_BYTES);
    go_value(&text, data);
    bool same = !text.failed && sha256_hex(buf_str(&text), hex) && str_eq(str_of(hex), wanted);
    buf_done(&text);
    return same;
}

/* The values under a key, in the document; NULL with "good" as it was: there are none. */
static yyjson_mut_val *values_of(arena *a, yyjson_mut_doc *doc, yyjson_val *data, str key,
                                 bool *good)
{
    str letters = go_str(go_member(data, key));
    buf text = BUF(LIMIT_TEXT_BYTES);
    yyjson_mut_val *copy = NULL;
    if (letters.ptr && letters.len > 0) {
        yyjson_val *read =
            base64_decode(letters, &text) ? json_parse(a, buf_str(&text), NULL) : NULL;
        if (yyjson_is_obj(read))
            copy = yyjson_val_mut_copy(doc, read);
        *good = *good && copy;
    }
    buf_done(&text);
    return copy;
}

/* Puts them where they would stand if the Bundle had them itself. */
static bool put_values(yyjson_mut_doc *doc, yyjson_mut_val *options, yyjson_mut_val *values)
{
    yyjson_mut_val *helm = yyjson_mut_obj_get(options, "helm");
    if (!yyjson_mut_is_obj(helm)) {
        yyjson_mut_obj_remove_key(options, "helm");
        helm = yyjson_mut_obj_add_obj(doc, options, "helm");
    }
    yyjson_mut_obj_remove_key(helm, "values");
    return helm && yyjson_mut_obj_add_val(doc, helm, "values", values);
}

static bool put_all(arena *a, yyjson_mut_doc *doc, yyjson_val *data)
{
    bool good = true;
    yyjson_mut_val *spec = yyjson_mut_obj_get(yyjson_mut_doc_get_root(doc), "spec"), *target;
    yyjson_mut_val *values = values_of(a, doc, data, STR(ALL_TARGETS), &good);
    if (values)
        good = put_values(doc, spec, values);
    size_t i, max;
    yyjson_mut_arr_foreach(yyjson_mut_obj_get(spec, "targets"), i, max, target)
    {
        const char *name = yyjson_mut_get_str(yyjson_mut_obj_get(target, "name"));
        values = name ? values_of(a, doc, data, str_of(name), &good) : NULL;
        if (values)
            good = put_values(doc, target, values) && good;
    }
    return good;
}

yyjson_val *bundle_with_values(arena *a, yyjson_val *json, yyjson_val *secret, err *error)
{
    yyjson_val *data = yyjson_obj_get(secret, "data"), *meta = yyjson_obj_get(json, "metadata");
    str space = read_text(meta, "namespace"), name = read_text(meta, "name");
    if (!has_hash(data, read_text(yyjson_obj_get(json, "spec"), "valuesHash"))) {
        err_set(error, "the values in Secret %.*s/%.*s are not those of valuesHash", STR_ARG(space),
                STR_ARG(name));
        return NULL;
    }
    yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    yyjson_mut_val *root = doc ? yyjson_val_mut_copy(doc, json) : NULL;
    yyjson_val *made = NULL;
    if (root)
        yyjson_mut_doc_set_root(doc, root);
    if (root && put_all(a, doc, data)) {
        size_t len = 0;
        char *text = yyjson_mut_write(doc, 0, &len);
        made = text ? json_parse(a, (str){text, len}, error) : NULL;
        if (!text)
            err_memory(error);
        (free)(text);
    } else if (root) {
        err_set(error, "the values in Secret %.*s/%.*s are no JSON objects", STR_ARG(space),
                STR_ARG(name));
    } else {
        err_memory(error);
    }
    yyjson_mut_doc_free(doc);
    return made;
}
