/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/kube_live.h"

#include <stdio.h>

#include "base/limits.h"
#include "base/mem.h"
#include "cli/output.h"
#include "engine/fleet_names.h"
#include "model/object.h"
#include "operator/bundle_values.h"
#include "operator/object_names.h"
#include "operator/older_record.h"
#include "operator/shell_read.h"
#include "operator/status_record.h"
#include "sim/live.h"

#define SKYHOOK_API "skyhook.nvidia.com/v1alpha1"
#define RECORD_PREFIX "skyhook.nvidia.com/drover_" /* annotation of a node, one a Skyhook */
#define BUNDLE_RECORD "drover.dev/rollout"         /* annotation of a Bundle */

/* What is looked at. Documents of a kind stand together, those that others refer to first. */
static const struct {
    object_kind kind;
    const char *path;
} kinds[] = {
    {KIND_DEPLOYMENT_POLICY, "/apis/skyhook.nvidia.com/v1alpha1/deploymentpolicies"},
    {KIND_SKYHOOK, "/apis/skyhook.nvidia.com/v1alpha1/skyhooks"},
    {KIND_NODE, "/api/v1/nodes"},
    {KIND_CLUSTER_GROUP, "/apis/fleet.cattle.io/v1alpha1/clustergroups"},
    {KIND_CLUSTER, "/apis/fleet.cattle.io/v1alpha1/clusters"},
    {KIND_BUNDLE_NAMESPACE_MAPPING, "/apis/fleet.cattle.io/v1alpha1/bundlenamespacemappings"},
    {KIND_BUNDLE, "/apis/fleet.cattle.io/v1alpha1/bundles"},
    {KIND_BUNDLE_DEPLOYMENT, "/apis/fleet.cattle.io/v1alpha1/bundledeployments"},
};

typedef struct reading {
    kube_session *session;
    object_kind kind;
    int64_t count;
    bool mappings; /* some BundleNamespaceMapping was read */
    buf documents;
    buf placements, skyhooks, bundles; /* records, as the engine saved them */
} reading;

/* ---- documents ---- */

/* Items of a list have neither apiVersion nor kind; managedFields are of no use and long. */
static void put_document(buf *out, object_kind kind, yyjson_val *json)
{
    buf_addf(out, "{\"apiVersion\":\"%s\",\"kind\":\"%s\"", object_kind_api(kind),
             object_kind_text(kind));
    size_t index, count;
    yyjson_val *key, *value;
    yyjson_obj_foreach(json, index, count, key, value)
    {
        str name = {yyjson_get_str(key), yyjson_get_len(key)};
        if (str_eq(name, STR("apiVersion")) || str_eq(name, STR("kind")))
            continue;
        buf_addc(out, ',');
        buf_add_json(out, name);
        buf_addc(out, ':');
        json_write(out, value);
    }
    buf_addc(out, '}');
}

/* Tells what is wrong with a document of the cluster. */
static void report(const problems *found)
{
    for (size_t i = 0; i < problems_count(found); i++) {
        const problem *p = problems_at(found, i);
        buf text = BUF(LIMIT_TEXT_BYTES);
        if (p->severity == SEVERITY_ERROR) {
            problem_text(p, &text);
            fprintf(stderr, "drover: left out: %.*s\n", STR_ARG(buf_str(&text)));
        }
        buf_done(&text);
    }
}

static bool is_good(str text, err *error, bool *ret)
{
    document_set *set = document_set_new();
    object_list *objects = objects_new();
    problems *found = problems_new();
    bool whole = set && objects && found;
    *ret = whole && documents_read_as(set, STR("cluster"), text, FORMAT_JSON, found) &&
           objects_read(objects, set, found);
    if (whole && !*ret)
        report(found);
    problems_free(found);
    objects_free(objects);
    document_set_free(set);
    return whole || err_memory(error);
}

/* ---- records ---- */

static void put_record(buf *out, const char *kind, str name, str record)
{
    scoped(arena_cleanup) arena *a = arena_new(0);
    bool good =
        a && str_find(record, STR("\n")) == SIZE_MAX && yyjson_is_obj(json_parse(a, record, NULL));
    if (good)
        buf_addf(out, "%s%.*s %.*s\n", kind, STR_ARG(name), STR_ARG(record));
}

static void keep_node(reading *r, yyjson_val *head)
{
    size_t index, count;
    yyjson_val *key, *value;
    str name = json_text_of(head, "name");
    yyjson_obj_foreach(yyjson_obj_get(head, "annotations"), index, count, key, value)
    {
        str text = {yyjson_get_str(key), yyjson_get_len(key)};
        if (!str_starts(text, STR(RECORD_PREFIX)) || !yyjson_is_str(value))
            continue;
        scoped(buf_done) buf whose = BUF(LIMIT_LOG_LINE_BYTES);
        buf_addf(&whose, "%.*s/%.*s", STR_ARG(str_part(text, sizeof RECORD_PREFIX - 1, SIZE_MAX)),
                 STR_ARG(name));
        put_record(&r->placements, "nodes placement/", buf_str(&whose),
                   (str){yyjson_get_str(value), yyjson_get_len(value)});
    }
}

/* What nodes have of a package's files, if Skyhook's own operator gave it to them; NULL: that is
 * not known, and they count as having what the document says. */
static const char *files_given(reading *r, arena *a, const skyhook *of, const package *p)
{
    err error = {0};
    kube_reply reply = {0};
    scoped(buf_done) buf name = BUF(LIMIT_NAME_BYTES), text = BUF(LIMIT_TEXT_BYTES);
    if (p->config_map.len == 0)
        return NULL;
    package_config_map_name(&name, of->metadata.name, p);
    str path = arena_printf(a, "/api/v1/namespaces/%.*s/configmaps/%.*s",
                            STR_ARG(kube_session_namespace(r->session)), STR_ARG(buf_str(&name)));
    bool got = path.ptr && kube_get(r->session, path, a, &reply, &error);
    if (got && reply.status < 400)
        return older_config_put(&text, reply.body, of->metadata.uid)
                   ? arena_str(a, buf_str(&text)).ptr
                   : NULL;
    if (!got || reply.status != 404)
        fprintf(stderr,
                "drover: Skyhook %.*s: which files of package %.*s its nodes have is not known: "
                "%s\n",
                STR_ARG(of->metadata.name), STR_ARG(p->name), got ? reply.message : error.text);
    return NULL;
}

/* Drover has not run there yet. */
static void put_older(reading *r, arena *a, yyjson_val *json, buf *out)
{
    err error = {0};
    yyjson_val *status = yyjson_obj_get(json, "status");
    shell_document *d =
        older_wrote(status) ? shell_document_new(json, SKYHOOK_API, "Skyhook", &error) : NULL;
    const skyhook *of = d ? d->object.skyhook : NULL;
    const char **configs = d ? ARENA_ARRAY(a, of->spec.packages.len + 1, const char *) : NULL;
    for (size_t i = 0; configs && i < of->spec.packages.len; i++)
        configs[i] = files_given(r, a, of, &of->spec.packages.at[i]);
    if (d)
        older_record_put(out, status, of, configs);
    shell_document_free(d);
}

static void keep_skyhook(reading *r, arena *a, yyjson_val *json)
{
    scoped(buf_done) buf record = BUF(LIMIT_TEXT_BYTES);
    status_record_whole(a, yyjson_obj_get(json, "status"), &record);
    if (record.len == 0)
        put_older(r, a, json, &record);
    r->skyhooks.failed |= record.failed;
    put_record(&r->skyhooks, "nodes skyhook/",
               json_text_of(yyjson_obj_get(json, "metadata"), "name"), buf_str(&record));
}

static void keep_bundle(reading *r, yyjson_val *head)
{
    scoped(buf_done) buf whose = BUF(LIMIT_LOG_LINE_BYTES);
    buf_addf(&whose, "%.*s/%.*s", STR_ARG(json_text_of(head, "namespace")),
             STR_ARG(json_text_of(head, "name")));
    put_record(&r->bundles, "clusters ", buf_str(&whose),
               json_text_of(yyjson_obj_get(head, "annotations"), BUNDLE_RECORD));
}

/* Without its values nobody knows what it deploys: a plan would have all clusters out of date.
 * True: *json has them, if it needs any. */
static bool add_values(reading *r, arena *a, yyjson_val **json)
{
    err error = {0};
    kube_reply reply = {0};
    yyjson_val *head = yyjson_obj_get(*json, "metadata"), *whole = NULL;
    str space = json_text_of(head, "namespace"), name = json_text_of(head, "name");
    if (r->kind != KIND_BUNDLE ||
        json_text_of(yyjson_obj_get(*json, "spec"), "valuesHash").len == 0)
        return true;
    str path =
        arena_printf(a, "/api/v1/namespaces/%.*s/secrets/%.*s", STR_ARG(space), STR_ARG(name));
    bool got = path.ptr && kube_get(r->session, path, a, &reply, &error);
    if (got && reply.status >= 400)
        err_set(&error, "%s", reply.message);
    else if (got)
        whole = bundle_with_values(a, *json, reply.body, &error);
    if (whole)
        *json = whole;
    else
        fprintf(stderr,
                "drover: left out: Bundle %.*s/%.*s: its values lie in a Secret (spec.valuesHash): "
                "%s\n",
                STR_ARG(space), STR_ARG(name), error.text);
    return whole;
}

static bool take(void *context, yyjson_val *json, err *error)
{
    reading *r = context;
    bool good;
    scoped(arena_cleanup) arena *a = arena_new(0);
    if (!a)
        return err_memory(error);
    if (!add_values(r, a, &json))
        return true;
    buf text = BUF(LIMIT_TEXT_BYTES);
    put_document(&text, r->kind, json);
    if (text.failed || !is_good(buf_str(&text), error, &good)) {
        buf_done(&text);
        return err_memory(error);
    }
    yyjson_val *head = yyjson_obj_get(json, "metadata");
    if (good) {
        buf_add(&r->documents, buf_str(&text));
        buf_addc(&r->documents, '\n');
        r->count++;
    }
    r->mappings |= good && r->kind == KIND_BUNDLE_NAMESPACE_MAPPING;
    if (good && r->kind == KIND_NODE)
        keep_node(r, head);
    if (good && r->kind == KIND_SKYHOOK)
        keep_skyhook(r, a, json);
    if (good && r->kind == KIND_BUNDLE)
        keep_bundle(r, head);
    buf_done(&text);
    return true;
}

/* The namespace of a cluster's deployments holds no Clusters, and there are as many as clusters. */
static bool take_namespace(void *context, yyjson_val *json, err *error)
{
    (void)error;
    reading *r = context;
    yyjson_val *head = yyjson_obj_get(json, "metadata"), *labels = yyjson_obj_get(head, "labels");
    if (json_text_of(yyjson_obj_get(head, "annotations"), ANNOTATION_CLUSTER).len > 0)
        return true;
    buf_addf(&r->documents, "{\"apiVersion\":\"%s\",\"kind\":\"%s\",\"metadata\":{\"name\":",
             object_kind_api(KIND_NAMESPACE), object_kind_text(KIND_NAMESPACE));
    buf_add_json(&r->documents, json_text_of(head, "name"));
    if (labels) {
        buf_addz(&r->documents, ",\"labels\":");
        json_write(&r->documents, labels);
    }
    buf_addz(&r->documents, "}}\n");
    r->count++;
    return true;
}

/* Their labels matter to mappings alone. Who may not read them is told what that means. */
static void read_namespaces(kube_session *s, reading *r)
{
    err error = {0};
    if (r->mappings && !kube_list(s, STR("/api/v1/namespaces"), take_namespace, r, &error))
        fprintf(stderr,
                "drover: BundleNamespaceMappings see the names of namespaces, not their labels: "
                "%s\n",
                error.text);
}

bool kube_live_read(kube_session *s, buf *out, err *error)
{
    reading r = {.session = s,
                 .documents = BUF(LIMIT_TEXT_BYTES),
                 .placements = BUF(LIMIT_TEXT_BYTES),
                 .skyhooks = BUF(LIMIT_TEXT_BYTES),
                 .bundles = BUF(LIMIT_TEXT_BYTES)};
    bool good = true;
    for (size_t i = 0; good && i < sizeof kinds / sizeof kinds[0]; i++) {
        r.kind = kinds[i].kind;
        good = kube_list_known(s, str_of(kinds[i].path), take, &r, error);
    }
    if (good)
        read_namespaces(s, &r);
    live_head first = {.now_ms = kube_session_now_ms(s), .documents = r.count};
    live_write_head(out, &first);
    buf_add(out, buf_str(&r.documents));
    buf_add(out, buf_str(&r.placements));
    buf_add(out, buf_str(&r.skyhooks));
    buf_add(out, buf_str(&r.bundles));
    bool failed = out->failed || r.documents.failed || r.placements.failed || r.skyhooks.failed ||
                  r.bundles.failed;
    buf_done(&r.documents);
    buf_done(&r.placements);
    buf_done(&r.skyhooks);
    buf_done(&r.bundles);
    return good && (!failed || err_memory(error));
}
