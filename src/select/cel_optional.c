/* SPDX-License-Identifier: Apache-2.0 */
#include "select/cel_functions.h"

cel_value cel_make_optional(run *r, cel_value v)
{
    cel_value *inner = cel_alloc(r, 1, sizeof *inner);
    if (!inner)
        return r->fatal;
    *inner = v;
    return (cel_value){.kind = CEL_OPTIONAL, .inner = inner};
}

cel_value cel_fn_optional_of(run *r, const cel_value *args, uint32_t count)
{
    (void)count;
    return cel_make_optional(r, args[0]);
}

cel_value cel_fn_optional_none(run *r, const cel_value *args, uint32_t count)
{
    (void)r;
    (void)args;
    (void)count;
    return (cel_value){.kind = CEL_OPTIONAL};
}

static bool is_zero(cel_value v)
{
    switch ((cel_kind)v.kind) {
    case CEL_NULL: return true;
    case CEL_BOOL: return !v.b;
    case CEL_INT:
    case CEL_UINT:
    case CEL_DURATION: return v.u == 0;
    case CEL_DOUBLE: return v.d == 0;
    case CEL_STRING:
    case CEL_BYTES: return v.len == 0;
    case CEL_LIST:
    case CEL_MAP: return cel_size(v) == 0;
    case CEL_TIMESTAMP: return v.i == 0 && v.len == 0;
    case CEL_OPTIONAL: return !v.inner;
    case CEL_TYPE:
    case CEL_IP:
    case CEL_CIDR:
    case CEL_ERROR:
    case CEL_DYN: break;
    }
    return false;
}

cel_value cel_fn_optional_nonzero(run *r, const cel_value *args, uint32_t count)
{
    (void)count;
    return is_zero(args[0]) ? (cel_value){.kind = CEL_OPTIONAL} : cel_make_optional(r, args[0]);
}

cel_value cel_fn_has_value(run *r, const cel_value *args, uint32_t count)
{
    (void)r;
    (void)count;
    return cel_bool(args[0].inner != NULL);
}

cel_value cel_fn_value(run *r, const cel_value *args, uint32_t count)
{
    (void)r;
    (void)count;
    return args[0].inner ? *args[0].inner
                         : cel_fail(CEL_INVALID_ARGUMENT, "the optional has no value");
}

cel_value cel_fn_or(run *r, const cel_value *args, uint32_t count)
{
    (void)r;
    (void)count;
    return args[0].inner ? args[0] : args[1];
}

cel_value cel_fn_or_value(run *r, const cel_value *args, uint32_t count)
{
    (void)r;
    (void)count;
    return args[0].inner ? *args[0].inner : args[1];
}

/* The values of those elements that have one. */
cel_value cel_fn_unwrap(run *r, const cel_value *args, uint32_t count)
{
    (void)count;
    size_t len;
    const cel_value *items = cel_items(r, args[0], &len);
    cel_value *out = items && cel_charge(r, len) ? cel_alloc(r, len, sizeof *out) : NULL;
    if (!out)
        return r->fatal;
    size_t kept = 0;
    for (size_t i = 0; i < len; i++) {
        if (items[i].kind != CEL_OPTIONAL)
            return cel_no_overload(r, STR("unwrap: element"), &items[i], 1);
        if (items[i].inner)
            out[kept++] = *items[i].inner;
    }
    return cel_native_list(r, out, kept);
}
