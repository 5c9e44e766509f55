/* SPDX-License-Identifier: Apache-2.0 */
#include <limits.h>
#include <stdlib.h>

#include "base/base64.h"
#include "base/gzip.h"
#include "base/limits.h"
#include "base/mem.h"
#include "cli/bundle_folder.h"
#include "cli/input.h"
#include "cli/output.h"
#include "cli/show.h"
#include "engine/deployment_id.h"
#include "engine/go_json.h"

#define BUNDLE_PLAIN_BYTES_MAX 1000000u /* from this size on Fleet compresses resources */
#define DEFAULT_NAMESPACE "fleet-default"

typedef struct maker {
    const options *given;
    str path; /* of the folder, as given */
    input in;
    arena *arena;
    bundle_folder folder;
    const bundle_file *yaml; /* fleet.yaml; NULL: the folder has none */
    bundle *bundle;
} maker;

/* Always false. */
static bool report(maker *m, severity s, const problem *where, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

static bool report(maker *m, severity s, const problem *where, const char *format, ...)
{
    problem p = *where;
    p.severity = s;
    va_list args;
    va_start(args, format);
    problems_vaddf(m->in.problems, &p, format, args);
    va_end(args);
    return false;
}

static bool no_memory(maker *m)
{
    return problems_memory(m->in.problems);
}

/* ---- fleet.yaml ---- */

/* The one document of a text in the shape of fleet.yaml; an empty text says nothing. */
static const fleet_yaml *read_yaml(maker *m, str where, str bytes)
{
    size_t before = documents_count(m->in.documents);
    if (!documents_read(m->in.documents, where, bytes, m->in.problems))
        return NULL;
    size_t count = documents_count(m->in.documents) - before;
    if (count == 0 && !documents_read(m->in.documents, where, STR("{}\n"), m->in.problems))
        return NULL;
    if (count > 1) {
        report(m, SEVERITY_ERROR, &(problem){.file = where}, "found %zu documents, allowed 1",
               count);
        return NULL;
    }
    object read;
    const document *d = documents_at(m->in.documents, before);
    return object_read_fleet_yaml(m->in.objects, d, m->in.problems, &read) ? read.fleet_yaml : NULL;
}

/* The folder's own name, as far as it can be one of a Bundle. */
static str folder_name(maker *m)
{
    char full[PATH_MAX];
    const char *path = arena_str(m->arena, m->path).ptr;
    if (!path || !realpath(path, full))
        return STR_EMPTY;
    return fleet_folder_name(m->arena, str_of(full));
}

static bool read_targets(maker *m, bundle_target_list *ret, bool *ret_given)
{
    str path = options_text(m->given, "targets", "");
    *ret_given = path.len > 0;
    if (!*ret_given)
        return true;
    size_t before = files_count(m->in.files);
    if (!files_add(m->in.files, path) || files_count(m->in.files) != before + 1)
        return false;
    const file *f = files_at(m->in.files, before);
    const fleet_yaml *read = read_yaml(m, f->name, f->bytes);
    if (read)
        *ret = read->targets;
    return read != NULL;
}

/* Labels of the command line, where fleet.yaml does not say otherwise. */
static bool add_labels(maker *m)
{
    metadata *meta = &m->bundle->metadata;
    VEC(label) all = {0};
    bool good = true;
    for (size_t i = 0; i < meta->labels.len; i++)
        good = good && vec_push(&all, meta->labels.at[i]);
    size_t at = 0;
    for (str text; good && options_next(m->given, "label", &at, &text);) {
        str value = text, key = str_cut(&value, '=');
        bool known = false;
        for (size_t i = 0; i < all.len; i++)
            known |= str_eq(all.at[i].key, key);
        label one = {key, value.ptr ? value : STR_EMPTY};
        good = known || vec_push(&all, one);
    }
    label *kept = good && all.len > 0 ? ARENA_ARRAY(m->arena, all.len, label) : NULL;
    err never; /* no key stands twice */
    if (kept) {
        memcpy(kept, all.at, all.len * sizeof *kept);
        label_set_sort(kept, all.len, &meta->labels, &never);
    }
    good = good && (kept || all.len == 0);
    vec_done(&all);
    return good || no_memory(m);
}

static bool assemble(maker *m)
{
    bundle_target_list targets = {0};
    bool given = false;
    m->yaml = bundle_folder_find(&m->folder, STR("fleet.yaml"));
    if (!m->yaml)
        m->yaml = bundle_folder_find(&m->folder, STR("fleet.yml"));
    const fleet_yaml *read =
        read_yaml(m, m->yaml ? m->yaml->path : m->path, m->yaml ? m->yaml->bytes : STR_EMPTY);
    if (!read || !read_targets(m, &targets, &given))
        return false;
    str name = options_text(m->given, "name", "");
    if (name.len == 0)
        name = folder_name(m);
    m->bundle = fleet_yaml_bundle_for(m->arena, read, name, given ? &targets : NULL);
    if (!m->bundle || !name.ptr)
        return no_memory(m);
    m->bundle->metadata.namespace_ = options_text(m->given, "namespace", DEFAULT_NAMESPACE);
    m->bundle->spec.paused |= options_given(m->given, "paused");
    return add_labels(m);
}

/* ---- values files ---- */

static str file_name(str given)
{
    while (str_starts(given, STR("./")))
        given = str_part(given, 2, SIZE_MAX);
    return given;
}

/* {"helm":{"values":...}} of both, the second over the first; NULL with an error. */
static raw_json merged_values(maker *m, raw_json below, raw_json above, err *error)
{
    bundle_options base = {.helm = below}, top = {.helm = above};
    const bundle_options *over = &top;
    option_layers l = {&base, &over, 1};
    str text = options_json(m->arena, &l, NULL, error);
    return text.ptr ? go_member(json_parse(m->arena, text, error), STR("helm")) : NULL;
}

/* A values file as {"values":...}. */
static raw_json values_of(maker *m, const bundle_file *f)
{
    size_t before = documents_count(m->in.documents);
    if (!documents_read_as(m->in.documents, f->path, f->bytes, FORMAT_YAML, m->in.problems))
        return NULL;
    buf out = BUF(LIMIT_DOCUMENT_BYTES);
    err error = {0};
    buf_addz(&out, "{\"values\":");
    if (documents_count(m->in.documents) > before)
        go_value(&out, documents_at(m->in.documents, before)->root);
    else
        buf_addz(&out, "{}");
    buf_addc(&out, '}');
    raw_json made = out.failed ? NULL : json_parse(m->arena, buf_str(&out), &error);
    if (!made)
        report(m, SEVERITY_ERROR, &(problem){.file = f->path}, "found too many values: %s",
               error.text);
    buf_done(&out);
    return made;
}

/* helm with other values. */
static raw_json with_values(maker *m, raw_json helm, raw_json values)
{
    go_pairs members = {0};
    buf out = BUF(LIMIT_DOCUMENT_BYTES);
    err error = {0};
    bool good = go_pairs_add(&members, helm);
    buf_addz(&out, "{\"values\":");
    go_value(&out, go_member(values, STR("values")));
    for (size_t i = 0; i < members.len; i++) {
        if (str_eq(members.at[i].key, STR("values")))
            continue;
        buf_addc(&out, ',');
        go_text(&out, members.at[i].key);
        buf_addc(&out, ':');
        go_value(&out, members.at[i].value);
    }
    buf_addc(&out, '}');
    raw_json made = good && !out.failed ? json_parse(m->arena, buf_str(&out), &error) : NULL;
    buf_done(&out);
    vec_done(&members);
    return made;
}

/* Puts the content of helm.valuesFiles over helm.values, as Fleet does before a Bundle is made. */
static bool read_values(maker *m, bundle_options *of, str where)
{
    yyjson_val *names = go_member(of->helm, STR("valuesFiles")), *one;
    size_t i, max;
    raw_json merged = of->helm;
    bool good = true;
    yyjson_arr_foreach(names, i, max, one)
    {
        str name = file_name(go_str(one));
        const bundle_file *f = bundle_folder_find(&m->folder, name);
        str path = arena_printf(m->arena, "%.*shelm.valuesFiles[%zu]", STR_ARG(where), i);
        if (!f) {
            good = report(m, SEVERITY_ERROR, &(problem){.file = m->yaml->path, .path = path},
                          "found \"%s\", allowed a file of this folder", str_shown(name).text);
            continue;
        }
        raw_json values = values_of(m, f);
        err error = {0};
        merged = values && merged ? merged_values(m, merged, values, &error) : NULL;
        good = good && merged;
    }
    if (!good || max == 0)
        return good;
    of->helm = with_values(m, of->helm, merged);
    return of->helm || no_memory(m);
}

static bool read_all_values(maker *m)
{
    bool good = read_values(m, &m->bundle->spec.options, STR_EMPTY);
    bundle_target_list *targets = &m->bundle->spec.targets;
    for (size_t i = 0; i < targets->len; i++) {
        str where = arena_printf(m->arena, "targets[%.*s].", STR_ARG(targets->at[i].name));
        good &= read_values(m, &targets->at[i].options, where.ptr ? where : STR_EMPTY);
    }
    return good;
}

/* ---- resources ---- */

static bool names_file(raw_json helm, str name)
{
    yyjson_val *one;
    size_t i, max;
    yyjson_arr_foreach(go_member(helm, STR("valuesFiles")), i, max, one)
    {
        if (str_eq(file_name(go_str(one)), name))
            return true;
    }
    return false;
}

/* What only says how the Bundle is made is no part of it. */
static bool is_resource(const maker *m, const bundle_file *f)
{
    const bundle_spec *spec = &m->bundle->spec;
    if (f == m->yaml || names_file(spec->options.helm, f->name))
        return false;
    for (size_t i = 0; i < spec->targets.len; i++)
        if (names_file(spec->targets.at[i].options.helm, f->name))
            return false;
    return true;
}

static void put_resource(buf *out, const bundle_file *f, bool compress)
{
    buf_addz(out, "{\"name\":");
    go_text(out, f->name);
    if (f->bytes.len == 0) {
        buf_addc(out, '}');
        return;
    }
    buf_addz(out, ",\"content\":");
    if (!compress && str_utf8(f->bytes)) {
        go_text(out, f->bytes);
    } else {
        buf small = BUF(LIMIT_TEXT_BYTES);
        out->failed |= !gzip_compress(f->bytes, &small);
        buf_addc(out, '"');
        base64_encode(buf_str(&small), out);
        buf_addz(out, "\",\"encoding\":\"base64+gz\"");
        buf_done(&small);
    }
    buf_addc(out, '}');
}

static void put_resources(const maker *m, buf *out, bool compress)
{
    bool any = false;
    buf_addc(out, '[');
    for (size_t i = 0; i < m->folder.len; i++) {
        if (!is_resource(m, &m->folder.at[i]))
            continue;
        buf_addz(out, any ? "," : "");
        any = true;
        put_resource(out, &m->folder.at[i], compress);
    }
    buf_addc(out, ']');
}

static bool too_big(maker *m, size_t bytes)
{
    return report(m, SEVERITY_ERROR, &(problem){.file = m->path},
                  "found a Bundle of %zu bytes, allowed %u", bytes, LIMIT_DOCUMENT_BYTES);
}

static bool add_resources(maker *m)
{
    buf text = BUF(LIMIT_TEXT_BYTES);
    err error = {0};
    put_resources(m, &text, false);
    if (!text.failed && text.len >= BUNDLE_PLAIN_BYTES_MAX) {
        buf_clear(&text);
        put_resources(m, &text, true);
    }
    bool good = !text.failed || no_memory(m);
    if (good && text.len > LIMIT_DOCUMENT_BYTES)
        good = too_big(m, text.len);
    if (good) {
        m->bundle->spec.resources = json_parse(m->arena, buf_str(&text), &error);
        good = m->bundle->spec.resources ||
               report(m, SEVERITY_ERROR, &(problem){.file = m->path}, "%s", error.text);
    }
    buf_done(&text);
    return good;
}

/* A chart that is not in the folder is not fetched: Fleet's own agent would not find it. */
static void warn_of_chart(maker *m, raw_json helm, str where)
{
    str chart = file_name(go_str(go_member(helm, STR("chart"))));
    str repo = go_str(go_member(helm, STR("repo")));
    bool here = repo.len == 0 && str_eq(chart, STR("."));
    if (chart.len == 0)
        return;
    for (size_t i = 0; i < m->folder.len && repo.len == 0; i++) {
        str name = m->folder.at[i].name;
        here |= str_starts(name, chart) && (name.len == chart.len || name.ptr[chart.len] == '/' ||
                                            chart.ptr[chart.len - 1] == '/');
    }
    str path = arena_printf(m->arena, "%.*shelm.chart", STR_ARG(where));
    if (!here)
        report(m, SEVERITY_WARNING, &(problem){.file = m->yaml->path, .path = path},
               "found a chart that is not in this folder: it is not put into the Bundle");
}

static void warn_of_charts(maker *m)
{
    const bundle_spec *spec = &m->bundle->spec;
    warn_of_chart(m, spec->options.helm, STR_EMPTY);
    for (size_t i = 0; i < spec->targets.len; i++) {
        str where = arena_printf(m->arena, "targets[%.*s].", STR_ARG(spec->targets.at[i].name));
        warn_of_chart(m, spec->targets.at[i].options.helm, where.ptr ? where : STR_EMPTY);
    }
}

/* ---- what comes out ---- */

/* The object as it is applied: its status is nobody's to say. */
static bool put_bundle(maker *m, buf *out)
{
    buf whole = BUF(LIMIT_TEXT_BYTES);
    object o = object_of(KIND_BUNDLE, m->bundle);
    err error;
    size_t i, max;
    yyjson_val *key, *value;
    object_write(&o, &whole);
    size_t bytes = whole.len;
    yyjson_val *read = whole.failed || bytes > LIMIT_DOCUMENT_BYTES
                           ? NULL
                           : json_parse(m->arena, buf_str(&whole), &error);
    buf_addc(out, '{');
    yyjson_obj_foreach(read, i, max, key, value)
    {
        if (str_eq(go_str(key), STR("status")))
            continue;
        buf_addz(out, i > 0 ? "," : "");
        buf_add_json(out, go_str(key));
        buf_addc(out, ':');
        json_write(out, value);
    }
    buf_addc(out, '}');
    buf_done(&whole);
    if (bytes > LIMIT_DOCUMENT_BYTES)
        return too_big(m, bytes);
    return (read && !out->failed) || no_memory(m);
}

/* Reads it again as any document is read: what is printed is good. */
static bool check(maker *m, str text)
{
    return objects_load(m->in.objects, m->in.documents, m->path, text, m->in.problems);
}

static bool print(maker *m)
{
    buf json = BUF(LIMIT_TEXT_BYTES), out = BUF(LIMIT_TEXT_BYTES);
    bool good = put_bundle(m, &json) && check(m, buf_str(&json));
    if (good) {
        const document_set *all = m->in.documents;
        yyjson_val *root = documents_at(all, documents_count(all) - 1)->root;
        if (str_eq(options_text(m->given, "output", "yaml"), STR("json"))) {
            buf_add(&out, buf_str(&json));
            buf_addc(&out, '\n');
        } else {
            yaml_write(&out, root);
        }
        good = output_buf(stdout, &out);
    }
    buf_done(&json);
    return good;
}

static bool make(maker *m)
{
    if (!bundle_folder_read(m->arena, m->path, &m->folder, m->in.problems) || !assemble(m) ||
        !read_all_values(m) || !add_resources(m))
        return false;
    warn_of_charts(m);
    return print(m);
}

static exit_status run(const options *given)
{
    maker m = {.given = given, .path = given->operands.at[0]};
    exit_status status = input_read_some(&m.in, given);
    m.arena = arena_new(0);
    if (status == STATUS_DONE && m.arena) {
        bool good = make(&m);
        input_report(&m.in);
        status = good && !input_bad(&m.in) ? STATUS_DONE : STATUS_NO;
    }
    bundle_folder_done(&m.folder);
    input_done(&m.in);
    arena_free(m.arena);
    return status;
}

static const option options_of_bundle[] = {
    {.name = "name",
     .argument = "NAME",
     .help = "the Bundle's name where fleet.yaml has none; the folder's unless told otherwise"},
    {.name = "namespace",
     .letter = 'n',
     .argument = "NAMESPACE",
     .help = "where the Bundle belongs; " DEFAULT_NAMESPACE " unless told otherwise"},
    {.name = "label",
     .letter = 'l',
     .argument = "KEY=VALUE",
     .repeatable = true,
     .help = "a label of the Bundle; what fleet.yaml says wins"},
    {.name = "targets",
     .argument = "FILE",
     .help = "targets as a GitRepo would add them, under \"targets\"; overrideTargets of "
             "fleet.yaml takes their place"},
    {.name = "paused", .help = "make it paused, whatever fleet.yaml says"},
    OPTION_OUTPUT("yaml|json"),
    OPTIONS_END,
};

const verb cmd_bundle = {
    .name = "bundle",
    .summary = "make a Bundle of a folder with fleet.yaml and print it",
    .operands = "FOLDER",
    .operands_min = 1,
    .operands_max = 1,
    .about =
        "Files below the folder become the Bundle's resources, hidden ones and what .fleetignore "
        "names excepted; fleet.yaml (or fleet.yml) says where and how they are deployed: targets, "
        "targetCustomizations, overrideTargets, rolloutStrategy, and options for helm, kustomize "
        "and yaml overlays. Files in helm.valuesFiles become Helm values. Charts from repositories "
        "are not fetched.\n"
        "\n"
        "What is printed passes drover validate, and drover plan -f - shows what it will do. From "
        "1,000,000 bytes on, resources are compressed.",
    .options = options_of_bundle,
    .run = run,
};
