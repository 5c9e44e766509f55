/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "base/mem.h"
#include "base/moment.h"
#include "base/num.h"
#include "operator/shell_read.h"

str read_text(yyjson_val *json, const char *key)
{
    yyjson_val *v = yyjson_obj_get(json, key);
    return yyjson_is_str(v) ? (str){yyjson_get_str(v), yyjson_get_len(v)} : STR_EMPTY;
}

yyjson_val *read_at(yyjson_val *json, const char *key, const char *inner)
{
    return yyjson_obj_get(yyjson_obj_get(json, key), inner);
}

label_set read_labels(arena *a, yyjson_val *map, str prefix)
{
    label *at = ARENA_ARRAY(a, yyjson_obj_size(map) + 1, label);
    label_set set = {NULL, 0};
    size_t len = 0;
    yyjson_obj_iter walk = yyjson_obj_iter_with(map);
    for (yyjson_val *key; at && (key = yyjson_obj_iter_next(&walk));) {
        yyjson_val *value = yyjson_obj_iter_get_val(key);
        str name = {yyjson_get_str(key), yyjson_get_len(key)};
        if (str_starts(name, prefix) && yyjson_is_str(value))
            at[len++] = (label){name, {yyjson_get_str(value), yyjson_get_len(value)}};
    }
    if (at)
        label_set_sort(at, len, &set, NULL); /* a key that stands twice: the server lets none in */
    return set;
}

bool read_metadata(arena *a, yyjson_val *json, metadata *ret)
{
    yyjson_val *m = yyjson_obj_get(json, "metadata");
    yyjson_val *owners = yyjson_obj_get(m, "ownerReferences");
    *ret = (metadata){.name = read_text(m, "name"),
                      .namespace_ = read_text(m, "namespace"),
                      .uid = read_text(m, "uid"),
                      .labels = read_labels(a, yyjson_obj_get(m, "labels"), STR_EMPTY),
                      .annotations = read_labels(a, yyjson_obj_get(m, "annotations"), STR_EMPTY),
                      .generation = yyjson_get_sint(yyjson_obj_get(m, "generation")),
                      .resource_version = read_text(m, "resourceVersion")};
    ret->owner_references.at = ARENA_ARRAY(a, yyjson_arr_size(owners) + 1, owner_reference);
    yyjson_arr_iter walk = yyjson_arr_iter_with(owners);
    for (yyjson_val *one; ret->owner_references.at && (one = yyjson_arr_iter_next(&walk));)
        ret->owner_references.at[ret->owner_references.len++] =
            (owner_reference){.api_version = read_text(one, "apiVersion"),
                              .kind = read_text(one, "kind"),
                              .name = read_text(one, "name"),
                              .uid = read_text(one, "uid"),
                              .controller = yyjson_get_bool(yyjson_obj_get(one, "controller"))};
    return ret->owner_references.at;
}

uint64_t read_revision(yyjson_val *json, char out[SHELL_VERSION_BYTES])
{
    str text = read_text(yyjson_obj_get(json, "metadata"), "resourceVersion");
    int64_t number = 0;
    if (text.len == 0 || text.len >= SHELL_VERSION_BYTES)
        return 0;
    memcpy(out, text.ptr, text.len);
    out[text.len] = '\0';
    return num_parse(text, &number) ? (uint64_t)number : 0;
}

int64_t read_time_ms(str text)
{
    moment m;
    return text.len > 0 && moment_parse(text, &m, NULL) ? m.seconds * 1000 + m.nanos / 1000000 : 0;
}

/* ---- pods ---- */

static cordon_toleration tolerates(yyjson_val *json)
{
    cordon_toleration found = TOLERATES_NONE;
    yyjson_arr_iter walk = yyjson_arr_iter_with(read_at(json, "spec", "tolerations"));
    for (yyjson_val *one; (one = yyjson_arr_iter_next(&walk));) {
        pod_toleration t = {.key = read_text(one, "key"),
                            .op = read_text(one, "operator"),
                            .effect = read_text(one, "effect")};
        cordon_toleration one_is = toleration_of_cordon(&t);
        found = one_is > found ? one_is : found;
    }
    return found;
}

static bool of_daemon_set(yyjson_val *json)
{
    yyjson_arr_iter walk = yyjson_arr_iter_with(read_at(json, "metadata", "ownerReferences"));
    for (yyjson_val *one; (one = yyjson_arr_iter_next(&walk));)
        if (str_eq(read_text(one, "kind"), STR("DaemonSet")))
            return true;
    return false;
}

drain_pod_view read_drain_pod(yyjson_val *json)
{
    yyjson_val *m = yyjson_obj_get(json, "metadata");
    return (drain_pod_view){
        .space = read_text(m, "namespace"),
        .phase = read_text(yyjson_obj_get(json, "status"), "phase"),
        .tolerates = tolerates(json),
        .created_ms = read_time_ms(read_text(m, "creationTimestamp")),
        .of_daemon_set = of_daemon_set(json),
        .mirror = yyjson_obj_get(yyjson_obj_get(m, "annotations"), "kubernetes.io/config.mirror")};
}

/* ---- documents ---- */

shell_document *shell_document_free(shell_document *d)
{
    if (!d)
        return NULL;
    objects_free(d->objects);
    document_set_free(d->set);
    buf_done(&d->text);
    return mem_free(d);
}

static void put_member(buf *out, const char *key, yyjson_val *value)
{
    if (!value)
        return;
    buf_addf(out, ",\"%s\":", key);
    json_write(out, value);
}

shell_document *shell_document_new(yyjson_val *json, const char *api_version, const char *kind,
                                   err *error)
{
    static const char *const members[] = {"metadata", "spec", "bundleSelector",
                                          "namespaceSelector"};
    scoped(problems_cleanup) problems *found = problems_new();
    shell_document *d = mem_zalloc(sizeof *d);
    if (!d || !found) {
        err_memory(error);
        return mem_free(d);
    }
    d->text = BUF(LIMIT_DOCUMENT_BYTES);
    d->set = document_set_new();
    d->objects = objects_new();
    buf_addf(&d->text, "{\"apiVersion\":\"%s\",\"kind\":\"%s\"", api_version, kind);
    for (size_t i = 0; i < sizeof members / sizeof members[0]; i++)
        put_member(&d->text, members[i], yyjson_obj_get(json, members[i]));
    buf_addc(&d->text, '}');
    if (!d->set || !d->objects)
        err_memory(error);
    else if (d->text.failed)
        buf_fault(&d->text, error);
    else if (objects_load(d->objects, d->set, STR("cluster"), buf_str(&d->text), found) &&
             d->objects->len == 1) {
        d->object = d->objects->at[0];
        return d;
    } else if (problems_count(found) > 0) {
        buf text = BUF(LIMIT_ERR_BYTES * 4);
        problem_text(problems_at(found, 0), &text);
        err_set(error, "%.*s", STR_ARG(buf_str(&text)));
        buf_done(&text);
    } else {
        err_set(error, "it cannot be read");
    }
    return shell_document_free(d);
}
