/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/kube_apply.h"

#include <stdio.h>

#include "base/limits.h"
#include "base/mem.h"
#include "model/object.h"

#define FIELD_MANAGER "drover-cli"
#define DEFAULT_NAMESPACE "fleet-default"
#define BUNDLE_RECORD "drover.dev/rollout" /* annotation of a Bundle */
#define LOST_BYTES_MAX 300                 /* of what is named of fields that are lost */
#define GROUP_SKYHOOK "/apis/" API_SKYHOOK
#define GROUP_FLEET "/apis/" API_FLEET
#define API_RBAC "rbac.authorization.k8s.io/v1"
#define GROUP_RBAC "/apis/" API_RBAC

/* BundleDeployments are the controller's. */
static const struct {
    const char *api, *kind, *path, *plural, *word;
    bool namespaced, custom;
} kinds[] = {
    {API_SKYHOOK, "Skyhook", GROUP_SKYHOOK, "skyhooks", "skyhook", false, true},
    {API_SKYHOOK, "DeploymentPolicy", GROUP_SKYHOOK, "deploymentpolicies", "deploymentpolicy",
     false, true},
    {API_FLEET, "Bundle", GROUP_FLEET, "bundles", "bundle", true, true},
    {API_FLEET, "Cluster", GROUP_FLEET, "clusters", "cluster", true, true},
    {API_FLEET, "ClusterGroup", GROUP_FLEET, "clustergroups", "clustergroup", true, true},
    {API_FLEET, "BundleNamespaceMapping", GROUP_FLEET, "bundlenamespacemappings",
     "bundlenamespacemapping", true, true},
    {"v1", "Namespace", "/api/v1", "namespaces", "namespace", false, false},
    {"v1", "Secret", "/api/v1", "secrets", "secret", true, false},
    {"v1", "ServiceAccount", "/api/v1", "serviceaccounts", "serviceaccount", true, false},
    {API_RBAC, "Role", GROUP_RBAC, "roles", "role", true, false},
    {API_RBAC, "RoleBinding", GROUP_RBAC, "rolebindings", "rolebinding", true, false},
    {API_RBAC, "ClusterRole", GROUP_RBAC, "clusterroles", "clusterrole", false, false},
    {API_RBAC, "ClusterRoleBinding", GROUP_RBAC, "clusterrolebindings", "clusterrolebinding", false,
     false},
};
#define KINDS (sizeof kinds / sizeof kinds[0])

/* ---- what is sent ---- */

/* Or a controller's. */
static bool is_the_servers(str name)
{
    static const char *const names[] = {"uid",           "resourceVersion",   "generation",
                                        "managedFields", "creationTimestamp", "deletionTimestamp",
                                        "selfLink",      "namespace",         "finalizers"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (str_eq(name, str_of(names[i])))
            return true;
    return false;
}

/* The controller's own stands in what kubectl get prints. */
static void put_annotations(buf *out, yyjson_val *annotations)
{
    size_t i, max;
    yyjson_val *key, *value;
    const char *comma = "";
    buf_addc(out, '{');
    yyjson_obj_foreach(annotations, i, max, key, value)
    {
        if (yyjson_equals_str(key, BUNDLE_RECORD))
            continue;
        buf_addz(out, comma);
        comma = ",";
        json_write(out, key);
        buf_addc(out, ':');
        json_write(out, value);
    }
    buf_addc(out, '}');
}

static void put_metadata(buf *out, yyjson_val *head, str space)
{
    size_t i, max;
    yyjson_val *key, *value;
    const char *comma = "";
    buf_addc(out, '{');
    if (space.len > 0) {
        buf_addz(out, "\"namespace\":");
        buf_add_json(out, space);
        comma = ",";
    }
    yyjson_obj_foreach(head, i, max, key, value)
    {
        str name = {yyjson_get_str(key), yyjson_get_len(key)};
        if (is_the_servers(name))
            continue;
        buf_addz(out, comma);
        comma = ",";
        buf_add_json(out, name);
        buf_addc(out, ':');
        if (str_eq(name, STR("annotations")))
            put_annotations(out, value);
        else
            json_write(out, value);
    }
    buf_addc(out, '}');
}

/* Or is not to be. */
static bool is_written(str name)
{
    return str_eq(name, STR("apiVersion")) || str_eq(name, STR("kind")) ||
           str_eq(name, STR("metadata")) || str_eq(name, STR("status"));
}

static void put_body(buf *out, kube_kind of, yyjson_val *json, str space)
{
    size_t i, max;
    yyjson_val *key, *value;
    buf_addz(out, "{\"apiVersion\":");
    buf_add_json(out, of.api);
    buf_addz(out, ",\"kind\":");
    buf_add_json(out, of.kind);
    buf_addz(out, ",\"metadata\":");
    put_metadata(out, yyjson_obj_get(json, "metadata"), space);
    yyjson_obj_foreach(json, i, max, key, value)
    {
        str name = {yyjson_get_str(key), yyjson_get_len(key)};
        if (is_written(name))
            continue;
        buf_addc(out, ',');
        buf_add_json(out, name);
        buf_addc(out, ':');
        json_write(out, value);
    }
    buf_addc(out, '}');
}

static size_t row_of(kube_kind of)
{
    size_t i = 0;
    while (i < KINDS &&
           !(str_eq(of.api, str_of(kinds[i].api)) && str_eq(of.kind, str_of(kinds[i].kind))))
        i++;
    return i;
}

bool kube_document_of(arena *a, kube_kind of, yyjson_val *json, kube_document *ret, err *error)
{
    yyjson_val *head = yyjson_obj_get(json, "metadata");
    str name = json_text_of(head, "name"), space = json_text_of(head, "namespace");
    size_t at = row_of(of);
    if (at == KINDS)
        return err_set(error,
                       "%s/%s: found this kind, allowed on a cluster are Skyhook, "
                       "DeploymentPolicy, Bundle, Cluster, ClusterGroup, BundleNamespaceMapping",
                       str_shown(of.kind).text, str_shown(name).text);
    if (!kinds[at].namespaced)
        space = STR_EMPTY;
    else if (space.len == 0)
        space = STR(DEFAULT_NAMESPACE);
    const char *slash = space.len > 0 ? "/" : "";
    buf body = BUF(LIMIT_TEXT_BYTES);
    put_body(&body, of, json, space);
    *ret = (kube_document){.title = arena_printf(a, "%s %.*s%s%.*s", kinds[at].kind, STR_ARG(space),
                                                 slash, STR_ARG(name)),
                           .word = arena_printf(a, "%s/%.*s%s%.*s", kinds[at].word, STR_ARG(space),
                                                slash, STR_ARG(name)),
                           .collection = arena_printf(a, "%s%s%.*s/%s", kinds[at].path,
                                                      space.len > 0 ? "/namespaces/" : "",
                                                      STR_ARG(space), kinds[at].plural),
                           .name = arena_str(a, name),
                           .body = body.failed ? (str){NULL, 0} : arena_str(a, buf_str(&body)),
                           .custom = kinds[at].custom};
    buf_done(&body);
    return (ret->title.ptr && ret->word.ptr && ret->collection.ptr && ret->name.ptr &&
            ret->body.ptr) ||
           err_memory(error);
}

/* ---- what was kept ---- */

/* What says nothing is not missed. */
static bool is_empty(yyjson_val *v)
{
    return yyjson_is_null(v) || (yyjson_is_obj(v) && yyjson_obj_size(v) == 0) ||
           (yyjson_is_arr(v) && yyjson_arr_size(v) == 0);
}

static void note_lost(buf *lost, str path)
{
    if (lost->len < LOST_BYTES_MAX)
        buf_addf(lost, "%s%.*s", lost->len > 0 ? ", " : "", STR_ARG(path));
    else if (lost->ptr[lost->len - 1] != '.')
        buf_addz(lost, " ...");
}

/* Members that were sent and are not there. Lists are compared by their places. */
static void compare(buf *lost, arena *a, str path, yyjson_val *sent, yyjson_val *kept)
{
    size_t i, max;
    yyjson_val *key, *value;
    if (yyjson_is_obj(sent) && yyjson_is_obj(kept)) {
        yyjson_obj_foreach(sent, i, max, key, value)
        {
            yyjson_val *there = yyjson_obj_getn(kept, yyjson_get_str(key), yyjson_get_len(key));
            str inner = arena_printf(a, "%.*s%s%s", STR_ARG(path), path.len > 0 ? "." : "",
                                     yyjson_get_str(key));
            if (!inner.ptr)
                lost->failed = true;
            else if (there)
                compare(lost, a, inner, value, there);
            else if (!is_empty(value))
                note_lost(lost, inner);
        }
    } else if (yyjson_is_arr(sent) && yyjson_arr_size(sent) == yyjson_arr_size(kept)) {
        yyjson_arr_foreach(sent, i, max, value)
        {
            str inner = arena_printf(a, "%.*s[%zu]", STR_ARG(path), i);
            if (!inner.ptr)
                lost->failed = true;
            else
                compare(lost, a, inner, value, yyjson_arr_get(kept, i));
        }
    }
}

static exit_status check_kept(const kube_document *d, arena *a, yyjson_val *kept, err *error)
{
    scoped(buf_done) buf lost = BUF(LIMIT_TEXT_BYTES);
    yyjson_val *sent = json_parse(a, d->body, error);
    if (sent && kept)
        compare(&lost, a, STR_EMPTY, sent, kept);
    if (lost.failed)
        err_memory(error);
    else if (lost.len > 0)
        err_set(error, "the cluster's definition drops %.*s%s", STR_ARG(buf_str(&lost)),
                str_find(buf_str(&lost), STR("rolloutStrategy")) != SIZE_MAX
                    ? "; the annotation drover.dev/rollout-strategy is read instead"
                    : "");
    return lost.failed || lost.len > 0 ? STATUS_NO : STATUS_DONE;
}

/* ---- sending ---- */

/* A write would be tried for long: a cluster that is not there is told at once. */
kube_session *kube_apply_open(const options *given)
{
    err error = {0};
    kube_reply reply;
    scoped(arena_cleanup) arena *a = arena_new(0);
    kube_session *s = kube_session_open(given, &error);
    if (s && a && kube_get(s, STR("/version"), a, &reply, &error))
        return s;
    fail("%s", a ? error.text : "memory ran out");
    return kube_session_close(s);
}

exit_status kube_apply(kube_session *s, const kube_document *d, kube_apply_how how, err *error)
{
    scoped(arena_cleanup) arena *a = arena_new(0);
    kube_answer answer = {0};
    kube_write w = {.verb = WRITE_APPLY,
                    .collection = d->collection,
                    .name = d->name,
                    .body = d->body,
                    .manager = STR(FIELD_MANAGER),
                    .force = how.force,
                    .tried = how.tried,
                    .anyhow = true};
    if (!a) {
        err_memory(error);
        return STATUS_NO;
    }
    if (!kube_write_answered(s, &w, a, &answer, error))
        return STATUS_NO;
    const write_outcome *said = &answer.outcome;
    if (said->kind == WRITE_DONE)
        return d->custom ? check_kept(d, a, answer.body, error) : STATUS_DONE;
    bool unknown = said->kind == WRITE_GONE && said->message[0] == '\0';
    err_set(error, "%s",
            unknown ? "the cluster does not know this kind; drover crds prints its definition"
                    : said->message);
    return said->status == 0 ? STATUS_UNREACHABLE : STATUS_NO;
}

/* One round over all of them. */
static exit_status each(kube_session *s, const kube_document *at, size_t count, kube_apply_how how,
                        const char *done)
{
    exit_status all = STATUS_DONE;
    for (size_t i = 0; i < count && all != STATUS_UNREACHABLE; i++) {
        err error = {0};
        exit_status status = kube_apply(s, &at[i], how, &error);
        if (status == STATUS_DONE && done)
            printf("%.*s %s\n", STR_ARG(at[i].word), done);
        else if (status != STATUS_DONE)
            fail("%.*s: %s", STR_ARG(at[i].title), error.text);
        all = status == STATUS_DONE ? all : status;
    }
    return all;
}

exit_status kube_apply_all(kube_session *s, const kube_document *at, size_t count,
                           kube_apply_how how)
{
    kube_apply_how tried = {.force = how.force, .tried = true};
    exit_status status = each(s, at, count, tried, how.tried ? "is good" : NULL);
    if (status == STATUS_DONE && !how.tried)
        status = each(s, at, count, how, "applied");
    return status;
}
