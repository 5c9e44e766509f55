/* SPDX-License-Identifier: Apache-2.0 */
/* Functions on lists, also as sets. */
#include "select/cel_functions.h"

cel_value cel_fn_range(run *r, const cel_value *args, uint32_t count)
{
    (void)count;
    size_t len = args[0].i > 0 ? (size_t)args[0].i : 0;
    cel_value *items = cel_charge(r, len) ? cel_alloc(r, len, sizeof *items) : NULL;
    if (!items)
        return r->fatal;
    for (size_t i = 0; i < len; i++)
        items[i] = cel_int((int64_t)i);
    return cel_native_list(r, items, len);
}

cel_value cel_fn_slice(run *r, const cel_value *args, uint32_t count)
{
    (void)count;
    int64_t from = args[1].i;
    int64_t to = args[2].i;
    size_t len;
    const cel_value *items = cel_items(r, args[0], &len);
    if (!items)
        return r->fatal;
    if (from < 0 || to < from || (uint64_t)to > len)
        return cel_failf(r, CEL_OUT_OF_RANGE, "slice(%lld, %lld) of a list with %zu elements",
                         (long long)from, (long long)to, len);
    return cel_native_list(r, items + from, (size_t)(to - from));
}

/* Elements after flattening "depth" levels; with out, they are also written there. */
static size_t flatten(run *r, cel_value list, int64_t depth, cel_value *out)
{
    if (r->depth >= LIMIT_CEL_VALUE_DEPTH) {
        cel_stop(r, CEL_COST_EXCEEDED, "values are nested too deep");
        return 0;
    }
    r->depth++;
    size_t len = 0;
    cel_iter it = cel_iterate(r, list);
    cel_value key;
    cel_value item;
    while (cel_charge(r, 1) && cel_next(&it, &key, &item)) {
        if (item.kind == CEL_LIST && depth > 0) {
            len += flatten(r, item, depth - 1, out ? out + len : NULL);
        } else {
            if (out)
                out[len] = item;
            len++;
        }
    }
    r->depth--;
    return len;
}

cel_value cel_fn_flatten(run *r, const cel_value *args, uint32_t count)
{
    int64_t depth = count > 1 ? args[1].i : 1;
    if (depth < 0)
        return cel_fail(CEL_INVALID_ARGUMENT, "flatten: the depth is negative");
    size_t len = flatten(r, args[0], depth, NULL);
    cel_value *items = r->stopped ? NULL : cel_alloc(r, len, sizeof *items);
    if (!items)
        return r->fatal;
    flatten(r, args[0], depth, items);
    return r->stopped ? r->fatal : cel_native_list(r, items, len);
}

cel_value cel_fn_distinct(run *r, const cel_value *args, uint32_t count)
{
    (void)count;
    size_t len;
    const cel_value *items = cel_items(r, args[0], &len);
    cel_value *out = items ? cel_alloc(r, len, sizeof *out) : NULL;
    if (!out)
        return r->fatal;
    size_t kept = 0;
    for (size_t i = 0; i < len; i++) {
        size_t k = 0;
        while (k < kept && cel_charge(r, 1) && !cel_same(r, out[k], items[i]))
            k++;
        if (k == kept)
            out[kept++] = items[i];
    }
    return r->stopped ? r->fatal : cel_native_list(r, out, kept);
}

/* Merges two sorted halves of positions; false when two keys have no order. */
static bool merge(run *r, const cel_value *keys, uint32_t *from, uint32_t *to, const size_t span[3])
{
    size_t a = span[0];
    size_t b = span[1];
    for (size_t i = span[0]; i < span[2]; i++) {
        int order = 0;
        if (a < span[1] && keys[from[a]].kind == CEL_STRING)
            cel_charge_bytes(r, keys[from[a]].len);
        if (a < span[1] && b < span[2] && !cel_order(keys[from[a]], keys[from[b]], &order))
            return false;
        bool left = b >= span[2] || (a < span[1] && order != 1);
        to[i] = left ? from[a++] : from[b++];
    }
    return cel_charge(r, span[2] - span[0]);
}

cel_value cel_sort_by(run *r, const cel_value *keys, cel_value *items, size_t len)
{
    if (len > UINT32_MAX)
        return cel_cost_exceeded(r);
    uint32_t *order = cel_alloc(r, len, sizeof *order);
    uint32_t *other = cel_alloc(r, len, sizeof *other);
    cel_value *out = cel_alloc(r, len, sizeof *out);
    if (!order || !other || !out)
        return r->fatal;
    for (size_t i = 0; i < len; i++) {
        order[i] = (uint32_t)i;
        int any;
        if (!cel_order(keys[0], keys[i], &any))
            return cel_fail(CEL_INVALID_ARGUMENT,
                            "sort: the elements must be of one type that has an order");
    }
    for (size_t width = 1; width < len; width *= 2) {
        for (size_t at = 0; at < len; at += 2 * width) {
            size_t middle = at + width < len ? at + width : len;
            size_t end = at + 2 * width < len ? at + 2 * width : len;
            if (!merge(r, keys, order, other, (const size_t[3]){at, middle, end}))
                return r->stopped ? r->fatal : cel_fail(CEL_INVALID_ARGUMENT, "sort: no order");
        }
        uint32_t *swap = order;
        order = other;
        other = swap;
    }
    for (size_t i = 0; i < len; i++)
        out[i] = items[order[i]];
    return cel_native_list(r, out, len);
}

cel_value cel_fn_sort(run *r, const cel_value *args, uint32_t count)
{
    (void)count;
    size_t len;
    const cel_value *items = cel_items(r, args[0], &len);
    if (!items)
        return r->fatal;
    cel_value *copy = cel_alloc(r, len, sizeof *copy);
    if (!copy)
        return r->fatal;
    memcpy(copy, items, len * sizeof *copy);
    return cel_sort_by(r, items, copy, len);
}

cel_value cel_fn_reverse_list(run *r, const cel_value *args, uint32_t count)
{
    (void)count;
    size_t len;
    const cel_value *items = cel_items(r, args[0], &len);
    cel_value *out = items && cel_charge(r, len) ? cel_alloc(r, len, sizeof *out) : NULL;
    if (!out)
        return r->fatal;
    for (size_t i = 0; i < len; i++)
        out[i] = items[len - 1 - i];
    return cel_native_list(r, out, len);
}

static cel_value element(run *r, cel_value list, bool last)
{
    size_t len = cel_size(list);
    if (len == 0)
        return (cel_value){.kind = CEL_OPTIONAL};
    cel_value key;
    cel_value v;
    if (last && !cel_charge(r, len / 8))
        return r->fatal;
    cel_at(list, last ? len - 1 : 0, r->arena, &key, &v);
    return cel_make_optional(r, v);
}

cel_value cel_fn_first(run *r, const cel_value *args, uint32_t count)
{
    (void)count;
    return element(r, args[0], false);
}

cel_value cel_fn_last(run *r, const cel_value *args, uint32_t count)
{
    (void)count;
    return element(r, args[0], true);
}

/* ---- Sets --------------------------------------------------------------------------------- */

/* Whether all elements of "some", or with any: one of them, are in "all". */
static bool within(run *r, cel_value all, cel_value some, bool any)
{
    cel_iter it = cel_iterate(r, some);
    cel_value key;
    cel_value item;
    while (cel_charge(r, 1) && cel_next(&it, &key, &item))
        if (cel_contains(r, all, item) == any)
            return any;
    return !any;
}

cel_value cel_fn_sets_contains(run *r, const cel_value *args, uint32_t count)
{
    (void)count;
    return cel_bool(within(r, args[0], args[1], false));
}

cel_value cel_fn_sets_equivalent(run *r, const cel_value *args, uint32_t count)
{
    (void)count;
    return cel_bool(within(r, args[0], args[1], false) && within(r, args[1], args[0], false));
}

cel_value cel_fn_sets_intersects(run *r, const cel_value *args, uint32_t count)
{
    (void)count;
    return cel_bool(within(r, args[0], args[1], true));
}
