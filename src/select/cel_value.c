/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <math.h>
#include <yyjson.h>

#include "base/strmap.h"
#include "select/cel_internal.h"

_Static_assert(sizeof(cel_value) == 16, "a value travels in two registers");

const char *cel_kind_name(cel_kind kind)
{
    static const char *const names[] = {
#define X(kind, text) text,
        CEL_KINDS(X)
#undef X
    };
    return names[kind];
}

const char *cel_code_name(cel_code code)
{
    static const char *const names[] = {
#define X(code, text) text,
        CEL_CODES(X)
#undef X
    };
    return names[code];
}

/* ---- Making values ------------------------------------------------------------------------ */

cel_value cel_null(void)
{
    return (cel_value){.kind = CEL_NULL};
}

cel_value cel_bool(bool value)
{
    return (cel_value){.kind = CEL_BOOL, .u = value};
}

cel_value cel_int(int64_t value)
{
    return (cel_value){.kind = CEL_INT, .i = value};
}

cel_value cel_uint(uint64_t value)
{
    return (cel_value){.kind = CEL_UINT, .u = value};
}

cel_value cel_double(double value)
{
    return (cel_value){.kind = CEL_DOUBLE, .d = value};
}

static cel_value text_value(cel_kind kind, str text)
{
    if (text.len > UINT32_MAX)
        return cel_fail(CEL_OUT_OF_RANGE, "text longer than 4 GiB");
    return (cel_value){.kind = (uint8_t)kind, .len = (uint32_t)text.len, .text = text.ptr};
}

cel_value cel_string(str text)
{
    return text_value(CEL_STRING, text);
}

cel_value cel_bytes(str bytes)
{
    return text_value(CEL_BYTES, bytes);
}

cel_value cel_timestamp(moment m)
{
    return (cel_value){.kind = CEL_TIMESTAMP, .len = (uint32_t)m.nanos, .i = m.seconds};
}

cel_value cel_duration(int64_t ns)
{
    return (cel_value){.kind = CEL_DURATION, .i = ns};
}

cel_value cel_type_value(cel_kind kind)
{
    return (cel_value){.kind = CEL_TYPE, .i = kind};
}

cel_value cel_foreign_list(const cel_object *object)
{
    return (cel_value){.kind = CEL_LIST, .form = FORM_FOREIGN, .object = object};
}

cel_value cel_foreign_map(const cel_object *object)
{
    return (cel_value){.kind = CEL_MAP, .form = FORM_FOREIGN, .object = object};
}

cel_value cel_from_json(struct yyjson_val *json)
{
    switch (yyjson_get_type(json)) {
    case YYJSON_TYPE_BOOL: return cel_bool(unsafe_yyjson_get_bool(json));
    case YYJSON_TYPE_NUM:
        if (unsafe_yyjson_is_real(json))
            return cel_double(unsafe_yyjson_get_real(json));
        if (unsafe_yyjson_is_uint(json) && unsafe_yyjson_get_uint(json) > INT64_MAX)
            return cel_uint(unsafe_yyjson_get_uint(json));
        return cel_int(unsafe_yyjson_get_sint(json));
    case YYJSON_TYPE_STR:
        return cel_string((str){unsafe_yyjson_get_str(json), unsafe_yyjson_get_len(json)});
    case YYJSON_TYPE_ARR: return (cel_value){.kind = CEL_LIST, .form = FORM_JSON, .ptr = json};
    case YYJSON_TYPE_OBJ: return (cel_value){.kind = CEL_MAP, .form = FORM_JSON, .ptr = json};
    }
    return cel_null();
}

str cel_text(cel_value v)
{
    if (v.kind == CEL_ERROR)
        return str_of(v.text ? v.text : "");
    return (str){v.text ? v.text : "", v.len};
}

moment cel_moment(cel_value v)
{
    return (moment){v.i, (int32_t)v.len};
}

/* ---- Keys --------------------------------------------------------------------------------- */

bool cel_is_key(cel_value v)
{
    return v.kind == CEL_BOOL || v.kind == CEL_INT || v.kind == CEL_UINT || v.kind == CEL_STRING;
}

/* A double that is a whole number is the int or uint it equals. False when it equals none. */
static bool whole(cel_value *v)
{
    if (v->kind != CEL_DOUBLE)
        return true;
    double d = v->d;
    if (!(d >= -0x1p63 && d < 0x1p64) || d != floor(d))
        return false;
    *v = d < 0x1p63 ? cel_int((int64_t)d) : cel_uint((uint64_t)d);
    return true;
}

/* Equal keys have equal hashes, also when one is an int and the other a uint. */
static uint32_t key_hash(cel_value v)
{
    uint64_t h = v.kind == CEL_STRING ? str_hash(cel_text(v)) : v.u * UINT64_C(0x9E3779B97F4A7C15);
    return (uint32_t)(h >> 32 ^ h);
}

static bool key_equal(cel_value a, cel_value b)
{
    if (a.kind == b.kind)
        return a.kind == CEL_STRING ? str_eq(cel_text(a), cel_text(b)) : a.u == b.u;
    bool numbers =
        (a.kind == CEL_INT && b.kind == CEL_UINT) || (a.kind == CEL_UINT && b.kind == CEL_INT);
    return numbers && a.u == b.u && a.i >= 0;
}

#define INDEX_FROM 9

static cel_index_table *index_new(run *r, size_t len)
{
    size_t slots = 16;
    while (slots < len * 2)
        slots *= 2;
    cel_index_table *t = cel_alloc(r, 1, sizeof *t + slots * sizeof t->slots[0]);
    if (t)
        t->mask = (uint32_t)(slots - 1);
    return t;
}

/* The slot of an equal key, or the empty one where it belongs. */
static uint32_t *index_slot(cel_index_table *t, const char *base, size_t stride, cel_value key)
{
    uint32_t at = key_hash(key) & t->mask;
    while (t->slots[at]) {
        const cel_value *other = (const void *)(base + (t->slots[at] - 1) * stride);
        if (key_equal(*other, key))
            break;
        at = (at + 1) & t->mask;
    }
    return &t->slots[at];
}

static bool index_has(const cel_index_table *t, const void *base, size_t stride, cel_value key,
                      size_t *ret)
{
    uint32_t at = key_hash(key) & t->mask;
    for (; t->slots[at]; at = (at + 1) & t->mask) {
        *ret = t->slots[at] - 1;
        if (key_equal(*(const cel_value *)(const void *)((const char *)base + *ret * stride), key))
            return true;
    }
    return false;
}

/* ---- Lists and maps ----------------------------------------------------------------------- */

cel_value cel_native_list(run *r, const cel_value *items, size_t len)
{
    cel_list *list = cel_alloc(r, 1, sizeof *list);
    if (!list)
        return r->fatal;
    list->len = len;
    list->items = items;
    return (cel_value){.kind = CEL_LIST, .form = FORM_NATIVE, .ptr = list};
}

void cel_index_list(run *r, cel_value v)
{
    /* Lists that are folded are ours to complete. */
    cel_list *list = (cel_list *)(uintptr_t)v.ptr;
    if (list->len < INDEX_FROM || list->len > UINT32_MAX / 4)
        return;
    for (size_t i = 0; i < list->len; i++)
        if (!cel_is_key(list->items[i]))
            return;
    cel_index_table *t = index_new(r, list->len);
    for (size_t i = 0; t && i < list->len; i++) {
        uint32_t *slot =
            index_slot(t, (const char *)list->items, sizeof(cel_value), list->items[i]);
        if (!*slot)
            *slot = (uint32_t)i + 1;
    }
    list->index = t;
}

static cel_value bad_key(run *r, cel_value key)
{
    return cel_failf(r, CEL_INVALID_ARGUMENT,
                     "a key of type %s: expected bool, int, uint or string",
                     cel_kind_name(key.kind));
}

static cel_value duplicate(run *r, cel_value key)
{
    buf text = BUF(256);
    cel_render(r, &text, key);
    cel_value v =
        cel_failf(r, CEL_DUPLICATE_KEY, "the key %.*s is there twice", STR_ARG(buf_str(&text)));
    buf_done(&text);
    return v;
}

cel_value cel_native_map(run *r, const cel_entry *entries, size_t len)
{
    cel_map *map = cel_alloc(r, 1, sizeof *map);
    cel_index_table *t = NULL;
    if (map && len >= INDEX_FROM)
        t = len < UINT32_MAX / 4 ? index_new(r, len) : NULL;
    if (!map || (len >= INDEX_FROM && !t) || !cel_charge(r, len))
        return r->fatal;
    for (size_t i = 0; i < len; i++) {
        if (!cel_is_key(entries[i].key))
            return bad_key(r, entries[i].key);
        if (t) {
            uint32_t *slot =
                index_slot(t, (const char *)entries, sizeof(cel_entry), entries[i].key);
            if (*slot)
                return duplicate(r, entries[i].key);
            *slot = (uint32_t)i + 1;
            continue;
        }
        for (size_t k = 0; k < i; k++)
            if (key_equal(entries[k].key, entries[i].key))
                return duplicate(r, entries[i].key);
    }
    *map = (cel_map){len, entries, t};
    return (cel_value){.kind = CEL_MAP, .form = FORM_NATIVE, .ptr = map};
}

cel_value cel_list_of(arena *a, const cel_value *items, size_t count)
{
    run r = cel_run_in(a);
    return cel_native_list(&r, items, count);
}

cel_value cel_map_of(arena *a, const cel_entry *entries, size_t count)
{
    run r = cel_run_in(a);
    return cel_native_map(&r, entries, count);
}

size_t cel_size(cel_value v)
{
    assert(v.kind == CEL_LIST || v.kind == CEL_MAP);
    if (v.form == FORM_FOREIGN)
        return v.object->ops->size(v.object);
    if (v.form == FORM_JSON)
        return unsafe_yyjson_get_len((void *)(uintptr_t)v.ptr);
    return v.kind == CEL_LIST ? ((const cel_list *)v.ptr)->len : ((const cel_map *)v.ptr)->len;
}

static bool json_get(cel_value map, cel_value key, cel_value *ret)
{
    yyjson_val *object = (yyjson_val *)(uintptr_t)map.ptr;
    yyjson_val *found =
        key.kind == CEL_STRING ? yyjson_obj_getn(object, cel_text(key).ptr, key.len) : NULL;
    if (found)
        *ret = cel_from_json(found);
    return found != NULL;
}

static bool native_get(const cel_map *map, cel_value key, cel_value *ret)
{
    size_t i = 0;
    bool found = false;
    if (map->index) {
        found = index_has(map->index, map->entries, sizeof(cel_entry), key, &i);
    } else {
        while (i < map->len && !key_equal(map->entries[i].key, key))
            i++;
        found = i < map->len;
    }
    if (found)
        *ret = map->entries[i].value;
    return found;
}

bool cel_get(cel_value map, cel_value key, arena *scratch, cel_value *ret)
{
    if (map.kind != CEL_MAP || !whole(&key) || !cel_is_key(key))
        return false;
    if (map.form == FORM_JSON)
        return json_get(map, key, ret);
    if (map.form == FORM_FOREIGN)
        return map.object->ops->get(map.object, key, scratch, ret);
    return native_get(map.ptr, key, ret);
}

/* The walk through a JSON object, and the hash of a long key, are paid for. */
bool cel_lookup(run *r, cel_value map, cel_value key, cel_value *ret)
{
    if (map.form == FORM_JSON && map.kind == CEL_MAP) {
        size_t len = cel_size(map);
        if (len >= 32 && !cel_charge(r, len / 16))
            return false;
    }
    if (key.kind == CEL_STRING && !cel_charge_bytes(r, key.len))
        return false;
    return cel_get(map, key, r->arena, ret);
}

void cel_at(cel_value v, size_t i, arena *scratch, cel_value *ret_key, cel_value *ret)
{
    assert(i < cel_size(v));
    if (v.form == FORM_FOREIGN) {
        v.object->ops->at(v.object, i, scratch, ret_key, ret);
    } else if (v.form == FORM_NATIVE && v.kind == CEL_LIST) {
        *ret = ((const cel_list *)v.ptr)->items[i];
    } else if (v.form == FORM_NATIVE) {
        *ret_key = ((const cel_map *)v.ptr)->entries[i].key;
        *ret = ((const cel_map *)v.ptr)->entries[i].value;
    } else if (v.kind == CEL_LIST) {
        *ret = cel_from_json(yyjson_arr_get((yyjson_val *)(uintptr_t)v.ptr, i));
    } else {
        yyjson_val *key = unsafe_yyjson_get_first((yyjson_val *)(uintptr_t)v.ptr);
        while (i-- > 0)
            key = unsafe_yyjson_get_next(key + 1);
        *ret_key = cel_from_json(key);
        *ret = cel_from_json(key + 1);
    }
}

cel_iter cel_iterate(run *r, cel_value container)
{
    cel_iter it = {.over = container, .len = cel_size(container), .arena = r->arena};
    if (container.form == FORM_JSON && it.len > 0)
        it.json = unsafe_yyjson_get_first((yyjson_val *)(uintptr_t)container.ptr);
    return it;
}

bool cel_next(cel_iter *it, cel_value *key, cel_value *value)
{
    if (it->i >= it->len)
        return false;
    size_t i = it->i++;
    *key = cel_int((int64_t)i);
    if (!it->json) {
        cel_at(it->over, i, it->arena, key, value);
        return true;
    }
    yyjson_val *here = (yyjson_val *)(uintptr_t)it->json;
    if (it->over.kind == CEL_MAP)
        *key = cel_from_json(here++);
    *value = cel_from_json(here);
    it->json = unsafe_yyjson_get_next(here);
    return true;
}

const cel_value *cel_items(run *r, cel_value list, size_t *ret_len)
{
    size_t len = cel_size(list);
    *ret_len = len;
    if (list.form == FORM_NATIVE)
        return len > 0 ? ((const cel_list *)list.ptr)->items : &r->fatal;
    cel_value *items = cel_charge(r, len) ? cel_alloc(r, len, sizeof *items) : NULL;
    if (!items)
        return NULL;
    cel_iter it = cel_iterate(r, list);
    cel_value key;
    for (size_t i = 0; cel_next(&it, &key, &items[i]); i++)
        if (is_error(items[i]))
            items[i] = cel_null();
    return items;
}

/* ---- Equality and order ------------------------------------------------------------------- */

static bool is_number(cel_value v)
{
    return v.kind >= CEL_INT && v.kind <= CEL_DOUBLE;
}

/* An integer meets a double as a double, as in all other implementations: beyond 2^53 neighbours
 * are equal. */
static double as_double(cel_value v)
{
    return v.kind == CEL_INT ? (double)v.i : v.kind == CEL_UINT ? (double)v.u : v.d;
}

static int order_numbers(cel_value a, cel_value b)
{
    if (a.kind == CEL_DOUBLE || b.kind == CEL_DOUBLE) {
        double x = as_double(a);
        double y = as_double(b);
        return isnan(x) || isnan(y) ? 2 : (x > y) - (x < y);
    }
    if (a.kind == CEL_INT && (b.kind == CEL_INT || a.i < 0))
        return b.kind == CEL_INT ? (a.i > b.i) - (a.i < b.i) : -1;
    if (b.kind == CEL_INT && b.i < 0)
        return 1;
    return (a.u > b.u) - (a.u < b.u);
}

bool cel_order(cel_value a, cel_value b, int *ret)
{
    if (is_number(a) && is_number(b)) {
        *ret = order_numbers(a, b);
        return true;
    }
    if (a.kind != b.kind)
        return false;
    if (a.kind == CEL_STRING || a.kind == CEL_BYTES)
        *ret = str_cmp(cel_text(a), cel_text(b));
    else if (a.kind == CEL_BOOL)
        *ret = (int)a.b - (int)b.b;
    else if (a.kind == CEL_TIMESTAMP)
        *ret = moment_cmp(cel_moment(a), cel_moment(b));
    else if (a.kind == CEL_DURATION)
        *ret = (a.i > b.i) - (a.i < b.i);
    else
        return false;
    *ret = (*ret > 0) - (*ret < 0);
    return true;
}

static bool same_lists(run *r, cel_value a, cel_value b)
{
    if (cel_size(a) != cel_size(b))
        return false;
    cel_iter x = cel_iterate(r, a);
    cel_iter y = cel_iterate(r, b);
    cel_value key;
    cel_value left;
    cel_value right;
    while (cel_next(&x, &key, &left) && cel_next(&y, &key, &right))
        if (!cel_charge(r, 1) || !cel_same(r, left, right))
            return false;
    return true;
}

static bool same_maps(run *r, cel_value a, cel_value b)
{
    if (cel_size(a) != cel_size(b))
        return false;
    cel_iter x = cel_iterate(r, a);
    cel_value key;
    cel_value left;
    cel_value right;
    while (cel_next(&x, &key, &left))
        if (!cel_charge(r, 1) || !cel_lookup(r, b, key, &right) || !cel_same(r, left, right))
            return false;
    return true;
}

static bool same_nested(run *r, cel_value a, cel_value b)
{
    if (a.ptr == b.ptr && !a.ptr)
        return true;
    if (r->depth >= LIMIT_CEL_VALUE_DEPTH) {
        cel_stop(r, CEL_COST_EXCEEDED, "values are nested too deep");
        return false;
    }
    r->depth++;
    bool same = false;
    if (a.kind == CEL_LIST)
        same = same_lists(r, a, b);
    else if (a.kind == CEL_MAP)
        same = same_maps(r, a, b);
    else if (a.inner && b.inner)
        same = cel_same(r, *a.inner, *b.inner);
    r->depth--;
    return same;
}

bool cel_same(run *r, cel_value a, cel_value b)
{
    if (a.kind != b.kind)
        return is_number(a) && is_number(b) && order_numbers(a, b) == 0;
    switch ((cel_kind)a.kind) {
    case CEL_NULL: return true;
    case CEL_BOOL: return a.b == b.b;
    case CEL_INT:
    case CEL_UINT:
    case CEL_DURATION:
    case CEL_TYPE: return a.u == b.u;
    case CEL_DOUBLE: return a.d == b.d;
    case CEL_TIMESTAMP: return a.i == b.i && a.len == b.len;
    case CEL_IP:
    case CEL_CIDR:
    case CEL_BYTES:
    case CEL_STRING:
        return a.len == b.len && cel_charge_bytes(r, a.len) && str_eq(cel_text(a), cel_text(b));
    case CEL_LIST:
    case CEL_MAP:
    case CEL_OPTIONAL: return same_nested(r, a, b);
    case CEL_ERROR:
    case CEL_DYN: break;
    }
    return false;
}

bool cel_equal(cel_value a, cel_value b, arena *scratch)
{
    run r = cel_run_in(scratch);
    return cel_same(&r, a, b);
}

bool cel_contains(run *r, cel_value list, cel_value item)
{
    const cel_list *native = list.form == FORM_NATIVE ? list.ptr : NULL;
    if (native && native->index) {
        size_t at;
        return whole(&item) && cel_is_key(item) &&
               cel_charge_bytes(r, item.kind == CEL_STRING ? item.len : 0) &&
               index_has(native->index, native->items, sizeof(cel_value), item, &at);
    }
    cel_iter it = cel_iterate(r, list);
    cel_value key;
    cel_value element;
    while (cel_next(&it, &key, &element)) {
        if (cel_same(r, element, item))
            return true;
        if (!cel_charge(r, 1))
            return false;
    }
    return false;
}
