/* SPDX-License-Identifier: Apache-2.0 */
#include "model/fleet_forms.h"

/* Fields of no struct: nothing is kept of them. */
#define L_TEXT(json) {BASE(json, TEXT)}
#define L_TEXTS(json) {BASE(json, TEXT_LIST)}
#define L_TEXT_MAP(json) {BASE(json, TEXT_MAP)}
#define L_BOOL(json) {BASE(json, BOOL)}
#define L_INT(json) {BASE(json, INT)}
#define L_SELECTOR(json) {BASE(json, SELECTOR)}
#define L_OBJECT(json, of) {BASE(json, STRUCT), .shape = (of)}
#define L_OBJECTS(json, of) {BASE(json, OBJECT_LIST), .shape = (of)}
#define FORM_OF(table)                                                                             \
    .fields = (table), .field_count = sizeof(table) / sizeof((table)[0]), .open = SHAPE_VIEW

static const shape any_object = {.open = SHAPE_VIEW};

/* ---- helm ---- */

bool is_release_name(str text)
{
    if (text.len == 0 || text.len > LIMIT_RELEASE_NAME_BYTES)
        return false;
    for (str rest = text; rest.ptr;) {
        str part = str_cut(&rest, '.');
        if (part.len == 0 || part.ptr[0] == '-' || part.ptr[part.len - 1] == '-')
            return false;
        for (size_t i = 0; i < part.len; i++) {
            char c = part.ptr[i];
            if ((c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-')
                return false;
        }
    }
    return true;
}

static bool release_name_valid(str text, err *error)
{
    return is_release_name(text) || err_set(error, "Helm takes no such name");
}

/* As Fleet's own definitions have it, but that an empty one is none. */
static const text_rule rule_release_name = {
    .pattern = "^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)?$",
    .allowed = RELEASE_NAME_ALLOWED,
    .valid = release_name_valid,
};

static const field reference_fields[] = {L_TEXT("name"), L_TEXT("namespace"), L_TEXT("key")};
static const shape reference = {FORM_OF(reference_fields)};

static const field values_from_fields[] = {L_OBJECT("configMapKeyRef", &reference),
                                           L_OBJECT("secretKeyRef", &reference)};
static const shape values_from = {FORM_OF(values_from_fields)};

static const field helm_fields[] = {
    L_TEXTS("valuesFiles"),
    L_TEXT("chart"),
    L_TEXT("repo"),
    {BASE("releaseName", TEXT), .most = LIMIT_RELEASE_NAME_BYTES, .rule = &rule_release_name},
    L_TEXT("version"),
    L_INT("timeoutSeconds"),
    L_OBJECT("values", &any_object),
    L_TEXT_MAP("templateValues"),
    L_OBJECTS("valuesFrom", &values_from),
    L_BOOL("force"),
    L_BOOL("takeOwnership"),
    L_INT("maxHistory"),
    L_BOOL("waitForJobs"),
    L_BOOL("atomic"),
    L_BOOL("disablePreProcess"),
    L_BOOL("disableDNS"),
    L_BOOL("skipSchemaValidation"),
    L_BOOL("disableDependencyUpdate"),
};
static const shape helm = {FORM_OF(helm_fields)};

/* ---- the rest of the options ---- */

static const field yaml_fields[] = {L_TEXTS("overlays")};
static const shape yaml = {FORM_OF(yaml_fields)};
static const field kustomize_fields[] = {L_TEXT("dir")};
static const shape kustomize = {FORM_OF(kustomize_fields)};
static const field ignore_fields[] = {L_OBJECTS("conditions", &any_object)};
static const shape ignore = {FORM_OF(ignore_fields)};
static const field downstream_fields[] = {L_TEXT("kind"), L_TEXT("name")};
static const shape downstream = {FORM_OF(downstream_fields)};
static const field patch_fields[] = {L_TEXT("apiVersion"), L_TEXT("kind"), L_TEXT("namespace"),
                                     L_TEXT("name")};
static const shape patch = {FORM_OF(patch_fields)};
static const field diff_fields[] = {L_OBJECTS("comparePatches", &patch)};
static const shape diff = {FORM_OF(diff_fields)};
static const field drift_fields[] = {L_BOOL("enabled"), L_BOOL("force"), L_BOOL("keepFailHistory")};
static const shape drift = {FORM_OF(drift_fields)};

const field form_yaml = L_OBJECT("", &yaml);
const field form_kustomize = L_OBJECT("", &kustomize);
const field form_default_namespace = L_TEXT("");
const field form_namespace_ = L_TEXT("");
const field form_helm = L_OBJECT("", &helm);
const field form_service_account = L_TEXT("");
const field form_create_namespace = L_BOOL("");
const field form_force_sync_generation = L_INT("");
const field form_keep_resources = L_BOOL("");
const field form_delete_namespace = L_BOOL("");
const field form_ignore = L_OBJECT("", &ignore);
const field form_namespace_labels = L_TEXT_MAP("");
const field form_namespace_annotations = L_TEXT_MAP("");
const field form_delete_crd_resources = L_BOOL("");
const field form_downstream_resources = L_OBJECTS("", &downstream);
const field form_overwrites = {BASE("", RAW)};
const field form_allowed_target_namespace_selector = L_SELECTOR("");
const field form_diff = L_OBJECT("", &diff);
const field form_correct_drift = L_OBJECT("", &drift);

/* ---- beside them ---- */

static const field dependency_fields[] = {L_TEXT("name"), L_SELECTOR("selector"),
                                          L_TEXTS("acceptedStates")};
static const shape dependency = {FORM_OF(dependency_fields)};
static const field resource_fields[] = {L_TEXT("name"), L_TEXT("content"), L_TEXT("encoding")};
static const shape resource = {FORM_OF(resource_fields)};

const field form_depends_on = L_OBJECTS("", &dependency);
const field form_resources = L_OBJECTS("", &resource);
const field form_helm_op_options = L_OBJECT("", &any_object);
