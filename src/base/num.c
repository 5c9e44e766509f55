/* SPDX-License-Identifier: Apache-2.0 */
#include "base/num.h"

#include <assert.h>

bool num_add(int64_t a, int64_t b, int64_t *ret)
{
    int64_t sum;
    if (__builtin_add_overflow(a, b, &sum))
        return false;
    *ret = sum;
    return true;
}

bool num_sub(int64_t a, int64_t b, int64_t *ret)
{
    int64_t difference;
    if (__builtin_sub_overflow(a, b, &difference))
        return false;
    *ret = difference;
    return true;
}

bool num_mul(int64_t a, int64_t b, int64_t *ret)
{
    int64_t product;
    if (__builtin_mul_overflow(a, b, &product))
        return false;
    *ret = product;
    return true;
}

bool num_parse(str text, int64_t *ret)
{
    bool negative = text.len > 0 && text.ptr[0] == '-';
    if (text.len > 0 && (negative || text.ptr[0] == '+'))
        text = str_part(text, 1, text.len);
    if (text.len == 0)
        return false;
    int64_t value = 0;
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] < '0' || text.ptr[i] > '9')
            return false;
        int64_t digit = text.ptr[i] - '0';
        /* Counted downwards, so that the smallest number fits. */
        if (!num_mul(value, 10, &value) || !num_sub(value, digit, &value))
            return false;
    }
    if (!negative && !num_sub(0, value, &value))
        return false;
    *ret = value;
    return true;
}

int64_t num_percent(int64_t n, int64_t p)
{
    assert(n >= 0);
    assert(p >= 0 && p <= NUM_PERCENT_MAX);
    if (n == 0)
        return 0;
    /* n = 100 q + r, so that n * p cannot overflow where the result does not. */
    int64_t whole;
    if (!num_mul(n / 100, p, &whole) || !num_add(whole, n % 100 * p / 100, &whole))
        return INT64_MAX;
    return whole > 0 ? whole : 1;
}
