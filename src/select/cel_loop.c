/* SPDX-License-Identifier: Apache-2.0 */
/* Comprehensions and the other nodes that bind names. */
#include "select/cel_functions.h"

/* A value of the wrong kind: the place is known here. */
static cel_value not_a(run *r, const node *n, const char *wanted, cel_value v)
{
    cel_value error =
        cel_failf(r, CEL_NO_SUCH_OVERLOAD, "expected %s, found %s", wanted, cel_kind_name(v.kind));
    error.len = n->at;
    return error;
}

static cel_value not_bool(run *r, const node *n, cel_value v)
{
    return not_a(r, n, "a bool", v);
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

/* What the loop makes of the next element that it takes. False with null in *ret at the end, and
 * with the error in *ret when there was one. */
static bool next_value(run *r, const node *n, cel_iter *it, cel_value *ret)
{
    bool filter = n->op == LOOP_FILTER;
    const node *condition = filter ? n->items[1] : n->count == 3 ? n->items[2] : NULL;
    while (step(r, n, it)) {
        cel_value take = condition ? eval(r, condition) : cel_bool(true);
        if (take.kind != CEL_BOOL) {
            *ret = is_error(take) ? take : not_bool(r, condition, take);
            return false;
        }
        if (!take.b)
            continue;
        *ret = filter ? r->locals[n->slot] : eval(r, n->items[1]);
        return !is_error(*ret);
    }
    *ret = r->stopped ? r->fatal : cel_null();
    return false;
}

static cel_value loop_list(run *r, const node *n, cel_iter *it)
{
    cel_value *items = cel_alloc(r, it->len, sizeof *items);
    if (!items)
        return r->fatal;
    size_t len = 0;
    cel_value v;
    while (next_value(r, n, it, &v))
        items[len++] = v;
    return is_error(v) ? v : cel_native_list(r, items, len);
}

static cel_value loop_map(run *r, const node *n, cel_iter *it)
{
    cel_entry *entries = cel_alloc(r, it->len, sizeof *entries);
    if (!entries)
        return r->fatal;
    size_t len = 0;
    cel_value v;
    while (next_value(r, n, it, &v))
        entries[len++] = (cel_entry){r->locals[n->slot], v};
    return is_error(v) ? v : cel_native_map(r, entries, len);
}

/* Each element gives a map; all of them together are the result. */
static cel_value loop_entries(run *r, const node *n, cel_iter *it)
{
    cel_entry *entries = NULL;
    size_t len = 0;
    size_t cap = 0;
    cel_value v;
    while (next_value(r, n, it, &v)) {
        if (v.kind != CEL_MAP)
            return not_a(r, n->items[1], "a map", v);
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
    if (is_error(v))
        return v;
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
    if (range.kind != CEL_LIST && range.kind != CEL_MAP)
        return not_a(r, n, "a list or map", range);
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
    if (v.kind != CEL_OPTIONAL)
        return not_a(r, n, "an optional value", v);
    if (!v.inner)
        return v;
    r->locals[n->slot] = *v.inner;
    cel_value result = eval(r, n->items[1]);
    bool flat = n->op != 0;
    if (is_error(result) || (flat && result.kind == CEL_OPTIONAL))
        return result;
    if (flat)
        return not_a(r, n->items[1], "an optional value", result);
    return cel_make_optional(r, result);
}
