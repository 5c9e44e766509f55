/* SPDX-License-Identifier: Apache-2.0 */
#include "model/values.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/num.h"

#define DECIMALS_MOST 9

/* A decimal number: sign, digits, at most nine digits behind the point. In units of 10^-9. */
typedef struct decimal {
    bool negative;
    unsigned __int128 nanos;
} decimal;

static const unsigned __int128 nanos_most = (unsigned __int128)INT64_MAX * 1000000000u;

/* Reads as many characters as belong to the number; the rest stays in *text. */
static bool cut_decimal(str *text, decimal *ret, err *error)
{
    str all = *text;
    size_t at = 0;
    *ret = (decimal){0};
    if (at < all.len && (all.ptr[at] == '+' || all.ptr[at] == '-'))
        ret->negative = all.ptr[at++] == '-';
    size_t digits = 0;
    size_t decimals = 0;
    bool point = false;
    for (; at < all.len; at++) {
        char c = all.ptr[at];
        if (c == '.' && !point) {
            point = true;
            continue;
        }
        if (c < '0' || c > '9')
            break;
        digits++;
        decimals += point;
        if (decimals > DECIMALS_MOST && c != '0')
            return err_set(error, "found more than nine decimals");
        if (decimals > DECIMALS_MOST)
            continue;
        ret->nanos = ret->nanos * 10 + (unsigned)(c - '0');
        if (ret->nanos > nanos_most)
            return err_set(error, "found a number beyond 2^63");
    }
    if (digits == 0)
        return err_set(error, "found no number");
    for (size_t i = decimals < DECIMALS_MOST ? decimals : DECIMALS_MOST; i < DECIMALS_MOST; i++)
        ret->nanos *= 10;
    if (ret->nanos > nanos_most)
        return err_set(error, "found a number beyond 2^63");
    *text = str_part(all, at, SIZE_MAX);
    return true;
}

/* ---- quantities ---- */

static const struct {
    str suffix;
    int64_t multiply;
    int64_t divide;
} suffixes[] = {
    {{"", 0}, 1, 1},
    {{"n", 1}, 1, 1000000000},
    {{"u", 1}, 1, 1000000},
    {{"m", 1}, 1, 1000},
    {{"k", 1}, 1000, 1},
    {{"M", 1}, 1000000, 1},
    {{"G", 1}, 1000000000, 1},
    {{"T", 1}, 1000000000000, 1},
    {{"P", 1}, 1000000000000000, 1},
    {{"E", 1}, 1000000000000000000, 1},
    {{"Ki", 2}, INT64_C(1) << 10, 1},
    {{"Mi", 2}, INT64_C(1) << 20, 1},
    {{"Gi", 2}, INT64_C(1) << 30, 1},
    {{"Ti", 2}, INT64_C(1) << 40, 1},
    {{"Pi", 2}, INT64_C(1) << 50, 1},
    {{"Ei", 2}, INT64_C(1) << 60, 1},
};

/* "e3", "E-6": powers of ten. */
static bool exponent_scale(str text, int64_t *ret_multiply, int64_t *ret_divide)
{
    int64_t power;
    if (text.len < 2 || (text.ptr[0] != 'e' && text.ptr[0] != 'E') ||
        !num_parse(str_part(text, 1, SIZE_MAX), &power) || power > 18 || power < -9)
        return false;
    *ret_multiply = *ret_divide = 1;
    for (int64_t i = 0; i < power; i++)
        *ret_multiply *= 10;
    for (int64_t i = 0; i > power; i--)
        *ret_divide *= 10;
    return true;
}

static bool suffix_scale(str text, int64_t *ret_multiply, int64_t *ret_divide)
{
    for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++) {
        if (str_eq(suffixes[i].suffix, text)) {
            *ret_multiply = suffixes[i].multiply;
            *ret_divide = suffixes[i].divide;
            return true;
        }
    }
    return exponent_scale(text, ret_multiply, ret_divide);
}

bool quantity_parse(str text, quantity *ret, err *error)
{
    str rest = text;
    decimal number;
    int64_t multiply;
    int64_t divide;
    if (!cut_decimal(&rest, &number, error))
        return false;
    if (!suffix_scale(rest, &multiply, &divide))
        return err_set(error, "found the unknown suffix \"%.*s\"", STR_ARG(rest));
    if (number.nanos > nanos_most / (unsigned __int128)multiply)
        return err_set(error, "found a number beyond 2^63");
    /* Like Kubernetes, what is smaller than a billionth is rounded up. */
    unsigned __int128 nanos = number.nanos * (unsigned __int128)multiply;
    nanos = (nanos + (unsigned __int128)(divide - 1)) / (unsigned __int128)divide;
    int64_t units = (int64_t)(nanos / 1000000000u);
    int32_t rest_nanos = (int32_t)(nanos % 1000000000u);
    int sign = number.negative ? -1 : 1;
    *ret = (quantity){.text = text, .units = sign * units, .nanos = sign * rest_nanos};
    return true;
}

int quantity_cmp(quantity a, quantity b)
{
    if (a.units != b.units)
        return a.units < b.units ? -1 : 1;
    return (a.nanos > b.nanos) - (a.nanos < b.nanos);
}

/* ---- int or percent ---- */

static bool percent_parse(str text, int_or_percent *ret, err *error)
{
    decimal number;
    str rest = str_part(text, 0, text.len - 1);
    if (!cut_decimal(&rest, &number, error) || rest.len > 0)
        return err_set(error,
                       "before the percent sign must stand a number of at most nine decimals");
    const unsigned __int128 most = (unsigned __int128)NUM_PERCENT_MAX * AMOUNT_PERCENT_SCALE;
    int64_t value = (int64_t)(number.nanos > most ? most : number.nanos);
    *ret = (int_or_percent){AMOUNT_PERCENT, number.negative ? -value : value, text};
    return true;
}

bool int_or_percent_parse(str text, int_or_percent *ret, err *error)
{
    int64_t count;
    if (str_ends(text, STR("%")))
        return percent_parse(text, ret, error);
    if (!num_parse(text, &count) || count <= 0)
        return err_set(error, "a number in quotes must be whole, above 0 and below 2^63");
    *ret = (int_or_percent){AMOUNT_TEXT_COUNT, count, text};
    return true;
}

/* trunc(trunc(count * p) / 100), at least 1, at most count: as Fleet rounds. */
static int64_t percent_limit(int64_t value, int64_t count)
{
    if (value <= 0)
        return 1;
    __int128 product = (__int128)count * value / AMOUNT_PERCENT_SCALE;
    __int128 part = product / 100;
    if (part <= 0)
        return 1;
    return part > count ? count : (int64_t)part;
}

int64_t int_or_percent_limit(int_or_percent v, int64_t count)
{
    if (count <= 0)
        return 1;
    switch (v.kind) {
    case AMOUNT_NONE: return count;
    case AMOUNT_COUNT: return v.value < 0 ? 0 : v.value > count ? count : v.value;
    case AMOUNT_TEXT_COUNT: return v.value;
    case AMOUNT_PERCENT: return percent_limit(v.value, count);
    }
    return count;
}

/* ---- conditions ---- */

const condition *condition_find(condition_list list, str type)
{
    for (size_t i = 0; i < list.len; i++)
        if (str_eq(list.at[i].type, type))
            return &list.at[i];
    return NULL;
}

void thousandths_print(thousandths value, char out[THOUSANDTHS_BYTES])
{
    uint64_t size = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    int len = snprintf(out, THOUSANDTHS_BYTES, "%s%" PRIu64 ".%03" PRIu64, value < 0 ? "-" : "",
                       size / 1000, size % 1000);
    while (out[len - 1] == '0')
        out[--len] = '\0';
    if (out[len - 1] == '.')
        out[--len] = '\0';
}
