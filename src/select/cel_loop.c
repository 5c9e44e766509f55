/* SPDX-License-Identifier: Apache-2.0 */
/* Comprehensions and the other nodes that bind names. */
#include "select/cel_functions.h"

static cel_value not_bool(run *r, const node *n, cel_value v)
{
    cel_value error =
        cel_failf(r, CEL_NO_SUCH_OVERLOAD, "expected a bool, found %s", cel_kind_name(v.kind));
    error.len = n->at;
    return error;
}

/* Sets the loop's variables: (element) or (key) with one, (index, element) or (key, value) with
 * two. */
static bool step(run *r, const node *n, cel_iter *it)
{
    cel_value key;
    cel_value value;
    if (r->cost == 0 || !cel_next(it, &key, &value))
        return false;
    bool two = n->name2.len > 0;
    r->locals[n->slot] = two || it->over.kind == CEL_MAP ? key : value;
    if (two)
        r->locals[n->slot + 1] = value;
    return true;
}

/* "decisive" ends the loop; errors wait for it. */
static cel_value loop_logic(run *r, const node *n, cel_iter *it, bool decisive)
{
    cel_value result = cel_bool(!decisive);
    while (step(r, n, it)) {
        cel_value v = eval(r, n->items[1]);
        if (is_bool(v, decisive))
            return v;
        if (v.kind != CEL_BOOL && !is_error(result))
            result = is_error(v) ? v : not_bool(r, n->items[1], v);
    }
    return result;
}

static cel_value loop_one(run *r, const node *n, cel_iter *it)
{
    uint64_t found = 0;
    while (step(r, n, it)) {
        cel_value v = eval(r, n->items[1]);
        if (v.kind != CEL_BOOL)
            return is_error(v) ? v : not_bool(r, n->items[1], v);
        found += v.b;
    }
    return cel_bool(found == 1);
}

/* Whether an element is taken: 1, 0, or -1 with an error in *ret. */
static int taken(run *r, const node *condition, cel_value *ret)
{
    if (!condition)
        return 1;
    cel_value v = eval(r, condition);
    if (v.kind == CEL_BOOL)
        return v.b;
    *ret = is_error(v) ? v : not_bool(r, condition, v);
    return -1;
}

static cel_value loop_list(run *r, const node *n, cel_iter *it)
{
    bool filter = n->op == LOOP_FILTER;
    const node *condition = filter ? n->items[1] : n->count == 3 ? n->items[2] : NULL;
    cel_value *items = cel_alloc(r, it->len, sizeof *items);
    if (!items)
        return r->fatal;
    size_t len = 0;
    cel_value v;
    while (step(r, n, it)) {
        int take = taken(r, condition, &v);
        if (take < 0)
            return v;
        if (take == 0)
            continue;
        v = filter ? r->locals[n->slot] : eval(r, n->items[1]);
        if (is_error(v))
            return v;
        items[len++] = v;
    }
    return r->stopped ? r->fatal : cel_native_list(r, items, len);
}

static cel_value loop_map(run *r, const node *n, cel_iter *it)
{
    cel_entry *entries = cel_alloc(r, it->len, sizeof *entries);
    if (!entries)
        return r->fatal;
    size_t len = 0;
    cel_value v;
    while (step(r, n, it)) {
        int take = taken(r, n->count == 3 ? n->items[2] : NULL, &v);
        if (take < 0)
            return v;
        if (take == 0)
            continue;
        v = eval(r, n->items[1]);
        if (is_error(v))
            return v;
        entries[len++] = (cel_entry){r->locals[n->slot], v};
    }
    return r->stopped ? r->fatal : cel_native_map(r, entries, len);
}

/* Each element gives a map; all of them together are the result. */
static cel_value loop_entries(run *r, const node *n, cel_iter *it)
{
    cel_entry *entries = NULL;
    size_t len = 0;
    size_t cap = 0;
    cel_value v;
    while (step(r, n, it)) {
        int take = taken(r, n->count == 3 ? n->items[2] : NULL, &v);
        if (take < 0)
            return v;
        if (take == 0)
            continue;
        v = eval(r, n->items[1]);
        if (v.kind != CEL_MAP)
            return is_error(v) ? v : not_bool(r, n->items[1], v);
        cel_iter inner = cel_iterate(r, v);
        if (inner.len == 0)
            continue;
        if (len + inner.len > cap) {
            cap = (len + inner.len) * 2;
            cel_entry *more = cel_alloc(r, cap, sizeof *more);
            if (!more)
                return r->fatal;
            if (len > 0)
                memcpy(more, entries, len * sizeof *more);
            entries = more;
        }
        while (cel_charge(r, 1) && cel_next(&inner, &entries[len].key, &entries[len].value))
            len++;
    }
    return r->stopped ? r->fatal : cel_native_map(r, entries, len);
}

static cel_value loop_sort(run *r, const node *n, cel_iter *it)
{
    cel_value *keys = cel_alloc(r, it->len, sizeof *keys);
    cel_value *items = cel_alloc(r, it->len, sizeof *items);
    if (!keys || !items)
        return r->fatal;
    size_t len = 0;
    while (step(r, n, it)) {
        items[len] = r->locals[n->slot];
        keys[len] = eval(r, n->items[1]);
        if (is_error(keys[len]))
            return keys[len];
        len++;
    }
    return r->stopped ? r->fatal : cel_sort_by(r, keys, items, len);
}

cel_value cel_run_loop(run *r, const node *n)
{
    cel_value range = eval(r, n->items[0]);
    if (is_error(range))
        return range;
    if (range.kind != CEL_LIST && range.kind != CEL_MAP) {
        cel_value error = cel_failf(r, CEL_NO_SUCH_OVERLOAD, "expected a list or map, found %s",
                                    cel_kind_name(range.kind));
        error.len = n->at;
        return error;
    }
    cel_iter it = cel_iterate(r, range);
    cel_value v = cel_null();
    switch ((loop_kind)n->op) {
    case LOOP_ALL: v = loop_logic(r, n, &it, false); break;
    case LOOP_EXISTS: v = loop_logic(r, n, &it, true); break;
    case LOOP_EXISTS_ONE: v = loop_one(r, n, &it); break;
    case LOOP_FILTER:
    case LOOP_MAP: v = loop_list(r, n, &it); break;
    case LOOP_TRANSFORM_MAP: v = loop_map(r, n, &it); break;
    case LOOP_TRANSFORM_ENTRY: v = loop_entries(r, n, &it); break;
    case LOOP_SORT_BY: v = loop_sort(r, n, &it); break;
    }
    if (is_error(v) && v.len == AT_UNKNOWN)
        v.len = n->at;
    return v;
}

/* An error that is bound hurts only who uses it: as if the value were computed on first use. */
cel_value cel_run_bind(run *r, const node *n)
{
    r->locals[n->slot] = eval(r, n->items[0]);
    return eval(r, n->items[1]);
}

cel_value cel_run_block(run *r, const node *n)
{
    for (uint32_t i = 0; i + 1 < n->count; i++)
        r->locals[n->slot + i] = eval(r, n->items[i]);
    return eval(r, n->items[n->count - 1]);
}

cel_value cel_run_opt_map(run *r, const node *n)
{
    cel_value v = eval(r, n->items[0]);
    if (is_error(v))
        return v;
    if (v.kind != CEL_OPTIONAL) {
        cel_value error = cel_failf(r, CEL_NO_SUCH_OVERLOAD, "expected an optional value, found %s",
                                    cel_kind_name(v.kind));
        error.len = n->at;
        return error;
    }
    if (!v.inner)
        return v;
    r->locals[n->slot] = *v.inner;
    cel_value result = eval(r, n->items[1]);
    bool flat = n->op != 0;
    if (is_error(result) || (flat && result.kind == CEL_OPTIONAL))
        return result;
    if (flat) {
        cel_value error = cel_failf(r, CEL_NO_SUCH_OVERLOAD, "expected an optional value, found %s",
                                    cel_kind_name(result.kind));
        error.len = n->at;
        return error;
    }
    return cel_make_optional(r, result);
}
