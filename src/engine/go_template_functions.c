/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of templates: which there are, and those for numbers, lists and maps. */
#include <math.h>

#include "base/num.h"
#include "engine/go_json.h"
#include "engine/go_template_internal.h"

struct template_function {
    str name;
    size_t least, most;
    bool (*run)(const template_call *c, template_value *ret);
};

static const template_function functions[] = {
#define X(name, least, most) {STR(#name), least, most, template_fn_##name},
    TEMPLATE_VALUE_FUNCTIONS(X) TEMPLATE_TEXT_FUNCTIONS(X)
#undef X
    /* Other names of the same; C's function of the first one is banned, and so is its name. */
    {STR("ato"
         "i"),
     1, 1, template_fn_parseInt},
    {STR("trimall"), 2, 2, template_fn_trimAll},
    {STR("tuple"), 0, SIZE_MAX, template_fn_list},
    {STR("push"), 2, 2, template_fn_append},
    {STR("biggest"), 1, SIZE_MAX, template_fn_max},
    {STR("toRawJson"), 1, 1, template_fn_toJson},
    {STR("mustToJson"), 1, 1, template_fn_toJson},
    {STR("mustFromJson"), 1, 1, template_fn_fromJson},
    {STR("mustRegexMatch"), 2, 2, template_fn_regexMatch},
};

const template_function *template_function_find(str name, err *error)
{
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++)
        if (str_eq(functions[i].name, name))
            return &functions[i];
    err_set(error, "found the function \"%s\", which Drover does not have", str_shown(name).text);
    return NULL;
}

bool template_function_call(const template_function *f, const template_call *call,
                            template_value *ret)
{
    if (call->count < f->least || call->count > f->most)
        return err_set(call->error, "found %zu arguments, allowed %s%zu", call->count,
                       f->least != f->most ? "at least " : "", f->least);
    return f->run(call, ret);
}

/* ---- arguments and results ---- */

static bool wrong(const template_call *c, size_t index, const char *allowed)
{
    return err_set(c->error, "argument %zu: found %s, allowed %s", index + 1,
                   template_kind_text(c->args[index].kind), allowed);
}

bool template_text_at(const template_call *c, size_t index, str *ret)
{
    *ret = c->args[index].text;
    return c->args[index].kind == TEMPLATE_TEXT || wrong(c, index, "a text");
}

/* A number wherever one can be seen in it, else 0: sprig's toInt64. */
static int64_t to_int(const template_value *v)
{
    switch (v->kind) {
    case TEMPLATE_INT: return v->number;
    case TEMPLATE_REAL: return v->real > -0x1p62 && v->real < 0x1p62 ? (int64_t)v->real : 0;
    case TEMPLATE_BOOL: return v->yes;
    case TEMPLATE_TEXT: {
        char copy[32] = {0}, *end = NULL;
        if (v->text.len == 0 || v->text.len >= sizeof copy)
            return 0;
        memcpy(copy, v->text.ptr, v->text.len);
        long long number = strtoll(copy, &end, 0);
        return *end || end == copy ? 0 : number;
    }
    case TEMPLATE_NIL:
    case TEMPLATE_LIST:
    case TEMPLATE_MAP: return 0;
    }
    return 0;
}

bool template_int_at(const template_call *c, size_t index, int64_t *ret)
{
    *ret = to_int(&c->args[index]);
    return c->args[index].kind == TEMPLATE_INT || wrong(c, index, "a whole number");
}

bool template_list_at(const template_call *c, size_t index, const template_value **ret)
{
    *ret = &c->args[index];
    return c->args[index].kind == TEMPLATE_LIST || wrong(c, index, "a list");
}

bool template_map_at(const template_call *c, size_t index, const template_value **ret)
{
    *ret = &c->args[index];
    return c->args[index].kind == TEMPLATE_MAP || wrong(c, index, "a map");
}

bool template_new_list(const template_call *c, size_t len, template_value **ret_at,
                       template_value *ret)
{
    *ret_at = ARENA_ARRAY(c->arena, len + 1, template_value);
    *ret = (template_value){.kind = TEMPLATE_LIST, .list = {*ret_at, len}};
    return *ret_at || err_memory(c->error);
}

/* ---- comparing ---- */

static bool equal(const template_value *a, const template_value *b)
{
    if (a->kind != b->kind)
        return false;
    switch (a->kind) {
    case TEMPLATE_NIL: return true;
    case TEMPLATE_BOOL: return a->yes == b->yes;
    case TEMPLATE_INT: return a->number == b->number;
    case TEMPLATE_REAL: return a->real == b->real;
    case TEMPLATE_TEXT: return str_eq(a->text, b->text);
    case TEMPLATE_LIST:
        if (a->list.len != b->list.len)
            return false;
        for (size_t i = 0; i < a->list.len; i++)
            if (!equal(&a->list.at[i], &b->list.at[i]))
                return false;
        return true;
    case TEMPLATE_MAP:
        if (a->map.len != b->map.len)
            return false;
        for (size_t i = 0; i < a->map.len; i++)
            if (!str_eq(a->map.at[i].key, b->map.at[i].key) ||
                !equal(&a->map.at[i].value, &b->map.at[i].value))
                return false;
        return true;
    }
    return false;
}

/* Go compares only what is of one kind, and neither lists nor maps. */
static bool comparable(const template_call *c, size_t index)
{
    template_kind left = c->args[0].kind, right = c->args[index].kind;
    if (left == TEMPLATE_LIST || left == TEMPLATE_MAP || right == TEMPLATE_LIST ||
        right == TEMPLATE_MAP)
        return err_set(c->error, "found a list or a map, which cannot be compared");
    return left == right || left == TEMPLATE_NIL || right == TEMPLATE_NIL ||
           err_set(c->error, "found %s and %s, which cannot be compared", template_kind_text(left),
                   template_kind_text(right));
}

bool template_fn_eq(const template_call *c, template_value *ret)
{
    *ret = template_bool(false);
    for (size_t i = 1; i < c->count; i++) {
        if (!comparable(c, i))
            return false;
        ret->yes |= equal(&c->args[0], &c->args[i]);
    }
    return true;
}

bool template_fn_ne(const template_call *c, template_value *ret)
{
    *ret = template_bool(!equal(&c->args[0], &c->args[1]));
    return comparable(c, 1);
}

/* -1, 0 or 1. */
static bool order(const template_call *c, int *ret)
{
    const template_value *a = &c->args[0], *b = &c->args[1];
    if (!comparable(c, 1))
        return false;
    if (a->kind != b->kind || a->kind == TEMPLATE_NIL || a->kind == TEMPLATE_BOOL)
        return err_set(c->error, "found %s and %s, which have no order",
                       template_kind_text(a->kind), template_kind_text(b->kind));
    if (a->kind == TEMPLATE_TEXT)
        *ret = str_cmp(a->text, b->text);
    else if (a->kind == TEMPLATE_INT)
        *ret = (a->number > b->number) - (a->number < b->number);
    else
        *ret = (a->real > b->real) - (a->real < b->real);
    return true;
}

#define ORDERS(X) X(lt, < 0) X(le, <= 0) X(gt, > 0) X(ge, >= 0)
#define X(name, condition)                                                                         \
    bool template_fn_##name(const template_call *c, template_value *ret)                           \
    {                                                                                              \
        int compared = 0;                                                                          \
        bool good = order(c, &compared);                                                           \
        *ret = template_bool(compared condition);                                                  \
        return good;                                                                               \
    }
ORDERS(X)
#undef X

bool template_fn_not(const template_call *c, template_value *ret)
{
    *ret = template_bool(!template_truth(&c->args[0]));
    return true;
}

/* ---- choosing ---- */

bool template_fn_default(const template_call *c, template_value *ret)
{
    *ret = c->count > 1 && template_truth(&c->args[1]) ? c->args[1] : c->args[0];
    return true;
}

bool template_fn_empty(const template_call *c, template_value *ret)
{
    return template_fn_not(c, ret);
}

bool template_fn_coalesce(const template_call *c, template_value *ret)
{
    *ret = (template_value){.kind = TEMPLATE_NIL};
    for (size_t i = 0; i < c->count; i++)
        if (template_truth(&c->args[i])) {
            *ret = c->args[i];
            break;
        }
    return true;
}

bool template_fn_ternary(const template_call *c, template_value *ret)
{
    *ret = c->args[template_truth(&c->args[2]) ? 0 : 1];
    return c->args[2].kind == TEMPLATE_BOOL || wrong(c, 2, "true or false");
}

/* ---- numbers ---- */

bool template_fn_int(const template_call *c, template_value *ret)
{
    *ret = template_int(to_int(&c->args[0]));
    return true;
}

bool template_fn_int64(const template_call *c, template_value *ret)
{
    return template_fn_int(c, ret);
}

bool template_fn_parseInt(const template_call *c, template_value *ret)
{
    str text;
    *ret = template_int(0);
    if (!template_text_at(c, 0, &text))
        return false;
    num_parse(text, &ret->number);
    return true;
}

static bool too_big(const template_call *c)
{
    return err_set(c->error, "found a result beyond 64 bits");
}

bool template_fn_add(const template_call *c, template_value *ret)
{
    *ret = template_int(0);
    for (size_t i = 0; i < c->count; i++)
        if (!num_add(ret->number, to_int(&c->args[i]), &ret->number))
            return too_big(c);
    return true;
}

bool template_fn_add1(const template_call *c, template_value *ret)
{
    *ret = template_int(0);
    return num_add(to_int(&c->args[0]), 1, &ret->number) || too_big(c);
}

bool template_fn_sub(const template_call *c, template_value *ret)
{
    *ret = template_int(0);
    return num_sub(to_int(&c->args[0]), to_int(&c->args[1]), &ret->number) || too_big(c);
}

bool template_fn_mul(const template_call *c, template_value *ret)
{
    *ret = template_int(1);
    for (size_t i = 0; i < c->count; i++)
        if (!num_mul(ret->number, to_int(&c->args[i]), &ret->number))
            return too_big(c);
    return true;
}

static bool divisor(const template_call *c, int64_t *ret)
{
    *ret = to_int(&c->args[1]);
    return *ret > 0 || *ret < -1 || err_set(c->error, "found %s as the divisor", *ret ? "-1" : "0");
}

bool template_fn_div(const template_call *c, template_value *ret)
{
    int64_t by = 1;
    if (!divisor(c, &by))
        return false;
    *ret = template_int(to_int(&c->args[0]) / by);
    return true;
}

bool template_fn_mod(const template_call *c, template_value *ret)
{
    int64_t by = 1;
    if (!divisor(c, &by))
        return false;
    *ret = template_int(to_int(&c->args[0]) % by);
    return true;
}

bool template_fn_max(const template_call *c, template_value *ret)
{
    *ret = template_int(to_int(&c->args[0]));
    for (size_t i = 1; i < c->count; i++)
        if (to_int(&c->args[i]) > ret->number)
            ret->number = to_int(&c->args[i]);
    return true;
}

bool template_fn_min(const template_call *c, template_value *ret)
{
    *ret = template_int(to_int(&c->args[0]));
    for (size_t i = 1; i < c->count; i++)
        if (to_int(&c->args[i]) < ret->number)
            ret->number = to_int(&c->args[i]);
    return true;
}

bool template_fn_until(const template_call *c, template_value *ret)
{
    int64_t count = 0;
    template_value *at;
    if (!template_int_at(c, 0, &count))
        return false;
    if (count < 0 || count > (int64_t)TEMPLATE_STEPS_MAX)
        return err_set(c->error, "found %lld, allowed 0 to %u", (long long)count,
                       TEMPLATE_STEPS_MAX);
    if (!template_new_list(c, (size_t)count, &at, ret))
        return false;
    for (int64_t i = 0; i < count; i++)
        at[i] = template_int(i);
    return true;
}

/* ---- lists and maps ---- */

bool template_fn_len(const template_call *c, template_value *ret)
{
    const template_value *v = &c->args[0];
    *ret = template_int(v->kind == TEMPLATE_TEXT   ? (int64_t)v->text.len
                        : v->kind == TEMPLATE_LIST ? (int64_t)v->list.len
                        : v->kind == TEMPLATE_MAP  ? (int64_t)v->map.len
                                                   : -1);
    return ret->number >= 0 || wrong(c, 0, "a text, a list or a map");
}

bool template_fn_index(const template_call *c, template_value *ret)
{
    *ret = c->args[0];
    for (size_t i = 1; i < c->count; i++) {
        const template_value *by = &c->args[i];
        template_value from = *ret;
        if (from.kind == TEMPLATE_MAP && by->kind == TEMPLATE_TEXT) {
            const template_value *found = template_get(&from, by->text);
            *ret = found ? *found : (template_value){.kind = TEMPLATE_NIL};
        } else if (from.kind == TEMPLATE_LIST && by->kind == TEMPLATE_INT) {
            if (by->number < 0 || (uint64_t)by->number >= from.list.len)
                return err_set(c->error, "found the index %lld of a list of %zu",
                               (long long)by->number, from.list.len);
            *ret = from.list.at[by->number];
        } else {
            return err_set(c->error, "found %s as an index of %s", template_kind_text(by->kind),
                           template_kind_text(from.kind));
        }
    }
    return true;
}

bool template_fn_list(const template_call *c, template_value *ret)
{
    *ret = (template_value){.kind = TEMPLATE_LIST, .list = {c->args, c->count}};
    return true;
}

static int pair_order(const void *a, const void *b)
{
    return str_cmp(((const template_pair *)a)->key, ((const template_pair *)b)->key);
}

bool template_fn_dict(const template_call *c, template_value *ret)
{
    template_pair *at = ARENA_ARRAY(c->arena, c->count / 2 + 2, template_pair);
    size_t len = 0;
    if (!at)
        return err_memory(c->error);
    for (size_t i = 0; i < c->count; i += 2) {
        size_t k = 0;
        str key = template_str(c, &c->args[i]);
        if (!key.ptr)
            return false;
        while (k < len && !str_eq(at[k].key, key))
            k++;
        at[k] = (template_pair){key, template_text(STR_EMPTY)};
        if (i + 1 < c->count)
            at[k].value = c->args[i + 1];
        len += k == len;
    }
    if (len > 1)
        qsort(at, len, sizeof *at, pair_order);
    *ret = (template_value){.kind = TEMPLATE_MAP, .map = {at, len}};
    return true;
}

bool template_fn_get(const template_call *c, template_value *ret)
{
    const template_value *map;
    str key;
    if (!template_map_at(c, 0, &map) || !template_text_at(c, 1, &key))
        return false;
    const template_value *found = template_get(map, key);
    *ret = found ? *found : template_text(STR_EMPTY);
    return true;
}

bool template_fn_hasKey(const template_call *c, template_value *ret)
{
    const template_value *map;
    str key;
    if (!template_map_at(c, 0, &map) || !template_text_at(c, 1, &key))
        return false;
    *ret = template_bool(template_get(map, key) != NULL);
    return true;
}

/* Sorted, where Go has them in any order. */
bool template_fn_keys(const template_call *c, template_value *ret)
{
    const template_value *map;
    template_value *at;
    if (!template_map_at(c, 0, &map) || !template_new_list(c, map->map.len, &at, ret))
        return false;
    for (size_t i = 0; i < map->map.len; i++)
        at[i] = template_text(map->map.at[i].key);
    return true;
}

bool template_fn_values(const template_call *c, template_value *ret)
{
    const template_value *map;
    template_value *at;
    if (!template_map_at(c, 0, &map) || !template_new_list(c, map->map.len, &at, ret))
        return false;
    for (size_t i = 0; i < map->map.len; i++)
        at[i] = map->map.at[i].value;
    return true;
}

/* The part of a list from "from" on, without the last "less". */
static bool part(const template_call *c, size_t from, size_t less, template_value *ret)
{
    const template_value *list;
    if (!template_list_at(c, 0, &list))
        return false;
    *ret = *list;
    if (list->list.len > 0) {
        ret->list.at += from;
        ret->list.len -= from + less;
    }
    return true;
}

bool template_fn_rest(const template_call *c, template_value *ret)
{
    return part(c, 1, 0, ret);
}

bool template_fn_initial(const template_call *c, template_value *ret)
{
    return part(c, 0, 1, ret);
}

bool template_fn_first(const template_call *c, template_value *ret)
{
    const template_value *list;
    if (!template_list_at(c, 0, &list))
        return false;
    *ret = list->list.len > 0 ? list->list.at[0] : (template_value){.kind = TEMPLATE_NIL};
    return true;
}

bool template_fn_last(const template_call *c, template_value *ret)
{
    const template_value *list;
    if (!template_list_at(c, 0, &list))
        return false;
    size_t len = list->list.len;
    *ret = len > 0 ? list->list.at[len - 1] : (template_value){.kind = TEMPLATE_NIL};
    return true;
}

static bool holds(const template_value *at, size_t len, const template_value *v)
{
    for (size_t i = 0; i < len; i++)
        if (equal(&at[i], v))
            return true;
    return false;
}

bool template_fn_has(const template_call *c, template_value *ret)
{
    const template_value *list;
    if (!template_list_at(c, 1, &list))
        return false;
    *ret = template_bool(holds(list->list.at, list->list.len, &c->args[0]));
    return true;
}

bool template_fn_append(const template_call *c, template_value *ret)
{
    const template_value *list;
    template_value *at;
    if (!template_list_at(c, 0, &list) || !template_new_list(c, list->list.len + 1, &at, ret))
        return false;
    for (size_t i = 0; i < list->list.len; i++)
        at[i] = list->list.at[i];
    at[list->list.len] = c->args[1];
    return true;
}

bool template_fn_uniq(const template_call *c, template_value *ret)
{
    const template_value *list;
    template_value *at;
    if (!template_list_at(c, 0, &list) || !template_new_list(c, list->list.len, &at, ret))
        return false;
    ret->list.len = 0;
    for (size_t i = 0; i < list->list.len; i++)
        if (!holds(at, ret->list.len, &list->list.at[i]))
            at[ret->list.len++] = list->list.at[i];
    return true;
}

static int text_order(const void *a, const void *b)
{
    return str_cmp(((const template_value *)a)->text, ((const template_value *)b)->text);
}

bool template_fn_sortAlpha(const template_call *c, template_value *ret)
{
    const template_value *list;
    template_value *at;
    if (!template_list_at(c, 0, &list) || !template_new_list(c, list->list.len, &at, ret))
        return false;
    for (size_t i = 0; i < list->list.len; i++) {
        at[i] = template_text(template_str(c, &list->list.at[i]));
        if (!at[i].text.ptr)
            return false;
    }
    if (list->list.len > 1)
        qsort(at, list->list.len, sizeof *at, text_order);
    return true;
}
