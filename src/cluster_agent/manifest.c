/* SPDX-License-Identifier: Apache-2.0 */
/* From files and options to a list of objects, or a chart. */
#include "cluster_agent/manifest.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/vec.h"
#include "cluster_agent/manifest_internal.h"
#include "engine/fleet_names.h"
#include "engine/go_json.h"
#include "model/document.h"
#include "model/fleet.h"

#define FOLDER_OVERLAYS "overlays/"

const char *manifest_fault_text(manifest_fault fault)
{
    static const char *const texts[] = {
#define X(fault, text) text,
        MANIFEST_FAULTS(X)
#undef X
    };
    return texts[fault];
}

manifest_fault manifest_failed(manifest_fault fault, const err *error)
{
    return err_is_memory(error) ? MANIFEST_MEMORY : fault;
}

/* ---- who owns it ---- */

str owner_label(arena *a, str deployment)
{
    return safe_concat(a, &deployment, 1);
}

bool owner_is(const yyjson_val *object, str owner_label_value)
{
    const yyjson_val *labels = go_member(go_member(object, STR("metadata")), STR("labels"));
    str owner = object_text(labels, STR(LABEL_OWNER));
    return owner.len > 0 && str_eq(owner, owner_label_value);
}

/* ---- order ---- */

/* Helm's order of installation, but for definitions, which come before what they define. */
static const str kinds_in_order[] = {
    STR("Namespace"),
    STR("CustomResourceDefinition"),
    STR("PriorityClass"),
    STR("NetworkPolicy"),
    STR("ResourceQuota"),
    STR("LimitRange"),
    STR("PodSecurityPolicy"),
    STR("PodDisruptionBudget"),
    STR("ServiceAccount"),
    STR("Secret"),
    STR("ConfigMap"),
    STR("StorageClass"),
    STR("PersistentVolume"),
    STR("PersistentVolumeClaim"),
    STR("ClusterRole"),
    STR("ClusterRoleBinding"),
    STR("Role"),
    STR("RoleBinding"),
    STR("Service"),
    STR("DaemonSet"),
    STR("Pod"),
    STR("ReplicationController"),
    STR("ReplicaSet"),
    STR("Deployment"),
    STR("HorizontalPodAutoscaler"),
    STR("StatefulSet"),
    STR("Job"),
    STR("CronJob"),
    STR("IngressClass"),
    STR("Ingress"),
    STR("APIService"),
    STR("MutatingWebhookConfiguration"),
    STR("ValidatingWebhookConfiguration"),
};
#define KIND_COUNT (sizeof kinds_in_order / sizeof kinds_in_order[0])

int kind_order(str kind)
{
    for (size_t i = 0; i < KIND_COUNT; i++)
        if (str_eq(kinds_in_order[i], kind))
            return (int)i;
    return (int)KIND_COUNT;
}

static int by_order(const void *a, const void *b)
{
    const wanted_object *one = a, *other = b;
    int order = kind_order(one->ref.kind) - kind_order(other->ref.kind);
    return order != 0 ? order : object_ref_cmp(&one->ref, &other->ref);
}

void manifest_sort(manifest *m)
{
    if (m->len > 0)
        qsort(m->at, m->len, sizeof *m->at, by_order);
}

/* ---- documents ---- */

typedef VEC(wanted_object) wanted_list;

static bool take_document(arena *a, const document *d, wanted_list *list, err *error)
{
    wanted_object one = {0};
    object_ref ref = object_ref_of(d->root);
    char file[STR_SHOWN_BYTES + 4];
    memcpy(file, str_shown(d->file).text, sizeof file);
    if (d->kind.len == 0 || d->api_version.len == 0)
        return err_set(error, "%s: found an object without %s", file,
                       d->kind.len == 0 ? "kind" : "apiVersion");
    if (!object_path_part(ref.name))
        return err_set(error, "%s: %s: metadata.name: found \"%s\", allowed the name of an object",
                       file, str_shown(d->kind).text, str_shown(ref.name).text);
    if (list->len >= MANIFEST_OBJECTS_MAX)
        return err_set(error, "found more than the %u objects that are allowed",
                       MANIFEST_OBJECTS_MAX);
    buf text = BUF(LIMIT_TEXT_BYTES);
    json_write(&text, d->root);
    one.text = text.failed ? (str){NULL, 0} : arena_str(a, buf_str(&text));
    buf_done(&text);
    ref.api_version = d->api_version;
    ref.kind = d->kind;
    one.ref = ref;
    one.listing = go_member(d->root, STR("items"));
    one.definition = str_eq(ref.kind, STR("CustomResourceDefinition")) &&
                     str_eq(object_group(ref.api_version), STR("apiextensions.k8s.io"));
    if (!one.text.ptr || !object_ref_keep(a, &one.ref))
        return err_memory(error);
    return vec_push(list, one) || err_memory(error);
}

/* Documents pass by one after the other: of a whole file they are many times the text. */
typedef struct document_taker {
    arena *arena;
    wanted_list *list;
    err *error;
    bool failed;
} document_taker;

static void take(void *context, const document *d)
{
    document_taker *t = context;
    t->failed = t->failed || !take_document(t->arena, d, t->list, t->error);
}

static bool read_documents(arena *a, const resource_file *file, wanted_list *list, err *error)
{
    document_set *set scoped(document_set_cleanup) = document_set_new();
    problems *found scoped(problems_cleanup) = problems_new();
    document_taker taker = {.arena = a, .list = list, .error = error};
    const document_source source = {
        .file = file->name, .bytes = file->bytes, .each = take, .context = &taker, .passing = true};
    if (!set || !found)
        return err_memory(error);
    if (!documents_read_from(set, &source, found)) {
        if (problems_out_of_memory(found) || problems_count(found) == 0)
            return err_memory(error);
        buf text = BUF(LIMIT_TEXT_BYTES);
        problem_text(problems_at(found, 0), &text);
        bool failed = text.failed;
        err_set(error, "%s", failed ? "" : text.ptr);
        buf_done(&text);
        return failed ? err_memory(error) : false;
    }
    return !taker.failed;
}

static bool keep_list(arena *a, const wanted_list *list, manifest *m, err *error)
{
    m->at = ARENA_ARRAY(a, list->len + 1, wanted_object);
    if (!m->at)
        return err_memory(error);
    if (list->len > 0)
        memcpy(m->at, list->at, list->len * sizeof *list->at);
    m->len = list->len;
    manifest_sort(m);
    return true;
}

/* ---- overlays ---- */

static str base_name(str path)
{
    for (size_t i = path.len; i > 0; i--)
        if (path.ptr[i - 1] == '/')
            return str_part(path, i, path.len);
    return path;
}

/* "web_patch.yaml" is a patch of "web.yaml". ptr is NULL for what is no patch; empty: no memory. */
static str patched_name(arena *a, str name)
{
    str base = base_name(name), mark = STR("_patch.");
    size_t at = str_find(base, mark), folder = name.len - base.len;
    if (at == SIZE_MAX || at == 0)
        return (str){NULL, 0};
    str made = arena_printf(a, "%.*s.%.*s", (int)(folder + at), name.ptr,
                            (int)(base.len - at - mark.len), base.ptr + at + mark.len);
    return made.ptr ? made : STR_EMPTY;
}

static resource_file *find_file(resource_files *files, str name)
{
    for (size_t i = 0; i < files->len; i++)
        if (str_eq(files->at[i].name, name))
            return &files->at[i];
    return NULL;
}

/* Lays one file of an overlay over those that are there; files has room for it. */
static manifest_fault lay_file(arena *a, const resource_file *file, str name, resource_files *files,
                               err *error)
{
    str target = patched_name(a, name);
    resource_file *old = find_file(files, target.ptr ? target : name);
    if (!target.ptr) {
        if (!old)
            old = &files->at[files->len++];
        *old = (resource_file){name, file->bytes};
        return MANIFEST_NONE;
    }
    if (target.len == 0) {
        err_memory(error);
        return MANIFEST_MEMORY;
    }
    if (!old) {
        err_set(error, "%s: found a patch, but there is no file %s", str_shown(file->name).text,
                str_shown(target).text);
        return MANIFEST_BAD;
    }
    return manifest_patch(a, old, file, error) ? MANIFEST_NONE
                                               : manifest_failed(MANIFEST_BAD, error);
}

/* Lays the files of one overlay over those that are there; files has room for all. */
static manifest_fault lay_over(arena *a, const resource_files *all, str overlay,
                               resource_files *files, err *error)
{
    size_t found = 0;
    for (size_t i = 0; i < all->len; i++) {
        str name = all->at[i].name;
        if (!str_starts(name, STR(FOLDER_OVERLAYS)))
            continue;
        name = str_part(name, STR(FOLDER_OVERLAYS).len, name.len);
        if (!str_starts(name, overlay) || name.len <= overlay.len + 1 ||
            name.ptr[overlay.len] != '/')
            continue;
        name = str_part(name, overlay.len + 1, name.len);
        found++;
        manifest_fault fault = lay_file(a, &all->at[i], name, files, error);
        if (fault != MANIFEST_NONE)
            return fault;
    }
    if (found > 0)
        return MANIFEST_NONE;
    err_set(error, "yaml.overlays: found \"%s\", but there is no folder overlays/%s",
            str_shown(overlay).text, str_shown(overlay).text);
    return MANIFEST_BAD;
}

static manifest_fault choose_files(arena *a, const manifest_source *from, manifest *m, err *error)
{
    const yyjson_val *options = manifest_options(from);
    yyjson_val *overlays = go_member(go_member(options, STR("yaml")), STR("overlays")), *one;
    m->files = (resource_files){ARENA_ARRAY(a, from->files.len + 1, resource_file), 0};
    if (!m->files.at) {
        err_memory(error);
        return MANIFEST_MEMORY;
    }
    for (size_t i = 0; i < from->files.len; i++)
        if (!str_starts(from->files.at[i].name, STR(FOLDER_OVERLAYS)))
            m->files.at[m->files.len++] = from->files.at[i];
    size_t i, max;
    yyjson_arr_foreach(overlays, i, max, one)
    {
        str name = go_str(one);
        manifest_fault fault =
            lay_over(a, &from->files, name.ptr ? name : STR_EMPTY, &m->files, error);
        if (fault != MANIFEST_NONE)
            return fault;
    }
    return MANIFEST_NONE;
}

/* ---- plain manifests ---- */

static bool is_kustomization(str name)
{
    str base = base_name(name);
    return str_eq(base, STR("kustomization.yaml")) || str_eq(base, STR("kustomization.yml")) ||
           str_eq(base, STR("Kustomization"));
}

static bool is_fleet_yaml(str base)
{
    return str_eq(base, STR("fleet.yaml")) || str_eq(base, STR("fleet.yml"));
}

static bool is_manifest_file(str name)
{
    bool suffix =
        str_ends(name, STR(".yaml")) || str_ends(name, STR(".yml")) || str_ends(name, STR(".json"));
    return suffix && !is_fleet_yaml(base_name(name));
}

typedef VEC(str) folder_list;

/* Folders below the root, with their slash, that are charts or Bundles of their own. */
static bool find_apart(const resource_files *files, folder_list *ret)
{
    for (size_t i = 0; i < files->len; i++) {
        str name = files->at[i].name, base = base_name(name);
        bool apart =
            name.len > base.len && (is_fleet_yaml(base) || str_eq(base, STR("Chart.yaml")));
        if (apart && !vec_push(ret, str_part(name, 0, name.len - base.len)))
            return false;
    }
    return true;
}

static bool is_apart(const folder_list *folders, str name)
{
    for (size_t i = 0; i < folders->len; i++)
        if (str_starts(name, folders->at[i]))
            return true;
    return false;
}

static manifest_fault read_plain(arena *a, manifest *m, err *error)
{
    wanted_list list = {0};
    folder_list apart = {0};
    bool good = find_apart(&m->files, &apart) || err_memory(error);
    for (size_t i = 0; good && i < m->files.len; i++)
        if (is_manifest_file(m->files.at[i].name) && !is_apart(&apart, m->files.at[i].name))
            good = read_documents(a, &m->files.at[i], &list, error);
    good = good && keep_list(a, &list, m, error);
    vec_done(&apart);
    vec_done(&list);
    return good ? MANIFEST_NONE : manifest_failed(MANIFEST_BAD, error);
}

manifest_fault manifest_rendered(arena *a, manifest *m, str yaml, err *error)
{
    wanted_list list = {0};
    resource_file file = {STR("the chart"), yaml};
    bool good = read_documents(a, &file, &list, error) && keep_list(a, &list, m, error);
    vec_done(&list);
    m->rendered = good;
    return good ? MANIFEST_NONE : manifest_failed(MANIFEST_BAD, error);
}

/* ---- the whole ---- */

/* What asks for more than is done here. */
static manifest_fault refuse(const manifest_source *from, const manifest *m, err *error)
{
    const yyjson_val *options = manifest_options(from);
    const yyjson_val *spec = go_member(from->deployment, STR("spec"));
    const char *what = NULL;
    if (object_text(go_member(options, STR("kustomize")), STR("dir")).len > 0)
        what = "kustomize";
    for (size_t i = 0; !what && i < m->files.len; i++)
        if (!m->is_chart && is_kustomization(m->files.at[i].name))
            what = "kustomize";
    if (yyjson_is_true(go_member(spec, STR("ociContents"))))
        what = "ociContents";
    else if (object_text(go_member(spec, STR("helmChartOptions")), STR("helmOpSecretName")).len > 0)
        what = "helmOpSecretName";
    else if (yyjson_arr_size(go_member(options, STR("downstreamResources"))) > 0)
        what = "downstreamResources";
    if (!what)
        return MANIFEST_NONE;
    err_set(error, "found %s, which this agent does not support", what);
    return MANIFEST_UNSUPPORTED;
}

/* False without memory. */
static bool read_options(arena *a, const manifest_source *from, manifest *m)
{
    const yyjson_val *options = manifest_options(from), *helm = go_member(options, STR("helm"));
    const yyjson_val *create = go_member(options, STR("createNamespace"));
    str forced = object_text(options, STR("namespace"));
    str otherwise = object_text(options, STR("defaultNamespace"));
    str release = object_text(helm, STR("releaseName"));
    m->owner = object_text(go_member(from->deployment, STR("metadata")), STR("name"));
    m->release = release.len > 0 ? release : helm_release_name(a, m->owner);
    m->namespace_forced = forced.len > 0;
    m->confined = forced.len > 0 || go_member(options, STR("allowedTargetNamespaceSelector"));
    m->release_namespace = forced.len > 0 ? forced : otherwise.len > 0 ? otherwise : STR("default");
    m->create_namespace = !(create && yyjson_is_false((yyjson_val *)(uintptr_t)create));
    m->take_ownership = yyjson_is_true(go_member(helm, STR("takeOwnership")));
    m->keep_resources = yyjson_is_true(go_member(options, STR("keepResources")));
    m->delete_namespace = yyjson_is_true(go_member(options, STR("deleteNamespace")));
    m->delete_definitions = yyjson_is_true(go_member(options, STR("deleteCRDResources")));
    m->account = object_text(options, STR("serviceAccount"));
    m->namespace_labels = go_member(options, STR("namespaceLabels"));
    m->namespace_annotations = go_member(options, STR("namespaceAnnotations"));
    return m->release.ptr;
}

/* Names that come from the hub and become parts of paths, of a user's name and of helm's command
 * line. */
static bool check_names(const manifest *m, err *error)
{
    if (!is_release_name(m->release))
        return err_set(error, "options.helm.releaseName: found \"%s\", allowed %s",
                       str_shown(m->release).text, RELEASE_NAME_ALLOWED);
    if (!object_path_part(m->release_namespace))
        return err_set(error, "options: found the namespace \"%s\", allowed the name of one",
                       str_shown(m->release_namespace).text);
    bool good = m->account.len == 0 || object_path_part(m->account);
    return (good && str_find(m->account, STR(":")) == SIZE_MAX) ||
           err_set(error, "options.serviceAccount: found \"%s\", allowed the name of one",
                   str_shown(m->account).text);
}

manifest_fault manifest_read(arena *a, const manifest_source *from, manifest *ret, err *error)
{
    manifest m = {0};
    if (!read_options(a, from, &m)) {
        err_memory(error);
        return MANIFEST_MEMORY;
    }
    if (!check_names(&m, error))
        return MANIFEST_BAD;
    manifest_fault fault = choose_files(a, from, &m, error);
    if (fault == MANIFEST_NONE)
        fault = manifest_chart(a, from, &m, error);
    if (fault == MANIFEST_NONE)
        fault = refuse(from, &m, error);
    if (fault == MANIFEST_NONE && !m.is_chart)
        fault = read_plain(a, &m, error);
    if (fault == MANIFEST_NONE)
        *ret = m;
    return fault;
}
