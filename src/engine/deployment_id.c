/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/deployment_id.h"

#include "base/vec.h"
#include "engine/fleet_names.h"
#include "engine/go_json.h"
#include "model/document.h"

#define MANIFEST_ID_BYTES 63u /* a Kubernetes name's length */

/* ---- resources ---- */

static void resource_json(buf *out, yyjson_val *resource)
{
    static const str fields[] = {STR("name"), STR("content"), STR("encoding")};
    bool any = false;
    buf_addc(out, '{');
    for (size_t f = 0; f < sizeof fields / sizeof fields[0]; f++) {
        str text = go_str(go_member(resource, fields[f]));
        if (text.len == 0)
            continue;
        if (any)
            buf_addc(out, ',');
        any = true;
        go_text(out, fields[f]);
        buf_addc(out, ':');
        go_text(out, text);
    }
    buf_addc(out, '}');
}

void manifest_json(buf *out, raw_json resources)
{
    yyjson_val *list = (yyjson_val *)(uintptr_t)resources;
    buf_addc(out, '{');
    if (list && yyjson_arr_size(list) > 0) {
        size_t i, max;
        yyjson_val *resource;
        buf_addz(out, "\"resources\":[");
        yyjson_arr_foreach(list, i, max, resource)
        {
            if (i > 0)
                buf_addc(out, ',');
            resource_json(out, resource);
        }
        buf_addc(out, ']');
    }
    buf_addz(out, "}\n");
}

str resources_id(arena *a, raw_json resources)
{
    buf text = BUF(LIMIT_TEXT_BYTES);
    char hex[SHA256_HEX_BYTES];
    manifest_json(&text, resources);
    bool good = !text.failed && sha256_hex(buf_str(&text), hex);
    buf_done(&text);
    return good ? arena_printf(a, "s-%.*s", (int)(MANIFEST_ID_BYTES - 2), hex) : (str){NULL, 0};
}

str manifest_id(arena *a, const bundle_spec *spec)
{
    if (spec->contents_id.len > 0)
        return spec->contents_id;
    if (spec->helm_op_options)
        return STR_EMPTY;
    return resources_id(a, spec->resources);
}

/* ---- merging options ---- */

/* How a field of an override meets the one below it. */
#define MERGES(X)                                                                                  \
    X(KEEP, "the override is not looked at")                                                       \
    X(POINTER, "likewise; a pointer in Go: written if it is given, zero or not")                   \
    X(TEXT, "the override if it is not empty")                                                     \
    X(OR, "true if either is")                                                                     \
    X(APPEND, "both lists, one after the other")                                                   \
    X(IDENTITY, "both lists, an equal identity replaced")                                          \
    X(ENTRIES, "likewise not looked at; a list of structs of known order")                         \
    X(DEEP, "objects merged key by key, however deep")                                             \
    X(TIMEOUT, "the override; below 0 it resets")

typedef enum merge_rule {
#define X(rule, text) MERGE_##rule,
    MERGES(X)
#undef X
} merge_rule;

typedef struct merged_field {
    str name;
    merge_rule rule;
    bool is_map; /* a Go map: left out when empty */
} merged_field;

/* In the order in which Fleet writes them. */
static const merged_field helm_fields[] = {
    {STR("valuesFiles"), MERGE_KEEP, false},
    {STR("chart"), MERGE_TEXT, false},
    {STR("repo"), MERGE_TEXT, false},
    {STR("releaseName"), MERGE_TEXT, false},
    {STR("version"), MERGE_TEXT, false},
    {STR("timeoutSeconds"), MERGE_TIMEOUT, false},
    {STR("values"), MERGE_DEEP, false},
    {STR("templateValues"), MERGE_DEEP, true},
    {STR("valuesFrom"), MERGE_IDENTITY, false},
    {STR("force"), MERGE_OR, false},
    {STR("takeOwnership"), MERGE_OR, false},
    {STR("maxHistory"), MERGE_KEEP, false},
    {STR("waitForJobs"), MERGE_OR, false},
    {STR("atomic"), MERGE_OR, false},
    {STR("disablePreProcess"), MERGE_OR, false},
    {STR("disableDNS"), MERGE_OR, false},
    {STR("skipSchemaValidation"), MERGE_KEEP, false},
    {STR("disableDependencyUpdate"), MERGE_KEEP, false},
};

static const merged_field yaml_fields[] = {{STR("overlays"), MERGE_APPEND, false}};
static const merged_field kustomize_fields[] = {{STR("dir"), MERGE_TEXT, false}};
static const merged_field selector_fields[] = {{STR("matchLabels"), MERGE_KEEP, true},
                                               {STR("matchExpressions"), MERGE_ENTRIES, false}};

/* One value and those laid over it, lowest first; some may be NULL. */
typedef struct layers {
    yyjson_val **at;
    size_t len;
} layers;

typedef struct option_writer {
    arena *arena;
    const template_cluster *cluster; /* NULL: values stay as they are */
    err *error;
    buf out;
    bool refused; /* with an error */
    bool any;     /* something stands in the present object */
} option_writer;

static void write_key(option_writer *w, str key)
{
    if (w->any)
        buf_addc(&w->out, ',');
    w->any = true;
    go_text(&w->out, key);
    buf_addc(&w->out, ':');
}

static layers layers_below(option_writer *w, layers above, str key)
{
    layers below = {ARENA_ARRAY(w->arena, above.len, yyjson_val *), above.len};
    if (!below.at) {
        w->out.failed = true;
        return (layers){NULL, 0};
    }
    for (size_t i = 0; i < above.len; i++)
        below.at[i] = go_member(above.at[i], key);
    return below;
}

/* The topmost value an override may have replaced the lowest with. */
static yyjson_val *choose(layers l, merge_rule rule)
{
    yyjson_val *chosen = l.at[0];
    bool replaces = rule != MERGE_KEEP && rule != MERGE_POINTER;
    for (size_t i = 1; i < l.len && replaces; i++) {
        if (go_is_zero(l.at[i]))
            continue;
        bool resets = rule == MERGE_TIMEOUT && yyjson_is_sint(l.at[i]);
        chosen = resets && yyjson_get_sint(l.at[i]) < 0 ? NULL : l.at[i];
    }
    return chosen;
}

/* Where a Go map would be nil, nothing is given. */
static void drop_nulls(layers l)
{
    for (size_t i = 0; i < l.len; i++)
        if (yyjson_is_null(l.at[i]))
            l.at[i] = NULL;
}

/* What no override replaced in whole: all above the topmost that is no object. The topmost layer
 * is there. */
static layers not_replaced(layers l)
{
    size_t from = l.len - 1;
    while (yyjson_is_obj(l.at[l.len - 1]) && from > 0 &&
           (!l.at[from - 1] || yyjson_is_obj(l.at[from - 1])))
        from--;
    return (layers){l.at + from, l.len - from};
}

/* Go's merge, one override after the other: objects key by key, anything else by the topmost that
 * is there. */
static void write_deep(option_writer *w, layers l)
{
    while (l.len > 0 && !l.at[l.len - 1])
        l.len--;
    if (l.len == 0) {
        buf_addz(&w->out, "{}");
        return;
    }
    l = not_replaced(l);
    if (l.len == 1) {
        go_value(&w->out, l.at[0]);
        return;
    }
    go_pairs keys = {0};
    for (size_t i = 0; i < l.len; i++)
        w->out.failed |= !go_pairs_add(&keys, l.at[i]);
    go_pairs_sort(&keys);
    buf_addc(&w->out, '{');
    for (size_t k = 0; k < keys.len; k++) {
        if (k > 0 && str_eq(keys.at[k].key, keys.at[k - 1].key))
            continue;
        if (k > 0)
            buf_addc(&w->out, ',');
        go_text(&w->out, keys.at[k].key);
        buf_addc(&w->out, ':');
        layers below = layers_below(w, l, keys.at[k].key);
        if (below.at)
            write_deep(w, below);
    }
    buf_addc(&w->out, '}');
    vec_done(&keys);
}

/* An entry of valuesFrom, downstreamResources or matchExpressions: Go's struct order, empty members
 * omitted. */
static void write_entry(buf *out, yyjson_val *entry)
{
    static const str fields[] = {
        STR("configMapKeyRef"), STR("secretKeyRef"), STR("kind"),     STR("name"),
        STR("namespace"),       STR("key"),          STR("operator"), STR("values")};
    if (!yyjson_is_obj(entry)) {
        go_value(out, entry);
        return;
    }
    bool any = false;
    buf_addc(out, '{');
    for (size_t f = 0; f < sizeof fields / sizeof fields[0]; f++) {
        yyjson_val *value = go_member(entry, fields[f]);
        if (go_is_zero(value))
            continue;
        if (any)
            buf_addc(out, ',');
        any = true;
        go_text(out, fields[f]);
        buf_addc(out, ':');
        write_entry(out, value);
    }
    buf_addc(out, '}');
}

static bool same_entry(option_writer *w, yyjson_val *a, yyjson_val *b)
{
    buf left = BUF(LIMIT_TEXT_BYTES), right = BUF(LIMIT_TEXT_BYTES);
    write_entry(&left, a);
    write_entry(&right, b);
    bool same = str_eq(buf_str(&left), buf_str(&right));
    w->out.failed |= left.failed || right.failed;
    buf_done(&left);
    buf_done(&right);
    return same;
}

/* All members of these entries are their identity: an equal one is not added a second time. */
static void write_lists(option_writer *w, layers l, bool identity)
{
    VEC(yyjson_val *) entries = {0};
    for (size_t i = 0; i < l.len; i++) {
        size_t at, max;
        yyjson_val *entry;
        yyjson_arr_foreach(l.at[i], at, max, entry)
        {
            bool known = false;
            for (size_t k = 0; identity && !known && k < entries.len; k++)
                known = same_entry(w, entries.at[k], entry);
            if (!known && !vec_push(&entries, entry))
                w->out.failed = true;
        }
    }
    buf_addc(&w->out, '[');
    for (size_t k = 0; k < entries.len; k++) {
        if (k > 0)
            buf_addc(&w->out, ',');
        if (identity)
            write_entry(&w->out, entries.at[k]);
        else
            go_value(&w->out, entries.at[k]);
    }
    buf_addc(&w->out, ']');
    vec_done(&entries);
}

static void write_entries(buf *out, yyjson_val *list)
{
    size_t i, max;
    yyjson_val *entry;
    buf_addc(out, '[');
    yyjson_arr_foreach(list, i, max, entry)
    {
        buf_addz(out, i > 0 ? "," : "");
        write_entry(out, entry);
    }
    buf_addc(out, ']');
}

static bool all_zero(layers l)
{
    for (size_t i = 0; i < l.len; i++)
        if (!go_is_zero(l.at[i]))
            return false;
    return true;
}

static bool all_empty_maps(layers l)
{
    for (size_t i = 0; i < l.len; i++)
        if (l.at[i] && yyjson_obj_size(l.at[i]) > 0)
            return false;
    return true;
}

static void write_merged(option_writer *w, layers l, const merged_field *field)
{
    switch (field->rule) {
    case MERGE_KEEP:
    case MERGE_POINTER:
    case MERGE_TEXT:
    case MERGE_TIMEOUT: {
        yyjson_val *chosen = choose(l, field->rule);
        bool given = chosen && !yyjson_is_null(chosen) &&
                     (field->rule == MERGE_POINTER || !go_is_zero(chosen));
        if (!given ||
            (field->is_map && yyjson_is_obj(chosen) && yyjson_obj_size(chosen) == 0))
            return;
        write_key(w, field->name);
        go_value(&w->out, chosen);
        return;
    }
    case MERGE_OR:
        if (all_zero(l))
            return;
        write_key(w, field->name);
        buf_addz(&w->out, "true");
        return;
    case MERGE_APPEND:
    case MERGE_IDENTITY:
        if (all_zero(l))
            return;
        write_key(w, field->name);
        write_lists(w, l, field->rule == MERGE_IDENTITY);
        return;
    case MERGE_ENTRIES:
        if (go_is_zero(l.at[0]))
            return;
        write_key(w, field->name);
        write_entries(&w->out, l.at[0]);
        return;
    case MERGE_DEEP:
        drop_nulls(l);
        if (all_zero(l) || (field->is_map && all_empty_maps(l)))
            return;
        write_key(w, field->name);
        write_deep(w, l);
        return;
    }
}

static void write_struct(option_writer *w, layers l, const merged_field *fields, size_t count)
{
    bool outer = w->any;
    buf_addc(&w->out, '{');
    w->any = false;
    for (size_t f = 0; f < count; f++) {
        layers below = layers_below(w, l, fields[f].name);
        if (below.at)
            write_merged(w, below, &fields[f]);
    }
    buf_addc(&w->out, '}');
    w->any = outer;
}

/* A struct that an override replaces in whole. */
static void write_whole(option_writer *w, layers l, const merged_field *field,
                        const merged_field *fields, size_t count)
{
    yyjson_val *chosen = choose(l, field->rule);
    if (!chosen || yyjson_is_null(chosen))
        return;
    write_key(w, field->name);
    write_struct(w, (layers){&chosen, 1}, fields, count);
}

/* What stands in one merged member of helm, as a tree of its own; NULL with an error. */
static raw_json merged_tree(option_writer *w, layers helm, str name)
{
    layers below = layers_below(w, helm, name);
    option_writer inner = {.arena = w->arena, .error = w->error, .out = BUF(LIMIT_TEXT_BYTES)};
    raw_json made = NULL;
    drop_nulls(below);
    if (below.at && !all_zero(below))
        write_deep(&inner, below);
    else
        buf_addz(&inner.out, "{}");
    if (inner.out.failed || !below.at)
        err_memory(w->error);
    else
        made = json_parse(w->arena, buf_str(&inner.out), w->error);
    buf_done(&inner.out);
    return made;
}

static bool merged_flag(option_writer *w, layers helm, str name)
{
    layers below = layers_below(w, helm, name);
    return below.at && !all_zero(below);
}

/* Fleet gives helm an empty "values" where it processes them. */
static void write_values(option_writer *w, layers helm)
{
    template_source from = {
        .values = merged_tree(w, helm, STR("values")),
        .templates = merged_tree(w, helm, STR("templateValues")),
        .plain = merged_flag(w, helm, STR("disablePreProcess")),
    };
    raw_json values =
        from.values && from.templates ? values_for(w->arena, &from, w->cluster, w->error) : NULL;
    if (!values) {
        w->refused = true;
        return;
    }
    write_key(w, STR("values"));
    go_value(&w->out, values);
}

static void write_helm(option_writer *w, layers l)
{
    bool outer = w->any;
    buf_addc(&w->out, '{');
    w->any = false;
    for (size_t f = 0; f < sizeof helm_fields / sizeof helm_fields[0] && !w->refused; f++) {
        layers below = layers_below(w, l, helm_fields[f].name);
        if (str_eq(helm_fields[f].name, STR("values")))
            write_values(w, l);
        else if (below.at)
            write_merged(w, below, &helm_fields[f]);
    }
    buf_addc(&w->out, '}');
    w->any = outer;
}

typedef enum option_index {
#define X(member, json) OPTION_##member,
    BUNDLE_OPTIONS(X)
#undef X
} option_index;

/* The rule of each option, and the fields of those that are structs of known order. */
typedef struct option_rule {
    merged_field field;
    const merged_field *fields;
    size_t field_count;
} option_rule;

#define FIELDS(table) table, sizeof table / sizeof table[0]
static const option_rule option_rules[] = {
    [OPTION_yaml] = {{STR("yaml"), MERGE_DEEP, false}, FIELDS(yaml_fields)},
    [OPTION_kustomize] = {{STR("kustomize"), MERGE_DEEP, false}, FIELDS(kustomize_fields)},
    [OPTION_default_namespace] = {{STR("defaultNamespace"), MERGE_TEXT, false}, NULL, 0},
    [OPTION_namespace_] = {{STR("namespace"), MERGE_TEXT, false}, NULL, 0},
    [OPTION_helm] = {{STR("helm"), MERGE_DEEP, false}, FIELDS(helm_fields)},
    [OPTION_service_account] = {{STR("serviceAccount"), MERGE_TEXT, false}, NULL, 0},
    [OPTION_create_namespace] = {{STR("createNamespace"), MERGE_POINTER, false}, NULL, 0},
    [OPTION_force_sync_generation] = {{STR("forceSyncGeneration"), MERGE_TEXT, false}, NULL, 0},
    [OPTION_keep_resources] = {{STR("keepResources"), MERGE_OR, false}, NULL, 0},
    [OPTION_delete_namespace] = {{STR("deleteNamespace"), MERGE_KEEP, false}, NULL, 0},
    [OPTION_ignore] = {{STR("ignore"), MERGE_KEEP, false}, NULL, 0},
    [OPTION_namespace_labels] = {{STR("namespaceLabels"), MERGE_KEEP, true}, NULL, 0},
    [OPTION_namespace_annotations] = {{STR("namespaceAnnotations"), MERGE_KEEP, true}, NULL, 0},
    [OPTION_delete_crd_resources] = {{STR("deleteCRDResources"), MERGE_KEEP, false}, NULL, 0},
    [OPTION_downstream_resources] = {{STR("downstreamResources"), MERGE_IDENTITY, false}, NULL, 0},
    [OPTION_overwrites] = {{STR("overwrites"), MERGE_TEXT, false}, NULL, 0},
    [OPTION_allowed_target_namespace_selector] =
        {{STR("allowedTargetNamespaceSelector"), MERGE_TEXT, false}, FIELDS(selector_fields)},
};
#define HASHED_OPTIONS (sizeof option_rules / sizeof option_rules[0])
_Static_assert(HASHED_OPTIONS == OPTION_diff && OPTION_correct_drift == OPTION_diff + 1,
               "the two that are not hashed stand last");

static raw_json option_of(const bundle_options *options, size_t index)
{
    const raw_json all[] = {
#define X(member, json) [OPTION_##member] = options->member,
        BUNDLE_OPTIONS(X)
#undef X
    };
    return all[index];
}

static bool any_given(layers l)
{
    for (size_t i = 0; i < l.len; i++)
        if (l.at[i] && !yyjson_is_null(l.at[i]))
            return true;
    return false;
}

/* One option of every layer. False without memory. */
static bool option_layer(arena *a, const option_layers *from, size_t option, layers *ret)
{
    *ret = (layers){ARENA_ARRAY(a, from->over_count + 1, yyjson_val *), from->over_count + 1};
    if (!ret->at)
        return false;
    ret->at[0] = (yyjson_val *)(uintptr_t)option_of(from->base, option);
    for (size_t i = 0; i < from->over_count; i++)
        ret->at[i + 1] = (yyjson_val *)(uintptr_t)option_of(from->over[i], option);
    return true;
}

static void write_option(option_writer *w, layers l, size_t option)
{
    const option_rule *rule = &option_rules[option];
    bool given = any_given(l), helm = option == OPTION_helm && w->cluster;
    if (!rule->fields) {
        write_merged(w, l, &rule->field);
    } else if (rule->field.rule == MERGE_TEXT) {
        write_whole(w, l, &rule->field, rule->fields, rule->field_count);
    } else if (given || helm) {
        write_key(w, rule->field.name);
        if (given && helm)
            write_helm(w, l);
        else
            write_struct(w, l, rule->fields, rule->field_count);
    }
}

/* Patches of an override replace those for the same object. */
static bool same_object(const yyjson_val *a, const yyjson_val *b)
{
    static const str members[] = {STR("apiVersion"), STR("kind"), STR("namespace"), STR("name")};
    for (size_t i = 0; i < sizeof members / sizeof members[0]; i++)
        if (!str_eq(go_str(go_member(a, members[i])), go_str(go_member(b, members[i]))))
            return false;
    return true;
}

static void write_diff(option_writer *w, layers l)
{
    VEC(yyjson_val *) patches = {0};
    size_t at, max;
    yyjson_val *patch;
    for (size_t i = 0; i < l.len; i++) {
        yyjson_arr_foreach(go_member(l.at[i], STR("comparePatches")), at, max, patch)
        {
            size_t k = 0;
            while (k < patches.len && !same_object(patches.at[k], patch))
                k++;
            if (k < patches.len)
                patches.at[k] = patch;
            else if (!vec_push(&patches, patch))
                w->out.failed = true;
        }
    }
    write_key(w, STR("diff"));
    buf_addz(&w->out, "{");
    for (size_t k = 0; k < patches.len; k++) {
        buf_addz(&w->out, k > 0 ? "," : "\"comparePatches\":[");
        go_value(&w->out, patches.at[k]);
    }
    buf_addz(&w->out, patches.len > 0 ? "]}" : "}");
    vec_done(&patches);
}

static void write_unhashed(option_writer *w, const option_layers *from)
{
    static const merged_field drift = {STR("correctDrift"), MERGE_TEXT, false};
    layers l;
    bool good = option_layer(w->arena, from, OPTION_diff, &l);
    if (good && any_given(l))
        write_diff(w, l);
    good = good && option_layer(w->arena, from, OPTION_correct_drift, &l);
    if (good)
        write_merged(w, l, &drift);
    w->out.failed |= !good;
}

static str options_text(arena *a, const option_layers *from, const template_cluster *seen_by,
                        bool all, err *error)
{
    option_writer w = {.arena = a, .error = error, .out = BUF(LIMIT_TEXT_BYTES)};
    w.cluster = seen_by && labels_usable(seen_by->labels) ? seen_by : NULL;
    buf_addc(&w.out, '{');
    for (size_t o = 0; o < HASHED_OPTIONS && !w.refused; o++) {
        layers l;
        if (option_layer(a, from, o, &l))
            write_option(&w, l, o);
        else
            w.out.failed = true;
    }
    if (all && !w.refused)
        write_unhashed(&w, from);
    buf_addz(&w.out, "}\n");
    str text = {NULL, 0};
    if (!w.refused && !w.out.failed)
        text = arena_str(a, buf_str(&w.out));
    if (!w.refused && !text.ptr)
        err_memory(error);
    buf_done(&w.out);
    return text;
}

str options_json(arena *a, const option_layers *from, const template_cluster *seen_by, err *error)
{
    return options_text(a, from, seen_by, false, error);
}

str options_all_json(arena *a, const option_layers *from, const template_cluster *seen_by,
                     err *error)
{
    return options_text(a, from, seen_by, true, error);
}

static bool layer_depends(const bundle_options *options)
{
    return values_depend(go_member(options->helm, STR("values")),
                         go_member(options->helm, STR("templateValues")));
}

bool options_depend(const option_layers *l)
{
    for (size_t i = 0; i < l->over_count; i++)
        if (layer_depends(l->over[i]))
            return true;
    return layer_depends(l->base);
}

str deployment_id(arena *a, str manifest, str options)
{
    char hex[SHA256_HEX_BYTES];
    if (!sha256_hex(options, hex))
        return (str){NULL, 0};
    return arena_printf(a, "%.*s:%s", STR_ARG(manifest), hex);
}

bool labels_usable(label_set labels)
{
    for (size_t i = 0; i < labels.len; i++)
        if (cluster_label_usable(labels.at[i].key))
            return true;
    return false;
}
