/* SPDX-License-Identifier: Apache-2.0 */
/* Which files are a chart, and what the "helm" program is told of it. */
#include "base/mem.h"
#include "cluster_agent/manifest_internal.h"
#include "engine/fleet_names.h"
#include "engine/go_json.h"
#include "model/document.h"

#define CHART_FILE "Chart.yaml"
#define FETCHED_FOLDER ".chart/" /* where Fleet puts a chart that it fetched for a Bundle */
#define REGISTRY "oci://"
#define TIMEOUT_SECONDS_MAX 86400

const yyjson_val *manifest_options(const manifest_source *from)
{
    return go_member(go_member(from->deployment, STR("spec")), STR("options"));
}

/* The folder of a file that is called Chart.yaml, without the slash; ptr NULL for other files. */
static str chart_folder(str file)
{
    str base = STR(CHART_FILE);
    if (str_eq(file, base))
        return STR_EMPTY;
    if (!str_ends(file, STR("/" CHART_FILE)))
        return (str){NULL, 0};
    return str_part(file, 0, file.len - base.len - 1);
}

/* "./charts/web/" and "charts/web" are one. */
static str folder_named(str path)
{
    while (str_starts(path, STR("./")))
        path = str_part(path, 2, path.len);
    while (path.len > 0 && path.ptr[path.len - 1] == '/')
        path.len--;
    return str_eq(path, STR(".")) ? STR_EMPTY : path;
}

/* Where Fleet puts the chart of these options when it fetches it for a Bundle, which may have
 * several: for targets of their own. ptr NULL without memory. */
static str fetched_folder(arena *a, const yyjson_val *helm)
{
    char hex[SHA256_HEX_BYTES];
    str text = arena_printf(a, "%.*s:%.*s:%.*s", STR_ARG(object_text(helm, STR("chart"))),
                            STR_ARG(object_text(helm, STR("repo"))),
                            STR_ARG(object_text(helm, STR("version"))));
    if (!text.ptr || !sha256_hex(text, hex))
        return (str){NULL, 0};
    return arena_printf(a, FETCHED_FOLDER "%s", hex);
}

/* The folder itself, or one in it: archives have one for the chart. */
static bool is_fetched(str folder, str fetched)
{
    if (!str_starts(folder, fetched))
        return false;
    str below = str_part(folder, fetched.len, folder.len);
    return below.len == 0 ||
           (below.ptr[0] == '/' && str_find(str_part(below, 1, below.len), STR("/")) == SIZE_MAX);
}

/* The folder that the options name, which is the root if they name none, or the one that Fleet
 * fetched. ptr NULL: there is no such chart in the Bundle. */
static str find_folder(const manifest *m, str named, str fetched)
{
    str want = folder_named(named);
    for (size_t i = 0; i < m->files.len; i++) {
        str folder = chart_folder(m->files.at[i].name);
        if (folder.ptr && (str_eq(folder, want) || is_fetched(folder, fetched)))
            return folder;
    }
    return (str){NULL, 0};
}

static int64_t whole(const yyjson_val *object, str key, int64_t most)
{
    yyjson_val *found = go_member(object, key);
    int64_t number = yyjson_is_int(found) ? yyjson_get_sint(found) : 0;
    return number < 0 ? 0 : number > most ? most : number;
}

static bool yes(const yyjson_val *object, str key)
{
    return yyjson_is_true(go_member(object, key));
}

/* Values come from the Secret; options that were never written to a hub may still hold them. */
static bool put_values(arena *a, const manifest_source *from, const yyjson_val *helm, str *ret,
                       err *error)
{
    const yyjson_val *inside = go_member(helm, STR("values"));
    if (from->values.len > 0) {
        yyjson_val *parsed = json_parse(a, from->values, error);
        if (!parsed)
            return err_is_memory(error) ? false : err_wrap(error, "values");
        if (!yyjson_is_obj(parsed))
            return err_set(error, "values: found something that is no object");
        inside = parsed;
    }
    buf text = BUF(LIMIT_TEXT_BYTES);
    if (inside)
        json_write(&text, inside);
    else
        buf_addz(&text, "{}");
    *ret = text.failed ? (str){NULL, 0} : arena_str(a, buf_str(&text));
    buf_done(&text);
    return ret->ptr || err_memory(error);
}

static bool has_file(const manifest *m, str name)
{
    for (size_t i = 0; i < m->files.len; i++)
        if (str_eq(m->files.at[i].name, name))
            return true;
    return false;
}

/* Whoever makes a Bundle of a folder puts what these files say into its values, and leaves the
 * files out: those that are there all the same are for Bundles that were written by hand. */
static bool put_values_files(arena *a, const manifest *m, const yyjson_val *helm, str_list *ret,
                             err *error)
{
    yyjson_val *list = go_member(helm, STR("valuesFiles")), *one;
    size_t i, max;
    ret->at = ARENA_ARRAY(a, yyjson_arr_size(list) + 1, str);
    if (!ret->at)
        return err_memory(error);
    yyjson_arr_foreach(list, i, max, one)
    {
        str name = go_str(one);
        name = name.ptr ? folder_named(name) : STR_EMPTY;
        if (has_file(m, name))
            ret->at[ret->len++] = name;
    }
    return true;
}

/* Charts in registries are known by their whole address, which Fleet has in "repo". */
static bool name_in_registry(arena *a, chart_order *c)
{
    if (!str_starts(c->repo, STR(REGISTRY)))
        return true;
    c->name = c->name.len == 0 ? c->repo
                               : arena_printf(a, "%.*s/%.*s", STR_ARG(c->repo), STR_ARG(c->name));
    c->repo = STR_EMPTY;
    return c->name.ptr;
}

/* Helm looks for a folder of that name first, in the agent's files: those of another's helm are
 * there as well. A name, one with the alias of a repository before it, or an address is none. */
static bool is_no_path(str name)
{
    if (str_starts(name, STR(REGISTRY)) || str_starts(name, STR("https://")) ||
        str_starts(name, STR("http://")))
        return true;
    str rest = name, first = str_cut(&rest, '/');
    bool path = rest.ptr && (first.len == 0 || str_find(rest, STR("/")) != SIZE_MAX);
    return !path && str_trim(name).len == name.len && !str_starts(name, STR("."));
}

manifest_fault manifest_chart(arena *a, const manifest_source *from, manifest *m, err *error)
{
    const yyjson_val *access =
        go_member(go_member(from->deployment, STR("spec")), STR("helmChartOptions"));
    const yyjson_val *helm = go_member(manifest_options(from), STR("helm"));
    str named = object_text(helm, STR("chart")), repo = object_text(helm, STR("repo"));
    str fetched = fetched_folder(a, helm);
    if (!fetched.ptr) {
        err_memory(error);
        return MANIFEST_MEMORY;
    }
    str folder = find_folder(m, named.len > 0 ? named : repo, fetched);
    if (!folder.ptr && named.len == 0 && repo.len == 0)
        return MANIFEST_NONE;
    chart_order *c = &m->chart;
    *c = (chart_order){
        .folder = folder,
        .name = named,
        .repo = repo,
        .version = object_text(helm, STR("version")),
        .timeout_s = whole(helm, STR("timeoutSeconds"), TIMEOUT_SECONDS_MAX),
        .max_history = whole(helm, STR("maxHistory"), INT32_MAX),
        .atomic = yes(helm, STR("atomic")),
        .force = yes(helm, STR("force")),
        .take_ownership = m->take_ownership,
        .wait_for_jobs = yes(helm, STR("waitForJobs")),
        .disable_dns = yes(helm, STR("disableDNS")),
        .skip_schema_validation = yes(helm, STR("skipSchemaValidation")),
        .disable_dependency_update = yes(helm, STR("disableDependencyUpdate")),
        .skip_tls_verify = yes(access, STR("helmOpInsecureSkipTLSVerify")),
    };
    m->is_chart = true;
    if (!name_in_registry(a, c)) {
        err_memory(error);
        return MANIFEST_MEMORY;
    }
    if (!folder.ptr && !is_no_path(c->name)) {
        err_set(error, "helm.chart: found \"%s\", which is no folder of a chart in the Bundle",
                str_shown(c->name).text);
        return MANIFEST_BAD;
    }
    if (!put_values(a, from, helm, &c->values, error) ||
        !put_values_files(a, m, helm, &c->values_files, error))
        return manifest_failed(MANIFEST_BAD, error);
    return MANIFEST_NONE;
}
