/* SPDX-License-Identifier: Apache-2.0 */
#include "base/moment.h"

#include <assert.h>
#include <stdio.h>

#include "base/duration.h"
#include "base/num.h"

#define DAY_SECONDS 86400

static bool leap(int64_t year)
{
    return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

static int month_days(int64_t year, int month)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    return month == 2 && leap(year) ? 29 : days[month - 1];
}

/* Eras of 400 years that begin on 1 March, so that the leap day is the last one. */
int64_t civil_days(int64_t year, int month, int day)
{
    int64_t y = month <= 2 ? year - 1 : year;
    int64_t era = (y >= 0 ? y : y - 399) / 400;
    int64_t year_of_era = y - era * 400;
    int64_t day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    int64_t day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    return era * 146097 + day_of_era - 719468;
}

civil moment_civil(moment m, int64_t offset_seconds)
{
    int64_t local = m.seconds + offset_seconds;
    int64_t days = local / DAY_SECONDS - (local % DAY_SECONDS < 0);
    int64_t second_of_day = local - days * DAY_SECONDS;

    int64_t shifted = days + 719468;
    int64_t era = (shifted >= 0 ? shifted : shifted - 146096) / 146097;
    int64_t day_of_era = shifted - era * 146097;
    int64_t year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    int64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    int64_t shifted_month = (5 * day_of_year + 2) / 153;

    civil c;
    c.day = (int)(day_of_year - (153 * shifted_month + 2) / 5 + 1);
    c.month = (int)(shifted_month < 10 ? shifted_month + 3 : shifted_month - 9);
    c.year = year_of_era + era * 400 + (c.month <= 2);
    c.hour = (int)(second_of_day / 3600);
    c.minute = (int)(second_of_day / 60 % 60);
    c.second = (int)(second_of_day % 60);
    c.weekday = (int)(((days + 4) % 7 + 7) % 7);
    c.day_of_year = (int)(days - civil_days(c.year, 1, 1));
    return c;
}

/* Exactly count digits off the front of *text. */
static bool read_digits(str *text, size_t count, int *ret)
{
    if (text->len < count)
        return false;
    int value = 0;
    for (size_t i = 0; i < count; i++) {
        if (text->ptr[i] < '0' || text->ptr[i] > '9')
            return false;
        value = value * 10 + (text->ptr[i] - '0');
    }
    *text = str_part(*text, count, text->len);
    *ret = value;
    return true;
}

static bool read_char(str *text, const char *any_of)
{
    if (text->len == 0 || !memchr(any_of, text->ptr[0], strlen(any_of)))
        return false;
    *text = str_part(*text, 1, text->len);
    return true;
}

static bool read_fraction(str *text, int32_t *ret_nanos)
{
    int32_t nanos = 0;
    size_t places = 0;
    while (places < text->len && text->ptr[places] >= '0' && text->ptr[places] <= '9') {
        if (places < 9)
            nanos = nanos * 10 + (text->ptr[places] - '0');
        places++;
    }
    if (places == 0)
        return false;
    for (size_t i = places; i < 9; i++)
        nanos *= 10;
    *text = str_part(*text, places, text->len);
    *ret_nanos = nanos;
    return true;
}

static bool read_zone(str *text, int64_t *ret_offset)
{
    if (read_char(text, "Zz")) {
        *ret_offset = 0;
        return true;
    }
    bool west = text->len > 0 && text->ptr[0] == '-';
    int hours;
    int minutes;
    if (!read_char(text, "+-") || !read_digits(text, 2, &hours) || !read_char(text, ":") ||
        !read_digits(text, 2, &minutes) || hours > 23 || minutes > 59)
        return false;
    *ret_offset = (west ? -1 : 1) * (hours * INT64_C(3600) + minutes * INT64_C(60));
    return true;
}

static bool read_all(str text, moment *ret)
{
    int year;
    int month;
    int day;
    int hour;
    int minute;
    int second;
    int32_t nanos = 0;
    int64_t offset;
    if (!read_digits(&text, 4, &year) || !read_char(&text, "-") || !read_digits(&text, 2, &month) ||
        !read_char(&text, "-") || !read_digits(&text, 2, &day) || !read_char(&text, "Tt"))
        return false;
    if (!read_digits(&text, 2, &hour) || !read_char(&text, ":") ||
        !read_digits(&text, 2, &minute) || !read_char(&text, ":") ||
        !read_digits(&text, 2, &second))
        return false;
    if (read_char(&text, ".") && !read_fraction(&text, &nanos))
        return false;
    if (!read_zone(&text, &offset) || text.len > 0)
        return false;
    if (month < 1 || month > 12 || day < 1 || day > month_days(year, month))
        return false;
    if (hour > 23 || minute > 59 || second > 59)
        return false;
    int64_t seconds = civil_days(year, month, day) * DAY_SECONDS + hour * INT64_C(3600) +
                      minute * INT64_C(60) + second - offset;
    if (seconds < MOMENT_SECONDS_MIN || seconds > MOMENT_SECONDS_MAX)
        return false;
    *ret = (moment){seconds, nanos};
    return true;
}

bool moment_parse(str text, moment *ret, err *error)
{
    if (read_all(text, ret))
        return true;
    return err_set(error, "found \"%s\", allowed a time such as 2026-11-15T09:00:00Z",
                   str_shown(text).text);
}

size_t moment_format(moment m, char out[MOMENT_TEXT_BYTES])
{
    assert(m.seconds >= MOMENT_SECONDS_MIN && m.seconds <= MOMENT_SECONDS_MAX);
    assert(m.nanos >= 0 && m.nanos < DURATION_SECOND);
    civil c = moment_civil(m, 0);
    int length = snprintf(out, MOMENT_TEXT_BYTES, "%04d-%02d-%02dT%02d:%02d:%02d", (int)c.year,
                          c.month, c.day, c.hour, c.minute, c.second);
    if (m.nanos != 0) {
        length += snprintf(out + length, MOMENT_TEXT_BYTES - (size_t)length, ".%09d", (int)m.nanos);
        while (out[length - 1] == '0')
            length--;
    }
    out[length++] = 'Z';
    out[length] = '\0';
    return (size_t)length;
}

bool moment_add(moment m, int64_t ns, moment *ret)
{
    int64_t seconds = ns / DURATION_SECOND;
    int64_t nanos = ns % DURATION_SECOND + m.nanos;
    if (nanos < 0) {
        nanos += DURATION_SECOND;
        seconds--;
    } else if (nanos >= DURATION_SECOND) {
        nanos -= DURATION_SECOND;
        seconds++;
    }
    if (!num_add(m.seconds, seconds, &seconds) || seconds < MOMENT_SECONDS_MIN ||
        seconds > MOMENT_SECONDS_MAX)
        return false;
    *ret = (moment){seconds, (int32_t)nanos};
    return true;
}

bool moment_sub(moment a, moment b, int64_t *ret_ns)
{
    int64_t seconds;
    int64_t nanos = (int64_t)a.nanos - b.nanos;
    int64_t ns;
    if (!num_sub(a.seconds, b.seconds, &seconds))
        return false;
    /* Both with the same sign, or the seconds alone could overflow where the sum does not. */
    if (seconds < 0 && nanos > 0) {
        seconds++;
        nanos -= DURATION_SECOND;
    } else if (seconds > 0 && nanos < 0) {
        seconds--;
        nanos += DURATION_SECOND;
    }
    return num_mul(seconds, DURATION_SECOND, &ns) && num_add(ns, nanos, ret_ns);
}
