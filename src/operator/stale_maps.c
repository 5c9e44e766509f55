/* SPDX-License-Identifier: Apache-2.0 */
/* ConfigMaps that nobody needs any more: of versions and packages that are gone, when their Skyhook
 * is complete, so that no pod mounts them; of nodes, when they have left. Each is deleted by its
 * uid. It is housekeeping: what cannot be deleted now is found again after the next edit or start.
 */
#include <stdio.h>

#include "base/log.h"
#include "base/mem.h"
#include "operator/config_map.h"
#include "operator/shell_internal.h"

#define COLLECTION_BYTES (4 * LIMIT_NAME_BYTES)
#define LIST_MAX 100 /* of one Skyhook: the rest with the next look */

static str collection_of(const node_shell *s, char out[COLLECTION_BYTES])
{
    snprintf(out, COLLECTION_BYTES, "/api/v1/namespaces/%.*s/configmaps",
             STR_ARG(s->settings.job.namespace_));
    return str_of(out);
}

static void deleted(node_shell *s, const shell_ticket *t, const write_outcome *how,
                    yyjson_val *json)
{
    (void)s;
    (void)json;
    if (how->kind != WRITE_DONE && how->kind != WRITE_GONE && how->kind != WRITE_CONFLICT)
        log_line(LOG_WARN, "ConfigMap %s stays: %s", t->job, how->message);
}

/* Only what the Skyhook owns; the server deletes the rest with its owner. */
static void delete_map(node_shell *s, const char *owner, yyjson_val *json)
{
    char collection[COLLECTION_BYTES];
    yyjson_val *m = yyjson_obj_get(json, "metadata");
    yyjson_val *of = yyjson_arr_get_first(yyjson_obj_get(m, "ownerReferences"));
    str name = read_text(m, "name");
    char *text = str_eq(read_text(of, "uid"), shell_text(owner)) ? shell_copy(s, name) : NULL;
    if (!text)
        return;
    kube_write w = {.verb = WRITE_DELETE,
                    .collection = collection_of(s, collection),
                    .name = name,
                    .uid = read_text(m, "uid")};
    s->counts.others += shell_send(s, &w, (shell_ticket){.done = deleted, .job = text});
    mem_free(text);
}

/* ---- of packages ---- */

static bool is_wanted(const shell_change *c, str map_name)
{
    const skyhook *of = c->document->object.skyhook;
    bool found = false;
    for (size_t i = 0; i < of->spec.packages.len && !found; i++) {
        if (of->spec.packages.at[i].config_map.len == 0)
            continue;
        buf name = BUF(LIMIT_DOCUMENT_BYTES);
        package_config_map_name(&name, str_of(c->name), &of->spec.packages.at[i]);
        found = name.failed || str_eq(buf_str(&name), map_name);
        buf_done(&name);
    }
    return found;
}

static void listed(node_shell *s, const shell_ticket *t, const write_outcome *how, yyjson_val *json)
{
    shell_change *c = shell_find_change(s, str_of(t->skyhook));
    if (!c || !str_eq(shell_text(c->uid), shell_text(t->uid)))
        return;
    c->maps_looking = false;
    if (how->kind != WRITE_DONE || !c->known) {
        log_line(LOG_WARN, "ConfigMaps of Skyhook %s: %s", c->name, how->message);
        return;
    }
    yyjson_arr_iter walk = yyjson_arr_iter_with(yyjson_obj_get(json, "items"));
    for (yyjson_val *one; (one = yyjson_arr_iter_next(&walk));) {
        yyjson_val *m = yyjson_obj_get(one, "metadata");
        bool of_package = read_text(yyjson_obj_get(m, "labels"), KEY_NAME).len > 0;
        if (of_package && !is_wanted(c, read_text(m, "name")))
            delete_map(s, c->uid, one);
    }
}

void stale_maps_look(node_shell *s, shell_change *c)
{
    char collection[COLLECTION_BYTES], path[2 * COLLECTION_BYTES];
    if (!c->maps_stale || c->maps_looking || !c->known || c->status != SKYHOOK_COMPLETE)
        return;
    buf value = BUF(LIMIT_NAME_BYTES);
    label_value_put(&value, str_of(c->name));
    snprintf(path, sizeof path, "%.*s?labelSelector=skyhook.nvidia.com%%2Fname%%3D%.*s&limit=%d",
             STR_ARG(collection_of(s, collection)), STR_ARG(buf_str(&value)), LIST_MAX);
    buf_done(&value);
    kube_write w = {.verb = WRITE_READ, .collection = str_of(path)};
    c->maps_looking =
        shell_send(s, &w, (shell_ticket){.done = listed, .skyhook = c->name, .uid = c->uid});
    c->maps_stale = false;
}

/* ---- of nodes ---- */

static void found(node_shell *s, const shell_ticket *t, const write_outcome *how, yyjson_val *json)
{
    const shell_place *p = shell_find_place(s, str_of(t->skyhook), str_of(t->node));
    if (how->kind == WRITE_DONE && json && (!p || !p->selected))
        delete_map(s, t->uid, json);
}

void stale_maps_left(node_shell *s, const shell_change *c, str node_name)
{
    char collection[COLLECTION_BYTES];
    const shell_place *p = shell_find_place(s, str_of(c->name), node_name);
    if (p && p->selected)
        return;
    buf name = BUF(LIMIT_NAME_BYTES);
    char *on = shell_copy(s, node_name);
    node_config_map_name(&name, str_of(c->name), node_name);
    kube_write w = {
        .verb = WRITE_READ, .collection = collection_of(s, collection), .name = buf_str(&name)};
    if (on && !name.failed)
        shell_send(s, &w,
                   (shell_ticket){.done = found, .skyhook = c->name, .node = on, .uid = c->uid});
    mem_free(on);
    buf_done(&name);
}
