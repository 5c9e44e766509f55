/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "select/cel_functions.h"

#define UNUSED_COUNT (void)count
#define UNUSED_RUN (void)r

/* Extremes over the arguments, or over the one list that is the argument. */
static cel_value extreme(run *r, const cel_value *args, uint32_t count, int wanted)
{
    str name = wanted > 0 ? STR("math.greatest") : STR("math.least");
    size_t len = count;
    if (count == 1 && args[0].kind == CEL_LIST)
        args = cel_items(r, args[0], &len);
    if (!args || !cel_charge(r, len))
        return r->fatal;
    if (len == 0)
        return cel_fail(CEL_INVALID_ARGUMENT, "math: the list is empty");
    cel_value best = args[0];
    for (size_t i = 0; i < len; i++) {
        int order = 0;
        bool number = args[i].kind >= CEL_INT && args[i].kind <= CEL_DOUBLE;
        if (!number || !cel_order(args[i], best, &order))
            return cel_no_overload(r, name, &args[i], 1);
        if (order == wanted)
            best = args[i];
    }
    return best;
}

cel_value cel_fn_greatest(run *r, const cel_value *args, uint32_t count)
{
    return extreme(r, args, count, 1);
}

cel_value cel_fn_least(run *r, const cel_value *args, uint32_t count)
{
    return extreme(r, args, count, -1);
}

cel_value cel_fn_ceil(run *r, const cel_value *args, uint32_t count)
{
    UNUSED_RUN;
    UNUSED_COUNT;
    return cel_double(ceil(args[0].d));
}

cel_value cel_fn_floor(run *r, const cel_value *args, uint32_t count)
{
    UNUSED_RUN;
    UNUSED_COUNT;
    return cel_double(floor(args[0].d));
}

/* Halves away from zero. */
cel_value cel_fn_round(run *r, const cel_value *args, uint32_t count)
{
    UNUSED_RUN;
    UNUSED_COUNT;
    return cel_double(round(args[0].d));
}

cel_value cel_fn_trunc(run *r, const cel_value *args, uint32_t count)
{
    UNUSED_RUN;
    UNUSED_COUNT;
    return cel_double(trunc(args[0].d));
}

cel_value cel_fn_sqrt(run *r, const cel_value *args, uint32_t count)
{
    UNUSED_RUN;
    UNUSED_COUNT;
    cel_value v = args[0];
    return cel_double(sqrt(v.kind == CEL_INT    ? (double)v.i
                           : v.kind == CEL_UINT ? (double)v.u
                                                : v.d));
}

cel_value cel_fn_abs(run *r, const cel_value *args, uint32_t count)
{
    UNUSED_RUN;
    UNUSED_COUNT;
    if (args[0].kind == CEL_DOUBLE)
        return cel_double(fabs(args[0].d));
    if (args[0].kind == CEL_UINT || args[0].i >= 0)
        return args[0];
    return args[0].i == INT64_MIN ? cel_fail(CEL_OVERFLOW, "integer overflow")
                                  : cel_int(-args[0].i);
}

cel_value cel_fn_sign(run *r, const cel_value *args, uint32_t count)
{
    UNUSED_RUN;
    UNUSED_COUNT;
    cel_value v = args[0];
    if (v.kind == CEL_DOUBLE)
        return isnan(v.d) ? v : cel_double((v.d > 0) - (v.d < 0));
    return v.kind == CEL_UINT ? cel_uint(v.u > 0) : cel_int((v.i > 0) - (v.i < 0));
}

cel_value cel_fn_is_nan(run *r, const cel_value *args, uint32_t count)
{
    UNUSED_RUN;
    UNUSED_COUNT;
    return cel_bool(isnan(args[0].d));
}

cel_value cel_fn_is_inf(run *r, const cel_value *args, uint32_t count)
{
    UNUSED_RUN;
    UNUSED_COUNT;
    return cel_bool(isinf(args[0].d));
}

cel_value cel_fn_is_finite(run *r, const cel_value *args, uint32_t count)
{
    UNUSED_RUN;
    UNUSED_COUNT;
    return cel_bool(isfinite(args[0].d));
}

/* Bits are the same for both kinds of integers; the kind of the first argument stays. */
static cel_value bits(const cel_value *args, uint64_t u)
{
    cel_value v = args[0];
    v.u = u;
    return v;
}

cel_value cel_fn_bit_and(run *r, const cel_value *args, uint32_t count)
{
    UNUSED_RUN;
    UNUSED_COUNT;
    return bits(args, args[0].u & args[1].u);
}

cel_value cel_fn_bit_or(run *r, const cel_value *args, uint32_t count)
{
    UNUSED_RUN;
    UNUSED_COUNT;
    return bits(args, args[0].u | args[1].u);
}

cel_value cel_fn_bit_xor(run *r, const cel_value *args, uint32_t count)
{
    UNUSED_RUN;
    UNUSED_COUNT;
    return bits(args, args[0].u ^ args[1].u);
}

cel_value cel_fn_bit_not(run *r, const cel_value *args, uint32_t count)
{
    UNUSED_RUN;
    UNUSED_COUNT;
    return bits(args, ~args[0].u);
}

static cel_value shift(run *r, const cel_value *args, bool left)
{
    int64_t by = args[1].i;
    if (by < 0)
        return cel_failf(r, CEL_INVALID_ARGUMENT, "math: a shift by %lld", (long long)by);
    if (by >= 64)
        return bits(args, 0);
    /* Logical, also for int: the sign is a bit like the others. */
    return bits(args, left ? args[0].u << by : args[0].u >> by);
}

cel_value cel_fn_shift_left(run *r, const cel_value *args, uint32_t count)
{
    UNUSED_COUNT;
    return shift(r, args, true);
}

cel_value cel_fn_shift_right(run *r, const cel_value *args, uint32_t count)
{
    UNUSED_COUNT;
    return shift(r, args, false);
}
