/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/value_template.h"

#include "engine/fleet_names.h"
#include "engine/go_json.h"
#include "engine/go_template.h"
#include "model/document.h"
#include "model/yaml.h"

#define LABEL_PREFIX "global.fleet.clusterLabels."
#define PATH_BYTES_MAX 400

typedef struct processor {
    arena *arena;
    const template_cluster *cluster;
    template_value root;
    bool plain;
    buf out;  /* JSON of the result */
    buf path; /* where in the values */
    size_t depth;
    size_t lists_in_lists; /* that it is in: Fleet looks for no labels there */
    err *error;
} processor;

/* ---- what depends on the cluster ---- */

static bool text_depends(str text)
{
    return str_starts(text, STR(LABEL_PREFIX)) || template_is_in(text);
}

static bool depends(yyjson_val *v)
{
    size_t i, max;
    yyjson_val *key, *value;
    if (yyjson_is_str(v))
        return text_depends(go_str(v));
    if (yyjson_is_arr(v)) {
        yyjson_arr_foreach(v, i, max, value)
        {
            if (depends(value))
                return true;
        }
    } else if (yyjson_is_obj(v)) {
        yyjson_obj_foreach(v, i, max, key, value)
        {
            if (template_is_in(go_str(key)) || depends(value))
                return true;
        }
    }
    return false;
}

bool values_depend(raw_json values, raw_json templates)
{
    yyjson_val *more = (yyjson_val *)(uintptr_t)templates;
    return (values && depends((yyjson_val *)(uintptr_t)values)) ||
           (more && yyjson_is_obj(more) && yyjson_obj_size(more) > 0);
}

/* ---- the data of templates ---- */

static bool label_map(arena *a, label_set labels, bool (*seen)(str key), template_value *ret)
{
    template_pair *at = ARENA_ARRAY(a, labels.len + 1, template_pair);
    size_t len = 0;
    for (size_t i = 0; at && i < labels.len; i++)
        if (seen(labels.at[i].key))
            at[len++] = (template_pair){labels.at[i].key,
                                        {.kind = TEMPLATE_TEXT, .text = labels.at[i].value}};
    *ret = (template_value){.kind = TEMPLATE_MAP, .map = {at, len}};
    return at != NULL;
}

static bool make_root(arena *a, const template_cluster *c, template_value *ret)
{
    enum { ANNOTATIONS, LABELS, NAME, NAMESPACE, VALUES, COUNT };
    template_pair *at = ARENA_ARRAY(a, COUNT, template_pair);
    if (!at)
        return false;
    at[ANNOTATIONS].key = STR("ClusterAnnotations");
    at[LABELS].key = STR("ClusterLabels");
    at[NAME] = (template_pair){STR("ClusterName"), {.kind = TEMPLATE_TEXT, .text = c->name}};
    at[NAMESPACE] =
        (template_pair){STR("ClusterNamespace"), {.kind = TEMPLATE_TEXT, .text = c->namespace_}};
    at[VALUES] = (template_pair){STR("ClusterValues"), {.kind = TEMPLATE_MAP}};
    *ret = (template_value){.kind = TEMPLATE_MAP, .map = {at, COUNT}};
    return label_map(a, c->annotations, label_exported, &at[ANNOTATIONS].value) &&
           label_map(a, c->labels, cluster_label_usable, &at[LABELS].value) &&
           (!c->template_values || template_from_json(a, c->template_values, &at[VALUES].value));
}

/* ---- one text ---- */

/* False, with the path of the value in front of the error. */
static bool fail_here(processor *p)
{
    return err_wrap(p->error, "helm.values%.*s", STR_ARG(buf_str(&p->path)));
}

/* Whether it has a line of its own, between single quotes, if not plainly. */
static bool is_one_line(str text)
{
    for (size_t i = 0; i < text.len; i++)
        if ((unsigned char)text.ptr[i] < ' ')
            return false;
    return true;
}

/* Whether Fleet's YAML has this text without quotes: then what it becomes is read as YAML. A text
 * with an action in it is never taken for another type, so only its characters matter. */
static bool written_plainly(str text)
{
    if (text.len == 0 || strchr("-?:,[]{}#&*!|>'\"%@` ", text.ptr[0]) ||
        text.ptr[text.len - 1] == ' ' || text.ptr[text.len - 1] == ':')
        return text.len > 1 && strchr("-?:", text.ptr[0]) && text.ptr[1] != ' ' &&
               text.ptr[text.len - 1] != ' ' && text.ptr[text.len - 1] != ':' &&
               !str_starts(text, STR("---"));
    return is_one_line(text) && str_find(text, STR(": ")) == SIZE_MAX &&
           str_find(text, STR(" #")) == SIZE_MAX;
}

/* Writes what a YAML text means as JSON, behind "key: " where it stands in a map. */
static bool add_yaml(processor *p, str text, buf *out)
{
    yaml_error trouble = {0};
    bool found = false;
    yaml_stream *stream = yaml_open(text);
    bool good = stream && yaml_next(stream, out, &found, &trouble);
    if (stream)
        yaml_close(stream);
    if (!good && out->failed)
        return buf_fault(out, p->error);
    if (!stream || trouble.no_memory)
        return err_memory(p->error);
    if (!good)
        return err_set(p->error, "found \"%s\", which is no YAML: %s", str_shown(text).text,
                       trouble.what.text);
    if (!found)
        buf_addz(out, "null");
    return true;
}

/* The value that stands behind "k: " or "- " when that is what Fleet's YAML would have. */
static bool add_plain_result(processor *p, str rendered, bool in_list)
{
    buf text = BUF(TEMPLATE_OUTPUT_BYTES_MAX), json = BUF(TEMPLATE_OUTPUT_BYTES_MAX);
    buf_addz(&text, in_list ? "- " : "k: ");
    buf_add(&text, rendered);
    buf_addc(&text, '\n');
    bool good = text.failed ? buf_fault(&text, p->error) : add_yaml(p, buf_str(&text), &json);
    yyjson_val *whole = good ? json_parse(p->arena, buf_str(&json), p->error) : NULL;
    yyjson_val *value = whole && in_list ? yyjson_arr_get_first(whole)
                        : whole          ? go_member(whole, STR("k"))
                                         : NULL;
    size_t size = whole && in_list ? yyjson_arr_size(whole) : whole ? yyjson_obj_size(whole) : 0;
    if (whole && (!value || size != 1))
        err_set(p->error, "found \"%s\", which does not stay in its place",
                str_shown(rendered).text);
    good = whole && value && size == 1;
    if (good)
        go_value(&p->out, value);
    buf_done(&text);
    buf_done(&json);
    return good;
}

static bool render(processor *p, str text, buf *out)
{
    return template_render(p->arena, text, &p->root, out, p->error);
}

/* Fleet renders the YAML, in which such a text stands between single quotes. */
static bool add_quoted_result(processor *p, str text, bool in_list)
{
    buf quoted = BUF(TEMPLATE_OUTPUT_BYTES_MAX), rendered = BUF(TEMPLATE_OUTPUT_BYTES_MAX);
    buf_addc(&quoted, '\'');
    for (size_t i = 0; i < text.len; i++)
        buf_addz(&quoted, (const char[]){text.ptr[i], text.ptr[i] == '\'' ? '\'' : '\0', '\0'});
    buf_addc(&quoted, '\'');
    bool good = quoted.failed ? buf_fault(&quoted, p->error)
                              : render(p, buf_str(&quoted), &rendered);
    good = good && add_plain_result(p, buf_str(&rendered), in_list);
    buf_done(&quoted);
    buf_done(&rendered);
    return good;
}

static bool add_text(processor *p, str text, bool in_list)
{
    if (!in_list && p->lists_in_lists == 0 && str_starts(text, STR(LABEL_PREFIX))) {
        str key = str_part(text, sizeof LABEL_PREFIX - 1, SIZE_MAX);
        str value = cluster_label_usable(key) ? label_get(p->cluster->labels, key) : STR_EMPTY;
        go_text(&p->out, value.ptr ? value : STR_EMPTY);
        return true;
    }
    if (p->plain || !template_is_in(text)) {
        go_text(&p->out, text);
        return true;
    }
    if (!written_plainly(text) && is_one_line(text))
        return add_quoted_result(p, text, in_list) || fail_here(p);
    buf rendered = BUF(TEMPLATE_OUTPUT_BYTES_MAX);
    bool good = render(p, text, &rendered);
    if (good && written_plainly(text))
        good = add_plain_result(p, buf_str(&rendered), in_list);
    else if (good)
        go_text(&p->out, buf_str(&rendered));
    buf_done(&rendered);
    return good || fail_here(p);
}

/* ---- all of them ---- */

static bool add_value(processor *p, yyjson_val *v, bool in_list);

static bool add_key(processor *p, str key)
{
    buf rendered = BUF(TEMPLATE_OUTPUT_BYTES_MAX);
    bool templated = !p->plain && template_is_in(key);
    bool good = !templated || render(p, key, &rendered);
    go_text(&p->out, templated ? buf_str(&rendered) : key);
    buf_addc(&p->out, ':');
    buf_done(&rendered);
    return good || fail_here(p);
}

static bool add_map(processor *p, const yyjson_val *map)
{
    go_pairs pairs = {0};
    bool good = go_pairs_add(&pairs, map) || err_memory(p->error);
    size_t before = p->path.len;
    go_pairs_sort(&pairs);
    buf_addc(&p->out, '{');
    for (size_t i = 0; good && i < pairs.len; i++) {
        buf_addz(&p->out, i > 0 ? "," : "");
        buf_addf(&p->path, ".%s", str_shown(pairs.at[i].key).text);
        good = add_key(p, pairs.at[i].key) && add_value(p, pairs.at[i].value, false);
        p->path.len = before;
        p->path.failed = false;
    }
    buf_addc(&p->out, '}');
    vec_done(&pairs);
    return good;
}

static bool add_list(processor *p, yyjson_val *list)
{
    size_t i, max, before = p->path.len;
    yyjson_val *item;
    bool good = true;
    buf_addc(&p->out, '[');
    yyjson_arr_foreach(list, i, max, item)
    {
        buf_addz(&p->out, i > 0 ? "," : "");
        buf_addf(&p->path, "[%zu]", i);
        good = good && add_value(p, item, true);
        p->path.len = before;
        p->path.failed = false;
    }
    buf_addc(&p->out, ']');
    return good;
}

static bool add_value(processor *p, yyjson_val *v, bool in_list)
{
    bool good = true;
    if (++p->depth > TEMPLATE_DEPTH_MAX)
        return err_set(p->error, "found values nested deeper than %d, which is the most",
                       TEMPLATE_DEPTH_MAX) ||
               fail_here(p);
    if (yyjson_is_obj(v))
        good = add_map(p, v);
    else if (yyjson_is_arr(v)) {
        p->lists_in_lists += in_list;
        good = add_list(p, v);
        p->lists_in_lists -= in_list;
    } else if (yyjson_is_str(v))
        good = add_text(p, go_str(v), in_list);
    else
        go_value(&p->out, v);
    p->depth--;
    return good;
}

/* helm.templateValues: each is rendered and read as a YAML document. */
static bool add_templates(processor *p, raw_json templates, buf *out)
{
    go_pairs pairs = {0};
    bool good = go_pairs_add(&pairs, templates) || err_memory(p->error);
    go_pairs_sort(&pairs);
    buf_addc(out, '{');
    for (size_t i = 0; good && i < pairs.len; i++) {
        buf rendered = BUF(TEMPLATE_OUTPUT_BYTES_MAX), json = BUF(TEMPLATE_OUTPUT_BYTES_MAX);
        str text = go_str(pairs.at[i].value);
        good = (text.ptr || err_set(p->error, "found no text")) && render(p, text, &rendered) &&
               add_yaml(p, buf_str(&rendered), &json);
        buf_addz(out, i > 0 ? "," : "");
        go_text(out, pairs.at[i].key);
        buf_addc(out, ':');
        buf_add(out, buf_str(&json));
        buf_done(&rendered);
        buf_done(&json);
        if (!good)
            err_wrap(p->error, "helm.templateValues.%s", str_shown(pairs.at[i].key).text);
    }
    buf_addc(out, '}');
    vec_done(&pairs);
    return good && (!out->failed || buf_fault(out, p->error));
}

/* Both as one object; what templates say stands first in line. */
static raw_json lay_over(processor *p, raw_json values, raw_json over)
{
    go_pairs pairs = {0};
    buf out = BUF(LIMIT_TEXT_BYTES);
    bool any = false, good = go_pairs_add(&pairs, over) && go_pairs_add(&pairs, values);
    buf_addc(&out, '{');
    for (size_t i = 0; good && i < pairs.len; i++) {
        bool known = false;
        for (size_t k = 0; k < i; k++)
            known |= str_eq(pairs.at[k].key, pairs.at[i].key);
        if (known)
            continue;
        buf_addz(&out, any ? "," : "");
        any = true;
        go_text(&out, pairs.at[i].key);
        buf_addc(&out, ':');
        go_value(&out, pairs.at[i].value);
    }
    buf_addc(&out, '}');
    raw_json made = NULL;
    if (!good || out.failed)
        good ? buf_fault(&out, p->error) : err_memory(p->error);
    else
        made = json_parse(p->arena, buf_str(&out), p->error);
    buf_done(&out);
    vec_done(&pairs);
    return made;
}

static raw_json process(processor *p, const template_source *from)
{
    if (!make_root(p->arena, p->cluster, &p->root)) {
        err_memory(p->error);
        return NULL;
    }
    yyjson_val *values = (yyjson_val *)(uintptr_t)from->values;
    if (!values || !yyjson_is_obj(values))
        buf_addz(&p->out, "{}");
    else if (!add_value(p, values, false))
        return NULL;
    if (p->out.failed) {
        buf_fault(&p->out, p->error);
        return NULL;
    }
    raw_json made = json_parse(p->arena, buf_str(&p->out), p->error);
    if (!made || p->plain || !from->templates)
        return made;
    buf over = BUF(LIMIT_TEXT_BYTES);
    raw_json laid = NULL;
    if (add_templates(p, from->templates, &over)) {
        laid = json_parse(p->arena, buf_str(&over), p->error);
        laid = laid ? lay_over(p, made, laid) : NULL;
    }
    buf_done(&over);
    return laid;
}

raw_json values_for(arena *a, const template_source *from, const template_cluster *cluster,
                    err *error)
{
    processor p = {.arena = a,
                   .cluster = cluster,
                   .plain = from->plain,
                   .out = BUF(LIMIT_TEXT_BYTES),
                   .path = BUF(PATH_BYTES_MAX),
                   .error = error};
    raw_json made = process(&p, from);
    buf_done(&p.out);
    buf_done(&p.path);
    return made;
}
