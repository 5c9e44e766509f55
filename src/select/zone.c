/* SPDX-License-Identifier: Apache-2.0 */
#include "select/zone.h"

#include <ctype.h>
#include <stdio.h>

#include "base/moment.h"

#define ZONE_FOLDER "/usr/share/zoneinfo/"
#define ZONE_NAME_BYTES 64
#define ZONE_FILE_BYTES 8192 /* twice the longest there is */
#define HEADER_BYTES 44
#define DAY 86400

struct time_zone {
    char name[ZONE_NAME_BYTES];
    unsigned char bytes[ZONE_FILE_BYTES];
    const unsigned char *times; /* 8 bytes each, big endian, rising */
    const unsigned char *types; /* of the times: one byte each */
    const unsigned char *rules; /* 6 bytes a type: offset, daylight, name */
    uint32_t time_count;
    uint32_t type_count;
    str footer; /* the rule for all time behind the last transition */
};

/* The zones that were read, in the order in which they were first named. */
static time_zone kept[ZONES_MAX];
static unsigned kept_count;
static uint64_t lookups;
static const time_zone utc = {.name = "UTC"};

/* ---- The file ----------------------------------------------------------------------------- */

static uint32_t read_u32(const unsigned char *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static int64_t read_i64(const unsigned char *p)
{
    return (int64_t)((uint64_t)read_u32(p) << 32 | read_u32(p + 4));
}

typedef struct header {
    uint32_t utc_count, standard_count, leap_count, time_count, type_count, char_count;
} header;

static bool read_header(const unsigned char *p, size_t room, header *ret)
{
    if (room < HEADER_BYTES || memcmp(p, "TZif", 4) != 0)
        return false;
    *ret = (header){read_u32(p + 20), read_u32(p + 24), read_u32(p + 28),
                    read_u32(p + 32), read_u32(p + 36), read_u32(p + 40)};
    /* Far above every real zone, and nothing below can overflow. */
    return ret->utc_count < 4096 && ret->standard_count < 4096 && ret->leap_count < 4096 &&
           ret->time_count < 4096 && ret->type_count < 256 && ret->char_count < 4096;
}

static size_t block_bytes(const header *h, size_t time_bytes)
{
    return h->time_count * (time_bytes + 1) + h->type_count * 6 + h->char_count +
           h->leap_count * (time_bytes + 4) + h->standard_count + h->utc_count;
}

static bool understand(time_zone *z, size_t len)
{
    header h;
    if (!read_header(z->bytes, len, &h) || z->bytes[4] < '2')
        return false;
    size_t second = HEADER_BYTES + block_bytes(&h, 4);
    if (second > len || !read_header(z->bytes + second, len - second, &h) || h.type_count == 0)
        return false;
    size_t from = second + HEADER_BYTES;
    size_t end = from + block_bytes(&h, 8);
    if (end >= len || z->bytes[end] != '\n')
        return false;
    z->time_count = h.time_count;
    z->type_count = h.type_count;
    z->times = z->bytes + from;
    z->types = z->times + (size_t)h.time_count * 8;
    z->rules = z->types + h.time_count;
    const char *footer = (const char *)z->bytes + end + 1;
    const char *newline = memchr(footer, '\n', len - end - 1);
    z->footer = (str){footer, newline ? (size_t)(newline - footer) : 0};
    for (uint32_t i = 0; i < h.time_count; i++)
        if (z->types[i] >= h.type_count)
            return false;
    return true;
}

static bool load(time_zone *z, const char *name)
{
    char path[sizeof ZONE_FOLDER + ZONE_NAME_BYTES];
    snprintf(path, sizeof path, "%s%s", ZONE_FOLDER, name);
    lookups++;
    FILE *file = fopen(path, "rb");
    if (!file)
        return false;
    size_t len = fread(z->bytes, 1, sizeof z->bytes, file);
    bool whole = len < sizeof z->bytes;
    fclose(file);
    if (!whole || !understand(z, len))
        return false;
    snprintf(z->name, sizeof z->name, "%s", name);
    return true;
}

/* Names become paths: only names of zones get that far. The copies of the database that count leap
 * seconds, or say once more the same, are none. */
static bool is_name(str name)
{
    if (str_starts(name, STR("right/")) || str_starts(name, STR("posix/")))
        return false;
    if (name.len == 0 || name.len >= ZONE_NAME_BYTES || !isalpha((unsigned char)name.ptr[0]))
        return false;
    for (size_t i = 0; i < name.len; i++)
        if (!isalnum((unsigned char)name.ptr[i]) &&
            (name.ptr[i] == '\0' || !strchr("_+-/", name.ptr[i])))
            return false;
    return true;
}

const time_zone *zone_named(str name)
{
    char copy[ZONE_NAME_BYTES];
    if (str_eq(name, STR("UTC")))
        return &utc; /* also where no zones are installed */
    if (!is_name(name))
        return NULL;
    snprintf(copy, sizeof copy, "%.*s", STR_ARG(name));
    for (unsigned i = 0; i < kept_count; i++)
        if (strcmp(kept[i].name, copy) == 0)
            return &kept[i];
    if (kept_count == ZONES_MAX || !load(&kept[kept_count], copy))
        return NULL;
    return &kept[kept_count++];
}

uint64_t zone_lookups(void)
{
    return lookups;
}

/* ---- The rule at its end: "CET-1CEST,M3.5.0,M10.5.0/3" ------------------------------------- */

static bool take(str *text, char c)
{
    if (text->len == 0 || text->ptr[0] != c)
        return false;
    *text = str_part(*text, 1, text->len);
    return true;
}

static bool take_number(str *text, int64_t *ret)
{
    size_t n = 0;
    int64_t value = 0;
    while (n < text->len && n < 4 && isdigit((unsigned char)text->ptr[n]))
        value = value * 10 + (text->ptr[n++] - '0');
    *text = str_part(*text, n, text->len);
    *ret = value;
    return n > 0;
}

/* [+-]hh[:mm[:ss]] */
static bool take_time(str *text, int64_t *ret)
{
    bool negative = take(text, '-');
    if (!negative)
        take(text, '+');
    int64_t hours;
    int64_t minutes = 0;
    int64_t seconds = 0;
    if (!take_number(text, &hours) || (take(text, ':') && !take_number(text, &minutes)) ||
        (take(text, ':') && !take_number(text, &seconds)))
        return false;
    *ret = (negative ? -1 : 1) * (hours * 3600 + minutes * 60 + seconds);
    return true;
}

static bool take_label(str *text)
{
    size_t n = 0;
    if (take(text, '<')) {
        while (n < text->len && text->ptr[n] != '>')
            n++;
        *text = str_part(*text, n + 1, text->len);
        return n > 0;
    }
    while (n < text->len && isalpha((unsigned char)text->ptr[n]))
        n++;
    *text = str_part(*text, n, text->len);
    return n > 0;
}

/* Day "month.week.weekday" of a year: the week counts, 5 is the last one. */
static int64_t month_day(int64_t year, int64_t month, int64_t week, int64_t weekday)
{
    int64_t first = civil_days(year, (int)month, 1);
    int64_t after = month == 12 ? civil_days(year + 1, 1, 1) : civil_days(year, (int)month + 1, 1);
    int64_t day = first + ((weekday - (first + 4) % 7) % 7 + 7) % 7 + (week - 1) * 7;
    return day < after ? day : day - 7;
}

/* The local second of a year at which a rule ",date[/time]" takes effect. */
static bool take_date(str *text, int64_t year, int64_t *ret)
{
    int64_t days;
    int64_t a;
    int64_t b;
    int64_t c;
    int64_t time = 7200;
    bool leap = civil_days(year + 1, 1, 1) - civil_days(year, 1, 1) == 366;
    if (!take(text, ','))
        return false;
    if (take(text, 'M')) {
        if (!take_number(text, &a) || !take(text, '.') || !take_number(text, &b) ||
            !take(text, '.') || !take_number(text, &c) || a < 1 || a > 12)
            return false;
        days = month_day(year, a, b, c);
    } else {
        bool no_leap = take(text, 'J');
        if (!take_number(text, &a))
            return false;
        days = civil_days(year, 1, 1) + a - no_leap + (no_leap && leap && a > 59);
    }
    if (take(text, '/') && !take_time(text, &time))
        return false;
    *ret = days * DAY + time;
    return true;
}

static bool footer_offset(str text, int64_t seconds, int64_t *ret)
{
    int64_t standard;
    if (!take_label(&text) || !take_time(&text, &standard))
        return false;
    standard = -standard;
    *ret = standard;
    if (text.len == 0)
        return true;
    int64_t summer = standard + 3600;
    if (!take_label(&text))
        return false;
    if (text.len > 0 && text.ptr[0] != ',') {
        if (!take_time(&text, &summer))
            return false;
        summer = -summer;
    }
    int64_t year = moment_civil((moment){seconds, 0}, standard).year;
    int64_t start;
    int64_t end;
    if (!take_date(&text, year, &start) || !take_date(&text, year, &end))
        return false;
    start -= standard;
    end -= summer;
    bool in_summer =
        start < end ? seconds >= start && seconds < end : !(seconds >= end && seconds < start);
    *ret = in_summer ? summer : standard;
    return true;
}

int64_t zone_offset(const time_zone *z, int64_t at)
{
    uint32_t low = 0;
    uint32_t high = z->time_count;
    int64_t offset;
    if (z == &utc)
        return 0;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (read_i64(z->times + (size_t)middle * 8) <= at)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == z->time_count && z->footer.len > 0 && footer_offset(z->footer, at, &offset))
        return offset;
    unsigned type = low == 0 ? 0 : z->types[low - 1];
    return (int32_t)read_u32(z->rules + (size_t)type * 6);
}
