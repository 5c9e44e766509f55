/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/bundle_partitions.h"

#include "base/limits.h"
#include "base/mem.h"
#include "model/document.h"
#include "model/fleet.h"

static yyjson_val *parsed(arena *a, yyjson_val *annotations, const char *key)
{
    str text = json_text_of(annotations, key);
    return text.len > 0 ? json_parse(a, text, NULL) : NULL;
}

/* Appends the names that are not there yet. True: the one that is looked for is one of them. */
static bool list_names(buf *list, yyjson_val *partitions, str wanted)
{
    size_t i, max;
    yyjson_val *one;
    bool found = false;
    yyjson_arr_foreach(partitions, i, max, one)
    {
        scoped(buf_done) buf quoted = BUF(LIMIT_DOCUMENT_BYTES);
        str name = json_text_of(one, "name");
        found |= str_eq(name, wanted);
        if (list->len > LIMIT_ERR_BYTES) /* there may be thousands */
            continue;
        buf_addf(&quoted, "\"%s\"", str_shown(name).text);
        if (name.len == 0 || str_find(buf_str(list), buf_str(&quoted)) != SIZE_MAX)
            continue;
        buf_addz(list, list->len > 0 ? ", " : "");
        buf_add(list, buf_str(&quoted));
    }
    return found;
}

bool bundle_has_partition(arena *a, yyjson_val *json, str name, err *error)
{
    scoped(buf_done) buf list = BUF(LIMIT_DOCUMENT_BYTES);
    yyjson_val *annotations = yyjson_obj_get(yyjson_obj_get(json, "metadata"), "annotations");
    yyjson_val *record = yyjson_obj_get(parsed(a, annotations, BUNDLE_RECORD), "rollout");
    yyjson_val *strategy = parsed(a, annotations, ANNOTATION_ROLLOUT_STRATEGY);
    if (!strategy)
        strategy = yyjson_obj_get(yyjson_obj_get(json, "spec"), "rolloutStrategy");
    bool found = list_names(&list, yyjson_obj_get(record, "partitions"), name);
    found |= list_names(&list, yyjson_obj_get(strategy, "partitions"), name);
    if (found)
        return true;
    if (list.len == 0)
        return err_set(error, "partition: found \"%s\", but there are no partitions",
                       str_shown(name).text);
    return err_set(error, "partition: found \"%s\", allowed %.*s", str_shown(name).text,
                   STR_ARG(buf_str(&list)));
}
