/* SPDX-License-Identifier: Apache-2.0 */
#include "base/duration.h"

#include <stdio.h>

#include "base/num.h"

typedef struct unit {
    str name;
    int64_t ns;
    bool day;
} unit;

/* Longer names first: "ms" is not "m". The two micro signs are U+00B5 and U+03BC. */
static const unit units[] = {
    {STR("ns"), 1, false},
    {STR("us"), DURATION_MICROSECOND, false},
    {STR("\xC2\xB5s"), DURATION_MICROSECOND, false},
    {STR("\xCE\xBCs"), DURATION_MICROSECOND, false},
    {STR("ms"), DURATION_MILLISECOND, false},
    {STR("s"), DURATION_SECOND, false},
    {STR("m"), DURATION_MINUTE, false},
    {STR("h"), DURATION_HOUR, false},
    {STR("d"), DURATION_DAY, true},
};

static size_t digits(str text)
{
    size_t n = 0;
    while (n < text.len && text.ptr[n] >= '0' && text.ptr[n] <= '9')
        n++;
    return n;
}

/* Whole nanoseconds of a fraction of a unit. Go computes them in floating point, and so they are
 * here, lest the same text mean two times: 0.3333333333333333333h is 20m, not a nanosecond less. */
static int64_t fraction_ns(str fraction, int64_t unit_ns)
{
    int64_t value = 0;
    double scale = 1;
    for (size_t i = 0; i < fraction.len; i++) {
        int64_t more;
        if (!num_mul(value, 10, &more) || !num_add(more, fraction.ptr[i] - '0', &more))
            break;
        value = more;
        scale *= 10;
    }
    return (int64_t)((double)value * ((double)unit_ns / scale));
}

/* -number * unit_ns, which fits also for the smallest duration. */
static bool negative_ns(str number, int64_t unit_ns, int64_t *ret)
{
    int64_t value = 0;
    for (size_t i = 0; i < number.len; i++)
        if (!num_mul(value, 10, &value) || !num_sub(value, number.ptr[i] - '0', &value))
            return false;
    return num_mul(value, unit_ns, ret);
}

/* Reads one "number unit" off the front of *text and adds it to *total, which counts downwards so
 * that the smallest duration fits. */
static bool read_part(str *text, bool days, int64_t *total)
{
    size_t whole = digits(*text);
    str number = {text->ptr, whole};
    str rest = str_part(*text, whole, text->len);
    str fraction = STR_EMPTY;
    if (rest.len > 0 && rest.ptr[0] == '.') {
        size_t places = digits(str_part(rest, 1, rest.len));
        fraction = str_part(rest, 1, places);
        rest = str_part(rest, 1 + places, rest.len);
    }
    if (number.len == 0 && fraction.len == 0)
        return false;
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if ((units[i].day && !days) || !str_starts(rest, units[i].name))
            continue;
        int64_t value;
        if (!negative_ns(number, units[i].ns, &value))
            return false;
        *text = str_part(rest, units[i].name.len, rest.len);
        return num_add(*total, value, total) &&
               num_sub(*total, fraction_ns(fraction, units[i].ns), total);
    }
    return false;
}

static bool parse(str text, bool days, int64_t *ret_ns, err *error)
{
    str all = text;
    bool negative = text.len > 0 && text.ptr[0] == '-';
    if (text.len > 0 && (negative || text.ptr[0] == '+'))
        text = str_part(text, 1, text.len);
    int64_t total = 0;
    bool good = text.len > 0;
    if (str_eq(text, STR("0")))
        text = STR_EMPTY;
    while (good && text.len > 0)
        good = read_part(&text, days, &total);
    if (good && !negative)
        good = num_sub(0, total, &total);
    if (!good)
        return err_set(error, "found \"%s\", allowed a duration such as 90s, 5m or 1h30m%s",
                       str_shown(all).text, days ? " or 7d" : "");
    *ret_ns = total;
    return true;
}

bool duration_parse(str text, int64_t *ret_ns, err *error)
{
    return parse(text, false, ret_ns, error);
}

bool duration_parse_days(str text, int64_t *ret_ns, err *error)
{
    return parse(text, true, ret_ns, error);
}

/* value / 10^places with trailing zeros of the fraction left out. */
static size_t put_decimal(char *out, size_t room, uint64_t value, int places, const char *suffix)
{
    uint64_t scale = 1;
    for (int i = 0; i < places; i++)
        scale *= 10;
    uint64_t fraction = value % scale;
    while (places > 0 && fraction % 10 == 0) {
        fraction /= 10;
        places--;
    }
    int written = places > 0
                      ? snprintf(out, room, "%llu.%0*llu%s", (unsigned long long)(value / scale),
                                 places, (unsigned long long)fraction, suffix)
                      : snprintf(out, room, "%llu%s", (unsigned long long)(value / scale), suffix);
    return (size_t)written;
}

size_t duration_format(int64_t ns, char out[DURATION_TEXT_BYTES])
{
    uint64_t rest = ns < 0 ? 0 - (uint64_t)ns : (uint64_t)ns;
    char *at = out;
    char *end = out + DURATION_TEXT_BYTES;
    if (ns < 0)
        *at++ = '-';
    if (rest == 0)
        at += snprintf(at, (size_t)(end - at), "0s");
    else if (rest < (uint64_t)DURATION_MICROSECOND)
        at += put_decimal(at, (size_t)(end - at), rest, 0, "ns");
    else if (rest < (uint64_t)DURATION_MILLISECOND)
        at += put_decimal(at, (size_t)(end - at), rest, 3, "\xC2\xB5s");
    else if (rest < (uint64_t)DURATION_SECOND)
        at += put_decimal(at, (size_t)(end - at), rest, 6, "ms");
    else {
        uint64_t hours = rest / (uint64_t)DURATION_HOUR;
        uint64_t minutes = rest / (uint64_t)DURATION_MINUTE % 60;
        if (hours > 0)
            at += snprintf(at, (size_t)(end - at), "%lluh", (unsigned long long)hours);
        if (hours > 0 || minutes > 0)
            at += snprintf(at, (size_t)(end - at), "%llum", (unsigned long long)minutes);
        at += put_decimal(at, (size_t)(end - at), rest % (uint64_t)DURATION_MINUTE, 9, "s");
    }
    return (size_t)(at - out);
}
