/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/bundle_objects.h"

#include "base/base64.h"
#include "base/gzip.h"
#include "base/mem.h"
#include "engine/deployment_id.h"
#include "model/document.h"
#include "model/object.h"
#include "operator/bundle_json.h"

#define OWN_LABELS 7

static void object_head(buf *out, const char *api, const char *kind)
{
    buf_addc(out, '{');
    json_text(out, "apiVersion", str_of(api));
    json_text(out, "kind", str_of(kind));
}

/* ---- Content ---- */

bool content_put(buf *out, raw_json resources, err *error)
{
    buf manifest = BUF(LIMIT_TEXT_BYTES), zipped = BUF(LIMIT_TEXT_BYTES);
    char hex[SHA256_HEX_BYTES];
    size_t before = out->len;
    arena *a scoped(arena_cleanup) = arena_new(0);
    manifest_json(&manifest, resources);
    str id = a ? resources_id(a, resources) : (str){NULL, 0};
    bool good = id.ptr && !manifest.failed && sha256_hex(buf_str(&manifest), hex) &&
                gzip_compress(buf_str(&manifest), &zipped);
    if (good) {
        object_head(out, API_FLEET, "Content");
        json_open(out, "metadata");
        json_text(out, "name", id);
        json_close(out);
        json_key(out, "content");
        buf_addc(out, '"');
        base64_encode(buf_str(&zipped), out);
        buf_addc(out, '"');
        json_text(out, "sha256sum", str_of(hex));
        json_close(out);
    }
    buf_done(&manifest);
    buf_done(&zipped);
    if (!good || out->failed)
        return err_memory(error);
    if (out->len - before > LIMIT_DOCUMENT_BYTES)
        return err_set(error, "Content: found %zu bytes, allowed %u", out->len - before,
                       LIMIT_DOCUMENT_BYTES);
    return true;
}

/* ---- labels ---- */

static bool is_own(str key, const label *own)
{
    for (size_t i = 0; i < OWN_LABELS; i++)
        if (str_eq(own[i].key, key))
            return true;
    return false;
}

static bool may_be_missing(str key)
{
    return str_eq(key, STR(LABEL_CONTENT_NAME)) || str_eq(key, STR(LABEL_ACCESS));
}

/* The content's name stands before the ":" of a deployment ID. */
static str content_of(const bundle_deployment_order *o)
{
    if (o->bundle->spec.contents_id.len > 0 || o->bundle->spec.helm_op_options)
        return STR_EMPTY;
    str id = o->live.id.len > 0 ? o->live.id : o->staged.id;
    return str_cut(&id, ':');
}

label_set bundle_deployment_labels(arena *a, const bundle_deployment_order *o)
{
    const metadata *m = &o->bundle->metadata;
    const label own[OWN_LABELS] = {
        {STR(LABEL_BUNDLE_NAME), m->name},
        {STR(LABEL_BUNDLE_NAMESPACE), m->namespace_},
        {STR(LABEL_CLUSTER), o->cluster},
        {STR(LABEL_CLUSTER_NAMESPACE), o->cluster_namespace},
        {STR(LABEL_CONTENT_NAME), content_of(o)},
        {STR(LABEL_MANAGED), STR("true")},
        {STR(LABEL_ACCESS), o->access},
    };
    label *at = ARENA_ARRAY(a, m->labels.len + OWN_LABELS, label);
    label_set sorted = {NULL, 0};
    size_t len = 0;
    if (!at)
        return sorted;
    for (size_t i = 0; i < m->labels.len; i++)
        if (bundle_label_inherited(m->labels.at[i].key) && !is_own(m->labels.at[i].key, own))
            at[len++] = m->labels.at[i];
    for (size_t i = 0; i < OWN_LABELS; i++)
        if (own[i].value.len > 0 || !may_be_missing(own[i].key))
            at[len++] = own[i];
    err never; /* no key stands twice */
    label_set_sort(at, len, &sorted, &never);
    return sorted;
}

/* ---- options ---- */

/* What every target says of the namespace goes to every cluster, and beside the versions. */
static raw_json options_member(const bundle_options *options, bool annotations)
{
    return annotations ? options->namespace_annotations : options->namespace_labels;
}

static void put_namespace_texts(buf *out, const bundle_deployment_order *o, raw_json base,
                                bool annotations)
{
    go_pairs all = {0};
    const bundle_target_list *targets = &o->bundle->spec.targets;
    for (size_t i = targets->len; i > 0; i--) /* the last one wins: it is looked at first */
        out->failed |=
            !go_pairs_add(&all, options_member(&targets->at[i - 1].options, annotations));
    out->failed |= !go_pairs_add(&all, base);
    go_pairs sorted = {0};
    for (size_t i = 0; i < all.len; i++) {
        bool known = false;
        for (size_t k = 0; k < sorted.len; k++)
            known |= str_eq(sorted.at[k].key, all.at[i].key);
        if (!known && !vec_push(&sorted, all.at[i]))
            out->failed = true;
    }
    go_pairs_sort(&sorted);
    if (sorted.len > 0) {
        json_open(out, annotations ? "namespaceAnnotations" : "namespaceLabels");
        for (size_t i = 0; i < sorted.len; i++) {
            buf_addz(out, i > 0 ? "," : "");
            go_text(out, sorted.at[i].key);
            buf_addc(out, ':');
            go_value(out, sorted.at[i].value);
        }
        json_close(out);
    }
    vec_done(&all);
    vec_done(&sorted);
}

/* helm without its values: those are in the Secret. */
static void put_helm(buf *out, yyjson_val *helm)
{
    size_t i, max;
    yyjson_val *key, *value;
    json_open(out, "helm");
    yyjson_obj_foreach(helm, i, max, key, value)
    {
        if (str_eq(go_str(key), STR("values")))
            continue;
        json_key_of(out, go_str(key));
        go_value(out, value);
    }
    json_close(out);
}

static void put_options(buf *out, const char *name, const bundle_deployment_order *o,
                        yyjson_val *options)
{
    size_t i, max;
    yyjson_val *key, *value;
    json_open(out, name);
    yyjson_obj_foreach(options, i, max, key, value)
    {
        str member = go_str(key);
        if (str_eq(member, STR("helm")))
            put_helm(out, value);
        else if (!str_eq(member, STR("namespaceLabels")) &&
                 !str_eq(member, STR("namespaceAnnotations"))) {
            json_key_of(out, member);
            go_value(out, value);
        }
    }
    put_namespace_texts(out, o, go_member(options, STR("namespaceLabels")), false);
    put_namespace_texts(out, o, go_member(options, STR("namespaceAnnotations")), true);
    json_close(out);
}

/* The bytes of Helm values; none when there are none or nothing is in them. */
static str values_text(arena *a, const yyjson_val *options)
{
    yyjson_val *values = go_member(go_member(options, STR("helm")), STR("values"));
    buf out = BUF(LIMIT_DOCUMENT_BYTES);
    if (!values || !yyjson_is_obj(values) || yyjson_obj_size(values) == 0)
        return STR_EMPTY;
    go_value(&out, values);
    str text = out.failed ? (str){NULL, 0} : arena_str(a, buf_str(&out));
    buf_done(&out);
    return text;
}

/* ---- BundleDeployment ---- */

static void put_spec(buf *out, const bundle_deployment_order *o, yyjson_val *staged,
                     yyjson_val *live)
{
    const bundle_spec *spec = &o->bundle->spec;
    json_open(out, "spec");
    json_true_if(out, "paused", o->paused);
    if (staged)
        put_options(out, "stagedOptions", o, staged);
    json_text_if(out, "stagedDeploymentID", o->staged.id);
    if (live)
        put_options(out, "options", o, live);
    json_text_if(out, "deploymentID", o->live.id);
    json_value_if(out, "dependsOn", spec->depends_on);
    json_value_if(out, "correctDrift", go_member(live ? live : staged, STR("correctDrift")));
    json_true_if(out, "ociContents", spec->contents_id.len > 0);
    json_value_if(out, "helmChartOptions", spec->helm_op_options);
}

static bool parse_options(arena *a, str text, yyjson_val **ret, err *error)
{
    *ret = NULL;
    if (text.len == 0)
        return true;
    *ret = json_parse(a, text, error);
    return *ret || err_wrap(error, "options");
}

bool bundle_deployment_make(arena *a, const bundle_deployment_order *o,
                            bundle_deployment_texts *ret, err *error)
{
    yyjson_val *staged, *live;
    if (!parse_options(a, o->staged.options, &staged, error) ||
        !parse_options(a, o->live.options, &live, error))
        return false;
    bundle_deployment_texts made = {.values = values_text(a, live),
                                    .staged_values = values_text(a, staged)};
    label_set labels = bundle_deployment_labels(a, o);
    if (!made.values.ptr || !made.staged_values.ptr || !labels.at)
        return err_memory(error);
    made.values_hash = values_hash(a, made.values, made.staged_values);
    buf out = BUF(LIMIT_DOCUMENT_BYTES);
    object_head(&out, API_FLEET, "BundleDeployment");
    json_open(&out, "metadata");
    json_text(&out, "name", o->bundle->metadata.name);
    json_text(&out, "namespace", o->namespace_);
    json_labels(&out, "labels", labels);
    json_close(&out);
    put_spec(&out, o, staged, live);
    json_text_if(&out, "valuesHash", made.values_hash);
    json_value_if(&out, "downstreamResourcesGeneration", o->downstream_resources_generation);
    json_true_if(&out, "offSchedule", o->off_schedule);
    json_close(&out);
    json_close(&out);
    made.object = out.failed ? (str){NULL, 0} : arena_str(a, buf_str(&out));
    bool too_big = out.failed && out.len > LIMIT_DOCUMENT_BYTES / 2;
    buf_done(&out);
    if (!made.object.ptr || !made.values_hash.ptr)
        return too_big ? err_set(error,
                                 "BundleDeployment: found more than %u bytes, which is the "
                                 "most",
                                 LIMIT_DOCUMENT_BYTES)
                       : err_memory(error);
    *ret = made;
    return true;
}

static void put_data(buf *out, const char *name, str text)
{
    json_key(out, name);
    buf_addc(out, '"');
    base64_encode(text, out);
    buf_addc(out, '"');
}

void options_secret_put(buf *out, const bundle_deployment_order *o,
                        const bundle_deployment_texts *texts, str owner_uid)
{
    object_head(out, "v1", "Secret");
    json_open(out, "metadata");
    json_text(out, "name", o->bundle->metadata.name);
    json_text(out, "namespace", o->namespace_);
    json_key(out, "ownerReferences");
    buf_addz(out, "[{");
    json_text(out, "apiVersion", STR(API_FLEET));
    json_text(out, "kind", STR("BundleDeployment"));
    json_text(out, "name", o->bundle->metadata.name);
    json_text(out, "uid", owner_uid);
    json_true_if(out, "controller", true);
    json_true_if(out, "blockOwnerDeletion", true);
    buf_addz(out, "}]");
    json_close(out);
    json_text(out, "type", STR(SECRET_TYPE_OPTIONS));
    json_open(out, "data");
    put_data(out, "values", texts->values);
    put_data(out, "stagedValues", texts->staged_values);
    json_close(out);
    json_close(out);
}

/* Nobody owns it: deployments that need the same one share it. */
void access_secret_put(buf *out, const access_secret *secret)
{
    object_head(out, "v1", "Secret");
    json_open(out, "metadata");
    json_text(out, "name", secret->name);
    json_text(out, "namespace", secret->namespace_);
    json_open(out, "labels");
    json_text(out, LABEL_INTERNAL_SECRET, STR("true"));
    json_close(out);
    json_close(out);
    json_text(out, "type", secret->type);
    json_key(out, "data");
    buf_add(out, secret->data);
    json_close(out);
}
