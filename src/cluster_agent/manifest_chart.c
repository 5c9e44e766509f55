/* SPDX-License-Identifier: Apache-2.0 */
/* Which files are a chart, and what the "helm" program is told of it. */
#include "base/mem.h"
#include "cluster_agent/manifest_internal.h"
#include "engine/go_json.h"
#include "model/document.h"

#define CHART_FILE "Chart.yaml"
#define FETCHED_FOLDER ".chart/" /* where Fleet puts a chart that it fetched for a Bundle */
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

/* The folder the options name, else the one Fleet fetched, else the root. */
static str find_folder(const manifest *m, str named)
{
    str fetched = {NULL, 0}, root = {NULL, 0}, want = folder_named(named);
    for (size_t i = 0; i < m->files.len; i++) {
        str folder = chart_folder(m->files.at[i].name);
        if (!folder.ptr)
            continue;
        if (named.len > 0 && str_eq(folder, want))
            return folder;
        if (folder.len == 0)
            root = folder;
        str below = str_part(folder, STR(FETCHED_FOLDER).len, folder.len);
        bool direct = below.len > 0 && str_find(below, STR("/")) == SIZE_MAX;
        if (!fetched.ptr && direct && str_starts(folder, STR(FETCHED_FOLDER)))
            fetched = folder;
    }
    return fetched.ptr ? fetched : root;
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
        bool there = false;
        for (size_t k = 0; k < m->files.len; k++)
            there = there || str_eq(m->files.at[k].name, name);
        if (!there)
            return err_set(error, "helm.valuesFiles: found \"%s\", which is no file of the bundle",
                           str_shown(name).text);
        ret->at[ret->len++] = name;
    }
    return true;
}

manifest_fault manifest_chart(arena *a, const manifest_source *from, manifest *m, err *error)
{
    const yyjson_val *helm = go_member(manifest_options(from), STR("helm"));
    str named = object_text(helm, STR("chart")), repo = object_text(helm, STR("repo"));
    str folder = find_folder(m, named);
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
    };
    m->is_chart = true;
    if (!put_values(a, from, helm, &c->values, error) ||
        !put_values_files(a, m, helm, &c->values_files, error))
        return manifest_failed(MANIFEST_BAD, error);
    return MANIFEST_NONE;
}
