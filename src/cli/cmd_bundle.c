/* SPDX-License-Identifier: Apache-2.0 */
#include <limits.h>
#include <stdlib.h>

#include "base/base64.h"
#include "base/gzip.h"
#include "base/limits.h"
#include "base/mem.h"
#include "cli/bundle_folder.h"
#include "cli/input.h"
#include "cli/kube_apply.h"
#include "cli/object_options.h"
#include "cli/output.h"
#include "cli/show.h"
#include "engine/deployment_id.h"
#include "engine/fleet_names.h"
#include "engine/go_json.h"

#define BUNDLE_PLAIN_BYTES_MAX 1000000u /* from this size on Fleet compresses resources */
#define DEFAULT_NAMESPACE "fleet-default"

typedef struct maker {
    const options *given;
    str path;         /* of the folder, as given */
    label_set labels; /* of the command line */
    input in;
    arena *arena;
    bundle_folder folder;
    const bundle_file *yaml; /* fleet.yaml; NULL: the folder has none */
    str targets_file;        /* --targets; empty: not given */
    size_t targets_len;      /* how many of the Bundle's targets, its last ones, came from there */
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

/* Where the options of the Bundle were written, or those of one of its targets. */
static str file_of_options(const maker *m)
{
    return m->yaml ? m->yaml->path : m->path;
}

static str file_of_target(const maker *m, size_t at)
{
    bool theirs = at + m->targets_len >= m->bundle->spec.targets.len;
    return theirs ? m->targets_file : file_of_options(m);
}

/* Options in which a file is looked for, and where they stand. */
typedef struct option_place {
    str file;
    str path; /* in it: empty, or that of a target with a dot at its end */
} option_place;

static option_place place_of_target(const maker *m, size_t at)
{
    str name = m->bundle->spec.targets.at[at].name;
    str path = arena_printf(m->arena, "targets[%.*s].", STR_ARG(name));
    return (option_place){file_of_target(m, at), path.ptr ? path : STR_EMPTY};
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

/* The folder's own name, as far as it can be one of a Bundle: with digits of its hash where it is
 * too long for that, as Fleet has it. */
static str folder_name(maker *m)
{
    char full[PATH_MAX];
    const char *path = arena_str(m->arena, m->path).ptr;
    if (!path || !realpath(path, full))
        return STR_EMPTY;
    str name = fleet_folder_name(m->arena, str_of(full));
    return name.len > 0 ? helm_release_name(m->arena, name) : name;
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
    if (!read)
        return false;
    *ret = read->targets;
    m->targets_file = f->name;
    return true;
}

/* Labels of the command line, where fleet.yaml does not say otherwise. */
static bool add_labels(maker *m)
{
    metadata *meta = &m->bundle->metadata;
    VEC(label) all = {0};
    bool good = true;
    for (size_t i = 0; i < meta->labels.len; i++)
        good = good && vec_push(&all, meta->labels.at[i]);
    for (size_t i = 0; good && i < m->labels.len; i++)
        good = label_get(meta->labels, m->labels.at[i].key).ptr || vec_push(&all, m->labels.at[i]);
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

/* ---- what Fleet asks of a Bundle that it makes ---- */

static bool is_state(str text)
{
    static const str states[] = {
#define X(state, text) STR(text),
        BUNDLE_STATES(X)
#undef X
    };
    for (size_t i = 0; i < sizeof states / sizeof states[0]; i++)
        if (text.len > 0 && str_eq(text, states[i]))
            return true;
    return false;
}

static bool check_states(maker *m, yyjson_val *states, size_t of)
{
    size_t i, max;
    yyjson_val *one;
    bool good = true;
    yyjson_arr_foreach(states, i, max, one)
    {
        str text = go_str(one);
        if (is_state(text.ptr ? text : STR_EMPTY))
            continue;
        str path = arena_printf(m->arena, "dependsOn[%zu].acceptedStates[%zu]", of, i);
        good = report(m, SEVERITY_ERROR, &(problem){.file = file_of_options(m), .path = path},
                      "found \"%s\", allowed a state of a Bundle, such as Ready",
                      str_shown(text.ptr ? text : STR_EMPTY).text);
    }
    return good;
}

static bool check_dependencies(maker *m)
{
    size_t i, max;
    yyjson_val *one, *list = (yyjson_val *)(uintptr_t)m->bundle->spec.depends_on;
    bool good = true;
    yyjson_arr_foreach(list, i, max, one)
    {
        str path = arena_printf(m->arena, "dependsOn[%zu]", i);
        if (go_str(go_member(one, STR("name"))).len == 0 && !go_member(one, STR("selector")))
            good = report(m, SEVERITY_ERROR, &(problem){.file = file_of_options(m), .path = path},
                          "found neither name nor selector");
        good = check_states(m, go_member(one, STR("acceptedStates")), i) && good;
    }
    return good;
}

/* Its deployments carry the name as the value of a label. */
static bool check_name(maker *m)
{
    size_t len = m->bundle->metadata.name.len;
    return len <= LIMIT_LABEL_VALUE_BYTES ||
           report(m, SEVERITY_ERROR, &(problem){.file = file_of_options(m), .path = STR("name")},
                  "found %zu letters, allowed %d", len, LIMIT_LABEL_VALUE_BYTES);
}

/* ---- the Bundle without its files ---- */

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
    m->targets_len = read->override_targets.at ? 0 : targets.len;
    if (!m->bundle || !name.ptr)
        return no_memory(m);
    m->bundle->metadata.namespace_ = options_text(m->given, "namespace", DEFAULT_NAMESPACE);
    m->bundle->spec.paused |= options_given(m->given, "paused");
    bool good = check_name(m);
    good = check_dependencies(m) && good;
    return add_labels(m) && good;
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
static bool read_values(maker *m, bundle_options *of, option_place where)
{
    yyjson_val *names = go_member(of->helm, STR("valuesFiles")), *one;
    size_t i, max;
    raw_json merged = of->helm;
    bool good = true;
    yyjson_arr_foreach(names, i, max, one)
    {
        str name = file_name(go_str(one));
        const bundle_file *f = bundle_folder_find(&m->folder, name);
        str path = arena_printf(m->arena, "%.*shelm.valuesFiles[%zu]", STR_ARG(where.path), i);
        if (!f) {
            good = report(m, SEVERITY_ERROR, &(problem){.file = where.file, .path = path},
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
    option_place whole = {file_of_options(m), STR_EMPTY};
    bool good = read_values(m, &m->bundle->spec.options, whole);
    bundle_target_list *targets = &m->bundle->spec.targets;
    for (size_t i = 0; i < targets->len; i++)
        good &= read_values(m, &targets->at[i].options, place_of_target(m, i));
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
static void warn_of_chart(maker *m, raw_json helm, option_place where)
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
    str path = arena_printf(m->arena, "%.*shelm.chart", STR_ARG(where.path));
    if (!here)
        report(m, SEVERITY_WARNING, &(problem){.file = where.file, .path = path},
               "found a chart that is not in this folder: it is not put into the Bundle");
}

static void warn_of_charts(maker *m)
{
    const bundle_spec *spec = &m->bundle->spec;
    option_place whole = {file_of_options(m), STR_EMPTY};
    warn_of_chart(m, spec->options.helm, whole);
    for (size_t i = 0; i < spec->targets.len; i++)
        warn_of_chart(m, spec->targets.at[i].options.helm, place_of_target(m, i));
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

/* The Bundle as it is read again; NULL: something is wrong with it. */
static yyjson_val *made(maker *m, buf *json)
{
    if (!bundle_folder_read(m->arena, m->path, &m->folder, m->in.problems) || !assemble(m) ||
        !read_all_values(m) || !add_resources(m))
        return NULL;
    warn_of_charts(m);
    if (!put_bundle(m, json) || !check(m, buf_str(json)) || input_bad(&m->in))
        return NULL;
    return documents_at(m->in.documents, documents_count(m->in.documents) - 1)->root;
}

static exit_status print(const maker *m, const buf *json, yyjson_val *root)
{
    scoped(buf_done) buf out = BUF(LIMIT_TEXT_BYTES);
    if (str_eq(options_text(m->given, "output", "yaml"), STR("json"))) {
        buf_add(&out, buf_str(json));
        buf_addc(&out, '\n');
    } else {
        yaml_write(&out, root);
    }
    return output_buf(stdout, &out) ? STATUS_DONE : STATUS_NO;
}

static exit_status apply(const maker *m, yyjson_val *root)
{
    err error = {0};
    kube_document d;
    kube_kind of = {STR(API_FLEET), STR("Bundle")};
    if (!kube_document_of(m->arena, of, root, &d, &error))
        return fail("%s", error.text);
    kube_session *s = kube_apply_open(m->given);
    if (!s)
        return STATUS_UNREACHABLE;
    exit_status status =
        kube_apply_all(s, &d, 1, (kube_apply_how){.force = options_given(m->given, "force")});
    kube_session_close(s);
    return status;
}

static exit_status make(maker *m)
{
    scoped(buf_done) buf json = BUF(LIMIT_TEXT_BYTES);
    yyjson_val *root = made(m, &json);
    input_report(&m->in);
    if (!root)
        return STATUS_NO;
    return options_given(m->given, "apply") ? apply(m, root) : print(m, &json, root);
}

static exit_status check_options(const options *given)
{
    static const char *const of_apply[] = {"kubeconfig", "context", "force"};
    for (size_t i = 0; i < sizeof of_apply / sizeof of_apply[0]; i++)
        if (options_given(given, of_apply[i]) && !options_given(given, "apply"))
            return usage_error(&cmd_bundle, "--%s makes sense only with --apply", of_apply[i]);
    return STATUS_DONE;
}

static exit_status run(const options *given)
{
    maker m = {.given = given, .path = given->operands.at[0]};
    exit_status status = check_options(given);
    if (status != STATUS_DONE)
        return status;
    str space = options_text(given, "namespace", DEFAULT_NAMESPACE);
    if (!is_object_name(space))
        return usage_error(&cmd_bundle, "--namespace: found \"%s\", allowed the name of one",
                           str_shown(space).text);
    status = input_read_some(&m.in, given);
    m.arena = arena_new(0);
    if (status == STATUS_DONE && !m.arena)
        status = fail("memory ran out");
    if (status == STATUS_DONE)
        status = options_labels(&cmd_bundle, given, m.arena, &m.labels);
    if (status == STATUS_DONE)
        status = make(&m);
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
    {.name = "apply", .help = "write it to the hub instead of printing it"},
    OPTION_KUBECONFIG,
    OPTION_CONTEXT,
    OPTION_FORCE,
    OPTIONS_END,
};

const verb cmd_bundle = {
    .name = "bundle",
    .summary = "make a Bundle of a folder with fleet.yaml, and print or apply it",
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
        "1,000,000 bytes on, resources are compressed. --apply writes it by server-side apply, "
        "unless the hub's definition of Bundles would drop a field.",
    .options = options_of_bundle,
    .run = run,
};
