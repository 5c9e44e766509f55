/* SPDX-License-Identifier: Apache-2.0 */
/* Values of templates: from JSON, to JSON, and as Go prints them. */
#include <inttypes.h>

#include "engine/go_json.h"
#include "engine/go_template.h"

const char *template_kind_text(template_kind kind)
{
    static const char *const texts[] = {
#define X(kind, text) text,
        TEMPLATE_VALUES(X)
#undef X
    };
    return texts[kind];
}

static bool list_from_json(arena *a, yyjson_val *json, template_value *ret)
{
    size_t i, max, len = yyjson_arr_size(json);
    yyjson_val *item;
    template_value *at = ARENA_ARRAY(a, len ? len : 1, template_value);
    if (!at)
        return false;
    yyjson_arr_foreach(json, i, max, item)
    {
        if (!template_from_json(a, item, &at[i]))
            return false;
    }
    *ret = (template_value){.kind = TEMPLATE_LIST, .list = {at, len}};
    return true;
}

static bool map_from_json(arena *a, const yyjson_val *json, template_value *ret)
{
    go_pairs pairs = {0};
    bool good = go_pairs_add(&pairs, json);
    go_pairs_sort(&pairs);
    template_pair *at = good ? ARENA_ARRAY(a, pairs.len ? pairs.len : 1, template_pair) : NULL;
    good = at != NULL;
    for (size_t i = 0; good && i < pairs.len; i++) {
        at[i].key = pairs.at[i].key;
        good = template_from_json(a, pairs.at[i].value, &at[i].value);
    }
    *ret = (template_value){.kind = TEMPLATE_MAP, .map = {at, pairs.len}};
    vec_done(&pairs);
    return good;
}

bool template_from_json(arena *a, const yyjson_val *json, template_value *ret)
{
    yyjson_val *v = (yyjson_val *)(uintptr_t)json;
    *ret = (template_value){.kind = TEMPLATE_NIL};
    if (yyjson_is_obj(v))
        return map_from_json(a, v, ret);
    if (yyjson_is_arr(v))
        return list_from_json(a, v, ret);
    if (yyjson_is_str(v))
        *ret = (template_value){.kind = TEMPLATE_TEXT, .text = go_str(v)};
    else if (yyjson_is_bool(v))
        *ret = (template_value){.kind = TEMPLATE_BOOL, .yes = yyjson_get_bool(v)};
    else if (yyjson_is_num(v))
        *ret = (template_value){.kind = TEMPLATE_REAL, .real = yyjson_get_num(v)};
    return true;
}

void template_to_json(buf *out, const template_value *v)
{
    switch (v->kind) {
    case TEMPLATE_NIL: buf_addz(out, "null"); return;
    case TEMPLATE_BOOL: buf_addz(out, v->yes ? "true" : "false"); return;
    case TEMPLATE_INT: buf_addf(out, "%" PRId64, v->number); return;
    case TEMPLATE_REAL: go_real(out, v->real); return;
    case TEMPLATE_TEXT: go_text(out, v->text); return;
    case TEMPLATE_LIST:
        buf_addc(out, '[');
        for (size_t i = 0; i < v->list.len; i++) {
            if (i > 0)
                buf_addc(out, ',');
            template_to_json(out, &v->list.at[i]);
        }
        buf_addc(out, ']');
        return;
    case TEMPLATE_MAP:
        buf_addc(out, '{');
        for (size_t i = 0; i < v->map.len; i++) {
            if (i > 0)
                buf_addc(out, ',');
            go_text(out, v->map.at[i].key);
            buf_addc(out, ':');
            template_to_json(out, &v->map.at[i].value);
        }
        buf_addc(out, '}');
        return;
    }
}

const template_value *template_get(const template_value *map, str key)
{
    for (size_t i = 0; map->kind == TEMPLATE_MAP && i < map->map.len; i++)
        if (str_eq(map->map.at[i].key, key))
            return &map->map.at[i].value;
    return NULL;
}

/* Go's %v of a float: the shortest digits, and an exponent of two digits from a million on. */
#define GO_PRINT_EXPONENT_MIN (-4)
#define GO_PRINT_EXPONENT_MAX 6
#define DOUBLE_DIGITS_MAX 17
static void print_real(buf *out, double real)
{
    char text[40];
    int digits = 0;
    do
        snprintf(text, sizeof text, "%.*e", digits, real);
    while (strtod(text, NULL) != real && ++digits < DOUBLE_DIGITS_MAX);
    const char *mark = strchr(text, 'e');
    long exponent = mark ? strtol(mark + 1, NULL, 10) : 0;
    if (real != 0 && (exponent < GO_PRINT_EXPONENT_MIN || exponent >= GO_PRINT_EXPONENT_MAX)) {
        buf_addz(out, text);
        return;
    }
    buf_addf(out, "%.*f", digits > exponent ? digits - (int)exponent : 0, real);
}

static void print_inside(buf *out, const template_value *v)
{
    if (v->kind == TEMPLATE_NIL)
        buf_addz(out, "<nil>");
    else
        template_print(out, v);
}

void template_print(buf *out, const template_value *v)
{
    switch (v->kind) {
    case TEMPLATE_NIL: buf_addz(out, "<no value>"); return;
    case TEMPLATE_BOOL:
    case TEMPLATE_INT: template_to_json(out, v); return;
    case TEMPLATE_REAL: print_real(out, v->real); return;
    case TEMPLATE_TEXT: buf_add(out, v->text); return;
    case TEMPLATE_LIST:
        buf_addc(out, '[');
        for (size_t i = 0; i < v->list.len; i++) {
            buf_addz(out, i > 0 ? " " : "");
            print_inside(out, &v->list.at[i]);
        }
        buf_addc(out, ']');
        return;
    case TEMPLATE_MAP:
        buf_addz(out, "map[");
        for (size_t i = 0; i < v->map.len; i++) {
            buf_addz(out, i > 0 ? " " : "");
            buf_add(out, v->map.at[i].key);
            buf_addc(out, ':');
            print_inside(out, &v->map.at[i].value);
        }
        buf_addc(out, ']');
        return;
    }
}

bool template_truth(const template_value *v)
{
    switch (v->kind) {
    case TEMPLATE_NIL: return false;
    case TEMPLATE_BOOL: return v->yes;
    case TEMPLATE_INT: return v->number != 0;
    case TEMPLATE_REAL: return v->real != 0;
    case TEMPLATE_TEXT: return v->text.len > 0;
    case TEMPLATE_LIST: return v->list.len > 0;
    case TEMPLATE_MAP: return v->map.len > 0;
    }
    return false;
}
