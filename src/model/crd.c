/* SPDX-License-Identifier: Apache-2.0 */
#include "model/crd.h"

#include <assert.h>

#include "model/shape.h"

#define QUANTITY_PATTERN                                                                           \
    "^(\\\\+|-)?(([0-9]+(\\\\.[0-9]*)?)|(\\\\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|"                   \
    "([eE](\\\\+|-)?(([0-9]+(\\\\.[0-9]*)?)|(\\\\.[0-9]+))))?$"
#define DURATION_PATTERN "^\\\\+?(0|([0-9.]+(ns|us|µs|μs|ms|s|m|h|d))+)$"
#define LABEL_KEY_PATTERN                                                                          \
    "^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$"
#define LABEL_VALUE                                                                                \
    "{\"type\":\"string\",\"maxLength\":63,\"pattern\":"                                           \
    "\"^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$\"}"

/* What a label selector is. Kubernetes' own, with its rules. */
static const char selector_schema[] =
    "\"type\":\"object\",\"x-kubernetes-map-type\":\"atomic\",\"properties\":{"
    "\"matchLabels\":{\"type\":\"object\",\"additionalProperties\":" LABEL_VALUE "},"
    "\"matchExpressions\":{\"type\":\"array\",\"x-kubernetes-list-type\":\"atomic\","
    "\"items\":{\"type\":\"object\",\"required\":[\"key\",\"operator\"],\"properties\":{"
    "\"key\":{\"type\":\"string\",\"maxLength\":317,\"pattern\":\"" LABEL_KEY_PATTERN "\"},"
    "\"operator\":{\"type\":\"string\",\"enum\":[\"In\",\"NotIn\",\"Exists\",\"DoesNotExist\"]},"
    "\"values\":{\"type\":\"array\",\"x-kubernetes-list-type\":\"atomic\",\"items\":" LABEL_VALUE
    "}},\"x-kubernetes-validations\":[{\"rule\":"
    "\"(self.operator in ['In', 'NotIn']) == (has(self.values) && self.values.size() > 0)\","
    "\"message\":\"In and NotIn need values, Exists and DoesNotExist have none\"}]}}}";

/* ---- kinds ---- */

typedef struct crd_column {
    const char *name; /* NULL: the end */
    const char *type;
    const char *path;
} crd_column;

typedef struct crd {
    object_kind kind;
    const char *name;
    const char *plural;
    const char *singular;
    bool status; /* has a status subresource */
    const crd_column *columns;
    bool open; /* somebody else's: in namespaces, and whatever else they write is kept */
} crd;

static const crd_column skyhook_columns[] = {
    {"Status", "string", ".status.status"},
    {"Priority", "integer", ".spec.priority"},
    {"Age", "date", ".metadata.creationTimestamp"},
    {"Nodes In-Progress", "integer", ".status.nodesInProgress"},
    {"Complete Nodes", "string", ".status.completeNodes"},
    {"Packages", "string", ".status.packageList"},
    {"Policy", "string", ".spec.deploymentPolicy"},
    {NULL, NULL, NULL},
};
static const crd_column no_columns[] = {{NULL, NULL, NULL}};

static const crd_column bundle_columns[] = {
    {"BundleDeployments-Ready", "string", ".status.display.readyClusters"},
    {"Status", "string", ".status.conditions[?(@.type==\"Ready\")].message"},
    {NULL, NULL, NULL},
};
static const crd_column bundle_deployment_columns[] = {
    {"Deployed", "string", ".status.conditions[?(@.type==\"Deployed\")].status"},
    {"Monitored", "string", ".status.conditions[?(@.type==\"Monitored\")].status"},
    {"Status", "string", ".status.conditions[?(@.type==\"Ready\")].message"},
    {NULL, NULL, NULL},
};
static const crd_column cluster_columns[] = {
    {"Bundles-Ready", "string", ".status.display.readyBundles"},
    {"Last-Seen", "string", ".status.agent.lastSeen"},
    {"Status", "string", ".status.conditions[?(@.type==\"Ready\")].message"},
    {NULL, NULL, NULL},
};
static const crd_column cluster_group_columns[] = {
    {"Clusters-Ready", "string", ".status.display.readyClusters"},
    {"Bundles-Ready", "string", ".status.display.readyBundles"},
    {"Status", "string", ".status.conditions[?(@.type==\"Ready\")].message"},
    {NULL, NULL, NULL},
};

#define FLEET(plural) plural ".fleet.cattle.io", plural
static const crd crds[] = {
    {KIND_SKYHOOK, "skyhooks.skyhook.nvidia.com", "skyhooks", "skyhook", true, skyhook_columns,
     false},
    {KIND_DEPLOYMENT_POLICY, "deploymentpolicies.skyhook.nvidia.com", "deploymentpolicies",
     "deploymentpolicy", false, no_columns, false},
    {KIND_BUNDLE, FLEET("bundles"), "bundle", true, bundle_columns, true},
    {KIND_BUNDLE_DEPLOYMENT, FLEET("bundledeployments"), "bundledeployment", true,
     bundle_deployment_columns, true},
    {KIND_CLUSTER, FLEET("clusters"), "cluster", true, cluster_columns, true},
    {KIND_CLUSTER_GROUP, FLEET("clustergroups"), "clustergroup", true, cluster_group_columns, true},
    {KIND_BUNDLE_NAMESPACE_MAPPING, FLEET("bundlenamespacemappings"), "bundlenamespacemapping",
     false, no_columns, true},
};
const object_kind crd_kinds[] = {KIND_SKYHOOK, KIND_DEPLOYMENT_POLICY};
const size_t crd_count = sizeof crd_kinds / sizeof crd_kinds[0];
const object_kind crd_fleet_kinds[] = {KIND_BUNDLE, KIND_BUNDLE_DEPLOYMENT, KIND_CLUSTER,
                                       KIND_CLUSTER_GROUP, KIND_BUNDLE_NAMESPACE_MAPPING};
const size_t crd_fleet_count = sizeof crd_fleet_kinds / sizeof crd_fleet_kinds[0];
#define CRDS (sizeof crds / sizeof crds[0])
_Static_assert(CRDS == sizeof crd_kinds / sizeof crd_kinds[0] +
                           sizeof crd_fleet_kinds / sizeof crd_fleet_kinds[0],
               "one row for each kind");

static const crd *crd_of(object_kind kind)
{
    for (size_t i = 0; i < CRDS; i++)
        if (crds[i].kind == kind)
            return &crds[i];
    assert(false && "a kind without a definition");
    return NULL;
}

const char *crd_name(object_kind kind)
{
    return crd_of(kind)->name;
}

/* ---- single values ---- */

static void put_shape(buf *out, const shape *s, bool open);

static void put_words(buf *out, const word_list *words)
{
    bool first = true;
    buf_addz(out, "\"type\":\"string\",\"enum\":[");
    for (size_t i = 0; i < words->len; i++) {
        if (words->at[i].len == 0)
            continue;
        buf_addz(out, first ? "" : ",");
        first = false;
        buf_add_json(out, words->at[i]);
    }
    buf_addc(out, ']');
}

static void put_range(buf *out, const field *f)
{
    if (!f->limited)
        return;
    buf_addf(out, ",\"minimum\":%lld", (long long)f->min);
    if (f->max != INT64_MAX)
        buf_addf(out, ",\"maximum\":%lld", (long long)f->max);
}

static void put_integer(buf *out, const field *f)
{
    buf_addz(out, "\"type\":\"integer\",\"format\":\"int64\"");
    put_range(out, f);
}

static void put_number(buf *out, const field *f)
{
    buf_addz(out, "\"type\":\"number\"");
    put_range(out, f);
}

static void put_text(buf *out, const field *f)
{
    buf_addz(out, "\"type\":\"string\"");
    if (f->flags & FIELD_FILLED)
        buf_addz(out, ",\"minLength\":1");
    if (f->most > 0)
        buf_addf(out, ",\"maxLength\":%u", f->most);
    if (f->rule && f->rule->pattern) {
        buf_addz(out, ",\"pattern\":");
        buf_add_json(out, str_of(f->rule->pattern));
    }
}

/* ---- lists and maps ---- */

/* A list whose elements have a name of their own may have each name once. */
static void put_list(buf *out, const field *f, bool open)
{
    buf_addz(out, "\"type\":\"array\"");
    if (f->most > 0)
        buf_addf(out, ",\"maxItems\":%u", f->most);
    if (f->list_key)
        buf_addf(out, ",\"x-kubernetes-list-type\":\"map\",\"x-kubernetes-list-map-keys\":[\"%s\"]",
                 f->list_key);
    buf_addz(out, ",\"items\":{");
    if (f->type == FIELD_OBJECT_LIST)
        put_shape(out, f->shape, open);
    else if (f->type == FIELD_ENUM_SET)
        put_words(out, f->words);
    else
        buf_addz(out, "\"type\":\"string\"");
    buf_addc(out, '}');
}

static void put_map(buf *out, const field *f, bool open)
{
    buf_addz(out, "\"type\":\"object\"");
    if (f->most > 0)
        buf_addf(out, ",\"maxProperties\":%u", f->most);
    buf_addz(out, ",\"additionalProperties\":{");
    if (f->type == FIELD_OBJECT_MAP)
        put_shape(out, f->shape, open);
    else
        buf_addz(out, "\"type\":\"string\"");
    buf_addc(out, '}');
}

/* ---- fields ---- */

static const char anything[] = "\"x-kubernetes-preserve-unknown-fields\":true";

static bool names_type(const field *f)
{
    return f->type == FIELD_HEADER &&
           (str_eq(f->name, STR("apiVersion")) || str_eq(f->name, STR("kind")));
}

/* apiVersion and kind, or a field that only others look at. */
static void put_header(buf *out, const field *f, bool open)
{
    buf_addz(out, open && !names_type(f) ? anything : "\"type\":\"string\"");
}

static void put_type(buf *out, const field *f, bool open)
{
    switch (f->type) {
    case FIELD_BOOL:
    case FIELD_OPT_BOOL: buf_addz(out, "\"type\":\"boolean\""); break;
    case FIELD_INT:
    case FIELD_OPT_INT: put_integer(out, f); break;
    case FIELD_DECIMAL: put_number(out, f); break;
    case FIELD_TEXT:
    case FIELD_EXPRESSION: put_text(out, f); break;
    case FIELD_ENUM: put_words(out, f->words); break;
    case FIELD_DURATION:
        buf_addz(out, "\"type\":\"string\",\"maxLength\":64,\"pattern\":\"" DURATION_PATTERN "\"");
        break;
    case FIELD_TIME: buf_addz(out, "\"type\":\"string\",\"format\":\"date-time\""); break;
    case FIELD_QUANTITY:
        buf_addz(out, "\"anyOf\":[{\"type\":\"integer\"},{\"type\":\"string\"}],\"maxLength\":64,"
                      "\"pattern\":\"" QUANTITY_PATTERN "\",\"x-kubernetes-int-or-string\":true");
        break;
    case FIELD_INT_OR_PERCENT: buf_addz(out, "\"x-kubernetes-int-or-string\":true"); break;
    case FIELD_SELECTOR: buf_addz(out, selector_schema); break;
    case FIELD_TEXT_LIST:
    case FIELD_ENUM_SET:
    case FIELD_OBJECT_LIST: put_list(out, f, open); break;
    case FIELD_TEXT_MAP:
    case FIELD_LABELS:
    case FIELD_OBJECT_MAP: put_map(out, f, open); break;
    case FIELD_RAW:
        if (f->as)
            put_type(out, f->as, open);
        else
            buf_addz(out, anything);
        break;
    case FIELD_STRUCT:
    case FIELD_OBJECT: put_shape(out, f->shape, open); break;
    case FIELD_HEADER: put_header(out, f, open); break;
    case FIELD_INLINE: break;
    }
}

/* The default as JSON. A label selector has none: absent and empty mean different things to those
 * who look at the object. */
static void put_default(buf *out, const field *f)
{
    if (!f->otherwise || f->type == FIELD_SELECTOR)
        return;
    buf_addz(out, ",\"default\":");
    if (f->type == FIELD_BOOL || f->type == FIELD_INT || f->type == FIELD_DECIMAL)
        buf_addz(out, f->otherwise);
    else
        buf_add_json(out, str_of(f->otherwise));
}

static void put_field(buf *out, const field *f, bool open)
{
    buf_addc(out, '{');
    if (f->doc) {
        buf_addz(out, "\"description\":");
        buf_add_json(out, str_of(f->doc));
        buf_addc(out, ',');
    }
    if (f->schema)
        buf_addz(out, f->schema);
    else
        put_type(out, f, open);
    if (!open)
        put_default(out, f);
    else if (!names_type(f))
        buf_addz(out, ",\"nullable\":true");
    buf_addc(out, '}');
}

static void put_fields(buf *out, const shape *s, bool *first, bool open)
{
    for (size_t i = 0; i < s->field_count; i++) {
        const field *f = &s->fields[i];
        if (f->type == FIELD_INLINE) {
            put_fields(out, f->shape, first, open);
            continue;
        }
        buf_addz(out, *first ? "" : ",");
        *first = false;
        buf_add_json(out, f->name);
        buf_addc(out, ':');
        if (f->shape == &metadata_shape) /* the server checks it itself */
            buf_addz(out, "{\"type\":\"object\"}");
        else
            put_field(out, f, open);
    }
}

static void put_required(buf *out, const shape *s)
{
    size_t count = 0;
    for (size_t i = 0; i < s->field_count; i++) {
        const field *f = &s->fields[i];
        if (!(f->flags & FIELD_REQUIRED))
            continue;
        buf_addz(out, count++ == 0 ? ",\"required\":[" : ",");
        buf_add_json(out, f->name);
    }
    buf_addz(out, count > 0 ? "]" : "");
}

static void put_rules(buf *out, const shape *s)
{
    for (size_t i = 0; i < s->rule_count; i++) {
        buf_addz(out, i == 0 ? ",\"x-kubernetes-validations\":[{\"rule\":" : ",{\"rule\":");
        buf_add_json(out, str_of(s->rules[i].cel));
        buf_addz(out, ",\"message\":");
        buf_add_json(out, str_of(s->rules[i].message));
        buf_addc(out, '}');
    }
    buf_addz(out, s->rule_count > 0 ? "]" : "");
}

/* Without the braces around it. open: somebody else's kind, whose other fields are kept, whose
 * defaults are never written into objects, and whose writers say null for "not given". */
static void put_shape(buf *out, const shape *s, bool open)
{
    if (s->whole) {
        put_type(out, s->whole, open);
        return;
    }
    bool first = true;
    buf_addz(out, "\"type\":\"object\",");
    buf_addz(out, s->atomic ? "\"x-kubernetes-map-type\":\"atomic\"," : "");
    buf_addz(out, "\"properties\":{");
    put_fields(out, s, &first, open);
    buf_addc(out, '}');
    put_required(out, s);
    put_rules(out, s);
    if (open) {
        buf_addc(out, ',');
        buf_addz(out, anything);
    }
}

/* ---- the definition ---- */

static void put_columns(buf *out, const crd_column *columns)
{
    for (size_t i = 0; columns[i].name; i++) {
        buf_addf(out, "%s{\"name\":\"%s\",\"type\":\"%s\",\"jsonPath\":",
                 i == 0 ? "\"additionalPrinterColumns\":[" : ",", columns[i].name, columns[i].type);
        buf_add_json(out, str_of(columns[i].path));
        buf_addc(out, '}');
    }
    buf_addz(out, columns[0].name ? "]," : "");
}

void crd_put(buf *out, object_kind kind)
{
    const crd *c = crd_of(kind);
    str api = str_of(object_kind_api(kind));
    str group = str_cut(&api, '/');
    const char *word = object_kind_text(kind);
    buf_addf(
        out,
        "{\"apiVersion\":\"apiextensions.k8s.io/v1\",\"kind\":\"CustomResourceDefinition\","
        "\"metadata\":{\"name\":\"%s\"},\"spec\":{\"group\":\"%.*s\",\"names\":{\"kind\":\"%s\","
        "\"listKind\":\"%sList\",\"plural\":\"%s\",\"singular\":\"%s\"},\"scope\":\"%s\","
        "\"versions\":[{\"name\":\"%.*s\",\"served\":true,\"storage\":true,",
        c->name, STR_ARG(group), word, word, c->plural, c->singular,
        c->open ? "Namespaced" : "Cluster", STR_ARG(api));
    put_columns(out, c->columns);
    if (c->status)
        buf_addz(out, "\"subresources\":{\"status\":{}},");
    buf_addz(out, "\"schema\":{\"openAPIV3Schema\":{");
    put_shape(out, object_kind_shape(kind), c->open);
    buf_addz(out, "}}}]}}");
}

/* Fleet's Content holds bytes under a name that is their hash; nothing reads it as a document. */
void crd_content_put(buf *out)
{
    buf_addz(
        out,
        "{\"apiVersion\":\"apiextensions.k8s.io/v1\",\"kind\":\"CustomResourceDefinition\","
        "\"metadata\":{\"name\":\"contents.fleet.cattle.io\"},\"spec\":{\"group\":"
        "\"fleet.cattle.io\",\"names\":{\"kind\":\"Content\",\"listKind\":\"ContentList\","
        "\"plural\":\"contents\",\"singular\":\"content\"},\"scope\":\"Cluster\",\"versions\":[{"
        "\"name\":\"v1alpha1\",\"served\":true,\"storage\":true,\"subresources\":{\"status\":{}},"
        "\"schema\":{\"openAPIV3Schema\":{\"type\":\"object\",\"properties\":{\"apiVersion\":{"
        "\"type\":\"string\"},\"kind\":{\"type\":\"string\"},\"metadata\":{\"type\":\"object\"},"
        "\"content\":{\"type\":\"string\",\"format\":\"byte\",\"nullable\":true},\"sha256sum\":{"
        "\"type\":\"string\",\"nullable\":true},\"status\":{\"type\":\"object\",\"nullable\":true,"
        "\"properties\":{\"referenceCount\":{\"type\":\"integer\"}}}}}}}]}}");
}
